"""Metadata of others: CSVW with privacy, and SmartNoise's YAML."""

import json

import pytest

from privet import Categorical, Date, Integer, Numeric, Schema
from privet.errors import SchemaError
from privet.metadata import csvw_of, read_metadata, smartnoise_of

CSVW = {
    "@type": "csvw:Table",
    "name": "penguins",
    "csvw-safe:privacyUnit": "bird",
    "csvw-safe:public.length": 344,
    "csvw-safe:bounds.maxContributions": 3,
    "csvw:tableSchema": {
        "columns": [
            {"name": "bird", "datatype": "integer", "csvw-safe:privacyId": True},
            {"name": "mass", "datatype": "double", "minimum": 2000, "maximum": 7000.5},
            {"name": "flipper", "datatype": {"base": "integer", "minimum": 150, "maximum": 250}},
            {"name": "seen", "datatype": "date", "minimum": "2007-01-01", "maximum": "2009-12-31"},
            {"name": "island", "datatype": "string", "publicKeys": ["Biscoe", "Dream"]},
            {
                "name": "sex",
                "datatype": "string",
                "csvw-safe:public.partitions": [
                    {"csvw-safe:predicate": {"partitionValue": "f"}},
                    {"csvw-safe:predicate": {"partitionValue": "m"}},
                ],
            },
            {"name": "note", "datatype": "string"},
            {"name": "species", "datatype": "string", "keyValues": ["Adelie", "Gentoo"]},
        ]
    },
}
YAML = """
"":
  Zoo:
    Penguins:
      max_ids: 3
      row_privacy: False
      rows: 344
      bird: {private_id: True, type: int}
      mass: {type: float, lower: 2000, upper: 7000.5}
      flipper: {name: flipper, type: int, lower: 150, upper: 250}
      wild: {type: boolean}
      seen: {type: datetime}
      species:
        type: string
        cardinality: 3
"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_csvw(tmp_path):
    kinds = read_metadata(write(tmp_path, "m.json", CSVW), "species")
    assert kinds.columns == {
        "mass": Numeric(2000, 7000.5),
        "flipper": Integer(150, 250),
        "seen": Date("2007-01-01", "2009-12-31"),
        "island": Categorical(["Biscoe", "Dream"]),
        "sex": Categorical(["f", "m"]),
        "note": "category",
        "species": Categorical(["Adelie", "Gentoo"]),
    }
    assert (kinds.unit, kinds.rows_per_unit, kinds.n_rows, kinds.table) == (
        "bird",
        3,
        344,
        "penguins",
    )
    # The same terms without prefixes, as csvw-eo writes them, in a group of tables.
    plain = json.loads(json.dumps(CSVW).replace("csvw-safe:public.", "").replace("csvw-safe:", ""))
    assert read_metadata(write(tmp_path, "p.json", {"tables": [plain]}), "species") == kinds


def test_smartnoise(tmp_path):
    pytest.importorskip("yaml")
    kinds = read_metadata(write(tmp_path, "m.yaml", YAML), "species")
    assert kinds.columns == {
        "mass": Numeric(2000, 7000.5),
        "flipper": Integer(150, 250),
        "wild": "category",
        "seen": "date",
        "species": "category",
    }
    assert (kinds.unit, kinds.rows_per_unit, kinds.n_rows, kinds.table) == (
        "bird",
        3,
        344,
        "Penguins",
    )
    rows = read_metadata(
        write(tmp_path, "r.yml", YAML.replace("row_privacy: False", "row_privacy: True")), "species"
    )
    assert rows.unit is None


SCHEMA = Schema(
    {
        "age": Numeric(0, 120),
        "stays": Integer(0, 20),
        "day": Date("2020-01-01", "2020-12-31"),
        "sex": Categorical(["f", "m"]),
    },
    "ill",
    classes=["no", "yes"],
    table="patients",
)


def test_what_is_written_is_read_again(tmp_path):
    kinds = read_metadata(write(tmp_path, "s.json", csvw_of(SCHEMA)), "ill")
    assert kinds.schema() == SCHEMA
    pytest.importorskip("yaml")
    kinds = read_metadata(write(tmp_path, "s.yaml", smartnoise_of(SCHEMA)), "ill")
    assert kinds.columns == {
        "age": Numeric(0, 120),
        "stays": Integer(0, 20),
        "day": "date",
        "sex": "category",
        "ill": "category",
    }


def test_a_unit_is_written(tmp_path):
    pytest.importorskip("yaml")
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 5), unit="id", rows_per_unit=4)
    for name, text in (("s.json", csvw_of(schema)), ("s.yaml", smartnoise_of(schema))):
        kinds = read_metadata(write(tmp_path, name, text), "y")
        assert (kinds.unit, kinds.rows_per_unit) == ("id", 4)
        assert kinds.schema().bounds == (0, 5)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("m.json", "{", "not valid JSON"),
        ("m.json", "[" * 100_000, "not valid JSON"),
        ("m.json", "[]", "no tableSchema"),
        ("m.json", {"tables": [{}, {}]}, "several tables"),
        ("m.json", {"tableSchema": {"columns": [{"datatype": "int"}]}}, "without a name"),
        (
            "m.json",
            {"tableSchema": {"columns": [{"name": "a", "datatype": "gYear"}]}},
            "type that is not known",
        ),
        (
            "m.json",
            {
                "tableSchema": {
                    "columns": [{"name": "a", "datatype": "int", "minimum": "x", "maximum": 2}]
                }
            },
            "column 'a'",
        ),
        ("m.json", {"tableSchema": {"columns": [{"name": "a"}, {"name": "a"}]}}, "twice"),
        ("m.json", {"tableSchema": {"columns": [{"name": "a"}]}}, "no column 'species'"),
        (
            "m.json",
            {"privacyUnit": 3, "tableSchema": {"columns": [{"name": "species"}, {"name": "b"}]}},
            "no name of a column",
        ),
        ("m.yaml", "a: [", "not valid YAML"),
        ("m.yaml", "a: &x [1]\nb: *x", "anchors"),
        ("m.yaml", "a: 1", "one table"),
        ("m.yaml", "a: {b: {c: {d: 1}}}", "says nothing"),
        ("m.yaml", "!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("m.txt", "", "name it .json"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, text, match):
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    with pytest.raises(SchemaError, match=match):
        read_metadata(write(tmp_path, name, text), "species")


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(SchemaError, match="cannot read"):
        read_metadata(tmp_path / "none.json", "y")
