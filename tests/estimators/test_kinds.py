"""Every learner on whole numbers and dates: whole cuts, and the same answers from all tables."""

import datetime
import inspect
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privet.baselines
import privet.estimators
from privet import Categorical, Date, Integer, Numeric, PrivaTreeClassifier, Schema, load
from privet.ensemble import Ensemble
from privet.export import to_dot, to_sql, to_svg, to_text
from privet.tree import Cut, Node, Tree

FEATURES = {
    "children": Integer(0, 3),
    "stays": Integer(0, 20),
    "cost": Integer(0, 10**9),
    "admitted": Date("2020-01-01", "2020-12-31"),
    "born": Date("1900-01-01", "2020-12-31"),
    "x": Numeric(0, 1),
    "c": Categorical(["a", "b"]),
}
CLASSES = Schema(FEATURES, "y", classes=["no", "yes"])
BOUNDS = Schema(FEATURES, "y", bounds=(0, 1))


def rows(count=600):
    generator = np.random.default_rng(0)
    first = datetime.date(2020, 1, 1)
    admitted = [first + datetime.timedelta(int(d)) for d in generator.integers(0, 366, count)]
    frame = pd.DataFrame(
        {
            "children": generator.integers(0, 4, count),
            "stays": generator.integers(0, 21, count),
            "cost": generator.integers(0, 10**9, count),
            "admitted": pd.array(admitted, dtype="datetime64[ns]"),
            "born": pd.Series(
                [datetime.date(1930 + int(k), 5, 6) for k in generator.integers(0, 80, count)],
                dtype=object,
            ),
            "x": generator.random(count),
            "c": generator.choice(["a", "b"], count),
        }
    )
    high = (frame["children"] >= 2) ^ (frame["admitted"] >= "2020-07-01")
    return frame, high.to_numpy()


def learners():
    for room in (privet.estimators, privet.baselines):
        for name in room.__all__:
            kind = getattr(room, name)
            if inspect.isclass(kind) and hasattr(kind, "fit"):
                yield pytest.param(kind, id=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", list(learners()))
def test_every_learner_cuts_at_whole_numbers_and_days(learner, tmp_path):
    X, high = rows()
    regressor = "Regressor" in learner.__name__
    schema = BOUNDS if regressor else CLASSES
    y = high.astype(float) if regressor else np.where(high, "yes", "no")
    model = learner(schema=schema, epsilon=20.0).fit(X, y).to_model()
    trees = model.predictor.trees if isinstance(model.predictor, Ensemble) else (model.predictor,)
    edges = [
        (node.test.feature, edge)
        for tree in trees
        for node in tree.nodes
        if isinstance(node.test, Cut)
        for edge in node.test.edges
    ]
    for name, edge in edges:
        assert edge in FEATURES[name].grid
    expected = model.predict(X).tolist()
    texts = X.assign(admitted=X["admitted"].dt.strftime("%Y-%m-%d"), born=X["born"].map(str))
    assert model.predict(pl.from_pandas(texts)).tolist() == expected
    assert model.predict(X.to_numpy(dtype=object)).tolist() == expected
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.schema == schema
    assert again.predict(X).tolist() == expected
    assert json.loads((tmp_path / "model.json").read_text())["schema"]["features"]["admitted"] == {
        "type": "date", "low": "2020-01-01", "high": "2020-12-31", "bins": 10,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "binning", ["quantile", "joint-quantile", "uniform", "scales", "leaking-quantile"]
)
def test_all_ways_to_bin(binning):
    X, high = rows(300)
    learner = PrivaTreeClassifier(20.0, CLASSES, binning=binning, max_bins=7)
    tree = learner.fit(X, np.where(high, "yes", "no")).to_model().predictor
    for node in tree.nodes:
        if isinstance(node.test, Cut):
            assert set(node.test.edges) <= set(FEATURES[node.test.feature].grid)


def test_people_read_whole_numbers_and_dates():
    schema = Schema(
        {"children": Integer(0, 3), "admitted": FEATURES["admitted"]}, "y", bounds=(0, 1)
    )
    tree = Tree(
        schema,
        (
            Node(Cut("children", (2.0,), missing=0), (1, 2)),
            Node(Cut("admitted", (18_322.0,), missing=1), (3, 4)),
            Node(value=(0.0,)),
            Node(value=(0.25,)),
            Node(value=(1.0,)),
        ),
    )
    text = to_text(tree)
    assert "children >= 2" in text
    assert "admitted >= 2020-03-01 or missing" in text
    assert "≥ 2020-03-01 or missing" in to_dot(tree)
    assert "2020-03-01" in to_svg(tree)
    assert "CAST(\"admitted\" AS DATE) < DATE '2020-03-01'" in to_sql(tree)
