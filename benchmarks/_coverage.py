"""How often the 95 % intervals of test scores cover the truth: a part of ``study.py``.

Test parts of 50 to 10,000 records are drawn from known laws, counted, given the noise of a budget
(pure: discrete Laplace; with delta: Gaussian), and estimated as on a card. The budget is that of
the whole score: with two classes half is the confusion matrix's and half that of the scores.
Wanted: 93 to 98 % of runs, or the answer is "too few records".
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from _report import command, machine, table, versions

RECORDS = (50, 200, 1_000, 10_000)
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
WANTED = (0.93, 0.98)
#: An interval that is given in fewer runs counts as "too few records".
SELDOM = 0.1
BINS = 32

#: One run: its measures, by name, with what is true of them.
Run = dict[str, tuple[Any, float]]


def noise_of(share: float, epsilon: float, *, pure: bool) -> tuple[Any, Callable[..., np.ndarray]]:
    """Return the noise of counts with a share of a budget, and what draws it."""
    from privet import Budget
    from privet.evaluation.intervals import Noise

    if pure:
        q = math.exp(-epsilon * share)
        noise = Noise(2 * q / (1 - q) ** 2, laplace=True)
        return noise, lambda rng, shape: (
            rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)
        ).astype(float)
    rho = float(Budget(epsilon, delta=DELTA).limit) * share
    deviation = math.sqrt(1 / (2 * rho))
    # Rounded Gaussian noise: a deviation above one is enough for it to be like the discrete one.
    noise = Noise(deviation**2, laplace=False)
    return noise, lambda rng, shape: np.rint(rng.normal(0, deviation, shape))


def matrix_runs(
    classes: int, right: float, rarest: float, n: int, epsilon: float, *, pure: bool, rng: Any
) -> Iterator[Run]:
    """Yield test scores of classes that are all predicted with the same share of hits."""
    from privet.evaluation import intervals

    noise, draw = noise_of(0.5 if classes == 2 else 1.0, epsilon, pure=pure)
    frequent = (1 - rarest) / (classes - 1)
    prior = np.array([rarest, *[frequent] * (classes - 1)])
    outcome = np.full((classes, classes), (1 - right) / (classes - 1))
    np.fill_diagonal(outcome, right)
    law = (prior[:, None] * outcome).ravel()
    while True:
        counts = rng.multinomial(n, law).reshape(1, classes, classes)
        noisy = counts + draw(rng, counts.shape)
        yield {
            "accuracy": (intervals.accuracy(noisy, noise), right),
            "balanced accuracy": (intervals.balanced(noisy, noise), right),
            "recall of the rarest class": (intervals.recalls(noisy, noise)[0], right),
        }


def group_runs(
    right: tuple[float, ...], n: int, epsilon: float, *, pure: bool, rng: Any
) -> Iterator[Run]:
    """Yield test scores of two classes by groups of a column, all of one size."""
    from privet.evaluation import intervals

    noise, draw = noise_of(0.5, epsilon, pure=pure)
    law = np.array([[[0.7 * p, 0.7 * (1 - p)], [0.3 * (1 - p), 0.3 * p]] for p in right])
    law /= len(right)
    while True:
        noisy = rng.multinomial(n, law.ravel()).reshape(law.shape) + draw(rng, law.shape)
        yield {
            "accuracy of all groups": (intervals.accuracy(noisy, noise), float(np.mean(right))),
            "accuracy of a group": (intervals.accuracy(noisy[:1], noise), right[0]),
            "balanced accuracy of all groups": (
                intervals.balanced(noisy, noise),
                float(np.mean(right)),
            ),
            "recall in a group": (intervals.recalls(noisy[:1], noise)[1], right[0]),
        }


def score_runs(
    apart: float, rarest: float, n: int, epsilon: float, *, pure: bool, rng: Any
) -> Iterator[Run]:
    """Yield test scores of two classes with normal scores, and calibrated probabilities.

    Bins are at quantiles of other records than those that are tested.
    """
    from scipy.special import expit, ndtr

    from privet.evaluation import intervals

    noise, draw = noise_of(0.5, epsilon, pure=pure)
    many = 400_000
    of_first = rng.normal(0, 1, round(many * (1 - rarest)))
    of_second = rng.normal(apart, 1, round(many * rarest))
    scores = np.concatenate([of_first, of_second])
    chance = expit(apart * scores - apart**2 / 2 + math.log(rarest / (1 - rarest)))
    learnt = rng.permutation(many)[:5_000]
    ends = np.quantile(scores[learnt], np.arange(1, BINS) / BINS)
    places = np.searchsorted(ends, scores, side="right")
    standing = np.array([chance[learnt][places[learnt] == k].mean() for k in range(BINS)])
    cut = np.clip(standing, 1e-3, 1 - 1e-3)
    losses = -np.log(np.stack([1 - cut, cut]))
    exact = np.clip(chance, 1e-3, 1 - 1e-3)
    second = np.arange(many) >= len(of_first)
    log_loss = float(np.mean(-np.log(np.where(second, exact, 1 - exact))))
    auc = float(ndtr(apart / math.sqrt(2)))
    group = slice(BINS // 2, BINS // 2 + BINS // 8)
    inside = (places >= group.start) & (places < group.stop)
    calibrated = float(second[inside].mean())
    while True:
        chosen = rng.random(n) < rarest
        drawn = rng.normal(np.where(chosen, apart, 0.0), 1)
        keys = chosen * BINS + np.searchsorted(ends, drawn, side="right")
        counts = np.bincount(keys, minlength=2 * BINS).reshape(2, BINS)
        noisy = counts + draw(rng, counts.shape)
        # The confusion matrix has the other half, and says how many records each class has.
        known = counts.sum(axis=1) + draw(rng, (2, 2)).sum(axis=1)
        here = noisy[:, group]
        yield {
            "AUC": (intervals.auc(noisy, noise, known), auc),
            "log loss": (intervals.mean_loss(noisy, losses, noise), log_loss),
            "calibration of a group": (intervals.share(here[1], here[0], noise), calibrated),
        }


def error_runs(
    shape: tuple[float, float], n: int, epsilon: float, *, pure: bool, rng: Any
) -> Iterator[Run]:
    """Yield test scores of a number whose errors have a beta law, as parts of the range."""
    from privet.engines.bases import UNIT, error_moments
    from privet.evaluation import intervals

    noise, _ = noise_of(1.0, epsilon, pure=pure)
    a, b = shape
    mean = a / (a + b)
    square = mean * (a + 1) / (a + b + 1)
    scale = 1 / epsilon if pure else math.sqrt(noise.variance)
    noise = intervals.Noise(2 * scale**2 if pure else scale**2, laplace=pure)
    draw = rng.laplace if pure else rng.normal
    while True:
        sums = error_moments(rng.beta(a, b, n)).sum(axis=0)[None] / UNIT
        absolute, squared = intervals.errors(sums + draw(0, scale, (1, 4)), noise)
        yield {
            "mean absolute error": (absolute, mean),
            "mean squared error": (squared, square),
        }


#: What is drawn from, by name: the function and its arguments.
LAWS: dict[str, tuple[Callable[..., Iterator[Run]], tuple[Any, ...]]] = {
    "2 classes, 60 % right": (matrix_runs, (2, 0.6, 0.5)),
    "2 classes, 85 % right, rarer 30 %": (matrix_runs, (2, 0.85, 0.3)),
    "2 classes, 98 % right, rarer 10 %": (matrix_runs, (2, 0.98, 0.1)),
    "5 classes, 75 % right": (matrix_runs, (5, 0.75, 0.2)),
    "2 classes, 3 groups": (group_runs, ((0.7, 0.85, 0.95),)),
    "4 classes, 95 % right, rarest 10 %": (matrix_runs, (4, 0.95, 0.1)),
    "scores 0.5 apart": (score_runs, (0.5, 0.5)),
    "scores 1.5 apart, rarer 30 %": (score_runs, (1.5, 0.3)),
    "scores 2.5 apart, rarer 10 %": (score_runs, (2.5, 0.1)),
    "errors beta(2, 2)": (error_runs, ((2.0, 2.0),)),
    "errors beta(0.5, 8)": (error_runs, ((0.5, 8.0),)),
    "errors beta(1, 30)": (error_runs, ((1.0, 30.0),)),
}


def measure_coverage(runs: int) -> list[dict[str, Any]]:
    """Return for every law, size, budget and measure how often the interval covers."""
    with ProcessPoolExecutor() as pool:
        return list(chain(*pool.map(measure_law, range(len(LAWS)), [runs] * len(LAWS))))


def measure_law(number: int, runs: int) -> list[dict[str, Any]]:
    """Return the same for one law."""
    law, (make, given) = list(LAWS.items())[number]
    rows = []
    for n in RECORDS:
        for epsilon in EPSILONS:
            for pure in (True, False):
                rng = np.random.default_rng([number, n, round(10 * epsilon), pure])
                source = make(*given, n, epsilon, pure=pure, rng=rng)
                found: dict[str, list[tuple[Any, float]]] = {}
                for _ in range(runs):
                    for name, pair in next(source).items():
                        found.setdefault(name, []).append(pair)
                rows += [
                    {
                        "law": law,
                        "n": n,
                        "epsilon": epsilon,
                        "noise": "Laplace" if pure else "Gaussian",
                        "measure": name,
                        **summary(pairs),
                    }
                    for name, pairs in found.items()
                ]
    print(law, flush=True)
    return rows


def summary(pairs: list[tuple[Any, float]]) -> dict[str, Any]:
    """Return how often there was an answer, and how often and how closely it covered."""
    given = [(one, truth) for one, truth in pairs if one.enough]
    covered = sum(one.low <= truth <= one.high for one, truth in given)
    width = float(np.median([one.high - one.low for one, _ in given])) if given else math.nan
    return {
        "runs": len(pairs),
        "answered": len(given),
        "covered": covered,
        "width": round(width, 4),
    }


def is_answer(row: dict[str, Any]) -> bool:
    """Tell whether an interval is given often enough to speak of its coverage."""
    return bool(row["answered"] >= SELDOM * row["runs"])


def coverage(row: dict[str, Any]) -> float:
    return float(row["covered"] / row["answered"])


def share_of(rows: list[dict[str, Any]]) -> float:
    """Return which part of all answers covers."""
    answered = sum(row["answered"] for row in rows)
    return sum(row["covered"] for row in rows) / answered if answered else math.nan


def write_coverage(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table, the report and the plot."""
    with (folder / "study_coverage.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    answers = [row for row in rows if is_answer(row)]
    seldom = [row for row in rows if not is_answer(row)]
    inside = [row for row in answers if WANTED[0] <= coverage(row) <= WANTED[1]]
    runs = rows[0]["runs"]
    text = [
        "# Coverage of the intervals of test scores",
        f"`{command()}`; {machine()}; {versions('privet', 'numpy')}.",
        f"95 % intervals of {runs} runs each: sizes {', '.join(map(str, RECORDS))}, epsilon "
        f"{' and '.join(map(str, EPSILONS))} for the whole score, Laplace and Gaussian noise "
        f"(delta {DELTA:g}). {len(answers)} of {len(rows)} cells have an answer in at least "
        f'{SELDOM:.0%} of their runs, the others are "too few records"; {len(inside)} of these '
        f"cover in {WANTED[0]:.0%} to {WANTED[1]:.0%} of the runs with an answer. With {runs} runs "
        f"a true 95 % varies by {math.sqrt(0.95 * 0.05 / runs):.1%}. The cells that answer more "
        f"rarely have {sum(row['answered'] for row in seldom)} answers in all, of which "
        f"{share_of(seldom):.1%} cover.",
    ]
    lines = []
    for name in dict.fromkeys(row["measure"] for row in rows):
        mine = [row for row in answers if row["measure"] == name]
        cells = sum(row["measure"] == name for row in rows)
        rates = sorted(map(coverage, mine))
        lines.append(
            [
                name, str(cells), str(len(mine)), f"{rates[0]:.1%}", f"{np.median(rates):.1%}",
                f"{rates[-1]:.1%}",
                str(sum(rate < WANTED[0] for rate in rates)),
                str(sum(rate > WANTED[1] for rate in rates)),
            ]
        )  # fmt: skip
    head = ["measure", "cells", "answered", "least", "median", "most", "below 93 %", "above 98 %"]
    text += ["## By measure", table(head, lines)]
    lines = [
        [
            row["measure"], row["law"], str(row["n"]), str(row["epsilon"]), row["noise"],
            f"{coverage(row):.1%}", str(row["answered"]), f"{row['width']:.3f}",
        ]
        for row in answers
        if row not in inside
    ]  # fmt: skip
    head = ["measure", "law", "n", "epsilon", "noise", "covers", "answers", "width"]
    text += ["## Outside 93 to 98 %", table(head, lines) if lines else "None."]
    lines = []
    for name in dict.fromkeys(row["measure"] for row in rows):
        for epsilon in EPSILONS:
            for noise in ("Laplace", "Gaussian"):
                line = [name, str(epsilon), noise]
                for n in RECORDS:
                    widths = [
                        row["width"]
                        for row in answers
                        if (row["measure"], row["epsilon"], row["noise"], row["n"])
                        == (name, epsilon, noise, n)
                    ]
                    line.append(f"{np.median(widths):.3f}" if widths else "too few")
                lines.append(line)
    head = ["measure", "epsilon", "noise", *map(str, RECORDS)]
    text += ["## Median widths, over laws", table(head, lines)]
    report = "\n\n".join(part.rstrip("\n") for part in text) + "\n"
    (folder / "study_coverage.md").write_text(report, encoding="utf-8")
    draw_coverage(rows, folder / "study_coverage.png")


def draw_coverage(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the coverage of every cell by the number of records."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    names = list(dict.fromkeys(row["measure"] for row in rows))
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        axis.axhspan(100 * WANTED[0], 100 * WANTED[1], color="0.92")
        axis.axhline(95, color="0.6", linewidth=0.8)
        for place, name in enumerate(names):
            mine = [r for r in rows if r["measure"] == name and r["epsilon"] == epsilon]
            mine = [row for row in mine if is_answer(row)]
            x = [row["n"] * 1.1 ** (place - len(names) / 2) for row in mine]
            axis.plot(x, [100 * coverage(row) for row in mine], "o", markersize=4, label=name)
        axis.set(title=f"epsilon {epsilon:g}", xlabel="records in the test part", xscale="log")
        axis.set_ylim(85, 100.5)
    axes[0].set_ylabel("runs covered (%)")
    axes[1].legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run_coverage(args: argparse.Namespace) -> None:
    """Measure and report the coverage of intervals."""
    write_coverage(measure_coverage(args.runs), args.out)
