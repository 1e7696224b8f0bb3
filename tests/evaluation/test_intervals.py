"""Intervals cover sampling and noise; what ignores one of them covers too rarely."""

import math

import numpy as np
import pytest

from privet.engines.bases import UNIT, error_moments
from privet.evaluation import intervals
from privet.evaluation.intervals import TOO_FEW, Estimate, Noise

RUNS = 400


def laplace(epsilon):
    q = math.exp(-epsilon)
    return Noise(2 * q / (1 - q) ** 2, laplace=True)


def draw(rng, epsilon, shape):
    q = math.exp(-epsilon)
    return (rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)).astype(float)


def covered(make, truth):
    """Return in which part of the runs an interval covers; all of them have one."""
    rng = np.random.default_rng(0)
    found = [make(rng) for _ in range(RUNS)]
    assert all(one.enough for one in found)
    return np.mean([one.low <= truth <= one.high for one in found])


def accuracy_run(n, epsilon, noise):
    law = np.array([0.6, 0.1, 0.05, 0.25])  # 85 % right

    def make(rng):
        counts = rng.multinomial(n, law).reshape(1, 2, 2) + draw(rng, epsilon, (1, 2, 2))
        return intervals.accuracy(counts, noise)

    return make


def test_accuracy_covers_at_the_size_where_noise_and_sampling_are_alike():
    """False alarms: five deviations below 95 %, about 1e-7."""
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
    assert covered(accuracy_run(1_000, 0.1, laplace(0.1)), 0.85) > least
    assert covered(accuracy_run(1_000, 1.0, laplace(1.0)), 0.85) > least


def test_without_noise_or_sampling_it_covers_too_rarely():
    """The power of the test above."""
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
    assert covered(accuracy_run(1_000, 0.1, Noise(1e-9, laplace=True)), 0.85) < least

    def no_sampling(rng):
        counts = rng.multinomial(100, [0.85, 0.15]) + draw(rng, 1.0, 2)
        second = float(counts[0]) ** 2 / counts.sum(), 0.0  # as if all records were alike
        return intervals.mean(
            counts, np.array([1.0, 0.0]), laplace(1.0).variance, excess=0, second=second
        )

    assert covered(no_sampling, 0.85) < least


def test_auc_and_errors_cover():
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
    second = np.arange(1, 9) / 36
    wins = np.tril(np.ones((8, 8)), -1) + np.eye(8) / 2
    truth = float(second @ wins @ second[::-1])

    known = np.array([700.0, 300.0])

    def auc(rng):
        counts = np.stack([rng.multinomial(700, second[::-1]), rng.multinomial(300, second)])
        return intervals.auc(counts + draw(rng, 1.0, (2, 8)), laplace(1.0), known)

    assert covered(auc, truth) > least

    def squared(rng):
        sums = error_moments(rng.beta(1, 4, 500)).sum(axis=0)[None] / UNIT
        return intervals.errors(sums + rng.laplace(0, 1, (1, 4)), Noise(2.0, laplace=True))[1]

    assert covered(squared, 1 / 15) > least


def test_too_few_records():
    counts = np.full((1, 2, 2), 3.0)
    assert not TOO_FEW.enough
    assert str(TOO_FEW) == "too few records"
    assert intervals.balanced(counts, laplace(1.0)) is TOO_FEW
    many, few = np.array([1e3, 1e3]), np.array([1e3, 90])
    assert intervals.auc(np.full((2, 4), 1e3), laplace(1.0), few) is TOO_FEW
    assert intervals.auc(np.full((2, 4), 1e3), laplace(1.0), many).enough
    assert intervals.auc(np.full((2, 4), -1.0), laplace(1.0), many) == Estimate(0.5, 0.0, 1.0)


def test_few_records_have_wide_intervals():
    found = intervals.accuracy(np.full((1, 2, 2), 3.0), laplace(0.1))
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.enough
    assert not found.tells
    assert not TOO_FEW.tells
    found = intervals.accuracy(np.full((1, 2, 2), -5.0), laplace(10.0))
    assert 0 <= found.low <= found.value <= found.high <= 1
    absolute, _ = intervals.errors(np.full((1, 4), -1.0), Noise(2.0, laplace=True))
    assert absolute.enough


def few_run(n, epsilon, noise, law, estimate):
    classes = math.isqrt(len(law))

    def make(rng):
        shape = 1, classes, classes
        return estimate(rng.multinomial(n, law).reshape(shape) + draw(rng, epsilon, shape), noise)

    return make


def test_accuracy_covers_where_noise_is_nearly_all():
    """Who is answered does not depend on the noise: a selection of large counts would cover 80 %.

    False alarms as above.
    """
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
    law = np.array([0.6, 0.1, 0.05, 0.25])
    for n, epsilon in ((50, 0.05), (200, 0.05), (50, 0.5)):
        assert covered(few_run(n, epsilon, laplace(epsilon), law, intervals.accuracy), 0.85) > least


def test_balanced_accuracy_covers_where_some_runs_are_refused():
    """Those that have large counts by noise alone would cover more rarely."""
    outcome = np.full((4, 4), 0.05 / 3)
    np.fill_diagonal(outcome, 0.95)
    law = (np.array([0.1, 0.3, 0.3, 0.3])[:, None] * outcome).ravel()
    make, rng = few_run(180, 1.0, laplace(1.0), law, intervals.balanced), np.random.default_rng(0)
    found = [one for one in (make(rng) for _ in range(2 * RUNS)) if one.enough]
    assert len(found) > 60
    assert np.mean([one.low <= 0.95 <= one.high for one in found]) > 0.95 - 5 * math.sqrt(
        0.95 * 0.05 / len(found)
    )


def test_without_noise_they_are_ordinary_estimates():
    noise = Noise(0.0, laplace=True)
    counts = np.array([[[50.0, 10.0], [5.0, 35.0]]])
    found = intervals.accuracy(counts, noise)
    assert found.value == pytest.approx(0.85)
    # Wilson's interval of 85 in 100
    assert (found.low, found.high) == pytest.approx((0.767, 0.907), abs=0.002)
    assert intervals.recalls(counts, noise)[1].value == pytest.approx(35 / 40)
    assert intervals.balanced(counts, noise).value == pytest.approx((50 / 60 + 35 / 40) / 2)
    scores = np.array([[30.0, 20, 10], [5.0, 10, 25]])
    pairs = 10 * 30 + 25 * 50 + (5 * 30 + 10 * 20 + 25 * 10) / 2
    assert intervals.auc(scores, noise, scores.sum(axis=1)).value == pytest.approx(
        pairs / (60 * 40)
    )
    losses = np.array([[0.1, 0.5, 1.0], [2.0, 1.0, 0.2]])
    mean = float((scores * losses).sum() / scores.sum())
    assert intervals.mean_loss(scores, losses, noise).value == pytest.approx(mean)


@pytest.mark.parametrize("n", [10**3, 10**9])
def test_narrow_intervals_are_found(n):
    counts = n * np.array([[[0.5, 0.1], [0.1, 0.3]]])
    found = intervals.accuracy(counts, laplace(1.0))
    width = 2 * 1.96 * math.sqrt(0.8 * 0.2 / n)
    assert found.high - found.low == pytest.approx(width, rel=0.1)


def test_errors_of_records_add_up_to_one():
    distances = np.array([0.0, 1.0, 0.5, 1e-9, 1 - 1e-12, 7.0, math.nan, math.inf])
    found = error_moments(distances)
    assert (found >= 0).all()
    assert (found.sum(axis=1) == UNIT).all()
    assert error_moments(np.random.default_rng(0).random(10_000)).min() >= 0


def test_units_and_roots():
    one = Estimate(4.0, 1.0, 9.0)
    assert one.root() == Estimate(2.0, 1.0, 3.0)
    assert one.times(2) == Estimate(8.0, 2.0, 18.0)
    assert TOO_FEW.root() is TOO_FEW
