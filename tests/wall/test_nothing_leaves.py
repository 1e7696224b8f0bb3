"""The wall at run time: exact numbers, rows, seeds and generators do not leave the room.

Exact numbers are *tainted*: every engine is made to return a subclass of ndarray that survives
arithmetic, so whatever is computed from the data without noise can be told from what was released.
Which answers and which estimators there are is found out, not listed: a new one is tested too.
"""

import copy
import dataclasses
import inspect
import json
import pickle
import types
import typing
import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import is_regressor

from privet import (
    Budget,
    DiffPID3Classifier,
    DiPriMeForestClassifier,
    DiPriMeTreeRegressor,
    PrivateAdditiveClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTable,
    PrivateTreeClassifier,
    PrivaTreeClassifier,
    Schema,
    TopDownClassifier,
    baselines,
    estimators,
    load,
)
from privet.criteria import Gini
from privet.datasets import PATIENTS, make_patients
from privet.engines import (
    Axis,
    Basis,
    BlockEngine,
    CellsHandle,
    Engine,
    Peaks,
    ScoresHandle,
    TreeLayout,
)
from privet.engines.blocks import Block
from privet.engines.memory import LocalBlocks
from privet.federation import FederatedTable, Party
from privet.privacy import DiscreteLaplace, SecureNoise, SeededNoise
from privet.tables import Gradients, Multiway, PrivateCells, Scores, View
from privet.tables import cells as wall

ROWS = 4_999  # a length that nothing else has
TABLE = pa.table(make_patients(ROWS, seed=11))
FEATURES = {name: PATIENTS.features[name] for name in PATIENTS.names if name != "days_in_hospital"}
DAYS = Schema(FEATURES, "days_in_hospital", bounds=(0, 30))


class Tainted(np.ndarray):
    """An array that was computed from the data."""


class TaintedNumber(int):
    """A number that was computed from the data."""


FORBIDDEN = (
    Tainted,
    TaintedNumber,
    BlockEngine,
    LocalBlocks,
    Block,
    CellsHandle,
    ScoresHandle,
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
        or (isinstance(thing, list | tuple | pa.Table) and len(thing) == ROWS)
        or (isinstance(thing, np.ndarray) and ROWS in thing.shape)
    ]


#: What an engine gives out that says nothing of its rows.
HARMLESS = (Schema, CellsHandle, ScoresHandle, Engine, bool, type(None))


def exact_answers():
    """Return the names of all that an engine can be asked, by what it says that it returns."""
    found = {}
    for name, member in vars(Engine).items():
        asked = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(asked):
            continue
        if typing.get_type_hints(asked)["return"] not in HARMLESS:
            found[name] = isinstance(member, property)
    return found


def taint(answer):
    """Mark all numbers of an answer."""
    if isinstance(answer, np.ndarray):
        return answer.view(Tainted)
    if isinstance(answer, int):
        return TaintedNumber(answer)
    if isinstance(answer, list | tuple):
        return type(answer)(map(taint, answer))
    if isinstance(answer, dict):
        return {key: taint(value) for key, value in answer.items()}
    if isinstance(answer, Iterator):
        return map(taint, answer)
    assert isinstance(answer, slice), f"what is a {type(answer).__name__}?"
    return answer


@pytest.fixture
def tainted(monkeypatch):
    """Taint every exact number that an engine gives out; return how often each was asked for."""
    asked = dict.fromkeys(exact_answers(), 0)
    for name, is_property in exact_answers().items():
        known = vars(BlockEngine)[name]

        def answer(self, *given, _name=name, _ask=known.fget if is_property else known, **options):
            asked[_name] += 1
            return taint(_ask(self, *given, **options))

        monkeypatch.setattr(BlockEngine, name, property(answer) if is_property else answer)
    return asked


@pytest.fixture
def view(monkeypatch):
    """Record all that a learner gets from its table, its cells and its scores."""
    seen = []
    for home in (PrivateCells, PrivateTable, Scores):
        for name, original in inspect.getmembers(home, inspect.isfunction):
            if name.startswith("_") and name != "__getitem__":
                continue

            def record(self, *arguments, _original=original, **options):
                answer = _original(self, *arguments, **options)
                assert not isinstance(answer, Iterator), "which could not be looked into"
                seen.append(answer)
                return answer

            monkeypatch.setattr(home, name, record)
    return seen


def check(model, view, tmp_path):
    """Look for leaks in all that a learner saw, and in all that can be published of a model."""
    assert leaks(*view) == []
    numbers = [thing for thing in reachable(*view) if isinstance(thing, np.ndarray)]
    assert all(type(array) is np.ndarray for array in numbers)
    assert leaks(model) == []
    assert leaks(pickle.loads(pickle.dumps(model))) == []
    model.save(tmp_path / "model.json")
    assert leaks(load(tmp_path / "model.json")) == []


def test_all_answers_of_engines_are_known():
    assert set(exact_answers()) == {
        "rows",
        "class_counts",
        "row_counts",
        "target_counts",
        "grid_counts",
        "histograms",
        "moments",
        "distance_counts",
        "outcome_counts",
        "error_sums",
        "slopes",
        "calibration",
        "places",
        "sides",
        "tree_rows",
        "tree_facts",
        "tree_sums",
    }


ESTIMATORS = [getattr(room, name) for room in (estimators, baselines) for name in room.__all__]
#: So that each of them grows something, and none takes long.
OPTIONS = {
    "PrivateBoostingClassifier": {"n_rounds": 3, "max_depth": 2},
    "PrivateBoostingRegressor": {"n_rounds": 3, "max_depth": 1, "epsilon": 10.0},
    "DiffPC45Classifier": {"max_depth": 3},
    "SulqID3Classifier": {"max_depth": 1, "epsilon": 8.0},
    "PrivateTreeClassifier": {"probability_share": 0.1},
}


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_and_its_learners_view_hold_nothing_exact(kind, tainted, view, tmp_path):
    schema = DAYS if is_regressor(kind()) else PATIENTS
    model = kind(schema=schema, **OPTIONS.get(kind.__name__, {})).fit(TABLE)
    assert len(view) > 2
    assert sum(count for name, count in tainted.items() if name != "rows") > 0
    check(model, view, tmp_path)


MORE = [
    PrivateBoostingClassifier(schema=PATIENTS, n_rounds=3, max_depth=1, delta=1e-6),
    PrivateBoostingClassifier(schema=PATIENTS, max_depth=2),
    PrivateBoostingClassifier(schema=PATIENTS, max_depth=1, delta=1e-6),
    PrivateBoostingClassifier(
        schema=PATIENTS, n_rounds=1, max_depth=1, epsilon=8.0, delta=1e-6, n_rows=ROWS
    ),
    PrivateAdditiveClassifier(schema=PATIENTS, delta=1e-6),
    PrivateBoostingRegressor(schema=DAYS, n_rounds=2, max_depth=2, epsilon=10.0, delta=1e-6),
    PrivaTreeClassifier(schema=PATIENTS, binning="quantile", max_depth=3),
    PrivaTreeClassifier(schema=PATIENTS, binning="joint-quantile", max_depth=2),
    PrivaTreeClassifier(schema=PATIENTS, split="histogram", max_depth=2),
    TopDownClassifier(schema=PATIENTS, split="rnm", max_depth=2),
    DiPriMeForestClassifier(schema=PATIENTS, variant="exp", partition=False, n_estimators=2),
    PrivateTreeClassifier(schema=PATIENTS, max_depth=2, test_share=0.2, test_by="sex"),
    PrivateBoostingRegressor(schema=DAYS, n_rounds=2, max_depth=1, test_share=0.5),
]


@pytest.mark.parametrize("estimator", MORE, ids=lambda e: f"{type(e).__name__}{MORE.index(e)}")
def test_other_options_hold_nothing_exact(estimator, tainted, view, tmp_path):
    check(estimator.fit(TABLE), view, tmp_path)


def test_trees_that_are_drawn_from_sums_hold_nothing_exact(tainted, view, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalBlocks, "gathers", False)
    model = PrivateTreeClassifier(schema=PATIENTS, max_depth=2).fit(TABLE)
    assert tainted["tree_sums"]
    assert tainted["tree_facts"]
    assert not tainted["tree_rows"]
    check(model, view, tmp_path)


@pytest.mark.parametrize("protocol", ["noisy-counts", "local-rnm", "secure-sum"])
def test_a_federation_gets_nothing_exact(protocol, tainted, tmp_path):
    """Parties in one process: what they answer goes through the wire, and nothing else does."""
    parties = [
        Party(f"p{k}", TABLE.slice(k * 2_500, 2_500), None, PATIENTS, Budget(50.0))
        for k in range(2)
    ]
    table = FederatedTable(parties, protocol=protocol)
    model = TopDownClassifier(20.0, max_depth=1, n_thresholds=3, test_share=0.5).fit(table)
    assert tainted["class_counts"]
    assert tainted["outcome_counts"]
    check(model, [], tmp_path)
    for party in parties:
        party.close()


@pytest.mark.filterwarnings("ignore::privet.PrivacyLeakWarning")
def test_between_them_the_fits_above_ask_all_there_is(tainted):
    """So that no answer is only said to be tainted."""
    for model in (
        PrivateTreeClassifier(schema=PATIENTS, max_depth=1),
        PrivaTreeClassifier(schema=PATIENTS, binning="quantile", max_depth=1),
        PrivateBoostingClassifier(schema=PATIENTS, n_rounds=1, max_depth=1),
        PrivateBoostingClassifier(schema=PATIENTS, delta=1e-6, n_rows=2_000),  # by slopes
        PrivateBoostingRegressor(schema=DAYS, n_rounds=1, max_depth=1, n_rows=ROWS),
        DiPriMeTreeRegressor(schema=DAYS, max_depth=1, calibration="published", n_rows=ROWS),
        DiPriMeForestClassifier(schema=PATIENTS, n_estimators=1, max_depth=1, test_share=0.2),
        DiPriMeTreeRegressor(schema=DAYS, max_depth=1, test_share=0.2),
    ):
        model.fit(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalBlocks, "gathers", False)
        PrivateTreeClassifier(schema=PATIENTS, max_depth=2).fit(TABLE)
    assert min(tainted.values()) > 0, tainted


@pytest.mark.parametrize("criterion", ["max", "gini", "clipped_entropy"])
def test_a_fitted_model_and_the_learners_view_hold_nothing_exact(
    tainted, view, criterion, tmp_path
):
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=3, criterion=criterion).fit(TABLE)
    assert len(view) > 10
    check(model, view, tmp_path)


def test_a_model_of_an_open_table_holds_nothing_exact(tainted, view):
    table = PrivateTable(TABLE, TABLE["readmitted"], PATIENTS, Budget(2.0))
    models = [kind(1.0).fit(table) for kind in (DiffPID3Classifier, PrivateTreeClassifier)]
    assert leaks(table, *models, *view) == []


def test_pickles_and_files_hold_nothing_exact(tainted, tmp_path):
    model = DiffPID3Classifier(schema=PATIENTS, max_depth=2).fit(TABLE)
    assert leaks(pickle.loads(pickle.dumps(model))) == []
    model.save(tmp_path / "model.json")
    assert leaks(load(tmp_path / "model.json")) == []
    names = set(json.loads((tmp_path / "model.json").read_text()))
    assert names == {"format", "version", "learner", "privacy", "record", "schema", "tree"}


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
    session = table.session(Budget(0.5))
    assert leaks(table, cells, scores, session, session.root()) == []
    for handle in (table, cells, scores, session):
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


def asked_of(engine, name):
    """Return what an engine is given with each of its questions."""
    cells, scores = engine.root(View.of_bins(PATIENTS)), engine.start_scores((0.0,))
    layout = TreeLayout(
        (0,), 1, (np.arange(PATIENTS.sizes[0]),), np.array([0, PATIENTS.sizes[0]]), 2, False
    )
    axis, zeros = Axis(0, 0, 1), np.zeros(PATIENTS.sizes[0], dtype=np.int64)
    return {
        "class_counts": (cells,),
        "row_counts": (cells,),
        "target_counts": (cells, 1),
        "grid_counts": (0,),
        "histograms": (cells, [0]),
        "moments": (cells, scores, 1.0),
        "distance_counts": (cells, scores, (0.5, 1.0)),
        "slopes": (cells, scores, Basis(((0, Peaks(1, zeros)),)), 1, 1),
        "calibration": (cells, scores, 0.0, 1.0),
        "outcome_counts": (cells, scores, None),
        "error_sums": (cells, scores),
        "places": (cells, [axis]),
        "sides": (cells, [axis], np.zeros(1, dtype=np.int32), None),
        "tree_rows": (cells, 0, 1, scores, 1.0),
        "tree_facts": (cells, 0, scores, 1.0),
        "tree_sums": (cells, 0, layout, [(0,)], scores, 1.0),
    }[name]


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
        monkeypatch.setattr(PrivateCells, "_release", lambda self, counts, mechanisms: counts)
        model = DiffPID3Classifier(schema=PATIENTS, max_depth=1).fit(TABLE)
        assert leaks(*view) != []
        assert model is not None

    def test_an_exact_count_on_the_model(self, tainted):
        model = DiffPID3Classifier(schema=PATIENTS, max_depth=1).fit(TABLE)
        counts = np.arange(3).view(Tainted)
        object.__setattr__(model.tree_, "note", {"deep": [counts + 1]})
        assert leaks(model) != []

    @pytest.mark.parametrize("name", [name for name in exact_answers() if name != "rows"])
    def test_an_answer_of_an_engine(self, name, tainted):
        table = PrivateTable(TABLE, None, PATIENTS, Budget(1.0))
        engine, root = wall.behind_table[table].engine, table.root()
        options = {"pure": True} if name == "moments" else {}
        root.note = getattr(engine, name)(*asked_of(engine, name), **options)
        if isinstance(root.note, Iterator):
            root.note = list(root.note)
        assert leaks(root) != []

    def test_the_number_of_rows(self, tainted):
        table = PrivateTable(TABLE, None, PATIENTS, Budget(1.0))
        assert leaks(wall.behind_table[table].engine.rows) != []

    def test_an_engine_and_its_handles(self):
        table = PrivateTable(TABLE, None, PATIENTS, Budget(1.0))
        engine, root = wall.behind_table[table].engine, table.root()
        for hidden in (engine, engine._blocks, engine._blocks._blocks[0], wall.behind_cells[root]):
            assert leaks([hidden]) != []

    def test_codes_by_feature(self):
        assert leaks(np.zeros((3, ROWS), dtype=np.uint8)) != []

    def test_rows_in_a_closure(self):
        rows = np.zeros(ROWS)
        assert leaks(lambda: rows) != []

    def test_a_generator_in_a_dataclass(self):
        Holder = dataclasses.make_dataclass("Holder", ["inside"])
        assert leaks(Holder(np.random.default_rng(1))) != []
