"""What the benchmarks' Markdown files share: tables, the command and the machine."""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines]) + "\n"


def command() -> str:
    """Return the command that runs, without this machine's paths."""
    tools = ("--peer-python", "--dpmm-python", "--against", "--wheel")
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}"]
    given = iter(sys.argv[1:])
    for word in given:
        name, _, value = word.partition("=")
        if name not in ("--out", "--data", *tools):
            words.append(word)
            continue
        if not value:
            next(given)
        if name in tools:
            words += [name, "PATH"]
    return " ".join(words)


def machine() -> str:
    """Return the date, the machine and the Python."""
    import psutil
    from speed import CORES, cpu_name

    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}; {cpu_name()}, {CORES} cores, "
        f"{memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    )


def versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)
