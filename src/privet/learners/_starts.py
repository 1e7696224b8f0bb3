"""The first score of a model that adds scores up, and how many rows there are: one purchase."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from privet.learners.whole_trees import less
from privet.privacy.budget import Amount
from privet.tables import Table

#: Part of the budget for it.
CLASSES_SHARE = Fraction(3, 100)
NUMBER_SHARE = Fraction(5, 100)

#: The scores, the amount that is left, and the noisy number of rows.
Start = tuple[tuple[float, ...], Amount, int]


def start_of_classes(table: Table, amount: Amount) -> Start:
    """Buy class counts: log odds of two classes, log shares of more."""
    starting = amount * CLASSES_SHARE
    noisy = np.asarray(table.root().noisy_class_counts(starting)[0], dtype=np.float64)
    scale = max(1.0, table.ledger.budget.count_scale(starting))
    counts = scale * np.logaddexp(0.0, noisy / scale)  # positive
    logs = np.log(counts / counts.sum())
    centred = logs - logs.mean()
    scores = (float(logs[1] - logs[0]),) if len(logs) == 2 else tuple(centred.tolist())
    return scores, less(amount, starting), max(1, round(float(counts.sum())))


def start_of_number(table: Table, amount: Amount) -> Start:
    """Buy a mean, as a part of the way between the bounds."""
    starting = amount * NUMBER_SHARE
    middle = table.start_scores((0.5,))
    found = table.root().noisy_gradients(middle, starting, reach=0.5)
    count = max(1.0, float(found.curvature[0, 0]))
    mean = 0.5 + 0.5 * float(found.pull[0, 0]) / count
    return (min(max(mean, 0.0), 1.0),), less(amount, starting), round(count)
