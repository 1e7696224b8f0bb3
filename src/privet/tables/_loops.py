"""The compiled loops. Imported only when a table is large enough; see ``_kernels``."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, boundscheck=False)
def count(codes, keys, size, even, odd):  # type: ignore[no-untyped-def]
    """Count records by key and code into two tables, so that equal neighbours do not wait."""
    last = len(keys) - 1
    for i in range(0, last, 2):
        even[keys[i] * size + codes[i]] += 1
        odd[keys[i + 1] * size + codes[i + 1]] += 1
    if last % 2 == 0:
        even[keys[last] * size + codes[last]] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def route(cells, codes, feature_of, offset_of, child_of, children):  # type: ignore[no-untyped-def]
    """Send each record to its child cell."""
    for i in range(len(cells)):
        cell = cells[i]
        if cell < 0:
            children[i] = -1
        else:
            children[i] = child_of[offset_of[cell] + codes[feature_of[cell], i]]


@njit(nogil=True, cache=True, boundscheck=False)
def bin_numbers(numbers, cuts, low, per_width, out):  # type: ignore[no-untyped-def]
    """Find each number's bin: a guess by equal width, corrected against the cuts (any cuts)."""
    last = len(cuts)
    for i in range(len(numbers)):
        x = numbers[i]
        if x != x:
            out[i] = last + 1
        elif last == 0 or x < cuts[0]:
            out[i] = 0
        elif x >= cuts[last - 1]:
            out[i] = last
        else:
            guess = int((x - low) * per_width)
            if guess < 0:
                guess = 0
            if guess > last:
                guess = last
            while guess < last and x >= cuts[guess]:
                guess += 1
            while guess > 0 and x < cuts[guess - 1]:
                guess -= 1
            out[i] = guess
