"""The laws of what a program releases on two tables, along all outcomes of its noise, or some."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit.laws import Outcome, alone, outcomes
from privet.audit.outputs import describe
from privet.audit.sources import Done, Live, Program, Unanswered, run
from privet.errors import AuditError

#: The orders of the Renyi divergences.
ORDERS = (1.01, 1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
_OUTPUTS = "the same answers lead to different outputs"
_QUESTIONS = "the same answers lead to different questions"


@dataclass(frozen=True)
class Comparison:
    """The laws of what a program releases on two tables.

    Attributes
    ----------
    log_one, log_other : array
        Log probability of every output on each of the two tables.
    outputs : tuple
        The outputs.
    remarks : tuple of str
        What was seen on the way and no private program does.
    runs : int
        How often the program ran.
    path_rho : float, optional
        If paths were followed: the largest sum of a path's divergences.
    """

    log_one: NDArray[np.float64]
    log_other: NDArray[np.float64]
    outputs: tuple[Hashable, ...]
    remarks: tuple[str, ...]
    runs: int
    path_rho: float | None = None

    @property
    def log_ratios(self) -> NDArray[np.float64]:
        """Log ratio of every output's probabilities."""
        return self.log_one - self.log_other

    @property
    def epsilon(self) -> float:
        """The largest log ratio, either way."""
        return float(np.abs(self.log_ratios).max())

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon: the larger of both directions."""
        one, other = np.exp(self.log_one), np.exp(self.log_other)
        scale = math.exp(epsilon)
        return float(
            max(
                np.maximum(one - scale * other, 0).sum(),
                np.maximum(other - scale * one, 0).sum(),
            )
        )

    def epsilon_at(self, delta: float) -> float:
        """Return the least epsilon at which the delta is within a given one, to 1e-9."""
        low, high = 0.0, self.epsilon
        if self.delta(low) <= delta:
            return low
        high = min(high, 700.0)  # exp(700) is a double
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    @property
    def rho(self) -> float:
        """The largest Renyi divergence of an order in :data:`ORDERS`, divided by the order."""
        return self.path_rho if self.path_rho is not None else _rho(self.log_one, self.log_other)


def compare(
    program: Program,
    one: Any,
    other: Any,
    *,
    most_outcomes: int = 12,
    most_runs: int = 100_000,
    known: dict[Hashable, Any] | None = None,
) -> Comparison:
    """Return the laws of what a program releases on two tables, along all outcomes of its noise.

    Parameters
    ----------
    program : callable
        Takes a table and a source of noise, and returns a hashable output.
    one, other : tables
        Whatever the program takes.
    most_outcomes : int
        How finely the integers of one question are told apart (see ``privet.audit.laws``).
    most_runs : int
        Refuse programs with more outcomes than this.
    known : dict, optional
        What the program gave on ``one`` in comparisons before, by the answers of the noise; what it
        gives now is added. Not given, it is run each time.

    Examples
    --------
    A count with noise for epsilon 0.5:

    >>> import numpy as np
    >>> def count(table, noise):
    ...     return tuple(noise.add_laplace(np.array([len(table)]), scale=2.0).tolist())
    >>> round(compare(count, "xx", "xxx").epsilon, 9)
    0.5
    """
    laws: tuple[dict[Hashable, float], dict[Hashable, float]] = ({}, {})
    remarks: dict[str, None] = {}
    runs = 0
    todo: list[tuple[tuple[Any, ...], float, float]] = [((), 0.0, 0.0)]
    while todo:
        answers, p, q = todo.pop()
        runs += 2
        if runs > most_runs:
            raise AuditError(
                "there are too many outcomes to follow them all; use fewer records or features, "
                "less depth or fewer rounds"
            )
        key = describe(answers) if known is not None else None
        first = known.get(key) if known is not None else None
        if first is None:
            first = run(program, one, answers)
            if known is not None:
                known[key] = first
        second = run(program, other, answers)
        if isinstance(first, Unanswered) and isinstance(second, Unanswered):
            branches = outcomes(first.question, second.question, most_outcomes)
            if branches is not None:
                todo.extend(((*answers, answer), p + x, q + y) for answer, x, y in branches)
                continue
        elif not isinstance(first, Unanswered) and not isinstance(second, Unanswered):
            if first != second:
                remarks[_OUTPUTS] = None
            _add(laws[0], first, p)
            _add(laws[1], second, q)
            continue
        remarks[_QUESTIONS] = None
        runs += _follow(program, one, answers, p, laws[0], most_runs)
        runs += _follow(program, other, answers, q, laws[1], most_runs)
    found = tuple(dict.fromkeys([*laws[0], *laws[1]]))
    logs = [np.array([law.get(output, -math.inf) for output in found]) for law in laws]
    possible = np.maximum(*logs) > -math.inf
    return Comparison(
        logs[0][possible],
        logs[1][possible],
        tuple(itertools.compress(found, possible.tolist())),
        tuple(remarks),
        runs,
    )


def follow(
    program: Program, one: Any, other: Any, *, paths: int, most_outcomes: int = 12, seed: int = 0
) -> Comparison:
    """Follow some paths of answers instead of all, where there are too many.

    Half of the paths take, at every question, an answer that tells most about the record, one way
    or the other; the others are drawn from the law. The outputs of the comparison are the paths
    themselves, each with its probability on both tables: what it finds is true, and it may
    miss something.
    """
    generator = np.random.default_rng(seed)
    found = []
    for path in range(paths):
        with Live(program, one) as first, Live(program, other) as second:
            found.append(_walk(first, second, most_outcomes, path, generator))
    return Comparison(
        np.array([walk.log_one for walk in found]),
        np.array([walk.log_other for walk in found]),
        tuple(range(len(found))),
        tuple(dict.fromkeys(walk.remark for walk in found if walk.remark)),
        2 * paths,
        max(walk.rho for walk in found),
    )


@dataclass(frozen=True)
class _Walk:
    """One path: its log probabilities, the sum of its divergences, and what was strange."""

    log_one: float
    log_other: float
    rho: float
    remark: str = ""


def _walk(
    first: Live, second: Live, most_outcomes: int, path: int, generator: np.random.Generator
) -> _Walk:
    p = q = rho = 0.0
    while True:
        asked = first.next(), second.next()
        ended = [isinstance(question, Done) for question in asked]
        if all(ended):
            if asked[0].output != asked[1].output:
                return _Walk(p, -math.inf, math.inf, _OUTPUTS)
            return _Walk(p, q, rho)
        branches = None if any(ended) else outcomes(*asked, most_outcomes)
        if branches is None:
            return _Walk(p, -math.inf, math.inf, _QUESTIONS)
        answer, x, y = _step(branches, path, generator)
        p, q = p + x, q + y
        rho += _rho(np.array([b[1] for b in branches]), np.array([b[2] for b in branches]))
        first.answer(answer)
        second.answer(answer)


def _step(branches: list[Outcome], path: int, generator: np.random.Generator) -> Outcome:
    """Choose how a path goes on: for the table, against it, or by chance."""
    possible = [branch for branch in branches if max(branch[1:]) > -math.inf]
    if path % 4 < 2:
        sign = 1 if path % 4 == 0 else -1
        told = [sign * (branch[1] - branch[2]) for branch in possible]
        most = max(told)
        best = [b for b, t in zip(possible, told, strict=True) if t >= most - 1e-12]
        return best[int(generator.integers(len(best)))]
    weights = np.exp([max(branch[1:]) for branch in possible])
    return possible[int(generator.choice(len(possible), p=weights / weights.sum()))]


def _follow(
    program: Program,
    table: Any,
    answers: tuple[Any, ...],
    log: float,
    law: dict[Hashable, float],
    most_runs: int,
) -> int:
    """Add the law of what follows some answers on one table; return the number of runs."""
    todo, runs = [(answers, log)], 0
    while todo:
        given, p = todo.pop()
        runs += 1
        if runs > most_runs:
            raise AuditError("there are too many outcomes to follow them all")
        result = run(program, table, given)
        if isinstance(result, Unanswered):
            todo.extend(((*given, answer), p + x) for answer, x in alone(result.question))
        else:
            _add(law, result, p)
    return runs


def _add(law: dict[Hashable, float], output: Hashable, log: float) -> None:
    law[output] = float(np.logaddexp(law.get(output, -math.inf), log))


def _rho(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the largest Renyi divergence by its order, either way."""
    possible = np.maximum(p, q) > -math.inf
    p, q = p[possible], q[possible]
    if np.isinf(p - q).any():
        return math.inf
    return max(_renyi(*pair, order) / order for pair in ((p, q), (q, p)) for order in ORDERS)


def _renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    logs = order * p + (1 - order) * q
    top = float(logs.max())
    return (top + math.log(float(np.exp(logs - top).sum()))) / (order - 1)
