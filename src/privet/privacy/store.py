"""A ledger file: one total budget for one table, from which many fits draw.

The data owner opens the file with a total (:meth:`LedgerStore.create`); every fit then *reserves*
all it may spend in one transaction before it looks at the data, and *settles* what it really spent
when it is done. A reservation that was never settled (the process was killed, the fit failed)
stays spent in full. So at any moment, whatever is killed:

    what all answers that ever left cost  <=  what the file says is spent  <=  the total

SQLite does the locking and the durability: ``BEGIN IMMEDIATE`` makes check-and-write atomic between
processes, ``synchronous=EXTRA`` makes a commit survive a crash of the machine. The threads of one
process take turns: POSIX drops all locks of a process on a file as soon as any thread closes it,
as ours does after a look at its first bytes. The file holds
public things only (names, amounts, times); in particular no fingerprint of the data, which would
let anyone test a guess of the table. A table is recognised by its name and its columns.

A file may be damaged, or made by somebody who means harm: limits first, then every field is checked
(docs/formats.md), and whatever is wrong is a :class:`~privet.errors.LedgerFileError`. That goes for
a journal beside it, too, by which SQLite undoes what a killed process left half done. Entries,
which no amount depends on, are checked when they are read. Files of version 1 are read as they
are; the first transaction that writes brings them to version 2. Books that are opened with kinds of
columns, or with a delta for thresholds, have version 3, and others stay at version 2. The first
reservation for a *study*, which outlives the process that made it, adds a table, and 2 to the
version.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from privet import fragments
from privet.errors import BudgetError, BudgetExceeded, LedgerFileError
from privet.privacy.amounts import read_amount, write_amount
from privet.privacy.budget import Amount, Budget, Cost, as_float, at_least, float_below
from privet.privacy.entries import (
    Entry,
    MechanismFacts,
    MechanismKind,
    Place,
    Question,
    QuestionKind,
)
from privet.privacy.ledger import readable, readable_left
from privet.privacy.odds import warn_of
from privet.privacy.versions import read_entry
from privet.visible import quoted

#: Older fits are not shown in a notebook.
_MOST_SHOWN = 50

_APPLICATION_ID = 0x50525654  # "PRVT"
#: The newest version, and that of books without kinds of columns, deltas of thresholds and studies.
_VERSION, _PLAIN = 5, 2
#: Books with kinds of columns and deltas of thresholds; what studies add to a version.
_WITH_DELTAS, _STUDIES = 3, 2
_WAIT_SECONDS = 120.0

_LAYOUT = {
    "opening": """CREATE TABLE opening (
    version INTEGER NOT NULL, table_name TEXT, columns TEXT NOT NULL,
    epsilon TEXT, delta REAL, rho TEXT, opened REAL NOT NULL
)""",
    "draws": """CREATE TABLE draws (
    id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, asked TEXT NOT NULL,
    reserved TEXT NOT NULL, reserved_at REAL NOT NULL,
    spent TEXT, settled_at REAL, entries TEXT
)""",
}
#: The same for books of version 3: what kinds the columns have, and the book of deltas.
_LAYOUT_WITH_DELTAS = {
    "opening": """CREATE TABLE opening (
    version INTEGER NOT NULL, table_name TEXT, columns TEXT NOT NULL,
    epsilon TEXT, delta REAL, rho TEXT, opened REAL NOT NULL,
    kinds TEXT, threshold_delta TEXT NOT NULL
)""",
    "draws": """CREATE TABLE draws (
    id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, asked TEXT NOT NULL,
    reserved TEXT NOT NULL, reserved_at REAL NOT NULL,
    spent TEXT, settled_at REAL, entries TEXT,
    reserved_delta TEXT NOT NULL, spent_delta TEXT
)""",
}
#: And where studies have reserved something: which draw is whose, and how far each has come.
_STUDIES_TABLE = {
    "studies": """CREATE TABLE studies (
    draw INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT NULL,
    answers INTEGER NOT NULL, spent TEXT NOT NULL
)""",
}

#: No ledger file, no value in it and no statement that made it is larger, in bytes.
_MAX_BYTES, _MAX_VALUE, _MAX_STATEMENT = 1 << 28, 1 << 24, 1 << 16
_MAX_DRAWS, _MAX_COLUMNS, _MAX_TEXT = 100_000, 1_000_000, 100_000
#: Longer texts are cut off, or refused, when they are written.
_WRITTEN_TEXT = 1_000
#: Times lie between the years 1970 and 9999.
_LAST_SECOND = 253_402_300_799.0
#: SQLite's journal stands beside the file, by this name; file systems limit a name's bytes.
_JOURNAL, _MAX_NAME = "-journal", 255
#: All names by which SQLite finds a part of a database beside it.
_COMPANIONS = (_JOURNAL, "-wal", "-shm")
#: How a journal begins. One that ends so names another file, which SQLite would delete.
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
#: Amounts, and sums of them, whose denominators have more bits are rounded up to this many.
_AMOUNT_BITS, _SUM_BITS = 1 << 9, 1 << 11


#: For each file, the turns of this process's threads; a process that is forked starts anew.
_TURNS: dict[str, threading.Lock] = {}
if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_TURNS.clear)


@dataclass(frozen=True)
class Withdrawal:
    """One line of a ledger file: what a fit reserved, and what it spent once it was settled."""

    id: int
    purpose: str
    asked: str
    reserved: Fraction
    reserved_at: float
    spent: Fraction | None
    settled_at: float | None
    entries: tuple[Entry, ...]
    reserved_delta: Fraction = Fraction(0)
    spent_delta: Fraction | None = None

    @property
    def counted(self) -> Fraction:
        """What counts against the total: what was spent, or all that was reserved."""
        return self.reserved if self.spent is None else self.spent

    @property
    def counted_delta(self) -> Fraction:
        """The same of the deltas of thresholds."""
        return self.reserved_delta if self.spent_delta is None else self.spent_delta


@dataclass(frozen=True)
class StudyBooks:
    """How far a study has come, as a ledger file has it.

    Attributes
    ----------
    name : str
    draw : int
        The draw by which its whole budget was reserved.
    token : str
        What its journal begins with: no other journal goes on with it.
    answers : int
        How many charged answers the file has counted.
    spent : Fraction
        What they cost so far; until the draw is settled, all that was reserved counts.
    """

    name: str
    draw: int
    token: str
    answers: int
    spent: Fraction


@dataclass(frozen=True)
class Books:
    """All that a ledger file says, as it was at one moment."""

    budget: Budget
    table: str | None
    columns: tuple[str, ...]
    withdrawals: tuple[Withdrawal, ...]
    spent: Fraction
    spent_delta: Fraction
    kinds: Mapping[str, str] | None
    studies: tuple[StudyBooks, ...] = ()

    @property
    def left(self) -> Amount:
        """What is left for further fits, in the accountant's amounts."""
        return self.budget.limit - self.spent

    @property
    def left_delta(self) -> Amount:
        """What is left for thresholds."""
        return self.budget.threshold_delta - self.spent_delta


@dataclass(frozen=True)
class Reservation:
    """The right to spend a budget. The file has it on disk before this object exists."""

    store: LedgerStore
    id: int

    def settle(self, spent: Cost, entries: Sequence[Entry]) -> None:
        """Write down what was really spent; the rest goes back to the table's owner."""
        self.store._settle(self.id, spent, entries)


@dataclass(frozen=True)
class StudyReservation(Reservation):
    """The right of a study to spend a budget, in whatever process goes on with its journal."""

    name: str

    def count(self, answers: int, spent: Cost) -> None:
        """Write down that the study has one more charged answer, before it is sent.

        Parameters
        ----------
        answers : int
            How many there are now.
        spent : Cost
            What all of them cost.

        Raises
        ------
        LedgerFileError
            If the file does not have one less: another process goes on with the study, or the file
            was restored from a backup.
        """
        self.store._count(self, answers, spent)

    def close(self) -> None:
        """Delete what counting has left beside the file. What was reserved stays the study's."""
        self.store._tidy()


@dataclass(frozen=True)
class LedgerStore:
    """A ledger file on disk. The object itself holds only the path: copy and pickle it freely.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "patients.ledger"
    >>> store = LedgerStore.create(path, Budget(2.0), columns=["age", "sex", "readmitted"])
    >>> reservation = store.reserve(Budget(0.5), "a fit", columns=["age", "readmitted"])
    >>> float(store.left)
    1.5
    """

    path: Path

    def __post_init__(self) -> None:
        # Absolute, so that neither os.chdir nor pickling leads to another file.
        object.__setattr__(self, "path", Path(self.path).absolute())

    def _repr_html_(self) -> str:
        books = self.books
        unit = "epsilon" if books.budget.accountant == "pure" else "rho"
        rows = [
            (
                draw.id,
                time.strftime("%Y-%m-%d %H:%M", time.gmtime(draw.reserved_at)),
                draw.purpose,
                draw.asked,
                f"{float(draw.counted):.6g}",
                "settled" if draw.spent is not None else "reserved",
            )
            for draw in books.withdrawals[-_MOST_SHOWN:]
        ]
        left = f"{as_float(books.left):.6g} of {as_float(books.budget.limit):.6g} left"
        hidden = len(books.withdrawals) - len(rows)
        more = f"; the first {hidden} fits are not shown" if hidden else ""
        return fragments.whole(
            fragments.paragraph(f"Ledger of {books.table or 'a table'}: {unit} {left}", bold=True),
            fragments.table(
                ["fit", "when (UTC)", "purpose", "asked", f"counted {unit}", "state"],
                rows,
                f"what fits took{more}",
            ),
        )

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Budget,
        *,
        columns: Sequence[str],
        table: str | None = None,
        unit: str | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> LedgerStore:
        """Open the books of a table, once.

        Parameters
        ----------
        path : path
            Where the file shall be. It must not exist: budgets do not start anew.
        budget : Budget
            All that may ever be spent on the table.
        columns : sequence of str
            The table's columns. A fit that names any other column is about another table.
        table : str, optional
            The table's name; fits that name another table are refused.
        unit : str, optional
            The column that says whose record a record is, if persons pay. A fit that counts
            records, or persons by another column, is refused: what is paid must add up.
        kinds : mapping of str to str, optional
            What kind each column has, the unit among them, if that is all that is known: a schema
            that is discovered with other kinds is refused (:class:`~privet.kinds.Kinds`).
        """
        if kinds is None and unit is not None:
            kinds = {unit: "unit"}
        if budget.limit == math.inf:
            raise BudgetError("the total budget of a table must be finite")
        warn_of(budget)
        store = cls(Path(path))
        row = _opening_row(budget, columns, table, kinds)
        if len(os.fsencode(store.path.name + _JOURNAL)) > _MAX_NAME:
            raise LedgerFileError(
                f"cannot create the ledger file: its name is too long, at most "
                f"{_MAX_NAME - len(_JOURNAL)} bytes"
            )
        if os.path.lexists(store.path):
            raise LedgerFileError(
                f"{store.path} exists already; a table's budget is opened only once"
            )
        for end in _COMPANIONS:
            if os.path.lexists(f"{store.path}{end}"):  # SQLite would take it for a part of ours
                raise LedgerFileError(
                    f"cannot create the ledger file: {store.path}{end} is left of another one; if "
                    "that one is no longer needed, delete it, or choose another name"
                )
        # All or nothing: made under another name, and only when it is whole and on the disk does
        # it get its own. A link, unlike renaming, never takes the place of a file.
        unfinished = cls(store.path.with_name(f".privet-{secrets.token_hex(8)}"))
        try:
            os.close(os.open(unfinished.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with unfinished._connection() as connection:
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _LAYOUTS[row[0]].values():
                    connection.execute(statement)
                places = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO opening VALUES ({places})", row)  # noqa: S608
                connection.execute("COMMIT")
            os.link(unfinished.path, store.path, follow_symlinks=False)
            _sync(store.path.parent)
        except FileExistsError:
            raise LedgerFileError(
                f"{store.path} exists already; a table's budget is opened only once"
            ) from None
        except (OSError, ValueError, LedgerFileError) as error:
            raise LedgerFileError(
                f"cannot create the ledger file {store.path}: its folder must exist, be writable, "
                "have room, and be on a file system with hard links. Nothing was made"
            ) from error
        finally:
            for name in (unfinished.path.name, unfinished.path.name + _JOURNAL):
                with suppress(OSError):
                    store.path.with_name(name).unlink()
        return store

    @property
    def books(self) -> Books:
        """All that the file says, read at one moment, so that its parts agree."""
        with self._reading() as (connection, opening):
            draws = tuple(_draws(connection, opening))
            return Books(
                opening.budget,
                opening.table,
                opening.columns,
                draws,
                _spent(draws, opening),
                _spent_delta(draws, opening),
                opening.kinds,
                _studies(connection, opening),
            )

    @property
    def budget(self) -> Budget:
        """The total budget of the table."""
        with self._reading() as (_, opening):
            return opening.budget

    @property
    def table(self) -> str | None:
        """The table's name, if it has one."""
        with self._reading() as (_, opening):
            return opening.table

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns."""
        with self._reading() as (_, opening):
            return opening.columns

    @property
    def withdrawals(self) -> tuple[Withdrawal, ...]:
        """All lines of the file, in order."""
        with self._reading() as (connection, opening):
            return tuple(_draws(connection, opening))

    @property
    def spent(self) -> Fraction:
        """What counts as spent so far, in the accountant's amounts."""
        with self._reading() as (connection, opening):
            return _spent(_draws(connection, opening, with_entries=False), opening)

    @property
    def left(self) -> Amount:
        """What is left for further fits, in the accountant's amounts."""
        with self._reading() as (connection, opening):
            spent = _spent(_draws(connection, opening, with_entries=False), opening)
            return opening.budget.limit - spent

    def reserve(
        self,
        budget: Budget,
        purpose: str,
        *,
        columns: Sequence[str],
        table: str | None = None,
        unit: str | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> Reservation:
        """Set aside a whole budget for one fit, durably, or refuse and change nothing.

        Raises
        ------
        BudgetExceeded
            If less is left than is asked for.
        LedgerFileError
            If the file belongs to another table, counts other units, or is full.
        """
        with self._writing() as (connection, opening):
            about = columns, table, unit or _unit_of(kinds), kinds
            granted = self._granted(connection, opening, budget, *about)
            return Reservation(self, _draw(connection, opening, budget, purpose, *granted))

    def reserve_study(
        self,
        name: str,
        token: str,
        budget: Budget,
        *,
        columns: Sequence[str],
        table: str | None = None,
        unit: str | None = None,
    ) -> StudyReservation:
        """Set aside a whole budget for a study, which any later process may go on with.

        Parameters
        ----------
        name : str
            The study's name; a ledger file has one study of a name, once and for all.
        token : str
            What the study's journal begins with.
        budget, columns, table, unit
            As for :meth:`reserve`.
        """
        if not name or name != _writable(name) or not _is_token(token):
            raise LedgerFileError(
                f"a study has a name of up to {_WRITTEN_TEXT} characters, and a token of 32 digits"
            )
        with self._writing() as (connection, opening):
            if any(study.name == name for study in _studies(connection, opening)):
                raise LedgerFileError(
                    f"{self.path} has a study {quoted(name)} already: a study's budget is "
                    "reserved once; take another name"
                )
            granted = self._granted(connection, opening, budget, columns, table, unit, None)
            if not opening.with_studies:
                connection.execute(_STUDIES_TABLE["studies"])
                connection.execute("UPDATE opening SET version = version + ?", (_STUDIES,))
            draw = _draw(connection, opening, budget, f"study {name!r}", *granted)
            connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?)", (draw, name, token, 0, "0")
            )
            return StudyReservation(self, draw, name)

    def study(self, name: str) -> StudyBooks | None:
        """Return how far a study has come; None if the file has none of that name."""
        with self._reading() as (connection, opening):
            found = [study for study in _studies(connection, opening) if study.name == name]
            return found[0] if found else None

    def take_over(self, name: str, token: str) -> StudyReservation:
        """Return the reservation that a study has, for the process that has its journal.

        Raises
        ------
        LedgerFileError
            If there is none, it is of another journal, or it is settled.
        """
        with self._reading() as (connection, opening):
            found = [study for study in _studies(connection, opening) if study.name == name]
            if not found:
                raise LedgerFileError(
                    f"{self.path} has no study {quoted(name)}, and its journal says otherwise: the "
                    "ledger file was restored from a backup, or is another one. Nothing is "
                    "answered; put the current file in its place"
                )
            (study,) = found
            if study.token != token:
                raise LedgerFileError(
                    f"{self.path} has a study {quoted(name)} with another journal: put that one "
                    "into the state directory, or give the study another name. Nothing is answered"
                )
            (settled,) = connection.execute(
                "SELECT spent IS NOT NULL FROM draws WHERE id = ?", (study.draw,)
            ).fetchone()
            if settled:
                raise LedgerFileError(
                    f"the study {quoted(name)} is closed: what it spent is settled in {self.path}; "
                    "take another name for a new one"
                )
            return StudyReservation(self, study.draw, name)

    def check(
        self,
        budget: Budget,
        *,
        columns: Sequence[str],
        table: str | None = None,
        unit: str | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """Raise what :meth:`reserve` would, before rows are read; nothing is set aside.

        Others may draw in the meantime: only a reservation is a promise.
        """
        with self._reading() as (connection, opening):
            about = columns, table, unit or _unit_of(kinds), kinds
            self._granted(connection, opening, budget, *about)

    def _granted(
        self,
        connection: sqlite3.Connection,
        opening: _Opening,
        budget: Budget,
        columns: Sequence[str],
        table: str | None,
        unit: str | None,
        kinds: Mapping[str, str] | None,
    ) -> tuple[Amount, Fraction]:
        """Return what a budget costs here, and its delta for thresholds, or refuse it."""
        self._check_table(opening, columns, table, unit, kinds)
        total = opening.budget
        asked = total.amount(budget.worst)
        draws = list(_draws(connection, opening, with_entries=False))
        if len(draws) >= _MAX_DRAWS:
            raise LedgerFileError(
                f"{self.path} has {_MAX_DRAWS} draws, and no ledger file holds more. Nothing "
                "was computed and nothing was spent; its owner may open a new file with what "
                "is left, and use this one no more"
            )
        left = total.limit - _spent(draws, opening)
        # What is written may be rounded up, and must be left all the same.
        if asked > left or read_amount(write_amount(asked)) > left:
            raise BudgetExceeded(
                _refusal(budget, asked, total, left, self.path)
                + ". Nothing was computed and nothing was spent",
                left=readable_left(left, total),
            )
        delta = Fraction(budget.threshold_delta)
        left_delta = total.threshold_delta - _spent_delta(draws, opening)
        if delta > left_delta or read_amount(write_amount(delta)) > left_delta:
            raise BudgetExceeded(
                f"this asks for {budget}, but delta {float(left_delta):.3g} is left for "
                f"thresholds in {self.path} (of {total}): ask for less delta, list the "
                "categories and classes in the kinds, or open books with --threshold-delta. "
                "Nothing was computed and nothing was spent",
                left=f"delta {float(left_delta):.3g}",
            )
        return asked, delta

    def _count(self, reservation: StudyReservation, answers: int, spent: Cost) -> None:
        # Undone by a power cut, the count is one behind the journal, which is made good.
        # Its journal stays, emptied: to make and delete one takes longer than all the rest.
        with self._writing(synchronous="FULL", journal="PERSIST") as (connection, opening):
            amount = opening.budget.amount(spent)
            row = connection.execute(
                "SELECT reserved FROM draws WHERE id = ? AND spent IS NULL", (reservation.id,)
            ).fetchone()
            if row is None:
                raise LedgerFileError(
                    f"the study {quoted(reservation.name)} is closed in {self.path}: nothing more "
                    "is answered"
                )
            reserved = _amount(row[0])
            if not 0 <= amount <= reserved:
                raise BudgetError("a study cannot spend more than it reserved")
            written = min(read_amount(write_amount(amount)), reserved)
            changed = connection.execute(
                "UPDATE studies SET answers = ?, spent = ? WHERE draw = ? AND answers = ?",
                (answers, str(written), reservation.id, answers - 1),
            ).rowcount
            if changed != 1:
                raise LedgerFileError(
                    f"{self.path} has counted another number of answers of the study "
                    f"{quoted(reservation.name)} than its journal: another process goes on with "
                    "it, or one of the two was restored from a backup. Nothing is answered"
                )

    def _tidy(self) -> None:
        """Delete the journal that counting has left, if no process is in the middle of a draw."""
        with suppress(LedgerFileError), self._turn(), self._connection() as connection:
            connection.execute("PRAGMA journal_mode = PERSIST")
            connection.execute("PRAGMA journal_mode = DELETE")  # the change is what deletes it

    def _settle(self, draw: int, spent: Cost, entries: Sequence[Entry]) -> None:
        with self._writing() as (connection, opening):
            amount = opening.budget.amount(spent)
            if not amount >= 0:
                raise BudgetError("a fit cannot settle for less than nothing")
            held = "reserved_delta" if opening.with_deltas else "'0'"
            row = connection.execute(
                f"SELECT reserved, {held} FROM draws WHERE id = ? AND spent IS NULL",  # noqa: S608
                (draw,),
            ).fetchone()
            if row is None:
                raise LedgerFileError(f"draw {draw} of {self.path} is settled already")
            reserved, reserved_delta = map(_amount, row)
            if not (amount <= reserved and 0 <= spent.delta <= reserved_delta):
                raise BudgetError("a fit cannot settle for more than it reserved")
            written = min(read_amount(write_amount(amount)), reserved)
            connection.execute(
                "UPDATE draws SET spent = ?, settled_at = ?, entries = ? WHERE id = ?",
                (str(written), time.time(), _entries_text(entries, spent), draw),
            )
            if opening.with_deltas:
                delta = min(read_amount(write_amount(spent.delta)), reserved_delta)
                connection.execute(
                    "UPDATE draws SET spent_delta = ? WHERE id = ?", (str(delta), draw)
                )

    def _check_table(
        self,
        opening: _Opening,
        columns: Sequence[str],
        table: str | None,
        unit: str | None,
        kinds: Mapping[str, str] | None,
    ) -> None:
        if opening.table is not None and table is not None and opening.table != table:
            raise LedgerFileError(
                f"{self.path} is the ledger of table {quoted(opening.table)}, not of "
                f"{quoted(table)}; use that table's own ledger file"
            )
        strange = sorted(set(columns) - set(opening.columns))
        if strange:
            raise LedgerFileError(
                f"{self.path} is the ledger of another table: it has no column "
                f"{quoted(strange[0])}; use this table's own ledger file"
            )
        known = opening.kinds or {}
        if unit != _unit_of(known):
            raise LedgerFileError(
                f"{self.path} counts what {_payers(_unit_of(known))} pay, and this is paid by "
                f"{_payers(unit)}: the two do not add up; use another ledger file, or the same unit"
            )
        asked = kinds or {}
        names = [name for name in asked if known.get(name, asked[name]) != asked[name]]
        if names:
            raise LedgerFileError(
                f"{self.path} was opened with other kinds of columns: see {quoted(min(names))}; "
                "use the kinds that it was opened with"
            )

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, _Opening]]:
        """Open an existing ledger file for one look at it; the file stays as it is."""
        with self._turn(), self._connection() as connection:
            connection.execute("BEGIN")
            yield connection, self._check_opening(connection)

    @contextmanager
    def _writing(
        self, *, synchronous: str = "EXTRA", journal: str = "DELETE"
    ) -> Iterator[tuple[sqlite3.Connection, _Opening]]:
        """Open an existing ledger file for one transaction, at the current version.

        Whatever is raised, nothing is changed. An older file is brought to this version by the same
        transaction that first writes something.
        """
        with self._turn(), self._connection(synchronous) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("BEGIN IMMEDIATE")
            opening = self._check_opening(connection)
            try:
                if opening.version < _PLAIN:
                    opening = _upgrade(connection, opening)
                yield connection, opening
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Look at the file from outside, and keep other threads from it until all is done."""
        if not os.path.isfile(self.path):  # noqa: PTH113 - Path.is_file raises for some names
            raise LedgerFileError(
                f"there is no ledger file {self.path}, or none that you may reach; its owner opens "
                "one with `privet ledger FILE --create --epsilon TOTAL --schema SCHEMA`"
            )
        turn = _TURNS.setdefault(os.path.realpath(self.path), threading.Lock())
        if not turn.acquire(timeout=_WAIT_SECONDS):
            raise LedgerFileError(
                f"cannot use {self.path} as a ledger file: another thread has it locked for too "
                "long; try again when that thread is done"
            )
        try:
            self._check_file()
            yield
        finally:
            turn.release()

    def _check_file(self) -> None:
        """Look at the outside of the file before SQLite opens it."""
        try:
            with self.path.open("rb") as file:
                head = file.read(108)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise LedgerFileError(
                f"cannot read the ledger file {self.path}; make it readable and writable for you"
            ) from error
        if size > _MAX_BYTES:
            raise LedgerFileError(
                f"{self.path} is larger than any ledger file: at most {_MAX_BYTES >> 20} MiB"
            )
        # As SQLite's file format has it: without a write-ahead log, ours, and with two or three
        # tables that are listed on the first page.
        if not (
            len(head) == 108
            and head.startswith(b"SQLite format 3\0")
            and head[18:20] == b"\1\1"
            and int.from_bytes(head[68:72]) == _APPLICATION_ID
            and head[100] == 0x0D
            and int.from_bytes(head[103:105]) in {len(layout) for layout in _LAYOUTS.values()}
        ):
            raise LedgerFileError(f"{self.path} is not a ledger file, or it is damaged")
        self._check_companions()

    def _check_companions(self) -> None:
        """Look at the files beside the ledger that SQLite would use by their names.

        A journal is played back, which is right after a killed process. But a journal that somebody
        made can name a file for SQLite to delete, or make the ledger fill the disk. Ours never
        names one, since a ledger is never attached to another database. It may come and go at any
        time, while another process draws.
        """
        real = os.path.realpath(self.path)  # beside that one SQLite looks for them
        for end in _COMPANIONS:
            if end != _JOURNAL and os.path.lexists(real + end):
                raise LedgerFileError(
                    f"there is a file {real + end}, which Privet never makes; do not use a ledger "
                    "file that came with one, and ask its owner for the ledger file alone"
                )
        journal = real + _JOURNAL
        try:
            if not stat.S_ISREG(os.lstat(journal).st_mode):
                _strange_journal(journal)
            # No pipe that was put there in between can stop us, and no link is followed.
            handle = os.open(journal, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                size = os.fstat(handle).st_size
                head = os.pread(handle, 28, 0)
                tail = os.pread(handle, 8, max(size - 8, 0))
            finally:
                os.close(handle)
        except FileNotFoundError:
            return
        except OSError as error:
            raise LedgerFileError(
                f"cannot read the journal {journal} of a draw that was broken off; whoever may "
                "write the ledger file must look at it first"
            ) from error
        pages, page = int.from_bytes(head[16:20]), int.from_bytes(head[24:28])
        if (
            (size >= 16 and tail == _JOURNAL_MAGIC)
            or size > 2 * _MAX_BYTES
            or (head.startswith(_JOURNAL_MAGIC) and pages * (page or 1 << 16) > _MAX_BYTES)
        ):
            _strange_journal(journal)

    def _check_opening(self, connection: sqlite3.Connection) -> _Opening:
        """Check that the file has our tables and nothing else, and read whose books these are."""
        made = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        found = {(kind, name, " ".join(str(sql).split())) for kind, name, sql in made}
        fits = {version for version, layout in _LAYOUTS.items() if found == _as_made(layout)}
        if not fits:
            raise LedgerFileError(f"{self.path} is not a ledger file, or it is damaged")
        versions = connection.execute("SELECT version FROM opening LIMIT 2").fetchall()
        if len(versions) != 1 or type(versions[0][0]) is not int or versions[0][0] < 1:
            raise LedgerFileError(f"{self.path} is damaged, or was never finished")
        (version,) = versions[0]
        if version > _VERSION:
            raise LedgerFileError(
                f"{self.path} was written by a newer Privet: its format has version {version}, and "
                f"this Privet reads versions 1 to {_VERSION}; upgrade Privet"
            )
        if version not in fits:
            raise LedgerFileError(f"{self.path} is not a ledger file, or it is damaged")
        return _opening(connection, version)

    @contextmanager
    def _connection(self, synchronous: str = "EXTRA") -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            # By URI, since `mode=rw` never makes a file and ":memory:" is a file like any other.
            connection = sqlite3.connect(
                f"{Path(os.path.realpath(self.path)).as_uri()}?mode=rw",
                uri=True,
                timeout=_WAIT_SECONDS,
                isolation_level=None,
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_STATEMENT)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            yield connection
        except _DamageError as error:
            raise LedgerFileError(
                f"the ledger file {self.path} is damaged: {error}; {_COPY}"
            ) from None
        except (sqlite3.Error, UnicodeError) as error:  # messages may quote bytes that are no text
            raise LedgerFileError(
                f"cannot use {self.path} as a ledger file: {_cause(error)}"
            ) from error
        finally:
            if connection is not None:
                connection.close()


#: What to do about a damaged file.
_COPY = (
    "put a copy in its place that is whole and up to date; an older copy forgets what was spent "
    "since it was made"
)

#: What SQLite's kinds of errors mean for a ledger file, and what to do.
_CAUSES = {
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED): (
        "another process has it locked for too long; try again when that process is done"
    ),
    (sqlite3.SQLITE_FULL,): "the disk is full; make room and try again",
    (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM): (
        "it cannot be written; make the file and its folder writable for you"
    ),
    (sqlite3.SQLITE_CANTOPEN,): (
        "it, or the journal beside it, cannot be opened; make the file and its folder readable and "
        "writable for you"
    ),
    (sqlite3.SQLITE_IOERR,): (
        "the system failed to read or write it; look for a limit on the size of files, no room, or "
        "a broken disk, and try again"
    ),
}


def _cause(error: Exception) -> str:
    """Say what is behind an error of SQLite, of whose code the last byte tells the kind."""
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    for kinds, cause in _CAUSES.items():
        if kind in kinds:
            return cause
    return f"it is damaged, or no ledger file at all; if it is damaged, {_COPY}"


#: The tables of each version.
_LAYOUTS = {
    1: _LAYOUT,
    _PLAIN: _LAYOUT,
    _WITH_DELTAS: _LAYOUT_WITH_DELTAS,
    _PLAIN + _STUDIES: _LAYOUT | _STUDIES_TABLE,
    _WITH_DELTAS + _STUDIES: _LAYOUT_WITH_DELTAS | _STUDIES_TABLE,
}


def _as_made(layout: dict[str, str]) -> set[tuple[str, str, str]]:
    return {("table", name, " ".join(sql.split())) for name, sql in layout.items()}


def _unit_of(kinds: Mapping[str, str] | None) -> str | None:
    """Return the column that says whose record a record is, if one is among the kinds."""
    return next((name for name, kind in (kinds or {}).items() if kind == "unit"), None)


def _payers(unit: str | None) -> str:
    return "single records" if unit is None else f"persons by {quoted(unit)}"


class _DamageError(Exception):
    """What is wrong in a file; whoever has the file open says which one it is."""


@dataclass(frozen=True)
class _Opening:
    """Whose books these are."""

    version: int
    table: str | None
    columns: tuple[str, ...]
    budget: Budget
    kinds: dict[str, str] | None = None

    @property
    def with_deltas(self) -> bool:
        return self.version in (_WITH_DELTAS, _WITH_DELTAS + _STUDIES)

    @property
    def with_studies(self) -> bool:
        return self.version > _STUDIES + 1


def _opening_row(
    budget: Budget,
    columns: Sequence[str],
    table: str | None,
    kinds: Mapping[str, str] | None,
) -> tuple[Any, ...]:
    """Return what the books are opened with, or say what cannot be written."""
    names = sorted(set(columns))
    text = json.dumps(names)
    listed = None if kinds is None else json.dumps({name: kinds[name] for name in sorted(kinds)})
    if max(len(text), len(listed or "")) > _MAX_VALUE // 2 or len(names) > _MAX_COLUMNS:
        raise LedgerFileError("a ledger file cannot hold the names of this many columns")
    if any(len(name) > _WRITTEN_TEXT for name in (*names, table or "")):
        raise LedgerFileError(
            f"a ledger file cannot hold a name of more than {_WRITTEN_TEXT} characters"
        )
    if table is not None and table != _writable(table):
        raise LedgerFileError("the table's name has characters that cannot be written as text")
    amounts = []
    for amount in (budget.epsilon, budget.rho, budget.threshold_delta):
        written = None if amount is None else write_amount(amount)
        try:
            same = written is None or read_amount(written) == amount
        except ValueError:
            same = False
        if not same:  # too large to be read again, or rounded: nobody needs such a total
            raise BudgetError("the total budget must be a number of at most 300 digits")
        amounts.append(written)
    # What was promised is never exceeded, not even by rounding.
    delta = None if budget.delta is None else float_below(budget.delta)
    row = (table, text, amounts[0], delta, amounts[1], time.time())
    if listed is None and not budget.threshold_delta:
        return (_PLAIN, *row)
    return (_WITH_DELTAS, *row, listed, amounts[2])


def _opening(connection: sqlite3.Connection, version: int) -> _Opening:
    deltas = version in (_WITH_DELTAS, _WITH_DELTAS + _STUDIES)
    more = "kinds, threshold_delta" if deltas else "NULL, '0'"
    table, columns, epsilon, delta, rho, opened, listed, thresholds = connection.execute(
        f"SELECT table_name, columns, epsilon, delta, rho, opened, {more} FROM opening"  # noqa: S608
    ).fetchone()
    names = _list(columns)
    if (
        len(names) > _MAX_COLUMNS
        or not all(isinstance(name, str) and len(name) <= _MAX_TEXT for name in names)
        or len(set(names)) < len(names)
    ):
        _damaged("its columns are no names")
    _time(opened)
    if delta is not None and not (type(delta) is float and 0 < delta < 1):
        _damaged("its delta is none")
    try:
        budget = Budget(
            epsilon=None if epsilon is None else _amount(epsilon),
            delta=None if delta is None else at_least(delta),
            rho=None if rho is None else _amount(rho),
            threshold_delta=_amount(thresholds),
        )
    except BudgetError:
        _damaged("its total budget is none")
    kinds = None if listed is None else _kinds(listed)
    if kinds is not None and not set(kinds) <= set(names):
        _damaged("its kinds are of other columns")
    return _Opening(version, None if table is None else _text(table), tuple(names), budget, kinds)


def _draws(
    connection: sqlite3.Connection, opening: _Opening, *, with_entries: bool = True
) -> Iterator[Withdrawal]:
    """Yield the lines of a file, each of them checked, with their entries or without."""
    deltas = "reserved_delta, spent_delta"
    if not opening.with_deltas:
        deltas = "'0', CASE WHEN spent IS NOT NULL THEN '0' END"
    fields = f"id, purpose, asked, reserved, reserved_at, spent, settled_at, {deltas}"
    rows = connection.execute(
        f"SELECT {fields}, CASE WHEN ? THEN entries END FROM draws ORDER BY id",  # noqa: S608
        (with_entries,),
    )
    last = 0
    for number, (
        id_,
        purpose,
        asked,
        reserved,
        reserved_at,
        spent,
        settled_at,
        reserved_delta,
        spent_delta,
        entries,
    ) in enumerate(rows, start=1):
        # In a damaged file the same page may be found again and again.
        if type(id_) is not int or id_ <= last or number > _MAX_DRAWS:
            _damaged("its draws are not in order, or too many")
        last = id_
        if (
            (spent is None) != (settled_at is None)
            or (spent is None) != (spent_delta is None)
            or (spent is None and entries is not None)
        ):
            _damaged("a draw is half settled")
        draw = Withdrawal(
            id_,
            _text(purpose),
            _text(asked),
            _amount(reserved),
            _time(reserved_at),
            None if spent is None else _amount(spent),
            None if settled_at is None else _time(settled_at),
            () if entries is None else _entries(entries, opening.version),
            _amount(reserved_delta),
            None if spent_delta is None else _amount(spent_delta),
        )
        if draw.counted > draw.reserved or draw.counted_delta > draw.reserved_delta:
            _damaged("a draw has spent more than it reserved")
        yield draw


def _draw(
    connection: sqlite3.Connection,
    opening: _Opening,
    budget: Budget,
    purpose: str,
    asked: Amount,
    delta: Fraction,
) -> int:
    """Write down a reservation that was granted; return its number."""
    row = {
        "purpose": _writable(purpose),
        "asked": str(budget),
        "reserved": write_amount(asked),
        "reserved_at": time.time(),
    }
    if opening.with_deltas:
        row["reserved_delta"] = write_amount(delta)
    cursor = connection.execute(
        f"INSERT INTO draws ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
        tuple(row.values()),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _studies(connection: sqlite3.Connection, opening: _Opening) -> tuple[StudyBooks, ...]:
    """Return the studies of a file, each of them checked."""
    if not opening.with_studies:
        return ()
    rows = connection.execute(
        "SELECT studies.draw, name, token, answers, studies.spent, draws.reserved FROM studies "
        "LEFT JOIN draws ON draws.id = studies.draw ORDER BY studies.draw LIMIT ?",
        (_MAX_DRAWS + 1,),
    ).fetchall()
    found = []
    for draw, name, token, answers, spent, reserved in rows:
        study = StudyBooks(_text(name), draw, token, answers, _amount(spent))
        if not (_is_token(token) and type(answers) is int and answers >= 0):
            _damaged("a study is none")
        if reserved is None or study.spent > _amount(reserved):
            _damaged("a study has spent more than it reserved")
        found.append(study)
    if len({study.name for study in found}) < len(found) or len(found) > _MAX_DRAWS:
        _damaged("two studies have one name, or there are too many")
    return tuple(found)


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 32 and set(value) <= set("0123456789abcdef")


def _spent(draws: Iterable[Withdrawal], opening: _Opening) -> Fraction:
    """Return what all withdrawals count: exactly, or a little more if digits would be absurd."""
    return _sum((draw.counted for draw in draws), Fraction(opening.budget.limit))


def _spent_delta(draws: Iterable[Withdrawal], opening: _Opening) -> Fraction:
    """Return what the deltas of all withdrawals count, in the same way."""
    limit = Fraction(opening.budget.threshold_delta)
    return _sum((draw.counted_delta for draw in draws), limit)


def _sum(amounts: Iterable[Fraction], limit: Fraction) -> Fraction:
    total = slack = Fraction(0)
    for amount in amounts:
        rounded = _rounded_up(amount, _AMOUNT_BITS)
        exact = total + rounded
        total = _rounded_up(exact, _SUM_BITS)
        if rounded != amount or total != exact:
            slack += Fraction(2, 2**_AMOUNT_BITS)
    if total - slack > limit:
        _damaged("more was spent than there is")
    # What rounding alone has added cannot have been spent.
    return min(total, limit)


def _rounded_up(amount: Fraction, bits: int) -> Fraction:
    """Return an amount, rounded up if its denominator has more bits than that."""
    if amount.denominator.bit_length() <= bits + 1:
        return amount
    return Fraction(math.ceil(amount * 2**bits), 2**bits)


def _upgrade(connection: sqlite3.Connection, opening: _Opening) -> _Opening:
    """Write the entries of version 1 as data; amounts stay as they are, to the letter."""
    settled = [draw for draw in _draws(connection, opening) if draw.spent is not None]
    for draw in settled:
        assert draw.spent is not None
        cost = Cost(math.inf, math.inf)  # for entries that are too many, of which nothing is known
        connection.execute(
            "UPDATE draws SET entries = ? WHERE id = ?",
            (_entries_text(draw.entries, cost), draw.id),
        )
    connection.execute("UPDATE opening SET version = ?", (_PLAIN,))
    return _opening(connection, _PLAIN)


def _entries(text: Any, version: int) -> tuple[Entry, ...]:
    try:
        return tuple(read_entry(item, version) for item in _list(text))
    except ValueError:
        _damaged("an entry of a draw is none")


def _entries_text(entries: Sequence[Entry], spent: Cost) -> str:
    text = json.dumps([entry.to_dict() for entry in entries])
    if len(text) <= _MAX_VALUE // 2:
        return text
    # Nothing that we know asks so much. The amount matters, and it is written elsewhere.
    many = Question(QuestionKind.OTHER, text=f"{len(entries)} questions, too many to list")
    how = MechanismFacts(MechanismKind.OTHER, text="several")
    return json.dumps([Entry(many, Place(), 1, how, spent).to_dict()])


def _damaged(how: str) -> NoReturn:
    raise _DamageError(how)


def _strange_journal(path: str) -> NoReturn:
    raise LedgerFileError(
        f"{path} is not a journal that Privet made, and using the ledger file with it could do "
        "harm; never take a ledger file together with a journal from somebody else"
    )


def _list(text: Any) -> list[Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        _damaged("a list is none")
    return found


def _kinds(text: Any) -> dict[str, str]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(word, str) and len(word) <= _MAX_TEXT for pair in found.items() for word in pair
    ):
        _damaged("its kinds of columns are none")
    return found


def _amount(text: Any) -> Fraction:
    try:
        return read_amount(text)
    except ValueError:
        _damaged("an amount is no fraction")


def _time(value: Any) -> float:
    if type(value) is not float or not 0 <= value <= _LAST_SECOND:
        _damaged("a time is none")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        _damaged("a text is none, or too long")
    return value


def _writable(text: str) -> str:
    """Return a text that can be written: not too long, and without lone surrogates."""
    return text[:_WRITTEN_TEXT].encode("utf-8", "replace").decode("utf-8")


def _sync(folder: Path) -> None:
    """Wait until a new name in a folder is on the disk, where the system offers that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refusal(budget: Budget, asked: Amount, total: Budget, left: Amount, path: Path) -> str:
    """Say in the unit of the books why they cannot pay, and what to do."""
    if budget.limit == math.inf:
        return f"a fit without noise cannot be paid for from {path}, nor from any other ledger file"
    if asked == math.inf:
        return (
            f"this fit asks for {budget}, but {path} counts pure epsilon, which cannot pay for "
            "that: ask for epsilon alone, without delta, or draw from a ledger file that was "
            "opened with --delta"
        )
    have = f"but {readable_left(left, total)} is left in {path} (of {total})"
    if total.accountant == "pure" or budget.rho is not None:
        return f"this fit asks for {budget}, {have}"
    text = f"this fit asks for {budget}, which is {readable(asked, total)} there, {have}"
    most = _two_digits_down(math.sqrt(2 * left))  # an epsilon costs half of its square
    if budget.accountant == "zCDP" or not most:
        return text
    return f"{text}; ask for at most epsilon {most:g}, or with delta if the learner takes it"


def _two_digits_down(value: float) -> float:
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal(value))
