"""What README and documentation show runs as it stands, and what they quote was measured."""

import csv
import math
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from privet import __version__

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the code of a page: the language of each block, and its text."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def table(page: str, first: str) -> list[list[str]]:
    """Return the rows of the table in a page whose head begins with some text."""
    lines = (ROOT / page).read_text(encoding="utf-8").split(first, 1)[1].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    assert rows
    return rows


#: A fresh environment does not have it.
WITHOUT_PANDAS = """
import sys
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
"""


def test_the_example_of_the_readme_runs(tmp_path):
    (code,) = [text for language, text in blocks("README.md") if language == "python"]
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS + code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said[0] == "True 1.0"
    assert (tmp_path / "model.json").exists()


def test_the_tutorial_runs(tmp_path, monkeypatch, call_privet, capsys):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    done = []
    for language, text in blocks("docs/tutorial.md"):
        if language == "python":
            exec(compile(text, "tutorial", "exec"), scope)
            capsys.readouterr()
        elif language == "toml":
            tomllib.loads(text)
            Path("schema.toml").write_text(text, encoding="utf-8")
        elif language == "text":
            continue  # what was printed once
        else:
            assert language == "console"
            for line in text.splitlines():
                prompt, name, *arguments = shlex.split(line)
                assert (prompt, name) == ("$", "privet")
                code, out, error = call_privet(*arguments)
                assert code == 0, (line, error)
                done.append(arguments[0])
                if arguments[0] == "fit":
                    assert "\nVerdict: private" in out
    assert done == ["schema", "ledger", "fit", "show", "show", "ledger", "report", "predict"]
    made = {"model.json", "tree.svg", "report.html", "predictions.csv"}
    assert {path.name for path in tmp_path.iterdir()} >= made


def test_epsilon_in_plain_words_is_right():
    rows = table("docs/epsilon.md", "| epsilon | odds")
    for row in rows:
        epsilon = float(row[0])
        factor = math.exp(epsilon)
        found = (100 * min(factor * wrong, 1 - (1 - wrong) / factor) for wrong in (0.01, 0.1))
        right = [factor, 100 * factor / (1 + factor), *found]
        for cell, number in zip(row[1:], right, strict=True):
            digits = cell.strip(" %").partition(".")[2]
            assert cell.strip(" %") == f"{number:.{len(digits)}f}"
    assert [float(row[0]) for row in rows] == [0.1, 0.5, 1, 2, 3, 5, 10]


#: What README and documentation call the models of benchmarks/results/utility.csv.
MODELS = {
    "Privet's tree": "tree",
    "`PrivateTreeClassifier`": "tree",
    "... with its whole budget for labels (`probability_share=0`)": "tree-labels",
    "Privet's boosting": "boosting-pure",
    "`PrivateBoostingClassifier`, pure": "boosting-pure",
    "`PrivateBoostingClassifier`, delta 1e-6": "boosting",
    "`PrivateAdditiveClassifier`, delta 1e-6": "additive",
    "`DiffPID3Classifier`, depth 3": "diffpid3-3",
    "DP-EBM (interpret-core 0.7.3, delta 1e-6), learning rate chosen on the test folds": "dpebm-",
    "DP-EBM, learning rate chosen on the test folds": "dpebm-",
    "DP-EBM (interpret-core 0.7.3), delta 1e-6, defaults": "dpebm-0.01",
    "diffprivlib 0.6.6, forest": "diffprivlib-forest",
    "diffprivlib 0.6.6, tree of depth 4": "diffprivlib-tree-4",
    "scikit-learn's tree of depth 6, not private": "cart-6",
    "no privacy: scikit-learn's tree of depth 4": "cart-4",
    "no privacy: scikit-learn's tree of depth 6": "cart-6",
    "no privacy: scikit-learn's boosting": "hist-boosting",
}


@pytest.mark.parametrize("page", ["README.md", "docs/results/accuracy.md"])
def test_quoted_accuracies_were_measured(page):
    with (ROOT / "benchmarks/results/utility.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    compared = 0
    for name, *cells in table(page, "| | epsilon 0.01 |"):
        for epsilon, cell in zip(("0.01", "0.1", "1"), cells, strict=True):
            best: dict[str, float] = {}  # of the learning rates, where there are several
            for line in lines:
                model = line["model"]
                ours = model == MODELS[name] or MODELS[name] == "dpebm-" == model[:6]
                if ours and line["epsilon"] in ("", epsilon):
                    best[line["set"]] = max(best.get(line["set"], 0), float(line["accuracy"]))
            assert len(best) == 14
            assert float(cell) == pytest.approx(sum(best.values()) / 14, abs=0.00051), (name, cell)
            compared += 1
    assert compared >= 15


def test_pictures_and_links_of_the_readme_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:\]\(|src=\")((?!http|#)[\w./-]+)", text)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_version_is_the_same_everywhere():
    changes = re.findall(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert changes[0] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "releases" / f"{__version__}.md").exists()


def test_every_extra_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = table("docs/install.md", "| extra | for |")
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert set(project["optional-dependencies"]) - explained == set()
