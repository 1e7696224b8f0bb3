"""Deep and large models: exports grow with the model, and say where a form ends."""

import time
import tracemalloc

import duckdb
import numpy as np
import pytest

from privet.ensemble import Ensemble
from privet.errors import ExportError
from privet.export import to_dot, to_python, to_sql, to_svg, to_text
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

SCHEMA = Schema({"x": Numeric(0, 1), "z": Numeric(0, 1)}, "y", classes=["no", "yes"])


def chain(depth: int, missing: int = 1, scores: int = 0) -> Tree:
    """Return a tree that is one long path, with a leaf beside each test."""
    nodes = []
    for level in range(depth):
        test = Cut("xz"[level % 2], ((level + 1) / (depth + 2),), missing)
        value = (float(level % 2), float(1 - level % 2))[: scores or 2]
        nodes += [Node(test, (2 * level + 1, 2 * level + 2)), Node(value=value)]
    return Tree(SCHEMA, (*nodes, Node(value=(0.25, 0.75)[: scores or 2])), scores)


@pytest.mark.parametrize("write", [to_text, to_dot, to_svg, to_python])
def test_time_and_memory_grow_with_the_model(write):
    used = []
    for depth in (300, 1_200):
        tree = chain(depth)
        tracemalloc.start()
        start = time.process_time()
        text = write(tree)
        used.append((len(text), tracemalloc.get_traced_memory()[1]))
        assert time.process_time() - start < 10
        tracemalloc.stop()
    (short, small), (long, large) = used
    assert long < 5 * short
    assert large < 5 * small


def test_text_of_a_deep_tree_is_complete():
    """Deeper branches go on under a number, which occurs twice: where it leads, and from where."""
    lines = to_text(chain(200)).split("\n")
    assert len(lines) == 401 + 3
    assert max(map(len, lines)) < 64 * 3 + 60
    for number in (1, 2, 3):
        leads = f": goes on at [{number}]"
        (source,) = [line for line in lines if line.endswith(leads)]
        (target,) = [line for line in lines if line.startswith(f"[{number}] ")]
        assert source.removesuffix(leads).endswith(target.removeprefix(f"[{number}] "))
    assert "goes on" not in to_text(chain(64))
    assert "left out" in to_text(chain(200), max_depth=100).split("\n")[-1]


def test_numbers_are_not_used_twice_in_an_ensemble():
    lines = to_text(Ensemble(SCHEMA, (0.0,), (chain(100, scores=1),) * 2)).split("\n")
    assert [line[:4] for line in lines if line.startswith("[")] == ["[1] ", "[2] "]


@pytest.mark.parametrize("missing", [0, 1])
def test_sql_at_its_limit_is_read_by_a_database(missing):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x DOUBLE, z DOUBLE)")
        asked = f"SELECT {to_sql(chain(899, missing))} FROM t"
        (parsed,) = connection.execute("SELECT json_serialize_sql(?)", [asked]).fetchone()
        assert '"error":false' in parsed
    with pytest.raises(ExportError, match="too deep for SQL"):
        to_sql(chain(900, missing))


def test_sql_of_too_many_trees_is_refused():
    stump = chain(1, scores=1)
    to_sql(Ensemble(SCHEMA, (0.0,), (stump,) * 899))
    with pytest.raises(ExportError, match="too deep for SQL"):
        to_sql(Ensemble(SCHEMA, (0.0,), (stump,) * 900))


@pytest.mark.parametrize("missing", [0, 1])
def test_python_of_a_deep_tree_runs(missing):
    tree = chain(3_000, missing)
    scope: dict = {}
    exec(to_python(tree), scope)
    rows = np.random.default_rng(1).random((20, 2))
    expected = [SCHEMA.classes[i] for i in tree.predict_value(rows).argmax(axis=1)]
    assert [scope["predict"]({"x": x, "z": z}) for x, z in rows] == expected


def test_python_ends_where_calls_end():
    with pytest.raises(ExportError, match="too deep for Python"):
        to_python(chain(32_001))


def test_a_small_file_cannot_ask_for_a_huge_export():
    """Groupings name categories by number; an export writes their texts at every place."""
    values = ["x" * 4_000 + str(i) for i in range(3_000)]
    schema = Schema({"c": Categorical(values)}, "y", bounds=(0, 1))
    test = Grouping("c", tuple(i % 2 for i in range(3_000)), 0)
    nodes = [Node(test, (2 * i + 1, 2 * i + 2)) for i in range(31)]
    tree = Tree(schema, (*nodes, *(Node(value=(i / 32,)) for i in range(32))))
    for write in (to_text, to_dot, to_svg, to_python, to_sql):
        start = time.process_time()
        with pytest.raises(ExportError, match="too large"):
            write(tree)
        assert time.process_time() - start < 1


def test_many_trees_of_one_feature_add_up_to_what_they_predict():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 100))
    edges = np.linspace(0.001, 0.999, 700).tolist()
    trees = [
        Tree(schema, (Node(Cut("x", (e,), 0), (1, 2)), Node(value=(0.1,)), Node(value=(e,))), 1)
        for e in edges
    ]
    ensemble = Ensemble(schema, (0.0,), trees)
    (shape,) = ensemble.shapes()
    points = np.array([[-np.inf], *([e] for e in edges), [np.nan]])
    np.testing.assert_array_equal(
        np.vstack([shape.scores, shape.missing]), ensemble.predict_score(points)
    )


def test_rows_that_have_arrived_take_no_time():
    tree = chain(10_000)
    start = time.process_time()
    assert len(tree.predict_value(np.zeros((100_000, 2)))) == 100_000
    assert time.process_time() - start < 3
