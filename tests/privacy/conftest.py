"""One goodness-of-fit test for all samplers, with false-alarm and miss rates that are proved."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from privet.privacy import SecureNoise, SeededNoise


@dataclass(frozen=True)
class Fit:
    """Is a sample drawn from this law? By the largest distance of the cumulative shares.

    By the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, for every n and every
    law, P(distance > threshold) <= ALARM: a true law is rejected at most once in 10^7 samples.
    A law that differs by more than 2 x threshold is missed with at most the same probability.
    """

    ALARM = 1e-7

    values: np.ndarray
    probabilities: np.ndarray

    @staticmethod
    def threshold(size):
        return math.sqrt(math.log(2 / Fit.ALARM) / (2 * size))

    def cumulative(self, values):
        sums = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        return sums[np.searchsorted(self.values, values, side="right")]

    def accepts(self, sample):
        sample = np.sort(np.ravel(sample))
        values = np.unique(sample)
        found = np.searchsorted(sample, values, side="right") / len(sample)
        just_before = np.searchsorted(sample, values, side="left") / len(sample)
        distance = max(
            np.abs(found - self.cumulative(values)).max(),
            np.abs(just_before - self.cumulative(values - 1)).max(),
        )
        return distance <= self.threshold(len(sample))

    def can_tell(self, other, size):
        """Whether a sample of this size from ``other`` is surely (1 - ALARM) rejected."""
        values = np.union1d(self.values, other.values)
        distance = np.abs(self.cumulative(values) - other.cumulative(values)).max()
        return distance > 2 * self.threshold(size)


@pytest.fixture(scope="session")
def fit():
    """Return the test for a law given as values (rising integers) and probabilities."""

    def make(values, probabilities):
        probabilities = np.asarray(probabilities, dtype=float)
        assert abs(probabilities.sum() - 1) < 1e-9
        return Fit(np.asarray(values), probabilities)

    return make


@pytest.fixture(params=["secure", "seeded"])
def noise(request):
    """Both sources; what they promise is the same law."""
    return SecureNoise() if request.param == "secure" else SeededNoise(20_261_115)
