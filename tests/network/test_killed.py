"""Real sites over real streams, killed with SIGKILL in the middle of a fit."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from privet import TopDownClassifier
from privet.errors import FederationError
from privet.network.links import NetworkLink
from privet.network.site import withdraw

from .houses import SCHEMA, STUDY, Town

pytestmark = pytest.mark.network

SCRIPT = Path(__file__).with_name("served.py")


def learner(epsilon=1.0):
    return TopDownClassifier(epsilon=epsilon, schema=SCHEMA, max_depth=2)


class Watched:
    """A site that is started again whenever its process ends."""

    def __init__(self, house, *fuse):
        self.house, self.fuse, self.starts, self.codes = house, fuse, 0, []
        self.over = threading.Event()
        self.process = None
        self.thread = threading.Thread(target=self.keep)
        self.thread.start()

    def keep(self):
        while not self.over.is_set():
            fuse = self.fuse if not self.starts else ()
            command = [sys.executable, SCRIPT, self.house.folder / "party.toml", *map(str, fuse)]
            with (self.house.folder / "said").open("a") as said:
                self.process = subprocess.Popen(command, stdout=said, stderr=said)
            self.starts += 1
            self.codes.append(self.process.wait())

    def end(self):
        self.over.set()
        self.process.terminate()
        self.thread.join()


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
        model = town.study.fit(learner())
    assert sites[0].codes[0] == -9
    assert model.predict([[0.1, "u"], [0.9, "v"]]).tolist() == [0, 1]
    assert [each[1] for each in check_books(town)] == [each[1] for each in undisturbed]


def test_killed_in_a_secret_choice(tmp_path):
    """The run stops and says why; another one, under new keys, is paid from the reserve."""
    town = Town(tmp_path, protocol="secure-sum", epsilon=2.0)
    with served(town, "in a secret choice", 30) as sites:
        with pytest.raises(FederationError, match=r"north.*(choice|keys)"):
            town.study.fit(learner())
        stopped = check_books(town)
        assert 0 < stopped[0][1] < 2
        model = town.study.fit(learner())
    assert sites[0].codes[0] == -9
    assert model.predict([[0.1, "u"], [0.9, "v"]]).tolist() == [0, 1]
    after = check_books(town)
    assert all(b[1] > a[1] for a, b in zip(stopped, after, strict=True))


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
