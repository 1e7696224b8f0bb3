"""What a report says, worked out from the model, its ledger file and what was attached.

Pages, registry entries and model cards all take their facts from here. A verdict is computed: no
text of any file can set it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from privet.errors import ReportError
from privet.model import ADDED, EITHER, Model
from privet.privacy import (
    Books,
    Budget,
    Entry,
    Guarantee,
    MechanismFacts,
    MechanismKind,
    QuestionKind,
    Withdrawal,
    at_least,
    caution,
    mechanism_words,
    place_words,
    question_words,
)
from privet.report.attachments import Attachment

#: The amounts of a path add up to the total if they differ by less than this part of it: totals of
#: cards are doubles.
_SAME = 1e-9
#: Entries of exact amounts are rows of their own up to this many; then alike ones share a row.
_MOST_ROWS = 16


class State(StrEnum):
    """What can be concluded."""

    PRIVATE = "private"
    DOUBTFUL = "doubtful"
    NOT_PRIVATE = "not private"


@dataclass(frozen=True)
class Row:
    """What one kind of question cost on the dearest path."""

    what: str
    where: str
    how: str
    times: int
    amount: Fraction | float


@dataclass(frozen=True)
class Spending:
    """Where the total went.

    Attributes
    ----------
    unit : str
        ``"epsilon"`` or ``"rho"``.
    rows : tuple of Row
        Of the dearest path; of all entries if the file does not say which that is.
    total : float
        What the card says.
    known : bool
        Whether the rows are a path, and add up to the total.
    """

    unit: str
    rows: tuple[Row, ...]
    total: float
    known: bool

    @property
    def shown(self) -> tuple[list[str], str]:
        """The amounts of the rows and the total in digits that add up, too."""
        amounts = [row.amount for row in self.rows]
        if not self.known or any(math.isinf(amount) for amount in amounts):
            return [f"{float(amount):.4g}" for amount in amounts], f"{self.total:.6g}"
        return rounded([Fraction(amount) for amount in amounts])


def rounded(amounts: Sequence[Fraction]) -> tuple[list[str], str]:
    """Return amounts and their sum in digits such that the digits add up.

    As many digits as the smallest amount needs for three of its own (at most 12); each amount is
    off by less than one of the last digit.

    Examples
    --------
    >>> rounded([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)])
    (['0.334', '0.333', '0.333'], '1.000')
    """
    least = min((amount for amount in amounts if amount), default=Fraction(1))
    digits = min(12, max(2, 2 - math.floor(math.log10(float(least) or 1e-12))))
    scale = 10**digits
    total = round(sum(amounts, Fraction(0)) * scale)
    floors = [math.floor(amount * scale) for amount in amounts]
    by_rest = sorted(range(len(amounts)), key=lambda i: floors[i] - amounts[i] * scale)
    for i in by_rest[: max(0, total - sum(floors))]:
        floors[i] += 1
    return [f"{value / scale:.{digits}f}" for value in floors], f"{total / scale:.{digits}f}"


@dataclass(frozen=True)
class Facts:
    """A model with all that belongs to its report.

    Attributes
    ----------
    model : Model
    books : Books or None
        What the table's ledger file says.
    attached : tuple of Attachment
        Results of audits.
    """

    model: Model
    books: Books | None = None
    attached: tuple[Attachment, ...] = field(default=())

    def __post_init__(self) -> None:
        books, schema = self.books, self.model.schema
        if books is None:
            return
        if not set(schema.columns) <= set(books.columns):
            raise ReportError(
                "the ledger file is of another table: it lacks columns that the model was learnt "
                "from"
            )
        if None not in (books.table, schema.table) and books.table != schema.table:
            raise ReportError("the ledger file is of another table: it has another name")

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, by what the fit was allowed to spend (docs/proofs/odds.md)."""
        card = self.model.privacy
        if not card.private or card.warnings or card.seeded:
            return Guarantee()
        epsilon = max(card.requested_epsilon, card.epsilon)
        delta = max(card.requested_delta, card.delta)
        if card.accountant == "zCDP" and math.isfinite(epsilon) and 0 < delta < 1:
            limit = Budget(epsilon, delta=at_least(delta)).limit
            return Guarantee(epsilon, delta, float(limit))
        if card.accountant in ("pure", EITHER, ADDED):
            return Guarantee(epsilon, delta)
        return Guarantee()

    @property
    def bound_words(self) -> str:
        """Say which bound the attacker's chances are computed by."""
        given = self.guarantee
        if math.isfinite(given.rho):
            return (
                f"the lower of two bounds: that of rho = {given.rho:.4g} in zCDP, by all orders of "
                "Renyi divergence, and that of epsilon and delta"
            )
        if given.delta:
            return "the trade-off of epsilon and delta, which cannot be lower by these two alone"
        return "the trade-off of pure epsilon, which cannot be lower by epsilon alone"

    @property
    def whom(self) -> str:
        """Who is protected: a record, or a person."""
        return "person" if self.model.privacy.of_persons else "record"

    @property
    def reasons(self) -> list[str]:
        """Say why nothing is promised, if so."""
        card = self.model.privacy
        found = list(card.warnings)
        if card.seeded and not found:
            found.append("its noise comes from a seed, so that whoever has the seed can undo it")
        if not card.private and not found:
            found.append("its card says so, and does not say why")
        if not found and not self.guarantee.holds:
            found.append("its card has no finite epsilon")
        found += [
            f"an attached result contradicts the guarantee: {one.title}"
            for one in self.attached
            if not one.holds
        ]
        return found

    @property
    def doubts(self) -> list[str]:
        """Say what does not undo the guarantee, and yet should stop a release."""
        found = self.model.privacy.doubts(self.model.schema.classes)
        high = caution(self.guarantee.epsilon)  # what could have been spent, which is promised
        if high is not None and caution(self.model.privacy.epsilon) is None:
            found.append(high)
        path = self.spending
        if self.model.record is not None and not path.known and math.isfinite(path.total):
            found.append("the entries of the dearest path do not add up to the total")
        if self.books is not None and self.draws[1] == "none":
            found.append("no draw of the ledger file has the entries of this model")
        return found

    @property
    def state(self) -> State:
        """The verdict."""
        if self.reasons:
            return State.NOT_PRIVATE
        return State.DOUBTFUL if self.doubts else State.PRIVATE

    @property
    def owners_only(self) -> bool:
        """Whether something exact about the rows was attached."""
        return any(one.owners_only for one in self.attached)

    @property
    def spending(self) -> Spending:
        """Where the total went, along the dearest path."""
        card, record = self.model.privacy, self.model.record
        unit = card.unit
        total = card.epsilon if unit == "epsilon" else card.rho
        whole = tuple(card.entries)
        paths = [whole] if record is None else [tuple(whole[i] for i in record.path)]
        for path in paths:
            amounts = [_amount(entry, unit) for entry in path]
            if _same(sum(amounts, Fraction(0)), total):
                return Spending(unit, _rows(path, unit), total, True)
        return Spending(unit, _rows(whole, unit), total, False)

    @property
    def draws(self) -> tuple[tuple[Withdrawal, ...], str]:
        """Return which draws of the ledger file may be this model's, and how sure that is.

        ``"this"``: the model names it, and its entries are the model's. ``"alike"``: those with the
        same entries. ``"none"``: there is none.
        """
        if self.books is None:
            return (), "none"
        record, card = self.model.record, self.model.privacy
        bought = (QuestionKind.SCHEMA, QuestionKind.BOUNDS)  # once, by a draw of its own
        own = tuple(entry for entry in card.entries if entry.question.kind not in bought)
        alike = tuple(draw for draw in self.books.withdrawals if draw.entries == own)
        if record is not None and record.draw is not None:
            named = tuple(draw for draw in alike if draw.id == record.draw)
            return (named, "this") if named else ((), "none")
        return (alike, "alike") if alike else ((), "none")

    @property
    def mechanisms(self) -> list[tuple[str, str]]:
        """The mechanisms with the note that proves each of them."""
        kinds = {entry.mechanism.kind: entry.mechanism for entry in self.model.privacy.entries}
        return [(mechanism_words(facts), proof_of(facts)) for facts in kinds.values()]

    @property
    def noise_of_counts(self) -> tuple[float, float] | None:
        """The least and the largest standard deviation of the noise in released counts."""
        kinds = (QuestionKind.ROW_COUNT, QuestionKind.CLASS_COUNTS)
        entries = self.model.privacy.entries
        found = [
            deviation
            for entry in entries
            if entry.question.kind in kinds and entry.place.portion in (None, "training")
            if (deviation := _deviation(entry)) is not None
        ]
        parts = self.model.schema.unit_parts  # released numbers are of persons, noise is of parts
        return (min(found) / parts, max(found) / parts) if found else None


def _deviation(entry: Entry) -> float | None:
    """Return the standard deviation of the noise of an entry's answers, if its kind says it."""
    facts, cost = entry.mechanism, entry.cost
    if facts.kind is MechanismKind.DISCRETE_LAPLACE and math.isfinite(cost.epsilon):
        if not cost.epsilon:
            return None
        # Each answer has the scale of all of them: what a record changes in sum, by epsilon.
        return math.sqrt(2) * float((facts.sensitivity or 1) / cost.epsilon)
    if facts.kind is MechanismKind.DISCRETE_GAUSSIAN and math.isfinite(cost.rho) and cost.rho:
        return math.sqrt(float((facts.sensitivity or 1) / (2 * cost.rho)))
    return None


#: Where each mechanism is proved.
_PROOFS = {
    MechanismKind.WHOLE_TREE: "whole-trees",
    MechanismKind.QUANTILES: "questions",
    MechanismKind.JOINT_QUANTILES: "questions",
    MechanismKind.LAPLACE_SHARE: "federation",
    MechanismKind.NOISY_MAX_SHARE: "federation",
}


def proof_of(facts: MechanismFacts) -> str:
    """Return the note in which a mechanism is proved."""
    if facts.kind is MechanismKind.OTHER:
        return "not known: the file is an older one"
    return f"docs/proofs/{_PROOFS.get(facts.kind, 'mechanisms')}.md"


def _amount(entry: Entry, unit: str) -> Fraction | float:
    return entry.cost.epsilon if unit == "epsilon" else entry.cost.rho


def _same(one: Fraction | float, other: float) -> bool:
    if math.isinf(one) or math.isinf(other):
        return math.isinf(one) and math.isinf(other)
    return abs(float(one) - other) <= _SAME * max(abs(other), abs(float(one)))


def _rows(entries: Sequence[Entry], unit: str) -> tuple[Row, ...]:
    """Return rows; many entries that say the same of several places share one."""
    apart = len(entries) <= _MOST_ROWS
    found: dict[tuple[str, str, str, int], list[Entry]] = {}
    for place, entry in enumerate(entries):
        where = place_words(entry.place) if apart else ""
        what = question_words(entry.question)
        if not apart and entry.question.kind is QuestionKind.QUANTILES:
            what = "quantiles of features"
        key = what, where, mechanism_words(entry.mechanism)
        found.setdefault((*key, place if apart else 0), []).append(entry)
    return tuple(
        Row(
            what,
            where or _places(alike),
            how,
            len(alike),
            sum((_amount(entry, unit) for entry in alike), Fraction(0)),
        )
        for (what, where, how, _), alike in found.items()
    )


def _places(entries: Sequence[Entry]) -> str:
    words = list(dict.fromkeys(place_words(entry.place) for entry in entries))
    return ", ".join(words) if len(words) <= 3 else f"{words[0]} and {len(words) - 1} more places"
