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
from privet.tables import Basis, Branch, Leaf, Peaks, Split, Sums
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


def test_how_sure_scores_are_follows_from_released_numbers():
    budget = Budget(1.0, delta=1e-6)
    plan = slopes.make_plan(budget, budget.limit, 300, (0.0,), 10)
    sure = partial(slopes.certainty, plan)
    assert slopes.LEAST_SURE < sure(1.0) < sure(2.0) < sure(3.0) < slopes.MOST_SURE
    assert sure(2.0) / sure(1.0) == pytest.approx(math.exp(slopes.SURE_BY_AGREEMENT))
    assert sure(-99.0) == slopes.LEAST_SURE
    assert sure(99.0) == slopes.MOST_SURE
    # Slopes that moved less far, or by a flatter curvature, are not at their end.
    assert slopes.certainty(replace(plan, path=plan.path / 2), 1.0) > sure(1.0)
    assert slopes.certainty(replace(plan, start=(-2.0,)), 1.0) > sure(1.0)
    assert slopes.certainty(replace(plan, path=0.0), 0.0) == slopes.MOST_SURE
    assert slopes.certainty(replace(plan, each=math.inf), -9.0) == 1.0


def agreement_of(signal, seed):
    """Let slopes descend on sums that are a signal and noise; return their agreement."""
    rng, deviation, width = np.random.default_rng(seed), 30.0, 20
    functions = Peaks.of(math.sqrt(2), np.full(width, 1 / width))
    basis = Basis(((0, functions),), None)
    budget = Budget(1.0, delta=1e-6)
    plan = slopes.make_plan(budget, budget.limit, 300, (0.0,), 10)
    direction = np.zeros((width, 1))
    direction[:3] = signal

    class Leaves:
        def noisy_slopes(self, *given, **named):
            noise = rng.normal(0, deviation, (width, 1))
            return Sums(direction + noise, deviation)

    class NoTable:
        def start_scores(self, start):
            return self

        def add_curves(self, root, curves):
            pass

    view = slopes.slope_view(Schema({"a": Categorical(range(width - 1))}, "y", classes=[0, 1]))
    first = slopes.Slopes(view, plan.start)
    return slopes._descend(NoTable(), None, Leaves(), first, basis, plan, 300)[1]


def test_agreement_has_mean_zero_and_deviation_one_without_a_signal():
    found = np.array([agreement_of(0.0, seed) for seed in range(100)])
    assert abs(found.mean()) < 4 / math.sqrt(100)
    assert 0.7 < found.std() < 1.4
    assert np.mean([agreement_of(30.0, seed) for seed in range(5)]) > 3


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
