"""All that the command prints: the one door from files to a terminal.

Names, notes and messages may come from hostile files, so nothing here is read as markup, and what
a terminal would obey or not show is made visible (:mod:`privet.visible`). Long texts are cut.

Two rules keep text from looking like the command's own words:

* A line that begins in the first column begins with words of the command. Text of a file that has
  a line of its own is indented, and long lines go on indented on the next line of the terminal.
* Colour is the command's own. The verdict on a model begins with ``Verdict:`` in the first column.

No other module of the command prints, nor imports what prints: a test sees to that.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privet.errors import OutputError
from privet.visible import quoted, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Characters of a line that are shown, and of a cell of a table.
LONGEST_LINE = 2000
LONGEST_CELL = 300
#: What a line of a file's text is indented by, and what a long line goes on with.
INDENT = "  "
#: Between two lines that say what is being done, where no bar can be drawn.
_SECONDS = 2.0


def say(text: str = "", *, style: str = "", lead: str = "", error: bool = False) -> None:
    """Print a line that begins with the command's own words.

    Parameters
    ----------
    text : str
        The line; names in it may come from files.
    style : str, default=""
        How the lead looks, or the whole line if there is none.
    lead : str, default=""
        What stands before the text, such as ``"Error:"``.
    error : bool, default=False
        Print to standard error.
    """
    from rich.text import Text

    shown = visible(text, LONGEST_LINE)
    line = Text(shown, style="" if lead else style)
    if lead:
        line = Text.assemble((lead, style), " ", line)
    _print(line, _console(error=error))


def say_lines(text: str) -> None:
    """Print lines that come from a file, such as a drawn tree, each of them indented."""
    from rich.text import Text

    console = _console(error=False)
    for line in text.split("\n"):
        _print(Text(INDENT + visible(line, LONGEST_LINE)), console)


def say_quoted(text: str, before: str = "-") -> None:
    """Print a text of a file on a line of its own: indented and in quotes."""
    from rich.text import Text

    line = Text(f"{INDENT}{before} {quoted(text, LONGEST_LINE)}")
    _print(line, _console(error=False))


def say_code(text: str, names: Iterable[str] = ()) -> None:
    """Print what another program is meant to read, exactly as it is.

    Parameters
    ----------
    text : str
        Lines of code.
    names : iterable of str
        Names and values that stand in the code as they are, line breaks included.

    Raises
    ------
    OutputError
        If it holds what a terminal would obey or not show. It cannot be changed, since it would
        mean something else then.
    """
    if not all(visible(part) == part for part in (*names, *text.split("\n"))):
        raise OutputError(
            "a name or value in it has characters that a terminal obeys or does not show; write "
            "it to a file with --out"
        )
    sys.stdout.write(text + "\n")


def print_whole(text: str) -> bool:
    """Write ASCII text to standard output and tell whether all of it went there."""
    rest = memoryview(text.encode("utf-8") + b"\n")
    try:
        sys.stdout.flush()
        try:
            number = sys.stdout.fileno()
        except io.UnsupportedOperation:  # it goes to the memory of another program
            sys.stdout.write(text + "\n")
            return True
        while rest:  # what is written at once may be less than all
            rest = rest[os.write(number, rest) :]
    except (OSError, ValueError, AttributeError):  # full, closed, or not there at all
        return False
    return True


class PlainTable:
    """A table whose cells are text and nothing else.

    Parameters
    ----------
    title, caption : str
        The command's own words.
    columns : sequence of str
    right : sequence of str
        The columns whose cells stand at the right.
    unbroken : sequence of str
        The columns whose cells are not broken into lines.
    light : bool, default=False
        Draw no lines but the one below the head.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        *,
        right: Sequence[str] = (),
        unbroken: Sequence[str] = (),
        caption: str = "",
        light: bool = False,
    ) -> None:
        from rich.box import HEAVY_HEAD, SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        self.title, self.columns = title, tuple(columns)
        self.rows: list[tuple[str, ...]] = []
        self._table = Table(
            title=Text(title),
            title_justify="left",
            caption=Text(caption) if caption else None,
            caption_justify="left",
            box=SIMPLE_HEAD if light else HEAVY_HEAD,
            padding=(0, 1, 0, 0) if light else (0, 1),
            pad_edge=not light,
        )
        for column in columns:
            self._table.add_column(
                Text(column),
                justify="right" if column in right else "left",
                no_wrap=column in unbroken,
                overflow="fold",
            )

    def add(self, *cells: str, style: str = "", styles: Sequence[str] = ()) -> None:
        """Add a row; ``styles`` are those of its last cells, ``style`` that of all."""
        from rich.text import Text

        self.rows.append(cells)
        each = ["" for _ in cells[len(styles) :]] + list(styles)
        self._table.add_row(
            *(
                Text(visible(cell, LONGEST_CELL), style=look)
                for cell, look in zip(cells, each, strict=True)
            ),
            style=style,
        )

    def show(self) -> None:
        """Print the table."""
        _console(error=False).print(self._table)


class _NowAndThen:
    """Where nothing can be drawn, such as a log: a line from time to time that work goes on."""

    def __init__(self, console: Console) -> None:
        self._console, self._drawn = console, console.is_terminal
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line, unless one was printed just now."""
        now = time.monotonic()
        if not self._drawn and now - self._last >= _SECONDS:
            self._last = now
            self._console.file.write(f"{visible(text, LONGEST_CELL)}\n")
            self._console.file.flush()


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error what the library is doing while it works; yield what shows more."""
    from rich.text import Text

    logger = logging.getLogger("privet")
    before = logger.level
    console = _console(error=True)
    now_and_then = _NowAndThen(console)
    with console.status(Text(title)) as status:

        def show(text: str) -> None:
            status.update(Text(visible(text, LONGEST_CELL)))
            now_and_then.say(text)

        class Update(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                show(f"{title}: {record.getMessage()}")

        handler = Update()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield show
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)


@contextmanager
def progress_bar() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Show bars on standard error; yield what starts a bar with its name."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    console = _console(error=True)
    now_and_then = _NowAndThen(console)
    with Progress(*columns, console=console, transient=True) as bars:

        def start(name: str) -> Callable[[int, int], None]:
            task = bars.add_task(visible(name, LONGEST_CELL), total=None)
            now_and_then.say(name)

            def report(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total, visible=done < total)
                now_and_then.say(f"{name}: {done} of {total}")

            return report

        yield start


def use_any_encoding() -> None:
    """Let what a terminal's encoding lacks be written as escapes instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _console(*, error: bool) -> Console:
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, emoji=False)


def _print(line: Text, console: Console) -> None:
    """Print one line; on a terminal, break it so that its rest is indented."""
    from rich.text import Text

    if not console.is_terminal:  # nothing to break, and no colours
        console.file.write(f"{line.plain}\n")
        return
    if line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    first, *rest = line.wrap(console, max(20, console.width - len(INDENT) - 2), overflow="fold")
    console.print(first, soft_wrap=True)
    for part in rest:
        console.print(Text.assemble(INDENT, INDENT, part), soft_wrap=True)
