"""Limits of expectations: exact coverage where all outcomes can be enumerated."""

import numpy as np
import pytest
from scipy.stats import binom

from privet.robustness import NoGuarantee, expected, rate_at_most


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("runs", [1, 5, 20, 60])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.6, 0.9), (0.0, 0.05)])
def test_exact_coverage_of_scores_with_two_values(low, high, runs, confidence):
    """All outcomes of R runs by how many are high: each limit fails with 1 - confidence at most."""
    found = [
        expected(np.repeat([high, low], [k, runs - k]), confidence=confidence)
        for k in range(runs + 1)
    ]
    for chance in np.linspace(0, 1, 41):
        mean = low + (high - low) * chance
        law = binom.pmf(np.arange(runs + 1), runs, chance)
        too_high = sum(p for p, e in zip(law, found, strict=True) if e.low > mean + 1e-12)
        too_low = sum(p for p, e in zip(law, found, strict=True) if e.high < mean - 1e-12)
        assert max(too_high, too_low) <= 1 - confidence + 1e-12


def test_the_coverage_check_can_fail():
    """Twice the standard error instead of the limit misses far more often than it says."""
    runs, chance = 20, 0.95
    law = binom.pmf(np.arange(runs + 1), runs, chance)
    share = np.arange(runs + 1) / runs
    normal = share - 2 * np.sqrt(share * (1 - share) / runs)
    assert law[normal > chance].sum() > 0.3


def test_the_limits_narrow_and_use_small_variation():
    few, many = expected([0.84, 0.86] * 10), expected([0.84, 0.86] * 500)
    assert few.low < many.low < 0.85 < many.high < few.high
    hoeffding = 0.85 - np.sqrt(np.log(20) / 40)
    assert few.low > hoeffding + 0.1
    assert many.low > 0.84


def test_test_rows_that_are_a_sample_widen_the_limits():
    runs = [0.84, 0.86] * 100
    fixed, sampled, large = (
        expected(runs, test_rows=rows) for rows in (None, 500, 10_000_000)
    )  # fmt: skip
    assert sampled.low < large.low < fixed.low
    assert sampled.high > large.high > fixed.high
    # Exact coverage: a perfectly stable learner, n test rows that are right with chance p.
    n, chance = 40, 0.9
    law = binom.pmf(np.arange(n + 1), n, chance)
    lows = [expected([k / n] * 300, test_rows=n).low for k in range(n + 1)]
    assert law[np.array(lows) > chance].sum() <= 0.025


@pytest.mark.parametrize(("failures", "runs"), [(0, 10), (3, 10), (10, 10), (1, 400)])
def test_clopper_pearson(failures, runs):
    limit = rate_at_most(failures, runs, 0.95)
    if failures < runs:
        assert binom.cdf(failures, runs, limit) == pytest.approx(0.05)
    else:
        assert limit == 1


@pytest.mark.parametrize("runs", [[], [[0.5]], [1.2], [-0.1], [np.nan], ["x"], None])
def test_bad_runs(runs):
    with pytest.raises(NoGuarantee):
        expected(runs)


def test_bad_numbers():
    with pytest.raises(NoGuarantee, match="confidence"):
        expected([0.5], confidence=1.0)
    with pytest.raises(NoGuarantee, match="test rows"):
        expected([0.5], test_rows=0)
    with pytest.raises(NoGuarantee, match="failures"):
        rate_at_most(3, 2)
