"""Test scores of published models, and how sure they are. See ``asking``, ``results``."""

from privet.evaluation.intervals import Estimate
from privet.evaluation.results import Calibration, Counted, Evaluation

__all__ = ["Calibration", "Counted", "Estimate", "Evaluation"]
