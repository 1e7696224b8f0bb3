"""A published model of several trees whose scores add up: boosted trees, or an additive model.

With two classes there is one score, the log odds of the second class; with more there is one per
class, and probabilities are their softmax; for a number there is one, in the target's units. An
ensemble whose trees test one feature each is *additive*: its trees with a common feature add up to
a *shape*, a curve that shows what the feature does. Like a tree, an ensemble is plain data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelFileError
from privet.schema import Numeric, Schema
from privet.tree import Cut, Tree
from privet.visible import visible

#: Scores that could add up to more are refused, so that no sum and no difference overflows.
LARGEST = 1e307


@dataclass(frozen=True, eq=False)
class Shape:
    """What one feature adds to the scores of an additive ensemble.

    Attributes
    ----------
    feature : str
    edges : tuple of float or None
        For a number: where the scores change. Interval j holds ``edges[j-1] <= x < edges[j]``.
        None for a category.
    scores : array of shape (intervals or categories, scores)
        One row per interval, or per category in the schema's order.
    missing : array of shape (scores,)
        For missing values; for unknown categories too.
    deviations : array of shape (intervals or categories + 1, scores), optional
        The standard deviation of the known noise in the scores, those for missing values last; None
        where it is not known, as in a model that was read from a file.
    """

    feature: str
    edges: tuple[float, ...] | None
    scores: NDArray[np.float64]
    missing: NDArray[np.float64]
    deviations: NDArray[np.float64] | None = None


@dataclass(frozen=True, repr=False)
class Ensemble:
    """Trees whose scores are added up.

    Attributes
    ----------
    schema : Schema
        What the features, classes and bounds are.
    start : tuple of float
        The scores before the first tree: :func:`n_scores` of them.
    trees : tuple of Tree
        Each with as many scores in its leaves as there are in ``start``.

    Examples
    --------
    >>> from privet.tree import Node
    >>> schema = Schema({"age": Numeric(0, 120)}, "readmitted", classes=["no", "yes"])
    >>> tree = Tree(schema, (
    ...     Node(Cut("age", (65.0,), missing=0), (1, 2)), Node(value=(-0.5,)), Node(value=(1.0,)),
    ... ), scores=1)
    >>> ensemble = Ensemble(schema, (-0.25,), (tree, tree))
    >>> ensemble.predict_score(np.array([[30.0], [80.0]]))
    array([[-1.25],
           [ 1.75]])
    >>> ensemble.shapes()[0].scores
    array([[-1.],
           [ 2.]])
    """

    schema: Schema
    start: tuple[float, ...]
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(float(score) for score in self.start))
        object.__setattr__(self, "trees", tuple(self.trees))
        width = n_scores(self.schema)
        if len(self.start) != width or any(not math.isfinite(score) for score in self.start):
            raise ModelFileError("an ensemble needs one finite starting score per score")
        if any(tree.scores != width or tree.schema != self.schema for tree in self.trees):
            raise ModelFileError("the trees of an ensemble need the same scores and schema")
        largest = (float(np.abs(tree.values).max()) for tree in self.trees)
        if sum(largest, max(map(abs, self.start))) > LARGEST:
            raise ModelFileError("the scores of an ensemble are too large to be added up")

    @property
    def size_words(self) -> str:
        """The size of the ensemble in words."""
        trees, leaves = len(self.trees), self.n_leaves
        return f"{trees} {'tree' if trees == 1 else 'trees'}, {leaves} leaves, depth {self.depth}"

    def __repr__(self) -> str:
        return f"<Ensemble for {visible(self.schema.target, 40)}: {self.size_words}>"

    @property
    def depth(self) -> int:
        """The number of tests on the longest path of a tree."""
        return max((tree.depth for tree in self.trees), default=0)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return sum(tree.n_leaves for tree in self.trees)

    @property
    def used(self) -> tuple[str, ...]:
        """The features that are tested somewhere."""
        return tuple(dict.fromkeys(name for tree in self.trees for name in tree.used))

    @property
    def additive(self) -> bool:
        """Whether no tree looks at more than one feature."""
        return all(len(tree.used) <= 1 for tree in self.trees)

    @property
    def base(self) -> tuple[float, ...]:
        """The scores that every row gets: the start and the trees without a test."""
        scores = np.array(self.start)
        for tree in self.trees:
            if not tree.used:
                scores += tree.values[0]
        return tuple(scores.tolist())

    def shapes(self) -> tuple[Shape, ...]:
        """Return what each used feature adds to the scores, in the schema's order.

        A row's scores are :attr:`base` and, for each shape, the row of scores that its value falls
        into. Shapes come from the published trees alone, so they cost nothing.

        Raises
        ------
        ValueError
            If a tree tests several features: it has no share that is one feature's own.
        """
        if not self.additive:
            raise ValueError("only additive ensembles have shapes: a tree tests several features")
        trees: dict[str, list[Tree]] = {name: [] for name in self.schema.names}
        for tree in self.trees:
            for name in tree.used:
                trees[name].append(tree)
        return tuple(_shape(name, trees[name]) for name in trees if trees[name])

    def predict_score(self, table: Any) -> NDArray[np.float64]:
        """Return the sums of scores, one row per row and one column per score."""
        from privet.reading import feature_matrix  # on first use: it takes pyarrow along

        used = self.used
        matrix = feature_matrix(table, self.schema, used)
        column = {name: j for j, name in enumerate(used)}
        scores = np.tile(np.array(self.start), (len(matrix), 1))
        for tree in self.trees:
            scores += tree.values[tree.route(matrix[:, [column[name] for name in tree.used]])]
        return scores

    def predict_value(self, table: Any) -> NDArray[np.float64]:
        """Return class probabilities, or the predicted number in one column."""
        scores = self.predict_score(table)
        if self.schema.classes is None:
            assert self.schema.bounds is not None
            low, high = self.schema.bounds
            return np.asarray(np.clip(scores, low, high))
        return shares_of(scores)

    def to_dict(self) -> dict[str, Any]:
        """Return the ensemble as plain data (the schema is written beside it)."""
        return {"start": list(self.start), "trees": [tree.to_dict() for tree in self.trees]}

    @classmethod
    def from_dict(cls, plain: Any, schema: Schema) -> Ensemble:
        """Build an ensemble from what :meth:`to_dict` returns, checking everything."""
        if not isinstance(plain, dict) or set(plain) != {"start", "trees"}:
            raise ModelFileError("the ensemble lacks fields or has some that are not known")
        start, trees = plain["start"], plain["trees"]
        if not isinstance(start, list) or not isinstance(trees, list):
            raise ModelFileError("an ensemble needs lists of starting scores and trees")
        if any(isinstance(score, bool) or not isinstance(score, int | float) for score in start):
            raise ModelFileError("a starting score is no number")
        try:
            numbers = tuple(float(score) for score in start)
        except OverflowError:
            raise ModelFileError("a starting score is too large") from None
        width = n_scores(schema)
        return cls(schema, numbers, tuple(Tree.from_dict(tree, schema, width) for tree in trees))


def n_scores(schema: Schema) -> int:
    """Return how many scores a model of this schema's target adds up."""
    return 1 if schema.classes is None or len(schema.classes) == 2 else len(schema.classes)


def shares_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return class probabilities of scores: logistic for one column, softmax for several.

    The first class with the highest score is the first with the highest probability. Rounding alone
    would not keep this: 1e-20 more is no higher probability in a double.

    Examples
    --------
    >>> shares_of(np.array([[0.0], [np.log(3)]])).round(3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = np.asarray(weights / weights.sum(axis=1, keepdims=True))
    best = scores.argmax(axis=1)
    tied = np.flatnonzero(shares.argmax(axis=1) != best)
    shares[tied, best[tied]] = np.nextafter(shares[tied, best[tied]], 1)
    return shares


def _shape(name: str, trees: Sequence[Tree]) -> Shape:
    """Add up trees that test one feature: their scores at one point of every interval."""
    schema = trees[0].schema
    feature, edges = schema.features[name], None
    if isinstance(feature, Numeric):
        tests = (node.test for tree in trees for node in tree.nodes)
        edges = tuple(sorted({e for test in tests if isinstance(test, Cut) for e in test.edges}))
        points = np.array([-math.inf, *edges, math.nan])
    else:
        points = np.arange(feature.size, dtype=np.float64)
    scores = np.zeros((len(points), n_scores(schema)))
    variances: NDArray[np.float64] | None = np.zeros_like(scores)
    for tree in trees:
        places = _places_at(tree, edges, points)
        scores += tree.values[places]
        if tree.deviations is None:
            variances = None
        elif variances is not None:
            variances += tree.deviations[places] ** 2  # noise of two trees is independent
    scores.setflags(write=False)
    deviations = None if variances is None else np.sqrt(variances)
    return Shape(name, edges, scores[:-1], scores[-1], deviations)


def _places_at(
    tree: Tree, edges: tuple[float, ...] | None, points: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return a tree's leaves at points; by its own edges, since many trees have few of theirs."""
    if edges is None:
        return tree.route(points[:, np.newaxis])
    own = np.unique(
        [e for node in tree.nodes if isinstance(node.test, Cut) for e in node.test.edges]
    )
    ends = np.array([-math.inf, *own, math.nan])
    leaves = tree.route(ends[:, np.newaxis])
    between = np.searchsorted(own, points[:-1], side="right")
    return np.asarray(leaves[np.append(between, -1)])
