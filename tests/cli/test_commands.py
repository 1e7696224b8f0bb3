"""The command as people run it: the whole way, bad input, and what messages may not say."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import privet
from privet import LedgerStore, Schema
from privet.datasets import PATIENTS
from privet.reading import read_table
from privet.tables import PrivateCells

COMMAND = Path(sys.executable).parent / "privet"


def run(*arguments, cwd):
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def folder(tmp_path, patients):
    pyarrow.csv.write_csv(patients, tmp_path / "patients.csv")
    pyarrow.parquet.write_table(patients, tmp_path / "patients.parquet")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    return tmp_path


def test_the_whole_way_from_data_to_predictions(folder):
    done = run("schema", "draft", "patients.csv", "--out", "draft.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert Schema.from_toml(folder / "draft.toml").drafted

    done = run("ledger", "books", "--create", "--epsilon", 3, "--schema", "schema.toml", cwd=folder)
    assert done.returncode == 0, done.stderr

    done = run(
        "fit", "patients.csv", "--schema", "schema.toml", "--target", "readmitted",
        "--epsilon", 2, "--learner", "diffpid3", "--max-depth", 2, "--out", "model.json",
        "--ledger", "books", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "spent epsilon 2" in done.stdout
    model = privet.load(folder / "model.json")
    assert model.privacy.private

    done = run(
        "fit", "patients.parquet", "--schema", "schema.toml", "--epsilon", 2, "--ledger", "books",
        "--out", "other.json", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 2
    assert "epsilon 1 is left" in done.stderr
    assert not (folder / "other.json").exists()

    done = run("predict", "model.json", "patients.csv", "--out", "predictions.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    predictions = pd.read_csv(folder / "predictions.csv")
    expected = model.predict(pyarrow.parquet.read_table(folder / "patients.parquet"))
    assert predictions["prediction"].tolist() == expected.tolist()
    assert list(predictions) == ["prediction", "probability_no", "probability_yes"]

    done = run("ledger", "books", cwd=folder)
    assert done.returncode == 0
    assert "left: epsilon 1" in done.stdout
    assert "settled" in done.stdout


@pytest.mark.parametrize("form", ["text", "dot", "svg", "sql", "python", "json"])
def test_show(form, folder, call_privet):
    code, _, error = call_privet(
        "fit", folder / "patients.parquet", "--schema", folder / "schema.toml",
        "--max-depth", 2, "--out", folder / "model.json",
    )  # fmt: skip
    assert code == 0, error
    code, output, error = call_privet("show", folder / "model.json", "--format", form)
    assert code == 0, error
    landmark = {
        "text": "spent epsilon 1",
        "dot": "digraph",
        "svg": "</svg>",
        "sql": "CASE",
        "python": "def predict",
        "json": '"format": "privet-model"',
    }
    assert landmark[form] in output
    if form == "json":
        assert json.loads(output)["privacy"]["epsilon"] == 1.0
    code, _, _ = call_privet(
        "show", folder / "model.json", "--format", form, "--out", folder / "shown"
    )
    assert code == 0
    assert landmark[form] in (folder / "shown").read_text() or form == "text"


def test_the_demo_says_everything_and_writes_the_model(tmp_path):
    done = run("demo", "--rows", 5_000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for landmark in (
        "The private tree",
        "scikit-learn tree, not private",
        "Ledger",
        "Verdict: private",
    ):
        assert landmark in done.stdout
    assert privet.load(tmp_path / "demo-model.json").privacy.epsilon <= 1.0
    assert (tmp_path / "demo-model.svg").read_text().rstrip().endswith("</svg>")


def test_help_is_fast_because_nothing_heavy_is_imported():
    script = (
        "import sys; sys.argv = ['privet', '--help']\n"
        "from privet.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'sklearn', 'numba', 'opendp', 'pyarrow', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SECRET = "s3cr3t-value"


def test_no_record_of_a_csv_file_can_make_a_fit_fail_and_no_message_quotes_one(folder, call_privet):
    lines = (folder / "patients.csv").read_text().splitlines()
    width = len(PATIENTS.names) + 1
    lines[5] = ",".join([SECRET] * width)
    lines[6] = SECRET
    lines[7] = ",".join([SECRET] * (width + 3))
    lines[8] = '"' + SECRET + '\nwith a new line"' + "," * (width - 1)
    lines[9] = ""
    lines[10] = '"' + lines[10]  # a quote that is never closed
    lines[11] = ",".join([SECRET + "x" * 3_000_000] + [""] * (width - 1))
    odd = "\n".join(lines).encode().replace(b"with a new line", b"with \xff\xfe")
    (folder / "odd.csv").write_bytes(odd)
    code, output, error = call_privet(
        "fit", folder / "odd.csv", "--schema", folder / "schema.toml", "--max-depth", 2,
        "--out", folder / "model.json",
    )  # fmt: skip
    assert code == 0, error
    assert SECRET not in output + error
    assert SECRET not in (folder / "model.json").read_text()
    assert "Warning" not in error
    code, output, error = call_privet(
        "predict", folder / "model.json", folder / "odd.csv", "--out", folder / "p.csv"
    )
    assert code == 0, error
    # One prediction per record: a quoted line break is part of one, a blank line is none.
    written = [line for line in odd.decode(errors="replace").split("\n")[1:] if line]
    assert len(pd.read_csv(folder / "p.csv")) == len(written) - 1


def test_one_line_changes_only_its_own_record(folder, call_privet):
    """Whatever a line holds, all other lines are read as if it were not there."""
    lines = (folder / "patients.csv").read_text().splitlines()[:300]
    read = []
    for extra in ([], ["abc" + "," * 10], ['"'], ["\udcff"], ["1,2"], ['a,"b']):
        text = "\n".join([lines[0], *lines[1:150], *extra, *lines[150:]])
        path = folder / "one.csv"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        table = read_table(path, PATIENTS)
        if extra:
            assert len(table) == 300
            table = pa.concat_tables([table.slice(0, 149), table.slice(150)])
        read.append(table)
    assert all(
        table.equals(read[0]) or table.to_pandas().equals(read[0].to_pandas()) for table in read
    )


ENTROPY = ["--learner", "diffpid3", "--option", "criterion=entropy"]
BAD = [
    (["fit", "absent.csv", "--schema", "schema.toml"], "no file"),
    (["fit", "patients.csv", "--schema", "absent.toml"], "schema file"),
    (["fit", "patients.csv", "--schema", "patients.csv"], "TOML"),
    (["fit", "schema.toml", "--schema", "schema.toml"], "name it .csv"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--epsilon", "0"], "positive"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--epsilon", "nan"], "NaN"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--target", "age"], "target"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--max-depth", "1000"], "max_depth"),
    (["fit", "patients.csv", "--schema", "schema.toml", *ENTROPY], "n_max"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--option", "criterion=gini"], "no option"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--ledger", "absent"], "no ledger file"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--ledger", "schema.toml"], "ledger file"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--out", "absent/m.json"], "cannot write"),
    (["fit", "patients.csv", "--schema", "schema.toml", "--learner", "best"], "no learner 'best'"),
    (["audit", "--learner", "best"], "there is no learner 'best'; choose one of tree, additive"),
    (["learners", "best"], "there is no learner 'best'"),
    (["fit", "short.csv", "--schema", "schema.toml"], "no column"),
    (["fit", "fake.parquet", "--schema", "schema.toml"], "cannot read"),
    (["fit", "binary.csv", "--schema", "schema.toml"], "UTF-16"),
    (["fit", "empty.csv", "--schema", "schema.toml"], "no column"),
    (["predict", "schema.toml", "patients.csv", "--out", "p.csv"], "model file"),
    (["predict", "absent.json", "patients.csv", "--out", "p.csv"], "model file"),
    (["show", "absent.json"], "model file"),
    (["ledger", "absent"], "no ledger file"),
    (["ledger", "new", "--create", "--epsilon", "1"], "--schema"),
    (["ledger", "new", "--create", "--epsilon", "-1", "--schema", "schema.toml"], "positive"),
    (["ledger", "new", "--create", "--epsilon", "inf", "--schema", "schema.toml"], "finite"),
    (["schema", "draft", "absent.csv"], "no file"),
    (["schema", "draft", "patients.csv", "--target", "absent"], "no column"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda v: " ".join(v)[:60])
def test_bad_input_ends_with_code_2_and_one_sentence(
    arguments, message, folder, call_privet, monkeypatch
):
    (folder / "short.csv").write_text("age,sex\n1,f\n")
    (folder / "fake.parquet").write_text("no parquet")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00,f\n" * 3)
    (folder / "empty.csv").write_text("")
    monkeypatch.chdir(folder)
    code, output, error = call_privet(*arguments)
    assert code == 2
    assert message in " ".join(error.split())
    assert "Traceback" not in error
    assert output == ""


def test_an_unexpected_error_keeps_its_message_to_itself(folder, call_privet, monkeypatch):
    def explode(*_, **__):
        raise RuntimeError(SECRET)

    monkeypatch.setattr("privet.engines.encoding.Encoder.encode", explode)
    code, output, error = call_privet(
        "fit", folder / "patients.csv", "--schema", folder / "schema.toml",
        "--out", folder / "model.json",
    )  # fmt: skip
    assert code == 1
    assert "RuntimeError" in error
    assert SECRET not in output + error


def test_a_drafted_schema_is_said_to_leak(folder, call_privet):
    assert (
        call_privet("schema", "draft", folder / "patients.csv", "--out", folder / "draft.toml")[0]
        == 0
    )
    code, output, error = call_privet(
        "fit", folder / "patients.csv", "--schema", folder / "draft.toml",
        "--out", folder / "model.json", "--max-depth", 1,
    )  # fmt: skip
    assert code == 0
    assert "Warning" in error
    assert "delete the line 'draft = true' of its file" in " ".join(error.split())
    assert "NOT PRIVATE" in output
    text = (folder / "draft.toml").read_text()
    (folder / "draft.toml").write_text(text.replace("\ndraft = true\n", "\n"))
    assert not Schema.from_toml(folder / "draft.toml").drafted


@pytest.mark.parametrize("learner", ["tree", "boosting"])
@pytest.mark.parametrize("options", [[], ["--option", "merge_tests=false"]], ids=str)
def test_merging_can_be_switched_off(learner, options, folder, call_privet, monkeypatch):
    seen = []
    original = PrivateCells.draw_trees

    def remember(self, *arguments, **given):
        seen.append(given["merge"])
        return original(self, *arguments, **given)

    monkeypatch.setattr(PrivateCells, "draw_trees", remember)
    code, _, error = call_privet(
        "fit", folder / "patients.csv", "--schema", folder / "schema.toml",
        "--learner", learner, "--max-depth", 1, "--out", folder / "model.json", *options,
    )  # fmt: skip
    assert code == 0, error
    assert set(seen) == {not options}


def test_another_tables_ledger_is_refused_and_nothing_is_spent(folder, call_privet):
    other = Schema.from_dict({**PATIENTS.to_dict(), "table": "other patients"})
    other.to_toml(folder / "other.toml")
    assert (
        call_privet("ledger", folder / "books", "--create", "--epsilon", 1, "--schema",
             folder / "other.toml")[0] == 0
    )  # fmt: skip
    code, _, error = call_privet(
        "fit", folder / "patients.csv", "--schema", folder / "schema.toml",
        "--ledger", folder / "books", "--out", folder / "model.json",
    )  # fmt: skip
    assert code == 2
    assert "other patients" in error
    assert LedgerStore(folder / "books").withdrawals == ()


def test_tables_are_read_alike_from_csv_tsv_and_parquet(folder, call_privet):
    pyarrow.csv.write_csv(
        pyarrow.parquet.read_table(folder / "patients.parquet"),
        folder / "patients.tsv",
        pyarrow.csv.WriteOptions(delimiter="\t"),
    )
    code, _, error = call_privet(
        "fit", folder / "patients.parquet", "--schema", folder / "schema.toml", "--out",
        folder / "model.json", "--max-depth", 2,
    )  # fmt: skip
    assert code == 0, error
    written = []
    for ending in ("csv", "tsv", "parquet"):
        out = folder / f"from-{ending}.parquet"
        code, _, error = call_privet(
            "predict", folder / "model.json", folder / f"patients.{ending}", "--out", out
        )
        assert code == 0, error
        written.append(pa.parquet.read_table(out))
    assert written[0].equals(written[1])
    assert written[0].equals(written[2])


class TestLearners:
    """Ensembles from the command line: classes and numbers, pure and with a delta."""

    def number_schema(self, folder):
        features = dict(PATIENTS.features)
        age = features.pop("age")
        path = folder / "number.toml"
        Schema(features, target="age", bounds=(age.low, age.high)).to_toml(path)
        return path

    @pytest.mark.parametrize("learner", ["boosting", "additive"])
    @pytest.mark.parametrize("delta", [None, 1e-6])
    def test_classes(self, folder, call_privet, learner, delta):
        out = folder / "model.json"
        options = [] if delta is None else ["--delta", delta]
        code, output, error = call_privet(
            "fit", folder / "patients.csv", "--schema", folder / "schema.toml", "--out", out,
            "--learner", learner, "--epsilon", 2, *options,
        )  # fmt: skip
        assert code == 0, error
        assert ("delta 1e-06" in output) == (delta is not None)
        model = privet.load(out)
        assert model.privacy.epsilon <= 2
        assert model.learner == learner
        code, output, _ = call_privet("show", out)
        assert code == 0
        assert ("rho" if delta else "epsilon") in output
        for form in ("svg", "sql", "python", "dot", "json"):
            assert call_privet("show", out, "--format", form)[0] == 0
        assert (
            call_privet("predict", out, folder / "patients.csv", "--out", folder / "p.csv")[0] == 0
        )
        assert "prediction" in pd.read_csv(folder / "p.csv")

    @pytest.mark.parametrize("learner", ["boosting", "additive"])
    def test_a_number(self, folder, call_privet, learner):
        out, schema = folder / "model.json", self.number_schema(folder)
        code, _, error = call_privet(
            "fit", folder / "patients.csv", "--schema", schema, "--out", out, "--learner", learner,
        )  # fmt: skip
        assert code == 0, error
        assert (
            call_privet("predict", out, folder / "patients.csv", "--out", folder / "p.csv")[0] == 0
        )
        predicted = pd.read_csv(folder / "p.csv")
        assert predicted.columns.tolist() == ["prediction"]
        assert predicted["prediction"].between(*privet.load(out).schema.bounds).all()

    def test_what_does_not_fit_together_is_said(self, folder, call_privet):
        data, schema = folder / "patients.csv", self.number_schema(folder)
        code, _, error = call_privet("fit", data, "--schema", schema, "--learner", "sulq")
        assert code == 2
        assert "use one of tree, additive, boosting, diprime" in error
        code, _, error = call_privet(
            "fit", data, "--schema", folder / "schema.toml", "--delta", 1e-6
        )
        assert code == 2
        assert "--delta is not for --learner tree" in error
        code, _, error = call_privet(
            "fit", data, "--schema", folder / "schema.toml", "--learner", "boosting", "--delta", 2
        )
        assert code == 2
        assert "delta must be below 1" in error
