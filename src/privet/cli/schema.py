"""``privet schema draft``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def draft(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; the last one if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
) -> None:
    """Draft a schema from data, for a person to correct before anything is fitted with it."""
    from privet.cli._terminal import say, say_code
    from privet.outputs import OutputFile
    from privet.reading import read_table
    from privet.schema import Schema

    if out is None:
        say_code(Schema.draft(read_table(data), target).toml().removesuffix("\n"))
        return
    with OutputFile(out, {"the data": data}) as output:
        output.write(Schema.draft(read_table(data), target).toml())
    say(f"Wrote {out}. Correct it by what is publicly known before you use it.")
