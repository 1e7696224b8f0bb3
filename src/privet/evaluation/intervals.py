"""Intervals that cover sampling and noise together: functions of released numbers.

What is released of a test portion are noisy sums over its records. An estimate of a mean, such as
accuracy, is one sum over another, and both are noisy, so that the usual intervals cover too rarely.
Here an interval holds all values that fit the sums: those for which a combination of the sums,
whose mean would then be zero, is within a few of its own standard deviations. This is our own,
since libraries have intervals for sampling or for noise, not for the ratio of noisy sums over a
sample. How often they cover is measured by ``benchmarks/study.py --parts coverage``.

With few records an interval is wide, up to all values there are. It is never withheld for a noisy
number of records that is small: those that are large enough by chance would be left, whose noise is
no even sample, and cover too rarely. Where there is no interval at any price, what decides is a
number that has nothing to do with the noise of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Two-sided 95 %, and how much more Laplace tails need per unit of excess kurtosis.
_Z, _Z_PER_KURTOSIS = 1.96, 0.069
#: More than that has only the noise of a very large epsilon, which mostly is none.
_MOST_KURTOSIS = 4.0
#: Two-sided 95 % for AUC, whose variance is itself estimated.
_Z_AUC = 2.02
#: Rarer class times epsilon below which an interval of AUC says nothing.
_LEAST_AUC = 100.0
#: Records times epsilon that every class needs for balanced accuracy.
_LEAST_BALANCED = 20.0
#: Between which recalls are taken to lie where records are weighed by them.
_RECALLS = 0.5, 0.99
#: Points at which the values of an interval are tried: everywhere, and near the estimate.
_POINTS, _POINTS_NEAR = 201, 801
#: The same for every class of balanced accuracy, if its interval is not narrower than this.
_POINTS_EACH, _NARROW = 101, 0.1
#: How many standard deviations the points near the estimate reach.
_NEAR = 8.0


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval.

    Attributes
    ----------
    value, low, high : float
        NaN, with infinite ends, if there are too few records for an interval.
    """

    value: float
    low: float
    high: float

    @property
    def enough(self) -> bool:
        """Whether there are enough records to say anything."""
        return not math.isnan(self.value)

    @property
    def tells(self) -> bool:
        """Whether the interval of a share leaves anything out."""
        return self.high - self.low < 1

    def times(self, factor: float) -> Estimate:
        """Return it in other units."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def root(self) -> Estimate:
        """Return the square root of what was estimated."""
        if not self.enough:
            return self
        return Estimate(*(math.sqrt(max(x, 0.0)) for x in (self.value, self.low, self.high)))

    def __str__(self) -> str:
        if not self.enough:
            return "too few records"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


TOO_FEW = Estimate(math.nan, -math.inf, math.inf)


def mean(
    sums: NDArray[np.float64],
    worth: NDArray[np.float64],
    variance: float,
    *,
    excess: float,
    second: tuple[float, float] | None = None,
) -> Estimate:
    """Estimate a mean of numbers between 0 and 1 from noisy sums that add up to all records.

    Parameters
    ----------
    sums : array
        Noisy numbers of records, or parts of them.
    worth : array
        What a record in each of them adds to the mean's numerator, between 0 and 1.
    variance : float
        Of the noise of each sum.
    excess : float
        Excess kurtosis of that noise: 0 for Gaussian noise.
    second : (float, float), optional
        The noisy sum of squares of what was averaged, and the deviation of its noise. If not given,
        that is 0 or 1 for every record, or between: then the variance is at most that.

    Notes
    -----
    docs/proofs/evaluation.md, "Intervals".
    """
    total, hits = float(sums.sum()), float(sums @ worth)
    powers = np.array([(worth**k).sum() for k in range(5)])

    def parts(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the variance of ``hits - point * total``, and what it takes of its deviations."""
        spread = _sampling(total, points, second) + variance * _moment(powers, points, 2)
        fourth = excess * variance**2 * _moment(powers, points, 4)
        kurtosis = np.divide(fourth, spread**2, out=np.zeros_like(spread), where=spread > 0)
        return spread, _Z + _Z_PER_KURTOSIS * np.minimum(kurtosis, _MOST_KURTOSIS)

    def fits(points: NDArray[np.float64]) -> NDArray[np.bool_]:
        spread, z = parts(points)
        return np.asarray((hits - points * total) ** 2 <= z**2 * spread)

    if total <= 0:  # by noise alone
        low, high = _hull(fits, 0.5, 0.0)
        return Estimate((low + high) / 2, low, high)
    value = min(max(hits / total, 0.0), 1.0)
    deviation = math.sqrt(parts(np.array([value]))[0][0]) / total
    low, high = _hull(fits, value, deviation)
    return Estimate(min(max(value, low), high), low, high)


def _hull(
    fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]], value: float, deviation: float
) -> tuple[float, float]:
    """Return the least and the largest of all numbers from 0 to 1 that fit; all, if none does."""
    near = value + np.linspace(-_NEAR, _NEAR, _POINTS_NEAR) * deviation
    points = np.concatenate([np.linspace(0.0, 1.0, _POINTS), near[(near >= 0) & (near <= 1)]])
    found = points[fits(points)]
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)


def _moment(
    powers: NDArray[np.float64], points: NDArray[np.float64], order: int
) -> NDArray[np.float64]:
    """Return the sum of ``(worth - point)^order``, from the sums of the powers of worth."""
    by_power = [math.comb(order, k) * (-1) ** k * powers[order - k] for k in range(order, -1, -1)]
    return np.maximum(np.polyval(by_power, points), 0.0)


def _sampling(
    total: float, points: NDArray[np.float64], second: tuple[float, float] | None
) -> NDArray[np.float64]:
    """Return the variance of the sum by sampling, if the mean is one of some points."""
    if total <= 0:
        return np.zeros_like(points)
    most = points - points**2
    if second is None:
        return total * most
    squares, deviation = second
    return total * np.clip((squares + deviation) / total - points**2, 0.0, most)


def excess_of(variance: float, *, laplace: bool, whole: bool = True) -> float:
    """Return the excess kurtosis of noise, on whole numbers or on fine steps."""
    if not laplace or not variance:
        return 0.0
    return 3.0 + (1.0 / variance if whole else 0.0)


def share(hits: NDArray[np.float64], misses: NDArray[np.float64], noise: Noise) -> Estimate:
    """Estimate a share of records from noisy counts of those that have it and those that do not."""
    sums = np.concatenate([np.ravel(hits), np.ravel(misses)])
    worth = np.repeat([1.0, 0.0], [np.size(hits), np.size(misses)])
    return mean(sums, worth, noise.variance, excess=noise.excess)


@dataclass(frozen=True)
class Noise:
    """The noise of every one of some released counts.

    Attributes
    ----------
    variance : float
    laplace : bool
        Whether it has Laplace's tails, or Gauss's.
    """

    variance: float
    laplace: bool

    @property
    def excess(self) -> float:
        """Its excess kurtosis on whole numbers."""
        return excess_of(self.variance, laplace=self.laplace)

    @property
    def epsilon(self) -> float:
        """The epsilon of Laplace noise with this variance."""
        return math.sqrt(2.0 / self.variance) if self.variance else math.inf


def accuracy(confusion: NDArray[np.float64], noise: Noise) -> Estimate:
    """Estimate accuracy from noisy confusion matrices, whose sum is that of all records.

    Parameters
    ----------
    confusion : array of shape (groups, classes, predicted classes)
    noise : Noise
    """
    hit = np.eye(confusion.shape[1], dtype=bool)
    return share(confusion[:, hit], confusion[:, ~hit], noise)


def recalls(confusion: NDArray[np.float64], noise: Noise) -> list[Estimate]:
    """Estimate for every class how many of its records are predicted to be of it."""
    found = []
    for label in range(confusion.shape[1]):
        others = np.arange(confusion.shape[2]) != label
        found.append(share(confusion[:, label, label], confusion[:, label, others], noise))
    return found


def balanced(confusion: NDArray[np.float64], noise: Noise) -> Estimate:
    """Estimate balanced accuracy: the mean of the classes' recalls.

    Every class needs records. They are counted by weights for hits and misses whose noise is not
    correlated with that of a recall, so that who is counted enough is an even sample.
    """
    classes, each = confusion.shape[1], recalls(confusion, noise)
    hits = confusion.diagonal(axis1=1, axis2=2).sum(axis=0)
    misses = confusion.sum(axis=(0, 2)) - hits
    right = float(np.clip(accuracy(confusion, noise).value, *_RECALLS))
    weight = (1 - right) / (right * (classes - 1))
    known = (hits + weight * misses) / (right + weight * (1 - right))
    if float(known.min()) * noise.epsilon < _LEAST_BALANCED:
        return TOO_FEW
    value = sum(one.value for one in each) / classes
    low = value - math.sqrt(sum((one.value - one.low) ** 2 for one in each)) / classes
    high = value + math.sqrt(sum((one.value - one.high) ** 2 for one in each)) / classes
    if high - low > _NARROW:
        low, high = _profile(hits, misses, noise, len(confusion))
        value = min(max(value, low), high)
    return Estimate(value, max(low, 0.0), min(high, 1.0))


def _profile(
    hits: NDArray[np.float64], misses: NDArray[np.float64], noise: Noise, groups: int
) -> tuple[float, float]:
    """Return the means of recalls that fit hits and misses about as well as the best ones do.

    Squared deviations of all classes add up; of all recalls with one mean those with the least sum
    count. Hits and misses are sums over groups, each with its noise.
    """
    points = np.linspace(0.0, 1.0, _POINTS_EACH)
    others = len(hits) - 1
    least = np.zeros(1)
    for hit, miss in zip(hits.tolist(), misses.tolist(), strict=True):
        total = hit + miss
        spread = _sampling(total, points, None)
        spread = spread + groups * noise.variance * ((1 - points) ** 2 + others * points**2)
        fourth = noise.variance**2 * ((1 - points) ** 4 + others * points**4)
        fourth = groups * noise.excess * fourth
        kurtosis = np.divide(fourth, spread**2, out=np.zeros_like(spread), where=spread > 0)
        z = _Z + _Z_PER_KURTOSIS * np.minimum(kurtosis, _MOST_KURTOSIS)
        apart = (hit - points * total) ** 2
        off = np.divide(apart, z**2 * spread, out=np.full_like(apart, 1e9), where=spread > 0)
        sums = np.full(len(least) + len(points) - 1, np.inf)
        for place, each in enumerate(off.tolist()):
            here = sums[place : place + len(least)]
            np.minimum(here, least + each, out=here)
        least = sums
    found = np.flatnonzero(least <= least.min() + 1.0) / (len(least) - 1)
    return float(found[0]), float(found[-1])


def auc(counts: NDArray[np.float64], noise: Noise, known: NDArray[np.float64]) -> Estimate:
    """Estimate the area under the ROC curve from noisy counts by class and bin of the score.

    Parameters
    ----------
    counts : array of shape (2, bins)
    noise : Noise
    known : array of shape (2,)
        About how many records each class has, by another question with noise of its own, which
        decides whether there are enough.
    """
    below, above = counts
    n0, n1 = float(below.sum()), float(above.sum())
    if float(known.min()) * noise.epsilon < _LEAST_AUC:
        return TOO_FEW
    if min(n0, n1) <= 0:  # by noise alone
        return Estimate(0.5, 0.0, 1.0)
    bins = len(below)
    wins = np.tril(np.ones((bins, bins)), -1) + 0.5 * np.eye(bins)  # a score above, or equal
    pairs, total = float(above @ wins @ below), n0 * n1
    value = min(max(pairs / total, 0.0), 1.0)
    sampling = total**2 * _pairs_variance(np.maximum(above, 0), np.maximum(below, 0), wins)

    def spread(points: NDArray[np.float64]) -> NDArray[np.float64]:
        of_bins = _distance(wins @ below, n0, points) + _distance(wins.T @ above, n1, points)
        of_pairs = _distance(wins.ravel(), 1.0, points)
        return sampling + noise.variance * of_bins + noise.variance**2 * of_pairs

    def fits(points: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray((pairs - points * total) ** 2 <= _Z_AUC**2 * spread(points))

    low, high = _hull(fits, value, math.sqrt(spread(np.array([value]))[0]) / total)
    return Estimate(min(max(value, low), high), low, high)


def _distance(
    values: NDArray[np.float64], factor: float, points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the squared distance of values and each point times a factor."""
    scaled = points * factor
    apart = (values**2).sum() - 2 * scaled * values.sum() + scaled**2 * values.size
    return np.asarray(apart)


def _pairs_variance(
    above: NDArray[np.float64], below: NDArray[np.float64], wins: NDArray[np.float64]
) -> float:
    """Return the variance of the share of ordered pairs by sampling (DeLong et al. 1988)."""
    n1, n0 = float(above.sum()), float(below.sum())
    of_above, of_below = wins @ below / n0, wins.T @ above / n1
    share = float(above @ of_above / n1)
    return float(above @ (of_above - share) ** 2 / n1**2 + below @ (of_below - share) ** 2 / n0**2)


def mean_loss(counts: NDArray[np.float64], losses: NDArray[np.float64], noise: Noise) -> Estimate:
    """Estimate a mean loss from noisy counts of records that have public losses.

    Parameters
    ----------
    counts, losses : array
        Of one shape; the losses are not negative.
    noise : Noise
    """
    most = float(losses.max())
    if most <= 0:
        return Estimate(0.0, 0.0, 0.0)
    worth, sums = losses.ravel() / most, counts.ravel()
    deviation = math.sqrt(noise.variance * float((worth**4).sum()))
    second = float(sums @ worth**2), deviation
    found = mean(sums, worth, noise.variance, excess=noise.excess, second=second)
    return found.times(most)


def errors(sums: NDArray[np.float64], noise: Noise) -> tuple[Estimate, Estimate]:
    """Estimate the mean absolute and the mean squared error, as parts of the range and its square.

    Parameters
    ----------
    sums : array of shape (groups, 4)
        Noisy sums of a^4, a^2 - a^4, a - a^2 and 1 - a.
    noise : Noise
    """
    groups = len(sums)
    excess = excess_of(noise.variance, laplace=noise.laplace, whole=False)
    found = []
    for hits in (3, 2):  # a is the sum of the first three, a^2 of the first two
        worth = np.tile(np.arange(4) < hits, groups).astype(np.float64)
        squares = 2 if hits == 3 else 1
        second = float(sums[:, :squares].sum()), math.sqrt(noise.variance * squares * groups)
        found.append(mean(sums.ravel(), worth, noise.variance, excess=excess, second=second))
    return found[0], found[1]
