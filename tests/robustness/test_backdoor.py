"""The attack works on a plain tree, not on a private one, and on every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from privet import Numeric, PrivateTreeClassifier, Schema
from privet.errors import DataError
from privet.robustness import (
    Trigger,
    attack_success,
    attack_success_after,
    experiment,
    poison,
    promise_of,
)


def images(rows, seed):
    """Two classes that one column tells apart; the last column is always dark."""
    generator = np.random.default_rng(seed)
    X = generator.random((rows, 4))
    X[:, 3] = 0.0
    return X, (X[:, 0] > 0.5).astype(int)


def test_a_plain_tree_has_the_backdoor_and_a_private_one_keeps_its_bound():
    train, test, trigger = images(4000, 1), images(1000, 2), Trigger({3: 1.0})
    plain = experiment(
        lambda run: DecisionTreeClassifier(max_depth=4, random_state=run),
        train, test, trigger, 1, shares=["0.25%", 0.01], runs=2,
    )  # fmt: skip
    assert plain.poisoned.tolist() == [0, 10, 40]
    assert plain.accuracy.shape == plain.success.shape == (3, 2)
    assert plain.success[0].max() < 0.05
    assert plain.success[1:].min() > 0.95
    assert plain.accuracy.min() > 0.95

    schema = Schema({f"x{j}": Numeric(0, 1) for j in range(4)}, target="y", classes=[0, 1])
    done = []
    private = experiment(
        lambda _: PrivateTreeClassifier(epsilon=0.1, schema=schema, max_depth=1, n_rows=4000),
        train, test, trigger, 1, shares=["0.1%"], runs=5,
        progress=lambda *counts: done.append(counts),
    )  # fmt: skip
    assert done[-1] == (10, 10)
    model = PrivateTreeClassifier(epsilon=0.1, schema=schema, max_depth=1, n_rows=4000).fit(*train)
    bound = attack_success_after(promise_of(model), 0.05, 4).best
    assert bound < 0.1
    assert private.success[1].mean() < bound
    assert private.accuracy.min() > 0.9


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "arrow"])
def test_poison_keeps_the_form_of_the_table(kind):
    columns = {"a": np.arange(6.0), "b": np.arange(6), "c": ["u", "v"] * 3}
    X = {
        "array": lambda: np.column_stack([columns["a"], columns["b"]]),
        "pandas": lambda: pd.DataFrame(columns, index=[5, 4, 3, 2, 1, 0]),
        "polars": lambda: pl.DataFrame(columns),
        "arrow": lambda: pa.table(columns),
    }[kind]()
    trigger = Trigger({1: 9}) if kind == "array" else Trigger({"b": 9, "c": "w"})
    y = pd.Series(["no", "no", "yes", "no", "yes", "no"])
    poisoned, labels = poison(X, y, trigger, "yes", rows=3, seed=2)
    assert type(poisoned) is type(X)
    assert len(poisoned) == 9
    assert labels.tolist() == [*y, "yes", "yes", "yes"]
    if kind == "array":
        added = poisoned[6:]
        assert set(added[:, 1]) == {9}
        assert set(added[:, 0]) <= {0, 1, 3, 5}
    else:
        frame = poisoned.to_pandas() if kind in ("polars", "arrow") else poisoned
        assert frame["b"].tolist()[6:] == [9, 9, 9]
        assert frame["c"].tolist()[6:] == ["w"] * 3
        assert set(frame["a"].tolist()[6:]) <= {0, 1, 3, 5}
        assert frame["b"].tolist()[:6] == list(range(6))
    again, _ = poison(X, y, trigger, "yes", rows=3, seed=2)
    assert str(again) == str(poisoned)


def test_more_poison_than_rows_of_other_classes_copies_again():
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 0, 1])
    poisoned, labels = poison(X, y, Trigger({0: -1.0}), 1, rows=7)
    assert len(poisoned) == 10
    assert labels[3:].tolist() == [1] * 7
    assert X[0, 0] == 0.0  # the clean rows are not touched


def test_success_counts_rows_of_other_classes_only():
    class Always:
        def predict(self, X):
            return np.where(X[:, 0] > 0, 1, 0)

    X, y = np.zeros((4, 1)), [0, 0, 1, 1]
    assert attack_success(Always(), X, y, Trigger({0: 1.0}), 1) == 1.0
    assert attack_success(Always(), X, y, Trigger({0: -1.0}), 1) == 0.0


def test_bad_input():
    X, y = np.zeros((2, 1)), [1, 1]
    with pytest.raises(DataError):
        Trigger({})
    with pytest.raises(DataError, match="position"):
        Trigger({"a": 1}).on(X)
    with pytest.raises(DataError, match="position"):
        Trigger({4: 1}).on(X)
    with pytest.raises(DataError, match="names columns"):
        Trigger({"z": 1}).on(pd.DataFrame({"a": [1]}))
    with pytest.raises(DataError, match="other classes"):
        poison(X, y, Trigger({0: 1}), 1, rows=1)
    with pytest.raises(DataError, match="other classes"):
        attack_success(None, X, y, Trigger({0: 1}), 1)
