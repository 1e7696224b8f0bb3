"""``privet fit --test-share``, ``privet evaluate`` and ``privet show`` with a test score."""

import json

import pyarrow as pa
import pyarrow.csv
import pytest

import privet
from privet import Budget, LedgerStore
from privet.datasets import PATIENTS, make_patients


@pytest.fixture
def folder(tmp_path):
    pyarrow.csv.write_csv(pa.table(make_patients(3_000, seed=1)), tmp_path / "patients.csv")
    pyarrow.csv.write_csv(pa.table(make_patients(2_000, seed=2)), tmp_path / "others.csv")
    PATIENTS.to_toml(tmp_path / "schema.toml")
    columns = [*PATIENTS.names, PATIENTS.target]
    LedgerStore.create(tmp_path / "l.ledger", Budget(1.0), columns=columns)
    return tmp_path


def fit(call_privet, folder, *more):
    return call_privet(
        "fit", folder / "patients.csv", "--schema", folder / "schema.toml", "--out",
        folder / "m.json", *more,
    )  # fmt: skip


def test_a_fit_with_a_score_says_it_and_keeps_it(call_privet, folder):
    code, out, err = fit(call_privet, folder, "--test-share", 0.3, "--test-by", "sex")
    assert code == 0, err
    assert "accuracy" in out
    assert "accuracy where sex is female" in out
    assert "spent epsilon 1 " in out
    model = privet.load(folder / "m.json")
    assert model.evaluation.share == 0.3
    code, out, err = call_privet("show", folder / "m.json")
    assert code == 0, err
    assert "Test score" in out
    assert "the test part" in out
    assert "balanced accuracy" in out
    assert "no record paid for both" in out.replace("\n    ", " ")
    code, out, _ = call_privet("show", folder / "m.json", "--format", "json")
    assert json.loads(out)["evaluation"]["by"] == "sex"


def test_a_share_that_is_none(call_privet, folder):
    for share in ("1.5", "0", "-1"):
        code, _, err = fit(
            call_privet, folder, f"--test-share={share}", "--ledger", folder / "l.ledger"
        )
        assert code == 2
        assert "test_share must be None or a number" in err
    assert not (folder / "m.json").exists()
    assert float(LedgerStore(folder / "l.ledger").left) == 1.0


def test_evaluate_other_rows(call_privet, folder):
    code, _, err = fit(call_privet, folder)
    assert code == 0, err
    given = ("evaluate", folder / "m.json", folder / "others.csv", "--ledger", folder / "l.ledger")
    code, out, err = call_privet(*given, "--epsilon", 0.75, "--by", "sex")
    assert code == 0, err
    assert "AUC" in out
    assert "accuracy where sex is male" in out
    assert "spent epsilon 0.75 " in out
    assert "the guarantee holds for the score" in out
    assert float(LedgerStore(folder / "l.ledger").left) == 0.25
    code, _, err = call_privet(*given, "--epsilon", 0.5)
    assert code == 2
    assert "0.25" in err
    assert float(LedgerStore(folder / "l.ledger").left) == 0.25


def test_evaluate_refuses_other_columns_and_spends_nothing(call_privet, folder):
    assert fit(call_privet, folder)[0] == 0
    pyarrow.csv.write_csv(pa.table({"a": [1, 2]}), folder / "others.csv")
    code, _, err = call_privet(
        "evaluate", folder / "m.json", folder / "others.csv", "--ledger", folder / "l.ledger"
    )
    assert code == 2
    assert "Error:" in err
    assert float(LedgerStore(folder / "l.ledger").left) == 1.0


def test_evaluate_blocks(call_privet, folder):
    assert fit(call_privet, folder)[0] == 0
    code, out, err = call_privet(
        "evaluate", folder / "m.json", folder / "others.csv", "--blocks", folder
    )
    assert code == 0, err
    assert "accuracy" in out
