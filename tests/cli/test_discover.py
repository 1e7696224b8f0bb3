"""``privet schema discover``, ``import`` and ``export``, and ledgers that are opened with kinds."""

import tomllib

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from privet import LedgerStore, Schema, load
from privet.datasets import PATIENTS, make_patients
from privet.schema import Categorical

ROWS = 8_000
COLUMNS = {
    name: "category" if isinstance(feature, Categorical) else "number"
    for name, feature in PATIENTS.features.items()
} | {PATIENTS.target: "category"}


@pytest.fixture
def files(tmp_path):
    table = pa.table(make_patients(ROWS, seed=3))
    pa.csv.write_csv(table, tmp_path / "p.csv")
    lines = [f'target = "{PATIENTS.target}"', "[columns]"]
    lines += [f'{name} = "{kind}"' for name, kind in COLUMNS.items()]
    (tmp_path / "kinds.toml").write_text("\n".join(lines))
    return tmp_path


def test_from_kinds_to_a_model_under_one_ledger(files, call_privet):
    ledger, kinds, schema = files / "l.ledger", files / "kinds.toml", files / "schema.toml"
    code, out, err = call_privet(
        "ledger", ledger, "--create", "--kinds", kinds, "--epsilon", 1, "--threshold-delta", 1e-6
    )
    assert (code, err) == (0, "")
    assert "delta 1e-06 for thresholds" in out
    code, out, err = call_privet(
        "schema", "discover", files / "p.csv", "--kinds", kinds, "--epsilon", 0.5,
        "--delta", 1e-6, "--ledger", ledger, "--out", schema,
    )  # fmt: skip
    assert code == 0, err
    assert "It cost epsilon 0.5, delta 1e-06" in out
    found = Schema.from_toml(schema)
    assert not found.drafted
    assert found.discovered.noise == "laplace"
    assert set(found.classes) == set(PATIENTS.classes)
    model = files / "m.json"
    code, out, err = call_privet(
        "fit", files / "p.csv", "--schema", schema, "--epsilon", 0.5, "--ledger", ledger,
        "--out", model,
    )  # fmt: skip
    assert code == 0, err
    assert "Verdict: private" in out
    assert "epsilon 1, delta 1e-06" in out
    card = load(model).privacy
    assert (card.epsilon, card.delta) == (1.0, 1e-6)
    code, out, err = call_privet("ledger", ledger)
    assert code == 0
    assert "spent: epsilon 1, delta 1e-06; left: epsilon 0, delta 0" in out
    code, out, err = call_privet("show", model)
    assert "the schema was discovered in the table" in " ".join(out.split())
    assert "bounds and" in out


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((), "only be found with a delta"),
        (("--delta", 0), "only be found with a delta"),
        (("--delta", 1e-3), "left for thresholds"),
        (("--delta", 1e-7, "--epsilon", 5), "epsilon 5"),
        (("--delta", 1e-7, "--epsilon", -1), "positive"),
    ],
)
def test_bad_input_spends_nothing(files, call_privet, arguments, match):
    ledger = files / "l.ledger"
    call_privet(
        "ledger", ledger, "--create", "--kinds", files / "kinds.toml", "--epsilon", 1,
        "--threshold-delta", 1e-6,
    )  # fmt: skip
    code, out, err = call_privet(
        "schema", "discover", files / "p.csv", "--kinds", files / "kinds.toml",
        "--ledger", ledger, "--out", files / "s.toml", *arguments,
    )  # fmt: skip
    assert code == 2
    assert out == ""
    assert match in " ".join(err.split())
    assert not (files / "s.toml").exists()
    assert LedgerStore(ledger).left == 1


def test_columns_that_are_not_there(files, call_privet):
    text = (files / "kinds.toml").read_text() + '\nnowhere = "number"\n'
    (files / "kinds.toml").write_text(text)
    code, _, err = call_privet(
        "schema", "discover", files / "p.csv", "--kinds", files / "kinds.toml",
        "--delta", 1e-6, "--out", files / "s.toml",
    )  # fmt: skip
    assert code == 2
    assert "no column 'nowhere'" in err


def test_options_of_ledgers_go_together(files, call_privet):
    kinds = files / "kinds.toml"
    for arguments in (
        ("--create", "--epsilon", 1),
        ("--create", "--kinds", kinds),
        ("--create", "--epsilon", 1, "--kinds", kinds, "--schema", kinds),
        ("--kinds", kinds),
        ("--threshold-delta", 1e-6),
    ):
        code, _, err = call_privet("ledger", files / "l.ledger", *arguments)
        assert code == 2
        assert "--create" in err


def test_a_schema_that_cannot_be_written_is_kept(files, call_privet, monkeypatch):
    """It is paid for: the message says where it is, and the exit code that it is elsewhere."""
    from privet.errors import OutputError
    from privet.outputs import OutputFile

    def fail(self, text):
        raise OutputError("the disk is full")

    monkeypatch.setattr(OutputFile, "write", fail)
    monkeypatch.setenv("TMPDIR", str(files))
    monkeypatch.setattr("tempfile.tempdir", str(files))
    code, _, err = call_privet(
        "schema", "discover", files / "p.csv", "--kinds", files / "kinds.toml",
        "--epsilon", 0.5, "--delta", 1e-6, "--out", files / "s.toml",
    )  # fmt: skip
    assert code == 4
    assert "its budget is spent" in " ".join(err.split())
    (kept,) = files.glob("privet-schema-*.toml")
    assert "discovered" in tomllib.loads(kept.read_text())


def test_metadata_come_and_go(files, call_privet):
    pytest.importorskip("yaml")
    schema = files / "s.toml"
    PATIENTS.to_toml(schema)
    for name, kind in (("m.json", "a schema"), ("m.yaml", "a kinds file")):
        code, _, err = call_privet("schema", "export", schema, "--out", files / name)
        assert code == 0, err
        code, out, err = call_privet(
            "schema", "import", files / name, "--target", PATIENTS.target,
            "--out", files / "b.toml",
            "--force",
        )  # fmt: skip
        assert code == 0, err
        assert kind in out
    code, _, err = call_privet("schema", "export", schema, "--out", files / "m.txt")
    assert code == 2
    (files / "s.toml").write_text(
        schema.read_text().replace("target =", "draft = true\ntarget =", 1)
    )
    code, _, err = call_privet("schema", "export", schema, "--out", files / "m.json")
    assert code == 2
    assert "draft" in err
