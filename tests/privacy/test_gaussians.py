"""Gaussian noise is exact: doubles decide only what exact arithmetic would decide likewise."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from privet.privacy import SecureNoise, SeededNoise, gaussians, uniforms

SCALES = [1e-300, 0.3, 1.0, 1.5, 2.7, 1e4 + 0.1, 3e9, 2.0**50 * (1 - 2.0**-52)]


class Counting(SeededNoise):
    """Counts how often more bits of a number were needed."""

    more = 0

    def bits(self, count):
        self.more += count == 64
        return super().bits(count)


class Given:
    """Has these words of 64 bits, and no others."""

    def __init__(self, *words):
        self.words = list(words)

    def bits(self, count):
        found = 0
        for _ in range(count // 64):
            found = found << 64 | self.words.pop(0)
        return found


@pytest.mark.parametrize("scale", SCALES)
def test_doubles_decide_what_decimals_decide(scale, monkeypatch):
    """With the same bits, all decisions by decimals give the same numbers."""
    size, noise = 100, Counting(3)
    in_doubles = gaussians.draw_gaussians(size, scale, noise)
    assert noise.more == 0
    monkeypatch.setattr(gaussians, "ABSOLUTE", 2.0)
    monkeypatch.setattr(gaussians, "_turns", lambda words: (np.zeros(len(words), int), words >= 0))
    in_decimals = gaussians.draw_gaussians(size, scale, Counting(3))
    assert in_doubles.tolist() == in_decimals.tolist()


def test_a_wrong_chance_would_be_seen(monkeypatch):
    """The comparison above has the power to tell probabilities that are off by a thousandth."""
    real = np.exp
    right = gaussians.draw_gaussians(3_000, 50.0, SeededNoise(3))
    monkeypatch.setattr(gaussians.np, "exp", lambda x: 0.999 * real(x))
    wrong = gaussians.draw_gaussians(3_000, 50.0, SeededNoise(3))
    assert right.tolist() != wrong.tolist()


def test_numbers_next_to_a_boundary_get_more_bits():
    exact = Context(prec=120, traps=[])
    for exponent in (Fraction(1), Fraction(44), Fraction(1, 3), Fraction(45, 2)):
        top, bottom = Decimal(-exponent.numerator), Decimal(exponent.denominator)
        chance = Fraction(exact.exp(exact.divide(top, bottom)))
        word, rest = divmod(chance * 2**64, 1)
        below, above = math.floor(rest * 2**64) - 1, math.floor(rest * 2**64) + 1
        for more, expected in ((below, True), (above, False)):
            source = Given(more)
            assert uniforms.Uniform(int(word), source).is_below_exp(exponent) is expected
            assert not source.words
        for sure, expected in ((word - 1, True), (word + 1, False)):
            if sure >= 0:
                assert uniforms.Uniform(int(sure), Given()).is_below_exp(exponent) is expected


def test_turns_are_how_often_a_number_is_below_powers_of_e():
    ends = gaussians._ends()
    words = np.unique(np.concatenate([ends, ends - (ends > 0), ends + 1, [2**64 - 1]])).astype("u8")
    turns, unsure = gaussians._turns(words)
    assert set(words[unsure].tolist()) == set(ends.tolist())
    for word, turn in zip(words[~unsure].tolist(), turns[~unsure].tolist(), strict=True):
        assert gaussians._turns_of(uniforms.Uniform(word, Given())) == turn
    far = uniforms.Uniform(0, Given(0, 2**62, 0))  # 2^-130, and nothing beyond is needed
    assert gaussians._turns_of(far) == math.floor(130 * math.log(2))


@pytest.mark.parametrize("scale", [2.0, 1e6])
def test_far_tails_are_there(scale):
    """Exact binomial test, 1e-7 on each side; beyond three deviations there are two turns."""
    size = 40_000
    cut = 3 * scale
    reach = np.arange(-60, 61) if scale == 2.0 else np.linspace(-8, 8, 160_001) * scale
    weights = np.exp(-((reach / scale) ** 2) / 2)
    tail = weights[np.abs(reach) >= cut].sum() / weights.sum()
    far = int((np.abs(SecureNoise().add_gaussian(np.zeros(size, int), scale)) >= cut).sum())
    low, high = binom.ppf([1e-7, 1 - 1e-7], size, [tail * (1 - 1e-3), tail * (1 + 1e-3)])
    assert 0 < low <= far <= high


def test_large_scales_are_left_to_opendp():
    noise = SecureNoise().add_gaussian(np.zeros(50, dtype=np.int64), 2.0**52)
    assert 2.0**50 < np.abs(noise).max() < 2.0**56
    for scale in (0.0, -1.0, 2.0**50, math.nan):
        with pytest.raises(ValueError, match="scale"):
            gaussians.draw_gaussians(1, scale, SecureNoise())
