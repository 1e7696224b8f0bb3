"""One suite for all engines: the same rows give the same whole numbers, wherever the rows are.

Random walks ask every question of the protocol and compare each answer with that of a slow engine
in plain Python. Seeded models of every learner are compared byte for byte with the golden files.
Engines are those of :data:`engines.ENGINES`; clusters are walked through in their own files.
"""

from __future__ import annotations

import itertools
import json
import pickle
import weakref

import numpy as np
import pytest

from privet import Budget, PrivateTable, PrivateTreeClassifier
from privet.engines import Axis, BlockEngine, Split, View, _kernels
from privet.engines import engine as engine_module
from privet.engines.blocks import Block
from privet.engines.memory import LocalBlocks
from privet.errors import DataError, PrivacyLeakWarning
from privet.tables import private as wall
from privet.tables import tree_sums

from ..golden.seeded import CASES, FOLDER, PROCESSOR, check, processor, write  # noqa: TID252
from ..repeated import some_of  # noqa: TID252
from .engines import ENGINES, cut
from .slow import SlowEngine
from .walk import FEATURES, QUESTIONS, SCHEMAS, Walk, make_rows, walk_through

EACH_ENGINE = pytest.mark.parametrize("name", ENGINES)
KINDS = pytest.mark.parametrize("kind", SCHEMAS)

# Questions ---------------------------------------------------------------------------------------


@EACH_ENGINE
@KINDS
@pytest.mark.parametrize(
    ("rows", "seed"),
    some_of(
        [(0, 0), (1, 0), (150, 0), (150, 1)], lambda rows, seed: (rows, seed) in {(0, 0), (150, 0)}
    ),
)
def test_every_question_has_the_same_answer_everywhere(name, kind, rows, seed):
    table, schema = make_rows(kind, rows, seed), SCHEMAS[kind]
    engine = ENGINES[name](table, None, schema)
    walk_through(engine, table, schema, seed)
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
        if question in {"target_counts", "distance_counts", "error_sums"}:
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


#: Of every learner one.
ONE_EACH = {CASES[name].make: name for name in FEW}.values()


@pytest.mark.parametrize(
    ("name", "case"),
    some_of(
        itertools.product(
            sorted(set(ENGINES) - {"memory"}),  # which all golden files are of
            (case for case in CASES if CASES[case].parties is None),
        ),
        lambda name, case: case in (FEW if name in {"blocks", "mapped"} else ONE_EACH),
    ),
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
        scores = None if schema.classes else mine.start_scores((0.3,))
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
