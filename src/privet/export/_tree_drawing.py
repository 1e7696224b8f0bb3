"""One tree as boxes below each other, joined by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from privet.export._drawing import (
    FONT,
    GAP,
    LINE,
    NEUTRAL,
    STROKE,
    Drawing,
    class_colour,
    mean_colour,
    score_colour,
    short,
    text_width,
    tooltip,
)
from privet.export._merged import Answer
from privet.export._outline import Entry
from privet.export._words import plural
from privet.schema import Schema

_PADDING = 8
BOX = 2 * LINE + _PADDING
_RISE = 34  # between a box and the labels of its branches
_LEVEL = _RISE + LINE + 4 + BOX
_CONDITIONS = 64  # in a tooltip; learners make no deeper trees
_TOOLTIP_LINE = 2000  # characters


def tree_drawing(entries: Sequence[Entry], schema: Schema) -> Drawing:
    """Draw a tree."""
    boxes = boxes_of(entries)
    parts: list[str] = []
    for entry, box, path in zip(entries, boxes, _paths(entries), strict=True):
        parts += _edges(box, [boxes[child] for child in entry.children])
        parts += _node(entry, box, path, schema)
    width = max(box.middle + max(box.width, text_width(box.branch)) / 2 for box in boxes)
    return Drawing(parts, width, max(box.top for box in boxes) + BOX)


@dataclass(frozen=True)
class Box:
    """Where an entry is drawn: a box with the label of its branch above it."""

    middle: float
    top: float
    width: float
    lines: tuple[str, ...]
    branch: str


def boxes_of(entries: Sequence[Entry]) -> list[Box]:
    """Place children side by side, as far apart as their subtrees need, and parents above them."""
    lines = [_box_lines(entry) for entry in entries]
    branches = [short(entry.branch) for entry in entries]
    widths = [max(text_width(line) for line in texts) + 2 * _PADDING for texts in lines]
    left = [0.0] * len(entries)  # how far a subtree reaches to each side of its root's middle
    right = [0.0] * len(entries)
    shift = [0.0] * len(entries)  # from the parent's middle
    for i in reversed(range(len(entries))):
        left[i] = right[i] = max(widths[i], text_width(branches[i])) / 2
        children = entries[i].children
        if children:
            reach = 0.0
            for before, child in pairwise(children):
                near = not entries[before].children and not entries[child].children
                reach += right[before] + (GAP if near else 2 * GAP) + left[child]
                shift[child] = reach
            for child in children:
                shift[child] -= reach / 2
            left[i] = max(left[i], left[children[0]] + reach / 2)
            right[i] = max(right[i], right[children[-1]] + reach / 2)
    middle, depth = [left[0]] * len(entries), [0] * len(entries)
    for i, entry in enumerate(entries):
        for child in entry.children:
            middle[child], depth[child] = middle[i] + shift[child], depth[i] + 1
    top = LINE if branches[0] else 0
    return [
        Box(*place)
        for place in zip(
            middle, (top + d * _LEVEL for d in depth), widths, lines, branches, strict=True
        )
    ]


def _box_lines(entry: Entry) -> tuple[str, ...]:
    if entry.verdict is None:
        return (short(entry.feature),)
    folded = f"({plural(entry.verdict.folded, 'test')} folded)" if entry.verdict.folded else ""
    texts = (entry.verdict.headline, entry.verdict.probability or folded)
    return tuple(short(text) for text in texts if text)


def _edges(parent: Box, children: Sequence[Box]) -> list[str]:
    """Draw a line down from the parent, one across, and one down to the label of each child."""
    if not children:
        return []
    start, bar = parent.top + BOX, parent.top + BOX + _RISE / 2
    end = parent.top + BOX + _RISE - 2
    path = f"M{parent.middle:.1f} {start:.1f}V{bar:.1f}M{children[0].middle:.1f} {bar:.1f}"
    path += f"H{children[-1].middle:.1f}"
    path += "".join(f"M{child.middle:.1f} {bar:.1f}V{end:.1f}" for child in children)
    return [f'<path d="{path}" fill="none" stroke="{STROKE}"/>']


def _node(entry: Entry, box: Box, path: str, schema: Schema) -> list[str]:
    """Draw a box with its text, the label above it, and a tooltip for both."""
    verdict = entry.verdict
    fill = "#ffffff" if verdict is None else colour_of(verdict.answer, schema)
    corner = 2 if verdict is None else BOX // 4
    uncertain = verdict is not None and (verdict.within_noise or verdict.folded)
    dashes = ' stroke-dasharray="4 3"' if uncertain else ""
    first = box.top + BOX / 2 + FONT * 0.35 - LINE / 2 * (len(box.lines) - 1)
    parts = [
        "<g>",
        f"<title>{tooltip(path + _tooltip(entry))}</title>",
        f'<rect x="{box.middle - box.width / 2:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" '
        f'height="{BOX}" rx="{corner}" fill="{fill}" stroke="{STROKE}"{dashes}/>',
    ]
    if box.branch:
        place = f'x="{box.middle:.1f}" y="{box.top - 6:.1f}"'
        parts.append(f'<text {place} fill="#444444">{escape(box.branch)}</text>')
    for row, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if row == 0 else ""
        y = first + row * LINE
        parts.append(f'<text x="{box.middle:.1f}" y="{y:.1f}"{weight}>{escape(line)}</text>')
    return [*parts, "</g>"]


def _paths(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the conditions that lead to each entry, one per line: the last of them, if many do."""
    parent = [-1] * len(entries)
    depth = [0] * len(entries)
    for i, entry in enumerate(entries):
        for child in entry.children:
            parent[child], depth[child] = i, depth[i] + 1
        lines: list[str] = []
        above = i
        while above > 0 and len(lines) < _CONDITIONS:
            lines.append(short(entries[above].condition, _TOOLTIP_LINE))
            above = parent[above]
        if above > 0:
            lines.append(f"... ({depth[above]} conditions before)")
        yield "".join(f"{line}\n" for line in reversed(lines))


def _tooltip(entry: Entry) -> str:
    if entry.verdict is None:
        lines = [f"test of {entry.feature}", entry.counts]
    else:
        lines = [entry.verdict.label, *entry.verdict.details]
    return "\n".join(short(line, _TOOLTIP_LINE) for line in lines if line)


def colour_of(answer: Answer | None, schema: Schema) -> str:
    """Return the colour of what a leaf says."""
    if answer is None:
        return NEUTRAL
    if isinstance(answer, tuple):
        return score_colour(answer)
    if schema.bounds is None:
        return class_colour(int(answer))
    low, high = schema.bounds
    return mean_colour(min(1.0, max(0.0, (answer - low) / (high - low))))
