"""Checks of the baselines' parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.baselines._learners import DEEPEST
from privet.errors import BudgetError

MOST_TREES = 1_000
MOST_BINS = 1_000


def check_whole(value: Any, name: str, least: int, most: int) -> int:
    """Return a parameter that must be a whole number within limits."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not least <= int(value) <= most
    ):
        raise BudgetError(f"{name} must be a whole number from {least} to {most}")
    return int(value)


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
