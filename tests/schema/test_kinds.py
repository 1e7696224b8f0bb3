"""Whole numbers and dates in a schema: what is accepted, refused, cut and written."""

import datetime
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Date, Integer, Numeric, Schema
from privet.errors import SchemaError
from privet.learners._views import even_view, scale_cuts
from privet.schema import MAX_CUTS, day_of_text, day_text

WHOLE = st.integers(-(2**52), 2**52) | st.integers(-100, 100)
BOUNDS = st.lists(WHOLE, min_size=2, max_size=2, unique=True).map(sorted)
DAYS = st.integers(-719_162, 2_932_896)


def test_whole_numbers_are_cut_at_whole_numbers():
    assert Integer(0, 20).cuts.tolist() == [3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert Integer(0, 1).cuts.tolist() == [1]
    assert Integer(0, 3).bins == 4
    assert Integer(0, 3).grid.tolist() == [1, 2, 3]
    assert isinstance(Integer(0, 3), Numeric)
    assert Integer(0, 3) != Numeric(0, 3)


def test_the_upper_bound_is_a_cut_and_the_lower_is_none():
    assert Integer(0, 20, edges=[0, 3, 20]).cuts.tolist() == [3, 20]
    assert Integer(0, 20, edges=[3], bins=2).bins == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"low": 1, "high": 1},
        {"low": 0.5, "high": 3},
        {"low": 0, "high": 3, "bins": 5},
        {"low": 0, "high": 3, "edges": [1.5]},
        {"low": 0, "high": 3, "edges": [4]},
        {"low": 0, "high": 2**60},
        {"low": 0, "high": float("inf")},
        {"low": "0", "high": 3},
        {"low": False, "high": 3},
    ],
)
def test_whole_numbers_that_mean_nothing_are_refused(arguments):
    with pytest.raises(SchemaError):
        Integer(**arguments)


@settings(deadline=None, max_examples=60)
@given(BOUNDS, st.integers(1, 300))
def test_bins_of_whole_numbers_differ_by_one_in_width(bounds, bins):
    low, high = bounds
    values = high - low + 1
    feature = Integer(low, high, min(bins, values))
    ends = [low, *map(int, feature.cuts.tolist()), high + 1]
    widths = set(map(int, np.diff(np.array(ends, dtype=object))))
    assert widths <= {values // feature.bins, -(-values // feature.bins)}
    assert set(feature.cuts) <= set(feature.grid)


@settings(deadline=None, max_examples=60)
@given(BOUNDS)
def test_the_grid_of_whole_numbers(bounds):
    low, high = bounds
    feature = Integer(low, high)
    grid = feature.grid
    assert len(grid) <= MAX_CUTS
    assert low < grid[0] <= grid[-1] <= high
    assert (np.diff(grid) > 0).all()
    assert (grid == np.floor(grid)).all()
    if high - low <= MAX_CUTS:
        assert len(grid) == high - low
    assert set(feature.coarse) <= set(feature.fine) <= set(grid)
    assert 1 <= len(feature.coarse) <= 1024
    schema = Schema({"n": feature}, "y", classes=[0, 1])
    for steps in (4, 32, 1024, 4096):
        assert set(scale_cuts(feature, steps)) <= set(grid)
        assert set(even_view(schema, steps).cuts[0]) <= set(grid)


@given(BOUNDS, st.lists(st.floats(0, 1), max_size=5))
def test_a_wanted_cut_says_the_same_of_whole_numbers_where_there_are_few(bounds, shares):
    low = bounds[0]
    high = min(bounds[1], low + 1000)
    wanted = [low + (high - low) * share for share in shares]
    expected = {min(max(float(np.ceil(point)), low + 1), high) for point in wanted}
    assert Integer(low, high).nearest(wanted) == tuple(sorted(expected))


def test_dates_are_days():
    feature = Date("2020-01-31", datetime.date(2020, 3, 2), edges=["2020-02-29"])
    assert (feature.low, feature.high) == (18_292, 18_323)
    assert [day_text(cut) for cut in feature.cuts] == ["2020-02-29"]
    assert len(feature.grid) == 31
    assert isinstance(feature, Numeric)
    assert repr(feature) == "Date('2020-01-31', '2020-03-02', edges=('2020-02-29',))"
    assert feature == Date(18_292, 18_323, edges=[18_321])
    assert replace(feature, edges=None, bins=2).bins == 2
    assert pickle.loads(pickle.dumps(feature)) == feature
    assert hash(feature) == hash(Date(18_292, 18_323, edges=[18_321]))
    assert feature != Integer(18_292, 18_323, edges=[18_321])


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("2020-01-31", "2020-01-31"),
        ("2020-02-30", "2021-01-01"),
        ("1.2.2020", "2021-01-01"),
        (None, "2021-01-01"),
        (True, "2021-01-01"),
        (0.5, "2021-01-01"),
        (-800_000, "2021-01-01"),
        (0, 3_000_000),
    ],
)
def test_dates_that_mean_nothing_are_refused(low, high):
    with pytest.raises(SchemaError):
        Date(low, high)


@given(DAYS)
def test_texts_of_days(day):
    date = datetime.date.fromordinal(day + 719_163)
    assert day_text(day) == date.isoformat()
    assert day_of_text(date.isoformat()) == day
    assert day_of_text(f" {date.isoformat()}T23:59:59.5+14:00 ") == day
    assert Date(date, 2_932_896).low == day if day < 2_932_896 else True


SCHEMA = Schema(
    {
        "stays": Integer(0, 20),
        "points": Integer(-5, 5, edges=[0, 3]),
        "admitted": Date("2020-01-01", "2024-12-31", bins=5),
        "born": Date("1900-01-01", "2020-12-31", edges=["1950-01-01"]),
        "sex": Categorical(["f", "m"]),
    },
    "ill",
    classes=["no", "yes"],
)


def test_a_schema_file_holds_them(tmp_path):
    path = tmp_path / "schema.toml"
    SCHEMA.to_toml(path)
    assert Schema.from_toml(path) == SCHEMA
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    text = path.read_text()
    assert 'type = "integer"\nlow = 0\nhigh = 20' in text
    assert 'low = "2020-01-01"' in text


def test_a_schema_file_may_hold_dates_of_toml(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        "target = 'ill'\nclasses = ['no', 'yes']\n"
        "[features.day]\ntype = 'date'\nlow = 2020-01-01\nhigh = 2020-12-31\nedges = [2020-03-01]"
    )
    (feature,) = Schema.from_toml(path).features.values()
    assert feature == Date("2020-01-01", "2020-12-31", edges=["2020-03-01"])


def test_dates_are_not_compared_as_numbers():
    assert SCHEMA.dates == {"admitted", "born"}
    assert SCHEMA.of_numbers("stays")
    assert not SCHEMA.of_numbers("admitted")
