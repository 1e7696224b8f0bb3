"""What learners buy first, and how amounts are divided."""

import math
from fractions import Fraction

import pytest

from privet import Budget, Numeric, PrivateTable, Schema
from privet.errors import BudgetError
from privet.learners.budgets import (
    COUNT_SHARE,
    QUANTILE_SHARE,
    check_least,
    know_rows,
    less,
    set_aside_quantiles,
)

SCHEMA = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])


def test_an_infinite_amount_stays_infinite():
    assert less(Fraction(1), Fraction(1, 4)) == Fraction(3, 4)
    assert less(math.inf, math.inf) == math.inf


def test_rows_are_bought_only_if_they_are_not_declared():
    table = PrivateTable([[0.5]] * 2_000, [0, 1] * 1_000, SCHEMA, Budget(1.0))
    amount = table.ledger.budget.limit
    assert know_rows(table, amount, 77) == (77, amount)
    assert table.ledger.total.epsilon == 0
    rows, rest = know_rows(table, amount, None)
    assert abs(rows - 2_000) < 50 * math.log(1e6)  # noise of scale 50: false alarm 1e-6
    assert rest == amount * (1 - COUNT_SHARE)
    assert table.ledger.total.epsilon == COUNT_SHARE


def test_a_count_is_never_below_one():
    table = PrivateTable([], [], SCHEMA, Budget(1e3))
    assert know_rows(table, table.ledger.budget.limit, None)[0] == 1


def test_quantiles_are_bought_where_rows_pay_for_them():
    amount = Fraction(1)
    assert set_aside_quantiles(amount, 1e9, 0) == (None, amount)
    assert set_aside_quantiles(amount, 1_999, 2) == (None, amount)
    assert set_aside_quantiles(amount, 2_000, 2) == (QUANTILE_SHARE, 1 - QUANTILE_SHARE)


def test_too_small_a_question_is_refused():
    check_least([Fraction(1), Fraction(1, 2)], Fraction(1, 2))
    with pytest.raises(BudgetError, match="larger epsilon"):
        check_least([Fraction(1), Fraction(1, 3)], Fraction(1, 2))
