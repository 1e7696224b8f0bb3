"""Measure what a whole study under one ledger needs, part by part.

``--parts coverage``: how often the 95 % intervals of test scores cover the truth.
``--parts discovery``: the accuracy of trees whose schema was discovered for a tenth of the budget.
``--parts persons``: the accuracy of trees of persons with several records.
``--parts whole``: from a raw CSV file to a model with a test score, beside everything public.

Run ``python benchmarks/study.py --parts NAME``; it writes ``study_NAME.csv``, ``.md`` and ``.png``
to ``benchmarks/results``. All but the first and the last need the benchmark data sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from _coverage import run_coverage
from _discovery import run_discovery
from _persons import run_persons
from _whole_study import run_whole

PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "coverage": run_coverage,
    "discovery": run_discovery,
    "persons": run_persons,
    "whole": run_whole,
}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--runs", type=int, default=1_000, help="of each interval")
    parser.add_argument("--seeds", type=int, default=5, help="of each fit")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--variants", nargs="+", help="measure these again, and keep the others")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()
