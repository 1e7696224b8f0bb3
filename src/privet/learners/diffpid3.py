"""DiffPID3: private ID3 with multiway splits (Friedman & Schuster 2010, Algorithm 2).

Each level but the last pays two shares of the budget: one for a noisy count, by which a cell stops
or goes on, and one for either the split (cells that go on) or the class counts (cells that stop).
The last level needs no stop rule, so both its shares go to the class counts; the paper spends one
of them on a count that only its pruning uses. Proof: ``docs/proofs/diffpid3.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.learners._assembly import as_test, class_shares
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import Cells, Multiway, PrivateTable, Split, View
from privet.tree import Node, Tree


def learn(table: PrivateTable, *, epsilon: Amount, max_depth: int, criterion: Criterion) -> Tree:
    """Learn a tree for at most ``epsilon``."""
    schema = table.schema
    depth = min(max_depth, len(schema.names))
    share = epsilon / (2 * (depth + 1))
    candidates = Multiway()
    nodes: list[Node] = []
    view = View.of_bins(schema)
    cells, unused = table.root(view), np.ones((1, len(schema.names)), dtype=bool)
    for _ in range(depth):
        counts = cells.noisy_counts(share)
        stop = counts <= _enough(schema, unused, share)
        leaf_counts = cells.take(stop).noisy_class_counts(share)
        cells, unused = cells.take(~stop), unused[~stop]
        splits = cells.choose_splits(candidates, criterion, share, unused)
        nodes += _level(len(nodes), view, share, stop, counts, leaf_counts, splits)
        if not splits:
            return Tree(schema, tuple(nodes))
        cells, unused = cells.split(splits), _without_used(unused, splits)
    nodes += _last_level(cells, 2 * share)
    return Tree(schema, tuple(nodes))


def _enough(schema: Schema, unused: NDArray[np.bool_], share: Amount) -> NDArray[np.float64]:
    """Line 9: after a split, class counts should on average exceed the noise's deviation."""
    assert schema.classes is not None
    widest = (unused * np.array(schema.sizes)).max(axis=1)
    return np.asarray(widest * len(schema.classes) * math.sqrt(2) / float(share))


def _without_used(unused: NDArray[np.bool_], splits: list[Split]) -> NDArray[np.bool_]:
    left = unused.copy()
    left[np.arange(len(splits)), [split.feature for split in splits]] = False
    return np.repeat(left, [split.n_children for split in splits], axis=0)


def _level(
    first: int,
    view: View,
    share: Amount,
    stop: NDArray[np.bool_],
    counts: NDArray[np.int64],
    leaf_counts: NDArray[np.int64],
    splits: list[Split],
) -> list[Node]:
    """Return the nodes of one level; the next level's follow them, children in order."""
    leaves = iter(_leaves(leaf_counts, share, counts[stop].tolist()))
    nodes, growing, child = [], iter(splits), first + len(stop)
    for ends, count in zip(stop.tolist(), counts.tolist(), strict=True):
        if ends:
            nodes.append(next(leaves))
        else:
            split = next(growing)
            children = tuple(range(child, child + split.n_children))
            child += split.n_children
            nodes.append(Node(as_test(split, view), children, released={"count": count}))
    return nodes


def _last_level(cells: Cells, share: Amount) -> list[Node]:
    return _leaves(cells.noisy_class_counts(share), share)


def _leaves(
    class_counts: NDArray[np.int64], share: Amount, counts: list[int] | None = None
) -> list[Node]:
    """Return leaves whose most probable class is the one of the largest noisy count (line 12)."""
    values = class_shares(class_counts, float(1 / share))
    released: list[dict[str, int | tuple[int, ...]]] = [
        {"class_counts": tuple(row)} for row in class_counts.tolist()
    ]
    if counts is not None:
        released = [{"count": count, **rest} for count, rest in zip(counts, released, strict=True)]
    return [
        Node(value=tuple(value), released=rest)
        for value, rest in zip(values.tolist(), released, strict=True)
    ]
