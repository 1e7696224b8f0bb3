"""Trees as text: words, merging, truncation."""

import pyarrow as pa
import pytest
from hypothesis import given, settings

import privet.export
from privet.ensemble import Ensemble
from privet.export import to_text
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

from ..tree.strategies import ensembles, trees  # noqa: TID252

WARDS = """\
readmitted
├─ age < 65: no (0.60 to 1.00; 5 leaves; noisy counts: no 230, yes 51)
├─ age >= 65
│  ├─ ward in {a, c}, other or missing: yes (0.75 to 1.00; 2 leaves; noisy counts: no 19, yes 65)
│  └─ ward in {b, d}: no (0.56; noisy counts: no 50, yes 40)
└─ age missing: yes (0.75; noisy counts: no 1, yes 3)"""


def test_equal_neighbours_share_a_line(ward_tree):
    assert to_text(ward_tree) == WARDS


def test_a_test_that_says_nothing_is_left_out():
    """Both ways lead to the same tests with the same answers: counts are added up."""
    schema = Schema({"x": Numeric(0, 9), "z": Numeric(0, 9)}, "y", classes=["no", "yes"])
    no, yes = (
        Node(value=v, released={"class_counts": c}) for v, c in (((1, 0), (4, 1)), ((0, 1), (2, 7)))
    )
    below = Cut("z", (5.0,), 1)
    nodes = (Node(Cut("x", (2.0,), 1), (1, 2)), Node(below, (3, 4)), Node(below, (5, 6)))
    assert to_text(Tree(schema, (*nodes, no, yes, no, yes))) == (
        "y\n├─ z < 5: no (2 leaves; noisy counts: no 8, yes 2)"
        "\n└─ z >= 5 or missing: yes (2 leaves; noisy counts: no 4, yes 14)"
    )


def test_a_category_is_tested_once():
    """Values that cannot come this way are not listed again, and equal answers are one."""
    schema = Schema({"ward": Categorical(["a", "b", "c"])}, "y", classes=["no", "yes"])
    nodes = (
        Node(Grouping("ward", (0, 1, 0), 0), (1, 2)),
        Node(Grouping("ward", (1, 0, 0), 1), (3, 4)),
        Node(value=(0, 1)),
        Node(value=(0, 1)),
        Node(value=(1, 0)),
    )
    tree = Tree(schema, nodes)
    assert to_text(tree) == (
        "y\n├─ ward in {a}, other or missing: no\n└─ ward in {b, c}: yes (2 leaves)"
    )
    values = ["a", "b", "c", "d", None]
    namespace = {}
    exec(privet.export.to_python(tree), namespace)
    told = [namespace["predict"]({"ward": value}) for value in values]
    assert told == ["no", "yes", "yes", "no", "no"]
    shares = tree.predict_value(pa.table({"ward": values}))
    assert told == [("no", "yes")[int(best)] for best in shares[:, 1]]


def test_means(mean_tree):
    assert to_text(mean_tree).splitlines() == [
        "stay",
        "├─ x < 0.25 or missing: 3.5 (noisy count: 12)",
        "├─ 0.25 <= x < 0.75: 20 (2 leaves; noisy count: 2)",
        "└─ x >= 0.75: 14.29",
    ]


def test_depth_says_what_is_left_out(ward_tree):
    assert to_text(ward_tree, max_depth=0) == "readmitted: ... (5 lines left out)"
    assert to_text(ward_tree, max_depth=1).splitlines()[2] == "├─ age >= 65: ... (2 lines left out)"
    assert to_text(ward_tree, max_depth=2) == WARDS


def test_lines_say_what_is_left_out(ward_tree):
    assert to_text(ward_tree, max_lines=3).splitlines() == [
        *WARDS.splitlines()[:2],
        "... (4 lines left out)",
    ]
    assert to_text(ward_tree, max_lines=1) == "... (6 lines left out)"
    assert to_text(ward_tree, max_lines=6) == WARDS


@pytest.mark.parametrize("wrong", [{"max_depth": -1}, {"max_lines": 0}])
def test_limits_make_sense(ward_tree, wrong):
    with pytest.raises(ValueError, match="at least"):
        to_text(ward_tree, **wrong)


def test_a_single_leaf():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b"])
    assert to_text(Tree(schema, (Node(value=(0.5, 0.5)),))) == "y: a (0.50)"


def test_edges_that_look_alike_are_told_apart():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 9))
    nodes = (
        Node(Cut("x", (0.5, 0.500001), 2), (1, 2, 3)),
        *(Node(value=(float(j),)) for j in range(3)),
    )
    assert to_text(Tree(schema, nodes)).splitlines()[2] == "├─ 0.5 <= x < 0.500001: 1"


def test_presence_alone_can_be_tested():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 9))
    tree = Tree(schema, (Node(Cut("x", (), 1), (1, 2)), Node(value=(0.0,)), Node(value=(1.0,))))
    assert to_text(tree) == "y\n├─ x not missing: 0\n└─ x missing: 1"


def test_terminals_get_no_control_characters(hostile_tree):
    text = to_text(hostile_tree)
    assert len(text.splitlines()) == 3
    assert all(c.isprintable() or c == "\n" for c in text)


@settings(deadline=None)
@given(trees())
def test_every_tree_has_a_text(tree):
    text = to_text(tree)
    assert 1 <= len(text.split("\n")) <= len(tree.nodes) + 1
    assert len(to_text(tree, max_lines=2).split("\n")) <= 2


def test_very_deep_trees_do_not_exhaust_the_stack():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 3000))
    nodes = []
    for level in range(1500):
        children = 2 * level + 1, 2 * level + 2
        nodes += [Node(Cut("x", (0.5,), 0), children), Node(value=(float(level),))]
    flat = [nodes[0]]
    for level in range(1500):
        flat += [nodes[2 * level + 1], *nodes[2 * level + 2 : 2 * level + 3]]
    tree = Tree(schema, (*flat, Node(value=(2999.0,))))
    assert to_text(tree, max_lines=5).endswith("lines left out)")


# -------------------------------------------------------------------------------------- ensembles

BOOSTED = """\
readmitted: ensemble of 2 trees whose scores add up to the log odds of readmitted = yes
start: -0.25
tree 1:
├─ age < 65: -0.42 (noisy count: 19)
├─ age >= 65
│  ├─ sex in {f}, other or missing: +0.125
│  └─ sex in {m}: +1.5
└─ age missing: 0
tree 2:
├─ sex in {f}: -0.05
└─ sex in {m}, other or missing: +0.31"""


def test_the_trees_of_an_ensemble_follow_each_other(boosted):
    assert to_text(boosted) == BOOSTED


def test_an_additive_ensemble_is_shown_by_feature(additive):
    assert to_text(additive).splitlines() == [
        "stay: additive model of 4 trees whose scores add up to the target, in its own units",
        "start: +4.5",
        "age:",
        "├─ age < 40: -1.75",
        "├─ 40 <= age < 65: +1.25",
        "├─ age >= 65: +4",
        "└─ age missing: +1.25",
        "sex:",
        "├─ sex in {f, m}: +1200",
        "└─ sex other or missing: -0.5",
    ]


def test_classes_have_a_score_each(additive_classes):
    assert to_text(additive_classes).splitlines() == [
        "outcome: additive model of 1 tree whose scores add up to one score per class",
        "start: good +0.1, fair -0.2, bad 0",
        "ward:",
        "├─ ward in {a}: good +0.5, fair 0, bad -1",
        "├─ ward in {b}: good -0.5, fair +2, bad +0.25",
        "└─ ward other or missing: good +0.125, fair -0.125, bad +0.001",
    ]


def test_limits_hold_for_ensembles(boosted):
    assert to_text(boosted, max_depth=0).splitlines()[2:] == [
        "tree 1: ... (5 lines left out)",
        "tree 2: ... (2 lines left out)",
    ]
    assert to_text(boosted, max_depth=1).splitlines()[4] == "├─ age >= 65: ... (2 lines left out)"
    assert to_text(boosted, max_depth=2) == BOOSTED
    assert to_text(boosted, max_lines=3).splitlines() == [
        *BOOSTED.splitlines()[:2],
        "... (9 lines left out)",
    ]


def test_no_trees():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 9))
    assert to_text(Ensemble(schema, (1.5,), ())).splitlines() == [
        "y: a constant",
        "start: +1.5",
    ]


def test_terminals_get_no_control_characters_from_ensembles(hostile_ensemble):
    text = to_text(hostile_ensemble)
    assert len(text.splitlines()) == 8
    assert all(c.isprintable() or c == "\n" for c in text)


@settings(max_examples=50)
@given(ensembles() | ensembles(additive=True))
def test_every_ensemble_has_a_text(ensemble):
    text = to_text(ensemble)
    assert len(text.split("\n")) >= 2
    assert all(c.isprintable() or c == "\n" for c in text)
    assert len(to_text(ensemble, max_lines=2).split("\n")) == 2


@pytest.mark.parametrize("name", ["to_text", "to_dot", "to_svg", "to_sql", "to_python"])
def test_a_tree_of_scores_is_no_model(boosted, name):
    with pytest.raises(ValueError, match="export its ensemble"):
        getattr(privet.export, name)(boosted.trees[0])
