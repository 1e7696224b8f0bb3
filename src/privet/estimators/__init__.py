"""The scikit-learn faces of the learners."""

from privet.estimators._diffpid3 import DiffPID3Classifier

__all__ = ["DiffPID3Classifier"]
