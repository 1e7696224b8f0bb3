"""Small pieces of HTML for notebooks: what objects of Privet look like there.

All text is escaped, and what a reader would not see is made visible (:mod:`privet.visible`): names
and notes may come from hostile files. There are no scripts, and no styles but plain ones, so that
pieces look alike on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from privet.visible import visible

#: Characters of a cell.
_LONGEST = 300
_CELL = 'style="text-align:left;padding:0.1em 1em 0.1em 0"'


def text(value: object) -> str:
    """Return text that may stand in a page."""
    return escape(visible(str(value), _LONGEST))


def paragraph(value: object, *, bold: bool = False) -> str:
    """Return a paragraph."""
    return f"<p><b>{text(value)}</b></p>" if bold else f"<p>{text(value)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table; every cell is text and nothing else."""
    cells = "".join(f'<th scope="col" {_CELL}>{text(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    title = f'<caption style="text-align:left">{text(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, *inner: str) -> str:
    """Return pieces that are shown when somebody opens them."""
    return f"<details><summary>{text(title)}</summary>{''.join(inner)}</details>"


def whole(*inner: str) -> str:
    """Return pieces as one."""
    return f'<div class="privet">{"".join(inner)}</div>'
