"""A party comes back without its keys: what was under way is paid again, or the run stops.

docs/proofs/journal.md, "What is never on the disk". Real processes do the same in test_killed.py.
"""

import time
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

from privet import Budget
from privet.errors import FederationError
from privet.federation import FederatedTable, Refused
from privet.federation import dealer as dealer_module
from privet.federation.mpc import Deal
from privet.federation.wire import Request, decode_as
from privet.network.links import NetworkLink
from privet.network.runs import Run
from privet.network.site import approve, withdraw
from privet.privacy.coins import drawing_from
from privet.tables import Split

from .houses import STUDY, Notary, SiteLink, houses

COUNT, LABEL = Fraction(1, 8), Fraction(1, 4)
SPLIT = Split(1, (0, 1, 1, 0))
NAMES = ("north", "south")


class Died(BaseException):
    """Stands for the end of a coordinator."""


class Line:
    """A line to a site in this process, which is started again at one of its questions."""

    def __init__(self, house, at=None, when="before", times=1):
        self.name, self.house, self.site = house.name, house, house.open()
        self.at, self.when, self.times = at, when, times
        self.replies = []

    def ask(self, number, message):
        del number
        restart = decode_as(Request, message).name == self.at and self.times > 0
        self.times -= restart
        if restart and self.when == "after":  # and what it answered is lost on the way
            self.site.reply(STUDY, message)
        if restart:
            self.site.close()
            self.site = self.house.open()
        self.replies.append(self.site.reply(STUDY, message))

    def take(self, seconds):
        del seconds
        return time.monotonic(), self.replies.pop()

    def done(self, number):
        pass


class Withdrawn(Line):
    """A line to a site whose owner withdraws the approval before one of its questions."""

    def ask(self, number, message):
        if decode_as(Request, message).name == self.at and self.times > 0:
            withdraw(self.house.policy, STUDY)
            self.times = 0
        self.replies.append(self.site.reply(STUDY, message))


def ask(lines, directory, *, stop=None):
    """Ask what a learner would, from the beginning or where a run stopped; return the table.

    A third line is that of a dealer.
    """
    plan = {
        "parties": dict.fromkeys(NAMES, ""),
        "first": {each.name: 1 for each in lines},
        "dealer": {each.name: "" for each in lines[2:]},
    }
    run = Run.resume(directory, plan) if directory.exists() else Run.create(directory, plan)
    keep, left = run.keep, [stop]

    def keeping(*given, **options):
        keep(*given, **options)
        left[0] = None if left[0] is None else left[0] - 1
        if left[0] == 0:
            raise Died

    run.keep = keeping
    try:
        with drawing_from(run.draw):
            links = [NetworkLink(line, 1, run, 10.0) for line in lines]
            dealer = next(iter(links[2:]), None)
            table = FederatedTable(links[:2], protocol="secure-sum", dealer=dealer)
            table = table.session(Budget(1.0))
            root = table.root()
            root.noisy_class_counts(COUNT)
            children = root.split([SPLIT])
            assert len(children.choose_labels(LABEL)) == 2
            children.noisy_counts(COUNT)
        return table
    finally:
        run.close()


def spent(some):
    found = [each.books() for each in some]
    assert all(journal == ledger for journal, ledger in found)
    return [journal[1] for journal, _ in found]


#: Where north's process ends; what north, the other one, and the coordinator's books pay besides.
ENDS = [
    ("public_key", "after", 0, 0, 0),
    ("join", "before", 0, 0, 0),
    ("seal", "before", 0, 0, 0),
    ("unseal", "after", 0, 0, 0),
    ("share_class_counts", "before", 0, COUNT, COUNT),
    ("share_class_counts", "after", 0, LABEL, LABEL),  # the sum is sent again; then keys are gone
    ("share_labels", "before", 0, LABEL, LABEL),
    ("share_labels", "after", LABEL, LABEL, LABEL),
    ("step", "before", LABEL, LABEL, LABEL),
    ("step", "after", LABEL, LABEL, LABEL),
    ("share_counts", "before", 0, COUNT, COUNT),
    ("share_counts", "after", 0, 0, 0),
]


@pytest.mark.parametrize(("at", "when", "north", "south", "coordinator"), ENDS)
def test_what_was_under_way_is_paid_again(at, when, north, south, coordinator, tmp_path):
    some = houses(tmp_path, NAMES, epsilon=1.5)
    table = ask([Line(some[0], at, when), Line(some[1])], tmp_path / "run")
    whole = 2 * COUNT + LABEL
    assert spent(some) == [whole + north, whole + south]
    assert table.ledger.total.epsilon == whole + coordinator
    assert table.ledger.left == 1 - whole  # for the learner nothing has changed
    assert any("paid again" in note for note in table.notes) == bool(coordinator)


@pytest.mark.parametrize(("portion", "south"), [("training", 4), ("test", 2)])
def test_what_a_portion_lost_is_paid_again(portion, south, tmp_path):
    """A test score, or what it is of, survives the end of a process as anything else does."""
    some = houses(tmp_path, NAMES, epsilon=1.25)
    lines = [Line(each) for each in some]
    run = Run.create(
        tmp_path / "run",
        {"parties": dict.fromkeys(NAMES, ""), "first": dict.fromkeys(NAMES, 1), "dealer": {}},
    )
    with closing(run), drawing_from(run.draw):
        links = [NetworkLink(line, 1, run, 10.0) for line in lines]
        table = FederatedTable(links, protocol="secure-sum").session(Budget(1.0))
        half = Fraction(1, 2)
        parts = table.portions({"training": half, "test": half}, key=7)
        for _ in range(2):
            parts["training"].root().choose_labels(LABEL)
        lines[0].at, lines[0].times = "share_class_counts", 1
        parts[portion].root().noisy_class_counts(LABEL)
        total, left = table.ledger.total.epsilon, parts[portion].ledger.left
    # A record of the test portion has paid less than one of the other, even if it pays twice.
    assert spent(some) == [(3 if portion == "training" else 2) * LABEL, south * LABEL]
    assert (total, left) == (south * LABEL, LABEL if portion == "training" else 3 * LABEL)


def test_without_a_reserve_the_run_stops_before_anybody_pays_again(tmp_path):
    some = houses(tmp_path, NAMES, epsilon=1.0)
    lines = [Line(some[0], "step"), Line(some[1])]
    with pytest.raises(FederationError, match=r"process of north ended.*'north' has 0\.625 left"):
        ask(lines, tmp_path / "run")
    assert spent(some) == [COUNT + LABEL] * 2


def test_a_party_that_ends_again_and_again_stops_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("privet.federation.protocols.secure_sums._MOST_ANEW", 3)
    some = houses(tmp_path, NAMES, epsilon=3.0)
    with pytest.raises(Refused, match="connect the parties anew"):
        ask([Line(some[0], "share_labels", times=10), Line(some[1])], tmp_path / "run")
    assert spent(some) == [COUNT, COUNT + 4 * LABEL]


@pytest.mark.parametrize("at", ["share_class_counts", "share_labels", "step"])
def test_a_run_goes_on_after_its_owner_has_changed_his_mind_twice(at, tmp_path):
    some = houses(tmp_path, NAMES, epsilon=1.0)
    lines = [Withdrawn(some[0], at), Line(some[1])]
    with pytest.raises(Refused, match="withdrawn"):
        ask(lines, tmp_path / "run")
    with pytest.raises(Refused, match="withdrawn"):
        ask(lines, tmp_path / "run")
    approve(some[0].policy, STUDY)
    table = ask(lines, tmp_path / "run")
    assert spent(some) == [2 * COUNT + LABEL] * 2
    assert table.ledger.total.epsilon == 2 * COUNT + LABEL


def test_a_refusal_of_the_owner_is_no_loss_of_keys(tmp_path):
    some = houses(tmp_path, NAMES, epsilon=2.0)
    some[0].write(questions=["share_class_counts", "share_labels"])
    lines = [Line(each) for each in some]
    with pytest.raises(FederationError, match="does not allow the question 'share_counts'"):
        ask(lines, tmp_path / "run")


@pytest.mark.parametrize("stop", [12, 17, 22, 34])
def test_a_coordinator_that_dies_after_it_pays_nothing_twice(stop, tmp_path):
    """Killed before, in and after the time when parties are connected anew, and resumed."""
    some = houses(tmp_path, NAMES, epsilon=2.0)
    lines = [Line(some[0], "step", "after"), Line(some[1])]
    with pytest.raises(Died):
        ask(lines, tmp_path / "run", stop=stop)
    ask(lines, tmp_path / "run")
    assert spent(some) == [2 * (COUNT + LABEL)] * 2


@pytest.mark.parametrize(
    ("at", "when", "besides"),
    [
        ("public_key", "after", 0),  # another key than the parties have joined with
        ("join", "before", 0),
        ("deal", "before", LABEL),
        ("reveal", "before", LABEL),
        ("reveal", "after", LABEL),
    ],
)
def test_a_dealer_that_comes_back_has_dealt_nothing(at, when, besides, tmp_path):
    some = houses(tmp_path, NAMES, epsilon=2.0)
    dealer = Line(Notary(tmp_path, some), at, when)  # whom the houses know from here on
    table = ask([Line(some[0]), Line(some[1]), dealer], tmp_path / "run")
    assert spent(some) == [2 * COUNT + LABEL + besides] * 2
    assert any("process of notary" in note for note in table.notes) == bool(besides)


def test_a_coordinator_that_dies_goes_on_with_its_dealer(tmp_path):
    some = houses(tmp_path, NAMES, epsilon=2.0)
    notary = Notary(tmp_path, some)
    lines = [Line(some[0]), Line(some[1]), Line(notary)]
    for stop in (7, 14, 5):  # each counts from the resumed start
        with pytest.raises(Died):
            ask(lines, tmp_path / "run", stop=stop)
    ask(lines, tmp_path / "run")
    assert spent(some) == [2 * COUNT + LABEL] * 2


class TestSuspectDealers:
    def begin(self, tmp_path):
        some = houses(tmp_path, NAMES, epsilon=2.0)
        links = [SiteLink(each.open()) for each in some]
        FederatedTable(links, protocol="secure-sum")
        return some, links

    def test_choices_that_were_given_up_are_remembered(self, tmp_path):
        some, links = self.begin(tmp_path)
        cells = links[0].ask(0, "root", None)
        for given_up in range(3):
            choice = links[0].ask(cells, "share_labels", 0.1, 2, NAMES, bytes([given_up] * 16))
            wanted = 3 * 4**given_up
            assert links[0].ask(choice, "step", []) == -wanted
            links[0].ask(choice, "step", [bytes(64)] * wanted)  # which deal is kept: not proved yet
            for link in links:  # by kill -9, or by the asker
                link.site.close()
            links = [SiteLink(each.open()) for each in some]
            assert links[0].site._of(STUDY)._wake().misdealt == (given_up + 1, False)
            FederatedTable(links, protocol="secure-sum")
        assert spent(some)[0] == Fraction(3, 10)

    def test_a_dealer_that_cheated_is_remembered(self, tmp_path, monkeypatch):
        some, links = self.begin(tmp_path)
        with monkeypatch.context() as cheating:
            cheating.setattr(dealer_module, "Deal", Shifted)
            with pytest.raises(FederationError, match="the dealer cheats"):
                labels(links)
        for link in links:
            link.site.close()
        links = [SiteLink(each.open()) for each in some]
        with pytest.raises(Refused, match="did not belong together"):
            labels(links)
        assert spent(some) == [LABEL] * 2


class Shifted(Deal):
    """The bits are those of another number: a comparison with a threshold of the dealer's."""

    @staticmethod
    def _bits_of(number):
        return Deal._bits_of(number + np.uint64(1_000))


def labels(links):
    table = FederatedTable(links, protocol="secure-sum").session(Budget(1.0))
    return table.root().choose_labels(LABEL)
