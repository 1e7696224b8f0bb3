"""A published model of several trees whose scores add up: boosted trees, or an additive model.

With two classes there is one score, the log odds of the second class; with more there is one per
class, and probabilities are their softmax; for a number there is one, in the target's units. An
ensemble whose trees have one test each is *additive*: its trees with a common feature add up to a
*shape*, a curve that shows what the feature does. Like a tree, an ensemble is plain data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelFileError
from privet.frames import feature_matrix
from privet.schema import Schema
from privet.tree import Tree

#: Scores further out say nothing more: a probability is then 0 or 1 in a double.
FURTHEST = 700.0


@dataclass(frozen=True)
class Ensemble:
    """Trees whose scores are added up.

    Attributes
    ----------
    schema : Schema
        What the features, classes and bounds are.
    start : tuple of float
        The scores before the first tree: :func:`n_scores` of them.
    trees : tuple of Tree
        Each with so many scores in its leaves.
    """

    schema: Schema
    start: tuple[float, ...]
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(self.start))
        object.__setattr__(self, "trees", tuple(self.trees))
        width = n_scores(self.schema)
        if len(self.start) != width or any(not math.isfinite(score) for score in self.start):
            raise ModelFileError("an ensemble needs one finite starting score per score")
        if any(tree.scores != width or tree.schema != self.schema for tree in self.trees):
            raise ModelFileError("the trees of an ensemble need the same scores and schema")

    @property
    def additive(self) -> bool:
        """Whether every tree looks at one feature only."""
        return all(len(tree.used) <= 1 for tree in self.trees)

    def predict_score(self, table: Any) -> NDArray[np.float64]:
        """Return the sums of scores, one row per row and one column per score."""
        used = tuple(dict.fromkeys(name for tree in self.trees for name in tree.used))
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
            return np.asarray(np.clip(scores, *self.schema.bounds))
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
    """Return class probabilities of scores: logistic for one column, softmax for several."""
    if scores.shape[1] == 1:
        second = 1 / (1 + np.exp(-np.clip(scores[:, 0], -FURTHEST, FURTHEST)))
        return np.column_stack([1 - second, second])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
