"""Measure how well small tables are ranked, and how good their probabilities are.

Subsamples of 500 to 5,000 rows of 22 sets with two classes, epsilon 1 and delta 1e-6; a third of a
set's rows, at most 10,000, are for testing. Rules were chosen while looking at the sets of the half
*choose*, a few of them also at sets of the half *confirm* (docs/rules.md), so the halves are
reported apart.

* ours: ``PrivateBoostingClassifier`` (aim "probabilities", ``n_rows`` declared; with delta, and
  "pure" without), ``PrivateAdditiveClassifier`` (delta), ``PrivateTreeClassifier`` with a fifth for
  probabilities;
* a peer of our own: logistic regression by noisy gradients, its step size chosen within the budget
  (``_peers.py``).

Area under the ROC curve (AUC), log loss and accuracy. The data sets are public, so that fits are
seeded, to be repeatable. Differences are paired by set, rows and seed; the standard error is that
of means over sets.

Run ``python benchmarks/ranking.py``; it writes ``ranking.csv``, ``ranking.md`` and ``ranking.png``.
With ``--label before`` and another checkout on ``PYTHONPATH``, models of that one are measured
under that label: boosting with delta and additive models before slopes, pure boosting before its
limit of 5,000 moved and single trees ranked within their leaves. What the CSV already has is kept.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _catalogue import FOLDER, Data, load, one_hot, schema_of
from _peers import logistic_features, noisy_logistic
from _report import command, machine, table, versions

CHOOSE = [
    "adult", "bank", "bank-marketing", "breast-w", "compas-two-years", "credit", "diabetes",
    "electricity", "heloc", "house_16H", "mushroom", "pol",
]  # fmt: skip
CONFIRM = [
    "MagicTelescope", "albert", "banknote", "california", "covertype", "Diabetes130US",
    "default-of-credit-card-clients", "eye_movements", "higgs-small", "road-safety",
]  # fmt: skip
ROWS = [500, 1_000, 2_000, 5_000]
EPSILON, DELTA = 1.0, 1e-6
MOST_TEST = 10_000
MODELS = ["boosting", "pure", "additive", "tree", "logistic"]
#: What of an earlier checkout is measured.
EARLIER = ["boosting", "pure", "additive"]
MEASURES = ["auc", "log loss", "accuracy"]
FIELDS = ["label", "half", "set", "rows", "seed", "model", *MEASURES, "cpu s"]
NOW, BEFORE = "now", "before"
#: AUC, log loss and accuracy of a prototype of boosting on small tables, by set and rows: what was
#: to be reached. Means of two seeds of its own.
PROTOTYPE = {
    ("adult", 1_000): (0.860, 0.398, 0.824),
    ("adult", 5_000): (0.898, 0.339, 0.837),
    ("bank", 1_000): (0.771, 0.316, 0.883),
    ("bank", 5_000): (0.887, 0.258, 0.896),
    ("credit", 1_000): (0.795, 0.567, 0.737),
    ("credit", 5_000): (0.851, 0.483, 0.767),
    ("compas-two-years", 1_000): (0.711, 0.659, 0.659),
    ("compas-two-years", 5_000): (0.727, 0.614, 0.675),
    ("heloc", 1_000): (0.737, 0.632, 0.694),
    ("heloc", 5_000): (0.774, 0.576, 0.707),
    ("house_16H", 1_000): (0.884, 0.452, 0.799),
    ("house_16H", 5_000): (0.922, 0.361, 0.845),
    ("electricity", 1_000): (0.821, 0.529, 0.743),
    ("electricity", 5_000): (0.839, 0.496, 0.767),
    ("california", 1_000): (0.847, 0.524, 0.746),
    ("california", 5_000): (0.908, 0.389, 0.833),
    ("MagicTelescope", 1_000): (0.830, 0.515, 0.754),
    ("MagicTelescope", 5_000): (0.888, 0.423, 0.800),
    ("default-of-credit-card-clients", 1_000): (0.736, 0.619, 0.706),
    ("default-of-credit-card-clients", 5_000): (0.760, 0.586, 0.705),
    ("covertype", 1_000): (0.781, 0.565, 0.735),
    ("covertype", 5_000): (0.835, 0.504, 0.766),
    ("breast-w", 1_000): (0.995, 0.087, 0.971),
    ("diabetes", 1_000): (0.821, 0.501, 0.765),
}
#: By how much an AUC of the prototype varies on one set.
PROTOTYPE_ERROR = {1_000: 0.02, 5_000: 0.01}

Rows = list[dict[str, Any]]


def measure(shares: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return AUC, log loss and accuracy of the second class's probabilities."""
    from sklearn.metrics import log_loss, roc_auc_score

    return {
        "auc": roc_auc_score(truth, shares),
        "log loss": log_loss(truth, np.clip(shares, 1e-6, 1 - 1e-6), labels=[0, 1]),
        "accuracy": float(np.mean((shares > 0.5) == (truth == 1))),
    }


def fit(data: Data, model: str, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return the probabilities of the second class on the test rows."""
    import privet

    schema, X, y = schema_of(data), data.X.iloc[train], data.y[train]
    if model == "logistic":
        features, bounds = one_hot(data)
        rho = float(privet.Budget(EPSILON, delta=DELTA).limit)
        weights = noisy_logistic(features[train], bounds, y, rho, seed)
        scores = logistic_features(features[test], bounds) @ weights
        return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    given: dict[str, Any] = {"epsilon": EPSILON, "schema": schema, "random_state": seed}
    made = {
        "boosting": lambda: privet.PrivateBoostingClassifier(delta=DELTA, n_rows=len(y), **given),
        "pure": lambda: privet.PrivateBoostingClassifier(n_rows=len(y), **given),
        "additive": lambda: privet.PrivateAdditiveClassifier(delta=DELTA, **given),
        "tree": lambda: privet.PrivateTreeClassifier(n_rows=len(y), probability_share=0.2, **given),
    }[model]()
    return made.fit(X, y).predict_proba(data.X.iloc[test])[:, 1]


def run(args: argparse.Namespace, known: Rows, out: Path) -> Rows:
    """Measure what is not known yet; every result is written at once."""
    done = {(r["label"], r["set"], int(r["rows"]), int(r["seed"]), r["model"]) for r in known}
    models = [m for m in (MODELS if args.label == NOW else EARLIER) if m in args.models]
    for seed in range(args.seeds):
        for rows in args.rows:
            for name in [*CHOOSE, *CONFIRM]:
                wanted = [m for m in models if (args.label, name, rows, seed, m) not in done]
                if not wanted or name not in args.sets:
                    continue
                data = load(args.data, name)
                order = np.random.default_rng(seed).permutation(len(data.y))
                n_test = min(len(order) // 3, MOST_TEST)
                test, train = order[:n_test], order[n_test:][:rows]
                if len(train) < rows and rows > 1_000:
                    continue  # all of its rows were already fewer
                for model in wanted:
                    begun = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = measure(fit(data, model, train, test, seed), data.y[test])
                    line = {
                        "label": args.label, "half": "choose" if name in CHOOSE else "confirm",
                        "set": name, "rows": rows, "seed": seed, "model": model,
                        **{key: f"{value:.5f}" for key, value in found.items()},
                        "cpu s": f"{time.process_time() - begun:.2f}",
                    }  # fmt: skip
                    known.append(line)
                    with out.open("a", newline="", encoding="utf-8") as file:
                        csv.DictWriter(file, FIELDS, lineterminator="\n").writerow(line)
                    print(*(str(value) for value in line.values()), flush=True)
    return known


def read(path: Path, fields: list[str] = FIELDS) -> Rows:
    """Return what an earlier run has written; begin the file if there is none."""
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, fields, lineterminator="\n").writeheader()
    return []


def by_set(
    results: Rows, label: str, model: str, half: str, rows: int
) -> dict[tuple[str, int], list[float]]:
    """Return the three measures by set and seed."""
    return {
        (r["set"], int(r["seed"])): [float(r[m]) for m in MEASURES]
        for r in results
        if (r["label"], r["model"], int(r["rows"])) == (label, model, rows)
        and half in (r["half"], "both")
    }


def paired(one: dict[Any, Any], other: dict[Any, Any]) -> tuple[list[str], int]:
    """Return mean differences with standard errors over sets, and how many sets there are."""
    names = sorted({name for name, _ in set(one) & set(other)})
    if len(names) < 2:
        return ["", "", ""], len(names)
    differences = np.array(
        [
            np.mean(
                [np.subtract(one[key], other[key]) for key in set(one) & set(other) if key[0] == n],
                axis=0,
            )
            for n in names
        ]
    )
    means, errors = (
        differences.mean(axis=0),
        differences.std(axis=0, ddof=1) / math.sqrt(len(names)),
    )
    return [f"{m:+.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)], len(names)


def seeds_of(results: Rows) -> str:
    """Say how many seeds every model has, where not all have as many."""
    most: dict[str, int] = {}
    for r in results:
        model = r["model"] + ("" if r["label"] == NOW else ", before")
        most[model] = max(most.get(model, 0), 1 + int(r["seed"]))
    if len(set(most.values())) == 1:
        return str(max(most.values()))
    return "; ".join(f"{model} {count}" for model, count in most.items())


def beside_prototype(results: Rows) -> list[str]:
    """Return a section: boosting beside the numbers of :data:`PROTOTYPE`."""
    lines, below = [], {"our error alone": 0, "both errors": 0}
    for (name, rows), reached in PROTOTYPE.items():
        mine = [
            [float(r[m]) for m in MEASURES]
            for r in results
            if (r["label"], r["model"], r["set"], int(r["rows"])) == (NOW, "boosting", name, rows)
        ]
        if len(mine) < 2:
            continue
        means = np.mean(mine, axis=0)
        errors = np.std(mine, axis=0, ddof=1) / math.sqrt(len(mine))
        gap = means[0] - reached[0]
        below["our error alone"] += gap < -2 * errors[0]
        missed = gap < -2 * math.hypot(errors[0], PROTOTYPE_ERROR[rows])
        below["both errors"] += missed
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
        lines.append(
            [
                name, str(rows), str(len(mine)), " / ".join(f"{v:.3f}" for v in reached),
                " / ".join(cells), f"{gap:+.3f}", "missed" if missed else "held",
            ]
        )  # fmt: skip
    if not lines:
        return []
    head = ["set", "rows", "seeds", "prototype", "boosting", "AUC less the prototype's", "reached"]
    said = ", ".join(f"{count} of {len(lines)} by {what}" for what, count in below.items())
    return [
        "## Beside the prototype: AUC / log loss / accuracy",
        "A prototype of boosting on small tables, with noise in floating point and seeds of its "
        "own, was to be reached. ± is one standard error over seeds. An AUC of the prototype, a "
        "mean of two seeds, varies by about 0.02 at 1,000 rows and by 0.01 at 5,000, which "
        "*reached* (not below by two standard errors) takes into account.",
        table(head, lines),
        f"Below the prototype's AUC by more than two standard errors: {said}.",
    ]


def write_report(results: Rows, path: Path) -> None:
    """Write the Markdown file."""
    words = {
        "pure": "boosting, pure",
        "tree": "tree, a fifth for probabilities (pure)",
        "logistic": "noisy logistic regression",
    }
    text = [
        "# Ranking of small tables",
        f"Last command: `{command()}`; what earlier ones measured is kept. *Before*, by `--label "
        "before`, is the checkout before slopes, for pure boosting commit 4b2392f",
        f"- {machine()}\n- {versions('privet', 'numpy', 'scikit-learn')}\n"
        f"- epsilon {EPSILON:g}, delta {DELTA:g} (pure boosting and the tree: none); seeded noise; "
        f"seeds: {seeds_of(results)}\n"
        "- small sets have fewer rows than asked for: all that are not for testing; they share "
        "rows between seeds\n- ± is one standard error over sets of paired differences",
    ]
    for half in ("choose", "confirm"):
        lines = []
        for rows in ROWS:
            for label, model in [*((NOW, m) for m in MODELS), *((BEFORE, m) for m in EARLIER)]:
                found = by_set(results, label, model, half, rows)
                if found:
                    mean = np.mean(list(found.values()), axis=0)
                    called = words.get(model, model) + (", before" if label == BEFORE else "")
                    lines.append([str(rows), called, *(f"{value:.3f}" for value in mean)])
        text += [f"## Means, half *{half}*", table(["rows", "", *MEASURES], lines)]
    lines = []
    pairs = [
        ("boosting now - before", (NOW, "boosting"), (BEFORE, "boosting")),
        ("additive now - before", (NOW, "additive"), (BEFORE, "additive")),
        ("pure boosting now - before", (NOW, "pure"), (BEFORE, "pure")),
        ("boosting - tree", (NOW, "boosting"), (NOW, "tree")),
        ("boosting - noisy logistic regression", (NOW, "boosting"), (NOW, "logistic")),
    ]
    for called, one, other in pairs:
        for half in ("choose", "confirm", "both"):
            for rows in ROWS:
                given = [by_set(results, *which, half, rows) for which in (one, other)]
                found, sets = paired(*given)
                if any(found):
                    lines.append([called, half, str(rows), str(sets), *found])
    text += ["## Paired differences", table(["", "half", "rows", "sets", *MEASURES], lines)]
    lines = []
    for name in [*CHOOSE, *CONFIRM]:
        for rows in (1_000, 5_000):
            line = [name, str(rows)]
            for label, model in ((BEFORE, "boosting"), (NOW, "boosting"), (NOW, "additive")):
                found = by_set(results, label, model, "both", rows)
                mine = [value for (which, _), value in found.items() if which == name]
                line.append(" / ".join(f"{v:.3f}" for v in np.mean(mine, axis=0)) if mine else "")
            if any(line[2:]):
                lines.append(line)
    head = ["set", "rows", "boosting before", "boosting", "additive"]
    text += ["## By set: AUC / log loss / accuracy", table(head, lines)]
    text += beside_prototype(results)
    path.write_text("\n\n".join(part.rstrip("\n") for part in text) + "\n", encoding="utf-8")


def draw(results: Rows, path: Path) -> None:
    """Draw mean AUC by rows, both halves apart."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, half in zip(axes, ("choose", "confirm"), strict=True):
        for label, model in [*((NOW, m) for m in MODELS), *((BEFORE, m) for m in EARLIER)]:
            found = [by_set(results, label, model, half, rows) for rows in ROWS]
            points = [
                (rows, np.mean([value[0] for value in one.values()]))
                for rows, one in zip(ROWS, found, strict=True)
                if one
            ]
            style = "--" if label == BEFORE else "-"
            axis.plot(*zip(*points, strict=True), style, marker="o", label=f"{model}, {label}")
        axis.set(title=half, xlabel="rows", xscale="log")
    axes[0].set_ylabel("mean AUC")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--sets", nargs="+", default=[*CHOOSE, *CONFIRM])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--label", choices=[NOW, BEFORE], default=NOW)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    out = args.out / "ranking.csv"
    results = run(args, read(out), out)
    if args.label == NOW:
        write_report(results, args.out / "ranking.md")
        draw(results, args.out / "ranking.png")


if __name__ == "__main__":
    main()
