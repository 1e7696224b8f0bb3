"""Algorithms as their papers print them, where that costs more than the papers say.

Each is a small program for the audit, on tables on which the loss can be seen. What they cost is
computed, not quoted; which argument fails is in docs/threat-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit.exact import compare
from privet.audit.independent import first_smallest, law_of_score
from privet.privacy import Noise

#: Scores are rounded to this many steps per unit.
STEPS = 2**20


@dataclass(frozen=True)
class Counterexample:
    """A published calibration and what it costs on two neighbouring tables.

    Attributes
    ----------
    name : str
    claimed : float
        The epsilon that the paper's argument gives.
    found : float
        The largest log ratio of an output's probabilities.
    tables : str
        On which tables.
    """

    name: str
    claimed: float
    found: float
    tables: str


def counterexamples() -> Iterator[Counterexample]:
    """Yield all of them."""
    for features in (5, 20, 50):
        yield privatree_root(features)
    for attributes in (5, 10):
        yield diprime_exp(attributes)
    for candidates in (3, 10):
        yield noisy_max_with_value(candidates)
    yield stop_at_pure_nodes()
    for criterion in ("gini", "entropy"):
        yield printed_split_point(criterion)


def privatree_root(features: int, per_class: int = 6, epsilon: float = 0.5) -> Counterexample:
    """PrivaTree's root: a noisy class histogram of every feature, of which the best is taken.

    Every feature's histogram has noise for epsilon, as if each saw other records. All features
    have two bins and separate the classes; a record of class 1 is added, which only the last
    feature puts with its class. The output is the feature of the root.
    """
    k = per_class
    tables = {"before": (k, 0, 0, k), "left": (k, 1, 0, k), "right": (k, 0, 0, k + 1)}
    laws = {
        name: law_of_score(_weighted_gini, counts, 1 / epsilon, tail=1e-4)
        for name, counts in tables.items()
    }
    before = first_smallest([laws["before"]] * features)
    after = first_smallest([laws["left"]] * (features - 1) + [laws["right"]])
    return Counterexample(
        f"PrivaTree, root of {features} features (noisy histograms)",
        epsilon,
        float(np.abs(np.log(after / before)).max()),
        f"{k} records of each class, separated by every feature; one more, which all features but "
        "the last put with the other class",
    )


def _weighted_gini(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the impurity of two children from noisy counts (left 0, left 1, right 0, right 1)."""
    known = np.maximum(counts, 0).astype(np.float64)
    children = known.reshape(2, 2, -1)
    sizes = children.sum(axis=1)
    impurity = sizes - (children**2).sum(axis=1) / np.maximum(sizes, 1)
    return np.asarray(impurity.sum(axis=0) / np.maximum(sizes.sum(axis=0), 1))


def diprime_exp(attributes: int, half: int = 200, epsilon: float = 1.0) -> Counterexample:
    """DiPriMeExp's split: a private median of every attribute, of which the best is taken.

    Each median has epsilon, and so has the choice by the squared error: the paper counts two.
    """
    grid, good = 1000, 990

    def program(extra: int, noise: Noise) -> Hashable:
        # All attributes but the first: `half` records of y = -1 at 0, `half` of y = 1 at `good`,
        # and `half` of y = 1 at the end, where the additional record is, too.
        left = np.array([half, 2 * half])
        balance = -np.abs(2 * left - (3 * half + extra))
        lengths = np.array([good, grid - good])
        errors = [2 * half]  # the first attribute's cuts all leave -1 and 1 together
        for _ in range(attributes - 1):
            point = noise.grid_point(balance, lengths, Fraction(epsilon) / 2)
            errors.append(0 if point < good else 2 * half)
        # exp(-epsilon SSE / (2 w^2)) with targets of width w = 2
        return noise.exponential(-np.array(errors), scale=8 / epsilon)

    found = compare(program, 0, 1)
    return Counterexample(
        f"DiPriMeExp, one split by {attributes} medians",
        2 * epsilon,
        found.epsilon,
        f"{3 * half} records, of which every attribute but the first can tell the targets apart; "
        "one more at the upper bound",
    )


def noisy_max_with_value(candidates: int, epsilon: float = 1.0) -> Counterexample:
    """DP-TopDown's report-noisy-max, which also releases the winner's noisy score.

    Laplace noise of scale 2 / epsilon for scores that a record changes by one.
    """

    def program(records: int, noise: Noise) -> Hashable:
        scores = noise.add_laplace(np.full(candidates, records), scale=2 / epsilon)
        best = int(np.argmax(scores))
        return best, int(scores[best])

    found = compare(program, 0, 1, most_outcomes=2**candidates)
    return Counterexample(
        f"report-noisy-max of {candidates} with its value",
        epsilon,
        found.epsilon,
        "a record that raises all scores by one",
    )


def stop_at_pure_nodes(epsilon: float = 1.0) -> Counterexample:
    """PrivaTree's stop rule: a node whose records are all of one class is not split."""

    def program(classes: tuple[int, ...], noise: Noise) -> Hashable:
        if len(set(classes)) <= 1:
            return "a leaf"
        return "a split", noise.permute_and_flip(np.zeros(2, dtype=np.int64), 2 / epsilon)

    found = compare(program, (0, 0, 0), (1, 0, 0, 0))
    return Counterexample(
        "stop rule on exact counts", epsilon, found.epsilon, "records of one class; one of another"
    )


def printed_split_point(
    criterion: str, records: int = 50_000, epsilon: float = 0.1
) -> Counterexample:
    """Friedman & Schuster's split point, with the weight ``exp(epsilon c)`` that is printed.

    The formula beside it divides by twice the score's sensitivity, and holds.
    """

    def program(extra: int, noise: Noise) -> Hashable:
        lengths = np.array([500, 400, 100])  # cuts left of the records, up to the other one, right
        left = [(0, 0), (records, 0), (records, extra)]
        losses = [
            _impurity(criterion, zeros, ones) + _impurity(criterion, records - zeros, extra - ones)
            for zeros, ones in left
        ]
        scores = np.array([-round(STEPS * loss) for loss in losses])
        return noise.grid_point(scores, lengths, Fraction(epsilon) / STEPS)

    found = compare(program, 0, 1)
    return Counterexample(
        f"Friedman & Schuster, split point as printed, {criterion}",
        epsilon,
        found.epsilon,
        f"{records:,} records of one class at one place; one of the other class beside them",
    )


def _impurity(criterion: str, zeros: int, ones: int) -> float:
    """Return the number of records times their impurity."""
    total: Any = zeros + ones
    if criterion == "gini":
        return total - (zeros**2 + ones**2) / total if total else 0.0
    return -sum(n * math.log2(n / total) for n in (zeros, ones) if n)
