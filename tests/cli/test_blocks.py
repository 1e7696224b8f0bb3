"""``privet fit`` of tables that need not fit into memory, and ``privet encode``."""

from __future__ import annotations

import errno
import signal
import stat
import subprocess
import sys

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import privet
from privet import LedgerStore
from privet.datasets import PATIENTS
from privet.engines import stored


@pytest.fixture
def folder(tmp_path, patients, monkeypatch):
    """A folder with a table in all forms, and a ledger."""
    (tmp_path / "data").mkdir()
    (tmp_path / "blocks").mkdir()
    pq.write_table(patients.slice(0, 200), tmp_path / "data" / "a.parquet")
    pq.write_table(patients.slice(200, 100), tmp_path / "data" / "b.parquet")
    pq.write_table(patients.slice(0, 300), tmp_path / "whole.parquet")
    pyarrow.csv.write_csv(patients.slice(0, 300), tmp_path / "whole.csv")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    columns = [*PATIENTS.names, PATIENTS.target]
    LedgerStore.create(
        tmp_path / "ledger", privet.Budget(3.0), columns=columns, table=PATIENTS.table
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "blocks"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(call_privet, data, *more):
    return call_privet("fit", data, "--schema", "schema.toml", "--learner", "diffpid3",
                       "--max-depth", 1, "--force", *more)  # fmt: skip


def left(folder):
    return sorted(path.name for path in (folder / "blocks").iterdir())


SOURCES = {
    "folder": ["data"],
    "pattern": ["data/*.parquet"],
    "parquet": ["whole.parquet", "--blocks", "blocks"],
    "csv": ["whole.csv", "--blocks", "blocks"],
    "elsewhere": ["data", "--blocks", "."],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_tables_that_need_not_fit_into_memory(source, folder, call_privet):
    code, out, err = fit(call_privet, *source, "--ledger", "ledger")
    assert (code, err) == (0, "")
    assert "Wrote model.json" in out
    assert privet.load(folder / "model.json").privacy.private
    assert LedgerStore(folder / "ledger").spent == 1
    assert left(folder) == []
    assert not list(folder.glob(f"*{stored.PREFIX}*"))


@pytest.mark.parametrize("data", ["data", "whole.csv", "whole.parquet", "data/*.parquet"])
def test_encode_then_fit(data, folder, call_privet):
    code, out, err = call_privet("encode", data, "--schema", "schema.toml", "--out", "kept")
    assert (code, err) == (0, "")
    assert "as sensitive as the table" in out
    assert "300" not in out
    assert stat.S_IMODE((folder / "kept").stat().st_mode) == 0o700
    before = {file.name: file.read_bytes() for file in (folder / "kept").iterdir()}
    for more in ((), ("--blocks", "blocks")):
        assert fit(call_privet, "kept", "--ledger", "ledger", *more)[0] == 0
    assert LedgerStore(folder / "ledger").spent == 2
    assert {file.name: file.read_bytes() for file in (folder / "kept").iterdir()} == before
    assert left(folder) == []


def change_schema(folder):
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace("high = ", "high = 1", 1))


def flip(folder):
    file = folder / "kept" / "block-000000"
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)


def age(folder):
    file = folder / "kept" / "blocks.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 0'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [(change_schema, "another schema"), (flip, "damaged"), (age, "another version")],
)
def test_kept_blocks_that_are_refused(damage, said, folder, call_privet):
    call_privet("encode", "data", "--schema", "schema.toml", "--out", "kept")
    damage(folder)
    before = (folder / "ledger").read_bytes()
    code, out, err = fit(call_privet, "kept", "--ledger", "ledger")
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert (folder / "ledger").read_bytes() == before


def add_column_type(folder):
    table = pq.read_table(folder / "data" / "b.parquet")
    name = PATIENTS.names[0]
    changed = table[name].cast("string")
    table = table.set_column(table.column_names.index(name), name, changed)
    pq.write_table(table, folder / "data" / "b.parquet")


@pytest.mark.parametrize(
    ("prepare", "arguments", "said"),
    [
        (None, ["nothing"], "there is no file"),
        (None, ["nothing/*.parquet"], "no file fits"),
        (None, ["blocks"], "no Parquet or CSV file"),
        (None, ["data", "--blocks", "nowhere"], "there is no directory"),
        (None, ["data", "--separator", ";"], "for CSV files"),
        (None, ["data", "--out", "nowhere/model.json"], "the folder does not exist"),
        (add_column_type, ["data"], "different types"),
        (lambda folder: (folder / "data" / "c.parquet").touch(), ["data"], "damaged"),
        (lambda folder: (folder / "data" / "c.csv").touch(), ["data"], "both"),
    ],
)
def test_what_is_refused_costs_nothing(prepare, arguments, said, folder, call_privet):
    if prepare is not None:
        prepare(folder)
    before = (folder / "ledger").read_bytes()
    code, out, err = fit(call_privet, *arguments, "--ledger", "ledger")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert (folder / "ledger").read_bytes() == before
    assert left(folder) == []
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize("out", ["data", "kept/below"])
def test_encode_refuses_places(out, folder, call_privet):
    code, _, err = call_privet("encode", "data", "--schema", "schema.toml", "--out", out)
    assert code == 2
    assert "already" in err or "no directory" in err


def test_without_budget_the_blocks_are_removed(folder, call_privet):
    code, _, err = fit(call_privet, "data", "--ledger", "ledger", "--epsilon", 4)
    assert code == 2
    assert "left" in err
    assert left(folder) == []
    assert LedgerStore(folder / "ledger").spent == 0


def test_a_disk_that_is_full_in_the_middle_of_a_fit(folder, call_privet, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(stored.Scratch, "smallest", 1)
    monkeypatch.setattr(stored, "_allocate", full)
    code, out, err = fit(call_privet, "data", "--ledger", "ledger")
    assert (code, out) == (5, "")
    assert "stays reserved" in err
    assert LedgerStore(folder / "ledger").spent == 1
    assert left(folder) == []
    assert not (folder / "model.json").exists()


def test_progress_says_parts_and_no_numbers_of_rows(folder, call_privet, monkeypatch):
    said = []

    class Status:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, text):
            said.append(text.plain)

    monkeypatch.setattr("rich.console.Console.status", lambda *_, **__: Status())
    assert fit(call_privet, "data")[0] == 0
    read = [text for text in said if text.startswith("reading: ")]
    assert read[-1] == "reading: 100%"
    assert all(text.endswith("%") for text in read)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_leaves_nothing(number, folder):
    program = (
        "import signal, time, privet.cli\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"  # also where tests run under nohup
        "from privet.estimators import DiffPID3Classifier as kind\n"
        # Short sleeps: a signal that comes just before one is only looked at after it.
        "def wait(*_, **__):\n    print('learning', flush=True)\n"
        "    for _ in range(600):\n        time.sleep(0.1)\n"
        "kind._learn = wait\n"
        "privet.cli.main()"
    )
    arguments = ["fit", "data", "--schema", "schema.toml", "--learner", "diffpid3",
                 "--blocks", "blocks"]  # fmt: skip
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"learning\n"
        assert len(left(folder)) == 1
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert left(folder) == []
