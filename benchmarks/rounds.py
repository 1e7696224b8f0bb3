"""Count the rounds and bytes that fits of several parties take, protocol by protocol.

All parties live in this process, and every question and answer is made into the bytes that would be
sent. A round is a question to all parties with their answers. Run ``python benchmarks/rounds.py``;
it writes ``rounds.csv`` and ``rounds.md`` to ``benchmarks/results``. Needs the benchmark data sets.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from _catalogue import FOLDER, load, schema_of
from _report import command, machine, table

PROTOCOLS = ("noisy-counts", "local-rnm", "secure-sum")
LEARNERS = ("TopDown", "DiffPID3", "PrivaTree", "DiffPC45")
HEAD = (
    "learner", "protocol", "parties", "rounds", "up_most", "up_least", "down_most", "down_least",
    "both_most", "both_least", "largest_message", "cpu_s",
)  # fmt: skip


class Counted:
    """A link to a party in this process that counts what a line would carry."""

    def __init__(self, party: Any) -> None:
        from privet.federation import LocalLink

        self._link = LocalLink(party)
        self.name = party.name
        self.rounds = self.up = self.down = self.largest = 0

    def send(self, target: int, question: str, *given: Any, **options: Any) -> int:
        """See ``Link``."""
        from privet.federation.wire import Request, encode

        size = len(encode(Request(1, target, question, given, options)))
        self.down += size
        self.largest = max(self.largest, size)
        self.rounds += 1
        return self._link.send(target, question, *given, **options)

    def receive(self, number: int) -> Any:
        """See ``Link``."""
        from privet.federation.wire import Reply, encode

        answer = self._link.receive(number)
        size = len(encode(Reply(1, "answer", answer)))
        self.up += size
        self.largest = max(self.largest, size)
        return answer

    def close(self) -> None:
        """See ``Link``."""
        self._link.close()


def make_learner(name: str, epsilon: float) -> Any:
    import privet

    if name == "PrivaTree":
        return privet.PrivaTreeClassifier(epsilon, binning="scales")
    return getattr(privet, f"{name}Classifier")(epsilon)


def measure(data: Any, learner: str, protocol: str, parties: int, epsilon: float) -> dict[str, Any]:
    """Fit once, and return what it took."""
    from privet import Budget
    from privet.federation import FederatedTable, Party

    schema = schema_of(data)
    owner = np.random.default_rng(0).integers(parties, size=len(data.y))
    links = [
        Counted(
            Party(f"party {place}", data.X.iloc[mine], data.y[mine], schema, Budget(epsilon),
                  random_state=place)
        )
        for place in range(parties)
        for mine in [np.flatnonzero(owner == place)]
    ]  # fmt: skip
    start = time.process_time()
    with FederatedTable(links, protocol=protocol) as held:
        make_learner(learner, epsilon).fit(held)
    cpu = time.process_time() - start
    ups, downs = [link.up for link in links], [link.down for link in links]
    both = [link.up + link.down for link in links]
    return {
        "learner": learner,
        "protocol": protocol,
        "parties": parties,
        "rounds": max(link.rounds for link in links),
        "up_most": max(ups),
        "up_least": min(ups),
        "down_most": max(downs),
        "down_least": min(downs),
        "both_most": max(both),
        "both_least": min(both),
        "largest_message": max(link.largest for link in links),
        "cpu_s": round(cpu, 1),
    }


def report(rows: list[dict[str, Any]], name: str, epsilon: float, out: Path) -> None:
    """Write the numbers and a table."""
    with (out / "rounds.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        writer.writeheader()
        writer.writerows(rows)
    head = ("learner", "protocol", "parties", "rounds", "MB up", "MB down", "most / least bytes",
            "largest message, MB", "CPU s, all parties")  # fmt: skip
    lines = [
        (
            row["learner"],
            row["protocol"],
            str(row["parties"]),
            f"{int(row['rounds']):,}",
            f"{int(row['up_most']) / 1e6:.2f}",
            f"{int(row['down_most']) / 1e6:.2f}",
            f"{int(row['both_most']) / int(row['both_least']):.3f}",
            f"{int(row['largest_message']) / 1e6:.2f}",
            str(row["cpu_s"]),
        )
        for row in rows
    ]
    text = (
        "# Rounds and bytes of parties\n\n"
        f"One fit each on {name}, epsilon {epsilon:g}, rows divided at random. A round is a "
        "question to all parties and their answers; bytes are those of the party with the most, as "
        "they would be sent, and the ratio is that of the party with the most to the one with the "
        "least. All parties, and the dealer, run in one process: CPU is of all of them.\n\n"
        f"{table(head, lines)}\n`{command()}`; {machine()}\n"
    )
    (out / "rounds.md").write_text(text)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", default="adult")
    parser.add_argument("--parties", type=int, nargs="+", default=[4])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    data = load(args.data, args.set)
    rows = []
    for learner in args.learners:
        for protocol in args.protocols:
            for parties in args.parties:
                rows.append(measure(data, learner, protocol, parties, args.epsilon))
                print(rows[-1], flush=True)
    report(rows, args.set, args.epsilon, args.out)


if __name__ == "__main__":
    main()
