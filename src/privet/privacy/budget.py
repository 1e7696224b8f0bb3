"""Amounts of privacy loss as exact values: what an answer costs, and what may be spent.

Adjacency is fixed for the whole library: two tables are neighbours if one has *one record more*
(add/remove; the number of records is private). Replacing a record is one removal and one addition,
hence costs at most twice; :data:`REPLACE_ONE_FACTOR` says so where costs are reported. Parallel
composition over disjoint cells is true for add/remove only, which is why there is no choice.

Amounts are fractions, so that shares of a budget add up to it exactly. The one float is infinity:
it means "no guarantee" in a cost and "no noise" in a budget. A float that is given, or comes back,
is the decimal that people write for it (:func:`as_written`): 0.1 is a tenth, so that 0.1 and 0.9
are 1. What becomes a float again is rounded to the private side (docs/proofs/ledger.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privet.errors import BudgetError

#: An exact amount; the only float in use is infinity.
Amount = Fraction | float

ADJACENCY = "add/remove one record"
#: And with a unit: all records of one person, by the column that says whose they are.
PERSONS = "add/remove all records of one"
REPLACE_ONE_FACTOR = 2


def as_written(value: float) -> Amount:
    """Return a float as the shortest decimal that stands for it, exactly: 0.1 as 1/10.

    Examples
    --------
    >>> as_written(0.1) + as_written(0.9) == 1, 0.1 == Fraction(1, 10)
    (True, False)
    """
    return value if math.isinf(value) else Fraction(repr(float(value)))


def exact(value: Any, what: str = "epsilon") -> Amount:
    """Return a positive amount as an exact fraction (or infinity), or say what is wrong with it.

    This is where all amounts enter: a float is read as it is written.
    """
    number = _positive(value, what)
    return as_written(number) if isinstance(number, float) else Fraction(number)


def exact_bound(value: Any, what: str) -> Amount:
    """Return a sensitivity in the same way, but no less than the double that holds it."""
    number = _positive(value, what)
    return at_least(number) if isinstance(number, float) else Fraction(number)


def at_least(value: float) -> Amount:
    """Return the larger of what a float holds and what is written for it.

    For what was spent, or may change, by numbers of which it is not known how they were meant.
    """
    return value if math.isinf(value) else max(as_written(value), Fraction(value))


def _positive(value: Any, what: str) -> int | float | Fraction | Decimal:
    if not isinstance(value, int | float | Fraction | Decimal):
        try:
            value = value.item()  # numpy scalars
        except (AttributeError, TypeError, ValueError):
            raise BudgetError(f"{what} must be a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise BudgetError(f"{what} must be a number")
    if (isinstance(value, float) and math.isnan(value)) or (
        isinstance(value, Decimal) and value.is_nan()
    ):
        raise BudgetError(f"{what} must not be NaN")
    if value <= 0:
        raise BudgetError(f"{what} must be positive")
    return math.inf if value == math.inf else value


@dataclass(frozen=True)
class Cost:
    """What one record loses by one answer, in both accountants.

    ``epsilon`` bounds pure differential privacy (infinite for Gaussian noise), ``rho`` bounds
    zero-concentrated differential privacy. Costs add up along a record's path. Both hold except
    with probability ``delta``, which only a threshold spends (docs/proofs/discovery.md).
    """

    epsilon: Amount
    rho: Amount
    delta: Amount = Fraction(0)

    @classmethod
    def pure(cls, epsilon: Amount) -> Cost:
        """Cost of any epsilon-DP answer (Bun & Steinke 2016: rho = epsilon^2 / 2)."""
        return cls(epsilon, epsilon * epsilon / 2)

    @classmethod
    def bounded_range(cls, epsilon: Amount) -> Cost:
        """Cost of an exponential mechanism (Cesar & Rogers 2021: rho = epsilon^2 / 8)."""
        return cls(epsilon, epsilon * epsilon / 8)

    @classmethod
    def zcdp(cls, rho: Amount) -> Cost:
        """Cost of an answer that is rho-zCDP and has no pure guarantee."""
        return cls(math.inf, rho)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)

    def of_group(self, records: int) -> Cost:
        """Return the cost for tables that differ by several records (Bun & Steinke 2016).

        A threshold's delta is about what one record has alone: for more, none is known.
        """
        delta = math.inf if self.delta else self.delta
        return Cost(self.epsilon * records, self.rho * records**2, delta)


NOTHING = Cost(Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Budget:
    """How much may be spent: pure epsilon, rho-zCDP, or (epsilon, delta) through zCDP.

    Parameters
    ----------
    epsilon : float or Fraction, optional
        With ``delta`` not given: a pure budget. ``inf`` means no noise and no guarantee. A float is
        the decimal that is written for it: 0.1 is a tenth.
    delta : float or Fraction, optional
        With ``epsilon``: an approximate budget, accounted for in zCDP.
    rho : float or Fraction, optional
        A zCDP budget.
    either : bool, default=False
        With ``epsilon`` and ``delta``: whether it covers what adds up to ``epsilon`` in the pure
        accountant as well, so that the answers may decide in which of the two it is spent
        (docs/proofs/ledger.md). Shares of it are still amounts of zCDP.
    threshold_delta : float or Fraction, default=0
        What thresholds may spend, in either accountant, on lists of categories that are found in
        the data. It adds to ``delta``.

    Examples
    --------
    >>> Budget(1.0).accountant
    'pure'
    >>> Budget(0.1).limit + Budget(0.9).limit == Budget(1.0).limit
    True
    >>> round(float(Budget(1.0, delta=1e-6).limit), 4)
    0.0244
    """

    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    either: bool = False
    threshold_delta: Amount = Fraction(0)

    def __post_init__(self) -> None:
        if self.threshold_delta:
            spent = exact(self.threshold_delta, "the delta of thresholds")
            if spent >= 1:
                raise BudgetError("the delta of thresholds must be below 1, and far below it")
            object.__setattr__(self, "threshold_delta", spent)
        if self.either and self.delta is None:
            raise BudgetError("only a budget with epsilon and delta can be spent in either way")
        if (self.epsilon is None) == (self.rho is None):
            raise BudgetError("give epsilon, or epsilon and delta, or rho")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", exact(self.epsilon))
        if self.rho is not None:
            object.__setattr__(self, "rho", exact(self.rho, "rho"))
            if self.delta is not None:
                raise BudgetError("a rho budget has no delta; give epsilon and delta instead")
        if self.delta is not None:
            delta = exact(self.delta, "delta")
            if delta >= 1:
                raise BudgetError("delta must be below 1 (and far below one over the rows)")
            if self.epsilon == math.inf:
                raise BudgetError("an infinite epsilon needs no delta")
            if not float_below(delta):
                raise BudgetError("delta is too small for a number; leave it out")
            object.__setattr__(self, "delta", delta)

    @property
    def accountant(self) -> str:
        """``"pure"`` or ``"zCDP"``: whether epsilons or rhos are added up."""
        return "pure" if self.delta is None and self.rho is None else "zCDP"

    @property
    def limit(self) -> Amount:
        """The budget in the accountant's amounts."""
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        if self.delta is None:
            return self.epsilon
        return _rho_of(float(self.epsilon), float_below(self.delta))

    def amount(self, cost: Cost) -> Amount:
        """Return the part of a cost that this budget counts."""
        return cost.epsilon if self.accountant == "pure" else cost.rho

    def covers(self, cost: Cost) -> bool:
        """Tell whether a cost is within the budget."""
        if cost.delta > self.threshold_delta:
            return False
        if self.amount(cost) <= self.limit:
            return True
        return self.either and self.epsilon is not None and cost.epsilon <= self.epsilon

    @property
    def worst(self) -> Cost:
        """The most that may be spent within it, in both accountants."""
        if self.accountant == "pure":
            found = Cost.pure(self.limit)
        elif not self.either:
            found = Cost.zcdp(self.limit)
        else:
            assert self.epsilon is not None
            found = Cost.zcdp(max(self.limit, Cost.pure(self.epsilon).rho))
        return replace(found, delta=self.threshold_delta)

    def selection_epsilon(self, amount: Amount) -> Amount:
        """Return the epsilon of an exponential mechanism that costs ``amount`` of this budget.

        In zCDP that is ``sqrt(8 amount)``, rounded down.
        """
        if self.accountant == "pure" or amount == math.inf:
            return amount
        root = Fraction(math.sqrt(8 * amount))
        while root * root > 8 * amount:
            root = Fraction(math.nextafter(float(root), 0.0))
        return root

    def count_scale(self, amount: Amount) -> float:
        """Return the scale of the noise of counts that cost ``amount`` of this budget."""
        if amount == math.inf:
            return 0.0
        return float(1 / amount) if self.accountant == "pure" else math.sqrt(1 / (2 * amount))

    def as_epsilon(self, cost: Cost) -> float:
        """Return the epsilon that a cost stands for, at this budget's delta."""
        if self.accountant == "pure":
            return as_float(cost.epsilon)
        if self.delta is None:
            return math.inf if cost.rho else 0.0
        assert self.epsilon is not None
        found = zcdp_epsilon(float_above(cost.rho), float_below(self.delta))
        # The search may end slightly too high for a smaller rho: within the limit, epsilon holds.
        found = min(found, as_float(self.epsilon)) if cost.rho <= self.limit else found
        return min(found, as_float(cost.epsilon)) if self.either else found

    def __str__(self) -> str:
        if self.rho is not None:
            text = f"rho {float(self.rho):.6g}"
        else:
            assert self.epsilon is not None
            text = f"epsilon {float(self.epsilon):.6g}"
            text = text if self.delta is None else f"{text}, delta {float(self.delta):.3g}"
        if self.threshold_delta:
            text += f", delta {float(self.threshold_delta):.3g} for thresholds"
        return text


def as_float(amount: Amount) -> float:
    """Return the smallest float that, as it is written, is not below an amount.

    Infinity if it is too large for a number. What is written with up to 15 digits comes back as it
    was.

    Examples
    --------
    >>> as_float(Fraction(3, 10)), as_float(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if as_written(nearest) >= amount else math.nextafter(nearest, math.inf)


def added(one: float, other: float) -> float:
    """Return the sum of two floats as it is written: 0.1 and 0.2 are 0.3."""
    return as_float(as_written(one) + as_written(other))


def float_above(amount: Amount) -> float:
    """Return the smallest double that is not below an amount; infinity beyond all numbers."""
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)


def float_below(amount: Amount) -> float:
    """Return the largest double that is not above an amount."""
    nearest = float(amount)
    return nearest if nearest <= amount else math.nextafter(nearest, 0.0)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    Canonne, Kamath & Steinke 2020, Corollary 13. The bound holds for every order alpha > 1, so the
    numerical search for the best one cannot make it wrong.
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        tail = -math.log(delta * alpha) / excess + math.log1p(-1 / alpha)
        return alpha * rho + tail

    low, high = math.log(1e-9), math.log(1e12)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if bound(left) < bound(right):
            high = right
        else:
            low = left
    return max(0.0, bound((low + high) / 2)) * (1 + 1e-12)


@lru_cache(maxsize=256)
def _rho_of(epsilon: float, delta: float) -> Fraction:
    """Return the largest rho (rounded down) whose epsilon at ``delta`` is within ``epsilon``."""
    low, high = 0.0, 1.0
    while zcdp_epsilon(high, delta) <= epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if zcdp_epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low)
