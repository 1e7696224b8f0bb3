"""Every bound against exact laws of small mechanisms, over all poisoned tables within x rows."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.robustness import (
    Estimate,
    NoGuarantee,
    Promise,
    accuracy_after,
    attack_success_after,
    expected,
    per_run,
    poisoned_rows,
    promise_of,
)
from privet.robustness import bounds as room
from privet.robustness.bounds import BOUNDS, Share

# A tiny universe: a record is one bit of feature and one bit of label. Tables are multisets.
UNIVERSE = list(itertools.product((0, 1), (0, 1)))
TABLES = [
    Counter(dict(zip(UNIVERSE, counts, strict=True)))
    for counts in itertools.product(range(4), repeat=4)
    if sum(counts) <= 3
]
MODELS = list(itertools.product((0, 1), repeat=2))  # the label for feature 0, for feature 1
DISTANCES = np.array(
    [[sum(abs(one[r] - two[r]) for r in UNIVERSE) for two in TABLES] for one in TABLES]
)
TOLERANCE = 1e-11


def exponential_learner(rate):
    """The law of a label table drawn by the exponential mechanism: one row per table."""
    scores = np.array(
        [[sum(t[(x, m[x])] for x in (0, 1)) for m in MODELS] for t in TABLES], dtype=float
    )
    weights = np.exp(rate * scores)  # scores rise by 0 or 1: rate-DP, rate^2/8-zCDP
    return weights / weights.sum(axis=1, keepdims=True)


def laplace_learner(scale):
    """Discrete Laplace noise on the number of rows, released up to a threshold."""
    sizes = np.array([t.total() for t in TABLES])
    ratio = math.exp(-1 / scale)
    noise = np.arange(-60, 61)
    law = ratio ** np.abs(noise)
    law /= law.sum()
    return np.array([[law[noise + n <= k].sum() for k in (-2, 0, 1, 2, 3, 6)] for n in sizes])


def gaussian_learner(rho):
    """Continuous Gaussian noise on the number of rows against thresholds: P(answer <= k)."""
    sigma = 1 / math.sqrt(2 * rho)
    sizes = [t.total() for t in TABLES]
    return np.array(
        [
            [0.5 * math.erfc((n - k) / sigma / math.sqrt(2)) for k in np.arange(-4, 9, 2.5)]
            for n in sizes
        ]
    )


def expectations():
    """Yield (promise, exact expected score of every table) for several mechanisms and scores."""
    for rate in (0.1, 0.7, 2.0):
        law = exponential_learner(rate)
        promise = promise_of(epsilon=rate, rho=rate**2 / 8)
        for model in MODELS[
            :2
        ]:  # by symmetry; accuracies of the drawn models on the rows of one truth
            accuracy = np.array(
                [np.mean([a == b for a, b in zip(m, model, strict=True)]) for m in MODELS]
            )
            yield promise, law @ accuracy
            yield promise, law @ (accuracy == 1)
    for scale in (0.5, 2.0):
        found = laplace_learner(scale)
        for column in found.T:
            yield promise_of(epsilon=1 / scale), column
            yield promise_of(epsilon=1 / scale), 1 - column
    for rho in (0.005, 0.2):
        for column in gaussian_learner(rho).T:
            yield promise_of(rho=rho), column
    # Both randomised response on one bit of the table, and a failure of privacy with probability d.
    for epsilon, delta in ((0.3, 0.01), (1.0, 0.05)):
        high = math.exp(epsilon) / (1 + math.exp(epsilon))
        parity = np.array([t.total() % 2 for t in TABLES])
        told = (1 - delta) * np.where(parity, high, 1 - high) + delta * parity
        yield promise_of(epsilon=epsilon, delta=delta), told


def violations(names=tuple(BOUNDS), changes=lambda x: x):
    """Return the largest excess of each bound over the exact truth."""
    excess = dict.fromkeys(names, -math.inf)
    for promise, scores in expectations():
        _, kinds = np.unique(scores.round(13), return_inverse=True)  # equal scores: computed once
        for x in (1, 2, 3, 5):
            within = x >= DISTANCES
            worst = np.where(within, scores[None, :], math.inf).min(axis=1)
            best = np.where(within, scores[None, :], -math.inf).max(axis=1)
            for kind in range(kinds.max() + 1):
                mine = kinds == kind
                clean = scores[mine][0]
                for name in names:
                    below = BOUNDS[name](promise, Share(clean, 1 - clean), changes(x))
                    above = BOUNDS[name](promise, Share(1 - clean, clean), changes(x))
                    if below is not None:
                        gap = below.has - worst[mine].min()
                        mirror = best[mine].max() - above.lacks
                        excess[name] = max(excess[name], gap, mirror)
    return excess


def test_no_bound_is_ever_violated_by_any_poisoned_table():
    for name, found in violations().items():
        assert found <= TOLERANCE, name


def test_the_brute_force_catches_wrong_bounds(monkeypatch):
    """A mutation check: one row too few, a forgotten delta, a rho that is half of the truth."""
    quick = [name for name in BOUNDS if name != "orders"]
    short = violations(quick, changes=lambda x: x - 1)
    assert min(short.values()) > 1e-3
    right = room._approximate
    monkeypatch.setattr(room, "_approximate", lambda share, e, d: right(share, e, 0.0))
    assert violations(["approximate"])["approximate"] > 1e-3
    monkeypatch.undo()
    straight = room._concentrated
    monkeypatch.setattr(room, "_concentrated", lambda share, root: straight(share, root / 2))
    assert violations(["zcdp"])["zcdp"] > 1e-3
    monkeypatch.undo()
    loose = room._permits
    monkeypatch.setattr(room, "_permits", lambda one, two, budget: loose(one, two, budget / 4))
    assert violations(["orders"])["orders"] > 1e-3


def test_a_changed_row_counts_twice_and_the_brute_force_sees_it():
    """Replacing k rows is at distance 2k: bounds that count it once are violated."""
    scores = laplace_learner(2.0)[:, 3]
    promise = promise_of(epsilon=0.5)
    sizes = np.array([t.total() for t in TABLES])
    # Tables of the same size at distance 2 differ in one changed row; here the label's count.
    labels = np.array([t[(0, 1)] + t[(1, 1)] for t in TABLES])
    law = 1 / (1 + np.exp(0.5 * (2 * labels - sizes)))  # each label moves the log odds by 0.5
    once, twice = 0.0, 0.0
    for clean in range(len(TABLES)):
        near = (sizes == sizes[clean]) & (DISTANCES[clean] <= 2)
        worst = law[near].min()
        wrong = accuracy_after(promise, law[clean], 1).best
        right = accuracy_after(promise, law[clean], 1, changed=True).best
        once, twice = max(once, wrong - worst), max(twice, right - worst)
    assert once > 0.05
    assert twice <= TOLERANCE
    assert accuracy_after(promise, scores[0], 3, changed=True).changes == 6


def test_the_tight_pure_bound_is_attained_by_one_row():
    for epsilon, clean in itertools.product((0.1, 1.0, 3.0), (0.05, 0.5, 0.9, 0.999)):
        other = max(math.exp(-epsilon) * clean, 1 - math.exp(epsilon) * (1 - clean))
        ratios = [clean / other, (1 - clean) / (1 - other)]  # a mechanism with two outcomes
        assert max(abs(math.log(r)) for r in ratios) <= epsilon + 1e-9  # is epsilon-DP
        found = accuracy_after(promise_of(epsilon=epsilon), clean, 1).bounds
        assert found["pure"] == pytest.approx(other, rel=1e-12)


def test_row_by_row_is_attained_by_many_rows_and_better_than_group_privacy():
    """Discrete Laplace noise on the number of rows attains it along the whole chain."""
    scale, x = 4.0, 40
    ratio = math.exp(-1 / scale)
    noise = np.arange(-400, 401)
    law = ratio ** np.abs(noise)
    law /= law.sum()
    chain = [law[noise + rows <= 20].sum() for rows in range(x + 1)]
    found = accuracy_after(Promise(epsilon=1 / scale), chain[0], x).bounds
    assert found["steps"] == pytest.approx(chain[x], rel=1e-9)
    assert found["pure"] < 0.1 * found["steps"]


def test_numbers_of_the_design_note():
    pure = promise_of(epsilon=0.1)
    found = accuracy_after(pure, 0.98, 3)
    assert found.bounds["pure"] == pytest.approx(0.973, abs=5e-4)
    assert found.bounds["paper"] == pytest.approx(0.726, abs=5e-4)
    found = attack_success_after(pure, 0.01, 3)
    assert found.bounds["pure"] == pytest.approx(0.0135, abs=5e-4)
    assert found.bounds["paper"] == pytest.approx(0.267, abs=5e-4)
    tree = promise_of(epsilon=0.1, rho=0.00025)  # depth 4, equal shares, exponential mechanism
    for clean, x, zcdp, paper in (
        (0.75, 3, 0.721, 0.556),
        (0.75, 13, 0.611, 0.204),
        (0.75, 36, 0.309, 0.020),
        (0.98, 36, 0.863, 0.027),
    ):
        found = accuracy_after(tree, clean, x).bounds
        assert found["zcdp"] == pytest.approx(zcdp, abs=6e-4)
        assert found["paper"] == pytest.approx(paper, abs=6e-4)
    both = promise_of(epsilon=0.1, delta=1e-6)
    lost = 1 - accuracy_after(both, 1 - 1e-12, 100).bounds["approximate"]
    assert lost == pytest.approx(0.2094, abs=1e-4)


def test_per_run_numbers_of_the_design_note():
    runs = np.full(1000, 0.9)
    for exponent, expected_rate in ((0.1, 0.0076), (1.0, 0.019), (3.0, 0.14)):
        found = per_run(Promise(epsilon=exponent), runs, 1, least=0.8, confidence=0.999)
        assert found.clean == pytest.approx(0.0069, abs=5e-5)
        assert found.bounds["pure"] == pytest.approx(expected_rate, rel=0.02)
    found = per_run(promise_of(rho=0.01), runs, 3, least=0.8, confidence=0.999)
    root = math.sqrt(-math.log(found.clean)) - 0.3
    assert found.bounds["zcdp"] == pytest.approx(math.exp(-(root**2)))
    assert "fails" in str(found)
    assert found.confidence == 0.999


def promises():
    epsilon = st.floats(1e-3, 5)
    return st.one_of(
        st.builds(lambda e: promise_of(epsilon=e), epsilon),
        st.builds(lambda e, part: promise_of(epsilon=e, rho=part * e * e / 2), epsilon, SHARES),
        st.builds(lambda r: promise_of(rho=r), st.floats(1e-6, 5)),
        st.builds(lambda e, d: promise_of(epsilon=e, delta=d), epsilon, st.floats(1e-12, 0.5)),
        st.builds(Promise, epsilon, st.floats(1e-12, 0.5), st.floats(1e-6, 5)),
    )


SHARES = st.floats(1e-6, 1 - 1e-6)


@given(promises(), SHARES, st.integers(0, 3000))
def test_bounds_are_probabilities_and_the_best_is_the_best(promise, clean, x):
    low, high = accuracy_after(promise, clean, x), attack_success_after(promise, clean, x)
    for found in (low, high):
        assert all(0 <= bound <= 1 for bound in found.bounds.values())
        assert found.best in found.bounds.values()
    assert all(low.best >= bound for bound in low.bounds.values())
    assert all(high.best <= bound for bound in high.bounds.values())
    assert low.best <= clean + 1e-15
    assert high.best >= clean - 1e-15
    closed = [bound for name, bound in low.bounds.items() if name not in ("orders", "steps")]
    assert low.bounds["steps"] >= max(closed) - 1e-9


@given(promises(), SHARES, st.integers(0, 2500), st.integers(1, 40))
def test_more_poison_never_helps_and_more_accuracy_never_hurts(promise, clean, x, more):
    fewer, many = accuracy_after(promise, clean, x), accuracy_after(promise, clean, x + more)
    better = accuracy_after(promise, clean + (1 - clean) / 3, x)
    for name, bound in fewer.bounds.items():
        assert many.bounds[name] <= bound + 1e-9
        assert better.bounds[name] >= bound - 1e-9


@given(promises(), SHARES, st.integers(0, 500))
def test_the_mirror_image(promise, clean, x):
    low = accuracy_after(promise, clean, x)
    high = attack_success_after(promise, 1 - clean, x)
    for name, bound in low.bounds.items():
        assert high.bounds[name] == pytest.approx(1 - bound, abs=1e-9)


def test_tiny_rates_keep_their_digits():
    found = attack_success_after(promise_of(epsilon=0.1), 1e-20, 3)
    assert found.best == pytest.approx(math.exp(0.3) * 1e-20, rel=1e-9)


def test_no_poison_changes_nothing():
    found = accuracy_after(promise_of(epsilon=0.5), 0.8, 0)
    assert all(bound == pytest.approx(0.8) for bound in found.bounds.values())


def test_an_estimate_brings_its_limit_and_confidence():
    estimate = expected([0.8, 0.82] * 20, confidence=0.99)
    found = accuracy_after(promise_of(epsilon=0.1), estimate, 2)
    assert found.clean == estimate.low < 0.8
    assert found.confidence == 0.99
    assert "confidence 0.99" in str(found)
    above = attack_success_after(promise_of(epsilon=0.1), estimate, 2)
    assert above.clean == estimate.high > 0.82


@pytest.mark.parametrize(
    ("share", "rows", "expected_rows"),
    [("0.1%", 546, 1), ("0.5%", 348, 2), (0.001, 3001, 4), (0.1, 10, 1), (0, 5, 0), (1, 5, 5),
     ("0.07%", 10_000, 7), (0.07, 100, 7), ("100%", 3, 3)],
)  # fmt: skip
def test_shares_are_rounded_up_and_no_further(share, rows, expected_rows):
    assert poisoned_rows(share, rows) == expected_rows


@pytest.mark.parametrize(
    ("share", "rows"),
    [("101%", 5), (1.5, 5), (-0.1, 5), ("x", 5), (math.nan, 5), (0.1, 0), (0.1, -3), (0.1, 2.5),
     (None, 5), (math.inf, 5)],
)  # fmt: skip
def test_shares_that_are_none(share, rows):
    with pytest.raises(NoGuarantee):
        poisoned_rows(share, rows)


@pytest.mark.parametrize("clean", [0, -0.1, 1.1, math.nan, "much", None])
def test_an_accuracy_that_is_none(clean):
    with pytest.raises(NoGuarantee, match="accuracy"):
        accuracy_after(promise_of(epsilon=1), clean, 1)


def test_nothing_is_measured_to_be_perfect():
    """A few fits without an error are no expectation of 1, whose bound no poison would lower."""
    promise = promise_of(epsilon=1)
    for clean in (1, 1.0, np.float64(1), True, Estimate(1.0, 1.0, 1.0, 0.95, 5)):
        with pytest.raises(NoGuarantee, match=r"exactly 1 cannot be measured.*smaller"):
            accuracy_after(promise, clean, 1)
    for clean in (0, 0.0, Estimate(0.0, 0.0, 0.0, 0.95, 5)):
        with pytest.raises(NoGuarantee, match=r"exactly 0 cannot be measured.*larger"):
            attack_success_after(promise, clean, 1)
    assert attack_success_after(promise, 1.0, 1).best == 1


@pytest.mark.parametrize("fits", [1, 50, 20_000])
@pytest.mark.parametrize("test_rows", [None, 1, 10**9])
def test_estimates_from_perfect_fits_have_limits_short_of_perfect(fits, test_rows):
    found = expected(np.ones(fits), confidence=1e-9, test_rows=test_rows)
    assert 0 < found.low < 1 == found.high
    assert accuracy_after(promise_of(epsilon=1), found, 1).best < found.low
    found = expected(np.zeros(fits), confidence=1e-9, test_rows=test_rows)
    assert found.low == 0 < found.high < 1
    assert attack_success_after(promise_of(epsilon=1), found, 1).best > found.high


@pytest.mark.parametrize("poisoned", [-1, 1.5, None, True, math.inf, math.nan])
def test_poisoned_rows_that_are_none(poisoned):
    with pytest.raises(NoGuarantee, match="poisoned rows"):
        accuracy_after(promise_of(epsilon=1), 0.5, poisoned)
