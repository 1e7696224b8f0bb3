"""A test score of a fit: of the right records, at the right cost, in the right words."""

import json
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

import privet
import privet.baselines
from privet import Budget, Evaluation, LedgerStore, PrivateTable, Schema
from privet.datasets import PATIENTS, make_patients
from privet.engines import PLACES
from privet.ensemble import Ensemble
from privet.errors import (
    BudgetError,
    BudgetExceeded,
    DataError,
    FederationError,
    ModelFileError,
    PrivacyLeakWarning,
    SchemaError,
)
from privet.estimators import _base
from privet.estimators.registry import estimators
from privet.evaluation import asking
from privet.federation import FederatedTable, Party
from privet.model import Model, load
from privet.robustness.promises import promise_of
from privet.robustness.votes import forest_votes
from privet.schema import Discovered
from privet.tables import cells as wall

TABLE = pa.table(make_patients(2_000, seed=3))
FEATURES = {name: PATIENTS.features[name] for name in PATIENTS.names if name != "days_in_hospital"}
DAYS = Schema(FEATURES, "days_in_hospital", bounds=(0, 30))
pytestmark = pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
SHORT = {
    "PrivateBoostingClassifier": {"n_rounds": 2, "max_depth": 1},
    "PrivateBoostingRegressor": {"n_rounds": 2, "max_depth": 1},
    "SulqID3Classifier": {"max_depth": 1},
}


def schema_for(kind):
    return PATIENTS if kind._of_classes else DAYS


@pytest.fixture
def set_aside(monkeypatch):
    """Return which rows were tested on, filled by the fits of a test."""
    found = {}
    real = PrivateTable.portions

    def portions(self, shares, key):
        tables = real(self, shares, key)
        blocks = wall.behind_table[self].engine._blocks._blocks
        for name, table in tables.items():
            within = wall.behind_table[table].engine._portions
            found[name] = np.concatenate([block.known(within) for block in blocks])
        return tables

    monkeypatch.setattr(PrivateTable, "portions", portions)
    return found


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_every_estimator_has_an_exact_score_without_noise(kind, set_aside):
    """The counts are those of the records that were set aside, predicted by the published model."""
    schema = schema_for(kind)
    options = SHORT.get(kind.__name__, {})
    model = kind(epsilon=math.inf, schema=schema, test_share=0.3, random_state=1, **options)
    model.fit(TABLE)
    test = set_aside["test"]
    assert not (test & set_aside["training"]).any()
    assert 450 < test.sum() < 750
    rows, truth = TABLE.filter(pa.array(test)), np.array(TABLE[schema.target])[test]
    found = model.evaluation_
    if schema.classes is None:
        errors = np.abs(np.clip(truth, 0, 30) - model.predict(rows)) / 30
        assert found.sums.values[0, :3].sum() == pytest.approx(errors.sum(), abs=0.01)
        assert found.sums.values[0, :2].sum() == pytest.approx((errors**2).sum(), abs=0.01)
        assert found.n_records == test.sum()
        return
    predicted = model.predict(rows)
    expected = confusion_matrix(truth, predicted, labels=list(schema.classes))
    assert found.confusion.values[0].tolist() == expected.tolist()
    assert found.scores.values.sum() == test.sum()
    assert found.scores.values.sum(axis=1).tolist() == expected.sum(axis=1).tolist()
    share = model.predict_proba(rows)[:, list(model.classes_).index(schema.classes[1])]
    exact = roc_auc_score(truth == schema.classes[1], share)
    assert found.auc.value == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_card_says_what_was_asked_and_the_ledger_shows_both_branches(delta):
    model = privet.PrivateBoostingClassifier(
        1.0, delta=delta, schema=PATIENTS, n_rounds=2, max_depth=1, test_share=0.2
    ).fit(TABLE)
    card = model.privacy_
    assert card.epsilon == pytest.approx(1.0, abs=1e-3)
    assert card.requested_epsilon == 1.0
    assert {entry.place.portion for entry in card.entries} == {"training", "test"}
    amount = (lambda e: e.cost.epsilon) if delta is None else (lambda e: e.cost.rho)
    test = sum(amount(e) for e in card.entries if e.place.portion == "test")
    assert test == Budget(1.0, delta=delta).limit
    assert any("no record paid for both" in note for note in card.notes)
    assert promise_of(model).epsilon == 1.0


def test_the_score_is_paid_in_the_accountant_that_the_fit_chose():
    """A budget of either kind: a tree was bought in epsilon, so the score is as well."""
    rows = TABLE.slice(0, 300)
    model = privet.PrivateBoostingClassifier(
        1.0, delta=1e-6, schema=PATIENTS, test_share=0.5
    ).fit(rows)  # fmt: skip
    spent = {}
    for entry in model.privacy_.entries:
        spent[entry.place.portion] = spent.get(entry.place.portion, 0) + entry.cost.epsilon
    pure = spent["training"] < math.inf
    assert (spent["test"] < math.inf) == pure
    assert model.evaluation_.confusion.laplace == pure
    assert model.privacy_.epsilon <= 1.0


def test_declared_rows_are_fewer_for_the_plans():
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, n_rows=1_000, test_share=0.25)
    assert model._check_parameters(PATIENTS)["n_rows"] == 750
    assert model._rows_declared()
    assert model.set_params(test_share=None)._check_parameters(PATIENTS)["n_rows"] == 1_000


def test_the_parts_of_a_forest_have_another_key(monkeypatch):
    keys = {}
    for name in ("portions", "parts"):
        real = getattr(PrivateTable, name)

        def note(self, first, key, *rest, _real=real, _name=name):
            keys[_name] = key
            return _real(self, first, key, *rest)

        monkeypatch.setattr(PrivateTable, name, note)
    for seed in (0, 1):
        privet.DiPriMeForestClassifier(
            1.0, PATIENTS, n_estimators=3, max_depth=1, test_share=0.2, random_state=seed
        ).fit(TABLE)
        assert keys["portions"] != keys["parts"]


def test_portions_are_about_as_large_as_asked_and_parts_lie_within():
    table = PrivateTable(TABLE, None, PATIENTS, Budget(math.inf))
    shares = {"training": Fraction(1, 2), "comparison": Fraction(3, 10), "test": Fraction(1, 5)}
    parts = table.portions(shares, 5)
    sizes = {name: int(part.root().noisy_counts(math.inf)[0]) for name, part in parts.items()}
    assert sum(sizes.values()) == 2_000
    for name, share in shares.items():
        assert abs(sizes[name] - 2_000 * share) < 5 * math.sqrt(2_000)  # five deviations
        inside = parts[name].parts(4, 77).noisy_counts(math.inf)
        assert inside.sum() == sizes[name]
        assert (inside > 0).all()
        cuts = parts[name].quantiles("age", 2, math.inf)
        assert len(cuts) == 1
    # A portion of a portion, and a session of it
    again = parts["training"].portions({"training": Fraction(1, 2), "test": Fraction(1, 2)}, 6)
    half = again["test"].session(Budget(math.inf)).root().noisy_counts(math.inf)[0]
    assert 0.4 < half / sizes["training"] < 0.6
    assert len({*np.cumsum([round(share * PLACES) for share in shares.values()])}) == 3


@pytest.mark.parametrize(
    ("shares", "key", "match"),
    [
        ({"training": Fraction(1, 2)}, 0, "add up to one"),
        ({"training": Fraction(1, 2), "rest": Fraction(1, 2)}, 0, "add up to one"),
        ({"training": Fraction(1), "test": Fraction(0)}, 0, "too small"),
        ({"training": Fraction(1, 2), "test": Fraction(1, 2)}, -1, "a key"),
    ],
)
def test_portions_that_make_no_sense(shares, key, match):
    table = PrivateTable(TABLE, None, PATIENTS, Budget(1.0))
    with pytest.raises(ValueError, match=match):
        table.portions(shares, key)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, "a fifth", True])
def test_a_share_that_is_none_spends_nothing(share, tmp_path):
    ledger = LedgerStore.create(
        tmp_path / "l.ledger", Budget(1.0), columns=[*PATIENTS.names, PATIENTS.target]
    )
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, ledger=ledger, test_share=share)
    with pytest.raises(BudgetError, match="test_share must be"):
        model.fit(TABLE)
    assert float(ledger.left) == 1.0


def test_groups_need_a_share_and_a_feature():
    with pytest.raises(BudgetError, match="give test_share"):
        privet.PrivateTreeClassifier(1.0, PATIENTS, test_by="sex").fit(TABLE)
    with pytest.raises(SchemaError, match="a feature of the schema"):
        privet.PrivateTreeClassifier(1.0, PATIENTS, test_share=0.2, test_by="shoe").fit(TABLE)


def test_groups_of_categories_and_of_numbers():
    for by in ("sex", "age"):
        model = privet.PrivateTreeClassifier(
            math.inf, PATIENTS, test_share=0.5, test_by=by, random_state=0
        ).fit(TABLE)
        found = model.evaluation_
        parts = found.of_groups()
        assert sum(part.n_records for part in parts.values()) == found.n_records
        assert len(parts) == PATIENTS.features[by].size
        assert not any(".0" in name for name in parts)
        plain = model.set_params(test_by=None).fit(TABLE).evaluation_
        assert found.confusion.values.sum(axis=0).tolist() == plain.confusion.values[0].tolist()
    column = np.array(TABLE["sex"])
    assert {"female", "male"} <= set(np.unique(column).tolist())


def test_a_fit_without_a_score_has_none(tmp_path):
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, test_share=0.2).fit(TABLE)
    assert isinstance(model.evaluation_, Evaluation)
    model.set_params(test_share=None).fit(TABLE)
    assert not hasattr(model, "evaluation_")
    model.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json").evaluation is None
    without = replace(model.to_model(), record=None)
    assert json.loads(without.to_json())["version"] == 2


@pytest.mark.parametrize("kind", ["PrivateTreeClassifier", "PrivateTreeRegressor"])
def test_files_keep_the_score(kind, tmp_path):
    estimator = getattr(privet, kind)
    model = estimator(1.0, schema_for(estimator), test_share=0.2, test_by="sex").fit(TABLE)
    model.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again.to_json() == model.to_model().to_json()
    assert json.loads(again.to_json())["version"] == 4
    assert json.loads(replace(again, record=None).to_json())["version"] == 3
    for (name, one), (other, two) in zip(
        model.evaluation_.measures(), again.evaluation.measures(), strict=True
    ):
        assert name == other
        assert str(one) == str(two)


def damage(path, value):
    def change(plain):
        at = plain["evaluation"]
        for step in path[:-1]:
            at = at[step]
        if value is KeyError:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        damage(["share"], 2.0),
        damage(["share"], KeyError),
        damage(["rule"], 5),
        damage(["groups"], []),
        damage(["groups"], ["a", "a"]),
        damage(["probabilities"], [0.5, 2.0]),
        damage(["confusion"], None),
        damage(["confusion", "variance"], -1.0),
        damage(["confusion", "laplace"], "yes"),
        damage(["confusion", "values"], [[[1.0]]]),
        damage(["confusion", "values", 0, 0, 0], "many"),
        damage(["confusion", "values", 0, 0, 0], 1e300),
        damage(["scores"], None),
        damage(["sums"], {"values": [[1, 1, 1, 1]], "variance": 1.0, "laplace": True}),
        damage(["more"], 1),
    ],
)
def test_damaged_scores_are_refused(change):
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, max_depth=1, test_share=0.2).fit(TABLE)
    plain = json.loads(model.to_model().to_json())
    Model.from_dict(plain)
    change(plain)
    with pytest.raises(ModelFileError):
        Model.from_dict(plain)


def test_an_older_version_has_no_score():
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, max_depth=1, test_share=0.2).fit(TABLE)
    plain = json.loads(replace(model.to_model(), record=None).to_json())
    Model.from_dict(plain)
    plain["version"] = 2
    with pytest.raises(ModelFileError, match="does not know"):
        Model.from_dict(plain)


def test_parties_score_what_they_learn_and_nothing_else():
    parties = [Party(f"p{k}", TABLE.slice(k * 99, 99), None, PATIENTS, Budget(9.0)) for k in (0, 1)]
    table = FederatedTable(parties)
    model = privet.PrivateTreeClassifier(1.0, PATIENTS, max_depth=1).fit(TABLE)
    with pytest.raises(FederationError, match="its own"):
        privet.evaluate(model, table)
    for party in parties:
        assert party.table.ledger.total.epsilon == 0
        party.close()


def test_votes_of_a_forest_with_a_score_are_certified_as_without():
    model = privet.DiPriMeForestClassifier(
        1.0, PATIENTS, n_estimators=5, max_depth=2, test_share=0.2
    ).fit(TABLE)
    assert forest_votes(model, TABLE.slice(0, 10)).shape == (10, 2)


# Other rows


def test_evaluate_charges_the_ledger_of_the_rows(tmp_path):
    model = privet.PrivateTreeClassifier(1.0, PATIENTS).fit(TABLE)
    other = pa.table(make_patients(3_000, seed=4))
    ledger = LedgerStore.create(
        tmp_path / "o.ledger", Budget(1.0), columns=[*PATIENTS.names, PATIENTS.target]
    )
    model.save(tmp_path / "m.json")
    found = privet.evaluate(tmp_path / "m.json", other, 0.6, ledger=ledger, by="sex")
    assert found.share is None
    assert found.privacy.epsilon == 0.6
    assert found.privacy.private
    assert float(ledger.left) == pytest.approx(0.4)
    assert 0 <= found.accuracy.low < found.accuracy.high <= 1
    with pytest.raises(BudgetExceeded):
        privet.evaluate(model, other, 0.6, ledger=ledger)
    assert float(ledger.left) == pytest.approx(0.4)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_evaluate_a_table_draws_from_its_budget(delta):
    model = privet.PrivateTreeClassifier(1.0, PATIENTS).fit(TABLE)
    table = PrivateTable(TABLE, None, PATIENTS, Budget(2.0, delta=delta))
    found = privet.evaluate(model, table, 0.5, delta=delta)
    assert found.confusion.laplace == (delta is None)
    assert found.privacy.epsilon == pytest.approx(0.5, abs=1e-3)
    assert table.ledger.total.rho > 0


def test_evaluate_refuses_another_schema_and_spends_nothing():
    model = privet.PrivateTreeClassifier(1.0, PATIENTS).fit(TABLE)
    table = PrivateTable(TABLE, None, DAYS, Budget(1.0))
    with pytest.raises(SchemaError, match="another schema"):
        privet.evaluate(model, table, 0.5)
    assert table.ledger.total.epsilon == 0
    with pytest.raises(DataError):
        privet.evaluate(model, TABLE.drop_columns("age"), 0.5)
    with pytest.raises(SchemaError, match="a feature"):
        privet.evaluate(model, TABLE, 0.5, by="shoe")
    with pytest.raises(DataError, match="give a model"):
        privet.evaluate(3, TABLE, 0.5)


def test_a_model_whose_cuts_are_not_on_the_grid_is_refused():
    model = privet.PrivateTreeClassifier(10.0, PATIENTS, max_depth=2).fit(TABLE).to_model()
    plain = json.loads(model.to_json())
    cut = next(n["cut"] for n in plain["tree"]["nodes"] if "cut" in n)
    cut["edges"] = [float(np.nextafter(cut["edges"][0], math.inf))]
    table = PrivateTable(TABLE, None, PATIENTS, Budget(1.0))
    with pytest.raises(DataError, match="fit it again"):
        privet.evaluate(Model.from_dict(plain), table, 0.5)
    assert table.ledger.total.epsilon == 0


def test_bins_of_an_ensemble_are_found_where_its_records_are():
    model = privet.PrivateBoostingClassifier(
        math.inf, schema=PATIENTS, n_rounds=8, random_state=0, test_share=0.5
    ).fit(TABLE)  # fmt: skip
    assert isinstance(model.predictor_, Ensemble)
    bins = asking.bins_of(model.predictor_)
    assert len(bins.chance) == len(bins.ends) + 1 > 200
    assert (np.diff(bins.ends) > 0).all()
    assert (np.diff(bins.chance) >= 0).all()
    found = model.evaluation_
    assert 16 <= len(found.probabilities) <= asking.BINS + 1
    assert "a tenth to find bins" in found.rule
    assert found.scores.values.sum(axis=0).max() < 0.2 * found.n_records


def test_noisy_counts_become_masses():
    counts = np.array([5.0, -3.0, 4.0, 0.0, -7.0, 9.0])
    found = asking._smooth(counts)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(8)
    assert asking._smooth(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


# Choosing


def test_choose_the_better_learner():
    good = privet.PrivateTreeClassifier(2.0)
    bad = privet.SulqID3Classifier(0.01, max_depth=1)
    found = privet.choose([bad, good], TABLE, epsilon=2.01, schema=PATIENTS)
    assert found.privacy.epsilon == pytest.approx(2.01)
    assert found.place == 1
    assert type(found.estimator) is type(good)
    assert found.estimator.to_model().evaluation is found.evaluation
    assert {e.place.portion for e in found.privacy.entries} == {"training", "comparison", "test"}
    assert not hasattr(good, "tree_")  # candidates stay as they were


def test_cards_say_who_pays_and_what_the_schema_cost():
    paid = Discovered(0.1, 1e-6, "gaussian", columns=2, lists=1, parts=1)
    schema = replace(PATIENTS, unit="who", rows_per_unit=1, discovered=paid)
    table = TABLE.append_column("who", pa.array(range(len(TABLE))))
    found = privet.choose([privet.PrivateTreeClassifier(1.0)], table, epsilon=1.0, schema=schema)
    card = found.privacy
    assert (card.epsilon, card.delta) == pytest.approx((1.1, 1e-6))
    assert card.accountant == "(epsilon, delta)"
    score = privet.evaluate(found.estimator, table, 1.0).privacy
    assert card.adjacency == score.adjacency == "add/remove all records of one who"
    assert score.epsilon == 1.0  # the schema is on the model's card


@pytest.mark.parametrize(
    ("candidates", "options", "error", "match"),
    [
        ([], {}, BudgetError, "at least one"),
        ([privet.PrivateTreeClassifier(0.6)] * 2, {}, BudgetError, "add up to epsilon 1.2"),
        ([privet.PrivateTreeClassifier(0.5, random_state=1)], {}, BudgetError, "of their own"),
        ([privet.PrivateTreeClassifier(0.5, test_share=0.2)], {}, BudgetError, "of their own"),
        ([object()], {}, BudgetError, "estimators of Privet"),
        ([privet.PrivateTreeClassifier(0.5)], {"schema": None}, SchemaError, "needs a schema"),
        ([privet.PrivateTreeClassifier(0.5, DAYS)], {}, SchemaError, "same schema"),
        ([privet.PrivateTreeRegressor(0.5)], {}, SchemaError, "regressor"),
        (
            [privet.PrivateBoostingClassifier(0.5, delta=1e-6)],
            {},
            BudgetError,
            "give delta to choose",
        ),
    ],
)
def test_a_choice_that_cannot_be_paid_or_made_spends_nothing(
    candidates, options, error, match, tmp_path
):
    ledger = LedgerStore.create(
        tmp_path / "l.ledger", Budget(1.0), columns=[*PATIENTS.names, PATIENTS.target]
    )
    given = {"epsilon": 1.0, "schema": PATIENTS, "ledger": ledger, **options}
    with pytest.raises(error, match=match):
        privet.choose(candidates, TABLE, **given)
    assert float(ledger.left) == 1.0


# Exact scores


def test_exact_scores_warn_once_where_rows_have_a_ledger(tmp_path):
    ledger = LedgerStore.create(
        tmp_path / "l.ledger", Budget(2.0), columns=[*PATIENTS.names, PATIENTS.target]
    )
    free = privet.PrivateTreeClassifier(1.0, PATIENTS).fit(TABLE)
    paid = privet.PrivateTreeClassifier(1.0, PATIENTS, ledger=ledger).fit(TABLE)
    _base.warn_of_scores.cache_clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        free.score(TABLE, TABLE["readmitted"])
        assert seen == []
        paid.score(TABLE, TABLE["readmitted"])
        paid.score(TABLE, TABLE["readmitted"])
    assert [one.category for one in seen] == [PrivacyLeakWarning]
    assert "50 fits" in str(seen[0].message)
