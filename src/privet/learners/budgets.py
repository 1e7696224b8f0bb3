"""What all learners buy first, and how they divide an amount.

Most learners choose their depth, cuts and shares by the number of rows. Where that number is not
declared as public, a small part of the budget buys a noisy count. Models that add scores up buy
their first score instead, which says how many rows there are as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from privet.errors import BudgetError
from privet.privacy.budget import Amount, Budget
from privet.tables import Table

#: Part of the budget for counting the rows, if their number is not declared.
COUNT_SHARE = Fraction(1, 50)
#: Part of the budget for private quantiles, where rows x epsilon pays for them.
QUANTILE_SHARE = Fraction(1, 10)
#: Quantiles pay if rows x epsilon per numeric feature is at least this.
ENOUGH_FOR_QUANTILES = 1000
#: Part of the budget for the first score: of classes, and of a number.
CLASSES_SHARE, NUMBER_SHARE = Fraction(3, 100), Fraction(5, 100)

#: The first scores, the amount that is left, and the noisy number of rows.
Start = tuple[tuple[float, ...], Amount, int]


def less(amount: Amount, part: Amount) -> Amount:
    """Return ``amount - part``; an infinite amount stays infinite."""
    return amount if amount == math.inf else amount - part


def check_least(amounts: Iterable[Amount], least: Amount) -> None:
    """Raise, before anything is spent, if an amount is below the least that a table takes."""
    if min(amounts) < least:
        raise BudgetError(
            "the budget is too small to share its noise among parties: a question of this tree "
            f"would have less than {float(least):g}; give a larger epsilon or a smaller max_depth"
        )


def count_rows(table: Table, amount: Amount) -> int:
    """Buy a noisy number of rows, at least one."""
    return max(1, int(table.root().noisy_counts(amount)[0]))


def know_rows(table: Table, amount: Amount, n_rows: int | None) -> tuple[int, Amount]:
    """Return the number of rows, declared or bought, and what is left of an amount."""
    if n_rows is not None:
        return n_rows, amount
    counting = amount * COUNT_SHARE
    return count_rows(table, counting), less(amount, counting)


def count_in_epsilon(table: Table, amount: Amount) -> tuple[int, Amount]:
    """Buy a noisy number of rows for pure epsilon, with a budget that can be spent in either way.

    Returns it, and what is left of an amount of zCDP.
    """
    budget = table.ledger.budget
    assert budget.epsilon is not None
    # No more than the same part of rho, which is less where epsilon is very large.
    in_rho = Fraction(math.sqrt(2 * COUNT_SHARE * budget.limit))
    counting = table.session(Budget(min(budget.epsilon * COUNT_SHARE, in_rho)))
    rows = count_rows(counting, counting.ledger.budget.limit)
    return rows, less(amount, counting.ledger.total.rho)


def rest_in_epsilon(table: Table) -> Table:
    """Return a table with all that is left of an (epsilon, delta) budget in pure epsilon."""
    assert table.ledger.budget.epsilon is not None
    return table.session(Budget(less(table.ledger.budget.epsilon, table.ledger.total.epsilon)))


def set_aside_quantiles(amount: Amount, mass: float, numeric: int) -> tuple[Amount | None, Amount]:
    """Return what private quantiles of ``numeric`` features may cost, and what is left.

    None if rows x epsilon, the mass, does not pay for them.
    """
    if not numeric or mass / numeric < ENOUGH_FOR_QUANTILES:
        return None, amount
    quantiles = amount * QUANTILE_SHARE
    return quantiles, less(amount, quantiles)


def start_of_classes(table: Table, amount: Amount, *, share: Fraction = CLASSES_SHARE) -> Start:
    """Buy class counts; return the log odds of two classes, or the log shares of more."""
    starting = amount * share
    noisy = np.asarray(table.root().noisy_class_counts(starting)[0], dtype=np.float64)
    scale = max(1.0, table.ledger.budget.count_scale(starting))
    counts = scale * np.logaddexp(0.0, noisy / scale)  # positive
    logs = np.log(counts / counts.sum())
    centred = logs - logs.mean()
    scores = (float(logs[1] - logs[0]),) if len(logs) == 2 else tuple(centred.tolist())
    return scores, less(amount, starting), max(1, round(float(counts.sum())))


def start_of_number(table: Table, amount: Amount) -> Start:
    """Buy the mean of the target, as a part of the way between its bounds."""
    starting = amount * NUMBER_SHARE
    middle = table.start_scores((0.5,))
    found = table.root().noisy_gradients(middle, starting, reach=0.5)
    count = max(1.0, float(found.curvature[0, 0]))
    mean = 0.5 + 0.5 * float(found.pull[0, 0]) / count
    return (min(max(mean, 0.0), 1.0),), less(amount, starting), round(count)
