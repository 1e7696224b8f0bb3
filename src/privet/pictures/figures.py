"""The same pictures on matplotlib's axes, for papers and notebooks (``pip install privet[plot]``).

Matplotlib is imported when something is drawn, so that nobody needs it for anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privet.ensemble import Ensemble, Shape
from privet.errors import ExportError
from privet.export._outline import outline
from privet.export._shape_drawing import BAND
from privet.export._tree_drawing import BOX, boxes_of, colour_of
from privet.export._words import signed, word
from privet.model import Model
from privet.pictures._effects import effects
from privet.pictures._importances import importances
from privet.pictures._spending import spending
from privet.pictures.charts import MOST_BARS, calibration_points
from privet.schema import Date, Numeric, Schema, day_text
from privet.tree import Tree
from privet.visible import visible

KINDS = ("tree", "curves", "importances", "calibration", "budget")
#: Pixels of an SVG picture to an inch of a figure.
_PIXELS = 90
_COLUMNS = 3


def plot(
    model: Model, kind: str | None = None, *, features: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw a model with matplotlib.

    Parameters
    ----------
    model : Model
    kind : str, optional
        ``"tree"``; ``"curves"`` (of an ensemble: what each feature adds, with a band of two
        standard deviations of the known noise); ``"importances"``; ``"calibration"`` (of a model
        with a test score of two classes); ``"budget"``. If not given: the tree, or the curves.
    features : sequence of str, optional
        For curves: which.
    ax : matplotlib Axes, optional
        Where to draw; new axes if not given. Curves of several features need new ones.

    Returns
    -------
    matplotlib Axes, or an array of them

    Raises
    ------
    ExportError
        If matplotlib is not there.
    """
    if kind is None:
        kind = "curves" if isinstance(model.predictor, Ensemble) else "tree"
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}")
    if features is not None and kind != "curves":
        raise ValueError("features are for curves")
    if kind == "tree":
        return _tree(model, ax)
    if kind == "curves":
        return _curves(model, features, ax)
    if kind == "calibration":
        return _calibration(model, ax)
    return _bars(model, kind, ax)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ExportError(
            "plots need matplotlib: pip install privet[plot]; the SVG pictures of privet.pictures "
            "need nothing"
        ) from None
    return plt


def _axes(ax: Any, width: float, height: float) -> Any:
    return (
        _pyplot().subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax
    )


def _tree(model: Model, ax: Any) -> Any:
    tree = model.predictor
    if not isinstance(tree, Tree):
        raise ValueError("an ensemble has many trees: plot its curves, or draw one by tree_svg")
    entries = outline(tree, visible(tree.schema.target), model.noise)
    boxes = boxes_of(entries)
    right = max(box.middle + box.width / 2 for box in boxes)
    bottom = max(box.top for box in boxes) + BOX
    ax = _axes(ax, max(right / _PIXELS, 2.0), max(bottom / _PIXELS, 1.5))
    for entry, box in zip(entries, boxes, strict=True):
        for child in entry.children:
            below = boxes[child]
            middle = (box.top + BOX + below.top - 20) / 2
            across = [box.middle, box.middle, below.middle, below.middle]
            down = [box.top + BOX, middle, middle, below.top - 18]
            ax.plot(across, down, color="#777777", linewidth=1, zorder=1)
        uncertain = entry.verdict is not None and (
            entry.verdict.within_noise or entry.verdict.folded
        )
        face = "#ffffff" if entry.verdict is None else colour_of(entry.verdict.answer, tree.schema)
        style = {
            "facecolor": face,
            "edgecolor": "#777777",
            "linestyle": "--" if uncertain else "-",
            "boxstyle": "square,pad=0.4" if entry.verdict is None else "round,pad=0.4",
        }
        ax.text(
            box.middle, box.top + BOX / 2, _plain("\n".join(box.lines)), bbox=style, zorder=2,
            ha="center", va="center", fontsize=9,
        )  # fmt: skip
        ax.text(
            box.middle, box.top - 4, _plain(box.branch),
            ha="center", va="bottom", fontsize=8, color="#444444",
        )  # fmt: skip
    ax.set_xlim(-5, right + 5)
    ax.set_ylim(bottom + 5, -25)
    ax.set_title(_plain(visible(tree.schema.target)))
    ax.set_axis_off()
    return ax


def _curves(model: Model, features: Sequence[str] | None, ax: Any) -> Any:
    ensemble = model.predictor
    if not isinstance(ensemble, Ensemble):
        raise ValueError("a single tree has no curves: plot the tree, or its importances")
    shapes = [s for s in effects(ensemble) if features is None or s.feature in features]
    if not shapes:
        raise ValueError("no such feature has a curve in this model")
    if ax is not None:
        if len(shapes) > 1:
            raise ValueError("curves of several features need axes of their own: leave ax out")
        _curve(shapes[0], ensemble.schema, ax)
        return ax
    columns = min(_COLUMNS, len(shapes))
    rows = -(-len(shapes) // columns)
    _, grid = _pyplot().subplots(
        rows, columns, figsize=(3.6 * columns, 2.6 * rows), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for place, shape in enumerate(shapes):
        _curve(shape, ensemble.schema, grid.flat[place])
    for empty in grid.flat[len(shapes) :]:
        empty.set_axis_off()
    return grid


def _curve(shape: Shape, schema: Schema, ax: Any) -> None:
    feature = schema.features[shape.feature]
    ax.axhline(0, color="#777777", linewidth=0.8)
    names = [word(value) for value in schema.classes or ()]
    bands = shape.deviations is not None and shape.scores.shape[1] == 1
    deviations = shape.deviations if shape.deviations is not None else np.zeros((1, 1))
    for place in range(shape.scores.shape[1]):
        label = _plain(names[place]) if shape.scores.shape[1] > 1 else None
        rows = shape.scores[:, place]
        if isinstance(feature, Numeric):
            assert shape.edges is not None
            ends = np.array([feature.low, *shape.edges, feature.high])
            ax.stairs(rows, ends, baseline=None, label=label, linewidth=1.5)
            if bands:
                reach = BAND * deviations[:-1, 0]
                ax.fill_between(
                    ends, np.append(rows - reach, rows[-1] - reach[-1]),
                    np.append(rows + reach, rows[-1] + reach[-1]),
                    step="post", alpha=0.25, linewidth=0,
                )  # fmt: skip
        else:
            x = np.arange(len(rows)) + 0.8 * place / shape.scores.shape[1]
            width = 0.8 / shape.scores.shape[1]
            whiskers = BAND * deviations[:-1, 0] if bands else None
            ax.bar(x, rows, width=width, yerr=whiskers, capsize=2, label=label, align="edge")
    if isinstance(feature, Date):
        ax.xaxis.set_major_locator(_pyplot().MaxNLocator(4))
        ax.xaxis.set_major_formatter(lambda day, _: _day(day, feature))
        ax.tick_params("x", rotation=20)
    elif not isinstance(feature, Numeric):
        values = [_plain(word(value)) for value in feature.values]
        ax.set_xticks(np.arange(len(values)) + 0.4, values, rotation=30 if len(values) > 4 else 0)
    missing = ", ".join(signed(score) for score in shape.missing)
    ax.set_title(_plain(visible(shape.feature)), fontsize=10)
    ax.set_xlabel(f"missing: {missing}", fontsize=8)
    if len(names) > 2:
        ax.legend(fontsize=7)


def _day(day: float, feature: Date) -> str:
    return day_text(min(max(round(day), feature.low), feature.high))


def _calibration(model: Model, ax: Any) -> Any:
    if model.evaluation is None:
        raise ValueError("the model has no test score: fit it with test_share")
    points = np.array(calibration_points(model.evaluation)).reshape(-1, 4)
    predicted, observed, low, high = points.T
    ax = _axes(ax, 4.0, 4.0)
    ax.plot([0, 1], [0, 1], color="#777777", linestyle="--", linewidth=1)
    ax.errorbar(predicted, observed, yerr=[observed - low, high - observed], fmt="o", capsize=3)
    name = _plain(word(model.evaluation.class_names[1]))
    ax.set_xlabel(f"predicted probability of {name}")
    ax.set_ylabel("how often it came true (95 % interval)")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    return ax


def _bars(model: Model, kind: str, ax: Any) -> Any:
    if kind == "importances":
        found = sorted(importances(model.predictor).items(), key=lambda pair: -pair[1])
        rows, across = found[:MOST_BARS], "part in how much answers differ"
    else:
        (first, *_) = spending(model.privacy, model.record)
        rows = list(first.rows)
        across = f"{first.unit}: {first.total:.4g} in all" if first.exact else first.unit
    ax = _axes(ax, 6.0, 0.8 + 0.3 * len(rows))
    ax.barh([_plain(visible(name)) for name, _ in rows], [value for _, value in rows])
    ax.invert_yaxis()
    ax.set_xlabel(across)
    return ax


def _plain(text: str) -> str:
    """Return text in which matplotlib sees no formula."""
    return text.replace("$", r"\$")
