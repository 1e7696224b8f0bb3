"""Attack Privet from outside, at a given checkout, and write down what happens.

Parts:

* reading: one record that changes how others are read, bounds on epsilon, what messages say;
* certificates: numbers that must be the same for every fit;
* files: ``--out`` that is an input or a device, full disks, long names, modes;
* terminals: text from files as markup, escape characters, a false verdict;
* damaged: hostile ledgers, schemas and models that crash, hang or fill memory;
* links: code sent between a party and a coordinator;
* kills: ``kill -9`` of ``privet fit`` at chosen and at random moments, and the ledger after each;
* fuzz: mutated models, schemas, ledgers, CSV and Parquet files.

Run ``python benchmarks/attacks.py --against CHECKOUT --label start`` on a checkout of the starting
commit and ``--label new`` on the present one (the default is this one); it writes ``attacks.csv``,
``attacks.md`` and ``attacks.png``. What is not run again (``--parts``, ``--only``) stays as it is.
The attacks are in ``_attacks/``, the mutated files in ``_hostile_*.py``.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from _report import command, machine, table, versions

HERE = Path(__file__).parent
PARTS = ["reading", "certificates", "files", "terminals", "damaged", "links", "kills", "fuzz"]
LABELS = {"start": "at the starting commit", "new": "now"}
TITLES = {
    "reading": "Reading",
    "certificates": "Certificates",
    "files": "Files that are written",
    "terminals": "Terminals",
    "damaged": "Damaged and hostile files",
    "links": "Links between processes",
    "kills": "Kills",
    "fuzz": "Mutated files",
}


@dataclass
class Row:
    """One line of the CSV: one outcome of one attack on one version."""

    part: str
    attack: str
    measured: str
    label: str
    outcome: str
    broken: bool
    number: float | None
    unit: str
    #: The function that measured it, and the seconds that all it measures took.
    function: str
    seconds: float
    commit: str
    command: str


Rows = list[Row]


def read_rows(path: Path) -> Rows:
    if not path.exists():
        return []
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            cells = dict(line)
            number = cells.pop("number")
            rows.append(
                Row(
                    **{k: v for k, v in cells.items() if k not in ("broken", "seconds")},
                    broken=cells["broken"] == "True",
                    seconds=float(cells["seconds"]),
                    number=float(number) if number else None,
                )
            )
    return rows


def write_rows(path: Path, rows: Rows) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        out.writeheader()
        for row in sorted(rows, key=lambda row: (PARTS.index(row.part), row.label != "start")):
            cells = asdict(row)
            cells["seconds"] = f"{row.seconds:.1f}"
            cells["number"] = "" if row.number is None else f"{row.number:.6g}"
            out.writerow(cells)
    partial.replace(path)


# In the process of a part


def inside(part: str, scratch: Path, only: list[str]) -> None:
    """Run a part's attacks against the Privet that is on the path; print JSON lines."""
    import warnings

    from _attacks.outside import warm

    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed is no outcome
    warm()
    for attack in importlib.import_module(f"_attacks.{part}").ATTACKS:
        if only and attack.__name__ not in only:
            continue
        folder = scratch / attack.__name__
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        found = []
        try:
            for one in attack(folder):
                found.append(one.__dict__)
                print(f"  {one.attack}: {one.measured}: {one.outcome}", file=sys.stderr, flush=True)
        except Exception as error:
            # A version may have another interface: say so, and go on.
            found.append(
                {
                    "attack": attack.__name__,
                    "measured": "the attack itself",
                    "outcome": f"could not be run: {type(error).__name__}: {error!s:.200}",
                    "broken": True,
                    "number": None,
                    "unit": "",
                }
            )
            print(f"  {found[-1]['outcome']}", file=sys.stderr, flush=True)
        line = {
            "function": attack.__name__,
            "seconds": time.perf_counter() - start,
            "found": found,
        }
        print(json.dumps(line), file=out, flush=True)


# The driver


def run_part(args: argparse.Namespace, part: str) -> Iterator[dict[str, object]]:
    """Start the process of a part with the attacked checkout on its path."""
    source = args.against.resolve() / "src"
    if not (source / "privet").is_dir():
        sys.exit(f"{args.against} is no checkout of Privet: there is no src/privet")
    given = os.environ.get("PYTHONPATH")
    paths = [str(source), str(HERE)] + ([given] if given else [])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1",
           "OPENBLAS_NUM_THREADS": "1", "ATTACK_SCALE": str(args.scale)}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="attacks-") as scratch:
        child = subprocess.Popen(
            [sys.executable, __file__, "--inside", part, "--scratch", scratch,
             *(["--only", *args.only] if args.only else [])],
            env=env, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        try:
            for line in child.stdout:
                yield json.loads(line)
        finally:
            if child.wait() not in (0, -signal.SIGINT):
                say(f"the process of part {part} ended with {child.returncode}")


def commit_of(checkout: Path) -> str:
    told = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip() or "unknown"


def say(line: str) -> None:
    print(line, flush=True)


# The report

HOW_TO_READ = """
Every attack runs against a checkout from outside: through the command line and the public Python
interface. **Bold** is an attack that reached its aim. A bound on epsilon is from many fits of two
inputs that differ by one record, at a claimed epsilon of 1; event and direction were fixed
beforehand; confidence 95 % (Clopper-Pearson). A command is stopped after 60 s (ledgers: 20 s) and
at 4 GB of address space (elsewhere: 6 GB); MB are the peak of resident memory, of which about 250
are imports, and s are seconds of the processor. Whatever ends with exit code 2 was refused with a
sentence. How long a part took is from a machine on which other jobs ran.
"""


def write_report(path: Path, rows: Rows) -> None:
    commands = dict.fromkeys(row.command for row in rows)
    text = [
        "# Attacks\n",
        "Commands: " + ", ".join(f"`{line}`" for line in commands) + "\n",
        f"- {machine()}",
        f"- {versions('numpy', 'pandas', 'pyarrow', 'rich', 'scikit-learn')}",
    ]
    for label, words in LABELS.items():
        mine = [row for row in rows if row.label == label]
        if mine:
            broken = sum(row.broken for row in mine)
            commits = ", ".join(sorted({row.commit for row in mine}))
            text.append(f"- {words} ({commits}): {broken} of {len(mine)} outcomes are broken")
    text.append(HOW_TO_READ)
    for part in PARTS:
        mine = [row for row in rows if row.part == part]
        if not mine:
            continue
        text += [f"## {TITLES[part]}\n", _table(mine)]
        seconds = []
        for label, words in LABELS.items():
            spent = {row.function: row.seconds for row in mine if row.label == label}
            if spent:
                seconds.append(f"{words} {sum(spent.values()):.0f} s")
        text.append(f"The part took {', '.join(seconds)}.\n")
    path.write_text("\n".join(text), encoding="utf-8")


def _table(rows: Rows) -> str:
    keys = dict.fromkeys((row.attack, row.measured) for row in rows)
    cells = {(row.attack, row.measured, row.label): row for row in rows}
    lines = []
    for attack, measured in keys:
        line = [_cell(attack), _cell(measured)]
        for label in LABELS:
            row = cells.get((attack, measured, label))
            shown = "" if row is None else _cell(row.outcome)
            line.append(f"**{shown}**" if row is not None and row.broken else shown)
        lines.append(line)
    return table(["attack", "what was measured", *LABELS.values()], lines)


def _cell(text: str) -> str:
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain.replace("|", "\\|").replace("*", "\\*")


def draw(path: Path, rows: Rows) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
    bounds = [row for row in rows if row.unit == "epsilon"]
    names = list(dict.fromkeys(row.attack for row in bounds))[::-1]
    for place, (label, words) in enumerate(LABELS.items()):
        found = {row.attack: row.number or 0.0 for row in bounds if row.label == label}
        left.barh(
            [names.index(name) + 0.2 - 0.4 * place for name in found],
            list(found.values()), height=0.4, color=f"C{3 if label == 'start' else 0}", label=words,
        )  # fmt: skip
    left.set_yticks(range(len(names)), names, fontsize=7)
    left.axvline(1, color="0.2", linewidth=1)
    left.set(title="Epsilon, at least (claimed: 1)", xlabel="95 % confidence")
    parts = [part for part in PARTS if any(row.part == part for row in rows)][::-1]
    for place, (label, words) in enumerate(LABELS.items()):
        mine = [row for row in rows if row.label == label]
        if not mine:
            continue
        right.barh(
            [parts.index(part) + 0.2 - 0.4 * place for part in parts],
            [sum(row.broken for row in mine if row.part == part) for part in parts],
            height=0.4, color=f"C{3 if label == 'start' else 0}", label=words,
        )  # fmt: skip
    right.set_yticks(range(len(parts)), [TITLES[part] for part in parts])
    right.set(title="Outcomes that are broken")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, default=HERE.parent, help="checkout to attack")
    parser.add_argument("--label", choices=LABELS, default="new")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="+", default=[], help="these functions of the parts")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of the fits, kills and mutated files"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--inside", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside(args.inside, args.scratch, args.only)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "attacks.csv"
    rows = read_rows(path)
    for part in args.parts:
        say(f"{part}, {LABELS[args.label]}")
        for done in run_part(args, part):
            about = (part, args.label, done["function"])
            rows = [row for row in rows if (row.part, row.label, row.function) != about]
            rows += [
                Row(
                    part=part,
                    label=args.label,
                    function=done["function"],
                    seconds=done["seconds"],
                    commit=commit_of(args.against),
                    command=command(),
                    **found,
                )
                for found in done["found"]
            ]
            write_rows(path, rows)
            broken = sum(found["broken"] for found in done["found"])
            say(f"{done['function']}: {broken} of {len(done['found'])} outcomes are broken, "
                f"{done['seconds']:.0f} s")  # fmt: skip
    rows = read_rows(path)
    write_report(args.out / "attacks.md", rows)
    draw(args.out / "attacks.png", rows)


if __name__ == "__main__":
    main()
