"""Draw by log weights that were computed in doubles; the draw itself is exact.

The weights' own errors are bounded and charged by those who compute them
(``docs/proofs/whole-trees.md``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.privacy.noise import Noise

#: Log weights are rounded to this many steps per unit before one is drawn exactly.
STEPS = 2.0**44


def choose(log_weights: NDArray[np.float64], noise: Noise) -> int:
    """Draw an index with probability proportional to the exponential of its log weight."""
    gaps = np.maximum((log_weights - log_weights.max()) * STEPS, -(2.0**62))
    return noise.exponential(np.rint(gaps).astype(np.int64), STEPS)
