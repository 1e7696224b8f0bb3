"""Reservations of studies in a ledger file: they outlive processes, and count answers."""

import sqlite3
from fractions import Fraction

import pytest

from privet.errors import BudgetError, BudgetExceeded, LedgerFileError
from privet.privacy import Budget, Cost, LedgerStore

COLUMNS, TOKEN = ["age", "ill"], "ab" * 16
HALF = Cost.pure(Fraction(1, 2))


@pytest.fixture(params=[0, 1e-6], ids=["plain", "with deltas"])
def store(request, tmp_path):
    budget = Budget(2, threshold_delta=request.param)
    return LedgerStore.create(tmp_path / "a.ledger", budget, columns=COLUMNS)


def reserve(store, name="study", token=TOKEN, epsilon=1):
    return store.reserve_study(name, token, Budget(epsilon), columns=COLUMNS)


def version(store):
    with sqlite3.connect(store.path) as connection:
        return connection.execute("SELECT version FROM opening").fetchone()[0]


def test_a_study_reserves_counts_and_settles(store):
    plain = version(store)
    assert store.study("study") is None
    reservation = reserve(store)
    assert version(store) == plain + 2
    assert store.left == 1
    reservation.count(1, HALF)
    study = store.study("study")
    assert (study.answers, study.spent, study.token) == (1, Fraction(1, 2), TOKEN)
    assert store.left == 1  # counts in full
    reservation.settle(HALF, [])
    assert store.left == Fraction(3, 2)
    assert store.books.studies == (study,)
    with pytest.raises(LedgerFileError, match="is closed"):
        reservation.count(2, HALF)


def test_other_draws_go_on_beside_it(store):
    reserve(store)
    other = store.reserve(Budget(1), "fit", columns=COLUMNS)
    other.settle(HALF, [])
    assert store.left == Fraction(1, 2)
    reserve(store, "second", epsilon=Fraction(1, 2))
    with pytest.raises(BudgetExceeded):
        reserve(store, "third", epsilon=Fraction(1, 2))
    assert [study.name for study in store.books.studies] == ["study", "second"]


def test_another_process_takes_over_by_the_token(store):
    reserve(store)
    store.take_over("study", TOKEN).count(1, HALF)
    with pytest.raises(LedgerFileError, match="another journal"):
        store.take_over("study", "cd" * 16)
    with pytest.raises(LedgerFileError, match="has no study"):
        store.take_over("other", TOKEN)
    store.take_over("study", TOKEN).settle(HALF, [])
    with pytest.raises(LedgerFileError, match="is closed"):
        store.take_over("study", TOKEN)


def test_a_name_is_used_once(store):
    reserve(store).settle(HALF, [])
    with pytest.raises(LedgerFileError, match="already"):
        reserve(store, token="cd" * 16)
    assert store.left == Fraction(3, 2)


def test_answers_are_counted_one_by_one(store):
    reservation = reserve(store)
    reservation.count(1, HALF)
    for wrong in (0, 1, 3):
        with pytest.raises(LedgerFileError, match="another number of answers"):
            reservation.count(wrong, HALF)
    assert store.study("study").answers == 1


def test_no_more_is_counted_than_was_reserved(store):
    reservation = reserve(store)
    with pytest.raises(BudgetError, match="more than it reserved"):
        reservation.count(1, Cost.pure(Fraction(3, 2)))
    assert store.study("study").answers == 0


@pytest.mark.parametrize("name", ["", "x" * 2000, "\ud800"])
def test_names_that_cannot_be_written(name, store):
    with pytest.raises(LedgerFileError, match="a study has a name"):
        reserve(store, name)
    assert store.left == 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE studies SET answers = -1",
        "UPDATE studies SET answers = 'x'",
        "UPDATE studies SET token = 'x'",
        "UPDATE studies SET spent = '3'",
        "UPDATE studies SET spent = 'x'",
        "UPDATE studies SET draw = 99",
        "INSERT INTO studies SELECT 7, name, token, answers, spent FROM studies",
        "UPDATE opening SET version = version - 2",
        "DROP TABLE studies",
    ],
)
def test_damage_is_noticed(damage, store):
    reserve(store)
    with sqlite3.connect(store.path) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(LedgerFileError, match="damaged"):
        _ = store.books


def test_a_zcdp_ledger_pays_for_a_study(tmp_path):
    store = LedgerStore.create(tmp_path / "z.ledger", Budget(8, delta=1e-6), columns=COLUMNS)
    reserve(store).count(1, HALF)
    assert store.study("study").spent == Fraction(1, 8)


def test_counting_leaves_an_emptied_journal_until_it_ends(store):
    """It says nothing: a copy of the ledger without it is as good, and others may draw."""
    reservation = reserve(store)
    journal = store.path.with_name(store.path.name + "-journal")
    reservation.count(1, HALF)
    assert journal.read_bytes()[:28] == bytes(28)
    copy = LedgerStore(store.path.with_name("copy.ledger"))
    copy.path.write_bytes(store.path.read_bytes())
    assert copy.study("study") == store.study("study")
    reservation.close()
    assert not journal.exists()
    reservation.count(2, HALF)  # it may go on, as a new process would
    store.reserve(Budget(Fraction(1, 2)), "fit", columns=COLUMNS)
    assert not journal.exists()
    assert store.study("study").answers == 2


def test_a_journal_that_is_needed_is_not_tidied_away(store):
    reservation = reserve(store)
    reservation.count(1, HALF)
    journal = store.path.with_name(store.path.name + "-journal")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("PRAGMA cache_size = 1")
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE studies SET answers = 7")
    reservation.close()
    assert journal.exists()
    other.execute("ROLLBACK")
    other.close()
    assert store.study("study").answers == 1
