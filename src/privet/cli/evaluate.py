"""``privet evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._reading import Blocks, Decimal, Encoding, Separator, opened


def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="Sensitive rows that the model was not learnt from, with their targets: as for "
            "privet fit."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="The privacy budget of the score.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="(epsilon, delta) instead of pure epsilon.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="A feature by whose values groups of records are scored, too."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger file of these rows, which is charged.")
    ] = None,
    blocks: Blocks = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Score a model privately on other rows than those that it was learnt from."""
    from privet.cli._show import say_card, say_evaluation
    from privet.estimators import testing
    from privet.model import load

    published = load(model)
    with opened(
        data,
        published.schema,
        "asking",
        blocks=blocks,
        separator=separator,
        encoding=encoding,
        decimal=decimal,
    ) as table:
        found = testing.evaluate(published, table, epsilon, delta=delta, by=by, ledger=ledger)
    say_evaluation(found, found.privacy, apart=False)
    say_card(found.privacy, None, of="score")
