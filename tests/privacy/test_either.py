"""A budget that is spent in pure epsilon or in zCDP, as the answers say (docs/proofs/ledger.md)."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privet import Budget, Categorical, PrivateBoostingClassifier, PrivateTable, Schema
from privet.audit.comparison import compare
from privet.errors import BudgetError, BudgetExceeded, PrivacyLeakWarning
from privet.learners.budgets import count_in_epsilon, rest_in_epsilon
from privet.model import EITHER
from privet.privacy import Cost, LedgerStore
from privet.robustness import promise_of

SCHEMA = Schema({"sex": Categorical(["f", "m"])}, target="ill", classes=[0, 1])
EPSILON, DELTA = 1.0, 0.01
COUNTING = Fraction(1, 2)


class TestCovers:
    BUDGET = Budget(EPSILON, delta=DELTA, either=True)

    @pytest.mark.parametrize(
        ("cost", "covered"),
        [
            (Cost.pure(Fraction(1)), True),  # its rho, 1/2, is above the limit
            (Cost.pure(Fraction(1) + Fraction(1, 10**9)), False),
            (Cost.zcdp(Budget(EPSILON, delta=DELTA).limit), True),
            (Cost.zcdp(Budget(EPSILON, delta=DELTA).limit + Fraction(1, 10**12)), False),
            (Cost.pure(Fraction(1, 100)) + Cost.zcdp(Budget(EPSILON, delta=DELTA).limit), False),
        ],
    )
    def test_either_book(self, cost, covered):
        assert self.BUDGET.covers(cost) is covered
        assert Budget(EPSILON, delta=DELTA).covers(cost) <= covered

    def test_the_worst_is_the_worse_of_both(self):
        assert self.BUDGET.worst == Cost.zcdp(Fraction(1, 2))
        assert self.BUDGET.covers(Cost.pure(Fraction(1)))

    def test_needs_a_delta(self):
        with pytest.raises(BudgetError, match="epsilon and delta"):
            Budget(1.0, either=True)


def deciding(delta=DELTA, rest=Fraction(EPSILON) - COUNTING, limit=None, threshold=1):
    """Return a program: count for pure epsilon, then go one way or the other by the answer."""

    def program(rows, noise):
        with pytest.warns(PrivacyLeakWarning):
            table = PrivateTable(
                [["f"] for _ in rows],
                [0 for _ in rows],
                SCHEMA,
                limit or Budget(EPSILON, delta=delta, either=True),
                random_state=noise,
            )
        count = int(table.session(Budget(COUNTING)).root().noisy_counts(COUNTING)[0])
        if count > threshold:
            found = table.session(Budget(rest)).root().noisy_counts(rest)
        else:
            found = table.root().noisy_counts(table.ledger.left)
        return count > threshold, tuple(found.tolist())

    return program


class TestTheLaw:
    def test_a_program_that_decides_by_a_count(self):
        found = compare(deciding(delta=0.05), "xx", "xxx", most_outcomes=20)
        assert not found.remarks
        assert {way for way, _ in found.outputs} == {True, False}
        assert found.delta(EPSILON) <= 0.05 * (1 + 1e-9)

    def test_no_further_delta_is_needed_where_epsilon_suffices(self):
        found = compare(deciding(delta=0.05, threshold=-(10**6)), "xx", "xxx", most_outcomes=12)
        assert found.epsilon <= EPSILON + 1e-9

    def test_a_forgotten_count_is_found(self):
        """The rest has the whole epsilon, and the ledger is not asked: more than the promise."""
        careless = deciding(rest=Fraction(1), limit=Budget(10.0, delta=DELTA, either=True))
        found = compare(careless, "xx", "xxx", most_outcomes=20)
        assert found.delta(EPSILON) > 2 * DELTA


class TestBooks:
    def table(self, budget):
        return PrivateTable([["f"]] * 9, [0] * 9, SCHEMA, budget)

    def test_no_charge_that_neither_book_covers(self):
        table = self.table(Budget(EPSILON, delta=DELTA, either=True))
        table.session(Budget(COUNTING)).root().noisy_counts(COUNTING)
        with pytest.raises(BudgetExceeded):
            table.session(Budget(Fraction(501, 1000)))
        with pytest.raises(BudgetExceeded):  # Gaussian noise after more rho than the limit
            table.root().noisy_counts(Budget(EPSILON, delta=DELTA).limit)
        table.session(Budget(COUNTING)).root().noisy_counts(COUNTING)
        assert table.ledger.total.epsilon == 1
        assert table.ledger.left == 0

    def test_a_table_of_zcdp_does_not_pay_for_epsilon_in_passing(self):
        table = self.table(Budget(EPSILON, delta=DELTA))
        with pytest.raises(BudgetExceeded):
            table.session(Budget(EPSILON, delta=DELTA, either=True))
        fit = table.session(Budget(EPSILON, delta=DELTA))
        assert not fit.ledger.affords(Budget(1.0))
        assert fit.ledger.affords(Budget(Fraction(1, 100)))


class TestBoosting:
    X = np.repeat([["f"], ["m"]], 400, axis=0)
    y = np.repeat([0, 1], 400)

    def fit(self, **options):
        options = {"delta": 1e-6, "schema": SCHEMA, "aim": "labels", **options}  # one tree
        return PrivateBoostingClassifier(1.0, **options).fit(self.X, self.y)

    def test_a_small_table_without_n_rows_has_its_tree_for_epsilon(self):
        card = self.fit().privacy_
        assert card.accountant == EITHER
        assert card.unit == "epsilon"
        assert card.delta == 1e-6
        assert card.private
        assert card.rho > float(Budget(1.0, delta=1e-6).limit)
        assert card.epsilon == 1.0

    def test_certificates_use_epsilon_and_delta_alone(self):
        promise = promise_of(self.fit())
        assert (promise.epsilon, promise.delta, promise.rho) == (1.0, 1e-6, math.inf)

    def test_a_declared_number_of_rows_is_public(self):
        card = self.fit(n_rows=800).privacy_
        assert (card.accountant, card.delta) == ("pure", 0.0)

    def test_what_counts_in_zcdp_pays_in_zcdp(self, tmp_path):
        store = LedgerStore.create(
            tmp_path / "ledger", Budget(1.0, delta=1e-6), columns=["sex", "ill"]
        )
        assert self.fit(ledger=store).privacy_.accountant == "zCDP"
        assert store.spent <= store.budget.limit
        table = PrivateTable(self.X, self.y, SCHEMA, Budget(1.0, delta=1e-6))
        for options in ({}, {"n_rows": 800}):
            model = PrivateBoostingClassifier(0.25, delta=1e-6, **options).fit(table)
            assert model.privacy_.accountant == "zCDP"

    @pytest.mark.parametrize("epsilon", [0.01, 30.0, 1e5])
    def test_a_count_is_a_small_part_of_both(self, epsilon):
        table = PrivateTable(self.X, self.y, SCHEMA, Budget(epsilon, delta=1e-6, either=True))
        _, left = count_in_epsilon(table, table.ledger.budget.limit)
        assert 0.97 <= left / table.ledger.budget.limit < 1
        assert rest_in_epsilon(table).ledger.budget.limit >= Fraction(97, 100) * Fraction(epsilon)
