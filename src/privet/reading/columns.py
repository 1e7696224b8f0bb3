"""Columns of any table, read by the rules of the schema, one record at a time.

pandas, polars and pyarrow tables, numpy arrays and Python lists come in; numbers (missing ones as
NaN), dates as numbers of days, and positions in a public list of values come out. The law that
every reader here keeps:

    reading the rows D and the rows R together gives what reading D gives, followed by what
    reading R gives; and no exception, warning, type or message depends on a row.

So a column is read by its *declared* type alone. Where there is none (lists, object columns),
every item is read by itself (:mod:`privet.reading.values`). Errors speak of names and types, never
of values or of how many rows there are.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from privet.errors import ColumnTypeError, ColumnTypeWarning, DataError
from privet.reading import values as one
from privet.reading.identifiers import identifiers_of
from privet.schema import Categorical, Numeric, Schema, Value, all_numbers, value_key
from privet.visible import quoted

_BLOCK = 65_536
#: A list of at most so many numbers is gone through one by one: sooner done than a search.
_FEW = 4


class Column(ABC):
    """One column of a table. :func:`column_of` makes it."""

    #: What its declared type is of: "text", "numbers", "whole numbers", "truth values" or "dates";
    #: "" where none is declared.
    holds: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def numbers(self) -> NDArray[np.float64]:
        """Return the values as 64-bit floats; what is missing or no number is NaN."""

    @abstractmethod
    def days(self) -> NDArray[np.float64]:
        """Return the values as days since 1970-01-01; what is missing or no date is NaN."""

    @abstractmethod
    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """Return texts (None: missing) and which of them each record has; None: one each."""

    @abstractmethod
    def items(self) -> list[Any]:
        """Return the values as Python objects, for drafts of schemas."""

    def codes(self, values: Sequence[Value]) -> NDArray[np.intp]:
        """Return positions in a list of values; what is not in it gets ``len(values)``."""
        other = len(values)
        if all_numbers(values):
            return _places(self.numbers(), np.array([float(value) for value in values]))
        index: dict[Any, int] = {
            value_key(value, numbers=False): code for code, value in enumerate(values)
        }
        texts, which = self.texts()
        found = np.fromiter(
            (index.get(text, other) for text in texts), dtype=np.intp, count=len(texts)
        )
        return found if which is None else found[which]


@dataclass(frozen=True, eq=False)
class Numbers(Column):
    """An array of numbers."""

    array: NDArray[Any]
    holds: str = "numbers"

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        with np.errstate(all="ignore"):  # a longer float may be too large, a NaN may signal
            return np.asarray(self.array, dtype=np.float64)

    def days(self) -> NDArray[np.float64]:
        """See :class:`Column`: no number is a date."""
        return np.full(len(self), np.nan)

    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """See :class:`Column`."""
        known, which = np.unique(self.numbers(), return_inverse=True)
        return [one.text(value) for value in known.tolist()], which.astype(np.intp)

    def items(self) -> list[Any]:
        """See :class:`Column`."""
        found: list[Any] = self.array.tolist()
        return found


@dataclass(frozen=True, eq=False)
class Items(Column):
    """Python objects of no declared type."""

    objects: Sequence[Any]
    holds: str = ""

    def __len__(self) -> int:
        return len(self.objects)

    def numbers(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return one.numbers(self.objects)

    def days(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return one.days(self.objects)

    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """See :class:`Column`."""
        return [one.text(item) for item in self.objects], None

    def items(self) -> list[Any]:
        """See :class:`Column`."""
        return list(self.objects)


@dataclass(frozen=True, eq=False)
class Days(Column):
    """Dates, or times that count as their dates, of a declared type: neither numbers nor text."""

    array: NDArray[np.float64]
    name: str
    kind: object
    holds: str = "dates"

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self) -> NDArray[np.float64]:
        """Refuse, by the declared type."""
        raise self._refusal()

    def days(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return self.array

    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """Refuse, by the declared type."""
        raise self._refusal()

    def items(self) -> list[Any]:
        """See :class:`Column`: days since 1970-01-01."""
        found: list[Any] = self.array.tolist()
        return found

    def _refusal(self) -> ColumnTypeError:
        return ColumnTypeError(
            f"column {quoted(self.name)} has type {self.kind}, which can be read neither as "
            "numbers nor as categories: make it a Date in the schema, or convert it first"
        )


@dataclass(frozen=True, eq=False)
class Coded(Column):
    """Values in a list, and which of them each record has; -1: none."""

    known: Column
    which: NDArray[np.intp]

    @property
    def holds(self) -> str:  # type: ignore[override]
        """See :class:`Column`."""
        return self.known.holds

    def __len__(self) -> int:
        return len(self.which)

    def numbers(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return np.append(self.known.numbers(), np.nan)[self.which]

    def days(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return np.append(self.known.days(), np.nan)[self.which]

    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """See :class:`Column`."""
        texts, which = self.known.texts()
        if which is not None:
            texts = [texts[place] for place in which.tolist()]
        return [*texts, None], self.which

    def items(self) -> list[Any]:
        """See :class:`Column`."""
        items = [*self.known.items(), None]
        return [items[place] for place in self.which.tolist()]


@dataclass(frozen=True, eq=False)
class Joined(Column):
    """Columns one below the other: the chunks of a chunked array."""

    parts: Sequence[Column]
    holds: str = ""

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def numbers(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return np.concatenate([part.numbers() for part in self.parts])

    def days(self) -> NDArray[np.float64]:
        """See :class:`Column`."""
        return np.concatenate([part.days() for part in self.parts])

    def texts(self) -> tuple[list[str | None], NDArray[np.intp] | None]:
        """See :class:`Column`."""
        texts: list[str | None] = []
        places = [np.zeros(0, dtype=np.intp)]
        for part in self.parts:
            more, which = part.texts()
            mine = np.arange(len(more)) if which is None else which % len(more)
            places.append(mine + len(texts))
            texts += more
        return texts, np.concatenate(places)

    def items(self) -> list[Any]:
        """See :class:`Column`."""
        return [item for part in self.parts for item in part.items()]


def column_of(values: Any, name: str) -> Column:
    """Open a column that is given by itself: a series, a list or an array."""
    if isinstance(values, Column):
        return values
    if _is_list(values):
        return Items([_alone(item) for item in values])
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _of_arrow(values, name)
    frame = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame.columns) != 1:
            raise DataError(f"{name} must be one column, and this is a table of several")
        frame = frame.get_column(frame.columns[0])
    if isinstance(frame, nw.Series):
        return _of_series(frame, name)
    if isinstance(frame, nw.LazyFrame):
        raise ColumnTypeError(f"{name} is lazy: collect it first, and pass what that gives")
    if hasattr(values, "tocsr") or hasattr(values, "toarray"):
        raise ColumnTypeError(f"sparse {name} is not supported: pass a dense column")
    array = _array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must be one column, and has {array.ndim} dimensions")
    return _of_array(array, name)


def _is_list(values: Any) -> bool:
    """Tell whether something is a sequence of items of no declared type."""
    return isinstance(values, Sequence) and not isinstance(
        values, str | bytes | bytearray | memoryview | range
    )


def _alone(item: Any) -> Any:
    """Return the item of a list that has one: a column may come as rows of one value."""
    return item[0] if type(item) in (list, tuple) and len(item) == 1 else item


def _array(values: Any, name: str) -> NDArray[Any]:
    """Return what is no table of another library as an array; lists never come here."""
    declares = ("__array__", "__array_interface__", "__array_struct__")
    if not isinstance(values, memoryview | range) and not any(hasattr(values, n) for n in declares):
        raise ColumnTypeError(
            f"{name} must be a pandas, polars or pyarrow object, a numpy array or a list"
        )
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                return np.ma.filled(values.astype(np.float64), np.nan)
        if values.dtype.kind == "M":
            return np.ma.filled(values, np.datetime64("NaT"))
        values = np.ma.filled(values.astype(object), None)
    try:
        array = np.asarray(values)
    except Exception:
        failed = ColumnTypeError(f"{name} cannot be read as an array; pass a dataframe or a list")
    else:
        return array
    raise failed


def _of_array(array: NDArray[Any], name: str) -> Column:
    kind = array.dtype.kind
    if kind == "b":
        return _truths(array)
    if kind in "iuf":
        return Numbers(array, "numbers" if kind == "f" else "whole numbers")
    if kind == "M":
        return Days(one.days_of_times(array), name, array.dtype)
    if kind == "U":
        return Items(_unicode(array), "text")
    if kind in "OST":
        return Items(array.tolist(), "text" if kind in "ST" else "")
    if kind == "c":
        raise DataError(f"Complex data not supported: {name} must hold real numbers or text")
    raise _unreadable(name, array.dtype)


def _unicode(array: NDArray[Any]) -> list[str]:
    """Return texts; numbers that are no characters are read as replacement characters."""
    width = array.dtype.itemsize // 4
    points = np.ascontiguousarray(array).view(np.uint32).reshape(len(array), width)
    if not array.dtype.isnative:
        points = points.byteswap()
    points = np.where(points > sys.maxunicode, np.uint32(0xFFFD), points)
    found: list[str] = np.ascontiguousarray(points).view(f"U{width}")[:, 0].tolist()
    return found


def _unreadable(name: str, kind: object) -> ColumnTypeError:
    return ColumnTypeError(
        f"column {quoted(name)} has type {kind}, which can be read neither as numbers nor as "
        "categories; convert it first"
    )


def _of_series(series: nw.Series[Any], name: str) -> Column:
    """Open a column of a dataframe by its declared type."""
    native = series.to_native()
    if isinstance(native, pa.Array | pa.ChunkedArray):
        return _of_arrow(native, name)
    declared = getattr(native, "dtype", None)
    if isinstance(declared, np.dtype):
        return _of_array(np.asarray(native), name)
    kind = series.dtype
    if series.implementation.is_pandas_like():
        if hasattr(declared, "categories") and hasattr(native, "cat"):
            known = column_of(native.cat.categories.to_series(), name)
            return Coded(known, np.asarray(native.cat.codes, dtype=np.intp))
        if kind == nw.Boolean:
            truths = native.to_numpy(dtype=np.float64, na_value=np.nan)
            return _truths(np.nan_to_num(truths, nan=-1))
        if kind.is_float() or kind.is_integer():
            numbers = native.to_numpy(dtype=np.float64, na_value=np.nan)
            return Numbers(numbers, "whole numbers" if kind.is_integer() else "numbers")
    if kind in (nw.Object, nw.Unknown):
        return Items(series.to_list())
    try:
        arrow = series.to_arrow()
    except Exception:  # text that is no Unicode, objects: read them one by one
        arrow = None
    if arrow is not None:
        return _of_arrow(arrow, name)
    if kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum):
        return Items(series.to_list(), "text")
    if kind.is_numeric() or kind == nw.Boolean:
        return Items(series.to_list())
    raise _unreadable(name, kind)


def _of_arrow(array: pa.Array | pa.ChunkedArray, name: str) -> Column:
    """Open a column of pyarrow by its type."""
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        chunks = [_of_arrow(chunk, name) for chunk in array.chunks or [pa.nulls(0, kind)]]
        return chunks[0] if len(chunks) == 1 else Joined(chunks, chunks[0].holds)
    if pa.types.is_dictionary(kind):
        return Coded(_of_arrow(array.dictionary, name), _indices(array))
    if pa.types.is_boolean(kind):
        return _truths(_plain(array.cast(pa.int8()).fill_null(-1), np.int8))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = pc.cast(array, pa.float64(), safe=False)
        if numbers.null_count:  # else it is not copied
            numbers = numbers.fill_null(np.nan)
        holds = "whole numbers" if pa.types.is_integer(kind) else "numbers"
        return Numbers(_plain(numbers, np.float64), holds)
    if pa.types.is_null(kind):  # of no type, and without a value
        return Coded(Items([]), np.full(len(array), -1))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Days(_arrow_days(array, name), name, kind)
    if pa.types.is_decimal(kind):
        return Items(array.to_pylist())
    for is_kind, as_bytes, holds in _TEXTS:
        if is_kind(kind):
            # By bytes: a file may hold text that is no UTF-8, and one such text must not make
            # all others unreadable.
            coded = array.cast(as_bytes).dictionary_encode()
            texts = [item.decode("utf-8", "replace") for item in coded.dictionary.to_pylist()]
            return Coded(Items(texts, holds), _indices(coded))
    raise _unreadable(name, kind)


def _arrow_days(array: pa.Array, name: str) -> NDArray[np.float64]:
    """Return dates and times as days; a time of a zone counts as its calendar day in that zone."""
    kind = array.type
    ticks = array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    whole = _plain(ticks.cast(pa.int64()).fill_null(0), np.int64)
    if pa.types.is_date32(kind):
        found = whole
    elif pa.types.is_date64(kind):
        found = whole // 86_400_000
    elif kind.tz is None:
        found = whole // (86_400 * _TICKS[kind.unit])
    else:
        found = _zone_days(whole // _TICKS[kind.unit], kind, name)
    missing = _plain(array.is_null().cast(pa.int8()), np.int8)
    return np.where(missing, np.nan, found.astype(np.float64))


#: How many ticks of pyarrow's units of time are a second.
_TICKS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}


def _zone_days(seconds: NDArray[np.int64], kind: pa.TimestampType, name: str) -> NDArray[np.int64]:
    """Return the days on which seconds since 1970-01-01 in UTC lie in a zone."""
    # Far beyond the years that a schema has, no calendar reaches.
    near = np.clip(seconds, -(10**11), 3 * 10**11)
    try:  # with one more: whether the zone is known must not depend on whether there are rows
        local = pc.local_timestamp(pa.array(np.append(near, 0), pa.timestamp("s", kind.tz)))
    except Exception:
        raise _unreadable(name, kind) from None
    return np.asarray(_plain(local.cast(pa.int64()), np.int64)[:-1] // 86_400)


#: Types of pyarrow that hold text: as which bytes they are read, and what they say to hold.
_TEXTS = (
    (pa.types.is_string, pa.binary(), "text"),
    (pa.types.is_large_string, pa.large_binary(), "text"),
    (pa.types.is_string_view, pa.binary_view(), "text"),
    (pa.types.is_binary, pa.binary(), ""),
    (pa.types.is_large_binary, pa.large_binary(), ""),
    (pa.types.is_binary_view, pa.binary_view(), ""),
    (pa.types.is_fixed_size_binary, pa.binary(), ""),
)


def _indices(coded: pa.DictionaryArray) -> NDArray[np.intp]:
    """Return which value each record has; -1: none."""
    places = coded.indices.cast(pa.int64()).fill_null(-1)
    return np.asarray(_plain(places, np.int64), dtype=np.intp)


def _plain(array: pa.Array, kind: type[Any]) -> NDArray[Any]:
    """Return numbers of pyarrow, none of which is missing, in the same memory.

    ``to_numpy`` would import pandas, which is 30 MB in every worker that needs none of it.
    """
    if not len(array):
        return np.zeros(0, dtype=kind)
    start = array.offset * np.dtype(kind).itemsize
    return np.frombuffer(array.buffers()[1], kind, len(array), start)


def _truths(places: NDArray[Any]) -> Coded:
    """Return a column of truth values; -1 is a missing one."""
    return Coded(Items([False, True], "truth values"), places.astype(np.intp))


def _places(numbers: NDArray[np.float64], listed: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return where numbers stand in a list; what is not in it gets the list's length."""
    other = len(listed)
    codes = np.empty(len(numbers), dtype=np.intp)
    if other <= _FEW:
        codes.fill(other)
        for code, value in enumerate(listed):
            codes += (numbers == value) * (code - other)
        return codes
    order = np.argsort(listed)
    listed = listed[order]
    for start in range(0, len(numbers), _BLOCK):  # what lies between stays in the cache
        block = slice(start, start + _BLOCK)
        place = np.minimum(np.searchsorted(listed, numbers[block]), other - 1)
        codes[block] = np.where(listed[place] == numbers[block], order[place], other)
    return codes


class Columns:
    """The named columns of one table, read on demand. Use :meth:`of` to make one.

    Attributes
    ----------
    names : tuple of str
    named : bool
        Whether the columns have names of their own (a dataframe, not an array or a list).
    matrix : array or None
        The whole table as one array of real numbers, if it came as one and none of its columns are
        dates by the schema.
    dates : frozenset of str
        The columns that are dates by the schema.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: int,
        source: nw.DataFrame[Any] | NDArray[Any] | list[Sequence[Any]],
        dates: frozenset[str] = frozenset(),
    ) -> None:
        self.names = tuple(names)
        self.named = isinstance(source, nw.DataFrame)
        self._rows = rows
        self._source = source
        self.dates = dates
        is_numbers = isinstance(source, np.ndarray) and source.dtype.kind in "fiub" and not dates
        self.matrix: NDArray[Any] | None = source if is_numbers else None  # type: ignore[assignment]

    @classmethod
    def of(cls, table: Any, schema: Schema | None = None) -> Columns:
        """Open a table; with a schema, check that its features are there.

        An array or a list of rows has no names: its columns are taken as the schema's features, in
        order. A row of a list that is no list, tuple or array of as many values as there are
        columns is a record of missing values.
        """
        if isinstance(table, Columns):
            return table if schema is None else table._renamed(schema)
        if _is_list(table):
            if schema is None:
                return cls._of_rows(table, None)
            return cls._of_rows(table, schema.names, schema.dates)
        frame = _frame(table)
        if frame is not None:
            found = cls([str(name) for name in frame.columns], len(frame), frame)
            return found if schema is None else found._renamed(schema)
        array = _table_array(table)
        found = cls([f"x{j}" for j in range(array.shape[1])], len(array), array)
        return found if schema is None else found._renamed(schema)

    @classmethod
    def _of_rows(
        cls,
        table: Sequence[Any],
        names: Sequence[str] | None,
        dates: frozenset[str] = frozenset(),
    ) -> Columns:
        """Open a list of rows; without names, as many columns are taken as the longest has."""
        rows = [_row(item, names) for item in table]
        width = max(map(len, rows), default=0) if names is None else len(names)
        if not width:
            raise DataError("expected a list of rows, each of them a list of values")
        if names is None:
            names = [f"x{j}" for j in range(width)]
        if rows and set(map(type, rows)) == {np.ndarray}:
            kinds = {(row.dtype, row.shape) for row in rows}  # type: ignore[attr-defined]
            if len(kinds) == 1 and len(rows[0]) == width and rows[0].dtype.kind in "fiu":  # type: ignore[attr-defined]
                return cls(names, len(rows), np.stack(rows), dates)  # the same values, but faster
        blank = [None] * width
        found = [_items(row) if len(row) == width else blank for row in rows]
        if set(map(type, chain.from_iterable(found))) <= {float, int}:
            with suppress(OverflowError):  # the same values, but faster
                array = np.array(found, dtype=np.float64).reshape(-1, width)
                return cls(names, len(found), array, dates)
        return cls(names, len(found), found, dates)

    def fits(self) -> bool:
        """Tell whether any row of a list has a value for every column."""
        return not isinstance(self._source, list) or any(
            value is not None for row in self._source for value in row
        )

    def _renamed(self, schema: Schema) -> Columns:
        """Check that a schema's features are there; give columns without names its names."""
        if self.named:
            missing = [name for name in schema.names if name not in self.names]
            if missing:
                raise DataError(
                    f"the data have no column {quoted(missing[0])}, which the schema lists"
                    + (f" ({len(missing)} columns are missing)" if len(missing) > 1 else "")
                )
            return Columns(self.names, self._rows, self._source, schema.dates)
        if isinstance(self._source, list):
            return Columns._of_rows(self._source, schema.names, schema.dates)
        if len(self.names) != len(schema.names):
            raise DataError(
                f"the array has {len(self.names)} columns, but the schema lists "
                f"{len(schema.names)} features; array columns are taken in the schema's order"
            )
        return Columns(schema.names, self._rows, self._source, schema.dates)

    def types(self, names: Sequence[str]) -> dict[str, str]:
        """Return what columns declare to hold: no value is looked at."""
        none = self.without_rows()
        found = {name: none.column(name) for name in names}
        return {name: f"{type(column).__name__} {column.holds}" for name, column in found.items()}

    def without_rows(self) -> Columns:
        """Return the same columns with no rows: their declared types, and nothing else."""
        source = self._source
        if isinstance(source, nw.DataFrame):
            native = source.to_native()
            if isinstance(native, pa.Table):
                rest = nw.from_native(pa.Table.from_batches([], native.schema))
            else:
                rest = source.head(0)
            return Columns(self.names, 0, rest, self.dates)
        return Columns(self.names, 0, source[:0], self.dates)

    def __len__(self) -> int:
        return self._rows

    def column(self, name: str) -> Column:
        """Open one column."""
        place = self.names.index(name)
        if isinstance(self._source, nw.DataFrame):
            native = self._source.to_native()
            if isinstance(native, pa.Table):
                return _of_arrow(native.column(place), name)
            return _of_series(self._source.get_column(self._source.columns[place]), name)
        if isinstance(self._source, list):
            return Items([row[place] for row in self._source])
        return _of_array(np.asarray(self._source[:, place]), name)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as 64-bit floats; what is missing or no number is NaN.

        Dates come as days since 1970-01-01.
        """
        column = self.column(name)
        return column.days() if name in self.dates else column.numbers()

    def codes(self, name: str, values: Sequence[Value]) -> NDArray[np.intp]:
        """Return positions in a list of values; what is not in it gets ``len(values)``."""
        return self.column(name).codes(values)

    def target(self, schema: Schema) -> Column:
        """Open the column that the schema names as the target."""
        if schema.target not in self.names:
            raise DataError(
                f"the data have no column {quoted(schema.target)}, which the schema names as the "
                "target; pass the target by itself, or add the column"
            )
        return self.column(schema.target)

    def identifiers(self, schema: Schema) -> pa.LargeBinaryArray:
        """Return whose record each record is, as the schema's unit says; null: nobody's else."""
        assert schema.unit is not None
        if not self.named:
            raise DataError(
                f"the schema's unit is the column {quoted(schema.unit)}, and arrays and lists have "
                "no names: pass a dataframe"
            )
        if schema.unit not in self.names:
            raise DataError(
                f"the data have no column {quoted(schema.unit)}, which the schema names as the "
                "unit: it says whose record each record is"
            )
        assert isinstance(self._source, nw.DataFrame)
        place = self.names.index(schema.unit)
        return identifiers_of(self._source.get_column(self._source.columns[place]))


def _frame(table: Any) -> nw.DataFrame[Any] | None:
    """Return a dataframe as narwhals sees it; None if the table is none."""
    try:
        frame = nw.from_native(table, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise ColumnTypeError("the table is lazy: collect it first, and pass what that gives")
        names = [str(name) for name in frame.columns] if isinstance(frame, nw.DataFrame) else []
    except DuplicateError:
        names = ["", ""]
    if len(set(names)) < len(names):
        raise DataError("two columns have the same name; rename one")
    return frame if isinstance(frame, nw.DataFrame) else None


def _table_array(table: Any) -> NDArray[Any]:
    """Return a two-dimensional array, or say what is wrong with its shape or type."""
    if hasattr(table, "tocsr") or hasattr(table, "toarray"):
        raise ColumnTypeError("sparse input is not supported: pass a dense table")
    array = _array(table, "the table")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: pass real numbers")
    if array.ndim != 2:
        raise DataError(
            "expected a two-dimensional array of rows and columns, got "
            f"{array.ndim} dimension(s). Reshape your data either using array.reshape(-1, 1) "
            "if it has a single feature or array.reshape(1, -1) if it is a single sample"
        )
    if array.shape[1] == 0:
        raise DataError("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return array


def _row(item: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return a row of a list as a sequence of values; what is no row has none."""
    if type(item) in (list, tuple) or (type(item) is np.ndarray and item.ndim == 1):
        row: Sequence[Any] = item
        return row
    if _is_list(item):
        return list(item)
    if isinstance(item, Mapping) and names is not None:
        return [item.get(name) for name in names]
    if isinstance(item, np.ndarray) and item.ndim == 2 and len(item) == 1:
        return [*item[0]]
    try:
        series = nw.from_native(item, series_only=True)
        found: list[Any] = series.to_list()
    except Exception:  # it is no row, whatever it says of itself
        return ()
    return found


def _items(row: Any) -> Sequence[Any]:
    if not isinstance(row, np.ndarray):
        found: Sequence[Any] = row
    elif row.dtype.kind == "M":  # numpy's times would become whole numbers
        found = list(row)
    else:
        found = row.tolist()
    return found


def check_types(columns: Columns, target: Column, schema: Schema) -> None:
    """Refuse columns whose declared type cannot be read as the schema says; warn of odd ones.

    Looks at declared types only: neither an error nor a warning depends on a value.
    """
    types = columns.without_rows()
    for name in schema.names:
        if name in schema.dates:
            _check_dates(types.column(name), name, declared=columns.named)
        else:
            column, feature = types.column(name), schema.features[name]
            _check_values(column, name, of_numbers=schema.of_numbers(name))
            # Without names, an array may be a list of rows that all happened to be numbers.
            if (
                columns.named
                and isinstance(feature, Categorical)
                and not _may_hold(column, feature.values)
            ):
                warnings.warn(
                    f"column {quoted(name)} holds {column.holds}, and the schema's categories are "
                    "text that no such value spells: all values count as unknown",
                    ColumnTypeWarning,
                    stacklevel=2,
                )
    _check_values(target, schema.target, of_numbers=schema.of_numbers(schema.target))
    if schema.classes is not None and not _may_hold(target, schema.classes):
        warnings.warn(
            f"the target {quoted(schema.target)} holds {target.holds}, and the schema's classes "
            "are text that no such value spells: every record is left out, and the model is made "
            "of noise alone. List the classes as the column has them, or convert the column",
            ColumnTypeWarning,
            stacklevel=2,
        )


def _check_dates(column: Column, name: str, *, declared: bool) -> None:
    # Without names, an array may be a list of rows that all happened to be numbers.
    if declared and column.holds in ("numbers", "whole numbers"):
        raise ColumnTypeError(
            f"column {quoted(name)} holds numbers where the schema has dates; convert it first"
        )
    if column.holds == "text":
        warnings.warn(
            f"column {quoted(name)} holds text where the schema has dates: each value is read as "
            "YYYY-MM-DD, perhaps with a time behind it, and all other text counts as missing",
            ColumnTypeWarning,
            stacklevel=3,
        )


def _check_values(column: Column, name: str, *, of_numbers: bool) -> None:
    if column.holds == "dates":
        column.numbers()  # which says why it cannot be read
    if of_numbers and column.holds == "text":
        warnings.warn(
            f"column {quoted(name)} holds text where the schema has numbers: each value is read as "
            "a number, and text that is no number counts as missing",
            ColumnTypeWarning,
            stacklevel=3,
        )


def _may_hold(column: Column, values: Sequence[Value]) -> bool:
    """Tell by a column's declared type whether it can hold any of a list of values."""
    if all_numbers(values):
        return True
    texts = [value_key(value, numbers=False) for value in values]
    if column.holds == "truth values":
        return any(text in ("False", "True") for text in texts)
    if column.holds in ("numbers", "whole numbers"):
        return any(not np.isnan(one.number(text)) for text in texts)
    return True


def feature_matrix(
    table: Any, schema: Schema, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return features as one array: numbers as they are, categories as positions in their list."""
    columns = Columns.of(table, schema)
    chosen = schema.names if names is None else names
    matrix = np.empty((len(columns), len(chosen)))
    for j, name in enumerate(chosen):
        feature = schema.features[name]
        if isinstance(feature, Numeric):
            matrix[:, j] = columns.numbers(name)
        else:
            matrix[:, j] = columns.codes(name, feature.values)
    return matrix
