"""Draw from a grid with a base measure, exactly.

Our own code because OpenDP has no exponential mechanism with a base measure.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Bits(Protocol):
    """A source of fair bits."""

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""


def draw_stretch(
    scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction, source: Bits
) -> int:
    """Draw index i with probability exactly proportional to ``lengths[i] * exp(rate * scores[i])``.

    Inversion with lazy precision: a uniform number is known to ever more bits and the cumulative
    weights to ever more digits, both with error bounds, until the answer is certain. Doubles decide
    almost always; the rest is decided by decimal arithmetic, whose ``exp`` is correctly rounded.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    if lengths.ndim != 1 or np.any(lengths < 0) or not np.any(lengths > 0):
        raise ValueError("lengths must be non-negative, with at least one positive")
    live = np.flatnonzero(lengths > 0)
    sizes = lengths[live].tolist()
    levels = np.asarray(scores, dtype=np.int64)[live].tolist()
    highest = max(levels)
    gaps = [highest - level for level in levels]
    count = 64
    uniform = source.bits(count)
    for bounds in (_double_bounds, *(_decimal_bounds(30 * 2**k) for k in range(40))):
        cumulative, error = bounds(gaps, sizes, rate)
        place = _locate(cumulative, error, uniform, count)
        if place is not None:
            return int(live[place])
        uniform = (uniform << count) | source.bits(count)
        count *= 2
    raise AssertionError("unreachable: the precision doubles until the answer is certain")


_Cumulative = list[float] | list[Decimal]
_Bounds = Callable[[list[int], list[int], Fraction], tuple[_Cumulative, Fraction]]


def _double_bounds(
    gaps: list[int], sizes: list[int], rate: Fraction
) -> tuple[_Cumulative, Fraction]:
    """Return cumulative weights in doubles and a bound on the error of each.

    With x = rate * gap, the relative error of x is below 2^-51, so exp(-x) has a relative error
    below x 2^-51 + 2^-51 (x up to 745; beyond, the weight underflows and is below size * 1e-320).
    The product with the size adds 2^-52, and summing k terms k 2^-52 of the total.
    """
    slope = float(min(rate, Fraction(1000)))  # beyond, one step leaves no weight anyway
    exponents = np.minimum(slope * np.array(gaps, dtype=np.float64), 800.0)
    weights = np.array(sizes, dtype=np.float64) * np.exp(-exponents)
    cumulative = np.cumsum(weights)
    total = float(cumulative[-1])
    error = total * (750 + len(gaps)) * 2.0**-50 + float(np.sum(np.array(sizes, float))) * 1e-300
    return cumulative.tolist(), Fraction(error)


def _decimal_bounds(digits: int) -> _Bounds:
    """Return the same with decimals of so many digits.

    Relative errors: 10^(1-digits) for the quotient, hence times the exponent after exp, and the
    same again for exp, product and each sum. Exponents beyond 3 * digits are left out, which keeps
    numbers short: exp(-3 * digits) < 10^-digits, and the total is at least one.
    """

    def bounds(gaps: list[int], sizes: list[int], rate: Fraction) -> tuple[_Cumulative, Fraction]:
        context = Context(prec=digits, traps=[])
        top, bottom = rate.numerator, rate.denominator
        cumulative, total = [], Decimal(0)
        for gap, size in zip(gaps, sizes, strict=True):
            if gap * top <= 3 * digits * bottom:
                exponent = context.divide(Decimal(-gap * top), Decimal(bottom))
                total = context.add(total, context.multiply(Decimal(size), context.exp(exponent)))
            cumulative.append(total)
        unit = Fraction(1, 10 ** (digits - 1))
        error = Fraction(total) * unit * (3 * digits + 2 * len(gaps) + 8) * 2 + sum(sizes) * unit
        return cumulative, error

    return bounds


def _locate(cumulative: _Cumulative, error: Fraction, uniform: int, count: int) -> int | None:
    """Return the index that a uniform number known to ``count`` bits falls into, if certain."""
    total = Fraction(cumulative[-1])
    low = Fraction(uniform, 1 << count) * (total - error)
    high = Fraction(uniform + 1, 1 << count) * (total + error)
    bottom, top = 0, len(cumulative) - 1
    while bottom < top:
        middle = (bottom + top) // 2
        boundary = Fraction(cumulative[middle])
        if high < boundary - error:
            top = middle
        elif low >= boundary + error:
            bottom = middle + 1
        else:
            return None
    return bottom
