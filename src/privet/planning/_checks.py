"""Checks of the public numbers that a plan is made from."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivetError

#: Beyond this, floats cannot tell whole numbers from their neighbours.
MOST = 2**53


class PlanError(PrivetError, ValueError):
    """A number from which no plan can be made."""


def positive(value: Any, what: str, advice: str = "") -> float:
    """Return a positive finite number, or say what is wrong with it."""
    number = _number(value, what)
    if not 0 < number < math.inf:
        raise PlanError(f"{what} must be a positive number{advice and '; ' + advice}")
    return number


def not_negative(value: Any, what: str) -> float:
    """Return a finite number of at least zero, or say what is wrong with it."""
    number = _number(value, what)
    if not 0 <= number < math.inf:
        raise PlanError(f"{what} must be a number of at least 0")
    return number


def not_negatives(value: Any, what: str) -> NDArray[np.float64]:
    """Return numbers of at least zero as an array, or say what is wrong with them."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise PlanError(f"{what} must be a number, or an array of numbers") from None
    if not (numbers >= 0).all():
        raise PlanError(f"{what} must be at least 0")
    return numbers


def whole(value: Any, what: str, least: int = 1, advice: str = "", most: int = MOST) -> int:
    """Return a whole number within limits, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PlanError(f"{what} must be a whole number")
    if value < least:
        raise PlanError(f"{what} must be at least {least}{advice and '; ' + advice}")
    if value > most:
        raise PlanError(f"{what} must be at most {most:,}")
    return int(value)


def finite(value: Any, what: str) -> float:
    """Return a finite number, or say what is wrong with it."""
    number = _number(value, what)
    if not math.isfinite(number):
        raise PlanError(f"{what} must be a finite number")
    return number


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PlanError(f"{what} must be a number")
    try:
        return float(value)
    except OverflowError:
        raise PlanError(f"{what} must be smaller than 1.8e308") from None


def probability(value: Any, what: str) -> float:
    """Return a probability strictly between 0 and 1, or say what is wrong with it."""
    number = finite(value, what)
    if not 0 < number < 1:
        raise PlanError(f"{what} must lie between 0 and 1")
    return number
