"""``privet ledger``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ledger(
    file: Annotated[Path, typer.Argument(help="The ledger file of a table.")],
    create: Annotated[bool, typer.Option("--create", help="Open the books of a table.")] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="With --create: all that may ever be spent.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="With --create: account in zCDP for (epsilon, delta).")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="With --create: the table's schema file.")
    ] = None,
) -> None:
    """Show what was spent on a table; with --create, open its books with a total budget."""
    from privet.cli._show import say_withdrawals
    from privet.cli._terminal import say
    from privet.errors import BudgetError
    from privet.outputs import check_output
    from privet.privacy import Budget, LedgerStore
    from privet.privacy.ledger import readable
    from privet.schema import Schema
    from privet.visible import quoted

    if create:
        if epsilon is None or schema is None:
            raise BudgetError("--create needs --epsilon (the total) and --schema (whose table)")
        check_output(file, {"the schema": schema})
        public = Schema.from_toml(schema)
        store = LedgerStore.create(
            file,
            Budget(epsilon, delta=delta),
            columns=[*public.names, public.target],
            table=public.table,
        )
        say(f"Opened {file} with {store.budget}.")
        return
    if epsilon is not None or delta is not None or schema is not None:
        raise BudgetError("--epsilon, --delta and --schema go with --create")
    # All is read and checked, at one moment, before anything is shown.
    books = LedgerStore(file).books
    say(f"Ledger of {'an unnamed table' if books.table is None else quoted(books.table)}")
    say_withdrawals(books.withdrawals, books.budget)
    spent, left = (readable(amount, books.budget) for amount in (books.spent, books.left))
    say(f"Total: {books.budget}; spent: {spent}; left: {left}")
