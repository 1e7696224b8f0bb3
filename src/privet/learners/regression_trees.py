"""One readable tree for a number.

``linear`` draws blocks of whole trees, as ``whole_trees`` does for classes, on records that pull at
the mean of their cell with a weight up to one: errors count linearly, not squared, so one record
weighs less against the rest. Each block buys the means of its leaves, from which the next one
starts. ``sad`` and ``sse`` choose one split after the other, jointly over all features and cuts, by
absolute or squared errors. Proof: ``docs/proofs/regression-trees.md``; rules:
``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion, make_criterion
from privet.learners._assembly import without_dead_ends
from privet.learners._growth import (
    Growth,
    Region,
    divide,
    everything,
    grow,
    means_of,
    trees_of,
)
from privet.learners._views import grid_of, make_view, most_tests, n_numeric, two_sides
from privet.learners.budgets import know_rows, set_aside_quantiles
from privet.learners.reaches import (
    LATER_SHARE,
    LONGEST,
    NARROWER,
    buy_scale,
    start_with_reach,
)
from privet.learners.whole_trees import TreeBlock, affordable, block_depths, spread_out
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import Binary, Branch, Cells, Split, Subtree, Table, View, pull_deviation
from privet.tree import Tree

CRITERIA = ("linear", "sad", "sse")
#: Share of a block's budget for the means of its leaves, and of a greedy tree's for its leaves.
MEAN_SHARE, GREEDY_LEAF_SHARE = Fraction(4, 10), Fraction(1, 2)
#: Where no reach is bought, a third of these parts of the target's width is, block by block.
REACHES = (0.5, 0.35, 0.25)
#: Deviations of the noise of a leaf that its records beyond the reach outnumber, on average.
BEYOND_LEAF = 2
#: The leaves' sums are cut at this many reaches.
LEAF_REACHES = 4
#: Rows x epsilon from which a third block pays, and that the levels of a greedy tree need.
THREE_BLOCKS_FROM, LEVEL_FROM = 15_000.0, 60.0
#: Steps of the grid on which absolute errors are measured.
TARGET_STEPS = 128


@dataclass(frozen=True)
class _ViewAndBudget:
    """How finely the table is seen, and what is left to spend."""

    view: View
    amount: Amount
    mass: float
    sizes: list[int]


def learn(
    table: Table,
    *,
    amount: Amount,
    max_depth: int | None,
    n_rows: int | None,
    criterion: str,
    merge: bool,
) -> Tree:
    """Learn a tree for at most an amount of the table's budget."""
    if criterion == "linear":
        return _learn_in_blocks(table, amount, max_depth, n_rows, merge=merge)
    losses = make_criterion(criterion, steps=TARGET_STEPS)
    return _learn_greedily(table, amount, max_depth, n_rows, losses)


def _learn_in_blocks(
    table: Table,
    amount: Amount,
    max_depth: int | None,
    n_rows: int | None,
    *,
    merge: bool,
) -> Tree:
    start = start_with_reach(table, amount, n_rows)
    if not start.amount:
        view = make_view(table, grid_of(table.schema), None)
        nothing = Growth([], table.root(view))
        return _tree(table.schema, nothing, view, np.full((1, 1), start.score))
    rows, budget = start.rows, table.ledger.budget
    seen = _choose_view(table, rows, start.amount)
    depths = block_depths(seen.mass, max_depth, three_from=THREE_BLOCKS_FROM)
    left, scaling = seen.amount, None
    if start.reach is not None and len(depths) > 1:
        scaling = seen.amount * LATER_SHARE / (len(depths) - 1)
        left = seen.amount * (1 - LATER_SHARE)
    root, scores = table.root(seen.view), table.start_scores((start.score,))
    cells, reach = root, start.reach
    regions, values = [everything(seen.view)], np.full((1, 1), start.score)
    levels: list[list[Split | None]] = []
    for turn, depth in enumerate(depths):
        block = affordable(TreeBlock(depth, left / len(depths)), rows, seen.sizes, 2, seen.mass)
        summing = block.amount * MEAN_SHARE
        if turn and scaling is not None:
            noise = pull_deviation(table.schema, budget, summing)
            beyond = BEYOND_LEAF * len(cells) * 2**block.depth * noise
            reach = buy_scale(table, root, scores, scaling, rows=rows, beyond=beyond)
        if reach is None:
            near = far = REACHES[turn] / NARROWER
        else:
            near, far = reach, min(LONGEST, LEAF_REACHES * reach)
        upper = None
        if block.width is not None:
            upper = [tuple(spread_out(len(seen.sizes), block.width, turn))] * len(cells)
        drawn = cells.draw_trees(
            block.depth,
            block.amount * (1 - MEAN_SHARE),
            upper=upper,
            merge=merge,
            scores=scores,
            reach=near,
        )
        level: list[Subtree] = [
            without_dead_ends(subtree, tuple(map(frozenset, region)))
            for subtree, region in zip(drawn, regions, strict=True)
        ]
        while any(isinstance(item, Branch) for item in level):
            splits, cells, regions = divide(
                cells,
                seen.view,
                [item.split if isinstance(item, Branch) else None for item in level],
                regions,
            )
            levels.append(splits)
            values = np.repeat(values, [s.n_children if s else 1 for s in splits], axis=0)
            level = [
                child
                for item in level
                for child in (item.children if isinstance(item, Branch) else (item,))
            ]
        found = cells.noisy_gradients(scores, summing, reach=far)
        below = np.maximum(found.curvature, 0.0) + found.deviation
        steps = np.divide(found.pull, below, out=np.zeros_like(below), where=below > 0)
        moved = np.clip(values + far * np.clip(steps, -1.0, 1.0), 0.0, 1.0)
        scores.add(cells, moved - values)
        values = moved
    return _tree(table.schema, Growth(levels, cells), seen.view, values)


def _learn_greedily(
    table: Table,
    amount: Amount,
    max_depth: int | None,
    n_rows: int | None,
    criterion: Criterion,
) -> Tree:
    n_rows, amount = know_rows(table, amount, n_rows)
    seen = _choose_view(table, n_rows, amount)
    depth = max_depth or greedy_depth(seen.mass)
    candidates = Binary([two_sides(seen.view, j) for j in range(len(seen.sizes))])
    each = seen.amount * (1 - GREEDY_LEAF_SHARE) / depth

    def choose(cells: Cells, regions: list[Region], trees: list[int]) -> list[Split | None]:
        del trees
        allowed = np.ones((len(cells), len(regions[0])), dtype=bool)
        return list(cells.choose_splits(candidates, criterion, each, allowed))

    growth = grow(table.root(seen.view), seen.view, depth, choose)
    values = means_of(table, growth, seen.amount * GREEDY_LEAF_SHARE)
    return _tree(table.schema, growth, seen.view, values)


def greedy_depth(mass: float) -> int:
    """Return how many levels a greedy tree should have, by rows x epsilon."""
    return int(np.clip(math.log2(max(min(mass, 2.0**40) / LEVEL_FROM, 2.0)), 2, 9))


def _choose_view(table: Table, rows: int, amount: Amount) -> _ViewAndBudget:
    """Return the view, with private quantiles where rows x epsilon pays for them."""
    schema: Schema = table.schema
    mass = rows * float(table.ledger.budget.selection_epsilon(amount))
    grid = grid_of(schema)
    quantiles, amount = set_aside_quantiles(amount, mass, n_numeric(schema))
    sizes = most_tests(schema, grid, quantiles=quantiles is not None)
    return _ViewAndBudget(make_view(table, grid, quantiles), amount, mass, sizes)


def _tree(schema: Schema, growth: Growth, view: View, values: NDArray[np.float64]) -> Tree:
    assert schema.bounds is not None
    low, high = schema.bounds
    return trees_of(growth, view, low + values * (high - low), scores=0)[0]
