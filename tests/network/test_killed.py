"""Real sites over real streams, killed with SIGKILL in the middle of a fit."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from privet import TopDownClassifier
from privet.errors import FederationError
from privet.federation.wire import Request, decode_as, encode
from privet.network.journal import Journal
from privet.network.links import NetworkLink
from privet.network.site import cost_of, withdraw

from .houses import SCHEMA, STUDY, Town

pytestmark = pytest.mark.network

SCRIPT = Path(__file__).with_name("served.py")


def learner(epsilon=1.0):
    return TopDownClassifier(epsilon=epsilon, schema=SCHEMA, max_depth=2)


class Watched:
    """A site that is started again whenever its process ends."""

    def __init__(self, house, *fuse):
        self.house, self.fuse, self.starts, self.codes = house, fuse, 0, []
        self.over, self.lock = False, threading.Lock()
        self.start()
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def start(self):
        fuse = self.fuse if not self.starts else ()
        command = [sys.executable, SCRIPT, self.house.folder / "party.toml", *map(str, fuse)]
        with (self.house.folder / "said").open("a") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said)
        self.starts += 1

    def keep(self):
        while True:
            self.codes.append(self.process.wait())
            with self.lock:
                if self.over:
                    return
                self.start()

    def end(self):
        with self.lock:
            self.over = True
            self.process.terminate()
        self.thread.join(60)
        self.process.kill()


@contextmanager
def served(town, *fuse):
    """Serve all houses; the first one's process ends at a point."""
    first, *others = town.houses
    sites = [Watched(first, *fuse), *(Watched(each) for each in others)]
    try:
        yield sites
    finally:
        for each in sites:
            each.end()


def check_books(town):
    for house in town.houses:
        journal, ledger = house.books()
        assert journal == ledger
    return [house.books()[0] for house in town.houses]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The books of a fit that nobody disturbed."""
    town = Town(tmp_path_factory.mktemp("undisturbed"))
    with served(town):
        town.study.fit(learner())
    return check_books(town)


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize(
    "point",
    [
        "before the charge",
        "after the charge",
        "before the sync",
        "after the journal",
        "after the count",
    ],
)
def test_a_killed_site_comes_back_and_pays_nothing_twice(point, after, undisturbed, tmp_path):
    town = Town(tmp_path)
    with served(town, point, after) as sites:
        town.study.fit(learner())
    assert sites[0].codes[0] == -9
    assert [each[1] for each in check_books(town)] == [each[1] for each in undisturbed]


@pytest.mark.parametrize("after", [1, 30])
def test_killed_in_a_secret_choice(after, tmp_path):
    """The choice is paid again under new keys, from the reserve, and the run goes on."""
    town = Town(tmp_path, protocol="secure-sum", epsilon=2.0)
    with served(town, "in a secret choice", after) as sites:
        model = town.study.fit(learner())
    assert sites[0].codes[0] == -9
    books = check_books(town)
    besides = {choice_cost(house) for house in town.houses}
    assert len(besides) == 1  # all parties had joined the choice
    assert [spent for _, spent in books] == [1 + besides.pop()] * 2  # an undisturbed fit spends 1
    assert model.privacy_.epsilon == float(books[0][1])
    assert any("paid again" in note for note in model.privacy_.notes)


def choice_cost(house):
    """Return what the choice cost that was paid twice, by a party's journal."""
    journal = Journal.look(house.journal)
    asked = {
        record.facts["number"]: decode_as(Request, journal.request_of(record))
        for record in journal.of_kind("question")
    }
    answers = [
        (asked[record.facts["number"]], cost_of(record).epsilon)
        for record in journal.of_kind("answer")
    ]
    journal.close()
    amounts = []
    total = 0
    for (first, _), (again, spent) in pairwise([(None, 0), *answers]):
        # All but the nonce is the same, of the same cells.
        if first is not None and first.target == again.target and first.name == again.name:
            assert encode(first.given[:-1]) == encode(again.given[:-1])
            amounts.append(spent - total)
        total = spent
    (amount,) = amounts
    return amount


def test_killed_in_a_secret_choice_without_a_reserve(tmp_path):
    """The run stops and says why; another one, under new keys, has what is left."""
    town = Town(tmp_path, protocol="secure-sum", epsilon=1.0)
    with served(town, "in a secret choice", 30) as sites:
        with pytest.raises(FederationError, match=r"process of north ended.*the run stops"):
            town.study.fit(learner())
        stopped = check_books(town)
        assert 0 < stopped[0][1] == stopped[1][1] < 1
        model = town.study.fit(learner(0.5))
    assert sites[0].codes[0] == -9
    assert model.predict([[0.1, "u"]]).tolist() in ([0], [1])
    assert all(spent <= 1 for _, spent in check_books(town))


def test_withdrawn_in_the_middle_of_a_run(tmp_path, monkeypatch):
    town = Town(tmp_path)
    receive, received = NetworkLink.receive, []

    def withdrawing(self, number):
        received.append(receive(self, number))
        if len(received) == 8:
            withdraw(town.houses[0].policy, STUDY)
        return received[-1]

    monkeypatch.setattr(NetworkLink, "receive", withdrawing)
    with served(town), pytest.raises(FederationError, match="withdrawn"):
        town.study.fit(learner())
    assert check_books(town)[0][1] < 1
