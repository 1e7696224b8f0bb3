"""Private quantiles: cuts on a public grid that divide records into equal parts.

Two ways to find them: one after the other (:class:`Quantiles`) and all at once
(:class:`JointQuantiles`). Both draw from the exact counts of records in the grid's cells.
:func:`private_quantiles` does it for one column of numbers. Proof: ``docs/proofs/questions.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privet.errors import BudgetError, DataError
from privet.grids import coarse_grid, fine_grid
from privet.privacy.budget import Amount, Cost, exact
from privet.privacy.entries import MechanismFacts, MechanismKind
from privet.privacy.log_weights import choose
from privet.privacy.mechanisms import ByLogWeights, Exact, GridExponential, spread_of
from privet.privacy.noise import Noise, SecureNoise

#: Most parts for quantiles found one after the other: about the number of the grid's points.
_MOST_PARTS = 2**16
#: Scores are exact, and rounding is bounded, for fewer records than this.
_MOST_VALUES = 2**31
#: Stretches that are weighed at once.
_TOGETHER = 2**15


@dataclass(frozen=True)
class Quantiles:
    """The cuts that divide records into equal parts: the middle one first, then on either side.

    Parameters
    ----------
    parts : int
        How many parts. The cuts are found in levels, each of which has an equal part of epsilon,
        since what lies between the cuts of the levels above is disjoint.
    epsilon : Fraction
        The cost of all levels.
    unit_parts : int
        In how many parts who pays counts; one, if that is a record.
    """

    parts: int
    epsilon: Amount
    unit_parts: int = 1

    def __post_init__(self) -> None:
        if self.parts < 2:
            raise BudgetError("quantiles divide into at least two parts")
        if self.parts > _MOST_PARTS:
            raise BudgetError(f"quantiles divide into at most {_MOST_PARTS} parts")

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return (self.parts - 1).bit_length()

    def cut(self, left: int, right: int) -> GridExponential:
        """Return the mechanism of a cut that leaves ``left`` parts on its left.

        With a and b for the parts, the score ``-abs(b * below - a * above)`` changes by at most
        the larger of both when a record is added, up or down.
        """
        spread = spread_of(max(left, right), monotone=False)
        return GridExponential(self.unit_parts * spread, self.epsilon / self.levels)

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(MechanismKind.QUANTILES, times=self.levels)

    @property
    def cost(self) -> Cost:
        """What one record pays for all levels."""
        return Cost(self.epsilon, self.cut(1, 1).cost.rho * self.levels)

    def choose(self, counts: Exact, noise: Noise) -> list[int]:
        """Return the cuts between the cells of a grid, in order.

        Parameters
        ----------
        counts : array
            How many records each cell of the grid has.
        noise : Noise

        Returns
        -------
        list of int
            A cut at k lies before cell k; from 1 to the number of cells less one. No two are
            alike: there are fewer where the grid has no room for more.
        """
        below = np.concatenate([[0], np.cumsum(counts)])
        marks = np.concatenate([[0], np.flatnonzero(counts) + 1, [len(counts)]])
        found: list[int] = []
        intervals = [(0, len(counts), self.parts)]
        while intervals:
            rest = []
            for share, some in groupby(intervals, key=itemgetter(2)):
                left, right = share // 2, share - share // 2
                ends = [(start, stop) for start, stop, _ in some if stop - start >= 2]
                if not left or not ends:
                    continue
                places = self._places(below, marks, np.array(ends), (left, right), noise)
                for (start, stop), place in zip(ends, places, strict=True):
                    found.append(place)
                    rest += [(start, place, left), (place, stop, right)]
            intervals = rest
        return sorted(found)

    def _places(
        self,
        below: NDArray[np.int64],
        marks: NDArray[np.intp],
        ends: NDArray[np.intp],
        shares: tuple[int, int],
        noise: Noise,
    ) -> Iterator[int]:
        """Yield a cut for each of some intervals, with ``shares`` parts on its left and right.

        All at once, as far as they fit into little memory: many intervals have few records.
        """
        common = math.gcd(*shares)
        left, right = (share // common for share in shares)
        mechanism = self.cut(left, right)
        first, last = np.searchsorted(marks, ends.T + np.array([[2], [0]]))
        step = max(1, _TOGETHER // int((last - first).max() + 1))
        for k in range(0, len(ends), step):
            start, stop = ends[k : k + step].T[:, :, None]
            mine, width = first[k : k + step, None] - 1, (last - first)[k : k + step].max() + 1
            # Cuts between which no record lies have the same score: where such stretches begin.
            begins = np.clip(marks.take(mine + np.arange(width), mode="clip"), start + 1, stop)
            under = below[begins] - below[start]
            above = below[stop] - below[start] - under
            scores = Exact(-np.abs(right * under - left * above))
            lengths = np.diff(begins, axis=1, append=stop)
            points = mechanism.choose_each(scores, lengths, noise)
            yield from (start[:, 0] + 1 + points).tolist()


@dataclass(frozen=True)
class JointQuantiles(ByLogWeights):
    """The exponential mechanism over all cuts at once (Gillenwater, Joseph & Kulesza 2021).

    All tuples of grid cuts in order are candidates; one weighs by how equal the parts between its
    cuts are. The normaliser is a sum over paths, so that the cuts can be drawn from left to right,
    each with its exact conditional probability. Our own code because no library has it on a grid
    with a bound on its rounding.

    Parameters
    ----------
    epsilon : Fraction
    parts : int
        How many parts the cuts divide the records into, up to 32.
    unit_parts : int
        In how many parts who pays counts; one, if that is a record.
    """

    parts: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.parts <= 32:
            raise BudgetError("quantiles that are drawn at once divide into 2 to 32 parts")

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(MechanismKind.JOINT_QUANTILES)

    @property
    def relative_slack(self) -> Fraction:
        """What is kept back for rounding, relative to the rate."""
        return Fraction(self.parts**3, 2**21)

    @property
    def rate(self) -> float:
        """The weight of a unit of ``-sum of abs(parts * part - all)``.

        A new record moves its own part's term by up to ``parts - 1`` and each other by up to
        one, up or down.
        """
        return self.rate_for(int(spread_of(2 * (self.parts - 1), monotone=False)))

    def choose(self, counts: Exact, noise: Noise) -> list[int]:
        """Return the cuts between the cells of a grid, in order; several may fall on one place.

        Parameters
        ----------
        counts : array
            How many records each cell of the grid has; the work grows with the square of their
            number.
        noise : Noise

        Returns
        -------
        list of int
            A cut at k lies before cell k; from 1 to the number of cells less one. None if there is
            only one cell.
        """
        parts, rate = self.parts, self.rate
        below = np.concatenate([[0], np.cumsum(counts)])
        total, last = int(below[-1]), len(counts)
        if last < 2:
            return []
        places = np.arange(1, last)
        inner = below[1:last]
        # How well a part between two cuts fits, for all pairs: -inf if they are out of order.
        between = inner[None, :] - inner[:, None]
        fits = np.where(
            places[None, :] >= places[:, None], -rate * np.abs(parts * between - total), -np.inf
        )
        first = -rate * np.abs(parts * inner - total)
        rest = [-rate * np.abs(parts * (total - inner) - total)]  # after the last cut
        for _ in range(parts - 2):
            rest.append(_log_sum(fits + rest[-1][None, :]))
        found: list[int] = []
        place, here = 0, first
        for after in reversed(rest):
            place += choose((here + after)[place:], noise)  # no cut lies left of the one before
            found.append(int(places[place]))
            here = fits[place]
        return found


def private_quantiles(
    values: Any,
    low: float,
    high: float,
    parts: int,
    epsilon: Amount | float,
    *,
    method: Literal["recursive", "joint"] = "recursive",
) -> tuple[float, ...]:
    """Return private cuts that divide a column of numbers into equal parts.

    Keeps no books: every call costs its epsilon.
    :meth:`PrivateTable.quantiles <privet.PrivateTable.quantiles>` does the same for a feature of a
    table and charges the table's ledger.

    Parameters
    ----------
    values : column
        Numbers: an array, a list or a series. What lies beyond the bounds counts as the nearer
        bound; what is missing or no number is left out.
    low, high : float
        Public bounds, chosen without looking at the values.
    parts : int
        How many parts, so that there is one cut fewer: 2 for the median, 4 for quartiles.
    epsilon : float
        The cost; finite.
    method : {"recursive", "joint"}, default="recursive"
        One after the other, the middle one first, on a grid of about 65,000 points; or all at once
        on about a thousand of them, for up to 32 parts.

    Returns
    -------
    tuple of float
        The cuts in order, points of a public grid between the bounds. Half of the points are evenly
        spaced, half have even ratios towards the lower bound (or towards zero, if that lies
        within). A narrow grid has no room for many cuts: there are fewer then.

    Privacy
    -------
    The cuts are epsilon-differentially private for tables that differ by one more or one less
    value (docs/proofs/questions.md). The noise is always cryptographic. No error depends on a
    value.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.privacy import private_quantiles
    >>> ages = np.random.default_rng(0).normal(40, 10, 100_000)
    >>> (median,) = private_quantiles(ages, 0, 120, parts=2, epsilon=1.0)
    >>> abs(median - 40) < 1
    True
    """
    low, high = _bound(low, "low"), _bound(high, "high")
    if not low < high or not math.isfinite(high - low):
        raise DataError("quantiles need finite bounds with low < high")
    if isinstance(parts, bool) or not isinstance(parts, int | np.integer):
        raise BudgetError("the parts must be a whole number, at least 2")
    epsilon = exact(epsilon)
    if epsilon == math.inf:
        raise BudgetError("epsilon must be finite: quantiles without noise protect nobody")
    mechanism: Quantiles | JointQuantiles
    if method == "recursive":
        mechanism, grid = Quantiles(int(parts), epsilon), fine_grid(low, high)
    elif method == "joint":
        mechanism, grid = JointQuantiles(epsilon, int(parts)), coarse_grid(low, high)
    else:
        raise ValueError("the method is 'recursive' or 'joint'")
    numbers = _numbers(values)
    cuts = mechanism.choose(grid_counts(numbers[~np.isnan(numbers)], grid), SecureNoise())
    return tuple(float(grid[cut - 1]) for cut in cuts)


def grid_counts(numbers: NDArray[np.float64], grid: NDArray[np.float64]) -> Exact:
    """Return how many numbers lie between neighbouring points of a grid, and beyond its ends."""
    ordered = np.sort(numbers)  # and search for the grid: faster than the other way
    below = np.searchsorted(ordered, grid, side="left")
    return Exact(np.diff(np.concatenate([[0], below, [len(ordered)]])))


def _log_sum(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


def _bound(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a finite number") from None


def _numbers(values: Any) -> NDArray[np.float64]:
    """Read one column of numbers by its type; an item that is no number is NaN."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    # A list has no type: one item that is text must not make text of all.
    column = np.asarray(values, dtype=None if hasattr(values, "__array__") else object)
    if column.ndim != 1:
        raise DataError("the values must be one column of numbers")
    if len(column) >= _MOST_VALUES:
        raise DataError(f"at most {_MOST_VALUES - 1} values are supported")
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind not in "OUS":
        raise DataError(f"the values have type {column.dtype}, which holds no numbers")
    return np.fromiter(map(_number, column.tolist()), dtype=np.float64, count=len(column))


def _number(item: Any) -> float:
    try:
        return float(item)
    except Exception:  # whatever an object says of itself stays unsaid
        return math.nan
