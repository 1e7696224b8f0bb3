"""The command ``privet``: one module per command, each thin over the Python API.

Bad input ends with exit code 2 and one sentence. An unexpected error ends with exit code 1 and its
type only: messages of other libraries may quote the data.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console

from privet import __version__
from privet.cli import audit, certify, demo, fit, ledger, plan, predict, schema, show
from privet.errors import PrivetError

app = typer.Typer(
    name="privet",
    help="Learn decision trees from sensitive tables and publish them with differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
schema_app = typer.Typer(help="Write down what is public about a table.", no_args_is_help=True)
schema_app.command("draft")(schema.draft)
app.add_typer(schema_app, name="schema")
app.command()(fit.fit)
app.command()(predict.predict)
app.command()(show.show)
app.command()(ledger.ledger)
app.command()(audit.audit)
app.command()(certify.certify)
app.command()(plan.plan)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privet {__version__}")
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
    errors = Console(stderr=True, highlight=False)

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        errors.print(f"[yellow]Warning:[/] {_escaped(message)}", soft_wrap=True)

    warnings.showwarning = show_warning
    warnings.simplefilter("default", UserWarning)
    try:
        app()
    except PrivetError as error:
        errors.print(f"[red]Error:[/] {_escaped(error)}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("Interrupted.")
        sys.exit(130)
    except Exception as error:
        errors.print(
            f"[red]Unexpected error[/] ({type(error).__name__}). Its message is withheld, because "
            "it could quote the data; the same call in Python shows it.",
            soft_wrap=True,
        )
        sys.exit(1)


def _escaped(text: object) -> str:
    return str(text).replace("[", r"\[")
