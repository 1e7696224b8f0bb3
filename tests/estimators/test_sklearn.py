"""scikit-learn's own checks. An expected failure needs a reason of privacy."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from privet import (
    DiffPC45Classifier,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    DiPriMeForestRegressor,
    DiPriMeTreeClassifier,
    DiPriMeTreeRegressor,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    PrivaTreeClassifier,
    SulqID3Classifier,
    TopDownClassifier,
)

# The checks fit tiny tables (20 to 300 rows), where a private tree at epsilon 1 rightly learns next
# to nothing; they test the interface, so they run with a large epsilon. They pass no schema, hence
# every fit drafts one and says so, and they fix the seed.
ESTIMATORS = [
    DiffPID3Classifier(epsilon=1000.0),
    DiffPID3Classifier(epsilon=1000.0, criterion="gini", random_state=0),
    SulqID3Classifier(epsilon=1000.0, max_depth=2),
    DiffPC45Classifier(epsilon=1000.0, random_state=0),
    PrivaTreeClassifier(epsilon=1000.0),
    TopDownClassifier(epsilon=1000.0),
    TopDownClassifier(epsilon=1000.0, criterion="clipped_entropy", split="rnm", random_state=0),
    PrivateTreeClassifier(epsilon=1000.0),
    PrivateTreeClassifier(epsilon=1000.0, random_state=0),
    PrivateBoostingClassifier(epsilon=1000.0, random_state=0),
    PrivateBoostingClassifier(epsilon=1000.0, delta=1e-6, n_rounds=4),
    PrivateBoostingRegressor(epsilon=1000.0, n_rounds=4),
    PrivateAdditiveClassifier(epsilon=1000.0, delta=1e-6),
    PrivateAdditiveRegressor(epsilon=1000.0, random_state=0),
    PrivateTreeRegressor(epsilon=1000.0),
    PrivateTreeRegressor(epsilon=1000.0, criterion="sad", random_state=0),
    DiPriMeForestClassifier(epsilon=1000.0, max_depth=6, partition=False),
    DiPriMeForestRegressor(
        epsilon=1000.0, variant="uniform", max_depth=7, partition=False, random_state=0
    ),
    DiPriMeTreeClassifier(epsilon=1000.0, variant="exp", random_state=0),
    DiPriMeTreeRegressor(epsilon=1000.0),
]


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::privet.errors.ColumnTypeWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks={})
def test_scikit_learn_check(estimator, check):
    check(estimator)
