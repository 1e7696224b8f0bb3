"""Which cut points numeric features get: a public grid of several scales, and private quantiles."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from privet.privacy.budget import Amount
from privet.schema import Numeric, Schema
from privet.tables import Each, Table, View

#: Private quantiles are found by halving this many times.
QUANTILE_LEVELS = 4
#: Halvings of a range towards its lower bound, and towards zero.
HALVINGS = 14
#: Up to this many codes, all ways to divide them in two are offered, else one against the rest.
FEW_CODES = 5


def n_numeric(schema: Schema) -> int:
    """Return the number of numeric features."""
    return sum(isinstance(feature, Numeric) for feature in schema.features.values())


def grid_of(schema: Schema) -> int:
    """Return how many even steps a numeric feature's range is cut into: fewer on wide tables."""
    numeric = n_numeric(schema)
    return 32 if numeric <= 12 else 16 if numeric <= 30 else 8 if numeric <= 100 else 4


def most_tests(
    schema: Schema, grid: int, *, quantiles: bool, levels: int = QUANTILE_LEVELS
) -> list[int]:
    """Return an upper bound on the number of tests of every feature, by public numbers."""
    return [
        len(scale_cuts(feature, grid)) + (2**levels - 1) * quantiles + 1
        if isinstance(feature, Numeric)
        else feature.size
        for feature in schema.features.values()
    ]


def make_view(
    table: Table,
    grid: int,
    quantiles: Amount | None,
    *,
    halvings: int = HALVINGS,
    levels: int = QUANTILE_LEVELS,
) -> View:
    """Return the grid's cut points, and private quantiles if an amount is given for all of them."""
    schema = table.schema
    cuts: list[tuple[float, ...] | None] = []
    for j, feature in enumerate(schema.features.values()):
        if not isinstance(feature, Numeric):
            cuts.append(None)
            continue
        points = set(scale_cuts(feature, grid, halvings))
        if quantiles is not None:
            points |= set(table.quantiles(j, 2**levels, quantiles / n_numeric(schema)))
        cuts.append(tuple(sorted(points)))
    return View(schema, tuple(cuts))


def even_view(schema: Schema, steps: int) -> View:
    """Return the view in which every number is divided into ``steps`` equal intervals.

    Fewer, where bounds are too close for that.
    """
    features = schema.features.values()
    cuts = [even_cuts(kind, steps) if isinstance(kind, Numeric) else None for kind in features]
    return View(schema, tuple(cuts))


def even_cuts(feature: Numeric, steps: int) -> tuple[float, ...]:
    """Return the cuts between ``steps`` equal intervals of a number's range, as far as they differ.

    Few doubles may lie between bounds that are large and close.
    """
    inner = np.arange(1, steps) / steps
    return feature.nearest(feature.low + (feature.high - feature.low) * inner)


def scale_cuts(feature: Numeric, grid: int, halvings: int = HALVINGS) -> tuple[float, ...]:
    """Return cuts at several scales: even steps, halvings towards the ends and towards zero."""
    low, high = feature.low, feature.high
    width = high - low
    points = {low + width * (i / grid) for i in range(1, grid)}
    points |= {low + width * 2.0**-k for k in range(1, halvings + 1)}
    least = 2.0 ** -(halvings + 10)
    points.add(low + width * least)  # "above the lower bound"
    if low < 0 < high:
        points |= {end * 2.0**-k for k in range(1, halvings + 1) for end in (low, high)}
        points.add(width * least)  # "above zero"
    return feature.nearest(point for point in points if low < point < high)


def middle_view(schema: Schema) -> View:
    """Return the view with one public cut per number, the middle one of a coarse grid of scales.

    None, where the bounds are so close that there is no cut between them.
    """
    cuts: list[tuple[float, ...] | None] = []
    for feature in schema.features.values():
        points = scale_cuts(feature, 8, 6) if isinstance(feature, Numeric) else None
        cuts.append(points and points[len(points) // 2 : len(points) // 2 + 1])
    return View(schema, tuple(cuts))


def two_sides(view: View, feature: int) -> NDArray[np.bool_] | Each:
    """Return the ways to divide a feature's codes in two; missing numbers are above all others."""
    codes = np.arange(view.sizes[feature])
    if view.cuts[feature] is not None:
        return np.asarray(codes[None, :] > codes[:-1, None])
    if len(codes) > FEW_CODES:
        return Each(len(codes), len(codes))
    groups = itertools.product([False, True], repeat=len(codes) - 1)
    return np.array([(False, *group) for group in groups if any(group)])
