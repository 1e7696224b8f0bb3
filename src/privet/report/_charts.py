"""The charts of a page: SVG in the page's own colours, each with a text that says the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.evaluation import Estimate
from privet.privacy import Guarantee
from privet.report._html import Html, joined, tag

#: Longer labels are cut off; the tables beside charts have all of them.
_LABEL = 44


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def _chart(width: int, height: int, label: str, *parts: object, broad: bool = False) -> Html:
    """Return a chart; a broad one scrolls on a narrow screen, so that its words can be read."""
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_="chart broad" if broad else "chart",
        role="img",
        aria_label=label,
    )


def trade_off(given: Guarantee, label: str) -> Html:
    """Draw the most members that can be found, by how many others are taken for members."""
    left, top, size = 62, 10, 250
    # Where the two lines of epsilon and delta meet there is a corner.
    corner = (1 - given.delta) / (1 + math.exp(min(given.epsilon, 700.0)))
    shares = sorted([corner, 0.002, 0.005, 0.01, 0.02, 0.035, *(k / 25 for k in range(26))])
    points = " ".join(
        f"{left + share * size:.1f},{top + (1 - given.true_positives(share)) * size:.1f}"
        for share in shares
    )
    ticks = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = left + tick * size, top + (1 - tick) * size
        ticks += [
            tag("path", d=f"M{left} {y}h{size}", class_="axis"),
            tag("text", f"{tick:.0%}", x=left - 8, y=y + 4, text_anchor="end", class_="label"),
            tag(
                "text", f"{tick:.0%}", x=x, y=top + size + 18, text_anchor="middle", class_="label"
            ),
        ]
    return _chart(
        360,
        320,
        label,
        *ticks,
        tag("path", d=f"M{left} {top + size}L{left + size} {top}", class_="guess"),
        tag("polyline", points=points, class_="curve"),
        tag(
            "text",
            "others taken for members",
            x=left + size / 2,
            y=top + size + 42,
            text_anchor="middle",
        ),
        tag(
            "text",
            "members found, at most",
            transform=f"translate(16 {top + size / 2}) rotate(-90)",
            text_anchor="middle",
        ),
    )


def waterfall(labels: Sequence[str], amounts: Sequence[float], words: Sequence[str]) -> Html:
    """Draw amounts one after the other, each beginning where the last one ended, and their sum."""
    total = sum(amounts) or 1.0
    left, width, step = 320, 390, 26
    parts: list[Html] = []
    done = 0.0
    for place, (label, amount) in enumerate(zip(labels, amounts, strict=True)):
        y = 6 + place * step
        start, length = left + done / total * width, max(1.0, amount / total * width)
        parts += [
            tag("text", _short(label), x=left - 10, y=y + 14, text_anchor="end"),
            tag("rect", x=left, y=y, width=width, height=18, class_="track"),
            tag("rect", x=f"{start:.1f}", y=y, width=f"{length:.1f}", height=18, class_="bar"),
            tag("text", words[place], x=left + width + 10, y=y + 14),
        ]
        done += amount
    y = 6 + len(amounts) * step
    parts += [
        tag("text", "total", x=left - 10, y=y + 14, text_anchor="end", font_weight="700"),
        tag("rect", x=left, y=y, width=width, height=18, class_="bar-2"),
        tag("text", words[-1], x=left + width + 10, y=y + 14, font_weight="700"),
    ]
    said = "; ".join(f"{label} {word}" for label, word in zip(labels, words, strict=False))
    said = f"Parts of the total: {said}; total {words[-1]}."
    return _chart(800, y + 30, said, *parts, broad=True)


def bars(names: Sequence[str], shares: Sequence[float], label: str) -> Html:
    """Draw shares of a whole."""
    left, width, step = 280, 330, 24
    most = max([*shares, 1e-300])
    parts: list[Html] = []
    for place, (name, share) in enumerate(zip(names, shares, strict=True)):
        y = 4 + place * step
        parts += [
            tag("text", _short(name), x=left - 10, y=y + 13, text_anchor="end"),
            tag("rect", x=left, y=y, width=f"{share / most * width:.1f}", height=16, class_="bar"),
            tag("text", f"{share:.1%}", x=f"{left + share / most * width + 8:.1f}", y=y + 13),
        ]
    said = ", ".join(f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True))
    return _chart(690, 8 + step * len(names), f"{label}: {said}.", *parts, broad=True)


def intervals(rows: Sequence[tuple[str, Estimate]], label: str) -> Html | None:
    """Draw estimates with their intervals, all on one scale."""
    shown = [(name, one) for name, one in rows if one.enough]
    if not shown:
        return None
    low, high = min(one.low for _, one in shown), max(one.high for _, one in shown)
    # From one round number to another, with some room.
    unit = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    within = low >= 0 and high <= 1  # shares: the scale does not go on where none can be
    low, high = math.floor(low / unit - 0.5) * unit, math.ceil(high / unit + 0.5) * unit
    if within:
        low, high = max(low, 0.0), min(high, 1.0)
    span = high - low
    left, width, step = 320, 350, 26

    def x(value: float) -> float:
        return left + (value - low) / span * width

    parts: list[Html] = []
    for place, (name, one) in enumerate(shown):
        y = 14 + place * step
        parts += [
            tag("text", _short(name), x=left - 10, y=y + 4, text_anchor="end"),
            tag("path", d=f"M{left} {y}h{width}", class_="axis"),
            tag(
                "rect",
                x=f"{x(one.low):.1f}",
                y=y - 5,
                width=f"{max(2.0, x(one.high) - x(one.low)):.1f}",
                height=10,
                rx=3,
                class_="bar",
            ),
            tag("circle", cx=f"{x(one.value):.1f}", cy=y, r=5, class_="bar-2"),
            tag("text", f"{one.value:.3g}", x=left + width + 10, y=y + 4),
        ]
    y = 14 + len(shown) * step
    for tick in (low, low + span / 2, high):  # their scale does not begin at zero
        parts.append(
            tag("text", f"{tick:.3g}", x=x(tick), y=y + 6, text_anchor="middle", class_="label")
        )
    said = "; ".join(
        f"{name} {one.value:.3g}, between {one.low:.3g} and {one.high:.3g}" for name, one in shown
    )
    return _chart(740, y + 14, f"{label}: {said}.", *parts, broad=True)


def left_of(counted: Sequence[tuple[str, float, bool]], total: float, label: str) -> Html:
    """Draw what draws took from a total, this model's marked, and what is left."""
    width, x = 700.0, 0.0
    parts = [tag("rect", x=0, y=0, width=width, height=26, class_="track")]
    for name, amount, own in counted:
        length = amount / total * width
        inner = tag("title", name)
        kind = "bar-2" if own else "bar"
        parts.append(
            tag(
                "rect",
                inner,
                x=f"{x:.1f}",
                y=0,
                width=f"{max(1.0, length - 1):.1f}",
                height=26,
                class_=kind,
            )
        )
        x += length
    return _chart(int(width), 28, label, joined(parts))
