"""The command ``privet``: one module per command, each thin over the Python API.

Exit codes:

* 0: all went well.
* 1: an unexpected error. Only its type is shown: messages of other libraries may quote the data.
* 2: bad input, with one sentence. Nothing is spent.
* 3: an audit found that something is not as private as it says.
* 4: a model or schema was paid for, but could not be written where it should be. The message says
  why, and where it is.
* 5: where the rows are, questions cannot be answered any more: a disk is full, a cluster is lost.
  The message says so; nothing is published, and what the fit's ledger reserved stays reserved.
* 6: ``privet schema check`` found that the schema does not fit the data.
* 7: ``privet verify`` found that a signature does not hold for a file.
* 130: interrupted; 129 or 143: told to end.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from privet import __version__
from privet.cli import (
    audit,
    certify,
    coordinator,
    dealer,
    demo,
    discover,
    encode,
    evaluate,
    fit,
    learners,
    ledger,
    party,
    plan,
    predict,
    report,
    schema,
    show,
    sign,
)
from privet.cli._terminal import say, use_any_encoding
from privet.errors import EngineError, EngineUnusableError, PrivetError

#: What is raised for wrong arguments. Typer brings its own, or takes that of click.
_UsageError: Any = typer.BadParameter.__base__


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _readable(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _readable(super().get_params(ctx))


def _readable(parameters: list[Any]) -> list[Any]:
    """Return parameters whose help can be read as it was written.

    Flags are ``--force`` and not ``--force <bool>``, which looks like a wanted value; and what is
    in brackets, such as a default, is not taken for markup, which nobody would see.
    """
    for parameter in parameters:
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
        if parameter.help:
            parameter.help = re.sub(r"(?<!\\)\[", r"\\[", parameter.help)
    return parameters


class _Commands(typer.Typer):
    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, cls=_Command, **settings)


app = _Commands(
    name="privet",
    help="Learn decision trees from sensitive tables and publish them with differential privacy.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
schema_app = _Commands(help="Write down what is public about a table.")
schema_app.command("draft")(schema.draft)
schema_app.command("check")(schema.check)
schema_app.command("discover")(discover.discover)
schema_app.command("import")(discover.import_metadata)
schema_app.command("export")(discover.export_metadata)
app.add_typer(schema_app, name="schema")
party_app = _Commands(help="Take part in a study over a network, as the owner of rows.")
party_app.command("keygen")(party.keygen)
party_app.command("check")(party.check)
party_app.command("serve")(party.serve)
party_app.command("status")(party.status)
party_app.command("log")(party.log)
party_app.command("approve")(party.approve)
party_app.command("withdraw")(party.withdraw)
party_app.command("close")(party.close)
app.add_typer(party_app, name="party")
coordinator_app = _Commands(help="The coordinator of parties over a network.")
coordinator_app.command("keygen")(coordinator.keygen)
coordinator_app.command("serve")(coordinator.serve)
app.add_typer(coordinator_app, name="coordinator")
dealer_app = _Commands(
    help="Deal for the secret choices of a study over a network, without rows.",
)
dealer_app.command("keygen")(dealer.keygen)
dealer_app.command("serve")(dealer.serve)
app.add_typer(dealer_app, name="dealer")
app.command(epilog=fit.by_learner())(fit.fit)
app.command()(encode.encode)
app.command()(learners.learners)
app.command()(predict.predict)
app.command()(evaluate.evaluate)
app.command()(show.show)
app.command()(report.report)
app.command()(ledger.ledger)
app.command()(sign.sign)
app.command()(sign.verify)
app.command()(audit.audit)
app.command()(certify.certify)
app.command()(plan.plan)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"privet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command and turn errors into exit codes."""
    use_any_encoding()
    warnings.showwarning = _show_warning
    warnings.simplefilter("default", UserWarning)
    try:
        with _removing_files():
            code = app(standalone_mode=False)
    except EngineError as error:
        _fail(str(error))
        code = 2 if isinstance(error, EngineUnusableError) else 5
    except PrivetError as error:
        _fail(str(error))
        code = 2
    except _UsageError as error:
        code = _explain(error)
    except typer.Abort:
        _fail("interrupted")
        code = 130
    except Exception as error:
        _fail(
            f"unexpected ({type(error).__name__}). Its message is withheld, because it could quote "
            "the data; the same call in Python shows it."
        )
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _removing_files() -> Iterator[None]:
    """Let a request to end (SIGTERM, SIGHUP) end the command in order, so that no blocks stay."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    changed = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        changed = []  # only the main thread may
    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _explain(error: Any) -> int:
    """Say what is wrong with the arguments; without any, the help has been shown already."""
    message = error.format_message().strip().rstrip(".")
    if message:
        context = error.ctx
        path = "privet" if context is None else context.command_path
        _fail(f"{message}. See: {path} --help")
    return int(error.exit_code)


def _fail(message: str) -> None:
    say(message, lead="Error:", style="red", error=True)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any
) -> None:
    """Show a warning of Privet; of others only that there is one, since they may quote the data."""
    ours = category.__module__.startswith("privet.") or (
        category is UserWarning and Path(filename).is_relative_to(Path(__file__).parents[1])
    )
    text = str(message) if ours else f"another library has one ({category.__name__})"
    say(text, lead="Warning:", style="yellow", error=True)
