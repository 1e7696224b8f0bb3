"""Keys of a study's members: what ``privet party`` and ``privet coordinator`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._terminal import say

KeyDirectory = Annotated[Path, typer.Option(help="Where the key and the certificate are written.")]
Renew = Annotated[
    bool, typer.Option("--renew", help="Make a new certificate for the key that is there.")
]


def make_key(name: str, directory: Path, *, renew: bool) -> None:
    """Make a key and its certificate, or a new certificate alone, and show the fingerprint."""
    from privet.network.keys import Identity, show_fingerprint

    key, certificate = directory / f"{name}.key", directory / f"{name}.pem"
    made = (Identity.renew if renew else Identity.make)(key, certificate, name)
    say(f"Key: {key} (keep it here, and to yourself)")
    say(f"Certificate: {certificate}, valid until {made.certificate.until:%Y-%m-%d} (hand it out)")
    say(f"Fingerprint: {show_fingerprint(made.fingerprint)}")
    say("Read the fingerprint out to the others, by another way than the certificate takes.")
