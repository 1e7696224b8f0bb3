"""``privet report``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privet.cli._outputs import Force


class Format(StrEnum):
    """The forms of a report."""

    html = "html"
    registry = "registry"
    model_card = "model-card"


def report(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    ledger: Annotated[
        Path | None, typer.Option(help="The table's ledger file: what was spent, and what is left.")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            help="A result that privet audit --out wrote; may be repeated.", metavar="FILE"
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="html: one page. registry: YAML for the DP Deployments Registry. model-card: "
            "Markdown."
        ),
    ] = Format.html,
    release: Annotated[
        Path | None,
        typer.Option(
            help="With --format registry: a TOML file with a table [release] of what only you know "
            "(docs/report.md)."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a report about a model for people who answer for it."""
    from privet.cli._terminal import say
    from privet.errors import ReportError
    from privet.model import load
    from privet.outputs import OutputFile, ledger_files
    from privet.privacy import LedgerStore
    from privet.report import (
        Facts,
        State,
        read_attachment,
        read_release,
        to_html,
        to_model_card,
        to_registry,
    )

    if (release is None) == (format is Format.registry):
        raise ReportError(
            "--format registry needs --release, a TOML file with a table [release]"
            if release is None
            else "--release goes with --format registry"
        )
    files = [*(attach or [])]
    inputs = {"the model": model, "the release file": release, **ledger_files(ledger)}
    inputs |= {f"an attached file ({path})": path for path in files}
    with OutputFile(out, inputs, replace=force) as output:
        facts = Facts(
            load(model),
            None if ledger is None else LedgerStore(ledger).books,
            tuple(read_attachment(path) for path in files),
        )
        if format is Format.html:
            text = to_html(facts)
        elif format is Format.model_card:
            text = to_model_card(facts)
        else:
            assert release is not None
            text = to_registry(facts, read_release(release))
        output.write(text)
    style = {State.PRIVATE: "green", State.DOUBTFUL: "yellow", State.NOT_PRIVATE: "red"}
    said = {State.DOUBTFUL: "private, with doubts", State.NOT_PRIVATE: "NOT PRIVATE"}
    say(f"Wrote {out}. Verdict: {said.get(facts.state, 'private')}", style=style[facts.state])
    if facts.owners_only:
        say("It is for the owner's eyes only: do not publish it.", style="yellow")
