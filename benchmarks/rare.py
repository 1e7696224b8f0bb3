"""Measure how well small tables are ranked of which hardly any records have one of two classes.

The sets of ``ranking.py``, in training and test thinned by leaving out records of the second class
until it has 6, 12 or 20 per cent; epsilon 1, delta 1e-6. ``PrivateBoostingClassifier`` with delta
and without ("pure"), ``n_rows`` declared. AUC, log loss and accuracy; differences are paired by
set, rows, share and seed, and the standard error is that of means over sets.

Run ``python benchmarks/rare.py``; it writes ``rare.csv``, ``rare.md`` and ``rare.png``. With
``--label before`` and another checkout on ``PYTHONPATH`` that one is measured under that label.
What the CSV already has is kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from pathlib import Path

import numpy as np
import ranking
from _catalogue import FOLDER, load
from _report import command, machine, table, versions
from ranking import BEFORE, CHOOSE, CONFIRM, DELTA, EPSILON, MEASURES, MOST_TEST, NOW

ROWS = (500, 1_000, 3_000)
SHARES = (0.06, 0.12, 0.2)
MODELS = {"boosting": f"boosting, delta {DELTA:g}", "pure": "boosting, pure"}
FIELDS = ["label", "half", "set", "rows", "share", "seed", "model", *MEASURES]
#: Sets with fewer training rows than this part of what was asked for are left out.
ENOUGH = 0.8

Rows = list[dict[str, str]]


def thinned(rows: np.ndarray, y: np.ndarray, share: float, seed: int) -> np.ndarray | None:
    """Return rows of which the second class has a share; None if it has less in all of them."""
    second, first = rows[y[rows] == 1], rows[y[rows] == 0]
    left = int(len(first) * share / (1 - share))
    if left > len(second):
        return None
    return np.random.default_rng(seed).permutation(np.concatenate([first, second[:left]]))


def run(args: argparse.Namespace, known: Rows, out: Path) -> Rows:
    """Measure what is not known yet; every result is written at once."""
    done = {tuple(line[name] for name in FIELDS[:7]) for line in known}
    for seed, name in itertools.product(range(args.seeds), [*CHOOSE, *CONFIRM]):
        data, half = load(args.data, name), "choose" if name in CHOOSE else "confirm"
        order = np.random.default_rng(seed).permutation(len(data.y))
        n_test = min(len(order) // 3, MOST_TEST)
        for share, rows in itertools.product(SHARES, ROWS):
            test = thinned(order[:n_test], data.y, share, seed)
            pool = thinned(order[n_test:], data.y, share, seed)
            if test is None or pool is None or len(pool) < ENOUGH * rows:
                continue
            train = pool[:rows]
            for model in MODELS:
                key = (args.label, half, name, str(rows), f"{share:g}", str(seed), model)
                if key in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    shares = ranking.fit(data, model, train, test, seed)
                found = ranking.measure(shares, data.y[test])
                line = dict(zip(FIELDS[:7], key, strict=True))
                line |= {measure: f"{value:.5f}" for measure, value in found.items()}
                known.append(line)
                with out.open("a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, FIELDS, lineterminator="\n").writerow(line)
        print(seed, name, flush=True)
    return known


def by_set(
    results: Rows, label: str, model: str, half: str, rows: int, share: float
) -> dict[tuple[str, int], list[float]]:
    """Return the three measures by set and seed."""
    asked = (label, half, str(rows), f"{share:g}", model)
    names = ("label", "half", "rows", "share", "model")
    return {
        (line["set"], int(line["seed"])): [float(line[m]) for m in MEASURES]
        for line in results
        if tuple(line[name] for name in names) == asked
    }


def write_report(path: Path, results: Rows) -> None:
    seeds = 1 + max(int(line["seed"]) for line in results)
    text = [
        "# Rare classes, few records\n",
        f"Last command: `{command()}`; what earlier ones measured is kept. *Before*, by `--label "
        "before`, is commit e0ad654\n",
        f"- {machine()}; {versions('privet', 'numpy', 'scikit-learn')}",
        f"- epsilon {EPSILON:g}, delta {DELTA:g} where there is one; seeded noise; {seeds} seeds",
        "- the second class is thinned to a share in training and test; sets where it has less, or "
        "with too few rows, are left out",
        "- rules were chosen on *choose*, thinned in the same way; most of these runs showed "
        "*confirm*, too",
        "- ± is one standard error over sets of paired differences; [n] is the number of sets\n",
    ]
    for half, (model, words) in itertools.product(("choose", "confirm"), MODELS.items()):
        lines = []
        for rows, share in itertools.product(ROWS, SHARES):
            now, before = (
                by_set(results, label, model, half, rows, share) for label in (NOW, BEFORE)
            )
            if not now:
                continue
            means = [f"{value:.3f}" for value in np.mean(list(now.values()), axis=0)]
            differences, sets = ranking.paired(now, before)
            lines.append([f"{rows:,}", f"{share:.0%}", f"[{sets}]", *means, *differences])
        head = ["rows", "share", "", *MEASURES, *(f"{m}, now - before" for m in MEASURES)]
        text += [
            f"## {words[0].upper()}{words[1:]}, {half}\n",
            table(head, lines),
        ]
    text.append("![AUC by rows and share](rare.png)\n")
    path.write_text("\n".join(text), encoding="utf-8")


def draw(path: Path, results: Rows) -> None:
    """Draw the mean AUC of both halves, by the share of the rare class."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(ROWS), figsize=(9, 3.4), layout="constrained", sharey=True)
    for axis, rows in zip(axes, ROWS, strict=True):
        for (model, words), color in zip(MODELS.items(), ("C3", "C0"), strict=True):
            for label, style in ((NOW, "-o"), (BEFORE, "--o")):
                found = [
                    [
                        values[0]
                        for half in ("choose", "confirm")
                        for values in by_set(results, label, model, half, rows, share).values()
                    ]
                    for share in SHARES
                ]
                if all(found):
                    means = [float(np.mean(areas)) for areas in found]
                    axis.plot(SHARES, means, style, color=color, label=f"{words}, {label}")
        axis.set_title(f"{rows:,} rows", fontsize=10)
        axis.set_xlabel("share of the rare class")
        axis.set_xticks(SHARES, [f"{share:.0%}" for share in SHARES])
    axes[0].set_ylabel("mean AUC, epsilon 1")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure what is not known yet, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--label", choices=[NOW, BEFORE], default=NOW)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    path = args.out / "rare.csv"
    results = run(args, ranking.read(path, FIELDS), path)
    write_report(path.with_suffix(".md"), results)
    draw(path.with_suffix(".png"), results)


if __name__ == "__main__":
    main()
