"""``privet schema draft`` and ``privet schema check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._outputs import Force
from privet.cli._reading import Decimal, Encoding, Separator, open_source, read_data

#: The exit code if a schema does not fit the data.
MISFIT = 6


def draft(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; the last one if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
    force: Force = False,
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
    with OutputFile(out, {"the data": data}, replace=force) as output:
        output.write(drafted())
    say(f"Wrote {out}. Correct it by what is publicly known before you use it.")


def check(
    schema: Annotated[Path, typer.Argument(help="The schema file.")],
    data: Annotated[
        Path,
        typer.Argument(help="The table: a CSV or Parquet file, a folder of them, or a pattern."),
    ],
    tolerance: Annotated[
        float,
        typer.Option(help="The share of values that may be unknown or outside of the bounds."),
    ] = 0.01,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Say exactly how a schema fits a table. Sensitive: for the owner's eyes only.

    Reads as privet fit does. Ends with exit code 6 if a column does not fit, or a class is missing.
    """
    from privet.cli._terminal import PlainTable, progress, say
    from privet.reading.checks import SENSITIVE
    from privet.schema import Schema

    public = Schema.from_toml(schema)
    with progress("reading") as report:
        source = open_source(data, report, separator=separator, encoding=encoding, decimal=decimal)
        found = public.check(source, tolerance=tolerance)
    say(f"{SENSITIVE}.", lead="Sensitive:", style="red")
    table = PlainTable(
        f"Schema and data: {found.rows:,} rows",
        ("column", "kind", "missing", "unknown", "below low", "above high", "fits"),
        right=("missing", "unknown", "below low", "above high"),
        light=True,
    )
    for column in found.columns:
        listed = column.kind in ("categorical", "classes")
        counts = (column.missing, column.unknown, column.below, column.above)
        told = (True, listed, not listed, not listed)
        shown = [
            f"{column.share(count):.2%}" if tell else ""
            for count, tell in zip(counts, told, strict=True)
        ]
        fits = "yes" if column.fits else "NO"
        styles = ["green" if column.fits else "red"]
        table.add(column.name, column.kind, *shown, fits, styles=styles)
    if found.unit is not None:
        missing = f"{found.unit.missing / max(found.rows, 1):.2%}"
        fits, style = ("yes", "green") if found.unit.fits else ("NO", "red")
        table.add(found.unit.name, "unit", missing, "", "", "", fits, styles=[style])
    table.show()
    for sentence in found.sentences():
        say(sentence)
    if not found.fits:
        say("The schema does NOT fit the data.", style="red")
        raise typer.Exit(MISFIT)
    say("The schema fits the data.", style="green")
