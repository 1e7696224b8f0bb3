"""Quantiles that are drawn at once: the exact law, neighbours, and how near they come."""

import itertools
import math

import numpy as np
import pytest

from privet import Budget, Numeric, PrivateTable, Schema
from privet.audit import exact
from privet.errors import BudgetError
from privet.privacy import JointQuantiles
from privet.tables.joint_quantiles import draw_cuts


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
    law = exact.law_of(lambda noise: tuple(draw_cuts(np.array(counts), parts, 0.3, noise)))
    expected = enumerated(counts, parts, 0.3)
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


def test_they_come_near_and_cost_their_amount():
    values = np.random.default_rng(0).lognormal(1, 1.5, 200_000).clip(0, 1000)
    schema = Schema({"x": Numeric(0, 1000)}, target="y", classes=[0, 1])
    table = PrivateTable(values.reshape(-1, 1), np.zeros(len(values), int), schema, Budget(1.0))
    cuts = table.joint_quantiles(0, 10, 0.5)
    ranks = [np.mean(values < cut) for cut in cuts]
    assert np.abs(np.array(ranks) - np.arange(1, 10) / 10).max() < 0.02
    assert table.ledger.left == 0.5


@pytest.mark.parametrize("parts", [1, 33])
def test_too_many_parts_are_refused(parts):
    with pytest.raises(BudgetError, match="2 to 32"):
        JointQuantiles(1, parts)
