"""Along what a cell may be halved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    def second(self, way: int, size: int) -> NDArray[np.bool_]:
        """Return which of ``size`` codes one of the axis' cuts or subsets sends to the second."""
        if self.sides is not None:
            return np.asarray(self.sides[way])
        places = np.arange(size) if self.places is None else self.places
        return np.asarray(places > self.first + way)


@dataclass(frozen=True, eq=False)
class Axes:
    """Many axes as arrays, without their sides: a level of a forest has tens of thousands.

    Attributes
    ----------
    features, first, last : array
        As of an :class:`Axis`.
    starts, sizes : array
        Where the places of an axis begin in ``orders``, and how many codes have one; -1 and 0 where
        codes are in their order.
    orders : array
    """

    features: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    orders: NDArray[np.int64]

    @classmethod
    def of(cls, axes: Axes | Sequence[Axis]) -> Axes:
        """Join axes."""
        if isinstance(axes, Axes):
            return axes
        listed = [axis.places for axis in axes if axis.places is not None]
        found = [
            (axis.feature, axis.first, axis.last, 0 if axis.places is None else len(axis.places))
            for axis in axes
        ]
        return cls.laid_out(
            np.array(found, dtype=np.int64).reshape(-1, 4),
            np.concatenate([np.zeros(0, dtype=np.int64), *listed], dtype=np.int64),
        )

    @classmethod
    def laid_out(cls, found: NDArray[np.int64], orders: NDArray[np.int64]) -> Axes:
        """Return axes from features, first, last and sizes in lines, and their joined orders."""
        features, first, last, sizes = found.T
        starts = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
        return cls(features.astype(np.int32), first, last, starts, sizes, orders)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, place: int) -> Axis:
        start, size = int(self.starts[place]), int(self.sizes[place])
        places = None if start < 0 else self.orders[start : start + size]
        first, last = int(self.first[place]), int(self.last[place])
        return Axis(int(self.features[place]), first, last, places)

    def __iter__(self) -> Iterator[Axis]:
        return (self[place] for place in range(len(self)))

    def take(self, chosen: NDArray[Any]) -> Axes:
        """Return some of the axes, by their positions."""
        return Axes(
            self.features[chosen],
            self.first[chosen],
            self.last[chosen],
            self.starts[chosen],
            self.sizes[chosen],
            self.orders,
        )

    def places(
        self, cells: NDArray[np.int64], codes: NDArray[Any], rows: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return where some records lie on the axes of their cells, one for each cell."""
        places = codes[self.features[cells], rows].astype(np.int64)
        listed = np.flatnonzero(self.starts[cells] >= 0)
        places[listed] = self.orders[self.starts[cells[listed]] + places[listed]]
        return np.asarray(places)


@dataclass(frozen=True, eq=False)
class AxisLists:
    """Some axes for every cell, of which one may be chosen.

    Attributes
    ----------
    axes : Axes
        Those of the first cell first.
    lengths : array
        How many each cell has.
    """

    axes: Axes
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Sequence[Sequence[Axis]]) -> AxisLists:
        """Join the lists of all cells."""
        axes = Axes.of([axis for some in lists for axis in some])
        return cls(axes, np.array([len(some) for some in lists], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, cell: int) -> list[Axis]:
        first = int(self.lengths[:cell].sum())
        return [self.axes[first + k] for k in range(int(self.lengths[cell]))]

    @property
    def longest(self) -> int:
        """How many axes a cell has at most."""
        return int(self.lengths.max(initial=0))

    def at(self, places: int | Sequence[int]) -> Axes:
        """Return one axis of every cell, by its place in the list; the last if that is shorter.

        Every cell needs one.
        """
        first = np.cumsum(self.lengths) - self.lengths
        return self.axes.take(first + np.minimum(places, self.lengths - 1))
