"""Checks of the baselines' parameters."""

from __future__ import annotations

from typing import Any

from privet.baselines._learners import DEEPEST
from privet.errors import BudgetError
from privet.estimators._base import check_whole

MOST_TREES = 1_000
MOST_BINS = 1_000


def check_trees(value: Any) -> int:
    """Return a number of trees."""
    return check_whole(value, "n_estimators", 1, MOST_TREES)


def check_bins(value: Any) -> int:
    """Return a number of bins."""
    return check_whole(value, "n_bins", 2, MOST_BINS)


def check_automatic_depth(value: Any) -> int | None:
    """Return a depth, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str):
        raise BudgetError(f"max_depth must be a whole number from 1 to {DEEPEST}, or 'auto'")
    return check_whole(value, "max_depth", 1, DEEPEST)
