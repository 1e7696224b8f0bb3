"""Floats are the decimals that people write, and doubles are rounded to the private side of them.

docs/proofs/ledger.md says why. All checks are exact.
"""

import math
import sqlite3
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import BudgetExceeded
from privet.model import PrivacyCard
from privet.privacy import (
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GridExponential,
    Ledger,
    LedgerStore,
    PermuteAndFlip,
    Place,
    Question,
    QuestionKind,
    added,
    as_float,
    as_written,
    at_least,
    exact,
)
from privet.privacy.budget import _rho_of, float_above, float_below
from privet.privacy.mechanisms import (
    LaplaceShare,
    NoisyMaxShare,
    ReportNoisyMax,
    TopOf,
    WholeTree,
)
from privet.privacy.quantiles import JointQuantiles, Quantiles
from privet.privacy.thresholds import Threshold
from privet.schema import Discovered

PARTS_OF_ONE = [[0.1, 0.9], [0.1] * 10, [0.3, 0.3, 0.4], [0.7, 0.2, 0.1]]
COUNT = Question(QuestionKind.ROW_COUNT)
amounts = st.floats(1e-4, 1e4)


def written(value):
    return Fraction(repr(float(value)))


# What adds up in the head adds up ----------------------------------------------------------------


@pytest.mark.parametrize("parts", PARTS_OF_ONE, ids=str)
def test_a_ledger_file_of_one_pays_for_parts_of_one(parts, tmp_path):
    store = LedgerStore.create(tmp_path / "t.ledger", Budget(1.0), columns=["age"])
    for part in parts:
        store.reserve(Budget(part), "a fit", columns=["age"])
    assert store.left == 0
    with pytest.raises(BudgetExceeded):
        store.reserve(Budget(1e-9), "one more", columns=["age"])


@pytest.mark.parametrize("parts", PARTS_OF_ONE, ids=str)
def test_books_of_one_pay_for_parts_of_one(parts):
    for kind, noise in (("epsilon", DiscreteLaplace), ("rho", DiscreteGaussian)):
        ledger = Ledger(Budget(**{kind: 1.0}))
        for part in map(np.float64, parts):
            fit = ledger.subledger(Budget(**{kind: part}))
            fit.charge(fit.root, noise(1, part), COUNT, Place())
        assert ledger.left == 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(ledger.root, noise(1, 1e-9), COUNT, Place())


def test_deltas_of_thresholds_add_up():
    ledger = Ledger(Budget(10, threshold_delta=1e-5))
    for delta in (3e-6, 7e-6):
        mechanism = Threshold(DiscreteLaplace(1, 0.5), 1, 1, delta)
        ledger.charge(ledger.root, mechanism, COUNT, Place())
    assert ledger.total.delta == Fraction(1, 10**5)
    more = Threshold(DiscreteLaplace(1, 0.5), 1, 1, 1e-20)
    with pytest.raises(BudgetExceeded):
        ledger.charge(ledger.root, more, COUNT, Place())


@given(total=amounts, parts=st.lists(amounts, max_size=8))
@settings(max_examples=60, deadline=None)
def test_along_a_path_no_more_is_charged_than_there_is(total, parts):
    """What is refused is what does not fit, by exact decimals, and nothing else."""
    ledger = Ledger(Budget(total))
    cells, paid = ledger.root, Fraction(0)
    for part in parts:
        fits = paid + written(part) <= written(total)
        try:
            ledger.charge(cells, DiscreteLaplace(1, part), COUNT, Place())
        except BudgetExceeded:
            assert not fits
            continue
        assert fits
        paid += written(part)
        cells = cells.divide(np.array([0, 0])).take([1])
    assert ledger.total.epsilon == paid <= written(total)


# Doubles are on the private side -----------------------------------------------------------------


@given(epsilon=amounts, spread=st.integers(1, 1000), count=st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_every_mechanism_is_on_the_private_side(epsilon, spread, count):
    bound = written(epsilon)
    for kind in (DiscreteLaplace, PermuteAndFlip, Exponential, ReportNoisyMax):
        mechanism = kind(spread, epsilon)
        assert mechanism.cost.epsilon == bound
        assert spread / Fraction(mechanism.scale) <= bound
    several = TopOf(spread, epsilon, count)
    assert several.cost.epsilon == bound
    assert count * spread / Fraction(several.scale) <= bound
    gaussian = DiscreteGaussian(spread, epsilon)
    assert gaussian.cost.rho == bound
    assert spread / (2 * Fraction(gaussian.scale) ** 2) <= bound
    assert GridExponential(spread, epsilon).rate * spread == bound
    levels = Quantiles(count + 1, exact(epsilon))
    assert levels.cost.epsilon == bound
    assert LaplaceShare(1, epsilon, 2).rate == bound
    share = NoisyMaxShare(spread, epsilon, 2)
    assert share.rate * -(-spread * share.units // share.step) <= bound
    for drawn in (WholeTree(exact(epsilon)), JointQuantiles(exact(epsilon), 4)):
        assert drawn.cost.epsilon == bound
        ideal = (bound - drawn.ABSOLUTE_SLACK) / (1 + drawn.relative_slack)
        assert Fraction(drawn.rate_for(spread)) * spread <= ideal


@given(epsilon=amounts, delta=st.floats(1e-12, 0.1))
@settings(max_examples=60, deadline=None)
def test_thresholds_are_high_enough(epsilon, delta):
    """By 60 digits: the tail of the noise at the threshold is within the delta that is written."""
    found = Threshold(DiscreteLaplace(1, epsilon), 3, 1, delta)
    exactly = Context(prec=60)
    scale = exactly.create_decimal(found.noise.scale)
    tail = exactly.divide(
        exactly.exp(exactly.divide(Decimal(1 - found.least), scale)),
        exactly.add(1, exactly.exp(exactly.divide(Decimal(-1), scale))),
    )
    assert 3 * Fraction(tail) <= written(delta) == found.cost.delta


@given(amount=st.fractions(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_what_comes_back_is_rounded_up(amount):
    up = as_float(amount)
    assert written(up) >= amount
    assert not up or written(math.nextafter(up, 0)) < amount
    assert float_below(amount) <= amount <= float_above(amount)
    assert math.nextafter(float_below(amount), math.inf) > amount or float_below(amount) == amount


@given(value=st.floats(1e-300, 1e300))
@settings(max_examples=100, deadline=None)
def test_floats_come_back_as_they_are_written(value):
    assert exact(value) == exact(np.float64(value)) == as_written(value) == written(value)
    assert as_float(exact(value)) == value
    assert at_least(value) == max(Fraction(value), written(value))
    assert float_below(at_least(value)) == value  # limits of old files stay what they were


def test_sums_of_floats():
    assert added(0.1, 0.2) == 0.3
    assert added(0.1, 0.9) == 1
    assert added(0.0, 0.1) == 0.1
    assert added(math.inf, 0.1) == math.inf
    assert as_float(Fraction(10**400)) == float_above(Fraction(10**400)) == math.inf


@pytest.mark.parametrize(  # most doubles of these hold more than what is written
    ("epsilon", "delta"), [(0.1, 1e-5), (1.1, 1e-8), (0.3, 1e-5), (0.003, 0.003)]
)
def test_the_conversion_keeps_what_is_written(epsilon, delta):
    """By 40 digits, with the formula of docs/proofs/ledger.md: some alpha proves the promise."""
    exactly = Context(prec=40)
    rho = Budget(epsilon, delta=delta).limit
    rho = exactly.divide(Decimal(rho.numerator), Decimal(rho.denominator))
    small = Decimal(repr(delta))

    def bound(excess):
        alpha = 1 + excess
        tail = -exactly.ln(exactly.multiply(alpha, small)) / excess
        return alpha * rho + tail + exactly.ln(1 - 1 / alpha)

    low, high = Decimal("1e-3"), Decimal("1e7")
    for _ in range(60):  # of the logarithm, by thirds
        left = exactly.power(low, Decimal(2) / 3) * exactly.power(high, Decimal(1) / 3)
        right = exactly.power(low, Decimal(1) / 3) * exactly.power(high, Decimal(2) / 3)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    assert bound(low) <= Decimal(repr(epsilon))


# Old files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-8])
def test_an_old_file_of_zcdp_that_is_spent_to_the_end_is_read(tmp_path, delta):
    """Older versions wrote what the doubles hold, and what they reserved was the limit of that."""
    path = tmp_path / "old.ledger"
    store = LedgerStore.create(path, Budget(Fraction(0.1), delta=delta), columns=["age"])
    store.reserve(Budget(Fraction(0.1), delta=delta), "all", columns=["age"])
    limit = _rho_of(0.1, delta)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE opening SET delta = ?", (delta,))
        connection.execute("UPDATE draws SET reserved = ?", (str(limit),))
    connection.close()
    assert store.spent == store.budget.limit == limit
    assert store.left == 0


def test_what_an_old_file_has_spent_does_not_shrink(tmp_path):
    """The double for 0.1 holds more than a tenth: with it, 0.9 of 1 is not left."""
    store = LedgerStore.create(tmp_path / "old.ledger", Budget(1), columns=["age"])
    store.reserve(Budget(Fraction(0.1)), "a fit of an older version", columns=["age"])
    assert store.spent == Fraction(0.1) > Fraction(1, 10)
    with pytest.raises(BudgetExceeded, match=r"epsilon 0\.9, but epsilon 0\.899999 is left"):
        store.reserve(Budget(0.9), "a fit", columns=["age"])
    store.reserve(Budget(0.8999), "a fit", columns=["age"])


def test_what_a_discovered_schema_cost_adds_up_and_does_not_shrink():
    def card(epsilon):
        paid = Discovered(epsilon, 0.0, "laplace", 2, 0)
        return PrivacyCard.of(Ledger(Budget(0.2)), (), rows_declared=False, discovered=paid)

    found = card(0.1)
    assert found.requested_epsilon == 0.3  # and 0.1 + 0.2 is not
    assert sum(entry.cost.epsilon for entry in found.entries) == Fraction(1, 10)
    older = (2**30 // 10 + 1) / 2**30  # holds more than what is written for it
    assert written(older) < Fraction(older)
    assert sum(entry.cost.epsilon for entry in card(older).entries) == Fraction(older)
