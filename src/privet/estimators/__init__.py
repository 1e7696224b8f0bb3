"""The scikit-learn faces of the learners."""

from privet.estimators._additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from privet.estimators._boosting import PrivateBoostingClassifier, PrivateBoostingRegressor
from privet.estimators._forests import (
    DiPriMeForestClassifier,
    DiPriMeForestRegressor,
    DiPriMeTreeClassifier,
    DiPriMeTreeRegressor,
)
from privet.estimators._friedman_schuster import (
    DiffPC45Classifier,
    DiffPID3Classifier,
    SulqID3Classifier,
)
from privet.estimators._privatree import PrivaTreeClassifier
from privet.estimators._topdown import TopDownClassifier
from privet.estimators._tree import PrivateTreeClassifier, PrivateTreeRegressor

__all__ = [
    "DiPriMeForestClassifier",
    "DiPriMeForestRegressor",
    "DiPriMeTreeClassifier",
    "DiPriMeTreeRegressor",
    "DiffPC45Classifier",
    "DiffPID3Classifier",
    "PrivaTreeClassifier",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "PrivateTreeClassifier",
    "PrivateTreeRegressor",
    "SulqID3Classifier",
    "TopDownClassifier",
]
