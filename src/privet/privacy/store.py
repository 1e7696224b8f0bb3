"""A ledger file: one total budget for one table, from which many fits draw.

The data owner opens the file with a total (:meth:`LedgerStore.create`); every fit then *reserves*
all it may spend in one transaction before it looks at the data, and *settles* what it really spent
when it is done. A reservation that was never settled (the process was killed, the fit failed)
stays spent in full. So at any moment, whatever is killed:

    what all answers that ever left cost  <=  what the file says is spent  <=  the total

SQLite does the locking and the durability: ``BEGIN IMMEDIATE`` makes check-and-write atomic between
processes, ``synchronous=EXTRA`` makes a commit survive a crash of the machine. The file holds
public things only (names, amounts, times); in particular no fingerprint of the data, which would
let anyone test a guess of the table. Whose table it is, is told by its name and its columns.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from pathlib import Path

from privet.errors import BudgetError, BudgetExceeded, LedgerFileError
from privet.privacy.budget import Amount, Budget, Cost
from privet.privacy.ledger import Entry, readable

_APPLICATION_ID = 0x50525654  # "PRVT"
_VERSION = 1
_WAIT_SECONDS = 120.0

_LAYOUT = """
CREATE TABLE opening (
    version INTEGER NOT NULL, table_name TEXT, columns TEXT NOT NULL,
    epsilon TEXT, delta REAL, rho TEXT, opened REAL NOT NULL
);
CREATE TABLE draws (
    id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, asked TEXT NOT NULL,
    reserved TEXT NOT NULL, reserved_at REAL NOT NULL,
    spent TEXT, settled_at REAL, entries TEXT
);
"""


@dataclass(frozen=True)
class Draw:
    """One line of a ledger file: what a fit reserved, and what it spent once it was settled."""

    id: int
    purpose: str
    asked: str
    reserved: Fraction
    reserved_at: float
    spent: Fraction | None
    settled_at: float | None
    entries: tuple[dict[str, object], ...]

    @property
    def counted(self) -> Fraction:
        """What counts against the total: what was spent, or all that was reserved."""
        return self.reserved if self.spent is None else self.spent


@dataclass(frozen=True)
class Reservation:
    """The right to spend a budget; durable before it exists."""

    store: LedgerStore
    id: int

    def settle(self, spent: Cost, entries: Sequence[Entry]) -> None:
        """Write down what was really spent; the rest goes back to the table's owner."""
        self.store._settle(self.id, spent, entries)


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

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Budget,
        *,
        columns: Sequence[str],
        table: str | None = None,
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
        """
        if budget.limit == math.inf:
            raise BudgetError("the total budget of a table must be finite")
        store = cls(Path(path))
        try:
            os.close(os.open(store.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerFileError(
                f"{store.path} exists already; a table's budget is opened only once"
            ) from None
        except OSError as error:
            raise LedgerFileError(f"cannot create the ledger file {store.path}") from error
        with store._connection() as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _LAYOUT.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO opening VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    _VERSION,
                    table,
                    json.dumps(sorted(set(columns))),
                    None if budget.epsilon is None else str(budget.epsilon),
                    budget.delta,
                    None if budget.rho is None else str(budget.rho),
                    time.time(),
                ),
            )
            connection.execute("COMMIT")
        return store

    @property
    def budget(self) -> Budget:
        """The total budget of the table."""
        with self._reading() as connection:
            return _budget(connection)

    @property
    def table(self) -> str | None:
        """The table's name, if it has one."""
        with self._reading() as connection:
            name: str | None = connection.execute("SELECT table_name FROM opening").fetchone()[0]
            return name

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns."""
        with self._reading() as connection:
            return _columns(connection)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """All lines of the file, in order."""
        with self._reading() as connection:
            return _draws(connection)

    @property
    def spent(self) -> Fraction:
        """What counts as spent so far, in the accountant's amounts."""
        return sum((draw.counted for draw in self.draws), Fraction(0))

    @property
    def left(self) -> Amount:
        """What is left for further fits, in the accountant's amounts."""
        return self.budget.limit - self.spent

    def reserve(
        self,
        budget: Budget,
        purpose: str,
        *,
        columns: Sequence[str],
        table: str | None = None,
    ) -> Reservation:
        """Set aside a whole budget for one fit, durably, or refuse and change nothing.

        Raises
        ------
        BudgetExceeded
            If less is left than is asked for.
        LedgerFileError
            If the file belongs to another table.
        """
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._check_table(connection, columns, table)
            total = _budget(connection)
            asked = total.amount(_worst_cost(budget))
            left = total.limit - sum((draw.counted for draw in _draws(connection)), Fraction(0))
            if asked > left:
                connection.execute("ROLLBACK")
                raise BudgetExceeded(
                    _refusal(budget, asked, total, left, self.path)
                    + ". Nothing was computed and nothing was spent",
                    left=readable(left, total),
                )
            cursor = connection.execute(
                "INSERT INTO draws (purpose, asked, reserved, reserved_at) VALUES (?, ?, ?, ?)",
                (purpose, str(budget), str(asked), time.time()),
            )
            connection.execute("COMMIT")
            assert cursor.lastrowid is not None
            return Reservation(self, cursor.lastrowid)

    def _settle(self, draw: int, spent: Cost, entries: Sequence[Entry]) -> None:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            amount = _budget(connection).amount(spent)
            if not amount >= 0:
                raise BudgetError("a fit cannot settle for less than nothing")
            row = connection.execute(
                "SELECT reserved FROM draws WHERE id = ? AND spent IS NULL", (draw,)
            ).fetchone()
            if row is None:
                connection.execute("ROLLBACK")
                raise LedgerFileError(f"draw {draw} of {self.path} is settled already")
            if not amount <= _amount(row[0]):
                connection.execute("ROLLBACK")
                raise BudgetError("a fit cannot settle for more than it reserved")
            connection.execute(
                "UPDATE draws SET spent = ?, settled_at = ?, entries = ? WHERE id = ?",
                (
                    str(Fraction(amount)),
                    time.time(),
                    json.dumps([entry.to_dict() for entry in entries]),
                    draw,
                ),
            )
            connection.execute("COMMIT")

    def _check_table(
        self, connection: sqlite3.Connection, columns: Sequence[str], table: str | None
    ) -> None:
        named: str | None = connection.execute("SELECT table_name FROM opening").fetchone()[0]
        if named is not None and table is not None and named != table:
            raise LedgerFileError(
                f"{self.path} is the ledger of table {named!r}, not of {table!r}; use that table's "
                "own ledger file"
            )
        strange = sorted(set(columns) - set(_columns(connection)))
        if strange:
            raise LedgerFileError(
                f"{self.path} is the ledger of another table: it has no column {strange[0]!r}; use "
                "this table's own ledger file"
            )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open an existing ledger file and check that it is one."""
        if not self.path.is_file():
            raise LedgerFileError(
                f"there is no ledger file {self.path}; its owner opens one with "
                "`privet ledger FILE --create --epsilon TOTAL --schema SCHEMA`"
            )
        with self._connection() as connection:
            known = connection.execute("PRAGMA application_id").fetchone()[0]
            if known != _APPLICATION_ID:
                raise LedgerFileError(f"{self.path} is not a ledger file")
            row = connection.execute("SELECT version FROM opening").fetchone()
            if row is None or row[0] != _VERSION:
                raise LedgerFileError(
                    f"{self.path} was written by another version of Privet, or never finished"
                )
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            # By URI, since `mode=rw` never makes a file and ":memory:" is a file like any other.
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=_WAIT_SECONDS,
                isolation_level=None,
            )
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        except sqlite3.Error as error:
            raise LedgerFileError(
                f"cannot use {self.path} as a ledger file: it is damaged, locked for too long, or "
                "no ledger file at all"
            ) from error
        finally:
            if connection is not None:
                connection.close()


def _budget(connection: sqlite3.Connection) -> Budget:
    epsilon, delta, rho = connection.execute("SELECT epsilon, delta, rho FROM opening").fetchone()
    return Budget(
        epsilon=None if epsilon is None else _amount(epsilon),
        delta=delta,
        rho=None if rho is None else _amount(rho),
    )


def _amount(text: object) -> Fraction:
    try:
        return Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise LedgerFileError("the ledger file is damaged: an amount is not a number") from None


def _columns(connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(json.loads(connection.execute("SELECT columns FROM opening").fetchone()[0]))


def _draws(connection: sqlite3.Connection) -> tuple[Draw, ...]:
    rows = connection.execute(
        "SELECT id, purpose, asked, reserved, reserved_at, spent, settled_at, entries FROM draws "
        "ORDER BY id"
    ).fetchall()
    return tuple(
        Draw(
            row[0],
            row[1],
            row[2],
            _amount(row[3]),
            row[4],
            None if row[5] is None else _amount(row[5]),
            row[6],
            tuple(json.loads(row[7])) if row[7] else (),
        )
        for row in rows
    )


def _worst_cost(budget: Budget) -> Cost:
    """Return the most that a fit with this budget can cost, in both accountants."""
    if budget.accountant == "pure":
        return Cost.pure(budget.limit)
    return Cost.zcdp(budget.limit)


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
    have = f"but {readable(left, total)} is left in {path} (of {total})"
    if total.accountant == "pure" or budget.rho is not None:
        return f"this fit asks for {budget}, {have}"
    text = f"this fit asks for {budget}, which is {readable(asked, total)} there, {have}"
    most = _two_digits_down(math.sqrt(2 * left))  # an epsilon costs half of its square
    if budget.accountant == "zCDP" or not most:
        return text
    return f"{text}; ask for at most epsilon {most:g}, or with delta if the learner takes it"


def _two_digits_down(value: float) -> float:
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal(value))
