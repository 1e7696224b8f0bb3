"""Slopes: a few fixed functions of every feature, whose weights are learnt all at once.

Features are standardised by noisy moments; then noisy sums of residuals times functions move all
slopes a little, many times. The noise of a slope depends on how far it may move in all, not on the
number of steps, and one record adds a vector of bounded length, whatever the number of features.
On small tables this ranks better than trees, and than curves that are free to bend anywhere. The
labels of a drawn tree may be one more feature. Proof: ``docs/proofs/slopes.md``; rules:
``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.learners import whole_trees
from privet.learners._assembly import leaf_cells, score_tree, without_dead_ends
from privet.learners._views import make_view, scale_cuts
from privet.learners.budgets import CLASSES_SHARE, less
from privet.privacy.budget import Amount, Budget
from privet.schema import Numeric, Schema
from privet.tables import (
    STEP,
    Basis,
    Branch,
    Cells,
    Leaf,
    Peaks,
    Scores,
    Split,
    Subtree,
    Sums,
    Table,
    Tabled,
    View,
)
from privet.tree import Tree

#: Part of the budget for the tree whose labels are one more feature.
LABEL_SHARE = Fraction(1, 5)
#: Part of the budget for the choice of features, if not all are used.
CHOICE_SHARE = Fraction(1, 5)
#: Features that are used at least, and what each further one needs in rows x epsilon.
FEWEST_FEATURES, FEATURE_MASS = 10, 15
#: Shares of the rest, in hundredths of what it was with the class counts.
_REST = 1 - CLASSES_SHARE
MOMENT_SHARE = Fraction(20, 100) / _REST
CALIBRATION_SHARE = Fraction(6, 100) / _REST
#: Scores are calibrated from this many rows x epsilon on.
CALIBRATED_FROM = 400
#: Even cells of a number's position between its cuts at several scales.
CELLS, GRID, HALVINGS = 64, 8, 6
#: Standardised numbers are cut here; steps of half a unit stand at quartiles of a bell curve.
FARTHEST = 2.5
QUARTILES = ((-0.674, 0.75), (0.0, 0.5), (0.674, 0.25))
#: A record's functions are cut at this part of their typical length.
TYPICAL = 0.7
#: No class has a smaller first share than this, or about four deviations of the noise of shares,
#: which is this divided by rows x epsilon.
LEAST_SHARE, SHARE_NOISE = 0.02, 46
#: How far slopes may move in all, and in how many steps.
SHORTEST_PATH, LONGEST_PATH, CURVED_FROM = 4.0, 64.0, 24.0
FEWEST_STEPS, MOST_STEPS = 10, 120
#: How long a step is; and where slopes are a start of rounds, if features are at most so many.
STEP_LENGTH, LONG_STEP, LONG_STEP_FEATURES = 0.5, 2.0, 16
#: With fewer rows x epsilon for the steps, slopes move less: noise would be all they show.
WHOLE_PATH_FROM = 100
#: How sure scores are: the factor where slopes moved by one unit of curvature, the power by which
#: it falls as they move farther, what each deviation of agreement between steps adds to its
#: logarithm, and its limits.
SURE, SURE_POWER, SURE_BY_AGREEMENT = 1.3, 0.4, 0.07
LEAST_SURE, MOST_SURE = 0.7, 1.25
#: A label, as a number.
LABEL = 0.5


@dataclass(frozen=True)
class Slopes:
    """What was learnt: a first score, what every code adds, and what every leaf of the label adds.

    Attributes
    ----------
    view : View
    start : tuple of float
    curves : tuple of (int, array)
        Features, and one row per code.
    label : Subtree or None
        The tree of the label, in the view's codes.
    by_leaf : array
        One row per leaf of the label.
    deviations : tuple of array
        The standard deviations of the noise in the curves, and in what the leaves add: that of the
        steps, as if none had taken back what an earlier one had added, and that of the factor. The
        noise of the moments, which moves where functions bend, is not part of it.
    """

    view: View
    start: tuple[float, ...]
    curves: tuple[tuple[int, NDArray[np.float64]], ...] = ()
    label: Subtree | None = None
    by_leaf: NDArray[np.float64] | None = None
    deviations: tuple[NDArray[np.float64], ...] = ()

    def scores(self, table: Table, root: Cells, leaves: Cells | None = None) -> Scores:
        """Return the scores that it gives the records of a table, and of the label's leaves."""
        found = table.start_scores(self.start)
        if self.curves:
            found.add_curves(root, self.curves)
        if self.by_leaf is not None and leaves is not None:
            found.add(leaves, self.by_leaf)
        return found

    def stretched(self, start: float, factor: float, deviation: float) -> Slopes:
        """Return it with another start, and all else times a factor with noise of a deviation."""
        rows = [values for _, values in self.curves]
        rows += [] if self.by_leaf is None else [self.by_leaf]
        return Slopes(
            self.view,
            (start,),
            tuple((feature, factor * values) for feature, values in self.curves),
            self.label,
            None if self.by_leaf is None else factor * self.by_leaf,
            tuple(
                np.hypot(factor * noise, deviation * values)
                for noise, values in zip(self.deviations, rows, strict=True)
            ),
        )

    def trees(self) -> tuple[Tree, ...]:
        """Return it as trees of one feature each, and the label's tree with scores."""
        found = [
            curve_tree(self.view, feature, values, noise)
            for (feature, values), noise in zip(self.curves, self.deviations, strict=False)
        ]
        if self.label is not None and self.by_leaf is not None:
            found.append(score_tree(self.label, self.view, self.by_leaf, self.deviations[-1]))
        return tuple(found)

    def ensemble(self) -> Ensemble:
        """Return what is published."""
        return Ensemble(self.view.schema, self.start, self.trees())


def learn_labelled(
    table: Table,
    start: tuple[float, ...],
    *,
    amount: Amount,
    rows: int,
    max_depth: int | None,
    merge: bool,
) -> Ensemble:
    """Learn slopes of two classes, with the labels of a drawn tree as one more feature."""
    label_amount = amount * LABEL_SHARE
    label = _draw_label(table, start, label_amount, rows, max_depth, merge=merge)
    return fit(table, start, amount=less(amount, label_amount), rows=rows, label=label).ensemble()


def fit(
    table: Table,
    start: tuple[float, ...],
    *,
    amount: Amount,
    rows: int,
    label: tuple[Subtree, View] | None = None,
    plain: bool = False,
    long_steps: bool = False,
) -> Slopes:
    """Learn slopes for at most an amount, from the first scores on.

    ``plain`` leaves out the choice of features and the calibration; ``long_steps`` are fewer.
    """
    schema, budget = table.schema, table.ledger.budget
    mass = rows * float(budget.selection_epsilon(amount))
    view, subtree = slope_view(schema), None
    if label is not None:
        view = joined_view(view, label[1])
        subtree = seen_through(*label, view)
    root = leaves = table.root(view)
    if subtree is not None:
        leaves = leaf_cells(root, subtree, view)
    features = list(range(len(schema.names)))
    extra = int(label is not None)
    count = n_features(mass, len(features) + extra) - extra
    if count < len(features) and not plain:
        choosing = amount * CHOICE_SHARE
        amount = less(amount, choosing)
        (chosen,) = root.choose_features(count, choosing)
        features = sorted(chosen)
    calibrated = not plain and len(start) == 1 and mass >= CALIBRATED_FROM
    calibrating = amount * CALIBRATION_SHARE if calibrated else Fraction(0)
    measuring = amount * MOMENT_SHARE
    moving = less(less(amount, measuring), calibrating)

    labels = None if subtree is None else _label_values(subtree)
    plan = make_plan(budget, moving, rows, start, len(features) + extra, long_steps=long_steps)
    basis = _standardised(leaves, view, features, labels, measuring, rows, plan.curved)
    found, agreement = _descend(
        table, root, leaves, Slopes(view, plan.start, label=subtree), basis, plan, rows
    )
    if len(start) == 1 and not plain:
        found = found.stretched(found.start[0], certainty(plan, agreement), 0.0)
    if calibrated:
        found = _calibrated(table, root, leaves, found, calibrating, rows)
    return found


# Steps -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlopePlan:
    """How slopes move; made of public and released numbers."""

    start: tuple[float, ...]
    largest: float
    longest: float
    curved: float
    path: float
    steps: int
    each: Amount


def make_plan(
    budget: Budget,
    amount: Amount,
    rows: int,
    start: tuple[float, ...],
    features: int,
    *,
    long_steps: bool = False,
) -> SlopePlan:
    """Return how far slopes move, by how much a record stands out of the noise."""
    mass = rows * float(budget.selection_epsilon(amount))
    shares, start = _limited(start, mass)
    if len(shares) == 2:
        largest = float(shares.max())
    else:  # the longest residual before the first step
        largest = math.sqrt(float(((1 - shares) ** 2 + (shares**2).sum() - shares**2).max()))
    reach = math.inf
    if amount != math.inf:
        scale = largest if len(shares) == 2 else largest / math.sqrt(2)
        reach = rows * math.sqrt(2 * float(amount)) / (TYPICAL * scale * math.sqrt(features))
    path = min(max(reach / 6, SHORTEST_PATH), LONGEST_PATH)
    path *= min(mass / WHOLE_PATH_FROM, 1.0) ** 2
    curved = 1.0 if path >= CURVED_FROM else 0.5
    length = LONG_STEP if long_steps and features <= LONG_STEP_FEATURES else STEP_LENGTH
    steps = min(max(math.ceil(path / length), FEWEST_STEPS), MOST_STEPS)
    typical = features * (1 + curved**2 + 0.1875)
    return SlopePlan(
        start, largest, TYPICAL * math.sqrt(typical), curved, path, steps, amount / steps
    )


def certainty(plan: SlopePlan, agreement: float) -> float:
    """Return the factor by which scores of two classes are stretched, before calibration.

    Slopes that moved little, against the curvature of the first scores, are not yet at their end;
    those that moved far have followed noise and single records. If sums of residuals keep pointing
    where slopes already went, there is a signal.
    """
    if plan.each == math.inf:
        return 1.0
    share = 1 / (1 + math.exp(-plan.start[0]))
    moved = max(plan.path * share * (1 - share), 1e-9)
    factor = SURE * math.exp(SURE_BY_AGREEMENT * agreement - SURE_POWER * math.log(moved))
    return min(max(factor, LEAST_SURE), MOST_SURE)


def _limited(
    start: tuple[float, ...], mass: float
) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """Return the shares of classes by the first scores, none too small, and scores of these."""
    scores = np.array(start if len(start) > 1 else (0.0, *start))
    shares = np.exp(scores - scores.max())
    shares = np.maximum(shares / shares.sum(), min(LEAST_SHARE, SHARE_NOISE / mass))
    shares /= shares.sum()
    logs = np.log(shares)
    if len(start) == 1:
        return shares, (float(logs[1] - logs[0]),)
    return shares, tuple((logs - logs.mean()).tolist())


def _descend(
    table: Table,
    root: Cells,
    leaves: Cells,
    model: Slopes,
    basis: Basis,
    plan: SlopePlan,
    rows: int,
) -> tuple[Slopes, float]:
    """Move all slopes step by step along noisy sums of residuals times functions.

    Return also how much the sums agree with the slopes that earlier ones made: the sum of their
    products, in standard deviations of the sums' noise.
    """
    slopes, variance = np.zeros((basis.width, len(plan.start))), 0.0
    along, along_variance = 0.0, 0.0
    for _ in range(plan.steps):
        found = leaves.noisy_slopes(
            model.scores(table, root, leaves),
            basis,
            plan.each,
            largest=plan.largest,
            longest=plan.longest,
        )
        along += float((slopes * found.values).sum())
        along_variance += found.deviation**2 * float((slopes**2).sum())
        slopes += plan.path / plan.steps / rows * found.values
        variance += (plan.path / plan.steps / rows * found.deviation) ** 2
        model = _with_slopes(model, basis, slopes)
    deviation = math.sqrt(variance)
    noise = (deviation * np.sqrt(part.squares())[:, None] / STEP for part in basis.parts)
    columns = len(plan.start)
    model = replace(model, deviations=tuple(np.repeat(row, columns, axis=1) for row in noise))
    return model, along / math.sqrt(along_variance) if along_variance > 0 else 0.0


def _with_slopes(model: Slopes, basis: Basis, slopes: NDArray[np.float64]) -> Slopes:
    parts = basis.split(slopes)
    curves = tuple(
        (feature, functions.curve(part))
        for (feature, functions), part in zip(basis.features, parts, strict=False)
    )
    by_leaf = None if basis.of_cells is None else basis.of_cells.curve(parts[-1])
    return Slopes(model.view, model.start, curves, model.label, by_leaf)


def _calibrated(
    table: Table, root: Cells, leaves: Cells, model: Slopes, amount: Amount, rows: int
) -> Slopes:
    """Move and stretch the scores of two classes, by two noisy Newton steps."""
    scores = model.scores(table, root, leaves)
    (shift,), factor, variance = model.start, 1.0, 0.0
    for _ in range(2):
        found = leaves.noisy_calibration(scores, amount / 2, shift=shift, factor=factor)
        by_shift, by_factor, noise = _newton(found, rows)
        variance += (noise / 4) ** 2
        shift += min(max(by_shift, -1.0), 1.0)
        factor = min(max(factor + min(max(by_factor, -1.0), 6.0) / 4, 0.1), 3.0)
    return model.stretched(shift, factor, math.sqrt(variance))


def _newton(found: Sums, rows: int) -> tuple[float, float, float]:
    """Solve the two equations of a Newton step, shrunk by the noise.

    Return the shift, the factor, and the deviation of the noise in the factor, by first
    derivatives.
    """
    g0, g1, h0, h1, h2 = found.values.tolist()
    h0, h2, ridge = max(h0, 0.02 * rows), max(h2, 0.0), 3 * found.deviation
    h1 = min(max(h1, -math.sqrt(h0 * h2)), math.sqrt(h0 * h2))
    a, d = h0 + ridge, h2 + ridge
    det = a * d - h1 * h1
    if det <= 1e-9 * a * a:  # nothing to tell the factor by
        return g0 / a, 0.0, 0.0
    noise = found.deviation * math.hypot(a, h1) / det
    return (g0 * d - g1 * h1) / det, (g1 * a - g0 * h1) / det, noise


# Functions ---------------------------------------------------------------------------------------


def _standardised(
    cells: Cells,
    view: View,
    features: list[int],
    labels: NDArray[np.float64] | None,
    amount: Amount,
    rows: int,
    curved: float,
) -> Basis:
    """Buy moments, and return the functions that they make alike."""
    kinds = list(view.schema.features.values())
    positions = [positions_of(view, j) if isinstance(kinds[j], Numeric) else None for j in features]
    raw = [
        Peaks(STEP, np.zeros(view.sizes[j], dtype=np.int64)) if place is None else _powers(place)
        for j, place in zip(features, positions, strict=True)
    ]
    of_cells = None if labels is None else _powers(labels)
    moments = Basis(tuple(zip(features, raw, strict=True)), of_cells)
    found = cells.noisy_sums(moments, amount)
    parts = moments.split(found.values)
    noise = found.deviation / rows
    functions: list[Tabled | Peaks] = []
    for place, sums in zip(positions, parts, strict=False):
        if place is None:
            shares = np.maximum(sums, 0.0) + 0.02 * rows
            shares /= shares.sum()
            functions.append(Peaks.of(math.sqrt(2), math.sqrt(2) * shares))
        else:
            functions.append(_bent(place, sums / rows, noise, curved))
    of_labels = None if labels is None else _bent(labels, parts[-1] / rows, noise, curved)
    return Basis(tuple(zip(features, functions, strict=True)), of_labels)


def _powers(place: NDArray[np.float64]) -> Tabled:
    known = np.nan_to_num(place)
    return Tabled.of(np.column_stack([known, known**2]))


def _bent(
    place: NDArray[np.float64], moments: NDArray[np.float64], noise: float, curved: float
) -> Tabled:
    """Return five functions of a position: a line, a bend and three steps; zero where missing."""
    mean = min(max(float(moments[0]), -1.0), 1.0)
    variance = max(float(moments[1]) - mean**2, 0.0004)
    weight = 1 / (1 + 4 * noise**2 / 0.05)
    deviation = math.sqrt(weight * variance + (1 - weight) * 0.15)
    z = np.clip((place - weight * mean) / deviation, -FARTHEST, FARTHEST)
    steps = [0.5 * ((z > at) - part) for at, part in QUARTILES]
    bend = curved * np.clip((z**2 - 1) / math.sqrt(2), -1.0, 3.0)
    found = np.column_stack([z, bend, *steps])
    found[np.isnan(place)] = 0.0
    return Tabled.of(found)


def positions_of(view: View, feature: int) -> NDArray[np.float64]:
    """Return where each code of a number lies, from -1 to 1; missing ones are NaN."""
    kind, cuts = list(view.schema.features.values())[feature], view.cuts[feature]
    assert isinstance(kind, Numeric)
    assert cuts is not None
    ends = np.array([kind.low, *even_cells(kind), kind.high])
    where = place_of(kind, ends)
    centres = (where[:-1] + where[1:]) / 2
    inside = np.searchsorted(ends[1:-1], np.array([kind.low, *cuts]), side="right")
    return np.append(centres[inside], np.nan)


def place_of(kind: Numeric, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where numbers lie between the cuts at several scales, from -1 to 1."""
    landmarks = _landmarks(kind)
    return np.asarray(np.interp(values, landmarks, np.linspace(-1, 1, len(landmarks))))


def even_cells(kind: Numeric) -> tuple[float, ...]:
    """Return cuts that are evenly spaced between a number's cuts at several scales."""
    landmarks = _landmarks(kind)
    even = np.linspace(0, len(landmarks) - 1, CELLS + 1)[1:-1]
    wanted = np.interp(even, np.arange(len(landmarks)), landmarks)
    return tuple(cut for cut in kind.nearest(wanted.tolist()) if kind.low < cut < kind.high)


def _landmarks(kind: Numeric) -> NDArray[np.float64]:
    return np.array([kind.low, *scale_cuts(kind, GRID, HALVINGS), kind.high])


def slope_view(schema: Schema) -> View:
    """Return the view through even cells of every number's position."""
    kinds = schema.features.values()
    return View(schema, tuple(even_cells(k) if isinstance(k, Numeric) else None for k in kinds))


def n_features(mass: float, features: int) -> int:
    """Return how many features are used, by rows x epsilon."""
    if mass == math.inf:
        return features
    return min(features, max(FEWEST_FEATURES, round(mass / FEATURE_MASS)))


# The label ---------------------------------------------------------------------------------------


def _draw_label(
    table: Table,
    start: tuple[float, ...],
    amount: Amount,
    rows: int,
    max_depth: int | None,
    *,
    merge: bool,
) -> tuple[Subtree, View]:
    """Draw a tree by the rules of whole trees, without counts in its leaves.

    Where a class is rare, by the first scores, labels say where it is less rare.
    """
    budget = table.ledger.budget
    plan = whole_trees.make_plan(table.schema, rows, amount, max_depth, Fraction(0), budget)
    view = make_view(table, plan.grid, plan.quantiles)
    scores = whole_trees.scores_if_rare(table, whole_trees.shares_if_rare(start))
    (drawn,) = whole_trees.grow(table.root(view), plan.blocks, merge=merge, scores=scores)
    return without_dead_ends(drawn, tuple(frozenset(range(size)) for size in view.sizes)), view


def joined_view(view: View, other: View) -> View:
    """Return a view with the cuts of both."""
    pairs = zip(view.cuts, other.cuts, strict=True)
    cuts = (None if one is None else tuple(sorted({*one, *(two or ())})) for one, two in pairs)
    return View(view.schema, tuple(cuts))


def seen_through(subtree: Subtree, old: View, new: View) -> Subtree:
    """Return the same tree in the codes of a finer view."""
    if not isinstance(subtree, Branch):
        return subtree
    feature, children = subtree.split.feature, subtree.split.children
    coarse, fine = old.cuts[feature], new.cuts[feature]
    if coarse is not None and fine is not None:
        below = np.searchsorted(np.array(coarse), np.array(fine), side="right")
        children = (children[0], *(children[code] for code in below.tolist()), children[-1])
    below_it = tuple(seen_through(child, old, new) for child in subtree.children)
    return Branch(Split(feature, children), below_it)


def _label_values(subtree: Subtree) -> NDArray[np.float64]:
    """Return the label of every leaf, from left to right, as a number."""
    if isinstance(subtree, Branch):
        return np.concatenate([_label_values(child) for child in subtree.children])
    assert isinstance(subtree, Leaf)
    return np.array([LABEL if subtree.label else -LABEL])


# Trees -------------------------------------------------------------------------------------------


def curve_tree(
    view: View,
    feature: int,
    values: NDArray[np.float64],
    noise: NDArray[np.float64] | None = None,
) -> Tree:
    """Return a curve as a tree of one test; equal neighbours, or categories, are one leaf."""
    if view.cuts[feature] is None:
        _, first, group = np.unique(values, axis=0, return_index=True, return_inverse=True)
        children = group.reshape(-1)
    else:
        changed = np.any(values[1:-1] != values[:-2], axis=1)
        children = np.concatenate([[0], np.cumsum(changed)])
        first = np.array([0, *(np.flatnonzero(changed) + 1), len(values) - 1])
        children = np.append(children, children[-1] + 1)
    deviations = None if noise is None else noise[first]
    if len(first) == 1:
        return score_tree(Leaf(0), view, values[first], deviations)
    split = Split(feature, tuple(children.tolist()))
    leaves = Branch(split, tuple(Leaf(0) for _ in first))
    return score_tree(leaves, view, values[first], deviations)
