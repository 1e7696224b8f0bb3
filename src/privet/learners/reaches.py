"""How far the residuals of a number reach.

Noise is proportional to the distance at which residuals are cut. Where rows x epsilon pays for it,
that distance is a bought scale: about a private median first, then again as the model grows. Where
it does not, it is a public part of the target's range. Proof: ``docs/proofs/reach.md``; rules:
``docs/rules.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privet.learners.budgets import know_rows, less, start_of_number
from privet.privacy.budget import Amount
from privet.tables import Cells, Scores, Table, pull_deviation

#: Part of the budget for the median of the target, for the scale about it, and for the mean.
MEDIAN_SHARE, SCALE_SHARE, MEAN_SHARE = Fraction(2, 100), Fraction(2, 100), Fraction(3, 100)
#: Part of the rounds' or blocks' budget for later scales.
LATER_SHARE = Fraction(3, 100)
#: Scales are bought if rows x epsilon of the first one is at least this.
ENOUGH_FOR_SCALES = 15
#: Without them, a public reach is divided by this.
NARROWER = 3
#: Records x epsilon of the choice that a scale leaves beyond it, at least.
BEYOND = 20
#: Deviations of the noise of the mean to start from that the records beyond the scale outnumber.
BEYOND_MEAN = 8
#: The least share of records beyond the first scale and beyond later ones, and the most.
FIRST_LEAST, LATER_LEAST, MOST = 0.02, 0.01, 0.3
#: No residual is further than this from a score in the middle of the range.
LONGEST = 0.5
#: Shares are rounded to this part.
_PARTS = 1000


@dataclass(frozen=True)
class NumberStart:
    """Where a model of a number starts.

    Attributes
    ----------
    score : float
        The first score, as a part of the way between the target's bounds.
    amount : amount
        What is left.
    rows : int
        How many rows there are: declared, or a noisy count.
    reach : float or None
        The scale of the residuals; None if none was bought.
    """

    score: float
    amount: Amount
    rows: int
    reach: float | None


def start_with_reach(table: Table, amount: Amount, n_rows: int | None) -> NumberStart:
    """Buy a first score, and the scale of the residuals where rows x epsilon pays for it."""
    schema, budget = table.schema, table.ledger.budget
    assert schema.bounds is not None
    low, high = schema.bounds
    rows, amount = know_rows(table, amount, n_rows)
    if rows * budget.selection_epsilon(amount * SCALE_SHARE) < ENOUGH_FOR_SCALES:
        (score,), left, _ = start_of_number(table, amount)
        return NumberStart(score, left, rows, None)
    cuts = table.quantiles(schema.target, 2, amount * MEDIAN_SHARE)
    median = (cuts[0] - low) / (high - low) if cuts else 0.5
    root, scores = table.root(), table.start_scores((median,))
    meaning = amount * MEAN_SHARE
    beyond = BEYOND_MEAN * pull_deviation(schema, budget, meaning)
    reach = buy_scale(
        table, root, scores, amount * SCALE_SHARE, rows=rows, beyond=beyond, least=FIRST_LEAST
    )
    found = root.noisy_gradients(scores, meaning, reach=reach)
    mean = float(found.pull[0, 0]) / max(1.0, float(found.curvature[0, 0]))
    score = median + reach * min(max(mean, -1.0), 1.0)
    spent = amount * (MEDIAN_SHARE + SCALE_SHARE + MEAN_SHARE)
    return NumberStart(min(max(score, 0.0), 1.0), less(amount, spent), rows, reach)


def buy_scale(
    table: Table,
    root: Cells,
    scores: Scores,
    amount: Amount,
    *,
    rows: int,
    beyond: float,
    least: float = LATER_LEAST,
) -> float:
    """Buy a reach that leaves about ``beyond`` records beyond it, as far as an amount can tell.

    More than that would be lost; fewer would not be worth their noise.
    """
    epsilon = float(table.ledger.budget.selection_epsilon(amount))
    share = float(np.clip(max(beyond, BEYOND / epsilon) / rows, least, MOST))
    found = root.noisy_scale(scores, Fraction(round(_PARTS * share), _PARTS), amount)
    return min(float(found[0]), LONGEST)
