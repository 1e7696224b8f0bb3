"""How the answers of several parties are put together. A new protocol is one class, listed here."""

from privet.federation.protocols.base import AggregationProtocol, SplitChoice
from privet.federation.protocols.local_proposals import LocalProposals
from privet.federation.protocols.noisy_counts import NoisyCounts
from privet.federation.protocols.secure_sums import SecureSums

#: The protocols, by name.
PROTOCOLS: dict[str, type[AggregationProtocol]] = {
    protocol.name: protocol for protocol in (NoisyCounts, LocalProposals, SecureSums)
}

__all__ = [
    "PROTOCOLS",
    "AggregationProtocol",
    "LocalProposals",
    "NoisyCounts",
    "SecureSums",
    "SplitChoice",
]
