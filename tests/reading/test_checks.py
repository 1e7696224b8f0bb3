"""Schemas against data: exact, by the reader of fits, for every container."""

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from privet import Budget, Categorical, Date, Integer, Numeric, PrivateTable, Schema, encode
from privet.errors import ColumnTypeWarning, DataError
from privet.reading import Source
from privet.reading.checks import DISCOVERED, SENSITIVE
from privet.schema import Discovered

SCHEMA = Schema(
    {
        "age": Integer(0, 120),
        "dose": Numeric(0, 10),
        "since": Date("2020-01-01", "2020-12-31"),
        "ward": Categorical(["medicine", "surgery"]),
        "grade": Categorical([1, 2, 3]),
    },
    target="state",
    classes=["alive", "dead"],
)
ROWS = {
    "age": [31.0, 64.5, None, 130.0],
    "dose": [1.0, 2.0, 3.0, -1.0],
    "since": ["2020-02-01", "2021-01-01", None, "2020-03-01"],
    "ward": ["medicine", "Surgery", None, "surgery"],
    "grade": [1.0, 2.0, 7.0, None],
    "state": ["alive", "dead", "Dead", None],
}


def files(folder):
    """Return the same rows in all that fit reads, by name."""
    table = pa.table(ROWS)
    typed = table.set_column(2, "since", table["since"].cast(pa.date32()))
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    text = (folder / "rows.csv").read_text().replace(",", ";").replace(".", ",")
    (folder / "semicolons.csv").write_text(text)
    pyarrow.parquet.write_table(typed, folder / "rows.parquet")
    (folder / "parts").mkdir()
    for k in range(2):
        pyarrow.parquet.write_table(typed.slice(2 * k, 2), folder / "parts" / f"{k}.parquet")
    rows = [list(row) for row in zip(*ROWS.values(), strict=True)]
    return {
        "CSV": folder / "rows.csv",
        "CSV, packed": folder / "rows.csv.gz",
        "CSV, other marks": Source(folder / "semicolons.csv", separator=";", decimal=","),
        "Parquet": str(folder / "rows.parquet"),
        "folder": folder / "parts",
        "pattern": folder / "parts" / "*.parquet",
        "pyarrow": typed,
        "stream": typed.to_reader(max_chunksize=3),
        "pandas": pd.DataFrame(ROWS).astype({"since": "datetime64[s]"}),
        "polars": pl.from_arrow(typed),
        "lists": ([row[:-1] for row in rows], [row[-1] for row in rows]),
    }


@pytest.mark.parametrize("kind", [
    "CSV", "CSV, packed", "CSV, other marks", "Parquet", "folder", "pattern", "pyarrow", "stream",
    "pandas", "polars", "lists",
])  # fmt: skip
def test_every_container_says_the_same(kind, tmp_path):
    given = files(tmp_path)[kind]
    found = SCHEMA.check(*given) if isinstance(given, tuple) else SCHEMA.check(given)
    assert (found.rows, found.left_out, found.fits) == (4, 2, False)
    assert [column.name for column in found.columns] == ["state", *SCHEMA.names]
    assert [(c.missing, c.below, c.above, c.unknown) for c in found.columns] == [
        (1, 0, 0, 1),
        (1, 0, 1, 0),
        (0, 1, 0, 0),
        (1, 0, 1, 0),
        (1, 0, 0, 1),
        (1, 0, 0, 1),
    ]
    state, age, _, since, ward, grade = found.columns
    assert state.found == {"alive": 1, "dead": 1}
    assert "'Dead' (1 times; the schema has 'dead')" in state.problems[0]
    assert age.notes == ("1 of 4 values (25.00%) are not whole, and are compared as they are",)
    assert "lie above high = 2020-12-31" in since.problems[0]
    assert "'Surgery' (1 times; the schema has 'surgery')" in ward.problems[0]
    assert "'7' (1 times)" in grade.problems[0]
    assert "not found '3'" in grade.notes[0]
    assert str(found).startswith(SENSITIVE)
    assert str(found).endswith("The schema does NOT fit.")


@pytest.mark.parametrize("kind", ["CSV", "Parquet", "folder", "pyarrow", "pandas"])
def test_what_is_used_is_what_a_fit_uses(kind, tmp_path):
    given = files(tmp_path)[kind]
    checked = SCHEMA.check(given)
    no_noise = Budget(float("inf"))
    with pytest.warns(match="epsilon is infinite"):
        table = PrivateTable.from_source(Source(given), SCHEMA, no_noise)
    with table:
        counts = table.root().noisy_class_counts(float("inf"))[0].tolist()
    assert counts == list(checked.columns[0].found.values())
    assert sum(counts) == checked.rows - checked.left_out


def test_a_schema_that_fits():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])
    found = schema.check(np.array([[0.5], [np.nan], [1.0]]), np.array([0, 1, 1]))
    assert found.fits
    assert found.left_out == 0
    assert str(found).endswith("A fit uses all 3 records.\nThe schema fits.")
    assert not schema.check(np.zeros((0, 1)), []).fits


def test_few_misfits_are_tolerated():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])
    rows = np.linspace(0, 1, 100).reshape(-1, 1)
    rows[0] = 7
    labels = np.arange(100) % 2
    found = schema.check(rows, labels)
    assert found.fits
    assert found.columns[1].notes == ("1 of 100 values (1.00%) lie above high = 1, and count as 1",)
    assert not schema.check(rows, labels, tolerance=0.001).fits
    with pytest.raises(DataError, match="share of the values"):
        schema.check(rows, labels, tolerance=1.0)


def test_a_class_that_is_never_there_does_not_fit():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b", "c"])
    found = schema.check([[0.5]] * 4, ["a", "b", "a", "b"])
    assert found.columns[0].problems == ("no record has the class 'c'",)


def test_integer_labels_and_text_classes():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["alive", "dead"])
    found = schema.check([[0.5]] * 4, [0, 1, 0, 1])
    assert "which are numbers, where the schema lists text" in found.columns[0].problems[0]
    assert found.left_out == 4
    with pytest.warns(ColumnTypeWarning, match="every record is left out"):
        assert not schema.check([[0.5]] * 4, np.array([0, 1, 0, 1])).fits


def test_text_where_numbers_belong(tmp_path):
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])
    (tmp_path / "rows.csv").write_text("x,y\n0.1,no\nlow,yes\nhigh,no\n")
    found = schema.check(tmp_path / "rows.csv")
    assert "missing or no numbers" in found.columns[0].problems[0]
    assert "another decimal point" in found.columns[1].problems[0]
    number = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 5))
    assert number.check([[0.5]] * 3, [1, 9, "?"]).columns[0].above == 1
    assert number.check([[0.5]] * 3, [1, 9, "?"]).left_out == 1


@pytest.mark.parametrize(
    ("listed", "there", "near"),
    [
        ("dead", " Dead ", True),
        ("dead", "DEAD", True),
        ("cardiology", "cardiolgy", True),
        ("1", "1.50", False),
        ("01", "1", True),
        ("dead", "alive", False),
        ("north", "x" * 5_000, False),
    ],
)
def test_near_misses(listed, there, near):
    schema = Schema({"x": Categorical([listed, "another"])}, "y", classes=[0, 1])
    found = schema.check([[there], ["another"]], [0, 1])
    assert (f"the schema has '{listed}'" in found.columns[1].problems[0]) is near


def test_many_unknown_values_are_not_all_told():
    schema = Schema({"x": Categorical(["a"])}, "y", classes=[0, 1])
    found = schema.check([[f"name {k}"] for k in range(20_000)], [0, 1] * 10_000)
    (problem,) = found.columns[1].problems
    assert found.columns[1].unknown == 20_000
    assert problem.endswith("and others")
    assert len(problem) < 400


def test_what_cannot_be_checked(tmp_path):
    frame = pd.DataFrame(ROWS)
    with pytest.raises(DataError, match="'state', which the schema names as the target"):
        SCHEMA.check(frame.drop(columns="state").astype({"since": "datetime64[s]"}))
    with pytest.raises(DataError, match="different numbers of rows"):
        SCHEMA.check(frame.astype({"since": "datetime64[s]"}), ["alive"])
    frame.astype({"since": "datetime64[s]"}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="check them alone"):
        SCHEMA.check(tmp_path / "rows.parquet", ["alive"])
    encode(tmp_path / "rows.parquet", SCHEMA, tmp_path / "blocks")
    with pytest.raises(DataError, match="encoded blocks"):
        SCHEMA.check(tmp_path / "blocks")


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_persons_are_counted(kind, tmp_path):
    """Across batches and in every container; an identifier that means nothing is told."""
    schema = Schema({"dose": Numeric(0, 10)}, "state", classes=["alive", "dead"], unit="who")
    rows = pd.DataFrame(
        {
            "who": ["a", "b", "a", "NA", "NA", None, "a", "7"],
            "dose": range(8),
            "state": ["alive", "dead"] * 4,
        }
    )
    given = rows
    if kind == "csv":
        given = tmp_path / "rows.csv"
        rows.to_csv(given, index=False)
    elif kind == "parquet":
        given = tmp_path / "rows.parquet"
        rows.to_parquet(given)
    found = schema.check(given)
    unit = found.unit
    assert (unit.persons, unit.missing, unit.texts, unit.most) == (3, 3, 2, 3)
    assert unit.fits
    assert found.fits
    assert "3 persons; the most records of one of them: 3; 3 records" in str(found)
    nobodys = schema.check(rows.assign(who=None))
    assert not nobodys.fits
    assert "most records (8 of 8) do not say whose they are" in str(nobodys)
    assert (
        Schema({"dose": Numeric(0, 10)}, "state", classes=["alive", "dead"]).check(rows).unit
        is None
    )


def test_a_discovered_schema_leaves_out_what_is_rare():
    rows = pa.table({"age": [1, 2, 130], "state": ["alive", "dead", "dead"]})
    schema = Schema({"age": Integer(0, 120)}, "state", classes=["alive", "dead"])
    assert DISCOVERED not in str(schema.check(rows))
    paid = replace(schema, discovered=Discovered(0.1, 0.0, "laplace", 1, 0))
    assert DISCOVERED in str(paid.check(rows))
