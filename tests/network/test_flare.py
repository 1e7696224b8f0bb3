"""Studies whose messages NVFlare carries: here by a channel of our own; see test_flare_jobs.py."""

import json
import shutil
from collections import Counter

import pytest

from privet import Budget, TopDownClassifier
from privet.cli import main
from privet.errors import FederationError, PrivetError
from privet.federation import FederatedTable, Party
from privet.federation.wire import decode
from privet.flare import lines, write_job
from privet.flare.jobs import CONTROLLER, EXECUTOR, fit_job
from privet.flare.lines import Unreachable
from privet.flare.sealed import CoordinatorEnd, PartyEnd
from privet.network import Identity, digest_of

from .flared import CarriedTown
from .houses import SCHEMA, STUDY, rows

pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")

NAMES = ("north", "south")
GIVEN = {"epsilon": 1.0, "max_nodes": 3, "n_thresholds": 4}


class Carried:
    """A channel to sites in this process."""

    def __init__(self, town, seeded=True):
        self.sites = {
            house.name: house.open(random_state=seed if seeded else None)
            for seed, house in enumerate(town.houses)
        }
        self.ends = {
            name: PartyEnd(site, site.identity, site.policy.tls.open_coordinator())
            for name, site in self.sites.items()
        }
        self.asked = Counter()

    def request(self, name, frame, seconds):
        self.asked[name] += 1
        return self.ends[name].answer(frame)

    def gone(self, name):
        return False

    def aborted(self):
        return False

    def close(self):
        for site in self.sites.values():
            site.close()


class Impatient(Carried):
    """One that a party leaves which is not welcome at its second attempt."""

    def gone(self, name):
        return name == "south" and self.asked[name] >= 4


@pytest.fixture
def town(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_PAUSE", 0.01)
    return CarriedTown(tmp_path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A town of which files are read, and nothing else: nobody is asked."""
    made = CarriedTown(tmp_path_factory.mktemp("files"), names=("north",))
    shutil.copy(made.file, made.folder / "study.toml")
    (made.folder / "port.toml").write_text(
        made.file.read_text().replace('"nvflare"', '"localhost:7443"')
    )
    return made


def fitted(town, channel, study=STUDY, learner="topdown", parameters=GIVEN):
    try:
        return fit_job(town.folder, study, learner, parameters, channel, lambda _: None)
    finally:
        channel.close()


def in_one_process(protocol="noisy-counts"):
    """Return what parties with the same noise let be learnt without a network."""
    parties = [
        Party(name, rows(200, seed), None, SCHEMA, Budget(1.0), random_state=seed)
        for seed, name in enumerate(NAMES)
    ]
    with FederatedTable(parties, protocol=protocol) as table:
        return TopDownClassifier(**GIVEN).fit(table).to_model()


def tree(model):
    return json.dumps(model.predictor.to_dict())


def check_books(town, spent=1):
    for house in town.houses:
        journal, ledger = house.books()
        assert journal == ledger
        assert ledger[1] == spent


@pytest.mark.parametrize("protocol", lines.FEW_ROUNDS)
def test_the_model_is_that_of_parties_in_one_process(tmp_path, protocol):
    town = CarriedTown(tmp_path, protocol=protocol)
    assert tree(fitted(town, Carried(town))) == tree(in_one_process(protocol))
    check_books(town)


def test_secure_sums_are_refused_before_anything_is_asked(tmp_path):
    town = CarriedTown(tmp_path, protocol="secure-sum")
    channel = Carried(town)
    with pytest.raises(FederationError, match="hundreds of rounds"):
        fitted(town, channel)
    assert not channel.asked


def test_answers_that_are_lost_on_the_way_are_given_again(town):
    """The same number with the same bytes: no second noise, no second charge."""

    class Losing(Carried):
        def request(self, name, frame, seconds):
            found = super().request(name, frame, seconds)
            if self.asked[name] % 3 == 0:
                raise Unreachable
            return found

    channel = Losing(town)
    assert tree(fitted(town, channel)) == tree(in_one_process())
    check_books(town)
    assert min(channel.asked.values()) > 12


def test_a_party_that_leaves_the_job_stays_away(town):
    class Leaving(Carried):
        def request(self, name, frame, seconds):
            if self.gone(name):
                raise Unreachable
            return super().request(name, frame, seconds)

        def gone(self, name):
            return name == "south" and self.asked[name] >= 6

    with pytest.raises(FederationError, match="'south' did not answer"):
        fitted(town, Leaving(town))
    (north, counted), (south, less) = (house.books() for house in town.houses)
    assert (north, south) == (counted, less)
    assert 0 < less[1] <= counted[1] < 1


def test_a_party_that_never_comes(town):
    class Absent(Carried):
        def gone(self, name):
            return name == "south"

    with pytest.raises(FederationError, match=r"'south' did not come .*left the job"):
        fitted(town, Absent(town))
    assert not town.houses[0].journal.exists()


@pytest.mark.parametrize("after", [0, 8])
def test_an_aborted_job_ends_with_true_books(town, after):
    class Aborted(Carried):
        def request(self, name, frame, seconds):
            if self.aborted():
                raise Unreachable
            return super().request(name, frame, seconds)

        def aborted(self):
            return sum(self.asked.values()) >= after

    with pytest.raises(FederationError, match="NVFlare has ended the job while party"):
        fitted(town, Aborted(town))
    for house in town.houses:
        if house.journal.exists():
            journal, ledger = house.books()
            assert journal == ledger
            assert ledger[1] < 1


def test_a_study_that_its_owner_has_not_approved(town):
    town.houses[1].write(approve="ask")
    with pytest.raises(FederationError, match=r"'south' did not come .*has not approved"):
        fitted(town, Impatient(town))
    assert not town.houses[0].journal.exists()


class TestPinnedKeys:
    def stranger(self, town):
        return Identity.make(town.folder / "x.key", town.folder / "x.pem", "x")

    def test_a_coordinator_with_another_key_is_told_nothing(self, town):
        channel, north = Carried(town), town.houses[0]
        end = CoordinatorEnd(self.stranger(town), STUDY, "north", north.identity.certificate)
        with pytest.raises(FederationError, match="has not the party's key"):
            end.greet(lambda frame: channel.request("north", frame, 1), digest_of(SCHEMA))
        assert channel.ends["north"].answer(b"G" + b"\0" * 70)[:1] == b"R"
        assert channel.ends["north"].answer(b"E" + b"\0" * 70)[:1] == b"R"
        channel.close()
        assert not north.journal.exists()

    def test_a_party_with_another_key_is_not_believed(self, town):
        channel, stranger = Impatient(town), self.stranger(town)
        channel.ends["south"] = PartyEnd(
            channel.sites["south"], stranger, channel.sites["south"].policy.tls.open_coordinator()
        )
        with pytest.raises(FederationError, match=r"'south' did not come .*not the party's key"):
            fitted(town, channel)
        assert not town.houses[0].journal.exists()

    def test_who_carries_frames_can_read_change_or_repeat_none(self, town):
        seen = []

        class Listening(Carried):
            def request(self, name, frame, seconds):
                if name == "north" and frame[:1] == b"E":
                    for place in (0, 5, 9, len(frame) - 1):  # bits of the letter, number, rest
                        changed = bytearray(frame)
                        changed[place] ^= 1
                        assert self.ends[name].answer(bytes(changed))[:1] == b"R"
                found = super().request(name, frame, seconds)
                if name == "north":
                    seen.append((frame, found))
                    if frame[:1] == b"E":
                        assert self.ends[name].answer(frame)[:1] == b"R"  # each number once
                return found

        channel = Listening(town)
        fitted(town, channel)
        check_books(town)
        spoken = b"".join(one + other for one, other in seen if one[:1] == b"E")
        assert b"noisy_class_counts" not in spoken
        # Another line to the same party: what was recorded opens nothing.
        again = Carried(town)
        for frame, _ in seen:
            answered = again.ends["north"].answer(frame)
            assert answered[:1] == (b"K" if frame[:1] == b"K" else b"R")
        again.close()
        check_books(town)

    def test_nonsense_is_refused(self, town):
        channel = Carried(town)
        for frame in (None, b"", "G", b"K", b"K\0", b"Z", b"G", b"E", b"E" * 9, ["K"]):
            found = channel.ends["north"].answer(frame)
            assert found[:1] == b"R"
            assert type(decode(found[1:])) is str
        channel.close()


class TestJobs:
    def test_a_job_has_no_code(self, tmp_path):
        made = write_job(tmp_path / "job", STUDY, NAMES, TopDownClassifier(**GIVEN))
        files = [each for each in made.rglob("*") if each.is_file()]
        assert {each.suffix for each in files} == {".json"}
        server = json.loads((made / "server/config/config_fed_server.json").read_text())
        (flow,) = server["workflows"]
        assert flow["path"] == CONTROLLER
        assert flow["args"] == {"study": STUDY, "learner": "topdown", "parameters": GIVEN}
        site = json.loads((made / "site/config/config_fed_client.json").read_text())
        assert site["executors"][0]["executor"] == {"path": EXECUTOR, "args": {}}
        meta = json.loads((made / "meta.json").read_text())
        assert meta["mandatory_clients"] == list(NAMES)
        with pytest.raises(FederationError, match="name a new folder"):
            write_job(made, STUDY, NAMES, TopDownClassifier())

    @pytest.mark.parametrize(
        ("study", "names", "estimator", "why"),
        [
            ("../x", NAMES, TopDownClassifier(), "the study must be a name"),
            (STUDY, ["a/b"], TopDownClassifier(), "a party must be a name"),
            (STUDY, [], TopDownClassifier(), "each once"),
            (STUDY, NAMES, TopDownClassifier(ledger="table.ledger"), "ledger is not for jobs"),
            (STUDY, NAMES, TopDownClassifier(max_nodes=(3,)), "numbers, texts or lists"),
            (STUDY, NAMES, object(), "an estimator of privet"),
        ],
    )
    def test_what_a_job_cannot_say(self, tmp_path, study, names, estimator, why):
        with pytest.raises(PrivetError, match=why):
            write_job(tmp_path / "job", study, names, estimator)

    @pytest.mark.parametrize(
        ("changed", "why"),
        [
            ({"study": "../study"}, "must be a name"),
            ({"study": "study"}, "of another study"),
            ({"study": "sepsis"}, "no study file"),
            ({"learner": "os.system"}, "no learner"),
            ({"learner": ["topdown"]}, "no learner"),
            ({"parameters": {"ledger": "x"}}, "ledger is not for jobs"),
            ({"parameters": {"random_state": 0}}, "random_state is not for jobs"),
            ({"parameters": {"nodes": 3}}, "no parameter of the learner"),
            ({"parameters": "epsilon"}, "names with values"),
            ({"study": "port"}, "a port of its own"),
        ],
    )
    def test_a_job_of_a_stranger(self, files, changed, why):
        given = {"study": STUDY, "learner": "topdown", "parameters": GIVEN, **changed}
        with pytest.raises(PrivetError, match=why):
            fit_job(files.folder, channel=None, tell=print, **given)

    def test_the_commands_for_ports_refuse_it(self, files, capsys, monkeypatch):
        monkeypatch.setattr("warnings.showwarning", None)
        for words, why in (
            (["party", "serve", "--policy", files.houses[0].folder / "party.toml"], "by itself"),
            (["fit", "--parties", files.file, "--out", files.folder / "m.json"], "submit a job"),
        ):
            monkeypatch.setattr("sys.argv", ["privet", *map(str, words)])
            with pytest.raises(SystemExit) as stopped:
                main()
            assert stopped.value.code == 2
            assert why in " ".join(capsys.readouterr().err.split())
