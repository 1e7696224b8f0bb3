"""From drawn splits and labels to a published tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privet.privacy.budget import Amount
from privet.tables import Branch, Cells, Leaf, Sketch, Split, View
from privet.tree import Cut, Grouping, Node, Test, Tree


def as_test(split: Split, view: View) -> Test:
    """Return a split of codes as a test of values."""
    name = view.schema.names[split.feature]
    cuts = view.cuts[split.feature]
    *children, extra = split.children
    if cuts is None:
        return Grouping(name, tuple(children), other=extra)
    edges = [cut for cut, (a, b) in zip(cuts, pairwise(children), strict=True) if a != b]
    return Cut(name, tuple(edges), missing=extra)


def without_dead_ends(sketch: Sketch, open_codes: tuple[frozenset[int], ...]) -> Sketch:
    """Return the tree without what no record can reach: tests that contradict one above them.

    Post-processing: every record keeps its leaf. ``open_codes`` are the codes of every feature
    with which a record can get here.
    """
    if isinstance(sketch, Leaf):
        return sketch
    feature, children = sketch.split.feature, sketch.split.children
    parts = [
        frozenset(code for code in open_codes[feature] if children[code] == child)
        for child in range(len(sketch.children))
    ]
    reached = [child for child, codes in enumerate(parts) if codes]
    below = [
        without_dead_ends(
            sketch.children[child],
            (*open_codes[:feature], parts[child], *open_codes[feature + 1 :]),
        )
        for child in reached
    ]
    if len(reached) == 1:
        return below[0]
    number = {child: place for place, child in enumerate(reached)}
    # Codes that cannot come here go with the first child that can be reached.
    kept = tuple(number.get(child, 0) for child in children)
    return Branch(Split(feature, kept), tuple(below))


def assemble(sketch: Sketch, cells: Cells, view: View, leaf_epsilon: Amount | None) -> Tree:
    """Return the tree of a sketch; with a budget for its leaves, buy their class counts."""
    nodes: list[Node] = []
    level: list[Sketch] = [sketch]
    while level:
        ends = np.array([isinstance(item, Leaf) for item in level])
        counts = cells.take(ends).noisy_class_counts(leaf_epsilon) if leaf_epsilon else None
        leaves, child = 0, len(nodes) + len(level)
        below: list[Sketch] = []
        splits = []
        for item in level:
            if isinstance(item, Branch):
                below += item.children
                splits.append(item.split)
                places = tuple(range(child, child + len(item.children)))
                child += len(item.children)
                nodes.append(Node(as_test(item.split, view), places))
            else:
                bought = None if counts is None else counts[leaves]
                nodes.append(_leaf(item, view, bought, leaf_epsilon))
                leaves += 1
        if below and leaf_epsilon:
            cells = cells.take(~ends).split(splits)
        level = below
    return Tree(view.schema, tuple(nodes))


def class_shares(counts: NDArray[np.int64], epsilon: Amount) -> NDArray[np.float64]:
    """Turn noisy class counts into probabilities, in the same order: post-processing.

    Counts are bent upwards below the scale of their noise, so that all shares are positive.
    """
    width = max(1.0, 1 / float(epsilon))
    weights = np.logaddexp(0.0, counts / width)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _leaf(leaf: Leaf, view: View, counts: NDArray[np.int64] | None, epsilon: Amount | None) -> Node:
    """Return a leaf: its label for sure, or shares by bought counts with the label on top."""
    classes = len(view.schema.classes or ())
    if counts is None or epsilon is None:
        return Node(value=tuple(float(k == leaf.label) for k in range(classes)))
    shares = class_shares(counts, epsilon)
    if shares.argmax() != leaf.label:
        shares[leaf.label] = shares.max() * (1 + 1e-9)
        shares /= shares.sum()
    return Node(value=tuple(shares.tolist()), released={"class_counts": tuple(counts.tolist())})
