"""Compiled loops for the weights of whole trees. Imported only by ``whole_trees``.

Notation. A record has a weight and one *place* per feature: its code, counted over all features.
Tests are numbered over all features, too: test ``first + k`` of a numeric feature is "code > k", of
a categorical one "code = k". Sums of weights have a last axis of *channels*: with two classes one
channel of signed sums (class 1 minus class 0) is enough, with more there is one per class.
``d[t]`` is the sum over a region's records that pass test t, ``total`` over the whole region.

Features are in such an order that those of the upper levels come first, and with them their codes
and tests: ``n_upper`` features, the first ``code_first[n_upper]`` codes.

``exp(-unit * k)`` is the product of two entries of a table: ``coarse[k // 1024]`` and
``fine[k % 1024]``. ``coarse`` ends with zero: what is further below is nothing in a sum whose
largest term is about one. Logarithms are relative to a factor that all trees on a region share,
``exp(unit * sum of weights)`` with two classes and one with more.

Loops whose names end in ``_signed`` are those of two classes: their arrays have no last axis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import int64, njit, uint64
from numpy.typing import NDArray

from privet.engines._tree_loops import add_pairs

LOG_2 = math.log(2)

_OPTIONS = {
    "nogil": True,
    "cache": True,
    "boundscheck": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_compiled = njit(**_OPTIONS)
#: Loops that are never called from outside: what would call them takes long to compile, too.
_internal = njit(no_cpython_wrapper=True, **_OPTIONS)
#: Sums and products in any order: the error bounds hold for every order.
_vectorised = njit(no_cpython_wrapper=True, fastmath={"reassoc", "nsz", "contract"}, **_OPTIONS)


@_internal
def _decay(coarse, fine, k):
    return coarse[uint64(k) >> uint64(10)] * fine[uint64(k) & uint64(1023)]


def log_depth_1(d: NDArray[Any], total: NDArray[Any], *common: Any) -> float:
    """Return the log weight of all trees of depth <= 1 on a region.

    Parameters
    ----------
    d, total
        Sums by test and channel, and by channel.
    *common
        In the order of the loops: the prior of every test (times the prior of not being a leaf);
        the prior of a leaf, tests that divide nothing included; the prior and the range of tests
        (categories) of every lookup; the tables of exponentials and their unit.
    """
    if d.shape[1] == 1:
        out = np.empty(1)
        log_regions_signed(d[None, :, 0], total, *common, np.empty(len(common[2])), out)
        return float(out[0])
    return float(_log_counts(d, total, *common))


@_internal
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


@_compiled
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


@_internal
def _by_test(row, place_of, above_of, d):
    """Turn sums by code into sums by test, the tests of a number from its last to its first."""
    for k in range(row.shape[1]):
        above = row[0, k] - row[0, k]
        for t in range(len(place_of) - 1, -1, -1):
            above = row[place_of[t], k] + (above & above_of[t])
            d[t, k] = above


@_compiled
def log_children(
    pairs, singles, total, priors, stop, looks, look_first, look_last, coarse, fine, unit, out
):
    """Write ``log Z1`` of the records that fail and that pass every upper test of a region."""
    failing = np.empty_like(singles)
    outside = np.empty_like(total)
    for c in range(len(pairs)):
        for k in range(len(total)):
            outside[k] = total[k] - singles[c, k]
            for t in range(len(priors)):
                failing[t, k] = singles[t, k] - pairs[c, t, k]
        out[c, 0] = _log_counts(
            failing, outside, priors, stop, looks, look_first, look_last, coarse, fine, unit
        )
        out[c, 1] = _log_counts(
            pairs[c], singles[c], priors, stop, looks, look_first, look_last, coarse, fine, unit
        )


@_compiled
def log_regions_signed(
    sums, totals, priors, stop, looks, look_first, look_last, coarse, fine, unit, look_logs, out
):
    """Write ``log Z1`` of regions whose sums by test are the lines of ``sums``.

    ``look_logs`` has room for one number of every lookup. A leaf weighs ``cosh(unit total)``, and a
    test ``p/2 (cosh(unit total) + cosh(unit (2d - total)))``.
    """
    # One loop, and no max or min: calls of other loops take long to compile.
    end = (len(coarse) - 1) * 1024
    for r in range(len(totals)):
        total = abs(int64(totals[r]))
        top = total
        for t in range(len(priors)):
            x = abs(2 * sums[r, t] - totals[r])
            if x > top:  # noqa: PLR1730
                top = x
        weight = 0.0
        rest = 0.0
        for t in range(len(priors)):
            rest += priors[t]
            x = abs(2 * sums[r, t] - totals[r])
            gap = top - x
            if gap < end:
                value = _decay(coarse, fine, gap)
                if 2 * x < end:
                    value *= 1.0 + _decay(coarse, fine, 2 * x)
                weight += priors[t] * value
        weight *= 0.25
        gap = top - total
        if gap < end:
            twice = 2 * total if 2 * total < end else end
            leaf = 0.5 * _decay(coarse, fine, gap) * (1.0 + _decay(coarse, fine, twice))
            weight += (stop + 0.5 * rest) * leaf
        if len(looks) == 0:
            out[r] = unit * top + np.log(weight)
            continue
        base = unit * top + np.log(weight)
        most = base
        for j in range(len(looks)):
            reach = 0
            product = looks[j]
            halvings = 0  # powers of two that were taken out of the product, exactly
            for t in range(look_first[j], look_last[j]):
                x = abs(int64(sums[r, t]))
                reach += x
                twice = 2 * x if 2 * x < end else end
                product *= 0.5 * (1.0 + _decay(coarse, fine, twice))
                if product < 1e-200:
                    product, power = math.frexp(product)
                    halvings += power
            look_logs[j] = unit * reach + (halvings * LOG_2 + np.log(product))
            if look_logs[j] > most:  # noqa: PLR1730
                most = look_logs[j]
        whole = np.exp(base - most)  # as _with_lookups does
        for j in range(len(looks)):
            whole += np.exp(look_logs[j] - most)
        out[r] = most + np.log(whole)


@_compiled
def log_grandchildren(
    f,
    places,
    channels,
    weights,
    rows,
    row_first,
    sums,
    where,
    by_code,
    n_upper,
    pairs,
    singles,
    total,
    code_first,
    test_first,
    numeric,
    place_of,
    above_of,
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
    Where there are sums by triples (see :class:`Deeper`), they take the place of the rows.
    """
    n_tests, classes = singles.shape
    hist = np.zeros((code_first[n_upper], code_first[-1], classes), dtype=singles.dtype)
    running = np.zeros((code_first[-1], classes), dtype=singles.dtype)
    regions = np.zeros((4, n_tests, classes), dtype=singles.dtype)
    totals = np.zeros((4, classes), dtype=singles.dtype)
    z = np.zeros(4)
    size = code_first[f + 1] - code_first[f]
    for code in range(size - 1, -1, -1):
        _add_code(f, code, places, channels, weights, rows, row_first, sums, where, by_code,
                  n_upper, code_first, numeric, hist)  # fmt: skip
        c = test_first[f] + code - numeric[f]
        if numeric[f] and code == 0:
            break
        for g in range(f, n_upper):
            last = code_first[g + 1] - code_first[g] - 1
            for k in range(last, numeric[g] - 1, -1):
                line = hist[code_first[g] + k]
                more = numeric[g] and k < last
                for place in range(len(line)):
                    for j in range(classes):
                        running[place, j] = line[place, j] + (running[place, j] if more else 0)
                d = test_first[g] + k - numeric[g]
                if g == f and d < c:
                    continue
                _by_test(running, place_of, above_of, regions[0])
                for t in range(n_tests):
                    for j in range(classes):
                        both = regions[0, t, j]
                        regions[1, t, j] = pairs[c, t, j] - both
                        regions[2, t, j] = pairs[d, t, j] - both
                        regions[3, t, j] = singles[t, j] - pairs[c, t, j] - pairs[d, t, j] + both
                for j in range(classes):
                    both = pairs[c, d, j]
                    totals[0, j] = both
                    totals[1, j] = singles[c, j] - both
                    totals[2, j] = singles[d, j] - both
                    totals[3, j] = total[j] - singles[c, j] - singles[d, j] + both
                for r in range(4):
                    z[r] = _log_counts(regions[r], totals[r], priors, stop, looks, look_first,
                                       look_last, coarse, fine, unit)  # fmt: skip
                _write_pair(z, c, d, out)


@_internal
def _add_code(
    f, code, places, channels, weights, rows, row_first, sums, where, by_code, n_upper, code_first,
    numeric, hist
):  # fmt: skip
    """Add the records of one code of f; of a category, they alone are kept."""
    lines = hist.reshape((len(hist), -1))
    if not numeric[f]:
        _clear(lines, code_first[f])
    if len(where):
        _add_sums(f, code, sums, where, by_code, n_upper, code_first, hist.shape[2], lines)
    else:
        mine = rows[row_first[code] : row_first[code + 1]]
        add_pairs(places, channels, weights, mine, f, n_upper, 0, hist)


# Plain loops: whole arrays at once take many seconds to compile.


@_internal
def _clear(lines, first):
    for line in range(first, len(lines)):
        for h in range(lines.shape[1]):
            lines[line, h] = 0


@_internal
def _add_sums(f, code, sums, where, by_code, n_upper, code_first, classes, lines):
    """Add the sums by triples of one code of f, as :meth:`Deeper.planes` has them, to ``hist``."""
    mine = uint64(code_first[f] + code)
    for h in range(lines.shape[1]):
        lines[mine, h] += by_code[mine, h]
    for g in range(f + 1, n_upper):
        start = code_first[g]
        for line in range(uint64(start), uint64(code_first[g + 1])):
            for j in range(classes):
                both = by_code[mine, line * uint64(classes) + uint64(j)]
                lines[line, mine * uint64(classes) + uint64(j)] += both  # f comes last, too, ...
                lines[line, line * uint64(classes) + uint64(j)] += both  # ... or g
            for h in range(len(code_first) - 1):
                read = where[g, h, 0] + code * where[g, h, 1] + (line - start) * where[g, h, 2]
                into = code_first[h] * classes
                for i in range(where[g, h, 4]):
                    for j in range(classes):
                        found = sums[uint64(read + i * where[g, h, 3] + j)]
                        lines[line, uint64(into + i * classes + j)] += found


@_internal
def _write_pair(z, c, d, out):
    out[c, 1, d] = z[0] + z[1]
    out[c, 0, d] = z[2] + z[3]
    out[d, 1, c] = z[0] + z[2]
    out[d, 0, c] = z[1] + z[3]


@_internal
def _grow(rise, fine, shift, k):
    """Return ``exp(unit * k)``, k of either sign; ``rise`` is 1 in its middle."""
    middle = len(rise) // 2
    return rise[uint64((k >> shift) + middle)] * fine[uint64(k & (len(fine) - 1))]


# Two classes. No views of arrays, and no space of their own: both take long to compile.


@_internal
def _add_code_signed(
    f, code, places, weights, rows, row_first, sums, where, by_code, n_upper, code_first, numeric,
    hist
):  # fmt: skip
    """Do what ``_add_code`` does."""
    if not numeric[f]:
        _clear(hist, code_first[f])
    if len(where):
        _add_sums(f, code, sums, where, by_code, n_upper, code_first, 1, hist)
    else:
        for r in range(row_first[code], row_first[code + 1]):
            i = rows[r]
            for g in range(f, n_upper):
                for h in range(places.shape[1]):
                    hist[places[i, g], places[i, h]] += weights[i]


@_internal
def _add_line_signed(hist, line, more, whole):
    """Write the sums of one code, and of those before, to the first line of ``whole``."""
    if more:
        for place in range(hist.shape[1]):
            whole[0, place] += hist[line, place]
    else:
        for place in range(hist.shape[1]):
            whole[0, place] = hist[line, place]


@_internal
def _by_test_signed(place_of, above_of, whole):
    """Turn sums by code, the first line of ``whole``, into sums by test, the second."""
    above = whole[0, 0] - whole[0, 0]
    for t in range(len(place_of) - 1, -1, -1):
        above = whole[0, uint64(place_of[uint64(t)])] + (above & above_of[uint64(t)])
        whole[1, uint64(t)] = above


@_vectorised
def _four_weights(priors, power, inverse, c, d, parts):
    """Write half the sum of ``p cosh(unit (2d - total))`` over all tests, for four regions."""
    both, one, other, none = 0.0, 0.0, 0.0, 0.0
    for t in range(len(priors)):
        p = 0.25 * priors[t]
        up, down = parts[0, t], parts[1, t]
        both += p * (up + down)
        one += p * (power[c, t] * down + inverse[c, t] * up)
        other += p * (power[d, t] * down + inverse[d, t] * up)
        none += p * (parts[2, t] * inverse[d, t] * up + parts[3, t] * power[d, t] * down)
    parts[6, 0], parts[6, 1], parts[6, 2], parts[6, 3] = both, one, other, none


@_vectorised
def _four_lookups(prior, first, last, power, inverse, c, d, parts):
    """Add a lookup of the categories from ``first`` to ``last`` to the weights of four regions.

    The product of all cosh(unit x) is that of (1 + exp(2 unit x)) / 2, divided by the exponential
    of unit times the sum of all x, the region's.
    """
    both, one, other, none = prior, prior, prior, prior
    leaf_0, leaf_1, leaf_2, leaf_3 = parts[4, 0], parts[4, 1], parts[4, 2], parts[4, 3]
    for k in range(first, last):
        t = uint64(k)
        up, down = parts[0, t], parts[1, t]
        both *= 0.5 + 0.5 * (up * leaf_0)
        one *= 0.5 + 0.5 * (power[c, t] * down * leaf_1)
        other *= 0.5 + 0.5 * (power[d, t] * down * leaf_2)
        none *= 0.5 + 0.5 * (parts[2, t] * inverse[d, t] * up * leaf_3)
    parts[6, 0] += both * parts[5, 0]
    parts[6, 1] += one * parts[5, 1]
    parts[6, 2] += other * parts[5, 2]
    parts[6, 3] += none * parts[5, 3]


@_compiled
def log_grandchildren_signed(
    f,
    low,
    high,
    places,
    weights,
    rows,
    row_first,
    sums,
    where,
    by_code,
    n_upper,
    pairs,
    singles,
    total,
    code_first,
    test_first,
    numeric,
    place_of,
    above_of,
    priors,
    stop,
    looks,
    look_first,
    look_last,
    rise,
    rise_fine,
    shift,
    most,
    power,
    inverse,
    fits,
    hist,
    whole,
    parts,
    lines,
    which,
    out,
):
    """Do what ``log_grandchildren`` does, with two classes; return how many pairs are left out.

    With ``x = exp(unit (2d - total))`` of a test in the region of those who pass both upper tests,
    that of the three other regions is a product of ``1/x`` or ``x`` and of numbers that depend on
    one upper test: one exponential per pair and test is enough, where all of them are within
    ``most`` units. ``out`` begins as NaN, and stays so for other pairs. ``rise`` and ``rise_fine``
    are the tables of :func:`_grow`, three times as far. ``hist``, ``whole`` and ``parts`` are zeros
    to work on: what is seen of a code; sums by place, and by test; and doubles: x, 1/x, those of
    who fails both tests, and of every region the exponential of its total, its inverse and the
    weight.

    Codes of f from ``high - 1`` down to ``low`` are visited. If ``lines`` has room, pairs that were
    left out are not weighed: their sums by test of those who pass both are written there, and to
    ``which`` the test d.
    """
    n_tests = len(singles)
    ends, left = stop, 0
    for t in range(n_tests):
        ends += 0.5 * priors[t]
    for code in range(high - 1, low - 1, -1):
        _add_code_signed(f, code, places, weights, rows, row_first, sums, where, by_code, n_upper,
                         code_first, numeric, hist)  # fmt: skip
        c = test_first[f] + code - numeric[f]
        if numeric[f] and code == 0:
            break
        if fits[c]:
            for t in range(n_tests):
                fails = 2 * (singles[t] - pairs[c, t]) - (total - singles[c])
                parts[2, t] = _grow(rise, rise_fine, shift, fails)
                parts[3, t] = 1.0 / parts[2, t]
        for g in range(f, n_upper):
            last = code_first[g + 1] - code_first[g] - 1
            for k in range(last, numeric[g] - 1, -1):
                _add_line_signed(hist, code_first[g] + k, numeric[g] and k < last, whole)
                d = test_first[g] + k - numeric[g]
                if g == f and d < c:
                    continue
                if len(lines):
                    if np.isnan(out[c, 1, d]):
                        _by_test_signed(place_of, above_of, whole)
                        for t in range(n_tests):
                            lines[left, t] = whole[1, t]
                        which[left] = d
                        left += 1
                    continue
                small = fits[c] and fits[d]
                if small:
                    _by_test_signed(place_of, above_of, whole)
                    inside = int64(pairs[c, d])
                    least, greatest = whole[1, 0], whole[1, 0]
                    for t in range(n_tests):
                        least = whole[1, t] if whole[1, t] < least else least
                        greatest = whole[1, t] if whole[1, t] > greatest else greatest
                    small = (
                        abs(inside) <= most
                        and 2 * int64(greatest) - inside <= most
                        and inside - 2 * int64(least) <= most
                    )
                if small:
                    for t in range(n_tests):
                        parts[0, t] = _grow(rise, rise_fine, shift, 2 * whole[1, t] - inside)
                    for t in range(n_tests):
                        parts[1, t] = 1.0 / parts[0, t]
                    _four_weights(priors, power, inverse, c, d, parts)
                    whole[2, 0] = inside
                    whole[2, 1] = singles[c] - inside
                    whole[2, 2] = singles[d] - inside
                    whole[2, 3] = total - singles[c] - singles[d] + inside
                    for r in range(4):
                        leaf = _grow(rise, rise_fine, shift, int64(whole[2, r]))
                        parts[4, r], parts[5, r] = leaf, 1.0 / leaf
                        parts[6, r] += ends * 0.5 * (leaf + parts[5, r])
                    for j in range(len(looks)):
                        _four_lookups(looks[j], look_first[j], look_last[j], power, inverse, c, d,
                                      parts)  # fmt: skip
                    for r in range(4):
                        small &= parts[6, r] < np.inf
                if small:
                    for r in range(4):
                        parts[6, r] = np.log(parts[6, r])
                    out[c, 1, d] = parts[6, 0] + parts[6, 1]
                    out[c, 0, d] = parts[6, 2] + parts[6, 3]
                    out[d, 1, c] = parts[6, 0] + parts[6, 2]
                    out[d, 0, c] = parts[6, 1] + parts[6, 3]
                else:
                    left += 1
    return left
