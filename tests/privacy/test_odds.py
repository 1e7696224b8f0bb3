"""An epsilon that protects nobody is said to be so, in odds."""

import math
import warnings

import pytest

from privet import Budget, LedgerStore, Numeric, PrivateTreeClassifier, Schema
from privet.errors import HighEpsilonWarning
from privet.privacy import caution, odds_words

SCHEMA = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])


def test_words():
    assert odds_words(0.1) == "1.1 to 1"
    assert odds_words(math.log(200)) == "200 to 1"
    assert caution(10.0) is None
    assert caution(math.inf) is None
    assert "22,248 to 1" in caution(10.01)
    assert "more than 1,000,000,000 to 1" in caution(1e6)


def said(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [warning for warning in caught if warning.category is HighEpsilonWarning]


@pytest.mark.parametrize(("epsilon", "times"), [(10.0, 0), (10.5, 1)])
def test_a_fit_warns_once(epsilon, times):
    model = PrivateTreeClassifier(epsilon, SCHEMA, n_rows=4)
    found = said(lambda: model.fit([[0.1], [0.9]] * 2, [0, 1] * 2))
    assert len(found) == times
    assert all(warning.filename == __file__ for warning in found)


def test_nothing_is_spent_if_warnings_are_errors(tmp_path):
    store = LedgerStore.create(tmp_path / "books", Budget(9.0), columns=["x", "y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", HighEpsilonWarning)
        with pytest.raises(HighEpsilonWarning, match="epsilon 12 protects nobody"):
            PrivateTreeClassifier(12.0, SCHEMA, ledger=store).fit([[0.1]], [0])
    assert store.withdrawals == ()


def test_the_books_of_a_table_warn(tmp_path):
    opened = tmp_path / "books"
    (found,) = said(lambda: LedgerStore.create(opened, Budget(20.0), columns=["x"]))
    assert "485,165,195 to 1" in str(found.message)
    assert found.filename == __file__
    assert LedgerStore(opened).left == 20
    rho = tmp_path / "rho"
    assert said(lambda: LedgerStore.create(rho, Budget(rho=99.0), columns=["x"])) == []


def test_the_card_says_so():
    model = PrivateTreeClassifier(30.0, SCHEMA, n_rows=4, probability_share=0.9)
    said(lambda: model.fit([[0.1], [0.9]] * 2, [0, 1] * 2))
    card = model.privacy_
    assert any("protects nobody" in doubt for doubt in card.doubts()) is (card.epsilon > 10)
    assert card.epsilon > 10
