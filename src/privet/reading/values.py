"""How one value is read: as a number, as a day, or as text. It never looks at another value.

Everything that holds values of no declared type (lists, object columns, fields of a CSV file) is
read by these functions, one value at a time. Columns of a declared type are read as a whole,
to the same result. Nothing here raises, warns or quotes a value.

* A number is a truth value, a whole number, a float, a decimal, a fraction, or text that Python's
  ``float`` reads (``true`` and ``false``, in any case, are 1 and 0). It is held as a 64-bit float:
  what is too large for one is infinite. Everything else is missing.
* A day is a date or a time of Python, numpy, pandas or pyarrow, or text: YYYY-MM-DD, perhaps with a
  time behind it. A time counts as the calendar day that it states where it was written: no clock is
  moved to another zone. Everything else is missing, numbers too.
* Text is text. A number is known by the text of its 64-bit float, without a decimal point if it is
  whole, so that a column of whole numbers and the same column as floats are the same categories.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privet.schema import as_double, day_of_text, value_text

_NUMBERS = (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
_TRUTH = {"true": 1.0, "false": 0.0}
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
#: What pandas has for missing values; their text would be mistaken for a category.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})


def number(item: Any) -> float:
    """Return a value as a 64-bit float; NaN if it is missing or no number."""
    kind = type(item)
    if kind is float:
        return float(item)
    if kind is str:
        return number_of_text(item)
    if kind is int or kind is bool:
        return as_double(item)
    try:
        return _rare_number(item)
    except Exception:  # whatever an object says of itself stays unsaid
        return math.nan


def number_of_text(text: str, decimal: str = ".") -> float:
    """Return the number that a text spells; NaN if it spells none."""
    if decimal != ".":
        # A point is no part of a number then: it may separate thousands.
        text = text.replace(".", "?").replace(decimal, ".")
    try:
        return float(text)
    except ValueError:
        return _TRUTH.get(text.strip().lower(), math.nan)


def numbers(items: Sequence[Any]) -> NDArray[np.float64]:
    """Return values as 64-bit floats, each by itself."""
    if set(map(type, items)) <= {float, int, bool}:  # the same values, but faster
        with suppress(OverflowError):
            return np.array(items, dtype=np.float64)
    return np.fromiter(map(number, items), dtype=np.float64, count=len(items))


def day(item: Any) -> float:
    """Return a value as days since 1970-01-01; NaN if it is missing or no date."""
    if type(item) is str:
        return day_of_text(item)
    try:
        return _rare_day(item)
    except Exception:  # whatever an object says of itself stays unsaid
        return math.nan


def days(items: Sequence[Any]) -> NDArray[np.float64]:
    """Return values as days since 1970-01-01, each by itself."""
    return np.fromiter(map(day, items), dtype=np.float64, count=len(items))


def days_of_times(times: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Return an array of numpy's times as days since 1970-01-01; NaN for those that are none."""
    unit, each = np.datetime_data(times.dtype)
    ticks = np.ascontiguousarray(times, times.dtype.newbyteorder("=")).view(np.int64)
    missing = ticks == np.iinfo(np.int64).min
    if unit in ("Y", "M"):  # which differ in length; far beyond the years that a schema has
        most = (40_000 if unit == "Y" else 480_000) // each
        near = np.where(missing, 0, np.clip(ticks, -most, most)) * each
        found = near.view(f"M8[{unit}]").astype("M8[D]").view(np.int64).astype(np.float64)
    elif unit in _TICKS:
        ratio = Fraction(each, _TICKS[unit])
        found = _floors(ticks, ratio.numerator, ratio.denominator)
    elif unit in ("D", "W"):
        found = ticks.astype(np.float64) * (each if unit == "D" else 7 * each)
    else:  # no unit: there is nothing but what is missing
        found = np.full(len(ticks), np.nan)
    return np.where(missing, np.nan, found)


#: Of numpy's units of time that are shorter than a day: how many make a day.
_TICKS = {"h": 24, "m": 1440, "s": 86_400} | {
    unit: 86_400 * 1000**power for power, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), 1)
}


def _floors(ticks: NDArray[np.int64], factor: int, divisor: int) -> NDArray[np.float64]:
    """Return the largest whole numbers that are not above ``ticks * factor / divisor``."""
    if factor == 1:
        if divisor < 2**63:
            return (ticks // divisor).astype(np.float64)
        return np.where(ticks < 0, -1.0, 0.0)
    exact = (tick * factor // divisor for tick in ticks.tolist())
    return np.fromiter(exact, dtype=np.float64, count=len(ticks))


def _rare_day(item: Any) -> float:
    """Return a value of another type than text as a day, or raise."""
    if isinstance(item, datetime.date):
        found = datetime.date(item.year, item.month, item.day)
        return float(found.toordinal() - _FIRST_DAY)
    if isinstance(item, np.datetime64):
        return float(days_of_times(np.array([item]))[0])
    if isinstance(item, str):
        return day_of_text(str.__str__(item))
    if isinstance(item, bytes):
        return day_of_text(item.decode("utf-8", "replace"))
    alone = _unwrapped(item)
    return math.nan if alone is item else day(alone)


def text(item: Any) -> str | None:
    """Return the text by which a category is known; None if the value is missing."""
    if type(item) is str:
        return item
    if item is None or type(item).__name__ in _MISSING_TYPES:
        return None
    try:
        if isinstance(item, _NUMBERS):
            return None if math.isnan(as_double(item)) else value_text(item)
        alone = _unwrapped(item)
        if alone is not item:
            return text(alone)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return value_text(item)
    except Exception:  # an object without a text: no category, whatever it says of itself
        return None


def _rare_number(item: Any) -> float:
    """Return a value of a less common type as a float, or raise."""
    if isinstance(item, str):
        return number_of_text(str.__str__(item))
    if isinstance(item, bytes):
        return number_of_text(item.decode("utf-8", "replace"))
    if isinstance(item, _NUMBERS):
        return as_double(item)
    alone = _unwrapped(item)
    return math.nan if alone is item else number(alone)


def _unwrapped(item: Any) -> Any:
    """Return the value in an array of a single one, or in a scalar of pyarrow."""
    if isinstance(item, np.ndarray) and item.size == 1:
        # numpy's times would become whole numbers.
        return item.reshape(1)[0] if item.dtype.kind == "M" else item.reshape(1).tolist()[0]
    return item.as_py() if isinstance(item, pa.Scalar) else item
