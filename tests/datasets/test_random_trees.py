"""Friedman & Schuster's random trees and records follow the laws that the paper states.

Statistical checks reject a right generator with probability 1e-7 each (``ALARM``), and each kind is
shown to reject a law that is off by 30 %. Seeds are fixed, so a failure is one for a reason.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binomtest, chi2_contingency, chisquare

from privet.datasets import PATIENTS, make_random_tree, make_random_tree_data
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Node, Tree

ALARM = 1e-7
ROWS = 40_000


def fits(counts, shares=None):
    """Tell whether counts look like draws with these shares (equal ones if not given)."""
    counts = np.asarray(counts)
    shares = np.ones(len(counts)) if shares is None else np.asarray(shares)
    possible = shares > 0
    assert not counts[~possible].any()
    if possible.sum() == 1:
        return True
    expected = shares[possible] / shares.sum() * counts.sum()
    return chisquare(counts[possible], expected).pvalue > ALARM


def fits_rate(found, trials, rate):
    return binomtest(int(found), int(trials), rate).pvalue > ALARM


def paths(tree, place=0, above=()):
    """Yield every leaf with the (test, child) pairs above it."""
    node = tree.nodes[place]
    if node.test is None:
        yield node, above
    for child, below in enumerate(node.children):
        yield from paths(tree, below, (*above, (node.test, child)))


def ranges(path):
    """Yield each cut of a path with the range that the cuts above leave for it."""
    left = {}
    for test, child in path:
        if isinstance(test, Cut):
            low, high = left.get(test.feature, (0.0, 100.0))
            (edge,) = test.edges
            yield edge, low, high
            left[test.feature] = (edge, high) if child else (low, edge)


def volume(path, n_values):
    """Return the share of uniform records on a path."""
    nominal = sum(not isinstance(test, Cut) for test, _ in path)
    left = {}
    for test, child in path:
        if isinstance(test, Cut):
            low, high = left.get(test.feature, (0.0, 100.0))
            left[test.feature] = (test.edges[0], high) if child else (low, test.edges[0])
    return n_values**-nominal * np.prod([(high - low) / 100 for low, high in left.values()])


@pytest.mark.parametrize(
    ("n_values", "n_classes", "n_numeric"), [(2, 2, 0), (3, 3, 0), (5, 2, 0), (2, 2, 3), (3, 4, 10)]
)
class TestRecords:
    @pytest.fixture
    def tree(self, n_values, n_classes, n_numeric):
        return make_random_tree(
            5, n_values=n_values, n_classes=n_classes, n_numeric=n_numeric, seed=11
        )

    def test_values_are_uniform(self, tree, n_values):
        for p_noise in (0.0, 0.2):
            data = make_random_tree_data(tree, ROWS, p_noise=p_noise, seed=1)
            for name, feature in tree.schema.features.items():
                if isinstance(feature, Numeric):
                    assert data[name].min() >= 0
                    assert data[name].max() <= 100
                    counts = np.histogram(data[name], bins=20, range=(0, 100))[0]
                else:
                    counts = np.bincount(data[name], minlength=n_values)
                assert fits(counts)
                wrong = np.where(np.arange(len(counts)) % 2, 1.3, 1.0)
                assert not fits(counts, wrong)

    def test_attributes_are_independent(self, tree):
        data = make_random_tree_data(tree, ROWS, p_noise=0.1, seed=2)
        odd = [data[name].astype(int) % 2 for name in tree.schema.names]
        for a, b in pairwise(odd):
            table = np.bincount(2 * a + b, minlength=4).reshape(2, 2)
            assert chi2_contingency(table).pvalue > ALARM

    def test_classes_have_the_volumes_of_their_leaves(self, tree, n_values, n_classes):
        shares = np.zeros(n_classes)
        for leaf, path in paths(tree):
            shares += volume(path, n_values) * np.array(leaf.value)
        assert shares.sum() == pytest.approx(1)
        clean = make_random_tree_data(tree, ROWS, seed=3)["class"]
        assert fits(np.bincount(clean, minlength=n_classes), shares)
        noisy = make_random_tree_data(tree, ROWS, p_noise=0.2, seed=3)["class"]
        assert fits(np.bincount(noisy, minlength=n_classes), 0.8 * shares + 0.2 / n_classes)

    def test_without_noise_the_tree_is_always_right(self, tree):
        data = make_random_tree_data(tree, 2_000, seed=4)
        answers = tree.predict_value(pa.table(data)).argmax(axis=1)
        assert_array_equal(answers, data["class"])

    @pytest.mark.parametrize("p_noise", [0.1, 0.2, 1.0])
    def test_noise_replaces_values_at_its_rate(self, tree, n_values, n_classes, p_noise):
        clean = make_random_tree_data(tree, ROWS, seed=5)
        noisy = make_random_tree_data(tree, ROWS, p_noise=p_noise, seed=5)
        numbers = [name for name in clean if name.startswith("numeric")]
        for name in clean:
            repeats = 1 / (n_classes if name == "class" else n_values)
            rate = p_noise if name in numbers else p_noise * (1 - repeats)
            changed = (clean[name] != noisy[name]).sum()
            if rate == 1:
                assert changed == ROWS
            else:
                assert fits_rate(changed, ROWS, rate)
                assert not fits_rate(changed, ROWS, 0.7 * rate)


def same(a, b):
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


def test_seeds_decide_everything():
    trees = [make_random_tree(4, n_numeric=2, seed=seed) for seed in (0, 0, 1)]
    assert trees[0] == trees[1] != trees[2]
    drawn = [make_random_tree_data(trees[0], 500, p_noise=0.1, seed=seed) for seed in (0, 0, 1)]
    assert same(drawn[0], drawn[1])
    assert not same(drawn[0], drawn[2])
    # The records do not depend on the tree, only their classes do.
    other = make_random_tree_data(trees[2], 500, p_noise=0.1, seed=0)
    assert all(np.array_equal(drawn[0][name], other[name]) for name in trees[0].schema.names)


def test_trees_keep_to_the_structure_of_the_paper():
    ends, open_nodes, labels = 0, 0, Counter()
    for seed in range(60):
        tree = make_random_tree(5, n_values=3, n_classes=3, seed=seed)
        assert tree.depth <= 5
        for leaf, path in paths(tree):
            features = [test.feature for test, _ in path]
            assert len(set(features)) == len(features)
            assert 2 <= len(path) <= 5
            assert all(test.n_children == 3 for test, _ in path)
            assert sorted(leaf.value) == [0.0, 0.0, 1.0]
            labels[leaf.value] += 1
            ends += len(path) < 5
        depths = {0: 0}
        for place, node in enumerate(tree.nodes):
            depths |= dict.fromkeys(node.children, depths[place] + 1)
        open_nodes += sum(2 <= depth < 5 for depth in depths.values())
    assert fits_rate(ends, open_nodes, 0.3)
    assert not fits_rate(ends, open_nodes, 0.3 * 1.3)
    assert fits(list(labels.values()))


def test_attributes_of_tests_are_uniform_among_those_that_are_left():
    trees = [make_random_tree(2, n_attributes=5, n_numeric=2, seed=seed) for seed in range(400)]
    names = trees[0].schema.names
    roots = Counter(tree.nodes[0].test.feature for tree in trees)
    assert fits([roots[name] for name in names])
    assert not fits([roots[name] for name in names], [1.0, 1.0, 1.0, 2.0, 2.0])
    below = Counter(
        tree.nodes[1].test.feature for tree in trees if tree.nodes[0].test.feature == names[0]
    )
    assert fits([below[name] for name in names], [0, 1, 1, 1, 1])


def test_a_tree_ends_where_no_attribute_is_left():
    tree = make_random_tree(9, n_values=4, n_attributes=2, p_leaf=0.0)
    assert (tree.depth, tree.n_leaves) == (2, 16)
    assert make_random_tree(4, p_leaf=0.0).n_leaves == 16
    assert make_random_tree(4, p_leaf=1.0).depth == 2


def test_numbers_are_cut_again_within_what_is_left():
    reused = 0
    for seed in range(10):
        tree = make_random_tree(6, n_attributes=3, n_numeric=2, p_leaf=0.0, seed=seed)
        for _, path in paths(tree):
            cuts = list(ranges(path))
            assert all(low < edge < high for edge, low, high in cuts)
            reused += any((low, high) != (0.0, 100.0) for _, low, high in cuts)
    assert reused
    firsts = [
        make_random_tree(2, n_attributes=1, n_numeric=1, seed=seed).nodes[0].test.edges[0]
        for seed in range(400)
    ]
    counts = np.histogram(firsts, bins=4, range=(0, 100))[0]
    assert fits(counts)
    assert not fits(counts, [3, 1, 1, 3])


class TestSingleSplit:
    @pytest.mark.parametrize(("n_values", "n_classes"), [(2, 2), (3, 3), (2, 5), (5, 2)])
    def test_leaves_take_different_classes(self, n_values, n_classes):
        orders = set()
        for seed in range(20):
            tree = make_random_tree(1, n_values=n_values, n_classes=n_classes, seed=seed)
            assert (tree.depth, tree.n_leaves) == (1, n_values)
            answers = tuple(leaf.value.index(1.0) for leaf, _ in paths(tree))
            assert len(set(answers)) == min(n_values, n_classes)
            orders.add(answers)
        assert len(orders) > 1

    def test_numeric_split_is_at_35(self):
        used = set()
        for seed in range(20):
            tree = make_random_tree(1, n_numeric=3, seed=seed)
            test = tree.nodes[0].test
            assert isinstance(test, Cut)
            assert test.edges == (35.0,)
            used.add(test.feature)
        assert used == {"numeric_1", "numeric_2", "numeric_3"}
        data = make_random_tree_data(tree, ROWS, seed=1)
        above = data[test.feature] >= 35
        assert_array_equal(
            data["class"], np.where(above, *(tree.nodes[j].value.index(1.0) for j in (2, 1)))
        )
        assert fits_rate(above.sum(), ROWS, 0.65)

    def test_all_attributes_are_drawn(self):
        used = Counter(make_random_tree(1, seed=seed).nodes[0].test.feature for seed in range(400))
        assert len(used) == 10
        assert fits(list(used.values()))


def test_the_schema_says_what_the_columns_hold():
    tree = make_random_tree(3, n_values=3, n_numeric=4, n_classes=5)
    schema = tree.schema
    assert schema.names == (
        *(f"nominal_{j}" for j in range(1, 7)),
        *(f"numeric_{j}" for j in range(1, 5)),
    )
    assert schema.features["nominal_1"] == Categorical([0, 1, 2])
    assert schema.features["numeric_1"] == Numeric(0, 100)
    assert schema.classes == (0, 1, 2, 3, 4)
    data = make_random_tree_data(tree, 10)
    assert list(data) == [*schema.names, "class"]
    assert make_random_tree_data(tree, 0)["class"].shape == (0,)


def test_any_classification_tree_will_do():
    leaf = Tree(PATIENTS, (Node(value=(0.4, 0.6)),))
    data = make_random_tree_data(leaf, 50)
    assert set(data["readmitted"]) == {"yes"}
    assert set(data["sex"]) == {"female", "male"}
    assert data["systolic_pressure"].min() >= 80
    assert_array_equal(leaf.predict_value(pa.table(data)), [[0.4, 0.6]] * 50)
    mean = Tree(Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1)), (Node(value=(0.5,)),))
    with pytest.raises(ValueError, match="classifier"):
        make_random_tree_data(mean, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 0},
        {"n_values": 1},
        {"n_classes": 1},
        {"n_attributes": 0},
        {"n_numeric": -1},
        {"n_numeric": 11},
        {"p_leaf": 1.5},
    ],
)
def test_trees_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_random_tree(**{"depth": 2, **wrong})


def test_records_that_cannot_be_are_refused():
    tree = make_random_tree(1)
    with pytest.raises(ValueError, match="rows"):
        make_random_tree_data(tree, -1)
    with pytest.raises(ValueError, match="p_noise"):
        make_random_tree_data(tree, 1, p_noise=-0.1)
