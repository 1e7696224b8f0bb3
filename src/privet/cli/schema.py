"""``privet schema draft``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._reading import Decimal, Encoding, Separator, read_data


def draft(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; the last one if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Draft a schema from data, for a person to correct before anything is fitted with it."""
    from privet.cli._terminal import say, say_code
    from privet.outputs import OutputFile
    from privet.schema import Schema

    def drafted() -> str:
        table = read_data(data, separator=separator, encoding=encoding, decimal=decimal)
        return Schema.draft(table, target).toml()

    if out is None:
        say_code(drafted().removesuffix("\n"))
        return
    with OutputFile(out, {"the data": data}) as output:
        output.write(drafted())
    say(f"Wrote {out}. Correct it by what is publicly known before you use it.")
