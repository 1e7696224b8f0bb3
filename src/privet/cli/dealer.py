"""``privet dealer``: for an organisation that deals in a study over a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._keys import KeyDirectory, Renew, dial, make_key
from privet.cli._terminal import say

_HERE, _POLICY = Path(), Path("dealer.toml")


def keygen(
    name: Annotated[str, typer.Argument(help="By which the studies will know the dealer.")],
    directory: KeyDirectory = _HERE,
    renew: Renew = False,
) -> None:
    """Make the dealer's key, which never leaves it, and its certificate, which others get."""
    make_key(name, directory, renew=renew)


def serve(
    policy: Annotated[
        Path,
        typer.Option("--policy", help="The dealer's file (docs/federation.md).", metavar="FILE"),
    ] = _POLICY,
) -> None:
    """Dial the coordinator, and deal for secret choices, until it is stopped."""
    from privet.network.dealers import DealerSite
    from privet.network.policy import DealerPolicy

    read = DealerPolicy.from_toml(policy)
    identity, coordinator = read.tls.open_identity(read.name), read.tls.open_coordinator()
    site = DealerSite(read, identity, tell=say)
    say(f"Dealer {read.name} dials {read.coordinator}. Studies: {', '.join(read.studies)}.")
    dial(read, site, identity, coordinator)
