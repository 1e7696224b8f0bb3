"""``privet predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._reading import Decimal, Encoding, Separator, read_data


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[Path, typer.Argument(help="The rows to predict: CSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="The file to write: .csv or .parquet.")],
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Predict the class of every row of a table. Costs nothing: the model is public."""
    from privet.cli._outputs import check_ending, write_table
    from privet.cli._terminal import say
    from privet.model import load
    from privet.outputs import OutputFile

    check_ending(out, (".csv", ".parquet"))
    published = load(model)
    with OutputFile(out, {"the model": model, "the data": data}) as output:
        table = read_data(
            data,
            published.schema,
            target=False,
            separator=separator,
            encoding=encoding,
            decimal=decimal,
        )
        columns = {"prediction": published.predict(table)}
        if published.schema.classes is not None:
            shares = published.predict_proba(table)
            for j, name in enumerate(published.classes):
                columns[f"probability_{name}"] = shares[:, j]
        write_table(columns, output)
    say(f"Wrote {out}: {len(columns['prediction'])} predictions.")
