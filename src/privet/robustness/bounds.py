"""What is left of an expected score after some rows were poisoned.

All bounds are about a *score* in [0, 1] of a fitted model, such as its accuracy on a given test
set, and about its expectation over fits: the mechanism's own coins. They start from the expectation
on the clean table. x counts rows added and removed; a changed row is one of each and counts twice.
An upper bound for a score is a lower bound for what it lacks to one. Proofs:
docs/proofs/poisoning.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from privet.robustness.promises import Promise

#: This many steps are computed one by one; beyond, twice as many rows make a step, and so on.
MOST_STEPS = 1000
#: Orders at which the Renyi divergence is used. Any set of them gives a valid bound.
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 120)
#: Rounding of a divergence computed in doubles.
_SLACK = 1e-10
_LARGEST = 700.0  # exponents up to which exp is finite


class Share(NamedTuple):
    """An expected score, and what it lacks to one: both, because either may be tiny."""

    has: float
    lacks: float

    @property
    def turned(self) -> Share:
        """The share of the opposite."""
        return Share(self.lacks, self.has)


def paper(promise: Promise, clean: Share, x: int) -> Share | None:
    """Vos et al., Corollary 2 (Ma, Zhu & Hsu 2019): ``e^(-x epsilon) a``."""
    if not promise.is_pure:
        return None
    return _of_has(math.exp(-x * promise.epsilon) * clean.has)


def pure(promise: Promise, clean: Share, x: int) -> Share | None:
    """``max(e^(-x epsilon) a, 1 - e^(x epsilon) (1 - a))``: tight for ``x epsilon``."""
    if not promise.is_pure:
        return None
    return _approximate(clean, x * promise.epsilon, 0.0)


def zcdp(promise: Promise, clean: Share, x: int) -> Share | None:
    """Hoelder's inequality at the best order, for the score and for what it lacks."""
    if math.isinf(promise.rho):
        return None
    return _concentrated(clean, x * math.sqrt(promise.rho))


def approximate(promise: Promise, clean: Share, x: int) -> Share | None:
    """Group privacy of (epsilon, delta); for a pure promise see :func:`pure`."""
    if not promise.delta:
        return None
    exponent = x * promise.epsilon
    if exponent > _LARGEST:
        return Share(0.0, 1.0)
    delta = promise.delta * math.expm1(exponent) / math.expm1(promise.epsilon)
    return _approximate(clean, exponent, delta)


def orders(promise: Promise, clean: Share, x: int) -> Share | None:
    """Return the least score that the Renyi divergences at many orders permit."""
    if math.isinf(promise.rho):
        return None
    budget = x * x * promise.rho
    if not x or not clean.has or not clean.lacks:
        return clean
    low, high = 0.0, clean.has
    for _ in range(45):
        middle = (low + high) / 2
        if middle == low:
            break
        if _permits(clean, Share(middle, 1 - middle), budget):
            high = middle
        else:
            low = middle
    return _of_has(low)


def steps(promise: Promise, clean: Share, x: int) -> Share:
    """Row by row: the best of the other bounds for one row, applied to what the last one left."""
    size = 1
    while x > MOST_STEPS * size:
        size *= 2  # steps of this many rows, by group privacy
    share = clean
    for _ in range(x // size):
        share = _step(promise, share, size)
    return _step(promise, share, x % size) if x % size else share


#: All bounds by name. Those that a promise does not support give None.
BOUNDS: Mapping[str, Callable[[Promise, Share, int], Share | None]] = {
    "paper": paper,
    "pure": pure,
    "zcdp": zcdp,
    "approximate": approximate,
    "orders": orders,
    "steps": steps,
}


def every_bound(promise: Promise, clean: Share, x: int) -> dict[str, Share]:
    """Return all bounds that a promise supports, by name."""
    found = {name: bound(promise, clean, x) for name, bound in BOUNDS.items()}
    return {name: share for name, share in found.items() if share is not None}


def _step(promise: Promise, share: Share, rows: int) -> Share:
    found = (bound(promise, share, rows) for bound in (pure, zcdp, approximate))
    return max((one for one in found if one is not None), key=lambda one: (one.has, -one.lacks))


def _approximate(clean: Share, exponent: float, delta: float) -> Share:
    """Return what (exponent, delta)-indistinguishable laws leave."""
    kept = _of_has(math.exp(-exponent) * max(clean.has - delta, 0.0))
    if not clean.lacks:
        lacks = delta
    elif exponent > _LARGEST:
        return kept
    else:
        lacks = math.exp(exponent) * clean.lacks + delta
    return max(kept, _of_lacks(lacks))


def _concentrated(clean: Share, root: float) -> Share:
    """Return what laws at a divergence of ``root**2`` times the order leave."""
    if not clean.has or not clean.lacks:
        return clean  # what is impossible, or certain, stays so
    kept = _of_has(math.exp(-((math.sqrt(-_log(clean)) + root) ** 2)))
    reserve = math.sqrt(-_log(clean.turned)) - root
    return max(kept, _of_lacks(math.exp(-(reserve**2)))) if reserve > 0 else kept


def _log(share: Share) -> float:
    return math.log(share.has) if share.has < 0.5 else math.log1p(-share.lacks)


def _of_has(has: float) -> Share:
    return Share(has, 1 - has)


def _of_lacks(lacks: float) -> Share:
    return Share(1 - lacks, lacks) if lacks < 1 else Share(0.0, 1.0)


def _permits(clean: Share, other: Share, budget: float) -> bool:
    """Tell whether the divergences of two coins, both ways, are within order times budget."""
    if not other.has or not other.lacks:
        return False
    limit = _ORDERS * budget * (1 + _SLACK) + _SLACK
    pairs = ((clean, other), (other, clean))
    return all(bool(np.all(_divergence(one, two) <= limit)) for one, two in pairs)


def _divergence(one: Share, two: Share) -> Any:
    """Return Renyi divergences of two coins at all orders."""
    rest = _ORDERS - 1
    terms = [
        _ORDERS * _log(ours) - rest * _log(theirs)
        for ours, theirs in ((one, two), (one.turned, two.turned))
    ]
    return np.logaddexp(*terms) / rest
