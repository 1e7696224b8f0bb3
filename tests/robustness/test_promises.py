"""What every fit stays within: requested, not spent; and who gets no promise."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import privet
from privet import (
    Budget,
    DiffPID3Classifier,
    PrivateBoostingClassifier,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    PrivetError,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import PrivacyLeakWarning
from privet.model import Model
from privet.robustness import NoGuarantee, Promise, promise_of


@pytest.fixture(scope="module")
def few():
    return pa.table(make_patients(1500, seed=1))


def seeded_card(model, rows, seed):
    """The card of a fit that can be repeated, as if its noise were secret."""
    model.set_params(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return replace(model.fit(rows).privacy_, private=True, warnings=())


def test_numbers():
    assert promise_of(epsilon=0.5) == Promise(0.5, 0.0, 0.125)
    assert promise_of(epsilon=0.5, rho=0.01) == Promise(0.5, 0.0, 0.01)
    assert promise_of(epsilon=0.5, rho=7) == Promise(0.5, 0.0, 0.125)
    assert promise_of(epsilon=0.5, delta=1e-6) == Promise(0.5, 1e-6, math.inf)
    assert promise_of(epsilon=0.5, delta=0) == promise_of(epsilon=0.5)
    assert promise_of(rho=0.1) == Promise(rho=0.1)
    assert promise_of(Promise(rho=0.1)) == Promise(rho=0.1)


@pytest.mark.parametrize(
    "numbers",
    [{}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.inf}, {"epsilon": math.nan},
     {"delta": 1e-6}, {"rho": 0.1, "delta": 1e-6}, {"epsilon": 1, "delta": 1}, {"rho": "x"}],
)  # fmt: skip
def test_numbers_that_promise_nothing(numbers):
    with pytest.raises(NoGuarantee):
        promise_of(**numbers)


def test_a_model_and_its_estimator_promise_the_same(few, tmp_path):
    fitted = PrivateTreeClassifier(epsilon=0.5, schema=PATIENTS, n_rows=1500).fit(few)
    fitted.save(tmp_path / "model.json")
    promise = promise_of(fitted)
    assert promise == promise_of(privet.load(tmp_path / "model.json"))
    assert promise.epsilon == 0.5
    assert promise.rho == pytest.approx(fitted.privacy_.rho)  # the plan is public
    assert promise_of(fitted.privacy_).rho == 0.125  # a card alone does not say which learner
    with pytest.raises(NoGuarantee, match="not both"):
        promise_of(fitted, epsilon=1)


def test_what_one_fit_spent_is_not_what_every_fit_stays_within(few):
    """The ledger's rho differs between fits on one table; the promise covers all of them."""
    model = PrivateTreeClassifier(epsilon=0.35, schema=PATIENTS)
    rows = pa.table(make_patients(5830, seed=1))  # near a switch of the plan by rows x epsilon
    fits = [seeded_card(model, rows, seed) for seed in range(12)]
    promises = {promise_of(Model(model.predictor_, card, "tree")) for card in fits}
    assert len({card.rho for card in fits}) > 1
    assert len({round(promise.rho, 12) for promise in promises}) == 1
    assert max(card.rho for card in fits) <= min(p.rho for p in promises)
    assert promises.pop().rho < 0.35**2 / 7

    stops = DiffPID3Classifier(epsilon=0.6, schema=PATIENTS)
    cards = [seeded_card(stops, few[:n], seed) for n in (10, 40, 150, 1500) for seed in range(3)]
    found = {promise_of(Model(stops.predictor_, card, "diffpid3")) for card in cards}
    assert len({card.epsilon for card in cards}) > 1
    assert {promise.epsilon for promise in found} == {0.6}
    assert len({round(promise.rho, 12) for promise in found}) == 1
    assert max(card.rho for card in cards) <= min(p.rho for p in found) < 0.6**2 / 2


def test_privatree_with_declared_rows_asks_the_same_in_every_fit(few):
    for split in ("select", "histogram"):
        model = PrivaTreeClassifier(0.5, PATIENTS, split=split, n_rows=2_000)
        cards = [seeded_card(model, few[:n], seed) for n in (0, 10, 1500) for seed in range(2)]
        assert len({card.rho for card in cards}) == 1
        promise = promise_of(Model(model.predictor_, cards[0], "privatree"))
        assert promise.rho == pytest.approx(cards[0].rho)
        assert promise.rho < 0.125
    counted = PrivaTreeClassifier(0.5, PATIENTS)
    card = seeded_card(counted, few, 0)
    assert promise_of(Model(counted.predictor_, card, "privatree")).rho == 0.125


def test_the_promise_of_leaf_counts(few):
    model = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS, probability_share=0.25).fit(few)
    count, leaves = 0.02, 0.98 * 0.25
    expected = (count**2 + leaves**2) / 2 + (1 - count - leaves) ** 2 / 8
    assert promise_of(model).rho == pytest.approx(expected)
    assert promise_of(model, same_plan=True).rho == pytest.approx(model.privacy_.rho)


def test_zcdp_takes_the_limit_of_the_budget(few):
    model = PrivateBoostingClassifier(epsilon=1.0, delta=1e-6, schema=PATIENTS, n_rounds=2)
    promise = promise_of(model.fit(few))
    assert (promise.epsilon, promise.delta) == (1.0, 1e-6)
    assert promise.rho >= float(Budget(1.0, delta=1e-6).limit)
    assert promise.rho == pytest.approx(float(Budget(1.0, delta=1e-6).limit))


def test_a_card_of_a_rho_budget_does_not_say_its_limit(few):
    card = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS).fit(few).privacy_
    altered = replace(card, accountant="zCDP", requested_epsilon=math.inf, epsilon=math.inf)
    with pytest.raises(NoGuarantee, match="rho of the budget"):
        promise_of(altered)
    assert promise_of(altered, same_plan=True).rho == pytest.approx(card.rho)


def test_models_that_are_not_private_get_no_promise(few):
    X = np.random.default_rng(0).random((50, 2))
    y = (X[:, 0] > 0.5).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        seeded = PrivateTreeClassifier(schema=PATIENTS, random_state=0).fit(few)
        drafted = PrivateTreeClassifier().fit(X, y)
        endless = PrivateTreeClassifier(epsilon=math.inf, schema=PATIENTS).fit(few)
    for model in (seeded, drafted, endless):
        with pytest.raises(NoGuarantee, match=r"not private: \w"):
            promise_of(model)
    for nothing in (object(), PrivateTreeClassifier(), {"epsilon": 1.0}):
        with pytest.raises(NoGuarantee, match="no privacy card"):
            promise_of(nothing)
    assert issubclass(NoGuarantee, PrivetError)
