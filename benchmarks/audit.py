"""Check what the books say against what can be told from the models: ours, peers', published ones.

* exact: every case of ``privet.audit.catalogue`` (estimators, and questions by themselves), on all
  neighbouring tables of a small universe;
* sample: every estimator of ours at its defaults, fitted many times with and without one record;
* peers, where they can be imported (see ``_peers.py`` and ``--peer-python``): diffprivlib's
  ``DecisionTreeClassifier`` and ``RandomForestClassifier`` and interpret's
  ``DPExplainableBoostingClassifier``, fitted on the same tables and judged by the same bound;
* published: calibrations as their papers print them (``privet.audit.published``).

Run ``python benchmarks/audit.py``; it writes ``audit.csv``, ``audit.md`` and ``audit.png``. Parts
of the CSV that are not run again (``--parts``) stay as they are. What the fits of our models showed
goes to the folder ``--store``: a command that was interrupted goes on from there.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _catalogue import Data, one_hot
from _peers import ask, dp_ebm
from _report import command, machine, table, versions

PARTS = ["exact", "sample", "peers", "published"]
EPSILON, DELTA = 1.0, 1e-6
CONFIDENCE = 0.95
#: So much of the runs is made where fits take longest: on a table, and of a peer.
SLOWER = {"patients": 0.25, "dpebm": 0.4}
#: A case whose representative tables take more fits than this is not followed on all tables.
MOST_FITS = 700
OURS = [
    "PrivateTreeClassifier",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "DiffPC45Classifier",
    "DiffPID3Classifier",
    "SulqID3Classifier",
    "PrivaTreeClassifier",
]


class Peer(NamedTuple):
    """A model of another library."""

    label: str
    package: str
    delta: float


PEERS = {
    "tree": Peer("diffprivlib DecisionTreeClassifier", "diffprivlib", 0.0),
    "forest": Peer("diffprivlib RandomForestClassifier", "diffprivlib", 0.0),
    "forest-shuffled": Peer("diffprivlib RandomForestClassifier, shuffle=True", "diffprivlib", 0.0),
    "dpebm": Peer("interpret DPExplainableBoostingClassifier", "interpret-core", DELTA),
}


# The neighbouring tables


class Neighbours(NamedTuple):
    """Two tables: ``more`` is ``rows`` with one record at the end. The target is called y."""

    rows: pd.DataFrame
    more: pd.DataFrame
    schema: Any


TABLES = {
    "tiny": "4 records that are equal but for the target, two of each class (regressors: two at "
    "each bound); one more, of the last class (at the upper bound)",
    "in order": "20 records that are equal but for the target, of which two in turn are of each "
    "class (at each bound); one more, of the last class (at the upper bound)",
    "patients": "300 invented patients; one more, with every number at its upper bound, the last "
    "category of every feature and the last class (regressors: days in hospital, at the bound)",
}


def neighbours(name: str, *, number: bool) -> Neighbours:
    """Return a pair of tables whose target is a class or, for regressors, a number."""
    from privet import Categorical, Numeric, Schema
    from privet.datasets import PATIENTS, make_patients

    if name == "patients":
        frame = pd.DataFrame(make_patients(400, seed=1)).dropna()[:300].reset_index(drop=True)
        target = "days_in_hospital" if number else "readmitted"
        features = {key: kind for key, kind in PATIENTS.features.items() if key != target}
        rows = frame[list(features)].assign(y=frame[target])
        about: dict[str, Any] = {"bounds": (0, 30)} if number else {"classes": PATIENTS.classes}
    else:
        features = {"a": Categorical(["u", "v"]), "x": Numeric(0, 1, bins=2)}
        values = [0.0, 1.0] if number else ["no", "yes"]
        targets = values * 2 if name == "tiny" else [value for value in values for _ in "12"] * 5
        rows = pd.DataFrame({"a": "v", "x": 1.0, "y": targets})
        about = {"bounds": (0, 1)} if number else {"classes": values}
    schema = Schema(features, target="y", **about)
    record = {
        key: float(kind.high) if isinstance(kind, Numeric) else kind.values[-1]
        for key, kind in features.items()
    }
    record["y"] = float(schema.bounds[1]) if number else schema.classes[-1]
    return Neighbours(rows, pd.concat([rows, pd.DataFrame([record])], ignore_index=True), schema)


# The results


@dataclass
class Row:
    """One line of the CSV. ``claimed`` and ``found`` are rho where ``measure`` says so."""

    part: str
    name: str
    options: str
    tables: str
    measure: str
    asked: float
    claimed: float
    delta: float
    found: float
    holds: bool
    #: Exact: whether all outcomes were followed, or some paths.
    exhaustive: bool | None
    #: Sample: what this number of runs could have shown.
    possible: float | None
    pairs: int | None
    fits: int | None
    #: Not a number if some of the fits were those of an earlier command.
    seconds: float
    #: Exact: what no private learner does. Sample: the event, and how often it happened.
    remark: str
    version: str
    command: str

    @property
    def ratio(self) -> float:
        """How many times the claim was found."""
        return self.found / self.claimed


Rows = list[Row]


def read_rows(path: Path) -> Rows:
    if not path.exists():
        return []
    readers: dict[str, Callable[[str], Any]] = {
        "float": float, "int": int, "bool": lambda cell: cell == "True", "str": str,
    }  # fmt: skip
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            cells = {}
            for field in fields(Row):
                kind, _, optional = str(field.type).partition(" | ")
                cell = line[field.name]
                cells[field.name] = None if optional and not cell else readers[kind](cell)
            rows.append(Row(**cells))
    return rows


def write_rows(path: Path, rows: Rows) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        out.writeheader()
        for row in sorted(rows, key=order):
            out.writerow(
                {
                    key: f"{cell:.9g}" if isinstance(cell, float) else cell
                    for key, cell in asdict(row).items()
                }
            )
    partial.replace(path)


def order(row: Row) -> tuple[int, int, int]:
    tables = list(TABLES).index(row.tables) if row.tables in TABLES else 0
    return PARTS.index(row.part), tables, OURS.index(row.name) if row.name in OURS else 0


# The parts


def run_exact(args: argparse.Namespace) -> Iterator[Row]:
    from privet.audit.catalogue import cases

    for case in cases(EPSILON):
        name = type(case.estimator).__name__
        if (args.only and name not in args.only) or (name, case.options) in args.known:
            continue
        tables, verdict = "representatives, 2", case.short() if args.records > 1 else None
        if verdict is None or verdict.runs <= MOST_FITS:
            tables = f"all, {args.records}"
            verdict = case.audit(most_records=args.records, n_jobs=args.jobs)
        yield Row(
            part="exact",
            name=name,
            options=case.options,
            tables=tables,
            measure="rho" if verdict.claimed.accountant == "zCDP" else "epsilon",
            asked=float(case.estimator.epsilon),
            claimed=verdict.claim,
            delta=verdict.claimed.delta,
            found=verdict.found,
            holds=verdict.holds,
            exhaustive=verdict.exhaustive,
            possible=None,
            pairs=verdict.pairs,
            fits=verdict.runs,
            seconds=verdict.seconds,
            remark="; ".join(verdict.remarks),
            version=versions("privet"),
            command=command(),
        )


def run_sample(args: argparse.Namespace) -> Iterator[Row]:
    import privet
    from privet.audit.sample import audit

    for name in TABLES:
        for kind in args.only or OURS:
            both = neighbours(name, number=kind.endswith("Regressor"))
            estimator = getattr(privet, kind)(EPSILON, schema=both.schema)
            store = args.store / f"{kind} {name}.jsonl"
            store.parent.mkdir(parents=True, exist_ok=True)
            if args.fresh:
                store.unlink(missing_ok=True)
            resumed = store.exists()
            start = time.perf_counter()
            finding = audit(
                estimator,
                (both.rows, None),
                (both.more, None),
                runs=share(args.runs, name),
                confidence=CONFIDENCE,
                n_jobs=args.jobs,
                store=store,
                progress=tell(f"{kind}, {name}"),
            )
            seconds = math.nan if resumed else time.perf_counter() - start
            yield judged("sample", kind, name, finding, seconds, versions("privet"))


def run_peers(args: argparse.Namespace) -> Iterator[Row]:
    from privet.audit.sample import lower_bound

    packages = sorted({peer.package for peer in PEERS.values()})
    found = dict(
        zip(packages, ask(args.peer_python, "_peers", "probe", packages=packages), strict=True)
    )
    for package in packages:
        if found[package] is None:
            say(f"not run: what needs {package}, which cannot be imported (see --peer-python)")
    for name in TABLES:
        both = neighbours(name, number=False)
        request = {
            "sides": [side.to_dict("list") for side in (both.rows, both.more)],
            "bounds": {k: (f.low, f.high) for k, f in both.schema.features.items()
                       if hasattr(f, "low")},
            "categories": {k: list(f.values) for k, f in both.schema.features.items()
                           if hasattr(f, "values")},
            "classes": list(both.schema.classes),
        }  # fmt: skip
        for key, peer in PEERS.items():
            if found[peer.package] is None:
                continue
            runs = share(args.peer_runs, name, key)
            start = time.perf_counter()
            seen: tuple[list[Any], list[Any]] = ([], [])
            progress = tell(f"{peer.label}, {name}")
            for run in ask(
                args.peer_python, "audit", "observe_peer", key=key, runs=runs, **request
            ):
                for side, numbers in zip(seen, run, strict=True):
                    side.append(numbers)
                progress(len(seen[0]), runs)
            if len(seen[0]) < runs:
                say(f"not run: {peer.label} on {name} (see above)")
                continue
            names = list(dict.fromkeys(n for side in seen for run in side for n in run))
            one, other = ([[run.get(n, math.nan) for n in names] for run in side] for side in seen)
            finding = lower_bound(one, other, delta=peer.delta, confidence=CONFIDENCE, names=names)
            version = f"{peer.package} {found[peer.package]}"
            seconds = time.perf_counter() - start
            yield judged("peers", peer.label, name, finding, seconds, version)


def run_published(args: argparse.Namespace) -> Iterator[Row]:
    from privet.audit.published import counterexamples

    del args
    examples = iter(counterexamples())
    while True:
        start = time.perf_counter()
        example = next(examples, None)
        if example is None:
            return
        yield Row(
            part="published",
            name=example.name,
            options="",
            tables=example.tables,
            measure="epsilon",
            asked=example.claimed,
            claimed=example.claimed,
            delta=0.0,
            found=example.found,
            holds=example.found <= example.claimed,
            exhaustive=None,
            possible=None,
            pairs=1,
            fits=None,
            seconds=time.perf_counter() - start,
            remark="",
            version=versions("privet"),
            command=command(),
        )


def share(runs: int, *slower: str) -> int:
    return round(runs * math.prod(SLOWER.get(name, 1.0) for name in slower))


def judged(part: str, name: str, tables: str, finding: Any, seconds: float, version: str) -> Row:
    (a, b), (n, m) = finding.hits, finding.trials
    return Row(
        part=part,
        name=name,
        options="",
        tables=tables,
        measure="epsilon",
        asked=EPSILON,
        claimed=EPSILON,
        delta=finding.delta,
        found=finding.epsilon,
        holds=not finding.exceeds(EPSILON),
        exhaustive=None,
        possible=finding.best_possible,
        pairs=1,
        fits=2 * finding.runs,
        seconds=seconds,
        remark=f"{finding.event}: {a} of {n} without the record, {b} of {m} with it",
        version=version,
        command=command(),
    )


RUN = {"exact": run_exact, "sample": run_sample, "peers": run_peers, "published": run_published}


# In the peers' Python


def observe_peer(
    key: str,
    sides: list[dict[str, list[Any]]],
    bounds: dict[str, tuple[float, float]],
    categories: dict[str, list[str]],
    classes: list[str],
    runs: int,
) -> Iterator[list[dict[str, float]]]:
    """Yield per run what can be seen of a fit on either table, as named numbers."""
    tables = []
    for side in sides:
        frame = pd.DataFrame(side)
        y = np.array([classes.index(label) for label in frame.pop("y")])
        for name, values in categories.items():
            frame[name] = pd.Categorical(frame[name], values)
        tables.append(Data(frame, y, bounds, categories, len(classes), None))
    probes = [-1, 0, len(tables[1].y) // 2]  # of the longer table: the record more, and two others
    for _ in range(runs):
        yield [_look(key, data, tables[1], probes) for data in tables]


def _look(key: str, data: Data, longer: Data, probes: list[int]) -> dict[str, float]:
    if key == "dpebm":
        model, X, rows = dp_ebm(data, EPSILON, DELTA, 0.01, None), data.X, longer.X.iloc[probes]
    else:
        from diffprivlib import models

        X, bounds = one_hot(data)
        rows = one_hot(longer)[0][probes]
        given = {"epsilon": EPSILON, "bounds": bounds, "classes": np.arange(data.classes or 0)}
        if key == "tree":
            model = models.DecisionTreeClassifier(**given)
        else:
            model = models.RandomForestClassifier(shuffle=key == "forest-shuffled", **given)
    try:
        model.fit(X, data.y)
    except Exception:
        return {"the fit failed": 1.0}
    seen = {f"probability at probe {i}": row[-1] for i, row in enumerate(model.predict_proba(rows))}
    for t, tree in enumerate(getattr(model, "estimators_", [])):
        seen |= {f"vote of tree {t} at probe {i}": v for i, v in enumerate(tree.predict(rows[:2]))}
    if key == "dpebm":
        seen["intercept"] = np.ravel(model.intercept_)[0]
        seen |= {f"score {j} of probe 0": v for j, v in enumerate(model.eval_terms(rows[:1])[0])}
        seen |= {
            f"weight {b} of term {j}": weight
            for j, weights in enumerate(model.bin_weights_)
            for b, weight in enumerate(np.ravel(weights)[:8])
        }
    return {name: float(value) for name, value in seen.items()}


# The report

HOW_TO_READ = f"""
How to read the numbers:

- **Exhaustive** ("all"): the whole law of the whole fit, on every pair of neighbouring tables of a
  small universe. What was found is the exact privacy loss there, with the integers of noisy answers
  lumped together as docs/proofs/audit.md says. Where there are too many outcomes, some **paths**
  were followed: what they show is true, and others may show more. The claim is what the ledger
  says; with delta it is rho of zCDP.
- **Statistical**: a lower bound with {CONFIDENCE:.0%} confidence each, from half of the runs; the
  other half chose the event. Over many rows a few bounds may lie above the truth by chance. A bound
  above the claim refutes the claim (at that confidence); **a bound below it proves nothing**, least
  of all that one library leaks less than another. "Could show" is what this number of runs would
  have shown of a model without any privacy.
- Neighbours are a table and the same with one record more.
"""


#: Why a claim of a peer is refuted, by its source code.
CAUSES = {
    "diffprivlib": "diffprivlib: the forest gives record i of n to tree floor(i / (n / trees)) "
    "unless it shuffles, so that one record more moves others to other trees, each of which spends "
    "the whole epsilon. Replacing a record moves none; that was not measured.",
    "interpret-core": "interpret: where the noisy weights of all bins are small, the released "
    "weight (`bin_weights_`) is the exact number of records, divided by 31. Whoever holds that the "
    "number of records is public need not count this; replacing a record was not measured.",
}


def exact_table(rows: Rows) -> str:
    head = ["estimator", "options", "measure", "asked", "claimed", "found", "found / claimed",
            "outcomes", "tables", "pairs", "fits", "s", "holds"]  # fmt: skip
    lines = [
        [
            row.name,
            row.options,
            row.measure,
            f"{row.asked:g}",
            f"{row.claimed:.6g}",
            f"{row.found:.6g}",
            f"{row.ratio:.4f}",
            "all" if row.exhaustive else "paths",
            row.tables,
            str(row.pairs),
            f"{row.fits:,}",
            f"{row.seconds:.1f}",
            verdict(row),
        ]
        for row in rows
    ]
    return table(head, lines)


def sample_table(rows: Rows) -> str:
    head = [
        "",
        "tables",
        "claimed",
        "delta",
        "at least",
        "could show",
        "runs",
        "s",
        "refuted",
        "event",
    ]
    lines = [
        [
            row.name,
            row.tables,
            f"{row.claimed:g}",
            f"{row.delta:g}",
            f"{row.found:.3f}",
            f"{row.possible:.3f}",
            f"2 x {(row.fits or 0) // 2:,}",
            "" if math.isnan(row.seconds) else f"{row.seconds:.0f}",
            "no" if row.holds else "**yes**",
            row.remark,
        ]
        for row in rows
    ]
    return table(head, lines)


def published_table(rows: Rows) -> str:
    lines = [
        [
            row.name,
            f"{row.claimed:g}",
            f"{row.found:.4g}",
            f"{row.ratio:.3g}",
            f"{row.seconds:.1f}",
            row.tables,
        ]
        for row in rows
    ]
    return table(["", "claimed epsilon", "found", "times the claim", "s", "tables"], lines)


def verdict(row: Row) -> str:
    return "yes" if row.holds else "**no**" + (f" ({row.remark})" if row.remark else "")


def write_report(path: Path, rows: Rows) -> None:
    of = {part: [row for row in rows if row.part == part] for part in PARTS}
    commands = dict.fromkeys(row.command for row in rows)
    text = [
        "# Audit\n",
        "Commands: " + ", ".join(f"`{line}`" for line in commands) + "\n",
        f"- {machine()}",
        f"- measured with {', '.join(sorted({row.version for row in rows}))}; "
        f"{versions('numpy', 'opendp', 'scikit-learn')}",
        "- other jobs ran on the machine: read the seconds as orders of magnitude",
    ]
    text.append(HOW_TO_READ)
    if of["exact"]:
        broken = sum(not row.holds for row in of["exact"])
        dearer = sum(
            row.measure == "epsilon" and row.claimed > row.asked * (1 + 1e-9) for row in of["exact"]
        )
        text += [
            "## Exhaustive: our estimators and questions\n",
            f"{len(of['exact'])} cases, of which {broken} do not hold what the ledger says; in "
            f"{dearer} the ledger says more than was asked for. Where it says less, the fit needed "
            "no more.\n",
            "Tables: all that the universe has with up to this many records, each with and without "
            f"one of them; or, where the following need more than {MOST_FITS} fits, "
            "representatives of them: the empty table and one record, and that record and any "
            "two of which it is one. Values are interchangeable but for their names, so that these "
            "stand for all.\n",
            exact_table(of["exact"]),
        ]
    if of["sample"] or of["peers"]:
        text += ["## The tables of the statistical audit\n"]
        text += [f"- {name}: {what}" for name, what in TABLES.items()]
        text += [""]
    if of["sample"]:
        text += [
            "## Statistical: our estimators, default options\n",
            sample_table(of["sample"]),
        ]
    if of["peers"]:
        text += [
            "## Statistical: peers\n",
            "Their defaults, with public bounds and classes given, cryptographic or fresh "
            "randomness as they have it (`random_state=None`); one-hot categories for diffprivlib. "
            "Seen are the predictions at three rows, the votes of a forest's trees, and of DP-EBM "
            "the intercept, the scores of the added record and the first weights of bins.\n",
            sample_table(of["peers"]),
        ]
        refuted = {row.version.split()[0] for row in of["peers"] if not row.holds}
        text += [f"{CAUSES[package]}\n" for package in sorted(refuted)]
    if of["published"]:
        text += [
            "## Published calibrations that cost more than their papers say\n",
            "Exact, each on one pair of tables. Which argument fails is in docs/threat-model.md.\n",
            published_table(of["published"]),
        ]
    path.write_text("\n".join(text), encoding="utf-8")


def draw(path: Path, rows: Rows) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    exact = [row for row in rows if row.part == "exact"][::-1]
    broken = [row for row in rows if row.part == "published"][::-1]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(14, 0.19 * max(len(exact), 20) + 1.5), layout="constrained"
    )
    left.barh(
        [f"{row.name}: {row.options}" for row in exact],
        [row.ratio for row in exact],
        color=["C3" if not row.holds else "C0" if row.exhaustive else "C9" for row in exact],
    )
    left.axvline(1, color="0.2", linewidth=1)
    left.set(
        title="Ours: found / claimed by the ledger",
        xlabel="all outcomes dark, paths light",
    )
    finite = [row.ratio for row in broken if math.isfinite(row.ratio)]
    end = 3 * max([*finite, 10.0])
    right.barh(
        [row.name for row in broken],
        [min(row.ratio, end) for row in broken],
        color=["C3" if row.ratio > 1 else "C0" for row in broken],
    )
    for place, row in enumerate(broken):
        label = f"{row.ratio:.3g}" if math.isfinite(row.ratio) else "no bound"
        edge = min(row.ratio, 0.4 * end)
        right.annotate(f" {label}", (edge, place), va="center", fontsize=8)
    right.axvline(1, color="0.2", linewidth=1)
    right.set(xscale="log", xlim=(0.5, end), title="As published: found / claimed by the paper")
    for panel in (left, right):
        panel.tick_params(axis="y", labelsize=7)
        panel.margins(y=0.01)
    figure.savefig(path, dpi=110)


# The command


def say(line: str) -> None:
    print(line, flush=True)


def tell(what: str) -> Callable[[int, int], None]:
    """Return a progress that speaks at every quarter."""
    told = [0]

    def progress(done: int, all_: int) -> None:
        if 4 * done // all_ > told[0]:
            told[0] = 4 * done // all_
            say(f"  {what}: {done} of {all_} runs")

    return progress


def again(args: argparse.Namespace, row: Row) -> bool:
    """Tell whether a row of the CSV is to be measured again."""
    ours = row.part in ("exact", "sample")
    if row.part == "exact" and args.new:
        return False
    return row.part in args.parts and not (ours and args.only and row.name not in args.only)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="+", help="exact, sample: these estimators of ours")
    parser.add_argument("--new", action="store_true", help="exact: only what the CSV does not have")
    parser.add_argument("--records", type=int, choices=(1, 2), default=2, help="exact: per table")
    parser.add_argument("--runs", type=int, default=2000, help="sample: fits on each table")
    parser.add_argument("--peer-runs", type=int, default=1000, help="peers: fits on each table")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes fit")
    parser.add_argument("--store", type=Path, help="folder of the observations",
                        default=Path(tempfile.gettempdir()) / "privet-audit")  # fmt: skip
    parser.add_argument("--peer-python", default=sys.executable, help="Python that has the peers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--fresh", action="store_true", help="forget the CSV's other parts and the store"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "audit.csv"
    rows = [] if args.fresh else [row for row in read_rows(path) if not again(args, row)]
    args.known = {(row.name, row.options) for row in rows if row.part == "exact"}
    for part in args.parts:
        for row in RUN[part](args):
            rows.append(row)
            write_rows(path, rows)
            about = ", ".join(filter(None, [row.name, row.options, row.tables]))
            bad = "" if row.holds else " EXCEEDS"
            say(f"{about}: {row.found:.4g} of {row.claimed:.4g}{bad}, {row.seconds:.1f} s")
    rows = read_rows(path)
    write_report(args.out / "audit.md", rows)
    draw(args.out / "audit.png", rows)


if __name__ == "__main__":
    main()
