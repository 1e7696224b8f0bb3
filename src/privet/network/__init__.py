"""Parties over a network: every owner's site dials out to a coordinator."""

from privet.network.interface import Answering, digest_of
from privet.network.keys import Certificate, Identity
from privet.network.study import Check, Study
from privet.network.transport import Dialler, Port

__all__ = [
    "Answering",
    "Certificate",
    "Check",
    "Dialler",
    "Identity",
    "Port",
    "Study",
    "digest_of",
]
