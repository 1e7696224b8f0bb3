"""Reading and writing tables on disk. No message quotes what is in a file."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from privet.errors import DataError
from privet.schema import Numeric, Schema


def read_table(path: Path, schema: Schema | None = None, *, target: bool = True) -> pa.Table:
    """Read a CSV or Parquet file; with a schema, its columns only.

    No record of a CSV file can make the reading fail: rows with a wrong number of fields are
    skipped, and numbers that cannot be read count as missing.
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


def write_table(columns: dict[str, Any], path: Path) -> None:
    """Write columns to a CSV or Parquet file."""
    table = pa.table(columns)
    if path.suffix.lower() == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)


def check_writable(path: Path, endings: tuple[str, ...] | None = None) -> None:
    """Refuse a path that cannot be written, before anything is spent."""
    if endings is not None and path.suffix.lower() not in endings:
        raise DataError(f"cannot write {path}: its name must end in {' or '.join(endings)}")
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise DataError(f"cannot write {path}: the folder does not exist or is not writable")
    if path.exists() and not os.access(path, os.W_OK):
        raise DataError(f"cannot write {path}: the file is not writable")


def _read_parquet(path: Path, columns: list[str] | None) -> pa.Table:
    names = pyarrow.parquet.read_schema(path).names
    _check_names(path, names, columns)
    return pyarrow.parquet.read_table(path, columns=columns)


def _read_csv(path: Path, columns: list[str] | None, schema: Schema | None) -> pa.Table:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    _check_names(path, names, columns)
    types: dict[str, pa.DataType] = {}
    if schema is not None:
        for name in columns or ():
            feature = schema.features.get(name)
            types[name] = pa.float64() if isinstance(feature, Numeric) else pa.string()
    try:
        return _parse_csv(path, delimiter, columns, types)
    except pa.ArrowInvalid:
        # Some number is none: read text, and let the schema's rule for missing values decide.
        return _parse_csv(path, delimiter, columns, dict.fromkeys(types, pa.string()))


def _parse_csv(
    path: Path, delimiter: str, columns: list[str] | None, types: dict[str, pa.DataType]
) -> pa.Table:
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=columns,
            column_types=types,
            strings_can_be_null=columns is None,
        ),
    )


def _check_names(path: Path, names: list[str], columns: list[str] | None) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"{path} has two columns of the same name")
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}, which the schema lists")
