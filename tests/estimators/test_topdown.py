"""TopDownClassifier: what it spends, how it grows, and the published calibration."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import privet
from privet import (
    Budget,
    BudgetExceeded,
    Categorical,
    LedgerStore,
    Numeric,
    Schema,
    TopDownClassifier,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import BudgetError, PublishedCostWarning
from privet.federation import FederatedTable, Party
from privet.learners.topdown import make_levels, published_cost
from privet.privacy import Question, QuestionKind

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
LOUD = pytest.mark.filterwarnings("ignore:epsilon is infinite")
MIXED = Schema(
    {
        "x": Numeric(0, 1),
        "z": Numeric(-5, 5),
        "few": Categorical(["u", "v", "w"]),
        "one": Categorical(["only"]),
    },
    target="y",
    classes=[0, 1],
)


def make_table(rows, seed=0, classes=(0, 1)):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": generator.random(rows),
            "z": generator.normal(size=rows),
            "few": generator.choice(["u", "v", "w", "strange"], rows),
            "one": "only",
        }
    )
    third = table["few"].isin(["w"]).to_numpy()
    return table, np.array(classes)[((table["x"] > 0.6).to_numpy() ^ third).astype(int)]


def n_tests(tree):
    return sum(node.test is not None for node in tree.nodes)


# What is spent


@SEEDED
@given(
    epsilon=st.floats(0.01, 30),
    rows=st.integers(0, 60),
    max_depth=st.sampled_from(["auto", 1, 2, 5]),
    budget=st.sampled_from(["decay", "uniform", lambda level: 3.0 - 1 / level]),
    leaf_fraction=st.floats(0.05, 0.95),
    criterion=st.sampled_from(["gini", "max", "clipped_entropy", "entropy"]),
    split=st.sampled_from(["flip", "exponential", "rnm"]),
    min_weight=st.sampled_from([None, 0.1]),
    n_rows=st.sampled_from([None, 50]),
)
@settings(max_examples=60)
def test_the_ledger_says_epsilon_exactly(
    epsilon, rows, max_depth, budget, leaf_fraction, criterion, split, min_weight, n_rows
):
    table, y = make_table(rows)
    model = TopDownClassifier(
        epsilon, MIXED, max_nodes=4, max_depth=max_depth, budget=budget,
        leaf_fraction=leaf_fraction, criterion=criterion, split=split, min_weight=min_weight,
        n_rows=50 if criterion == "entropy" else n_rows, n_thresholds=3, min_gain=0.0,
        random_state=rows,
    ).fit(table, y)  # fmt: skip
    assert model.privacy_.epsilon == epsilon  # labels get what growing leaves over
    assert n_tests(model.tree_) <= 4


@SEEDED
def test_a_tree_takes_as_many_rounds_as_it_has_levels():
    table, y = make_table(5_000)
    y = y ^ (table["z"].to_numpy() % 2 > 1.5)  # takes more than a few tests
    model = TopDownClassifier(
        200.0, MIXED, max_depth=6, min_gain=0.0, n_rows=5_000, random_state=0
    ).fit(table, y)
    questions = [entry.question.kind for entry in model.privacy_.entries]
    levels = questions.count("split")
    assert levels <= 6 < n_tests(model.tree_)
    assert len(questions) == 2 * levels + 1
    assert questions[:2] == ["split", "class-counts"]
    assert questions[-1] == "label"


@SEEDED
@pytest.mark.parametrize("most", [1, 2, 7])
def test_max_nodes_is_kept(most):
    table, y = make_table(3_000)
    model = TopDownClassifier(
        100.0, MIXED, max_nodes=most, max_depth=8, min_gain=0.0, random_state=0
    ).fit(table, y)
    assert 1 <= n_tests(model.tree_) <= most


@SEEDED
def test_a_least_weight_is_kept_and_costs_nothing_more():
    table, y = make_table(4_000)
    given = {"max_depth": 5, "n_rows": 4_000, "random_state": 1}
    free = TopDownClassifier(100.0, MIXED, **given).fit(table, y)
    kept = TopDownClassifier(100.0, MIXED, min_weight=0.3, **given).fit(table, y)
    questions = [entry.question.kind for entry in kept.privacy_.entries]
    assert set(questions) == {"split", "class-counts", "label"}
    # A cell with less than 0.3 of the rows is not split: three at most on a level are.
    most = [
        max(e.cells for e in model.privacy_.entries if e.question.kind == "split")
        for model in (free, kept)
    ]
    assert most[0] > 3 >= most[1]


@SEEDED
def test_it_is_repeatable_and_clones():
    table, y = make_table(800)
    model = TopDownClassifier(0.5, MIXED, budget=lambda level: 2.0**-level)
    trees = [
        clone(model).set_params(random_state=seed).fit(table, y).tree_.nodes
        for seed in (3, 3, 4, 5, 6)
    ]
    assert trees[0] == trees[1]
    assert any(tree != trees[0] for tree in trees)


# What it learns


@SEEDED
@pytest.mark.parametrize("split", ["flip", "exponential", "rnm"])
@pytest.mark.parametrize("criterion", ["gini", "max", "clipped_entropy", "entropy"])
def test_it_learns_numbers_and_single_categories(split, criterion):
    table, y = make_table(6_000)
    model = TopDownClassifier(
        8.0, MIXED, criterion=criterion, split=split, n_rows=6_000, random_state=1
    ).fit(table, y)
    assert np.mean(model.predict(table) == y) > 0.9


@SEEDED
def test_more_classes():
    generator = np.random.default_rng(0)
    x = generator.random((8_000, 1))
    y = np.array(["a", "b", "c"], dtype=object)[(x[:, 0] * 3).astype(int)]
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=["c", "a", "b"])
    model = TopDownClassifier(4.0, schema, random_state=0).fit(x, y)
    assert np.mean(model.predict(x) == y) > 0.95
    assert model.predict_proba(x).shape == (8_000, 3)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tables_with_hardly_a_record(rows):
    table, y = make_table(rows)
    model = TopDownClassifier(1.0, MIXED).fit(table, y)
    assert model.privacy_.epsilon == 1.0
    assert len(model.predict(make_table(5)[0])) == 5


def test_a_single_category_can_tell_nothing():
    schema = Schema({"one": Categorical(["only"])}, target="y", classes=[0, 1])
    table = pd.DataFrame({"one": ["only"] * 500})
    model = TopDownClassifier(1.0, schema).fit(table, np.ones(500, dtype=int))
    assert model.predict(table[:1]).tolist() == [1]


def test_patients_with_real_noise():
    table = pa.table(make_patients(20_000, seed=7))
    model = TopDownClassifier(1.0, PATIENTS).fit(table)
    assert np.mean(model.predict(table) == np.asarray(table["readmitted"])) > 0.78
    assert model.privacy_.private
    assert model.privacy_.epsilon == 1.0


@SEEDED
@LOUD
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("most", [3, 15, 60])
def test_without_noise_it_is_the_best_first_tree(criterion, most):
    """On a grid of values, all cuts are candidates: compare with scikit-learn's."""
    generator = np.random.default_rng(5)
    x = generator.integers(0, 8, (4_000, 5)).astype(float)
    score = np.sin(x[:, 0]) * x[:, 1] + (x[:, 2] > 3) * x[:, 3]
    y = (score + generator.normal(0, 1, 4_000) > np.median(score)).astype(int)
    schema = Schema({f"x{j}": Numeric(-0.5, 7.5) for j in range(5)}, target="y", classes=[0, 1])
    model = TopDownClassifier(
        math.inf, schema, max_nodes=most, n_thresholds=7, criterion=criterion, n_rows=4_000,
        random_state=0,
    ).fit(x, y)  # fmt: skip
    peer = DecisionTreeClassifier(max_leaf_nodes=most + 1, criterion=criterion).fit(x, y)
    ours, theirs = np.mean(model.predict(x) == y), peer.score(x, y)
    assert ours == pytest.approx(theirs, abs=0.004)
    assert np.mean(model.predict(x) == peer.predict(x)) > 0.98


# The published calibration


PUBLISHED = {"calibration": "published", "split": "rnm"}


@SEEDED
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_published_costs_what_the_ledger_says_and_warns(tmp_path, criterion):
    schema = Schema({f"x{j}": Numeric(0, 1) for j in range(20)}, target="y", classes=[0, 1])
    generator = np.random.default_rng(0)
    x = generator.random((2_000, 20))
    y = (x[:, 3] > 0.5).astype(int)
    model = TopDownClassifier(
        0.5, schema, criterion=criterion, n_rows=2_000, max_depth=3, random_state=0, **PUBLISHED
    )
    with pytest.warns(PublishedCostWarning, match="not the 0.5 that the paper counts"):
        model.fit(x, y)
    given = model._check_parameters(schema)["options"]
    assert given.thresholds == 10
    cost = published_cost(schema, 2_000, Fraction(1, 2), given)
    assert cost > 1
    assert model.privacy_.epsilon <= float(cost)
    questions = [entry.question.kind for entry in model.privacy_.entries]
    assert model.privacy_.entries[0].question == Question(QuestionKind.SPLIT_GAINS, criterion)
    assert questions[-1] == "class-counts"
    columns = [*schema.names, "y"]
    store = LedgerStore.create(tmp_path / "ledger", Budget(1.0), columns=columns)
    with pytest.warns(PublishedCostWarning), pytest.raises(BudgetExceeded):
        model.set_params(ledger=store).fit(x, y)
    assert store.spent == 0


@SEEDED
@LOUD
def test_published_without_noise_learns():
    table, y = make_table(3_000)
    model = TopDownClassifier(math.inf, MIXED, n_rows=3_000, random_state=0, **PUBLISHED)
    assert np.mean(model.fit(table, y).predict(table) == y) > 0.9


# What is refused


@pytest.mark.parametrize(
    "parameters",
    [
        {"criterion": "root_gini"},
        {"criterion": "root_gini", "n_rows": 50, **PUBLISHED},
        {"criterion": "max", "n_rows": 50, **PUBLISHED},
        {"criterion": "clipped_entropy", "n_rows": 50, **PUBLISHED},
        {"criterion": "entropy"},
        {"criterion": "best"},
        PUBLISHED,
        {"calibration": "published", "n_rows": 50},
        {"calibration": "paper"},
        {"split": "best"},
        {"budget": "growing"},
        {"budget": None},
        {"budget": math.cos},
        {"budget": math.cos, "max_depth": 2},
        {"budget": str, "max_depth": 2},
        {"max_nodes": 0},
        {"max_nodes": 2.5},
        {"max_nodes": True},
        {"max_depth": 0},
        {"max_depth": 65},
        {"max_depth": "deep"},
        {"leaf_fraction": 0},
        {"leaf_fraction": 1},
        {"leaf_fraction": "half"},
        {"n_thresholds": 0},
        {"n_thresholds": 5_000},
        {"min_gain": -1},
        {"min_gain": math.nan},
        {"min_weight": 0},
        {"min_weight": 2.0},
        {"n_rows": -1},
        {"epsilon": -1},
        {"epsilon": "much"},
    ],
    ids=str,
)
def test_bad_parameters_get_a_clear_error_and_nothing_is_spent(parameters, tmp_path):
    table, y = make_table(50)
    store = LedgerStore.create(tmp_path / "ledger", Budget(9.0), columns=[*MIXED.names, "y"])
    with pytest.raises((BudgetError, privet.PrivetError)):
        TopDownClassifier(**{"epsilon": 1.0, "schema": MIXED, "ledger": store, **parameters}).fit(
            table, y
        )
    assert store.spent == 0


def test_root_gini_is_refused_for_a_reason():
    table, y = make_table(50)
    with pytest.raises(BudgetError, match="square root"):
        TopDownClassifier(1.0, MIXED, criterion="root_gini").fit(table, y)


# Parties


def make_parties(rows, epsilon):
    table, y = make_table(rows)
    return [
        Party(f"party {k}", table.iloc[k::3], y[k::3], MIXED, Budget(epsilon), random_state=k)
        for k in range(3)
    ]


@SEEDED
@pytest.mark.parametrize("rows", [600, None])
def test_noise_too_small_to_share_is_refused_before_anything_is_spent(rows):
    parties = make_parties(600, 1.0)
    model = TopDownClassifier(2e-4, max_depth=3, n_rows=rows)
    with pytest.raises(BudgetError, match="smaller max_depth"):
        model.fit(FederatedTable(parties))
    assert all(party.table.ledger.left == 1 for party in parties)


@SEEDED
def test_automatic_depth_ends_where_noise_cannot_be_shared():
    model = TopDownClassifier(1e-3, n_rows=10**9)  # a bound: such a tree could be deeper
    model.fit(FederatedTable(make_parties(600, 1.0)))
    paid = [e.epsilon for e in model.privacy_.entries if e.question.kind == "class-counts"]
    assert min(paid) >= 1e-5
    options = model._check_parameters(MIXED)["options"]
    assert len(paid) < len(make_levels(Fraction(1, 1000), 10**9, options))


def test_a_budget_is_asked_once_for_each_level():
    asked = []

    def budget(level):
        asked.append(level)
        return 1.0 + len(asked) % 3  # another answer each time

    model = TopDownClassifier(0.5, MIXED, budget=budget).fit(*make_table(300))
    assert len(set(asked)) == len(asked)
    assert model.privacy_.epsilon <= 0.5


def test_huge_numbers_end_in_a_card_or_in_a_clear_error():
    data = make_table(300)
    card = TopDownClassifier(1e300, MIXED).fit(*data).privacy_
    assert (card.epsilon, card.rho) == (1e300, float("inf"))
    for option in ("min_gain", "min_weight"):
        with pytest.raises(BudgetError, match=option):
            TopDownClassifier(1.0, MIXED, **{option: 10**400}).fit(*data)
