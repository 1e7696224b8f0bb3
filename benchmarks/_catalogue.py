"""The public data sets of the benchmarks: Parquet files, and a catalogue with what is public.

Bounds come from the catalogue, categories and classes from the columns' dictionaries: both count as
public in benchmarks.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: Where the files are unless an option says otherwise: beside the repository.
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"

#: Numbers of rules are chosen on the first half of the sets and then run, unchanged, on the second;
#: results are reported apart. Sets of neither half were looked at while rules were chosen earlier.
CHOOSE = (
    "adult",
    "bank",
    "bank-marketing",
    "breast-w",
    "compas-two-years",
    "credit",
    "diabetes",
    "electricity",
    "heloc",
    "house_16H",
    "mushroom",
    "pol",
)
CONFIRM = (
    "MagicTelescope",
    "albert",
    "banknote",
    "california",
    "covertype",
    "Diabetes130US",
    "default-of-credit-card-clients",
    "eye_movements",
    "higgs-small",
    "road-safety",
    "vote",
    "nursery",
)
#: The same for more than two classes, see :func:`load_classes`: "set", "set/number of classes" or
#: "set/column". The first ones of each half are the sets of benchmarks/classes.py; the others were
#: added where more sets were needed to choose.
CHOOSE_CLASSES = (
    "puc-rio-har",
    "wall-robot",
    "gas-turbine-nox/10",
    "gas-turbine-nox/26",
    "gas-turbine-nox/5",
    "flights/5",
    "flights/10",
    "adult/marital-status",
    "mushroom/odor",
    "mushroom/spore-print-color",
)
CONFIRM_CLASSES = (
    "metro-traffic/10",
    "mnist",
    "parkinsons/5",
    "appliances/5",
    "gas-turbine-co/7",
    "california-regression/26",
    "kddcup99/flag",
    "metro-traffic/5",
    "parkinsons/10",
    "california-regression/10",
    "nursery-multiclass",
)


@dataclass
class Data:
    """A data set with what is public about it; classes are numbered."""

    X: pd.DataFrame
    y: np.ndarray
    bounds: dict[str, tuple[float, float]]
    categories: dict[str, list[str]]
    #: How many classes there are; None if the target is a number.
    classes: int | None
    #: The bounds of a target that is a number.
    target_bounds: tuple[float, float] | None


def load(folder: str | Path, name: str) -> Data:
    folder = Path(folder)
    info = tomllib.loads((folder / "datasets.toml").read_text(encoding="utf-8"))[name]
    frame = pd.read_parquet(folder / info["file"])
    X, y = frame.drop(columns=info["target"]), frame[info["target"]]
    categories = {column: X[column].cat.categories.tolist() for column in info["categorical"]}
    bounds = {column: tuple(info["bounds"][column]) for column in X if column not in categories}
    if info["task"] == "regression":
        target_bounds = tuple(info["target_bounds"])
        return Data(X, y.to_numpy(np.float64), bounds, categories, None, target_bounds)
    codes = y.cat.codes.to_numpy(np.int64)
    return Data(X, codes, bounds, categories, len(y.cat.categories), None)


def load_classes(folder: str | Path, name: str) -> Data:
    """Return a set with more than two classes.

    "set/10" cuts a number at its quantiles into ten classes (fewer, where many values are equal),
    "set/column" takes a categorical feature as the target and drops the set's own; mnist is seen as
    7 x 7 means of 4 x 4 pixels.
    """
    name, _, how = name.partition("/")
    data = load(folder, name)
    if name == "mnist":
        pixels = data.X.to_numpy(np.float64).reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4))
        X = pd.DataFrame(pixels.reshape(len(pixels), 49), columns=[f"x{j}" for j in range(49)])
        return Data(X, data.y, dict.fromkeys(X, (0.0, 255.0)), {}, data.classes, None)
    if how.isdigit():
        edges = np.unique(np.quantile(data.y, np.arange(1, int(how)) / int(how)))
        edges = edges[edges > data.y.min()]
        y = np.searchsorted(edges, data.y, side="right")
        return Data(data.X, y, data.bounds, data.categories, len(edges) + 1, None)
    if how:
        y = data.X[how].cat.codes.to_numpy(np.int64)
        categories = {column: values for column, values in data.categories.items() if column != how}
        classes = len(data.categories[how])
        return Data(data.X.drop(columns=how), y, data.bounds, categories, classes, None)
    return data


def schema_of(data: Data) -> Any:
    """Return what is public as a schema of ours."""
    from privet import Categorical, Numeric, Schema

    features = {
        name: Numeric(*data.bounds[name])
        if name in data.bounds
        else Categorical(data.categories[name])
        for name in data.X
    }
    if data.classes is None:
        return Schema(features, target="the target", bounds=data.target_bounds)
    return Schema(features, target="the target", classes=range(data.classes))


def one_hot(data: Data) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the features as numbers, and their bounds."""
    columns, low, high = [], [], []
    for name in data.X:
        if name in data.bounds:
            columns.append(data.X[name].to_numpy(np.float64))
            low.append(data.bounds[name][0])
            high.append(data.bounds[name][1])
        else:
            codes = data.X[name].cat.codes.to_numpy()
            columns += [(codes == code).astype(float) for code in range(len(data.categories[name]))]
            low += [0.0] * len(data.categories[name])
            high += [1.0] * len(data.categories[name])
    return np.column_stack(columns), (np.array(low), np.array(high))
