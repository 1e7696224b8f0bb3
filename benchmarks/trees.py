"""Measure how fast whole trees and boosting fit: real sets, wide sets, many rows, first fits.

* small and large: ``PrivateTreeClassifier(max_depth=3)`` on adult and covertype, and in the same
  run the tree by its own rule, boosting with and without delta, DiPriMe's forest, scikit-learn's
  HistGradientBoosting and forest and, where it can be imported (see ``_peers.py`` and
  ``--peer-python``), DP-EBM;
* wide: sets with tens to hundreds of features, where the tree limits its own work by public rules;
* many rows: 12 mixed features of an invented table at 1e4 to 1e7 rows;
* the first fit of a fresh process, with an empty and with a filled cache of compiled loops.

Every measurement runs in a process of its own. But for the last kind, a warm-up fit comes first, so
that no time contains compilation. Peak memory is the high-water mark of the first measured fit
minus what the process held just before it. Noise is cryptographic, as in use.

Run ``python benchmarks/trees.py``; it writes ``trees.csv``, ``trees.md`` and ``trees.png``. Some of
it (``--parts real first``) goes to files whose names say which parts.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from _catalogue import FOLDER, load, schema_of
from _peers import ask
from _report import command, machine, table, versions
from speed import CORES, best, exponents, peak_memory, reset_peak, say, timed, trim_memory

EPSILON, DELTA = 1.0, 1e-6
LEARNERS = {
    "tree-1": "PrivateTreeClassifier(max_depth=1)",
    "tree-3": "PrivateTreeClassifier(max_depth=3)",
    "tree": "PrivateTreeClassifier()",
    "boosting-5": f"PrivateBoostingClassifier(delta={DELTA:g}, n_rounds=5)",
    "boosting": f"PrivateBoostingClassifier(delta={DELTA:g})",
    "boosting_pure": "PrivateBoostingClassifier()",
    "hist": "scikit-learn: HistGradientBoostingClassifier(), not private",
    "additive": f"PrivateAdditiveClassifier(delta={DELTA:g})",
    "diprime": "DiPriMeForestClassifier(n_estimators=100, max_depth=5)",
    "forest": "scikit-learn: RandomForestClassifier(100, max_depth=5, n_jobs=2), not private",
    "dpebm": f"DP-EBM, delta {DELTA:g}, defaults",
}
#: Fits on all rows of a set, and how many wall seconds they may take on two cores.
REAL = {
    ("adult", "tree-3"): 0.5,
    ("covertype", "tree-3"): 1.0,
    ("adult", "tree"): None,
    ("adult", "boosting"): None,
    ("adult", "boosting_pure"): None,
    ("adult", "hist"): None,
    ("adult", "diprime"): None,
    ("adult", "forest"): None,
}
#: How many times the seconds of a learner of ours another one is to take on this set.
RIVAL_SET = "adult"
RIVAL_BARS = {
    ("dpebm", "tree-3"): 5.0,
    ("dpebm", "boosting"): 2.0,
    ("dpebm", "boosting_pure"): 2.0,
    ("hist", "tree"): 1.0,
    ("forest", "diprime"): 1.0,
}
#: Compilation, once per installation, may take this many seconds.
COMPILATION_BAR = 5.0
WIDE = ["kddcup99", "mnist", "Bioresponse", "diabetes130us-full"]
SCALED = ["tree-1", "tree-3", "tree", "boosting-5"]
#: Boosting is not measured on more rows than this.
BOOSTING_ROWS = 1_000_000
NUMERIC, CATEGORIES = 8, (2, 5, 9, 16)
FEATURES = NUMERIC + len(CATEGORIES)
#: Rows of the warm-up, and of a second one for what is only compiled for large tables.
WARM_ROWS, LARGE_WARM_ROWS = 5_000, 400_000
FIRST = ["tree", "boosting", "additive"]
PARTS = ["real", "wide", "rows", "first"]


# The invented table


def make_table(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return normal and skewed numbers and text categories (dictionaries), and two classes."""
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {}
    for j in range(NUMERIC):
        columns[f"n{j}"] = rng.normal(50, 18, rows) if j % 2 else rng.exponential(22, rows)
    codes = [rng.integers(0, size, rows) for size in CATEGORIES]
    for j, (size, mine) in enumerate(zip(CATEGORIES, codes, strict=True)):
        columns[f"c{j}"] = pd.Categorical.from_codes(mine, [f"v{code}" for code in range(size)])
    score = 1.5 * (columns["n1"] > 55) - 0.04 * (columns["n0"] - 22) + 0.5 * (codes[2] > 4) - 1.5
    score += 1.2 * (columns["n3"] > 40) * (codes[0] == 1)
    y = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return pd.DataFrame(columns, copy=False), y


def table_schema() -> Any:
    from privet import Categorical, Numeric, Schema

    features: dict[str, Any] = {f"n{j}": Numeric(0, 100) for j in range(NUMERIC)}
    for j, size in enumerate(CATEGORIES):
        features[f"c{j}"] = Categorical([f"v{code}" for code in range(size)])
    return Schema(features, target="y", classes=[0, 1])


# The learners


def make(key: str, schema: Any, n_rows: int) -> Any:
    import privet

    common: dict[str, Any] = {"epsilon": EPSILON, "schema": schema}
    if key == "additive":
        return privet.PrivateAdditiveClassifier(delta=DELTA, **common)
    common["n_rows"] = n_rows
    name, _, number = key.partition("-")
    if key == "diprime":
        return privet.DiPriMeForestClassifier(n_estimators=100, max_depth=5, **common)
    if key == "boosting_pure":
        return privet.PrivateBoostingClassifier(**common)
    if name == "boosting":
        rounds = int(number) if number else "auto"
        return privet.PrivateBoostingClassifier(delta=DELTA, n_rounds=rounds, **common)
    depth = int(number) if number else "auto"
    return privet.PrivateTreeClassifier(max_depth=depth, **common)


def plan_of(model: Any) -> str:
    """Return what a fitted model was made by: the tree's blocks, or the rounds."""
    from privet import Budget, Tree
    from privet.learners import whole_trees

    schema, predictor = model.schema_, model.predictor_
    if not isinstance(predictor, Tree):
        return f"{len(predictor.trees)} trees of depth <= {max(t.depth for t in predictor.trees)}"
    budget = Budget(EPSILON)
    depth = None if model.max_depth == "auto" else model.max_depth
    plan = whole_trees.make_plan(schema, model.n_rows, budget.limit, depth, None, budget)
    blocks = []
    for block in plan.blocks:
        how = "bought" if block.bought else "spread"
        limit = "" if block.width is None else f" ({block.width} {how} features above)"
        blocks.append(f"{block.depth}{limit}")
    return " + ".join(blocks) + (", quantiles" if plan.quantiles else "")


def measure_peer(folder: str, name: str, key: str, repeats: int) -> dict[str, Any]:
    """Fit a learner of scikit-learn on the same frame.

    Boosting gets categories as such, of which it takes at most 255; the forest gets their numbers.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    data = load(folder, name)
    if key == "hist":
        model = HistGradientBoostingClassifier(categorical_features="from_dtype")
    else:
        model = RandomForestClassifier(100, max_depth=5, n_jobs=2)

    def fit() -> None:
        X = data.X
        if key == "forest":
            X = X.apply(lambda column: column.cat.codes if hasattr(column, "cat") else column)
        model.fit(X, data.y)

    times = [timed(fit)[0] for _ in range(repeats + 1)][1:]
    rows, features = data.X.shape
    plan = f"{model.n_iter_} rounds" if key == "hist" else "100 trees of depth <= 5"
    return {"times": best(times), "rows": rows, "features": features, "plan": plan}


# One measurement, in a process of its own


def measure_set(folder: str, name: str, key: str, held_out: int, repeats: int) -> dict[str, Any]:
    """Fit a real set, after a warm-up that is a whole fit; hold out every n-th row of a shuffle."""
    data = load(folder, name)
    test = np.zeros(len(data.y), dtype=bool)
    if held_out:
        test[np.random.default_rng(0).permutation(len(test))[::held_out]] = True
    X, y = data.X[~test], data.y[~test]
    model = make(key, schema_of(data), len(y))
    times = [timed(lambda: model.fit(X, y))[0] for _ in range(repeats + 1)][1:]
    found = {"times": best(times), "rows": len(y), "features": X.shape[1], "plan": plan_of(model)}
    if held_out:
        found["accuracy"] = float(np.mean(model.predict(data.X[test]) == data.y[test]))
    return found


def measure_table(rows: int, key: str, repeats: int) -> dict[str, Any]:
    """Fit the invented table, after one or two warm-ups on smaller ones."""
    schema = table_schema()
    make(key, schema, WARM_ROWS).fit(*make_table(WARM_ROWS))
    if rows > LARGE_WARM_ROWS:
        make("tree-1", schema, LARGE_WARM_ROWS).fit(*make_table(LARGE_WARM_ROWS))
    X, y = make_table(rows)
    model = make(key, schema, rows)
    trim_memory()
    before = psutil.Process().memory_info().rss
    reset_peak()
    times = [timed(lambda: model.fit(X, y))[0]]
    memory = peak_memory() - before
    times += [timed(lambda: model.fit(X, y))[0] for _ in range(repeats - 1)]
    return {
        "times": best(times),
        "rows": rows,
        "features": FEATURES,
        "memory": memory,
        "plan": plan_of(model),
    }


def measure_first(key: str) -> dict[str, Any]:
    """Fit twice in a fresh process; the caller points the cache to an empty or a filled folder."""
    X, y = make_table(WARM_ROWS)
    schema = table_schema()
    first, second = (timed(lambda: make(key, schema, WARM_ROWS).fit(X, y))[0] for _ in range(2))
    return {"first": first, "second": second}


MEASUREMENTS = {
    "set": measure_set,
    "peer": measure_peer,
    "table": measure_table,
    "first": measure_first,
}


def in_process(*task: Any, cache: str | None = None) -> Any:
    environment = dict(os.environ) | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    call = [sys.executable, __file__, "--measure", json.dumps(task)]
    done = subprocess.run(call, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# The run

Results = list[dict[str, Any]]


def run_real(args: argparse.Namespace) -> tuple[Results, list[str]]:
    """Measure all in turn, several times: a machine may be faster in one minute than the next."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    (version,) = ask(args.peer_python, "_peers", "probe", packages=["interpret-core"])
    request = {"folder": str(args.data), "name": RIVAL_SET, "epsilon": EPSILON, "delta": DELTA}
    for turn in range(args.turns):
        for name, key in [*REAL, (RIVAL_SET, "dpebm")]:
            say(f"turn {turn + 1}, {name}: {LEARNERS[key]}")
            if key == "dpebm" and version is None:
                continue
            if key == "dpebm":
                times = ask(
                    args.peer_python, "_peers", "time_dp_ebm", repeats=args.repeats, **request
                )
                size = found[next(iter(REAL))]
                got = {n: size[n] for n in ("rows", "features")} | {"times": best(list(times))}
            elif key in ("hist", "forest"):
                got = in_process("peer", str(args.data), name, key, args.repeats)
            else:
                got = in_process("set", str(args.data), name, key, 0, args.repeats)
            mine = found.setdefault(
                (name, key), {"part": "real", "set": name, "learner": key, **got, "turns": []}
            )
            mine["turns"].append(got["times"])
            mine["times"] = best(mine["turns"])
    what = "not run, interpret-core cannot be imported"
    if version is not None:
        what = f"interpret-core {version}, the same frame as ours"
    return list(found.values()), [f"DP-EBM: {what}"]


def run_wide(args: argparse.Namespace) -> Results:
    results = []
    for name in args.wide:
        say(f"{name}: {LEARNERS['tree']}")
        got = in_process("set", str(args.data), name, "tree", 5, min(args.repeats, 2))
        results.append({"part": "wide", "set": name, "learner": "tree", **got})
    return results


def run_scaling(args: argparse.Namespace) -> Results:
    results = []
    for rows in sorted(int(rows) for rows in args.rows):
        repeats = args.repeats if rows < 1e6 else min(args.repeats, 2) if rows < 1e7 else 1
        for key in SCALED:
            if key.startswith("boosting") and rows > BOOSTING_ROWS:
                continue
            say(f"{rows:>10} rows: {LEARNERS[key]}")
            got = in_process("table", rows, key, repeats)
            results.append({"part": "rows", "set": "invented", "learner": key, **got})
    return results


def run_first() -> Results:
    results = []
    with tempfile.TemporaryDirectory() as cache:
        for key in FIRST:
            for state in ("empty cache", "filled cache"):
                say(f"first fit, {state}: {LEARNERS[key]}")
                where = str(Path(cache) / key)
                got = in_process("first", key, cache=where)
                for which in ("first", "second"):
                    what = {"part": f"{which} fit, {state}", "set": "invented", "learner": key}
                    size = {"rows": WARM_ROWS, "features": FEATURES}
                    results.append(what | size | {"times": got[which]})
    return results


# The report


def write_csv(results: Results, path: Path) -> None:
    names = ["part", "set", "learner", "rows", "features", "wall_s", "cpu_s", "peak_bytes"]
    names += ["accuracy", "plan"]
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, names, lineterminator="\n", restval="", extrasaction="ignore")
        out.writeheader()
        for result in results:
            wall, cpu = result["times"]
            numbers = {"wall_s": f"{wall:.4g}", "cpu_s": f"{cpu:.4g}"}
            out.writerow(result | numbers | {"peak_bytes": result.get("memory", "")})


def seconds(result: dict[str, Any]) -> str:
    wall, cpu = result["times"]
    return f"{wall:.3g} ({cpu:.3g})"


def real_table(results: Results) -> str:
    lines = []
    mine = [result for result in results if result["part"] == "real"]
    for result in mine:
        limit = REAL.get((result["set"], result["learner"]))
        lines.append(
            [
                result["set"],
                f"{result['rows']} x {result['features']}",
                LEARNERS[result["learner"]],
                result.get("plan", ""),
                seconds(result),
                "" if limit is None else f"{limit:g}",
            ]
        )
    head = ["set", "rows x features", "", "blocks or trees", "wall s (CPU s)", "wall s may be"]
    text = table(head, lines)
    by = {result["learner"]: result for result in mine if result["set"] == RIVAL_SET}
    ratios = [
        [
            LEARNERS[ours],
            LEARNERS[theirs],
            *(times_as_long(by[theirs], by[ours], unit) for unit in (0, 1)),
            f"{bar:g}",
        ]
        for (theirs, ours), bar in RIVAL_BARS.items()
        if theirs in by and ours in by
    ]
    if ratios:
        head = ["ours", "another", "times as long, wall", "CPU", "is to be at least"]
        text += f"\nOn {RIVAL_SET}, how many times as long as ours another takes, by the smallest "
        text += "times of all turns (least and greatest of single turns):\n\n"
        text += table(head, ratios)
    return text


def times_as_long(theirs: dict[str, Any], ours: dict[str, Any], unit: int) -> str:
    """Return how many times as long another takes, in all turns and in single ones."""
    turns = [
        one[unit] / other[unit] for one, other in zip(theirs["turns"], ours["turns"], strict=True)
    ]
    whole = theirs["times"][unit] / ours["times"][unit]
    return f"{whole:.2f} ({min(turns):.2f} to {max(turns):.2f})"


def wide_table(results: Results) -> str:
    lines = [
        [
            result["set"],
            f"{result['rows']} x {result['features']}",
            result["plan"],
            seconds(result),
            f"{result['accuracy']:.3f}",
        ]
        for result in results
        if result["part"] == "wide"
    ]
    head = ["set", "rows x features", "blocks", "wall s (CPU s)", "accuracy on a held-out fifth"]
    return table(head, lines)


def scaling_tables(results: Results) -> str:
    mine = {(r["learner"], r["rows"]): r for r in results if r["part"] == "rows"}
    sizes = sorted({rows for _, rows in mine})
    head = ["", *(f"{rows:.0e} rows".replace("e+0", "e") for rows in sizes)]
    times, plans = [], []
    for key in SCALED:
        have = [rows for rows in sizes if (key, rows) in mine]
        cells, made = [], []
        for rows in sizes:
            result = mine.get((key, rows))
            if result is None:
                cells.append("not run")
                made.append("")
                continue
            wall, cpu = result["times"]
            per_cell = result["memory"] / (rows * FEATURES)
            cells.append(f"{wall:.3g} ({cpu:.3g}; {per_cell:.1f})")
            made.append(result["plan"])
        slopes = [exponents(have, [mine[key, n]["times"][unit] for n in have]) for unit in (0, 1)]
        times.append([LEARNERS[key], *cells, *slopes])
        plans.append([LEARNERS[key], *made])
    return "\n".join(
        [
            "Wall s (CPU s; peak bytes per cell), and exponents through all sizes; between the two "
            "largest:\n",
            table([*head, "exponents of wall", "exponents of CPU"], times),
            "How the models were made (an exponent between sizes with different blocks says "
            "nothing about the loops):\n",
            table(head, plans),
        ]
    )


def first_table(results: Results) -> str:
    states = [f"{which} fit, {state}" for state in ("empty cache", "filled cache")
              for which in ("first", "second")]  # fmt: skip
    by = {(result["learner"], result["part"]): result for result in results}
    lines = []
    for key in FIRST:
        found = [by[key, state] for state in states]
        lines.append([LEARNERS[key], *map(seconds, found)])
        empty, filled = found[0]["times"], found[2]["times"]
        wall, cpu = (max(one - other, 0.0) for one, other in zip(empty, filled, strict=True))
        lines[-1].append(f"{wall:.1f} ({cpu:.1f})")
    last = f"compilation, once per installation (may be {COMPILATION_BAR:g})"
    return table(["wall s (CPU s)", *states, last], lines)


def write_report(results: Results, notes: list[str], path: Path) -> None:
    parts = {result["part"] for result in results}
    text = [
        "# Whole trees: speed\n",
        f"Command: `{command()}`\n",
        f"- {machine()}",
        f"- {versions('privet', 'numpy', 'numba', 'opendp', 'pandas')}",
        f"- load average when the run ended: {os.getloadavg()[0]:.1f} (this run included)",
        f"- epsilon {EPSILON:g}, `n_rows` declared, cryptographic noise; input: pandas frames, "
        "categories as dictionaries of text; reading and binning them is in the time",
        f"- up to {CORES} threads each; times are the smallest of the repeats, wall and CPU apart",
        "- memory: high-water mark of the first measured fit beyond the input, per cell of the "
        "table (at 1e4 rows it means little)",
        "- blocks: depths of the trees that are drawn whole and stacked; where the work must be "
        "limited, the number of features that the levels above a block's last may use, and "
        "whether they were bought (chosen privately) or spread evenly",
        *(f"- {note}" for note in notes),
    ]
    if "real" in parts:
        text += ["\n## Real sets\n", real_table(results)]
    if "wide" in parts:
        text += ["## Wide sets\n", wide_table(results)]
    if "rows" in parts:
        text += [
            f"## Many rows: {NUMERIC} numeric and {len(CATEGORIES)} categorical features\n",
            scaling_tables(results),
        ]
    if any(part.startswith("first") for part in parts):
        text += [
            f"## The first fit of a fresh process, {WARM_ROWS:,} rows\n",
            first_table(results),
        ]
    path.write_text("\n".join(text), encoding="utf-8")


def draw(results: Results, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for key, style in zip(SCALED, ("C9-o", "C0-o", "C0--s", "C3-^"), strict=True):
        mine = [r for r in results if r["part"] == "rows" and r["learner"] == key]
        left.loglog(
            [r["rows"] for r in mine], [r["times"][0] for r in mine], style, label=LEARNERS[key]
        )
    left.set(xlabel=f"rows (x {FEATURES} mixed features)", ylabel="wall seconds", title="Rows")
    left.legend(fontsize=8)
    left.grid(alpha=0.3)
    mine = [r for r in results if r["part"] in ("real", "wide")][::-1]
    colours = {"tree-3": "C0", "tree": "C9", "boosting": "C3", "dpebm": "C2"}
    colours |= {"boosting_pure": "C1", "hist": "C7", "diprime": "C4", "forest": "C8"}
    right.barh(
        [f"{r['set']}\n{LEARNERS[r['learner']]}" for r in mine],
        [r["times"][0] for r in mine],
        color=[colours[r["learner"]] for r in mine],
    )
    right.tick_params(axis="y", labelsize=7)
    right.set(xlabel="wall seconds", title="Sets")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="some only")
    parser.add_argument("--rows", nargs="+", type=float, default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--wide", nargs="*", default=WIDE, help="the wide sets")
    parser.add_argument("--repeats", type=int, default=3, help="fewer are made from 1e6 rows on")
    parser.add_argument("--turns", type=int, default=3, help="of all learners on real sets")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that has DP-EBM")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        what, *numbers = json.loads(args.measure)
        print(json.dumps(MEASUREMENTS[what](*numbers)))
        return
    results, notes = run_real(args) if "real" in args.parts else ([], [])
    if "wide" in args.parts:
        results += run_wide(args)
    if "rows" in args.parts:
        results += run_scaling(args)
    if "first" in args.parts:
        results += run_first()
    args.out.mkdir(parents=True, exist_ok=True)
    whole = set(args.parts) == set(PARTS)
    name = "trees" if whole else "trees-" + "-".join(args.parts)
    write_csv(results, args.out / f"{name}.csv")
    write_report(results, notes, args.out / f"{name}.md")
    if whole:
        draw(results, args.out / f"{name}.png")
    say(f"wrote {name}.csv and {name}.md" + (" and a plot" if whole else ""))


if __name__ == "__main__":
    main()
