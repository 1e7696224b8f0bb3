"""How one value is read: as a number, or as text. It never looks at another value.

Everything that holds values of no declared type (lists, object columns, fields of a CSV file) is
read by these two functions, one value at a time. Columns of a declared type are read as a whole,
to the same result. Nothing here raises, warns or quotes a value.

* A number is a truth value, a whole number, a float, a decimal, a fraction, or text that Python's
  ``float`` reads (``true`` and ``false``, in any case, are 1 and 0). It is held as a 64-bit float:
  what is too large for one is infinite. Everything else is missing.
* Text is text. A number is known by the text of its 64-bit float, without a decimal point if it is
  whole, so that a column of whole numbers and the same column as floats are the same categories.
"""

from __future__ import annotations

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

from privet.schema import as_double, value_text

_NUMBERS = (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
_TRUTH = {"true": 1.0, "false": 0.0}
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
        return item.reshape(1).tolist()[0]
    return item.as_py() if isinstance(item, pa.Scalar) else item
