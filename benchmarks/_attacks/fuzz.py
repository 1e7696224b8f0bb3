"""Read mutated files of every kind with the real command, in processes with limits.

A file is *read* (exit code 0) or *refused* with one sentence (2). WRONG is everything else: another
exit code, a hang of more than ten seconds, a process that dies or runs out of memory, control
characters in what is printed, a message that says what stands in a table's cells, and a ledger that
is read although it has more budget left than its total.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any

from _hostile_tables import SECRETS, mutated_csv, mutated_parquet

from _attacks.outside import SCALE, Found, Place, command

COUNT = max(10, round(10_000 * SCALE))
SEED = 2026
HANG = 10.0
GIGABYTES = 4
#: Files that one process reads.
BATCH = 100

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

Outcome = tuple[str, str]
Judge = Callable[[Path, int], Outcome]


def models(folder: Path) -> Iterator[Found]:
    import _hostile_files

    place = Place.make(folder)
    # Of the attacked version, by its own command.
    honest = [json.dumps(place.model())]
    for learner in ("diffpid3", "additive", "tree"):
        out = folder / f"{learner}.json"
        ended = command(
            "fit", place.data, "--schema", place.schema, "--learner", learner, "--out", out
        )
        assert ended.code == 0, ended.text
        honest.append(out.read_text(encoding="utf-8"))
    _hostile_files._models = lambda: tuple(honest)
    files = _hostile_files.mutated_models(SEED, COUNT)
    yield _fuzzed("models", files, lambda path, _: run("show", path), folder, ".json")


def schemas(folder: Path) -> Iterator[Found]:
    import _hostile_files

    data, ledger = folder / "data.csv", folder / "new.ledger"
    data.write_text(
        "age,ward,visits,readmitted,outcome,cost\n" + "50,north,2,no,well,10\n" * 20,
        encoding="utf-8",
    )

    def judge(path: Path, number: int) -> Outcome:
        if number % 4:
            ledger.unlink(missing_ok=True)
            return run("ledger", ledger, "--create", "--epsilon", "1", "--schema", path)
        out = _free(folder / "m.json")
        return run("fit", data, "--schema", path, "--learner", "additive", "--out", out)

    files = _hostile_files.mutated_schemas(SEED, COUNT)
    yield _fuzzed("schemas", files, judge, folder, ".toml")


def ledgers(folder: Path) -> Iterator[Found]:
    place = Place.make(folder / "pure")
    other = folder / "zcdp.ledger"
    command("ledger", other, "--create", "--epsilon", "2", "--delta", "1e-6", "--schema",
            place.schema)  # fmt: skip
    long = Place.make(folder / "long", total=9)
    for ledger in [place.ledger] * 2 + [other] * 2 + [long.ledger] * 20:
        ended = place.fit(folder / "m.json", epsilon=0.25, ledger=ledger)
        assert ended.code == 0, ended.text

    def judge(path: Path, _: int) -> Outcome:
        outcome = run("ledger", path)
        return _true_books(path) if outcome[0] == "read" else outcome

    mutants = _ledger_mutants()([place.ledger, other, long.ledger], COUNT, SEED)
    files = (content for _, content in mutants)
    yield _fuzzed("ledgers", files, judge, folder, ".ledger")


def _ledger_mutants() -> Any:
    """Return what makes hostile ledgers of real ones.

    Its module imports types of present ledgers, which it needs for other things; versions that do
    not have them get empty names.
    """
    import privet.privacy

    for name in ("QuestionKind", "DiscreteLaplace", "Entry", "Exponential", "Place", "Question"):
        if not hasattr(privet.privacy, name):
            setattr(privet.privacy, name, object)
    import _hostile_ledgers

    return _hostile_ledgers.mutants


def csv_tables(folder: Path) -> Iterator[Found]:
    judge = _reading(folder)
    yield _fuzzed("CSV files", mutated_csv(SEED, COUNT), judge, folder, ".csv")


def parquet_tables(folder: Path) -> Iterator[Found]:
    judge = _reading(folder)
    yield _fuzzed("Parquet files", mutated_parquet(SEED, COUNT), judge, folder, ".parquet")


ATTACKS = [models, schemas, ledgers, csv_tables, parquet_tables]


def _reading(folder: Path) -> Judge:
    """Return a judge that predicts the rows of a table, or fits them."""
    place = Place.make(folder)
    place.model()

    def judge(path: Path, number: int) -> Outcome:
        if path.read_bytes()[:2] == b"\x1f\x8b":
            path = path.rename(f"{path}.gz")
        if number % 4:
            out = _free(folder / "p.csv")
            return run("predict", folder / "model.json", path, "--out", out)
        return run("fit", path, "--schema", place.schema, "--learner", "sulq", "--max-depth", "1",
                   "--out", _free(folder / "m.json"))  # fmt: skip

    return judge


def _free(path: Path) -> Path:
    """Return a path where no file is: commands do not replace one."""
    path.unlink(missing_ok=True)
    return path


# In the process that reads


def run(*args: str | Path) -> Outcome:
    """Run the command in this process; return what became of it."""
    from privet.cli import main

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["privet", *map(str, args)]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:  # nothing may come out of the command
        return "WRONG", f"{type(error).__name__} comes out of the command"
    said = out.getvalue() + err.getvalue()
    if code not in (0, 2):
        name = re.search(r"Unexpected error \((\w+)\)", said)
        return "WRONG", f"unexpected error ({name[1] if name else code})"
    if _CONTROL.search(said):
        return "WRONG", "control characters are printed"
    if any(secret in said for secret in SECRETS):
        return "WRONG", "the message says what stands in cells"
    if code == 0:
        return "read", ""
    return ("refused", "") if "Error:" in said else ("WRONG", "refused without a sentence")


def _true_books(path: Path) -> Outcome:
    """Return whether a ledger that is read says nothing absurd."""
    from privet.privacy import LedgerStore

    store = LedgerStore(path)
    if not store.spent >= 0 or not store.left <= store.budget.limit:
        return "WRONG", "more is left than the total"
    return "read", ""


def _serve(paths: list[Path], first: int, judge: Judge, pipe: int) -> None:
    """Judge files one after the other; say what became of each. Never returns."""
    import typer.main

    try:
        limit = GIGABYTES * 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        # The commands are declared once, not anew for each file.
        made = typer.main.get_command
        known: dict[int, object] = {}
        typer.main.get_command = lambda app: known.setdefault(  # type: ignore[assignment]
            id(app), known.get(id(app)) or made(app)
        )
        for number, path in enumerate(paths, first):
            try:
                outcome = judge(path, number)
            except BaseException as error:
                outcome = ("WRONG", f"{type(error).__name__} in Python")
            os.write(pipe, (json.dumps(outcome) + "\n").encode())
    finally:
        os._exit(0)


# In the process that watches


def _fuzzed(kind: str, files: Iterator[bytes], judge: Judge, folder: Path, ending: str) -> Found:
    start = time.perf_counter()
    outcomes: Counter[Outcome] = Counter()
    done = 0
    while block := list(islice(files, BATCH)):
        paths = []
        for number, raw in enumerate(block, done):
            path = folder / f"file{number}{ending}"
            path.write_bytes(raw)
            paths.append(path)
        at = 0
        while at < len(paths):
            for outcome in _judged(paths[at:], done + at, judge):
                outcomes[outcome] += 1
                at += 1
        done += len(paths)
        for path in folder.glob("file*"):
            path.unlink()
        if done % 1000 < BATCH:
            print(f"  {kind}: {done:,} files, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    read, refused = outcomes.pop(("read", ""), 0), outcomes.pop(("refused", ""), 0)
    wrong = sum(outcomes.values())
    causes = "; ".join(f"{why}: {count:,}" for (_, why), count in outcomes.most_common())
    return Found(
        f"{done:,} mutated {kind}, seed {SEED}",
        "read, refused with a sentence, WRONG",
        f"{read:,} read, {refused:,} refused, {wrong:,} WRONG" + (f" ({causes})" if causes else ""),
        wrong > 0,
        wrong,
        "files",
    )


def _judged(paths: list[Path], first: int, judge: Judge) -> Iterator[Outcome]:
    """Let a process judge files until it is done, dies or hangs; then its last one is WRONG."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _serve(paths, first, judge, write)
    os.close(write)
    left, told = len(paths), b""
    hangs = False
    while True:
        if not select.select([read], [], [], HANG)[0]:
            hangs = True
            os.kill(child, signal.SIGKILL)
            break
        block = os.read(read, 1 << 16)
        if not block:
            break
        told += block
        *lines, told = told.split(b"\n")
        for line in lines:
            left -= 1
            outcome, why = json.loads(line)
            yield outcome, why
    os.close(read)
    _, status = os.waitpid(child, 0)
    if left:
        died = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-died).name if died < 0 else f"exit {died}"
        yield (
            "WRONG",
            f"a hang of more than {HANG:.0f} s" if hangs else f"the process dies ({name})",
        )
