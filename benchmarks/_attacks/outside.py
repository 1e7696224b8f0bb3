"""How an attack reaches Privet: the real command in a process of its own, with limits.

Importing Privet takes seconds, so the process of a part imports it once and forks: the child is a
process of its own that runs ``privet.cli.main``, as ``python -m privet`` does, and can be killed.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import math
import os
import pty
import re
import resource
import select
import signal
import sqlite3
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 60.0
GIGABYTES = 6
#: For trying out: part of the fits, kills and mutated files.
SCALE = float(os.environ.get("ATTACK_SCALE", "1"))

#: What the command says if all is well, in every version.
VERDICT = "the guarantee holds"


@dataclass(frozen=True)
class Found:
    """One measured outcome of an attack."""

    attack: str
    measured: str
    outcome: str
    #: Whether the attack reached its aim.
    broken: bool
    number: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Ended:
    """How a command ended: ``code`` is None if it was stopped at a limit, negative for a signal."""

    code: int | None
    out: bytes
    err: bytes
    #: Of the clock; and of the processor, which does not depend on who else works here.
    elapsed: float
    seconds: float
    megabytes: float

    @property
    def text(self) -> str:
        """All that was said, for people."""
        return (self.out + self.err).decode("utf-8", "replace")

    @property
    def graceful(self) -> bool:
        """Whether it did its work, or refused with one sentence."""
        return self.code in (0, 2) and b"Traceback" not in self.err and b"Error:" not in self.out

    @property
    def said(self) -> str:
        """The last words, in one short line."""
        lines = [line.strip() for line in visible(self.err or self.out).splitlines()]
        text = " ".join(line for line in lines if line)
        return text if len(text) <= 160 else text[:150] + " ..."

    def __str__(self) -> str:
        if self.code is None:
            return f"stopped after {self.elapsed:.0f} s"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if b"Traceback" in self.err:
            return f"exit {self.code}, a traceback"
        if b"Unexpected error" in self.err:
            found = re.search(rb"\((\w+)\)", self.err)
            name = found[1].decode() if found else "?"
            return f"exit {self.code}, unexpected error ({name})"
        return f"exit {self.code}"


def visible(raw: bytes) -> str:
    """Return text in which nothing acts on a terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}"
        for char in raw.decode("utf-8", "replace")
    )


def warm() -> None:
    """Import what the commands import, so that forked ones start at once; start no threads."""
    for name in (
        "privet.estimators", "privet.federation", "privet.model", "privet.privacy", "privet.export",
        "privet.reading", "privet.robustness", "privet.cli", "privet.cli._files",
        "privet.cli._show", "pyarrow.csv", "pyarrow.parquet", "rich.console", "rich.table",
        "rich.status", "pandas", "numba", "typer._adapters", "rich.live", "rich.markup",
    ):  # fmt: skip
        with suppress(ImportError):  # not every version has them all
            importlib.import_module(name)


def command(
    *args: str | Path,
    tty: bool = False,
    seconds: float = SECONDS,
    before: Callable[[], None] | None = None,
    cwd: Path | None = None,
    gigabytes: float = GIGABYTES,
) -> Ended:
    """Run ``privet ARGS`` in a forked process; with ``tty``, all it says goes to a terminal."""

    def main() -> None:
        from privet.cli import main as run

        sys.argv = ["privet", *map(str, args)]
        run()

    return forked(main, tty=tty, seconds=seconds, before=before, cwd=cwd, gigabytes=gigabytes)


def replacing() -> list[str]:
    """Return what makes the attacked version replace a file; older ones do so unasked."""
    from privet.cli.fit import fit

    return ["--force"] if "force" in inspect.signature(fit).parameters else []


def forked(
    main: Callable[[], None],
    *,
    tty: bool = False,
    seconds: float = SECONDS,
    before: Callable[[], None] | None = None,
    cwd: Path | None = None,
    gigabytes: float = GIGABYTES,
) -> Ended:
    """Run a function in a forked process with limits; gather what it says and what it used."""
    if tty:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, 200))
        pipes = {ours: bytearray()}
        ends = (theirs, theirs)
    else:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        pipes = {out: bytearray(), err: bytearray()}
        ends = (out_end, err_end)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(main, ends, tty, before, cwd, gigabytes)
    for end in set(ends):
        os.close(end)
    code, usage = _gather(child, pipes, start + seconds)
    said = [bytes(text) for text in pipes.values()]
    return Ended(
        code,
        said[0],
        said[-1] if not tty else b"",
        time.monotonic() - start,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
    )


def _become(
    main: Callable[[], None],
    ends: tuple[int, int],
    tty: bool,
    before: Callable[[], None] | None,
    cwd: Path | None,
    gigabytes: float,
) -> None:
    """Be the child: never returns."""
    code = 70
    try:
        if tty:
            os.login_tty(ends[0])
            os.environ.update(TERM="xterm-256color", COLUMNS="200")
        else:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(ends[0], 1)
            os.dup2(ends[1], 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        limit = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cwd is not None:
            os.chdir(cwd)
        if before is not None:
            before()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _gather(child: int, pipes: dict[int, bytearray], deadline: float) -> tuple[int | None, Any]:
    """Read until the child is gone; stop it at the deadline."""
    waiting, stopped = set(pipes), False
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            os.kill(child, signal.SIGKILL)
            stopped = True
            break
        for pipe in select.select(list(waiting), [], [], min(left, 1.0))[0]:
            try:
                block = os.read(pipe, 1 << 16)
            except OSError as error:  # a terminal whose other side is closed
                if error.errno != errno.EIO:
                    raise
                block = b""
            if block:
                pipes[pipe] += block
            else:
                waiting.discard(pipe)
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline and not stopped:
            os.kill(child, signal.SIGKILL)
            stopped = True
        time.sleep(0.002)
    for pipe in pipes:
        os.close(pipe)
    return None if stopped else os.waitstatus_to_exitcode(status), usage


# What is measured often


def limits(hits: int, trials: int, tail: float) -> tuple[float, float]:
    """Return the Clopper-Pearson limits of a probability."""
    from scipy.stats import beta

    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(1 - tail, hits + 1, trials - hits))
    return low, high


def least_epsilon(likelier: int, other: int, trials: int) -> float:
    """Return the epsilon that an event shows, with confidence 95 % (Clopper-Pearson).

    The event, and on which of the two tables it is likelier, must have been fixed beforehand.
    """
    low, high = limits(likelier, trials, 0.025)[0], limits(other, trials, 0.025)[1]
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def spent(ledger: Path) -> float | None:
    """Return what a ledger file says was spent, or None if it is none any more."""
    from privet.errors import PrivetError
    from privet.privacy import LedgerStore

    try:
        return float(LedgerStore(ledger).spent)
    except PrivetError:
        return None


def is_model(path: Path) -> bool:
    from privet import load
    from privet.errors import PrivetError

    try:
        load(path)
    except PrivetError:
        return False
    return True


# A table to attack

SCHEMA = """\
target = "y"
classes = ["no", "yes"]
table = "patients"

[features.a]
type = "numeric"
low = 0
high = 2
bins = 2

[features.b]
type = "categorical"
values = ["u", "v"]
"""


@dataclass(frozen=True)
class Place:
    """A folder with a table, its schema, and its ledger."""

    folder: Path
    data: Path
    schema: Path
    ledger: Path

    @classmethod
    def make(cls, folder: Path, *, total: float = 3.0, rows: int = 60) -> Place:
        folder.mkdir(parents=True, exist_ok=True)
        place = cls(folder, folder / "data.csv", folder / "schema.toml", folder / "patients.ledger")
        lines = [f"{i % 2},{'uv'[i // 2 % 2]},{'yes' if i % 2 else 'no'}" for i in range(rows)]
        place.data.write_text("\n".join(["a,b,y", *lines, ""]), encoding="utf-8")
        place.schema.write_text(SCHEMA, encoding="utf-8")
        place.ledger.unlink(missing_ok=True)
        ended = command(
            "ledger", place.ledger, "--create", "--epsilon", total, "--schema", place.schema
        )  # fmt: skip
        assert ended.code == 0, ended.text
        return place

    def fit(
        self,
        out: Path,
        *more: str | Path,
        epsilon: float = 1.0,
        books: bool = True,
        ledger: Path | None = None,
        **options: Any,
    ) -> Ended:
        """Run ``privet fit`` on the table with a cheap learner."""
        drawn = ["--ledger", ledger or self.ledger] if books else []
        return command(
            "fit", self.data, "--schema", self.schema, "--epsilon", str(epsilon),
            "--learner", "sulq", "--max-depth", "1", *drawn, "--out", out, *replacing(), *more,
            **options,
        )  # fmt: skip

    def model(self, name: str = "model.json") -> dict[str, Any]:
        """Return the plain data of a model that this version writes."""
        path = self.folder / name
        ended = self.fit(path, books=False)
        assert ended.code == 0, ended.text
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return plain


def write_json(path: Path, plain: Any) -> Path:
    path.write_text(json.dumps(plain), encoding="utf-8")
    return path


def texts_of(plain: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the places of all texts in plain data."""
    if isinstance(plain, str):
        yield place
    elif isinstance(plain, list):
        for j, item in enumerate(plain):
            yield from texts_of(item, (*place, j))
    elif isinstance(plain, dict):
        for key, item in plain.items():
            yield from texts_of(item, (*place, key))


def with_text(plain: Any, place: tuple[Any, ...], text: str) -> Any:
    """Return a copy of plain data with another text at a place."""
    copy = json.loads(json.dumps(plain))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = text
    return copy


def columns_of(ledger: Path) -> list[tuple[str, str, str]]:
    """Return table, name and type of all columns of a ledger file, whatever its version."""
    with closing(sqlite3.connect(ledger)) as file:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [
            (table, row[1], row[2].upper())
            for (table,) in tables
            if not table.startswith("sqlite")
            for row in file.execute(f'PRAGMA table_info("{table}")')
        ]


def set_column(ledger: Path, table: str, column: str, value: str, *given: Any) -> None:
    """Write a value, given as SQL, into a column of a ledger file."""
    with closing(sqlite3.connect(ledger)) as file, file:
        file.execute(f'UPDATE "{table}" SET "{column}" = {value}', given)
