"""What each feature adds to the scores of an ensemble, alone: the curves that are drawn.

An additive ensemble has such curves (its shapes). Where trees test several features, a feature's
curve is the mean over the others: each of the intervals that the ensemble's own cuts make, and each
listed category, counts once. Cuts lie where private quantiles are, so that this is closer to the
records than even widths are; but it is no mean over records, which would have to be paid for.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble, Shape, n_scores
from privet.schema import Numeric
from privet.tree import Cut, Grouping, Tree


def effects(ensemble: Ensemble) -> tuple[Shape, ...]:
    """Return a curve for every feature that is used, in the schema's order.

    Those of an ensemble that is not additive have a mean of zero over their intervals: what is
    common to all values is no effect.

    Parameters
    ----------
    ensemble : Ensemble
    """
    if ensemble.additive:
        return ensemble.shapes()
    edges = _edges(ensemble)
    used = [name for name in ensemble.schema.names if name in ensemble.used]
    return tuple(_effect(ensemble, name, edges) for name in used)


def _edges(ensemble: Ensemble) -> dict[str, tuple[float, ...]]:
    """Return where each number is cut by any tree."""
    found: dict[str, set[float]] = {
        name: set() for name in ensemble.used if isinstance(ensemble.schema.features[name], Numeric)
    }
    for tree in ensemble.trees:
        for node in tree.nodes:
            if isinstance(node.test, Cut):
                found[node.test.feature].update(node.test.edges)
    return {name: tuple(sorted(each)) for name, each in found.items()}


def _effect(ensemble: Ensemble, name: str, edges: dict[str, tuple[float, ...]]) -> Shape:
    feature = ensemble.schema.features[name]
    codes = len(edges[name]) + 2 if name in edges else feature.size
    scores = np.zeros((codes, n_scores(ensemble.schema)))
    variances: NDArray[np.float64] | None = np.zeros_like(scores)
    for tree in ensemble.trees:
        if name not in tree.used:
            continue
        weights = _leaf_weights(tree, name, codes, edges)
        for leaf, weight in weights.items():
            scores += weight[:, None] * tree.values[leaf]
            if tree.deviations is None:
                variances = None
            elif variances is not None:  # noise of two leaves is independent
                variances += (weight[:, None] * tree.deviations[leaf]) ** 2
    scores -= scores[:-1].mean(axis=0)
    deviations = None if variances is None else np.sqrt(variances)
    return Shape(name, edges.get(name), scores[:-1], scores[-1], deviations)


def _leaf_weights(
    tree: Tree, name: str, codes: int, edges: dict[str, tuple[float, ...]]
) -> dict[int, NDArray[np.float64]]:
    """Return for every leaf, by codes of a feature, the part of all others that comes there."""
    found = {}
    child_of = partial(_children, edges=edges, tree=tree)
    # A place, what part comes there by code of the feature, and the open codes of the others.
    waiting: list[tuple[int, NDArray[np.float64], dict[str, NDArray[np.bool_]]]]
    waiting = [(0, np.ones(codes), {})]
    while waiting:
        place, part, others = waiting.pop()
        node = tree.nodes[place]
        if node.test is None:
            found[place] = part
            continue
        children = child_of(place)
        for number, child in enumerate(node.children):
            here = children == number
            if node.test.feature == name:
                waiting.append((child, part * here, others))
                continue
            known = others.get(node.test.feature, np.ones(len(here), dtype=bool))
            left = known[:-1] & here[:-1]  # of values that are there
            before = known[:-1].sum()
            share = left.sum() / before if before else 0.0
            if share:
                inside = {**others, node.test.feature: known & here}
                waiting.append((child, part * share, inside))
    return found


def _children(place: int, *, tree: Tree, edges: dict[str, tuple[float, ...]]) -> NDArray[np.intp]:
    """Return the child of every code of the tested feature, that of missing values last."""
    test = tree.nodes[place].test
    if isinstance(test, Grouping):
        return np.array([*test.children, test.other])
    assert test is not None
    points = np.array([-math.inf, *edges[test.feature]])
    return np.append(np.searchsorted(np.array(test.edges), points, side="right"), test.missing)
