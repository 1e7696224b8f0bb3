"""Exact laws of functions of many independent noisy integers.

A published algorithm may noise a histogram of every feature and choose the best: the features'
noises are independent, so that the law of each score is found by itself, and then that of the
winner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.audit.laws import laplace_mass
from privet.errors import AuditError

#: More combinations of noisy integers than this are refused.
MOST_COMBINATIONS = 20_000_000


@dataclass(frozen=True)
class ScoreLaw:
    """The law of a score.

    Attributes
    ----------
    scores : array, ascending
    probabilities : array
    missing : float
        The probability of what was cut off.
    """

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    missing: float


def law_of_score(
    score: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    values: Sequence[int],
    scale: float,
    *,
    tail: float = 1e-10,
) -> ScoreLaw:
    """Return the law of a score of integers with discrete Laplace noise.

    Parameters
    ----------
    score : callable
        Takes arrays of shape (integers, combinations) and returns one number per combination.
    values : sequence of int
    scale : float
        Of the noise of each.
    tail : float
        Noise that is larger with no more than this probability is cut off; ``missing`` says how
        much that is in all.
    """
    reach = math.ceil(-scale * math.log(tail))
    noise = np.arange(-reach, reach + 1)
    if len(noise) ** len(values) > MOST_COMBINATIONS:
        raise AuditError("there are too many combinations of noise; use a larger tail")
    masses = np.exp([laplace_mass(int(k) - 1, int(k), scale) for k in noise])
    grids = np.meshgrid(*[noise + value for value in values], indexing="ij")
    weights = masses
    for _ in values[1:]:
        weights = np.multiply.outer(weights, masses)
    found = score(np.stack([grid.ravel() for grid in grids]))
    scores, place = np.unique(found, return_inverse=True)
    probabilities = np.bincount(place, weights.ravel(), len(scores)).astype(np.float64)
    return ScoreLaw(scores, probabilities, max(0.0, 1 - float(probabilities.sum())))


def first_smallest(laws: Sequence[ScoreLaw]) -> NDArray[np.float64]:
    """Return for every one of some independent scores the probability that it is the smallest.

    Of equal scores the first is taken, as by a loop that looks for a smaller one.
    """
    scores = np.unique(np.concatenate([law.scores for law in laws]))
    known = {id(law): _at(law, scores) for law in laws}
    equal = [known[id(law)] for law in laws]
    larger = [p[::-1].cumsum()[::-1] - p for p in equal]
    after = [np.ones(len(scores))]
    for p, more in zip(equal[:0:-1], larger[:0:-1], strict=True):
        after.append(after[-1] * (p + more))
    wins, before = [], np.ones(len(scores))
    for p, more, rest in zip(equal, larger, reversed(after), strict=True):
        wins.append(float((p * before * rest).sum()))
        before = before * more
    return np.array(wins)


def _at(law: ScoreLaw, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros(len(scores))
    found[np.searchsorted(scores, law.scores)] = law.probabilities
    return found
