"""``privet fit``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Learner(StrEnum):
    """The learners that the command knows."""

    diffpid3 = "diffpid3"


class CriterionName(StrEnum):
    """The split criteria that the command knows."""

    max = "max"
    gini = "gini"
    clipped_entropy = "clipped_entropy"
    entropy = "entropy"


def fit(
    data: Annotated[Path, typer.Argument(help="The sensitive table: CSV or Parquet.")],
    schema: Annotated[Path, typer.Option(help="The schema file (see: privet schema draft).")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; checked against the schema.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of this fit.")] = 1.0,
    learner: Annotated[Learner, typer.Option(help="The algorithm.")] = Learner.diffpid3,
    max_depth: Annotated[int, typer.Option(help="Most tests on a path.")] = 5,
    criterion: Annotated[
        CriterionName, typer.Option(help="How splits are scored.")
    ] = CriterionName.max,
    n_max: Annotated[
        int | None, typer.Option(help="Public bound on the rows, for --criterion entropy.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.json"),
    ledger: Annotated[
        Path | None, typer.Option(help="The table's ledger file, from which the fit draws.")
    ] = None,
) -> None:
    """Learn a private tree from a table and write it to a model file."""
    from rich.console import Console

    from privet.cli._files import check_writable, read_table
    from privet.cli._show import card_lines, progress
    from privet.errors import SchemaError
    from privet.estimators import DiffPID3Classifier
    from privet.schema import Schema

    check_writable(out)
    public = Schema.from_toml(schema)
    if target is not None and target != public.target:
        raise SchemaError(
            f"the schema's target is {public.target!r}, not {target!r}; change one of the two"
        )
    estimators = {Learner.diffpid3: DiffPID3Classifier}
    estimator = estimators[learner](
        epsilon=epsilon,
        schema=public,
        max_depth=max_depth,
        criterion=str(criterion),
        n_max=n_max,
        ledger=ledger,
    )
    console = Console(stderr=True)
    with progress(console, "reading"):
        table = read_table(data, public)
    with progress(console, "learning"):
        estimator.fit(table)
    estimator.save(out)
    tree = estimator.tree_
    output = Console(highlight=False)
    output.print(f"Wrote {out}: {tree.n_leaves} leaves, depth {tree.depth}.", soft_wrap=True)
    for line in card_lines(estimator.privacy_):
        output.print(line, soft_wrap=True)
