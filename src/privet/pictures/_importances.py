"""How much each feature matters to a model, from the published model alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.export._outline import shape_tree
from privet.tree import Cut, Node, Tree


def importances(predictor: Tree | Ensemble) -> dict[str, float]:
    """Return the part of each feature in how much the model's answers differ.

    A test divides what reaches it into branches; how much the branches' mean answers differ (their
    variance, added up over classes), times how many records reach the test, is the feature's. For a
    tree whose leaves have the records' class shares that is scikit-learn's decrease of the Gini
    impurity, of a number that of the variance; here the answers are the *model's*, and not those of
    any record. In an ensemble the answers are scores, and trees add up; in an additive one, trees
    of one feature are one curve first.

    How many records reach a leaf is its released count (at least 0), where there is one. Without
    counts all branches of a test count alike, but for one that nothing but missing or unknown
    values go to, which counts nothing.

    Parameters
    ----------
    predictor : Tree or Ensemble

    Returns
    -------
    dict
        A number for every feature of the schema, in its order; they add up to 1, or are all 0 if
        the model gives every row the same answer.

    Notes
    -----
    What it says is what *this model* goes by. Noise in the model is in it, too: a split that was
    drawn by chance counts like any other. Of two features that say the same, one may get all.

    Privacy
    -------
    Works on what is published, and on nothing else, so it costs nothing.

    Examples
    --------
    >>> from privet.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 120), "dose": Numeric(0, 9)}, "ill", bounds=(0, 1))
    >>> importances(Tree(schema, (
    ...     Node(Cut("age", (65.0,), missing=0), (1, 2)), Node(value=(0.2,)), Node(value=(0.9,)),
    ... )))
    {'age': 1.0, 'dose': 0.0}
    """
    schema = predictor.schema
    trees: list[Tree]
    if isinstance(predictor, Tree):
        trees = [predictor]
    elif predictor.additive:
        trees = [shape_tree(shape, schema) for shape in predictor.shapes()]
    else:
        trees = list(predictor.trees)
    found = dict.fromkeys(schema.names, 0.0)
    for tree in trees:
        _add(tree, found)
    total = sum(found.values())
    return {name: value / total if total > 0 else 0.0 for name, value in found.items()}


def _add(tree: Tree, found: dict[str, float]) -> None:
    """Add what the tests of one tree do to their features."""
    weights, means = _weights(tree), np.array(tree.values)
    for place in reversed(range(len(tree.nodes))):  # children come after their parents
        node = tree.nodes[place]
        if node.test is None:
            continue
        below = list(node.children)
        whole = weights[below].sum()
        if not whole > 0:
            means[place] = means[below].mean(axis=0)
            continue
        shares = weights[below] / whole
        means[place] = shares @ means[below]
        between = float(shares @ ((means[below] - means[place]) ** 2).sum(axis=1))
        found[node.test.feature] += float(whole) * between


def _weights(tree: Tree) -> NDArray[np.float64]:
    """Return the part of the records that reaches each node, by released counts if there are."""
    weights = np.zeros(len(tree.nodes))
    counts = [_count(node) for node in tree.nodes]
    if all(counts[leaf] is not None for leaf in tree.leaves()):
        for place in reversed(range(len(tree.nodes))):
            node = tree.nodes[place]
            if node.test is None:
                weights[place] = max(counts[place] or 0, 0)
            else:
                weights[place] = weights[list(node.children)].sum()
        if weights[0] > 0:
            return np.asarray(weights / weights[0])
    weights[0] = 1.0
    for place, node in enumerate(tree.nodes):
        reached = [child for number, child in enumerate(node.children) if not _lost(node, number)]
        for child in node.children:
            weights[child] = weights[place] / len(reached) if child in reached else 0.0
    return weights


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
