"""The ledger against two models of what a record pays, on random trees of questions.

One model follows the formula (own charges, and for every division the dearest part); the other
knows nothing of trees: it has explicit records and adds up, for each, the charges of the cells
that contain it.
"""

import math
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from privet.errors import BudgetError, BudgetExceeded
from privet.privacy import (
    Budget,
    Cost,
    DiscreteGaussian,
    DiscreteLaplace,
    Entry,
    Exponential,
    Ledger,
    MechanismFacts,
    MechanismKind,
    Place,
    Question,
    QuestionKind,
)
from privet.privacy import ledger as module
from privet.privacy.ledger import readable

FAKE = MechanismFacts(MechanismKind.OTHER, text="fake")
WHAT, FIRST, HERE = Question(QuestionKind.ROW_COUNT), Question(QuestionKind.LABEL), Place()

#: Drawing whole programs takes time and choices; a busy machine is no reason to fail.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@dataclass(frozen=True)
class Fake:
    """A mechanism of any cost."""

    cost: Cost
    facts: MechanismFacts = FAKE


def pure(epsilon):
    return Fake(Cost.pure(Fraction(epsilon)))


# Two models --------------------------------------------------------------------------------------


@dataclass
class Node:
    """A cell as the formula sees it."""

    records: frozenset
    own: list = field(default_factory=lambda: [Fraction(0), Fraction(0)])
    divisions: list = field(default_factory=list)

    def cost(self, book):
        return self.own[book] + sum(
            max((part.cost(book) for part in parts), default=Fraction(0))
            for parts in self.divisions
        )

    def paid(self, record, book):
        """What one record paid, in whatever cells it lay."""
        if record not in self.records:
            return Fraction(0)
        parts = (part for division in self.divisions for part in division)
        return self.own[book] + sum(part.paid(record, book) for part in parts)


RECORDS = range(6)
epsilons = st.fractions(min_value=0, max_value=1, max_denominator=12)


@st.composite
def costs(draw):
    epsilon, rho = draw(epsilons), draw(epsilons)
    return Cost(math.inf if draw(st.integers(0, 9)) == 0 else epsilon, rho)


def state(ledger, pool):
    """All that a refusal must leave as it was."""
    groups = {id(cells._group): cells._group for cells, _ in pool}
    return (
        ledger.total,
        ledger.left,
        ledger.entries,
        [
            (list(group.cost[0]), list(group.cost[1]), list(group.peak[0]), list(group.peak[1]))
            for group in groups.values()
        ],
    )


@given(data=st.data(), budget=st.sampled_from(["pure", "zCDP", "unlimited"]))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_random_questions_cost_what_the_models_say(data, budget):
    limit = data.draw(st.fractions(min_value=Fraction(1, 2), max_value=6, max_denominator=6))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    budget = {
        "pure": Budget(limit),
        "zCDP": Budget(rho=limit),
        "unlimited": Budget(math.inf),
    }[budget]
    book = 0 if budget.accountant == "pure" else 1
    ledger = Ledger(budget)
    root = Node(frozenset(RECORDS))
    pool = [(ledger.root, [root])]
    expected_entries = 0
    for _ in range(data.draw(st.integers(1, 25))):
        # mostly the newest: trees shall get deep
        cells, nodes = pool[-1 - data.draw(st.integers(0, min(3, len(pool) - 1)))]
        action = data.draw(st.sampled_from(["charge", "charge", "divide", "take"]))
        if action == "take":
            mask = [rng.random() < 0.7 for _ in nodes]
            taken = [node for node, kept in zip(nodes, mask, strict=True) if kept]
            pool.append((cells.take(np.array(mask, dtype=bool)), taken))
        elif action == "divide":
            parents, parts = [], []
            for number, node in enumerate(nodes):
                pieces = rng.choice([0, 1, 2, 2, 3])
                place = {record: rng.randrange(3) for record in sorted(node.records)}
                children = [
                    Node(frozenset(r for r in node.records if place[r] == piece))
                    for piece in range(pieces)
                ]
                node.divisions.append(children)
                parents += [number] * pieces
                parts += children
            order = rng.sample(range(len(parts)), len(parts))
            divided = cells.divide(np.array([parents[i] for i in order], dtype=np.intp))
            pool.append((divided, [parts[i] for i in order]))
        else:
            if data.draw(st.booleans()):
                mechanisms = Fake(data.draw(costs()))
                each = [mechanisms.cost] * len(nodes)
            else:
                offer = data.draw(st.lists(costs(), min_size=1, max_size=3))
                mechanisms = [Fake(rng.choice(offer)) for _ in nodes]
                each = [mechanism.cost for mechanism in mechanisms]
            before = state(ledger, pool)
            kept = [node.own for node in nodes]
            for node, cost in zip(nodes, each, strict=True):
                node.own = [node.own[0] + cost.epsilon, node.own[1] + cost.rho]
            fits = root.cost(book) <= budget.limit
            try:
                ledger.charge(cells, mechanisms, WHAT, HERE)
            except BudgetExceeded:
                event("refused")
                assert not fits
                assert state(ledger, pool) == before
                for node, own in zip(nodes, kept, strict=True):
                    node.own = own
            else:
                assert fits
                expected_entries += len(set(each))
        assert ledger.total == Cost(root.cost(0), root.cost(1))
        assert len(ledger.entries) == expected_entries
        for which, total in enumerate((ledger.total.epsilon, ledger.total.rho)):
            # nobody pays more than the books say
            assert max(root.paid(record, which) for record in RECORDS) <= total
    for unit in ("epsilon", "rho"):  # the dearest path adds up, entry by entry
        on_path = (getattr(ledger.entries[place].cost, unit) for place in ledger.path(unit))
        assert sum(on_path, Fraction(0)) == getattr(ledger.total, unit)
    assert ledger.left >= 0


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_in_a_tree_the_total_is_what_the_dearest_record_paid(data):
    """Every cell is divided once at most, and no part is empty: then the books are exact."""
    ledger = Ledger(Budget(math.inf))
    root = Node(frozenset(range(8)))
    pool = [(ledger.root, [root])]
    for _ in range(data.draw(st.integers(1, 12))):
        cells, nodes = data.draw(st.sampled_from(pool))
        if data.draw(st.booleans()) and not any(node.divisions for node in nodes):
            parents, parts = [], []
            for number, node in enumerate(nodes):
                records = sorted(node.records)
                cut = data.draw(st.integers(0, len(records) - 1))
                pieces = [records[:cut], records[cut:]] if cut else [records]
                children = [Node(frozenset(piece)) for piece in pieces]
                node.divisions.append(children)
                parents += [number] * len(children)
                parts += children
            pool.append((cells.divide(np.array(parents)), parts))
        else:
            each = [data.draw(epsilons) for _ in nodes]
            ledger.charge(cells, [Fake(Cost(e, e * 3)) for e in each], WHAT, HERE)
            for node, epsilon in zip(nodes, each, strict=True):
                node.own = [node.own[0] + epsilon, node.own[1] + epsilon * 3]
        dearest = max(root.paid(record, 0) for record in root.records)
        assert ledger.total == Cost(dearest, dearest * 3)


# Small examples, worked by hand ------------------------------------------------------------------


class TestComposition:
    def test_questions_to_the_same_records_add_up(self):
        ledger = Ledger(Budget(1))
        for _ in range(10):
            ledger.charge(ledger.root, pure(Fraction(1, 10)), WHAT, HERE)
        assert ledger.total.epsilon == 1  # exactly: ten tenths of a float are not one
        assert ledger.left == 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(ledger.root, pure(Fraction(1, 10**30)), WHAT, HERE)

    def test_disjoint_parts_pay_once(self):
        ledger = Ledger(Budget(1))
        parts = ledger.root.divide(np.zeros(1000, dtype=np.intp))
        ledger.charge(parts, pure(Fraction(1, 2)), WHAT, HERE)
        assert ledger.total.epsilon == Fraction(1, 2)

    def test_only_the_dearest_part_counts(self):
        ledger = Ledger(Budget(3))
        left, right = (ledger.root.divide(np.array([0, 0])).take([i]) for i in (0, 1))
        # two divisions of the same cell: these two parts may share records
        ledger.charge(left, pure(1), WHAT, HERE)
        ledger.charge(right, pure(1), WHAT, HERE)
        assert ledger.total.epsilon == 2
        parts = ledger.root.divide(np.array([0, 0]))
        ledger.charge(parts.take([0]), pure(Fraction(1, 2)), WHAT, HERE)
        ledger.charge(parts.take([1]), pure(Fraction(3, 4)), WHAT, HERE)
        assert ledger.total.epsilon == Fraction(11, 4)

    def test_a_cheap_branch_is_free_until_it_overtakes(self):
        ledger = Ledger(Budget(1))
        parts = ledger.root.divide(np.array([0, 0]))
        ledger.charge(parts.take([0]), pure(1), WHAT, HERE)
        for _ in range(4):
            ledger.charge(parts.take([1]), pure(Fraction(1, 4)), WHAT, HERE)
        with pytest.raises(BudgetExceeded):
            ledger.charge(parts.take([1]), pure(Fraction(1, 4)), WHAT, HERE)
        assert ledger.total.epsilon == 1

    def test_the_two_accountants_may_disagree_on_the_dearest_part(self):
        ledger = Ledger(Budget(math.inf))
        parts = ledger.root.divide(np.array([0, 0]))
        ledger.charge(
            parts, [DiscreteGaussian(1, Fraction(1, 8)), Exponential(1, Fraction(1))], "a", "b"
        )
        assert ledger.total == Cost(math.inf, Fraction(1, 8))
        ledger.charge(parts, DiscreteLaplace(1, Fraction(1)), WHAT, HERE)
        assert ledger.total == Cost(math.inf, Fraction(5, 8))

    def test_children_of_several_parents_at_once(self):
        ledger = Ledger(Budget(10))
        parents = ledger.root.divide(np.array([0, 0, 0])).take(np.array([2, 0]))
        children = parents.divide(np.array([1, 0, 1, 0]))  # of parents 0, 2, 0, 2
        ledger.charge(parents, [pure(1), pure(5)], WHAT, HERE)  # parent 2 pays 1, parent 0 pays 5
        ledger.charge(children, [pure(1), pure(2), pure(3), pure(0)], WHAT, HERE)
        assert ledger.total.epsilon == 5 + 3

    def test_one_mechanism_for_cells_that_have_paid_differently(self):
        ledger = Ledger(Budget(10))
        parts = ledger.root.divide(np.array([0, 0, 0]))
        ledger.charge(parts, [pure(1), pure(4), pure(2)], WHAT, HERE)
        ledger.charge(parts, pure(1), WHAT, HERE)
        assert ledger.total.epsilon == 5
        ledger.charge(parts.take([0, 2]), pure(3), WHAT, HERE)
        assert ledger.total.epsilon == 6


def charge(ledger, cells, epsilon):
    ledger.charge(cells, pure(epsilon), WHAT, HERE)


class TestPortions:
    """Disjoint parts of a table, each with the whole budget: the dearest counts."""

    def test_the_dearest_portion_is_what_they_cost(self):
        ledger = Ledger(Budget(1.0))
        training, test = ledger.portions(2)
        for books, amount in (
            (training, Fraction(3, 4)),
            (test, Fraction(1, 2)),
            (test, Fraction(1, 2)),
        ):
            charge(books, books.root, amount)
        assert training.total.epsilon == Fraction(3, 4)
        assert test.total.epsilon == 1
        assert ledger.total.epsilon == 1
        assert len(ledger.entries) == 3
        with pytest.raises(BudgetExceeded):
            charge(test, test.root, Fraction(1, 100))
        charge(training, training.root, Fraction(1, 4))
        assert ledger.total.epsilon == 1

    def test_the_path_leads_through_the_dearest_portion(self):
        ledger = Ledger(Budget(2.0))
        charge(ledger, ledger.root, Fraction(1, 2))
        fit = ledger.subledger(Budget(1.0))
        training, test = fit.portions(2)
        charge(training, training.root, Fraction(1, 4))
        charge(test, test.root, Fraction(1, 8))
        leaves = training.root.divide(np.array([0, 0]))
        charge(training, leaves.take([1]), Fraction(1, 16))
        charge(training, leaves.take([0]), Fraction(1, 32))
        assert ledger.path("epsilon") == (0, 1, 3)
        assert fit.path("epsilon") == (0, 2)  # of its own entries
        assert test.path("rho") == (0,)

    def test_two_divisions_add_up(self):
        """As a training question to the whole table would: twice the epsilon."""
        ledger = Ledger(Budget(2.0))
        training, test = ledger.portions(2)
        charge(training, training.root, 1)
        charge(test, test.root, 1)
        assert ledger.total.epsilon == 1
        again, _ = ledger.portions(2)
        charge(again, again.root, 1)
        assert ledger.total.epsilon == 2
        with pytest.raises(BudgetExceeded):
            charge(ledger, ledger.root, Fraction(1, 100))

    def test_what_everybody_paid_is_on_top(self):
        ledger = Ledger(Budget(1.0))
        charge(ledger, ledger.root, Fraction(1, 2))
        training, test = ledger.portions(2)
        charge(training, training.root, Fraction(1, 2))
        charge(test, test.root, Fraction(1, 2))
        assert ledger.total.epsilon == 1
        with pytest.raises(BudgetExceeded):
            charge(test, test.root, Fraction(1, 100))

    def test_a_session_of_a_portion_needs_room_in_its_own_part_only(self):
        """Also where the budget may be spent in either accountant."""
        for budget in (Budget(1.0), Budget(1.0, delta=1e-6, either=True)):
            ledger = Ledger(budget)
            training, test = ledger.portions(2)
            rest = training.subledger(Budget(1.0))
            charge(rest, rest.root, 1)
            assert not training.affords(Budget(Fraction(1, 100)))
            assert test.affords(Budget(1.0))
            score = test.subledger(Budget(1.0))
            charge(score, score.root, 1)
            assert ledger.total.epsilon == 1
            assert not ledger.affords(Budget(Fraction(1, 100)))

    def test_another_accountant_than_that_of_the_other_portion_is_refused(self):
        """One book must cover both: neither would, if one paid in epsilon and one in rho."""
        budget = Budget(1.0, delta=1e-6, either=True)
        ledger = Ledger(budget)
        training, test = ledger.portions(2)
        charge(training, training.root, 1)
        gaussian = DiscreteGaussian(1, budget.limit / 2)
        with pytest.raises(BudgetExceeded):
            test.charge(test.root, gaussian, Question(QuestionKind.ROW_COUNT), Place())

    def test_closing_the_whole_closes_the_portions(self):
        ledger = Ledger(Budget(1.0))
        training, _ = ledger.portions(2)
        ledger.close()
        with pytest.raises(BudgetExceeded):
            charge(training, training.root, Fraction(1, 2))


class TestRefusals:
    def test_nothing_changes_and_smaller_questions_still_work(self):
        ledger = Ledger(Budget(1))
        parts = ledger.root.divide(np.array([0, 0]))
        ledger.charge(parts, pure(Fraction(1, 2)), FIRST, HERE)
        with pytest.raises(
            BudgetExceeded, match=r"'how many records'.*left: epsilon 0\.5\. Nothing"
        ):
            ledger.charge(parts, [pure(Fraction(1, 4)), pure(Fraction(3, 4))], WHAT, HERE)
        assert ledger.total.epsilon == Fraction(1, 2)
        assert [entry.question for entry in ledger.entries] == [FIRST]
        ledger.charge(parts, pure(Fraction(1, 2)), WHAT, HERE)
        assert ledger.left == 0

    def test_exactly_the_budget_is_allowed(self):
        for budget in (Budget(0.3), Budget(rho=0.3)):
            ledger = Ledger(budget)
            ledger.charge(ledger.root, Fake(Cost(budget.limit, budget.limit)), WHAT, HERE)
            assert ledger.left == 0

    def test_gaussian_noise_has_no_pure_guarantee(self):
        ledger = Ledger(Budget(100))
        with pytest.raises(BudgetExceeded):
            ledger.charge(ledger.root, DiscreteGaussian(1, Fraction(1, 1000)), WHAT, HERE)
        assert ledger.total == Cost(0, 0)

    def test_infinite_cost_needs_an_infinite_budget(self):
        infinite = DiscreteLaplace(1, math.inf)
        finite = Ledger(Budget(10**9))
        with pytest.raises(BudgetExceeded) as refusal:
            finite.charge(finite.root, infinite, WHAT, HERE)
        assert refusal.value.left == readable(finite.left, finite.budget) == "epsilon 1e+09"
        ledger = Ledger(Budget(math.inf))
        parts = ledger.root.divide(np.array([0, 0]))
        for _ in range(3):
            ledger.charge(parts, infinite, WHAT, HERE)
            ledger.charge(ledger.root, infinite, WHAT, HERE)
            ledger.charge(parts.divide(np.array([0, 1, 1])), pure(1), WHAT, HERE)
        assert ledger.total == Cost(math.inf, math.inf)
        assert ledger.left == math.inf

    def test_the_same_cell_twice_in_one_question(self):
        ledger = Ledger(Budget(1))
        parts = ledger.root.divide(np.array([0, 0]))
        for twice in ([0, 0], [1, -1]):
            with pytest.raises(BudgetError, match="twice"):
                ledger.charge(parts.take(np.array(twice)), pure(1), WHAT, HERE)
        # dividing a cell taken twice would pass one cell's parts off as disjoint
        with pytest.raises(BudgetError, match="twice"):
            parts.take(np.array([0, 0])).divide(np.array([0, 1]))
        assert ledger.total.epsilon == 0

    def test_a_part_of_nothing(self):
        ledger = Ledger(Budget(1))
        with pytest.raises(BudgetError):
            ledger.root.divide(np.array([0, -1]))
        with pytest.raises(IndexError):
            ledger.root.divide(np.array([1]))

    def test_cells_of_another_ledger(self):
        """Their table's books would not see the charge checked against their own budget."""
        mine, other = Ledger(Budget(100)), Ledger(Budget(Fraction(1, 100)))
        for cells in (other.root, other.root.divide(np.array([0, 0]))):
            with pytest.raises(BudgetError, match="another ledger"):
                mine.charge(cells, pure(1), WHAT, HERE)
        assert mine.total == other.total == Cost(0, 0)
        assert not mine.entries

    @pytest.mark.parametrize(
        "amount", [math.nan, -1, Fraction(-1, 9), -math.inf, 0.5, np.float64(1)]
    )
    def test_costs_that_are_no_exact_amounts(self, amount):
        """Comparisons with NaN are false: it would never be refused."""
        for accountant in (Budget(1), Budget(rho=1)):
            ledger = Ledger(accountant)
            for cost in (Cost(amount, Fraction(0)), Cost(Fraction(0), amount)):
                with pytest.raises(BudgetError, match="cost"):
                    ledger.charge(ledger.root, Fake(cost), WHAT, HERE)
                with pytest.raises(BudgetError, match="cost"):
                    ledger.charge(ledger.root, [Fake(cost)], WHAT, HERE)
            assert ledger.total == Cost(0, 0)

    def test_number_of_mechanisms(self):
        ledger = Ledger(Budget(1))
        parts = ledger.root.divide(np.array([0, 0]))
        for mechanisms in ([], [pure(1)], [pure(1)] * 3):
            with pytest.raises(BudgetError, match="one for each"):
                ledger.charge(parts, mechanisms, WHAT, HERE)


class TestEntries:
    def test_one_entry_per_question_and_kind_of_mechanism(self):
        ledger = Ledger(Budget(10))
        parts = ledger.root.divide(np.array([0, 0, 0]))
        laplace, twice = DiscreteLaplace(1, Fraction(1, 2)), DiscreteLaplace(1, Fraction(1))
        ledger.charge(parts, laplace, WHAT, Place(1))
        ledger.charge(parts, [laplace, twice, laplace], WHAT, Place(1))
        how = MechanismFacts(MechanismKind.DISCRETE_LAPLACE, Fraction(1))
        assert ledger.entries == (
            Entry(WHAT, Place(1), 3, how, laplace.cost),
            Entry(WHAT, Place(1), 2, how, laplace.cost),
            Entry(WHAT, Place(1), 1, how, twice.cost),
        )
        assert ledger.entries[0].to_dict() == {
            "question": {"kind": "row-count"},
            "place": {"level": 1, "parts": 1},
            "cells": 3,
            "mechanism": {"kind": "discrete-laplace", "sensitivity": "1"},
            "epsilon": "1/2",
            "rho": "1/8",
        }

    def test_no_scopes_cost_nothing_and_leave_no_entry(self):
        ledger = Ledger(Budget(1))
        nobody = ledger.root.divide(np.array([], dtype=np.intp))
        assert len(nobody) == 0
        ledger.charge(nobody, pure(100), WHAT, HERE)
        ledger.charge(nobody, [], WHAT, HERE)
        ledger.charge(ledger.root.take(np.array([False])), pure(100), WHAT, HERE)
        assert ledger.entries == ()
        assert ledger.total.epsilon == 0

    def test_entries_cannot_be_changed_from_outside(self):
        ledger = Ledger(Budget(1))
        ledger.charge(ledger.root, pure(1), WHAT, HERE)
        assert isinstance(ledger.entries, tuple)
        with pytest.raises(AttributeError):
            ledger.entries[0].cells = 0


def test_threads_that_charge_at_once_never_overdraw(monkeypatch):
    """8 threads want 10 hundredths each, 80 in all, of 40: between check and writing they rest."""
    compute = module._raise_costs

    def compute_and_rest(*arguments, **options):
        found = compute(*arguments, **options)
        time.sleep(0.0003)
        return found

    monkeypatch.setattr(module, "_raise_costs", compute_and_rest)
    ledger = Ledger(Budget(Fraction(40, 100)))
    parts = ledger.root.divide(np.array([0, 0]))
    start = threading.Barrier(8)
    done = []

    def work(number):
        start.wait()
        for _ in range(10):
            try:
                cells = ledger.root if number % 2 else parts
                ledger.charge(cells, pure(Fraction(1, 100)), WHAT, HERE)
                done.append(number)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(ledger.entries) == 40
    assert ledger.total.epsilon == Fraction(40, 100)


def test_closed_books_refuse_every_further_charge():
    ledger = Ledger(Budget(1.0))
    question = DiscreteLaplace(1, Fraction(1, 4))
    ledger.charge(ledger.root, question, WHAT, HERE)
    ledger.close()
    with pytest.raises(BudgetExceeded, match="closed"):
        ledger.charge(ledger.root, question, WHAT, HERE)
    assert ledger.total.epsilon == Fraction(1, 4)
    assert len(ledger.entries) == 1


def test_what_is_paid_again_comes_besides_the_budget():
    """As if there had been one question only: what is left, and what is refused."""
    ledger, half = Ledger(Budget(1.0)), DiscreteLaplace(1, Fraction(1, 2))
    ledger.charge(ledger.root, half, WHAT, HERE)
    ledger.pay_besides(Fraction(1, 2))
    ledger.charge(ledger.root, half, WHAT, HERE)
    assert (ledger.total.epsilon, ledger.left) == (1, Fraction(1, 2))
    with pytest.raises(BudgetExceeded):
        ledger.charge(ledger.root, DiscreteLaplace(1, Fraction(3, 4)), WHAT, HERE)
    ledger.charge(ledger.root, half, WHAT, HERE)
    assert (ledger.total.epsilon, ledger.left) == (Fraction(3, 2), 0)
    for books in (Ledger(Budget(1.0)).subledger(Budget(0.5)), Ledger(Budget(1.0, delta=1e-6))):
        with pytest.raises(BudgetError, match="pay for a loss"):
            books.pay_besides(Fraction(1, 2))


def test_what_a_portion_pays_again_comes_besides_the_budget_of_all():
    """Records of one portion pay again; no more is left for those of the others."""
    ledger, half = Ledger(Budget(1.0)), DiscreteLaplace(1, Fraction(1, 2))
    training, test = ledger.portions(2)
    for _ in range(2):
        training.charge(training.root, half, WHAT, HERE)
    training.pay_besides(Fraction(1, 2))
    assert (training.left, test.left) == (Fraction(1, 2), 1)
    training.charge(training.root, half, WHAT, HERE)
    assert ledger.total.epsilon == Fraction(3, 2)
    # What the test portion may spend yet costs nothing more: a record has paid one and a half.
    assert (test.rise(Fraction(1)), test.rise(Fraction(7, 4))) == (0, Fraction(1, 4))
    test.pay_besides(Fraction(1, 4))
    test.charge(test.root, DiscreteLaplace(1, Fraction(5, 4)), WHAT, HERE)
    for books in (training, test):
        assert books.left == 0
        with pytest.raises(BudgetExceeded):
            books.charge(books.root, DiscreteLaplace(1, Fraction(1, 8)), WHAT, HERE)
    assert ledger.total.epsilon == Fraction(3, 2)
    assert ledger.left == 0  # as much besides as the dearest portion
    with pytest.raises(BudgetError, match="pay for a loss"):
        Ledger(Budget(1.0)).subledger(Budget(0.5)).portions(2)[0].pay_besides(Fraction(1, 2))


def test_a_count_with_noise_beyond_all_numbers_is_not_remembered():
    ledger = Ledger(Budget(1.0))
    ledger.keep_count(ledger.root, np.array([7]), [1e300])
    assert ledger.counts == ()


def test_an_interrupted_charge_leaves_the_books_too_high():
    """Whenever the interrupt comes, the total does not lack what a cell has."""

    class Fragile(list):
        """A list that is interrupted after some changes."""

        left = 0

        def __setitem__(self, place, value):
            if not Fragile.left:
                raise KeyboardInterrupt
            Fragile.left -= 1
            super().__setitem__(place, value)

    for changes in range(6):
        ledger = Ledger(Budget(1))
        cells = ledger.root.divide(np.zeros(2, dtype=np.intp))
        for group in (ledger._root, cells._group):
            group.cost = tuple(Fragile(book) for book in group.cost)
            group.peak = tuple(Fragile(book) for book in group.peak)
        Fragile.left = changes
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(cells.take(np.array([0])), pure(1), WHAT, HERE)
        assert ledger.total.epsilon >= cells._group.cost[0][0]


class TestSubledgers:
    """Books of one fit within the table's."""

    def test_parts_pay_once_within_a_fit_and_fits_add_up(self):
        ledger, half = Ledger(Budget(2.0)), DiscreteLaplace(1, Fraction(1, 2))
        question, place = Question(QuestionKind.ROW_COUNT), Place()
        for _ in range(2):
            fit = ledger.subledger(Budget(1.0))
            parts = fit.root.divide(np.array([0, 0]))
            fit.charge(parts.take(np.array([0])), half, question, place)
            fit.charge(parts.take(np.array([1])), half, question, place)
            assert fit.total.epsilon == Fraction(1, 2)
        assert ledger.total.epsilon == 1
        assert len(ledger.entries) == 4
        assert len(fit.entries) == 2
        with pytest.raises(BudgetExceeded, match=r"may cost epsilon 1\.5"):
            ledger.subledger(Budget(1.5))

    def test_open_ones_together_stay_within_the_tables_budget(self):
        ledger, cost = Ledger(Budget(1.0)), DiscreteLaplace(1, Fraction(1, 100))
        fits = [ledger.subledger(Budget(1.0)) for _ in range(4)]

        def spend(fit):
            with suppress(BudgetExceeded):
                while True:
                    fit.charge(fit.root, cost, Question(QuestionKind.ROW_COUNT), Place())

        threads = [threading.Thread(target=spend, args=(fit,)) for fit in fits]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.total.epsilon == 1
        assert sum(fit.total.epsilon for fit in fits) == 1
        assert len(ledger.entries) == 100

    def test_a_refusal_changes_neither(self):
        ledger = Ledger(Budget(1.0))
        fit = ledger.subledger(Budget(0.5))
        for amount in (Fraction(3, 4), Fraction(2)):
            mechanism = DiscreteLaplace(1, amount)
            with pytest.raises(BudgetExceeded, match="Nothing was computed"):
                fit.charge(fit.root, mechanism, Question(QuestionKind.ROW_COUNT), Place())
        assert ledger.entries == fit.entries == ()
        ledger.close()
        with pytest.raises(BudgetExceeded, match="closed"):
            fit.charge(fit.root, DiscreteLaplace(1, 1), Question(QuestionKind.ROW_COUNT), Place())
        with pytest.raises(BudgetExceeded):
            ledger.subledger(Budget(0.1))
