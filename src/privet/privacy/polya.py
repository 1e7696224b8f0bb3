"""Shares of discrete Laplace noise: what each of several parties adds to make one noise.

Discrete Laplace noise of rate g (weights ``exp(-g abs(x))``) is a difference of two geometric
variables, and a geometric variable is a sum of h Polya variables (negative binomial with r = 1/h):
``P(x) = (1 - a)^r a^x r (r + 1) ... (r + x - 1) / x!`` with ``a = exp(-g)``. So h parties that each
add a difference of two Polya variables add discrete Laplace noise together, exactly.

Our own code because no library has it. The draw is exact: inversion with as many digits as the case
needs, as in :mod:`~privet.privacy.stretches`. Proof: ``docs/proofs/federation.md``.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privet.errors import BudgetError

#: Digits of the first table; they double until an answer is certain.
_DIGITS = 48
#: A smaller rate would need a table of more than about five million entries.
SMALLEST_RATE = Fraction(1, 100_000)


class Bits(Protocol):
    """A source of fair bits."""

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""


def check_rate(rate: Fraction) -> None:
    """Raise if noise of a rate cannot be shared."""
    if rate < SMALLEST_RATE:
        raise BudgetError("the budget is too small to share its noise among parties")


def draw_shares(size: int, rate: Fraction, honest: int, source: Bits) -> NDArray[np.int64]:
    """Return shares of discrete Laplace noise of a rate, of which ``honest`` make one noise."""
    more = draw_polya(size, rate, honest, source)
    return more - draw_polya(size, rate, honest, source)


def draw_polya(size: int, rate: Fraction, honest: int, source: Bits) -> NDArray[np.int64]:
    """Return Polya variables, exactly; ``honest`` of them make a geometric one."""
    words = source.bits(64 * size).to_bytes(8 * size, "little")
    uniform = np.frombuffer(words, dtype="<u8")
    # A number in [u, u + 1) / 2^64 is surely in a step whose ends are at u + 1 or above and at u or
    # below; the few others need more bits.
    highs, lows = _edges(rate, honest)
    found = np.searchsorted(highs, uniform, side="right")
    unsure = (found == len(highs)) | (uniform < lows[np.minimum(found, len(highs) - 1)])
    for place in np.flatnonzero(unsure).tolist():
        found[place] = _finish(int(uniform[place]), rate, honest, source)
    return found.astype(np.int64)


def _finish(uniform: int, rate: Fraction, honest: int, source: Bits) -> int:
    """Return the variable whose uniform number begins with 64 bits."""
    digits, count = _DIGITS, 64
    while True:
        uniform, count = (uniform << count) | source.bits(count), 2 * count
        steps, error = _steps(rate, honest, digits)
        # The number lies in [uniform, uniform + 1) / 2^count, a step within its error.
        scaled = uniform * 10**digits
        place = bisect_right(steps, scaled >> count)
        if place < len(steps):
            low = (steps[place - 1] + error) << count if place else 0
            high = (steps[place] - error) << count
            if low <= scaled and scaled + 10**digits <= high:
                return place
        digits *= 2


@lru_cache(maxsize=32)
def _edges(rate: Fraction, honest: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return in units of 2^-64 where each step ends at the least, and where it begins at most."""
    steps, error = _steps(rate, honest, _DIGITS)
    unit = 10**_DIGITS
    highs = [max(((step - error) << 64) // unit, 0) for step in steps]
    lows = [0, *(-((-(step + error) << 64) // unit) for step in steps[:-1])]
    most = 2**64 - 1
    return (
        np.array([min(high, most) for high in highs], dtype=np.uint64),
        np.array([min(low, most) for low in lows], dtype=np.uint64),
    )


@lru_cache(maxsize=2)  # of whole numbers, which are large: what is drawn from are the edges
def _steps(rate: Fraction, honest: int, digits: int) -> tuple[list[int], int]:
    """Return ``10^digits * P(X <= x)`` for x = 0, 1, ... in whole numbers, and a bound on errors.

    With one unit for ``10^-digits``: ``exp`` is correctly rounded, with ten digits to spare, and so
    is the power but for a unit in its last place; a term is off by the unit of its own floor, by
    one for the error of ``a`` and by what the term before was off, since it is multiplied by less
    than one. So term x is off by at most 2 x + 2 units, and sums by their square.
    """
    # Operators of decimals, minus signs too, would round as the caller's thread happens to.
    context, unit = Context(digits + 10, ROUND_HALF_EVEN, traps=[]), 10**digits
    a = context.exp(context.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    first = context.power(context.subtract(Decimal(1), a), context.divide(Decimal(1), honest))
    ratio, term = (int(context.scaleb(part, digits)) for part in (a, first))
    total, steps = term, [term]
    x = 0
    while unit - total > 10 ** (digits // 2) and term:
        x += 1
        term = term * ratio * (honest * (x - 1) + 1) // (unit * honest * x)
        total += term
        steps.append(total)
    return steps, (2 * x + 4) ** 2
