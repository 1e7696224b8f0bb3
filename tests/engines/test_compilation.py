"""Small fits compile nothing, and compiled loops are kept on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FIT = """
import json, sys
import numpy as np
from privet import DiffPID3Classifier, Numeric, Schema

rows = int(sys.argv[1])
schema = Schema({f"x{j}": Numeric(0, 1) for j in range(5)}, target="y", classes=[0, 1])
X = np.random.default_rng(0).random((rows, 5))
y = (X[:, 0] > 0.5).astype(int)
DiffPID3Classifier(epsilon=1.0, schema=schema, max_depth=2).fit(X, y).predict(X[:10])
found = {"numba": "numba" in sys.modules, "loops": "privet.engines._loops" in sys.modules}
if found["loops"]:
    from privet.engines import _loops

    for name in ("count_four", "count_one", "key", "route", "find_on_grid", "look_up"):
        stats = getattr(_loops, name).stats
        found[name] = [sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]
print(json.dumps(found))
"""


def fit(rows: int, cache: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(rows)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def test_a_small_fit_does_not_import_numba(tmp_path):
    assert fit(10_000, tmp_path) == {"numba": False, "loops": False}
    assert not any(tmp_path.iterdir())


def test_the_second_process_compiles_nothing(tmp_path):
    loops = ("count_four", "count_one", "key", "route", "find_on_grid", "look_up")
    first, second = fit(800_000, tmp_path), fit(800_000, tmp_path)
    assert {name: first[name] for name in loops} == {name: [0, 1] for name in loops}
    assert {name: second[name] for name in loops} == {name: [1, 0] for name in loops}
