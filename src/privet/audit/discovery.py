"""The exact audit of discovered schemas: the law of what becomes frequent, on neighbouring tables.

Each count of a discovery gets noise of its own, and it matters which counts reach a threshold. So
the law is a product of coins. How much noise each count needs is found by trying, with a source
of noise that gives what it is told; how likely that much noise is, by the law that the mechanism
asked for. Neither sensitivities, weights, thresholds nor the ledger are trusted. Counts that are as
likely to be frequent on both tables tell nothing, and are left out; the others are few.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privet.audit.comparison import Comparison
from privet.audit.exact import Verdict
from privet.audit.laws import gaussian_mass, laplace_mass
from privet.errors import AuditError
from privet.kinds import Kinds
from privet.model import ADDED, PrivacyCard
from privet.privacy import Ledger, Place
from privet.schema import Categorical
from privet.tables import DiscoveryPlan, repeated_discovery

#: One record: a number, a category, and the listed target.
Record = tuple[Any, Any, Any]
#: The records of one person.
Person = tuple[Record, ...]

#: Persons whose records are alike, or in different cells and of different categories.
PERSONS: tuple[Person, ...] = (
    ((1.0, "u", 0),),
    ((1.0, "u", 0), (1.0, "u", 1)),
    ((1.0, "u", 0), (-8.0, "v", 1)),
    ((1.0, "u", 0), (-8.0, "v", 1), (0.0, "w", 0)),
    ((None, None, 0), (100.0, "v", 0)),
)
_NAMES = ("x", "a", "y")
#: Noise beyond this is never needed.
_MOST_NOISE = 2**14
_COUPLED = "whether one count is frequent depends on another's noise"


@dataclass
class _Told:
    """A source of noise that adds what it is told, and notes what it was asked for."""

    amounts: Callable[[int], NDArray[np.int64]]
    asked: list[tuple[str, float, int]] = field(default_factory=list)
    private: bool = False

    def _add(self, law: str, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        start = sum(size for _, _, size in self.asked)
        self.asked.append((law, scale, values.size))
        more = self.amounts(start + values.size)[start:]
        return np.asarray(values + more.reshape(values.shape), dtype=np.int64)

    def add_laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        return self._add("laplace", values, scale)

    def add_gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        return self._add("gaussian", values, scale)


def coins_of(plan: DiscoveryPlan, persons: Sequence[Person]) -> dict[Hashable, float]:
    """Return how likely each count is to be frequent, by its column and cell or text."""
    discover = repeated_discovery(_table(persons), plan)
    names: list[Hashable] = []

    def run(amounts: NDArray[np.int64] | int) -> tuple[list[bool], _Told, list[Hashable]]:
        def told(count: int) -> NDArray[np.int64]:
            if isinstance(amounts, int):
                return np.full(count, amounts)
            return amounts[:count]

        source = _Told(told)
        found = discover(source)  # type: ignore[arg-type]
        size = plan.magnitudes.size
        keys: list[Hashable] = [(name, cell) for name in plan.numbers for cell in range(size)]
        frequent: set[Hashable] = {
            (name, text) for name, texts in found.texts.items() for text in texts
        }
        if not names:
            names.extend((name, text) for name, texts in found.texts.items() for text in texts)
        keys += names
        keys += [
            (name, ("eighth", eighth))
            for name in plan.numbers
            for eighth in range(size * plan.magnitudes.eighths_each)
        ]
        frequent |= {
            (name, ("eighth", eighth))
            for name, counts in found.eighths.items()
            for eighth, count in enumerate(counts)
            if count >= plan.least_of_eighth
        }
        frequent |= {
            (name, cell)
            for name, counts in found.cells.items()
            for cell, count in enumerate(counts)
            if count >= plan.least
        }
        return [key in frequent for key in keys], source, keys

    every, source, keys = run(_MOST_NOISE)
    size = len(keys)
    if not all(every) or sum(count for _, _, count in source.asked) != size:
        raise AuditError("not every count becomes frequent by noise, or noise is drawn for more")
    low, high = np.full(size, -_MOST_NOISE), np.full(size, _MOST_NOISE)
    while (low < high).any():
        middle = (low + high) // 2
        reached = np.array(run(middle)[0])
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    rng = np.random.default_rng(1)
    for _ in range(3):  # each by its own noise alone
        more = rng.integers(-1, 1, size)
        if run(high + more)[0] != (more >= 0).tolist():
            raise AuditError(_COUPLED)
    laws = [(law, scale) for law, scale, count in source.asked for _ in range(count)]
    mass = {"laplace": laplace_mass, "gaussian": gaussian_mass}
    return {
        key: math.exp(mass[law](int(least) - 1, None, scale))
        for key, least, (law, scale) in zip(keys, high, laws, strict=True)
    }


def compare_coins(one: dict[Hashable, float], other: dict[Hashable, float]) -> Comparison:
    """Return the laws of which counts are frequent, on two tables."""
    keys = [key for key in {**one, **other} if one.get(key, 0.0) != other.get(key, 0.0)]
    if len(keys) > 16:
        raise AuditError("the tables differ in too many counts")
    logs: list[tuple[float, float]] = []
    outputs: list[Hashable] = []
    for pattern in itertools.product((True, False), repeat=len(keys)):
        pair = tuple(
            sum(
                _log(law.get(key, 0.0) if up else 1 - law.get(key, 0.0))
                for key, up in zip(keys, pattern, strict=True)
            )
            for law in (one, other)
        )
        if max(pair) > -math.inf:
            logs.append((pair[0], pair[1]))
            outputs.append(pattern)
    log_one, log_other = np.array(logs).T
    return Comparison(log_one, log_other, tuple(outputs), (), 0)


def neighbours(persons: Sequence[Person], most: int) -> Iterator[tuple[Any, Any]]:
    """Yield all tables of fewer than ``most`` persons, each with one person more."""
    for size in range(most):
        for table in itertools.combinations_with_replacement(persons, size):
            for person in persons:
                yield table, (person, *table)


@dataclass(frozen=True)
class DiscoveryProbe:
    """The discovery of a number's bounds and of a list, and what it may cost.

    Attributes
    ----------
    epsilon, delta : float
        What is asked for.
    gaussian : bool
        Whether the noise is Gaussian.
    unit : bool
        Whether a person may have several records; otherwise each has its first one.
    rows_per_unit : int, optional
        As for :class:`~privet.Kinds`.

    Examples
    --------
    >>> verdict = DiscoveryProbe(1.0, 0.01, unit=False).audit(1)
    >>> verdict.holds, verdict.claim, round(verdict.found, 6)
    (True, 1.0, 0.575)
    """

    epsilon: float
    delta: float
    gaussian: bool = False
    unit: bool = True
    rows_per_unit: int | None = None

    @property
    def plan(self) -> DiscoveryPlan:
        """What is asked of every table."""
        columns: dict[str, Any] = {"x": "number", "a": "category", "y": Categorical([0, 1])}
        unit = "id" if self.unit else None
        kinds = Kinds(columns, "y", unit=unit, rows_per_unit=self.rows_per_unit)
        found = DiscoveryPlan.of(kinds, self.epsilon, self.delta, None)
        return replace(found, gaussian=self.gaussian)

    def audit(self, most: int = 2, persons: Sequence[Person] = PERSONS) -> Verdict:
        """Compare all tables of fewer than ``most`` persons with the same and one more."""
        begun = time.perf_counter()
        plan = self.plan
        books = Ledger(plan.budget)
        for question, mechanism in plan.noise.questions:
            books.charge(books.root, mechanism, question, Place())
        card = PrivacyCard.of(books, (), rows_declared=False)
        if not self.gaussian:
            card = replace(card, accountant=ADDED)
        universe = persons if self.unit else tuple((person[0],) for person in persons)
        known: dict[Any, dict[Hashable, float]] = {}
        found: list[tuple[float, float, tuple[Any, Any], int]] = []
        for pair in neighbours(universe, most):
            laws = []
            for table in pair:
                alike = tuple(sorted(table, key=repr))
                if alike not in known:
                    known[alike] = coins_of(plan, table)
                laws.append(known[alike])
            both = compare_coins(laws[0], laws[1])
            # What only one person has is for delta; all else must be private without it.
            shared = set(laws[0]) & set(laws[1])
            rest = compare_coins(*({key: law[key] for key in shared} for law in laws))
            loss = rest.rho if self.gaussian else rest.epsilon
            found.append((loss, both.delta(card.requested_epsilon), pair, len(both.outputs)))
        worst = max(found, key=lambda each: each[0])
        return Verdict(
            claimed=card,
            found=worst[0],
            delta=max(each[1] for each in found),
            worst=worst[2],
            remarks=(),
            exhaustive=True,
            pairs=len(found),
            outputs=sum(each[3] for each in found),
            runs=len(known),
            seconds=time.perf_counter() - begun,
        )


def _table(persons: Sequence[Person]) -> pa.Table:
    rows = [(str(who), *record) for who, person in enumerate(persons) for record in person]
    columns = [[row[place] for row in rows] for place in range(4)]
    types = (pa.string(), pa.float64(), pa.string(), pa.int64())
    return pa.table(
        {
            name: pa.array(column, kind)
            for name, column, kind in zip(("id", *_NAMES), columns, types, strict=True)
        }
    )


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
