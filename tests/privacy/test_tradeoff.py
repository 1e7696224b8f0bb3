"""What an attacker can do at best: against exact attacks on known mechanisms, and attained."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from privet.privacy.tradeoff import _ORDERS, Guarantee, _by_rho, _coins_within, _divergences

SHARES = (0.001, 0.01, 0.1, 0.3, 0.5, 0.9)


def best_attack(inside, outside, share):
    """Return the best true-positive rate at a false-positive rate: Neyman and Pearson's test."""
    order = np.argsort(-inside / outside, kind="stable")
    members = np.concatenate([[0.0], np.cumsum(inside[order])])
    others = np.concatenate([[0.0], np.cumsum(outside[order])])
    return float(np.interp(share, others, members))


def laplace(epsilon, moved=1):
    width = int(70 / epsilon)
    x = np.arange(-width, width + 1)
    first = np.exp(-epsilon * np.abs(x))
    second = np.exp(-epsilon * np.abs(x - moved))
    return first / first.sum(), second / second.sum()


def gaussian(sigma, moved=1, width=400):
    x = np.arange(-width, width + 1)
    first, second = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - moved) ** 2) / (2 * sigma**2))
    keep = (first > 1e-290) & (second > 1e-290)
    first, second = first[keep], second[keep]
    return first / first.sum(), second / second.sum()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pure_bounds_hold_for_laplace_noise_and_are_attained_by_a_coin(epsilon):
    given = Guarantee(epsilon)
    inside, outside = laplace(epsilon)
    for share in SHARES:
        assert best_attack(inside, outside, share) <= given.true_positives(share) + 1e-12
    lie = 1 / (1 + math.exp(epsilon))
    coin = np.array([1 - lie, lie]), np.array([lie, 1 - lie])
    for share in (lie / 2, lie, (1 + lie) / 2):
        assert best_attack(*coin, share) == pytest.approx(given.true_positives(share), rel=1e-9)
    assert given.advantage == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1.0, 0.05), (3.0, 1e-6)])
def test_bounds_with_delta_are_attained(epsilon, delta):
    """By who tells all with probability delta, and else tosses the coin of epsilon."""
    given = Guarantee(epsilon, delta)
    lie = (1 - delta) / (1 + math.exp(epsilon))
    rest, never = 1 - delta - lie, 1e-300
    inside = np.array([delta, rest, lie, never])
    outside = np.array([never, lie, rest, delta])
    for share in SHARES:
        attack = best_attack(inside, outside, share)
        assert attack <= given.true_positives(share) + 1e-12
        assert attack == pytest.approx(given.true_positives(share), rel=1e-9)
    wanted = (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1)
    assert given.advantage == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5, 2.0])
def test_bounds_of_rho_hold_for_gaussian_noise(rho):
    given = Guarantee(rho=rho)
    sigma = math.sqrt(1 / (2 * rho))
    for inside, outside in (gaussian(sigma), gaussian(3 * sigma, moved=3)):
        for share in SHARES:
            assert best_attack(inside, outside, share) <= given.true_positives(share) + 1e-12


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("share", SHARES)
def test_bounds_of_rho_are_attained_by_coins(rho, share):
    """Coins at the bound are within rho at every order, also between those that are used."""
    found = _by_rho(rho, share)
    assert _coins_within(rho, found - 1e-6 * (1 - found), share)
    assert not _coins_within(rho, found + 1e-6 * (1 - found), share)
    between = np.sqrt((_ORDERS[1:] - 1) * (_ORDERS[:-1] - 1)) + 1
    for p, q in ((found, share), (share, found)):
        assert np.all(_divergences(between, p, q) <= between * rho * (1 + 1e-3))


def test_rho_does_not_promise_what_gaussian_noise_does():
    """So the formula of Gaussian differential privacy would promise too much."""
    rho, share = 0.5, 0.01
    of_noise = norm.cdf(norm.ppf(share) + math.sqrt(2 * rho))
    assert _by_rho(rho, share) > 1.3 * of_noise


@pytest.mark.parametrize("given", [Guarantee(1.0), Guarantee(1.0, 1e-5), Guarantee(rho=0.2)])
def test_the_curve_is_concave_and_the_advantage_is_its_peak(given):
    shares = np.linspace(0, 1, 201)
    curve = np.array([given.true_positives(share) for share in shares])
    assert np.all(np.diff(curve, 2) <= 1e-9)
    assert given.advantage >= (curve - shares).max() - 1e-9
    assert given.advantage <= (curve - shares).max() + 0.01
    assert curve[-1] == 1.0


def test_the_lowest_of_several_bounds_counts():
    both = Guarantee(1.0, 1e-6, 0.0244)
    assert both.true_positives(0.1) == Guarantee(rho=0.0244).true_positives(0.1)
    assert both.true_positives(1e-9) == Guarantee(rho=0.0244).true_positives(1e-9)
    loose = Guarantee(0.01, 0.0, 5.0)
    assert loose.true_positives(0.1) == Guarantee(0.01).true_positives(0.1)


def test_no_promise():
    assert not Guarantee().holds
    assert not Guarantee(1.0, 1.0).holds
    assert Guarantee().true_positives(0.01) == 1.0
    assert Guarantee(1e6).true_positives(0.01) == 1.0
    assert Guarantee(1e6).advantage == pytest.approx(1.0, abs=1e-6)
