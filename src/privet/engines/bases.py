"""Public functions of records, in whole numbers, and what one record may add to their sums.

A function looks at one code: that of a feature, or the number of the record's cell. It is a public
table in fixed point. So the length of a record's vector of functions is the root of a whole number,
and the bounds on what a record adds hold exactly. Proof: ``docs/proofs/slopes.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: One, in the fixed point of functions, and in that of residuals.
STEP = 2**10
UNIT = 2**16
#: What bounds in doubles keep back for rounding.
_GUARD = 1 - 2.0**-30
#: Values of functions are at most this, so that sums over 2^31 records have room in 64 bits.
LARGEST = 8 * STEP


@dataclass(frozen=True, eq=False)
class Tabled:
    """Functions of one code, by their values.

    Attributes
    ----------
    values : int64 array of shape (codes, functions)
        In units of 1 / STEP.
    """

    values: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Tabled:
        """Round values to units."""
        return cls(np.rint(values * STEP).astype(np.int64))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values)

    @property
    def width(self) -> int:
        """How many functions there are."""
        return int(self.values.shape[1])

    def squares(self) -> NDArray[np.int64]:
        """Return the squared length of all functions at each code, in squared units."""
        return np.asarray((self.values**2).sum(axis=1))

    def sums(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of functions times weights, from totals of weights by code."""
        return np.asarray(self.values.T @ totals)

    def curve(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the functions times their slopes add at each code.

        In a fixed order: the last digits of a product of matrices depend on the processor.
        """
        found = np.zeros((self.size, slopes.shape[1]))
        for values, slope in zip(self.values.T, slopes, strict=True):
            found += values[:, None] * slope
        return found / STEP


@dataclass(frozen=True, eq=False)
class Peaks:
    """One function for every code: a peak there, less a level.

    Attributes
    ----------
    height : int
        In units of 1 / STEP.
    levels : int64 array, one per code
        In units of 1 / STEP.
    """

    height: int
    levels: NDArray[np.int64]

    @classmethod
    def of(cls, height: float, levels: NDArray[np.float64]) -> Peaks:
        """Round values to units."""
        return cls(round(height * STEP), np.rint(levels * STEP).astype(np.int64))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.levels)

    @property
    def width(self) -> int:
        """How many functions there are."""
        return len(self.levels)

    def squares(self) -> NDArray[np.int64]:
        """See :class:`Tabled`."""
        apart = self.height * (self.height - 2 * self.levels)
        return np.asarray(apart + (self.levels**2).sum())

    def sums(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """See :class:`Tabled`."""
        return np.asarray(self.height * totals - self.levels[:, None] * totals.sum(axis=0))

    def curve(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """See :class:`Tabled`."""
        level = [math.fsum(column) for column in (self.levels[:, None] * slopes).T.tolist()]
        return np.asarray((self.height * slopes - np.array(level)) / STEP)


Functions = Tabled | Peaks


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of some features' codes, each feature once, and perhaps of the cell.

    Attributes
    ----------
    features : tuple of (int, Functions)
        The feature's position in the schema, and functions of its codes.
    of_cells : Functions or None
        Functions of the number of a record's cell.
    """

    features: tuple[tuple[int, Functions], ...]
    of_cells: Functions | None = None

    @property
    def parts(self) -> tuple[Functions, ...]:
        """All functions, those of cells last."""
        found = tuple(functions for _, functions in self.features)
        return found if self.of_cells is None else (*found, self.of_cells)

    @property
    def width(self) -> int:
        """How many functions there are."""
        return sum(part.width for part in self.parts)

    def split(self, sums: NDArray[Any]) -> list[NDArray[Any]]:
        """Return what belongs to each of the parts, of one row per function."""
        ends = np.cumsum([part.width for part in self.parts])[:-1]
        return np.split(sums, ends)

    def most_squares(self) -> int:
        """Return a bound on the squared length of a record's functions, in squared units."""
        return sum(int(part.squares().max(initial=0)) for part in self.parts)


#: Public values by the codes of some features: the feature, and an array (codes, scores).
Curves = tuple[tuple[int, NDArray[np.float64]], ...]


def bounded_weights(
    residuals: NDArray[np.float64], lengths: NDArray[np.float64], largest: int, longest: int
) -> NDArray[np.int64]:
    """Return residuals in units of 1 / UNIT, shortened by record and rounded towards zero.

    Parameters
    ----------
    residuals : array of shape (records, scores)
    lengths : array
        The length of each record's functions, in units; at least one.
    largest : int
        The bound c on the length of the residuals, in their units.
    longest : int
        The bound R on the length of functions, in their units. A record's weights are at most
        ``largest * longest`` divided by the length of its functions.
    """
    size = np.abs(residuals[:, 0])
    if residuals.shape[1] > 1:
        total = size * size
        for column in residuals.T[1:]:  # in this order, whatever the number of records
            total += column * column
        size = np.sqrt(total)
    shorter = _GUARD * largest / (UNIT * np.maximum(size, 2.0**-40))
    nearer = _GUARD * longest / lengths
    factor = UNIT * (np.minimum(shorter, 1.0) * np.minimum(nearer, 1.0))
    return np.asarray(residuals * factor[:, None]).astype(np.int64)  # towards zero


def error_moments(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for every record four whole numbers that add up to :data:`UNIT`; none is negative.

    With a the distance of target and prediction, as a part of the target's range and cut at one:
    ``a^4``, ``a^2 - a^4``, ``a - a^2`` and ``1 - a``, in units (docs/proofs/evaluation.md).
    """
    a = np.clip(np.nan_to_num(distances, nan=1.0), 0.0, 1.0)
    whole = [np.rint(UNIT * power).astype(np.int64) for power in (a, a**2, a**4)]
    one = np.minimum(whole[0], UNIT)
    two = np.minimum(whole[1], one)
    four = np.minimum(whole[2], two)
    return np.column_stack([four, two - four, one - two, UNIT - one])


def calibration_moments(
    targets: NDArray[Any], apart: NDArray[np.float64], shift: float, factor: float
) -> NDArray[np.int64]:
    """Return five whole numbers per record: how well ``shift + factor * apart`` fits two classes.

    ``apart`` is the score without its start. Bounds: :data:`CALIBRATION_SQUARES`.
    """
    shares = 1 / (1 + np.exp(-np.clip(shift + factor * apart, -700, 700)))
    place = np.clip(apart / 4, -1.0, 1.0)
    pull = np.clip(targets - shares, -1.0, 1.0)
    curvature = np.minimum(shares * (1 - shares), 0.25)
    first = curvature * place
    found = np.column_stack([pull, pull * place, curvature, first, first * place])
    return (found * UNIT).astype(np.int64)  # towards zero


#: No record's calibration moments have a larger sum of squares: 2 + 3/16, in squared units.
CALIBRATION_SQUARES = 2 * UNIT**2 + 3 * (UNIT // 4) ** 2
