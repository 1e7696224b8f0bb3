"""How well a released model predicts the records of cells: what a test score is made of.

Each is charged before it is computed; the engine gives whole numbers, and only noisy ones, or a
choice, leave the wall. What may be asked, and with what, is in ``interface``; here is what it
costs. Proof: ``docs/proofs/evaluation.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.engines import UNIT, ScoresHandle
from privet.errors import DataError
from privet.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    PermuteAndFlip,
    Question,
    QuestionKind,
    Released,
    exact,
)
from privet.privacy.budget import Amount
from privet.tables.cells import behind_cells, behind_table
from privet.tables.scores import Scores
from privet.tables.slopes import SummingCells

#: More bins of scores are refused.
_MOST_BINS = 4_096


@dataclass(frozen=True)
class Tally:
    """Released sums over records, in records, and what their noise is like.

    Attributes
    ----------
    values : array
    variance : float
        Of the noise of each of them.
    laplace : bool
        Whether the noise has the tails of Laplace's law; else those of Gauss's.
    """

    values: NDArray[np.float64]
    variance: float
    laplace: bool


class ScoredCells(SummingCells):
    """Cells that are asked how well scores, sums of released values, fit their records."""

    def noisy_confusion(self, scores: Scores, amount: Amount) -> Tally:
        """Return how many records of each class are predicted to be of each class, with noise.

        Privacy
        -------
        One integer per cell, class and predicted class; a record changes one of them by one.
        Discrete Laplace noise (pure budgets) or discrete Gaussian noise (zCDP budgets); costs the
        amount (docs/proofs/evaluation.md).
        """
        return self._outcomes(scores, None, QuestionKind.CONFUSION, amount)

    def noisy_score_counts(self, scores: Scores, ends: Sequence[float], amount: Amount) -> Tally:
        """Return how many records of each class have scores between public ends, with noise.

        Privacy
        -------
        One integer per cell, class and bin; a record changes one of them by one. Discrete Laplace
        noise (pure budgets) or discrete Gaussian noise (zCDP budgets); costs the amount
        (docs/proofs/evaluation.md).
        """
        return self._outcomes(scores, ends, QuestionKind.SCORE_COUNTS, amount)

    def _outcomes(
        self, scores: Scores, ends: Sequence[float] | None, kind: QuestionKind, amount: Amount
    ) -> Tally:
        known, marks = self._known(scores, ends)
        mechanisms = self._noises(exact(amount), l1=1, squared_l2=1)
        self._charge(mechanisms, Question(kind))
        engine = behind_table[self._table].engine
        counts = Exact(engine.outcome_counts(behind_cells[self], known, marks))
        return _tally(self._release(counts, mechanisms), mechanisms[0], self._parts)

    def _known(
        self, scores: Scores, ends: Sequence[float] | None
    ) -> tuple[ScoresHandle, list[float] | None]:
        """Return scores of records with classes, and ends between them, or raise."""
        self._need_classes()
        known = scores._of(self._table)
        if ends is None:
            return known, None
        marks = np.array([*ends], dtype=np.float64)
        if not np.isfinite(marks).all() or (np.diff(marks) <= 0).any() or len(marks) >= _MOST_BINS:
            raise ValueError(f"ends are finite, in rising order, and fewer than {_MOST_BINS}")
        if known.columns != 1:
            raise DataError("this question needs two classes")
        return known, marks.tolist()

    def noisy_errors(self, scores: Scores, amount: Amount) -> Tally:
        """Return sums of how far the records' targets are from their scores, with noise.

        Privacy
        -------
        A record adds four whole numbers to one cell, none of them negative, that add up to exactly
        2^16: the bound in absolute sum, and its square in squares. Discrete Laplace noise (pure
        budgets) or discrete Gaussian noise (zCDP budgets); costs the amount
        (docs/proofs/evaluation.md).
        """
        self._need_number()
        known = scores._of(self._table)
        mechanisms = self._noises(exact(amount), l1=UNIT, squared_l2=UNIT**2)
        self._charge(mechanisms, Question(QuestionKind.ERRORS))
        engine = behind_table[self._table].engine
        sums = Exact(engine.error_sums(behind_cells[self], known))
        return _tally(self._release(sums, mechanisms), mechanisms[0], self._parts, UNIT)

    def choose_scores(self, scores: Sequence[Scores], amount: Amount) -> list[int]:
        """Return for every cell which of several scores predict its records well, by their places.

        Privacy
        -------
        Permute-and-flip (pure budgets) or the exponential mechanism on the records with the right
        class, of which a record raises each model's number by 0 or 1: spread 1; for a number on one
        less the squared error, in fixed point; costs the amount (docs/proofs/evaluation.md).
        """
        if not scores:
            raise ValueError("give at least one model's scores")
        known = [each._of(self._table) for each in scores]
        of_classes = self.schema.classes is not None
        select = PermuteAndFlip if self._budget.accountant == "pure" else Exponential
        (each,) = self._epsilons(exact(amount))
        spread = (1 if of_classes else UNIT) * self._parts
        mechanism = select(spread, each)
        self._charge([mechanism], Question(QuestionKind.MODEL, count=len(scores)))
        inside, handle = behind_table[self._table], behind_cells[self]
        found = []
        for one in known:
            if of_classes:
                counts = inside.engine.outcome_counts(handle, one, None)
                found.append(np.trace(counts, axis1=1, axis2=2))
            else:
                found.append(inside.engine.error_sums(handle, one)[:, 2:].sum(axis=1))
        sums = np.stack(found, axis=1)
        return [mechanism.choose(Exact(row), inside.noise) for row in sums]

    def _need_number(self) -> None:
        if self.schema.classes is not None:
            raise DataError("this question needs a number: the target of the schema has classes")


def _tally(
    released: Released,
    mechanism: DiscreteLaplace | DiscreteGaussian,
    per_record: int,
    unit: int = 1,
) -> Tally:
    """Return released numbers in records, with the variance of their noise."""
    laplace = isinstance(mechanism, DiscreteLaplace)
    variance = mechanism.variance if isinstance(mechanism, DiscreteLaplace) else mechanism.scale**2
    values = np.asarray(released, dtype=np.float64) / unit
    return Tally(values, variance / (unit * per_record) ** 2, laplace)
