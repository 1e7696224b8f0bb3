"""The law of reading (docs/reading.md), for every container: a record is read alone.

The audit of readers tries every hostile value in every container; here hypothesis chooses tables,
rows and places, too. What a container cannot hold is not its reader's affair.
"""

from __future__ import annotations

import collections
import math
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from privet import Categorical, DiffPID3Classifier, DiPriMeForestRegressor, Numeric, Schema
from privet.audit import hostile, readers
from privet.audit.readers import CannotCarry, Container, Row
from privet.errors import DataError
from privet.reading import column_of

WRITERS = {writer.name: writer for writer in readers.known_writers()}
SCHEMAS = [*readers.SCHEMAS, Schema(
    {"x": Numeric(0, 1), "c": Categorical(["a", 1, 2.5, True, ""])}, "y", classes=["1", "yes", "no"]
)]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(sorted(hostile.values())).map(hostile.values().get),
    st.sampled_from(["u", "v", "no", "yes", "1", "2", 1, 2, 0, 1.0, 0.5]),
    st.text(max_size=5),
    st.floats(),
    st.integers(),
)
ROW = st.builds(Row, st.tuples(VALUES, VALUES), VALUES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("law")


def carried(writer, row, schema, folder):
    try:
        writer.write([row], schema, folder)
    except CannotCarry:
        return False
    return True


def outcome(writer, rows, schema, folder):
    """Return what is read and what is warned of; an error is a failure of the law."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = readers.read(writer.write(rows, schema, folder), schema)
    assert found.dtype == np.float64
    return found, {str(warning.message) for warning in caught}


@pytest.mark.parametrize("name", WRITERS)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rows=st.lists(ROW, max_size=5), more=st.lists(ROW, max_size=3), data=st.data())
def test_a_record_is_read_alone(folder, name, rows, more, data):
    writer, schema = WRITERS[name], data.draw(st.sampled_from(SCHEMAS))
    rows, more = ([r for r in some if carried(writer, r, schema, folder)] for some in (rows, more))
    place = data.draw(st.integers(0, len(rows)))
    alone, warned = outcome(writer, rows, schema, folder)
    added, _ = outcome(writer, more, schema, folder)
    together, warned_together = outcome(
        writer, [*rows[:place], *more, *rows[place:]], schema, folder
    )
    expected = np.concatenate([alone[:place], added, alone[place:]])
    np.testing.assert_array_equal(together, expected)
    assert warned_together == warned


def test_the_test_can_fail(folder):
    """A reader that lets numpy find one type for all breaks the law."""
    schema = SCHEMAS[2]

    def read(targets):
        table = [(1.0, 1.0)] * len(targets)
        return readers.read(Container(table, np.asarray(targets)), schema)[:, 2].tolist()

    assert read([1.0] * 3) == [0] * 3
    assert read([*[1.0] * 3, "x"]) == [2] * 4


# What the law means for lists, rows and targets


FEATURES = Schema({"x": Numeric(0, 9), "c": Categorical(["a", "b"])}, "y", classes=[0, 1])
GOOD = [[1.0, "a"], [2.0, "b"]]


def read(X, y, schema=FEATURES):
    return readers.read(Container(X, y), schema)


def test_one_text_among_numbers_changes_no_other_item():
    found = read([*GOOD, ["x", "a"]], [0, 1, "x"])
    assert np.array_equal(found[:2], read(GOOD, [0, 1]))
    assert np.isnan(found[2, 0])
    assert found[2, 2] == 2


@pytest.mark.parametrize("rows", [[7, None], [[1.0], [2.0]], [], [[1.0, "a"], 7]])
def test_no_list_makes_a_fit_or_a_prediction_fail(rows):
    model = DiffPID3Classifier(1.0, FEATURES, max_depth=1).fit(rows, [0] * len(rows))
    assert model.predict([*rows, [1.0, "a"]]).shape == (len(rows) + 1,)


ROWS = [[1.0, "a"]] * 17
BAD_SHAPES = {
    "a square": (ROWS, np.eye(17), "one column"),
    "complex": (ROWS, np.full(17, 1j), "Complex"),
    "a cube": (np.zeros((17, 2, 2)), [0] * 17, "two-dimensional"),
    "dates": (np.full((17, 2), "2020-01-01", dtype="M8[D]"), [0] * 17, "convert it first"),
    "too short": (ROWS, [0] * 16, "different numbers of rows"),
    "a number": (17, [0], "must be"),
}


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_wrong_shapes_and_types_get_a_sentence_of_our_own(case):
    X, y, words = BAD_SHAPES[case]
    with pytest.raises(DataError, match=words) as caught:
        DiffPID3Classifier(1.0, FEATURES).fit(X, y)
    assert not re.search("1[67]", str(caught.value))
    assert caught.value.__cause__ is None


SEQUENCES = [collections.deque, collections.UserList, tuple, list]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_every_sequence_is_read_item_by_item(kind):
    texts = Schema({"x": Numeric(0, 9)}, "y", classes=["True", "False"])
    labels = [True, False] * 3
    for more in (2, "x", [1, 2], None):
        found = read(kind([kind([1])] * 7), kind([*labels, more]), texts)
        assert found[:6, 1].tolist() == [0, 1] * 3
        assert found[6, 1] == 2


def test_rows_of_a_list_may_be_anything_that_has_values():
    frame = pd.DataFrame(GOOD, columns=["x", "c"], dtype=object)
    rows = [GOOD[0], tuple(GOOD[0]), collections.deque(GOOD[0]), np.array(GOOD[0], dtype=object)]
    rows += [frame.iloc[0], {"c": "a", "x": 1.0}, np.array([GOOD[0]], dtype=object)]
    assert read(rows, [0] * len(rows)).tolist() == [[1.0, 0, 0]] * len(rows)
    numbers = Schema({"x": Numeric(0, 9), "z": Numeric(0, 9)}, "y", classes=[0, 1])
    rows = [np.array([1, 2.5]), np.array([3, np.nan])]
    for some in (rows, [*rows, [1, 2.5]], [*rows, np.array([1, 2], dtype=np.int8)]):
        np.testing.assert_array_equal(
            read(some, [0] * len(some), numbers)[:2, :2], [[1, 2.5], [3, np.nan]]
        )


@pytest.mark.parametrize("label", [np.array(1), np.array([1]), pa.scalar(1), [1], (1,), np.int8(1)])
def test_a_label_may_be_wrapped(label):
    assert read([*GOOD, [1.0, "a"]], [0, 1, label])[:, 2].tolist() == [0, 1, 1]


@pytest.mark.parametrize("X", [(row for row in GOOD), {1: GOOD}.values(), {1, 2}, "text", None])
def test_what_is_no_sequence_is_refused_by_its_type(X):
    with pytest.raises(DataError, match="a numpy array or a list"):
        read(X, [0, 1])


def test_a_list_without_any_fitting_row_is_not_predicted():
    model = DiffPID3Classifier(1.0, FEATURES, max_depth=1).fit(GOOD, [0, 1])
    for rows in ([1.0, "a"], [[1.0]], ["ab", "cd"]):
        with pytest.raises(DataError, match="no row with 2 values"):
            model.predict(rows)


def test_a_column_vector_is_one_column_whatever_it_holds():
    model = DiffPID3Classifier(1.0, FEATURES, max_depth=1)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model.fit(GOOD, np.array([[0], [1]]))
    with (
        pytest.warns(DataConversionWarning),
        pytest.raises(DataError, match="Complex") as caught,
    ):
        model.fit(GOOD, np.array([[7.5j], [0]]))
    assert "7.5" not in str(caught.value)
    masked = np.ma.array([[0.0], [1.0]], mask=[[True], [False]])
    assert read(GOOD, masked)[:, 2].tolist() == [2, 1]


def test_a_signalling_nan_is_missing_and_says_nothing():
    quiet, signalling = 0x7FF8000000000000, 0x7FF0000000000001
    column = np.array([quiet, signalling], dtype=np.uint64).view(np.float64)
    X = np.column_stack([column, column])
    schema = Schema({"x": Numeric(0, 1), "z": Numeric(0, 1)}, "y", bounds=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DiPriMeForestRegressor(1.0, schema, n_estimators=2).fit(X, column)
        small = np.array([0x7F800001], dtype=np.uint32).view(np.float32)
        assert np.isnan(column_of(small, "x").numbers()).all()
        long = np.ma.array([np.longdouble("1e400")], mask=[False])
        assert column_of(long, "x").numbers() == math.inf


def test_numbers_that_are_no_characters_are_replaced():
    for order in "<>":
        points = np.array([[0x61, 0x62], [0x110000, 0x62]], dtype=f"{order}u4")
        texts, _ = column_of(points.view(f"{order}U2")[:, 0], "x").texts()
        assert texts == ["ab", "\ufffdb"]


@pytest.mark.parametrize("kind", [pa.decimal128(5, 1), pa.string(), pa.string_view()])
def test_dictionaries_of_every_readable_type_are_read(kind):
    values = pa.array(["1.5", "2.0"]).cast(kind) if kind != pa.string_view() else None
    if values is None:
        values = pa.array(["1.5", "2.0"], kind)
    coded = pa.chunked_array([pa.DictionaryArray.from_arrays([1, 0, None], values)])
    assert np.array_equal(column_of(coded, "x").numbers(), [2.0, 1.5, np.nan], equal_nan=True)
    assert len(column_of(pa.chunked_array([], coded.type), "x")) == 0


def test_truth_values_stay_what_they_are():
    texts = Schema({"x": Numeric(0, 9)}, "y", classes=["True", "1", "x"])
    assert read([[1]] * 3, [True, 1, "x"], texts)[:, 1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("row", [[], [1.0], [1.0, "a", 3], 7, None, "ab", {"z": 1}, np.eye(2)])
def test_a_ragged_row_is_one_record_of_missing_values(row):
    found = read([*GOOD, row], [0, 1, 1])
    assert np.array_equal(found[:2], read(GOOD, [0, 1]))
    assert np.isnan(found[2, 0])
    assert found[2, 1:].tolist() == [2, 1]


@pytest.mark.parametrize("label", [b"1", 1 + 0j, [1, 2], (), {"y": 1}, np.ones(2), 10**400])
def test_strange_labels_are_left_out_and_bytes_are_text(label):
    found = read([*GOOD, [1.0, "a"]], [0, 1, label])[:, 2].tolist()
    assert found == [0, 1, 1 if type(label) is bytes else 2]


def test_a_target_that_is_too_large_is_clipped_and_a_missing_one_left_out():
    schema = Schema({"x": Numeric(0, 9)}, "y", bounds=(0, 1))
    found = read([[1]] * 5, [10**400, -(10**400), "1e999", None, "?"], schema)[:, 1]
    assert found[:3].tolist() == [math.inf, -math.inf, math.inf]
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize("kind", [object, np.int64, np.float64])
def test_integers_beyond_2_to_the_53rd_are_compared_as_doubles(kind):
    large = 2**53 + 2
    for values in ([large, 3], [str(large), "3"]):
        schema = Schema({"c": Categorical(values)}, "y", classes=[0, 1])
        column = np.array([[large], [3]], dtype=kind)
        assert read(column, [0, 1], schema)[:, 0].tolist() == [0, 1]
