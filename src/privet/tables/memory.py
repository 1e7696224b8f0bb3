"""The in-memory engine: encoded columns and exact counts. Everything here is inside the wall.

Columns are encoded once, to one or two bytes per value, one contiguous row of codes per feature.
Each question to all cells of a level is one pass over the codes; features are counted in parallel
threads. Nothing of this module leaves :mod:`privet.tables`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.criteria import MAX_ROWS
from privet.errors import DataError
from privet.frames import Columns, as_codes, as_series
from privet.privacy import Exact
from privet.schema import Numeric, Schema
from privet.tables import _kernels
from privet.tables.splits import Split

#: Most counts held at once for one feature (32-bit integers); more cells are asked in batches.
MAX_COUNTS = 2**22
_BLOCK = 16_384


@dataclass(frozen=True)
class Assignment:
    """Which cell each record lies in; -1 is none of them."""

    cells: NDArray[np.int32]
    size: int


class MemoryEngine:
    """Exact answers about disjoint cells of a table in memory."""

    def __init__(self, table: Any, target: Any, schema: Schema) -> None:
        if schema.classes is None:
            raise DataError(
                "this learner needs classes: give the schema classes=[...] instead of bounds"
            )
        columns = Columns.of(table, schema)
        labels = as_series(target, schema.target)
        if len(labels) != len(columns):
            raise DataError("the features and the target have different numbers of rows")
        if len(columns) > MAX_ROWS:
            raise DataError(f"at most {MAX_ROWS} rows are supported")
        self._sizes = schema.sizes
        self._n_classes = len(schema.classes)
        self._fast = _kernels.compiled(len(columns) * len(schema.names))
        self._codes = encode(columns, schema, fast=self._fast)
        found = as_codes(labels, schema.classes, schema.target)
        self._known = found < self._n_classes
        narrow = np.uint8 if self._n_classes <= 256 else np.uint16
        self._labels = np.where(self._known, found, 0).astype(narrow)

    def root(self) -> Assignment:
        """Return the whole table as one cell; records without a known class are left out."""
        return Assignment(np.where(self._known, 0, -1).astype(np.int32), 1)

    def take(self, assignment: Assignment, chosen: NDArray[np.intp]) -> Assignment:
        """Return some of the cells, renumbered in the order given."""
        number = np.full(assignment.size + 1, -1, dtype=np.int32)  # -1 finds the last place
        number[chosen] = np.arange(len(chosen), dtype=np.int32)
        number[-1] = -1
        return Assignment(number[assignment.cells], len(chosen))

    def split(self, assignment: Assignment, splits: Sequence[Split]) -> Assignment:
        """Return the children of all cells, in order."""
        first = np.cumsum([0, *(split.n_children for split in splits)])
        child_of = np.concatenate(
            [np.asarray(split.children) + start for split, start in zip(splits, first, strict=False)]
        ).astype(np.int32)
        offset_of = np.cumsum([0, *(len(split.children) for split in splits)])[:-1]
        feature_of = np.array([split.feature for split in splits], dtype=np.int32)
        cells = np.empty_like(assignment.cells)

        def route(part: slice) -> None:
            cells[part] = _kernels.route(
                assignment.cells[part],
                self._codes[:, part],
                feature_of,
                offset_of.astype(np.int64),
                child_of,
                fast=self._fast,
            )

        _in_threads(route, _parts(len(cells), _workers()))
        return Assignment(cells, int(first[-1]))

    def class_counts(self, assignment: Assignment) -> Exact:
        """Return counts of shape (cells, classes)."""
        keys = self._keys(assignment)
        width = assignment.size * self._n_classes
        counts = np.zeros(width + 1, dtype=np.int64)
        for part in _parts(len(keys), max(1, len(keys) // 2**20)):
            counts += np.bincount(keys[part], minlength=width + 1)
        return Exact(counts[:width].reshape(assignment.size, self._n_classes))

    def histograms(
        self, assignment: Assignment, features: Sequence[int]
    ) -> Iterator[tuple[slice, dict[int, NDArray[np.int32]]]]:
        """Yield batches of cells with counts of shape (cells, codes, classes) for each feature."""
        width = max(self._sizes[j] for j in features) * self._n_classes
        batch = max(1, MAX_COUNTS // width)
        if assignment.size <= batch:
            yield slice(0, assignment.size), self._count(assignment, features, None)
            return
        order = np.argsort(assignment.cells, kind="stable")
        starts = np.searchsorted(
            assignment.cells, np.arange(assignment.size + 1), sorter=order
        )
        for start in range(0, assignment.size, batch):
            stop = min(start + batch, assignment.size)
            rows = np.sort(order[starts[start] : starts[stop]])
            part = Assignment(assignment.cells[rows] - np.int32(start), stop - start)
            yield slice(start, stop), self._count(part, features, rows)

    def _count(
        self, assignment: Assignment, features: Sequence[int], rows: NDArray[np.intp] | None
    ) -> dict[int, NDArray[np.int32]]:
        keys = self._keys(assignment, rows)
        n_keys = assignment.size * self._n_classes

        def count(feature: int) -> NDArray[np.int32]:
            codes = self._codes[feature] if rows is None else self._codes[feature][rows]
            size = self._sizes[feature]
            table = _kernels.count(codes, keys, n_keys, size, fast=self._fast)
            return table.reshape(assignment.size, self._n_classes, size).transpose(0, 2, 1)

        return dict(zip(features, _in_threads(count, features), strict=True))

    def _keys(
        self, assignment: Assignment, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return cell * classes + class; what lies in no cell gets the number after the last."""
        if assignment.size * self._n_classes >= 2**31 - 1:
            raise DataError("too many cells times classes; use a smaller depth or fewer bins")
        labels = self._labels if rows is None else self._labels[rows]
        keys = assignment.cells * np.int32(self._n_classes)
        keys += labels
        keys[assignment.cells < 0] = assignment.size * self._n_classes
        return keys


def encode(columns: Columns, schema: Schema, *, fast: bool) -> NDArray[Any]:
    """Return the codes of all features, one row per feature."""
    narrow = np.uint8 if max(schema.sizes) <= 256 else np.uint16
    codes = np.empty((len(schema.names), len(columns)), dtype=narrow)
    matrix = columns.matrix
    numeric = [
        (j, feature)
        for j, feature in enumerate(schema.features.values())
        if isinstance(feature, Numeric)
    ]
    if matrix is not None:
        # Arrays come row by row: turn blocks that fit in the cache, then bin column by column.
        def encode_block(part: slice) -> None:
            for start in range(part.start, part.stop, _BLOCK):
                block = slice(start, min(start + _BLOCK, part.stop))
                turned = np.ascontiguousarray(matrix[block].T)
                for j, feature in numeric:
                    _kernels.bin_numbers(
                        turned[j], feature.cuts, feature.low, feature.high, codes[j, block],
                        fast=fast,
                    )

        _in_threads(encode_block, _parts(len(columns), _workers()))
    else:

        def encode_column(item: tuple[int, Numeric]) -> None:
            j, feature = item
            _kernels.bin_numbers(
                columns.numbers(schema.names[j]), feature.cuts, feature.low, feature.high,
                codes[j], fast=fast,
            )

        _in_threads(encode_column, numeric)
    for j, (name, feature) in enumerate(schema.features.items()):
        if not isinstance(feature, Numeric):
            codes[j] = columns.codes(name, feature.values)
    return codes


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parts(rows: int, count: int) -> list[slice]:
    bounds = [rows * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]


def _in_threads(work: Any, items: Sequence[Any]) -> list[Any]:
    if len(items) < 2 or _workers() < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(work, items))
