"""Halving cells: how far one record moves a halving loss, and the law of the medians."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.criteria import SAD, Gini, Max
from privet.errors import BudgetError, DataError
from privet.tables import Axis, AxisLists, Split, View
from privet.tables.halves import UNIT, halving_losses, halving_spread, ways_to_halve

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
CRITERIA = [Max(), Gini(), SAD(4)]


def loss(records, criterion):
    """The halving loss of (place, label) pairs, by its definition: weights record by record."""
    kinds = criterion.steps + 1 if isinstance(criterion, SAD) else 3
    places = np.array([place for place, _ in records], dtype=int)
    labels = np.array([label for _, label in records], dtype=int)
    counts = np.zeros((1, 3, kinds), dtype=np.int64)
    if len(places):
        middle = np.sort(places)[(len(places) - 1) // 2]
        np.add.at(counts[0], (1 + np.sign(places - middle), labels), 1)
    return int(halving_losses(counts, criterion)[0])


def slow_loss(records, criterion):
    """The same with fractions: each record's share in the lower half, then the least loss."""
    half = Fraction(len(records), 2)
    kinds = criterion.steps + 1 if isinstance(criterion, SAD) else 3
    lower, upper = [Fraction(0)] * kinds, [Fraction(0)] * kinds
    before = Fraction(0)
    for place in sorted({place for place, _ in records}):
        here = [label for where, label in records if where == place]
        share = min(max((half - before) / len(here), Fraction(0)), Fraction(1))
        before += len(here)
        for label in here:
            lower[label] += share
            upper[label] += 1 - share
    return float(sum(_least(weights, criterion) for weights in (lower, upper)))


def _least(weights, criterion):
    total = sum(weights)
    if isinstance(criterion, SAD):
        return min(
            sum(w * abs(k - middle) for k, w in enumerate(weights)) / criterion.steps
            for middle in range(len(weights))
        )
    if isinstance(criterion, Gini):
        return total - sum(w * w for w in weights) / total if total else Fraction(0)
    return total - max(weights)


records_of = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=9)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: c.name)
@settings(max_examples=300, deadline=None)
@given(records=records_of)
def test_a_halving_loss_is_what_its_definition_says(criterion, records):
    assert loss(records, criterion) == pytest.approx(UNIT * slow_loss(records, criterion), abs=0.51)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: c.name)
def test_no_record_moves_a_halving_loss_beyond_its_bounds(criterion):
    """All tables of up to five records on three places, and larger random ones."""
    spread = halving_spread(criterion)
    most = criterion.spread / criterion.scale
    labels = range(5) if isinstance(criterion, SAD) else range(2)
    kinds = list(itertools.product(range(3), labels))
    changes = []
    for size in range(3 if isinstance(criterion, SAD) else 5):
        for table in itertools.combinations_with_replacement(kinds, size):
            first = loss(table, criterion)
            changes += [loss((*table, more), criterion) - first for more in kinds]
    generator = np.random.default_rng(0)
    for _ in range(2_000):
        rows = int(generator.integers(1, 40))
        table = [
            (int(p), int(k))
            for p, k in zip(
                generator.integers(0, 3, rows), generator.choice(labels, rows), strict=True
            )
        ]
        first = loss(table, criterion)
        changes += [loss([*table, more], criterion) - first for more in kinds]
    assert min(changes) >= -most / 2 * UNIT - 1
    assert max(changes) <= 3 * most / 2 * UNIT + 1
    assert max(changes) - min(changes) <= spread
    assert max(changes) - min(changes) > 0.7 * spread  # the bound is of the right size


SCHEMA = Schema({"x": Numeric(0, 1), "c": Categorical(list("abc"))}, "y", classes=[0, 1])


def table_of(x, c, y, seed, epsilon=1.0):
    return PrivateTable(
        np.array([[a, b] for a, b in zip(x, c, strict=True)], object),
        y, SCHEMA, Budget(epsilon), random_state=seed,
    )  # fmt: skip


def test_ways_to_halve_have_the_scores_of_their_sides():
    """Some cells at once: numbers, ordered and listed categories, records anywhere, or none."""
    generator, size = np.random.default_rng(1), 9
    for _ in range(200):
        axes, tables = [], []
        for _ in range(int(generator.integers(1, 5))):
            first = int(generator.integers(0, 6))
            last = int(generator.integers(first + 1, size))
            order = generator.permutation(size) if generator.random() < 0.5 else None
            sides = generator.random((int(generator.integers(1, 8)), size)) < 0.5
            listed = order is not None and generator.random() < 0.5
            axes.append(Axis(0, first, last, order, sides if listed else None))
            tables.append(generator.integers(0, 3, size) * generator.integers(0, 2))
        found = [
            (cell, place, count)
            for cell, counts in enumerate(tables)
            for place, count in enumerate(counts.tolist())
            if count
        ]
        taken = np.array(found, dtype=np.int64).reshape(-1, 3).T
        scores, lengths = ways_to_halve(axes, *taken, [size])
        for axis, counts, mine, times in zip(axes, tables, scores, lengths, strict=True):
            ways = len(axis.sides) if axis.sides is not None else axis.last - axis.first
            expected = []
            for way in range(ways):
                second = axis.second(way, size)
                records = counts if axis.places is None else counts[axis.places]
                expected.append(-abs(int(records.sum()) - 2 * int(records[second].sum())))
            assert np.repeat(mine, times).tolist() == expected


def test_axes_as_arrays_are_the_same_axes():
    lists = [[Axis(0, 1, 5), Axis(1, 0, 2, np.array([2, 0, 1]))], [], [Axis(1, 0, 1, np.arange(3))]]
    found = AxisLists.of(lists)
    assert len(found) == 3
    assert found.longest == 2
    for cell, some in enumerate(lists):
        for axis, again in zip(some, found[cell], strict=True):
            assert (axis.feature, axis.first, axis.last) == (again.feature, again.first, again.last)
            assert (axis.places is None) == (again.places is None)
            assert axis.places is None or np.array_equal(axis.places, again.places)
    able = AxisLists(found.axes, found.lengths[[0, 2]])
    assert [(axis.feature, axis.last) for axis in able.at(1)] == [(1, 2), (1, 1)]
    assert [(axis.feature, axis.last) for axis in able.at([0, 0])] == [(0, 5), (1, 1)]


def test_a_split_in_two_is_the_split_with_these_children():
    split = Split.in_two(1, np.array([True, False, True]))
    assert split == Split(1, (1, 0, 1))
    assert split.n_children == 2
    assert set(map(type, split.children)) == {int}
    for feature, second in (
        (np.int64(1), np.ones(2, bool)),
        (1, np.ones(2, int)),
        (1, np.ones(1, bool)),
    ):
        with pytest.raises(ValueError, match="a bool"):
            Split.in_two(feature, second)


@SEEDED
def test_medians_have_the_law_of_their_mechanism():
    """Among three categories: weights exp(-epsilon |n - 2 n_side| / 2), by many draws."""
    table = table_of([0.5] * 5, ["a", "a", "b", "b", "b"], [0, 1, 0, 1, 0], 3, epsilon=1e6)
    sides = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], dtype=bool)
    axis = Axis(1, 0, 3, np.arange(4), sides)
    found = np.zeros(3)
    for _ in range(3_000):
        (split,) = table.root().choose_halves([axis], Fraction(1))
        found[sides.tolist().index([bool(child) for child in split.children])] += 1
    scores = np.array([-1.0, -1.0, -5.0])
    expected = np.exp(scores / 2)
    expected /= expected.sum()
    assert np.abs(found / found.sum() - expected).max() < 0.03


@SEEDED
def test_without_noise_the_median_halves_the_cell():
    x = np.linspace(0.001, 0.999, 1001)
    table = table_of(x, ["a"] * 1001, [0] * 1001, 0, epsilon=1e6)
    view = View.of_grid(SCHEMA)
    cells = table.root(view)
    (split,) = cells.choose_halves([Axis(0, 0, view.sizes[0] - 2)], Fraction(1000))
    cut = view.cuts[0][split.children.index(1) - 1]
    assert cut == pytest.approx(0.5, abs=0.01)
    counts = cells.split([split]).noisy_counts(1000)
    assert abs(int(counts[0]) - int(counts[1])) < 20


@SEEDED
def test_parts_are_disjoint_functions_of_single_records():
    generator = np.random.default_rng(0)
    x, y = generator.random(4_000), generator.integers(0, 2, 4_000)
    c = generator.choice(list("abc"), 4_000)
    full = table_of(x, c, y, 0, epsilon=1e7).parts(5, key=11).noisy_counts(1e6)
    without = table_of(x[1:], c[1:], y[1:], 0, epsilon=1e7).parts(5, key=11).noisy_counts(1e6)
    other = table_of(x, c, y, 0, epsilon=1e7).parts(5, key=12).noisy_counts(1e6)
    assert full.sum() == 4_000
    assert np.abs(full - 800).max() < 120  # even
    assert sorted((full - without).tolist()) == [0, 0, 0, 0, 1]
    assert not np.array_equal(full, other)


@SEEDED
def test_parts_cost_once_and_roots_cost_each():
    table = table_of([0.1, 0.9], ["a", "b"], [0, 1], 0, epsilon=3)
    table.parts(4, key=0).noisy_counts(1)
    assert table.ledger.total.epsilon == 1
    table.root().noisy_counts(1)
    table.root().noisy_counts(1)
    assert table.ledger.total.epsilon == 3


@SEEDED
def test_bad_questions_are_refused_before_anything_is_spent():
    table = table_of([0.1, 0.9], ["a", "b"], [0, 1], 0)
    cells = table.root()
    axis = Axis(0, 0, 3)
    with pytest.raises(ValueError, match="at least one axis"):
        cells.choose_axes(AxisLists.of([[]]), Max(), Fraction(1), flip=False)
    with pytest.raises(ValueError, match="an axis"):
        cells.choose_halves([axis, axis], Fraction(1))
    with pytest.raises(DataError, match="needs a number"):
        cells.choose_axes(AxisLists.of([[axis]]), SAD(4), Fraction(1), flip=False)
    with pytest.raises(DataError, match="needs a number"):
        cells.leaking_means(Fraction(1))
    with pytest.raises(ValueError, match="parts"):
        table.parts(0, key=0)
    zcdp = PrivateTable(
        np.array([[0.5, "a"]], object), [0], SCHEMA, Budget(1.0, delta=1e-6), random_state=0
    )
    with pytest.raises(BudgetError, match="budget without delta"):
        zcdp.root().choose_axes(AxisLists.of([[axis]]), Max(), Fraction(1, 10), flip=True)
    assert table.ledger.total.epsilon == 0
    assert zcdp.ledger.total.rho == 0
