"""Sites for the tests, each with a policy, rows and a ledger file of its own."""

import shutil
import socket
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from privet import Budget, Categorical, Numeric, Schema
from privet.federation import Lost, Refused
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network.dealers import DealerSite
from privet.network.journal import Journal
from privet.network.keys import Certificate, Identity
from privet.network.policy import DealerPolicy, Policy
from privet.network.site import Site, cost_of, journal_path
from privet.network.study import Study
from privet.network.transport import Dialler
from privet.privacy import LedgerStore

STUDY = "readmission"
SCHEMA = Schema(
    {"x": Numeric(0, 1, bins=8), "c": Categorical(list("uvw"))}, target="y", classes=[0, 1]
)


def rows(count, seed):
    generator = np.random.default_rng(seed)
    x, c = generator.random(count), generator.choice(list("uvw"), count)
    y = ((x > 0.5) ^ (generator.random(count) < 0.05)).astype(int)
    return pa.table({"x": x, "c": c, "y": y})


class House:
    """The folder of one owner, and what a site in it does."""

    def __init__(self, folder, name="north", *, total=3.0, count=200, seed=0, **study):
        self.folder, self.name = Path(folder) / name, name
        self.folder.mkdir(parents=True)
        pyarrow.parquet.write_table(rows(count, seed), self.folder / "rows.parquet")
        SCHEMA.to_toml(self.folder / "schema.toml")
        LedgerStore.create(self.folder / "table.ledger", Budget(total), columns=SCHEMA.columns)
        Identity.make(self.folder / f"{name}.key", self.folder / f"{name}.pem", name)
        self.study = {"epsilon": 1.0, "approve": "policy", **study}
        self.limits = {}
        self.coordinator, self.mark = "localhost:7443", "ab" * 32
        self.peers, self.dealer = {}, {}
        self.write()

    def write(self, peers=None, **more):
        """Write the policy file, with other keys of the study perhaps."""
        self.study |= more
        self.peers = self.peers if peers is None else peers
        until = (datetime.now(UTC) + timedelta(days=1)).date()
        study = {"until": until, **self.study}
        lines = [
            f'name = "{self.name}"',
            f'coordinator = "{self.coordinator}"',
            'data = "rows.parquet"\nschema = "schema.toml"',
            'ledger = "table.ledger"\nstate = "state"',
            f'[tls]\nkey = "{self.name}.key"\ncertificate = "{self.name}.pem"',
            f'coordinator = "coordinator.pem"\nfingerprint = "{self.mark}"',
            "[limits]",
            *(f"{key} = {value}" for key, value in self.limits.items()),
            f"[studies.{STUDY}]",
            *(f"{key} = {_toml(value)}" for key, value in study.items()),
            f"[studies.{STUDY}.peers]",
            *(f'{name} = "{value}"' for name, value in self.peers.items()),
            f"[studies.{STUDY}.dealer]",
            *(f'{name} = "{value}"' for name, value in self.dealer.items()),
        ]
        (self.folder / "party.toml").write_text("\n".join(lines) + "\n")

    @property
    def policy(self):
        return Policy.from_toml(self.folder / "party.toml")

    @property
    def identity(self):
        return Identity(self.folder / f"{self.name}.key", self.folder / f"{self.name}.pem")

    def open(self, **options):
        return Site(
            self.policy,
            self.identity,
            lambda _: pyarrow.parquet.read_table(self.folder / "rows.parquet"),
            **options,
        )

    # What the owner sees

    @property
    def store(self):
        return LedgerStore(self.folder / "table.ledger")

    @property
    def journal(self):
        return journal_path(self.policy, STUDY)

    def books(self):
        """Return how many answers, and what they cost, by the journal and by the ledger file."""
        journal = Journal.look(self.journal)
        answers = list(journal.of_kind("answer"))
        spent = cost_of(answers[-1]).epsilon if answers else 0
        journal.close()
        found = self.store.study(STUDY)
        counted = (0, 0) if found is None else (found.answers, found.spent)
        return (len(answers), spent), counted


def _toml(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)


def houses(folder, names=("north", "south", "west"), **study):
    """Return several houses that know each other's fingerprints."""
    found = [House(folder, name, seed=seed, **study) for seed, name in enumerate(names)]
    know_each_other(found)
    return found


def know_each_other(found):
    prints = {each.name: each.identity.fingerprint for each in found}
    for each in found:
        each.write({name: mark for name, mark in prints.items() if name != each.name})


class Notary:
    """The folder of a dealer, whom the houses know, and who knows them."""

    def __init__(self, folder, known, name="notary"):
        self.folder, self.name = Path(folder) / name, name
        self.folder.mkdir()
        Identity.make(self.folder / f"{name}.key", self.folder / f"{name}.pem", name)
        self.parties = {each.name: each.identity.fingerprint for each in known}
        self.coordinator, self.mark = known[0].coordinator, "ab" * 32
        for each in known:
            each.dealer = {name: self.identity.fingerprint}
            each.write()

    @property
    def identity(self):
        return Identity(self.folder / f"{self.name}.key", self.folder / f"{self.name}.pem")

    def write(self):
        lines = [
            f'name = "{self.name}"\ncoordinator = "{self.coordinator}"',
            f'[tls]\nkey = "{self.name}.key"\ncertificate = "{self.name}.pem"',
            f'coordinator = "../coordinator.pem"\nfingerprint = "{self.mark}"',
            f"[studies.{STUDY}]",
            *(f'{name} = "{value}"' for name, value in self.parties.items()),
        ]
        (self.folder / "dealer.toml").write_text("\n".join(lines) + "\n")

    def open(self, **options):
        self.write()
        policy = DealerPolicy.from_toml(self.folder / "dealer.toml")
        return DealerSite(policy, self.identity, **options)


class Town:
    """Several houses and a coordinator, on one machine."""

    def __init__(self, folder, names=("north", "south"), protocol="noisy-counts", **study):
        self.folder, self.houses = Path(folder), houses(folder, names, **study)
        mine = Identity.make(
            self.folder / "coordinator.key", self.folder / "coordinator.pem", "coordinator"
        )
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        SCHEMA.to_toml(self.folder / "schema.toml")
        lines = [
            f'name = "{STUDY}"\nlisten = "127.0.0.1:{port}"\nschema = "schema.toml"',
            f'protocol = "{protocol}"\npatience = 600',
            '[tls]\nkey = "coordinator.key"\ncertificate = "coordinator.pem"',
        ]
        for house in self.houses:
            house.coordinator, house.mark = f"127.0.0.1:{port}", mine.fingerprint
            shutil.copy(self.folder / "coordinator.pem", house.folder)
            house.write()
            lines.append(
                f'[parties.{house.name}]\ncertificate = "{house.name}/{house.name}.pem"\n'
                f'fingerprint = "{house.identity.fingerprint}"'
            )
        (self.folder / "study.toml").write_text("\n".join(lines) + "\n")

    @property
    def study(self):
        return Study.from_toml(self.folder / "study.toml")

    def add_dealer(self):
        """Let a notary deal, instead of the coordinator."""
        made = Notary(self.folder, self.houses)
        made.mark = self.houses[0].mark
        with (self.folder / "study.toml").open("a") as file:
            file.write(
                f'[dealer.notary]\ncertificate = "notary/notary.pem"\n'
                f'fingerprint = "{made.identity.fingerprint}"\n'
            )
        return made

    @contextmanager
    def dialling(self, *others):
        """Let all sites dial from threads of this process, and others who answer."""
        mine = Certificate.read(self.folder / "coordinator.pem", "the coordinator")
        answering = [(each.open(), each.identity) for each in (*self.houses, *others)]
        diallers = [
            Dialler(each, self.houses[0].coordinator, identity, mine, pause=0.1)
            for each, identity in answering
        ]
        threads = [Thread(target=each.run, daemon=True) for each in diallers]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            for each in diallers:
                each.stop()
            for each in threads:
                each.join(10)
            for site, _ in answering:
                site.close()


class SiteLink:
    """A coordinator's link to a site in this process, by bytes, with numbers for the study."""

    def __init__(self, site, *, first=None, study=STUDY):
        self.name, self.site, self.study = site.name, site, study
        self.next = site.greet(study)["last"] + 1 if first is None else first
        self.sent = {}
        self.received = {}

    def send(self, target, question, *given, **options):
        number, self.next = self.next, self.next + 1
        self.sent[number] = encode(Request(number, target, question, given, options))
        return number

    def receive(self, number):
        return self.open(self.site.reply(self.study, self.sent[number]), number)

    def open(self, message, number):
        self.received[number] = message
        reply = decode_as(Reply, message)
        assert reply.number == number
        if reply.kind == "refused":
            raise Refused(f"party {self.name!r} refuses: {reply.value}")
        if reply.kind == "failed":
            raise Lost(f"party {self.name!r} failed")
        return reply.value

    def ask(self, target, question, *given, **options):
        return self.receive(self.send(target, question, *given, **options))

    def close(self):
        pass
