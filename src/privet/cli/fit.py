"""``privet fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli._outputs import Force, save_model
from privet.cli._reading import Blocks, Decimal, Encoding, Separator, opened
from privet.cli.learners import FLAGS, estimator_for, find, read_options

if TYPE_CHECKING:
    from privet.model import Model

#: What each learner takes besides what all take. Written down, since to ask the registry would load
#: all learners for every ``--help``; a test compares the two.
TAKES: dict[str, tuple[str, ...]] = {
    "tree": (
        *("max_depth", "n_rows", "probability_share", "merge_tests", "class_weight"),
        "criterion",
    ),
    "additive": ("class_weight", "delta"),
    "boosting": (
        *("n_rounds", "max_depth", "n_rows", "merge_tests", "aim", "class_weight"),
        "delta",
    ),
    "diffpc45": ("max_depth", "calibration", "criterion", "n_max", "confidence"),
    "diffpid3": ("max_depth", "calibration", "criterion", "n_max"),
    "diprime": (
        *("variant", "max_depth", "max_features", "rho", "calibration", "n_rows"),
        *("n_estimators", "partition"),
    ),
    "privatree": (
        *("max_depth", "max_bins", "leaf_error", "binning", "split", "categories"),
        *("calibration", "n_rows"),
    ),
    "sulq": ("max_depth", "calibration"),
    "topdown": (
        *("max_nodes", "max_depth", "budget", "leaf_fraction", "criterion", "split"),
        *("n_thresholds", "min_gain", "min_weight", "calibration", "n_rows"),
    ),
}
#: Groups of options in the help.
SOME, LARGE = "Some learners", "Large tables"


def _named(parameter: str) -> str:
    """Return the learners that take a parameter."""
    able = [name for name, taken in TAKES.items() if parameter in taken]
    return f"{', '.join(able[:-1])} and {able[-1]}"


def by_learner() -> str:
    """Return what stands below the help: the options of every learner, in paragraphs."""
    told = ["What --option takes, by learner (privet learners NAME says what each may be):"]
    for name, taken in TAKES.items():
        own = [option for option in taken if option not in FLAGS]
        told.append(f"{name}: {', '.join(own)}")
    return "\n\n".join(told)


def fit(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="The sensitive table: a CSV or Parquet file, a folder of them, a pattern such as "
            "'visits/*.parquet', or blocks that privet encode has made.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file (see: privet schema draft).")
    ] = None,
    parties: Annotated[
        Path | None,
        typer.Option(
            help="Learn from the parties of a study instead.",
            metavar="STUDY.TOML",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="With --parties: only find out whether they would let this be learnt."
        ),
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(help="With --parties: the directory that keeps the run. [default: a new one]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="With --parties: go on with the run in this directory; nothing that was answered "
            "is asked, or paid, again."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column to predict; checked against the schema.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of this fit.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help=f"(epsilon, delta) instead of pure epsilon. For {_named('delta')}.",
            rich_help_panel=SOME,
        ),
    ] = None,
    learner: Annotated[
        str, typer.Option(help="The algorithm (see: privet learners).", metavar="NAME")
    ] = "tree",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="What is special to one learner: see below. May be repeated.",
            metavar="NAME=VALUE",
            rich_help_panel=SOME,
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            help=f"Most tests on a path. For {_named('max_depth')}. [default: mostly automatic]",
            rich_help_panel=SOME,
        ),
    ] = None,
    n_rows: Annotated[
        int | None,
        typer.Option(
            help="The number of rows, if it is public; else a noisy count is bought. For "
            f"{_named('n_rows')}.",
            rich_help_panel=SOME,
        ),
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(
            help="Set this part of the rows aside, such as 0.2, and publish how well the model "
            "predicts them: no further epsilon."
        ),
    ] = None,
    test_by: Annotated[
        str | None,
        typer.Option(help="With --test-share: a feature by whose values groups are scored, too."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.json"),
    force: Force = False,
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
            rich_help_panel=LARGE,
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Use a scheduler that anybody on the network can listen to.",
            rich_help_panel=LARGE,
        ),
    ] = False,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
) -> None:
    """Learn a private model from a table and write it to a model file."""
    from privet.cli._parties import check_study, fit_study, open_study
    from privet.cli._show import say_card, say_evaluation
    from privet.cli._terminal import say
    from privet.errors import BudgetError, DataError, SchemaError
    from privet.outputs import OutputFile, ledger_files
    from privet.schema import Schema
    from privet.visible import quoted

    study = None
    if parties is not None:
        rows = {"a table": data, "--schema": schema, "--ledger": ledger, "--blocks": blocks}
        more = {"--engine": engine, "--insecure": insecure, "--separator": separator}
        study = open_study(parties, {**rows, **more})
        public = study.schema
    elif data is None or schema is None:
        raise typer.BadParameter(
            "name the table and its schema (privet fit TABLE --schema FILE), or the parties that "
            "have the rows (--parties STUDY.TOML)"
        )
    elif check or run is not None or resume is not None:
        raise DataError("--check, --run and --resume are for --parties")
    else:
        public = Schema.from_toml(schema)
    inputs = {
        "the data": data,
        "the schema": schema,
        "the study": parties,
        **ledger_files(ledger),
    }
    if target is not None and target != public.target:
        raise SchemaError(
            f"the schema's target is {quoted(public.target)}, not {quoted(target)}; change one of "
            "the two"
        )
    chosen = find(learner)
    kind = estimator_for(chosen, public)
    estimator = kind(
        epsilon=epsilon, schema=public, ledger=ledger, test_share=test_share, test_by=test_by
    )
    given = {"delta": delta, "max_depth": max_depth, "n_rows": n_rows}
    flags = {name: value for name, value in given.items() if value is not None}
    for name in flags:
        if name not in estimator.get_params():
            raise BudgetError(f"{FLAGS[name]} is not for --learner {learner}")
    estimator.set_params(**flags, **read_options(chosen, kind, option or []))
    if check and study is not None:
        check_study(study, estimator)
        return
    with OutputFile(out, inputs, replace=force) as output:
        model: Model
        if study is not None:
            model = fit_study(study, estimator, run, resume)
        else:
            assert data is not None  # checked above
            with opened(
                data,
                public,
                "learning",
                blocks=blocks,
                engine=engine,
                insecure=insecure,
                separator=separator,
                encoding=encoding,
                decimal=decimal,
            ) as table:
                model = estimator.fit(table).to_model()
        save_model(model, output)
    say(f"Wrote {out}: {model.predictor.size_words}.")
    if model.evaluation is not None:
        say_evaluation(model.evaluation, model.privacy)
    say_card(model.privacy, model.schema)
