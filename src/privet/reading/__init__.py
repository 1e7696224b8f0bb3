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
from privet.reading.sources import ParquetFiles, Source, data_files
from privet.reading.streams import Stream, is_stream, stream_of

__all__ = [
    "Column",
    "Columns",
    "Numbers",
    "ParquetFiles",
    "Source",
    "Stream",
    "check_types",
    "column_of",
    "data_files",
    "feature_matrix",
    "is_stream",
    "read_table",
    "stream_of",
]
