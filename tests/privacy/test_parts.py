"""Every mechanism: made for a person of Q parts it is the one that is made for a part of a Q-th.

The cost of Q parts together, each of which pays what the mechanism costs a part, is then what the
person is charged (docs/proofs/units.md).
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from privet.errors import BudgetError
from privet.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GridExponential,
    JointQuantiles,
    LaplaceShare,
    NoisyMaxShare,
    PermuteAndFlip,
    Quantiles,
    ReportNoisyMax,
    TopOf,
    WholeTree,
)

E = Fraction(3, 7)
#: Of each mechanism: for a unit of q parts that is charged an amount.
PURE = {
    "laplace": lambda q, e: DiscreteLaplace(5 * q, e),
    "laplace share": lambda q, e: LaplaceShare(q, e, 3),
    "flip": lambda q, e: PermuteAndFlip(2 * q, e),
    "exponential": lambda q, e: Exponential(2 * q, e),
    "grid": lambda q, e: GridExponential(2 * q, e),
    "noisy max": lambda q, e: ReportNoisyMax(2 * q, e),
    "top": lambda q, e: TopOf(q, e, 4),
    "quantiles": lambda q, e: Quantiles(8, e, q),
    "joint quantiles": lambda q, e: JointQuantiles(e, 4, unit_parts=q),
    "whole tree": lambda q, e: WholeTree(e, unit_parts=q),
}


def scale(mechanism):
    """Return by what the law of a mechanism depends on its amount."""
    for name in ("scale", "rate"):
        if hasattr(mechanism, name):
            return float(getattr(mechanism, name))
    return float(mechanism.cut(1, 3).rate)


@pytest.mark.parametrize("q", [2, 3, 60])
@pytest.mark.parametrize("name", PURE)
def test_a_person_pays_for_its_parts(name, q):
    person, part = PURE[name](q, E), PURE[name](1, E / q)
    assert scale(person) == pytest.approx(scale(part), rel=1e-12)
    assert part.cost.of_group(q).epsilon == person.cost.epsilon == E
    assert part.cost.of_group(q).rho == person.cost.rho


@pytest.mark.parametrize("q", [2, 60])
def test_a_person_pays_for_its_parts_in_zcdp(q):
    person, part = DiscreteGaussian(7 * q**2, E), DiscreteGaussian(7, E / q**2)
    assert person.scale == pytest.approx(part.scale)
    assert part.cost.of_group(q).rho == person.cost.rho == E


def test_a_noisy_max_of_parties_may_be_coarser():
    """Its steps are chosen anew for a spread; they never make it cheaper than it says."""
    person = NoisyMaxShare(60 * 7, E, 2)
    steps = -(-person.spread * person.units // person.step)
    assert steps * person.rate == E


def test_draws_keep_back_rounding_for_every_part():
    least = 4 * 60 * WholeTree.ABSOLUTE_SLACK
    WholeTree(least, unit_parts=60)
    with pytest.raises(BudgetError, match="too small"):
        WholeTree(least * Fraction(99, 100), unit_parts=60)
