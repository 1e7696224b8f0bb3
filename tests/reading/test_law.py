"""The law of reading (docs/reading.md), for every container: a record is read alone.

The audit of readers tries every hostile value in every container; here hypothesis chooses tables,
rows and places, too. What a container cannot hold is not its reader's affair.
"""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privet import Categorical, DiffPID3Classifier, Numeric, Schema
from privet.audit import hostile, readers
from privet.audit.readers import CannotCarry, Container, Row
from privet.errors import DataError

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


def test_truth_values_stay_what_they_are():
    texts = Schema({"x": Numeric(0, 9)}, "y", classes=["True", "1", "x"])
    assert read([[1]] * 3, [True, 1, "x"], texts)[:, 1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("row", [[], [1.0], [1.0, "a", 3], 7, None, "ab", {"x": 1}, np.eye(2)])
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
