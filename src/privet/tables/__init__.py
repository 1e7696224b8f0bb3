"""The wall between rows and everything else. See ``table``."""

from privet.tables.splits import Branch, Leaf, Multiway, Sketch, Split
from privet.tables.table import Cells, PrivateTable
from privet.tables.views import View

__all__ = ["Branch", "Cells", "Leaf", "Multiway", "PrivateTable", "Sketch", "Split", "View"]
