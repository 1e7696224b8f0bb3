"""Views: cuts are points of the public grid, and codes follow from places on it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Numeric, Schema
from privet.engines import View

SCHEMA = Schema(
    {"x": Numeric(-3, 8), "c": Categorical(["u", "v"]), "z": Numeric(0, 1, bins=1)},
    target="y",
    classes=[0, 1],
)
GRID = SCHEMA.features["x"].grid


@pytest.mark.parametrize(
    ("cuts", "why"),
    [
        ((float(GRID[5]), float(GRID[9])), None),
        ((), None),
        ((math.nextafter(float(GRID[5]), math.inf),), "point of its feature's grid"),
        ((float(GRID[5]), float(GRID[-1]) + 1e-9), "point of its feature's grid"),
        ((-3.0,), "point of its feature's grid"),
        ((8.0,), "point of its feature's grid"),
        ((-4.0, 9.0), "point of its feature's grid"),
        ((float(GRID[9]), float(GRID[5])), "rising order"),
        ((float(GRID[5]), float(GRID[5])), "rising order"),
        ((math.nan,), "finite numbers"),
        ((math.inf,), "finite numbers"),
        ((1,), "floats in a tuple"),
        ([float(GRID[5])], "floats in a tuple"),
        ((np.float64(GRID[5]),), "floats in a tuple"),
        (None, "cuts for every number"),
    ],
)
def test_a_cut_is_a_point_of_the_grid(cuts, why):
    if why is None:
        assert View(SCHEMA, (cuts, None, ())).sizes == (len(cuts) + 2, 3, 2)
        return
    with pytest.raises(ValueError, match=why):
        View(SCHEMA, (cuts, None, ()))


def test_a_category_has_no_cuts():
    with pytest.raises(ValueError, match="cuts for every number"):
        View(SCHEMA, ((), (), ()))


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, len(GRID) - 1), max_size=400))
def test_the_code_of_a_place_is_how_many_cuts_are_not_above(chosen):
    cuts = tuple(GRID[sorted(chosen)].tolist())
    view = View(SCHEMA, (cuts, None, ()))
    table = view.table(0)
    assert table.dtype == (np.uint8 if len(cuts) + 2 <= 2**8 else np.uint16)
    assert len(table) == len(GRID) + 2
    # A number at place p lies between point p - 1 and point p.
    numbers = np.concatenate([[-np.inf], GRID])
    assert table[:-1].tolist() == np.searchsorted(cuts, numbers, side="right").tolist()
    assert table[-1] == len(cuts) + 1  # the missing ones
    assert view.table(1) is None


@pytest.mark.parametrize("view", [View.of_bins(SCHEMA), View.of_grid(SCHEMA)])
def test_a_view_of_all_the_grid_tells_all_places_apart(view):
    for feature, cuts in zip(SCHEMA.features.values(), view.cuts, strict=True):
        assert (cuts is None) == isinstance(feature, Categorical)
        if cuts is not None:
            assert set(cuts) <= set(feature.grid.tolist())
    whole = View(SCHEMA, (tuple(GRID.tolist()), None, ()))
    assert whole.table(0).tolist() == list(range(len(GRID) + 2))
