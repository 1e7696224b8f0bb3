"""Measure how fast a private fit, and one level's counting, are next to trees without privacy.

Measures, in one run and on the same arrays, at several numbers of rows by 24 numeric features:

* ``DiffPID3Classifier`` (depth 4, epsilon 1, 32 bins, two classes), binning included;
* scikit-learn's ``DecisionTreeClassifier(max_depth=4)``;
* LightGBM: one tree of depth 4 from 32 bins, its data set construction (binning) apart;
* one level's counting (24 features x 32 bins x 2 classes) against a plain numba loop over a
  row-major table of bins, in one thread: the reference of the design notes.

Every measurement runs in a process of its own, after a warm-up fit on a small table, so that no
time contains compilation. Compilation and the first fit of a fresh process are measured apart.
Peak memory is the high-water mark of the first full fit minus what the process held just before it
(input, libraries, warm-up).

Run ``python benchmarks/speed.py``; it writes ``speed.csv``, ``speed.md`` and ``speed.png``.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import datetime
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil

FEATURES, BINS, DEPTH, EPSILON = 24, 32, 4, 1.0
#: Enough values for the compiled loops, and too few to take time.
WARM_ROWS = 200_000
CELLS = (1, 8, 33, 1089)
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

LEARNERS = {
    "privet": "Privet DiffPID3Classifier",
    "privet-binning": "... of which reading and binning the table",
    "privet-seeded": "... with numpy's noise instead of OpenDP's (not private)",
    "sklearn": "scikit-learn DecisionTreeClassifier",
    "lightgbm": f"LightGBM, data set and one tree, {CORES} threads",
    "lightgbm-binning": "... of which the data set (binning)",
    "lightgbm-tree": "... of which the tree",
    "lightgbm1": "LightGBM, data set and one tree, 1 thread",
    "lightgbm1-binning": "... of which the data set (binning)",
    "lightgbm1-tree": "... of which the tree",
}


# The data: half normal, a quarter skewed, a quarter uniform; seven features carry signal.


def make_data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float64 features in C order and int64 classes; the same for every learner."""
    X, y = np.empty((rows, FEATURES)), np.empty(rows, dtype=np.int64)
    for number, start in enumerate(range(0, rows, 100_000)):
        rng = np.random.default_rng([7, number])
        block = X[start : start + 100_000]
        size = len(block)
        block[:, 0::2] = rng.normal(50, 18, size=(size, 12))
        block[:, 1::4] = rng.exponential(22, size=(size, 6))
        block[:, 3::4] = rng.uniform(0, 100, size=(size, 6))
        score = 1.5 * (block[:, 0] > 55) + 1.2 * np.sin(block[:, 3] / 12)
        score += 0.03 * (block[:, 2] - 50) - 0.04 * (block[:, 1] - 22)
        score += 1.5 * (block[:, 4] > 40) * (block[:, 6] < 60) + 0.01 * block[:, 7] - 1.8
        y[start : start + size] = rng.random(size) < 1 / (1 + np.exp(-score))
    return X, y


def make_schema() -> Any:
    from privet import Numeric, Schema

    features = {f"x{j}": Numeric(0, 100, bins=BINS) for j in range(FEATURES)}
    return Schema(features, target="y", classes=[0, 1])


# One measurement, in a process of its own. Each returns named pairs of (wall, CPU) seconds.

Times = dict[str, tuple[float, float]]


def timed(work: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return (time.perf_counter() - wall, time.process_time() - cpu), result


def fit_privet(X: np.ndarray, y: np.ndarray, random_state: Any = None) -> tuple[Times, Any]:
    from privet import DiffPID3Classifier

    model = DiffPID3Classifier(
        epsilon=EPSILON, schema=make_schema(), max_depth=DEPTH, random_state=random_state
    )
    seconds, _ = timed(lambda: model.fit(X, y))
    tree = model.tree_
    return {"fit": seconds}, {
        "nodes": len(tree.nodes),
        "leaves": tree.n_leaves,
        "depth": tree.depth,
    }


def fit_privet_seeded(X: np.ndarray, y: np.ndarray) -> tuple[Times, Any]:
    from privet.errors import PrivacyLeakWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return fit_privet(X, y, random_state=0)


def bin_privet(X: np.ndarray, y: np.ndarray) -> tuple[Times, Any]:
    from privet.engines import memory_engine

    schema = make_schema()
    return {"fit": timed(lambda: memory_engine(X, y, schema))[0]}, {}


def fit_sklearn(X: np.ndarray, y: np.ndarray) -> tuple[Times, Any]:
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=DEPTH, random_state=0)
    seconds, _ = timed(lambda: model.fit(X, y))
    return {"fit": seconds}, {"nodes": model.tree_.node_count, "leaves": int(model.get_n_leaves())}


def fit_lightgbm(X: np.ndarray, y: np.ndarray, threads: int = CORES) -> tuple[Times, Any]:
    import lightgbm

    options = {
        "objective": "binary",
        "max_depth": DEPTH,
        "num_leaves": 2**DEPTH,
        "max_bin": BINS,
        "num_threads": threads,
        "verbosity": -1,
    }
    binning, data = timed(lambda: lightgbm.Dataset(X, y, params=options).construct())
    tree, model = timed(lambda: lightgbm.train(options, data, num_boost_round=1))
    leaves = model.dump_model()["tree_info"][0]["num_leaves"]
    whole = (binning[0] + tree[0], binning[1] + tree[1])
    return {"fit": whole, "binning": binning, "tree": tree}, {"leaves": leaves}


def fit_lightgbm1(X: np.ndarray, y: np.ndarray) -> tuple[Times, Any]:
    # LightGBM's threads wait for each other by spinning, so on a machine with other work one
    # thread can be the faster choice by far. Ratios are to the better of the two.
    return fit_lightgbm(X, y, threads=1)


FITS = {
    "privet": fit_privet,
    "privet-binning": bin_privet,
    "privet-seeded": fit_privet_seeded,
    "sklearn": fit_sklearn,
    "lightgbm": fit_lightgbm,
    "lightgbm1": fit_lightgbm1,
}


def measure_fit(name: str, rows: int, repeats: int) -> dict[str, Any]:
    fit = FITS[name]
    fit(*make_data(WARM_ROWS if name != "sklearn" else 1_000))
    X, y = make_data(rows)
    trim_memory()
    before = psutil.Process().memory_info().rss
    reset_peak()
    times, facts = fit(X, y)
    memory = peak_memory() - before
    runs = [times] + [fit(X, y)[0] for _ in range(repeats - 1)]
    return {"times": best_of(runs), "facts": facts, "memory": memory}


def measure_counting(rows: int, repeats: int) -> dict[str, Any]:
    """Count one level: Privet's engine, keys included, and the reference loop, keys given."""
    from numba import njit

    from privet.engines import Split, View, memory_engine

    @njit(nogil=True, boundscheck=False)
    def reference(codes: Any, keys: Any, counts: Any) -> None:
        for i in range(codes.shape[0]):
            key = keys[i]
            for j in range(codes.shape[1]):
                counts[key, j, codes[i, j]] += 1

    schema = make_schema()
    view = View.of_bins(schema)
    engine = memory_engine(*make_data(rows), schema)
    blocks = engine._blocks._blocks
    by_row = np.ascontiguousarray(np.concatenate([block.codes(view) for block in blocks], 1).T)
    labels = np.concatenate([block.labels for block in blocks])
    size = BINS + 1
    eight = Split(2, tuple(code * 8 // size for code in range(size)))
    all_codes = tuple(range(size))
    root = engine.root(view)
    level = engine.split(root, [Split(0, all_codes)])
    levels = {
        1: root,
        8: engine.split(root, [eight]),
        size: level,
        size**2: engine.split(level, [Split(3, all_codes)] * size),
    }
    found: dict[str, Any] = {}
    for cells, handle in levels.items():
        place = np.concatenate([block.cells(handle.lineage) for block in blocks])
        keys = place * np.int32(2) + labels  # every record lies in a cell here
        counts = np.zeros((2 * cells, FEATURES, size), dtype=np.int32)
        reference(by_row, keys, counts)
        ours = [batch for _, batch in engine.histograms(handle, range(FEATURES))]
        for j in range(FEATURES):
            joined = np.concatenate([batch[j] for batch in ours])
            expected = counts[:, j].reshape(cells, 2, size).transpose(0, 2, 1)
            assert np.array_equal(joined, expected), "the two countings differ"
        del ours
        plain, engines = [], []
        for _ in range(repeats):  # in turn, so that a busy machine slows both
            plain.append(timed(lambda k=keys, c=counts: reference(by_row, k, c))[0])
            engines.append(timed(lambda a=handle: list(engine.histograms(a, range(FEATURES))))[0])
        found[str(cells)] = {"reference": best(plain), "privet": best(engines)}
    return found


def measure_first(rows: int) -> dict[str, Any]:
    """Fit twice in a fresh process; `main` points numba's cache to an empty or a filled folder."""
    X, y = make_data(rows)
    imported, _ = timed(lambda: __import__("privet"))
    first, second = fit_privet(X, y)[0]["fit"], fit_privet(X, y)[0]["fit"]
    return {
        "import": imported,
        "first": first,
        "second": second,
        "numba": "numba" in sys.modules,
    }


def best(runs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the smallest wall and the smallest CPU time: others' work only ever adds."""
    return min(wall for wall, _ in runs), min(cpu for _, cpu in runs)


def best_of(runs: list[Times]) -> Times:
    return {part: best([run[part] for run in runs]) for part in runs[0]}


def trim_memory() -> None:
    """Give back what the warm-up freed, or the fit would use it again unseen."""
    gc.collect()
    if platform.system() == "Linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> None:
    """Start the high-water mark anew (Linux; elsewhere it is the whole process's)."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def peak_memory() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# The run: every measurement in its own process, then the table and the picture.


def in_process(*task: Any, cache: str | None = None) -> Any:
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, __file__, "--measure", *map(str, task)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def first_calls() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        return {
            "small": in_process("first", 10_000, cache=cache),
            "compiling": in_process("first", WARM_ROWS, cache=cache),
            "cached": in_process("first", WARM_ROWS, cache=cache),
        }


def run_all(sizes: list[int], repeats: int, sklearn_rows: int) -> dict[str, Any]:
    results: dict[str, Any] = {"fits": [], "counting": {}, "first": first_calls()}
    for rows in sizes:
        for name in FITS:
            if name == "sklearn" and rows > sklearn_rows:
                continue
            # scikit-learn takes minutes where the others take seconds, and varies little.
            times = 1 if name == "sklearn" and rows >= 1_000_000 else repeats
            times = min(times, 3) if rows >= 10_000_000 else times
            say(f"{rows:>10} rows: {LEARNERS[name].removeprefix('... ')}")
            got = in_process(name, rows, times)
            base = {"rows": rows, "memory": got["memory"], **got["facts"]}
            for part, (wall, cpu) in got["times"].items():
                label = name if part == "fit" else f"{name}-{part}"
                results["fits"].append({"learner": label, "wall": wall, "cpu": cpu, **base})
        say(f"{rows:>10} rows: one level's counting")
        results["counting"][rows] = in_process("counting", rows, repeats)
    return results


def exponents(rows: list[int], seconds: list[float]) -> str:
    """Return the slopes of seconds over rows, both as logarithms: all sizes; the last two."""
    if len(rows) < 2:
        return ""
    x, y = np.log(rows), np.log(seconds)
    return f"{np.polyfit(x, y, 1)[0]:.2f}; {np.polyfit(x[-2:], y[-2:], 1)[0]:.2f}"


def write_csv(results: dict[str, Any], path: Path) -> None:
    fields = [
        "measurement",
        "rows",
        "cells",
        "wall_s",
        "cpu_s",
        "peak_bytes",
        "nodes",
        "leaves",
        "depth",
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        for row in results["fits"]:
            entry = {key: row.get(key, "") for key in ("rows", "nodes", "leaves", "depth")}
            entry |= {"wall_s": round(row["wall"], 5), "cpu_s": round(row["cpu"], 5)}
            entry |= {"measurement": row["learner"], "peak_bytes": row["memory"]}
            writer.writerow(entry)
        for rows, levels in results["counting"].items():
            for cells, pair in levels.items():
                for name, (wall, cpu) in pair.items():
                    entry = {"measurement": f"counting-{name}", "rows": rows, "cells": cells}
                    writer.writerow(entry | {"wall_s": round(wall, 5), "cpu_s": round(cpu, 5)})
        for name, got in results["first"].items():
            for part in ("import", "first", "second"):
                wall, cpu = got[part]
                entry = {"measurement": f"process-{name}-{part}"}
                writer.writerow(entry | {"wall_s": round(wall, 5), "cpu_s": round(cpu, 5)})


def write_report(results: dict[str, Any], command: str, path: Path) -> None:
    fits = {(row["learner"], row["rows"]): row for row in results["fits"]}
    sizes = sorted({row["rows"] for row in results["fits"]})
    path.write_text(
        "\n\n".join(
            [
                "# Speed",
                "\n".join(facts_of(command)),
                "\n".join(fit_table(fits, sizes)),
                "\n".join(ratio_table(fits, sizes)),
                "\n".join(tree_table(fits, sizes)),
                "\n".join(counting_table(results["counting"])),
                "\n".join(first_table(results["first"])),
            ]
        )
        + "\n"
    )


def facts_of(command: str) -> list[str]:
    libraries = ("numpy", "numba", "opendp", "scikit-learn", "lightgbm")
    versions = ", ".join(f"{name} {version(name)}" for name in ("privet", *libraries))
    memory = psutil.virtual_memory().total / 2**30
    return [
        f"Command: `{command}`",
        "",
        f"- {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}; {cpu_name()}, {CORES} cores, "
        f"{memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}",
        f"- {versions}",
        f"- load average when the run ended: {os.getloadavg()[0]:.1f} (this run included)",
        f"- input: one float64 array in C order, {FEATURES} features, int64 classes, the same for "
        "all; scikit-learn turns it into float32 by itself, which is in its time",
        f"- threads: Privet and LightGBM use all {CORES} cores (Privet for binning, counting, "
        "routing and large batches of noise; selections and nodes are made in one thread), "
        "scikit-learn's tree has one thread",
        "- times are the smallest of the repeats, wall and CPU apart; no time contains compilation",
        "- memory: high-water mark of the first fit beyond the input, per cell of the table (at "
        "1e4 rows a byte per cell is a quarter of a megabyte: there it means little)",
        "- not the same work: Privet's bins are given by the schema, while LightGBM finds its own "
        "from a sample and scikit-learn tries every threshold; Privet's time contains exact noise",
        "- exponents: slope of log CPU time over log rows, through all sizes; then between the two "
        "largest alone. Privet changes from numpy to compiled loops at 4e6 values, so that only "
        "the second says how it scales",
    ]


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def fit_table(fits: dict[Any, Any], sizes: list[int]) -> list[str]:
    head = " | ".join(f"{rows:.0e} rows".replace("e+0", "e") for rows in sizes)
    lines = [
        f"## Whole fit, depth {DEPTH}: wall s (CPU s; peak bytes per cell)",
        "",
        f"| | {head} | exponents of CPU |",
        "| --- " * (len(sizes) + 2) + "|",
    ]
    for name, label in LEARNERS.items():
        entries = []
        for rows in sizes:
            row = fits.get((name, rows))
            if row is None:
                entries.append("skipped (`--sklearn-rows`)")
                continue
            per_cell = row["memory"] / (rows * FEATURES)
            memory = f"; {per_cell:.2f}" if name in FITS else ""
            entries.append(f"{row['wall']:.3g} ({row['cpu']:.3g}{memory})")
        run = [rows for rows in sizes if (name, rows) in fits]
        entries.append(exponents(run, [fits[name, rows]["cpu"] for rows in run]))
        lines.append(f"| {label} | {' | '.join(entries)} |")
    return lines


def ratio_table(fits: dict[Any, Any], sizes: list[int]) -> list[str]:
    lines = [
        "## How many times longer than Privet's whole fit: wall (CPU)",
        "",
        f"LightGBM's is the better of {CORES} threads and 1, for wall and CPU time apart: its "
        "threads wait by spinning, which on a machine with other work costs more than they save.",
        "",
        "| rows | scikit-learn | LightGBM, data set and tree | LightGBM, tree alone |",
        "| --- | --- | --- | --- |",
    ]
    for rows in sizes:
        ours = fits["privet", rows]
        entries = []
        for names in (("sklearn",), ("lightgbm", "lightgbm1"), ("lightgbm-tree", "lightgbm1-tree")):
            others = [fits[name, rows] for name in names if (name, rows) in fits]
            ratios = [
                min((other[unit] for other in others), default=np.nan) / ours[unit]
                for unit in ("wall", "cpu")
            ]
            entries.append(f"{ratios[0]:.3g} ({ratios[1]:.3g})" if others else "not run")
        lines.append(f"| {rows} | {' | '.join(entries)} |")
    return lines


def tree_table(fits: dict[Any, Any], sizes: list[int]) -> list[str]:
    lines = [
        "## The private trees",
        "",
        "The noise costs time per node: one draw for the count of a node above the last level, "
        "two for the class counts of a leaf, one selection for a split. Splits are multiway "
        f"({BINS} bins and one for missing values), so there are many more nodes than in the "
        "binary trees of the others; the noise decides where a branch stops.",
        "",
        "| rows | nodes | leaves | depth |",
        "| --- | --- | --- | --- |",
    ]
    for rows in sizes:
        row = fits["privet", rows]
        lines.append(f"| {rows} | {row['nodes']} | {row['leaves']} | {row['depth']} |")
    return lines


def counting_table(counting: dict[int, Any]) -> list[str]:
    lines = [
        f"## One level's counting, {FEATURES} features x {BINS} bins (+ 1) x 2 classes",
        "",
        "The reference is a plain numba loop over a row-major table, one thread, with the keys "
        "(cell and class) given; Privet's time contains the making of the keys. Both give the same "
        "counts (checked in the run).",
        "",
        "| rows | cells | reference: wall s (CPU s) | Privet: wall s (CPU s) "
        "| Privet / reference: wall (CPU) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rows, levels in counting.items():
        for cells, pair in levels.items():
            (plain_wall, plain_cpu), (wall, cpu) = pair["reference"], pair["privet"]
            lines.append(
                f"| {rows} | {cells} | {plain_wall:.3g} ({plain_cpu:.3g}) | {wall:.3g} ({cpu:.3g}) "
                f"| {wall / plain_wall:.2f} ({cpu / plain_cpu:.2f}) |"
            )
    for name in ("reference", "privet"):
        seconds = [levels["1"][name][1] for levels in counting.values()]
        lines += [
            "",
            f"Exponents of CPU time, 1 cell, {name}: {exponents(list(counting), seconds)}",
        ]
    return lines


def first_table(first: dict[str, Any]) -> list[str]:
    labels = {
        "small": "10,000 rows: numpy, nothing compiled",
        "compiling": f"{WARM_ROWS:,} rows, empty cache: compiles the loops",
        "cached": f"{WARM_ROWS:,} rows, loops from the cache on disk",
    }
    lines = [
        "## The first fit of a fresh process: wall s",
        "",
        "| | import privet (lazy) | first fit, with its imports | second fit | numba imported |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, label in labels.items():
        got = first[name]
        times = " | ".join(f"{got[part][0]:.3g}" for part in ("import", "first", "second"))
        lines.append(f"| {label} | {times} | {'yes' if got['numba'] else 'no'} |")
    extra = first["compiling"]["first"][0] - first["cached"]["first"][0]
    lines += ["", f"Compilation, once per installation: {extra:.1f} s"]
    return lines


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    shown = {
        "privet": ("Privet", "C0-o"),
        "sklearn": ("scikit-learn tree", "C3-s"),
        "lightgbm": (f"LightGBM, {CORES} threads", "C2-^"),
        "lightgbm1": ("LightGBM, 1 thread", "C2--^"),
    }
    for name, (label, style) in shown.items():
        rows = [row for row in results["fits"] if row["learner"] == name]
        sizes = [row["rows"] for row in rows]
        left.loglog(sizes, [row["wall"] for row in rows], style, label=label)
        if name in FITS:
            cells = [row["memory"] / (row["rows"] * FEATURES) for row in rows]
            right.loglog(sizes, cells, style, label=label)
    for name, style in (("reference", "k:x"), ("privet", "C0:o")):
        sizes = list(results["counting"])
        seconds = [results["counting"][rows]["1"][name][0] for rows in sizes]
        who = "Privet" if name == "privet" else "plain numba loop"
        left.loglog(sizes, seconds, style, label=f"counting one level, {who}")
    left.set(xlabel=f"rows (x {FEATURES} features)", ylabel="wall seconds", title="Time")
    right.axhline(3, color="grey", linewidth=0.8)
    right.set(
        xlabel=f"rows (x {FEATURES} features)",
        ylabel="peak bytes per cell beyond the input",
        title="Memory",
    )
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=float, default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--sklearn-rows", type=float, default=1e6, help="more rows than this: skip scikit-learn"
    )
    parser.add_argument("--quick", action="store_true", help="1e4 and 1e5 rows, two repeats")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, *numbers = options.measure
        counts = [int(number) for number in numbers]
        if name == "first":
            found = measure_first(*counts)
        elif name == "counting":
            found = measure_counting(*counts)
        else:
            found = measure_fit(name, *counts)
        print(json.dumps(found))
        return
    if options.quick:
        options.rows, options.repeats = [1e4, 1e5], 2
    sizes = sorted(int(rows) for rows in options.rows)
    results = run_all(sizes, options.repeats, int(options.sklearn_rows))
    words = sys.argv[1:]
    if "--out" in words:  # where the files went is no one else's business
        place = words.index("--out")
        del words[place : place + 2]
    command = " ".join(["python benchmarks/speed.py", *words])
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(results, options.out / "speed.csv")
    write_report(results, command, options.out / "speed.md")
    draw(results, options.out / "speed.png")
    say("wrote speed.csv, speed.md and speed.png")


if __name__ == "__main__":
    main()
