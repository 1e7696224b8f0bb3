"""What the default learner reached on public sets: kept benchmarks, not bounds.

``measured.csv`` is made of benchmarks/results by benchmarks/measured.py: for every set the rows of
a training fold, and accuracies of Privet's tree at several epsilons, of gradient boosting without
privacy, and of the larger class. What matters for a private tree is about rows x epsilon
(docs/rules.md), so results of sets with about as much are what to expect, if the data are alike.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

#: Results with rows x epsilon within this factor of what is asked are near.
_NEAR = 3.0
#: With fewer of them, nothing is said.
_FEWEST = 4


@dataclass(frozen=True)
class Expectation:
    """How far below gradient boosting without privacy the default learner was, in accuracy.

    Attributes
    ----------
    typical, least, most : float
        The median over results with about as much rows x epsilon, and the ends.
    gained : float
        The median of the part of what gradient boosting gains over the larger class that was kept.
    results : int
        How many there were.
    sets : tuple of str
        The public sets that they are of.
    """

    typical: float
    least: float
    most: float
    gained: float
    results: int
    sets: tuple[str, ...]


@dataclass(frozen=True)
class _Result:
    name: str
    mass: float
    accuracy: float
    without_privacy: float
    larger_class: float


@cache
def _results() -> tuple[_Result, ...]:
    with Path(__file__).with_name("measured.csv").open(encoding="utf-8") as file:
        return tuple(
            _Result(
                row["set"],
                float(row["rows"]) * float(row["epsilon"]),
                float(row["accuracy"]),
                float(row["without_privacy"]),
                float(row["larger_class"]),
            )
            for row in csv.DictReader(file)
        )


def expectation(rows: int, epsilon: float, classes: int) -> Expectation | None:
    """Return what was measured with about as much rows x epsilon; None if there is too little.

    Sets have two classes; nothing is said about more.

    Examples
    --------
    >>> found = expectation(20_000, 1.0, 2)
    >>> found.least <= found.typical <= found.most < 0.1
    True
    >>> expectation(10, 0.001, 2) is None
    True
    """
    mass = rows * epsilon
    if classes != 2 or not mass > 0:
        return None
    near = [one for one in _results() if mass / _NEAR <= one.mass <= mass * _NEAR]
    if len(near) < _FEWEST:
        return None
    losses = [one.without_privacy - one.accuracy for one in near]
    kept = [
        (one.accuracy - one.larger_class) / (one.without_privacy - one.larger_class) for one in near
    ]
    sets = tuple(dict.fromkeys(one.name for one in near))
    return Expectation(median(losses), min(losses), max(losses), median(kept), len(near), sets)


def least_epsilon(rows: int, classes: int, loss: float) -> float | None:
    """Return the least epsilon, of steps of a quarter of a decade, that typically lost no more.

    None if no kept result near the number of rows did.
    """
    for step in range(-16, 5):
        epsilon = 10 ** (step / 4)
        found = expectation(rows, epsilon, classes)
        if found is not None and found.typical <= loss:
            return float(epsilon)
    return None
