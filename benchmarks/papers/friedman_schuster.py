"""Repeat the experiments of Friedman & Schuster, Data Mining with Differential Privacy (KDD 2010).

All of section 5, each with the paper's calibration and again with ours:

* Table 1 and Figure 3: a single split on ten binary attributes; next to the printed numbers;
* Figure 4: the same with three numeric attributes, one of which is split at 35;
* Figure 5: DiffPC4.5 against DiffPID3 on ten equal bins;
* Figures 6 and 7: trees of depth 5, without and with numeric attributes;
* Figure 8: the Adult set, ten-fold cross-validation, by budget;
* our pruning without noise next to J48, of which it is meant to be a copy, on five real sets.

Weka (Id3 and J48, the paper's own references) runs where ``java`` and Weka's jar are found; all its
runs of one size share one Java process. The data sets are public, so fits are seeded.

Run ``python benchmarks/papers/friedman_schuster.py``; it writes ``friedman_schuster.csv``, ``.md``
and ``.png``. What the CSV already has, with as many runs and the same versions, is kept.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from itertools import chain, count, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1]))
from _catalogue import FOLDER, Data, load, schema_of
from _report import command, machine, table, versions

CRITERIA = {"max": "Max", "gini": "Gini", "entropy": "InfoGain"}
CALIBRATIONS = ("published", "valid")
TEST_ROWS = 10_000
#: Epsilon without noise. Infinity would do, but then cells without records are split as well.
NO_NOISE = 1e6
FOLDS, J48_FOLDS = 10, 3
WEKA = Path("/usr/share/java/weka.jar")
NAME = "friedman_schuster"

#: Table 1: accuracy and standard deviation in per cent, of 200 runs.
TABLE_1 = {
    "id3": {
        1000: (90.1, 1.5), 2000: (92.8, 1.0), 3000: (94.9, 0.7), 4000: (96.5, 0.6),
        5000: (97.7, 0.5),
    },
    "diffpid3-entropy": {
        1000: (57.0, 17.3), 2000: (60.5, 20.4), 3000: (66.1, 23.5), 4000: (74.7, 25.0),
        5000: (79.0, 24.7),
    },
    "diffpid3-gini": {
        1000: (69.3, 24.3), 2000: (93.0, 17.4), 3000: (99.0, 7.0), 4000: (99.75, 3.5),
        5000: (100.0, 0.0),
    },
    "diffpid3-max": {
        1000: (94.7, 15.3), 2000: (100.0, 0.0), 3000: (100.0, 0.0), 4000: (100.0, 0.0),
        5000: (100.0, 0.0),
    },
    "sulq": {
        1000: (57.7, 18.1), 2000: (57.0, 17.4), 3000: (55.8, 15.9), 4000: (59.0, 19.2),
        5000: (62.3, 21.5),
    },
}  # fmt: skip
PAPER_RUNS = 200


@dataclass(frozen=True)
class Setting:
    """How the data of a figure are made, and which learners it compares."""

    title: str
    depth: int
    n_numeric: int
    budget: float
    p_noise: float
    sizes: tuple[int, ...]
    learners: tuple[str, ...]
    weka: tuple[str, ...] = ()


_SMALL = (100, 250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 5000)
_LARGE = (1000, 2000, 5000, 10_000, 20_000, 50_000)
FIGURES = {
    "3": Setting("one binary split", 1, 0, 0.1, 0.1, _SMALL, ("diffpid3", "sulq"), ("id3",)),
    "4": Setting(
        "one numeric split", 1, 3, 0.1, 0.1, _SMALL, ("diffpc45",), ("j48", "j48-unpruned")
    ),
    "5": Setting("points or bins", 1, 3, 0.2, 0.0, _SMALL, ("diffpc45", "diffpid3")),
    "6": Setting("depth 5, binary", 5, 0, 1.0, 0.1, _LARGE, ("diffpid3", "sulq"), ("id3",)),
    "7": Setting(
        "depth 5, 3 numeric", 5, 3, 1.0, 0.1, _LARGE, ("diffpc45",), ("j48", "j48-unpruned")
    ),
}
TREES = 10
ADULT, ADULT_BOUND = "adult", 50_000
BUDGETS = (0.5, 1.0, 2.0, 4.0, 10.0)
#: Sets and depths of the comparison with J48. J48 has no limit; ours needs time for deep trees.
J48_SETS = {
    "adult": 6,
    "MagicTelescope": 8,
    "compas": 8,
    "mushroom": 22,
    "nursery-multiclass": 8,
}
LEARNERS = {"diffpid3": "DiffPID3", "diffpc45": "DiffPC4.5", "sulq": "SuLQ-based ID3"}
OTHERS = {
    "id3": "ID3 (Weka)",
    "id3-sklearn": "ID3 (scikit-learn)",
    "id3-no-noise": "DiffPID3 without noise",
    "j48": "J48",
    "j48-unpruned": "J48, unpruned",
    "ours": "DiffPC4.5 without noise",
    "ours-unpruned": "DiffPC4.5 without noise, unpruned",
}


def keys(learners: Iterable[str], calibrations: Iterable[str] = CALIBRATIONS) -> list[str]:
    """Return the names of private models: learner, criterion if it has one, calibration."""
    criteria = {name: [""] if name == "sulq" else [f"-{c}" for c in CRITERIA] for name in learners}
    return [
        f"{name}{criterion}-{calibration}"
        for calibration in calibrations
        for name, those in criteria.items()
        for criterion in those
    ]


def label(key: str) -> str:
    """Return a name to print."""
    if key in OTHERS:
        return OTHERS[key]
    learner, *rest = key.split("-")
    words = [CRITERIA.get(word, word) for word in rest]
    return " ".join([LEARNERS[learner], *(word for word in words if word not in CALIBRATIONS)])


# The models


def make(key: str, schema: Any, budget: float, depth: int, n_max: int, seed: int) -> Any:
    """Return an unfitted classifier of ours."""
    from privet import DiffPC45Classifier, DiffPID3Classifier, SulqID3Classifier

    learner, *criterion, calibration = key.split("-")
    options: dict[str, Any] = {
        "epsilon": budget,
        "schema": schema,
        "max_depth": depth,
        "calibration": calibration,
        "random_state": seed,
    }
    if learner == "sulq":
        return SulqID3Classifier(**options)
    options["criterion"] = criterion[0]
    if criterion[0] == "entropy":
        options["n_max"] = n_max
    classifiers = {"diffpid3": DiffPID3Classifier, "diffpc45": DiffPC45Classifier}
    return classifiers[learner](**options)


class Measurement(NamedTuple):
    """What one fit gave: leaves as J48 counts them, CPU seconds (pruning alone for ``ours``)."""

    accuracy: float
    leaves: float = math.nan
    seconds: float = math.nan


Measurements = dict[str, list[Measurement]]


def fit(model: Any, train: Any, test: Any) -> Measurement:
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    accuracy = float(np.mean(model.predict(test[0]) == test[1]))
    leaves = n_leaves(model.tree_) if hasattr(model, "predictor_") else int(model.get_n_leaves())
    return Measurement(accuracy, leaves, seconds)


def n_leaves(tree: Any) -> int:
    """Return the number of leaves but for those that only values outside the schema reach."""
    leaves, places = 0, [0]
    while places:
        node = tree.nodes[places.pop()]
        if node.test is None:
            leaves += 1
            continue
        codes = getattr(node.test, "children", None)
        reached = range(len(node.children)) if codes is None else set(codes)
        places += [node.children[child] for child in reached]
    return leaves


# Weka: an experiment on files that hold the training rows first


def write_arff(path: Path, schema: Any, parts: Sequence[tuple[Any, np.ndarray]]) -> None:
    """Write rows; a category, like a class, is written as its position."""
    lines = ["@relation data"]
    for j, feature in enumerate(schema.features.values()):
        values = getattr(feature, "values", None)
        numbers = None if values is None else ",".join(map(str, range(len(values))))
        lines.append(f"@attribute a{j} " + ("numeric" if numbers is None else f"{{{numbers}}}"))
    lines.append("@attribute class {" + ",".join(map(str, range(len(schema.classes)))) + "}")
    with path.open("w", encoding="utf-8") as file:
        file.write("\n".join([*lines, "@data", ""]))
        for X, y in parts:
            frame = pd.DataFrame(X)
            columns: dict[Any, Any] = {}
            for j, name in enumerate(frame):
                column = frame[name]
                nominal = hasattr(list(schema.features.values())[j], "values")
                if isinstance(column.dtype, pd.CategoricalDtype):
                    column = column.cat.codes
                columns[j] = column.astype(int) if nominal else column
            pd.DataFrame({**columns, "class": y}).to_csv(file, header=False, index=False)


def weka(jar: Path, folder: Path, key: str, files: list[Path], rows: int) -> list[Measurement]:
    """Learn from the first rows of each file, all of the same lengths; test on the others."""
    scheme = {
        "id3": ["weka.classifiers.trees.Id3"],
        "j48": ["weka.classifiers.trees.J48", "--", "-C", "0.25", "-M", "2"],
        "j48-unpruned": ["weka.classifiers.trees.J48", "--", "-U", "-M", "2"],
    }[key]
    with files[0].open(encoding="utf-8") as file:
        total = sum(line[0] != "@" for line in file)
    out = folder / f"{key}.csv"
    # One thread for the garbage, and little compilation: these processes are short.
    words = ["java", "-Xmx3g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(jar)]
    words += ["weka.experiment.Experiment", "-r", "-L", "1", "-U", "1"]
    for path in files:
        words += ["-T", str(path)]
    words += ["-D", f"weka.experiment.CSVResultListener -O {out}"]
    words += ["-P", "weka.experiment.RandomSplitResultProducer", "--"]
    words += ["-P", repr(100 * rows / total), "-R"]
    words += ["-W", "weka.experiment.ClassifierSplitEvaluator", "--", "-W", *scheme]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = pd.read_csv(out, quotechar="'", skipinitialspace=True)
    if len(found) != len(files) or set(found["Number_of_training_instances"]) != {rows}:
        raise RuntimeError(f"Weka did not do what it was asked to: {done.stderr[-1000:]}")
    leaves = found["measureNumLeaves"] if "measureNumLeaves" in found else [math.nan] * len(found)
    return [
        Measurement(float(accuracy) / 100, float(n))
        for accuracy, n in zip(found["Percent_correct"], leaves, strict=True)
    ]


# The runs


class Job(NamedTuple):
    """All runs of some models at one size, budget or set."""

    figure: str
    x: str
    models: tuple[str, ...]
    runs: int


class Options(NamedTuple):
    """What a job has to know about this machine."""

    data: Path
    jar: Path


def seed_of(*parts: Any) -> int:
    return zlib.crc32(repr(parts).encode()) >> 1


def run(job: Job, options: Options) -> tuple[Measurements, float]:
    """Return the measurements of a job, and the seconds that it took."""
    from privet import PrivacyLeakWarning

    warnings.simplefilter("ignore", PrivacyLeakWarning)  # fits are seeded on purpose
    warnings.filterwarnings("ignore", message="The least populated class")  # of nursery: two rows
    start = time.perf_counter()
    runners: dict[str, Callable[[Job, Options], Measurements]] = {
        "8": run_adult,
        "J48": run_sets,
    }
    found = runners.get(job.figure, run_synthetic)(job, options)
    return found, time.perf_counter() - start


def synthetic(figure: str, size: int, turn: int) -> tuple[Any, Any, Any]:
    """Return the schema, training and test rows of one run: the same for all models."""
    from privet.datasets import make_random_tree, make_random_tree_data

    setting = FIGURES[figure]
    which = turn if setting.depth == 1 else turn % TREES
    tree = make_random_tree(
        setting.depth, n_numeric=setting.n_numeric, seed=seed_of("tree", figure, which)
    )

    def rows(number: int, p_noise: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
        seed = seed_of(kind, figure, size, turn)
        columns = make_random_tree_data(tree, number, p_noise=p_noise, seed=seed)
        return np.column_stack([columns[name] for name in tree.schema.names]), columns["class"]

    return tree.schema, rows(size, setting.p_noise, "train"), rows(TEST_ROWS, 0.0, "test")


def run_synthetic(job: Job, options: Options) -> Measurements:
    """Run a size of Figures 3 to 7, each run on new rows."""
    setting, size = FIGURES[job.figure], int(job.x)
    found: Measurements = {key: [] for key in job.models}
    if set(job.models) <= set(setting.weka):
        with tempfile.TemporaryDirectory() as name:
            folder, files = Path(name), []
            for turn in range(job.runs):
                schema, train, test = synthetic(job.figure, size, turn)
                files.append(folder / f"{turn}.arff")
                write_arff(files[-1], schema, (train, test))
            return {key: weka(options.jar, folder, key, files, size) for key in job.models}
    for turn in range(job.runs):
        schema, train, test = synthetic(job.figure, size, turn)
        for key in job.models:
            seed = seed_of("fit", job.figure, size, turn, key)
            found[key].append(fit(synthetic_model(key, setting, schema, seed), train, test))
    return found


def synthetic_model(key: str, setting: Setting, schema: Any, seed: int) -> Any:
    if key == "id3-sklearn":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(criterion="entropy", random_state=seed)
    n_max = max(setting.sizes)
    if key == "id3-no-noise":
        depth = len(schema.names)
        return make("diffpid3-entropy-valid", schema, NO_NOISE, depth, n_max, seed)
    return make(key, schema, setting.budget, setting.depth, n_max, seed)


def folds(data: Data, number: int, runs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and test rows of stratified, shuffled cross-validations."""
    from sklearn.model_selection import StratifiedKFold

    splits = (StratifiedKFold(number, shuffle=True, random_state=repeat) for repeat in count())
    yield from islice(chain.from_iterable(s.split(data.y, data.y) for s in splits), runs)


def run_adult(job: Job, options: Options) -> Measurements:
    """Run a budget of Figure 8."""
    data = load(options.data, ADULT)
    schema, budget = schema_of(data), float(job.x)
    found: Measurements = {key: [] for key in job.models}
    for turn, (train, test) in enumerate(folds(data, FOLDS, job.runs)):
        rows = (data.X.iloc[train], data.y[train]), (data.X.iloc[test], data.y[test])
        for key in job.models:
            seed = seed_of("fit", "8", budget, turn, key)
            found[key].append(fit(make(key, schema, budget, 5, ADULT_BOUND, seed), *rows))
    return found


def run_sets(job: Job, options: Options) -> Measurements:
    """Run a set of the comparison with J48, on the same folds."""
    from privet import DiffPC45Classifier
    from privet.learners._pruning import prune

    data = load(options.data, job.x)
    schema = schema_of(data)
    found: Measurements = {key: [] for key in job.models}
    for train, test in folds(data, J48_FOLDS, job.runs):
        rows = (data.X.iloc[train], data.y[train]), (data.X.iloc[test], data.y[test])
        if "j48" in job.models:
            with tempfile.TemporaryDirectory() as name:
                path = Path(name) / "fold.arff"
                write_arff(path, schema, rows)
                for key in job.models:
                    found[key] += weka(options.jar, Path(name), key, [path], len(train))
            continue
        model = DiffPC45Classifier(
            epsilon=NO_NOISE,
            schema=schema,
            max_depth=J48_SETS[job.x],
            criterion="entropy",
            n_max=len(data.y),
            confidence=None,  # so that one fit does for both
            random_state=0,
        )
        found["ours-unpruned"].append(fit(model, *rows))
        start = time.process_time()
        tree = prune(model.tree_, 0.25)
        seconds = time.process_time() - start
        answers = tree.predict_value(rows[1][0]).argmax(axis=1)
        accuracy = float(np.mean(answers == rows[1][1]))
        found["ours"].append(Measurement(accuracy, n_leaves(tree), seconds))
    return found


def all_jobs(args: argparse.Namespace) -> list[Job]:
    """Return what there is to run; what takes long comes first, so that the cores end together."""
    jobs = []
    ours = ("ours", "ours-unpruned")
    with_weka = args.weka is not None
    for name in J48_SETS:
        jobs.append(Job("J48", name, ours, J48_FOLDS))
        if with_weka:
            jobs.append(Job("J48", name, ("j48", "j48-unpruned"), J48_FOLDS))
    adult = tuple(keys(("diffpc45",)))
    jobs += [Job("8", f"{budget:g}", adult, args.folds) for budget in reversed(BUDGETS)]
    runs = {"3": args.runs, "4": args.runs, "5": args.runs, "6": args.runs6, "7": args.runs7}
    for figure, setting in reversed(FIGURES.items()):
        for size in reversed(setting.sizes):
            x = str(size)
            jobs.append(Job(figure, x, tuple(keys(setting.learners)), runs[figure]))
            if setting.weka and with_weka:
                most = args.weka_runs if setting.depth == 1 else TREES
                jobs.append(Job(figure, x, setting.weka, min(most, runs[figure])))
            if figure == "3":
                jobs.append(Job(figure, x, ("id3-sklearn",), args.runs))
            if figure == "3" and size in TABLE_1["id3"]:
                jobs.append(Job(figure, x, ("id3-no-noise",), min(args.weka_runs, args.runs)))
    return jobs


# The results


@dataclass
class Row:
    """The runs of a model at one size, budget or set: one line of the CSV."""

    figure: str
    x: str
    model: str
    runs: int
    accuracy: float
    sd: float
    #: Figures 6 and 7: the deviation of runs on one tree.
    sd_of_one_tree: float
    leaves: float
    cpu_seconds: float
    version: str

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.runs)

    def cell(self, digits: int = 1) -> str:
        """Return the mean and its standard error, in per cent."""
        return f"{100 * self.accuracy:.{digits}f} ± {100 * self.error:.{digits}f}"


Rows = dict[tuple[str, str, str], Row]


def row_of(job: Job, model: str, found: list[Measurement], version: str) -> Row:
    accuracy, leaves, seconds = np.array(found, dtype=float).T
    sd = float(accuracy.std(ddof=1)) if len(found) > 1 else math.nan
    sd_of_one_tree = math.nan
    if job.figure in ("6", "7") and len(found) >= 2 * TREES:
        variances = [accuracy[tree::TREES].var(ddof=1) for tree in range(TREES)]
        sd_of_one_tree = math.sqrt(np.mean(variances))
    means = float(accuracy.mean()), sd, sd_of_one_tree, float(leaves.mean()), float(seconds.mean())
    return Row(job.figure, job.x, model, len(found), *means, version)


def read_rows(path: Path) -> Rows:
    rows: Rows = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                numbers = [float(line[field.name]) for field in fields(Row)[4:9]]
                key = (line["figure"], line["x"], line["model"])
                rows[key] = Row(*key, int(line["runs"]), *numbers, line["version"])
    return rows


def write_rows(path: Path, rows: Rows, jobs: list[Job]) -> None:
    order = {
        (job.figure, job.x, model): (job.figure, place)
        for place, job in enumerate(reversed(jobs))
        for model in job.models
    }
    last = ("~", 0)
    ordered = sorted(rows, key=lambda key: (order.get(key, last), key))
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([field.name for field in fields(Row)])
        for key in ordered:
            cells = astuple(rows[key])
            out.writerow([f"{c:.8g}" if isinstance(c, float) else c for c in cells])
    partial.replace(path)


def version_of(model: str, jar_version: str) -> str:
    if model in ("id3", "j48", "j48-unpruned"):
        return jar_version
    return versions("scikit-learn" if model == "id3-sklearn" else "privet")


def collect(args: argparse.Namespace, jobs: list[Job], rows: Rows, jar_version: str) -> None:
    """Run what the rows lack in several processes, and write them after every job."""

    def done(job: Job) -> bool:
        for model in job.models:
            row = rows.get((job.figure, job.x, model))
            if row is None or row.runs < job.runs or row.version != version_of(model, jar_version):
                return False
        return not args.fresh

    asked = [job for job in jobs if job.figure in args.figures]
    todo = [job for job in asked if not done(job)]
    print(f"{len(asked)} jobs, of which {len(asked) - len(todo)} are in the CSV", flush=True)
    start, finished = time.perf_counter(), 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, mp_context=context) as pool:
        pending = {pool.submit(run, job, Options(args.data, args.weka)): job for job in todo}
        try:
            for future in as_completed(pending):
                job = pending[future]
                found, seconds = future.result()
                for model, measurements in found.items():
                    row = row_of(job, model, measurements, version_of(model, jar_version))
                    rows[job.figure, job.x, model] = row
                write_rows(args.out / f"{NAME}.csv", rows, jobs)
                finished += 1
                shown = ", ".join(
                    f"{model} {100 * rows[job.figure, job.x, model].accuracy:.1f}"
                    for model in job.models
                )
                print(
                    f"[{finished}/{len(todo)}, {time.perf_counter() - start:.0f} s] "
                    f"figure {job.figure}, {job.x}: {seconds:.0f} s; {shown}",
                    flush=True,
                )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


# The report


def found_at(rows: Rows, figure: str, model: str) -> list[Row]:
    return [row for (where, _, key), row in rows.items() if where == figure and key == model]


def table_1(rows: Rows) -> list[str]:
    """Return Table 1 with ours beside it, and how many numbers agree."""
    lines, agree, apart = [], 0, []
    for model, printed in TABLE_1.items():
        ours = "id3" if model == "id3" and ("3", "1000", "id3") in rows else f"{model}-published"
        if model == "id3" and ours != "id3":
            ours = "id3-sklearn"
        for size, (mean, sd) in printed.items():
            row = rows.get(("3", str(size), ours))
            if row is None:
                continue
            away = distance(row, mean, sd)
            agree += away <= 3
            if away > 3:
                apart.append(f"{label(ours)} at {size} ({away:.2f})")
            valid = rows.get(("3", str(size), f"{model}-valid"))
            lines.append(
                [
                    label(ours),
                    str(size),
                    f"{mean:g} ± {sd}",
                    f"{100 * row.accuracy:.2f} ± {100 * row.sd:.1f} [{row.runs}]",
                    f"{100 * row.accuracy - mean:+.2f}",
                    f"{away:.2f}" if math.isfinite(away) else "no spread at all",
                    "yes" if away <= 3 else "**no**",
                    f"{expected(model.split('-')[1], size):.1f}" if "diffpid3" in model else "",
                    f"{100 * valid.accuracy:.2f} ± {100 * valid.sd:.1f}" if valid else "",
                ]
            )
    head = ["model", "rows", "paper", "repeated", "difference", "in standard errors"]
    text = [
        "## Table 1 (Figure 3): a single split, B = 0.1, p_noise = 0.1\n",
        "Accuracy in per cent ± standard deviation over the runs, as the paper prints it; [runs]. "
        "Repeated with the published calibration; beside it, ours (valid). "
        "The difference is measured in its standard error, which is that of both means "
        f"(the paper's from its deviation and {PAPER_RUNS} runs). Expected is what the paper's "
        "formulas give on simulated counts, without the library (stopping and the noise in the "
        "leaves left out); this column was added after a first run had Gini at 1000 apart.\n",
        table([*head, "within three", "expected", "valid"], lines),
        f"**{agree} of {len(lines)}** printed means are within three standard errors of ours"
        + (f"; not so: {', '.join(apart)}." if apart else ".")
        + "\n",
    ]
    others = []
    for model in ("id3", "id3-sklearn", "id3-no-noise"):
        cells = [rows.get(("3", str(size), model)) for size in TABLE_1["id3"]]
        if any(cells):
            others.append([label(model), *(row.cell() if row else "" for row in cells)])
    if others:
        paper = ["paper", *(f"{mean:g}" for mean, _ in TABLE_1["id3"].values())]
        text += [
            "ID3 without privacy, ± one standard error. The paper's experiments ran on Weka, so "
            f"Weka's Id3 stands above. DiffPID3 without noise (epsilon {NO_NOISE:g}, InfoGain, ten "
            "levels) is not ID3: it never asks whether a cell is pure, "
            "so it goes on down to cells without records, which get the first class.\n",
            table(["", *map(str, TABLE_1["id3"])], [*others, paper]),
        ]
    return text


def expected(criterion: str, size: int, draws: int = 4000) -> float:
    """Return the accuracy that the paper's formulas give on simulated counts, in per cent.

    An attribute is chosen with weight ``exp(epsilon q / (2 S))``; the right one gives 100, another
    one 50. Nothing of the library is used; stopping and the noise in the leaves are left out.
    """
    generator = np.random.default_rng(0)
    epsilon = FIGURES["3"].budget / 4
    right = 0.95 * 0.95 + 0.05 * 0.05  # neither or both of attribute and class were changed
    chance = np.array([right] + [0.5] * 9)
    first = generator.binomial(size, 0.5, (draws, 10))
    rows = np.stack([first, size - first], axis=-1)
    hits = generator.binomial(rows, chance[:, None])
    counts = np.stack([hits, rows - hits], axis=-1).astype(float)
    shares = np.maximum(counts, 1e-300) / rows[..., None]
    score, sensitivity = {
        "max": (counts.max(axis=-1), 1.0),
        "gini": ((counts * shares).sum(axis=-1), 2.0),
        "entropy": (
            (counts * np.log2(shares)).sum(axis=-1),
            math.log2(max(FIGURES["3"].sizes) + 1) + 1 / math.log(2),
        ),
    }[criterion]
    exponent = epsilon * score.sum(axis=-1) / (2 * sensitivity)
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    found = weights[:, 0] / weights.sum(axis=1)
    return float(100 * np.mean(found + (1 - found) / 2))


def distance(row: Row, mean: float, sd: float) -> float:
    """Return how many standard errors a printed mean is from ours."""
    gap = abs(100 * row.accuracy - mean)
    if gap == 0:
        return 0.0
    error = math.hypot(100 * row.error, sd / math.sqrt(PAPER_RUNS))
    return gap / error if error else math.inf


def half_the_rows(rows: Rows) -> list[str]:
    """Return our calibration at n rows beside the paper's numbers at 2n."""
    lines, better, total = [], 0, 0
    for model, printed in TABLE_1.items():
        for size, (mean, sd) in printed.items():
            row = rows.get(("3", str(size // 2), f"{model}-valid"))
            if row is None:
                continue
            difference = 100 * row.accuracy - mean
            away = math.copysign(distance(row, mean, sd), difference)
            total += 1
            better += away >= -3
            lines.append(
                [label(model), str(size // 2), row.cell(), str(size), f"{mean:g}",
                 f"{difference:+.1f}", f"{away:+.1f}"]
            )  # fmt: skip
    if not lines:
        return []
    head = ["model", "rows", "valid", "rows of the paper", "paper", "difference"]
    return [
        "## Our calibration with half the rows\n",
        "At the same guarantee, ours weighs scores twice as much as the paper does (SuLQ: counts "
        "classes with twice the budget), which is what twice the rows would do. The stopping rule "
        "counts as the paper does.\n",
        table([*head, "in standard errors"], lines),
        f"At half the rows ours is not more than three standard errors below the paper in "
        f"**{better} of {total}** cases.\n",
    ]


def figure_table(rows: Rows, figure: str, models: Sequence[str], what: str) -> str:
    xs = list(dict.fromkeys(row.x for key in models for row in found_at(rows, figure, key)))
    xs.sort(key=float)
    lines = []
    for model in models:
        cells = [rows.get((figure, x, model)) for x in xs]
        if not any(cells):
            continue
        runs = max(row.runs for row in cells if row)
        calibration = model.rsplit("-", 1)[-1] if model not in OTHERS else ""
        shown = (row.cell() if row else "" for row in cells)
        lines.append([label(model), calibration, str(runs), *shown])
    return table(["model", "calibration", "runs", *(f"{what} {x}" for x in xs)], lines)


def order(rows: Rows, figure: str, x: str, learner: str, calibration: str) -> str:
    """Return the criteria by accuracy; '~' where two are within two standard errors."""
    found = [
        (name, rows[key])
        for criterion, name in CRITERIA.items()
        if (key := (figure, x, f"{learner}-{criterion}-{calibration}")) in rows
    ]
    found.sort(key=lambda item: -item[1].accuracy)
    text = found[0][0] if found else ""
    for (_, above), (name, below) in pairwise(found):
        clear = above.accuracy - below.accuracy > 2 * math.hypot(above.error, below.error)
        text += f" {'>' if clear else '~'} {name}"
    return text


def orders(rows: Rows, figure: str, xs: Iterable[Any], learner: str, what: str) -> str:
    lines = [
        [f"{x:g}", *(order(rows, figure, f"{x:g}", learner, each) for each in CALIBRATIONS)]
        for x in xs
    ]
    return (
        f"Order of the criteria ({LEARNERS[learner]}; `~`: within two standard errors):\n\n"
        + table([what, *CALIBRATIONS], [line for line in lines if any(line[1:])])
    )


def figure_3(rows: Rows) -> list[str]:
    models = [*keys(("diffpid3", "sulq")), "id3", "id3-sklearn"]
    row = rows.get(("3", "1500", "diffpid3-max-published"))
    said = [] if row is None else [
        'Paper: "the Max scorer [...] provides excellent accuracy even for sample sizes as low as '
        f'1500". Ours, published, at 1500: {row.cell()}.\n'
    ]  # fmt: skip
    return [
        "## Figure 3: a single split on a binary attribute\n",
        "Accuracy in per cent ± one standard error.\n",
        figure_table(rows, "3", models, "n ="),
        *said,
    ]


def figure_4(rows: Rows) -> list[str]:
    models = [*keys(("diffpc45",)), "j48", "j48-unpruned"]
    return [
        "## Figure 4: a single split on a numeric attribute, B = 0.1, p_noise = 0.1\n",
        "Seven binary and three numeric attributes in [0, 100], one of which decides at 35. "
        "Accuracy in per cent ± one standard error; always answering the larger class has 65.\n",
        figure_table(rows, "4", models, "n ="),
        'Paper: "The relation between the different scores is similar for the numeric and the '
        "nominal case, although more samples are required to correctly identify the split point "
        'given the privacy budget."\n',
        orders(rows, "4", FIGURES["4"].sizes, "diffpc45", "rows"),
    ]


def figure_5(rows: Rows) -> list[str]:
    lines = []
    for calibration in CALIBRATIONS:
        for criterion, name in CRITERIA.items():
            cells = []
            for size in FIGURES["5"].sizes:
                pair = [
                    rows.get(("5", str(size), f"{learner}-{criterion}-{calibration}"))
                    for learner in ("diffpc45", "diffpid3")
                ]
                if pair[0] is None or pair[1] is None:
                    cells.append("")
                    continue
                gap = 100 * (pair[0].accuracy - pair[1].accuracy)
                error = 100 * math.hypot(pair[0].error, pair[1].error)
                cells.append(f"{gap:+.1f} ± {error:.1f}")
            if any(cells):
                lines.append([name, calibration, *cells])
    head = ["criterion", "calibration", *(f"n = {size}" for size in FIGURES["5"].sizes)]
    return [
        "## Figure 5: split points or ten bins, B = 0.2, p_noise = 0\n",
        "The same data without noise. DiffPC4.5 looks for a split point, DiffPID3 splits into ten "
        "equal bins, one of which straddles 35. Accuracy in per cent ± one standard error.\n",
        figure_table(rows, "5", keys(("diffpc45", "diffpid3")), "n ="),
        'Paper: "for smaller training sets, the budget saved by discretizing the dataset and '
        "switching to nominal attributes allows for better accuracy. For larger training sets, the "
        "exponential mechanism allows, on average, split points to be determined better than in "
        'the discrete case." DiffPC4.5 minus DiffPID3:\n',
        table(head, lines),
    ]


def median(rows: list[Row], name: str) -> float:
    return float(np.median([getattr(row, name) for row in rows]))


def figures_6_7(rows: Rows) -> list[str]:
    text = []
    for figure, learner in (("6", "diffpid3"), ("7", "diffpc45")):
        setting = FIGURES[figure]
        attributes = "10 binary attributes" if figure == "6" else "7 binary, 3 numeric attributes"
        models = [*keys(setting.learners), *setting.weka]
        if not any(found_at(rows, figure, model) for model in models):
            continue
        published = [
            row
            for model in keys((learner,), ("published",))
            for row in found_at(rows, figure, model)
        ]
        text += [
            f"## Figure {figure}: depth 5, {attributes}, B = 1, p_leaf = 0.3\n",
            f"{TREES} random trees, the runs spread evenly over them. Accuracy in per cent ± one "
            "standard error (runs on one tree are alike, so it is too small for other trees).\n",
            figure_table(rows, figure, models, "n ="),
            'Paper: "When the size of the dataset is small, algorithms that make efficient use of '
            "the privacy budget are superior. [...] However, as the number of available samples "
            "increases, [...] the depth constraint becomes more dominant; the Max scorer [...] "
            'provides inferior results with respect to the other methods".\n',
            orders(rows, figure, setting.sizes, learner, "rows"),
            'Paper: "the typical standard deviation for the accuracy results presented in Figure 6 '
            'was around ±5% and even lower than that for the results presented in Figure 7." Ours, '
            f"published, median over sizes and criteria: {100 * median(published, 'sd'):.1f} over "
            f"all runs, {100 * median(published, 'sd_of_one_tree'):.1f} over the runs on one tree."
            "\n",
        ]
    return text


def figure_8(rows: Rows) -> list[str]:
    models = keys(("diffpc45",))
    xs = [f"{budget:g}" for budget in BUDGETS]
    deviations = [100 * row.sd for model in models for row in found_at(rows, "8", model)]
    lines = []
    for criterion, name in CRITERIA.items():
        cells = []
        for x in xs:
            pair = [rows.get(("8", x, f"diffpc45-{criterion}-{each}")) for each in CALIBRATIONS]
            if pair[0] is None or pair[1] is None:
                cells.append("")
                continue
            gap = 100 * (pair[1].accuracy - pair[0].accuracy)
            cells.append(f"{gap:+.1f} ± {100 * math.hypot(pair[0].error, pair[1].error):.1f}")
        if any(cells):
            lines.append([name, *cells])
    if not lines:
        return []
    return [
        "## Figure 8: Adult, depth 5, by budget\n",
        f"{FOLDS}-fold cross-validation, {ADULT_BOUND} as the bound for InfoGain, DiffPC4.5 with "
        "pruning. Accuracy in per cent ± one standard error over the folds; the larger class has "
        "75.2. The paper prints neither the curves' values nor the budgets in its text; the "
        "budgets are ours.\n",
        figure_table(rows, "8", models, "B ="),
        'Paper: "In most of the runs, the Max scorer did significantly better than the Gini scorer,'
        " and both did significantly better than the InfoGain scorer. In addition, all scorers "
        "showed significant improvement in accuracy as the allocated privacy budget was increased. "
        'The typical measured standard deviation in accuracy was ±0.5%."\n',
        orders(rows, "8", BUDGETS, "diffpc45", "B"),
        f"Our standard deviation over the folds: median {np.median(deviations):.1f}.\n",
        "One joint selection of attribute and point (valid) minus the paper's one per numeric "
        "attribute (published):\n",
        table(["criterion", *(f"B = {x}" for x in xs)], lines),
    ]


def j48_table(rows: Rows) -> list[str]:
    lines, gaps, ratios = [], [], []
    for name, depth in J48_SETS.items():
        models = ("j48", "ours", "j48-unpruned", "ours-unpruned")
        got = {key: rows.get(("J48", name, key)) for key in models}
        if not any(got.values()):
            continue
        cells = []
        for row in got.values():
            cells += [row.cell(2), f"{row.leaves:.0f}"] if row else ["", ""]
        theirs, ours = got["j48"], got["ours"]
        if theirs and ours:
            gaps.append(100 * (ours.accuracy - theirs.accuracy))
            ratios.append(ours.leaves / theirs.leaves)
            cells.append(f"{gaps[-1]:+.2f}")
            cells.append(f"{ratios[-1]:.2f}")
        else:
            cells += ["", ""]
        lines.append([name, str(depth), *cells])
    if not lines:
        return []
    head = ["set", "our depth", "J48", "leaves", "ours", "leaves"]
    head += ["J48 unpruned", "leaves", "ours unpruned", "leaves"]
    summary = []
    if gaps:
        summary = [
            f"Ours minus J48: between {min(gaps):+.2f} and {max(gaps):+.2f} points, "
            f"{np.mean(gaps):+.2f} on average; between {min(ratios):.2f} and {max(ratios):.2f} "
            "times its leaves.\n"
        ]
    return [
        "## Our pruning without noise, and J48\n",
        f"DiffPC4.5 with InfoGain, certainty factor 0.25 and epsilon {NO_NOISE:g}; J48 with `-C "
        f"0.25 -M 2`. The same {J48_FOLDS} folds. Accuracy in per cent ± one standard error over "
        "the folds; leaves on average, counted as J48 does (branches of categories without records "
        "are leaves, ours for values outside the schema are not). Pruning is meant to be the same; "
        "what is pruned is not: J48 chooses by gain ratio, asks for two records in two branches, "
        "stops at pure cells and has no depth limit, and our split points lie on a grid of 4096 "
        "steps between the public bounds. Unpruned, ours ends in many cells without records, which "
        "get the first class.\n",
        table([*head, "accuracy, ours - J48", "leaves, ours / J48"], lines),
        *summary,
    ]


def write_report(path: Path, rows: Rows, notes: list[str]) -> None:
    used = sorted({part for row in rows.values() for part in row.version.split(", ")})
    text = [
        "# Friedman & Schuster 2010, repeated\n",
        f"Command: `{command().replace('benchmarks/', 'benchmarks/papers/', 1)}`\n",
        f"- {machine()}, {versions('numpy', 'pandas')}",
        f"- measured with {', '.join(used)}",
        "- A. Friedman and A. Schuster, Data Mining with Differential Privacy, KDD 2010, section 5;"
        " about the paper this page says only what its text prints",
        "- published: budgets, weights and questions as in the paper; valid: the same guarantee "
        "with our calibration (docs/proofs/friedman-schuster.md). Both are differentially private",
        f"- synthetic data: `make_random_tree` and `make_random_tree_data`; every run has new "
        f"training rows and {TEST_ROWS} noiseless test rows, the same for all private models",
        "- single splits: the learners' depth is 1; the bound for InfoGain is 5000, for depth 5 "
        "it is 50,000",
        "- our choice, where the text is silent: p_noise = 0.1 in Figures 6 and 7; the sizes and "
        "budgets between those that it names; numeric cuts of random trees uniform in what the path"
        " has left; every single-split run has a new tree",
        "- fewer than the paper, for time: runs in Figures 6 and 7 (paper: 20 on each of 10 trees) "
        "and 8 (paper: ten times ten folds), and of Weka",
        "- Weka's runs use the first of the same training and test rows",
        "- fits are seeded, as the data are public or invented",
        *(f"- {note}" for note in notes),
        "",
        *table_1(rows),
        *half_the_rows(rows),
        *figure_3(rows),
        *figure_4(rows),
        *figure_5(rows),
        *figures_6_7(rows),
        *figure_8(rows),
        *j48_table(rows),
        f"![Figures 3 to 8]({NAME}.png)\n",
    ]
    path.write_text("\n".join(text), encoding="utf-8")


COLOURS = {"max": "C0", "gini": "C1", "entropy": "C2", "sulq": "C3"}


def style(key: str) -> dict[str, Any]:
    """Return the line of a model: colour by criterion, dashes by calibration."""
    if key in OTHERS:
        dotted = key in ("j48-unpruned", "id3-sklearn")
        return {"color": "0.5" if dotted else "0.2", "linestyle": ":" if dotted else "-."}
    learner, *_ = key.split("-")
    colour = next(COLOURS[word] for word in key.split("-") if word in COLOURS)
    dashes = "-" if key.endswith("published") else "--"
    marker = "s" if learner == "diffpid3" else "o"
    return {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 3}


def draw(path: Path, rows: Rows) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    panels: dict[str, tuple[str, list[str]]] = {
        figure: (
            f"Figure {figure}: {setting.title}, B = {setting.budget:g}",
            [*keys(setting.learners), *setting.weka],
        )
        for figure, setting in FIGURES.items()
    }
    panels["8"] = ("Figure 8: Adult, depth 5", keys(("diffpc45",)))
    picture, grid = plt.subplots(2, 3, figsize=(13, 7.6))
    handles: dict[str, Any] = {}
    for panel, (figure, (title, models)) in zip(grid.flat, panels.items(), strict=True):
        for model in models:
            found = sorted(found_at(rows, figure, model), key=lambda row: float(row.x))
            if not found:
                continue
            handle = panel.errorbar(
                [float(row.x) for row in found],
                [100 * row.accuracy for row in found],
                [100 * row.error for row in found],
                linewidth=1.1,
                **style(model),
            )
            calibration = "" if model in OTHERS else ", " + model.rsplit("-", 1)[-1]
            handles.setdefault(label(model) + calibration, handle)
        if figure == "3":
            for model, printed in TABLE_1.items():
                colour = next((COLOURS[w] for w in model.split("-") if w in COLOURS), "0.2")
                handle = panel.scatter(
                    list(printed),
                    [mean for mean, _ in printed.values()],
                    marker="x",
                    color=colour,
                    zorder=3,
                )
                handles.setdefault("Table 1 of the paper", handle)
        if figure in ("6", "7", "8"):
            panel.set_xscale("log")
        if figure == "8" and ("J48", ADULT, "j48") in rows:
            panel.axhline(100 * rows["J48", ADULT, "j48"].accuracy, linewidth=1.1, **style("j48"))
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("budget B" if figure == "8" else "training rows", fontsize=8)
        panel.tick_params(labelsize=7)
    picture.supylabel("accuracy in per cent (bars: one standard error)", fontsize=9)
    picture.tight_layout(rect=(0, 0.1, 1, 1))
    picture.legend(
        handles.values(), handles.keys(), fontsize=7, loc="lower center", ncols=6, frameon=False
    )
    picture.savefig(path, dpi=110)


# The command


def weka_version(jar: Path) -> str | None:
    """Return Weka's version; None if it cannot run."""
    if not jar.exists() or shutil.which("java") is None:
        return None
    words = ["java", "-cp", str(jar), "weka.core.Version"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    number = re.match(r"[\d.]+", answer.stdout)
    return f"Weka {number[0]}" if number else None


def main() -> None:
    here = Path(__file__).resolve()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = [*FIGURES, "8", "J48"]
    parser.add_argument("--figures", nargs="+", choices=everything, default=everything)
    parser.add_argument("--runs", type=int, default=200, help="of Figures 3 to 5, by size")
    parser.add_argument("--runs6", type=int, default=100, help="of Figure 6, by size")
    parser.add_argument("--runs7", type=int, default=40, help="of Figure 7, by size")
    parser.add_argument("--folds", type=int, default=FOLDS, help="of Figure 8, by budget")
    parser.add_argument(
        "--weka-runs",
        type=int,
        default=20,
        help="of Weka and DiffPID3 without noise in Figures 3 and 4",
    )
    parser.add_argument("--weka", type=Path, default=WEKA, help="Weka's jar, version 3.6")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=here.parents[1] / "results")
    parser.add_argument("--fresh", action="store_true", help="run again what the CSV has")
    args = parser.parse_args()
    notes = []
    jar_version = weka_version(args.weka)
    if jar_version is None:
        args.weka = None
        notes.append("Weka cannot run here: no new numbers of Id3 and J48")
        print(notes[-1])
    args.out.mkdir(parents=True, exist_ok=True)
    rows = read_rows(args.out / f"{NAME}.csv")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` ends in a report as well
    start = time.perf_counter()
    try:
        collect(args, all_jobs(args), rows, jar_version or "")
    except KeyboardInterrupt:
        notes.append("the command was interrupted")
    print(f"{time.perf_counter() - start:.0f} s in all")
    if rows:
        write_report(args.out / f"{NAME}.md", rows, notes)
        draw(args.out / f"{NAME}.png", rows)


if __name__ == "__main__":
    main()
