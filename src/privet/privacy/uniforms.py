"""Uniform numbers of which more bits are drawn where the first ones do not decide."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from privet.privacy.stretches import Bits

#: Bits of a uniform number at first.
WORD = 64
#: What comparisons with ``exp`` in doubles leave open: relative to a probability, and absolute.
RELATIVE, ABSOLUTE = 2.0**-40, 2.0**-50


class Uniform:
    """A uniform number between zero and one, of which ever more bits are known."""

    def __init__(self, word: int, source: Bits) -> None:
        self._bits, self._count, self._source = word, WORD, source

    def is_below_exp(self, exponent: Fraction) -> bool:
        """Tell whether it is below ``exp(-exponent)``, for sure.

        With d digits the quotient has a relative error below 10^(1-d), and so has exp; an exponent
        beyond 3 d leaves less than 10^-d.
        """
        while True:
            digits = self._count // 2 + 8
            if exponent > 3 * digits:
                low, high = Fraction(0), Fraction(1, 10**digits)
            else:
                context = Context(prec=digits, traps=[])
                top, bottom = Decimal(-exponent.numerator), Decimal(exponent.denominator)
                chance = Fraction(context.exp(context.divide(top, bottom)))
                error = chance * (exponent + 2) / 10 ** (digits - 1)
                low, high = chance - error, chance + error
            if self._bits + 1 <= low * 2**self._count:
                return True
            if self._bits >= high * 2**self._count:
                return False
            self._bits = self._bits << self._count | self._source.bits(self._count)
            self._count *= 2
