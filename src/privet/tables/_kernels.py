"""Counting and binning loops: numba for large tables, numpy for small ones.

Both paths give the same integers. numba compiles on first use (seconds, then cached on disk), which
a small table should not wait for, so :func:`compiled` decides by size. The loops release the
interpreter lock; callers run them in threads, by groups of features or by blocks of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Tables with fewer values than this never trigger compilation.
COMPILE_FROM = 4_000_000
_CHUNK = 4_096


def compiled(values: int) -> bool:
    """Tell whether a table of this many values is worth compiled loops."""
    return values >= COMPILE_FROM


def key(
    cells: NDArray[np.int32], labels: NDArray[Any], classes: int, outside: int, *, fast: bool
) -> NDArray[np.int32]:
    """Return ``cell * classes + label`` of each record, and ``outside`` for those in no cell."""
    keys = np.empty_like(cells)
    if fast:
        _loops().key(cells, labels, classes, outside, keys)
        return keys
    np.multiply(cells, np.int32(classes), out=keys)
    keys += labels
    keys[cells < 0] = outside
    return keys


def count(
    columns: Sequence[NDArray[Any]],
    keys: NDArray[np.int32],
    n_keys: int,
    size: int,
    *,
    fast: bool,
) -> NDArray[np.int32]:
    """Count records by (key, code) for several columns of codes; a key of ``n_keys`` is dropped.

    Returns
    -------
    array of shape (columns, n_keys, size)
    """
    tables = np.zeros((len(columns), (n_keys + 1) * size), dtype=np.int32)
    if fast and len(columns) == 4:
        _loops().count_four(*columns, keys, size, *tables)
    elif fast:
        for codes, table in zip(columns, tables, strict=True):
            _loops().count_one(codes, keys, size, table)
    else:
        for start in range(0, len(keys), _CHUNK):
            part = slice(start, start + _CHUNK)
            bases = keys[part].astype(np.intp) * size
            for codes, table in zip(columns, tables, strict=True):
                fused = bases + codes[part]
                if len(table) <= 4 * _CHUNK:
                    np.add(table, np.bincount(fused, minlength=len(table)), out=table)
                else:
                    np.add.at(table, fused, np.int32(1))
    return tables.reshape(len(columns), n_keys + 1, size)[:, :n_keys]


def route(
    cells: NDArray[np.int32],
    codes: NDArray[Any],
    feature_of: NDArray[np.int32],
    offset_of: NDArray[np.int64],
    child_of: NDArray[np.int32],
    children: NDArray[np.int32],
    *,
    fast: bool,
) -> None:
    """Write each record's child cell; records outside all cells (-1) stay outside.

    Record i of cell c goes to ``child_of[offset_of[c] + codes[feature_of[c], i]]``.
    """
    if fast:
        _loops().route(cells, codes, feature_of, offset_of, child_of, children)
        return
    inside = np.flatnonzero(cells >= 0)
    cell = cells[inside]
    code = codes[feature_of[cell], inside].astype(np.int64)
    children.fill(-1)
    children[inside] = child_of[offset_of[cell] + code]


def bin_numbers(
    numbers: NDArray[Any],
    cuts: NDArray[np.float64],
    low: float,
    high: float,
    out: NDArray[Any],
    *,
    fast: bool,
) -> None:
    """Write each number's bin: how many cuts are not above it; NaN gets ``len(cuts) + 1``.

    A guess by equal width comes first, which is several times faster than a search; what it gets
    wrong (all of unequal bins, perhaps) is searched for.
    """
    # NaN at both ends leaves the outer bins open: no comparison with it is true.
    edges = np.concatenate([[np.nan], cuts, [np.nan]])
    per_width = (len(cuts) + 1) / (high - low)
    if fast:
        if numbers.dtype not in (np.float64, np.float32):
            numbers = numbers.astype(np.float64)
        _loops().bin_numbers(numbers, edges, low, per_width, out)
        return
    values = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        places = (values - low) * per_width
    bins = np.fmin(np.fmax(places, 0.0), len(cuts)).astype(np.intp)
    wrong = np.flatnonzero((values < edges[bins]) | (values >= edges[bins + 1]))
    bins[wrong] = np.searchsorted(cuts, values[wrong], side="right")
    bins[np.isnan(values)] = len(cuts) + 1
    out[:] = bins


def _loops() -> ModuleType:
    """Import numba; each loop is compiled, or found on disk, at its first call."""
    from privet.tables import _loops as module

    return module
