"""Whole trees from one private draw.

A block is a tree of depth at most two or three, drawn with its labels from the exponential
mechanism over all such trees; deeper trees stack blocks, each on the leaves of the one above. Which
tests are offered, how many blocks there are and how the budget is shared follow from public numbers
alone: the schema, epsilon, and the number of rows, which is declared or paid for. Where these are
hardly any, the tests are public, too, and only labels are asked for. Proof:
``docs/proofs/whole-trees.md``; rules: ``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privet.learners._assembly import assemble, grown, without_dead_ends, without_needless
from privet.learners._views import grid_of, make_view, middle_view, most_tests, n_numeric
from privet.learners.budgets import know_rows, less, set_aside_quantiles
from privet.privacy.budget import Amount, Budget
from privet.schema import Numeric, Schema
from privet.tables import Branch, Cells, Scores, Split, Subtree, Table, check_sizes
from privet.tree import Tree

#: Work that a block may cost, in increments and sums: about a second. A full block of depth 3 may
#: cost more, because merging tests makes most of them several times cheaper than counted.
AFFORDABLE = 4e8
AFFORDABLE_DEPTH_3 = 1.5e9
#: More rows than this do not count against these limits: more rows never make a block smaller.
MANY_ROWS = 1_000_000
#: A block of two classes is drawn with at most this epsilon: beyond, trees follow single records.
HIGHEST_RATE = 2
#: How probable a leaf above a block's last level is before any record is counted; and with fewer
#: rows x epsilon than the last numbers, of two classes and of more.
STOP, STOP_ON_FEW, FEW = 0.5, 0.125, (100, 1_500)
#: Share of a block's budget that chooses the features of its upper levels on wide tables.
CHOICE_SHARE = Fraction(1, 5)
#: With fewer features for its upper levels a block of depth 3 is no better than one of depth 2.
LEAST_WIDTH = 4
#: Share of the budget for class counts in the leaves, and the rows x epsilon from which they pay.
LEAF_SHARE, LEAVES_FROM = Fraction(1, 20), 1_000
#: Declared rows x epsilon below which no test is worth its draw.
PUBLIC_BELOW = 10
#: Of two classes, one is rare if its noisy share is at most this; it is taken for no rarer than the
#: second number. Then records weigh as scores want them that are this part of its log odds: with
#: all of it, both classes would weigh the same.
RARE, RAREST, BALANCE = 0.25, 0.03, 0.75
#: A public tree has no more leaves than this, whatever categories there are.
MOST_PUBLIC_LEAVES = 4_096


@dataclass(frozen=True)
class TreeBlock:
    """One draw: a depth, what it may cost, and how many features its upper levels may use.

    ``width`` None means all of them; ``bought`` says whether they are chosen privately (else they
    are taken at even distances in the schema's order). ``stop`` is how probable an early leaf is
    before any record is counted.
    """

    depth: int
    amount: Amount
    width: int | None = None
    bought: bool = False
    stop: float = STOP


@dataclass(frozen=True)
class WholeTreePlan:
    """What is spent on what; of public numbers, and the noisy count of rows if it was bought.

    There are blocks, or public tests by some features, whose ``public_leaves`` buy ``labels``.
    """

    quantiles: Amount | None
    grid: int
    blocks: tuple[TreeBlock, ...]
    leaves: Amount | None
    public: tuple[int, ...] = ()
    public_leaves: int = 0
    labels: Amount | None = None


def check_schema(schema: Schema) -> None:
    """Refuse a schema with more tests than whole trees are drawn from, before anything is paid."""
    most = most_tests(schema, grid_of(schema), quantiles=True)
    check_sizes([tests + 1 for tests in most], len(schema.classes or (0, 1)))


def learn(
    table: Table,
    *,
    amount: Amount,
    max_depth: int | None,
    n_rows: int | None,
    probability_share: Fraction | None,
    merge: bool,
    counted: int | None = None,
    rare: tuple[float, float] | None = None,
) -> Tree:
    """Learn a tree for at most an amount of the table's budget.

    ``n_rows`` is what was declared, ``counted`` what was bought before, if anything was.
    ``probability_share`` None leaves it to rows x epsilon whether leaves buy class counts.
    ``rare`` are shares of two classes, one of them rare: its records weigh more, so that leaves
    tell where it is less rare, and class counts tell their labels.
    """
    budget, declared = table.ledger.budget, n_rows is not None
    n_rows, amount = know_rows(table, amount, n_rows or counted)
    plan = make_plan(
        table.schema, n_rows, amount, max_depth, probability_share, budget, declared=declared
    )
    if plan.labels is not None:
        view = middle_view(table.schema)
        cells = table.root(view)
        subtree = label_public_tests(cells, plan.public, plan.labels)
    else:
        view = make_view(table, plan.grid, plan.quantiles)
        cells = table.root(view)
        scores = scores_if_rare(table, rare)
        (drawn,) = grow(cells, plan.blocks, merge=merge, scores=scores)
        subtree = without_dead_ends(drawn, tuple(frozenset(range(size)) for size in view.sizes))
    return assemble(subtree, cells, view, plan.leaves, budget, first=rare)


def shares_if_rare(start: tuple[float, ...]) -> tuple[float, float] | None:
    """Return the shares of two classes by their noisy log odds, if one of them is rare."""
    second = 1 / (1 + math.exp(-start[0]))
    if min(second, 1 - second) > RARE:
        return None
    second = min(max(second, RAREST), 1 - RAREST)
    return 1 - second, second


def scores_if_rare(table: Table, rare: tuple[float, float] | None) -> Scores | None:
    """Return scores by which records of a rare class weigh more."""
    if rare is None:
        return None
    return table.start_scores((BALANCE * math.log(rare[1] / rare[0]),))


def label_public_tests(cells: Cells, features: tuple[int, ...], amount: Amount) -> Subtree:
    """Divide the whole table by some features, and buy the labels of the leaves.

    Of a number both sides of each cut are a child, missing ones above; of a category every code.
    """
    view, levels, leaves = cells.view, [], cells
    for feature in features:
        size = view.sizes[feature]
        codes = range(size - 1) if view.cuts[feature] is not None else range(size)
        split = Split(feature, tuple(min(code, codes[-1]) for code in range(size)))
        if split.n_children == 1:  # bounds with no cut between them
            continue
        levels.append([split] * len(leaves))
        leaves = leaves.split(levels[-1])
    return without_needless(grown(levels, leaves.choose_labels(amount)))


def grow(
    cells: Cells, blocks: tuple[TreeBlock, ...], *, merge: bool, scores: Scores | None = None
) -> list[Subtree]:
    """Draw a tree for every cell: one block, and the further blocks on its leaves.

    With scores, records weigh by how wrong these are.
    """
    if not len(cells):
        return []
    block, rest = blocks[0], blocks[1:]
    upper = None
    amount = block.amount
    if block.width is not None:
        if block.bought:
            choosing = amount * CHOICE_SHARE
            amount = less(amount, choosing)
            upper = cells.choose_features(block.width, choosing)
        else:
            upper = [tuple(spread_out(len(cells.schema.names), block.width))] * len(cells)
    subtrees = cells.draw_trees(
        block.depth, amount, upper=upper, merge=merge, scores=scores, stop=block.stop
    )
    return _refine(cells, subtrees, rest, merge=merge, scores=scores) if rest else subtrees


def _refine(
    cells: Cells,
    subtrees: list[Subtree],
    blocks: tuple[TreeBlock, ...],
    *,
    merge: bool,
    scores: Scores | None,
) -> list[Subtree]:
    """Replace the leaves of drawn trees by further blocks."""
    ends = np.array([not isinstance(subtree, Branch) for subtree in subtrees])
    grown = iter(grow(cells.take(ends), blocks, merge=merge, scores=scores))
    branches = [subtree for subtree in subtrees if isinstance(subtree, Branch)]
    inner: list[Subtree] = []
    if branches:
        below = cells.take(~ends).split([branch.split for branch in branches])
        children = [child for branch in branches for child in branch.children]
        inner = _refine(below, children, blocks, merge=merge, scores=scores)
    parts = iter(inner)
    return [
        next(grown)
        if not isinstance(subtree, Branch)
        else Branch(subtree.split, tuple(next(parts) for _ in subtree.children))
        for subtree in subtrees
    ]


def make_plan(
    schema: Schema,
    n_rows: int,
    amount: Amount,
    max_depth: int | None,
    probability_share: Fraction | None,
    budget: Budget,
    *,
    declared: bool = True,
) -> WholeTreePlan:
    """Share an amount of the budget by public numbers (docs/rules.md).

    All rules go by the mass, rows x epsilon, of the amount before anything is taken off it.
    """
    mass = n_rows * float(budget.selection_epsilon(amount))
    leaves = None
    if probability_share is None:
        probability_share = LEAF_SHARE if mass >= LEAVES_FROM else Fraction(0)
    if probability_share:
        leaves = amount * probability_share
        amount = less(amount, leaves)
    numeric, grid = n_numeric(schema), grid_of(schema)
    if declared and mass < PUBLIC_BELOW:
        public, n_leaves = public_features(schema, max_depth)
        return WholeTreePlan(None, grid, (), leaves, public, n_leaves, amount)
    quantiles, amount = set_aside_quantiles(amount, mass, numeric)
    if quantiles is not None:
        grid //= 2
    sizes = most_tests(schema, grid, quantiles=quantiles is not None)
    classes = len(schema.classes or ())
    wanted = block_depths(mass, max_depth)
    # With many classes four leaves are too few: better two blocks over few bought features.
    narrow = classes > 2 and wanted[:2] == (3, 3)
    stop = STOP_ON_FEW if mass < FEW[classes > 2] else STOP

    def blocks_of(depths: tuple[int, ...]) -> tuple[TreeBlock, ...]:
        return tuple(
            affordable(
                TreeBlock(depth, tempered(amount * share, budget, classes), stop=stop),
                n_rows,
                sizes,
                classes,
                mass,
                narrow=narrow,
            )
            for depth, share in zip(depths, block_shares(depths, classes), strict=True)
        )

    blocks = blocks_of(wanted)
    if wanted[0] == 3 and all(block.depth < 3 for block in blocks):
        blocks = blocks_of(shallow_depths(mass, max_depth, classes))
    return WholeTreePlan(quantiles, grid, blocks, leaves)


def public_features(schema: Schema, max_depth: int | None) -> tuple[tuple[int, ...], int]:
    """Return which features a public tree tests, and how many leaves it has at most.

    Two features, at even distances in the schema's order.
    """
    features = list(schema.features.values())
    chosen, leaves = [], 1
    for place in spread_out(len(features), min(2, max_depth or 2)):
        feature = features[place]
        children = 2 if isinstance(feature, Numeric) else feature.size
        if leaves * children <= MOST_PUBLIC_LEAVES:
            chosen.append(place)
            leaves *= children
    return tuple(chosen), leaves


def tempered(amount: Amount, budget: Budget, classes: int) -> Amount:
    """Return what a block may cost of an amount; the rest stays unspent (docs/rules.md).

    A test is drawn if it gains about log(tests)/epsilon correct records. At large epsilons that is
    less than one record, and a tree on few rows learns its records by heart. With more than two
    classes its leaves are too few for that. Without noise there is nothing to save.
    """
    if amount == math.inf or classes > 2:
        return amount
    most = Fraction(HIGHEST_RATE)
    return min(amount, most if budget.accountant == "pure" else most**2 / 8)


def block_depths(
    mass: float, max_depth: int | None, *, three_from: float = 60_000
) -> tuple[int, ...]:
    """Return the depths of the blocks for rows x epsilon = mass (docs/rules.md)."""
    if mass < 60:
        depths: tuple[int, ...] = (2,)
    elif mass < 2_000:
        depths = (3,)
    elif mass < three_from:
        depths = (3, 3)
    else:
        depths = (3, 3, 3)
    if max_depth == 4 and mass >= 1_500:
        return (3, 1)
    return _limited(depths, max_depth)


def shallow_depths(mass: float, max_depth: int | None, classes: int) -> tuple[int, ...]:
    """Return the depths where no block of depth 3 is affordable: more blocks of four leaves.

    More classes than leaves need a second block sooner, and very many leave too few records to
    each for it.
    """
    second = 2_000 if classes == 2 else 600 if classes < 6 else max(400, 40 * classes)
    number = 1 + (mass >= second) + (mass >= 5_000) + (mass >= 50_000)
    return _limited((2,) * number, max_depth)


def _limited(depths: tuple[int, ...], max_depth: int | None) -> tuple[int, ...]:
    if max_depth is None:
        return depths
    allowed, left = [], max_depth
    for depth in depths:
        if left > 0:
            allowed.append(min(depth, left))
        left -= depth
    return tuple(allowed)


def block_shares(depths: tuple[int, ...], classes: int) -> tuple[Fraction, ...]:
    """Return the parts of the budget.

    35 and 65 per cent for 3+3, and with more than two classes for 2+2, else equal parts.
    """
    if depths == (3, 3) or (depths == (2, 2) and classes > 2):
        return (Fraction(35, 100), Fraction(65, 100))
    return (Fraction(1, len(depths)),) * len(depths)


def affordable(
    block: TreeBlock,
    rows: int,
    sizes: list[int],
    classes: int,
    mass: float,
    *,
    narrow: bool = False,
) -> TreeBlock:
    """Limit the work of a block on wide tables (docs/rules.md).

    ``narrow``: keep depth 3 with the least number of upper features, if that costs no more than a
    full block of depth 3 may.
    """
    features, tests, widest = len(sizes), sum(sizes), max(sizes)
    mean = tests / features
    per_test = 1 if classes == 2 else 2 * classes
    budget = AFFORDABLE / per_test
    rows = min(rows, MANY_ROWS)
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
            least = max(
                2 * LEAST_WIDTH**2 * tests * mean**2 * per_test,
                LEAST_WIDTH**2 * rows * features / 2,
            )
            if narrow and features >= LEAST_WIDTH and least <= AFFORDABLE_DEPTH_3:
                width = max(width, LEAST_WIDTH)
            if width >= LEAST_WIDTH:
                return replace(block, width=width, bought=True)
        block = replace(block, depth=2)
    if rows * features**2 / 2 <= AFFORDABLE and 2 * tests**2 <= budget:
        return block
    width = int(
        min(features, AFFORDABLE / (max(rows, 1) * features), budget / (2 * tests * widest))
    )
    if width < 1:
        return replace(block, depth=1)
    return replace(block, width=width, bought=mass >= 1_000)


def work_of_three(width: int, rows: int, sizes: list[int], classes: int) -> float:
    """Return about how many steps a block of depth 3 takes whose upper levels have few features."""
    features, tests = len(sizes), sum(sizes)
    per_test = 1 if classes == 2 else 2 * classes
    pairs = (width * tests / features) ** 2
    return max(2 * tests * pairs * per_test, min(rows, MANY_ROWS) * features * width**2 / 2)


def spread_out(features: int, width: int, turn: int = 0) -> list[int]:
    """Return some features by a public rule that spreads them out; every turn takes others."""
    return sorted({(features * i // width + turn) % features for i in range(width)})
