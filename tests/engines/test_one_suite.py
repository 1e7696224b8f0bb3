"""One suite for all engines: the same rows give the same whole numbers, wherever the rows are.

Random walks ask every question of the protocol and compare each answer with that of a slow engine
in plain Python. Seeded models of every learner are compared byte for byte with the golden files.
Engines are those of :data:`engines.ENGINES`.
"""

from __future__ import annotations

import inspect
import itertools
import json
import pickle
import weakref
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from privet import Budget, Categorical, Numeric, PrivateTable, PrivateTreeClassifier, Schema
from privet.engines import (
    Axis,
    Basis,
    BlockEngine,
    Engine,
    Peaks,
    Split,
    Tabled,
    TreeLayout,
    View,
    _kernels,
)
from privet.engines import engine as engine_module
from privet.engines.blocks import Block
from privet.engines.memory import LocalBlocks
from privet.errors import DataError, PrivacyLeakWarning
from privet.schema import Date, Integer
from privet.tables import private as wall
from privet.tables import tree_sums

from ..golden.seeded import CASES, FOLDER, PROCESSOR, check, processor, write  # noqa: TID252
from .engines import ENGINES, cut
from .slow import SlowEngine

EACH_ENGINE = pytest.mark.parametrize("name", ENGINES)
FEATURES = {
    "dose": Numeric(-40, 60, bins=7),
    "share": Numeric(0, 1, edges=[0.1, 0.5, 0.75]),
    "one": Numeric(0, 1, bins=1),
    "visits": Integer(0, 12),
    "since": Date("2019-01-01", "2024-12-31"),
    "ward": Categorical(["a", "b", "c", "d"]),
    "sex": Categorical(["f", "m"]),
}
SCHEMAS = {
    "two": Schema(FEATURES, "y", classes=["no", "yes"]),
    "three": Schema(FEATURES, "y", classes=["no", "perhaps", "yes"]),
    "number": Schema(FEATURES, "y", bounds=(-10, 30)),
}
KINDS = pytest.mark.parametrize("kind", SCHEMAS)


def make_rows(kind, rows, seed=0):
    """Return a table with everything that a record can be wrong in."""
    rng = np.random.default_rng(seed)

    def some(values, missing=0.1):
        return [None if rng.random() < missing else value for value in values]

    columns = {
        "dose": rng.choice([-50.0, -40, -0.0, 0, 1e-9, 3, 17.5, 60, 99, np.inf, np.nan], rows),
        "share": some(rng.random(rows).tolist()),
        "one": rng.random(rows),
        "visits": some(rng.integers(-2, 15, rows).tolist()),
        "since": some([date(2018, 6, 1) + timedelta(int(d)) for d in rng.integers(0, 2600, rows)]),
        "ward": some(rng.choice(list("abcdx"), rows).tolist()),
        "sex": some(rng.choice(["f", "m"], rows).tolist()),
    }
    if kind == "number":
        columns["y"] = some(rng.uniform(-15, 35, rows).tolist())
    else:
        columns["y"] = some(rng.choice(["no", "perhaps", "yes", "unheard of"], rows).tolist())
    return pa.table(columns)


# Questions ---------------------------------------------------------------------------------------


class Walk:
    """Asks two engines the same things, and compares what they say."""

    def __init__(self, one, other, seed):
        self.engines = one, other
        self.schema = other.schema
        self.rng = np.random.default_rng(seed)
        #: Cells and scores of both engines.
        self.cells = [self.start()]
        start = self.rng.normal(size=other.loss.columns).tolist()
        self.scores = tuple(engine.start_scores(start) for engine in self.engines)
        self.asked = set()

    def start(self):
        """Return the whole table, or its parts, seen through a view of some kind."""
        view, key = self.view(), int(self.rng.integers(2**63))
        if self.rng.random() < 0.5:
            return tuple(engine.root(view) for engine in self.engines)
        count = int(self.rng.integers(1, 5))
        return tuple(engine.parts(view, count, key) for engine in self.engines)

    def view(self):
        kind = self.rng.integers(4)
        if kind == 0:
            return View.of_bins(self.schema)
        if kind == 1:
            return View.of_grid(self.schema)
        most = 6 if kind == 2 else 300
        cuts = []
        for feature in self.schema.features.values():
            if isinstance(feature, Numeric):
                grid = feature.grid
                chosen = self.rng.choice(len(grid), min(most, len(grid)), replace=False)
                cuts.append(tuple(np.sort(grid[chosen]).tolist()))
            else:
                cuts.append(None)
        return View(self.schema, tuple(cuts))

    def splits(self, cells):
        found = []
        for _ in range(cells.size):
            feature = int(self.rng.integers(len(cells.view.sizes)))
            size = cells.view.sizes[feature]
            most = int(self.rng.integers(1, min(size, 4) + 1))
            children = [*range(most), *self.rng.integers(0, most, size - most).tolist()]
            self.rng.shuffle(children)
            found.append(Split(feature, tuple(children)))
        return found

    def axes(self, cells):
        found = []
        for _ in range(cells.size):
            feature = int(self.rng.integers(len(cells.view.sizes)))
            size = cells.view.sizes[feature]
            places = self.rng.permutation(size) if self.rng.random() < 0.4 else None
            found.append(Axis(feature, 0, size - 1, places))
        return found

    def layout(self, cells):
        """Number the codes of some features, the last of each together."""
        chosen = self.rng.permutation(len(cells.view.sizes))[:3]
        numbers, first = [], [0]
        for feature in chosen:
            size = cells.view.sizes[feature]
            kept = min(size, 9)
            numbers.append((first[-1] + np.minimum(np.arange(size), kept - 1)).astype(np.uint16))
            first.append(first[-1] + kept)
        return chosen, tuple(numbers), np.array(first, dtype=np.int64)

    def step(self):
        """Do something that only says which cells are meant."""
        place = int(self.rng.integers(len(self.cells)))
        pair = self.cells[place]
        kind = self.rng.integers(5)
        if kind == 0 or pair[1].size > 40:
            made = self.start()
        elif kind == 1 and pair[1].size:
            most = int(self.rng.integers(0, pair[1].size + 1))
            chosen = self.rng.permutation(pair[1].size)[:most]
            made = tuple(e.take(c, chosen) for e, c in zip(self.engines, pair, strict=True))
        elif kind == 2 and self.rng.random() < 0.5:
            self.scores = tuple(
                e.add_scores(s, c, self.curves(pair[1]))
                for e, s, c in zip(self.engines, self.scores, pair, strict=True)
            )
            return
        elif kind == 2:
            values = self.rng.normal(size=(pair[1].size, self.scores[1].shape[1]))
            self.scores = tuple(
                e.add_scores(s, c, values)
                for e, s, c in zip(self.engines, self.scores, pair, strict=True)
            )
            return
        else:
            splits = self.splits(pair[1])
            made = tuple(e.split(c, splits) for e, c in zip(self.engines, pair, strict=True))
        assert made[0].size == made[1].size
        self.cells.append(made)
        if len(self.cells) > 3:
            del self.cells[int(self.rng.integers(3))]

    def ask(self, question):
        """Ask both engines a question of the protocol, and compare."""
        self.asked.add(question)
        pair = self.cells[int(self.rng.integers(len(self.cells)))]
        getattr(self, f"ask_{question}")(question, pair)

    def answers(self, question, pair, *given, **options):
        return [
            getattr(engine, question)(cells, *given, **options)
            for engine, cells in zip(self.engines, pair, strict=True)
        ]

    def same(self, one, other):
        assert isinstance(one, np.ndarray)
        assert one.dtype.kind in "iu"
        assert one.shape == other.shape
        assert np.array_equal(one, other)

    def steps(self):
        """Return how finely targets are seen; None are classes."""
        if self.schema.classes is not None or self.rng.random() < 0.3:
            return None
        return int(self.rng.choice([1, 16, 1024]))

    def reach(self):
        return 0.4 if self.schema.classes is None else 20.0

    def ask_class_counts(self, question, pair):
        self.same(*self.answers(question, pair))

    def ask_target_counts(self, question, pair):
        if self.schema.classes is None:
            self.same(*self.answers(question, pair, int(self.rng.choice([1, 128, 70_000]))))

    def ask_grid_counts(self, question, pair):
        del pair
        numbers = [j for j, f in enumerate(self.schema.features.values()) if isinstance(f, Numeric)]
        j = int(self.rng.choice(numbers))
        for number in (j, None) if self.schema.classes is None else (j,):
            self.same(*(getattr(engine, question)(number) for engine in self.engines))

    def ask_histograms(self, question, pair):
        width = len(self.schema.names)
        features = self.rng.permutation(width)[: self.rng.integers(1, width + 1)].tolist()
        one, other = (list(found) for found in self.answers(question, pair, features, self.steps()))
        if not pair[1].size:
            assert one == []
            return
        ends = [(batch.start, batch.stop) for batch, _ in one]
        assert list(itertools.chain(*ends)) == sorted(itertools.chain(*ends))
        assert ends[0][0] == 0
        assert ends[-1][1] == pair[1].size
        for j in features:
            joined = np.concatenate([found[j] for _, found in one])
            self.same(joined, other[0][1][j])

    def ask_moments(self, question, pair):
        found = [
            getattr(engine, question)(cells, scores, self.reach(), pure=pure)
            for pure in (True, False)
            for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
        ]
        self.same(*found[:2])
        self.same(*found[2:])

    def ask_distance_counts(self, question, pair):
        if self.schema.classes is None:
            self.same(
                *(
                    getattr(engine, question)(cells, scores, (0.125, 0.5, 0.75, 1.0))
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def curves(self, cells):
        """Return values by the codes of some features, always the same for the same cells."""
        rng = np.random.default_rng(cells.size)
        width = self.scores[1].shape[1]
        return tuple((j, rng.normal(size=(cells.view.sizes[j], width))) for j in (5, 0))

    def basis(self, cells):
        """Return functions of some features, and sometimes of the cells."""
        features = []
        for j in self.rng.permutation(len(cells.view.sizes))[:3].tolist():
            size = cells.view.sizes[j]
            if self.rng.random() < 0.5:
                features.append((j, Peaks.of(1.4, self.rng.random(size))))
            else:
                features.append((j, Tabled.of(self.rng.normal(size=(size, 3)))))
        of_cells = Tabled.of(self.rng.normal(size=(cells.size, 2))) if cells.size else None
        return Basis(tuple(features), of_cells if self.rng.random() < 0.5 else None)

    def ask_slopes(self, question, pair):
        basis = self.basis(pair[1])
        for longest in (700, 4_000):
            self.same(
                *(
                    getattr(engine, question)(cells, scores, basis, 40_000, longest)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_calibration(self, question, pair):
        if len(self.schema.classes or ()) == 2:
            self.same(
                *(
                    getattr(engine, question)(cells, scores, 0.3, 1.7)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_places(self, question, pair):
        one, other = self.answers(question, pair, self.axes(pair[1]))
        self.same(one[0], other[0])
        self.same(one[1], other[1])

    def ask_sides(self, question, pair):
        axes = self.axes(pair[1])
        middle = np.array([self.rng.integers(axis.last + 1) for axis in axes], dtype=np.int32)
        self.same(*self.answers(question, pair, axes, middle, self.steps()))

    def weighted(self):
        """Return scores of both engines, or none: then classes weigh one."""
        if self.schema.classes is None or self.rng.random() < 0.5:
            return self.scores
        return None, None

    def ask_tree_rows(self, question, pair):
        if not self.engines[0].gathers:
            return
        size = pair[1].size
        start = int(self.rng.integers(size + 1))
        stop = int(self.rng.integers(start, size + 1))
        one, other = (
            getattr(engine, question)(cells, start, stop, scores, self.reach())
            for engine, cells, scores in zip(self.engines, pair, self.weighted(), strict=True)
        )
        assert len(one) == len(other) == stop - start
        for (codes, labels, weights), expected in zip(one, other, strict=True):
            rows = zip(codes.T.tolist(), labels.tolist(), weights.tolist(), strict=True)
            found = sorted((tuple(code), label, weight) for code, label, weight in rows)
            assert found == expected

    def ask_tree_facts(self, question, pair):
        self.tree(question, pair, lambda cells: ())

    def ask_tree_sums(self, question, pair):
        chosen, numbers, first = self.layout(pair[1])
        labels = self.engines[1].loss.labels if self.schema.classes is None else None
        labels = labels or len(self.schema.classes)
        upper = int(self.rng.integers(1, len(chosen) + 1))
        wide = bool(self.rng.integers(2))
        order = tuple(chosen.tolist())
        layout = TreeLayout(order, upper, numbers, first, labels, wide)
        of = layout.margins(3)
        some = [of[k] for k in self.rng.integers(len(of), size=2)]
        for margins in (of, tuple(dict.fromkeys(some))):
            self.tree(question, pair, lambda cells, given=margins: (layout, given))

    def tree(self, question, pair, given):
        if not pair[1].size:
            return
        cell = int(self.rng.integers(pair[1].size))
        one, other = (
            getattr(engine, question)(cells, cell, *given(cells), scores, self.reach())
            for engine, cells, scores in zip(self.engines, pair, self.weighted(), strict=True)
        )
        if isinstance(other, dict):
            assert list(one) == list(other)
            one, other = (list(found.values()) for found in (one, other))
        else:
            one, other = [one], [other]
        for mine, expected in zip(one, other, strict=True):
            self.same(mine, expected)


#: All that an engine can be asked about its rows, but how many there are.
FREE = {"close", "root", "parts", "take", "split", "start_scores", "add_scores"}
QUESTIONS = [
    name
    for name, member in inspect.getmembers(Engine, inspect.isfunction)
    if not name.startswith("_") and name not in FREE
]


@EACH_ENGINE
@KINDS
@pytest.mark.parametrize("rows", [0, 1, 150], ids=lambda rows: f"{rows} rows")
def test_every_question_has_the_same_answer_everywhere(name, kind, rows):
    for seed in range(2 if rows else 1):
        table, schema = make_rows(kind, rows, seed), SCHEMAS[kind]
        engine = ENGINES[name](table, None, schema)
        assert isinstance(engine, Engine)
        assert engine.schema == schema
        assert engine.rows == rows
        walk = Walk(engine, SlowEngine(table, None, schema), seed)
        for _ in range(4):
            for question in QUESTIONS:
                walk.step()
                walk.ask(question)
        assert walk.asked == set(QUESTIONS)
        engine.close()


def ask_often(walk, question):
    """Ask often enough that not all ranges of cells that are asked for are empty."""
    for _ in range(20):
        walk.ask(question)


def test_a_wrong_answer_is_seen():
    """The comparison can fail: some blocks are not asked."""
    table = make_rows("two", 150)
    engine = ENGINES["blocks"](table, None, SCHEMAS["two"])
    engine._blocks._blocks = engine._blocks._blocks[:-3]
    for question in QUESTIONS:
        if question in {"target_counts", "distance_counts"}:
            continue  # of numbers
        walk = Walk(engine, SlowEngine(table, None, SCHEMAS["two"]), 0)
        view = View.of_bins(SCHEMAS["two"])
        walk.cells = [tuple(e.root(view) for e in walk.engines)]
        with pytest.raises(AssertionError):
            ask_often(walk, question)


@EACH_ENGINE
@pytest.mark.parametrize("column", [False, True], ids=["by name", "given"])
def test_the_target_is_a_column_or_given(name, column):
    table = make_rows("two", 60)
    target = table["y"] if column else None
    given = table.drop_columns("y") if column else table
    engine = ENGINES[name](given, target, SCHEMAS["two"])
    slow = SlowEngine(table, None, SCHEMAS["two"])
    view = View.of_bins(SCHEMAS["two"])
    counts = engine.class_counts(engine.root(view))
    assert counts.tolist() == slow.class_counts(slow.root(view)).tolist()


@EACH_ENGINE
def test_old_cells_can_be_asked_again(name):
    """Whatever was asked in between: cells are what they are for as long as somebody has them."""
    table = make_rows("three", 200)
    engine = ENGINES[name](table, None, SCHEMAS["three"])
    view, other = View.of_bins(SCHEMAS["three"]), View.of_grid(SCHEMAS["three"])
    root = engine.root(view)
    first = engine.split(root, [Split(6, (0, 1, 2))])
    before = engine.class_counts(first)
    del root
    for _ in range(3):
        below = engine.split(first, [Split(5, (0, 1, 2, 3, 4))] * 3)
        assert engine.class_counts(below).reshape(3, 5, 3).sum(axis=1).tolist() == before.tolist()
        engine.class_counts(engine.root(other))
        assert engine.class_counts(first).tolist() == before.tolist()


@EACH_ENGINE
def test_a_table_can_be_opened_by_its_engine(name):
    """With the schema and the target that it has."""
    table, schema = make_rows("two", 60), SCHEMAS["two"]
    engine = ENGINES[name](table, None, schema)
    with pytest.warns(PrivacyLeakWarning, match="infinite"):
        opened = PrivateTable(engine, None, None, Budget(float("inf")))
    counts = opened.root().noisy_class_counts(float("inf"))
    slow = SlowEngine(table, None, schema)
    assert counts.tolist() == slow.class_counts(slow.root(View.of_bins(schema))).tolist()
    with pytest.raises(DataError, match="give None for both"):
        PrivateTable(engine, None, schema, Budget(1.0))


# Learners ----------------------------------------------------------------------------------------

ALIKE = json.loads((FOLDER / PROCESSOR).read_text()) == processor()
#: Of every learner something, and of every question: short fits. The others are marked.
FEW = [
    "topdown_depth",
    "topdown_max",
    "topdown_rnm_max",
    "topdown_array",
    "sulq_four",
    "diffpid3_four_gini",
    "diffpid3_entropy",
    "diffpc45_four_max",
    "diffpc45_unpruned",
    "privatree",
    "privatree_four",
    "privatree_quantile_7",
    "privatree_joint_quantile_7",
    "privatree_histogram_four",
    "privatree_ordered_four",
    "tree_depth_1",
    "tree_depth_2",
    "tree_four",
    "tree_flags",
    "tree_unmerged",
    "tree_wide_little",
    "regression_tree_depth",
    "regression_tree_sad",
    "regression_tree_sse",
    "boosting_four",
    "boosting_delta_four",
    "boosting_unmerged",
    "boosting_number_depth",
    "boosting_number_delta",
    "additive_four_pure",
    "additive_number_pure",
    "diprime_classes_flip",
    "diprime_number_exp",
    "diprime_classes_uniform_published",
    "diprime_tree_number_flip",
    "diprime_tree_classes",
    "bdpt_four",
    "dpgdf_forest",
    "patil_singh_parts",
    "patil_singh_number_parts",
    "fletcher_islam_unpruned",
    "random_trees_classes_parts",
    "random_trees_number_parts",
]


def test_the_few_are_of_every_learner():
    whole = {case.make for case in CASES.values() if case.parties is None}
    assert {CASES[name].make for name in FEW} == whole


@EACH_ENGINE
@pytest.mark.parametrize(
    "case",
    [
        case if case in FEW else pytest.param(case, marks=pytest.mark.engines)
        for case in CASES
        if CASES[case].parties is None
    ],
)
def test_models_are_the_same_byte_for_byte(name, case, monkeypatch, tmp_path):
    made = []

    def make(table, target, schema):
        made.append(ENGINES[name](table, target, schema))
        return made[-1]

    monkeypatch.setattr(wall, "memory_engine", make)
    write(CASES[case], tmp_path / "model.json")
    assert len(made) == 1
    found = (tmp_path / "model.json").read_bytes()
    check(case, (FOLDER / f"{case}.json").read_bytes(), found, alike=ALIKE)


@pytest.mark.filterwarnings("ignore:random_state is fixed")
def test_sums_are_asked_for_where_rows_stay_apart(monkeypatch):
    asked = []
    for name in ("tree_rows", "tree_facts", "tree_sums"):
        original = getattr(BlockEngine, name)

        def watch(self, *given, _name=name, _original=original):
            asked.append(_name)
            return _original(self, *given)

        monkeypatch.setattr(BlockEngine, name, watch)
    monkeypatch.setattr(wall, "memory_engine", ENGINES["sums"])
    rows = make_rows("two", 300)
    PrivateTreeClassifier(4.0, SCHEMAS["two"], max_depth=3, random_state=0).fit(rows)
    assert set(asked) == {"tree_facts", "tree_sums"}


@pytest.mark.filterwarnings("ignore:random_state is fixed")
@KINDS
@pytest.mark.parametrize("upper", [None, [(5, 2, 0)]], ids=["all", "some"])
@pytest.mark.parametrize("rows", [0, 300])
def test_trees_are_the_same_however_their_sums_are_made(kind, upper, rows, monkeypatch):
    """Few records, all sums at once, several questions, or sums that are asked for again."""
    questions = []
    ask = LocalBlocks.ask

    def watch(self, question, forget):
        questions.append(type(question).__name__)
        return ask(self, question, forget)

    monkeypatch.setattr(LocalBlocks, "ask", watch)
    table, schema = make_rows(kind, rows), SCHEMAS[kind]
    drawn, asked = [], []
    for name, held, at_once in (
        ("memory", 0, 2**25),
        ("memory", 2**27, 2**25),
        ("sums", 2**27, 2**25),
        ("sums", 2**27, 200),
        ("sums", 0, 2**25),
    ):
        monkeypatch.setattr(tree_sums, "MOST_SUMS", held)
        monkeypatch.setattr(engine_module, "MAX_COUNTS", at_once)
        engine = ENGINES[name](table, None, schema)
        mine = PrivateTable(engine, None, None, Budget(50), random_state=1)
        scores = None if kind != "number" else mine.start_scores((0.3,))
        questions.clear()
        drawn.append(
            [
                mine.root().draw_trees(depth, 10, upper=upper, scores=scores, reach=0.5)
                for depth in (1, 2, 3, 3)
            ]
        )
        asked.append(questions.count("TreeSums"))
    assert all(trees == drawn[0] for trees in drawn)
    assert asked[:3] == [0, 0, 4]  # one question a draw
    assert min(asked[3:]) > 4 or not rows


# What is remembered ------------------------------------------------------------------------------


class Counting:
    """A room that knows how many of its arrays are still there."""

    def __init__(self):
        self.alive = weakref.WeakSet()
        self.made = 0

    def __call__(self, shape, dtype):
        self.made += 1
        found = np.empty(shape, dtype).view(_Kept)
        self.alive.add(found)
        return found

    @property
    def bytes(self):
        return sum(array.nbytes for array in self.alive)


class _Kept(np.ndarray):
    __hash__ = object.__hash__

    def __eq__(self, other):  # for the set alone, which knows arrays by who they are
        return self is other if isinstance(other, _Kept) else np.ndarray.__eq__(self, other)


def counted(kind="two", rows=400):
    """Return an engine in blocks, and the room where they put what they work out."""
    room, schema = Counting(), SCHEMAS[kind]
    blocks = cut(make_rows(kind, rows), None, schema, allocate=room)
    return BlockEngine(LocalBlocks(schema, blocks)), room


def test_cells_that_nobody_has_are_forgotten():
    engine, room = counted()
    view = View.of_bins(SCHEMAS["two"])
    used = []
    for _ in range(50):
        root = engine.root(view)
        children = engine.split(root, [Split(6, (0, 1, 2))])
        engine.class_counts(children)
        some = engine.take(children, np.array([2, 0]))
        engine.places(engine.split(some, [Split(5, (0, 1, 2, 0, 1))] * 2), [Axis(0, 0, 1)] * 6)
        del root, children, some
        used.append(room.bytes)
    assert used[-1] == used[2]
    del used
    engine.class_counts(engine.root(view))
    engine.grid_counts(0)
    codes = 400 * len(FEATURES)
    assert room.bytes == codes  # those of the last view, a byte each
    assert not any(block._cells or block._scores for block in engine._blocks._blocks)


def test_cells_that_somebody_has_are_remembered():
    engine, room = counted()
    view = View.of_bins(SCHEMAS["two"])
    root = engine.root(view)
    children = engine.split(root, [Split(6, (0, 1, 2))])
    engine.class_counts(root)
    engine.class_counts(children)
    made = room.made
    for _ in range(5):
        engine.class_counts(children)
        list(engine.histograms(root, [0, 1]))
    assert room.made == made


def test_scores_do_not_pile_up():
    engine, room = counted()
    view = View.of_bins(SCHEMAS["two"])
    scores, used = engine.start_scores([0.0]), []
    root = engine.root(view)
    for turn in range(50):
        cells = engine.split(root, [(Split(5, (0, 1, 2, 2, 1)), Split(6, (0, 1, 2)))[turn % 2]])
        scores = engine.add_scores(scores, cells, np.full((cells.size, 1), 0.01))
        engine.moments(cells, scores, 1.0, pure=True)
        used.append(room.bytes)
    assert used[-1] == used[3]
    del cells
    engine.moments(root, scores, 1.0, pure=True)
    engine.grid_counts(0)
    known = [(len(block._cells), len(block._scores)) for block in engine._blocks._blocks]
    assert set(known) == {(1, 1)}


@pytest.fixture
def routed(monkeypatch):
    """Count how often records are sent to the children of their cells."""
    calls = []
    original = _kernels.route
    monkeypatch.setattr(
        _kernels, "route", lambda *given, **options: calls.append(1) or original(*given, **options)
    )
    return calls


def test_a_chain_of_splits_does_not_start_from_the_root_again(routed):
    engine, _ = counted()
    blocks = len(engine._blocks._blocks)
    cells = engine.root(View.of_bins(SCHEMAS["two"]))
    engine.class_counts(cells)
    halves = [Split(6, (0, 1, 1)), Split(0, (0, 0, 0, 1, 1, 1, 1, 0)), Split(5, (0, 1, 1, 0, 0))]
    for level in range(6):
        for _ in range(2):  # two levels at once, then asked
            cells = engine.split(cells, [halves[level % 3]] * cells.size)
        engine.class_counts(cells)
        assert len(routed) == 2 * blocks * (level + 1)
    engine.class_counts(cells)
    assert len(routed) == 2 * blocks * 6


def test_rounds_of_scores_do_not_start_from_the_first_again(routed):
    engine, _ = counted()
    blocks = len(engine._blocks._blocks)
    root, scores = engine.root(View.of_bins(SCHEMAS["two"])), engine.start_scores([0.0])
    engine.class_counts(root)
    for turn in range(1, 11):
        cells = engine.split(root, [Split(6, (0, 1, 1))])
        engine.class_counts(cells)
        scores = engine.add_scores(scores, cells, np.array([[0.1], [-0.1]]))
        del cells
        engine.moments(root, scores, 1.0, pure=True)
        assert len(routed) == blocks * turn


@pytest.mark.parametrize("name", ["forgetful", "remote"])
def test_a_long_story_can_be_told_again(name):
    """After a thousand steps a question still travels, and a block that forgot can follow them."""
    table, schema = make_rows("two", 60), SCHEMAS["two"]
    engine, slow = ENGINES[name](table, None, schema), SlowEngine(table, None, schema)
    view = View.of_bins(schema)
    roots = pair = engine.root(view), slow.root(view)
    scores = engine.start_scores([0.0]), slow.start_scores([0.0])
    by_sex = [Split(6, (0, 1, 1))]
    for turn in range(600):
        value = np.array([[0.001], [0.002]])
        below = [e.split(c, by_sex) for e, c in zip((engine, slow), roots, strict=True)]
        scores = tuple(
            e.add_scores(s, c, value) for e, s, c in zip((engine, slow), scores, below, strict=True)
        )
        splits, some = [Split(6, (turn % 2, 1, 1))], np.array([1])
        pair = tuple(
            e.take(e.split(c, splits), some) for e, c in zip((engine, slow), pair, strict=True)
        )
    found = (
        e.moments(c, s, 9.0, pure=True)
        for e, c, s in zip((engine, slow), pair, scores, strict=True)
    )
    assert np.array_equal(*found)


def test_a_block_says_nothing_when_it_is_shown():
    block = cut(make_rows("two", 50), None, SCHEMAS["two"])[3]
    assert isinstance(block, Block)
    assert "array" not in repr(block)


def test_handles_are_small():
    """What travels with a question holds public facts, not one number per record."""
    engine, _ = counted(rows=5_000)
    root = engine.root(View.of_bins(SCHEMAS["two"]))
    cells = engine.split(root, [Split(6, (0, 1, 1))])
    scores = engine.add_scores(engine.start_scores([0.0]), cells, np.zeros((2, 1)))
    engine.moments(cells, scores, 1.0, pure=True)
    assert len(pickle.dumps((cells.lineage, scores.lineage))) < 10_000
