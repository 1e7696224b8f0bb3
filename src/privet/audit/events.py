"""Events that tell two tables apart: the search for one, and what the best one promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
#: Gives each row of a matrix a number.
Scorer = Callable[[Matrix], Matrix]

#: With fewer runs in the search, or one observable, nothing is learned.
LEARNABLE = 50
#: How much surer the limits are in the search than in the measurement: of many events, those
#: that are rare look best by luck.
CAUTION = 100

_RELATIONS: dict[str, Callable[[Matrix, float], NDArray[np.bool_]]] = {
    "at least": lambda column, value: column >= value,
    "at most": lambda column, value: column <= value,
    "": lambda column, value: (column == value) | (np.isnan(column) & np.isnan(value)),
}


@dataclass(frozen=True)
class Event:
    """Something that happens or not: a column (or score) of a row stands in a relation to a value.

    ``likelier`` is the position of the table on which it happened more often in the search.
    """

    column: Scorer
    name: str
    relation: str
    value: float
    likelier: int
    promise: float

    def hits(self, matrix: Matrix) -> int:
        """Count the rows in which it happened."""
        return int(_RELATIONS[self.relation](self.column(matrix), self.value).sum())

    @property
    def text(self) -> str:
        """What happened, in words."""
        if math.isnan(self.value):
            return f"{self.name} is missing"
        return " ".join(f"{self.name} is {self.relation} {self.value:.6g}".split())


def search(
    one: Matrix, other: Matrix, names: Sequence[str], delta: float, tail: float
) -> Event | None:
    """Return the event with the highest bound on the runs that serve to search, if any differs."""
    bounds = [limits(np.arange(len(side) + 1), len(side), tail / CAUTION) for side in (one, other)]
    best: Event | None = None
    for column, name, ours, theirs, atoms in _columns(one, other, names):
        values, hits_of = _count(ours, theirs)
        for relation, hits in hits_of.items():
            if not hits.size or (not relation and not atoms):
                continue
            for likelier in (0, 1):
                low = bounds[likelier][0][hits[likelier]] - delta
                high = bounds[1 - likelier][1][hits[1 - likelier]]
                with np.errstate(divide="ignore"):
                    promises = np.log(np.maximum(low, 0)) - np.log(high)
                place = int(promises.argmax())
                if best is None or promises[place] > best.promise:
                    value = float(values[place])
                    if relation:
                        value = _threshold(values[: hits.shape[1]], place, relation)
                    best = Event(column, name, relation, value, likelier, float(promises[place]))
    return best


def limits(hits: Any, trials: int, tail: float) -> tuple[Any, Any]:
    """Return Clopper-Pearson's limits of a probability; each fails with ``tail`` at most."""
    from scipy.special import betainccinv, betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, tail), 0.0)
    rest = np.maximum(trials - hits, 1)
    high = np.where(hits < trials, betainccinv(hits + 1, rest, tail), 1.0)
    return low, high


def _count(ours: Matrix, theirs: Matrix) -> tuple[Matrix, dict[str, NDArray[np.int64]]]:
    """Return all values and, for every relation to each, how often it held on both tables.

    NaN, which comes last, stands in no order to the others.
    """
    values, codes = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    parts = codes[: len(ours)], codes[len(ours) :]
    counts = np.array([np.bincount(part, minlength=len(values)) for part in parts])
    ordered = counts[:, : len(values) - int(np.isnan(values[-1]))]
    return values, {
        "": counts,
        "at most": ordered.cumsum(axis=1),
        "at least": ordered[:, ::-1].cumsum(axis=1)[:, ::-1],
    }


def _threshold(values: Matrix, place: int, relation: str) -> float:
    """Return a value halfway to what lies beyond the threshold, to leave room on both sides."""
    beyond = place + (1 if relation == "at most" else -1)
    here = float(values[place])
    if not 0 <= beyond < len(values):
        return here
    there = float(values[beyond])
    middle = here / 2 + there / 2
    return middle if min(here, there) < middle < max(here, there) else here


def _columns(
    one: Matrix, other: Matrix, names: Sequence[str]
) -> Iterator[tuple[Scorer, str, Matrix, Matrix, bool]]:
    """Yield what events can look at: each observable, and scores of the whole row.

    With each its numbers on the two tables, and whether it may be asked to equal one of them. A
    score is made of one half of the rows and read on the other half and the other way round, so
    that thresholds are chosen on rows which it has not seen; the score of the event itself is made
    of all of them.
    """
    rows = np.concatenate([one, other])
    constant = ((rows == rows[0]) | (np.isnan(rows) & np.isnan(rows[0]))).all(axis=0)
    varying = np.flatnonzero(~constant).tolist()
    for j in varying:
        yield _reader(j), names[j], one[:, j], other[:, j], True
    if len(varying) < 2:
        return
    makers = {"the likelihood ratio of all observables together (log)": _count_rows}
    if min(len(one), len(other)) >= LEARNABLE:
        makers["a score learned from all observables"] = _learn
    sides, middle = (one[:, varying], other[:, varying]), (len(one) // 2, len(other) // 2)
    halves = list(zip(sides, middle, strict=True))
    for name, make in makers.items():
        late = make(*(side[:cut] for side, cut in halves))
        early = make(*(side[cut:] for side, cut in halves))
        ours, theirs = (
            np.concatenate([early(side[:cut]), late(side[cut:])]) for side, cut in halves
        )
        yield _reader(varying, make(*sides)), name, ours, theirs, False


def _reader(places: int | list[int], score: Scorer | None = None) -> Scorer:
    """Return what reads one observable, or a score of several, off a matrix."""
    if score is None:
        return lambda matrix: matrix[:, places]
    return lambda matrix: score(matrix[:, places])


def _count_rows(one: Matrix, other: Matrix) -> Scorer:
    """Score a row by how often the very same row came on either table; 0 or so if never."""
    counts: dict[bytes, list[int]] = {}
    for side, matrix in enumerate((one, other)):
        for row in np.ascontiguousarray(matrix):
            counts.setdefault(row.tobytes(), [0, 0])[side] += 1

    def score(matrix: Matrix) -> Matrix:
        found = [counts.get(row.tobytes(), (0, 0)) for row in np.ascontiguousarray(matrix)]
        hits = np.array(found, dtype=np.float64).reshape(-1, 2)
        return np.asarray(
            np.log((hits[:, 0] + 1) / (len(one) + 2)) - np.log((hits[:, 1] + 1) / (len(other) + 2))
        )

    return score


def _learn(one: Matrix, other: Matrix) -> Scorer:
    """Score a row by a small boosted classifier, which adds up what many observables say a bit."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=40, max_leaf_nodes=4, early_stopping=False, random_state=0
    )
    rows = np.concatenate([one, other])
    there = np.flatnonzero(~np.isnan(rows).all(axis=0))  # the classifier fails on empty columns
    if not len(there):
        return lambda matrix: np.zeros(len(matrix))

    def features(matrix: Matrix) -> Matrix:
        return np.clip(matrix[:, there], -1e300, 1e300)

    def score(matrix: Matrix) -> Matrix:
        with threadpool_limits(1):
            return np.asarray(model.decision_function(features(matrix)), dtype=np.float64)

    with threadpool_limits(1):  # several threads wait for one another on a busy machine
        model.fit(features(rows), np.repeat([1, 0], [len(one), len(other)]))
    return score
