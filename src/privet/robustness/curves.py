"""Bounds over the number of poisoned rows, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.robustness._plot import plot
from privet.robustness.estimates import Estimate
from privet.robustness.guarantees import accuracy_after, attack_success_after
from privet.robustness.promises import NoGuarantee, promise_of

_MEASURES = {"accuracy": accuracy_after, "attack success": attack_success_after}
#: Names for people.
TITLES = {
    "best": "best of all bounds",
    "paper": "paper's bound",
    "pure": "pure epsilon",
    "zcdp": "zCDP",
    "approximate": "(epsilon, delta)",
    "orders": "zCDP, all orders",
    "steps": "row by row",
}


@dataclass(frozen=True)
class Curve:
    """Bounds for several numbers of poisoned rows.

    Attributes
    ----------
    measure : str
        ``"accuracy"`` (bounded from below) or ``"attack success"`` (from above).
    clean : float
        What the bounds start from.
    poisoned : array of int
        Numbers of poisoned rows.
    bounds : dict of arrays
        Bounds by name, as in :class:`~privet.robustness.Guarantee`.
    """

    measure: str
    clean: float
    poisoned: NDArray[np.int64]
    bounds: Mapping[str, NDArray[np.float64]]

    @property
    def best(self) -> NDArray[np.float64]:
        """The best of all bounds."""
        every = np.array(list(self.bounds.values()))
        return np.asarray(every.max(axis=0) if self.measure == "accuracy" else every.min(axis=0))

    def to_svg(self) -> str:
        """Return the curves as a picture."""
        names = [name for name in TITLES if name in self.bounds and name not in ("orders", "steps")]
        lines = {TITLES["best"]: self.best, **{TITLES[n]: self.bounds[n] for n in names}}
        relation = "at least" if self.measure == "accuracy" else "at most"
        return plot(
            f"Expected {self.measure} after poisoning: {relation}", "poisoned rows",
            self.poisoned, lines,
        )  # fmt: skip


def curve(
    model: Any,
    clean: float | Estimate,
    most: int,
    *,
    measure: str = "accuracy",
    changed: bool = False,
    points: int = 101,
) -> Curve:
    """Return the bounds from 0 to ``most`` poisoned rows.

    Parameters
    ----------
    model, clean, changed
        As for :func:`~privet.robustness.accuracy_after`.
    most : int
        The largest number of poisoned rows.
    measure : {"accuracy", "attack success"}
        What is bounded.
    points : int, default=101
        How many numbers of rows, at most.

    Returns
    -------
    Curve

    Examples
    --------
    >>> from privet.robustness import promise_of
    >>> found = curve(promise_of(epsilon=0.1), 0.9, 4, points=3)
    >>> found.poisoned.tolist(), found.best.round(3).tolist()
    ([0, 2, 4], [0.9, 0.878, 0.851])
    """
    if measure not in _MEASURES:
        raise NoGuarantee("measure must be 'accuracy' or 'attack success'")
    if most < 0 or points < 2:
        raise NoGuarantee("a curve needs at least two points, and no negative number of rows")
    promise = promise_of(model)
    places = np.unique(np.linspace(0, most, points).round().astype(np.int64))
    found = [_MEASURES[measure](promise, clean, int(x), changed=changed) for x in places]
    bounds = {name: np.array([one.bounds[name] for one in found]) for name in found[0].bounds}
    return Curve(measure, found[0].clean, places, bounds)
