"""What all pictures share: the frame, the legend, colours and the room that text takes.

Pictures have a white ground, so that they can be read on light and dark pages.
"""

from __future__ import annotations

import colorsys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

FONT = 12  # pixels; all other lengths too
LINE = 16
GAP = 14
INK = "#1a1a1a"
STROKE = "#777777"
_MARGIN = 16
_LONGEST = 28  # characters; tooltips have the whole text
_LEGEND_WIDTH = 720
#: Light colours that stay apart for colour-blind readers. More classes get colours by hue.
_COLOURS = ("#9ecbe8", "#fdc27a", "#a9d8a0", "#f3b0c3", "#cdbbe6", "#f5eb95", "#8fd6cb", "#d2d2d2")
#: Low and high means.
_RAMP = ((245, 248, 252), (107, 174, 214))
#: A score of zero, and what speaks for no answer.
NEUTRAL = "#eeeeee"


@dataclass(frozen=True)
class Drawing:
    """Parts of a picture that reach from (0, 0) to (width, height)."""

    parts: Sequence[str]
    width: float
    height: float

    def moved(self, x: float, y: float) -> list[str]:
        """Return the parts with their origin elsewhere."""
        return [f'<g transform="translate({x:.1f} {y:.1f})">', *self.parts, "</g>"]


def stacked(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Place drawings one below the other, in the middle."""
    width = max((drawing.width for drawing in drawings), default=0.0)
    parts: list[str] = []
    y = -gap
    for drawing in drawings:
        parts += drawing.moved((width - drawing.width) / 2, y + gap)
        y += gap + drawing.height
    return Drawing(parts, width, max(y, 0.0))


def tooltip(text: str) -> str:
    """Return the text of a title element; no line of the file begins with a part of it."""
    return escape(text).replace("\n", "&#10;")


def framed(title: str, legend: Drawing, body: Drawing) -> str:
    """Return a complete picture: the legend at the top left, the body below it in the middle."""
    inner = max(legend.width, body.width)
    width, height = inner + 2 * _MARGIN, legend.height + body.height + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" role="img" font-family="Helvetica, Arial, '
            f'sans-serif" font-size="{FONT}" fill="{INK}" text-anchor="middle">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:.1f}" height="{height:.1f}" fill="#ffffff"/>',
            *legend.moved(_MARGIN, _MARGIN),
            *body.moved(_MARGIN + (inner - body.width) / 2, _MARGIN + legend.height),
            "</svg>",
        ]
    )


def legend(
    title: str, swatches: Sequence[tuple[str, str]], notes: Sequence[str], available: float
) -> Drawing:
    """Draw a title with coloured swatches beside it, and notes below."""
    title = short(title) if swatches else short(title, 2 * _LONGEST)
    parts = [f'<text y="{FONT}" text-anchor="start" font-weight="bold">{escape(title)}</text>']
    x, y, widest = text_width(title) + 2 * GAP, 0, 0.0 if swatches else text_width(title)
    for colour, label in swatches:
        taken = LINE + 6 + text_width(label)
        if x + taken > max(_LEGEND_WIDTH, available) and x > 0:
            x, y = 0.0, y + LINE + 6
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{LINE}" height="{LINE}" rx="3" fill="{colour}" '
            f'stroke="{STROKE}"/><text x="{x + LINE + 6:.1f}" y="{y + FONT}" '
            f'text-anchor="start">{escape(label)}</text>'
        )
        x += taken + GAP
        widest = max(widest, x)
    for note in notes:
        y += LINE + 6
        shown = short(note, 4 * _LONGEST)
        widest = max(widest, text_width(shown))
        parts.append(
            f'<text y="{y + FONT}" text-anchor="start"><title>{escape(note)}</title>'
            f"{escape(shown)}</text>"
        )
    return Drawing(parts, widest, y + LINE + 2 * GAP)


def class_colour(place: int) -> str:
    """Return a light colour for a class: a ground for text."""
    if place < len(_COLOURS):
        return _COLOURS[place]
    hue = place * 0.618034 % 1  # steps of the golden ratio spread any number of hues
    return _of_hls(hue, 0.8, 0.6)


def line_colour(place: int) -> str:
    """Return a dark colour for a class: a line on white."""
    channels = (int(class_colour(place)[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, _, saturation = colorsys.rgb_to_hls(*channels)
    return _of_hls(hue, 0.33, saturation)


def mean_colour(share: float) -> str:
    """Return the colour of a mean, by its place between the target's bounds."""
    low, high = _RAMP
    return _hex(*(a + (b - a) * share for a, b in zip(low, high, strict=True)))


def score_colour(scores: Sequence[float]) -> str:
    """Return the colour of the class that scores speak for: by sign if there is only one score."""
    if len(scores) > 1:
        return class_colour(list(scores).index(max(scores)))
    return class_colour(int(scores[0] > 0)) if scores[0] else NEUTRAL


def _of_hls(hue: float, lightness: float, saturation: float) -> str:
    return _hex(*(255 * channel for channel in colorsys.hls_to_rgb(hue, lightness, saturation)))


def _hex(*channels: float) -> str:
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def short(text: str, longest: int = _LONGEST) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Return what a line takes at most, in bold letters of the wider sans-serif fonts."""
    return sum(_em(character) for character in text) * FONT


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW@%…":
        return 1.05
    if character in "iIjlft.,:;'|![]()r ":
        return 0.45
    return 0.8 if character.isupper() or ord(character) > 127 else 0.68
