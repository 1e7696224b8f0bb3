"""The runs of a statistical audit: fitting in chunks, and the file in which they are kept."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit._tables import row_keys
from privet.audit.events import Matrix
from privet.errors import AuditError
from privet.schema import Schema

#: What an observer returns of a fitted model: named numbers, or an array of them.
Observables = Mapping[str, float] | NDArray[np.float64]
Observer = Callable[[Any, Any], Observables]
#: A table and its target; None if the target is one of the table's columns.
Pair = tuple[Any, Any]
#: Some runs on both tables: the names of what was observed, and per table a row for each run.
Block = dict[str, Any]

#: How many runs on each table are stored at a time.
CHUNK = 10
FORMAT = "privet-audit"
VERSION = 1
FAILED = "the fit failed"


@dataclass(frozen=True)
class Runs:
    """Fits of an estimator on two tables, and who looks at them."""

    estimator: Any
    tables: tuple[Pair, Pair]
    probes: Any
    observe: Observer

    def fit(self, runs: int, n_jobs: int | None) -> Generator[Block]:
        """Return observations in the order of the runs, a chunk of them on each table at a time.

        Not in the order in which they are ready: running time may depend on what is drawn.
        """
        from sklearn.utils.parallel import Parallel, delayed

        sizes = (min(CHUNK, runs - start) for start in range(0, runs, CHUNK))
        fits: Generator[Block] = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(self._block)(size) for size in sizes
        )
        return fits

    def _block(self, runs: int) -> Block:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = [[self._once(table) for _ in range(runs)] for table in self.tables]
        names = list(dict.fromkeys(name for side in rows for row in side for name in row))
        one, other = (
            [[row.get(name, math.nan) for name in names] for row in side] for side in rows
        )
        return {"names": names, "one": one, "other": other}

    def _once(self, table: Pair) -> dict[str, float]:
        from sklearn.base import clone

        model = clone(self.estimator)
        try:
            model.fit(*table)
        except Exception:  # what a fit does instead of giving a model tells of the table, too
            return {FAILED: 1.0}
        seen = self.observe(model, self.probes)
        if isinstance(seen, Mapping):
            return {str(name): float(value) for name, value in seen.items()}
        return {f"observable {j}": float(value) for j, value in enumerate(np.ravel(seen))}

    def fingerprint(self, keys: Sequence[NDArray[np.uint64]]) -> dict[str, Any]:
        """Return what must not change between two sittings; ``keys`` are those of the tables."""
        kind = type(self.estimator)
        library = kind.__module__.partition(".")[0]
        parameters = [
            (name, value.to_dict() if isinstance(value, Schema) else value)
            for name, value in sorted(self.estimator.get_params(deep=True).items())
        ]
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(parameters))
        observer = getattr(self.observe, "__qualname__", type(self.observe))
        return {
            "format": FORMAT,
            "version": VERSION,
            "estimator": f"{kind.__module__}.{kind.__qualname__}",
            "library": f"{library} {getattr(sys.modules.get(library), '__version__', '')}".strip(),
            "parameters": hashlib.sha256(text.encode()).hexdigest(),
            "rows": [len(side) for side in keys],
            "tables": hashlib.sha256(b"".join(side.tobytes() for side in keys)).hexdigest(),
            "probes": hashlib.sha256(row_keys(self.probes, None).tobytes()).hexdigest(),
            "observe": f"{self.observe.__module__}.{observer}",
        }


def matrices(blocks: Sequence[Block], runs: int) -> tuple[list[str], Matrix, Matrix]:
    """Put the rows of all blocks under one another; what a block did not see is NaN."""
    names = list(dict.fromkeys(name for block in blocks for name in block["names"]))
    place = {name: j for j, name in enumerate(names)}
    sides: dict[str, list[Matrix]] = {"one": [], "other": []}
    for block in blocks:
        seen = [place[name] for name in block["names"]]
        for side, parts in sides.items():
            part = np.full((len(block[side]), len(names)), math.nan)
            part[:, seen] = block[side]
            parts.append(part)
    one, other = (np.concatenate(parts)[:runs] for parts in sides.values())
    return names, one, other


def check_noise(estimator: Any) -> None:
    """Refuse what would repeat itself or be paid for."""
    if not hasattr(estimator, "get_params"):
        raise AuditError("the estimator needs get_params and set_params, as in scikit-learn")
    parameters = estimator.get_params(deep=True)
    for name, value in parameters.items():
        if name.rpartition("__")[2] == "random_state" and value is not None:
            raise AuditError(
                f"{name} is fixed, so that all runs are the same: an audit needs the noise that "
                "releases have; set it to None"
            )
    if parameters.get("ledger") is not None:
        raise AuditError(
            "the fits of an audit draw on no ledger, which would be empty after a few: set ledger "
            "to None, and publish none of the fits"
        )


def own_delta(estimator: Any) -> float:
    delta = getattr(estimator, "delta", None)
    return float(delta) if isinstance(delta, int | float | np.number) else 0.0


class Store:
    """A file of JSON lines: what the audit is of, then one line per chunk of runs.

    A line counts once it is complete, so a run that is killed loses one chunk at most.
    """

    def __init__(self, path: str | Path | None, fingerprint: Callable[[], dict[str, Any]]) -> None:
        self._path = None if path is None else Path(path)
        self.blocks: list[Block] = []
        if self._path is None:
            return
        header = fingerprint()
        self._path.touch(mode=0o600)  # it is as sensitive as the tables
        raw = self._path.read_bytes()
        if not raw:
            self.append(header)
            return
        whole = raw[: raw.rfind(b"\n") + 1]
        try:
            found, *self.blocks = map(json.loads, whole.splitlines())
            known = found["format"] == FORMAT
        except (ValueError, TypeError, KeyError):
            known = False
        if not known:
            raise AuditError(f"{self._path} is no store of an audit, or is damaged: take another")
        differing = sorted(key for key in header | found if header.get(key) != found.get(key))
        if differing:
            raise AuditError(
                f"{self._path} holds another audit: it differs in {', '.join(differing)}; take "
                "another file"
            )
        if len(whole) < len(raw):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))

    def append(self, block: Mapping[str, Any]) -> None:
        """Add a line."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(block) + "\n")
