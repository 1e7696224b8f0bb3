"""Some hundred damaged and hostile files through the commands; the benchmark has thousands."""

import importlib.util
from pathlib import Path

import pytest

import privet
from privet import Schema, export
from privet.cli.show import Format, show
from privet.errors import PrivetError

spec = importlib.util.spec_from_file_location(
    "_hostile_files", Path(__file__).parents[2] / "benchmarks" / "_hostile_files.py"
)
hostile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hostile)


def read_or_refused(read, path):
    """Return what a file holds, or nothing; a refusal is one sentence."""
    try:
        return read(path)
    except PrivetError as error:
        message = str(error)
    assert "\n" not in message
    assert 0 < len(message) < 600
    return None


def assert_plain(text):
    assert all(c == "\n" or c.isprintable() for c in text)


def verdicts(text):
    return [line for line in text.split("\n") if line.startswith("Verdict:")]


def test_models(tmp_path, capsys):
    """What is read can be shown and exported, and no line but the last is a verdict."""
    read = 0
    path = tmp_path / "model.json"
    for content in hostile.mutated_models(seed=17, count=250):
        path.write_bytes(content)
        model = read_or_refused(privet.load, path)
        if model is None:
            continue
        read += 1
        show(path, Format.text, None)
        text = capsys.readouterr().out
        assert_plain(text)
        assert verdicts(text) == [text.rstrip("\n").split("\n")[-1]]
        for write in (export.to_dot, export.to_svg, export.to_python):
            assert_plain(write(model.predictor))
        read_or_refused(export.to_sql, model.predictor)
    assert 50 < read < 200


def test_schemas(tmp_path):
    """What is read is written and read again as it is."""
    read = 0
    path = tmp_path / "schema.toml"
    for content in hostile.mutated_schemas(seed=17, count=300):
        path.write_bytes(content)
        schema = read_or_refused(Schema.from_toml, path)
        if schema is None:
            continue
        read += 1
        assert Schema.from_dict(schema.to_dict()) == schema
        path.write_text(schema.toml(), newline="")
        assert Schema.from_toml(path) == schema
    assert 50 < read < 250


@pytest.mark.parametrize("kind", ["models", "schemas"])
def test_the_whole_command(kind, tmp_path, call_privet):
    """From the command's first line to its exit code."""
    path = tmp_path / "file"
    files = getattr(hostile, f"mutated_{kind}")(seed=18, count=18)
    for place, content in enumerate(files):
        path.write_bytes(content)
        if kind == "models":
            arguments = ["show", path, "--format", list(Format)[place % len(Format)]]
        else:
            books = tmp_path / f"ledger-{place}"
            arguments = ["ledger", books, "--create", "--epsilon", 1, "--schema", path]
        code, output, error = call_privet(*arguments)
        assert_plain(output + error)
        assert code in (0, 2), error
        if code == 2:
            assert error.startswith("Error: ")
            assert error.count("\n") == 1
            assert not verdicts(output)


def test_the_same_seed_gives_the_same_files():
    for mutated in (hostile.mutated_models, hostile.mutated_schemas):
        assert list(mutated(3, 20)) == list(mutated(3, 20)) != list(mutated(4, 20))
