"""The ONNX model gives what the model gives, in onnxruntime, for all that rows may hold."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from privet.ensemble import Ensemble
from privet.errors import ExportError, SchemaError
from privet.export import to_onnx
from privet.model import load
from privet.reading import feature_matrix
from privet.schema import Categorical, Numeric, Schema, all_numbers
from privet.tree import Cut, Node, Tree

from ..tree.strategies import ensembles_with_tables, trees_with_tables  # noqa: TID252

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run(model: Tree | Ensemble, table: pa.Table) -> list[np.ndarray]:
    """Predict rows in onnxruntime, with missing values and unknown categories as ONNX has them."""
    session = runtime.InferenceSession(to_onnx(model))
    matrix = feature_matrix(table, model.schema)
    columns = dict(zip(model.schema.names, matrix.T, strict=True))
    feeds = {}
    for held in session.get_inputs():
        feature, column = model.schema.features[held.name], columns[held.name]
        if isinstance(feature, Categorical):
            numbers = all_numbers(feature.values)
            unknown = [-12.75, np.nan] if numbers else ["no such category", "\x01"]
            values = [float(v) if numbers else str(v) for v in feature.values]
            codes = np.where(np.isnan(column), len(values), column).astype(int)
            kind = np.float64 if numbers else object
            column = np.array(
                [values[c] if c < len(values) else unknown[k % 2] for k, c in enumerate(codes)],
                dtype=kind,
            )
        feeds[held.name] = column[:, np.newaxis]
    return session.run(None, feeds)


def check(model: Tree | Ensemble, table: pa.Table) -> None:
    found, expected = run(model, table), model.predict_value(table)
    classes = model.schema.classes
    if classes is None:
        np.testing.assert_array_equal(found[0], expected[:, 0])
        return
    named = [classes[best] for best in expected.argmax(axis=1)]
    assert [str(value) for value in found[0].tolist()] == [
        str(value if not all_numbers(classes) else found[0].dtype.type(value)) for value in named
    ]
    np.testing.assert_allclose(found[1], expected, atol=0 if isinstance(model, Tree) else 1e-12)


@settings(deadline=None, max_examples=60)
@given(trees_with_tables())
def test_trees(case):
    check(*case)


@settings(deadline=None, max_examples=60)
@given(ensembles_with_tables())
def test_ensembles(case):
    check(*case)


@pytest.mark.parametrize("name", ["tree", "boosting_delta_auto", "additive_number_pure"])
def test_learnt_models(name, request):
    model = load(request.path.parents[1] / "golden" / "seeded" / f"{name}.json")
    random = np.random.default_rng(0)
    columns = {}
    for column, feature in model.schema.features.items():
        if isinstance(feature, Categorical):
            values = [*map(str, feature.values), "unknown", None]
            columns[column] = [values[k] for k in random.integers(0, len(values), 500)]
        else:
            numbers = random.uniform(feature.low - 3, feature.high + 3, 500)
            numbers[::7] = random.choice(feature.grid, len(numbers[::7]))  # exactly at edges
            numbers[::11] = np.nan
            columns[column] = numbers
    check(model.predictor, pa.table(columns))


def test_scores_are_added_in_the_order_of_the_trees(uneven_sums):
    table = pa.table({"x": [0.0, 1.0, None]})
    for ensemble in uneven_sums:
        check(ensemble, table)


def test_without_the_library_the_error_says_what_to_do(mean_tree, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExportError, match=r"privet\[onnx\]"):
        to_onnx(mean_tree)


def test_what_onnx_cannot_write_is_refused(hostile_tree):
    with pytest.raises(SchemaError, match="ONNX"):
        to_onnx(hostile_tree)


def test_a_model_that_is_too_deep_is_refused():
    schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(0, 1))
    nodes = []
    for level in range(1000):
        nodes += [Node(Cut("x", (0.5,), 0), (2 * level + 1, 2 * level + 2)), Node(value=(0.5,))]
    # The second child of every test is the next one.
    flat = tuple(Node(node.test, tuple(node.children)) if node.test else node for node in nodes)
    order = [flat[0]]
    for level in range(999):
        order += [flat[2 * level + 1], flat[2 * level + 2]]
    order += [flat[-1], Node(value=(0.5,))]
    with pytest.raises(ExportError, match="too deep"):
        to_onnx(Tree(schema, tuple(order)))
