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
from privet.reading.streams import ParquetFiles, Stream, is_stream, parquet_files, stream_of

__all__ = [
    "Column",
    "Columns",
    "Numbers",
    "ParquetFiles",
    "Stream",
    "check_types",
    "column_of",
    "feature_matrix",
    "is_stream",
    "parquet_files",
    "read_table",
    "stream_of",
]
