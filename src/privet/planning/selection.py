"""What private selections lose: expected and with high probability, in the units of the score.

A candidate has weight ``exp(epsilon * score / spread)``; losses are counted from the best score.
All bounds are over *every* table, so that they need no data. Proofs: ``docs/proofs/planning.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincinv, lambertw, log_ndtr

from privet.planning._checks import (
    PlanError,
    not_negative,
    not_negatives,
    positive,
    probability,
    whole,
)
from privet.planning.tails import sum_error, sum_tail


def exponential_loss(candidates: int, epsilon: float, spread: float = 1.0) -> float:
    """Return the largest expected loss of the exponential mechanism; attained.

    ``(spread / epsilon) W((H - 1) / e)`` with Lambert's W: the worst table has all other candidates
    at the same distance from the best.

    Examples
    --------
    >>> round(exponential_loss(2, 1.0), 4), round(flip_loss(2, 1.0), 4)
    (0.2785, 0.1839)
    """
    others = whole(candidates, "candidates") - 1
    scale = positive(spread, "the spread") / positive(epsilon, "epsilon")
    return scale * float(lambertw(others / math.e).real)


def flip_loss(candidates: int, epsilon: float, spread: float = 1.0) -> float:
    """Return the largest expected loss of permute-and-flip; attained.

    Corollary 1 of PrivaTree (McKenna & Sheldon 2020) with the weight that monotone scores allow:
    ``max_p ln(1/p) (1 - (1 - (1-p)^H) / (H p))``, times ``spread / epsilon``. Labels are selections
    among classes of spread 1: ``1 / (2 e)`` rows per leaf and epsilon for two.
    """
    scale = positive(spread, "the spread") / positive(epsilon, "epsilon")
    return scale * _worst_flip(whole(candidates, "candidates"))


@lru_cache
def _worst_flip(candidates: int) -> float:
    if candidates == 1:
        return 0.0
    x = np.linspace(0, math.log(candidates) + 20, 200_001)[1:]
    return float((x * flip_tail(candidates, x)).max()) * (1 + 1e-8)


def exponential_tail(candidates: int, loss: Any) -> Any:
    """Return the largest probability that the exponential mechanism loses at least this much.

    ``loss`` is counted in ``spread / epsilon``. Attained.
    """
    others = whole(candidates, "candidates") - 1
    odds = others * np.exp(-not_negatives(loss, "the loss"))
    return odds / (1 + odds)


def flip_tail(candidates: int, loss: Any) -> Any:
    """Return the largest probability that permute-and-flip loses at least this much.

    ``loss`` is counted in ``spread / epsilon``. Attained, and never above
    :func:`exponential_tail`.

    Examples
    --------
    >>> round(float(flip_tail(2, 1.0)), 4) == round(math.exp(-1) / 2, 4)
    True
    """
    candidates = whole(candidates, "candidates")
    p = np.exp(-not_negatives(loss, "the loss"))
    # 1 - (1 - (1-p)^H) / (H p); its series where the difference would lose all digits
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(candidates * np.log1p(-p)) / (candidates * p)
    series = (candidates - 1) * p / 2
    small = candidates * p < 1e-5
    return np.where(small, series, np.maximum(1 - share, 0.0))[()]


def exponential_error(
    candidates: int, epsilon: float, failure: float, spread: float = 1.0
) -> float:
    """Return what the exponential mechanism's loss stays below, but for ``failure``."""
    failure, others = probability(failure, "failure"), whole(candidates, "candidates") - 1
    scale = positive(spread, "the spread") / positive(epsilon, "epsilon")
    if others == 0:
        return 0.0
    return scale * max(0.0, math.log(others * (1 - failure) / failure))


def flip_error(candidates: int, epsilon: float, failure: float, spread: float = 1.0) -> float:
    """Return what permute-and-flip's loss stays below, but for ``failure``.

    Examples
    --------
    >>> flip_error(100, 1.0, 0.05) < exponential_error(100, 1.0, 0.05) < math.log(100 / 0.05)
    True
    """
    failure, candidates = probability(failure, "failure"), whole(candidates, "candidates")
    scale = positive(spread, "the spread") / positive(epsilon, "epsilon")
    if float(flip_tail(candidates, 0.0)) <= failure:
        return 0.0
    high = math.log(candidates / failure)
    return scale * float(brentq(lambda x: float(flip_tail(candidates, x)) - failure, 0.0, high))


def flip_probability(gap: Any, epsilon: float, parties: int = 1) -> Any:
    """Return how often noisy counts of two classes swap a majority of ``gap`` rows.

    DiPriMe's P_f, ``(1/2 + epsilon gap / 4) exp(-epsilon gap)``, which is right (its cut at zero
    changes nothing). With k parties, each of which adds its own noise, the law of 2 k draws.

    Examples
    --------
    >>> round(flip_probability(1.0, 1.0), 4)
    0.2759
    """
    gap = not_negatives(gap, "the gap")
    return sum_tail(2 * whole(parties, "parties"), positive(epsilon, "epsilon") * gap)


def discrete_flip_probability(gap: int, epsilon: float) -> float:
    """Return the same for the library's integer noise, a tie being broken by a fair coin."""
    gap, epsilon = whole(gap, "the gap", 0), positive(epsilon, "epsilon")
    ratio, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    front = (rest / (1 + ratio)) ** 2
    shift = (1 + ratio**2) / (rest * (1 + ratio))
    tie = front * ratio**gap * (gap + shift)
    above = front * ratio ** (gap + 1) * ((gap + 1 + shift) / rest + ratio / rest**2)
    return above + tie / 2


def label_loss(
    classes: int, epsilon: float, *, by: str = "flip", parties: int = 1, gap: float = 0.0
) -> float:
    """Return a bound on the rows that a leaf's private label loses, expected.

    Parameters
    ----------
    classes : int
    epsilon : float
        What labels cost.
    by : {"flip", "counts"}
        Permute-and-flip on exact counts, or the largest of noisy class counts.
    parties : int, default=1
        With ``"counts"``: how many parties add noise of their own.
    gap : float, default=0
        With two classes: the majority is known to lead by this many rows.

    Returns
    -------
    float
        Attained for permute-and-flip, and for counts of two classes. For counts of more classes
        the smaller of two bounds: their number less one, times the loss to one of them; and the
        largest of their noises, expected.

    Examples
    --------
    >>> round(label_loss(2, 1.0), 4), round(label_loss(2, 1.0, by="counts"), 4)
    (0.1839, 0.2935)
    >>> round(label_loss(100, 1.0), 1), round(label_loss(100, 1.0, by="counts"), 1)
    (2.4, 4.5)
    """
    classes, epsilon = whole(classes, "classes", 2), positive(epsilon, "epsilon")
    if by not in ("flip", "counts"):
        raise PlanError("labels are chosen by 'flip' or by 'counts'")
    gap = not_negative(gap, "the gap")
    start = epsilon * gap if classes == 2 else 0.0
    if by == "flip":
        if start > 1:  # the worst gap for two classes is 1 / epsilon
            return gap * math.exp(-start) / 2
        return flip_loss(classes, epsilon)
    parties = whole(parties, "parties")
    lost = (classes - 1) * _worst_swap(parties, start)
    return (lost if classes == 2 else min(lost, _largest_noise(classes, parties))) / epsilon


@lru_cache
def _worst_swap(parties: int, start: float) -> float:
    """Return the largest ``x P(sum of 2 k draws > x)`` over x >= start."""
    x = np.maximum(np.linspace(0, 8 * math.sqrt(parties), 4001), start)
    return float((x * sum_tail(2 * parties, x)).max()) * (1 + 1e-5)


@lru_cache
def _largest_noise(classes: int, parties: int) -> float:
    """Return the expected largest of some sums of k draws, from above: at least the label's loss.

    A class that wins is behind by no more than its noise is ahead of the best class's.
    """
    last = sum_error(1.0, parties, 1e-9, classes)  # what is beyond is less than the sum's excess
    x, step = np.linspace(0, last, 4000, endpoint=False, retstep=True)
    tail = sum_tail(parties, x)
    # P(largest > x) - P(largest < -x) falls with x: a sum from the left is above the integral
    return float((-np.expm1(classes * np.log1p(-tail)) - tail**classes).sum() * step)


def shared_loss(candidates: int, epsilon: float, spread: float = 1.0, shares: float = 1.0) -> float:
    """Return what a choice among parties loses, expected, if the others are all as far behind.

    Of permute-and-flip with the noise of several parties: ``shares`` times as many as make the
    noise that is needed. With 1 it is :func:`flip_loss`.

    Examples
    --------
    >>> shared_loss(100, 1.0) == flip_loss(100, 1.0) < shared_loss(100, 1.0, shares=2.0)
    True
    """
    candidates, shares = whole(candidates, "candidates"), positive(shares, "shares")
    scale = positive(spread, "the spread") / positive(epsilon, "epsilon")
    return scale * (_worst_flip(candidates) if shares == 1 else _worst_share(candidates, shares))


@lru_cache
def _worst_share(candidates: int, shares: float) -> float:
    """Return the largest ``g P(another wins)`` with gamma noise of a shape, others g behind."""
    others = candidates - 1
    noise = gammaincinv(shares, (np.arange(2_000) + 0.5) / 2_000)
    gaps = np.linspace(0.02, math.log(candidates) + 3 * shares + 5, 400)
    with np.errstate(divide="ignore"):
        wins = np.exp(others * np.log(gammainc(shares, noise + gaps[:, None]))).mean(axis=1)
    return float((gaps * (1 - wins)).max())


def normal_loss(candidates: int) -> float:
    """Return the largest ``g P(another candidate wins)`` for normal noise of deviation 1.

    All others are g behind the best, with independent noise of their own. An estimate of what the
    largest of noisy gains loses: real noise is neither normal nor independent.
    """
    return _worst_normal(whole(candidates, "candidates"))


@lru_cache
def _worst_normal(candidates: int) -> float:
    others = candidates - 1
    if others == 0:
        return 0.0
    x = np.linspace(-7, 7, 561)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    gaps = np.linspace(0.05, 3 + 2 * math.sqrt(2 * math.log(candidates)), 400)
    wins = np.exp(others * log_ndtr(x + gaps[:, None])) @ density
    return float((gaps * (1 - wins)).max())
