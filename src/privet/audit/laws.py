"""The laws of the noise, exactly: what an audit knows of every question to a source of noise.

A *question* is what a mechanism asks of its source on one table. Asked on two tables at once, it
has *outcomes*: answers with their log probabilities on both. A noisy integer has infinitely many
answers, so that it is *rounded*: the integers are cut into a few intervals, the same for both
tables, each with one of its members for an answer. Rounding what a mechanism answers is
post-processing: it can only hide a loss, and the intervals are such that it does not hide the
largest one (docs/proofs/audit.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import AuditError

#: An answer, and its log probability on each of two tables.
Outcome = tuple[Any, float, float]

_NOWHERE = -math.inf
#: How far away an answer is that no stop rule takes for one near the truth, in scales.
FAR = 8
#: Beyond this scale the sums over integers of the Gaussian law are computed as integrals.
_LARGE_SCALE = 2_000.0


@dataclass(frozen=True, eq=False)
class Sums:
    """Integers that get noise of their own.

    ``weight`` is for noise that parties make together ("shares"): how many of the shares there are
    that make one discrete Laplace noise of that scale, over how many it takes.
    """

    law: str
    values: NDArray[np.int64]
    scale: float
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, eq=False)
class Choice:
    """One of a list, by the log probabilities that a selection of some scale gives them."""

    law: str
    scale: float
    logs: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """One point of a grid on which scores are constant by stretches."""

    scores: NDArray[np.int64]
    lengths: NDArray[np.int64]
    rate: Fraction


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a sampler of several draws makes, by its own law."""

    law: dict[Hashable, float]


Question = Sums | Choice | Grid | Drawn


def outcomes(one: Question, other: Question, most: int) -> list[Outcome] | None:
    """Return the outcomes of a question on two tables; None if it is not the same question."""
    match one, other:
        case Sums(), Sums():
            laws = [(each.law, each.scale, each.weight, each.values.shape) for each in (one, other)]
            if laws[0] != laws[1]:
                return None
            return _sums(one, other, most)
        case Choice(), Choice():
            if (one.law, one.scale, len(one.logs)) != (other.law, other.scale, len(other.logs)):
                return None
            pairs = zip(one.logs.tolist(), other.logs.tolist(), strict=True)
            return [(place, p, q) for place, (p, q) in enumerate(pairs)]
        case Grid(), Grid():
            if one.rate != other.rate or one.lengths.sum() != other.lengths.sum():
                return None
            return _points(one, other)
        case Drawn(), Drawn():
            either = dict.fromkeys([*one.law, *other.law])
            return [(x, one.law.get(x, _NOWHERE), other.law.get(x, _NOWHERE)) for x in either]
        case _:
            return None


def alone(question: Question) -> list[tuple[Any, float]]:
    """Return the outcomes on one table; integers keep their exact values."""
    if isinstance(question, Sums):
        return [(question.values.copy(), 0.0)]
    found = outcomes(question, question, 1)
    assert found is not None
    return [(answer, log) for answer, log, _ in found]


# Selections


def exponential(scores: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """Return the log probabilities of the exponential mechanism."""
    gaps = _gaps(scores, scale)
    return np.asarray(gaps - math.log(np.exp(gaps).sum()))


def permute_and_flip(scores: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """Return the log probabilities of permute-and-flip.

    With ``p = exp(gap)``, candidate i wins with probability ``p_i`` times the integral over [0, 1]
    of the product of ``1 - t p_j`` over the others (McKenna & Sheldon 2020): a polynomial, which
    Gauss's quadrature integrates exactly.
    """
    gaps = _gaps(scores, scale)
    points, weights = np.polynomial.legendre.leggauss(len(gaps) // 2 + 1)
    t = (points + 1) / 2
    factors = np.log1p(-np.exp(gaps)[:, None] * t[None, :])
    others = factors.sum(axis=0)[None, :] - factors
    return np.asarray(gaps + np.log((np.exp(others) * (weights / 2)[None, :]).sum(axis=1)))


def uniform(bound: int) -> Choice:
    """Return the question for an integer below a bound."""
    return Choice("uniform", float(bound), np.full(bound, -math.log(bound)))


def _gaps(scores: NDArray[Any], scale: float) -> NDArray[np.float64]:
    top = int(scores.max())
    return np.array([float(int(score) - top) for score in scores.tolist()]) / scale


def _points(one: Grid, other: Grid) -> list[Outcome]:
    """Cut a grid into segments on which both tables' scores are constant, one answer for each."""
    ends = [np.cumsum(grid.lengths) for grid in (one, other)]
    cuts = np.unique(np.concatenate([[0], *ends]))
    starts, sizes = cuts[:-1], np.diff(cuts)
    places = [np.searchsorted(end, starts, side="right") for end in ends]
    scores = [grid.scores[place] for grid, place in zip((one, other), places, strict=True)]
    single = (one.lengths[places[0]] == 1) & (other.lengths[places[1]] == 1)
    new = np.ones(len(starts), dtype=bool)
    new[1:] = ~(
        (scores[0][1:] == scores[0][:-1])
        & (scores[1][1:] == scores[1][:-1])
        & single[1:]
        & single[:-1]
    )
    first = np.flatnonzero(new)
    lengths = np.add.reduceat(sizes, first)
    logs = [
        _weighted(values[first], lengths, float(grid.rate))
        for values, grid in zip(scores, (one, other), strict=True)
    ]
    middles = starts[first] + lengths // 2
    return list(zip(middles.tolist(), logs[0].tolist(), logs[1].tolist(), strict=True))


def _weighted(
    scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: float
) -> NDArray[np.float64]:
    logs = np.log(lengths) + _gaps(scores, 1 / rate)
    top = logs.max()
    return np.asarray(logs - top - math.log(np.exp(logs - top).sum()))


# Noisy integers


def _sums(one: Sums, other: Sums, most: int) -> list[Outcome]:
    """Return the outcomes of noisy integers, rounded; at most ``most``, if that is possible."""
    pairs = list(zip(one.values.ravel().tolist(), other.values.ravel().tolist(), strict=True))
    intervals = _rounding(pairs, one.scale, most)
    masses: dict[str, Callable[[int | None, int | None, float], float]] = {
        "laplace": laplace_mass,
        "gaussian": gaussian_mass,
        "shares": partial(shares_mass, weight=one.weight),
    }
    mass = masses[one.law]
    parts = [
        [
            (
                _member(low, high, v),
                mass(_less(low, v), _less(high, v), one.scale),
                mass(_less(low, w), _less(high, w), one.scale),
            )
            for low, high in cells
        ]
        for (v, w), cells in zip(pairs, intervals, strict=True)
    ]
    shape = one.values.shape
    return [
        (
            np.array([part[0] for part in combined], dtype=np.int64).reshape(shape),
            math.fsum(part[1] for part in combined),
            math.fsum(part[2] for part in combined),
        )
        for combined in itertools.product(*parts)
    ]


#: Ever finer: how many more cuts on each side of integers that differ, and of those that do not.
_DETAIL = ((0, 0), (1, 0), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (32, 1))

Interval = tuple[int | None, int | None]


def _rounding(pairs: list[tuple[int, int]], scale: float, most: int) -> list[list[Interval]]:
    """Return intervals (low, high] for every integer: the finest detail within the limit."""
    best: list[list[Interval]] = []
    for detail in _DETAIL:
        found = [_intervals(v, w, scale, *detail) for v, w in pairs]
        if best and math.prod(map(len, found)) > most:
            break
        best = found
    if math.prod(map(len, best)) > max(most, 2**16):
        raise AuditError("a question changes in too many numbers to follow; use smaller tables")
    return best


def _intervals(v: int, w: int, scale: float, differing: int, equal: int) -> list[Interval]:
    """Cut the integers: everything up to both values, everything from both on, and between.

    One more cut on each side is far away, so that rules about large and small counts are followed
    both ways; more of them are half a scale apart.
    """
    low, high = min(v, w), max(v, w)
    cuts = set() if low == high else {low, high - 1}
    times = equal if low == high else differing
    for k in range(times):
        far = max(k, math.ceil(k * scale / 2)) if k else math.ceil(FAR * scale)
        cuts |= {low - far, high - 1 + far}
    ordered: list[int | None] = [None, *sorted(cuts), None]
    return list(itertools.pairwise(ordered))


def _member(low: int | None, high: int | None, value: int) -> int:
    """Return the answer that stands for the integers above low, up to high: the value if it can."""
    if low is None:
        return value if high is None else high
    if high is None:
        return low + 1
    return value if low < value <= high else (low + 1 + high) // 2


def _less(end: int | None, value: int) -> int | None:
    return None if end is None else end - value


def laplace_mass(low: int | None, high: int | None, scale: float) -> float:
    """Return the log probability that discrete Laplace noise lies above low, up to high."""
    q = math.exp(-1 / scale)
    if low is None and high is None:
        return 0.0
    if low is None or (high is not None and high < 0):
        assert high is not None
        if high >= 0:  # all but a tail on the right
            return math.log1p(-math.exp(laplace_mass(high, None, scale)))
        rest = 0.0 if low is None else math.log1p(-math.exp((low - high) / scale))
        return high / scale + rest - math.log1p(q)
    if high is None or low >= 0:
        if low < 0:
            return math.log1p(-math.exp(laplace_mass(None, low, scale)))
        rest = 0.0 if high is None else math.log1p(-math.exp((low - high) / scale))
        return -(low + 1) / scale + rest - math.log1p(q)
    inner = -math.expm1(low / scale) - q * math.expm1(-high / scale)
    return math.log(inner) - math.log1p(q)


def gaussian_mass(low: int | None, high: int | None, scale: float) -> float:
    """Return the log probability that discrete Gaussian noise lies above low, up to high.

    Sums of the weights up to a scale of 2,000; beyond, integrals, whose relative error is of the
    order of the inverse squared scale.
    """
    if scale > _LARGE_SCALE:
        left = -math.inf if low is None else (low + 0.5) / scale
        right = math.inf if high is None else (high + 0.5) / scale
        return _normal_mass(left, right)
    return _tabled_mass(low, high, *_gaussian_sums(scale))


def shares_mass(
    low: int | None, high: int | None, scale: float, *, weight: Fraction = Fraction(1)
) -> float:
    """Return the log probability that the sum of some shares of noise lies above low, up to high.

    A share is the difference of two Polya variables (negative binomial with r = 1/h). So is the sum
    of k of them, with r = k/h, which is the weight: at 1 it is discrete Laplace noise.
    """
    return _tabled_mass(low, high, *_share_sums(scale, weight))


def _tabled_mass(
    low: int | None, high: int | None, cumulative: NDArray[np.float64], reach: int
) -> float:
    """Return a log probability of a symmetric law, from a table of P(noise >= k - reach)."""
    if high is not None and (low is None or low + high < 0):  # mirror: small sums keep their digits
        low, high = -high - 1, None if low is None else -low - 1
    if low is None:
        return 0.0
    above = cumulative[min(max(low + 1 + reach, 0), 2 * reach + 1)]
    beyond = 0.0 if high is None else cumulative[min(max(high + 1 + reach, 0), 2 * reach + 1)]
    return math.log(above - beyond) if above > beyond else -math.inf


@lru_cache(maxsize=64)
def _gaussian_sums(scale: float) -> tuple[NDArray[np.float64], int]:
    """Return P(noise >= k - reach) for k = 0, 1, ..., added up from the small ends."""
    reach = math.ceil(38 * scale) + 2
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-((k / scale) ** 2) / 2)
    tails = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
    return tails / tails[0], reach


@lru_cache(maxsize=64)
def _share_sums(scale: float, weight: Fraction) -> tuple[NDArray[np.float64], int]:
    """Return P(noise >= k - reach) for a difference of two Polya variables."""
    law = polya(1 / scale, weight)
    difference = np.convolve(law, law[::-1])
    tails = np.concatenate([np.cumsum(difference[::-1])[::-1], [0.0]])
    return tails / tails[0], len(law) - 1


@lru_cache(maxsize=64)
def polya(rate: float, weight: Fraction) -> NDArray[np.float64]:
    """Return P(X = x) for x = 0, 1, ... of the sum of some Polya variables; a weight of 1: all.

    Up to where the tail is beyond what doubles tell.
    """
    r, steps = float(weight), math.ceil((60 + 10 * float(weight)) / rate) + 2
    x = np.arange(1, steps)
    factors = np.concatenate([[0.0], np.log((r + x - 1) / x) - rate])
    logs = np.cumsum(factors)
    masses = np.exp(logs - logs.max())
    return np.asarray(masses / masses.sum())


def largest(law: NDArray[np.float64], leads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log probability of each of several options to have the largest noisy score.

    Parameters
    ----------
    law : array
        P(X = x) of the noise of every option, in whole steps from 0 on.
    leads : array of shape (options, options)
        Option k is ahead of option j if and only if its noise exceeds that of j by at least
        ``leads[k, j]`` steps.
    """
    cumulative = np.cumsum(law)
    x = np.arange(len(law))
    found = []
    for option, needed in enumerate(leads):
        masses = law.copy()
        for other, lead in enumerate(needed.tolist()):
            if other != option:
                most = x - lead
                below = cumulative[np.clip(most, 0, len(law) - 1)]
                masses = masses * np.where(most >= 0, below, 0.0)
        found.append(masses.sum())
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found))


def _normal_mass(left: float, right: float) -> float:
    from scipy.special import log_ndtr

    if left + right > 0:
        left, right = -right, -left
    top, bottom = float(log_ndtr(right)), float(log_ndtr(left))
    return top + math.log1p(-math.exp(bottom - top)) if bottom < top else -math.inf
