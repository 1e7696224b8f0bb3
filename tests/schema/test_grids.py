"""The public grid of a numeric feature: every cut that a learner may use is on it."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet import Numeric, Schema
from privet.grids import coarse_grid, fine_grid, landmarks, thin
from privet.learners import additive, friedman_schuster
from privet.learners._views import HALVINGS, even_view, scale_cuts
from privet.schema import MAX_CUTS
from privet.tables import View

NUMBERS = st.floats(-1e150, 1e150) | st.integers(-1000, 1000).map(float)
BOUNDS = st.lists(NUMBERS, min_size=2, max_size=2, unique=True).map(sorted)


@pytest.mark.parametrize(("low", "high"), [(0, 1000), (-3, 8), (5, 6)])
def test_the_fine_grid_lies_within_the_bounds_and_rises(low, high):
    fine, coarse = fine_grid(low, high), coarse_grid(low, high)
    assert low < fine[0] < fine[-1] < high
    assert (np.diff(fine) > 0).all()
    assert set(coarse) < set(fine)
    assert 800 < len(coarse) < 1024 < len(fine) < 2**16


def numeric(low, high, bins):
    """Return a feature with ``bins`` bins, or fewer if its bounds are close."""
    try:
        return Numeric(low, high, bins)
    except ValueError:
        return Numeric(low, high, 1)


@settings(deadline=None, max_examples=60)
@given(BOUNDS, st.integers(2, 500))
@example([-1.7e308 / 2, 1.7e308 / 2], 10)
@example([0.0, 1e-310], 10)
@example([-1e-310, 3e-320], 7)
@example([0.0, 5e-324], 7)
@example([1e16, 1e16 + 8], 3)
@example([-1e-9, 1.0], 10)
def test_every_public_cut_of_a_learner_is_on_the_grid(bounds, bins):
    feature = numeric(*bounds, bins)
    schema = Schema({"x": feature}, "y", classes=[0, 1])
    grid = set(feature.grid.tolist())
    for steps in (4, 8, 16, 32):
        for halvings in (HALVINGS, additive.HALVINGS):
            assert set(scale_cuts(feature, steps, halvings)) <= grid
    for steps in (1024, friedman_schuster.STEPS, 2**15):
        (cuts,) = even_view(schema, steps).cuts
        assert set(cuts) <= grid
    assert set(feature.cuts.tolist()) <= grid
    assert set(coarse_grid(*bounds).tolist()) <= grid
    assert View.of_grid(schema).cuts == (tuple(coarse_grid(*bounds).tolist()),)
    np.testing.assert_array_equal(feature.fine, fine_grid(*bounds))


@settings(deadline=None, max_examples=40)
@given(BOUNDS, st.sampled_from([1, 500, 700, 10_001, 61_441, 65_535]))
def test_the_grid_rises_between_the_bounds_and_has_room_for_16_bits(bounds, bins):
    feature = numeric(*bounds, bins)
    grid = feature.grid
    assert (np.diff(grid) > 0).all()
    assert not len(grid) or bounds[0] < grid[0] <= grid[-1] < bounds[1]
    assert len(grid) <= MAX_CUTS == 2**16 - 2
    assert not grid.flags.writeable
    assert set(feature.cuts.tolist()) <= set(grid.tolist())
    assert set(feature.fine.tolist()) <= set(grid.tolist())
    assert set(feature.coarse.tolist()) <= set(grid.tolist())


def test_own_cuts_are_kept_then_landmarks_then_the_rest_evenly():
    feature = Numeric(0, 1, bins=10_001)
    marks, grid = set(landmarks(0.0, 1.0)), set(feature.grid)
    assert len(grid) == MAX_CUTS
    assert set(feature.cuts) | marks <= grid
    rest = sorted(set(fine_grid(0.0, 1.0)) - marks - set(feature.cuts))
    kept = thin(np.array(rest), MAX_CUTS - 10_000 - len(marks - set(feature.cuts)))
    assert grid == set(feature.cuts) | marks | set(kept)
    full = Numeric(0, 1, bins=65_535)
    np.testing.assert_array_equal(full.grid, full.cuts)


def test_thinning_keeps_an_even_part():
    for room in range(11):
        kept = thin(np.arange(10.0), room)
        assert len(kept) == room if room < 10 else 10
        assert not room or np.diff([-1, *kept]).max() <= -(-10 // room)


@settings(deadline=None, max_examples=40)
@given(BOUNDS, st.lists(st.floats(-0.5, 1.5), max_size=9))
def test_nearest_is_the_nearest_point_of_the_grid(bounds, shares):
    feature = numeric(*bounds, 10)
    low, high = bounds
    wanted = [low + (high - low) * share for share in shares]
    expected = set()
    for point in wanted if len(feature.grid) else ():
        inside = min(max(point, low), high)
        (found,) = feature.nearest([point])
        assert abs(found - inside) == np.abs(feature.grid - inside).min()
        expected.add(found)
    assert feature.nearest(wanted) == tuple(sorted(expected))


def test_nearest_with_one_point_and_with_none():
    three = [1.0, float(np.nextafter(1.0, 2.0)), 1.0 + 2 * np.finfo(float).eps]
    one = Numeric(three[0], three[2], 1)
    assert one.nearest([0.0, 1.0, 5.0]) == (three[1],)
    assert Numeric(three[0], three[1], 1).nearest([1.0]) == ()


def test_equal_features_share_one_grid_and_none_is_sent():
    feature = Numeric(0, 255)
    assert feature.grid is Numeric(0.0, 255.0).grid
    assert len(pickle.dumps(feature)) < 500
