"""``privet fit`` with the options of PrivaTree and DiPriMe."""

import pyarrow.csv
import pytest

import privet
from privet import Budget, LedgerStore, Schema
from privet.datasets import PATIENTS

FEATURES = {name: PATIENTS.features[name] for name in PATIENTS.names if name != "days_in_hospital"}
DAYS = Schema(FEATURES, "days_in_hospital", bounds=(0, 30))


def given(*options):
    return tuple(part for option in options for part in ("--option", option))


@pytest.fixture
def fit(tmp_path, patients, call_privet):
    pyarrow.csv.write_csv(patients, tmp_path / "patients.csv")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    DAYS.to_toml(tmp_path / "days.toml")

    def call(learner, *options, schema="schema.toml"):
        return call_privet(
            "fit", tmp_path / "patients.csv", "--schema", tmp_path / schema,
            "--out", tmp_path / "model.json", "--force", "--learner", learner, *options,
        )  # fmt: skip

    return call


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("privatree", (*given("leaf_error=0.05", "categories=ordered"), "--max-depth", 2)),
        ("privatree", given("categories=auto", "binning=joint-quantile", "max_bins=8")),
        ("diprime", (*given("rho=0.4", "partition=false", "n_estimators=3"), "--max-depth", 2)),
        ("diprime", (*given("rho=0.7", "partition=true", "n_estimators=3"), "--max-depth", 2)),
    ],
)
def test_they_learn_with_their_options(fit, tmp_path, learner, options):
    code, out, error = fit(learner, "--epsilon", 2, *options)
    assert code == 0, error
    assert "spent epsilon 2 " in out
    model = privet.load(tmp_path / "model.json")
    assert model.learner == learner
    assert model.privacy.private


def test_options_reach_the_learner(fit, tmp_path):
    options = (*given("n_estimators=3", "rho=0.25"), "--max-depth", 1, "--n-rows", 6000)
    cells = {}
    for partition in ("true", "false"):
        assert fit("diprime", *given(f"partition={partition}"), *options)[0] == 0
        entries = privet.load(tmp_path / "model.json").privacy.entries
        cells[partition] = entries[0].cells
        spent = [e.epsilon for e in entries if e.question.kind == "class-counts"]
        assert sum(spent) == pytest.approx(0.75)
    assert cells == {"true": 3, "false": 1}
    leaves = {}
    for error in (0.001, 0.1):
        assert fit("privatree", *given(f"leaf_error={error}"), "--n-rows", 6000)[0] == 0
        leaves[error] = privet.load(tmp_path / "model.json").privacy.entries[-1].epsilon
    assert leaves[0.001] > leaves[0.1]


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        ("privatree", given("leaf_error=2"), "--option leaf_error must be a number above 0"),
        ("diprime", given("rho=1"), "--option rho must be a number above 0 and below 1"),
        ("diprime", given("partition=maybe"), "--option partition must be true or false"),
        ("diprime", given("n_estimators=2.5"), "must be 'auto' or a whole number from 1"),
        ("tree", given("rho=0.5"), "'rho' is no option of --learner tree; it has probability_"),
        (
            "privatree",
            given("partition=false"),
            "is no option of --learner privatree; it has",
        ),
        ("additive", given("leaf_error=0.1"), "is no option of --learner additive; it has"),
        ("tree", given("schema=x"), "'schema' is no option of --learner tree"),
        ("tree", given("max_depth=3"), "max_depth has a flag of its own: --max-depth"),
        ("privatree", given("max_bins"), "--option takes name=value, not 'max_bins'"),
        ("privatree", given("max_bins=4", "max_bins=5"), "--option max_bins is given twice"),
        ("sulq", ("--n-rows", 9), "--n-rows is not for --learner sulq"),
    ],
)
def test_what_does_not_fit_is_refused(fit, tmp_path, learner, options, message):
    code, out, error = fit(learner, *options)
    assert code == 2
    assert message in " ".join(error.split())
    assert out == ""
    assert not list(tmp_path.glob("model*"))


def test_what_no_budget_covers(fit, tmp_path, call_privet):
    """DiPriMe's leaf means as printed: an infinite epsilon everywhere, and no ledger is charged."""
    options = (*given("calibration=published", "max_features=2"), "--max-depth", 2)
    books = tmp_path / "books"
    store = LedgerStore.create(books, Budget(5.0), columns=[*DAYS.names, DAYS.target])
    code, _, error = fit("diprime", *options, "--ledger", books, schema="days.toml")
    assert code == 2
    assert "no budget covers calibration='published'" in error
    assert not store.withdrawals
    assert not (tmp_path / "model.json").exists()
    code, out, _ = fit("diprime", *options, schema="days.toml")
    assert code == 0
    assert "spent epsilon inf" in out
    path = tmp_path / "model.json"
    assert "Infinity" not in path.read_text()
    code, out, _ = call_privet("show", path)
    assert code == 0
    assert "spent epsilon inf" in out
    assert "replacing one record instead: epsilon inf" in out
    assert "NOT PRIVATE" in out
    for form in ("json", "sql", "python", "svg", "dot"):
        assert call_privet("show", path, "--format", form)[0] == 0
    code, _, error = call_privet("certify", path, "--rows", 1000)
    assert code == 2
    assert "no guarantee can be given" in error
