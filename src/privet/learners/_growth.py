"""Trees grown level by level, all trees of a forest at once, and what their leaves say.

A forest on disjoint parts of a table is one set of cells, so that each level of all trees is one
question. The coins that choose features are public: they come from a key that has nothing to do
with the table, so numpy's generator is good enough for them. Every tree has coins of its own: how
one tree grows must not decide what another one is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from privet.learners._assembly import as_test
from privet.privacy.budget import Amount
from privet.tables import Cells, Split, Table, View
from privet.tree import Node, Tree

#: Class shares are kept above this part of an even share.
_LEAST = 1e-3

#: For every feature, the codes that a record can have in a cell.
Region = tuple[Sequence[int], ...]
#: Chooses a split for every cell, or None where none is possible. It is given the cells, their
#: regions, and the number of the tree that each belongs to.
Chooser = Callable[[Cells, list[Region], list[int]], "list[Split | None]"]


@dataclass(frozen=True)
class Growth:
    """Grown trees.

    Attributes
    ----------
    levels : list of lists of (Split or None)
        The splits of every level, cell by cell; a cell without one is a cell of the next level.
    leaves : Cells
    """

    levels: list[list[Split | None]]
    leaves: Cells

    def parents(self, level: int) -> NDArray[np.intp]:
        """Return for every cell below a level the cell that it came from."""
        splits = self.levels[level]
        return np.repeat(np.arange(len(splits)), [s.n_children if s else 1 for s in splits])


def everything(view: View) -> Region:
    """Return the region of all records."""
    return tuple(
        tuple(range(size)) if cuts is None else range(size)
        for size, cuts in zip(view.sizes, view.cuts, strict=True)
    )


def grow(cells: Cells, view: View, depth: int, choose: Chooser) -> Growth:
    """Grow all cells, each the root of a tree, by ``depth`` levels."""
    regions, trees = [everything(view)] * len(cells), list(range(len(cells)))
    levels = []
    for _ in range(depth):
        splits, cells, regions = divide(cells, view, choose(cells, regions, trees), regions)
        if not any(splits):
            break
        levels.append(splits)
        trees = trees_below(splits, trees)
    return Growth(levels, cells)


def trees_below(splits: Sequence[Split | None], trees: Sequence[int]) -> list[int]:
    """Return the number of the tree that each child belongs to."""
    return [
        tree
        for split, tree in zip(splits, trees, strict=True)
        for _ in range(split.n_children if split else 1)
    ]


def divide(
    cells: Cells, view: View, splits: Sequence[Split | None], regions: Sequence[Region]
) -> tuple[list[Split | None], Cells, list[Region]]:
    """Return the splits that divide their region, the cells below, and their regions.

    A split of which one side cannot be reached is dropped: post-processing.
    """
    kept: list[Split | None] = []
    found: list[Region] = []
    for split, region in zip(splits, regions, strict=True):
        parts = _below(split, region) if split else []
        kept.append(split if parts else None)
        found += parts or [region]
    stay = Split(0, (0,) * view.sizes[0])
    return kept, cells.split([split or stay for split in kept]), found


def _below(split: Split, region: Region) -> list[Region]:
    """Return the regions of a split's children; none if one of them is empty."""
    feature, codes = split.feature, region[split.feature]
    parts: list[Sequence[int]] = []
    if isinstance(codes, range):
        # A number may have a thousand codes, mostly in one stretch for each child.
        mine = split.child_of[codes.start : codes.stop]
        stops = [0, *(np.flatnonzero(np.diff(mine)) + 1).tolist(), len(mine)]
        if len(stops) == split.n_children + 1:
            stretches = {
                int(mine[start]): range(codes.start + start, codes.start + stop)
                for start, stop in pairwise(stops)
            }
            parts = [stretches.get(child, ()) for child in range(split.n_children)]
    parts = parts or [
        tuple(code for code in codes if split.children[code] == child)
        for child in range(split.n_children)
    ]
    if not all(parts):
        return []
    return [(*region[:feature], part, *region[feature + 1 :]) for part in parts]


def means_of(table: Table, growth: Growth, amount: Amount) -> NDArray[np.float64]:
    """Buy sums of the target in the leaves; return means, as parts of the way between bounds.

    Each mean is shrunk towards that of the cell above, which counts for as many records as the
    noise of the sum is worth. Released numbers alone, hence post-processing.
    """
    middle = table.start_scores((0.5,))
    bought = growth.leaves.noisy_gradients(middle, amount, reach=0.5)
    sums = np.concatenate([0.5 * (bought.curvature + bought.pull), bought.curvature], axis=1)
    deviation = 0.5 * bought.deviation
    value = np.full((1, 1), 0.5)
    for level, (found, leaves) in enumerate(_sums(growth, sums)):
        before = value[growth.parents(level - 1), 0] if level else 0.5
        strength = deviation * np.sqrt(leaves)
        below = np.maximum(found[:, 1], 0.0) + strength
        step = np.divide(
            found[:, 0] - found[:, 1] * before, below, out=np.zeros(len(below)), where=below > 0
        )
        value = np.clip(before + step, 0.0, 1.0)[:, None]
    return value


def shares_of(growth: Growth, counts: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Return class shares, none of them zero, from noisy class counts and their noise's scale.

    Shrunk towards the cells above, as in :func:`means_of`.
    """
    classes = counts.shape[1]
    value = np.full((1, classes), 1 / classes)
    for level, (found, leaves) in enumerate(_sums(growth, np.asarray(counts, dtype=np.float64))):
        before = value[growth.parents(level - 1)] if level else value
        total = found.sum(axis=1, keepdims=True)
        strength = 1 + scale * np.sqrt(2 * leaves)[:, None]
        value = before + (found - total * before) / (np.maximum(total, 0.0) + strength)
        value = np.maximum(value, _LEAST / classes)
        value /= value.sum(axis=1, keepdims=True)
    return value


def _sums(
    growth: Growth, leaves: NDArray[np.float64]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return for every level the sum of the leaves below each cell, and how many these are."""
    found: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = [(leaves, np.ones(len(leaves)))]
    for level in reversed(range(len(growth.levels))):
        below, number = found[0]
        parents = growth.parents(level)
        total = np.zeros((len(growth.levels[level]), below.shape[1]))
        np.add.at(total, parents, below)
        found.insert(0, (total, np.bincount(parents, number).astype(np.float64)))
    return found


def trees_of(
    growth: Growth, view: View, values: NDArray[np.float64], *, scores: int
) -> tuple[Tree, ...]:
    """Return one published tree for every cell that was there at the start."""
    roots = len(growth.levels[0]) if growth.levels else len(values)
    first = [_first_children(splits) for splits in growth.levels]
    return tuple(_tree(root, growth, first, view, values, scores=scores) for root in range(roots))


def _first_children(splits: Sequence[Split | None]) -> list[int]:
    """Return for every cell of a level the first of its cells in the next."""
    return list(accumulate((split.n_children if split else 1 for split in splits), initial=0))


def _tree(
    root: int,
    growth: Growth,
    first_children: list[list[int]],
    view: View,
    values: NDArray[np.float64],
    *,
    scores: int,
) -> Tree:
    level = [root]
    pending = [0]  # places in `nodes` of the cells of this level
    slots: list[Node | None] = [None]
    for splits, first in zip(growth.levels, first_children, strict=True):
        below, places = [], []
        for cell, place in zip(level, pending, strict=True):
            split = splits[cell]
            if split is None:
                below.append(first[cell])
                places.append(place)
                continue
            children = tuple(range(len(slots), len(slots) + split.n_children))
            slots += [None] * split.n_children
            slots[place] = Node(as_test(split, view), children)
            below += range(first[cell], first[cell] + split.n_children)
            places += children
        level, pending = below, places
    for cell, place in zip(level, pending, strict=True):
        slots[place] = Node(value=tuple(values[cell].tolist()))
    return Tree(view.schema, tuple(node for node in slots if node is not None), scores)
