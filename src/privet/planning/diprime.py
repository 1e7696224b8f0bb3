"""DiPriMe's Theorems 1 to 3 and Corollary 3.1 (Consul & Williamson), printed and corrected.

The theorems compare a split in two at the exact median, with exact leaves, with a split that
leaves at least ``smallest`` rows on either side, with private leaves. ``printed_...`` is what the
paper says, the other name what is true of private leaves. Proofs: ``docs/proofs/planning.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from privet.planning._checks import PlanError, finite, not_negative, positive, whole
from privet.planning.selection import label_loss


def printed_regression_loss(
    rows: int, smallest: int, epsilon: float, bound: float, *, appendix: bool = False
) -> float:
    """Return Theorem 1 as printed: the rise of the sum of squared errors, targets in [-B, B].

    ``4 B^2 rows - 8 B^2 t + 16 B^2 / (epsilon^2 t)`` with t for ``smallest``. The appendix states
    it without the last t, and proves it with t. It holds for the paper's leaf means, ``mean +
    Lap(2 B / (N epsilon))``, which are not epsilon-DP: N is private, and is in the scale. Its first
    part is twice too large at least. See :func:`regression_loss`.

    Examples
    --------
    >>> printed_regression_loss(100, 50, 1.0, 1.0), regression_loss(100, 50, 1.0, 2.0)[0]
    (0.32, 0.0)
    """
    rows, smallest = _sizes(rows, smallest)
    epsilon, bound = positive(epsilon, "epsilon"), positive(bound, "the bound")
    noise = 16 / epsilon / epsilon / (1 if appendix else smallest)
    return bound**2 * (4 * rows - 8 * smallest + noise)


def moved_split_loss(rows: int, smallest: int, width: float) -> float:
    """Return how much more squared error a split has that is off the median; attained.

    ``width^2 c d / (c + d)``, where d rows moved to a side that had c. Part of Theorem 1, where it
    is ``8 B^2 (rows/2 - t) = 2 width^2 (rows/2 - t)``.
    """
    rows, smallest = _sizes(rows, smallest)
    side = rows // 2
    moved = max(rows - side - smallest, 0)
    return positive(width, "the width") ** 2 * side * moved / (side + moved)


def leaf_mean_loss(rows: float, epsilon: float, width: float) -> float:
    """Return a bound on the squared error that a private leaf mean adds, over all its rows.

    The mean is ``lo + width A / (A + C)``, cut to the public bounds, from two complementary sums
    ``A = sum(y - lo)`` and ``C = sum(hi - y)`` with Laplace noise of scale ``width / epsilon``
    each: together they cost epsilon, since every record adds ``width`` to ``A + C``. The bound is
    for every leaf with at least this many rows, and tends to ``2 width^2 / (epsilon^2 rows)``, what
    the paper's invalid noise has.

    Examples
    --------
    >>> round(leaf_mean_loss(1000, 1.0, 1.0) * 1000, 3)
    2.091
    """
    rows = max(positive(rows, "rows") * positive(epsilon, "epsilon"), _worst_leaf())
    return positive(width, "the width") ** 2 * _leaf_error(rows) / epsilon


def _leaf_error(x: float) -> float:
    """Return ``x E[error^2]``'s bound for rows x epsilon = x, over all means: by a fine grid."""
    kept = np.linspace(0.01, 0.9999, 4000)
    lost = (1 - kept) * x
    # Products by logarithms: of a large and a tiny number, neither must come first.
    rare = np.exp(math.log(x / 4) + np.log(2 + lost) - lost)
    return float(min(x, (2 / (kept**2 * x) + rare).min()))


@lru_cache
def _worst_leaf() -> float:
    """Return where the bound is largest; it falls beyond."""
    grid = np.linspace(1, 6, 5001)
    return float(grid[np.argmax([_leaf_error(x) for x in grid])])


def regression_loss(rows: int, smallest: int, epsilon: float, width: float) -> tuple[float, float]:
    """Return Theorem 1 for private leaves: the loss by the split, and that by the leaf means.

    Parameters
    ----------
    rows : int
        In the node that is split.
    smallest : int
        The smaller side has at least this many.
    epsilon : float
        What the leaves cost.
    width : float
        ``hi - lo`` of the public target bounds (the paper's 2 B).

    Returns
    -------
    split, leaves : float
        The expected rise of the sum of squared errors is at most their sum.
    """
    rows, smallest = _sizes(rows, smallest)
    leaves = leaf_mean_loss(smallest, epsilon, width)
    leaves += leaf_mean_loss(rows / 2, epsilon, width)
    return moved_split_loss(rows, smallest, width), leaves


def printed_classification_loss(smallest: int, epsilon: float, purity: float) -> float:
    """Return Theorem 2 as printed: the fall of the accuracy, two classes.

    ``(x/4 + 1/2) exp(-x)`` with ``x = epsilon t (2 purity - 1)``. False: it counts the labels that
    noise swaps, and forgets that the split is another one. With infinite epsilon it promises that
    every split is as good as the median's. See :func:`classification_loss`.
    """
    x = whole(smallest, "smallest") * positive(epsilon, "epsilon") * (2 * _purity(purity) - 1)
    return (x / 4 + 0.5) * math.exp(-x) if x < math.inf else 0.0


def classification_loss(
    rows: int, smallest: int, epsilon: float, *, purity: float = 0.5, by: str = "counts"
) -> tuple[float, float]:
    """Return Theorem 2, completed: the loss of accuracy by the split, and that by the labels.

    Parameters
    ----------
    rows, smallest : int
        As for :func:`regression_loss`.
    epsilon : float
        What the leaves cost.
    purity : float, default=0.5
        Least share of the larger class in a leaf; none needs to be known.
    by : {"counts", "flip"}
        How labels are chosen; see :func:`~privet.planning.label_loss`.

    Returns
    -------
    split, labels : float
        The expected fall of the accuracy is at most their sum.

    Examples
    --------
    >>> split, labels = classification_loss(100, 30, 1.0)
    >>> split, round(labels, 4)
    (0.2, 0.0059)
    """
    rows, smallest = _sizes(rows, smallest)
    lead = 2 * _purity(purity) - 1
    labels = label_loss(2, epsilon, by=by, gap=smallest * lead)
    labels += label_loss(2, epsilon, by=by, gap=rows / 2 * lead)
    return max(rows - rows // 2 - smallest, 0) / rows, labels / rows


def printed_median_balance(epsilon: float, width: float, spread: float) -> float:
    """Return Theorem 3 as printed: how probably a private median leaves t rows on either side.

    ``d / (R exp(-epsilon) + d (1 - exp(-epsilon)))``: the ``N - 2 t`` rows in the middle cover a
    range of d of the feature's R. It holds, even for t + 1 rows, and is attained. (The proof's
    ``q_{i+1} = q_i + 2`` fails in the middle of an odd number of rows, where d is 0.)
    """
    return 1 - median_imbalance(epsilon, width, spread)


def median_imbalance(
    epsilon: float, width: float, spread: float, *, ranks: int = 0, inner: float | None = None
) -> float:
    """Return a bound on the probability that the smaller side gets t rows or fewer.

    Theorem 3 compares ranks next to each other, so that many rows never help. Rows further in
    weigh more: with ``ranks`` > 0 the bound uses the range of the ``N - 2 (t + ranks)`` rows in the
    middle.

    Parameters
    ----------
    epsilon : float
        What the median costs (the exponential mechanism on ``-abs(left - right)``, spread 2).
    width : float
        The feature's public range, R.
    spread : float
        What the ``N - 2 t`` rows in the middle cover, d.
    ranks : int, default=0
        How much further in ``inner`` is measured.
    inner : float, optional
        What the ``N - 2 (t + ranks)`` rows in the middle cover; by default ``spread``.

    Examples
    --------
    >>> round(median_imbalance(0.1, 1.0, 0.8), 3)
    0.184
    >>> round(median_imbalance(0.1, 1.0, 0.8, ranks=50, inner=0.4), 3)
    0.003
    """
    epsilon, ranks = positive(epsilon, "epsilon"), whole(ranks, "ranks", 0)
    outside = random_imbalance(width, spread)
    inside = (spread if inner is None else not_negative(inner, "inner")) / width
    if not 0 <= inside <= spread / width:
        raise PlanError("the inner rows cover a part of what the others cover")
    weight = outside * math.exp(-epsilon * (1 + ranks))
    return weight / (weight + inside) if inside else 1.0


def random_imbalance(width: float, spread: float) -> float:
    """Return the probability that a uniform split leaves t rows or fewer on a side.

    ``(R - d) / R``, and never less than a private median's (Corollary 3.1, which holds).
    """
    width = positive(width, "the width")
    if not not_negative(spread, "the spread") <= width:
        raise PlanError("the spread must lie between 0 and the width")
    return (width - spread) / width


def _sizes(rows: int, smallest: int) -> tuple[int, int]:
    rows, smallest = whole(rows, "rows", 2), whole(smallest, "smallest")
    if 2 * smallest > rows:
        raise PlanError("the smaller side has at most half of the rows")
    return rows, smallest


def _purity(purity: float) -> float:
    purity = finite(purity, "the purity")
    if not 0.5 <= purity <= 1:
        raise PlanError("the purity of two classes lies between 0.5 and 1")
    return purity
