"""The published model: an immutable tree that every learner ends in.

A tree consists of tests and leaves. A test looks at one feature: a :class:`Cut` divides numbers at
edges, a :class:`Grouping` sends categories to children. Both may have two children or many, and
both say where missing values go. A node carries what was *released* about it, never anything else.

Trees are plain data: they are written as JSON, checked completely when read, and loading one never
runs code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelFileError
from privet.schema import Categorical, Integer, Numeric, Schema
from privet.visible import visible

_BLOCK = 65_536


@dataclass(frozen=True)
class Cut:
    """A test on a number: child j holds ``edges[j-1] <= x < edges[j]``.

    Attributes
    ----------
    feature : str
    edges : tuple of float
        Increasing. One edge makes a binary test.
    missing : int
        The child of missing values: one of the ``len(edges) + 1`` intervals, or a child of its own
        (``len(edges) + 1``).
    """

    feature: str
    edges: tuple[float, ...]
    missing: int

    @property
    def n_children(self) -> int:
        """How many children the test has."""
        return max(len(self.edges), self.missing) + 1


@dataclass(frozen=True)
class Grouping:
    """A test on a category: category i of the schema goes to child ``children[i]``.

    Attributes
    ----------
    feature : str
    children : tuple of int
        The child of every category, in the schema's order.
    other : int
        The child of unknown and missing categories.
    """

    feature: str
    children: tuple[int, ...]
    other: int

    @property
    def n_children(self) -> int:
        """How many children the test has."""
        return max(*self.children, self.other) + 1


Test = Cut | Grouping


_NOTHING: Mapping[str, int | tuple[int, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Node:
    """A place in the tree: a test with children, or a leaf.

    Attributes
    ----------
    test : Cut, Grouping or None
        None in a leaf.
    children : tuple of int
        Positions of the children in :attr:`Tree.nodes`.
    value : tuple of float
        In a leaf: one probability per class, or one mean, or scores. Empty elsewhere.
    released : mapping of str to int or tuple of int
        What the mechanisms said about this node, such as ``{"count": 118}``.
    """

    test: Test | None = None
    children: tuple[int, ...] = ()
    value: tuple[float, ...] = ()
    released: Mapping[str, int | tuple[int, ...]] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        released = MappingProxyType(dict(self.released)) if self.released else _NOTHING
        object.__setattr__(self, "released", released)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Node, (self.test, self.children, self.value, dict(self.released)))


@dataclass(frozen=True, repr=False)
class Tree:
    """An immutable decision tree.

    Attributes
    ----------
    schema : Schema
        What the features, classes and bounds are.
    nodes : tuple of Node
        The root is first; children come after their parents.
    scores : int
        0: a leaf's value is an answer. Otherwise its value is this many scores, which an
        :class:`~privet.ensemble.Ensemble` adds up.
    deviations : array of shape (nodes, scores), optional
        The standard deviation of the noise that a leaf's scores have, where the learner knows it:
        a public number, since it follows from what was paid and released. It is of no use for
        predictions, and model files do not hold it.
    """

    schema: Schema
    nodes: tuple[Node, ...]
    scores: int = 0
    deviations: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        _check(self)

    @cached_property
    def depth(self) -> int:
        """The number of tests on the longest path."""
        return max(self.depths)

    @cached_property
    def depths(self) -> list[int]:
        """How many tests there are above each node."""
        depths = [0] * len(self.nodes)
        for place, node in enumerate(self.nodes):
            for child in node.children:
                depths[child] = depths[place] + 1
        return depths

    @property
    def size_words(self) -> str:
        """The size of the tree in words."""
        return f"{self.n_leaves} {'leaf' if self.n_leaves == 1 else 'leaves'}, depth {self.depth}"

    def __repr__(self) -> str:
        return f"<Tree for {visible(self.schema.target, 40)}: {self.size_words}>"

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return sum(node.test is None for node in self.nodes)

    def leaves(self) -> Iterator[int]:
        """Yield the positions of the leaves."""
        return (place for place, node in enumerate(self.nodes) if node.test is None)

    @property
    def used(self) -> tuple[str, ...]:
        """The features that are tested somewhere."""
        return self._flat.used

    @property
    def width(self) -> int:
        """How many numbers a leaf's value has."""
        return self.scores or (1 if self.schema.classes is None else len(self.schema.classes))

    def apply(self, table: Any) -> NDArray[np.intp]:
        """Return the position of the leaf that each row falls into."""
        from privet.reading import feature_matrix  # on first use: it takes pyarrow along

        return self.route(feature_matrix(table, self.schema, self.used))

    def predict_value(self, table: Any) -> NDArray[np.float64]:
        """Return each row's leaf value: class probabilities, or the mean in one column."""
        return np.asarray(self.values[self.apply(table)])

    def route(self, matrix: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the leaves of rows whose columns are the features of :attr:`used`."""
        places = np.zeros(len(matrix), dtype=np.intp)
        for start in range(0, len(matrix), _BLOCK):
            block = slice(start, start + _BLOCK)
            places[block] = self._flat.route(matrix[block])
        return places

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The leaves' values by position; zeros elsewhere."""
        values = np.zeros((len(self.nodes), self.width))
        for place in self.leaves():
            values[place] = self.nodes[place].value
        return values

    @cached_property
    def reached(self) -> NDArray[np.float64]:
        """The part of the records that reaches each node, by released counts, where there are any.

        Without counts all branches of a test count alike, but for one that nothing but missing or
        unknown values go to, which counts nothing.
        """
        parts = np.zeros(len(self.nodes))
        counts = [_count(node) for node in self.nodes]
        if all(counts[leaf] is not None for leaf in self.leaves()):
            for place in reversed(range(len(self.nodes))):  # children come after their parents
                children = list(self.nodes[place].children)
                parts[place] = parts[children].sum() if children else max(counts[place] or 0, 0)
        if parts[0] > 0:
            return np.asarray(parts / parts[0])
        parts[0] = 1.0
        for place, node in enumerate(self.nodes):
            found = [child for k, child in enumerate(node.children) if not _lost(node, k)]
            for child in found:
                parts[child] = parts[place] / len(found)
        return parts

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The leaves' values by position; in a test, the mean of what lies below it.

        Weighed by :attr:`reached`; where nothing reaches any branch, all count alike.
        """
        means = self.values.copy()
        for place in reversed(range(len(self.nodes))):  # children come after their parents
            below = list(self.nodes[place].children)
            if below:
                parts = self.reached[below] if self.reached[below].any() else np.ones(len(below))
                means[place] = (parts[:, None] * means[below]).sum(axis=0) / parts.sum()
        return means

    @cached_property
    def _flat(self) -> _Flat:
        return _Flat(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Tree, (self.schema, self.nodes, self.scores, self.deviations))

    def to_dict(self) -> dict[str, Any]:
        """Return the nodes as plain data (the schema is written beside them)."""
        return {"nodes": [_node_to_dict(node) for node in self.nodes]}

    @classmethod
    def from_dict(cls, plain: Any, schema: Schema, scores: int = 0) -> Tree:
        """Build a tree from what :meth:`to_dict` returns, checking everything."""
        listed = _fields(plain, {"nodes"}, "the tree")["nodes"]
        nodes = tuple(_node_from_dict(entry) for entry in _typed(listed, list, "nodes"))
        return cls(schema, nodes, scores)


def _count(node: Node) -> int | None:
    """Return the released number of records of a node, if there is one."""
    classes, count = node.released.get("class_counts"), node.released.get("count")
    if isinstance(classes, tuple):
        return sum(classes)
    return count if isinstance(count, int) else None


def _lost(node: Node, child: int) -> bool:
    """Tell whether nothing but missing or unknown values go to a child."""
    if isinstance(node.test, Cut):
        return bool(node.test.edges) and child == len(node.test.edges) + 1
    return node.test is not None and child not in node.test.children


class _Flat:
    """The tree as arrays, so that all rows take one step at a time together."""

    def __init__(self, tree: Tree) -> None:
        nodes = tree.nodes
        self.used = tuple(dict.fromkeys(node.test.feature for node in nodes if node.test))
        column = {name: j for j, name in enumerate(self.used)}
        self.leaf = np.array([node.test is None for node in nodes])
        self.column = np.array([column[node.test.feature] if node.test else 0 for node in nodes])
        self.cut = np.array([isinstance(node.test, Cut) for node in nodes])
        edges: list[float] = []
        targets: list[int] = []
        first_edge, n_edges, first_target, missing = [], [], [], []
        for node in nodes:
            first_edge.append(len(edges))
            first_target.append(len(targets))
            n_edges.append(len(node.test.edges) if isinstance(node.test, Cut) else 0)
            if isinstance(node.test, Cut):
                edges += node.test.edges
                targets += node.children[: len(node.test.edges) + 1]
                missing.append(node.children[node.test.missing])
            else:
                if node.test:
                    codes = (*node.test.children, node.test.other)
                    targets += [node.children[child] for child in codes]
                missing.append(0)
        self.edges = np.array([*edges, math.inf])
        self.targets = np.array([*targets, 0], dtype=np.intp)
        self.first_edge = np.array(first_edge, dtype=np.intp)
        self.n_edges = np.array(n_edges, dtype=np.intp)
        self.first_target = np.array(first_target, dtype=np.intp)
        self.missing = np.array(missing, dtype=np.intp)
        self.searches = int(self.n_edges.max(initial=0)).bit_length()

    def route(self, matrix: NDArray[np.float64]) -> NDArray[np.intp]:
        place = np.zeros(len(matrix), dtype=np.intp)
        rows = np.flatnonzero(~self.leaf[place])
        while rows.size:  # rows that have reached a leaf take no further time
            node = place[rows]
            x = matrix[rows, self.column[node]]
            # For cuts: how many edges are not above x (binary search in each node's own edges).
            low, high = np.zeros_like(node), self.n_edges[node]
            for _ in range(self.searches):
                middle = (low + high) // 2
                inside = low < high
                above = inside & (self.edges[self.first_edge[node] + middle] <= x)
                low = np.where(above, middle + 1, low)
                high = np.where(inside & ~above, middle, high)
            absent = np.isnan(x)
            code = np.where(self.cut[node], low, np.where(absent, 0, x)).astype(np.intp)
            child = self.targets[self.first_target[node] + code]
            place[rows] = np.where(absent & self.cut[node], self.missing[node], child)
            rows = rows[~self.leaf[place[rows]]]
        return place


def _check(tree: Tree) -> None:
    """Refuse anything that is not a tree over the schema; files may be hostile."""
    nodes, schema = tree.nodes, tree.schema
    if not nodes:
        raise ModelFileError("a tree needs at least one node")
    parent: list[int | None] = [None] * len(nodes)
    for place, node in enumerate(nodes):
        for child in node.children:
            if not place < child < len(nodes) or parent[child] is not None:
                raise ModelFileError("the nodes do not form a tree: children must follow parents")
            parent[child] = place
        if node.test is None:
            if node.children or len(node.value) != tree.width:
                raise ModelFileError(
                    "a leaf needs one value per class (or one mean, or its scores) and no child"
                )
            _check_value(node.value, shares=schema.classes is not None and not tree.scores)
        else:
            if node.value:
                raise ModelFileError("only leaves have values")
            _check_test(node.test, schema)
            if node.test.n_children != len(node.children):
                raise ModelFileError("a test and its children do not fit together")
    if any(above is None for above in parent[1:]):
        raise ModelFileError("the nodes do not form a tree: one of them has no parent")


def _check_value(value: Sequence[float], *, shares: bool) -> None:
    if any(not math.isfinite(number) for number in value):
        raise ModelFileError("leaf values must be finite")
    if shares and (min(value) < 0 or abs(sum(value) - 1) > 1e-6):
        raise ModelFileError("the class probabilities of a leaf must add up to one")


def _check_test(test: Test, schema: Schema) -> None:
    feature = schema.features.get(test.feature)
    if isinstance(test, Cut):
        if not isinstance(feature, Numeric):
            raise ModelFileError("a cut needs a numeric feature of the schema")
        if any(not feature.low < edge <= feature.high for edge in test.edges):
            raise ModelFileError("a cut needs edges within its feature's bounds")
        if isinstance(feature, Integer) and not all(edge.is_integer() for edge in test.edges):
            raise ModelFileError("whole numbers and dates are cut at whole numbers and days")
        if any(a >= b for a, b in pairwise(test.edges)):
            raise ModelFileError("the edges of a cut must increase")
        if not 0 <= test.missing <= len(test.edges) + 1 or test.n_children < 2:
            raise ModelFileError("a cut sends missing values to a child that does not exist")
    else:
        if not isinstance(feature, Categorical) or len(test.children) != len(feature.values):
            raise ModelFileError("a grouping needs a categorical feature and all its categories")
        targets = {*test.children, test.other}
        if targets != set(range(len(targets))):  # bounded by the file's size, whatever it says
            raise ModelFileError("every child of a grouping needs a category")


def _node_to_dict(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if isinstance(node.test, Cut):
        plain["cut"] = {
            "feature": node.test.feature,
            "edges": list(node.test.edges),
            "missing": node.test.missing,
        }
    elif isinstance(node.test, Grouping):
        plain["grouping"] = {
            "feature": node.test.feature,
            "children": list(node.test.children),
            "other": node.test.other,
        }
    if node.children:
        plain["children"] = list(node.children)
    if node.value:
        plain["value"] = list(node.value)
    if node.released:
        plain["released"] = {
            name: list(number) if isinstance(number, tuple) else number
            for name, number in node.released.items()
        }
    return plain


def _node_from_dict(plain: Any) -> Node:
    entry = _typed(plain, dict, "a node")
    unknown = set(entry) - {"cut", "grouping", "children", "value", "released"}
    if unknown or {"cut", "grouping"} <= set(entry):
        raise ModelFileError("a node has fields that this version does not know")
    test: Test | None = None
    if "cut" in entry:
        cut = _fields(entry["cut"], {"feature", "edges", "missing"}, "a cut")
        test = Cut(_text(cut), _numbers(cut["edges"]), _whole(cut["missing"]))
    elif "grouping" in entry:
        grouping = _fields(entry["grouping"], {"feature", "children", "other"}, "a grouping")
        children = _wholes(grouping["children"])
        if not children:
            raise ModelFileError("a grouping needs categories")
        test = Grouping(_text(grouping), children, _whole(grouping["other"]))
    released: dict[str, int | tuple[int, ...]] = {}
    for name, value in _typed(entry.get("released", {}), dict, "released").items():
        released[name] = _wholes(value) if isinstance(value, list) else _whole(value)
    return Node(
        test, _wholes(entry.get("children", [])), _numbers(entry.get("value", [])), released
    )


def _typed(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(f"{what} is missing or has the wrong type")
    return value


def _fields(value: Any, names: set[str], what: str) -> dict[str, Any]:
    entry: dict[str, Any] = _typed(value, dict, what)
    if set(entry) != names:
        raise ModelFileError(f"{what} lacks fields or has some that this version does not know")
    return entry


def _text(entry: dict[str, Any]) -> str:
    return str(_typed(entry["feature"], str, "a test's feature"))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise ModelFileError("a whole number is missing or has the wrong type")
    return value


def _wholes(values: Any) -> tuple[int, ...]:
    return tuple(_whole(value) for value in _typed(values, list, "a list of whole numbers"))


def _numbers(values: Any) -> tuple[float, ...]:
    listed = _typed(values, list, "a list of numbers")
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in listed):
        raise ModelFileError("a number has the wrong type")
    try:
        return tuple(float(value) for value in listed)
    except OverflowError:
        raise ModelFileError("a number is too large") from None
