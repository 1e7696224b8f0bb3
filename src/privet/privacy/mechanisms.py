"""The private mechanisms: each is a frozen value that knows its scale and its cost.

A mechanism is built from a *data-free* sensitivity and an amount of privacy, charged to a ledger,
and only then handed exact numbers. The two kinds of numbers have different types, so that the type
checker sees an exact number leaving without a mechanism: engines return :data:`Exact`, mechanisms
turn it into :data:`Released`. Proofs: ``docs/proofs/mechanisms.md``.

The exponential mechanism with a base measure is our own code because OpenDP has none
(:class:`GridExponential`); everything else draws from OpenDP through
:class:`~privet.privacy.noise.SecureNoise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from privet.errors import BudgetError
from privet.privacy.budget import Amount, Budget, Cost, exact
from privet.privacy.noise import Noise, below

#: Integers computed from the data. They never leave the room.
Exact = NewType("Exact", NDArray[np.int64])
#: Integers that went through a mechanism. They may go anywhere.
Released = NewType("Released", NDArray[np.int64])


def round_up(amount: Amount) -> float:
    """Return the smallest double that is not below an exact amount."""
    try:
        nearest = float(amount)
    except OverflowError:
        raise BudgetError("the budget is too small: the noise would exceed every number") from None
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)


@dataclass(frozen=True)
class DiscreteLaplace:
    """Integer noise for numbers whose L1 sensitivity is known; epsilon-DP.

    Parameters
    ----------
    sensitivity : int or Fraction
        Largest change of the whole vector of answers, in absolute sum, when one record is added.
    epsilon : Fraction
        The cost.
    """

    sensitivity: Amount
    epsilon: Amount

    name = "discrete Laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", exact(self.sensitivity, "the sensitivity"))
        object.__setattr__(self, "epsilon", exact(self.epsilon))

    @property
    def scale(self) -> float:
        """``sensitivity / epsilon``, rounded up so that the cost is never understated."""
        return round_up(self.sensitivity / self.epsilon)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise (that of the continuous law: an upper bound)."""
        return math.sqrt(2) * self.scale

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.pure(self.epsilon)

    def release(self, exact: Exact, noise: Noise) -> Released:
        """Return the numbers with noise."""
        return Released(noise.add_laplace(np.asarray(exact, dtype=np.int64), self.scale))


@dataclass(frozen=True)
class DiscreteGaussian:
    """Integer noise for numbers whose L2 sensitivity is known; rho-zCDP.

    Parameters
    ----------
    squared_sensitivity : int or Fraction
        Largest change of the whole vector of answers, as a sum of squares, per added record.
    rho : Fraction
        The cost: ``squared_sensitivity / (2 scale^2)``.
    """

    squared_sensitivity: Amount
    rho: Amount

    name = "discrete Gaussian"

    def __post_init__(self) -> None:
        squared = exact(self.squared_sensitivity, "the squared sensitivity")
        object.__setattr__(self, "squared_sensitivity", squared)
        object.__setattr__(self, "rho", exact(self.rho, "rho"))

    @property
    def scale(self) -> float:
        """The noise's parameter (nearly its standard deviation), rounded up."""
        variance = self.squared_sensitivity / (2 * self.rho)
        scale = math.sqrt(round_up(variance))
        while Fraction(scale) ** 2 < variance:
            scale = math.nextafter(scale, math.inf)
        return scale

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise (that of the continuous law: an upper bound)."""
        return self.scale

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.zcdp(self.rho)

    def release(self, exact: Exact, noise: Noise) -> Released:
        """Return the numbers with noise."""
        return Released(noise.add_gaussian(np.asarray(exact, dtype=np.int64), self.scale))


def noise_for(
    budget: Budget, amount: Amount, *, l1: Amount, squared_l2: Amount
) -> DiscreteLaplace | DiscreteGaussian:
    """Return the noise that costs ``amount`` of a budget: Laplace if it is pure, else Gaussian.

    Parameters
    ----------
    budget : Budget
    amount : Fraction
        In the budget's own amounts: epsilon or rho.
    l1, squared_l2 : int or Fraction
        Bounds on the change of the whole vector of answers when one record is added.
    """
    if budget.accountant == "pure":
        return DiscreteLaplace(l1, amount)
    return DiscreteGaussian(squared_l2, amount)


@dataclass(frozen=True)
class Selection:
    """Choose the best of a public list of candidates by integer scores; epsilon-DP.

    Parameters
    ----------
    spread : int or Fraction
        Bound on ``max_i d_i - min_i d_i``, where ``d_i`` is the change of candidate i's score when
        one record is added. For monotone scores of sensitivity S it is S, for others 2 S
        (:func:`spread_of`).
    epsilon : Fraction
        The cost. Candidate i has weight ``exp(epsilon * score_i / spread)``.
    """

    spread: Amount
    epsilon: Amount

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", exact(self.spread, "the spread"))
        object.__setattr__(self, "epsilon", exact(self.epsilon))

    @property
    def scale(self) -> float:
        """``spread / epsilon``, rounded up."""
        return round_up(self.spread / self.epsilon)


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Selection that is never worse than the exponential mechanism at the same pure epsilon."""

    name = "permute-and-flip"

    @property
    def cost(self) -> Cost:
        """What one record pays. Permute-and-flip has no bounded range: rho is epsilon^2 / 2."""
        return Cost.pure(self.epsilon)

    def choose(self, scores: Exact, noise: Noise) -> int:
        """Return the index of the chosen candidate."""
        return noise.permute_and_flip(np.asarray(scores, dtype=np.int64), self.scale)


@dataclass(frozen=True)
class Exponential(Selection):
    """The exponential mechanism: costs a quarter of permute-and-flip's rho in zCDP."""

    name = "exponential mechanism"

    @property
    def cost(self) -> Cost:
        """What one record pays: bounded range, rho is epsilon^2 / 8."""
        return Cost.bounded_range(self.epsilon)

    def choose(self, scores: Exact, noise: Noise) -> int:
        """Return the index of the chosen candidate."""
        return noise.exponential(np.asarray(scores, dtype=np.int64), self.scale)


@dataclass(frozen=True)
class GridExponential(Selection):
    """The exponential mechanism over a public integer grid on which scores are piecewise constant.

    A stretch of ``lengths[i]`` grid points shares ``scores[i]``; a point has weight
    ``exp(epsilon * score / spread)``, hence a stretch has its length times that. The draw is exact:
    see :func:`draw_stretch`.
    """

    name = "exponential mechanism on a grid"

    @property
    def cost(self) -> Cost:
        """What one record pays: bounded range, rho is epsilon^2 / 8."""
        return Cost.bounded_range(self.epsilon)

    def choose(self, scores: Exact, lengths: NDArray[np.int64], noise: Noise) -> int:
        """Return the chosen grid point, counted from the start of the first stretch."""
        if self.epsilon == math.inf:
            best = np.asarray(scores)[np.asarray(lengths) > 0].max()
            of_best = np.where(np.asarray(scores) == best, lengths, 0)
            stretch = draw_stretch(np.zeros(len(of_best), np.int64), of_best, Fraction(1), noise)
        else:
            rate = Fraction(self.epsilon) / Fraction(self.spread)
            stretch = draw_stretch(scores, lengths, rate, noise)
        start = int(np.sum(lengths[:stretch]))
        return start + below(noise, int(lengths[stretch]))


@dataclass(frozen=True)
class TopOf(Selection):
    """The exponential mechanism several times, without replacement.

    Parameters
    ----------
    count : int
        How many candidates are chosen; each choice has the ``count``-th part of epsilon.
    """

    count: int

    name = "exponential mechanism, repeated"

    @property
    def scale(self) -> float:
        """``spread * count / epsilon``, rounded up."""
        return round_up(self.spread * self.count / self.epsilon)

    @property
    def cost(self) -> Cost:
        """What one record pays for all choices."""
        one = Cost.bounded_range(self.epsilon / self.count)
        return Cost(self.epsilon, one.rho * self.count)

    def choose(self, scores: Exact, noise: Noise) -> list[int]:
        """Return the indices of the chosen candidates."""
        left = list(range(len(scores)))
        chosen: list[int] = []
        while left and len(chosen) < self.count:
            pick = noise.exponential(np.asarray(scores, dtype=np.int64)[left], self.scale)
            chosen.append(left.pop(pick))
        return chosen


@dataclass(frozen=True)
class Quantiles:
    """Medians, and medians of the parts between them, level by level.

    Parameters
    ----------
    levels : int
        How often the parts are halved; each level has the ``levels``-th part of epsilon, since its
        parts are disjoint.
    epsilon : Fraction
        The cost of all levels.
    """

    levels: int
    epsilon: Amount

    name = "exponential mechanism on a grid, level by level"

    @property
    def median(self) -> GridExponential:
        """The mechanism of one median: ``-abs(left - right)`` changes by -1 to 1."""
        return GridExponential(spread_of(1, monotone=False), self.epsilon / self.levels)

    @property
    def cost(self) -> Cost:
        """What one record pays for all levels."""
        return Cost(self.epsilon, self.median.cost.rho * self.levels)


@dataclass(frozen=True)
class WholeTree:
    """The exponential mechanism over whole labelled trees; ``privet.tables.whole_trees`` draws.

    Parameters
    ----------
    epsilon : Fraction
        The cost, the error of computing log weights in doubles included
        (docs/proofs/whole-trees.md).
    """

    epsilon: Amount

    name = "exponential mechanism over trees"

    #: Without privacy, one record outweighs everything else.
    LIMIT_RATE = 2.0**20
    #: Bounds on the loss by rounding: relative to the rate, and absolute.
    RELATIVE_SLACK = Fraction(1, 2**12)
    ABSOLUTE_SLACK = Fraction(1, 2**20)

    def __post_init__(self) -> None:
        if self.epsilon < 4 * self.ABSOLUTE_SLACK:
            raise BudgetError("epsilon is too small to draw a tree with: less than 4e-6")

    @property
    def rate(self) -> float:
        """How much a correctly classified record raises a tree's log weight, rounded down."""
        if self.epsilon == math.inf:
            return self.LIMIT_RATE
        ideal = (self.epsilon - self.ABSOLUTE_SLACK) / (1 + self.RELATIVE_SLACK)
        rate = float(min(ideal, Fraction(self.LIMIT_RATE)))
        return rate if rate <= ideal else math.nextafter(rate, 0.0)

    @property
    def cost(self) -> Cost:
        """What one record pays: bounded range, rho is epsilon^2 / 8."""
        return Cost.bounded_range(self.epsilon)


def spread_of(sensitivity: Amount, *, monotone: bool) -> Amount:
    """Return how far apart two scores' changes can be: S if all move one way, else 2 S."""
    return sensitivity if monotone else 2 * sensitivity


def draw_stretch(
    scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction, noise: Noise
) -> int:
    """Draw index i with probability exactly proportional to ``lengths[i] * exp(rate * scores[i])``.

    Inversion with lazy precision: a uniform number is known to ever more bits and the cumulative
    weights to ever more digits, both with error bounds, until the answer is certain. Doubles decide
    almost always; the rest is decided by decimal arithmetic, whose ``exp`` is correctly rounded.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    if lengths.ndim != 1 or np.any(lengths < 0) or not np.any(lengths > 0):
        raise ValueError("lengths must be non-negative, with at least one positive")
    live = np.flatnonzero(lengths > 0)
    sizes = lengths[live].tolist()
    levels = np.asarray(scores, dtype=np.int64)[live].tolist()
    highest = max(levels)
    gaps = [highest - level for level in levels]
    count = 64
    uniform = noise.bits(count)
    for bounds in (_double_bounds, *(_decimal_bounds(30 * 2**k) for k in range(40))):
        cumulative, error = bounds(gaps, sizes, rate)
        place = _locate(cumulative, error, uniform, count)
        if place is not None:
            return int(live[place])
        uniform = (uniform << count) | noise.bits(count)
        count *= 2
    raise AssertionError("unreachable: the precision doubles until the answer is certain")


_Cumulative = list[float] | list[Decimal]
_Bounds = Callable[[list[int], list[int], Fraction], tuple[_Cumulative, Fraction]]


def _double_bounds(
    gaps: list[int], sizes: list[int], rate: Fraction
) -> tuple[_Cumulative, Fraction]:
    """Return cumulative weights in doubles and a bound on the error of each.

    With x = rate * gap, the relative error of x is below 2^-51, so exp(-x) has a relative error
    below x 2^-51 + 2^-51 (x up to 745; beyond, the weight underflows and is below size * 1e-320).
    The product with the size adds 2^-52, and summing k terms k 2^-52 of the total.
    """
    slope = float(min(rate, Fraction(1000)))  # beyond, one step leaves no weight anyway
    exponents = np.minimum(slope * np.array(gaps, dtype=np.float64), 800.0)
    weights = np.array(sizes, dtype=np.float64) * np.exp(-exponents)
    cumulative = np.cumsum(weights)
    total = float(cumulative[-1])
    error = total * (750 + len(gaps)) * 2.0**-50 + float(np.sum(np.array(sizes, float))) * 1e-300
    return cumulative.tolist(), Fraction(error)


def _decimal_bounds(digits: int) -> _Bounds:
    """Return the same with decimals of so many digits.

    Relative errors: 10^(1-digits) for the quotient, hence times the exponent after exp, and the
    same again for exp, product and each sum. Exponents beyond 3 * digits are left out, which keeps
    numbers short: exp(-3 * digits) < 10^-digits, and the total is at least one.
    """

    def bounds(gaps: list[int], sizes: list[int], rate: Fraction) -> tuple[_Cumulative, Fraction]:
        context = Context(prec=digits, traps=[])
        top, bottom = rate.numerator, rate.denominator
        cumulative, total = [], Decimal(0)
        for gap, size in zip(gaps, sizes, strict=True):
            if gap * top <= 3 * digits * bottom:
                exponent = context.divide(Decimal(-gap * top), Decimal(bottom))
                total = context.add(total, context.multiply(Decimal(size), context.exp(exponent)))
            cumulative.append(total)
        unit = Fraction(1, 10 ** (digits - 1))
        error = Fraction(total) * unit * (3 * digits + 2 * len(gaps) + 8) * 2 + sum(sizes) * unit
        return cumulative, error

    return bounds


def _locate(cumulative: _Cumulative, error: Fraction, uniform: int, count: int) -> int | None:
    """Return the index that a uniform number known to ``count`` bits falls into, if certain."""
    total = Fraction(cumulative[-1])
    low = Fraction(uniform, 1 << count) * (total - error)
    high = Fraction(uniform + 1, 1 << count) * (total + error)
    bottom, top = 0, len(cumulative) - 1
    while bottom < top:
        middle = (bottom + top) // 2
        boundary = Fraction(cumulative[middle])
        if high < boundary - error:
            top = middle
        elif low >= boundary + error:
            bottom = middle + 1
        else:
            return None
    return bottom
