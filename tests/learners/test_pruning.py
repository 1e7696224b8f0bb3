"""Pruning by noisy counts: C4.5's arithmetic, examples by hand, and laws on random trees."""

import itertools
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta

from privet.learners._pruning import (
    TOLERANCE,
    _Pruning,
    _published,
    _read,
    _Records,
    _Space,
    corrected_counts,
    extra_errors,
    prune,
)
from privet.reading import feature_matrix
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

FLAGS = Schema(
    {name: Categorical([0, 1]) for name in "abcd"}, target="class", classes=["no", "yes"]
)
#: Quinlan's program finds the normal deviate of CF = 25 % by linear interpolation between 0.84
#: (20 %) and 0.25 (40 %); J48 uses the true one, 0.6745. This CF makes J48's deviate Quinlan's.
QUINLAN = 1 - NormalDist().cdf(0.84 + (0.25 - 0.84) * 0.25)


def limit(errors, records, confidence=0.25):
    return (errors + extra_errors(records, errors, confidence)) / records


class TestErrors:
    @pytest.mark.parametrize(
        ("errors", "records", "expected"), [(0, 6, 0.206), (0, 9, 0.143), (0, 1, 0.750)]
    )
    def test_quinlan_no_errors(self, errors, records, expected):
        assert round(limit(errors, records), 3) == expected

    def test_quinlan_one_error(self):
        """The book's U(1, 16) = 0.157 and 168 U(1, 168) = 2.610 need the book's deviate."""
        assert round(limit(1, 16, QUINLAN), 3) == 0.157
        assert round(168 * limit(1, 168, QUINLAN), 2) == 2.61
        assert round(limit(1, 16), 3) == 0.155
        assert round(168 * limit(1, 168), 2) == 2.57

    @pytest.mark.parametrize("confidence", [0.05, 0.1, 0.25, 0.5])
    def test_limits_are_close_to_the_exact_binomial_ones(self, confidence):
        for records in (10, 30, 100, 1000):
            for errors in {0, 1, 2, records // 4, records // 2}:
                exact = beta.ppf(1 - confidence, errors + 1, records - errors)
                assert limit(errors, records, confidence) == pytest.approx(exact, abs=0.03)

    @given(st.floats(1, 1e6), st.floats(0, 1), st.floats(1e-6, 0.5), st.floats(1e-6, 0.5))
    def test_extra_errors_are_positive_fewer_than_the_rest_and_grow_with_pessimism(
        self, records, rate, low, high
    ):
        low, high = sorted((low, high))
        errors = rate * records
        extra = extra_errors(records, errors, low)
        assert -1e-6 <= extra_errors(records, errors, high) <= extra + 1e-6
        assert extra <= records - errors + 1e-6

    def test_parts_of_an_error_are_interpolated(self):
        between = extra_errors(20, 0.3, 0.25)
        assert between == pytest.approx(
            0.7 * extra_errors(20, 0, 0.25) + 0.3 * extra_errors(20, 1, 0.25)
        )

    def test_where_the_correction_exceeds_the_leaf_all_is_wrong(self):
        assert extra_errors(5, 4.6, 0.25) == pytest.approx(0.4)
        assert extra_errors(1, 1, 0.25) == 0

    def test_half_and_above(self):
        assert extra_errors(10, 3, 0.5) == pytest.approx(0.5)  # the continuity correction alone
        assert extra_errors(10, 3, 0.51) == 0


def leaf(*class_counts, **released):
    total = sum(max(count, 1) for count in class_counts)
    value = tuple(max(count, 1) / total for count in class_counts)
    return Node(value=value, released={**released, "class_counts": class_counts})


def by_value(feature, children, values=2, **released):
    return Node(Grouping(feature, tuple(range(values)), 0), children, released=released)


class TestExamples:
    def test_quinlan_votes(self):
        """C4.5, chapter 4: 3.273 errors below, 2.512 as a leaf; then 4.642 and 2.610."""
        votes = Schema(
            {name: Categorical(["n", "y", "u"]) for name in ("budget", "education")},
            target="party",
            classes=["democrat", "republican"],
        )
        tree = Tree(
            votes,
            (
                by_value("budget", (1, 2, 3), 3, count=168),
                by_value("education", (4, 5, 6), 3, count=16),
                leaf(151, 0, count=151),
                leaf(1, 0, count=1),
                leaf(6, 0, count=6),
                leaf(9, 0, count=9),
                leaf(0, 1, count=1),
            ),
        )
        pruning = _Pruning(_Space.of(tree), QUINLAN, raising=True)
        whole = _read(tree, pruning.space)
        inner = whole.children[0]
        assert round(sum(map(pruning.errors, inner.children)), 1) == 3.3
        assert round(pruning.errors(pruning.of(inner)), 2) == 2.51
        assert pruning.of(inner).test is None
        for confidence in (0.25, QUINLAN):
            pruned = prune(tree, confidence)
            assert len(pruned.nodes) == 1
            assert dict(pruned.nodes[0].released) == {"count": 168}
            assert pruned.nodes[0].value == pytest.approx((167 / 168, 1 / 168), abs=0.01)

    def test_top_down_and_bottom_up(self):
        """Algorithm 3 by hand: 100 is shared as 60 : 30, and 20 : -4 of 66.7 as 1 : 0."""
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2), count=100),
                by_value("b", (3, 4), count=60),
                leaf(10, 40, count=30),
                leaf(3, 1, count=20),
                leaf(5, 5, count=-4),
            ),
        )
        assert_allclose(
            corrected_counts(tree),
            [
                [50 + 20 / 3, 50 / 3 + 80 / 3],
                [50, 50 / 3],
                [20 / 3, 80 / 3],
                [50, 50 / 3],
                [0, 0],
            ],
        )

    def test_where_nothing_is_positive_all_share_equally(self):
        tree = Tree(FLAGS, (by_value("a", (1, 2), count=10), leaf(-3, -1), leaf(0, 0, count=-2)))
        assert_allclose(corrected_counts(tree), [[5, 5], [2.5, 2.5], [2.5, 2.5]])
        empty = Tree(FLAGS, (by_value("a", (1, 2), count=-10), leaf(9, 1), leaf(2, 7)))
        assert_allclose(corrected_counts(empty), 0)
        assert prune(empty).nodes[0].value == (0.5, 0.5)

    def test_counts_that_were_not_released_are_sums(self):
        tree = Tree(FLAGS, (by_value("a", (1, 2)), leaf(9, 1, count=20), leaf(-5, 7)))
        assert_allclose(corrected_counts(tree), [[18, 4], [18, 2], [0, 2]])

    def test_splits_that_matter_stay_even_if_each_alone_does_not(self):
        """An exclusive or: raising either branch would put its records under the wrong labels."""
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2), count=401),
                by_value("b", (3, 4), count=201),
                by_value("b", (5, 6), count=200),
                leaf(101, 0, count=101),
                leaf(0, 100, count=100),
                leaf(0, 100, count=100),
                leaf(100, 0, count=100),
            ),
        )
        assert prune(tree) == tree
        assert prune(tree, 1.0) == tree

    def test_errors_at_face_value_remove_only_what_makes_no_difference(self):
        idle, useful = (leaf(90, 10), leaf(51, 49)), (leaf(90, 10), leaf(49, 51))
        for ends, n_leaves in ((idle, 1), (useful, 2)):
            tree = Tree(FLAGS, (by_value("a", (1, 2)), *ends))
            assert prune(tree, 1.0).n_leaves == n_leaves

    def test_branch_that_makes_its_parent_idle_is_raised(self):
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2), count=397),
                by_value("b", (3, 4), count=205),
                by_value("b", (5, 6), count=195),
                leaf(98, 4, count=102),
                leaf(6, 94, count=100),
                leaf(96, 3, count=100),
                leaf(5, 93, count=98),
            ),
        )
        pruned = prune(tree)
        assert [node.test for node in pruned.nodes] == [tree.nodes[1].test, None, None]
        # The root still holds the same records, its children do not.
        assert [dict(node.released) for node in pruned.nodes] == [{"count": 397}, {}, {}]
        assert pruned.nodes[1].value == pytest.approx((0.96, 0.04), abs=0.02)
        assert pruned.nodes[2].value == pytest.approx((0.06, 0.94), abs=0.02)
        unraised = prune(tree, raising=False)
        assert unraised == tree

    def test_records_that_could_go_anywhere_are_divided(self):
        """What lies under a = 1 says nothing of b: it follows the 3 : 1 of those that do."""
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2), count=404),
                by_value("b", (3, 4), count=400),
                leaf(4, 0, count=4),
                leaf(300, 0, count=300),
                leaf(0, 100, count=100),
            ),
        )
        space = _Space.of(tree)
        whole = _read(tree, space)
        left, right = space.split(whole.records, whole.children[0].test)
        assert_allclose(left.counts.sum(axis=0), [303, 0])
        assert_allclose(right.counts.sum(axis=0), [1, 100])
        # One error more in the raised branch costs less than the small leaf.
        assert [node.test for node in prune(tree).nodes] == [tree.nodes[1].test, None, None]
        assert prune(tree, raising=False) == tree

    def test_raised_branches_forget_what_was_said_about_their_own_records(self):
        """The same exclusive or of b and c on both sides of a."""
        nodes = [
            by_value("a", (1, 2), count=801),
            by_value("b", (3, 4), count=402),
            by_value("b", (5, 6), count=397),
            *(by_value("c", (7 + 2 * j, 8 + 2 * j), count=200 + j) for j in range(4)),
        ]
        nodes += [
            leaf(*((100, j) if j in (0, 3, 4, 7) else (j, 100)), count=100 + j) for j in range(8)
        ]
        pruned = prune(Tree(FLAGS, tuple(nodes)))
        assert [node.test.feature for node in pruned.nodes[:3]] == ["b", "c", "c"]
        assert pruned.n_leaves == 4
        assert dict(pruned.nodes[0].released) == {"count": 801}
        assert not any(node.released for node in pruned.nodes[1:])

    def test_raised_branches_are_pruned_again(self):
        """With the records of a = 1, the test of d that was raised is idle too."""
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2)),
                by_value("d", (3, 4)),
                leaf(2, 1),
                by_value("c", (5, 6)),
                leaf(0, 1),
                leaf(15, 1),
                leaf(1, 5),
            ),
        )
        assert [node.test for node in prune(tree).nodes] == [tree.nodes[3].test, None, None]

    def test_numbers_and_missing_values(self):
        """A group between 30 and 50 is sure of a cut at 60, and not of one at 40."""
        schema = Schema({"x": Numeric(0, 100)}, target="class", classes=["no", "yes"])
        cut = Node(Cut("x", (30.0, 50.0), missing=3), (1, 2, 3, 4), released={"count": 40})
        tree = Tree(
            schema,
            (
                cut,
                leaf(10, 0),
                leaf(10, 0),
                Node(Cut("x", (60.0,), missing=0), (5, 6)),
                leaf(0, 10),
                leaf(5, 0),
                leaf(0, 5),
            ),
        )
        space = _Space.of(tree)
        records = _read(tree, space).records  # below 30; 30 to 50; 50 to 60; from 60 on; missing
        low, high = space.split(records, Cut("x", (60.0,), missing=1))
        assert_allclose(low.counts.sum(axis=0), [25, 0])
        assert_allclose(high.counts.sum(axis=0), [0, 15])
        assert space.split(high, Cut("x", (30.0,), missing=0))[0].counts.tolist() == [[0, 10]]

    @pytest.mark.parametrize("order", list(map("".join, itertools.permutations("abcd"))))
    @pytest.mark.parametrize(("truth", "leaves"), [("a", 2), ("a != b", 4), ("a and b", 3)])
    def test_redundant_splits_are_removed_from_a_full_tree(self, order, truth, leaves):
        """Exact counts, 10 % of the classes wrong: the truth is left, whatever the order."""
        nodes = []
        for depth, name in enumerate(order):
            first = len(nodes)
            for j in range(2**depth):
                child = first + 2**depth + 2 * j
                nodes.append(by_value(name, (child, child + 1), count=160 * 2 ** (4 - depth)))
        answers = []
        for values in itertools.product([0, 1], repeat=4):
            record = dict(zip(order, values, strict=True))
            answers.append(bool(eval(truth, {}, record)))
            nodes.append(leaf(*((16, 144) if answers[-1] else (144, 16)), count=160))
        pruned = prune(Tree(FLAGS, tuple(nodes)))
        assert pruned.n_leaves == leaves
        columns = np.array(list(itertools.product([0, 1], repeat=4)))
        table = pa.table({name: columns[:, j] for j, name in enumerate(order)})
        assert pruned.predict_value(table).argmax(axis=1).tolist() == answers

    def test_noise_without_structure_becomes_a_leaf(self, generator):
        counts = 500 + np.rint(generator.laplace(scale=10, size=(4, 2))).astype(int)
        tree = Tree(
            FLAGS,
            (
                by_value("a", (1, 2), count=4000),
                by_value("b", (3, 4), count=2007),
                by_value("c", (5, 6), count=1989),
                *(leaf(*row) for row in counts.tolist()),
            ),
        )
        assert len(prune(tree, 0.01).nodes) == 1

    def test_refusals(self):
        tree = Tree(FLAGS, (Node(value=(0.5, 0.5), released={"count": 3}),))
        with pytest.raises(ValueError, match="class counts"):
            prune(tree)
        with pytest.raises(ValueError, match="confidence"):
            prune(tree, 0.0)
        mean = Tree(Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1)), (Node(value=(0.5,)),))
        with pytest.raises(ValueError, match="classification"):
            prune(mean)


SCHEMA = Schema(
    {"a": Categorical(["u", "v", "w"]), "b": Categorical(["u", "v"]), "x": Numeric(0, 10)},
    target="class",
    classes=["no", "maybe", "yes"],
)
EDGES = [2.0, 3.0, 5.0, 8.0, 10.0]
#: A row for everything that tests over these edges can tell apart.
EVERYTHING = [
    dict(zip(SCHEMA.names, row, strict=True))
    for row in itertools.product(["u", "v", "w", None], ["u", "v", None], [0.0, *EDGES, None])
]
MATRIX = feature_matrix(pa.Table.from_pylist(EVERYTHING), SCHEMA)
MAX_NODES = 30


@st.composite
def questions(draw):
    name = draw(st.sampled_from(SCHEMA.names))
    if name == "x":
        edges = tuple(sorted(draw(st.sets(st.sampled_from(EDGES), min_size=1, max_size=3))))
        return Cut(name, edges, draw(st.integers(0, len(edges) + 1)))
    size = SCHEMA.features[name].size
    groups = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    numbered = {group: child for child, group in enumerate(dict.fromkeys(groups))}
    *children, other = (numbered[group] for group in groups)
    return Grouping(name, tuple(children), other)


@st.composite
def shapes(draw):
    """Trees without numbers."""
    nodes, depths = [], [0]
    while len(nodes) < len(depths):
        depth = depths[len(nodes)]
        if depth < 4 and len(depths) < MAX_NODES and draw(st.integers(0, 3)):
            test = draw(questions())
            children = range(len(depths), len(depths) + test.n_children)
            depths += [depth + 1] * test.n_children
            nodes.append(Node(test, tuple(draw(st.permutations(children)))))
        else:
            nodes.append(Node(value=(1.0, 0.0, 0.0)))
    return Tree(SCHEMA, tuple(nodes))


@st.composite
def trees(draw):
    """Trees with noisy counts, some of them missing; each released number occurs once.

    In half of them the counts are pure noise. In the others the classes depend on one feature, or
    on two, and the noise is small: many tests are idle, on top of others that matter.
    """
    shape = draw(shapes())
    if draw(st.booleans()):
        size = draw(st.sampled_from([3, 30, 300]))
        drawn = st.lists(st.integers(-2, size), min_size=3, max_size=3)
        counts = np.array([draw(drawn) for _ in shape.nodes])
        totals = np.array([draw(st.integers(-2, 3 * size)) for _ in shape.nodes])
    else:
        names = draw(st.lists(st.sampled_from(SCHEMA.names), min_size=1, max_size=2, unique=True))
        key = [tuple(row[name] for name in names) for row in EVERYTHING]
        order = {value: number for number, value in enumerate(dict.fromkeys(key))}
        labels = draw(st.lists(st.integers(0, 2), min_size=len(order), max_size=len(order)))
        weights = draw(st.sampled_from([1, 10]))
        counts = np.zeros((len(shape.nodes), 3), dtype=int)
        for node, rows in enumerate(rows_of(shape)):
            for row in rows:
                counts[node, labels[order[key[row]]]] += weights
        totals = counts.sum(axis=1)
    nodes = []
    for place, node in enumerate(shape.nodes):
        released = {}
        if draw(st.integers(0, 4)):
            released["count"] = 100 * int(totals[place]) + place
        if node.test is None:
            row = (100 * int(count) + place for count in counts[place])
            nodes.append(leaf(*row, **released))
        else:
            nodes.append(Node(node.test, node.children, released=released))
    return Tree(SCHEMA, tuple(nodes))


confidences = st.sampled_from([0.01, 0.1, 0.25, 0.5, 1.0])


def ends_of(tree):
    """Return the leaf of every row of ``EVERYTHING``."""
    return tree.route(MATRIX[:, [SCHEMA.names.index(name) for name in tree.used]])


def rows_of(tree):
    """Return for every node the rows of ``EVERYTHING`` that pass it."""
    rows = [set() for _ in tree.nodes]
    for row, place in enumerate(ends_of(tree).tolist()):
        rows[place].add(row)
    for place in reversed(range(len(tree.nodes))):
        rows[place].update(*(rows[child] for child in tree.nodes[place].children))
    return rows


def children_of(test):
    """Return the child to which a test sends each row of ``EVERYTHING``."""
    ends = [Node(value=(1.0, 0.0, 0.0))] * test.n_children
    stump = Tree(SCHEMA, (Node(test, tuple(range(1, len(ends) + 1))), *ends))
    return ends_of(stump) - 1


def n_tests(branch):
    return 0 if branch.test is None else 1 + sum(map(n_tests, branch.children))


def leaf_counts(branch):
    if branch.test is None:
        return branch.counts
    return sum(map(leaf_counts, branch.children))


class TestLaws:
    @given(trees())
    def test_corrected_counts_add_up(self, tree):
        counts = corrected_counts(tree)
        assert (counts >= 0).all()
        for node, row in zip(tree.nodes, counts, strict=True):
            if node.children:
                assert_allclose(counts[list(node.children)].sum(axis=0), row, atol=1e-9)
        if "count" in tree.nodes[0].released:
            assert counts[0].sum() == pytest.approx(max(0, tree.nodes[0].released["count"]))

    @given(trees())
    def test_counts_that_add_up_are_left_alone(self, tree):
        """Fed with its own result (in whole numbers), the correction changes nothing."""
        counts = np.zeros((len(tree.nodes), 3), dtype=int)
        for place in reversed(range(len(tree.nodes))):
            node = tree.nodes[place]
            counts[place] = (
                counts[list(node.children)].sum(axis=0)
                if node.children
                else np.maximum(node.released["class_counts"], 0)
            )
        exact = [
            Node(
                node.test,
                node.children,
                node.value,
                {"count": int(row.sum())}
                | ({} if node.children else {"class_counts": tuple(row.tolist())}),
            )
            for node, row in zip(tree.nodes, counts, strict=True)
        ]
        assert_allclose(corrected_counts(Tree(SCHEMA, tuple(exact))), counts, rtol=1e-9)

    @given(shapes(), st.data())
    def test_records_go_where_rows_go(self, tree, data):
        """Two tests in a row: records go to a child only if one of their rows does."""
        tests = [node.test for node in tree.nodes if node.test is not None]
        if not tests:
            return
        first, second = (data.draw(st.sampled_from(tests)) for _ in range(2))
        space, rows = _Space.of(tree), rows_of(tree)
        groups = [place for place in tree.leaves() if rows[place]]
        codes = np.ones((len(tree.nodes), space.n_codes), dtype=bool)
        for place, node in enumerate(tree.nodes):
            for j, child in enumerate(node.children):
                part, where = space.children(node.test)
                codes[child] = codes[place]
                codes[child, part] &= where == j
        start = _Records(codes[groups], np.eye(len(groups)))
        found = np.zeros((len(groups), first.n_children, second.n_children))
        for j, part in enumerate(space.split(start, first)):
            for k, end in enumerate(space.split(part, second)):
                found[:, j, k] = end.counts.sum(axis=0)
        assert_allclose(found.sum(axis=(1, 2)), 1)
        ways = [
            children_of(test)[:, None] == np.arange(test.n_children) for test in (first, second)
        ]
        for group, shares in zip(groups, found, strict=True):
            here = sorted(rows[group])
            reached = (ways[0][here][:, :, None] & ways[1][here][:, None, :]).any(axis=0)
            assert not shares[~reached].any()

    @given(trees(), confidences, st.booleans())
    def test_pruned_trees_are_trees_and_say_nothing_new(self, tree, confidence, raising):
        pruned = prune(tree, confidence, raising=raising)
        assert pruned.n_leaves <= tree.n_leaves
        assert pruned.depth <= tree.depth
        assert all(pruned.nodes[place].test is None for place in ends_of(pruned))
        # A released number is found where it was: at a node with exactly the same records.
        origin = {
            (name, number): rows
            for node, rows in zip(tree.nodes, rows_of(tree), strict=True)
            for name, number in node.released.items()
        }
        for node, rows in zip(pruned.nodes, rows_of(pruned), strict=True):
            for item in node.released.items():
                assert origin[item] == rows
            if node.test is None:
                assert sum(node.value) == pytest.approx(1)
                assert "class_counts" not in node.released or node in tree.nodes
        assert pruned.nodes[0].released.get("count") == tree.nodes[0].released.get("count")

    @given(trees(), confidences, st.booleans())
    def test_errors_hardly_rise_counts_are_kept_and_once_is_enough(self, tree, confidence, raising):
        pruning = _Pruning(_Space.of(tree), confidence, raising)
        before = _read(tree, pruning.space)
        after = pruning.of(before)
        removed = n_tests(before) - n_tests(after)
        allowed = removed * TOLERANCE + 1e-6 * (1 + pruning.errors(before))
        assert pruning.errors(after) <= pruning.errors(before) + allowed
        assert_allclose(leaf_counts(after), before.counts, atol=1e-6, rtol=1e-9)
        again = pruning.of(after)
        assert _published(tree, again, 1.0) == _published(tree, after, 1.0)
        assert pruning.errors(again) == pruning.errors(after)

    @given(trees())
    def test_new_leaves_answer_with_their_most_frequent_class(self, tree):
        pruning = _Pruning(_Space.of(tree), 0.25, raising=True)
        after = pruning.of(_read(tree, pruning.space))
        nodes = prune(tree).nodes
        level, place = [after], 0
        while level:
            for branch in level:
                if branch.test is None and not branch.value:
                    value = nodes[place].value
                    assert value[int(branch.counts.argmax())] == max(value)
                place += 1
            level = [child for branch in level for child in branch.children]
