"""The wall between rows and everything else. See ``private``."""

from privet.engines import STEP, Axes, Axis, AxisLists, Basis, Curves, Peaks, Split, Tabled, View
from privet.tables.discovery import (
    DiscoveryPlan,
    Found,
    NothingFoundError,
    discover,
    repeated_discovery,
)
from privet.tables.interface import QUESTIONS, Cells, Table
from privet.tables.outcomes import Tally
from privet.tables.private import (
    NO_NOISE,
    PrivateCells,
    PrivateTable,
    encode,
)
from privet.tables.scores import SCALES, Gradients, Scores, pull_deviation
from privet.tables.slopes import Sums
from privet.tables.splits import (
    Binary,
    Branch,
    Candidates,
    Each,
    Leaf,
    Multiway,
    Ordered,
    ReleasedSplits,
    Subtree,
    Thresholds,
    gains_of,
    list_candidates,
)
from privet.tables.whole_trees import check_sizes

__all__ = [
    "NO_NOISE",
    "QUESTIONS",
    "SCALES",
    "STEP",
    "Axes",
    "Axis",
    "AxisLists",
    "Basis",
    "Binary",
    "Branch",
    "Candidates",
    "Cells",
    "Curves",
    "DiscoveryPlan",
    "Each",
    "Found",
    "Gradients",
    "Leaf",
    "Multiway",
    "NothingFoundError",
    "Ordered",
    "Peaks",
    "PrivateCells",
    "PrivateTable",
    "ReleasedSplits",
    "Scores",
    "Split",
    "Subtree",
    "Sums",
    "Table",
    "Tabled",
    "Tally",
    "Thresholds",
    "View",
    "check_sizes",
    "discover",
    "encode",
    "gains_of",
    "list_candidates",
    "pull_deviation",
    "repeated_discovery",
]
