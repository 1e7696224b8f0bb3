"""Secret sums and secret choices: results about all parties' rows, of which nobody sees a part.

``masks`` has the keys and the masks that cancel, ``dealing`` the random numbers that a choice
takes, ``secret_choice`` finds the largest of sums that nobody sees, and ``shares`` is a party's
part in both: what it adds, taken from its own table after its own ledger was charged.
"""

from privet.federation.mpc.dealing import (
    MOST_DEALS,
    CheatingDealer,
    ChoiceShape,
    Deal,
    checked_by,
    kept_of,
    least_deals,
    parts_of,
)
from privet.federation.mpc.masks import (
    MaskKeys,
    PrivateKey,
    check_cryptography,
    dealing_key,
    fingerprint,
    open_sum,
    round_key,
    seal,
)
from privet.federation.mpc.secret_choice import (
    MOST_OPTIONS,
    LossTerms,
    SecretChoice,
    Tagged,
    check_range,
    excluded_score,
    has_room,
    openings,
    winners,
)
from privet.federation.mpc.shares import SHARES

__all__ = [
    "MOST_DEALS",
    "MOST_OPTIONS",
    "SHARES",
    "CheatingDealer",
    "ChoiceShape",
    "Deal",
    "LossTerms",
    "MaskKeys",
    "PrivateKey",
    "SecretChoice",
    "Tagged",
    "check_cryptography",
    "check_range",
    "checked_by",
    "dealing_key",
    "excluded_score",
    "fingerprint",
    "has_room",
    "kept_of",
    "least_deals",
    "open_sum",
    "openings",
    "parts_of",
    "round_key",
    "seal",
    "winners",
]
