"""What blocks are asked: each question is a sum of whole numbers over rows.

A question is a small object that goes to the blocks, wherever they are, and answers for one of
them. It is pure: the same block gives the same answer, whenever and how often it is asked, so that
an answer that was lost is asked for again. Answers of blocks are merged in any order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise, zip_longest
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels
from privet.engines.axes import Axes
from privet.engines.bases import Basis, error_moments
from privet.engines.blocks import Block
from privet.engines.lineage import Lineage, Portion, ScoreLineage
from privet.errors import DataError

T = TypeVar("T")

#: Features that are counted together, and the largest of their numbers of codes.
Group = tuple[tuple[int, ...], int]
#: Features, in a layout's order, by whose codes weights are added up: one, two or three of them.
Margin = tuple[int, ...]
#: Places that have records, in rising order, and how many each has.
Sparse = tuple[NDArray[np.int64], NDArray[np.int64]]
#: One cell's records: codes (features, records), labels and weights; and how many have each code,
#: feature after feature.
Records = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64]]

#: Records that are added up at a time: their codes stay in a processor's cache.
_CHUNK = 2**18


class BlockQuestion(ABC, Generic[T]):
    """A question to one block."""

    @abstractmethod
    def answer(self, block: Block) -> T:
        """Return the answer for the rows of one block."""

    @abstractmethod
    def merge(self, one: T, other: T) -> T:
        """Return the answer for the rows of two blocks; may change its arguments."""

    def add(self, total: T, block: Block) -> T:
        """Return a total with the rows of one more block."""
        return self.merge(total, self.answer(block))


class _Sum(BlockQuestion[NDArray[Any]]):
    """A question whose answers are arrays that add up."""

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """See :class:`BlockQuestion`."""
        one += other
        return one


@dataclass(frozen=True, eq=False)
class LabelCounts(_Sum):
    """Records by cell and class, or with steps by cell and value of the target on that grid."""

    cells: Lineage
    steps: int | None = None

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        labels, kinds = _labels(block, self.steps)
        width = n_keys(self.cells.size, kinds)
        keys = _kernels.key(block.cells(self.cells), labels, kinds, width, fast=block.fast)
        return _counted(keys, block.parts, width + 1)[:width].reshape(self.cells.size, kinds)


@dataclass(frozen=True, eq=False)
class RowCounts(_Sum):
    """Rows by cell, whatever they weigh: how much work a cell is."""

    cells: Lineage

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        return np.bincount(block.cells(self.cells) + 1, minlength=self.cells.size + 1)[1:]


@dataclass(frozen=True)
class GridCounts(_Sum):
    """Records with a known target by a number's place on its grid; the last is for missing ones.

    Without a feature, by the place of the target itself.
    """

    feature: int | None
    size: int
    portions: tuple[Portion, ...] = ()

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        known = block.known(self.portions)
        codes = block.target_codes() if self.feature is None else block.grid_codes(self.feature)
        rows = slice(None) if known.all() else known
        parts = None if block.parts is None else block.parts[rows]
        return _counted(codes[rows], parts, self.size)


@dataclass(frozen=True, eq=False)
class Histograms(BlockQuestion[list[NDArray[Any]]]):
    """Records by cell, class and code, for groups of features and cells ``start`` to ``stop``.

    An answer has one array of shape (features, cells * classes + 1, codes) for every group. The
    last one along its second axis counts records outside the cells. Wide counts have 64 bits.
    """

    cells: Lineage
    start: int
    stop: int
    groups: tuple[Group, ...]
    steps: int | None = None
    wide: bool = False

    def answer(self, block: Block) -> list[NDArray[Any]]:
        """See :class:`BlockQuestion`."""
        _, kinds = _labels(block, self.steps)
        lines = n_keys(self.stop - self.start, kinds) + 1
        kind = np.int64 if self.wide else np.int32
        empty = [np.zeros((len(group), lines, size), kind) for group, size in self.groups]
        return self.add(empty, block)

    def add(self, total: list[NDArray[Any]], block: Block) -> list[NDArray[Any]]:
        """See :class:`BlockQuestion`."""
        labels, kinds = _labels(block, self.steps)
        cells, size = block.cells(self.cells), self.stop - self.start
        rows: slice | NDArray[np.intp] = slice(None)
        if size < self.cells.size:
            rows = np.flatnonzero((cells >= self.start) & (cells < self.stop))
            cells = cells[rows] - np.int32(self.start)
        outside = n_keys(size, kinds)
        keys = _kernels.key(cells, labels[rows], kinds, outside, fast=block.fast)
        codes = block.codes(self.cells.view)
        parts = None if block.parts is None else block.parts[rows]
        for (features, _), tables in zip(self.groups, total, strict=True):
            _kernels.count([codes[j][rows] for j in features], keys, parts, tables, fast=block.fast)
        return total

    def merge(self, one: list[NDArray[Any]], other: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """See :class:`BlockQuestion`."""
        for mine, more in zip(one, other, strict=True):
            np.add(mine, more, out=mine)
        return one


@dataclass(frozen=True, eq=False)
class Moments(_Sum):
    """Sums of the loss's moments by cell."""

    cells: Lineage
    scores: ScoreLineage
    reach: float
    pure: bool

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        cells = block.cells(self.cells)
        sums: Any = 0
        for part, found in block.moments(self.scores, self.reach, pure=self.pure):
            keys, size = cells[part] + 1, self.cells.size + 1
            # Sums of whole numbers below 2^53 are exact in doubles.
            sums = sums + np.stack(
                [np.bincount(keys, column, size)[1:] for column in found.T], axis=1
            )
        return np.asarray(np.rint(sums), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class DistanceCounts(_Sum):
    """Records by cell and by how many of some rising marks their scores are further away than."""

    cells: Lineage
    scores: ScoreLineage
    marks: tuple[float, ...]

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        cells, kinds = block.cells(self.cells), len(self.marks) + 1
        width = n_keys(self.cells.size, kinds)
        counts = np.zeros(width + 1, dtype=np.int64)
        for part, distances in block.distances(self.scores):
            beyond = np.searchsorted(self.marks, distances, side="left")
            keys = _kernels.key(cells[part], beyond, kinds, width, fast=False)
            parts = None if block.parts is None else block.parts[part]
            counts += _counted(keys, parts, width + 1)
        return counts[:width].reshape(self.cells.size, kinds)


@dataclass(frozen=True, eq=False)
class OutcomeCounts(_Sum):
    """Records by cell, class and what their scores predict: ``size`` classes, or bins at ends."""

    cells: Lineage
    scores: ScoreLineage
    size: int
    ends: tuple[float, ...] | None = None

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        cells, labels, kinds = block.cells(self.cells), block.labels, block.classes
        width = n_keys(self.cells.size, kinds * self.size)
        counts = np.zeros(width + 1, dtype=np.int64)
        for part, found in block.outcomes(self.scores, self.ends):
            both = labels[part] * np.int64(self.size) + found
            inside = cells[part] * np.int64(kinds * self.size) + both
            keys = np.where(cells[part] < 0, width, inside)
            parts = None if block.parts is None else block.parts[part]
            counts += _counted(keys, parts, width + 1)
        return counts[:width].reshape(self.cells.size, kinds, self.size)


@dataclass(frozen=True, eq=False)
class ErrorSums(_Sum):
    """Sums of how far a number's targets are from their scores: see :func:`error_moments`."""

    cells: Lineage
    scores: ScoreLineage

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        cells, size = block.cells(self.cells), self.cells.size + 1
        sums: Any = 0
        for part, distances in block.distances(self.scores, within=True):
            found = error_moments(distances)
            if block.parts is not None:
                found = found * block.parts[part, None]
            # Sums of whole numbers below 2^53 are exact in doubles.
            columns = [np.bincount(cells[part] + 1, column, size)[1:] for column in found.T]
            sums = sums + np.rint(np.stack(columns, axis=1)).astype(np.int64)
        return np.asarray(sums, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Slopes(_Sum):
    """Sums of bounded residuals times public functions, of shape (functions, scores)."""

    cells: Lineage
    scores: ScoreLineage
    basis: Basis
    largest: int
    longest: int

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        bounds = self.largest, self.longest
        totals = block.slopes(self.cells, self.scores, self.basis, *bounds)
        parts = zip(self.basis.parts, totals, strict=True)
        return np.concatenate([part.sums(total) for part, total in parts])


@dataclass(frozen=True, eq=False)
class Calibration(_Sum):
    """Sums of how far scores, moved and stretched, are from fitting two classes."""

    cells: Lineage
    scores: ScoreLineage
    shift: float
    factor: float

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        return block.calibration(self.cells, self.scores, self.shift, self.factor)


@dataclass(frozen=True, eq=False)
class DensePlaces(_Sum):
    """Records by cell and place on the cell's axis, of shape (cells * width,).

    Wide counts have 64 bits.
    """

    cells: Lineage
    axes: Axes
    width: int
    wide: bool = False

    def answer(self, block: Block) -> NDArray[Any]:
        """See :class:`BlockQuestion`."""
        kind = np.int64 if self.wide else np.int32
        return self.add(np.zeros(self.cells.size * self.width, dtype=kind), block)

    def add(self, total: NDArray[Any], block: Block) -> NDArray[Any]:
        """See :class:`BlockQuestion`."""
        codes = block.codes(self.cells.view)
        rows, first = block.by_cell(self.cells)
        _kernels.count_places(
            rows, first, codes, block.parts, self.axes, self.width, total, fast=block.passes_fast
        )
        return total


@dataclass(frozen=True, eq=False)
class Places(BlockQuestion[Sparse]):
    """As :class:`DensePlaces`, where few places have records: only those, with their counts."""

    cells: Lineage
    axes: Axes
    width: int

    def answer(self, block: Block) -> Sparse:
        """See :class:`BlockQuestion`."""
        rows, first = block.by_cell(self.cells)
        cells = np.repeat(np.arange(self.cells.size), np.diff(first))
        mine = rows[first[0] : first[-1]]
        codes = block.codes(self.cells.view)
        places = cells * self.width + self.axes.places(cells, codes, mine)
        keys, place = np.unique(places, return_inverse=True)
        parts = None if block.parts is None else block.parts[mine]
        return keys, _counted(place, parts, len(keys))

    def merge(self, one: Sparse, other: Sparse) -> Sparse:
        """See :class:`BlockQuestion`."""
        keys, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        both = np.concatenate([one[1], other[1]])
        return keys, np.bincount(place, both, len(keys)).astype(np.int64)  # exact below 2^53


@dataclass(frozen=True, eq=False)
class Sides(_Sum):
    """Records of shape (cells * 3 * classes,): below, at and above a place of their cells' axes."""

    cells: Lineage
    axes: Axes
    middle: NDArray[np.int32]
    kinds: int
    steps: int | None

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        return self.add(np.zeros(self.cells.size * 3 * self.kinds, dtype=np.int64), block)

    def add(self, total: NDArray[np.int64], block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        labels, kinds = _labels(block, self.steps)
        _kernels.count_sides(
            *block.by_cell(self.cells),
            block.codes(self.cells.view),
            labels,
            block.parts,
            self.axes,
            self.middle,
            kinds,
            total,
            fast=block.passes_fast,
        )
        return total


@dataclass(frozen=True, eq=False)
class TreeRows(BlockQuestion[list[list[Records]]]):
    """The records of cells ``start`` to ``stop``: for every block, cell by cell.

    Rows leave their block here, but not the wall: for a draw of whole trees they are often smaller
    than the sums that it needs.
    """

    cells: Lineage
    start: int
    stop: int
    scores: ScoreLineage | None = None
    reach: float = 0.0

    def answer(self, block: Block) -> list[list[Records]]:
        """See :class:`BlockQuestion`."""
        cells, codes = block.cells(self.cells), block.codes(self.cells.view)
        labels, weights = _weighted(block, self.scores, self.reach)
        asked = (cells >= self.start) & (cells < self.stop)
        if self.stop - self.start == 1 and asked.all():
            return [[(codes, labels, weights, block.code_counts(self.cells.view))]]
        rows = np.flatnonzero(asked)
        if self.stop - self.start > 1:
            rows = rows[np.argsort(cells[rows], kind="stable")]
        sizes = np.bincount(cells[rows] - self.start, minlength=self.stop - self.start)
        found = []
        for start, stop in pairwise([0, *np.cumsum(sizes).tolist()]):
            mine = rows[start:stop]
            some = codes[:, mine]
            counts = _kernels.code_counts(some, self.cells.view.sizes)
            found.append((some, labels[mine], weights[mine], counts))
        return [found]

    def merge(self, one: list[list[Records]], other: list[list[Records]]) -> list[list[Records]]:
        """See :class:`BlockQuestion`."""
        return one + other


@dataclass(frozen=True, eq=False)
class TreeFacts(_Sum):
    """For the records of one cell: how many have each code, all features one after the other.

    The last number is the sum of the records' weights.
    """

    cells: Lineage
    cell: int
    scores: ScoreLineage | None
    reach: float

    def answer(self, block: Block) -> NDArray[np.int64]:
        """See :class:`BlockQuestion`."""
        view, asked = self.cells.view, block.cells(self.cells) == self.cell
        _, weights = _weighted(block, self.scores, self.reach)
        if asked.all():
            counts = block.code_counts(view)
        else:
            counts = _kernels.code_counts(block.codes(view)[:, asked], view.sizes)
        return np.append(counts, weights[asked].sum(dtype=np.int64))


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """How codes are numbered where whole trees are weighed.

    Attributes
    ----------
    order : tuple of int
        The features; those of the upper levels come first.
    upper : int
        How many of them are tested above the last level.
    numbers : tuple of arrays
        For every feature, in this order, the place of each code, counted over all features.
    first : array
        The first place of every feature, and after the last their number.
    labels : int
        The number of labels. Two have one channel of signed weights, more have one each.
    wide : bool
        Whether sums need 64 bits.
    """

    order: tuple[int, ...]
    upper: int
    numbers: tuple[NDArray[Any], ...]
    first: NDArray[np.int64]
    labels: int
    wide: bool

    @property
    def channels(self) -> int:
        """How many numbers a sum consists of."""
        return 1 if self.labels == 2 else self.labels

    @property
    def dtype(self) -> type[np.int32 | np.int64]:
        """The type of sums."""
        return np.int64 if self.wide else np.int32

    def margins(self, depth: int) -> tuple[Margin, ...]:
        """Return what a draw of this depth needs: each margin once, its features in order."""
        features, upper = len(self.order), self.upper
        found: list[Margin] = [(h,) for h in range(features)]
        if depth > 1:
            found += [(g, h) for g in range(upper) for h in range(g + 1, features)]
        if depth > 2:
            found += [
                (f, g, h)
                for f in range(upper)
                for g in range(f + 1, upper)
                for h in range(g + 1, features)
            ]
        return tuple(found)

    @cached_property
    def sizes(self) -> list[int]:
        """How many codes of every feature are counted."""
        return [int(size) for size in np.diff(self.first)]

    def count(self, margins: Sequence[Margin]) -> int:
        """Return how many numbers margins have together: one per channel and codes."""
        sizes, total = self.sizes, 0
        for margin in margins:
            codes = 1
            for h in margin:
                codes *= sizes[h]
            total += codes
        return total * self.channels

    def cut(self, sums: NDArray[Any], margins: Sequence[Margin]) -> dict[Margin, NDArray[Any]]:
        """Return every margin, from the array that has them all one after the other."""
        sizes, found, start = self.sizes, {}, 0
        for margin in margins:
            shape = (*[sizes[h] for h in margin], self.channels)
            stop = start + math.prod(shape)
            found[margin] = sums[start:stop].reshape(shape)
            start = stop
        return found

    def records(
        self,
        codes: Sequence[NDArray[Any]] | NDArray[Any],
        labels: NDArray[Any],
        weights: NDArray[Any],
    ) -> TreeRecords:
        """Return records as they are added up, from their codes, labels and weights."""
        from privet.engines._loops import look_up

        most = max(self.sizes)
        narrow = np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32
        columns = []
        for h, (feature, number) in enumerate(zip(self.order, self.numbers, strict=True)):
            mine = np.ascontiguousarray(codes[feature])  # one type, one loop to compile
            local = (number - self.first[h]).astype(narrow)
            if mine.dtype != narrow or not np.array_equal(local, np.arange(len(local))):
                found = np.empty(len(mine), dtype=narrow)
                look_up(mine, local, found)
                mine = found
            columns.append(mine)
        signed = weights.astype(np.int32)
        if self.labels == 2:
            signed *= np.where(labels == 1, np.int8(1), np.int8(-1))
            return TreeRecords(columns, None, signed)
        return TreeRecords(columns, labels, signed)


@dataclass(frozen=True, eq=False)
class TreeRecords:
    """Records whose weights are added up.

    Attributes
    ----------
    columns : list of arrays
        Their codes, feature after feature in a layout's order, those that are left out not counted.
    labels : array, optional
        The channel of each; None if there is one only.
    weights : array
        What each adds there.
    """

    columns: list[NDArray[Any]]
    labels: NDArray[Any] | None
    weights: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.weights)

    def add(
        self, layout: TreeLayout, margins: Sequence[Margin], total: NDArray[Any]
    ) -> NDArray[Any]:
        """Add the margins of the records to a total, and return it."""
        from privet.engines import _tree_loops as loops

        tables = {margin: table.reshape(-1) for margin, table in layout.cut(total, margins).items()}
        shared = [(before, list(of)) for before, of in groupby(margins, lambda margin: margin[:-1])]
        sizes, lasts = layout.sizes, {margin[-1] for margin in margins}
        wide = max(sizes) ** 2 > 2**32
        heads = np.empty(min(_CHUNK, len(self)), dtype=np.uint64 if wide else np.uint32)
        for start in range(0, len(self), _CHUNK):
            part = slice(start, start + _CHUNK)
            weights = self.weights[part]
            head = heads[: len(weights)]
            codes = {h: self._codes_and_channels(h, part, layout.channels) for h in lasts}
            for before, of in shared:
                head[:] = 0 if not before else self.columns[before[0]][part]
                if len(before) == 2:
                    loops.join(head, self.columns[before[1]][part], sizes[before[1]])
                for one, other in zip_longest(of[::2], of[1::2]):
                    two = []
                    for margin in (one, other or one):
                        h = margin[-1]
                        two += [codes[h], sizes[h] * layout.channels, tables[margin]]
                    if other is None:
                        two[-1] = np.zeros_like(two[-1])
                    loops.add_weights(head, *two, weights)
        return total

    def _codes_and_channels(self, h: int, part: slice, channels: int) -> NDArray[Any]:
        """Return numbers of the codes of a feature and the channels of some records."""
        codes = self.columns[h][part]
        return codes if self.labels is None else codes * np.uint32(channels) + self.labels[part]


@dataclass(frozen=True, eq=False)
class TreeSums(_Sum):
    """Sums of weights of one cell's records: several margins, one after the other."""

    cells: Lineage
    cell: int
    layout: TreeLayout
    of: tuple[Margin, ...]
    scores: ScoreLineage | None
    reach: float

    @property
    def size(self) -> int:
        """How many numbers an answer has."""
        return self.layout.count(self.of)

    def answer(self, block: Block) -> NDArray[Any]:
        """See :class:`BlockQuestion`."""
        return self.add(np.zeros(self.size, dtype=self.layout.dtype), block)

    def add(self, total: NDArray[Any], block: Block) -> NDArray[Any]:
        """See :class:`BlockQuestion`."""
        inside = block.cells(self.cells) == self.cell
        rows = slice(None) if inside.all() else np.flatnonzero(inside)
        codes = block.codes(self.cells.view)
        labels, weights = _weighted(block, self.scores, self.reach)
        mine = [column[rows] for column in codes]
        return self.layout.records(mine, labels[rows], weights[rows]).add(
            self.layout, self.of, total
        )


def n_keys(size: int, kinds: int) -> int:
    """Return how many pairs of cells and classes there are, if they can be counted."""
    if size * kinds >= 2**31 - 1:
        raise DataError("too many cells times classes; use a smaller depth or fewer bins")
    return size * kinds


def _labels(block: Block, steps: int | None) -> tuple[NDArray[Any], int]:
    """Return the classes of records, or their targets on a grid, and how many there can be."""
    if steps is None:
        return block.labels, block.classes
    return block.levels(steps), steps + 1


def _weighted(
    block: Block, scores: ScoreLineage | None, reach: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return labels and weights: classes that weigh one or their parts, or pulls at the scores."""
    if scores is not None:
        return block.pulls(scores, reach)
    one = np.ones(len(block), dtype=np.uint8)
    return block.labels, one if block.parts is None else block.parts


def _counted(keys: NDArray[Any], parts: NDArray[Any] | None, size: int) -> NDArray[np.int64]:
    """Return how many records have each key, or what these weigh."""
    if parts is None:
        return np.bincount(keys, minlength=size)
    # Sums of whole numbers below 2^53 are exact in doubles.
    return np.bincount(keys, parts, size).astype(np.int64)
