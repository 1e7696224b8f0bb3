"""What boosting needs of single records: the derivatives of their loss, as whole numbers.

A loss turns a record's target and its score, a sum of released values, into whole numbers of
bounded size: which way the record *pulls* its score, and how hard. It looks at one record at a
time, so that one more record changes a sum by one term; the bounds are enforced on the integers
themselves, whatever rounding did before. Inside the wall. Proof:
``docs/proofs/boosting.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.schema import Schema

#: A record's weight in a drawn tree is a whole number up to this.
HEAVIEST = 127
#: One, in the fixed point of gradients and curvatures.
UNIT = 2**16
#: Weight of the count beside a sum, where both get Gaussian noise: a third of the sum's square.
_COUNT = round(UNIT / math.sqrt(3))


class Loss(Protocol):
    """How records pull at their scores.

    Attributes
    ----------
    columns : int
        How many scores a record has.
    labels : int
        How many labels the trees have that boosting draws.
    """

    columns: int
    labels: int

    def pulls(
        self, targets: NDArray[Any], scores: NDArray[np.float64], reach: float
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the label that each record pulls to, and a weight from 0 to :data:`HEAVIEST`."""

    def moments(
        self, targets: NDArray[Any], scores: NDArray[np.float64], reach: float, *, pure: bool
    ) -> NDArray[np.int64]:
        """Return whole numbers per record, whose sums are (scaled) first and second derivatives."""

    def residuals(self, targets: NDArray[Any], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the first derivatives per record and score, with the sign of a pull."""

    def bounds(self, *, pure: bool) -> tuple[int, int]:
        """Return bounds on a record's moments: their absolute sum, and their sum of squares."""

    def read(
        self, sums: NDArray[np.int64], deviation: float, *, pure: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return pull and curvature per column, in records, and the deviation of a pull's noise."""


class Logistic:
    """Two classes; the score is the log odds of the second."""

    columns = 1
    labels = 2

    def pulls(self, targets: Any, scores: Any, reach: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """See :class:`Loss`. ``reach`` bounds the absolute score."""
        pull = np.abs(targets - _logistic(scores[:, 0]))
        return targets, _weights(pull, float(_logistic(np.array(reach))))

    def moments(self, targets: Any, scores: Any, reach: float, *, pure: bool) -> NDArray[np.int64]:
        """See :class:`Loss`: with q the probability of the other class, ``q + q (1 - q) <= 1``."""
        del reach, pure
        shares = _logistic(scores[:, 0])
        pull = ((targets - shares) * UNIT).astype(np.int64)
        curvature = (shares * (1 - shares) * UNIT).astype(np.int64)
        return np.column_stack([pull, np.minimum(curvature, UNIT - np.abs(pull))])

    def residuals(self, targets: Any, scores: Any) -> NDArray[np.float64]:
        """See :class:`Loss`."""
        return np.asarray(targets[:, None] - _logistic(scores))

    def bounds(self, *, pure: bool) -> tuple[int, int]:
        """See :class:`Loss`."""
        del pure
        return UNIT, UNIT**2

    def read(self, sums: Any, deviation: float, *, pure: bool) -> Any:
        """See :class:`Loss`."""
        del pure
        return sums[:, :1] / UNIT, sums[:, 1:] / UNIT, deviation / UNIT


class Softmax:
    """More classes; one score for each, and probabilities by their softmax."""

    def __init__(self, classes: int) -> None:
        self.columns = self.labels = classes

    def pulls(self, targets: Any, scores: Any, reach: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """See :class:`Loss`. ``reach`` bounds the absolute scores."""
        others = 1 - _softmax(scores)[np.arange(len(targets)), targets]
        most = 1 / (1 + math.exp(-2 * min(reach, 300)) / (self.columns - 1))
        return targets, _weights(others, most)

    def moments(self, targets: Any, scores: Any, reach: float, *, pure: bool) -> NDArray[np.int64]:
        """See :class:`Loss`."""
        del reach
        shares = _softmax(scores)
        pull = _pulls(targets, shares)
        found = np.concatenate([pull, shares * (1 - shares)], axis=1)
        whole = (found * UNIT).astype(np.int64)  # towards zero
        l1, squared_l2 = self.bounds(pure=pure)
        # Never, but for rounding: the guarantee must not depend on it.
        beyond = (np.abs(whole).sum(axis=1) > l1) | ((whole**2).sum(axis=1) > squared_l2)
        whole[beyond] = 0
        return whole

    def residuals(self, targets: Any, scores: Any) -> NDArray[np.float64]:
        """See :class:`Loss`."""
        return _pulls(targets, _softmax(scores))

    def bounds(self, *, pure: bool) -> tuple[int, int]:
        """See :class:`Loss`."""
        del pure
        l1 = UNIT * (3 - Fraction(1, self.columns - 1))
        return math.ceil(l1), 2 * UNIT**2

    def read(self, sums: Any, deviation: float, *, pure: bool) -> Any:
        """See :class:`Loss`."""
        del pure
        return sums[:, : self.columns] / UNIT, sums[:, self.columns :] / UNIT, deviation / UNIT


class Squared:
    """A number between 0 and 1; the score is a guess at it, and residuals are cut at ``reach``."""

    columns = 1
    labels = 2

    def pulls(self, targets: Any, scores: Any, reach: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """See :class:`Loss`. The labels are "too high" and "too low"."""
        residual = targets - scores[:, 0]
        return (residual > 0).astype(np.uint8), _weights(np.abs(residual), reach)

    def moments(self, targets: Any, scores: Any, reach: float, *, pure: bool) -> NDArray[np.int64]:
        """See :class:`Loss`: two complementary sums, or the sum and the count."""
        residual = np.clip((targets - scores[:, 0]) / reach, -1.0, 1.0)
        if pure:
            up = np.rint((1 + residual) / 2 * UNIT).astype(np.int64)
            return np.column_stack([up, UNIT - up])
        pull = np.rint(residual * UNIT).astype(np.int64)
        return np.column_stack([pull, np.full(len(pull), _COUNT)])

    def residuals(self, targets: Any, scores: Any) -> NDArray[np.float64]:
        """See :class:`Loss`."""
        return np.asarray(targets[:, None] - scores)

    def bounds(self, *, pure: bool) -> tuple[int, int]:
        """See :class:`Loss`."""
        return (UNIT, UNIT**2) if pure else (UNIT + _COUNT, UNIT**2 + _COUNT**2)

    def read(self, sums: Any, deviation: float, *, pure: bool) -> Any:
        """See :class:`Loss`."""
        if pure:
            pull, count = sums[:, :1] - sums[:, 1:], sums.sum(axis=1, keepdims=True)
            return pull / UNIT, count / UNIT, math.sqrt(2) * deviation / UNIT
        return sums[:, :1] / UNIT, sums[:, 1:] / _COUNT, deviation / UNIT


def loss_of(schema: Schema) -> Loss:
    """Return the loss for a schema's target."""
    if schema.classes is None:
        return Squared()
    return Logistic() if len(schema.classes) == 2 else Softmax(len(schema.classes))


def _weights(pulls: NDArray[np.float64], most: float) -> NDArray[np.int64]:
    return np.clip(np.rint(pulls * (HEAVIEST / most)), 0, HEAVIEST).astype(np.int64)


def _logistic(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -700, 700))))


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = np.clip(scores, -1e300, 1e300)  # infinities would leave no number, and no bound
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _pulls(targets: NDArray[Any], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one for a record's class and zero for the others, less their shares."""
    found = -shares
    found[np.arange(len(targets)), targets] += 1
    return found
