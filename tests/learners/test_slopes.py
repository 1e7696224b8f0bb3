"""Slopes: the plan by public numbers, what is published of them, and views of the label's tree."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from privet import (
    Budget,
    Categorical,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateBoostingClassifier,
    PrivateTable,
    Schema,
)
from privet.engines import View
from privet.learners import slopes
from privet.learners.budgets import start_of_classes
from privet.schema import Integer
from privet.tables import Branch, Leaf, Split
from privet.tables import cells as wall

SCHEMA = Schema(
    {
        "x": Numeric(-1, 1),
        "n": Integer(0, 5),
        "z": Numeric(0, 1000),
        "c": Categorical(["a", "b", "c"]),
    },
    "y",
    classes=["no", "yes"],
)
pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def make_rows(rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-1, 1, rows),
            "n": rng.integers(0, 6, rows),
            "z": 1000 * rng.random(rows) ** 4,
            "c": rng.choice(["a", "b", "c", "d"], rows),
        }
    )
    frame.loc[::19, "x"] = np.nan
    odds = 2 * frame["x"].fillna(0) + 0.5 * (frame["n"] - 2.5) + (frame["c"] == "a")
    return frame, np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "yes", "no")


def test_what_is_published_is_what_was_learnt_from():
    """Scores behind the wall are those of the published trees, label included."""
    frame, target = make_rows(400)
    budget = Budget(rho=1)
    table = PrivateTable(frame, target, SCHEMA, budget, random_state=0)
    start, amount, _ = start_of_classes(table, budget.limit)
    tree = Branch(Split(3, (0, 1, 1, 1)), (Leaf(1), Leaf(0)))
    view = slopes.slope_view(SCHEMA)
    found = slopes.fit(table, start, amount=amount, rows=400, label=(tree, view))
    assert found.by_leaf is not None
    leaves = table.root(found.view).split([tree.split])
    scores = found.scores(table, table.root(found.view), leaves)
    engine = wall.behind_table[table].engine
    (block,) = engine._blocks._blocks
    behind = block.scores(wall.behind_scores[scores].lineage)
    np.testing.assert_allclose(found.ensemble().predict_score(frame), behind, atol=1e-12)
    assert 0 <= table.ledger.left < budget.limit / 10**12


def test_positions_are_those_of_values():
    view = slopes.slope_view(SCHEMA)
    for j, low, high in ((0, -1, 1), (1, 0, 5), (2, 0, 1000)):
        places = slopes.positions_of(view, j)
        assert math.isnan(places[-1])
        assert (np.diff(places[:-1]) > 0).all()
        assert np.abs(places[:-1]).max() <= 1
        assert len(places) == view.sizes[j] <= slopes.CELLS + 1
        assert all(low < cut < high for cut in view.cuts[j])
    finer = slopes.joined_view(view, View.of_grid(SCHEMA))
    fine, coarse = slopes.positions_of(finer, 2), slopes.positions_of(view, 2)
    inside = np.searchsorted(view.cuts[2], [0, *finer.cuts[2]], side="right")
    np.testing.assert_array_equal(fine[:-1], coarse[inside])


def test_a_tree_is_the_same_through_a_finer_view():
    old = View.of_bins(SCHEMA)
    new = slopes.joined_view(slopes.slope_view(SCHEMA), old)
    split = Split(0, tuple(code % 3 for code in range(old.sizes[0])))
    again = slopes.seen_through(Branch(split, (Leaf(0), Leaf(1), Leaf(0))), old, new)
    values = np.linspace(-1, 1, 999)
    codes = np.searchsorted(old.cuts[0], values, side="right")
    finer = np.searchsorted(new.cuts[0], values, side="right")
    assert [split.children[code] for code in codes] == [again.split.children[c] for c in finer]
    assert again.split.children[-1] == split.children[-1]
    assert again.split.fits(new)


def test_the_plan_follows_from_public_numbers():
    budget = Budget(1.0, delta=1e-6)
    small = slopes.make_plan(budget, budget.limit, 500, (0.0,), 10)
    large = slopes.make_plan(budget, budget.limit, 100_000, (0.0,), 10)
    assert (small.curved, large.curved) == (0.5, 1.0)
    assert small.path < large.path == slopes.LONGEST_PATH
    assert small.steps < large.steps == slopes.MOST_STEPS
    assert small.largest == large.largest == 0.5
    rare = slopes.make_plan(budget, budget.limit, 1_000, (-3.0,), 10)
    assert rare.largest == pytest.approx(1 / (1 + math.exp(-3.0)))
    tiny = slopes.make_plan(budget, budget.limit, 10, (-9.0,), 10)
    assert tiny.path < 0.1
    assert tiny.start == pytest.approx((math.log(0.02 / (1 + 0.02 - math.exp(-9))),), abs=0.05)
    assert slopes.n_features(100, 30) == 10
    assert slopes.n_features(330, 30) == 22
    assert slopes.n_features(1e5, 30) == slopes.n_features(math.inf, 30) == 30


def test_steps_are_long_only_where_rounds_follow_and_features_are_few():
    budget = Budget(1.0, delta=1e-6)
    plan = partial(slopes.make_plan, budget, budget.limit, 100_000, (0.0,))
    assert plan(16, long_steps=True).steps == slopes.LONGEST_PATH / slopes.LONG_STEP == 32
    assert plan(17, long_steps=True).steps == plan(16).steps == slopes.MOST_STEPS
    for one in (plan(16), plan(16, long_steps=True)):
        assert one.steps * one.each == budget.limit


def test_scores_are_drawn_in_by_the_noise_in_them():
    """With the noise of the steps alone, a typical score has the variance that is said."""
    budget = Budget(1.0, delta=1e-6)
    plan = slopes.make_plan(budget, budget.limit, 1_000, (0.0,), 10)
    deviation = plan.largest * plan.longest / math.sqrt(2 * float(plan.each))
    noise = np.random.default_rng(0).normal(0, deviation, (4_000, plan.steps)).sum(axis=1)
    slope = plan.path / plan.steps / 1_000 * noise
    typical = (plan.longest / slopes.TYPICAL) ** 2
    variance = (1 / slopes.certainty(plan, 1_000) ** 2 - 1) / (slopes.NOISE_LEFT * math.pi / 8)
    assert typical * slope.var() == pytest.approx(variance, rel=0.15)
    without = replace(plan, each=math.inf)
    assert slopes.certainty(plan, 1_000) < 0.98 < slopes.certainty(without, 1_000) == 1.0


def kinds(model):
    return [entry.question.kind for entry in model.privacy_.entries]


def test_small_tables_are_ranked():
    """Of 6 fits each the worst had an AUC of 0.80 (boosting) and 0.80 (additive)."""
    frame, target = make_rows(2_000)
    test, truth = make_rows(4_000, seed=1)
    given = {"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 0}
    for model in (
        PrivateBoostingClassifier(n_rows=2_000, **given),
        PrivateAdditiveClassifier(**given),
    ):
        model.fit(frame, target)
        assert {"sums", "slopes", "calibration"} <= set(kinds(model))
        assert ("whole-tree" in kinds(model)) == isinstance(model, PrivateBoostingClassifier)
        shares = model.predict_proba(test)[:, 1]
        above = shares[truth == "yes"][:, None] > shares[truth == "no"][None, :]
        assert above.mean() > 0.75
        assert model.privacy_.epsilon <= 1


def test_larger_tables_start_from_slopes():
    frame, target = make_rows(300)
    given = {"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 0}
    model = PrivateBoostingClassifier(n_rows=30_000, n_rounds=1, max_depth=1, **given)
    model.fit(frame, target)
    assert {"sums", "slopes", "whole-tree", "gradients"} <= set(kinds(model))
    assert not {"calibration", "features"} & set(kinds(model))
    assert len(model.predictor_.trees) == 1 + len(SCHEMA.names)
    few = PrivateBoostingClassifier(n_rows=15_000, n_rounds=1, max_depth=1, **given)
    assert "slopes" not in kinds(few.fit(frame, target))
