"""PrivaTreeClassifier: its plan, Corollary 1, what it offers, and the published calibration."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import (
    Budget,
    BudgetExceeded,
    Categorical,
    LedgerStore,
    Numeric,
    PrivacyCard,
    PrivacyLeakWarning,
    PrivaTreeClassifier,
    Schema,
)
from privet.audit.laws import permute_and_flip
from privet.criteria import Gini
from privet.datasets import PATIENTS, make_patients
from privet.errors import BudgetError, PublishedCostWarning
from privet.learners._views import two_sides
from privet.learners.privatree import (
    PrivaTreeOptions,
    _impurity,
    _worst_error,
    leaf_amount,
    make_plan,
    published_cost,
)
from privet.tables import Binary, Each, Ordered, View
from privet.tables.splits import losses_of

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
MIXED = Schema(
    {
        "x": Numeric(0, 1),
        "z": Numeric(-5, 5),
        "few": Categorical(["u", "v", "w"]),
        "many": Categorical([f"c{k}" for k in range(9)]),
    },
    target="y",
    classes=[0, 1],
)


def options(**given):
    usual = {
        "max_depth": 3, "max_bins": None, "leaf_error": 0.01, "binning": "auto", "split": "select",
        "categories": "auto", "published": False,
    }  # fmt: skip
    return PrivaTreeOptions(**{**usual, **given})


def make_table(rows, seed=0, classes=(0, 1)):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": generator.random(rows),
            "z": generator.normal(size=rows),
            "few": generator.choice(["u", "v", "w"], rows),
            "many": generator.choice([f"c{k}" for k in range(9)] + ["strange"], rows),
        }
    )
    group = table["many"].isin(["c1", "c4", "c7"]).to_numpy()
    return table, np.array(classes)[((table["x"] > 0.6).to_numpy() ^ group).astype(int)]


# The plan


@given(
    epsilon=st.fractions(Fraction(1, 1000), 20),
    rows=st.integers(1, 10**6),
    depth=st.integers(1, 8),
    binning=st.sampled_from(["auto", "quantile", "joint-quantile", "scales", "uniform"]),
    split=st.sampled_from(["select", "histogram"]),
)
@settings(max_examples=80)
def test_a_plan_adds_up(epsilon, rows, depth, binning, split):
    plan = make_plan(MIXED, rows, epsilon, options(max_depth=depth, binning=binning, split=split))
    quantiles = 2 * (plan.quantile or 0)
    assert plan.leaf <= epsilon / 2
    assert plan.leaf + quantiles + depth * plan.node == epsilon
    assert 2 * plan.number + 2 * plan.category == plan.node


def test_the_published_plan_is_the_papers_and_costs_m_times_as_much():
    """Equations 8 to 10; the total is that of docs/proofs/privatree.md."""
    given = options(published=True, split="histogram", binning="quantile")
    epsilon, rows, depth = Fraction(1, 10), 10_000, 3
    plan = make_plan(MIXED, rows, epsilon, given)
    needed = 2**depth * 2 * _worst_error(2) / (rows * 0.01)
    assert float(plan.leaf) == pytest.approx(min(0.05, needed))
    rest = epsilon - plan.leaf
    assert plan.quantile == plan.number == rest / (1 + depth)
    assert plan.category == rest / depth
    assert plan.bins == 10
    assert published_cost(MIXED, rows, epsilon, given) == plan.leaf + 4 * rest
    free = options(published=True, split="histogram", binning="leaking-quantile")
    assert published_cost(MIXED, rows, epsilon, free) == plan.leaf + 4 * rest


def test_bins_follow_from_public_numbers():
    assert make_plan(MIXED, 100, Fraction(1), options()).binning == "scales"
    assert make_plan(MIXED, 100_000, Fraction(1), options()).binning == "quantile"
    only = Schema({"few": Categorical(["u"])}, target="y", classes=[0, 1])
    assert make_plan(only, 10**6, Fraction(1), options(binning="quantile")).quantile is None


# Corollary 1


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_expected_error_of_labels_is_bounded_and_the_bound_is_nearly_reached(classes):
    """Against the exact law of permute-and-flip with weights exp(epsilon n), over many counts."""
    worst = 0.0
    for gap in np.geomspace(0.05, 20, 60):
        counts = np.zeros(classes, dtype=int)
        counts[0] = round(gap * 1000)
        law = np.exp(permute_and_flip(counts, 1000.0))
        worst = max(worst, float((law * (counts.max() - counts)).sum()) / 1000)
    assert 0.97 * _worst_error(classes) < worst <= _worst_error(classes)


def test_two_classes_have_the_constant_of_the_paper():
    assert _worst_error(2) == pytest.approx(1 / (2 * math.e))
    amount = leaf_amount(2, 1000, 2, Fraction(100), 0.01, published=False)
    twice = leaf_amount(2, 1000, 2, Fraction(100), 0.01, published=True)
    assert float(twice / amount) == pytest.approx(2)
    assert leaf_amount(2, 10, 4, Fraction(1), 0.01, published=False) == Fraction(1, 2)


# What is offered


def test_all_ways_to_divide_few_codes_and_single_ones_of_many():
    view = View(MIXED, ((0.5,), (0.0, 1.0), None, None))
    few = two_sides(view, 2)  # three values and the extra code
    groups = {frozenset(np.flatnonzero(row).tolist()) for row in few}
    everything = frozenset(range(4))
    assert len(few) == len(groups) == 2**3 - 1
    assert all(group and everything - group not in groups for group in groups)
    assert two_sides(view, 3) == Each(10, 10)
    assert two_sides(view, 1).tolist() == [
        [False, True, True, True],
        [False, False, True, True],
        [False, False, False, True],  # missing against known
    ]


def test_candidates_are_scored_as_they_divide(generator):
    view = View(MIXED, ((0.5,), (0.0, 1.0), None, None))
    binary = Binary([two_sides(view, j) for j in range(4)])
    orders = {3: np.array([generator.permutation(10) for _ in range(6)])}
    for candidates in (binary, Ordered(binary, orders)):
        for j, size in enumerate(view.sizes):
            counts = generator.integers(0, 9, (6, size, 2))
            losses = losses_of(candidates, j, counts[2:5], Gini(), range(2, 5), view)
            assert losses.shape == (3, candidates.options(j, view))
            for place, option in itertools.product(range(3), range(losses.shape[1])):
                split = candidates.split(j, option, 2 + place, view)
                assert set(split.children) == {0, 1}
                sums = np.zeros((2, 2), dtype=np.int64)
                np.add.at(sums, np.array(split.children), counts[2 + place])
                assert losses[place, option] == Gini().losses(sums).sum()


def test_the_impurity_of_noisy_histograms(generator):
    counts = generator.integers(0, 9, (4, 6, 3))
    found = _impurity(counts)
    for cell, cut in itertools.product(range(4), range(5)):
        sides = counts[cell, : cut + 1].sum(axis=0), counts[cell, cut + 1 :].sum(axis=0)
        expected = sum(n.sum() - (n**2).sum() / max(n.sum(), 1) for n in sides)
        assert found[cell, cut] == pytest.approx(expected / counts[cell].sum())


# The estimator


@SEEDED
@pytest.mark.parametrize("split", ["select", "histogram"])
@pytest.mark.parametrize("categories", ["auto", "ordered"])
@pytest.mark.parametrize("classes", [(0, 1), ("a", "b", "c")])
def test_it_learns_numbers_and_categories(split, categories, classes):
    table, y = make_table(6_000, classes=classes)
    schema = Schema(MIXED.features, target="y", classes=list(classes))
    model = PrivaTreeClassifier(
        8.0, schema, max_depth=4, split=split, categories=categories, random_state=1
    ).fit(table, y)
    assert np.mean(model.predict(table) == y) > 0.75  # the larger class has about 0.5
    assert model.privacy_.epsilon == pytest.approx(8.0)


@SEEDED
def test_a_group_of_many_categories_needs_an_order():
    """Three of ten categories: one cut of their order, but three single ones."""
    table, y = make_table(4_000)
    table["x"] = 0.0
    y = table["many"].isin(["c1", "c4", "c7"]).to_numpy().astype(int)
    scores = {
        categories: np.mean(
            PrivaTreeClassifier(
                20.0, MIXED, max_depth=1, categories=categories, random_state=0
            ).fit(table, y).predict(table) == y
        )
        for categories in ("auto", "ordered")
    }  # fmt: skip
    assert scores["ordered"] == 1.0
    assert scores["auto"] < 0.9


def test_patients_with_real_noise():
    table = pa.table(make_patients(20_000, seed=7))
    model = PrivaTreeClassifier(1.0, PATIENTS).fit(table)
    assert np.mean(model.predict(table) == np.asarray(table["readmitted"])) > 0.78
    assert model.privacy_.private
    assert model.privacy_.epsilon == 1.0


@SEEDED
@pytest.mark.filterwarnings("ignore:epsilon is infinite")
def test_without_noise_it_is_a_greedy_tree():
    table, y = make_table(3_000)
    model = PrivaTreeClassifier(
        math.inf, MIXED, max_depth=6, categories="ordered", random_state=0
    ).fit(table, y)
    assert np.mean(model.predict(table) == y) > 0.95


@SEEDED
def test_published_costs_what_the_ledger_says_and_warns(tmp_path):
    table, y = make_table(2_000)
    model = PrivaTreeClassifier(
        0.5, MIXED, calibration="published", split="histogram", binning="quantile", n_rows=2_000,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(PublishedCostWarning, match="costs epsilon 1.25, not the 0.5"):
        model.fit(table, y)
    cost = published_cost(MIXED, 2_000, Fraction(1, 2), model._check_parameters(MIXED)["options"])
    assert model.privacy_.epsilon == pytest.approx(float(cost))
    columns = [*MIXED.names, "y"]
    store = LedgerStore.create(tmp_path / "ledger", Budget(1.0), columns=columns)
    with pytest.warns(PublishedCostWarning), pytest.raises(BudgetExceeded):
        model.set_params(ledger=store).fit(table, y)
    assert store.spent == 0


def test_quantiles_without_noise_mark_the_model():
    table, y = make_table(500)
    with pytest.warns(PrivacyLeakWarning, match="without noise"):
        model = PrivaTreeClassifier(1.0, MIXED, binning="leaking-quantile").fit(table, y)
    assert not model.privacy_.private
    assert "quantile" in model.privacy_.warnings[0]
    assert model.privacy_.epsilon == math.inf
    assert "Infinity" not in json.dumps(model.privacy_.to_dict())
    assert PrivacyCard.from_dict(model.privacy_.to_dict()) == model.privacy_


def test_quantiles_without_noise_are_refused_with_a_ledger(tmp_path):
    columns = [*MIXED.names, MIXED.target]
    store = LedgerStore.create(tmp_path / "books", Budget(5.0), columns=columns)
    model = PrivaTreeClassifier(1.0, MIXED, binning="leaking-quantile", ledger=store)
    with pytest.raises(BudgetError, match="no budget covers binning='leaking-quantile'"):
        model.fit(None, None)  # nothing is read
    assert not store.withdrawals


@SEEDED
def test_leaking_quantiles_are_the_quantiles():
    x = np.concatenate([np.linspace(0, 1, 9_001), np.full(1_000, 1.0)])
    schema = Schema({"x": Numeric(0, 2)}, target="y", classes=[0, 1])
    y = (x > 0.4).astype(int)
    table = privet.PrivateTable(x.reshape(-1, 1), y, schema, Budget(1.0), random_state=0)
    with pytest.warns(PrivacyLeakWarning):
        cuts = table.leaking_quantiles(0, 10)
    assert np.allclose(cuts[:8], np.quantile(x, np.arange(1, 9) / 10), atol=0.002)
    assert table.ledger.left == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"binning": "exact"},
        {"split": "best"},
        {"categories": "all"},
        {"calibration": "paper"},
        {"calibration": "published"},
        {"max_depth": 0},
        {"max_depth": 13},
        {"max_bins": 1},
        {"max_bins": 2.5},
        {"leaf_error": 0},
        {"leaf_error": True},
        {"n_rows": -1},
        {"epsilon": -1},
        {"epsilon": "much"},
    ],
    ids=str,
)
def test_bad_parameters_get_a_clear_error_and_nothing_is_spent(parameters):
    table, y = make_table(50)
    with pytest.raises((BudgetError, privet.PrivetError)):
        PrivaTreeClassifier(**{"epsilon": 1.0, "schema": MIXED, **parameters}).fit(table, y)


def test_more_than_255_categories_and_strange_labels():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 300, 3_000)
    schema = Schema(
        {"a": Categorical([f"v{k}" for k in range(300)])}, target="y", classes=["x", 7, True]
    )
    table = pd.DataFrame({"a": [f"v{k}" for k in codes]})
    y = np.array(["x", 7, True], dtype=object)[(codes > 150).astype(int)]
    model = PrivaTreeClassifier(5.0, schema, max_depth=2, categories="ordered").fit(table, y)
    assert len(model.predict(table)) == 3_000
