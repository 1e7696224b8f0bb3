"""How much each feature matters to a model, from the published model alone."""

from __future__ import annotations

from privet.ensemble import Ensemble
from privet.export._outline import shape_tree
from privet.tree import Tree


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
    >>> from privet.tree import Cut, Node
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
    for place, node in enumerate(tree.nodes):
        below = list(node.children)
        parts = tree.reached[below]
        whole = parts.sum()
        if node.test is None or not whole > 0:
            continue
        between = (parts / whole) @ ((tree.means[below] - tree.means[place]) ** 2).sum(axis=1)
        found[node.test.feature] += float(whole * between)
