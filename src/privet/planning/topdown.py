"""DP-TopDown's Lemmas 4 and 6, Theorem 3, Corollaries 5, 7 and 16, with explicit constants.

How many rows suffice (Wang, Dick & Balcan). ``printed_...`` follows the paper's proofs, with the
constants that they contain; the other names are for mechanisms that are private, with the
steps of the proofs repaired. alpha is the paper's epsilon-of-privacy, ``error`` its epsilon;
logarithms without a base in the paper's entropies are taken as base 2. Theorem 3 and its
corollaries are for the entropy. Lemma 12 is :func:`~privet.planning.laplace_error`. Proofs:
``docs/proofs/planning.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from scipy.optimize import brentq

from privet.planning._checks import PlanError, not_negative, positive, probability, whole
from privet.planning.selection import flip_error
from privet.planning.tails import laplace_error, sum_error, sum_tail

#: What PrivateSplit needs: rows as a function of (zeta, alpha, delta).
SplitRows = Callable[[float, float, float], float]


def printed_split_rows(zeta: float, alpha: float, failure: float, candidates: int) -> float:
    """Return Lemma 4 (Theorem 14) as printed: rows for report-noisy-max on one machine.

    ``2 b ln b`` with ``b = 40 ln(H / delta) / (alpha zeta)``: half of zeta for the largest of H
    Laplace draws of scale ``20 lg(m) / (alpha m)``. The proof mixes logarithms: its Lemma 13 is for
    ln, the scale has lg, and for b below about 840 the rows are too few for it
    (:func:`printed_split_error`). The released value makes the procedure not alpha-DP. For b below
    1 the lemma asks for no rows.
    """
    b = 40 * math.log(whole(candidates, "candidates") / probability(failure, "failure"))
    b /= positive(alpha, "alpha") * positive(zeta, "zeta")
    return max(0.0, 2 * b * math.log(b))


def printed_split_error(rows: float, alpha: float, failure: float, candidates: int) -> float:
    """Return the zeta that the paper's noise reaches with some rows in a leaf, more than one."""
    rows = positive(rows, "rows")
    if rows <= 1:
        raise PlanError("rows must be more than 1: the paper's noise grows with their logarithm")
    scale = 20 * math.log2(rows) / (positive(alpha, "alpha") * rows)
    return 2 * laplace_error(scale, failure, candidates)


def entropy_spread(rows: float) -> float:
    """Return how much one record changes ``rows * entropy`` in bits, at most, for this many rows.

    ``n lg n - (n - 1) lg(n - 1)``; the paper's Lemma 11 has ``6 lg m + 2``, about six times that.
    """
    rows = max(2.0, positive(rows, "rows"))
    return math.log2(rows) - (rows - 1) * math.log1p(-1 / rows) / math.log(2)


def split_rows(
    zeta: float, alpha: float, failure: float, candidates: int, spread: float = 4.0
) -> float:
    """Return Lemma 4 for a private PrivateSplit: rows that a leaf needs on one machine.

    Half of alpha chooses the split by permute-and-flip on count-scaled losses (monotone); the other
    half pays for its count gain with fresh Laplace noise; each may fail with half of ``failure``.

    Parameters
    ----------
    zeta : float
        How far from the best gain, per row; and how far the released gain from the true one.
    alpha, failure : float
    candidates : int
        The splitting functions.
    spread : float, default=4.0
        How much one record changes rows x impurity: 4 for ``4 q (1 - q)``,
        :func:`entropy_spread` of a public bound on the rows for the entropy.

    Examples
    --------
    >>> round(split_rows(0.1, 1.0, 0.05, 159)), round(printed_split_rows(0.1, 1.0, 0.05, 159))
    (643, 52123)
    """
    zeta, alpha = positive(zeta, "zeta"), positive(alpha, "alpha")
    failure, spread = probability(failure, "failure"), positive(spread, "the spread")
    chosen = flip_error(candidates, alpha / 2, failure / 2, spread)
    released = laplace_error(2 * spread / alpha, failure / 2)
    return max(chosen, released) / zeta


def printed_noisy_counts_rows(
    zeta: float, alpha: float, failure: float, candidates: int, parties: int
) -> float:
    """Return Lemma 6 (Theorem 15) as printed: rows for NoisyCounts among k parties.

    ``2 b ln b`` with ``b = 60 ln(3 k H / delta) k H / (alpha zeta)``. The text adds
    ``Lap(H / (3 alpha))``, which costs 9 alpha; the proof has ``Lap(3 H / alpha)``, which is right.
    The union bound forgets that a splitting function has four counts, and bounds a sum of k draws
    by k times the largest. For b below 1 the lemma asks for no rows.
    """
    k_h = whole(parties, "parties") * whole(candidates, "candidates")
    b = 60 * math.log(3 * k_h / probability(failure, "failure")) * k_h
    b /= positive(alpha, "alpha") * positive(zeta, "zeta")
    return max(0.0, 2 * b * math.log(b))


def gini_gain_error(count_error: float) -> float:
    """Return how far a count gain in ``4 q (1 - q)`` is off if its four counts are off.

    ``8 E``, attained: the gradient's absolute sum is ``8 abs(q_0 - q_1)`` at most.
    """
    return 8 * not_negative(count_error, "the error of the counts")


def entropy_gain_error(rows: float, count_error: float) -> float:
    """Return how far a count gain in entropy is off if its four counts are off by ``count_error``.

    ``4 E (1 / ln 2 + lg(5 + m / E))``.
    """
    rows, error = positive(rows, "rows"), not_negative(count_error, "the error of the counts")
    if error == 0:
        return 0.0
    # a difference, since rows / error may be too large for a float
    return 4 * error * (1 / math.log(2) + math.log2(5 * error + rows) - math.log2(error))


def noisy_counts_rows(
    zeta: float,
    alpha: float,
    failure: float,
    candidates: int,
    parties: int,
    *,
    tables: int | None = None,
    bins: int = 1,
    criterion: str = "gini",
) -> float:
    """Return Lemma 6 with the noise that NoisyCounts needs: rows that a leaf needs.

    Parameters
    ----------
    zeta, alpha, failure, candidates
        As for :func:`split_rows`.
    parties : int
        Who add noise of their own; 1 for a secure sum, where all add one draw together.
    tables : int, optional
        How many class tables a record is in: one per candidate, unless candidates share the
        histogram of their feature. The noise of a cell has scale ``tables / alpha``.
    bins : int, default=1
        How many cells of a table one side of a split adds up, at most.
    criterion : {"gini", "entropy"}
        ``4 q (1 - q)``, or entropy in bits. Two classes.

    Examples
    --------
    >>> printed = printed_noisy_counts_rows(0.1, 1.0, 0.05, 150, 4)
    >>> as_paper = noisy_counts_rows(0.1, 1.0, 0.05, 150, 4)
    >>> shared = noisy_counts_rows(0.1, 1.0, 0.05, 150, 4, tables=15, bins=10)
    >>> printed > 100 * as_paper > 300 * shared
    True
    """
    zeta, alpha = positive(zeta, "zeta"), positive(alpha, "alpha")
    candidates = whole(candidates, "candidates")
    scale = whole(candidates if tables is None else tables, "tables") / alpha
    draws = whole(parties, "parties") * whole(bins, "bins")
    counts = sum_error(scale, draws, failure, 4 * candidates)
    if criterion == "gini":
        return 2 * gini_gain_error(counts) / zeta
    if criterion != "entropy":
        raise PlanError("the criterion is 'gini' or 'entropy'")
    return _smallest_rows(lambda rows: 2 * entropy_gain_error(rows, counts) / zeta, counts)


def _smallest_rows(needed: Callable[[float], float], start: float) -> float:
    """Return the rows beyond which ``needed(rows)``, which grows slower than rows, suffices."""
    high = start
    while needed(high) > high:
        high *= 2
    return float(brentq(lambda rows: needed(rows) - rows, high / 2, high)) if high > start else high


def growth_tolerance(error: float, advantage: float, nodes: float) -> float:
    """Return Theorem 3's zeta: ``gamma^2 error / (48 M lg(2 / error))``.

    What every split and weight may be off so that the tree still makes half of the progress that
    weak learning of advantage gamma guarantees (Kearns & Mansour), while its error exceeds
    ``error``.
    """
    error, gamma = probability(error, "error"), _advantage(advantage)
    return gamma**2 * error / (48 * positive(nodes, "nodes") * math.log2(2 / error))


def log2_nodes(error: float, advantage: float, *, private: bool = True) -> float:
    """Return the base-2 logarithm of the splits after which the error is at most ``error``.

    The paper's ``(1/error)^O(log(1/error) / gamma^2)`` with its constant: ``4 (lg(2/error)^2 - 1) /
    gamma^2``, half of that without noise. Solves ``G' = -gamma^2 G / (8 t lg(2 / G))``, above which
    the recurrence of the proof never lies.

    Examples
    --------
    >>> round(log2_nodes(0.25, 0.5)), round(log2_nodes(0.25, 0.5, private=False))
    (128, 64)
    """
    level = math.log2(2 / probability(error, "error"))
    gamma = _advantage(advantage)
    return (4 if private else 2) * (level**2 - 1) / gamma / gamma


def printed_topdown_rows(
    error: float,
    alpha: float,
    failure: float,
    advantage: float,
    nodes: int,
    needs: SplitRows,
    *,
    least_share: float | None = None,
    parties: int = 1,
) -> float:
    """Return Theorem 3 (``parties`` = 1) or Corollary 16 as their proofs print them.

    The statements themselves have O-tilde, without constants and logarithms; these are the proofs'.
    With Lemmas 4 and 6 put in they are Corollaries 5 and 7:
    :func:`printed_single_machine_tree_rows`, :func:`printed_noisy_counts_tree_rows`.

    Parameters
    ----------
    error : float
        The training error that is wanted.
    alpha, failure : float
    advantage : float
        gamma of the weak learning assumption.
    nodes : int
        M, the number of splits.
    needs : callable
        N(zeta, alpha, delta) of PrivateSplit, for the entropy.
    least_share : float, optional
        b, the least share of the budget of a depth; by default 1 / M (uniform), and never more.
    parties : int, default=1

    Notes
    -----
    Too few for what is claimed: see :func:`topdown_rows`.
    """
    nodes, parties = whole(nodes, "nodes"), whole(parties, "parties")
    share = _least_share(least_share, nodes)
    zeta = positive(growth_tolerance(error, advantage, nodes), "zeta, by error and advantage,")
    each = positive(alpha, "alpha") * share / 2
    failure = probability(failure, "failure")
    weights = math.log(8 * parties * nodes / failure) * 2 * parties / (zeta * each)
    splits = 2 * nodes / error * _ask(needs, zeta, each / 2, failure / (2 * (2 * nodes + 1)))
    labels = math.log(4 * parties * (nodes + 1) / failure) * 8 * parties * (nodes + 1)
    return max(weights, splits, labels / (error * alpha))


def topdown_rows(
    error: float,
    alpha: float,
    failure: float,
    advantage: float,
    nodes: int,
    needs: SplitRows,
    *,
    least_share: float | None = None,
    parties: int = 1,
) -> float:
    """Return Theorem 3 and Corollary 16, repaired.

    The arguments are those of :func:`printed_topdown_rows`, and ``needs`` must be for the entropy:
    :func:`split_rows` with an :func:`entropy_spread`, or :func:`noisy_counts_rows` with its
    ``criterion``. Their defaults are for Gini, of which the theorem says nothing;
    :func:`single_machine_tree_rows` and :func:`noisy_counts_tree_rows` put in what is right.

    Half of the error is for labels, so that the tree must be grown to an error of ``error / 2``:
    zeta, the weight below which leaves are left alone and the rows of a leaf follow from that half
    (the paper uses all of ``error``, and between both its guaranteed progress is negative). A path
    of M splits ends at depth M + 1, which the shares must cover: by default each has
    ``1 / (M + 1)``. Labels are chosen by permute-and-flip, or from the sums of k parties' noisy
    counts.

    Notes
    -----
    With this many rows, M splits are made as well as the proof needs. That these M splits reach the
    error is guaranteed for ``nodes >= 2**log2_nodes(error / 2, advantage)`` only; with fewer it is
    the rows' part of a guarantee that does not hold.

    Examples
    --------
    >>> needs = lambda zeta, alpha, delta: split_rows(zeta, alpha, delta, 100, entropy_spread(1e11))
    >>> f"{topdown_rows(0.5, 1.0, 0.1, 0.5, 8, needs):.1e}"
    '3.4e+10'
    """
    nodes, parties = whole(nodes, "nodes"), whole(parties, "parties")
    share = _least_share(least_share, nodes + 1)
    alpha, failure = positive(alpha, "alpha"), probability(failure, "failure")
    grown = probability(error, "error") / 2
    zeta = positive(growth_tolerance(grown, advantage, nodes), "zeta, by error and advantage,")
    each = alpha * share / 2
    weights = sum_error(2 / each, parties, failure / 4, 2 * nodes) / zeta
    splits = 2 * nodes / grown * _ask(needs, zeta, each / 2, failure / (2 * (2 * nodes + 1)))
    return max(weights, splits, label_rows(grown, alpha / 2, failure / 4, nodes + 1, parties))


def printed_single_machine_tree_rows(
    error: float, alpha: float, failure: float, advantage: float, nodes: int, candidates: int
) -> float:
    """Return Corollary 5 as its proofs print it: rows for TopDown with RNM on one machine.

    The corollary states ``O~(M^3 / (error^2 gamma^2 alpha))``, without constants and logarithms;
    these are those of the proofs of Theorem 3 and Lemma 4, with their faults. See
    :func:`single_machine_tree_rows`.
    """
    needs = partial(printed_split_rows, candidates=candidates)
    return printed_topdown_rows(error, alpha, failure, advantage, nodes, needs)


def single_machine_tree_rows(
    error: float, alpha: float, failure: float, advantage: float, nodes: int, candidates: int
) -> float:
    """Return Corollary 5, repaired: rows for a private TopDown by entropy on one machine.

    :func:`topdown_rows` with :func:`split_rows`. One record changes rows x entropy by
    :func:`entropy_spread` of a public bound on the rows: here the rows themselves, so that they are
    a fixed point, and any larger table with its own bound suffices, too.

    Parameters
    ----------
    error, alpha, failure, advantage, nodes
        As for :func:`topdown_rows`, with what its notes say of ``nodes``.
    candidates : int
        The splitting functions.

    Examples
    --------
    >>> given = (0.5, 1.0, 0.1, 0.5, 8, 100)
    >>> f"{single_machine_tree_rows(*given):.2g} {printed_single_machine_tree_rows(*given):.2g}"
    '3.2e+10 9.6e+10'
    """

    def needed(rows: float) -> float:
        needs = partial(split_rows, candidates=candidates, spread=entropy_spread(rows))
        return topdown_rows(error, alpha, failure, advantage, nodes, needs)

    return _smallest_rows(needed, needed(2.0))


def printed_noisy_counts_tree_rows(
    error: float,
    alpha: float,
    failure: float,
    advantage: float,
    nodes: int,
    candidates: int,
    parties: int,
) -> float:
    """Return Corollary 7 as its proofs print it: rows for TopDown with NoisyCounts, k parties.

    The corollary states ``O~(M^3 k H / (error^2 gamma^2 alpha))``, without constants and
    logarithms; these are those of the proofs of Corollary 16 and Lemma 6, with their faults. See
    :func:`noisy_counts_tree_rows`.
    """
    needs = partial(printed_noisy_counts_rows, candidates=candidates, parties=parties)
    return printed_topdown_rows(error, alpha, failure, advantage, nodes, needs, parties=parties)


def noisy_counts_tree_rows(
    error: float,
    alpha: float,
    failure: float,
    advantage: float,
    nodes: int,
    candidates: int,
    parties: int,
    *,
    tables: int | None = None,
    bins: int = 1,
) -> float:
    """Return Corollary 7, repaired: rows for TopDown by entropy with NoisyCounts among k parties.

    :func:`topdown_rows` for k parties with :func:`noisy_counts_rows`.

    Parameters
    ----------
    error, alpha, failure, advantage, nodes
        As for :func:`topdown_rows`, with what its notes say of ``nodes``.
    candidates, parties, tables, bins
        As for :func:`noisy_counts_rows`.

    Examples
    --------
    >>> given = (0.5, 1.0, 0.1, 0.5, 8, 100, 4)
    >>> f"{noisy_counts_tree_rows(*given):.2g} {printed_noisy_counts_tree_rows(*given):.2g}"
    '1.3e+13 9.7e+13'
    """
    needs = partial(
        noisy_counts_rows,
        candidates=candidates,
        parties=parties,
        tables=tables,
        bins=bins,
        criterion="entropy",
    )
    return topdown_rows(error, alpha, failure, advantage, nodes, needs, parties=parties)


def label_rows(
    error: float, epsilon: float, failure: float, leaves: int, parties: int = 1
) -> float:
    """Return the rows with which all labels together lose at most ``error``, but for ``failure``.

    Two classes, ``epsilon`` for labels. The paper's Theorem 3 needs ``8 (M + 1) ln(4 (M + 1) /
    delta) / (error alpha)`` for this, half of what its own noise (scale ``2 / (alpha / 2)``, two
    counts per leaf) asks for; permute-and-flip needs about half of that number.
    """
    error, leaves = probability(error, "error"), whole(leaves, "leaves")
    each = probability(failure, "failure") / leaves
    epsilon = positive(epsilon, "epsilon")
    if whole(parties, "parties") == 1:
        lost = flip_error(2, epsilon, each)
    elif each >= 0.5:  # more often noise swaps no two labels
        lost = 0.0
    else:
        high = 2 * parties * math.log(2 * parties / each) + 1
        lost = brentq(lambda x: sum_tail(2 * parties, x) - each, 0.0, high) / epsilon
    return float(lost) * leaves / error


def _ask(needs: SplitRows, zeta: float, alpha: float, failure: float) -> float:
    """Return what a PrivateSplit needs, if that is a number of rows."""
    if not callable(needs):
        raise PlanError("needs must be a function of (zeta, alpha, delta)")
    return not_negative(needs(zeta, alpha, failure), "what needs returns")


def _least_share(share: float | None, depths: int) -> float:
    """Return the least share of some depths, by default of equal ones."""
    if share is None:
        return 1 / depths
    share = positive(share, "least_share")
    if share * depths > 1 + 1e-9:
        raise PlanError(
            f"least_share must be at most 1 / {depths}: the shares of {depths} depths sum up to 1"
        )
    return share


def _advantage(advantage: float) -> float:
    gamma = positive(advantage, "the advantage")
    if gamma > 0.5:
        raise PlanError("the advantage over guessing is at most 0.5")
    return gamma
