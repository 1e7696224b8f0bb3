"""PrivaTree (Vos et al. 2023): binary trees of few levels; labels get just enough budget.

Numbers are seen through bins, at private quantiles or public cuts; a node is split in two by
one private selection among all bins and categories (``select``), or by the best of noisy histograms
of every feature (``histogram``, the paper's way); leaves get their label by permute-and-flip, with
as much budget as a bound on the expected error needs (Corollary 1), and no more than half.

``published`` gives every feature's histogram and quantiles the budget that the paper counts once
for all of them: the features are no disjoint data, so that the ledger's total is up to m times what
was asked for (:func:`published_cost`). The paper's stop rule looks at exact counts and is left out,
as no budget pays for it. Proof: ``docs/proofs/privatree.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Gini
from privet.learners._assembly import assemble, grown, without_dead_ends, without_needless
from privet.learners._views import FEW_CODES, even_cuts, grid_of, n_numeric, scale_cuts, two_sides
from privet.learners.budgets import (
    COUNT_SHARE,
    ENOUGH_FOR_QUANTILES,
    check_least,
    know_rows,
    less,
)
from privet.privacy.budget import Amount
from privet.schema import Numeric, Schema
from privet.tables import (
    Binary,
    Cells,
    Multiway,
    Ordered,
    Split,
    Table,
    View,
)
from privet.tree import Tree

#: Bins of the paper, of private quantiles, and of equal widths.
PAPER_BINS, QUANTILE_BINS, UNIFORM_BINS = 10, 16, 64
#: Share of a node's budget that buys an order of its categories, if one is bought.
ORDER_SHARE = Fraction(1, 3)


@dataclass(frozen=True)
class PrivaTreeOptions:
    """What the user chose."""

    max_depth: int
    max_bins: int | None
    leaf_error: float
    binning: str
    split: str
    categories: str
    published: bool


@dataclass(frozen=True)
class PrivaTreePlan:
    """What is spent on what, each for one question to one feature or node.

    ``quantile`` is what the quantiles of one feature cost; ``number`` and ``category`` are what a
    node's histogram of one such feature costs; ``node`` what a selection costs.
    """

    binning: str
    bins: int
    leaf: Amount
    quantile: Amount | None
    node: Amount
    number: Amount
    category: Amount


def learn(table: Table, *, amount: Amount, n_rows: int | None, options: PrivaTreeOptions) -> Tree:
    """Learn a tree for at most an amount (``published``: for what :func:`published_cost` says)."""
    least = table.least_amount
    # Labels have half at most, so that nodes have half at least.
    node = amount / (3 * options.max_depth * len(table.schema.names))
    check_least([amount * COUNT_SHARE, node], least)
    n_rows, amount = know_rows(table, amount, n_rows)
    plan = make_plan(table.schema, n_rows, amount, options, least)
    view = _view(table, plan)
    candidates = Binary([two_sides(view, j) for j in range(len(view.sizes))])
    cells = table.root(view)
    levels: list[list[Split]] = []
    leaves = cells
    for _ in range(options.max_depth):
        splits = _choose(leaves, candidates, view, plan, options)
        levels.append(splits)
        leaves = leaves.split(splits)
    subtree = grown(levels, leaves.choose_labels(plan.leaf))
    closed = without_dead_ends(subtree, tuple(frozenset(range(size)) for size in view.sizes))
    return assemble(without_needless(closed), cells, view, None, table.ledger.budget)


def make_plan(
    schema: Schema,
    n_rows: int,
    amount: Amount,
    options: PrivaTreeOptions,
    least: Amount = Fraction(0),
) -> PrivaTreePlan:
    """Share an amount by public numbers (the paper's equations 7 to 10); labels have ``least``."""
    depth, numeric, features = options.max_depth, n_numeric(schema), len(schema.names)
    published = options.published
    leaf = leaf_amount(
        len(schema.classes or ()), n_rows, depth, amount, options.leaf_error, published=published
    )
    leaf = max(leaf, least)
    rest = less(amount, leaf)
    binning = options.binning
    if binning == "auto":
        per_number = n_rows * float(amount) / max(numeric, 1)
        binning = "quantile" if numeric and per_number >= ENOUGH_FOR_QUANTILES else "scales"
    quantile: Amount | None = None
    node = rest / depth
    if binning in ("quantile", "joint-quantile") and numeric:
        quantile = rest / (1 + depth)
        node = (rest if published else less(rest, quantile)) / depth
        quantile = quantile if published else quantile / numeric
    number = category = node / features
    if published:
        category = rest / depth
        number = category if quantile is None else quantile
    bins = options.max_bins
    if bins is None:
        usual = {"scales": grid_of(schema), "uniform": UNIFORM_BINS}
        bins = PAPER_BINS if published else usual.get(binning, QUANTILE_BINS)
    return PrivaTreePlan(binning, bins, leaf, quantile, node, number, category)


def published_cost(
    schema: Schema, n_rows: int, amount: Amount, options: PrivaTreeOptions
) -> Amount:
    """Return what the paper's noise costs: quantiles and histograms of all features add up."""
    plan = make_plan(schema, n_rows, amount, options)
    numeric = n_numeric(schema)
    categories = len(schema.names) - numeric
    cost = plan.leaf + (plan.quantile or 0) * numeric
    if options.split == "select":
        return cost + options.max_depth * plan.node
    return cost + options.max_depth * (numeric * plan.number + categories * plan.category)


def leaf_amount(
    classes: int, n_rows: int, depth: int, amount: Amount, error: float, *, published: bool
) -> Amount:
    """Return what labels cost (Corollary 1): enough for the expected error, at most half.

    The paper's permute-and-flip weighs counts by ``epsilon / 2``; counts only rise, so that
    ``epsilon`` is right, and half of the paper's amount suffices.
    """
    if amount == math.inf:
        return amount
    needed = (2 if published else 1) * 2**depth * _worst_error(classes) / (n_rows * error)
    return min(amount / 2, Fraction(needed).limit_denominator(10**12) + Fraction(1, 10**12))


@lru_cache
def _worst_error(classes: int) -> float:
    """Return the largest ``log(1/p) (1 - (1 - (1-p)^K) / (K p))`` over p: by a fine grid."""
    p = np.exp(-np.linspace(1e-6, 40, 2_000_001))
    share = -np.expm1(classes * np.log1p(-np.minimum(p, 1 - 1e-16))) / (classes * p)
    return float((-np.log(p) * (1 - share)).max()) * (1 + 1e-9)


def count_sizes(schema: Schema, options: PrivaTreeOptions) -> list[tuple[int, int]]:
    """Return how many splits of each feature a cell is offered, and its bins, if they are public.

    That of a category has one bin for what is missing or unknown.
    """
    plan = make_plan(schema, 1, Fraction(1), options)
    cuts = [
        _public_cuts(feature, plan) if isinstance(feature, Numeric) else None
        for feature in schema.features.values()
    ]
    view = View(schema, tuple(cuts))
    return [(len(two_sides(view, j)), size) for j, size in enumerate(view.sizes)]


def _view(table: Table, plan: PrivaTreePlan) -> View:
    """Return the bins of all features."""
    cuts: list[tuple[float, ...] | None] = []
    for j, feature in enumerate(table.schema.features.values()):
        if not isinstance(feature, Numeric):
            cuts.append(None)
        elif plan.binning == "leaking-quantile":
            cuts.append(feature.nearest(table.leaking_quantiles(j, plan.bins)))
        elif plan.quantile is not None and plan.binning == "joint-quantile":
            cuts.append(feature.nearest(table.joint_quantiles(j, plan.bins, plan.quantile)))
        elif plan.quantile is not None:
            cuts.append(feature.nearest(table.quantiles(j, plan.bins, plan.quantile)))
        else:
            cuts.append(_public_cuts(feature, plan))
    return View(table.schema, tuple(cuts))


def _public_cuts(feature: Numeric, plan: PrivaTreePlan) -> tuple[float, ...]:
    if plan.binning == "scales":
        return scale_cuts(feature, plan.bins)
    return even_cuts(feature, plan.bins)


def _choose(
    cells: Cells, candidates: Binary, view: View, plan: PrivaTreePlan, options: PrivaTreeOptions
) -> list[Split]:
    """Return one split for every cell of a level."""
    everything = np.ones((len(cells), len(view.sizes)), dtype=bool)
    # How many cuts there are may come from private quantiles. Permute-and-flip, which is for single
    # options, costs another rho than the exponential mechanism: every fit shall cost the same.
    flip = plan.quantile is None
    if options.split == "histogram":
        return _by_histograms(cells, candidates, view, plan)
    if options.categories != "ordered":
        return cells.choose_splits(candidates, Gini(), plan.node, everything, flip=flip)
    many = [j for j, cuts in enumerate(view.cuts) if cuts is None and view.sizes[j] > FEW_CODES]
    if not many:
        return cells.choose_splits(candidates, Gini(), plan.node, everything, flip=flip)
    ordering = plan.node * ORDER_SHARE
    orders = {j: _order(_histogram(cells, j, view, ordering / len(many))) for j in many}
    rest = less(plan.node, ordering)
    return cells.choose_splits(Ordered(candidates, orders), Gini(), rest, everything, flip=flip)


def _by_histograms(
    cells: Cells, candidates: Binary, view: View, plan: PrivaTreePlan
) -> list[Split]:
    """Return the splits of least impurity by noisy histograms of every feature."""
    best = np.full(len(cells), math.inf)
    splits: list[Split | None] = [None] * len(cells)
    for j, cuts in enumerate(view.cuts):
        amount = plan.category if cuts is None else plan.number
        counts = np.maximum(_histogram(cells, j, view, amount), 0)
        order = np.broadcast_to(np.arange(view.sizes[j]), counts.shape[:2])
        if cuts is None and counts.shape[2] == 2:
            order = _order(counts)
        offered = Ordered(candidates, {j: order})
        impurity = _impurity(np.take_along_axis(counts, order[:, :, None], axis=1))
        for cell in np.flatnonzero(impurity.min(axis=1) < best).tolist():
            best[cell] = impurity[cell].min()
            splits[cell] = offered.split(j, int(impurity[cell].argmin()), cell, view)
    assert all(split is not None for split in splits)
    return [split for split in splits if split is not None]


def _histogram(cells: Cells, feature: int, view: View, amount: Amount) -> NDArray[np.int64]:
    """Buy class counts by the codes of a feature, of shape (cells, codes, classes)."""
    parts = cells.split([Multiway().split(feature, 0, 0, view)] * len(cells))
    return np.asarray(
        parts.noisy_class_counts(amount).reshape(len(cells), view.sizes[feature], -1),
        dtype=np.int64,
    )


def _order(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the codes by their share of the first class."""
    known = np.maximum(counts, 0).astype(np.float64) + 0.5
    return np.argsort(known[:, :, 0] / known.sum(axis=2), axis=1, kind="stable")


def _impurity(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weighted Gini impurity of cutting codes in two at every place."""
    below = np.cumsum(counts, axis=1, dtype=np.float64)
    total = below[:, -1:]
    impurity = np.zeros(below[:, :-1, 0].shape)
    for side in (below[:, :-1], total - below[:, :-1]):
        size = side.sum(axis=2)
        impurity += size - (side**2).sum(axis=2) / np.maximum(size, 1.0)
    return np.asarray(impurity / np.maximum(total.sum(axis=2), 1.0))
