"""What TopDownClassifier pays and may ask when several parties hold the rows: its own rules.

The plan for parties is for this learner. Its candidates, its shares and its depth come from
:mod:`privet.learners.topdown`, and what a secure sum refuses from the mechanisms themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from privet.criteria import HALVINGS, MAX_ROWS, Gini, GiniChords
from privet.errors import PrivetError
from privet.federation.mpc import MOST_OPTIONS, check_range
from privet.learners import topdown
from privet.privacy import (
    SMALLEST_RATE,
    LaplaceShare,
    NoisyMaxShare,
    exact,
)
from privet.schema import Schema

#: The estimator's defaults.
MAX_NODES, LEAF_FRACTION = 512, Fraction(1, 2)
#: Cells of a number, by default.
BINS = topdown.THRESHOLDS + 1


@dataclass(frozen=True)
class Shares:
    """What a tree of some depth pays, exactly: choices and gains by level, and labels."""

    choices: tuple[Fraction, ...]
    gains: tuple[Fraction, ...]
    labels: Fraction


def make_options(bins: int) -> topdown.TopDownOptions:
    """Return what ``TopDownClassifier()`` chooses, with ``bins`` cells of a number."""
    return topdown.TopDownOptions(
        max_nodes=MAX_NODES,
        max_depth=None,
        budget="decay",
        leaf_fraction=LEAF_FRACTION,
        criterion=Gini(),
        split="flip",
        thresholds=bins - 1,
        min_gain=None,
        min_weight=None,
        published=False,
    )


def count_sizes(schema: Schema, bins: int) -> list[tuple[int, int]]:
    """Return the candidates and the cells of every feature."""
    view = topdown.make_view(schema, bins - 1)
    candidates = topdown.make_candidates(view, missing=True)
    return [(candidates.options(place, view), size) for place, size in enumerate(view.sizes)]


def auto_depth(epsilon: float, rows: int, bins: int, *, shared: bool) -> int:
    """Return the depth that it takes if it is told the rows, but no depth.

    If parties share noise, that ends before there is too little to share.
    """
    least = SMALLEST_RATE if shared else Fraction(0)
    return len(topdown.make_levels(exact(epsilon), rows, make_options(bins), least))


def make_shares(epsilon: float, rows: int, depth: int, bins: int) -> Shares:
    """Return what a tree of this depth pays for what."""
    amount = Fraction(exact(epsilon))
    levels = topdown.make_levels(amount, rows, replace(make_options(bins), max_depth=depth))
    return Shares(
        tuple(Fraction(level.choice) for level in levels),
        tuple(Fraction(level.gain) for level in levels),
        amount * LEAF_FRACTION,
    )


def refusal(shares: Shares, candidates: int, classes: int, honest: int) -> str | None:
    """Return why parties would refuse a secure sum with these shares; None if they would not."""
    if candidates > MOST_OPTIONS:
        return f"parties choose among {MOST_OPTIONS} options at most"
    try:
        criterion = GiniChords(classes, HALVINGS[0])
        check_range(criterion.spread * MAX_ROWS, candidates)
        for choice, gain in zip(shares.choices, shares.gains, strict=True):
            NoisyMaxShare(criterion.spread, choice, honest)
            LaplaceShare(1, gain, honest)
        NoisyMaxShare(1, shares.labels, honest)
    except PrivetError as error:
        return str(error)
    return None


def describe_shares() -> str:
    """Return how it shares its budget, in words."""
    return (
        f"labels get {LEAF_FRACTION} of the budget, a level {topdown.DECAY} of what the level "
        f"above it gets, and gains {topdown.GAIN_SHARE} of a level"
    )
