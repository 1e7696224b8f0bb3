"""Trees of persons with several records: weights, beside at most k records of each at full weight.

Tables of persons are made of adult: a person's first record is one of the set; in the others every
value is that of the first with probability 0.8 ("like rows"), or they are other records of the set
("unlike rows"). Two real ones have a column that says what belongs together: electricity by day,
and eye movements by assignment. All epsilons are those of a person with all records. Accuracy is on
single records of other persons.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _catalogue import FOLDER, Data, load, schema_of
from _report import command, machine, table, versions

EPSILONS = (0.5, 1.0, 3.0)
#: Records of a person that count as whole ones; None: all share what the person counts.
WAYS: dict[str, int | None] = {"weights": None, "k = 1": 1, "k = 2": 2, "k = 5": 5}
WHO = "the person"


def sizes(persons: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "skewed":
        return np.where(rng.random(persons) < 0.7, 1, rng.integers(2, 21, persons))
    return rng.integers(1, 11, persons)


def adult(data: Data, persons: int, kind: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return records of persons to learn from, and single records of others."""
    rng = np.random.default_rng([seed, persons])
    frame = data.X.assign(target=data.y)
    order = rng.permutation(len(frame))
    test, rest = frame.iloc[order[:15_000]], frame.iloc[order[15_000:]]
    counts = sizes(persons, kind, rng)
    who = np.repeat(np.arange(persons), counts)
    own = rest.iloc[:persons].iloc[who].reset_index(drop=True)
    first = np.flatnonzero(np.diff(who, prepend=-1))
    other = rest.iloc[rng.integers(persons, len(rest), len(who))].reset_index(drop=True)
    for column in frame:
        alike = np.full(len(who), kind == "unlike") | (rng.random(len(who)) >= 0.8)
        alike[first] = False
        own[column] = own[column].where(~alike, other[column])
        if isinstance(frame[column].dtype, pd.CategoricalDtype):
            own[column] = own[column].astype(frame[column].dtype)
    if kind == "unlike":
        own.loc[np.setdiff1d(np.arange(len(who)), first)] = other
    return own.assign(**{WHO: who}), test


def grouped(data: Data, by: np.ndarray, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the records of three quarters of the groups, and those of the others."""
    rng = np.random.default_rng(seed)
    groups = np.unique(by)
    learnt = rng.permutation(groups)[: round(0.75 * len(groups))]
    mine = np.isin(by, learnt)
    frame = data.X.assign(target=data.y)
    return frame[mine].assign(**{WHO: by[mine]}), frame[~mine]


def tables(folder: Path, seed: int) -> Iterator[tuple[str, Data, pd.DataFrame, pd.DataFrame]]:
    whole = load(folder, "adult")
    for persons in (1_000, 5_000):
        for kind in ("like", "unlike"):
            yield (
                f"adult, {persons:,} persons, {kind} rows",
                whole,
                *adult(whole, persons, kind, seed),
            )
    name = "adult, 1,000 persons, 70 % one row"
    yield name, whole, *adult(whole, 1_000, "skewed", seed)
    power = load(folder, "electricity-full")
    yield "electricity by day", power, *grouped(power, np.arange(len(power.y)) // 48, seed)
    eyes = load(folder, "eye_movements")
    by = eyes.X["assgNo"].to_numpy()
    eyes = replace(eyes, X=eyes.X.drop(columns=["lineNo", "assgNo"], errors="ignore"))
    yield "eye movements by assignment", eyes, *grouped(eyes, by, seed)


def measure(folder: Path, seeds: int) -> list[dict[str, Any]]:
    """Return the accuracy of every way on every table."""
    from privet import PrivateTreeClassifier

    rows = []
    for seed in range(seeds):
        for name, data, train, test in tables(folder, seed):
            public = replace(schema_of(data), target="target")
            persons = train[WHO].nunique()
            most = int(train[WHO].value_counts().max())
            for way, records in {**WAYS, "most rows": most}.items():
                schema = replace(public, unit=WHO, rows_per_unit=records)
                for epsilon in EPSILONS:
                    model = PrivateTreeClassifier(epsilon, schema, n_rows=persons).fit(train)
                    hit = model.predict(test.drop(columns="target")) == test["target"].to_numpy()
                    rows.append(
                        {
                            "table": name,
                            "persons": persons,
                            "rows": len(train),
                            "way": way,
                            "epsilon": epsilon,
                            "seed": seed,
                            "accuracy": round(float(hit.mean()), 5),
                        }
                    )
            print(name, seed, flush=True)
    return rows


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table, the report and the plot."""
    with (folder / "study_persons.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    frame = pd.DataFrame(rows)
    ways = list(dict.fromkeys(frame["way"]))
    lines = []
    for name in dict.fromkeys(frame["table"]):
        line = [name]
        for way in ways:
            cells = []
            for epsilon in EPSILONS:
                picked = frame[
                    (frame["table"] == name) & (frame["way"] == way) & (frame["epsilon"] == epsilon)
                ]["accuracy"]
                error = picked.std(ddof=1) / math.sqrt(len(picked)) if len(picked) > 1 else math.nan
                cells.append(f"{100 * picked.mean():.1f} ± {100 * error:.1f}")
            line.append(" / ".join(cells))
        lines.append(line)
    report = [
        "# Trees of persons",
        f"`{command()}`; {machine()}; {versions('privet')}.",
        "Accuracy in per cent (± one standard error over "
        f"{frame['seed'].nunique()} seeds) at a person's epsilon of "
        f'{", ".join(f"{epsilon:g}" for epsilon in EPSILONS)}. "weights": all records, which share '
        'what the person counts (`unit`); "k": at most k records at full weight, with noise for k '
        '(`rows_per_unit`); "most rows": as many as anybody has. Single records of other persons '
        "are predicted.",
        table(["table", *ways], lines),
    ]
    text = "\n\n".join(part.rstrip("\n") for part in report) + "\n"
    (folder / "study_persons.md").write_text(text, encoding="utf-8")
    draw(frame, ways, folder / "study_persons.png")


def draw(frame: pd.DataFrame, ways: list[str], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(frame["table"]))
    figure, axes = plt.subplots(2, math.ceil(len(names) / 2), figsize=(13, 6), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        for way in ways:
            mine = frame[(frame["table"] == name) & (frame["way"] == way)]
            means = 100 * mine.groupby("epsilon")["accuracy"].mean()
            axis.plot(means.index, means, "o-", label=way, linewidth=2.5 if way == "weights" else 1)
        axis.set(title=name, xscale="log", xticks=EPSILONS)
        axis.set_xticklabels([f"{epsilon:g}" for epsilon in EPSILONS])
        axis.title.set_fontsize(9)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    axes[0][0].legend(fontsize=7)
    figure.supxlabel("a person's epsilon")
    figure.supylabel("accuracy (%)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def run_persons(args: argparse.Namespace) -> None:
    """Measure and report trees of persons."""
    write(measure(args.data or FOLDER, args.seeds), args.out)
