"""Along what a cell may be halved."""

from __future__ import annotations

from dataclasses import dataclass

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

    def children(self, way: int, size: int) -> tuple[int, ...]:
        """Return the child of each of ``size`` codes, for one of the axis' cuts or subsets."""
        if self.sides is not None:
            return tuple(self.sides[way].astype(int).tolist())
        cut = self.first + 1 + way
        if self.places is None:
            return (0,) * cut + (1,) * (size - cut)
        return tuple((self.places >= cut).astype(int).tolist())
