"""Neighbouring tables of the statistical audit: hashes of rows, probes, a record more."""

from __future__ import annotations

import datetime
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privet.errors import AuditError
from privet.reading import Column, Columns, Numbers, column_of
from privet.schema import Numeric, Schema

#: A person of whom a table has no record.
_NOBODY = -2_000_000_011
#: How many differing and common rows the default probes have.
DIFFERING, COMMON = 4, 3


def row_keys(X: Any, y: Any) -> NDArray[np.uint64]:
    """Return a hash of every row."""
    columns = Columns.of(X)
    parts = [columns.column(name) for name in columns.names]
    if y is not None:
        parts.append(column_of(y, "y"))
    if any(len(part) != len(columns) for part in parts):
        raise AuditError("X and y have different numbers of rows")
    keys = np.full(len(columns), zlib.crc32(repr(columns.names).encode()), dtype=np.uint64)
    for part in parts:
        keys = _mixed(keys ^ _value_keys(part))
    return keys


def _value_keys(column: Column) -> NDArray[np.uint64]:
    if isinstance(column, Numbers) or column.holds == "dates":
        numbers = (column.numbers() if isinstance(column, Numbers) else column.days()) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    texts, which = column.texts()
    known = np.array(
        [
            int.from_bytes(
                hashlib.blake2b(repr(text).encode("utf-8", "replace"), digest_size=8).digest()
            )
            for text in texts
        ],
        dtype=np.uint64,
    )
    return known if which is None else known[which]


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all others (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def choose_probes(one: Any, other: Any, keys: Sequence[NDArray[np.uint64]]) -> Any:
    """Return rows in which the tables differ, the longer table's first, and a few common ones."""
    shorter = min(map(len, keys))
    same = keys[0][:shorter] == keys[1][:shorter]
    before = shorter if same.all() else int(same.argmin())
    same = keys[0][::-1][: shorter - before] == keys[1][::-1][: shorter - before]
    after = shorter - before if same.all() else int(same.argmin())
    longer, shorter_one = (one, other) if len(keys[0]) > len(keys[1]) else (other, one)
    rows = max(map(len, keys))
    places = np.arange(before, rows - after)[:DIFFERING]
    common = np.setdiff1d(np.linspace(0, rows - 1, COMMON).astype(np.intp), places)
    probes = take(longer, np.concatenate([places, common]))
    replaced = np.arange(before, shorter - after)[:DIFFERING]
    return _join(probes, take(shorter_one, replaced)) if len(replaced) else probes


def take(table: Any, places: NDArray[np.intp]) -> Any:
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[places.tolist()].to_native()
    return np.asarray(table)[places]


def _join(table: Any, rows: Any) -> Any:
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.concat([frame, nw.from_native(rows, eager_only=True)]).to_native()
    return np.concatenate([np.asarray(table), np.asarray(rows)])


def like(values: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Return values in an array's type: joining them must not change what was there before."""
    if array.dtype.kind in "US":
        return np.asarray(values, dtype=array.dtype.kind)
    try:
        cast = np.asarray(values, dtype=array.dtype)
        fits = array.dtype.kind == "O" or np.array_equal(cast, np.asarray(values))
    except (ValueError, TypeError, OverflowError):
        fits = False
    if not fits:
        raise AuditError("the record does not fit the type of the table")
    return cast


def stand_out(
    schema: Schema, X: Any, record: Any, label: Any, *, inside: bool
) -> tuple[Any, Any, Any]:
    """Return the table, the record to add and its label, completed from public facts."""
    if label is None:
        label = schema.bounds[1] if schema.classes is None else schema.classes[-1]  # type: ignore[index]
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    named = isinstance(frame, nw.DataFrame)
    if record is None:
        record = {
            name: feature.written(feature.high)
            if isinstance(feature, Numeric)
            else feature.values[-1]
            for name, feature in schema.features.items()
        }
        if named:
            Columns.of(X, schema)  # says which column is missing
            if schema.unit is not None and schema.unit in frame.columns:
                whole = frame.schema[schema.unit].is_integer()
                record[schema.unit] = _NOBODY if whole else str(_NOBODY)
            X = frame.select(*record, *([schema.target] if inside else [])).to_native()
    if isinstance(record, Mapping):
        if inside:
            record = {schema.target: label, **record}
        elif not named:
            record = [record.get(name) for name in schema.names]
    return X, record, label


def _as_declared(value: Any, kind: Any) -> list[Any]:
    """Return a value in a list, as a column of a type takes it."""
    if kind.is_integer():
        return [*like([value], np.zeros(0, np.int64)).tolist()]
    if isinstance(value, str) and kind.is_temporal():
        moment = datetime.datetime.fromisoformat(value)
        return [moment.date() if kind == nw.Date else moment]
    return [value]


def add(table: Any, record: Mapping[str, Any] | Sequence[Any]) -> Any:
    """Return the table with one record more, at the end; the types of its columns stay."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        array = np.asarray(table)
        if isinstance(record, Mapping) or len(record) != array.shape[1]:
            raise AuditError("the record must have a value for every column of the array")
        return np.concatenate([array, like([list(record)], array)])
    if not isinstance(record, Mapping):
        record = dict(zip(frame.columns, record, strict=False))
    if set(record) != set(frame.columns):
        raise AuditError("the record must have a value for every column of the table")
    try:
        values = {name: _as_declared(record[name], kind) for name, kind in frame.schema.items()}
        row = nw.from_dict(values, schema=frame.schema, backend=frame.implementation)
        joined = nw.maybe_reset_index(nw.concat([frame, row]))
    except Exception:
        joined = None
    if joined is None or joined.schema != frame.schema:
        raise AuditError("the record does not fit the types of the table's columns")
    return joined.to_native()
