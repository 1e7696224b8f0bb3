"""A model as a picture that any browser shows: SVG without scripts, styles or other files."""

from __future__ import annotations

from dataclasses import replace

from privet.ensemble import Ensemble
from privet.export._drawing import (
    GAP,
    class_colour,
    framed,
    legend,
    line_colour,
    mean_colour,
    short,
    stacked,
)
from privet.export._outline import Noise, outlines, start_words, summary
from privet.export._shape_drawing import shapes_drawing
from privet.export._tree_drawing import tree_drawing
from privet.export._words import number, word
from privet.schema import Schema
from privet.tree import Tree
from privet.visible import visible


def to_svg(model: Tree | Ensemble, *, noise: Noise | None = None, fold: bool = True) -> str:
    """Return the model as a self-contained SVG picture.

    Leaves that say the same are drawn as one, as in :func:`~privet.export.to_text`. Tooltips hold
    released counts and the conditions that lead to a place (the last 64 of them, each with up to
    2,000 characters). The picture is as wide as the tree needs.

    The trees of an ensemble stand one below the other; leaves have the colour of the class that
    their score speaks for. An additive ensemble is drawn as the shapes of its features, all on one
    scale: steps over a number, bars for categories; with a band of two deviations of the noise, if
    that is known (not of a model that was read from a file, which does not hold it).

    Parameters
    ----------
    model : Tree or Ensemble
    noise, fold
        As for :func:`~privet.export.to_text`; what is no more than noise, or folded, has a dashed
        line around it.

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
    schema, target = model.schema, visible(model.schema.target)
    if isinstance(model, Tree):
        (entries,) = outlines(model, noise, fold=fold)
        body = tree_drawing(entries, schema)
        head = legend(target, answer_swatches(schema), (), body.width)
        return framed(f"Decision tree for {target}", head, body)
    if model.additive:
        body = shapes_drawing(model.shapes(), schema)
    else:
        # A tree's title stands where a branch has its label.
        drawn = outlines(model, noise, fold=fold)
        titled = ((replace(root, branch=root.condition), *rest) for root, *rest in drawn)
        body = stacked([tree_drawing(entries, schema) for entries in titled], 2 * GAP)
    notes = (summary(model), start_words(model))
    head = legend(target, score_swatches(schema, curves=model.additive), notes, body.width)
    return framed(f"{target}: {summary(model)}", head, body)


def answer_swatches(schema: Schema) -> list[tuple[str, str]]:
    """Return colours with the answers that they stand for."""
    if schema.classes is not None:
        labels = (short(word(value)) for value in schema.classes)
        return [(class_colour(place), label) for place, label in enumerate(labels)]
    assert schema.bounds is not None
    low, high = schema.bounds
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    return [(mean_colour(share), number(low + (high - low) * share)) for share in shares]


def score_swatches(schema: Schema, *, curves: bool) -> list[tuple[str, str]]:
    """Return colours with what scores of that colour speak for; curves are darker than boxes."""
    classes = schema.classes
    if classes is None:
        return [(class_colour(0), "lower"), (class_colour(1), "higher")]
    labels = [short(word(value)) for value in classes]
    if len(classes) == 2:
        labels = [f"{labels[0]}: below 0", f"{labels[1]}: above 0"]
    colour = line_colour if curves and len(classes) > 2 else class_colour
    return [(colour(place), label) for place, label in enumerate(labels)]
