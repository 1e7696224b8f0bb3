"""``privet show``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """The forms in which a model can be shown."""

    text = "text"
    dot = "dot"
    svg = "svg"
    sql = "sql"
    python = "python"
    json = "json"


def show(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    format: Annotated[Format, typer.Option(help="The form.")] = Format.text,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
) -> None:
    """Show a model: its tree and its privacy card, or the tree in another form."""
    import json

    from rich.console import Console

    from privet import export
    from privet.cli._files import check_writable
    from privet.cli._show import card_lines, card_table
    from privet.model import load

    published = load(model)
    if format is Format.json:
        text = json.dumps(published.to_dict(), indent=1)
    else:
        write = {
            Format.text: export.to_text,
            Format.dot: export.to_dot,
            Format.svg: export.to_svg,
            Format.sql: export.to_sql,
            Format.python: export.to_python,
        }[format]
        text = write(published.predictor)
    if out is not None:
        check_writable(out)
        out.write_text(text + "\n", encoding="utf-8")
        typer.echo(f"Wrote {out}.")
        return
    typer.echo(text)
    if format is Format.text:
        output = Console(highlight=False)
        output.print()
        for line in card_lines(published.privacy):
            output.print(line, soft_wrap=True)
        output.print(card_table(published.privacy))
