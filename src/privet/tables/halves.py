"""Dividing cells in halves: which feature's halves differ most, and where the middle is.

Inside the wall. A cell is halved along an :class:`Axis`, an order of a feature's codes, or by one
of a public list of subsets. The *halving loss* of an axis is the loss of the two halves of a cell;
records that share the middle code are divided in proportion, so that one more record shifts half a
record and no more, whatever the ties. Proof: ``docs/proofs/forests.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privet.criteria import SAD, Criterion, Gini, Max
from privet.engines import Axis, Sparse
from privet.privacy import Exact

#: Units per record of a halving loss.
UNIT = 2**10
#: By how many units rounding can move a halving loss apart from another, in all.
_ROUNDING = 3
#: Cells whose counts fit in a processor's cache.
_CELLS = 256


def ways_to_halve(
    axes: Sequence[Axis],
    cells: NDArray[np.int64],
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
    sizes: Sequence[int],
) -> tuple[Exact, NDArray[np.int64]]:
    """Return for every cell the scores of its cuts (or subsets), and how many cuts share each.

    A score is minus the difference between the two sides. Neighbouring cuts with no record between
    them share a score and form a *stretch*; rows are filled up with stretches of length zero.

    Parameters
    ----------
    axes : sequence of Axis, one per cell
    cells, places, counts : array
        Where on its axis a cell has records, in order, and how many.
    sizes : sequence of int
        The number of codes of every feature.
    """
    first = np.array([axis.first for axis in axes])
    last = np.array([axis.last for axis in axes])
    listed = np.array([axis.sides is not None for axis in axes], dtype=bool)
    bounds = np.searchsorted(cells, np.arange(len(axes) + 1))
    before = np.concatenate([[0], np.cumsum(counts)])
    rows = before[bounds[1:]] - before[bounds[:-1]]
    # Cut p has the places below p on its left.
    inner = np.flatnonzero((places >= first[cells]) & (places < last[cells]) & ~listed[cells])
    owner = cells[inner]
    column = 1 + np.arange(len(inner)) - np.searchsorted(owner, np.arange(len(axes)))[owner]
    width = max([1, *(len(axis.sides) for axis in axes if axis.sides is not None)])
    width = max(width, int(column.max(initial=0)) + 1)
    edges = np.repeat(last[:, None], width + 1, axis=1)
    edges[:, 0] = first
    edges[owner, column] = places[inner]
    under = np.zeros((len(axes), width), dtype=np.int64)
    np.add.at(under[:, 0], cells, np.where(places < first[cells], counts, 0))
    under[owner, column] = before[inner + 1] - before[bounds[owner]]
    lengths = np.diff(edges, axis=1)
    for cell in np.flatnonzero(listed).tolist():
        axis, mine = axes[cell], slice(bounds[cell], bounds[cell + 1])
        assert axis.sides is not None
        records = np.zeros(sizes[axis.feature], dtype=np.int64)
        records[places[mine]] = counts[mine]
        records = records if axis.places is None else records[axis.places]
        under[cell, : len(axis.sides)] = axis.sides @ records
        lengths[cell] = np.arange(width) < len(axis.sides)
    return Exact(-np.abs(rows[:, None] - 2 * under)), lengths


def middles(taken: Sparse, cells: int, width: int) -> NDArray[np.int32]:
    """Return the place of every cell's middle record; of two in the middle, the lower one.

    Parameters
    ----------
    taken : pair of arrays
        Numbers ``cell * width + place`` of where records are, in order, and how many there are.
    cells, width : int
    """
    places, counts = taken
    below = np.concatenate([[0], np.cumsum(counts)])
    first = np.searchsorted(places, np.arange(cells + 1) * width)
    sizes = below[first[1:]] - below[first[:-1]]
    ranks = below[first[:-1]] + (np.maximum(sizes, 1) - 1) // 2
    found = np.searchsorted(below, ranks, side="right") - 1
    inside = np.minimum(found, max(len(places) - 1, 0))
    middle = places[inside] % width if len(places) else np.zeros(cells, dtype=np.int64)
    return np.asarray(middle, dtype=np.int32)


def halving_losses(counts: NDArray[np.int64], criterion: Criterion) -> Exact:
    """Return the losses of cells' halves, from counts of shape (cells, 3, classes).

    The three are the records below the middle code, at it and above it.
    """
    parts = [
        _halving_losses(counts[start : start + _CELLS], criterion)
        for start in range(0, len(counts), _CELLS)
    ]
    return Exact(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


def _halving_losses(counts: NDArray[np.int64], criterion: Criterion) -> NDArray[np.int64]:
    below, middle, above = np.moveaxis(counts.astype(np.float64), 1, 0)
    rows = counts.sum(axis=(1, 2))
    here = np.maximum(middle.sum(axis=-1), 1.0)
    share = ((rows / 2 - below.sum(axis=-1)) / here)[:, None]
    losses = _loss(below + share * middle, criterion) + _loss(
        above + (1 - share) * middle, criterion
    )
    return np.rint(losses * UNIT).astype(np.int64)


def halving_spread(criterion: Criterion) -> int:
    """Return the spread of halving losses: twice the criterion's, and what rounding adds."""
    return 2 * -(-criterion.spread // criterion.scale) * UNIT + _ROUNDING


def _loss(weights: NDArray[np.float64], criterion: Criterion) -> NDArray[np.float64]:
    """Return the least total loss of weighted records, by class or by target value."""
    total = weights.sum(axis=-1)
    if isinstance(criterion, Max):
        return np.asarray(total - weights.max(axis=-1))
    if isinstance(criterion, Gini):
        return np.asarray(total - (weights**2).sum(axis=-1) / np.maximum(total, 0.5))
    if isinstance(criterion, SAD):
        left = np.cumsum(weights, axis=-1)[..., :-1]
        return np.asarray(np.minimum(left, total[..., None] - left).sum(axis=-1) / criterion.steps)
    raise ValueError(f"halves have no loss by {criterion.name}")
