"""Ledger files that are damaged or mean harm, and disks that are full: one sentence, at once."""

import importlib.util
import os
import resource
import shutil
import sqlite3
import stat
import struct
import subprocess
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from privet.errors import BudgetError, LedgerFileError
from privet.privacy import Budget, Cost, LedgerStore, QuestionKind, store
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
    with pytest.raises(LedgerFileError) as caught:
        use()
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
        ("UPDATE opening SET threshold_delta = ?", "1e-6"),
        ("UPDATE opening SET threshold_delta = ?", "1/10000000"),
        ("UPDATE opening SET threshold_delta = ?", "2"),
        ("UPDATE draws SET reserved_delta = ?", "-1"),
        ("UPDATE draws SET reserved_delta = ?", "1/2"),
        ("UPDATE draws SET spent_delta = ? WHERE spent NOT NULL", "1/2"),
        ("UPDATE draws SET spent_delta = ? WHERE spent NOT NULL", None),
        ("UPDATE draws SET spent_delta = ? WHERE spent IS NULL", "0"),
        ("UPDATE opening SET kinds = ?", "[" * 100_000),
        ("UPDATE opening SET kinds = ?", '{"age": 1}'),
        ("UPDATE opening SET kinds = ?", '{"nobody": "number"}'),
        ("UPDATE opening SET version = ?", 2),
    ],
    ids=lambda value: str(value)[:40],
)
def test_attacks_on_the_book_of_deltas(ledgers, tmp_path, statement, value):
    books = changed(ledgers[2], tmp_path / "bad.ledger", statement, value)
    before = books.path.read_bytes()
    assert "ledger file" in refusal(lambda: books.books)
    refusal(lambda: books.reserve(Budget(0.1), "a fit", columns=COLUMNS))
    assert books.path.read_bytes() == before


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
    message = refusal(lambda: (books.withdrawals, books.spent))
    assert "ledger file" in message
    assert str(books.path) in message
    if "entries" not in statement:  # which are checked when they are shown
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
    spent = books.spent
    assert spent.denominator.bit_length() <= store._SUM_BITS + 1
    exact = sum(reserved, Fraction(0))
    assert exact < spent < exact + Fraction(len(primes), 2**store._SUM_BITS)
    tiny = Fraction(1, 7**2_000)  # of which a rounded up part is reserved
    books.reserve(Budget(tiny), "tiny", columns=COLUMNS).settle(Cost.pure(tiny), [])
    assert books.withdrawals[-1].counted >= tiny


def insert(books, reserved):
    with closing(sqlite3.connect(books.path)) as connection:
        connection.executemany(
            "INSERT INTO draws (purpose, asked, reserved, reserved_at) VALUES ('', '', ?, 0)",
            [(each,) for each in reserved],
        )
        connection.commit()


def test_many_draws_of_absurdly_exact_amounts_do_not_stall(tmp_path):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    insert(books, [f"1/{'9' * 4_001}"])
    assert "an amount is no fraction" in refusal(lambda: books.spent)
    books = LedgerStore.create(tmp_path / "u.ledger", Budget(3), columns=COLUMNS)
    under = [10**999 + 2 * number + 1 for number in range(3_000)]
    insert(books, [f"1/{each}" for each in under])
    spent = books.spent
    most = Fraction(len(under), 2**store._AMOUNT_BITS)
    assert Fraction(len(under), under[-1]) < spent <= most


def test_what_rounding_adds_is_no_damage(tmp_path):
    """All may be drawn of books whose amounts have many digits, and then there is nothing left."""
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    parts = [Fraction(1, 7**400), Fraction(2, 3**600)]
    insert(books, map(str, [*parts, 3 - sum(parts)]))
    assert books.spent == 3
    assert books.left == 0
    insert(books, ["1/1000000"])
    assert "more was spent than there is" in refusal(lambda: books.spent)


def test_a_file_with_all_the_draws_it_can_hold_is_full_not_damaged(tmp_path, monkeypatch):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    monkeypatch.setattr(store, "_MAX_DRAWS", 3)
    for _ in range(3):
        last = books.reserve(Budget(Fraction(1, 2)), "a fit", columns=COLUMNS)
    with pytest.raises(LedgerFileError, match=r"holds more\. Nothing was computed"):
        books.reserve(Budget(Fraction(1, 2)), "a fit", columns=COLUMNS)
    last.settle(Cost.pure(Fraction(1, 4)), [])
    assert books.books.spent == Fraction(5, 4)


# Files beside a ledger ---------------------------------------------------------------------------


def beside(path, end):
    return path.with_name(path.name + end)


def journal_of(path, pages=None):
    """Return the head of a journal that undoes nothing."""
    pages = path.stat().st_size // 4096 if pages is None else pages
    head = store._JOURNAL_MAGIC + struct.pack(">IIIII", 0, 0x1234, pages, 512, 4096)
    return head.ljust(512, b"\0")


def super_journal_of(path, victim):
    name = os.fsencode(victim)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    tail += struct.pack(">II", len(name), sum(name) & 0xFFFFFFFF) + store._JOURNAL_MAGIC
    return journal_of(path) + tail


@pytest.fixture
def gift(ledgers, tmp_path):
    return Path(shutil.copy(ledgers[0], tmp_path / "gift.ledger"))


@pytest.mark.parametrize("linked", [False, True])
def test_a_journal_that_names_a_file_deletes_nothing(gift, tmp_path, linked):
    """SQLite takes the named file for a journal of several databases, and clears it away."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    journal = beside(gift, "-journal")
    journal.write_bytes(super_journal_of(gift, victim))
    path = gift
    if linked:  # SQLite looks beside the file itself
        (tmp_path / "elsewhere").mkdir()
        path = tmp_path / "elsewhere" / "link.ledger"
        path.symlink_to(gift)
    books, before = LedgerStore(path), journal.read_bytes()
    uses = (lambda: books.books, lambda: books.reserve(Budget(0.1), "", columns=COLUMNS))
    for use in uses:
        assert "never take a ledger file together with a journal" in refusal(use)
    assert victim.read_text() == "precious"
    assert journal.read_bytes() == before


def test_a_journal_that_would_fill_the_disk_is_refused(gift):
    before = gift.stat().st_size
    beside(gift, "-journal").write_bytes(journal_of(gift, 2**32 - 1))
    assert "not a journal that Privet made" in refusal(lambda: LedgerStore(gift).left)
    assert gift.stat().st_size == before


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_journal_that_is_no_file_stops_nothing(gift, make):
    journal = beside(gift, "-journal")
    make(journal)
    kind = stat.S_IFMT(journal.lstat().st_mode)
    assert "not a journal that Privet made" in refusal(lambda: LedgerStore(gift).left)
    assert stat.S_IFMT(journal.lstat().st_mode) == kind


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_files_that_privet_never_makes_are_refused(gift, end):
    os.mkfifo(beside(gift, end))
    assert "which Privet never makes" in refusal(lambda: LedgerStore(gift).left)


@pytest.mark.parametrize("content", [b"", b"x", store._JOURNAL_MAGIC, b"x" * 600])
def test_what_a_broken_off_draw_may_leave_is_no_obstacle(gift, content):
    """Genuine journals are in test_store.py, where processes are killed."""
    beside(gift, "-journal").write_bytes(content)
    LedgerStore(gift).reserve(Budget(0.1), "a fit", columns=COLUMNS)
    assert not beside(gift, "-journal").exists()


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_new_books_do_not_begin_with_what_is_left_of_others(tmp_path, end):
    """A journal of books that were deleted would be played back into the new ones."""
    left = tmp_path / f"new.ledger{end}"
    left.write_bytes(b"")
    assert "is left of another one" in refusal(lambda: create(tmp_path / "new.ledger"))
    assert list(tmp_path.iterdir()) == [left]


def test_a_journal_that_vanishes_while_it_is_looked_at(gift, monkeypatch):
    journal, lstat = beside(gift, "-journal"), os.lstat
    journal.write_bytes(journal_of(gift))

    def late(path, *given, **options):
        found = lstat(path, *given, **options)
        if path == str(journal):
            journal.unlink()
        return found

    monkeypatch.setattr(os, "lstat", late)
    assert LedgerStore(gift).left > 0
    assert not journal.exists()


def test_names_that_no_file_can_have(tmp_path):
    for name in ("n" * 300, "a\0b"):
        books = LedgerStore(tmp_path / name)
        assert "there is no ledger file" in refusal(lambda books=books: books.left)
    assert "cannot create" in refusal(lambda: create(tmp_path / "a\0b"))


# The true cause ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_BUSY, "locked for too long; try again"),
        (sqlite3.SQLITE_LOCKED, "locked for too long; try again"),
        (sqlite3.SQLITE_FULL, "the disk is full; make room"),
        (sqlite3.SQLITE_READONLY, "make the file and its folder writable"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "make the file and its folder writable"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_IOERR_WRITE, "failed to read or write"),
        (sqlite3.SQLITE_CORRUPT, "damaged, or no ledger file at all"),
        (sqlite3.SQLITE_NOTADB, "an older copy forgets what was spent"),
        (None, "damaged"),
    ],
)
def test_every_error_names_its_cause(gift, monkeypatch, code, words):
    error = sqlite3.OperationalError("words of another library")
    if code is not None:
        error.sqlite_errorcode = code

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sqlite3, "connect", fail)
    message = refusal(lambda: LedgerStore(gift).left)
    assert words in message
    assert str(gift) in message
    assert "another library" not in message
    assert ("damaged" in message) == (code in (None, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))


def test_a_limit_on_the_size_of_files_is_no_damage(gift):
    def task():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        message = refusal(
            lambda: LedgerStore(gift).reserve(Budget(0.1), "p" * 1000, columns=COLUMNS)
        )
        if "limit on the size of files" not in message:
            os._exit(6)

    assert in_a_child(task) == 0
    assert len(LedgerStore(gift).withdrawals) == 4


def test_a_draw_needs_a_folder_that_can_be_written(gift):
    """A look does not; and a missing right is not called damage."""
    gift.parent.chmod(0o500)
    try:
        assert len(LedgerStore(gift).withdrawals) == 4
        if os.geteuid() != 0:
            message = refusal(lambda: LedgerStore(gift).reserve(Budget(0.1), "", columns=COLUMNS))
            assert "folder" in message
            assert "damaged" not in message
    finally:
        gift.parent.chmod(0o700)


def test_names_of_any_length_are_shown_short_and_visible(tmp_path):
    books = create(tmp_path / "t.ledger", table="\x1b[2J" + "t" * 900)
    for given in ({"table": "u" * 5_000}, {"columns": ["\u202e" + "c" * 5_000]}):
        message = refusal(
            lambda given=given: books.reserve(Budget(0.1), "", **{"columns": COLUMNS, **given})
        )
        assert message.isprintable()
        assert "more characters" in message
        assert len(message) < 500 + len(str(books.path))


def test_a_listing_is_from_one_moment(gift, monkeypatch):
    books, opened, connect = LedgerStore(gift), [], sqlite3.connect

    def counting(*given, **options):
        opened.append(given)
        return connect(*given, **options)

    apart = (books.budget, books.table, books.columns, books.withdrawals, books.spent, books.left)
    monkeypatch.setattr(sqlite3, "connect", counting)
    found = books.books
    together = (
        found.budget,
        found.table,
        found.columns,
        found.withdrawals,
        found.spent,
        found.left,
    )
    assert together == apart
    assert len(opened) == 1


def test_a_purpose_that_cannot_be_written_is_made_writable(tmp_path):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    books.reserve(Budget(1), "half a character \ud800" + "x" * 10**6, columns=COLUMNS)
    assert books.withdrawals[0].purpose.startswith("half a character ?")
    assert len(books.withdrawals[0].purpose) == 1000


def test_too_many_questions_to_list_are_settled_all_the_same(tmp_path, monkeypatch, ledgers):
    books = LedgerStore.create(tmp_path / "t.ledger", Budget(3), columns=COLUMNS)
    reservation = books.reserve(Budget(1), "a fit", columns=COLUMNS)
    entries = LedgerStore(ledgers[0]).withdrawals[1].entries
    monkeypatch.setattr(store, "_MAX_VALUE", 2_000)
    reservation.settle(Cost.pure(Fraction(1, 2)), entries * 9)
    assert books.spent == Fraction(1, 2)
    (entry,) = books.withdrawals[0].entries
    assert entry.question.kind is QuestionKind.OTHER
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
