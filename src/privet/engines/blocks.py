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

from privet.engines import _kernels, units
from privet.engines.bases import Basis, bounded_weights, calibration_moments
from privet.engines.hashing import mix
from privet.engines.lineage import (
    PLACES,
    Divide,
    Lineage,
    Parts,
    Portion,
    Root,
    ScoreLineage,
    Take,
)
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
    names : sequence of arrays
        Whose record each record is, word by word, if the schema has a unit
        (``privet.engines.units``).
    fast : bool
        Whether the table is large enough for compiled loops.
    number : int
        By which the engine knows the block.
    allocate : Allocator

    Attributes
    ----------
    parts : array or None
        What each record weighs; None: all weigh one, or nobody has told yet.
    passes_fast : bool
        Whether the block is large enough for compiled loops where it is passed over many times.
    """

    def __init__(
        self,
        schema: Schema,
        codes: Sequence[NDArray[Any]],
        target: NDArray[Any],
        names: Sequence[NDArray[np.uint64]] = (),
        *,
        fast: bool,
        number: int = 0,
        allocate: Allocator = np.empty,
    ) -> None:
        self.schema = schema
        self.fast = fast
        self.names = names
        self.number = number
        self.parts: NDArray[Any] | None = None
        self.passes_fast = fast or _kernels.compiled_passes(len(codes) * len(target))
        self._codes = codes
        self._target = target
        self._allocate = allocate
        self._loss = loss_of(schema)
        self._seen: tuple[View, NDArray[Any]] | None = None
        self._counted: NDArray[np.int64] | None = None
        self._sorted: tuple[int, NDArray[np.int32], NDArray[np.int64]] | None = None
        self._measured: tuple[int, Basis, Sequence[Any], NDArray[np.float64]] | None = None
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
            # Frees the old codes before the new ones are made.
            self._seen = self._counted = None
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

    def code_counts(self, view: View) -> NDArray[np.int64]:
        """Return how many of all records have each code; those of the last view are kept."""
        codes = self.codes(view)
        if self._counted is None:
            self._counted = _kernels.code_counts(codes, view.sizes)
        return self._counted

    def cells(self, lineage: Lineage) -> NDArray[np.int32]:
        """Return the cell of every record (-1: none of them), and remember it."""
        if lineage.number not in self._cells:
            self._cells[lineage.number] = self._follow(lineage)
        return self._cells[lineage.number]

    def by_cell(self, lineage: Lineage) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the rows sorted by cell, and where each cell begins; the last answer is kept."""
        if self._sorted is None or self._sorted[0] != lineage.number:
            self._sorted = None
            cells = self.cells(lineage)
            found = _kernels.sort_by_cell(cells, lineage.size, fast=self.passes_fast)
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
            assert isinstance(step, Root | Parts)
            known = self.known(step.portions)
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
                fast=self.passes_fast,
            )
        return found

    def known(self, portions: Sequence[Portion] = ()) -> NDArray[np.bool_]:
        """Tell which records count: they have a known target, and lie in all of some portions."""
        found = np.asarray(self.labels < self.classes)
        if self.parts is not None:
            found &= self.parts > 0
        for portion in portions:
            place = self._part(Parts(PLACES, portion.key))
            found &= (portion.start <= place) & (place < portion.stop)
        return found

    def _part(self, step: Parts) -> NDArray[np.int64]:
        """Return the part of every record, by a keyed hash of the record, or of its person."""
        state = self.record_hashes(step.key)
        if self.names:
            state = np.where(units.nobodys(self.names), state, units.hashed(self.names, step.key))
        return ((state >> np.uint64(32)) * np.uint64(step.count) >> np.uint64(32)).astype(np.int64)

    def record_hashes(self, key: int) -> NDArray[np.uint64]:
        """Return a keyed hash of every record's codes and target."""
        state = np.full(len(self), np.uint64(key))
        for codes in self._codes:
            state = mix(state ^ codes.astype(np.uint64))
        target = np.nan_to_num(self._target.astype(np.float64)) + 0.0
        return mix(state ^ target.view(np.uint64))

    def lone_parts(self) -> NDArray[Any]:
        """Return what records weigh that are persons of their own; others weigh nothing yet."""
        parts = self._allocate((len(self),), units.weight_kind(self.schema))
        alone = units.nobodys(self.names) & (self.labels < self.classes)
        parts[:] = np.where(alone, units.lone_weight(self.schema), 0)
        return parts

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
                for k in range(found.shape[1]):
                    curves = [(feature, table[:, k]) for feature, table in step.values]
                    tables = _kernels.CodeTables.of(curves, np.float64)
                    for part in self._chunks():
                        more = tables.sums(codes, part, fast=self.passes_fast)
                        more[cells[part] < 0] = 0
                        found[part, k] += more
                continue
            # A last row of zeros: records outside all cells have number -1, which finds it.
            more = np.concatenate([step.values, np.zeros((1, found.shape[1]))])
            for part in self._chunks():
                found[part] += more[cells[part]]
        return found

    def pulls(self, scores: ScoreLineage, reach: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the label to which each record pulls, and how hard."""
        known = self.scores(scores)
        labels = np.zeros(len(self), dtype=np.uint8 if self._loss.labels < 2**8 else np.uint16)
        weights = np.empty(len(self), dtype=np.uint8)
        for part, targets in self._targets():
            labels[part], weights[part] = self._loss.pulls(targets, known[part], reach)
        if self.parts is not None:
            return labels, weights * self.parts.astype(np.int32)
        return labels, weights

    def moments(
        self, scores: ScoreLineage, reach: float, *, pure: bool
    ) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield the moments of every record's loss, by chunks of rows, as whole numbers."""
        known = self.scores(scores)
        for part, targets in self._targets():
            found = self._loss.moments(targets, known[part], reach, pure=pure)
            yield part, self._weighed(part, found)

    def outcomes(
        self, scores: ScoreLineage, ends: tuple[float, ...] | None
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield what is predicted for every record, by chunks of rows: its class, or its bin.

        Without ends, the class with the largest score, of equals the first; one score speaks for
        the second of two classes. With ends, how many of them a single score is not below.
        """
        known = self.scores(scores)
        for part in self._chunks():
            mine = known[part]
            if ends is not None:
                yield part, np.searchsorted(ends, mine[:, 0], side="right")
            elif mine.shape[1] == 1:
                yield part, (mine[:, 0] > 0).astype(np.int64)
            else:
                yield part, mine.argmax(axis=1)

    def distances(
        self, scores: ScoreLineage, *, within: bool = False
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield how far every record's target, a number, is from its score, by chunks of rows.

        Scores are cut to the target's bounds first, if they are to be within.
        """
        known = self.scores(scores)
        for part, targets in self._targets():
            mine = known[part, 0]
            yield part, np.abs(targets - (np.clip(mine, 0.0, 1.0) if within else mine))

    def slopes(
        self, cells: Lineage, scores: ScoreLineage, basis: Basis, largest: int, longest: int
    ) -> list[NDArray[np.int64]]:
        """Return the sums of bounded residuals by the codes of each part of a basis.

        Arrays have the shape (codes, scores). Records outside all cells add nothing.
        """
        known, inside, codes = self.scores(scores), self.cells(cells), self.codes(cells.view)
        lengths = self._lengths(cells, basis)
        empty = [(j, np.zeros(part.size, dtype=np.int64)) for j, part in basis.features]
        totals = [_kernels.CodeTables.of(empty, np.int64) for _ in scores.start]
        by_cell = np.zeros((cells.size, len(totals)), dtype=np.int64)
        for part, targets in self._targets():
            here = inside[part]
            residuals = self._loss.residuals(targets, known[part])
            weights = bounded_weights(residuals, lengths[part], largest, longest)
            weights[here < 0] = 0
            weights = self._weighed(part, weights)
            for k, total in enumerate(totals):
                mine = np.ascontiguousarray(weights[:, k])
                total.add(codes, part, mine, fast=self.passes_fast)
                if basis.of_cells is not None:
                    _kernels.add_by_number(np.maximum(here, 0), mine, by_cell[:, k])
        joined = np.column_stack([total.values for total in totals])
        found = np.split(joined, totals[0].first[1:-1])[: len(basis.features)]
        return found if basis.of_cells is None else [*found, by_cell]

    def _lengths(self, cells: Lineage, basis: Basis) -> NDArray[np.float64]:
        """Return the length of every record's functions, in units; the last answer is kept."""
        known = self._measured
        if known is not None and known[0] == cells.number and known[1] is basis:
            return known[3]
        features = [(feature, part.squares()) for feature, part in basis.features]
        tables = _kernels.CodeTables.of(features, np.int64)
        of_cells = None if basis.of_cells is None else basis.of_cells.squares()
        asked = (tables.features, tables.values, of_cells)
        if known is not None and known[0] == cells.number and _equal(known[2], asked):
            found = known[3]  # the same functions, on their way through a cluster
        else:
            codes, inside = self.codes(cells.view), self.cells(cells)
            found = self._allocate((len(self),), np.float64)
            for part in self._chunks():  # once for all steps: no reason to compile a loop
                squares = tables.sums(codes, part, fast=False)
                if of_cells is not None:
                    squares += of_cells[inside[part]]
                found[part] = np.sqrt(np.maximum(squares, 1).astype(np.float64))
        self._measured = (cells.number, basis, asked, found)
        return found

    def calibration(
        self, cells: Lineage, scores: ScoreLineage, shift: float, factor: float
    ) -> NDArray[np.int64]:
        """Return the sums of the calibration moments of all records in cells."""
        known, inside = self.scores(scores), self.cells(cells)
        sums = np.zeros(5, dtype=np.int64)
        for part, targets in self._targets():
            apart = known[part, 0] - scores.start[0]
            found = calibration_moments(targets, apart, shift, factor)
            sums += self._weighed(part, found)[inside[part] >= 0].sum(axis=0)
        return sums

    def _weighed(self, part: slice, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what records add to sums: as often as they weigh."""
        return found if self.parts is None else found * self.parts[part, None]

    def _targets(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the targets by chunks, at least one; unknown ones, in no cell, get any value."""
        for part in self._chunks():
            targets = self._target[part]
            if self.schema.classes is None:
                yield part, np.nan_to_num(targets)
            else:
                yield part, np.where(targets < self.classes, targets, 0)

    def _chunks(self) -> Iterator[slice]:
        rows = len(self)
        return (slice(k, min(k + _CHUNK, rows)) for k in range(0, max(rows, 1), _CHUNK))

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop what was worked out for cells and scores that nobody has any more."""
        for number in numbers:
            self._cells.pop(number, None)
            self._scores.pop(number, None)
            if self._sorted is not None and self._sorted[0] == number:
                self._sorted = None
            if self._measured is not None and self._measured[0] == number:
                self._measured = None


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
