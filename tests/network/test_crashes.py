"""Crashes of a site at every write, sync, commit and send; backups and full disks.

After each of them the run goes on, every question has one answer, and the books are those of a run
that nobody disturbed (docs/proofs/journal.md).
"""

import errno
import os
import shutil
from fractions import Fraction

import pytest

from privet.federation import Refused
from privet.federation.party import SERIES
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network import site as site_module
from privet.network.journal import Disk, Journal, JournalError
from privet.privacy import LedgerStore, StudyReservation
from privet.tables import Split

from .houses import STUDY, House

#: A run: cells, answers, cells of cells, answers. Numbers of cells follow from the questions.
SPLIT = Split(1, (0, 1, 1, 0))
RUN = [
    (0, "root", (None,), {}),
    (1, "noisy_counts", (Fraction(1, 8),), {}),
    (1, "split", ([SPLIT],), {}),
    (0, "describe", (), {}),
    (2, "noisy_class_counts", (Fraction(1, 4),), {}),
    (2, "noisy_class_counts", ([Fraction(1, 8), Fraction(1, 4)],), {}),
    (0, "series", (), {}),
    (
        0,
        "noisy_class_counts",
        ([Fraction(1, 8), Fraction(1, 16)],),
        {
            "of": [SERIES + 1, SERIES + 2],
            "before": ((SERIES + 1, 0, "root", None), (SERIES + 2, SERIES + 1, "split", [SPLIT])),
        },
    ),
]
BOOKS = ((4, Fraction(13, 16)), (4, Fraction(13, 16)))
MESSAGES = [encode(Request(number, *asked)) for number, asked in enumerate(RUN, start=1)]


class Crash(BaseException):
    """The process ends here."""


class Fuse:
    """Counts what happens, and lets the process end at one of the events."""

    def __init__(self, at=None):
        self.at, self.events = at, []

    def tick(self, name):
        self.events.append(name)
        if len(self.events) - 1 == self.at:
            self.at = None
            raise Crash

    def around(self, name, work):
        def fused(*given, **options):
            self.tick(f"before {name}")
            found = work(*given, **options)
            self.tick(f"after {name}")
            return found

        return fused


def disk_with(fuse):
    class Fused(Disk):
        #: How much of the file is on the disk for sure.
        synced = 0

        def append(self, data):
            fuse.tick("before append")
            super().append(data[: len(data) // 2])
            fuse.tick("half append")
            super().append(data[len(data) // 2 :])
            fuse.tick("after append")

        def sync(self):
            fuse.tick("before sync")
            super().sync()
            Fused.synced = os.fstat(self.handle).st_size
            fuse.tick("after sync")

    return Fused


@pytest.fixture(scope="module")
def prototype(tmp_path_factory):
    return House(tmp_path_factory.mktemp("prototype"))


@pytest.fixture
def place(prototype, tmp_path):
    """Return a function that makes fresh copies of a house."""
    made = []

    def copy():
        house = object.__new__(House)
        house.__dict__ |= prototype.__dict__
        house.folder = tmp_path / f"{len(made)}"
        shutil.copytree(prototype.folder, house.folder)
        made.append(house)
        return house

    return copy


def run(house, fuse, monkeypatch, lose=None):
    """Do a run; when the site crashes, start another one. Return all that was ever sent."""
    sent = {number: set() for number in range(1, len(MESSAGES) + 1)}
    disk = disk_with(fuse)
    with monkeypatch.context() as patch:
        patch.setattr(
            LedgerStore, "reserve_study", fuse.around("reserve", LedgerStore.reserve_study)
        )
        patch.setattr(StudyReservation, "count", fuse.around("count", StudyReservation.count))
        site, received = None, 0
        while received < len(MESSAGES):
            try:
                if site is None:
                    site = house.open(disk=disk)
                    last = site.greet(STUDY)["last"]
                    received = min(received, last)
                reply = site.reply(STUDY, MESSAGES[received])
                assert decode_as(Reply, reply).kind == "answer", decode_as(Reply, reply).value
                sent[received + 1].add(reply)
                fuse.tick("send")
                received += 1
            except Crash:
                if site is not None:
                    site.close()
                site = None
                if lose is not None and house.journal.exists():
                    lose(house.journal, disk.synced)
    site.close()
    return sent


def undisturbed(place, monkeypatch):
    house, fuse = place(), Fuse()
    run(house, fuse, monkeypatch)
    return house.books(), fuse.events


def check(house, sent, books):
    assert all(len(replies) == 1 for replies in sent.values()), "a second noise was sent"
    assert house.books() == books
    site = house.open()
    for number, message in enumerate(MESSAGES, start=1):
        assert site.reply(STUDY, message) in sent[number]
    site.close()
    assert house.books() == books
    assert books == BOOKS


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.network)])
def test_killed_at_every_event(every, place, monkeypatch):
    books, events = undisturbed(place, monkeypatch)
    assert {"before reserve", "after count", "half append", "after sync", "send"} <= set(events)
    for at in range(0, len(events), every):
        house = place()
        check(house, run(house, Fuse(at), monkeypatch), books)


def keep(part):
    """Return what a power cut leaves: what was synced, and a part of the rest."""

    def lose(path, synced):
        size = path.stat().st_size
        with path.open("rb+") as file:
            file.truncate(synced + int((size - synced) * part))

    return lose


def garble(path, synced):
    data = bytearray(path.read_bytes())
    for place in range(synced, len(data), 3):
        data[place] ^= 0x55
    path.write_bytes(bytes(data))


@pytest.mark.network
@pytest.mark.parametrize("lose", [keep(0), keep(0.5), keep(1), garble])
def test_power_cut_at_every_event(lose, place, monkeypatch):
    books, events = undisturbed(place, monkeypatch)
    for at in range(len(events)):
        house = place()
        check(house, run(house, Fuse(at), monkeypatch, lose), books)


def test_power_cut_at_some_events(place, monkeypatch):
    books, events = undisturbed(place, monkeypatch)
    for at in (len(events) // 2, len(events) - 2):
        house = place()
        check(house, run(house, Fuse(at), monkeypatch, keep(0)), books)


def test_a_count_that_a_power_cut_undid_is_made_good(place, monkeypatch):
    house = place()
    before = {}
    count = StudyReservation.count

    def undone(self, answers, spent):
        shutil.copy(house.store.path, house.folder / "before")
        count(self, answers, spent)
        before[answers] = (house.folder / "before").read_bytes()

    monkeypatch.setattr(StudyReservation, "count", undone)
    sent = run(house, Fuse(), monkeypatch)
    monkeypatch.undo()
    house.store.path.write_bytes(before[4])
    assert house.store.study(STUDY).answers == 3
    site = house.open()
    site.greet(STUDY)
    site.close()
    check(house, sent, BOOKS)


class TestMutants:
    """What the proof rests on is needed: without it, a crash or a backup is not survived."""

    def test_without_sync(self, place, monkeypatch):
        monkeypatch.setattr(Journal, "sync", lambda _: None)
        books, events = undisturbed(place, monkeypatch)
        failures = 0
        for at in range(len(events) - 4, len(events)):
            house = place()
            try:
                check(house, run(house, Fuse(at), monkeypatch, keep(0)), books)
            except (AssertionError, Refused, JournalError):
                failures += 1
        assert failures

    def test_without_the_count(self, place, monkeypatch):
        """A journal from a backup is not noticed, and noise is drawn again."""
        house = place()
        monkeypatch.setattr(StudyReservation, "count", lambda *_: None)
        monkeypatch.setattr(StudyReservation, "close", lambda _: None)
        monkeypatch.setattr(site_module, "agree", lambda *_: object.__new__(StudyReservation))
        site = house.open()
        replies = [site.reply(STUDY, message) for message in MESSAGES[:2]]
        site.close()
        data = house.journal.read_bytes()
        site = house.open()
        replies += [site.reply(STUDY, message) for message in MESSAGES[2:]]
        site.close()
        house.journal.write_bytes(data)
        site = house.open()
        again = [site.reply(STUDY, message) for message in MESSAGES]
        assert again[:4] == replies[:4]
        assert again != replies


class TestBackups:
    def after(self, house, count):
        site = house.open()
        for message in MESSAGES[:count]:
            assert decode_as(Reply, site.reply(STUDY, message)).kind == "answer"
        site.close()

    def refused(self, house, words):
        told = []
        site = house.open(tell=told.append)
        before = house.journal.read_bytes() if house.journal.exists() else b""
        with pytest.raises(Refused, match="its books cannot be used"):
            site.greet(STUDY)
        for message in MESSAGES:
            assert decode_as(Reply, site.reply(STUDY, message)).kind == "refused"
        assert all(words in line for line in told)
        site.close()
        after = house.journal.read_bytes() if house.journal.exists() else b""
        assert before == after

    @pytest.mark.parametrize("count", [1, 2, 4, 5])
    def test_an_older_journal(self, count, place):
        house = place()
        self.after(house, count)
        data = house.journal.read_bytes()
        self.after(house, 6)
        house.journal.write_bytes(data)
        self.refused(house, "the journal was restored from a backup")

    @pytest.mark.parametrize("count", [2, 4])
    def test_an_older_ledger(self, count, place):
        house = place()
        self.after(house, count)
        data = house.store.path.read_bytes()
        self.after(house, 6)
        house.store.path.write_bytes(data)
        self.refused(house, "the ledger file was restored from a backup")

    def test_a_ledger_of_before_the_study(self, place):
        house = place()
        data = house.store.path.read_bytes()
        self.after(house, 6)
        house.store.path.write_bytes(data)
        self.refused(house, "has no study")

    def test_no_journal(self, place):
        house = place()
        self.after(house, 6)
        house.journal.unlink()
        self.refused(house, "with another journal")

    def test_a_journal_with_a_hole(self, place):
        house = place()
        self.after(house, 6)
        data = bytearray(house.journal.read_bytes())
        data[len(data) // 3] ^= 1
        house.journal.write_bytes(bytes(data))
        self.refused(house, "restored from a backup, or damaged")

    @pytest.mark.parametrize("place_of_damage", [0, 40])
    def test_a_journal_without_a_beginning(self, place_of_damage, place):
        house = place()
        self.after(house, 6)
        data = bytearray(house.journal.read_bytes())
        data[place_of_damage] ^= 1
        house.journal.write_bytes(bytes(data))
        self.refused(house, "journal")

    def test_two_processes(self, place):
        house = place()
        first = house.open()
        first.reply(STUDY, MESSAGES[0])
        with pytest.raises(Refused, match="its books cannot be used"):
            house.open().greet(STUDY)
        first.close()


def full_disk(at, what):
    class Full(Disk):
        left = at

        def fail(self, data=b""):
            Full.left -= 1
            if Full.left == 0:
                if data:  # what fits is written
                    Disk.append(self, data[: len(data) // 2])
                raise OSError(errno.ENOSPC if what == "append" else errno.EIO, "no")

        def append(self, data):
            if what == "append":
                self.fail(data)
            super().append(data)

        def sync(self):
            if what == "sync":
                self.fail()
            super().sync()

    return Full


@pytest.mark.parametrize("what", ["append", "sync"])
def test_a_full_disk_or_a_failing_sync(what, place, monkeypatch):
    books, _ = undisturbed(place, monkeypatch)
    for at in (1, 2, 3, 5, 8, 9, 14):
        house = place()
        site = house.open(disk=full_disk(at, what))
        refused = False
        sent = {number: set() for number in range(1, len(MESSAGES) + 1)}
        for number, message in enumerate(MESSAGES, start=1):
            reply = decode_as(Reply, site.reply(STUDY, message))
            if reply.kind != "answer":
                refused = True
                assert "its books" in reply.value
            else:
                assert not refused
                sent[number].add(site.reply(STUDY, message))
        site.close()
        if house.journal.exists():
            (answers, _), (counted, _) = house.books()
            assert counted in (answers, answers - 1)
            assert sum(len(sent[number]) for number in (2, 5, 6, 8)) <= counted
        site = house.open()
        for number, message in enumerate(MESSAGES, start=1):
            sent[number].add(site.reply(STUDY, message))
        site.close()
        check(house, sent, books)


def test_a_full_disk_at_the_ledger(place, monkeypatch):
    from privet.errors import LedgerFileError

    books, _ = undisturbed(place, monkeypatch)
    house = place()
    site = house.open()
    for message in MESSAGES[:4]:
        site.reply(STUDY, message)

    def full(*_):
        raise LedgerFileError("cannot use the ledger file: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(StudyReservation, "count", full)
        for message in (MESSAGES[4], MESSAGES[4], MESSAGES[5]):
            assert decode_as(Reply, site.reply(STUDY, message)).kind == "refused"
    site.close()
    assert house.books()[0][0] == 2
    assert house.books()[1][0] == 1
    site = house.open()
    sent = {number: {site.reply(STUDY, m)} for number, m in enumerate(MESSAGES, start=1)}
    site.close()
    check(house, sent, books)
