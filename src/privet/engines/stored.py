"""Blocks in files: tables larger than memory, on one machine.

Rows are encoded batch by batch into files of a directory, which are mapped when they are asked.
What blocks remember (codes of a view, cells, scores) is in mapped files, too, which have no name:
memory that the system can write out, and that is gone with the process. So how much memory a fit
takes does not depend on how many rows there are.

The files are as sensitive as the rows: only their owner can read them, and they are removed at the
end unless they are to be kept. A process that was killed leaves its directory behind; the next one
in the same place finds that nobody holds its lock, and removes it.

Layout (version 1): ``blocks.json`` with the schema, the number of rows and the checksum of every
block; ``block-000000`` and so on: the target's array, then one per feature, each from a multiple of
64 bytes on; ``lock``, which a process that writes holds.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels
from privet.engines.blocks import Block
from privet.engines.encoding import Encoder
from privet.engines.engine import BlockEngine
from privet.engines.memory import LocalBlocks
from privet.errors import DataError, PrivetError, SchemaError
from privet.reading import Stream
from privet.schema import Schema

VERSION = 1
PREFIX = "privet-blocks-"
#: Rows of a block file.
BLOCK_ROWS = 2**19
_ALIGN = 64


class StoredBlocks(LocalBlocks):
    """Blocks in mapped files.

    Parameters
    ----------
    directory : Path
        What :func:`encode_stream` wrote.
    schema : Schema
    lengths : sequence of int
        The rows of every block.
    kept : bool
        Whether the files stay when the blocks are closed.
    """

    def __init__(
        self, directory: Path, schema: Schema, lengths: Sequence[int], *, kept: bool, lock: int
    ) -> None:
        encoder = Encoder(schema)
        fast = _kernels.compiled(sum(lengths) * len(schema.names))
        blocks = []
        for number, rows in enumerate(lengths):
            target, *codes = _mapped(_block_file(directory, number), encoder, rows)
            blocks.append(Block(schema, codes, target, fast=fast, allocate=Scratch(directory)))
        super().__init__(schema, blocks)
        self._end = finalize(self, _remove, directory, lock, kept)

    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`. Removes the files, unless they are kept."""
        super().close()
        self._end()


class Scratch:
    """Arrays in mapped files without a name, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of this shape."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size < 2**16:
            return np.empty(shape, dtype)
        try:
            with tempfile.TemporaryFile(dir=self._directory) as file:
                if hasattr(os, "posix_fallocate"):  # else a full disk would kill who writes
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
                return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
        except OSError as error:
            failed = _disk_error(error, self._directory)
        raise failed


def encode_stream(
    stream: Stream, directory: str | Path | None = None, *, keep: bool = False
) -> BlockEngine:
    """Encode rows batch by batch into files, and return an engine for them.

    Parameters
    ----------
    stream : Stream
    directory : path, optional
        Where the files are: in a new directory below this one, which is removed at the end; the
        system's place for temporary files if None.
    keep : bool, default=False
        Whether the files stay: then ``directory`` is theirs, and must not be there yet.
    """
    place = _make_directory(directory, keep=keep)
    lock = _hold(place)
    try:
        lengths = _write(stream, place, keep=keep)
        return BlockEngine(StoredBlocks(place, stream.schema, lengths, kept=keep, lock=lock))
    except OSError as error:
        failed: PrivetError = _disk_error(error, place)
    except BaseException:
        _remove(place, lock, kept=False)
        raise
    _remove(place, lock, kept=False)
    raise failed


def open_blocks(directory: str | Path, schema: Schema | None = None) -> BlockEngine:
    """Return an engine for blocks that were kept.

    Parameters
    ----------
    directory : path
    schema : Schema, optional
        If given, the blocks must have been made with it.

    Raises
    ------
    DataError
        If the files are damaged, not finished, or of another version.
    SchemaError
        If they were made with another schema.
    """
    place = Path(directory)
    try:
        found = json.loads((place / "blocks.json").read_text(encoding="utf-8"))
        version, lengths, sums = found["version"], found["rows"], found["checksums"]
        made_with = Schema.from_dict(found["schema"])
    except SchemaError:
        raise
    except Exception:
        raise DataError(
            f"{place} holds no blocks of rows, or they were not finished: make them anew with "
            "'privet encode'"
        ) from None
    if version != VERSION:
        raise DataError(f"the blocks in {place} are of another version: make them anew")
    if schema is not None and schema != made_with:
        raise SchemaError(f"the blocks in {place} were made with another schema: make them anew")
    encoder = Encoder(made_with)
    for number, (rows, checksum) in enumerate(zip(lengths, sums, strict=True)):
        file = _block_file(place, number)
        if not file.is_file() or file.stat().st_size != _file_size(encoder, rows):
            raise DataError(f"a block in {place} is missing or damaged: make them anew")
        if _checksum(_mapped(file, encoder, rows)) != checksum:
            raise DataError(f"a block in {place} is damaged: make them anew")
    return BlockEngine(StoredBlocks(place, made_with, lengths, kept=True, lock=-1))


def _write(stream: Stream, place: Path, *, keep: bool) -> list[int]:
    """Write all rows of a stream; return the number of rows of every block."""
    encoder = Encoder(stream.schema)
    if stream.rows is not None:
        needed = stream.rows * encoder.row_bytes + 2**20
        if shutil.disk_usage(place).free < needed:
            raise _disk_error(OSError(errno.ENOSPC, ""), place)
    lengths: list[int] = []
    sums: list[int] = []
    codes, target = encoder.empty(BLOCK_ROWS)
    filled = values = 0

    def flush() -> None:
        arrays = [target[:filled], *(mine[:filled] for mine in codes)]
        with open(_block_file(place, len(lengths)), "wb", opener=_owner_only) as file:
            for array in arrays:
                file.write(array.tobytes())
                file.write(bytes(-array.nbytes % _ALIGN))
        sums.append(_checksum(arrays))
        lengths.append(filled)

    for columns in stream:
        values += len(columns) * len(codes)
        fast = _kernels.compiled(max(values, (stream.rows or 0) * len(codes)))
        found, labels = encoder.empty(len(columns))
        encoder.encode(columns, found, fast=fast)
        encoder.encode_target(columns.target(stream.schema), labels)
        start = 0
        while start < len(labels):
            rows = min(BLOCK_ROWS - filled, len(labels) - start)
            for mine, more in zip((target, *codes), (labels, *found), strict=True):
                mine[filled : filled + rows] = more[start : start + rows]
            filled, start = filled + rows, start + rows
            if filled == BLOCK_ROWS:
                flush()
                filled = 0
    if filled or not lengths:
        flush()
    header = {
        "version": VERSION,
        "kept": keep,
        "schema": stream.schema.to_dict(),
        "rows": lengths,
        "checksums": sums,
    }
    with open(place / "blocks.json", "wb", opener=_owner_only) as file:
        file.write(json.dumps(header).encode())
    return lengths


def _mapped(file: Path, encoder: Encoder, rows: int) -> list[NDArray[Any]]:
    """Return the arrays of a block: its target, and the codes of every feature."""
    kinds = (encoder.target_kind, *encoder.kinds)
    if not rows:
        return [np.empty(0, dtype=kind) for kind in kinds]
    with file.open("rb") as opened:
        whole = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    arrays, start = [], 0
    for kind in kinds:
        arrays.append(np.frombuffer(whole, dtype=kind, count=rows, offset=start))
        start += -(-rows * kind.itemsize // _ALIGN) * _ALIGN
    return arrays


def _file_size(encoder: Encoder, rows: int) -> int:
    kinds = (encoder.target_kind, *encoder.kinds)
    return sum(-(-rows * kind.itemsize // _ALIGN) * _ALIGN for kind in kinds)


def _checksum(arrays: Sequence[NDArray[Any]]) -> int:
    found = 0
    for array in arrays:
        found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return found


def _block_file(place: Path, number: int) -> Path:
    return place / f"block-{number:06}"


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _make_directory(directory: str | Path | None, *, keep: bool) -> Path:
    """Return a new directory that only its owner can look into."""
    if keep:
        assert directory is not None
        place = Path(directory)
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            raise DataError(f"{place} is there already: choose another directory") from None
        except OSError:
            raise DataError(f"cannot make the directory {place}") from None
        return place
    parent = Path(tempfile.gettempdir() if directory is None else directory)
    if not parent.is_dir():
        raise DataError(f"there is no directory {parent} for the blocks of rows")
    for left in leftovers(parent):
        shutil.rmtree(left, ignore_errors=True)
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError:
        raise DataError(f"cannot make a directory for the blocks of rows in {parent}") from None


def leftovers(parent: Path) -> Iterator[Path]:
    """Yield directories of blocks in a place that belong to nobody any more."""
    for left in parent.glob(f"{PREFIX}*"):
        if left.is_symlink() or not (left / "lock").is_file():
            continue  # of somebody else, or so new that its owner is about to lock it
        lock = _hold(left)
        if lock >= 0:
            yield left
            os.close(lock)


def _hold(place: Path) -> int:
    """Take the lock of a directory; -1 if somebody else has it."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where leftovers stay until somebody removes them
        return -1
    try:
        lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return -1
    return lock


def _remove(place: Path, lock: int, kept: bool) -> None:
    if not kept:
        shutil.rmtree(place, ignore_errors=True)
    if lock >= 0:
        os.close(lock)


def _disk_error(error: OSError, place: Path) -> DataError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataError(
            f"there is too little disk space in {place.parent} for the blocks of rows: choose "
            "another directory. Nothing is left of them there"
        )
    return DataError(f"the blocks of rows in {place.parent} could not be written or read")
