"""The best that an attacker can do who wants to know whether somebody is in the table.

The attacker knows everything but that, sees what was released, and says "in" or "out". Of those who
are out, a part is called in by mistake (the false-positive rate); of those who are in, a part is
found (the true-positive rate). A guarantee bounds the second by the first, for every attacker.

The bounds follow from what a fit was allowed to spend: epsilon, epsilon and delta, or rho
(docs/proofs/odds.md). Several may hold at once; then the lowest does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Orders of Renyi divergence at which rho is used. Each alone gives a bound that holds, so that
#: leaving some out makes the result higher, never wrong.
_ORDERS = 1 + np.logspace(-3, 4, 281)
#: Steps of bisection: about the digits of a double.
_STEPS = 50


@dataclass(frozen=True)
class Guarantee:
    """What is promised of two neighbouring tables.

    Attributes
    ----------
    epsilon : float
        With ``delta``; pure if that is 0; infinite if there is none.
    delta : float
    rho : float
        zCDP; infinite if there is none.

    Examples
    --------
    >>> one = Guarantee(epsilon=1.0)
    >>> round(one.true_positives(0.01), 4), round(one.advantage, 4)
    (0.0272, 0.4621)
    >>> round(Guarantee(rho=0.05).true_positives(0.1), 4)
    0.1847
    """

    epsilon: float = math.inf
    delta: float = 0.0
    rho: float = math.inf

    @property
    def holds(self) -> bool:
        """Whether anything is promised at all."""
        return (self.epsilon < math.inf and self.delta < 1) or self.rho < math.inf

    def true_positives(self, false_positives: float) -> float:
        """Return the most members that an attacker finds who calls that part of others members."""
        found = _by_epsilon(self.epsilon, self.delta, false_positives)
        if self.rho < math.inf:
            found = min(found, _by_rho(self.rho, false_positives))
        return found

    @property
    def advantage(self) -> float:
        """The most by which the true-positive rate can exceed the false-positive rate."""
        # All bounds are concave, and so is the lowest of them: the peak is found by bisection.
        return max(0.0, _peak(lambda share: self.true_positives(share) - share))


def _by_epsilon(epsilon: float, delta: float, share: float) -> float:
    """Return the trade-off of (epsilon, delta) (Wasserman & Zhou 2010; Kairouz et al. 2015)."""
    if epsilon > 700:  # beyond doubles, and beyond any use
        return 1.0 if share else min(1.0, delta)
    by_members = delta + math.exp(epsilon) * share
    by_others = 1 - math.exp(-epsilon) * max(0.0, 1 - delta - share)
    return min(1.0, by_members, by_others)


def _by_rho(rho: float, share: float) -> float:
    """Return the largest probability that zCDP allows an event whose probability is ``share``.

    To say "in" or "out" is to toss one of two coins: what their Renyi divergences exceed, no
    attacker reaches.
    """
    if share <= 0 or share >= 1:
        return 1.0 if share >= 1 else 0.0
    low, high = share, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _coins_within(rho, middle, share):
            low = middle
        else:
            high = middle
    return high


def _coins_within(rho: float, p: float, q: float) -> bool:
    """Tell whether coins of probabilities p and q are within rho-zCDP of each other, both ways."""
    if p in (0.0, 1.0) or q in (0.0, 1.0):
        return p == q
    most = _ORDERS * rho
    return bool(
        np.all(_divergences(_ORDERS, p, q) <= most) and np.all(_divergences(_ORDERS, q, p) <= most)
    )


def _divergences(orders: NDArray[np.float64], p: float, q: float) -> NDArray[np.float64]:
    """Return the Renyi divergences of two coins, of orders above 1."""
    heads, tails = math.log(p) - math.log(q), math.log1p(-p) - math.log1p(-q)
    # log of q e^(order heads) + (1 - q) e^(order tails), without overflow
    found = np.logaddexp(math.log(q) + orders * heads, math.log1p(-q) + orders * tails)
    return np.asarray(found / (orders - 1))


def _peak(function: Callable[[float], float]) -> float:
    """Return the largest value of a concave function between 0 and 1."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = 0.0, 1.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(60):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
    return max(at_left, at_right)
