"""Reading tables on disk. No message quotes what is in a file."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from privet.errors import DataError
from privet.frames import as_numbers
from privet.schema import Numeric, Schema, all_numbers


def read_table(path: Path, schema: Schema | None = None, *, target: bool = True) -> pa.Table:
    """Read a CSV or Parquet file; with a schema, its columns only.

    No line of a CSV file can make the reading fail or change how another one is read; see
    :func:`_read_lines`.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    columns = None
    if schema is not None:
        columns = [*schema.names, schema.target] if target else list(schema.names)
    try:
        if path.suffix.lower() == ".parquet":
            return _read_parquet(path, columns)
        if path.suffix.lower() in (".csv", ".tsv"):
            return _read_csv(path, columns, schema)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        # Without the cause: its message may quote the data.
        raise DataError(
            f"cannot read {path}; is it really a {path.suffix[1:]} file (text: in UTF-8)?"
        ) from None
    raise DataError(f"cannot tell what {path} is: name it .csv, .tsv or .parquet")


def _read_parquet(path: Path, columns: list[str] | None) -> pa.Table:
    names = pyarrow.parquet.read_schema(path).names
    _check_names(path, names, columns)
    return pyarrow.parquet.read_table(path, columns=columns)


def _read_csv(path: Path, columns: list[str] | None, schema: Schema | None) -> pa.Table:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("rb") as file:
        header = file.readline().decode("utf-8-sig", "replace").rstrip("\r\n")
    names = next(csv.reader([header], delimiter=delimiter), []) if header else []
    _check_names(path, names, columns)
    if schema is None:
        return _read_typed(path, delimiter, None, {}, quotes=True)
    types = {name: pa.float64() if _of_numbers(schema, name) else pa.string() for name in names}
    if not _has_quotes(path):
        with suppress(pa.ArrowInvalid):
            return _read_typed(path, delimiter, columns, types, quotes=False)
    return _read_lines(path, delimiter, names, columns or names, types)


def _read_typed(
    path: Path,
    delimiter: str,
    columns: list[str] | None,
    types: dict[str, pa.DataType],
    *,
    quotes: bool,
) -> pa.Table:
    """Read a file fast; fails if anything in it is not as expected."""
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=1 << 26),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=quotes, quote_char='"' if quotes else False
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=columns, column_types=types, strings_can_be_null=columns is None
        ),
    )


def _read_lines(
    path: Path,
    delimiter: str,
    names: list[str],
    columns: list[str],
    types: dict[str, pa.DataType],
) -> pa.Table:
    """Read a file line by line, so that no line can spoil another one.

    One line is one record. A line with a wrong number of fields, or one that cannot be read at
    all, is a record of missing values; blank lines are passed over.
    """
    places = [names.index(name) for name in columns]
    values: list[list[str | None]] = [[] for _ in columns]
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
        next(file, None)
        for line in file:
            text = line.rstrip("\r\n")
            if not text:
                continue
            fields: list[str] = []
            with suppress(csv.Error):
                fields = next(csv.reader([text], delimiter=delimiter), [])
            whole = len(fields) == len(names)
            for column, place in zip(values, places, strict=True):
                column.append(fields[place] if whole else None)
    return pa.table(
        {
            name: as_numbers(np.array(column, dtype=object), name)
            if types[name] == pa.float64()
            else pa.array(column, pa.string())
            for name, column in zip(columns, values, strict=True)
        }
    )


def _has_quotes(path: Path) -> bool:
    with path.open("rb") as file:
        return any(b'"' in block for block in iter(lambda: file.read(1 << 24), b""))


def _of_numbers(schema: Schema, name: str) -> bool:
    """Tell whether the schema compares a column's values as numbers."""
    if name == schema.target:
        return schema.classes is None or all_numbers(schema.classes)
    feature = schema.features.get(name)
    return isinstance(feature, Numeric) or (feature is not None and all_numbers(feature.values))


def _check_names(path: Path, names: list[str], columns: list[str] | None) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"{path} has two columns of the same name")
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}, which the schema lists")
