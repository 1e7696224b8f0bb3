"""A tree as a picture that any browser shows: SVG without scripts, styles or other files."""

from __future__ import annotations

import colorsys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from privet.export._outline import Entry, Verdict, number, outline, printable, word
from privet.schema import Schema
from privet.tree import Tree

_FONT = 12  # pixels; all other lengths too
_LINE = 16
_PADDING = 8
_GAP = 14  # between neighbours; twice that beside one that has children
_BOX = 2 * _LINE + _PADDING
_RISE = 34  # between a box and the labels of its branches
_LEVEL = _RISE + _LINE + 4 + _BOX
_MARGIN = 16
_LONGEST = 28  # characters; tooltips have the whole text
_INK = "#1a1a1a"
_LEGEND_WIDTH = 720
#: Light colours that stay apart for colour-blind readers. More classes get colours by hue.
_COLOURS = ("#9ecbe8", "#fdc27a", "#a9d8a0", "#f3b0c3", "#cdbbe6", "#f5eb95", "#8fd6cb", "#d2d2d2")
#: Low and high means.
_RAMP = ((245, 248, 252), (107, 174, 214))


def to_svg(tree: Tree) -> str:
    """Return the tree as a self-contained SVG picture.

    Leaves that say the same are drawn as one, as in :func:`~privet.export.to_text`. Tooltips hold
    full conditions and released counts. The picture is as wide as the tree needs.

    Examples
    --------
    >>> from privet.schema import Categorical, Schema
    >>> from privet.tree import Grouping, Node
    >>> schema = Schema({"sex": Categorical(["f", "m"])}, "stay", bounds=(0, 30))
    >>> to_svg(Tree(schema, (
    ...     Node(Grouping("sex", (0, 1), other=1), (1, 2)), Node(value=(4.5,)), Node(value=(6.0,)),
    ... )))[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    entries = outline(tree)
    boxes = _layout(entries)
    legend, legend_width, top = _legend(tree.schema, max(_LEGEND_WIDTH, _right(boxes)))
    width = max(_right(boxes), legend_width) + 2 * _MARGIN
    height = top + max(box.top for box in boxes) + _BOX + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" role="img" font-family="Helvetica, Arial, '
        f'sans-serif" font-size="{_FONT}" fill="{_INK}" text-anchor="middle">',
        f"<title>{escape(f'Decision tree for {printable(tree.schema.target)}')}</title>",
        f'<rect width="{width:.1f}" height="{height:.1f}" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
        *legend,
        f'<g transform="translate({(width - _right(boxes)) / 2 - _MARGIN:.1f} {top})">',
    ]
    for entry, box, path in zip(entries, boxes, _paths(entries), strict=True):
        parts += _edges(box, [boxes[child] for child in entry.children])
        parts += _node(entry, box, path, tree.schema)
    return "\n".join([*parts, "</g>", "</g>", "</svg>"])


@dataclass(frozen=True)
class _Box:
    """Where an entry is drawn: a box with the label of its branch above it."""

    middle: float
    top: float
    width: float
    lines: tuple[str, ...]
    branch: str


def _layout(entries: Sequence[Entry]) -> list[_Box]:
    """Place children side by side, as far apart as their subtrees need, and parents above them."""
    lines = [_box_lines(entry) for entry in entries]
    branches = [_short(entry.branch) for entry in entries]
    widths = [max(_width(line) for line in texts) + 2 * _PADDING for texts in lines]
    left = [0.0] * len(entries)  # how far a subtree reaches to each side of its root's middle
    right = [0.0] * len(entries)
    shift = [0.0] * len(entries)  # from the parent's middle
    for i in reversed(range(len(entries))):
        left[i] = right[i] = max(widths[i], _width(branches[i])) / 2
        children = entries[i].children
        if children:
            reach = 0.0
            for before, child in pairwise(children):
                near = not entries[before].children and not entries[child].children
                reach += right[before] + (_GAP if near else 2 * _GAP) + left[child]
                shift[child] = reach
            for child in children:
                shift[child] -= reach / 2
            left[i] = max(left[i], left[children[0]] + reach / 2)
            right[i] = max(right[i], right[children[-1]] + reach / 2)
    middle, depth = [left[0]] * len(entries), [0] * len(entries)
    for i, entry in enumerate(entries):
        for child in entry.children:
            middle[child], depth[child] = middle[i] + shift[child], depth[i] + 1
    return [
        _Box(*place)
        for place in zip(middle, (d * _LEVEL for d in depth), widths, lines, branches, strict=True)
    ]


def _box_lines(entry: Entry) -> tuple[str, ...]:
    if entry.verdict is None:
        return (_short(entry.feature),)
    return tuple(_short(text) for text in (entry.verdict.label, entry.verdict.probability) if text)


def _right(boxes: Sequence[_Box]) -> float:
    return max(box.middle + max(box.width, _width(box.branch)) / 2 for box in boxes)


def _edges(parent: _Box, children: Sequence[_Box]) -> list[str]:
    """Draw a line down from the parent, one across, and one down to the label of each child."""
    if not children:
        return []
    start, bar = parent.top + _BOX, parent.top + _BOX + _RISE / 2
    end = parent.top + _BOX + _RISE - 2
    path = f"M{parent.middle:.1f} {start:.1f}V{bar:.1f}M{children[0].middle:.1f} {bar:.1f}"
    path += f"H{children[-1].middle:.1f}"
    path += "".join(f"M{child.middle:.1f} {bar:.1f}V{end:.1f}" for child in children)
    return [f'<path d="{path}" fill="none" stroke="#777777"/>']


def _node(entry: Entry, box: _Box, path: str, schema: Schema) -> list[str]:
    """Draw a box with its text, the label above it, and a tooltip for both."""
    verdict = entry.verdict
    fill = "#ffffff" if verdict is None else _colour(verdict, schema)
    corner = 2 if verdict is None else _BOX // 4
    first = box.top + _BOX / 2 + _FONT * 0.35 - _LINE / 2 * (len(box.lines) - 1)
    parts = [
        "<g>",
        f"<title>{escape(path + _tooltip(entry))}</title>",
        f'<rect x="{box.middle - box.width / 2:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" '
        f'height="{_BOX}" rx="{corner}" fill="{fill}" stroke="#777777"/>',
    ]
    if box.branch:
        place = f'x="{box.middle:.1f}" y="{box.top - 6:.1f}"'
        parts.append(f'<text {place} fill="#444444">{escape(box.branch)}</text>')
    for row, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if row == 0 else ""
        y = first + row * _LINE
        parts.append(f'<text x="{box.middle:.1f}" y="{y:.1f}"{weight}>{escape(line)}</text>')
    return [*parts, "</g>"]


def _paths(entries: Sequence[Entry]) -> list[str]:
    """Return the conditions that lead to each entry, one per line."""
    paths = [""] * len(entries)
    for i, entry in enumerate(entries):
        for child in entry.children:
            paths[child] = f"{paths[i]}{entries[child].condition}\n"
    return paths


def _tooltip(entry: Entry) -> str:
    if entry.verdict is None:
        lines = [f"test of {entry.feature}", entry.counts]
    else:
        lines = [entry.verdict.label, *entry.verdict.details]
    return "\n".join(filter(None, lines))


def _legend(schema: Schema, available: float) -> tuple[list[str], float, int]:
    """Return the legend's parts, its width, and the height that it takes."""
    title = _short(printable(schema.target))
    swatches = _swatches(schema)
    parts = [f'<text y="{_FONT}" text-anchor="start" font-weight="bold">{escape(title)}</text>']
    x, y, widest = _width(title) + 2 * _GAP, 0, 0.0
    for colour, label in swatches:
        taken = _LINE + 6 + _width(label)
        if x + taken > available and x > 0:
            x, y = 0.0, y + _LINE + 6
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{_LINE}" height="{_LINE}" rx="3" fill="{colour}" '
            f'stroke="#777777"/><text x="{x + _LINE + 6:.1f}" y="{y + _FONT}" '
            f'text-anchor="start">{escape(label)}</text>'
        )
        x += taken + _GAP
        widest = max(widest, x)
    return parts, widest, y + _LINE + 2 * _GAP


def _swatches(schema: Schema) -> list[tuple[str, str]]:
    if schema.classes is not None:
        labels = (_short(word(value)) for value in schema.classes)
        return [(_class_colour(i), label) for i, label in enumerate(labels)]
    assert schema.bounds is not None
    low, high = schema.bounds
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    return [(_mean_colour(share), number(low + (high - low) * share)) for share in shares]


def _colour(verdict: Verdict, schema: Schema) -> str:
    if schema.bounds is None:
        return _class_colour(int(verdict.answer))
    low, high = schema.bounds
    return _mean_colour(min(1.0, max(0.0, (verdict.answer - low) / (high - low))))


def _class_colour(place: int) -> str:
    if place < len(_COLOURS):
        return _COLOURS[place]
    hue = place * 0.618034 % 1  # steps of the golden ratio spread any number of hues
    red, green, blue = colorsys.hls_to_rgb(hue, 0.8, 0.6)
    return _hex(255 * red, 255 * green, 255 * blue)


def _mean_colour(share: float) -> str:
    low, high = _RAMP
    return _hex(*(a + (b - a) * share for a, b in zip(low, high, strict=True)))


def _hex(*channels: float) -> str:
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _width(text: str) -> float:
    """Return what a line takes at most, in bold letters of the wider sans-serif fonts."""
    return sum(_em(character) for character in text) * _FONT


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW@%…":
        return 1.05
    if character in "iIjlft.,:;'|![]()r ":
        return 0.45
    return 0.8 if character.isupper() or ord(character) > 127 else 0.68
