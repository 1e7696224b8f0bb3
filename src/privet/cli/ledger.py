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
    kinds: Annotated[
        Path | None,
        typer.Option(help="With --create: a kinds file, if there is no schema yet."),
    ] = None,
    threshold_delta: Annotated[
        float | None,
        typer.Option(
            help="With --create: what lists of categories that are found in the data "
            "(privet schema discover) may spend; it adds to --delta."
        ),
    ] = None,
) -> None:
    """Show what was spent on a table; with --create, open its books with a total budget."""
    from privet.cli._show import say_withdrawals
    from privet.cli._terminal import say
    from privet.errors import BudgetError
    from privet.kinds import Kinds
    from privet.outputs import check_output
    from privet.privacy import Budget, LedgerStore
    from privet.privacy.ledger import readable
    from privet.schema import Schema
    from privet.visible import quoted

    if create:
        if epsilon is None or (schema is None) == (kinds is None):
            raise BudgetError(
                "--create needs --epsilon (the total) and --schema (whose table), or --kinds if "
                "there is no schema yet"
            )
        budget = Budget(epsilon, delta=delta, threshold_delta=threshold_delta or 0)
        if kinds is not None:
            check_output(file, {"the kinds": kinds})
            known = Kinds.from_toml(kinds)
            store = LedgerStore.create(
                file, budget, columns=[*known.listed], table=known.table, kinds=known.listed
            )
        else:
            assert schema is not None
            check_output(file, {"the schema": schema})
            public = Schema.from_toml(schema)
            public.check_corrected()
            store = LedgerStore.create(
                file, budget, columns=public.columns, table=public.table, unit=public.unit
            )
        say(f"Opened {file} with {store.budget}.")
        return
    if any(given is not None for given in (epsilon, delta, schema, kinds, threshold_delta)):
        raise BudgetError(
            "--epsilon, --delta, --threshold-delta, --schema and --kinds go with --create"
        )
    # All is read and checked, at one moment, before anything is shown.
    books = LedgerStore(file).books
    say(f"Ledger of {'an unnamed table' if books.table is None else quoted(books.table)}")
    say_withdrawals(books.withdrawals, books.budget, books.studies)
    spent, left = (readable(amount, books.budget) for amount in (books.spent, books.left))
    if books.budget.threshold_delta:
        spent += f", delta {float(books.spent_delta):.3g}"
        left += f", delta {float(books.left_delta):.3g}"
    say(f"Total: {books.budget}; spent: {spent}; left: {left}")
