"""A table held by several parties that cannot share their rows.

Every :class:`Party` adds its own noise, keeps its own ledger and refuses what its owner has not
allowed; a :class:`FederatedTable` puts released answers together, so that a learner that needs
only sums over parties runs on it unchanged.
"""

from privet.federation.cells import FederatedCells
from privet.federation.dealer import Dealer
from privet.federation.links import Link, LocalLink, ProcessLink
from privet.federation.party import Lost, Party, Refused
from privet.federation.protocols import PROTOCOLS
from privet.federation.table import FederatedTable

__all__ = [
    "PROTOCOLS",
    "Dealer",
    "FederatedCells",
    "FederatedTable",
    "Link",
    "LocalLink",
    "Lost",
    "Party",
    "ProcessLink",
    "Refused",
]
