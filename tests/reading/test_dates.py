"""Dates from every container: the same days, whatever they came in."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Date, Integer, Numeric, Schema, read_table
from privet.errors import ColumnTypeError, ColumnTypeWarning, SchemaError
from privet.reading import Columns, check_types, column_of, feature_matrix
from privet.schema import day_text

SCHEMA = Schema({"d": Date("2020-01-01", "2020-12-31")}, "y", classes=[0, 1])
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)


def read(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return feature_matrix(table, SCHEMA)[:, 0]


def days_of(moments):
    first = datetime.date(1970, 1, 1).toordinal()
    return np.array([np.nan if m is None else m.toordinal() - first for m in moments])


@settings(deadline=None, max_examples=25)
@given(st.lists(MOMENTS | st.none(), max_size=8))
def test_every_container_has_the_same_days(moments):
    expected = days_of(moments)
    dates = [None if m is None else m.date() for m in moments]
    texts = [None if m is None else m.isoformat() for m in moments]
    columns = [pa.array(dates, kind) for kind in (pa.date32(), pa.date64())]
    columns += [
        pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        for unit in ("s", "ms", "us", "ns")
    ]
    columns += [pa.array(texts, pa.string()), pa.array(texts).dictionary_encode()]
    columns += [pa.array(dates, pa.date32()).dictionary_encode()]
    for column in columns:
        table = pa.table({"d": column})
        found = [read(table), read(pl.from_arrow(table))]
        found.append(read(table.to_pandas(types_mapper=pd.ArrowDtype)))
        found.append(read(pa.table({"d": pa.chunked_array([column, column[:0]])})))
        for each in found:
            np.testing.assert_array_equal(each, expected)
    for items in (moments, dates, texts):
        np.testing.assert_array_equal(read([[item] for item in items]), expected)
        objects = np.empty((len(items), 1), dtype=object)
        objects[:, 0] = items
        np.testing.assert_array_equal(read(objects), expected)
        np.testing.assert_array_equal(read(pd.DataFrame(objects, columns=["d"])), expected)
    for unit in ("D", "h", "m", "s", "ms", "us", "ns", "25s"):
        array = np.array(moments, dtype="M8[us]").reshape(-1, 1)
        expected_here = expected if unit != "25s" else days_of(_in_steps(moments, 25))
        found = array.astype(f"M8[{unit}]")
        np.testing.assert_array_equal(read(found), expected_here)
        np.testing.assert_array_equal(read(list(found)), expected_here)
        np.testing.assert_array_equal(read(found.astype(found.dtype.newbyteorder())), expected_here)
    frame = pd.DataFrame({"d": pd.Series(moments, dtype="datetime64[ns]")})
    np.testing.assert_array_equal(read(frame), expected)


def _in_steps(moments, seconds):
    array = np.array(moments, dtype="M8[us]").astype(f"M8[{seconds}s]")
    return array.astype("M8[us]").tolist()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "+05:30"])
def test_a_time_counts_as_its_day_where_it_was_written(zone):
    """Whether as text, as an object, or in a column of a zone."""
    walls = [datetime.datetime(2020, 7, 1, hour) for hour in (0, 3, 12, 21, 23)]
    series = pd.Series(walls).dt.tz_localize(zone)
    expected = days_of(walls)
    arrow = pa.table({"d": pa.Array.from_pandas(series)})
    found = [read(pd.DataFrame({"d": series})), read(arrow), read([[each] for each in series])]
    found.append(read([[each.isoformat()] for each in series]))
    if not zone.startswith("+"):
        found.append(read(pl.from_arrow(arrow)))
    for each in found:
        np.testing.assert_array_equal(each, expected)


def test_an_unknown_zone_is_refused_with_and_without_rows():
    kind = pa.timestamp("s", "Nowhere/Else")
    for rows in ([], [0]):
        with pytest.raises(ColumnTypeError):
            read(pa.table({"d": pa.array(rows, kind)}))


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_ends_of_time_are_read_like_other_times(unit, zone):
    ends = [-(2**63), -(2**63) + 1, 0, 2**63 - 1]
    found = read(pa.table({"d": pa.array(ends, pa.int64()).cast(pa.timestamp(unit, zone))}))
    assert found[0] <= found[1] < found[2] == 0 < found[3]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ns", "ps", "fs", "as"])
def test_the_ends_of_numpys_time(unit):
    found = read(np.array([[2**63 - 1], [-(2**63) + 1], [0], [-(2**63)]]).view(f"M8[{unit}]"))
    assert found[1] < 0 == found[2] <= found[0]
    assert np.isnan(found[3])


@pytest.mark.parametrize(
    "item",
    [
        None, 18_000, 18_000.0, True, "18000", "2020-1-1", "2020-02-30", "20200101", "31.01.2020",
        "2020-01-01x", "2020-01-01T25:00", "0000-01-01", pd.NaT, pd.NA, np.datetime64("NaT"),
        datetime.time(1), datetime.timedelta(1), b"\xff", [1], "\u0662020-01-01",
    ],
)  # fmt: skip
def test_everything_else_is_missing(item):
    assert np.isnan(read([[item], ["2020-01-01"]])).tolist() == [True, False]


@pytest.mark.parametrize("item", [b"2020-01-02", np.str_("2020-01-02"), pa.scalar("2020-01-02")])
def test_rare_items(item):
    assert read([[item]]).tolist() == [18_263]


def test_a_masked_time_is_missing():
    table = np.ma.array(np.array([["2020-01-02"]] * 2, "M8[ns]"), mask=[[True], [False]])
    np.testing.assert_array_equal(read(table), [np.nan, 18_263])


def test_numbers_are_no_dates():
    """A list of numbers becomes an array; one of other things does not."""
    assert np.isnan(read([[1.0], [2.0]])).all()
    assert np.isnan(read(np.zeros((2, 1)))).all()
    columns = Columns.of(pd.DataFrame({"d": [1.0], "y": [0]}), SCHEMA)
    with pytest.raises(ColumnTypeError, match="numbers where the schema has dates"):
        check_types(columns, columns.target(SCHEMA), SCHEMA)
    check_types(Columns.of([[1.0]], SCHEMA), column_of([0], "y"), SCHEMA)


def test_text_warns_by_its_declared_type():
    columns = Columns.of(pl.DataFrame({"d": ["2020-01-01"], "y": [0]}), SCHEMA)
    with pytest.warns(ColumnTypeWarning, match="text where the schema has dates"):
        check_types(columns, columns.target(SCHEMA), SCHEMA)


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("feature", [Numeric(0, 1), Integer(0, 1), Categorical(["a"])])
def test_dates_where_the_schema_has_none_are_refused_by_their_type(feature, rows):
    schema = Schema({"d": feature}, "y", classes=[0, 1])
    table = pa.table({"d": pa.array([datetime.date(2020, 1, 1)] * rows, pa.date32())})
    for each in (table, pa.table({"d": table["d"].cast(pa.timestamp("s"))}), pl.from_arrow(table)):
        columns = Columns.of(each, schema)
        with pytest.raises(ColumnTypeError, match="make it a Date"):
            check_types(columns, column_of([0] * rows, "y"), schema)
        with pytest.raises(ColumnTypeError, match="make it a Date"):
            feature_matrix(each, schema)


DATED = Schema({"d": Date("2020-01-01", "2020-12-31"), "n": Integer(0, 9)}, "y", classes=["a", "b"])


def test_files(tmp_path):
    texts = ["2020-01-31", "2020-01-31T10:00:00Z", "", "NA", "x", '"2020-02-01 "', "2019-01-01"]
    path = tmp_path / "t.csv"
    path.write_text("d,n,y\n" + "".join(f"{text},3,a\n" for text in texts) + "2020-01-01,3\n")
    table = read_table(path, DATED)
    assert table.schema.field("d").type == pa.date32()
    found = feature_matrix(table, DATED)[:, 0]
    nan = np.nan
    np.testing.assert_array_equal(found, [18_292, 18_292, nan, nan, nan, 18_293, 17_897, nan])
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    again = feature_matrix(read_table(tmp_path / "t.parquet", DATED), DATED)[:, 0]
    np.testing.assert_array_equal(again, found)
    path.write_text("d,n,y\n")
    assert read_table(path, DATED).schema.field("d").type == pa.date32()


def test_drafts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,x,d,t,y\n1,1.5,2020-02-03,2021-05-06T10:00,a\n17,2,NA,2022-05-06,b\n,,,,b\n")
    tables = [read_table(path)]
    tables += [tables[0].to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(tables[0])]
    tables.append(pd.read_csv(path, dtype={"n": "Int64"}))
    for table in tables:
        features = Schema.draft(table, "y").features
        assert features["n"] == Integer(1, 17)
        assert type(features["x"]) is Numeric
        assert features["d"] == Date("2020-01-01", "2020-12-31")
        assert features["t"] == Date("2021-01-01", "2022-12-31")
    with pytest.raises(SchemaError, match="holds dates"):
        Schema.draft(tables[0], "d")
    assert Schema.draft(np.array([[3, 0], [3, 1]])).features["x0"] == Integer(3, 4)


def test_a_draft_of_far_dates_has_bounds_that_a_schema_can_have():
    far = pa.table(
        {"d": pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32()), "y": [0, 1]}
    )
    feature = Schema.draft(far, "y").features["d"]
    assert (day_text(feature.low), day_text(feature.high)) == ("0001-01-01", "9999-12-31")
