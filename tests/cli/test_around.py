"""Around the reading: predictions to standard output, help by learner, what to expect."""

import csv
import io
import json
from pathlib import Path

import pytest

from privet import load
from privet.cli import _terminal
from privet.cli.fit import TAKES
from privet.estimators.registry import learners, parameters_of
from privet.planning import expectation, least_epsilon

SEEDED = Path(__file__).parents[1] / "golden" / "seeded"
MODEL = SEEDED / "tree.json"
ROWS = [
    {"dose": "-3", "age": "40", "share": "0.2", "sex": "f", "ward": "a", "grade": "1"},
    {"dose": "33.5", "age": "", "share": "0.9", "sex": "x", "ward": "", "grade": "3"},
    {"dose": "50", "age": "90", "share": "0.5", "sex": "m", "ward": "l", "grade": "2"},
]


def write(path, names, rows=ROWS):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


class TestPredict:
    def test_to_standard_output_as_to_a_file(self, call_privet, tmp_path):
        data = write(tmp_path / "a.csv", list(ROWS[0]))
        code, out, _ = call_privet("predict", MODEL, data)
        assert code == 0
        found = list(csv.DictReader(io.StringIO(out)))
        assert [set(row) for row in found] == [
            {"prediction", "probability_no", "probability_yes"}
        ] * 3
        assert call_privet("predict", MODEL, data, "--out", tmp_path / "b.csv")[0] == 0
        assert (tmp_path / "b.csv").read_text() == out

    def test_from_any_order_of_columns(self, call_privet, tmp_path):
        names = list(ROWS[0])
        first = call_privet("predict", MODEL, write(tmp_path / "a.csv", names))
        other = [{**row, "extra": "7"} for row in ROWS]
        data = write(tmp_path / "b.csv", ["extra", *reversed(names)], other)
        assert call_privet("predict", MODEL, data) == first


class TestHelp:
    def test_options_are_those_of_the_registry(self):
        found = {}
        for name, learner in learners().items():
            taken: dict[str, None] = {}
            for face in (learner.classifier, learner.regressor):
                if face is not None:
                    taken |= dict.fromkeys(parameters_of(face))
                    taken |= {"delta": None} if "delta" in face().get_params() else {}
            found[name] = set(taken)
        assert found == {name: set(taken) for name, taken in TAKES.items()}

    def test_help_is_grouped(self, call_privet, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        code, out, _ = call_privet("fit", "--help")
        assert code == 0
        assert "Some learners" in out
        assert "For additive and boosting" in out
        assert "boosting: n_rounds, merge_tests, aim, class_weight" in out

    @pytest.mark.parametrize("command", [(), ("fit",), ("party",), ("schema", "draft")])
    def test_flags_take_no_value(self, call_privet, command):
        code, out, _ = call_privet(*command, "--help")
        assert code == 0
        assert "--help" in out
        assert "<bool>" not in out

    @pytest.mark.parametrize(
        ("command", "said"),
        [("report", "[release]"), ("audit", "[default: 32]"), ("fit", "[default: a new one]")],
    )
    def test_brackets_are_no_markup(self, call_privet, monkeypatch, command, said):
        monkeypatch.setenv("COLUMNS", "200")
        assert said in call_privet(command, "--help")[1]


class TestPlan:
    def test_the_default_learner_comes_first(self, call_privet):
        code, out, _ = call_privet("plan", "--rows", 20_000, "--epsilon", 0.3)
        near = expectation(20_000, 0.3, 2)
        assert code == 0
        first = out.splitlines()[0]
        assert first.startswith("The default learner, PrivateTreeClassifier, with about as much")
        assert f"{100 * near.typical:.1f} points below gradient boosting" in first
        assert "Measured, and no bound" in first
        assert out.index("(a bound)") < out.index("PrivaTreeClassifier")

    def test_json_has_it_too(self, call_privet):
        _, out, _ = call_privet("plan", "--rows", 20_000, "--epsilon", 1, "--json")
        assert json.loads(out)["measured"]["results"] >= 4

    @pytest.mark.parametrize("given", [("--classes", 5), ("--rows", 20)])
    def test_where_nothing_was_measured_it_says_so(self, call_privet, given):
        options = {"--rows": 20_000, "--epsilon": 0.01, given[0]: given[1]}
        _, out, _ = call_privet("plan", *(part for pair in options.items() for part in pair))
        assert "nothing to expect from" in out.splitlines()[0]

    def test_more_epsilon_was_not_worse(self):
        least = least_epsilon(10_000, 2, 0.05)
        assert least is not None
        assert expectation(10_000, least, 2).typical <= 0.05
        assert least_epsilon(10_000, 2, -1.0) is None


class TestCertify:
    def test_nothing_useful_and_which_epsilon_would(self, call_privet, tmp_path):
        model = tmp_path / "m.json"
        plain = json.loads(MODEL.read_text())
        plain["privacy"] |= {"private": True, "warnings": [], "seeded": False}
        model.write_text(json.dumps(plain))
        code, out, _ = call_privet("certify", model, "--rows", 2000, "--accuracy", 0.9)
        assert code == 0
        assert "Nothing useful is promised against" in out
        words = out[out.index("A fit with epsilon ") :].split()
        epsilon = float(words[4])
        from privet.robustness import accuracy_after, promise_of

        size = int(out[out.index("promised against ") :].split()[2].replace(",", ""))
        assert accuracy_after(promise_of(epsilon=epsilon), 0.9, size).best > 0.5
        assert accuracy_after(promise_of(epsilon=1.2 * epsilon), 0.9, size).best <= 0.5
        _, out, _ = call_privet(
            "certify", model, "--rows", 2000, "--accuracy", 0.9, "--poisoned", 1
        )
        assert "Nothing useful" not in out
        assert load(model).privacy.private


def test_where_no_bar_can_be_drawn_a_line_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(_terminal, "_SECONDS", 0.0)
    with _terminal.progress_bar() as start:
        report = start("a case")
        report(1, 3)
    with _terminal.progress("learning") as show:
        show("learning: a level")
    err = capsys.readouterr().err
    assert "a case: 1 of 3" in err
    assert "learning: a level" in err
