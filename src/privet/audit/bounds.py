"""A lower bound of epsilon from what was observed in many runs on two neighbouring tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.audit.events import Matrix, limits, search
from privet.errors import AuditError


@dataclass(frozen=True)
class Finding:
    """What an audit can say: epsilon is at least this much.

    Attributes
    ----------
    epsilon : float
        The lower bound. 0 if nothing was found.
    delta : float
        The delta at which it holds.
    confidence : float
        How sure it is: over all audits with this number of runs, a bound above the truth has at
        most the probability ``1 - confidence``.
    event : str
        What tells the tables apart.
    order : str
        On which table the event is likelier: ``"one"`` or ``"other"``.
    runs : int
        The number of runs on each table (the fewer, if they differ).
    hits, trials : tuple of int
        How often the event happened, and in how many measured runs: on one, on the other.
    best_possible : float
        What this number of runs could have shown of a mechanism without any privacy. A claim above
        this cannot be refuted, however wrong it is: take more runs.
    """

    epsilon: float
    delta: float
    confidence: float
    event: str
    order: str
    runs: int
    hits: tuple[int, int]
    trials: tuple[int, int]
    best_possible: float

    def exceeds(self, claimed: float) -> bool:
        """Tell whether a claimed epsilon is refuted."""
        return self.epsilon > claimed

    def __str__(self) -> str:
        rates = " and ".join(
            f"{hit} of {all_} on {table}"
            for hit, all_, table in zip(self.hits, self.trials, ("one", "other"), strict=True)
        )
        return (
            f"epsilon >= {self.epsilon:.4g} at delta {self.delta:g} with confidence "
            f"{self.confidence:.10g} (at most {self.best_possible:.4g} could be shown): "
            f"{self.event}: {rates}"
        )


def lower_bound(
    one: Any,
    other: Any,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: Sequence[str] | None = None,
) -> Finding:
    """Bound epsilon from below by what a mechanism gave on two neighbouring tables.

    The first half of either matrix is searched for the most telling event: any observable above or
    below a threshold or equal to a value, the whole row by how often it came, and a score that is
    learned from all observables. The second half measures that one event (Clopper-Pearson).

    Parameters
    ----------
    one, other : array, one row per run and one column per observable
        What was observed in independent runs. NaN is a value of its own, such as "not there".
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=0.95
        Of the bound.
    names : sequence of str, optional
        What the observables are, for the sentence about the event.

    Returns
    -------
    Finding

    Examples
    --------
    Randomised response that tells the truth with 9/10: epsilon is log 9, which is 2.197.

    >>> generator = np.random.default_rng(1)
    >>> one, other = generator.random(4000) < 0.9, generator.random(4000) < 0.1
    >>> finding = lower_bound(one, other)
    >>> round(finding.epsilon, 2), finding.exceeds(1.0), finding.exceeds(2.198)
    (2.03, True, False)
    """
    delta, tail = check_claim(delta, confidence)
    tables = [_as_matrix(one), _as_matrix(other)]
    width = tables[0].shape[1]
    if tables[1].shape[1] != width or (names is not None and len(names) != width):
        raise AuditError("both tables (and the names) need the same number of observables")
    if min(map(len, tables)) < 4:
        raise AuditError("an audit needs at least 4 runs on each table")
    names = [f"observable {j}" for j in range(width)] if names is None else list(names)
    searched = [matrix[: len(matrix) // 2] for matrix in tables]
    measured = [matrix[len(matrix) // 2 :] for matrix in tables]
    trials = (len(measured[0]), len(measured[1]))
    event = search(searched[0], searched[1], names, delta, tail)
    hits, order, epsilon = (0, 0), "one", 0.0
    if event is not None:
        hits = (event.hits(measured[0]), event.hits(measured[1]))
        order = ("one", "other")[event.likelier]
        epsilon = max(0.0, _bound(hits, trials, event.likelier, delta, tail))
    return Finding(
        epsilon=epsilon,
        delta=delta,
        confidence=float(confidence),
        event="nothing differs" if event is None else event.text,
        order=order,
        runs=min(map(len, tables)),
        hits=hits,
        trials=trials,
        best_possible=max(
            0.0,
            _bound((trials[0], 0), trials, 0, delta, tail),
            _bound((0, trials[1]), trials, 1, delta, tail),
        ),
    )


def check_claim(delta: Any, confidence: Any) -> tuple[float, float]:
    """Return delta and the probability with which each of the two limits may fail."""
    if not 0 <= float(delta) < 1:
        raise AuditError("delta must be at least 0 and below 1")
    if not 0 < float(confidence) < 1:
        raise AuditError("confidence must lie between 0 and 1")
    return float(delta), (1 - float(confidence)) / 2


def _bound(
    hits: tuple[int, int], trials: tuple[int, int], likelier: int, delta: float, tail: float
) -> float:
    """Return the epsilon that an event shows; minus infinity if it shows none."""
    low = float(limits(hits[likelier], trials[likelier], tail)[0]) - delta
    high = float(limits(hits[1 - likelier], trials[1 - likelier], tail)[1])
    return math.log(low / high) if low > 0 else -math.inf


def _as_matrix(observations: Any) -> Matrix:
    matrix = np.array(observations, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix.reshape(-1, 1)
    if matrix.ndim != 2:
        raise AuditError("observations must have one row per run and one column per observable")
    matrix[np.isnan(matrix)] = np.nan  # one NaN and one zero, so that equal rows have equal bytes
    return np.asarray(matrix + 0.0)
