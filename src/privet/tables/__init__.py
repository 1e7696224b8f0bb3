"""The wall between rows and everything else. See ``private``."""

from privet.engines import Axis, Split, View
from privet.tables.interface import QUESTIONS, Cells, Table
from privet.tables.private import (
    NO_NOISE,
    Gradients,
    PrivateCells,
    PrivateTable,
    Scores,
    encode,
    pull_deviation,
)
from privet.tables.splits import (
    Binary,
    Branch,
    Candidates,
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
    "QUESTIONS",
    "Axis",
    "Binary",
    "Branch",
    "Candidates",
    "Cells",
    "Each",
    "Given",
    "Gradients",
    "Leaf",
    "Multiway",
    "Ordered",
    "PrivateCells",
    "PrivateTable",
    "Scores",
    "Sketch",
    "Split",
    "Table",
    "Thresholds",
    "View",
    "check_sizes",
    "encode",
    "gains_of",
    "list_candidates",
    "pull_deviation",
]
