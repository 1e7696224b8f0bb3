"""The scikit-learn faces of the learners."""

from privet.estimators._additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from privet.estimators._boosting import PrivateBoostingClassifier, PrivateBoostingRegressor
from privet.estimators._diffpid3 import DiffPID3Classifier
from privet.estimators._tree import PrivateTreeClassifier

__all__ = [
    "DiffPID3Classifier",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "PrivateTreeClassifier",
]
