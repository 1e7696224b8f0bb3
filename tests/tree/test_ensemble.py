"""Ensembles: sums against a slow reference, shapes, probabilities, files."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

import privet
from privet.ensemble import Ensemble, Shape, n_scores, shares_of
from privet.errors import ModelFileError
from privet.model import Model
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

from .reference import reference_leaves
from .strategies import ensembles, ensembles_with_tables
from .test_files import CARD, DELETE, HUGE, put, refusal

FEATURES = {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])}
TWO = Schema(FEATURES, "readmitted", classes=["no", "yes"])
THREE = Schema(FEATURES, "outcome", classes=["a", "b", "c"])
NUMBER = Schema(FEATURES, "stay", bounds=(0, 30))


def stump(schema: Schema, *values: tuple[float, ...]) -> Tree:
    leaves = (Node(value=value) for value in values)
    root = Node(Cut("age", (40.0,), len(values) - 1), tuple(range(1, len(values) + 1)))
    return Tree(schema, (root, *leaves), n_scores(schema))


def constant(schema: Schema, *scores: float) -> Ensemble:
    """An ensemble without trees."""
    return Ensemble(schema, scores, ())


BOTH = Ensemble(
    TWO,
    (-0.5,),
    (
        stump(TWO, (-1.0,), (0.25,)),
        Tree(
            TWO,
            (
                Node(Grouping("sex", (0, 1), 1), (1, 2)),
                Node(Cut("age", (65.0,), 0), (3, 4)),
                *(Node(value=(score,), released={"count": 3}) for score in (0.75, 1.0, -2.0)),
            ),
            1,
        ),
    ),
)


few = settings(max_examples=60)

# ------------------------------------------------------------------------------------ predictions


def reference_scores(ensemble: Ensemble, table) -> list[tuple[float, ...]]:
    rows = [ensemble.start] * len(table)
    for tree in ensemble.trees:
        places = reference_leaves(tree, table)
        rows = [
            tuple(a + b for a, b in zip(row, tree.nodes[place].value, strict=True))
            for row, place in zip(rows, places, strict=True)
        ]
    return rows


@few
@given(ensembles_with_tables())
def test_scores_are_the_sums_of_the_reference(case):
    ensemble, table = case
    expected = np.array(reference_scores(ensemble, table)).reshape(-1, n_scores(ensemble.schema))
    assert_array_equal(ensemble.predict_score(table), expected)


@few
@given(ensembles_with_tables())
def test_the_first_class_with_the_highest_score_is_predicted(case):
    ensemble, table = case
    schema = ensemble.schema
    found = Model(ensemble, CARD, "boosting").predict(table).tolist()
    rows = reference_scores(ensemble, table)
    if schema.classes is None:
        low, high = schema.bounds
        assert found == [min(max(score, low), high) for (score,) in rows]
    else:
        full = [(0.0, *row) if len(row) == 1 else row for row in rows]
        best = [row.index(max(row)) for row in full]
        assert found == privet.model.class_array(schema)[best].tolist()


@few
@given(ensembles_with_tables())
def test_probabilities_add_up_to_one(case):
    ensemble, table = case
    values = ensemble.predict_value(table)
    if ensemble.schema.classes is None:
        assert values.shape == (len(table), 1)
    else:
        assert values.shape == (len(table), len(ensemble.schema.classes))
        assert values.min(initial=0) >= 0
        assert_allclose(values.sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize("score", [-800.0, -3.0, -1e-9, 0.0, 0.5, 36.0, 700.0])
def test_one_score_is_the_log_odds_of_the_second_class(score):
    (first, second), *_ = shares_of(np.array([[score]]))
    assert second == pytest.approx(math.exp(min(score, 0)) / (1 + math.exp(-abs(score))), rel=1e-15)
    assert first == pytest.approx(math.exp(min(-score, 0)) / (1 + math.exp(-abs(score))), rel=1e-15)


@pytest.mark.parametrize("more", [1e-15, 1e-17, 1e-300, 5e-324])
def test_any_higher_score_is_a_higher_probability(more):
    """Rounded probabilities tie where scores do not; code made by exports compares scores."""
    two = shares_of(np.array([[more], [0.0], [-0.0], [-more]]))
    assert (two[:, 1] > two[:, 0]).tolist() == [True, False, False, False]
    three = shares_of(np.array([[0.0, more, more], [more, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    assert three.argmax(axis=1).tolist() == [1, 0, 0]
    assert three[0, 1] > three[0, 0]


@pytest.mark.parametrize("huge", [1e3, 1e200, 3e306])
def test_huge_scores_do_not_overflow(huge):  # warnings are errors here
    tree = stump(THREE, (-huge, huge, 0.0), (huge, -huge, 0.0))
    values = Ensemble(THREE, (0.0, 0.0, huge), (tree, tree)).predict_value([[30, "f"], [50, "f"]])
    assert values.tolist() == [[0, 1, 0], [1, 0, 0]]
    tree = stump(TWO, (-huge,), (huge,))
    values = Ensemble(TWO, (huge,), (tree, tree)).predict_value([[30, "f"], [50, "f"]])
    assert values.tolist() == [[1, 0], [0, 1]]
    tree = stump(NUMBER, (-huge,), (huge,))
    values = Ensemble(NUMBER, (15.0,), (tree, tree)).predict_value([[30, "f"], [50, "f"]])
    assert values.tolist() == [[0], [30]]


def test_no_trees_predict_the_start():
    rows = [[30, "f"], [None, None]]
    assert constant(NUMBER, 4.5).predict_value(rows).tolist() == [[4.5]] * 2
    assert constant(NUMBER, 45).predict_value(rows).tolist() == [[30.0]] * 2
    assert constant(TWO, 0.0).predict_value(rows).tolist() == [[0.5, 0.5]] * 2
    assert constant(THREE, 1, 1, 1).predict_value(np.empty((0, 2))).shape == (0, 3)
    empty = constant(TWO, 0.0)
    assert (empty.depth, empty.n_leaves, empty.used, empty.additive) == (0, 0, (), True)
    assert empty.shapes() == ()


def test_size():
    assert (BOTH.depth, BOTH.n_leaves, BOTH.used) == (2, 5, ("age", "sex"))
    assert not BOTH.additive


# ----------------------------------------------------------------------------------------- shapes


def as_tree(shape: Shape, schema: Schema) -> Tree:
    """Return a shape as a tree of one test, for the reference to follow."""
    last = len(shape.scores)
    if shape.edges is None:
        test = Grouping(shape.feature, tuple(range(last)), last)
    else:
        test = Cut(shape.feature, shape.edges, last)
    leaves = (Node(value=tuple(row)) for row in (*shape.scores, shape.missing))
    return Tree(schema, (Node(test, tuple(range(1, last + 2))), *leaves), n_scores(schema))


@few
@given(ensembles_with_tables(additive=True))
def test_shapes_add_up_to_the_scores(case):
    ensemble, table = case
    shapes = tuple(as_tree(shape, ensemble.schema) for shape in ensemble.shapes())
    again = Ensemble(ensemble.schema, ensemble.base, shapes)
    found = np.array(reference_scores(again, table)).reshape(len(table), len(ensemble.start))
    assert_allclose(found, ensemble.predict_score(table), rtol=1e-12, atol=1e-9)


@few
@given(ensembles(additive=True))
def test_shapes_have_the_form_that_the_schema_says(ensemble):
    shapes = ensemble.shapes()
    order = [ensemble.schema.names.index(shape.feature) for shape in shapes]
    assert order == sorted(order)
    assert {shape.feature for shape in shapes} == set(ensemble.used)
    for shape in shapes:
        feature = ensemble.schema.features[shape.feature]
        rows = len(feature.values) if shape.edges is None else len(shape.edges) + 1
        assert isinstance(feature, Categorical) == (shape.edges is None)
        assert shape.scores.shape == (rows, len(ensemble.start))
        assert shape.missing.shape == (len(ensemble.start),)


def test_a_shape_of_several_trees():
    inner = Tree(
        TWO,
        (
            Node(Cut("age", (40.0,), 2), (1, 2, 3)),
            Node(Cut("age", (20.0,), 0), (4, 5)),
            *(Node(value=(score,)) for score in (3.0, 5.0, 1.0, 2.0)),
        ),
        1,
    )
    (age,) = Ensemble(TWO, (9.0,), (inner, stump(TWO, (0.5,), (0.25,)))).shapes()
    assert age.edges == (20.0, 40.0)
    assert age.scores.tolist() == [[1.5], [2.5], [3.25]]
    assert age.missing.tolist() == [5.25]
    with pytest.raises(ValueError, match="read-only"):
        age.scores[0] = 0
    with pytest.raises(FrozenInstanceError):
        age.edges = ()


def test_trees_without_a_test_belong_to_the_base():
    leaf = Tree(TWO, (Node(value=(0.25,)),), 1)
    ensemble = Ensemble(TWO, (1.0,), (leaf, stump(TWO, (0.0,), (1.0,)), leaf))
    assert ensemble.base == (1.5,)
    assert [shape.feature for shape in ensemble.shapes()] == ["age"]


def test_only_additive_ensembles_have_shapes():
    with pytest.raises(ValueError, match="several features"):
        BOTH.shapes()


# ------------------------------------------------------------------------------------------ files


@few
@given(ensembles_with_tables(max_rows=5))
def test_round_trip_of_model_files(tmp_path_factory, case):
    ensemble, table = case
    path = tmp_path_factory.getbasetemp() / "ensemble.json"
    model = Model(ensemble, CARD, "boosting")
    model.save(path)
    again = privet.load(path)
    assert again == model
    assert_array_equal(again.predict(table), model.predict(table))


@few
@given(ensembles())
def test_ensembles_can_be_pickled_and_copied(ensemble):
    assert pickle.loads(pickle.dumps(ensemble)) == ensemble
    assert copy.deepcopy(ensemble) == ensemble


def test_nothing_in_an_ensemble_can_be_changed():
    for name in ("schema", "start", "trees"):
        with pytest.raises(FrozenInstanceError):
            setattr(BOTH, name, ())


def test_numbers_of_any_kind_become_floats():
    ensemble = Ensemble(THREE, [1, np.float32(0.5), np.int64(2)], [])
    assert [type(score) for score in ensemble.start] == [float] * 3
    assert ensemble.trees == ()


OTHER = replace(TWO, classes=("yes", "no"))
WRONG = {
    "too few starting scores": lambda: Ensemble(TWO, (), ()),
    "too many": lambda: Ensemble(TWO, (0.0, 0.0), ()),
    "one for three classes": lambda: Ensemble(THREE, (0.0,), ()),
    "not a number": lambda: Ensemble(TWO, (math.nan,), ()),
    "infinite": lambda: Ensemble(TWO, (math.inf,), ()),
    "a tree of another schema": lambda: Ensemble(TWO, (0.0,), (stump(OTHER, (0.0,), (1.0,)),)),
    "a tree of answers": lambda: Ensemble(TWO, (0.0,), (Tree(TWO, (Node(value=(1.0, 0.0)),)),)),
    "a tree of means": lambda: Ensemble(NUMBER, (0.0,), (Tree(NUMBER, (Node(value=(1.0,)),)),)),
    "sums that overflow": lambda: Ensemble(TWO, (9e306,), (stump(TWO, (-2e306,), (0.0,)),)),
    "starts that overflow": lambda: Ensemble(TWO, (1.1e307,), ()),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_no_ensemble(make):
    with pytest.raises(ModelFileError):
        make()


def document() -> dict:
    return json.loads(json.dumps(Model(BOTH, CARD, "boosting").to_dict()))


TREE = {"nodes": [{"value": [1.0, 0.0]}]}
BAD_FIELDS = [
    ("ensemble", DELETE, "either a tree or an ensemble"),
    ("tree", TREE, "either a tree or an ensemble"),
    ("ensemble", [], "lacks fields"),
    ("ensemble", None, "lacks fields"),
    ("ensemble.extra", 1, "not known"),
    ("ensemble.start", DELETE, "lacks fields"),
    ("ensemble.trees", DELETE, "lacks fields"),
    ("ensemble.start", 0.5, "lists"),
    ("ensemble.start", {}, "lists"),
    ("ensemble.trees", {}, "lists"),
    ("ensemble.start", [], "starting score"),
    ("ensemble.start", [0.0, 0.0], "starting score"),
    ("ensemble.start", [True], "no number"),
    ("ensemble.start", ["0"], "no number"),
    ("ensemble.start", [None], "no number"),
    ("ensemble.start", [HUGE], "too large"),
    ("ensemble.start", [1e308], "too large"),
    ("ensemble.start", [math.nan], "NaN"),
    ("ensemble.start", [math.inf], "infinity"),
    ("ensemble.trees.0", [], "the tree"),
    ("ensemble.trees.0", TREE, "one value per class"),
    ("ensemble.trees.0.start", [0.0], "does not know"),
    ("ensemble.trees.0.nodes", [], "at least one node"),
    ("ensemble.trees.0.nodes.1.value", [], "scores"),
    ("ensemble.trees.0.nodes.1.value", [0.5, 0.5], "scores"),
    ("ensemble.trees.0.nodes.1.value", [math.nan], "NaN"),
    ("ensemble.trees.0.nodes.1.value", [HUGE], "too large"),
    ("ensemble.trees.0.nodes.1.value", [1e308], "too large"),
    ("ensemble.trees.0.nodes.1.value", [False], "number"),
    ("ensemble.trees.0.nodes.0.cut.feature", "sex", "numeric feature"),
    ("ensemble.trees.1.nodes.0.children", [0, 1], "form a tree"),
    ("schema.classes", ["a", "b", "c"], "scores"),
    ("schema.features.age", DELETE, "numeric feature"),
]


@pytest.mark.parametrize(
    ("where", "what", "says"), BAD_FIELDS, ids=lambda v: str(v)[:30] if v is not DELETE else "-"
)
def test_one_wrong_field(tmp_path, where, what, says):
    plain = document()
    put(plain, where, what)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(plain))
    assert says in refusal(path)


def test_infinity_by_a_large_exponent_is_refused(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document()).replace("-0.5", "1e999"))
    assert "finite" in refusal(path)
