"""Split scores with data-free sensitivities, in exact integers.

Every criterion here is the smallest total loss of a region, ``L(S) = min_theta sum loss(y, theta)``
with ``0 <= loss <= M``. Adding a record then never lowers L and raises it by at most M, for any
region, any number of classes and any table (``docs/proofs/criteria.md``). A split's loss is the sum
over its children, of which a record reaches one. So the score ``-loss`` is *monotone*: a selection
needs only :attr:`Criterion.spread`, without a factor of two.

Floating point would break both properties (Casacuberta et al. 2022), so losses are integers in
units of ``1 / scale``. Where a logarithm is needed, its rounding error is bounded and the bound is
part of the spread. Regions hold fewer than 2^31 records.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import BudgetError

Integers = NDArray[np.int64]

#: Most records a table may hold, each of which counts once: products of two counts then fit in 64
#: bits. (Records that count several times would have to be fewer by the largest of these numbers.)
MAX_ROWS = 2**31 - 1

#: Gini has chords for at most this many classes, made by this many halvings.
MOST_CHORDED, HALVINGS = 2**10, range(5, 10)

#: Steps of the fixed-point grid on which a target's moments are summed.
TARGET_STEPS = 2**15


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class Criterion(ABC):
    """The loss of a region, as an integer, with a bound on what one record can change.

    Attributes
    ----------
    name : str
        What people call it.
    statistic : str
        What a region is described by: ``"class_counts"`` (one count per class), ``"moments"``
        (count, sum and sum of squares of a target in 0..2^15), or ``"target_counts"`` (one count
        per step of a target grid).
    needs : mapping from str to str
        The public numbers without which it cannot be made, and what they are.
    monotone : bool
        Whether adding a record never lowers the exact loss.
    rounded : bool
        Whether computed losses are off by rounding (within the spread), so that they may fall.
    scale : int
        Units per one: ``losses / scale`` is the loss in natural units.
    """

    name: ClassVar[str]
    statistic: ClassVar[str] = "class_counts"
    needs: ClassVar[Mapping[str, str]] = {}
    monotone: ClassVar[bool] = True
    rounded: ClassVar[bool] = False
    scale: int

    @classmethod
    def made_of(cls, public: Mapping[str, int]) -> Criterion:
        """Return the criterion for the public numbers that it needs."""
        del public
        return cls()

    @abstractmethod
    def losses(self, statistics: NDArray[Any]) -> Integers:
        """Return the loss of every region; the last axis of the input describes one region."""

    @property
    @abstractmethod
    def spread(self) -> int:
        """The most by which one added record can move the losses of two splits apart."""

    def check(self, classes: int) -> None:
        """Raise if this criterion is for another number of classes."""
        if getattr(self, "classes", classes) != classes:
            raise BudgetError("the criterion was made for another number of classes")

    def in_parts(self, parts: int) -> Criterion:
        """Return this criterion for counts of parts; a person has ``parts`` of them.

        Its spread is that of one part. Most are the same: twice the records have twice the loss.
        """
        del parts
        return self

    def as_min_of_linear(self, classes: int, halvings: int) -> MinOfLinear | None:
        """Return this criterion, or one close to it, as a :class:`MinOfLinear`, if there is one.

        The more halvings (:class:`GiniChords`), the closer.
        """
        del classes, halvings
        return None


#: The criteria that can be chosen by name.
CRITERIA: dict[str, type[Criterion]] = {}

Kind = TypeVar("Kind", bound=type[Criterion])


def register(kind: Kind) -> Kind:
    """Let a criterion be chosen by its name."""
    CRITERIA[kind.name] = kind
    return kind


def make_criterion(name: str, **public: int | None) -> Criterion:
    """Return the registered criterion of a name.

    Parameters
    ----------
    name : str
    **public : int or None
        Public numbers, such as ``classes`` and ``n_max``, of which it takes what it needs.

    Raises
    ------
    BudgetError
        If it needs one that is not known.
    """
    kind = CRITERIA[name]
    known = {need: number for need, number in public.items() if number is not None}
    for need, what in kind.needs.items():
        if need not in known:
            raise BudgetError(
                f"criterion={name!r} needs {need}, {what}; 'gini' and 'max' need none"
            )
    return kind.made_of(known)


class MinOfLinear(Criterion):
    """A loss that needs no more than sums and comparisons.

    So parties can compute it on counts that none of them has (``privet.federation.mpc``). It is a
    sum of terms. A term begins with the least of some linear forms of the class counts. A *halving*
    turns a number m, which is at most half of the records n, into the lesser of ``2 m`` and
    ``n - 2 m``. The term adds up m and the results of all h halvings, with weights
    ``4^h, ..., 4, 1``.

    Attributes
    ----------
    halvings : int
        How many there are.
    """

    halvings: int

    @abstractmethod
    def linear_forms(self, classes: int) -> Integers:
        """Return the coefficients, of shape (terms, linear forms of each, classes)."""

    def as_min_of_linear(self, classes: int, halvings: int) -> MinOfLinear:
        """See :class:`Criterion`."""
        del classes, halvings
        return self


@register
@dataclass(frozen=True)
class Gini(Criterion):
    """Records times Gini impurity: ``n - sum n_c^2 / n``. A record changes it by less than 2."""

    name: ClassVar[str] = "gini"
    scale: ClassVar[int] = 2**20  # type: ignore[misc]

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`. Exact floor of ``scale * loss``; a floor keeps monotonicity."""
        counts = np.asarray(statistics, dtype=np.int64)
        rows = counts.sum(axis=-1)
        divisor = np.maximum(rows, 1)
        whole, rest = np.divmod(rows * rows - (counts * counts).sum(axis=-1), divisor)
        return np.asarray(whole * self.scale + rest * self.scale // divisor)

    @property
    def spread(self) -> int:
        """``2 * scale``: the loss changes by 2N/(N+1) at most, and floors by its ceiling."""
        return 2 * self.scale

    def as_min_of_linear(self, classes: int, halvings: int) -> GiniChords | None:
        """See :class:`Criterion`. None for more classes than chords are made for."""
        return GiniChords(classes, halvings) if classes <= MOST_CHORDED else None


@dataclass(frozen=True)
class GiniChords(MinOfLinear):
    """Gini with chords for its curve.

    Gini is the sum over the classes of ``n p (1 - p)``, where p is a class's share. Here the curve
    ``p (1 - p)`` is replaced by its chords between even shares: ``D = 2^(halvings + 1)`` of them.
    No chord is lower than the curve by more than ``1 / (2 D)^2``; on a chord, which is straight, a
    split gains nothing.

    Halvings find it: of the share p of a class, the lesser of p and 1 - p times a half is the curve
    in two chords, and what is above them looks the same over either half, at a quarter of the size.

    Parameters
    ----------
    classes : int
        The number of classes.
    halvings : int
        From 5 to 9: 64 to 1024 chords.
    """

    name: ClassVar[str] = "gini in chords"
    classes: int
    halvings: int

    def __post_init__(self) -> None:
        if not _is_whole(self.classes) or not 1 <= self.classes <= MOST_CHORDED:
            raise BudgetError(f"classes must be a whole number, at most {MOST_CHORDED}")
        if not _is_whole(self.halvings) or self.halvings not in HALVINGS:
            raise BudgetError(f"halvings must be {HALVINGS[0]} to {HALVINGS[-1]}")

    @property
    def _chords(self) -> int:
        return 2 << int(self.halvings)

    @property
    def _alike(self) -> int:
        """How many classes a term stands for: the two terms of two classes are equal."""
        return 2 if self.classes == 2 else 1

    @property
    def scale(self) -> int:  # type: ignore[override]
        """See :class:`Criterion`."""
        return self._chords**2 // (2 * self._alike)

    def linear_forms(self, classes: int) -> Integers:
        """See :class:`MinOfLinear`. The records of a class, and all others."""
        self.check(classes)
        own = np.eye(classes, dtype=np.int64)[: classes // self._alike]
        return np.stack([own, 1 - own], axis=1)

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`."""
        counts = np.asarray(statistics, dtype=np.int64)
        self.check(counts.shape[-1])
        rows = counts.sum(axis=-1, keepdims=True)
        own = counts[..., : counts.shape[-1] // self._alike]
        found = np.minimum(own, rows - own)
        total = found.copy()
        for _ in range(int(self.halvings)):
            found = np.minimum(2 * found, rows - 2 * found)
            total = 4 * total + found
        return np.asarray(total.sum(axis=-1))

    @property
    def spread(self) -> int:
        """``D (D - 1)``, and half of that for two classes: a little less than two, as of Gini."""
        return self._chords * (self._chords - 1) // self._alike


@register
@dataclass(frozen=True)
class Max(MinOfLinear):
    """Records outside the majority: ``n - max n_c``. A record changes it by 0 or 1."""

    name: ClassVar[str] = "max"
    halvings: ClassVar[int] = 0  # type: ignore[misc]
    scale: ClassVar[int] = 1  # type: ignore[misc]

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`."""
        counts = np.asarray(statistics, dtype=np.int64)
        return np.asarray(counts.sum(axis=-1) - counts.max(axis=-1))

    def linear_forms(self, classes: int) -> Integers:
        """See :class:`MinOfLinear`."""
        return 1 - np.eye(classes, dtype=np.int64)[None]

    @property
    def spread(self) -> int:
        """1."""
        return 1


#: Units per bit of the entropies, and a bound on the rounding error of one computed term
#: ``x log2 x``, in units: with x < 2^31 it is below 2^36, whose ulp is 2^-17, half a unit. The
#: logarithm is off by 4 ulp at most, product and sum by less than 3, rounding by half a unit.
_ENTROPY_SCALE = 2**16
_TERM_ERROR = 5


@register
@dataclass(frozen=True)
class Entropy(Criterion):
    """Records times entropy, in bits, with a public bound on the size of a region.

    The paper's InfoGain. The loss is ``F(n) - sum F(n_c)`` with ``F(x) = x log2 x`` up to
    ``n_max`` and continued by its last step beyond. F is convex and its steps lie in
    ``[0, F(n_max) - F(n_max - 1)]``, so the bound on the change holds for *every* table: a table
    larger than ``n_max`` costs accuracy, never privacy.

    Parameters
    ----------
    n_max : int
        Public bound on the number of records. The spread grows as its logarithm.
    parts : int, default=1
        With counts of parts of persons: ``F(x) = x log2 max(x / parts, 1)``, and ``n_max`` bounds
        the persons, so that the spread does not grow with the parts.
    """

    name: ClassVar[str] = "entropy"
    needs: ClassVar[Mapping[str, str]] = {"n_max": "a public bound on the rows"}
    rounded: ClassVar[bool] = True
    scale: ClassVar[int] = _ENTROPY_SCALE  # type: ignore[misc]
    n_max: int
    parts: int = 1

    def __post_init__(self) -> None:
        if not _is_whole(self.n_max):
            raise BudgetError("n_max must be a whole number: a public bound on the rows")
        if not 2 <= self.n_max * self.parts <= MAX_ROWS:
            raise BudgetError(f"n_max must lie between 2 and {MAX_ROWS // self.parts}")

    @classmethod
    def made_of(cls, public: Mapping[str, int]) -> Entropy:
        """See :class:`Criterion`."""
        return cls(public["n_max"])

    def in_parts(self, parts: int) -> Entropy:
        """See :class:`Criterion`."""
        return self if parts == 1 else Entropy(self.n_max, parts)

    @property
    def _last(self) -> int:
        """Up to where F is curved."""
        return int(self.n_max) * self.parts

    @property
    def _last_step(self) -> float:
        last, parts = self._last, self.parts
        return last * math.log2(last / parts) - (last - 1) * math.log2(max((last - 1) / parts, 1))

    def _terms(self, counts: Integers) -> Integers:
        inside = np.minimum(counts, self._last).astype(np.float64)
        terms = inside * np.log2(np.maximum(inside / self.parts, 1.0))
        terms += np.maximum(counts - self._last, 0) * self._last_step
        return np.rint(terms * self.scale).astype(np.int64)

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`."""
        counts = np.asarray(statistics, dtype=np.int64)
        return np.asarray(self._terms(counts.sum(axis=-1)) - self._terms(counts).sum(axis=-1))

    @property
    def spread(self) -> int:
        """The last step of F, and the rounding of the four terms that a record changes, twice."""
        return math.ceil(self._last_step * self.scale) + 1 + 8 * _TERM_ERROR


@register
@dataclass(frozen=True)
class ClippedEntropy(Criterion):
    """Records times cross entropy to the best class shares that are all at least ``floor``.

    Needs no bound on the rows: no record costs more than ``log2(1 / floor)`` bits.

    Parameters
    ----------
    floor : float, default=0.02
        Smallest share; ``classes * floor`` must not exceed one.
    classes : int, default=2
        The number of classes.
    """

    name: ClassVar[str] = "clipped_entropy"
    needs: ClassVar[Mapping[str, str]] = {"classes": "the number of classes"}
    rounded: ClassVar[bool] = True
    scale: ClassVar[int] = _ENTROPY_SCALE  # type: ignore[misc]
    floor: float = 0.02
    classes: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.floor, float) or not 2.0**-30 <= self.floor <= 0.5:
            raise BudgetError("floor must be a share between 2^-30 and 0.5")
        if not _is_whole(self.classes) or self.classes < 1:
            raise BudgetError("classes must be a whole number, at least 1")
        if self.classes * self.floor > 1:
            raise BudgetError("the floor is too high for that many classes")

    @classmethod
    def made_of(cls, public: Mapping[str, int]) -> ClippedEntropy:
        """See :class:`Criterion`. The floor is two per cent, and half of an even share at most."""
        classes = public["classes"]
        return cls(min(0.02, 0.5 / classes), classes)

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`."""
        counts = np.asarray(statistics, dtype=np.float64)
        classes = counts.shape[-1]
        self.check(classes)
        # Classes in falling order; if the j largest are above the floor, they share what the
        # others leave, in proportion. The right j is the one of least loss among the feasible ones.
        ordered = -np.sort(-counts, axis=-1)
        rows = ordered.sum(axis=-1)
        heads = np.cumsum(ordered, axis=-1)
        best = np.full(rows.shape, np.inf)
        bits = -math.log2(self.floor)
        entropy_part = np.cumsum(ordered * np.log2(np.maximum(ordered, 1.0)), axis=-1)
        for j in range(classes):
            share = 1.0 - self.floor * (classes - 1 - j)
            head = heads[..., j]
            loss = (
                (rows - head) * bits
                + head * np.log2(np.maximum(head, 1.0))
                - entropy_part[..., j]
                - head * math.log2(share)
            )
            # The first is always feasible, also where rounding denies it (floor = 1 / classes).
            feasible = (ordered[..., j] * share >= self.floor * head) | (j == 0)
            best = np.where(feasible & (loss < best), loss, best)
        return np.asarray(np.rint(best * self.scale), dtype=np.int64)

    @property
    def spread(self) -> int:
        """``log2(1 / floor)`` bits, and the rounding error of two losses before and after.

        A loss has four terms below 2^36 besides a running sum over the classes, each off by at
        most 4 ulp of half a unit, and the sum by half a unit per class.
        """
        error = 12 + int(self.classes)
        return math.ceil(-math.log2(self.floor) * self.scale) + 1 + 4 * error


@register
@dataclass(frozen=True)
class SSE(Criterion):
    """Sum of squared distances to the mean of a target on the grid 0..2^15.

    Regions are described by (count, sum, sum of squares). A record changes the loss by at most the
    squared width of the grid.
    """

    name: ClassVar[str] = "sse"
    statistic: ClassVar[str] = "moments"
    scale: ClassVar[int] = TARGET_STEPS**2  # type: ignore[misc]

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`. Exact floor of ``Q - S^2 / n`` in 64-bit integers."""
        moments = np.asarray(statistics, dtype=np.int64)
        rows, total, squares = moments[..., 0], moments[..., 1], moments[..., 2]
        divisor = np.maximum(rows, 1)
        mean, rest = np.divmod(total, divisor)
        # S^2 / n = n mean^2 + 2 mean rest + rest^2 / n, and floor(-x) = -ceil(x).
        fraction = -(-(rest * rest) // divisor)
        return np.asarray(squares - rows * mean * mean - 2 * mean * rest - fraction)

    @property
    def spread(self) -> int:
        """The squared width of the target's grid."""
        return TARGET_STEPS**2


@register
@dataclass(frozen=True)
class SAD(Criterion):
    """Sum of absolute distances to the median of a target on a grid.

    Regions are described by the number of records at each of ``steps + 1`` grid values.

    Parameters
    ----------
    steps : int
        The width of the grid: values are 0..steps.
    """

    name: ClassVar[str] = "sad"
    statistic: ClassVar[str] = "target_counts"
    needs: ClassVar[Mapping[str, str]] = {"steps": "the width of the target's grid"}
    steps: int = 255

    def __post_init__(self) -> None:
        if not _is_whole(self.steps) or not 1 <= self.steps <= 2**16:
            raise BudgetError("steps must be a whole number between 1 and 65536")

    @classmethod
    def made_of(cls, public: Mapping[str, int]) -> SAD:
        """See :class:`Criterion`."""
        return cls(public["steps"])

    @property
    def scale(self) -> int:  # type: ignore[override]
        """The width of the target is ``steps`` units."""
        return int(self.steps)

    def losses(self, statistics: NDArray[Any]) -> Integers:
        """See :class:`Criterion`. Between neighbouring values, min(left, right) records differ."""
        counts = np.asarray(statistics, dtype=np.int64)
        if counts.shape[-1] != self.steps + 1:
            raise BudgetError("the criterion was made for another grid of the target")
        left = np.cumsum(counts, axis=-1)[..., :-1]
        right = counts.sum(axis=-1)[..., None] - left
        return np.asarray(np.minimum(left, right).sum(axis=-1))

    @property
    def spread(self) -> int:
        """The width of the target's grid."""
        return int(self.steps)
