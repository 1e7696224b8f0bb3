"""A schema that is paid for: bounds and lists of a table, found behind the wall.

Two questions about the whole table: noisy histograms of magnitudes and noisy counts of texts, and
noisy histograms of eighths of magnitudes. What leaves are these histograms, and the texts whose
noisy counts reach a public threshold; bounds follow from the outermost frequent cells.
Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import NormalDist
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privet.engines import RawCounts
from privet.errors import (
    BudgetError,
    ColumnTypeError,
    DataError,
    LedgerFileError,
    PrivacyLeakWarning,
    SchemaError,
    UnsettledWarning,
)
from privet.grids import Magnitudes
from privet.kinds import KINDS, Kinds
from privet.privacy import (
    Budget,
    DiscoveryNoise,
    Exact,
    Ledger,
    LedgerStore,
    Noise,
    Place,
    Released,
    Threshold,
    as_written,
    discovery_budget,
    exact,
    noise_of,
)
from privet.privacy.budget import Amount
from privet.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privet.reading import Source, Stream, stream_of
from privet.schema import (
    LARGEST_WHOLE,
    MAX_BINS,
    Categorical,
    Date,
    Discovered,
    Feature,
    Integer,
    Numeric,
    Schema,
    Value,
)
from privet.visible import quoted

#: The probability, at most, that noise alone makes any cell of magnitudes frequent: anywhere, where
#: it makes an absurd bound, and next to one that is frequent, where it does little harm.
FAR, NEAR = 0.01, 0.05
#: The same for one eighth of an outermost cell, where it does no harm: a bound stays wider.
WITHIN = 0.02
#: The part of a column's records, at most, that noise may hide in what is cut off from a bound.
MOST_CUT = 1 / 8
#: If the records are this many times the threshold, or more, magnitudes are told apart by powers of
#: two under a pure budget; with fewer, or if nobody says how many there are, by powers of four.
PLENTY = 12


class NothingFoundError(SchemaError):
    """A discovery was paid for, and found too little to make a schema of."""


def discover(
    source: Any,
    kinds: Kinds,
    epsilon: float,
    delta: float | None = None,
    *,
    ledger: Any = None,
    random_state: Any = None,
) -> Schema:
    """Find bounds and lists in a table, privately; see :meth:`privet.Schema.discover`."""
    if not isinstance(kinds, Kinds):
        raise SchemaError("kinds must be Kinds; read them with Kinds.from_toml(path)")
    store = _store(ledger)
    plan = DiscoveryPlan.of(kinds, epsilon, delta, None if store is None else store.budget)
    counts = _counted(source, plan)
    try:
        books = Ledger(plan.budget)
        reservation = None
        if store is not None:
            reservation = store.reserve(
                plan.budget,
                f"Schema.discover on {kinds.target!r}",
                columns=[*kinds.columns] + ([] if kinds.unit is None else [kinds.unit]),
                table=kinds.table,
                kinds=kinds.listed,
            )
        for question, mechanism in plan.noise.questions:
            books.charge(books.root, mechanism, question, Place())
        found = _ask(counts, plan, noise_of(random_state))
        if reservation is not None:
            try:
                reservation.settle(books.total, books.entries)
            except LedgerFileError:
                warnings.warn(
                    "the ledger file could not be written (is its disk full?), so it counts all "
                    "that was reserved; the schema is not affected",
                    UnsettledWarning,
                    stacklevel=3,
                )
    finally:
        counts.close()
    leak = _leak(plan.budget, random_state)
    if leak is not None:
        warnings.warn(leak, PrivacyLeakWarning, stacklevel=3)
    return plan.schema(found, drafted=leak is not None)


def repeated_discovery(source: Any, plan: DiscoveryPlan) -> Callable[[Noise], Found]:
    """Return what a discovery lets out by any source of noise, without books: for audits."""
    return partial(_ask, _counted(source, plan), plan)


@dataclass(frozen=True)
class Found:
    """What left: noisy counts of magnitudes, of eighths of them, and of frequent texts."""

    cells: dict[str, list[int]]
    eighths: dict[str, list[int]]
    texts: dict[str, dict[str, int]]


@dataclass(frozen=True)
class DiscoveryPlan:
    """What is asked, with which noise and thresholds: all of it public."""

    kinds: Kinds
    numbers: tuple[str, ...]
    lists: tuple[str, ...]
    epsilon: float
    delta: float
    gaussian: bool
    magnitudes: Magnitudes

    @classmethod
    def of(
        cls, kinds: Kinds, epsilon: float, delta: float | None, payer: Budget | None
    ) -> DiscoveryPlan:
        """Decide on the noise by public things alone, or say what is missing."""
        lists = tuple(name for name in kinds.unknown if kinds.kind_of(name) == "category")
        numbers = tuple(name for name in kinds.unknown if name not in lists)
        if not kinds.unknown:
            raise SchemaError(
                "the kinds say all that a schema needs, so that there is nothing to pay for: make "
                "it with Kinds.schema()"
            )
        given = _rounded_down(exact(epsilon))
        small = 0.0 if not delta else _rounded_down(exact(delta, "delta"))
        if small >= 1:
            raise BudgetError("delta must be below 1 (and far below one over the rows)")
        if lists and not small:
            raise BudgetError(
                f"which categories column {quoted(lists[0])} has can only be found with a delta: "
                "give delta (--delta), or list the values in the kinds"
            )
        pure, zcdp = (
            cls(kinds, numbers, lists, given, small, gaussian, Magnitudes())
            for gaussian in (False, True)
        )
        if payer is not None:
            gaussian = payer.accountant != "pure" and bool(small)
        else:
            gaussian = bool(small) and given < math.inf and zcdp._height < pure._height
        if gaussian:
            return zcdp
        plenty = kinds.n_rows is not None and kinds.n_rows >= PLENTY * pure.least / kinds.parts
        octaves = 1 if plenty else 2
        # Without lists a pure discovery spends no delta.
        return cls(
            kinds, numbers, lists, given, small if lists else 0.0, False, Magnitudes(octaves)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which bounds or lists are found."""
        return (*self.numbers, *self.lists)

    @property
    def budget(self) -> Budget:
        """All that may be spent."""
        return discovery_budget(
            self.epsilon, self.delta, gaussian=self.gaussian, lists=len(self.lists)
        )

    @cached_property
    def noise(self) -> DiscoveryNoise:
        """The noise of all counts."""
        return DiscoveryNoise(
            self.budget, len(self.columns), len(self.lists), parts=self.kinds.parts
        )

    def _reached(
        self, noise: DiscreteLaplace | DiscreteGaussian, chance: float, counts: int = 1
    ) -> int:
        """Return what noise alone reaches with a given probability, in parts.

        In one count, or in the sum of two.
        """
        if self.gaussian:
            height = math.sqrt(counts) * noise.scale * NormalDist().inv_cdf(1 - chance)
        else:
            # In scales: P(one >= t) is at most exp(-t) / 2, P(sum of two >= t) (2 + t) exp(-t) / 4.
            one = scales = math.log(1 / (2 * chance))
            for _ in range(50 if counts == 2 else 0):
                scales = one + math.log1p(scales / 2)
            height = noise.scale * scales
        return max(1, math.ceil(height))

    def _reached_in(self, cells: int, chance: float, counts: int = 1) -> int:
        """Return the same for any of some cells of magnitudes of each column."""
        mechanism = self.noise.counts
        noise = mechanism.noise if isinstance(mechanism, Threshold) else mechanism
        return self._reached(noise, chance / (cells * len(self.columns)), counts)

    @property
    def least(self) -> int:
        """The least noisy count, in parts, with which a cell of magnitudes counts as frequent."""
        return self._reached_in(self.magnitudes.size, FAR / 2)

    @property
    def least_of_two(self) -> int:
        """The same for two neighbouring cells together, neither of which is frequent alone."""
        return self._reached_in(self.magnitudes.size, FAR / 2, 2)

    @property
    def least_near(self) -> int:
        """The same next to a frequent cell: two on either side are at risk."""
        return self._reached_in(4, NEAR)

    @property
    def least_of_eighth(self) -> int:
        """The same for one eighth within the outermost cells."""
        assert self.noise.eighths is not None
        return self._reached(self.noise.eighths, WITHIN)

    @property
    def _height(self) -> int:
        """What a value needs to be found: by which the noises are compared."""
        counts = self.noise.counts
        return counts.least if isinstance(counts, Threshold) else self.least

    def frequent(self, counts: list[int]) -> list[int]:
        """Return the outermost frequent cells of a column, or those beside them that nearly are.

        Of two neighbours that are frequent together the larger one counts.
        """
        alone = [count >= self.least for count in counts]
        cells = [cell for cell, known in enumerate(alone) if known]
        for cell in range(len(counts) - 1):
            pair = counts[cell : cell + 2]
            if not any(alone[cell : cell + 2]) and sum(pair) >= self.least_of_two:
                cells.append(cell + (pair[1] > pair[0]))
        if not cells:
            return []
        first, last = min(cells), max(cells)
        while first > 0 and counts[first - 1] >= self.least_near:
            first -= 1
        while last + 1 < len(counts) and counts[last + 1] >= self.least_near:
            last += 1
        return [first, last]

    def bounds(self, cells: list[int], eighths: list[int]) -> tuple[float, float] | None:
        """Return the bounds of a column by what is frequent of it; None if nothing is.

        Eighths of an outermost cell are cut off from the outside, as long as none is frequent, nor
        all of them together, which they are at :data:`MOST_CUT` of the column at the latest; none
        if noise could hide as much in one, or if none of the cell is frequent.
        """
        frequent = self.frequent(cells)
        if not frequent:
            return None
        low, high = self.magnitudes.bounds(frequent[0], frequent[-1])
        each = self.magnitudes.eighths_each
        first, last = (
            range(each * cell, each * (cell + 1)) for cell in (frequent[0], frequent[-1])
        )
        most = MOST_CUT * sum(cells[frequent[0] : frequent[-1] + 1])
        lowest, highest = (self._first_of(some, eighths, most) for some in (first, last[::-1]))
        if lowest is not None:
            low = self.magnitudes.ends_of_eighth(lowest)[0]
        if highest is not None:
            high = self.magnitudes.ends_of_eighth(highest)[1]
        return low, high

    def _first_of(self, some: range, eighths: list[int], most: float) -> int | None:
        """Return the first of some eighths that is frequent, or is so with those before it."""
        total, one = 0, self.least_of_eighth
        if one > most:
            return some[0]
        for number, eighth in enumerate(some, 1):
            total += eighths[eighth]
            if eighths[eighth] >= one or total >= min(math.sqrt(number) * one, most):
                return eighth
        return None

    def schema(self, found: Found, *, drafted: bool) -> Schema:
        """Return the schema of what was found; a column without anything is left out."""
        features: dict[str, Feature | None] = {
            name: self._number(name, self.bounds(counts, found.eighths[name]))
            for name, counts in found.cells.items()
        }
        most = MAX_BINS
        paid = None  # a draft promises nothing
        if not drafted:
            paid = Discovered(
                self.epsilon,
                self.delta,
                "gaussian" if self.gaussian else "laplace",
                len(self.columns),
                len(self.lists),
                self.kinds.parts,
            )
        while True:
            for name, counts in found.texts.items():
                features[name] = _category(counts, most)
            schema = self._assembled(features, paid, drafted=drafted)
            try:
                schema.toml()
            except SchemaError:  # more than a file holds: the most frequent ones are kept
                most //= 2
                continue
            break
        empty = [name for name in self.columns if features[name] is None]
        if empty:
            warnings.warn(
                f"in {len(empty)} columns nothing was frequent enough to be found, so that the "
                f"schema leaves them out: {', '.join(map(quoted, sorted(empty)[:10]))}; say what "
                "is public of them in the kinds, or spend more",
                UserWarning,
                stacklevel=4,
            )
        return schema

    def _number(self, name: str, bounds: tuple[float, float] | None) -> Feature | None:
        if bounds is None:
            return None
        low, high = bounds
        if self.kinds.kind_of(name) == "number":
            return Numeric(low, high) if low < high else Numeric(low, low + 1)
        return _whole(KINDS[self.kinds.kind_of(name)], low, high)

    def _assembled(
        self, features: dict[str, Feature | None], paid: Discovered | None, *, drafted: bool
    ) -> Schema:
        target = features.get(self.kinds.target, self.kinds.columns[self.kinds.target])
        left = [
            name
            for name in self.kinds.columns
            if name != self.kinds.target and features.get(name, True) is not None
        ]
        if not left:
            _found_nothing("no column but the target has anything")
        if target is None or (isinstance(target, Categorical) and len(target.values) < 2):
            _found_nothing(f"the target {quoted(self.kinds.target)} has too little")
        return replace(self.kinds.schema(features), drafted=drafted, discovered=paid)


def _ask(counts: RawCounts, plan: DiscoveryPlan, noise: Noise) -> Found:
    """Draw the noise of all counts, and let out which of them reach their thresholds.

    Privacy
    -------
    A person has at most Q parts in every column, hence moves the counts of magnitudes and texts by
    at most dQ in absolute sum and dQ^2 in squares, and those of the eighths of n columns by nQ and
    nQ^2; texts that nobody else has stay below the threshold but for delta. Charged before this is
    called.
    """
    mechanism = plan.noise.counts
    released = _released(mechanism, counts.histograms, noise)
    cells = {name: released[place].tolist() for place, name in enumerate(plan.numbers)}
    texts: dict[str, dict[str, int]] = {}
    for place, name in enumerate(plan.lists):
        assert isinstance(mechanism, Threshold)
        texts[name] = dict(_frequent(counts, place, mechanism, noise))
    eighths: dict[str, list[int]] = {}
    if plan.noise.eighths is not None:
        finer = _released(plan.noise.eighths, counts.eighths, noise)
        eighths = {name: finer[place].tolist() for place, name in enumerate(plan.numbers)}
    return Found(cells, eighths, texts)


def _released(
    mechanism: DiscreteLaplace | DiscreteGaussian | Threshold,
    counts: NDArray[np.int64],
    noise: Noise,
) -> Released:
    return mechanism.release(Exact(counts), noise)


def _frequent(
    counts: RawCounts, place: int, mechanism: Threshold, noise: Noise
) -> Iterator[tuple[str, int]]:
    """Yield the texts of a column whose noisy counts reach the threshold, in their order."""
    for texts, exact_counts in counts.texts(place):
        released = _released(mechanism, exact_counts, noise)
        for where in np.flatnonzero(released >= mechanism.least).tolist():
            yield texts[where], int(released[where])


def _counted(source: Any, plan: DiscoveryPlan) -> RawCounts:
    """Count a table behind the wall, batch by batch."""
    schema = plan.kinds.readable
    counts = RawCounts(plan.numbers, plan.lists, plan.magnitudes, schema)
    try:
        for columns in _stream(source, schema):
            counts.add(columns)
    except BaseException:
        counts.close()
        raise
    return counts


def _stream(source: Any, schema: Schema) -> Stream:
    if isinstance(source, str | Path):
        source = Source(source)
    if isinstance(source, Source):
        if source.engine is not None or source.directory is not None:
            raise DataError("a discovery reads files by itself: leave out engine and directory")
        return source.open(schema)
    if isinstance(source, np.ndarray | list | tuple):
        raise DataError(
            "a discovery needs a table with named columns: a dataframe, a file or a stream"
        )
    return stream_of(source, schema)


def _store(ledger: Any) -> LedgerStore | None:
    if ledger is None or isinstance(ledger, LedgerStore):
        return ledger
    if isinstance(ledger, str | Path):
        return LedgerStore(Path(ledger))
    raise ColumnTypeError("ledger must be the path of a ledger file, or a LedgerStore")


def _leak(budget: Budget, random_state: Any) -> str | None:
    """Return why a discovery is not private, if it is not."""
    if random_state is not None:
        return "random_state is fixed, so the schema is a draft: it protects nobody"
    if budget.limit == math.inf:
        return "epsilon is infinite, so there is no noise at all, and the schema is a draft"
    return None


def _rounded_down(amount: Amount) -> float:
    """Return the largest float that, as it is written, is not above an amount."""
    nearest = float(amount)
    return nearest if as_written(nearest) <= amount else math.nextafter(nearest, 0.0)


def _whole(kind: type[Feature], low: float, high: float) -> Feature:
    """Return a whole number or a day with at least two values within bounds of magnitudes.

    The upper end of a cell belongs to the next one.
    """
    least = math.ceil(low)
    most = math.ceil(high) - 1 if high > 0 else math.floor(high)
    if kind is Date:
        # Days of the years 1 to 9999.
        least, most = (min(max(day, -719_162), 2_932_896) for day in (least, most))
        least = min(least, 2_932_895)
        return Date(least, max(most, least + 1))
    least, most = (min(max(each, -LARGEST_WHOLE), LARGEST_WHOLE) for each in (least, most))
    least = min(least, LARGEST_WHOLE - 1)
    return Integer(least, max(most, least + 1))


def _category(counts: dict[str, int], most: int) -> Categorical | None:
    """Return the list of found texts in their order; the most frequent ones if there are many."""
    if not counts:
        return None
    frequent = set(sorted(counts, key=lambda text: (-counts[text], text))[:most])
    texts = [text for text in counts if text in frequent]
    values: list[Value] = [*texts]
    if all(_spells_whole(text) for text in texts):  # of what left, hence for free
        values = [int(text) for text in texts]
    return Categorical(values)


def _spells_whole(text: str) -> bool:
    """Tell whether a text is that of a small whole number, in its one way of writing."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 16 and str(int(text)) == text


def _found_nothing(what: str) -> NoReturn:
    raise NothingFoundError(
        f"{what} frequent enough to be found, so that there is no schema; what was spent stays "
        "spent. Say what is public in the kinds, or spend more"
    )
