"""Budgets refuse what means nothing, add up exactly, and convert without ever promising more."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import BudgetError, PrivetError
from privet.privacy import Budget, Cost, DiscreteGaussian, DiscreteLaplace, exact, zcdp_epsilon
from privet.privacy.budget import NOTHING, float_below

SENSELESS = [
    0,
    0.0,
    -0.0,
    -1,
    -math.inf,
    math.nan,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("-1"),
    True,
    False,
    "1",
    b"1",
    "",
    None,
    1j,
    [1.0],
    (1,),
    {},
    np.bool_(True),
    np.float64("nan"),
    np.int64(0),
    np.float32(-1),
    np.complex128(1),
    np.array([1.0, 2.0]),
    np.array("x"),
    object(),
    float,
]


@pytest.mark.parametrize("value", SENSELESS, ids=lambda v: type(v).__name__)
def test_senseless_amounts_are_refused(value):
    with pytest.raises(BudgetError):
        exact(value)
    if value is not None:
        with pytest.raises(BudgetError):
            Budget(value)
        with pytest.raises(BudgetError):
            Budget(rho=value)
        with pytest.raises(BudgetError):
            Budget(1.0, delta=value)


def test_the_error_is_a_value_error_and_names_what_is_wrong():
    for error in (ValueError, PrivetError):
        with pytest.raises(error, match="delta must be positive"):
            Budget(1, delta=0)
    with pytest.raises(BudgetError, match="rho must not be NaN"):
        Budget(rho=math.nan)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.25), Fraction(1, 4)),
        (np.float32(0.1), Fraction("0.10000000149011612")),  # the double that it is
        (np.int16(3), Fraction(3)),
        (np.array(0.5), Fraction(1, 2)),
        (10**400, Fraction(10**400)),
        (5e-324, Fraction(5, 10**324)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_numbers_become_exact_fractions(value, amount):
    found = exact(value)
    assert found == amount
    assert type(found) is Fraction
    assert type(found.numerator) is int
    assert Budget(value).limit == amount


@pytest.mark.parametrize(
    "value", [math.inf, np.inf, np.float32("inf"), Decimal("inf")], ids=lambda v: type(v).__name__
)
def test_infinity_is_the_only_float(value):
    assert exact(value) == math.inf
    assert Budget(value).limit == math.inf
    with pytest.raises(BudgetError):
        Budget(value, delta=1e-6)


@pytest.mark.parametrize("delta", [1, 1.0, 2, math.inf, Fraction(3, 2)])
def test_delta_of_one_or_more_is_refused(delta):
    with pytest.raises(BudgetError, match="delta must be below 1"):
        Budget(1.0, delta=delta)


def test_delta_is_never_rounded_up():
    for delta in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(1, 10**300)):
        budget = Budget(1, delta=delta)
        assert budget.delta == delta
        assert budget.limit == Budget(1, delta=Fraction(float_below(delta))).limit
    with pytest.raises(BudgetError, match="too small"):
        Budget(1, delta=Fraction(1, 10**400))


@pytest.mark.parametrize(
    "arguments", [{}, {"delta": 1e-6}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": 1e-6}]
)
def test_one_kind_of_budget_at_a_time(arguments):
    with pytest.raises(BudgetError):
        Budget(**arguments)


def test_accountants():
    pure, approximate, zcdp = Budget(1), Budget(1, delta=1e-6), Budget(rho=1)
    assert [b.accountant for b in (pure, approximate, zcdp)] == ["pure", "zCDP", "zCDP"]
    cost = Cost(Fraction(1, 2), Fraction(1, 8))
    assert [b.amount(cost) for b in (pure, approximate, zcdp)] == [0.5, 0.125, 0.125]
    assert [str(b) for b in (pure, approximate, zcdp)] == [
        "epsilon 1",
        "epsilon 1, delta 1e-06",
        "rho 1",
    ]
    assert pure.as_epsilon(cost) == 0.5
    assert zcdp.as_epsilon(cost) == math.inf
    assert zcdp.as_epsilon(NOTHING) == 0
    assert approximate.as_epsilon(cost) == zcdp_epsilon(0.125, 1e-6)


def test_costs_add_up_exactly():
    tenth = Cost.pure(Fraction(1, 10))
    total = NOTHING
    for _ in range(10):
        total += tenth
    assert total == Cost(Fraction(1), Fraction(1, 20))
    assert (total + Cost.zcdp(Fraction(1))).epsilon == math.inf
    assert Cost.bounded_range(Fraction(2)) == Cost(Fraction(2), Fraction(1, 2))
    assert Cost.pure(math.inf) == Cost(math.inf, math.inf)


def test_budgets_are_values():
    assert Budget(0.5) == Budget(Fraction(1, 2))
    assert len({Budget(0.5), Budget(Fraction(1, 2)), Budget(rho=0.5)}) == 2
    with pytest.raises(AttributeError):
        Budget(1).epsilon = 3


# zCDP --------------------------------------------------------------------------------------------


def test_published_conversions():
    """With the best alpha (docs/proofs/ledger.md): better than rho + 2 sqrt(rho log(1/delta))."""
    assert float(Budget(1, delta=1e-6).limit) == pytest.approx(0.02436, abs=5e-6)
    assert zcdp_epsilon(0.1, 1e-6) == pytest.approx(2.14, abs=5e-3)
    assert 0.1 + 2 * math.sqrt(0.1 * math.log(1e6)) == pytest.approx(2.45, abs=5e-3)


def gaussian_delta(epsilon, sigma):
    """Exact delta of Gaussian noise for sensitivity 1 (Balle & Wang 2018, Theorem 8)."""
    from scipy.stats import norm

    tail = norm.logcdf(-1 / (2 * sigma) - epsilon * sigma)
    return norm.cdf(1 / (2 * sigma) - epsilon * sigma) - math.exp(epsilon + tail)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.1, 1.0, 10.0])
def test_the_conversion_holds_for_a_mechanism_whose_loss_is_known(rho, delta):
    """Gaussian noise is exactly rho-zCDP with rho = 1 / (2 sigma^2)."""
    epsilon = zcdp_epsilon(rho, delta)
    assert gaussian_delta(epsilon, 1 / math.sqrt(2 * rho)) <= delta
    # and is not absurdly loose: 40 % less would be wrong (a large delta may be enough by itself)
    assert epsilon == 0 or gaussian_delta(0.6 * epsilon, 1 / math.sqrt(2 * rho)) > delta


@given(rho=st.floats(1e-8, 1e3), more=st.floats(1, 100), delta=st.floats(1e-12, 0.1))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_conversion_is_monotone_and_below_the_simple_formula(rho, more, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert 0 <= epsilon <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-9)
    assert zcdp_epsilon(rho * more, delta) >= epsilon * (1 - 1e-9)
    assert zcdp_epsilon(rho, delta / more) >= epsilon * (1 - 1e-9)


@given(epsilon=st.floats(1e-4, 1e3), delta=st.floats(1e-12, 0.1))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_round_trip_never_exceeds_what_was_promised(epsilon, delta):
    budget = Budget(epsilon, delta=delta)
    assert budget.limit > 0
    back = zcdp_epsilon(float(budget.limit), float_below(budget.delta))
    assert back <= epsilon
    assert back >= epsilon * (1 - 1e-6)  # and does not give much away
    assert budget.as_epsilon(Cost.zcdp(budget.limit)) <= epsilon


@given(epsilon=st.floats(1e-3, 100), more=st.floats(1.01, 10), delta=st.floats(1e-12, 0.01))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_more_epsilon_or_more_delta_buys_more_rho(epsilon, more, delta):
    limit = Budget(epsilon, delta=delta).limit
    assert Budget(epsilon * more, delta=delta).limit > limit
    assert Budget(epsilon, delta=delta * more).limit > limit


def test_ends_of_the_conversion():
    assert zcdp_epsilon(0, 1e-6) == 0
    assert zcdp_epsilon(math.inf, 1e-6) == math.inf
    assert zcdp_epsilon(1e20, 1e-6) >= 1e20
    assert Budget(1e-3, delta=5e-324).limit > 0
    assert Budget(1e5, delta=1e-6).limit > 9e4


# Amounts of mechanisms ---------------------------------------------------------------------------

amounts = st.one_of(
    st.fractions(Fraction(1, 10**9), 10**6),
    st.floats(1e-290, 1e290).map(Fraction),
    st.integers(1, 10**12).map(lambda n: Fraction(n * n, 8)),  # the root is a whole number
)


@given(amount=amounts)
@settings(max_examples=300)
def test_selections_never_cost_more_than_their_amount(amount):
    """An exponential mechanism costs epsilon^2 / 8 of rho: exactly at most, and hardly less."""
    for budget in (Budget(rho=1), Budget(1, delta=1e-6)):
        epsilon = budget.selection_epsilon(amount)
        assert isinstance(epsilon, Fraction)
        assert Cost.bounded_range(epsilon).rho <= amount
        assert (epsilon * (1 + Fraction(1, 2**50))) ** 2 / 8 > amount
    assert Budget(1).selection_epsilon(amount) == amount


def test_selections_at_the_ends():
    for budget in (Budget(1), Budget(rho=1), Budget(math.inf)):
        assert budget.selection_epsilon(math.inf) == math.inf
        assert budget.count_scale(math.inf) == 0
    assert Budget(rho=1).selection_epsilon(2) == 4
    assert Budget(rho=1).selection_epsilon(Fraction(1, 10**400)) == 0  # too little for any draw


@given(amount=st.fractions(Fraction(1, 10**9), 10**6))
@settings(max_examples=100)
def test_counts_have_the_scale_of_their_mechanisms(amount):
    assert Budget(1).count_scale(amount) == pytest.approx(DiscreteLaplace(1, amount).scale)
    for budget in (Budget(rho=1), Budget(1, delta=1e-6)):
        assert budget.count_scale(amount) == pytest.approx(DiscreteGaussian(1, amount).scale)
