"""How finely a table is seen: public cuts of every number, between which its codes lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.schema import Numeric, Schema


@dataclass(frozen=True)
class View:
    """One way to turn records into codes.

    Attributes
    ----------
    schema : Schema
    cuts : tuple
        For every numeric feature its increasing cut points, all of them on the feature's grid; for
        every categorical one None. Code j of a number means that j cuts are not above it; the last
        code is for missing values.
    """

    schema: Schema
    cuts: tuple[tuple[float, ...] | None, ...]

    def __post_init__(self) -> None:
        numbers = [isinstance(feature, Numeric) for feature in self.schema.features.values()]
        if [cuts is not None for cuts in self.cuts] != numbers:
            raise ValueError("a view has cuts for every number, and for nothing else")
        # Numbers of another kind could fail for some records and not for others; out of order, a
        # search for one record's code would depend on the records before it.
        for feature, cuts in zip(self.schema.features.values(), self.cuts, strict=True):
            if cuts is None or not isinstance(feature, Numeric):
                continue
            if type(cuts) is not tuple or not set(map(type, cuts)) <= {float}:
                raise ValueError("cuts are floats in a tuple")
            found = np.array(cuts, dtype=np.float64)
            if not np.isfinite(found).all() or (np.diff(found) <= 0).any():
                raise ValueError("cuts are finite numbers in rising order")
            grid = feature.grid
            places = np.minimum(np.searchsorted(grid, found), max(len(grid) - 1, 0))
            if len(found) and (not len(grid) or (grid[places] != found).any()):
                raise ValueError("a cut is a point of its feature's grid (see Numeric.nearest)")

    @classmethod
    def of_bins(cls, schema: Schema) -> View:
        """Return the view through the schema's own bins."""
        return cls(
            schema,
            tuple(
                tuple(feature.cuts.tolist()) if isinstance(feature, Numeric) else None
                for feature in schema.features.values()
            ),
        )

    @classmethod
    def of_grid(cls, schema: Schema) -> View:
        """Return the view with about a thousand public cuts per number, denser towards zero."""
        return cls(
            schema,
            tuple(
                tuple(feature.coarse.tolist()) if isinstance(feature, Numeric) else None
                for feature in schema.features.values()
            ),
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of every feature, extra bins included."""
        return tuple(
            feature.size if cuts is None else len(cuts) + 2
            for feature, cuts in zip(self.schema.features.values(), self.cuts, strict=True)
        )

    def table(self, feature: int) -> NDArray[Any] | None:
        """Return the code of each place on a number's grid; None for a category."""
        cuts, kind = self.cuts[feature], list(self.schema.features.values())[feature]
        if cuts is None or not isinstance(kind, Numeric):
            return None
        return _table(kind, cuts, wide=max(self.sizes) > 2**8)


# Shared by equal features, of which tables can have thousands.
@lru_cache(maxsize=256)
def _table(feature: Numeric, cuts: tuple[float, ...], *, wide: bool) -> NDArray[Any]:
    # A number has code j if j cuts are not above it; it has place p if p points are not.
    passed = np.searchsorted(feature.grid, cuts) + 1
    table = np.searchsorted(passed, np.arange(len(feature.grid) + 2), side="right")
    table[-1] = len(cuts) + 1
    return table.astype(np.uint16 if wide else np.uint8)
