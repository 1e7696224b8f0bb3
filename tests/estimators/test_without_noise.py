"""An infinite epsilon: the limit of large ones, for the learners that draw whole trees."""

import math

import numpy as np
import pytest

from privet import (
    Budget,
    Numeric,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTable,
    PrivateTreeClassifier,
    PrivateTreeRegressor,
    Schema,
)
from privet.learners import boosting, whole_trees

pytestmark = [
    pytest.mark.filterwarnings("ignore:random_state is fixed"),
    pytest.mark.filterwarnings("ignore:epsilon is infinite"),
]
#: All records lie within two per cent of the range: no cut of the grid is near the upper quartile.
FEATURES = {"x": Numeric(0, 1e6), "z": Numeric(0, 1)}
UPPER_QUARTILE = 5e5 + 0.6745 * 3000


def narrow_table(rows, seed):
    generator = np.random.default_rng(seed)
    table = np.column_stack([generator.normal(5e5, 3000, rows), generator.random(rows)])
    return table, (table[:, 0] > UPPER_QUARTILE).astype(int)


@pytest.mark.parametrize(
    "learner",
    [
        PrivateTreeClassifier,
        PrivateBoostingClassifier,
        PrivateTreeRegressor,
        PrivateBoostingRegressor,
    ],
)
def test_no_noise_is_at_least_as_good_as_some(learner):
    """Without quantiles, trees had 0.75 here; the last half per cent is how the rows fall."""
    target = {"classes": [0, 1]} if "Classifier" in learner.__name__ else {"bounds": (0, 1)}
    schema = Schema(FEATURES, "y", **target)
    test = narrow_table(20_000, 1)
    scores = {
        epsilon: learner(epsilon, schema=schema, random_state=0)
        .fit(*narrow_table(20_000, 0))
        .score(*test)
        for epsilon in (1.0, 100.0, math.inf)
    }
    assert scores[math.inf] > 0.95
    assert scores[math.inf] >= max(scores.values()) - 0.005


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_without_noise_are_those_of_the_records(seed):
    """Between two records the point is drawn, but which two is not."""
    values = np.arange(1, 161) / 200
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])
    table = PrivateTable(
        values[:, None], np.zeros(160, dtype=int), schema, Budget(math.inf), random_state=seed
    )
    found = table.quantiles(0, 16, math.inf)
    below = [int((values < point).sum()) for point in found]
    assert below == list(range(10, 160, 10))


def test_a_plan_without_noise_is_that_of_a_large_epsilon():
    for kind in ({"classes": [0, 1]}, {"bounds": (0, 1)}):
        schema = Schema(FEATURES, "y", **kind)
        plan, large = (
            boosting.make_plan(schema, 10**6, amount, Budget(amount), None, None)
            for amount in (math.inf, 10**6)
        )
        assert plan.quantiles == math.inf
        assert all(block.amount == math.inf for block in plan.rounds)
        assert (plan.grid, len(plan.rounds), plan.rate) == (
            large.grid,
            len(large.rounds),
            large.rate,
        )
    schema = Schema(FEATURES, "y", classes=[0, 1])
    tree, large_tree = (
        whole_trees.make_plan(schema, 10**6, amount, None, 0, Budget(amount))
        for amount in (math.inf, 10**6)
    )
    assert tree.quantiles == math.inf
    assert tree.grid == large_tree.grid
    assert [block.depth for block in tree.blocks] == [block.depth for block in large_tree.blocks]
