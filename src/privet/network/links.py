"""Links to parties over a network: what a federated table asks through."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Protocol

from privet.errors import FederationError
from privet.federation import Lost, Refused
from privet.federation.party import CHARGED
from privet.federation.wire import Reply, Request, WireError, decode_as, encode
from privet.network.runs import Run


class AnyLine(Protocol):
    """What a link needs of a stream; :class:`~privet.network.transport.Line` has it."""

    name: str

    def ask(self, number: int, message: bytes) -> None:
        """Send a question, now or when the party comes back."""

    def take(self, seconds: float) -> tuple[float, bytes] | None:
        """Return when the next message came, and what it is; None if none came in time."""

    def done(self, number: int) -> None:
        """Note that a question needs no answer any more."""


class NetworkLink:
    """A party at the other end of a stream. For one thread at a time.

    Questions are numbered for the whole study, and what was asked and answered is kept in a run's
    directory. A run that is resumed asks its questions again, byte for byte, and is given what was
    answered then, up to where it stopped.

    Parameters
    ----------
    line : Line
        The stream.
    first : int
        The number of the first question: after the last one that the party knows.
    run : Run
        Where answers are kept.
    patience : float
        Seconds from a question to its answer, a party's restart included.
    """

    def __init__(self, line: AnyLine, first: int, run: Run, patience: float) -> None:
        self.name = line.name
        self.patience = patience
        self._line = line
        self._run = run
        self._next = first
        self._waiting: dict[int, tuple[float, bytes, bool]] = {}

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See :class:`~privet.federation.Link`."""
        number = self._next
        message = encode(Request(number, target, question, given, options))
        self._run.check_asked(self.name, number, message)
        self._next += 1
        self._run.went_on()
        if not self._run.knows(self.name, number):
            self._line.ask(number, message)
        self._waiting[number] = (time.monotonic(), message, question in CHARGED)
        return number

    def receive(self, number: int) -> Any:
        """See :class:`~privet.federation.Link`. Answers to other questions are dropped."""
        asked, message, charged = self._waiting.pop(number)
        try:
            kept = self._run.answer(self.name, number)
            if kept is None:
                found, answer = self._await(number, asked + self.patience)
            else:
                answer = self._open(kept)
            if answer.kind == "failed":
                raise Lost(f"party {self.name!r} failed")
        except Lost:
            self._run.lose(self.name, number, message)
            raise
        finally:
            self._line.done(number)
        if answer.kind == "refused":  # not kept: its owner may change his mind
            raise Refused(f"party {self.name!r} refuses: {answer.value}")
        if kept is None:
            self._run.keep(self.name, number, message, found, sync=charged)
        return answer.value

    def _await(self, number: int, deadline: float) -> tuple[bytes, Reply]:
        while True:
            found = self._line.take(max(0.0, deadline - time.monotonic()))
            if found is None or found[0] > deadline:
                raise Lost(f"party {self.name!r} did not answer in time")
            answer = self._open(found[1])
            if answer.number == number:
                return found[1], answer

    def _open(self, message: bytes) -> Reply:
        """Return the answer in a message; raise if there is none."""
        with suppress(WireError):
            return decode_as(Reply, message)
        raise Lost(f"party {self.name!r} answered nonsense")

    def close(self) -> None:
        """Ask nothing any more. The stream belongs to the port, the books to the party's owner."""
        self._run.close()


def check_first(name: str, last: int, asked: int) -> None:
    """Raise if a party knows fewer questions than a run has had answers to."""
    if last < asked:
        raise FederationError(
            f"party {name!r} knows {last} questions of this study, and has answered {asked}: its "
            "books are of an earlier day. Nothing was asked; its owner looks (privet party status)"
        )
