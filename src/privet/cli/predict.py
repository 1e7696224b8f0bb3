"""``privet predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli._outputs import Force, check_ending, print_table, write_table
from privet.cli._reading import Decimal, Encoding, Separator, read_data


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[Path, typer.Argument(help="The rows to predict: CSV or Parquet.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write: .csv or .parquet. [default: standard output, CSV]"),
    ] = None,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Predict every row of a table, whose columns may be in any order. Costs nothing."""
    from privet.cli._terminal import progress, say
    from privet.model import load
    from privet.outputs import OutputFile

    if out is not None:
        check_ending(out, (".csv", ".parquet"))
    published = load(model)

    def predicted() -> dict[str, Any]:
        with progress("predicting"):
            table = read_data(
                data,
                published.schema,
                target=False,
                separator=separator,
                encoding=encoding,
                decimal=decimal,
            )
            columns: dict[str, Any] = {"prediction": published.predict(table)}
            if published.schema.classes is not None:
                shares = published.predict_proba(table)
                for j, name in enumerate(published.classes):
                    columns[f"probability_{name}"] = shares[:, j]
        return columns

    if out is None:
        print_table(predicted())
        return
    with OutputFile(out, {"the model": model, "the data": data}, replace=force) as output:
        columns = predicted()
        write_table(columns, output)
    say(f"Wrote {out}: {len(columns['prediction'])} predictions.")
