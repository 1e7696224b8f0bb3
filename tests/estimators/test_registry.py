"""The list of learners, and everything that has to be true of each of them."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import privet
import privet.baselines
from privet import Categorical, Numeric, Schema
from privet.audit.catalogue import of_estimators
from privet.criteria import CRITERIA, Criterion, make_criterion
from privet.errors import BudgetError
from privet.estimators.registry import estimators, learners, name_of, register

ROOT = Path(__file__).parents[2]
OURS = [kind for kind in estimators() if kind.__module__.startswith("privet.estimators.")]
BASELINES = [kind for kind in estimators() if kind.__module__.startswith("privet.baselines.")]
by_name = pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)


def test_every_estimator_is_registered_and_exported():
    assert {kind.__name__ for kind in OURS} == set(privet.estimators.__all__)
    assert {kind.__name__ for kind in BASELINES} == set(privet.baselines.__all__)
    assert len(OURS) + len(BASELINES) == len(estimators())
    for kind in OURS:
        assert getattr(privet, kind.__name__) is kind


def test_the_command_line_has_every_learner_once():
    assert set(learners()) == {name_of(kind) for kind in OURS}
    for name, learner in learners().items():
        assert learner.name == name
        assert learner.classifier is not None or learner.regressor is not None
    with pytest.raises(ValueError, match="two classifiers with the name 'tree'"):
        register("tree")(type("Second", (privet.PrivateTreeClassifier,), {"__doc__": "Two."}))


def test_every_estimator_has_an_audit_case_by_its_name():
    audited = {type(case.estimator) for case in of_estimators()}
    assert audited == set(OURS)
    for case in of_estimators():
        assert case.learner == name_of(type(case.estimator))


def test_the_documents_list_every_learner():
    reference = (ROOT / "docs" / "api.md").read_text()
    for kind in estimators():
        home = "privet.baselines" if kind in BASELINES else "privet"
        assert f".. autoclass:: {home}.{kind.__name__}\n" in reference
    text = (ROOT / "docs" / "learners.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \(`--learner (.*?)\) \|", text, flags=re.MULTILINE)
    listed = {name: " ".join(names) for names in rows for name in re.findall("`(.*?)`", names[0])}
    assert set(listed) == {kind.__name__ for kind in OURS}
    for kind in OURS:
        assert re.search(rf"[` ]{name_of(kind)}\b", listed[kind.__name__])
    for document in ("README.md", "docs/learners.md", "docs/howto/command-line.md"):
        named = re.findall(r"--learner ([a-z0-9]+)", (ROOT / document).read_text())
        assert set(named) <= set(learners()), document


@by_name
def test_epsilon_and_schema_come_first(kind):
    assert list(inspect.signature(kind).parameters)[:2] == ["epsilon", "schema"]


@by_name
@pytest.mark.parametrize(
    ("low", "high"), [(1.7e15, 1.7e15 + 10), (1e16, 1e16 + 4), (1.0, float(np.nextafter(1.0, 2.0)))]
)
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
def test_few_doubles_lie_between_the_bounds(kind, low, high, alone):
    features = {"x": Numeric(low, high, bins=1)}
    if not alone:
        features |= {"z": Numeric(0, 1), "c": Categorical(["u", "v"])}
    goal = {"classes": [0, 1]} if "Classifier" in kind.__name__ else {"bounds": (0, 1)}
    schema = Schema(features, target="y", **goal)
    source = np.random.default_rng(0)
    x = source.choice([low, high, np.nan], 300)
    table = {"x": x, "z": source.random(300), "c": source.choice(["u", "v"], 300)}
    rows = [list(row) for row in zip(*(table[name] for name in schema.names), strict=True)]
    y = (x == high).astype(int)
    model = kind(epsilon=100.0, schema=schema, random_state=0).fit(rows, y)
    assert np.isfinite(np.asarray(model.predict(rows), dtype=float)).all()


class TestCriteria:
    def test_the_list(self):
        assert set(CRITERIA) == {"max", "gini", "clipped_entropy", "entropy", "sse", "sad"}
        for name, kind in CRITERIA.items():
            made = make_criterion(name, classes=3, n_max=100, steps=7)
            assert isinstance(made, Criterion)
            assert type(made) is kind
            assert made.name == name
            if made.statistic == "class_counts":
                made.check(3)

    @pytest.mark.parametrize(
        ("name", "need"), [("entropy", "n_max"), ("clipped_entropy", "classes"), ("sad", "steps")]
    )
    def test_what_it_needs_must_be_known(self, name, need):
        with pytest.raises(BudgetError, match=f"criterion='{name}' needs {need}"):
            make_criterion(name, **{need: None})
