"""Measure how fast CSV files are read, as multiples of ``pyarrow.csv.read_csv`` in the same run.

pyarrow is asked for what it does by default; Privet reads the same file by its schema, with the
law that no record changes how another one is read (docs/reading.md). The files have 24 columns:

* numbers: 24 columns of numbers without quotes;
* text: 15 columns of numbers, 8 of quoted text with separators in it;
* unclean: as numbers, and every hundredth row has a text among its numbers or a field too few;
* line breaks: as text, and every hundredth text has a line break.

``--against PATH --label start`` measures another checkout of Privet (by its ``src``), so that one
table has both. Run ``python benchmarks/reading.py``; it writes ``reading.csv``, ``reading.md`` and
``reading.png``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _report import machine, table, versions

HERE = Path(__file__).parent
KINDS = ("numbers", "text", "unclean", "line breaks")
COLUMNS = 24
FIELDS = ["label", "kind", "rows", "megabytes", "pyarrow", "privet", "ratio"]

#: Runs in a process of its own, with the sources of one checkout.
MEASURE = """
import json, sys, time
from pathlib import Path
import pyarrow.csv
try:
    from privet.reading import read_table
except ImportError:
    from privet.cli._files import read_table
from privet.schema import Categorical, Numeric, Schema
path, texts, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
features = {f"x{j}": Numeric(-3, 3) for j in range(23 - texts)}
features |= {f"t{j}": Categorical(["alpha", "beta", "gamma, delta"]) for j in range(texts)}
schema = Schema(features, "y", classes=[0, 1])
found = []
for _ in range(runs):
    times = []
    for read in (pyarrow.csv.read_csv, lambda path: read_table(path, schema)):
        start = time.perf_counter()
        try:
            read(path)
        except pyarrow.ArrowInvalid:
            times.append(float("nan"))
            continue
        times.append(time.perf_counter() - start)
    found.append(times)
print(json.dumps(found))
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    options.add_argument("--against", type=Path, default=HERE.parent, help="a checkout")
    options.add_argument("--label", default="now", choices=["start", "now"])
    options.add_argument("--out", type=Path, default=HERE / "results")
    given = options.parse_args()
    kept = _kept(given.out / "reading.csv", given.label, given.kinds)
    with tempfile.TemporaryDirectory() as folder:
        for kind in given.kinds:
            path = Path(folder) / "table.csv"
            texts = write(path, kind, given.rows)
            found = measure(given.against, path, texts, given.runs)
            pyarrow_seconds, ours = (min(times) for times in zip(*found, strict=True))
            kept.append(
                {
                    "label": given.label,
                    "kind": kind,
                    "rows": given.rows,
                    "megabytes": round(path.stat().st_size / 1e6),
                    "pyarrow": round(pyarrow_seconds, 3),
                    "privet": round(ours, 3),
                    "ratio": round(statistics.median(b / a for a, b in found), 2),
                }
            )
            print(kept[-1], flush=True)
    report(kept, given.out)


def _kept(path: Path, label: str, kinds: list[str]) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open() as file:
        lines = list(csv.DictReader(file))
    return [line for line in lines if line["label"] != label or line["kind"] not in kinds]


def write(path: Path, kind: str, rows: int) -> int:
    """Write a file of one kind; return how many columns of text it has."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    texts = 8 if kind in ("text", "line breaks") else 0
    frame = pd.DataFrame(
        {f"x{j}": np.round(rng.normal(size=rows), 6) for j in range(COLUMNS - 1 - texts)}
    )
    for j in range(texts):
        frame[f"t{j}"] = rng.choice(["alpha", "beta", "gamma, delta"], rows)
    if kind == "line breaks":
        frame.loc[::100, "t0"] = "two\nlines"
    frame["y"] = rng.integers(0, 2, rows)
    frame.to_csv(path, index=False)
    if kind == "unclean":
        lines = path.read_text().splitlines()
        for place in range(50, len(lines), 200):
            lines[place] = "unknown" + lines[place][lines[place].index(",") :]
        for place in range(150, len(lines), 200):
            lines[place] = lines[place].rpartition(",")[0]
        path.write_text("\n".join(lines) + "\n")
    return texts


def measure(checkout: Path, path: Path, texts: int, runs: int) -> list[list[float]]:
    """Return seconds of pyarrow and of Privet, run by run."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), str(texts), str(runs)],
        env={**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")},
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[list[float]] = json.loads(done.stdout)
    return found


def report(lines: list[dict[str, Any]], out: Path) -> None:
    order = {(label, kind): k for k, (label, kind) in enumerate(
        (label, kind) for label in ("start", "now") for kind in KINDS)}  # fmt: skip
    lines = sorted(lines, key=lambda line: order[line["label"], line["kind"]])
    with (out / "reading.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines)
    names = {"start": "before one reader (3c78224)", "now": "now"}
    shown = [
        [
            names[line["label"]],
            line["kind"],
            f"{int(line['rows']):,}",
            str(line["megabytes"]),
            "fails" if str(line["pyarrow"]) == "nan" else f"{float(line['pyarrow']):.2f}",
            f"{float(line['privet']):.2f}",
            "" if str(line["ratio"]) == "nan" else f"{float(line['ratio']):.2f}",
        ]
        for line in lines
    ]
    head = ["code", "file", "rows", "MB", "pyarrow, s", "Privet, s", "ratio (median)"]
    text = (
        "# Reading CSV files\n\n"
        "`python benchmarks/reading.py` and, for the lines before, `python benchmarks/reading.py "
        "--label start --against CHECKOUT` (the slow kinds with `--runs 1`, those of today but the "
        f"first with `--runs 2`), {machine()}; {versions('pyarrow')}.\n\nSeconds are the best of "
        "all runs; the ratio is the median over runs, in each of which both read the same file. "
        "pyarrow gives up on files with a record too short; what it makes of the others is not the "
        "same: docs/reading.md.\n\n" + table(head, shown)
    )
    (out / "reading.md").write_text(text)
    _plot(lines, out / "reading.png")


def _plot(lines: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5))
    for shift, label in ((-0.2, "start"), (0.2, "now")):
        mine = {line["kind"]: float(line["privet"]) for line in lines if line["label"] == label}
        places = [KINDS.index(kind) + shift for kind in mine]
        axes.bar(places, list(mine.values()), 0.4, label=f"Privet, {label}")
    peers = {line["kind"]: float(line["pyarrow"]) for line in lines}
    axes.plot([KINDS.index(kind) for kind in peers], list(peers.values()), "k_", ms=40,
              label="pyarrow")  # fmt: skip
    axes.set_xticks(range(len(KINDS)), KINDS)
    axes.set_yscale("log")
    axes.set_ylabel("seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
