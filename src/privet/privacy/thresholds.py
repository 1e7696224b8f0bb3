"""Noisy counts of values that nobody has listed, of which only the frequent ones are released.

No list is public, so no noise is drawn for values that nobody has: whether a value is counted at
all depends on the records. A threshold hides that but for a small delta, for a whole person with
several values. Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from privet.errors import BudgetError
from privet.privacy.budget import Amount, Budget, Cost, exact
from privet.privacy.entries import MechanismFacts, Question, QuestionKind
from privet.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Released,
    noise_for,
)
from privet.privacy.noise import Noise

#: The part of a discovery's budget that is for the exact place of bounds within magnitudes, if all
#: columns are numbers: of epsilon, and of rho, of which noise has the root.
BOUNDS_SHARE, BOUNDS_SHARE_OF_RHO = Fraction(3, 10), Fraction(1, 10)
#: Tails are computed in doubles: this is far more than what rounding takes away.
_SLACK = 1e-9


@dataclass(frozen=True)
class Threshold:
    """Noise on counts, of which those of values below a threshold are not released.

    Parameters
    ----------
    noise : DiscreteLaplace or DiscreteGaussian
        For all counts of all columns together.
    columns : int
        Of how many columns the values are not listed.
    parts : int
        What the counts of a column change by at most, in all, when one person is added.
    delta : Fraction
        The probability, at most, that a value appears which one person alone has.
    """

    noise: DiscreteLaplace | DiscreteGaussian
    columns: int
    parts: int
    delta: Amount

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", exact(self.delta, "the delta of thresholds"))
        if not self.delta < 1:
            raise BudgetError("the delta of thresholds must be below 1, and far below it")
        if self.columns < 1 or self.parts < 1:
            raise BudgetError("a threshold is for at least one column and one part")
        _ = self.least

    @property
    def facts(self) -> MechanismFacts:
        """What the books say of it."""
        return self.noise.facts

    @property
    def cost(self) -> Cost:
        """What one person pays."""
        return replace(self.noise.cost, delta=self.delta)

    @cached_property
    def least(self) -> int:
        """The threshold: the least noisy count, in parts, with which a value is released.

        A person has at most as many values as parts. The tail is convex, so that the worst are one
        value of all parts and others of one part each.
        """
        if not self.noise.scale:
            return self.parts + 1
        most = float(Fraction(self.delta) / self.columns) * (1 - _SLACK)
        low = high = self.parts + 1
        while self._appears(high) > most:
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._appears(middle) > most else (low, middle)
        return low

    def _appears(self, least: int) -> float:
        """Bound the probability that any value of one person alone is released, in one column."""
        return self._tail(least - self.parts) + (self.parts - 1) * self._tail(least - 1)

    def _tail(self, least: int) -> float:
        """Bound the probability that the noise is at least a number that is at least one."""
        scale = self.noise.scale
        if isinstance(self.noise, DiscreteLaplace):
            return math.exp(-least / scale) / (1 + math.exp(-1 / scale))
        # At most that of a normal law at the number before (Canonne, Kamath & Steinke 2020).
        return math.erfc((least - 1) / (scale * math.sqrt(2))) / 2

    def release(self, exact: Exact, noise: Noise) -> Released:
        """Return the counts with noise; those below :attr:`least` must not leave."""
        return self.noise.release(exact, noise)


def discovery_budget(epsilon: Amount, delta: Amount, *, gaussian: bool, lists: int) -> Budget:
    """Return what the discovery of a schema may spend.

    With Laplace noise all of delta is for thresholds; with Gaussian noise one half is, and the
    other half turns rho into epsilon. Without lists there are no thresholds.
    """
    if not gaussian:
        return Budget(epsilon, threshold_delta=delta if lists else Fraction(0))
    if not lists:
        return Budget(epsilon, delta=delta)
    half = exact(delta, "delta") / 2
    return Budget(epsilon, delta=half, threshold_delta=half)


@dataclass(frozen=True)
class DiscoveryNoise:
    """The noise by which a schema is discovered, with a whole budget: in all, it costs that.

    Parameters
    ----------
    budget : Budget
        See :func:`discovery_budget`.
    columns : int
        Of how many columns bounds or lists are found: a person has parts in each of them.
    lists : int
        Of how many of these it is lists.
    parts : int
        What a person's records weigh, in all.
    """

    budget: Budget
    columns: int
    lists: int
    parts: int

    @property
    def numbers(self) -> int:
        """Of how many columns bounds are found."""
        return self.columns - self.lists

    @property
    def bounds_share(self) -> Fraction:
        """The part of the budget that is for the exact place of bounds."""
        if self.budget.accountant != "pure":
            return BOUNDS_SHARE_OF_RHO if self.numbers else Fraction(0)
        return BOUNDS_SHARE * Fraction(self.numbers, self.columns)

    @cached_property
    def counts(self) -> DiscreteLaplace | DiscreteGaussian | Threshold:
        """The noise of magnitudes and texts: of all columns."""
        noise = self._of(self.columns, 1 - self.bounds_share)
        lists, delta = self.lists, self.budget.threshold_delta
        return Threshold(noise, lists, self.parts, delta) if lists else noise

    @cached_property
    def eighths(self) -> DiscreteLaplace | DiscreteGaussian | None:
        """The noise of where within its magnitude a number is: of all columns with bounds."""
        return self._of(self.numbers, self.bounds_share) if self.numbers else None

    def _of(self, columns: int, share: Fraction) -> DiscreteLaplace | DiscreteGaussian:
        limit = self.budget.limit
        amount = limit if limit == math.inf else limit * share
        l1, squared_l2 = columns * self.parts, columns * self.parts**2
        return noise_for(self.budget, amount, l1=l1, squared_l2=squared_l2)

    @property
    def questions(self) -> list[tuple[Question, DiscreteLaplace | DiscreteGaussian | Threshold]]:
        """What is asked of the whole table, and by which mechanism: each is charged."""
        asked = [(Question(QuestionKind.SCHEMA, count=self.columns), self.counts)]
        if self.eighths is not None:
            asked.append((Question(QuestionKind.BOUNDS, count=self.numbers), self.eighths))
        return asked
