"""A whole study under one ledger: from a raw CSV file to a model with a test score.

Nothing is known but the names and kinds of the columns, one of which says whose a record is. One
ledger of epsilon 1 (delta 1e-6) pays for the schema (0.1) and for a tree (0.9), with a fifth of the
persons set aside for its score. Beside it the same tree with everything public and all of the
epsilon. Stays of invented patients; true accuracies are those of other patients.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import command, machine, table, versions

PERSONS = (10_000, 40_000)
EPSILON, SHARE, DELTA, TEST = 1.0, 0.1, 1e-6, 0.2


def study(path: Path, folder: Path, seed: int) -> tuple[Any, Any]:
    """Return the schema that was found in a file, and the model, both paid by one ledger."""
    from privet import Budget, Kinds, LedgerStore, PrivateTreeClassifier, Schema
    from privet.datasets import STAYS
    from privet.schema import Numeric

    columns: dict[str, Any] = {
        name: "number" if isinstance(feature, Numeric) else "category"
        for name, feature in STAYS.features.items()
    }
    columns[STAYS.target] = "category"
    kinds = Kinds(columns, STAYS.target, unit=STAYS.unit)
    store = LedgerStore.create(
        folder / f"{seed}.ledger",
        Budget(EPSILON, threshold_delta=DELTA),
        columns=[*columns, str(STAYS.unit)],
        kinds=kinds.listed,
    )
    schema = Schema.discover(str(path), kinds, SHARE * EPSILON, DELTA, ledger=store)
    model = PrivateTreeClassifier(EPSILON * (1 - SHARE), schema, ledger=store, test_share=TEST).fit(
        str(path)
    )
    assert float(store.left) < 1e-6
    return schema, model


def measure(seeds: int) -> list[dict[str, Any]]:
    """Return what the study says of itself, and what is true."""
    from privet import PrivateTreeClassifier
    from privet.datasets import STAYS, make_stays

    other = pd.DataFrame(make_stays(60_000, skewed=True, seed=10_000))
    truth = other[STAYS.target].to_numpy()
    counts = other.groupby(STAYS.unit)[STAYS.target].transform("size").to_numpy()

    def accuracy(model: Any) -> float:
        """Return the mean over patients of the share of their stays that are predicted."""
        return float(np.average(model.predict(other) == truth, weights=1 / counts))

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for persons in PERSONS:
            for seed in range(seeds):
                frame = pd.DataFrame(make_stays(persons, skewed=True, seed=seed))
                path = folder / "stays.csv"
                frame.to_csv(path, index=False)
                public = PrivateTreeClassifier(EPSILON, STAYS).fit(frame)
                schema, model = study(path, folder / "", persons * 1_000 + seed)
                score = model.evaluation_.accuracy
                rows.append(
                    {
                        "persons": persons,
                        "seed": seed,
                        "columns found": len(schema.names),
                        "public": accuracy(public),
                        "study": accuracy(model),
                        "said": score.value if score.enough else math.nan,
                        "low": score.low if score.enough else math.nan,
                        "high": score.high if score.enough else math.nan,
                        "epsilon": model.privacy_.epsilon,
                    }
                )
            print(persons, flush=True)
    return rows


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table, the report and the plot."""
    with (folder / "study_whole.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    frame = pd.DataFrame(rows)
    lines = []
    for persons, mine in frame.groupby("persons"):
        gap = 100 * (mine["study"] - mine["public"])
        error = gap.std(ddof=1) / math.sqrt(len(gap)) if len(gap) > 1 else math.nan
        covered = ((mine["low"] <= mine["study"]) & (mine["study"] <= mine["high"])).sum()
        lines.append(
            [
                f"{persons:,}", f"{100 * mine['public'].mean():.2f}",
                f"{100 * mine['study'].mean():.2f}", f"{gap.mean():+.2f} ± {error:.2f}",
                f"{100 * mine['said'].mean():.2f}",
                f"{100 * (mine['high'] - mine['low']).mean():.2f}",
                f"{covered} of {mine['said'].notna().sum()}",
                f"{mine['columns found'].mean():.1f} of 10",
            ]
        )  # fmt: skip
    head = ["persons", "all public", "study", "difference", "said by the card", "width of 95 %",
            "covers", "columns found"]  # fmt: skip
    report = [
        "# A whole study under one ledger",
        f"`{command()}`; {machine()}; {versions('privet')}.",
        "From a CSV file of stays (skewed numbers of stays of a patient) with a column that says "
        "whose each is, and nothing else known: schema for epsilon "
        f"{SHARE:g} (delta {DELTA:g}), tree for {EPSILON - SHARE:g} with a test score on "
        f"{TEST:.0%} of the patients, all from one ledger of epsilon {EPSILON:g} per patient. "
        '"All public": the tree with the public schema, all patients and all of epsilon. Accuracy '
        "in per cent, of 60,000 other patients, each of whom counts once. With 2,000 patients the "
        "classes of the target are too rare to be found for 0.1.",
        table(head, lines),
    ]
    text = "\n\n".join(part.rstrip("\n") for part in report) + "\n"
    (folder / "study_whole.md").write_text(text, encoding="utf-8")
    draw(frame, folder / "study_whole.png")


def draw(frame: pd.DataFrame, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.2))
    means = frame.groupby("persons").mean()
    axis.plot(means.index, 100 * means["public"], "o-", label="everything public, epsilon 1")
    axis.plot(means.index, 100 * means["study"], "o-", label="study: schema 0.1, tree 0.9, score")
    axis.errorbar(
        means.index * 1.06, 100 * means["said"],
        [100 * (means["said"] - means["low"]), 100 * (means["high"] - means["said"])],
        fmt="s", capsize=3, label="what the card says (95 %)",
    )  # fmt: skip
    axis.set(xscale="log", xlabel="persons", ylabel="accuracy (%)")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def run_whole(args: argparse.Namespace) -> None:
    """Measure and report whole studies."""
    write(measure(args.seeds), args.out)
