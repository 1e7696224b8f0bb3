"""The compiled loops. Imported only when a table is large enough; see ``_kernels``.

Indices are made unsigned because numba would otherwise test each for being negative, which costs as
much as the counting itself.
"""

from __future__ import annotations

import math

from numba import int64, njit, uint64


@njit(nogil=True, cache=True, boundscheck=False)
def count_four(c0, c1, c2, c3, keys, size, t0, t1, t2, t3):
    """Count records by key and code for four features at once.

    Neighbouring records often have equal codes; four tables keep the processor busy while one of
    them waits for its last increment. A key is read once for all four.
    """
    for i in range(len(keys)):
        base = uint64(keys[i]) * uint64(size)
        t0[base + uint64(c0[i])] += 1
        t1[base + uint64(c1[i])] += 1
        t2[base + uint64(c2[i])] += 1
        t3[base + uint64(c3[i])] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def count_one(codes, keys, size, table):
    """Count records by key and code for one feature."""
    for i in range(len(keys)):
        table[uint64(keys[i]) * uint64(size) + uint64(codes[i])] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def key(cells, labels, classes, outside, keys):
    """Write the number of each record's cell and class."""
    for i in range(len(cells)):
        keys[i] = outside if cells[i] < 0 else cells[i] * classes + labels[i]


@njit(nogil=True, cache=True, boundscheck=False)
def route(cells, codes, feature_of, offset_of, child_of, children):
    """Send each record to its child cell."""
    for i in range(len(cells)):
        if cells[i] < 0:
            children[i] = -1
        else:
            cell = uint64(cells[i])
            code = uint64(codes[uint64(feature_of[cell]), i])
            children[i] = child_of[uint64(offset_of[cell]) + code]


@njit(nogil=True, cache=True, boundscheck=False)
def bin_numbers(numbers, edges, low, per_width, out):
    """Find each number's bin: a guess by equal width; where it is wrong, a binary search."""
    last = len(edges) - 2
    for i in range(len(numbers)):
        x = numbers[i]
        place = (x - low) * per_width
        place = place if place > 0.0 else 0.0  # NaN (zero times infinity) becomes zero as well
        place = place if place < last else float(last)
        guess = uint64(int64(place))  # twice as fast as in one step
        if math.isnan(x):
            guess = uint64(last + 1)
        elif x < edges[guess] or x >= edges[guess + uint64(1)]:
            bottom, top = 0, last
            while bottom < top:
                middle = (bottom + top) // 2
                if x >= edges[middle + 1]:
                    bottom = middle + 1
                else:
                    top = middle
            guess = uint64(bottom)
        out[i] = guess
