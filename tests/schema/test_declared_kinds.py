"""Kinds of columns: what is declared before there is a schema, and its file."""

import pytest

from privet import Categorical, Date, Integer, Kinds, Numeric, Schema
from privet.errors import SchemaError
from privet.schema import Discovered

TEXT = """
table = "patients"
target = "ill"
unit = "id"
rows_per_unit = 3
n_rows = 1000

[columns]
age = "number"
stays = "integer"
ward = "category"
sex = { kind = "category", values = ["f", "m"] }
day = { kind = "date", low = 2020-01-01, high = "2020-12-31", bins = 12 }
ill = "category"
"""


def test_a_file_says_what_is_known(tmp_path):
    path = tmp_path / "kinds.toml"
    path.write_text(TEXT)
    kinds = Kinds.from_toml(path)
    assert kinds.unknown == ("age", "stays", "ward", "ill")
    assert kinds.columns["day"] == Date("2020-01-01", "2020-12-31", bins=12)
    assert kinds.columns["sex"] == Categorical(["f", "m"])
    assert kinds.parts == 3
    assert kinds.listed == {
        "age": "number",
        "stays": "integer",
        "ward": "category",
        "sex": "category",
        "day": "date",
        "ill": "category",
        "id": "unit",
    }
    kinds.to_toml(path)
    assert Kinds.from_toml(path) == kinds


def test_what_a_schema_needs():
    kinds = Kinds({"age": "number", "sex": Categorical(["f"]), "ill": "category"}, "ill", unit="id")
    with pytest.raises(SchemaError, match="of column 'age' neither bounds nor a list"):
        kinds.schema()
    found = {"age": Numeric(0, 9), "ill": Categorical([0, 1])}
    schema = kinds.schema(found)
    assert schema == Schema(
        {"age": Numeric(0, 9), "sex": Categorical(["f"])}, "ill", classes=[0, 1], unit="id"
    )
    assert kinds.schema(found | {"age": None}).names == ("sex",)
    number = Kinds({"age": Integer(0, 9), "y": "integer"}, "y")
    assert number.schema({"y": Integer(1, 5)}).bounds == (1, 5)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"columns": {}}, "must map the names"),
        ({"columns": ["age"]}, "table of columns"),
        ({"columns": {"age": "number"}}, "target must be one of the columns"),
        ({"columns": {"ill": "category"}}, "at least one column besides"),
        ({"columns": {"age": "numeric", "ill": "category"}}, "column 'age' must be number"),
        ({"columns": {"age": 3, "ill": "category"}}, "column 'age' must be number"),
        ({"columns": {"": "number", "ill": "category"}}, "non-empty"),
        ({"columns": {"age": "number", "ill": "date"}}, "cannot be predicted"),
        ({"columns": {"age": {"kind": "x"}, "ill": "category"}}, "'age' needs kind"),
        ({"columns": {"age": {"kind": "number", "low": 1}, "ill": "category"}}, "lacks 'high'"),
        ({"columns": {"age": {"kind": "number", "values": [1]}, "ill": "category"}}, "unknown key"),
        (
            {"columns": {"age": {"kind": "number", "low": 2, "high": 1}, "ill": "category"}},
            "column 'age': .*low < high",
        ),
        ({"unit": "age"}, "no kind"),
        ({"unit": 3}, "unit must be the name"),
        ({"rows_per_unit": 3}, "name it"),
        ({"n_rows": -1}, "n_rows"),
        ({"n_rows": True}, "n_rows"),
        ({"target": None}, "name the column to predict"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_what_is_wrong_is_said(change, match):
    plain = {"target": "ill", "columns": {"age": "number", "ill": "category"}}
    with pytest.raises(SchemaError, match=match):
        Kinds.from_dict(plain | change)


def test_a_file_is_not_trusted(tmp_path):
    path = tmp_path / "kinds.toml"
    for text, match in (("=", "not valid TOML"), ("a." * 9 + "a = 1", "kinds file")):
        path.write_text(text)
        with pytest.raises(SchemaError, match=match):
            Kinds.from_toml(path)
    with pytest.raises(SchemaError, match="cannot read the kinds file"):
        Kinds.from_toml(tmp_path / "none.toml")


class TestDiscovered:
    GOOD = Discovered(0.1, 1e-6, "gaussian", 5, 2, 60)

    def test_a_schema_file_keeps_it(self, tmp_path):
        schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1], discovered=self.GOOD)
        schema.to_toml(tmp_path / "s.toml")
        assert Schema.from_toml(tmp_path / "s.toml") == schema

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0},
            {"epsilon": "1/10"},
            {"epsilon": float("inf")},
            {"delta": 1},
            {"delta": 0},
            {"noise": "none"},
            {"columns": 0},
            {"columns": 2.0},
            {"lists": 6},
            {"lists": -1},
            {"parts": 0},
            {"more": 1},
        ],
        ids=str,
    )
    def test_what_cannot_be_is_refused(self, change):
        plain = {
            "target": "y",
            "classes": [0, 1],
            "features": {"x": {"type": "numeric", "low": 0, "high": 1}},
            "discovered": self.GOOD.to_dict() | change,
        }
        with pytest.raises(SchemaError):
            Schema.from_dict(plain)

    def test_it_must_be_complete(self):
        with pytest.raises(SchemaError, match="lacks 'parts'"):
            Schema.from_dict(
                {
                    "target": "y",
                    "classes": [0, 1],
                    "features": {"x": {"type": "numeric", "low": 0, "high": 1}},
                    "discovered": {
                        key: value for key, value in self.GOOD.to_dict().items() if key != "parts"
                    },
                }
            )
        with pytest.raises(SchemaError, match="discovered"):
            Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1], discovered="yes")
