"""The baselines: budgets, what they learn, odd tables, and their parts."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import Categorical, Numeric, Schema
from privet.baselines import (
    BDPTClassifier,
    DPGDFClassifier,
    FletcherIslamForestClassifier,
    PatilSinghForestClassifier,
    PatilSinghForestRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
)
from privet.baselines._learners import (
    _pruned,
    _random_split,
    _some_features,
    bdpt_amounts,
    even_view,
    two_ways,
)
from privet.errors import BudgetError, SchemaError
from privet.learners._growth import Growth, everything, trees_of
from privet.privacy import Coins
from privet.tables import Each, Split

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
FEATURES = {
    "x": Numeric(0, 1),
    "z": Numeric(-5, 5),
    "few": Categorical(["u", "v", "w"]),
}
CLASSIFIERS = [
    RandomTreesClassifier,
    PatilSinghForestClassifier,
    FletcherIslamForestClassifier,
    BDPTClassifier,
    DPGDFClassifier,
]
REGRESSORS = [RandomTreesRegressor, PatilSinghForestRegressor]
EVERYTHING = [*CLASSIFIERS, *REGRESSORS]


def make_table(rows, kinds=2, seed=0):
    """Return features and classes, or (no kinds) a number between 0 and 10."""
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": generator.random(rows),
            "z": generator.normal(size=rows),
            "few": generator.choice(["u", "v", "w", "strange"], rows, p=[0.4, 0.3, 0.28, 0.02]),
        }
    )
    table.loc[generator.random(rows) < 0.02, "z"] = math.nan
    score = 2 * (table["x"] > 0.6) + (table["few"] == "u")
    if not kinds:
        return table, 2 + 2.0 * score.to_numpy()
    return table, score.to_numpy() % kinds


def schema_of(model, kinds=2, features=None):
    target = {"bounds": (0, 10)} if model in REGRESSORS else {"classes": list(range(kinds))}
    return Schema(features or FEATURES, "y", **target)


def small(model, epsilon, schema, **given):
    """Return an estimator with few trees of few levels (random ones need some more)."""
    usual = {} if model is BDPTClassifier else {"n_estimators": 3}
    depth = 6 if "Random" in model.__name__ else 2
    return model(epsilon, schema, **{**usual, "max_depth": depth, **given})


def configurations(model):
    """Yield options that change what is asked."""
    if model is BDPTClassifier:
        return [{}, {"max_depth": 3}]
    if model is DPGDFClassifier:
        return [{"n_estimators": 1}, {"n_estimators": 4, "max_depth": 3}]
    found = [{"n_estimators": 1}, {"n_estimators": 4, "max_depth": "auto"}]
    found.append({"max_depth": "auto", "n_rows": 2_000})
    if model is not FletcherIslamForestClassifier:
        found += [{"partition": True}, {"partition": True, "max_depth": "auto"}]
    return found


def both(models):
    return [(model, given) for model in models for given in configurations(model)]


# Budgets


@pytest.mark.parametrize(("model", "given"), both(EVERYTHING), ids=str)
def test_the_ledger_shows_epsilon_and_no_more(model, given):
    table, y = make_table(2_000, 0 if model in REGRESSORS else 2)
    fitted = small(model, 1.5, schema_of(model), **given).fit(table, y)
    assert fitted.privacy_.private
    assert fitted.privacy_.epsilon <= 1.5
    stops = model not in (RandomTreesClassifier, RandomTreesRegressor, DPGDFClassifier)
    if not stops:  # every path is paid in full
        assert fitted.privacy_.epsilon == 1.5


@pytest.mark.parametrize("model", EVERYTHING)
def test_with_enough_records_all_is_spent(model):
    table, y = make_table(20_000, 0 if model in REGRESSORS else 2)
    given = {} if model is BDPTClassifier else {"n_estimators": 2}
    fitted = small(model, 20.0, schema_of(model), **given).fit(table, y)
    assert fitted.privacy_.epsilon == 20.0


@SEEDED
@pytest.mark.filterwarnings("ignore:epsilon is infinite")
@pytest.mark.parametrize("model", EVERYTHING)
def test_without_noise_they_learn(model):
    table, y = make_table(4_000, 0 if model in REGRESSORS else 4)
    fitted = small(model, math.inf, schema_of(model, 4), random_state=0).fit(table, y)
    assert fitted.score(table, y) > (0.5 if "Random" in model.__name__ else 0.8)
    assert not fitted.privacy_.private


# Learning


@SEEDED
@pytest.mark.parametrize(("model", "given"), both(EVERYTHING), ids=str)
def test_they_learn_mixed_features_and_several_classes(model, given):
    kinds = 0 if model in REGRESSORS else 3
    table, y = make_table(8_000, kinds)
    fitted = small(model, 10.0, schema_of(model, 3), random_state=1, **given).fit(table, y)
    least = 0.3 if kinds == 0 else np.bincount(y).max() / len(y) + 0.05
    if "Random" in model.__name__ and given.get("n_estimators") == 1:
        least = 0.0  # a single random tree may have drawn nothing but the wrong features
    assert fitted.score(table, y) > least
    again = small(model, 10.0, schema_of(model, 3), random_state=1, **given).fit(table, y)
    if kinds:
        assert (fitted.predict_proba(table) == again.predict_proba(table)).all()
        assert np.allclose(fitted.predict_proba(table).sum(axis=1), 1)
    else:
        assert (fitted.predict(table) == again.predict(table)).all()


def test_real_noise_and_two_fits_differ():
    table, y = make_table(2_000)
    model = small(RandomTreesClassifier, 1.0, schema_of(RandomTreesClassifier))
    one, two = (model.fit(table, y).predict_proba(table) for _ in range(2))
    assert (one != two).any()


@SEEDED
def test_the_criteria_of_patil_and_singh_differ_and_learn():
    table, y = make_table(8_000)
    schema = schema_of(PatilSinghForestClassifier)
    for criterion in ("gini", "max", "clipped_entropy"):
        model = small(PatilSinghForestClassifier, 8.0, schema, criterion=criterion, random_state=0)
        assert model.fit(table, y).score(table, y) > 0.7


@SEEDED
@pytest.mark.filterwarnings("ignore:epsilon is infinite")
def test_every_tree_of_a_decision_forest_has_another_root():
    table, y = make_table(3_000)
    schema = schema_of(FletcherIslamForestClassifier)
    model = small(FletcherIslamForestClassifier, math.inf, schema, n_estimators=6, random_state=0)
    trees = model.fit(table, y).predictor_.trees
    roots = [tree.nodes[0].test.feature for tree in trees]
    assert set(roots[:3]) == set(roots[3:]) == set(FEATURES)


@SEEDED
@pytest.mark.parametrize("model", [RandomTreesClassifier, PatilSinghForestClassifier])
def test_parts_are_disjoint_so_that_one_record_touches_one_tree(model):
    """Without noise, a record more changes one tree at most."""
    table, y = make_table(300)
    given = {"partition": True, "random_state": 0, "n_estimators": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = [
            small(model, math.inf, schema_of(model), **given)
            .fit(table.iloc[start:], y[start:])
            .predictor_.trees
            for start in (0, 1)
        ]
    changed = sum(one.to_dict() != other.to_dict() for one, other in zip(*trees, strict=True))
    assert changed <= 1


# Odd tables


@pytest.mark.parametrize("model", EVERYTHING)
def test_odd_tables_fit(model):
    many = [f"c{k}" for k in range(41)]
    features = {
        "one": Categorical(["only"]),
        "many": Categorical(many),
        "x": Numeric(0, 1, bins=1),
    }
    schema = schema_of(model, features=features)
    generator = np.random.default_rng(0)
    for rows in (0, 1, 2, 500):
        table = pd.DataFrame(
            {
                "one": pd.Series(["only"] * rows, dtype=object),
                "many": pd.Series(generator.choice(many, rows), dtype=object),
                "x": generator.random(rows),
            }
        )
        y = np.full(rows, 1)  # a constant target
        given = {} if model is BDPTClassifier else {"n_estimators": 7}
        fitted = small(model, 2.0, schema, **given).fit(table, y)
        assert len(fitted.predict(table)) == rows
        assert fitted.privacy_.epsilon <= 2.0
    values = fitted.predict(table)
    if model in CLASSIFIERS:
        assert np.mean(values == 1) > 0.6
    else:
        assert np.mean(np.abs(values - 1)) < 3


@pytest.mark.parametrize("model", EVERYTHING)
def test_nothing_to_split_by(model):
    schema = schema_of(model, features={"one": Categorical(["only"])})
    table = pd.DataFrame({"one": ["only"] * 50})
    fitted = small(model, 50.0, schema).fit(table, np.ones(50, dtype=int))
    assert len(set(fitted.predict(table).tolist())) == 1


@pytest.mark.parametrize("model", REGRESSORS)
def test_targets_outside_the_bounds_count_as_the_bounds(model):
    table, y = make_table(1_000, 0)
    fitted = small(model, 50.0, schema_of(model)).fit(table, y * 1_000)
    assert fitted.predict(table).max() <= 10
    assert fitted.predict(table).mean() > 8


@pytest.mark.parametrize("model", EVERYTHING)
def test_saved_and_loaded(model, tmp_path):
    table, y = make_table(500, 0 if model in REGRESSORS else 2)
    fitted = small(model, 2.0, schema_of(model)).fit(table, y)
    fitted.save(tmp_path / "model.json")
    loaded = privet.load(tmp_path / "model.json")
    assert (loaded.predict(table) == fitted.predict(table)).all()


# Bad input


COMMON = [{"n_estimators": 0}, {"n_estimators": 1.5}, {"n_estimators": 1_001}]
BAD = {
    RandomTreesClassifier: [
        *COMMON, {"max_depth": 13}, {"max_depth": "deep"}, {"max_depth": True},
        {"partition": "no"}, {"n_rows": 0},
    ],
    RandomTreesRegressor: [{"max_depth": 0}, {"partition": None}],
    PatilSinghForestClassifier: [
        *COMMON, {"n_bins": 1}, {"n_bins": "5"}, {"criterion": "gain_ratio"}, {"max_features": 0},
        {"partition": 1},
    ],
    PatilSinghForestRegressor: [{"n_bins": 1_001}, {"max_features": 2.0}],
    FletcherIslamForestClassifier: [
        *COMMON, {"min_support": -1}, {"min_support": 0.5}, {"prune": "yes"}, {"max_depth": 0},
    ],
    BDPTClassifier: [{"max_depth": 0}, {"max_depth": "auto"}, {"n_bins": 1}],
    DPGDFClassifier: [*COMMON, {"max_depth": 13}, {"n_bins": 0}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "given"), [(model, one) for model in BAD for one in BAD[model]], ids=str
)
def test_bad_parameters_get_a_clear_error(model, given):
    table, y = make_table(20, 0 if model in REGRESSORS else 2)
    with pytest.raises(BudgetError, match=next(iter(given))):
        model(1.0, schema_of(model), **given).fit(table, y)


@pytest.mark.parametrize("model", EVERYTHING)
def test_the_wrong_target_is_refused(model):
    other = RandomTreesClassifier if model in REGRESSORS else RandomTreesRegressor
    table, y = make_table(20)
    with pytest.raises(SchemaError):
        model(1.0, schema_of(other)).fit(table, y)
    with pytest.raises(BudgetError):
        model(-1.0, schema_of(model)).fit(table, y)


# Parts


@given(depth=st.integers(1, 12), epsilon=st.fractions(Fraction(1, 1000), 50))
@settings(max_examples=40)
def test_counts_of_deeper_levels_cost_more_and_add_up(depth, epsilon):
    amounts = bdpt_amounts(epsilon, depth)
    assert sum(amounts) == epsilon
    ratios = [float(after / before) for before, after in itertools.pairwise(amounts)]
    assert ratios == pytest.approx([2 ** (1 / 3)] * depth, rel=1e-5)


@given(key=st.integers(0, 2**32))
@settings(max_examples=60)
def test_random_splits_divide_their_region(key):
    features = {**FEATURES, "many": Categorical([f"c{k}" for k in range(41)])}
    view = even_view(Schema(features, "y", classes=[0, 1]), 8)
    split = _random_split(everything(view), view, Coins(key))
    known = split.children[:-1]
    assert set(known) == {0, 1}
    if view.cuts[split.feature] is not None:
        assert list(split.children) == sorted(split.children)  # missing ones go up
    narrow = tuple(range(3, 4) if cuts else (1, size - 1) for size, cuts in zip(
        view.sizes, view.cuts, strict=True
    ))  # fmt: skip
    assert _random_split(narrow, view, Coins(key)) is None


def test_random_splits_are_even():
    """Every cut, and every way to divide categories, is equally likely; false alarms: 1e-6."""
    schema = Schema({"few": Categorical(["u", "v", "w"])}, "y", classes=[0, 1])
    view, coins, draws = even_view(schema, 4), Coins(5), 6_000
    seen = [_random_split(everything(view), view, coins).children[:3] for _ in range(draws)]
    counts = [sum(c in (way, tuple(1 - k for k in way)) for c in seen) for way in (
        (0, 0, 1), (0, 1, 0), (1, 0, 0)
    )]  # fmt: skip
    assert sum(counts) == draws
    assert max(abs(n - draws / 3) for n in counts) < 5.2 * math.sqrt(draws * 2 / 9)


def test_what_binary_trees_choose_from():
    view = even_view(Schema(FEATURES, "y", classes=[0, 1]), 3)
    numbers, _, few = two_ways(view).sides
    assert numbers.tolist() == [
        [False, True, True, True],
        [False, False, True, True],
        [False, False, False, True],  # missing against known
    ]
    assert few == Each(4, 4)


def test_pruning_follows_the_released_counts():
    """A root with two children, each split; only the split that lowers the impurity stays."""
    schema = Schema({"x": Numeric(0, 1), "z": Numeric(0, 1)}, "y", classes=[0, 1])
    view = even_view(schema, 2)
    first, second = Split(0, (0, 1, 1)), Split(1, (0, 1, 1))
    growth = Growth([[first], [second, second]], None)
    counts = [
        np.array([[50, 50]]),
        np.array([[40, 10], [10, 40]]),
        np.array([[20, 5], [20, 5], [10, 0], [-3, 40]]),
    ]
    smaller, leaves = _pruned(growth, counts)
    assert smaller.levels == [[first], [None, second]]
    assert leaves.tolist() == [[40, 10], [10, 0], [-3, 40]]
    (tree,) = trees_of(smaller, view, leaves.astype(float), scores=2)
    assert tree.n_leaves == 3
    # The root stays, however useless it is.
    alone, leaves = _pruned(Growth([[first]], None), [counts[0], np.array([[25, 25], [25, 25]])])
    assert alone.levels == [[first]]
    # Cells that end early keep what they have.
    passing = Growth([[first], [None, second]], None)
    counts[2] = np.array([[40, 10], [10, 0], [5, 5]])
    kept, leaves = _pruned(passing, counts)
    assert kept.levels == passing.levels
    assert leaves.tolist() == counts[2].tolist()


def test_a_tree_is_offered_features_by_its_own_coins():
    """However many cells the tree before it has on this level."""
    offered = []
    for cells in (1, 3):
        own = Coins(11).for_trees(2)
        usable = np.ones((cells + 2, 6), dtype=bool)
        coins = [own[0]] * cells + [own[1]] * 2
        offered.append(_some_features(usable, 2, coins)[cells:])
    np.testing.assert_array_equal(*offered)
    assert (offered[0].sum(axis=1) == 2).all()
