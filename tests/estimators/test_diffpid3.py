"""DiffPID3 as people use it: accuracy, accounting, bad input, every kind of table."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import privet
from privet import (
    BudgetExceeded,
    Categorical,
    DiffPID3Classifier,
    LedgerStore,
    Numeric,
    PrivacyLeakWarning,
    Schema,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import BudgetError, DataError, LedgerFileError, PrivetError, SchemaError
from privet.privacy import Budget, as_float, exact

SEEDED = pytest.mark.filterwarnings("ignore:random_state is fixed")
TINY = Schema({"x": Numeric(0, 1, bins=2)}, target="y", classes=[0, 1])


def store_for(schema, path, total, **more):
    return LedgerStore.create(
        path, Budget(total), columns=[*schema.names, schema.target], table=schema.table, **more
    )


def test_it_finds_the_known_structure_and_spends_what_was_asked():
    table = pa.table(make_patients(30_000, seed=7))
    held_out = pa.table(make_patients(10_000, seed=8))
    model = DiffPID3Classifier(epsilon=1.0, schema=PATIENTS, max_depth=3).fit(table)
    accuracy = np.mean(model.predict(held_out) == np.asarray(held_out["readmitted"]))
    # The majority scores 0.72; 30 fits lay between 0.800 and 0.840.
    assert accuracy > 0.75
    assert model.privacy_.private
    assert model.privacy_.epsilon == 1.0
    assert model.privacy_.warnings == ()
    tests = {node.test.feature for node in model.tree_.nodes if node.test}
    assert tests <= set(PATIENTS.names)


@SEEDED
@given(
    epsilon=st.floats(0.01, 50),
    max_depth=st.integers(1, 6),
    criterion=st.sampled_from(["max", "gini", "clipped_entropy", "entropy"]),
    rows=st.integers(0, 400),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=60, deadline=None)
def test_the_ledger_never_exceeds_epsilon_and_full_trees_spend_it_exactly(
    epsilon, max_depth, criterion, rows, seed
):
    schema = Schema(
        {"a": Numeric(0, 1, bins=3), "b": Categorical(["u", "v"]), "c": Numeric(0, 1, bins=2)},
        target="y",
        classes=["p", "q", "r"],
    )
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": generator.random(rows),
            "b": generator.choice(["u", "v", "w"], rows),
            "c": generator.random(rows),
        }
    )
    model = DiffPID3Classifier(
        epsilon=epsilon,
        schema=schema,
        max_depth=max_depth,
        criterion=criterion,
        n_max=1000 if criterion == "entropy" else None,
        random_state=seed,
    ).fit(table, generator.choice(["p", "q", "r"], rows))
    card = model.privacy_
    assert card.epsilon <= card.requested_epsilon == epsilon
    if model.tree_.depth == min(max_depth, 3):
        assert card.epsilon == epsilon
    levels = {entry.place for entry in card.entries}
    assert len(levels) == model.tree_.depth + 1
    depth = min(max_depth, 3)
    share = exact(epsilon) / (2 * (depth + 1))
    assert all(entry.epsilon in (as_float(share), as_float(2 * share)) for entry in card.entries)


@SEEDED
@pytest.mark.parametrize("criterion", ["max", "gini", "clipped_entropy", "entropy"])
def test_without_noise_it_is_id3(criterion, patients):
    """Epsilon infinity: every split is the exact best one, every leaf the exact majority."""
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        model = DiffPID3Classifier(
            epsilon=float("inf"),
            schema=PATIENTS,
            max_depth=2,
            criterion=criterion,
            n_max=10_000 if criterion == "entropy" else None,
        ).fit(patients)
    assert not model.privacy_.private
    frame = patients.to_pandas()
    root = model.tree_.nodes[0].test.feature

    def impurity(group):
        shares = group.value_counts(normalize=True)
        n = len(group)
        if criterion == "max":
            return n * (1 - shares.max())
        if criterion == "gini":
            return n * (1 - (shares**2).sum())
        if criterion == "entropy":
            return -n * (shares * np.log2(shares)).sum()
        p = np.clip(shares.reindex(["no", "yes"]).fillna(0), 0.02, 0.98)
        return -n * (shares.reindex(["no", "yes"]).fillna(0) * np.log2(p)).sum()

    def loss(name):
        feature = PATIENTS.features[name]
        if isinstance(feature, Numeric):
            codes = np.searchsorted(feature.cuts, frame[name], side="right")
            codes = np.where(frame[name].isna(), -1, codes)
        else:
            codes = frame[name]
        return frame["readmitted"].groupby(codes).apply(impurity).sum()

    losses = {name: loss(name) for name in PATIENTS.names}
    assert losses[root] == pytest.approx(min(losses.values()), rel=1e-6)
    leaves = model.tree_.apply(patients)
    for leaf in np.unique(leaves):
        exact = frame["readmitted"][leaves == leaf].value_counts().reindex(["no", "yes"]).fillna(0)
        assert model.tree_.nodes[leaf].released["class_counts"] == tuple(exact.astype(int))


@pytest.mark.parametrize(
    "convert",
    [
        pa.Table.to_pandas,
        pl.from_arrow,
        lambda table: table,
        lambda table: pl.from_arrow(table).to_pandas(use_pyarrow_extension_array=True),
    ],
    ids=["pandas", "polars", "pyarrow", "pandas on arrow"],
)
@SEEDED
def test_all_kinds_of_tables_give_the_same_model(convert, patients):
    expected = DiffPID3Classifier(schema=PATIENTS, max_depth=2, random_state=0).fit(patients)
    table = convert(patients)
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=2, random_state=0).fit(table)
    assert model.tree_ == expected.tree_
    np.testing.assert_array_equal(model.predict(table), expected.predict(patients))


@SEEDED
def test_an_array_is_read_in_the_schemas_order():
    schema = Schema({"b": Numeric(0, 1), "a": Numeric(0, 1)}, target="y", classes=[0, 1])
    x = np.random.default_rng(0).random((500, 2))
    y = (x[:, 0] > 0.5).astype(int)
    one = DiffPID3Classifier(epsilon=10, schema=schema, max_depth=1, random_state=1).fit(x, y)
    frame = pd.DataFrame(x, columns=["b", "a"])[["a", "b"]]
    two = DiffPID3Classifier(epsilon=10, schema=schema, max_depth=1, random_state=1).fit(frame, y)
    assert one.tree_ == two.tree_


@SEEDED
def test_the_target_may_be_a_column_or_given_apart(patients):
    frame = patients.to_pandas()
    whole = DiffPID3Classifier(schema=PATIENTS, random_state=0).fit(frame)
    apart = DiffPID3Classifier(schema=PATIENTS, random_state=0).fit(
        frame.drop(columns="readmitted"), frame["readmitted"]
    )
    assert whole.tree_ == apart.tree_
    np.testing.assert_array_equal(whole.predict(frame), whole.predict(frame.iloc[:, :-1]))


@SEEDED
def test_multiclass(generator):
    x = generator.random((6_000, 2)) * 3
    y = np.array(["a", "b", "c"])[x[:, 0].astype(int)]
    schema = Schema(
        {"u": Numeric(0, 3, bins=6), "v": Numeric(0, 3, bins=6)},
        target="y",
        classes=["a", "b", "c"],
    )
    model = DiffPID3Classifier(epsilon=2.0, schema=schema, max_depth=1, random_state=0).fit(x, y)
    assert np.mean(model.predict(x) == y) > 0.99
    shares = model.predict_proba(x)
    assert shares.shape == (6_000, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_no_record_can_make_a_fit_fail():
    """Everything that can be in a cell, in every place, including the target."""
    schema = Schema(
        {"n": Numeric(0, 1, bins=2), "c": Categorical(["u", "v"]), "k": Categorical([1, 2])},
        target="y",
        classes=["p", "q"],
    )
    odd = [
        None,
        float("nan"),
        float("inf"),
        -float("inf"),
        1e308,
        "",
        "text",
        "u",
        1,
        True,
        b"\xff",
    ]
    rows = [{"n": n, "c": c, "k": c, "y": y} for n in odd for c in odd for y in [*odd, "p"]]
    frame = pd.DataFrame(rows, dtype=object)
    model = DiffPID3Classifier(schema=schema, max_depth=3).fit(frame)
    assert model.predict(frame).shape == (len(frame),)


@SEEDED
def test_records_of_unknown_class_are_left_out():
    x = np.linspace(0, 1, 200)[:, None]
    y = np.where(x[:, 0] < 0.5, 0, 1)
    odd = np.concatenate([y, np.full(500, 7)])
    wide = np.concatenate([x, np.full((500, 1), 0.1)])
    kwargs = {"epsilon": 5.0, "schema": TINY, "max_depth": 1, "random_state": 3}
    assert (
        DiffPID3Classifier(**kwargs).fit(x, y).tree_
        == DiffPID3Classifier(**kwargs).fit(wide, odd).tree_
    )


def test_an_empty_table_fits_and_the_answer_does_not_say_so():
    empty = pd.DataFrame({"x": pd.Series(dtype=float)})
    model = DiffPID3Classifier(schema=TINY).fit(empty, pd.Series(dtype=int))
    one = DiffPID3Classifier(schema=TINY).fit(pd.DataFrame({"x": [0.5]}), [1])
    assert model.privacy_.private
    assert model.privacy_.requested_epsilon == 1.0
    assert model.privacy_.entries[0].question == one.privacy_.entries[0].question
    assert len(model.predict(pd.DataFrame({"x": [0.1, 0.9]}))) == 2
    # The counts of an empty table are noise: over many fits they are not all alike.
    released = {
        tuple(DiffPID3Classifier(schema=TINY).fit(empty, []).tree_.nodes[0].released.items())
        for _ in range(20)
    }
    assert len(released) > 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "positive"),
        ({"epsilon": -1.0}, "positive"),
        ({"epsilon": float("nan")}, "NaN"),
        ({"epsilon": "1"}, "number"),
        ({"epsilon": None}, "epsilon"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 10**9}, "max_depth"),
        ({"max_depth": 2.5}, "max_depth"),
        ({"criterion": "gain_ratio"}, "criterion"),
        ({"criterion": "entropy"}, "n_max"),
        ({"criterion": "entropy", "n_max": 0}, "n_max"),
        ({"n_max": 100}, "n_max"),
        ({"schema": "schema.toml"}, "from_toml"),
        ({"schema": Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1))}, "classes"),
        ({"schema": Schema({"z": Numeric(0, 1)}, "y", classes=[0, 1])}, "'z'"),
        ({"ledger": 3}, "ledger"),
    ],
)
def test_bad_parameters_get_a_clear_error_and_nothing_is_spent(parameters, message, tmp_path):
    store = store_for(TINY, tmp_path / "ledger", 2.0)
    frame = pd.DataFrame({"x": [0.1, 0.9]})
    with pytest.raises(PrivetError, match=message):
        DiffPID3Classifier(**{"schema": TINY, "ledger": store, **parameters}).fit(frame, [0, 1])
    assert store.spent == 0
    assert store.withdrawals == ()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (pd.DataFrame({"w": [0.1]}), [0], "'x'"),
        (pd.DataFrame({"x": [0.1, 0.2]}), [0], "rows"),
        (np.zeros((2, 3)), [0, 1], "columns"),
        (np.zeros(3), [0, 1, 0], "Reshape"),
        ("x", [0], "without y"),
        ("x", None, "no file x"),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), [0], "'x'"),
        (pd.DataFrame({"x": [0.1]}), None, "'y'"),
        (pa.table({"x": pa.array([[1.0]])}), [0], "'x'"),
    ],
)
def test_bad_data_get_a_clear_error_and_nothing_is_spent(x, y, message, tmp_path):
    store = store_for(TINY, tmp_path / "ledger", 2.0)
    with pytest.raises(PrivetError, match=message):
        DiffPID3Classifier(schema=TINY, ledger=store).fit(x, y)
    assert store.withdrawals == ()


def test_errors_are_also_the_kind_that_scikit_learn_users_expect():
    assert issubclass(BudgetError, ValueError)
    assert issubclass(DataError, ValueError)
    assert issubclass(SchemaError, ValueError)


def test_a_drafted_schema_warns_and_marks_the_model(patients):
    draft = Schema.draft(patients)
    with pytest.warns(PrivacyLeakWarning, match="drafted from the data"):
        model = DiffPID3Classifier(schema=draft, max_depth=1).fit(patients)
    assert not model.privacy_.private
    assert "drafted" in model.privacy_.warnings[0]
    with pytest.warns(PrivacyLeakWarning, match="drafted from the data"):
        model = DiffPID3Classifier().fit(np.random.default_rng(0).random((50, 2)), [0, 1] * 25)
    assert not model.privacy_.private


def test_a_seed_warns_marks_the_model_and_repeats(patients):
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        one = DiffPID3Classifier(schema=PATIENTS, random_state=5).fit(patients)
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        two = DiffPID3Classifier(schema=PATIENTS, random_state=5).fit(patients)
    assert one.tree_ == two.tree_
    assert not one.privacy_.private
    assert one.privacy_.epsilon == 1.0


def test_without_a_seed_fits_differ(patients):
    trees = [DiffPID3Classifier(schema=PATIENTS, max_depth=2).fit(patients).tree_ for _ in range(2)]
    assert trees[0] != trees[1]


def test_parameters_are_not_changed_by_fit_and_clone_works(patients, tmp_path):
    store = store_for(PATIENTS, tmp_path / "ledger", 3.0)
    model = DiffPID3Classifier(schema=PATIENTS, ledger=store, max_depth=2)
    before = dict(model.get_params())
    model.fit(patients)
    assert all(model.get_params()[name] is value for name, value in before.items())
    clone(model).fit(patients)
    assert store.spent == 2


class TestLedgerFile:
    def test_fits_draw_from_it_until_it_is_empty(self, patients, tmp_path):
        store = store_for(PATIENTS, tmp_path / "ledger", 2.5)
        for _ in range(2):
            DiffPID3Classifier(schema=PATIENTS, max_depth=2, ledger=store.path).fit(patients)
        model = DiffPID3Classifier(schema=PATIENTS, max_depth=2, ledger=str(store.path))
        with pytest.raises(BudgetExceeded, match=r"epsilon 0\.5") as caught:
            model.fit(patients)
        assert "0.5" in caught.value.left
        assert not hasattr(model, "tree_")
        assert store.spent == 2
        model.set_params(epsilon=0.5).fit(patients)
        assert store.left == 0

    def test_what_was_not_needed_goes_back(self, tmp_path):
        store = store_for(TINY, tmp_path / "ledger", 1.0)
        schema = Schema({"x": Numeric(0, 1, bins=2)}, target="y", classes=[0, 1])
        # An empty table stops at the root: one count and one set of class counts of four shares.
        model = DiffPID3Classifier(epsilon=1.0, schema=schema, max_depth=1, ledger=store)
        model.fit(np.zeros((0, 1)), [])
        assert store.spent == Fraction(model.privacy_.epsilon)
        assert store.withdrawals[0].entries[0].question.kind == "row-count"

    def test_a_fit_that_fails_half_way_stays_paid_in_full(self, patients, tmp_path, monkeypatch):
        store = store_for(PATIENTS, tmp_path / "ledger", 2.0)
        monkeypatch.setattr(
            "privet.learners.friedman_schuster._leaves",
            lambda *_: (_ for _ in ()).throw(MemoryError),
        )
        with pytest.raises(MemoryError):
            DiffPID3Classifier(schema=PATIENTS, max_depth=2, ledger=store).fit(patients)
        assert store.spent == 1
        assert store.withdrawals[0].spent is None

    def test_another_tables_ledger_is_refused(self, patients, tmp_path):
        store = store_for(TINY, tmp_path / "ledger", 2.0)
        with pytest.raises(LedgerFileError, match="another table"):
            DiffPID3Classifier(schema=PATIENTS, ledger=store).fit(patients)
        named = LedgerStore.create(
            tmp_path / "named",
            Budget(1.0),
            columns=[*PATIENTS.names, PATIENTS.target],
            table="other patients",
        )
        with pytest.raises(LedgerFileError, match="other patients"):
            DiffPID3Classifier(schema=PATIENTS, ledger=named).fit(patients)
        assert store.withdrawals == named.withdrawals == ()

    def test_a_missing_ledger_file_is_an_error(self, patients, tmp_path):
        with pytest.raises(LedgerFileError, match="no ledger file"):
            DiffPID3Classifier(schema=PATIENTS, ledger=tmp_path / "absent").fit(patients)


def test_the_card_travels_with_the_model(patients, tmp_path):
    model = DiffPID3Classifier(epsilon=0.5, schema=PATIENTS, max_depth=2).fit(patients)
    model.save(tmp_path / "model.json")
    loaded = privet.load(tmp_path / "model.json")
    assert loaded.privacy == model.privacy_
    assert loaded.privacy["epsilon"] == 0.5
    assert dict(loaded.privacy)["adjacency"] == "add/remove one record"
    assert loaded.privacy.replace_one_epsilon == 1.0
    assert loaded.predictor == model.tree_
    np.testing.assert_array_equal(loaded.predict(patients), model.predict(patients))
    np.testing.assert_array_equal(loaded.classes, model.classes_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(patients), model.predict(patients))
