"""The audit of readers: it tries to show that one record changes how another one is read.

*The law of reading.* For tables D and any row r, ``read(D + r) = read(D) + read(r)`` row for row,
wherever r stands; and whether reading succeeds, what it warns of, what its errors say and which
types it returns does not depend on r. All private answers rest on it: their noise covers one
record, not those that a record turns into something else.

A *writer* makes a container of rows of Python values: lists, arrays, frames, files. A *reader*
takes a container and the schema and returns a number for every row and column. The audit writes
tables of ordinary and of hostile rows (:mod:`privet.audit.hostile`), with and without one row, and
compares what is read.

The law begins with the container: what a library does to values before is its own affair. So a
writer fixes the types of its container beforehand, writes every row by itself, and says of a row
that does not fit that it cannot carry it.
"""

from __future__ import annotations

import datetime
import decimal
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit import hostile
from privet.errors import AuditError
from privet.reading import Columns, check_types, column_of, feature_matrix, read_table
from privet.schema import Categorical, Date, Feature, Integer, Numeric, Schema

#: What a reader returns: one row per record, one column per feature and one for the target.
Read = NDArray[np.float64]


class CannotCarry(AuditError):
    """A container has no place for such a row."""


@dataclass(frozen=True)
class Row:
    """One record. Its features are a tuple, unless the row is hostile as a whole."""

    features: Any
    target: Any


@dataclass(frozen=True)
class Container:
    """Rows as somebody hands them over: a table and its target, or a file with both.

    ``target`` is None if the target is one of the table's columns.
    """

    table: Any
    target: Any = None


Reader = Callable[[Container, Schema], Read]


def read(container: Container, schema: Schema) -> Read:
    """Read a container as fits do: the library's own reader. The only place that knows it."""
    table, target = container.table, container.target
    if isinstance(table, Path):
        table = read_table(table, schema)
    columns = Columns.of(table, schema)
    column = columns.target(schema) if target is None else column_of(target, schema.target)
    check_types(columns, column, schema)
    found = column.numbers() if schema.classes is None else column.codes(schema.classes)
    return np.column_stack([feature_matrix(columns, schema), found])


def read_persons(container: Container, schema: Schema) -> Read:
    """Read whose record each record is, as fits do where the first feature is the schema's unit.

    Two records have the same number if they are the same person's. Where columns have no names,
    hence no unit, this is :func:`read`.
    """
    unit, *rest = schema.names
    schema_of_persons = replace(
        schema, features={name: schema.features[name] for name in rest}, unit=unit
    )
    table = container.table
    if isinstance(table, Path):
        table = read_table(table, schema_of_persons)
    elif not Columns.of(table, schema).named:
        return read(container, schema)
    columns = Columns.of(table, schema_of_persons)
    found = [
        math.nan
        if text is None
        else float(int.from_bytes(blake2b(text, digest_size=6).digest()))  # exact in a double
        for text in columns.identifiers(schema_of_persons).to_pylist()
    ]
    return np.array(found, dtype=np.float64)[:, np.newaxis]


# Writers


@dataclass(frozen=True)
class Writer:
    """Makes containers of one kind.

    Attributes
    ----------
    name : str
    write : callable
        Takes rows, the schema and a folder for files; raises :class:`CannotCarry`.
    """

    name: str
    write: Callable[[Sequence[Row], Schema, Path], Container]


_TOKYO = "datetime64[s, Asia/Tokyo]"


def known_writers() -> list[Writer]:
    """Return a writer for every kind of container whose library is installed."""
    found = [
        Writer("lists in a list", _lists(list, list)),
        Writer("tuples in a list", _lists(tuple, list)),
        Writer("tuples in a tuple", _lists(tuple, tuple)),
        Writer("numpy, objects", _array(object)),
        Writer("numpy, double", _array(np.float64)),
        Writer("numpy, single", _array(np.float32)),
        Writer("numpy, integers", _array(np.int64)),
        Writer("numpy, text", _array(np.dtype("U32"))),
        Writer("pyarrow, doubles and text", _arrow("float64", "string")),
        Writer("pyarrow, integers and large text", _arrow("int64", "large_string", "date64")),
        Writer("pyarrow, decimals and dictionaries", _arrow("decimal128", "dictionary", "times")),
        Writer("pyarrow, text", _arrow("string", "string", "string")),
        Writer("pyarrow, times of a zone", _arrow("float64", "string", "times of a zone")),
        Writer("CSV", _csv(all_quoted=False, end="\n")),
        Writer("CSV, all quoted", _csv(all_quoted=True, end="\r\n")),
        Writer("Parquet", _parquet("float64", "string")),
        Writer("Parquet, text", _parquet("string", "string", "string")),
    ]
    if find_spec("pandas") is not None:
        found += [
            Writer("pandas, objects", _pandas("object", "object", "object")),
            Writer("pandas, doubles and text", _pandas("float64", "str")),
            Writer("pandas, nullable", _pandas("Float64", "string", "string")),
            Writer("pandas, nullable integers", _pandas("Int64", "string", _TOKYO)),
            Writer("pandas, categories", _pandas("Float64", "category", "datetime64[ns]")),
            Writer(
                "pandas, categories of objects", _pandas("object", "category of objects", "object")
            ),
        ]
    if find_spec("polars") is not None:
        found += [
            Writer("polars, doubles and text", _polars("Float64", "String")),
            Writer("polars, integers and categories", _polars("Int64", "Categorical", "Datetime")),
            Writer("polars, objects", _polars("Object", "Object", "Object")),
        ]
    return found


Write = Callable[[Sequence[Row], Schema, Path], Container]


def _lists(row: Callable[[Any], Any], table: Callable[[Any], Any]) -> Write:
    def write(rows: Sequence[Row], schema: Schema, folder: Path) -> Container:
        del schema, folder
        found = [row(each.features) if type(each.features) is tuple else each.features
                 for each in rows]  # fmt: skip
        return Container(table(found), table([each.target for each in rows]))

    return write


def _array(kind: Any) -> Write:
    """Write rows one by one to an array of a type."""
    kind = np.dtype(kind)

    def cell(value: Any) -> Any:
        if kind.hasobject:
            return value
        if kind.kind == "U":
            return _cast(value, "text")[: kind.itemsize // 4] if value is not None else ""
        if kind.kind == "i":
            return _cast(value, "integer")
        return np.nan if value is None else _cast(value, "number")

    def write(rows: Sequence[Row], schema: Schema, folder: Path) -> Container:
        del folder
        table = np.empty((len(rows), len(schema.names)), dtype=kind)
        target = np.empty(len(rows), dtype=kind)
        for place, row in enumerate(rows):
            with np.errstate(over="ignore"):  # a single has less room
                for column, value in enumerate(_cells(row, schema)[:-1]):
                    table[place, column] = cell(value)
                target[place] = cell(row.target)
        return Container(table, target)

    return write


def _of_columns(
    make: Callable[[str, list[Any]], Any], join: Callable[[dict[str, Any]], Any], *types: str
) -> Write:
    """Write columns: those of numbers, of text and of dates have types fixed beforehand."""

    def write(rows: Sequence[Row], schema: Schema, folder: Path) -> Container:
        del folder
        cells = [_cells(row, schema) for row in rows]
        columns = {}
        for place, name in enumerate([*schema.names, schema.target]):
            kind = types[0] if schema.of_numbers(name) else types[1 + (name in schema.dates)]
            columns[name] = make(kind, [row[place] for row in cells])
        return Container(join(columns))

    return write


def _arrow(numbers: str, texts: str, dates: str = "date32") -> Write:
    import pyarrow as pa

    kinds = {
        "float64": (pa.float64(), "number"), "int64": (pa.int64(), "integer"),
        "decimal128": (pa.decimal128(38, 10), "decimal"), "string": (pa.string(), "text"),
        "large_string": (pa.large_string(), "text"),
        "dictionary": (pa.dictionary(pa.int32(), pa.string()), "text"),
        "date32": (pa.date32(), "date"), "date64": (pa.date64(), "date"),
        "times": (pa.timestamp("ns"), "time"),
        "times of a zone": (pa.timestamp("us", "America/New_York"), "time"),
    }  # fmt: skip

    def make(kind: str, values: list[Any]) -> Any:
        found, cell = kinds[kind]
        cast = [None if value is None else _cast(value, cell) for value in values]
        try:
            return pa.array(cast, found)
        except Exception:
            raise CannotCarry("arrow has no place for it") from None

    return _of_columns(make, pa.table, numbers, texts, dates)


def _pandas(numbers: str, texts: str, dates: str = "datetime64[us]") -> Write:
    import pandas as pd

    cells = {
        "object": None, "float64": "number", "Float64": "number", "Int64": "integer",
        "str": "text", "string": "text", "category": "text", "category of objects": None,
        "datetime64[ns]": "time", "datetime64[us]": "time", _TOKYO: "time",
    }  # fmt: skip
    known = ["u", "v", "no", "yes", "1", "2", "3", "0", "", "NaN", 'a"b', "a\nb"]

    def make(kind: str, values: list[Any]) -> Any:
        wanted = cells[kind]
        cast = values
        if wanted is not None:
            cast = [None if value is None else _cast(value, wanted) for value in values]
        if kind.startswith("category"):
            categories: list[Any] = [*known, 1, 2.5] if wanted is None else known
            if any(type(v) not in (str, int, float, type(None)) for v in cast):
                raise CannotCarry("it is no category")
            # What is no category counts as missing: by its own value, not by the others'.
            places = [categories.index(v) if v in categories else -1 for v in cast]
            return pd.Categorical.from_codes(places, categories=pd.Index(categories, dtype=object))
        if kind == "object":
            column = np.empty(len(cast), dtype=object)
            for place, value in enumerate(cast):
                column[place] = value
            return pd.Series(column, dtype=object)
        try:
            return pd.Series(pd.array(cast, dtype=kind))
        except Exception:
            raise CannotCarry("pandas has no place for it") from None

    return _of_columns(make, pd.DataFrame, numbers, texts, dates)


def _polars(numbers: str, texts: str, dates: str = "Date") -> Write:
    import polars as pl

    cells = {
        "Float64": "number", "Int64": "integer", "String": "text", "Categorical": "text",
        "Date": "date", "Datetime": "time",
    }  # fmt: skip

    def make(kind: str, values: list[Any]) -> Any:
        cast = values
        if kind in cells:
            cast = [None if value is None else _cast(value, cells[kind]) for value in values]
        try:
            return pl.Series(values=cast, dtype=getattr(pl, kind), strict=True)
        except Exception:
            raise CannotCarry("polars has no place for it") from None

    return _of_columns(make, pl.DataFrame, numbers, texts, dates)


def _csv(*, all_quoted: bool, end: str) -> Write:
    """Write as RFC 4180 says: what holds a quote, a separator or a line break is quoted.

    By hand, since Python's writer leaves a lone CR without quotes.
    """

    def field(value: Any) -> str:
        text = _text(value)
        if all_quoted or any(mark in text for mark in '",\r\n'):
            return '"' + text.replace('"', '""') + '"'
        return text

    def write(rows: Sequence[Row], schema: Schema, folder: Path) -> Container:
        path = folder / "table.csv"
        lines = [_cells(row, schema) for row in rows]
        text = "".join(
            ",".join(map(field, line)) + end for line in [(*schema.names, schema.target), *lines]
        )
        path.write_bytes(text.encode())
        return Container(path)

    return write


def _parquet(numbers: str, texts: str, dates: str = "date32") -> Write:
    import pyarrow.parquet

    arrow = _arrow(numbers, texts, dates)

    def write(rows: Sequence[Row], schema: Schema, folder: Path) -> Container:
        path = folder / "table.parquet"
        pyarrow.parquet.write_table(arrow(rows, schema, folder).table, path)
        return Container(path)

    return write


def _cells(row: Row, schema: Schema) -> tuple[Any, ...]:
    if type(row.features) is not tuple or len(row.features) != len(schema.names):
        raise CannotCarry("a table of columns has a value for every one of them")
    return (*row.features, row.target)


def _text(value: Any) -> str:
    """Return a value as text, for a file."""
    if value is None:
        return ""
    try:
        text = str(value)
        text.encode()
    except Exception:  # digits, surrogates, refusals
        raise CannotCarry("it has no text") from None
    return text


def _cast(value: Any, kind: str) -> Any:
    """Return a value in a type that a column has, by looking at the value alone."""
    number = type(value) in (int, float, np.float32, np.int8, hostile.Imposter)
    with suppress(Exception):
        if kind == "date" and type(value) in (datetime.date, datetime.datetime):
            return datetime.date(value.year, value.month, value.day)
        if kind == "time" and type(value) in (datetime.date, datetime.datetime):
            return datetime.datetime.fromisoformat(value.isoformat()).replace(tzinfo=None)
        if kind == "text" and type(value) in (str, int, float, np.str_, datetime.date):
            text = str(value)
            text.encode()
            return text
        if kind == "number" and number:
            return float(value)
        if kind == "integer" and number and int(value) == value and abs(value) < 2**63:
            return int(value)
        if kind == "decimal" and (number or type(value) is decimal.Decimal):
            found = decimal.Decimal(str(value))
            if found.is_finite() and abs(found) < 10**20:
                return round(found, 10)
    raise CannotCarry("it is of another type")


# The audit


@dataclass(frozen=True)
class Counterexample:
    """A record that changes how others are read; told without any value.

    Attributes
    ----------
    writer : str
        Which kind of container it was in.
    kind : str
        Which hostile value or row it had (:mod:`privet.audit.hostile`).
    column : str
        In which column, or that it was the row itself.
    place : str
        Where it stood: first, last or in the middle.
    what : str
        What it changed.
    """

    writer: str
    kind: str
    column: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.writer}: {self.kind} in {self.column}, {self.place}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    """What an audit of readers found.

    Attributes
    ----------
    compared : dict of str to int
        How many tables were compared, by writer.
    refused : tuple of str
        The writers whose ordinary tables are not read at all: only errors were compared there.
    counterexamples : tuple of Counterexample
    """

    compared: dict[str, int]
    refused: tuple[str, ...]
    counterexamples: tuple[Counterexample, ...]

    @property
    def holds(self) -> bool:
        """Whether no record changed anything."""
        return not self.counterexamples


#: Text, numbers, text that looks like numbers, and dates.
SCHEMAS = (
    Schema({"x": Numeric(0, 1), "a": Categorical(["u", "v"])}, "y", classes=["no", "yes"]),
    Schema({"x": Numeric(0, 9), "k": Categorical([1, 2, 3])}, "y", classes=[0, 1]),
    Schema({"x": Numeric(0, 9), "k": Categorical(["1", "2"])}, "y", classes=["1", "2"]),
    Schema({"a": Categorical(["u", "v"]), "x": Numeric(0, 9)}, "y", classes=["no", "yes"]),
    Schema({"x": Numeric(-1, 1), "z": Numeric(0, 9)}, "y", bounds=(0, 9)),
    Schema({"d": Date("2020-01-02", "2020-01-08"), "n": Integer(0, 9)}, "y", classes=[0, 1]),
)
#: How somebody may write the categories 1 and 2, in a whole table.
_SPELLINGS: tuple[tuple[Any, ...], ...] = ((1.0, 2.0), (1, 2), ("1", "2"))
PLACES = ("first", "in the middle", "last")
_FAILS = "reading fails"
_ROWS = "there is not one row for every record"
_OTHERS = "another record is read differently"
_ITSELF = "it is read differently in other company"
_WARNS = "a warning depends on it"
_TYPES = "the type of what is read depends on it"


@dataclass(frozen=True)
class _Outcome:
    """What a reader did with a container: rows or an error, and what it warned of."""

    rows: Read | None
    error: str
    warned: tuple[str, ...]


def audit(
    reader: Reader | None = None,
    *,
    writers: Sequence[Writer] | None = None,
    schemas: Sequence[Schema] = SCHEMAS,
    rounds: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Try to break the law of reading.

    In every round, each hostile value and row is added to a new table, by each writer that can
    carry it: once to ordinary rows, once to rows of which some are hostile, too. Its column and
    place are drawn; the schemas take turns.

    Parameters
    ----------
    reader : callable, optional
        Takes a :class:`Container` and a schema, and returns an array with a row for every record:
        numbers, NaN for what is missing. The library's own (:func:`read`) if None.
    writers : sequence of Writer, optional
        All that are known (:func:`known_writers`) if None.
    schemas : sequence of Schema
        What the tables are of.
    rounds : int, default=1
        As many as there are schemas use all of them.
    seed : int, default=0
        Decides the tables, columns and places: the same seed, the same audit.
    progress : callable, optional
        Called with the number of finished writers and rounds, and of all.

    Examples
    --------
    >>> def common_type(container, schema):
    ...     return np.column_stack([np.asarray(container.table, float), container.target])
    >>> verdict = audit(common_type, writers=known_writers()[:1], schemas=SCHEMAS[1:2])
    >>> verdict.holds, verdict.counterexamples[0].what
    (False, 'reading fails')
    """
    reader = read if reader is None else reader
    chosen = known_writers() if writers is None else list(writers)
    compared = dict.fromkeys((writer.name for writer in chosen), 0)
    refused: dict[str, None] = {}
    found: dict[tuple[str, str, str], Counterexample] = {}
    steps = [(turn, place) for turn in range(rounds) for place in range(len(chosen))]
    with tempfile.TemporaryDirectory() as folder:
        for done, (turn, place) in enumerate(steps, start=1):
            writer, generator = chosen[place], np.random.default_rng([seed, turn, place])
            for k in range(len(schemas)):
                schema = schemas[(turn + place + k) % len(schemas)]
                trial = _Trial(reader, writer, schema, Path(folder), generator)
                if trial.can_run:
                    break
            else:
                continue
            for one in trial.run():
                found.setdefault((one.writer, one.kind, one.what), one)
            compared[writer.name] += trial.compared
            if trial.refused:
                refused[writer.name] = None
            if progress is not None:
                progress(done, len(steps))
    return Verdict(compared, tuple(refused), tuple(found.values()))


class _Trial:
    """One writer, one schema, two tables: all hostile rows are tried on them."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        schema: Schema,
        folder: Path,
        generator: np.random.Generator,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._schema = schema
        self._folder = folder
        self._generator = generator
        self._spelling = _SPELLINGS[int(generator.integers(len(_SPELLINGS)))]
        self.compared = 0
        self.refused = False

    @property
    def can_run(self) -> bool:
        """Whether the container has a place for ordinary rows."""
        return self._carries(self._ordinary())

    def run(self) -> Iterator[Counterexample]:
        """Yield what hostile rows change."""
        strange = [each for each in self._strange() if self._carries(each[2])]
        ordinary = [self._ordinary() for _ in range(int(self._generator.integers(3, 6)))]
        some = self._generator.permutation(len(strange))[:3].tolist()
        mixed = [*ordinary[:2], *(strange[place][2] for place in some)]
        tables = [(rows, self._read(rows)) for rows in (ordinary, mixed)]
        self.refused = tables[0][1].rows is None
        for kind, column, row in strange:
            seen = []
            for rows, before in tables:
                if before.rows is None and rows is mixed:
                    continue  # one of its rows makes reading fail, which shows by itself
                place = int(self._generator.integers(3))
                at = (0, len(rows) // 2, len(rows))[place]
                after = self._read([*rows[:at], row, *rows[at:]])
                self.compared += 1
                for what in _changes(before, after, at, len(rows)):
                    yield Counterexample(self._writer.name, kind, column, PLACES[place], what)
                if after.rows is not None and len(after.rows) == len(rows) + 1:
                    seen.append(after.rows[at])
            if len(seen) == 2 and not _same(*seen):
                yield Counterexample(self._writer.name, kind, column, "anywhere", _ITSELF)

    def _ordinary(self) -> Row:
        def one_of(values: Sequence[Any]) -> Any:
            chosen = values[int(self._generator.integers(len(values)))]
            return self._spelling[int(chosen) - 1] if chosen in ("1", "2") else chosen

        def value_of(feature: Feature) -> Any:
            if isinstance(feature, Categorical):
                return one_of(feature.values)
            chosen = int(self._generator.integers(10))
            return (
                datetime.date(2020, 1, 1 + chosen) if isinstance(feature, Date) else float(chosen)
            )

        features = tuple(map(value_of, self._schema.features.values()))
        return Row(features, one_of(self._schema.classes or (0.0, 4.0, 9.0)))

    def _strange(self) -> Iterator[tuple[str, str, Row]]:
        """Yield kind, column and row: every value in a column that is drawn, or in all of them."""
        names = [*self._schema.names, self._schema.target]
        for kind, value in hostile.values().items():
            place = int(self._generator.integers(len(names) + 1))
            row = self._ordinary()
            cells = [*row.features, row.target]
            for each in range(len(names)) if place == len(names) else [place]:
                cells[each] = value
            column = "all columns" if place == len(names) else f"column {names[place]!r}"
            yield kind, column, Row(tuple(cells[:-1]), cells[-1])
        for kind, features in hostile.rows(len(self._schema.names)):
            yield kind, "the row itself", Row(features, self._ordinary().target)

    def _carries(self, row: Row) -> bool:
        try:
            self._writer.write([row], self._schema, self._folder)
        except CannotCarry:
            return False
        return True

    def _read(self, rows: Sequence[Row]) -> _Outcome:
        container = self._writer.write(rows, self._schema, self._folder)
        found, error = None, ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = self._reader(container, self._schema)
            except Exception as failure:  # an error is what is looked for
                error = f"{type(failure).__name__}: {_words(failure)}"
        warned = tuple(sorted(f"{w.category.__name__}: {_words(w.message)}" for w in caught))
        return _Outcome(found, error, warned)


def _words(message: Any) -> str:
    try:
        return str(message)
    except Exception:
        return "?"


def _changes(before: _Outcome, after: _Outcome, at: int, rows: int) -> Iterator[str]:
    """Yield what a row more at a place changed that it must not change."""
    if before.error != after.error:
        yield _FAILS
    if before.warned != after.warned:
        yield _WARNS
    if before.rows is None or after.rows is None:
        return
    if before.rows.dtype != after.rows.dtype or before.rows.ndim != after.rows.ndim:
        yield _TYPES
    elif (len(before.rows), len(after.rows)) != (rows, rows + 1):
        yield _ROWS
    elif not _same(before.rows, np.delete(after.rows, at, axis=0)):
        yield _OTHERS


def _same(one: Read, other: Read) -> bool:
    """Tell whether the same was read, zeros with their signs left aside."""
    return one.shape == other.shape and bool(
        ((one == other) | (np.isnan(one) & np.isnan(other))).all()
    )
