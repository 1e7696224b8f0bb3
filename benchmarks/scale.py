"""Measure how fits grow with rows: in memory, in mapped files, and on local clusters.

The tables have 12 numbers and two classes, and lie in Parquet files of a million rows each, which
this script writes. Parts:

* a: fits on blocks in mapped files against the memory engine on the same table;
* b: encoding streams of rows into mapped files: rows per CPU second, and memory;
* c: fits on 1e8 rows in mapped files;
* d: clusters of two local workers (Dask, Spark) against memory: fits, a round without work, the
  memory of a worker, and a worker that is killed in mid-fit;
* e: time and memory against rows, the table's opening included;
* f: how many questions a fit asks, and how many bytes they and their answers are.

Every measurement runs in a process of its own, after a fit on a small table that loads compiled
loops. CPU seconds are those of the process and all processes below it, the sampling of memory taken
off. Anonymous memory (what is not a page of a file) is sampled every ten milliseconds in each of
these processes. Noise is numpy's, seeded, so that all engines must give the same model, which is
checked; less of a fit is noise than with OpenDP's, so that ratios are rather too strict.

Run ``python benchmarks/scale.py``; it writes ``scale.csv``, ``scale.md`` and ``scale.png``. What
the CSV has already is kept and not measured again, unless ``--again``.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import gc
import hashlib
import importlib.util
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _report import command, machine, table, versions
from speed import cpu_name

HERE = Path(__file__).parent
FEATURES, CLASSES, FILE_ROWS = 12, 2, 1_000_000
PARTS = ("a", "b", "c", "d", "e", "f")
#: Rows of the fit that loads compiled loops.
WARM_ROWS = 20_000
MB = 1e6

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "DiffPID3": ("DiffPID3Classifier", {}),
    "TopDown": ("TopDownClassifier", {}),
    "DiPriMe": ("DiPriMeTreeClassifier", {}),
    "tree, depth 3": ("PrivateTreeClassifier", {"max_depth": 3}),
    "tree": ("PrivateTreeClassifier", {}),
    "boosting, 3 rounds": ("PrivateBoostingClassifier", {"n_rounds": 3}),
    "boosting, 5 rounds": ("PrivateBoostingClassifier", {"n_rounds": 5}),
    "boosting, delta": ("PrivateBoostingClassifier", {"n_rounds": 5, "delta": 1e-6}),
}
GREEDY = ("DiffPID3", "TopDown", "DiPriMe")
SMALL = (*GREEDY, "tree, depth 3", "boosting, 3 rounds")
LARGE = ("DiffPID3", "TopDown", "tree, depth 3", "tree", "boosting, delta")
STREAMS = ("Parquet files", "DuckDB", "polars", "pyarrow dataset", "batches")
CLUSTERS = {"Dask": "privet.engines.dask", "Spark": "privet.engines.spark"}
#: The learner of part e.
GROWING = "TopDown"

#: What is text in the CSV.
TEXTS = ("facts", "model", "date", "processor")
KEY = ["part", "what", "engine", "learner", "rows"]
FOUND = [
    "repeats",
    "cpu_s",
    "wall_s",
    "open_cpu_s",
    "open_wall_s",
    "anon_mb",
    "rss_mb",
    "worker_mb",
    "start_mb",
    "model",
    "facts",
    "date",
    "processor",
]
Task = dict[str, Any]
Line = dict[str, Any]


# The data


def make_rows(number: int, rows: int = FILE_ROWS) -> dict[str, Any]:
    """Return the columns of one file; five features carry signal."""
    rng = np.random.default_rng([18, number])
    x = rng.random((FEATURES, rows))
    score = 3 * (x[0] > 0.6) + 2 * np.sin(9 * x[1]) + 3 * x[2] * (x[3] < 0.4) - 2 * x[4] - 0.9
    y = rng.random(rows) < 1 / (1 + np.exp(-score))
    return {**{f"x{j}": column for j, column in enumerate(x)}, "y": y.astype(np.int8)}


def make_files(data: Path, rows: int) -> Path:
    """Return a folder with this many rows; files that are there are used again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = data / f"rows-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-(-rows // FILE_ROWS)):
        whole = rows >= FILE_ROWS
        place = folder / f"part-{number:04}.parquet"
        file = data / place.name if whole else place
        if not file.exists():
            say(f"writing {file.name} of {rows} rows")
            unfinished = file.with_suffix(".unfinished")
            columns = pa.table(make_rows(number, min(rows, FILE_ROWS)))
            group = FILE_ROWS if whole else rows // 2  # two, so that two workers have some
            pq.write_table(columns, unfinished, row_group_size=group)
            unfinished.rename(file)
        if whole and not place.exists():
            place.symlink_to(Path("..") / file.name)
    return folder


def make_schema() -> Any:
    from privet import Numeric, Schema

    features = {f"x{j}": Numeric(0, 1) for j in range(FEATURES)}
    return Schema(features, target="y", classes=list(range(CLASSES)))


# Time and memory of this process and all below it


class Meter:
    """Samples memory in a thread, and adds up CPU seconds."""

    def __init__(self, *, below: bool) -> None:
        self._below = below
        self._me = psutil.Process()
        self._end = threading.Event()
        self._own = 0.0
        self._known: dict[int, psutil.Process] = {}
        self.anon: dict[int, int] = {}
        self.rss: dict[int, int] = {}
        #: Largest sums over all processes at one time.
        self.most_anon = self.most_rss = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        looked = -math.inf
        while not self._end.wait(0.01):
            if self._below and time.monotonic() - looked > 0.25:
                looked = time.monotonic()
                self._known = {child.pid: child for child in self._me.children(recursive=True)}
            self._sample()
            self._own = time.thread_time()

    def _sample(self) -> None:
        anon = rss = 0
        for process in (self._me, *self._known.values()):
            with contextlib.suppress(psutil.Error):
                found = process.memory_info()
                mine = found.rss - getattr(found, "shared", 0)
                self.anon[process.pid] = max(self.anon.get(process.pid, 0), mine)
                self.rss[process.pid] = max(self.rss.get(process.pid, 0), found.rss)
                anon, rss = anon + mine, rss + found.rss
        self.most_anon, self.most_rss = max(self.most_anon, anon), max(self.most_rss, rss)

    def cpu(self) -> float:
        """Return the CPU seconds so far, of processes that ended, too."""
        ended = os.times()
        seconds = time.process_time() + ended.children_user + ended.children_system - self._own
        if self._below:
            for child in self._me.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    seconds += sum(child.cpu_times()[:4])
        return seconds

    def timed(self, work: Callable[[], Any]) -> tuple[float, float, Any]:
        """Return CPU seconds, wall seconds and what the work returned."""
        cpu, wall = self.cpu(), time.perf_counter()
        result = work()
        return self.cpu() - cpu, time.perf_counter() - wall, result

    def found(self) -> Line:
        """Return the most memory at one time."""
        return {"anon_mb": round(self.most_anon / MB), "rss_mb": round(self.most_rss / MB)}


# Engines


def open_memory(task: Task) -> Any:
    import pyarrow.parquet as pq

    from privet.engines import memory_engine

    rows = pq.read_table(task["folder"])
    engine = memory_engine(rows, None, make_schema())
    engine.frame = rows  # who fits in memory has the rows there, too
    return engine


def open_stored(task: Task) -> Any:
    """Open blocks that were encoded before, for the parts that measure the fit alone."""
    from privet.engines.stored import open_blocks

    return open_blocks(task["blocks"])


def open_mapped(task: Task) -> Any:
    from privet.engines.stored import encode_stream
    from privet.reading import Source

    return encode_stream(Source(task["folder"]).open(make_schema()), task["scratch"])


def open_dask(task: Task) -> Any:
    from privet.engines.dask import dask_engine

    return dask_engine(task["folder"], make_schema(), gather=True)


def open_spark(task: Task) -> Any:
    from pyspark.sql import SparkSession

    from privet.engines.spark import spark_engine

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    rows = builder.getOrCreate().read.parquet(task["folder"])
    return spark_engine(rows.repartition(2) if task["rows"] < FILE_ROWS else rows, make_schema())


OPEN = {
    "memory": open_memory,
    "stored": open_stored,
    "blocks": open_mapped,
    "Dask": open_dask,
    "Spark": open_spark,
}


def workers_of(engine: str) -> list[psutil.Process]:
    """Return the worker processes of a local cluster."""
    sign = "spawn_main" if engine == "Dask" else "pyspark.daemon"
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = " ".join(child.cmdline())
            if sign in words and (engine == "Dask" or not child.children()):
                found.append(child)
    return found


# One measurement, in a process of its own


def fit(engine: Any, learner: str) -> str:
    """Fit once, with seeded noise, and return the model's digest."""
    import privet
    from privet.privacy.coins import Coins

    # Public choices of forests are the estimator's; it takes no seed along with a table.
    Coins.of = classmethod(lambda cls, _: cls(0))
    name, options = LEARNERS[learner]
    budget = privet.Budget(1, options.get("delta"))
    rows = privet.PrivateTable(engine, None, None, budget, random_state=0)
    model = getattr(privet, name)(epsilon=1, **options).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def warm_up(learner: str | None, rows: int) -> None:
    """Load compiled loops, if a table of so many rows uses them, and what a fit imports."""
    import pyarrow as pa

    from privet.engines import _kernels, memory_engine

    usual = _kernels.COMPILE_FROM
    _kernels.COMPILE_FROM = 0 if _kernels.compiled(rows * FEATURES) else math.inf
    engine = memory_engine(pa.table(make_rows(0, WARM_ROWS)), None, make_schema())
    if learner is not None:
        fit(engine, learner)
    _kernels.COMPILE_FROM = usual


def measure_fit(task: Task) -> Line:
    cluster = task["engine"] in CLUSTERS
    warm_up(task["learner"], task["rows"])
    trim_memory()
    start = anonymous()
    opened, fitted, digests = [], [], set()
    with Meter(below=cluster) as meter:
        for _ in range(task["repeats"]):
            *times, engine = meter.timed(lambda: OPEN[task["engine"]](task))
            opened.append(times)
            *times, digest = meter.timed(lambda e=engine: fit(e, task["learner"]))
            fitted.append(times)
            digests.add(digest)
            workers = [worker.pid for worker in workers_of(task["engine"])] if cluster else []
            engine.close()
            del engine
            trim_memory()
    assert len(digests) == 1, "the same noise gave two models"
    found = {**best(fitted), **{f"open_{name}": value for name, value in best(opened).items()}}
    if cluster:
        found["worker_mb"] = round(max(meter.anon.get(pid, 0) for pid in workers) / MB)
    return {**found, **meter.found(), "start_mb": start, "model": digests.pop()}


def measure_encode(task: Task) -> Line:
    """Encode a stream of rows."""
    from privet import Budget, PrivateTable

    warm_up(None, task["rows"])
    schema, budget, place = make_schema(), Budget(1), task["scratch"]

    def opened() -> Any:
        if task["engine"] == "Parquet files":
            return PrivateTable.from_parquet(task["folder"], schema, budget, directory=place)
        source = stream(task["engine"], task["folder"])
        return PrivateTable.from_batches(source, schema, budget, directory=place)

    trim_memory()
    start = anonymous()
    times = []
    with Meter(below=False) as meter:
        for _ in range(task["repeats"]):
            *took, rows = meter.timed(opened)
            times.append(took)
            size = sum(file.stat().st_size for file in Path(place).rglob("block-*"))
            rows.close()
    return {**best(times), **meter.found(), "start_mb": start, "facts": {"bytes": size}}


def stream(name: str, folder: str) -> Any:
    files = f"{folder}/*.parquet"
    if name == "DuckDB":
        import duckdb

        return duckdb.sql(f"SELECT * FROM '{files}'")
    if name == "polars":
        import polars

        return polars.scan_parquet(files)
    if name == "pyarrow dataset":
        import pyarrow.dataset

        return pyarrow.dataset.dataset(folder)
    return batches(folder)


def batches(folder: str) -> Iterator[Any]:
    import pyarrow.parquet as pq

    for file in sorted(Path(folder).glob("*.parquet")):
        yield from pq.ParquetFile(file).iter_batches()


def measure_round(task: Task) -> Line:
    """Ask a question that is no work: the class counts of a small table with two blocks."""
    from privet.engines import View, parquet

    parquet.PIECE_ROWS = 1
    rounds = 100
    with Meter(below=True) as meter:
        *start, engine = meter.timed(lambda: OPEN[task["engine"]](task))
        cells = engine.root(View.of_bins(engine.schema))
        for _ in range(5):
            engine.class_counts(cells)
        cpu, wall, _ = meter.timed(lambda: [engine.class_counts(cells) for _ in range(rounds)])
        engine.close()
    found = {"cpu_s": cpu / rounds, "wall_s": wall / rounds}
    return {**found, "open_cpu_s": start[0], "open_wall_s": start[1], **meter.found()}


def measure_kill(task: Task) -> Line:
    """Kill a worker before the first, a middle and the last question of a fit."""
    warm_up(task["learner"], task["rows"])

    def run(kill_at: int | None) -> tuple[int, float, str]:
        engine = OPEN[task["engine"]](task)
        asked, ask = 0, engine._blocks.ask

        def counted(*given: Any) -> Any:
            nonlocal asked
            asked += 1
            if asked == kill_at:
                os.kill(workers_of(task["engine"])[0].pid, signal.SIGKILL)
            return ask(*given)

        engine._blocks.ask = counted
        start = time.perf_counter()
        digest = fit(engine, task["learner"])
        seconds = time.perf_counter() - start
        engine.close()
        return asked, seconds, digest

    run(None)  # a cluster's first fit takes longer
    questions, usual, digest = run(None)
    places = sorted({1, -(-questions // 2), questions})
    runs = {place: run(place) for place in places}
    more = {place: round(seconds - usual, 2) for place, (_, seconds, _) in runs.items()}
    same = all(found == digest for *_, found in runs.values())
    facts = {"questions": questions, "more": more, "same": same}
    return {"wall_s": usual, "model": digest, "facts": facts}


def measure_questions(task: Task) -> Line:
    """Count the questions of a fit, and the bytes that go out and come back for one worker."""
    from privet.engines.engine import BlockEngine

    engine = open_memory(task)
    engine._blocks.gathers = task["engine"] != "sums"
    number: Counter[str] = Counter()
    out: Counter[str] = Counter()
    back: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    told: set[Any] = set()
    plain = BlockEngine._ask

    def counted(self: Any, question: Any, *handles: Any) -> Any:
        answer = plain(self, question, *handles)
        name = type(question).__name__
        number[name] += 1
        out[name] += sent(question, told)
        size = bytes_of(answer)
        back[name] += size
        largest[name] = max(largest[name], size)
        return answer

    BlockEngine._ask = counted
    digest = fit(engine, task["learner"])
    facts = {name: [number[name], out[name], back[name], largest[name]] for name in sorted(number)}
    return {"model": digest, "facts": facts}


def sent(question: Any, told: set[Any]) -> int:
    """Return the bytes of a question to a worker that knows what it was told before."""
    import io

    from privet.engines.lineage import Lineage, ScoreLineage
    from privet.engines.views import View
    from privet.schema import Schema

    class Writer(pickle.Pickler):
        def persistent_id(self, thing: Any) -> Any:
            if isinstance(thing, Lineage | ScoreLineage):
                name: Any = thing.number
            elif isinstance(thing, View):
                name = thing.cuts
            else:
                return "schema" if isinstance(thing, Schema) else None
            if name in told:
                return str(hash(name))
            told.add(name)
            return None

    file = io.BytesIO()
    Writer(file, protocol=5).dump(question)
    return len(file.getvalue())


def bytes_of(answer: Any) -> int:
    if isinstance(answer, np.ndarray):
        return answer.nbytes
    return sum(map(bytes_of, answer)) if isinstance(answer, list | tuple) else 8


MEASURE = {
    "fit": measure_fit,
    "encode": measure_encode,
    "round": measure_round,
    "kill": measure_kill,
    "questions": measure_questions,
}


def best(times: list[list[float]]) -> Line:
    """Return the smallest CPU and wall time: others' work only ever adds."""
    cpu, wall = (min(values) for values in zip(*times, strict=True))
    return {"cpu_s": cpu, "wall_s": wall}


def anonymous() -> int:
    """Return the anonymous memory of this process in MB."""
    found = psutil.Process().memory_info()
    return round((found.rss - getattr(found, "shared", 0)) / MB)


def trim_memory() -> None:
    from speed import trim_memory as trim

    gc.collect()
    trim()


# What is measured. Those that are compared with each other are in one list, and run together.


def plan(part: str, most: int, engines: list[str]) -> Iterator[list[Task]]:
    for tasks in PLAN[part](engines):
        if all(task["rows"] <= most for task in tasks):
            yield [{"part": part, "learner": "", "repeats": 1, **task} for task in tasks]


def plan_a(engines: list[str]) -> Iterator[list[Task]]:
    del engines
    for rows, learners in ((10**6, SMALL), (10**7, GREEDY)):
        for learner in learners:
            repeats = 2 if learner not in GREEDY else 3
            yield [
                {"what": "fit", "engine": engine, "learner": learner, "rows": rows,
                 "repeats": repeats}
                for engine in ("memory", "stored")
            ]  # fmt: skip


def plan_b(engines: list[str]) -> Iterator[list[Task]]:
    del engines
    for rows in (10**6, 10**7, 10**8):
        repeats = 3 if rows < 10**7 else 1
        sources = STREAMS if rows == 10**7 else STREAMS[:1]
        for source in sources:
            yield [{"what": "encode", "engine": source, "rows": rows, "repeats": repeats}]


def plan_c(engines: list[str]) -> Iterator[list[Task]]:
    del engines
    for rows in (10**7, 10**8):
        for learner in LARGE:
            yield [{"what": "fit", "engine": "stored", "learner": learner, "rows": rows}]


def plan_d(engines: list[str]) -> Iterator[list[Task]]:
    clusters = [engine for engine in engines if engine in CLUSTERS]
    sizes = [(name, rows) for rows in (10**6, 10**7) for name in GREEDY]
    for learner, rows in (*sizes, ("tree, depth 3", 10**6)):
        yield [
            {"what": "fit", "engine": engine, "learner": learner, "rows": rows, "repeats": 2}
            for engine in ("memory", *clusters)
        ]
    for engine in clusters:
        yield [{"what": "round", "engine": engine, "rows": 10**4}]
        yield [{"what": "kill", "engine": engine, "learner": "TopDown", "rows": 10**7}]
        yield [{"what": "kill", "engine": engine, "learner": "tree, depth 3", "rows": 10**6}]


def plan_e(engines: list[str]) -> Iterator[list[Task]]:
    for rows in (10**4, 10**5, 10**6, 10**7):
        yield [
            {"what": "fit", "engine": engine, "learner": GROWING, "rows": rows}
            for engine in ("memory", "blocks", *engines)
            if engine != "stored"
        ]


def plan_f(engines: list[str]) -> Iterator[list[Task]]:
    del engines
    for rows in (10**6, 10**7):
        learners = (*SMALL[:-1], "boosting, 5 rounds") if rows == 10**6 else GREEDY
        for learner in learners:
            yield [{"what": "questions", "engine": "memory", "learner": learner, "rows": rows}]
    for learner in ("tree, depth 3", "boosting, 5 rounds"):
        yield [{"what": "questions", "engine": "sums", "learner": learner, "rows": 10**6}]


PLAN = {"a": plan_a, "b": plan_b, "c": plan_c, "d": plan_d, "e": plan_e, "f": plan_f}


def here(name: str) -> bool:
    try:
        needs = {"Dask": "distributed", "Spark": "pyspark"}[name]
        return all(importlib.util.find_spec(module) for module in (needs, CLUSTERS[name]))
    except ModuleNotFoundError:
        return False


class Runner:
    """Runs measurements one after the other; blocks that several of them need are made once."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._opened = contextlib.ExitStack()
        self._scratch = Path(self._opened.enter_context(tempfile.TemporaryDirectory(dir=data)))
        self._blocks: dict[int, Path] = {}

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def run(self, task: Task) -> Line:
        """Return the CSV's line for a measurement."""
        given = dict(task, folder=str(make_files(self._data, task["rows"])))
        given["scratch"] = str(self._scratch)
        if task["engine"] == "stored":
            given["blocks"] = str(self._stored(task["rows"], given["folder"]))
        about = [task["part"], task["what"], task["engine"], task["learner"], f"{task['rows']:.0e}"]
        say(", ".join(filter(None, about)))
        words = [sys.executable, __file__, "--measure", json.dumps(given)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        found = {name: rounded(value) for name, value in found.items()}
        say("   " + ", ".join(f"{name} {value}" for name, value in found.items()))
        found["facts"] = json.dumps(found["facts"]) if "facts" in found else ""
        line = {name: task.get(name, "") for name in (*KEY, "repeats")}
        today = f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}"
        return {**line, **found, "date": today, "processor": cpu_name()}

    def _stored(self, rows: int, folder: str) -> Path:
        if rows not in self._blocks:
            place = self._scratch / f"blocks-{rows}"
            from privet.engines.stored import keep_blocks
            from privet.reading import Source

            say(f"encoding {rows:.0e} rows")
            keep_blocks(Source(folder).open(make_schema()), place)
            self._blocks = {rows: place}
        return self._blocks[rows]


def rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# The report


def key_of(line: Line) -> tuple[str, ...]:
    return tuple(str(line[name]) for name in KEY)


def read_lines(path: Path) -> dict[tuple[str, ...], Line]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {key_of(line): line for line in csv.DictReader(file)}


def write_lines(path: Path, lines: dict[tuple[str, ...], Line]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*KEY, *FOUND], lineterminator="\n")
        writer.writeheader()
        order = sorted(lines.values(), key=lambda line: (line["part"], int(line["rows"])))
        writer.writerows(order)


class Results:
    """The lines of the CSV, as numbers."""

    def __init__(self, lines: dict[tuple[str, ...], Line]) -> None:
        self.lines = [
            {
                name: number(value)
                if name not in ("facts", "model", "date", "processor")
                else value
                for name, value in line.items()
            }
            for line in lines.values()
        ]

    def of(self, part: str, what: str, **wanted: Any) -> list[Line]:
        """Return some measurements, by rows."""
        found = [
            line
            for line in self.lines
            if line["part"] == part
            and line["what"] == what
            and all(line[name] == value for name, value in wanted.items())
        ]
        return sorted(found, key=lambda line: line["rows"])

    def one(self, part: str, what: str, **wanted: Any) -> Line | None:
        """Return the first of them, if there is any."""
        found = self.of(part, what, **wanted)
        return found[0] if found else None


def number(text: Any) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def processors(lines: dict[tuple[str, ...], Line]) -> str:
    """Say which parts were measured on which processor."""
    found: dict[str, set[str]] = {}
    for line in lines.values():
        cluster = f" ({line['engine']})" if line["engine"] in CLUSTERS else ""
        found.setdefault(line["processor"], set()).add(line["part"] + cluster)
    return "; ".join(f"{name}: {', '.join(sorted(parts))}" for name, parts in found.items())


def report(lines: dict[tuple[str, ...], Line], out: Path) -> None:
    results = Results(lines)
    write_lines(out / "scale.csv", lines)
    dates = sorted({line["date"] for line in lines.values()})
    packages = ["numpy", "numba", "pyarrow", "duckdb", "polars", "dask", "distributed", "pyspark"]
    there = [name for name in packages if importlib.util.find_spec(name)]
    import privet

    text = [
        "# Scale",
        f"Last command: `{command()}`; parts that it did not run are kept from earlier ones.",
        "\n".join(
            [
                f"- {machine()}; measured {' to '.join(sorted({dates[0], dates[-1]}))}",
                f"- processors: {processors(lines)}; only numbers of the same one compare",
                f"- privet {privet.__version__}, {versions(*there)}",
                f"- {FEATURES} numbers (float64) and {CLASSES} classes in Parquet files of a "
                "million rows; five features carry signal",
                "- every measurement in a process of its own, compiled loops loaded before; times "
                "are the smallest of the repeats (CSV), CPU of all processes and threads",
                "- anonymous memory: the most at one time, libraries and compiled loops included, "
                "of all processes together unless said otherwise; RSS has the mapped pages of "
                "files, too, which the system can drop or write out whenever it needs memory",
                "- noise is numpy's and seeded (which protects nobody), the same for all engines: "
                "less of a fit is noise than with OpenDP's, so ratios are rather too strict",
                "- the machine had other work at the same time; CPU times within one comparison "
                "were measured one after the other",
            ]
        ),
    ]
    for title, told, part in (
        ("a. Blocks in mapped files against memory, the fit alone", A_TOLD, report_a),
        ("b. Streams into mapped files", B_TOLD, report_b),
        ("c. Large tables in mapped files", C_TOLD, report_c),
        ("d. Two local workers", D_TOLD, report_d),
        ("e. Time and memory against rows", E_TOLD, report_e),
        ("f. Questions of a fit", F_TOLD, report_f),
        ("g. Past this machine, by these numbers", G_TOLD, report_g),
    ):
        tables = part(results)
        text += [f"## {title}", told, *(tables or ["Not measured yet."])]
    (out / "scale.md").write_text("\n\n".join(part.strip() for part in text) + "\n")
    draw(results, out / "scale.png")


A_TOLD = """
Wanted: at most 1.2 times the CPU time. Every repeat has a fresh engine, so that views are made and
pages are mapped within the time.
"""
B_TOLD = """
Wanted of Parquet files: 2 million rows per CPU second, and at most 400 MB of anonymous memory
whatever the number of rows. Other readers read ahead as they like. Libraries and compiled loops
take what is said to be there at the start.
"""
C_TOLD = """
Wanted: within 8 GB of memory at 1e8 rows. The blocks were encoded before (part b).
"""
D_TOLD = """
Wanted on Dask: greedy learners at 1e7 rows at most 2.0 times the CPU time of memory, the tree at
1e6 at most 1.6; a round without work 25 ms CPU on Dask, 220 on Spark; a worker at most 5 bytes per
cell of its rows and 250 MB; a worker killed: the same model within 15 s. CPU is that of the fit
alone: of this process, the scheduler and all workers.
"""
E_TOLD = f"""
{GROWING}, one fit. Opening is reading the Parquet files and encoding them, on a cluster its start,
too. In memory the rows are held as they were read while the fit runs, as they are when somebody
fits a dataframe.
"""
F_TOLD = """
Bytes for one worker: questions with the steps of their cells (each told once), and answers. Sums
grow with the number of cells, and only through it with rows; records (`TreeRows`) are brought to
the driver. "by sums": the same fit where they may not be.
"""
G_TOLD = """
Computed, not measured: CPU seconds per row of the largest table of parts c and a, the questions of
part f, 16 workers. Moved is what comes and goes if the driver adds up every worker's answers
itself. Memory of all workers: codes (2 B a number, 1 B the class), one view (1 B a cell), three
live arrays of cells (4 B a row each) and for boosting scores (8 B a row).
"""


def seconds(value: float) -> str:
    return f"{value:.3g}"


def report_a(results: Results) -> list[str]:
    lines = []
    for mine in results.of("a", "fit", engine="stored"):
        same = {"learner": mine["learner"], "rows": mine["rows"]}
        other = results.one("a", "fit", engine="memory", **same)
        assert other is not None
        ratio = mine["cpu_s"] / other["cpu_s"]
        lines.append(
            [
                short(mine["rows"]),
                mine["learner"],
                f"{seconds(other['cpu_s'])} ({seconds(other['wall_s'])})",
                f"{seconds(mine['cpu_s'])} ({seconds(mine['wall_s'])})",
                f"{ratio:.2f}" + ("" if ratio <= 1.2 else " (missed)"),
                f"{other['anon_mb']:.0f}",
                f"{mine['anon_mb']:.0f}",
                "yes" if mine["model"] == other["model"] else "NO",
            ]
        )
    head = [
        "rows",
        "learner",
        "memory, CPU s (wall)",
        "mapped, CPU s (wall)",
        "ratio of CPU",
        "memory, anonymous MB",
        "mapped, anonymous MB",
        "same model",
    ]
    return [table(head, lines)] if lines else []


def report_b(results: Results) -> list[str]:
    lines = []
    for line in results.of("b", "encode"):
        speed = line["rows"] / line["cpu_s"] / 1e6
        ours = line["engine"] == STREAMS[0]
        lines.append(
            [
                line["engine"],
                short(line["rows"]),
                seconds(line["cpu_s"]),
                seconds(line["wall_s"]),
                f"{speed:.2f}" + (" (missed)" if ours and speed < 2 else ""),
                f"{line['anon_mb']:.0f}" + (" (missed)" if ours and line["anon_mb"] > 400 else ""),
                f"{line['start_mb']:.0f}",
                f"{line['rss_mb']:.0f}",
                f"{json.loads(line['facts'])['bytes'] / line['rows']:.1f}",
            ]
        )
    head = [
        "stream",
        "rows",
        "CPU s",
        "wall s",
        "million rows per CPU s",
        "anonymous MB",
        "of these at the start",
        "RSS MB",
        "bytes per row in files",
    ]
    return [table(head, lines)] if lines else []


def report_c(results: Results) -> list[str]:
    lines = [
        [
            short(line["rows"]),
            line["learner"],
            seconds(line["cpu_s"]),
            seconds(line["wall_s"]),
            f"{line['anon_mb']:.0f}",
            f"{line['rss_mb']:.0f}"
            + ("" if line["rss_mb"] <= 8000 else " (mapped pages included)"),
        ]
        for line in results.of("c", "fit")
    ]
    head = ["rows", "learner", "CPU s", "wall s", "anonymous MB", "RSS MB"]
    return [table(head, lines)] if lines else []


def report_d(results: Results) -> list[str]:
    fits, rounds, kills = [], [], []
    for line in results.of("d", "fit"):
        if line["engine"] == "memory":
            continue
        same = {"learner": line["learner"], "rows": line["rows"]}
        other = results.one("d", "fit", engine="memory", **same)
        assert other is not None
        allowed = 5 * line["rows"] / 2 * FEATURES / MB + 250
        fits.append(
            [
                str(line["engine"]),
                short(line["rows"]),
                line["learner"],
                seconds(other["cpu_s"]),
                f"{seconds(line['cpu_s'])} ({seconds(line['wall_s'])})",
                f"{line['cpu_s'] / other['cpu_s']:.2f}",
                f"{seconds(line['open_cpu_s'])} ({seconds(line['open_wall_s'])})",
                f"{line['worker_mb']:.0f} ({allowed:.0f})",
                "yes" if line["model"] == other["model"] else "NO",
            ]
        )
    rounds += [
        [str(line["engine"]), f"{1000 * line['cpu_s']:.1f}", f"{1000 * line['wall_s']:.1f}",
         seconds(line["open_cpu_s"])]
        for line in results.of("d", "round")
    ]  # fmt: skip
    for line in results.of("d", "kill"):
        facts = json.loads(line["facts"])
        more = "; ".join(f"{place}: {value}" for place, value in facts["more"].items())
        kills.append(
            [
                str(line["engine"]),
                short(line["rows"]),
                line["learner"],
                str(facts["questions"]),
                seconds(line["wall_s"]),
                more,
                "yes" if facts["same"] else "NO",
            ]
        )
    heads = (
        ["cluster", "rows", "learner", "memory, CPU s", "CPU s (wall)", "ratio of CPU",
         "start and encoding, CPU s (wall)", "largest worker, anonymous MB (allowed)",
         "same model"],
        ["cluster", "a round without work, CPU ms", "wall ms", "start, CPU s"],
        ["cluster", "rows", "learner", "questions", "fit, wall s",
         "a worker killed before question: seconds more", "same model"],
    )  # fmt: skip
    found = zip(heads, (fits, rounds, kills), strict=True)
    return [table(head, lines) for head, lines in found if lines]


def report_e(results: Results) -> list[str]:
    models = {line["rows"]: line["model"] for line in results.of("e", "fit", engine="memory")}
    lines = [
        [
            short(line["rows"]),
            str(line["engine"]),
            f"{seconds(line['open_cpu_s'])} ({seconds(line['open_wall_s'])})",
            f"{seconds(line['cpu_s'])} ({seconds(line['wall_s'])})",
            f"{line['anon_mb']:.0f}",
            f"{line['rss_mb']:.0f}",
            "yes" if line["model"] == models.get(line["rows"]) else "NO",
        ]
        for line in results.of("e", "fit")
    ]
    head = [
        "rows",
        "engine",
        "opening, CPU s (wall)",
        "fit, CPU s (wall)",
        "anonymous MB",
        "RSS MB",
        "same model",
    ]
    return [table(head, lines)] if lines else []


def report_f(results: Results) -> list[str]:
    lines = []
    for line in results.of("f", "questions"):
        asked = Asked(line)
        kinds = ", ".join(f"{name} {count}" for name, count in asked.kinds.items())
        lines.append(
            [
                short(line["rows"]),
                asked.name,
                str(asked.questions),
                kinds,
                f"{asked.out / 1e3:,.0f}",
                f"{asked.back / 1e3:,.0f}",
                f"{asked.largest / 1e3:,.0f}",
                f"{asked.records / line['rows']:.1f}" if asked.records else "none",
            ]
        )
    head = [
        "rows",
        "learner",
        "questions",
        "kinds",
        "questions, kB",
        "sums, kB",
        "largest sum, kB",
        "records to the driver, bytes per row",
    ]
    return [table(head, lines)] if lines else []


class Asked:
    """What a fit asks, from a line of part f."""

    def __init__(self, line: Line) -> None:
        facts = json.loads(line["facts"])
        self.name = line["learner"] + (", by sums" if line["engine"] == "sums" else "")
        self.kinds = {name: found[0] for name, found in facts.items()}
        self.questions = sum(self.kinds.values())
        self.out = sum(found[1] for found in facts.values())
        sums = [found for name, found in facts.items() if name != "TreeRows"]
        self.back = sum(found[2] for found in sums)
        self.largest = max(found[3] for found in sums)
        #: Bytes of records that were gathered, all cells together; and at one time.
        self.records = facts.get("TreeRows", [0, 0, 0, 0])[2]
        self.most_records = facts.get("TreeRows", [0, 0, 0, 0])[3]


def report_g(results: Results) -> list[str]:
    workers, lines = 16, []
    latest = {(line["learner"], line["engine"]): line for line in results.of("f", "questions")}
    for (learner, engine), line in latest.items():
        asked = Asked(line)
        measured = [
            *results.of("a", "fit", engine="stored", learner=learner),
            *results.of("c", "fit", engine="stored", learner=learner),
        ]
        if not measured or (engine != "sums" and asked.records):
            continue  # whole trees of so many rows are drawn by sums
        rate = measured[-1]["cpu_s"] / measured[-1]["rows"]
        for rows in (10**9, 10**10):
            scores = 8 if "boosting" in learner else 0
            held = rows * (FEATURES * 3 + 1 + 12 + scores)
            lines.append(
                [
                    asked.name,
                    short(rows),
                    str(asked.questions),
                    f"{rows * rate / 3600:.1f}",
                    f"{workers * (asked.out + asked.back) / MB:,.0f}",
                    f"{2 * asked.largest / MB:,.0f}",
                    f"{held / 1e9:,.0f}",
                ]
            )
    head = [
        "learner",
        "rows",
        "rounds",
        "CPU hours",
        "moved, MB",
        "largest sum, twice, on the driver, MB",
        "memory of all workers, GB",
    ]
    return [table(head, lines)] if lines else []


def short(rows: float) -> str:
    return f"{rows:.0e}".replace("e+0", "e").replace("e+", "e")


def draw(results: Results, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    styles = {"memory": "C0-o", "blocks": "C1-s", "Dask": "C2-^", "Spark": "C3-d"}
    for engine, style in styles.items():
        lines = results.of("e", "fit", engine=engine)
        if not lines:
            continue
        rows = [line["rows"] for line in lines]
        opening = [line["open_cpu_s"] for line in lines]
        fits = [line["cpu_s"] for line in lines]
        memory = [line["anon_mb"] for line in lines]
        if engine == "blocks":
            large = results.one("c", "fit", learner=GROWING, rows=1e8)
            encoded = results.one("b", "encode", engine=STREAMS[0], rows=1e8)
            if large and encoded:
                rows.append(1e8)
                opening.append(encoded["cpu_s"])
                fits.append(large["cpu_s"])
                memory.append(max(large["anon_mb"], encoded["anon_mb"]))
        name = {"blocks": "mapped files", "Dask": "Dask, 2 workers", "Spark": "Spark, 2 workers"}
        left.loglog(rows, fits, style, label=f"{name.get(engine, engine)}: fit")
        left.loglog(rows, opening, f"{style[:2]}:{style[-1]}", alpha=0.6, label="... opening")
        right.loglog(rows, memory, style, label=name.get(engine, engine))
    left.set(xlabel=f"rows (x {FEATURES} features)", ylabel="CPU seconds", title=f"Time, {GROWING}")
    right.set(
        xlabel=f"rows (x {FEATURES} features)",
        ylabel="peak anonymous MB, all processes",
        title="Memory, opening and fit",
    )
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=float, default=1e8, help="leave out what has more rows")
    parser.add_argument("--engines", nargs="*", choices=list(CLUSTERS), default=list(CLUSTERS),
                        help="clusters, if they are installed")  # fmt: skip
    parser.add_argument("--learners", nargs="+", help="leave out what is of other learners")
    parser.add_argument("--repeats", type=int, default=3, help="at most so many")
    parser.add_argument("--again", action="store_true", help="measure again what the CSV has")
    parser.add_argument("--data", type=Path, help="folder of the Parquet files, kept (to 10 GB)")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.measure:
        task = json.loads(options.measure)
        found = MEASURE[task["what"]](task)
        print(json.dumps(found), flush=True)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "scale.csv"
    lines = read_lines(path)
    engines = [name for name in options.engines if here(name)]
    with contextlib.ExitStack() as opened:
        data = options.data or Path(opened.enter_context(tempfile.TemporaryDirectory()))
        data.mkdir(parents=True, exist_ok=True)
        runner = opened.enter_context(Runner(data))
        for part in options.parts:
            for tasks in plan(part, int(options.rows), engines):
                learners = {task["learner"] for task in tasks} - {"", None}
                if options.learners and not learners <= set(options.learners):
                    continue
                for task in tasks:
                    if key_of(task) in lines and not options.again:
                        continue
                    task["repeats"] = min(task["repeats"], options.repeats)
                    line = runner.run(task)
                    lines[key_of(line)] = line
                    write_lines(path, lines)
    report(lines, options.out)
    say("wrote scale.csv, scale.md and scale.png")


if __name__ == "__main__":
    main()
