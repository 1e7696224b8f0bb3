"""The wall between rows and everything else. See ``table``."""

from privet.tables.splits import Multiway, Split
from privet.tables.table import Cells, PrivateTable

__all__ = ["Cells", "Multiway", "PrivateTable", "Split"]
