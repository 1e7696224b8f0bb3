"""Every party adds its own noise to its counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privet.criteria import Criterion
from privet.errors import FederationError
from privet.federation.answers import counts_of, each_of
from privet.federation.protocols.base import AggregationProtocol, SplitChoice
from privet.privacy import DiscreteLaplace, Question, QuestionKind, Released, exact
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import Split, Tally

if TYPE_CHECKING:
    from privet.federation.cells import Amounts, FederatedCells


#: The variance of what is lost when a number is rounded.
_ROUNDING = 1 / 12


class NoisyCounts(AggregationProtocol):
    """Sums of every party's own noisy counts; splits are the best by noisy histograms.

    The histograms of all features share what a choice may cost.
    """

    name: ClassVar[str] = "noisy-counts"
    asks: ClassVar[Mapping[str, str]] = {
        "noisy_counts": "noisy_counts",
        "noisy_class_counts": "noisy_class_counts",
        "choose_labels": "noisy_class_counts",
        "choose_best": "noisy_class_counts",
        "choose_splits": "noisy_class_counts",
    }
    asks_of_scores: ClassVar[Mapping[str, str]] = {
        "noisy_confusion": "noisy_confusion",
        "noisy_score_counts": "noisy_score_counts",
    }

    @property
    def trust(self) -> str:
        """See :class:`AggregationProtocol`."""
        return "each party's own noise covers its rows"

    def check_choices(
        self, schema: Schema, criterion: Criterion, options: int, how: str | None
    ) -> None:
        """See :class:`AggregationProtocol`."""
        del schema, criterion, options
        if how not in (None, "flip"):
            raise FederationError(
                "by noisy counts, the best split is taken and none is drawn: leave 'flip', or use "
                "another protocol"
            )

    def noisy_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """See :class:`AggregationProtocol`."""
        check = counts_of((len(cells),))
        return self._sum(cells, "noisy_counts", amount, QuestionKind.ROW_COUNT, check)

    def noisy_class_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """See :class:`AggregationProtocol`."""
        check = counts_of((len(cells), len(cells.schema.classes or ())))
        return self._sum(cells, "noisy_class_counts", amount, QuestionKind.CLASS_COUNTS, check)

    def _sum(
        self,
        cells: FederatedCells,
        question: str,
        amount: Amounts,
        kind: QuestionKind,
        check: Callable[[Any], bool],
    ) -> Released:
        noises = [DiscreteLaplace(1, each) for each in cells._amounts(amount)]
        cells._charge(noises, Question(kind))
        answers = cells._ask(question, amount, check=check)
        return Released(np.sum([answer for _, answer in answers], axis=0))

    def count_outcomes(
        self,
        cells: FederatedCells,
        question: str,
        kind: QuestionKind,
        given: tuple[Any, ...],
        amount: Amount,
        numbers: int,
    ) -> Tally:
        """See :class:`AggregationProtocol`."""
        parts = cells.schema.unit_parts
        noise = DiscreteLaplace(parts, exact(amount))
        cells._charge([noise], Question(kind))
        check = counts_of((len(cells), numbers))
        answers = cells._ask(self.asks_of_scores[question], *given, amount, check=check)
        found = np.asarray(np.sum([answer for _, answer in answers], axis=0, dtype=np.float64))
        # Every answer has a noise of its own, and counts of persons were rounded.
        each = noise.variance / parts**2 + (_ROUNDING if parts > 1 else 0.0)
        return Tally(found, len(answers) * each, laplace=True)

    def choose_labels(self, cells: FederatedCells, amount: Amount) -> list[int]:
        """See :class:`AggregationProtocol`."""
        counts = np.asarray(cells.noisy_class_counts(amount))
        return [int(place) for place in counts.argmax(axis=1)]

    def choose_splits(self, cells: FederatedCells, choice: SplitChoice) -> list[Split]:
        """See :class:`AggregationProtocol`."""
        allowed, criterion, candidates = choice.allowed, choice.criterion, choice.candidates
        features = np.flatnonzero(allowed.any(axis=0)).tolist()
        classes = len(cells.schema.classes or ())
        parts = [cells.partition(cells.schema.names[feature]) for feature in features]
        each = [choice.amount / len(features)] * len(features)
        losses = []
        owners: list[tuple[int, int]] = []
        for feature, released in zip(features, self._count_several(parts, each), strict=True):
            counts = np.asarray(released).reshape(len(cells), -1, classes)
            children = candidates.children(feature, counts, range(len(cells)), cells.view)
            # No child has fewer than no records; cells may, so that their noise cancels in sums.
            found = criterion.losses(np.maximum(children, 0)).sum(axis=2)
            found = np.where(allowed[:, feature, None], found, np.iinfo(np.int64).max)
            losses.append(found)
            owners += [(feature, option) for option in range(found.shape[1])]
        best: list[int] = np.concatenate(losses, axis=1).argmin(axis=1).tolist()
        return [
            candidates.split(*owners[place], cell, cells.view) for cell, place in enumerate(best)
        ]

    def _count_several(
        self, several: Sequence[FederatedCells], amounts: Sequence[Amounts]
    ) -> list[Released]:
        """Return the noisy class counts of several cells in one round, as if asked in turn."""
        if not several:
            return []
        for cells, amount in zip(several, amounts, strict=True):
            noises = [DiscreteLaplace(1, each) for each in cells._amounts(amount)]
            cells._charge(noises, Question(QuestionKind.CLASS_COUNTS))
        classes = len(several[0].schema.classes or ())
        checks = [counts_of((len(cells), classes)) for cells in several]
        answers = several[0]._table._connections.ask_all(
            "noisy_class_counts",
            list(amounts),
            of=[cells._number for cells in several],
            check=each_of(checks),
        )
        return [
            cells._kept(Released(np.sum([answer[place] for _, answer in answers], axis=0)), amount)
            for place, (cells, amount) in enumerate(zip(several, amounts, strict=True))
        ]
