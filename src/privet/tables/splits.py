"""Splits in terms of codes, and the public lists of them that cells choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.tables.views import View


@dataclass(frozen=True)
class Split:
    """Divide a cell by one feature: the record's code says which child it goes to.

    Attributes
    ----------
    feature : int
        The feature's position in the schema.
    children : tuple of int
        The child of every code, extra bin included; children are numbered from zero.
    """

    feature: int
    children: tuple[int, ...]

    @property
    def n_children(self) -> int:
        """How many children there are, empty ones included."""
        return max(self.children) + 1


@dataclass(frozen=True)
class Multiway:
    """One candidate per feature: a child for every code of it, as in ID3."""

    def losses(self, counts: NDArray[Any], criterion: Criterion) -> NDArray[np.int64]:
        """Return the loss of the candidate from counts of shape (cells, codes, classes)."""
        return np.asarray(criterion.losses(counts).sum(axis=-1))

    def split(self, feature: int, view: View) -> Split:
        """Return the candidate of a feature."""
        return Split(feature, tuple(range(view.sizes[feature])))


def best_correct(counts: NDArray[Any], numeric: bool) -> NDArray[np.int64]:
    """Return how many records the best tree of depth 1 on a feature classifies correctly.

    Parameters
    ----------
    counts : array of shape (cells, codes, classes)
    numeric : bool
        Whether codes are ordered (one threshold) or not (a label for every code).
    """
    counts = np.asarray(counts, dtype=np.int64)
    if not numeric:
        return np.asarray(counts.max(axis=2).sum(axis=1))
    left = np.cumsum(counts, axis=1)
    right = left[:, -1:, :] - left
    return np.asarray((left.max(axis=2) + right.max(axis=2)).max(axis=1))


@dataclass(frozen=True)
class Leaf:
    """The end of a small tree: a class, by its position in the schema."""

    label: int


@dataclass(frozen=True)
class Branch:
    """A split with what follows on each of its children."""

    split: Split
    children: tuple[Sketch, ...]


#: A small tree as a wall's answer.
Sketch = Leaf | Branch
