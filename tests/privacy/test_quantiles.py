"""Quantiles on a grid: the exact law, neighbours, how near they come, and bad input."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privet.audit import exact
from privet.errors import BudgetError, DataError
from privet.privacy import (
    JointQuantiles,
    Quantiles,
    SeededNoise,
    private_quantiles,
    quantiles,
)


def enumerated(counts, parts, rate):
    """Return the law by plain enumeration of all increasing tuples of cuts."""
    cells, total = len(counts), sum(counts)
    weights = {}
    for cuts in itertools.combinations_with_replacement(range(1, cells), parts - 1):
        ends = [0, *cuts, cells]
        sizes = [sum(counts[a:b]) for a, b in itertools.pairwise(ends)]
        weights[cuts] = math.exp(-rate * sum(abs(parts * size - total) for size in sizes))
    everything = sum(weights.values())
    return {cuts: weight / everything for cuts, weight in weights.items()}


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("counts", [[0, 0, 0], [3, 0, 1, 2], [1, 1, 1, 1, 1], [0, 9, 0, 0, 1, 4]])
def test_every_tuple_has_exactly_its_probability(parts, counts):
    mechanism = JointQuantiles(2, parts)
    law = exact.law_of(lambda noise: tuple(mechanism.choose(np.array(counts), noise)))
    expected = enumerated(counts, parts, mechanism.rate)
    assert set(law) == set(expected)
    for cuts, probability in expected.items():
        assert law[cuts] == pytest.approx(math.log(probability), abs=1e-9)


def worst_ratio(parts, rate):
    tables = [list(t) for t in itertools.product(range(3), repeat=3)] + [[9, 0, 0, 0], [4, 0, 0, 4]]
    worst = 0.0
    for counts in tables:
        before = enumerated(counts, parts, rate)
        for place in range(len(counts)):
            more = [n + (k == place) for k, n in enumerate(counts)]
            after = enumerated(more, parts, rate)
            worst = max(worst, *(abs(math.log(after[c] / before[c])) for c in before))
    return worst


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_no_neighbour_is_told_apart_by_more_than_epsilon(parts):
    assert 0.3 < worst_ratio(parts, JointQuantiles(1, parts).rate) <= 1


def test_too_large_a_rate_would_be_seen():
    assert worst_ratio(2, 3 * JointQuantiles(1, 2).rate) > 1


@pytest.mark.parametrize("mechanism", [Quantiles(4, 1), JointQuantiles(1, 4)])
@pytest.mark.parametrize("counts", [[5], [1, 2], [0, 0, 9, 0, 0]])
def test_cuts_lie_between_cells_in_order(mechanism, counts):
    cuts = mechanism.choose(np.array(counts), SeededNoise(0))
    assert cuts == sorted(cuts)
    assert all(0 < cut < len(counts) for cut in cuts)


@pytest.mark.parametrize(("parts", "reason"), [(1, "at least two"), (2**16 + 1, "at most")])
def test_a_number_of_parts_that_means_nothing_is_refused(parts, reason):
    with pytest.raises(BudgetError, match=reason):
        Quantiles(parts, 1)


@pytest.mark.parametrize("parts", [1, 33])
def test_too_many_parts_are_refused(parts):
    with pytest.raises(BudgetError, match="2 to 32"):
        JointQuantiles(1, parts)


class TestColumn:
    """``private_quantiles``: one column of numbers, without books."""

    @pytest.mark.parametrize(
        ("method", "atol"),
        [("recursive", 1e-3), ("joint", 1e-2)],  # a coarse cell holds up to 0.6 % of these
    )
    def test_a_million_values(self, method, atol):
        values = np.random.default_rng(0).lognormal(1, 1.5, 1_000_000)
        cuts = private_quantiles(values, 0, 1000, 10, 1.0, method=method)
        ranks = np.searchsorted(np.sort(values), cuts) / len(values)
        np.testing.assert_allclose(ranks, np.arange(1, 10) / 10, atol=atol)

    @pytest.mark.parametrize("method", ["recursive", "joint"])
    @pytest.mark.parametrize(
        "values",
        [
            [],
            [1.0],
            [None, math.nan, "unknown", 2, "3", 10**400, object(), [4]],
            [-math.inf, math.inf, 1e300],
            np.array(["1", "x"]),
            np.array([True, False]),
            np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        ],
    )
    def test_no_value_makes_an_error(self, method, values):
        cuts = private_quantiles(values, 0, 10, 4, 1.0, method=method)
        assert len(cuts) == 3
        assert list(cuts) == sorted(cuts)
        assert all(0 < cut < 10 for cut in cuts)

    def test_what_lies_outside_counts_as_the_nearer_bound_and_what_is_missing_not_at_all(self):
        inside = np.linspace(4, 8, 4001)
        values = np.concatenate([inside, [-1e9] * 3000, [math.inf] * 1000, [math.nan] * 9999])
        (cut,) = private_quantiles(values, 0, 10, 2, 10.0)  # a thousand below it lie within
        assert cut == pytest.approx(5, abs=0.05)

    def test_masked_values_are_missing(self):
        numbers = np.concatenate([np.linspace(4, 8, 4001), np.full(5000, 9.0)])
        values = np.ma.masked_array(numbers, mask=numbers == 9)
        (cut,) = private_quantiles(values, 0, 10, 2, 10.0)
        assert cut == pytest.approx(6, abs=0.05)

    def test_bounds_without_room_have_fewer_cuts(self):
        for method in ("recursive", "joint"):
            assert private_quantiles([1.0], 1, math.nextafter(1, 2), 4, 1.0, method=method) == ()

    @pytest.mark.parametrize(
        ("change", "error", "reason"),
        [
            ({"low": 5, "high": 5}, DataError, "low < high"),
            ({"high": math.inf}, DataError, "finite"),
            ({"low": math.nan}, DataError, "finite"),
            ({"low": "zero"}, DataError, "low must be"),
            ({"parts": 1}, BudgetError, "two parts"),
            ({"parts": 2.5}, BudgetError, "whole number"),
            ({"parts": True}, BudgetError, "whole number"),
            ({"parts": 33, "method": "joint"}, BudgetError, "2 to 32"),
            ({"epsilon": 0}, BudgetError, "positive"),
            ({"epsilon": math.nan}, BudgetError, "NaN"),
            ({"epsilon": math.inf}, BudgetError, "finite"),
            ({"method": "best"}, ValueError, "method"),
            ({"values": [[1.0, 2.0]]}, DataError, "one column"),
            ({"values": 3.0}, DataError, "one column"),
            ({"values": np.array([1j])}, DataError, "complex"),
            ({"values": np.array(["2020-01-01"], dtype="datetime64[D]")}, DataError, "type"),
        ],
    )
    def test_bad_input_is_refused(self, change, error, reason):
        given = {"values": [1.0], "low": 0, "high": 10, "parts": 4, "epsilon": 1.0} | change
        with pytest.raises(error, match=reason):
            private_quantiles(**given)


@pytest.mark.parametrize("parts", [8, 11])
def test_how_many_intervals_are_weighed_together_changes_nothing(parts, monkeypatch):
    """The same cuts by the same noise: full cells, empty ones, and one that has nearly all."""
    counts = np.random.default_rng(3).poisson(0.5, 400) + 2_000 * (np.arange(400) == 350)
    found = []
    for together in (2**15, 60, 1):
        monkeypatch.setattr(quantiles, "_TOGETHER", together)
        found.append(Quantiles(parts, Fraction(1)).choose(counts, SeededNoise(9)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(set(found[0])) == parts - 1
