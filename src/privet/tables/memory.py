"""The in-memory engine: encoded columns and exact counts. Everything here is inside the wall.

Columns are encoded once per view, to one or two bytes per value, one contiguous row of codes per
feature. Each question to all cells of a level is one pass over the codes; features are counted in
parallel threads. Nothing of this module leaves :mod:`privet.tables`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.criteria import MAX_ROWS
from privet.errors import DataError
from privet.privacy import Exact, Noise, grid_counts
from privet.reading import Columns, check_types, column_of
from privet.schema import Numeric, Schema
from privet.tables import _kernels
from privet.tables.halves import Axis
from privet.tables.losses import HEAVIEST, loss_of
from privet.tables.splits import Sketch, Split
from privet.tables.views import View
from privet.tables.whole_trees import Menu, draw_tree

#: Most counts held at once (32-bit integers); more cells are asked in batches.
MAX_COUNTS = 2**25
_BLOCK = 16_384
#: Cells whose ways to be halved are looked at together: a thousand or so each.
_CELLS = 1_024

Rows = slice | NDArray[np.intp]
#: Features that are counted together, and the number of codes that all of them fit in.
Group = tuple[list[int], int]
#: Where there are records: cells, places and counts.
Taken = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Assignment:
    """Which cell each record lies in (-1: none of them), and by which codes cells are split."""

    cells: NDArray[np.int32]
    size: int
    view: View


class MemoryEngine:
    """Exact answers about disjoint cells of a table in memory."""

    def __init__(self, table: Any, target: Any, schema: Schema) -> None:
        columns = Columns.of(table, schema)
        targets = columns.target(schema) if target is None else column_of(target, schema.target)
        if len(targets) != len(columns):
            raise DataError("the features and the target have different numbers of rows")
        if len(columns) > MAX_ROWS:
            raise DataError(f"at most {MAX_ROWS} rows are supported")
        check_types(columns, targets, schema)
        self._columns = columns
        self._encoded: tuple[View, NDArray[Any]] | None = None
        self._fast = _kernels.compiled(len(columns) * len(schema.names))
        self._loss = loss_of(schema)
        self._numbers: NDArray[np.float64] | None = None
        # An unknown class has the number after the last one: see `root`. A number is of one class,
        # as far as counting goes.
        self._n_classes = 1 if schema.classes is None else len(schema.classes)
        if schema.classes is None:
            assert schema.bounds is not None
            low, high = schema.bounds
            with np.errstate(invalid="ignore"):  # of a NaN that signals
                self._numbers = (np.clip(targets.numbers(), low, high) - low) / (high - low)
            found = np.isnan(self._numbers)
        else:
            found = targets.codes(schema.classes)
        self._labels = found.astype(np.uint8 if self._n_classes < 256 else np.uint16)

    def root(self, view: View) -> Assignment:
        """Return the whole table as one cell; records without a known target are left out."""
        unknown = self._labels == self._n_classes
        return Assignment(-unknown.astype(np.int32), 1, view)

    def parts(self, view: View, count: int, key: int) -> Assignment:
        """Return the table as so many cells; a keyed hash of each record says which is its own.

        Not a library's hash: nothing hangs on its quality but the balance of the parts, and a
        function of one record at a time is all that the proof needs.
        """
        state = np.full(len(self._labels), np.uint64(key))
        for name, feature in view.schema.features.items():
            if isinstance(feature, Numeric):
                with np.errstate(invalid="ignore"):  # of a NaN that signals
                    values = self._columns.numbers(name) + 0.0
            else:
                values = self._columns.codes(name, feature.values).astype(np.float64)
            state = _mix(state ^ np.where(np.isnan(values), np.nan, values).view(np.uint64))
        target = self._labels if self._numbers is None else np.nan_to_num(self._numbers)
        state = _mix(state ^ (target.astype(np.float64) + 0.0).view(np.uint64))
        cells = ((state >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.int32)
        return Assignment(np.where(self._labels == self._n_classes, -1, cells), count, view)

    def codes(self, view: View) -> NDArray[Any]:
        """Return the table as a view sees it, one row of codes per feature; the last is kept."""
        if self._encoded is None or self._encoded[0] != view:
            self._encoded = None  # frees the old codes before the new ones are made
            self._encoded = (view, encode(self._columns, view, fast=self._fast))
        return self._encoded[1]

    def grid_counts(self, name: str, grid: NDArray[np.float64]) -> Exact:
        """Return how many records lie between each two points of a grid (and beyond its ends)."""
        numbers = self._columns.numbers(name)
        known = (self._labels != self._n_classes) & ~np.isnan(numbers)
        return grid_counts(numbers[known], grid)

    def draw_trees(
        self,
        assignment: Assignment,
        upper: Sequence[Sequence[int]],
        *,
        depth: int,
        rates: Sequence[float],
        merge: bool,
        noise: Noise,
        scores: NDArray[np.float64] | None = None,
        reach: float = 0.0,
    ) -> list[Sketch]:
        """Draw one whole tree for every cell; with scores, records weigh by how hard they pull."""
        labels, n_labels = self._labels, self._n_classes
        weights = np.ones(len(labels), dtype=np.uint8)
        heaviest = 1
        if scores is not None:
            labels, n_labels, heaviest = np.zeros_like(labels), self._loss.labels, HEAVIEST
            for part, targets in self._blocks():
                labels[part], weights[part] = self._loss.pulls(targets, scores[part], reach)
        order = np.argsort(assignment.cells, kind="stable")
        bounds = np.searchsorted(assignment.cells, np.arange(assignment.size + 1), sorter=order)
        numeric = tuple(cuts is not None for cuts in assignment.view.cuts)
        codes = self.codes(assignment.view)
        drawn = []
        for cell in range(assignment.size):
            rows: Rows = slice(None)
            if bounds[cell + 1] - bounds[cell] < len(labels):
                rows = np.sort(order[bounds[cell] : bounds[cell + 1]])
            sampler = partial(
                draw_tree,
                codes[:, rows],
                labels[rows],
                weights[rows],
                Menu(numeric, assignment.view.sizes, tuple(upper[cell])),
                classes=n_labels,
                depth=depth,
                rate=rates[cell] / heaviest,
                merge=merge,
                workers=_workers(),
            )
            drawn.append(noise.draw(sampler))
        return drawn

    def start_scores(self, start: Sequence[float]) -> NDArray[np.float64]:
        """Return the same scores for every record."""
        return np.tile(np.array(start, dtype=np.float64), (len(self._labels), 1))

    def add_scores(
        self, scores: NDArray[np.float64], assignment: Assignment, values: NDArray[np.float64]
    ) -> None:
        """Add to the scores of every record what its cell has; records in no cell stay."""
        more = np.concatenate([values, np.zeros((1, values.shape[1]))])  # -1 finds the last row
        for start in range(0, len(scores), _BLOCK):
            block = slice(start, start + _BLOCK)
            scores[block] += more[assignment.cells[block]]

    def moments(
        self, assignment: Assignment, scores: NDArray[np.float64], reach: float, *, pure: bool
    ) -> Exact:
        """Return the sums of the loss's moments, of shape (cells, moments)."""
        sums: Any = 0
        for part, targets in self._blocks():
            found = self._loss.moments(targets, scores[part], reach, pure=pure)
            cells = assignment.cells[part] + 1
            # Sums of whole numbers below 2^53 are exact in doubles.
            sums = sums + np.stack(
                [np.bincount(cells, column, assignment.size + 1)[1:] for column in found.T], axis=1
            )
        return Exact(np.rint(sums).astype(np.int64))

    def _blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the targets by blocks, at least one; unknown ones (in no cell) are harmless."""
        for start in range(0, max(len(self._labels), 1), _BLOCK):
            part = slice(start, start + _BLOCK)
            if self._numbers is None:
                labels: Any = self._labels[part]
                yield part, np.where(labels < self._n_classes, labels, 0)
            else:
                yield part, np.nan_to_num(self._numbers[part])

    def take(self, assignment: Assignment, chosen: NDArray[np.intp]) -> Assignment:
        """Return some of the cells, renumbered in the order given."""
        number = np.full(assignment.size + 1, -1, dtype=np.int32)  # -1 finds the last place
        number[chosen] = np.arange(len(chosen), dtype=np.int32)
        number[-1] = -1
        return replace(assignment, cells=number[assignment.cells], size=len(chosen))

    def split(self, assignment: Assignment, splits: Sequence[Split]) -> Assignment:
        """Return the children of all cells, in order."""
        if not splits:
            return assignment
        first = np.cumsum([0, *(split.n_children for split in splits)])
        child_of = np.concatenate(
            [start + split.child_of for start, split in zip(first.tolist(), splits, strict=False)]
        )
        offset_of = np.cumsum([0, *(len(split.child_of) for split in splits)])[:-1]
        feature_of = np.array([split.feature for split in splits], dtype=np.int32)
        cells = np.empty_like(assignment.cells)
        codes = self.codes(assignment.view)

        def route(part: slice) -> None:
            _kernels.route(
                assignment.cells[part],
                codes[:, part],
                feature_of,
                offset_of,
                child_of,
                cells[part],
                fast=self._fast,
            )

        _in_threads(route, _parts(len(cells), _workers()), fast=self._fast)
        return replace(assignment, cells=cells, size=int(first[-1]))

    def class_counts(self, assignment: Assignment) -> Exact:
        """Return counts of shape (cells, classes)."""
        return self._label_counts(assignment, self._labels, self._n_classes)

    def target_counts(self, assignment: Assignment, steps: int) -> Exact:
        """Return how many records of each cell have each of ``steps + 1`` target values."""
        return self._label_counts(assignment, self._levels(steps), steps + 1)

    def _label_counts(self, assignment: Assignment, labels: NDArray[Any], kinds: int) -> Exact:
        width = _n_keys(assignment.size, kinds)
        counts = np.zeros(width + 1, dtype=np.int64)
        for part in _parts(len(labels), 1 + len(labels) // 2**20):
            keys = self._keys(assignment.cells[part], assignment.size, labels[part], kinds)
            counts += np.bincount(keys, minlength=width + 1)
        return Exact(counts[:width].reshape(assignment.size, kinds))

    def _levels(self, steps: int) -> NDArray[Any]:
        """Return the targets on a grid of whole numbers from 0 to ``steps``."""
        assert self._numbers is not None
        return np.rint(np.nan_to_num(self._numbers) * steps).astype(np.uint16)

    def halves(
        self, assignment: Assignment, turns: Sequence[Sequence[Axis]], steps: int | None
    ) -> Iterator[NDArray[np.int64]]:
        """Yield counts of shape (cells, 3, classes): below, at and above the middle of an axis.

        One such array for every turn, in which each cell has an axis. With steps, target values on
        that grid take the place of classes.
        """
        rows = np.flatnonzero(assignment.cells >= 0)
        cells = assignment.cells[rows]
        width = max(assignment.view.sizes)
        wide = np.int32 if assignment.size * width < 2**31 else np.int64
        bases: NDArray[Any] = cells.astype(wide) * width
        sizes = np.bincount(cells, minlength=assignment.size)
        middle = np.cumsum(sizes) - sizes + (np.maximum(sizes, 1) - 1) // 2
        middle = np.minimum(middle, max(len(rows) - 1, 0))
        labels = self._labels[rows] if steps is None else self._levels(steps)[rows]
        kinds = self._n_classes if steps is None else steps + 1
        for axes in turns:
            places = self._places(assignment.view, axes, rows, cells)
            ordered = np.sort(bases + places)
            found = ordered[middle] % width if len(ordered) else middle
            side = 1 + np.sign(places - found.astype(np.int32)[cells])
            keys = (cells * np.int64(3) + side) * kinds + labels
            counts = np.bincount(keys, minlength=assignment.size * 3 * kinds)
            yield counts.reshape(assignment.size, 3, kinds)

    def places_taken(
        self, assignment: Assignment, axes: Sequence[Axis]
    ) -> Iterator[tuple[Sequence[Axis], Taken]]:
        """Yield by batches of cells where on their axes records are: cells, places and counts.

        Cells are numbered within their batch, in order, and so are the places of a cell.
        """
        rows = np.flatnonzero(assignment.cells >= 0)
        cells = assignment.cells[rows].astype(np.int64)
        width = max(assignment.view.sizes)
        keys = cells * width + self._places(assignment.view, axes, rows, cells)
        taken, counts = np.unique(keys, return_counts=True)
        for start in range(0, assignment.size, _CELLS):
            some = axes[start : start + _CELLS]
            first, stop = np.searchsorted(taken, np.array([start, start + len(some)]) * width)
            found = taken[first:stop]
            yield some, (found // width - start, found % width, counts[first:stop])

    def _places(
        self,
        view: View,
        axes: Sequence[Axis],
        rows: NDArray[np.intp],
        cells: NDArray[Any],
    ) -> NDArray[np.int32]:
        """Return where records lie on the axes of their cells."""
        codes = self.codes(view)
        first = np.array([axis.feature * codes.shape[1] for axis in axes], dtype=np.intp)
        places = codes.ravel()[first[cells] + rows].astype(np.int32)
        orders = [axis.places for axis in axes if axis.places is not None]
        if orders:
            start = np.full(len(axes), -1)
            ordered = [cell for cell, axis in enumerate(axes) if axis.places is not None]
            start[ordered] = np.cumsum([0, *map(len, orders[:-1])])
            mine = np.flatnonzero(start[cells] >= 0)
            places[mine] = np.concatenate(orders)[start[cells[mine]] + places[mine]]
        return np.asarray(places)

    def histograms(
        self, assignment: Assignment, features: Sequence[int], steps: int | None = None
    ) -> Iterator[tuple[slice, dict[int, NDArray[np.int32]]]]:
        """Yield batches of cells with counts of shape (cells, codes, classes) for each feature.

        With steps, target values on that grid take the place of classes.
        """
        labels, kinds = self._labels, self._n_classes
        if steps is not None:
            labels, kinds = self._levels(steps), steps + 1
        groups = _groups(features, assignment.view.sizes)
        width = sum(len(group) * size for group, size in groups) * kinds
        batch = max(1, MAX_COUNTS // width)
        for start in range(0, assignment.size, batch):
            stop = min(start + batch, assignment.size)
            cells = assignment.cells
            rows: Rows = slice(None)
            if stop - start < assignment.size:
                rows = np.flatnonzero((cells >= start) & (cells < stop))
                cells = cells[rows] - np.int32(start)
            keys = self._keys(cells, stop - start, labels[rows], kinds)
            found = self._count(assignment.view, keys, (stop - start, kinds), rows, groups)
            yield slice(start, stop), found

    def _count(
        self,
        view: View,
        keys: NDArray[np.int32],
        shape: tuple[int, int],
        rows: Rows,
        groups: list[Group],
    ) -> dict[int, NDArray[np.int32]]:
        all_codes = self.codes(view)

        def count(group: Group) -> dict[int, NDArray[np.int32]]:
            features, codes = group
            columns = [all_codes[j][rows] for j in features]
            tables = _kernels.count(columns, keys, shape[0] * shape[1], codes, fast=self._fast)
            tables = tables.reshape(len(features), *shape, codes)
            return {
                j: table[:, :, : view.sizes[j]].transpose(0, 2, 1)
                for j, table in zip(features, tables, strict=True)
            }

        counted = _in_threads(count, groups, fast=self._fast)
        return {j: table for tables in counted for j, table in tables.items()}

    def _keys(
        self, cells: NDArray[np.int32], size: int, labels: NDArray[Any], kinds: int
    ) -> NDArray[np.int32]:
        """Return cell * kinds + label; what lies in no cell gets the number after the last."""
        outside = _n_keys(size, kinds)
        return _kernels.key(cells, labels, kinds, outside, fast=self._fast)


def _n_keys(size: int, kinds: int) -> int:
    if size * kinds >= 2**31 - 1:
        raise DataError("too many cells times classes; use a smaller depth or fewer bins")
    return size * kinds


def _groups(features: Sequence[int], sizes: Sequence[int]) -> list[Group]:
    """Return the features in groups of four with the largest size of each group.

    Four features of one size are counted several times faster than one by one; the order by
    size bounds what the common size wastes by four times the largest one.
    """
    order = sorted(features, key=lambda j: sizes[j])
    groups = [order[k : k + 4] for k in range(0, len(order), 4)]
    return [(group, sizes[group[-1]]) for group in groups]


def encode(columns: Columns, view: View, *, fast: bool) -> NDArray[Any]:
    """Return the codes of all features, one row per feature."""
    schema = view.schema
    narrow = np.uint8 if max(view.sizes) <= 256 else np.uint16
    codes = np.empty((len(schema.names), len(columns)), dtype=narrow)
    matrix = columns.matrix
    numeric = [
        (j, feature, np.array(view.cuts[j], dtype=np.float64))
        for j, feature in enumerate(schema.features.values())
        if isinstance(feature, Numeric)
    ]

    def encode_rows(part: slice) -> None:
        # An array mostly comes row by row: bin all columns of a block while it is in the cache.
        assert matrix is not None
        for start in range(part.start, part.stop, _BLOCK):
            block = slice(start, min(start + _BLOCK, part.stop))
            for j, feature, cuts in numeric:
                _kernels.bin_numbers(
                    matrix[block, j], cuts, feature.low, feature.high, codes[j, block], fast=fast
                )

    def encode_column(item: tuple[int, Numeric, NDArray[np.float64]]) -> None:
        j, feature, cuts = item
        numbers = columns.numbers(schema.names[j])
        _kernels.bin_numbers(numbers, cuts, feature.low, feature.high, codes[j], fast=fast)

    if matrix is not None:
        _in_threads(encode_rows, _parts(len(columns), _workers()), fast=fast)
    else:
        _in_threads(encode_column, numeric, fast=fast)
    for j, (name, feature) in enumerate(schema.features.items()):
        if not isinstance(feature, Numeric):
            codes[j] = columns.codes(name, feature.values)
    return codes


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of a 64-bit number over all of it (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ (state >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(33)))


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parts(rows: int, count: int) -> list[slice]:
    bounds = [rows * k // count for k in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def _in_threads(work: Any, items: Sequence[Any], *, fast: bool) -> list[Any]:
    """Work in threads if the loops are compiled; numpy's counting would keep the lock."""
    if not fast or len(items) < 2 or _workers() < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(work, items))
