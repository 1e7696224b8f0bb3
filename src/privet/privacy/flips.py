"""Permute-and-flip, exactly.

Our own code because a call of OpenDP takes a quarter of a millisecond, most of it on the way there
and back, and a forest makes thousands. The law is the same, and so is the source: fair bits of the
operating system's cryptographic generator. Proof: ``docs/proofs/mechanisms.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from privet.privacy.stretches import Bits
from privet.privacy.uniforms import ABSOLUTE, RELATIVE, WORD, Uniform


class Picks(Bits, Protocol):
    """A source of fair bits, and of numbers below a bound."""

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""


def permute_and_flip(scores: Sequence[int], scale: float, source: Picks) -> int:
    """Return the first of the candidates, in random order, that is accepted.

    A candidate is accepted with probability ``exp(-gap / scale)``, gap being how far its score is
    below the largest.
    """
    top, left = max(scores), list(range(len(scores)))
    while True:
        candidate = left.pop(source.below(len(left)))
        gap = top - scores[candidate]
        if gap == 0 or _is_accepted(gap, scale, source):
            return candidate


def _is_accepted(gap: int, scale: float, source: Bits) -> bool:
    """Return True with probability ``exp(-gap / scale)``."""
    word = source.bits(WORD)
    chance, uniform = math.exp(-gap / scale), word * 2.0**-WORD
    if uniform < chance * (1 - RELATIVE) - ABSOLUTE:
        return True
    if uniform > chance * (1 + RELATIVE) + ABSOLUTE:
        return False
    return Uniform(word, source).is_below_exp(Fraction(gap) / Fraction(scale))
