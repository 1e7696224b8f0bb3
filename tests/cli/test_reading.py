"""The options of the CSV reader, in every command that opens data."""

import gzip

import pytest

SCHEMA = """\
target = "y"
classes = ["ja", "nein"]
[features.x]
type = "numeric"
low = 0
high = 10
[features.ort]
type = "categorical"
values = ["Köln", "Berlin"]
"""
ROWS = "x;ort;y\n" + "1,5;Köln;ja\n9,5;Berlin;nein\n" * 200
OPTIONS = ["--separator", ";", "--encoding", "latin-1", "--decimal", ","]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "rows.csv").write_bytes(ROWS.encode("latin-1"))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(ROWS.encode("latin-1")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_german_table_is_drafted_learnt_and_predicted(folder, call_privet, name):
    code, output, error = call_privet("schema", "draft", name, *OPTIONS)
    assert code == 0, error
    assert "low = 1.5" in output
    assert "Köln" in output
    code, _, error = call_privet(
        "fit", name, "--schema", "schema.toml", "--epsilon", 50, "--out", "model.json", *OPTIONS
    )
    assert code == 0, error
    code, _, error = call_privet("predict", "model.json", name, "--out", "p.csv", *OPTIONS)
    assert code == 0, error
    lines = (folder / "p.csv").read_text().splitlines()
    assert len(lines) == 401
    assert lines[1].startswith('"ja"')
    assert lines[2].startswith('"nein"')


def test_a_wrong_separator_and_a_wrong_decimal_point_get_a_hint(folder, call_privet):
    code, _, error = call_privet("fit", "rows.csv", "--schema", "schema.toml")
    assert code == 2
    assert "separated by ';'" in " ".join(error.split())
    assert "--separator" in error
    code, _, error = call_privet("schema", "draft", "rows.csv")
    assert code == 2
    assert "separated by ';'" in " ".join(error.split())
    code, _, error = call_privet("schema", "draft", "rows.csv", "--separator", ";")
    assert code == 0
    assert "--decimal" in error


def test_tab_is_a_word(folder, call_privet):
    (folder / "tabs.csv").write_bytes(ROWS.replace(";", "\t").encode("latin-1"))
    given = ["--separator", "tab", *OPTIONS[2:]]
    code, output, error = call_privet("schema", "draft", "tabs.csv", *given)
    assert code == 0, error
    assert "[features.ort]" in output


@pytest.mark.parametrize(
    "options", [["--separator", "xx"], ["--encoding", "utf-16"], ["--decimal", ";"]]
)
def test_wrong_options_end_with_code_2(folder, call_privet, options):
    code, _, error = call_privet("schema", "draft", "rows.csv", *options)
    assert code == 2
    assert error.startswith("Error:")


def test_the_audit_reads_as_fits_do(folder, call_privet):
    given = ["--learner", "sulq", "--samples", 20, "--data", "rows.csv", "--schema", "schema.toml"]
    code, _, error = call_privet("audit", *given)
    assert code == 2
    assert "--separator" in error
    code, output, error = call_privet("audit", *given, *OPTIONS)
    assert code == 0, error
    assert "sensitive" in output


def test_a_name_that_no_file_can_have_ends_with_code_2(folder, call_privet):
    for command in (["schema", "draft"], ["fit", "--schema", "schema.toml"]):
        code, _, error = call_privet(*command, "a" * 300 + ".csv")
        assert code == 2
        assert "there is no file" in error
