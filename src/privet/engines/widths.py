"""How wide sums are: the one rule by which 32 bits are enough, or 64 are needed."""

from __future__ import annotations

#: A sum that may reach this needs 64 bits.
WIDE_FROM = 2**31


def needs_64_bits(most: int) -> bool:
    """Tell whether a sum over rows may not fit into 32 bits.

    Parameters
    ----------
    most : int
        What the sum cannot exceed: the number of rows times the largest weight of a row (one, where
        rows are counted), or the sum of all weights where that is known. Loops that double sums, or
        add some of them, give as many times that.
    """
    return most >= WIDE_FROM
