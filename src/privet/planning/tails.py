"""How large noise gets: one draw, the largest of many, and the sum of k parties' draws.

Lemma 12 of DP-TopDown (Wang, Dick & Balcan), and what its Corollary 16 needs in its place. Nothing
here draws noise. Proofs: ``docs/proofs/planning.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from privet.planning._checks import finite, not_negatives, positive, probability, whole

#: Where the trapezoid rule of :func:`sum_tail` looks, in deviations from the middle. Further to the
#: left, since a gamma law of shape 1 falls off slowly there.
STEPS = np.linspace(-38, 10, 193)


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
    threshold = finite(threshold, "the threshold")
    if threshold < 0:
        return 1.0
    return 2 * ratio ** (math.floor(threshold) + 1) / (1 + ratio)


def sum_tail(draws: int, threshold: Any) -> Any:
    """Return the probability that a sum of Laplace draws of scale 1 exceeds a threshold >= 0.

    Exact, up to rounding: the sum is normal with variance 2 G, where G has a gamma law of shape
    ``draws``.

    Examples
    --------
    >>> round(sum_tail(2, 1.0), 4) == round((0.5 + 0.25) * math.exp(-1), 4)
    True
    """
    draws = whole(draws, "draws")
    x = not_negatives(threshold, "the threshold")[..., None] / draws
    x = np.minimum(x, 1500 / draws + 2)  # where the probability is below the smallest float
    # the trapezoid rule over ln(G / draws), around the most probable G of those that make such sums
    middle = (1 + np.hypot(1, x)) / 2
    width = 1 / np.sqrt(draws * (middle + x**2 / (4 * middle)))
    place = np.log(middle) + width * STEPS
    normal = log_ndtr(-x * np.sqrt(draws / 2) * np.exp(-place / 2))
    tail = (np.exp(_log_gamma_law(draws, place) + normal) * width).sum(axis=-1)
    step = 1 / math.sqrt(draws)
    tail /= (np.exp(_log_gamma_law(draws, step * STEPS)) * step).sum()
    return tail if tail.ndim else float(tail)


def _log_gamma_law(shape: int, place: Any) -> Any:
    """Return the logarithm of the density of ln(G / shape), but for a constant."""
    return shape * (place - np.expm1(place))


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

    See :func:`sum_error`, which is exact for one sum.
    """
    return whole(parties, "parties") * laplace_error(scale, failure, parties)
