"""Scores: what a growing model says of every record, and how the records pull at it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from privet.engines import (
    Curves,
    ScoresHandle,
    loss_of,
)
from privet.privacy import (
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    Noise,
    noise_for,
    spread_of,
)
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables.cells import CellsOfTable, behind_cells, behind_scores, behind_table
from privet.tables.interface import Cells

if TYPE_CHECKING:
    from privet.tables.private import PrivateTable


@dataclass(frozen=True)
class Gradients:
    """How the records of cells pull at their scores; made of released integers.

    Attributes
    ----------
    pull, curvature : array, one row per cell and one column per score
        Sums of first and second derivatives of the loss, in records.
    deviation : float
        Standard deviation of the noise of a pull.
    """

    pull: NDArray[np.float64]
    curvature: NDArray[np.float64]
    deviation: float


def gradient_noise(
    schema: Schema, budget: Budget, amount: Amount
) -> DiscreteLaplace | DiscreteGaussian:
    """Return the noise of sums of derivatives that cost an amount."""
    l1, squared_l2 = loss_of(schema).bounds(pure=budget.accountant == "pure")
    parts = schema.unit_parts
    return noise_for(budget, amount, l1=parts * l1, squared_l2=parts**2 * squared_l2)


def pull_deviation(schema: Schema, budget: Budget, amount: Amount) -> float:
    """Return the deviation that the noise of :meth:`Cells.noisy_gradients` will have. Public."""
    pure = budget.accountant == "pure"
    nothing = np.zeros((0, 2), dtype=np.int64)
    noise = gradient_noise(schema, budget, amount)
    return loss_of(schema).read(nothing, noise.deviation, pure=pure)[2] / schema.unit_parts


#: Distances that a scale can have: 2^(-k/2), k = 24 .. 0, in parts of the target's range.
SCALES = tuple(math.ldexp(1.0 if k % 2 == 0 else math.sqrt(2), -k // 2) for k in range(24, -1, -1))
#: Shares are fractions of at most this many parts, so that scores fit into 64 bits.
_MOST_PARTS = 2**16


@dataclass(frozen=True)
class ScaleChoice:
    """The choice of a scale beyond which a share of records lies.

    Parameters
    ----------
    share : Fraction
        Between 0 and 1, of at most 2^16 parts.
    epsilon : Fraction
        The cost.
    unit_parts : int
        In how many parts who pays counts; one, if that is a record.
    """

    share: Fraction
    epsilon: Amount
    unit_parts: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.share, Fraction) or not 0 < self.share < 1:
            raise ValueError("the share must be a fraction between 0 and 1")
        if self.share.denominator > _MOST_PARTS:
            raise ValueError(f"the share must be a fraction of at most {_MOST_PARTS} parts")

    @property
    def mechanism(self) -> Exponential:
        """The exponential mechanism on the scores.

        A record more moves ``b * beyond - a * all``, for a share of a/b, by ``b - a`` or by ``-a``.
        """
        part, parts = self.share.numerator, self.share.denominator
        spread = spread_of(max(part, parts - part), monotone=False)
        return Exponential(self.unit_parts * spread, self.epsilon)

    def choose(self, counts: NDArray[np.int64], noise: Noise) -> NDArray[np.float64]:
        """Return a scale for every cell.

        Parameters
        ----------
        counts : array of shape (cells, scales + 1)
            How many records are further away than 0, 1, .. of the scales.
        noise : Noise
        """
        beyond = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        fits = self._fits(beyond[:, :-1], beyond[:, 1:], beyond[:, :1])
        mechanism = self.mechanism
        return np.array([SCALES[mechanism.choose(Exact(row), noise)] for row in fits])

    def _fits(
        self, before: NDArray[np.int64], beyond: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the score of every scale: zero where the share lies between it and the one before.

        ``rows`` counts the cell's own records, all of which are beyond nothing.
        """
        wanted = self.share.numerator * rows
        parts = self.share.denominator
        missed = np.maximum(wanted - parts * before, parts * beyond - wanted)
        return np.asarray(-np.maximum(missed, 0))


class Scores:
    """What a growing model says of every record: sums of public values. A handle, like cells.

    Whoever holds it can add public values to the records of cells, and ask private questions about
    how far the scores are from the targets.
    """

    def __init__(self, table: PrivateTable, start: Sequence[float]) -> None:
        columns = loss_of(table.schema).columns
        if len(start) != columns or not all(math.isfinite(score) for score in start):
            raise ValueError(f"start with {columns} finite scores")
        self._table = table
        #: No score is further from zero.
        self.bound = max(abs(score) for score in start)
        behind_scores[self] = behind_table[table].engine.start_scores(start)

    def add(self, cells: Cells, values: NDArray[np.float64]) -> None:
        """Add public values to the scores of the records of cells. Free.

        Parameters
        ----------
        cells : Cells
        values : array, one row per cell and one column per score
        """
        if not isinstance(cells, CellsOfTable):
            raise ValueError("these scores belong to another table")
        scores = self._of(cells._table)
        if values.shape != (len(cells), scores.columns) or not np.isfinite(values).all():
            raise ValueError("give finite values, one row per cell and one column per score")
        bound = self.bound + float(np.abs(values).max(initial=0.0))
        if not math.isfinite(bound):
            raise ValueError("scores must stay finite")
        self.bound = bound
        engine = behind_table[self._table].engine
        behind_scores[self] = engine.add_scores(scores, behind_cells[cells], values)

    def add_curves(self, cells: Cells, curves: Curves) -> None:
        """Add public values by the codes of features to the records of cells. Free.

        Parameters
        ----------
        cells : Cells
        curves : tuple of (int, array)
            Features by their positions, and values by code: one column per score.
        """
        if not isinstance(cells, CellsOfTable):
            raise ValueError("these scores belong to another table")
        scores, sizes = self._of(cells._table), cells.view.sizes
        made = tuple((feature, np.array(table, dtype=np.float64)) for feature, table in curves)
        for feature, table in made:
            if type(feature) is not int or not 0 <= feature < len(sizes):
                raise ValueError("curves are of features by their positions in the schema")
            if table.shape != (sizes[feature], scores.columns) or not np.isfinite(table).all():
                raise ValueError("give finite values, one row per code and one column per score")
        bound = self.bound + sum(float(np.abs(table).max()) for _, table in made)
        if not math.isfinite(bound):
            raise ValueError("scores must stay finite")
        self.bound = bound
        engine = behind_table[self._table].engine
        behind_scores[self] = engine.add_scores(scores, behind_cells[cells], made)

    def _of(self, table: PrivateTable) -> ScoresHandle:
        if table is not self._table:
            raise ValueError("these scores belong to another table")
        return behind_scores[self]

    def _reach(self, reach: float) -> float:
        if self._table.schema.classes is not None:
            return self.bound
        if not 2**-20 <= reach <= 1:
            raise ValueError("residuals of a number need a reach from 2^-20 to 1")
        return reach

    def __reduce__(self) -> NoReturn:
        raise TypeError("scores cannot be pickled or copied: they stay where their rows are")
