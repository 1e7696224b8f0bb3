"""Parties: those who hold rows.

A :class:`Party` has its rows behind its own wall, its own books, its own noise and its own keys. It
answers a short list of questions, each charged to its own ledger before it is computed, whatever
the asker says.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any, Self
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError, PrivetError
from privet.federation.mpc import (
    MOST_DEALS,
    SHARES,
    CheatingDealer,
    MaskKeys,
    SecretChoice,
    fingerprint,
    least_deals,
)
from privet.federation.wire import (
    CLASSES,
    DTYPES,
    ENVELOPES,
    PLAIN,
    WireError,
    rebuild,
)
from privet.privacy import Budget, Ledger, LedgerStore, Recalled, Reservation
from privet.schema import Schema
from privet.tables import (
    NO_NOISE,
    Binary,
    PrivateCells,
    PrivateTable,
    Scores,
    Table,
    Tally,
    View,
    list_candidates,
)

#: Questions that cost nothing: they say which cells are meant, or what is public.
FREE = frozenset(
    {"portions", "root", "parts", "take", "split", "forget", "public_key", "join", "seal", "unseal",
     "describe", "series", "left", "step"}
)  # fmt: skip
#: Free questions that travel with another one, since nobody waits for an answer.
SILENT = frozenset({"portions", "root", "parts", "take", "split", "forget"})
#: Questions about how well scores, which they come with, fit the records of cells.
OUTCOMES = frozenset(
    {"noisy_confusion", "noisy_score_counts", "share_confusion", "share_score_counts"}
)
#: Questions that are charged.
CHARGED = frozenset(
    {"noisy_counts", "noisy_class_counts", "choose_best", "choose_splits", *OUTCOMES, *SHARES}
)

#: Charged questions whose answer is a choice under way, not a result.
CHOICES = frozenset({"share_labels", "share_splits"})

#: Questions that come with arrays: which cells, which features, randomness or opened words.
_WITH_ARRAYS = frozenset({"take", "choose_splits", "share_splits", "step"})

#: How many cells and choices are kept at a time, and how many free questions come with another.
MOST_KEPT, MOST_BEFORE = 2**16, 2**12
#: The asker's numbers of cells: a series times this, and a place in it. The party has series 0.
SERIES, MOST_SERIES = 2**32, 2**12

#: Plain values, which need no check of their own.
_NUMBERS = frozenset({int, float})


#: Cells, and a fingerprint of how they were made: the same at all parties.
_Kept = tuple[PrivateCells, bytes]
#: Disjoint tables by their names, and a fingerprint of how they were made.
_Portions = tuple[Mapping[str, Table], bytes]


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
        if ledger is not None:
            schema.check_corrected()
        self.table = PrivateTable(features, target, schema, budget, random_state=random_state)
        reservation = None
        if ledger is not None:
            store = ledger if isinstance(ledger, LedgerStore) else LedgerStore(Path(ledger))
            reservation = store.reserve(
                budget,
                f"party {name!r} of a federation",
                columns=schema.columns,
                table=schema.table,
                unit=schema.unit,
            )
        #: Ends the books: by close, or when nobody has the party any more.
        self._end = finalize(self, _end, self.table.ledger, reservation, os.getpid())
        self._keys: MaskKeys | None = None
        #: Whether the roster came from the owner, and how many of a roster may not be honest.
        self._pinned, self._doubted = False, 0
        self._closed = False
        self._cells: dict[int, _Kept] = {}
        self._portions: dict[int, _Portions] = {}
        self._choices: dict[int, SecretChoice] = {}
        #: How many choices were given up before a deal was proved, and whether one was wrong.
        self._given_up, self._cheated = 0, False
        self._next = 1
        #: How many series of numbers were given out, and the last place of each that was used.
        self._series = 0
        self._places: dict[int, int] = {}
        #: One question at a time: two at once could both find a round unanswered.
        self._one_at_a_time = RLock()

    @property
    def held(self) -> tuple[int, int]:
        """How many cells it holds, and in how many secret choices it takes part."""
        return sum(len(cells) for cells, _ in self._cells.values()), len(self._choices)

    @property
    def has_keys(self) -> bool:
        """Whether it has made keys for secret sums."""
        return self._keys is not None

    @property
    def connected(self) -> bool:
        """Whether it has keys in common with other parties."""
        return self._keys is not None and bool(self._keys.peers)

    def offered(self, target: int, candidates: Any) -> int:
        """Return how many splits some of its cells would be offered; 0 if there are none."""
        if target not in self._cells or not hasattr(candidates, "split"):
            return 0
        return len(list_candidates(candidates, self._cells[target][0].view))

    @property
    def doubted(self) -> int:
        """How many parties of a roster may not be honest; it never falls."""
        return self._doubted

    def doubt(self, parties: int) -> None:
        """Doubt as many parties of a roster as before a restart, if these are more."""
        self._doubted = max(self._doubted, parties)

    @property
    def misdealt(self) -> tuple[int, bool]:
        """What makes a dealer suspect, if the party ended now.

        How many choices were given up before what was dealt for them was proved to be right, those
        under way included; and whether something dealt was wrong.
        """
        unproved = sum(choice.unproved for choice in self._choices.values())
        return self._given_up + unproved, self._cheated

    def suspect(self, given_up: int, cheated: bool) -> None:
        """Suspect dealers as before a restart: see :attr:`misdealt`."""
        self._given_up, self._cheated = given_up, cheated

    def recall(
        self, target: int, question: str, *given: Any, before: Any = (), **options: Any
    ) -> None:
        """Charge a question again that was answered before a restart; its answer is known.

        Nothing is computed and no noise is drawn (:meth:`~privet.privacy.Ledger.recalling`). What
        it was asked under keys, it is charged for without them: they ended with their process.
        """
        asked = [(target, given, options)]
        if "of" in options:  # several questions in one
            pairs = zip(options["of"], given[0], strict=True)
            asked = [(each, (amount,), {}) for each, amount in pairs]
        with self._one_at_a_time:
            self._prepare(before)
            for each in asked:
                self._recall(question, *each)

    def _recall(
        self, question: str, target: int, given: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        members = given[-2] if question in SHARES else ()
        self._keys, kept = _NoKeys(self.name, members), self._keys
        try:
            with self.table.ledger.recalling():
                self._answer(target, question, given, options)
        except Recalled:
            if question in CHOICES:
                self._number()
        finally:
            self._keys = kept

    @property
    def keys(self) -> MaskKeys:
        """The party's keys for secret sums and choices, made on first use."""
        if self._keys is None:
            self._keys = MaskKeys(self.name)
        return self._keys

    def join(self, roster: Mapping[str, bytes], dealer: bytes | None = None) -> None:
        """Read the names and public keys of all parties: what secure sums rest on.

        An owner who does not trust the coordinator to pass keys on gets them from the other owners
        (each party's ``keys.public_key``) and calls this first: any other roster is refused then,
        and any other dealer, if its ``public_key`` is given, too.
        """
        self._join(roster, dealer)
        self._pinned = True

    def _join(self, roster: Mapping[str, bytes], dealer: bytes | None = None) -> None:
        self.keys.join(roster, dealer)
        if self.trusted is not None:
            self._doubted = max(self._doubted, len(roster) - self.trusted)

    def _public_key(self) -> bytes:
        """Return the key for a roster: a new one, if the roster is not the owner's own.

        A new federation has new keys, so that nothing of the one before can be asked any more.
        """
        if self.keys.peers and not self._pinned:
            self._keys = None
            for number in list(self._choices):
                self._drop_choice(number)
        return self.keys.public_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the books, and settle the owner's ledger file."""
        self._closed = True
        self._end()

    def answer(
        self, target: int, question: str, *given: Any, before: Any = (), **options: Any
    ) -> Any:
        """Answer a question about the table (target 0) or about cells, or refuse.

        For cells the answer is a number, by which they can be asked about later. An error that is
        not foreseen becomes :class:`Lost`, without its text, which could be about the rows.

        Parameters
        ----------
        target : int
            What is asked about: 0 for the table, or the number of cells or of a choice.
        question : str
            One of the questions that are known.
        *given : object
            What comes with it.
        before : tuple of tuples, optional
            Free questions that are carried out first, in order: the number by which the asker will
            call the new cells (:meth:`_check_number`), the target, the question, and what comes
            with it. If one of them is refused, so are the others and the question.
        **options : object
            What comes with the question by name.
        """
        try:
            with self._one_at_a_time:
                self._prepare(before)
                return self._answer(target, question, given, options)
        except PrivetError:
            raise
        except Exception:
            lost = Lost(f"party {self.name!r} failed")
        raise lost

    def _prepare(self, before: Any) -> None:
        """Carry out the free questions that came with another one."""
        if type(before) not in (list, tuple) or len(before) > MOST_BEFORE:
            raise Refused(f"party {self.name!r} refuses: these are no free questions, or too many")
        for asked in before:
            if (
                type(asked) not in (list, tuple)
                or len(asked) < 3
                or set(map(type, asked[:2])) != {int}
                or type(asked[2]) is not str
                or asked[2] not in SILENT
            ):
                raise Refused(f"party {self.name!r} refuses: this is no free question")
            number, target, question, *given = asked
            self._check_open(question)
            given = self._checked(question, given, {})[0]
            if question == "forget":
                self._forget(target)
            else:
                self._check_number(number)
                self._make(target, question, given, number)

    def _check_number(self, number: int) -> None:
        """Refuse a number for new cells that was used before, or is none of the asker's."""
        series, place = divmod(number, SERIES)
        if (
            not 0 < series < 2**31
            or place <= self._places.get(series, 0)
            or (series not in self._places and len(self._places) == MOST_SERIES)
        ):
            raise Refused(f"party {self.name!r} refuses: cells have new numbers, in rising order")
        self._places[series] = place
        self._series = max(self._series, series)

    def _check_open(self, question: str) -> None:
        if self._closed and question != "forget":
            raise Refused(f"party {self.name!r} refuses: its books are closed; make it anew")

    def _checked(
        self, question: str, given: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what a question came with, made anew."""
        try:
            return (
                tuple(_own(value, arrays=question in _WITH_ARRAYS) for value in given),
                {name: _own(value) for name, value in options.items()},
            )
        except (TypeError, ValueError, ArithmeticError, WireError) as error:
            raise Refused(
                f"party {self.name!r} does not know what {question!r} came with"
            ) from error

    def _answer(
        self, target: int, question: str, given: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        self._check_open(question)
        if question in CHARGED and question not in self.allowed:
            raise Refused(f"party {self.name!r} does not allow the question {question!r}")
        if question not in CHARGED | FREE:
            raise Refused(f"party {self.name!r} does not know the question {question!r}")
        given, options = self._checked(question, given, options)
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
        if question == "series":
            self._series += 1
            return self._series
        if question == "forget":
            return self._forget(target)
        if question == "step":
            if target not in self._choices:
                raise Refused(f"party {self.name!r} takes part in no such choice")
            choice = self._choices[target]
            # Of all that were given up until now, also since it was asked for.
            given_up = self.misdealt[0] - choice.unproved
            choice.least_deals = least_deals(choice.members, given_up)
            try:
                return choice.step(*given)
            except FederationError as error:
                self._cheated = self._cheated or isinstance(error, CheatingDealer)
                self._drop_choice(target)
                raise
        if question in SILENT:
            if options:
                raise Refused(f"party {self.name!r} does not know what {question!r} came with")
            return self._make(target, question, given, self._number())
        if "of" in options:
            return self._count_several(question, given, **options)
        cells, how = self._find(target, question)
        scores: tuple[Scores, ...] = ()
        if question in OUTCOMES:
            made, marked = self._make_scores(cells, question, given[:1])
            scores, given, how = (made,), given[1:], fingerprint(how, marked)
        if question in SHARES:
            self._check_room()
            *asked, honest, members, nonce = self._check_round(given)
            self._check_dealer(question, len(members))
            # A round's name is made of all that was asked. A party that was asked something else,
            # for less noise, or about other cells, has other masks, and nobody can read the sum.
            # And of all names and keys: a party that knows others by them has other masks, too.
            about = (how, question, asked, honest, sorted(members), nonce)
            name = fingerprint(self.keys.known, *about)
            found = SHARES[question](cells, *scores, *asked, honest, self.keys, members, name)
            if isinstance(found, SecretChoice):
                return self._join_choice(found)
            return found
        found = getattr(cells, question)(*scores, *given, **options)
        if isinstance(found, Tally):  # whole numbers: of records, or of persons
            return found.values.astype(np.int64).reshape(len(cells), -1)
        return found

    def _make(self, target: int, question: str, given: tuple[Any, ...], number: int) -> int:
        """Make new cells, or portions of the table, and keep them under a number."""
        if question == "portions":
            portions = self._divide(target, given)
            self._check_room()
            self._portions[number] = portions
        else:
            self._keep(self._make_cells(target, question, given), number)
        return number

    def _divide(self, target: int, given: tuple[Any, ...]) -> _Portions:
        """Return portions of the table: one division in this party's own books.

        No record is in two of them, whatever key the asker chose, so that the dearest portion is
        what they cost. To ask for portions again is another division, and adds up.
        """
        shares, key = given if len(given) == 2 else (None, None)
        if (
            target != 0
            or type(shares) is not dict
            or set(map(type, shares.values())) != {Fraction}
            or type(key) is not int
        ):
            raise Refused(f"party {self.name!r}: portions are shares of the table, by a key")
        try:
            return self.table.portions(shares, key), fingerprint("portions", shares, key)
        except ValueError as error:
            raise Refused(f"party {self.name!r} refuses: {error}") from error

    def _table_of(
        self, target: int, question: str, given: tuple[Any, ...]
    ) -> tuple[Table, tuple[Any, ...], tuple[Any, ...]]:
        """Return the table or the portion that is meant, how it was made, and the other facts."""
        if target == 0:
            return self.table, (), given
        tables, how = self._portions.get(target, ({}, b""))
        name = given[0] if given and type(given[0]) is str else ""
        if name not in tables:
            raise Refused(f"party {self.name!r}: {question!r} is about the table, or a portion")
        return tables[name], (how, name), given[1:]

    def _make_scores(
        self, cells: PrivateCells, question: str, given: tuple[Any, ...]
    ) -> tuple[Scores, bytes]:
        """Return scores of the records of the cells' table, and a fingerprint of them.

        They come as a start and as values of cells, one after the other. All of it is public.
        """
        try:
            ((start, added),) = given
            scores, marked = cells._table.start_scores(start), [fingerprint(start)]
            for number, values in added:
                some, how = self._find(number, question)
                known = np.array(values, dtype=np.float64).reshape(len(some), len(start))
                scores.add(some, known)
                marked.append(fingerprint(how, known))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise Refused(
                f"party {self.name!r} does not know what {question!r} came with"
            ) from error
        return scores, fingerprint(marked)

    def _make_cells(self, target: int, question: str, given: tuple[Any, ...]) -> _Kept:
        """Return new cells of the table, of a portion, or of other cells."""
        if question in ("root", "parts"):
            table, lead, given = self._table_of(target, question, given)
            *first, view = given
            view = self._view(view)
            made: PrivateCells = getattr(table, question)(*first, view)
            unnamed = replace(view.schema, table=None)
            return made, fingerprint(*lead, question, first, unnamed, view.cuts)
        cells, how = self._find(target, question)
        return getattr(cells, question)(*given), fingerprint(how, question, given)

    def _count_several(
        self, question: str, given: tuple[Any, ...], of: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return noisy class counts of several cells, each for an amount of its own.

        One after the other, as if they were asked so: nothing says that these cells are disjoint.
        """
        if question != "noisy_class_counts" or len(given) != 1 or len(given[0]) != len(of):
            raise Refused(f"party {self.name!r} does not know what {question!r} came with")
        several = [self._find(target, question)[0] for target in of]
        return [
            cells.noisy_class_counts(amount)
            for cells, amount in zip(several, given[0], strict=True)
        ]

    def _find(self, target: int, question: str) -> _Kept:
        if target == 0:
            raise Refused(f"party {self.name!r}: {question!r} is about cells")
        if target not in self._cells:
            raise Refused(f"party {self.name!r} has no such cells")
        return self._cells[target]

    def _forget(self, target: int) -> None:
        self._cells.pop(target, None)
        self._portions.pop(target, None)
        self._drop_choice(target)

    def _drop_choice(self, number: int) -> None:
        choice = self._choices.pop(number, None)
        self._given_up += choice is not None and choice.unproved

    def _check_dealer(self, question: str, members: int) -> None:
        """Refuse choices after a dealer has cheated, or may try until it is lucky.

        Choices that were left hanging are given up.
        """
        if question not in CHOICES:
            return
        if self._cheated:
            raise Refused(
                f"party {self.name!r} refuses: what it was dealt did not belong together. Its "
                "owner decides whether to make it anew, for another dealer"
            )
        for number, choice in list(self._choices.items()):
            if choice.unproved:
                self._drop_choice(number)
        if least_deals(members, self._given_up) > MOST_DEALS:
            raise Refused(
                f"party {self.name!r} refuses: {self._given_up} secret choices ended while what "
                "was dealt for them was checked, and with one more a dealer could have tried until "
                "it was lucky. It joins no more of them, and nothing was charged for this one: "
                "begin a new study, under another name, or use another protocol"
            )

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

    def _keep(self, cells: _Kept, number: int) -> None:
        self._check_room()
        self._cells[number] = cells

    def _join_choice(self, choice: SecretChoice) -> int:
        number = self._number()
        self._choices[number] = choice
        return number

    def _check_room(self) -> None:
        if len(self._cells) + len(self._portions) + len(self._choices) >= MOST_KEPT:
            raise Refused(f"party {self.name!r} refuses: it keeps too many cells; forget some")

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number


class _NoKeys(MaskKeys):
    """What stands for keys that ended with their process, when books are charged again."""

    def __init__(self, name: str, members: Sequence[str]) -> None:
        self.name = name
        self._shared = dict.fromkeys(set(members) - {name}, b"")

    @property
    def known(self) -> bytes:
        """Nobody: no round is named by it."""
        return b""

    def common_key(self) -> bytes:
        """Return no key: nothing is made with it."""
        return b""

    def mask(self, members: Sequence[str], round_name: bytes, size: int, **_: Any) -> Any:
        """Return no mask: nothing is hidden by it."""
        del members, round_name
        return np.zeros(size, dtype=np.uint64)


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


def _end(ledger: Ledger, reservation: Reservation | None, owner: int) -> None:
    """End the books; a forked process that ends settles nothing, since its parent goes on."""
    ledger.close()
    if reservation is not None and os.getpid() == owner:
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
