"""What commands write: never over an input, and no model is lost once it is paid for."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.csv
import pytest

import privet
from privet import LedgerStore
from privet.cli import _outputs as outputs
from privet.cli._outputs import ELSEWHERE
from privet.datasets import PATIENTS
from privet.errors import OutputError, UnsettledWarning
from privet.estimators import DiffPID3Classifier
from privet.model import Model
from privet.outputs import OutputFile


@pytest.fixture
def folder(tmp_path, patients, monkeypatch):
    """A folder with all that commands read."""
    pyarrow.csv.write_csv(patients.slice(0, 300), tmp_path / "data.csv")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    columns = [*PATIENTS.names, PATIENTS.target]
    LedgerStore.create(
        tmp_path / "ledger", privet.Budget(3.0), columns=columns, table=PATIENTS.table
    )
    model = DiffPID3Classifier(epsilon=1.0, schema=PATIENTS, max_depth=1).fit(patients)
    model.save(tmp_path / "model.json")
    (tmp_path / "runs.csv").write_text("0.8\n" * 30)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ["fit", "data.csv", "--schema", "schema.toml", "--learner", "diffpid3", "--max-depth", "1",
       "--ledger", "ledger", "--out"]  # fmt: skip
PREDICT = ["predict", "model.json", "data.csv", "--out"]
SHOW = ["show", "model.json", "--format", "svg", "--out"]
DRAFT = ["schema", "draft", "data.csv", "--out"]
CERTIFY = ["certify", "model.json", "--rows", "300", "--runs-file", "runs.svg", "--plot"]
AUDIT = ["audit", "--learner", "diffpid3", "--samples", "100", "--data", "data.csv",
         "--schema", "schema.toml", "--store"]  # fmt: skip
CREATE = ["ledger", "schema.toml", "--create", "--epsilon", "1", "--schema", "schema.toml"]


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ([*FIT, "data.csv"], "the data"),
        ([*FIT, "schema.toml"], "the schema"),
        ([*FIT, "ledger"], "the ledger"),
        ([*FIT, "hard-ledger"], "the ledger"),
        ([*FIT, "soft-ledger"], "the ledger"),
        ([*FIT, "ledger-journal"], "the ledger's -journal file"),
        ([*PREDICT, "data.csv"], "the data"),
        ([*PREDICT, "hard-model.csv"], "the model"),
        ([*SHOW, "model.json"], "the model"),
        ([*DRAFT, "data.csv"], "the data"),
        ([*CERTIFY, "runs.svg"], "the runs file"),
        ([*AUDIT, "data.csv"], "the data"),
        ([*AUDIT, "schema.toml"], "the schema"),
        (CREATE, "the schema"),
        (["demo", "--out", "picture.svg"], "the model"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join((value[0], value[-1])),
)
def test_no_input_is_overwritten(folder, call_privet, command, what):
    os.link(folder / "ledger", folder / "hard-ledger")
    os.link(folder / "model.json", folder / "hard-model.csv")
    (folder / "soft-ledger").symlink_to("ledger")
    (folder / "runs.csv").rename(folder / "runs.svg")
    before = {p: p.read_bytes() for p in folder.iterdir() if p.name != "pipe"}
    code, output, error = call_privet(*command)
    assert code == 2, error
    assert f"it is {what}," in error
    assert output == ""
    assert {p: p.read_bytes() for p in folder.iterdir() if p.name != "pipe"} == before
    assert LedgerStore(folder / "ledger").withdrawals == ()


@pytest.mark.parametrize("command", [FIT, SHOW, DRAFT, AUDIT], ids=lambda c: c[0])
@pytest.mark.parametrize("out", ["pipe", "/dev/null", "x" * 256, "absent/x", "."])
def test_what_cannot_be_written_is_refused_before_anything_is_spent(
    folder, call_privet, command, out
):
    code, _, error = call_privet(*command, out)
    assert code == 2
    assert "cannot write" in error
    assert LedgerStore(folder / "ledger").withdrawals == ()
    assert (folder / "pipe").is_fifo()


def test_a_name_of_the_longest_length_is_no_problem(folder, call_privet):
    name = "m" * 255
    code, _, error = call_privet(*FIT, name)
    assert code == 0, error
    assert privet.load(folder / name).learner == "diffpid3"


def test_the_output_is_open_before_the_budget_is_reserved(folder, call_privet, monkeypatch):
    def refuse(self, path, *_, **__):
        raise OutputError("no")

    monkeypatch.setattr(OutputFile, "__init__", refuse)
    assert call_privet(*FIT, "m.json")[0] == 2
    assert LedgerStore(folder / "ledger").withdrawals == ()


@pytest.fixture
def broken_disk(monkeypatch):
    """Let the output fail once the model is there."""

    def fail(self, path):
        raise OutputError("cannot write m.json: the disk is full")

    monkeypatch.setattr(Model, "save", fail)


def test_a_model_that_is_paid_for_is_written_elsewhere(
    folder, call_privet, broken_disk, tmp_path_factory, monkeypatch
):
    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    code, output, error = call_privet(*FIT, "m.json")
    assert code == ELSEWHERE == 4
    assert output == ""
    (place,) = spare.iterdir()
    assert str(place) in error
    assert "the disk is full" in error
    assert "budget is spent" in error
    assert privet.load(place).privacy.epsilon <= 1
    assert place.stat().st_mode & 0o077 == 0
    assert not [p for p in folder.iterdir() if "m.json" in p.name]


def test_or_goes_to_standard_output(folder, call_privet, broken_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "absent"))
    code, output, error = call_privet(*FIT, "m.json")
    assert code == ELSEWHERE
    assert "standard output" in error
    assert Model.from_dict(json.loads(output)).learner == "diffpid3"


def test_or_it_is_said_that_it_is_lost(folder, call_privet, broken_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "absent"))
    monkeypatch.setattr(outputs, "print_whole", lambda _: False)
    code, output, error = call_privet(*FIT, "m.json")
    assert code == ELSEWHERE
    assert output == ""
    assert "could not be kept anywhere" in error
    assert "budget is spent" in error


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_has_all_of_a_model_or_it_is_said_that_it_has_not(tmp_path, unbuffered):
    """A file that may not grow takes the first bytes of what is written, and says so."""
    script = """
import resource, sys
from privet.cli._terminal import print_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sys.stderr.write(str(print_whole("x" * 5000)))
"""
    for name, room in (("short.json", False), ("/dev/full", False), (os.devnull, True)):
        with (tmp_path / name).open("w") as out:
            done = subprocess.run(
                [sys.executable, "-c", script],
                stdout=out,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                text=True,
                check=True,
            )
        assert done.stderr == str(room)


def test_a_ledger_that_cannot_be_settled_does_not_cost_the_model(folder, patients, monkeypatch):
    def fail(*_):
        raise privet.errors.LedgerFileError("cannot use the ledger")

    monkeypatch.setattr(LedgerStore, "_settle", fail)
    model = DiffPID3Classifier(epsilon=2.0, schema=PATIENTS, max_depth=1, ledger=folder / "ledger")
    with pytest.warns(UnsettledWarning, match="counts all that this fit reserved"):
        model.fit(patients)
    assert model.to_model().privacy.private
    assert float(LedgerStore(folder / "ledger").left) == 1.0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk to fill")
def test_a_disk_that_is_really_full(folder, tmp_path_factory):
    """Ledger and output lie on a disk that is filled while the fit runs."""
    disk = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk])
    if mounted.returncode:
        pytest.skip("this machine mounts no disk")
    try:
        (disk / "ledger").write_bytes((folder / "ledger").read_bytes())
        (disk / "m.json").write_text("old")
        script = f"""
import sys
from pathlib import Path
from privet.cli import main
from privet.estimators import DiffPID3Classifier
learn = DiffPID3Classifier._learn
def fill(self, *given, **options):
    with Path({str(disk / "filler")!r}).open("wb", buffering=0) as file:
        try:
            while file.write(bytes(512)): pass
        except OSError: pass
    return learn(self, *given, **options)
DiffPID3Classifier._learn = fill
sys.argv = ["privet", *{FIT[:-2]!r}, {str(disk / "ledger")!r},
            "--force", "--out", {str(disk / "m.json")!r}]
main()
"""
        spare = tmp_path_factory.mktemp("spare")
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "TMPDIR": str(spare)},
        )  # fmt: skip
        assert done.returncode == ELSEWHERE, done.stderr
        assert "the disk is full" in done.stderr
        assert "counts all that this fit reserved" in done.stderr
        (place,) = spare.glob("privet-model-*.json")
        assert privet.load(place).learner == "diffpid3"
        assert (disk / "m.json").read_text() == "old"
        (disk / "filler").unlink()
        store = LedgerStore(disk / "ledger")
        assert float(store.left) == 2.0
        assert sorted(p.name for p in disk.iterdir()) == ["ledger", "m.json"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_output_can_be_opened_before_the_fit_in_python_too(folder, patients):
    model = DiffPID3Classifier(epsilon=1.0, schema=PATIENTS, max_depth=1, ledger=folder / "ledger")
    with OutputFile(folder / "m.json", {"the ledger": folder / "ledger"}) as output:
        model.fit(patients).save(output)
    assert privet.load(folder / "m.json") == model.to_model()


def test_a_killed_fit_leaves_no_half_of_a_model(folder):
    """Killed while it writes: the old model is still there."""
    (folder / "m.json").write_text("old")
    script = f"""
import os, signal, sys
from privet.cli import main
fsync = os.fsync
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["privet", *{FIT[:-3]!r}, "--force", "--out", "m.json"]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True)
    assert done.returncode == -9, done.stderr
    assert Path("m.json").read_text() == "old"


@pytest.mark.parametrize(
    "command",
    [
        [*FIT, "there.json"],
        [*PREDICT, "there.csv"],
        [*SHOW, "there.svg"],
        [*DRAFT, "there.toml"],
        ["certify", "model.json", "--rows", "300", "--accuracy", "0.8", "--plot", "there.svg"],
        ["demo", "--rows", "1000", "--out", "there.json"],
    ],
    ids=lambda command: command[0],
)
def test_files_are_replaced_only_if_that_is_said(folder, call_privet, command):
    there = folder / command[-1]
    there.write_text("mine")
    code, output, error = call_privet(*command)
    assert (code, output) == (2, "")
    assert "there is such a file already" in error
    assert "--force" in error
    assert there.read_text() == "mine"
    assert LedgerStore(folder / "ledger").withdrawals == ()
    code, _, error = call_privet(*command, "--force")
    assert code == 0, error
    assert there.read_bytes() != b"mine"


def test_the_picture_of_the_demo_is_not_replaced_either(folder, call_privet):
    (folder / "new.svg").write_text("mine")
    code, _, error = call_privet("demo", "--rows", "1000", "--out", "new.json")
    assert code == 2
    assert "new.svg: there is such a file already" in error
    assert not (folder / "new.json").exists()
