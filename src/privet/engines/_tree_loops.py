"""Compiled loops for sums of weights, by which whole trees are weighed (``privet.tables``).

Indices are made unsigned because numba would otherwise test each for being negative.
"""

from __future__ import annotations

from numba import njit, uint64

_compiled = njit(nogil=True, cache=True, boundscheck=False, no_cfunc_wrapper=True)


@_compiled
def join(heads, codes, size):
    """Turn numbers and codes, of which there are ``size``, into numbers of both."""
    for i in range(len(heads)):
        heads[i] = uint64(heads[i]) * uint64(size) + uint64(codes[i])


@_compiled
def add_weights(heads, codes, size, table, others, other_size, other_table, weights):
    """Add the weights of records to ``table[head * size + code]``, and to another such table.

    Two tables at once: records that follow each other often add to the same number, and a
    processor waits for the first to be done.
    """
    for i in range(len(heads)):
        head, weight = uint64(heads[i]), weights[i]
        table[head * uint64(size) + uint64(codes[i])] += weight
        other_table[head * uint64(other_size) + uint64(others[i])] += weight


@_compiled
def add_pairs(places, channels, weights, rows, first, last, start, hist):
    """Add weights of some records to ``hist[place of g - start, place of h]``, g in first..last.

    A place of a record is its code of a feature, counted over all features.
    """
    for r in range(len(rows)):
        i = rows[r]
        weight = weights[i]
        channel = channels[i]
        for g in range(first, last):
            line = hist[places[i, g] - start]
            for h in range(places.shape[1]):
                line[places[i, h], channel] += weight
