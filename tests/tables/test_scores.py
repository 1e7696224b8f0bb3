"""Scores, noisy gradients and weighted draws: what they compute, what they cost, and their laws.

Laws of noise are tested by chi-square with a false-alarm rate of 1e-6 each, and every test has a
power check: the same test rejects a scale that is off by 30 per cent. Laws of drawn trees are
compared exactly, by replaying every choice (``enumeration``). The last part is an audit: all tables
of up to three records over a small universe, and every record that can be added to them.
"""

import copy
import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privet import Budget, BudgetExceeded, Categorical, Numeric, PrivateTable, Schema
from privet.criteria import Gini
from privet.engines import BlockEngine
from privet.engines.losses import HEAVIEST, UNIT, loss_of
from privet.errors import BudgetError, DataError
from privet.privacy import SecureNoise, WholeTree
from privet.tables import Gradients, Multiway, Split, pull_deviation
from privet.tables import cells as wall
from privet.tables.whole_trees import LEAST_STOP, MOST_STOP, Menu

from ..engines.behind import scores_of  # noqa: TID252
from .enumeration import enumerated, law_of

ALARM = 1e-6
FEATURES = {"x": Numeric(0, 1, bins=2), "a": Categorical(["u"])}
TARGETS = {
    "two": {"classes": [0, 1]},
    "three": {"classes": [0, 1, 2]},
    "number": {"bounds": (0, 1)},
}
SCHEMAS = {name: Schema(FEATURES, "y", **target) for name, target in TARGETS.items()}
STARTS = {"two": (0.3,), "three": (0.2, -0.1, 0.0), "number": (0.45,)}
REACH = {"two": 0.0, "three": 0.0, "number": 0.4}
#: Added to the records of each of the three codes of ``x``.
MORE = {
    "two": [[0.9], [-0.7], [0.2]],
    "three": [[0.9, 0.0, -0.3], [-0.7, 0.4, 0.0], [0.0, 0.0, 0.5]],
    "number": [[0.2], [-0.3], [0.1]],
}
EACH = pytest.mark.parametrize("kind", ["two", "three", "number"])
BY_X = Split(0, (0, 1, 2))
VALUES = [0.2, 0.8, math.nan]
pytestmark = pytest.mark.filterwarnings(
    "ignore:random_state is fixed", "ignore:epsilon is infinite"
)


def make_rows(rows, kind, seed=1):
    """Return features and targets, with missing and unknown values."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"x": generator.choice(VALUES, rows), "a": generator.choice(["u", "w"], rows)}
    )
    if kind == "number":
        return frame, generator.random(rows).round(2)
    return frame, generator.integers(0, {"two": 2, "three": 3}[kind], rows)


def open_table(kind, budget, rows=9, seed=0):
    return PrivateTable(*make_rows(rows, kind), SCHEMAS[kind], budget, random_state=seed)


def scored(table, kind):
    """Return the cells by ``x``, and scores that differ by them."""
    cells, scores = table.root().split([BY_X]), table.start_scores(STARTS[kind])
    scores.add(cells, np.array(MORE[kind]))
    return cells, scores


def behind(table, cells, scores, kind, *, pure):
    """Return what only the wall knows: exact sums by cell and moment."""
    engine = wall.behind_table[table].engine
    return engine.moments(
        wall.behind_cells[cells], wall.behind_scores[scores], _reach(scores, kind), pure=pure
    )


def scores_behind(table, scores):
    """Return what only the wall knows: the scores of all records."""
    return scores_of(wall.behind_table[table].engine, wall.behind_scores[scores])


def _reach(scores, kind):
    return REACH[kind] if kind == "number" else scores.bound


# Scores ------------------------------------------------------------------------------------------


@EACH
def test_values_are_added_to_the_records_of_their_cells_alone(kind):
    frame, target = make_rows(12, kind)
    target = target.astype(object)
    target[[0, 5]] = None
    table = PrivateTable(frame, target, SCHEMAS[kind], Budget(1))
    cells, scores = scored(table, kind)
    some = cells.take(np.array([2, 0]))
    scores.add(some, 10 * np.array(MORE[kind])[[2, 0]])
    expected = np.tile(np.array(STARTS[kind]), (12, 1))
    for i, x in enumerate(frame["x"]):
        code = 2 if math.isnan(x) else int(x > 0.5)
        if target[i] is not None:
            expected[i] += np.array(MORE[kind][code]) * (1 if code == 1 else 11)
    np.testing.assert_allclose(scores_behind(table, scores), expected)
    assert scores.bound >= np.abs(expected).max() - 1e-9
    assert table.ledger.entries == ()


@EACH
def test_the_bound_is_public(kind):
    """It weighs the records, so it must not depend on which of them exist."""
    bounds = set()
    for rows in (0, 1, 9):
        table = open_table(kind, Budget(1), rows)
        bounds.add(scored(table, kind)[1].bound)
    (bound,) = bounds
    most = max(abs(value) for row in MORE[kind] for value in row)
    assert bound == max(map(abs, STARTS[kind])) + most


@EACH
def test_senseless_values_are_refused_and_change_nothing(kind):
    table = open_table(kind, Budget(1))
    cells, scores = scored(table, kind)
    before, bound = scores_behind(table, scores), scores.bound
    width = len(STARTS[kind])
    for values in (
        np.zeros((2, width)),
        np.zeros((3, width + 1)),
        np.zeros(3),
        np.full((3, width), math.nan),
        np.full((3, width), math.inf),
    ):
        with pytest.raises(ValueError, match="finite values"):
            scores.add(cells, values)
    with pytest.raises(ValueError, match="another table"):
        scores.add(open_table(kind, Budget(1)).root(), np.zeros((1, width)))
    assert np.array_equal(scores_behind(table, scores), before)
    assert scores.bound == bound
    scores.add(cells, np.full((3, width), 1e308))
    with pytest.raises(ValueError, match="stay finite"):  # infinite scores would have no bounds
        scores.add(cells, np.full((3, width), 1e308))
    assert np.abs(scores_behind(table, scores)).max() <= 1e308
    for start in ((0.0,) * (width + 1), (), (math.nan,) * width, (math.inf,) * width):
        with pytest.raises(ValueError, match="finite scores"):
            table.start_scores(start)


def test_scores_cannot_be_copied():
    scores = open_table("two", Budget(1)).start_scores((0.0,))
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            leave(scores)


# Noisy gradients ---------------------------------------------------------------------------------


def discrete(kind_of_noise, scale):
    """Return the law of integer noise within four scales, as values and probabilities."""
    values = np.arange(-60, 61)
    if kind_of_noise == "Laplace":
        weights = np.exp(-np.abs(values) / scale)
    else:
        weights = np.exp(-(values**2) / (2 * scale**2))
    weights /= weights.sum()
    near = np.abs(values) <= (4 if kind_of_noise == "Laplace" else 3) * scale
    return values[near], weights[near]


def p_value(draws, kind_of_noise, scale):
    values, law = discrete(kind_of_noise, scale)
    counts = np.array([np.sum(draws == value) for value in values], dtype=float)
    expected = law * len(draws)
    rest = len(draws) - expected.sum()
    return stats.chisquare([*counts, len(draws) - counts.sum()], [*expected, rest]).pvalue


def as_sums(found, kind, *, pure):
    """Turn what was read back into the integers that were released."""
    if kind != "number":
        sums = np.concatenate([found.pull, found.curvature], axis=1) * UNIT
    elif pure:
        up = (found.curvature + found.pull) / 2 * UNIT
        sums = np.concatenate([up, found.curvature * UNIT - up], axis=1)
    else:
        count = round(UNIT / math.sqrt(3))
        sums = np.concatenate([found.pull * UNIT, found.curvature * count], axis=1)
    whole = np.rint(sums)
    np.testing.assert_allclose(sums, whole, atol=1e-6)
    return whole.astype(np.int64)


@pytest.mark.parametrize(("kind", "seed"), [("two", 0), ("two", None), ("three", 0), ("number", 0)])
@pytest.mark.parametrize("kind_of_noise", ["Laplace", "Gaussian"])
def test_gradients_have_the_noise_of_their_bounds(kind, seed, kind_of_noise):
    """The amount is so large that the scale is 2 units of the fixed point."""
    pure = kind_of_noise == "Laplace"
    l1, squared_l2 = loss_of(SCHEMAS[kind]).bounds(pure=pure)
    budget = Budget(1e12) if pure else Budget(rho=1e18)
    table = open_table(kind, budget, seed=seed)
    cells, scores = scored(table, kind)
    amount = Fraction(l1, 2) if pure else Fraction(squared_l2, 8)
    exact = behind(table, cells, scores, kind, pure=pure)
    found = [cells.noisy_gradients(scores, amount, reach=REACH[kind]) for _ in range(700)]
    draws = np.concatenate([(as_sums(each, kind, pure=pure) - exact).ravel() for each in found])
    assert p_value(draws, kind_of_noise, 2.0) > ALARM
    assert p_value(draws, kind_of_noise, 1.4) < ALARM
    assert p_value(draws, kind_of_noise, 2.6) < ALARM
    pulls = np.array([each.pull for each in found])
    assert found[0].deviation == pull_deviation(SCHEMAS[kind], budget, amount)
    assert pulls.std(axis=0).mean() == pytest.approx(found[0].deviation, rel=0.1)


@EACH
def test_without_noise_gradients_are_the_true_sums(kind):
    table = open_table(kind, Budget(math.inf), rows=40)
    cells, scores = scored(table, kind)
    found = cells.noisy_gradients(scores, math.inf, reach=REACH[kind])
    assert found.deviation == 0
    assert np.array_equal(
        as_sums(found, kind, pure=True), behind(table, cells, scores, kind, pure=True)
    )
    frame, target = make_rows(40, kind)
    code = np.where(frame["x"].isna(), 2, frame["x"] > 0.5).astype(int)
    known = np.array(STARTS[kind]) + np.array(MORE[kind])[code]
    if kind == "number":
        pull = np.clip((target[:, None] - known) / 0.4, -1, 1)
    elif kind == "two":
        pull = target[:, None] - 1 / (1 + np.exp(-known))
    else:
        pull = np.eye(3)[target] - np.exp(known) / np.exp(known).sum(axis=1, keepdims=True)
    for cell in range(3):
        np.testing.assert_allclose(found.pull[cell], pull[code == cell].sum(axis=0), atol=1e-3)


BUDGETS = pytest.mark.parametrize(
    "budget",
    [Budget(2.0), Budget(rho=0.3), Budget(1.0, delta=1e-6)],
    ids=["pure", "rho", "epsilon and delta"],
)


@EACH
@BUDGETS
def test_gradients_cost_their_amount_once_for_all_cells(kind, budget):
    table = open_table(kind, budget)
    cells, scores = scored(table, kind)
    third = budget.limit / 3
    for times in (1, 2):
        found = cells.noisy_gradients(scores, third, reach=REACH[kind])
        assert isinstance(found, Gradients)
        assert table.ledger.left == budget.limit - times * third
    table.root().noisy_gradients(scores, third, reach=REACH[kind])
    assert table.ledger.left == 0
    (entry, *_) = table.ledger.entries
    assert entry.cells == 3
    assert entry.mechanism.kind == (
        "discrete-laplace" if budget.accountant == "pure" else "discrete-gaussian"
    )
    with pytest.raises(BudgetExceeded):
        cells.noisy_gradients(scores, Fraction(1, 10**9), reach=REACH[kind])


@EACH
@BUDGETS
def test_draws_cost_their_amount_once_for_all_cells(kind, budget):
    table = open_table(kind, budget)
    cells, scores = scored(table, kind)
    half = budget.limit / 2
    for times in (1, 2):
        assert len(cells.draw_trees(1, half, scores=scores, reach=REACH[kind])) == 3
        spent = budget.amount(table.ledger.total)
        assert spent <= times * half
        assert spent == pytest.approx(float(times * half), rel=1e-12)
    assert table.ledger.entries[0].mechanism.kind == "whole-tree"
    if budget.accountant == "pure":
        assert table.ledger.left == 0


@EACH
@BUDGETS
def test_the_ledger_is_charged_before_anything_is_computed(kind, budget, monkeypatch):
    table = open_table(kind, budget)
    cells, scores = scored(table, kind)
    seen = []
    for name in ("moments", "tree_rows"):
        original = getattr(BlockEngine, name)

        def watch(self, *arguments, _original=original, **options):
            seen.append(table.ledger.left)
            return _original(self, *arguments, **options)

        monkeypatch.setattr(BlockEngine, name, watch)
    cells.noisy_gradients(scores, budget.limit / 2, reach=REACH[kind])
    cells.draw_trees(1, budget.limit / 4, scores=scores, reach=REACH[kind])
    assert seen[0] == budget.limit / 2
    assert seen[1] <= budget.limit / 4 * (1 + Fraction(1, 10**9))


@EACH
@BUDGETS
def test_what_is_too_dear_is_neither_computed_nor_charged(kind, budget, monkeypatch):
    table = open_table(kind, budget)
    cells, scores = scored(table, kind)
    cells.noisy_counts(budget.limit * Fraction(3, 4))
    left, entries = table.ledger.left, table.ledger.entries

    def never(*_, **__):
        raise AssertionError("computed before it was paid for")

    monkeypatch.setattr(BlockEngine, "_ask", never)
    for ask in (
        lambda amount: cells.noisy_gradients(scores, amount, reach=REACH[kind]),
        lambda amount: cells.draw_trees(1, amount, scores=scores, reach=REACH[kind]),
        lambda amount: cells.draw_trees(2, [amount] * 3, scores=scores, reach=REACH[kind]),
    ):
        with pytest.raises(BudgetExceeded, match="Nothing was computed"):
            ask(budget.limit / 2)
    assert table.ledger.left == left
    assert table.ledger.entries == entries


@EACH
def test_senseless_questions_are_refused_before_they_are_charged(kind):
    table = open_table(kind, Budget(5))
    cells, scores = scored(table, kind)
    foreign = open_table(kind, Budget(5)).start_scores(STARTS[kind])
    reach = REACH[kind]
    asked = [
        lambda: cells.noisy_gradients(foreign, 1, reach=reach),
        lambda: cells.draw_trees(1, 1, scores=foreign, reach=reach),
        lambda: cells.draw_trees(4, 1, scores=scores, reach=reach),
        lambda: cells.draw_trees(0, 1, scores=scores, reach=reach),
        lambda: cells.draw_trees(1, 1, scores=scores, reach=reach, upper=[(0,)]),
        lambda: cells.draw_trees(1, 1, scores=scores, reach=reach, upper=[(2,)] * 3),
        lambda: cells.draw_trees(1, 1, scores=scores, reach=reach, upper=[()] * 3),
        lambda: cells.draw_trees(1, 1, scores=scores, reach=reach, upper=[(0, 0)] * 3),
        lambda: cells.draw_trees(1, [1, 1], scores=scores, reach=reach),
        lambda: cells.draw_trees(1, 1e-7, scores=scores, reach=reach),
    ]
    asked += [
        lambda amount=amount: cells.noisy_gradients(scores, amount, reach=reach)
        for amount in (0, -1, math.nan, "1", None, [1, 1, 1])
    ]
    if kind == "number":
        for wrong in (0.0, -0.5, 1.5, math.nan, math.inf):
            asked += [
                lambda wrong=wrong: cells.noisy_gradients(scores, 1, reach=wrong),
                lambda wrong=wrong: cells.draw_trees(1, 1, scores=scores, reach=wrong),
            ]
        asked += [
            lambda: cells.noisy_gradients(scores, 1),
            lambda: cells.draw_trees(1, 1, scores=scores),
        ]
    for ask in asked:
        with pytest.raises((ValueError, BudgetError)):
            ask()
    assert table.ledger.entries == ()
    assert table.ledger.left == 5


def test_no_cells_cost_nothing():
    table = open_table("two", Budget(1))
    cells, scores = scored(table, "two")
    nobody = cells.take(np.zeros(3, dtype=bool))
    found = nobody.noisy_gradients(scores, 1)
    assert found.pull.shape == found.curvature.shape == (0, 1)
    assert nobody.draw_trees(1, 1, scores=scores) == []
    assert table.ledger.left == 1


# Numbers as targets ------------------------------------------------------------------------------


def test_missing_numbers_are_left_out_and_others_are_clipped():
    schema = Schema(FEATURES, "y", bounds=(10, 20))
    target = [12.0, math.nan, 99.0, -math.inf, None, "nonsense", "15", math.inf, 20.0]
    frame = pd.DataFrame({"x": [0.2] * 9, "a": ["u"] * 9})
    table = PrivateTable(frame, np.array(target, dtype=object), schema, Budget(math.inf))
    root = table.root()
    assert root.noisy_counts(math.inf).tolist() == [6]
    found = root.noisy_gradients(table.start_scores((0.5,)), math.inf, reach=1.0)
    assert found.curvature.tolist() == [[6.0]]
    # The numbers are 0.2, 1, 0, 0.5, 1 and 1 of the way; 0.5 is taken away from each.
    assert found.pull[0, 0] == pytest.approx(0.7, abs=1e-4)
    scores = table.start_scores((0.0,))
    scores.add(root, np.array([[0.25]]))
    found = scores_behind(table, scores)[:, 0].tolist()
    assert found == [0.25, 0, 0.25, 0.25, 0, 0, 0.25, 0.25, 0.25]


def test_questions_about_classes_need_classes():
    table = open_table("number", Budget(1))
    root = table.root()
    for ask in (
        lambda: root.noisy_class_counts(1),
        lambda: root.choose_splits(Multiway(), Gini(), 1, np.ones((1, 2), dtype=bool)),
        lambda: root.choose_features(1, 1),
        lambda: root.draw_trees(1, 1),
    ):
        with pytest.raises(DataError, match="needs classes"):
            ask()
    assert table.ledger.left == 1
    assert root.noisy_counts(1).shape == (1,)


# Weighted draws ----------------------------------------------------------------------------------


def law_of_trees(table, ask):
    """Return the law of what a question about drawn trees answers, through the wall."""
    room = wall.behind_table[table]

    def program(noise):
        wall.behind_table[table] = replace(room, noise=noise)
        return tuple(ask())

    return law_of(program)


def weights_behind(table, scores, kind, frame, target):
    """Return codes, labels and weights of all records as the losses have them."""
    loss = loss_of(SCHEMAS[kind])
    labels, weights = loss.pulls(target, scores_behind(table, scores), _reach(scores, kind))
    x = np.where(frame["x"].isna(), 2, frame["x"] > 0.5)
    codes = np.array([x, frame["a"] != "u"]).astype(np.uint8)
    return codes, labels, weights


MENU = Menu((True, False), (3, 2), (0, 1), MOST_STOP)


@EACH
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("budget", [Budget(1e9), Budget(rho=1e9)], ids=["pure", "zCDP"])
def test_drawn_trees_weigh_their_records_by_their_pulls(kind, merge, budget):
    table = open_table(kind, budget)
    _, scores = scored(table, kind)
    root = table.root()
    amount = Fraction(3, 2)
    law = law_of_trees(
        table, lambda: root.draw_trees(1, amount, scores=scores, reach=REACH[kind], merge=merge)
    )
    codes, labels, weights = weights_behind(table, scores, kind, *make_rows(9, kind))
    assert len(set(weights.tolist())) > 2
    epsilon = budget.selection_epsilon(amount)
    assert epsilon == (amount if budget.accountant == "pure" else pytest.approx(math.sqrt(12)))
    rate = WholeTree(epsilon).rate / HEAVIEST
    n_labels = loss_of(SCHEMAS[kind]).labels
    expected = enumerated(codes, labels, weights, MENU, n_labels, 1, rate)
    assert {tree for (tree,) in law} == set(expected)
    for tree, probability in expected.items():
        assert math.log(law[(tree,)]) == pytest.approx(math.log(probability), abs=1e-9)
    # A wrong rate, or records that all weigh the same, would be seen.
    for other in (
        enumerated(codes, labels, weights, MENU, n_labels, 1, rate * 1.01),
        enumerated(codes, labels, np.full_like(weights, 64), MENU, n_labels, 1, rate),
    ):
        assert max(abs(math.log(law[(tree,)] / other[tree])) for tree in other) > 1e-3


def test_the_prior_of_an_early_leaf_is_the_one_asked_for():
    """Another one would be seen; those beyond the proof's limits are refused, for nothing."""
    table = open_table("two", Budget(1e9))
    law = law_of_trees(table, lambda: table.root().draw_trees(1, 1, stop=0.125))
    frame, target = make_rows(9, "two")
    _, scores = scored(table, "two")
    codes, _, _ = weights_behind(table, scores, "two", frame, target)
    rate, ones = WholeTree(1).rate, np.ones(len(target), dtype=np.int64)
    for stop in (0.125, 0.5):
        menu = replace(MENU, stop=stop)
        expected = enumerated(codes, np.asarray(target), ones, menu, 2, 1, rate)
        far = max(abs(math.log(law[(tree,)] / expected[tree])) for tree in expected)
        assert far < 1e-9 if stop == 0.125 else far > 0.1
    spent = table.ledger.total
    for stop in (0.0, LEAST_STOP / 2, 0.6, math.nan):
        with pytest.raises(ValueError, match="stop lies between"):
            table.root().draw_trees(1, 1, stop=stop)
    assert table.ledger.total == spent


def test_deeper_trees_weigh_their_records_too():
    frame, target = make_rows(8, "two", seed=4)
    schema = Schema({"x": FEATURES["x"]}, "y", classes=[0, 1])
    table = PrivateTable(frame[["x"]], target, schema, Budget(1e9))
    _, scores = scored(table, "two")
    root = table.root()
    law = law_of_trees(table, lambda: root.draw_trees(2, 2, scores=scores))
    codes, labels, weights = weights_behind(table, scores, "two", frame.assign(a="u"), target)
    rate = WholeTree(2).rate / HEAVIEST
    menu = Menu((True,), (3,), (0,), MOST_STOP)
    expected = enumerated(codes[:1], labels, weights, menu, 2, 2, rate)
    assert len(law) == len(expected) > 100
    for tree, probability in expected.items():
        assert math.log(law[(tree,)]) == pytest.approx(math.log(probability), abs=1e-9)


def test_each_cell_draws_by_its_own_records_and_amount():
    """Also records without a class weigh nothing, wherever they would lie."""
    frame, target = make_rows(9, "two", seed=2)
    target = target.astype(object)
    target[3] = "unheard of"
    table = PrivateTable(frame, target, SCHEMAS["two"], Budget(1e9))
    _, scores = scored(table, "two")
    by_a = table.root().split([Split(1, (0, 1))])
    amounts = [Fraction(1, 2), Fraction(2)]
    upper = [(0,), (0,)]
    law = law_of_trees(table, lambda: by_a.draw_trees(1, amounts, scores=scores, upper=upper))
    known = np.array([label != "unheard of" for label in target])
    target = np.where(known, target, 0).astype(int)
    codes, labels, weights = weights_behind(table, scores, "two", frame, target)
    parts = []
    for cell, amount in enumerate(amounts):
        inside = known & (codes[1] == cell)
        assert inside.sum() > 1
        rate = WholeTree(amount).rate / HEAVIEST
        parts.append(
            enumerated(codes[:, inside], labels[inside], weights[inside], MENU, 2, 1, rate)
        )
    assert len(law) == len(parts[0]) * len(parts[1])
    for (one, other), probability in law.items():
        expected = parts[0][one] * parts[1][other]
        assert math.log(probability) == pytest.approx(math.log(expected), abs=1e-9)


# The audit: all small tables, and every neighbour ------------------------------------------------

SMALL = {"two": [0, 1], "three": [0, 1, 2], "number": [0.0, 0.3, 1.0]}


def small_tables(kind, values, most):
    """Yield all tables of up to this many records, and every record to add (with its table)."""
    universe = list(itertools.product(values, SMALL[kind]))
    for size in range(most):
        for records in itertools.combinations_with_replacement(range(len(universe)), size):
            for extra in range(len(universe)):
                yield records, tuple(sorted((*records, extra))), extra


def open_small(kind, features, universe, records, budget):
    frame = pd.DataFrame({"x": [universe[i][0] for i in records]}, dtype=np.float64)
    target = np.array([universe[i][1] for i in records])
    return PrivateTable(frame, target, Schema(features, "y", **TARGETS[kind]), budget)


class Recorder(SecureNoise):
    """Adds nothing, and remembers the sums and the scale."""

    def __init__(self):
        self.seen = []

    def add_laplace(self, values, scale):
        self.seen.append((values.copy(), scale))
        return values

    add_gaussian = add_laplace


@EACH
@pytest.mark.parametrize(
    "budget", [Budget(2.0), Budget(rho=0.25), Budget(1.0, delta=1e-6)], ids=str
)
def test_no_neighbour_changes_the_gradients_by_more_than_was_paid_for(kind, budget):
    """The largest log ratio is L1 / scale for Laplace; for Gaussian, rho is L2^2 / (2 scale^2)."""
    features = {"x": FEATURES["x"]}
    amount = budget.limit / 2
    universe = list(itertools.product(VALUES, SMALL[kind]))
    found = {}

    def sums(records):
        if records not in found:
            table = open_small(kind, features, universe, records, budget)
            cells, scores = scored(table, kind)
            recorder = Recorder()
            wall.behind_table[table] = replace(wall.behind_table[table], noise=recorder)
            cells.noisy_gradients(scores, amount, reach=REACH[kind])
            assert budget.amount(table.ledger.total) == amount
            (found[records],) = recorder.seen
        return found[records]

    worst = Fraction(0)
    for records, more, extra in small_tables(kind, VALUES, 3):
        (before, scale), (after, same) = sums(records), sums(more)
        assert scale == same
        change = after - before
        mine = VALUES.index(universe[extra][0])
        assert not np.delete(change, mine, axis=0).any()  # only the record's own cell
        if budget.accountant == "pure":
            loss = Fraction(int(np.abs(change).sum())) / Fraction(scale)
        else:
            loss = Fraction(int((change**2).sum())) / (2 * Fraction(scale) ** 2)
        worst = max(worst, loss)
    assert amount / 3 < worst <= amount


@pytest.mark.parametrize(
    ("kind", "bins", "depth", "most", "budget"),
    [
        ("two", 2, 1, 3, Budget(1e9)),
        ("two", 2, 1, 2, Budget(rho=1e9)),
        ("two", 1, 2, 3, Budget(1e9)),
        ("three", 2, 1, 2, Budget(1e9)),
        ("number", 2, 1, 2, Budget(1e9)),
    ],
)
def test_no_neighbour_is_told_apart_by_a_weighted_draw(kind, bins, depth, most, budget):
    """Log ratios of all trees lie within a range of epsilon: it bounds pure loss, and zCDP's."""
    features = {"x": Numeric(0, 1, bins=bins)}
    values = [0.2, 0.8, math.nan] if bins == 2 else [0.2, math.nan]
    universe = list(itertools.product(values, SMALL[kind]))
    amount = Fraction(1, 2) if budget.accountant == "pure" else Fraction(1, 32)
    laws = {}

    def law(records):
        if records not in laws:
            table = open_small(kind, features, universe, records, budget)
            cells = table.root().split([Split(0, tuple(range(bins + 1)))])
            scores = table.start_scores(STARTS[kind])
            scores.add(cells, np.array(MORE[kind][: bins + 1]))
            root = table.root()
            laws[records] = law_of_trees(
                table, lambda: root.draw_trees(depth, amount, scores=scores, reach=REACH[kind])
            )
        return laws[records]

    worst = 0.0
    for records, more, _ in small_tables(kind, values, most):
        before, after = law(records), law(more)
        assert set(before) == set(after)
        ratios = [math.log(after[tree] / before[tree]) for tree in before]
        assert max(map(abs, ratios)) <= 0.5
        worst = max(worst, max(ratios) - min(ratios))
    assert 0.3 < worst <= 0.5
