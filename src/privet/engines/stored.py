"""Blocks in files: tables larger than memory, on one machine.

Rows are encoded batch by batch into files of a directory, which are mapped when they are asked.
What blocks remember (codes of a view, cells, scores) is in mapped files, too, which have no name:
memory that the system can write out, and that is gone with the process. So how much memory a fit
takes does not depend on how many rows there are.

The files are as sensitive as the rows: only their owner can read them, and they are removed at the
end unless they are to be kept. A process that was killed leaves its directory behind; the next one
in the same place finds that nobody holds its lock, and removes it. Kept blocks are written in such
a directory as well, and get their name and ``blocks.json`` when they are complete: what is not
complete is never taken for a table, and what is kept is never taken for a leftover.

Layout (version 1): ``blocks.json`` with the schema, the number of rows and the checksum of every
block; ``block-000000`` and so on: the target's array, then one per feature, then, with a unit,
three that say whose record each is, each from a multiple of 64 bytes on, in the machine's order of
bytes; ``lock``, which the process holds that made the directory and will remove it.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels
from privet.engines.blocks import Block
from privet.engines.encoding import Encoded, Encoder
from privet.engines.engine import BlockEngine
from privet.engines.memory import LocalBlocks
from privet.errors import DataError, EngineError, SchemaError
from privet.reading import Stream, streams
from privet.schema import Schema

FORMAT, VERSION = "privet blocks", 1
#: The file that says what kept blocks are.
HEADER = "blocks.json"
_LOCK = "lock"
#: How the names of directories begin that are removed at the end.
PREFIX = "privet-blocks-"
#: Rows of a block file. A column of twice as many grid codes would be more than a processor's own
#: cache, which made DiPriMe's counts a quarter dearer.
BLOCK_ROWS = 2**18
_ALIGN = 64
_LONGEST_HEADER = 2**26


class StoredBlocks(LocalBlocks):
    """Blocks in mapped files.

    Parameters
    ----------
    directory : Path
        What :func:`encode_stream` wrote.
    schema : Schema
    lengths : sequence of int
        The rows of every block.
    scratch : Path
        Where files without a name are put.
    lock : int, optional
        The lock of the directory: it is removed when the blocks are closed. Without one, it stays.
    """

    def __init__(
        self,
        directory: Path,
        schema: Schema,
        lengths: Sequence[int],
        *,
        scratch: Path,
        lock: int | None = None,
    ) -> None:
        encoder = Encoder(schema)
        fast = _kernels.compiled(sum(lengths) * len(schema.names))
        room = Scratch(scratch)
        blocks = []
        for number, rows in enumerate(lengths):
            mine = _mapped(_block_file(directory, number), encoder, rows)
            blocks.append(
                Block(schema, mine.codes, mine.target, mine.names, fast=fast, allocate=room)
            )
        super().__init__(schema, blocks)
        self._end = None if lock is None else finalize(self, _remove, directory, lock, os.getpid())

    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`. Removes the files, unless they are kept."""
        super().close()
        if self._end is not None:
            self._end()


class Scratch:
    """Arrays in mapped files without a name, in a directory.

    A file whose array nobody has any more is used again for the next array of its size: its pages
    are mapped already, and mapping new ones for the cells of every level would take a fifth of a
    fit.
    """

    #: An array of fewer bytes is not worth a file.
    smallest = 2**16

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._free: dict[int, list[mmap.mmap]] = {}

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of this shape."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size < self.smallest:
            return np.empty(shape, dtype)
        free = self._free.setdefault(size, [])
        try:
            mapped = free.pop()
        except IndexError:
            mapped = self._mapped(size)
        array = np.frombuffer(mapped, dtype)
        finalize(array, free.append, mapped).atexit = False
        return array.reshape(shape)  # which has the array, as long as anybody has it

    def _mapped(self, size: int) -> mmap.mmap:
        try:
            with tempfile.TemporaryFile(dir=self._directory) as file:
                _allocate(file.fileno(), size)
                return mmap.mmap(file.fileno(), size)
        except OSError as error:
            why = "there is too little disk space" if _is_full(error) else "no file can be made"
        raise EngineError(
            f"{why} in {self._directory} for what is worked out about the rows, so that the fit "
            "had to stop; what its ledger reserved stays reserved. Choose another directory"
        )


def _allocate(file: int, size: int) -> None:
    """Make a file so large, with room on the disk for all of it."""
    if hasattr(os, "posix_fallocate"):  # else a full disk would kill who writes
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        else:
            return
    os.ftruncate(file, size)


def encode_stream(stream: Stream, directory: str | Path | None = None) -> BlockEngine:
    """Encode rows batch by batch into files, and return an engine for them.

    The files are removed when the engine is closed, or nobody has it any more.

    Parameters
    ----------
    stream : Stream
    directory : path, optional
        Where the files are: in a new directory below this one; the system's place for temporary
        files if None.
    """
    parent = Path(tempfile.gettempdir() if directory is None else directory)
    if not parent.is_dir():
        raise DataError(f"there is no directory {parent} for the blocks of rows")
    with _new_directory(parent) as (place, lock):
        lengths, _ = _write(stream, place)
        _check_scratch(stream.schema, sum(lengths), place)
        return BlockEngine(StoredBlocks(place, stream.schema, lengths, scratch=place, lock=lock))


def keep_blocks(stream: Stream, directory: str | Path) -> None:
    """Encode rows batch by batch into files that stay, for :func:`open_blocks`.

    Parameters
    ----------
    stream : Stream
    directory : path
        The directory that is made of them. It must not be there yet.
    """
    kept = Path(os.path.abspath(directory))  # noqa: PTH100  # links stay what they are
    taken = DataError(f"{kept} is there already: choose another directory")
    if os.path.lexists(kept):
        raise taken
    if not kept.parent.is_dir():
        raise DataError(f"there is no directory {kept.parent}")
    with _new_directory(kept.parent) as (place, lock):
        lengths, sums = _write(stream, place)
        header = {
            "format": FORMAT,
            "version": VERSION,
            "byte_order": sys.byteorder,
            "schema": stream.schema.to_dict(),
            "rows": lengths,
            "checksums": sums,
        }
        if os.path.lexists(kept):
            raise taken
        place.rename(kept)
        try:
            with open(kept / HEADER, "xb", opener=_owner_only) as file:
                file.write(json.dumps(header).encode())
            (kept / _LOCK).unlink()
        except BaseException:
            kept.rename(place)  # which is removed
            raise
        _let_go(lock)


def holds_blocks(directory: str | Path) -> bool:
    """Tell whether a directory is one that :func:`keep_blocks` has made."""
    return os.path.isfile(Path(directory) / HEADER)  # noqa: PTH113  # which never raises


def open_blocks(
    directory: str | Path, schema: Schema | None = None, *, scratch: str | Path | None = None
) -> BlockEngine:
    """Return an engine for blocks that were kept.

    Parameters
    ----------
    directory : path
    schema : Schema, optional
        If given, the blocks must have been made with it.
    scratch : path, optional
        Where files without a name are put; the same directory if None.

    Raises
    ------
    DataError
        If the files are damaged, not finished, or of another version.
    SchemaError
        If they were made with another schema.
    """
    place = Path(directory)
    made_with, lengths, sums = _read_header(place)
    if schema is not None and schema != made_with:
        raise SchemaError(f"the blocks in {place} were made with another schema: make them anew")
    encoder = Encoder(made_with)
    for number, (rows, checksum) in enumerate(zip(lengths, sums, strict=True)):
        if not _is_sound(_block_file(place, number), encoder, rows, checksum):
            raise DataError(f"a block in {place} is missing or damaged: make them anew")
    room = place if scratch is None else Path(scratch)
    if not room.is_dir() or not os.access(room, os.W_OK | os.X_OK):
        raise DataError(f"no files can be made in {room}: choose another directory for blocks")
    _check_scratch(made_with, sum(lengths), room)
    return BlockEngine(StoredBlocks(place, made_with, lengths, scratch=room))


def _read_header(place: Path) -> tuple[Schema, list[int], list[int]]:
    """Return the schema of kept blocks, their lengths and their checksums."""
    written = (VERSION, sys.byteorder)
    ours = other_version = False
    try:
        with (place / HEADER).open("rb") as file:
            text = file.read(_LONGEST_HEADER)
        found = json.loads(text.decode("utf-8"))
        ours = found["format"] == FORMAT
        other_version = ours and (found["version"], found["byte_order"]) != written
        if ours and not other_version:
            lengths, sums = found["rows"], found["checksums"]
            ours = all(type(count) is int and count >= 0 for count in [*lengths, *sums])
            ours = ours and 0 < len(lengths) == len(sums) and sum(lengths) < 2**62
            made_with = Schema.from_dict(found["schema"])
    except Exception:  # whatever is wrong with a file that could come from anybody
        ours = False
    if other_version:
        raise DataError(
            f"the blocks in {place} are of another version, or from another kind of machine: "
            "make them anew"
        )
    if not ours:
        raise DataError(
            f"{place} holds no blocks of rows, or they are damaged: make them anew with "
            "'privet encode'"
        )
    return made_with, lengths, sums


def _is_sound(file: Path, encoder: Encoder, rows: int, checksum: int) -> bool:
    """Tell whether a block is as it was written, and no code in it is beyond its list."""
    try:
        if not file.is_file() or file.stat().st_size != _file_size(encoder, rows):
            return False
        found = _mapped(file, encoder, rows)
    except (OSError, ValueError):
        return False
    if _checksum(_in_order(found)) != checksum:
        return False
    target = found.target
    sizes = zip(found.codes, encoder.sizes, strict=True)
    if any(mine.max(initial=0) >= size for mine, size in sizes):
        return False
    if encoder.schema.classes is not None:
        return bool(target.max(initial=0) <= len(encoder.schema.classes))
    return bool((np.isnan(target) | ((target >= 0) & (target <= 1))).all())


def _check_scratch(schema: Schema, rows: int, place: Path) -> None:
    """Raise before anything is spent if there is no room for what a fit surely works out."""
    if rows * len(schema.names) >= Scratch.smallest and _free(place) < rows * (
        len(schema.names) + 8 + (0 if schema.unit is None else 2)
    ):
        raise _disk_error(OSError(errno.ENOSPC, ""), place)


def _write(stream: Stream, place: Path) -> tuple[list[int], list[int]]:
    """Write all rows of a stream; return the number of rows and the checksum of every block."""
    encoder = Encoder(stream.schema)
    if stream.rows is not None and _free(place) < stream.rows * encoder.row_bytes + 2**20:
        raise _disk_error(OSError(errno.ENOSPC, ""), place)
    lengths: list[int] = []
    sums: list[int] = []
    room = encoder.empty(BLOCK_ROWS + streams.BATCH_ROWS)
    features = len(encoder.kinds)
    filled = values = 0

    def flush(rows: int) -> None:
        arrays = _in_order(room[:rows])
        with open(_block_file(place, len(lengths)), "xb", opener=_owner_only) as file:
            for array in arrays:
                file.write(array.data)
                file.write(bytes(-array.nbytes % _ALIGN))
        sums.append(_checksum(arrays))
        lengths.append(rows)

    for columns in stream:
        values += len(columns) * features
        fast = _kernels.compiled(max(values, (stream.rows or 0) * features))
        part = slice(filled, filled + len(columns))
        encoder.encode_rows(columns, columns.target(stream.schema), room[part], fast=fast)
        filled = part.stop
        if filled >= BLOCK_ROWS:
            flush(BLOCK_ROWS)
            for array in room.arrays:
                array[: filled - BLOCK_ROWS] = array[BLOCK_ROWS:filled]
            filled -= BLOCK_ROWS
    if filled or not lengths:
        flush(filled)
    return lengths, sums


def _mapped(file: Path, encoder: Encoder, rows: int) -> Encoded:
    """Return the arrays of a block."""
    if not rows:
        return encoder.empty(0)
    with file.open("rb") as opened:
        whole = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    arrays, start = [], 0
    for kind in _kinds(encoder):
        arrays.append(np.frombuffer(whole, dtype=kind, count=rows, offset=start))
        start += -(-rows * kind.itemsize // _ALIGN) * _ALIGN
    features = len(encoder.kinds)
    return Encoded(arrays[1 : features + 1], arrays[0], arrays[features + 1 :])


def _in_order(block: Encoded) -> list[NDArray[Any]]:
    """Return the arrays of a block as its file has them."""
    return [block.target, *block.codes, *block.names]


def _kinds(encoder: Encoder) -> list[np.dtype[Any]]:
    return [array.dtype for array in _in_order(encoder.empty(0))]


def _file_size(encoder: Encoder, rows: int) -> int:
    return sum(-(-rows * kind.itemsize // _ALIGN) * _ALIGN for kind in _kinds(encoder))


def _checksum(arrays: Sequence[NDArray[Any]]) -> int:
    found = 0
    for array in arrays:
        found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return found


def _block_file(place: Path, number: int) -> Path:
    return place / f"block-{number:06}"


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


@contextmanager
def _new_directory(parent: Path) -> Iterator[tuple[Path, int]]:
    """Make a directory that only its owner can look into, and lock it; remove it on an error.

    It gets the name of a directory of blocks when it is locked, so that nobody can find it without
    its owner in between. What others have left behind in the same place is removed first.
    """
    for left in leftovers(parent):
        shutil.rmtree(left, ignore_errors=True)
    try:
        made = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}", dir=parent))
    except OSError:
        raise DataError(f"cannot make a directory for the blocks of rows in {parent}") from None
    place = parent / made.name.removeprefix("new-")
    lock, owner = -1, os.getpid()
    try:
        lock = _hold(made, create=True)
        made.rename(place)
        yield place, lock
    except OSError as error:
        failed = _disk_error(error, place)
    except BaseException:
        _remove(made, -1, owner)
        _remove(place, lock, owner)
        raise
    else:
        return
    _remove(made, -1, owner)
    _remove(place, lock, owner)
    raise failed


def leftovers(parent: Path) -> Iterator[Path]:
    """Yield directories of blocks in a place that belong to nobody any more.

    Only this user's own, and none that are kept.
    """
    for left in parent.glob(f"{PREFIX}*"):
        try:
            found = left.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        except (OSError, AttributeError):  # gone meanwhile; or on Windows, which has no users
            continue
        if not ours or os.path.lexists(left / HEADER):
            continue
        lock = _hold(left, create=False)
        if lock >= 0:
            yield left
            _let_go(lock)


def _hold(place: Path, *, create: bool) -> int:
    """Take the lock of a directory; -1 if somebody else has it, or there is none."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where leftovers stay until somebody removes them
        return -1
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(place / _LOCK, flags | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return -1
    return lock


def _let_go(lock: int) -> None:
    if lock >= 0:
        os.close(lock)


def _remove(place: Path, lock: int, owner: int) -> None:
    """Remove a directory, unless this is a child of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(place, ignore_errors=True)
        _let_go(lock)


def _free(place: Path) -> int:
    return shutil.disk_usage(place).free


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def _disk_error(error: OSError, place: Path) -> DataError:
    if _is_full(error):
        return DataError(
            f"there is too little disk space in {place.parent} for the blocks of rows: choose "
            "another directory. Nothing was asked of the rows, and nothing was spent"
        )
    return DataError(f"the blocks of rows in {place.parent} could not be written or read")
