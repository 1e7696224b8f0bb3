"""``privet demo``: the main job on an invented table, from rows to a published model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    epsilon: Annotated[float, typer.Option(help="The privacy budget.")] = 1.0,
    rows: Annotated[int, typer.Option(help="Rows of the invented table.", min=1000)] = 50_000,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("demo-model.json"),
) -> None:
    """Learn a private tree from invented patients; show it, its accuracy and its ledger."""
    import numpy as np
    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table
    from sklearn.tree import DecisionTreeClassifier

    from privet.cli._files import check_writable
    from privet.cli._show import card_lines, card_table, progress
    from privet.datasets import PATIENTS, make_patients
    from privet.estimators import PrivateTreeClassifier
    from privet.export import to_svg, to_text
    from privet.reading import feature_matrix

    picture = out.with_suffix(".svg")
    check_writable(out)
    check_writable(picture)
    console = Console(highlight=False)
    table = pa.table(make_patients(rows))
    held_out = pa.table(make_patients(20_000, seed=1))
    truth = np.asarray(held_out["readmitted"])
    console.print(f"{rows} invented patients; will they be readmitted within a month?\n")

    model = PrivateTreeClassifier(epsilon=epsilon, schema=PATIENTS)
    with progress(Console(stderr=True), "learning"):
        model.fit(table)
    console.print("[bold]The private tree[/]")
    typer.echo(to_text(model.tree_))

    features = feature_matrix(table, PATIENTS)
    tests = feature_matrix(held_out, PATIENTS)
    open_tree = DecisionTreeClassifier(max_depth=model.tree_.depth or 1, random_state=0)
    open_tree.fit(features, np.asarray(table["readmitted"]))
    scores = Table(title="Accuracy on 20,000 further patients", title_justify="left")
    scores.add_column("model")
    scores.add_column("accuracy", justify="right")
    scores.add_row(
        "always the larger class", f"{max(np.mean(truth == c) for c in PATIENTS.classes or ()):.4f}"
    )
    scores.add_row(
        f"private tree, epsilon {epsilon:g}", f"{np.mean(model.predict(held_out) == truth):.4f}"
    )
    scores.add_row(
        "scikit-learn tree, not private", f"{np.mean(open_tree.predict(tests) == truth):.4f}"
    )
    console.print()
    console.print(scores)
    console.print()
    console.print(card_table(model.privacy_))
    for line in card_lines(model.privacy_):
        console.print(line, soft_wrap=True)

    model.save(out)
    picture.write_text(to_svg(model.tree_), encoding="utf-8")
    console.print(
        f"\nWrote {out} (the model with its card) and {picture} (a picture).", soft_wrap=True
    )
