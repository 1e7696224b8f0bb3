"""The scikit-learn faces of the learners."""

from privet.estimators._diffpid3 import DiffPID3Classifier
from privet.estimators._tree import PrivateTreeClassifier

__all__ = ["DiffPID3Classifier", "PrivateTreeClassifier"]
