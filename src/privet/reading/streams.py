"""Tables that come in batches: Arrow streams, and whatever else gives rows bit by bit.

Every batch is read by the same rules as a whole table (:mod:`privet.reading.columns`), so that what
is read does not depend on where one batch ends and the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import pyarrow as pa

from privet.errors import DataError
from privet.reading.columns import Columns, check_types
from privet.reading.files import check_names
from privet.schema import Schema

T = TypeVar("T")

#: Rows that are read together: enough that their columns cost more than asking for them.
BATCH_ROWS = 2**16

#: By which methods others give a pyarrow reader: pyarrow's scanners, DuckDB, cursors of ADBC.
_READERS = ("to_reader", "to_arrow_reader", "fetch_record_batch")
_END = object()


class Stream:
    """A table in batches, which can be gone through once.

    Parameters
    ----------
    batches : iterable of tables
        All with the same columns. What knows its types before its first row begins with a table
        without rows, so that what is refused does not depend on whether there are rows.
    schema : Schema
    rows : int or None
        How many rows there will be, if that is known.
    """

    def __init__(self, batches: Iterable[Any], schema: Schema, rows: int | None = None) -> None:
        self.schema = schema
        self.rows = rows
        self._batches = batches

    def __iter__(self) -> Iterator[Columns]:
        """Yield the batches, none of them large; each has the target among its columns.

        What goes wrong on the way is a :class:`~privet.errors.DataError`: the text of another
        library could be about the rows.
        """
        types = declared = None
        wanted = self.schema.columns
        batches = iter(self._batches)
        while (batch := _next(batches)) is not _END:
            for piece in _pieces(batch):
                columns = Columns.of(piece, self.schema)
                if isinstance(piece, pa.Table):
                    if declared is not None and piece.schema.equals(declared):
                        yield columns  # of the same types as the one before
                        continue
                    declared = piece.schema
                target = columns.target(self.schema)
                here = columns.types(wanted)
                if types is None:
                    types = here
                    check_types(columns, target, self.schema)
                elif here != types:
                    raise DataError("the batches of the stream have columns of different types")
                yield columns


def _next(batches: Iterator[Any]) -> Any:
    try:
        return next(batches, _END)
    except DataError:
        raise
    except Exception:
        broken = DataError(
            "the stream of rows ended in an error, so that not all of them could be read. Nothing "
            "was asked of them, and nothing was spent; see to the source of the stream"
        )
    raise broken


def _pieces(batch: Any) -> Iterator[Any]:
    """Yield a batch in pieces that are not too large; at least one."""
    if isinstance(batch, pa.RecordBatch):
        batch = pa.table(batch)
    frame = nw.from_native(batch, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or len(frame) <= BATCH_ROWS:
        yield batch
        return
    for start in range(0, len(frame), BATCH_ROWS):
        yield frame[start : start + BATCH_ROWS].to_native()


def stream_of(source: Any, schema: Schema) -> Stream:
    """Open anything that gives rows in batches.

    Parameters
    ----------
    source : Arrow stream, table, or iterable of tables
        A pyarrow reader, dataset or scanner; a DuckDB relation; a polars LazyFrame; a cursor of
        ADBC; whatever has ``__arrow_c_stream__``; or an iterable of record batches or dataframes.
    schema : Schema
    """
    wanted = list(schema.columns)
    if isinstance(source, pa.RecordBatch):
        source = pa.table(source)
    frame = None
    if not isinstance(source, str | bytes | Path):
        frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Stream([source], schema, len(frame))
    if hasattr(source, "collect_batches"):  # polars
        names = _opened(source.collect_schema)
        check_names("the stream", list(names), wanted)
        empty = names.to_frame().select(wanted)
        return Stream(_after(empty, _opened(source.select(wanted).collect_batches)), schema)
    if hasattr(source, "scanner"):  # a pyarrow dataset
        check_names("the dataset", source.schema.names, wanted)
        return _stream_of_reader(
            _opened(lambda: source.scanner(columns=wanted, batch_size=BATCH_ROWS).to_reader()),
            schema,
        )
    for name in _READERS:
        if hasattr(source, name):
            return _stream_of_reader(_opened(getattr(source, name)), schema)
    if isinstance(source, pa.RecordBatchReader):
        return _stream_of_reader(source, schema)
    if hasattr(source, "__arrow_c_stream__"):
        reader = _opened(lambda: pa.RecordBatchReader.from_stream(source))
        return _stream_of_reader(reader, schema)
    if isinstance(source, str | bytes | Path) or not isinstance(source, Iterable):
        raise DataError(
            "expected a stream of rows: a pyarrow reader or dataset, a DuckDB relation, a polars "
            "LazyFrame, a cursor of ADBC, or an iterable of tables"
        )
    return Stream(source, schema)


def _stream_of_reader(reader: pa.RecordBatchReader, schema: Schema) -> Stream:
    check_names("the stream", reader.schema.names, list(schema.columns))
    return Stream(_after(pa.Table.from_batches([], reader.schema), reader), schema)


def _after(empty: Any, batches: Iterable[Any]) -> Iterator[Any]:
    yield empty
    yield from batches


def _opened(start: Callable[[], T]) -> T:
    try:
        return start()
    except Exception:
        broken = DataError("the stream of rows could not be opened; see to its source")
    raise broken


def is_stream(source: Any) -> bool:
    """Tell whether something gives rows in batches, and is no table in memory."""
    if isinstance(source, pa.RecordBatchReader | Iterator):
        return True
    frame = nw.from_native(source, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return False
    known = ("collect_batches", "scanner", *_READERS, "__arrow_c_stream__")
    return any(hasattr(source, name) for name in known)
