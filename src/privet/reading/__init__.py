"""Reading: files, dataframes, arrays and lists into columns. A record is read alone."""

from privet.reading.columns import (
    Column,
    Columns,
    Numbers,
    check_types,
    column_of,
    feature_matrix,
)
from privet.reading.files import read_table

__all__ = [
    "Column",
    "Columns",
    "Numbers",
    "check_types",
    "column_of",
    "feature_matrix",
    "read_table",
]
