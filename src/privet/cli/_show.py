"""Cards and ledgers in words."""

from __future__ import annotations

import time
from collections.abc import Sequence

from privet.cli._terminal import PlainTable, say, say_quoted
from privet.ensemble import Ensemble
from privet.model import EITHER, PrivacyCard
from privet.privacy import (
    ADJACENCY,
    Budget,
    Withdrawal,
    mechanism_words,
    place_words,
    question_words,
)
from privet.tree import Tree
from privet.visible import quoted

#: More entries of a card are not shown.
_MOST_ENTRIES = 1_000


def describe(predictor: Tree | Ensemble) -> str:
    """Return a model's size in words."""
    size = f"{predictor.n_leaves} leaves, depth {predictor.depth}"
    if isinstance(predictor, Tree):
        return size
    return f"{len(predictor.trees)} trees, {size}"


def say_entries(card: PrivacyCard) -> None:
    """Print the ledger's entries of a fit as a table."""
    unit = card.unit
    table = PlainTable(
        "Ledger: what was asked, and what each record paid",
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


def say_card(card: PrivacyCard) -> None:
    """Print what a privacy officer reads: the cost, the notes and, at the end, the verdict."""
    delta = f", delta {card.delta:g}" if card.delta else ""
    adjacency = card.adjacency if card.adjacency == ADJACENCY else quoted(card.adjacency)
    accountant = card.accountant if card.accountant in ("pure", "zCDP", EITHER) else "unknown"
    say(
        f"Cost: spent epsilon {card.epsilon:.6g}{delta} (requested {card.requested_epsilon:g}), "
        f"{adjacency}, {accountant} accounting"
    )
    say(f"Cost for replacing one record instead: epsilon {card.replace_one_epsilon:.6g}{delta}")
    for note in card.notes:
        say_quoted(note, before="note:")
    if card.private and not card.warnings:
        say("Verdict: private; the guarantee holds for the fit as described", style="green")
        return
    for reason in card.warnings:
        say_quoted(reason, before="reason:")
    say("Verdict: NOT PRIVATE", style="red")


def say_withdrawals(draws: Sequence[Withdrawal], budget: Budget) -> None:
    """Print the draws of a ledger file as a table."""
    unit = "epsilon" if budget.accountant == "pure" else "rho"
    counted = f"counted {unit}"
    table = PlainTable(
        "Ledger: what fits drew",
        ("draw", "when (UTC)", "purpose", "asked", counted, "state"),
        right=("draw", counted),
    )
    for draw in draws:
        state = "settled" if draw.spent is not None else "reserved (never settled: counts in full)"
        table.add(
            str(draw.id),
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(draw.reserved_at)),
            draw.purpose,
            draw.asked,
            f"{float(draw.counted):.6g}",
            state,
        )
    table.show()
