"""What commands write: tables of predictions, and models, which are not lost if a disk is full."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privet.cli._terminal import print_whole, say
from privet.errors import OutputError

if TYPE_CHECKING:
    from privet.model import Model
    from privet.outputs import OutputFile

#: The exit code if a model was learnt and paid for, but is not where it should be.
ELSEWHERE = 4


def check_ending(path: Path, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not say one of the forms that can be written."""
    if path.suffix.lower() not in endings:
        raise OutputError(f"cannot write {path}: its name must end in {' or '.join(endings)}")


def write_table(columns: dict[str, Any], output: OutputFile) -> None:
    """Write columns as CSV or Parquet; values of several types are written as text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from privet.outputs import UNWRITABLE

    try:
        table = pa.table(
            {
                name: values.astype(str) if values.dtype == object else values
                for name, values in columns.items()
            }
        )
    except UnicodeEncodeError:
        raise OutputError(f"cannot write {output.path}: {UNWRITABLE}") from None
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
        text = model.to_json()
        place = _written_elsewhere(text)
        if place is not None:
            where = f"it is in {place}: keep it"
        elif print_whole(text):
            where = "it is on standard output, as JSON: keep it"
        else:
            where = "it could not be kept anywhere, not on standard output either"
        say(
            f"{error}. The model was learnt and its budget is spent; {where}.",
            lead="Error:",
            style="red",
            error=True,
        )
        raise typer.Exit(ELSEWHERE) from None


def _written_elsewhere(text: str) -> Path | None:
    """Write a model into a folder of temporary files and return its path, if there is room."""
    try:
        handle, name = tempfile.mkstemp(prefix="privet-model-", suffix=".json")
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
