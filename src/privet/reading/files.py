"""Tables on disk: CSV (also packed by gzip) and Parquet. No message quotes what is in a file."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from privet.errors import ColumnTypeWarning, DataError
from privet.reading.csv import MISSING, CsvFile, Dialect
from privet.reading.values import days, number_of_text
from privet.schema import LONGEST_TEXT, Schema
from privet.visible import quoted

#: How the names of files end that can be read.
ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
#: Separators that a hint may name.
_SEPARATORS = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
#: No category has more bytes.
_LONGEST_BYTES = 4 * LONGEST_TEXT
_TRUTH = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")


def read_table(
    path: str | Path,
    schema: Schema | None = None,
    *,
    target: bool = True,
    separator: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> pa.Table:
    """Read a CSV or Parquet file so that no record changes how another one is read.

    Parameters
    ----------
    path : path
        Its name ends in ``.csv``, ``.tsv`` (both also with ``.gz``) or ``.parquet``.
    schema : Schema, optional
        Its columns are read, as numbers, dates or text, and nothing else. Without a schema, all
        columns are read, and what they hold is read off their values: for drafts.
    target : bool, default=True
        Whether the schema's target is among the columns.
    separator : str, optional
        What stands between the fields of a CSV file; a comma, or a tab for ``.tsv``, if not given.
    encoding : str, default="utf-8"
        Of a CSV file: ``"utf-8"``, or one of a single byte per character such as ``"latin-1"``.
    decimal : str, default="."
        The decimal point of a CSV file: ``"."`` or ``","``.

    Returns
    -------
    pyarrow.Table
        For ``fit``, ``predict`` and the like. A record that is not well-formed (docs/reading.md)
        is a record of missing values.
    """
    path = Path(path)
    if not os.path.isfile(path):  # noqa: PTH113  # which never raises
        raise DataError(f"there is no file {path}")
    columns = None
    if schema is not None:
        columns = list(schema.columns if target else schema.names)
    if ending_of(path) == ".parquet":
        if (separator, encoding, decimal) != (None, "utf-8", "."):
            raise DataError("separator, encoding and decimal are for CSV files, not for Parquet")
        return _read_parquet(path, columns)
    dialect = dialect_of(path, separator, encoding, decimal)
    try:
        file = CsvTable(path, dialect, columns, schema)
        table = pa.concat_tables([file.empty(), *file.blocks()])
    except OSError:
        raise DataError(f"cannot read {path}") from None
    return _with_types(table, dialect.decimal) if schema is None else table


def ending_of(path: Path) -> str:
    """Return how a file's name ends, which says what it is; raise if it says nothing."""
    kind = path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    ending = "".join(kind).lower()
    if ending not in ENDINGS:
        raise DataError(
            f"cannot tell what {path} is: name it .csv, .tsv, .csv.gz, .tsv.gz or .parquet"
        )
    return ending


def dialect_of(path: Path, separator: str | None, encoding: str, decimal: str) -> Dialect:
    """Return how a CSV file is written; its name says what usually stands between fields."""
    usual = "\t" if ending_of(path).startswith(".tsv") else ","
    return Dialect(usual if separator is None else separator, encoding, decimal)


class CsvTable:
    """A CSV file whose columns are read by a schema, block by block.

    Parameters
    ----------
    path : Path
    dialect : Dialect
    columns : list of str or None
        The columns to read; None: all.
    schema : Schema or None
        None: all are read as text.
    """

    def __init__(
        self, path: Path, dialect: Dialect, columns: list[str] | None, schema: Schema | None
    ) -> None:
        self._file = CsvFile(path, dialect)
        check_names(path, self._file.names, columns, dialect)
        self._chosen = list(self._file.names) if columns is None else columns
        self._numeric = [
            name for name in self._chosen if schema is not None and schema.of_numbers(name)
        ]
        self._dates = [] if schema is None else sorted(schema.dates)

    @property
    def part_read(self) -> float:
        """Which part of the file was read so far, between 0 and 1."""
        return self._file.part_read

    def empty(self) -> pa.Table:
        """Return a table with the types of the blocks, and no rows."""
        types = [
            (name, pa.float64() if name in self._numeric else pa.string()) for name in self._chosen
        ]
        return _with_dates(pa.schema(types).empty_table(), self._dates)

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the records."""
        for block in self._file.blocks(self._chosen, self._numeric):
            yield _with_dates(_without_long(block), self._dates)


def _with_dates(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Read texts as dates, each by itself."""
    for name in names:
        coded = table.column(name).combine_chunks().dictionary_encode()
        known = days(coded.dictionary.to_pylist())
        found = _dates(known).take(coded.indices)
        table = table.set_column(table.column_names.index(name), name, found)
    return table


def _dates(known: NDArray[np.float64]) -> pa.Array:
    missing = np.isnan(known)
    whole = np.where(missing, 0, known).astype(np.int32)
    return pa.array(whole, mask=missing).cast(pa.date32())


def _without_long(table: pa.Table) -> pa.Table:
    """Make texts missing that are too long for any category, as which they are unknown.

    So that a small packed file cannot fill the memory with them.
    """
    for place, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            is_long = pc.greater(pc.binary_length(column), _LONGEST_BYTES).fill_null(False)
            if pc.any(is_long).as_py():
                # Not by if_else, which keeps room for what it leaves out.
                mask = is_long.to_numpy()
                places = pa.array(np.cumsum(~mask) - 1, mask=mask)
                kept = column.filter(pc.invert(is_long)).take(places)
                table = table.set_column(place, table.column_names[place], kept)
    return table


def _read_parquet(path: Path, columns: list[str] | None) -> pa.Table:
    try:
        names = pyarrow.parquet.read_schema(path).names
        readable = True
    except Exception:  # its message may quote the file
        names, readable = [], False
    if readable:
        check_names(path, names, columns)
        try:
            return pyarrow.parquet.ParquetFile(path).read(columns=columns)
        except Exception:
            readable = False
    raise DataError(f"cannot read {path}: it is damaged, or no Parquet file")


def check_names(
    path: Path | str,
    names: Sequence[str],
    columns: list[str] | None,
    dialect: Dialect | None = None,
) -> None:
    """Raise unless the names of columns, which are public, are those that are needed."""
    if list(names) in ([], [""]):
        raise DataError(f"{path} has no columns: it is empty, or its first line is")
    if len(set(names)) < len(names):
        raise DataError(f"{path} has two columns of the same name; rename one")
    missing = [name for name in columns or () if name not in names]
    hint = "" if dialect is None else _separator_hint(names, columns, dialect)
    if missing:
        raise DataError(f"{path} has no column {quoted(missing[0])}, which the schema lists{hint}")
    if hint and len(names) == 1:
        raise DataError(f"{path} has a single column{hint}")


def _separator_hint(names: Sequence[str], columns: list[str] | None, dialect: Dialect) -> str:
    """Say which separator the first line seems to have, if it is another one."""
    line = dialect.separator.join(names)
    for other, shown in _SEPARATORS.items():
        if other == dialect.separator or other not in line:
            continue
        parts = [part.strip('" ') for part in line.split(other)]
        if columns is None or set(columns) <= set(parts):
            return (
                f"; its fields seem to be separated by {shown}: say so by the separator "
                "(--separator on the command line)"
            )
    return ""


def _with_types(table: pa.Table, decimal: str) -> pa.Table:
    """Read off the texts of every column what it holds: truth values, numbers, dates or text.

    For drafts of schemas, which depend on single records anyway.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        coded = column.combine_chunks().dictionary_encode()
        texts = [text.strip() for text in coded.dictionary.to_pylist()]
        present = [text for text in texts if text not in MISSING]
        if present and all(text.lower() in _TRUTH for text in present):
            known = pa.array([_TRUTH.get(text.lower()) for text in texts], pa.bool_())
        elif present and all(not isnan(number_of_text(text, decimal)) for text in present):
            known = pa.array([number_of_text(text, decimal) for text in texts], pa.float64())
            if all(_WHOLE.fullmatch(text) for text in present):
                known = pc.if_else(pc.is_nan(known), None, known).cast(pa.int64())
        elif present and not np.isnan(days(present)).any():
            known = _dates(days(texts))
        else:
            known = pa.array([None if text in MISSING else text for text in texts], pa.string())
            _hint_decimal(name, present, decimal)
        columns[name] = known.take(coded.indices)
    return pa.table(columns)


def _hint_decimal(name: str, texts: Sequence[str], decimal: str) -> None:
    """Warn of text that would be numbers with the other decimal point."""
    other = "," if decimal == "." else "."
    if texts and all(not isnan(number_of_text(text, other)) for text in texts):
        warnings.warn(
            f"column {quoted(name)} looks like numbers with the decimal point {other!r}: say so by "
            "decimal (--decimal on the command line) if it is so",
            ColumnTypeWarning,
            stacklevel=2,
        )
