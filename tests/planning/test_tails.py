"""Lemma 12 of DP-TopDown and the sums of Corollary 16: against draws, and able to fail."""

import math

import numpy as np
import pytest

from privet.planning import (
    PlanError,
    discrete_laplace_tail,
    laplace_error,
    printed_sum_error,
    sum_error,
    sum_tail,
)

DRAWS = 200_000
SLACK = 5 / math.sqrt(DRAWS)  # five standard deviations of a share: false alarms below 1e-6


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_lemma_12_is_an_equality_for_one_draw(rng):
    noise = np.abs(rng.laplace(0, 3.0, DRAWS))
    for failure in (0.01, 0.1, 0.5):
        assert np.mean(noise >= laplace_error(3.0, failure)) == pytest.approx(failure, abs=SLACK)
    assert np.mean(noise >= laplace_error(1.5, 0.1)) > 0.1 + SLACK  # half of the scale is seen


def test_lemma_12_bounds_the_largest_of_many(rng):
    largest = np.abs(rng.laplace(0, 1, (DRAWS // 10, 30))).max(axis=1)
    failed = np.mean(largest >= laplace_error(1.0, 0.05, 30))
    assert 0.04 < failed < 0.05 + SLACK * 4  # and is nearly attained


@pytest.mark.parametrize("parties", [1, 2, 5, 40])
def test_the_law_of_a_sum(rng, parties):
    sums = rng.laplace(0, 1, (DRAWS // 2, parties)).sum(axis=1)
    for x in (0.0, 0.7, math.sqrt(parties), 3 * math.sqrt(parties)):
        assert np.mean(sums > x) == pytest.approx(sum_tail(parties, x), abs=SLACK)


def test_a_sum_of_two_is_dipriMes_flip_probability():
    x = np.linspace(0, 10, 21)
    np.testing.assert_allclose(sum_tail(2, x), (0.5 + x / 4) * np.exp(-x), rtol=1e-12)


@pytest.mark.parametrize("parties", [1, 4, 25])
def test_the_error_of_a_sum_is_attained_and_the_printed_one_is_loose(rng, parties):
    sums = np.abs(2 * rng.laplace(0, 1, (DRAWS // 2, parties)).sum(axis=1))
    failed = np.mean(sums > sum_error(2.0, parties, 0.05))
    assert failed == pytest.approx(0.05, abs=SLACK)
    assert np.mean(sums > printed_sum_error(2.0, parties, 0.05)) <= 0.05 + SLACK
    if parties > 1:
        assert printed_sum_error(2.0, parties, 0.05) > 2 * sum_error(2.0, parties, 0.05)


def test_several_sums_share_the_failure(rng):
    sums = np.abs(rng.laplace(0, 1, (20_000, 10, 4)).sum(axis=2)).max(axis=1)
    assert 0.035 < np.mean(sums > sum_error(1.0, 4, 0.05, draws=10)) < 0.06


def test_many_draws_are_bounded(rng):
    sums = rng.laplace(0, 1, (3000, 2000)).sum(axis=1)
    for x in (50.0, 100.0, 150.0):
        assert sum_tail(2000, x) >= np.mean(sums > x)
    assert sum_tail(2000, 300.0) < 1e-4  # and not vacuous
    assert sum_error(1.0, 2000, 0.05) < 0.05 * printed_sum_error(1.0, 2000, 0.05)


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_discrete_noise(rng, scale):
    ratio = math.exp(-1 / scale)
    noise = rng.geometric(1 - ratio, DRAWS) - rng.geometric(1 - ratio, DRAWS)
    for x in (0, 0.5, 3, 7.5):
        assert np.mean(np.abs(noise) > x) == pytest.approx(
            discrete_laplace_tail(scale, x), abs=SLACK
        )
        if x == int(x):
            assert discrete_laplace_tail(scale, x) <= math.exp(-x / scale)
    assert discrete_laplace_tail(scale, -1) == 1
    assert discrete_laplace_tail(2.0, 0.999) > math.exp(-0.999 / 2)  # Lemma 12 is for real noise


@pytest.mark.parametrize(
    "call",
    [
        lambda: laplace_error(0, 0.1),
        lambda: laplace_error(1, 0),
        lambda: laplace_error(1, 1.5),
        lambda: laplace_error(1, 0.1, 0),
        lambda: laplace_error(math.inf, 0.1),
        lambda: laplace_error("1", 0.1),
        lambda: sum_error(1, 0, 0.1),
        lambda: sum_error(1, 2.5, 0.1),
        lambda: sum_tail(True, 0.1),
    ],
)
def test_bad_input(call):
    with pytest.raises(PlanError, match="must"):
        call()
