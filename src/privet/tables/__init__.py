"""The wall between rows and everything else. See ``table``."""

from privet.tables.splits import Branch, Given, Leaf, Multiway, Sketch, Split, Thresholds
from privet.tables.table import Cells, Gradients, PrivateTable, Scores, pull_deviation
from privet.tables.views import View

__all__ = [
    "Branch",
    "Cells",
    "Given",
    "Gradients",
    "Leaf",
    "Multiway",
    "PrivateTable",
    "Scores",
    "Sketch",
    "Split",
    "Thresholds",
    "View",
    "pull_deviation",
]
