"""``privet ledger`` on old and on hostile files."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "version_1"


def test_an_old_ledger_is_shown_and_stays_as_it_is(tmp_path, call_privet):
    path = tmp_path / "old.ledger"
    shutil.copy(GOLDEN / "pure.ledger", path)
    before = path.read_bytes()
    path.chmod(0o400)
    code, out, err = call_privet("ledger", path)
    assert (code, err) == (0, "")
    assert "Total: epsilon 2; spent: epsilon 1.05; left: epsilon 0.95" in out
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_entries_of_an_old_model_are_shown_in_words(call_privet):
    code, out, _ = call_privet("show", GOLDEN / "federated_privatree_secure_sum.json")
    assert code == 0
    for words in ("how many", "which split", "the whole", "share of"):
        assert words in out


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE opening SET version = 6", "newer Privet"),
        ("UPDATE opening SET epsilon = '1e999999999'", "damaged"),
        ("UPDATE draws SET spent = '-100', settled_at = 0.0", "damaged"),
        ("UPDATE draws SET reserved_at = 1e300", "damaged"),
        ("UPDATE draws SET purpose = CAST(x'ff' AS TEXT)", "damaged"),
        ("UPDATE opening SET columns = '['", "damaged"),
        ("UPDATE draws SET entries = '[{}]', settled_at = 0.0, spent = '0'", "damaged"),
    ],
)
def test_a_hostile_ledger_gets_one_sentence(tmp_path, call_privet, statement, words):
    path = tmp_path / "bad.ledger"
    shutil.copy(GOLDEN / "pure.ledger", path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    code, out, err = call_privet("ledger", path)
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err
