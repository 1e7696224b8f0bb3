"""What every fit stays within: requested, not spent; and who gets no promise."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import privet
from privet import (
    Budget,
    Categorical,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    Numeric,
    PrivateBoostingClassifier,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    PrivetError,
    Schema,
    SulqID3Classifier,
)
from privet.datasets import PATIENTS, make_patients
from privet.errors import PrivacyLeakWarning
from privet.federation import FederatedTable, Party
from privet.model import Model
from privet.privacy import (
    EXPONENTIAL_KINDS,
    MechanismFacts,
    MechanismKind,
    Question,
    QuestionKind,
    ledger,
    words,
)
from privet.robustness import NoGuarantee, Promise, accuracy_after, promise_of
from privet.robustness.votes import forest_votes
from privet.tables import cells as wall

FLIP = MechanismFacts(MechanismKind.PERMUTE_AND_FLIP)


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


PARTIES = Schema({"x": Numeric(0, 1, bins=4), "z": Numeric(0, 1)}, target="y", classes=[0, 1])


def parties_of(rows, seed=None):
    generator = np.random.default_rng(rows)
    x = generator.random((rows, 2))
    return [
        Party(f"p{k}", x[k::2], (x[k::2, 0] > 0.5).astype(int), PARTIES, Budget(1.0),
              random_state=None if seed is None else 2 * seed + k)
        for k in range(2)
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", ["secure-sum", "local-rnm", "noisy-counts"])
@pytest.mark.parametrize("n_rows", [None, 400])
def test_parties_prove_no_rho(protocol, n_rows):
    """A count of rows among parties is a count of rows, whatever it is called."""
    model = PrivaTreeClassifier(1.0, max_depth=2, binning="uniform", n_rows=n_rows)
    with FederatedTable(parties_of(400), protocol=protocol) as table:
        model.fit(table)
    card = model.privacy_
    assert card.protocol == protocol
    assert card.rows_declared == (n_rows is not None)
    counted = [entry.question.kind for entry in card.entries].count(QuestionKind.ROW_COUNT)
    assert counted == (n_rows is None)
    assert card.rho < 0.5
    assert promise_of(model).rho == 0.5


@pytest.mark.filterwarnings("ignore:random_state is fixed")
def test_parties_that_propose_splits_have_no_fixed_plan():
    """Also with declared rows: one proposal is not counted, several share what is left."""
    model = PrivaTreeClassifier(1.0, max_depth=1, max_bins=2, binning="uniform", n_rows=400)
    found = {
        model.fit(FederatedTable(parties_of(rows, seed), protocol="local-rnm")).privacy_.rho
        for rows in (0, 400)
        for seed in range(4)
    }
    assert len(found) > 1


def test_a_fit_that_stopped_early_promises_no_less(few):
    """Friedman & Schuster's leaves at the last level have twice the share of all else."""
    model = SulqID3Classifier(1.0, Schema({"c": Categorical(["u", "v"])}, "y", classes=[0, 1]))
    short, long = (
        seeded_card(model, pa.table({"c": ["u", "v"] * n, "y": [0, 1] * n}), 0) for n in (5, 5_000)
    )
    assert max(entry.epsilon for entry in short.entries) == 0.25
    assert max(entry.epsilon for entry in long.entries) == 0.5
    promises = {promise_of(Model(model.predictor_, card, "sulq")).rho for card in (short, long)}
    assert len(promises) == 1
    assert short.rho < long.rho <= promises.pop()


@pytest.mark.parametrize("binning", ["quantile", "joint-quantile"])
def test_private_cuts_that_fall_together_cost_the_same(binning):
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=[0, 1])
    model = PrivaTreeClassifier(40.0, schema, max_depth=1, max_bins=3, n_rows=9, binning=binning)
    kinds, costs = set(), set()
    for values in (np.linspace(0, 1, 3_000), np.full(3_000, 1e-9), np.zeros(0)):
        rows = pa.table({"x": values, "y": np.arange(len(values)) % 2})
        card = seeded_card(model, rows, 0)
        costs.add(card.rho)
        kinds |= {e.mechanism.kind for e in card.entries if e.question.kind is QuestionKind.SPLIT}
    assert len(costs) == 1
    assert kinds <= EXPONENTIAL_KINDS


def test_what_is_not_known_of_a_card_proves_nothing(few):
    tree = PrivateTreeClassifier(1.0, PATIENTS, n_rows=1500).fit(few)
    privatree = PrivaTreeClassifier(1.0, PATIENTS, n_rows=1500).fit(few)
    for model in (tree, privatree):
        assert model.privacy_.rows_declared
        assert promise_of(model).rho < 0.5
        silent = replace(model.privacy_, rows_declared=False)
        assert promise_of(Model(model.predictor_, silent, model.learner)).rho == 0.5
    counted = PrivateTreeClassifier(1.0, PATIENTS).fit(few)
    entries = counted.privacy_.entries
    unknown = replace(
        entries[1], question=Question(QuestionKind.OTHER, text="what"), mechanism=FLIP
    )
    for changed in ((*entries[1:],), (*entries, unknown), (entries[1], entries[0], unknown), ()):
        card = replace(counted.privacy_, entries=changed)
        assert promise_of(Model(counted.predictor_, card, "tree")).rho == 0.5


def test_rewording_changes_no_guarantee(few, tmp_path, monkeypatch):
    """Every phrase of the books, and every text of a card and of its file."""
    forest = DiPriMeForestClassifier(5.0, PATIENTS, n_estimators=5, max_depth=2)
    counted = DiPriMeForestClassifier(5.0, PATIENTS, n_estimators=5)
    models = [
        PrivateTreeClassifier(1.0, PATIENTS, n_rows=1500),
        PrivateTreeClassifier(1.0, PATIENTS, probability_share=0.2),
        PrivaTreeClassifier(1.0, PATIENTS, n_rows=1500),
        PrivaTreeClassifier(1.0, PATIENTS),
        DiffPID3Classifier(1.0, PATIENTS),
        PrivateBoostingClassifier(1.0, delta=1e-6, schema=PATIENTS, n_rounds=2),
        forest,
        counted,
    ]

    def guarantees(model):
        card = model.privacy if isinstance(model, Model) else model.privacy_
        found = [promise_of(model), accuracy_after(model, 0.8, 3).bounds, card.private]
        try:
            return [*found, forest_votes(model, few[:50]).tolist()]
        except NoGuarantee:
            return [*found, None]

    before = [guarantees(model.fit(few)) for model in models]
    assert [found[-1] is None for found in before] == [True] * 6 + [False, True]

    def strange(*_):
        return "how many records, the whole table, random_state is fixed"

    for table in (words._QUESTIONS, words._MECHANISMS):
        for kind in table:
            monkeypatch.setitem(table, kind, strange())
    for name in ("question_words", "mechanism_words", "place_words"):
        for module in (words, privet.privacy, wall, ledger):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, strange)
    for model, known in zip(models, before, strict=True):
        model.save(tmp_path / "model.json")
        plain = json.loads((tmp_path / "model.json").read_text())
        card = plain["privacy"]
        card["adjacency"] = strange()
        card["notes"] = [strange()] * 3
        again = Model.from_dict(plain)
        assert guarantees(again) == known
        model.privacy_ = again.privacy
        assert guarantees(model) == known
    model = models[1].fit(few)  # what is fitted while words are strange is the same, too
    assert promise_of(model) == before[1][0]


def test_the_promise_of_leaf_counts(few):
    model = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS, probability_share=0.25).fit(few)
    count, leaves = 0.02, 0.98 * 0.25
    without = count**2 / 2 + (1 - count) ** 2 / 8  # another count of rows might buy none
    assert promise_of(model).rho == pytest.approx(without)
    assert promise_of(model, same_plan=True).rho == pytest.approx(model.privacy_.rho)
    model = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS, probability_share=0.5).fit(few)
    leaves = 0.98 * 0.5
    expected = (count**2 + leaves**2) / 2 + (1 - count - leaves) ** 2 / 8
    assert promise_of(model).rho == pytest.approx(expected)


def test_leaf_counts_by_a_noisy_number_of_rows():
    """Near 1,000 rows x epsilon some fits buy them and some do not: one promise holds for both."""
    rows = pa.table(make_patients(1030, seed=3))
    model = PrivateTreeClassifier(epsilon=1.0, schema=PATIENTS)
    cards = [seeded_card(model, rows, seed) for seed in range(12)]
    asked = [{entry.question.kind for entry in card.entries} for card in cards]
    assert {QuestionKind.CLASS_COUNTS in kinds for kinds in asked} == {True, False}
    promises = {promise_of(Model(model.predictor_, card, "tree")) for card in cards}
    assert len({round(promise.rho, 12) for promise in promises}) == 1
    assert max(card.rho for card in cards) <= min(promise.rho for promise in promises)


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


def test_an_absurd_epsilon_is_a_weak_promise_not_an_error():
    assert promise_of(epsilon=1e200).rho == math.inf
