"""Exact amounts as text: how files hold them, and how they are read without trust.

An amount is written as a fraction, ``"1/50"``, ``"3"``, or as ``"inf"``. Nothing else is read: no
sign, no point and no exponent, so that a short text cannot mean a number that fills the memory.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from privet.privacy.budget import Amount

#: Amounts whose denominators have more digits are rounded up when they are written.
_WRITTEN_DIGITS = 1_000
#: Numerators may have more, since amounts go up to 10^300, which a double can hold.
_MOST_DIGITS = _WRITTEN_DIGITS + 300
_LARGEST = Fraction(10**300)
_PATTERN = re.compile(rf"[0-9]{{1,{_MOST_DIGITS}}}(/[0-9]{{1,{_WRITTEN_DIGITS}}})?", re.ASCII)


def write_amount(amount: Amount) -> str:
    """Return an amount as text: exactly, or a little more if that would be absurdly long."""
    if amount == math.inf:
        return "inf"
    exact = Fraction(amount)
    if max(exact.numerator, exact.denominator) >= 10**_WRITTEN_DIGITS:
        grid = 10 ** (_WRITTEN_DIGITS - 1)
        exact = Fraction(math.ceil(exact * grid), grid)
    return str(exact)


def read_amount(text: object) -> Fraction:
    """Return a finite amount that is not negative; anything else is a ValueError."""
    if not isinstance(text, str) or len(text) > _MOST_DIGITS + 1 + _WRITTEN_DIGITS:
        raise ValueError("an amount is no fraction")
    if _PATTERN.fullmatch(text) is None:
        raise ValueError("an amount is no fraction")
    over, _, under = text.partition("/")
    if under and not int(under):
        raise ValueError("an amount is no fraction")
    amount = Fraction(int(over), int(under or 1))
    if amount > _LARGEST:
        raise ValueError("an amount is too large")
    return amount


def read_any_amount(text: object) -> Amount:
    """Return an amount that may be infinite."""
    return math.inf if text == "inf" else read_amount(text)
