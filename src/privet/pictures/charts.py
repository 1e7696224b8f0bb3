"""SVG pictures: trees, curves, importances, calibration and budgets. No other library is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from privet.ensemble import Ensemble
from privet.evaluation import Evaluation
from privet.export import to_svg
from privet.export._drawing import (
    FONT,
    GAP,
    INK,
    LINE,
    STROKE,
    Drawing,
    class_colour,
    framed,
    legend,
    line_colour,
    short,
    stacked,
    text_width,
    tooltip,
)
from privet.export._outline import outline, start_words, summary
from privet.export._shape_drawing import BAND, shapes_drawing
from privet.export._tree_drawing import tree_drawing
from privet.export._words import number, word
from privet.export.svg import answer_swatches, score_swatches
from privet.model import PrivacyCard
from privet.pictures._effects import effects
from privet.pictures._importances import importances
from privet.pictures._spending import Spending, spending
from privet.record import Record
from privet.tree import Tree
from privet.visible import visible

_WIDTH = 320  # of the longest bar, and of a square plot
_BAR = 16
#: More bars are not drawn; the last row says how many.
MOST_BARS = 24


def tree_svg(
    tree: Tree, *, noise: Mapping[str, float] | None = None, fold: bool = True, title: str = ""
) -> str:
    """Return one tree as a picture: a model's, or one of an ensemble's with its scores.

    Parameters
    ----------
    tree : Tree
    noise, fold
        As for :func:`privet.export.to_text`.
    title : str, optional
        What stands above it, such as ``"tree 3"``; the target if not given.
    """
    if not tree.scores and not title:
        return to_svg(tree, noise=noise, fold=fold)
    schema, target = tree.schema, visible(tree.schema.target)
    name = visible(title) or target
    root, *rest = outline(tree, name, noise, fold=fold)
    body = tree_drawing([replace(root, branch=""), *rest], schema)
    of_scores = bool(tree.scores)
    swatches = score_swatches(schema, curves=False) if of_scores else answer_swatches(schema)
    head = legend(name, swatches, (), body.width)
    return framed(f"{name}: a decision tree for {target}", head, body)


def curves_svg(ensemble: Ensemble, features: Sequence[str] | None = None) -> str:
    """Return what each feature adds to the scores of an ensemble, side by side on one scale.

    With a band of two standard deviations of the *known* noise: that of the noise which was added
    to the numbers that the curve is made of. It says nothing about sampling, and nothing about what
    the model could not learn. A model that was read from a file has none: files do not hold it.

    Parameters
    ----------
    ensemble : Ensemble
        If its trees test several features each, curves are means over the other features
        (:func:`~privet.pictures.effects`).
    features : sequence of str, optional
        The features to draw; all that are used, if not given.
    """
    schema = ensemble.schema
    shapes = [s for s in effects(ensemble) if features is None or s.feature in features]
    body = shapes_drawing(shapes, schema)
    return framed(
        f"{visible(schema.target)}: what each feature adds to the score",
        legend(
            visible(schema.target),
            score_swatches(schema, curves=True),
            curve_notes(ensemble),
            body.width,
        ),
        body,
    )


def curve_notes(ensemble: Ensemble) -> list[str]:
    """Return what is to be said about an ensemble's curves."""
    known = all(tree.deviations is not None for tree in ensemble.trees) and len(ensemble.start) == 1
    notes = [summary(ensemble)]
    if ensemble.additive:
        notes.append(start_words(ensemble))
    else:
        notes.append("each curve is the mean over the intervals of all other features")
    if known and ensemble.trees:
        notes.append(f"band: {BAND:g} standard deviations of the noise that was added")
    return notes


def importances_svg(predictor: Tree | Ensemble) -> str:
    """Return how much each feature matters to the model, as bars (:func:`importances`)."""
    target = visible(predictor.schema.target)
    found = sorted(importances(predictor).items(), key=lambda pair: -pair[1])
    rows = [(visible(name), share, f"{share:.1%}") for name, share in found if share]
    rows = _few(rows, "further feature")
    title = f"{target}: what the model goes by"
    note = "how much answers differ by each feature, from the published model alone"
    return framed(title, legend(title, (), (note,), 0.0), bars(rows))


def budget_svg(card: PrivacyCard, record: Record | None = None) -> str:
    """Return where the budget went, as bars whose numbers add up (:func:`spending`)."""
    parts = []
    for part in spending(card, record):
        heading = _heading(part, card)
        rows = [(name, amount, f"{amount:.4g}") for name, amount in part.rows]
        parts.append(stacked_left([_line(heading, bold=True), bars(_few(rows, "question"))], 6))
    body = stacked_left(parts, 2 * GAP)
    title = "Where the budget went"
    return framed(title, legend(title, (), (), 0.0), body)


def _heading(part: Spending, card: PrivacyCard) -> str:
    whom = "person" if card.of_persons else "record"
    where = "" if part.portion is None else f" of the {part.portion} part"
    adds = f"{part.unit} {part.total:.4g} in all" if part.exact else "all paths together: too high"
    return f"what a {whom}{where} paid: {adds}"


def calibration_svg(evaluation: Evaluation) -> str:
    """Return how often the second class came true where the model gave it some probability.

    From the released test score: bars are 95 % intervals that cover sampling and noise.

    Raises
    ------
    ValueError
        If the test score has no bins of scores: only that of two classes has.
    """
    points = calibration_points(evaluation)
    left, size = text_width("0.0") + 10, _WIDTH
    parts = []
    for k in range(6):
        at = k / 5
        x, y = left + size * at, size * (1 - at)
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{left + size:.1f}" stroke="#dddddd"/>')
        place = f'x="{left - 5:.1f}" y="{y + FONT * 0.35:.1f}"'
        parts.append(f'<text {place} text-anchor="end" fill="#444444">{at:.1f}</text>')
        parts.append(f'<text x="{x:.1f}" y="{size + LINE}" fill="#444444">{at:.1f}</text>')
    parts.append(
        f'<path d="M{left:.1f} {size}L{left + size:.1f} 0" stroke="{STROKE}" '
        'stroke-dasharray="4 3"/>'
    )
    for predicted, observed, low, high in points:
        x = left + size * predicted
        y, top, bottom = (size * (1 - value) for value in (observed, high, low))
        text = f"{predicted:.3f} predicted: {observed:.3f} ({low:.3f} to {high:.3f})"
        parts.append(
            f"<g><title>{tooltip(text)}</title>"
            f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 3:.1f} {top:.1f}h6M{x - 3:.1f} '
            f'{bottom:.1f}h6" stroke="{INK}" fill="none"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{line_colour(0)}"/></g>'
        )
    name = word(evaluation.class_names[1])
    across = f"predicted probability of {short(name)}"
    parts.append(
        f'<text x="{left + size / 2:.1f}" y="{size + 2 * LINE + 4}">{escape(across)}</text>'
    )
    title = f"How often {short(name)} came true"
    note = "test records; bars: 95 % intervals of sampling and noise; dashes: as predicted"
    body = Drawing(parts, left + size + FONT, size + 2 * LINE + 8)
    return framed(title, legend(title, (), (note,), 0.0), body)


def calibration_points(evaluation: Evaluation) -> list[tuple[float, float, float, float]]:
    """Return predicted and observed probabilities, with the ends of the intervals."""
    if not evaluation.calibration:
        raise ValueError(
            "the test score has no calibration: only that of two classes, by a model whose "
            "probabilities differ, has"
        )
    return [
        (part.predicted, part.observed.value, part.observed.low, part.observed.high)
        for part in evaluation.calibration
        if part.observed.tells
    ]


def _few(rows: Sequence[tuple[str, float, str]], noun: str) -> list[tuple[str, float, str]]:
    """Return at most so many rows as are drawn; the last one has the rest together."""
    if len(rows) <= MOST_BARS:
        return list(rows)
    kept, rest = list(rows[: MOST_BARS - 1]), rows[MOST_BARS - 1 :]
    total = sum(value for _, value, _ in rest)
    return [*kept, (f"{len(rest)} {noun}s together", total, number(total))]


def bars(rows: Sequence[tuple[str, float, str]]) -> Drawing:
    """Draw bars from left to right: each with its name before it and its number behind."""
    names = [short(name, 60) for name, _, _ in rows]
    left = max((text_width(name) for name in names), default=0.0) + 8
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    parts, width = [], left
    for place, ((name, value, text), shown) in enumerate(zip(rows, names, strict=True)):
        y, long = place * (_BAR + 6), max(_WIDTH * value / most, 0.5)
        middle = y + _BAR / 2 + FONT * 0.35
        parts.append(
            f"<g><title>{tooltip(f'{name}: {text}')}</title>"
            f'<text x="{left - 8:.1f}" y="{middle:.1f}" text-anchor="end">{escape(shown)}</text>'
            f'<rect x="{left:.1f}" y="{y}" width="{long:.1f}" height="{_BAR}" '
            f'fill="{class_colour(0)}" stroke="{STROKE}"/>'
            f'<text x="{left + long + 6:.1f}" y="{middle:.1f}" text-anchor="start">'
            f"{escape(text)}</text></g>"
        )
        width = max(width, left + long + 6 + text_width(text))
    return Drawing(parts, width, max(len(rows) * (_BAR + 6) - 6, 0))


def _line(text: str, *, bold: bool = False) -> Drawing:
    weight = ' font-weight="bold"' if bold else ""
    part = f'<text y="{FONT}" text-anchor="start"{weight}>{escape(text)}</text>'
    return Drawing([part], text_width(text), LINE)


def stacked_left(drawings: Sequence[Drawing], gap: float) -> Drawing:
    """Place drawings one below the other, at the left."""
    width = max((drawing.width for drawing in drawings), default=0.0)
    return stacked([replace(drawing, width=width) for drawing in drawings], gap)
