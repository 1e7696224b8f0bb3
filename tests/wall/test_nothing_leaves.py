"""The wall at run time: exact numbers, rows, seeds and generators do not leave the room.

Exact numbers are *tainted*: the engine is made to return a subclass of ndarray that survives
arithmetic, so whatever is computed from the data without noise can be told from what was released.
"""

import copy
import dataclasses
import json
import pickle
import types
import weakref

import numpy as np
import pyarrow as pa
import pytest
from privet.tables.memory import MemoryEngine

from privet import (
    Budget,
    DiffPID3Classifier,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTable,
    PrivateTreeClassifier,
    Schema,
    load,
)
from privet.criteria import Gini
from privet.datasets import PATIENTS, make_patients
from privet.privacy import DiscreteLaplace, SecureNoise, SeededNoise
from privet.tables import Cells, Gradients, Multiway, Scores, View

ROWS = 4_999  # a length that nothing else has


class Tainted(np.ndarray):
    """An array that was computed from the data."""


FORBIDDEN = (
    Tainted,
    MemoryEngine,
    SecureNoise,
    SeededNoise,
    np.random.Generator,
    np.random.RandomState,
)


def reachable(*roots):
    """Yield all objects that attributes, containers and closures lead to."""
    seen, waiting = set(), list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | weakref.ref):
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += list(thing)
        if isinstance(thing, types.FunctionType):
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()]
        if isinstance(thing, types.MethodType):
            waiting += [thing.__self__, thing.__func__]
        if isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)
        if not isinstance(thing, types.FunctionType):
            waiting += list(getattr(thing, "__dict__", {}).values())
        for kind in type(thing).__mro__:
            for slot in getattr(kind, "__slots__", ()):
                if hasattr(thing, slot):
                    waiting.append(getattr(thing, slot))


def leaks(*roots):
    """Return what must not be there."""
    return [
        thing
        for thing in reachable(*roots)
        if isinstance(thing, FORBIDDEN)
        or (isinstance(thing, np.ndarray | list | tuple | pa.Table) and len(thing) == ROWS)
    ]


@pytest.fixture
def tainted(monkeypatch):
    """Taint every exact number that the engine gives out."""

    def taint(name, wrap):
        original = getattr(MemoryEngine, name)
        monkeypatch.setattr(MemoryEngine, name, lambda *a, **k: wrap(original(*a, **k)))

    taint("class_counts", lambda counts: counts.view(Tainted))
    taint("grid_counts", lambda counts: counts.view(Tainted))
    taint("moments", lambda sums: sums.view(Tainted))
    taint("start_scores", lambda scores: scores.view(Tainted))
    taint(
        "histograms",
        lambda batches: (
            (cells, {f: counts.view(Tainted) for f, counts in tables.items()})
            for cells, tables in batches
        ),
    )


@pytest.fixture
def view(monkeypatch):
    """Record all that a learner gets from its cells."""
    seen = []
    questions = ["noisy_counts", "noisy_class_counts", "choose_splits", "choose_features"]
    questions += ["draw_trees", "noisy_gradients"]
    free = ["take", "split"]
    at_table = ["quantiles", "start_scores"]
    for home, name in [
        *((Cells, name) for name in questions + free),
        *((PrivateTable, name) for name in at_table),
        (Scores, "add"),
    ]:
        original = getattr(home, name)

        def record(self, *arguments, _original=original, **options):
            answer = _original(self, *arguments, **options)
            seen.append(answer)
            return answer

        monkeypatch.setattr(home, name, record)
    return seen


TABLE = pa.table(make_patients(ROWS, seed=11))


def test_a_drawn_tree_and_its_learners_view_hold_nothing_exact(tainted, view):
    model = PrivateTreeClassifier(schema=PATIENTS, probability_share=0.1).fit(TABLE)
    assert len(view) > 2
    assert leaks(model) == []
    assert leaks(*view) == []
    numbers = [thing for thing in reachable(*view) if isinstance(thing, np.ndarray)]
    assert all(type(array) is np.ndarray for array in numbers)


FEATURES = {name: PATIENTS.features[name] for name in PATIENTS.names if name != "days_in_hospital"}
DAYS = Schema(FEATURES, "days_in_hospital", bounds=(0, 30))


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateBoostingClassifier(schema=PATIENTS, n_rounds=3, max_depth=2),
        PrivateBoostingClassifier(schema=PATIENTS, n_rounds=3, max_depth=1, delta=1e-6),
        PrivateBoostingClassifier(schema=PATIENTS, max_depth=2),
        PrivateBoostingRegressor(schema=DAYS, n_rounds=3, max_depth=1, epsilon=10.0),
        PrivateAdditiveClassifier(schema=PATIENTS, delta=1e-6),
        PrivateAdditiveRegressor(schema=DAYS),
    ],
    ids=lambda e: f"{type(e).__name__}-{e.epsilon}-{e.delta}-{getattr(e, 'n_rounds', '')}",
)
def test_added_scores_and_their_learners_view_hold_nothing_exact(
    estimator, tainted, view, tmp_path
):
    model = estimator.fit(TABLE)
    assert len(view) > 3
    assert leaks(model) == []
    assert leaks(*view) == []
    numbers = [thing for thing in reachable(*view) if isinstance(thing, np.ndarray)]
    assert all(type(array) is np.ndarray for array in numbers)
    assert leaks(pickle.loads(pickle.dumps(model))) == []
    model.save(tmp_path / "model.json")
    assert leaks(load(tmp_path / "model.json")) == []


@pytest.mark.parametrize("criterion", ["max", "gini", "clipped_entropy"])
def test_a_fitted_model_and_the_learners_view_hold_nothing_exact(tainted, view, criterion):
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=3, criterion=criterion).fit(TABLE)
    assert len(view) > 10
    assert leaks(model) == []
    assert leaks(*view) == []


def test_pickles_and_files_hold_nothing_exact(tainted, tmp_path):
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=2).fit(TABLE)
    assert leaks(pickle.loads(pickle.dumps(model))) == []
    model.save(tmp_path / "model.json")
    assert leaks(load(tmp_path / "model.json")) == []
    names = set(json.loads((tmp_path / "model.json").read_text()))
    assert names == {"format", "version", "learner", "privacy", "schema", "tree"}


@pytest.mark.filterwarnings("ignore:random_state is fixed")
def test_a_seed_is_not_published(tmp_path):
    seed = 987_654_321
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=2, random_state=seed).fit(TABLE)
    model.save(tmp_path / "model.json")
    assert str(seed) not in (tmp_path / "model.json").read_text()
    assert leaks(model) == []
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert seed not in [thing for thing in reachable(fitted) if isinstance(thing, int)]


def test_handles_lead_nowhere_and_cannot_be_copied(tainted):
    table = PrivateTable(TABLE, TABLE["readmitted"], PATIENTS, Budget(1.0))
    cells, scores = table.root(), table.start_scores((0.25,))
    scores.add(cells, np.array([[0.5]]))
    assert leaks(table, cells, scores) == []
    for handle in (table, cells, scores):
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled"):
                leave(handle)
        assert str(ROWS) not in repr(handle)


def test_the_shape_of_an_answer_depends_on_the_schema_alone():
    allowed = np.ones((1, len(PATIENTS.names)), dtype=bool)
    shapes = []
    for rows in (0, 1, 300):
        part = TABLE.slice(0, rows)
        table = PrivateTable(part, part["readmitted"], PATIENTS, Budget(10.0))
        cells = table.root()
        split = Multiway().split(0, 0, 0, View.of_bins(PATIENTS))
        children = cells.split([split])
        scores = table.start_scores((0.0,))
        found = children.noisy_gradients(scores, 1)
        assert isinstance(found, Gradients)
        shapes.append(
            (
                cells.noisy_counts(1).shape,
                cells.noisy_class_counts(1).shape,
                len(cells.choose_splits(Multiway(), Gini(), 1, allowed)),
                len(children),
                found.pull.shape,
                found.curvature.shape,
                len(children.draw_trees(1, 1, scores=scores)),
                scores.bound,
                children.noisy_class_counts(1).shape,
            )
        )
    assert shapes[0] == shapes[1] == shapes[2]
    assert shapes[0][-1] == (PATIENTS.sizes[0], 2)


class TestTheWalkerSeesLeaks:
    """The checks above can fail."""

    def test_gradients_without_noise(self, tainted, view, monkeypatch):
        monkeypatch.setattr(DiscreteLaplace, "release", lambda self, exact, noise: exact)
        table = PrivateTable(TABLE, TABLE["readmitted"], PATIENTS, Budget(1.0))
        table.root().noisy_gradients(table.start_scores((0.0,)), 1)
        assert leaks(*view) != []

    def test_scores_on_their_handle(self, tainted):
        table = PrivateTable(TABLE, TABLE["readmitted"], PATIENTS, Budget(1.0))
        scores = table.start_scores((0.0,))
        scores.known = scores._of(table)
        assert leaks(scores) != []

    def test_an_answer_without_noise(self, tainted, view, monkeypatch):
        monkeypatch.setattr(Cells, "_release", lambda self, counts, mechanisms: counts)
        model = DiffPID3Classifier(schema=PATIENTS, max_depth=1).fit(TABLE)
        assert leaks(*view) != []
        assert model is not None

    def test_an_exact_count_on_the_model(self, tainted):
        model = DiffPID3Classifier(schema=PATIENTS, max_depth=1).fit(TABLE)
        counts = np.arange(3).view(Tainted)
        object.__setattr__(model.tree_, "note", {"deep": [counts + 1]})
        assert leaks(model) != []

    def test_rows_in_a_closure(self):
        rows = np.zeros(ROWS)
        assert leaks(lambda: rows) != []

    def test_a_generator_in_a_dataclass(self):
        Holder = dataclasses.make_dataclass("Holder", ["inside"])
        assert leaks(Holder(np.random.default_rng(1))) != []
