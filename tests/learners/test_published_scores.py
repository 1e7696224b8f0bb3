"""What is published is what was learnt: the model says of a record what the wall's scores say."""

import numpy as np
import pytest

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.learners import additive, boosting
from privet.tables import cells as wall

from ..engines.behind import scores_of  # noqa: TID252

FEATURES = {"x": Numeric(-1, 1), "a": Categorical(["u", "v", "w"]), "z": Numeric(0, 100)}
TARGETS = {
    "two": {"classes": [0, 1]},
    "three": {"classes": [0, 1, 2]},
    "number": {"bounds": (-5, 20)},
}
pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def make_rows(kind, rows=4_000):  # so many that slopes are not all there is
    generator = np.random.default_rng(3)
    x, z = generator.uniform(-1.5, 1.5, rows), generator.exponential(20, rows)
    x[generator.random(rows) < 0.1] = np.nan
    a = generator.choice(["u", "v", "w", "unheard of"], rows)
    score = 2 * np.nan_to_num(x) + (a == "v") + z / 40
    target = (
        score
        if kind == "number"
        else np.digitize(score, [0.5, 1.5][: len(TARGETS[kind]["classes"]) - 1])
    )
    return np.array([x, a, z], dtype=object).T, target


def boosted(table, amount):
    options = {
        "amount": amount, "n_rows": None, "n_rounds": 5, "max_depth": 3, "merge": True,
    }  # fmt: skip
    if table.schema.classes is None:
        return boosting.learn_number(table, **options)
    return boosting.learn_classes(table, labels_only=False, **options)


@pytest.mark.parametrize("learn", [boosted, additive.learn], ids=["boosting", "additive"])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("budget", [Budget(5.0), Budget(5.0, delta=1e-6)], ids=str)
def test_published_scores_are_those_behind_the_wall(learn, kind, budget, monkeypatch):
    started = []
    original = PrivateTable.start_scores

    def remember(self, start):
        started.append(original(self, start))
        return started[-1]

    monkeypatch.setattr(PrivateTable, "start_scores", remember)
    rows, target = make_rows(kind)
    schema = Schema(FEATURES, "y", **TARGETS[kind])
    table = PrivateTable(rows, target, schema, budget, random_state=0)
    model = learn(table, amount=budget.limit)
    known = scores_of(wall.behind_table[table].engine, wall.behind_scores[started[-1]])
    assert np.abs(known).max() <= started[-1].bound + 1e-9
    assert len(np.unique(known, axis=0)) > 5
    if kind == "number":
        known = -5 + known * 25
    np.testing.assert_allclose(model.predict_score(rows), known, atol=1e-9)
