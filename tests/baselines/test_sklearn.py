"""scikit-learn's own checks, as for the other estimators (tests/estimators/test_sklearn.py)."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from privet.baselines import (
    BDPTClassifier,
    DPGDFClassifier,
    FletcherIslamForestClassifier,
    PatilSinghForestClassifier,
    PatilSinghForestRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
)
from privet.estimators.registry import estimators

# Tiny tables (20 to 300 rows) with training scores to be reached: much epsilon, and deeper trees or
# more bins than any of the originals would have there.
ESTIMATORS = [
    RandomTreesClassifier(epsilon=1000.0, n_estimators=5, max_depth=6),
    RandomTreesRegressor(epsilon=1000.0, n_estimators=2, max_depth=10, random_state=0),
    PatilSinghForestClassifier(epsilon=1000.0, n_estimators=3, max_depth=2, n_bins=10),
    PatilSinghForestRegressor(epsilon=1000.0, n_estimators=3, max_depth=2, random_state=0),
    FletcherIslamForestClassifier(
        epsilon=1000.0, n_estimators=3, max_depth=2, n_bins=10, random_state=0
    ),
    BDPTClassifier(epsilon=1000.0),
    DPGDFClassifier(epsilon=1000.0, random_state=0),
]


def test_all_are_checked():
    registered = {kind for kind in estimators() if kind.__module__.startswith("privet.baselines.")}
    assert set(map(type, ESTIMATORS)) == registered


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::privet.errors.ColumnTypeWarning")
@parametrize_with_checks(ESTIMATORS[:2], expected_failed_checks={})
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::privet.errors.ColumnTypeWarning")
@parametrize_with_checks(ESTIMATORS[2:], expected_failed_checks={})
def test_scikit_learn_check_of_the_others(estimator, check):
    check(estimator)
