"""What commands write: tables; and models and schemas, which are paid for, and not lost."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from privet.cli._terminal import print_whole, say, say_code
from privet.errors import OutputError

if TYPE_CHECKING:
    from privet.model import Model
    from privet.outputs import OutputFile

Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that is there already.", show_default=False)
]

#: The exit code if a model was learnt and paid for, but is not where it should be.
ELSEWHERE = 4


def check_ending(path: Path, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not say one of the forms that can be written."""
    if path.suffix.lower() not in endings:
        raise OutputError(f"cannot write {path}: its name must end in {' or '.join(endings)}")


def print_table(columns: dict[str, Any]) -> None:
    """Print columns as CSV, exactly as a file would have them.

    Names and values that a terminal would obey or not show are refused.
    """
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(_arrow(columns, "standard output"), sink)
    text = sink.getvalue().to_pybytes().decode("utf-8")
    say_code(text.removesuffix("\n"))


def _arrow(columns: dict[str, Any], place: object) -> Any:
    import pyarrow as pa

    from privet.outputs import UNWRITABLE

    try:
        return pa.table(
            {
                name: values.astype(str) if values.dtype == object else values
                for name, values in columns.items()
            }
        )
    except UnicodeEncodeError:
        raise OutputError(f"cannot write {place}: {UNWRITABLE}") from None


def write_table(columns: dict[str, Any], output: OutputFile) -> None:
    """Write columns as CSV or Parquet; values of several types are written as text."""
    import pyarrow.csv
    import pyarrow.parquet

    table = _arrow(columns, output.path)
    with output.writing() as file:
        if output.path.suffix.lower() == ".parquet":
            pyarrow.parquet.write_table(table, file)
        else:
            pyarrow.csv.write_csv(table, file)


def save_model(model: Model, output: OutputFile) -> None:
    """Write a model that was paid for; if that fails, to a folder of temporary files.

    If it cannot be written there either, it goes to standard output, as JSON. A message says why
    and where it is, and the command ends with the code :data:`ELSEWHERE`, also if there is no place
    at all.
    """
    try:
        model.save(output)
    except OutputError as error:
        _keep(model.to_json(), f"{error}. The model was learnt", "model", ".json")


def save_schema(text: str, output: OutputFile) -> None:
    """Write a schema that was paid for; if that fails, as :func:`save_model` does."""
    try:
        output.write(text)
    except OutputError as error:
        _keep(text, f"{error}. The schema was discovered", "schema", ".toml")


def _keep(text: str, what: str, name: str, ending: str) -> NoReturn:
    """Put what was paid for somewhere, say where, and end the command."""
    place = _written_elsewhere(text, name, ending)
    if place is not None:
        where = f"it is in {place}: keep it"
    elif print_whole(text):
        where = f"it is on standard output, as {ending[1:].upper()}: keep it"
    else:
        where = "it could not be kept anywhere, not on standard output either"
    say(f"{what} and its budget is spent; {where}.", lead="Error:", style="red", error=True)
    raise typer.Exit(ELSEWHERE) from None


def _written_elsewhere(text: str, name: str, ending: str) -> Path | None:
    """Write a text into a folder of temporary files and return its path, if there is room."""
    try:
        handle, name = tempfile.mkstemp(prefix=f"privet-{name}-", suffix=ending)
    except OSError:  # no such folder, or a full one
        return None
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        return None
    return path
