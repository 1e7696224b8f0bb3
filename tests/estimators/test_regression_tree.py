"""PrivateTreeRegressor: its plan, its leaves, and what bad input gets."""

import math

import numpy as np
import pandas as pd
import pytest

import privet
from privet import (
    Budget,
    Categorical,
    LedgerStore,
    Numeric,
    PrivacyLeakWarning,
    PrivateTreeRegressor,
    Schema,
)
from privet.errors import BudgetError, SchemaError
from privet.export import to_python, to_sql, to_text
from privet.learners.regression_trees import greedy_depth
from privet.learners.whole_trees import block_depths

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")
SCHEMA = Schema(
    {"x": Numeric(0, 1), "z": Numeric(-5, 5), "c": Categorical(list("uvw"))},
    target="days",
    bounds=(0, 30),
)


def data(rows, seed=0):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": generator.random(rows),
            "z": generator.normal(size=rows),
            "c": generator.choice(list("uvw"), rows),
        }
    )
    y = 20 * X["x"].to_numpy() + 8 * (X["c"] == "u").to_numpy() + generator.normal(size=rows)
    return X, y


@pytest.mark.parametrize("criterion", ["linear", "sad", "sse"])
@pytest.mark.parametrize("depth", ["auto", 1, 2, 4])
def test_a_fit_spends_at_most_what_was_asked_for(criterion, depth):
    X, y = data(500)
    for rows in (None, 500):
        model = PrivateTreeRegressor(
            2.0, SCHEMA, max_depth=depth, criterion=criterion, n_rows=rows, random_state=0
        ).fit(X, y)
        assert model.privacy_.epsilon == pytest.approx(2.0)
        assert model.privacy_.epsilon <= 2.0 + 1e-12
        assert model.tree_.depth <= (9 if depth == "auto" else depth)


@pytest.mark.parametrize("criterion", ["linear", "sad", "sse"])
def test_it_learns(criterion):
    X, y = data(8_000)
    model = PrivateTreeRegressor(2.0, SCHEMA, criterion=criterion, random_state=0).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.25 * np.var(y)
    assert set(model.tree_.used) >= {"x"}
    assert model.score(X, y) > 0.75


def test_without_noise_leaves_have_the_means_of_their_records():
    X, y = data(2_000)
    with pytest.warns(PrivacyLeakWarning):
        model = PrivateTreeRegressor(math.inf, SCHEMA, criterion="sad", max_depth=3).fit(X, y)
    leaves = model.tree_.apply(X)
    for leaf in np.unique(leaves):
        # Residuals are cut at the bounds; noise in y goes a little beyond them.
        mine = np.clip(y[leaves == leaf], 0, 30)
        assert model.tree_.values[leaf, 0] == pytest.approx(mine.mean(), abs=1e-2)


def test_no_test_contradicts_one_above():
    X, y = data(20_000)
    tree = PrivateTreeRegressor(20.0, SCHEMA, random_state=1).fit(X, y).tree_
    generator = np.random.default_rng(3)
    probe = pd.DataFrame(
        {
            "x": generator.random(200_000),
            "z": generator.uniform(-5, 5, 200_000),
            "c": generator.choice([*"uvw", "?"], 200_000),
        }
    )
    probe.loc[:20_000, "x"] = np.nan
    probe.loc[10_000:30_000, "z"] = np.nan
    assert tree.n_leaves > 16
    reached = len(np.unique(tree.apply(probe)))
    assert reached > 0.8 * tree.n_leaves  # thin cells near a bound can be missed by the probe


def test_it_is_saved_and_exported(tmp_path):
    X, y = data(2_000)
    model = PrivateTreeRegressor(2.0, SCHEMA, random_state=0).fit(X, y)
    model.save(tmp_path / "tree.json")
    again = privet.load(tmp_path / "tree.json")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert "days" in to_text(again.predictor) or to_text(again.predictor)
    space = {}
    exec(to_python(again.predictor), space)
    record = X.iloc[0].to_dict()
    assert space["predict"](record) == pytest.approx(model.predict(X.iloc[:1])[0])
    assert "CASE" in to_sql(again.predictor)


def test_more_rows_or_epsilon_never_make_the_plan_smaller():
    sizes = [sum(block_depths(mass, None, three_from=15_000)) for mass in (10, 100, 5_000, 20_000)]
    assert sizes == [2, 3, 6, 9]
    depths = [greedy_depth(mass) for mass in (1, 100, 1e4, 1e6, math.inf)]
    assert depths == sorted(depths)
    assert depths[0] == 2
    assert depths[-1] == 9


def test_odd_tables_fit():
    X, y = data(4)
    for criterion in ("linear", "sad", "sse"):
        model = PrivateTreeRegressor(1.0, SCHEMA, criterion=criterion, max_depth=3, random_state=0)
        assert model.fit(X, y).predict(X).shape == (4,)
        assert model.fit(X.iloc[:0], y[:0]).predict(X).shape == (4,)
        assert model.fit(X, [7.0] * 4).predict(X).shape == (4,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"criterion": "gini"}, "criterion"),
        ({"max_depth": 13}, "max_depth"),
        ({"max_depth": 0}, "max_depth"),
        ({"epsilon": 1e-5}, "epsilon"),
        ({"n_rows": -1}, "n_rows"),
        ({"merge_tests": 1}, "merge_tests"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_spent(tmp_path, given, words):
    store = LedgerStore.create(tmp_path / "books", Budget(5.0), columns=[*SCHEMA.names, "days"])
    X, y = data(50)
    with pytest.raises(BudgetError, match=words):
        PrivateTreeRegressor(**{"epsilon": 1.0, **given}, schema=SCHEMA, ledger=store).fit(X, y)
    assert store.spent == 0


def test_classes_are_refused():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])
    with pytest.raises(SchemaError, match="regressor"):
        PrivateTreeRegressor(1.0, schema).fit([[0.5]], [1])
