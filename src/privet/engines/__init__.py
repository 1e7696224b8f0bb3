"""Exact whole numbers about rows, wherever the rows are. Everything here is inside the wall."""

from privet.engines.axes import Axes, Axis, AxisLists
from privet.engines.bases import (
    CALIBRATION_SQUARES,
    LARGEST,
    STEP,
    UNIT,
    Basis,
    Curves,
    Peaks,
    Tabled,
)
from privet.engines.encoding import in_threads, workers
from privet.engines.engine import BlockEngine
from privet.engines.interface import Engine
from privet.engines.lineage import PLACES, CellsHandle, ScoresHandle
from privet.engines.losses import HEAVIEST, loss_of
from privet.engines.memory import memory_engine
from privet.engines.questions import Margin, Records, Sparse, TreeLayout, TreeRecords
from privet.engines.raw import RawCounts
from privet.engines.splits import Split
from privet.engines.stored import encode_stream, holds_blocks, keep_blocks, open_blocks
from privet.engines.views import View
from privet.engines.widths import needs_64_bits

__all__ = [
    "CALIBRATION_SQUARES",
    "HEAVIEST",
    "LARGEST",
    "PLACES",
    "STEP",
    "UNIT",
    "Axes",
    "Axis",
    "AxisLists",
    "Basis",
    "BlockEngine",
    "CellsHandle",
    "Curves",
    "Engine",
    "Margin",
    "Peaks",
    "RawCounts",
    "Records",
    "ScoresHandle",
    "Sparse",
    "Split",
    "Tabled",
    "TreeLayout",
    "TreeRecords",
    "View",
    "encode_stream",
    "holds_blocks",
    "in_threads",
    "keep_blocks",
    "loss_of",
    "memory_engine",
    "needs_64_bits",
    "open_blocks",
    "workers",
]
