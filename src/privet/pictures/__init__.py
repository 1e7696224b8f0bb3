"""Pictures of published models: SVG without any other library, and matplotlib if it is there.

Everything here is drawn from released numbers: a model, its card, its test score. So a picture
costs nothing, and shows nothing that the model's file does not say.

* :func:`tree_svg`, :func:`curves_svg`, :func:`importances_svg`, :func:`calibration_svg` and
  :func:`budget_svg` return self-contained SVG pictures with alternative texts.
* :func:`plot` draws the same on matplotlib's axes (``pip install privet[plot]``).
* :func:`importances` and :func:`spending` are the numbers of two of them.
"""

from __future__ import annotations

from privet.pictures._effects import effects
from privet.pictures._importances import importances
from privet.pictures._spending import Spending, spending
from privet.pictures.charts import (
    budget_svg,
    calibration_svg,
    curves_svg,
    importances_svg,
    tree_svg,
)
from privet.pictures.figures import plot

__all__ = [
    "Spending",
    "budget_svg",
    "calibration_svg",
    "curves_svg",
    "effects",
    "importances",
    "importances_svg",
    "plot",
    "spending",
    "tree_svg",
]
