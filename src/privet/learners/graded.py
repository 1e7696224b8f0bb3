"""Trees whose answers rise and fall within their leaves, at no cost.

A leaf gives all of its records the same score, so that few leaves hardly rank. But what was
released says more: if those above a cut are more often ill than those below, records far above it
are likely to be more often ill than those just above, in every branch of the tree. So every tested
number gets a line, along its position at several scales, whose slope is by how much the two sides
of its tests differ; and every tested category a step. All of it is small: of a single tree, so
small that no record's best class is another than its leaf's. A function of released trees and of
the schema, and of nothing else; rules: ``docs/rules.md``, proof:
``docs/proofs/post-processing.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble, n_scores
from privet.learners.slopes import curve_tree, place_of, positions_of, slope_view
from privet.schema import Numeric
from privet.tables import View
from privet.tree import Cut, Node, Test, Tree

#: Of a single tree, probabilities that differ by one on two sides of the first test make a slope of
#: this, if labels allow it.
STEEPEST = 1.0
#: The score of a leaf's label is at least this far above those of other classes; what is added may
#: differ by the second number times the smallest such distance.
LEAST_LEAD, ROOM = 0.2, 0.95
#: Of several trees, scores that differ by one make a slope of this.
FAINT = 0.05
#: Probabilities of leaves are not taken for smaller than this.
LEAST_SHARE = 1e-6

#: What every code of some features adds to the scores: one row per code.
Curves = dict[int, NDArray[np.float64]]


def graded_tree(tree: Tree) -> Tree | Ensemble:
    """Return a tree of classes as an ensemble that ranks within leaves, with the same labels.

    A tree whose sides do not differ is returned as it is.
    """
    view = slope_view(tree.schema)
    curves = _curves(tree, view)
    swing = sum(float(np.ptp(_of_all_classes(curve), axis=1).max()) for curve in curves.values())
    if swing == 0:
        return tree
    scored, lead = _scored(tree)
    steepness = min(STEEPEST, ROOM * lead / swing)
    return Ensemble(
        tree.schema,
        (0.0,) * n_scores(tree.schema),
        (scored, *_trees(view, curves, steepness)),
    )


def graded_ensemble(model: Ensemble) -> Ensemble:
    """Return trees that add up with what ranks records within their leaves."""
    view = slope_view(model.schema)
    curves: Curves = {}
    for tree in model.trees:
        for feature, curve in _curves(tree, view).items():
            curves[feature] = curves.get(feature, 0.0) + curve
    return Ensemble(model.schema, model.start, (*model.trees, *_trees(view, curves, FAINT)))


def _trees(view: View, curves: Curves, steepness: float) -> list[Tree]:
    return [curve_tree(view, j, steepness * curve) for j, curve in sorted(curves.items())]


def _curves(tree: Tree, view: View) -> Curves:
    """Return lines whose slopes are by how much the sides of a tree's tests differ.

    A test counts as much as the part of the records that reaches it.
    """
    found: Curves = {}
    for place, node in enumerate(tree.nodes):
        if node.test is None:
            continue
        feature = view.schema.names.index(node.test.feature)
        along = _along(node.test, view, feature)
        if along is None:
            continue
        first, second = tree.means[list(node.children[:2])]
        slope = tree.reached[place] * (second - first)
        if not tree.scores and len(slope) == 2:  # probabilities of two classes, which have a score
            slope = slope[1:]
        found[feature] = found.get(feature, 0.0) + along[:, None] * slope
    return found


def _along(test: Test, view: View, feature: int) -> NDArray[np.float64] | None:
    """Return how far each code lies on the second side of a test of two sides; 0 where missing.

    Missing values may be a third child.
    """
    if isinstance(test, Cut):
        if len(test.edges) != 1:
            return None
        kind = list(view.schema.features.values())[feature]
        assert isinstance(kind, Numeric)
        return np.nan_to_num(positions_of(view, feature) - place_of(kind, np.array(test.edges)))
    if test.n_children != 2:
        return None
    return np.array([*(np.array(test.children) - 0.5), 0.0])


def _scored(tree: Tree) -> tuple[Tree, float]:
    """Return the tree with scores instead of probabilities, and the least lead of a label."""
    nodes, least = [], math.inf
    for node in tree.nodes:
        value = node.value
        if value:
            logs = np.array([math.log(max(share, LEAST_SHARE)) for share in value])
            best = int(np.argmax(value))
            second = float(np.delete(logs, best).max())
            logs[best] = max(logs[best], second + LEAST_LEAD)
            least = min(least, float(logs[best]) - second)
            scores = logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean()
            value = tuple(scores.tolist())
        nodes.append(Node(node.test, node.children, value, node.released))
    return Tree(tree.schema, tuple(nodes), n_scores(tree.schema)), least


def _of_all_classes(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores of all classes: of two classes, the first one's are zero."""
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
