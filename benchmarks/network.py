"""What a network costs: fits over gRPC with TLS on both sides beside fits over pipes.

Four parties, each a process of its own, on this machine; TopDown, epsilon 1. Every set and protocol
is learnt in turn over pipes (``ProcessLink``), over the network by parties without a journal, over
the network by sites as ``privet party serve`` runs them (policy, journal, ledger file), and the
last again with a delay on the way, by a relay of our own. Seconds are those of ``fit`` alone, with
all processes up and one fit before. How deep a tree grows depends on the noise, and how long a fit
takes on the depth: so the parties draw the same noise in every way (by seeds: nothing of this is
private), the n-th fits of all ways ask the same questions, which is checked, and what is compared
are pairs of these. Then rounds of 12 kB in both directions.

Run ``python benchmarks/network.py``; it writes numbers, a table and a plot to
``benchmarks/results``. Needs the benchmark data sets, and ``privet[network]``.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _catalogue import FOLDER, load, schema_of
from _report import command, machine, table, versions

from privet import Budget, Schema, TopDownClassifier, __version__
from privet.federation import FederatedTable, Party, ProcessLink
from privet.federation.links import _reply
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network import Certificate, Dialler, Identity, Port, Study, digest_of
from privet.network.policy import Policy
from privet.network.site import Site
from privet.privacy import LedgerStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "network"))

RESULTS = Path(__file__).parent / "results"
PROTOCOLS = ("noisy-counts", "local-rnm", "secure-sum")
PARTIES = ("north", "south", "east", "west")
STUDY = "benchmark"
#: What the files of results are called.
NAME = "network"
#: What a study may spend: enough for all fits.
PLENTY = 50.0
WAYS = {
    "pipe": "pipes",
    "plain": "network",
    "site": "network, journal",
    "delayed": "network, journal, delay",
}
#: What networked fits may take, in fits over pipes.
ALLOWED = {"noisy-counts": 1.5, "local-rnm": 1.5, "secure-sum": 2.0}
HEAD = (
    "set", "rows", "protocol", "way", "seconds", "least", "most", "repeats",
    "up_most_kB", "down_most_kB", "both_least_kB", "cpu_most_s", "cpu_coordinator_s",
    "over_pipes", "journal_on_over_off",
)  # fmt: skip


# Processes of parties


def make(folder: str, name: str) -> Party:
    """Make a party from its folder."""
    rows = pq.read_table(Path(folder) / name / "rows.parquet")
    schema = Schema.from_toml(Path(folder) / "schema.toml")
    return Party(name, rows, None, schema, Budget(PLENTY), random_state=PARTIES.index(name))


class Plain:
    """A party without a journal: it answers every question anew."""

    def __init__(self, party: Party) -> None:
        self.party, self.name, self.last = party, party.name, 0

    def greet(self, _: str) -> dict[str, Any]:
        """See ``Answering``."""
        schema = digest_of(self.party.table.schema)
        return {"version": __version__, "schema": schema, "name": self.name, "last": self.last}

    def reply(self, _: str, message: bytes) -> bytes:
        """See ``Answering``."""
        asked = decode_as(Request, message)
        self.last = max(self.last, asked.number)
        return _reply(self.party, "", asked)

    def close(self) -> None:
        """See ``Answering``."""
        self.party.close()


class Echo(Plain):
    """Answers with what it was sent."""

    def reply(self, _: str, message: bytes) -> bytes:
        """See ``Answering``."""
        asked = decode_as(Request, message)
        return encode(Reply(asked.number, "answer", asked.given[0]))


def run_party(folder: str, name: str, kind: str, port: str) -> None:
    """Dial, and answer: the process of a party over the network."""
    home = Path(folder) / name
    identity = Identity(home / f"{name}.key", home / f"{name}.pem")
    answering: Any
    if kind == "site":
        policy = Policy.from_toml(home / "party.toml")
        answering = Site(
            policy,
            identity,
            lambda _: pq.read_table(home / "rows.parquet"),
            random_state=PARTIES.index(name),
        )
    else:
        answering = (Echo if kind == "echo" else Plain)(make(folder, name))
    coordinator = Certificate.read(Path(folder) / "coordinator.pem", "the coordinator")
    Dialler(answering, f"127.0.0.1:{port}", identity, coordinator, pause=1.0).run()


def run_relay(port: str, delay: str) -> None:
    """Pass bytes on, later: a process of its own. Says its port."""
    from sites import Relay

    with Relay(int(port), float(delay)) as relay:
        print(relay.number, flush=True)
        sys.stdin.read()


# A folder with everything


def free_port() -> int:
    from sites import free_port as found

    return int(found())


def prepare(folder: Path, data: Path, name: str) -> int:
    """Write rows, keys, policies and ledgers of all parties; return how many rows there are."""
    found = load(data, name)
    schema = schema_of(found)
    schema.to_toml(folder / "schema.toml")
    frame = found.X.assign(**{schema.target: found.y})
    order = np.random.default_rng(0).permutation(len(frame))
    coordinator = Identity.make(folder / "coordinator.key", folder / "coordinator.pem", "c")
    prints = {}
    for each in PARTIES:
        (folder / each).mkdir()
        made = Identity.make(folder / each / f"{each}.key", folder / each / f"{each}.pem", each)
        prints[each] = made.fingerprint
    for place, each in enumerate(PARTIES):
        home = folder / each
        mine = frame.iloc[order[place :: len(PARTIES)]]
        pq.write_table(pa.Table.from_pandas(mine, preserve_index=False), home / "rows.parquet")
        LedgerStore.create(home / "table.ledger", Budget(PLENTY), columns=schema.columns)
        peers = [f'{name} = "{mark}"' for name, mark in prints.items() if name != each]
        lines = [
            f'name = "{each}"\ncoordinator = "127.0.0.1:1"\ndata = "rows.parquet"',
            'schema = "../schema.toml"\nledger = "table.ledger"\nstate = "state"',
            f'[tls]\nkey = "{each}.key"\ncertificate = "{each}.pem"',
            f'coordinator = "../coordinator.pem"\nfingerprint = "{coordinator.fingerprint}"',
            f'[studies.{STUDY}]\nepsilon = {PLENTY}\nuntil = 2099-01-01\napprove = "policy"',
            f"[studies.{STUDY}.peers]",
            *peers,
        ]
        (home / "party.toml").write_text("\n".join(lines) + "\n")
    return len(frame)


def study_of(folder: Path, protocol: str, port: int, kind: str) -> Study:
    parties = {name: Certificate.read(folder / name / f"{name}.pem", name) for name in PARTIES}
    return Measured(
        name=STUDY,
        listen=f"127.0.0.1:{port}",
        schema=Schema.from_toml(folder / "schema.toml"),
        identity=Identity(folder / "coordinator.key", folder / "coordinator.pem"),
        parties=parties,
        protocol=protocol,
        patience=600.0,
        runs=folder / f"runs-{protocol}-{kind}",
    )


class Measured(Study):
    """A study whose lines can be looked at after a fit."""

    @contextmanager
    def open(self):
        """See ``Study``."""
        with super().open() as lines:
            LAST.clear()
            LAST.update(lines)
            yield lines


#: The lines of the last networked fit.
LAST: dict[str, Any] = {}


class Timed(TopDownClassifier):
    """TopDown that knows how long it took."""

    def fit(self, X: Any, y: Any = None) -> Timed:
        """See ``TopDownClassifier``."""
        start, cpu = time.perf_counter(), time.process_time()
        super().fit(X, y)
        self.seconds_ = time.perf_counter() - start
        self.cpu_ = time.process_time() - cpu
        return self


@contextmanager
def party_processes(folder: Path, kind: str, port: int):
    started = [
        subprocess.Popen([sys.executable, __file__, "--party", str(folder), each, kind, str(port)])
        for each in PARTIES
    ]
    try:
        yield [psutil.Process(each.pid) for each in started]
    finally:
        for each in started:
            each.terminate()
            each.wait()


@contextmanager
def relay_process(port: int, delay: float):
    relay = subprocess.Popen(
        [sys.executable, __file__, "--relay", str(port), str(delay)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield int(relay.stdout.readline())
    finally:
        relay.stdin.close()
        relay.wait()


# Measurements


class Way:
    """One way in which the parties of a set are asked, with its processes up."""

    def __init__(self, kind: str, folder: Path, protocol: str, delay: float) -> None:
        self.kind, self._stack = kind, ExitStack()
        self.seconds, self.cpus, self.own = [], [], []
        #: What was learnt.
        self.trees: list[Any] = []
        self.bytes: list[tuple[int, int]] = []
        if kind == "pipe":
            links = [ProcessLink(each, make, (str(folder), each)) for each in PARTIES]
            self._table = self._stack.enter_context(FederatedTable(links, protocol=protocol))
            self._processes = [psutil.Process(link._process.pid) for link in links]
            return
        port = free_port()
        self._study = study_of(folder, protocol, port, kind)
        if kind == "delayed":
            port = self._stack.enter_context(relay_process(port, delay))
        which = "plain" if kind == "plain" else "site"
        self._processes = self._stack.enter_context(party_processes(folder, which, port))

    def fit(self, *, keep: bool) -> None:
        """Learn once; note what it took."""
        before = self._cpu()
        estimator = Timed(epsilon=1.0)
        if self.kind == "pipe":
            estimator.fit(self._table)
        else:
            self._study.fit(estimator)
        spent = [after - start for after, start in zip(self._cpu(), before, strict=True)]
        if not keep:
            return
        self.trees.append(estimator.predictor_)
        self.seconds.append(estimator.seconds_)
        self.own.append(estimator.cpu_)
        self.cpus.append(max(spent))
        if self.kind != "pipe":
            self.bytes = [(LAST[each].received, LAST[each].sent) for each in PARTIES]

    def _cpu(self) -> list[float]:
        return [sum(each.cpu_times()[:2]) for each in self._processes]

    def close(self) -> None:
        """End the processes."""
        self._stack.close()

    def over(self, other: Way) -> str:
        """Return the median over pairs of fits, of this one's seconds in the other's."""
        if self.trees != other.trees:
            raise RuntimeError(f"fits by {self.kind} and {other.kind} did not ask the same")
        ratios = np.array(self.seconds) / np.array(other.seconds)
        return f"{np.median(ratios):.3f}"

    def row(self, name: str, rows: int, protocol: str, *over: str) -> list[str]:
        """Return a line of the results."""
        up = down = least = ""
        if self.bytes:
            up = f"{max(one for one, _ in self.bytes) / 1000:.0f}"
            down = f"{max(other for _, other in self.bytes) / 1000:.0f}"
            least = f"{min(map(sum, self.bytes)) / 1000:.0f}"
        return [
            name, str(rows), protocol, self.kind, f"{np.median(self.seconds):.3f}",
            f"{min(self.seconds):.3f}", f"{max(self.seconds):.3f}", str(len(self.seconds)),
            up, down, least, f"{np.median(self.cpus):.2f}", f"{np.median(self.own):.2f}",
            *over, *[""] * (2 - len(over)),
        ]  # fmt: skip


def measure(folder: Path, name: str, rows: int, protocol: str, given: Any) -> list[list[str]]:
    found = []
    with ExitStack() as stack:
        ways = []
        for kind in ("pipe", "plain", "site"):
            way = Way(kind, folder, protocol, given.delay)
            stack.callback(way.close)
            ways.append(way)
            way.fit(keep=False)
        for _ in range(given.repeats):  # in turn, so that a busy minute is everybody's
            for way in ways:
                way.fit(keep=True)
        pipe, plain, site = ways
        found.append(pipe.row(name, rows, protocol))
        found.append(plain.row(name, rows, protocol, plain.over(pipe)))
        found.append(site.row(name, rows, protocol, site.over(pipe), site.over(plain)))
    way = Way("delayed", folder, protocol, given.delay)
    try:
        way.fit(keep=False)
        way.fit(keep=True)
        found.append(way.row(name, rows, protocol))
    finally:
        way.close()
    return found


def measure_rounds(folder: Path, count: int = 300, size: int = 12_000) -> list[float]:
    """Return the seconds of rounds: a message to each party, and one back from each."""
    port = free_port()
    study = study_of(folder, "noisy-counts", port, "echo")
    message = encode(Request(0, 0, "echo", (bytes(size),)))
    found = []
    with (
        party_processes(folder, "echo", port),
        Port(study.listen, study.identity, study.parties, STUDY, digest_of(study.schema)) as opened,
    ):
        lines = list(opened.lines.values())
        assert all(line.wait(60) for line in lines)
        for number in range(count + 20):
            start = time.perf_counter()
            for line in lines:
                line.ask(0, message)
            for line in lines:
                assert line.take(20) is not None
            if number >= 20:
                found.append(time.perf_counter() - start)
    return found


# Reports


def write(rows: list[list[str]], rounds: list[float], given: Any) -> None:
    out = Path(given.out)
    with (out / f"{NAME}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    by = {(row[0], row[2], row[3]): row for row in rows}
    lines = []
    for row in rows:
        name, count, protocol, kind, seconds = row[:5]
        over, journal = (f"{float(ratio):.2f}" if ratio else "" for ratio in row[13:])
        most = f"{row[8]} / {row[9]}" if row[8] else ""
        even = f"{(float(row[8]) + float(row[9])) / float(row[10]):.2f}" if row[8] else ""
        lines.append(
            [name, f"{int(count):,}", protocol, WAYS[kind], f"{float(seconds):.2f}",
             f"{row[5]} - {row[6]}", over, journal, most, even, row[11], row[12]]
        )  # fmt: skip
    held = []
    for (name, protocol, kind), row in by.items():
        if kind == "site":
            over, journal = map(float, row[13:])
            verdict = "held" if over <= ALLOWED[protocol] else "missed"
            kept = "held" if journal <= 1.3 else "missed"
            held.append(
                [name, protocol, f"{over:.2f}", f"<= {ALLOWED[protocol]}", verdict,
                 f"{journal:.2f}", "<= 1.3", kept]
            )  # fmt: skip
    tail = ", ".join(f"{1000 * value:.1f}" for value in np.quantile(rounds, [0.05, 0.95]))
    median = 1000 * float(np.median(rounds))
    first = table(
        ["set", "rows", "protocol", "way", "seconds", "least - most", "over pipes", "journal",
         "kB up / down", "uneven", "CPU party", "CPU coordinator"],
        lines,
    )  # fmt: skip
    second = table(
        ["set", "protocol", "network with journal over pipes", "asked for", "",
         "journal on over off", "asked for", ""],
        held,
    )  # fmt: skip
    text = (
        "# Parties over a network\n\n"
        f"`{command()}`; {machine()}; {versions('grpcio', 'cryptography')}.\n"
        "Four parties, processes of their own on one machine; TopDown, epsilon 1, all other "
        "options as they are. Seconds of `fit`: median of the repeats, with all processes up and "
        "one fit before; the first three ways take turns, and their parties draw the same noise, "
        "so that their n-th fits ask the same questions. *Over pipes*: this way's seconds over "
        "those of `ProcessLink`, median over such pairs of fits. *Journal*: over the same without "
        "a journal, likewise. kB: up and down in the last fit, each "
        "of the party with the most; *uneven*: their sum over the bytes of the party with the "
        "least. CPU seconds: of the busiest party, and of the coordinator. *Delay*: "
        f"{1000 * given.delay:.0f} ms each way, by a relay; one fit.\n\n"
        f"{first}\nWhat was asked for:\n\n{second}\n"
        "A round of 12 kB to each of four parties and back, with TLS on both sides, "
        f"{len(rounds)} rounds: median {median:.2f} ms (5 and 95 per cent: {tail} ms); asked for: "
        "below 5 ms.\n"
    )
    (out / NAME).with_suffix(".md").write_text(text)
    plot(by, out, given)


def plot(by: dict[tuple[str, str, str], list[str]], out: Path, given: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _, _ in by))
    figure, axes = plt.subplots(1, len(names), figsize=(5 * len(names), 3.2), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        for place, kind in enumerate(WAYS):
            heights = [float(by[name, protocol, kind][4]) for protocol in given.protocols]
            axis.bar(np.arange(len(heights)) + 0.2 * place - 0.3, heights, 0.2, label=WAYS[kind])
        axis.set_xticks(range(len(given.protocols)), given.protocols)
        axis.set_title(name)
        axis.set_yscale("log")
        axis.set_ylabel("seconds per fit")
    axes[0][0].legend(fontsize=7, title=f"delay: {1000 * given.delay:.0f} ms", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(out / f"{NAME}.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default=FOLDER)
    parser.add_argument("--out", default=RESULTS)
    parser.add_argument("--sets", nargs="+", default=["adult", "covertype"])
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS, choices=PROTOCOLS)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--delay", type=float, default=0.01, help="seconds, each way")
    given = parser.parse_args()
    rows, rounds = [], []
    for name, protocol in itertools.product(given.sets, given.protocols):
        with tempfile.TemporaryDirectory() as temporary:  # a study's journal is of one protocol
            folder = Path(temporary)
            count = prepare(folder, Path(given.data), name)
            rounds = rounds or measure_rounds(folder)
            rows += measure(folder, name, count, protocol, given)
            print(*rows[-4:], sep="\n", flush=True)
    write(rows, rounds, given)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--party"]:
        run_party(*sys.argv[2:])
    elif sys.argv[1:2] == ["--relay"]:
        run_relay(*sys.argv[2:])
    else:
        main()
