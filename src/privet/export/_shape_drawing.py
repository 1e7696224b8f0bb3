"""The shapes of an additive ensemble side by side: steps over a number, bars for categories."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from privet.ensemble import Shape
from privet.export._drawing import (
    FONT,
    GAP,
    INK,
    LINE,
    STROKE,
    Drawing,
    line_colour,
    score_colour,
    short,
    text_width,
    tooltip,
)
from privet.export._outline import shape_tree
from privet.export._words import branch_words, number, score_words, signed
from privet.schema import Date, Integer, Numeric, Schema, day_of_text, day_text
from privet.visible import visible

_WIDTH = 200  # of a number's range
_OVERHANG = 8  # beyond it: values above the range belong to the last interval
_HEIGHT = 120  # of the scores' range
_TOP = LINE + 8  # of the plot, below the feature's name
_BAR = 14
_LONGEST = 16  # characters below a bar
_ROW = 1080
#: Deviations of the noise on either side of a curve.
BAND = 2.0


@dataclass(frozen=True)
class _Scale:
    """The scores' axis, which all shapes share. It contains zero."""

    low: float
    high: float

    def y(self, score: float) -> float:
        return _TOP + _HEIGHT * ((self.high - score) / (self.high - self.low))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(self.y(tick), signed(tick)) for tick in _ticks(self.low, self.high, 5)]


@dataclass(frozen=True)
class _Column:
    """An interval or a category: where it stands, what it says and how that is put."""

    left: float
    right: float
    scores: Sequence[float]
    condition: str
    label: str = ""
    #: The deviation of the noise, if it is known and there is one score.
    noise: float | None = None

    @property
    def band(self) -> tuple[float, float]:
        """What the noise may have moved the score to."""
        reach = BAND * (self.noise or 0.0)
        return self.scores[0] - reach, self.scores[0] + reach


def shapes_drawing(shapes: Sequence[Shape], schema: Schema) -> Drawing:
    """Draw shapes side by side; a band of two deviations of known noise around each, if there is.

    Of several scores only the lines are drawn: bands would hide each other.
    """
    drawn = [end for shape in shapes for ends in _ends(shape) for end in ends]
    low, high = float(min(drawn, default=0)), float(max(drawn, default=0))
    scale = _Scale(min(low, 0.0), max(high, 0.0))
    if scale.high - scale.low < 1e-290:  # nothing to be seen, and too small to divide by
        scale = _Scale(-1.0, 1.0)
    return _in_rows([_panel(shape, schema, scale) for shape in shapes])


def _ends(shape: Shape) -> list[tuple[float, float]]:
    """Return what the scores of a shape reach to: with their bands, if these are drawn."""
    rows = np.vstack([shape.scores, shape.missing])
    reach = np.zeros_like(rows)
    if shape.deviations is not None and rows.shape[1] == 1:
        reach = BAND * shape.deviations
    return list(zip((rows - reach).flat, (rows + reach).flat, strict=True))


def _in_rows(panels: Sequence[Drawing]) -> Drawing:
    parts: list[str] = []
    x, y, widest, height = 0.0, 0.0, 0.0, 0.0
    for panel in panels:
        if x > 0 and x + panel.width > _ROW:
            x, y = 0.0, y + panel.height + 2 * GAP
        parts += panel.moved(x, y)
        widest, height = max(widest, x + panel.width), y + panel.height
        x += panel.width + 2 * GAP
    return Drawing(parts, widest, height)


def _panel(shape: Shape, schema: Schema, scale: _Scale) -> Drawing:
    """Draw one shape with its axes."""
    axis = max(text_width(text) for _, text in scale.ticks) + 6
    steps, bars = _columns(shape, schema, axis)
    right = bars[-1].right
    title = short(visible(shape.feature))
    parts = [
        "<g>",
        f"<title>{escape(visible(shape.feature))}</title>",
        f'<text y="{FONT}" text-anchor="start" font-weight="bold">{escape(title)}</text>',
    ]
    for y, text in scale.ticks:
        parts.append(f'<path d="M{axis:.1f} {y:.1f}H{right:.1f}" stroke="#dddddd"/>')
        place = f'x="{axis - 4:.1f}" y="{y + FONT * 0.35:.1f}"'
        parts.append(f'<text {place} text-anchor="end" fill="#444444">{escape(text)}</text>')
    for column in steps:
        parts += _area(column, schema, scale)
    for column in bars:
        parts += _bars(column, schema, scale)
        if column.noise is not None:
            parts += _whisker(column, scale)
    if steps and steps[0].noise is not None:
        parts.append(_band(steps, scale))
    zero = scale.y(0)
    parts.append(f'<path d="M{axis:.1f} {zero:.1f}H{right:.1f}" stroke="{STROKE}"/>')
    parts += _curves(steps, scale)
    feature = schema.features[shape.feature]
    if isinstance(feature, Numeric):
        parts += _number_axis(feature, axis)
    parts.append("</g>")
    return Drawing(parts, max(right, text_width(title)), _TOP + _HEIGHT + LINE + 4)


def _columns(shape: Shape, schema: Schema, axis: float) -> tuple[list[_Column], list[_Column]]:
    """Return the intervals of a number, and whatever gets bars: missing values, categories."""
    test = shape_tree(shape, schema).nodes[0].test
    assert test is not None
    words = branch_words(test, schema)
    rows = [*shape.scores.tolist(), shape.missing.tolist()]
    noise: list[float | None] = [None] * len(rows)
    if shape.deviations is not None and len(rows[0]) == 1:
        noise = [float(deviation) for deviation in shape.deviations[:, 0]]
    feature, left, steps = schema.features[shape.feature], axis, []
    if isinstance(feature, Numeric):
        assert shape.edges is not None
        places = [_across(edge, feature, axis) for edge in shape.edges]
        ends = pairwise((axis, *places, axis + _WIDTH + _OVERHANG))
        steps = [
            _Column(*place, scores, condition, noise=deviation)
            for place, scores, (condition, _), deviation in zip(
                ends, rows[:-1], words[:-1], noise[:-1], strict=True
            )
        ]
        left, rows, words, noise = axis + _WIDTH + _OVERHANG, rows[-1:], words[-1:], noise[-1:]
    bars = []
    for scores, (condition, branch), deviation in zip(rows, words, noise, strict=True):
        label = short(branch, _LONGEST)
        right = left + max(text_width(label), _BAR * len(scores)) + GAP
        bars.append(_Column(left, right, scores, condition, label, deviation))
        left = right
    return steps, bars


def _across(value: float, feature: Numeric, axis: float) -> float:
    return axis + _WIDTH * ((value - feature.low) / (feature.high - feature.low))


def _area(column: _Column, schema: Schema, scale: _Scale) -> list[str]:
    """Fill an interval between zero and its score; several scores have lines only."""
    parts = _tooltip(column, schema)
    if len(column.scores) == 1:
        paint = f'fill="{score_colour(column.scores)}" shape-rendering="crispEdges"'
        parts.append(_bar(column.left, column.right, column.scores[0], paint, scale))
    return [*parts, "</g>"]


def _bars(column: _Column, schema: Schema, scale: _Scale) -> list[str]:
    """Draw one bar per score, and the label below."""
    middle = (column.left + column.right) / 2
    first = middle - _BAR * len(column.scores) / 2
    parts = _tooltip(column, schema)
    for place, score in enumerate(column.scores):
        fill = score_colour([score]) if len(column.scores) == 1 else line_colour(place)
        paint = f'fill="{fill}" stroke="{STROKE}"'
        left = first + place * _BAR
        parts.append(_bar(left + 1, left + _BAR - 1, score, paint, scale))
    y = _TOP + _HEIGHT + LINE
    parts.append(f'<text x="{middle:.1f}" y="{y}" fill="#444444">{escape(column.label)}</text>')
    return [*parts, "</g>"]


def _tooltip(column: _Column, schema: Schema) -> list[str]:
    """Open a group that says what it shows wherever the pointer is in its column."""
    text = f"{column.condition}\n{score_words(column.scores, schema)}"
    if column.noise is not None:
        text += f" ± {number(BAND * column.noise)} by noise"
    return [
        "<g>",
        f"<title>{tooltip(text)}</title>",
        f'<rect x="{column.left:.1f}" y="{_TOP}" width="{column.right - column.left:.1f}" '
        f'height="{_HEIGHT}" fill-opacity="0"/>',
    ]


def _bar(left: float, right: float, score: float, paint: str, scale: _Scale) -> str:
    top, bottom = sorted((scale.y(score), scale.y(0)))
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" {paint}/>'
    )


def _band(steps: Sequence[_Column], scale: _Scale) -> str:
    """Fill the band that noise may have moved a curve in; the pointer looks through it."""
    path = f"M{steps[0].left:.1f} {scale.y(steps[0].band[1]):.1f}"
    for step in steps:
        path += f"V{scale.y(step.band[1]):.1f}H{step.right:.1f}"
    for step in reversed(steps):
        path += f"V{scale.y(step.band[0]):.1f}H{step.left:.1f}"
    return f'<path d="{path}Z" fill="{INK}" fill-opacity="0.16" pointer-events="none"/>'


def _whisker(column: _Column, scale: _Scale) -> list[str]:
    """Draw what noise may have moved a bar to."""
    middle = (column.left + column.right) / 2
    low, high = (scale.y(end) for end in column.band)
    path = f"M{middle:.1f} {low:.1f}V{high:.1f}M{middle - 3:.1f} {low:.1f}h6"
    path += f"M{middle - 3:.1f} {high:.1f}h6"
    return [f'<path d="{path}" stroke="{INK}" fill="none" pointer-events="none"/>']


def _curves(steps: Sequence[_Column], scale: _Scale) -> list[str]:
    """Draw one line per score; the pointer looks through them."""
    if not steps:
        return []
    several = len(steps[0].scores) > 1
    parts = []
    for place in range(len(steps[0].scores)):
        path = f"M{steps[0].left:.1f} {scale.y(steps[0].scores[place]):.1f}"
        for step in steps:
            path += f"V{scale.y(step.scores[place]):.1f}H{step.right:.1f}"
        stroke = line_colour(place) if several else INK
        parts.append(
            f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="1.5" '
            'pointer-events="none"/>'
        )
    return parts


def _number_axis(feature: Numeric, axis: float) -> list[str]:
    """Label round numbers below the plot, as many as there is room for."""
    y, end = _TOP + _HEIGHT, axis + _WIDTH + _OVERHANG
    for wanted in (5, 4, 3, 2, 1):
        labels = [(_across(tick, feature, axis), text) for tick, text in _labels(feature, wanted)]
        halves = [text_width(text) / 2 for _, text in labels]
        # A label at an end of the axis is moved so far that it stays in the picture.
        middles = [
            min(max(x, half), end - half) for (x, _), half in zip(labels, halves, strict=True)
        ]
        spans = [(x - half, x + half) for x, half in zip(middles, halves, strict=True)]
        if all(right + 6 <= left for (_, right), (left, _) in pairwise(spans)):
            break
    return [
        f'<path d="M{x:.1f} {y}v3" stroke="{STROKE}"/>'
        f'<text x="{middle:.1f}" y="{y + LINE}" fill="#444444">{escape(text)}</text>'
        for (x, text), middle in zip(labels, middles, strict=True)
    ]


def _labels(feature: Numeric, wanted: int) -> list[tuple[float, str]]:
    """Return round numbers between a feature's bounds with their texts, about as many as wanted."""
    if isinstance(feature, Date):
        days = _days(feature.low, feature.high, wanted)
        return list(zip(days, _day_labels(days), strict=True))
    ticks = _ticks(feature.low, feature.high, wanted)
    if isinstance(feature, Integer):
        ticks = [tick for tick in ticks if tick.is_integer()]
    return [(tick, number(tick)) for tick in ticks]


def _days(low: float, high: float, wanted: int) -> list[float]:
    """Return first days of years or months, or other days, about as many as wanted.

    Examples
    --------
    >>> [day_text(day) for day in _days(18262, 18992, 4)]
    ['2020-01-01', '2020-07-01', '2021-01-01', '2021-07-01']
    """
    first, last = (datetime.date.fromisoformat(day_text(end)) for end in (low, high))
    start, stop = (12 * day.year + day.month - 1 for day in (first, last))
    raw = (stop - start) / wanted
    if raw < 1:
        step = max(1, math.ceil((high - low) / wanted))
        return [float(day) for day in range(int(low), int(high) + 1, step)]
    years = [12 * factor * 10**power for power in range(4) for factor in (1, 2, 5)]
    step = next(months for months in (1, 2, 3, 6, *years) if months >= raw)
    places = range(-(-start // step) * step, stop + 1, step)
    found = [day_of_text(f"{place // 12:04}-{place % 12 + 1:02}-01") for place in places]
    return [day for day in found if low <= day <= high]


def _day_labels(days: Sequence[float]) -> list[str]:
    """Return days without what all of them share: years if they are first days of years.

    Examples
    --------
    >>> _day_labels([day_of_text("2020-01-01"), day_of_text("2021-01-01")])
    ['2020', '2021']
    >>> _day_labels([day_of_text("2020-01-01"), day_of_text("2020-07-01")])
    ['2020-01', '2020-07']
    """
    texts = [day_text(day) for day in days]
    for shared in ("-01-01", "-01"):
        if all(text.endswith(shared) for text in texts):
            return [text.removesuffix(shared) for text in texts]
    return texts


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    """Return some round numbers between two others, about as many as wanted.

    Examples
    --------
    >>> _ticks(0, 120, 5), _ticks(-0.7, 0.4, 5)
    ([0.0, 25.0, 50.0, 75.0, 100.0], [-0.5, -0.25, 0.0, 0.25])
    """
    raw = max((high - low) / wanted, 1e-300)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10, 20) if factor * unit >= raw)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
