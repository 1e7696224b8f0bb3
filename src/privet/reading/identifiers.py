"""Whose record a record is: the values of a schema's unit, as exact text.

Two records are of one person if these texts are equal, byte by byte. A whole number is known by its
digits, so that 7, 7.0 and the text ``7`` are one person, and ``007`` is another. Numbers are *not*
read as 64-bit floats here, which would make one person of two. What is missing (also the texts that
CSV files have for it) is nobody else's: such a record is a person of its own.

As everywhere in this room, a column is read by its declared type, and what has none item by item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privet.reading.csv import MISSING

#: Text that stands for a missing identifier.
_MISSING = frozenset(text.encode() for text in MISSING)


def identifiers_of(series: nw.Series[Any]) -> pa.LargeBinaryArray:
    """Return the identifiers of a column; null where there is none."""
    native = series.to_native()
    if isinstance(native, pa.Array | pa.ChunkedArray):
        return _of_arrow(native)
    declared = getattr(native, "dtype", None)
    if isinstance(declared, np.dtype):
        return _of_array(np.asarray(native))
    if series.implementation.is_pandas_like():
        if hasattr(declared, "categories") and hasattr(native, "cat"):
            known = identifiers_of(
                nw.from_native(native.cat.categories.to_series(), series_only=True)
            )
            return _taken(known, np.asarray(native.cat.codes, dtype=np.int64))
        return _of_items(series.to_list())
    if series.dtype in (nw.Object, nw.Unknown):
        return _of_items(series.to_list())
    try:
        arrow = series.to_arrow()
    except Exception:  # text that is no Unicode, objects: read them one by one
        return _of_items(series.to_list())
    return _of_arrow(arrow)


def _of_arrow(array: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
    if isinstance(array, pa.ChunkedArray):
        parts = [_of_arrow(chunk) for chunk in array.chunks]
        return pa.concat_arrays([pa.array([], pa.large_binary()), *parts])
    kind = array.type
    if pa.types.is_dictionary(kind):
        places = array.indices.cast(pa.int64()).fill_null(-1)
        return _taken(_of_arrow(array.dictionary), places.to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind):
        return array.cast(pa.large_string()).cast(pa.large_binary())
    if any(is_text(kind) for is_text in _TEXTS):
        found = array.cast(pa.large_binary())
        missing = pc.is_in(found, value_set=pa.array(sorted(_MISSING), pa.large_binary()))
        return pc.if_else(missing, pa.scalar(None, pa.large_binary()), found)
    return _of_items(array.to_pylist())


_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


def _of_array(array: NDArray[Any]) -> pa.LargeBinaryArray:
    if array.dtype.kind in "iu":
        return _of_arrow(pa.array(array.astype(array.dtype.newbyteorder("="))))
    if array.dtype.kind == "M":
        return _of_items([None if np.isnat(item) else str(item) for item in array])
    return _of_items(array.tolist())


def _of_items(items: Sequence[Any]) -> pa.LargeBinaryArray:
    return pa.array(map(identifier, items), pa.large_binary())


def _taken(known: pa.LargeBinaryArray, places: NDArray[np.int64]) -> pa.LargeBinaryArray:
    """Return the identifiers at some places; -1: none."""
    return known.take(pa.array(places, mask=places < 0))


def identifier(item: Any) -> bytes | None:
    """Return the identifier that a value of no declared type is; None if it is missing."""
    try:
        found = _bytes(item)
    except Exception:  # whatever an object says of itself stays unsaid
        return None
    return None if found is None or found in _MISSING else found


def _bytes(item: Any) -> bytes | None:
    if isinstance(item, str):
        return str.__str__(item).encode("utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return bytes(item)
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, np.generic | pa.Scalar):
        return _bytes(item.item() if isinstance(item, np.generic) else item.as_py())
    if isinstance(item, float | Decimal | Fraction):
        if isinstance(item, float | Decimal) and not math.isfinite(item):
            return None
        whole = int(item)
        return str(whole if whole == item else item).encode()
    return str(item).encode("utf-8", "surrogatepass")
