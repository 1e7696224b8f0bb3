"""How large noise gets: one draw, the largest of many, and the sum of k parties' draws.

Lemma 12 of DP-TopDown (Wang, Dick & Balcan), and what its Corollary 16 needs in its place. Nothing
here draws noise. Proofs: ``docs/proofs/planning.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincc, gammaln

from privet.planning._checks import positive, probability, whole

#: Up to so many draws the law of their sum is computed exactly; beyond, a Chernoff bound.
EXACT_DRAWS = 1000


def laplace_error(scale: float, failure: float, draws: int = 1) -> float:
    """Return what the largest of several Laplace draws stays below, but for ``failure``.

    Lemma 12 of DP-TopDown as printed, and right: ``scale * ln(draws / failure)``. An equality for
    one draw, a union bound for several.

    Examples
    --------
    >>> round(laplace_error(1.0, 0.05), 3)
    2.996
    """
    scale, failure = positive(scale, "the scale"), probability(failure, "failure")
    return scale * math.log(whole(draws, "draws") / failure)


def discrete_laplace_tail(scale: float, threshold: float) -> float:
    """Return the probability that a discrete Laplace draw exceeds a threshold in absolute value.

    The library's noise. It can exceed a threshold that is no whole number a little more often than
    Lemma 12's continuous noise does, and never a whole one.

    Examples
    --------
    >>> discrete_laplace_tail(1.0, 3) < 2 * sum_tail(1, 3.0)
    True
    """
    ratio = math.exp(-1 / positive(scale, "the scale"))
    if threshold < 0:
        return 1.0
    return 2 * ratio ** (math.floor(threshold) + 1) / (1 + ratio)


def sum_tail(draws: int, threshold: Any) -> Any:
    """Return the probability that a sum of Laplace draws of scale 1 exceeds a threshold >= 0.

    Exact for up to 1000 draws: given its sign, the sum is a mixture of gamma laws of shapes
    1 to ``draws``. Beyond, Chernoff's bound.

    Examples
    --------
    >>> round(sum_tail(2, 1.0), 4) == round((0.5 + 0.25) * math.exp(-1), 4)
    True
    """
    draws = whole(draws, "draws")
    x = np.maximum(np.asarray(threshold, dtype=np.float64), 0.0)
    if draws <= EXACT_DRAWS:
        j = np.arange(draws)
        log_share = gammaln(draws + j) - gammaln(j + 1) - gammaln(draws)
        share = np.exp(log_share - (draws - 1 + j) * math.log(2))
        tail = (share * gammaincc(draws - j, x[..., None])).sum(axis=-1) / 2
    else:
        tail = _chernoff(draws, x)
    return tail if tail.ndim else float(tail)


def _chernoff(draws: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``min exp(-a x) (1 - a^2)^-draws`` over a in (0, 1), and at most one half."""
    rate = x / (draws + np.hypot(draws, x))
    return np.asarray(np.minimum(0.5, np.exp(-rate * x - draws * np.log1p(-(rate**2)))))


def sum_error(scale: float, parties: int, failure: float, draws: int = 1) -> float:
    """Return what sums of k parties' Laplace draws stay below, but for ``failure``.

    Corollary 16 of DP-TopDown bounds each of the k draws (:func:`printed_sum_error`), which grows
    as ``k ln k``; the sum itself grows as ``sqrt(k)``. Several sums: a union bound.

    Examples
    --------
    >>> round(sum_error(1.0, 100, 0.05), 1), round(printed_sum_error(1.0, 100, 0.05), 1)
    (27.7, 760.1)
    """
    scale, failure = positive(scale, "the scale"), probability(failure, "failure")
    parties, each = whole(parties, "parties"), failure / whole(draws, "draws") / 2
    high = parties * math.log(parties / each) + 1
    return scale * float(brentq(lambda x: sum_tail(parties, x) - each, 0.0, high))


def printed_sum_error(scale: float, parties: int, failure: float) -> float:
    """Return Corollary 16's bound on a sum of k draws: ``k * scale * ln(k / failure)``. It holds.

    See :func:`sum_error`, which is exact.
    """
    return whole(parties, "parties") * laplace_error(scale, failure, parties)
