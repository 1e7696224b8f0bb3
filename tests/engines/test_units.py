"""Whose record a record is, and what it weighs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Numeric, Schema
from privet.engines import memory, units, weighing
from privet.engines.memory import memory_engine
from privet.errors import DataError, SchemaError
from privet.reading import Columns

SCHEMA = Schema({"a": Numeric(0, 1)}, "y", classes=[0, 1], unit="who")


def identifiers(values):
    return Columns.of(values, SCHEMA).identifiers(SCHEMA).to_pylist()


def frame(who, kind=pd.DataFrame):
    return kind({"a": [0.5] * len(who), "who": who})


# Identifiers -------------------------------------------------------------------------------------

BIG = [2**53, 2**53 + 1, -(2**62), 7]


@pytest.mark.parametrize(
    "table",
    [
        frame(BIG),
        frame(BIG, pl.DataFrame),
        frame(BIG, pa.table),
        frame(pd.array(BIG, dtype="Int64")),
        frame([str(n) for n in BIG]),
        frame(pd.Categorical([str(n) for n in BIG])),
        frame(np.array(BIG, dtype=object)),
        frame([Decimal(n) for n in BIG], pa.table),
    ],
    ids=lambda table: str(getattr(table, "dtypes", getattr(table, "schema", "")))[-20:],
)
def test_whole_numbers_are_known_by_all_of_their_digits(table):
    """As 64-bit floats, two of these would be one person."""
    assert identifiers(table) == [str(n).encode() for n in BIG]


def test_what_counts_as_one_person():
    values = np.array([7, 7.0, "7", "007", 7.5, True, b"7", "ü"], dtype=object)
    expected = [b"7", b"7", b"7", b"007", b"7.5", b"True", b"7", "ü".encode()]
    assert identifiers(frame(values)) == expected


def test_missing_identifiers():
    values = np.array([None, np.nan, "", "NA", "nan", pd.NA, pd.NaT, "?", " "], dtype=object)
    assert identifiers(frame(values)) == [None] * 8 + [b" "]
    assert identifiers(frame(["", "x", None], pl.DataFrame)) == [None, b"x", None]
    assert identifiers(frame([1.0, np.nan, 2.0])) == [b"1", None, b"2"]


TEXTS = st.lists(st.none() | st.binary(max_size=30), max_size=20)


@given(some=TEXTS, more=TEXTS)
@settings(max_examples=100, deadline=None)
def test_names_tell_identifiers_apart(some, more):
    names = units.names_of(pa.array([*some, *more], pa.large_binary())).T.tolist()
    for one, mine in zip([*some, *more], names, strict=True):
        for other, theirs in zip([*some, *more], names, strict=True):
            assert (one == other) == (mine == theirs)
    sliced = units.names_of(pa.array([*some, *more], pa.large_binary())[len(some) :])
    assert sliced.T.tolist() == names[len(some) :]


def test_a_padded_text_is_another_person():
    names = units.names_of(
        pa.array([b"a", b"a\0", b"", b"\0", b"x" * 23, b"x" * 24], pa.large_binary())
    )
    assert len(set(map(tuple, names.T.tolist()))) == 6


# Weights -----------------------------------------------------------------------------------------


def weights(sizes, schema=SCHEMA):
    who = np.repeat([f"p{k}" for k in range(len(sizes))], sizes)
    order = np.random.default_rng(0).integers(0, 2**63, len(who)).astype(np.uint64)
    shuffled = np.random.default_rng(1).permutation(len(who))
    names = units.names_of(pa.array(who[shuffled], pa.large_string()).cast(pa.large_binary()))
    found = units.weights_of(names, order[shuffled], schema)
    return {
        person: sorted(found[who[shuffled] == person].tolist(), reverse=True)
        for person in dict.fromkeys(who.tolist())
    }


def test_records_of_a_person_share_its_parts():
    found = weights([1, 2, 7, 59, 60, 61, 200])
    assert all(sum(parts) == 60 for parts in found.values())
    assert found["p2"] == [9, 9, 9, 9, 8, 8, 8]
    assert found["p5"] == [1] * 60 + [0]
    assert Counter(found["p6"]) == {1: 60, 0: 140}


def test_rows_per_unit():
    found = weights([1, 2, 7], replace(SCHEMA, rows_per_unit=3))
    assert list(found.values()) == [[1], [1, 1], [1, 1, 1, 0, 0, 0, 0]]


def test_parties_divide_the_parts():
    assert weights([1, 7], replace(SCHEMA, parties_per_unit=4))["p0"] == [15]


@pytest.mark.parametrize("k", [*range(1, 70), 500])
def test_a_record_more_costs_no_more_than_a_person(k):
    """At most 60 parts change: the lemma of docs/proofs/units.md."""
    before, after = (weights([size])["p0"] for size in (k, k + 1))
    before = [*before, 0]
    assert all(one >= other for one, other in zip(before[:-1], after[:-1], strict=True))
    assert sum(abs(one - other) for one, other in zip(before, after, strict=True)) <= 60


def test_two_persons_with_one_hash_are_told_apart():
    with mock.patch.object(units, "mix", lambda state: state & np.uint64(1)):
        found = weights([3, 5, 1, 61])
    assert all(sum(parts) == 60 for parts in found.values())


def table(who, y=None):
    rng = np.random.default_rng(len(who))
    y = rng.integers(0, 2, len(who)) if y is None else y
    return pd.DataFrame({"a": rng.random(len(who)), "y": y, "who": who})


def parts_of(frame, schema=SCHEMA):
    engine = memory_engine(frame, None, schema)
    return np.concatenate([block.parts for block in engine._blocks._blocks])


def test_shares_of_persons_give_the_same_weights(monkeypatch):
    frame = table(np.random.default_rng(0).integers(0, 40, 500))
    expected = parts_of(frame)
    monkeypatch.setattr(weighing, "SHARE_ROWS", 60)
    assert parts_of(frame).tolist() == expected.tolist()


def test_weights_do_not_depend_on_which_block_answers_first(monkeypatch):
    """A cluster weighs a block that was lost again, when other workers may have the others."""
    monkeypatch.setattr(memory, "BLOCK_ROWS", 60)
    alike = table(["p"] * 120, 0).assign(a=0.5)
    blocks = memory_engine(alike, None, SCHEMA)._blocks._blocks

    def weighed(order):
        found = weighing.weigh(
            lambda question: [one for k in order for one in question.answer(blocks[k])], 120, SCHEMA
        )
        return {number: int(weights.sum()) for each in found for number, _, weights in each}

    assert weighed([0, 1])[0] + weighed([1, 0])[1] == 60


def test_weights_do_not_depend_on_the_order_of_rows():
    frame = table(np.random.default_rng(0).integers(0, 40, 500))
    order = np.random.default_rng(1).permutation(len(frame))
    assert parts_of(frame)[order].tolist() == parts_of(frame.iloc[order]).tolist()


def test_another_person_changes_no_weights():
    frame = table(np.random.default_rng(0).integers(0, 40, 300))
    new = table(["new"] * 80)
    assert parts_of(pd.concat([new, frame]))[80:].tolist() == parts_of(frame).tolist()


def test_records_without_a_target_take_no_parts():
    assert parts_of(table(["p"] * 4, [0, None, 1, 7])).tolist() == [30, 0, 30, 0]


def test_a_record_without_an_identifier_is_a_person():
    found = parts_of(table([None, "p", None, "p", ""], [0, 1, 1, 0, None]))
    assert found.tolist() == [60, 30, 60, 30, 0]


# What bad input gets -----------------------------------------------------------------------------


def test_a_table_without_the_column():
    with pytest.raises(DataError, match="no column 'who', which the schema names as the unit"):
        memory_engine(table(["p"]).drop(columns="who"), None, SCHEMA)
    with pytest.raises(DataError, match="pass a dataframe"):
        memory_engine(np.zeros((2, 1)), [0, 1], SCHEMA)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"unit": "a"}, "cannot be a feature or the target"),
        ({"unit": "y"}, "cannot be a feature or the target"),
        ({"unit": ""}, "name of a column"),
        ({"unit": 3}, "name of a column"),
        ({"unit": "who", "rows_per_unit": 0}, "rows_per_unit must be a whole number"),
        ({"unit": "who", "rows_per_unit": 2.0}, "rows_per_unit must be a whole number"),
        ({"unit": "who", "rows_per_unit": True}, "rows_per_unit must be a whole number"),
        ({"unit": "who", "parties_per_unit": 61}, "from 1 to 60"),
        ({"rows_per_unit": 3}, "name it"),
        ({"parties_per_unit": 3}, "name it"),
    ],
)
def test_schemas_that_are_refused(given, message):
    with pytest.raises(SchemaError, match=message):
        Schema({"a": Numeric(0, 1)}, "y", classes=[0, 1], **given)


def test_a_schema_file_names_the_unit(tmp_path):
    schema = replace(SCHEMA, rows_per_unit=3, parties_per_unit=2)
    schema.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml") == schema
    assert 'unit = "who"' in (tmp_path / "schema.toml").read_text()
    assert schema.unit_parts == 3
    assert SCHEMA.unit_parts == 60
    assert replace(SCHEMA, unit=None).unit_parts == 1
