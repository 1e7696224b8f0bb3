"""CSV files are read by the grammar of docs/reading.md, and a record is read alone."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import tracemalloc
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet import Categorical, Numeric, Schema, read_table
from privet.errors import DataError
from privet.reading import csv as reader
from privet.reading.values import number_of_text
from privet.schema import LONGEST_TEXT

from .grammar import records

HOSTILE = [
    "", " ", "a", "1", "-0.0", "nan", "NaN", "NA", "inf", "1e400", "1_0", "+1", " 2 ", "\u0661",
    "true", '"', '""', '"""', ",", ";", "\t", "\n", "\r", "\r\n", "\n\n", '"\n', '\n"', ",\n",
    '",\n', "\0", "a\rb", "a\nb", 'a"b', '\n,u,', '","', "\x1b[2J", "\u2028", "\x85", "\ufeff",
    "\ud7ff", "é", "😀", "x" * 140_000, "1,2,yes", "1\n2,3\n", "\n1,yes\n",
]  # fmt: skip
FIELDS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(alphabet=st.sampled_from('a1",\r\n\t ;\0é'), max_size=8),
    st.floats().map(repr),
)
ROWS = st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=6)
SCHEMA = Schema(
    {"x": Numeric(0, 1), "c": Categorical(["a", "", "a\nb", '"', ","])}, "y", classes=["yes", "no"]
)


@pytest.fixture(params=[1 << 23, 16], ids=["whole", "blocks"])
def block(request, monkeypatch):
    """Read files at once, and again in tiny blocks."""
    monkeypatch.setattr(reader, "_BLOCK", request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


def written(rows, *, quoting=csv.QUOTE_MINIMAL, end="\n", separator=","):
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator=end, delimiter=separator).writerows(rows)
    return text.getvalue().encode()


def read(folder, data: bytes, header=b"x,c,y\n", **options):
    """Return the records as tuples; any warning or error fails the test."""
    path = folder / "data.csv"
    path.write_bytes(header + data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(path, SCHEMA, **options)
    assert table.schema.types == [pa.float64(), pa.string(), pa.string()]
    columns = [column.to_pylist() for column in table.columns]
    return [
        (None if x is None or math.isnan(x) else x, *rest)
        for x, *rest in zip(*columns, strict=True)
    ]


def kept(text):
    """Return a text as it is read: one that is too long for any category is missing."""
    return text if len(text.encode()) <= 4 * LONGEST_TEXT else None


def read_as(folder, data: bytes, schema):
    path = folder / "other.csv"
    path.write_bytes(b"x,c,y\n" + data)
    return read_table(path, schema)


def expected(data: bytes):
    """Return what the grammar says, read by the rule for one value."""
    found = []
    for fields in records(b"x,c,y\n" + data, 3):
        if fields is None:
            found.append((None, None, None))
            continue
        x, c, y = (field.decode("utf-8", "replace") for field in fields)
        number = number_of_text(x)
        found.append((None if math.isnan(number) else number, c, y))
    return found


# The grammar

BYTES = st.lists(
    st.sampled_from(
        [b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"1", b"a", b"\0", b"\xff", b'"\n', b',"']
    ),
    max_size=40,
).map(b"".join)  # fmt: skip


@pytest.mark.usefixtures("block")
@settings(max_examples=200, deadline=None)
@given(BYTES)
@example(b'1,"a\n",yes\n')
@example(b'1,"a\n\n')
@example(b'a,b,"\na,"\n,u,",b\n')
def test_every_run_of_bytes_is_read_by_the_grammar(folder, data):
    assert read(folder, data) == expected(data)


@pytest.mark.usefixtures("block")
def test_many_runs_of_bytes_are_read_by_the_grammar(folder):
    random_bytes = random.Random(17)
    pieces = [
        b'"',
        b'"',
        b",",
        b",",
        b"\n",
        b"\r",
        b"\r\n",
        b"1",
        b"a",
        b"1,a,yes\n",
        b'1,"a\nb",no\n',
    ]
    for _ in range(150):
        data = b"".join(random_bytes.choices(pieces, k=random_bytes.randrange(60)))
        assert read(folder, data) == expected(data)


def test_a_single_column(folder):
    path = folder / "one.csv"
    for data in (b"a\n\nb\n", b'"a\n"\n\r\n"\n', b'""\n"\n"x\n'):
        path.write_bytes(b"c\n" + data)
        schema = Schema({"c": Categorical(["a"])}, "y", classes=[0, 1])
        found = read_table(path, schema, target=False)["c"].to_pylist()
        fields = records(b"c\n" + data, 1)
        assert found == [None if field is None else field[0].decode() for field in fields]


# The law, for every tuple of texts that a conforming writer writes


@pytest.mark.usefixtures("block")
def test_a_byte_order_mark_is_a_character_of_its_record(folder):
    mark = "\ufeff".encode()
    rows = [mark + b"1,a,yes\n", b"1," + mark + b"a,yes\n", mark + b"\n", b"0.5,a,no\n"]
    for data in (b"".join(rows), b"".join(rows[::-1]), rows[0] * 9):
        assert read(folder, data) == expected(data)
        table = read_as(folder, data, Schema({"x": Categorical(["1"])}, "c", classes=["a", "b"]))
        texts = [
            None if fields is None else fields[0].decode() for fields in records(b"\n" + data, 3)
        ]
        assert table["x"].to_pylist() == texts


@pytest.mark.usefixtures("block")
@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    ROWS,
    ROWS,
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_records_are_read_alone(folder, before, rows, after, quoting, end):
    parts = [written(part, quoting=quoting, end=end) for part in (before, rows, after)]
    together = read(folder, b"".join(parts))
    assert together == [record for part in parts for record in read(folder, part)]
    assert [record[1] for record in together] == [kept(row[1]) for row in before + rows + after]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_every_hostile_text_is_one_record(folder, quoting):
    benign = [("0.5", "a", "yes"), ("0.25", "\n", "no"), ("1", "a", "no")]
    for text in HOSTILE:
        row = (text, text, text)
        for place in range(4):
            rows = [*benign[:place], row, *benign[place:]]
            found = read(folder, written(rows, quoting=quoting))
            assert [record[1] for record in found] == [kept(record[1]) for record in rows]
            assert [record[0] for record in found if record[1] != kept(text)] == [
                float(record[0]) for record in rows if record[1] != text
            ]


def test_pandas_and_pyarrow_are_conforming_writers(folder):
    rows = [("1", text, "yes") for text in HOSTILE if "\0" not in text]
    frame = pd.DataFrame(rows, columns=["x", "c", "y"])
    for data in (frame.to_csv(index=False).encode(), _by_pyarrow(frame)):
        found = [record[1] for record in read(folder, data, header=b"")]
        assert found == [kept(row[1]) for row in rows]


def _by_pyarrow(frame):
    sink = io.BytesIO()
    pa.csv.write_csv(pa.Table.from_pandas(frame), sink)
    return sink.getvalue()


# What an arbitrary line of bytes can do: the three rules of docs/reading.md

LINE = st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"") + b"\n")
QUOTED_LINE = st.lists(st.sampled_from([b'"', b",", b"a", b"\r"]), max_size=9).map(
    lambda parts: b"".join(parts) + b"\n"
)
NO_BREAK = FIELDS.map(lambda text: text.replace("\n", "").replace("\r", ""))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(NO_BREAK, NO_BREAK, NO_BREAK), max_size=5),
    st.integers(0, 5),
    st.one_of(LINE, QUOTED_LINE),
)
def test_a_line_changes_no_other_record_without_quoted_line_breaks(folder, rows, place, line):
    lines = [written([row]) for row in rows]
    alone = [read(folder, one) for one in lines]
    found = read(folder, b"".join([*lines[:place], line, *lines[place:]]))
    others = [record for one in alone for record in one]
    # One record more, or none if the line is empty; all others as they were.
    mine = len(found) - len(others)
    assert mine == (line not in (b"\n", b"\r\n"))
    place = min(place, len(others))
    assert found[:place] + found[place + mine :] == others


@settings(max_examples=100, deadline=None)
@given(ROWS, st.integers(0, 5), QUOTED_LINE.filter(lambda line: line.count(b'"') % 2 == 0))
def test_a_line_with_balanced_quotes_changes_no_other_record(folder, rows, place, line):
    lines = [written([row]) for row in rows]
    others = [record for one in lines for record in read(folder, one)]
    found = read(folder, b"".join([*lines[:place], line, *lines[place:]]))
    mine = len(found) - len(others)
    assert mine == (line not in (b"\n", b"\r\n"))
    place = min(place, len(others))
    assert found[:place] + found[place + mine :] == others


def test_with_quoted_line_breaks_no_reader_can_bound_what_one_line_does(folder):
    n = 50
    record = b'a,"\n,u,",b\n'
    both = b'a,b,"\n' + record * n
    without_first = read(folder, record * n)
    assert without_first == [(None, "\n,u,", "b")] * n
    without_last = read(folder, both.removesuffix(b',u,",b\n'))
    assert without_last == [(None, "b", "\na,"), *[(None, "u", ",b\na,")] * (n - 1)]
    assert set(without_first).isdisjoint(without_last)
    # A greedy reader takes the first reading; the line that is left over is one record.
    assert read(folder, both) == [*without_last, (None, None, None)]


def test_two_stray_lines_may_pair(folder):
    """Which is why the rules speak of one stray line among records that writers wrote."""
    rows = b'1,a,"\n' + b"1,a,no\n" * 10
    assert len(read(folder, rows)) == 11
    assert len(read(folder, rows + b'"\n')) == 1


@pytest.mark.usefixtures("block")
def test_no_quote_is_followed_further_than_a_limit(folder, monkeypatch):
    monkeypatch.setattr(reader, "MAX_RECORD", 200)
    rows = b"1,a,no\n" * 100
    assert len(read(folder, b'1,a,"\n' + rows + b'"\n')) == 102
    assert len(read(folder, b'1,a,"\n' + rows[:140] + b'"\n' + rows)) == 101


def test_a_stray_quote_costs_little_memory(folder, monkeypatch):
    monkeypatch.setattr(reader, "_BLOCK", 1 << 16)
    path = folder / "data.csv"
    path.write_bytes(b'x,c,y\n1,a,"\n' + b"0.5,a,no\n" * 400_000)
    file = reader.CsvFile(path, reader.Dialect())
    tracemalloc.start()
    rows = sum(len(table) for table in file.blocks(["x", "c", "y"], ["x"]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 400_001
    assert peak < 4 * path.stat().st_size


def test_one_line_of_carriage_returns_is_one_record(folder):
    rows = b"0.5,a,yes\n" * 10
    assert len(read(folder, rows + b"0.5,a,yes\r" * 60 + b"\n")) == 11


def test_a_field_may_be_long(folder):
    for size in (131_072, 131_073, 2_000_000):
        found = read(folder, b'0.5,"' + b"z" * size + b'",yes\n1,a,no\n')
        assert [record[1:] for record in found] == [(None, "yes"), ("a", "no")]
    found = read(folder, b'0.5,"' + b"z" * LONGEST_TEXT + b'",yes\n1,a,no\n')
    assert [len(record[1]) for record in found] == [LONGEST_TEXT, 1]


def test_long_fields_stand_beside_records_that_are_not_well_formed(folder):
    long = b"z" * 100_000
    data = b"0.5," + long + b",yes\nbad\n1,a,no\n" + b"1,b," + long + b"\n2\n"
    blank = (None, None, None)
    assert read(folder, data) == [
        (0.5, None, "yes"), blank, (1.0, "a", "no"), (1.0, "b", None), blank
    ]  # fmt: skip


def test_the_work_is_linear_in_unbalanced_quotes(folder, monkeypatch):
    monkeypatch.setattr(reader, "_BLOCK", 1 << 12)
    for line in (b'a,b,"\n', b'"\n', b'1,"a\n', b'"""\n', b'a,"b","\n'):
        assert len(read(folder, line * 20_000)) >= 10_000


# Options of the reader, and what it says


def test_separators_encodings_and_decimal_points(folder):
    path = folder / "german.csv"
    path.write_bytes("x;c;y\n0,5;ä;yes\n1.000,5;b;no\n;;\n".encode("latin-1"))
    table = read_table(path, SCHEMA, separator=";", encoding="latin-1", decimal=",")
    assert table["c"].to_pylist() == ["ä", "b", ""]
    assert table["x"].to_pylist()[0] == 0.5
    assert all(x is None or math.isnan(x) for x in table["x"].to_pylist()[1:])
    table = read_table(path, SCHEMA, separator=";", decimal=",")
    assert table["c"].to_pylist() == ["\ufffd", "b", ""]


def test_the_decimal_point_is_the_same_in_clean_and_in_other_columns(folder):
    path = folder / "decimal.csv"
    for texts in (["0,5", "12", "1e3", "-0,25"], ["0,5", "12", "?!", "1e3", "-0,25", "1.5"]):
        path.write_text("x;c;y\n" + "".join(f"{text};a;no\n" for text in texts))
        found = read_table(path, SCHEMA, separator=";", decimal=",")["x"].to_pylist()
        alone = [number_of_text(text, ",") for text in texts]
        assert [0.0 if math.isnan(x) else x for x in found] == [
            0.0 if math.isnan(x) else x for x in alone
        ]


NUMBERS = st.text(alphabet=st.sampled_from("01.,-+eEinfaN_ xX"), max_size=6)


@settings(max_examples=150, deadline=None)
@given(NUMBERS)
def test_a_number_is_the_same_in_every_company(folder, text):
    """A clean column is converted by pyarrow, one with text in it item by item."""
    data = written([(text, "a", "yes")])
    alone = read(folder, data)
    assert read(folder, data + b"rubbish,a,yes\n")[:1] == alone
    number = number_of_text(text)
    assert alone[0][0] == (None if math.isnan(number) else number)


def test_tabs_and_packed_files(folder):
    (folder / "tabs.tsv").write_text("x\tc\ty\n0.5\ta,b\tyes\n")
    assert read_table(folder / "tabs.tsv", SCHEMA)["c"].to_pylist() == ["a,b"]
    with gzip.open(folder / "packed.csv.gz", "wb") as file:
        file.write(b"\xef\xbb\xbfx,c,y\r\n0.5,a,yes\r\n")
    assert read_table(folder / "packed.csv.gz", SCHEMA)["y"].to_pylist() == ["yes"]


def test_a_packed_file_has_a_limit(folder, monkeypatch):
    monkeypatch.setattr(reader, "MAX_UNPACKED", 1 << 20)
    with gzip.open(folder / "bomb.csv.gz", "wb") as file:
        file.write(b"x,c,y\n" + b"0,0,0\n" * (1 << 20))
    with pytest.raises(DataError, match="unpacks to more than"):
        read_table(folder / "bomb.csv.gz", SCHEMA)


BAD = {
    "semicolons": (b"x;c;y\n1;secret;yes\n", "separated by ';'"),
    "tabs": (b"x\tc\ty\n1\tsecret\tyes\n", "separated by a tab"),
    "old Mac": (b"x,c,y\r1,secret,yes\r", "line ends"),
    "UTF-16": ("x,c,y\n".encode("utf-16"), "UTF-16"),
    "Latin": ("x,c,ü\n".encode("latin-1"), "encoding"),
    "quotes": (b'x,"c,y\n1,secret,yes\n', "first line"),
    "empty": (b"", "no columns"),
    "twice": (b"x,x,c,y\n", "same name"),
    "other": (b"x,c,z\n", "no column 'y'"),
    "a quote and much more": (b'x,"c,y\n' + b"1,secret,yes\n" * 200_000, "first line"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_wrong_header_gets_a_sentence(folder, kind):
    data, message = BAD[kind]
    path = folder / "bad.csv"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path, SCHEMA)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "one ASCII character"),
        ({"separator": '"'}, "one ASCII character"),
        ({"decimal": ","}, "same character"),
        ({"decimal": "x"}, "decimal point"),
        ({"encoding": "utf-16"}, "single byte"),
        ({"encoding": "shift-jis"}, "single byte"),
        ({"encoding": "no such"}, "single byte"),
        ({"encoding": "mac_arabic"}, "single byte"),
        ({"encoding": "mac_farsi"}, "single byte"),
    ],
)
def test_wrong_options_get_a_sentence(folder, options, message):
    path = folder / "good.csv"
    path.write_bytes(b"x,c,y\n1,a,yes\n")
    with pytest.raises(DataError, match=message):
        read_table(path, SCHEMA, **options)


def test_a_damaged_packed_file_gets_a_sentence(folder):
    whole = gzip.compress(b"x,c,y\n" + b"0.5,secret,yes\n" * 1000)
    for data in (whole[:-20], b"no gzip", whole[:20] + b"\0" * 20 + whole[40:]):
        (folder / "damaged.csv.gz").write_bytes(data)
        with pytest.raises(DataError, match="cannot unpack") as caught:
            read_table(folder / "damaged.csv.gz", SCHEMA)
        assert "secret" not in str(caught.value)
