"""One block of an encoded table, and what was worked out about its rows.

A block holds codes: for every number its place on the feature's public grid (two bytes), for every
category its place in the list (one byte, or two), and the target. Raw values are gone. What a
learner sees are *views*, whose codes are looked up from these, one byte each where that suffices.

All else that a block has was worked out from these and can be worked out again: the codes of the
last view, which cell each record is in, scores. It may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels
from privet.engines.bases import Basis, bounded_weights, calibration_moments
from privet.engines.lineage import Divide, Lineage, Parts, ScoreLineage, Take
from privet.engines.losses import loss_of
from privet.engines.views import View
from privet.schema import Schema

#: Rows whose numbers stay in a processor's cache.
_CHUNK = 16_384


class Allocator(Protocol):
    """Gives a block arrays for what it works out: in memory, or in a file that nobody else sees."""

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of this shape; its values are not set."""


class Block:
    """Some rows of a table.

    Parameters
    ----------
    schema : Schema
    codes : sequence of arrays, one per feature
        Places on the features' grids, or in their lists; the last code is for missing values.
    target : array
        Places in the list of classes (the number after the last: unknown), or numbers between 0
        and 1 (NaN: missing).
    fast : bool
        Whether the table is large enough for compiled loops.
    allocate : Allocator
    """

    def __init__(
        self,
        schema: Schema,
        codes: Sequence[NDArray[Any]],
        target: NDArray[Any],
        *,
        fast: bool,
        allocate: Allocator = np.empty,
    ) -> None:
        self.schema = schema
        self.fast = fast
        self._codes = codes
        self._target = target
        self._allocate = allocate
        self._loss = loss_of(schema)
        self._seen: tuple[View, NDArray[Any]] | None = None
        self._sorted: tuple[int, NDArray[np.int32], NDArray[np.int64]] | None = None
        self._cells: dict[int, NDArray[np.int32]] = {}
        self._scores: dict[int, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return len(self._target)

    @property
    def classes(self) -> int:
        """The number of classes; for a number as the target, one that holds all records."""
        return 1 if self.schema.classes is None else len(self.schema.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """The class of every record; unknown ones have the number after the last."""
        if self.schema.classes is None:
            return np.asarray(np.isnan(self._target), dtype=np.uint8)
        return self._target

    def levels(self, steps: int) -> NDArray[Any]:
        """Return the targets on a grid of whole numbers from 0 to ``steps``."""
        narrow = np.uint16 if steps < 2**16 else np.int32
        return np.asarray(np.rint(np.nan_to_num(self._target) * steps), dtype=narrow)

    def grid_codes(self, feature: int) -> NDArray[Any]:
        """Return the places of a number on its grid."""
        return self._codes[feature]

    def target_codes(self) -> NDArray[Any]:
        """Return the places of the target, a number, on the target's grid."""
        assert self.schema.bounds is not None
        low, high = self.schema.bounds
        points = (self.schema.target_grid - low) / (high - low)
        return np.searchsorted(points, self._target, side="right")

    def codes(self, view: View) -> NDArray[Any]:
        """Return the codes of a view, one row per feature; those of the last view are kept."""
        if self._seen is None or (self._seen[0] is not view and self._seen[0] != view):
            self._seen = None  # frees the old codes before the new ones are made
            narrow = np.uint8 if max(view.sizes) <= 2**8 else np.uint16
            found = self._allocate((len(self._codes), len(self)), narrow)
            for feature, mine in enumerate(self._codes):
                table = view.table(feature)
                if table is None:
                    found[feature] = mine
                else:
                    _kernels.look_up(mine, table, found[feature], fast=self.fast)
            self._seen = (view, found)
        return self._seen[1]

    def cells(self, lineage: Lineage) -> NDArray[np.int32]:
        """Return the cell of every record (-1: none of them), and remember it."""
        if lineage.number not in self._cells:
            self._cells[lineage.number] = self._follow(lineage)
        return self._cells[lineage.number]

    def by_cell(self, lineage: Lineage) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the rows sorted by cell, and where each cell begins; the last answer is kept."""
        if self._sorted is None or self._sorted[0] != lineage.number:
            self._sorted = None
            found = _kernels.sort_by_cell(self.cells(lineage), lineage.size, fast=self.fast)
            self._sorted = (lineage.number, *found)
        return self._sorted[1:]

    def _follow(self, lineage: Lineage) -> NDArray[np.int32]:
        steps: list[Lineage] = []  # from the last back to what is known
        known: Lineage | None = lineage
        while known is not None and known.number not in self._cells:
            steps.append(known)
            known = known.parent
        cells = None if known is None else self._cells[known.number]
        for step in reversed(steps):
            cells = self._go(step, cells)
        assert cells is not None
        return cells

    def _go(self, lineage: Lineage, before: NDArray[np.int32] | None) -> NDArray[np.int32]:
        """Return the cells of records after a step, from those before it."""
        found, step = self._allocate((len(self),), np.int32), lineage.step
        if before is None:
            known = self.labels < self.classes
            inside = self._part(step) if isinstance(step, Parts) else 0
            found[:] = np.where(known, inside, -1)
        elif isinstance(step, Take):
            np.take(step.numbers, before, out=found, mode="wrap")
        else:
            assert isinstance(step, Divide)
            _kernels.route(
                before,
                self.codes(lineage.view),
                step.features,
                step.offsets,
                step.child_of(),
                found,
                fast=self.fast,
            )
        return found

    def _part(self, step: Parts) -> NDArray[np.int64]:
        """Return the part of every record, by a keyed hash of its codes and its target.

        A hash of our own: privacy needs only that it is a function of one record at a time, and
        how good it is decides no more than how even the parts are.
        """
        state = np.full(len(self), np.uint64(step.key))
        for codes in self._codes:
            state = _mix(state ^ codes.astype(np.uint64))
        target = np.nan_to_num(self._target.astype(np.float64)) + 0.0
        state = _mix(state ^ target.view(np.uint64))
        return ((state >> np.uint64(32)) * np.uint64(step.count) >> np.uint64(32)).astype(np.int64)

    def scores(self, lineage: ScoreLineage) -> NDArray[np.float64]:
        """Return the scores of every record, and forget those that they were made from."""
        if lineage.number not in self._scores:
            self._scores[lineage.number] = self._scored(lineage)
        return self._scores[lineage.number]

    def _scored(self, lineage: ScoreLineage) -> NDArray[np.float64]:
        steps: list[ScoreLineage] = []
        found = None
        known: ScoreLineage | None = lineage
        while known is not None and found is None:
            found = self._scores.pop(known.number, None)
            if found is None:
                steps.append(known)
                known = known.parent
        if found is None:
            found = self._allocate((len(self), len(lineage.start)), np.float64)
            found[:] = lineage.start
        for step in reversed(steps):
            if step.cells is None or step.values is None:
                continue
            cells = self._cells.get(step.cells.number)
            if cells is None:
                cells = self._follow(step.cells)
            if isinstance(step.values, tuple):
                codes = self.codes(step.cells.view)
                for part in self._chunks():
                    more = _kernels.on_curves(codes[:, part], step.values, found.shape[1])
                    more[cells[part] < 0] = 0
                    found[part] += more
                continue
            # A last row of zeros: records outside all cells have number -1, which finds it.
            more = np.concatenate([step.values, np.zeros((1, found.shape[1]))])
            for part in self._chunks():
                found[part] += more[cells[part]]
        return found

    def pulls(self, scores: ScoreLineage, reach: float) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Return the label to which each record pulls, and how hard."""
        known = self.scores(scores)
        labels = np.zeros(len(self), dtype=np.uint8 if self._loss.labels < 2**8 else np.uint16)
        weights = np.empty(len(self), dtype=np.uint8)
        for part, targets in self._targets():
            labels[part], weights[part] = self._loss.pulls(targets, known[part], reach)
        return labels, weights

    def moments(
        self, scores: ScoreLineage, reach: float, *, pure: bool
    ) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield the moments of every record's loss, by chunks of rows, as whole numbers."""
        known = self.scores(scores)
        for part, targets in self._targets():
            yield part, self._loss.moments(targets, known[part], reach, pure=pure)

    def distances(self, scores: ScoreLineage) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield how far every record's target, a number, is from its score, by chunks of rows."""
        known = self.scores(scores)
        for part, targets in self._targets():
            yield part, np.abs(targets - known[part, 0])

    def slopes(
        self, cells: Lineage, scores: ScoreLineage, basis: Basis, largest: int, longest: int
    ) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield the bounded residuals of every record, by chunks of rows; outside cells zero."""
        known, inside, codes = self.scores(scores), self.cells(cells), self.codes(cells.view)
        of_features = [(feature, part.squares()) for feature, part in basis.features]
        of_cells = None if basis.of_cells is None else basis.of_cells.squares()
        for part, targets in self._targets():
            here = inside[part]
            squares = np.zeros(len(here), dtype=np.int64)
            for feature, table in of_features:
                squares += table[codes[feature, part]]
            if of_cells is not None:
                squares += of_cells[here]
            residuals = self._loss.residuals(targets, known[part])
            weights = bounded_weights(residuals, squares, largest, longest)
            weights[here < 0] = 0
            yield part, weights

    def calibration(
        self, cells: Lineage, scores: ScoreLineage, shift: float, factor: float
    ) -> NDArray[np.int64]:
        """Return the sums of the calibration moments of all records in cells."""
        known, inside = self.scores(scores), self.cells(cells)
        sums = np.zeros(5, dtype=np.int64)
        for part, targets in self._targets():
            apart = known[part, 0] - scores.start[0]
            found = calibration_moments(targets, apart, shift, factor)
            sums += found[inside[part] >= 0].sum(axis=0)
        return sums

    def _targets(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the targets by chunks, at least one; unknown ones, in no cell, get any value."""
        for part in self._chunks():
            targets = self._target[part]
            if self.schema.classes is None:
                yield part, np.nan_to_num(targets)
            else:
                yield part, np.where(targets < self.classes, targets, 0)

    def _chunks(self) -> Iterator[slice]:
        return (slice(k, k + _CHUNK) for k in range(0, max(len(self), 1), _CHUNK))

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop what was worked out for cells and scores that nobody has any more."""
        for number in numbers:
            self._cells.pop(number, None)
            self._scores.pop(number, None)
            if self._sorted is not None and self._sorted[0] == number:
                self._sorted = None


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of a 64-bit number over all of it (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ (state >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(33)))
