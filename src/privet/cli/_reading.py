"""Opening data files: the options that all commands with a data file have."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from privet.reading import Source
    from privet.schema import Schema

Separator = Annotated[
    str | None,
    typer.Option(
        help="What stands between the fields of a CSV file; the word tab for a tab. [default: ,]",
        rich_help_panel="CSV files",
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        help="utf-8, or one of a single byte per character such as latin-1 or cp1252.",
        rich_help_panel="CSV files",
    ),
]
Blocks = Annotated[
    Path | None,
    typer.Option(
        help="A directory for blocks of encoded rows, so that a table need not fit into memory. "
        "[default for folders and patterns: the system's temporary directory]",
        metavar="DIR",
        rich_help_panel="Large tables",
    ),
]
Decimal = Annotated[
    str, typer.Option(help="The decimal point: . or ,", rich_help_panel="CSV files")
]


def read_data(
    path: Path,
    schema: Schema | None = None,
    *,
    target: bool = True,
    separator: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> pa.Table:
    """Read a data file as a command was told to."""
    from privet.reading import read_table

    return read_table(
        path,
        schema,
        target=target,
        separator="\t" if separator == "tab" else separator,
        encoding=encoding,
        decimal=decimal,
    )


def open_source(
    path: Path,
    report: Callable[[str], None],
    *,
    blocks: Path | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    engine: str | None = None,
    insecure: bool = False,
) -> Source:
    """Return files that need not fit into memory; say which part of them was read."""
    from privet.reading import Source

    return Source(
        path,
        directory=blocks,
        progress=lambda part: report(f"reading: {part:.0%}"),
        separator="\t" if separator == "tab" else separator,
        encoding=encoding,
        decimal=decimal,
        engine=engine,
        insecure=insecure,
    )


@contextmanager
def opened(
    path: Path,
    schema: Schema,
    work: str,
    *,
    blocks: Path | None = None,
    engine: str | None = None,
    insecure: bool = False,
    **written: Any,
) -> Iterator[pa.Table | Source]:
    """Yield a file's rows, or what need not fit into memory, and show that work goes on.

    Parameters
    ----------
    path, schema
    work : str
        What is done with the rows.
    blocks, engine, insecure
        As for :func:`open_source`.
    **written
        How a CSV file is written: ``separator``, ``encoding`` and ``decimal``.
    """
    from privet.cli._terminal import progress

    table: Any = None
    if blocks is None and engine is None and os.path.isfile(path):  # noqa: PTH113  # which never raises
        with progress("reading"):
            table = read_data(path, schema, **written)
    with progress(work) as report:
        if table is None:
            table = open_source(
                path, report, blocks=blocks, engine=engine, insecure=insecure, **written
            )
        yield table
