"""Makes src/privet/planning/measured.csv of kept results: what the default learner reached.

Command: python benchmarks/measured.py

For every public set and epsilon of benchmarks/results/utility.csv: rows of a training fold, the
accuracy of Privet's tree, that of gradient boosting without privacy, and that of the larger class.
"""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

from _catalogue import FOLDER

HERE = Path(__file__).parent
SOURCE = HERE / "results" / "utility.csv"
TARGET = HERE.parent / "src" / "privet" / "planning" / "measured.csv"
#: Of five folds four are learnt from.
TRAINING = 0.8


def main() -> None:
    catalogue = tomllib.loads((FOLDER / "datasets.toml").read_text())
    with SOURCE.open() as file:
        results = list(csv.DictReader(file))
    open_ = {row["set"]: row["accuracy"] for row in results if row["model"] == "hist-boosting"}
    lines = []
    for row in results:
        about = catalogue.get(row["set"])
        if row["model"] != "tree" or not row["epsilon"] or about is None:
            continue
        lines.append(
            {
                "set": row["set"],
                "rows": round(TRAINING * about["rows"]),
                "features": about["features"],
                "classes": about["classes"],
                "epsilon": row["epsilon"],
                "accuracy": f"{float(row['accuracy']):.4f}",
                "without_privacy": f"{float(open_[row['set']]):.4f}",
                "larger_class": f"{about['majority_share']:.4f}",
                "runs": row["runs"],
            }
        )
    with TARGET.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: (line["set"], float(line["epsilon"]))))
    print(f"wrote {TARGET.relative_to(HERE.parent)}: {len(lines)} lines")


if __name__ == "__main__":
    main()
