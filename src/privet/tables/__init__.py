"""The wall between rows and everything else. See ``table``."""

from privet.tables.splits import Branch, Leaf, Multiway, Sketch, Split
from privet.tables.table import Cells, Gradients, PrivateTable, Scores, pull_deviation
from privet.tables.views import View

__all__ = [
    "Branch",
    "Cells",
    "Gradients",
    "Leaf",
    "Multiway",
    "PrivateTable",
    "Scores",
    "Sketch",
    "Split",
    "View",
    "pull_deviation",
]
