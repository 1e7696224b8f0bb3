"""Counting and binning loops: numba for large tables, numpy for small ones.

Both paths give the same integers. numba compiles on first use (seconds, then cached on disk), which
a small table should not wait for, so :func:`compiled` decides by size. The loops release the
interpreter lock; callers run them in threads, feature by feature or block by block.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Tables with fewer values than this never trigger compilation.
COMPILE_FROM = 4_000_000
_CHUNK = 32_768


def compiled(values: int) -> bool:
    """Tell whether a table of this many values is worth compiled loops."""
    return values >= COMPILE_FROM


def count(
    codes: NDArray[Any], keys: NDArray[np.int32], n_keys: int, size: int, *, fast: bool
) -> NDArray[np.int32]:
    """Count records by (key, code); keys of ``n_keys`` mean "not asked" and are dropped.

    Returns
    -------
    array of shape (n_keys, size)
    """
    if fast:
        table = np.zeros((2, (n_keys + 1) * size), dtype=np.int32)
        _loops().count(codes, keys, size, table[0], table[1])
        table[0] += table[1]
        return table[0].reshape(n_keys + 1, size)[:n_keys]
    total = np.zeros((n_keys + 1) * size, dtype=np.int32)
    for start in range(0, len(keys), _CHUNK):
        part = slice(start, start + _CHUNK)
        fused = keys[part].astype(np.intp) * size + codes[part]
        if len(total) <= 4 * _CHUNK:
            total += np.bincount(fused, minlength=len(total)).astype(np.int32)
        else:
            np.add.at(total, fused, np.int32(1))
    return total.reshape(n_keys + 1, size)[:n_keys]


def route(
    cells: NDArray[np.int32],
    codes: NDArray[Any],
    feature_of: NDArray[np.int32],
    offset_of: NDArray[np.int64],
    child_of: NDArray[np.int32],
    *,
    fast: bool,
) -> NDArray[np.int32]:
    """Return each record's child cell; records outside all cells (-1) stay outside.

    Record i of cell c goes to ``child_of[offset_of[c] + codes[feature_of[c], i]]``.
    """
    children = np.empty_like(cells)
    if fast:
        _loops().route(cells, codes, feature_of, offset_of, child_of, children)
        return children
    inside = np.flatnonzero(cells >= 0)
    cell = cells[inside]
    children.fill(-1)
    code = codes[feature_of[cell], inside].astype(np.int64)
    children[inside] = child_of[offset_of[cell] + code]
    return children


def bin_numbers(
    numbers: NDArray[Any],
    cuts: NDArray[np.float64],
    low: float,
    high: float,
    out: NDArray[Any],
    *,
    fast: bool,
) -> None:
    """Write each number's bin: how many cuts are not above it; NaN gets ``len(cuts) + 1``."""
    if fast:
        if numbers.dtype not in (np.float64, np.float32):
            numbers = numbers.astype(np.float64)
        _loops().bin_numbers(numbers, cuts, low, (len(cuts) + 1) / (high - low), out)
        return
    values = np.asarray(numbers, dtype=np.float64)
    bins = np.searchsorted(cuts, values, side="right")
    out[:] = np.where(np.isnan(values), len(cuts) + 1, bins)


@lru_cache(maxsize=1)
def _loops() -> SimpleNamespace:
    """Import numba and declare the loops; compilation happens at the first call of each."""
    from privet.tables import _loops as module

    return SimpleNamespace(count=module.count, route=module.route, bin_numbers=module.bin_numbers)
