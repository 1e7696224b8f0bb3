"""What a private model guarantees against poisoned rows, and what attacks on it achieve.

:mod:`~privet.robustness.promises` says what every fit of a learner stays within,
:mod:`~privet.robustness.guarantees` what follows for the accuracy (or the success of an attack)
after some rows were poisoned, :mod:`~privet.robustness.estimates` what a few clean fits prove about
the expectation that the bounds start from. Votes of trees on disjoint parts have certificates
of their own (:mod:`~privet.robustness.votes`, :mod:`~privet.robustness.partition`), and
:mod:`~privet.robustness.backdoor` attacks any scikit-learn style estimator. Proofs:
docs/proofs/poisoning.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privet.robustness.backdoor import Experiment, Trigger, attack_success, experiment, poison
from privet.robustness.curves import Curve, curve
from privet.robustness.estimates import Estimate, expected, rate_at_most
from privet.robustness.guarantees import (
    Guarantee,
    accuracy_after,
    attack_success_after,
    per_run,
    poisoned_rows,
)
from privet.robustness.promises import NoGuarantee, Promise, promise_of
from privet.robustness.votes import average_after, certified_share, forest_votes, safe_rows

if TYPE_CHECKING:
    from privet.robustness.partition import DeepPartitionClassifier

__all__ = [
    "Curve",
    "DeepPartitionClassifier",
    "Estimate",
    "Experiment",
    "Guarantee",
    "NoGuarantee",
    "Promise",
    "Trigger",
    "accuracy_after",
    "attack_success",
    "attack_success_after",
    "average_after",
    "certified_share",
    "curve",
    "expected",
    "experiment",
    "forest_votes",
    "per_run",
    "poison",
    "poisoned_rows",
    "promise_of",
    "rate_at_most",
    "safe_rows",
]


def __getattr__(name: str) -> Any:
    if name == "DeepPartitionClassifier":  # on first use: scikit-learn takes a second
        from privet.robustness.partition import DeepPartitionClassifier

        return DeepPartitionClassifier
    raise AttributeError(f"module 'privet.robustness' has no attribute {name!r}")
