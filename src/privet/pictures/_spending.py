"""Where a budget went: what a record paid for on its way, in rows that add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from privet.model import PrivacyCard
from privet.privacy import Entry, QuestionKind, question_words
from privet.record import Record

#: Two sums this close to each other, as a part, are the same: a card's total is a double.
_SAME = 1e-9
#: More ways to leave entries out are not tried.
_MOST_WAYS = 200_000
#: What is asked once for every feature, without the feature.
_SHORT = {QuestionKind.QUANTILES: "quantiles", QuestionKind.OTHER: "other questions"}


@dataclass(frozen=True)
class Spending:
    """What a record of one portion of the table paid.

    Attributes
    ----------
    portion : str or None
        Which portion: records to learn from, or to test on. None if the table was not divided.
    unit : str
        ``"epsilon"`` or ``"rho"``.
    rows : tuple of (str, float)
        The questions, and what they cost on the dearest path.
    total : float
        What the rows add up to.
    exact : bool
        Whether that is the card's total. If not, rows are sums over all paths, and too high.
    """

    portion: str | None
    unit: str
    rows: tuple[tuple[str, float], ...]
    total: float
    exact: bool


def spending(card: PrivacyCard, record: Record | None = None) -> tuple[Spending, ...]:
    """Return what a record paid for, question by question, on a path that costs as much as any.

    Entries of a ledger are about cells: a record is in one cell of every level, and a leaf is at
    one level. So entries about leaves of several levels are alternatives, and the sum over all of
    them is more than anybody paid. Which belong to the dearest path, a model's record says. Older
    files have none; then it is found by the total, which the card has: entries about the whole
    table belong to it, and of the others those that add up to the rest. Records to learn from and
    to test on are others; each pays in its own portion.

    Parameters
    ----------
    card : PrivacyCard
    record : Record, optional
        The model's, if it has one.
    """
    known = () if record is None else tuple(card.entries[place] for place in record.path)
    by_portion: dict[str | None, list[Entry]] = {}
    for entry in card.entries:
        by_portion.setdefault(entry.place.portion, []).append(entry)
    common = by_portion.pop(None, []) if len(by_portion) > 1 else []  # the schema, for example
    total = card.epsilon if card.unit == "epsilon" else card.rho
    return tuple(
        _of_portion(portion, [*common, *entries], card.unit, total, known)
        for portion, entries in by_portion.items()
    )


def _of_portion(
    portion: str | None, entries: Sequence[Entry], unit: str, total: float, known: Sequence[Entry]
) -> Spending:
    if known and {entry.place.portion for entry in known} <= {None, portion}:
        chosen = list(known)
        exact = _same(math.fsum(float(_amount(entry, unit)) for entry in known), total)
    else:
        chosen, exact = _path(entries, unit, total, least=portion == "test")
    rows: dict[str, float] = {}
    for entry in chosen:
        question = entry.question
        name = _SHORT.get(question.kind) or question_words(question)
        rows[name] = rows.get(name, 0.0) + float(_amount(entry, unit))
    return Spending(portion, unit, tuple(rows.items()), sum(rows.values()), exact)


def _amount(entry: Entry, unit: str) -> Fraction | float:
    return entry.cost.epsilon if unit == "epsilon" else entry.cost.rho


def _path(
    entries: Sequence[Entry], unit: str, total: float, *, least: bool
) -> tuple[list[Entry], bool]:
    """Return entries that add up to the total, and whether they do.

    ``least`` says that all of them may cost less: a test need not cost as much as the learning.
    """
    amounts = [float(_amount(entry, unit)) for entry in entries]
    whole = math.fsum(amounts)
    if math.isinf(total) or _same(whole, total) or (least and whole < total):
        return list(entries), True
    # What may be left out: alike entries about some cells of deeper levels, in groups.
    groups: dict[tuple[QuestionKind, float], list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.place.level:
            groups.setdefault((entry.question.kind, amounts[place]), []).append(place)
    first = {kind: min(entries[p].place.level or 0 for p in ps) for (kind, _), ps in groups.items()}
    # Questions that are asked of leaves alone begin deepest: they are left out first.
    order = sorted(groups, key=lambda group: -first[group[0]])
    if math.prod(len(groups[group]) + 1 for group in order) > _MOST_WAYS:
        return list(entries), False
    ways = product(*(range(len(groups[group]) + 1) for group in order))
    for left_out in sorted(ways, key=lambda way: (sum(way), [-count for count in way])):
        less = math.fsum(count * group[1] for count, group in zip(left_out, order, strict=True))
        if _same(whole - less, total):
            gone = {
                place
                for count, group in zip(left_out, order, strict=True)
                for place in groups[group][:count]
            }
            return [entry for place, entry in enumerate(entries) if place not in gone], True
    return list(entries), False


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(abs(one), abs(other))
