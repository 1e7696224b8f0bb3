"""Secret sums and secret choices: results about all parties' rows, of which nobody sees a part.

``masks`` has the keys and the masks that cancel, ``secret_choice`` finds the largest of sums that
nobody sees, and ``shares`` is a party's part in both: what it adds, taken from its own table after
its own ledger was charged.
"""

from privet.federation.mpc.masks import MaskKeys, check_cryptography, fingerprint, open_sum
from privet.federation.mpc.secret_choice import (
    MOST_OPTIONS,
    ChoiceShape,
    LossTerms,
    SecretChoice,
    check_range,
    correlated_randomness,
    excluded_score,
    has_room,
    openings,
    winners,
)
from privet.federation.mpc.shares import SHARES

__all__ = [
    "MOST_OPTIONS",
    "SHARES",
    "ChoiceShape",
    "LossTerms",
    "MaskKeys",
    "SecretChoice",
    "check_cryptography",
    "check_range",
    "correlated_randomness",
    "excluded_score",
    "fingerprint",
    "has_room",
    "open_sum",
    "openings",
    "winners",
]
