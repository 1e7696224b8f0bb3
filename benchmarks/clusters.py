"""A table in memory and on a Dask or Spark cluster of this machine: CPU seconds and megabytes.

Run ``python benchmarks/clusters.py --rows 1000000 --engine dask --learners topdown diffpid3 tree``.

Every engine fits the same table with the same noise, one after the other in one run, and the models
are compared byte for byte. CPU seconds are those of this process and all its children. Only ratios
within one run mean anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet

import privet
from privet import Categorical, Numeric, Schema
from privet.engines import View, memory_engine
from privet.errors import PrivacyLeakWarning

RESULTS = Path(__file__).with_name("results")
FEATURES = 12
SCHEMA = Schema(
    {
        **{f"x{j}": Numeric(0, 1) for j in range(FEATURES - 1)},
        "kind": Categorical(list("abcdefgh")),
    },
    "y",
    classes=[0, 1],
)
# Workers import this file too, so that what only learners need is loaded when one is made.
LEARNERS = {
    "topdown": lambda: privet.TopDownClassifier(schema=SCHEMA, random_state=1),
    "diffpid3": lambda: privet.DiffPID3Classifier(schema=SCHEMA, random_state=1),
    "tree": lambda: privet.PrivateTreeClassifier(schema=SCHEMA, random_state=1),
    "boosting": lambda: privet.PrivateBoostingClassifier(schema=SCHEMA, n_rounds=5, random_state=1),
}


def write(folder: Path, rows: int) -> None:
    """Write files of a million rows each, in groups of a quarter of a million."""
    for part in range(0, rows, 1_000_000):
        rng = np.random.default_rng(part)
        count = min(1_000_000, rows - part)
        columns = {f"x{j}": rng.random(count) for j in range(FEATURES - 1)}
        kind = rng.integers(0, 8, count)
        truth = (columns["x0"] > 0.3) & ((columns["x1"] < 0.6) | (kind > 4))
        columns["kind"] = pa.array(np.array(list("abcdefgh"))[kind]).dictionary_encode()
        columns["y"] = (truth ^ (rng.random(count) < 0.1)).astype(int)
        path = folder / f"{part // 1_000_000:05d}.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=2**18)


def cpu() -> float:
    """Return the CPU seconds of this process and of all that it started."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def memory() -> list[dict[str, int]]:
    """Return the megabytes of the two largest processes that this one started.

    The peak counts the code of libraries, which processes share; what is anonymous is their own.
    """
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError, KeyError):  # it may have ended
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            kept = {line.split(":")[0]: int(line.split()[1]) for line in lines if "kB" in line}
            found.append({"peak": kept["VmHWM"] // 1024, "anonymous": kept["RssAnon"] // 1024})
    return sorted(found, key=lambda one: -one["peak"])[:2]


def fit(name: str, engine) -> tuple[float, float, bytes]:
    """Return the CPU and wall seconds of a fit, and the model."""
    model = LEARNERS[name]()
    options = model._check_parameters(SCHEMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        table = privet.PrivateTable(engine, None, None, model._budget(SCHEMA), random_state=1)
    start, wall = cpu(), time.perf_counter()
    predictor = model._learn(table, **options)
    took = cpu() - start, time.perf_counter() - wall
    return *took, json.dumps(predictor.to_dict(), sort_keys=True).encode()


def warm(make, learners: list[str]) -> None:
    """Fit once, so that no time contains compilation."""
    engine = make()
    for name in learners:
        fit(name, engine)
    engine.close()


def measure(kind: str, make, learners: list[str]) -> dict:
    start, wall = cpu(), time.perf_counter()
    engine = make()
    row = {"engine": kind, "encode": cpu() - start, "encode wall": time.perf_counter() - wall}
    models = {}
    for name in learners:
        took, wall, models[name] = fit(name, engine)
        row[name], row[f"{name} wall"] = took, wall
        print(f"  {kind} {name}: {took:.2f} CPU s, {wall:.2f} s", flush=True)
    row["MB"] = memory() if kind != "memory" else None
    engine.close()
    return row | {"models": models}


def empty_round(make) -> float:
    """Return the CPU milliseconds of a question about a hundred rows."""
    engine = make()
    root = engine.root(View.of_bins(SCHEMA))
    engine.class_counts(root)
    start, rounds = cpu(), 100
    for _ in range(rounds):
        engine.class_counts(root)
    took = (cpu() - start) / rounds * 1000
    engine.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", default="dask", choices=["dask", "spark"])
    parser.add_argument("--learners", nargs="+", default=["topdown", "diffpid3", "tree"])
    parser.add_argument("--no-gather", action="store_true")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        if not any(folder.glob("*.parquet")):
            folder.mkdir(exist_ok=True)
            write(folder, given.rows)
        run(folder, given)


def run(folder: Path, given: argparse.Namespace) -> None:
    names = [*SCHEMA.names, SCHEMA.target]

    def in_memory():
        return memory_engine(pyarrow.parquet.read_table(folder, columns=names), None, SCHEMA)

    warm(in_memory, given.learners)
    rows = [measure("memory", in_memory, given.learners)]
    with cluster(given, folder) as make, tempfile.TemporaryDirectory() as small:
        warm(make, given.learners)
        rows.append(measure(given.engine, make, given.learners))
        write(Path(small), 100)
        rows[1]["empty round, ms"] = empty_round(lambda: make(Path(small)))
    rows.append(measure("memory", in_memory, given.learners))
    models = [row.pop("models") for row in rows]
    same = all(found == models[0] for found in models)
    ratios = {
        name: rows[1][name] * 2 / (rows[0][name] + rows[2][name])
        for name in ("encode", *given.learners)
    }
    result = {"rows": given.rows, "same models": same, "ratios": ratios, "runs": rows}
    print(json.dumps(result, indent=1))
    name = f"clusters_{given.engine}_{given.rows}{'_sums' if given.no_gather else ''}.json"
    (RESULTS / name).write_text(json.dumps(result, indent=1) + "\n")


@contextlib.contextmanager
def cluster(given: argparse.Namespace, folder: Path):
    """Start a cluster with two worker processes, and yield what makes its engine."""
    if given.engine == "dask":
        from privet.engines import dask

        with contextlib.ExitStack() as opened:
            client = dask._local(opened)
            yield lambda source=folder: dask.dask_engine(
                source, SCHEMA, client=client, gather=not given.no_gather
            )
        return
    from pyspark.sql import SparkSession

    from privet.engines.spark import spark_engine

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    yield lambda source=folder: spark_engine(session.read.parquet(str(source)), SCHEMA)
    session.stop()


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    main()
