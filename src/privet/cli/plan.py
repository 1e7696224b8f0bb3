"""``privet plan``."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from privet.cli._terminal import PlainTable
    from privet.planning import Level, Plan


def plan(
    rows: Annotated[int, typer.Option(help="How many rows the table has, about.")],
    epsilon: Annotated[float, typer.Option(help="The privacy budget of one fit.")],
    features: Annotated[
        int | None, typer.Option(help="How many numeric features; by default 10.")
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="How many categories each categorical feature has: 2,5,12.")
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(help="Cells that a number is cut into; by default 64, among parties 32."),
    ] = None,
    classes: Annotated[int | None, typer.Option(help="How many classes; by default 2.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Instead: a schema file with features and classes.")
    ] = None,
    parties: Annotated[int, typer.Option(help="How many hold the rows, apart.")] = 1,
    honest: Annotated[
        int | None,
        typer.Option(help="Secure sum: parties that stay and do not collude; else all."),
    ] = None,
    max_depth: Annotated[int, typer.Option(help="Deepest tree to look at.")] = 10,
    tolerance: Annotated[
        float, typer.Option(help="Share of the rows that may be lost in the worst case.")
    ] = 0.2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Say what rows and epsilon can afford, before any data are touched."""
    from privet.cli._terminal import say, say_code
    from privet.planning import PlanError, expectation, make_plan
    from privet.privacy import caution

    form: dict[str, Any]
    if schema is None:
        form = {
            "numbers": 10 if features is None else features,
            "categories": _sizes(categories or ""),
            "classes": 2 if classes is None else classes,
        }
    elif features is None and categories is None and classes is None:
        form = _from_schema(schema)
    else:
        raise PlanError(
            "a schema says its features and classes: leave out --schema, or --features, "
            "--categories and --classes"
        )
    made = make_plan(
        rows,
        epsilon,
        **form,
        bins=bins,
        parties=parties,
        honest=honest,
        max_depth=max_depth,
        tolerance=tolerance,
    )
    if as_json:
        near = expectation(made.rows, made.epsilon, made.classes)
        measured = None if near is None or made.parties > 1 else asdict(near)
        say_code(json.dumps({**made.to_dict(), "measured": measured}, indent=2))
        return
    if made.parties == 1:
        for sentence in [*_expected(made), *_flagship(made)]:
            say(sentence)
        say()
    _depth_table(made).show()
    if made.parties > 1:
        _protocol_table(made).show()
    for sentence in _sentences(made):
        say(sentence)
    if (said := caution(epsilon)) is not None:
        say(f"{said}.", style="yellow")


def _sizes(text: str) -> list[int]:
    from privet.planning import PlanError

    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise PlanError("--categories takes whole numbers with commas between, such as 2,5,12")
    return [int(part) for part in parts]


def _from_schema(path: Path) -> dict[str, Any]:
    from privet.planning import PlanError
    from privet.schema import Categorical, Schema

    read = Schema.from_toml(path)
    if read.classes is None:
        raise PlanError("a plan is for classes, and this schema's target is a number")
    sizes = [
        len(feature.values)
        for feature in read.features.values()
        if isinstance(feature, Categorical)
    ]
    return {
        "numbers": len(read.features) - len(sizes),
        "categories": sizes,
        "classes": len(read.classes),
    }


def _depth_table(made: Plan) -> PlainTable:
    from privet.cli._terminal import PlainTable

    held = f" held by {made.parties} parties ({made.winner})" if made.parties > 1 else ""
    columns = (
        *("depth", "leaves", "rows per leaf", "first level", "last level", "labels"),
        *("labels lose", "splits lose", "afforded"),
    )
    table = PlainTable(
        f"{made.estimator}: trees that {made.rows:,} rows{held} afford with epsilon "
        f"{made.epsilon:g}",
        columns,
        right=columns,
        caption=f"First level, last level, labels: their epsilon. {_CAPTION}",
        light=True,
    )
    for level in made.levels[made.winner]:
        table.add(
            str(level.depth),
            f"{level.leaves:,}",
            _number(level.rows_per_leaf),
            *_ends(level),
            f"{level.label_epsilon:.3g}",
            _mark(level.protocol.label_kind) + f"{level.label_loss:.2%}",
            _mark(level.protocol.split_kind) + f"{level.split_loss:.2%}",
            "refused" if level.refused else "yes" if level.affordable else "no",
            style="bold" if level.depth == made.depth else "",
        )
    return table


def _ends(level: Level) -> tuple[str, str]:
    """Return what the first level and the last one cost, gains included."""
    each = [
        sum(costs) for costs in zip_longest(level.split_epsilons, level.gain_epsilons, fillvalue=0)
    ]
    return f"{each[0]:.3g}", f"{each[-1]:.3g}"


def _protocol_table(made: Plan) -> PlainTable:
    from privet.cli._terminal import PlainTable

    columns = (
        *("affords depth", "noise per count", "in a leaf", "a split loses"),
        *("a label loses", "in all", "rows for a sound split"),
    )
    table = PlainTable(
        f"{made.estimator}: protocols at depth {made.compared_at}",
        ("protocol", *columns),
        right=columns,
        unbroken=("protocol",),
        caption=f"{_CAPTION} A split and a label lose rows of one cell, at the last level; in all: "
        "of all rows, and no more than a guess loses. Noise: deviations of class counts.",
        light=True,
    )
    for name, levels in made.levels.items():
        level: Level = levels[made.compared_at - 1]
        one = level.protocol
        kinds = one.split_kind, one.label_kind
        table.add(
            name,
            str(made.depths[name]),
            _number(one.count_deviation),
            _number(one.label_deviation),
            _mark(one.split_kind) + _number(one.split_loss),
            _mark(one.label_kind) + _number(one.label_loss),
            "refused" if level.refused else _mark(*kinds) + f"{level.loss:.2%}",
            "no guarantee" if one.rows_needed is None else f"{one.rows_needed:,.0f}",
            style="bold" if name == made.winner else "",
        )
    return table


#: What stands before numbers that are no bounds.
_CAPTION = "~: an estimate; other losses are bounds."


def _mark(*kinds: str) -> str:
    return "" if set(kinds) == {"bound"} else "~"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _sentences(made: Plan) -> list[str]:
    """Return the advice in words, and what is proved of it."""
    other = "one machine" if made.parties > 1 else "several parties"
    told = [
        f"The plan is for {made.estimator}: {made.sharing}. Plans for {other} are for another "
        "estimator, which shares otherwise: their losses do not compare."
    ]
    if made.depth:
        told.append(
            f"A complete tree of depth {made.depth} is affordable: its losses stay below "
            f"{made.tolerance:.0%} of the rows in the worst case (a rule of thumb)."
        )
    else:
        told.append(
            "No split is affordable: give more rows or epsilon, or fewer features and bins."
        )
    winner = made.levels[made.winner][made.compared_at - 1]
    told.append(
        f"Up to {made.affordable_leaves:,} leaves: with half of the budget, labels then lose at "
        f"most 1% of the rows, expected (a{'n' * (winner.protocol.label_kind == 'estimate')} "
        f"{winner.protocol.label_kind})."
    )
    if made.parties > 1:
        alone = made.levels["single machine"][made.compared_at - 1]
        told.append(
            f"{made.winner} loses least, about {winner.loss:.2%} of the rows; {made.second}, the "
            f"second best, has {made.advantage:.3g} times the losses before they are cut at those "
            f"of a guess. {made.estimator} on a single machine with all rows would lose "
            f"{alone.loss:.2%}. Estimates take noise in gains as normal and independent, and for "
            "LocalRNM the rows as divided at random: parties that differ lose more."
        )
        told.append(
            f"Told the number of rows, it takes depth {made.auto_depth} by itself, and stops after "
            f"{made.max_nodes} splits."
        )
        if made.max_nodes is not None and 2**made.depth - 1 > made.max_nodes:
            told.append(
                f"A complete tree of depth {made.depth} has {2**made.depth - 1:,} splits: give "
                f"max_nodes={2**made.depth - 1}."
            )
        told.extend(
            f"{name} would refuse depth {made.compared_at}: {levels[made.compared_at - 1].refused}."
            for name, levels in made.levels.items()
            if levels[made.compared_at - 1].refused
        )
    if made.parties > 1:
        told.extend(_flagship(made))
    told.append(
        "Splits lose rows x Gini impurity, which bounds misclassified rows. No data were read."
    )
    return told


def _expected(made: Plan) -> list[str]:
    """Say what the default learner reached on public sets with about as much rows x epsilon."""
    from privet.planning import expectation, least_epsilon

    near = expectation(made.rows, made.epsilon, made.classes)
    if near is None:
        why = (
            "the kept benchmarks have two classes"
            if made.classes != 2
            else f"no kept benchmark is near {made.rows * made.epsilon:,.3g} rows x epsilon"
        )
        return [f"The default learner, PrivateTreeClassifier: nothing to expect from ({why})."]
    told = [
        f"The default learner, PrivateTreeClassifier, with about as much rows x epsilon on public "
        f"sets: accuracy {100 * near.typical:.1f} points below gradient boosting without privacy "
        f"({100 * near.least:.1f} to {100 * near.most:.1f}), and {near.gained:.0%} of what that "
        f"gains over always naming the larger class ({near.results} results on "
        f"{', '.join(near.sets)}). Measured, and no bound: your data may be unlike these."
    ]
    better = least_epsilon(made.rows, made.classes, near.typical / 2)
    if better is not None and better > made.epsilon and near.typical > 0.02:
        told.append(f"Half of that was lost from about epsilon {better:.2g} on (measured).")
    return told


def _flagship(made: Plan) -> list[str]:
    """Say what the default learner would do, and what is proved of it."""
    told: list[str] = []
    if made.flagship is None:
        told.append("PrivateTreeClassifier refuses: epsilon must be at least 0.0001.")
    elif made.flagship.labels is not None:
        told.append(
            "PrivateTreeClassifier on one machine, told the number of rows, would draw no test: it "
            f"labels the leaves of {made.flagship.depth} public ones (epsilon "
            f"{made.flagship.labels:.3g}), and gets at most {made.flagship.shortfall:,.0f} rows "
            "fewer right than their best labels, expected (a bound)."
        )
    else:
        blocks = " + ".join(f"{depth} (epsilon {cost:.3g})" for depth, cost in made.flagship.blocks)
        also = {
            "private quantiles": made.flagship.quantiles,
            "class counts in its leaves": made.flagship.leaves,
        }
        bought = "".join(
            f", and {what} for {cost:.3g}" for what, cost in also.items() if cost is not None
        )
        told.append(
            f"PrivateTreeClassifier on one machine, told the number of rows, would draw whole "
            f"trees of depth {blocks}{bought}; its first block gets at most "
            f"{made.flagship.shortfall:,.0f} rows fewer right than the best such tree, expected "
            "(a bound)."
        )
    return told
