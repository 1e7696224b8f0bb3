"""Deep Partition Aggregation: scikit-learn's checks, and its certificate by retraining."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from privet.robustness import DeepPartitionClassifier, NoGuarantee

CASES = np.array([(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0)])
UNIVERSE = [(a, b, label) for a, b in CASES.tolist() for label in (0, 1)]


@parametrize_with_checks(
    [
        DeepPartitionClassifier(n_partitions=3),
        DeepPartitionClassifier(DecisionTreeClassifier(max_depth=4), n_partitions=5),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def fit(rows, parts=5, seed=0):
    table = np.array(rows, dtype=float)
    return DeepPartitionClassifier(n_partitions=parts, random_state=seed).fit(
        table[:, :2], table[:, 2].astype(int)
    )


def poisoned_within(rows, x, new=()):
    """All tables within x rows added or removed; some with a class that was not there."""
    tables = [list(rows)]
    for _ in range(x):
        tables += [[*table, record] for table in tables for record in [*UNIVERSE, *new]] + [
            table[:i] + table[i + 1 :] for table in tables for i in range(len(table))
        ]
        tables = [list(t) for t in {tuple(sorted(t)) for t in tables}]
    return [table for table in tables if table]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_certificate_by_retraining_on_all_poisoned_tables(seed):
    rows = [*UNIVERSE[1::2], UNIVERSE[0]]
    labels, safe = fit(rows, seed=seed).certified(CASES)
    assert safe.max() >= 1
    broken = 0
    for x in (1, 2):
        for table in poisoned_within(rows, x, new=[(0.0, 0.0, -1)]):
            found = fit(table, seed=seed).predict(CASES)
            assert np.all((found == labels)[safe >= x])
            broken += int(np.any(found != labels))
    assert broken  # the attacks are no pushovers


def test_parts_by_position_would_be_caught(monkeypatch):
    """The mutation: a row's part depends on its place, so a removed row changes many parts."""
    by_place = lambda self, X: np.arange(len(X)) % self.n_partitions  # noqa: E731
    monkeypatch.setattr(DeepPartitionClassifier, "_parts", by_place)
    rows = [(0.0, 0.0, label) for label in (1, 1, 0) * 3] * 2
    labels, safe = fit(rows, parts=9).certified(CASES)
    assert safe.tolist() == [1] * len(CASES)
    others = [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
    assert any(np.any(fit(table, parts=9).predict(CASES) != labels) for table in others)


def test_the_order_of_rows_does_not_matter_and_a_row_changes_one_part(generator):
    X = generator.integers(0, 4, size=(120, 3)).astype(float)
    y = generator.integers(0, 3, size=120)
    model = DeepPartitionClassifier(n_partitions=10).fit(X, y)
    order = generator.permutation(120)
    again = DeepPartitionClassifier(n_partitions=10).fit(X[order], y[order])
    cases = generator.random((50, 3)) * 4
    assert np.array_equal(model.votes(cases), again.votes(cases))
    flipped = y.copy()
    flipped[7] = (y[7] + 1) % 3
    for other in (
        DeepPartitionClassifier(n_partitions=10).fit(X[1:], y[1:]),
        DeepPartitionClassifier(n_partitions=10).fit(X, flipped),  # a label counts once
    ):
        votes = other.votes(cases)
        assert np.abs(votes - model.votes(cases)).sum(axis=1).max() <= 2


def test_empty_parts_abstain_and_other_learners_work(generator):
    X = generator.random((40, 2))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    base = make_pipeline(StandardScaler(), LogisticRegression(random_state=None))
    model = DeepPartitionClassifier(base, n_partitions=60).fit(X, y)
    assert None in model.estimators_
    assert model.votes(X).sum(axis=1).max() < 60
    assert (model.predict(X) == y).mean() > 0.6
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("options", [{"n_partitions": 0}, {"random_state": None}])
def test_bad_parameters(options):
    with pytest.raises(NoGuarantee):
        DeepPartitionClassifier(**options).fit([[0.0], [1.0]], [0, 1])
