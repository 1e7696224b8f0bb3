"""The same values give the same codes, whatever kind of table holds them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet import Categorical, Numeric, Schema
from privet.engines import View, encoding
from privet.engines.blocks import Block
from privet.engines.encoding import Encoder
from privet.reading import Columns

FAST = pytest.mark.parametrize("fast", [False, True], ids=["numpy", "numba"])
ROWS = 400

MIXED = Schema(
    {
        "age": Numeric(0, 120, bins=12),
        "dose": Numeric(-1, 1, edges=[-0.5, 0.1, 0.2]),
        "sex": Categorical(["f", "m"]),
        "code": Categorical([1, 2, 30]),
    },
    target="y",
    classes=[0, 1],
)


def encode(columns, view, *, fast):
    """Return the codes of a table as a view sees them."""
    encoder = Encoder(view.schema)
    found = encoder.empty(len(columns))
    encoder.encode(columns, found.codes, fast=fast)
    assert sum(kept.nbytes for kept in found.arrays) == len(columns) * encoder.row_bytes
    return Block(view.schema, found.codes, found.target, fast=fast).codes(view)


def mixed_values():
    rng = np.random.default_rng(0)
    age = [None if rng.random() < 0.1 else int(value) for value in rng.integers(-5, 130, ROWS)]
    dose = [None if rng.random() < 0.1 else float(value) for value in rng.uniform(-1.5, 1.5, ROWS)]
    sex = [[None, "f", "m", "x"][k] for k in rng.integers(0, 4, ROWS)]
    code = [[None, 1, 2, 30, 4][k] for k in rng.integers(0, 5, ROWS)]
    return {"age": age, "dose": dose, "sex": sex, "code": code}


def mixed_codes():
    """Encode by hand."""
    values = mixed_values()
    age = [12 if v is None else min(max(v // 10, 0), 11) for v in values["age"]]
    dose = [
        4 if v is None else int(np.sum(v >= np.array([-0.5, 0.1, 0.2]))) for v in values["dose"]
    ]
    sex = [{"f": 0, "m": 1}.get(v, 2) for v in values["sex"]]
    code = [{1: 0, 2: 1, 30: 2}.get(v, 3) for v in values["code"]]
    return np.array([age, dose, sex, code])


def as_pandas_nullable():
    frame = pd.DataFrame(mixed_values(), dtype=object)
    kinds = {"age": "Int64", "dose": "Float64", "sex": "string", "code": "Int16"}
    return frame.astype(kinds)


def as_pandas_categorical():
    frame = pd.DataFrame(mixed_values())
    return frame.assign(sex=frame["sex"].astype("category"))


TABLES = {
    "pandas": lambda: pd.DataFrame(mixed_values()),
    "pandas nullable": as_pandas_nullable,
    "pandas categorical": as_pandas_categorical,
    "pandas object": lambda: pd.DataFrame(mixed_values(), dtype=object),
    "pandas arrow": lambda: pa.table(mixed_values()).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(mixed_values()),
    "polars categorical": lambda: pl.DataFrame(mixed_values()).with_columns(
        pl.col("sex").cast(pl.Categorical)
    ),
    "pyarrow": lambda: pa.table(mixed_values()),
    "pyarrow chunked": lambda: pa.concat_tables(
        [pa.table(mixed_values()).slice(0, 130), pa.table(mixed_values()).slice(130)]
    ),
    "numpy objects": lambda: pd.DataFrame(mixed_values(), dtype=object).to_numpy(),
}


@FAST
@pytest.mark.parametrize("kind", TABLES)
def test_mixed_tables(kind, fast):
    codes = encode(Columns.of(TABLES[kind](), MIXED), View.of_bins(MIXED), fast=fast)
    assert np.array_equal(codes, mixed_codes())


def numeric_schema(bins):
    features = {f"x{j}": Numeric(0, 1 + j, bins=bins) for j in range(5)}
    return Schema(features, target="y", classes=[0, 1])


def numeric_values():
    """Return numbers that float32 holds exactly, some on cuts, some missing or infinite."""
    table = np.random.default_rng(1).integers(-8, 48, size=(ROWS, 5)) / 8
    table[::17, 1], table[::13, 2], table[::19, 3] = np.nan, np.inf, -np.inf
    return table


ARRAYS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every second row": lambda table: np.repeat(table, 2, axis=0)[::2],
    "float32": lambda table: table.astype(np.float32),
    "float16": lambda table: table.astype(np.float16),
    "pandas": lambda table: pd.DataFrame(table, columns=[f"x{j}" for j in range(5)]),
    "pandas float32": lambda table: pd.DataFrame(
        table.astype(np.float32), columns=[f"x{j}" for j in range(5)]
    ),
    "polars": lambda table: pl.DataFrame(table, schema=[f"x{j}" for j in range(5)]),
    "pyarrow": lambda table: pa.table({f"x{j}": table[:, j] for j in range(5)}),
    "lists": lambda table: table.tolist(),
}


@FAST
@pytest.mark.parametrize("bins", [1, 16, 400])
@pytest.mark.parametrize("kind", ARRAYS)
def test_numbers(kind, bins, fast, monkeypatch):
    monkeypatch.setattr(encoding, "_CHUNK", 64)
    monkeypatch.setattr(encoding, "workers", lambda: 3)
    schema, table = numeric_schema(bins), numeric_values()
    expected = [
        np.where(np.isnan(x), bins, np.searchsorted(feature.cuts, x, side="right"))
        for feature, x in zip(schema.features.values(), table.T, strict=True)
    ]
    codes = encode(Columns.of(ARRAYS[kind](table), schema), View.of_bins(schema), fast=fast)
    assert codes.dtype == (np.uint8 if bins < 256 else np.uint16)
    assert np.array_equal(codes, expected)


@FAST
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32])
@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, pl.from_numpy, np.asfortranarray])
def test_whole_numbers(dtype, wrap, fast):
    schema = Schema({f"{j}": Numeric(0, 10, bins=5) for j in range(3)}, target="y", classes=[0, 1])
    table = np.random.default_rng(2).integers(0, 12, size=(50, 3)).astype(dtype)
    given = wrap(table)
    if isinstance(given, pl.DataFrame):
        given = given.rename(dict(zip(given.columns, schema.names, strict=True)))
    codes = encode(Columns.of(given, schema), View.of_bins(schema), fast=fast)
    assert np.array_equal(codes, np.minimum(table.T // 2, 4))
