"""The wall between rows and everything else. See ``private``."""

from privet.engines import Axis, Split, View
from privet.tables.private import NO_NOISE, Cells, Gradients, PrivateTable, Scores, pull_deviation
from privet.tables.splits import (
    Binary,
    Branch,
    Each,
    Given,
    Leaf,
    Multiway,
    Ordered,
    Sketch,
    Thresholds,
    gains_of,
    list_candidates,
)
from privet.tables.whole_trees import check_sizes

__all__ = [
    "NO_NOISE",
    "Axis",
    "Binary",
    "Branch",
    "Cells",
    "Each",
    "Given",
    "Gradients",
    "Leaf",
    "Multiway",
    "Ordered",
    "PrivateTable",
    "Scores",
    "Sketch",
    "Split",
    "Thresholds",
    "View",
    "check_sizes",
    "gains_of",
    "list_candidates",
    "pull_deviation",
]
