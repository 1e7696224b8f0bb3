"""A membership attack: it finds what leaks, and of a private learner no more than is allowed."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import privet
from privet import Categorical, Schema
from privet.audit.membership import Measured, _curve, attack
from privet.datasets import PATIENTS, STAYS, make_patients, make_stays
from privet.errors import AuditError
from privet.model import load
from privet.privacy import Guarantee
from privet.report import Facts, read_attachment

pytestmark = pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
IDS = Schema({"id": Categorical(list(range(150)))}, "y", classes=[0, 1])


def by_heart(rows=300):
    """Return rows whose labels can only be learnt by heart."""
    rng = np.random.default_rng(4)
    return pa.table({"id": np.arange(rows) % 150, "y": rng.integers(0, 2, rows)})


def test_a_learner_without_noise_is_found_out():
    """The power of the attack: it exceeds what an epsilon of 1 would allow, surely."""
    model = privet.DiffPID3Classifier(np.inf, IDS, max_depth=1)
    found = attack(model, by_heart(), models=16)
    assert found.exceeds(Guarantee(1.0))
    assert found.area.low > 0.7
    assert found.advantage.low > 0.4
    assert not found.exceeds(Guarantee())


def test_a_private_learner_is_not():
    model = privet.DiffPID3Classifier(1.0, IDS, max_depth=1)
    found = attack(model, by_heart(), models=16)
    assert not found.exceeds(Guarantee(1.0))
    assert found.true_positives[1].value < 0.2
    assert found.card.epsilon <= 1.0


def test_persons_are_in_or_out_as_a_whole():
    rows = pa.table(make_stays(60, seed=3))
    calls = []
    model = privet.PrivateTreeClassifier(1.0, STAYS, max_depth=1)
    found = attack(model, rows, models=4, progress=lambda done, of: calls.append((done, of)))
    assert found.members == len(set(rows[STAYS.unit].to_pylist())) < len(rows)
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_numbers_are_attacked_by_their_errors():
    schema = Schema({"id": Categorical(list(range(150)))}, "y", bounds=(0, 1))
    rows = by_heart().set_column(1, "y", pa.array(np.random.default_rng(1).random(300)))
    found = attack(privet.PrivateTreeRegressor(2.0, schema), rows, models=4)  # not a constant
    assert 0.3 < found.area.value < 0.7


def test_the_curve_of_scores_that_say_nothing_is_the_diagonal():
    inside = np.arange(100) % 2 == 0
    others, members = _curve(np.zeros(100), inside)
    assert others.tolist() == members.tolist() == [0.0, 1.0]
    others, members = _curve(inside.astype(float), inside)
    assert np.interp(0.01, others, members) == 1.0


def test_what_is_surely_exceeded_is_lower():
    found = Measured.of(np.array([0.1, 0.2, 0.3, 0.2]))
    assert found.value == pytest.approx(0.2)
    assert found.surely < found.low < found.value < found.high


@pytest.mark.parametrize(
    ("change", "says"),
    [({"random_state": 1}, "without a ledger"), ({"schema": None}, "with a schema")],
)
def test_what_cannot_be_attacked(change, says):
    model = privet.DiffPID3Classifier(1.0, IDS).set_params(**change)
    with pytest.raises(AuditError, match=says):
        attack(model, by_heart())


def test_too_little_to_compare():
    model = privet.DiffPID3Classifier(1.0, IDS)
    with pytest.raises(AuditError, match="at least 4 models"):
        attack(model, by_heart(), models=2)
    with pytest.raises(AuditError, match="at least 20"):
        attack(model, by_heart(10), models=4)
    with pytest.raises(AuditError, match="lack 1 columns"):
        attack(model, by_heart().drop(["y"]), models=4)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "privet", *map(str, arguments)], capture_output=True, text=True
    )


def test_the_command_and_the_report(tmp_path):
    import pyarrow.parquet

    rows, model = tmp_path / "rows.parquet", tmp_path / "model.json"
    table = pa.table(make_patients(400, seed=2))
    pyarrow.parquet.write_table(table, rows)
    fitted = privet.PrivateTreeClassifier(1.0, PATIENTS, max_depth=1, test_share=0.2).fit(table)
    fitted.save(model)
    out = tmp_path / "membership.json"
    found = run(
        "audit", "--membership", "--model", model, "--data", rows, "--samples", 4, "--out", out
    )
    assert found.returncode == 0, found.stderr
    assert "owner's eyes only" in " ".join(found.stdout.split())
    result = read_attachment(out)
    assert result.owners_only
    assert result.holds
    assert [row[0] for row in result.rows][-1] == "area under the ROC curve"
    assert result.rows[0][4] == "2.72%"
    assert set(json.loads(out.read_text())["numbers"]) == {
        "true_positives_at_1_percent",
        "true_positives_at_10_percent",
        "advantage",
        "area",
    }
    page = fitted.report(attach=[out])
    assert "A membership attack on the owner&#x27;s rows" in page
    assert "Do not publish this page" in page
    assert Facts(load(model), attached=(result,)).owners_only
    told = run("report", model, "--attach", out, "--out", tmp_path / "page.html")
    assert "do not publish" in told.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--membership",), "needs --data"),
        (("--model", "m.json"), "goes with --membership"),
        (("--membership", "--readers"), "choose one"),
        (("--membership", "--data", "a", "--model", "b", "--learner", "tree"), "from the --model"),
        (("--published", "--out", "x.json"), "leave --out out"),
    ],
)
def test_options_that_do_not_go_together(options, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("audit", *options)
    assert found.returncode == 2
    assert says in " ".join(found.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_other_audits_can_be_attached_too(tmp_path):
    out = tmp_path / "sampled.json"
    found = run("audit", "--learner", "diffpid3", "--samples", 20, "--out", out)
    assert found.returncode == 0, found.stderr
    result = read_attachment(out)
    assert (result.holds, result.owners_only) == (True, False)
    assert result.head[-1] == "verdict"
