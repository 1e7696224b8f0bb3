"""Private questions about how well a published model predicts the records of a table.

The tests of a model are on public grids, and its leaf values are released. So every record's score
is worked out behind the wall from its codes, for nothing, and what is asked are counts of records
by what their scores say (docs/proofs/evaluation.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble, shares_of
from privet.errors import DataError, SchemaError
from privet.evaluation.results import Counted, Evaluation
from privet.privacy.budget import Amount
from privet.schema import Categorical, Numeric, Schema
from privet.tables import Cells, Scores, Split, Table, Tally, View
from privet.tree import Cut, Test, Tree

#: Bins of scores. With 16 the area under the curve is too small by more than its interval allows.
BINS = 32
#: Bins among which those are found, where the model does not say how many records they have.
FINE = 256
#: One score predicts the second of two classes if it is not below this.
_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))
#: Invented records by which the scores of an ensemble are divided into bins.
_INVENTED = 4_096
#: How the amount is shared: a public rule.
RULES = {
    "two": "half of the budget for the confusion matrix, half for counts of scores by class",
    "ensemble": "half of the budget for the confusion matrix, a tenth to find bins of scores, and "
    "the rest for counts of scores by class",
    "more": "all of the budget for the confusion matrix",
    "number": "all of the budget for the sums of errors",
}


def asks_of(schema: Schema) -> tuple[str, ...]:
    """Return what a table must be able to answer for a test score."""
    if schema.classes is None:
        return "start_scores", "noisy_errors"
    of_two = ("noisy_score_counts",) if len(schema.classes) == 2 else ()
    return "start_scores", "noisy_confusion", *of_two


def least_part(schema: Schema, amount: Amount) -> Amount:
    """Return the least that a question of a test score may have of its amount."""
    return _part(amount, 10 if schema.classes is not None and len(schema.classes) == 2 else 1)


def score(
    table: Table,
    predictor: Tree | Ensemble,
    amount: Amount,
    *,
    share: float | None = None,
    by: str | None = None,
) -> Evaluation:
    """Ask a table how well a released model predicts its records.

    Parameters
    ----------
    table : Table
        Records that the model was not learnt from.
    predictor : Tree or Ensemble
    amount : amount
        What it may cost, in all.
    share : float, optional
        The part of the fit's table that this one is.
    by : str, optional
        A feature by whose values records are grouped.
    """
    schema = predictor.schema
    check_group(schema, by)
    view = view_of(predictor, by=by)
    root = table.root(view)
    cells, names = _groups(root, schema, by)
    scores = scores_of(table, predictor, root)
    if schema.classes is None:
        assert schema.bounds is not None
        errors = cells.noisy_errors(scores, amount)
        return Evaluation(
            share,
            RULES["number"],
            (),
            schema.bounds[1] - schema.bounds[0],
            names,
            by,
            sums=_counted(errors),
        )
    classes = tuple(map(str, schema.classes))
    if len(classes) != 2:
        confusion = cells.noisy_confusion(scores, amount)
        return Evaluation(share, RULES["more"], classes, 1.0, names, by, _counted(confusion))
    half = _part(amount, 2)
    confusion = cells.noisy_confusion(scores, half)
    bins, rule = bins_of(predictor), RULES["two"]
    if len(bins.chance) > BINS and bins.mass is None:
        finding, half = _part(half, 5), _part(half, 5) * 4
        found = root.noisy_score_counts(scores, bins.ends.tolist(), finding)
        bins, rule = bins.merged(_smooth(found.values[0].sum(axis=0))), RULES["ensemble"]
    elif bins.mass is not None:
        bins = bins.merged(bins.mass)
    counts = root.noisy_score_counts(scores, bins.ends.tolist(), half)
    counted = Counted(counts.values[0], counts.variance, counts.laplace)
    chance = tuple(np.clip(bins.chance, 0.0, 1.0).tolist())
    return Evaluation(share, rule, classes, 1.0, names, by, _counted(confusion), counted, chance)


def _part(amount: Amount, parts: int) -> Amount:
    return amount if amount == math.inf else Fraction(amount) / parts


def check_group(schema: Schema, by: str | None) -> None:
    """Raise if records cannot be grouped by a column, before anything is spent."""
    if by is not None and by not in schema.features:
        raise SchemaError("records are grouped by a feature of the schema, and this is none")


def _counted(tally: Tally) -> Counted:
    return Counted(tally.values, tally.variance, tally.laplace)


def _groups(cells: Cells, schema: Schema, by: str | None) -> tuple[Cells, tuple[str, ...]]:
    """Return one cell for every group of a column, and their names."""
    if by is None:
        return cells, ("all",)
    feature, place = schema.features[by], schema.names.index(by)
    if isinstance(feature, Categorical):
        names = [*map(str, feature.values), "(missing or unknown)"]
        return cells.partition(by), tuple(names)
    cuts = cells.view.cuts[place]
    own = feature.cuts.tolist()
    assert cuts is not None
    children = [*np.searchsorted(own, [-math.inf, *cuts], side="right").tolist(), len(own) + 1]
    ends = (feature.low, *own, feature.high)
    marks = [feature.shown(end) for end in ends]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(marks)]
    return cells.split([Split(place, tuple(map(int, children)))]), (*names, "(missing)")


def view_of(*predictors: Tree | Ensemble, by: str | None = None) -> View:
    """Return the view in whose codes all tests of some models of one schema can be asked.

    And the bins of a number by which records are grouped.
    """
    schema = predictors[0].schema
    edges: dict[str, set[float]] = {name: set() for name in schema.names}
    for tree in itertools.chain(*map(_trees, predictors)):
        for node in tree.nodes:
            if isinstance(node.test, Cut):
                edges[node.test.feature].update(node.test.edges)
    if by is not None:
        feature = schema.features[by]
        if isinstance(feature, Numeric):
            edges[by].update(feature.cuts.tolist())
    cuts = tuple(
        tuple(sorted(edges[name])) if isinstance(feature, Numeric) else None
        for name, feature in schema.features.items()
    )
    try:
        return View(schema, cuts)
    except ValueError:
        raise DataError(
            "the model cuts a feature where its public grid has no point, as models of older "
            "versions may; fit it again to evaluate it. Nothing was spent"
        ) from None


def _trees(predictor: Tree | Ensemble) -> tuple[Tree, ...]:
    return (predictor,) if isinstance(predictor, Tree) else predictor.trees


def scores_of(table: Table, predictor: Tree | Ensemble, root: Cells) -> Scores:
    """Return what a released model says of every record of a table. Free.

    The root is seen through :func:`view_of` the model, or a finer view. One score of two classes,
    above zero if the second is predicted; one for each of more classes; of a number, the prediction
    as a part of the way between its bounds.
    """
    schema = predictor.schema
    if isinstance(predictor, Tree):
        width = 1 if schema.classes is None or len(schema.classes) == 2 else len(schema.classes)
        scores = table.start_scores((0.0,) * width)
        cells, leaves = leaf_cells(root, predictor)
        scores.add(cells, _leaf_scores(predictor)[leaves])
        return scores
    scale, start = 1.0, predictor.start
    if schema.bounds is not None:
        low, high = schema.bounds
        scale, start = 1 / (high - low), tuple((s - low) / (high - low) for s in start)
    scores = table.start_scores(start)
    for tree in predictor.trees:
        cells, leaves = leaf_cells(root, tree)
        scores.add(cells, tree.values[leaves] * scale)
    return scores


def _leaf_scores(tree: Tree) -> NDArray[np.float64]:
    """Return the scores of a tree's nodes, of which those of leaves are meant."""
    schema, values = tree.schema, tree.values
    if schema.bounds is not None:
        low, high = schema.bounds
        return (values - low) / (high - low)
    return values[:, 1:] - values[:, :1] if values.shape[1] == 2 else values


def leaf_cells(cells: Cells, tree: Tree) -> tuple[Cells, NDArray[np.intp]]:
    """Return the leaves of a tree on one cell as cells, and the node that each of them is. Free."""
    view = cells.view
    level = [0]
    while any(tree.nodes[place].test is not None for place in level):
        splits, below = [], []
        for place in level:
            node = tree.nodes[place]
            if node.test is None:
                splits.append(Split(0, (0,) * view.sizes[0]))
                below.append(place)
                continue
            split, children = _split_of(node.test, view)
            splits.append(split)
            below += [node.children[child] for child in children]
        cells, level = cells.split(splits), below
    return cells, np.array(level, dtype=np.intp)


def _split_of(test: Test, view: View) -> tuple[Split, list[int]]:
    """Return a test of values as a split of codes, and which of its children each child is.

    Children that no code leads to are left out.
    """
    feature = view.schema.names.index(test.feature)
    if isinstance(test, Cut):
        cuts = view.cuts[feature]
        assert cuts is not None
        codes = np.searchsorted(test.edges, [-math.inf, *cuts], side="right").tolist()
        codes.append(test.missing)
    else:
        codes = [*test.children, test.other]
    reached = sorted(set(codes))
    number = {child: place for place, child in enumerate(reached)}
    return Split(feature, tuple(number[child] for child in codes)), reached


@dataclass(frozen=True)
class Bins:
    """Bins of a model's score: a public division, from the lowest to the highest.

    Attributes
    ----------
    ends : array
        Between them; one fewer than bins.
    chance : array
        The probability of the second class that stands for each bin.
    mass : array or None
        About how many records each has, by what was released; None if nothing was.
    """

    ends: NDArray[np.float64]
    chance: NDArray[np.float64]
    mass: NDArray[np.float64] | None

    def merged(self, mass: NDArray[np.float64]) -> Bins:
        """Return at most about :data:`BINS` bins of about equal mass.

        A predicted label changes at zero: no bin lies on both sides of it.
        """
        if len(self.chance) <= BINS:
            return self
        mass = mass + 1e-9 * (1 + mass.sum())
        passed = (np.cumsum(mass) - mass / 2) / mass.sum()
        group = np.minimum((passed * BINS).astype(np.intp), BINS - 1)
        starts = np.flatnonzero(np.diff(group)) + 1
        below = np.searchsorted(self.ends, _ABOVE_ZERO, side="right")
        starts = np.union1d(starts, [below] if 0 < below < len(mass) else [])
        starts = starts.astype(np.intp)
        parts = np.split(np.arange(len(mass)), starts)
        chance = [float(np.average(self.chance[part], weights=mass[part])) for part in parts]
        return Bins(self.ends[starts - 1], np.array(chance), None)


def bins_of(predictor: Tree | Ensemble) -> Bins:
    """Return bins of a model's scores by what was released of it, of two classes.

    A tree has one for every score of a leaf; an ensemble has about :data:`FINE`, by the scores of
    invented records that are spread over the intervals between its cuts.
    """
    if isinstance(predictor, Tree):
        leaves = list(predictor.leaves())
        scores, shares = _leaf_scores(predictor)[leaves, 0], predictor.values[leaves, 1]
        counts = [_mass(predictor, place) for place in leaves]
        found, place = np.unique(scores, return_inverse=True)
        chance = np.bincount(place, shares) / np.bincount(place)
        mass = None
        if None not in counts:
            mass = np.bincount(place, np.array(counts, dtype=np.float64)).astype(np.float64)
        # Halfway, or at the higher one where no double lies between.
        middles = (found[:-1] + found[1:]) / 2
        ends = np.where(middles > found[:-1], middles, found[1:])
        ends[(found[:-1] <= 0) & (found[1:] > 0)] = _ABOVE_ZERO
        return Bins(ends, chance, mass)
    scores = predictor.predict_score(_invented(predictor))[:, 0]
    even = np.linspace(scores.min(), scores.max(), FINE // 4 + 2)[1:-1]
    ends = np.quantile(scores, np.arange(1, FINE - len(even)) / (FINE - len(even)))
    ends = np.unique([*ends, *even, _ABOVE_ZERO])
    middles = np.concatenate([ends[:1], (ends[:-1] + ends[1:]) / 2, ends[-1:]])
    return Bins(ends, shares_of(middles[:, None])[:, 1], None)


def _smooth(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return noisy counts as masses that are not negative: their sums from the left never fall."""
    passed = np.cumsum(counts)
    above = np.maximum.accumulate(passed)
    below = np.minimum.accumulate(passed[::-1])[::-1]
    return np.maximum(np.diff((above + below) / 2, prepend=0.0), 0.0)


def _mass(tree: Tree, leaf: int) -> float | None:
    """Return about how many records a leaf has, by what was released; None if nothing was."""
    released = tree.nodes[leaf].released
    counts: Any = released.get("class_counts", released.get("count"))
    return None if counts is None else max(1.0, float(np.sum(counts)))


def _invented(ensemble: Ensemble) -> NDArray[np.float64] | list[list[Any]]:
    """Return records, the same for the same model, in all the regions that its cuts make.

    Each feature has one of its values, or a number between two neighbouring cuts, in an order of
    its own: multiples of an irrational number, which are spread evenly.
    """
    schema, steps = ensemble.schema, np.arange(1, _INVENTED + 1)
    edges = view_of(ensemble).cuts
    columns: list[list[Any]] = []
    for place, (feature, cuts) in enumerate(zip(schema.features.values(), edges, strict=True)):
        values: Sequence[Any]
        if isinstance(feature, Numeric):
            assert cuts is not None
            values = [feature.written(mark) for mark in (feature.low, *cuts)]
        else:
            values = feature.values
        spread = np.modf(steps * math.sqrt(_prime(place)))[0]
        columns.append([values[int(x)] for x in spread * len(values)])
    return [list(row) for row in zip(*columns, strict=True)]


def _prime(place: int) -> int:
    """Return one of the prime numbers, the first being 2."""
    found, number = [2], 3
    while len(found) <= place:
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
        number += 2
    return found[place]
