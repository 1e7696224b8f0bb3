"""The compiled loops. Imported only when a table is large enough; see ``_kernels``.

Indices are made unsigned because numba would otherwise test each for being negative, which costs as
much as the counting itself.
"""

from __future__ import annotations

import math

import numpy as np
from numba import int64, njit, uint64

#: Nobody calls the loops from C: what would let them takes a tenth of the time to compile.
_OPTIONS = {"nogil": True, "cache": True, "boundscheck": False, "no_cfunc_wrapper": True}
_compiled = njit(**_OPTIONS)
#: Loops that only other loops call.
_internal = njit(no_cpython_wrapper=True, **_OPTIONS)


@_compiled
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


@_compiled
def count_one(codes, keys, size, table):
    """Count records by key and code for one feature."""
    for i in range(len(keys)):
        table[uint64(keys[i]) * uint64(size) + uint64(codes[i])] += 1


@_compiled
def weigh_one(codes, keys, parts, size, table):
    """Add up what records weigh by key and code for one feature."""
    for i in range(len(keys)):
        table[uint64(keys[i]) * uint64(size) + uint64(codes[i])] += parts[i]


@_compiled
def key(cells, labels, classes, outside, keys):
    """Write the number of each record's cell and class."""
    for i in range(len(cells)):
        keys[i] = outside if cells[i] < 0 else cells[i] * classes + labels[i]


@_compiled
def route(cells, codes, feature_of, offset_of, child_of, children):
    """Send each record to its child cell."""
    for i in range(len(cells)):
        if cells[i] < 0:
            children[i] = -1
        else:
            cell = uint64(cells[i])
            code = uint64(codes[uint64(feature_of[cell]), i])
            children[i] = child_of[uint64(offset_of[cell]) + code]


@_compiled
def look_up(codes, table, out):
    """Write what a table has for each code."""
    for i in range(len(codes)):
        out[i] = table[uint64(codes[i])]


@_compiled
def sum_at_codes(codes, start, features, first, values, found):
    """Add to each record what features have for its codes, feature after feature."""
    for j in range(len(features)):
        mine, base = codes[features[j]], uint64(first[j])
        for i in range(len(found)):
            found[i] += values[base + uint64(mine[uint64(start) + uint64(i)])]


@_compiled
def add_at_codes(codes, start, weights, features, first, values):
    """Add the weight of each record to what every feature has for its code."""
    for j in range(len(features)):
        mine, base = codes[features[j]], uint64(first[j])
        for i in range(len(weights)):
            values[base + uint64(mine[uint64(start) + uint64(i)])] += weights[i]


@_compiled
def sort_by_cell(cells, first, rows):
    """Write the rows of every cell, in order, and where each cell's begin."""
    for i in range(len(cells)):
        if cells[i] >= 0:
            first[uint64(cells[i]) + uint64(2)] += 1
    for cell in range(2, len(first)):
        first[cell] += first[cell - 1]
    for i in range(len(cells)):
        if cells[i] >= 0:
            cell = uint64(cells[i]) + uint64(1)
            rows[uint64(first[cell])] = i
            first[cell] += 1


@_compiled
def count_places(rows, first, codes, feature_of, order_of, orders, width, table):
    """Count records by cell and place on its axis; cell by cell, which stays in the cache."""
    for cell in range(len(feature_of)):
        mine = codes[feature_of[cell]]
        base, start = uint64(cell * width), order_of[cell]
        if start < 0:
            for r in range(first[cell], first[cell + 1]):
                table[base + uint64(mine[uint64(rows[r])])] += 1
        else:
            for r in range(first[cell], first[cell + 1]):
                code = uint64(mine[uint64(rows[r])])
                table[base + uint64(orders[uint64(start) + code])] += 1


@_compiled
def count_sides(rows, first, codes, labels, feature_of, order_of, orders, middle, kinds, table):
    """Count records by cell, by class, below, at and above a place of the cell's axis."""
    for cell in range(len(feature_of)):
        mine = codes[feature_of[cell]]
        start, here = order_of[cell], int64(middle[cell])
        base = uint64(cell * 3 * kinds)
        for r in range(first[cell], first[cell + 1]):
            i = uint64(rows[r])
            place = int64(mine[i])
            if start >= 0:
                place = int64(orders[uint64(start + place)])
            side = uint64(place >= here) + uint64(place > here)  # no branch: it would go wrong
            table[base + side * uint64(kinds) + uint64(labels[i])] += 1


#: Bits of a mantissa that tell buckets apart, and factors of two that do.
_BITS, _OCTAVES = 14, 42
#: Buckets of numbers above where points are dense; there are as many below, if any are needed.
SIDE = _OCTAVES << _BITS
_SHIFT = 52 - _BITS
_SMALLEST = (1023 - (_OCTAVES - 1)) << _BITS


@_internal
def _bucket(bits, below):
    """Return the bucket of a double by its bits: larger numbers have no smaller one.

    ``below`` is the number of buckets for what is below zero.
    """
    if bits >= 0:
        return below + min(max((bits >> _SHIFT) - _SMALLEST, 0), SIDE - 1)
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    return max(below - 1 - min(max((magnitude >> _SHIFT) - _SMALLEST, 0), SIDE - 1), 0)


@_internal
def _relative(numbers, start, stop, origin, above, below, part):
    """Write how far numbers are from where points are dense, in widths of that side."""
    for i in range(start, stop):
        distance = numbers[i] - origin
        # Plus zero: a negative zero is not below zero.
        part[i - start] = distance * (above if distance >= 0 else below) + 0.0


@_compiled
def buckets(numbers, origin, above, below, out, n_below):
    """Write the bucket of every number."""
    part = np.empty(len(numbers))
    _relative(numbers, 0, len(numbers), origin, above, below, part)
    bits = part.view(np.int64)
    for i in range(len(numbers)):
        out[i] = _bucket(bits[i], n_below)


@_compiled
def find_on_grid(numbers, grid, origin, above, below, starts, out):
    """Write for each number how many points of a grid are not above it; its last is infinite."""
    part = np.empty(1024)
    bits = part.view(np.int64)
    found = np.empty(1024, np.int64)
    missing = len(grid)
    n_below = len(starts) - 1 - SIDE
    for start in range(0, len(numbers), 1024):
        stop = min(start + 1024, len(numbers))
        _relative(numbers, start, stop, origin, above, below, part)
        for i in range(stop - start):  # apart from the search: several at once
            found[i] = _bucket(bits[i], n_below)
        for i in range(start, stop):
            x = numbers[i]
            if math.isnan(x):
                out[i] = missing
                continue
            bucket = uint64(found[i - start])
            bottom, top = uint64(starts[bucket]), uint64(starts[bucket + uint64(1)])
            while top - bottom > uint64(1):
                middle = (bottom + top) >> uint64(1)
                if x >= grid[middle]:
                    bottom = middle + uint64(1)
                else:
                    top = middle
            # Mostly one point is left, or none: no branch for that, it would often go wrong.
            out[i] = bottom + (uint64(x >= grid[bottom]) & (top - bottom))
