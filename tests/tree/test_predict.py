"""Prediction against a slow reference that follows one row at a time."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal

from privet.errors import DataError
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

from .reference import reference_leaves
from .strategies import trees_with_tables


@settings(deadline=None)
@given(trees_with_tables())
def test_rows_reach_the_leaf_of_the_reference(case):
    tree, table = case
    assert tree.apply(table).tolist() == reference_leaves(tree, table)


@settings(deadline=None)
@given(trees_with_tables())
def test_values_are_those_of_the_leaves(case):
    tree, table = case
    expected = [tree.nodes[leaf].value for leaf in reference_leaves(tree, table)]
    width = 1 if tree.schema.classes is None else len(tree.schema.classes)
    assert_array_equal(tree.predict_value(table), np.array(expected).reshape(-1, width))


@settings(deadline=None)
@given(trees_with_tables())
def test_all_kinds_of_tables_agree(case):
    tree, table = case
    expected = tree.apply(table)
    assert_array_equal(tree.apply(pl.from_arrow(table)), expected)
    rows = table.to_pylist()
    objects = np.array([list(row.values()) for row in rows], dtype=object)
    assert_array_equal(tree.apply(objects.reshape(len(rows), table.num_columns)), expected)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    as_objects = pd.DataFrame({name: pd.Series(c, dtype=object) for name, c in columns.items()})
    assert_array_equal(tree.apply(as_objects), expected)
    assert_array_equal(tree.apply(table.to_pandas(types_mapper=pd.ArrowDtype)), expected)


MIXED = Schema(
    {"age": Numeric(0, 120), "ward": Categorical(["a", "b", "c"]), "dose": Numeric(-1, 1)},
    "outcome",
    classes=["no", "yes"],
)
MULTIWAY = Tree(
    MIXED,
    (
        Node(Cut("age", (18.0, 40.0, 65.0), missing=4), (1, 2, 3, 4, 5)),
        Node(value=(1.0, 0.0)),
        Node(Grouping("ward", (0, 1, 1), other=2), (6, 7, 8)),
        Node(Cut("dose", (0.1,), missing=0), (9, 10)),
        Node(value=(0.25, 0.75)),
        Node(value=(0.5, 0.5)),
        *(Node(value=(share, 1 - share)) for share in (0.0, 0.1, 0.2, 0.3, 0.4)),
    ),
)


def mixed_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "age": pa.array(rng.integers(-10, 140, rows), mask=rng.random(rows) < 0.1),
            "ward": rng.choice(["a", "b", "c", "d"], rows),
            "dose": rng.choice([0.1, -0.5, np.inf, -np.inf, np.nan], rows),
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 65_535, 65_536, 65_537, 140_000])
def test_blocks_fit_together(rows):
    table = mixed_table(rows)
    assert MULTIWAY.apply(table).tolist() == reference_leaves(MULTIWAY, table)


def test_pandas_with_its_own_missing_values_agrees():
    table = mixed_table(2_000)
    frame = table.to_pandas()
    frame["age"] = frame["age"].astype("Int64")
    frame["ward"] = frame["ward"].astype("category")
    assert_array_equal(MULTIWAY.apply(frame), MULTIWAY.apply(table))


def test_edges_belong_to_the_interval_above_them():
    ages = pa.table({"age": [17.999, 18, 39, 40, 65, None], "ward": ["a"] * 6, "dose": [0.0] * 6})
    assert MULTIWAY.apply(ages).tolist() == [1, 6, 6, 9, 4, 5]


def test_float32_is_compared_as_the_double_that_it_is():
    doses = np.array([0.1, np.nextafter(np.float32(0.1), np.float32(0))], dtype=np.float32)
    table = pd.DataFrame({"age": 50.0, "ward": "a", "dose": doses})
    assert MULTIWAY.apply(table).tolist() == [10, 9]  # float32(0.1) is above 0.1


def test_a_single_leaf_predicts_for_every_row():
    tree = Tree(MIXED, (Node(value=(0.3, 0.7)),))
    assert tree.depth == 0
    assert tree.predict_value(mixed_table(3)).tolist() == [[0.3, 0.7]] * 3


def test_a_column_is_missing():
    with pytest.raises(DataError, match="no column 'ward'"):
        MULTIWAY.apply(mixed_table(3).drop_columns("ward"))


def test_shape():
    assert (MULTIWAY.depth, MULTIWAY.n_leaves) == (2, 8)
    assert list(MULTIWAY.leaves()) == [1, 4, 5, 6, 7, 8, 9, 10]
