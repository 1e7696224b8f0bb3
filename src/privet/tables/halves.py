"""Dividing cells in halves: which feature's halves differ most, and where the middle is.

Inside the wall. A cell is halved along an :class:`Axis`, an order of a feature's codes, or by one
of a public list of subsets. The *halving loss* of an axis is the loss of the two halves of a cell;
records that share the middle code are divided in proportion, so that one more record shifts half a
record and no more, whatever the ties. Proof: ``docs/proofs/forests.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.criteria import SAD, Criterion, Gini, Max
from privet.privacy import Exact

#: Units per record of a halving loss.
UNIT = 2**10
#: How many of these a halving loss can be off by rounding, in all four places where it matters.
_ROUNDING = 3


@dataclass(frozen=True, eq=False)
class Axis:
    """One feature of one cell, and the public list of ways to divide it.

    Attributes
    ----------
    feature : int
        The feature's position in the schema.
    first, last : int
        Cut ``first + 1`` to cut ``last``: cut p divides the places below p from the others.
    places : array of int or None
        The place of every code in a public order. None: codes are in their order.
    sides : bool array of shape (options, codes) or None
        Instead of cuts: which codes go to the second child.
    """

    feature: int
    first: int
    last: int
    places: NDArray[np.intp] | None = None
    sides: NDArray[np.bool_] | None = None


def halving_losses(counts: NDArray[np.int64], criterion: Criterion) -> Exact:
    """Return the losses of cells' halves, from counts of shape (cells, 3, classes).

    The three are the records below the middle code, at it and above it.
    """
    below, middle, above = np.moveaxis(counts.astype(np.float64), 1, 0)
    rows = counts.sum(axis=(1, 2))
    here = np.maximum(middle.sum(axis=-1), 1.0)
    share = ((rows / 2 - below.sum(axis=-1)) / here)[:, None]
    losses = _loss(below + share * middle, criterion) + _loss(
        above + (1 - share) * middle, criterion
    )
    return Exact(np.rint(losses * UNIT).astype(np.int64))


def halving_spread(criterion: Criterion) -> int:
    """Return how far apart a record's changes of two halving losses are: twice the criterion's."""
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
