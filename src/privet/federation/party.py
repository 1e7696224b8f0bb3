"""Parties: those who hold rows.

A :class:`Party` has its rows behind its own wall, its own books, its own noise and its own keys. It
answers a short list of questions, each charged to its own ledger before it is computed, whatever
the asker says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any, Self
from weakref import finalize

import numpy as np

from privet.errors import FederationError, PrivetError
from privet.federation.mpc import SHARES, MaskKeys, SecretChoice, fingerprint
from privet.federation.wire import (
    CLASSES,
    DTYPES,
    ENVELOPES,
    PLAIN,
    WireError,
    rebuild,
)
from privet.privacy import Budget, Ledger, LedgerStore, Reservation
from privet.schema import Schema
from privet.tables import NO_NOISE, Binary, PrivateCells, PrivateTable, View

#: Questions that cost nothing: they say which cells are meant, or what is public.
FREE = frozenset(
    {"root", "parts", "take", "split", "forget", "public_key", "join", "seal", "unseal", "describe",
     "left", "step"}
)  # fmt: skip
#: Questions that are charged.
CHARGED = frozenset({"noisy_counts", "noisy_class_counts", "choose_best", "choose_splits", *SHARES})

#: Questions that come with arrays: which cells, which features, randomness or opened words.
_WITH_ARRAYS = frozenset({"take", "choose_splits", "share_splits", "step"})

#: Plain values, which need no check of their own.
_NUMBERS = frozenset({int, float})


class Refused(FederationError):
    """A party does not answer, and says why."""


class Lost(FederationError):
    """A party does not answer at all, or not what was asked."""


class Party:
    """One owner of rows, behind a wall of its own.

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
        self._keys: MaskKeys | None = None
        #: Whether the roster came from the owner, and how many of a roster may not be honest.
        self._pinned, self._doubted = False, 0
        self._closed = False
        #: Cells, and a fingerprint of how they were made: the same at all parties.
        self._cells: dict[int, tuple[PrivateCells, bytes]] = {}
        self._choices: dict[int, SecretChoice] = {}
        self._next = 1
        #: One question at a time: two at once could both find a round unanswered.
        self._one_at_a_time = RLock()

    @property
    def keys(self) -> MaskKeys:
        """The party's keys for secret sums and choices, made on first use."""
        if self._keys is None:
            self._keys = MaskKeys(self.name)
        return self._keys

    def join(self, roster: Mapping[str, bytes]) -> None:
        """Read the names and public keys of all parties: what secure sums rest on.

        An owner who does not trust the coordinator to pass keys on gets them from the other owners
        (each party's ``keys.public_key``) and calls this first: any other roster is refused then.
        """
        self._join(roster)
        self._pinned = True

    def _join(self, roster: Mapping[str, bytes]) -> None:
        self.keys.join(roster)
        if self.trusted is not None:
            self._doubted = max(self._doubted, len(roster) - self.trusted)

    def _public_key(self) -> bytes:
        """Return the key for a roster: a new one, if the roster is not the owner's own.

        A new federation has new keys, so that nothing of the one before can be asked any more.
        """
        if self.keys.peers and not self._pinned:
            self._keys = None
            self._choices.clear()
        return self.keys.public_key

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

        For cells the answer is a number, by which they can be asked about later. An error that is
        not foreseen becomes :class:`Lost`, without its text, which could be about the rows.
        """
        try:
            with self._one_at_a_time:
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
            # Its owner may allow an infinite budget; a fit's own budget decides the noise.
            leaks = [leak for leak in self.table.leaks if leak != NO_NOISE]
            return self.table.schema.to_dict(), leaks, sorted(self.allowed)
        if question == "left":
            return self.table.ledger.left, self._keys and self._keys.public_key, self._doubted
        if question == "public_key":
            return self._public_key()
        if question == "join":
            return self._join(*given)
        if question in ("seal", "unseal"):
            return getattr(self.keys, question)(*given)
        if question == "forget":
            self._cells.pop(target, None)
            self._choices.pop(target, None)
            return None
        if question == "step":
            if target not in self._choices:
                raise Refused(f"party {self.name!r} takes part in no such choice")
            try:
                return self._choices[target].step(*given)
            except FederationError:
                del self._choices[target]
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
        if question in SHARES:
            *asked, honest, members, nonce = self._check_round(given)
            # A round's name is made of all that was asked. A party that was asked something else,
            # for less noise, or about other cells, has other masks, and nobody can read the sum.
            name = fingerprint(how, question, asked, honest, sorted(members), nonce)
            found = SHARES[question](cells, *asked, honest, self.keys, members, name)
            return self._join_choice(found) if isinstance(found, SecretChoice) else found
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
        honest, members, nonce = given[-3:] if len(given) >= 3 else (None, None, None)
        roster = {self.name, *self.keys.peers}
        if not (
            type(honest) is int
            and isinstance(members, list | tuple)
            and len(set(members)) == len(members)
            and self.name in members
            and set(members) <= roster
            and isinstance(nonce, bytes)
            and len(nonce) == 16
        ):
            raise Refused(f"party {self.name!r} takes part in no such round")
        check_honest(self.name, honest, len(members), self._doubted)
        return given

    def _keep(self, cells: PrivateCells, how: bytes) -> int:
        number = self._number()
        self._cells[number] = (cells, how)
        return number

    def _join_choice(self, choice: SecretChoice) -> int:
        number = self._number()
        self._choices[number] = choice
        return number

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number


def check_honest(name: str, honest: int, members: int, doubted: int) -> None:
    """Raise if noise would rest on more honest parties than a party's owner counts on."""
    # As many of the members may not be honest as of the whole roster.
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

    Exact types only: a criterion of the asker's own class could claim any sensitivity, a feature
    any number of codes. Arrays only where they belong: elsewhere one could pass for a tuple, and be
    read as more numbers than it has rows.
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
