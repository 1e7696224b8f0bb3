"""What a few fits prove about the expectation over all fits. No normal approximations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.robustness.promises import NoGuarantee

#: Stakes of the bets; the largest has half of the capital (see :func:`_low_by_bets`).
_STAKES = np.append(np.geomspace(1e-3, 0.95, 24), 1.0)
_LOG_CAPITAL = np.log(np.append(np.full(24, 0.5 / 24), 0.5))


@dataclass(frozen=True)
class Estimate:
    """An expectation over fits with limits. Each limit by itself has the confidence.

    Attributes
    ----------
    value : float
        The mean of the runs.
    low, high : float
        The limits.
    confidence : float
        How sure each limit is.
    fits : int
        How many there were.
    test_rows : int or None
        If given, the limits are about all rows that the test rows were drawn from; else about
        these test rows.
    """

    value: float
    low: float
    high: float
    confidence: float
    fits: int
    test_rows: int | None = None


def expected(runs: Any, *, confidence: float = 0.95, test_rows: int | None = None) -> Estimate:
    """Estimate the expected score of a learner from independent fits on one table.

    Parameters
    ----------
    runs : array of float
        One score in [0, 1] per fit, all with the same table and the same test rows.
    confidence : float, default=0.95
        Of either limit.
    test_rows : int, optional
        The number of test rows, if they are a random sample (not used in any fit) and the statement
        is to be about the population. Half of the error probability then goes to the sampling.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> found = expected([0.84, 0.85, 0.83, 0.84, 0.86] * 10)
    >>> round(found.low, 3), round(found.value, 3), round(found.high, 3)
    (0.785, 0.844, 0.855)
    """
    scores = check_scores(runs)
    error = 1 - check_confidence(confidence)
    if test_rows is not None and (isinstance(test_rows, bool) or int(test_rows) < 1):
        raise NoGuarantee("the number of test rows must be at least 1")
    error /= 1 if test_rows is None else 2
    low, high = _low_by_bets(scores, error), 1 - _low_by_bets(1 - scores, error)
    if test_rows is not None:
        low = _low_by_divergence(low, int(test_rows), error)
        high = 1 - _low_by_divergence(1 - high, int(test_rows), error)
    return Estimate(float(scores.mean()), low, high, float(confidence), len(scores), test_rows)


def rate_at_most(failures: int, runs: int, confidence: float = 0.95) -> float:
    """Return an upper limit of a probability (Clopper & Pearson 1934).

    Examples
    --------
    >>> round(rate_at_most(0, 1000, confidence=0.999), 4)
    0.0069
    """
    from scipy.special import betainccinv

    if not 0 <= failures <= runs or runs < 1:
        raise NoGuarantee("there must be at least one run, and not more failures than runs")
    error = 1 - check_confidence(confidence)
    return 1.0 if failures == runs else float(betainccinv(failures + 1, runs - failures, error))


def check_scores(runs: Any) -> NDArray[np.float64]:
    """Return the scores of runs, or say what is wrong with them."""
    try:
        scores = np.asarray(runs, dtype=np.float64)
    except (TypeError, ValueError):
        raise NoGuarantee("the runs must be numbers") from None
    if scores.ndim != 1 or not len(scores):
        raise NoGuarantee("the runs must be a list of scores, one per fit")
    if not np.all((scores >= 0) & (scores <= 1)):
        raise NoGuarantee("the score of every run must lie between 0 and 1")
    return scores


def check_confidence(confidence: Any) -> float:
    """Return a confidence, or say what is wrong with it."""
    if isinstance(confidence, bool) or not 0 < float(confidence) < 1:
        raise NoGuarantee("confidence must lie between 0 and 1")
    return float(confidence)


def _low_by_bets(scores: NDArray[np.float64], error: float) -> float:
    """Return a lower limit of the mean (Waudby-Smith & Ramdas 2024, with fixed bets).

    Whoever stakes a part t of the capital on every run being above m multiplies it by
    ``1 - t + t score / m``, on average by at most 1 if the mean is at most m. The capital, which is
    divided among several t, falls as m rises; it exceeds ``1 / error`` with probability ``error``
    at most (Markov), so the m at which it does are below the mean.
    """

    def excluded(mean: float) -> bool:
        with np.errstate(divide="ignore"):
            growth = np.log(1 + np.outer(_STAKES, scores / mean - 1)).sum(axis=1)
        return bool(np.logaddexp.reduce(_LOG_CAPITAL + growth) >= -math.log(error))

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _low_by_divergence(mean: float, rows: int, error: float) -> float:
    """Return a lower limit of an expectation from a mean over rows (Hoeffding 1963, Theorem 1)."""
    allowed = -math.log(error) / rows

    def divergence(other: float) -> float:
        parts = ((mean, other), (1 - mean, 1 - other))
        return sum(ours * math.log(ours / theirs) for ours, theirs in parts if ours > 0)

    if mean <= 0:
        return 0.0
    low, high = 0.0, mean
    for _ in range(50):
        middle = (low + high) / 2
        if middle <= 0 or divergence(middle) > allowed:
            low = middle
        else:
            high = middle
    return low
