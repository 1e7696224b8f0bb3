"""Discrete Gaussian noise, many numbers at once, exactly.

Our own code because OpenDP draws one number after the other, at about 20 microseconds each, which
is most of the time of learners that ask for sums a hundred times. The law is the same, and so is
the source: fair bits of the operating system's cryptographic generator.

By rejection (after Canonne, Kamath & Steinke 2020), with lazy precision as in
:mod:`~privet.privacy.stretches`: a uniform number is known to 64 bits, a probability in doubles
with a bound on its error, and where these leave a comparison open, more bits of the same number and
decimals of more digits decide it. Proof: ``docs/proofs/mechanisms.md``.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privet.privacy.stretches import Bits
from privet.privacy.uniforms import ABSOLUTE, RELATIVE, WORD, Uniform

#: Scales from here on are not for this sampler: its numbers would not fit 64 bits.
LARGEST_SCALE = 2.0**50


def draw_gaussians(size: int, scale: float, source: Bits) -> NDArray[np.int64]:
    """Return independent integers with probabilities proportional to ``exp(-k^2 / (2 scale^2))``.

    A number is proposed as plus or minus ``step + width * turns``, with a uniform step below
    ``width``, the next whole number above the scale, and a geometric number of turns of ratio
    ``exp(-1)``. It is accepted with probability ``exp(-(k^2 / (2 scale^2) - turns + 1/2))``.
    """
    if not 0 < scale < LARGEST_SCALE:
        raise ValueError("the scale must be positive, and below 2^50")
    width = int(scale) + 1
    found = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        mine = _accepted(3 * (size - filled) + 8, width, scale, source)[: size - filled]
        found[filled : filled + len(mine)] = mine
        filled += len(mine)
    return found


def _accepted(tries: int, width: int, scale: float, source: Bits) -> NDArray[np.int64]:
    """Return the numbers that are accepted of some proposals, in order."""
    words = source.bits(WORD * 3 * tries).to_bytes(8 * 3 * tries, "little")
    first, second, third = np.frombuffer(words, dtype="<u8").reshape(3, tries)
    negative = first & np.uint64(1) == 1  # a bit that steps, of at most 50 bits, do not use
    steps = (first >> np.uint64(1) >> np.uint64(63 - (width - 1).bit_length())).astype(np.int64)
    turns, unsure = _turns(second)
    sizes = steps + width * turns
    with np.errstate(over="ignore"):
        chances = np.exp(-(0.5 * (sizes / scale) ** 2 - turns + 0.5))
    uniform = third * 2.0**-WORD
    taken = uniform < chances * (1 - RELATIVE) - ABSOLUTE
    unsure |= ~taken & (uniform <= chances * (1 + RELATIVE) + ABSOLUTE)
    inside = steps < width
    for i in np.flatnonzero(unsure & inside).tolist():
        turn = _turns_of(Uniform(int(second[i]), source))
        size = int(steps[i]) + width * turn
        exponent = Fraction(size) ** 2 / (2 * Fraction(scale) ** 2) - turn + Fraction(1, 2)
        sizes[i] = min(size, np.iinfo(np.int64).max)  # as sums are
        taken[i] = Uniform(int(third[i]), source).is_below_exp(exponent)
    taken &= inside & ~(negative & (sizes == 0))  # zero has one sign only
    return np.where(negative, -sizes, sizes)[taken]


def _turns(words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many turns uniform numbers make, and which of them need more bits to tell."""
    ends = _ends()
    place = np.searchsorted(ends, words, side="right")
    unsure = (place > 0) & (ends[place - 1] == words)
    return len(ends) - place, unsure


@lru_cache(maxsize=1)
def _ends() -> NDArray[np.uint64]:
    """Return ``exp(-k)`` for k from 45 to 1, in units of 2^-64, rounded down.

    A number that is known to 64 bits is below ``exp(-k)`` or not, unless its bits are these.
    """
    exact = Context(prec=60, traps=[])
    ends = [int(exact.multiply(exact.exp(Decimal(-k)), 2**WORD)) for k in range(45, 0, -1)]
    return np.array(ends, dtype=np.uint64)


def _turns_of(uniform: Uniform) -> int:
    """Return how many turns a number makes: the largest k for which it is below ``exp(-k)``."""
    turns = 0
    while uniform.is_below_exp(Fraction(turns + 1)):
        turns += 1
    return turns
