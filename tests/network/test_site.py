"""A site: what it answers, refuses, journals and never writes."""

import os
import time
from fractions import Fraction

import numpy as np
import pytest

from privet import TopDownClassifier
from privet.errors import FederationError
from privet.federation import FederatedTable, Lost, Refused
from privet.federation.party import SERIES
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network import site as site_module
from privet.network.journal import Journal
from privet.network.site import approve, close_study, number_of, withdraw
from privet.tables import cells as behind

from .houses import SCHEMA, STUDY, House, SiteLink, houses


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def fit(links, protocol="noisy-counts", epsilon=1.0, **options):
    table = FederatedTable(links, protocol=protocol)
    return TopDownClassifier(epsilon=epsilon, schema=SCHEMA, max_depth=2, **options).fit(table)


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm"])
def test_a_fit_over_sites_has_the_same_books_everywhere(protocol, tmp_path):
    all_houses = houses(tmp_path)
    links = [SiteLink(each.open()) for each in all_houses]
    fit(links, protocol)
    check_books(all_houses)


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm"])
def test_a_study_goes_on_after_all_sites_were_started_again(protocol, tmp_path):
    all_houses = houses(tmp_path)
    for fits in (1, 2):
        links = [SiteLink(each.open()) for each in all_houses]
        fit(links, protocol, 0.5)
        for link in links:
            link.site.close()
        check_books(all_houses)
        assert all(each.store.study(STUDY).spent <= fits / 2 for each in all_houses)


def check_books(all_houses):
    for each in all_houses:
        (answers, spent), counted = each.books()
        assert (answers, spent) == counted
        assert answers > 0
        assert 0 < spent <= 1
    assert len({each.books() for each in all_houses}) == 1


def test_a_fit_by_secure_sums_has_the_same_books_everywhere(secret_fit):
    check_books(secret_fit[0])


def test_the_same_bytes_get_the_same_answer_and_others_are_refused(house):
    link = SiteLink(house.open())
    cells = link.ask(0, "root", None)
    number = link.send(cells, "noisy_class_counts", 0.25)
    first = link.site.reply(STUDY, link.sent[number])
    assert link.site.reply(STUDY, link.sent[number]) == first
    other = encode(Request(number, cells, "noisy_class_counts", (0.5,)))
    refused = decode_as(Reply, link.site.reply(STUDY, other))
    assert refused.kind == "refused"
    assert "otherwise" in refused.value
    assert house.books() == ((1, 0.25), (1, 0.25))


def test_a_site_that_comes_back_is_as_it_was(house):
    site = house.open()
    link = SiteLink(site)
    cells = link.ask(0, "root", None)
    for _ in range(2):
        link.ask(cells, "noisy_class_counts", 0.25)
    site.close()
    again = SiteLink(house.open())
    assert again.next == link.next
    for number, message in link.sent.items():
        assert again.site.reply(STUDY, message) == link.received[number]
    again.ask(cells, "noisy_counts", 0.25)  # cells of before
    assert house.books() == ((3, 0.75), (3, 0.75))
    with pytest.raises(Refused, match="above the budget"):
        again.ask(cells, "noisy_counts", 0.5)
    assert house.books() == ((3, 0.75), (3, 0.75))


class Only:
    """Lets some methods through; whoever calls another one is found out."""

    def __init__(self, held, *names):
        self.__dict__["_found"] = held, names

    def __getattr__(self, name):
        held, names = self._found
        assert name in names, f"{name} was called"
        return getattr(held, name)


@pytest.fixture(scope="module")
def secret_fit(tmp_path_factory):
    """Three houses after a fit by secure sums, and what was sent."""
    all_houses = houses(tmp_path_factory.mktemp("secret"), epsilon=2.0)
    links = [SiteLink(each.open()) for each in all_houses]
    fit(links, "secure-sum", test_share=0.5)
    for each in links:
        each.site.close()
    return all_houses, links


def test_books_are_charged_again_without_noise_or_counts(secret_fit, monkeypatch):
    replay = site_module._Served._replay

    def blind(self, journal, party):
        inside = behind.behind_table[party.table]
        free = ("root", "parts", "take", "split", "start_scores", "add_scores", "close", "schema")
        engine = Only(inside.engine, *free)
        engine.__dict__["portion"] = lambda *given: Only(inside.engine.portion(*given), *free)
        behind.behind_table[party.table] = behind.Inside(engine, Only(None))
        replay(self, journal, party)

    monkeypatch.setattr(site_module._Served, "_replay", blind)
    for house in secret_fit[0]:
        site = house.open()
        party = site._of(STUDY)._wake()
        assert party.table.ledger.total.epsilon == house.books()[0][1] > 0
        with pytest.raises(AssertionError, match="was called"):  # the check can fail
            next(iter(party._cells.values()))[0].noisy_counts(0.001)
        site.close()


def test_keys_and_choices_never_reach_the_disk(secret_fit):
    for house, link in zip(*secret_fit, strict=True):
        bytes_on_disk = b"".join(path.read_bytes() for path in house.journal.parent.iterdir())
        secret = 0
        for number, message in link.sent.items():
            asked = decode_as(Request, message)
            if asked.name in ("step", "seal", "unseal"):  # public keys are public
                secret += 1
                for each in _chunks(asked.given):
                    assert each not in bytes_on_disk
                for each in _chunks(decode_as(Reply, link.received[number]).value):
                    assert each not in bytes_on_disk
        assert secret > 20
        # The check can fail: what was answered is there.
        some = [n for n, m in link.sent.items() if decode_as(Request, m).name == "share_counts"]
        assert all(link.received[number] in bytes_on_disk for number in some)


def _chunks(value):
    """Yield long byte strings in some values."""
    if isinstance(value, bytes) and len(value) >= 16:
        yield value[:16]
    elif isinstance(value, np.ndarray) and value.nbytes >= 16:
        yield value.tobytes()[:16]
    elif isinstance(value, dict):
        for each in value.values():
            yield from _chunks(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _chunks(each)


class TestPolicy:
    def test_a_study_that_is_not_in_the_policy(self, house):
        with pytest.raises(Refused, match="takes part in no study"):
            house.open().greet("other")
        reply = house.open().reply("other", encode(Request(1, 0, "root", (None,))))
        assert decode_as(Reply, reply).kind == "refused"

    def test_questions_that_are_not_allowed(self, house):
        house.write(questions=["noisy_counts"])
        link = SiteLink(house.open())
        cells = link.ask(0, "root", None)
        with pytest.raises(Refused, match="does not allow"):
            link.ask(cells, "noisy_class_counts", 0.25)
        assert house.store.spent == 0
        link.ask(cells, "noisy_counts", 0.25)

    def test_a_study_that_is_over(self, house):
        house.write(until="2020-01-01")
        text = (house.folder / "party.toml").read_text().replace('"2020-01-01"', "2020-01-01")
        (house.folder / "party.toml").write_text(text)
        with pytest.raises(Refused, match="until 2020-01-01"):
            house.open().greet(STUDY)

    def test_a_person_approves_and_withdraws_in_the_middle(self, house):
        house.write(approve="ask")
        site = house.open()
        with pytest.raises(Refused, match="privet party approve"):
            site.greet(STUDY)
        approve(house.policy, STUDY)
        link = SiteLink(site)
        cells = link.ask(0, "root", None)
        link.ask(cells, "noisy_counts", 0.25)
        withdraw(house.policy, STUDY)
        with pytest.raises(Refused, match="withdrawn"):
            link.ask(cells, "noisy_counts", 0.25)
        with pytest.raises(Refused, match="withdrawn"):  # stored answers, too
            link.receive(link.next - 2)
        assert house.books() == ((1, 0.25), (1, 0.25))
        approve(house.policy, STUDY)
        link.ask(cells, "noisy_counts", 0.25)
        assert house.books() == ((2, 0.5), (2, 0.5))

    def test_questions_may_be_taken_away_and_epsilon_may_not_change(self, house):
        site = house.open()
        link = SiteLink(site)
        cells = link.ask(0, "root", None)
        link.ask(cells, "noisy_class_counts", 0.25)
        site.close()
        house.write(questions=["noisy_counts"])
        site = house.open()
        link = SiteLink(site)
        link.ask(cells, "noisy_counts", 0.25)
        with pytest.raises(Refused, match="does not allow"):
            link.ask(cells, "noisy_class_counts", 0.25)
        assert link.ask(0, "describe")[2] == ["noisy_counts"]
        site.close()
        assert house.books() == ((2, 0.5), (2, 0.5))
        house.write(epsilon=0.75)
        told = []
        with pytest.raises(Refused, match="its books cannot be used"):
            house.open(tell=told.append).greet(STUDY)
        assert "of another epsilon" in told[0]

    def test_a_journal_of_other_messages_is_named_as_old(self, house, monkeypatch):
        site = house.open()
        link = SiteLink(site)
        link.ask(link.ask(0, "root", None), "noisy_counts", 0.25)
        site.close()
        told = []
        monkeypatch.setattr(site_module, "MAGIC", b"PVW\x63")
        with pytest.raises(Refused, match="its books cannot be used"):
            house.open(tell=told.append).greet(STUDY)
        assert "of another version of the messages between parties" in told[0]

    def test_a_changed_policy_needs_a_new_approval(self, house):
        house.write(approve="ask")
        approve(house.policy, STUDY)
        house.write(epsilon=2.0)
        with pytest.raises(Refused, match="has changed"):
            house.open().greet(STUDY)

    def test_a_ledger_with_too_little_left_is_said_before_anybody_pays(self, house):
        house.write(epsilon=5.0)
        told = []
        link = SiteLink(house.open(tell=told.append))
        with pytest.raises(Refused, match="less left") as refusal:
            link.ask(0, "left")
        assert str(house.folder) not in str(refusal.value)
        assert any("3" in line for line in told)
        assert house.store.spent == 0

    def test_another_party_that_is_not_known(self, tmp_path):
        north, south = houses(tmp_path, ("north", "south"))
        north.write({})
        links = [SiteLink(each.open()) for each in (north, south)]
        with pytest.raises(Refused, match="fingerprint this site does not have"):
            fit(links, "secure-sum")
        assert north.store.spent == south.store.spent == 0

    def test_keys_that_a_coordinator_made_up(self, tmp_path):
        north, south = houses(tmp_path, ("north", "south"))
        south.write({"north": south.identity.fingerprint})  # not what north's owner has told
        links = [SiteLink(each.open()) for each in (north, south)]
        with pytest.raises(Refused, match="not signed"):
            fit(links, "secure-sum")


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "asked", "why"),
        [
            ({"cells": 3}, ("parts", 4, 1, None), "3 cells"),
            ({"cells": 10**6}, ("parts", 10**9, 1, None), "cells at a time"),
            ({"message": 60}, ("parts", 2, 1, None), "bytes"),
            ({"journal": 10}, ("root", None), "journal"),
        ],
    )
    def test_too_much_is_refused_before_it_is_worked_on(self, limits, asked, why, house):
        house.limits = limits
        house.write()
        link = SiteLink(house.open())
        if "journal" in limits:
            link.ask(0, "root", None)
        with pytest.raises(Refused, match=why):
            link.ask(0, *asked)
        assert house.store.spent == 0

    def test_options(self, house):
        from privet.criteria import Gini
        from privet.tables import Thresholds

        house.limits = {"options": 5}
        house.write()
        link = SiteLink(house.open())
        cells = link.ask(0, "root", None)
        with pytest.raises(Refused, match="its owner allows 5"):
            link.ask(cells, "choose_best", Thresholds(64), Gini(), 0.25, how="flip")
        assert house.store.spent == 0

    def test_a_flood_of_free_questions(self, house):
        house.limits = {"free_per_minute": 20}
        house.write()
        link = SiteLink(house.open())
        for _ in range(20):
            link.ask(0, "root", None)
        for _ in range(200):
            with pytest.raises(Refused, match="in a minute"):
                link.ask(0, "root", None)
        journal = Journal.look(house.journal)
        assert len(list(journal.of_kind("refused"))) <= 60
        assert link.ask(1, "noisy_counts", 0.25) is not None  # what is paid for is no flood

    def test_a_question_that_takes_too_long(self, house, monkeypatch):
        house.limits = {"seconds": 0.2}
        house.write()
        link = SiteLink(house.open())
        cells = link.ask(0, "root", None)
        party = link.site._of(STUDY).party
        answer = party.answer

        def slow(*given, **options):
            time.sleep(1)
            return answer(*given, **options)

        monkeypatch.setattr(party, "answer", slow)
        with pytest.raises(Refused, match="longer than"):
            link.ask(cells, "noisy_counts", 0.25)
        with pytest.raises(Refused, match="started again"):
            link.ask(cells, "noisy_counts", 0.25)
        assert house.books() == ((0, 0), (0, 0))
        link.site.close()
        SiteLink(house.open()).ask(cells, "noisy_counts", 0.25)
        assert house.books() == ((1, 0.25), (1, 0.25))

    def test_secret_choices_at_a_time(self, tmp_path):
        north, south = houses(tmp_path, ("north", "south"))
        for each in (north, south):
            each.limits = {"choices": 1}
        from .houses import know_each_other

        know_each_other([north, south])
        links = [SiteLink(each.open()) for each in (north, south)]
        FederatedTable(links, protocol="secure-sum")
        cells = links[0].ask(0, "root", None)
        members = ("north", "south")
        links[0].ask(cells, "share_labels", 0.1, 2, members, os.urandom(16))
        with pytest.raises(Refused, match="secret choices at a time"):
            links[0].ask(cells, "share_labels", 0.1, 2, members, os.urandom(16))
        assert north.books() == ((1, Fraction(1, 10)), (1, Fraction(1, 10)))


class TestHostile:
    def test_nonsense_is_answered_and_costs_nothing(self, house):
        site = house.open()
        site.greet(STUDY)
        good = encode(Request(1, 0, "root", (None,)))
        generator = np.random.default_rng(7)
        for _ in range(500):
            damaged = bytearray(good)
            for _ in range(generator.integers(1, 4)):
                damaged[generator.integers(len(damaged))] = generator.integers(256)
            decode_as(Reply, site.reply(STUDY, bytes(damaged)))
            decode_as(Reply, site.reply(STUDY, bytes(generator.bytes(40))))
        assert house.store.spent == 0

    def test_the_number_of_a_question_is_found_without_reading_it(self):
        for number in (0, 1, 77, 2**40, 2**63 - 1):
            message = encode(Request(number, 3, "left", (1, 2), {"x": 1}))
            assert number_of(message) == number
        assert number_of(b"") == number_of(b"PVW\x03o") == 0

    def test_what_is_refused_does_not_name_files_of_the_site(self, house):
        (house.folder / "table.ledger").unlink()
        told = []
        site = house.open(tell=told.append)
        with pytest.raises(Refused) as refusal:
            site.greet(STUDY)
        assert str(house.folder) not in str(refusal.value)
        assert any(str(house.folder) in line for line in told)

    def test_a_party_that_fails_in_the_middle_has_paid(self, house, monkeypatch):
        link = SiteLink(house.open())
        cells = link.ask(0, "root", None)
        party = link.site._of(STUDY).party
        engine = behind.behind_table[party.table].engine

        def fails(*_):
            raise RuntimeError("record 17 has value 42")

        monkeypatch.setattr(engine, "class_counts", fails)
        with pytest.raises(Lost):
            link.ask(cells, "noisy_counts", 0.25)
        assert house.books() == ((1, 0.25), (1, 0.25))


class Lies(SiteLink):
    """A party whose answers to what is charged are not what was asked, from some number on."""

    def receive(self, number):
        found = super().receive(number)
        return np.zeros(3) if number >= 6 else found


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm"])
def test_a_party_that_lies_is_left_out_and_the_others_books_are_true(protocol, tmp_path):
    all_houses = houses(tmp_path)
    kinds = (SiteLink, Lies, SiteLink)
    links = [kind(each.open()) for kind, each in zip(kinds, all_houses, strict=True)]
    table = FederatedTable(links, protocol=protocol, least=2)
    learner = TopDownClassifier(epsilon=0.5, schema=SCHEMA, max_depth=2).fit(table)
    assert table.parties == ("north", "west")
    assert "1 more lost" in " ".join(learner.privacy_.notes)
    for house in all_houses:
        journal, ledger = house.books()
        assert journal == ledger
    assert all_houses[0].books() == all_houses[2].books()
    with pytest.raises(FederationError, match="'south' did not answer, or answered nonsense"):
        fit([kind(link.site) for kind, link in zip(kinds, links, strict=True)], protocol, 0.5)


def test_a_choice_under_way_is_paid_again_under_new_keys(tmp_path):
    """A party dies in a secret choice: the step is refused, and the books stay true."""
    all_houses = houses(tmp_path, ("north", "south"), epsilon=2.0)
    sites = [each.open() for each in all_houses]
    links = [SiteLink(each) for each in sites]
    FederatedTable(links, protocol="secure-sum")
    members = ("north", "south")
    nonce = os.urandom(16)
    choices = []
    for link in links:
        cells = link.ask(0, "root", None)
        choices.append(link.ask(cells, "share_labels", 0.25, 2, members, nonce))
    sites[0].close()
    back = SiteLink(all_houses[0].open())
    with pytest.raises(Refused, match="takes part in no such choice"):
        back.ask(choices[0], "step", [b"x" * 32])
    with pytest.raises(Refused, match="connect the parties anew"):
        back.ask(cells, "share_labels", 0.25, 2, members, os.urandom(16))
    assert all_houses[0].books() == ((1, 0.25), (1, 0.25))
    fit([back, links[1]], "secure-sum")  # new keys, and the reserve pays
    for house in all_houses:
        journal, ledger = house.books()
        assert journal == ledger
        assert journal[1] > 0.25


def test_doubts_survive_a_restart(tmp_path):
    """Of three parties one is doubted: with two of them later, one still is."""
    north, south, west = houses(tmp_path, trusted=2)
    sites = {each.name: each.open() for each in (north, south, west)}
    FederatedTable([SiteLink(each) for each in sites.values()], protocol="secure-sum", honest=2)
    sites["north"].close()
    links = [SiteLink(north.open()), SiteLink(sites["south"])]
    with pytest.raises(FederationError, match="its owner counts on 1"):
        fit(links, "secure-sum")
    assert north.store.spent == 0


def test_what_a_refused_question_did_is_done_again(house):
    """Free questions before one that is refused: the cells are there after a restart, too."""
    site = house.open()
    link = SiteLink(site)
    series = link.ask(0, "series") * SERIES
    before = ((series + 1, 0, "root", None), (series + 2, 99, "root", None))
    with pytest.raises(Refused):
        link.ask(0, "left", before=before)
    link.ask(series + 1, "noisy_counts", 0.25)
    with pytest.raises(Refused, match="above the budget"):
        link.ask(series + 3, "noisy_counts", 5.0, before=((series + 3, 0, "root", None),))
    link.ask(series + 3, "noisy_counts", 0.25)
    site.close()
    again = SiteLink(house.open())
    again.ask(series + 1, "noisy_counts", 0.25)
    assert house.books() == ((3, 0.75), (3, 0.75))


def test_several_counts_of_which_the_budget_pays_some(house):
    site = house.open()
    link = SiteLink(site)
    cells = [link.ask(0, "root", None) for _ in range(2)]
    with pytest.raises(Refused, match="above the budget"):
        link.ask(0, "noisy_class_counts", [0.5, 0.75], of=cells)
    assert house.books() == ((1, 0.5), (1, 0.5))
    site.close()
    again = SiteLink(house.open())
    again.ask(cells[0], "noisy_counts", 0.25)
    assert house.books() == ((2, 0.75), (2, 0.75))


def test_a_study_is_closed_and_the_rest_goes_back(house):
    site = house.open()
    link = SiteLink(site)
    link.ask(link.ask(0, "root", None), "noisy_counts", 0.25)
    assert house.store.left == 2  # all of the study is reserved
    site.close()
    assert close_study(house.policy, STUDY).epsilon == 0.25
    assert house.store.left == 2.75
    (draw,) = house.store.withdrawals
    assert [entry.cost.epsilon for entry in draw.entries] == [0.25]
    with pytest.raises(Refused, match=r"books cannot be used|closed"):
        house.open().greet(STUDY)
