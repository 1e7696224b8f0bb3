"""A first schema, read off a table for a person to correct. It depends on single records."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import SchemaError
from privet.reading.columns import Column, Columns, Numbers, column_of
from privet.reading.values import number, text
from privet.schema import LONGEST_TEXT, Categorical, Feature, Numeric, Schema, Value
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
        if _holds_numbers(here):
            features[name] = Numeric(*_rounded_range(here.numbers()))
            continue
        listed = _distinct_values(here)
        if len(listed) > MAX_CATEGORIES:
            warnings.warn(
                f"column {quoted(name)} was left out of the draft: it has too many distinct values "
                "for a category; add it by hand if it is a feature",
                UserWarning,
                stacklevel=3,
            )
        else:
            features[name] = Categorical(tuple(listed) or ("",))
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
    if isinstance(column, Numbers):
        return True
    present = [item for item in column.items() if text(item) is not None]
    return bool(present or not column.is_text) and all(
        _is_number(item) and not isinstance(item, bool | np.bool_) for item in present
    )


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
