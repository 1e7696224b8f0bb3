"""What a greedy split and a leaf's label lose when k parties hold the rows, protocol by protocol.

Losses of splits are in rows x Gini impurity, of which one record changes 2 at most; losses of
labels in rows. Each says whether it is a bound or an estimate. See ``docs/planning.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privet.planning._checks import PlanError, positive, whole
from privet.planning.selection import (
    flip_loss,
    flip_tail,
    label_loss,
    normal_loss,
    shared_loss,
)
from privet.planning.topdown import noisy_counts_rows, split_rows

#: The spread of rows x Gini impurity, ``n - sum n_c^2 / n``; a little more than that of its chords.
GINI_SPREAD = 2.0
#: How far a sound split is from the best gain per row, in ``4 q (1 - q)``, and how often it is not.
ZETA, FAILURE = 0.05, 0.05
SINGLE, SECURE, LOCAL, NOISY = "single machine", "secure sum", "LocalRNM", "NoisyCounts"


@dataclass(frozen=True)
class Protocol:
    """One way to ask k parties, at given budgets.

    Attributes
    ----------
    name : str
    count_deviation : float or None
        Standard deviation of the noise in a class count on one side of a split; None if no counts
        leave. (Continuous noise: an upper bound for the integer noise of the same scale.)
    label_deviation : float or None
        The same for a class count of a leaf.
    split_loss : float
        What one split loses in rows x Gini, expected, in the worst case.
    split_kind : str
        ``"bound"``, or ``"estimate"``: of LocalRNM and NoisyCounts with normal, independent noise
        in the gains; of LocalRNM for rows divided among the parties at random; of a secure sum as
        if its noise had no steps, and Gini no chords.
    label_loss : float
        What one leaf's label loses in rows, expected, in the worst case.
    label_kind : str
        ``"bound"``; of a secure sum ``"estimate"``: its noise has steps, and with fewer honest
        parties than parties only the worst table of a kind is looked at.
    rows_needed : float or None
        Rows with which a node's split is, with probability 0.95, within 0.05 of the best gain per
        row in ``4 q (1 - q)``: a bound for two classes (Lemmas 4 and 6). None: no guarantee exists.
    """

    name: str
    count_deviation: float | None
    label_deviation: float | None
    split_loss: float
    split_kind: str
    label_loss: float
    label_kind: str
    rows_needed: float | None


def protocols(
    split_epsilon: float,
    label_epsilon: float,
    *,
    candidates: int,
    features: int,
    bins: float,
    classes: int = 2,
    parties: int = 1,
    honest: int | None = None,
    zeta: float = ZETA,
    failure: float = FAILURE,
) -> tuple[Protocol, ...]:
    """Return what every protocol loses per split and per label.

    Parameters
    ----------
    split_epsilon, label_epsilon : float
        What one level of splits costs, and what the labels cost.
    candidates : int
        Splits to choose from, of all features.
    features : int
        How many features: a record is in one cell of each one's histogram.
    bins : float
        Cells of a feature's histogram, on average.
    classes : int, default=2
    parties : int, default=1
    honest : int, optional
        For the secure sum: how many parties at least must stay and not collude; by default all.
        Each adds one ``honest``-th of the noise (Polya shares).
    zeta, failure : float
        For ``rows_needed``.

    Returns
    -------
    tuple of Protocol
        The single machine (all rows in one place), and with several parties secure sum, LocalRNM
        and NoisyCounts.

    Examples
    --------
    >>> found = protocols(0.5, 0.5, candidates=100, features=10, bins=10, parties=4)
    >>> [one.name for one in found]
    ['single machine', 'secure sum', 'LocalRNM', 'NoisyCounts']
    """
    e = positive(split_epsilon, "the epsilon of splits")
    f = positive(label_epsilon, "the epsilon of labels")
    candidates, features = whole(candidates, "candidates"), whole(features, "features")
    classes, parties = whole(classes, "classes", 2), whole(parties, "parties")
    bins = positive(bins, "bins")
    single = Protocol(
        SINGLE,
        None,
        None,
        flip_loss(candidates, e, GINI_SPREAD),
        "bound",
        label_loss(classes, f),
        "bound",
        split_rows(zeta, e, failure, candidates),
    )
    if parties == 1:
        if honest is not None:
            raise PlanError("honest is for several parties: with one there is nobody to trust")
        return (single,)
    honest = parties if honest is None else whole(honest, "honest")
    if honest > parties:
        raise PlanError("there cannot be more honest parties than parties")
    most = max(1, math.ceil(bins) - 1)
    secure = Protocol(
        SECURE,
        None,
        None,
        shared_loss(candidates, e, GINI_SPREAD, parties / honest),
        "estimate",
        shared_loss(classes, f, 1.0, parties / honest),
        "estimate",
        None,
    )
    slope = gain_slope(classes)
    # a side of a split adds up half of its feature's cells, on average
    count = math.sqrt(2 * parties * max(bins / 2, 1)) * features / e
    noisy = Protocol(
        NOISY,
        count,
        math.sqrt(2 * parties) / f,
        slope * count * normal_loss(candidates),
        "estimate",
        label_loss(classes, f, by="counts", parties=parties),
        "bound",
        noisy_counts_rows(zeta, e, failure, candidates, parties, tables=features, bins=most),
    )
    proposals = min(parties, candidates)
    count = math.sqrt(2 * parties) * 2 * proposals / e
    missed = GINI_SPREAD * 2 * parties / e * _all_miss(candidates, parties)
    local = Protocol(
        LOCAL,
        count,
        noisy.label_deviation,
        missed + slope * count * normal_loss(proposals),
        "estimate",
        noisy.label_loss,
        "bound",
        None,
    )
    return single, secure, local, noisy


def gain_slope(classes: int) -> float:
    """Return the largest length of the gradient of a count gain in ``n - sum n_c^2 / n``.

    Counts with noise of deviation s make a gain with noise of at most that times s, to first order.
    The square root of 8 up to five classes, ``K^1.5 / (K - 1)`` from there on.
    """
    return max(math.sqrt(8), math.sqrt(classes) * classes / (classes - 1))


@lru_cache
def _all_miss(candidates: int, parties: int) -> float:
    """Return the largest ``x P(all parties' own choices lose at least x)``."""
    x = np.linspace(0, math.log(candidates) + 20, 20_001)[1:]
    return float((x * flip_tail(candidates, x) ** parties).max())
