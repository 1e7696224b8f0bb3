"""The algorithms that the papers compare with, on the questions of the wall.

None of them is reproduced with its own noise. Random trees are calibrated as published; the others,
as published, scale noise by counts that are not public, look at exact counts, or draw records with
replacement, and then no epsilon covers them. What takes the place of each such step, and what the
original would cost, is in ``docs/proofs/baselines.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion, Gini
from privet.ensemble import Ensemble, n_scores
from privet.learners._assembly import class_shares
from privet.learners._growth import (
    Chooser,
    Growth,
    Region,
    divide,
    everything,
    grow,
    trees_below,
    trees_of,
)
from privet.learners._views import even_view
from privet.learners.budgets import know_rows
from privet.privacy.budget import Amount
from privet.privacy.coins import Coins
from privet.schema import Schema
from privet.tables import Binary, Cells, Each, Multiway, Split, Table, View, list_candidates
from privet.tree import Tree

#: Random cuts are drawn from a public grid of this many even steps.
STEPS = 128
#: Records that a leaf should have, for the depth that is right if none is given (DiPriMe, 4).
OCCUPANCY = 25
#: More levels of binary tests than these would have more leaves than anybody fills.
DEEPEST = 12
#: A node of a decision forest is split only if its noisy size is this many deviations of its noise.
LEAST_DEVIATIONS = 2
#: BDPT splits nodes of at least this many records.
LEAST_TO_SPLIT = 2


@dataclass(frozen=True)
class Forest:
    """What the user chose about a forest.

    Attributes
    ----------
    n_estimators : int
        How many trees.
    max_depth : int or None
        Most tests on a path; None to choose it by the number of rows.
    n_rows : int or None
        The number of rows, if it is public.
    partition : bool
        Whether each tree has its own rows; else each has its own part of the budget.
    """

    n_estimators: int
    max_depth: int | None
    n_rows: int | None = None
    partition: bool = False


def learn_random_trees(
    table: Table, *, amount: Amount, forest: Forest, coins: Coins
) -> Tree | Ensemble:
    """Learn trees whose tests are public coin tosses (Jagannathan et al.; Bojarski et al.)."""
    view = even_view(table.schema, STEPS)
    each, depth = _plan(table, amount, forest, 2.0)

    def chooser(own: list[Coins]) -> Chooser:
        def choose(cells: Cells, regions: list[Region], trees: list[int]) -> list[Split | None]:
            del cells
            return [
                _random_split(region, view, own[tree])
                for region, tree in zip(regions, trees, strict=True)
            ]

        return choose

    grown = []
    for cells, own in _starts(table, view, forest, coins):
        growth = grow(cells, view, depth, chooser(own))
        grown.append((growth, _leaves(table, growth, each)))
    return _forest_of(table.schema, view, grown, forest.n_estimators)


def learn_patil_singh(
    table: Table,
    *,
    amount: Amount,
    forest: Forest,
    n_bins: int,
    criterion: Criterion,
    max_features: int,
    coins: Coins,
) -> Tree | Ensemble:
    """Learn a forest of Friedman & Schuster's trees (Patil & Singh 2014)."""
    schema, view = table.schema, even_view(table.schema, n_bins)
    values = _known_values(view)
    each, depth = _plan(table, amount, forest, float(values.mean()))
    depth = min(depth, len(values))
    share = each / (2 * (depth + 1))
    # After a split, class counts should on average exceed the noise's deviation.
    per_value = len(schema.classes or (0,)) * math.sqrt(2) * table.ledger.budget.count_scale(share)

    def count(cells: Cells, level: int) -> NDArray[np.int64]:
        del level
        return cells.noisy_counts(share)[:, None]

    def enough(sizes: NDArray[np.int64], usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(sizes > (usable * values).max(axis=1) * per_value)

    def splitter(own: list[Coins]) -> Splitter:
        def split(
            cells: Cells, usable: NDArray[np.bool_], level: int, trees: list[int]
        ) -> list[Split]:
            del level
            some = _some_features(usable, max_features, [own[tree] for tree in trees])
            return cells.choose_splits(Multiway(), criterion, share, some)

        return split

    grown = []
    for cells, own in _starts(table, view, forest, coins):
        growing = _Counting(count, enough, splitter(own))
        growth, _ = growing.grow(cells, view, depth, last=False)
        grown.append((growth, _leaves(table, growth, 2 * share)))
    return _forest_of(schema, view, grown, forest.n_estimators, vote=True)


def learn_fletcher_islam(
    table: Table,
    *,
    amount: Amount,
    forest: Forest,
    n_bins: int,
    min_support: int,
    prune: bool,
) -> Tree | Ensemble:
    """Learn a forest with class counts in all nodes, by which it is pruned (DP-DF, 2015)."""
    schema, view = table.schema, even_view(table.schema, n_bins)
    values = _known_values(view)
    each, depth = _plan(table, amount, forest, float(values.mean()))
    depth = min(depth, len(values))
    share = each / (2 * depth + 1)
    scale = table.ledger.budget.count_scale(share)
    classes = len(schema.classes or ())
    least = max(min_support, LEAST_DEVIATIONS * scale * math.sqrt(2 * classes))
    roots: set[int] = set()

    def count(cells: Cells, level: int) -> NDArray[np.int64]:
        del level
        return cells.noisy_class_counts(share)

    def enough(sizes: NDArray[np.int64], usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        del usable
        return np.asarray(sizes >= least)

    def split(cells: Cells, usable: NDArray[np.bool_], level: int, trees: list[int]) -> list[Split]:
        del trees
        if level:
            return cells.choose_splits(Multiway(), Gini(), share, usable)
        # A root that an earlier tree has is taken again only when all have been.
        if len(roots) == usable.sum():
            roots.clear()
        usable = usable.copy()
        usable[:, list(roots)] = False
        found = cells.choose_splits(Multiway(), Gini(), share, usable)
        roots.add(found[0].feature)
        return found

    grown = []
    for cells, _ in _starts(table, view, forest, None):
        growth, counts = _Counting(count, enough, split).grow(cells, view, depth, last=True)
        growth, leaves = _pruned(growth, counts) if prune else (growth, counts[-1])
        grown.append((growth, class_shares(leaves, scale)))
    return _forest_of(schema, view, grown, forest.n_estimators, vote=True, weigh=True)


def learn_bdpt(table: Table, *, amount: Amount, max_depth: int, n_bins: int) -> Tree:
    """Learn a binary tree whose deeper nodes are counted at a higher price (Guan et al. 2020)."""
    view = even_view(table.schema, n_bins)
    candidates = two_ways(view)
    splitting = amount / 2 / max_depth
    counting = bdpt_amounts(amount / 2, max_depth)

    def count(cells: Cells, level: int) -> NDArray[np.int64]:
        return cells.noisy_class_counts(counting[level])

    def enough(sizes: NDArray[np.int64], usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        del usable
        return np.asarray(sizes >= LEAST_TO_SPLIT)

    def split(cells: Cells, usable: NDArray[np.bool_], level: int, trees: list[int]) -> list[Split]:
        del level, trees
        return cells.choose_splits(candidates, Gini(), splitting, usable)

    growing = _Counting(count, enough, split)
    growth, counts = growing.grow(table.root(view), view, max_depth, last=True)
    values = class_shares(counts[-1], table.ledger.budget.count_scale(counting[-1]))
    return trees_of(growth, view, values, scores=0)[0]


def learn_dpgdf(
    table: Table, *, amount: Amount, forest: Forest, n_bins: int, coins: Coins
) -> Tree | Ensemble:
    """Learn greedy binary trees on disjoint parts, with private labels (Xin et al. 2019)."""
    schema, view = table.schema, even_view(table.schema, n_bins)
    candidates = two_ways(view)
    assert forest.max_depth is not None
    splitting = amount / 2 / forest.max_depth

    def choose(cells: Cells, regions: list[Region], trees: list[int]) -> list[Split | None]:
        del trees
        usable = _usable(regions)
        able = np.asarray(usable.any(axis=1))
        found = iter(cells.take(able).choose_splits(candidates, Gini(), splitting, usable[able]))
        return [next(found) if divisible else None for divisible in able]

    grown = []
    for cells, _ in _starts(table, view, forest, coins):
        growth = grow(cells, view, forest.max_depth, choose)
        labels = growth.leaves.choose_labels(amount / 2)
        grown.append((growth, np.eye(len(schema.classes or ()))[labels]))
    return _forest_of(schema, view, grown, forest.n_estimators, vote=True)


def bdpt_amounts(amount: Amount, depth: int) -> list[Amount]:
    """Return what the class counts of the levels cost: each the cube root of two times the last."""
    weights = [Fraction(2 ** (level / 3)).limit_denominator(10**6) for level in range(depth + 1)]
    return [amount * weight / sum(weights) for weight in weights]


# What is seen, and where trees start


def two_ways(view: View) -> Binary:
    """Return all cuts of numbers, and each category against the rest."""
    sides: list[NDArray[np.bool_] | Each] = []
    for size, cuts in zip(view.sizes, view.cuts, strict=True):
        codes = np.arange(size)
        sides.append(Each(size, size) if cuts is None else codes > codes[:-1, None])
    return Binary(sides)


def count_two_ways(schema: Schema, n_bins: int) -> int:
    """Return how many splits a cell is offered by :func:`two_ways`."""
    view = even_view(schema, n_bins)
    return len(list_candidates(two_ways(view), view))


def _known_values(view: View) -> NDArray[np.int64]:
    """Return how many values each feature has, besides missing and unknown ones."""
    return np.array([max(size - 1, 2) for size in view.sizes])


def _plan(table: Table, amount: Amount, forest: Forest, branches: float) -> tuple[Amount, int]:
    """Return what a tree may cost, and how deep it is: leaves should have enough records."""
    rows, depth, trees = forest.n_rows, forest.max_depth, forest.n_estimators
    if depth is None:
        rows, amount = know_rows(table, amount, rows)
        in_leaf = rows / (trees if forest.partition else 1) / OCCUPANCY
        depth = int(np.clip(math.log(max(in_leaf, 1.0)) / math.log(branches), 1, DEEPEST))
    return amount if forest.partition else amount / trees, depth


def _starts(
    table: Table, view: View, forest: Forest, coins: Coins | None
) -> list[tuple[Cells, list[Coins]]]:
    """Return the cells that trees grow from, with coins for each of these trees.

    All at once on disjoint parts, else one by one.
    """
    trees = forest.n_estimators
    own = coins.for_trees(trees) if coins else []
    if forest.partition and trees > 1:
        assert coins is not None
        return [(table.parts(trees, coins.key, view), own)]
    return [(table.root(view), own[tree : tree + 1]) for tree in range(trees)]


# Splits


def _random_split(region: Region, view: View, coins: Coins) -> Split | None:
    """Return a random test of a random feature that divides a region, if there is one.

    Missing numbers go with the upper side, unknown categories with either.
    """
    for feature in coins.shuffled(len(region)).tolist():
        codes, size = region[feature], view.sizes[feature]
        if not len(codes):
            continue
        if view.cuts[feature] is not None:
            first, last = codes[0], min(codes[-1], size - 2)
            if first < last:
                cut = first + 1 + coins.below(last - first)
                return Split(feature, (0,) * cut + (1,) * (size - cut))
            continue
        known = [code for code in codes if code < size - 1]
        if len(known) < 2:
            continue
        while True:  # every way to divide them is equally likely
            children = [0] * size
            for code in (*known, size - 1):
                children[code] = coins.below(2)
            if 0 < sum(children[code] for code in known) < len(known):
                return Split(feature, tuple(children))
    return None


def _some_features(
    usable: NDArray[np.bool_], most: int, coins: Sequence[Coins]
) -> NDArray[np.bool_]:
    """Return up to ``most`` of the features that each cell may use, chosen by its tree's coins."""
    if most >= usable.shape[1]:
        return usable
    some = np.zeros_like(usable)
    for cell, (row, mine) in enumerate(zip(usable, coins, strict=True)):
        some[cell, mine.shuffled(np.flatnonzero(row))[:most]] = True
    return some


def _usable(regions: list[Region]) -> NDArray[np.bool_]:
    """Return which features can divide each cell."""
    return np.array([[len(codes) > 1 for codes in region] for region in regions])


#: Buys one split per cell: see :class:`_Counting`.
Splitter = Callable[[Cells, NDArray[np.bool_], int, list[int]], list[Split]]


@dataclass(frozen=True)
class _Counting:
    """How trees grow whose nodes are split only if noisy counts say that they are large enough.

    Attributes
    ----------
    count : callable
        Buys the counts of cells on a level, one row per cell; a row's sum is the cell's size.
    enough : callable
        Tells by their sizes and usable features which cells are split.
    split : callable
        Buys one split per cell, given the features that each may use, the level, and of which tree
        each cell is.
    """

    count: Callable[[Cells, int], NDArray[np.int64]]
    enough: Callable[[NDArray[np.int64], NDArray[np.bool_]], NDArray[np.bool_]]
    split: Splitter

    def grow(
        self, cells: Cells, view: View, depth: int, *, last: bool
    ) -> tuple[Growth, list[NDArray[np.int64]]]:
        """Return the trees and the counts of the cells of every level, the last if asked for.

        A cell that ends above the last level keeps the counts that it has.
        """
        levels: list[list[Split | None]] = []
        regions, trees = [everything(view)] * len(cells), list(range(len(cells)))
        bought = [self.count(cells, 0)]
        growing = np.ones(len(cells), dtype=bool)
        for level in range(depth):
            usable = _usable(regions)
            growing &= usable.any(axis=1)
            growing[growing] = self.enough(bought[-1].sum(axis=1)[growing], usable[growing])
            if not growing.any():
                break
            mine = [tree for tree, grows in zip(trees, growing, strict=True) if grows]
            found = iter(self.split(cells.take(growing), usable[growing], level, mine))
            chosen = [next(found) if grows else None for grows in growing]
            splits, cells, regions = divide(cells, view, chosen, regions)
            levels.append(splits)
            trees = trees_below(splits, trees)
            below = [split.n_children if split else 1 for split in splits]
            growing, counts = np.repeat(growing, below), np.repeat(bought[-1], below, axis=0)
            if last or level < depth - 1:
                counts[growing] = self.count(cells.take(growing), level + 1)
            bought.append(counts)
        return Growth(levels, cells), bought


# Leaves


def _leaves(table: Table, growth: Growth, amount: Amount) -> NDArray[np.float64]:
    """Buy what the leaves say: class shares, or means as parts of the way between the bounds."""
    if table.schema.classes is not None:
        counts = growth.leaves.noisy_class_counts(amount)
        return class_shares(counts, table.ledger.budget.count_scale(amount))
    middle = table.start_scores((0.5,))
    bought = growth.leaves.noisy_gradients(middle, amount, reach=0.5)
    return np.clip(0.5 + 0.5 * bought.pull / np.maximum(bought.curvature, 1.0), 0.0, 1.0)


def _pruned(growth: Growth, counts: list[NDArray[np.int64]]) -> tuple[Growth, NDArray[np.int64]]:
    """Return one tree, and its leaves' counts, without splits that do not lower the impurity.

    From the bottom up, a node whose children are all leaves becomes a leaf if their noisy Gini
    impurity, weighted by their noisy sizes, is no lower than its own. The root stays.
    """
    kept: list[list[Split | None]] = [list(splits) for splits in growth.levels]
    inner = np.zeros(len(counts[-1]), dtype=bool)  # cells below that are still split
    firsts = [
        np.cumsum([0, *(split.n_children if split else 1 for split in splits)])
        for splits in growth.levels
    ]
    for level in reversed(range(len(kept))):
        own, below = _impurities(counts[level]), _impurities(counts[level + 1])
        any_inner = np.logical_or.reduceat(inner, firsts[level][:-1])
        lost = np.add.reduceat(below, firsts[level][:-1])
        for cell, split in enumerate(growth.levels[level]):
            if split and level and not any_inner[cell] and lost[cell] >= own[cell]:
                kept[level][cell] = None
        inner = any_inner | np.array([split is not None for split in kept[level]])
    levels: list[list[Split | None]] = []
    # Where each cell of the smaller tree comes from: a level, and a place on it.
    here = [(0, 0)]
    for level, splits in enumerate(kept):
        row: list[Split | None] = []
        after: list[tuple[int, int]] = []
        for at, place in here:
            first = firsts[level]
            split = splits[place] if at == level else None
            row.append(split)
            if split:
                after += [(level + 1, child) for child in range(first[place], first[place + 1])]
            elif at == level and growth.levels[level][place] is None:
                after.append((level + 1, int(first[place])))  # it passed on as it was
            else:
                after.append((at, place))
        levels.append(row)
        here = after
    return Growth(levels, growth.leaves), np.array([counts[at][place] for at, place in here])


def _impurities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return sizes times Gini impurities of noisy class counts."""
    counts = np.maximum(counts, 0)
    sizes = counts.sum(axis=1)
    return np.asarray(sizes - (counts**2).sum(axis=1) / np.maximum(sizes, 1))


def _forest_of(
    schema: Schema,
    view: View,
    grown: list[tuple[Growth, NDArray[np.float64]]],
    trees: int,
    *,
    vote: bool = False,
    weigh: bool = False,
) -> Tree | Ensemble:
    """Return the trees' mean, or the class with most votes; or the only tree as it is.

    Scores of k classes are k times the mean of shares or votes, so that probabilities are that mean
    where it is nearly even, and less sure of themselves elsewhere.
    """
    if schema.classes is None:
        assert schema.bounds is not None
        low, high = schema.bounds
        grown = [(growth, low + values * (high - low)) for growth, values in grown]
    if trees == 1:
        ((growth, values),) = grown
        return trees_of(growth, view, values, scores=0)[0]
    found: list[Tree] = []
    for growth, values in grown:
        scores = values / trees
        if schema.classes is not None:
            if vote:
                best = np.eye(values.shape[1])[values.argmax(axis=1)]
                scores = (best * values.max(axis=1, keepdims=True) if weigh else best) / trees
            scores = scores.shape[1] * (scores - scores.mean(axis=1, keepdims=True))
            if n_scores(schema) == 1:
                scores = scores[:, 1:] - scores[:, :1]
        found += trees_of(growth, view, scores, scores=scores.shape[1])
    return Ensemble(schema, (0.0,) * n_scores(schema), tuple(found))
