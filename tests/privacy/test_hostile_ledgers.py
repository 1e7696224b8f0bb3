"""Ledger files that are damaged or mean harm, and disks that are full: one sentence, at once."""

import importlib.util
import os
import resource
import sqlite3
import subprocess
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from privet.errors import BudgetError, LedgerFileError
from privet.privacy import Asked, Budget, Cost, LedgerStore, store
from privet.privacy.amounts import read_amount, write_amount

MODULE = Path(__file__).parents[2] / "benchmarks" / "_hostile_ledgers.py"
_spec = importlib.util.spec_from_file_location("_hostile_ledgers", MODULE)
hostile = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hostile)

COLUMNS = hostile.COLUMNS


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    return hostile.make_ledgers(tmp_path_factory.mktemp("ledgers"))


def changed(ledger, path, statement, *values):
    path.write_bytes(hostile.edited(ledger.read_bytes(), statement, values))
    return LedgerStore(path)


def refusal(use):
    start = time.perf_counter()
    with pytest.raises(LedgerFileError) as caught:
        use()
    assert time.perf_counter() - start < 5
    return str(caught.value)


def test_whatever_is_in_a_file_it_is_used_or_refused(tmp_path):
    """Every field with every hostile value, and bytes bent at random; 10,000 in the benchmark."""
    found = hostile.attack(tmp_path, 300, seed=17)
    assert found["refused"] > 150
    assert found["used"] > 30  # a text may say anything, and many bytes mean nothing
    assert found["longest seconds"] < 5


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE opening SET epsilon = ?", "1e999999999"),
        ("UPDATE draws SET spent = ? WHERE spent NOT NULL", "-100"),
        ("UPDATE draws SET spent = ? WHERE spent NOT NULL", "1"),
        ("UPDATE draws SET reserved = ?", "-1/3"),
        ("UPDATE draws SET reserved = ?", "100000"),
        ("UPDATE draws SET reserved_at = ?", 1e300),
        ("UPDATE draws SET settled_at = ?", None),
        ("UPDATE draws SET purpose = ?", "x" * 20_000_000),
        ("UPDATE draws SET purpose = CAST(? AS TEXT)", b"\xff"),
        ("UPDATE draws SET entries = ? WHERE spent NOT NULL", "[{]"),
        ("UPDATE draws SET entries = ? WHERE spent NOT NULL", "[" * 100_000),
        ("UPDATE opening SET columns = ?", "not JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_attacks_that_were_found(ledgers, tmp_path, statement, value):
    books = changed(ledgers[0], tmp_path / "bad.ledger", statement, value)
    before = books.path.read_bytes()
    message = refusal(lambda: (books.draws, books.spent))
    assert "ledger file" in message
    if "entries" not in statement:  # which a draw does not look at
        refusal(lambda: books.reserve(Budget(0.1), "a fit", columns=COLUMNS))
        assert books.path.read_bytes() == before


def test_what_runs_when_a_table_is_used_is_refused(ledgers, tmp_path):
    for number, statement in enumerate(hostile.STATEMENTS[:4]):
        books = changed(ledgers[0], tmp_path / f"{number}.ledger", statement)
        assert "not a ledger file" in refusal(lambda books=books: books.left)


def test_a_file_with_a_write_ahead_log_is_refused(ledgers, tmp_path):
    """Only to look at it would make files beside it."""
    path = tmp_path / "wal.ledger"
    path.write_bytes(ledgers[0].read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    refusal(lambda: LedgerStore(path).left)
    assert [each.name for each in tmp_path.iterdir()] == ["wal.ledger"]


def test_a_file_of_absurd_size_is_not_opened(ledgers, tmp_path):
    path = tmp_path / "large.ledger"
    path.write_bytes(ledgers[0].read_bytes())
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # it has holes, and takes no room
    assert "larger than any ledger" in refusal(lambda: LedgerStore(path).left)


def test_amounts_are_fractions_and_nothing_else():
    for amount in (Fraction(0), Fraction(1, 3), Fraction(10**299), Fraction(1, 10**400)):
        assert read_amount(write_amount(amount)) == amount
    long = Fraction(2, 3**5_000)
    assert long < read_amount(write_amount(long)) < long + Fraction(1, 10**900)
    for text in (*hostile.VALUES["amount"][:-6], "9" * 301, None, 1, 0.5, b"1"):
        with pytest.raises(ValueError, match="amount"):
            read_amount(text)


def test_amounts_with_absurdly_many_digits_are_counted_at_least(tmp_path):
    """Sums of unlike fractions grow without end: they are rounded up, and quickly."""
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    primes = [n for n in range(10_000, 12_000) if all(n % k for k in range(2, 120))]
    reserved = [Fraction(1, n**11) for n in primes]
    with closing(sqlite3.connect(books.path)) as connection:
        connection.executemany(
            "INSERT INTO draws (purpose, asked, reserved, reserved_at) VALUES ('', '', ?, 0)",
            [(str(each),) for each in reserved],
        )
        connection.commit()
    start = time.perf_counter()
    spent = books.spent
    assert time.perf_counter() - start < 2
    assert spent.denominator.bit_length() <= store._SUM_BITS + 1
    exact = sum(reserved, Fraction(0))
    assert exact < spent < exact + Fraction(1, 2**16_000)
    tiny = Fraction(1, 7**2_000)  # of which a rounded up part is reserved
    books.reserve(Budget(tiny), "tiny", columns=COLUMNS).settle(Cost.pure(tiny), [])
    assert books.draws[-1].counted >= tiny


def test_a_purpose_that_cannot_be_written_is_made_writable(tmp_path):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    books.reserve(Budget(1), "half a character \ud800" + "x" * 10**6, columns=COLUMNS)
    assert books.draws[0].purpose.startswith("half a character ?")
    assert len(books.draws[0].purpose) == 1000


def test_too_many_questions_to_list_are_settled_all_the_same(tmp_path, monkeypatch, ledgers):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    reservation = books.reserve(Budget(1), "a fit", columns=COLUMNS)
    entries = LedgerStore(ledgers[0]).draws[1].entries
    monkeypatch.setattr(store, "_MAX_VALUE", 2_000)
    reservation.settle(Cost.pure(Fraction(1, 2)), entries * 9)
    assert books.spent == Fraction(1, 2)
    (entry,) = books.draws[0].entries
    assert entry.question.kind is Asked.OTHER
    assert "27 questions" in entry.question.text


# Making files ------------------------------------------------------------------------------------


def create(path, **given):
    return LedgerStore.create(path, Budget(1), **{"columns": COLUMNS, **given})


def in_a_child(task):
    """Run a task in a process of its own, and return what it raised."""
    child = os.fork()
    if child == 0:
        try:
            task()
        except LedgerFileError as error:
            os._exit(3 if "room" in str(error) and "Nothing was made" in str(error) else 4)
        except BaseException:
            os._exit(5)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("room", [0, 100, 1024, 4096, 8192, 9000])
def test_without_room_there_is_no_file(tmp_path, room):
    def task():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        create(tmp_path / "new.ledger")

    assert in_a_child(task) == 3
    assert not list(tmp_path.iterdir())
    assert create(tmp_path / "new.ledger").left == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_on_a_full_disk_there_is_no_file(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        for spare in (0, 4096, 8192, 12_288):
            filler = tmp_path / "filler"
            filler.write_bytes(bytes(65_536 - spare))
            with pytest.raises(LedgerFileError, match="have room"):
                create(tmp_path / "new.ledger")
            assert [path.name for path in tmp_path.iterdir()] == ["filler"]
            filler.unlink()
        assert create(tmp_path / "new.ledger").left == 1
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_system_without_links_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(LedgerFileError, match=r"cannot create.*hard links"):
        create(tmp_path / "new.ledger")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", fail)  # of the folder, which some file systems do not know
    assert create(tmp_path / "new.ledger").left == 1


def test_two_that_open_the_same_books_at_once(tmp_path, monkeypatch):
    """Whoever comes second finds the first one's file, and leaves it alone."""
    path, link = tmp_path / "new.ledger", os.link

    def late(*given, **options):
        monkeypatch.setattr(os, "link", link)
        create(path).reserve(Budget(0.5), "first", columns=COLUMNS)
        link(*given, **options)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(LedgerFileError, match="exists already"):
        create(path)
    assert LedgerStore(path).left == Fraction(1, 2)
    assert [each.name for each in tmp_path.iterdir()] == ["new.ledger"]


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o600), (0o077, 0o600), (0o277, 0o400)])
def test_the_owner_alone_reads_it_or_not_even_that(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        create(tmp_path / "new.ledger")
    except LedgerFileError:
        assert umask == 0o277  # a file that its owner cannot write: only root can
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == mode


def test_names_that_cannot_be(tmp_path):
    with pytest.raises(LedgerFileError, match="too long, at most 247 bytes"):
        create(tmp_path / ("n" * 248))
    books = create(tmp_path / ("n" * 247))
    books.reserve(Budget(1), "a fit", columns=COLUMNS)
    with pytest.raises(LedgerFileError, match="more than 1000 characters"):
        create(tmp_path / "t", table="t" * 1001)
    with pytest.raises(LedgerFileError, match="more than 1000 characters"):
        create(tmp_path / "t", columns=["c" * 1001])
    with pytest.raises(LedgerFileError, match="characters that cannot"):
        create(tmp_path / "t", table="\ud800")
    with pytest.raises(BudgetError, match="300 digits"):
        LedgerStore.create(tmp_path / "t", Budget(10**301), columns=COLUMNS)
    assert len(list(tmp_path.iterdir())) == 1
