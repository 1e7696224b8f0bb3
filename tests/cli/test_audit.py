"""``privet audit`` on the terminal."""

from functools import partial

import pyarrow.parquet
import pytest

from privet.audit import published, readers
from privet.datasets import PATIENTS, make_patients
from privet.privacy import DiscreteLaplace


@pytest.fixture
def call(call_privet, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return partial(call_privet, "audit")


def test_exact(call):
    code, out, _ = call("--learner", "sulq", "--records", 1, "--epsilon", 2)
    assert code == 0
    assert "sulq: valid" in out
    assert out.count("holds") == 4
    assert "does not hold" not in out


def test_a_failure_has_its_own_exit_code_and_names_the_tables(call, monkeypatch):
    real = DiscreteLaplace.scale.fget
    monkeypatch.setattr(DiscreteLaplace, "scale", property(lambda self: real(self) / 2))
    code, out, _ = call("--learner", "sulq", "--records", 1)
    assert code == 3
    assert "does not hold" in out
    assert "worst on []" in out


def test_samples(call):
    code, out, _ = call("--learner", "diffpid3", "--samples", 40)
    assert code == 0
    assert "DiffPID3Classifier" in out
    assert "nothing found" in out


def test_a_table_of_ones_own(call, tmp_path):
    import pyarrow as pa

    pyarrow.parquet.write_table(pa.table(make_patients(60, seed=1)), tmp_path / "data.parquet")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    options = ["--learner", "diffpid3", "--samples", 20, "--store", tmp_path / "runs"]
    options += ["--data", tmp_path / "data.parquet", "--schema", tmp_path / "schema.toml"]
    code, out, _ = call(*options)
    assert code == 0
    assert "sensitive" in out
    assert (tmp_path / "runs").exists()
    assert call(*options)[0] == 0  # goes on from there


def test_published(call, monkeypatch):
    short = [published.noisy_max_with_value(3), published.stop_at_pure_nodes()]
    monkeypatch.setattr(published, "counterexamples", lambda: iter(short))
    code, out, _ = call("--published")
    assert code == 0
    assert "stop rule on exact counts" in out


def test_readers(call, monkeypatch):
    """Of one container each, with a reader that keeps the law and one that does not."""
    known = {writer.name: writer for writer in readers.known_writers()}
    monkeypatch.setattr(readers, "known_writers", lambda: [known["numpy, double"]])
    code, out, _ = call("--readers")
    assert code == 0
    assert "numpy, double" in out
    assert "holds" in out
    real = readers.read
    monkeypatch.setattr(readers, "read", lambda *given: real(*given)[:-1])
    code, out, _ = call("--readers")
    assert code == 3
    assert "does not hold" in out
    assert "numpy, double: minus zero in" in out


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--readers", "--published"], "choose one"),
        (["--readers", "--learner", "tree"], "all learners"),
        (["--readers", "--records", 1], "--records goes with"),
        (["--exact", "--samples", 5], "choose one"),
        (["--data", "x.csv"], "--samples and --learner"),
        (["--learner", "tree", "--samples", 5, "--data", "x.csv"], "go together"),
        (["--samples", 5, "--records", 1], "--records goes with"),
        (["--epsilon", "inf"], "finite epsilon"),
        (["--epsilon", "-1"], "epsilon"),
    ],
)
def test_bad_input_gets_a_clear_error(call, options, match):
    code, _, error = call(*options)
    assert code == 2
    assert match in error
