"""Compare our learners with private peers, fold by fold, and say where we are below.

* accuracy: ``PrivateTreeClassifier`` (pure epsilon) against every peer;
* AUC and log loss: ``PrivateBoostingClassifier``, with delta against peers that have a delta, pure
  against pure ones;
* squared error: ``PrivateBoostingRegressor``, in the same way.

Nothing is fitted here: the folds are those of ``utility.py`` (``utility_folds.csv``) that both
models have, the splits those of ``regression.py`` (``regression.csv``), at epsilon 0.1 and 1. Where
one of two models was not measured by fold, means and standard errors of ``utility.csv`` (more runs
on the same folds) are compared, not in pairs. A cell is a set, an epsilon, a measure and a peer;
its difference is the mean over the folds of ours less the peer's, the sign turned so that more is
better. Its one-sided p-value is that of a paired t-test, and Holm's correction is over all cells.
*Below* is a corrected p under 0.0228, that of two standard errors. Some cells have five runs or
fewer, which find only large differences, hence the same with normal p-values, too.

Run ``python benchmarks/peers.py`` after the other two; it writes ``peers.csv`` and ``peers.md``.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regression
import utility
from _catalogue import CHOOSE, CONFIRM
from _report import command, machine, table

EPSILONS = (0.1, 1.0)
#: The p-value of two standard errors, one-sided.
LEVEL = 0.0228
#: Peers that are pure; the others have a delta.
PURE = ("diffprivlib-tree-4", "diffprivlib-forest", "diffprivlib-linear")
PEERS = (
    "diffprivlib-tree-4",
    "diffprivlib-forest",
    "dpebm-0.01",
    "dpebm-tuned",
    "logistic",
    "mst",
    "aim",
)
NUMBER_PEERS = ("diffprivlib-linear", "dpebm-0.01", "dpebm-tuned")
#: Where a measure is in the measurements of a fold.
MEASURES = {"accuracy": 0, "AUC": 1, "log loss": 2}
ERROR = "squared error"


class Cell(NamedTuple):
    """One comparison."""

    measure: str
    set: str
    epsilon: float
    ours: str
    peer: str
    runs: int
    #: Whether runs are paired; else the standard errors of both are added, in squares.
    paired: bool
    our_mean: float
    peer_mean: float
    #: Ours less the peer's, more is better; squared errors in parts of the peer's mean.
    difference: float
    error: float
    #: One-sided: how likely so low a difference is if we are not below.
    p: float
    #: The same by a normal distribution, as if the standard error were known: harder on us.
    normal_p: float
    holm: float = math.nan
    normal_holm: float = math.nan


class Values(NamedTuple):
    """What is known of a model on a set: a number per fold, or else a mean and its error."""

    mean: float
    error: float
    runs: int
    by_fold: tuple[float, ...] | None = None

    @classmethod
    def of(cls, by_fold: list[float]) -> Values:
        """Return the mean over folds with its error."""
        error = float(np.std(by_fold, ddof=1)) / math.sqrt(len(by_fold))
        return cls(float(np.mean(by_fold)), error, len(by_fold), tuple(by_fold))


def compare(
    measure: str, name: str, epsilon: float, ours: str, peer: str, one: Values, two: Values
) -> Cell:
    """Return the comparison of two models, in pairs if folds of both are known."""
    from scipy.stats import norm, t

    sign = -1.0 if measure in ("log loss", ERROR) else 1.0
    unit = abs(two.mean) if measure == ERROR else 1.0
    runs, mean = min(one.runs, two.runs), sign * (one.mean - two.mean) / unit
    paired = one.by_fold is not None and two.by_fold is not None
    if paired:
        found = np.subtract(one.by_fold, two.by_fold) / unit
        error = float(found.std(ddof=1)) / math.sqrt(runs)
    else:
        error = math.hypot(one.error, two.error) / unit
    if error > 0:
        p, normal_p = float(t.cdf(mean / error, runs - 1)), float(norm.cdf(mean / error))
    else:
        p = normal_p = float(mean >= 0)
    means = one.mean, two.mean
    return Cell(measure, name, epsilon, ours, peer, runs, paired, *means, mean, error, p, normal_p)


def of_classes(
    folds: utility.Folds,
    rows: utility.Rows,
    sets: Sequence[str] = tuple(utility.SETS),
    peers: Sequence[str] = PEERS,
) -> Iterator[Cell]:
    """Yield the comparisons of classifiers, in pairs of folds where both have any."""

    def known(
        name: str, epsilon: float, model: str, measure: str, repeats: Sequence[int]
    ) -> Values | None:
        jobs = [utility.Job(name, model, epsilon, repeat) for repeat in repeats]
        if jobs:
            by_fold = [values[MEASURES[measure]] for job in jobs for values in folds[job]]
            return None if np.isnan(by_fold).any() else Values.of(by_fold)
        row = rows.get((name, epsilon, model))
        if row is None or measure == "log loss":  # of which no errors are kept
            return None
        which = measure.lower()
        return Values(getattr(row, which), getattr(row, f"{which}_se"), row.runs)

    for name in sets:
        for epsilon, measure, peer in itertools.product(EPSILONS, MEASURES, peers):
            ours = "boosting-pure" if peer in PURE else "boosting"
            ours = "tree" if measure == "accuracy" else ours
            models = [ours, *rates_of(peer)]
            by_model = [
                {job.repeat for job in folds if job[:3] == (name, model, epsilon)}
                for model in models
            ]
            common = sorted(set.intersection(*by_model))
            one, *others = (known(name, epsilon, model, measure, common) for model in models)
            two = best_of(others, -1.0 if measure == "log loss" else 1.0)
            if one is not None and two is not None:
                yield compare(measure, name, epsilon, ours, peer, one, two)


def of_numbers(fits: regression.Fits) -> Iterator[Cell]:
    """Yield the comparisons of regressors, by the splits that both have."""
    for name in regression.in_order(fits):
        for epsilon, peer in itertools.product(EPSILONS, NUMBER_PEERS):
            ours = "boosting-pure" if peer in PURE else "boosting"
            models = [ours, *rates_of(peer)]
            seeds = [
                {job.seed for job in fits if job[:3] == (name, model, epsilon)} for model in models
            ]
            common = sorted(set.intersection(*seeds))
            if len(common) < 2:
                continue
            one, *others = (
                Values.of([fits[regression.Job(name, model, epsilon, s)].relative for s in common])
                for model in models
            )
            two = best_of(others, -1.0)
            if two is not None:
                yield compare(ERROR, name, epsilon, ours, peer, one, two)


def rates_of(peer: str) -> list[str]:
    """Return the models that stand behind a peer."""
    if peer == utility.TUNED:
        return [f"dpebm-{rate:g}" for rate in utility.RATES]
    return [peer]


def best_of(found: Sequence[Values | None], sign: float) -> Values | None:
    """Return the one with the best mean; None if one is missing."""
    have = [values for values in found if values is not None]
    return max(have, key=lambda values: sign * values.mean) if len(have) == len(found) else None


def corrected(cells: list[Cell]) -> list[Cell]:
    """Return the cells with Holm's correction over all of them."""
    exact, normal = (holm([getattr(cell, p) for cell in cells]) for p in ("p", "normal_p"))
    return [
        cell._replace(holm=one, normal_holm=two)
        for cell, one, two in zip(cells, exact, normal, strict=True)
    ]


def holm(values: list[float]) -> list[float]:
    """Return corrected p-values: the least times their number, the next times one less, and so on.

    None is below one that was smaller before.
    """
    highest, found = 0.0, list(values)
    for rank, number in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[number]))
        found[number] = highest
    return found


# The report


def label(model: str) -> str:
    return utility.LABELS.get(model) or regression.MODELS[model].label


def signed(value: float, error: float) -> str:
    return f"{value:+.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")


def by_peer(cells: list[Cell]) -> str:
    """Return, for every measure, epsilon and peer, the means over sets and how many are below."""
    lines = []
    order = [*MEASURES, ERROR], EPSILONS, list(dict.fromkeys([*PEERS, *NUMBER_PEERS]))
    keys = {(cell.measure, cell.epsilon, cell.peer) for cell in cells}
    for key in (key for key in itertools.product(*order) if key in keys):
        mine = [cell for cell in cells if (cell.measure, cell.epsilon, cell.peer) == key]
        values = np.array([cell.difference for cell in mine])
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        two = sum(cell.difference < -2 * cell.error for cell in mine)
        measure, epsilon, peer = key
        lines.append(
            [
                measure,
                f"{epsilon:g}",
                label(peer),
                str(len(mine)),
                signed(float(values.mean()), float(error)),
                str(sum(cell.difference > 2 * cell.error for cell in mine)),
                str(two),
                str(sum(cell.normal_holm < LEVEL for cell in mine)),
                str(sum(cell.holm < LEVEL for cell in mine)),
            ]
        )
    head = ["measure", "epsilon", "peer", "sets", "ours less the peer's, mean over sets"]
    head += ["above by two standard errors", "below by two", "below, Holm, normal"]
    head += ["below, Holm, t"]
    return table(head, lines)


def losses(cells: list[Cell]) -> str:
    """Return the cells that are below by two standard errors before the correction."""
    lines = [
        [
            cell.measure,
            cell.set,
            "choose" if cell.set in CHOOSE else "confirm" if cell.set in CONFIRM else "",
            f"{cell.epsilon:g}",
            label(cell.peer),
            f"{cell.our_mean:.4g}",
            f"{cell.peer_mean:.4g}",
            signed(cell.difference, cell.error) + " u" * (not cell.paired),
            f"{cell.p:.2g}",
            f"{cell.normal_holm:.2g}",
            f"{cell.holm:.2g}",
        ]
        for cell in sorted(cells, key=lambda cell: cell.p)
        if cell.difference < -2 * cell.error
    ]
    head = ["measure", "set", "half", "epsilon", "peer", "ours", "peer's"]
    return table([*head, "difference", "p", "p, Holm, normal", "p, Holm, t"], lines)


def all_cells(cells: list[Cell], measure: str) -> str:
    """Return the differences of a measure by set."""
    mine = [cell for cell in cells if cell.measure == measure]
    peers = list(dict.fromkeys(cell.peer for cell in mine))
    lines = []
    for name, epsilon in dict.fromkeys((cell.set, cell.epsilon) for cell in mine):
        line = [name, f"{epsilon:g}"]
        for peer in peers:
            found = [c for c in mine if (c.set, c.epsilon, c.peer) == (name, epsilon, peer)]
            line.append(
                "".join(signed(c.difference, c.error) + " u" * (not c.paired) for c in found)
            )
        lines.append(line)
    return table(["set", "epsilon", *map(label, peers)], lines)


def write_report(path: Path, cells: list[Cell]) -> None:
    two = [cell for cell in cells if cell.difference < -2 * cell.error]
    below = [cell for cell in cells if cell.holm < LEVEL]
    normal = [cell for cell in cells if cell.normal_holm < LEVEL]
    runs = sorted({cell.runs for cell in cells})
    text = [
        "# Private peers, in the same folds\n",
        f"Command: `{command()}`, after `utility.py` and `regression.py`\n",
        f"- {machine()}",
        "- accuracy: our tree (pure epsilon); AUC and log loss: our boosting; squared error: our "
        "boosting for numbers. With delta 1e-6 where the peer has one, pure where it is pure "
        "(diffprivlib)",
        "- differences are ours less the peer's, the sign turned so that more is better; of "
        "squared errors in parts of the peer's; ± is one standard error over paired runs "
        f"({runs[0]} to {runs[-1]}), which share training rows: a little too small. "
        f"{sum(not cell.paired for cell in cells)} of {len(cells)} cells (u) are not in pairs: of "
        "one of the two models folds were not kept, but means and standard errors of up to 20 runs",
        "- p: paired t-test, one-sided; Holm's correction over all cells of this file; *below* is "
        f"a corrected p under {LEVEL}, that of two standard errors. With the few runs of some "
        "cells a corrected t-test can hardly find anything; so the same is shown with normal "
        "p-values, which take "
        "few runs for many and find too much, and all cells below by two standard errors are "
        f"listed. About {expected(cells):.0f} of {len(cells)} would be by chance if all were equal",
        "- DP-EBM with the rate chosen on the test folds (of "
        + ", ".join(f"{rate:g}" for rate in utility.RATES)
        + ", for each measure by itself) is better than anyone could have; noisy logistic "
        "regression chooses its step size within the budget",
        "- MST and AIM (dpmm 0.1.9): as many invented records as there are training rows, then "
        "scikit-learn's boosting; 200 iterations of inference for MST and 100 in every round of "
        "AIM, fewer than by their defaults (`_peers.py`), with which a fit takes minutes on the "
        "smallest sets; AIM at epsilon 1 only",
        "- numbers printed for PrivTab (2026) are not available here, so it is not compared",
        "- many of these sets were looked at while our rules were chosen (`utility.md`)\n",
        f"**{len(below)} of {len(cells)} cells are below a peer after the correction (normal "
        f"p-values: {len(normal)}); {len(two)} are by two standard errors before it.**\n",
        "## By peer\n",
        by_peer(cells),
        "## Where we are below by two standard errors\n",
        losses(cells) if two else "Nowhere.\n",
    ]
    for measure in (*MEASURES, ERROR):
        if any(cell.measure == measure for cell in cells):
            text += [f"## {measure[0].upper()}{measure[1:]}, all sets\n", all_cells(cells, measure)]
    path.write_text("\n".join(text), encoding="utf-8")


def expected(cells: list[Cell]) -> float:
    """Return how many cells would be two standard errors below if there were no difference."""
    from scipy.stats import t

    return float(sum(t.cdf(-2.0, cell.runs - 1) for cell in cells))


def write_cells(path: Path, cells: list[Cell]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Cell._fields)
        for cell in cells:
            out.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in cell])


def main() -> None:
    """Compare and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    cells = [
        *of_classes(
            utility.read_folds(args.out / "utility_folds.csv"),
            utility.read_rows(args.out / "utility.csv"),
        ),
        *of_numbers(regression.read_fits(args.out / "regression.csv")),
    ]
    cells = corrected(cells)
    write_cells(args.out / "peers.csv", cells)
    write_report(args.out / "peers.md", cells)


if __name__ == "__main__":
    main()
