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
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.learners import regression_trees, slopes, whole_trees
from privet.learners._assembly import leaf_cells, score_tree, without_dead_ends
from privet.learners._views import QUANTILE_LEVELS, grid_of, make_view, most_tests, n_numeric
from privet.learners.budgets import less, start_of_classes, start_of_number
from privet.learners.whole_trees import TreeBlock, affordable, spread_out
from privet.privacy.budget import Amount, Budget
from privet.schema import Schema
from privet.tables import Cells, Scores, Subtree, Table, View
from privet.tree import Tree

#: Part of a round's budget for its leaves.
LEAF_SHARE = Fraction(3, 10)
LEAF_SHARE_NUMBER = Fraction(4, 10)
#: Part of the budget for the leaves of a single tree, if probabilities matter.
PROBABILITY_SHARE = Fraction(1, 5)
#: With delta, two classes are ranked best by slopes and a tree's labels, if rows x epsilon lies
#: between the first two; from the third on, rounds start from slopes, for this part of the budget.
RANKED_BY_SLOPES, STARTED_BY_SLOPES = (200, 5_000), 9_000
SLOPE_SHARE = Fraction(15, 100)
#: At pure epsilon one tree is learnt for a number, if rows x epsilon lies between these.
SINGLE_NUMBER = (2_000, 60_000)
#: A Newton step is cut here.
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class BoostingPlan:
    """What is spent on what; made of public and released numbers."""

    quantiles: Amount | None
    grid: int
    rounds: tuple[TreeBlock, ...]
    rate: float


def learn_classes(
    table: Table,
    *,
    amount: Amount,
    n_rows: int | None,
    n_rounds: int | None,
    max_depth: int | None,
    labels_only: bool,
    merge: bool,
    single: bool | None = None,
) -> Tree | Ensemble:
    """Learn classes for at most an amount: boosted trees, or one tree.

    ``single`` says which; None leaves it to the noisy class counts of the start.
    """
    budget = table.ledger.budget
    share = Fraction(0) if labels_only else PROBABILITY_SHARE
    one = partial(
        whole_trees.learn, table, max_depth=max_depth, probability_share=share, merge=merge
    )
    if single:
        return one(amount=amount, n_rows=n_rows)
    whole = amount
    start, amount, counted = start_of_classes(table, amount)
    rows = n_rows or counted
    if (
        single is None
        and n_rounds is None
        and single_tree_is_better(
            rows, budget, whole, classes=len(table.schema.classes or ()), labels_only=labels_only
        )
    ):
        return one(amount=amount, n_rows=rows)
    part = slopes_pay(rows, budget, whole, classes=len(table.schema.classes or ()))
    if part == "all" and n_rounds is None and not labels_only:
        return slopes.learn_labelled(
            table, start, amount=amount, rows=rows, max_depth=max_depth, merge=merge
        )
    trees: list[Tree] = []
    scores = table.start_scores(start)
    if part == "first":
        bought = amount * SLOPE_SHARE
        amount = less(amount, bought)
        first = slopes.fit(table, start, amount=bought, rows=rows, plain=True)
        start, scores = first.start, first.scores(table, table.root(first.view))
        trees += first.trees()
    plan = make_plan(table.schema, rows, amount, budget, n_rounds, max_depth)
    view = make_view(table, plan.grid, plan.quantiles)
    cells = table.root(view)
    for turn, block in enumerate(plan.rounds):
        subtree, leaves = _grow(cells, view, scores, block, turn, LEAF_SHARE, 0.0, merge=merge)
        found = leaves.noisy_gradients(scores, block.amount * LEAF_SHARE)
        steps = _newton(found.pull, found.curvature, found.deviation)
        values = plan.rate * np.clip(steps, -LONGEST_STEP, LONGEST_STEP)
        scores.add(leaves, values)
        trees.append(score_tree(subtree, view, values))
    return Ensemble(table.schema, start, tuple(trees))


def learn_number(
    table: Table,
    *,
    amount: Amount,
    n_rows: int | None,
    n_rounds: int | None,
    max_depth: int | None,
    merge: bool,
    single: bool | None = None,
) -> Tree | Ensemble:
    """Learn a number for at most an amount: boosted trees, or one tree.

    ``single`` says which; None leaves it to the noisy count of the start.
    """
    schema, budget = table.schema, table.ledger.budget
    assert schema.bounds is not None
    low, high = schema.bounds
    whole = amount
    (start,), amount, counted = bought = start_of_number(table, amount)
    rows = n_rows or counted
    if single is None:
        single = n_rounds is None and single_tree_is_better_for_numbers(rows, budget, whole)
    if single:
        return regression_trees.learn_from(bought, table, max_depth, n_rows, merge=merge)
    plan = make_plan(schema, rows, amount, budget, n_rounds, max_depth)
    view = make_view(table, plan.grid, plan.quantiles)
    cells, scores = table.root(view), table.start_scores((start,))
    trees = []
    for turn, block in enumerate(plan.rounds):
        reach = max(0.5 * 0.95**turn, 0.2)
        subtree, leaves = _grow(
            cells, view, scores, block, turn, LEAF_SHARE_NUMBER, reach, merge=merge
        )
        found = leaves.noisy_gradients(scores, block.amount * LEAF_SHARE_NUMBER, reach=reach)
        steps = _newton(found.pull, found.curvature, found.deviation)
        values = plan.rate * reach * np.clip(steps, -1.0, 1.0)
        scores.add(leaves, values)
        trees.append(score_tree(subtree, view, values * (high - low)))
    return Ensemble(schema, (low + start * (high - low),), tuple(trees))


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
    pull: NDArray[np.float64], curvature: NDArray[np.float64], deviation: float
) -> NDArray[np.float64]:
    """Return pull / curvature, shrunk by the noise; 0 where both are 0."""
    below = np.maximum(curvature, 0.0) + deviation
    return np.divide(pull, below, out=np.zeros_like(pull), where=below > 0)


def single_tree_is_better(
    rows: int, budget: Budget, amount: Amount, *, classes: int, labels_only: bool
) -> bool:
    """Tell by rows x epsilon whether one tree is better than boosting (docs/rules.md).

    Either would have the whole amount. Boosting ranks better than a tree from a smaller mass on
    than it labels better; the noise of its leaves grows with the number of classes.
    """
    mass = rows * float(budget.selection_epsilon(amount))
    if budget.accountant == "pure":
        return mass < (50_000 if labels_only else 5_000)
    if classes == 2 and not labels_only:
        return mass < RANKED_BY_SLOPES[0]
    return mass < 800 * (classes - 1)


def slopes_pay(rows: int, budget: Budget, amount: Amount, *, classes: int) -> str:
    """Tell by rows x epsilon what slopes are good for: "none" of it, "all", or the "first" part."""
    mass = rows * float(budget.selection_epsilon(amount))
    low, high = RANKED_BY_SLOPES
    if budget.accountant == "pure" or classes != 2 or mass < low:
        return "none"
    if mass < high:
        return "all"
    return "first" if mass >= STARTED_BY_SLOPES else "none"


def single_tree_is_better_for_numbers(rows: int, budget: Budget, amount: Amount) -> bool:
    """Tell by rows x epsilon whether one tree predicts a number better than boosting.

    At pure epsilon, by development numbers on the five sets of benchmarks/results/regression.md
    at epsilon 1 and 10: boosting was better in one of six cells below 60,000 (california at
    18,600) and in two of four from 178,000 on. Below 2,000 the tree has one block, no deeper than
    a round, and was not better in three cells (epsilon 0.1, a run that was not kept). With delta
    boosting was better on most sets.
    """
    low, high = SINGLE_NUMBER
    return budget.accountant == "pure" and low <= rows * float(amount) < high


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
    if numeric:
        share = Fraction(1, 10) if pure else Fraction(8, 100)
        level = budget.selection_epsilon(amount * share / (QUANTILE_LEVELS * numeric))
        if mass / numeric >= 1000 if pure else n_rows * float(level) >= 250:
            quantiles = amount * share
            amount = less(amount, quantiles)
    number = schema.classes is None
    features = len(schema.names)
    shallow = not pure and not number and mass < 5_000 and features > 12
    depth = min(max_depth or 3, 2 if shallow else 3)
    if n_rounds is None:
        n_rounds = rounds_of(mass, pure=pure, number=number, shallow=depth < 3)
    sizes = most_tests(schema, grid, quantiles=quantiles is not None)
    labels = 2 if schema.classes is None else len(schema.classes)
    one = affordable(TreeBlock(depth, amount / n_rounds), n_rows, sizes, labels, mass)
    one = TreeBlock(one.depth, one.amount, one.width)
    return BoostingPlan(quantiles, grid, (one,) * n_rounds, 1.0 if n_rounds <= 8 else 0.7)


def rounds_of(mass: float, *, pure: bool, number: bool, shallow: bool) -> int:
    """Return how many rounds are worth their noise."""
    least = 1 if number or not pure else 2
    most = (48 if number else 32) if pure else (100 if number else 40)
    if mass == math.inf:
        return most
    ideal = math.sqrt(mass) / (12 if pure else 5)
    if not shallow and (pure or not number):
        ideal *= 0.7
    return min(max(round(ideal), least), most)
