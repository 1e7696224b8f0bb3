"""DiPriMe (Consul & Williamson 2021): forests whose splits halve their nodes.

Every tree has its own part of the table, or its own part of the budget. A node's feature is drawn
among a few, by chance or by how different its halves are; then one private median of it divides the
node. Leaves buy class counts, or two complementary sums of the target; what they say is drawn
towards what the nodes above them say, as far as the noise asks for it, which is post-processing.

``published`` draws a median for each of the few features first and chooses among them, as the paper
does: features are no disjoint data, so the medians add up (:func:`published_cost`). The paper's
leaf means of numbers have no finite cost at all; they mark the table. Proof:
``docs/proofs/forests.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privet.criteria import SAD, SSE, Criterion, Gini, Max
from privet.ensemble import Ensemble, n_scores
from privet.learners._growth import (
    Chooser,
    Growth,
    Region,
    grow,
    means_of,
    shares_of,
    trees_of,
)
from privet.learners.budgets import know_rows, less
from privet.privacy.budget import Amount
from privet.privacy.coins import Coins
from privet.schema import Schema
from privet.tables import Axes, Axis, AxisLists, Cells, Split, Table, View
from privet.tree import Tree

#: Up to this many categories, all ways to divide them are offered.
FEW_CODES = 6
#: Steps of the grid on which distances between targets are measured.
TARGET_STEPS = 128
#: What a leaf should have, in rows and in rows x epsilon: decides the depth if none is given.
LEAF_ROWS, LEAF_MASS = 25, 50
DEEPEST = 12
#: The same for a tree, and the most trees: decides the number of trees if none is given.
TREE_ROWS, TREE_MASS, MOST_TREES = 1_000, 20_000, 5
#: How much more budget a level has than the one above, and the share of it for the features.
LEVEL_GROWTH, FEATURE_SHARE = Fraction(23, 20), Fraction(2, 3)
#: What the paper's attribute selection costs, of what it counts: its scale is for a target in
#: [-1, 1] and scores that may move both ways (docs/proofs/forests.md).
PUBLISHED_NUMBER, PUBLISHED_CLASSES = Fraction(1, 8), Fraction(1, 4)


@dataclass(frozen=True)
class DiPriMeOptions:
    """What the user chose."""

    variant: str
    n_estimators: int | None
    max_depth: int | None
    max_features: int
    split_share: Fraction
    partition: bool
    published: bool


def learn(
    table: Table, *, amount: Amount, n_rows: int | None, options: DiPriMeOptions, coins: Coins
) -> Tree | Ensemble:
    """Learn a forest for at most an amount (``published``: for what :func:`published_cost` says).

    ``coins`` decide the parts of the table and, tree by tree, all public choices.
    """
    if None in (options.n_estimators, options.max_depth):
        n_rows, amount = know_rows(table, amount, n_rows)
    trees, depth = options.n_estimators, options.max_depth
    if trees is None:
        assert n_rows is not None
        trees = trees_for(n_rows, float(amount))
    each = amount if options.partition else amount / trees
    if depth is None:
        assert n_rows is not None
        depth = depth_of(n_rows // (trees if options.partition else 1), float(each))
    view = View.of_grid(table.schema)
    splitting = each * options.split_share
    own = coins.for_trees(trees)
    starts = (
        [(table.parts(trees, coins.key, view), own)]
        if options.partition
        else [(table.root(view), [mine]) for mine in own]
    )
    grown: list[Tree] = []
    for cells, mine in starts:
        choose = _chooser(view, _levels(splitting, depth, options), options, mine)
        growth = grow(cells, view, depth, choose)
        values = _leaves(table, growth, less(each, splitting), options)
        grown += _as_trees(table.schema, growth, view, values, trees, options)
    return forest_of(table.schema, grown)


def trees_for(rows: int, epsilon: float) -> int:
    """Return how many trees to divide the rows among: each keeps enough records."""
    return int(np.clip(rows // max(TREE_ROWS, TREE_MASS / epsilon), 1, MOST_TREES))


def depth_of(rows: int, epsilon: float) -> int:
    """Return how deep a tree on this many rows should be: leaves keep enough records."""
    least = max(LEAF_ROWS, LEAF_MASS / epsilon)
    return int(np.clip(np.floor(np.log2(max(rows / least, 1.0))), 1, DEEPEST))


def published_cost(schema: Schema, amount: Amount, options: DiPriMeOptions) -> Amount:
    """Return what the paper's noise costs, leaf means of numbers aside."""
    leaf = less(amount, amount * options.split_share)
    level = amount * options.split_share
    if options.variant == "uniform":
        return level + leaf
    few = min(options.max_features, len(schema.names))
    factor = PUBLISHED_NUMBER if schema.classes is None else PUBLISHED_CLASSES
    return level / 2 * few + level / 2 * factor + leaf


def forest_of(schema: Schema, trees: Sequence[Tree]) -> Tree | Ensemble:
    """Return a forest of trees whose scores add up, or its only tree."""
    if len(trees) == 1 and not trees[0].scores:
        return trees[0]
    return Ensemble(schema, (0.0,) * n_scores(schema), tuple(trees))


# Splits


def _levels(amount: Amount, depth: int, options: DiPriMeOptions) -> list[Amount]:
    """Divide an amount among the levels; deeper ones have fewer records and need more."""
    growth = Fraction(1) if options.published else LEVEL_GROWTH
    parts = [growth**level for level in range(depth)]
    return [amount * part / sum(parts) for part in parts]


def _chooser(
    view: View, amounts: list[Amount], options: DiPriMeOptions, coins: Sequence[Coins]
) -> Chooser:
    """Return a function that chooses the splits of a level."""
    flip = options.variant == "flip"
    few = 1 if options.variant == "uniform" else options.max_features

    def choose(cells: Cells, regions: list[Region], trees: list[int]) -> list[Split | None]:
        amount = amounts[cells.depth]
        axes = axes_of(regions, view, few, [coins[tree] for tree in trees])
        able = axes.lengths > 0
        if not able.any():
            return [None] * len(regions)
        cells, axes = cells.take(able), AxisLists(axes.axes, axes.lengths[able])
        if few == 1:
            splits = cells.choose_halves([with_subsets(axis) for axis in axes.at(0)], amount)
        elif options.published:
            splits = _published_splits(cells, axes, view, amount / 2, flip=flip)
        else:
            choosing = amount * FEATURE_SHARE
            places = cells.choose_axes(axes, _criterion(view.schema), choosing, flip=flip)
            chosen = [with_subsets(axis) for axis in axes.at(places)]
            splits = cells.choose_halves(chosen, less(amount, choosing))
        rest = iter(splits)
        return [next(rest) if one else None for one in able.tolist()]

    return choose


def _criterion(schema: Schema) -> Criterion:
    """Return the loss of halves: linear in the errors, for which one record matters least."""
    return SAD(TARGET_STEPS) if schema.classes is None else Max()


def _published_splits(
    cells: Cells, axes: AxisLists, view: View, amount: Amount, *, flip: bool
) -> list[Split]:
    """Draw a median for every feature, each at the full amount, then choose among them."""
    options: list[list[Split]] = [[] for _ in range(len(axes))]
    for turn in range(axes.longest):
        mine = np.flatnonzero(turn < axes.lengths)
        offered = [with_subsets(axis) for axis in axes.at(turn).take(mine)]
        halved = cells.take(mine).choose_halves(offered, amount)
        for cell, split in zip(mine.tolist(), halved, strict=True):
            options[cell].append(split)
    numbers = view.schema.classes is None
    criterion: Criterion = SSE() if numbers else Gini()
    factor = PUBLISHED_NUMBER if numbers else PUBLISHED_CLASSES
    places = cells.choose_of(options, criterion, amount * factor, flip=flip)
    return [some[place] for some, place in zip(options, places, strict=True)]


def axes_of(regions: Sequence[Region], view: View, most: int, coins: Sequence[Coins]) -> AxisLists:
    """Return for every cell the axes of random features along which its region can be divided."""
    sizes, numeric = view.sizes, [cuts is not None for cuts in view.cuts]
    found: list[int] = []  # of every axis its feature, the first and the last place, and its codes
    lengths: list[int] = []
    orders: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
    for region, mine in zip(regions, coins, strict=True):
        length = 0
        for feature in mine.shuffled(len(region)).tolist():
            codes, size = region[feature], sizes[feature]
            if numeric[feature]:
                # Missing numbers have the last code and go with the upper side.
                first, last = codes[0], min(codes[-1], size - 2)
                if first >= last:
                    continue
                found += (feature, first, last, 0)
            else:
                if len(codes) < 2:
                    continue
                orders.append(mine.shuffled(codes))
                found += (feature, 0, len(codes) - 1, size)
            length += 1
            if length == most:
                break
        lengths.append(length)
    laid_out = np.array(found, dtype=np.int64).reshape(-1, 4)
    _, _, last, codes_of = laid_out[laid_out[:, 3] > 0].T
    # Codes that cannot come here have the place after the last.
    places = np.repeat(last + 1, codes_of)
    starts = np.repeat(np.cumsum(codes_of) - codes_of, last + 1)
    ranks = np.arange(len(starts)) - np.repeat(np.cumsum(last + 1) - last - 1, last + 1)
    places[starts + np.concatenate(orders)] = ranks
    return AxisLists(Axes.laid_out(laid_out, places), np.array(lengths, dtype=np.int64))


def with_subsets(axis: Axis) -> Axis:
    """Return a category's axis with its subsets: all if few, else one against the rest, and cuts.

    Along a random order the cuts are subsets of all sizes, so that one is balanced.
    """
    if axis.places is None:
        return axis
    sides = _subsets(axis.last + 1)[:, axis.places]
    return Axis(axis.feature, axis.first, axis.last, axis.places, sides)


@lru_cache(maxsize=64)
def _subsets(count: int) -> NDArray[np.bool_]:
    """Return which of some places are in every subset; codes that cannot come here are in none."""
    if count <= FEW_CODES:
        by_place = (np.arange(1, 2 ** (count - 1))[:, None] >> np.arange(count)) & 1 > 0
    else:
        cuts = np.arange(count) > np.arange(count - 1)[:, None]
        by_place = np.concatenate([cuts, np.eye(count, dtype=bool)])
    return np.column_stack([by_place, np.zeros(len(by_place), dtype=bool)])


# Leaves


def _leaves(
    table: Table, growth: Growth, amount: Amount, options: DiPriMeOptions
) -> NDArray[np.float64]:
    """Buy what the leaves say: class shares, or means as parts of the way between the bounds."""
    if table.schema.classes is None:
        if options.published:
            return growth.leaves.leaking_means(amount)
        return means_of(table, growth, amount)
    counts = growth.leaves.noisy_class_counts(amount)
    if options.published:  # whatever is largest
        return np.asarray(np.eye(counts.shape[1])[np.asarray(counts).argmax(axis=1)])
    return shares_of(growth, counts, table.ledger.budget.count_scale(amount))


def _as_trees(
    schema: Schema,
    growth: Growth,
    view: View,
    values: NDArray[np.float64],
    trees: int,
    options: DiPriMeOptions,
) -> tuple[Tree, ...]:
    """Return the trees with values of a single tree, or with scores that add up to a forest's.

    A forest averages the logarithms of its trees' shares; the paper's forest votes.
    """
    if schema.classes is None:
        assert schema.bounds is not None
        low, high = schema.bounds
        values = low + values * (high - low)
        return trees_of(growth, view, values / trees, scores=int(trees > 1))
    if trees == 1:
        return trees_of(growth, view, values, scores=0)
    scores = values if options.published else np.log(values)
    scores = (scores - scores.mean(axis=1, keepdims=True)) / trees
    if n_scores(schema) == 1:
        scores = scores[:, 1:] - scores[:, :1]
    return trees_of(growth, view, scores, scores=scores.shape[1])
