"""DP-TopDown (Wang, Dick & Balcan): best-first trees by released gains.

The leaf whose split gains most is split next. All cells of a level are disjoint, so they are asked
at once, and the order is found afterwards among released gains: a tree takes as many rounds as it
has levels. A count gain, records times impurity before less after, is the paper's w J times the
rows: it needs no weight. It is computed from noisy class counts of the children, which say how many
records they have as well. ``published`` adds the paper's own noise, which releases the winner's
score and costs more than the paper says (:func:`published_cost`). Proof:
``docs/proofs/topdown.md``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion, Entropy, Gini
from privet.errors import BudgetError
from privet.learners._assembly import (
    assemble,
    leaf_cells,
    without_dead_ends,
    without_needless,
)
from privet.learners._views import even_view
from privet.learners.budgets import COUNT_SHARE, check_least, count_rows, less
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import (
    Binary,
    Branch,
    Cells,
    Each,
    Leaf,
    Split,
    Subtree,
    Table,
    View,
    gains_of,
    list_candidates,
)
from privet.tree import Tree

#: Cuts of a number: the paper's, and ours.
PAPER_THRESHOLDS, THRESHOLDS = 10, 31
#: The paper's rules: least gain per record of a cell, and least weight times the nodes.
PAPER_GAIN, PAPER_ERROR = Fraction(1, 100), 0.1
#: Part of a level's budget for the class counts of which gains are made.
GAIN_SHARE = Fraction(1, 8)
#: Budget of a level, relative to the level above: the paper's, and ours, which reaches deeper.
PAPER_DECAY, DECAY = Fraction(1, 2), Fraction(7, 8)
#: The mean cell of the last level has at least this many times the rows of a choice's noise.
ROOM = 8
#: The most levels of a tree.
DEEPEST = 64


@dataclass(frozen=True)
class TopDownOptions:
    """What the user chose."""

    max_nodes: int
    max_depth: int | None
    budget: str | Callable[[int], float]
    leaf_fraction: Fraction
    criterion: Criterion
    split: str
    thresholds: int
    min_gain: float | None
    min_weight: float | None
    published: bool


@dataclass(frozen=True)
class Level:
    """What one cell of a level pays for its split, its gain and, as published, its weight."""

    choice: Amount
    gain: Amount
    weight: Amount | None = None


@dataclass(eq=False)
class GrowingNode:
    """A node of the growing tree, with its split, its gain and its children, as far as known.

    ``worth`` says whether it may be split, by released numbers.
    """

    split: Split | None = None
    gain: int = 0
    worth: bool = False
    children: tuple[GrowingNode, ...] = field(default=())


def learn(table: Table, *, n_rows: int | None, options: TopDownOptions) -> Tree:
    """Learn a tree for what is left of a table's budget."""
    amount, view = table.ledger.left, make_view(table.schema, options.thresholds)
    candidates, least = make_candidates(view, missing=True), table.least_amount
    counted = counts_rows(n_rows, options)
    counting = amount * COUNT_SHARE if counted else Fraction(0)
    rest = less(amount, counting)
    gains = [level.gain for level in make_levels(rest, 1, options, least)]
    check_least([rest * options.leaf_fraction, *gains, *[counting] * counted], least)
    if counted:
        n_rows = count_rows(table, counting)
    rows = n_rows or 1
    levels = make_levels(rest, rows, options, least)
    root = grow(table.root(view), candidates, view, levels, rows, options)
    labels = _leaves(root, table, view, options).choose_labels(table.ledger.left)
    return _tree(root, labels, table, view, options)


def counts_rows(n_rows: int | None, options: TopDownOptions) -> bool:
    """Tell whether a part of the budget buys a count of the rows."""
    return n_rows is None and (options.max_depth is None or options.min_weight is not None)


def learn_published(table: Table, *, amount: Amount, n_rows: int, options: TopDownOptions) -> Tree:
    """Learn a tree with the noise that the paper counts as an amount."""
    view = make_view(table.schema, options.thresholds)
    candidates = make_candidates(view, missing=False)
    levels = published_levels(table.schema, n_rows, amount, options)
    root = grow(table.root(view), candidates, view, levels, n_rows, options)
    counts = _leaves(root, table, view, options).noisy_class_counts(
        _published_leaf(amount, options)
    )
    return _tree(root, counts.argmax(axis=1).tolist(), table, view, options)


def grow(
    cells: Cells,
    candidates: Binary,
    view: View,
    levels: list[Level],
    n_rows: int,
    options: TopDownOptions,
) -> GrowingNode:
    """Ask level by level for splits and gains, as long as best-first could want them."""
    root = GrowingNode()
    row = [root]
    #: What is known of the records in each cell of the row; of the root as published, all of them.
    weights = np.array([n_rows])
    offered = list_candidates(candidates, view)
    for depth, level in enumerate(levels):
        if level.weight is not None and depth > 0:
            weights = np.asarray(cells.noisy_counts(level.weight))
        if options.min_weight is not None and depth > 0:
            heavy = np.flatnonzero(weights >= options.min_weight * n_rows)
            cells, weights = cells.take(heavy), weights[heavy]
            row = [row[place] for place in heavy]
        if not row:
            break
        if options.published:
            noisy = cells.noisy_candidate_gains(candidates, options.criterion, level.gain)
            best = noisy.argmax(axis=1)
            splits = [_nth(candidates, offered[place], view) for place in best.tolist()]
            gains = noisy.max(axis=1)
            children = cells.split(splits)
        else:
            splits = cells.choose_best(
                candidates, options.criterion, level.choice, how=options.split
            )
            children = cells.split(splits)
            counts = children.noisy_class_counts(level.gain)
            gains = gains_of(counts, splits, options.criterion)
        limits = _limits(weights, options)
        for place, node in enumerate(row):
            node.split, node.gain = splits[place], int(gains[place])
            node.worth = node.gain > limits[min(place, len(limits) - 1)]
        order = best_first(root, options.max_nodes)
        wanted = set(order)
        parents = [place for place, node in enumerate(row) if node in wanted]
        for place in parents:
            row[place].children = (GrowingNode(), GrowingNode())
        if len(order) == options.max_nodes:  # what is below the last one cannot be taken
            parents = [place for place in parents if row[place] is not order[-1]]
        if not parents:
            break
        below = np.array([2 * place + side for place in parents for side in (0, 1)])
        cells = children.take(below)
        if not options.published:
            weights = np.asarray(counts.sum(axis=1))[below]
        row = [child for place in parents for child in row[place].children]
    return root


def _nth(candidates: Binary, place: tuple[int, int], view: View) -> Split:
    feature, option = place
    return candidates.split(feature, option, 0, view)


def best_first(root: GrowingNode, most: int) -> list[GrowingNode]:
    """Return the nodes that are split, in order: the largest gain next, ties as they were found."""
    queue = [(-root.gain, 0, root)] if root.worth else []
    order: list[GrowingNode] = []
    found = 1
    while queue and len(order) < most:
        node = heapq.heappop(queue)[2]
        order.append(node)
        for child in node.children:
            if child.worth:
                heapq.heappush(queue, (-child.gain, found, child))
            found += 1
    return order


def make_levels(
    amount: Amount, n_rows: int, options: TopDownOptions, least: Amount = Fraction(0)
) -> list[Level]:
    """Share what the tree's levels cost, by public numbers.

    A depth that is not given ends before an answer would have less than ``least``.
    """
    growing = amount if amount == math.inf else amount * (1 - options.leaf_fraction)
    depth = options.max_depth or _deepest(growing, n_rows, options, least)
    # A tree is not deeper than it has splits.
    shares = _shares(min(depth, options.max_nodes), options)
    return [_level(growing * share) for share in shares]


def _deepest(growing: Amount, n_rows: int, options: TopDownOptions, least: Amount) -> int:
    """Return the last level where cells have room for the noise of choices, on average."""
    if growing == math.inf:
        return DEEPEST
    spread = Fraction(options.criterion.spread, options.criterion.scale)
    for depth in range(2, DEEPEST + 1):
        levels = [_level(growing * share) for share in _shares(depth, options)]
        noise, rows = ROOM * spread / levels[-1].choice, Fraction(n_rows, 2 ** (depth - 1))
        if noise > rows or min(level.gain for level in levels) < least:
            return depth - 1
    return DEEPEST


def _shares(depth: int, options: TopDownOptions) -> list[Fraction]:
    """Return the parts that the levels 1 to ``depth`` have of the tree's budget."""
    if options.budget == "uniform":
        return [Fraction(1, depth)] * depth
    if callable(options.budget):
        weights = [_weight(options.budget(level)) for level in range(1, depth + 1)]
    else:
        weights = [DECAY**level for level in range(1, depth + 1)]
    return [weight / sum(weights) for weight in weights]


def check_budget(options: TopDownOptions) -> None:
    """Raise if the user's function gives a level that may be reached no weight."""
    if callable(options.budget):
        _shares(options.max_depth or DEEPEST, options)


def _weight(found: object) -> Fraction:
    if isinstance(found, int | float | Fraction | np.number) and 0 < found < math.inf:
        return Fraction(found) if isinstance(found, int) else Fraction(float(found))
    raise BudgetError("budget must give every level from 1 on a positive weight")


def _level(amount: Amount) -> Level:
    gain = amount * GAIN_SHARE
    return Level(less(amount, gain), gain)


def published_levels(
    schema: Schema, n_rows: int, amount: Amount, options: TopDownOptions
) -> list[Level]:
    """Return what the paper's noise costs on each level: all candidates' gains add up."""
    view = make_view(schema, options.thresholds)
    number = len(list_candidates(make_candidates(view, missing=False), view))
    spread = Fraction(options.criterion.spread, options.criterion.scale)
    per_alpha = number * spread / (2 * _paper_sensitivity(options.criterion, n_rows))
    growing = amount if amount == math.inf else amount * (1 - options.leaf_fraction)
    levels: list[Level] = []
    while len(levels) < min(options.max_depth or DEEPEST, options.max_nodes):
        depth = len(levels) + 1
        alpha = growing * _published_share(depth, options)
        half = alpha / 2
        level = Level(half, (alpha if depth == 1 else half) * per_alpha, half)
        noise = number * spread / level.gain
        if options.max_depth is None and depth > 1 and noise > n_rows:
            break
        levels.append(level)
    return levels


def published_cost(schema: Schema, n_rows: int, amount: Amount, options: TopDownOptions) -> Amount:
    """Return what the paper's noise costs in all."""
    levels = published_levels(schema, n_rows, amount, options)
    weights = sum((level.weight or 0 for level in levels[1:]), Fraction(0))
    return sum((level.gain for level in levels), weights) + _published_leaf(amount, options)


def _published_share(depth: int, options: TopDownOptions) -> Fraction:
    """Return the paper's B(depth)."""
    if callable(options.budget):
        return _weight(options.budget(depth))
    return Fraction(1, options.max_nodes) if options.budget == "uniform" else PAPER_DECAY**depth


def _published_leaf(amount: Amount, options: TopDownOptions) -> Amount:
    """Return what the labels' noise costs: for counts that only rise, half of the paper's part."""
    return amount if amount == math.inf else amount * options.leaf_fraction / 2


def _paper_sensitivity(criterion: Criterion, n_rows: int) -> Fraction:
    """Return the paper's sensitivity of ``m J`` (Lemmas 11 and 18), in units of our criteria."""
    if isinstance(criterion, Entropy):
        return Fraction(6 * math.log2(max(n_rows, 2)) + 2)
    assert isinstance(criterion, Gini)
    return Fraction(10)


def _limits(weights: NDArray[np.int64], options: TopDownOptions) -> list[Fraction]:
    """Return what the gains of a level must exceed, for each cell or for all."""
    unit = options.criterion.scale
    if options.published and options.min_gain is None:
        return [PAPER_GAIN * max(count, 0) * unit for count in weights.tolist()]
    return [Fraction(options.min_gain or 0) * unit]


def make_view(schema: Schema, thresholds: int) -> View:
    """Return the view with evenly spaced cuts between the bounds of every number."""
    return even_view(schema, thresholds + 1)


def make_candidates(view: View, *, missing: bool) -> Binary:
    """Return all cuts of numbers and single values of categories.

    With ``missing``, what is missing or unknown can be divided from all else, too.
    """
    return Binary([_sides(view, feature, missing=missing) for feature in range(len(view.sizes))])


def count_candidates(schema: Schema, thresholds: int) -> int:
    """Return how many splits a cell is offered."""
    view = make_view(schema, thresholds)
    return len(list_candidates(make_candidates(view, missing=True), view))


def _sides(view: View, feature: int, *, missing: bool) -> NDArray[np.bool_] | Each:
    codes = np.arange(view.sizes[feature])
    if view.cuts[feature] is None:
        # With two codes in all, one against the rest is the same for both.
        return Each(len(codes) if missing and len(codes) > 2 else len(codes) - 1, len(codes))
    # Bounds may be too close for any cut: then there is nothing else to offer.
    cuts = codes[:-1] if missing or len(codes) == 2 else codes[:-2]
    return np.asarray(codes[None, :] > cuts[:, None])


def _leaves(root: GrowingNode, table: Table, view: View, options: TopDownOptions) -> Cells:
    """Return the leaves of the tree that best-first takes, from the left."""
    taken = set(best_first(root, options.max_nodes))
    return leaf_cells(table.root(view), _subtree(root, taken, iter(())), view)


def _tree(
    root: GrowingNode, labels: list[int], table: Table, view: View, options: TopDownOptions
) -> Tree:
    """Return the tree that best-first takes, its leaves labelled from the left."""
    subtree = _subtree(root, set(best_first(root, options.max_nodes)), iter(labels))
    closed = without_dead_ends(subtree, tuple(frozenset(range(size)) for size in view.sizes))
    return assemble(without_needless(closed), table.root(view), view, None, table.ledger.budget)


def _subtree(node: GrowingNode, taken: set[GrowingNode], labels: Iterator[int]) -> Subtree:
    if node not in taken:
        return Leaf(next(labels, -1))
    assert node.split is not None
    return Branch(node.split, tuple(_subtree(child, taken, labels) for child in node.children))
