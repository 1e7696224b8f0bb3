"""Utility bounds turned into advice: rows, epsilon, depth, losses, before any data are touched.

One function per published statement: :mod:`~privet.planning.diprime` has DiPriMe's Theorems 1 to 3
and Corollary 3.1, :mod:`~privet.planning.topdown` DP-TopDown's Theorem 3, Lemmas 4 and 6 and
Corollaries 5, 7 and 16, :mod:`~privet.planning.tails` its Lemma 12. A name that starts with
``printed_`` is what a paper says, the same name without it what is true of private mechanisms.
:mod:`~privet.planning.selection` has what private selections lose,
:mod:`~privet.planning.protocols` what that means for k parties, and :func:`make_plan` puts it
together. Proofs: docs/proofs/planning.md.
"""

from privet.planning._checks import PlanError
from privet.planning.advice import Flagship, Level, Plan, make_plan
from privet.planning.diprime import (
    classification_loss,
    leaf_mean_loss,
    median_imbalance,
    moved_split_loss,
    printed_classification_loss,
    printed_median_balance,
    printed_regression_loss,
    random_imbalance,
    regression_loss,
)
from privet.planning.measured import Expectation, expectation, least_epsilon
from privet.planning.protocols import Protocol, protocols
from privet.planning.selection import (
    discrete_flip_probability,
    exponential_error,
    exponential_loss,
    exponential_tail,
    flip_error,
    flip_loss,
    flip_probability,
    flip_tail,
    label_loss,
    normal_loss,
)
from privet.planning.tails import (
    discrete_laplace_tail,
    laplace_error,
    printed_sum_error,
    sum_error,
    sum_tail,
)
from privet.planning.topdown import (
    entropy_gain_error,
    entropy_spread,
    gini_gain_error,
    growth_tolerance,
    label_rows,
    log2_nodes,
    noisy_counts_rows,
    noisy_counts_tree_rows,
    printed_noisy_counts_rows,
    printed_noisy_counts_tree_rows,
    printed_single_machine_tree_rows,
    printed_split_error,
    printed_split_rows,
    printed_topdown_rows,
    single_machine_tree_rows,
    split_rows,
    topdown_rows,
)

__all__ = [
    "Expectation",
    "Flagship",
    "Level",
    "Plan",
    "PlanError",
    "Protocol",
    "classification_loss",
    "discrete_flip_probability",
    "discrete_laplace_tail",
    "entropy_gain_error",
    "entropy_spread",
    "expectation",
    "exponential_error",
    "exponential_loss",
    "exponential_tail",
    "flip_error",
    "flip_loss",
    "flip_probability",
    "flip_tail",
    "gini_gain_error",
    "growth_tolerance",
    "label_loss",
    "label_rows",
    "laplace_error",
    "leaf_mean_loss",
    "least_epsilon",
    "log2_nodes",
    "make_plan",
    "median_imbalance",
    "moved_split_loss",
    "noisy_counts_rows",
    "noisy_counts_tree_rows",
    "normal_loss",
    "printed_classification_loss",
    "printed_median_balance",
    "printed_noisy_counts_rows",
    "printed_noisy_counts_tree_rows",
    "printed_regression_loss",
    "printed_single_machine_tree_rows",
    "printed_split_error",
    "printed_split_rows",
    "printed_sum_error",
    "printed_topdown_rows",
    "protocols",
    "random_imbalance",
    "regression_loss",
    "single_machine_tree_rows",
    "split_rows",
    "sum_error",
    "sum_tail",
    "topdown_rows",
]
