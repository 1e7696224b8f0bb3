"""``privet show``."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from privet.model import Model


class Format(StrEnum):
    """The forms in which a model can be shown."""

    text = "text"
    dot = "dot"
    svg = "svg"
    sql = "sql"
    python = "python"
    json = "json"


def show(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    format: Annotated[Format, typer.Option(help="The form.")] = Format.text,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the terminal if not given.")
    ] = None,
) -> None:
    """Show a model: its tree and its privacy card, or the tree in another form."""
    from privet.cli._show import say_card, say_entries
    from privet.cli._terminal import say, say_code, say_lines
    from privet.model import load
    from privet.outputs import OutputFile

    published = load(model)
    if out is not None:
        with OutputFile(out, {"the model": model}) as output:
            output.write(_shown(published, format) + "\n")
        say(f"Wrote {out}.")
        return
    if format is not Format.text:
        say_code(_shown(published, format), _names(published) if format is Format.sql else ())
        return
    say("Model:")
    say_lines(_shown(published, format))
    say()
    say_entries(published.privacy)
    say_card(published.privacy)


def _names(model: Model) -> Iterator[str]:
    """Yield all names and values, which SQL writes as they are."""
    schema = model.schema
    yield from schema.names
    for feature in schema.features.values():
        yield from map(str, getattr(feature, "values", ()))
    yield from map(str, schema.classes or ())


def _shown(model: Model, format: Format) -> str:
    """Return a model in one of the forms."""
    import json

    from privet import export

    if format is Format.json:
        return json.dumps(model.to_dict(), indent=1)
    write = {
        Format.text: export.to_text,
        Format.dot: export.to_dot,
        Format.svg: export.to_svg,
        Format.sql: export.to_sql,
        Format.python: export.to_python,
    }[format]
    return write(model.predictor)
