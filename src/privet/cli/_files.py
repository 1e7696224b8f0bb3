"""Writing tables on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from privet.errors import DataError


def write_table(columns: dict[str, Any], path: Path) -> None:
    """Write columns to a CSV or Parquet file; values of several types are written as text."""
    table = pa.table(
        {
            name: values.astype(str) if values.dtype == object else values
            for name, values in columns.items()
        }
    )
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
