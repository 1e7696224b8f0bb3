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
