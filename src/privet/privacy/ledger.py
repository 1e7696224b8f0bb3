"""The books: what was asked, of which part of the table, at what cost.

The ledger knows the table as *cells*: disjoint parts that are divided further. A charge to several
cells at once is paid once by each record, since no record lies in two of them; charges to the same
cell add up. Dividing a cell twice makes two sequences of questions about the same records, so
the two add up as well:

    cost(cell) = own charges + sum over its divisions of the largest cost of a part

The table's total is the root's cost, computed exactly and kept in two accountants, pure epsilon and
zCDP. A third book has the deltas of thresholds, which only the whole table is charged for; they add
up. A charge is refused *before* anything is computed if the total would exceed the budget.

A *subledger* keeps the books of one fit. To the table's ledger it is one more division of the
whole, with one part: so fits add up, and a charge must be within both budgets.
"""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet import fragments
from privet.errors import BudgetError, BudgetExceeded
from privet.privacy.budget import Amount, Budget, Cost, float_below
from privet.privacy.counts import NoisyCount
from privet.privacy.entries import Entry, MechanismFacts, Place, Question
from privet.privacy.words import mechanism_words, place_words, question_words

#: More entries are not shown in a notebook.
_MOST_SHOWN = 200

_ZERO = Fraction(0)


class Recalled(Exception):
    """A question is charged, and shall not be answered: see :meth:`Ledger.recalling`."""


class _Mechanism(Protocol):
    @property
    def facts(self) -> MechanismFacts: ...

    @property
    def cost(self) -> Cost: ...


class _Group:
    """Cells that came out of one division (of several parents at once)."""

    __slots__ = ("charges", "cost", "divisions", "parent", "parents", "peak", "root")

    def __init__(self, parent: _Group | None, parents: list[int], *, of_ledger: bool) -> None:
        self.parent = parent
        # The first group of the ledger that this one belongs to.
        self.root: _Group = self if parent is None or of_ledger else parent.root
        self.parents = parents
        # Per accountant: the cost of every cell, and the dearest part of every parent.
        size = len(parents)
        self.cost: tuple[list[Amount], list[Amount]] = ([_ZERO] * size, [_ZERO] * size)
        width = 0 if parent is None else len(parent.parents)
        self.peak: tuple[list[Amount], list[Amount]] = ([_ZERO] * width, [_ZERO] * width)
        # For the dearest path: what was charged to which cells, and what was divided further.
        self.charges: list[tuple[list[int], list[Entry]]] = []
        self.divisions: list[_Group] = []


class LedgerCells:
    """The ledger's side of disjoint cells: it knows what each has paid. A ledger makes them."""

    __slots__ = ("_group", "_index")

    def __init__(self, group: _Group, index: NDArray[np.intp]) -> None:
        self._group = group
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def take(self, chosen: NDArray[Any]) -> LedgerCells:
        """Return some of the cells, by mask or by position, none of them twice. Free."""
        index = self._index[chosen]
        if len(np.unique(index)) < len(index):
            raise BudgetError("the same cell is taken twice: cells must be disjoint")
        return LedgerCells(self._group, index)

    @property
    def cover_all(self) -> bool:
        """Whether every record lies in one of them: no cell was left out on the way."""
        index: Sequence[int] = self._index.tolist()
        group: _Group = self._group
        while len(set(index)) == len(group.parents):
            if group is group.root or group.parent is None:
                return True
            index, group = group.parents, group.parent
        return False

    def divide(self, parents: NDArray[np.intp]) -> LedgerCells:
        """Return new cells; number i is a part of cell ``parents[i]``. Free.

        The caller promises that the parts of one cell are disjoint, and that every record of a
        cell lies in one of its parts.
        """
        parents = np.asarray(parents, dtype=np.intp)
        if np.any(parents < 0):
            raise BudgetError("every part needs a cell that it is a part of")
        origin = self._index[parents].tolist()
        return LedgerCells(_Group(self._group, origin, of_ledger=False), np.arange(len(origin)))


class Ledger:
    """A budget for one table, charged question by question.

    Parameters
    ----------
    budget : Budget
        What may be spent in all.

    Examples
    --------
    >>> from privet.privacy import QuestionKind, DiscreteLaplace
    >>> ledger = Ledger(Budget(1.0))
    >>> how_many, count = Question(QuestionKind.ROW_COUNT), DiscreteLaplace(1, Fraction(1, 2))
    >>> ledger.charge(ledger.root, count, how_many, Place())
    >>> halves = ledger.root.divide(np.array([0, 0]))
    >>> ledger.charge(halves, count, how_many, Place(level=1))
    >>> float(ledger.total.epsilon)
    1.0
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._entries: list[Entry] = []
        self._delta: Amount = _ZERO
        #: What may be spent besides the budget, in its accountant's amounts: by questions of its
        #: own, and by those of the portion for which it is the most.
        self._besides: Amount = _ZERO
        self._besides_below: Amount = _ZERO
        #: Whether these are books for a portion, with the whole budget of those above.
        self._is_portion = False
        self._counts: dict[int, NoisyCount] = {}
        self._lock = threading.Lock()
        self._closed = self._recalling = False
        #: In a forked process there are two of these books, and each would spend the whole budget.
        self._process = os.getpid()
        self._root = _Group(None, [0], of_ledger=True)
        #: The ledgers that a charge is written to, this one first.
        self._chain: tuple[Ledger, ...] = (self,)

    def __repr__(self) -> str:
        left, limit = readable(self.left, self.budget), readable(self.budget.limit, self.budget)
        return f"<Ledger: {left} of {limit} left, {len(self.entries)} entries>"

    def _repr_html_(self) -> str:
        unit = "epsilon" if self.budget.accountant == "pure" else "rho"
        rows = [
            (
                question_words(entry.question),
                place_words(entry.place),
                entry.cells,
                mechanism_words(entry.mechanism),
                f"{entry.epsilon if unit == 'epsilon' else entry.rho:.4g}",
            )
            for entry in self.entries[:_MOST_SHOWN]
        ]
        head = ["question", "of", "cells", "mechanism", f"{unit} for each record"]
        return fragments.whole(
            fragments.paragraph(repr(self), bold=True),
            fragments.table(head, rows, "cells of one level are disjoint: a record pays in one"),
        )

    def subledger(self, budget: Budget) -> Ledger:
        """Return books for a part of what is left, such as one fit's.

        Whatever is charged there is charged here as well. Several may be open at a time; if they
        spend what another one was opened for, its charges are refused.

        Raises
        ------
        BudgetError
            If the budget has a delta or a rho, and this one is pure.
        BudgetExceeded
            If less is left than the budget may cost here. Nothing is written down.
        """
        if budget.accountant != "pure" and self.budget.accountant == "pure":
            raise BudgetError(
                f"this table has a pure budget ({self.budget}): ask for an epsilon without "
                "delta, or make the table with a Budget that has a delta or a rho"
            )
        if not self.affords(budget):
            left = readable_left(Fraction(0) if self._closed else self.left, self.budget)
            needed = readable(self.budget.amount(budget.worst), self.budget)
            raise BudgetExceeded(
                f"this may cost {needed}, and the table's budget ({self.budget}) has less left: "
                f"{left}. Nothing was computed and nothing was spent",
                left=left,
            )
        return self._below(budget, self._root, 0)

    def portions(self, count: int) -> list[Ledger]:
        """Return books for disjoint parts of the table, each with the whole budget.

        To this ledger they are one division of the whole: the dearest of them is what they cost.
        The caller promises that no record is in two of them.
        """
        parts = _Group(self._root, [0] * count, of_ledger=False)
        found = [self._below(self.budget, parts, number) for number in range(count)]
        for books in found:
            books._is_portion = True
        return found

    def _below(self, budget: Budget, group: _Group, cell: int) -> Ledger:
        """Return books of a budget for one cell of a group."""
        found = Ledger(budget)
        found._root = _Group(group, [cell], of_ledger=True)
        found._lock = self._lock
        found._chain = (found, *self._chain)
        return found

    def affords(self, budget: Budget) -> bool:
        """Tell whether what is left pays for all that may be spent within another budget.

        Here and in the ledgers above, which count it in their own accountant.
        """
        if any(ledger._closed for ledger in self._chain):
            return False
        delta = Fraction(budget.threshold_delta)
        totals = self._totals(self._root, [0], [budget.worst], delta)[0]
        return all(ledger._covers(total) for ledger, total in zip(self._chain, totals, strict=True))

    def _totals(
        self, group: _Group, index: list[int], costs: list[Cost], delta: Amount
    ) -> tuple[list[Cost], list[_Update]]:
        """Return what a charge would bring the totals of this ledger and those above to.

        And what it would change.
        """
        in_epsilon = _raise_costs(group, index, [cost.epsilon for cost in costs], book=0)
        in_rho = _raise_costs(group, index, [cost.rho for cost in costs], book=1)
        totals = [
            Cost(
                _new_total(ledger._root.cost[0], in_epsilon),
                _new_total(ledger._root.cost[1], in_rho),
                ledger._delta + delta,
            )
            for ledger in self._chain
        ]
        return totals, in_epsilon + in_rho

    @property
    def root(self) -> LedgerCells:
        """The whole table as one cell."""
        return LedgerCells(self._root, np.arange(1))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The questions so far, in order."""
        return tuple(self._entries)

    @property
    def counts(self) -> tuple[NoisyCount, ...]:
        """The released numbers of all records, and of those of each class: the least noisy."""
        return tuple(self._counts.values())

    def keep_count(
        self, cells: LedgerCells, released: NDArray[np.int64], deviations: Sequence[float]
    ) -> None:
        """Remember a released number of records, if the cells are all of the table.

        Parameters
        ----------
        cells : LedgerCells
            The cells that were asked.
        released : array
            What left: one number per cell, or one per cell and class.
        deviations : sequence of float
            The standard deviation of the noise: one for all cells, or one for each.
        """
        if not cells.cover_all:
            return
        variances = [deviation * deviation for deviation in deviations]  # infinite, not an error
        variance = sum(variances) if len(variances) > 1 else len(cells) * variances[0]
        if variance == math.inf:
            return
        values = np.atleast_1d(np.asarray(released).sum(axis=0)).tolist()
        found = NoisyCount(tuple(map(int, values)), math.sqrt(variance))
        with self._lock:
            for ledger in self._chain:
                known = ledger._counts.get(len(values))
                if known is None or found.deviation < known.deviation:
                    ledger._counts[len(values)] = found

    @property
    def total(self) -> Cost:
        """What the most expensive record has paid, in both accountants, and all deltas."""
        return Cost(self._root.cost[0][0], self._root.cost[1][0], self._delta)

    def path(self, unit: str) -> tuple[int, ...]:
        """Return the entries that the total consists of: those that the dearest record has paid.

        Parameters
        ----------
        unit : str
            ``"epsilon"`` or ``"rho"``: in which book the record is the dearest.

        Returns
        -------
        tuple of int
            Positions in :attr:`entries`, rising. Their amounts add up to :attr:`total`, exactly.
        """
        book = {"epsilon": 0, "rho": 1}[unit]
        with self._lock:
            places = {id(entry): place for place, entry in enumerate(self._entries)}
            found: list[int] = []
            waiting = [(self._root, 0)]
            while waiting:
                group, cell = waiting.pop()
                for index, entries in group.charges:
                    if cell in index:
                        one = entries[index.index(cell)] if len(entries) > 1 else entries[0]
                        found.append(places[id(one)])
                for division in group.divisions:
                    costs = division.cost[book]
                    parts = [i for i, parent in enumerate(division.parents) if parent == cell]
                    if parts:
                        waiting.append((division, max(parts, key=lambda i: costs[i])))
        return tuple(sorted(found))

    @property
    def left(self) -> Amount:
        """What is left of the budget, in its accountant's amounts."""
        limit = self.budget.limit + self._all_besides
        return limit if limit == math.inf else max(_ZERO, limit - self.budget.amount(self.total))

    @property
    def _all_besides(self) -> Amount:
        return self._besides + self._besides_below

    def rise(self, amount: Amount) -> Amount:
        """Return by how much a pure amount, spent here, would raise the dearest record's epsilon.

        For the books of a portion, by less than that if a record of another one has paid more.
        """
        if amount == math.inf:
            return amount
        totals, _ = self._totals(self._root, [0], [Cost(amount, _ZERO)], _ZERO)
        return totals[-1].epsilon - self._chain[-1].total.epsilon

    def pay_besides(self, amount: Amount) -> None:
        """Let an amount be spent besides a pure budget, for a question that is paid again.

        For the books of a coordinator, who asks parties within books of their own, and for those
        of a portion in them: when a party's process ends in the middle of a secret question, all
        are asked, and charged, again.
        """
        own = all(books._is_portion for books in self._chain[:-1])
        if self.budget.accountant != "pure" or not own or not amount >= 0:
            raise BudgetError("only books of their own, and in epsilon, can pay for a loss")
        if self.budget.limit != math.inf:
            with self._lock:
                self._besides += amount
                for below, above in pairwise(self._chain):
                    above._besides_below = max(above._besides_below, below._all_besides)

    def _covers(self, total: Cost) -> bool:
        """Tell whether a total is within the budget, and what may be spent besides."""
        if self._all_besides:
            total = Cost(total.epsilon - self._all_besides, total.rho, total.delta)
        return self.budget.covers(total)

    def close(self) -> None:
        """End the books: every further charge is refused, whatever is left of the budget."""
        with self._lock:
            self._closed = True

    def charge(
        self,
        cells: LedgerCells,
        mechanisms: _Mechanism | Sequence[_Mechanism],
        question: Question,
        place: Place,
    ) -> None:
        """Write down a question, or refuse it.

        Parameters
        ----------
        cells : LedgerCells
            The disjoint cells that are asked.
        mechanisms : mechanism, or one per cell
            How the answers will be made private, hence what they cost.
        question : Question
        place : Place
            Of which part of the table.

        Raises
        ------
        BudgetExceeded
            If the total would exceed the budget. Nothing is written down then.
        """
        if not len(cells):
            return
        if isinstance(mechanisms, Sequence):
            if len(mechanisms) != len(cells):
                raise BudgetError("give one mechanism for all cells, or one for each")
            costs = [mechanism.cost for mechanism in mechanisms]
            ways = [(mechanism.facts, mechanism.cost) for mechanism in mechanisms]
            by_way = {
                way: Entry(question, place, number, *way) for way, number in Counter(ways).items()
            }
            entries, of_cells = list(by_way.values()), [by_way[way] for way in ways]
            delta = sum((cost.delta for cost in costs), _ZERO)
        else:
            costs = [mechanisms.cost] * len(cells)
            entries = [Entry(question, place, len(cells), mechanisms.facts, costs[0])]
            of_cells = entries
            delta = len(cells) * costs[0].delta
        for entry in entries:
            for amount in (entry.cost.epsilon, entry.cost.rho, entry.cost.delta):
                if not amount >= 0 or (isinstance(amount, float) and amount != math.inf):
                    raise BudgetError("a cost must be an exact amount, and not negative")
        if cells._group.root is not self._root:
            raise BudgetError("these cells belong to another ledger")
        index = cells._index.tolist()
        if len(set(index)) < len(index):
            raise BudgetError("the same cell is asked twice in one question")
        if delta and cells._group is not self._root:
            raise BudgetError("a delta is charged to the whole table only")
        if any(ledger._process != os.getpid() for ledger in self._chain):
            raise BudgetError(
                "this process was forked from the one that opened the table, which may spend the "
                "same budget: ask there, or open the table here. Nothing was spent"
            )
        with self._lock:
            if any(ledger._closed for ledger in self._chain):
                raise BudgetExceeded(
                    "the books of this table are closed: its fit is finished", left="nothing"
                )
            totals, changes = self._totals(cells._group, index, costs, delta)
            for ledger, total in zip(self._chain, totals, strict=True):
                if not ledger._covers(total):
                    left = readable_left(ledger.left, ledger.budget)
                    raise BudgetExceeded(
                        f"the question {question_words(question)!r} would bring the total above "
                        f"the budget ({ledger.budget}); left: {left}. Nothing was computed and "
                        "nothing was spent",
                        left=left,
                    )
            for ledger in self._chain:
                ledger._entries += entries
                ledger._delta += delta
            cells._group.charges.append((index, of_cells))
            _join(cells._group)
            # From the root down: an interruption leaves the books too high, never too low.
            for values, changed in reversed(changes):
                for i, value in changed.items():
                    values[i] = value
        if any(ledger._recalling for ledger in self._chain):
            raise Recalled

    @contextmanager
    def recalling(self) -> Iterator[None]:
        """Charge again what was answered before a restart: every charge raises :class:`Recalled`.

        Here and in the ledgers below, such as those of portions.

        It is written down then, and whoever asked comes to no answer: nothing is computed, and no
        noise is drawn. For one thread.
        """
        self._recalling = True
        try:
            yield
        finally:
            self._recalling = False


_Update = tuple[list[Amount], dict[int, Amount]]


def _join(group: _Group) -> None:
    """Let a group's parents know of it, now that it was charged; others need not be kept."""
    while group.parent is not None and not any(group is one for one in group.parent.divisions):
        group.parent.divisions.append(group)
        group = group.parent


def _raise_costs(
    group: _Group, index: list[int], amounts: list[Amount], book: int
) -> list[_Update]:
    """Return what a charge would change, from its cells up to the table's root."""
    updates: list[_Update] = []
    while True:
        costs = group.cost[book]
        # Most cells share a few amounts, often with those beside them: add each pair once.
        sums: dict[tuple[int, int], Amount] = {}
        raised: dict[int, Amount] = {}
        cost: Amount = _ZERO
        step: Amount | None = None
        total: Amount = _ZERO
        for i, more in zip(index, amounts, strict=True):
            if costs[i] is not cost or more is not step:
                cost, step = costs[i], more
                pair = (id(cost), id(step))
                if pair not in sums:
                    sums[pair] = cost + more
                total = sums[pair]
            raised[i] = total
        updates.append((costs, raised))
        if group.parent is None:
            return updates
        peaks, parents = group.peak[book], group.parents
        higher: dict[int, Amount] = {}
        exceeds: dict[tuple[int, int], bool] = {}
        for i, value in raised.items():
            parent = parents[i]
            known = higher.get(parent)
            if known is None:
                known = peaks[parent]
            if value is known:
                continue
            pair = (id(value), id(known))
            if pair not in exceeds:
                exceeds[pair] = value > known
            if exceeds[pair]:
                higher[parent] = value
        updates.append((peaks, higher))
        index = list(higher)
        differences: dict[tuple[int, int], Amount] = {}
        amounts = []
        for parent, value in higher.items():
            pair = (id(value), id(peaks[parent]))
            if pair not in differences:
                differences[pair] = value - peaks[parent]
            amounts.append(differences[pair])
        group = group.parent


def _new_total(costs: list[Amount], updates: list[_Update]) -> Amount:
    """Return what the one cell of a root would cost after a charge."""
    return next((new.get(0, costs[0]) for values, new in updates if values is costs), costs[0])


def readable(amount: Amount, budget: Budget) -> str:
    """Return an amount with its unit, for people to read."""
    unit = "epsilon" if budget.accountant == "pure" else "rho"
    return f"{unit} {float(amount):.6g}"


def readable_left(amount: Amount, budget: Budget) -> str:
    """Return what is left, with its unit: in six digits, and no more than there is."""
    digits = f"{float(amount):.6g}"
    if Fraction(digits) > amount:
        below = Context(prec=6, rounding=ROUND_DOWN).create_decimal(float_below(amount))
        digits = f"{float(below):.6g}"
    unit = "epsilon" if budget.accountant == "pure" else "rho"
    return f"{unit} {digits}"
