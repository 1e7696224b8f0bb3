"""Ledger files: shared by real processes, killed at will, never overdrawn, never forgetful."""

import copy
import json
import math
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privet.errors import BudgetError, BudgetExceeded, LedgerFileError
from privet.privacy import (
    Budget,
    Cost,
    DiscreteLaplace,
    Entry,
    Exponential,
    Ledger,
    LedgerStore,
    Place,
    Question,
    QuestionKind,
    zcdp_epsilon,
)

COLUMNS = ["age", "ill"]
SCRIPT = Path(__file__).with_name("_ledger_process.py")


@pytest.fixture
def store(tmp_path):
    return LedgerStore.create(tmp_path / "patients.ledger", Budget(1), columns=COLUMNS)


def reserve(store, epsilon, **options):
    return store.reserve(Budget(epsilon), "a fit", **{"columns": COLUMNS, **options})


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process, kill=False):
    """End a process that we started, and return what it still had to say."""
    if kill:
        process.kill()
    output, _ = process.communicate()
    return output


# Many processes ----------------------------------------------------------------------------------


def test_processes_that_race_never_overdraw(store):
    """8 processes want 5 sixteenths each, 40 in all: exactly 16 get one."""
    processes = [start("race", store.path, Fraction(1, 16), 5) for _ in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = "".join(finish(process) for process in processes).split("\n")
    answers = [int(line.split()[1]) for line in lines if line.startswith("answer")]
    assert sorted(answers) == [draw.id for draw in store.withdrawals]
    assert len(answers) == 16
    assert lines.count("refused") == 24
    assert store.spent == 1
    assert store.left == 0


LOCK = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
"""


def test_threads_that_look_do_not_take_a_lock_away(store):
    """POSIX takes all locks of a process on a file away when any part of it closes that file."""

    def another_process_gets_the_lock():
        got = subprocess.run([sys.executable, "-c", LOCK, store.path], capture_output=True)
        assert got.returncode == 0 or b"database is locked" in got.stderr
        return got.returncode == 0

    found = []
    looking = threading.Thread(target=lambda: found.append(store.left))
    with store._writing() as (connection, _):
        looking.start()
        looking.join(0.3)
        assert not another_process_gets_the_lock()
        connection.execute("UPDATE opening SET epsilon = '7'")
    looking.join()
    assert found == [7]
    assert another_process_gets_the_lock()


def test_a_thread_that_never_ends_its_turn_stops_nobody_for_ever(store, monkeypatch):
    monkeypatch.setattr("privet.privacy.store._WAIT_SECONDS", 0.01)
    with store._writing(), pytest.raises(LedgerFileError, match="another thread has it locked"):
        _ = store.left
    assert store.left == 1


# Killed processes --------------------------------------------------------------------------------

#: Where a process is killed, what it has said by then, and what must count as spent.
KILLS = [
    ("transaction begun", [], 0),
    ("draw written, not committed", [], 0),
    ("file half written", [], 0),
    ("draw committed", [], Fraction(1, 2)),
    ("settlement begun", ["answer"], Fraction(1, 2)),
    ("settlement written, not committed", ["answer"], Fraction(1, 2)),
    ("settlement committed", ["answer"], Fraction(1, 8)),
]


@pytest.mark.parametrize(("point", "said", "counted"), KILLS, ids=[kill[0] for kill in KILLS])
def test_killed_at_a_precise_point(store, point, said, counted):
    process = start("stop", store.path, point)
    lines = []
    while (line := process.stdout.readline().strip()) != "stopped":
        assert line, "the process ended before it was stopped"
        lines.append(line)
    assert lines == said
    if point == "file half written":  # whoever reads has to undo it by the journal
        size = store.path.stat().st_size
        assert size > 20_000
        assert store.path.with_name(store.path.name + "-journal").stat().st_size > 0
    else:  # others see the same already while it stands still, holding its lock
        assert store.spent == counted
    assert finish(process, kill=True) == ""
    assert store.spent == counted
    assert all((draw.spent is None) == (counted != Fraction(1, 8)) for draw in store.withdrawals)
    # The lock is gone: everything that is left can be drawn, and no more.
    reserve(store, store.left)
    with pytest.raises(BudgetExceeded):
        reserve(store, Fraction(1, 10**9))
    assert store.spent == 1


def test_an_answer_never_comes_before_its_reservation(store):
    """The process has said nothing while its reservation is not committed, and it is durable once
    it is: another process finds it in the file before the first answer."""
    process = start("stop", store.path, "draw committed")
    assert process.stdout.readline() == "stopped\n"
    (draw,) = store.withdrawals
    assert (draw.reserved, draw.spent, draw.purpose) == (Fraction(1, 2), None, "fit")
    finish(process, kill=True)


def test_killed_while_the_books_are_opened(tmp_path):
    """There is no ledger then, not even half of one; its owner opens it again."""
    path = tmp_path / "new.ledger"
    process = start("stop", path, "books opened, not committed")
    assert process.stdout.readline() == "stopped\n"
    finish(process, kill=True)
    assert not path.exists()
    with pytest.raises(LedgerFileError, match="there is no ledger file"):
        reserve(LedgerStore(path), 1)
    assert LedgerStore.create(path, Budget(1), columns=COLUMNS).left == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_at_random_moments(tmp_path, seed):
    """100 processes draw, answer and settle without end, four at a time, all of them killed.

    Whatever came out of them is covered by the file, line by line, and the file stays usable.
    """
    store = LedgerStore.create(tmp_path / "t.ledger", Budget(1000), columns=COLUMNS)
    process = start("kills", store.path, seed, 100)
    answers = {int(number): Fraction(cost) for number, cost in json.loads(finish(process))}
    assert process.returncode == 0
    draws = {draw.id: draw for draw in store.withdrawals}
    assert len(answers) >= 50
    assert set(answers) <= set(draws)
    for number, draw in draws.items():
        assert answers.get(number, 0) <= draw.counted <= draw.reserved
        if draw.spent is None:
            assert draw.counted == draw.reserved
            assert draw.settled_at is None
        else:
            assert draw.spent == answers[number]
    assert sum(answers.values()) <= store.spent <= 1000
    unsettled = sum(draw.spent is None for draw in draws.values())
    assert 0 < unsettled < len(draws)  # both kinds occurred
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    reserve(store, store.left)
    assert store.left == 0


# Amounts -----------------------------------------------------------------------------------------


def test_ten_tenths_are_exactly_one(store):
    for _ in range(10):
        reserve(store, Fraction(1, 10))
    assert store.spent == 1
    assert store.left == 0
    with pytest.raises(BudgetExceeded):
        reserve(store, Fraction(1, 10**40))


def test_a_refusal_changes_nothing(store):
    reserve(store, Fraction(3, 4))
    before = store.path.read_bytes()
    with pytest.raises(
        BudgetExceeded, match=r"asks for epsilon 0\.5, but epsilon 0\.25"
    ) as refusal:
        reserve(store, 0.5)
    assert refusal.value.left == "epsilon 0.25"
    assert store.path.read_bytes() == before
    with pytest.raises(BudgetExceeded) as check:
        store.check(Budget(0.5), columns=["age"])
    assert str(check.value) == str(refusal.value)
    with pytest.raises(LedgerFileError, match="another table"):
        store.check(Budget(0.25), columns=["weight"])
    store.check(Budget(0.25), columns=["age"])
    assert store.path.read_bytes() == before
    reserve(store, 0.25)


@pytest.mark.parametrize(
    ("total", "asked", "words"),
    [
        (
            Budget(3),
            Budget(1, delta=1e-6),
            [
                "asks for epsilon 1, delta 1e-06, but",
                "counts pure epsilon, which cannot pay for that",
                "ask for epsilon alone, without delta",
                "opened with --delta",
            ],
        ),
        (Budget(3), Budget(rho=0.1), ["asks for rho 0.1, but", "ask for epsilon alone"]),
        (
            Budget(3, delta=1e-6),
            Budget(1),
            [
                "asks for epsilon 1, which is rho 0.5 there, but rho 0.185",
                "(of epsilon 3, delta 1e-06)",
                "ask for at most epsilon 0.6, or with delta",
            ],
        ),
        (
            Budget(1, delta=1e-6),
            Budget(2, delta=1e-6),
            ["asks for epsilon 2, delta 1e-06, which is rho 0.0881", "but rho 0.0243"],
        ),
        (Budget(rho=0.1), Budget(rho=0.2), ["asks for rho 0.2, but rho 0.1 is left"]),
        (Budget(3), Budget(math.inf), ["without noise cannot be paid for"]),
        (Budget(rho=0.1), Budget(math.inf), ["without noise cannot be paid for"]),
    ],
    ids=str,
)
def test_a_refusal_speaks_in_the_unit_of_the_books(total, asked, words, tmp_path):
    store = LedgerStore.create(tmp_path / "books", total, columns=COLUMNS)
    with pytest.raises(BudgetExceeded) as refusal:
        store.reserve(asked, "a fit", columns=COLUMNS)
    for part in (*words, "Nothing was computed and nothing was spent"):
        assert part in str(refusal.value)
    assert store.spent == 0


def test_what_a_refusal_advises_is_granted(tmp_path):
    store = LedgerStore.create(tmp_path / "books", Budget(3, delta=1e-6), columns=COLUMNS)
    with pytest.raises(BudgetExceeded, match=r"at most epsilon 0\.6,"):
        reserve(store, 1)
    reserve(store, 0.6)


def test_settling_gives_back_the_rest(store):
    reservation = reserve(store, 1)
    mechanism = DiscreteLaplace(1, Fraction(1, 3))
    entry = Entry(Question(QuestionKind.ROW_COUNT), Place(), 1, mechanism.facts, mechanism.cost)
    reservation.settle(Cost.pure(Fraction(1, 3)), [entry])
    (draw,) = store.withdrawals
    assert draw.spent == draw.counted == Fraction(1, 3)
    assert draw.reserved == 1
    assert draw.entries == (entry,)
    assert draw.reserved_at <= draw.settled_at
    assert store.left == Fraction(2, 3)


def test_settling_for_nothing_and_for_everything(store):
    reserve(store, 0.5).settle(Cost(Fraction(0), Fraction(0)), [])
    assert store.left == 1
    reserve(store, 1).settle(Cost.pure(Fraction(1)), [])
    assert store.left == 0


def test_a_reservation_is_settled_once(store):
    reservation = reserve(store, 0.5)
    reservation.settle(Cost.pure(Fraction(1, 2)), [])
    for again in (reservation, pickle.loads(pickle.dumps(reservation))):
        with pytest.raises(LedgerFileError, match="settled already"):
            again.settle(Cost.pure(Fraction(1, 8)), [])
    assert store.spent == Fraction(1, 2)


@pytest.mark.parametrize(
    "spent",
    [
        Cost.pure(Fraction(2, 3)),
        Cost.zcdp(Fraction(1, 100)),
        Cost(Fraction(-1, 2), Fraction(0)),
        Cost(math.nan, math.nan),
        Cost(math.inf, math.inf),
    ],
    ids=["more than reserved", "no pure guarantee", "negative", "not a number", "infinite"],
)
def test_a_settlement_that_cannot_be(store, spent):
    """A negative one would give back more than was ever there; NaN would spoil the file."""
    reservation = reserve(store, 0.5)
    with pytest.raises(BudgetError):
        reservation.settle(spent, [])
    assert store.spent == Fraction(1, 2)
    reservation.settle(Cost.pure(Fraction(1, 4)), [])
    assert store.spent == Fraction(1, 4)


def test_a_plain_float_is_settled_at_its_exact_value(store):
    reserve(store, 0.5).settle(Cost(0.1, 0.005), [])
    assert store.spent == Fraction(0.1) > Fraction(1, 10)


def test_pure_ledgers_refuse_zcdp_fits(store):
    for budget in (Budget(rho=1e-9), Budget(1e-3, delta=1e-6), Budget(math.inf)):
        with pytest.raises(BudgetExceeded):
            store.reserve(budget, "a fit", columns=COLUMNS)
    assert store.withdrawals == ()


def test_zcdp_ledgers_take_pure_fits_at_half_their_square(tmp_path):
    store = LedgerStore.create(tmp_path / "t", Budget(rho=1), columns=COLUMNS)
    reservation = reserve(store, 1)
    assert store.spent == Fraction(1, 2)
    ledger = Ledger(Budget(1))
    ledger.charge(
        ledger.root, Exponential(1, Fraction(1, 2)), Question(QuestionKind.LABEL), Place()
    )
    parts = ledger.root.divide(np.array([0, 0]))
    ledger.charge(parts, DiscreteLaplace(1, Fraction(1, 2)), Question(QuestionKind.LABEL), Place())
    reservation.settle(ledger.total, ledger.entries)
    assert store.spent == Fraction(1, 32) + Fraction(1, 8)
    store.reserve(Budget(rho=Fraction(1, 2)), "a fit", columns=COLUMNS)
    with pytest.raises(BudgetExceeded):
        reserve(store, math.inf)


def test_approximate_ledgers_keep_their_epsilon_and_delta(tmp_path):
    store = LedgerStore.create(tmp_path / "t", Budget(1, delta=1e-6), columns=COLUMNS)
    assert store.budget == Budget(1, delta=1e-6)
    while store.left >= Fraction(1, 200):
        reserve(store, 0.1)
    assert 0 < zcdp_epsilon(float(store.spent), 1e-6) <= 1
    with pytest.raises(BudgetExceeded):
        reserve(store, 0.1)


@pytest.mark.parametrize("total", [math.inf])
def test_an_infinite_total_is_refused_before_a_file_is_made(tmp_path, total):
    with pytest.raises(BudgetError, match="finite"):
        LedgerStore.create(tmp_path / "t", Budget(total), columns=COLUMNS)
    assert not list(tmp_path.iterdir())


# Whose table -------------------------------------------------------------------------------------


def test_columns(store):
    reserve(store, 0.1, columns=["ill"])
    reserve(store, 0.1, columns=[])
    with pytest.raises(LedgerFileError, match="no column 'weight'"):
        reserve(store, 0.1, columns=["age", "weight"])
    assert store.columns == ("age", "ill")
    assert len(store.withdrawals) == 2


def test_table_names(tmp_path):
    store = LedgerStore.create(tmp_path / "t", Budget(1), columns=COLUMNS, table="patients")
    assert store.table == "patients"
    with pytest.raises(LedgerFileError, match="table 'patients', not of 'staff'"):
        reserve(store, 0.1, table="staff")
    reserve(store, 0.1, table="patients")
    reserve(store, 0.1)
    assert store.spent == Fraction(2, 10)
    nameless = LedgerStore.create(tmp_path / "u", Budget(1), columns=COLUMNS)
    reserve(nameless, 0.1, table="staff")
    assert nameless.table is None


def test_after_a_refused_table_the_lock_is_released(store):
    with pytest.raises(LedgerFileError):
        reserve(store, 0.1, columns=["weight"])
    with closing(sqlite3.connect(store.path, timeout=0)) as connection:
        connection.execute("BEGIN EXCLUSIVE")


# Files -------------------------------------------------------------------------------------------


def test_books_are_opened_once(store):
    before = store.path.read_bytes()
    with pytest.raises(LedgerFileError, match="exists already"):
        LedgerStore.create(store.path, Budget(100), columns=COLUMNS)
    assert store.path.read_bytes() == before
    with pytest.raises(LedgerFileError, match="exists already"):
        LedgerStore.create(store.path.parent, Budget(100), columns=COLUMNS)


def test_a_dangling_link_is_not_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerFileError, match="exists already"):
        LedgerStore.create(link, Budget(1), columns=COLUMNS)


def test_a_missing_file_is_not_made_by_looking(tmp_path):
    store = LedgerStore(tmp_path / "none")
    for look in (lambda: store.left, lambda: store.withdrawals, lambda: reserve(store, 1)):
        with pytest.raises(LedgerFileError, match="there is no ledger file"):
            look()
    with pytest.raises(LedgerFileError, match="there is no ledger file"):
        _ = LedgerStore(tmp_path).left
    assert not list(tmp_path.iterdir())


def test_a_file_that_vanishes_in_between_is_not_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    with pytest.raises(LedgerFileError):
        reserve(LedgerStore(tmp_path / "none"), 1)
    assert not list(tmp_path.iterdir())


def other_sqlite(path, application_id=0):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute("CREATE TABLE opening (version INTEGER)")
        connection.execute("INSERT INTO opening VALUES (1)")
        connection.commit()


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("no database at all\n" * 100),
        lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(84)),
        other_sqlite,
        lambda path: other_sqlite(path, 0x50525654),
    ],
    ids=["empty", "text", "header only", "another application", "ours, but not a ledger"],
)
def test_files_that_are_no_ledgers(tmp_path, write):
    path = tmp_path / "file"
    write(path)
    before = path.read_bytes()
    with pytest.raises(LedgerFileError):
        reserve(LedgerStore(path), 1)
    with pytest.raises(LedgerFileError):
        _ = LedgerStore(path).left
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def change(store, statement):
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE opening SET version = 0",
        "DELETE FROM opening",
        "UPDATE opening SET epsilon = 'much'",
        "UPDATE opening SET epsilon = NULL",
        "UPDATE opening SET epsilon = '0'",
        "UPDATE draws SET reserved = 'nan'",
        "UPDATE draws SET reserved = '1/0'",
        "UPDATE draws SET spent = ''",
        "DROP TABLE draws",
    ],
)
def test_damaged_ledgers_are_refused(store, statement):
    reserve(store, 0.1)
    change(store, statement)
    with pytest.raises(LedgerFileError):
        reserve(store, 0.1)


def test_a_cut_off_file_never_shows_less_than_was_spent(store, tmp_path):
    for _ in range(40):  # several pages of draws
        store.reserve(Budget(Fraction(1, 80)), "long " * 100, columns=COLUMNS)
    whole = store.path.read_bytes()
    path = tmp_path / "cut"
    for size in range(0, len(whole), 1024):
        path.write_bytes(whole[:size])
        try:
            spent = LedgerStore(path).spent
        except LedgerFileError:
            continue
        assert spent == Fraction(1, 2)


def test_the_owner_alone_may_read_the_file(store):
    assert store.path.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_that_cannot_be_written(tmp_path, store):
    closed = tmp_path / "closed"
    closed.mkdir()
    shutil.copy(store.path, closed / "copy.ledger")
    closed.chmod(0o500)
    (closed / "copy.ledger").chmod(0o400)
    with pytest.raises(LedgerFileError, match="cannot create"):
        LedgerStore.create(closed / "new.ledger", Budget(1), columns=COLUMNS)
    with pytest.raises(LedgerFileError):
        reserve(LedgerStore(closed / "copy.ledger"), 0.1)


def test_a_directory_that_does_not_exist(tmp_path):
    with pytest.raises(LedgerFileError, match="cannot create"):
        LedgerStore.create(tmp_path / "none" / "t", Budget(1), columns=COLUMNS)


@pytest.mark.parametrize("name", [":memory:", "a b?mode=memory", "100%#1.ledger", "file:x", "ü"])
def test_every_name_is_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    store = LedgerStore.create(name, Budget(1), columns=COLUMNS)
    reserve(store, 0.5)
    assert LedgerStore(tmp_path / name).spent == Fraction(1, 2)
    assert [path.name for path in tmp_path.iterdir()] == [name]


# The object --------------------------------------------------------------------------------------


def test_copies_mean_the_same_file(store, tmp_path, monkeypatch):
    copies = [copy.copy(store), copy.deepcopy(store), pickle.loads(pickle.dumps(store))]
    for number, same in enumerate(copies, start=1):
        assert same == store
        reserve(same, Fraction(1, 4))
        assert store.spent == Fraction(number, 4)
    monkeypatch.chdir(tmp_path)
    relative = LedgerStore(Path(store.path.name))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickle.dumps(relative)).spent == Fraction(3, 4)


def test_the_file_says_nothing_about_the_data(store):
    """Only the columns named above; no fingerprint, no counts."""
    reserve(store, 0.5)
    with closing(sqlite3.connect(store.path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        columns = [c[1] for c in connection.execute("PRAGMA table_info(draws)").fetchall()]
    assert sorted(name for (name,) in tables) == ["draws", "opening"]
    assert columns == [
        *("id", "purpose", "asked", "reserved", "reserved_at"),
        *("spent", "settled_at", "entries"),
    ]


def test_a_commit_waits_for_the_disk(store, monkeypatch):
    """EXTRA (3): also the directory, so that not even a power cut undoes a draw."""
    found = []
    connect = sqlite3.connect

    class Watching(sqlite3.Connection):
        def execute(self, statement, *arguments):
            if statement == "COMMIT":
                found.append(super().execute("PRAGMA synchronous").fetchone()[0])
                found.append(super().execute("PRAGMA journal_mode").fetchone()[0])
            return super().execute(statement, *arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=Watching, **o))
    reserve(store, 0.5).settle(Cost.pure(Fraction(1, 4)), [])
    assert found == [3, "delete", 3, "delete"]


def test_readers_do_not_block_each_other_or_wait_for_a_draw(store):
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert store.left == 1
        assert store.withdrawals == ()


def test_a_file_locked_for_too_long_is_an_error_not_an_answer(store, monkeypatch):
    monkeypatch.setattr("privet.privacy.store._WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerFileError, match="locked for too long"):
            reserve(store, 0.1)
    assert store.withdrawals == ()
