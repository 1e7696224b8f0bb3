"""Small tables with a known structure, and a measure of calibration, for models that add scores."""

import numpy as np
import pandas as pd

from privet import Categorical, Numeric, Schema

FEATURES = {"a": Numeric(0, 1), "b": Categorical(["u", "v"]), "c": Numeric(0, 1)}
SCHEMAS = {
    "two": Schema(FEATURES, "y", classes=[0, 1]),
    "four": Schema(FEATURES, "y", classes=[0, 1, 2, 3]),
    "number": Schema(FEATURES, "y", bounds=(0, 10)),
}


def make_table(kind, rows, seed=0):
    """Return features and a target that depends on them, with some noise.

    The two classes are an exclusive or, which no additive model can learn; the four classes and the
    number are (nearly) sums. One class in ten is wrong; the number's noise has a deviation of 0.5.
    """
    generator = np.random.default_rng(seed)
    a, c = generator.random(rows), generator.random(rows)
    b = generator.choice(["u", "v"], rows)
    if kind == "two":
        target = np.where(generator.random(rows) < 0.1, 1, 0) ^ (a > 0.6) ^ (b == "u")
    elif kind == "four":
        target = 2 * (a > 0.5) + (c > 0.3)
        target = np.where(generator.random(rows) < 0.1, generator.integers(0, 4, rows), target)
    else:
        target = 3 + 4 * (a > 0.5) + 2 * c * (b == "u") + generator.normal(0, 0.5, rows)
    return pd.DataFrame({"a": a, "b": b, "c": c}), np.asarray(target)


def make_risks(rows, seed, *, signal=1.0, base=0.0):
    """Return features and two classes whose log odds are a sum: base + signal x (-3.5 to 5)."""
    generator = np.random.default_rng(seed)
    a, c = generator.random(rows), generator.random(rows)
    b = generator.choice(["u", "v"], rows)
    score = base + signal * (4 * (a - 0.5) + 1.5 * (b == "u") + 2 * np.sin(6 * c))
    classes = (generator.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
    return pd.DataFrame({"a": a, "b": b, "c": c}), classes


def calibration_slope(shares, truth):
    """Return the slope of a logistic regression of the truth on the predicted log odds: ideally 1.

    Below one, a model is too sure of itself; above, not sure enough.
    """
    inputs = np.column_stack([np.ones(len(truth)), np.log(shares / (1 - shares))])
    weights = np.zeros(2)
    for _ in range(30):
        found = 1 / (1 + np.exp(-inputs @ weights))
        curvature = (inputs * (found * (1 - found))[:, None]).T @ inputs
        weights += np.linalg.solve(curvature, inputs.T @ (truth - found))
    return float(weights[1])
