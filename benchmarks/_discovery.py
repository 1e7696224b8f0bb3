"""Trees with a schema that is paid for, beside trees with public bounds and lists.

A tenth of epsilon 1 finds the schema, nine tenths the tree; the tree with public bounds and lists
has all of it. Columns are declared as numbers or categories, and nothing else is known, unless a
variant says so. All on the same records, four fifths of each set, and tested on the others.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _catalogue import FOLDER, Data, load, schema_of
from _report import command, machine, table, versions

SETS = ("california", "adult", "bank", "covertype", "covertype-mixed")
EPSILON, SHARE, DELTA = 1.0, 0.1, 1e-6
PUBLIC = "public"
#: What is known besides the kinds of columns, and with which noise the rest is found.
VARIANTS = {
    "Gaussian": "nothing is known; delta 1e-6, Gaussian noise",
    "Laplace": "nothing is known; delta 1e-6 for thresholds, Laplace noise (pure books)",
    "bounds only": "lists and the number of rows are known; pure epsilon, powers of two or four",
    "bounds only, 4": "lists are known, the number of rows is not; pure epsilon, powers of four",
}
_TARGET = "the target"


def discovered(name: str, data: Data, train: Any, folder: Path) -> Any:
    """Discover a schema from the training records, by the books of a ledger file."""
    from privet import Budget, Categorical, Kinds, LedgerStore, Schema

    columns: dict[str, Any] = {
        column: "category" if column in data.categories else "number" for column in data.X
    }
    columns[_TARGET] = "category"
    if name.startswith("bounds only"):
        columns |= {column: Categorical(values) for column, values in data.categories.items()}
        columns[_TARGET] = Categorical(range(data.classes or 2))
    rows = len(train) if name == "bounds only" else None
    kinds = Kinds(columns, _TARGET, n_rows=rows)
    gaussian = name == "Gaussian"
    # Half of delta turns rho into epsilon, and half is for thresholds.
    budget = Budget(
        EPSILON,
        delta=DELTA / 2 if gaussian else None,
        threshold_delta=0 if name.startswith("bounds only") else DELTA,
    )
    store = LedgerStore.create(folder / f"{time.monotonic_ns()}.ledger", budget, columns=[*columns])
    delta = None if name.startswith("bounds only") else DELTA
    return Schema.discover(train, kinds, SHARE * EPSILON, delta, ledger=store)


def accuracy(model: Any, test: Any) -> float:
    truth = test[_TARGET].astype(str).to_numpy()
    return float(np.mean(model.predict(test.drop(columns=_TARGET)).astype(str) == truth))


def measure(
    sets: tuple[str, ...], seeds: int, folder: Path, variants: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return the accuracy of some variants on every set and split."""
    from privet import PrivateTreeClassifier

    rows = []
    for name in sets:
        data = load(folder, name)
        frame = data.X.assign(**{_TARGET: data.y})
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(frame))
            cut = round(0.8 * len(frame))
            train, test = frame.iloc[order[:cut]], frame.iloc[order[cut:]]
            for variant in variants:
                left = []
                if variant == PUBLIC:
                    schema, epsilon = schema_of(data), EPSILON
                else:
                    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        schema = discovered(variant, data, train, Path(place))
                    epsilon = (1 - SHARE) * EPSILON
                    left = sorted(set(data.X) - set(schema.names))
                model = PrivateTreeClassifier(epsilon, schema=schema).fit(train)
                rows.append(
                    {
                        "set": name,
                        "rows": len(train),
                        "columns": len(data.X.columns) + 1,
                        "seed": seed,
                        "variant": variant,
                        "epsilon": round(model.privacy_.epsilon, 6),
                        "delta": model.privacy_.delta,
                        "private": model.privacy_.private,
                        "accuracy": round(accuracy(model, test), 5),
                        "left_out": "; ".join(left),
                    }
                )
        print(name, flush=True)
    return rows


def summary(rows: list[dict[str, Any]], name: str, variant: str) -> tuple[float, float, float]:
    """Return the mean accuracy, the mean difference from public, and its standard error."""
    of = {
        kind: np.array([row["accuracy"] for row in rows if (row["set"], row["variant"]) == kind])
        for kind in ((name, variant), (name, PUBLIC))
    }
    apart = of[name, variant] - of[name, PUBLIC]
    error = float(apart.std(ddof=1) / math.sqrt(len(apart))) if len(apart) > 1 else math.nan
    return float(of[name, variant].mean()), float(apart.mean()), error


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table, the report and the plot."""
    with (folder / "study_discovery.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    sets = list(dict.fromkeys(row["set"] for row in rows))
    lines = []
    for name in sets:
        first = next(row for row in rows if row["set"] == name)
        splits = len({row["seed"] for row in rows if row["set"] == name})
        line = [name, f"{first['rows']:,}", str(first["columns"]), str(splits)]
        line.append(f"{100 * summary(rows, name, PUBLIC)[0]:.1f}")
        for variant in VARIANTS:
            _, apart, error = summary(rows, name, variant)
            line.append(f"{100 * apart:+.1f} ({100 * error:.1f})")
        lines.append(line)
    head = ["set", "rows", "columns", "splits", "public at 1", *VARIANTS]
    known = "; ".join(f"*{name}*: {what}" for name, what in VARIANTS.items())
    missing = sorted(
        {(row["set"], row["variant"], row["left_out"]) for row in rows if row["left_out"]}
    )
    text = [
        "# Trees with a discovered schema",
        f"`{command()}`; {machine()}; {versions('privet', 'numpy')}.",
        f"Accuracy in per cent of `PrivateTreeClassifier` with public bounds and lists at epsilon "
        f"{EPSILON:g}, and the difference from it (with its standard error) if "
        f"epsilon {SHARE:g} is spent on the schema and {1 - SHARE:g} on the tree. {known}.",
        table(head, lines),
        "Columns that were left out, since nothing in them was frequent enough: "
        + ("; ".join(f"{name}, {variant}: {left}" for name, variant, left in missing) or "none")
        + ".",
    ]
    report = "\n\n".join(part.rstrip("\n") for part in text) + "\n"
    (folder / "study_discovery.md").write_text(report, encoding="utf-8")
    draw(rows, sets, folder / "study_discovery.png")


def draw(rows: list[dict[str, Any]], sets: list[str], path: Path) -> None:
    """Draw the differences from public bounds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4))
    axis.axhspan(-1, 1, color="0.92")
    axis.axhline(0, color="0.6", linewidth=0.8)
    for place, variant in enumerate(VARIANTS):
        found = [summary(rows, name, variant) for name in sets]
        x = np.arange(len(sets)) + 0.15 * (place - 1.5)
        axis.errorbar(
            x, [100 * apart for _, apart, _ in found], [100 * error for *_, error in found],
            fmt="o", capsize=3, label=variant,
        )  # fmt: skip
    axis.set_xticks(range(len(sets)), sets)
    axis.set_ylabel("accuracy, points from public at epsilon 1")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run_discovery(args: argparse.Namespace) -> None:
    """Measure and report discovered schemas."""
    variants = tuple(args.variants or (PUBLIC, *VARIANTS))
    rows = measure(tuple(args.sets or SETS), args.seeds, args.data or FOLDER, variants)
    if args.variants:  # the others stay as they were measured, on the same splits
        new = {(row["set"], row["variant"]) for row in rows}
        rows = [row for row in known(args.out) if (row["set"], row["variant"]) not in new] + rows
    write(rows, args.out)


def known(folder: Path) -> list[dict[str, Any]]:
    """Return what was measured before."""
    with (folder / "study_discovery.csv").open(newline="", encoding="utf-8") as file:
        return [
            row | {"seed": int(row["seed"]), "rows": int(row["rows"])}
            | {"accuracy": float(row["accuracy"])}
            for row in csv.DictReader(file)
        ]  # fmt: skip
