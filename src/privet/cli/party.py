"""``privet party``: for the owner of the rows in a study over a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli._keys import KeyDirectory, Renew, dial, make_key
from privet.cli._terminal import PlainTable, progress, say

if TYPE_CHECKING:
    from privet.network.keys import Identity
    from privet.network.policy import Policy
    from privet.network.site import Site

PolicyFile = Annotated[
    Path, typer.Option("--policy", help="The site's policy file (docs/party.md).", metavar="FILE")
]
OneStudy = Annotated[str, typer.Argument(help="The study, as the policy file calls it.")]
AnyStudy = Annotated[
    str | None,
    typer.Argument(help="A study. [default: all of the policy file]", show_default=False),
]
_POLICY = Path("party.toml")
_HERE = Path()


def keygen(
    name: Annotated[str, typer.Argument(help="By which the studies will know the party.")],
    directory: KeyDirectory = _HERE,
    renew: Renew = False,
) -> None:
    """Make the site's key, which never leaves it, and its certificate, which others get."""
    make_key(name, directory, renew=renew)


def check(
    study: AnyStudy = None,
    policy: PolicyFile = _POLICY,
    epsilon: Annotated[
        float | None, typer.Option(help="What an analyst asks for. [default: all that is allowed]")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="By which protocol it would be asked. [default: any]")
    ] = None,
) -> None:
    """Say what a study would cost, and whether the policy allows it; nothing is answered."""
    from privet.network.checks import check_study
    from privet.network.policy import Policy, PolicyError

    read = Policy.from_toml(policy)
    identity = read.tls.open_identity(read.name)
    read.tls.open_coordinator()
    found = [
        check_study(read, name, epsilon=epsilon, protocol=protocol)
        for name in ([study] if study is not None else read.studies)
    ]
    with progress("reading the rows"):
        _site(read, identity).rows()
    for each in found:
        say(
            f"Study {each.name}: may spend epsilon {each.epsilon:g} in all, has spent "
            f"{each.spent:.6g}; the ledger has {each.left} left besides what is reserved."
        )
        whole = ", ".join(each.protocols) or "none in full"
        scored = ", ".join(each.scored) or "none"
        say(
            f"Study {each.name}: protocols whose questions are all allowed: {whole}; with those of "
            f"a test score: {scored}."
        )
        for problem in each.problems:
            say(f"Study {each.name}: would be refused: {problem}", style="yellow")
        if not each.problems:
            say(f"Study {each.name}: would be answered.", style="green")
    if not found:
        say("The policy file has no study: nothing would be answered.")
    refused = [each.name for each in found if each.problems]
    if refused:
        raise PolicyError(
            f"the policy, or the ledger, does not let {', '.join(refused)} be answered as it is; "
            "nothing was reserved or spent"
        )


def serve(policy: PolicyFile = _POLICY) -> None:
    """Dial the coordinator, and answer what the policy allows, until it is stopped."""
    from privet.network.interface import NVFLARE
    from privet.network.policy import Policy, PolicyError

    read = Policy.from_toml(policy)
    if read.coordinator == NVFLARE:
        raise PolicyError(
            f"{policy} says that the coordinator asks through NVFlare, whose client answers by "
            "itself (docs/federation.md): nothing is to be served here"
        )
    identity, coordinator = read.tls.open_identity(read.name), read.tls.open_coordinator()
    site = _site(read, identity, tell=say)
    try:
        with progress("reading the rows"):
            site.rows()
        say(f"Party {read.name} dials {read.coordinator}. Studies: {', '.join(read.studies)}.")
        dial(read, site, identity, coordinator)
    finally:
        site.close()


def status(study: AnyStudy = None, policy: PolicyFile = _POLICY) -> None:
    """Show how far studies have come, and whether books and journals agree."""
    import time

    from privet.network.policy import Policy
    from privet.network.site import state_of

    read = Policy.from_toml(policy)
    table = PlainTable(
        f"Studies at {read.name}",
        ["study", "state", "approval", "questions", "charged", "spent", "left", "last question"],
        right=["questions", "charged", "spent", "left"],
        light=True,
    )
    troubles = []
    for name in [study] if study is not None else read.studies:
        found = state_of(read, name)
        last = found.last_time
        table.add(
            name,
            found.state,
            found.approval,
            str(found.questions),
            str(found.answers),
            f"{found.spent:.6g}",
            f"{found.left:.6g}",
            "" if last is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(last)),
        )
        if found.trouble is not None:
            troubles.append(f"Study {name}: {found.trouble}")
    table.show()
    for trouble in troubles:
        say(trouble, style="yellow")


def log(study: OneStudy, policy: PolicyFile = _POLICY) -> None:
    """Show every question of a study: who, what, how much, what is left."""
    from privet.network.journal import Journal
    from privet.network.policy import Policy, PolicyError
    from privet.network.site import journal_path, log_line
    from privet.visible import quoted

    path = journal_path(Policy.from_toml(policy), study)
    if not path.exists():
        raise PolicyError(f"the study {quoted(study)} has not begun here: there is no journal")
    journal = Journal.look(path)
    answered = {record.facts["number"] for record in journal.of_kind("answer")}
    for record in journal.records:
        if record.kind == "question" and record.facts["number"] in answered:
            continue
        say(log_line(study, record))


def approve(study: OneStudy, policy: PolicyFile = _POLICY) -> None:
    """Approve a study, as its policy is now."""
    from privet.network import site
    from privet.network.policy import Policy

    read = Policy.from_toml(policy)
    allowed = read.study(study)
    site.approve(read, study)
    say(
        f"Approved: study {study} may spend epsilon {allowed.epsilon:g} on the rows of "
        f"{read.name}, until {allowed.until:%Y-%m-%d}."
    )


def withdraw(study: OneStudy, policy: PolicyFile = _POLICY) -> None:
    """Take an approval back; a run that is under way is refused from its next question on."""
    from privet.network import site
    from privet.network.policy import Policy

    site.withdraw(Policy.from_toml(policy), study)
    say(
        f"Withdrawn: study {study} is answered nothing more. What was sent stays counted; "
        f"privet party close {study} gives back what was not spent."
    )


def close(study: OneStudy, policy: PolicyFile = _POLICY) -> None:
    """End a study for good: what it did not spend goes back to the table's ledger."""
    from privet.network import site
    from privet.network.policy import Policy
    from privet.privacy import as_float

    spent = site.close_study(Policy.from_toml(policy), study)
    say(f"Closed: study {study} has spent epsilon {as_float(spent.epsilon):.6g}.")


def _site(policy: Policy, identity: Identity, tell: Callable[[str], None] = lambda _: None) -> Site:
    from privet.cli._reading import read_data
    from privet.network.site import Site

    policy.check_data()
    return Site(policy, identity, lambda schema: read_data(policy.data, schema), tell=tell)
