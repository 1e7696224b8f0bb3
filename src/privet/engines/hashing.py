"""Hashes of records and of persons.

Our own, and not cryptographic: privacy needs only that a record's hash is a function of this record
(a person's, of this person), and how good it is decides no more than how even parts are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of a 64-bit number over all of it (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ (state >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(33)))
