"""What is said of columns' types before anything is spent: by types alone, never by values."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from privet import Categorical, Numeric, PrivateTreeClassifier, Schema
from privet.errors import BudgetExceeded, ColumnTypeWarning
from privet.reading import Columns, check_types, read_table
from privet.tables import PrivateCells

SCHEMA = Schema(
    {"x": Numeric(0, 1), "ward": Categorical(["north", "south"])},
    "state",
    classes=["alive", "dead"],
)


def said(frame, schema=SCHEMA):
    columns = Columns.of(frame, schema)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_types(columns, columns.target(schema), schema)
    assert all(warning.category is ColumnTypeWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("values", "word"),
    [([0, 1], "whole numbers"), ([0.5, 1.0], "numbers"), ([True, False], "truth values")],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_labels_of_a_type_that_holds_no_class(make, values, word):
    (message,) = said(make({"x": [0.1, 0.2], "ward": ["north", "south"], "state": values}))
    assert message.startswith(f"the target 'state' holds {word}, and the schema's classes are text")
    assert "every record is left out" in message
    (message,) = said(make({"x": [0.1, 0.2], "ward": values, "state": ["alive", "dead"]}))
    assert message.startswith(f"column 'ward' holds {word}")


@pytest.mark.parametrize("classes", [["0", "1"], [0, 1], [1, "unknown"], ["1.5", "dead"]])
def test_numbers_may_be_spelled(classes):
    schema = Schema({"x": Numeric(0, 1)}, "state", classes=classes)
    assert said(pa.table({"x": [0.1, 0.2], "state": [0, 1]}), schema) == []


def test_truth_values_may_be_spelled():
    frame = pa.table({"x": [0.1, 0.2], "state": [True, False]})
    assert said(frame, Schema({"x": Numeric(0, 1)}, "state", classes=["False", "True"])) == []
    assert said(frame, Schema({"x": Numeric(0, 1)}, "state", classes=[0, 1])) == []


def test_text_where_numbers_belong():
    schema = Schema({"x": Numeric(0, 1)}, "state", classes=[0, 1])
    messages = said(pa.table({"x": ["0.1", "a"], "state": ["0", "yes"]}), schema)
    assert ["holds text where the schema has numbers" in message for message in messages] == [
        True
    ] * 2


@pytest.mark.parametrize(
    "states", [["alive", "dead"], [0, 1], [None, None], ["alive", 1], [True, "x"]]
)
def test_what_declares_no_type_is_not_spoken_of(states, tmp_path):
    """Lists, object columns and CSV files: whatever were said would be about values."""
    objects = pd.DataFrame({"x": [0.1, 0.2], "ward": states, "state": states}, dtype=object)
    assert said(objects) == []
    lines = "".join(f"0.1,{state},{state}\n" for state in states)
    (tmp_path / "rows.csv").write_text(f"x,ward,state\n{lines}")
    assert said(read_table(tmp_path / "rows.csv", SCHEMA)) == []
    rows = [[0.1, state] for state in states]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateTreeClassifier(1.0, SCHEMA, n_rows=2).fit(rows, states)
    assert model.privacy_.private


@pytest.mark.parametrize("values", [[0, 1], [7, 7], []])
def test_it_does_not_depend_on_values(values):
    frame = pd.DataFrame(
        {"x": np.zeros(len(values)), "ward": ["north"] * len(values), "state": values}
    ).astype({"state": "int64", "ward": "category"})
    if len(values):
        assert len(said(frame)) == 1
    else:
        frame["ward"] = frame["ward"].astype("string")
        assert len(said(frame)) == 1


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_it_is_said_before_anything_is_asked(kind, monkeypatch, tmp_path):
    frame = pa.table({"x": [0.1] * 9, "ward": ["north"] * 9, "state": [1] * 9})
    pyarrow.parquet.write_table(frame, tmp_path / "rows.parquet")

    def refuse(*_):
        raise BudgetExceeded("asked", left="nothing")

    monkeypatch.setattr(PrivateCells, "_charge", refuse)
    given = frame if kind == "frame" else tmp_path / "rows.parquet"
    with (
        pytest.warns(ColumnTypeWarning, match="made of noise alone"),
        pytest.raises(BudgetExceeded, match="asked"),
    ):
        PrivateTreeClassifier(1.0, SCHEMA).fit(given)
