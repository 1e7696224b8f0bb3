"""A first schema, read off a table for a person to correct. It depends on single records."""

from __future__ import annotations

import datetime
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import SchemaError
from privet.reading.columns import Column, Columns, column_of
from privet.reading.values import day, number, text
from privet.schema import (
    LARGEST_WHOLE,
    LONGEST_TEXT,
    Categorical,
    Date,
    Feature,
    Integer,
    Numeric,
    Schema,
    Value,
    day_text,
)
from privet.visible import quoted

#: A draft leaves out a text column with more distinct values than this: it looks like a name.
MAX_CATEGORIES = 255
#: A draft takes a numeric target with at most this many distinct whole values as classes.
MAX_CLASSES = 20


def draft_schema(
    frame: Any, target: str | None = None, *, values: Any = None, classes: bool | None = None
) -> Schema:
    """Return a draft; see :meth:`privet.Schema.draft`."""
    columns = Columns.of(frame)
    if not len(columns):
        raise SchemaError("a draft needs data: the table has no rows")
    if values is not None:
        if target is None:
            target = "target"
            while target in columns.names:
                target += "_"
        column = column_of(values, target)
    else:
        target = target or columns.names[-1]
        if target not in columns.names:
            raise SchemaError(f"there is no column {quoted(target)} to be the target")
        column = columns.column(target)
    features: dict[str, Feature] = {}
    for name in columns.names:
        if name == target:
            continue
        here = columns.column(name)
        if _holds_dates(here):
            features[name] = Date(*_whole_years(here.days()))
            continue
        if _holds_numbers(here):
            low, high = _rounded_range(here.numbers())
            if _holds_whole(here) and max(-low, high) < LARGEST_WHOLE:
                low, high = math.floor(low), math.ceil(high)
                features[name] = Integer(low, max(high, low + 1))
            else:
                features[name] = Numeric(low, high)
            continue
        listed = _distinct_values(here)
        if len(listed) > MAX_CATEGORIES:
            warnings.warn(
                f"column {quoted(name)} was left out of the draft: it has too many distinct values "
                "for a category; add it by hand if it is a feature, or as the unit if it says "
                "whose a record is (docs/schema.md)",
                UserWarning,
                stacklevel=3,
            )
        else:
            features[name] = Categorical(tuple(listed) or ("",))
    if column.holds == "dates":
        raise SchemaError(f"the target {quoted(target)} holds dates, which cannot be predicted")
    if classes is None:
        classes = not _holds_numbers(column) or _few_whole(column.numbers())
    if not classes:
        return Schema(features, target, bounds=_rounded_range(column.numbers()), drafted=True)
    found = _distinct_values(column)
    if len(found) < 2:
        raise SchemaError("the data hold fewer than two classes (no or only one class)")
    return Schema(features, target, classes=tuple(found), drafted=True)


def _distinct_values(column: Column) -> list[Value]:
    """Return the distinct values of a column, sorted; missing ones are passed over."""
    items = column.items()
    present = [item for item in items if text(item) is not None]
    if all(isinstance(item, bool | np.bool_) for item in present):
        return sorted({bool(item) for item in present})
    if all(_is_number(item) for item in present):
        found = {number(item) for item in present}
        finite = sorted(value for value in found if math.isfinite(value))
        return [int(value) for value in finite] if all(map(_is_whole, finite)) else [*finite]
    # What is too long for a schema goes to the extra bin.
    texts = {known for item in present if (known := text(item)) is not None}
    return sorted(known for known in texts if len(known) <= LONGEST_TEXT)


def _is_number(item: Any) -> bool:
    """Tell whether an object is a number by its type: text that spells one is none."""
    return not isinstance(item, str | bytes) and not math.isnan(number(item))


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) < 2**53


def _holds_numbers(column: Column) -> bool:
    """Tell from the column's type (objects: from its values) whether it holds numbers."""
    if column.holds in ("numbers", "whole numbers"):
        return True
    present = [item for item in column.items() if text(item) is not None]
    return bool(present or column.holds != "text") and all(
        _is_number(item) and not isinstance(item, bool | np.bool_) for item in present
    )


def _holds_whole(column: Column) -> bool:
    """Tell from the column's type (objects: from theirs) whether its numbers are whole ones."""
    if column.holds:
        return column.holds == "whole numbers"
    present = [item for item in column.items() if text(item) is not None]
    return bool(present) and all(isinstance(item, int | np.integer) for item in present)


def _holds_dates(column: Column) -> bool:
    """Tell from the column's type (objects, text: from its values) whether it holds dates."""
    if column.holds not in ("text", ""):
        return column.holds == "dates"
    present = [item for item in column.items() if text(item) not in (None, "")]
    return bool(present) and not any(math.isnan(day(item)) for item in present)


def _whole_years(days: NDArray[np.float64]) -> tuple[str, str]:
    """Return the first and the last day of the years that a column has."""
    known = days[~np.isnan(days)]
    if not known.size:
        return "2000-01-01", "2000-12-31"
    first, last = (
        datetime.date.fromisoformat(day_text(end)).year
        for end in np.clip([known.min(), known.max()], *_ALL_DAYS)
    )
    return f"{first:04}-01-01", f"{last:04}-12-31"


#: The days of the years 1 to 9999.
_ALL_DAYS = (-719_162, 2_932_896)


def _rounded_range(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return the finite range rounded outwards to two digits; [0, 1] if there is none."""
    finite = numbers[np.abs(numbers) < 1e300]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    unit = 10.0 ** math.floor(math.log10(max(high - low, abs(high) * 1e-9, 1e-300))) / 10
    rounded = (math.floor(low / unit) * unit, math.ceil(high / unit) * unit)
    low, high = (float(f"{bound:.12g}") for bound in rounded)
    return (low, high) if low < high else (low, low + max(1.0, abs(low) * 1e-6))


def _few_whole(numbers: NDArray[np.float64]) -> bool:
    distinct = np.unique(numbers[np.isfinite(numbers)])
    return len(distinct) <= MAX_CLASSES and bool(np.all(distinct == np.round(distinct)))
