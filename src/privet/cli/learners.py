"""``privet learners``, and how commands find learners and read their options: by the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from privet.estimators.registry import Learner
    from privet.schema import Schema

#: Parameters of several learners that have flags of their own.
FLAGS = {"delta": "--delta", "max_depth": "--max-depth", "n_rows": "--n-rows"}


def learners(
    learner: Annotated[
        str | None, typer.Argument(help="A learner, to see its options.", show_default=False)
    ] = None,
) -> None:
    """List the learners, or the options of one of them."""
    from privet.cli._terminal import PlainTable
    from privet.estimators.registry import learners as known

    if learner is not None:
        _show_options(find(learner))
        return
    table = PlainTable(
        "Learners: privet fit --learner NAME",
        ["name", "learns", "what it is"],
        unbroken=["name"],
        light=True,
        caption="privet learners NAME lists the options of one.",
    )
    for name, found in known().items():
        faces = {"classes": found.classifier, "a number": found.regressor}
        goals = [goal for goal, face in faces.items() if face is not None]
        (first, *_) = [face for face in faces.values() if face is not None]
        table.add(name, ", ".join(goals), (first.__doc__ or "").partition("\n")[0])
    table.show()


def _show_options(learner: Learner) -> None:
    from privet.cli._terminal import PlainTable, say
    from privet.estimators.registry import default_of, parameters_of

    faces = {"classes": learner.classifier, "a number": learner.regressor}
    rows: dict[tuple[str, str, str], list[str]] = {}
    for goal, face in faces.items():
        if face is not None:
            for name, kind in parameters_of(face).items():
                row = (name, _as_text(default_of(face, name)), kind.readable)
                rows.setdefault(row, []).append(goal)
    flags = [FLAGS[name] for name in dict.fromkeys(name for name, *_ in rows) if name in FLAGS]
    if any(face is not None and _takes_delta(face) for face in faces.values()):
        flags.insert(0, FLAGS["delta"])
    own = {row: goals for row, goals in rows.items() if row[0] not in FLAGS}
    takes = f"{learner.name} takes {', '.join(['--epsilon', *flags])}"
    if not own:
        say(f"{takes}, and no options of its own.")
        return
    say(f"{takes}, and these options:")
    table = PlainTable(
        f"privet fit --learner {learner.name} --option NAME=VALUE",
        ["option", "default", "may be", "for"],
        unbroken=["option", "default"],
        light=True,
    )
    for (name, default, allowed), goals in own.items():
        table.add(name, default, allowed, " and ".join(goals))
    table.show()


def _takes_delta(face: Any) -> bool:
    return "delta" in face().get_params()


def _as_text(value: Any) -> str:
    """Return a default as it is written on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def find(name: str) -> Learner:
    """Return the learner of a name."""
    from privet.errors import BudgetError
    from privet.estimators.registry import learners as known
    from privet.visible import quoted

    if name not in known():
        raise BudgetError(
            f"there is no learner {quoted(name)}; choose one of {', '.join(known())} "
            "(see: privet learners)"
        )
    return known()[name]


def estimator_for(learner: Learner, schema: Schema) -> Any:
    """Return the estimator of a learner for a schema's target."""
    from privet.errors import SchemaError
    from privet.estimators.registry import learners as known
    from privet.visible import quoted

    face = learner.regressor if schema.classes is None else learner.classifier
    if face is None:
        able = [
            one.name
            for one in known().values()
            if (one.regressor if schema.classes is None else one.classifier) is not None
        ]
        goal, other = ("a number", "classes") if schema.classes is None else ("classes", "numbers")
        raise SchemaError(
            f"--learner {learner.name} predicts {other}, and the target {quoted(schema.target)} is "
            f"{goal}; use one of {', '.join(able)}"
        )
    return face


def read_options(learner: Learner, estimator: Any, texts: list[str]) -> dict[str, Any]:
    """Return what options such as ``max_nodes=64`` say, by the estimator's declarations."""
    from privet.errors import BudgetError
    from privet.estimators.registry import parameters_of
    from privet.visible import quoted

    declared = parameters_of(estimator)
    own = [name for name in declared if name not in FLAGS]
    found: dict[str, Any] = {}
    for given in texts:
        name, equals, text = given.partition("=")
        if not equals:
            raise BudgetError(f"--option takes name=value, not {quoted(given)}")
        if name in FLAGS:
            raise BudgetError(f"{name} has a flag of its own: {FLAGS[name]}")
        if name not in own:
            known = f"it has {', '.join(own)}" if own else "it has none"
            raise BudgetError(
                f"{quoted(name)} is no option of --learner {learner.name}; {known} "
                f"(see: privet learners {learner.name})"
            )
        if name in found:
            raise BudgetError(f"--option {name} is given twice")
        found[name] = declared[name].check_text(text, f"--option {name}")
    return found
