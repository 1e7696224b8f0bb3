"""How finely a table is seen: public cut points per feature, of which codes are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.schema import Numeric, Schema

#: The coarse grid has every so many-th point of the fine one.
_COARSE = 64


@dataclass(frozen=True)
class View:
    """One way to turn records into codes.

    Attributes
    ----------
    schema : Schema
    cuts : tuple
        For every numeric feature its increasing cut points, for every categorical one None.
        Code j of a number means that j cuts are not above it; the code after the last interval is
        the extra bin.
    """

    schema: Schema
    cuts: tuple[tuple[float, ...] | None, ...]

    def __post_init__(self) -> None:
        numbers = [isinstance(feature, Numeric) for feature in self.schema.features.values()]
        if [cuts is not None for cuts in self.cuts] != numbers:
            raise ValueError("a view has cuts for every number, and for nothing else")
        # Out of order, a search for one record's code would depend on the records before it.
        for cuts in self.cuts:
            found = np.array(cuts or (), dtype=np.float64)
            if found.ndim != 1 or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
                raise ValueError("cuts are finite numbers in rising order")

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
                tuple(coarse_grid(feature).tolist()) if isinstance(feature, Numeric) else None
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


def fine_grid(feature: Numeric) -> NDArray[np.float64]:
    """Return the public grid on which quantiles are found: about 65,000 increasing points.

    Half of them are evenly spaced. The other half has even ratios (400 or 800 steps per factor of
    two) towards the lower bound or, if that lies within, towards zero from both sides: a quantity
    with a heavy tail has most of its values in a tiny part of its range.
    """
    low, width = feature.low, feature.high - feature.low
    points = [low + width * (np.arange(1, 2**15) / 2**15)]
    if low < 0 < feature.high:
        ratios = 2.0 ** -(np.arange(1, 16_000) / 400)
        points += [np.zeros(1), feature.high * ratios, low * ratios]
    else:
        points.append(low + width * 2.0 ** -(np.arange(1, 32_000) / 800))
    grid = np.unique(np.concatenate(points))
    return grid[(grid > low) & (grid < feature.high)]


def coarse_grid(feature: Numeric) -> NDArray[np.float64]:
    """Return every 64th point of the fine grid."""
    return fine_grid(feature)[_COARSE // 2 :: _COARSE]
