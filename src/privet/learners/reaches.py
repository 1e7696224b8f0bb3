"""How far the residuals of a number reach.

Noise is proportional to the distance at which residuals are cut. Where rows x epsilon pays for it,
that distance is a bought scale: about a private median first, then again as the model grows. Where
it does not, it is a public part of the target's range, and where nothing can be learnt, the median
is all. Proof: ``docs/proofs/reach.md``; rules: ``docs/rules.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privet.learners.budgets import know_rows, less, start_of_number
from privet.privacy.budget import Amount
from privet.tables import Cells, Scores, Table, pull_deviation

#: Part of the budget for the median of the target, for the scale about it, and for the mean.
MEDIAN_SHARE, SCALE_SHARE, MEAN_SHARE = Fraction(2, 100), Fraction(2, 100), Fraction(3, 100)
#: On few rows of a pure budget each of the three has what a scale needs, at most this part.
MOST_SHARE = Fraction(20, 100)
#: With fewer rows x epsilon the median is all that is learnt: pure, and in zCDP.
CONSTANT_BELOW = (150, 70)
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
        What is left; nothing, if this score is all there is to learn.
    rows : int
        How many rows there are: declared, or a noisy count.
    reach : float or None
        The scale of the residuals; None if none was bought.
    """

    score: float
    amount: Amount
    rows: int
    reach: float | None


def start_with_reach(
    table: Table, amount: Amount, n_rows: int | None, *, always: bool = False
) -> NumberStart:
    """Buy a first score, and the scale of the residuals where rows x epsilon pays for it.

    ``always`` leaves something for the model, even where a constant is better.
    """
    schema, budget = table.schema, table.ledger.budget
    rows, amount = know_rows(table, amount, n_rows)
    zcdp = budget.accountant != "pure"
    if rows * budget.selection_epsilon(amount) < CONSTANT_BELOW[zcdp] and not always:
        return NumberStart(_median(table, amount), Fraction(0), rows, None)
    shares = [MEDIAN_SHARE, SCALE_SHARE, MEAN_SHARE]
    enough = rows * float(budget.selection_epsilon(amount * SCALE_SHARE)) / ENOUGH_FOR_SCALES
    if enough < 1 and zcdp:
        (score,), left, _ = start_of_number(table, amount)
        return NumberStart(score, left, rows, None)
    if enough < 1:
        needed = SCALE_SHARE / max(enough, 0.01)  # more than MOST_SHARE below a tenth
        # Rounded up, but not for the error of a double.
        given = min(Fraction(math.ceil(round(_PARTS * needed, 6)), _PARTS), MOST_SHARE)
        shares = [max(share, given) for share in shares]
    for_median, for_scale, for_mean = (amount * share for share in shares)
    median = _median(table, for_median)
    root, scores = table.root(), table.start_scores((median,))
    beyond = BEYOND_MEAN * pull_deviation(schema, budget, for_mean)
    reach = buy_scale(table, root, scores, for_scale, rows=rows, beyond=beyond, least=FIRST_LEAST)
    found = root.noisy_gradients(scores, for_mean, reach=reach)
    mean = float(found.pull[0, 0]) / max(1.0, float(found.curvature[0, 0]))
    score = median + reach * min(max(mean, -1.0), 1.0)
    left = less(amount, amount * sum(shares))
    return NumberStart(min(max(score, 0.0), 1.0), left, rows, reach)


def _median(table: Table, amount: Amount) -> float:
    """Buy the median of the target, as a part of the way between its bounds."""
    assert table.schema.bounds is not None
    low, high = table.schema.bounds
    cuts = table.quantiles(table.schema.target, 2, amount)
    return (cuts[0] - low) / (high - low) if cuts else 0.5


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
