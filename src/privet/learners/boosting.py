"""Boosting by whole trees.

Each round draws one small tree at once, on records that weigh by how wrong their scores are, keeps
its tests, and buys noisy sums of derivatives in its leaves; a Newton step, shrunk by the noise's
deviation, becomes the leaf's score. How many rounds there are, how deep and at what cost follows
from public numbers. With delta and two classes, rounds start from slopes (``slopes``); where slopes
and the labels of a tree rank better, or a single tree is better, these it is. Proof:
``docs/proofs/boosting.md``; rules: ``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.learners import slopes, whole_trees
from privet.learners._assembly import leaf_cells, score_tree, without_dead_ends
from privet.learners._views import QUANTILE_LEVELS, grid_of, make_view, most_tests, n_numeric
from privet.learners.budgets import (
    CLASSES_SHARE,
    count_in_epsilon,
    less,
    rest_in_epsilon,
    start_of_classes,
)
from privet.learners.graded import graded_ensemble, graded_tree
from privet.learners.reaches import (
    LATER_SHARE,
    LONGEST,
    NARROWER,
    NumberStart,
    buy_scale,
    start_with_reach,
)
from privet.learners.whole_trees import (
    AFFORDABLE_DEPTH_3,
    TreeBlock,
    affordable,
    spread_out,
    work_of_three,
)
from privet.privacy.budget import Amount, Budget
from privet.schema import Schema
from privet.tables import Cells, Scores, Subtree, Table, View, pull_deviation
from privet.tree import Tree

#: Part of a round's budget for its leaves.
LEAF_SHARE = Fraction(3, 10)
LEAF_SHARE_NUMBER = Fraction(4, 10)
#: Part of the budget for the leaves of a single tree, if probabilities matter: of two classes, and
#: of more, whose labels would lose more by it.
PROBABILITY_SHARES = (Fraction(1, 5), Fraction(1, 20))
#: Counts that tell whether a class is rare need this rows x epsilon, and cost a tree at most this.
ENOUGH_TO_TELL, MOST_TO_TELL = 15, Fraction(5, 100)
#: Before these rounds of a number its reach is bought anew, as residuals shrink.
SCALED_BEFORE = (1, 3, 7, 15, 31)
#: Deviations of the noise of a leaf that its records beyond the reach outnumber, on average.
BEYOND_LEAF = 6
#: The leaves' sums are cut at this many reaches.
LEAF_REACHES = 2
#: With delta, two classes have quantiles by this many halvings, if rows x epsilon of each of
#: them is at least the second number.
FINE_LEVELS, ENOUGH_FOR_FINE = 6, 400
#: From rows x epsilon = this on, two classes with delta have rounds by the square root alone.
MANY_ROUNDS_FROM = 50_000
#: Several classes with delta have rounds of depth 3 from this rows x epsilon on, with this many
#: features above the last level.
SEVERAL_FROM, SEVERAL_WIDTH = 8_000, 3
#: With delta, two classes are ranked best by slopes and a tree's labels, if rows x epsilon lies
#: between the first two; between the others rounds start from slopes, for this part of the budget.
RANKED_BY_SLOPES, STARTED_BY_SLOPES = (200, 5_000), (9_000, 200_000)
SLOPE_SHARE = Fraction(15, 100)
#: At pure epsilon, so many rounds of two classes are too few to rank records of a leaf.
FEW_ROUNDS = 4
#: With delta, steps of two classes are this long from this epsilon of a selection on: with hardly
#: any noise left, longer ones follow single records.
SHORT_STEP, SHORT_STEP_FROM = 0.4, 8
#: A Newton step is cut here.
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class BoostingPlan:
    """What is spent on what; made of public and released numbers."""

    quantiles: Amount | None
    grid: int
    rounds: tuple[TreeBlock, ...]
    rate: float
    levels: int = QUANTILE_LEVELS


def learn_classes(
    table: Table,
    *,
    amount: Amount,
    n_rows: int | None,
    n_rounds: int | None,
    max_depth: int | None,
    labels_only: bool,
    merge: bool,
    single: bool = False,
) -> Tree | Ensemble:
    """Learn classes for at most an amount: boosted trees, or one tree.

    ``single`` says that it is one tree. Otherwise the number of rows decides, declared or bought:
    with a budget that can be spent in either way a count for pure epsilon, so that a single tree
    has the rest of epsilon; else the noisy class counts of the start.
    """
    budget, classes = table.ledger.budget, len(table.schema.classes or ())
    share = Fraction(0) if labels_only else PROBABILITY_SHARES[classes > 2]

    def one(
        table: Table,
        *,
        amount: Amount,
        n_rows: int | None,
        counted: int | None = None,
        start: tuple[float, ...] | None = None,
    ) -> Tree | Ensemble:
        rare = None
        if classes == 2 and not labels_only:
            rare, amount = tell_rare(table, amount, n_rows or counted or 1, start)
        tree = whole_trees.learn(
            table,
            amount=amount,
            max_depth=max_depth,
            n_rows=n_rows,
            probability_share=share,
            merge=merge,
            counted=counted,
            rare=rare,
        )
        return tree if labels_only else graded_tree(tree)

    if single:
        return one(table, amount=amount, n_rows=n_rows)
    whole, counted = amount, None
    if budget.either and n_rows is None:
        counted, amount = count_in_epsilon(table, amount)
        if tree_in_epsilon_is_better(counted, budget, classes=classes, labels_only=labels_only):
            rest = rest_in_epsilon(table)
            return one(rest, amount=rest.ledger.budget.limit, n_rows=None, counted=counted)
    better = partial(
        single_tree_is_better,
        budget=budget,
        amount=whole,
        classes=classes,
        labels_only=labels_only,
    )
    if n_rows is not None and n_rounds is None and better(n_rows):
        return one(table, amount=amount, n_rows=n_rows)
    start, amount, started = start_of_classes(table, amount)
    rows = n_rows or counted or started
    if n_rounds is None and better(rows):
        return one(table, amount=amount, n_rows=n_rows, counted=rows, start=start)
    part = slopes_pay(rows, budget, whole, classes=classes)
    if part == "all" and n_rounds is None and not labels_only:
        return slopes.learn_labelled(
            table, start, amount=amount, rows=rows, max_depth=max_depth, merge=merge
        )
    trees: list[Tree] = []
    scores = table.start_scores(start)
    if part == "first":
        bought = amount * SLOPE_SHARE
        amount = less(amount, bought)
        first = slopes.fit(table, start, amount=bought, rows=rows, plain=True, long_steps=True)
        start, scores = first.start, first.scores(table, table.root(first.view))
        trees += first.trees()
    plan = make_plan(table.schema, rows, amount, budget, n_rounds, max_depth)
    view = make_view(table, plan.grid, plan.quantiles, levels=plan.levels)
    cells = table.root(view)
    for turn, block in enumerate(plan.rounds):
        subtree, leaves = _grow(cells, view, scores, block, turn, LEAF_SHARE, 0.0, merge=merge)
        found = leaves.noisy_gradients(scores, block.amount * LEAF_SHARE)
        steps = _newton(found.pull, found.curvature, found.deviation)
        values = plan.rate * np.clip(steps, -LONGEST_STEP, LONGEST_STEP)
        scores.add(leaves, values)
        noise = plan.rate * _newton(found.deviation, found.curvature, found.deviation)
        trees.append(score_tree(subtree, view, values, noise))
    model = Ensemble(table.schema, start, tuple(trees))
    few = budget.accountant == "pure" and classes == 2 and len(plan.rounds) <= FEW_ROUNDS
    return graded_ensemble(model) if few and n_rounds is None and not labels_only else model


def learn_number(
    table: Table,
    *,
    amount: Amount,
    n_rows: int | None,
    n_rounds: int | None,
    max_depth: int | None,
    merge: bool,
) -> Ensemble:
    """Learn a number for at most an amount: boosted trees."""
    schema, budget = table.schema, table.ledger.budget
    assert schema.bounds is not None
    low, high = schema.bounds
    start = start_with_reach(table, amount, n_rows, always=n_rounds is not None)
    first = (low + start.score * (high - low),)
    if not start.amount:
        return Ensemble(schema, first, ())
    plan = make_plan(schema, start.rows, start.amount, budget, n_rounds, max_depth)
    rounds, scaling = _set_aside_scales(plan.rounds, start)
    view = make_view(table, plan.grid, plan.quantiles)
    cells, scores = table.root(view), table.start_scores((start.score,))
    trees, reach = [], start.reach
    for turn, block in enumerate(rounds):
        summing = block.amount * LEAF_SHARE_NUMBER
        if turn in scaling:
            noise = pull_deviation(schema, budget, summing)
            beyond = BEYOND_LEAF * 2**block.depth * noise
            reach = buy_scale(table, cells, scores, scaling[turn], rows=start.rows, beyond=beyond)
        if reach is None:
            near = far = max(0.5 * 0.95**turn, 0.2) / NARROWER
        else:
            near, far = reach, min(LONGEST, LEAF_REACHES * reach)
        subtree, leaves = _grow(
            cells, view, scores, block, turn, LEAF_SHARE_NUMBER, near, merge=merge
        )
        found = leaves.noisy_gradients(scores, summing, reach=far)
        steps = _newton(found.pull, found.curvature, found.deviation)
        values = plan.rate * far * np.clip(steps, -1.0, 1.0)
        scores.add(leaves, values)
        deviations = plan.rate * far * _newton(found.deviation, found.curvature, found.deviation)
        trees.append(score_tree(subtree, view, values * (high - low), deviations * (high - low)))
    return Ensemble(schema, first, tuple(trees))


def _set_aside_scales(
    rounds: tuple[TreeBlock, ...], start: NumberStart
) -> tuple[tuple[TreeBlock, ...], dict[int, Amount]]:
    """Return what the rounds have left, and what a scale before some of them may cost."""
    turns = [turn for turn in SCALED_BEFORE if turn < len(rounds)]
    if start.reach is None or not turns:
        return rounds, {}
    each = sum(block.amount for block in rounds) * LATER_SHARE / len(turns)
    left = tuple(replace(block, amount=block.amount * (1 - LATER_SHARE)) for block in rounds)
    return left, dict.fromkeys(turns, each)


def _grow(
    cells: Cells,
    view: View,
    scores: Scores,
    block: TreeBlock,
    turn: int,
    leaf_share: Fraction,
    reach: float,
    *,
    merge: bool,
) -> tuple[Subtree, Cells]:
    """Draw one round's tree; return its tests and its leaves."""
    upper = None
    if block.width is not None:
        upper = [tuple(spread_out(len(view.sizes), block.width, turn))]
    drawing = block.amount * (1 - leaf_share)
    (drawn,) = cells.draw_trees(
        block.depth, drawing, upper=upper, merge=merge, scores=scores, reach=reach
    )
    subtree = without_dead_ends(drawn, tuple(frozenset(range(size)) for size in view.sizes))
    return subtree, leaf_cells(cells, subtree, view)


def _newton(
    pull: NDArray[np.float64] | float, curvature: NDArray[np.float64], deviation: float
) -> NDArray[np.float64]:
    """Return pull / curvature, shrunk by the noise; 0 where both are 0."""
    below = np.maximum(curvature, 0.0) + deviation
    return np.divide(pull, below, out=np.zeros_like(below), where=below > 0)


def single_tree_is_better(
    rows: int, budget: Budget, amount: Amount, *, classes: int, labels_only: bool
) -> bool:
    """Tell by rows x epsilon whether one tree is better than boosting (docs/rules.md).

    Either would have the whole amount. Boosting ranks better than a tree from a smaller mass on
    than it labels better; the noise of its leaves grows with the number of classes.
    """
    mass = rows * float(budget.selection_epsilon(amount))
    if budget.accountant == "pure":
        return mass < (50_000 if labels_only else 2_000 if classes == 2 else 10_000)
    if classes == 2 and not labels_only:
        return mass < RANKED_BY_SLOPES[0]
    # Below this several classes have rounds of four leaves, and the tree labels better.
    return mass < (800 if classes == 2 else max(SEVERAL_FROM, 800 * (classes - 1)))


def tell_rare(
    table: Table, amount: Amount, rows: int, start: tuple[float, ...] | None
) -> tuple[tuple[float, float] | None, Amount]:
    """Return the shares of two classes if one of them is rare, and what is left of an amount.

    The first score tells, if its counts were not mostly noise; without one, counts are bought if
    they would not be. ``rows`` are declared or noisy.
    """
    mass = rows * float(table.ledger.budget.selection_epsilon(amount))
    share = Fraction(math.ceil(1000 * ENOUGH_TO_TELL / mass), 1000)
    if start is None and share <= MOST_TO_TELL:
        start, amount, _ = start_of_classes(table, amount, share=share)
    elif start is None or share > CLASSES_SHARE:
        return None, amount
    return whole_trees.shares_if_rare(start), amount


def slopes_pay(rows: int, budget: Budget, amount: Amount, *, classes: int) -> str:
    """Tell by rows x epsilon what slopes are good for: "none" of it, "all", or the "first" part."""
    mass = rows * float(budget.selection_epsilon(amount))
    low, high = RANKED_BY_SLOPES
    if budget.accountant == "pure" or classes != 2 or mass < low:
        return "none"
    if mass < high:
        return "all"
    low, high = STARTED_BY_SLOPES
    return "first" if low <= mass < high else "none"


def tree_in_epsilon_is_better(
    rows: int, budget: Budget, *, classes: int, labels_only: bool
) -> bool:
    """Tell whether to spend epsilon and delta as pure epsilon, on one tree.

    Which is cheaper in epsilon than in zCDP. For labels it is better than boosting with delta, too,
    where it is better than boosting without.
    """
    assert budget.epsilon is not None
    kinds = [budget, Budget(budget.epsilon)] if labels_only else [budget]
    return any(
        single_tree_is_better(rows, kind, kind.limit, classes=classes, labels_only=labels_only)
        for kind in kinds
    )


def make_plan(
    schema: Schema,
    n_rows: int,
    amount: Amount,
    budget: Budget,
    n_rounds: int | None,
    max_depth: int | None,
) -> BoostingPlan:
    """Share an amount of the budget by public numbers (docs/rules.md)."""
    pure = budget.accountant == "pure"
    mass = n_rows * float(budget.selection_epsilon(amount))
    numeric, grid, quantiles = n_numeric(schema), grid_of(schema), None
    labels = 2 if schema.classes is None else len(schema.classes)
    number = schema.classes is None
    levels = QUANTILE_LEVELS
    if numeric:
        share = Fraction(1, 10) if pure else Fraction(8, 100)

        def level(halvings: int) -> float:
            of_one = budget.selection_epsilon(amount * share / (halvings * numeric))
            return n_rows * float(of_one)

        if mass / numeric >= 1000 if pure else level(QUANTILE_LEVELS) >= 250:
            two = not number and labels == 2
            if two and not pure and level(FINE_LEVELS) >= ENOUGH_FOR_FINE:
                levels = FINE_LEVELS
            quantiles = amount * share
    left = amount if quantiles is None else less(amount, quantiles)
    features = len(schema.names)
    shallow = not pure and not number and mass < 5_000 and features > 12
    depth = min(max_depth or 3, 2 if shallow else 3)
    if n_rounds is None:
        n_rounds = rounds_of(mass, pure=pure, labels=None if number else labels, shallow=depth < 3)
    sizes = most_tests(schema, grid, quantiles=quantiles is not None, levels=levels)
    one = affordable(TreeBlock(depth, left / n_rounds), n_rows, sizes, labels, mass)
    one = TreeBlock(one.depth, one.amount, one.width)
    if depth == 3 and not number:
        one = rotating(one, n_rows, sizes, labels, mass, pure=pure)
    rate = 1.0 if n_rounds <= 8 else 0.7
    sharp = float(budget.selection_epsilon(amount)) >= SHORT_STEP_FROM
    if n_rounds > 8 and sharp and not pure and not number and labels == 2:
        rate = SHORT_STEP
    return BoostingPlan(quantiles, grid, (one,) * n_rounds, rate, levels)


def rotating(
    block: TreeBlock, rows: int, sizes: list[int], labels: int, mass: float, *, pure: bool
) -> TreeBlock:
    """Return a round of depth 3 whose upper levels have few features, others every round.

    For two classes they are half of all, with delta, where rounds are more, a fifth; for more
    classes three; if a block may cost that much.
    """
    width = max(2, math.ceil(len(sizes) / 2) if pure else round(len(sizes) / 5))
    if labels > 2:
        if pure or mass < SEVERAL_FROM:
            return block
        width = SEVERAL_WIDTH
    if block.depth == 3 and block.width is not None:
        width = min(width, block.width)
    width = min(width, len(sizes))
    # As for a whole tree: merging makes most tests cheaper than counted.
    if work_of_three(width, rows, sizes, labels) > AFFORDABLE_DEPTH_3:
        return block
    return TreeBlock(3, block.amount, width)


def rounds_of(mass: float, *, pure: bool, labels: int | None, shallow: bool) -> int:
    """Return how many rounds are worth their noise; ``labels`` is None for a number."""
    number = labels is None
    least = 1 if number or not pure else 2
    most = (48 if number else 32) if pure else (100 if number else 40)
    if labels == 2 and not pure and mass >= MANY_ROUNDS_FROM:
        return round(min(max(0.28 * math.sqrt(mass), 40.0), 200.0))
    if mass == math.inf:
        return most
    ideal = math.sqrt(mass) / (12 if pure else 5)
    if not shallow and (pure or not number):
        ideal *= 0.7
    return min(max(round(ideal), least), most)
