"""Sums of public functions of records, of residuals times these, and how well scores are scaled.

Each is charged before it is computed; the engine gives whole numbers, of which one record's part
has a length that is bounded exactly, and only noisy sums leave the wall. What may be asked, and
with what, is in ``interface``; here is what it costs. Proof: ``docs/proofs/slopes.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.engines import (
    CALIBRATION_SQUARES,
    LARGEST,
    STEP,
    UNIT,
    Basis,
    Peaks,
    Tabled,
)
from privet.errors import BudgetError, DataError
from privet.privacy import DiscreteGaussian, Exact, Question, QuestionKind, exact
from privet.privacy.budget import Amount
from privet.tables.cells import behind_cells, behind_table
from privet.tables.scores import Scores
from privet.tables.selection import SelectingCells

#: Squared lengths are counted in 64 bits.
_MOST_SQUARES = 2**62


@dataclass(frozen=True)
class Sums:
    """Sums over records, in their own units; made of released integers.

    Attributes
    ----------
    values : array
    deviation : float
        Standard deviation of the noise of each of them.
    """

    values: NDArray[np.float64]
    deviation: float


class SummingCells(SelectingCells):
    """Cells that add up public functions of their records. All cells together have one sum."""

    #: The functions that were last asked with, and what was made of them.
    _last_basis: tuple[Basis, Basis] | None = None

    def noisy_sums(self, basis: Basis, amount: Amount) -> Sums:
        """Return the sums of public functions over the records of all cells, with noise.

        Privacy
        -------
        A record adds its functions, whose squared length is at most the sum of the largest squares
        in their tables: whole numbers. Discrete Gaussian noise; costs the amount
        (docs/proofs/slopes.md).
        """
        basis = self._checked(basis)
        mechanism = self._gaussian(max(basis.most_squares(), 1), amount)
        self._charge([mechanism], Question(QuestionKind.SUMS))
        inside, handle = behind_table[self._table], behind_cells[self]
        features = [feature for feature, _ in basis.features]
        totals = [np.zeros(part.size, dtype=np.int64) for part in basis.parts]
        if features:
            for _, histograms in inside.engine.histograms(handle, features):
                for place, feature in enumerate(features):
                    totals[place] += histograms[feature].sum(axis=(0, 2), dtype=np.int64)
        if basis.of_cells is not None:
            totals[-1][:] = inside.engine.class_counts(handle).sum(axis=1)
        sums = [part.sums(total[:, None]) for part, total in zip(basis.parts, totals, strict=True)]
        found = mechanism.release(Exact(np.concatenate(sums)[:, 0]), inside.noise)
        unit = STEP * self._parts
        return Sums(found / unit, mechanism.deviation / unit)

    def noisy_slopes(
        self, scores: Scores, basis: Basis, amount: Amount, *, largest: float, longest: float
    ) -> Sums:
        """Return the sums of residuals times public functions over all cells, with noise.

        Privacy
        -------
        A record adds its residuals times its functions, in fixed point, shortened to
        ``largest * longest`` and rounded towards zero: the bound holds for the integers.
        Discrete Gaussian noise; costs the amount (docs/proofs/slopes.md).
        """
        self._need_classes()
        basis, known = self._checked(basis), scores._of(self._table)
        if not (0 < largest <= math.sqrt(2) and 0 < longest < 2**20):
            raise ValueError("residuals are at most the root of two, and functions below 2^20")
        bounds = max(math.floor(largest * UNIT), 1), max(math.floor(longest * STEP), 1)
        mechanism = self._gaussian((bounds[0] * bounds[1]) ** 2, amount)
        self._charge([mechanism], Question(QuestionKind.SLOPES))
        inside = behind_table[self._table]
        sums = Exact(inside.engine.slopes(behind_cells[self], known, basis, *bounds))
        unit = STEP * UNIT * self._parts
        return Sums(mechanism.release(sums, inside.noise) / unit, mechanism.deviation / unit)

    def noisy_calibration(
        self, scores: Scores, amount: Amount, *, shift: float, factor: float
    ) -> Sums:
        """Return how far scores, moved and stretched, are from fitting two classes, with noise.

        Privacy
        -------
        A record adds five numbers in fixed point, rounded towards zero, whose squares are at most
        2 + 3/16. Discrete Gaussian noise; costs the amount (docs/proofs/slopes.md).
        """
        self._need_classes()
        known = scores._of(self._table)
        if known.columns != 1:
            raise DataError("this question needs two classes")
        if not (math.isfinite(shift) and math.isfinite(factor)):
            raise ValueError("scores are moved and stretched by finite numbers")
        mechanism = self._gaussian(CALIBRATION_SQUARES, amount)
        self._charge([mechanism], Question(QuestionKind.CALIBRATION))
        inside = behind_table[self._table]
        given = float(shift), float(factor)
        sums = Exact(inside.engine.calibration(behind_cells[self], known, *given))
        unit = UNIT * self._parts
        return Sums(mechanism.release(sums, inside.noise) / unit, mechanism.deviation / unit)

    def _gaussian(self, squares: int, amount: Amount) -> DiscreteGaussian:
        if self._budget.accountant == "pure":
            raise BudgetError("this question needs a budget with delta, or of rho")
        return DiscreteGaussian(Fraction(squares * self._parts**2), exact(amount))

    def _checked(self, basis: Basis) -> Basis:
        """Return a basis made anew of plain arrays; refuse one that does not fit the cells.

        The last one is kept: learners ask with the same functions many times.
        """
        if self._last_basis is None or self._last_basis[0] is not basis:
            self._last_basis = basis, self._made_anew(basis)
        return self._last_basis[1]

    def _made_anew(self, basis: Basis) -> Basis:
        sizes = behind_cells[self].view.sizes
        features = tuple((feature, _anew(part)) for feature, part in basis.features)
        of_cells = None if basis.of_cells is None else _anew(basis.of_cells)
        named = [feature for feature, _ in features]
        if not all(type(j) is int and 0 <= j < len(sizes) for j in named) or len(set(named)) < len(
            named
        ):
            raise ValueError("functions are of features by their positions, each once")
        if any(part.size != sizes[feature] for feature, part in features) or (
            of_cells is not None and of_cells.size != len(self)
        ):
            raise ValueError("a function has one value for every code, or for every cell")
        made = Basis(features, of_cells)
        if not made.parts:
            raise ValueError("give at least one function")
        if made.most_squares() >= _MOST_SQUARES:
            raise ValueError("too many functions")
        return made


def _anew(part: Tabled | Peaks) -> Tabled | Peaks:
    """Return functions of plain arrays; a subclass could state other squares than its own."""
    if isinstance(part, Tabled):
        values = np.array(part.values, dtype=np.int64)
        if values.ndim != 2 or np.abs(values).max(initial=0) > LARGEST:
            raise ValueError("functions are tables of whole numbers of at most eight, in units")
        return Tabled(values)
    levels, height = np.array(part.levels, dtype=np.int64), int(part.height)
    if levels.ndim != 1 or max(abs(height), np.abs(levels).max(initial=0)) > LARGEST // 2:
        raise ValueError("peaks and levels are whole numbers of at most four, in units")
    return Peaks(height, levels)
