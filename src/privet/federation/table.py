"""A table held by several parties, with the interface of one: learners run on it unchanged.

The coordinator sees released answers only. What it can answer are questions that sum over parties;
the others are refused before anything is spent. How answers are put together is one of three
protocols (:mod:`privet.federation.protocols`, docs/proofs/federation.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, Self
from weakref import finalize

import numpy as np

from privet.criteria import Criterion
from privet.errors import BudgetError, FederationError
from privet.federation.answers import is_described, is_left
from privet.federation.cells import FederatedCells, FederatedScores
from privet.federation.dealer import Dealer
from privet.federation.links import Connections, Link, dealer_link, links_to
from privet.federation.party import Party
from privet.federation.protocols import PROTOCOLS
from privet.privacy import Budget, Ledger, Place, as_float
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import NO_NOISE, Table, View


class FederatedTable(Table):
    """A table whose rows are held by several parties.

    Parameters
    ----------
    parties : sequence of Party or Link
        Who holds the rows. All have the same schema, but for the table's name; a record is in one
        of them.
    protocol : {"secure-sum", "local-rnm", "noisy-counts"}, default="secure-sum"
        How answers are put together. ``secure-sum`` is as accurate as one table; it assumes that
        all follow the protocol and that the coordinator, who makes this table and deals, pools
        what it knows with no party. The others assume nothing.
    honest : int, optional
        For ``secure-sum``: how many parties surely add their noise and show it to nobody. (A party
        that remembers its own noise, to subtract it from answers, is not one of them.) Privacy
        holds if at least this many do; the fewer are assumed, the more noise. All if None.
    least : int, optional
        With fewer parties left than this the run stops; under ``secure-sum`` not below ``honest``.
        All of them if None: any loss stops it.
    dealer : Dealer or Link, optional
        For ``secure-sum``: who deals the random numbers of secret choices, and must pool what it
        knows with no party. The coordinator if None. Not one of the parties: a party that knows
        what it was dealt sees the sums that are compared.
    deals : int, optional
        For ``secure-sum``: how many deals are made for one that is used; the others are checked,
        and a dealer that cheats is caught with probability ``1 - 1 / deals``. One more than there
        are parties if None, which is the least.

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
        dealer: Dealer | Link | None = None,
        deals: int | None = None,
    ) -> None:
        if protocol not in PROTOCOLS:
            raise FederationError(f"protocol must be one of {', '.join(map(repr, PROTOCOLS))}")
        self._links = links_to(parties)
        number = len(self._links)
        self.least = number if least is None else _count(least, "least", number)
        honest = None if honest is None else _count(honest, "honest", number)
        if deals is not None and (isinstance(deals, bool) or not isinstance(deals, int)):
            raise FederationError("deals must be a whole number")
        apart = None if dealer is None else dealer_link(dealer, [each.name for each in self._links])
        self._protocol = PROTOCOLS[protocol](number, honest, self.least, apart, deals)
        self._connections = Connections(self._links, self.least)
        described = dict(self._connections.ask_all("describe", check=is_described))
        schemas = {name: Schema.from_dict(schema) for name, (schema, _, _) in described.items()}
        self.schema = _common_schema(schemas)
        self.leaks = tuple(
            dict.fromkeys(leak for _, leaks, _ in described.values() for leak in leaks)
        )
        self._allowed = {name: frozenset(allowed) for name, (_, _, allowed) in described.items()}
        self._connections.begin()
        self._protocol.connect(self._connections)
        self.ledger = Ledger(Budget(float("inf")))
        #: Parties have their own noise, and answer nothing that their books do not cover.
        self.seeded, self.covered = False, True
        self.least_amount = self._protocol.least_amount * self.schema.unit_parts
        #: Who left while a sum or a choice was made, so that it was paid again.
        self._missed: set[str] = set()
        #: What was paid again since a party came back without its keys: who, and for how much.
        self._paid_again: list[tuple[str, Amount]] = []
        #: The portion that this is, of the parties' tables, and what stands for all portions.
        self._portion: str | None = None
        self._division: _Division | None = None

    @property
    def _cells_class(self) -> type[FederatedCells]:
        return FederatedCells

    @property
    def protocol(self) -> str:
        """How answers are put together."""
        return self._protocol.name

    @property
    def noises(self) -> float | None:
        """How many noises a released number has; None if parties were lost on the way."""
        lost = bool(self._connections.lost)
        return None if lost else self._protocol.noises(len(self.parties))

    @property
    def honest(self) -> int:
        """How many parties' noise an answer rests on."""
        return self._protocol.honest

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties that are still there."""
        return tuple(link.name for link in self._connections.links)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the guarantee of an answer rests on, for a model's card."""
        lost = self._connections.lost
        more = f" ({len(lost)} more lost on the way)" if lost else ""
        whose = "of a record at one party: a person with records at several pays at each"
        if self.schema.unit is not None:
            number = self.schema.parties_per_unit
            where = "one party" if number == 1 else f"up to {number} parties"
            whose = f"of a person whose records lie at {where}: one with records at more pays more"
        rests_on = (
            f"learnt from the rows of {len(self.parties)} parties{more}, protocol {self.protocol}: "
            f"{self._protocol.trust}; the epsilon is that {whose}"
        )
        if not self._paid_again:
            return (rests_on,)
        who = ", ".join(dict.fromkeys(name for name, _ in self._paid_again))
        besides = as_float(sum((amount for _, amount in self._paid_again), Fraction(0)))
        return (
            rests_on,
            f"{len(self._paid_again)} of the questions were paid again, for epsilon {besides:.6g} "
            f"in all, which the total covers: the process of {who} had ended, and with it the "
            "keys under which they were asked",
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
        for name, (left, key, doubted) in self._connections.ask_all("left", check=is_left):
            self._protocol.check_party(name, key, len(self.parties), doubted)
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
        again._missed, again._paid_again = set(), []
        return again

    def _check_allowed(self, *questions: str) -> None:
        """Raise if something cannot be asked of cells, or a party does not allow it."""
        for question in questions:
            if not self.can(question):
                self._refuse(question)
        asks = {**self._protocol.asks, **self._protocol.asks_of_scores}
        needed = dict.fromkeys(asks[question] for question in questions if question in asks)
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
        self._protocol.check_choices(self.schema, criterion, options, how)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections, of lost parties, too; parties settle their books."""
        self._connections.closed = True
        with ExitStack() as closing:  # all of them, whatever one does
            closing.callback(self._protocol.close)
            for link in self._links:
                closing.callback(link.close)

    def root(self, view: View | None = None) -> FederatedCells:
        """Return the whole table as one cell. Free."""
        view = View.of_bins(self.schema) if view is None else view
        number = self._name("root", view)
        place = Place(portion=self._portion)
        return FederatedCells(self, self.ledger.root, place, view, number)

    def parts(self, count: int, key: int, view: View | None = None) -> FederatedCells:
        """Return the table as disjoint parts by a hash of each record. Free."""
        view = View.of_bins(self.schema) if view is None else view
        number = self._name("parts", count, key, view)
        ledger_cells = self.ledger.root.divide(np.zeros(count, dtype=np.intp))
        place = Place(parts=count, portion=self._portion)
        return FederatedCells(self, ledger_cells, place, view, number)

    def _name(self, question: str, *given: Any) -> int:
        """Return the number of new cells of the table, or of the portion that this is."""
        if self._division is None:
            return self._connections.name(question, *given)
        about = self._division.number
        return self._connections.name(question, self._portion, *given, target=about)

    def portions(self, shares: Mapping[str, Fraction], key: int) -> dict[str, Table]:
        """Return disjoint tables, to learn from and to test on; a hash decides on records. Free.

        Every party divides its own table, by the same key, and its own books see to it that no
        record pays for both (docs/proofs/evaluation.md). A person with records at several parties
        is on the same side everywhere, if all parties call the person by the same identifier.
        """
        if self._division is not None:
            raise FederationError("parties divide a table once, before anything is asked")
        division = _Division(self._connections.name("portions", dict(shares), key))
        finalize(division, self._connections.forget, division.number)
        found: dict[str, Table] = {}
        for name, books in zip(shares, self.ledger.portions(len(shares)), strict=True):
            again = object.__new__(FederatedTable)
            again.__dict__.update(self.__dict__, ledger=books, _portion=name, _division=division)
            found[name] = again
        return found

    def start_scores(self, start: Sequence[float]) -> FederatedScores:
        """Give every record the same public score, or one per class, to be added to. Free."""
        return FederatedScores(self, start)

    def _refuse(self, question: str) -> NoReturn:
        raise FederationError(
            f"a federation cannot answer {question!r}: it does not sum over parties"
        )


class _Division:
    """Stands for the portions of the parties' tables, as long as somebody has one of them."""

    def __init__(self, number: int) -> None:
        #: What the parties call them.
        self.number = number


def _count(value: int, name: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise FederationError(f"{name} must be a whole number from 1 to the number of parties")
    return int(value)


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
            "the unit": schema.unit == common.unit,
            "rows_per_unit": schema.rows_per_unit == common.rows_per_unit,
            "parties_per_unit": schema.parties_per_unit == common.parties_per_unit,
        }
        for part, same in parts.items():
            if not same:
                raise FederationError(
                    f"the parties have different schemas: {part} of {name!r} and {first!r} differ"
                )
    # Only owners' ledger files depend on the tables' names; nothing that is learnt does.
    if len({schema.table for schema in schemas.values()}) > 1:
        return replace(common, table=None)
    return common
