"""Public grids: where a number with public bounds may be cut. They follow from the bounds alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The coarse grid takes one of this many points of the fine one.
COARSE = 64
#: Landmarks of a range: even steps, and halvings towards its ends.
STEPS = 4096
HALVINGS = 50


def fine_grid(low: float, high: float) -> NDArray[np.float64]:
    """Return the public grid on which quantiles are found: about 65,000 increasing points.

    Half of them are evenly spaced. The other half has even ratios (400 or 800 steps per factor of
    two) towards the lower bound or, if that lies within, towards zero from both sides: a quantity
    with a heavy tail has most of its values in a tiny part of its range.
    """
    width = high - low
    points = [low + width * (np.arange(1, 2**15) / 2**15)]
    if low < 0 < high:
        ratios = 2.0 ** -(np.arange(1, 16_000) / 400)
        points += [np.zeros(1), high * ratios, low * ratios]
    else:
        points.append(low + width * 2.0 ** -(np.arange(1, 32_000) / 800))
    return _between(np.concatenate(points), low, high)


def coarse_grid(low: float, high: float) -> NDArray[np.float64]:
    """Return every 64th point of the fine grid."""
    return fine_grid(low, high)[COARSE // 2 :: COARSE]


def landmarks(low: float, high: float) -> NDArray[np.float64]:
    """Return the public cuts that learners place without looking at a record.

    They are 4096 even steps, and 50 halvings of the range towards its lower bound; if zero lies
    within, also 50 halvings of both bounds and of the width towards zero. Few of them are not on
    the fine grid. Each is one multiplication by a power of two or an even share, so that all
    machines agree.
    """
    width = high - low
    halves = np.ldexp(1.0, -np.arange(1, HALVINGS + 1))
    points = [low + width * (np.arange(1, STEPS) / STEPS), low + width * halves]
    if low < 0 < high:
        points += [high * halves, low * halves, width * halves]
    return _between(np.concatenate(points), low, high)


def thin(points: NDArray[np.float64], room: int) -> NDArray[np.float64]:
    """Return as many points as there is room for, evenly by their numbers.

    Of m points with room for r < m, point j (from 0) stays if ``(j + 1) * r // m > j * r // m``.

    Examples
    --------
    >>> thin(np.arange(5.0), 2)
    array([2., 4.])
    """
    if len(points) <= room:
        return points
    steps = np.arange(len(points) + 1) * room // len(points)
    return points[np.diff(steps) > 0]


def _between(points: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    points = np.unique(points)
    return points[(points > low) & (points < high)]
