"""Files of version 1 stay readable, and say no more than they know."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import privet
from privet import Budget, LedgerStore
from privet.errors import BudgetExceeded, LedgerFileError, ModelFileError
from privet.model import Model
from privet.privacy import Cost, MechanismKind, QuestionKind
from privet.robustness import NoGuarantee, promise_of
from privet.robustness.votes import forest_votes

FOLDER = Path(__file__).with_name("version_1")
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
ROWS = pd.DataFrame(json.loads((FOLDER / "rows.json").read_text()), columns=["age", "dose", "sex"])
MODELS = sorted(name for name, known in EXPECTED.items() if "predictions" in known)
LEDGERS = sorted(name for name, known in EXPECTED.items() if "draws" in known)

#: What is proved of every fit's rho from a card of version 1. Whether rows were declared it does
#: not say, so nothing rests on that; a count of rows, and its share, are there to be seen.
RHO = {
    "tree_counted": (0.02**2) / 2 + 0.98**2 / 8,
    # Today's trees may leave such counts out, as the count of rows says: the bound is for both.
    "tree_probabilities": (0.02**2) / 2 + 0.98**2 / 8,
    "diffpid3": 1 / 6,
    "diffpc45": 1 / 6,
    "sulq": 1 / 6,
    "boosting_delta": EXPECTED["boosting_delta"]["promise"][2],
}


def test_there_are_enough_of_them():
    assert len(MODELS) == 25
    assert LEDGERS == ["empty", "many", "party", "pure", "rho", "zcdp"]


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    known = EXPECTED[name]
    model = privet.load(FOLDER / f"{name}.json")
    columns = [column for column in ROWS if column in model.schema.features]
    assert model.predict(ROWS[columns]).tolist() == known["predictions"]
    card = model.privacy
    assert (card.epsilon, card.rho) == (known["epsilon"], known["rho"])
    assert len(card.entries) == known["entries"]
    assert not card.rows_declared
    assert not card.seeded
    # All that version 1 wrote is known today, but for what parties proposed splits by.
    others = {e.question.text for e in card.entries if e.question.kind is QuestionKind.OTHER}
    assert others == ({"which split, by each party"} if "local_rnm" in name else set())
    assert all(entry.mechanism.kind is not MechanismKind.OTHER for entry in card.entries)
    assert all(entry.place.text is None for entry in card.entries)
    promise = promise_of(model)
    assert promise.rho == pytest.approx(RHO.get(name, promise.epsilon**2 / 2))
    # Written again it has the new version, and says the same.
    model.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["version"] == 2
    assert privet.load(tmp_path / "again.json") == model


@pytest.mark.parametrize("name", ["forest", "forest_counted", "forest_shared_rows"])
def test_votes_of_old_forests_are_not_certified(name):
    """Their trees shared one stream of public coins."""
    with pytest.raises(NoGuarantee, match=r"fit the forest again|count of all rows|own rows"):
        forest_votes(privet.load(FOLDER / f"{name}.json"), ROWS)


@pytest.mark.parametrize("name", MODELS)
def test_words_that_are_not_known_prove_nothing(name):
    plain = json.loads((FOLDER / f"{name}.json").read_text())
    known = promise_of(Model.from_dict(plain))
    for entry in plain["privacy"]["entries"]:
        for field in ("question", "where", "mechanism"):
            entry[field] = f"in other words: {entry[field]}"
    model = Model.from_dict(plain)
    assert model.privacy.entries[0].question.text.startswith("in other words")
    reworded = promise_of(model)
    assert reworded.epsilon == known.epsilon
    assert reworded.rho >= known.rho
    if model.privacy.accountant == "pure":
        assert reworded.rho == known.epsilon**2 / 2


def test_a_newer_model_is_refused():
    plain = json.loads((FOLDER / "topdown.json").read_text()) | {"version": 5}
    with pytest.raises(ModelFileError, match=r"written by a newer Privet.*upgrade"):
        Model.from_dict(plain)


# Ledgers -----------------------------------------------------------------------------------------


def copied(name, tmp_path):
    path = tmp_path / f"{name}.ledger"
    shutil.copy(FOLDER / f"{name}.ledger", path)
    return LedgerStore(path)


def lines(store):
    return [
        [d.id, d.purpose, d.asked, str(d.reserved), d.spent if d.spent is None else str(d.spent),
         len(d.entries)]
        for d in store.withdrawals
    ]  # fmt: skip


def version(store):
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute("SELECT version FROM opening").fetchone()[0]


def says(store):
    return {"spent": str(store.spent), "left": str(store.left), "draws": lines(store)}


@pytest.mark.parametrize("name", LEDGERS)
def test_looking_does_not_write(name, tmp_path):
    store = copied(name, tmp_path)
    before = store.path.read_bytes()
    store.path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert says(store) == EXPECTED[name]
        assert store.columns == ("age", "dose", "ill", "sex")
        assert store.table == "patients"
    finally:
        tmp_path.chmod(0o700)
    assert store.path.read_bytes() == before
    assert all(
        entry.question.kind is not QuestionKind.OTHER
        for draw in store.withdrawals
        for entry in draw.entries
    )


@pytest.mark.parametrize("name", LEDGERS)
def test_the_first_draw_brings_a_ledger_to_version_2(name, tmp_path):
    store = copied(name, tmp_path)
    draws, known = store.withdrawals, EXPECTED[name]
    budget = Budget(rho=Fraction(1, 10**6)) if "rho" in str(store.budget) else Budget(0.001)
    reservation = store.reserve(budget, "new", columns=["age"])
    assert version(store) == 2
    assert store.withdrawals[:-1] == draws  # entries and all
    assert lines(store)[:-1] == known["draws"]
    reservation.settle(Cost(Fraction(0), Fraction(0)), [])
    assert str(store.spent) == known["spent"]
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_refused_draw_leaves_an_old_ledger_as_it_is(tmp_path):
    store = copied("pure", tmp_path)
    before = store.path.read_bytes()
    with pytest.raises(BudgetExceeded):
        store.reserve(Budget(100), "too much", columns=["age"])
    with pytest.raises(LedgerFileError, match="no column"):
        store.reserve(Budget(0.1), "another table", columns=["weight"])
    assert store.path.read_bytes() == before
    assert version(store) == 1


def test_an_old_reservation_is_settled_after_the_upgrade(tmp_path):
    store = copied("pure", tmp_path)
    (open_draw,) = (draw for draw in store.withdrawals if draw.spent is None)
    store._settle(open_draw.id, Cost.pure(Fraction(1, 8)), [])
    assert version(store) == 2
    assert store.spent == Fraction(EXPECTED["pure"]["spent"]) - Fraction(1, 8)


KILLED = """
import os, signal, sqlite3, sys
from privet.privacy import Budget, LedgerStore
connect, number = sqlite3.connect, int(sys.argv[2])
class Dying(sqlite3.Connection):
    def execute(self, statement, *arguments):
        global number
        if statement.startswith(("UPDATE", "INSERT", "COMMIT")):
            if number == 0:
                super().execute("PRAGMA cache_size = 1")  # what was written is in the file itself
                os.kill(os.getpid(), signal.SIGKILL)
            number -= 1
        return super().execute(statement, *arguments)
sqlite3.connect = lambda *a, **o: connect(*a, factory=Dying, **o)
LedgerStore(sys.argv[1]).reserve(Budget(0.001), "killed", columns=["age"])
print("reserved")
"""


@pytest.mark.parametrize("statement", range(5))
def test_killed_while_it_is_upgraded(statement, tmp_path):
    """Two settled draws, the version, the new draw and the commit: the old file, whole, or the new
    one; never anything between."""
    store = copied("pure", tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(store.path), str(statement)],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert version(store) == 1
    assert says(store) == EXPECTED["pure"]
    store.reserve(Budget(0.001), "again", columns=["age"])
    assert version(store) == 2
    assert lines(store)[:-1] == EXPECTED["pure"]["draws"]
    assert store.spent == Fraction(EXPECTED["pure"]["spent"]) + Fraction(1, 1000)


def test_a_newer_ledger_is_refused(tmp_path):
    store = copied("pure", tmp_path)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE opening SET version = 6")
        connection.commit()
    before = store.path.read_bytes()
    for use in (lambda: store.left, lambda: store.reserve(Budget(0.1), "a fit", columns=["age"])):
        with pytest.raises(LedgerFileError, match=r"written by a newer Privet.*upgrade"):
            use()
    assert store.path.read_bytes() == before
