"""``privet schema discover``, ``privet schema import`` and ``privet schema export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._outputs import Force
from privet.cli._reading import Decimal, Encoding, Separator, open_source


def discover(
    data: Annotated[
        Path,
        typer.Argument(
            help="The sensitive table: a CSV or Parquet file, a folder of them, or a pattern."
        ),
    ],
    kinds: Annotated[
        Path, typer.Option(help="The kinds file: names and kinds of columns, which are public.")
    ],
    out: Annotated[Path, typer.Option(help="The schema file to write.")],
    epsilon: Annotated[float, typer.Option(help="The privacy budget of the schema.")] = 0.1,
    delta: Annotated[
        float | None,
        typer.Option(help="Needed to find categories and classes that the kinds do not list."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The table's ledger file, which pays for the schema.")
    ] = None,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Find bounds and lists of a table privately; the schema may be used and published."""
    from privet.cli._outputs import save_schema
    from privet.cli._terminal import progress, say
    from privet.kinds import Kinds
    from privet.outputs import OutputFile, ledger_files
    from privet.schema import Schema

    known = Kinds.from_toml(kinds)
    inputs = {"the data": data, "the kinds": kinds, **ledger_files(ledger)}
    with OutputFile(out, inputs, replace=force) as output:
        with progress("reading") as report:
            source = open_source(
                data, report, separator=separator, encoding=encoding, decimal=decimal
            )
            found = Schema.discover(source, known, epsilon, delta, ledger=ledger)
        save_schema(found.toml(), output)
    paid = found.discovered
    assert paid is not None
    spent = f"epsilon {paid.epsilon:g}" + (f", delta {paid.delta:g}" if paid.delta else "")
    say(
        f"Wrote {out}: {len(found.names)} features. It cost {spent}, which cards of models that "
        "are fitted with it add."
    )


def import_metadata(
    metadata: Annotated[
        Path, typer.Argument(help="CSVW with privacy (.json) or SmartNoise's metadata (.yaml).")
    ],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option(help="The file to write: a schema, or kinds.")],
    force: Force = False,
) -> None:
    """Make a schema of metadata, or a kinds file if they lack bounds or lists."""
    from privet.cli._terminal import say
    from privet.metadata import read_metadata
    from privet.outputs import OutputFile
    from privet.visible import quoted

    known = read_metadata(metadata, target)
    complete = not known.unknown
    with OutputFile(out, {"the metadata": metadata}, replace=force) as output:
        output.write(known.schema().toml() if complete else known.toml())
    if complete:
        say(f"Wrote {out}: a schema. All in it is taken as public, as the metadata say.")
        return
    names = ", ".join(map(quoted, known.unknown[:10])) or "none"
    say(
        f"Wrote {out}: a kinds file. The metadata lack bounds or lists of {len(known.unknown)} "
        f"columns ({names}): add what is public, or run privet schema discover."
    )


def export_metadata(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    out: Annotated[
        Path, typer.Option(help="The file to write: .json for CSVW, .yaml for SmartNoise.")
    ],
    force: Force = False,
) -> None:
    """Write a schema as metadata that other tools for private data read."""
    from privet.cli._outputs import check_ending
    from privet.cli._terminal import say
    from privet.errors import SchemaError
    from privet.metadata import csvw_of, smartnoise_of
    from privet.outputs import OutputFile
    from privet.schema import Schema

    check_ending(out, (".json", ".yaml", ".yml"))
    public = Schema.from_toml(schema)
    if public.drafted:
        raise SchemaError(
            "the schema is a draft made from the data, which must not be published: correct it "
            "first, and delete the line 'draft = true'"
        )
    with OutputFile(out, {"the schema": schema}, replace=force) as output:
        output.write(csvw_of(public) if out.suffix.lower() == ".json" else smartnoise_of(public))
    say(f"Wrote {out}.")
