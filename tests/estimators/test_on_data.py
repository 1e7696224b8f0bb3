"""Accuracy on real data sets; needs them in ../shared/data beside the project (`make data`)."""

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

from privet import Categorical, Numeric, PrivateTreeClassifier, Schema

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.data,
    pytest.mark.filterwarnings("ignore:random_state is fixed"),
    pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data sets are not here"),
]


@pytest.mark.parametrize(
    ("name", "epsilon", "bar"),
    [
        # Three standard errors below what a prototype measured on five folds.
        ("adult", 0.1, 0.832),
        ("adult", 1.0, 0.842),
        ("california", 0.1, 0.805),
        ("california", 1.0, 0.854),
        ("electricity", 1.0, 0.793),
        ("mushroom", 1.0, 0.995),
    ],
)
def test_the_tree_reaches_its_bar(name, epsilon, bar):
    info = tomllib.loads((DATA / "datasets.toml").read_text())[name]
    frame = pd.read_parquet(DATA / info["file"])
    labels = frame.pop(info["target"]).astype(str).to_numpy()
    schema = Schema(
        {
            column: Categorical(sorted(frame[column].astype(str).unique()))
            if column in info["categorical"]
            else Numeric(*info["bounds"][column])
            for column in frame
        },
        target=info["target"],
        classes=sorted(set(labels)),
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    right = []
    for fold, (train, test) in enumerate(folds.split(frame, labels)):
        model = PrivateTreeClassifier(
            epsilon=epsilon, schema=schema, n_rows=len(train), random_state=fold
        ).fit(frame.iloc[train], labels[train])
        right.append(np.mean(model.predict(frame.iloc[test]) == labels[test]))
    assert np.mean(right) >= bar
