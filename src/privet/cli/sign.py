"""``privet sign`` and ``privet verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli._outputs import Force

#: The exit code if a signature does not hold.
DOES_NOT_HOLD = 7


def sign(
    model: Annotated[
        Path | None, typer.Argument(help="The model file to sign.", show_default=False)
    ] = None,
    key: Annotated[Path, typer.Option(help="The signer's private key.")] = Path("signing.key"),
    make_key: Annotated[
        bool,
        typer.Option("--make-key", help="Make the key, and the public one beside it (.pub)."),
    ] = False,
    study: Annotated[
        Path | None,
        typer.Option(help="The study file: its name, its parties and their fingerprints."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a study file, the directory of the run that made the model: parties "
            "that were lost on the way are left out."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The signature file to write. [default: the model's name and .sig]"),
    ] = None,
    force: Force = False,
) -> None:
    """Sign a model file, so that others can check where it comes from (Ed25519, detached)."""
    from privet.cli._terminal import say
    from privet.network import signatures
    from privet.network.keys import show_fingerprint
    from privet.outputs import OutputFile

    if make_key:
        if model is not None:
            raise signatures.SignatureError("--make-key signs nothing: sign afterwards")
        public = key.with_suffix(".pub")
        fingerprint = signatures.make_signing_key(key, public)
        say(f"Key: {key} (keep it to yourself)")
        say(f"Public key: {public} (publish it)")
        say(f"Fingerprint: {show_fingerprint(fingerprint)}")
        return
    if model is None:
        raise signatures.SignatureError("name the model file to sign, or --make-key")
    name, parties = "", dict[str, str]()
    if run is not None:
        if study is not None:
            raise signatures.SignatureError("--run names the study already: leave out --study")
        name, parties = _of_run(run, model)
    if study is not None:
        from privet.network.study import Study

        read = Study.from_toml(study)
        name = read.name
        parties = {party: each.fingerprint for party, each in read.parties.items()}
    place = model.with_name(f"{model.name}.sig") if out is None else out
    inputs = {"the model": model, "the key": key, "the study": study}
    with OutputFile(place, inputs, replace=force) as output:
        statement = signatures.sign(model, key, output, study=name, parties=parties)
    say(f"Wrote {place}.")
    for line in signatures.statement_words(statement):
        say(line)


def _of_run(run: Path, model: Path) -> tuple[str, dict[str, str]]:
    """Return the study and the parties of the run that made a model."""
    from privet.model import load
    from privet.network.runs import Origin
    from privet.network.signatures import SignatureError
    from privet.visible import quoted

    found = Origin.from_run(run)
    record = load(model).record if model.is_file() else None
    if record is not None and record.estimator != found.learner:
        raise SignatureError(
            f"the run in {run} learnt by {quoted(found.learner)}, and {model} is by "
            f"{quoted(record.estimator)}: name the run that made the model"
        )
    return found.study, found.parties


def verify(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    key: Annotated[
        Path, typer.Option(help="The signer's public key, from the signer.", show_default=False)
    ],
    signature: Annotated[
        Path | None,
        typer.Option(help="The signature file. [default: the model's name and .sig]"),
    ] = None,
) -> None:
    """Check that a model file is the one that was signed, and say which study it came from."""
    from privet.cli._terminal import say
    from privet.network import signatures
    from privet.network.keys import show_fingerprint

    place = model.with_name(f"{model.name}.sig") if signature is None else signature
    try:
        statement = signatures.verify(model, place, key)
    except signatures.BadSignatureError as error:
        say(str(error), lead="Error:", style="red", error=True)
        raise typer.Exit(DOES_NOT_HOLD) from None
    for line in signatures.statement_words(statement):
        say(line)
    say(f"Signer: {show_fingerprint(signatures.fingerprint_of(key))}")
    say("Verdict: the signature holds for this file", style="green")
