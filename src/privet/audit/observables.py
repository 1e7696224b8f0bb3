"""What anyone who receives a fitted model can see, as named numbers."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from typing import Any

import numpy as np

from privet.ensemble import Ensemble
from privet.errors import AuditError
from privet.tree import Cut, Node, Tree

#: What is read of a model: nodes of a tree, trees of an ensemble, its leaves under the first probe.
NODES, TREES, LEAVES = 7, 3, 32


def observe(model: Any, probes: Any) -> dict[str, float]:
    """Read numbers off a fitted model: what anyone who receives it can see.

    Parameters
    ----------
    model : fitted estimator
        Trees and forests of this library and of scikit-learn's kind are looked into; whatever else
        there is, only predictions are taken.
    probes : table
        Rows whose predictions are looked at; the path of the first is followed.

    Returns
    -------
    dict of str to float
        What is not there (a node that was not grown) is left out.
    """
    found: dict[str, float] = {}
    with suppress(Exception):  # foreign models may look like ours and be something else
        found |= _read_card(model.privacy_)
    with suppress(Exception):
        found |= _read_test(model.evaluation_)
    with suppress(Exception):
        found |= _read_structure(model, probes)
    found |= _read_predictions(model, probes)
    return found


def _read_card(card: Any) -> dict[str, float]:
    plain = json.dumps(card.to_dict(), sort_keys=True, default=str)
    return {
        "the card's epsilon": float(card.epsilon),
        "the card's number of entries": float(len(card.entries)),
        "the card (as a code)": _code(plain),
    }


def _read_test(evaluation: Any) -> dict[str, float]:
    """Read all released numbers of a test score."""
    return {
        f"the test's {name} {place}": float(number)
        for name in ("confusion", "scores", "sums")
        if getattr(evaluation, name) is not None
        for place, number in enumerate(np.ravel(getattr(evaluation, name).values))
    }


def _read_predictions(model: Any, probes: Any) -> dict[str, float]:
    if not hasattr(model, "predict"):
        raise AuditError("the estimator has no predict: pass an observe of your own")
    if hasattr(model, "predict_proba"):
        with suppress(Exception):  # several outputs, or none for this setting
            shares = np.asarray(model.predict_proba(probes), dtype=np.float64)
            classes = [str(value) for value in getattr(model, "classes_", range(shares.shape[1]))]
            return {
                f"the probability of {name} at probe {i}": float(share)
                for i, row in enumerate(shares)
                for name, share in zip(classes, row, strict=True)
            }
    return {
        f"prediction {i}": _number(value) for i, value in enumerate(np.ravel(model.predict(probes)))
    }


def _read_structure(model: Any, probes: Any) -> dict[str, float]:
    published = getattr(model, "predictor_", None)
    if isinstance(published, Tree):
        return _read_tree("", published, probes, NODES)
    if isinstance(published, Ensemble):
        found = {f"starting score {j}": score for j, score in enumerate(published.start)}
        found["the number of trees"] = float(len(published.trees))
        for t, tree in enumerate(published.trees[:TREES]):
            found |= _read_tree(f"tree {t}: ", tree, probes, 3)
        for t, tree in enumerate(published.trees[:LEAVES]):
            for j, score in enumerate(tree.predict_value(probes)[0]):
                found[f"tree {t}: score {j} of probe 0"] = float(score)
        return found
    if hasattr(model, "tree_"):
        return _read_foreign_tree("", model.tree_, NODES)
    found = {}
    members = np.ravel(np.array(model.estimators_, dtype=object))
    found["the number of trees"] = float(len(members))
    for t, member in enumerate(members[:TREES]):
        found |= _read_foreign_tree(f"tree {t}: ", member.tree_, NODES)
    return found


def _read_tree(prefix: str, tree: Tree, probes: Any, nodes: int) -> dict[str, float]:
    """Read the first nodes, and those that the first probe passes."""
    found = {f"{prefix}the number of nodes": float(len(tree.nodes))}
    for place, node in enumerate(tree.nodes[:nodes]):
        found |= _read_node(f"{prefix}node {place}: ", tree, node)
    above = {child: place for place, node in enumerate(tree.nodes) for child in node.children}
    path = [int(tree.apply(probes)[0])]
    while path[0]:
        path.insert(0, above[path[0]])
    found[f"{prefix}the depth of probe 0"] = float(len(path) - 1)
    for depth, place in enumerate(path[1:nodes], start=1):
        found |= _read_node(f"{prefix}probe 0 at depth {depth}: ", tree, tree.nodes[place])
    if len(path) > 1:
        found |= _read_node(f"{prefix}probe 0 in its leaf: ", tree, tree.nodes[path[-1]])
    return found


def _read_node(prefix: str, tree: Tree, node: Node) -> dict[str, float]:
    found = {}
    if node.test is not None:
        found[f"{prefix}feature"] = float(tree.schema.names.index(node.test.feature))
        if isinstance(node.test, Cut) and len(node.test.edges) == 1:
            found[f"{prefix}cut"] = node.test.edges[0]
        else:
            found[f"{prefix}test (as a code)"] = _code(repr(node.test))
    for name, released in node.released.items():
        for j, number in enumerate(released if isinstance(released, tuple) else (released,)):
            found[f"{prefix}{name} {j}"] = float(number)
    for j, value in enumerate(node.value):
        found[f"{prefix}value {j}"] = value
    return found


def _read_foreign_tree(prefix: str, tree: Any, nodes: int) -> dict[str, float]:
    found = {f"{prefix}the number of nodes": float(len(tree.feature))}
    for place in range(min(nodes, len(tree.feature))):
        found[f"{prefix}node {place}: feature"] = float(tree.feature[place])
        found[f"{prefix}node {place}: cut"] = float(tree.threshold[place])
        for j, value in enumerate(np.ravel(tree.value[place])):
            found[f"{prefix}node {place}: value {j}"] = float(value)
    return found


def _number(value: Any) -> float:
    """Return a prediction as a number: text and the like as a code that is the same in all runs."""
    return float(value) if isinstance(value, int | float | np.number) else _code(str(value))


def _code(text: str) -> float:
    return float(zlib.crc32(text.encode()))
