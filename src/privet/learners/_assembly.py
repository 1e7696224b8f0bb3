"""From drawn splits and labels to a published tree."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privet.privacy.budget import Amount, Budget
from privet.tables import Branch, Cells, Leaf, Split, Subtree, View
from privet.tree import Cut, Grouping, Node, Test, Tree

#: First shares of the classes weigh as much as this many scales of the noise of a leaf's counts.
FIRST_WEIGHT = 2


def as_test(split: Split, view: View) -> Test:
    """Return a split of codes as a test of values."""
    name = view.schema.names[split.feature]
    cuts = view.cuts[split.feature]
    extra = split.children[-1]
    if cuts is None:
        return Grouping(name, split.children[:-1], other=extra)
    steps = np.flatnonzero(np.diff(split.child_of[:-1])).tolist()  # there may be a thousand codes
    return Cut(name, tuple(cuts[step] for step in steps), missing=extra)


def without_dead_ends(subtree: Subtree, open_codes: tuple[frozenset[int], ...]) -> Subtree:
    """Return the tree without branches that no record can reach: they contradict a test above.

    Post-processing: every record keeps its leaf. ``open_codes`` are the codes of every feature
    with which a record can get here.
    """
    if isinstance(subtree, Leaf):
        return subtree
    feature, children = subtree.split.feature, subtree.split.children
    parts = [
        frozenset(code for code in open_codes[feature] if children[code] == child)
        for child in range(len(subtree.children))
    ]
    reached = [child for child, codes in enumerate(parts) if codes]
    below = [
        without_dead_ends(
            subtree.children[child],
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


def without_needless(subtree: Subtree) -> Subtree:
    """Return the tree without tests whose leaves all have the same label: post-processing."""
    if isinstance(subtree, Leaf):
        return subtree
    children = tuple(map(without_needless, subtree.children))
    if all(isinstance(child, Leaf) and child == children[0] for child in children):
        return children[0]
    return Branch(subtree.split, children)


def grown(levels: list[list[Split]], labels: list[int]) -> Subtree:
    """Return the tree of the splits of all levels and the labels of its leaves, from the left."""
    row: list[Subtree] = [Leaf(label) for label in labels]
    for splits in reversed(levels):
        below = iter(row)
        row = [
            Branch(split, tuple(next(below) for _ in range(split.n_children))) for split in splits
        ]
    return row[0]


def n_leaves(subtree: Subtree) -> int:
    """Return the number of leaves."""
    return sum(map(n_leaves, subtree.children)) if isinstance(subtree, Branch) else 1


def leaf_cells(cells: Cells, subtree: Subtree, view: View) -> Cells:
    """Return the leaves of a tree on one cell as cells, in the order of :func:`score_tree`."""
    level: list[Subtree] = [subtree]
    while any(isinstance(item, Branch) for item in level):
        stay = Split(0, (0,) * view.sizes[0])
        cells = cells.split([item.split if isinstance(item, Branch) else stay for item in level])
        level = [
            child
            for item in level
            for child in (item.children if isinstance(item, Branch) else (item,))
        ]
    return cells


def score_tree(
    subtree: Subtree,
    view: View,
    values: NDArray[np.float64],
    deviations: NDArray[np.float64] | None = None,
) -> Tree:
    """Return a tree with given scores in its leaves, one row for each from left to right.

    ``deviations`` are those of the noise in the scores, if they are known.
    """
    nodes: list[Node] = []
    rows: list[int] = []  # of the values, by node; any for tests
    level = [(subtree, 0)]  # with the row of the first leaf below
    while level:
        child = len(nodes) + len(level)
        below: list[tuple[Subtree, int]] = []
        for item, start in level:
            if isinstance(item, Branch):
                places = tuple(range(child, child + len(item.children)))
                child += len(item.children)
                nodes.append(Node(as_test(item.split, view), places))
                rows.append(start)
                starts = accumulate(map(n_leaves, item.children[:-1]), initial=start)
                below += zip(item.children, starts, strict=True)
            else:
                nodes.append(Node(value=tuple(values[start].tolist())))
                rows.append(start)
        level = below
    noise = None if deviations is None else deviations[rows]
    return Tree(view.schema, tuple(nodes), values.shape[1], noise)


def assemble(
    subtree: Subtree,
    cells: Cells,
    view: View,
    leaf_amount: Amount | None,
    budget: Budget,
    *,
    first: tuple[float, ...] | None = None,
) -> Tree:
    """Return a subtree as a published tree; with an amount for its leaves, buy class counts.

    With the classes' first shares, these counts decide, and not the drawn labels: shares of leaves
    begin with the first ones.
    """
    scale = budget.count_scale(leaf_amount) if leaf_amount else 0.0
    nodes: list[Node] = []
    level: list[Subtree] = [subtree]
    while level:
        ends = np.array([isinstance(item, Leaf) for item in level])
        counts = cells.take(ends).noisy_class_counts(leaf_amount) if leaf_amount else None
        leaves, child = 0, len(nodes) + len(level)
        below: list[Subtree] = []
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
                if bought is not None and first is not None:
                    nodes.append(_counted_leaf(bought, scale, first))
                else:
                    nodes.append(_leaf(item, view, bought, scale))
                leaves += 1
        if below and leaf_amount:
            cells = cells.take(~ends).split(splits)
        level = below
    return Tree(view.schema, tuple(nodes))


def class_shares(counts: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Turn noisy class counts into probabilities, in the same order: post-processing.

    Counts below the scale of their noise are raised smoothly, so that all shares are positive.
    """
    width = max(1.0, scale)
    weights = np.logaddexp(0.0, counts / width)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _leaf(leaf: Leaf, view: View, counts: NDArray[np.int64] | None, scale: float) -> Node:
    """Return a leaf: sure of its label, or with class shares, of which the label has the most."""
    classes = len(view.schema.classes or ())
    if counts is None:
        return Node(value=tuple(float(k == leaf.label) for k in range(classes)))
    shares = class_shares(counts, scale)
    if shares.argmax() != leaf.label:
        shares[leaf.label] = shares.max() * (1 + 1e-9)
        shares /= shares.sum()
    return Node(value=tuple(shares.tolist()), released={"class_counts": tuple(counts.tolist())})


def _counted_leaf(counts: NDArray[np.int64], scale: float, first: tuple[float, ...]) -> Node:
    """Return a leaf with the first shares, which weigh like its noise, and its counts."""
    weights = np.maximum(counts, 0) + FIRST_WEIGHT * max(1.0, scale) * np.array(first)
    value = tuple((weights / weights.sum()).tolist())
    return Node(value=value, released={"class_counts": tuple(counts.tolist())})
