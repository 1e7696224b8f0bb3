"""Whole trees from one private draw (utility.md, sections 1 and 9 to 13).

A block is a tree of depth at most two or three, drawn with its labels from the exponential
mechanism over all such trees; deeper trees stack blocks, each on the leaves of the one above. Which
tests are offered, how many blocks there are and how the budget is shared follow from public numbers
alone: the schema, epsilon, and the number of rows, which is declared or paid for. Proof:
``docs/proofs/whole-trees.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privet.learners._assembly import assemble, without_dead_ends
from privet.privacy.budget import Amount
from privet.schema import Numeric, Schema
from privet.tables import Branch, Cells, PrivateTable, Sketch, View
from privet.tree import Tree

#: Part of the budget for counting the rows, if their number is not declared.
COUNT_SHARE = Fraction(1, 50)
#: Part of the budget for private quantiles, where rows x epsilon pays for them.
QUANTILE_SHARE = Fraction(1, 10)
QUANTILE_LEVELS = 4
#: Work that a block may cost (increments and sums), about a second; a full block of depth 3 may
#: cost more, because merging makes most of them several times cheaper than this count.
AFFORDABLE = 4e8
AFFORDABLE_DEPTH_3 = 1.5e9
#: Part of a block's budget for choosing the features of its upper levels on wide tables.
CHOICE_SHARE = Fraction(1, 5)


@dataclass(frozen=True)
class Block:
    """One draw: a depth, its budget, and how many features its upper levels may use.

    ``width`` None means all of them; ``bought`` says whether they are chosen privately (else they
    are taken at even distances in the schema's order).
    """

    depth: int
    epsilon: Amount
    width: int | None = None
    bought: bool = False


@dataclass(frozen=True)
class Plan:
    """What is spent on what; made before any record is looked at, but for the paid count."""

    quantiles: Amount | None
    grid: int
    blocks: tuple[Block, ...]
    leaves: Amount | None


def learn(
    table: PrivateTable,
    *,
    epsilon: Amount,
    max_depth: int | None,
    n_rows: int | None,
    probability_share: Fraction,
    merge: bool,
) -> Tree:
    """Learn a tree for at most ``epsilon``."""
    schema = table.schema
    left = epsilon
    if n_rows is None:
        counting = epsilon * COUNT_SHARE
        left = _less(left, counting)
        n_rows = max(1, int(table.root().noisy_counts(counting)[0]))
    plan = make_plan(schema, n_rows, left, max_depth, probability_share)
    view = make_view(table, plan)
    cells = table.root(view)
    (drawn,) = grow(cells, plan.blocks, merge=merge)
    sketch = without_dead_ends(drawn, tuple(frozenset(range(size)) for size in view.sizes))
    return assemble(sketch, cells, view, plan.leaves)


def grow(cells: Cells, blocks: tuple[Block, ...], *, merge: bool) -> list[Sketch]:
    """Draw a tree for every cell: one block, and the further blocks on its leaves."""
    if not len(cells):
        return []
    block, rest = blocks[0], blocks[1:]
    upper = None
    epsilon = block.epsilon
    if block.width is not None:
        if block.bought:
            choosing = epsilon * CHOICE_SHARE
            epsilon = _less(epsilon, choosing)
            upper = cells.choose_features(block.width, choosing)
        else:
            upper = [tuple(_spread_out(len(cells.schema.names), block.width))] * len(cells)
    sketches = cells.draw_trees(block.depth, epsilon, upper=upper, merge=merge)
    return _refine(cells, sketches, rest, merge=merge) if rest else sketches


def _refine(
    cells: Cells, sketches: list[Sketch], blocks: tuple[Block, ...], *, merge: bool
) -> list[Sketch]:
    """Replace the leaves of drawn trees by further blocks."""
    ends = np.array([not isinstance(sketch, Branch) for sketch in sketches])
    grown = iter(grow(cells.take(ends), blocks, merge=merge))
    branches = [sketch for sketch in sketches if isinstance(sketch, Branch)]
    inner: list[Sketch] = []
    if branches:
        below = cells.take(~ends).split([branch.split for branch in branches])
        children = [child for branch in branches for child in branch.children]
        inner = _refine(below, children, blocks, merge=merge)
    parts = iter(inner)
    return [
        next(grown)
        if not isinstance(sketch, Branch)
        else Branch(sketch.split, tuple(next(parts) for _ in sketch.children))
        for sketch in sketches
    ]


def make_plan(
    schema: Schema,
    n_rows: int,
    epsilon: Amount,
    max_depth: int | None,
    probability_share: Fraction,
) -> Plan:
    """Share the budget by public numbers (utility.md: 1.4, 10.2 and 12)."""
    leaves = None
    if probability_share:
        leaves = epsilon * probability_share
        epsilon = _less(epsilon, leaves)
    mass = n_rows * float(epsilon)
    numeric = sum(isinstance(feature, Numeric) for feature in schema.features.values())
    grid = 32 if numeric <= 12 else 16 if numeric <= 30 else 8 if numeric <= 100 else 4
    quantiles = None
    if numeric and epsilon != math.inf and mass / numeric >= 1000:
        quantiles = epsilon * QUANTILE_SHARE
        epsilon -= quantiles
        grid //= 2
    depths = block_depths(mass, max_depth)
    shares = block_shares(depths)
    sizes = _sizes(schema, grid, quantiles is not None)
    classes = len(schema.classes or ())
    blocks = tuple(
        _affordable(Block(depth, epsilon * share), n_rows, sizes, classes, mass)
        for depth, share in zip(depths, shares, strict=True)
    )
    return Plan(quantiles, grid, blocks, leaves)


def block_depths(mass: float, max_depth: int | None) -> tuple[int, ...]:
    """Return the depths of the blocks for rows x epsilon = mass (utility.md, 10.2)."""
    if mass < 60:
        depths: tuple[int, ...] = (2,)
    elif mass < 2_000:
        depths = (3,)
    elif mass < 60_000:
        depths = (3, 3)
    else:
        depths = (3, 3, 3)
    if max_depth is None:
        return depths
    if max_depth == 4 and mass >= 1_500:
        return (3, 1)
    allowed, left = [], max_depth
    for depth in depths:
        if left > 0:
            allowed.append(min(depth, left))
        left -= depth
    return tuple(allowed)


def block_shares(depths: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Return the parts of the budget: 35 and 65 per cent for 3+3 (utility.md, 10.2), else equal."""
    if depths == (3, 3):
        return (Fraction(35, 100), Fraction(65, 100))
    return (Fraction(1, len(depths)),) * len(depths)


def _less(epsilon: Amount, part: Amount) -> Amount:
    """Return what is left of a budget; an infinite one stays infinite."""
    return epsilon if epsilon == math.inf else epsilon - part


def _sizes(schema: Schema, grid: int, quantiles: bool) -> list[int]:
    """Return an upper bound on the number of tests of every feature, by public numbers."""
    return [
        len(scale_cuts(feature, grid)) + (2**QUANTILE_LEVELS - 1) * quantiles + 1
        if isinstance(feature, Numeric)
        else feature.size
        for feature in schema.features.values()
    ]


def _affordable(block: Block, rows: int, sizes: list[int], classes: int, mass: float) -> Block:
    """Limit the work of a block on wide tables (utility.md, section 12)."""
    features, tests, widest = len(sizes), sum(sizes), max(sizes)
    mean = tests / features
    per_test = 1 if classes == 2 else 2 * classes
    budget = AFFORDABLE / per_test
    if block.depth < 2:
        return block
    if block.depth == 3:
        work = max(2 * tests**3 * per_test, rows * features**3 / 3)
        if work <= AFFORDABLE_DEPTH_3:
            return block
        if mass >= 2_000:
            width = int(
                min(
                    features,
                    16,
                    math.sqrt(budget / (2 * tests * mean**2)),
                    math.sqrt(2 * AFFORDABLE / (max(rows, 1) * features)),
                )
            )
            if width >= 4:
                return Block(3, block.epsilon, width, bought=True)
        block = Block(2, block.epsilon)
    if rows * features**2 / 2 <= AFFORDABLE and 2 * tests**2 <= budget:
        return block
    width = int(
        min(features, AFFORDABLE / (max(rows, 1) * features), budget / (2 * tests * widest))
    )
    if width < 1:
        return Block(1, block.epsilon)
    return Block(2, block.epsilon, width, bought=mass >= 1_000)


def make_view(table: PrivateTable, plan: Plan) -> View:
    """Return the cut points: a public grid of several scales, and private quantiles if paid for."""
    schema = table.schema
    numeric = sum(isinstance(feature, Numeric) for feature in schema.features.values())
    cuts: list[tuple[float, ...] | None] = []
    for j, feature in enumerate(schema.features.values()):
        if not isinstance(feature, Numeric):
            cuts.append(None)
            continue
        points = set(scale_cuts(feature, plan.grid))
        if plan.quantiles is not None:
            points |= set(table.quantiles(j, QUANTILE_LEVELS, plan.quantiles / numeric))
        cuts.append(tuple(sorted(points)))
    return View(schema, tuple(cuts))


def scale_cuts(feature: Numeric, grid: int) -> tuple[float, ...]:
    """Return cuts at several scales: even steps, halvings towards the ends and towards zero."""
    low, high = feature.low, feature.high
    width = high - low
    points = {low + width * i / grid for i in range(1, grid)}
    points |= {low + width * 2.0**-k for k in range(1, 15)}
    points.add(low + width * 2.0**-24)  # "above the lower bound"
    if low < 0 < high:
        points |= {high * 2.0**-k for k in range(1, 15)} | {low * 2.0**-k for k in range(1, 15)}
        points.add(width * 2.0**-24)  # "above zero"
    return tuple(sorted(point for point in points if low < point < high))


def _spread_out(features: int, width: int) -> list[int]:
    """Return some features by a fixed public rule that ignores the data and spreads them out."""
    return sorted({features * i // width for i in range(width)})
