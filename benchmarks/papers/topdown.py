"""Repeat the experiments of DP-TopDown (Wang, Dick & Balcan: trees from distributed tables).

On six of the paper's seven sets, with our noise, and on one machine with the paper's as well, whose
true cost the ledger states:

* Figures 2 and 5: accuracy, depth and splits against the budget on one machine, and with four
  parties by noisy counts, by local proposals, and by our secure sums, next to which one machine
  has the noise that the parties' shares make;
* Figures 1 and 4: the labels' part of the budget, and how the levels share the rest;
* Figures 3 and 6: the size of the training set;
* parties of other sizes, numbers and class shares;
* parties in four processes give the trees that they give in one;
* seconds of a fit on kddcup99, next to scikit-learn's best-first tree.

The data sets are public, so fits are seeded, but for those that are timed and those in several
processes.

Run ``python benchmarks/papers/topdown.py``; it writes ``topdown.csv``, ``.md`` and ``.png``. What
the CSV already has with the same versions is kept.
"""

from __future__ import annotations

import argparse
import csv
import math
import signal
import subprocess
import sys
import time
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1]))
from _catalogue import FOLDER, Data, load, one_hot, schema_of
from _report import command, machine, table, versions

from privet.privacy import SeededNoise

NAME = "topdown"
PARTIES, NODES = 4, 512
ALPHAS = tuple(2.0**power for power in range(-3, 10))
#: Beyond the paper's, to see whether all models reach the tree without noise in the end.
LARGER_ALPHAS = (2.0**12, 2.0**15)
#: The published noise needs more for that.
LARGEST_ALPHA = 2.0**21
NO_NOISE = math.inf

#: The sets, with the cuts of a number (section 4 and appendix A.6).
CUTS = {"adult": 10, "bank": 10, "credit-default": 10, "skin": 32, "kddcup99": 10, "mnist": 3}
SETS = tuple(CUTS)
#: Sets that take long.
LARGE = ("kddcup99", "mnist")
#: Where the paper says that local proposals are ahead of noisy counts.
LOCAL_AHEAD = ("adult", "bank", "credit-default", "skin")
#: The rows of adult that are from the file the paper used, less those with missing values.
ADULT_ROWS = 30_162
MNIST_TRAINING = 60_000
#: Least of the three cuts of a block's mean that appendix A.6 prints; the others are as far apart
#: as they can be evenly: 42.5, 127.5, 212.5.
MNIST_BOUNDS = (-42.5, 297.5)
#: Training rows on which training accuracy is measured, at most.
CHECKED = 50_000

LABELS = {
    "single": "single machine",
    "single-own": "single machine, noise of its own",
    "single-entropy": "single machine, entropy, noisy max",
    "published": "single machine, published",
    "secure-sum": "secure sum",
    "local-rnm": "LocalRNM",
    "noisy-counts": "NoisyCounts",
    "no-noise": "no noise",
    "cart": "scikit-learn",
}
PROTOCOLS = ("secure-sum", "local-rnm", "noisy-counts")
#: Fitted one after the other in Figure 2: the second with the noise that the first one's parties
#: made together; and the second once more, with its own, to see that it does not matter.
TOGETHER, OWN = ("secure-sum", "single"), "single-own"
PRIVATE = tuple(key for key in LABELS if key not in (OWN, "no-noise", "cart"))

#: Figures 1 and 4.
FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
FRACTION_ALPHAS = (0.125, 1.0, 8.0)
FRACTION_MODELS = ("single", "published", *PROTOCOLS)
#: How levels share the budget: the options for it.
BUDGETS: dict[str, dict[str, Any]] = {
    "decay": {"budget": "decay"},
    "uniform": {"budget": "uniform"},
    "uniform-64": {"budget": "uniform", "max_depth": 64},
}
#: Figures 3 and 6.
SIZES = (0.01, 0.05, 0.25)
SIZE_ALPHAS = ALPHAS[::2]
SIZE_MODELS = ("single", *PROTOCOLS)

#: The runs in several processes.
SMALL, SMALL_EPSILON, SMALL_NODES, SEEDED_FITS = "banknote", 0.5, 3, 10
WHERE = ("one process", "four processes")

#: How rows are divided among how many parties.
DIVISIONS = ("4, even", "16, even", "4, one has 70 %", "4, class shares", "4, one class each")
DIVISION_ALPHAS = (0.5, 8.0)

SPEED_SET, SPEED_EPSILONS, SPEED_CUTS = "kddcup99", (1.0, 8.0, 512.0, NO_NOISE), (10, 31)


# The data


@cache
def read(folder: Path, name: str) -> tuple[Data, Any]:
    """Return a set as the paper has it, and its schema."""
    data = load(folder, name)
    if name == "adult":
        data.X, data.y = data.X.iloc[:ADULT_ROWS], data.y[:ADULT_ROWS]
    if name == "mnist":
        pixels = data.X.to_numpy(np.float32).reshape(-1, 7, 4, 7, 4)
        blocks = pixels.mean(axis=(2, 4)).reshape(-1, 49)
        data.X = pd.DataFrame(blocks, columns=[f"block {place}" for place in range(49)])
        data.bounds = dict.fromkeys(data.X.columns, MNIST_BOUNDS)
    return data, schema_of(data)


def divide(name: str, rows: int, repeat: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows: nine to one at random, or mnist's own."""
    if name == "mnist":
        return np.arange(MNIST_TRAINING), np.arange(MNIST_TRAINING, rows)
    places = np.random.default_rng([repeat, rows]).permutation(rows)
    return places[rows // 10 :], places[: rows // 10]


def divide_among(division: str, classes: np.ndarray, repeat: int) -> tuple[int, np.ndarray]:
    """Return how many parties there are, and which of them has each row."""
    number, how = division.split(", ")
    count, draw = int(number), np.random.default_rng([repeat, 2])
    if how == "one has 70 %":
        shares = [0.7, *([0.3 / (count - 1)] * (count - 1))]
        return count, draw.choice(count, size=len(classes), p=shares)
    if how == "class shares":  # of each class, the parties have what a Dirichlet law (1/2) gives
        held = draw.dirichlet([0.5] * count, size=int(classes.max()) + 1).cumsum(axis=1)
        return count, (draw.random(len(classes))[:, None] > held[classes]).sum(axis=1)
    if how == "one class each":  # half of the parties have the first class only, half the second
        return count, 2 * draw.integers(count // 2, size=len(classes)) + classes % 2
    return count, draw.integers(count, size=len(classes))


# The models


class Fit(NamedTuple):
    """One fit: its key, without the number of its repetition, and its options."""

    part: str
    name: str
    model: str
    alpha: float
    setting: str
    options: dict[str, Any]
    size: float = 1.0


class Measurement(NamedTuple):
    """What one fit gave; the ledger's epsilon is what its noise costs."""

    accuracy: float
    training: float
    depth: float
    splits: float
    ledger: float
    seconds: float
    cpu_seconds: float


def seed_of(*words: Any) -> int:
    return zlib.crc32(repr(words).encode()) >> 1


# The same noise for one table as for parties


class Tape:
    """What the parties' shares of noise add up to, question by question."""

    def __init__(self) -> None:
        self._parties: list[Shares] = []

    def party(self, seed: int) -> Shares:
        """Return the noise of one more party, whose shares are kept."""
        self._parties.append(Shares(seed))
        return self._parties[-1]

    def sums(self) -> Iterator[tuple[bool, float, np.ndarray]]:
        """Yield for every question whether it was a choice, its noise's rate, and the noise."""
        for shares in zip(*(party.drawn for party in self._parties), strict=True):
            is_choice, rate, _ = shares[0]
            yield is_choice, rate, np.sum([drawn for *_, drawn in shares], axis=0)


class Shares(SeededNoise):
    """A party's noise. Of its draws it keeps for what they were, and what they gave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn: list[tuple[bool, float, np.ndarray]] = []

    def draw(self, sampler: Any) -> Any:
        """See :class:`SeededNoise`."""
        found = super().draw(sampler)
        _, rate, _ = sampler.args  # draw_polya for choices, draw_shares for counts
        self.drawn.append((sampler.func.__name__ == "draw_polya", float(rate), found))
        return found


class SameNoise(SeededNoise):
    """The noise of a tape for one table, as the table has it by itself.

    Counts get the sums, which have its law. Where the parties choose, sums are geometric: with a
    random part of a step they are exponential, as in permute-and-flip. A tree that has left the
    parties' one needs noise that they did not draw: then it is this source's own.
    """

    def __init__(self, tape: Tape, seed: int) -> None:
        super().__init__(seed)
        self._sums = deque(tape.sums())
        self._choosing = False
        self._left = np.zeros(0)

    def _take(self, count: int, rate: float | None = None) -> np.ndarray | None:
        """Return noise of a rate for the next counts, or for a choice, in units of its scale."""
        choosing = rate is None
        if choosing != self._choosing or not choosing:  # the next question
            self._choosing, self._left = choosing, np.zeros(0)
            while self._sums:
                was_choice, drawn, found = self._sums.popleft()
                if was_choice == choosing:
                    if rate is None:
                        within = -np.log1p(np.expm1(-drawn) * self._generator.random(found.size))
                        self._left = drawn * found + within
                    elif math.isclose(drawn, rate):  # or it is for another level
                        self._left = found
                    break
        taken, self._left = self._left[:count], self._left[count:]
        return taken if taken.size == count else None

    def permute_and_flip(self, scores: np.ndarray, scale: float) -> int:
        """See :class:`SeededNoise`."""
        noise = self._take(scores.size)
        if noise is None:
            return super().permute_and_flip(scores, scale)
        return int(np.argmax((scores - scores.max()) + scale * noise))

    def add_laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        """See :class:`SeededNoise`."""
        noise = self._take(values.size, 1 / scale if scale else math.inf)
        return (
            super().add_laplace(values, scale)
            if noise is None
            else values + noise.reshape(values.shape)
        )


def options_of(fit: Fit, rows: int) -> dict[str, Any]:
    """Return the options of our classifier: the paper's, but for what chooses splits."""
    options = {
        "epsilon": fit.alpha,
        "max_nodes": NODES,
        "n_thresholds": CUTS[fit.name],
        "n_rows": rows,
        **fit.options,
    }
    if fit.model in ("single-entropy", "published"):
        options |= {"criterion": "entropy", "split": "rnm"}
    if fit.model == "published":
        options["calibration"] = "published"
    return options


def measure(fit: Fit, data: Data, schema: Any, repeat: int, tape: Tape) -> Measurement:
    """Fit once, with seeded noise; parties leave theirs on a tape, where one table finds it."""
    from privet import Budget, TopDownClassifier
    from privet.federation import FederatedTable, Party

    train, test = divide(fit.name, len(data.y), repeat)
    if fit.size < 1:
        draw = np.random.default_rng([repeat, 1])
        train = draw.choice(train, round(fit.size * len(train)), replace=False)
    seed = seed_of(*fit[:5], repeat)
    X: Any = data.X
    if fit.model == "cart":
        from sklearn.tree import DecisionTreeClassifier

        X = one_hot(data)[0].astype(np.float32)  # as in the paper
        model: Any = DecisionTreeClassifier(max_leaf_nodes=NODES + 1, random_state=seed)
    elif fit.model in PROTOCOLS:
        model = TopDownClassifier(**options_of(fit, len(train)))
    else:
        noise = SameNoise(tape, seed) if fit.model == "single" else seed
        model = TopDownClassifier(schema=schema, random_state=noise, **options_of(fit, len(train)))
    rows = X.iloc if hasattr(X, "iloc") else X
    start, cpu = time.perf_counter(), time.process_time()
    if fit.model in PROTOCOLS:
        # The rows are divided among the parties at random: the same for all models and budgets.
        division = fit.setting if fit.part == "parties" else DIVISIONS[0]
        number, owner = divide_among(division, data.y[train], repeat)
        parties = []
        for place in range(number):
            mine = train[owner == place]
            held = X.iloc[mine], data.y[mine], schema, Budget(fit.alpha)
            noise = tape.party(seed_of(seed, place))
            parties.append(Party(f"party {place}", *held, random_state=noise))
        model.fit(FederatedTable(parties, protocol=fit.model))
    else:
        model.fit(rows[train], data.y[train])
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    checked = train[:CHECKED]
    accuracy, training = (
        float(np.mean(model.predict(rows[some]) == data.y[some])) for some in (test, checked)
    )
    if fit.model == "cart":
        depth, splits, ledger = model.get_depth(), model.get_n_leaves() - 1, math.nan
    else:
        depth, splits = model.tree_.depth, model.tree_.n_leaves - 1
        ledger = float(model.privacy_.epsilon)
    return Measurement(accuracy, training, depth, splits, ledger, seconds, cpu)


# The jobs


class Job(NamedTuple):
    """One repetition of a part on a set."""

    part: str
    name: str
    repeat: int


def fits_of(job: Job) -> Iterator[list[Fit]]:
    """Return what a job fits; what is in one list has one tape of noise."""
    part, name = job.part, job.name
    if part == "figure 2":
        for model in ("no-noise", "cart"):
            yield [Fit(part, name, model, NO_NOISE, "", {})]
        alphas = (*ALPHAS, *(LARGER_ALPHAS if job.repeat == 0 else ()))
        others = [(model,) for model in (OWN, *PRIVATE) if model not in TOGETHER]
        for models in (*others, TOGETHER):
            for alpha in alphas:
                yield [Fit(part, name, model, alpha, "", {}) for model in models]
        if job.repeat == 0:
            yield [Fit(part, name, "published", LARGEST_ALPHA, "", {})]
    elif part == "figure 1":
        for alpha in FRACTION_ALPHAS:
            for model in FRACTION_MODELS:
                for budget, options in BUDGETS.items():
                    if budget == "uniform-64" and (
                        model == "published" or (name == "mnist" and model in PROTOCOLS)
                    ):
                        continue  # not in the paper; and 64 levels of ten classes take parties long
                    for fraction in FRACTIONS:
                        given = {**options, "leaf_fraction": fraction}
                        yield [Fit(part, name, model, alpha, f"{budget} {fraction:g}", given)]
    elif part == "figure 3":
        for size in SIZES:
            for alpha in SIZE_ALPHAS:
                for model in SIZE_MODELS:
                    yield [Fit(part, name, model, alpha, f"{size:g}", {}, size)]
            yield [Fit(part, name, "no-noise", NO_NOISE, f"{size:g}", {}, size)]
    elif part == "parties":
        for alpha in DIVISION_ALPHAS:
            yield [Fit(part, name, "single", alpha, "", {})]
            for division in DIVISIONS:
                for model in PROTOCOLS:
                    yield [Fit(part, name, model, alpha, division, {})]


def all_jobs(args: argparse.Namespace) -> list[Job]:
    counts = {
        "figure 2": args.runs2,
        "figure 1": args.runs1,
        "figure 3": args.runs3,
        "parties": args.runs_parties,
    }
    jobs = []
    for part, runs in counts.items():
        large = args.runs_large if part == "figure 2" else args.runs_large_others
        by_set = {name: large if name in LARGE else runs for name in args.sets}
        for repeat in range(max(by_set.values())):
            jobs += [Job(part, name, repeat) for name in args.sets if repeat < by_set[name]]
    return [job for job in jobs if job.part in args.parts]


def prepare() -> None:
    """Import the library at once, so that it is one version of it, and silence its warnings.

    What they are about is done on purpose: seeded fits, no noise, the paper's noise.
    """
    from privet import TopDownClassifier  # noqa: F401
    from privet.errors import PrivacyLeakWarning, PublishedCostWarning

    warnings.simplefilter("ignore", PrivacyLeakWarning)
    warnings.simplefilter("ignore", PublishedCostWarning)


# The results


@dataclass
class Row:
    """One fit, or one way to fit of the parts on processes and speed: one line of the CSV."""

    part: str
    set: str
    model: str
    alpha: float
    setting: str
    repeat: int
    accuracy: float
    training: float
    depth: float
    splits: float
    ledger: float
    seconds: float
    cpu_seconds: float
    version: str


Key = tuple[str, str, str, float, str, int]
Rows = dict[Key, Row]
Lacks = Callable[[Key], bool]
Keep = Callable[[Key, Measurement], None]
PARTS = ("figure 2", "processes", "speed", "parties", "figure 1", "figure 3")


@cache
def version_of(model: str) -> str:
    """Return what a row was measured with: for ours with the last commit of the library, if any."""
    if model == "cart":
        return versions("scikit-learn")
    here = Path(__file__).resolve().parents[2]
    words = ["git", "-C", str(here), "log", "-1", "--format=%h", "--", "src/privet"]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        answer = ""
    return versions("privet") + (f" after {answer}" if answer else "")


def number_of(version: str) -> str:
    return version.split(" after ", maxsplit=1)[0]


def read_rows(path: Path) -> Rows:
    rows: Rows = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                key = (line["part"], line["set"], line["model"], float(line["alpha"]),
                       line["setting"], int(line["repeat"]))  # fmt: skip
                numbers = [float(line[field.name]) for field in fields(Row)[6:13]]
                rows[key] = Row(*key, *numbers, line["version"])
    return rows


def write_rows(path: Path, rows: Rows) -> None:
    def place(key: Key) -> tuple[Any, ...]:
        part, name, model, alpha, setting, repeat = key
        order = SETS.index(name) if name in SETS else len(SETS)
        return PARTS.index(part), order, list(LABELS).index(model), setting, alpha, repeat

    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([field.name for field in fields(Row)])
        for key in sorted(rows, key=place):
            # All digits of what is compared, five of what was measured.
            cells = [*map(str, key), *astuple(rows[key])[len(key) :]]
            out.writerow([f"{c:.5g}" if isinstance(c, float) else c for c in cells])
    partial.replace(path)


def collect(args: argparse.Namespace, rows: Rows) -> None:
    """Run what the rows lack, and write them after every job."""
    prepare()
    start, path = time.perf_counter(), args.out / f"{NAME}.csv"

    def lacks(key: Key) -> bool:
        row, now = rows.get(key), version_of(key[2])
        if row is None or number_of(row.version) != number_of(now) or args.fresh:
            return True
        return key[2] in args.again and row.version != now

    def keep(key: Key, found: Measurement) -> None:
        rows[key] = Row(*key, *found, version_of(key[2]))

    for part, run in (("processes", run_processes), ("speed", run_speed)):
        if part in args.parts:
            run(args, rows, lacks, keep)
            write_rows(path, rows)
            print(f"[{time.perf_counter() - start:.0f} s] {part}", flush=True)
    jobs = all_jobs(args)
    for done, job in enumerate(jobs):
        todo = [fits for fits in fits_of(job) if any(lacks((*fit[:5], job.repeat)) for fit in fits)]
        if not todo:
            continue
        data, schema = read(args.data, job.name)
        try:
            for fits in todo:
                tape = Tape()
                for fit in fits:
                    found = measure(fit, data, schema, job.repeat, tape)
                    keep((*fit[:5], job.repeat), found)
        finally:
            write_rows(path, rows)
        spent = time.perf_counter() - start
        print(
            f"[{done + 1}/{len(jobs)}, {spent:.0f} s] {job.part}, {job.name}, repeat {job.repeat}: "
            f"{sum(map(len, todo))} fits",
            flush=True,
        )


# Parties in processes of their own


def make_party(name: str, place: int, folder: Path, budget: float, seed: int | None) -> Any:
    """Return a party with its fourth of the small set, which it reads itself."""
    from privet import Budget
    from privet.federation import Party

    prepare()
    data, schema = read(folder, SMALL)
    owner = np.random.default_rng(0).integers(PARTIES, size=len(data.y))
    mine = np.flatnonzero(owner == place)
    held = data.X.iloc[mine], data.y[mine], schema, Budget(budget)
    return Party(name, *held, random_state=None if seed is None else seed_of(seed, place))


def trees_of(folder: Path, protocol: str, where: str, fits: int, seed: int | None) -> list[Any]:
    """Return the trees of some fits of a federation in one process or in several."""
    from privet import TopDownClassifier
    from privet.federation import FederatedTable, ProcessLink

    given = [
        (f"party {place}", place, folder, fits * SMALL_EPSILON, seed) for place in range(PARTIES)
    ]
    parties: list[Any]
    if where == "one process":
        parties = [make_party(*each) for each in given]
    else:
        parties = [ProcessLink(each[0], make_party, each) for each in given]
    joined = FederatedTable(parties, protocol=protocol)
    try:
        model = TopDownClassifier(epsilon=SMALL_EPSILON, max_nodes=SMALL_NODES, n_thresholds=10)
        return [model.fit(joined).tree_.to_dict() for _ in range(fits)]
    finally:
        joined.close()


def root_of(tree: Any) -> str:
    """Return the test at the root of a tree, in few words."""
    cut = tree["nodes"][0].get("cut")
    if cut is None:
        return "no split"
    return (
        f"{cut['feature']} {cut['edges'][0]:.4g}" if cut["edges"] else f"{cut['feature']} missing"
    )


def run_processes(args: argparse.Namespace, rows: Rows, lacks: Lacks, keep: Keep) -> None:
    """Fit small trees in one process and in four, and keep how often each root was chosen.

    A line of the CSV is one root: ``splits`` says how often it came, of ``depth`` fits. A line with
    the setting "seeded" says how many of ``depth`` trees were equal in one process and in four.
    """
    for protocol in PROTOCOLS:
        for where in WHERE:
            old = [key for key in rows if key[:3] == ("processes", SMALL, protocol)]
            old = [key for key in old if key[4].startswith(where)]
            if old and not any(lacks(key) for key in old):
                continue
            for key in old:
                del rows[key]
            start = time.perf_counter()
            found = Counter(map(root_of, trees_of(args.data, protocol, where, args.fits, None)))
            seconds = (time.perf_counter() - start) / args.fits
            for root, number in found.items():
                key = ("processes", SMALL, protocol, SMALL_EPSILON, f"{where}: {root}", 0)
                keep(key, counted(args.fits, number, seconds))
        key = ("processes", SMALL, protocol, SMALL_EPSILON, "seeded", 0)
        if lacks(key):
            one, four = (trees_of(args.data, protocol, w, SEEDED_FITS, 1) for w in WHERE)
            same = sum(a == b for a, b in zip(one, four, strict=True))
            keep(key, counted(SEEDED_FITS, same, math.nan))


def counted(fits: int, number: int, seconds: float) -> Measurement:
    return Measurement(math.nan, math.nan, fits, number, SMALL_EPSILON, seconds, math.nan)


# Speed


def run_speed(args: argparse.Namespace, rows: Rows, lacks: Lacks, keep: Keep) -> None:
    """Time fits on all rows of the largest set, with cryptographic noise, one after the other."""
    from sklearn.tree import DecisionTreeClassifier

    from privet import TopDownClassifier

    del rows
    cases = [("cart", NO_NOISE, "codes", {})]
    for cuts in SPEED_CUTS:
        cases += [
            ("single", alpha, f"{cuts} cuts", {"epsilon": alpha, "n_thresholds": cuts})
            for alpha in SPEED_EPSILONS
        ]
    keys = [
        [("speed", SPEED_SET, model, alpha, setting, turn) for model, alpha, setting, _ in cases]
        for turn in range(args.runs_speed)
    ]
    if not any(lacks(key) for turn in keys for key in turn):
        return
    data, schema = read(args.data, SPEED_SET)
    codes = np.column_stack(
        [
            data.X[name].cat.codes if name in data.categories else data.X[name]
            for name in data.X.columns
        ]
    ).astype(np.float32)
    TopDownClassifier(schema=schema).fit(data.X.iloc[:20_000], data.y[:20_000])  # to warm up
    for turn in keys:
        for key, (model, _, _, options) in zip(turn, cases, strict=True):
            if model == "cart":
                made: Any = DecisionTreeClassifier(max_leaf_nodes=NODES + 1, random_state=key[5])
            else:
                made = TopDownClassifier(schema=schema, max_nodes=NODES, **options)
            X = codes if model == "cart" else data.X
            start, cpu = time.perf_counter(), time.process_time()
            made.fit(X, data.y)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            training = float(np.mean(made.predict(X) == data.y))
            if model == "cart":
                size = made.get_depth(), made.get_n_leaves() - 1, math.nan
            else:
                size = made.tree_.depth, made.tree_.n_leaves - 1, float(made.privacy_.epsilon)
            keep(key, Measurement(math.nan, training, *size, seconds, cpu))


# The report


class Number(NamedTuple):
    """A mean over repetitions, and its standard error."""

    mean: float
    error: float
    runs: int

    def __str__(self) -> str:
        """Return it as the tables show it."""
        return f"{self.mean:.3f}" + (f" ± {self.error:.3f}" if self.runs > 1 else "")

    @property
    def signed(self) -> str:
        """It as a difference, in points of accuracy."""
        error = f" ± {100 * self.error:.2f}" if self.runs > 1 else ""
        return f"{100 * self.mean:+.2f}{error}"

    @property
    def chance(self) -> float:
        """The p of a t-test of whether it is zero."""
        from scipy.stats import t

        return float(2 * t.sf(abs(self.mean) / self.error, self.runs - 1))

    @property
    def above(self) -> bool:
        """Whether it is positive by more than two standard errors."""
        return self.runs > 1 and self.mean > 2 * self.error and self.mean > 0


def number(values: Sequence[float]) -> Number:
    found = np.array(values, dtype=float)
    error = float(found.std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.nan
    return Number(float(found.mean()), error, len(found))


#: What says which fits are meant: part, set, model, alpha and setting.
Which = tuple[str, str, str, float, str]


class Results:
    """The rows, asked for means and for differences within repetitions."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._found: dict[Which, dict[int, Row]] = {}
        for key, row in rows.items():
            self._found.setdefault(key[:5], {})[key[5]] = row

    def sets(self, part: str) -> list[str]:
        """Return the sets of which a part has rows."""
        return [name for name in SETS if any(key[:2] == (part, name) for key in self.rows)]

    def values(self, which: Which, field: str = "accuracy") -> dict[int, float]:
        """Return one measure by repetition."""
        return {repeat: getattr(row, field) for repeat, row in self._found.get(which, {}).items()}

    def versions(self, which: Which) -> dict[int, str]:
        """Return by repetition what it was measured with."""
        return {repeat: row.version for repeat, row in self._found.get(which, {}).items()}

    def mean(
        self, which: Which, field: str = "accuracy", like: Which | None = None
    ) -> Number | None:
        """Return the mean of a measure, from the repetitions that other fits have if they do."""
        found = self.values(which, field)
        others = found if like is None else self.values(like)
        chosen = [value for repeat, value in found.items() if repeat in (others or found)]
        return number(chosen) if chosen else None

    def mean_by_size(
        self, name: str, model: str, alpha: float, size: float, field: str = "accuracy"
    ) -> Number | None:
        """Return the mean with a part of the training rows; with all, from the same splits."""
        like: Which = ("figure 3", name, model, alpha, f"{SIZES[-1]:g}")
        if size == 1:
            return self.mean(("figure 2", name, model, alpha, ""), field, like)
        return self.mean(("figure 3", name, model, alpha, f"{size:g}"), field)

    def gap(self, one: Which, other: Which) -> Number | None:
        """Return how far one is ahead of another, from repetitions that both have."""
        return self.mean_gap([(one, other)])

    def mean_gap(self, pairs: Iterable[tuple[Which, Which]]) -> Number | None:
        """Return the same on average over some pairs."""
        by_pair = []
        for one, other in pairs:
            ours, theirs = self.values(one), self.values(other)
            both = {repeat: ours[repeat] - theirs[repeat] for repeat in ours.keys() & theirs.keys()}
            if both:
                by_pair.append(both)
        if not by_pair:
            return None
        repeats = set.intersection(*(set(found) for found in by_pair))
        if not repeats:
            return None
        return number([float(np.mean([f[repeat] for f in by_pair])) for repeat in sorted(repeats)])


def shown(found: Number | None, places: int = 3) -> str:
    return "-" if found is None else f"{found.mean:.{places}f}"


def splits_text(runs: Iterable[int]) -> str:
    words = " or ".join(map(str, sorted(runs)))
    return "1 split" if words == "1" else f"{words} splits"


def worst_error(errors: Sequence[float]) -> str:
    known = [error for error in errors if not math.isnan(error)]
    if not known:
        return "One run each, so that no standard error is known."
    return f"Largest standard error of these means: {max(known):.3f}."


def alpha_text(alpha: float) -> str:
    return "no noise" if alpha == NO_NOISE else f"{alpha:g}"


def figure_2(results: Results) -> list[str]:
    text = []
    for name in results.sets("figure 2"):
        lines, errors, runs = [], [], set()
        for model in PRIVATE:
            found = [results.mean(("figure 2", name, model, alpha, "")) for alpha in ALPHAS]
            if not any(found):
                continue
            errors += [each.error for each in found if each]
            runs |= {each.runs for each in found if each}
            lines.append([LABELS[model], *map(shown, found)])
        spent = [
            results.mean(("figure 2", name, "published", alpha, ""), "ledger") for alpha in ALPHAS
        ]
        lines.append(
            ["true epsilon of published", *("-" if s is None else f"{s.mean:.3g}" for s in spent)]
        )
        others = [
            f"{LABELS[model]}: {results.mean(('figure 2', name, model, NO_NOISE, ''))}"
            for model in ("no-noise", "cart")
        ]
        text += [
            f"### {name}, {splits_text(runs)}\n",
            table(["alpha", *(f"{alpha:g}" for alpha in ALPHAS)], lines),
            f"{worst_error(errors)} {'; '.join(others)}.\n",
        ]
    if not text:
        return []
    return [
        "## Figure 2: test accuracy against alpha\n",
        "Means over random splits (mnist: over draws of the noise, as its split is fixed). The "
        "text of the paper has no values of these curves.\n",
        *text,
    ]


def figure_5(results: Results) -> list[str]:
    text, deepest, shallowest, points, rises, steps = [], 0, 0, 0, 0, 0
    for name in results.sets("figure 2"):
        lines = []
        for model in PRIVATE:
            sizes = [results.mean(("figure 2", name, model, a, ""), "splits") for a in ALPHAS]
            known_sizes = [each.mean for each in sizes if each]
            steps += max(len(known_sizes) - 1, 0)
            rises += sum(after >= before for before, after in pairwise(known_sizes))
        for field, words in (("training", "training accuracy"), ("depth", "depth"),
                             ("splits", "splits")):  # fmt: skip
            places = 3 if field == "training" else 1
            for model in PRIVATE:
                cells = [
                    shown(results.mean(("figure 2", name, model, alpha, ""), field), places)
                    for alpha in ALPHAS
                ]
                lines.append([words, LABELS[model], *cells])
        for alpha in ALPHAS:
            depths = {
                model: results.mean(("figure 2", name, model, alpha, ""), "depth")
                for model in ("single", "local-rnm", "noisy-counts")
            }
            known = {model: found.mean for model, found in depths.items() if found}
            if len(known) == 3:
                points += 1
                deepest += known["noisy-counts"] == max(known.values())
                shallowest += known["local-rnm"] == min(known.values())
        ends = [
            f"{LABELS[model]}: training accuracy "
            f"{shown(results.mean(('figure 2', name, model, NO_NOISE, ''), 'training'))}, depth "
            f"{shown(results.mean(('figure 2', name, model, NO_NOISE, ''), 'depth'), 1)}, splits "
            f"{shown(results.mean(('figure 2', name, model, NO_NOISE, ''), 'splits'), 1)}"
            for model in ("no-noise", "cart")
        ]
        text += [
            f"### {name}\n",
            table(["", "alpha", *(f"{alpha:g}" for alpha in ALPHAS)], lines),
            f"{'; '.join(ends)}.\n",
        ]
    if not text:
        return []
    return [
        "## Figure 5: training accuracy, depth and splits\n",
        "Of the tree that is returned: a split whose leaves have the same label is taken away "
        'before it is counted. The paper says that in general "the depth and size of the tree '
        'decreases as the privacy budget decreases": from one alpha to the next the mean of the '
        f"splits does not fall here in {rises} of {steps} steps. It says that "
        '"NoisyCounts consistently learns the deepest trees, while LocalRNM consistently learns '
        f'the shallowest"; of {points} points here, NoisyCounts is the deepest of its three at '
        f"{deepest} and LocalRNM the shallowest at {shallowest}.\n",
        *text,
    ]


@dataclass
class Contest:
    """One model against another on a set, over all alphas."""

    name: str
    average: Number
    #: By alpha: the difference.
    gaps: dict[float, Number]

    @property
    def behind(self) -> list[str]:
        """The alphas at which it is behind by more than two standard errors."""
        lost = [a for a, g in self.gaps.items() if Number(-g.mean, g.error, g.runs).above]
        return [f"{alpha:g}" for alpha in lost]


def contest(results: Results, name: str, one: str, other: str) -> Contest | None:
    pairs = {
        alpha: (("figure 2", name, one, alpha, ""), ("figure 2", name, other, alpha, ""))
        for alpha in ALPHAS
    }
    found = {alpha: results.gap(*pair) for alpha, pair in pairs.items()}
    gaps = {alpha: gap for alpha, gap in found.items() if gap}
    average = results.mean_gap(pairs.values())
    return Contest(name, average, gaps) if average and average.runs > 1 else None


def contest_line(found: Contest) -> list[str]:
    gaps = found.gaps.values()
    return [
        found.name,
        f"{found.average.runs}",
        found.average.signed,
        f"{sum(gap.mean > 0 for gap in gaps)}",
        f"{sum(gap.mean == 0 for gap in gaps)}",
        f"{sum(gap.above for gap in gaps)}",
        ", ".join(found.behind) or "none",
    ]


CONTEST_HEAD = ["set", "runs", "average difference, points", "alphas ahead", "equal"]
CONTEST_HEAD += ["ahead by two standard errors", "alphas behind by two"]


def orderings(results: Results) -> list[str]:
    text = [
        "## Who is ahead\n",
        "Differences of test accuracy within the same split and rows, in points (hundredths), "
        f"over the {len(ALPHAS)} alphas of Figure 2: on average, and at how many alphas. With so "
        "few runs, one alpha in ten or so leaves two standard errors by chance. Sets with one run "
        "are left out.\n",
    ]
    for one, other in (
        *(("single", protocol) for protocol in PROTOCOLS),
        ("local-rnm", "noisy-counts"),
        ("secure-sum", "local-rnm"),
        ("single", "single-entropy"),
        ("single", "published"),
    ):
        found = [contest(results, name, one, other) for name in results.sets("figure 2")]
        lines = [contest_line(each) for each in found if each]
        if lines:
            text += [
                f"### {LABELS[one]} less {LABELS[other]}\n",
                *["With the same noise, see below.\n"] * ({one, other} == set(TOGETHER)),
                table(CONTEST_HEAD, lines),
            ]
    return text if len(text) > 2 else []


@dataclass
class Nearness:
    """How near a model is to the single machine, over the points of Figure 2."""

    lines: list[list[str]]
    points: int = 0
    #: Within one standard error of the single machine's mean, and below it by more.
    near: int = 0
    below: int = 0
    #: Within one standard error of the difference, and within two.
    one: int = 0
    two: int = 0
    #: Fits, and those of them whose trees have the same size and accuracy on all rows.
    fits: int = 0
    same: int = 0
    left_out: tuple[str, ...] = ()


def nearness(results: Results, one: str, other: str) -> Nearness:
    """Compare two models at every set and alpha; errors only where there are three splits."""
    found = Nearness([])
    measures = ("accuracy", "training", "depth", "splits")
    for name in results.sets("figure 2"):
        cells = []
        for alpha in ALPHAS:
            which: list[Which] = [("figure 2", name, model, alpha, "") for model in (one, other)]
            by_measure = [[results.values(each, m) for each in which] for m in measures]
            both = by_measure[0][0].keys() & by_measure[0][1].keys()
            if one in TOGETHER and other in TOGETHER:  # one noise, so one run
                versions_of = [results.versions(each) for each in which]
                assert all(versions_of[0][r] == versions_of[1][r] for r in both), which
            found.fits += len(both)
            found.same += sum(all(a[r] == b[r] for a, b in by_measure) for r in both)
            gap = results.gap(*which)
            if gap is None:
                cells.append("-")
                continue
            if gap.runs < 3:  # two have no standard error to speak of
                cells.append(f"{100 * gap.mean:+.2f}")
                continue
            base = results.mean(which[1])
            assert base is not None
            found.points += 1
            found.near += abs(gap.mean) <= base.error
            found.below += gap.mean < -base.error
            found.one += abs(gap.mean) <= gap.error
            found.two += abs(gap.mean) <= 2 * gap.error
            signed = f"{gap.signed} ({100 * base.error:.2f})"
            cells.append(signed if abs(gap.mean) <= base.error else f"**{signed}**")
        found.lines.append([name, *cells])
        if not any("±" in cell for cell in cells):
            found.left_out += (name,)
    return found


def secure_sum(found: Nearness, own: Nearness) -> list[str]:
    """Return the tables of secure sum less single machine, with one noise and with two."""
    if not found.points:
        return []
    head = ["alpha", *(f"{alpha:g}" for alpha in ALPHAS)]
    return [
        "## Secure sum less single machine, by alpha\n",
        "In points, ± one standard error of the difference within the same splits (in brackets: of "
        "the single machine's mean over the splits; bold where the difference is farther from zero "
        "than that; without errors where there are fewer than three splits). Both choose by the "
        "same scores, but for chords, and shares of noise add up to the single machine's. So the "
        "latter was given the noise that the parties' shares had made (common random numbers): "
        "counts get the sums, choices the sums with a random part of a step, which makes geometric "
        "noise exponential. Each model is a draw of its own law. What differs comes from chords "
        "and steps, and from the noise of cells that are others after a first difference: "
        f"{within(found)}; in {found.same} of {found.fits} fits the two trees have the same depth, "
        "splits, training and test accuracy.\n",
        table(head, found.lines),
        "Against the single machine with noise of its own, the statistical test that needs no "
        f"common noise: {within(own)}. Of equal laws with independent noise, about half of the "
        "differences are within one standard error of the mean where it is mostly the noise's.\n",
        table(head, own.lines),
    ]


def within(found: Nearness) -> str:
    return (
        f"within one standard error of the mean at {found.near} of {found.points} points, below by "
        f"more at {found.below}, above by more at {found.points - found.near - found.below}; "
        f"within one standard error of the difference at {found.one}, within two at {found.two}"
    )


def divisions(results: Results) -> list[str]:
    text = []
    for alpha in DIVISION_ALPHAS:
        lines, runs = [], set()
        for name in results.sets("parties"):
            single = results.mean(("parties", name, "single", alpha, ""))
            for division in DIVISIONS:
                found = [
                    results.mean(("parties", name, protocol, alpha, division))
                    for protocol in PROTOCOLS
                ]
                runs |= {each.runs for each in found if each}
                lines.append([name, division, *map(shown, found), shown(single)])
        if lines:
            head = ["set", "parties", *(LABELS[protocol] for protocol in PROTOCOLS)]
            text += [
                f"### alpha {alpha:g}, {splits_text(runs)}\n",
                table([*head, LABELS["single"]], lines),
            ]
    if not text:
        return []
    return [
        "## Other parties\n",
        "Test accuracy. Class shares: of each class, the parties have what a Dirichlet law with "
        "parameters 1/2 gives. One class each: two parties have rows of the first class only, two "
        "of the second. Then no party can see which split tells the classes apart: LocalRNM judges "
        "splits within parties, NoisyCounts and secure sum by the counts of all rows.\n",
        *text,
    ]


SHOWN_GAPS = (0.125, 1.0, 8.0, 64.0, 512.0, *LARGER_ALPHAS, LARGEST_ALPHA)


def last_alpha(model: str) -> float:
    return LARGEST_ALPHA if model == "published" else LARGER_ALPHAS[-1]


def convergence(results: Results) -> tuple[list[str], list[tuple[str, str, Number, Number]]]:
    """Return how far private trees are from the one without noise: at the last alpha, the first."""
    lines, last = [], []
    for name in results.sets("figure 2"):
        for model in PRIVATE:
            end: Which = ("figure 2", name, "no-noise", NO_NOISE, "")
            gaps = [results.gap(end, ("figure 2", name, model, a, "")) for a in SHOWN_GAPS]
            end_gap = gaps[SHOWN_GAPS.index(last_alpha(model))]
            if gaps[0] and end_gap:
                last.append((name, model, end_gap, gaps[0]))
            lines.append([name, LABELS[model], *(gap.signed if gap else "-" for gap in gaps)])
    text = [
        "## Convergence: the tree without noise less the private tree\n",
        f"In points. Without noise: `TopDownClassifier(epsilon=inf, max_nodes={NODES})` with the "
        "same cuts. The last three alphas are not in the paper, and measured on one split.\n",
        table(["set", "alpha", *(f"{alpha:g}" for alpha in SHOWN_GAPS)], lines),
    ]
    return (text if last else []), last


def figure_1(results: Results) -> list[str]:
    text, inner, curves = [], 0, 0
    for name in results.sets("figure 1"):
        lines, errors, runs = [], [], set()
        for model in FRACTION_MODELS:
            for budget in BUDGETS:
                cells = []
                for alpha in FRACTION_ALPHAS:
                    found = [
                        results.mean(("figure 1", name, model, alpha, f"{budget} {fraction:g}"))
                        for fraction in FRACTIONS
                    ]
                    cells += [shown(each) for each in found]
                    known = [each.mean for each in found if each]
                    if len(known) == len(FRACTIONS) and max(known) > min(known):
                        curves += 1
                        inner += max(known) > max(known[0], known[-1])
                    errors += [each.error for each in found if each]
                    runs |= {each.runs for each in found if each}
                if set(cells) != {"-"}:
                    lines.append([LABELS[model], budget, *cells])
        head = ["", "levels"]
        head += [f"{alpha:g}: {fraction:g}" for alpha in FRACTION_ALPHAS for fraction in FRACTIONS]
        text += [
            f"### {name}, {splits_text(runs)}\n",
            table(head, lines),
            f"{worst_error(errors)}\n",
        ]
    if not text:
        return []
    return [
        "## Figures 1 and 4: the labels' part of the budget\n",
        "Test accuracy; heads: alpha: `leaf_fraction`. Levels: decay (seven eighths of the "
        "level above; published: half of it); "
        "uniform (`budget=uniform`: equal over the automatic depth; published: 1/512 each, as in "
        "the paper); uniform-64 (`budget=uniform, max_depth=64`: a 64th each). The paper finds "
        f"accuracy highest away from 0 and 1; of {curves} curves here that are not flat, {inner} "
        "have their highest point inside.\n",
        *text,
    ]


#: Differences by calibration and way to share, with their sets.
Kinds = dict[tuple[str, str], list[tuple[str, Number]]]


def budgets(results: Results) -> tuple[list[str], Kinds]:
    """Return decay less uniform at half the budget for labels, and the differences by kind."""
    lines = []
    kinds: Kinds = {}
    for name in results.sets("figure 1"):
        for model in FRACTION_MODELS:
            for budget in ("uniform", "uniform-64"):
                gaps = [
                    results.gap(
                        ("figure 1", name, model, alpha, "decay 0.5"),
                        ("figure 1", name, model, alpha, f"{budget} 0.5"),
                    )
                    for alpha in FRACTION_ALPHAS
                ]
                known = [gap for gap in gaps if gap]
                if known:
                    group = "published" if model == "published" else "valid"
                    kinds.setdefault((group, budget), []).extend((name, gap) for gap in known)
                    cells = [gap.signed if gap else "-" for gap in gaps]
                    lines.append([name, LABELS[model], budget, *cells])
    head = ["set", "", "levels", *(f"alpha {alpha:g}" for alpha in FRACTION_ALPHAS)]
    text = [
        "## Decay less uniform\n",
        "In points of test accuracy, `leaf_fraction=0.5`.\n",
        table(head, lines),
    ]
    return (text if lines else []), kinds


def figure_3(results: Results) -> list[str]:
    text = []
    rises = {"accuracy": 0, "training": 0}
    steps = dict(rises)
    sizes = (*SIZES, 1.0)

    for name in results.sets("figure 3"):
        lines = []
        for field, words in (("accuracy", "test"), ("training", "training")):
            for model in SIZE_MODELS:
                for alpha in SIZE_ALPHAS:
                    found = [
                        results.mean_by_size(name, model, alpha, size, field) for size in sizes
                    ]
                    known = [each.mean for each in found if each]
                    steps[field] += len(known) - 1
                    rises[field] += sum(b >= a for a, b in pairwise(known))
                for size in sizes:
                    cells = [
                        shown(results.mean_by_size(name, model, alpha, size, field))
                        for alpha in SIZE_ALPHAS
                    ]
                    end = results.mean_by_size(name, "no-noise", NO_NOISE, size, field)
                    lines.append([words, LABELS[model], f"{size:g}", *cells, shown(end)])
        head = ["accuracy", "", "part of the rows"]
        head += [*(f"{alpha:g}" for alpha in SIZE_ALPHAS), "no noise"]
        runs = {
            len(found)
            for key in {key[:5] for key in results.rows if key[:2] == ("figure 3", name)}
            if (found := results.values(key))
        }
        text += [
            f"### {name}, {splits_text(runs)}\n",
            table(head, lines),
        ]
    if not text:
        return []
    return [
        "## Figures 3 and 6: the size of the training set\n",
        "A random part of the training rows; all of them: the same splits of Figure 2. The "
        "paper: larger sets give better test accuracy, and better training accuracy, which without "
        f"noise falls. Of the steps from one size to the next here, {rises['accuracy']} of "
        f"{steps['accuracy']} do not fall in test accuracy, and {rises['training']} of "
        f"{steps['training']} in training accuracy.\n",
        *text,
    ]


def processes(results: Results) -> tuple[list[str], list[float], int, int]:
    """Return the comparison, the chi-square tests' p, and how many seeded trees were equal."""
    from scipy.stats import chi2_contingency

    lines, tests, equal, seeded = [], [], 0, 0
    for protocol in PROTOCOLS:
        counts: dict[str, dict[str, float]] = {where: {} for where in WHERE}
        seconds = dict.fromkeys(WHERE, math.nan)
        same = "-"
        for key, row in results.rows.items():
            if key[:3] != ("processes", SMALL, protocol):
                continue
            if row.setting == "seeded":
                same = f"{row.splits:.0f} of {row.depth:.0f}"
                equal, seeded = equal + int(row.splits), seeded + int(row.depth)
                continue
            where, root = row.setting.split(": ")
            counts[where][root] = row.splits
            seconds[where] = row.seconds
        if not all(counts.values()):
            continue
        roots = sorted(set().union(*counts.values()))
        cells = np.array([[counts[where].get(root, 0.0) for root in roots] for where in WHERE])
        rare = cells.sum(axis=0) < 10  # expected: five in each
        kept = np.column_stack([cells[:, ~rare], cells[:, rare].sum(axis=1)])
        kept = kept[:, kept.sum(axis=0) > 0]
        test = chi2_contingency(kept)
        tests.append(float(test.pvalue))
        most = np.argsort(-cells.sum(axis=0))[:3]
        often = "; ".join(
            f"{roots[place]}: {cells[0, place]:.0f}, {cells[1, place]:.0f}" for place in most
        )
        lines.append(
            [LABELS[protocol], f"{cells[0].sum():.0f}, {cells[1].sum():.0f}", f"{len(roots)}",
             often, f"{test.statistic:.1f}", f"{test.dof}", f"{test.pvalue:.2f}", same,
             f"{seconds[WHERE[0]]:.3f}, {seconds[WHERE[1]]:.3f}"]
        )  # fmt: skip
    if not lines:
        return [], [], 0, 0
    head = ["", "fits in one process, in four", "roots", "most frequent roots: one, four"]
    head += ["chi-square", "degrees", "p", "seeded trees equal", "seconds a fit"]
    return (
        [
            "## Four processes\n",
            f"The root of trees with at most {SMALL_NODES} splits on {SMALL}, epsilon "
            f"{SMALL_EPSILON:g}, {PARTIES} parties, cryptographic noise: all parties in one "
            "process, and each in an operating-system process of its own (`ProcessLink`), which "
            "reads its rows itself. Roots that came less than ten times in all are one class of "
            "the chi-square test. Seeded parties: whole trees compared, one fit after the other "
            "with the same parties. The seconds include "
            "starting the processes, once for all fits.\n",
            table(head, lines),
        ],
        tests,
        equal,
        seeded,
    )


def speed(results: Results) -> tuple[list[str], list[tuple[float, float]]]:
    """Return the table, and the ratios of wall and CPU seconds to scikit-learn's."""
    base: Which = ("speed", SPEED_SET, "cart", NO_NOISE, "codes")
    times = [list(results.values(base, field).values()) for field in ("seconds", "cpu_seconds")]
    if not times[0]:
        return [], []
    reference = [float(np.median(found)) for found in times]
    found_all = results.mean(base, "training"), results.mean(base, "splits")
    lines = [
        ["scikit-learn", "-", "-", f"{reference[0]:.2f}", f"{reference[1]:.2f}", "1", "1",
         shown(found_all[0]), shown(found_all[1], 0), f"{len(times[0])}"]
    ]  # fmt: skip
    ratios = []
    for cuts in SPEED_CUTS:
        for alpha in SPEED_EPSILONS:
            which: Which = ("speed", SPEED_SET, "single", alpha, f"{cuts} cuts")
            wall, cpu = (
                list(results.values(which, field).values()) for field in ("seconds", "cpu_seconds")
            )
            if not wall:
                continue
            middle = float(np.median(wall)), float(np.median(cpu))
            ratios.append((middle[0] / reference[0], middle[1] / reference[1]))
            training, splits = (results.mean(which, field) for field in ("training", "splits"))
            lines.append(
                ["TopDownClassifier", f"{cuts}", alpha_text(alpha), f"{middle[0]:.2f}",
                 f"{middle[1]:.2f}", f"{ratios[-1][0]:.2f}", f"{ratios[-1][1]:.2f}",
                 shown(training), shown(splits, 0), f"{len(wall)}"]
            )  # fmt: skip
    head = ["", "cuts", "epsilon", "seconds", "CPU seconds", "seconds, by scikit-learn's"]
    head += ["CPU seconds, by scikit-learn's", "training accuracy", "splits", "runs"]
    return [
        f"## Speed: {SPEED_SET}, 494,021 rows, 41 features, {NODES} splits\n",
        "Medians of fits one after the other in one process, cryptographic noise, reading the "
        f"table included; scikit-learn: `DecisionTreeClassifier(max_leaf_nodes={NODES + 1})` on "
        "single-precision numbers, categories as codes. The splits are those of the tree that is "
        "returned: scikit-learn's ends when all leaves are pure, and of ours those are gone whose "
        "leaves have the same label.\n",
        table(head, lines),
    ], ratios


def verdicts(results: Results, parts: dict[str, Any]) -> list[str]:
    """Return what was to be reached, and whether it is."""
    lines = []
    sets = results.sets("figure 2")

    def judge(pairs: Iterable[tuple[str, str, str]]) -> tuple[str, str]:
        asked = list(pairs)
        found = [(one, other, contest(results, name, one, other)) for name, one, other in asked]
        known = [(one, other, each) for one, other, each in found if each]
        ahead = [each for _, _, each in known if each.average.above]
        points = [gap for _, _, each in known for gap in each.gaps.values()]
        fails = [
            f"{each.name} against {LABELS[other]} ({each.average.signed})"
            for _, other, each in known
            if not each.average.above
        ]
        lost = sum(len(each.behind) for _, _, each in known)
        words = (
            f"on average over alpha ahead by more than two standard errors in {len(ahead)} of "
            f"{len(known)} comparisons; by alpha ahead or equal in "
            f"{sum(g.mean >= 0 for g in points)} of {len(points)}, behind by more than two "
            f"standard errors in {lost}"
        )
        once = sorted(
            {name for (name, _, _), (_, _, each) in zip(asked, found, strict=True) if not each}
        )
        if once:
            words += f" (sets with one run left out: {', '.join(once)})"
        if fails:
            words += "; not clearly ahead: " + ", ".join(fails)
        return words, "yes" if known and not fails else "**no**"

    if sets:
        papers = ("local-rnm", "noisy-counts")
        words, verdict = judge((name, "single", other) for name in sets for other in papers)
        lines.append(["single machine above LocalRNM and NoisyCounts", words, verdict])
        pairs = [(name, "local-rnm", "noisy-counts") for name in LOCAL_AHEAD if name in sets]
        words, verdict = judge(pairs)
        lines.append(["LocalRNM above NoisyCounts on adult, bank, credit, skin", words, verdict])
    for (group, budget), pairs_found in parts["budgets"].items():
        gaps = [gap for _, gap in pairs_found]
        ahead, behind = (sum(sign * gap.mean > 0 for gap in gaps) for sign in (1, -1))
        by_set = {
            name: 100 * float(np.mean([gap.mean for owner, gap in pairs_found if owner == name]))
            for name, _ in pairs_found
        }
        meant = {
            ("valid", "uniform"): "ours, equal over the automatic depth",
            ("valid", "uniform-64"): "ours, a 64th per level",
            ("published", "uniform"): "published, 1/512 per level as in the paper",
        }[group, budget]
        lines.append(
            [f"decay above uniform: {meant}",
             f"ahead in {ahead}, behind in {behind} of {len(gaps)} combinations of set, model and "
             "alpha; points on average: "
             + ", ".join(f"{name} {mean:+.2f}" for name, mean in by_set.items())
             + f" (runs of each: {', '.join(map(str, sorted({gap.runs for gap in gaps})))})",
             "yes" if min(by_set.values()) > 0 else "**no**"]
        )  # fmt: skip
    last = parts["last"]
    for kind, chosen in (
        ("valid", [each for each in last if each[1] != "published"]),
        ("published", [each for each in last if each[1] == "published"]),
    ):
        far = [each for each in chosen if each[2].mean > 0.01]
        over = [each for each in chosen if each[2].mean < -0.01]
        worst = max(chosen, key=lambda each: each[2].mean, default=None)
        if worst:
            words = (
                f"nearer at alpha {last_alpha(worst[1]):g} than at 0.125 in "
                f"{sum(abs(end.mean) < abs(start.mean) for _, _, end, start in chosen)} of "
                f"{len(chosen)} combinations of set and model; there more than one point below it "
                f"in {len(far)}"
                + (f" ({', '.join(sorted({each[0] for each in far}))})" if far else "")
                + f"; lowest: {worst[0]}, {LABELS[worst[1]]} "
                f"({-100 * worst[2].mean:+.2f} points)"
            )
            if over:
                words += f"; more than one point above it in {len(over)}: " + ", ".join(
                    sorted({each[0] for each in over})
                )
            aim = f"convergence to the tree without noise ({kind})"
            lines.append([aim, words, "yes" if not far else "**no**"])
    found = parts["secure"]
    if found.points:
        lines.append(
            ["secure sum within one standard error of the single machine at every alpha, given "
             "the same noise",
             f"{within(found)}; {found.same} of {found.fits} trees alike (sets with fewer than "
             f"three splits left out: {', '.join(found.left_out) or 'none'})",
             "yes" if found.near == found.points else "**no**"],
        )  # fmt: skip
    contests = [contest(results, name, "secure-sum", OWN) for name in results.sets("figure 2")]
    averages = [(each.name, each.average) for each in contests if each]
    if averages:
        chance = min(1.0, len(averages) * min(average.chance for _, average in averages))
        lines.append(
            ["secure sum no farther from a single machine with noise of its own than by chance",
             "on average over alpha: "
             + ", ".join(f"{name} {average.signed}" for name, average in averages)
             + f" points; smallest p of these {len(averages)} t-tests, times their number: "
             f"{chance:.2f}",
             "yes" if chance > 0.01 else "**no**"],
        )  # fmt: skip
    tests, equal, seeded = parts["processes"]
    if tests:
        good = min(tests) > 0.01 and equal == seeded
        lines.append(
            ["the same trees over four processes",
             f"chi-square p {', '.join(f'{p:.2f}' for p in tests)}; {equal} of {seeded} seeded "
             "trees equal",
             "yes" if good else "**no**"]
        )  # fmt: skip
    ratios = parts["ratios"]
    if ratios:
        worst_wall, worst_cpu = (max(ratio[place] for ratio in ratios) for place in (0, 1))
        lines.append(
            [f"{SPEED_SET} with {NODES} splits faster than scikit-learn",
             f"at most {worst_wall:.2f} of its seconds, {worst_cpu:.2f} of its CPU seconds",
             "yes" if worst_wall < 1 else "**no**"]
        )  # fmt: skip
    return ["## What was to be reached\n", table(["", "found", "reached"], lines)]


def missing(results: Results) -> list[str]:
    lines = ["- Avazu CTR, the paper's seventh set, is not in the catalogue"]
    for part, words in (
        ("figure 2", "Figures 2 and 5"),
        ("figure 1", "Figures 1 and 4"),
        ("figure 3", "Figures 3 and 6"),
        ("parties", "Other parties"),
    ):
        gone = [name for name in SETS if name not in results.sets(part)]
        if gone:
            lines.append(f"- {words}: not run on {', '.join(gone)}")
    lines += [
        f"- Figure 3: sizes {', '.join(f'{size:g}' for size in SIZES)} and 1; the text names 0.01 "
        "and 0.05 only",
        "- the paper has 100 runs per point; how many there are here is said at each table",
        "- published is on a single machine only: the parties do not answer its question",
    ]
    return ["## Not repeated\n", *lines, ""]


def write_report(path: Path, rows: Rows, notes: Sequence[str]) -> None:
    results = Results(rows)
    used = sorted({row.version for row in rows.values()})
    near, own = (nearness(results, "secure-sum", model) for model in ("single", OWN))
    converged, last = convergence(results)
    decay, kinds = budgets(results)
    spread, tests, equal, seeded = processes(results)
    timed, ratios = speed(results)
    parts = {
        "secure": near,
        "last": last,
        "budgets": kinds,
        "processes": (tests, equal, seeded),
        "ratios": ratios,
    }
    text = [
        "# DP-TopDown (Wang, Dick and Balcan), repeated\n",
        f"Command: `{command().replace('benchmarks/', 'benchmarks/papers/', 1)}`\n",
        f"- {machine()}, {versions('numpy', 'pandas')}",
        f"- measured with {', '.join(used)} (and what was changed since that commit)",
        "- the parts may be from several commands (`--parts`, `--sets`): lines of the CSV from "
        "earlier ones with the same version number are kept, and it says after which commit of the "
        "library each was measured",
        "- K. Wang, T. Dick and M.-F. Balcan, Scalable and Provably Accurate Algorithms for "
        "Differentially Private Distributed Decision Tree Learning, section 4 and the appendix; "
        "about the paper this page says only what its text prints",
        f"- as in the paper: {NODES} splits, evenly spaced cuts (10 of a number; skin 32; mnist "
        "three of the mean of each 4 x 4 block, at 42.5, 127.5 and 212.5), one value of a category "
        "against the others, half of the budget for labels, decay (published: half of the level "
        "above, as in the paper; ours: seven eighths, chosen on these sets); nine rows train, one "
        f"tests, at random (mnist: its own sets); {PARTIES} parties, rows divided uniformly at "
        "random; the number of training rows is public",
        "- single machine, and the three protocols: "
        f"`TopDownClassifier(max_nodes={NODES}, n_thresholds=..., n_rows=...)`, else the defaults: "
        "Gini and permute-and-flip where the paper has entropy and report noisy max. Next to it: "
        "`criterion=entropy, split=rnm`; and published: the same with `calibration=published`",
        "- published adds the paper's noise; its true epsilon is what the ledger charges "
        "(docs/proofs/topdown.md). The others cost alpha, for a record of one party",
        "- NoisyCounts, LocalRNM and secure sum: `FederatedTable(parties, protocol=...)`. Our "
        "NoisyCounts shares the budget among one histogram per feature, the paper's among one per "
        "candidate, which is more noise. Secure sum chooses splits by the counts of all rows with "
        "one noise (docs/proofs/federation.md), by up to 1,024 chords of Gini's curve",
        f"- adult: the {ADULT_ROWS:,} rows of adult.data without missing values (the paper has "
        "32,561); bounds of numbers are the catalogue's public ones",
        f"- training accuracy is measured on at most {CHECKED:,} training rows; scikit-learn has "
        f"one-hot columns and `max_leaf_nodes={NODES + 1}`",
        "- ± is one standard error over the splits, taken as independent; models are compared "
        "within the same split. In Figure 2, the single machine has the noise that the parties of "
        "the secure sum made together; elsewhere its own",
        "- fits are seeded, as the data are public, but for those that are timed and those in "
        "several processes",
        *(f"- {note}" for note in notes),
        "",
        *verdicts(results, parts),
        *figure_2(results),
        *orderings(results),
        *secure_sum(near, own),
        *divisions(results),
        *converged,
        *figure_1(results),
        *decay,
        *figure_3(results),
        *figure_5(results),
        *spread,
        *timed,
        *missing(results),
        f"![Figures 1 to 3 and 5]({NAME}.png)\n",
    ]
    path.write_text("\n".join(text), encoding="utf-8")


#: The secure sum lies on the single machine: both are seen.
LINES = dict.fromkeys(PRIVATE, "-") | {"secure-sum": "--"}
COLOURS = dict(zip(PRIVATE, ("C0", "C9", "C1", "C2", "C4", "C3"), strict=True))


def draw(path: Path, rows: Rows) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    results = Results(rows)

    def curve(panel: Any, points: Sequence[tuple[float, Number | None]], **style: Any) -> None:
        known = [(x, found) for x, found in points if found]
        if known:
            panel.errorbar(
                [x for x, _ in known],
                [found.mean for _, found in known],
                [0.0 if math.isnan(found.error) else found.error for _, found in known],
                marker="o",
                markersize=2.5,
                linewidth=1.1,
                **style,
            )

    picture, grid = plt.subplots(5, 3, figsize=(13, 18))
    for panel, name in zip(grid[:2].flat, SETS, strict=True):
        for model in PRIVATE:
            points = [(a, results.mean(("figure 2", name, model, a, ""))) for a in ALPHAS]
            curve(panel, points, color=COLOURS[model], label=LABELS[model], linestyle=LINES[model])
        for model, line in (("no-noise", "-"), ("cart", ":")):
            end = results.mean(("figure 2", name, model, NO_NOISE, ""))
            if end:
                panel.axhline(
                    end.mean, color="0.3", linestyle=line, linewidth=1, label=LABELS[model]
                )
        panel.set_title(f"Figure 2: {name}, test accuracy", fontsize=9)
    for panel, (name, field) in zip(
        grid[2], (("adult", "depth"), ("adult", "splits"), ("skin", "depth")), strict=True
    ):
        for model in PRIVATE:
            points = [(a, results.mean(("figure 2", name, model, a, ""), field)) for a in ALPHAS]
            curve(panel, points, color=COLOURS[model], label=LABELS[model], linestyle=LINES[model])
        panel.set_title(f"Figure 5: {name}, {field}", fontsize=9)
    styles = {"decay": "-", "uniform": "--", "uniform-64": ":"}
    for panel, (name, alpha) in zip(
        grid[3], (("adult", 1.0), ("bank", 1.0), ("skin", 1.0)), strict=True
    ):
        for model in ("single", "published", "local-rnm", "noisy-counts"):
            for budget, line in styles.items():
                points = [
                    (f, results.mean(("figure 1", name, model, alpha, f"{budget} {f:g}")))
                    for f in FRACTIONS
                ]
                label = f"{LABELS[model]}, {budget}"
                curve(panel, points, color=COLOURS[model], linestyle=line, label=label)
        panel.set_title(f"Figures 1, 4: {name}, alpha {alpha:g}", fontsize=9)
        panel.set_xlabel("leaf_fraction", fontsize=8)
    for panel, (name, model) in zip(
        grid[4], (("bank", "single"), ("bank", "noisy-counts"), ("bank", "local-rnm")), strict=True
    ):
        for place, size in enumerate((*SIZES, 1.0)):
            points = [(a, results.mean_by_size(name, model, a, size)) for a in SIZE_ALPHAS]
            curve(panel, points, color=f"C{place}", label=f"{size:g} of the rows")
            end = results.mean_by_size(name, "no-noise", NO_NOISE, size)
            if end:
                panel.axhline(end.mean, color=f"C{place}", linewidth=0.8)
        panel.set_title(f"Figure 3: {name}, {LABELS[model]} (lines: no noise)", fontsize=9)
    for row, panels in enumerate(grid):
        for panel in panels:
            panel.tick_params(labelsize=7)
            if row != 3:
                panel.set_xscale("log", base=2)
                panel.set_xlabel("alpha", fontsize=8)
            if panel.get_legend_handles_labels()[0]:
                panel.legend(fontsize=6)
    picture.tight_layout()
    picture.savefig(path, dpi=80)
    plt.close(picture)


# The command


def main() -> None:
    here = Path(__file__).resolve()
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--runs2", type=int, default=5, help="splits of Figures 2 and 5")
    parser.add_argument("--runs1", type=int, default=2, help="splits of Figures 1 and 4")
    parser.add_argument("--runs3", type=int, default=1, help="splits of Figures 3 and 6")
    parser.add_argument("--runs-parties", type=int, default=3, help="splits of other parties")
    parser.add_argument("--runs-large", type=int, default=1, help="of kddcup99 and mnist")
    parser.add_argument("--runs-large-others", type=int, default=0, help="of their other figures")
    parser.add_argument("--runs-speed", type=int, default=3, help="timed fits of each kind")
    parser.add_argument("--fits", type=int, default=100, help="fits in one process, and in four")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=here.parents[1] / "results")
    parser.add_argument("--fresh", action="store_true", help="run again what the CSV has")
    parser.add_argument(
        "--again",
        nargs="+",
        choices=tuple(LABELS),
        default=(),
        help="run again what the CSV has of these models from other commits of the library",
    )
    args = parser.parse_args()
    notes = []
    args.out.mkdir(parents=True, exist_ok=True)
    rows = read_rows(args.out / f"{NAME}.csv")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` ends in a report as well
    start = time.perf_counter()
    try:
        collect(args, rows)
    except KeyboardInterrupt:
        notes.append("the command was interrupted")
    print(f"{time.perf_counter() - start:.0f} s in all")
    if rows:
        write_report(args.out / f"{NAME}.md", rows, notes)
        draw(args.out / f"{NAME}.png", rows)


if __name__ == "__main__":
    main()
