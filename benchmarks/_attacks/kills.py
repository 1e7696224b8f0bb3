"""Kill ``privet fit`` with signal 9, at chosen points and at random moments; then read the ledger.

Every victim is a process of its own that runs the real command. Points are found by running the
command once: before and after every reservation, charge, settlement and saving, every SQL
statement, and every renaming or syncing of a file; and, finer, every call and return of a function
of Privet from the reservation to the end. Each victim asks for an epsilon that no other has, so
that its line in the ledger is known. After each kill:

* ``privet ledger`` shows the file, without an unexpected error;
* 0 <= spent <= total, and what is left is the difference;
* what the victim's answers cost that could have left (all that it had charged) is in the ledger;
* at the victim's ``--out`` is nothing, the whole new model (and the ledger has paid for it), or the
  whole model that was there before.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from _attacks.outside import SCALE, Found, Place, command, replacing

SEED = 17
AT_POINTS, AT_CALLS, AT_TIMES = (round(n * SCALE) for n in (200, 150, 150))
#: Victims of one ledger, and at once where moments are random.
PER_LEDGER, AT_ONCE = 12, 4


def at_points(folder: Path) -> Iterator[Found]:
    """Kill at named points, one after the other, each as often as the others."""
    seen = Victims(folder).rehearse("points")
    order = [(label, number) for label, count in seen.items() for number in range(count)]
    random.Random(SEED).shuffle(order)
    victims = Victims(folder)
    for turn in range(AT_POINTS):
        victims.one_by_one(Points(order[turn % len(order)]))
    yield victims.told(
        "kill -9 at named points", f"order shuffled with seed {SEED}", f"{len(order)} points, "
    )


def at_calls(folder: Path) -> Iterator[Found]:
    """Kill at the n-th call or return of a function of Privet, from the reservation on."""
    seen = Victims(folder).rehearse("calls")
    generator = random.Random(SEED + 1)
    victims = Victims(folder)
    while victims.killed < AT_CALLS:
        victims.one_by_one(Calls(generator.randrange(seen["reserve"], seen["end"])))
    count = seen["end"] - seen["reserve"]
    yield victims.told(
        "kill -9 at a call or return of a function after the reservation begins",
        f"drawn with seed {SEED + 1}",
        f"{count:,} points, ",
    )


def at_times(folder: Path) -> Iterator[Found]:
    """Kill at random moments, several processes at once on one ledger."""
    victims = Victims(folder)
    generator = random.Random(SEED + 2)
    longest = 1.0
    while victims.killed < AT_TIMES:
        before = victims.ended
        victims.at_once([generator.random() * longest for _ in range(AT_ONCE)])
        # As long as fits take here and now, with as many at once: some, not most, shall end.
        longest *= 0.8 if victims.ended - before > AT_ONCE / 3 else 1.1
    yield victims.told(
        f"kill -9 at random moments, {AT_ONCE} processes at once on one ledger",
        f"drawn with seed {SEED + 2}",
    )


ATTACKS = [at_points, at_calls, at_times]


# The victims


class Points:
    """Runs in the victim: kills it at a point, or, without one, counts what there is."""

    def __init__(self, point: tuple[str, int] | None) -> None:
        self.point = point
        self.seen: Counter[str] = Counter()

    def start(self) -> None:
        import privet.model
        from privet.privacy import Ledger, LedgerStore, Reservation

        self.wrap(LedgerStore, "reserve")
        self.wrap(Reservation, "settle")
        self.wrap(Ledger, "charge")
        self.wrap(privet.model.Model, "save")
        for name in ("replace", "rename", "link", "fsync", "chmod", "fchmod"):
            self.wrap(os, name)
        event = self.event

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
                word = statement.split(maxsplit=1)[0].upper()
                event(f"before SQL {word}")
                cursor = super().execute(statement, *given)
                event(f"after SQL {word}")
                return cursor

        connect = sqlite3.connect
        sqlite3.connect = lambda *given, **more: connect(  # type: ignore[assignment]
            *given, **{"factory": Connection, **more}
        )

    def wrap(self, owner: Any, name: str) -> None:
        wrapped = getattr(owner, name, None)
        if wrapped is None:
            return

        def around(*given: Any, **more: Any) -> Any:
            self.event(f"before {name}")
            found = wrapped(*given, **more)
            self.event(f"after {name}")
            return found

        setattr(owner, name, around)

    def event(self, label: str) -> None:
        if self.point == (label, self.seen[label]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen[label] += 1


class Calls:
    """Runs in the victim: kills it at the n-th call or return of a function of Privet."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.count = 0
        self.seen: Counter[str] = Counter()

    def start(self) -> None:
        sys.setprofile(self.step)

    def step(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or "/privet/" not in code.co_filename:
            return
        if code.co_name == "reserve" and event == "call" and not self.seen["reserve"]:
            self.seen["reserve"] = self.count
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1
        self.seen["end"] = self.count


class Victims:
    """Starts processes that fit, kills them, and checks the books after each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed = 0
        self.ended = 0
        self.number = 0
        self.wrong: list[str] = []
        self.states: Counter[str] = Counter()
        self.strays = 0
        self.ledgers = 0
        self.place: Place | None = None
        #: Of every victim on this ledger: its epsilon, its target, and what it charged.
        self.books: list[tuple[float, Path, float]] = []
        self.before = folder / "before.json"

    def rehearse(self, kind: str) -> Counter[str]:
        """Run the command once to its end; return the points that it passes."""
        victim: Any = Points(None) if kind == "points" else Calls(None)
        self.renew(8)
        pid, _, pipe = self.begin(victim, tell=True)
        told = _read_all(pipe)
        os.waitpid(pid, 0)
        seen: Counter[str] = Counter()
        for line in told:
            if line.startswith("seen "):
                _, count, label = line.split(" ", 2)
                seen[label] = int(count)
        assert seen, "the command did not run"
        return seen

    def renew(self, most: int) -> None:
        """Open a new ledger for this many victims, with a little less than all of them may ask."""
        self.ledgers += 1
        inner = self.folder / f"{id(self)}-{self.ledgers}"
        self.place = Place.make(inner, total=round(0.001 * (most - 0.5), 6))
        self.books = []
        if not self.before.exists():
            assert self.place.fit(self.before, books=False, epsilon=0.25).code == 0

    def one_by_one(self, victim: Points | Calls) -> None:
        if self.place is None or len(self.books) >= PER_LEDGER:
            self.renew(PER_LEDGER)
        pid, index, pipe = self.begin(victim)
        told = _read_all(pipe)
        self.count(os.waitpid(pid, 0)[1])
        self.charge(index, told)
        self.check()

    def at_once(self, moments: list[float]) -> None:
        if self.place is None or len(self.books) + len(moments) > PER_LEDGER + AT_ONCE:
            self.renew(PER_LEDGER)
        start = time.monotonic()
        alive = []
        for moment in sorted(moments):
            pid, index, pipe = self.begin(Points(None))
            alive.append((start + moment, pid, index, pipe))
        for end, pid, index, pipe in alive:
            time.sleep(max(0.0, end - time.monotonic()))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.count(os.waitpid(pid, 0)[1])
            self.charge(index, _read_all(pipe))
            self.check(alone=False)
        self.check()

    def begin(self, victim: Points | Calls, *, tell: bool = False) -> tuple[int, int, int]:
        """Start a process that fits."""
        assert self.place is not None
        index = len(self.books)
        epsilon = 0.001 + index * 1e-6
        out = self.place.folder / f"model{index}.json"
        if index % 2:
            shutil.copy(self.before, out)
        self.books.append((epsilon, out, 0.0))
        args = ["fit", self.place.data, "--schema", self.place.schema, "--learner", "sulq",
                "--max-depth", "1", "--epsilon", repr(epsilon), "--ledger", self.place.ledger,
                "--out", out, *replacing()]  # fmt: skip
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _be_victim(victim, [str(arg) for arg in args], write, tell=tell)
        os.close(write)
        return pid, index, read

    def count(self, status: int) -> None:
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.killed += 1
        else:
            self.ended += 1

    def charge(self, index: int, told: list[str]) -> None:
        """Write down what a victim said that it had charged."""
        epsilon, out, _ = self.books[index]
        charged = [float(Fraction(line.split()[1])) for line in told if line.startswith("charged")]
        self.books[index] = (epsilon, out, max(charged, default=0.0))

    def check(self, *, alone: bool = True) -> None:
        """Check all that is promised of the ledger and the models."""
        from privet import load
        from privet.errors import PrivetError
        from privet.privacy import LedgerStore

        assert self.place is not None
        if alone:
            shown = command("ledger", self.place.ledger)
            if shown.code != 0:
                self.wrong.append(f"privet ledger: {shown}")
        # Models first: others are still at work, and whatever is there now must be paid for by now.
        cards: dict[Path, Any] = {}
        for _, out, _ in self.books:
            if out.exists():
                try:
                    cards[out] = load(out).privacy
                except PrivetError:
                    cards[out] = None
        try:
            store = LedgerStore(self.place.ledger)
            draws, total = store.withdrawals, float(store.budget.limit)
            spent, left = float(store.spent), float(store.left)
        except PrivetError as error:
            self.wrong.append(f"the ledger does not open: {type(error).__name__}")
            return
        if alone and (not 0 <= spent <= total or abs(total - spent - left) > 1e-12):
            self.wrong.append("spent and left do not fit the total")
        paid = {round(float(draw.reserved), 9): float(draw.counted) for draw in draws}
        for epsilon, out, charged in self.books:
            counted = paid.get(round(epsilon, 9), 0.0)
            if counted < charged * (1 - 1e-9):
                self.wrong.append("an answer could have left unpaid")
            state = "nothing was reserved" if counted == 0 else "reserved, no model"
            if out in cards:
                card = cards[out]
                if card is None:
                    self.wrong.append("a broken model is at --out")
                    continue
                if card.requested_epsilon != 0.25:  # it is not the one from before
                    state = "a whole model"
                    if counted < card.epsilon * (1 - 1e-9):
                        self.wrong.append("a model is there that was not paid for")
            elif alone and out.name.removesuffix(".json").endswith(tuple("13579")):
                self.wrong.append("the model that was at --out before is gone")
        if alone:
            self.states[state] += 1
            known = {self.place.data, self.place.schema, self.place.ledger}
            known |= {out for _, out, _ in self.books}
            strays = [p for p in self.place.folder.iterdir() if p not in known]
            self.strays = max(self.strays, len(strays))

    def told(self, attack: str, how: str, points: str = "") -> Found:
        wrong = Counter(self.wrong)
        last = ", ".join(f"{state}: {count}" for state, count in self.states.items())
        outcome = (
            f"{points}{self.killed} killed ({self.ended} had ended before), "
            f"{self.ledgers} ledgers: "
            + ("; ".join(f"{what}: {count}" for what, count in wrong.items()) or "true after each")
            + f" (last victim: {last}; at most {self.strays} unfinished files left in a folder)"
        )
        return Found(attack, f"is the ledger true after each; {how}", outcome, bool(wrong),
                     self.killed, "kills")  # fmt: skip


def _be_victim(victim: Points | Calls, args: list[str], pipe: int, *, tell: bool) -> None:
    """Run the command, and say what was charged as soon as it is; never return."""
    code = 0
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        _tell_charges(pipe)
        from privet.cli import main

        sys.argv = ["privet", *args]
        victim.start()
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.setprofile(None)
        if tell:
            for label, count in victim.seen.items():
                os.write(pipe, f"seen {count} {label}\n".encode())
        os._exit(code)


def _tell_charges(pipe: int) -> None:
    """Write what a fit has charged to a pipe, before the answer can leave."""
    from privet.privacy import Ledger

    charge: Callable[..., Any] = Ledger.charge

    def told(ledger: Any, *given: Any, **more: Any) -> Any:
        found = charge(ledger, *given, **more)
        os.write(pipe, f"charged {Fraction(ledger.total.epsilon)}\n".encode())
        return found

    Ledger.charge = told  # type: ignore[method-assign]


def _read_all(pipe: int) -> list[str]:
    told = b""
    while block := os.read(pipe, 1 << 16):
        told += block
    os.close(pipe)
    return told.decode().splitlines()
