"""What a terminal gets: text of files is text, and only the verdict looks like one."""

import ast
import io
import json
import logging
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from rich.console import Console

import privet
from privet import LedgerStore
from privet.cli import _terminal
from privet.datasets import PATIENTS
from privet.estimators import DiffPID3Classifier
from privet.schema import Categorical, Numeric, Schema

VERDICT = "Verdict: private; the guarantee holds for the fit as described"
EVIL = f"\x1b[2J[/x] [green]private[/]\r\n{VERDICT}\u202e\u200b\x9b1m\n{VERDICT}"
SOURCES = sorted(Path(_terminal.__file__).parent.glob("*.py"))


def assert_plain(text: str) -> None:
    assert all(c == "\n" or c.isprintable() for c in text), ascii(text)


def assert_one_verdict(text: str, verdict: str) -> None:
    lines = [line for line in text.split("\n") if line.lower().startswith("verdict")]
    assert lines == [f"Verdict: {verdict}"]


@pytest.fixture
def evil(tmp_path, patients):
    """A folder in which every name is hostile: the model is not private."""
    schema = Schema(
        {f"a{EVIL}": Numeric(0, 1), f"b{EVIL}": Categorical([f"c{EVIL}", f"d{EVIL}"])},
        target=EVIL, classes=[f"no{EVIL}", f"yes{EVIL}"], table=f"t{EVIL}",
    )  # fmt: skip
    rows = pa.table({
        name: [0.1, 0.9] * 50 if isinstance(feature, Numeric) else list(feature.values) * 50
        for name, feature in schema.features.items()
    } | {schema.target: list(schema.classes) * 50})  # fmt: skip
    schema.to_toml(tmp_path / "schema.toml")
    pyarrow.parquet.write_table(rows, tmp_path / "data.parquet")
    LedgerStore.create(
        tmp_path / "ledger", privet.Budget(50.0), columns=rows.column_names, table=schema.table
    )
    model = DiffPID3Classifier(epsilon=20.0, schema=schema, max_depth=2).fit(rows).to_model()
    plain = model.to_dict()
    plain["learner"] = EVIL
    plain["privacy"] |= {
        "notes": [EVIL, VERDICT], "warnings": [EVIL, VERDICT], "private": False,
        "adjacency": EVIL,
    }  # fmt: skip
    (tmp_path / "model.json").write_text(json.dumps(plain))
    return tmp_path


def test_a_hostile_model_is_shown_as_text(evil, call_privet):
    code, output, error = call_privet("show", evil / "model.json")
    assert code == 0, error
    assert_plain(output + error)
    assert_one_verdict(output, "NOT PRIVATE")
    assert output.rstrip().endswith("Verdict: NOT PRIVATE")
    assert "\\x1b[2J[/x]" in output


def test_a_file_that_contradicts_itself_is_not_called_private(evil, call_privet):
    plain = json.loads((evil / "model.json").read_text())
    plain["privacy"]["private"] = True
    (evil / "model.json").write_text(json.dumps(plain))
    code, output, _ = call_privet("show", evil / "model.json")
    assert code in (0, 2)
    assert VERDICT not in output.split("\n")


@pytest.mark.parametrize("form", ["dot", "svg", "sql", "python", "json"])
def test_other_forms_are_exact_or_refused(evil, call_privet, form):
    code, output, error = call_privet("show", evil / "model.json", "--format", form)
    assert_plain(output + error)
    assert not [line for line in output.split("\n") if line.startswith("Verdict")]
    if form == "sql":  # it would mean something else if it were changed
        assert code == 2
        assert "--out" in error
        assert output == ""
    else:
        assert code == 0, error
    out = evil / "shown"
    assert call_privet("show", evil / "model.json", "--format", form, "--out", out)[0] == 0
    if form == "sql":
        assert EVIL in out.read_bytes().decode()


def test_a_line_break_in_sql_makes_no_line(tmp_path, call_privet):
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["no", f"yes\n{VERDICT}"])
    rows = pa.table({"x": [0.1, 0.9] * 50, "y": list(schema.classes) * 50})
    model = DiffPID3Classifier(epsilon=20.0, schema=schema, max_depth=1).fit(rows)
    model.save(tmp_path / "model.json")
    code, output, error = call_privet("show", tmp_path / "model.json", "--format", "sql")
    assert (code, output) == (2, "")
    assert "--out" in error


def test_commands_with_hostile_names(evil, call_privet):
    strange = evil / "[red]\x1b[2J\n\u202e[x].json"
    data, schema = evil / "data.parquet", evil / "schema.toml"
    runs = [
        ("fit", data, "--schema", schema, "--learner", "diffpid3", "--max-depth", 1, "--ledger",
         evil / "ledger", "--out", strange),
        ("show", strange),
        ("ledger", evil / "ledger"),
        ("predict", strange, data, "--out", evil / "[x]\x1b.csv"),
        ("certify", strange, "--rows", 100),
        ("certify", strange, "--rows", 100, "--accuracy", 0.9, "--plot", evil / "[x].svg"),
        ("plan", "--rows", 1000, "--epsilon", 1, "--schema", schema),
        ("audit", "--learner", "diffpid3", "--samples", 100, "--data", data, "--schema", schema),
        ("schema", "draft", data, "--out", evil / "\x1b[31m.toml"),
    ]  # fmt: skip
    for run in runs:
        code, output, error = call_privet(*run)
        assert code == 0, (run[0], error)
        assert_plain(output + error)
        if run[0] in ("fit", "show"):
            assert_one_verdict(output, "private; the guarantee holds for the fit as described")
        else:
            assert not [line for line in output.split("\n") if line.startswith("Verdict")]


def test_errors_quote_names_as_text(evil, call_privet):
    schema, data = evil / "schema.toml", evil / "data.parquet"
    pyarrow.csv.write_csv(pa.table({"x": [1]}), evil / "short.csv")
    runs = [
        ("show", f"{EVIL}.json"),
        ("show", "model.json", EVIL),
        ("show", "model.json", "--format", EVIL),
        (EVIL,),
        ("fit", data, "--schema", schema, "--target", EVIL + "x", "--out", evil / "m"),
        ("fit", evil / "short.csv", "--schema", schema, "--out", evil / "m"),
        ("fit", f"{EVIL}.csv", "--schema", schema, "--out", evil / "m"),
        ("schema", "draft", data),
        ("ledger", EVIL),
    ]
    for run in runs:
        code, output, error = call_privet(*run)
        assert code == 2, (run, error)
        assert_plain(output + error)
        assert output == ""
        assert error.startswith("Error: ")
        assert error.count("\n") == 1


def test_usage_errors_end_with_code_2_and_one_line(call_privet):
    for run in (["fit"], ["--bogus"], ["nonsense"], ["fit", "x", "--epsilon", "much"], ["plan"]):
        code, output, error = call_privet(*run)
        assert (code, output, error.count("\n")) == (2, "", 1), run
        assert "--help" in error


def test_nothing_is_read_as_markup_or_emoji(capsys):
    for text in ("[bold]x[/bold]", "[/x]", ":smile:", "[link=x]y[/link]", "\\[x]"):
        _terminal.say(text)
        _terminal.say_lines(text)
        _terminal.say_quoted(text)
        table = _terminal.PlainTable("title", ["column"])
        table.add(text)
        table.show()
        assert capsys.readouterr().out.count(text) == 4


def test_long_texts_are_cut_with_a_note(capsys):
    _terminal.say("x" * 100_000)
    _terminal.say_lines("y" * 100_000)
    _terminal.say_quoted("z" * 100_000)
    out = capsys.readouterr().out
    assert len(out) < 7_000
    assert out.count("more characters") == 3


def test_on_a_terminal_the_rest_of_a_long_line_is_indented(monkeypatch):
    """A text cannot be spaced so that its second half begins a line of the screen."""
    screen = io.StringIO()

    def console(*, error):
        return Console(file=screen, width=60, force_terminal=True, color_system=None)

    monkeypatch.setattr(_terminal, "_console", console)
    for padding in range(30, 80):
        text = "-" * padding + " " + VERDICT + " " + VERDICT
        _terminal.say(f"Wrote {text}")
        _terminal.say_lines(text)
        _terminal.say_quoted(text)
    lines = screen.getvalue().split("\n")
    assert all(len(line) <= 60 for line in lines)
    assert not [line for line in lines if line.startswith("Verdict")]
    assert all(line.startswith(("Wrote", "  ")) for line in lines if line)


def test_progress_shows_names_as_text(capsys):
    with _terminal.progress("[/x] learning"):
        logging.getLogger("privet").info("level [/x] of %s", EVIL)
    with _terminal.progress_bar() as start:
        start("[/x]" + EVIL)(1, 2)
    captured = capsys.readouterr()
    assert "\x1b[2J" not in captured.out + captured.err


def test_only_warnings_of_privet_say_what_they_are_about(call_privet, tmp_path, monkeypatch):
    def warn(*_, **__):
        warnings.warn("a secret of [/x] the data", RuntimeWarning, stacklevel=1)
        warnings.warn(f"ours {EVIL}", privet.errors.ColumnTypeWarning, stacklevel=1)
        raise privet.errors.SchemaError("enough")

    monkeypatch.setattr(Schema, "from_toml", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, output, error = call_privet("fit", "x.csv", "--schema", "x", "--out", tmp_path / "m")
    assert code == 2
    assert "secret" not in output + error
    assert "RuntimeWarning" in error
    assert "ours" in error
    assert_plain(output + error)


def test_a_terminal_without_unicode(tmp_path, monkeypatch, call_privet, patients):
    DiffPID3Classifier(epsilon=1.0, schema=PATIENTS, max_depth=1).fit(patients).save(
        tmp_path / "m.json"
    )
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    code, _, error = call_privet("show", tmp_path / "m.json")
    assert code == 0, error
    stream.flush()
    assert b"Verdict: private" in stream.buffer.getvalue()


def print_calls(path):
    """Yield what prints past the one door: imports of rich, and functions that print."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        else:
            names = []
        yield from (name for name in names if name.split(".")[0] in ("rich", "click"))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "typer.echo", "typer.secho", "typer.style") or called.endswith(
                ("stdout.write", "stderr.write")
            ):
                yield called


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_commands_print_through_one_module(path):
    found = list(print_calls(path))
    assert bool(found) == (path.name == "_terminal.py"), found


def test_the_check_sees_who_prints(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from rich.console import Console\nimport typer\ntyper.echo(x)\nprint(x)\n")
    assert sorted(print_calls(bad)) == ["print", "rich.console", "typer.echo"]
