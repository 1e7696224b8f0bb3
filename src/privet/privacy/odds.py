"""What an epsilon means for one record, in odds, and when it means nothing any more.

Whoever gives odds of 1 to 1 that a record is in the table can, after seeing everything that was
released at epsilon, give at most exp(epsilon) to 1: that is the definition, by Bayes' rule. With a
delta there is an exception of that probability.
"""

from __future__ import annotations

import math
import warnings

from privet.errors import HighEpsilonWarning
from privet.privacy.budget import Budget

#: Above this, what may be learnt of a record is close to certainty: 22,026 to 1.
HIGHEST_USEFUL_EPSILON = 10.0
#: Larger odds are not written out.
_MOST = 10**9


def odds_words(epsilon: float) -> str:
    """Return how far odds of 1 to 1 may move.

    Examples
    --------
    >>> odds_words(1.0), odds_words(12.0), odds_words(30.0)
    ('2.7 to 1', '162,755 to 1', 'more than 1,000,000,000 to 1')
    """
    if epsilon > math.log(_MOST):
        return f"more than {_MOST:,} to 1"
    odds = math.exp(epsilon)
    return f"{odds:.1f} to 1" if odds < 100 else f"{odds:,.0f} to 1"


def caution(epsilon: float) -> str | None:
    """Return what to say of an epsilon that protects nobody; None of others, and of infinity.

    An infinite epsilon is a leak, and said to be one elsewhere.
    """
    if not HIGHEST_USEFUL_EPSILON < epsilon < math.inf:
        return None
    return (
        f"epsilon {epsilon:.6g} protects nobody: odds of 1 to 1 that somebody's record is in the "
        f"table may become {odds_words(epsilon)}. Take 1 if you can "
        f"({odds_words(1.0)}), and no more than {HIGHEST_USEFUL_EPSILON:g}"
    )


def warn_of(budget: Budget, stacklevel: int = 2) -> None:
    """Warn of a budget whose epsilon protects nobody."""
    said = None if budget.epsilon is None else caution(float(budget.epsilon))
    if said is not None:
        warnings.warn(said, HighEpsilonWarning, stacklevel=stacklevel + 1)
