"""The noisy additive model: one curve per feature, added up.

A noisy histogram of every feature decides which of its bins are full enough to stand alone. Then
all features are swept in turn, several times: noisy sums of the residuals in the bins of a feature
move its curve a little. The noise of a curve depends on how far it may move in all, not on the
number of sweeps. With delta and two classes, the curves start from slopes (``slopes``), which are
all there is on small tables. Proof: ``docs/proofs/additive.md``; rules: ``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.learners import slopes
from privet.learners._assembly import score_tree
from privet.learners._views import make_view
from privet.learners.budgets import less, start_of_classes
from privet.learners.reaches import LONGEST, start_with_reach
from privet.privacy.budget import Amount
from privet.schema import Numeric
from privet.tables import Branch, Gradients, Leaf, Split, Table, View, pull_deviation

#: Share of what is left after the start that buys the histograms.
HISTOGRAM_SHARE = Fraction(8, 100)
#: With delta and two classes, slopes are all there is up to this many rows x epsilon; above, they
#: have this share, and curves start from them.
BENT_FROM = 5_000
SLOPE_SHARE = Fraction(15, 100)
#: Even steps of a numeric feature's range, and halvings towards its lower bound (or zero).
GRID, HALVINGS = 32, 40
#: How often every feature is visited.
SWEEPS = {"zCDP": 20, "pure": 5}
#: Visits in all: wide tables are swept less often (at least three times), to save time.
MOST_VISITS = 2_000
#: How far a curve may move in all sweeps together, in full Newton steps.
PATH = 3.0
#: Residuals of a number are cut at this many of the first scale of residuals, or half of the range
#: where none is bought; times the second number after each sweep, down to the third in all.
REACHES, NARROWER, NARROWEST = 2, 0.85, 0.4
#: The noisy mean curvature of a record's score is clipped to this range.
LEAST_CURVATURE, MOST_CURVATURE = 0.03, 0.2
#: A bin stands alone if it has this many times the records that a curve's noise is worth.
FULL = 4.0


def learn(table: Table, *, amount: Amount) -> Ensemble:
    """Learn for at most an amount of the table's budget."""
    schema, budget = table.schema, table.ledger.budget
    number, whole, widest = schema.classes is None, amount, 0.0
    start: tuple[float, ...]
    if number:
        begun = start_with_reach(table, amount, None)
        start, amount, rows = (begun.score,), begun.amount, begun.rows
        widest = LONGEST if begun.reach is None else min(LONGEST, REACHES * begun.reach)
        if not amount:
            return _assemble(make_view(table, GRID, None, halvings=HALVINGS), start, [])
    else:
        start, amount, rows = start_of_classes(table, amount)
    first: slopes.Slopes | None = None
    if budget.accountant == "zCDP" and len(schema.classes or ()) == 2:
        alone = rows * float(budget.selection_epsilon(whole)) < BENT_FROM
        bought = amount if alone else amount * SLOPE_SHARE
        first = slopes.fit(table, start, amount=bought, rows=rows, plain=not alone)
        if alone:
            return first.ensemble()
        start, amount = first.start, less(amount, bought)
    features = len(schema.names)
    n_sweeps = min(SWEEPS[budget.accountant], max(MOST_VISITS // features, 3))
    counting = amount * HISTOGRAM_SHARE
    each = less(amount, counting) / (n_sweeps * features)
    noise = PATH / math.sqrt(n_sweeps) * pull_deviation(schema, budget, each)
    view = make_view(table, GRID, None, halvings=HALVINGS)
    root = table.root(view)
    curves = []
    for j, name in enumerate(schema.names):
        by_code = root.split([Split(j, tuple(range(view.sizes[j])))])
        noisy = np.asarray(by_code.noisy_counts(counting / features), dtype=np.float64)
        numeric = isinstance(schema.features[name], Numeric)
        group, counts = join_bins(noisy, FULL * noise, numeric=numeric)
        nothing = np.zeros((len(counts), len(start)))
        curves.append(_Curve(Split(j, group), counts, nothing, nothing.copy()))
    if first is None:
        scores = table.start_scores(start)
    else:
        scores = first.scores(table, table.root(first.view))
    for sweep in range(n_sweeps):
        reach = widest * max(NARROWER**sweep, NARROWEST)
        for curve in curves:
            cells = root.split([curve.split])
            found = cells.noisy_gradients(scores, each, reach=reach)
            weight = curve.counts * (1.0 if number else _per_record(found, curve.counts)) + noise
            step = PATH / n_sweeps * (reach or 1.0) * _quotient(found.pull, weight[:, None])
            told = curve.counts >= FULL * noise  # else too few to say anything
            step[~told] = 0.0
            curve.values += step
            added = PATH / n_sweeps * (reach or 1.0) * found.deviation
            curve.variances[told] += (
                _quotient(np.full(told.sum(), added), weight[told])[:, None] ** 2
            )
            scores.add(cells, step)
    bent = _assemble(view, start, curves)
    return bent if first is None else Ensemble(schema, bent.start, (*first.trees(), *bent.trees))


@dataclass
class _Curve:
    """What one feature adds: its bins, how many records they have (noisy), and their scores.

    With the variances of the noise that was added to these, visit by visit. Later visits take a
    part of it back, so that it is a little too much rather than too little.
    """

    split: Split
    counts: NDArray[np.float64]
    values: NDArray[np.float64]
    variances: NDArray[np.float64]


def _assemble(view: View, start: tuple[float, ...], curves: list[_Curve]) -> Ensemble:
    """Return the curves as trees of one test; scores of a number in its own units."""
    low, high = view.schema.bounds or (0.0, 1.0)
    trees, base = [], np.array(start)
    for curve in curves:
        if len(curve.values) == 1:
            base = base + curve.values[0]
            continue
        leaves = tuple(Leaf(0) for _ in curve.values)
        values, noise = curve.values * (high - low), np.sqrt(curve.variances) * (high - low)
        trees.append(score_tree(Branch(curve.split, leaves), view, values, noise))
    return Ensemble(view.schema, tuple((low + base * (high - low)).tolist()), tuple(trees))


def join_bins(
    counts: NDArray[np.float64], full: float, *, numeric: bool
) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Join bins until each has enough records; return the group of every code, and group counts.

    Neighbouring bins of a number are joined; categories that are too rare go with unknown ones.
    The last code, missing or unknown, is in the last group.
    """
    *known, extra = counts.tolist()
    group: list[int] = []
    found: list[float] = []
    for count in known:
        if numeric and found and found[-1] < full:
            found[-1] += count
        elif numeric or count >= full:
            found.append(count)
        else:
            extra += count
            group.append(-1)
            continue
        group.append(len(found) - 1)
    if numeric and len(found) > 1 and found[-1] < full:  # the rest joins its neighbour
        last = found.pop()
        found[-1] += last
    group = [min(place, len(found) - 1) if place >= 0 else len(found) for place in group]
    return (*group, len(found)), np.maximum(np.array([*found, extra]), 0.0)


def _per_record(found: Gradients, counts: NDArray[np.float64]) -> float:
    """Return the mean curvature of a record's score; over all bins, its noise is small."""
    records = max(float(counts.sum()), 1.0) * found.curvature.shape[1]
    mean = float(found.curvature.sum()) / records
    return float(np.clip(mean, LEAST_CURVATURE, MOST_CURVATURE))


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
