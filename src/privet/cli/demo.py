"""``privet demo``: the main job on an invented table, from rows to a published model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._outputs import Force, save_model


def demo(
    epsilon: Annotated[float, typer.Option(help="The privacy budget.")] = 1.0,
    rows: Annotated[int, typer.Option(help="Rows of the invented table.", min=1000)] = 50_000,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("demo-model.json"),
    force: Force = False,
) -> None:
    """Learn a private tree from invented patients; show it, its accuracy and its ledger."""
    import numpy as np
    import pyarrow as pa
    from sklearn.tree import DecisionTreeClassifier

    from privet.cli._show import say_card, say_entries
    from privet.cli._terminal import PlainTable, progress, say, say_lines
    from privet.datasets import PATIENTS, make_patients
    from privet.estimators import PrivateTreeClassifier
    from privet.export import to_svg, to_text
    from privet.outputs import OutputFile, check_output
    from privet.reading import feature_matrix

    check_output(out, replace=force)
    picture = out.with_suffix(".svg")
    check_output(picture, {"the model": out}, replace=force)
    table = pa.table(make_patients(rows))
    held_out = pa.table(make_patients(20_000, seed=1))
    truth = np.asarray(held_out["readmitted"])
    say(f"{rows} invented patients; will they be readmitted within a month?")
    say()

    model = PrivateTreeClassifier(epsilon=epsilon, schema=PATIENTS)
    with OutputFile(out) as output:
        with progress("learning"):
            model.fit(table)
        save_model(model.to_model(), output)
    with OutputFile(picture) as output:
        output.write(to_svg(model.tree_) + "\n")
    say("The private tree", style="bold")
    say_lines(to_text(model.tree_))

    features = feature_matrix(table, PATIENTS)
    tests = feature_matrix(held_out, PATIENTS)
    open_tree = DecisionTreeClassifier(max_depth=model.tree_.depth or 1, random_state=0)
    open_tree.fit(features, np.asarray(table["readmitted"]))
    scores = PlainTable(
        "Accuracy on 20,000 further patients", ("model", "accuracy"), right=("accuracy",)
    )
    scores.add(
        "always the larger class", f"{max(np.mean(truth == c) for c in PATIENTS.classes or ()):.4f}"
    )
    scores.add(
        f"private tree, epsilon {epsilon:g}", f"{np.mean(model.predict(held_out) == truth):.4f}"
    )
    scores.add(
        "scikit-learn tree, not private", f"{np.mean(open_tree.predict(tests) == truth):.4f}"
    )
    say()
    scores.show()
    say()
    say_entries(model.privacy_)
    say_card(model.privacy_, PATIENTS)
    say()
    say(f"Wrote {out} (the model with its card) and {picture} (a picture).")
