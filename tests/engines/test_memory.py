"""The memory engine's exact answers, against pandas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Numeric, Schema
from privet.engines import (
    Axis,
    CellsHandle,
    Split,
    View,
    _kernels,
    encoding,
    memory,
    memory_engine,
    widths,
)
from privet.engines import engine as asking
from privet.errors import DataError

from .behind import blocks_of, cells_of, codes_of

FAST = pytest.mark.parametrize("fast", [False, True], ids=["numpy", "numba"])


def root_of(engine):
    """Return the whole table as one cell, seen through the schema's bins."""
    return engine.root(View.of_bins(engine.schema))


def make_engine(frame, target, schema, *, fast):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "COMPILE_FROM", 0 if fast else 2**62)
        return memory_engine(frame, target, schema)


def make_table(seed, rows=300, wide=False):
    """Return a table with missing and unknown values, its target, schema and expected codes."""
    rng = np.random.default_rng(seed)
    bins = (3, 400 if wide else 7, 1, 5)
    features = {f"n{j}": Numeric(0, 10, bins=count) for j, count in enumerate(bins)}
    features |= {"c": Categorical(["a", "b", "c"]), "d": Categorical([0, 1])}
    schema = Schema(features, target="y", classes=["no", "perhaps", "yes"])
    columns, codes = {}, {}
    for j, count in enumerate(bins):
        numbers = rng.uniform(-1, 11, rows)
        numbers[rng.random(rows) < 0.1] = np.nan
        columns[f"n{j}"] = numbers
        cut = pd.cut(numbers, [-np.inf, *features[f"n{j}"].cuts, np.inf], right=False)
        codes[f"n{j}"] = np.where(np.isnan(numbers), count, cut.codes)
    for name, listed in (("c", ["a", "b", "c", "?"]), ("d", [0, 1, 9])):
        codes[name] = rng.integers(0, len(listed), rows)
        columns[name] = np.array(listed)[codes[name]]
    label = rng.integers(0, 4, rows)
    target = np.array(["no", "perhaps", "yes", "unheard of"])[label]
    return pd.DataFrame(columns), target, schema, pd.DataFrame(codes).assign(y=label)


def random_splits(rng, schema, count):
    splits = []
    for _ in range(count):
        feature = int(rng.choice(np.flatnonzero(np.array(schema.sizes) > 2)))
        children = rng.integers(0, 3, schema.sizes[feature])
        children[rng.integers(len(children))] = 2  # child 2 exists, child 0 or 1 may be empty
        splits.append(Split(feature, tuple(children.tolist())))
    return splits


def expected_histogram(codes, cells, feature, size, n_cells):
    """Count with pandas: shape (cells, codes, classes)."""
    inside = codes.assign(cell=cells)[(cells >= 0) & (codes["y"] < 3)]
    counts = np.zeros((n_cells, size, 3), dtype=np.int64)
    for place, number in inside.groupby(["cell", feature, "y"]).size().items():
        counts[place] = number
    return counts


def gather(engine, handle, features):
    """Join the batches."""
    parts = list(engine.histograms(handle, features))
    bounds = [(batch.start, batch.stop) for batch, _ in parts]
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    joined = {j: np.concatenate([found[j] for _, found in parts]) for j in features}
    return joined, len(parts)


@FAST
@pytest.mark.parametrize("wide", [False, True], ids=["uint8", "uint16"])
def test_counts_equal_pandas_after_random_splits(fast, wide, monkeypatch):
    for module in (memory, encoding):
        monkeypatch.setattr(module, "workers", lambda: 3)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        frame, target, schema, codes = make_table(seed, wide=wide)
        engine = make_engine(frame, target, schema, fast=fast)
        assert len(blocks_of(engine)) == (3 if fast else 1)
        found = codes_of(engine, View.of_bins(schema))
        assert found.dtype == (np.uint16 if wide else np.uint8)
        for j, name in enumerate(schema.names):
            assert found[j].tolist() == codes[name].tolist()
        handle = root_of(engine)
        cells = np.where(codes["y"] < 3, 0, -1)
        for _ in range(3):
            splits = random_splits(rng, schema, handle.size)
            child = [
                -1
                if cell < 0
                else 3 * cell + splits[cell].children[codes[schema.names[splits[cell].feature]][i]]
                for i, cell in enumerate(cells.tolist())
            ]
            cells = np.array(child)
            handle = engine.split(handle, splits)
            assert handle.size == 3 * len(splits)
            assert cells_of(engine, handle).tolist() == cells.tolist()
            found, _ = gather(engine, handle, range(len(schema.names)))
            for j, name in enumerate(schema.names):
                expected = expected_histogram(codes, cells, name, schema.sizes[j], handle.size)
                assert np.array_equal(found[j], expected)
            by_class = engine.class_counts(handle)
            assert np.array_equal(by_class, expected.sum(axis=1))


@FAST
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), limit=st.integers(1, 2_000), chosen=st.data())
def test_batches_equal_the_single_pass(seed, limit, chosen, fast):
    frame, target, schema, _ = make_table(seed, rows=60)
    engine = make_engine(frame, target, schema, fast=fast)
    rng = np.random.default_rng(seed)
    handle = engine.split(root_of(engine), random_splits(rng, schema, 1))
    handle = engine.split(handle, random_splits(rng, schema, 3))
    features = sorted(chosen.draw(st.sets(st.integers(0, len(schema.names) - 1), min_size=1)))
    whole, passes = gather(engine, handle, features)
    assert passes == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "MAX_COUNTS", limit)
        parts, passes = gather(engine, handle, features)
    assert passes > 1 or limit >= 9 * 3 * sum(schema.sizes[j] for j in features)
    for j in features:
        assert np.array_equal(whole[j], parts[j])


@FAST
def test_more_rows_than_32_bits_count_are_counted_in_64(fast, monkeypatch):
    frame, target, schema, _ = make_table(0)
    engine = make_engine(frame, target, schema, fast=fast)
    handle, axes = root_of(engine), [Axis(1, 0, 6)]
    narrow, _ = gather(engine, handle, [1, 4])
    places = engine.places(handle, axes)
    asked = []
    ask = engine._blocks.ask
    monkeypatch.setattr(widths, "WIDE_FROM", len(frame))
    monkeypatch.setattr(
        engine._blocks, "ask", lambda *given: asked.append(ask(*given)) or asked[-1]
    )
    wide, _ = gather(engine, handle, [1, 4])
    assert all(np.array_equal(wide[j], narrow[j]) and wide[j].dtype == np.int64 for j in wide)
    assert np.array_equal(engine.places(handle, axes), places)
    assert asked[-1].dtype == np.int64


def test_a_batch_of_one_cell_is_the_least():
    frame, target, schema, _ = make_table(0)
    engine = make_engine(frame, target, schema, fast=False)
    handle = engine.split(root_of(engine), [Split(0, (0, 1, 2, 2))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "MAX_COUNTS", 1)
        assert gather(engine, handle, [0, 1])[1] == 3


@FAST
def test_features_come_back_in_full_whatever_their_order(fast):
    frame, target, schema, codes = make_table(3)
    engine = make_engine(frame, target, schema, fast=fast)
    cells = cells_of(engine, root_of(engine))
    found, _ = gather(engine, root_of(engine), [5, 1, 4])
    assert set(found) == {1, 4, 5}
    for j, counts in found.items():
        name = schema.names[j]
        assert np.array_equal(counts, expected_histogram(codes, cells, name, schema.sizes[j], 1))


@FAST
def test_empty_cells_answer_zero(fast):
    frame, target, schema, _ = make_table(1)
    engine = make_engine(frame, target, schema, fast=fast)
    size = schema.sizes[0]
    handle = engine.split(root_of(engine), [Split(0, (2,) * size)])
    assert handle.size == 3
    found, _ = gather(engine, handle, [1])
    assert not found[1][:2].any()
    assert found[1][2].sum() == engine.class_counts(handle).sum()
    assert engine.class_counts(handle)[:2].tolist() == [[0, 0, 0]] * 2


@FAST
def test_an_empty_table_answers_zero(fast):
    frame, target, schema, _ = make_table(1)
    engine = make_engine(frame.iloc[:0], target[:0], schema, fast=fast)
    handle = engine.split(root_of(engine), [Split(0, (0, 1, 1, 1))])
    assert engine.class_counts(handle).tolist() == [[0, 0, 0]] * 2
    found, _ = gather(engine, handle, [0, 1, 2, 3, 4])
    assert all(not counts.any() for counts in found.values())
    assert found[4].shape == (2, 4, 3)


@FAST
def test_no_cells_have_no_answers(fast):
    frame, target, schema, _ = make_table(1)
    engine = make_engine(frame, target, schema, fast=fast)
    nothing = engine.take(root_of(engine), np.array([], dtype=np.intp))
    assert nothing.size == 0
    assert engine.class_counts(nothing).shape == (0, 3)
    assert list(engine.histograms(nothing, [0])) == []
    assert engine.split(nothing, []).size == 0


@FAST
def test_records_of_unknown_classes_are_left_out(fast):
    frame, target, schema, codes = make_table(2)
    known = (codes["y"] < 3).to_numpy()
    engine = make_engine(frame, target, schema, fast=fast)
    without = make_engine(frame[known], target[known], schema, fast=fast)
    assert (cells_of(engine, root_of(engine)) == -1).sum() == (~known).sum() > 0
    assert engine.class_counts(root_of(engine)).sum() == known.sum()
    ours, _ = gather(engine, root_of(engine), range(6))
    theirs, _ = gather(without, root_of(without), range(6))
    for j in range(6):
        assert np.array_equal(ours[j], theirs[j])


@FAST
def test_taking_cells_renumbers_them_in_the_order_given(fast):
    frame, target, schema, _ = make_table(4)
    engine = make_engine(frame, target, schema, fast=fast)
    handle = engine.split(root_of(engine), [Split(1, (0, 1, 2, 3, 0, 1, 2, 3))])
    counts = engine.class_counts(handle)
    taken = engine.take(handle, np.array([3, 0]))
    assert taken.size == 2
    assert np.array_equal(engine.class_counts(taken), counts[[3, 0]])
    assert set(np.unique(cells_of(engine, taken))) == {-1, 0, 1}
    whole, _ = gather(engine, handle, [2, 4])
    part, _ = gather(engine, taken, [2, 4])
    for j in (2, 4):
        assert np.array_equal(part[j], whole[j][[3, 0]])


@pytest.mark.parametrize("n_classes", [255, 256, 257])
def test_unknown_classes_have_a_number_of_their_own_however_many_classes(n_classes):
    schema = Schema({"x": Numeric(0, 1)}, target="y", classes=list(range(n_classes)))
    target = [0, n_classes - 1, n_classes, -1]
    engine = make_engine(np.zeros((4, 1)), target, schema, fast=False)
    assert cells_of(engine, root_of(engine)).tolist() == [0, 0, -1, -1]
    counts = engine.class_counts(root_of(engine))
    assert counts[0, 0] == counts[0, -1] == 1
    assert counts.sum() == 2


def test_class_counts_of_many_blocks():
    rows = 2**20 + 5
    schema = Schema({"x": Numeric(0, 1, bins=2)}, target="y", classes=[0, 1])
    target = np.arange(rows) % 2
    engine = make_engine(np.full((rows, 1), 0.7), target, schema, fast=False)
    assert len(blocks_of(engine)) > 2
    assert engine.class_counts(root_of(engine)).tolist() == [[rows // 2 + 1, rows // 2]]


def test_keys_that_do_not_fit_in_32_bits_are_refused():
    frame, target, schema, _ = make_table(0, rows=3)
    engine = make_engine(frame, target, schema, fast=False)
    too_many = CellsHandle(replace(root_of(engine).lineage, size=2**30))
    with pytest.raises(DataError, match="too many cells"):
        engine.class_counts(too_many)


def test_rows_of_features_and_target_must_agree():
    frame, target, schema, _ = make_table(0)
    with pytest.raises(DataError, match="different numbers of rows"):
        memory_engine(frame, target[:-1], schema)
