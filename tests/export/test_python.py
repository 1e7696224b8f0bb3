"""The Python function gives what the model gives, and holds no code from names or values."""

import ast
import enum
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.ensemble import Ensemble
from privet.export import to_python
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

from ..tree.strategies import ensembles_with_tables, trees_with_tables  # noqa: TID252


def function(model: Tree | Ensemble, name: str = "predict"):
    space: dict = {}
    exec(compile(to_python(model, name), "exported", "exec"), space)
    return space[name]


def answers(model: Tree | Ensemble, table) -> list:
    values = model.predict_value(table)
    if model.schema.classes is None:
        return values[:, 0].tolist()
    return [model.schema.classes[best] for best in np.argmax(values, axis=1)]


def same(found: list, expected: list) -> bool:
    return [(type(a), a) for a in found] == [(type(b), b) for b in expected]


@settings(deadline=None)
@given(trees_with_tables())
def test_the_function_predicts_what_the_tree_predicts(case):
    tree, table = case
    predict = function(tree)
    assert same([predict(row) for row in table.to_pylist()], answers(tree, table))


@given(ensembles_with_tables())
def test_the_function_predicts_what_the_ensemble_predicts(case):
    ensemble, table = case
    predict = function(ensemble)
    assert same([predict(row) for row in table.to_pylist()], answers(ensemble, table))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text("1e.-+ truefalsnaiTB_", max_size=6),
    st.binary(max_size=3),
    st.just([1]),
)


@settings(deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=10))
def test_any_value_is_read_by_the_rules_of_object_columns(rows):
    schema = Schema(
        {
            "n": Numeric(-5, 5),
            "c": Categorical([0, 1, 2.5]),
            "t": Categorical(["1", "True", "a", "2.5"]),
        },
        "y",
        bounds=(0, 100),
    )
    nodes = [Node(Cut("n", (0.0, 1.0), 3), (1, 2, 3, 4))]
    nodes += [
        Node(Grouping("c", (0, 1, 2), 3), tuple(range(5 + 4 * j, 9 + 4 * j))) for j in range(4)
    ]
    nodes += [
        Node(Grouping("t", (0, 1, 2, 3), 4), tuple(range(21 + 5 * j, 26 + 5 * j)))
        for j in range(16)
    ]
    nodes += [Node(value=(float(j),)) for j in range(80)]
    tree = Tree(schema, tuple(nodes))
    array = np.empty((len(rows), 3), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    predict = function(tree)
    found = [predict(dict(zip("nct", row, strict=True))) for row in rows]
    assert found == tree.predict_value(array)[:, 0].tolist()


HOSTILE = [
    "'); import os; os.abort()  #",
    '"""\nraise SystemExit\n"""',
    "x']\n    raise SystemExit\n#",
    "\\",
    "{__import__('os').abort()}",
    "\u2028raise SystemExit",
    "\ud800",
    "\0",
    "\r\nraise SystemExit",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_values_are_data(text):
    schema = Schema({text: Categorical([text, "b"])}, "y" + text, classes=[text, "other"])
    nodes = Node(Grouping(text, (0, 1), 1), (1, 2)), Node(value=(1.0, 0.0)), Node(value=(0.0, 1.0))
    tree = Tree(schema, nodes)
    module = ast.parse(to_python(tree))
    assert [type(part) for part in module.body] == [ast.FunctionDef] * 2
    predict = function(tree)
    assert predict({text: text}) == text
    assert predict({text: None}) == "other"
    scores = nodes[0], Node(value=(-1.0,)), Node(value=(1.0,))
    ensemble = Ensemble(schema, (0.0,), (Tree(schema, scores, 1),))
    module = ast.parse(to_python(ensemble))
    assert [type(part) for part in module.body] == [ast.FunctionDef] * 3
    assert function(ensemble)({text: text}) == text


@pytest.mark.parametrize(
    "name", ["", "two words", "f():pass\ndef g", "class", "float", "_text", "_number", "1x"]
)
def test_names_that_a_function_cannot_have(name):
    with pytest.raises(ValueError, match="identifier"):
        to_python(
            Tree(Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1)), (Node(value=(0.0,)),)), name
        )


def test_a_missing_column_is_an_error():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1))
    nodes = Node(Cut("x", (0.5,), 0), (1, 2)), Node(value=(0.0,)), Node(value=(1.0,))
    with pytest.raises(KeyError):
        function(Tree(schema, nodes))({})


@pytest.mark.parametrize("side", [0, 1])
def test_deep_trees_compile(side):
    depth = 400
    schema = Schema({"x": Numeric(0, 1000)}, "y", bounds=(0, 1000))
    nodes = []
    for level in range(depth):
        inner, leaf = (1, 2) if level % 3 else (2, 1)
        edge = 1000.0 - level if inner == 1 else 1.0 + level
        nodes.append((Node(Cut("x", (edge,), side), (2 * level + 1, 2 * level + 2)), inner, leaf))
    flat: list = [None] * (2 * depth + 1)
    place = 0
    for level, (node, inner, leaf) in enumerate(nodes):
        flat[place] = Node(node.test, (2 * level + 1, 2 * level + 2))
        flat[2 * level + leaf] = Node(value=(float(level),))
        place = 2 * level + inner
    flat[place] = Node(value=(1000.0,))
    tree = Tree(schema, tuple(flat))
    scores = Tree(schema, tree.nodes, 1)
    rows = [{"x": float(x)} for x in (*range(0, 1000, 7), math.nan)]
    table = np.array([[row["x"]] for row in rows])
    for model in (tree, Ensemble(schema, (1.0,), (scores, scores))):
        predict = function(model)
        assert [predict(row) for row in rows] == model.predict_value(table)[:, 0].tolist()


def test_values_of_enumerations_are_written_plainly():
    class Colour(str, enum.Enum):  # noqa: UP042
        RED = "red"
        BLUE = "blue"

    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[Colour.RED, Colour.BLUE])
    assert function(Tree(schema, (Node(value=(1.0, 0.0)),)))({}) == "red"


def test_scores_are_added_in_the_order_of_the_trees(uneven_sums):
    for ensemble in uneven_sums:
        predict = function(ensemble)
        assert [predict({"x": 0.1}), predict({"x": 0.9})] == answers(ensemble, [[0.1], [0.9]])


def test_many_trees():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1000))
    nodes = Node(Cut("x", (0.5,), 0), (1, 2)), Node(value=(0.1,)), Node(value=(0.01,))
    ensemble = Ensemble(schema, (0.0,), (Tree(schema, nodes, 1),) * 3000)
    predict = function(ensemble)
    assert [predict({"x": 0.1}), predict({"x": 0.9})] == answers(ensemble, [[0.1], [0.9]])


@pytest.mark.parametrize(
    "name", ["value", "row", "tree", "score", "scores", "number", "text", "_1"]
)
def test_a_function_can_share_its_name_with_a_variable(name, boosted):
    row = {"age": 70, "sex": "m"}
    assert function(boosted, name)(row) == "yes"
