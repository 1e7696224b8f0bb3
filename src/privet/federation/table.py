"""A table held by several parties, with the interface of one: learners run on it unchanged.

The coordinator sees released answers only. What it can answer are questions that sum over parties;
the others are refused before anything is spent. Three protocols (docs/proofs/federation.md):

* ``noisy-counts``: every party adds its own noise to its class counts; splits are chosen from
  the sums of noisy histograms of all features.
* ``local-rnm``: every party proposes a split of every cell, chosen privately among all of them from
  its own rows; noisy counts on the few proposals decide.
* ``secure-sum``: counts are summed under masks, and the parties' shares of noise add up to *one*
  noise, as on a single machine. Splits and labels are chosen by noisy scores of all parties' rows,
  of which only the largest one's place is seen (:mod:`privet.privacy.blind_choice`).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, Self
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.criteria import HALVINGS, MAX_ROWS, MOST_CHORDED, Criterion, LeastLines
from privet.errors import BudgetError, BudgetExceeded, FederationError
from privet.federation.parties import Link, LocalLink, Lost, Party, check_honest
from privet.federation.wire import MOST_BYTES
from privet.privacy import (
    MOST_OPTIONS,
    SMALLEST_RATE,
    Asked,
    Budget,
    DiscreteLaplace,
    Exponential,
    LaplaceShare,
    Ledger,
    NoisyMaxShare,
    PermuteAndFlip,
    Place,
    Question,
    Released,
    ReportNoisyMax,
    Scopes,
    Shape,
    check_cryptography,
    check_range,
    deal,
    exact,
    has_room,
    open_sum,
    openings,
    winners,
)
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import NO_NOISE, Cells, Multiway, Split, Table, View, gains_of, list_candidates

PROTOCOLS = ("noisy-counts", "local-rnm", "secure-sum")
#: Part of a selection's budget for proposals; the counts of the proposals have the rest.
PROPOSAL_SHARE = Fraction(1, 2)
#: No sum of counts and noise is larger, for any amount that can be shared; nearly all sums whose
#: masks do not cancel are.
_LARGEST = 2**40

#: How parties propose splits, by name.
_SELECTIONS = {"flip": PermuteAndFlip, "exponential": Exponential, "rnm": ReportNoisyMax}

#: What a question to federated cells asks of every party.
_ASKED = {
    "noisy-counts": {
        "noisy_counts": "noisy_counts",
        "noisy_class_counts": "noisy_class_counts",
        "choose_labels": "noisy_class_counts",
        "choose_best": "noisy_class_counts",
        "choose_splits": "noisy_class_counts",
    },
    "local-rnm": {
        "noisy_counts": "noisy_counts",
        "noisy_class_counts": "noisy_class_counts",
        "choose_labels": "noisy_class_counts",
        "choose_best": "choose_best",
        "choose_splits": "choose_splits",
    },
    "secure-sum": {
        "noisy_counts": "share_counts",
        "noisy_class_counts": "share_class_counts",
        "choose_labels": "share_labels",
        "choose_best": "share_splits",
        "choose_splits": "share_splits",
    },
}

Amounts = Amount | Sequence[Amount]


class FederatedTable(Table):
    """A table whose rows are held by several parties.

    Parameters
    ----------
    parties : sequence of Party or Link
        Who holds the rows. All have the same schema, but for the table's name; a record is in one
        of them.
    protocol : {"secure-sum", "local-rnm", "noisy-counts"}, default="secure-sum"
        How answers are put together. ``secure-sum`` is as accurate as one table; it assumes that
        all follow the protocol and that the coordinator, who makes this table, pools what it
        knows with no party. The others assume nothing.
    honest : int, optional
        For ``secure-sum``: how many parties add their noise for sure, and show it to nobody: a
        party that would keep its own to read the answers with is not one of them. Privacy holds if
        at least so many do; fewer honest ones assumed is more noise. All of them if None.
    least : int, optional
        With fewer parties left than this the run stops; under ``secure-sum`` not below ``honest``.
        All of them if None: any loss stops it.

    Notes
    -----
    A federation is asked by one thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, Numeric, Schema, TopDownClassifier
    >>> from privet.federation import FederatedTable, Party
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> parties = [
    ...     Party(f"clinic {k}", x[k::4], cured[k::4], schema, Budget(1.0)) for k in range(4)
    ... ]
    >>> model = TopDownClassifier(epsilon=1.0).fit(FederatedTable(parties))
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        parties: Sequence[Party | Link],
        *,
        protocol: str = "secure-sum",
        honest: int | None = None,
        least: int | None = None,
    ) -> None:
        if protocol not in PROTOCOLS:
            raise FederationError(f"protocol must be one of {', '.join(map(repr, PROTOCOLS))}")
        links = _links(parties)
        if protocol == "secure-sum":
            check_cryptography()
            if len(links) < 2:
                raise FederationError("a secure sum needs two parties or more")
        self._protocol = protocol
        if honest is not None and protocol != "secure-sum":
            raise FederationError("honest is for secure sums: elsewhere a party needs no others")
        self.honest = _count(honest, "honest", len(links))
        self.least = _count(least, "least", len(links))
        if protocol == "secure-sum" and self.least < self.honest:
            raise FederationError(
                f"least={self.least} needs honest={self.least} or fewer: with fewer parties than "
                "honest ones there is too little noise"
            )
        self._links = links
        self._lines = _Lines(links, self.least)
        described = dict(self._lines.ask_all("describe", check=_is_described))
        schemas = {name: Schema.from_dict(schema) for name, (schema, _, _) in described.items()}
        self.schema = _common_schema(schemas)
        self.leaks = tuple(
            dict.fromkeys(leak for _, leaks, _ in described.values() for leak in leaks)
        )
        self._allowed = {name: frozenset(allowed) for name, (_, _, allowed) in described.items()}
        self._keys: dict[str, bytes] = {}
        if protocol == "secure-sum":
            self._keys = dict(self._lines.ask_all("public_key", check=_is_key))
            self._lines.ask_all("join", self._keys)
            sealed = [given for _, given in self._lines.ask_all("seal", check=_is_sealed) if given]
            self._lines.ask_all("unseal", sealed[0] if sealed else {})
        self.ledger = Ledger(Budget(float("inf")))
        #: Parties have their own noise, and answer nothing that their books do not cover.
        self.seeded, self.covered = False, True
        #: A question must have so much: shares of noise are drawn from tables of a limited size.
        self.least_amount = SMALLEST_RATE if protocol == "secure-sum" else Fraction(0)
        #: Who left while a sum or a choice was made, so that it was paid again.
        self._missed: set[str] = set()

    @property
    def _cells_class(self) -> type[FederatedCells]:
        return FederatedCells

    @property
    def protocol(self) -> str:
        """How answers are put together."""
        return self._protocol

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties that are still there."""
        return tuple(link.name for link in self._lines.links)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the guarantee of an answer rests on, for a model's card."""
        lost = f" ({len(self._lines.lost)} more lost on the way)" if self._lines.lost else ""
        who = f"learnt from the rows of {len(self.parties)} parties{lost}, protocol {self.protocol}"
        each = "the epsilon is that of a record at one party: a person with records at several pays"
        if self.protocol != "secure-sum":
            return (f"{who}: each party's own noise covers its rows; {each} at each",)
        return (
            f"{who}: this epsilon holds if at least {self.honest} of the parties are honest, that "
            "is, add their share of the noise, show it to nobody and keep it nowhere, if the keys "
            "that parties have of each other are theirs, and, for splits and labels, if all follow "
            f"the protocol and the coordinator pools what it knows with none of them; {each} at "
            "each",
        )

    def session(self, budget: Budget, asks: Iterable[str] = ()) -> FederatedTable:
        """Return the same parties with new books of a budget, for one fit.

        These are the coordinator's books; every party keeps its own and trusts no others. Raises,
        before anything is spent, if a party has less left than the budget, or does not allow what
        will be asked.

        Parameters
        ----------
        budget : Budget
            What may be spent, at each of the parties.
        asks : iterable of str, optional
            Questions to cells that will surely be asked.
        """
        if budget.accountant != "pure":
            raise BudgetError("a federation has pure budgets only: give no delta")
        self._check_allowed(*asks)
        for name, (left, key, doubted) in self._lines.ask_all("left", check=_is_left):
            if self._keys and key != self._keys[name]:
                raise FederationError(
                    f"party {name!r} has joined another federation since, with new keys: make a "
                    "new FederatedTable. Nothing was spent"
                )
            if self._keys:
                check_honest(name, self.honest, len(self.parties), doubted)
            if budget.limit > left:
                raise FederationError(
                    f"party {name!r} has epsilon {float(left):.6g} left, and this may spend "
                    f"{float(budget.limit):.6g}: ask for less, or leave it out. Nothing was spent"
                )
        again = object.__new__(FederatedTable)
        again.__dict__.update(self.__dict__)
        again.ledger = Ledger(budget)
        if budget.limit == math.inf:
            again.leaks = (*self.leaks, NO_NOISE)
        again._missed = set()
        return again

    def _check_allowed(self, *questions: str) -> None:
        """Raise if a party does not allow what a question to cells asks of it."""
        needed = dict.fromkeys(_ASKED[self.protocol][question] for question in questions)
        for name in self.parties:
            for question in needed:
                if question not in self._allowed[name]:
                    raise FederationError(
                        f"party {name!r} does not allow the question {question!r}, without which "
                        "this cannot be learnt: its owner decides (Party(allowed=...)). Nothing "
                        "was spent"
                    )

    def check_choices(self, criterion: Criterion, options: int, how: str | None = None) -> None:
        """Raise if the parties cannot choose splits in this way, before anything is asked.

        Parameters
        ----------
        criterion : Criterion
            What splits are judged by.
        options : int
            How many splits are offered.
        how : {"flip", "exponential", "rnm"}, optional
            By which selection, for :meth:`FederatedCells.choose_best`;
            :meth:`FederatedCells.choose_splits` is meant if None.
        """
        self._check_allowed("choose_splits" if how is None else "choose_best")
        if self.protocol == "noisy-counts" and how not in (None, "flip"):
            raise FederationError(
                "by noisy counts, the best split is taken and none is drawn: leave 'flip', or use "
                "another protocol"
            )
        if self.protocol != "secure-sum":
            return
        if how not in (None, "flip"):
            raise FederationError(
                "under secure sums, splits are chosen by permute-and-flip: ask for 'flip', or use "
                "another protocol"
            )
        lines = lines_of(criterion, len(self.schema.classes or ()), options)
        if lines is None:
            raise FederationError(
                f"under secure sums, {criterion.name!r} cannot judge splits: it takes more than "
                f"sums and comparisons; use 'gini' or 'max' (Gini up to {MOST_CHORDED:,} classes), "
                "or another protocol"
            )
        if options > MOST_OPTIONS:
            raise FederationError(
                f"under secure sums, parties choose among {MOST_OPTIONS:,} splits at most, not "
                f"{options:,}: take fewer features or cuts, or another protocol"
            )
        check_range(lines.spread * MAX_ROWS, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the lines, of lost parties, too; parties settle their books."""
        self._lines.closed = True
        with ExitStack() as closing:  # all of them, whatever one does
            for link in self._links:
                closing.callback(link.close)

    def root(self, view: View | None = None) -> FederatedCells:
        """Return the whole table as one cell. Free."""
        view = View.of_bins(self.schema) if view is None else view
        places = dict(self._lines.ask_all("root", view, check=_is_place))
        return FederatedCells(self, self.ledger.root, Place(), view, places)

    def parts(self, count: int, key: int, view: View | None = None) -> FederatedCells:
        """Return the table as disjoint parts by a hash of each record. Free."""
        view = View.of_bins(self.schema) if view is None else view
        places = dict(self._lines.ask_all("parts", count, key, view, check=_is_place))
        scopes = self.ledger.root.divide(np.zeros(count, dtype=np.intp))
        return FederatedCells(self, scopes, Place(parts=count), view, places)

    def _refuse(self, question: str) -> NoReturn:
        raise FederationError(
            f"a federation cannot answer {question!r}: it does not sum over parties"
        )


class _Lines:
    """The links that are still there."""

    def __init__(self, links: Sequence[Link], least: int) -> None:
        self.links = list(links)
        self.least = least
        #: Who is not there any more.
        self.lost: list[str] = []
        self.closed = False
        self._stale: list[dict[str, int]] = []

    def ask_all(
        self,
        question: str,
        *given: Any,
        places: dict[str, int] | None = None,
        each: dict[str, Any] | None = None,
        check: Callable[[Any], bool] | None = None,
        **options: Any,
    ) -> list[tuple[str, Any]]:
        """Ask all parties at once; return names and answers of those that are left.

        ``each`` has something for every party by its name, to come with the question.
        A party that is lost, or whose answer is no answer, is asked nothing any more. One that
        refuses stops the run: its owner decides, and the others' books show what they spent.
        """
        if self.closed:
            raise FederationError("this federation is closed; make a new one of new parties")
        self._clear()
        asked, lost = [], []
        for link in self.links:
            target = 0 if places is None else places.get(link.name)
            if target is None:
                lost.append(link)
                continue
            try:
                mine = given if each is None else (*given, each[link.name])
                asked.append((link, link.send(target, question, *mine, **options)))
            except Lost:
                lost.append(link)
        found = []
        refused: FederationError | None = None
        for link, number in asked:
            try:
                answer = link.receive(number)
            except Lost:
                lost.append(link)
                continue
            except FederationError as error:
                refused = refused or error
                continue
            if check is None or _passes(check, answer):
                found.append((link.name, answer))
            else:
                lost.append(link)
        if lost:
            self.links = [link for link in self.links if link not in lost]
            self.lost += [link.name for link in lost]
        if refused is not None:
            raise refused
        if len(self.links) < self.least:
            names = ", ".join(map(repr, self.lost))
            raise FederationError(
                f"{names} did not answer, or answered nonsense; {len(self.links)} parties are left "
                f"and {self.least} are needed. The ledgers of the others show what they spent; to "
                "go on, make a FederatedTable without the lost ones"
            )
        return found

    def forget(self, places: dict[str, int]) -> None:
        """Note that some cells are not needed any more; parties hear of it with the next question.

        Called when cells are collected, perhaps while answers are awaited: nothing is sent here.
        """
        self._stale.append(places)

    def _clear(self) -> None:
        while self._stale:
            places = self._stale.pop()
            for link in self.links:
                if link.name in places:
                    with suppress(Lost):  # it will be noticed by the next question
                        link.send(places[link.name], "forget")


class FederatedCells(Cells):
    """Disjoint cells of a federated table, asked all at once.

    Answers have shapes that depend on the schema and on earlier answers only.
    """

    def __init__(
        self,
        table: FederatedTable,
        scopes: Scopes,
        place: Place,
        view: View,
        places: dict[str, int],
    ) -> None:
        self._table = table
        self._scopes = scopes
        self._place = place
        self._view = view
        self._places = places
        finalize(self, table._lines.forget, places)

    def __len__(self) -> int:
        return len(self._scopes)

    @property
    def depth(self) -> int:
        """How many times the cells were divided, from the whole table or its parts."""
        return self._place.level or 0

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self._table.schema

    @property
    def view(self) -> View:
        """Through which public cuts the records are seen."""
        return self._view

    # Free

    def take(self, chosen: NDArray[Any]) -> FederatedCells:
        """Return some of the cells, by mask or by position. Free."""
        positions = np.arange(len(self))[chosen]
        return self._derive("take", self._scopes.take(positions), self._place, positions)

    def split(self, splits: Sequence[Split]) -> FederatedCells:
        """Return the children of all cells, those of the first cell first. Free."""
        if not splits or len(splits) != len(self):
            raise ValueError("give one split for every cell")
        parents = np.repeat(np.arange(len(self)), [split.n_children for split in splits])
        place = replace(self._place, level=self.depth + 1)
        return self._derive("split", self._scopes.divide(parents), place, list(splits))

    def partition(self, by: str) -> FederatedCells:
        """Return the cells divided by a feature: one part for every code of it. Free."""
        split = Multiway().split(self.schema.names.index(by), 0, 0, self.view)
        return self.split([split] * len(self))

    def _derive(self, question: str, scopes: Scopes, place: Place, *given: Any) -> FederatedCells:
        answers = self._ask(question, *given, check=_is_place)
        return FederatedCells(self._table, scopes, place, self.view, dict(answers))

    # Private

    def noisy_counts(self, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise."""
        what = Question(Asked.ROW_COUNT)
        if self._table.protocol == "secure-sum":
            return Released(self._sum("share_counts", amount, (len(self),), what))
        self._charge([DiscreteLaplace(1, each) for each in self._amounts(amount)], what)
        check = _counts_of((len(self),))
        return _total(self._ask("noisy_counts", amount, check=check))

    def noisy_class_counts(self, amount: Amounts) -> Released:
        """Return how many records of each class each cell has, with noise.

        Privacy
        -------
        Per party and record: the amount. The noise is each party's own, or one noise that all
        parties' shares make together (docs/proofs/federation.md).
        """
        if self.schema.classes is None:
            raise FederationError("a federation learns classes, not numbers")
        shape = (len(self), len(self.schema.classes))
        if not len(self):
            return Released(np.zeros(shape, dtype=np.int64))
        what = Question(Asked.CLASS_COUNTS)
        if self._table.protocol != "secure-sum":
            self._charge([DiscreteLaplace(1, each) for each in self._amounts(amount)], what)
            return _total(self._ask("noisy_class_counts", amount, check=_counts_of(shape)))
        return Released(self._sum("share_class_counts", amount, shape, what))

    def _sum(
        self, question: str, amount: Amounts, shape: tuple[int, ...], what: Question
    ) -> NDArray[np.int64]:
        """Return a sum over the parties of numbers that nobody sees, with one noise."""
        honest, lines = self._table.honest, self._table._lines
        while True:
            shares = [LaplaceShare(1, each, honest) for each in self._amounts(amount)]
            self._charge(shares, what)
            members = self._table.parties
            masked = self._ask(
                question,
                amount,
                honest,
                members,
                secrets.token_bytes(16),
                check=_words_of(math.prod(shape)),
            )
            if len(masked) == len(members):
                break
            # The masks of a lost member do not cancel: what came is noise, and those who are left
            # are asked, and charged, again.
            if len(lines.links) < max(self._table.least, 2):
                raise FederationError("too few parties are left for a sum")
            self._table._missed |= set(members) - set(self._table.parties)
        total = open_sum([part for _, part in masked]).view(np.int64)
        if np.abs(total.astype(np.float64)).max(initial=0.0) > _LARGEST:
            raise FederationError(
                "the sum is no count: a party answered nonsense, or lost its keys"
            )
        return total.reshape(shape)

    def choose_labels(self, amount: Amount) -> list[int]:
        """Return for every cell a class that is frequent there."""
        if self._table.protocol == "secure-sum":
            mechanism = NoisyMaxShare(1, exact(amount), self._table.honest)
            classes = len(self.schema.classes or ())
            shape = Shape(len(self), classes)
            asked = Question(Asked.LABEL)
            return self._vote("share_labels", (amount,), shape, mechanism, asked)
        counts = np.asarray(self.noisy_class_counts(amount))
        return [int(place) for place in counts.argmax(axis=1)]

    def choose_best(
        self, candidates: Any, criterion: Criterion, amount: Amount, *, how: str
    ) -> list[Split]:
        """Return one split per cell, good by a criterion."""
        offered = list_candidates(candidates, self.view)
        self._table.check_choices(criterion, len(offered), how)
        allowed = np.ones((len(self), len(self.schema.names)), dtype=bool)
        return self._choose(candidates, criterion, amount, allowed, "choose_best", (), {"how": how})

    def choose_splits(
        self,
        candidates: Any,
        criterion: Criterion,
        amount: Amounts,
        allowed: NDArray[np.bool_],
        *,
        flip: bool = True,
    ) -> list[Split]:
        """Return one split per cell, good by a criterion, of the features that it may use.

        For one amount; under secure sums always by permute-and-flip.
        """
        if isinstance(amount, Sequence):
            raise BudgetError("parties choose splits for one amount, the same for all cells")
        self._table.check_choices(criterion, len(list_candidates(candidates, self.view)))
        return self._choose(
            candidates, criterion, amount, allowed, "choose_splits", (allowed,), {"flip": flip}
        )

    # How splits are chosen

    def _choose(
        self,
        candidates: Any,
        criterion: Criterion,
        amount: Amount,
        allowed: NDArray[np.bool_],
        question: str,
        given: tuple[Any, ...],
        options: dict[str, Any],
    ) -> list[Split]:
        if not len(self):
            return []
        if self._table.protocol == "noisy-counts":
            return self._by_histograms(candidates, criterion, exact(amount), allowed)
        what = Question(Asked.SPLIT, criterion.name)
        if self._table.protocol == "secure-sum":
            offered = list_candidates(candidates, self.view)
            classes = len(self.schema.classes or ())
            lines = lines_of(criterion, classes, len(offered))
            assert lines is not None  # check_choices
            mechanism = NoisyMaxShare(lines.spread, exact(amount), self._table.honest)
            regions = sum(candidates.width(feature, self.view) for feature, _ in offered)
            terms, each, _ = lines.lines(classes).shape
            shape = Shape(len(self), len(offered), regions * terms, each, lines.halvings)
            asked = (candidates, lines, amount, allowed)
            places = self._vote("share_splits", asked, shape, mechanism, what)
            return [
                candidates.split(*offered[place], cell, self.view)
                for cell, place in enumerate(places)
            ]
        proposing = exact(amount) * PROPOSAL_SHARE
        how = options.get("how", "flip" if options.get("flip", True) else "exponential")
        self._charge([_SELECTIONS[how](criterion.spread, proposing)], what)
        answers = self._ask(
            question, candidates, criterion, proposing, *given, check=self._are_splits, **options
        )
        proposals: list[list[Split]] = [
            list(dict.fromkeys(map(_anew, splits)))
            for splits in zip(*(a for _, a in answers), strict=True)
        ]
        rest = exact(amount) * (1 - PROPOSAL_SHARE)  # an infinite amount stays infinite
        best: list[tuple[int, Split]] = [(0, options_[0]) for options_ in proposals]
        for turn in range(max(map(len, proposals))):
            mine = [cell for cell, some in enumerate(proposals) if turn < len(some) > 1]
            if not mine:
                continue
            splits = [proposals[cell][turn] for cell in mine]
            # Every proposal of a cell is counted, one after the other: they share the cell's rest.
            each = [rest / len(proposals[cell]) for cell in mine]
            children = self.take(np.array(mine)).split(splits)
            paid = [
                one
                for one, split in zip(each, splits, strict=True)
                for _ in range(split.n_children)
            ]
            gains = gains_of(children.noisy_class_counts(paid), splits, criterion)
            for cell, split, gain in zip(mine, splits, gains.tolist(), strict=True):
                if turn == 0 or gain > best[cell][0]:
                    best[cell] = (gain, split)
        return [split for _, split in best]

    def _vote(
        self, question: str, asked: Any, shape: Shape, mechanism: NoisyMaxShare, what: Question
    ) -> list[int]:
        """Return for every cell the option with the largest noisy sum over the parties."""
        if not len(self):
            return []
        if 8 * shape.dealt > MOST_BYTES - 2**20:  # some room for what is around the words
            raise FederationError(
                "under secure sums, a choice among so many splits takes messages that are too "
                "large: take fewer features or cuts, or another protocol"
            )
        table = self._table
        while True:
            self._charge([mechanism], what)
            members, turn = table.parties, secrets.token_bytes(16)
            given = (*asked, mechanism.honest, members, turn)
            ballots = dict(self._ask(question, *given, check=_is_place))
            chosen = self._count(ballots, shape) if len(ballots) == len(members) else None
            table._lines.forget(ballots)
            if chosen is not None:
                return chosen
            # As for sums: without a member nothing can be read, and the others are asked again.
            if len(table.parties) < max(table.least, 2):
                raise FederationError("too few parties are left for a choice")
            table._missed |= set(members) - set(table.parties)

    def _count(self, ballots: dict[str, int], shape: Shape) -> list[int] | None:
        """Deal, pass on what the parties open, and return what they chose; None after a loss."""
        lines = self._table._lines
        chosen: list[int] = []
        for some in shape.batches():
            given: dict[str, Any] = dict(zip(ballots, deal(some, len(ballots)), strict=True))
            opened = np.zeros(0, dtype=np.uint64)
            for size, mix in openings(some):
                words = lines.ask_all(
                    "vote",
                    places=ballots,
                    each=given,
                    check=_words_of(size),
                )
                if len(words) < len(ballots):
                    return None
                opened = open_sum([part for _, part in words], mix=mix)
                given = dict.fromkeys(ballots, opened)
            found = winners(opened, shape.options)
            if found.min() < 0:
                raise FederationError(
                    "the choice is no option: a party answered nonsense, or lost its keys"
                )
            chosen += found.tolist()
        return chosen

    def _by_histograms(
        self, candidates: Any, criterion: Criterion, amount: Amount, allowed: NDArray[np.bool_]
    ) -> list[Split]:
        """Choose by the sums of noisy histograms of all features, which share the amount."""
        features = np.flatnonzero(allowed.any(axis=0)).tolist()
        classes = len(self.schema.classes or ())
        losses, owners = [], []
        for feature in features:
            parts = self.partition(self.schema.names[feature])
            counts = np.asarray(parts.noisy_class_counts(amount / len(features)))
            counts = counts.reshape(len(self), -1, classes)
            children = candidates.children(feature, counts, range(len(self)), self.view)
            # No child has fewer than no records; cells may, so that their noise cancels in sums.
            found = criterion.losses(np.maximum(children, 0)).sum(axis=2)
            found = np.where(allowed[:, feature, None], found, np.iinfo(np.int64).max)
            losses.append(found)
            owners += [(feature, option) for option in range(found.shape[1])]
        best = np.concatenate(losses, axis=1).argmin(axis=1).tolist()
        return [
            candidates.split(*owners[place], cell, self.view) for cell, place in enumerate(best)
        ]

    def _are_splits(self, answer: Any) -> bool:
        return (
            type(answer) is list
            and len(answer) == len(self)
            and all(type(split) is Split and _anew(split).fits(self.view) for split in answer)
        )

    # Books and lines

    def _amounts(self, amount: Amounts) -> list[Amount]:
        if isinstance(amount, Sequence):
            if len(amount) != len(self):
                raise BudgetError("give one amount for all cells, or one for each")
            return [exact(each) for each in amount]
        return [exact(amount)]

    def _charge(self, mechanisms: Sequence[Any], question: Question) -> None:
        one = mechanisms[0] if len(mechanisms) == 1 else mechanisms
        try:
            self._table.ledger.charge(self._scopes, one, question, self._place)
        except BudgetExceeded as error:
            if not self._table._missed:
                raise
            names = ", ".join(map(repr, sorted(self._table._missed)))
            raise FederationError(
                f"{names} left in the middle of a question. The others were charged for it, and to "
                "ask it again, and what follows, the budget has too little left: the run stops. "
                "Their ledgers show what they spent; fit again, on a FederatedTable without it"
            ) from error

    def _ask(self, question: str, *given: Any, **options: Any) -> list[tuple[str, Any]]:
        return self._table._lines.ask_all(question, *given, places=self._places, **options)

    def _refuse(self, question: str) -> NoReturn:
        raise FederationError(
            f"a federation cannot answer {question!r}: it does not sum over parties"
        )


def lines_of(criterion: Criterion, classes: int, options: int) -> LeastLines | None:
    """Return what parties choose splits by: as close to a criterion as there is room for.

    None if sums and comparisons cannot tell it.
    """
    for halvings in reversed(HALVINGS):
        lines = criterion.in_lines(classes, halvings)
        if lines is None or has_room(lines.spread * MAX_ROWS, options):
            return lines
    return lines  # a choice that is refused


def _count(value: int | None, name: str, most: int) -> int:
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise FederationError(f"{name} must be a whole number from 1 to the number of parties")
    return int(value)


def _links(parties: Any) -> list[Link]:
    """Return a line to every party."""
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


def _common_schema(schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema that parties have in common, or say in what they differ."""
    (first, common), *others = schemas.items()
    for name, schema in others:
        parts = {
            # In the same order, too: parties are asked about features by their places.
            "the features, or their order,": schema.names == common.names,
            **{
                f"the feature {feature!r}": schema.features.get(feature) == common.features[feature]
                for feature in common.names
            },
            "the target": schema.target == common.target,
            "the classes": schema.classes == common.classes,
            "the target's bounds": schema.bounds == common.bounds,
            "the line 'draft = true'": schema.drafted == common.drafted,
        }
        for part, same in parts.items():
            if not same:
                raise FederationError(
                    f"the parties have different schemas: {part} of {name!r} and {first!r} differ"
                )
    # Nothing that is learnt depends on the tables' names; ledger files do, which owners have.
    if len({schema.table for schema in schemas.values()}) > 1:
        return replace(common, table=None)
    return common


def _anew(split: Split) -> Split:
    """Return a split that has passed the checks of its class, and has no memory."""
    return Split(split.feature, split.children)


def _passes(check: Callable[[Any], bool], answer: Any) -> bool:
    """Tell whether an answer is one; what cannot even be looked at is none."""
    try:
        return check(answer)
    except Exception:
        return False


def _is_place(answer: Any) -> bool:
    return type(answer) is int


def _is_key(answer: Any) -> bool:
    return isinstance(answer, bytes) and len(answer) == 32


def _is_sealed(answer: Any) -> bool:
    return isinstance(answer, dict) and all(isinstance(value, bytes) for value in answer.values())


def _is_described(answer: Any) -> bool:
    schema, leaks, allowed = answer
    Schema.from_dict(schema)
    return all(isinstance(text, str) for text in (*leaks, *allowed))


def _is_left(answer: Any) -> bool:
    left, key, doubted = answer
    return (
        (left == math.inf or (isinstance(left, Fraction) and left >= 0))
        and (key is None or _is_key(key))
        and type(doubted) is int
    )


def _is_array(answer: Any, shape: tuple[int, ...], kind: type[np.generic]) -> bool:
    return isinstance(answer, np.ndarray) and answer.shape == shape and answer.dtype == kind


def _counts_of(shape: tuple[int, ...]) -> Callable[[Any], bool]:
    def check(answer: Any) -> bool:
        # Not by absolute values: the least number of all has none.
        return _is_array(answer, shape, np.int64) and bool(
            ((answer < 2**53) & (answer > -(2**53))).all()
        )

    return check


def _words_of(size: int) -> Callable[[Any], bool]:
    def check(answer: Any) -> bool:
        return _is_array(answer, (size,), np.uint64)

    return check


def _total(answers: Iterable[tuple[str, NDArray[np.int64]]]) -> Released:
    return Released(np.sum([answer for _, answer in answers], axis=0))
