"""Keys and lines of a study's members: what ``privet party``, ``dealer`` and others share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli._terminal import say

if TYPE_CHECKING:
    from privet.network import Answering, Certificate, Identity
    from privet.network.policy import DealerPolicy, Policy

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


def dial(
    policy: Policy | DealerPolicy,
    answering: Answering,
    identity: Identity,
    coordinator: Certificate,
) -> None:
    """Dial the coordinator, and let somebody answer, until the process is stopped."""
    from privet.network.transport import Dialler

    dialler = Dialler(
        answering, policy.coordinator, identity, coordinator, proxy=policy.tls.proxy, tell=say
    )
    try:
        dialler.run()
    finally:
        dialler.stop()
