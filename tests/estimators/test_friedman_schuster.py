"""The paper's three learners: budgets, calibrations, structure, odd tables."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import (
    Categorical,
    DiffPC45Classifier,
    DiffPID3Classifier,
    Numeric,
    PrivacyLeakWarning,
    Schema,
    SulqID3Classifier,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import BudgetError

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
LEARNERS = [SulqID3Classifier, DiffPID3Classifier, DiffPC45Classifier]
MIXED = Schema(
    {"a": Categorical(["u", "v", "w"]), "x": Numeric(0, 100, bins=4), "z": Numeric(-5, 5, bins=3)},
    target="y",
    classes=["k", "l", "m"],
)


def mixed_table(rows, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": generator.choice(["u", "v", "w"], rows),
            "x": generator.uniform(0, 100, rows),
            "z": generator.normal(0, 2, rows),
        }
    )
    frame["y"] = np.where(frame["x"] < 35, "k", np.where(frame["a"] == "u", "l", "m"))
    return frame


@SEEDED
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("calibration", ["valid", "published"])
@given(
    epsilon=st.floats(0.05, 200),
    max_depth=st.integers(1, 5),
    rows=st.integers(0, 300),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=12, deadline=None)
def test_the_ledger_never_exceeds_epsilon(learner, calibration, epsilon, max_depth, rows, seed):
    model = learner(
        epsilon=epsilon,
        schema=MIXED,
        max_depth=max_depth,
        calibration=calibration,
        random_state=seed,
    ).fit(mixed_table(rows, seed))
    assert model.privacy_.epsilon <= epsilon
    assert model.predict(mixed_table(20)).shape == (20,)


@SEEDED
def test_what_the_published_calibration_really_costs():
    """Selections cost half of what is booked; DiffPC4.5 has n + 1 of them per level."""
    frame = mixed_table(3_000)
    common = {"schema": MIXED, "calibration": "published", "random_state": 0}
    spent = Fraction(
        DiffPID3Classifier(epsilon=60.0, max_depth=2, **common).fit(frame).privacy_.epsilon
    )
    share = 60 / 6
    assert float(spent) == pytest.approx(60 - 2 * share / 2)
    spent = DiffPC45Classifier(epsilon=60.0, max_depth=2, **common).fit(frame).privacy_.epsilon
    share = 60 / (4 * 2 + 2)
    assert spent == pytest.approx(2 * (share + 3 * share / 2) + 2 * share)
    assert SulqID3Classifier(epsilon=60.0, max_depth=2, **common).fit(
        frame
    ).privacy_.epsilon == pytest.approx(60)


@pytest.mark.parametrize("learner", LEARNERS)
def test_they_find_the_known_structure(learner):
    table = pa.table(make_patients(40_000, seed=3))
    held_out = pa.table(make_patients(10_000, seed=4))
    model = learner(epsilon=4.0, schema=PATIENTS, max_depth=3).fit(table)
    accuracy = np.mean(model.predict(held_out) == np.asarray(held_out["readmitted"]))
    # The majority scores 0.72.
    assert accuracy > (0.73 if learner is SulqID3Classifier else 0.79)
    assert model.privacy_.private


@SEEDED
def test_a_split_point_is_found_to_within_the_grid_and_the_noise():
    frame = mixed_table(20_000)
    model = DiffPC45Classifier(epsilon=2.0, schema=MIXED, max_depth=2, random_state=0).fit(frame)
    root = model.tree_.nodes[0].test
    assert root.feature == "x"
    assert abs(root.edges[0] - 35) < 0.5
    assert np.mean(model.predict(frame) == frame["y"]) > 0.98


@pytest.mark.parametrize("learner", LEARNERS)
def test_without_noise_the_tree_fits_and_the_model_is_marked(learner):
    frame = mixed_table(2_000)
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        model = learner(epsilon=float("inf"), schema=MIXED, max_depth=3).fit(frame)
    assert not model.privacy_.private
    expected = 0.99 if learner is DiffPC45Classifier else 0.88  # bins miss 35
    assert np.mean(model.predict(frame) == frame["y"]) > expected


@SEEDED
def test_pruning_only_removes():
    frame = mixed_table(5_000)
    options = {"epsilon": 3.0, "schema": MIXED, "max_depth": 5, "random_state": 1}
    whole = DiffPC45Classifier(confidence=None, **options).fit(frame)
    pruned = DiffPC45Classifier(confidence=0.25, **options).fit(frame)
    assert pruned.tree_.n_leaves <= whole.tree_.n_leaves
    without = {"counts"}  # those of leaves that are no more
    one, other = (
        {k: v for k, v in m.privacy_.items() if k not in without} for m in (pruned, whole)
    )
    assert one == other
    assert np.mean(pruned.predict(frame) == frame["y"]) > 0.9


def test_numbers_may_be_tested_again_and_categories_may_not():
    schema = Schema({"x": Numeric(0, 100)}, target="y", classes=[0, 1])
    x = np.linspace(0, 100, 20_000)[:, None]
    # Most records lie inside, so that either bound is a gain at the root.
    y = ((x[:, 0] > 20) & (x[:, 0] < 75)).astype(int)
    model = DiffPC45Classifier(epsilon=20.0, schema=schema, max_depth=3).fit(x, y)
    assert np.mean(model.predict(x) == y) > 0.97
    schema = Schema({"c": Categorical([0, 1])}, target="y", classes=[0, 1])
    model = DiffPC45Classifier(epsilon=20.0, schema=schema, max_depth=4).fit(x > 50, x[:, 0] > 50)
    assert model.tree_.depth <= 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"calibration": "loose"}, "calibration must be"),
        ({"confidence": 0.0}, "confidence must be"),
        ({"confidence": True}, "confidence must be"),
        ({"criterion": "entropy"}, "n_max"),
        ({"max_depth": 0}, "max_depth"),
    ],
)
def test_bad_parameters_get_a_clear_error(parameters, message):
    with pytest.raises(BudgetError, match=message):
        DiffPC45Classifier(schema=MIXED, **parameters).fit(mixed_table(10))


def test_the_model_travels(tmp_path):
    frame = mixed_table(3_000)
    model = DiffPC45Classifier(epsilon=5.0, schema=MIXED).fit(frame)
    model.save(tmp_path / "model.json")
    loaded = privet.load(tmp_path / "model.json")
    assert loaded.learner == "diffpc45"
    assert (loaded.predict(frame) == model.predict(frame)).all()
