"""Counting and binning loops: numba for large tables, numpy for small ones.

Both paths give the same integers. numba compiles on first use (seconds, then cached on disk), which
a small table should not wait for, so :func:`compiled` decides by size. The loops release the
interpreter lock; callers run them in threads, by groups of features or by blocks of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines.axes import Axes

#: Tables with fewer values than this never trigger compilation.
COMPILE_FROM = 4_000_000
#: Nor do blocks with fewer values than this, where they are passed over a hundred times.
COMPILE_PASSES_FROM = 2**18
_CHUNK = 4_096


def compiled(values: int) -> bool:
    """Tell whether a table of this many values is worth compiled loops."""
    return values >= COMPILE_FROM


def compiled_passes(values: int) -> bool:
    """Tell whether a block of this many values is worth compiled loops over many passes."""
    return values >= COMPILE_PASSES_FROM


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
    parts: NDArray[Any] | None,
    tables: NDArray[np.int32],
    *,
    fast: bool,
) -> None:
    """Count records by (key, code) for several columns of codes; each as often as it weighs.

    Adds to tables of shape (columns, keys, codes).
    """
    size = tables.shape[2]
    flat = tables.reshape(len(columns), -1)
    if fast and parts is not None:
        for codes, table in zip(columns, flat, strict=True):
            _loops().weigh_one(codes, keys, parts, size, table)
    elif fast and len(columns) == 4:
        _loops().count_four(*columns, keys, size, *flat)
    elif fast:
        for codes, table in zip(columns, flat, strict=True):
            _loops().count_one(codes, keys, size, table)
    else:
        for start in range(0, len(keys), _CHUNK):
            part = slice(start, start + _CHUNK)
            bases = keys[part].astype(np.intp) * size
            for codes, table in zip(columns, flat, strict=True):
                fused = bases + codes[part]
                weights = None if parts is None else parts[part]
                if len(table) <= 4 * _CHUNK:
                    _add(table, fused, weights)
                else:
                    np.add.at(table, fused, np.int32(1) if weights is None else weights)


def _add(table: NDArray[Any], keys: NDArray[Any], weights: NDArray[Any] | None) -> None:
    """Add records to a table by their keys; each as often as it weighs."""
    found = np.bincount(keys, weights, len(table))
    np.add(table, found.astype(np.int64, copy=False), out=table)  # exact below 2^53


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


@dataclass(frozen=True, eq=False)
class CodeTables:
    """One number for every code of some features; the numbers of all features follow each other.

    Attributes
    ----------
    features : array
    first : array
        Where the numbers of every feature begin, and after the last one how many there are.
    values : array
    """

    features: NDArray[np.int64]
    first: NDArray[np.int64]
    values: NDArray[Any]

    @classmethod
    def of(cls, tables: Sequence[tuple[int, NDArray[Any]]], kind: type[Any]) -> CodeTables:
        """Join the tables of features, each given with its position."""
        features = np.array([feature for feature, _ in tables], dtype=np.int64)
        first = np.cumsum([0, *(len(table) for _, table in tables)], dtype=np.int64)
        values = [np.zeros(0, dtype=kind), *(table for _, table in tables)]
        return cls(features, first, np.concatenate(values))

    def sums(self, codes: NDArray[Any], rows: slice, *, fast: bool) -> NDArray[Any]:
        """Return for each of some records the sum over features, always in the same order."""
        found = np.zeros(rows.stop - rows.start, dtype=self.values.dtype)
        if fast:
            rule = self.features, self.first, self.values
            _loops().sum_at_codes(codes, rows.start, *rule, found)
            return found
        for feature, start, stop in zip(self.features, self.first, self.first[1:], strict=False):
            found += np.take(self.values[start:stop], codes[feature, rows])
        return found

    def add(
        self, codes: NDArray[Any], rows: slice, weights: NDArray[np.int64], *, fast: bool
    ) -> None:
        """Add the weights of some records at their codes. ``values`` are of 64 bits."""
        if fast:
            rule = self.features, self.first, self.values
            _loops().add_at_codes(codes, rows.start, weights, *rule)
            return
        for feature, start, stop in zip(self.features, self.first, self.first[1:], strict=False):
            add_by_number(codes[feature, rows], weights, self.values[start:stop])


def code_counts(codes: NDArray[Any], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return how many records have each code, feature after feature."""
    mine = zip(codes, sizes, strict=True)
    return np.concatenate([np.bincount(column, minlength=size) for column, size in mine])


def add_by_number(
    numbers: NDArray[Any], weights: NDArray[np.int64], totals: NDArray[np.int64]
) -> None:
    """Add weights, of which sums are below 2^53, to the totals of their numbers."""
    found = np.bincount(numbers, weights, len(totals))  # in doubles, exact so far
    totals += np.rint(found).astype(np.int64)


def sort_by_cell(
    cells: NDArray[np.int32], size: int, *, fast: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows sorted by cell, and where each cell begins."""
    if not fast:
        rows = np.argsort(cells, kind="stable").astype(np.int32)
        return rows, np.searchsorted(cells, np.arange(size + 1), sorter=rows)
    first, rows = np.zeros(size + 2, dtype=np.int64), np.empty(len(cells), dtype=np.int32)
    _loops().sort_by_cell(cells, first, rows)
    return rows, first[:-1]


def count_places(
    rows: NDArray[np.int32],
    first: NDArray[np.int64],
    codes: NDArray[Any],
    parts: NDArray[Any] | None,
    axes: Axes,
    width: int,
    table: NDArray[np.int32],
    *,
    fast: bool,
) -> None:
    """Add the records of cells to ``table[cell * width + place on the cell's axis]``."""
    if fast and parts is None:
        rule = axes.features, axes.starts, axes.orders
        _loops().count_places(rows, first, codes, *rule, width, table)
        return
    cells, mine = _of_cells(rows, first)
    keys = cells * width + axes.places(cells, codes, mine)
    _add(table, keys, None if parts is None else parts[mine])


def count_sides(
    rows: NDArray[np.int32],
    first: NDArray[np.int64],
    codes: NDArray[Any],
    labels: NDArray[Any],
    parts: NDArray[Any] | None,
    axes: Axes,
    middle: NDArray[np.int32],
    kinds: int,
    table: NDArray[np.int64],
    *,
    fast: bool,
) -> None:
    """Add the records of cells to ``table[(cell * 3 + side) * kinds + label]``.

    The sides are below, at and above the middle of the cell's axis.
    """
    if fast and parts is None:
        rule = axes.features, axes.starts, axes.orders
        _loops().count_sides(rows, first, codes, labels, *rule, middle, kinds, table)
        return
    cells, mine = _of_cells(rows, first)
    side = 1 + np.sign(axes.places(cells, codes, mine) - middle[cells])
    keys = (cells * 3 + side) * kinds + labels[mine]
    _add(table, keys, None if parts is None else parts[mine])


def _of_cells(
    rows: NDArray[np.int32], first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the cells and the rows of all records that lie in cells."""
    cells = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return cells, rows[first[0] : first[-1]]


def look_up(codes: NDArray[Any], table: NDArray[Any], out: NDArray[Any], *, fast: bool) -> None:
    """Write ``table[code]`` for each code."""
    if fast:
        _loops().look_up(codes, table, out)
    else:
        out[:] = table[codes]


class GridSearch:
    """Finds numbers on a grid of points: how many of them are not above a number.

    A binary search among 65,000 points misses the cache at every step. Here a number's exponent and
    the first bits of its mantissa, relative to where points are dense, say between which few points
    it lies: any rule will do for that, as long as larger numbers never get a smaller bucket.

    Parameters
    ----------
    grid : array
        Points in rising order.
    low, high : float
        The bounds of the numbers. Points are dense towards ``low``, or towards zero from both
        sides if that lies within.
    """

    def __init__(self, grid: NDArray[np.float64], low: float, high: float) -> None:
        self.grid = grid
        self._padded = np.append(grid, np.inf)  # so that there is a point after the last
        within = low < 0 < high
        self._origin = 0.0 if within else low
        with np.errstate(over="ignore"):
            above = 1 / np.float64(high if within else high - low)
            below = 1 / np.float64(-low) if within else above
        # If the width is too small for an inverse, any factor will do but zero (0 * inf is NaN).
        self._above, self._below = (float(x) if x < np.inf else 1.0 for x in (above, below))
        self._within = within
        self._start: NDArray[np.uint16] | None = None

    def find(self, numbers: NDArray[Any], out: NDArray[Any], *, fast: bool) -> None:
        """Write for each number how many points are not above it; NaN gets one more than all."""
        if not fast:
            values = np.asarray(numbers, dtype=np.float64)
            found = np.searchsorted(self.grid, values, side="right")
            out[:] = np.where(np.isnan(values), len(self.grid) + 1, found)
            return
        if numbers.dtype not in (np.float64, np.float32):
            numbers = numbers.astype(np.float64)
        if self._start is None:
            self._start = self._starts()
        rule = self._origin, self._above, self._below
        numbers = numbers.view()
        numbers.flags.writeable = False  # as most come: no second loop is compiled for others
        _loops().find_on_grid(numbers, self._padded, *rule, self._start, out)

    def _starts(self) -> NDArray[np.uint16]:
        """Return how many points lie in the buckets before each one, and after the last: all."""
        loops = _loops()
        buckets = np.empty(len(self.grid), dtype=np.int64)
        below = loops.SIDE if self._within else 0
        loops.buckets(self.grid, self._origin, self._above, self._below, buckets, below)
        counts = np.bincount(buckets, minlength=below + loops.SIDE)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint16)


def _loops() -> ModuleType:
    """Import numba; each loop is compiled, or found on disk, at its first call."""
    from privet.engines import _loops as module

    return module
