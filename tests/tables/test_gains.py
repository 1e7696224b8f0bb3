"""Gains of splits and report noisy max: what docs/proofs/topdown.md claims, by brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privet import Budget, BudgetExceeded, Categorical, Numeric, PrivateTable, Schema
from privet.audit import exact
from privet.audit.outputs import describe
from privet.criteria import SAD, SSE, ClippedEntropy, Entropy, Gini, GiniChords, Max
from privet.errors import BudgetError, DataError
from privet.privacy import ReportNoisyMax, SecureNoise, SeededNoise
from privet.tables import Binary, Split, View, gains_of, list_candidates

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
LOUD = pytest.mark.filterwarnings("ignore:epsilon is infinite")
MIXED = Schema({"a": Categorical(["u"]), "x": Numeric(0, 1, bins=2)}, target="y", classes=[0, 1])
#: "u" against the rest, and both cuts of the number.
OFFERED = Binary([np.array([[True, False]]), np.array([[False, True, True], [False, False, True]])])
CRITERIA = {
    "gini": Gini(),
    "max": Max(),
    "clipped": ClippedEntropy(0.02, 2),
    "entropy": Entropy(20),
}


# How far a gain moves


def gain_changes(criterion, tables):
    """Return how much the gain of splits changes by every record that could be added.

    Tables have the shape (tables, children, classes).
    """

    def gains(counts):
        return criterion.losses(counts.sum(axis=-2)) - criterion.losses(counts).sum(axis=-1)

    found = []
    for child, label in itertools.product(range(tables.shape[1]), range(tables.shape[2])):
        neighbour = tables.copy()
        neighbour[:, child, label] += 1
        found.append(gains(neighbour) - gains(tables))
    return np.stack(found)


def small_tables(children, classes, largest):
    cells = children * classes
    return np.indices((largest + 1,) * cells).reshape(cells, -1).T.reshape(-1, children, classes)


@pytest.mark.parametrize(("children", "classes", "largest"), [(2, 2, 8), (3, 2, 3), (2, 3, 3)])
@pytest.mark.parametrize("name", CRITERIA)
def test_a_gain_moves_by_at_most_the_spread_on_all_small_tables(name, children, classes, largest):
    criterion = ClippedEntropy(0.02, classes) if name == "clipped" else CRITERIA[name]
    moved = gain_changes(criterion, small_tables(children, classes, largest))
    assert np.abs(moved).max() <= criterion.spread
    assert moved.min() < 0 < moved.max()  # both ways: a gain is not monotone


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("total", [10**3, 10**6, 2**30])
def test_a_gain_moves_by_at_most_the_spread_on_large_tables(name, total, generator):
    criterion = Entropy(total + 1) if name == "entropy" else CRITERIA[name]
    shares = generator.dirichlet(np.full(4, 0.3), 2_000) * (0.9 * total)
    tables = shares.astype(np.int64).reshape(-1, 2, 2)
    assert np.abs(gain_changes(criterion, tables)).max() <= criterion.spread


@pytest.mark.parametrize(("name", "big", "small"), [("gini", 10**6, 1_000), ("max", 5, 1)])
def test_the_spread_is_nearly_attained_in_both_directions(name, big, small):
    """A large pure child, and a small one of the other class."""
    tables = np.array([[[big, 0], [0, 1]], [[0, big], [small, 0]]])
    moved = gain_changes(CRITERIA[name], tables) / CRITERIA[name].spread
    assert moved.max() > 0.99
    assert moved.min() < -0.99


def test_gains_of_numbers_move_by_at_most_the_spread(generator):
    for criterion, steps in ((SAD(7), 8), (SSE(), 8)):
        counts = generator.integers(0, 4, (500, 2, steps))
        grid = np.arange(steps) * (2**15 // (steps - 1))

        def statistics(counts, criterion=criterion, grid=grid):
            if isinstance(criterion, SAD):
                return counts
            return np.stack([counts.sum(-1), counts @ grid, counts @ grid**2], axis=-1)

        def gains(counts, criterion=criterion, statistics=statistics):
            whole = criterion.losses(statistics(counts.sum(axis=1)))
            return whole - criterion.losses(statistics(counts)).sum(axis=-1)

        for child, value in itertools.product(range(2), range(steps)):
            more = counts.copy()
            more[:, child, value] += 1
            assert np.abs(gains(more) - gains(counts)).max() <= criterion.spread


# The questions


def ask(question):
    def program(records, noise):
        columns = np.empty((len(records), 3), dtype=object)
        for place, record in enumerate(records):
            columns[place] = record
        table = PrivateTable(columns[:, :-1], columns[:, -1], MIXED, Budget(1), random_state=noise)
        return describe(question(table.root()))

    return program


CUT = Split(1, (0, 1, 1))
QUESTIONS = {
    **{
        f"{how}, {n}": lambda c, k=k, how=how: c.choose_best(OFFERED, k, 1, how=how)
        for (n, k), how in itertools.product(CRITERIA.items(), ("flip", "exponential", "rnm"))
    },
    "all gains": lambda c: c.noisy_candidate_gains(OFFERED, Gini(), 1),
}


@SEEDED
@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_exact_loss_of_each_question_is_within_its_amount(name):
    program = ask(QUESTIONS[name])
    records = exact.universe(MIXED)
    tables = [(), *((one, one) for one in (records[0], records[3], records[-1]))]
    worst = 0.0
    for table in tables:
        known = {}
        for record in records:
            found = exact.compare(program, table, (record, *table), known=known)
            assert not found.remarks
            worst = max(worst, found.epsilon)
    assert 0.3 < worst <= 1 + 1e-9


@SEEDED
@LOUD
def test_gains_are_parent_less_children_also_of_class_counts(generator):
    schema = Schema({"x": Numeric(0, 1, bins=4)}, target="y", classes=[0, 1, 2])
    x, y = generator.random(300), generator.integers(0, 3, 300)
    table = PrivateTable(x[:, None], y, schema, Budget(math.inf), random_state=0)
    cells = table.root().split([Split(0, (0, 0, 1, 1, 1))])
    splits = [Split(0, (0, 1, 1, 1, 1)), Split(0, (0, 0, 0, 1, 1))]
    gains = gains_of(cells.split(splits).noisy_class_counts(math.inf), splits, Gini())
    sides = View.of_bins(schema)
    offered = Binary(
        [np.array([[False, True, True, True, True], [False, False, False, True, True]])]
    )
    everything = cells.noisy_candidate_gains(offered, Gini(), math.inf)
    assert list_candidates(offered, sides) == [(0, 0), (0, 1)]
    for cell, (low, high, cut) in enumerate([(0, 0.5, 0.25), (0.5, 1, 0.75)]):
        inside = (x >= low) & (x < high)
        counts = [np.bincount(y[inside & side], minlength=3) for side in (x < cut, x >= cut)]
        expected = Gini().losses(sum(counts)) - sum(Gini().losses(part) for part in counts)
        assert gains[cell] == expected == everything[cell, cell]
    assert everything[0, 1] == everything[1, 0] == 0  # these cuts divide nothing


@SEEDED
@LOUD
def test_without_noise_the_best_candidate_is_chosen(generator):
    x, a = generator.random(400), generator.choice(["u", "w"], 400)
    y = (x > 0.5).astype(int)
    data = np.column_stack([a.astype(object), x.astype(object)])
    table = PrivateTable(data, y, MIXED, Budget(math.inf), random_state=0)
    for how in ("flip", "exponential", "rnm"):
        assert table.root().choose_best(OFFERED, Gini(), math.inf, how=how) == [CUT]


def test_questions_are_refused_before_anything_is_spent():
    table = PrivateTable(np.empty((0, 2), dtype=object), [], MIXED, Budget(1))
    cells = table.root()
    with pytest.raises(DataError):
        cells.noisy_candidate_gains(OFFERED, SSE(), 1)
    with pytest.raises(DataError):
        cells.choose_best(OFFERED, SSE(), 1, how="flip")
    with pytest.raises(ValueError, match="how must"):
        cells.choose_best(OFFERED, Gini(), 1, how="best")
    allowed = np.ones((1, 2), dtype=bool)
    for criterion in (GiniChords(5, 5), ClippedEntropy(0.02, 5)):
        with pytest.raises(BudgetError, match="another number of classes"):
            cells.choose_best(OFFERED, criterion, 1, how="flip")
        with pytest.raises(BudgetError, match="another number of classes"):
            cells.choose_splits(OFFERED, criterion, 1, allowed)
        with pytest.raises(BudgetError, match="another number of classes"):
            cells.noisy_candidate_gains(OFFERED, criterion, 1)
    for question in QUESTIONS.values():
        assert table.ledger.left == 1
        with pytest.raises(BudgetExceeded):
            question(PrivateTable([["u", 0.5]], [1], MIXED, Budget(0.5)).root())
    nobody = cells.take(np.array([], dtype=int))
    assert nobody.noisy_candidate_gains(OFFERED, Gini(), 1).shape == (0, 3)
    assert nobody.choose_best(OFFERED, Gini(), 1, how="flip") == []
    assert table.ledger.left == 1


def test_in_zcdp_gains_have_gaussian_noise_and_only_one_way_to_choose():
    table = PrivateTable([["u", 0.5]], [1], MIXED, Budget(rho=1))
    cells = table.root()
    for how in ("flip", "rnm"):
        with pytest.raises(BudgetError, match="zCDP"):
            cells.choose_best(OFFERED, Gini(), Fraction(1, 4), how=how)
    cells.choose_best(OFFERED, Gini(), Fraction(1, 4), how="exponential")
    cells.noisy_candidate_gains(OFFERED, Gini(), Fraction(3, 4))
    assert table.ledger.total.rho <= 1
    assert [entry.mechanism.kind for entry in table.ledger.entries][1:] == ["discrete-gaussian"]


# Report noisy max


def law(scores, scale):
    """Return the law of report noisy max, by convolution; the first of equal sums wins."""
    q = math.exp(-1 / scale)
    reach = math.ceil(45 * scale)
    values = np.arange(min(scores) - reach, max(scores) + reach + 1)
    pmfs = [(1 - q) / (1 + q) * q ** np.abs(values - score) for score in scores]
    up_to = [np.cumsum(pmf) for pmf in pmfs]
    below = [total - pmf for total, pmf in zip(up_to, pmfs, strict=True)]
    found = []
    for i, pmf in enumerate(pmfs):
        others = [below[j] if j < i else up_to[j] for j in range(len(scores)) if j != i]
        found.append(float((pmf * np.prod(others, axis=0)).sum()))
    return np.array(found)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_report_noisy_max_with_ties_is_private_for_the_spread(epsilon, size, generator):
    """All changes in 0..spread: monotone scores of integers, many of them equal."""
    spread, worst = 2, 0.0
    for _ in range(150):
        scores = generator.integers(-3, 4, size)
        moved = scores + generator.integers(0, spread + 1, size) + generator.integers(-9, 9)
        one, other = law(scores, spread / epsilon), law(moved, spread / epsilon)
        assert one.sum() == pytest.approx(1)
        worst = max(worst, float(np.abs(np.log(one / other)).max()))
    assert 0.5 * epsilon < worst <= epsilon + 1e-9


def test_scores_that_move_both_ways_need_twice_the_spread():
    """The check above can fail."""
    one, other = law([0, 0, 0], 1.0), law([-1, 1, 1], 1.0)
    assert np.abs(np.log(one / other)).max() > 1.05


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(3)], ids=["secure", "seeded"])
def test_report_noisy_max_has_its_law(noise):
    scores, draws = np.array([2, 3, 0, 3]), 6_000
    mechanism = ReportNoisyMax(2, 1)
    found = np.bincount([mechanism.choose(scores, noise) for _ in range(draws)], minlength=4)

    def distance(expected):
        return float(((found - draws * expected) ** 2 / (draws * expected)).sum())

    assert distance(law(scores, 2.0)) < 31  # three degrees of freedom: 1e-6
    assert distance(law(scores, 1.4)) > 31
    assert distance(law(scores, 2.6)) > 31


def test_report_noisy_max_knows_its_cost():
    mechanism = ReportNoisyMax(3, Fraction(1, 2))
    assert mechanism.scale == 6.0
    assert (mechanism.cost.epsilon, mechanism.cost.rho) == (Fraction(1, 2), Fraction(1, 8))
    assert ReportNoisyMax(3, math.inf).choose(np.array([1, 5, 5]), SecureNoise()) == 1
