"""HTML in which text cannot become markup: whatever is not :class:`Html` is escaped.

Names, classes, notes and texts of files may be hostile. They are made visible
(:mod:`privet.visible`) and escaped in one place, here; nothing else puts text into a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from privet.visible import visible

#: Longer texts are cut off, with a remark: a page is for reading.
LONGEST = 4_000
#: Tables of no more rows are not divided between two sheets of paper.
_SHORT = 12


class Html(str):
    """Markup that may stand in a page as it is."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as text of a page: visible, escaped, and not absurdly long."""
    if isinstance(value, Html):
        return value
    return Html(escape(visible(str(value), LONGEST)))


def tag(element: str, /, *children: object, **attributes: object) -> Html:
    """Return an element.

    Attributes are named as in Python: ``class_``, ``aria_label``. None and False leave one out,
    True gives it no value.

    Examples
    --------
    >>> tag("td", "a < b", class_="number", hidden=None)
    '<td class="number">a &lt; b</td>'
    """
    written = []
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {label}")
        elif value is not None and value is not False:
            written.append(f' {label}="{text(value)}"')
    start = f"<{element}{''.join(written)}>"
    if element in ("br", "hr", "meta", "input"):
        return Html(start)
    return Html(f"{start}{joined(children)}</{element}>")


def joined(parts: Iterable[object]) -> Html:
    """Return pieces one after the other; None is nothing."""
    return Html("".join(text(part) for part in parts if part is not None))


def table(
    caption: object,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    total: Sequence[object] | None = None,
    marked: Sequence[int] = (),
    class_: str | None = None,
) -> Html:
    """Return a table: the first cell of a row is its header.

    Parameters
    ----------
    caption, head, rows
    numbers : sequence of int
        The columns of numbers, which stand at the right.
    total : sequence, optional
        The last row.
    marked : sequence of int
        The rows that are set off.
    class_ : str, optional
    """

    def cells(row: Sequence[object]) -> Html:
        found = []
        for place, cell in enumerate(row):
            kind = "number" if place in numbers else None
            if place == 0:
                found.append(tag("th", cell, scope="row", class_=kind))
            else:
                found.append(tag("td", cell, class_=kind))
        return joined(found)

    titles = joined(
        tag("th", title, scope="col", class_="number" if place in numbers else None)
        for place, title in enumerate(head)
    )
    rows = list(rows)
    body = joined(
        tag("tr", cells(row), class_="marked" if place in marked else None)
        for place, row in enumerate(rows)
    )
    short = "short" if len(rows) <= _SHORT else None  # on paper, all on one page
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", titles)),
        tag("tbody", body),
        None if total is None else tag("tfoot", tag("tr", cells(total))),
        class_=" ".join(name for name in (class_, short) if name) or None,
    )
    # A wide table scrolls by itself, also by keyboard.
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def folded(summary: object, *inner: object, opened: bool = False, printed: bool = False) -> Html:
    """Return pieces that are shown when somebody opens them, or on paper."""
    kind = "printed" if printed else None
    return tag("details", tag("summary", summary), *inner, open=opened, class_=kind)


def listed(items: Iterable[object]) -> Html:
    """Return a list."""
    return tag("ul", *(tag("li", item) for item in items))


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return names with what there is to say of them."""
    return tag(
        "dl",
        *(joined((tag("dt", name), tag("dd", value))) for name, value in pairs),
        class_="facts",
    )
