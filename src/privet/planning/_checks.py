"""Checks of the public numbers that a plan is made from."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from privet.errors import PrivetError


class PlanError(PrivetError, ValueError):
    """A number from which no plan can be made."""


def positive(value: Any, what: str, advice: str = "") -> float:
    """Return a positive finite number, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PlanError(f"{what} must be a number")
    number = float(value)
    if not 0 < number < math.inf:
        raise PlanError(f"{what} must be a positive number{advice and '; ' + advice}")
    return number


def whole(value: Any, what: str, least: int = 1, advice: str = "", most: int | None = None) -> int:
    """Return a whole number within limits, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PlanError(f"{what} must be a whole number")
    if value < least:
        raise PlanError(f"{what} must be at least {least}{advice and '; ' + advice}")
    if most is not None and value > most:
        raise PlanError(f"{what} must be at most {most:,}")
    return int(value)


def probability(value: Any, what: str) -> float:
    """Return a probability strictly between 0 and 1, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise PlanError(f"{what} must lie between 0 and 1")
    return float(value)
