"""A run's directory: what a coordinator needs to go on after it died.

``run.json``
    What the run is: study, schema, parties and their fingerprints, the dealer's, learner, the
    number of each party's first question.
``seed``
    From which all of the coordinator's random numbers follow: public choices of learners, names of
    rounds, and what it deals for secret choices. With it a run that is resumed asks the same
    questions, byte for byte.
``answers``
    Every answer, with a digest of its question; and which parties were lost, if the run went on
    without them. On the disk, not only on its way there, before the question after a charged one.

All of it is what the coordinator knows anyway, and readable by its owner alone. An answer that is
lost with the last seconds before a power cut costs nothing: the party has it, and gives it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from privet.errors import FederationError
from privet.federation import Lost
from privet.federation.wire import MOST_BYTES
from privet.privacy.coins import SeededBytes

#: A record: its kind, which party, the question's number, the digest of the question, how long the
#: answer is; then the answer, and a checksum of all of it.
_HEAD = struct.Struct("<cHQ32sQ")
_SUM = struct.Struct("<I")
_ANSWER, _LOSS = b"A", b"L"
#: What parts of a plan are called that have no name of their own.
_SAID = {
    "format": "format",
    "privet": "version of Privet",
    "wire": "version of the messages between parties",
}


class Run:
    """The directory of one run; see :meth:`create` and :meth:`resume`.

    Parameters
    ----------
    directory : path
        Where it is.
    plan : dict
        What the run is, as ``run.json`` has it.
    """

    def __init__(self, directory: Path, plan: Mapping[str, Any]) -> None:
        self.directory, self.plan = directory, plan
        self._names = [*plan["parties"], *plan.get("dealer", {})]
        self._places = {name: place for place, name in enumerate(self._names)}
        #: By party and number: the kind of a record, the question's digest, where the answer is.
        self._known: dict[tuple[str, int], tuple[bytes, bytes, int, int]] = {}
        self._losses: list[tuple[str, int, bytes]] = []
        self._unsynced = False
        self._file = self._open()
        try:
            #: Random numbers of the coordinator: the same ones whenever the run is resumed.
            self.draw = SeededBytes((directory / "seed").read_bytes())
            self._read()
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def create(cls, directory: Path, plan: Mapping[str, Any]) -> Run:
        """Make a new directory for a run."""
        try:
            directory.mkdir(mode=0o700, parents=True)
            _write(directory / "seed", SeededBytes.new_seed())
            _write(directory / "answers", b"")
            _write(directory / "run.json", json.dumps(plan, indent=1).encode("ascii"))
        except FileExistsError:
            raise FederationError(
                f"there is a run in {directory} already: resume it, or name another directory"
            ) from None
        except OSError as error:
            raise FederationError(
                f"the run cannot be kept in {directory}: {error.strerror}. Nothing was asked"
            ) from None
        return cls(directory, plan)

    @classmethod
    @contextmanager
    def passing(cls, plan: Mapping[str, Any]) -> Iterator[Run]:
        """Yield a run that is not kept: of free questions only."""
        with TemporaryDirectory() as folder:
            made = cls.create(Path(folder) / "run", plan)
            try:
                yield made
            finally:
                made.close()

    @classmethod
    def resume(cls, directory: Path, plan: Mapping[str, Any]) -> Run:
        """Open the directory of a run that has stopped, if it is the same run.

        The numbers of first questions are those of the run, whatever the plan says.
        """
        try:
            kept = json.loads((directory / "run.json").read_bytes())
            first = kept["first"]
        except (OSError, ValueError, KeyError, TypeError):
            raise FederationError(f"there is no run in {directory} that could be resumed") from None
        for what in {**plan, **kept}:
            if what != "first" and kept.get(what) != plan.get(what):
                raise FederationError(
                    f"the run in {directory} had another {_SAID.get(what, what)} than this one: "
                    "resume it with what it was begun with, or begin a new one. Nothing was asked"
                )
        return cls(directory, {**plan, "first": first})

    def _open(self) -> BinaryIO:
        try:
            file = (self.directory / "answers").open("r+b")
        except OSError:
            raise FederationError(
                f"there is no run in {self.directory} that could be resumed"
            ) from None
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise FederationError(
                    f"the run in {self.directory} is going on in another process"
                ) from None
        return file

    def _read(self) -> None:
        """Find all records; what was written in part is cut off."""
        end = 0
        while True:
            head = self._file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            kind, place, number, digest, size = _HEAD.unpack(head)
            if size > MOST_BYTES:
                break
            start = self._file.tell()
            body, check = self._file.read(size), self._file.read(_SUM.size)
            if len(check) < _SUM.size or _SUM.unpack(check) != (
                zlib.crc32(body, zlib.crc32(head)),
            ):
                break
            if kind not in (_ANSWER, _LOSS) or place >= len(self._names):
                break
            self._known[self._names[place], number] = (kind, digest, start, size)
            end = self._file.tell()
        self._file.truncate(end)
        self._file.seek(end)

    @property
    def lost(self) -> frozenset[str]:
        """The parties without which the run went on."""
        return frozenset(name for (name, _), (kind, *_) in self._known.items() if kind == _LOSS)

    @property
    def answers(self) -> int:
        """How many answers it has."""
        return sum(kind == _ANSWER for kind, *_ in self._known.values())

    def asked(self, name: str) -> int:
        """Return the last question's number that a party has answered, or that before the first."""
        before: int = self.plan["first"][name] - 1
        numbers = [
            number for (whose, number), (kind, *_) in self._known.items()
            if whose == name and kind == _ANSWER
        ]  # fmt: skip
        return max(numbers, default=before)

    def check_asked(self, name: str, number: int, message: bytes) -> None:
        """Raise if another question had this number when the run went on the first time."""
        known = self._known.get((name, number))
        if known is not None and known[1] != _digest(message):
            raise FederationError(
                f"question {number} to party {name!r} is not the one of the run that is resumed: "
                "was it begun with another version of privet, or of what it learns with? Nothing "
                "new was asked"
            )

    def knows(self, name: str, number: int) -> bool:
        """Tell whether a question was answered, or its party lost, before the run was resumed."""
        return (name, number) in self._known

    def answer(self, name: str, number: int) -> bytes | None:
        """Return the answer that is kept, if there is one; raise if the party was lost."""
        known = self._known.get((name, number))
        if known is None:
            return None
        kind, _, start, size = known
        if kind == _LOSS:
            raise Lost(f"party {name!r} was lost before the run was resumed")
        end = self._file.tell()
        self._file.seek(start)
        found = self._file.read(size)
        self._file.seek(end)
        return found

    def keep(self, name: str, number: int, message: bytes, answer: bytes, *, sync: bool) -> None:
        """Keep an answer; to be synced, if it was charged, before the next question."""
        self._append(_ANSWER, name, number, message, answer)
        self._unsynced = self._unsynced or sync

    def lose(self, name: str, number: int, message: bytes) -> None:
        """Note that a party is lost; it is kept if the run goes on without it."""
        if not self.knows(name, number):
            self._losses.append((name, number, message))

    def went_on(self) -> None:
        """Note that something else is asked."""
        for name, number, message in self._losses:
            self._append(_LOSS, name, number, message, b"")
        self._losses.clear()
        if self._unsynced:
            self._sync()

    def _append(self, kind: bytes, name: str, number: int, message: bytes, answer: bytes) -> None:
        head = _HEAD.pack(kind, self._places[name], number, _digest(message), len(answer))
        try:
            self._file.write(head)
            self._file.write(answer)
            self._file.write(_SUM.pack(zlib.crc32(answer, zlib.crc32(head))))
            self._file.flush()
        except OSError as error:
            raise FederationError(
                f"answers cannot be kept in {self.directory}: {error.strerror}. The run stops; "
                "make room, and resume it"
            ) from None

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FederationError(
                f"answers cannot be kept in {self.directory}: {error.strerror}. The run stops; "
                "make room, and resume it"
            ) from None
        self._unsynced = False

    def close(self) -> None:
        """Let the directory go."""
        if not self._file.closed:
            with suppress(FederationError):
                self._sync()
            self._file.close()


@dataclass(frozen=True)
class Origin:
    """Where a model comes from, as its run says.

    Attributes
    ----------
    study, learner : str
    parties : dict of str to str
        Those with whom the run ended: names, and the fingerprints of their keys.
    """

    study: str
    learner: str
    parties: dict[str, str]

    @classmethod
    def from_run(cls, directory: Path) -> Origin:
        """Read the directory of a run that has ended."""
        try:
            plan = json.loads((directory / "run.json").read_bytes())
            study, learner, parties = plan["study"], plan["learner"], dict(plan["parties"])
            read = Run(directory, plan)
        except (OSError, ValueError, KeyError, TypeError):
            raise FederationError(f"there is no run in {directory}") from None
        with closing(read) as run:
            stayed = {name: each for name, each in parties.items() if name not in run.lost}
        return cls(study, learner, stayed)


def _digest(message: bytes) -> bytes:
    return hashlib.sha256(message).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read, down to the disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
