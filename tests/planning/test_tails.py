"""Lemma 12 of DP-TopDown and the sums of Corollary 16: against draws, and able to fail."""

import math

import numpy as np
import pytest
from scipy.special import gammaincc, gammaln

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


def by_gamma_laws(draws, x):
    """Return the tail another way: given its sign, a sum is a mixture of gamma laws."""
    j = np.arange(draws)
    log_share = gammaln(draws + j) - gammaln(j + 1) - gammaln(draws)
    share = np.exp(log_share - (draws - 1 + j) * math.log(2))
    return (share * gammaincc(draws - j, x[:, None])).sum(axis=-1) / 2


@pytest.mark.parametrize("draws", [1, 2, 3, 10, 100, 1500])
def test_the_tail_is_exact(draws):
    x = np.r_[0.0, 1e-3, 0.1, np.linspace(0.05, 20, 40)] * math.sqrt(draws)
    np.testing.assert_allclose(sum_tail(draws, x), by_gamma_laws(draws, x), rtol=1e-11)


def test_the_tail_has_no_jumps():
    """It was exact up to 1000 draws and several times too large from there."""
    for x in (3.0, 30.0, 200.0):
        tails = [sum_tail(draws, x) for draws in (999, 1000, 1001, 1002)]
        assert tails == sorted(tails)
        assert tails[3] / tails[0] < 1.02**2
    for draws in (10**5, 10**9, 10**13):  # tends to a normal law
        assert sum_tail(draws, math.sqrt(2 * draws)) == pytest.approx(0.1586553, rel=1e-5)
    assert sum_tail(3, 0.0) == pytest.approx(0.5)
    assert sum_tail(3, math.inf) == sum_tail(10**9, 1e300) == 0


def test_many_draws(rng):
    sums = rng.laplace(0, 1, (3000, 2000)).sum(axis=1)
    for x in (50.0, 100.0, 150.0):
        assert np.mean(sums > x) == pytest.approx(sum_tail(2000, x), abs=2.5 / math.sqrt(3000))
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
        lambda: sum_tail(2, -0.1),
        lambda: sum_tail(2, [0.1, math.nan]),
        lambda: sum_tail(2, None),
        lambda: laplace_error(10**400, 0.1),
        lambda: discrete_laplace_tail(1.0, math.nan),
    ],
)
def test_bad_input(call):
    with pytest.raises(PlanError, match="must"):
        call()
