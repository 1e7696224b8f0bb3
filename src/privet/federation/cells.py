"""Disjoint cells of a table that several parties hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.errors import BudgetError, BudgetExceeded, FederationError
from privet.federation.answers import anew
from privet.federation.protocols import AggregationProtocol, SplitChoice
from privet.privacy import (
    DiscreteLaplace,
    LedgerCells,
    Place,
    Question,
    QuestionKind,
    Released,
    exact,
)
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import (
    Candidates,
    Cells,
    Multiway,
    Scores,
    Split,
    Tally,
    View,
    list_candidates,
)

if TYPE_CHECKING:
    from privet.federation.table import FederatedTable

Amounts = Amount | Sequence[Amount]


class FederatedCells(Cells):
    """Disjoint cells of a federated table, asked all at once.

    Answers have shapes that depend on the schema and on earlier answers only.
    """

    def __init__(
        self,
        table: FederatedTable,
        ledger_cells: LedgerCells,
        place: Place,
        view: View,
        number: int,
    ) -> None:
        self._table = table
        self._ledger_cells = ledger_cells
        self._place = place
        self._view = view
        #: What the parties call them.
        self._number = number
        finalize(self, table._connections.forget, number)

    def __len__(self) -> int:
        return len(self._ledger_cells)

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
        return self._derive("take", self._ledger_cells.take(positions), self._place, positions)

    def split(self, splits: Sequence[Split]) -> FederatedCells:
        """Return the children of all cells, those of the first cell first. Free."""
        if not splits or len(splits) != len(self):
            raise ValueError("give one split for every cell")
        parents = np.repeat(np.arange(len(self)), [split.n_children for split in splits])
        place = replace(self._place, level=self.depth + 1)
        return self._derive("split", self._ledger_cells.divide(parents), place, list(splits))

    def partition(self, by: str) -> FederatedCells:
        """Return the cells divided by a feature: one part for every code of it. Free."""
        split = Multiway().split(self.schema.names.index(by), 0, 0, self.view)
        return self.split([split] * len(self))

    def _derive(
        self, question: str, ledger_cells: LedgerCells, place: Place, *given: Any
    ) -> FederatedCells:
        number = self._table._connections.name(question, *given, target=self._number)
        return FederatedCells(self._table, ledger_cells, place, self.view, number)

    # Private: the table's protocol says how.

    def noisy_counts(self, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise."""
        return self._kept(self._protocol.noisy_counts(self, amount), amount)

    def noisy_class_counts(self, amount: Amounts) -> Released:
        """Return how many records of each class each cell has, with noise.

        Privacy
        -------
        Per party and record: the amount. The noise is each party's own, or one noise that all
        parties' shares make together (docs/proofs/federation.md).
        """
        if self.schema.classes is None:
            raise FederationError("a federation learns classes, not numbers")
        if not len(self):
            return Released(np.zeros((0, len(self.schema.classes)), dtype=np.int64))
        return self._kept(self._protocol.noisy_class_counts(self, amount), amount)

    def _kept(self, released: Released, amount: Amounts) -> Released:
        """Let the coordinator's books remember released numbers, if they are of all records."""
        noises = math.sqrt(self._protocol.noises(len(self._table.parties)))
        alone = [DiscreteLaplace(1, each).deviation for each in self._amounts(amount)]
        self._table.ledger.keep_count(
            self._ledger_cells, released, [noises * deviation for deviation in alone]
        )
        return released

    def choose_labels(self, amount: Amount) -> list[int]:
        """Return for every cell a class that is frequent there."""
        return self._protocol.choose_labels(self, amount)

    def choose_best(
        self, candidates: Candidates, criterion: Criterion, amount: Amount, *, how: str
    ) -> list[Split]:
        """Return one split per cell, good by a criterion."""
        self._table.check_choices(criterion, len(list_candidates(candidates, self.view)), how)
        if not len(self):
            return []
        allowed = np.ones((len(self), len(self.schema.names)), dtype=bool)
        choice = SplitChoice(candidates, criterion, exact(amount), allowed, how, alike=True)
        return self._protocol.choose_splits(self, choice)

    def choose_splits(
        self,
        candidates: Candidates,
        criterion: Criterion,
        amount: Amounts,
        allowed: NDArray[np.bool_],
        *,
        flip: bool = True,
    ) -> list[Split]:
        """Return one split per cell, good by a criterion, of the features that it may use.

        One amount for all cells. Secure sums always choose by permute-and-flip.
        """
        if isinstance(amount, Sequence):
            raise BudgetError("parties choose splits for one amount, the same for all cells")
        self._table.check_choices(criterion, len(list_candidates(candidates, self.view)))
        if not len(self):
            return []
        how = "flip" if flip else "exponential"
        choice = SplitChoice(candidates, criterion, exact(amount), allowed, how, alike=False)
        return self._protocol.choose_splits(self, choice)

    def noisy_confusion(self, scores: Scores, amount: Amount) -> Tally:
        """Return how many records of each class are predicted to be of each class, with noise.

        Privacy
        -------
        Per party and record: the amount, as for class counts (docs/proofs/evaluation.md, "Several
        parties"). The variance is that of the sum's noise.
        """
        classes = len(self.schema.classes or ())
        kind, shape = QuestionKind.CONFUSION, (classes, classes)
        return self._outcomes("noisy_confusion", kind, scores, (), amount, shape)

    def noisy_score_counts(self, scores: Scores, ends: Sequence[float], amount: Amount) -> Tally:
        """Return how many records of each of two classes have scores between ends, with noise.

        Privacy
        -------
        As for :meth:`noisy_confusion`.
        """
        kind, shape = QuestionKind.SCORE_COUNTS, (2, len(ends) + 1)
        given = (tuple(map(float, ends)),)
        return self._outcomes("noisy_score_counts", kind, scores, given, amount, shape)

    def _outcomes(
        self,
        question: str,
        kind: QuestionKind,
        scores: Scores,
        given: tuple[Any, ...],
        amount: Amount,
        shape: tuple[int, int],
    ) -> Tally:
        if not isinstance(scores, FederatedScores) or scores.home is not self._table:
            raise ValueError("these scores belong to another table")
        about, numbers = (scores.told, *given), math.prod(shape)
        found = self._protocol.count_outcomes(self, question, kind, about, amount, numbers)
        return replace(found, values=found.values.reshape(len(self), *shape))

    # Books and links, for the protocols

    @property
    def _protocol(self) -> AggregationProtocol:
        return self._table._protocol

    def _are_splits(self, answer: Any) -> bool:
        return (
            type(answer) is list
            and len(answer) == len(self)
            and all(type(split) is Split and anew(split).fits(self.view) for split in answer)
        )

    def _amounts(self, amount: Amounts) -> list[Amount]:
        if isinstance(amount, Sequence):
            if len(amount) != len(self):
                raise BudgetError("give one amount for all cells, or one for each")
            return [exact(each) for each in amount]
        return [exact(amount)]

    def _charge(self, mechanisms: Sequence[Any], question: Question) -> None:
        one = mechanisms[0] if len(mechanisms) == 1 else mechanisms
        try:
            self._table.ledger.charge(self._ledger_cells, one, question, self._place)
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
        return self._table._connections.ask_all(question, *given, target=self._number, **options)

    def _refuse(self, question: str) -> NoReturn:
        raise FederationError(
            f"a federation cannot answer {question!r}: it does not sum over parties"
        )


class FederatedScores(Scores):
    """What a released model says of every record of the parties: sums of public values.

    Parties are told all of it with every question about it, and make scores of their own records.
    """

    def __init__(self, table: FederatedTable, start: Sequence[float]) -> None:
        self.home = table
        self._start = tuple(map(float, start))
        self._added: list[tuple[FederatedCells, tuple[float, ...]]] = []

    def add(self, cells: Cells, values: NDArray[np.float64]) -> None:
        """Add public values to the scores of the records of cells. Free."""
        if not isinstance(cells, FederatedCells) or cells._table is not self.home:
            raise ValueError("these scores belong to another table")
        if values.shape != (len(cells), len(self._start)) or not np.isfinite(values).all():
            raise ValueError("give finite values, one row per cell and one column per score")
        self._added.append((cells, tuple(values.ravel().tolist())))

    @property
    def told(self) -> tuple[Any, ...]:
        """What parties are told: the start, and values by the numbers of cells."""
        return self._start, tuple((cells._number, values) for cells, values in self._added)
