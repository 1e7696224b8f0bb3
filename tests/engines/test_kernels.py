"""The numpy loops, the compiled loops and slow loops in plain Python give the same integers."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.engines import _kernels
from privet.schema import Numeric

FAST = pytest.mark.parametrize("fast", [False, True], ids=["numpy", "numba"])
WIDTHS = st.sampled_from([np.uint8, np.uint16])
SMALLEST = 5e-324


@st.composite
def features(draw):
    """Draw equal and unequal bins, one bin, narrow and huge bounds, denormal ones too."""
    bound = st.one_of(
        st.floats(-1e300, 1e300),
        st.integers(-100, 100).map(float),
        st.integers(-40, 40).map(lambda k: k * SMALLEST),
    )
    low, high = sorted(draw(st.tuples(bound, bound).filter(lambda pair: pair[0] != pair[1])))
    if draw(st.booleans()):
        inner = st.floats(low, high).filter(lambda x: low < x < high)
        if math.nextafter(low, high) < high:
            edges = draw(st.lists(inner, max_size=20, unique=True))
            return Numeric(low, high, edges=sorted({edge + 0.0 for edge in edges}))
    bins = draw(st.integers(1, 40))
    steps = np.arange(1, bins) / bins
    if np.any(np.diff(low + (high - low) * steps) <= 0):
        bins = 1  # the bounds are too close together for more
    return Numeric(low, high, bins=bins)


class Feature:
    """Draws this feature, then all hard numbers for it: an example by hand."""

    def __init__(self, feature):
        self.feature = feature
        self.drawn = False

    def draw(self, _):
        self.drawn = not self.drawn
        return self.feature if self.drawn else np.array(hard_numbers(self.feature))


def hard_numbers(feature):
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, SMALLEST, -SMALLEST]
    special += [feature.low, feature.high]
    for cut in feature.cuts.tolist():
        special += [cut, math.nextafter(cut, math.inf), math.nextafter(cut, -math.inf)]
    return special


@st.composite
def numbers_for(draw, feature):
    """Draw any numbers, and those that are hard: on a cut, or next to one."""
    number = st.one_of(
        st.sampled_from(hard_numbers(feature)), st.floats(), st.floats(feature.low, feature.high)
    )
    return np.array(draw(st.lists(number, max_size=30)), dtype=np.float64)


def slow_places(numbers, grid):
    return [
        len(grid) + 1 if math.isnan(x) else sum(point <= x for point in grid)
        for x in numbers.tolist()
    ]


def find(feature, grid, numbers, width, *, fast):
    """Return where numbers are on a grid, as the search has it."""
    out = np.full(len(numbers), 77, dtype=width)
    _kernels.GridSearch(grid, feature.low, feature.high).find(numbers, out, fast=fast)
    return out


@FAST
@settings(max_examples=150, deadline=None)
@given(data=st.data(), width=WIDTHS)
@example(data=Feature(Numeric(0, 10 * SMALLEST, bins=5)), width=np.uint8)
@example(data=Feature(Numeric(-3 * SMALLEST, 4 * SMALLEST, bins=7)), width=np.uint8)
@example(data=Feature(Numeric(-1e-310, 1e300, bins=9)), width=np.uint8)
@example(data=Feature(Numeric(3, 4, bins=9)), width=np.uint8)
def test_a_place_is_how_many_points_are_not_above(data, width, fast):
    feature = data.draw(features())
    numbers = data.draw(numbers_for(feature))
    found = find(feature, feature.cuts, numbers, width, fast=fast)
    assert found.tolist() == slow_places(numbers, feature.cuts.tolist())


@FAST
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_places_on_a_whole_grid(data, fast):
    """The grids that tables are encoded with: 65,000 points, few bins or many, any bounds."""
    feature = data.draw(features())
    grid = feature.grid
    chosen = data.draw(st.lists(st.integers(0, max(len(grid) - 1, 0)), max_size=10))
    points = grid[chosen if len(grid) else []]
    near = [points, np.nextafter(points, math.inf), np.nextafter(points, -math.inf)]
    numbers = np.concatenate([data.draw(numbers_for(feature)), *near])
    plain = grid.tolist()
    expected = [len(plain) + 1 if math.isnan(x) else bisect_right(plain, x) for x in numbers]
    assert find(feature, grid, numbers, np.uint16, fast=fast).tolist() == expected


@FAST
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_places_of_float32_compare_in_double_precision(data, fast):
    feature = Numeric(0, 1, bins=data.draw(st.integers(1, 40)))
    exact = data.draw(numbers_for(feature))
    with np.errstate(over="ignore"):
        numbers = exact.astype(np.float32)
    found = find(feature, feature.cuts, numbers, np.uint8, fast=fast)
    assert found.tolist() == slow_places(numbers.astype(np.float64), feature.cuts.tolist())


@FAST
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.bool_, np.float16, ">f8"])
def test_places_of_other_types_of_numbers(dtype, fast):
    feature = Numeric(0, 100, bins=7)
    numbers = np.array([0, 1, 13, 15, 99, 100, 120, 3]).astype(dtype)
    found = find(feature, feature.cuts, numbers, np.uint8, fast=fast)
    assert found.tolist() == slow_places(numbers.astype(np.float64), feature.cuts.tolist())


@FAST
def test_places_of_every_second_value_of_a_strided_column(fast):
    feature = Numeric(0, 1, bins=300)
    table = np.random.default_rng(0).uniform(-0.1, 1.1, size=(1500, 3))
    found = find(feature, feature.cuts, table[::2, 1], np.uint16, fast=fast)
    assert found.tolist() == slow_places(table[::2, 1], feature.cuts.tolist())
    assert found.max() == 299


@FAST
def test_places_among_very_unequal_points(fast):
    feature = Numeric(0, 1e9, edges=np.geomspace(1e-9, 1e8, 2_000))
    numbers = np.geomspace(1e-10, 2e9, 5_000)
    found = find(feature, feature.cuts, numbers, np.uint16, fast=fast)
    assert np.array_equal(found, np.searchsorted(feature.cuts, numbers, side="right"))


@pytest.mark.parametrize(
    "bounds",
    [(0, 1), (-3, 8), (2, 5), (-9, -2), (-1e-310, 1), (-1e300, 1e300), (0, 5e-324), (0, 1e-310)],
)
def test_infinities_are_beyond_all_points(bounds):
    """And their bucket does not hang on how a processor writes infinity times nothing."""
    feature = Numeric(*bounds, bins=1)
    search = _kernels.GridSearch(feature.grid, *bounds)
    numbers = np.array([-math.inf, math.inf, -1.7e308, 1.7e308, math.nan])
    out = np.empty(len(numbers), dtype=np.uint16)
    search.find(numbers, out, fast=True)
    size = len(feature.grid)
    assert out.tolist() == [0, size, 0, size, size + 1]
    assert 0 < search._above < math.inf
    assert 0 < search._below < math.inf


@FAST
@given(
    codes=st.lists(st.integers(0, 299), max_size=40),
    width=st.sampled_from([(np.uint16, np.uint8), (np.uint16, np.uint16)]),
)
@settings(max_examples=40, deadline=None)
def test_looking_up(codes, width, fast):
    table = (np.arange(300) // 2).astype(width[1])
    out = np.full(len(codes), 77, dtype=width[1])
    _kernels.look_up(np.array(codes, dtype=width[0]), table, out, fast=fast)
    assert out.tolist() == [code // 2 for code in codes]


@st.composite
def countings(draw):
    width = draw(WIDTHS)
    n_keys, size, rows = (
        draw(st.integers(1, 6)),
        draw(st.integers(1, 9)),
        draw(st.integers(0, 40)),
    )
    keys = draw(st.lists(st.integers(0, n_keys), min_size=rows, max_size=rows))
    code = st.integers(0, size - 1)
    columns = draw(st.lists(st.lists(code, min_size=rows, max_size=rows), min_size=1, max_size=5))
    columns = [np.array(column, dtype=width) for column in columns]
    return columns, np.array(keys, dtype=np.int32), n_keys, size


@FAST
@pytest.mark.parametrize("chunk", [2, 32_768], ids=["scattered", "dense"])
@settings(max_examples=100, deadline=None)
@given(counting=countings())
def test_counts(counting, chunk, fast):
    columns, keys, n_keys, size = counting
    expected = np.zeros((len(columns), n_keys, size), dtype=int)
    for j, column in enumerate(columns):
        for key, code in zip(keys.tolist(), column.tolist(), strict=True):
            if key < n_keys:
                expected[j, key, code] += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_CHUNK", chunk)
        counts = np.full((len(columns), n_keys + 1, size), 5, dtype=np.int32)
        _kernels.count(columns, keys, None, counts, fast=fast)
    assert np.array_equal(counts[:, :-1], expected + 5)  # it adds to what is there


@FAST
@settings(max_examples=50, deadline=None)
@given(data=st.data(), width=WIDTHS, classes=st.integers(2, 5), size=st.integers(0, 4))
def test_keys(data, width, classes, size, fast):
    records = data.draw(
        st.lists(st.tuples(st.integers(-1, size - 1), st.integers(0, classes)), max_size=30)
    )
    cells = np.array([cell for cell, _ in records], dtype=np.int32)
    labels = np.array([label for _, label in records], dtype=width)
    keys = _kernels.key(cells, labels, classes, size * classes, fast=fast)
    assert keys.dtype == np.int32
    assert keys.tolist() == [
        size * classes if cell < 0 else cell * classes + label for cell, label in records
    ]


@FAST
@settings(max_examples=100, deadline=None)
@given(data=st.data(), width=WIDTHS)
def test_routing(data, width, fast):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    feature_of = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 20))
    codes = np.array(
        [data.draw(st.lists(st.integers(0, s - 1), min_size=rows, max_size=rows)) for s in sizes],
        dtype=width,
    ).reshape(len(sizes), rows)
    cells = data.draw(st.lists(st.integers(-1, len(feature_of) - 1), min_size=rows, max_size=rows))
    offset_of = np.cumsum([0, *(sizes[j] for j in feature_of)])
    places = int(offset_of[-1])
    child_of = np.array(
        data.draw(st.lists(st.integers(0, 50), min_size=places, max_size=places)), dtype=np.int32
    )
    children = np.full(rows, 99, dtype=np.int32)
    _kernels.route(
        np.array(cells, dtype=np.int32),
        codes,
        np.array(feature_of, dtype=np.int32),
        offset_of[:-1],
        child_of,
        children,
        fast=fast,
    )
    expected = [
        -1 if cell < 0 else child_of[offset_of[cell] + codes[feature_of[cell], i]]
        for i, cell in enumerate(cells)
    ]
    assert children.tolist() == expected


def test_only_large_tables_are_compiled():
    assert not _kernels.compiled(_kernels.COMPILE_FROM - 1)
    assert _kernels.compiled(_kernels.COMPILE_FROM)


@FAST
@settings(max_examples=60, deadline=None)
@given(data=st.data(), width=WIDTHS)
def test_sums_at_codes_and_by_codes(data, width, fast):
    """Fractions too: they are added feature after feature, hence to the last bit the same."""
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 12))
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    codes = np.array([seed.integers(0, size, rows) for size in sizes], dtype=width)
    chosen = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(0, len(sizes)))]
    tables = [(j, seed.normal(size=sizes[j])) for j in chosen]
    start = data.draw(st.integers(0, rows))
    part = slice(start, data.draw(st.integers(start, rows)))
    mine = range(part.start, part.stop)

    expected = []
    for i in mine:
        total = 0.0
        for j, table in tables:
            total += float(table[codes[j, i]])
        expected.append(total)
    found = _kernels.CodeTables.of(tables, np.float64).sums(codes, part, fast=fast)
    assert found.tolist() == expected

    weights = seed.integers(-(2**17), 2**17, len(mine))
    totals = _kernels.CodeTables.of([(j, np.zeros(sizes[j], int)) for j in chosen], np.int64)
    totals.add(codes, part, weights, fast=fast)
    by_hand = [
        sum(int(w) for i, w in zip(mine, weights, strict=True) if codes[j, i] == code)
        for j in chosen
        for code in range(sizes[j])
    ]
    assert totals.values.tolist() == by_hand
