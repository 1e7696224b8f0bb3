"""Sums of weights over the records of one cell, of which whole trees are drawn.

A draw of depth one needs sums by the codes of one feature, a draw of depth two by those of two, and
depth three by three. These are *margins*, each of which is added up once: what another order of the
same features needs, and what is asked of the regions below a drawn test, follows from them. They
are made of records that were brought together, or asked of the engine, whichever is less to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.engines import (
    CellsHandle,
    Engine,
    Margin,
    ScoresHandle,
    Split,
    TreeLayout,
    TreeRecords,
    in_threads,
    workers,
)

#: Cells with more values (records x features) than this are asked for sums, not for records.
MOST_GATHERED = 2**29
#: Most sums of a draw that are held at once: half a gigabyte, or twice as much with 64 bits.
MOST_SUMS = 2**27


class Deeper(Protocol):
    """What knows sums by three features."""

    def planes(self, f: int) -> tuple[Any, ...]:
        """Return the sums by triples of an upper feature, or what they are made of.

        Either places, channels and weights of the records, their order by the feature's code, and
        where each code begins in it; or empty arrays, and the sums: margins one after the other,
        where in them those of the feature with two others begin, and those by pairs of places, the
        channels of a pair in one line.
        """

    def pairs(self, h: int, side: NDArray[np.bool_], split: Split) -> NDArray[Any]:
        """Return the sums by pairs of those records that pass a test of an upper feature.

        ``side`` says which of the feature's codes in the layout pass the split.
        """


@dataclass(frozen=True, eq=False)
class Region:
    """Some records of one cell, of which sums of weights are known.

    Attributes
    ----------
    layout : TreeLayout
    occupied : list of arrays
        The codes of every feature that the layout counts.
    total : array of shape (channels,)
    singles : array of shape (places, channels), optional
    pairs : array of shape (places of upper features, places, channels), optional
    deeper : Deeper, optional
        As much of these is known as trees on the region have levels.
    """

    layout: TreeLayout
    occupied: list[NDArray[np.intp]]
    total: NDArray[Any]
    singles: NDArray[Any] | None = None
    pairs: NDArray[Any] | None = None
    deeper: Deeper | None = None

    def divide(self, h: int, split: Split) -> tuple[Region, Region]:
        """Return the records that fail and those that pass a test of the feature at place h."""
        assert self.singles is not None
        side = split.child_of[self.occupied[h]].astype(bool)
        mine = slice(int(self.layout.first[h]), int(self.layout.first[h + 1]))
        known: list[tuple[NDArray[Any], NDArray[Any]]] = [(self.total, self.singles[mine][side])]
        if self.pairs is not None:
            known.append((self.singles, self.pairs[mine][side]))
        passing = [found.sum(axis=0, dtype=found.dtype) for _, found in known]
        failing = [whole - some for (whole, _), some in zip(known, passing, strict=True)]
        if self.deeper is not None:
            assert self.pairs is not None
            passing.append(self.deeper.pairs(h, side, split))
            failing.append(self.pairs - passing[-1])
        return (
            Region(self.layout, self.occupied, *failing),
            Region(self.layout, self.occupied, *passing),
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Margins one after the other.

    Attributes
    ----------
    flat : array
    begins : mapping of margins to int
        Where each begins; without channels.
    tables : mapping of margins to arrays
        Each of them, and others that follow from them.
    """

    flat: NDArray[Any]
    begins: dict[Margin, int]
    tables: dict[Margin, NDArray[Any]]

    @classmethod
    def of(cls, flat: NDArray[Any], layout: TreeLayout, margins: Sequence[Margin]) -> Sums:
        """Tell apart the margins of an array that has them one after the other."""
        tables = layout.cut(flat, margins)
        sizes = [table.size // layout.channels for table in tables.values()]
        begins = [0, *accumulate(sizes)][:-1]
        return cls(flat, dict(zip(margins, begins, strict=True)), tables)


class Source(Protocol):
    """Where the sums of one cell's records come from."""

    def facts(self) -> tuple[list[NDArray[np.int64]], int]:
        """Return how many records have each code of every feature, and the sum of weights."""

    def region(self, layout: TreeLayout, occupied: list[NDArray[np.intp]], depth: int) -> Region:
        """Return all records of the cell, for a draw of at most this depth."""


@dataclass(frozen=True, eq=False)
class GatheredRecords:
    """Records that were brought together.

    Attributes
    ----------
    codes : array of shape (features, records)
    labels : array of shape (records,)
    weights : array of shape (records,)
        Non-negative whole numbers.
    counts : array
        How many records have each code, feature after feature.
    sizes : sequence of int
        The number of codes of every feature.
    """

    codes: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[Any]
    counts: NDArray[np.int64]
    sizes: Sequence[int]

    def facts(self) -> tuple[list[NDArray[np.int64]], int]:
        """See :class:`Source`."""
        counts = np.split(self.counts, np.cumsum(self.sizes)[:-1])
        return counts, int(self.weights.sum(dtype=np.int64))

    def region(self, layout: TreeLayout, occupied: list[NDArray[np.intp]], depth: int) -> Region:
        """See :class:`Source`."""
        records = layout.records(self.codes, self.labels, self.weights)
        of = layout.margins(depth)
        size = layout.count(of)
        # Few records are less than their sums by triples.
        if depth < 3 or size <= min(MOST_SUMS, len(records) * len(of)):
            return _region(layout, occupied, depth, _added(records, layout, of))
        known = _added(records, layout, layout.margins(2))
        return _region(layout, occupied, depth, known, _FewRecords(records, layout))


def _added(records: TreeRecords, layout: TreeLayout, of: Sequence[Margin]) -> Sums:
    """Return margins of records: of some the records are added up, others follow from these."""
    longer = _longer(layout, of, len(records))
    added = [margin for margin in of if margin not in longer]
    known = Sums.of(_added_up(records, layout, added), layout, added)
    for margin, other in longer.items():
        (more,) = set(other).difference(margin)
        found = known.tables[other].sum(axis=other.index(more), dtype=layout.dtype)
        known.tables[margin] = found
    return known


def _longer(layout: TreeLayout, of: Sequence[Margin], records: int) -> dict[Margin, Margin]:
    """Return which margins follow from others with a feature more, these before those.

    Where there are fewer sums to add up than records: whole numbers, the same either way.
    """
    found: dict[Margin, tuple[int, Margin]] = {}
    for margin in sorted(of, key=len, reverse=True):
        size = layout.count([margin])
        for place in range(len(margin) if len(margin) > 1 and size <= records else 0):
            shorter = margin[:place] + margin[place + 1 :]
            if shorter not in found or size < found[shorter][0]:
                found[shorter] = size, margin
    asked = sorted(found.keys() & set(of), key=len, reverse=True)
    return {margin: found[margin][1] for margin in asked}


def _added_up(records: TreeRecords, layout: TreeLayout, of: Sequence[Margin]) -> NDArray[Any]:
    """Add up margins of records, in threads that have some margins each."""
    total = np.zeros(layout.count(of), dtype=layout.dtype)
    if len(records) * len(of) < 2**20:
        return records.add(layout, of, total)
    cuts = np.linspace(0, len(of), 8 * workers() + 1).astype(int).tolist()
    parts = [of[start:stop] for start, stop in pairwise(cuts)]
    ends = np.cumsum([layout.count(part) for part in parts])[:-1]
    jobs = zip(parts, np.split(total, ends), strict=True)
    in_threads(lambda job: records.add(layout, *job), jobs, workers())
    return total


@dataclass(frozen=True, eq=False)
class RemoteSums:
    """A cell whose sums an engine is asked for; its records stay where they are."""

    engine: Engine
    cells: CellsHandle
    cell: int
    scores: ScoresHandle | None
    reach: float

    def facts(self) -> tuple[list[NDArray[np.int64]], int]:
        """See :class:`Source`."""
        found = self.engine.tree_facts(self.cells, self.cell, self.scores, self.reach)
        ends = np.cumsum(self.cells.view.sizes)
        return np.split(found[:-1], ends[:-1]), int(found[-1])

    def region(self, layout: TreeLayout, occupied: list[NDArray[np.intp]], depth: int) -> Region:
        """See :class:`Source`."""
        of = layout.margins(depth)
        if depth < 3 or layout.count(of) <= MOST_SUMS:
            return _region(layout, occupied, depth, self.sums(layout, of))
        known = self.sums(layout, layout.margins(2))
        deeper = _ManySums(self, layout, _full_pairs(layout, known))
        return _region(layout, occupied, depth, known, deeper)

    def sums(self, layout: TreeLayout, of: Sequence[Margin]) -> Sums:
        """Ask for margins."""
        found = self.engine.tree_sums(self.cells, self.cell, layout, of, self.scores, self.reach)
        return Sums.of(found, layout, of)

    def below(self, split: Split) -> RemoteSums:
        """Return the records that pass a test."""
        below = self.engine.take(self.cells, np.array([self.cell]))
        if split.n_children == 1:  # the one test of a number with one code: nobody passes
            nobody = self.engine.take(below, np.zeros(0, dtype=np.intp))
            return RemoteSums(self.engine, nobody, 0, self.scores, self.reach)
        return RemoteSums(
            self.engine, self.engine.split(below, [split]), 1, self.scores, self.reach
        )


def sources(
    engine: Engine, cells: CellsHandle, scores: ScoresHandle | None, reach: float
) -> Iterator[Source]:
    """Yield for every cell where its sums come from: from records, unless there are too many."""
    values = engine.row_counts(cells) * len(cells.view.sizes)
    together = engine.gathers & (values <= MOST_GATHERED)
    start = 0
    while start < cells.size:
        if not together[start]:
            yield RemoteSums(engine, cells, start, scores, reach)
            start += 1
            continue
        # As many cells at once as fit: a pass over the table finds them all.
        size = int(np.searchsorted(np.cumsum(values[start:]), MOST_GATHERED, side="right"))
        size = min(size, int(np.argmin([*together[start:], False])))
        for records in engine.tree_rows(cells, start, start + size, scores, reach):
            yield GatheredRecords(*records, cells.view.sizes)
        start += size


# What is known of a region


def _region(
    layout: TreeLayout,
    occupied: list[NDArray[np.intp]],
    depth: int,
    known: Sums,
    deeper: Deeper | None = None,
) -> Region:
    """Return a region of which the margins for a draw are known, or what knows the deeper ones."""
    singles = _singles(layout, known)
    total = singles[: layout.first[1]].sum(axis=0, dtype=singles.dtype)
    if depth < 2:
        return Region(layout, occupied, total, singles)
    pairs = _full_pairs(layout, known)
    if depth == 3 and deeper is None:
        deeper = _Triples(layout, pairs, known)
    return Region(layout, occupied, total, singles, pairs, deeper)


def _singles(layout: TreeLayout, known: Sums) -> NDArray[Any]:
    return np.concatenate([known.tables[h,] for h in range(len(layout.order))])


def _full_pairs(layout: TreeLayout, known: Sums) -> NDArray[Any]:
    return _all_pairs(layout, _singles(layout, known), lambda g, h: known.tables[g, h])


def _all_pairs(
    layout: TreeLayout, singles: NDArray[Any], of: Callable[[int, int], NDArray[Any]]
) -> NDArray[Any]:
    """Return the sums by pairs of places, of which each pair of features is given once."""
    first, upper = layout.first, layout.upper
    pairs = np.zeros((int(first[upper]), *singles.shape), dtype=singles.dtype)
    for g in range(upper):
        mine = np.arange(first[g], first[g + 1])
        pairs[mine, mine] = singles[mine]
        for h in range(g + 1, len(layout.order)):
            found, others = of(g, h), slice(first[h], first[h + 1])
            pairs[first[g] : first[g + 1], others] = found
            if h < upper:
                pairs[others, first[g] : first[g + 1]] = found.swapaxes(0, 1)
    return pairs


def _planes(layout: TreeLayout, f: int, pairs: NDArray[Any], known: Sums) -> tuple[Any, ...]:
    """Return the sums by triples of an upper feature, as :meth:`Deeper.planes` says."""
    features, channels, sizes = len(layout.order), layout.channels, layout.sizes
    where = np.zeros((features, features, 5), dtype=np.int64)
    for g in range(f + 1, layout.upper):
        for h in range(features):
            if h not in (f, g):
                *margin, last = sorted((f, g, h))
                first, second = margin
                steps = {last: channels, second: channels * sizes[last]}
                steps[first] = steps[second] * sizes[second]
                begin = channels * known.begins[first, second, last]
                where[g, h] = begin, steps[f], steps[g], steps[h], sizes[h]
    nothing = np.zeros(0, dtype=np.intp)
    kind, labels = layout.numbers[0].dtype, np.uint8 if layout.labels < 2**8 else np.uint16
    places = np.zeros((0, features), dtype=kind)
    none = np.zeros(0, dtype=np.int32)
    lines = pairs.reshape(len(pairs), -1)
    return places, np.zeros(0, dtype=labels), none, nothing, nothing, known.flat, where, lines


@dataclass(frozen=True, eq=False)
class _Triples:
    """All sums by triples."""

    layout: TreeLayout
    pairs_of: NDArray[Any]
    known: Sums

    def planes(self, f: int) -> tuple[Any, ...]:
        """See :class:`Deeper`."""
        return _planes(self.layout, f, self.pairs_of, self.known)

    def pairs(self, h: int, side: NDArray[np.bool_], split: Split) -> NDArray[Any]:
        """See :class:`Deeper`."""
        del split
        first, kind = self.layout.first, self.pairs_of.dtype
        mine: NDArray[Any] = np.where(
            side[:, None, None], self.pairs_of[first[h] : first[h + 1]], kind.type(0)
        )

        def of(one: int, other: int) -> NDArray[Any]:
            if one == h:
                return mine[:, first[other] : first[other + 1]]
            if other == h:
                return mine[:, first[one] : first[one + 1]].swapaxes(0, 1)
            margin = tuple(sorted((h, one, other)))
            found = self.known.tables[margin].compress(side, axis=margin.index(h))
            return np.asarray(found.sum(axis=margin.index(h), dtype=kind))

        return _all_pairs(self.layout, mine.sum(axis=0, dtype=kind), of)


@dataclass(frozen=True, eq=False)
class _FewRecords:
    """Records of which there are fewer than sums by triples."""

    records: TreeRecords
    layout: TreeLayout
    places: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        kind = self.layout.numbers[0].dtype
        places = np.empty((len(self.records), len(self.records.columns)), dtype=kind)
        for h, column in enumerate(self.records.columns):
            np.add(column, self.layout.first[h], out=places[:, h], casting="unsafe")
        object.__setattr__(self, "places", places)

    def planes(self, f: int) -> tuple[Any, ...]:
        """See :class:`Deeper`."""
        codes, labels = self.records.columns[f], self.records.labels
        if labels is None:
            labels = np.zeros(len(self.records), dtype=np.uint8)
        order = np.argsort(codes, kind="stable")
        size = int(self.layout.first[f + 1] - self.layout.first[f])
        first = np.searchsorted(codes[order], np.arange(size + 1))
        sums, lines = (np.zeros((0,) * axes, dtype=self.layout.dtype) for axes in (1, 2))
        where = np.zeros((0, 0, 0), dtype=np.int64)
        return self.places, labels, self.records.weights, order, first, sums, where, lines

    def pairs(self, h: int, side: NDArray[np.bool_], split: Split) -> NDArray[Any]:
        """See :class:`Deeper`."""
        del split
        rows = np.flatnonzero(side[self.records.columns[h]])
        labels = self.records.labels
        passing = TreeRecords(
            [column[rows] for column in self.records.columns],
            None if labels is None else labels[rows],
            self.records.weights[rows],
        )
        return _full_pairs(self.layout, _added(passing, self.layout, self.layout.margins(2)))


@dataclass(frozen=True, eq=False)
class _ManySums:
    """Sums that are too many to be held at once: asked for when they are needed, and not kept."""

    source: RemoteSums
    layout: TreeLayout
    pairs_of: NDArray[Any]
    one_at_a_time: Lock = field(default_factory=Lock)

    def planes(self, f: int) -> tuple[Any, ...]:
        """See :class:`Deeper`."""
        of = {
            tuple(sorted((f, g, h)))
            for g in range(f + 1, self.layout.upper)
            for h in range(len(self.layout.order))
            if h not in (f, g)
        }
        with self.one_at_a_time:
            known = self.source.sums(self.layout, sorted(of))
        return _planes(self.layout, f, self.pairs_of, known)

    def pairs(self, h: int, side: NDArray[np.bool_], split: Split) -> NDArray[Any]:
        """See :class:`Deeper`."""
        del h, side
        known = self.source.below(split).sums(self.layout, self.layout.margins(2))
        return _full_pairs(self.layout, known)
