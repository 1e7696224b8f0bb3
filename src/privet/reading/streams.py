"""Tables that come in batches: files larger than memory, folders of them, and Arrow streams.

Every batch is read by the same rules as a whole table (:mod:`privet.reading.columns`), so that what
is read does not depend on where one batch ends and the next one begins.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from privet.errors import DataError
from privet.reading.columns import Columns, check_types
from privet.reading.files import check_names
from privet.schema import Schema
from privet.visible import quoted

T = TypeVar("T")

#: Rows of a batch of a Parquet file: enough that its columns cost more than asking for them.
BATCH_ROWS = 2**16


class Stream:
    """A table in batches, which can be gone through once.

    Parameters
    ----------
    batches : iterable of tables
        All with the same columns.
    schema : Schema
    rows : int or None
        How many rows there will be, if that is known.
    """

    def __init__(self, batches: Iterable[Any], schema: Schema, rows: int | None = None) -> None:
        self.schema = schema
        self.rows = rows
        self._batches = batches

    def __iter__(self) -> Iterator[Columns]:
        """Yield the batches; each has the target among its columns.

        What goes wrong on the way is a :class:`~privet.errors.DataError`: the text of another
        library could be about the rows.
        """
        types = None
        batches = iter(self._batches)
        while (batch := _next(batches)) is not None:
            columns = Columns.of(_plain(batch), self.schema)
            target = columns.target(self.schema)
            here = columns.types()
            if types is None:
                types = here
                check_types(columns, target, self.schema)
            elif here != types:
                raise DataError("the batches of the stream have columns of different types")
            yield columns


def _next(batches: Iterator[Any]) -> Any:
    try:
        return next(batches)
    except StopIteration:
        return None
    except DataError:
        raise
    except Exception:
        broken = DataError(
            "the stream of rows ended in an error, so that not all of them could be read. Nothing "
            "was asked of them, and nothing was spent; see to the source of the stream"
        )
    raise broken


def _plain(batch: Any) -> Any:
    return pa.table(batch) if isinstance(batch, pa.RecordBatch) else batch


def stream_of(source: Any, schema: Schema) -> Stream:
    """Open anything that gives rows in batches.

    Parameters
    ----------
    source : Arrow stream, or iterable of tables
        A pyarrow reader, dataset or scanner; a DuckDB relation; a polars LazyFrame; a cursor of
        ADBC; whatever has ``__arrow_c_stream__``; or an iterable of record batches or dataframes.
    schema : Schema
    """
    wanted = [*schema.names, schema.target]
    if hasattr(source, "collect_batches"):  # polars
        return Stream(_opened(lambda: source.select(wanted).collect_batches()), schema)
    if hasattr(source, "scanner"):  # a pyarrow dataset
        check_names("the dataset", source.schema.names, wanted)
        return Stream(_opened(lambda: source.scanner(columns=wanted).to_reader()), schema)
    for name in ("to_reader", "to_arrow_reader", "fetch_record_batch"):
        if hasattr(source, name):
            return Stream(_opened(getattr(source, name)), schema)
    if isinstance(source, pa.RecordBatchReader):
        return Stream(source, schema)
    if hasattr(source, "__arrow_c_stream__"):
        return Stream(_opened(lambda: pa.RecordBatchReader.from_stream(source)), schema)
    if isinstance(source, str | bytes | Path) or not isinstance(source, Iterable):
        raise DataError(
            "expected a stream of rows: a pyarrow reader or dataset, a DuckDB relation, a polars "
            "LazyFrame, a cursor of ADBC, or an iterable of tables; for files there is "
            "from_parquet"
        )
    return Stream(source, schema)


def _opened(start: Callable[[], T]) -> T:
    try:
        return start()
    except Exception:
        broken = DataError("the stream of rows could not be opened; see to its source")
    raise broken


def parquet_files(path: str | Path) -> list[Path]:
    """Return the Parquet files that a path names: a file, a folder, or a pattern (``*``).

    A folder's are all files below it that end in ``.parquet``, in the order of their names; hidden
    ones, and those that begin with an underscore, are left out.
    """
    given = str(path)
    if glob.has_magic(given) and not os.path.exists(given):  # noqa: PTH110  # which never raises
        found = sorted(map(Path, glob.glob(given, recursive=True)))  # noqa: PTH207
        what = "no file fits"
    elif os.path.isdir(given):  # noqa: PTH112
        root = Path(given)
        found = sorted(
            file
            for file in root.rglob("*.parquet")
            if not any(part[0] in "._" for part in file.relative_to(root).parts)
        )
        what = "there is no Parquet file in"
    else:
        found, what = [Path(given)], "there is no file"
    files = [file for file in found if os.path.isfile(file)]  # noqa: PTH113
    if not files:
        raise DataError(f"{what} {given}")
    return files


class ParquetFiles:
    """Parquet files with the same columns, read batch after batch.

    Parameters
    ----------
    files : list of Path
    schema : Schema
        Only its columns are read.
    progress : function, optional
        Is called with the part of the rows that was read so far, between 0 and 1.
    """

    def __init__(
        self,
        files: list[Path],
        schema: Schema,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._wanted = [*schema.names, schema.target]
        self._files = files
        self._progress = progress
        self._marks = {file: _mark(file) for file in files}
        self.rows = 0
        types: list[pa.DataType] | None = None
        for file in files:
            found = _open_parquet(file)
            check_names(file, found.schema_arrow.names, self._wanted)
            here = [found.schema_arrow.field(name).type for name in self._wanted]
            if types is None:
                types = here
            for name, one, other in zip(self._wanted, types, here, strict=True):
                if one != other:
                    raise DataError(
                        f"the files have different types of the column {quoted(name)}: {one} in "
                        f"{files[0]}, {other} in {file}"
                    )
            self.rows += found.metadata.num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        done = 0
        for file in self._files:
            batches = _open_parquet(file).iter_batches(BATCH_ROWS, columns=self._wanted)
            while (batch := self._read(file, batches)) is not None:
                yield batch
                done += len(batch)
                if self._progress is not None:
                    self._progress(min(done / max(self.rows, 1), 1.0))
            if _mark(file) != self._marks[file]:
                raise DataError(
                    f"{file} changed while it was read. Nothing was asked of it, and nothing was "
                    "spent; start again when it is complete"
                )

    def _read(self, file: Path, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except Exception:  # its message may quote the file
            broken = DataError(f"cannot read {file}: it is damaged, or it changed meanwhile")
        raise broken


def _open_parquet(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file, pre_buffer=False)
    except Exception:  # its message may quote the file
        broken = DataError(f"cannot read {file}: it is damaged, or no Parquet file")
    raise broken


def _mark(file: Path) -> tuple[int, ...]:
    """Return by what a file is known to have stayed as it was."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_stream(source: Any) -> bool:
    """Tell whether something gives rows in batches, and is no table in memory."""
    if isinstance(source, pa.RecordBatchReader):
        return True
    if hasattr(source, "collect_batches") or hasattr(source, "scanner"):
        return True
    if hasattr(source, "to_arrow_reader") or hasattr(source, "fetch_record_batch"):
        return True
    frame = nw.from_native(source, pass_through=True)
    return isinstance(frame, nw.LazyFrame) and hasattr(source, "__arrow_c_stream__")
