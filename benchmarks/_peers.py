"""Run a function of a benchmark in another Python, which has the peers.

Peers need older libraries than ours, hence environments of their own:
``pip install diffprivlib interpret-core "scikit-learn<1.6" pandas pyarrow``, then ``--peer-python``
with that environment's Python; and ``pip install dpmm "pyarrow<17"`` (it wants pandas 2.1), then
``--dpmm-python``.

The request (module, function, arguments) goes to the other process's input; the function yields,
and each result comes back as one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from _catalogue import Data, load

#: What to import of a package to know that it works.
IMPORTS = {
    "diffprivlib": "diffprivlib.models",
    "dpmm": "dpmm.pipelines",
    "interpret-core": "interpret.privacy",
    "scikit-learn": "sklearn",
}


def ask(python: str, module: str, function: str, **arguments: Any) -> Iterator[Any]:
    """Yield what a generator function of a benchmark yields in another Python."""
    with subprocess.Popen(
        [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdin:
                json.dump([module, function, arguments], process.stdin)
            for line in process.stdout:
                yield json.loads(line)
        finally:
            process.kill()


def probe(packages: list[str]) -> Iterator[str | None]:
    """Yield the version of each package; None if it cannot be imported."""
    for package in packages:
        try:
            import_module(IMPORTS.get(package, package))
            yield version(package)
        except ImportError as error:
            print(f"{package} cannot be imported: {error}", file=sys.stderr)
            yield None


def dp_ebm(data: Data, epsilon: float, delta: float, rate: float, seed: int | None) -> Any:
    """Return interpret's private additive model, unfitted, with public bounds of everything."""
    from interpret import privacy

    common = {
        "feature_names": list(data.X),
        "feature_types": ["continuous" if c in data.bounds else "nominal" for c in data.X],
        "privacy_bounds": data.bounds,
        "learning_rate": rate,
        "epsilon": epsilon,
        "delta": delta,
        "random_state": seed,
    }
    if data.target_bounds is None:
        return privacy.DPExplainableBoostingClassifier(**common)
    low, high = data.target_bounds
    return privacy.DPExplainableBoostingRegressor(
        privacy_target_min=low, privacy_target_max=high, **common
    )


def time_dp_ebm(
    folder: str, name: str, epsilon: float, delta: float, repeats: int
) -> Iterator[tuple[float, float]]:
    """Yield wall and CPU seconds of DP-EBM fits at its defaults, after a warm-up."""
    data = load(folder, name)
    for turn in range(repeats + 1):
        model = dp_ebm(data, epsilon, delta, 0.01, None)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(data.X, data.y)
        if turn:
            yield time.perf_counter() - wall, time.process_time() - cpu


def noisy_logistic(
    X: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], y: np.ndarray, rho: float, seed: int
) -> np.ndarray:
    """Return weights of a logistic regression by noisy gradients, its step size chosen privately.

    Full gradients, of which a record adds at most length one: features are scaled by their bounds,
    and rows divided by the longest that is possible. Three lengths of the path have 30 per cent of
    rho each, in 50 steps; the exponential mechanism chooses by correct records for the rest. The
    number of rows is public. Noise in floating point, of the right scale: a peer for comparison.
    """
    rng, steps = np.random.default_rng(seed), 50
    Z = logistic_features(X, bounds)
    found = []
    for path in (40.0, 160.0, 640.0):
        weights = np.zeros(Z.shape[1])
        scale = math.sqrt(steps / (2 * 0.3 * rho))
        for _ in range(steps):
            residuals = y - 1 / (1 + np.exp(-np.clip(Z @ weights, -500, 500)))
            noisy = Z.T @ residuals + rng.normal(0, scale, Z.shape[1])
            weights = weights + path / steps * noisy / len(y)
        found.append(weights)
    correct = np.array([np.sum((Z @ weights > 0) == (y == 1)) for weights in found])
    choose = math.sqrt(8 * 0.1 * rho) * correct + rng.gumbel(size=len(found))
    return found[int(choose.argmax())]


class NoisyLogistic:
    """:func:`noisy_logistic` as a classifier of two classes."""

    def __init__(self, bounds: tuple[np.ndarray, np.ndarray], rho: float, seed: int) -> None:
        self.bounds, self.rho, self.seed = bounds, rho, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> NoisyLogistic:
        self.weights = noisy_logistic(X, self.bounds, y, self.rho, self.seed)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        scores = np.clip(logistic_features(X, self.bounds) @ self.weights, -500, 500)
        second = 1 / (1 + np.exp(-scores))
        return np.column_stack([1 - second, second])


class Synthetic:
    """As many invented records as there are rows, by dpmm, then boosting without privacy on these.

    A part of epsilon is for the bins of numbers (PrivTree), as large as by dpmm's defaults. Its
    inference, post-processing in plain Python, repeats as often as ``ITERATIONS`` says: by default
    it is 2,500 and 5,000 times for MST and 1,000 times in every round of AIM, which takes a minute
    and more on the smallest sets.
    """

    TARGET = "the target"
    ITERATIONS: ClassVar = {"mst": 200, "aim": 100}

    def __init__(self, kind: str, data: Data, epsilon: float, delta: float, seed: int) -> None:
        from dpmm.models import mst
        from dpmm.models.base.mbi import FactoredInference
        from dpmm.pipelines import AIMPipeline, MSTPipeline

        iterations = self.ITERATIONS[kind]

        def fewer(*given: Any, **named: Any) -> Any:
            return FactoredInference(*given, **named | {"iters": iterations})

        # The 2,500 are written down in its code; they fit marginals of single columns only.
        mst.FactoredInference = fewer
        self.data, self.seed = data, seed
        self.pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[kind](
            epsilon=epsilon * 10 / 11,
            proc_epsilon=epsilon / 11,
            delta=delta,
            n_jobs=1,
            gen_kwargs={"n_iters": iterations},
        )

    def fit(self, X: Any, y: np.ndarray) -> Synthetic:
        from sklearn.ensemble import HistGradientBoostingClassifier

        data = self.data
        frame = X.reset_index(drop=True).astype(
            {name: float if name in data.bounds else object for name in X}
        )
        frame[self.TARGET] = [f"class {label}" for label in y]
        classes = [f"class {label}" for label in range(data.classes or 0)]
        domain = {name: {"lower": low, "upper": high} for name, (low, high) in data.bounds.items()}
        domain |= {name: {"categories": list(found)} for name, found in data.categories.items()}
        domain[self.TARGET] = {"categories": classes}
        self.pipeline.fit(frame, domain, random_state=self.seed)
        made = self.pipeline.generate(n_records=len(frame), random_state=self.seed)
        labels = made.pop(self.TARGET).map(classes.index).to_numpy(np.int64)
        # All have both classes and all columns; one that dpmm found constant is left out by it.
        labels[0], labels[-1] = 0, len(classes) - 1
        made = made.reindex(columns=list(X))
        self.booster = HistGradientBoostingClassifier(random_state=self.seed)
        self.booster.fit(self._numbers(made), labels)
        return self

    def _numbers(self, X: Any) -> np.ndarray:
        return np.column_stack(
            [
                X[name].astype(float)
                if name in self.data.bounds
                else pd.Categorical(X[name], categories=self.data.categories[name]).codes
                for name in X
            ]
        )

    def predict(self, X: Any) -> np.ndarray:
        return self.booster.predict(self._numbers(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.booster.predict_proba(self._numbers(X))


def logistic_features(X: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return features between -1 and 1 and a constant, in rows of length at most one."""
    low, high = bounds
    Z = np.clip(2 * (np.nan_to_num(X) - low) / np.maximum(high - low, 1e-300) - 1, -1, 1)
    Z = np.column_stack([Z, np.ones(len(Z))])
    return Z / math.sqrt(Z.shape[1])


def _answer() -> None:
    warnings.simplefilter("ignore")
    module, function, arguments = json.load(sys.stdin)
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        for result in getattr(import_module(module), function)(**arguments):
            print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    _answer()
