"""The methods that papers on private trees compare with, each with a valid calibration.

They are here to be compared with, not to be used: for work, take the estimators of :mod:`privet`.
All spend ``epsilon`` and no more, for adding or removing one record. Where an original needs more
than it says, which is nearly everywhere, the step is replaced by one that does not; what it was,
what it would cost, and what takes its place is in ``docs/proofs/baselines.md``.
"""

from privet.baselines._binary_trees import BDPTClassifier, DPGDFClassifier
from privet.baselines._multiway_forests import (
    FletcherIslamForestClassifier,
    PatilSinghForestClassifier,
    PatilSinghForestRegressor,
)
from privet.baselines._random_trees import RandomTreesClassifier, RandomTreesRegressor

__all__ = [
    "BDPTClassifier",
    "DPGDFClassifier",
    "FletcherIslamForestClassifier",
    "PatilSinghForestClassifier",
    "PatilSinghForestRegressor",
    "RandomTreesClassifier",
    "RandomTreesRegressor",
]
