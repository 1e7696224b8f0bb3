"""``privet fit``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli._reading import Decimal, Encoding, Separator, read_data

if TYPE_CHECKING:
    from privet.model import Model
    from privet.schema import Schema


class Learner(StrEnum):
    """The learners that the command knows."""

    tree = "tree"
    boosting = "boosting"
    additive = "additive"
    diffpc45 = "diffpc45"
    diffpid3 = "diffpid3"
    sulq = "sulq"
    privatree = "privatree"
    topdown = "topdown"
    diprime = "diprime"


class Aim(StrEnum):
    """What boosting is for."""

    probabilities = "probabilities"
    labels = "labels"


class Calibration(StrEnum):
    """How a paper's budget is spent."""

    valid = "valid"
    published = "published"


class Binning(StrEnum):
    """Where PrivaTree's bins end."""

    auto = "auto"
    quantile = "quantile"
    joint_quantile = "joint-quantile"
    scales = "scales"
    uniform = "uniform"


class SplitBy(StrEnum):
    """How PrivaTree and DP-TopDown split."""

    select = "select"
    histogram = "histogram"
    flip = "flip"
    exponential = "exponential"
    rnm = "rnm"


class Categories(StrEnum):
    """How PrivaTree divides many categories."""

    auto = "auto"
    ordered = "ordered"


class LevelBudget(StrEnum):
    """What the levels of DP-TopDown get."""

    decay = "decay"
    uniform = "uniform"


class Variant(StrEnum):
    """How DiPriMe chooses features."""

    flip = "flip"
    exp = "exp"
    uniform = "uniform"


class CriterionName(StrEnum):
    """The split criteria that the command knows."""

    max = "max"
    gini = "gini"
    clipped_entropy = "clipped_entropy"
    entropy = "entropy"
    linear = "linear"
    sad = "sad"
    sse = "sse"


def fit(
    data: Annotated[Path, typer.Argument(help="The sensitive table: CSV or Parquet.")],
    schema: Annotated[Path, typer.Option(help="The schema file (see: privet schema draft).")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict; checked against the schema.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of this fit.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="boosting, additive: (epsilon, delta) instead of pure epsilon."),
    ] = None,
    learner: Annotated[
        Learner,
        typer.Option(help="The algorithm. For a number: tree, boosting, additive or diprime."),
    ] = Learner.tree,
    max_depth: Annotated[
        int | None,
        typer.Option(
            help="Most tests on a path. [default: tree, boosting, topdown, diprime: automatic; "
            "privatree: 4; else 5]"
        ),
    ] = None,
    n_rounds: Annotated[
        int | None, typer.Option(help="boosting: how many trees. [default: automatic]")
    ] = None,
    aim: Annotated[
        Aim | None, typer.Option(help="boosting: what matters. [default: probabilities]")
    ] = None,
    n_rows: Annotated[
        int | None,
        typer.Option(
            help="tree, boosting, privatree, topdown, diprime: the rows, if public; else a count "
            "is bought."
        ),
    ] = None,
    probability_share: Annotated[
        float | None,
        typer.Option(help="tree: part of epsilon for the probabilities of leaves. [default: 0]"),
    ] = None,
    no_merge_tests: Annotated[
        bool,
        typer.Option(
            "--no-merge-tests",
            help="tree, boosting: do not join the work of tests that divide the records alike: "
            "slower, but the running time depends less on the data.",
        ),
    ] = False,
    criterion: Annotated[
        CriterionName | None,
        typer.Option(
            help="diffpid3, diffpc45, topdown: how splits are scored; tree for a number: linear, "
            "sad or sse. [default: max, topdown: gini, linear]"
        ),
    ] = None,
    n_max: Annotated[
        int | None,
        typer.Option(help="Public bound on the rows, for --criterion entropy."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="diffpc45: C4.5's certainty factor for pruning. [default: 0.25]"),
    ] = None,
    calibration: Annotated[
        Calibration | None,
        typer.Option(
            help="diffpid3, diffpc45, sulq, privatree, topdown, diprime: spend as the paper does. "
            "[default: valid]"
        ),
    ] = None,
    binning: Annotated[
        Binning | None, typer.Option(help="privatree: where bins end. [default: auto]")
    ] = None,
    split: Annotated[
        SplitBy | None,
        typer.Option(
            help="How nodes are split. privatree: select or histogram; topdown: flip, exponential "
            "or rnm. [default: select, flip]"
        ),
    ] = None,
    max_bins: Annotated[
        int | None, typer.Option(help="privatree: bins of a number. [default: automatic]")
    ] = None,
    leaf_error: Annotated[
        float | None,
        typer.Option(help="privatree: accuracy that wrong labels may cost. [default: 0.01]"),
    ] = None,
    categories: Annotated[
        Categories | None,
        typer.Option(
            help="privatree: how many categories are divided: one against the rest, or ordered by "
            "noisy class shares. [default: auto]"
        ),
    ] = None,
    variant: Annotated[
        Variant | None, typer.Option(help="diprime: how features are chosen. [default: flip]")
    ] = None,
    n_estimators: Annotated[
        int | None, typer.Option(help="diprime: how many trees. [default: automatic]")
    ] = None,
    max_features: Annotated[
        int | None, typer.Option(help="diprime: features that a node considers. [default: all]")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="diprime: part of epsilon for splits. [default: 0.6]")
    ] = None,
    partition: Annotated[
        bool | None,
        typer.Option(
            "--partition/--no-partition",
            help="diprime: each tree has its own rows, or all rows and its own part of epsilon. "
            "[default: its own rows]",
        ),
    ] = None,
    max_nodes: Annotated[
        int | None, typer.Option(help="topdown: most splits. [default: 512]")
    ] = None,
    budget: Annotated[
        LevelBudget | None, typer.Option(help="topdown: what levels get. [default: decay]")
    ] = None,
    leaf_fraction: Annotated[
        float | None, typer.Option(help="topdown: part of epsilon for labels. [default: 0.5]")
    ] = None,
    n_thresholds: Annotated[
        int | None, typer.Option(help="topdown: cuts of a number. [default: 31]")
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(help="topdown: least gain of a split, in records. [default: 0]"),
    ] = None,
    min_weight: Annotated[
        float | None,
        typer.Option(help="topdown: least part of the rows in a cell that is split."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.json"),
    ledger: Annotated[
        Path | None, typer.Option(help="The table's ledger file, from which the fit draws.")
    ] = None,
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
    given = {
        "delta": delta,
        "n_rounds": n_rounds,
        "aim": None if aim is None else str(aim),
        "max_depth": max_depth,
        "n_rows": n_rows,
        "probability_share": probability_share,
        "merge_tests": False if no_merge_tests else None,
        "criterion": None if criterion is None else str(criterion),
        "n_max": n_max,
        "confidence": confidence,
        "calibration": None if calibration is None else str(calibration),
        "binning": None if binning is None else str(binning),
        "split": None if split is None else str(split),
        "max_bins": max_bins,
        "leaf_error": leaf_error,
        "categories": None if categories is None else str(categories),
        "variant": None if variant is None else str(variant),
        "n_estimators": n_estimators,
        "max_features": max_features,
        "rho": rho,
        "partition": partition,
        "max_nodes": max_nodes,
        "budget": None if budget is None else str(budget),
        "leaf_fraction": leaf_fraction,
        "n_thresholds": n_thresholds,
        "min_gain": min_gain,
        "min_weight": min_weight,
    }
    estimator = estimator_for(learner, public)(epsilon=epsilon, schema=public, ledger=ledger)
    options = {name: value for name, value in given.items() if value is not None}
    strange = sorted(set(options) - set(estimator.get_params()))
    if strange:
        option = strange[0].replace("_", "-").replace("merge-tests", "no-merge-tests")
        raise BudgetError(f"--{option} is not for --learner {learner}")
    estimator.set_params(**options)
    with OutputFile(out, inputs) as output:
        with progress("reading"):
            table = read_data(data, public, separator=separator, encoding=encoding, decimal=decimal)
        with progress("learning"):
            model: Model = estimator.fit(table).to_model()
        save_model(model, output)
    say(f"Wrote {out}: {describe(model.predictor)}.")
    say_card(model.privacy)


def estimator_for(learner: Learner, schema: Schema) -> Any:
    """Return the learner for a schema's target."""
    from privet import estimators
    from privet.errors import SchemaError
    from privet.visible import quoted

    if schema.classes is not None:
        return {
            Learner.tree: estimators.PrivateTreeClassifier,
            Learner.boosting: estimators.PrivateBoostingClassifier,
            Learner.additive: estimators.PrivateAdditiveClassifier,
            Learner.diffpc45: estimators.DiffPC45Classifier,
            Learner.diffpid3: estimators.DiffPID3Classifier,
            Learner.sulq: estimators.SulqID3Classifier,
            Learner.privatree: estimators.PrivaTreeClassifier,
            Learner.topdown: estimators.TopDownClassifier,
            Learner.diprime: estimators.DiPriMeForestClassifier,
        }[learner]
    of_numbers = {
        Learner.tree: estimators.PrivateTreeRegressor,
        Learner.boosting: estimators.PrivateBoostingRegressor,
        Learner.additive: estimators.PrivateAdditiveRegressor,
        Learner.diprime: estimators.DiPriMeForestRegressor,
    }
    if learner not in of_numbers:
        raise SchemaError(
            f"--learner {learner} predicts classes, and the target {quoted(schema.target)} is a "
            f"number; use one of {', '.join(of_numbers)}"
        )
    return of_numbers[learner]
