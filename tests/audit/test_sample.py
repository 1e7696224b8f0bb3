"""The statistical audit: its bound is right, it finds what is broken, and it can be interrupted.

Simulations have fixed seeds. Fits of our estimators have the noise that releases have: what must
not exceed the truth is audited with a confidence of 1 - 1e-7, and what must be found is missed more
rarely.
"""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from privet import (
    Categorical,
    DiffPID3Classifier,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateTreeClassifier,
    Schema,
)
from privet.audit import sample
from privet.audit.sample import audit, canary, lower_bound, observe
from privet.errors import AuditError

SURE = 1 - 1e-7


@pytest.fixture(autouse=True)
def _same_noise_in_every_run():
    """For the estimators of this file; ours have noise that cannot be repeated."""
    np.random.seed(20_261_115)


# ---- lower_bound -------------------------------------------------------------------------------


def randomised_response(generator, runs, epsilon=1.0):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return generator.random(runs) < truth, generator.random(runs) < 1 - truth


def laplace_counts(generator, runs):
    """Two counts at epsilon 1/2 each, in both of which the record is."""
    return generator.laplace(0, 2, (runs, 2)), generator.laplace(1, 2, (runs, 2))


def exponential_mechanism(generator, runs):
    """Scores with sensitivity 1 at epsilon 1: the record moves the first up and the last down."""
    laws = [np.exp(np.array(scores) / 2) for scores in ([1, 0, 2, 1, 1], [2, 0, 2, 1, 0])]
    return tuple(generator.choice(5, runs, p=law / law.sum()) for law in laws)


@pytest.mark.parametrize(
    ("mechanism", "runs", "repetitions"),
    [
        (randomised_response, 200, 300),
        (randomised_response, 60, 300),
        (exponential_mechanism, 200, 300),
        (laplace_counts, 80, 200),
        (laplace_counts, 400, 15),  # with a learned score
    ],
)
def test_the_bound_is_above_the_truth_no_more_often_than_it_says(mechanism, runs, repetitions):
    generator = np.random.default_rng(1)
    wrong = sum(
        lower_bound(*mechanism(generator, runs), confidence=0.9).exceeds(1.0)
        for _ in range(repetitions)
    )
    assert wrong <= binom.ppf(0.999, repetitions, 0.1)


def test_that_check_sees_a_truth_below_the_claim():
    """Its power: if the truth were 1.5 instead of 1, it would fail."""
    generator = np.random.default_rng(2)
    wrong = sum(
        lower_bound(*randomised_response(generator, 1000, 1.5), confidence=0.9).exceeds(1.0)
        for _ in range(100)
    )
    assert wrong > binom.ppf(0.999, 100, 0.1)


@pytest.mark.parametrize(
    ("mechanism", "runs", "least"),
    [
        (randomised_response, 20_000, 0.9),
        (randomised_response, 2_000, 0.7),
        (laplace_counts, 20_000, 0.7),  # one count alone shows 0.5
    ],
)
def test_the_bound_comes_close(mechanism, runs, least):
    finding = lower_bound(*mechanism(np.random.default_rng(3), runs))
    assert least <= finding.epsilon <= 1.0


def test_the_bound_is_clopper_and_pearsons():
    one, other = randomised_response(np.random.default_rng(4), 1000, 2.0)
    finding = lower_bound(one, other, confidence=0.9, names=["answer"])
    assert finding.event in ("answer is 0", "answer is 1")
    hits = [int((side[500:] == float(finding.event[-1])).sum()) for side in (one, other)]
    assert finding.hits == tuple(hits)
    assert finding.trials == (500, 500)
    assert finding.runs == 1000
    assert finding.event in str(finding)
    if finding.order == "other":
        hits.reverse()
    low, high = beta.ppf(0.05, hits[0], 501 - hits[0]), beta.ppf(0.95, hits[1] + 1, 500 - hits[1])
    assert finding.epsilon == pytest.approx(math.log(low / high))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_an_infinite_leak_gives_all_that_so_few_runs_can_show(swapped, delta):
    generator = np.random.default_rng(5)
    tables = [np.column_stack([generator.normal(size=400), np.full(400, v)]) for v in (0, 1)]
    finding = lower_bound(*(tables[::-1] if swapped else tables), delta=delta)
    assert finding.epsilon == finding.best_possible
    assert finding.best_possible == pytest.approx(
        math.log(beta.ppf(0.025, 200, 1) - delta) - math.log(beta.ppf(0.975, 1, 200))
    )


def test_equal_laws_give_nothing():
    generator = np.random.default_rng(6)
    finding = lower_bound(generator.normal(size=(2000, 8)), generator.normal(size=(2000, 8)))
    assert finding.epsilon < 0.05
    assert not finding.exceeds(0.05)
    same = lower_bound(np.ones((10, 2)), np.ones((10, 2)))
    assert (same.epsilon, same.event) == (0.0, "nothing differs")


def test_delta_explains_what_happens_so_rarely():
    """A mechanism that shows the record with probability 0.05 is (0, 0.05)-private."""
    generator = np.random.default_rng(7)
    one, other = generator.random(20_000) < 0.05, np.zeros(20_000)
    assert lower_bound(one, other).epsilon > 4
    assert lower_bound(one, other, delta=0.05).epsilon < 0.05


def test_missing_is_a_value():
    generator = np.random.default_rng(8)
    one, other = generator.normal(size=2000), generator.normal(size=2000)
    one[generator.random(2000) < 0.3] = np.nan
    finding = lower_bound(one, other)
    assert finding.event == "observable 0 is missing"
    assert finding.epsilon > 4
    both = [np.column_stack([side, [np.nan, np.inf] * 1000]) for side in (one, other)]
    assert lower_bound(*both).epsilon > 4


def test_what_is_nearly_never_there_does_no_harm():
    """Among many runs of a forest there is a node that only one of them has."""
    generator = np.random.default_rng(10)
    one, other = generator.normal(size=(400, 3)), generator.normal(size=(400, 3))
    one[1:, 0] = other[:, 0] = np.nan
    assert lower_bound(one, other).epsilon < 0.5
    one[:, 1:] = other[:, 1:] = np.nan
    other[3, 1] = one[150, 2] = 1.0
    assert lower_bound(one, other).epsilon < 0.5


def test_rows_tell_what_no_single_observable_does():
    """A sum modulo two: each bit is fair on both tables."""
    generator = np.random.default_rng(9)
    bits = generator.integers(0, 2, (4000, 3))
    one, other = (np.column_stack([bits, (bits.sum(axis=1) + k) % 2]) for k in (0, 1))
    assert lower_bound(one, other).epsilon > 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"one": np.zeros((3, 1))}, "at least 4"),
        ({"one": np.zeros((9, 2))}, "same number"),
        ({"one": np.zeros((9, 2, 2))}, "one row per run"),
        ({"names": ["a", "b"]}, "same number"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_what_says_nothing_is_refused(arguments, message):
    given = {"one": np.zeros((9, 1)), "other": np.zeros((9, 1)), **arguments}
    with pytest.raises(AuditError, match=message):
        lower_bound(given.pop("one"), given.pop("other"), **given)


# ---- audit -------------------------------------------------------------------------------------


class NoisyShare(BaseEstimator):
    """Predicts a noisy count of ones. Honest with ``factor`` 1."""

    fits = 0

    def __init__(self, epsilon=1.0, factor=1.0, random_state=None):
        self.epsilon = epsilon
        self.factor = factor
        self.random_state = random_state

    def fit(self, X, y):
        type(self).fits += 1
        if np.any(np.asarray(y) == 99):
            raise ValueError("a class that nobody announced")
        self.count_ = np.sum(y) + np.random.laplace(0, self.factor / self.epsilon)
        return self

    def predict(self, X):
        return np.full(len(X), self.count_)


X = np.arange(20.0).reshape(-1, 2)
Y = np.array([0, 1] * 5)
WITH, WITHOUT = (X, Y), (X[:-1], Y[:-1])


def test_half_of_the_noise_is_found_and_all_of_it_is_not():
    # With half the noise epsilon is 2: 15 such audits showed 1.4 to 1.75.
    broken = audit(NoisyShare(factor=0.5), WITH, WITHOUT, runs=2000, confidence=0.999)
    assert broken.exceeds(1.0)
    assert broken.event.startswith("prediction")
    right = audit(NoisyShare(), WITH, WITHOUT, runs=2000, confidence=SURE)
    assert 0 < right.epsilon <= 1.0


class Interrupted:
    """Progress of someone who loses patience."""

    def __init__(self, after):
        self.after, self.seen = after, []

    def __call__(self, done, total):
        self.seen.append((done, total))
        if done >= self.after:
            raise KeyboardInterrupt


def test_an_interrupted_audit_goes_on(tmp_path):
    store = tmp_path / "audit.jsonl"
    with pytest.raises(KeyboardInterrupt):
        audit(NoisyShare(), WITH, WITHOUT, runs=45, store=store, progress=Interrupted(20))
    kept = store.read_text()
    assert len(kept.splitlines()) == 3  # what it is of, and two chunks of ten
    store.write_text(kept + '{"names": ["predi')  # killed while writing
    NoisyShare.fits = 0
    seen = Interrupted(99)
    finding = audit(NoisyShare(), WITH, WITHOUT, runs=45, store=store, progress=seen)
    assert finding.runs == 45
    assert seen.seen == [(20, 45), (30, 45), (40, 45), (45, 45)]
    assert NoisyShare.fits == 50
    assert store.read_text().startswith(kept)
    # The whole audit is in the store: it says the same again, and other things about it.
    again = audit(NoisyShare(), WITH, WITHOUT, runs=45, store=store)
    assert again == finding
    assert audit(NoisyShare(), WITH, WITHOUT, runs=30, store=store, delta=0.1).runs == 30
    assert NoisyShare.fits == 50
    assert audit(NoisyShare(), WITH, WITHOUT, runs=50, store=store).runs == 50
    assert NoisyShare.fits == 60
    assert all(len(json.loads(line)["one"]) for line in store.read_text().splitlines()[1:])


def other_observer(model, probes):
    return model.predict(probes)


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"estimator": NoisyShare(epsilon=2.0)}, "parameters"),
        ({"estimator": DummyClassifier()}, "estimator, library, parameters"),
        ({"other": (X[1:], Y[1:])}, "probes, tables"),
        ({"other": (X[:-2], Y[:-2])}, "probes, rows, tables"),
        ({"probes": X[:1]}, "probes"),
        ({"observe": other_observer}, "observe"),
    ],
)
def test_the_store_of_another_audit_is_refused(tmp_path, changed, part):
    store = tmp_path / "audit.jsonl"
    same = {"estimator": NoisyShare(), "one": WITH, "other": WITHOUT, "runs": 4, "store": store}
    audit(**same)
    kept = store.read_text()
    with pytest.raises(AuditError, match=f"differs in {part};"):
        audit(**same | changed)
    assert store.read_text() == kept


@pytest.mark.parametrize("text", ["notes", "notes\n", "[1]\n", '{"format": "other"}\n'])
def test_a_file_that_is_no_store_is_left_alone(tmp_path, text):
    store = tmp_path / "notes.txt"
    store.write_text(text)
    with pytest.raises(AuditError, match="no store"):
        audit(NoisyShare(), WITH, WITHOUT, runs=4, store=store)
    assert store.read_text() == text


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (NoisyShare(random_state=1), "random_state is fixed"),
        (NoisyShare(random_state=np.random.RandomState(1)), "random_state is fixed"),
        (PrivateTreeClassifier(ledger="table.ledger"), "ledger"),
        (object(), "get_params"),
    ],
)
def test_an_estimator_that_cannot_be_audited_is_refused(estimator, message):
    with pytest.raises(AuditError, match=message):
        audit(estimator, WITH, WITHOUT)


@pytest.mark.parametrize("runs", [3, 4.0, True])
def test_runs_are_a_number_of_runs(runs):
    with pytest.raises(AuditError, match="runs"):
        audit(NoisyShare(), WITH, WITHOUT, runs=runs)


def test_a_fit_that_fails_is_an_observation():
    finding = audit(NoisyShare(), WITH, (X, np.where(np.arange(10) == 3, 99, Y)), runs=100)
    assert finding.epsilon == finding.best_possible
    with pytest.raises(AuditError, match="by hand"):
        audit(NoisyShare(), (X, Y + 98), (X[1:], Y[1:] + 98), runs=10)


def test_delta_is_the_estimators_own():
    class Approximate(NoisyShare):
        def __init__(self, epsilon=1.0, delta=1e-3):
            super().__init__(epsilon)
            self.delta = delta

        def get_params(self, deep=True):
            return {"epsilon": self.epsilon, "delta": self.delta}

    assert audit(Approximate(), WITH, WITHOUT, runs=4).delta == 1e-3
    assert audit(Approximate(), WITH, WITHOUT, runs=4, delta=0.0).delta == 0.0
    assert audit(NoisyShare(), WITH, WITHOUT, runs=4).delta == 0.0


def test_models_without_trees_and_several_processes():
    """The shares of the classes come straight from the table: no privacy at all."""
    finding = audit(DummyClassifier(strategy="prior"), WITH, WITHOUT, runs=40, n_jobs=2)
    assert finding.epsilon == finding.best_possible


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_probes_are_where_the_tables_differ(kind):
    seen = []

    def look(model, probes):
        seen.append(np.asarray(probes).tolist())
        return np.zeros(1)

    def table(rows):
        return kind(X[rows])

    cases = [
        (range(10), [*range(5), *range(6, 10)], [5, 0, 4, 9]),  # one record less
        ([*range(5), *range(6, 10)], range(10), [5, 0, 4, 9]),  # one more
        ([0, 1, 2, 3], [0, 1, 7, 3], [7, 0, 1, 3, 2]),  # another
        ([0, 1, 2], [0, 1, 2], [0, 1, 2]),
    ]
    for one, other, expected in cases:
        pairs = [(table(list(rows)), Y[list(rows)]) for rows in (one, other)]
        audit(NoisyShare(), *pairs, runs=4, observe=look)
        assert seen[-1] == X[expected].tolist()


# ---- estimators of this library and others -----------------------------------------------------

SCHEMA = Schema(
    {"age": Numeric(0, 4, bins=4), "sex": Categorical(["f", "m"])}, "ill", classes=["no", "yes"]
)


def small_table(kind=pd.DataFrame):
    return kind({"age": [1, 2, 3, 3], "sex": ["f", "m", "f", "f"], "ill": ["no"] * 3 + ["yes"]})


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateTreeClassifier(epsilon=0.5, schema=SCHEMA, max_depth=1, n_rows=4),
        DiffPID3Classifier(epsilon=0.5, schema=SCHEMA, max_depth=1),
    ],
)
def test_our_own_spend_no_more_than_they_say(estimator):
    finding = canary(estimator, small_table(), runs=120, confidence=SURE)
    assert not finding.exceeds(0.5)
    assert finding.best_possible > 1.0  # so it could have been found
    assert finding.runs == 120


def test_too_large_an_epsilon_of_our_own_is_found():
    """The power: a claim of 0.5 where 30 is spent."""
    estimator = DiffPID3Classifier(epsilon=30.0, schema=SCHEMA, max_depth=1)
    assert canary(estimator, small_table(), runs=120, confidence=SURE).exceeds(0.5)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_canary_stands_out_by_public_facts(kind, monkeypatch):
    tables = []
    monkeypatch.setattr(sample, "audit", lambda e, one, other, **options: tables.append(other))
    estimator = PrivateTreeClassifier(schema=SCHEMA)
    canary(estimator, small_table(kind))
    canary(estimator, small_table(kind), record={"age": 0, "sex": "x"}, label="no")
    canary(estimator, small_table(kind), record=[0, "x", "no"])
    canary(estimator, small_table(kind), removed=1)
    apart = pd.DataFrame(small_table()).drop(columns="ill").assign(more=1)
    canary(estimator, apart, list("0110"))
    last = [pa.table(table[0]).to_pylist()[-1] for table in tables[:3]]
    assert last == [
        {"age": 4, "sex": "m", "ill": "yes"},
        {"age": 0, "sex": "x", "ill": "no"},
        {"age": 0, "sex": "x", "ill": "no"},
    ]
    assert pa.table(tables[3][0])["age"].to_pylist() == [1, 3, 3]
    assert tables[4][0].iloc[-1].to_dict() == {"age": 4, "sex": "m"}
    assert tables[4][1].tolist() == [*"0110", "yes"]


def test_a_canary_in_an_array():
    schema = Schema({"a": Numeric(0, 9), "b": Numeric(-1, 1)}, "y", bounds=(0, 7))

    class WithSchema(NoisyShare):
        def __init__(self, schema=None):
            super().__init__()
            self.schema = schema

        def get_params(self, deep=True):
            return {"schema": self.schema}

    def look(model, probes):
        seen.append((probes[0].tolist(), model.count_))
        return np.zeros(1)

    seen = []
    canary(WithSchema(schema), X, Y * 0, runs=4, observe=look)
    assert all(probe == [9, 1] for probe, _ in seen)
    assert np.mean([count for _, count in seen[4:]]) > np.mean([count for _, count in seen[:4]])
    canary(WithSchema(schema), X, Y, {"b": 0.5, "a": 3}, 1, runs=4, observe=look)
    assert seen[-1][0] == [3, 0.5]
    canary(NoisyShare(), X, Y, [3, 0.5], 1, runs=4, observe=look)
    assert seen[-1][0] == [3, 0.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "pass record and label"),
        ({"record": [1, 2]}, "pass record and label"),
        ({"record": [1, 2], "label": 0.5}, "does not fit"),
        ({"record": [1, "a"], "label": 1}, "does not fit"),
        ({"record": [1], "label": 1}, "every column"),
        ({"record": {"x": 1}, "label": 1}, "every column"),
        ({"X": pd.DataFrame(X), "record": [1], "label": 1}, "every column"),
        ({"X": pd.DataFrame(X.astype(int)), "record": [1, 0.5], "label": 1}, "does not fit"),
        ({"removed": 10}, "position"),
        ({"removed": 1, "label": 1}, "either"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(AuditError, match=message):
        canary(NoisyShare(), **{"X": X, "y": Y, "runs": 4} | arguments)


def test_what_is_observed_of_a_tree_of_ours():
    model = PrivateTreeClassifier(
        epsilon=30.0, schema=SCHEMA, max_depth=1, n_rows=4, probability_share=0.5
    ).fit(small_table())
    seen = observe(model, small_table()[-1:])
    leaf = model.predictor_.nodes[int(model.predictor_.apply(small_table()[-1:])[0])]
    assert seen["the card's epsilon"] == model.privacy_.epsilon
    assert seen["the number of nodes"] == len(model.predictor_.nodes)
    assert seen["the probability of yes at probe 0"] == leaf.value[1]
    place = "probe 0 in its leaf" if len(model.predictor_.nodes) > 1 else "node 0"
    assert seen[f"{place}: class_counts 0"] == leaf.released["class_counts"][0]
    assert seen[f"{place}: value 1"] == leaf.value[1]


def test_what_is_observed_of_several_trees():
    ours = PrivateAdditiveClassifier(epsilon=5.0, schema=SCHEMA).fit(small_table())
    seen = observe(ours, small_table()[-1:])
    assert seen["the number of trees"] == len(ours.predictor_.trees)
    scores = [
        value for name, value in seen.items() if name.endswith((": score 0 of probe 0", "score 0"))
    ]
    assert sum(scores) == pytest.approx(ours.predictor_.predict_score(small_table()[-1:])[0, 0])
    forest = RandomForestClassifier(n_estimators=4, max_depth=1).fit(X, Y)
    seen = observe(forest, X[:2])
    root = forest.estimators_[2].tree_
    assert seen["the number of trees"] == 4
    assert seen["tree 2: node 0: cut"] == root.threshold[0]
    assert seen["tree 2: node 0: value 1"] == root.value[0, 0, 1]
    assert (
        observe(forest.estimators_[0], X)["node 0: feature"]
        == (forest.estimators_[0].tree_.feature[0])
    )


def test_what_is_observed_of_anything_else():
    assert observe(LinearRegression().fit(X, 3 * X[:, 0]), X[1:3]) == pytest.approx(
        {"prediction 0": 6.0, "prediction 1": 12.0}
    )
    names = DummyClassifier(strategy="constant", constant="b").fit(X, ["a", "b"] * 5)
    assert observe(names, X[:1]) == {
        "the probability of a at probe 0": 0.0,
        "the probability of b at probe 0": 1.0,
    }
    with pytest.raises(AuditError, match="observe of your own"):
        observe(object(), X)
