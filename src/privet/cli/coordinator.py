"""``privet coordinator``: the key of a study's coordinator, and its port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._keys import KeyDirectory, Renew, make_key

_HERE = Path()


def keygen(
    name: Annotated[str, typer.Argument(help="What the two files are called.")] = "coordinator",
    directory: KeyDirectory = _HERE,
    renew: Renew = False,
) -> None:
    """Make the coordinator's key and certificate, and show the fingerprint."""
    make_key(name, directory, renew=renew)


def serve(
    study: Annotated[Path, typer.Argument(help="The study file, study.toml.")],
) -> None:
    """Keep a study's port open, so that parties stay connected from one fit to the next."""
    from privet.cli._terminal import say
    from privet.network import Study

    found = Study.from_toml(study)
    with found.serve(lambda sentence: say(sentence, error=True)) as desk:
        say(f"Listening at {found.listen} for the study {found.name}; end with Ctrl-C.")
        desk.wait()
