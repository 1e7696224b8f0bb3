"""``privet fit --learner topdown``."""

import pyarrow.csv
import pytest

import privet
from privet.datasets import PATIENTS


@pytest.fixture
def folder(tmp_path, patients):
    pyarrow.csv.write_csv(patients, tmp_path / "patients.csv")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    return tmp_path


def arguments(folder, *more):
    return (
        "fit", folder / "patients.csv", "--schema", folder / "schema.toml",
        "--out", folder / "model.json", "--learner", "topdown", *more,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--max-nodes", 7, "--budget", "uniform", "--leaf-fraction", 0.3, "--split", "rnm"),
        ("--criterion", "clipped_entropy", "--n-thresholds", 9, "--min-gain", 5, "--max-depth", 3),
        ("--min-weight", 0.05, "--criterion", "entropy", "--n-rows", 6000),
    ],
)
def test_it_learns_with_its_options(folder, call_privet, options):
    code, out, error = call_privet(*arguments(folder, "--epsilon", 2, *options))
    assert code == 0, error
    assert "spent epsilon 2" in out
    model = privet.load(folder / "model.json")
    assert model.learner == "topdown"
    assert model.privacy.private


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--calibration", "published"), "give n_rows"),
        (("--criterion", "entropy"), "needs n_rows"),
        (("--split", "histogram"), "split must be one of"),
        (("--max-nodes", 0), "max_nodes must lie"),
        (("--binning", "uniform"), "--binning is not for --learner topdown"),
        (("--n-max", 50), "--n-max is not for --learner topdown"),
    ],
)
def test_what_does_not_fit_is_refused(folder, call_privet, options, message):
    code, _, error = call_privet(*arguments(folder, *options))
    assert code == 2
    assert message in error


def test_its_options_are_for_it_alone(folder, call_privet):
    code, _, error = call_privet(*arguments(folder, "--max-nodes", 9, "--learner", "tree"))
    assert code == 2
    assert "--max-nodes is not for --learner tree" in error
