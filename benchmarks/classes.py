"""Measure the tree's rules for many classes and for hardly any records, before and after.

* Many classes: sets with 4 to 26 classes, 6,000 training rows (fewer, where there are not as many),
  the rest, up to 10,000 rows, for testing; rows x epsilon from 450 to 10,000. The tree by its
  rules, the tree by the rules before them, and boosting with delta, all by default.
* Few records: sets of two classes, 500 rows, rows x epsilon from 3 to 50; the tree by both rules.

"Before" is not an option of the library: this file takes the later rules back for the length of a
fit. Numbers of the rules were chosen on the first half of the sets and then run on the second
(``CHOOSE`` and ``CONFIRM`` in ``_catalogue.py``); the tables keep them apart. Splits have the
seeds 0, 1, 2, ..., the same for all models. The data sets are public, so that fits are seeded, to
be repeatable. The number of rows is declared.

Run ``python benchmarks/classes.py``; it writes ``classes.csv`` (a line per fit), ``classes.md`` and
``classes.png``. What the CSV already has for the same library version is kept, unless ``--fresh``.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from _catalogue import (
    CHOOSE,
    CHOOSE_CLASSES,
    CONFIRM,
    CONFIRM_CLASSES,
    FOLDER,
    Data,
    load,
    load_classes,
    schema_of,
)
from _report import command, machine, table, versions

DELTA = 1e-6
#: Sets (of each half), rows to fit and to test on, rows x epsilon, and models.
PARTS: dict[str, dict[str, Any]] = {
    "many classes": {
        "choose": CHOOSE_CLASSES[:4],
        "confirm": CONFIRM_CLASSES[:7],
        "rows": 6_000,
        "masses": (450, 600, 1_000, 1_600, 3_000, 10_000),
        "models": ("before", "tree", "boosting"),
    },
    "few records": {
        "choose": CHOOSE,
        "confirm": CONFIRM,
        "rows": 500,
        "masses": (3, 6, 20, 50),
        "models": ("before", "tree"),
    },
}
TEST_ROWS = 10_000
LABELS = {
    "before": "tree, rules before",
    "tree": "tree",
    "boosting": f"boosting, delta {DELTA:g}",
}
STYLES = {"before": "C7--o", "tree": "C0-o", "boosting": "C3-s"}


@contextmanager
def rules_before() -> Iterator[None]:
    """Take the rules back: one block of depth 2 below 2,000, no public tests, another prior."""
    from privet.learners import whole_trees as now

    shallow, shares, affordable = now.shallow_depths, now.block_shares, now.affordable

    def not_narrow(*given: Any, narrow: bool) -> Any:
        del narrow
        return affordable(*given)

    with (
        patch.object(now, "shallow_depths", lambda mass, depth, _: shallow(mass, depth, 2)),
        patch.object(now, "block_shares", lambda depths, _: shares(depths, 2)),
        patch.object(now, "affordable", not_narrow),
        patch.object(now, "PUBLIC_BELOW", 0),
        patch.object(now, "LEAVES_FROM", math.inf),
        patch.object(now, "STOP_ON_FEW", now.STOP),
    ):
        yield


class Job(NamedTuple):
    """One fit."""

    part: str
    name: str
    mass: float
    model: str
    seed: int


@dataclass
class Fit:
    """One line of the CSV."""

    part: str
    half: str
    set: str
    classes: int
    features: int
    rows: int
    mass: float
    model: str
    seed: int
    accuracy: float
    cpu_seconds: float
    version: str

    @property
    def job(self) -> Job:
        """What was fitted."""
        return Job(self.part, self.set, self.mass, self.model, self.seed)


Fits = dict[Job, Fit]


@lru_cache(maxsize=1)
def read_set(folder: Path, part: str, name: str) -> tuple[Data, Any]:
    data = load_classes(folder, name) if part == "many classes" else load(folder, name)
    return data, schema_of(data)


def run(folder: Path, job: Job) -> tuple[float, float, int]:
    """Return the accuracy of a fit, its CPU seconds and its training rows."""
    import privet

    data, schema = read_set(folder, job.part, job.name)
    order = np.random.default_rng(job.seed).permutation(len(data.y))
    rows = min(PARTS[job.part]["rows"], int(0.8 * len(order)))
    train, test = order[:rows], order[rows : rows + TEST_ROWS]
    given = {
        "epsilon": job.mass / rows,
        "schema": schema,
        "n_rows": rows,
        "random_state": zlib.crc32(repr(tuple(job)).encode()) >> 1,
    }
    if job.model == "boosting":
        model: Any = privet.PrivateBoostingClassifier(delta=DELTA, **given)
    else:
        model = privet.PrivateTreeClassifier(**given)
    start = time.process_time()
    if job.model == "before":
        with rules_before():
            model.fit(data.X.iloc[train], data.y[train])
    else:
        model.fit(data.X.iloc[train], data.y[train])
    seconds = time.process_time() - start
    return float(np.mean(model.predict(data.X.iloc[test]) == data.y[test])), seconds, rows


def collect(args: argparse.Namespace, fits: Fits) -> None:
    import privet

    for part, what in PARTS.items():
        if part not in args.parts:
            continue
        seeds = args.seeds if part == "many classes" else args.runs
        for half in ("choose", "confirm"):
            for name in what[half]:
                if args.sets and name not in args.sets:
                    continue
                for mass in what["masses"]:
                    for seed in range(seeds):
                        for model in what["models"]:
                            job = Job(part, name, mass, model, seed)
                            known = fits.get(job)
                            if known and known.version == privet.__version__ and not args.fresh:
                                continue
                            accuracy, seconds, rows = run(args.data, job)
                            data, _ = read_set(args.data, part, name)
                            fits[job] = Fit(
                                part, half, name, data.classes or 0, data.X.shape[1], rows, mass,
                                model, seed, accuracy, seconds, privet.__version__,
                            )  # fmt: skip
                write_fits(args.out / "classes.csv", fits)
                print(f"{part}, {half}, {name}", flush=True)


def read_fits(path: Path) -> Fits:
    if not path.exists():
        return {}
    kinds = {field.name: field.type for field in fields(Fit)}
    made = {"int": int, "float": float, "str": str}
    with path.open(encoding="utf-8", newline="") as file:
        found = [
            Fit(**{name: made[str(kinds[name])](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]
    return {fit.job: fit for fit in found}


def write_fits(path: Path, fits: Fits) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([field.name for field in fields(Fit)])
        for fit in fits.values():
            out.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in astuple(fit)])
    partial.replace(path)


# The report


def scores(fits: Fits, part: str, name: str, mass: float, model: str) -> np.ndarray:
    """Return the accuracies of all seeds."""
    jobs = sorted(job for job in fits if job[:4] == (part, name, mass, model))
    return np.array([fits[job].accuracy for job in jobs])


def set_table(fits: Fits, part: str, half: str) -> str:
    what = PARTS[part]
    lines = []
    for name in what[half]:
        mine = [fit for fit in fits.values() if (fit.part, fit.set) == (part, name)]
        if not mine:
            continue
        cells = [
            " / ".join(f"{scores(fits, part, name, mass, m).mean():.3f}" for m in what["models"])
            for mass in what["masses"]
        ]
        lines.append([f"{name} ({mine[0].classes}, {mine[0].features})", *cells])
    return table(["set (classes, features)", *(f"{mass:,}" for mass in what["masses"])], lines)


def difference(
    fits: Fits, part: str, half: str, mass: float, model: str, other: str
) -> tuple[float, float]:
    """Return the mean difference of two models over sets, and its standard error."""
    each = [
        scores(fits, part, name, mass, model).mean() - scores(fits, part, name, mass, other).mean()
        for name in PARTS[part][half]
    ]
    return float(np.mean(each)), float(np.std(each, ddof=1) / math.sqrt(len(each)))


def difference_table(fits: Fits, part: str) -> str:
    what = PARTS[part]
    pairs = [("tree", "before")]
    if "boosting" in what["models"]:
        pairs.append(("boosting", "tree"))
    lines = []
    for model, other in pairs:
        for half in ("choose", "confirm"):
            found = [difference(fits, part, half, m, model, other) for m in what["masses"]]
            cells = [f"{mean:+.3f} ± {error:.3f}" for mean, error in found]
            lines.append([f"{model} - {other}, {half}", *cells])
    return table(["difference", *(f"{mass:,}" for mass in what["masses"])], lines)


def behind(fits: Fits) -> str:
    """Say where boosting is below the tree by more than two standard errors over seeds."""
    part, found = "many classes", []
    for half in ("choose", "confirm"):
        for name in PARTS[part][half]:
            for mass in PARTS[part]["masses"]:
                gap = scores(fits, part, name, mass, "tree") - scores(
                    fits, part, name, mass, "boosting"
                )
                if gap.mean() > 2 * gap.std(ddof=1) / math.sqrt(len(gap)):
                    found.append(f"{name} at {mass:,} ({gap.mean():.3f})")
    return f"{len(found)} cells" + (f": {', '.join(found)}" if found else "")


def by_chance(splits: int) -> float:
    """Return how many cells would be two standard errors below if there were no difference."""
    from scipy.stats import t

    part = PARTS["many classes"]
    cells = len(part["masses"]) * sum(len(part[half]) for half in ("choose", "confirm"))
    return float(cells * t.cdf(-2.0, splits - 1))


def write_report(path: Path, fits: Fits) -> None:
    seconds = {
        model: [f.cpu_seconds for f in fits.values() if f.model == model and f.part == part]
        for part in ("many classes",)
        for model in PARTS[part]["models"]
    }
    cost = ", ".join(f"{LABELS[m]} {max(s):.1f}" for m, s in seconds.items())
    seeds = {part: 1 + max(f.seed for f in fits.values() if f.part == part) for part in PARTS}
    text = [
        "# Many classes, and few records",
        "",
        f"`{command()}`; {machine()}; {versions('privet', 'numpy', 'opendp')}.",
        "",
        "Accuracy on test rows, by rows x epsilon. Rules were chosen on the sets of the first half",
        "and then run on the second, with exceptions: that two blocks begin at 600 (with more than",
        "twelve classes at 50 times their number), and that public tests end at 10, was settled",
        "with a look at the second half. Read the first half as",
        "optimistic. ± is one standard error over the sets of a half.",
        "",
        "## Many classes",
        "",
        f"Up to 6,000 training rows, {seeds['many classes']} splits. In each cell: the tree by the",
        "rules before (one block of depth 2 below 2,000, no leaf counts), the tree, boosting with",
        f"delta {DELTA:g}.",
        "",
        "First half (choose):",
        "",
        set_table(fits, "many classes", "choose"),
        "Second half (confirm):",
        "",
        set_table(fits, "many classes", "confirm"),
        difference_table(fits, "many classes"),
        "Boosting is below the tree by more than two standard errors over splits in "
        f"{behind(fits)}. With",
        f"{seeds['many classes']} splits such an error is itself rough: were both equally good, "
        f"about {by_chance(seeds['many classes']):.0f} cells",
        "would be. Where boosting learns one tree, a twentieth of its budget is for probabilities",
        'at every mass (the tree: from 1,000 on); with `aim="labels"` it is the tree, no leaf',
        "counts, at all of these masses.",
        "",
        f"CPU seconds of the longest fit: {cost}.",
        "",
        "## Few records",
        "",
        f"500 rows (vote 185), {seeds['few records']} splits. In each cell: the drawn tree of the",
        "rules before, and the tree, which labels public tests below 10.",
        "",
        "First half (choose):",
        "",
        set_table(fits, "few records", "choose"),
        "Second half (confirm):",
        "",
        set_table(fits, "few records", "confirm"),
        difference_table(fits, "few records"),
        "![Mean accuracy by rows x epsilon](classes.png)",
        "",
    ]
    path.write_text("\n".join(text), encoding="utf-8")


def draw(path: Path, fits: Fits) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    places = [(part, half) for part in PARTS for half in ("choose", "confirm")]
    for axis, (part, half) in zip(axes, places, strict=True):
        what = PARTS[part]
        for model in what["models"]:
            means = [
                np.mean([scores(fits, part, name, mass, model).mean() for name in what[half]])
                for mass in what["masses"]
            ]
            axis.plot(what["masses"], means, STYLES[model], label=LABELS[model])
        axis.set_xscale("log")
        axis.set_xticks(what["masses"], [f"{mass:,}" for mass in what["masses"]])
        axis.minorticks_off()
        axis.set_title(f"{part}, {half} ({len(what[half])} sets)", fontsize=10)
        axis.set_xlabel("rows x epsilon")
    axes[0].set_ylabel("mean accuracy")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, default=3, help="splits of sets with many classes")
    parser.add_argument("--runs", type=int, default=8, help="splits of sets with few records")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--fresh", action="store_true", help="run again what the CSV has")
    args = parser.parse_args()
    from privet import PrivacyLeakWarning

    warnings.simplefilter("ignore", PrivacyLeakWarning)  # fits are seeded on purpose
    args.out.mkdir(parents=True, exist_ok=True)
    fits = read_fits(args.out / "classes.csv")
    collect(args, fits)
    planned = {
        Job(part, name, mass, model, 0)
        for part, what in PARTS.items()
        for name in (*what["choose"], *what["confirm"])
        for mass in what["masses"]
        for model in what["models"]
    }
    if not planned <= set(fits):
        print("some sets are missing: no report")
        return
    write_report(args.out / "classes.md", fits)
    draw(args.out / "classes.png", fits)


if __name__ == "__main__":
    main()
