"""A party's part in secret sums and choices: the only code that uses the table's doors for it.

Counts come with a share of noise that is too little by itself, or without any: so what is made of
them here leaves under a mask (:class:`~privet.federation.mpc.MaskKeys`) or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.criteria import MAX_ROWS, MinOfLinear
from privet.errors import FederationError
from privet.federation.mpc.masks import MaskKeys
from privet.federation.mpc.secret_choice import (
    LossTerms,
    SecretChoice,
    check_range,
    excluded_score,
)
from privet.privacy import NoisyMaxShare, QuestionKind, exact
from privet.privacy.budget import Amount
from privet.tables import Candidates, PrivateCells, Scores, list_candidates

Amounts = Amount | Sequence[Amount]


def share_counts(
    cells: PrivateCells,
    amount: Amounts,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> NDArray[np.uint64]:
    """Return this party's part of a sum of counts, masked: nothing without the others'.

    Parameters
    ----------
    cells : PrivateCells
        Whose records are counted.
    amount : amount, or one per cell
        What it may cost, in epsilon.
    honest : int
        How many shares make the noise; there must be at least as many members.
    keys : MaskKeys
        This party's keys.
    members : sequence of str
        Who takes part in the round.
    round_name : bytes
        A :func:`~privet.federation.mpc.fingerprint` of the whole question, of the cells and the
        amount, too, so that members who were asked something else share no masks. Used once.

    Privacy
    -------
    See :meth:`PrivateCells.mpc_noisy_counts`; the sum over all members is all that anyone sees.
    """
    return _share_sum(cells, QuestionKind.ROW_COUNT, amount, honest, keys, members, round_name)


def share_class_counts(
    cells: PrivateCells,
    amount: Amounts,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> NDArray[np.uint64]:
    """Return this party's part of a sum of class counts, masked: see :func:`share_counts`."""
    return _share_sum(cells, QuestionKind.CLASS_COUNTS, amount, honest, keys, members, round_name)


def share_confusion(
    cells: PrivateCells,
    scores: Scores,
    amount: Amount,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> NDArray[np.uint64]:
    """Return this party's part of a sum of confusion matrices, masked: see :func:`share_counts`."""
    given = (exact(amount), honest, keys, members, round_name)
    return _share_sum(cells, QuestionKind.CONFUSION, *given, scores)


def share_score_counts(
    cells: PrivateCells,
    scores: Scores,
    ends: Sequence[float],
    amount: Amount,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> NDArray[np.uint64]:
    """Return this party's part of a sum of counts of scores, masked: see :func:`share_counts`."""
    given = (exact(amount), honest, keys, members, round_name)
    return _share_sum(cells, QuestionKind.SCORE_COUNTS, *given, scores, ends)


def _share_sum(
    cells: PrivateCells,
    kind: QuestionKind,
    amount: Amounts,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
    scores: Scores | None = None,
    ends: Sequence[float] | None = None,
) -> NDArray[np.uint64]:
    _check_members(honest, members)
    classes = len(cells.schema.classes or ())
    numbers = {
        QuestionKind.ROW_COUNT: 1,
        QuestionKind.CLASS_COUNTS: classes,
        QuestionKind.CONFUSION: classes**2,
        QuestionKind.SCORE_COUNTS: classes * (len(ends or ()) + 1),
    }[kind]
    mask = keys.mask(members, round_name, len(cells) * numbers)
    noisy = cells.mpc_noisy_counts(kind, amount, honest, scores=scores, ends=ends)
    return np.asarray(noisy.ravel().astype(np.int64).view(np.uint64) + mask)


def share_labels(
    cells: PrivateCells,
    amount: Amount,
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> SecretChoice:
    """Return this party's part in choosing a frequent class for every cell.

    Parameters and privacy as for :func:`share_counts`; which class is chosen is all that anyone
    sees.
    """
    _check_members(honest, members)
    keys.common_key()  # or none could take part
    noisy = cells.mpc_noisy_counts(QuestionKind.LABEL, exact(amount), honest)
    return SecretChoice(noisy, np.zeros_like(noisy), keys, members, round_name)


def share_splits(
    cells: PrivateCells,
    candidates: Candidates,
    criterion: MinOfLinear,
    amount: Amount,
    allowed: NDArray[np.bool_],
    honest: int,
    keys: MaskKeys,
    members: Sequence[str],
    round_name: bytes,
) -> SecretChoice:
    """Return this party's part in choosing a split for every cell.

    Parameters
    ----------
    cells, honest, keys, members, round_name
        As for :func:`share_counts`.
    candidates, amount, allowed
        As for :meth:`~privet.tables.Cells.choose_splits`, with one amount.
    criterion : MinOfLinear
        What splits are judged by.

    Privacy
    -------
    See :meth:`PrivateCells.mpc_exact_counts`; which split is chosen is all that anyone sees.
    """
    _check_members(honest, members)
    features = len(cells.schema.names)
    if allowed.shape != (len(cells), features) or not allowed.any(axis=1).all():
        raise ValueError("every cell needs at least one feature that it may use")
    if not isinstance(criterion, MinOfLinear):
        raise FederationError("sums and comparisons cannot tell this loss")
    view = cells.view
    candidates.check(view, len(cells))
    forms = criterion.linear_forms(len(cells.schema.classes or ()))
    owners = [feature for feature, _ in list_candidates(candidates, view)]
    check_range(criterion.spread * MAX_ROWS, len(owners))
    spread = cells.schema.unit_parts * criterion.spread
    mechanism = NoisyMaxShare(spread, exact(amount), honest)
    keys.common_key()
    counts, noise = cells.mpc_exact_counts(candidates, criterion, amount, honest)
    sizes = [candidates.width(feature, view) for feature in owners]
    places = np.repeat(np.arange(len(owners)), sizes)
    terms = LossTerms(np.asarray(counts), forms, places, criterion.halvings, mechanism.units)
    masses = np.array([candidates.mass(feature, view) for feature in owners])
    bonus, out = mechanism.bonus(masses), excluded_score(len(owners))
    public = np.where(allowed[:, owners], bonus, out)
    return SecretChoice(noise, public, keys, members, round_name, terms)


def _check_members(honest: int, members: Sequence[str]) -> None:
    if len(set(members)) < max(honest, 2):
        raise FederationError("a round needs at least as many members as honest parties")


#: A party's part in a round, by the name of the question.
SHARES: dict[str, Callable[..., Any]] = {
    "share_counts": share_counts,
    "share_class_counts": share_class_counts,
    "share_labels": share_labels,
    "share_splits": share_splits,
    "share_confusion": share_confusion,
    "share_score_counts": share_score_counts,
}
