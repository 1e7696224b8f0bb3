"""What a schema accepts, refuses and writes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet import Categorical, Numeric, Schema
from privet.errors import SchemaError

GOOD = {
    "features": {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])},
    "target": "ill",
    "classes": ["no", "yes"],
}


def test_numeric_has_ten_bins_of_equal_width_by_default():
    feature = Numeric(0, 100)
    assert feature.bins == 10
    assert feature.size == 11
    np.testing.assert_allclose(feature.cuts, np.arange(10, 100, 10))


def test_edges_may_list_the_bounds_or_not():
    assert Numeric(0, 120, edges=[0, 18, 65, 120]) == Numeric(0, 120, edges=[18, 65])
    assert Numeric(0, 120, edges=[18, 65], bins=3).bins == 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"low": 1, "high": 1},
        {"low": 2, "high": 1},
        {"low": float("nan"), "high": 1},
        {"low": 0, "high": float("inf")},
        {"low": -1.7e308, "high": 1.7e308},
        {"low": "0", "high": 1},
        {"low": 0, "high": True},
        {"low": 0, "high": 1, "bins": 0},
        {"low": 0, "high": 1, "bins": -3},
        {"low": 0, "high": 1, "bins": 2.5},
        {"low": 0, "high": 1, "bins": 70_000},
        {"low": 0, "high": 1, "edges": [0.5, 0.4]},
        {"low": 0, "high": 1, "edges": [0.5, 0.5]},
        {"low": 0, "high": 1, "edges": [2.0]},
        {"low": 0, "high": 1, "edges": [0.5], "bins": 5},
        {"low": 1.0, "high": np.nextafter(1.0, 2.0), "bins": 10},
    ],
)
def test_a_numeric_feature_that_means_nothing_is_refused(arguments):
    with pytest.raises(SchemaError):
        Numeric(**arguments)


@pytest.mark.parametrize(
    "values", [[], "fm", ["f", "f"], [1, 1.0], [1, True], ["f", None], [float("nan")], [["f"]], 3]
)
def test_a_category_list_that_means_nothing_is_refused(values):
    with pytest.raises(SchemaError):
        Categorical(values)


@pytest.mark.parametrize(
    "change",
    [
        {"features": {}},
        {"features": {"age": 3}},
        {"features": {"": Numeric(0, 1)}},
        {"features": ["age"]},
        {"features": {"ill": Numeric(0, 1)}},
        {"target": ""},
        {"target": None},
        {"classes": None},
        {"classes": ["no"]},
        {"classes": []},
        {"bounds": (0, 1)},
        {"classes": None, "bounds": (1, 0)},
        {"classes": None, "bounds": (0,)},
        {"table": ""},
    ],
)
def test_a_schema_that_means_nothing_is_refused(change):
    with pytest.raises(SchemaError):
        Schema(**{**GOOD, **change})


def test_the_message_for_one_class_says_what_to_do():
    with pytest.raises(SchemaError, match="at least two classes"):
        Schema(**{**GOOD, "classes": ["no"]})


names = st.text(min_size=1, max_size=8)
numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
features = st.one_of(
    st.builds(
        lambda low, width, bins: Numeric(low, low + width, bins=bins),
        numbers,
        st.floats(1e-2, 1e6),
        st.integers(1, 300),
    ),
    st.lists(names, min_size=1, max_size=5, unique=True).map(Categorical),
    st.lists(st.integers(-5, 5), min_size=1, max_size=5, unique=True).map(Categorical),
)
schemas = st.builds(
    lambda features, classes, table: Schema(
        {name: feature for name, feature in features.items() if name != "t"}
        or {"x": Numeric(0, 1)},
        "t",
        classes=classes,
        table=table,
    ),
    st.dictionaries(names, features, min_size=1, max_size=5),
    st.lists(names, min_size=2, max_size=4, unique=True),
    st.none() | names,
)


@given(schema=schemas)
def test_toml_and_dict_round_trips_change_nothing(tmp_path_factory, schema):
    assert Schema.from_dict(schema.to_dict()) == schema
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.to_toml(path)
    assert Schema.from_toml(path) == schema


@pytest.mark.parametrize(
    "text",
    [
        "target = ",
        "target = 'ill'",
        "classes = ['no', 'yes']\n[features.age]\ntype = 'numeric'\nlow = 0\nhigh = 1",
        "target = 'ill'\nclasses = ['a', 'b']\n[features.age]\ntype = 'numeric'\nlow = 0",
        "target = 'ill'\nclasses = ['a', 'b']\n[features.age]\ntype = 'date'",
        "target = 'ill'\nclasses = ['a', 'b']\nepsilon = 3\n[features.a]\ntype = 'numeric'",
        "target = 'ill'\nclasses = 'ab'\n[features.age]\ntype = 'numeric'\nlow = 0\nhigh = 1",
        "target = 'ill'\nclasses = ['a', 'b']\nfeatures = 3",
    ],
)
def test_a_bad_schema_file_gets_a_schema_error(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError):
        Schema.from_toml(path)


def test_a_missing_or_binary_schema_file_gets_a_schema_error(tmp_path):
    with pytest.raises(SchemaError, match="cannot read"):
        Schema.from_toml(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="cannot read"):
        Schema.from_toml(tmp_path / "binary.toml")


def test_a_schema_without_target_says_so(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text("classes = ['a', 'b']\n[features.age]\ntype = 'numeric'\nlow = 0\nhigh = 1")
    with pytest.raises(SchemaError, match="target"):
        Schema.from_toml(path)


COLUMNS = {
    "age": [20.0, 81.5, None],
    "sex": ["f", "m", None],
    "smokes": [True, False, True],
    "ill": ["no", "yes", "no"],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_draft_reads_every_kind_of_table_and_is_marked(make, tmp_path):
    draft = Schema.draft(make(COLUMNS))
    assert draft.drafted
    assert draft.target == "ill"
    assert draft.classes == ("no", "yes")
    assert draft.features["sex"] == Categorical(["f", "m"])
    assert draft.features["smokes"] == Categorical([False, True])
    age = draft.features["age"]
    assert age.low <= 20 < 81.5 <= age.high
    draft.to_toml(tmp_path / "draft.toml")
    assert "DRAFT" in (tmp_path / "draft.toml").read_text()
    assert Schema.from_toml(tmp_path / "draft.toml") == draft


def test_a_draft_tells_classes_from_numbers():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "few": [0, 1, 1], "real": [0.5, 1.5, 2.5]})
    assert Schema.draft(frame, "few").classes == (0, 1)
    assert Schema.draft(frame, "real").bounds is not None
    with pytest.raises(SchemaError, match="no column"):
        Schema.draft(frame, "absent")


def test_a_draft_leaves_out_names():
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(300)], "x": 1.0, "y": [0, 1] * 150})
    with pytest.warns(UserWarning, match="'name' was left out"):
        assert Schema.draft(frame).names == ("x",)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_a_draft_never_fails_on_numbers(values):
    draft = Schema.draft(
        pd.DataFrame({"x": values, "y": [0] * (len(values) - 1) + [1]}), "y", classes=False
    )
    assert draft.features["x"].low < draft.features["x"].high
