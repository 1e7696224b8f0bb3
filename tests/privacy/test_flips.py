"""Permute-and-flip is exact: doubles decide only what exact arithmetic would decide likewise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privet.audit.laws import permute_and_flip as law_of
from privet.privacy import SecureNoise, SeededNoise, flips, uniforms

SIZE = 20_000


class Fewer(SeededNoise):
    """Counts how often bits were asked for."""

    asked = 0

    def bits(self, count):
        self.asked += 1
        return super().bits(count)


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_follows_its_law(fit, scale):
    scores = [3, 0, 4, 4, -2]
    law = np.exp(law_of(np.array(scores), scale))
    drawn = [flips.permute_and_flip(scores, scale, SecureNoise()) for _ in range(SIZE)]
    assert fit(range(5), law).accepts(drawn)


def test_a_wrong_order_or_coin_would_be_seen(fit):
    """Candidates in their own order, and a scale twice as large, have other laws."""
    scores, scale = [3, 0, 4, 4, -2], 2.0
    right = fit(range(5), np.exp(law_of(np.array(scores), scale)))
    in_order, rest = [], 1.0
    for score in scores:
        in_order.append(rest * math.exp((score - 4) / scale))
        rest -= in_order[-1]
    assert right.can_tell(fit(range(5), in_order), SIZE)
    assert right.can_tell(fit(range(5), np.exp(law_of(np.array(scores), scale * 2))), SIZE)


@pytest.mark.parametrize("scale", [5e-324, 1e-3, 0.7, 3.1, 1e4 + 0.1, 1e15, 1e300])
def test_doubles_decide_what_decimals_decide(scale, monkeypatch):
    scores = [0, 1, 3, 10, 12, 2**40, -(2**63)]

    def drawn():
        source = Fewer(5)
        found = [flips.permute_and_flip(scores, scale, source) for _ in range(200)]
        return found, source.asked

    in_doubles = drawn()
    monkeypatch.setattr(flips, "ABSOLUTE", 2.0)
    assert drawn() == in_doubles


def test_what_doubles_leave_open_is_decided_exactly():
    """2^-44 on either side of exp(-1/3): within what doubles leave open, and 64 bits do not."""
    exact = round(Fraction(math.exp(-1 / 3)) * 2**64)

    class Given:
        def __init__(self, *words):
            self.words = list(words)

        def bits(self, count):
            assert count == 64
            return self.words.pop(0)

    far = 2**20
    for word, expected in ((exact - far, True), (exact + far, False)):
        assert flips._is_accepted(1, 3.0, Given(word)) is expected
        assert uniforms.Uniform(word, Given()).is_below_exp(Fraction(1, 3)) is expected


def test_candidates_that_have_no_chance_are_passed_over():
    assert flips.permute_and_flip([0, 10**6, 0, 0], 1.0, SecureNoise()) == 1
    assert flips.permute_and_flip([-5], 1.0, SecureNoise()) == 0
