"""Connections to parties: in this process, or in one of their own.

A *link* carries questions to a party. What goes between processes are the bytes of
:mod:`privet.federation.wire`, which can do nothing but be read. A coordinator holds its links in
:class:`Connections`.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from pickle import PicklingError
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol

from privet.errors import FederationError, PrivetError
from privet.federation.answers import is_series, passes
from privet.federation.dealer import Dealer
from privet.federation.party import MOST_BEFORE, SERIES, Lost, Party, Refused
from privet.federation.wire import MOST_BYTES, Reply, Request, WireError, decode_as, encode

#: The longest time to wait, in seconds: about a year, which all clocks can count.
_MOST_PATIENCE = 30_000_000


class Link(Protocol):
    """A connection to one party.

    Questions may be sent to several parties before answers are awaited. How long a link waits for
    an answer counts from the question: several slow parties are waited for at the same time.
    """

    name: str

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """Send a question; return its number."""

    def receive(self, number: int) -> Any:
        """Return the answer to a question, or raise :class:`Refused` or :class:`Lost`."""

    def close(self) -> None:
        """End the connection."""


class LocalLink:
    """A party, or a dealer, in this process.

    Nothing is made into bytes here: that would lengthen a fit by a third. The party checks what it
    is given in the same way, by the same list of types (:meth:`Party.answer`).
    """

    def __init__(self, party: Party | Dealer) -> None:
        self.name = party.name
        self.party = party
        self._waiting: dict[int, tuple[int, str, tuple[Any, ...], dict[str, Any]]] = {}
        self._sent = 0

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See :class:`Link`."""
        self._sent += 1
        self._waiting[self._sent] = (target, question, given, options)
        return self._sent

    def receive(self, number: int) -> Any:
        """See :class:`Link`."""
        target, question, given, options = self._waiting.pop(number)
        try:
            return self.party.answer(target, question, *given, **options)
        except FederationError:
            raise
        except PrivetError as error:
            raise Refused(f"party {self.name!r} refuses: {error}") from error
        except Exception:  # of a party of another kind: its text could be about the rows
            lost = Lost(f"party {self.name!r} failed")
        raise lost

    def close(self) -> None:
        """See :class:`Link`."""
        self.party.close()


class ProcessLink:
    """A party in a process of its own, which reads its rows itself. For one thread at a time.

    At its start the new process gets ``make`` and ``given`` as Python starts processes: pickled, by
    the process that starts it, whose child it is. From then on the two send each other bytes of
    :mod:`privet.federation.wire` and nothing is unpickled: neither can run code in the other.

    Parameters
    ----------
    name : str
        The party's name.
    make : function
        Makes the :class:`Party`, or the :class:`Dealer`; it must be importable, and is called in
        the new process.
    given : tuple
        What it is called with.
    patience : float, default=600.0
        Seconds from a question to its answer; one that arrives later is not read. The first answer
        takes as long as the process needs to start.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Party | Dealer],
        given: tuple[Any, ...] = (),
        *,
        patience: float = 600.0,
    ) -> None:
        if not isinstance(given, tuple):
            raise FederationError("given must be a tuple of what make is called with: (name,)")
        seconds: Any = patience
        known = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not known or not 0 < seconds <= _MOST_PATIENCE:
            raise FederationError(
                f"patience must be a number of seconds above 0, at most {_MOST_PATIENCE:,}"
            )
        self.name = name
        self.patience = float(seconds)
        self._sent = 0
        self._asked: dict[int, float] = {}
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, name, make, given), daemon=True)
        try:
            self._process.start()
        except (AttributeError, TypeError, PicklingError) as error:
            raise FederationError(
                "another process must be able to import make and what it is given: take a function "
                "of a module"
            ) from error
        theirs.close()
        # A process that does not read would block whoever writes, and one that stops in the middle
        # of an answer whoever reads: threads do, not the asker.
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._inbox: SimpleQueue[tuple[float, bytes | None]] = SimpleQueue()
        self._writer = Thread(target=self._write, daemon=True)
        self._reader = Thread(target=self._read, daemon=True)
        self._writer.start()
        self._reader.start()

    def _write(self) -> None:
        with suppress(Exception):  # closed while it writes: there is nobody to write to any more
            while (message := self._outbox.get()) is not None:
                self._pipe.send_bytes(message)

    def _read(self) -> None:
        with suppress(Exception):  # whatever it is, there is nothing more to read
            while True:
                message = self._pipe.recv_bytes(MOST_BYTES)
                self._inbox.put((time.monotonic(), message))
        self._inbox.put((0.0, None))

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See :class:`Link`."""
        if not self._writer.is_alive():
            raise Lost(f"party {self.name!r} is lost")
        self._outbox.put(encode(Request(self._sent + 1, target, question, given, options)))
        self._sent += 1
        self._asked[self._sent] = time.monotonic()
        return self._sent

    def receive(self, number: int) -> Any:
        """See :class:`Link`. Answers to other questions (late ones, second ones) are dropped."""
        deadline = self._asked.pop(number) + self.patience
        while True:
            try:
                arrived, message = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                arrived, message = math.inf, b""
            if message is None:
                self._inbox.put((arrived, message))  # for the next one who asks
                raise Lost(f"party {self.name!r} is lost")
            if arrived > deadline:
                raise Lost(f"party {self.name!r} did not answer in time")
            answer = self._open(message)
            if answer.number != number:
                continue
            if answer.kind == "refused":
                raise Refused(f"party {self.name!r} refuses: {answer.value}")
            if answer.kind == "failed":
                raise Lost(f"party {self.name!r} failed")
            return answer.value

    def _open(self, message: bytes) -> Reply:
        """Return the answer in a message; raise if there is none."""
        with suppress(WireError):
            return decode_as(Reply, message)
        raise Lost(f"party {self.name!r} answered nonsense")

    def close(self) -> None:
        """See :class:`Link`."""
        # A word, not just the end of the pipe: as long as a thread reads from it, it has no end.
        self._outbox.put(encode(None))
        self._outbox.put(None)
        self._writer.join(timeout=1)
        if self._writer.is_alive():  # it writes to somebody who does not read
            self._process.kill()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(timeout=5)
        self._reader.join(timeout=1)
        self._pipe.close()


def serve(
    pipe: Any, name: str, make: Callable[..., Party | Dealer], given: tuple[Any, ...]
) -> None:
    """Answer questions until the pipe ends, or the asker does; then settle the books.

    What is no question ends the connection.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    party, fault = _make(name, make, given)
    try:
        while True:
            question = decode_as(Request, pipe.recv_bytes(MOST_BYTES))
            pipe.send_bytes(_reply(party, fault, question))
    except Exception:  # the end of the pipe, or what was sent by nobody who asks
        return
    finally:
        if party is not None:
            party.close()


def _reply(party: Party | Dealer | None, fault: str, asked: Request) -> bytes:
    """Return a party's answer to a question, as it is sent."""
    number = asked.number
    try:
        if party is None:
            raise Refused(fault)
        found = party.answer(asked.target, asked.name, *asked.given, **asked.options)
        return encode(Reply(number, "answer", found))
    except (Lost, WireError):
        return encode(Reply(number, "failed"))
    except PrivetError as error:
        return encode(Reply.refusal(number, str(error)))
    except Exception:  # what went wrong may be about the rows
        return encode(Reply(number, "failed"))


def _make(
    name: str, make: Callable[..., Party | Dealer], given: tuple[Any, ...]
) -> tuple[Party | Dealer | None, str]:
    """Return a party, or why there is none."""
    try:
        party: object = make(*given)
    except PrivetError as error:
        return None, str(error)
    except Exception:  # what went wrong may be about the rows
        return None, "it could not be made; call its make by itself to see why"
    if not isinstance(party, Party | Dealer):
        return None, "its make returns no Party"
    if party.name != name:
        party.close()
        return None, "its make returns a Party with another name than the link's"
    return party, ""


class Connections:
    """A coordinator's links to the parties that are still there.

    Questions that only name cells wait here, and travel with the next one that has an answer.
    """

    def __init__(self, links: Sequence[Link], least: int) -> None:
        self.links = list(links)
        self.least = least
        #: The parties that were lost.
        self.lost: list[str] = []
        #: Why, in words of the links.
        self._whys: list[str] = []
        #: Who refused the last question.
        self.refusing: list[Link] = []
        #: How many times all parties were asked.
        self.rounds = 0
        self.closed = False
        self._waiting: list[tuple[Any, ...]] = []
        self._stale: list[int | Mapping[str, int]] = []
        self._number = 0

    def begin(self) -> None:
        """Agree on numbers for cells that no party has seen before."""
        series = [number for _, number in self.ask_all("series", check=is_series)]
        self._number = max(series) * SERIES

    def name(self, question: str, *given: Any, target: int = 0) -> int:
        """Return the number of new cells, of which parties hear with the next question."""
        self._check_open()
        if len(self._waiting) >= MOST_BEFORE // 2:
            self.ask_all("left")
        self._number += 1
        self._waiting.append((self._number, target, question, *given))
        return self._number

    def ask_all(
        self,
        question: str,
        *given: Any,
        target: int | Mapping[str, int] = 0,
        each: dict[str, Any] | None = None,
        check: Callable[[Any], bool] | None = None,
        **options: Any,
    ) -> list[tuple[str, Any]]:
        """Ask all parties at once; return names and answers of those that are left.

        ``target`` is what is asked about, with one number for all parties or one for each; ``each``
        has, by name, what a party gets with the question besides what all get.
        A party that is lost, or whose answer fails its check, is asked nothing any more. One that
        refuses stops the run: its owner decides, and the others' books show what they spent.
        """
        self._check_open()
        before = self._before()
        self.rounds += 1
        self.refusing = []
        asked, lost = [], []
        for link in self.links:
            place = _of(target, link.name)
            if place is None:
                lost.append(link)
                self._whys.append(f"party {link.name!r} did not answer what came before")
                continue
            try:
                mine = given if each is None else (*given, each[link.name])
                free = {"before": before[link.name]} if link.name in before else {}
                asked.append((link, link.send(place, question, *mine, **options, **free)))
            except Lost as error:
                lost.append(link)
                self._whys.append(str(error))
        found = []
        refused: FederationError | None = None
        for link, number in asked:
            try:
                answer = link.receive(number)
            except Lost as error:
                lost.append(link)
                self._whys.append(str(error))
                continue
            except FederationError as error:
                refused = refused or error
                self.refusing.append(link)
                continue
            if check is None or passes(check, answer):
                found.append((link.name, answer))
            else:
                lost.append(link)
                self._whys.append(f"party {link.name!r} answered what was not asked")
        if lost:
            self.links = [link for link in self.links if link not in lost]
            self.lost += [link.name for link in lost]
        if refused is not None:
            raise refused
        if len(self.links) < self.least:
            names = ", ".join(map(repr, self.lost))
            raise FederationError(
                f"{names} did not answer, or answered nonsense ({'; '.join(self._whys)}). "
                f"{len(self.links)} parties are left and {self.least} are needed. The ledgers of "
                "the others show what they spent; to go on, make a FederatedTable without the lost "
                "ones"
            )
        return found

    def _check_open(self) -> None:
        if self.closed:
            raise FederationError("this federation is closed; make a new one of new parties")

    def forget(self, target: int | Mapping[str, int]) -> None:
        """Note what is not needed any more; parties hear of it with the next question.

        Called when cells are collected, perhaps while answers are awaited: nothing is sent here.
        """
        self._stale.append(target)

    def _before(self) -> dict[str, tuple[tuple[Any, ...], ...]]:
        """Return what travels with a question: new cells, then what is not needed any more."""
        waiting, self._waiting = self._waiting, []
        found = {link.name: list(waiting) for link in self.links}
        for _ in range(min(len(self._stale), MOST_BEFORE // 2)):
            target = self._stale.pop()
            for name, mine in found.items():
                number = _of(target, name)
                if number is not None:
                    mine.append((0, number, "forget"))
        return {name: tuple(mine) for name, mine in found.items() if mine}


def _of(target: int | Mapping[str, int], name: str) -> int | None:
    return target.get(name) if isinstance(target, Mapping) else target


def links_to(parties: Any) -> list[Link]:
    """Return a link to every party."""
    try:
        links = [LocalLink(each) if isinstance(each, Party) else each for each in parties]
    except TypeError:
        links = [None]
    methods = ("name", "send", "receive", "close")
    if not all(hasattr(link, method) for link in links for method in methods):
        raise FederationError(
            "give a list of parties, or of links to them, not rows: Party(name, features, target, "
            "schema, budget) makes one"
        )
    if len({link.name for link in links}) < len(links) or not links:
        raise FederationError("give at least one party, each with its own name")
    return links


def dealer_link(dealer: Any, parties: Sequence[str]) -> Link:
    """Return a link to a dealer."""
    link = LocalLink(dealer) if isinstance(dealer, Dealer) else dealer
    if isinstance(dealer, Party | str) or getattr(link, "name", None) in parties:
        raise FederationError(
            "a party cannot deal: with what it deals it would see the sums that it helps to "
            "compare. Give a Dealer of another organisation, or a link to one"
        )
    if not all(hasattr(link, method) for method in ("name", "send", "receive", "close")):
        raise FederationError("dealer must be a Dealer, or a link to one")
    return link
