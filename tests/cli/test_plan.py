"""``privet plan`` on the terminal."""

import json
import re
from functools import partial

import pytest

from privet import Categorical, Numeric, Schema
from privet.datasets import PATIENTS
from privet.planning import make_plan


@pytest.fixture
def call(call_privet, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return partial(call_privet, "plan")


def cells_of(out, start):
    line = next(line for line in out.splitlines() if line.strip().startswith(start))
    return re.split(r"\s{2,}", line.strip())


def test_one_machine(call):
    code, out, _ = call("--rows", 20_000, "--epsilon", 1, "--features", 8, "--categories", "3, 5")
    assert code == 0
    plan = make_plan(20_000, 1.0, numbers=8, categories=[3, 5])
    for level in plan.levels["single machine"]:
        row = cells_of(out, f"{level.depth} ")
        assert row[1] == f"{level.leaves:,}"
        assert row[6:8] == [f"{level.label_loss:.2%}", f"{level.split_loss:.2%}"]
        assert row[8] == ("yes" if level.depth <= plan.depth else "no")
    assert f"depth {plan.depth} is affordable" in out
    assert f"Up to {plan.affordable_leaves:,} leaves" in out
    assert "(a bound)" in out
    assert "(a rule of thumb)" in out
    assert "whole trees of depth 3 (epsilon 0.299) + 3" in out
    assert "Protocols" not in out


def test_several_parties(call):
    code, out, _ = call("--rows", 50_000, "--epsilon", 1, "--parties", 4, "--honest", 3)
    assert code == 0
    plan = make_plan(50_000, 1.0, parties=4, honest=3)
    assert f"{plan.winner} loses least" in out
    assert f"{plan.second}, the second best, has {plan.advantage:.3g} times" in out
    assert f"it takes depth {plan.auto_depth} by itself" in out
    level = plan.levels[plan.winner][1]
    first, last = (level.split_epsilons[k] + level.gain_epsilons[k] for k in (0, 1))
    assert cells_of(out, "2 ")[3:5] == [f"{first:.3g}", f"{last:.3g}"]
    assert "divided at random" in out
    for name in ("single machine", "secure sum", "LocalRNM", "NoisyCounts"):
        row = cells_of(out, name)
        assert row[1] == str(plan.depths[name])
        assert row[4].startswith("~") != (name == "single machine")  # an estimate, not a bound
        assert row[5].startswith("~") == (name == "secure sum")
    assert cells_of(out, "LocalRNM")[-1] == "no guarantee"


def test_json_is_the_plan(call):
    code, out, _ = call("--rows", 1000, "--epsilon", 0.5, "--parties", 2, "--json")
    assert code == 0
    expected = {**make_plan(1000, 0.5, parties=2).to_dict(), "measured": None}
    assert json.loads(out) == json.loads(json.dumps(expected))


def test_a_schema_gives_features_and_classes(call, tmp_path):
    PATIENTS.to_toml(tmp_path / "schema.toml")
    code, out, _ = call(
        "--rows", 1000, "--epsilon", 1, "--schema", tmp_path / "schema.toml", "--json"
    )
    assert code == 0
    plain = json.loads(out)
    assert plain["features"] == len(PATIENTS.names)
    assert plain["classes"] == len(PATIENTS.classes)


def test_a_schema_may_have_a_category_with_one_value(call, tmp_path):
    schema = Schema(
        {"x": Numeric(0, 1), "site": Categorical(["here"])}, target="y", classes=["a", "b"]
    )
    schema.to_toml(tmp_path / "schema.toml")
    for parties in (1, 3):
        code, out, _ = call(
            "--rows", 1000, "--epsilon", 1, "--schema", tmp_path / "schema.toml",
            "--parties", parties, "--json",
        )  # fmt: skip
        assert code == 0
        assert json.loads(out)["features"] == 2


@pytest.mark.parametrize(
    "more", [["--features", 10], ["--classes", 2], ["--categories", "3"], ["--categories", ""]]
)
def test_a_schema_beside_what_it_says_is_refused(call, tmp_path, more):
    """It was taken, and the rest left unread."""
    PATIENTS.to_toml(tmp_path / "schema.toml")
    code, out, error = call(
        "--rows", 1000, "--epsilon", 1, "--schema", tmp_path / "schema.toml", *more
    )
    assert (code, out) == (2, "")
    assert "leave out --schema" in error


def test_each_plan_names_its_estimator_and_its_shares(call):
    _, alone, _ = call("--rows", 20_000, "--epsilon", 1)
    _, apart, _ = call("--rows", 20_000, "--epsilon", 1, "--parties", 4)
    for out, plan in ((alone, make_plan(20_000, 1.0)), (apart, make_plan(20_000, 1.0, parties=4))):
        assert f"\n{plan.estimator}: trees that" in f"\n{out}"
        assert f"The plan is for {plan.estimator}: {plan.sharing}." in out
        assert "their losses do not compare" in out
    assert "TopDownClassifier on a single machine" in apart


def test_a_tree_with_more_splits_than_by_default(call):
    given = ("--rows", 10**8, "--epsilon", 100, "--parties", 4)
    _, out, _ = call(*given)
    assert "stops after 512 splits" in out
    assert "depth 10 has 1,023 splits: give max_nodes=1023" in out
    _, out, _ = call(*given, "--max-depth", 9)
    assert "give max_nodes" not in out


def test_a_large_tolerance(call):
    code, out, _ = call("--rows", 1, "--epsilon", 0.001, "--tolerance", 0.5)
    assert code == 0
    assert "No split is affordable" in out
    assert "yes" not in out


def test_a_huge_budget(call):
    code, out, _ = call("--rows", 2_000_000_000, "--epsilon", "1.7e308")
    assert code == 0
    assert "Up to 2,000,000,000 leaves" in out


def test_nothing_is_affordable(call):
    code, out, _ = call("--rows", 3, "--epsilon", 0.00001, "--parties", 9)
    assert code == 0
    assert "No split is affordable: give more rows" in out
    assert "secure sum would refuse depth 1: the budget is too small" in out
    assert "PrivateTreeClassifier refuses" in out


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--rows", 0, "--epsilon", 1], "rows must be at least 1"),
        (["--rows", -3, "--epsilon", 1], "rows must be at least 1"),
        (["--rows", 10, "--epsilon", 0], "epsilon must be a positive number"),
        (["--rows", 10, "--epsilon", -1], "epsilon must be a positive number"),
        (["--rows", 10, "--epsilon", "nan"], "epsilon must be a positive number"),
        (["--rows", 10, "--epsilon", "inf"], "epsilon must be a positive number"),
        (["--rows", 10, "--epsilon", 1, "--parties", 0], "parties must be at least 1"),
        (["--rows", 10, "--epsilon", 1, "--classes", 1], "classes must be at least 2"),
        (["--rows", 10, "--epsilon", 1, "--features", 0], "a tree needs a feature"),
        (["--rows", 10, "--epsilon", 1, "--categories", "2;5"], "with commas between"),
        (["--rows", 10, "--epsilon", 1, "--categories", "0"], "categories must be at least 1"),
        (["--rows", 9, "--epsilon", 1, "--parties", 2, "--bins", 1025], "bins must be at most"),
        (["--rows", 10, "--epsilon", 1, "--max-depth", 99], "at most 30"),
        (["--rows", 10, "--epsilon", 1, "--parties", 2, "--honest", 3], "more honest parties"),
        (["--rows", 10, "--epsilon", 1, "--schema", "nowhere.toml"], "nowhere.toml"),
        (["--epsilon", 1], "--rows"),
        (["--rows", 10], "--epsilon"),
    ],
)
def test_bad_input_gets_a_clear_error(call, options, match):
    code, out, error = call(*options)
    assert code == 2
    assert match in error
    assert not out


def test_a_plan_is_for_classes(call, tmp_path):
    schema = Schema({"x": Numeric(0, 1)}, target="y", bounds=(0, 1))
    schema.to_toml(tmp_path / "schema.toml")
    code, _, error = call("--rows", 9, "--epsilon", 1, "--schema", tmp_path / "schema.toml")
    assert code == 2
    assert "target is a number" in error
