"""Lines over a number of rows, as a plain SVG picture."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from privet.export._drawing import FONT, LINE, STROKE, Drawing, framed, legend, line_colour

_WIDTH, _HEIGHT = 520, 260
_LEFT = 40  # for the labels of the upright axis
_BELOW = 2 * LINE + 8


def plot(
    title: str, across: str, places: NDArray[np.int64], lines: Mapping[str, NDArray[np.float64]]
) -> str:
    """Draw lines whose values lie between 0 and 1; the first lies on top."""
    most = max(int(places[-1]), 1)
    parts = [part for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0) for part in _level(share)]
    for tick in _ticks(most):
        x = _LEFT + _WIDTH * tick / most
        parts.append(f'<path d="M{x:.1f} {_HEIGHT}v4" stroke="{STROKE}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT + LINE + 2}" fill="#444444">{tick}</text>')
    middle, foot = _LEFT + _WIDTH / 2, _HEIGHT + 2 * LINE + 4
    parts.append(f'<text x="{middle:.1f}" y="{foot}">{escape(across)}</text>')
    for place, (name, values) in reversed(list(enumerate(lines.items()))):
        path = " ".join(
            f"{_LEFT + _WIDTH * x / most:.1f},{_HEIGHT * (1 - y):.1f}"
            for x, y in zip(places.tolist(), values.tolist(), strict=True)
        )
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{line_colour(place)}" '
            f'stroke-width="{1.5 if place else 2.5}"><title>{escape(name)}</title></polyline>'
        )
    swatches = [(line_colour(place), name) for place, name in enumerate(lines)]
    body = Drawing(parts, _LEFT + _WIDTH + FONT, _HEIGHT + _BELOW)
    return framed(title, legend("", swatches, [title], body.width), body)


def _level(share: float) -> list[str]:
    y = _HEIGHT * (1 - share)
    return [
        f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _WIDTH}" stroke="#dddddd"/>',
        f'<text x="{_LEFT - 6}" y="{y + FONT * 0.35:.1f}" text-anchor="end" fill="#444444">'
        f"{share:.1f}</text>",
    ]


def _ticks(most: int) -> list[int]:
    """Return some round numbers up to the largest.

    Examples
    --------
    >>> _ticks(36), _ticks(3)
    ([0, 10, 20, 30], [0, 1, 2, 3])
    """
    unit = 1
    while True:
        for factor in (1, 2, 5):
            if most // (factor * unit) <= 5:
                return list(range(0, most + 1, factor * unit))
        unit *= 10
