"""A party's journal of a study: every question and its answer, in one file that is appended to.

It is by this file that a party that was killed comes back as it was, and sends the same bytes
again: docs/proofs/journal.md. Its bytes::

    file   = "PVJ" version record ...           the version is one byte: 1
    record = size check body                    size: of the body, 4 bytes, little-endian
    check  = 16 bytes                           of the SHA-256 of the check before and the body
    body   = size facts size request reply      facts: JSON; sizes: 4 bytes

A record whose check is wrong ends the file: what follows it was never synced, or the file is
damaged, which the count in the ledger file tells. Readable by its owner alone.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privet.errors import FederationError

_MAGIC = b"PVJ\x01"
_SIZE = struct.Struct("<I")
_CHECK = 16
#: No record is larger, in bytes: what is, is damage.
_MOST = 2**30 + 2**20


class JournalError(FederationError):
    """A journal cannot be read, written or gone on with. Nothing is answered."""


@dataclass(frozen=True)
class Record:
    """One record, and where what it came with lies in the file."""

    facts: dict[str, Any]
    request: tuple[int, int]
    reply: tuple[int, int]

    @property
    def kind(self) -> str:
        """What it is about."""
        return str(self.facts["kind"])


class Disk:
    """The file behind a journal: what can fail, and where tests let it."""

    def __init__(self, path: Path, *, create: bool) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        self.handle = os.open(path, flags, 0o600)

    def append(self, data: bytes) -> None:
        """Write at the end."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.handle, rest) :]

    def sync(self) -> None:
        """Wait until all that was written is on the disk."""
        os.fsync(self.handle)

    def cut(self, size: int) -> None:
        """Drop what follows."""
        os.ftruncate(self.handle, size)
        os.lseek(self.handle, 0, os.SEEK_END)
        os.fsync(self.handle)

    def read(self, place: int, size: int) -> bytes:
        """Return some bytes of the file."""
        return os.pread(self.handle, size, place)

    def lock(self) -> None:
        """Keep other processes from it, until this one ends."""
        fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Let it go."""
        os.close(self.handle)


@dataclass
class Journal:
    """An open journal, of one process. See :meth:`create` and :meth:`open`."""

    path: Path
    disk: Disk
    records: list[Record] = field(default_factory=list)
    size: int = 0
    _check: bytes = bytes(_CHECK)

    @classmethod
    def create(cls, path: Path, opening: dict[str, Any], disk: type[Disk] = Disk) -> Journal:
        """Make a new journal, whose first record is on the disk when this returns."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = cls(path, disk(path, create=True))
        except OSError as error:
            raise JournalError(_cannot(path, "made", error)) from error
        try:
            made.disk.lock()
            made.disk.append(_MAGIC)
            made.size = len(_MAGIC)
            made.append({"kind": "opening", "time": time.time(), **opening})
            made.sync()
            _sync_folder(path.parent)
        except BaseException as error:
            made.close()
            if isinstance(error, OSError | JournalError):
                with suppress(OSError):
                    path.unlink()
            if isinstance(error, OSError):
                raise JournalError(_cannot(path, "made", error)) from error
            raise
        return made

    @classmethod
    def open(cls, path: Path, disk: type[Disk] = Disk) -> Journal:
        """Open a journal to go on with it; :meth:`trim` it before anything is written.

        It has no records if a process was killed while it was made, or if it is none.
        """
        try:
            found = cls(path, disk(path, create=False))
        except OSError as error:
            raise JournalError(_cannot(path, "opened", error)) from error
        try:
            try:
                found.disk.lock()
            except OSError:
                raise JournalError(
                    f"another process has the journal {path}: a study is served by one process; "
                    "stop the other one first (privet party status)"
                ) from None
            found._read()
        except OSError as error:
            found.close()
            raise JournalError(_cannot(path, "read", error)) from error
        except JournalError:
            found.close()
            raise
        return found

    @classmethod
    def look(cls, path: Path) -> Journal:
        """Open a journal to read it, perhaps while another process goes on with it."""
        try:
            found = cls(path, Disk(path, create=False))
            found._read()
        except OSError as error:
            raise JournalError(_cannot(path, "read", error)) from error
        return found

    def is_served(self) -> bool:
        """Tell whether another process has it."""
        try:
            self.disk.lock()
        except OSError:
            return True
        fcntl.flock(self.disk.handle, fcntl.LOCK_UN)
        return False

    def _read(self) -> None:
        end = os.fstat(self.disk.handle).st_size
        if self.disk.read(0, len(_MAGIC)) != _MAGIC:
            return
        self.size = len(_MAGIC)
        while self.size + _SIZE.size + _CHECK <= end:
            head = self.disk.read(self.size, _SIZE.size + _CHECK)
            (size,) = _SIZE.unpack(head[: _SIZE.size])
            start = self.size + _SIZE.size + _CHECK
            if not 2 * _SIZE.size < size <= min(_MOST, end - start):
                return
            body = self.disk.read(start, size)
            check = _checked(self._check, body)
            if check != head[_SIZE.size :]:
                return
            self._keep(body, start, check)

    def _keep(self, body: bytes, start: int, check: bytes) -> None:
        (facts,) = _SIZE.unpack_from(body)
        (request,) = _SIZE.unpack_from(body, _SIZE.size + facts)
        first = start + 2 * _SIZE.size + facts
        end = start + len(body)
        found = json.loads(body[_SIZE.size : _SIZE.size + facts])
        self.records.append(
            Record(found, (first, request), (first + request, end - first - request))
        )
        self._check, self.size = check, end

    def append(self, facts: dict[str, Any], request: bytes = b"", reply: bytes = b"") -> Record:
        """Write a record. It survives the process; for a power cut there is :meth:`sync`."""
        text = json.dumps(facts).encode("ascii")
        body = b"".join((_SIZE.pack(len(text)), text, _SIZE.pack(len(request)), request, reply))
        check = _checked(self._check, body)
        try:
            self.disk.append(_SIZE.pack(len(body)) + check + body)
        except OSError as error:
            raise JournalError(_cannot(self.path, "written", error)) from error
        self._keep(body, self.size + _SIZE.size + _CHECK, check)
        return self.records[-1]

    def trim(self) -> None:
        """Cut off what a crash left half written; all that stays is on the disk then."""
        try:
            self.disk.cut(self.size)
        except OSError as error:
            raise JournalError(_cannot(self.path, "written", error)) from error

    def sync(self) -> None:
        """Wait until all records are on the disk."""
        try:
            self.disk.sync()
        except OSError as error:
            raise JournalError(_cannot(self.path, "written", error)) from error

    def request_of(self, record: Record) -> bytes:
        """Return the question of a record, as it came."""
        return self.disk.read(*record.request)

    def reply_of(self, record: Record) -> bytes:
        """Return the reply of a record, as it was sent."""
        return self.disk.read(*record.reply)

    def of_kind(self, *kinds: str) -> Iterator[Record]:
        """Yield the records of some kinds, in order."""
        return (record for record in self.records if record.kind in kinds)

    def close(self) -> None:
        """Let the file go."""
        self.disk.close()


def _checked(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).digest()[:_CHECK]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_REASONS = {
    errno.ENOSPC: "the disk is full: make room, and start the party again",
    errno.EDQUOT: "the disk quota is used up: make room, and start the party again",
    errno.EACCES: "it is not readable and writable for this user",
    errno.EROFS: "the disk is read-only",
    errno.ENOENT: "there is no such file",
    errno.EEXIST: "there is one already",
}


def _cannot(path: Path, what: str, error: OSError) -> str:
    reason = _REASONS.get(error.errno or 0, "the system failed to read or write it")
    return f"the journal {path} cannot be {what}: {reason}"
