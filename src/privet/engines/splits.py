"""How a cell is divided, in terms of codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.engines.views import View


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

    def __post_init__(self) -> None:
        # Plain tuples of plain ints only: anything else could change what it says later, and send
        # records to cells that the ledger does not know.
        if type(self.feature) is not int:
            raise ValueError("a feature is a whole number, its position in the schema")
        if type(self.children) is not tuple or set(map(type, self.children)) != {int}:
            raise ValueError("children are whole numbers, one for every code, in a tuple")
        found = self.child_of
        if len(found) != len(self.children) or found.min() < 0 or found.max() >= len(found):
            raise ValueError("children are numbered from zero, and no more than codes")

    @classmethod
    def in_two(cls, feature: int, second: NDArray[np.bool_]) -> Split:
        """Return a split in two, from which codes go to the second child: a fast way to many."""
        if type(feature) is not int or second.dtype != bool or second.ndim != 1 or len(second) < 2:
            raise ValueError("give a feature's position, and for each of its codes a bool")
        split = object.__new__(cls)
        known = {"children": tuple(second.tobytes()), "child_of": second.astype(np.int32)}
        split.__dict__.update(known, feature=feature)
        return split

    @cached_property
    def n_children(self) -> int:
        """How many children there are, empty ones included."""
        return int(self.child_of.max()) + 1

    @cached_property
    def child_of(self) -> NDArray[np.int32]:
        """The children as an array."""
        try:  # a thousand codes are read three times faster as bytes
            return np.frombuffer(bytes(self.children), dtype=np.uint8).astype(np.int32)
        except ValueError:  # some are no bytes; none is more than there are codes
            most = len(self.children)
            return np.array([child if 0 <= child < most else -1 for child in self.children], "i4")

    def fits(self, view: View) -> bool:
        """Tell whether it has a child for every code of its feature, and no child is left out."""
        return (
            0 <= self.feature < len(view.sizes)
            and len(self.children) == view.sizes[self.feature]
            and bool(np.bincount(self.child_of).all())
        )
