"""Compiled loops for sums of weights, by which whole trees are weighed (``privet.tables``).

A record has a weight, a channel and one *place* per feature: its code, counted over all features.
"""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, boundscheck=False)
def add_singles(places, channels, weights, rows, row):
    """Add the weights of some records to ``row[place, channel]``, for all features."""
    for r in range(len(rows)):
        i = rows[r]
        for h in range(places.shape[1]):
            row[places[i, h], channels[i]] += weights[i]


@njit(nogil=True, cache=True, boundscheck=False)
def add_pairs(places, channels, weights, rows, first, last, start, hist):
    """Add weights of some records to ``hist[place of g - start, place of h]``, g in first..last."""
    for r in range(len(rows)):
        i = rows[r]
        weight = weights[i]
        channel = channels[i]
        for g in range(first, last):
            line = hist[places[i, g] - start]
            for h in range(places.shape[1]):
                line[places[i, h], channel] += weight
