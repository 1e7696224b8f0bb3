"""``privet encode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._reading import Decimal, Encoding, Separator, open_source


def encode(
    data: Annotated[
        Path,
        typer.Argument(
            help="The sensitive table: a CSV or Parquet file, a folder of them, or a pattern."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema file (see: privet schema draft).")],
    out: Annotated[
        Path, typer.Option(help="The directory to make; it must not be there yet.", metavar="DIR")
    ],
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Encode a table into blocks that are kept, so that many fits read it only once."""
    from privet.cli._terminal import progress, say
    from privet.schema import Schema
    from privet.tables import encode as keep

    public = Schema.from_toml(schema)
    with progress("reading") as report:
        source = open_source(data, report, separator=separator, encoding=encoding, decimal=decimal)
        keep(source, public, out)
    say(f"Wrote {out}: it is as sensitive as the table. Only you can read it; remove it yourself.")
