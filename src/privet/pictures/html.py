"""Models and cards in a notebook: what they cost, what they are, and a picture."""

from __future__ import annotations

from privet.ensemble import Ensemble
from privet.evaluation import Estimate, Evaluation
from privet.fragments import folded, paragraph, table, whole
from privet.model import Model, PrivacyCard
from privet.pictures.charts import (
    budget_svg,
    calibration_svg,
    curves_svg,
    importances_svg,
    tree_svg,
)
from privet.privacy import odds_words

#: Larger trees, and wider ensembles, are not drawn in a cell of a notebook.
_MOST_LEAVES, _MOST_CURVES = 64, 30


def card_html(card: PrivacyCard) -> str:
    """Return a card: the verdict, what it cost, and where that went."""
    return whole(*_card_pieces(card), folded("where the budget went", budget_svg(card)))


def model_html(model: Model) -> str:
    """Return a model: its card, a picture, what it goes by, and its test score."""
    predictor = model.predictor
    pieces = [paragraph(repr(model), bold=True), *_card_pieces(model.privacy)]
    pieces += [paragraph(doubt) for doubt in model.privacy.doubts(model.schema.classes)]
    if isinstance(predictor, Ensemble):
        if len(predictor.used) <= _MOST_CURVES:
            pieces.append(folded("what each feature adds", curves_svg(predictor)))
    elif predictor.n_leaves <= _MOST_LEAVES:
        pieces.append(folded("the tree", tree_svg(predictor, noise=model.noise)))
    pieces.append(folded("what the model goes by", importances_svg(predictor)))
    if model.evaluation is not None:
        pieces.append(folded("test score", evaluation_html(model.evaluation)))
    return whole(*pieces, folded("where the budget went", budget_svg(model.privacy, model.record)))


def evaluation_html(evaluation: Evaluation) -> str:
    """Return a test score: every measure with its interval, and the calibration."""
    rows = [(name, *_interval(one)) for name, one in evaluation.measures()]
    scores = table(
        ["measure", "estimate", "95 % interval"], rows, "on others than it was learnt from"
    )
    return whole(scores, *([calibration_svg(evaluation)] if evaluation.calibration else []))


def _interval(one: Estimate) -> tuple[str, str]:
    return (
        (f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}")
        if one.enough
        else ("", "too few records")
    )


def _card_pieces(card: PrivacyCard) -> list[str]:
    delta = f", delta {card.delta:g}" if card.delta else ""
    if not card.private or card.warnings:
        return [paragraph("NOT PRIVATE", bold=True), *map(paragraph, card.warnings)]
    whose = "somebody" if card.of_persons else "somebody's record"
    return [
        paragraph(
            f"Private: epsilon {card.epsilon:.4g}{delta}. Odds of 1 to 1 that {whose} "
            f"is in the table become {odds_words(card.epsilon)} at most"
            + (", but for an exception of probability delta." if card.delta else ".")
        )
    ]
