"""Thresholds, and the book of deltas: in ledgers, in ledger files and in entries."""

import math
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from privet.errors import BudgetError, BudgetExceeded, LedgerFileError
from privet.privacy import (
    Budget,
    Cost,
    DiscoveryNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Entry,
    Ledger,
    LedgerStore,
    Place,
    Question,
    QuestionKind,
    Threshold,
    discovery_budget,
)

MILLIONTH = Fraction(1, 10**6)
ASKED = Question(QuestionKind.SCHEMA, count=2)
COLUMNS = ["age", "ward", "ill"]
KINDS = {"age": "number", "ward": "category", "ill": "category"}


def threshold(delta=MILLIONTH, epsilon=Fraction(1, 10)):
    return Threshold(DiscreteLaplace(2, epsilon), 1, 1, delta)


@pytest.mark.parametrize(("columns", "pure", "normal"), [(10, 1544, 693), (50, 8519, 1630)])
def test_thresholds_at_epsilon_a_tenth(columns, pure, normal):
    """1 + (d/eps) ln(d_c/(2 delta)) and 1 + sigma Phi^-1(1 - delta/d_c), a little rounded up."""
    laplace = DiscreteLaplace(columns, Fraction(1, 10))
    assert Threshold(laplace, columns, 1, MILLIONTH).least == pure
    budget = discovery_budget(0.1, 1e-6, gaussian=True, lists=columns)
    found = DiscoveryNoise(budget, columns, columns, 1).counts
    assert isinstance(found.noise, DiscreteGaussian)
    assert found.least == normal
    assert found.cost.delta == MILLIONTH / 2
    assert found.cost.rho == budget.limit


@pytest.mark.parametrize("parts", [1, 2, 60])
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 20), Fraction(9, 10)])
def test_the_threshold_is_the_least(parts, delta):
    found = Threshold(DiscreteLaplace(3 * parts, 1), 3, parts, delta)
    q = math.exp(-1 / (3 * parts))

    def appears(least):
        return (q ** (least - parts) + (parts - 1) * q ** (least - 1)) / (1 + q)

    assert found.least > parts
    assert appears(found.least) <= float(delta) / 3
    assert found.least == parts + 1 or appears(found.least - 1) > float(delta) / 3 * (1 - 1e-6)


@pytest.mark.parametrize(
    "given", [{"delta": 0}, {"delta": 1}, {"delta": math.nan}, {"columns": 0}, {"parts": 0}]
)
def test_thresholds_that_cannot_be(given):
    with pytest.raises(BudgetError):
        Threshold(
            **{"noise": DiscreteLaplace(1, 1), "columns": 1, "parts": 1, "delta": 0.1} | given
        )


class TestLedger:
    def test_deltas_add_up_and_are_refused(self):
        ledger = Ledger(Budget(1, threshold_delta=Fraction(3, 10**6)))
        for _ in range(3):
            ledger.charge(ledger.root, threshold(), ASKED, Place())
        assert ledger.total == Cost(Fraction(3, 10), Fraction(3, 200), Fraction(3, 10**6))
        with pytest.raises(BudgetExceeded):
            ledger.charge(ledger.root, threshold(), ASKED, Place())
        assert ledger.total.delta == Fraction(3, 10**6)
        assert len(ledger.entries) == 3
        ledger.charge(ledger.root, DiscreteLaplace(1, Fraction(1, 10)), ASKED, Place())

    def test_without_a_book_none_is_paid(self):
        for budget in (Budget(1), Budget(1, delta=1e-6), Budget(rho=1)):
            ledger = Ledger(budget)
            with pytest.raises(BudgetExceeded):
                ledger.charge(ledger.root, threshold(), ASKED, Place())
            assert ledger.total.rho == 0

    def test_subledgers_charge_those_above(self):
        table = Ledger(Budget(1, threshold_delta=MILLIONTH))
        fit = table.subledger(Budget(Fraction(1, 2), threshold_delta=MILLIONTH))
        fit.charge(fit.root, threshold(), ASKED, Place())
        assert table.total.delta == fit.total.delta == MILLIONTH
        with pytest.raises(BudgetExceeded):
            table.subledger(Budget(Fraction(1, 10), threshold_delta=MILLIONTH))
        table.subledger(Budget(Fraction(1, 10)))

    def test_only_the_whole_table_pays(self):
        import numpy as np

        ledger = Ledger(Budget(1, threshold_delta=1e-5))
        parts = ledger.root.divide(np.array([0, 0]))
        with pytest.raises(BudgetError, match="whole table"):
            ledger.charge(parts, threshold(), ASKED, Place(1))

    def test_no_delta_of_groups_is_claimed(self):
        assert threshold().cost.of_group(2).delta == math.inf
        assert Cost.pure(Fraction(1)).of_group(2).delta == 0

    def test_budgets_say_it(self):
        assert str(Budget(1, threshold_delta=1e-6)) == "epsilon 1, delta 1e-06 for thresholds"
        for wrong in (1, 2.5, -1e-6, math.nan, "x"):
            with pytest.raises(BudgetError):
                Budget(1, threshold_delta=wrong)


def test_entries_keep_their_delta():
    entry = Entry(ASKED, Place(), 1, threshold().facts, threshold().cost)
    assert Entry.from_dict(entry.to_dict()) == entry
    assert entry.to_dict()["delta"] == "1/1000000"
    plain = Entry(ASKED, Place(), 1, threshold().facts, Cost.pure(Fraction(1)))
    assert "delta" not in plain.to_dict()
    for wrong in ("-1", "inf", 1, None, "1e-6"):
        with pytest.raises(ValueError, match=r"amount|fraction"):
            Entry.from_dict(entry.to_dict() | {"delta": wrong})


class TestFile:
    @pytest.fixture
    def store(self, tmp_path):
        budget = Budget(1, threshold_delta=Fraction(3, 10**6))
        return LedgerStore.create(
            tmp_path / "l.ledger", budget, columns=COLUMNS, table="t", kinds=KINDS
        )

    def asked(self, delta=MILLIONTH, epsilon=Fraction(1, 10)):
        return Budget(epsilon, threshold_delta=delta)

    def test_what_is_reserved_and_what_is_spent(self, store):
        first = store.reserve(self.asked(), "a schema", columns=COLUMNS, kinds=KINDS)
        store.reserve(self.asked(), "killed", columns=COLUMNS, kinds=KINDS)
        books = store.books
        assert (books.spent_delta, books.left_delta) == (2 * MILLIONTH, MILLIONTH)
        first.settle(Cost.pure(Fraction(1, 10)), [])
        assert store.books.spent_delta == MILLIONTH
        assert store.books.kinds == KINDS
        with pytest.raises(BudgetExceeded, match="delta 2e-06 is left for thresholds"):
            store.reserve(self.asked(3 * MILLIONTH), "too much", columns=COLUMNS)
        store.reserve(Budget(Fraction(1, 10)), "a fit", columns=COLUMNS)
        assert store.books.spent == Fraction(3, 10)

    def test_settling_for_more_is_refused(self, store):
        made = store.reserve(self.asked(), "a schema", columns=COLUMNS)
        more = Cost(Fraction(1, 10), Fraction(1, 200), 2 * MILLIONTH)
        with pytest.raises(BudgetError, match="more than it reserved"):
            made.settle(more, [])
        assert store.books.spent_delta == MILLIONTH

    def test_books_without_deltas_stay_at_version_2(self, tmp_path):
        plain = LedgerStore.create(tmp_path / "p.ledger", Budget(1), columns=COLUMNS)
        with pytest.raises(BudgetExceeded, match="--threshold-delta"):
            plain.reserve(self.asked(), "a schema", columns=COLUMNS)
        assert plain.books.kinds is None
        assert plain.books.left_delta == 0
        for path, version in ((plain.path, 2), (tmp_path / "l3", 3)):
            if version == 3:
                LedgerStore.create(path, Budget(1), columns=COLUMNS, kinds=KINDS)
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("SELECT version FROM opening").fetchone() == (version,)

    @pytest.mark.parametrize(
        ("kinds", "match"),
        [
            (KINDS | {"age": "integer"}, "other kinds of columns: see 'age'"),
            (KINDS | {"id": "unit"}, "counts what (single records|persons by 'id') pay"),
            ({"id": "unit"}, "counts what (single records|persons by 'id') pay"),
        ],
    )
    def test_other_kinds_and_units_are_refused(self, tmp_path, kinds, match):
        columns = [*COLUMNS, "id"]
        for opened, asked in ((KINDS, kinds), (kinds, KINDS)):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.ledger"
            store = LedgerStore.create(path, Budget(1), columns=columns, kinds=opened)
            with pytest.raises(LedgerFileError, match=match):
                store.reserve(Budget(0.5), "a schema", columns=columns, kinds=asked)
            assert store.left == 1
            store.reserve(Budget(0.5), "a schema", columns=columns, kinds=opened)

    def test_a_layout_of_another_version_is_damaged(self, store):
        with closing(sqlite3.connect(store.path)) as connection:
            connection.execute("UPDATE opening SET version = 2")
            connection.commit()
        with pytest.raises(LedgerFileError, match="damaged"):
            _ = store.books
