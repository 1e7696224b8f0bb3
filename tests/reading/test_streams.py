"""Rows in batches: every kind of stream and of files, and what is wrong with them."""

from __future__ import annotations

import datetime
import gzip
import itertools
import os
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import (
    Budget,
    Categorical,
    Date,
    DiffPID3Classifier,
    Integer,
    LedgerStore,
    Numeric,
    PrivateTable,
    Schema,
    Source,
)
from privet.engines.encoding import Encoder
from privet.errors import ColumnTypeError, ColumnTypeWarning, DataError, SchemaError
from privet.reading import Stream, data_files, is_stream, read_table, stream_of, streams

SCHEMA = Schema({"a": Numeric(0, 1), "b": Categorical(["u", "v"])}, "y", classes=[0, 1])
TABLE = pa.table(
    {
        "extra": [[k] for k in range(500)],  # of a type that nobody can read
        "y": np.arange(500) % 2,
        "a": np.random.default_rng(0).random(500),
        "b": ["u", "v", None, "w", "u"] * 100,
    }
)


def codes(stream):
    """Return all codes of a stream, one array per column."""
    encoder = Encoder(stream.schema)
    found = [[] for _ in range(len(encoder.kinds) + 1)]
    for columns in stream:
        mine = encoder.empty(len(columns))
        encoder.encode_rows(columns, columns.target(stream.schema), mine, fast=False)
        for known, more in zip(found, mine.arrays, strict=True):
            known.append(more)
    return [np.concatenate(parts) for parts in found]


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


EXPECTED = codes(Stream([TABLE], SCHEMA))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(streams, "BATCH_ROWS", 70)


class ArrowOnly:
    """What has nothing but the protocol."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Cursor:
    """Behaves as a cursor of ADBC does after ``execute``."""

    def __init__(self, table):
        self._table = table

    def fetch_record_batch(self):
        return self._table.to_reader(90)


def as_relation(table):
    connection = duckdb.connect()
    connection.register("rows", table)
    return connection.sql("select * from rows")


def as_frames(table):
    frame = table.drop_columns("extra").to_pandas()
    return (frame.iloc[start : start + 130] for start in range(0, len(frame), 130))


KINDS = {
    "reader": lambda table: table.to_reader(110),
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "dataset": pyarrow.dataset.dataset,
    "scanner": lambda table: pyarrow.dataset.dataset(table).scanner(),
    "relation": as_relation,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(),
    "frames": as_frames,
    "batches": lambda table: iter(table.to_batches(80)),
    "protocol": ArrowOnly,
    "cursor": Cursor,
}
IN_MEMORY = {"table", "polars", "pandas"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_stream_gives_the_same_codes(kind):
    stream = stream_of(KINDS[kind](TABLE), SCHEMA)
    assert_same(codes(stream), EXPECTED)
    assert is_stream(KINDS[kind](TABLE)) == (kind not in IN_MEMORY)


@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_stream_can_be_fitted(kind, tmp_path):
    model = DiffPID3Classifier(1.0, schema=SCHEMA, max_depth=1, random_state=3)
    expected = model.fit(TABLE).to_model().to_json()
    assert model.fit(KINDS[kind](TABLE)).to_model().to_json() == expected
    assert model.fit(Source(KINDS[kind](TABLE), tmp_path)).to_model().to_json() == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named_also_without_rows(kind):
    for table in (TABLE, TABLE.slice(0, 0)):
        if kind in ("frames", "batches", "batch") and not len(table):
            continue  # nobody knows what there would have been
        for name in ("a", "y"):
            with pytest.raises(DataError, match=f"no column '{name}'"):
                codes(stream_of(KINDS[kind](table.drop_columns(name)), SCHEMA))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"frames", "batches", "batch"}))
def test_types_are_refused_also_without_rows(kind):
    day = pa.array([datetime.date(2020, 1, 1)] * 500)
    table = TABLE.set_column(TABLE.column_names.index("a"), "a", day)
    if kind in ("pandas", "lazy", "polars"):
        table = table.drop_columns("extra")
    for rows in (table, table.slice(0, 0)):
        source = KINDS[kind](rows)
        if kind == "pandas":
            source = source.astype({"a": "datetime64[s]"})
        with pytest.raises(ColumnTypeError, match="has type"):
            codes(stream_of(source, SCHEMA))


@pytest.mark.parametrize("given_", ["rows.parquet", b"rows", 7, None, {}.keys])
def test_what_is_no_stream(given_):
    with pytest.raises(DataError, match="expected a stream of rows"):
        stream_of(given_, SCHEMA)


def test_paths_are_not_streams():
    with pytest.raises(DataError, match="from_parquet"):
        PrivateTable.from_batches("rows.parquet", SCHEMA, Budget(1.0))


def test_batches_of_different_types():
    one = TABLE.drop_columns("extra").to_pandas()
    batches = [one, one.astype({"a": str})]
    with pytest.raises(DataError, match="columns of different types"):
        codes(stream_of(batches, SCHEMA))
    with pytest.raises(DataError, match="columns of different types"):
        codes(stream_of(iter([TABLE, TABLE.set_column(2, "a", TABLE["b"])]), SCHEMA))


def test_what_is_no_table_does_not_end_a_stream():
    for wrong in (None, 7, "text", {"a": 1}):
        with pytest.raises(DataError):
            codes(stream_of([TABLE, wrong, TABLE], SCHEMA))


def failing(after=2):
    yield from TABLE.to_batches(100)[:after]
    raise ValueError("record 17 is not what it should be: 'secret'")


def failing_reader():
    return pa.RecordBatchReader.from_batches(TABLE.schema, failing())


def failing_relation():
    connection = duckdb.connect()
    text = "select i / 1e6 as a, 'u' as b, 1 as y, cast(case when i < 25000 then '1' else 'secret' "
    return connection.sql(text + "end as int) as z from range(30000) t(i) where z < 9")


@pytest.mark.parametrize("source", [failing, failing_reader, failing_relation])
def test_a_stream_that_ends_in_an_error(source, tmp_path):
    ledger, blocks = tmp_path / "ledger", tmp_path / "blocks"
    LedgerStore.create(ledger, Budget(3.0), columns=["a", "b", "y"])
    blocks.mkdir()
    before = ledger.read_bytes()
    model = DiffPID3Classifier(1.0, schema=SCHEMA, ledger=ledger)
    with pytest.raises(DataError) as caught:
        model.fit(Source(source(), blocks))
    error = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert "nothing was spent" in str(caught.value) or "could not be opened" in str(caught.value)
    assert ledger.read_bytes() == before
    assert list(blocks.iterdir()) == []


def test_a_stream_that_cannot_be_opened():
    relation = pl.from_arrow(TABLE).lazy().select("a", "b", "y").filter(pl.col("secret") > 1)
    with pytest.raises(DataError, match="could not be opened") as caught:
        stream_of(relation, SCHEMA)
    assert "secret" not in str(caught.value)


def test_fit_refuses_what_a_stream_has_not():
    reader = TABLE.to_reader
    with pytest.raises(SchemaError, match="need a schema"):
        DiffPID3Classifier(1.0).fit(reader())
    with pytest.raises(DataError, match="without y"):
        DiffPID3Classifier(1.0, schema=SCHEMA).fit(reader(), [0, 1])
    with pytest.raises(DataError, match="for CSV files"):
        Source(reader(), separator=";").open(SCHEMA)


# The law: where a batch ends makes no difference -------------------------------------------------

LAW = Schema(
    {
        "number": Numeric(-5, 5),
        "whole": Integer(0, 9),
        "text": Categorical(["", "u", "v", "1"]),
        "coded": Categorical(["u", "v"]),
        "grade": Categorical([1, 2, 3]),
        "day": Date("2020-01-01", "2020-12-31"),
        "flag": Categorical([False, True]),
    },
    "y",
    classes=["no", "yes"],
)
_text = st.sampled_from(["", "u", "v", "1", "w", " u", "é", None])
ROW = st.fixed_dictionaries(
    {
        "number": st.none() | st.floats(allow_nan=True),
        "whole": st.none() | st.integers(-3, 12),
        "text": _text,
        "coded": _text,
        "grade": st.none() | st.integers(0, 4),
        "day": st.none() | st.dates(datetime.date(2019, 12, 1), datetime.date(2021, 1, 31)),
        "flag": st.none() | st.booleans(),
        "y": st.sampled_from(["no", "yes", "perhaps", None]),
    }
)
TYPES = pa.schema(
    {
        "number": pa.float64(),
        "whole": pa.int16(),
        "text": pa.string(),
        "coded": pa.dictionary(pa.int8(), pa.string()),
        "grade": pa.int64(),
        "day": pa.date32(),
        "flag": pa.bool_(),
        "y": pa.string(),
    }
)


def batch_of(rows):
    """Return a record batch, whose dictionary has what its own rows have."""
    return pa.RecordBatch.from_pylist(rows, TYPES)


def as_polars(batch):
    return pl.from_arrow(pa.table(batch))


def as_pandas(batch):
    coded = batch["coded"].to_pylist()
    known = pd.Index(sorted({text for text in coded if text is not None}), dtype="str")
    frame = batch.to_pandas(types_mapper={pa.int16(): pd.Int16Dtype(), pa.int64(): pd.Int64Dtype(),
                                          pa.bool_(): pd.BooleanDtype()}.get)  # fmt: skip
    return frame.assign(coded=pd.Categorical(coded, known), day=pd.to_datetime(frame["day"]))


@settings(max_examples=40)
@given(
    st.lists(ROW, max_size=12),
    st.lists(st.integers(0, 12), max_size=4),
    st.sampled_from([lambda batch: batch, as_polars, as_pandas]),
)
def test_where_a_batch_ends_makes_no_difference(rows, cuts, form):
    bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    parts = [rows[start:stop] for start, stop in itertools.pairwise(bounds)]
    whole = codes(Stream([form(batch_of(rows))], LAW))
    assert_same(codes(stream_of([form(batch_of(part)) for part in parts or [[]]], LAW)), whole)
    alone = codes(stream_of([form(batch_of([row])) for row in rows] or [form(batch_of([]))], LAW))
    assert_same(alone, whole)


# Files -------------------------------------------------------------------------------------------


def write_folder(folder, tables):
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(table, folder / name, row_group_size=60)
        else:
            plain = table.drop_columns("extra") if "extra" in table.column_names else table
            with (gzip.open if name.endswith(".gz") else open)(folder / name, "wb") as file:
                pyarrow.csv.write_csv(plain, file)
    return folder


HALVES = {"a": TABLE.slice(0, 200), "b": TABLE.slice(200)}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("pattern", ["", "*", "**/part*", "[pq]art-*", "sub*"])
def test_folders_and_patterns(ending, pattern, tmp_path):
    write_folder(tmp_path, {f"{'sub/' if pattern in ('', 'sub*') else ''}part-{name}{ending}": half
                            for name, half in HALVES.items()})  # fmt: skip
    parts = []
    stream = Source(f"{tmp_path}/{pattern}", progress=parts.append).open(SCHEMA)
    assert_same(codes(stream), EXPECTED)
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert all(0 <= part <= 1 for part in parts)
    assert len(parts) > 2


def test_only_the_files_of_a_table_are_read(tmp_path):
    write_folder(tmp_path, {"a.parquet": HALVES["a"], "B.PARQUET.parquet": HALVES["b"]})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").touch()
    write_folder(tmp_path / "_old", {"a.parquet": TABLE})
    write_folder(tmp_path / ".hidden", {"a.parquet": TABLE})
    write_folder(tmp_path, {".b.parquet": TABLE, "_c.parquet": TABLE})
    names = [file.name for file in data_files(tmp_path)]
    assert names == ["B.PARQUET.parquet", "a.parquet"]
    assert data_files(tmp_path / "*.parquet") == data_files(tmp_path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nothing", "there is no file"),
        ("nothing/*.parquet", "no file fits"),
        ("empty", "no Parquet or CSV file in"),
        ("empty/../a.txt", "cannot tell what"),
        ("nul\0l", "there is no file"),
        ("x" * 5_000, "there is no file"),
        ("pipe.parquet", "there is no file"),
    ],
)
def test_no_files(path, said, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").touch()
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(DataError, match=said):
        Source(f"{tmp_path}/{path}").open(SCHEMA)


def test_a_name_with_signs_of_patterns(tmp_path):
    write_folder(tmp_path, {"rows[1].parquet": TABLE, "rows1.parquet": HALVES["a"]})
    assert_same(codes(Source(tmp_path / "rows[1].parquet").open(SCHEMA)), EXPECTED)


def test_a_folder_of_two_kinds(tmp_path):
    write_folder(tmp_path, {"a.parquet": HALVES["a"], "b.csv": HALVES["b"]})
    with pytest.raises(DataError, match="both Parquet and CSV"):
        Source(tmp_path).open(SCHEMA)


def test_rows_do_not_count_twice(tmp_path):
    write_folder(tmp_path / "data", {"a.parquet": TABLE})
    link = tmp_path / "data" / "b.parquet"
    link.symlink_to("a.parquet")
    with pytest.raises(DataError, match="named twice"):
        Source(tmp_path / "data").open(SCHEMA)
    link.unlink()
    link.hardlink_to(tmp_path / "data" / "a.parquet")
    with pytest.raises(DataError, match="named twice"):
        Source(tmp_path / "data").open(SCHEMA)
    link.unlink()
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data")
    with pytest.raises(DataError, match="there twice"):
        Source(tmp_path / "data").open(SCHEMA)


def test_linked_folders_are_read(tmp_path):
    write_folder(tmp_path / "elsewhere", {"b.parquet": HALVES["b"]})
    write_folder(tmp_path / "data", {"a.parquet": HALVES["a"]})
    (tmp_path / "data" / "more").symlink_to(tmp_path / "elsewhere")
    assert_same(codes(Source(tmp_path / "data").open(SCHEMA)), EXPECTED)


def test_files_of_different_types_are_refused_before_they_are_read(tmp_path):
    other = HALVES["b"].set_column(2, "a", HALVES["b"]["a"].cast(pa.float32()))
    write_folder(tmp_path, {"a.parquet": HALVES["a"], "b.parquet": other})
    with pytest.raises(DataError, match=r"different types of the column 'a': double in .*float in"):
        Source(tmp_path).open(SCHEMA)
    # What the schema does not name may be anything.
    other = HALVES["b"].set_column(0, "extra", HALVES["b"]["a"])
    write_folder(tmp_path, {"b.parquet": other})
    assert_same(codes(Source(tmp_path).open(SCHEMA)), EXPECTED)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_a_file_without_a_column(ending, tmp_path):
    halves = {f"a{ending}": HALVES["a"], f"b{ending}": HALVES["b"].drop_columns("b")}
    write_folder(tmp_path, halves)
    with pytest.raises(DataError, match=r"b\..* has no column 'b'"):
        Source(tmp_path).open(SCHEMA)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet file" * 100])
def test_what_is_no_parquet_file(content, tmp_path):
    write_folder(tmp_path, {"a.parquet": TABLE})
    (tmp_path / "b.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*b\.parquet"):
        Source(tmp_path).open(SCHEMA)


def test_a_damaged_parquet_file(tmp_path):
    write_folder(tmp_path, {"a.parquet": TABLE.drop_columns("extra")})
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[40 : len(content) // 2] = b"\xff" * (len(content) // 2 - 40)
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*a\.parquet: it is damaged"):
        codes(Source(tmp_path).open(SCHEMA))


def append(file):
    with file.open("ab") as opened:
        opened.write(b"0.5,u,1\n")


def replace(file):
    file.with_suffix(".new").write_bytes(file.read_bytes())
    file.with_suffix(".new").replace(file)


def touch(file):
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize("change", [append, replace, touch, os.remove])
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_that_changes_while_it_is_read(ending, which, change, tmp_path):
    write_folder(tmp_path, {f"{name}{ending}": half for name, half in HALVES.items()})
    batches = iter(Source(tmp_path).open(SCHEMA))
    next(batches)
    next(batches)
    change(tmp_path / f"{which}{ending}")
    with pytest.raises(DataError, match=r"changed while|cannot read"):
        list(batches)


def test_a_changed_file_costs_nothing(tmp_path):
    ledger, blocks = tmp_path / "ledger", tmp_path / "blocks"
    LedgerStore.create(ledger, Budget(3.0), columns=["a", "b", "y"])
    blocks.mkdir()
    write_folder(tmp_path / "data", {"a.parquet": TABLE})
    before = ledger.read_bytes()
    source = Source(
        tmp_path / "data", blocks, progress=lambda _: touch(tmp_path / "data" / "a.parquet")
    )
    with pytest.raises(DataError, match=r"changed while it was read.*nothing was spent"):
        DiffPID3Classifier(1.0, schema=SCHEMA, ledger=ledger).fit(source)
    assert ledger.read_bytes() == before
    assert list(blocks.iterdir()) == []


def test_csv_files_are_read_as_ever(tmp_path, monkeypatch):
    schema = Schema({"when": Date("2020-01-01", "2021-01-01"), "a": Numeric(0, 9)}, "y",
                    classes=["no", "yes"])  # fmt: skip
    lines = [f"2020-01-{k % 40:02};{k % 11},5;{'yes' if k % 2 else 'no'};x" for k in range(400)]
    lines[7:9] = ['"2020-01-01";"1\n";no;x', "only one field"]
    content = "\n".join(["when;a;y;more", *lines]) + "\n"
    (tmp_path / "rows.csv").write_text(content, encoding="latin-1")
    monkeypatch.setattr("privet.reading.csv._BLOCK", 1_000)
    options = {"separator": ";", "encoding": "latin-1", "decimal": ","}
    table = read_table(tmp_path / "rows.csv", schema, **options)
    stream = Source(tmp_path / "rows.csv", **options).open(schema)
    assert_same(codes(stream), codes(Stream([table], schema)))


def test_a_csv_file_without_rows(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n")
    found = codes(Source(tmp_path / "rows.csv").open(SCHEMA))
    assert [len(column) for column in found] == [0, 0, 0]


def test_options_of_csv_files_are_for_csv_files(tmp_path):
    write_folder(tmp_path, {"a.parquet": TABLE})
    with pytest.raises(DataError, match="for CSV files, not for Parquet"):
        Source(tmp_path, decimal=",").open(SCHEMA)


def test_a_warning_is_given_once(tmp_path):
    table = TABLE.set_column(2, "a", TABLE["a"].cast(pa.string()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codes(stream_of(table.to_reader(50), SCHEMA))
    assert [one.category for one in caught] == [ColumnTypeWarning]
