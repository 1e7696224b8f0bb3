"""``privet certify`` on the terminal."""

import json
import math
from functools import partial
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from privet import (
    Numeric,
    PrivacyLeakWarning,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    Schema,
)
from privet.datasets import PATIENTS, make_patients


@pytest.fixture
def call(call_privet, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return partial(call_privet, "certify")


@pytest.fixture(scope="module")
def patients():
    return pa.table(make_patients(1500, seed=1))


@pytest.fixture(scope="module")
def model(patients, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.json"
    PrivateTreeClassifier(epsilon=0.1, schema=PATIENTS, n_rows=1500).fit(patients).save(path)
    return path


def row(out, share):
    line = next(line for line in out.splitlines() if share in line)
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_table(call, model):
    code, out, _ = call(
        model, "--rows", 1500, "--poisoned", "0.1%,0.5%,36", "--accuracy", 0.84
    )  # fmt: skip
    assert code == 0
    shares = [row(out, share) for share in ("0.1333%", "0.5333%", "2.4000%")]
    assert [cells[1] for cells in shares] == ["2", "8", "36"]
    _, _, paper, pure, zcdp, both, best = shares[0]
    assert float(paper) == math.floor(0.84 * math.exp(-0.2) * 1000) / 1000  # rounded down
    assert float(pure) == math.floor((1 - 0.16 * math.exp(0.2)) * 1000) / 1000
    assert both == "-"
    assert float(best) >= max(float(zcdp), float(pure))
    assert "expected over the noise of a fit" in out
    assert "as you say" in out


def test_without_an_accuracy_several_are_shown(call, model):
    code, out, _ = call(model, "--rows", 1500, "--poisoned", "0.1%,0.5%,36")
    assert code == 0
    heads = next(line for line in out.splitlines() if "share" in line)
    accuracies = [text.strip() for text in heads.strip("┃").split("┃")][2:]
    assert accuracies == ["0.6", "0.7", "0.8", "0.9", "0.95", "0.99"]
    for size, share in (("2", "0.1333%"), ("8", "0.5333%"), ("36", "2.4000%")):
        _, shown, *bounds = row(out, share)
        assert shown == size
        assert [float(bound) for bound in bounds] == sorted(float(bound) for bound in bounds)
        for accuracy, bound in zip(accuracies, bounds, strict=True):
            alone = call(model, "--rows", 1500, "--poisoned", size, "--accuracy", accuracy)[1]
            assert row(alone, share)[-1] == bound
    assert "--accuracy" in out
    assert "--runs-file" in out
    assert "which this command does not know" in out


def test_without_an_accuracy_changed_rows_count_twice(call, model):
    added = call(model, "--rows", 1500, "--poisoned", 6)[1]
    changed = call(model, "--rows", 1500, "--poisoned", 3, "--changed")[1]
    assert row(added, "0.4000%")[2:] == row(changed, "0.2000%")[2:]
    assert "counts twice" in changed


def test_perfect_runs_are_no_perfect_accuracy(call, model, tmp_path):
    (tmp_path / "runs.csv").write_text("1\n" * 30)
    code, out, _ = call(
        model, "--rows", 1500, "--poisoned", 36, "--runs-file", tmp_path / "runs.csv"
    )  # fmt: skip
    assert code == 0
    assert float(row(out, "2.4000%")[-1]) < 0.9


def test_changed_rows_count_twice(call, model):
    added = call(model, "--rows", 1500, "--poisoned", 6, "--accuracy", 0.84)[1]
    changed = call(model, "--rows", 1500, "--poisoned", 3, "--accuracy", 0.84, "--changed")[1]
    assert row(added, "0.4000%")[2:] == row(changed, "0.2000%")[2:]
    assert "counts twice" in changed


def test_runs_and_a_plot(call, model, tmp_path):
    (tmp_path / "runs.csv").write_text("accuracy\n" + "0.84\n0.85\n" * 30)
    options = ["--rows", 1500, "--runs-file", tmp_path / "runs.csv", "--confidence", 0.9]
    code, out, _ = call(model, *options, "--plot", tmp_path / "curve.svg")
    assert code == 0
    assert "by 60 fits (mean 0.845) and with confidence 0.9" in out
    ElementTree.parse(tmp_path / "curve.svg")
    code, out, _ = call(model, *options, "--success")
    assert code == 0
    assert "Expected attack success after poisoning is at most" in out


def test_attacks_with_delta(call, patients, tmp_path):
    learner = PrivateBoostingClassifier(epsilon=0.5, delta=1e-6, schema=PATIENTS, n_rounds=1)
    learner.fit(patients).save(tmp_path / "model.json")
    code, out, _ = call(
        tmp_path / "model.json", "--rows", 1500, "--poisoned", "1", "--attack-success", 0.01
    )  # fmt: skip
    assert code == 0
    _, _, paper, pure, zcdp, both, best = row(out, "0.0667%")
    assert (paper, pure) == ("-", "-")
    assert float(best) <= min(float(zcdp), float(both))
    assert float(both) == math.ceil((0.01 * math.exp(0.5) + 1e-6) * 1000) / 1000  # rounded up


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--rows", 10, "--poisoned", 11, "--accuracy", 0.8], "more poisoned rows than rows"),
        (["--rows", 10, "--poisoned", "101%", "--accuracy", 0.8], "more of them than rows"),
        (["--rows", 10, "--poisoned", "0.01", "--accuracy", 0.8], "percentages and whole numbers"),
        (["--rows", 10, "--poisoned", "-1%", "--accuracy", 0.8], "share of the rows"),
        (["--rows", 10, "--poisoned", "x%", "--accuracy", 0.8], "must be a number"),
        (["--rows", 10, "--poisoned", "", "--accuracy", 0.8], "percentages and whole numbers"),
        (["--rows", 0, "--poisoned", "0", "--accuracy", 0.8], "without rows"),
        (["--rows", -5, "--accuracy", 0.8], "not negative"),
        (["--rows", 10, "--accuracy", 0], "above 0"),
        (["--rows", 10, "--accuracy", -0.5], "from 0 to 1"),
        (["--rows", 10, "--accuracy", 84], "from 0 to 1"),
        (["--rows", 10, "--accuracy", "nan"], "from 0 to 1"),
        (["--rows", 10, "--attack-success", 2], "from 0 to 1"),
        (["--rows", 10, "--accuracy", 0.8, "--attack-success", 0.1], "give at most one of"),
        (["--rows", 10, "--accuracy", 1], "exactly 1 cannot be measured"),
        (["--rows", 10, "--attack-success", 0], "exactly 0 cannot be measured"),
        (["--rows", 10, "--plot", "curve.svg"], "--plot needs --accuracy"),
        (["--rows", 10, "--success"], "goes with --runs-file"),
        (["--rows", 10, "--poisoned", 11], "more poisoned rows than rows"),
        (["--rows", 10, "--accuracy", 0.8, "--success"], "goes with --runs-file"),
        (["--rows", 10, "--runs-file", "nowhere.csv"], "cannot read"),
        (["--rows", 10, "--accuracy", 0.8, "--plot", "curve.png"], ".svg"),
    ],
)
def test_bad_input_gets_a_clear_error(call, model, options, match):
    code, out, error = call(model, *options)
    assert code == 2
    assert match in error
    assert not out


def test_endless_runs(call, model):
    code, _, error = call(model, "--rows", 10, "--runs-file", "/dev/zero")
    assert code == 2
    assert "too large" in error


@pytest.mark.parametrize("text", ["0.5\nmuch\n", "", "heading\n", "1.5\n", "-0.1\n"])
def test_bad_runs(call, model, tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    code, _, error = call(model, "--rows", 10, "--runs-file", tmp_path / "runs.csv")
    assert code == 2
    assert str(tmp_path) in error or "between 0 and 1" in error
    said = error.replace(str(tmp_path), "")
    assert not any(word in said for word in text.split())


def test_models_without_a_guarantee(call, model, patients, tmp_path):
    plain = json.loads(model.read_text())
    del plain["privacy"]
    (tmp_path / "bare.json").write_text(json.dumps(plain))
    with pytest.warns(PrivacyLeakWarning):
        PrivateTreeClassifier(schema=PATIENTS, random_state=1).fit(patients).save(
            tmp_path / "seeded.json"
        )
    schema = Schema({"x": Numeric(0, 1)}, target="y", bounds=(0, 1))
    number = PrivateBoostingRegressor(schema=schema, n_rounds=1)
    number.fit([[0.1], [0.9]] * 20, [0.0, 1.0] * 20).save(tmp_path / "number.json")
    for name, match in (
        ("bare", "no complete privacy card"),
        ("seeded", "not private"),
        ("number", "has no accuracy"),
        ("missing", "cannot read the model file"),
    ):
        path = tmp_path / f"{name}.json"
        code, out, error = call(path, "--rows", 100, "--accuracy", 0.8)
        assert code == 2
        assert "no guarantee can be given" in error.replace("\n", " ")
        assert match in error
        assert not out
