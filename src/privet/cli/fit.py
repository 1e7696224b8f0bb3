"""``privet fit``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli._reading import Blocks, Decimal, Encoding, Separator, open_source, read_data
from privet.cli.learners import FLAGS, estimator_for, find, read_options

if TYPE_CHECKING:
    from privet.model import Model


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="The sensitive table: a CSV or Parquet file, a folder of them, a pattern such as "
            "'visits/*.parquet', or blocks that privet encode has made."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema file (see: privet schema draft).")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; checked against the schema.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of this fit.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="(epsilon, delta) instead of pure epsilon: boosting and additive."),
    ] = None,
    learner: Annotated[
        str, typer.Option(help="The algorithm (see: privet learners).", metavar="NAME")
    ] = "tree",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="What is special to the learner (see: privet learners NAME); may be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(help="Most tests on a path. [default: the learner's, mostly automatic]"),
    ] = None,
    n_rows: Annotated[
        int | None,
        typer.Option(help="The number of rows, if it is public; else a noisy count is bought."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.json"),
    ledger: Annotated[
        Path | None, typer.Option(help="The table's ledger file, from which the fit draws.")
    ] = None,
    blocks: Blocks = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Ask Parquet files on a Dask cluster: dask (processes on this machine), "
            "dask://HOST:PORT or dask+tls://HOST:PORT (a scheduler).",
            metavar="ENGINE",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Use a scheduler that anybody on the network can listen to."
        ),
    ] = False,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Learn a private model from a table and write it to a model file."""
    from privet.cli._outputs import save_model
    from privet.cli._show import describe, say_card
    from privet.cli._terminal import progress, say
    from privet.errors import BudgetError, SchemaError
    from privet.outputs import OutputFile, ledger_files
    from privet.schema import Schema
    from privet.visible import quoted

    inputs = {"the data": data, "the schema": schema, **ledger_files(ledger)}
    public = Schema.from_toml(schema)
    if target is not None and target != public.target:
        raise SchemaError(
            f"the schema's target is {quoted(public.target)}, not {quoted(target)}; change one of "
            "the two"
        )
    chosen = find(learner)
    kind = estimator_for(chosen, public)
    estimator = kind(epsilon=epsilon, schema=public, ledger=ledger)
    given = {"delta": delta, "max_depth": max_depth, "n_rows": n_rows}
    flags = {name: value for name, value in given.items() if value is not None}
    for name in flags:
        if name not in estimator.get_params():
            raise BudgetError(f"{FLAGS[name]} is not for --learner {learner}")
    estimator.set_params(**flags, **read_options(chosen, kind, option or []))
    with OutputFile(out, inputs) as output:
        table: Any = None
        if blocks is None and engine is None and os.path.isfile(data):  # noqa: PTH113  # which never raises
            with progress("reading"):
                table = read_data(
                    data, public, separator=separator, encoding=encoding, decimal=decimal
                )
        with progress("learning") as report:
            if table is None:
                table = open_source(
                    data,
                    report,
                    blocks=blocks,
                    separator=separator,
                    encoding=encoding,
                    decimal=decimal,
                    engine=engine,
                    insecure=insecure,
                )
            model: Model = estimator.fit(table).to_model()
        save_model(model, output)
    say(f"Wrote {out}: {describe(model.predictor)}.")
    say_card(model.privacy)
