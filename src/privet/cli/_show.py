"""Cards and ledgers in words."""

from __future__ import annotations

import time
from collections.abc import Sequence

from privet.cli._terminal import PlainTable, say, say_quoted
from privet.evaluation import Estimate, Evaluation
from privet.model import ADDED, EITHER, PrivacyCard
from privet.privacy import (
    ADJACENCY,
    Budget,
    StudyBooks,
    Withdrawal,
    mechanism_words,
    place_words,
    question_words,
)
from privet.schema import Schema
from privet.visible import quoted

#: More entries of a card are not shown.
_MOST_ENTRIES = 1_000
_ACCOUNTANTS = ("pure", "zCDP", EITHER, ADDED)


def say_entries(card: PrivacyCard) -> None:
    """Print the ledger's entries of a fit as a table."""
    unit = card.unit
    table = PlainTable(
        f"Ledger: what was asked, and what each {'person' if card.of_persons else 'record'} paid",
        ("question", "of", "cells", "mechanism", unit),
        right=("cells", unit),
        caption="Cells of one level are disjoint: a record pays in one of them. Total = dearest "
        "path.",
    )
    for entry in card.entries[:_MOST_ENTRIES]:
        table.add(
            question_words(entry.question),
            place_words(entry.place),
            str(entry.cells),
            mechanism_words(entry.mechanism),
            f"{entry.epsilon if unit == 'epsilon' else entry.rho:.4g}",
        )
    table.show()
    if len(card.entries) > _MOST_ENTRIES:
        more = len(card.entries) - _MOST_ENTRIES
        say(f"{more} more entries are not shown; --format json has them all")


def say_evaluation(evaluation: Evaluation, card: PrivacyCard, *, apart: bool = True) -> None:
    """Print a test score with its card's unit: every measure with its interval, and by group.

    ``apart`` is whether the tested records are known not to be those that were learnt from.
    """
    whom = "persons" if card.of_persons else "records"
    table = PlainTable(
        f"Test score: other {whom} than the model was learnt from"
        if apart
        else f"Score on these {whom}: too good if the model was learnt from them",
        ("measure", "estimate", "95 % interval"),
        right=("estimate",),
        light=True,
        caption="Intervals cover sampling and noise.",
    )
    for name, one in evaluation.measures():
        table.add(name, *_interval(one))
    if evaluation.by is not None:
        for group, part in evaluation.of_groups().items():
            name, one = next(part.measures())
            table.add(f"{name} where {evaluation.by} is {group}", *_interval(one))
    for one_bin in evaluation.calibration:
        if one_bin.observed.tells:
            name = (
                f"share of {evaluation.class_names[1]} where {one_bin.predicted:.3f} was predicted"
            )
            if f"{one_bin.predicted:.3f}" == "0.500":  # there may be a bin on either side of it
                name += f", label {evaluation.class_names[one_bin.predicted > 0.5]}"
            table.add(name, *_interval(one_bin.observed))
    table.show()
    say(f"{whom.capitalize()} in the test: about {evaluation.n_records:.0f} (noisy)")


def _interval(one: Estimate) -> tuple[str, str]:
    if not one.enough:
        return "", "too few records"
    return f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}"


def say_card(card: PrivacyCard, schema: Schema | None, of: str = "fit") -> None:
    """Print what a privacy officer reads: the cost, the notes and, at the end, the verdict.

    With a model's schema also how many records it is made of, as far as that was released.
    """
    delta = f", delta {card.delta:g}" if card.delta else ""
    adjacency = card.adjacency if card.adjacency == ADJACENCY else quoted(card.adjacency)
    accountant = card.accountant if card.accountant in _ACCOUNTANTS else "unknown"
    say(
        f"Cost: spent epsilon {card.epsilon:.6g}{delta} (requested {card.requested_epsilon:g}), "
        f"{adjacency}, {accountant} accounting"
    )
    whom = "person" if card.of_persons else "record"
    say(f"Cost for replacing one {whom} instead: epsilon {card.replace_one_epsilon:.6g}{delta}")
    if schema is not None:
        for line in card.count_words(schema.classes):
            say(f"Records: {line}")
        for line in card.doubts(schema.classes):
            say(f"{line}.", lead="Doubt:", style="yellow")
    for note in card.notes:
        say_quoted(note, before="note:")
    if card.private and not card.warnings:
        say(f"Verdict: private; the guarantee holds for the {of} as described", style="green")
        return
    for reason in card.warnings:
        say_quoted(reason, before="reason:")
    say("Verdict: NOT PRIVATE", style="red")


def say_withdrawals(
    draws: Sequence[Withdrawal], budget: Budget, studies: Sequence[StudyBooks] = ()
) -> None:
    """Print the draws of a ledger file as a table."""
    by_draw = {study.draw: study for study in studies}
    unit = "epsilon" if budget.accountant == "pure" else "rho"
    counted = f"counted {unit}"
    table = PlainTable(
        "Ledger: what fits drew",
        ("draw", "when (UTC)", "purpose", "asked", counted, "state"),
        right=("draw", counted),
    )
    for draw in draws:
        study = by_draw.get(draw.id)
        state = "settled" if draw.spent is not None else "reserved (never settled: counts in full)"
        if study is not None and draw.spent is None:
            state = (
                f"study under way: {study.answers} answers, {unit} {float(study.spent):.6g} so far "
                "(counts in full until it is closed)"
            )
        table.add(
            str(draw.id),
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(draw.reserved_at)),
            draw.purpose,
            draw.asked,
            f"{float(draw.counted):.6g}",
            state,
        )
    table.show()
