"""What ranks records within leaves: a function of the published tree, which changes no label."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Numeric, PrivateBoostingClassifier, PrivateTreeClassifier, Schema
from privet.ensemble import Ensemble
from privet.learners.graded import LEAST_LEAD, graded_ensemble, graded_tree
from privet.schema import Integer
from privet.tree import Cut, Grouping, Node, Tree

FEATURES = {
    "x": Numeric(-1, 1),
    "n": Integer(0, 5),
    "z": Numeric(0, 1000),
    "c": Categorical(["a", "b", "c"]),
}
TWO = Schema(FEATURES, "y", classes=["no", "yes"])


def grow(schema, rng, depth):
    """Return a tree with random tests and shares; now and then shares are equal, zero or one."""
    nodes = []

    def add(left):
        place = len(nodes)
        nodes.append(None)
        if not left or rng.random() < 0.2:
            shares = rng.choice([0.0, 0.2, 1.0, 3.0], len(schema.classes))
            shares = shares + (shares.sum() == 0)
            counts = {"class_counts": tuple(rng.integers(-5, 90, len(shares)).tolist())}
            nodes[place] = Node(
                value=tuple((shares / shares.sum()).tolist()),
                released=counts if rng.random() < 0.9 else {},
            )
            return place
        name = rng.choice(["x", "n", "z", "c"])
        if name == "c":
            codes = [*rng.permutation(3).tolist()] if rng.random() < 0.3 else [0, 1, 0]
            test = Grouping("c", tuple(codes), other=int(rng.integers(0, 2)))
        elif rng.random() < 0.2:  # missing values are a child of their own
            test = Cut(name, (3.0,) if name != "x" else (0.25,), missing=2)
        else:
            edges = {"x": [-0.5, 0.0, 0.75], "n": [1.0, 5.0], "z": [1e-3, 10.0, 1000.0]}
            test = Cut(name, (float(rng.choice(edges[name])),), missing=int(rng.integers(0, 2)))
        children = tuple(add(left - 1) for _ in range(test.n_children))
        nodes[place] = Node(test, children)
        return place

    add(depth)
    return Tree(schema, tuple(nodes))


def make_rows(rng, rows=200):
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-1.2, 1.2, rows),
            "n": rng.integers(0, 6, rows).astype(float),
            "z": 1000 * rng.random(rows) ** 6,
            "c": rng.choice(["a", "b", "c", "d"], rows),
        }
    )
    for name in ("x", "n", "z"):
        frame.loc[rng.random(rows) < 0.1, name] = np.nan
    return frame


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5), depth=st.integers(0, 4))
@settings(max_examples=60)
def test_no_label_changes(seed, classes, depth):
    rng = np.random.default_rng(seed)
    schema = Schema(FEATURES, "y", classes=list(range(classes)))
    tree, rows = grow(schema, rng, depth), make_rows(rng)
    graded = graded_tree(tree)
    shares = graded.predict_value(rows)
    assert np.isfinite(shares).all()
    np.testing.assert_array_equal(shares.argmax(axis=1), tree.predict_value(rows).argmax(axis=1))


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
@settings(max_examples=30)
def test_shares_stay_near_those_of_the_leaf(seed, classes):
    """Besides the least lead of a label, what is added is less than the closest decision."""
    rng = np.random.default_rng(seed)
    schema = Schema(FEATURES, "y", classes=list(range(classes)))
    tree, rows = grow(schema, rng, 3), make_rows(rng)
    graded = graded_tree(tree)
    if isinstance(graded, Tree):
        return
    leaves = graded.trees[0].predict_value(rows)
    added = graded.predict_score(rows) - leaves
    if classes == 2:
        leaves, added = (np.column_stack([np.zeros(len(rows)), part]) for part in (leaves, added))
    ordered = np.sort(leaves, axis=1)
    least = (ordered[:, -1] - ordered[:, -2]).min()
    assert least >= LEAST_LEAD * (1 - 1e-9)
    assert np.ptp(added, axis=1).max() < least


def test_records_farther_above_a_cut_rank_higher_where_those_above_it_do():
    leaves = ((0.9, 0.1), (0.4, 0.6))
    tree = Tree(
        TWO,
        (
            Node(Cut("z", (10.0,), missing=0), (1, 2)),
            *(Node(value=v, released={"class_counts": (9, 9)}) for v in leaves),
        ),
    )
    graded = graded_tree(tree)
    points = pd.DataFrame({"x": 0.0, "n": 0, "z": [0.5, 2, 9.9, 10, 40, 900, np.nan], "c": "a"})
    shares = graded.predict_value(points)[:, 1]
    assert (np.diff(shares[:3]) > 0).all()
    assert (np.diff(shares[3:6]) > 0).all()
    assert shares[-1] == pytest.approx(0.1)  # missing: nothing is known beyond its leaf
    assert shares[:3] == pytest.approx([0.1] * 3, abs=0.02)


def test_a_tree_whose_sides_do_not_differ_is_left_alone():
    nodes = (Node(Cut("x", (0.0,), missing=0), (1, 2)), *2 * (Node(value=(0.3, 0.7)),))
    tree = Tree(TWO, nodes)
    assert graded_tree(tree) is tree
    leaf = Tree(TWO, (Node(value=(0.3, 0.7)),))
    assert graded_tree(leaf) is leaf


def test_several_trees_keep_their_order_but_for_small_differences():
    rng = np.random.default_rng(3)
    trees = []
    for _ in range(3):
        tree = grow(TWO, rng, 3)
        nodes = (
            Node(n.test, n.children, (float(rng.normal()),) if n.value else ()) for n in tree.nodes
        )
        trees.append(Tree(TWO, tuple(nodes), 1))
    model = Ensemble(TWO, (0.5,), tuple(trees))
    graded = graded_ensemble(model)
    assert graded.trees[:3] == model.trees
    assert graded.start == model.start
    rows = make_rows(rng)
    added = (graded.predict_score(rows) - model.predict_score(rows))[:, 0]
    assert 0 < np.abs(added).max() < 0.5
    known = np.round(model.predict_score(rows)[:, 0], 9)
    assert len(np.unique(graded.predict_score(rows))) > 3 * len(np.unique(known))


@pytest.mark.filterwarnings("ignore:random_state is fixed")
def test_a_fit_ranks_within_leaves_and_costs_what_the_tree_costs():
    rng = np.random.default_rng(0)
    frame = make_rows(rng, 600)
    target = np.where(frame["x"].fillna(0) + 0.4 * rng.normal(size=600) > 0, "yes", "no")
    given = {"epsilon": 0.45, "schema": TWO, "n_rows": 600, "random_state": 1}
    tree = PrivateTreeClassifier(probability_share=0.2, **given).fit(frame, target)
    model = PrivateBoostingClassifier(**given).fit(frame, target)
    drawn, *curves = model.predictor_.trees
    assert model.privacy_.entries == tree.privacy_.entries
    assert [c.values for c in model.privacy_.counts] == [c.values for c in tree.privacy_.counts]
    bare = [(node.test, node.children, node.released) for node in tree.predictor_.nodes]
    assert [(node.test, node.children, node.released) for node in drawn.nodes] == bare
    np.testing.assert_array_equal(model.predict(frame), tree.predict(frame))
    assert {tree.used for tree in curves} <= {(name,) for name in drawn.used}
    assert len(np.unique(model.predict_proba(frame)[:, 1])) > 4 * drawn.n_leaves
    assert model.feature_importances_[0] > 0.5
    again = Ensemble.from_dict(json.loads(json.dumps(model.predictor_.to_dict())), model.schema_)
    np.testing.assert_array_equal(again.predict_score(frame), model.predictor_.predict_score(frame))
    assert again.to_dict() == model.predictor_.to_dict()
