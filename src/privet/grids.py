"""Public grids: where a number with public bounds may be cut. They follow from the bounds alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


#: Magnitudes of numbers: powers of two from this one, below which a number counts as zero, up to
#: that one, at and above which it counts as the last.
SMALLEST_POWER, LARGEST_POWER = -30, 50


@dataclass(frozen=True)
class Magnitudes:
    """Public cells of all numbers by their signs and magnitudes, with one for zero.

    Parameters
    ----------
    octaves : int, default=1
        How many powers of two a cell has: 1 makes 163 cells, 2 (powers of four) 83.

    Examples
    --------
    >>> Magnitudes().size, Magnitudes(2).size
    (163, 83)
    >>> cells = Magnitudes().cells(np.array([17.0, 90.0, np.nan]))
    >>> int(cells[2]), Magnitudes().bounds(int(cells[0]), int(cells[1]))
    (-1, (16.0, 128.0))

    Within each, numbers are told apart by eighths of a power of two:

    >>> eighths = Magnitudes().eighths(np.array([17.0, 90.0]))
    >>> [Magnitudes().ends_of_eighth(int(each)) for each in eighths]
    [(16.0, 18.0), (88.0, 96.0)]
    """

    octaves: int = 1

    @property
    def _each(self) -> int:
        """How many cells a sign has."""
        return -(-(LARGEST_POWER - SMALLEST_POWER + 1) // self.octaves)

    @property
    def size(self) -> int:
        """The number of cells, from the least numbers to the largest."""
        return 2 * self._each + 1

    def cells(self, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the cell of every number, each by itself; -1 for what is missing."""
        missing = np.isnan(numbers)
        sizes = np.minimum(np.abs(np.where(missing, 0.0, numbers)), 2.0**LARGEST_POWER)
        powers = np.frexp(sizes)[1].astype(np.intp) - 1 - SMALLEST_POWER
        steps = np.where(sizes < 2.0**SMALLEST_POWER, 0, np.maximum(powers, 0) // self.octaves + 1)
        return np.where(missing, -1, self._each + np.where(numbers < 0, -steps, steps))

    @property
    def eighths_each(self) -> int:
        """How many eighths of a power of two a cell has."""
        return 8 * self.octaves

    def eighths(self, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the eighth of every number, counted from the first one of the first cell.

        The cell of zero has none but its first. -1 for what is missing.
        """
        cells = self.cells(numbers)
        steps = cells - self._each
        sizes = np.minimum(np.abs(np.where(cells < 0, 0.0, numbers)), 2.0**LARGEST_POWER)
        mantissas, powers = np.frexp(np.where(steps == 0, 1.0, sizes))
        octave = (powers - 1 - SMALLEST_POWER) % self.octaves
        far = 8 * octave + (16 * mantissas - 8).astype(np.intp)  # how far from zero in the cell
        within = np.where(steps < 0, self.eighths_each - 1 - far, far)
        return np.where(cells < 0, -1, cells * self.eighths_each + np.where(steps, within, 0))

    def ends_of_eighth(self, eighth: int) -> tuple[float, float]:
        """Return the least and the largest number of an eighth, which its next one may share."""
        cell, within = divmod(eighth, self.eighths_each)
        step = cell - self._each
        if not step:
            return 0.0, 0.0
        far = within if step > 0 else self.eighths_each - 1 - within
        power = SMALLEST_POWER + self.octaves * (abs(step) - 1) + far // 8
        near, beyond = (math.ldexp(8 + far % 8 + edge, power - 3) for edge in (0, 1))
        return (near, beyond) if step > 0 else (-beyond, -near)

    def bounds(self, first: int, last: int) -> tuple[float, float]:
        """Return the least and the largest number of cells, from one to another."""
        return self._ends(first)[0], self._ends(last)[1]

    def _ends(self, cell: int) -> tuple[float, float]:
        step = cell - self._each
        if not step:
            return 0.0, 0.0
        near, far = (
            math.ldexp(1.0, SMALLEST_POWER + self.octaves * edge)
            for edge in (abs(step) - 1, abs(step))
        )
        return (near, far) if step > 0 else (-far, -near)
