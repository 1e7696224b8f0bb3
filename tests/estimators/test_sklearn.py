"""scikit-learn's own checks. An expected failure needs a reason of privacy."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from privet import (
    DiffPC45Classifier,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    DiPriMeForestRegressor,
    DiPriMeTreeClassifier,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    SulqID3Classifier,
    TopDownClassifier,
)
from privet.estimators.registry import estimators

# The checks fit tiny tables (20 to 300 rows), where a private tree at epsilon 1 rightly learns next
# to nothing; they test the interface, so they run with a large epsilon. They pass no schema, hence
# every fit drafts one and says so, and they fix the seed.
OPTIONS = {  # of those that are checked with other options than their own
    SulqID3Classifier: {"max_depth": 2},
    DiffPC45Classifier: {"random_state": 0},
    PrivateTreeClassifier: {"random_state": 0},
    PrivateBoostingClassifier: {"random_state": 0},
    PrivateBoostingRegressor: {"n_rounds": 4},
    PrivateAdditiveClassifier: {"delta": 1e-6},
    PrivateAdditiveRegressor: {"random_state": 0},
    DiPriMeForestClassifier: {"max_depth": 6, "partition": False},
    DiPriMeForestRegressor: {
        "variant": "uniform",
        "max_depth": 7,
        "partition": False,
        "random_state": 0,
    },
    DiPriMeTreeClassifier: {"variant": "exp", "random_state": 0},
}
ESTIMATORS = [
    kind(epsilon=1000.0, **OPTIONS.get(kind, {}))
    for kind in estimators()
    if kind.__module__.startswith("privet.estimators.")
]
#: The same with other options, by ``make engines``.
AGAIN = [
    DiffPID3Classifier(1000.0, criterion="gini", random_state=0),
    TopDownClassifier(1000.0, criterion="clipped_entropy", split="rnm", random_state=0),
    PrivateTreeClassifier(1000.0),
    PrivateBoostingClassifier(1000.0, delta=1e-6, n_rounds=4),
    PrivateTreeRegressor(1000.0, criterion="sad", random_state=0),
]


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::privet.errors.ColumnTypeWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks={})
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::privet.errors.ColumnTypeWarning")
@parametrize_with_checks(AGAIN, expected_failed_checks={})
def test_scikit_learn_check_of_other_options(estimator, check):
    check(estimator)
