"""Compiled loops for the weights of whole trees. Imported only by ``whole_trees``.

Notation. A record has a weight and one *place* per feature: its code, counted over all features.
Tests are numbered over all features, too: test ``first + k`` of a numeric feature is "code > k", of
a categorical one "code = k". Sums of weights have a last axis of *channels*: with two classes one
channel of signed sums (class 1 minus class 0) is enough, with more there is one per class.
``d[t]`` is the sum over a region's records that pass test t, ``total`` over the whole region.

Features are in such an order that those of the upper levels come first, and with them their codes
and tests: ``n_upper`` features, the first ``code_first[n_upper]`` codes.

``exp(-unit * k)`` is the product of two entries of a table: ``coarse[k // 1024]`` and
``fine[k % 1024]``. ``coarse`` ends with zero: what is below the smallest double is nothing in a sum
of doubles whose largest term is about one. Logarithms are relative to a factor that all
trees on a region share, ``exp(unit * sum of weights)`` with two classes and one with more.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from privet.engines._tree_loops import add_pairs

LOG_2 = math.log(2)


@njit(nogil=True, cache=True, boundscheck=False)
def _decay(coarse, fine, k):
    return coarse[uint64(k) >> uint64(10)] * fine[uint64(k) & uint64(1023)]


@njit(nogil=True, cache=True, boundscheck=False)
def log_depth_1(d, total, priors, stop, looks, look_first, look_last, coarse, fine, unit):
    """Return the log weight of all trees of depth <= 1 on a region.

    Parameters
    ----------
    d, total
        Sums by test and channel, and by channel.
    priors : array
        The prior of every test (times the prior of not being a leaf).
    stop : float
        The prior of a leaf, tests that divide nothing included.
    looks, look_first, look_last : arrays
        The prior and the range of tests (categories) of every lookup.
    """
    if d.shape[1] == 1:
        return _log_signed(
            d, total[0], priors, stop, looks, look_first, look_last, coarse, fine, unit
        )
    return _log_counts(d, total, priors, stop, looks, look_first, look_last, coarse, fine, unit)


@njit(nogil=True, cache=True, boundscheck=False)
def _with_lookups(base, weight, looks, look_logs):
    """Return ``log(exp(base) weight + sum of exp(look_logs))``, whatever their sizes.

    A lookup of many categories has a tiny prior, about one over classes^categories; its term is
    kept as a logarithm, for it may be the only one that matters.
    """
    base += np.log(weight)
    top = base
    for j in range(len(looks)):
        top = max(top, look_logs[j])
    total = np.exp(base - top)
    for j in range(len(looks)):
        total += np.exp(look_logs[j] - top)
    return top + np.log(total)


@njit(nogil=True, cache=True, boundscheck=False)
def _log_signed(d, total, priors, stop, looks, look_first, look_last, coarse, fine, unit):
    # A leaf weighs cosh(unit total), and a test p/2 (cosh(unit total) + cosh(unit (2d - total))).
    end = (len(coarse) - 1) * 1024
    top = abs(total)
    for t in range(len(priors)):
        top = max(top, abs(2 * d[t, 0] - total))
    weight = 0.0
    rest = 0.0
    for t in range(len(priors)):
        rest += priors[t]
        x = abs(2 * d[t, 0] - total)
        gap = top - x
        if gap < end:
            value = _decay(coarse, fine, gap)
            if 2 * x < end:
                value *= 1.0 + _decay(coarse, fine, 2 * x)
            weight += priors[t] * value
    weight *= 0.25
    gap = top - abs(total)
    if gap < end:
        leaf = (
            0.5 * _decay(coarse, fine, gap) * (1.0 + _decay(coarse, fine, min(2 * abs(total), end)))
        )
        weight += (stop + 0.5 * rest) * leaf
    if len(looks) == 0:
        return unit * top + np.log(weight)
    look_logs = np.empty(len(looks))
    for j in range(len(looks)):
        reach = 0
        product = looks[j]
        halvings = 0  # powers of two that were taken out of the product, exactly
        for t in range(look_first[j], look_last[j]):
            x = abs(d[t, 0])
            reach += x
            product *= 0.5 * (1.0 + _decay(coarse, fine, min(2 * x, end)))
            if product < 1e-200:
                product, power = math.frexp(product)
                halvings += power
        look_logs[j] = unit * reach + (halvings * LOG_2 + np.log(product))
    return _with_lookups(unit * top, weight, looks, look_logs)


@njit(nogil=True, cache=True, boundscheck=False)
def _log_counts(d, total, priors, stop, looks, look_first, look_last, coarse, fine, unit):
    # A leaf weighs the mean over classes k of exp(unit n_k).
    end = (len(coarse) - 1) * 1024
    classes = d.shape[1]
    top = total[0]
    for k in range(1, classes):
        top = max(top, total[k])
    for t in range(len(priors)):
        inside, outside = d[t, 0], total[0] - d[t, 0]
        for k in range(1, classes):
            inside = max(inside, d[t, k])
            outside = max(outside, total[k] - d[t, k])
        top = max(top, inside + outside)
    weight = 0.0
    for t in range(len(priors)):
        inside, outside = d[t, 0], total[0] - d[t, 0]
        for k in range(1, classes):
            inside = max(inside, d[t, k])
            outside = max(outside, total[k] - d[t, k])
        gap = top - inside - outside
        if gap < end:
            left, right = 0.0, 0.0
            for k in range(classes):
                left += _decay(coarse, fine, min(inside - d[t, k], end))
                right += _decay(coarse, fine, min(outside - total[k] + d[t, k], end))
            weight += priors[t] * _decay(coarse, fine, gap) * left * right
    weight /= classes * classes
    leaf = 0.0
    for k in range(classes):
        leaf += _decay(coarse, fine, min(top - total[k], end))
    weight += stop * leaf / classes
    if len(looks) == 0:
        return unit * top + np.log(weight)
    look_logs = np.empty(len(looks))
    for j in range(len(looks)):
        reach = 0
        product = looks[j]
        halvings = 0  # powers of two that were taken out of the product, exactly
        for t in range(look_first[j], look_last[j]):
            inside = d[t, 0]
            for k in range(1, classes):
                inside = max(inside, d[t, k])
            reach += inside
            share = 0.0
            for k in range(classes):
                share += _decay(coarse, fine, min(inside - d[t, k], end))
            product *= share / classes
            if product < 1e-200:
                product, power = math.frexp(product)
                halvings += power
        look_logs[j] = unit * reach + (halvings * LOG_2 + np.log(product))
    return _with_lookups(unit * top, weight, looks, look_logs)


@njit(nogil=True, cache=True, boundscheck=False)
def sums_by_test(row, code_first, test_first, numeric, d):
    """Turn sums by code into sums by test."""
    for h in range(len(numeric)):
        start, stop, t = code_first[h], code_first[h + 1], test_first[h]
        for k in range(row.shape[1]):
            if numeric[h]:
                above = row[start, k] - row[start, k]
                for c in range(stop - 1, start, -1):
                    above += row[c, k]
                    d[t + c - start - 1, k] = above
            else:
                for c in range(start, stop):
                    d[t + c - start, k] = row[c, k]


@njit(nogil=True, cache=True, boundscheck=False)
def pair_tests(hist, n_upper, code_first, test_first, numeric, pairs):
    """Turn pair sums by code into ``pairs[c, t]``: sums over records that pass both tests."""
    running = np.zeros(hist.shape[1:], dtype=hist.dtype)
    for g in range(n_upper):
        start, stop = code_first[g], code_first[g + 1]
        if numeric[g]:
            running[:] = 0
            for c in range(stop - 1, start, -1):
                running += hist[c]
                sums_by_test(
                    running, code_first, test_first, numeric, pairs[test_first[g] + c - start - 1]
                )
        else:
            for c in range(start, stop):
                sums_by_test(
                    hist[c], code_first, test_first, numeric, pairs[test_first[g] + c - start]
                )


@njit(nogil=True, cache=True, boundscheck=False)
def log_children(
    pairs, singles, total, priors, stop, looks, look_first, look_last, coarse, fine, unit, out
):
    """Write ``log Z1`` of the records that fail and that pass every upper test of a region."""
    for c in range(len(pairs)):
        out[c, 0] = log_depth_1(
            singles - pairs[c],
            total - singles[c],
            priors,
            stop,
            looks,
            look_first,
            look_last,
            coarse,
            fine,
            unit,
        )
        out[c, 1] = log_depth_1(
            pairs[c], singles[c], priors, stop, looks, look_first, look_last, coarse, fine, unit
        )


@njit(nogil=True, cache=True, boundscheck=False)
def log_grandchildren(
    f,
    places,
    channels,
    weights,
    rows,
    row_first,
    triples,
    n_upper,
    pairs,
    singles,
    total,
    code_first,
    test_first,
    numeric,
    priors,
    stop,
    looks,
    look_first,
    look_last,
    coarse,
    fine,
    unit,
    out,
):
    """Write the log weights of all pairs of upper tests of which one is of feature f.

    ``out[c, side, d]`` is ``log Z1 + log Z1`` of the two regions into which test d divides the
    records that pass (side 1) or fail (side 0) test c. The four regions of a pair serve both
    orders, so pairs are visited once: d's feature is f or a later one. ``rows`` are sorted by the
    code of f; codes are added from the last to the first, so that ``hist`` always holds the
    records that pass the current test (numeric), or only those of one code (categorical).
    ``triples``, if not empty, has the sums of each code of f, by places from f's own on, and takes
    the place of the rows.
    """
    n_tests = len(priors)
    shape = (n_tests, singles.shape[1])
    hist = np.zeros((code_first[n_upper], code_first[-1], singles.shape[1]), dtype=singles.dtype)
    running = np.zeros((code_first[-1], singles.shape[1]), dtype=singles.dtype)
    both = np.zeros(shape, dtype=singles.dtype)
    one = np.zeros(shape, dtype=singles.dtype)
    other = np.zeros(shape, dtype=singles.dtype)
    none = np.zeros(shape, dtype=singles.dtype)
    size = code_first[f + 1] - code_first[f]
    for code in range(size - 1, -1, -1):
        if numeric[f]:
            c = test_first[f] + code - 1
        else:
            c = test_first[f] + code
            hist[:] = 0
        if len(triples):
            hist[code_first[f] :] += triples[code]
        else:
            mine = rows[row_first[code] : row_first[code + 1]]
            add_pairs(places, channels, weights, mine, f, n_upper, 0, hist)
        if numeric[f] and code == 0:
            break
        for g in range(f, n_upper):
            running[:] = 0
            for k in range(code_first[g + 1] - code_first[g] - 1, -1, -1):
                if numeric[g]:
                    if k == 0:
                        break
                    running += hist[code_first[g] + k]
                    d = test_first[g] + k - 1
                else:
                    running[:] = hist[code_first[g] + k]
                    d = test_first[g] + k
                if g == f and d < c:
                    continue
                sums_by_test(running, code_first, test_first, numeric, both)
                for t in range(n_tests):
                    for j in range(singles.shape[1]):
                        one[t, j] = pairs[c, t, j] - both[t, j]
                        other[t, j] = pairs[d, t, j] - both[t, j]
                        none[t, j] = singles[t, j] - pairs[c, t, j] - other[t, j]
                in_both = pairs[c, d]
                in_one = singles[c] - in_both
                in_other = singles[d] - in_both
                in_none = total - singles[c] - in_other
                z_both = log_depth_1(
                    both, in_both, priors, stop, looks, look_first, look_last, coarse, fine, unit
                )
                z_one = log_depth_1(
                    one, in_one, priors, stop, looks, look_first, look_last, coarse, fine, unit
                )
                z_other = log_depth_1(
                    other, in_other, priors, stop, looks, look_first, look_last, coarse, fine, unit
                )
                z_none = log_depth_1(
                    none, in_none, priors, stop, looks, look_first, look_last, coarse, fine, unit
                )
                out[c, 1, d] = z_both + z_one
                out[c, 0, d] = z_other + z_none
                out[d, 1, c] = z_both + z_other
                out[d, 0, c] = z_one + z_none
