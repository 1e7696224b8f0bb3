"""Attacks between a coordinator and a party in another process: running code in the other.

The hostile side sends an object that is code when it is unpickled: as an answer or as an argument,
and as raw bytes on the line, since who is hostile does not use our encoder.
"""

from __future__ import annotations

import gc
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _attacks.outside import Found


class Code:
    """Unpickling it writes down which process it runs in."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return run, (self.path,)


def run(path: str) -> str:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    return "done"


def party(name: str, path: str, way: str) -> Any:
    """Make an honest party, or one that answers with code."""
    from privet import Budget, Numeric, Schema
    from privet.federation import Party

    schema = Schema({"a": Numeric(0, 2, bins=2)}, "y", classes=["no", "yes"])

    class Hostile(Party):
        def answer(self, *given: Any, **options: Any) -> Any:
            if way == "an object":
                return Code(path)
            for line in lines():
                with suppress(OSError):
                    line.send_bytes(pickle.dumps((1, "answer", Code(path))))
            return super().answer(*given, **options)

    kind = Party if way == "honest" else Hostile
    return kind(name, [[0.0], [1.0]], ["no", "yes"], schema, Budget(1.0))


def lines() -> list[Connection]:
    """Return the open lines of this process, wherever they are kept."""
    return [thing for thing in gc.get_objects() if type(thing) is Connection and not thing.closed]


def hostile_party(folder: Path) -> Iterator[Found]:
    from privet.federation import ProcessLink

    for way in ("an object", "raw bytes"):
        mark = folder / f"party {way}"
        mark.unlink(missing_ok=True)
        link = ProcessLink("p", party, ("p", str(mark), way), patience=60)
        said = "an answer"
        try:
            link.receive(link.send(0, "root", None))
        except Exception as error:
            said = f"{type(error).__name__}"
        finally:
            link.close()
        ran = mark.exists() and str(os.getpid()) in mark.read_text(encoding="utf-8").split()
        yield Found(
            f"ProcessLink: a party sends code as {way}",
            "does it run in the coordinator; what the coordinator gets",
            f"{'IT RUNS' if ran else 'no'}; {said}",
            ran,
        )


def hostile_coordinator(folder: Path) -> Iterator[Found]:
    from privet.federation import ProcessLink

    for way in ("an object", "raw bytes"):
        mark = folder / f"coordinator {way}"
        mark.unlink(missing_ok=True)
        before = set(map(id, lines()))
        link = ProcessLink("p", party, ("p", str(mark), "honest"), patience=60)
        said = "an answer"
        try:
            link.receive(link.send(0, "root", None))  # the party is there
            if way == "an object":
                link.receive(link.send(0, "root", Code(str(mark))))
            else:
                for line in lines():
                    if id(line) not in before:
                        with suppress(OSError):
                            line.send_bytes(pickle.dumps((2, 0, "root", (Code(str(mark)),), {})))
                time.sleep(2)
        except Exception as error:
            said = f"{type(error).__name__}"
        finally:
            link.close()
        pids = mark.read_text(encoding="utf-8").split() if mark.exists() else []
        ran = any(pid != str(os.getpid()) for pid in pids)
        yield Found(
            f"ProcessLink: a coordinator sends code as {way}",
            "does it run in the party; what the coordinator gets",
            f"{'IT RUNS' if ran else 'no'}; {said}",
            ran,
        )


ATTACKS = [hostile_party, hostile_coordinator]
