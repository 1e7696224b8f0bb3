"""SuLQ-based ID3, DiffPID3 and DiffPC4.5 (Friedman & Schuster 2010).

All three grow a tree level by level: every cell is counted, with noise, and stops if it has too few
records for another split; the others are split. They differ in how a split is found: from noisy
counts of every attribute (SuLQ), by one private selection of an attribute (DiffPID3), or of an
attribute and a split point (DiffPC4.5, which is also pruned).

``published`` follows the paper's calibration to the letter: selections have weight
``exp(epsilon q / (2 S))``, which costs half of what the paper books for it, since its scores only
ever rise; DiffPC4.5 finds a point for every numeric attribute before it chooses one; SuLQ counts
what it could add up; the last level is counted although nothing but pruning needs it. Without it,
the same budget buys more. Proof: ``docs/proofs/friedman-schuster.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.learners._assembly import as_test, class_shares
from privet.learners._pruning import prune
from privet.learners._views import even_view
from privet.privacy.budget import Amount
from privet.schema import Numeric, Schema
from privet.tables import (
    Cells,
    Multiway,
    ReleasedSplits,
    Split,
    Table,
    Thresholds,
    View,
    list_candidates,
)
from privet.tree import Node, Tree

#: Equal steps between a number's bounds that make the public grid of split points; fewer where the
#: bounds are too close.
STEPS = 4096

#: Finds one split per cell; the array says which attributes each cell may use.
Chooser = Callable[[Cells, NDArray[np.bool_]], list[Split]]


def learn_sulq(table: Table, *, epsilon: Amount, max_depth: int, published: bool) -> Tree:
    """Learn by noisy counts of every attribute (Algorithm 1)."""
    view = View.of_bins(table.schema)
    depth = min(max_depth, len(table.schema.names))
    share = epsilon / (2 * (depth + 1))

    def choose(cells: Cells, unused: NDArray[np.bool_]) -> list[Split]:
        return _by_counts(cells, unused, view, share, published=published)

    growth = _Growth(table, view, depth, share, choose, published=published, reuse=False)
    return growth.tree()


def learn_diffpid3(
    table: Table, *, epsilon: Amount, max_depth: int, criterion: Criterion, published: bool
) -> Tree:
    """Learn by private selections of attributes (Algorithm 2)."""
    view = View.of_bins(table.schema)
    depth = min(max_depth, len(table.schema.names))
    share = epsilon / (2 * (depth + 1))
    spend, flip = (share / 2, False) if published else (share, True)

    def choose(cells: Cells, unused: NDArray[np.bool_]) -> list[Split]:
        return cells.choose_splits(Multiway(), criterion, spend, unused, flip=flip)

    growth = _Growth(table, view, depth, share, choose, published=published, reuse=False)
    return growth.tree()


def learn_diffpc45(
    table: Table,
    *,
    epsilon: Amount,
    max_depth: int,
    criterion: Criterion,
    confidence: float | None,
    published: bool,
) -> Tree:
    """Learn by private selections of attributes and split points (section 4.3), and prune."""
    schema = table.schema
    numeric = [
        j for j, feature in enumerate(schema.features.values()) if isinstance(feature, Numeric)
    ]
    depth = max_depth if numeric else min(max_depth, len(schema.names))
    view = even_view(schema, STEPS)
    candidates = Thresholds(STEPS)
    questions = 2 + len(numeric) * published
    share = epsilon / (questions * depth + 2)

    def choose(cells: Cells, unused: NDArray[np.bool_]) -> list[Split]:
        if not published:
            return cells.choose_splits(candidates, criterion, share, unused)
        points = {}
        for j in numeric:
            only = np.zeros_like(unused)
            only[:, j] = True
            points[j] = cells.choose_splits(candidates, criterion, share / 2, only)
        return cells.choose_splits(ReleasedSplits(points), criterion, share / 2, unused, flip=False)

    growth = _Growth(table, view, depth, share, choose, published=published, reuse=True)
    tree = growth.tree()
    return tree if confidence is None else prune(tree, confidence, scale=float(1 / share))


def count_points(schema: Schema) -> int:
    """Return how many splits DiffPC4.5 offers a cell."""
    return len(list_candidates(Thresholds(STEPS), even_view(schema, STEPS)))


@dataclass(frozen=True)
class _Growth:
    """A tree that grows level by level.

    ``share`` is what a count, or the class counts of a leaf, cost. ``reuse`` says whether a number
    may be tested again further down.
    """

    table: Table
    view: View
    depth: int
    share: Amount
    choose: Chooser
    published: bool
    reuse: bool

    def tree(self) -> Tree:
        schema = self.table.schema
        nodes: list[Node] = []
        cells, unused = self.table.root(self.view), np.ones((1, len(schema.names)), dtype=bool)
        for _ in range(self.depth):
            counts = cells.noisy_counts(self.share)
            stop = ~unused.any(axis=1) | (counts <= self.enough(unused))
            leaf_counts = cells.take(stop).noisy_class_counts(self.share)
            cells, unused = cells.take(~stop), unused[~stop]
            splits = self.choose(cells, unused) if len(cells) else []
            nodes += self.level(len(nodes), stop, counts, leaf_counts, splits)
            if not splits:
                return Tree(schema, tuple(nodes))
            cells, unused = cells.split(splits), self.without_used(unused, splits)
        nodes += self.last_level(cells)
        return Tree(schema, tuple(nodes))

    def enough(self, unused: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return how many records a cell must have to be split (line 9).

        Class counts of its children then exceed the deviation of their noise on average.
        """
        schema = self.table.schema
        assert schema.classes is not None
        values = np.array(
            [
                2 if self.reuse and isinstance(feature, Numeric) else feature.size - 1
                for feature in schema.features.values()
            ]
        )
        widest = (unused * values).max(axis=1)
        return np.asarray(widest * len(schema.classes) * math.sqrt(2) / float(self.share))

    def without_used(self, unused: NDArray[np.bool_], splits: Sequence[Split]) -> NDArray[np.bool_]:
        left = unused.copy()
        for row, split in enumerate(splits):
            left[row, split.feature] = self.reuse and self.view.cuts[split.feature] is not None
        return np.repeat(left, [split.n_children for split in splits], axis=0)

    def level(
        self,
        first: int,
        stop: NDArray[np.bool_],
        counts: NDArray[np.int64],
        leaf_counts: NDArray[np.int64],
        splits: list[Split],
    ) -> list[Node]:
        """Return the nodes of one level; the next level's follow them, children in order."""
        leaves = iter(_leaves(leaf_counts, self.share, counts[stop].tolist()))
        nodes, growing, child = [], iter(splits), first + len(stop)
        for ends, count in zip(stop.tolist(), counts.tolist(), strict=True):
            if ends:
                nodes.append(next(leaves))
            else:
                split = next(growing)
                children = tuple(range(child, child + split.n_children))
                child += split.n_children
                nodes.append(Node(as_test(split, self.view), children, released={"count": count}))
        return nodes

    def last_level(self, cells: Cells) -> list[Node]:
        """Return the deepest leaves: their count is needed by pruning only, so it is not bought."""
        if not self.published:
            return _leaves(cells.noisy_class_counts(2 * self.share), 2 * self.share)
        counts = cells.noisy_counts(self.share)
        return _leaves(cells.noisy_class_counts(self.share), self.share, counts.tolist())


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


def _by_counts(
    cells: Cells, unused: NDArray[np.bool_], view: View, share: Amount, *, published: bool
) -> list[Split]:
    """Return the splits of largest noisy information gain (lines 14 to 21).

    Every attribute is asked about the same records, so each has an equal part of the share.
    """
    n_open = int(unused[0].sum())  # the same on all cells of a level
    part = share / n_open
    gains = np.full(unused.shape, -math.inf)
    for j in np.flatnonzero(unused.any(axis=0)).tolist():
        asked = np.flatnonzero(unused[:, j])
        parts = cells.take(asked).split([Multiway().split(j, 0, 0, view)] * len(asked))
        shape = (len(asked), view.sizes[j])
        if published:
            rows = parts.noisy_counts(part / 2).reshape(shape)
            classes = parts.noisy_class_counts(part / 2).reshape(*shape, -1)
            # The paper knows no missing or unknown values: their counts would be mere noise.
            rows, classes = rows[:, :-1], classes[:, :-1]
        else:
            classes = parts.noisy_class_counts(part).reshape(*shape, -1)
            rows = np.maximum(classes, 0).sum(axis=2)
        gains[asked, j] = _information(rows, classes)
    return [Multiway().split(int(j), 0, 0, view) for j in gains.argmax(axis=1)]


def _information(rows: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of ``N_jc log(N_jc / N_j)``; what is not positive is skipped (line 19)."""
    above = np.maximum(classes, 1)
    terms = above * np.log2(above / np.maximum(rows, 1)[:, :, None])
    terms[(classes <= 0) | (rows <= 0)[:, :, None]] = 0.0
    return np.asarray(terms.sum(axis=(1, 2)))
