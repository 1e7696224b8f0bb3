"""A tree or an ensemble as an ONNX model, to predict where ONNX runs.

ONNX's operators for trees take thresholds as doubles but answer in single precision. So they only
find leaves here, by numbers that single precision holds exactly; scores are looked up and added in
double precision, tree by tree, as the model does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privet import __version__
from privet.ensemble import Ensemble
from privet.errors import ExportError, SchemaError
from privet.export._limits import check_depth
from privet.export._merged import trees_of
from privet.schema import Categorical, Schema, all_numbers
from privet.tree import Cut, Grouping, Test, Tree

#: Versions that runtimes of the last years read.
_OPSET, _ML_OPSET, _IR = 15, 3, 8
#: Leaves are numbered in single precision.
_MOST_LEAVES = 2**24
_DEEPEST = 900


def to_onnx(model: Tree | Ensemble) -> bytes:
    """Return the model in the ONNX format.

    Inputs are the features that the model uses, by their names, each of shape (rows, 1): doubles
    for numbers and for categories that are numbers, days since 1970-01-01 as doubles for dates,
    text for other categories. NaN is a missing number; text that is no category, empty text too, is
    unknown. (If no feature is used, the first one is asked for, to know how many rows there are.)

    Outputs are ``prediction`` (rows) and, for classes, ``probabilities`` (rows, classes) as
    doubles, in the schema's order. Labels, means and scores are exactly those of the model;
    probabilities of an ensemble differ by rounding at most.

    Parameters
    ----------
    model : Tree or Ensemble

    Raises
    ------
    ExportError
        If the library onnx is not there (``pip install privet[onnx]``), or the model is too large
        or too deep.
    SchemaError
        If a name holds a character that ONNX cannot write.
    """
    try:
        import onnx
    except ImportError:
        raise ExportError("ONNX needs the library onnx: pip install privet[onnx]") from None
    trees, schema = trees_of(model), model.schema
    check_depth(model.depth, _DEEPEST, "ONNX")
    if any(len(tree.nodes) > _MOST_LEAVES for tree in trees):
        raise ExportError(f"the model is too large for ONNX: at most {_MOST_LEAVES:,} nodes")
    graph = _Graph(schema, tuple(model.used) or schema.names[:1])
    values = graph.values(trees)
    if isinstance(model, Ensemble):
        scores = graph.sum(model, values)
    else:
        (scores,) = values
    if schema.classes is None:
        graph.number(scores, clipped=isinstance(model, Ensemble))
    elif isinstance(model, Ensemble):
        scores = graph.with_zero(scores) if len(model.start) == 1 else scores
        graph.classes(scores, graph.add("Softmax", [scores], "softmax", axis=1))
    else:
        graph.classes(scores, scores)
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes, _text(f"{schema.target}"), graph.inputs, graph.outputs, graph.constants
        ),
        opset_imports=[
            onnx.helper.make_opsetid("", _OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
        ir_version=_IR,
        producer_name="privet",
        producer_version=__version__,
    )
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


class _Leaves:
    """Trees as the attributes of ONNX's operator; one target for each tree.

    In ONNX no node has two parents. A test that sends several intervals or categories to one child
    would need that child twice, so its child's number is found by a small tree of its own, whose
    leaves may be repeated, and is one more column for the model's trees (:func:`_is_plain`).

    Parameters
    ----------
    column : dict
        The column of every feature, and of every test that has one.
    texts : set of str
        The features of which columns hold places in the list of categories.
    """

    def __init__(self, column: dict[Any, int], texts: set[str]) -> None:
        self.column, self.texts = column, texts
        #: Of each node: its tree, its number in it, the column, the mode, the value, the children,
        #: and whether missing values go to the first child.
        self.nodes: list[tuple[int, int, int, str, float, int, int, int]] = []
        #: Of each leaf: its tree, its number in it, and what it says.
        self.leaves: list[tuple[int, int, float]] = []
        self.trees = 0

    def add_tree(self, tree: Tree) -> None:
        """Add a tree whose leaves say their positions."""
        self._next = 0
        waiting = [(0, self._new())]
        while waiting:
            place, here = waiting.pop()
            node = tree.nodes[place]
            if node.test is None:
                self._leaf(here, place)
                continue
            if len(node.children) == 1:  # a test with one outcome
                waiting.append((node.children[0], here))
                continue
            ends = [self._new() for _ in node.children]
            column = self.column.get(node.test)
            if column is not None:
                steps = [number - 0.5 for number in range(1, len(ends))]
                self._search(here, column, steps, ends.__getitem__)
            else:
                self._test(here, node.test, tree.schema, ends.__getitem__)
            waiting += zip(node.children, ends, strict=True)
        self.trees += 1

    def add_test(self, test: Test, schema: Schema) -> None:
        """Add a tree whose leaves say the number of a test's child."""
        self._next = 0

        def leaf(child: int) -> int:
            here = self._new()
            self._leaf(here, child)
            return here

        self._test(self._new(), test, schema, leaf)
        self.trees += 1

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _leaf(self, here: int, says: int) -> None:
        self._node(here, 0, "LEAF", 0.0, 0, 0)
        self.leaves.append((self.trees, here, float(says)))

    def _node(
        self, here: int, column: int, mode: str, value: float, yes: int, no: int, missing: int = 0
    ) -> None:
        self.nodes.append((self.trees, here, column, mode, value, yes, no, missing))

    def _test(self, here: int, test: Test, schema: Schema, target: Callable[[int], int]) -> None:
        """Write a test; ``target`` gives the node of a child."""
        column = self.column[test.feature]
        if isinstance(test, Grouping):
            self._grouping(here, test, schema, target)
        elif len(test.edges) == 1 and test.missing <= 1:
            ends = target(0), target(1)
            self._node(here, column, "BRANCH_LT", test.edges[0], *ends, 1 - test.missing)
        else:  # is it missing, and then, in which interval
            first = self._new() if test.edges else target(0)
            lost = target(test.missing)
            self._node(here, column, "BRANCH_GTE", -math.inf, first, lost)
            if test.edges:
                self._search(first, column, test.edges, target)

    def _search(
        self, here: int, column: int, edges: Sequence[float], target: Callable[[int], int]
    ) -> None:
        """Write a binary search among edges."""
        waiting = [(here, 0, len(edges))]
        while waiting:
            here, low, high = waiting.pop()
            middle = (low + high) // 2
            below = target(low) if middle == low else self._new()
            above = target(high) if middle + 1 == high else self._new()
            self._node(here, column, "BRANCH_LT", edges[middle], below, above)
            if middle > low:
                waiting.append((below, low, middle))
            if middle + 1 < high:
                waiting.append((above, middle + 1, high))

    def _grouping(
        self, here: int, test: Grouping, schema: Schema, target: Callable[[int], int]
    ) -> None:
        column = self.column[test.feature]
        if test.feature in self.texts:
            steps, runs = _runs(test)
            self._search(here, column, [k - 0.5 for k in steps], lambda k: target(runs[k]))
            return
        feature = schema.features[test.feature]
        assert isinstance(feature, Categorical)
        pairs = zip(feature.values, test.children, strict=True)
        asked = [(float(value), child) for value, child in pairs if child != test.other]
        for place, (value, child) in enumerate(asked):
            after = target(test.other) if place == len(asked) - 1 else self._new()
            self._node(here, column, "BRANCH_EQ", value, target(child), after)
            here = after


def _runs(test: Grouping) -> tuple[list[int], list[int]]:
    """Return at which places in the list of categories the child changes, and the children."""
    children = (*test.children, test.other)  # unknown categories come last
    steps = [k for k in range(1, len(children)) if children[k] != children[k - 1]]
    return steps, [children[k] for k in (0, *steps)]


def _is_plain(test: Test, texts: set[str]) -> bool:
    """Tell whether a test can be written so that each of its children has one parent."""
    if test.n_children == 1:
        return True
    if isinstance(test, Cut):
        own = test.missing == len(test.edges) + 1
        return own or (len(test.edges) == 1 and test.missing <= 1)
    return test.feature in texts and len(_runs(test)[1]) == test.n_children


class _Graph:
    """The parts of an ONNX graph, as they are made one after the other."""

    def __init__(self, schema: Schema, used: tuple[str, ...]) -> None:
        from onnx import TensorProto, helper

        self.schema, self.used = schema, used
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs, self.outputs = [], []  # type: list[Any], list[Any]
        self.codes = {
            name: len(feature.values) + 1
            for name, feature in schema.features.items()
            if isinstance(feature, Categorical) and not all_numbers(feature.values)
        }
        columns = []
        for place, name in enumerate(used):
            kind = TensorProto.STRING if name in self.codes else TensorProto.DOUBLE
            self.inputs.append(helper.make_tensor_value_info(_text(name), kind, ["rows", 1]))
            if name not in self.codes:
                columns.append(_text(name))
                continue
            feature = schema.features[name]
            assert isinstance(feature, Categorical)
            codes = self.add(
                "LabelEncoder", [_text(name)], f"codes {place}", domain="ai.onnx.ml",
                keys_strings=[_text(str(value)) for value in feature.values],
                values_int64s=list(range(len(feature.values))),
                default_int64=len(feature.values),
            )  # fmt: skip
            columns.append(self.add("Cast", [codes], f"column {place}", to=TensorProto.DOUBLE))
        self.matrix = self.add("Concat", columns, "features", axis=1)

    def add(self, operator: str, inputs: Sequence[str], output: str, **given: Any) -> str:
        """Add a node, and return the name of its output."""
        from onnx import helper

        name = f"privet: {output}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **given))
        return name

    def constant(self, name: str, values: Any) -> str:
        """Add a constant, and return its name."""
        from onnx import helper, numpy_helper

        name = f"privet: {name}"
        if isinstance(values, np.ndarray):
            self.constants.append(numpy_helper.from_array(values, name))
        else:
            from onnx import TensorProto

            texts = [text.encode("utf-8") for text in values]
            self.constants.append(helper.make_tensor(name, TensorProto.STRING, [len(texts)], texts))
        return name

    def values(self, trees: Sequence[Tree]) -> list[str]:
        """Return for every tree the values of the leaves that rows fall into."""
        from onnx import TensorProto

        if not trees:
            return []
        column: dict[Any, int] = {name: place for place, name in enumerate(self.used)}
        texts = set(self.codes)
        tests = dict.fromkeys(
            node.test
            for tree in trees
            for node in tree.nodes
            if node.test is not None and not _is_plain(node.test, texts)
        )
        if tests:
            found = _Leaves(column, texts)
            for test in tests:
                found.add_test(test, self.schema)
            children = self.add(
                "Cast", [self.find(found, "children")], "columns of tests", to=TensorProto.DOUBLE
            )
            self.matrix = self.add("Concat", [self.matrix, children], "all columns", axis=1)
            column |= {test: len(self.used) + place for place, test in enumerate(tests)}
        found = _Leaves(column, texts)
        for tree in trees:
            found.add_tree(tree)
        places = self.find(found, "leaves")
        whole = self.add("Cast", [places], "places", to=TensorProto.INT64)
        answers = []
        for number, tree in enumerate(trees):
            at = self.constant(f"tree {number}", np.array(number, dtype=np.int64))
            leaf = self.add("Gather", [whole, at], f"leaf {number}", axis=1)
            table = self.constant(f"values {number}", np.array(tree.values))
            answers.append(self.add("Gather", [table, leaf], f"value {number}", axis=0))
        return answers

    def find(self, found: _Leaves, name: str) -> str:
        """Return what the leaves say that rows fall into, one column for each tree."""
        from onnx import TensorProto, helper

        nodes = list(zip(*sorted(found.nodes), strict=True))  # the root of each tree comes first
        leaves = list(zip(*found.leaves, strict=True))

        def doubles(title: str, values: Sequence[float]) -> Any:
            return helper.make_tensor(title, TensorProto.DOUBLE, [len(values)], values)

        return self.add(
            "TreeEnsembleRegressor", [self.matrix], name, domain="ai.onnx.ml",
            n_targets=found.trees, post_transform="NONE",
            nodes_treeids=nodes[0], nodes_nodeids=nodes[1], nodes_featureids=nodes[2],
            nodes_modes=list(nodes[3]), nodes_values_as_tensor=doubles("splits", nodes[4]),
            nodes_truenodeids=nodes[5], nodes_falsenodeids=nodes[6],
            nodes_missing_value_tracks_true=nodes[7],
            target_treeids=leaves[0], target_nodeids=leaves[1], target_ids=leaves[0],
            target_weights_as_tensor=doubles("weights", leaves[2]),
        )  # fmt: skip

    def sum(self, model: Ensemble, values: Sequence[str]) -> str:
        """Return the sums of scores, added in the order of the trees."""
        start = self.constant("start", np.array([model.start]))
        if not values:
            first = self.constant("first column", np.array([0], dtype=np.int64))
            one = self.add("Gather", [self.matrix, first], "one column", axis=1)
            shape = self.add("Shape", [one], "one shape")
            width = self.constant("width", np.array([1, len(model.start)], dtype=np.int64))
            wide = self.add("Mul", [shape, width], "shape of scores")
            return self.add("Expand", [start, wide], "sum 0")
        total = start
        for number, value in enumerate(values):
            total = self.add("Add", [total, value], f"sum {number}")
        return total

    def with_zero(self, total: str) -> str:
        """Return two scores for one: that of the first class is zero."""
        zero = self.add("Sub", [total, total], "zero")
        return self.add("Concat", [zero, total], "both scores", axis=1)

    def number(self, scores: str, *, clipped: bool) -> None:
        """Make a number the output; a sum stays within the target's bounds."""
        from onnx import TensorProto, helper

        assert self.schema.bounds is not None
        if clipped:
            low, high = (np.array(float(bound)) for bound in self.schema.bounds)
            ends = [self.constant("low", low), self.constant("high", high)]
            scores = self.add("Clip", [scores, *ends], "clipped")
        axis = self.constant("axis", np.array([1], dtype=np.int64))
        self.nodes.append(helper.make_node("Squeeze", [scores, axis], ["prediction"]))
        self.outputs = [helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, ["rows"])]

    def classes(self, scores: str, shares: str) -> None:
        """Make the most probable class, the first of equals, and all probabilities outputs."""
        from onnx import TensorProto, helper

        classes = self.schema.classes or ()
        kinds = {type(value) for value in classes}
        if kinds == {bool}:
            kind, names = TensorProto.BOOL, self.constant("classes", np.array(classes))
        elif kinds == {int}:
            whole = np.array(classes, dtype=np.int64)
            kind, names = TensorProto.INT64, self.constant("classes", whole)
        elif kinds <= {bool, int, float}:
            numbers = np.array(classes, dtype=np.float64)
            kind, names = TensorProto.DOUBLE, self.constant("classes", numbers)
        else:
            texts = [_text(str(value)) for value in classes]
            kind, names = TensorProto.STRING, self.constant("classes", texts)
        best = self.add("ArgMax", [scores], "best", axis=1, keepdims=0)
        self.nodes.append(helper.make_node("Gather", [names, best], ["prediction"], axis=0))
        self.nodes.append(helper.make_node("Identity", [shares], ["probabilities"]))
        self.outputs = [
            helper.make_tensor_value_info("prediction", kind, ["rows"]),
            helper.make_tensor_value_info(
                "probabilities", TensorProto.DOUBLE, ["rows", len(classes)]
            ),
        ]


def _text(text: str) -> str:
    """Return a name that ONNX can write."""
    if any("\ud800" <= c <= "\udfff" for c in text) or text.startswith("privet: "):
        raise SchemaError("a name or value holds characters that ONNX cannot write")
    return text
