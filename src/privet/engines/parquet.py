"""Parquet files as pieces that are read one at a time, wherever somebody has room for one.

A piece is some groups of rows of a file, or of several small ones. It is read batch by batch, so
that its values are never all in memory; only its codes are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from privet.engines.encoding import Encoded, Encoder
from privet.errors import DataError
from privet.reading import Columns, ParquetFiles, check_types, data_files
from privet.schema import Schema

#: Rows of a piece: groups of rows are joined until it has this many.
PIECE_ROWS = 2**18
#: Rows that are read at a time.
_BATCH_ROWS = 2**16
#: Columns are read little by little, not a whole group of rows at once.
_FRUGAL: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**18}


@dataclass(frozen=True)
class Piece:
    """Some rows of Parquet files.

    Attributes
    ----------
    groups : tuple
        Paths, each with its first group of rows and the one after its last.
    rows : int
    """

    groups: tuple[tuple[str, int, int], ...]
    rows: int

    def encode(self, schema: Schema, *, fast: bool) -> Encoded:
        """Read the rows and return their codes."""
        encoder = Encoder(schema)
        found = encoder.empty(self.rows)
        start = 0
        for batch in self._batches(list(schema.columns)):
            part = slice(start, start + len(batch))
            start = part.stop
            if start > self.rows:
                break
            columns = Columns.of(pa.Table.from_batches([batch]), schema)
            encoder.encode_rows(columns, columns.target(schema), found[part], fast=fast)
        pa.default_memory_pool().release_unused()
        if start != self.rows:
            raise DataError(
                f"{self.groups[0][0]} has changed since its rows were counted; start again"
            )
        return found

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for path, first, last in self.groups:
            try:
                with pyarrow.parquet.ParquetFile(path, **_FRUGAL) as file:
                    yield from file.iter_batches(
                        _BATCH_ROWS, range(first, last), columns, use_threads=False
                    )
                continue
            except Exception:  # noqa: S110  # its message may quote the file
                pass
            raise DataError(
                f"{path} cannot be read any more, or not from where a worker runs; every worker "
                "needs the same files under the same names"
            )


def list_pieces(source: str | Path | Iterable[str | Path], schema: Schema) -> list[Piece]:
    """Return the pieces of Parquet files: a path, a folder, a pattern, or a list of these.

    Their columns must have the same names and types.
    """
    sources = [source] if isinstance(source, str | Path) else list(source)
    files = [file.absolute() for one in sources for file in data_files(one)]
    if len(set(files)) < len(files):
        raise DataError("a file is named twice: its rows would count twice")
    found = ParquetFiles(files, schema)  # which checks them
    columns = Columns.of(found.empty(), schema)
    check_types(columns, columns.target(schema), schema)
    pieces: list[Piece] = []
    groups: list[tuple[str, int, int]] = []
    rows = 0
    for path, sizes in zip(files, found.row_groups, strict=True):
        first = 0
        for group, size in enumerate(sizes):
            rows += size
            if rows >= PIECE_ROWS:
                pieces.append(Piece((*groups, (str(path), first, group + 1)), rows))
                groups, rows, first = [], 0, group + 1
        if first < len(sizes):
            groups.append((str(path), first, len(sizes)))
    if groups or not pieces:
        pieces.append(Piece(tuple(groups), rows))
    return pieces
