"""What deep and wide models cost: reading, predicting, and every form of export.

``python benchmarks/exports.py`` writes ``exports.csv`` and ``exports.md`` to ``results/``. Each
number comes from a process of its own, which may take 8 GB and five minutes of processor time. To
measure another version, set ``PYTHONPATH`` to its ``src``.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import command, machine, table

from privet import export, load
from privet.model import Model, PrivacyCard
from privet.schema import Numeric, Schema
from privet.tree import Cut, Node, Tree

SCHEMA = Schema({"x": Numeric(0, 1), "z": Numeric(0, 1)}, "y", classes=["no", "yes"])
FORMS = ("text", "dot", "svg", "sql", "python", "json")
JOBS = (*FORMS, "load", "predict")
MODELS = ("chain 1000", "chain 5000", "chain 20000", "wide 65536")
ROWS = 10_000
RESULTS = Path(__file__).parent / "results"
MOST_MEMORY = 8 << 30
MOST_SECONDS = 300


def chain(depth: int) -> Tree:
    """Return a tree that is one long path, with a leaf beside each test."""
    nodes = []
    for level in range(depth):
        test = Cut("xz"[level % 2], ((level + 1) / (depth + 2),), missing=1)
        value = float(level % 2), float(1 - level % 2)
        nodes += [Node(test, (2 * level + 1, 2 * level + 2)), Node(value=value)]
    return Tree(SCHEMA, (*nodes, Node(value=(0.25, 0.75))))


def wide(leaves: int) -> Tree:
    """Return a complete binary tree."""
    draw = random.Random(1)
    tests = [
        Node(Cut("xz"[i % 2], (draw.uniform(0.05, 0.95),), missing=0), (2 * i + 1, 2 * i + 2))
        for i in range(leaves - 1)
    ]
    values = [Node(value=(float(i % 2), float(1 - i % 2))) for i in range(leaves)]
    return Tree(SCHEMA, (*tests, *values))


def model_of(name: str) -> Model:
    kind, size = name.split()
    tree = {"chain": chain, "wide": wide}[kind](int(size))
    card = PrivacyCard(
        **{
            **dict.fromkeys(("epsilon", "requested_epsilon", "rho", "replace_one_epsilon"), 1.0),
            **dict.fromkeys(("delta", "requested_delta"), 0.0),
            **{"adjacency": "add or remove one record", "accountant": "pure", "private": True},
            **dict.fromkeys(("warnings", "notes", "entries"), ()),
            **{"rows_declared": False, "seeded": False, "protocol": None},
        }
    )
    return Model(tree, card, "tree")


def work(name: str, job: str) -> None:
    """Do one thing and print what it took, as JSON."""
    model = model_of(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        rows = np.random.default_rng(0).random((ROWS, 2))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        start, size = time.process_time(), 0
        try:
            if job == "load":
                load(path)
            elif job == "predict":
                model.predict(rows)
            elif job == "json":
                size = len(json.dumps(model.to_dict(), indent=1))
            else:
                size = len(getattr(export, f"to_{job}")(model.predictor))
        except MemoryError:
            print(json.dumps("more than 8 GB"))
            return
        except ValueError as error:
            print(json.dumps(f"refused in {time.process_time() - start:.2f} s: {error}"))
            return
        seconds = time.process_time() - start
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(json.dumps(f"{seconds:.2f} s, {more:.0f} MB" + f", {size / 1e6:.1f} M" * (size > 0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return
    lines = []
    for job in JOBS:
        cells = []
        for name in MODELS:
            done = subprocess.run(
                [sys.executable, __file__, "--work", name, job],
                capture_output=True,
                text=True,
                check=False,
            )
            if not done.stdout and done.returncode >= 0:  # it was not stopped for its time
                raise RuntimeError(done.stderr)
            cells.append(json.loads(done.stdout) if done.stdout else "more than five minutes")
        lines.append([job, *cells])
        print(lines[-1], flush=True)
    head = ["", *MODELS]
    with (RESULTS / "exports.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *lines])
    text = (
        f"# Exports of deep and wide models\n\n`{command()}`, {machine()}. Seconds of the "
        "processor, memory beyond what the model takes, and millions of characters.\n\n"
    )
    (RESULTS / "exports.md").write_text(text + table(head, lines))


if __name__ == "__main__":
    main()
