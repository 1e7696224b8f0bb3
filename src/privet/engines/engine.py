"""The engine: questions to blocks of rows, whose answers are added up.

Where the blocks are is up to :class:`Blocks`: in memory, in mapped files, on a cluster. All else is
the same code, which is why all engines give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Protocol, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.engines import questions as ask
from privet.engines.axes import Axes, Axis
from privet.engines.bases import Basis, Curves
from privet.engines.lineage import (
    CellsHandle,
    Divide,
    Lineage,
    Parts,
    Portion,
    Root,
    ScoreLineage,
    ScoresHandle,
    Step,
    Take,
)
from privet.engines.splits import Split
from privet.engines.views import View
from privet.engines.widths import needs_64_bits
from privet.schema import Numeric, Schema

T = TypeVar("T")

#: Most counts held at once (32-bit integers); more cells are asked in batches.
MAX_COUNTS = 2**25


class Blocks(Protocol):
    """Where blocks of rows are, and how they are asked."""

    @property
    def schema(self) -> Schema:
        """What is public about the table."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    @property
    def gathers(self) -> bool:
        """Whether the rows of a cell may be moved to the driver; if not, only sums are."""

    def ask(self, question: ask.BlockQuestion[T], forget: Sequence[int]) -> T:
        """Return the answer for all blocks together.

        Parameters
        ----------
        question : BlockQuestion
        forget : sequence of int
            Numbers of cells and scores that nobody has any more, to be forgotten after the answer.
        """

    def close(self) -> None:
        """Give up the blocks."""


class BlockEngine:
    """Exact answers about disjoint cells of a table that lies in blocks.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        #: Where all records lie that it speaks of; with none, those of the whole table.
        self._portions: tuple[Portion, ...] = ()
        self._numbers = count()
        #: Numbers of handles that are gone. Finalizers append to this very list: never replace it.
        self._stale: list[int] = []

    @property
    def schema(self) -> Schema:
        """See :class:`~privet.engines.Engine`."""
        return self._blocks.schema

    @property
    def rows(self) -> int:
        """See :class:`~privet.engines.Engine`."""
        return self._blocks.rows

    @property
    def gathers(self) -> bool:
        """See :class:`~privet.engines.Engine`."""
        return self._blocks.gathers

    def close(self) -> None:
        """See :class:`~privet.engines.Engine`."""
        self._blocks.close()

    # Free

    def root(self, view: View) -> CellsHandle:
        """See :class:`~privet.engines.Engine`."""
        return self._cells(1, view, Root(self._portions))

    def parts(self, view: View, count: int, key: int) -> CellsHandle:
        """See :class:`~privet.engines.Engine`."""
        return self._cells(count, view, Parts(count, key, self._portions))

    def portion(self, key: int, start: int, stop: int) -> BlockEngine:
        """See :class:`~privet.engines.Engine`."""
        again = object.__new__(type(self))
        again.__dict__.update(self.__dict__)  # the same blocks, numbers and list of stale handles
        again._portions = (*self._portions, Portion(key, start, stop))
        return again

    def take(self, cells: CellsHandle, chosen: NDArray[np.intp]) -> CellsHandle:
        """See :class:`~privet.engines.Engine`."""
        return self._cells(len(chosen), cells.view, Take.of(cells.size, chosen), cells)

    def split(self, cells: CellsHandle, splits: Sequence[Split]) -> CellsHandle:
        """See :class:`~privet.engines.Engine`."""
        if not splits:
            return cells
        step = Divide.of(splits)
        return self._cells(int(step.first[-1]), cells.view, step, cells)

    def _cells(
        self, size: int, view: View, step: Step, before: CellsHandle | None = None
    ) -> CellsHandle:
        parent = None if before is None else before.lineage
        handle = CellsHandle(Lineage(next(self._numbers), size, view, step, parent), before)
        finalize(handle, self._stale.append, handle.lineage.number).atexit = False
        return handle

    def start_scores(self, start: Sequence[float]) -> ScoresHandle:
        """See :class:`~privet.engines.Engine`."""
        return self._scores(ScoreLineage(next(self._numbers), tuple(map(float, start))))

    def add_scores(
        self, scores: ScoresHandle, cells: CellsHandle, values: NDArray[np.float64] | Curves
    ) -> ScoresHandle:
        """See :class:`~privet.engines.Engine`."""
        before = scores.lineage
        kept: NDArray[np.float64] | Curves
        if isinstance(values, tuple):
            kept = tuple((feature, np.array(table)) for feature, table in values)
        else:
            kept = np.array(values)
        lineage = ScoreLineage(next(self._numbers), before.start, cells.lineage, kept, before)
        return self._scores(lineage, (scores, cells))

    def _scores(
        self,
        lineage: ScoreLineage,
        before: tuple[ScoresHandle, CellsHandle] | None = None,
    ) -> ScoresHandle:
        handle = ScoresHandle(lineage, before)
        finalize(handle, self._stale.append, lineage.number).atexit = False
        return handle

    # Sums

    def _ask(
        self, question: ask.BlockQuestion[T], *handles: CellsHandle | ScoresHandle | None
    ) -> T:
        """Ask all blocks, which have then worked out the cells and scores of the question.

        What these were made from is no longer needed: blocks forget it with the next question.
        """
        stale = [self._stale.pop() for _ in range(len(self._stale))]
        answer = self._blocks.ask(question, stale)
        for handle in handles:
            if handle is not None:
                handle.before = None
        return answer

    def class_counts(self, cells: CellsHandle) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        return self._ask(ask.LabelCounts(cells.lineage), cells)

    def row_counts(self, cells: CellsHandle) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        return self._ask(ask.RowCounts(cells.lineage), cells)

    def target_counts(self, cells: CellsHandle, steps: int) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        return self._ask(ask.LabelCounts(cells.lineage, steps), cells)

    def grid_counts(self, feature: int | None) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        if feature is None:
            size = len(self.schema.target_grid) + 2
            return self._ask(ask.GridCounts(None, size, self._portions))
        kind = list(self.schema.features.values())[feature]
        assert isinstance(kind, Numeric)
        return self._ask(ask.GridCounts(feature, len(kind.grid) + 2, self._portions))

    def histograms(
        self, cells: CellsHandle, features: Sequence[int], steps: int | None = None
    ) -> Iterator[tuple[slice, dict[int, NDArray[np.int32]]]]:
        """See :class:`~privet.engines.Engine`."""
        sizes = cells.view.sizes
        kinds = self._kinds(steps)
        groups = _groups(features, sizes)
        width = sum(len(group) * size for group, size in groups) * kinds
        batch = max(1, MAX_COUNTS // width)
        for start in range(0, cells.size, batch):
            stop = min(start + batch, cells.size)
            question = ask.Histograms(cells.lineage, start, stop, groups, steps, self._wide)
            found = {}
            answer = self._ask(question, cells)
            for (group, size), tables in zip(groups, answer, strict=True):
                shaped = tables[:, :-1].reshape(len(group), stop - start, kinds, size)
                for j, table in zip(group, shaped, strict=True):
                    found[j] = table[:, :, : sizes[j]].transpose(0, 2, 1)
            yield slice(start, stop), found

    def moments(
        self, cells: CellsHandle, scores: ScoresHandle, reach: float, *, pure: bool
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        question = ask.Moments(cells.lineage, scores.lineage, reach, pure)
        return self._ask(question, cells, scores)

    def distance_counts(
        self, cells: CellsHandle, scores: ScoresHandle, marks: Sequence[float]
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        question = ask.DistanceCounts(cells.lineage, scores.lineage, tuple(marks))
        return self._ask(question, cells, scores)

    def outcome_counts(
        self, cells: CellsHandle, scores: ScoresHandle, ends: Sequence[float] | None
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        size = self._kinds(None) if ends is None else len(ends) + 1
        kept = None if ends is None else tuple(map(float, ends))
        question = ask.OutcomeCounts(cells.lineage, scores.lineage, size, kept)
        return self._ask(question, cells, scores)

    def error_sums(self, cells: CellsHandle, scores: ScoresHandle) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        return self._ask(ask.ErrorSums(cells.lineage, scores.lineage), cells, scores)

    def slopes(
        self,
        cells: CellsHandle,
        scores: ScoresHandle,
        basis: Basis,
        largest: int,
        longest: int,
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        question = ask.Slopes(cells.lineage, scores.lineage, basis, largest, longest)
        return self._ask(question, cells, scores)

    def calibration(
        self, cells: CellsHandle, scores: ScoresHandle, shift: float, factor: float
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        question = ask.Calibration(cells.lineage, scores.lineage, shift, factor)
        return self._ask(question, cells, scores)

    def places(self, cells: CellsHandle, axes: Axes | Sequence[Axis]) -> ask.Sparse:
        """See :class:`~privet.engines.Engine`."""
        width, axes = max(cells.view.sizes), Axes.of(axes)
        if cells.size * width > min(64 * self.rows, MAX_COUNTS):
            return self._ask(ask.Places(cells.lineage, axes, width), cells)
        counts = self._ask(ask.DensePlaces(cells.lineage, axes, width, self._wide), cells)
        found = np.flatnonzero(counts)
        return found, counts[found].astype(np.int64)

    def sides(
        self,
        cells: CellsHandle,
        axes: Axes | Sequence[Axis],
        middle: NDArray[np.int32],
        steps: int | None,
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        kinds = self._kinds(steps)
        question = ask.Sides(cells.lineage, Axes.of(axes), middle, kinds, steps)
        return self._ask(question, cells).reshape(cells.size, 3, kinds)

    @property
    def _wide(self) -> bool:
        return needs_64_bits(self.rows * self.schema.unit_parts)  # which no row weighs more than

    def _kinds(self, steps: int | None) -> int:
        """Return how many classes there are, or values of the target on a grid."""
        return len(self.schema.classes or (0,)) if steps is None else steps + 1

    # Whole trees

    def tree_rows(
        self, cells: CellsHandle, start: int, stop: int, scores: ScoresHandle | None, reach: float
    ) -> list[ask.Records]:
        """See :class:`~privet.engines.Engine`."""
        known = None if scores is None else scores.lineage
        question = ask.TreeRows(cells.lineage, start, stop, known, reach)
        found = self._ask(question, cells, scores)
        return [_joined(parts) for parts in zip(*found, strict=True)]

    def tree_facts(
        self, cells: CellsHandle, cell: int, scores: ScoresHandle | None, reach: float
    ) -> NDArray[np.int64]:
        """See :class:`~privet.engines.Engine`."""
        known = None if scores is None else scores.lineage
        return self._ask(ask.TreeFacts(cells.lineage, cell, known, reach), cells, scores)

    def tree_sums(
        self,
        cells: CellsHandle,
        cell: int,
        layout: ask.TreeLayout,
        of: Sequence[ask.Margin],
        scores: ScoresHandle | None,
        reach: float,
    ) -> NDArray[Any]:
        """See :class:`~privet.engines.Engine`."""
        known = None if scores is None else scores.lineage
        found, start = np.empty(layout.count(of), dtype=layout.dtype), 0
        for part in _batches(of, layout):
            question = ask.TreeSums(cells.lineage, cell, layout, part, known, reach)
            stop = start + question.size
            found[start:stop] = self._ask(question, cells, scores)
            start = stop
        return found


def _batches(
    margins: Sequence[ask.Margin], layout: ask.TreeLayout
) -> Iterator[tuple[ask.Margin, ...]]:
    """Yield margins that are asked for together: as many as may be held at once."""
    batch: list[ask.Margin] = []
    size = 0
    for margin in margins:
        more = layout.count([margin])
        if batch and size + more > MAX_COUNTS:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(margin)
        size += more
    yield tuple(batch)


def _joined(parts: Sequence[ask.Records]) -> ask.Records:
    """Return the records of one cell, of which every block has some."""
    if len(parts) == 1:
        return parts[0]
    codes, labels, weights, counts = zip(*parts, strict=True)
    joined = np.concatenate(codes, axis=1), np.concatenate(labels), np.concatenate(weights)
    return *joined, sum(counts[1:], counts[0])


def _groups(features: Sequence[int], sizes: Sequence[int]) -> tuple[ask.Group, ...]:
    """Return the features in groups of four with the largest size of each group.

    Four features with tables of one size are counted several times faster than one by one. They
    are grouped by size, so that the common size wastes little.
    """
    order = sorted(features, key=lambda j: sizes[j])
    groups = [tuple(order[k : k + 4]) for k in range(0, len(order), 4)]
    return tuple((group, sizes[group[-1]]) for group in groups)
