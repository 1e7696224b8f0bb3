"""Where rows come from that need not fit into memory: files, folders of them, and streams.

Files of one table have the same columns with the same types, all Parquet or all CSV. That is
looked at before the first row is read, and nothing that a message says is about a row.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privet.errors import DataError
from privet.reading import streams
from privet.reading.files import ENDINGS, CsvTable, check_names, dialect_of, ending_of
from privet.reading.streams import Stream, stream_of
from privet.schema import Schema
from privet.visible import quoted

#: Columns of Parquet files are read little by little, not a whole group of rows at once.
_FRUGAL: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**18}
#: Is called with the part of the rows that was read so far, between 0 and 1.
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Source:
    """Rows that need not fit into memory, and how to read them: for ``fit`` and ``PrivateTable``.

    Parameters
    ----------
    rows : path or stream
        A Parquet or CSV file; a folder (all such files below it, of one kind); a pattern with
        ``*``; a directory that ``privet encode`` has kept; or a stream as for
        :meth:`PrivateTable.from_batches`.
    directory : path, optional
        Where the blocks of rows are put, which are as sensitive as the rows, and removed at the
        end; the system's place for temporary files if not given.
    progress : function, optional
        Is called with the part of the files that was read so far, between 0 and 1.
    separator, encoding, decimal
        How CSV files are written, as for :func:`~privet.reading.read_table`.
    engine : str, optional
        Where Parquet files are read and asked: on a Dask cluster, ``"dask"`` for one of processes
        on this machine, or a scheduler's address, ``"dask://host:8786"`` or, with the certificates
        of Dask's own configuration, ``"dask+tls://host:8786"``. In this process if not given.
    insecure : bool, default=False
        Whether a scheduler is used that anybody on a network can reach and listen to.

    Examples
    --------
    >>> from privet import PrivateTreeClassifier, Schema
    >>> from privet.reading import Source
    >>> source = Source("visits/*.parquet", directory="/scratch")
    >>> PrivateTreeClassifier(1.0, schema=Schema.from_toml("schema.toml"),
    ...                       ledger="ledger.jsonl").fit(source)  # doctest: +SKIP
    """

    rows: Any
    directory: str | Path | None = None
    progress: Progress | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    engine: str | None = None
    insecure: bool = False

    @property
    def scheduler(self) -> str | None:
        """The address of the Dask scheduler, if the engine names one."""
        assert self.engine is not None
        if self.engine == "dask":
            return None
        for kind, plain in (("dask://", "tcp://"), ("dask+tls://", "tls://")):
            if self.engine.startswith(kind) and self.engine != kind:
                return plain + self.engine.removeprefix(kind)
        raise DataError("engine must be dask, dask://HOST:PORT or dask+tls://HOST:PORT")

    @property
    def path(self) -> Path | None:
        """The path of files, if the rows are in some."""
        return Path(self.rows) if isinstance(self.rows, str | Path) else None

    def open(self, schema: Schema) -> Stream:
        """Look at the files, and return their rows in batches."""
        written = (self.separator, self.encoding, self.decimal)
        if self.path is None:
            if written != (None, "utf-8", "."):
                raise DataError(
                    "separator, encoding and decimal are for CSV files, not for streams"
                )
            return stream_of(self.rows, schema)
        files = data_files(self.path)
        if ending_of(files[0]) != ".parquet":
            return Stream(CsvFiles(files, schema, *written, progress=self.progress), schema)
        if written != (None, "utf-8", "."):
            raise DataError("separator, encoding and decimal are for CSV files, not for Parquet")
        found = ParquetFiles(files, schema, self.progress)
        return Stream(found, schema, found.rows)


def data_files(path: str | Path) -> list[Path]:
    """Return the files of a table that a path names: a file, a folder, or a pattern (``*``).

    A folder's are all files below it whose names end as Parquet or CSV files' do, in the order of
    their names; hidden ones, and those that begin with an underscore, are left out.
    """
    given = str(path)
    if os.path.isdir(given):  # noqa: PTH112  # which never raises
        found = _files_below(Path(given))
        missing = f"there is no Parquet or CSV file in {given}"
    elif glob.has_magic(given) and not os.path.lexists(given):
        found = []
        for name in sorted(glob.glob(given, recursive=True)):  # noqa: PTH207
            if Path(name).name[:1] not in (".", "_"):
                found += _files_below(Path(name)) if os.path.isdir(name) else [Path(name)]  # noqa: PTH112
        missing = f"no file fits {given}"
    else:
        found = [Path(given)] if os.path.isfile(given) else []  # noqa: PTH113
        missing = f"there is no file {given}"
    if not found:
        raise DataError(missing)
    kinds = {ending_of(file) == ".parquet" for file in found}
    if len(kinds) > 1:
        raise DataError(f"{given} has both Parquet and CSV files: a table is of one kind")
    known: dict[tuple[int, ...], Path] = {}
    for file in found:
        if known.setdefault(_mark(file)[:2], file) is not file:
            raise DataError(f"{file} is a file that is named twice: its rows would count twice")
    return found


def _files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and in the folders in it, whatever they are linked to."""
    found: list[Path] = []
    seen: set[str] = set()

    def fail(_: OSError) -> None:
        raise DataError(f"cannot look into all folders below {folder}") from None

    for here, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:
            raise DataError(f"{here} is a folder that is there twice: its rows would count twice")
        seen.add(real)
        folders[:] = [name for name in folders if name[0] not in "._"]
        mine = (Path(here, name) for name in names if name[0] not in "._")
        found += [file for file in mine if file.name.lower().endswith(ENDINGS)]
    return sorted(found)


class _Files(ABC):
    """Files of one table, read one after the other."""

    def __init__(self, files: Sequence[Path], progress: Progress | None) -> None:
        self._files = files
        self._progress = progress
        self._marks = [_mark(file) for file in files]

    @abstractmethod
    def empty(self) -> pa.Table:
        """Return a table with the types of the files, and no rows."""

    @abstractmethod
    def _batches(self, number: int) -> Iterator[tuple[Any, float]]:
        """Yield the batches of a file, and which part of it was read so far."""

    def __iter__(self) -> Iterator[Any]:
        yield self.empty()
        sizes = [mark[2] for mark in self._marks]
        before, total = 0, max(sum(sizes), 1)
        for number, (file, size, mark) in enumerate(
            zip(self._files, sizes, self._marks, strict=True)
        ):
            for batch, part in self._batches(number):
                yield batch
                if self._progress is not None:
                    self._progress(min((before + part * size) / total, 1.0))
            before += size
            if _mark(file) != mark:
                raise DataError(
                    f"{file} changed while it was read. Nothing was asked of it, and nothing was "
                    "spent; start again when it is complete"
                )
        if self._progress is not None:
            self._progress(1.0)


class ParquetFiles(_Files):
    """Parquet files with the same columns, read batch after batch.

    Parameters
    ----------
    files : sequence of Path
    schema : Schema
        Only its columns are read.
    progress : function, optional
    """

    def __init__(
        self, files: Sequence[Path], schema: Schema, progress: Progress | None = None
    ) -> None:
        super().__init__(files, progress)
        self._wanted = list(schema.columns)
        #: The rows of every group of rows of every file.
        self.row_groups: list[list[int]] = []
        self._types: pa.Schema | None = None
        for file in files:
            with _open_parquet(file) as found:
                types = found.schema_arrow
                check_names(file, types.names, self._wanted)
                footer = found.metadata
                groups = range(footer.num_row_groups)
                self.row_groups.append([footer.row_group(group).num_rows for group in groups])
            here = pa.schema([pa.field(name, types.field(name).type) for name in self._wanted])
            if self._types is None:
                self._types = here
            for one, other in zip(self._types, here, strict=True):
                if one.type != other.type:
                    raise DataError(
                        f"the files have different types of the column {quoted(one.name)}: "
                        f"{one.type} in {files[0]}, {other.type} in {file}"
                    )

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(map(sum, self.row_groups))

    def empty(self) -> pa.Table:
        """See :class:`_Files`."""
        assert self._types is not None
        return pa.Table.from_batches([], self._types)

    def _batches(self, number: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        file = self._files[number]
        with _open_parquet(file) as opened:
            rows, done = opened.metadata.num_rows, 0
            batches = opened.iter_batches(streams.BATCH_ROWS, columns=self._wanted)
            while (batch := self._next(batches, file)) is not None:
                done += len(batch)
                yield batch, done / max(rows, 1)

    def _next(self, batches: Iterator[pa.RecordBatch], file: Path) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except Exception:  # its message may quote the file
            broken = DataError(f"cannot read {file}: it is damaged, or it changed meanwhile")
        raise broken


class CsvFiles(_Files):
    """CSV files with the same columns, read block after block.

    Parameters
    ----------
    files : sequence of Path
    schema : Schema
        Only its columns are read.
    separator, encoding, decimal
        As for :func:`~privet.reading.read_table`.
    progress : function, optional
    """

    def __init__(
        self,
        files: Sequence[Path],
        schema: Schema,
        separator: str | None = None,
        encoding: str = "utf-8",
        decimal: str = ".",
        *,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(files, progress)
        wanted = list(schema.columns)
        self._tables = [
            CsvTable(file, dialect_of(file, separator, encoding, decimal), wanted, schema)
            for file in files
        ]

    def empty(self) -> pa.Table:
        """See :class:`_Files`."""
        return self._tables[0].empty()

    def _batches(self, number: int) -> Iterator[tuple[pa.Table, float]]:
        table = self._tables[number]
        try:
            for batch in table.blocks():
                yield batch, table.part_read
        except OSError:
            broken = DataError(f"cannot read {self._files[number]}")
        else:
            return
        raise broken


def _open_parquet(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file, **_FRUGAL)
    except Exception:  # its message may quote the file
        broken = DataError(f"cannot read {file}: it is damaged, or no Parquet file")
    raise broken


def _mark(file: Path) -> tuple[int, ...]:
    """Return by what a file is known to be itself, and to have stayed as it was."""
    try:
        found = file.stat()
    except OSError:
        raise DataError(f"cannot read {file}: it is not there any more") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
