"""``privet fit --learner topdown``."""

import pyarrow.csv
import pytest

import privet
from privet.datasets import PATIENTS


def given(*options):
    return tuple(part for option in options for part in ("--option", option))


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
        given("max_nodes=7", "budget=uniform", "leaf_fraction=0.3", "split=rnm"),
        (*given("criterion=clipped_entropy", "n_thresholds=9", "min_gain=5"), "--max-depth", 3),
        (*given("min_weight=0.05", "min_gain=none", "criterion=entropy"), "--n-rows", 6000),
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
        (given("calibration=published"), "give n_rows"),
        (given("criterion=entropy"), "needs n_rows"),
        (given("split=histogram"), "--option split must be 'flip', 'exponential' or 'rnm'"),
        (given("budget=max"), "--option budget must be 'decay' or 'uniform'"),
        (given("max_nodes=0"), "--option max_nodes must be a whole number from 1"),
        (given("binning=uniform"), "'binning' is no option of --learner topdown"),
        (given("n_max=50"), "'n_max' is no option of --learner topdown"),
    ],
)
def test_what_does_not_fit_is_refused(folder, call_privet, options, message):
    code, _, error = call_privet(*arguments(folder, *options))
    assert code == 2
    assert message in " ".join(error.split())


def test_its_options_are_for_it_alone(folder, call_privet):
    options = (*given("max_nodes=9"), "--learner", "tree")
    code, _, error = call_privet(*arguments(folder, *options))
    assert code == 2
    assert "'max_nodes' is no option of --learner tree" in error
