"""``privet show``."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli._outputs import Force

if TYPE_CHECKING:
    from privet.model import Model


class Format(StrEnum):
    """The forms in which a model can be shown."""

    text = "text"
    dot = "dot"
    svg = "svg"
    sql = "sql"
    python = "python"
    onnx = "onnx"
    json = "json"


def show(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    format: Annotated[Format, typer.Option(help="The form.")] = Format.text,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
    probability: Annotated[
        str | None,
        typer.Option(
            help="With --format sql: the probability of this class instead of the prediction.",
            metavar="CLASS",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Show a model: its tree and its privacy card, or the tree in another form."""
    from privet.cli._show import say_card, say_entries, say_evaluation
    from privet.cli._terminal import say, say_code, say_lines
    from privet.errors import OutputError
    from privet.model import load
    from privet.outputs import OutputFile

    if probability is not None and format is not Format.sql:
        raise OutputError("--probability goes with --format sql")
    if format is Format.onnx and out is None:
        raise OutputError("--format onnx is no text: name a file with --out")
    published = load(model)
    if out is not None:
        with OutputFile(out, {"the model": model}, replace=force) as output:
            if format is Format.onnx:
                from privet.export import to_onnx

                made = to_onnx(published.predictor)
                with output.writing() as file:
                    file.write(made)
            else:
                output.write(_shown(published, format, probability) + "\n")
        say(f"Wrote {out}.")
        return
    if format is not Format.text:
        shown = _shown(published, format, probability)
        say_code(shown, _names(published) if format is Format.sql else ())
        return
    say("Model:")
    say_lines(_shown(published, format))
    say()
    if published.evaluation is not None:
        say_evaluation(published.evaluation, published.privacy)
    say_entries(published.privacy)
    say_card(published.privacy, published.schema)


def _names(model: Model) -> Iterator[str]:
    """Yield all names and values, which SQL writes as they are."""
    schema = model.schema
    yield from schema.names
    for feature in schema.features.values():
        yield from map(str, getattr(feature, "values", ()))
    yield from map(str, schema.classes or ())


def _shown(model: Model, format: Format, probability: str | None = None) -> str:
    """Return a model in one of the forms."""
    import json

    from privet import export

    if format is Format.json:
        return json.dumps(model.to_dict(), indent=1)
    drawn = {
        Format.text: export.to_text,
        Format.dot: export.to_dot,
        Format.svg: export.to_svg,
    }
    if format in drawn:
        return drawn[format](model.predictor, noise=model.noise)
    if format is Format.sql:
        return export.to_sql(model.predictor, probability_of=probability)
    return export.to_python(model.predictor)
