"""Data holders and the lines to them.

A :class:`Party` has its rows behind its own wall, its own books, its own noise and its own keys. It
answers a short list of questions, each charged to its own ledger before it is computed, whatever
the asker says. A *link* carries questions to a party: in this process, or to another one. What goes
over a line are the bytes of :mod:`privet.federation.wire`, which can do nothing but be read.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from pathlib import Path
from pickle import PicklingError
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any, Protocol, Self
from weakref import finalize

import numpy as np

from privet.errors import FederationError, PrivetError
from privet.federation.wire import (
    CLASSES,
    DTYPES,
    ENVELOPES,
    MOST_BYTES,
    PLAIN,
    Reply,
    Request,
    WireError,
    decode_as,
    encode,
    rebuild,
)
from privet.privacy import Ballot, Budget, Ledger, LedgerStore, Reservation, Seat, fingerprint
from privet.schema import Schema
from privet.tables import NO_NOISE, Binary, PrivateCells, PrivateTable, View

#: Questions that cost nothing: they say which cells are meant, or what is public.
FREE = frozenset(
    {"root", "parts", "take", "split", "forget", "public_key", "join", "seal", "unseal", "describe",
     "left", "vote"}
)  # fmt: skip
#: Questions that are charged.
CHARGED = frozenset(
    {"noisy_counts", "noisy_class_counts", "choose_best", "choose_splits", "share_class_counts",
     "share_counts", "share_labels", "share_splits"}
)  # fmt: skip

#: Questions that come with arrays: which cells, which features, what was dealt or opened.
_WITH_ARRAYS = frozenset({"take", "choose_splits", "share_splits", "vote"})

#: What needs no second look, wherever it is.
_NUMBERS = frozenset({int, float})

#: About a year, in seconds: what clocks can wait for.
_MOST_PATIENCE = 30_000_000


class Refused(FederationError):
    """A party does not answer, and says why."""


class Lost(FederationError):
    """A party does not answer at all, or not what was asked."""


class Party:
    """One data holder.

    Parameters
    ----------
    name : str
        By which the others know it.
    features, target : dataframe or array, column
        Its rows; they may be none. If the target is None, it is the column of the features that
        the schema names.
    schema : Schema
        What is public; the same for all parties, but for the table's name.
    budget : Budget
        What its owner allows to be spent on its rows, in pure epsilon.
    allowed : collection of str, optional
        Which questions its owner allows; all that are known if None.
    ledger : path or LedgerStore, optional
        The owner's ledger file, from which the budget is reserved; :meth:`close` settles it.
    trusted : int, optional
        For secure sums: how many parties of the roster, this one included, its owner takes for
        honest; all if None. A round whose noise would rest on more of them is refused. If the
        party joins a smaller federation later, as many of its members are doubted as before.
    random_state : int, generator, Noise or None
        As for :class:`~privet.PrivateTable`: None for cryptographic noise.

    Examples
    --------
    >>> from privet import Budget, Numeric, Schema
    >>> schema = Schema({"dose": Numeric(0, 10)}, "cured", classes=[0, 1])
    >>> north = Party("north", [[1.0], [9.0]], [0, 1], schema, Budget(2.0))
    >>> root = north.answer(0, "root", None)
    >>> counts = north.answer(root, "noisy_class_counts", 0.5)
    >>> float(north.table.ledger.left)
    1.5
    """

    def __init__(
        self,
        name: str,
        features: Any,
        target: Any,
        schema: Schema,
        budget: Budget,
        *,
        allowed: Collection[str] | None = None,
        ledger: LedgerStore | str | Path | None = None,
        trusted: int | None = None,
        random_state: Any = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise FederationError("a party's name is text, and not empty")
        if not isinstance(schema, Schema):
            raise FederationError("schema must be a Schema; read one with Schema.from_toml(path)")
        if not isinstance(budget, Budget):
            raise FederationError("budget must be a Budget, such as Budget(1.0)")
        if budget.accountant != "pure":
            raise FederationError(
                "a federation has pure budgets only: give the party a Budget without delta or rho"
            )
        if trusted is not None and (
            isinstance(trusted, bool) or not isinstance(trusted, int | np.integer) or trusted < 1
        ):
            raise FederationError("trusted must be a whole number from 1 on: this party is one")
        self.name = name
        self.trusted = None if trusted is None else int(trusted)
        self.allowed = frozenset(CHARGED if allowed is None else allowed)
        if not self.allowed <= CHARGED:
            raise FederationError(f"a party can allow {', '.join(sorted(CHARGED))}, nothing else")
        self.table = PrivateTable(features, target, schema, budget, random_state=random_state)
        reservation = None
        if ledger is not None:
            store = ledger if isinstance(ledger, LedgerStore) else LedgerStore(Path(ledger))
            reservation = store.reserve(
                budget,
                f"party {name!r} of a federation",
                columns=[*schema.names, schema.target],
                table=schema.table,
            )
        #: Ends the books: by close, or when nobody has the party any more.
        self._end = finalize(self, _end, self.table.ledger, reservation)
        self._seat: Seat | None = None
        #: Whether the roster came from the owner, and how many of a roster may not be honest.
        self._pinned, self._doubted = False, 0
        self._closed = False
        #: Cells, and a fingerprint of how they were made: the same at all parties.
        self._cells: dict[int, tuple[PrivateCells, bytes]] = {}
        self._ballots: dict[int, Ballot] = {}
        self._next = 1
        #: One question at a time: of two at once, both could find a round unanswered.
        self._turn = RLock()

    @property
    def seat(self) -> Seat:
        """Its keys, made on first use."""
        if self._seat is None:
            self._seat = Seat(self.name)
        return self._seat

    def join(self, roster: Mapping[str, bytes]) -> None:
        """Read the names and public keys of all parties: what secure sums rest on.

        An owner who does not trust the coordinator to pass keys on gets them from the other owners
        (each party's ``seat.public_key``) and calls this first: any other roster is refused then.
        """
        self._join(roster)
        self._pinned = True

    def _join(self, roster: Mapping[str, bytes]) -> None:
        self.seat.join(roster)
        if self.trusted is not None:
            self._doubted = max(self._doubted, len(roster) - self.trusted)

    def _public_key(self) -> bytes:
        """Return the key for a roster: a new one, if the roster is not the owner's own.

        A new federation has new keys, so that nothing of the one before can be asked any more.
        """
        if self.seat.peers and not self._pinned:
            self._seat = None
            self._ballots.clear()
        return self.seat.public_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the books, and settle the owner's ledger file."""
        self._closed = True
        self._end()

    def answer(self, target: int, question: str, *given: Any, **options: Any) -> Any:
        """Answer a question about the table (target 0) or about cells, or refuse.

        Cells are answered by a number, under which they can be asked in turn. What goes wrong in a
        way that is not foreseen is a :class:`Lost` answer: its text could be about the rows.
        """
        try:
            with self._turn:
                return self._answer(target, question, given, options)
        except PrivetError:
            raise
        except Exception:
            lost = Lost(f"party {self.name!r} failed")
        raise lost

    def _answer(
        self, target: int, question: str, given: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if self._closed and question != "forget":
            raise Refused(f"party {self.name!r} refuses: its books are closed; make it anew")
        if question in CHARGED and question not in self.allowed:
            raise Refused(f"party {self.name!r} does not allow the question {question!r}")
        if question not in CHARGED | FREE:
            raise Refused(f"party {self.name!r} does not know the question {question!r}")
        try:
            given = tuple(_own(value, arrays=question in _WITH_ARRAYS) for value in given)
            options = {name: _own(value) for name, value in options.items()}
        except (TypeError, ValueError, ArithmeticError, WireError) as error:
            raise Refused(
                f"party {self.name!r} does not know what {question!r} came with"
            ) from error
        if question == "describe":
            # An endless budget is its owner's word; how much noise there is, a fit's budget says.
            leaks = [leak for leak in self.table.leaks if leak != NO_NOISE]
            return self.table.schema.to_dict(), leaks, sorted(self.allowed)
        if question == "left":
            return self.table.ledger.left, self._seat and self._seat.public_key, self._doubted
        if question == "public_key":
            return self._public_key()
        if question == "join":
            return self._join(*given)
        if question in ("seal", "unseal"):
            return getattr(self.seat, question)(*given)
        if question == "forget":
            self._cells.pop(target, None)
            self._ballots.pop(target, None)
            return None
        if question == "vote":
            if target not in self._ballots:
                raise Refused(f"party {self.name!r} takes part in no such choice")
            try:
                return self._ballots[target].answer(*given)
            except FederationError:
                del self._ballots[target]
                raise
        if target == 0:
            if question not in ("root", "parts"):
                raise Refused(f"party {self.name!r}: {question!r} is about cells")
            *first, view = given
            view = self._view(view)
            made: PrivateCells = getattr(self.table, question)(*first, view)
            unnamed = replace(view.schema, table=None)
            return self._keep(made, fingerprint(question, first, unnamed, view.cuts))
        if target not in self._cells:
            raise Refused(f"party {self.name!r} has no such cells")
        cells, how = self._cells[target]
        if question.startswith("share_"):
            *asked, honest, members, turn = self._check_round(given)
            # A round is called by all that was asked: whoever was asked something else, for less
            # noise, or of other cells, has other masks, and nobody can read the sum.
            name = fingerprint(how, question, asked, honest, sorted(members), turn)
            found = getattr(cells, question)(*asked, honest, self.seat, members, name)
            return self._enter(found) if isinstance(found, Ballot) else found
        found = getattr(cells, question)(*given, **options)
        if isinstance(found, PrivateCells):
            return self._keep(found, fingerprint(how, question, given, options))
        return found

    def _view(self, view: View | None) -> View:
        """Return a view of this party's own schema, whatever the others call their tables."""
        schema = self.table.schema
        if view is None:
            return View.of_bins(schema)
        if replace(view.schema, table=schema.table) == schema:
            view = View(replace(view.schema, table=schema.table), view.cuts)
        return view

    def _check_round(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Refuse a round that its owner would not join, before it is charged."""
        honest, members, turn = given[-3:] if len(given) >= 3 else (None, None, None)
        roster = {self.name, *self.seat.peers}
        if not (
            type(honest) is int
            and isinstance(members, list | tuple)
            and len(set(members)) == len(members)
            and self.name in members
            and set(members) <= roster
            and isinstance(turn, bytes)
            and len(turn) == 16
        ):
            raise Refused(f"party {self.name!r} takes part in no such round")
        check_honest(self.name, honest, len(members), self._doubted)
        return given

    def _keep(self, cells: PrivateCells, how: bytes) -> int:
        number = self._number()
        self._cells[number] = (cells, how)
        return number

    def _enter(self, ballot: Ballot) -> int:
        number = self._number()
        self._ballots[number] = ballot
        return number

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number


def check_honest(name: str, honest: int, members: int, doubted: int) -> None:
    """Raise if noise would rest on more honest parties than a party's owner counts on."""
    # Of the members, so many may not be honest: as many as of the whole roster.
    sure = max(0, members - doubted)
    if honest > sure:
        raise Refused(
            f"party {name!r} refuses: the noise of a round would rest on {honest} honest parties "
            f"of {members}, and its owner counts on {sure}: FederatedTable(honest={max(sure, 1)}) "
            "adds as much noise as that takes"
        )


def _end(ledger: Ledger, reservation: Reservation | None) -> None:
    ledger.close()
    if reservation is not None:
        reservation.settle(ledger.total, ledger.entries)


def _own(value: Any, *, arrays: bool = False) -> Any:
    """Return what a question came with, checked: plain public things, and objects made anew.

    Exact types: a criterion of the asker's own could claim any sensitivity that it likes, a feature
    any number of codes. Arrays only where they are due: elsewhere one could pass for a tuple, and
    be read as more numbers than it has rows.
    """
    kind = type(value)
    if kind in (list, tuple):
        if set(map(type, value)) <= _NUMBERS:  # codes and cuts by the thousand
            return kind(value)
        return kind(_own(held, arrays=arrays) for held in value)
    if kind is dict:
        return {_own(key): _own(held) for key, held in value.items()}
    if kind is np.ndarray and arrays and value.dtype in DTYPES.values():
        return value
    if kind is Fraction:
        parts = value.numerator, value.denominator
        if set(map(type, parts)) != {int}:
            raise TypeError("a fraction has whole numbers")
        return Fraction(*parts)
    if kind in PLAIN:
        return value
    if kind in ENVELOPES or kind not in CLASSES:
        raise TypeError("a question came with something unknown")
    # A new object has passed the checks of its class, and has no memory.
    _, names = CLASSES[kind]
    return rebuild(kind, [_own(getattr(value, name), arrays=kind is Binary) for name in names])


class Link(Protocol):
    """A line to one party. Questions may be sent to several parties before answers are awaited.

    How long a link waits for an answer counts from the question: several slow parties are waited
    for at the same time.
    """

    name: str

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """Send a question; return its number."""

    def receive(self, number: int) -> Any:
        """Return the answer to a question, or raise :class:`Refused` or :class:`Lost`."""

    def close(self) -> None:
        """End the line."""


class LocalLink:
    """A party in this process.

    Nothing is made into bytes here: that would lengthen a fit by a third. The party looks at what
    it is given in the same way, by the same list of types (:meth:`Party.answer`).
    """

    def __init__(self, party: Party) -> None:
        self.name = party.name
        self.party = party
        self._waiting: dict[int, tuple[int, str, tuple[Any, ...], dict[str, Any]]] = {}
        self._sent = 0

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See :class:`Link`."""
        self._sent += 1
        if question == "forget":  # whose answer nobody waits for
            self.party.answer(target, question)
            return self._sent
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
    """A party in a process of its own, which reads its rows itself; asked by one thread at a time.

    At its start the new process gets ``make`` and ``given`` as Python starts processes: pickled, by
    the process that starts it, whose child it is. From then on the two send each other bytes of
    :mod:`privet.federation.wire` and nothing is unpickled: neither can run code in the other.

    Parameters
    ----------
    name : str
        The party's name.
    make : function
        Makes the :class:`Party`; it must be importable, and is called in the new process.
    given : tuple
        What it is called with.
    patience : float, default=600.0
        Seconds from a question to its answer; one that arrives later is not read. The first answer
        takes as long as the process needs to start.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Party],
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
        self._line, theirs = context.Pipe()
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
        with suppress(OSError):
            while (message := self._outbox.get()) is not None:
                self._line.send_bytes(message)

    def _read(self) -> None:
        with suppress(Exception):  # whatever it is, there is nothing more to read
            while True:
                message = self._line.recv_bytes(MOST_BYTES)
                self._inbox.put((time.monotonic(), message))
        self._inbox.put((0.0, None))

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See :class:`Link`."""
        if not self._writer.is_alive():
            raise Lost(f"party {self.name!r} is lost")
        self._outbox.put(encode(Request(self._sent + 1, target, question, given, options)))
        self._sent += 1
        if question != "forget":  # whose answer nobody waits for
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
        """Return the answer that a message is, if it is one."""
        with suppress(WireError):
            return decode_as(Reply, message)
        raise Lost(f"party {self.name!r} answered nonsense")

    def close(self) -> None:
        """See :class:`Link`."""
        # A word, not just the end of the line: as long as a thread reads from it, it has no end.
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
        self._line.close()


def serve(line: Any, name: str, make: Callable[..., Party], given: tuple[Any, ...]) -> None:
    """Answer questions until the line ends, or the asker does; then settle the books.

    What is no question is the end of the line.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    party, fault = _make(name, make, given)
    try:
        while True:
            question = decode_as(Request, line.recv_bytes(MOST_BYTES))
            line.send_bytes(_reply(party, fault, question))
    except Exception:  # the end of the line, or what was sent by nobody who asks
        return
    finally:
        if party is not None:
            party.close()


def _reply(party: Party | None, fault: str, asked: Request) -> bytes:
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
    name: str, make: Callable[..., Party], given: tuple[Any, ...]
) -> tuple[Party | None, str]:
    """Return a party, or why there is none."""
    try:
        party: object = make(*given)
    except PrivetError as error:
        return None, str(error)
    except Exception:  # what went wrong may be about the rows
        return None, "it could not be made; call its make by itself to see why"
    if not isinstance(party, Party):
        return None, "its make returns no Party"
    if party.name != name:
        party.close()
        return None, "its make returns a Party with another name than the link's"
    return party, ""
