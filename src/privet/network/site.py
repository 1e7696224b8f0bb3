"""A party's site: answers a coordinator's questions within its owner's policy, and keeps the books.

What is answered, and what happens when the process is killed, is argued in docs/proofs/journal.md.
In short: journal the question, charge, journal the answer, sync, count in the ledger file, send.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any, NoReturn

from privet import __version__
from privet.errors import BudgetExceeded, DataError, LedgerFileError, PrivetError, SchemaError
from privet.federation import Lost, Party, Refused
from privet.federation.mpc import SHARES
from privet.federation.party import CHARGED, CHOICES, SILENT
from privet.federation.wire import MAGIC, Reply, Request, WireError, decode_as, encode
from privet.network.interface import digest_of
from privet.network.journal import Disk, Journal, JournalError, Record
from privet.network.keys import Identity, check_vouched
from privet.network.policy import Policy, PolicyError, StudyPolicy
from privet.outputs import OutputFile
from privet.privacy import Cost, Entry, LedgerStore, StudyReservation, as_float
from privet.schema import Schema
from privet.visible import quoted

#: Free questions that are journaled as they are. Of all others (keys, steps of secret choices) the
#: number and the digest are: what they came with never reaches the disk.
_PLAIN = frozenset({*SILENT, "series", "describe", "left"})
#: Charged questions under keys that all parties have made together.
_KEYED = frozenset(SHARES)
#: Free questions about keys that were made before.
_OF_KEYS = frozenset({"join", "seal", "unseal"})
#: Refusals that are written down in a minute, at most: a flood shall not fill the disk.
_MOST_REFUSALS = 60
#: Bytes of a dealer's key without a signature: the coordinator's own.
_DEALER_KEY = 32
#: Where a coded question has its number.
_HEAD = MAGIC + b"o\x08questioni"

#: What a coordinator is told if the reason is about files of the site.
_AT_THE_SITE = (
    "its books cannot be used at present; its owner sees why in what its process says (privet "
    "party serve), and in privet party status"
)


class Site:
    """Answers the questions of studies at one party. See :class:`~privet.network.Answering`.

    Parameters
    ----------
    policy : Policy
        What the owner allows.
    identity : Identity
        The site's key, which vouches for keys of secret sums.
    read : function
        Reads the rows, for the party, which is all that sees them.
    tell : function, optional
        Is told a line for every question that is charged or refused.
    disk : type, optional
        What journals write to; tests have others.
    random_state
        As for :class:`~privet.federation.Party`.
    """

    def __init__(
        self,
        policy: Policy,
        identity: Identity,
        read: Callable[[Schema], Any],
        *,
        tell: Callable[[str], None] = lambda _: None,
        disk: type[Disk] = Disk,
        random_state: Any = None,
    ) -> None:
        self.name = policy.name
        self.policy, self.identity = policy, identity
        self.schema = Schema.from_toml(policy.schema)
        self.schema.check_corrected()
        self.tell, self.disk, self.random_state = tell, disk, random_state
        self._read = read
        self._rows: Any = None
        self._served: dict[str, _Served] = {}
        self._lock = RLock()

    def rows(self) -> Any:
        """Return the table, read once."""
        if self._rows is None:
            self._rows = self._read(self.schema)
        return self._rows

    def greet(self, study: str) -> dict[str, Any]:
        """See :class:`~privet.network.Answering`."""
        with self._lock:
            try:
                return self._of(study).greet()
            except PrivetError as error:
                self.tell(f"study {quoted(study)}: {error}")
                raise Refused(_outward(error)) from None

    def reply(self, study: str, message: bytes) -> bytes:
        """See :class:`~privet.network.Answering`."""
        number = number_of(message)
        try:
            with self._lock:
                return self._of(study).reply(number, message)
        except Lost:
            return encode(Reply(number, "failed"))
        except PrivetError as error:
            self.tell(f"study {quoted(study)}: {error}")
            return encode(Reply.refusal(number, _outward(error)))
        except Exception as error:  # what went wrong may be about the rows
            self.tell(f"study {quoted(study)}: failed unexpectedly ({type(error).__name__})")
            return encode(Reply(number, "failed"))

    def close(self) -> None:
        """Let the journals go. What studies have reserved stays theirs."""
        with self._lock:
            for served in self._served.values():
                served.close()
            self._served.clear()

    def _of(self, study: str) -> _Served:
        found = self._served.get(study)
        if found is None:
            found = self._served[study] = _Served(self, self.policy.study(study))
        return found


class _Served:
    """One study, served by this process."""

    def __init__(self, site: Site, policy: StudyPolicy) -> None:
        self.site, self.policy, self.limits = site, policy, site.policy.limits
        self.store = LedgerStore(site.policy.ledger)
        self.party: Party | None = None
        self.reservation: StudyReservation | None = None
        #: Why nothing is answered any more, in this process; and whether its owner has closed it.
        self.broken: str | None = None
        self.closed = False
        #: By number: the digest of the question, and where its reply is.
        self.known: dict[int, tuple[str, Record | None]] = {}
        self.last = self.answers = 0
        self.spent = _NOTHING
        #: What makes dealers suspect, by the journal.
        self.misdealt: tuple[int, bool] = (0, False)
        #: The party's key for secret sums, and the same with the site's signature.
        self.vouched: tuple[bytes, bytes] = (b"", b"")
        #: The last reply that is not in the journal.
        self.recent: tuple[int, bytes] = (0, b"")
        self.asked: deque[float] = deque()
        self.refusals: deque[float] = deque()
        self.journal = begun(site.policy, policy.name, site.disk)
        if self.journal is not None:
            try:
                self._go_on(self.journal)
            except BaseException:
                self.close()
                raise
        elif self.store.study(policy.name) is not None:
            self.store.take_over(policy.name, "")  # which says that its journal is another one

    # Coming back

    def _go_on(self, journal: Journal) -> None:
        """Take up what an earlier process left, or raise if the books do not agree."""
        check_begun(journal, self._opening())
        for record in journal.records:
            self._learn(record)
        self.reservation = agree(self.store, journal)

    def _learn(self, record: Record) -> None:
        facts = record.facts
        if record.kind in ("free", "keyed", "answer"):
            self.known[facts["number"]] = (
                facts["digest"],
                None if record.kind == "keyed" else record,
            )
            self.last = max(self.last, facts["number"])
        if record.kind == "answer":
            self.answers, self.spent = facts["count"], cost_of(record)
        if "misdealt" in facts:
            given_up, cheated = facts["misdealt"]
            self.misdealt = given_up, cheated
        self.closed = self.closed or record.kind == "closed"

    def _wake(self) -> Party:
        """Return the party; if the journal has questions, as it was after them."""
        if self.party is not None:
            return self.party
        party = Party(
            self.site.name,
            self.site.rows(),
            None,
            self.site.schema,
            self.policy.budget,
            trusted=self.policy.trusted,
            random_state=self.site.random_state,
        )
        if self.journal is not None:
            self._replay(self.journal, party)
        party.allowed = self.policy.questions  # from now on; before, the policy may have had others
        self.party = party
        return party

    def _replay(self, journal: Journal, party: Party) -> None:
        asked: dict[int, Request] = {}
        for record in journal.of_kind("question", "answer", "free", "keyed", "tried"):
            number = record.facts["number"]
            party.doubt(record.facts.get("doubted", 0))
            if "misdealt" in record.facts:
                party.suspect(*record.facts["misdealt"])
            if record.kind == "answer":
                with suppress(PrivetError):  # charged for a part, and refused: the total tells
                    _repeat(party, asked[number], charged=True)
                if party.table.ledger.total != cost_of(record):
                    raise JournalError(
                        f"the journal {journal.path} does not lead to the books that it says: it "
                        "was written by another version, or for another schema. Nothing is answered"
                    )
            elif request := journal.request_of(record):
                asked[number] = decode_as(Request, request)
                if record.kind in ("free", "keyed"):
                    _repeat(party, asked[number], charged=False)
                elif record.kind == "tried":
                    with suppress(PrivetError):  # as before
                        _repeat(party, asked[number], charged=False)

    # Answering

    def greet(self) -> dict[str, Any]:
        self._check_open()
        return {
            "version": __version__,
            "schema": digest_of(self.site.schema),
            "name": self.site.name,
            "last": self.last,
        }

    def reply(self, number: int, message: bytes) -> bytes:
        """Return the reply to a question: stored, or new."""
        question = "a question"
        try:
            if len(message) > self.limits.message:
                raise Refused(
                    f"a question of {len(message):,} bytes is larger than its owner allows "
                    f"({self.limits.message:,})"
                )
            asked = decode_as(Request, message)
            question = asked.name
            self._check_open()
            digest = hashlib.sha256(message).hexdigest()
            if number in self.known:
                return self._again(number, digest)
            if number <= self.last:
                raise Refused(f"question {number} is older than the last one ({self.last})")
            return self._new(asked, digest, message)
        except (PrivetError, WireError) as error:
            self._note_refusal(number, question, error)
            raise

    def _check_open(self) -> None:
        if self.broken is not None:
            raise Refused(self.broken)
        self.policy.check_date(datetime.now(UTC))
        if self.closed:
            raise Refused("its owner has closed the study")
        check_approved(self.site.policy, self.policy)

    def _again(self, number: int, digest: str) -> bytes:
        """Return the same bytes as before; never another noise."""
        known, record = self.known[number]
        if known != digest:
            raise Refused(
                f"question {number} was asked before, and otherwise: what was answered is not "
                "answered anew. A run is resumed with its own directory"
            )
        if record is not None:
            assert self.journal is not None
            return self.journal.reply_of(record)
        if self.recent[0] == number:
            return self.recent[1]
        raise Refused(_KEYS_GONE)

    def _new(self, asked: Request, digest: str, message: bytes) -> bytes:
        party = self._wake()
        self._check_limits(party, asked)
        facts = {"number": asked.number, "digest": digest, "question": asked.name}
        if (asked.name in _KEYED and not party.connected) or (
            asked.name in _OF_KEYS and not party.has_keys
        ):
            self._without_keys(party, asked, facts)
        if asked.name in CHARGED:
            return self._charged(party, asked, facts, message)
        answered, reply = self._answer(party, asked)
        if not answered:
            self._unanswered(party, asked, facts, reply)
        if asked.name in _PLAIN:
            self._write({"kind": "free", **facts}, message, reply)
        else:
            self._write_keyed("keyed", party, facts, _before(asked))
            self.recent = (asked.number, reply)
        return reply

    def _write_keyed(self, kind: str, party: Party, facts: dict[str, Any], before: bytes) -> None:
        """Write down a question about keys or choices, and whom the party doubts after it."""
        known, now = self.misdealt, party.misdealt
        self._write({"kind": kind, **facts, "doubted": party.doubted, "misdealt": now}, before)
        if any(new > old for new, old in zip(now, known, strict=True)):
            self._synced()  # before it says which deal is kept

    def _without_keys(self, party: Party, asked: Request, facts: dict[str, Any]) -> NoReturn:
        """Refuse what needs keys that ended with their process; what came before it is done."""
        if before := _before(asked):  # as the other parties have: it is not asked again
            self._answer(party, decode_as(Request, before))
            self._write({"kind": "tried", **facts}, before)
        raise Refused(_KEYS_GONE)

    def _charged(
        self, party: Party, asked: Request, facts: dict[str, Any], message: bytes
    ) -> bytes:
        if asked.name not in self.policy.questions:
            raise Refused(f"its owner does not allow the question {asked.name!r} in this study")
        self._write({"kind": "question", **facts}, message)
        if self.reservation is None:
            self.reservation = self._reserve(self._synced())
        ledger = party.table.ledger
        before = len(ledger.entries)
        try:
            answered, reply = self._answer(party, asked)
        except BaseException:
            self.broken = self.broken or _STOPPED  # perhaps charged, and nothing says so
            raise
        entries = ledger.entries[before:]
        if not entries and not answered:
            self._unanswered(party, asked, facts, reply)
        # From here on it is charged. Whatever fails, nothing leaves until all is written down.
        spent, self.broken = ledger.total, _STOPPED
        self._write(
            {
                "kind": "answer",
                **facts,
                "count": self.answers + 1,
                "cells": sum(entry.cells for entry in entries),
                "cost": as_float(spent.epsilon - self.spent.epsilon),
                "left": as_float(ledger.left),
                "epsilon": str(spent.epsilon),
                "rho": str(spent.rho),
                "entries": [entry.to_dict() for entry in entries],
            },
            b"",
            reply,
        )
        journal = self._synced()
        self.reservation.count(self.answers, spent)
        self.broken = None
        self.site.tell(log_line(self.policy.name, journal.records[-1]))
        return reply

    def _unanswered(
        self, party: Party, asked: Request, facts: dict[str, Any], reply: bytes
    ) -> NoReturn:
        """Refuse what the party refused, or failed at, and was not charged for."""
        before = _before(asked)  # of which it may have done a part
        if before or party.misdealt != self.misdealt:
            self._write_keyed("tried", party, facts, before)
        found = decode_as(Reply, reply)
        if found.kind == "failed":
            raise Lost("the party failed")
        raise Refused(found.value)

    def _answer(self, party: Party, asked: Request) -> tuple[bool, bytes]:
        """Let the party answer, in the time that its owner allows; tell whether it did."""
        found: SimpleQueue[tuple[bool, bytes] | BaseException] = SimpleQueue()

        def work() -> None:
            try:
                found.put(self._reply_of(party, asked))
            except BaseException as error:
                found.put(error)

        Thread(target=work, daemon=True).start()
        try:
            reply = found.get(timeout=self.limits.seconds)
        except Empty:
            self.broken = (
                f"a question took longer than its owner allows ({self.limits.seconds:g} seconds), "
                "and the study is stopped there until the party is started again"
            )
            raise Refused(self.broken) from None
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def _reply_of(self, party: Party, asked: Request) -> tuple[bool, bytes]:
        number = asked.number
        try:
            if asked.name == "left" and self.reservation is None:
                self._check_reserve()  # so that a fit is refused before anybody has paid
            given = asked.given
            if asked.name == "join":
                roster, dealer = given if len(given) == 2 else (*given, None)
                given = self._roster(party, roster), self._dealer(dealer)
            found = party.answer(asked.target, asked.name, *given, **asked.options)
            if asked.name == "public_key":
                found = self._vouch(found)
            elif asked.name == "left":
                left, key, doubted = found
                found = left, None if key is None else self._vouch(key), doubted
            return True, encode(Reply(number, "answer", found))
        except (Lost, WireError):
            return False, encode(Reply(number, "failed"))
        except PrivetError as error:
            return False, encode(Reply.refusal(number, _outward(error)))
        except Exception:  # what went wrong may be about the rows
            return False, encode(Reply(number, "failed"))

    # Keys of secret sums: signed by the site's key, and checked by what owners told each other

    def _vouch(self, key: bytes) -> bytes:
        if self.vouched[0] != key:
            signed = self.site.identity.vouch(self.policy.name, self.site.name, key)
            self.vouched = key, signed
        return self.vouched[1]

    def _roster(self, party: Party, vouched: Any) -> dict[str, bytes]:
        """Return the keys of a roster, if each is signed by the key whose fingerprint is known."""
        if not isinstance(vouched, dict) or not all(isinstance(name, str) for name in vouched):
            raise Refused("a roster has a key for every party's name")
        if vouched.get(self.site.name) != self._vouch(party.keys.public_key):
            raise Refused("the roster has another key for this party")
        roster = {self.site.name: party.keys.public_key}
        for name in vouched.keys() - roster.keys():
            if name not in self.policy.peers:
                raise Refused(
                    f"the roster has a party {name!r} whose fingerprint this site does not have: "
                    "its owner asks the owner there for it, and adds it to the study's policy"
                )
            pinned = self.policy.peers[name]
            roster[name] = check_vouched(self.policy.name, name, vouched[name], pinned)
        return roster

    def _dealer(self, key: Any) -> Any:
        """Return the dealer's key, which the dealer has signed if it is not the coordinator."""
        for name, pinned in self.policy.dealer.items():
            return check_vouched(self.policy.name, name, key, pinned)
        if isinstance(key, bytes) and len(key) > _DEALER_KEY:
            raise Refused(
                "the study has a dealer besides the coordinator, whose fingerprint this site does "
                "not have: its owner asks for it, and adds it to the study's policy"
            )
        return key

    # Limits

    def _check_limits(self, party: Party, asked: Request) -> None:
        """Refuse what would be too much, before it is worked on."""
        now = time.monotonic()
        while self.asked and now - self.asked[0] > 60:
            self.asked.popleft()
        free = (asked.name not in CHARGED) + len(_questions_before(asked))
        if free and len(self.asked) + free > self.limits.free_per_minute:
            raise Refused(
                f"more than {self.limits.free_per_minute:,} free questions in a minute, which "
                "is what its owner allows: ask again in a minute"
            )
        self.asked.extend([now] * free)
        cells, choices = party.held
        if cells + new_cells(asked) > self.limits.cells:
            raise Refused(
                f"more than {self.limits.cells:,} cells at a time, which is what its owner allows: "
                "forget some, or take fewer levels"
            )
        if asked.name in CHOICES and choices >= self.limits.choices:
            raise Refused(
                f"more than {self.limits.choices:,} secret choices at a time, which is what its "
                "owner allows"
            )
        offers = asked.name in ("choose_best", "choose_splits", "share_splits")
        options = party.offered(asked.target, asked.given[0]) if offers and asked.given else 0
        if options > self.limits.options:
            raise Refused(
                f"{options:,} splits in one question, and its owner allows {self.limits.options:,}"
            )
        if self.journal is not None and self.journal.size > self.limits.journal:
            raise Refused("its journal of the study is as large as its owner allows")

    # Books

    def _opening(self) -> dict[str, Any]:
        return opening_of(self.site.policy, self.policy, self.site.schema)

    def _write(self, facts: dict[str, Any], request: bytes = b"", reply: bytes = b"") -> None:
        try:
            if self.journal is None:
                path = journal_path(self.site.policy, self.policy.name)
                opening = self._opening() | {"token": os.urandom(16).hex()}
                self.journal = Journal.create(path, opening, self.site.disk)
            record = self.journal.append(facts | {"time": time.time()}, request, reply)
        except JournalError:
            # The file may end in half a record, and the party has cells that it does not name.
            self.broken = _STOPPED
            raise
        self._learn(record)

    def _synced(self) -> Journal:
        """Return the journal, all of which is on the disk now."""
        assert self.journal is not None
        try:
            self.journal.sync()
        except JournalError:
            self.broken = _STOPPED
            raise
        return self.journal

    def _note_refusal(self, number: int, question: str, error: PrivetError) -> None:
        """Write down that a question was refused; not each one of a flood."""
        if self.journal is None or self.broken is not None or isinstance(error, JournalError):
            return
        now = time.monotonic()
        while self.refusals and now - self.refusals[0] > 60:
            self.refusals.popleft()
        if len(self.refusals) < _MOST_REFUSALS:
            self.refusals.append(now)
            facts = {"kind": "refused", "number": number, "question": question, "why": str(error)}
            with suppress(JournalError):
                self._write(facts)

    def _check_reserve(self) -> None:
        schema = self.site.schema
        try:
            self.store.check(
                self.policy.budget, columns=schema.columns, table=schema.table, unit=schema.unit
            )
        except BudgetExceeded as error:  # which names the file
            self.site.tell(f"study {quoted(self.policy.name)}: {error}")
            raise Refused(_TOO_LITTLE) from None

    def _reserve(self, journal: Journal) -> StudyReservation:
        schema = self.site.schema
        self._check_reserve()
        return self.store.reserve_study(
            self.policy.name,
            journal.records[0].facts["token"],
            self.policy.budget,
            columns=schema.columns,
            table=schema.table,
            unit=schema.unit,
        )

    def close(self) -> None:
        if self.reservation is not None:
            self.reservation.close()
        if self.journal is not None:
            self.journal.close()
        if self.party is not None:
            self.party.close()


_NOTHING = Cost(Fraction(0), Fraction(0))

_STOPPED = (
    "its books could not be written, and the study is stopped there until its owner starts the "
    "party again; nothing of the last question was sent"
)
_TOO_LITTLE = (
    "its ledger file has less left than the study may spend there; nothing was spent, and its "
    "owner sees how much is missing (privet party check)"
)
_KEYS_GONE = (
    "the keys for secret sums, or the choice under way, ended with the process that had them; "
    "connect the parties anew, and ask again: a choice that was under way is paid again"
)


def _outward(error: PrivetError) -> str:
    """Return what a coordinator is told: nothing about files of the site."""
    if isinstance(error, JournalError | LedgerFileError | DataError | SchemaError | OSError):
        return _AT_THE_SITE
    return str(error)


def number_of(message: bytes) -> int:
    """Return the number of a coded question; 0 if it is none."""
    if not message.startswith(_HEAD) or len(message) < len(_HEAD) + 8:
        return 0
    number = int.from_bytes(message[len(_HEAD) : len(_HEAD) + 8], "little", signed=True)
    return max(number, 0)


def new_cells(asked: Request) -> int:
    """Return how many cells a question would make, with all that comes before it."""
    before = [
        (each[2], tuple(each[3:]))
        for each in _questions_before(asked)
        if isinstance(each, list | tuple) and len(each) > 2
    ]
    return sum(_made_by(name, given) for name, given in [*before, (asked.name, asked.given)])


def _questions_before(asked: Request) -> Sequence[Any]:
    before = asked.options.get("before", ())
    return before if isinstance(before, list | tuple) else ()


def _made_by(name: Any, given: tuple[Any, ...]) -> int:
    if name == "root":
        return 1
    if name == "parts" and given and type(given[0]) is str:  # of a portion
        given = given[1:]
    first: Any = given[0] if given else None
    if name == "parts" and type(first) is int:
        return first
    if name in ("take", "split") and hasattr(first, "__len__"):
        if name == "split":
            return sum(getattr(each, "n_children", 0) for each in first)
        return len(first)
    return 0


def _before(asked: Request) -> bytes:
    """Return the free questions that came with another one, as a question of their own."""
    before = asked.options.get("before")
    if not before:
        return b""
    return encode(Request(asked.number, 0, "left", (), {"before": before}))


def _repeat(party: Party, asked: Request, *, charged: bool) -> None:
    """Let a party do again what it did before a restart; what was charged is not computed."""
    do = party.recall if charged else party.answer
    do(asked.target, asked.name, *asked.given, **asked.options)


# Books of a study, with or without its rows


def journal_path(policy: Policy, study: str) -> Path:
    """Return where the journal of a study is."""
    return policy.state / f"{study}.journal"


def begun(policy: Policy, study: str, disk: type[Disk] = Disk) -> Journal | None:
    """Return the journal of a study; None if it has not begun."""
    path = journal_path(policy, study)
    if not path.exists():
        return None
    journal = Journal.open(path, disk)
    if journal.records:
        return journal
    journal.close()
    if LedgerStore(policy.ledger).study(study) is not None:
        raise JournalError(_damaged(path))
    # A process was killed while it made it: nothing was reserved or answered.
    path.replace(path.with_suffix(".unfinished"))
    return None


def _damaged(path: Path) -> str:
    return (
        f"the journal {path} is damaged, or of another version of Privet: its beginning cannot be "
        "read. Nothing is answered; put the newest one in its place"
    )


def opening_of(policy: Policy, study: StudyPolicy, schema: Schema) -> dict[str, Any]:
    """Return what a journal of a study begins with, if it is begun now."""
    return {
        "study": study.name,
        "party": policy.name,
        "coordinator": policy.coordinator,
        "schema": digest_of(schema),
        "version": __version__,
        "wire": MAGIC[3],
        "epsilon": study.epsilon,
    }


def check_begun(journal: Journal, expected: dict[str, Any]) -> None:
    """Raise if a journal was begun as something else."""
    opening = journal.records[0].facts
    for key, what in (
        ("study", "of another study"),
        ("party", "of another party"),
        ("schema", "of another schema"),
        ("version", "of another version of Privet"),
        ("wire", "of another version of the messages between parties"),
        ("epsilon", "of another epsilon, which was reserved when the study began"),
    ):
        if opening.get(key) != expected[key]:
            was = quoted(opening.get(key, "an older one"))
            raise JournalError(
                f"the journal {journal.path} is {what} ({was}, now {quoted(expected[key])}). "
                "Nothing is answered: a study is finished as it was begun; change back what has "
                "changed, or close it and begin another one"
            )


def cost_of(record: Record) -> Cost:
    """Return what all answers up to one cost."""
    return Cost(Fraction(record.facts["epsilon"]), Fraction(record.facts["rho"]))


def agree(store: LedgerStore, journal: Journal) -> StudyReservation | None:
    """Return a study's reservation, if journal and ledger file agree; None if there is none yet.

    Raises if one of the two was restored from a backup: then noise would be drawn again for what
    was answered, or what was drawn since would be forgotten.
    """
    facts = journal.records[0].facts
    answers = list(journal.of_kind("answer"))
    books = store.study(facts["study"])
    if books is None and not answers:
        journal.trim()
        return None
    reservation = store.take_over(facts["study"], facts["token"])
    assert books is not None
    if books.answers > len(answers):
        raise JournalError(
            f"the ledger file has {books.answers} answers of the study {quoted(books.name)}, and "
            f"its journal {len(answers)}: the journal was restored from a backup, or damaged. "
            "Nothing is answered, since noise would be drawn again for what was sent; put the "
            "newest journal in its place, without which the study cannot go on"
        )
    if books.answers < len(answers) - 1:
        raise JournalError(
            f"the journal of the study {quoted(books.name)} has {len(answers)} answers, and the "
            f"ledger file {books.answers}: the ledger file was restored from a backup, and has "
            "forgotten what was spent since. Nothing is answered; put the newest one in its place"
        )
    journal.trim()
    if books.answers < len(answers):
        # Stopped between the journal and the ledger: the answer was never sent, and now may be.
        reservation.count(len(answers), cost_of(answers[-1]))
    return reservation


def close_study(policy: Policy, study: str) -> Cost:
    """End a study: nothing more is answered, and what was not spent goes back to the table."""
    journal = begun(policy, study)
    if journal is None:
        raise PolicyError(f"the study {quoted(study)} has not begun here: there is no journal")
    try:
        reservation = agree(LedgerStore(policy.ledger), journal)
        if not any(journal.of_kind("closed")):
            journal.append({"kind": "closed", "time": time.time(), "by": _user()})
            journal.sync()
        answers = list(journal.of_kind("answer"))
        spent = cost_of(answers[-1]) if answers else _NOTHING
        if reservation is not None:
            entries = [
                Entry.from_dict(each) for record in answers for each in record.facts["entries"]
            ]
            reservation.settle(spent, entries)
        return spent
    finally:
        journal.close()


@dataclass(frozen=True)
class StudyState:
    """How far a study has come at a site."""

    state: str
    approval: str
    questions: int
    answers: int
    spent: float
    left: float
    last_time: float | None
    trouble: str | None


def state_of(policy: Policy, name: str) -> StudyState:
    """Look at a study's journal and the ledger file; nothing is changed."""
    study = policy.study(name)
    approval = "by the policy"
    try:
        check_approved(policy, study)
        if study.approve == "ask":
            found = approval_of(policy, name)
            approval = f"by {'nobody' if found is None else found.by}"
    except Refused:
        approval = "missing" if not _withdrawn_path(policy, name).exists() else "withdrawn"
    path = journal_path(policy, name)
    if not path.exists():
        books = LedgerStore(policy.ledger).study(name)
        trouble = None
        if books is not None:
            trouble = (
                f"the ledger has {books.answers} answers of it, and its journal is missing: "
                "put it back"
            )
        return StudyState("not begun", approval, 0, 0, 0.0, study.epsilon, None, trouble)
    journal = Journal.look(path)
    try:
        return _state_of(policy, study, journal, approval)
    finally:
        journal.close()


def _state_of(policy: Policy, study: StudyPolicy, journal: Journal, approval: str) -> StudyState:
    answers = list(journal.of_kind("answer"))
    asked = list(journal.of_kind("answer", "free", "keyed", "refused"))
    paid = cost_of(answers[-1]).epsilon if answers else Fraction(0)
    books = LedgerStore(policy.ledger).study(study.name)
    counted = 0 if books is None else books.answers
    if not journal.records:  # or a process was killed while it made it
        trouble = None if books is None else _damaged(journal.path)
        return StudyState("not begun", approval, 0, 0, 0.0, study.epsilon, None, trouble)
    if any(journal.of_kind("closed")):
        state = "closed"
    elif datetime.now(UTC) > study.until:
        state = "over: close it"
    else:
        state = "served" if journal.is_served() else "not served"
    trouble = None
    if counted not in (len(answers), len(answers) - 1):
        trouble = (
            f"its journal has {len(answers)} charged answers, and the ledger {counted}: one of "
            "the two was restored from a backup, or damaged; put the newest one in its place"
        )
    elif state != "closed":
        try:
            check_begun(journal, opening_of(policy, study, Schema.from_toml(policy.schema)))
        except PrivetError as error:
            trouble = str(error)
    last = asked[-1].facts["time"] if asked else None
    spent, left = as_float(paid), float(max(study.budget.limit - paid, 0))
    return StudyState(state, approval, len(asked), len(answers), spent, left, last, trouble)


def log_line(study: str, record: Record) -> str:
    """Return a question as the site's log has it: who, what, how much, what is left."""
    facts = record.facts
    when = datetime.fromtimestamp(facts["time"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    head = f"{when}  study {quoted(study)}"
    if record.kind == "opening":
        return f"{head}  begun, coordinator {quoted(facts['coordinator'])}"
    if record.kind == "closed":
        return f"{head}  closed by {quoted(facts['by'])}"
    asked = f"{head}  question {facts['number']}  {quoted(facts['question'])}"
    if record.kind == "answer":
        return (
            f"{asked}  {facts['cells']} cells  epsilon {facts['cost']:.6g}, spent "
            f"{float(Fraction(facts['epsilon'])):.6g}, left {facts['left']:.6g}"
        )
    if record.kind == "question":
        return f"{asked}  begun and not answered: the process ended before"
    if record.kind == "refused":
        return f"{asked}  refused: {quoted(facts['why'], 300)}"
    return f"{asked}  free"


# Approval by a person at the site


@dataclass(frozen=True)
class Approval:
    """That a person has approved a study, by what its policy says."""

    policy: str
    by: str
    time: float


def approval_path(policy: Policy, study: str) -> Path:
    """Return where the approval of a study is, if there is one."""
    return policy.state / f"{study}.approval"


def _withdrawn_path(policy: Policy, study: str) -> Path:
    return policy.state / f"{study}.withdrawn"


def approve(policy: Policy, study: str) -> None:
    """Approve a study as its policy is now."""
    digest = policy.study(study).digest
    _make_state(policy)
    with OutputFile(approval_path(policy, study)) as output:
        output.write(json.dumps({"policy": digest, "by": _user(), "time": time.time()}))
    try:
        _withdrawn_path(policy, study).unlink(missing_ok=True)
    except OSError as error:
        raise _no_state(policy, error) from None


def withdraw(policy: Policy, study: str) -> None:
    """Take an approval back: from the next question on nothing is answered."""
    policy.study(study)
    _make_state(policy)
    try:
        _withdrawn_path(policy, study).touch(mode=0o600)
        approval_path(policy, study).unlink(missing_ok=True)
    except OSError as error:
        raise _no_state(policy, error) from None


def _make_state(policy: Policy) -> None:
    try:
        policy.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _no_state(policy, error) from None


def _no_state(policy: Policy, error: OSError) -> PolicyError:
    return PolicyError(
        f"{policy.path}: nothing can be written in the state directory {policy.state}: "
        f"{error.strerror}"
    )


def approval_of(policy: Policy, study: str) -> Approval | None:
    """Return the approval of a study, if there is one that can be read."""
    try:
        plain = json.loads(approval_path(policy, study).read_text("utf-8"))
        return Approval(str(plain["policy"]), str(plain["by"]), float(plain["time"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_approved(policy: Policy, study: StudyPolicy) -> None:
    """Raise if a person has to approve the study first, or has withdrawn it."""
    if _withdrawn_path(policy, study.name).exists():
        raise Refused(f"its owner has withdrawn the approval of the study {quoted(study.name)}")
    if study.approve == "policy":
        return
    found = approval_of(policy, study.name)
    if found is None or found.policy != study.digest:
        changed = "" if found is None else ", since its policy has changed"
        raise Refused(
            f"its owner has not approved the study {quoted(study.name)} yet{changed}: a person "
            f"there runs `privet party approve {study.name}`"
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
