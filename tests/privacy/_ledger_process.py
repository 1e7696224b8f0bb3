"""What the processes do that test_store.py starts, stops and kills. Run as a script.

race PATH AMOUNT COUNT    wait for a line, then draw COUNT times as fast as possible
stop PATH POINT           do one fit, and stand still at a point until killed
kills PATH SEED COUNT     fork COUNT processes that draw, answer and settle, and kill them all
"""

import contextlib
import functools
import json
import os
import random
import signal
import sqlite3
import sys
import time
from fractions import Fraction

from privet.errors import BudgetExceeded
from privet.privacy import Budget, Cost, LedgerStore

COLUMNS = ["age", "ill"]


def say(text):
    """One write of one line: a killed process leaves whole lines only."""
    os.write(1, (text + "\n").encode())


def race(path, amount, count):
    store = LedgerStore(path)
    say("ready")
    sys.stdin.readline()
    for _ in range(int(count)):
        try:
            reservation = store.reserve(Budget(Fraction(amount)), "race", columns=COLUMNS)
        except BudgetExceeded:
            say("refused")
        else:
            say(f"answer {reservation.id}")


class Stopping(sqlite3.Connection):
    """A connection that stands still before or after a statement."""

    point = ("", "", 0)
    spill = False

    def write_to_the_file(self):
        """Write more than the cache holds: the file itself is changed before the commit."""
        super().execute("PRAGMA cache_size = 1")
        row = "('x', 'x', '1/1000000', 0.0)"
        rows = ", ".join([row] * 2000)
        super().execute(f"INSERT INTO draws (purpose, asked, reserved, reserved_at) VALUES {rows}")

    def execute(self, statement, *arguments):
        when, start, _ = Stopping.point
        if when == "before" and statement.startswith(start):
            if Stopping.spill:
                self.write_to_the_file()
            stand_still()
        cursor = super().execute(statement, *arguments)
        if when == "after" and statement.startswith(start):
            stand_still()
        return cursor


def stand_still():
    when, start, passes = Stopping.point
    if passes:
        Stopping.point = (when, start, passes - 1)
        return
    say("stopped")
    while True:
        signal.pause()


#: When, at which statement, and how often that passes before.
POINTS = {
    "transaction begun": ("after", "BEGIN", 0),
    "draw written, not committed": ("before", "COMMIT", 0),
    "file half written": ("before", "COMMIT", 0),
    "draw committed": ("after", "COMMIT", 0),
    "settlement begun": ("after", "BEGIN", 1),
    "settlement written, not committed": ("before", "COMMIT", 1),
    "settlement committed": ("after", "COMMIT", 1),
    "books opened, not committed": ("before", "COMMIT", 0),
}


def stop(path, point):
    sqlite3.connect = functools.partial(sqlite3.connect, factory=Stopping)
    Stopping.point = POINTS[point]
    Stopping.spill = point == "file half written"
    if point.startswith("books"):
        LedgerStore.create(path, Budget(1), columns=COLUMNS)
    reservation = LedgerStore(path).reserve(Budget(Fraction(1, 2)), "fit", columns=COLUMNS)
    say("answer")
    reservation.settle(Cost.pure(Fraction(1, 8)), [])
    say("model")


def fit_for_ever(path, pipe, seed):
    """Draw, answer (the answers cost what they say), settle for that or not at all; repeat."""
    rng = random.Random(seed)
    store = LedgerStore(path)
    try:
        while True:
            reserved = Fraction(rng.randrange(1, 100), 10**6)
            reservation = store.reserve(Budget(reserved), "killed", columns=COLUMNS)
            spent = reserved * Fraction(rng.randrange(1, 11), 10)
            os.write(pipe, f"{reservation.id} {spent}\n".encode())
            if rng.random() < 0.7:
                reservation.settle(Cost.pure(spent), [])
    except BudgetExceeded:
        signal.pause()


def kills(path, seed, count):
    """Kill at least this many, and go on until there was enough to check on a slow machine, too."""
    rng = random.Random(int(seed))
    read, write = os.pipe()
    os.set_blocking(read, False)
    answers, killed, pace = b"", 0, 0.06
    alive = {}
    while killed < int(count) or answers.count(b"\n") < 60:
        while len(alive) < 4:
            number = rng.random()
            child = os.fork()
            if child == 0:
                try:
                    fit_for_ever(path, write, number)
                except BaseException as error:
                    os.write(2, f"{error!r}\n".encode())
                    os._exit(1)
            alive[child] = time.monotonic() + rng.random() * pace
        time.sleep(0.0005)
        for child, end in list(alive.items()):
            if time.monotonic() >= end:
                kill(child)
                del alive[child]
                killed += 1
                pace *= 1.02 if killed > int(count) else 1
        with contextlib.suppress(BlockingIOError):
            answers += os.read(read, 2**16)
    for child in alive:
        kill(child)
    with contextlib.suppress(BlockingIOError):
        answers += os.read(read, 2**16)
    say(json.dumps([line.split() for line in answers.decode().splitlines()]))


def kill(child):
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a process ended by itself"


if __name__ == "__main__":
    {"race": race, "stop": stop, "kills": kills}[sys.argv[1]](*sys.argv[2:])
