"""Draw from a grid with a base measure, exactly.

A *stretch* is a row of neighbouring grid points that share a score; its length is its measure.
Our own code because OpenDP has no exponential mechanism with a base measure. Without one, with
stretches of one point, it is many times faster than noise for every candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Bits(Protocol):
    """A source of fair bits."""

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""


def draw_stretch(
    scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction, source: Bits
) -> int:
    """Draw index i with probability exactly proportional to ``lengths[i] * exp(rate * scores[i])``.

    See :func:`draw_stretches`.
    """
    if np.ndim(lengths) != 1:
        raise ValueError("lengths must be a list")
    return next(draw_stretches(np.asarray(scores)[None], np.asarray(lengths)[None], rate, source))


def draw_stretches(
    scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction, source: Bits
) -> Iterator[int]:
    """Yield one index for every row.

    Inversion with lazy precision: a uniform number is known to ever more bits and the cumulative
    weights to ever more digits, both with error bounds, until the answer is certain. Doubles decide
    almost always; the rest is decided by decimal arithmetic, whose ``exp`` is correctly rounded.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    levels, live = np.asarray(scores, dtype=np.int64), lengths > 0
    if not (live.size and live.all()):
        if lengths.min(initial=0) < 0 or not live.any(axis=1).all():
            raise ValueError("lengths must be non-negative, with at least one positive")
        levels = np.where(live, levels, np.iinfo(np.int64).min)
    gaps = (levels.max(axis=1)[:, None] - levels).view(np.uint64)  # modulo 2^64, hence right
    sums, errors = _double_bounds(gaps, lengths, rate)
    for row, (cumulative, error) in enumerate(zip(sums, errors.tolist(), strict=True)):
        uniform = source.bits(_BITS)
        place = _locate_in_doubles(cumulative, error, uniform)
        if place is None:
            place = _settle(gaps[row], lengths[row], rate, uniform, source)
        yield place


#: Bits of a uniform number at first.
_BITS = 64


def _settle(
    gaps: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    rate: Fraction,
    uniform: int,
    source: Bits,
) -> int:
    """Return the place of a uniform number that doubles left open, by decimals of more digits."""
    live = np.flatnonzero(lengths)
    gap_list, sizes, count = gaps[live].tolist(), lengths[live].tolist(), _BITS
    for doubling in range(40):
        uniform = (uniform << count) | source.bits(count)
        count *= 2
        bounds = _decimal_bounds(30 * 2**doubling)(gap_list, sizes, rate)
        place = _locate(*bounds, uniform, count)
        if place is not None:
            return int(live[place])
    raise AssertionError("unreachable: the precision doubles until the answer is certain")


def _double_bounds(
    gaps: ArrayLike, sizes: ArrayLike, rate: Fraction
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cumulative weights in doubles, along the last axis, and a bound on the error of each.

    With x = rate * gap, the relative error of x is below 2^-51, so exp(-x) has a relative error
    below x 2^-51 + 2^-51 (x up to 745; beyond, the weight underflows and is below size * 1e-320).
    The product with the size adds 2^-52, and summing k terms k 2^-52 of the total.
    """
    top, bottom = rate.numerator, rate.denominator
    slope = 1e3 if top > 1000 * bottom else top / bottom  # beyond, a step leaves no weight anyway
    exponents = np.minimum(slope * np.asarray(gaps, dtype=np.float64), 800.0)
    lengths = np.asarray(sizes, dtype=np.float64)
    cumulative = np.cumsum(lengths * np.exp(-exponents), axis=-1)
    rounding = cumulative[..., -1] * (750 + lengths.shape[-1]) * 2.0**-50
    return cumulative, rounding + lengths.sum(axis=-1) * 1e-300


def _locate_in_doubles(cumulative: NDArray[np.float64], error: float, uniform: int) -> int | None:
    """Return the index that a uniform number known to 64 bits falls into, if certain.

    The uniform part of the true total is within ``error`` and 2^-51 of the total from ``point``,
    and a boundary within ``error`` of its double; the third ``error`` is far above what else is
    rounded here, as it is at least 2^-41 of the total. Where a sum exceeds all before it for sure,
    there is a stretch that is not empty.
    """
    point = uniform * 2.0**-_BITS * float(cumulative[-1])
    place = int(cumulative.searchsorted(point - 3 * error, side="right"))
    return place if cumulative[place] > point + 3 * error else None


_Bounds = Callable[[list[int], list[int], Fraction], tuple[list[Decimal], Fraction]]


def _decimal_bounds(digits: int) -> _Bounds:
    """Return what :func:`_double_bounds` does, in decimals of ``digits`` digits.

    Relative errors: 10^(1-digits) for the quotient, hence times the exponent after exp, and the
    same again for exp, product and each sum. Exponents beyond 3 * digits are left out, which keeps
    numbers short: exp(-3 * digits) < 10^-digits, and the total is at least one.
    """

    def bounds(gaps: list[int], sizes: list[int], rate: Fraction) -> tuple[list[Decimal], Fraction]:
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


def _locate(cumulative: list[Decimal], error: Fraction, uniform: int, count: int) -> int | None:
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
