"""The SQL expression gives what the model gives, on real rows in DuckDB."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from privet.ensemble import Ensemble
from privet.errors import SchemaError
from privet.export import to_sql
from privet.schema import Categorical, Numeric, Schema, all_numbers
from privet.tree import Cut, Grouping, Node, Tree

from ..tree.strategies import ensembles_with_tables, trees_with_tables  # noqa: TID252

DATABASE = duckdb.connect()


def in_duckdb(expression: str, table: pa.Table) -> list:
    DATABASE.register("t", table)
    try:
        return [row[0] for row in DATABASE.execute(f"SELECT {expression} FROM t").fetchall()]
    finally:
        DATABASE.unregister("t")


def answers(model: Tree | Ensemble, table: pa.Table) -> list:
    values = model.predict_value(table)
    classes = model.schema.classes
    if classes is None:
        return values[:, 0].tolist()
    found = [classes[best] for best in np.argmax(values, axis=1)]
    return found if all_numbers(classes) else [str(value) for value in found]


@settings(deadline=None)
@given(trees_with_tables())
def test_duckdb_predicts_what_the_tree_predicts(case):
    tree, table = case
    assert in_duckdb(to_sql(tree), table) == answers(tree, table)


@given(ensembles_with_tables())
def test_duckdb_predicts_what_the_ensemble_predicts(case):
    ensemble, table = case
    assert in_duckdb(to_sql(ensemble), table) == answers(ensemble, table)


@settings(max_examples=50)
@given(trees_with_tables(max_rows=3) | ensembles_with_tables(max_rows=3))
def test_columns_can_have_a_prefix(case):
    model, table = case
    assert in_duckdb(to_sql(model, prefix="t"), table) == in_duckdb(to_sql(model), table)


def two_leaves(classes) -> Tree:
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=classes)
    return Tree(
        schema,
        (Node(Cut("x", (0.1,), 0), (1, 2)), Node(value=(1.0, 0.0)), Node(value=(0.0, 1.0))),
    )


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (["it's", 'a "b"'], "VARCHAR"),
        ([0, 1], "INTEGER"),
        ([0, 2**40], "BIGINT"),
        ([False, True], "BOOLEAN"),
        ([0.5, 2.0], "DOUBLE"),
        ([1, 2.5], "DOUBLE"),
        ([True, 2], "DOUBLE"),
        (["a", 1], "VARCHAR"),
    ],
)
def test_classes_have_a_type(classes, kind):
    tree = two_leaves(classes)
    for model in (tree, Ensemble(tree.schema, (0.5,), ())):
        expression = f"typeof({to_sql(model)})"
        assert in_duckdb(expression, pa.table({"x": [0.0, 1.0]})) == [kind] * 2


def test_means_are_doubles_and_exact():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1))
    means = [1 / 3, 0.1, 5e-324, 1e-7, 0.30000000000000004]
    nodes = [Node(Cut("x", (0.2, 0.4, 0.6, 0.8), 0), (1, 2, 3, 4, 5))]
    tree = Tree(schema, (*nodes, *(Node(value=(mean,)) for mean in means)))
    table = pa.table({"x": [0.1, 0.3, 0.5, 0.7, 0.9]})
    assert in_duckdb(to_sql(tree), table) == means
    assert in_duckdb(f"typeof({to_sql(tree)})", table) == ["DOUBLE"] * 5


def test_float32_is_compared_as_the_double_that_it_is():
    below = np.nextafter(np.float32(0.1), np.float32(0))
    table = pa.table({"x": pa.array([np.float32(0.1), below, None, np.float32(np.nan)])})
    assert table["x"].type == pa.float32()
    assert in_duckdb(to_sql(two_leaves(["low", "high"])), table) == ["high", "low", "low", "low"]


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_missing_numbers_go_where_the_test_says(missing):
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b", "c", "d"])
    children = range(1, 5 if missing == 3 else 4)
    nodes = [Node(Cut("x", (0.2, 0.4), missing), tuple(children))]
    nodes += [Node(value=tuple(float(c == child) for c in range(1, 5))) for child in children]
    table = pa.table({"x": [None, np.nan, -np.inf, 0.2, np.inf]})
    tree = Tree(schema, tuple(nodes))
    lost = "abcd"[missing]
    assert in_duckdb(to_sql(tree), table) == [lost, lost, "a", "b", "c"] == answers(tree, table)


def test_a_whole_multiway_tree_is_written_once():
    """Where missing values share a child, nothing is repeated: the text stays linear."""
    depth = 60
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 100))
    nodes = []
    for level in range(depth):
        nodes.append(Node(Cut("x", (0.5,), level % 2), (2 * level + 1, 2 * level + 2)))
        nodes.append(Node(value=(float(level),)))
    nodes.append(Node(value=(99.5,)))
    order = [nodes[0]]
    for level in range(depth):
        order += [nodes[2 * level + 1], nodes[2 * level + 2]]
    tree = Tree(schema, tuple(order))
    expression = to_sql(tree)
    assert len(expression.splitlines()) < 4 * depth
    table = pa.table({"x": [0.1, 0.9, None]})
    assert in_duckdb(expression, table) == answers(tree, table)


def test_a_single_answer_needs_no_case():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b"])
    assert to_sql(Tree(schema, (Node(value=(0.5, 0.5)),))) == "'a'"


@pytest.mark.parametrize("bad", ["nul\0", "half\ud800"])
def test_what_sql_cannot_write_is_refused(bad):
    categorical = Schema({"x": Categorical([bad, "b"])}, "y", bounds=(0, 1))
    named = Schema({bad: Categorical(["a", "b"])}, "y", bounds=(0, 1))
    for schema in (categorical, named):
        test = Grouping(schema.names[0], (0, 1), 1)
        tree = Tree(schema, (Node(test, (1, 2)), Node(value=(0.0,)), Node(value=(1.0,))))
        scores = Tree(schema, tree.nodes, 1)
        for model in (tree, Ensemble(schema, (0.0,), (scores,))):
            with pytest.raises(SchemaError, match="SQL cannot write"):
                to_sql(model)


def test_scores_are_added_in_the_order_of_the_trees(uneven_sums):
    table = pa.table({"x": [0.1, 0.9]})
    for ensemble in uneven_sums:
        assert in_duckdb(to_sql(ensemble), table) == answers(ensemble, table)


def test_many_trees():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 100))
    nodes = Node(Cut("x", (0.5,), 0), (1, 2)), Node(value=(0.1,)), Node(value=(0.01,))
    ensemble = Ensemble(schema, (0.0,), (Tree(schema, nodes, 1),) * 300)
    table = pa.table({"x": [0.1, 0.9]})
    assert in_duckdb(to_sql(ensemble), table) == answers(ensemble, table)


# ---------------------------------------------------------------------------------- probabilities


@settings(deadline=None, max_examples=60)
@given(trees_with_tables(max_rows=5) | ensembles_with_tables(max_rows=5))
def test_duckdb_gives_the_probabilities_of_the_model(case):
    model, table = case
    if model.schema.classes is None:
        return
    expected = model.predict_value(table)
    for place, name in enumerate(model.schema.classes):
        found = in_duckdb(to_sql(model, probability_of=name), table)
        if isinstance(model, Tree):
            assert found == expected[:, place].tolist()
        else:
            np.testing.assert_allclose(found, expected[:, place], atol=1e-12)


def test_probabilities_of_scores_that_are_too_large_for_a_power():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b"])
    for score in (-1e5, 1e5):
        expression = to_sql(Ensemble(schema, (score,), ()), probability_of="b")
        (found,) = in_duckdb(expression, pa.table({"x": [0.5]}))
        assert found == pytest.approx(float(score > 0), abs=1e-300)


def test_only_classes_have_a_probability():
    with pytest.raises(SchemaError, match="classes"):
        to_sql(two_leaves(["low", "high"]), probability_of="medium")
