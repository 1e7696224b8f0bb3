"""Studies: their file, fits, and runs that are resumed."""

import gc
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privet
from privet import TopDownClassifier, load
from privet.errors import FederationError, PrivetError
from privet.federation import Lost
from privet.federation.wire import MAGIC
from privet.network import Identity, Study
from privet.network.links import NetworkLink
from privet.network.runs import Run

from .sites import Answers, Place, Relay, make_party, until

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")

NAMES = ("north", "south")
#: One of them in the plain run, all of them with the marker.
PROTOCOLS = pytest.mark.parametrize(
    "protocol",
    [
        "noisy-counts",
        pytest.param("local-rnm", marks=pytest.mark.network),
        pytest.param("secure-sum", marks=pytest.mark.network),
    ],
)


def learner(epsilon=1.0):
    return TopDownClassifier(epsilon=epsilon, max_nodes=3, n_thresholds=4)


def parties(seeded=False, **options):
    return [
        Answers(make_party(name, seed, random_state=seed if seeded else None, **options))
        for seed, name in enumerate(NAMES)
    ]


def spent(some):
    return [float(each.party.table.ledger.total.epsilon) for each in some]


@PROTOCOLS
def test_a_study_learns_and_its_books_are_true(tmp_path, protocol):
    place, some = Place(tmp_path, protocol=protocol), parties()
    said = []
    with place.dialling(*some):
        check = place.study.check(learner(), tell=said.append)
        assert check.epsilon == 1
        assert check.left == dict.fromkeys(NAMES, 4)
        assert spent(some) == [0, 0]
        model = place.study.fit(learner(), tell=said.append)
        assert spent(some) == [1, 1]
        assert model.privacy_.private
        # A second run of the study: its questions have numbers of their own.
        place.study.fit(learner(0.5))
        assert spent(some) == [1.5, 1.5]
        with pytest.raises(FederationError, match=r"epsilon 2\.5 left, and this may spend 3"):
            place.study.fit(learner(3.0))
        with pytest.raises(FederationError, match=r"epsilon 2\.5 left, and this may spend 3"):
            place.study.check(learner(3.0))
    assert spent(some) == [1.5, 1.5]
    assert {"north is here", "south is here"} <= set(said)


def test_a_study_sets_records_aside(tmp_path):
    place, some, run = Place(tmp_path), parties(), tmp_path / "run"
    tested = learner().set_params(test_share=0.2)
    with place.dialling(*some):
        assert place.study.check(tested).epsilon == 1
        found = place.study.fit(tested, run=run).evaluation_.to_dict()
        assert spent(some) == [1, 1]
        # By the key of the run: nobody is asked anything again.
        assert place.study.fit(tested, resume=run).evaluation_.to_dict() == found
        assert spent(some) == [1, 1]


def test_a_run_is_readable_by_its_owner_alone(tmp_path):
    place = Place(tmp_path)
    with place.dialling(*parties()):
        place.study.fit(learner(), run=tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    for each in (tmp_path / "run").iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600, each


class Died(BaseException):
    """Stands for the end of a coordinator: nothing catches it."""


def die_at(monkeypatch, place):
    """Let the coordinator end after it has kept some answers."""
    kept, keep = [], Run.keep

    def dying(self, *given, **options):
        keep(self, *given, **options)
        kept.append(given)
        if len(kept) == place:
            raise Died

    monkeypatch.setattr(Run, "keep", dying)
    return kept


@PROTOCOLS
def test_a_resumed_run_is_the_run_that_was_not_disturbed(tmp_path, monkeypatch, protocol):
    """With the same noise at the parties, it ends in the same model and the same books."""
    place, some = Place(tmp_path, protocol=protocol), parties(seeded=True)
    with place.dialling(*some), monkeypatch.context() as patch:
        kept = die_at(patch, -1)
        undisturbed = place.study.fit(learner(), run=tmp_path / "undisturbed")
    books = [each.party.table.ledger.entries for each in some]
    again = parties(seeded=True)
    run = tmp_path / "run"
    options = {"run": run}
    with place.dialling(*again):
        for stop in (1, 2, len(kept) // 3, len(kept) // 4):  # each counts from the resumed start
            with monkeypatch.context() as patch:
                die_at(patch, stop)
                with pytest.raises(Died):
                    place.study.fit(learner(), **options)
            options = {"resume": run}
        resumed = place.study.fit(learner(), resume=run)
        assert resumed.predictor_ == undisturbed.predictor_
        assert [each.party.table.ledger.entries for each in again] == books
        assert spent(again) == [1, 1]
        # Every question was asked in one form; the last one that was under way perhaps twice.
        for each in again:
            assert sorted(each.asked) == list(range(1, len(each.asked) + 1))
        # It is over now: resumed once more, nobody is asked anything.
        before = [len(each.asked) for each in again]
        assert place.study.fit(learner(), resume=run).predictor_ == resumed.predictor_
        assert [len(each.asked) for each in again] == before


def test_an_answer_that_was_written_in_part_is_asked_for_again(tmp_path):
    place, some = Place(tmp_path), parties()
    with place.dialling(*some):
        model = place.study.fit(learner(), run=tmp_path / "run")
        answers = tmp_path / "run" / "answers"
        whole = answers.read_bytes()
        for lost in (1, 30, len(whole) // 2, len(whole)):
            answers.write_bytes(whole[: len(whole) - lost])
            again = place.study.fit(learner(), resume=tmp_path / "run")
            assert again.predictor_ == model.predictor_
            assert answers.read_bytes() == whole or lost > 30  # in another order, perhaps
    assert spent(some) == [1, 1]


def test_a_run_is_resumed_only_as_it_was_begun(tmp_path, monkeypatch):
    place, some = Place(tmp_path), parties()
    run = tmp_path / "run"
    with place.dialling(*some):
        with monkeypatch.context() as patch:
            die_at(patch, 7)
            with pytest.raises(Died):
                place.study.fit(learner(), run=run)
        paid = spent(some)
        with pytest.raises(FederationError, match="had another parameters"):
            place.study.fit(learner(0.5), resume=run)
        plan = (run / "run.json").read_text()
        for old in (
            plan.replace(f'"wire": {MAGIC[3]},', '"wire": 4,'),
            plan.replace('"wire"', '"w"'),
        ):
            (run / "run.json").write_text(old)
            with pytest.raises(FederationError, match="another version of the messages between"):
                place.study.fit(learner(), resume=run)
        (run / "run.json").write_text(plan)
        with pytest.raises(FederationError, match=r"there is a run in .* already"):
            place.study.fit(learner(), run=run)
        with pytest.raises(FederationError, match="no run in"):
            place.study.fit(learner(), resume=tmp_path / "nowhere")
        # Another seed asks in other words only where there is chance; here the digests say it.
        raw = bytearray((run / "answers").read_bytes())
        raw[20] ^= 1  # within the first digest: its checksum fails, and all is asked again
        (run / "answers").write_bytes(raw)
        assert spent(some) == paid
        place.study.fit(learner(), resume=run)
    assert spent(some) == [1, 1]


def test_a_party_that_has_forgotten_is_not_asked(tmp_path, monkeypatch):
    """Its books are from a backup, or those of another machine."""
    place, some = Place(tmp_path), parties()
    with place.dialling(*some), monkeypatch.context() as patch:
        die_at(patch, 9)
        with pytest.raises(Died):
            place.study.fit(learner(), run=tmp_path / "run")
    fresh = parties()
    with (
        place.dialling(*fresh),
        pytest.raises(FederationError, match="its books are of an earlier day"),
    ):
        place.study.fit(learner(), resume=tmp_path / "run")
    assert [each.asked for each in fresh] == [{}, {}]


def lose(monkeypatch, name, number):
    """Let one answer of a party come too late."""
    wait = NetworkLink._await

    def waiting(self, asked, deadline):
        if (self.name, asked) == (name, number):
            raise Lost(f"party {name!r} did not answer in time")
        return wait(self, asked, deadline)

    monkeypatch.setattr(NetworkLink, "_await", waiting)


@pytest.mark.network
def test_a_loss_that_ended_a_run_is_no_loss_when_it_is_resumed(tmp_path, monkeypatch):
    place, some = Place(tmp_path), parties()
    with place.dialling(*some):
        with monkeypatch.context() as patch:
            lose(patch, "south", 5)
            with pytest.raises(FederationError, match="'south' did not answer"):
                place.study.fit(learner(), run=tmp_path / "run")
        until(lambda: 5 in some[1].asked)
        model = place.study.fit(learner(), resume=tmp_path / "run")
    assert model.privacy_.private
    assert spent(some) == [1, 1]


@pytest.mark.network
def test_a_loss_after_which_a_run_went_on_stays_one(tmp_path, monkeypatch):
    place = Place(tmp_path, names=(*NAMES, "west"), least=2)
    some = [*parties(), Answers(make_party("west", 2))]
    with place.dialling(*some):
        with monkeypatch.context() as patch:
            lose(patch, "west", 5)
            die_at(patch, 16)
            with pytest.raises(Died):
                place.study.fit(learner(), run=tmp_path / "run")
        until(lambda: 5 in some[2].asked)
        before = len(some[2].asked)
        model = place.study.fit(learner(), resume=tmp_path / "run")
        assert len(some[2].asked) == before
    assert "1 more lost" in model.privacy_.notes[-1]
    assert spent(some)[:2] == [1, 1]


def test_two_processes_cannot_go_on_with_one_run(tmp_path):
    place = Place(tmp_path)
    with place.dialling(*parties()):
        place.study.fit(learner(), run=tmp_path / "run")
        plan = place.study._plan(learner())
        held = Run.resume(tmp_path / "run", plan)
        with pytest.raises(FederationError, match="going on in another process"):
            place.study.fit(learner(), resume=tmp_path / "run")
        held.close()


def test_who_does_not_come_is_named(tmp_path):
    place, some = Place(tmp_path, patience=1), parties()
    with place.dialling(some[0]), pytest.raises(FederationError, match="'south' did not come"):
        place.study.fit(learner())
    assert spent(some) == [0, 0]
    assert not (tmp_path / "runs").exists()


def test_a_served_port_is_used_by_fits_one_at_a_time(tmp_path):
    place, some = Place(tmp_path), parties()
    with place.dialling(*some), place.study.serve() as desk:
        place.study.fit(learner(), run=tmp_path / "one")
        place.study.fit(learner(), run=tmp_path / "two")
        with pytest.raises(FederationError, match="served already"):
            place.study.serve()
        with (
            place.study.open(),
            pytest.raises(FederationError, match="another fit of this study is going on"),
        ):
            place.study.fit(learner())
        del desk
    assert spent(some) == [2, 2]
    assert not (tmp_path / "runs" / "serving").exists()


def test_garbage_is_looked_for_again_after_a_fit(tmp_path):
    place = Place(tmp_path)
    with place.dialling(*parties()):
        place.study.fit(learner())
    assert gc.isenabled()


def text_of(place):
    return (place.folder / "study.toml").read_text()


@pytest.mark.parametrize(
    ("pattern", "by", "why"),
    [
        ("patience = 600", "patiense = 600", "unknown key 'patiense'; known are"),
        ('name = "test"\n', "", "has no 'name'"),
        ("patience = 600", "patience = true", "'patience' in the file has the wrong type"),
        ("patience = 600", "patience = -1", "a number of seconds above 0"),
        ("noisy-counts", "noisy", "protocol must be one of"),
        (r"\[tls\]", "[tls", "no TOML file"),
        ("north.pem", "none.pem", "there is no file"),
        ("north.pem", "south.pem", "another key than the fingerprint says"),
        (r'fingerprint = "\w', 'fingerprint = "', "64 hexadecimal digits"),
        (r"\[parties[\s\S]*", "[parties]\n", "has no parties"),
        (r"\[parties.north\]", "[parties]\nx = 1\n[parties.north]", r"\[parties.x\] is no table"),
    ],
)
def test_a_study_file_is_read_strictly(tmp_path, pattern, by, why):
    place = Place(tmp_path)
    changed = re.sub(pattern, by, text_of(place), count=1)
    assert changed != text_of(place)
    (tmp_path / "study.toml").write_text(changed)
    with pytest.raises(PrivetError, match=why):
        Study.from_toml(tmp_path / "study.toml")


def test_parties_with_one_key_are_refused(tmp_path):
    place = Place(tmp_path)
    for kind in ("key", "pem"):
        (tmp_path / f"south.{kind}").write_bytes((tmp_path / f"north.{kind}").read_bytes())
    place.write()
    with pytest.raises(FederationError, match="have the same key"):
        place.study  # noqa: B018


def test_there_is_no_study_file(tmp_path):
    with pytest.raises(FederationError, match="there is no study file"):
        Study.from_toml(tmp_path / "study.toml")


# Real processes


FITTED = Path(__file__).with_name("fitted.py")


def command(place, *given, script=("-m", "privet")):
    environment = {**os.environ, "PYTHONPATH": str(next(iter(privet.__path__)) + "/..")}
    return subprocess.Popen(
        [sys.executable, *map(str, script), *map(str, given)],
        cwd=place.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def fit_command(place, *more, **options):
    given = ("fit", "--parties", "study.toml", "--learner", "topdown", "--force", *more)
    return command(place, *given, **options)


@pytest.mark.network
@pytest.mark.parametrize(
    ("protocol", "lives"),
    [("noisy-counts", (1, 4, 6)), ("local-rnm", (1, 4, 6)), ("secure-sum", (3, 30, 60))],
)
def test_a_coordinator_that_is_killed_goes_on(tmp_path, protocol, lives):
    """Killed after some more answers, again and again."""
    place = Place(tmp_path, protocol=protocol)
    with place.sites():
        for life, answers in enumerate(lives):
            more = ("--resume", "run") if life else ("--run", "run")
            process = fit_command(place, *more, script=(FITTED, answers))
            said, _ = process.communicate(timeout=900)
            assert process.returncode == -signal.SIGKILL, said
        process = fit_command(place, "--resume", "run")
        said, _ = process.communicate(timeout=900)
        assert process.returncode == 0, said
        assert "spent epsilon 1 " in said
        check = fit_command(place, "--check")
        said, _ = check.communicate(timeout=900)
        assert "has epsilon 3 left" in said  # of 4: nothing was paid twice
    assert load(tmp_path / "model.json").privacy.private


@pytest.mark.network
def test_a_slow_link_through_a_proxy(tmp_path):
    place = Place(tmp_path)
    with Relay(delay=0.02) as proxy:
        proxy_is = {"https_proxy": f"http://127.0.0.1:{proxy.number}", "no_proxy": ""}
        with place.sites(environment=proxy_is):
            process = fit_command(place, "--test-share", "0.2")
            said, _ = process.communicate(timeout=900)
            assert process.returncode == 0, said
        assert len(proxy.asked) >= 2
        assert {method for method, _ in proxy.asked} == {"CONNECT"}
    assert load(tmp_path / "model.json").evaluation.share == 0.2


def _connected(said):
    return sum(each.startswith("connected") for each in said)


@pytest.mark.network
def test_ten_minutes_idle(tmp_path):
    """Nobody says anything, and the line is still there: pings keep it open."""
    place, some = Place(tmp_path), parties()
    with Relay(place.port) as relay, place.dialling(*some, port=relay.number) as said:
        with place.study.open() as lines:
            until(lambda: all(line.connected for line in lines.values()))
            until(lambda: _connected(said) == 2)
            before = sum(relay.bytes)
            for _ in range(10):
                time.sleep(60)
                assert all(line.connected for line in lines.values())
                assert sum(relay.bytes) > before  # so that no balancer cuts it
                before = sum(relay.bytes)
            assert _connected(said) == 2  # and never again
        place.study.fit(learner())


@pytest.mark.network
def test_errors_of_the_command_are_one_sentence(tmp_path):
    place = Place(tmp_path, patience=1)
    Identity.make(tmp_path / "x.key", tmp_path / "x.pem", "x")
    for given, why in [
        (("fit", "--parties", "none.toml"), "no study file"),
        (("fit", "--parties", "study.toml", "t.csv"), "a table is not for --parties"),
        (("fit", "t.csv", "--schema", "schema.toml", "--check"), "are for --parties"),
    ]:
        process = command(place, *given)
        said, _ = process.communicate(timeout=900)
        assert process.returncode == 2
        assert why in said
        assert said.startswith("Error: ")
        assert said.count("\n") == 1
