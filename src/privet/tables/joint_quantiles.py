"""Draw several quantiles at once (Gillenwater, Joseph & Kulesza 2021), on a public grid.

All tuples of grid cuts in order are candidates; one weighs by how equal the parts between its cuts
are. The normaliser is a sum over paths, so that the cuts can be drawn from left to right, each with
its exact conditional probability. Our own code because no library has it on a grid with a bound on
its rounding. Proof: ``docs/proofs/questions.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.privacy.log_weights import choose
from privet.privacy.noise import Noise


def draw_cuts(counts: NDArray[np.int64], parts: int, rate: float, noise: Noise) -> list[int]:
    """Draw cuts between the cells of a grid, in order; several may fall on one place.

    Parameters
    ----------
    counts : array
        How many records each cell of the grid has.
    parts : int
        How many parts the cuts divide the records into.
    rate : float
        A tuple of cuts weighs ``exp(-rate * sum of abs(parts * part - all))``.
    noise : Noise

    Returns
    -------
    list of int
        A cut at k lies before cell k; from 1 to the number of cells less one.
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    total, last = int(below[-1]), len(counts)
    places = np.arange(1, last)
    inner = below[1:last]
    # How well a part between two cuts fits, for all pairs: -inf if they are out of order.
    between = inner[None, :] - inner[:, None]
    fits = np.where(
        places[None, :] >= places[:, None], -rate * np.abs(parts * between - total), -np.inf
    )
    first = -rate * np.abs(parts * inner - total)
    rest = [-rate * np.abs(parts * (total - inner) - total)]  # after the last cut
    for _ in range(parts - 2):
        rest.append(_log_sum(fits + rest[-1][None, :]))
    found: list[int] = []
    place, here = 0, first
    for after in reversed(rest):
        place += choose((here + after)[place:], noise)  # no cut lies left of the one before
        found.append(int(places[place]))
        here = fits[place]
    return found


def _log_sum(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
