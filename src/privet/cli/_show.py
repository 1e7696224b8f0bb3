"""Cards, ledgers and progress on a terminal."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from privet.ensemble import Ensemble
from privet.model import PrivacyCard
from privet.privacy import LedgerStore, mechanism_words, place_words, question_words
from privet.tree import Tree


def describe(predictor: Tree | Ensemble) -> str:
    """Return a model's size in words."""
    size = f"{predictor.n_leaves} leaves, depth {predictor.depth}"
    if isinstance(predictor, Tree):
        return size
    return f"{len(predictor.trees)} trees, {size}"


def card_table(card: PrivacyCard) -> Table:
    """Return the ledger's entries of a fit as a table."""
    table = Table(title="Ledger: what was asked, and what each record paid", title_justify="left")
    unit = "epsilon" if card.accountant == "pure" else "rho"
    for name in ("question", "of", "cells", "mechanism", unit):
        table.add_column(name, justify="right" if name in ("cells", unit) else "left")
    for entry in card.entries:
        table.add_row(
            escape(question_words(entry.question)),
            escape(place_words(entry.place)),
            str(entry.cells),
            escape(mechanism_words(entry.mechanism)),
            f"{entry.epsilon if unit == 'epsilon' else entry.rho:.4g}",
        )
    table.caption = (
        "Cells of one level are disjoint: a record pays in one of them. Total = dearest path."
    )
    table.caption_justify = "left"
    return table


def card_lines(card: PrivacyCard) -> list[str]:
    """Return what a privacy officer reads first."""
    delta = f", delta {card.delta:g}" if card.delta else ""
    requested = f"{card.requested_epsilon:g}"
    lines = [
        f"spent epsilon {card.epsilon:.6g}{delta} (requested {requested}), {card.adjacency}, "
        f"{card.accountant} accounting",
        f"for replacing one record instead: epsilon {card.replace_one_epsilon:.6g}{delta}",
    ]
    if card.private:
        lines.append("[green]private: the guarantee holds for the fit as described[/]")
    else:
        lines.append("[red]NOT PRIVATE:[/]")
        lines += [f"[red]- {escape(reason)}[/]" for reason in card.warnings]
    return lines + [f"- {escape(note)}" for note in card.notes]


def store_table(store: LedgerStore) -> Table:
    """Return the draws of a ledger file as a table."""
    unit = "epsilon" if store.budget.accountant == "pure" else "rho"
    table = Table(title=f"Ledger of {store.table or 'an unnamed table'}", title_justify="left")
    for name in ("draw", "when (UTC)", "purpose", "asked", f"counted {unit}", "state"):
        right = name == "draw" or name.startswith("counted")
        table.add_column(name, justify="right" if right else "left")
    for draw in store.draws:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(draw.reserved_at))
        state = "settled" if draw.spent is not None else "reserved (never settled: counts in full)"
        table.add_row(
            str(draw.id),
            when,
            escape(draw.purpose),
            draw.asked,
            f"{float(draw.counted):.6g}",
            state,
        )
    return table


@contextmanager
def progress(console: Console, title: str) -> Iterator[None]:
    """Show what the library is doing while it works."""
    logger = logging.getLogger("privet")
    before = logger.level
    with console.status(title) as status:

        class Update(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                status.update(f"{title}: {record.getMessage()}")

        handler = Update()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
