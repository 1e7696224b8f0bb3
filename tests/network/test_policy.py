"""Policy files, and the commands of ``privet party``."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from privet.cli import main
from privet.network import site as site_module
from privet.network.checks import _asked
from privet.network.keys import Identity
from privet.network.policy import Limits, Policy, PolicyError
from privet.network.site import Site

from .houses import STUDY, House, SiteLink


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    coordinator = Identity.make(
        made.folder / "coordinator.key", made.folder / "coordinator.pem", "coordinator"
    )
    made.mark = coordinator.fingerprint
    made.write()
    return made


@pytest.fixture(scope="module")
def slips(tmp_path_factory):
    """A folder with a policy file, which is read and nothing else."""
    return House(tmp_path_factory.mktemp("slips")).folder


@pytest.fixture
def party(monkeypatch, capsys, house):
    """Run ``privet party`` in the house: exit code, output, error output."""

    def call(*arguments):
        monkeypatch.chdir(house.folder)
        monkeypatch.setattr("sys.argv", ["privet", "party", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return caught.value.code or 0, captured.out, captured.err

    monkeypatch.setattr("warnings.showwarning", None)
    return call


def test_a_policy_says_what_is_allowed(house):
    house.limits = {"cells": 7, "seconds": 2.5}
    house.write({"south": "AB " * 32}, questions=["noisy_counts"], trusted=2)
    policy = house.policy
    assert policy.limits == Limits(cells=7, seconds=2.5)
    study = policy.study(STUDY)
    assert study.questions == {"noisy_counts"}
    assert study.peers == {"south": "ab" * 32}
    assert policy.data == house.folder / "rows.parquet"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('name = "north"', 'nmae = "north"', "'nmae' is not known; did you mean 'name'"),
        ('name = "north"', "", "'name' is missing"),
        ('name = "north"', "name = 5", "party.toml: name must be text"),
        ('name = "north"', 'name = "../north"', "name must be a name"),
        ('coordinator = "localhost:7443"', 'coordinator = "localhost"', "host:port"),
        ("epsilon = 1.0", "epsilno = 1.0", r"'epsilno' in \[studies.readmission\] is not known"),
        ("epsilon = 1.0", "epsilon = -1", "epsilon must be a number above 0"),
        ("epsilon = 1.0", "epsilon = inf", "epsilon must be a number above 0"),
        ("epsilon = 1.0", "epsilon = true", "epsilon must be a number above 0"),
        ('approve = "policy"', 'approve = "never"', "approve must be"),
        ("[limits]", "[limits]\ncell = 3", "did you mean 'cells'"),
        ("[limits]", "[limits]\ncells = 0", "cells must be a whole number"),
        ("[limits]", "[limits]\nseconds = 1e9", "seconds must be"),
        ("epsilon = 1.0", 'epsilon = 1.0\nquestions = ["rows"]', "questions must be a list of"),
        ("epsilon = 1.0", 'epsilon = 1.0\nquestions = [["share_counts"]]', "must be a list of"),
        ("epsilon = 1.0", "epsilon = 1.0\ntrusted = 0", "trusted must be a whole number"),
        ("peers]", 'peers]\nsouth = "12"', "64 hexadecimal digits"),
        ("peers]", 'peers]\nnorth = "12"', "itself: list the others"),
        (re.compile("until = .*"), 'until = "soon"', "until must be a day"),
        (re.compile("fingerprint = .*"), 'fingerprint = "x"', "tls.fingerprint"),
        ("[limits]", "[limits", "is no TOML file"),
    ],
)
def test_a_slip_is_refused(old, new, why, slips):
    path = slips / "party.toml"
    text = path.read_text()
    changed = old.sub(new, text) if isinstance(old, re.Pattern) else text.replace(old, new, 1)
    assert changed != text
    try:
        path.write_text(changed)
        with pytest.raises(PolicyError, match=why):
            Policy.from_toml(path)
    finally:
        path.write_text(text)


def test_every_command_refuses_a_slip(house, party):
    path = house.folder / "party.toml"
    path.write_text(path.read_text().replace("epsilon", "epsilno"))
    for command in (("check",), ("serve",), ("status",), ("approve", STUDY)):
        code, _, error = party(*command)
        assert code == 2
        assert error.startswith("Error:")
        assert error.count("\n") <= 2
    assert house.store.spent == 0


@pytest.mark.parametrize("command", ["approve", "withdraw"])
def test_a_state_directory_that_is_none(command, house, party):
    (house.folder / "state").write_text("")
    code, _, error = party(command, STUDY)
    assert code == 2
    assert "nothing can be written in the state directory" in " ".join(error.split())


def test_no_policy_file(party, house):
    (house.folder / "party.toml").unlink()
    code, _, error = party("status")
    assert code == 2
    assert "there is no policy file" in error


def test_check_says_what_a_study_would_cost(party, house):
    code, out, _ = party("check")
    assert code == 0
    assert "may spend epsilon 1 in all, has spent 0" in out
    assert "epsilon 3 left" in out
    assert "noisy-counts, local-rnm, secure-sum" in out
    assert "would be answered" in out
    house.write(questions=["noisy_counts", "noisy_class_counts"])
    _, out, _ = party("check")
    said = " ".join(out.split())
    assert "all allowed: noisy-counts; with those of a test score: none." in said
    assert house.store.spent == 0
    assert not house.journal.exists()


@pytest.mark.parametrize(
    ("changed", "options", "why"),
    [
        ({"epsilon": 5.0}, (), "less left"),
        ({"approve": "ask"}, (), "privet party approve"),
        ({"questions": ["noisy_counts"]}, ("--protocol", "noisy-counts"), "noisy_class_counts"),
        ({}, ("--epsilon", "2"), "more than the policy has left"),
        ({}, ("--protocol", "secure-sum"), "fingerprints of the other parties"),
    ],
)
def test_check_says_why_a_study_would_be_refused(changed, options, why, party, house):
    house.write(**changed)
    code, out, error = party("check", STUDY, *options)
    assert code == 2
    assert why in out
    assert "would be refused" in out
    assert "nothing was reserved or spent" in error
    assert house.store.spent == 0


def test_what_a_study_has_left_is_worked_out_exactly(house):
    """1 - 0.9 is less than 0.1 in doubles."""
    study = replace(house.policy.study(STUDY), epsilon=1.0)
    assert not _asked(study, Fraction(9, 10), 0.1, None, ())
    assert _asked(study, Fraction(9, 10), 0.1000001, None, ())


@pytest.mark.parametrize(
    ("remove", "why"),
    [
        ("rows.parquet", "there is no file"),
        ("table.ledger", "there is no ledger file"),
        ("north.key", "north.key"),
        ("coordinator.pem", "certificate of the coordinator"),
        ("schema.toml", "schema"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_dialled(remove, why, party, house):
    (house.folder / remove).unlink()
    for command in ("check", "serve"):
        if (remove, command) == ("table.ledger", "serve"):
            continue  # the study is refused, others could be served
        code, _, error = party(command)
        assert code == 2
        assert why in error


def test_a_coordinator_with_another_key(party, house):
    house.mark = "cd" * 32
    house.write()
    code, _, error = party("serve")
    assert code == 2
    assert "another key than the fingerprint" in error


def test_a_study_as_its_owner_sees_it(party, house):
    house.write(approve="ask")
    code, _, error = party("log", STUDY)
    assert code == 2
    assert "has not begun here" in error
    assert party("approve", "other")[0] == 2
    assert "may spend epsilon 1" in party("approve", STUDY)[1]
    site = house.open()
    link = SiteLink(site)
    cells = link.ask(0, "root", None)
    link.ask(cells, "noisy_counts", 0.25)
    code, out, _ = party("status")
    assert code == 0
    assert "served" in out
    assert party("close", STUDY)[0] == 2  # it is being served
    assert party("withdraw", STUDY)[0] == 0
    with pytest.raises(Exception, match="withdrawn"):
        link.ask(cells, "noisy_counts", 0.25)
    site.close()
    code, out, _ = party("log", STUDY)
    lines = out.splitlines()
    assert len(lines) == 4
    assert "'localhost:7443'" in lines[0]
    assert "'root'  free" in lines[1]
    assert "'noisy_counts'  1 cells  epsilon 0.25, spent 0.25, left 0.75" in lines[2]
    assert "refused: 'its owner has withdrawn" in lines[3]
    assert "epsilon 0.25" in party("close", STUDY)[1]
    assert "closed" in party("status")[1]
    assert house.store.left == 2.75
    assert party("close", STUDY)[0] == 2


def test_check_and_status_say_that_a_journal_cannot_be_gone_on_with(party, house, monkeypatch):
    def answer(count):
        site = house.open()
        link = SiteLink(site)
        for _ in range(count):
            link.ask(link.ask(0, "root", None), "noisy_counts", 0.125)
        site.close()

    def said(why):
        code, out, error = party("check")
        assert code == 2, error
        assert why in " ".join(out.split())
        assert why in " ".join(party("status")[1].split())

    answer(1)
    older = house.journal.read_bytes()
    answer(2)
    assert party("check")[0] == 0
    newest = house.journal.read_bytes()
    house.journal.write_bytes(older)
    said("its journal has 1 charged answers, and the ledger 3")
    house.journal.write_bytes(b"nothing")
    said("its beginning cannot be read")
    house.journal.write_bytes(newest)
    house.write(epsilon=0.875)
    said("of another epsilon")
    house.write(epsilon=1.0)
    monkeypatch.setattr(site_module, "MAGIC", b"PVW\x63")
    said("of another version of the messages between parties")


def test_keys_are_made_once(party, house):
    code, out, _ = party("keygen", "west")
    assert code == 0
    assert "Fingerprint: " in out
    before = (house.folder / "west.key").read_bytes()
    assert (house.folder / "west.key").stat().st_mode & 0o777 == 0o600
    code, _, error = party("keygen", "west")
    assert code == 2
    assert error.startswith("Error:")
    assert party("keygen", "west", "--renew")[0] == 0
    assert (house.folder / "west.key").read_bytes() == before


def test_a_drafted_schema_is_no_policy(house):
    text = (house.folder / "schema.toml").read_text()
    (house.folder / "schema.toml").write_text("draft = true\n" + text)
    with pytest.raises(Exception, match="draft"):
        Site(house.policy, house.identity, lambda _: None)
