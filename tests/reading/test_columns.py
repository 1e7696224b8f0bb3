"""Columns of every kind are read by the schema's rules, and no value can make that fail."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet.errors import ColumnTypeError, DataError, SchemaError
from privet.reading import Columns
from privet.schema import Categorical, Numeric, Schema

HUGE = [1, 2**53 + 1, -(2**63), 2**63 - 1]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.array(HUGE, pa.int64())}),
        pa.table({"x": pa.array([*HUGE, None], pa.int64())}),
        pa.table({"x": pa.array([1, 2**64 - 1], pa.uint64())}),
        pd.DataFrame({"x": HUGE}),
        pd.DataFrame({"x": pd.array([*HUGE, None], dtype="Int64")}),
        pd.DataFrame({"x": pd.array([*HUGE, None], dtype="int64[pyarrow]")}),
        pl.DataFrame({"x": HUGE}),
        pl.DataFrame({"x": [*HUGE, None]}),
        pl.DataFrame({"x": [decimal.Decimal("1.5"), None]}),
        pa.table({"x": pa.array([decimal.Decimal("1.5"), None])}),
        pa.table({"x": pa.array([None, None])}),
        pd.DataFrame({"x": [1, "two", None, 2**70, b"3"]}, dtype=object),
    ],
)
def test_no_number_is_too_large_to_be_read(frame):
    columns = Columns.of(frame)
    numbers = columns.numbers("x")
    assert numbers.dtype == np.float64
    assert len(numbers) == len(columns)
    codes = columns.codes("x", ["1", "b"])
    assert len(codes) == len(columns)


def test_missing_numbers_are_nan_in_every_kind_of_table():
    for frame in (
        pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"x": [1.0, None]}),
        pl.DataFrame({"x": [1, None]}),
        pa.table({"x": pa.array([1, None], pa.int32())}),
        pa.table({"x": pa.array([True, None])}),
    ):
        numbers = Columns.of(frame).numbers("x")
        assert numbers[0] == 1
        assert np.isnan(numbers[1])


def test_a_category_is_found_whatever_type_its_column_has():
    mixed = ["a", 2.0, 3]
    for column in (["a", "2", "3", "b"], ["a", 2.0, 3, None]):
        codes = Columns.of(pd.DataFrame({"x": column})).codes("x", mixed)
        assert codes.tolist() == [0, 1, 2, 3]
    numbers = [0, 1]
    for column in ([0, 1, 7], [0.0, 1.0, np.nan], [False, True, None], ["0", "1.0", "x"]):
        frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
        assert Columns.of(frame).codes("x", numbers).tolist() == [0, 1, 2]


def test_what_is_no_table_is_refused():
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    for thing in (None, "text", {"x": [1]}, 3):
        with pytest.raises((ColumnTypeError, DataError)):
            Columns.of(thing, schema)
    with pytest.raises(DataError, match="same name"):
        Columns.of(pd.DataFrame([[1, 2]], columns=["x", "x"]), schema)
    with pytest.raises(ColumnTypeError, match="collect it first"):
        Columns.of(pl.DataFrame({"x": [0.5]}).lazy(), schema)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Numeric(0, 10**400),
        lambda: Numeric(0, 1, bins=True),
        lambda: Categorical([1, 10**400]),
        lambda: Categorical(["a", 2.0, 2]),
    ],
)
def test_absurd_numbers_in_a_schema_are_refused(build):
    with pytest.raises(SchemaError):
        build()
