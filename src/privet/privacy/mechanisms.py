"""The private mechanisms: each is a frozen value that knows its scale and its cost.

A mechanism is built from a *data-free* sensitivity and an amount of privacy, charged to a ledger,
and only then handed exact numbers. The two kinds of numbers have different types, so that the type
checker sees an exact number leaving without a mechanism: engines return :data:`Exact`, mechanisms
turn it into :data:`Released`. Proofs: ``docs/proofs/mechanisms.md``.

All randomness comes from a :class:`~privet.privacy.noise.Noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, NewType

import numpy as np
from numpy.typing import NDArray

from privet.errors import BudgetError
from privet.privacy.budget import Amount, Budget, Cost, exact, exact_bound, float_above, float_below
from privet.privacy.entries import MechanismFacts, MechanismKind
from privet.privacy.noise import Noise
from privet.privacy.polya import check_rate, draw_polya, draw_shares

#: Where parties choose together, noise comes in steps. Scores are multiplied so that a record's
#: change has about this many of them, as far as that leaves room for all options.
_WIDTH, _UNITS = 512, 2**11

#: Integers computed from the data. They never leave the wall.
Exact = NewType("Exact", NDArray[np.int64])
#: Integers that went through a mechanism. They may go anywhere.
Released = NewType("Released", NDArray[np.int64])


def round_up(amount: Amount) -> float:
    """Return the smallest double that is not below an exact amount."""
    found = float_above(amount)
    if math.isinf(found):
        raise BudgetError("the budget is too small: the noise would exceed every number")
    return found


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", exact_bound(self.sensitivity, "the sensitivity"))
        object.__setattr__(self, "epsilon", exact(self.epsilon))
        _ = self.scale  # which there must be, before anything is charged

    @property
    def scale(self) -> float:
        """``sensitivity / epsilon``, rounded up so that the cost is never understated."""
        return round_up(self.sensitivity / self.epsilon)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise (that of the continuous law: an upper bound)."""
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> float:
        """The variance of the noise, ``2 q / (1 - q)^2``; nothing if there is no noise."""
        scale = self.scale
        return 1 / (2 * math.sinh(min(1 / (2 * scale), 300.0)) ** 2) if scale else 0.0

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(MechanismKind.DISCRETE_LAPLACE, Fraction(self.sensitivity))

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

    def __post_init__(self) -> None:
        squared = exact_bound(self.squared_sensitivity, "the squared sensitivity")
        object.__setattr__(self, "squared_sensitivity", squared)
        object.__setattr__(self, "rho", exact(self.rho, "rho"))
        _ = self.scale

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
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(MechanismKind.DISCRETE_GAUSSIAN, Fraction(self.squared_sensitivity))

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.zcdp(self.rho)

    def release(self, exact: Exact, noise: Noise) -> Released:
        """Return the numbers with noise."""
        return Released(noise.add_gaussian(np.asarray(exact, dtype=np.int64), self.scale))


@dataclass(frozen=True)
class LaplaceShare:
    """A share of discrete Laplace noise; those of ``honest`` parties make one noise: epsilon-DP.

    Parameters
    ----------
    sensitivity : int or Fraction
        Largest change of the whole vector of sums, in absolute sum, when one record is added.
    epsilon : Fraction
        The cost, if at least ``honest`` parties add their share and only the sum is seen.
    honest : int
        How many shares make the noise. More of them add more noise.
    """

    sensitivity: Amount
    epsilon: Amount
    honest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", exact_bound(self.sensitivity, "the sensitivity"))
        _check_share(self)

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(
            MechanismKind.LAPLACE_SHARE, Fraction(self.sensitivity), honest=self.honest
        )

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.pure(self.epsilon)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise, for a finite epsilon."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity)

    def release(self, exact: Exact, noise: Noise) -> NDArray[np.int64]:
        """Return the numbers with this party's share of the noise: to be masked, not to be seen."""
        if self.epsilon == math.inf:
            return np.array(exact)
        shares = noise.draw(partial(draw_shares, exact.size, self.rate, self.honest))
        return np.asarray(exact + shares.reshape(exact.shape))


@dataclass(frozen=True)
class NoisyMaxShare:
    """A share of one-sided geometric noise on scores of which only the largest sum is found.

    ``honest`` shares make geometric noise, in small steps. Report noisy max with it is epsilon-DP,
    and close to permute-and-flip, which has exponential noise (docs/proofs/federation.md).

    Parameters
    ----------
    spread : int
        Bound on how far apart the changes of two scores are when one record is added.
    epsilon : Fraction
        The cost, if at least ``honest`` parties add their share and only the choice is seen.
    honest : int
        How many shares make the noise.
    """

    spread: int
    epsilon: Amount
    honest: int

    def __post_init__(self) -> None:
        _check_share(self)

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(
            MechanismKind.NOISY_MAX_SHARE, Fraction(self.spread), honest=self.honest
        )

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.pure(self.epsilon)

    @property
    def _fewest(self) -> int:
        """The least number of steps in a record's change. More steps need larger tables."""
        most = max(_UNITS, self.spread)
        return int(min(most, math.ceil(_WIDTH * min(self.epsilon, most))))

    @cached_property
    def units(self) -> int:
        """What scores are multiplied by, so that steps of noise can be smaller than one."""
        units = 1
        while self.spread * units < self._fewest:
            units *= 2
        return units

    @cached_property
    def step(self) -> int:
        """The size of a step of noise, in units: the spread is nearly a whole number of them."""
        fewest, spread = self._fewest, self.spread * self.units
        steps = {-(-spread // number) for number in range(fewest, 4 * fewest + 1)}
        fine = [step for step in steps if self._steps_of(step) >= fewest]
        return min(fine, key=lambda step: (self._steps_of(step) * step, -step))

    def _steps_of(self, step: int) -> int:
        """Return how many steps of a size a record changes scores by at most."""
        return -(-self.spread * self.units // step)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise per step, for a finite epsilon."""
        return Fraction(self.epsilon) / self._steps_of(self.step)

    def release(self, scores: Exact, noise: Noise) -> NDArray[np.int64]:
        """Return the scores, in units, with this party's share of the noise: not to be seen."""
        values = self.units * np.array(scores, dtype=np.int64)
        if self.epsilon == math.inf:
            return values
        shares = noise.draw(partial(draw_polya, values.size, self.rate, self.honest))
        return np.asarray(values + self.step * shares.reshape(values.shape))

    def bonus(self, masses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what public base measures add to scores, in units."""
        if self.epsilon == math.inf:
            return np.zeros_like(masses)
        return np.rint(self.step * np.log(masses) / float(self.rate)).astype(np.int64)


def _check_share(share: LaplaceShare | NoisyMaxShare) -> None:
    object.__setattr__(share, "epsilon", exact(share.epsilon))
    if share.honest < 1:
        raise BudgetError("at least one party must be honest")
    if share.epsilon != math.inf:
        check_rate(share.rate)


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

    #: What the ledger calls it.
    kind: ClassVar[MechanismKind]

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", exact_bound(self.spread, "the spread"))
        object.__setattr__(self, "epsilon", exact(self.epsilon))
        _ = self.scale

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(self.kind, Fraction(self.spread))

    @property
    def scale(self) -> float:
        """``spread / epsilon``, rounded up."""
        return round_up(self.spread / self.epsilon)


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Selection that is never worse than the exponential mechanism at the same pure epsilon."""

    kind = MechanismKind.PERMUTE_AND_FLIP

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

    kind = MechanismKind.EXPONENTIAL

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
    see :func:`~privet.privacy.stretches.draw_stretch`.
    """

    kind = MechanismKind.GRID_EXPONENTIAL

    @property
    def cost(self) -> Cost:
        """What one record pays: bounded range, rho is epsilon^2 / 8."""
        return Cost.bounded_range(self.epsilon)

    @cached_property
    def rate(self) -> Fraction:
        """What a unit of the score adds to a log weight: ``epsilon / spread``."""
        return Fraction(self.epsilon) / Fraction(self.spread)

    def choose(self, scores: Exact, lengths: NDArray[np.int64], noise: Noise) -> int:
        """Return the chosen grid point, counted from the start of the first stretch."""
        rows = Exact(np.asarray(scores)[None])
        return self.choose_each(rows, np.asarray(lengths)[None], noise)[0]

    def choose_each(self, scores: Exact, lengths: NDArray[np.int64], noise: Noise) -> list[int]:
        """Return a grid point for every row, each of a grid of its own."""
        if self.epsilon == math.inf:
            levels = np.where(lengths > 0, scores, np.iinfo(np.int64).min)
            behind = np.where(levels == levels.max(axis=1, keepdims=True), 0, -1)
            return noise.grid_points(behind, lengths, Fraction(10**9))  # others: exp(-10^9)
        return noise.grid_points(scores, lengths, self.rate)


@dataclass(frozen=True)
class TopOf(Selection):
    """The exponential mechanism several times, without replacement.

    Parameters
    ----------
    count : int
        How many candidates are chosen; each choice has the ``count``-th part of epsilon.
    """

    count: int

    kind = MechanismKind.TOP_OF

    @property
    def scale(self) -> float:
        """``spread * count / epsilon``, rounded up."""
        return round_up(self.spread * self.count / self.epsilon)

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(self.kind, Fraction(self.spread), times=self.count)

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
class ByLogWeights:
    """An exponential mechanism whose log weights are computed in doubles.

    Parameters
    ----------
    epsilon : Fraction
        The cost, the error of computing log weights in doubles included
        (docs/proofs/whole-trees.md).
    unit_parts : int
        In how many parts who pays counts; each adds its own error (docs/proofs/units.md).
    """

    epsilon: Amount
    unit_parts: int = field(default=1, kw_only=True)

    #: Bounds on the loss by rounding: relative to the rate, and absolute.
    RELATIVE_SLACK = Fraction(1, 2**12)
    ABSOLUTE_SLACK = Fraction(1, 2**20)
    #: Without privacy, one record outweighs everything else.
    LIMIT_RATE = 2.0**20

    def __post_init__(self) -> None:
        least = 4 * self.unit_parts * self.ABSOLUTE_SLACK
        if self.epsilon < least:
            raise BudgetError(f"epsilon is too small to draw with: less than {float(least):.1g}")

    def rate_for(self, spread: int) -> float:
        """Return the weight of a unit of a score that a part moves by the spread, rounded down."""
        if self.epsilon == math.inf:
            return self.LIMIT_RATE
        left = self.epsilon - self.unit_parts * self.ABSOLUTE_SLACK
        ideal = left / (1 + self.relative_slack) / (self.unit_parts * spread)
        return float_below(min(ideal, Fraction(self.LIMIT_RATE)))

    @property
    def relative_slack(self) -> Fraction:
        """What is kept back for rounding, relative to the rate."""
        return self.RELATIVE_SLACK

    @property
    def cost(self) -> Cost:
        """What one record pays: bounded range, rho is epsilon^2 / 8."""
        return Cost.bounded_range(self.epsilon)


@dataclass(frozen=True)
class WholeTree(ByLogWeights):
    """The exponential mechanism over whole labelled trees; ``privet.tables.whole_trees`` draws."""

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return MechanismFacts(MechanismKind.WHOLE_TREE)

    @property
    def rate(self) -> float:
        """How much a correctly classified record, or part, raises a tree's log weight."""
        return self.rate_for(1)


def spread_of(sensitivity: Amount, *, monotone: bool) -> Amount:
    """Return how far apart two scores' changes can be: S if all move one way, else 2 S."""
    return sensitivity if monotone else 2 * sensitivity


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """Add discrete Laplace noise to all scores and tell which is the largest, but not how large.

    Kept for comparison: permute-and-flip is better at the same cost. Ties go to the first. Proof:
    docs/proofs/topdown.md.
    """

    kind = MechanismKind.REPORT_NOISY_MAX

    @property
    def cost(self) -> Cost:
        """What one record pays."""
        return Cost.pure(self.epsilon)

    def choose(self, scores: Exact, noise: Noise) -> int:
        """Return the index of the chosen candidate."""
        return int(np.argmax(noise.add_laplace(np.asarray(scores, dtype=np.int64), self.scale)))
