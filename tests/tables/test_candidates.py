"""Splits with points: their losses against plain loops, and the law of the joint selection."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.criteria import Gini, Max
from privet.errors import SchemaError
from privet.tables import (
    Binary,
    Each,
    Multiway,
    Ordered,
    ReleasedSplits,
    Split,
    Thresholds,
    View,
)
from privet.tables.splits import losses_of

ALARM = 1e-6
STEPS = 8
SCHEMA = Schema(
    {"x": Numeric(0, 8), "c": Categorical(["u", "v"])}, target="y", classes=["p", "q", "r"]
)
VIEW = View(SCHEMA, (tuple(float(k) for k in range(1, STEPS)), None))
pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(-1, 9), st.just(float("nan"))),
            st.sampled_from(["u", "v", "w"]),
            st.sampled_from(["p", "q", "r"]),
        ),
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_losses_are_those_of_the_splits_they_stand_for(records):
    counts = np.zeros((1, STEPS + 1, 3), dtype=np.int64)
    for x, _, y in records:
        code = STEPS if np.isnan(x) else int(np.clip(np.floor(x), 0, STEPS - 1))
        counts[0, code, "pqr".index(y)] += 1
    candidates = Thresholds(STEPS)
    losses = losses_of(candidates, 0, counts, Gini(), range(1), VIEW)
    assert losses.shape == (1, candidates.options(0, VIEW)) == (1, STEPS - 1)
    for option in range(STEPS - 1):
        split = candidates.split(0, option, 0, VIEW)
        sums = [
            counts[0][np.array(split.children) == child].sum(axis=0)
            for child in range(split.n_children)
        ]
        assert losses[0, option] == Gini().losses(np.array(sums)).sum()
        given_one = ReleasedSplits({0: [split]})
        assert losses_of(given_one, 0, counts, Gini(), range(1), VIEW)[0, 0] == losses[0, option]
        assert given_one.split(0, 0, 0, VIEW) == split
    assert ReleasedSplits({}).split(1, 0, 0, VIEW) == Multiway().split(1, 0, 0, VIEW)


def test_every_attribute_has_the_same_measure():
    candidates = Thresholds(STEPS)
    totals = [candidates.options(j, VIEW) * candidates.mass(j, VIEW) for j in range(2)]
    assert totals[0] == totals[1]


def test_numbers_with_fewer_cuts_have_the_same_measure():
    """Bounds may be too close for all cuts, or for any: then known is divided from missing."""
    features = {name: Numeric(0, 8) for name in "abc"} | {"d": Categorical(["u", "v"])}
    schema = Schema(features, "y", classes=[0, 1])
    view = View(schema, ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (2.0, 6.0), (), None))
    candidates = Thresholds(7)
    candidates.check(view, 1)
    assert [candidates.options(j, view) for j in range(4)] == [6, 2, 1, 1]
    assert [candidates.mass(j, view) for j in range(4)] == [1, 3, 6, 6]
    for j, size in enumerate(view.sizes):
        counts = np.arange(2 * size).reshape(1, size, 2)
        children = candidates.children(j, counts, range(1), view)
        for option in range(candidates.options(j, view)):
            split = candidates.split(j, option, 0, view)
            assert split.fits(view)
            sums = np.zeros((split.n_children, 2), dtype=np.int64)
            np.add.at(sums, split.child_of, counts[0])
            assert (children[0, option] == sums).all()
    assert candidates.split(2, 0, 0, view) == Split(2, (0, 1))


@pytest.mark.parametrize("steps", [0, 1, 4, 6])
def test_more_cuts_than_steps_are_refused(steps):
    schema = Schema({"a": Numeric(0, 8), "b": Numeric(0, 8)}, "y", classes=[0, 1])
    view = View(schema, ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (2.0, 6.0)))
    with pytest.raises(ValueError, match="fewer cuts than there are steps"):
        Thresholds(steps).check(view, 1)


def test_attribute_and_point_are_drawn_together_by_the_exponential_mechanism():
    rows = [[1.5, "u"]] * 3 + [[4.5, "v"]] * 4 + [[6.5, "u"]] * 2
    labels = ["p"] * 3 + ["q"] * 4 + ["p", "q"]
    table = PrivateTable(rows, labels, SCHEMA, Budget(1e9), random_state=1)
    root = table.root(VIEW)
    epsilon = 1.0
    draws = [
        root.choose_splits(Thresholds(STEPS), Max(), Fraction(epsilon), np.ones((1, 2), bool))[0]
        for _ in range(3_000)
    ]
    names = [
        (split.feature, split.children.index(1) if split.feature == 0 else 0) for split in draws
    ]
    options = [(0, point) for point in range(1, STEPS)] + [(1, 0)]
    right = []
    for feature, point in options:
        groups = {}
        for row, label in zip(rows, labels, strict=True):
            side = row[0] >= point if feature == 0 else row[1]
            groups.setdefault(side, []).append(label)
        right.append(sum(max(map(group.count, "pqr")) for group in groups.values()))
    mass = np.array([1.0] * (STEPS - 1) + [STEPS - 1])
    counts = np.array([names.count(option) for option in options])

    def p_value(at):
        law = mass * np.exp(at * np.array(right))
        return stats.chisquare(counts, law / law.sum() * len(draws)).pvalue

    assert counts.sum() == len(draws)
    assert p_value(epsilon) > ALARM
    assert p_value(0.6 * epsilon) < ALARM
    assert p_value(1.6 * epsilon) < ALARM
    assert {entry.mechanism.kind for entry in table.ledger.entries} == {"grid-exponential"}


class TestAccessLayer:
    """Questions without a tree, in the style of PINQ."""

    def table(self, budget=2.0):
        rows = [[1.0, "u"]] * 40 + [[7.0, "v"]] * 60
        return PrivateTable(rows, ["p"] * 40 + ["q"] * 60, SCHEMA, Budget(budget), random_state=0)

    def test_parts_are_disjoint_so_their_questions_cost_once(self):
        table = self.table()
        parts = table.root().partition("c")
        assert len(parts) == 3  # u, v, and what is unknown
        parts.noisy_counts(Fraction(1, 4))
        for part in parts:
            part.noisy_class_counts(Fraction(1, 4))
        assert table.ledger.total.epsilon == Fraction(1, 2)
        table.root().noisy_counts(Fraction(1, 4))
        assert table.ledger.total.epsilon == Fraction(3, 4)

    def test_a_feature_is_chosen_by_name(self):
        table = self.table(100.0)
        assert table.root().choose(10, among=["c"]) == ["c"]
        names = {table.root().choose(Fraction(1, 100))[0] for _ in range(200)}
        assert names == {"x", "c"}
        with pytest.raises(Exception, match="no feature"):
            table.root().choose(1, among=["z"])
        with pytest.raises(Exception, match="no feature"):
            table.root().partition("z")

    def test_cells_are_a_sequence(self):
        parts = self.table().root().partition("c")
        assert len(parts[-1]) == 1
        assert len(list(parts)) == 3
        with pytest.raises(IndexError):
            parts[3]

    def test_ten_lines_make_an_id3(self):
        """The example of docs/howto/questions.md."""

        def id3(cell, features, depth, epsilon):
            if depth == 0 or not features:
                counts = cell.noisy_class_counts(2 * epsilon)[0]
                return cell.schema.classes[counts.argmax()]
            enough = cell.noisy_counts(epsilon)[0] > 10 / epsilon
            if not enough:
                counts = cell.noisy_class_counts(epsilon)[0]
                return cell.schema.classes[counts.argmax()]
            (best,) = cell.choose(epsilon, among=features)
            rest = [name for name in features if name != best]
            return {best: [id3(part, rest, depth - 1, epsilon) for part in cell.partition(best)]}

        table = self.table(8.0)
        tree = id3(table.root(), ["x", "c"], 1, Fraction(2))
        assert table.ledger.total.epsilon == 8
        (branches,) = tree.values()
        assert {"p", "q"} <= set(branches)


def test_a_split_that_keeps_a_cell_whole_is_allowed():
    root = PrivateTable([[1.0, "u"]], ["p"], SCHEMA, Budget(1.0)).root()
    assert len(root.split([Split(0, (0,) * SCHEMA.sizes[0])])) == 1


@pytest.mark.parametrize("options", [0, 1, 3, 4])
def test_one_code_against_the_others_is_as_the_table_of_bool(options):
    table = np.eye(4, dtype=bool)[:options]
    counts = np.random.default_rng(0).integers(0, 9, (5, 4, 3))
    short, long = Binary([Each(options, 4)]), Binary([table])
    view = View(Schema({"c": Categorical(list("abc"))}, "y", classes=[0, 1]), (None,))
    assert short.options(0, view) == long.options(0, view) == options
    every = [each.children(0, counts, range(5), view) for each in (short, long)]
    assert every[0].tolist() == every[1].tolist()
    for option in range(options):
        assert short.split(0, option, 0, view) == long.split(0, option, 0, view)


def test_many_categories_take_little_memory():
    counts = np.ones((1, 60_000, 2), dtype=np.int64)
    found = Binary([Each(60_000, 60_000)]).children(0, counts, range(1), VIEW)
    assert found[0, 59_999].tolist() == [[1, 1], [59_999, 59_999]]


def test_sides_that_count_a_record_twice_or_not_at_all_are_refused():
    for sides in (np.full((1, 3), 5), np.zeros(3, dtype=bool), [[True, False]]):
        with pytest.raises(ValueError, match="tables of bool"):
            Binary([sides])
    with pytest.raises(ValueError, match="no more options"):
        Each(4, 3)


def test_candidates_of_another_view_are_refused_before_anything_is_spent():
    sizes = VIEW.sizes
    fitting = [np.ones((1, size), dtype=bool) for size in sizes]
    bad = [
        Binary([fitting[0]]),
        Binary([fitting[0], np.ones((1, sizes[1] + 1), dtype=bool)]),
        Binary([Each(1, sizes[0] - 1), fitting[1]]),
        Thresholds(STEPS - 1),
        Thresholds(sizes[1] - 1),
        ReleasedSplits({0: []}),
        ReleasedSplits({1: [Split(0, (0,) * sizes[0])]}),
        ReleasedSplits({0: [Split(0, (0,) * (sizes[0] - 1))]}),
        Ordered(Binary(fitting), {1: np.zeros((1, sizes[1]), dtype=np.intp)}),
        Ordered(Binary(fitting), {1: np.arange(sizes[1])[None, :-1]}),
    ]
    table = PrivateTable([[1.0, "u"]], ["p"], SCHEMA, Budget(1.0))
    cells, allowed = table.root(VIEW), np.ones((1, 2), dtype=bool)
    for candidates in bad:
        with pytest.raises(ValueError, match="every"):
            cells.choose_splits(candidates, Max(), 1, allowed)
        with pytest.raises(ValueError, match="every"):
            cells.choose_best(candidates, Max(), 1, how="flip")
        with pytest.raises(ValueError, match="every"):
            cells.noisy_candidate_gains(candidates, Max(), 1)
        with pytest.raises(ValueError, match="every"):
            cells.mpc_exact_counts(candidates, Max(), 1, 2)
    assert table.ledger.total.epsilon == 0


def test_a_category_with_as_many_codes_as_steps_is_not_cut():
    """A record of it counted once for every cut before."""
    schema = Schema({"x": Numeric(0, 8), "c": Categorical(range(STEPS))}, "y", classes=[0, 1])
    view = View(schema, (VIEW.cuts[0], None))
    assert view.sizes[0] == view.sizes[1] == STEPS + 1
    counts = np.arange(2 * (STEPS + 1)).reshape(1, -1, 2)
    assert Thresholds(STEPS).children(1, counts, range(1), view).shape == (1, 1, STEPS + 1, 2)
    table = PrivateTable([[1.0, 3]], [1], schema, Budget(1.0))
    found = table.root(view).choose_splits(Thresholds(STEPS), Max(), 1, np.ones((1, 2), dtype=bool))
    assert found[0].fits(view)


@pytest.mark.parametrize(
    "children",
    [
        *((), (0, 2), (0, -1), (0, 2**40), (0, 1.5), ("0", "1"), (0, None), (0, True)),
        *([0, 1], b"\0\1", range(2), np.arange(2), np.zeros((2, 2), dtype=np.uint8)),
        (np.int64(0), np.int64(1)),
    ],
)
def test_splits_with_impossible_children_are_refused(children):
    with pytest.raises(ValueError, match="children are"):
        Split(0, children)


@pytest.mark.parametrize("feature", [0.0, True, np.int64(0), "0", None])
def test_splits_of_something_that_is_no_position_are_refused(feature):
    with pytest.raises(ValueError, match="whole number"):
        Split(feature, (0, 1))


def test_a_table_is_seen_through_its_own_schema():
    with pytest.raises(ValueError, match="cuts for every number"):
        View(SCHEMA, (None, None))
    with pytest.raises(ValueError, match="cuts for every number"):
        View(SCHEMA, ((1.0,),))
    for cuts in ([1.0], np.array([1.0]), {}):
        with pytest.raises(ValueError, match="in a tuple"):
            View(SCHEMA, (cuts, None))
    for cuts in ((2.0, 1.0), (1.0, 1.0), (float("nan"),), (1.0, float("inf"))):
        with pytest.raises(ValueError, match="in rising order"):
            View(SCHEMA, (cuts, None))
    turned = Schema(dict(reversed(SCHEMA.features.items())), "y", classes=["p", "q", "r"])
    other = Schema({"x": Numeric(0, 8), "c": Categorical(["u"])}, "y", classes=["p", "q", "r"])
    table = PrivateTable([[1.0, "u"]], ["p"], SCHEMA, Budget(1.0))
    for ask in (table.root, lambda view: table.parts(2, 0, view)):
        with pytest.raises(SchemaError, match="its own schema only"):
            ask(View(other, VIEW.cuts))
        with pytest.raises(SchemaError, match="its own schema only"):
            ask(View(turned, VIEW.cuts[::-1]))
