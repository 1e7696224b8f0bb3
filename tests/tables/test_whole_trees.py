"""The law of drawn trees is the one of docs/proofs/whole-trees.md, exactly.

The audit follows the draw along every branch of its random choices and so gives the whole output
distribution, which is compared with plain enumeration of all labelled trees.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.engines import widths
from privet.errors import SchemaError
from privet.privacy import SecureNoise, SeededNoise, WholeTree
from privet.tables import whole_trees
from privet.tables.whole_trees import (
    LEAST_STOP,
    MOST_STOP,
    Menu,
    _Drawing,
    _Sums,
    check_sizes,
    draw_tree,
)

from ..repeated import some_of  # noqa: TID252
from .enumeration import enumerated, gathered, law_of, offered


def make_table(seed, rows, sizes, classes, *, weighted=False):
    generator = np.random.default_rng(seed)
    # Every second feature leaves its last code empty: merged and idle tests.
    codes = np.array(
        [generator.integers(0, max(1, size - j % 2), rows) for j, size in enumerate(sizes)],
        dtype=np.uint8,
    ).reshape(len(sizes), rows)
    labels = generator.integers(0, classes, rows).astype(np.uint8)
    weights = generator.integers(0, 3, rows) if weighted else np.ones(rows, dtype=np.int64)
    return codes, labels, weights


N, C = True, False
CASES = [
    # sizes, numeric, upper, classes, depth, rows
    ((3, 3), (N, N), (0, 1), 2, 1, 8),
    ((3, 2), (N, C), (0, 1), 2, 1, 8),
    ((3, 3), (N, C), (0, 1), 3, 1, 8),
    ((4,), (N,), (0,), 4, 1, 9),
    ((2, 2), (N, N), (0, 1), 2, 2, 6),
    ((3, 2), (N, C), (0, 1), 2, 2, 6),
    ((3,), (N,), (0,), 3, 2, 6),
    ((3, 2), (N, C), (0, 1), 2, 2, 0),
    ((2, 2), (N, C), (0,), 2, 2, 6),
    ((1, 3), (N, N), (0, 1), 2, 2, 6),
]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("weighted", "stop"), [(False, 0.125), (True, 0.5), (True, LEAST_STOP)])
@pytest.mark.parametrize("case", CASES)
def test_every_tree_has_exactly_its_probability(case, weighted, stop, merge):
    sizes, numeric, upper, classes, depth, rows = case
    codes, labels, weights = make_table(len(sizes) + rows, rows, sizes, classes, weighted=weighted)
    menu = Menu(numeric, sizes, upper, stop)
    rate = 0.7
    drawn = law_of(
        lambda noise: draw_tree(
            gathered(codes, labels, weights, sizes),
            menu,
            noise,
            classes=classes,
            depth=depth,
            rate=rate,
            merge=merge,
            workers=1,
        )
    )
    expected = enumerated(codes, labels, weights, menu, classes, depth, rate)
    assert set(drawn) == set(expected)
    assert sum(drawn.values()) == pytest.approx(1, abs=1e-9)
    for tree, probability in expected.items():
        assert math.log(drawn[tree]) == pytest.approx(math.log(probability), abs=1e-9)


def partition(rows, depth, tables, menu, classes, rate):
    """Return the sum of the weights of all trees of at most a depth, by plain recursion."""
    codes, labels, weights = tables

    def leaf(chosen):
        sums = [weights[chosen & (labels == k)].sum() for k in range(classes)]
        return sum(math.exp(rate * n) for n in sums) / classes

    if depth == 0:
        return leaf(rows)
    total = menu.stop * leaf(rows)
    features = range(len(menu.sizes)) if depth == 1 else menu.upper
    for feature in features:
        share = (1 - menu.stop) / len(features)
        if depth == 1 and not menu.numeric[feature]:
            share /= 2
            product = share
            for code in range(menu.sizes[feature]):
                product *= leaf(rows & (codes[feature] == code))
            total += product
        tests = offered(menu, feature)
        for test in tests:
            passing = np.array(test)[codes[feature]].astype(bool)
            total += (
                share
                / len(tests)
                * partition(rows & passing, depth - 1, tables, menu, classes, rate)
                * partition(rows & ~passing, depth - 1, tables, menu, classes, rate)
            )
    return total


@pytest.mark.parametrize(("merge", "stop"), [(True, 0.125), (False, 0.5), (True, LEAST_STOP)])
@pytest.mark.parametrize(
    ("sizes", "numeric", "upper", "classes"),
    [
        ((3, 3), (N, N), (0, 1), 2),
        ((3, 2, 3), (N, C, N), (0, 1, 2), 2),
        ((3, 3), (C, N), (0, 1), 3),
        ((3, 2, 2), (N, C, N), (0, 2), 2),
        ((3, 2, 2), (C, C, N), (1,), 2),
    ],
)
def test_the_root_of_a_tree_of_depth_three_has_exactly_its_law(
    sizes, numeric, upper, classes, merge, stop
):
    rows, rate = 9, 0.6
    tables = make_table(3, rows, sizes, classes, weighted=True)
    menu = Menu(numeric, sizes, upper, stop)
    seen = {}

    class FirstChoice(Exception):
        pass

    class Watcher:
        def exponential(self, scores, scale):
            logs = (scores - scores.max()) / scale
            seen["law"] = np.exp(logs) / np.exp(logs).sum()
            raise FirstChoice

    with pytest.raises(FirstChoice):
        draw_tree(
            gathered(*tables, sizes),
            menu,
            Watcher(),
            classes=classes,
            depth=3,
            rate=rate,
            merge=merge,
            workers=2,
        )
    codes = tables[0]
    everyone = np.ones(rows, dtype=bool)
    total = partition(everyone, 3, tables, menu, classes, rate)
    merged, idle = {}, 0.0
    for feature in upper:
        tests = offered(menu, feature)
        for test in tests:
            passing = np.array(test)[codes[feature]].astype(bool)
            weight = (
                (1 - stop)
                / len(upper)
                / len(tests)
                * partition(everyone & passing, 2, tables, menu, classes, rate)
                * partition(everyone & ~passing, 2, tables, menu, classes, rate)
            )
            empty = test.index(1) if not numeric[feature] and 1 in test else None
            divides = passing.any() and not passing.all()
            if merge and (not divides if numeric[feature] else empty not in codes[feature]):
                idle += weight
            elif merge and numeric[feature]:
                key = (feature, passing.tobytes())
                merged[key] = merged.get(key, 0.0) + weight
            else:
                merged[feature, test] = weight
    leaf = stop * partition(everyone, 0, tables, menu, classes, rate)
    expected = np.array([*merged.values(), leaf, *([idle] if idle else [])]) / total
    assert expected.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(seen["law"], expected, atol=1e-9)


@pytest.mark.parametrize("source", [SeededNoise(1), SecureNoise()], ids=["seeded", "secure"])
def test_drawn_trees_follow_the_law_and_a_wrong_rate_is_seen(source):
    """Chi-square with a false-alarm rate of 1e-6; the same test rejects the rate times 1.3."""
    menu = Menu((N, C), (3, 2), (0, 1), MOST_STOP)
    codes, labels, weights = make_table(5, 30, menu.sizes, 2)
    rate = 0.4
    draws = [
        draw_tree(
            gathered(codes, labels, weights, menu.sizes),
            menu,
            source,
            classes=2,
            depth=1,
            rate=rate,
            merge=True,
            workers=1,
        )
        for _ in range(3_000)
    ]

    def p_value(at):
        law = enumerated(codes, labels, weights, menu, 2, 1, at)
        likely = [tree for tree, p in law.items() if p * len(draws) >= 5]
        counts = [draws.count(tree) for tree in likely]
        expected = [law[tree] * len(draws) for tree in likely]
        if len(likely) < len(law):
            counts.append(len(draws) - sum(counts))
            expected.append(len(draws) - sum(expected))
        return stats.chisquare(counts, expected).pvalue

    assert p_value(rate) > 1e-6
    assert p_value(1.3 * rate) < 1e-6
    assert p_value(0.7 * rate) < 1e-6


@pytest.mark.parametrize(
    ("classes", "depth", "most"),
    some_of(
        [(2, 1, 2), (3, 1, 2), (2, 2, 1), (2, 2, 2)],
        lambda classes, depth, most: depth + most < 4,
    ),
)
def test_no_neighbour_is_told_apart_by_more_than_epsilon(classes, depth, most):
    """Tables with few records over a small universe, and any record added to them."""
    features = ((N, C), (2, 2), (0, 1)) if depth == 1 else ((N,), (3,), (0,))
    menu = Menu(*features, MOST_STOP)
    mechanism = WholeTree(0.5)
    universe = list(itertools.product(*map(range, menu.sizes), range(classes)))

    def law(records):
        codes = np.array([r[:-1] for r in records], dtype=np.uint8).reshape(-1, len(menu.sizes)).T
        labels = np.array([r[-1] for r in records], dtype=np.uint8)
        source = gathered(codes, labels, np.ones(len(records), dtype=np.int64), menu.sizes)
        return law_of(
            lambda noise: draw_tree(
                source,
                menu,
                noise,
                classes=classes,
                depth=depth,
                rate=mechanism.rate,
                merge=True,
                workers=1,
            )
        )

    worst = 0.0
    for size in range(most + 1):
        for records in itertools.combinations_with_replacement(universe[:4], size):
            before = law(records)
            for extra in universe:
                after = law([*records, extra])
                assert set(before) == set(after)
                worst = max(worst, *(abs(math.log(after[tree] / before[tree])) for tree in before))
    assert 0.1 < worst <= 0.5


def test_the_rate_leaves_room_for_rounding():
    for epsilon in (0.001, 0.1, 1, 10):
        mechanism = WholeTree(epsilon)
        assert 0.99 * epsilon < mechanism.rate < epsilon
        slack = mechanism.rate * (1 + 2**-12) + 2**-20
        assert slack <= epsilon


# Numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "categories"), [(2, 2**16), (3, 2**16), (32, 2**16)])
@pytest.mark.parametrize("rate", [1e-3, 0.7, 40.0])
def test_the_logarithm_of_a_long_lookup_is_within_its_bound(classes, categories, rate):
    """Weights of a depth-1 draw on one feature against arithmetic with 50 digits.

    Every bound is that of item 2 and, for what grows with the weights, of item 3.
    """
    generator = np.random.default_rng(classes)
    kinds = generator.integers(0, 20, (40, classes))  # how many records of each class
    kind = generator.integers(0, len(kinds), categories)
    counts = kinds[kind]
    labels = np.tile(np.arange(classes), categories)
    codes = np.repeat(np.arange(categories), classes).astype(np.uint16)[None]
    drawing = _Drawing(
        gathered(codes, labels, counts.ravel(), (categories,)),
        Menu((False,), (categories,), (0,), MOST_STOP),
        classes,
        1,
        rate,
        False,
        SeededNoise(0),
        1,
    )
    sums = _Sums(drawing, drawing.whole)
    (found,) = drawing._log_lookups(sums)
    with localcontext(prec=50):
        unit = Decimal(drawing.unit)
        means = []
        for line in kinds.tolist():
            leaves = [unit * n for n in line]
            if classes == 2:  # relative to exp(unit x records)
                leaves = [unit * (line[1] - line[0]), unit * (line[0] - line[1])]
            means.append((sum(leaf.exp() for leaf in leaves) / classes).ln())
        times = np.bincount(kind, minlength=len(kinds)).tolist()
        truth = Decimal(drawing.looks[0]).ln() + sum(
            n * mean for n, mean in zip(times, means, strict=True)
        )
        # Added to tests that do not matter next to it, or that it does not matter next to.
        tests = Decimal(float(sums.loops.log_depth_1(
            sums.singles, sums.total, *sums._common()[:2], np.zeros(0), np.zeros(0, np.int64),
            np.zeros(0, np.int64), *sums._common()[5:],
        )))  # fmt: skip
        both = max(tests, truth) + (1 + (-abs(tests - truth)).exp()).ln()
        bound = Decimal(1.4 * 2**-31) + 6 * unit * int(counts.sum()) * Decimal(2**-53)
        assert abs(Decimal(float(found)) - truth) < bound
        whole = float(sums.loops.log_depth_1(sums.singles, sums.total, *sums._common()))
        assert abs(Decimal(whole) - both) < bound


@pytest.mark.parametrize("largest", [0.1, 20.0, 344.0, 600.0])
@pytest.mark.parametrize("merge", [True, False])
def test_products_of_exponentials_weigh_as_differences_do(largest, merge, monkeypatch):
    """Two loops, one law; which pairs of tests are weighed by products depends on exponents."""
    sizes, numeric, upper = (6, 5, 4, 7), (N, C, N, C), (0, 1, 3)
    codes, labels, weights = make_table(7, 400, sizes, 2, weighted=True)
    weights = weights * np.where(codes[1] == 1, 40, 1)
    found, used = [], []
    for most in (whole_trees.MOST_PRODUCTS, 0):
        monkeypatch.setattr(whole_trees, "MOST_PRODUCTS", most)
        rate = 2 * largest / farthest(codes, labels, weights, numeric, sizes, upper)
        drawing = _Drawing(
            gathered(codes, labels, weights, sizes),
            Menu(numeric, sizes, upper, MOST_STOP),
            2,
            3,
            rate,
            merge,
            SeededNoise(0),
            1,
        )
        sums = _Sums(drawing, drawing.whole)
        pairs = sums._pairs()
        used.append(sums._powers(*sums._signed(pairs))[-1])
        found.append(sums._grandchildren(pairs, sums._common()))
    assert not used[1].any()
    assert used[0].all() == (largest < 345)
    # The bound of the proof is 2^-30; what is seen is the rounding of exponents below 1000.
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-11)


def farthest(codes, labels, weights, numeric, sizes, upper):
    """Return the largest abs(2 d - total) over the sides of upper tests, by plain sums."""
    signed = np.where(labels == 1, weights, -weights)
    menu = Menu(numeric, sizes, upper, MOST_STOP)
    tests = [
        np.array(test)[codes[feature]] == 1
        for feature in range(len(sizes))
        for test in offered(menu, feature)
    ]
    above = [
        np.array(test)[codes[feature]] == 1 for feature in upper for test in offered(menu, feature)
    ]
    sides = [side for c in above for side in (c, ~c)]
    return max(
        max(abs(2 * signed[side & t].sum() - signed[side].sum()), abs(signed[side].sum()))
        for side in sides
        for t in tests
    )


@pytest.mark.parametrize(("rows", "classes"), [(4_000, 2), (4_000, 3)])
def test_sums_have_64_bits_where_32_may_not_be_enough(rows, classes, monkeypatch):
    menu = Menu((N, C, N, N), (5, 3, 4, 3), (0, 1, 3), MOST_STOP)
    tables = make_table(7, rows, menu.sizes, classes, weighted=True)
    mass = int(tables[2].sum())
    sums = []
    for limit, wide in ((4 * mass + 1, False), (4 * mass, True)):
        monkeypatch.setattr(widths, "WIDE_FROM", limit)
        source = gathered(*tables, menu.sizes)
        drawing = _Drawing(source, menu, classes, 3, 0.05, True, SeededNoise(3), 2)
        whole = drawing.whole
        sums.append([whole.total, whole.singles, whole.pairs, whole.deeper.planes(0)[-3]])
        assert all(found.dtype == (np.int64 if wide else np.int32) for found in sums[-1])
        assert len(sums[-1][-1])
    assert all(np.array_equal(one, other) for one, other in zip(*sums, strict=True))


def test_more_tests_than_the_bounds_allow_are_refused_before_anything_is_charged(monkeypatch):
    monkeypatch.setattr(whole_trees, "MOST_TESTS", 30)
    features = {"a": Categorical(list("uvw")), "x": Numeric(0, 1, bins=8)}  # 4 + 9 codes
    for classes, fits in ((2, True), (3, False)):
        schema = Schema(features, "y", classes=list(range(classes)))
        table = PrivateTable(pd.DataFrame({"a": ["u"], "x": [0.5]}), [0], schema, Budget(1))
        if fits:
            table.root().draw_trees(1, Fraction(1))
            continue
        with pytest.raises(SchemaError, match="too many categories"):
            table.root().draw_trees(1, Fraction(1))
        assert table.ledger.entries == ()
        scores = table.start_scores((0.0,) * classes)
        with pytest.raises(SchemaError, match="too many categories"):
            table.root().draw_trees(1, Fraction(1), scores=scores)
        assert table.ledger.total.epsilon == 0


def test_the_limit_is_that_of_the_proof():
    check_sizes([2**16] * 32, 2)
    check_sizes([2**16], 32)
    for sizes, classes in (([2**16] * 32 + [1], 2), ([2**16], 33), ([2**20], 3)):
        with pytest.raises(SchemaError, match="too many categories"):
            check_sizes(sizes, classes)
