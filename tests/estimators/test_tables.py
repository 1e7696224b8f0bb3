"""Estimators learn from a table that somebody else opened, and draw from its budget."""

import warnings
from collections import Counter

import numpy as np
import pytest

import privet.baselines
import privet.estimators
from privet import (
    Budget,
    Categorical,
    DiffPID3Classifier,
    LedgerStore,
    Numeric,
    PrivateBoostingClassifier,
    PrivateTable,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    Schema,
    TopDownClassifier,
)
from privet.errors import BudgetError, BudgetExceeded, DataError, PrivacyLeakWarning, SchemaError
from privet.tables import QUESTIONS, Cells, PrivateCells, Table

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")

FEATURES = {"x": Numeric(0, 1, bins=8), "c": Categorical(list("uvw"))}
SCHEMA = Schema(FEATURES, "y", classes=[0, 1])
NUMBERS = Schema(FEATURES, "y", bounds=(0, 1))


def rows(count=400, seed=0):
    generator = np.random.default_rng(seed)
    x, c = generator.random(count), generator.choice(list("uvw"), count)
    y = ((x > 0.5) ^ (generator.random(count) < 0.05)).astype(int)
    return np.array([[a, b] for a, b in zip(x, c, strict=True)], dtype=object), y


def table_of(budget, schema=SCHEMA, random_state=None):
    return PrivateTable(*rows(), schema, budget, random_state=random_state)


def estimators():
    found = [getattr(room, name) for room in (privet.estimators, privet.baselines)
             for name in room.__all__]  # fmt: skip
    return [kind for kind in found if hasattr(kind, "learner")]


def test_fits_add_up_and_the_one_too_many_is_refused_before_anything_is_asked():
    table = table_of(Budget(2.0))
    for spent in (1, 2):
        model = DiffPID3Classifier(1.0, max_depth=2).fit(table)
        assert model.privacy_.epsilon == model.privacy_.requested_epsilon == 1.0
        assert table.ledger.total.epsilon == spent
    before = table.ledger.entries
    assert before[len(before) // 2 :] == model.privacy_.entries
    with pytest.raises(BudgetExceeded, match=r"may cost epsilon 1, .*less left: epsilon 0"):
        DiffPID3Classifier(1.0, max_depth=2).fit(table)
    assert table.ledger.entries == before
    assert table.ledger.total.epsilon == 2


def test_the_model_is_the_one_that_rows_give():
    X, y = rows()
    kinds = [DiffPID3Classifier, PrivateTreeClassifier, TopDownClassifier, PrivaTreeClassifier]
    for kind in kinds:
        here = kind(1.0, SCHEMA, random_state=3).fit(X, y)
        there = kind(1.0).fit(table_of(Budget(5.0), random_state=3))
        assert here.predictor_ == there.predictor_
        assert here.privacy_ == there.privacy_
        assert (here.predict(X) == there.predict(X)).all()
        assert not hasattr(there, "feature_names_in_")


def test_the_table_goes_on_and_the_fits_books_are_closed(monkeypatch):
    table, kept = table_of(Budget(3.0)), []
    learn = DiffPID3Classifier._learn
    monkeypatch.setattr(
        DiffPID3Classifier, "_learn", lambda self, t, **o: kept.append(t) or learn(self, t, **o)
    )
    DiffPID3Classifier(1.0, max_depth=1).fit(table)
    with pytest.raises(BudgetExceeded, match="closed"):
        kept[0].root().noisy_counts(0.1)
    table.root().noisy_counts(0.5)
    assert table.ledger.total.epsilon == 1.5


def test_what_fails_in_the_middle_is_charged(monkeypatch):
    def fail(self, *_, **__):
        raise RuntimeError("out of memory")

    table = table_of(Budget(1.0))
    monkeypatch.setattr(PrivateCells, "choose_splits", fail)
    with pytest.raises(RuntimeError):
        DiffPID3Classifier(1.0, max_depth=1).fit(table)
    assert table.ledger.total.epsilon == 0.25  # one count of the root
    assert len(table.ledger.entries) == 1
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match=r"left: epsilon 0\.75"):
        DiffPID3Classifier(1.0).fit(table)
    DiffPID3Classifier(0.75).fit(table)
    assert 0 <= table.ledger.left < 0.75


def test_what_the_table_has_is_not_given_again(tmp_path):
    table, (_, y) = table_of(Budget(1.0)), rows()
    other = Schema({"x": Numeric(0, 2)}, "y", classes=[0, 1])
    store = LedgerStore.create(tmp_path / "books", Budget(9.0), columns=["x", "c", "y"])
    for given, y_, error, said in (
        ({"schema": other}, None, SchemaError, "another schema"),
        ({"ledger": store}, None, BudgetError, "own ledger"),
        ({"random_state": 1}, None, BudgetError, "its own noise"),
        ({}, y, DataError, "without y"),
    ):
        with pytest.raises(error, match=said):
            DiffPID3Classifier(1.0, **given).fit(table, y_)
    with pytest.raises(SchemaError, match="regressor"):
        privet.PrivateTreeRegressor(1.0).fit(table)
    assert table.ledger.entries == ()
    DiffPID3Classifier(1.0, SCHEMA, max_depth=1).fit(table)  # the table's own says nothing new


def test_accountants_meet_where_they_can():
    pure, zcdp = table_of(Budget(8.0)), table_of(Budget(rho=1))
    with pytest.raises(BudgetError, match="pure budget"):
        PrivateBoostingClassifier(1.0, delta=1e-6, n_rounds=2).fit(pure)
    assert pure.ledger.entries == ()
    model = DiffPID3Classifier(1.0, max_depth=2).fit(zcdp)
    assert model.privacy_.epsilon == 1.0
    assert model.privacy_.accountant == "pure"
    assert 0 < zcdp.ledger.total.rho <= 0.5
    PrivateBoostingClassifier(1.0, delta=1e-6, n_rounds=2).fit(zcdp)
    spent = zcdp.ledger.total.rho
    with pytest.raises(BudgetExceeded, match="may cost rho 2"):
        DiffPID3Classifier(2.0).fit(zcdp)
    assert zcdp.ledger.total.rho == spent


def test_what_leaks_is_told_to_the_table():
    table = table_of(Budget(9.0))
    with pytest.warns(PrivacyLeakWarning, match="quantiles"):
        model = PrivaTreeClassifier(1.0, binning="leaking-quantile").fit(table)
    assert not table.covered
    assert table.leaks == model.privacy_.warnings
    assert model.privacy_.epsilon == np.inf


def test_an_endless_budget_is_not_an_endless_fit():
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        table = table_of(Budget(np.inf))
    assert DiffPID3Classifier(1.0, max_depth=1).fit(table).privacy_.private
    assert not DiffPID3Classifier(np.inf, max_depth=1).fit(table).privacy_.private


def test_tables_say_what_they_can():
    table = table_of(Budget(1.0))
    assert all(map(table.can, QUESTIONS))
    with pytest.raises(ValueError, match="no question 'rows'"):
        table.can("rows")
    for name in ("session", "schema", "_refuse", "can"):
        assert name not in QUESTIONS
    assert {"root", "quantiles", "noisy_counts", "draw_trees", "split"} <= QUESTIONS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_estimators_ask_what_they_say(kind, monkeypatch):
    """Whatever is declared is asked, so that nobody is refused for what is not needed."""
    asked = Counter()
    for home, base in ((PrivateTable, Table), (PrivateCells, Cells)):
        for name in QUESTIONS & set(vars(base)):
            real = getattr(home, name)

            def note(self, *given, _name=name, _real=real, **options):
                asked[_name] += 1
                return _real(self, *given, **options)

            monkeypatch.setattr(home, name, note)
    assert kind.asks
    assert kind.asks <= QUESTIONS
    table = table_of(Budget(200.0), SCHEMA if kind._of_classes else NUMBERS)
    model = kind(200.0)  # so much that nothing stops early
    model.fit(table)
    options = model._check_parameters(table.schema)
    assert set(model._asks(**options)) <= set(asked)


def test_a_session_is_no_copy_of_the_rows():
    table = table_of(Budget(2.0))
    first, second = table.session(Budget(1.0)), table.session(Budget(1.0))
    first.root().noisy_counts(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second.root().noisy_counts(0.5)
    third = second.session(Budget(0.5))  # sessions have sessions
    third.root().noisy_counts(0.25)
    assert [t.ledger.total.epsilon for t in (table, first, second, third)] == [1.75, 1, 0.75, 0.25]
    with pytest.raises(BudgetExceeded):
        second.root().noisy_counts(0.5)
    with pytest.raises(BudgetError, match="another ledger"):
        table.ledger.charge(third.ledger.root, *_charge())
    second.ledger.close()
    with pytest.raises(BudgetExceeded, match="closed"):
        third.root().noisy_counts(0.25)


def _charge():
    from privet.privacy import DiscreteLaplace, Place, Question, QuestionKind

    return DiscreteLaplace(1, 1), Question(QuestionKind.ROW_COUNT), Place()
