"""Parquet files as pieces that are read one at a time, wherever somebody has room for one.

A piece is some groups of rows of a file, or of several small ones. It is read batch by batch, so
that its values are never all in memory; only its codes are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from privet.engines.encoding import Encoder
from privet.errors import DataError
from privet.reading import Columns, check_types, data_files, ending_of
from privet.schema import Schema
from privet.visible import quoted

#: Rows of a piece: groups of rows are joined until there are so many.
PIECE_ROWS = 2**18
#: Rows that are read at a time.
_BATCH_ROWS = 2**16
#: Columns are read little by little, not a whole group of rows at once.
_FRUGAL: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**18}

#: Rows as codes: one array for every feature, and the target.
Codes = tuple[list[NDArray[Any]], NDArray[Any]]


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

    def encode(self, schema: Schema, *, fast: bool) -> Codes:
        """Read the rows and return their codes."""
        encoder = Encoder(schema)
        codes, target = encoder.empty(self.rows)
        start = 0
        for batch in self._batches([*schema.names, schema.target]):
            part = slice(start, start + len(batch))
            start = part.stop
            if start > self.rows:
                break
            columns = Columns.of(pa.Table.from_batches([batch]), schema)
            encoder.encode(columns, [mine[part] for mine in codes], fast=fast)
            encoder.encode_target(columns.target(schema), target[part])
        pa.default_memory_pool().release_unused()
        if start != self.rows:
            raise DataError(
                f"{self.groups[0][0]} has changed since its rows were counted; start again"
            )
        return codes, target

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


def find_files(source: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the Parquet files that a path, a folder, a pattern or a list of these names."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    found = [file.absolute() for one in sources for file in data_files(one)]
    if not found or any(ending_of(file) != ".parquet" for file in found):
        raise DataError("a cluster reads Parquet files, and these are none")
    if len(set(found)) < len(found):
        raise DataError("a file is named twice: its rows would count twice")
    return found


def list_pieces(source: str | Path | Iterable[str | Path], schema: Schema) -> list[Piece]:
    """Return the pieces of Parquet files; their columns must have the same names and types."""
    files = find_files(source)
    chosen = [*schema.names, schema.target]
    pieces: list[Piece] = []
    groups: list[tuple[str, int, int]] = []
    rows = 0
    known: dict[str, pa.DataType] | None = None
    for path in files:
        footer = _footer(path)
        types = _types(path, footer.schema.to_arrow_schema(), chosen)
        if known is None:
            known = types
            empty = pa.schema(list(types.items())).empty_table()
            columns = Columns.of(empty, schema)
            check_types(columns, columns.target(schema), schema)
        other = [name for name in chosen if types[name] != known[name]]
        if other:
            raise DataError(
                f"column {quoted(other[0])} has type {types[other[0]]} in {path} and "
                f"{known[other[0]]} in {files[0]}; files of one table need the same types"
            )
        first = 0
        for group in range(footer.num_row_groups):
            rows += footer.row_group(group).num_rows
            if rows >= PIECE_ROWS:
                pieces.append(Piece((*groups, (str(path), first, group + 1)), rows))
                groups, rows, first = [], 0, group + 1
        if first < footer.num_row_groups:
            groups.append((str(path), first, footer.num_row_groups))
    if groups or not pieces:
        pieces.append(Piece(tuple(groups), rows))
    return pieces


def _footer(path: Path) -> Any:
    try:
        return pyarrow.parquet.read_metadata(path)
    except (OSError, ValueError):
        pass
    raise DataError(f"cannot read {path}: it is damaged, or no Parquet file")


def _types(path: Path, known: pa.Schema, chosen: Sequence[str]) -> dict[str, pa.DataType]:
    if len(set(known.names)) < len(known.names):
        raise DataError(f"{path} has two columns of the same name; rename one")
    missing = [name for name in chosen if name not in known.names]
    if missing:
        raise DataError(f"{path} has no column {quoted(missing[0])}, which the schema lists")
    return {name: known.field(name).type for name in chosen}
