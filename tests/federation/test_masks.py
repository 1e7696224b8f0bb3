"""Shares of noise and masks."""

import decimal
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from privet import Schema
from privet.criteria import Gini, GiniChords, Max
from privet.errors import BudgetError, FederationError
from privet.federation.mpc import MaskKeys, fingerprint, open_sum
from privet.federation.mpc.masks import key_stream, round_key
from privet.privacy import DiscreteLaplace, Exact, LaplaceShare
from privet.privacy.noise import SecureNoise, SeededNoise
from privet.privacy.polya import _steps, draw_polya, draw_shares
from privet.tables import Binary, Each, Multiway, Split, Thresholds

from .parties import SCHEMA


def polya(rate, honest, most):
    a, r = math.exp(-rate), 1 / honest
    law = [(1 - a) ** r]
    for x in range(1, most):
        law.append(law[-1] * a * (x - 1 + r) / x)
    return np.array(law)


@pytest.mark.parametrize("honest", [1, 2, 4, 10])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(3)])
def test_honest_shares_make_discrete_laplace_noise(rate, honest):
    steps, error = _steps(rate, honest, 48)
    assert error < 10**20
    law = np.diff([0, *(float(Fraction(step, 10**48)) for step in steps)])
    most = min(len(law), 120)
    assert law[:most] == pytest.approx(polya(float(rate), honest, most), rel=1e-9, abs=1e-15)
    size = 2**12
    padded = np.zeros(size)
    padded[: len(law[:size])] = law[:size]
    # The transform of X - Y, to the power of the number of parties.
    noise = np.fft.ifft(np.abs(np.fft.fft(padded)) ** (2 * honest)).real
    a = math.exp(-rate)
    expected = (1 - a) / (1 + a) * a ** np.arange(40)
    assert noise[:40] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_draws_have_the_law():
    rate, honest = Fraction(1, 2), 4
    source = SeededNoise(1)
    drawn = draw_polya(20_000, rate, honest, source)
    law = polya(0.5, 4, 12)
    found = np.bincount(drawn, minlength=12)[:12]
    statistic = ((found - 20_000 * law) ** 2 / (20_000 * law)).sum()
    assert statistic < 40  # 12 degrees of freedom
    totals = sum(draw_shares(4_000, rate, honest, source) for _ in range(honest))
    a = math.exp(-0.5)
    assert totals.var() == pytest.approx(2 * a / (1 - a) ** 2, rel=0.15)


def test_an_undecided_draw_takes_more_bits():
    steps, _ = _steps(Fraction(1, 2), 2, 48)
    edge = steps[0] * 2**64 // 10**48  # so close to a step that 64 bits cannot tell

    class Edge:
        asked = 0

        def bits(self, count):
            self.asked += 1
            return edge if self.asked == 1 else 2**count - 1 if self.asked == 2 else 0

    source = Edge()
    # The number is just above the step: 1, whatever the 64 bits alone may suggest.
    assert draw_polya(1, Fraction(1, 2), 2, source).tolist() == [1]
    assert source.asked > 1


@pytest.mark.parametrize("honest", [1, 3, 7])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 2), Fraction(5)])
@pytest.mark.parametrize("precision", [3, 28, 300])
def test_steps_are_as_exact_as_they_say_whatever_the_callers_precision(rate, honest, precision):
    """The thread's own precision cut the steps to 28 digits, and to three if it was three."""
    _steps.cache_clear()
    with decimal.localcontext() as context:
        context.prec, context.rounding = precision, decimal.ROUND_UP
        steps, error = _steps(rate, honest, 48)
        finer, _ = _steps(rate, honest, 200)
    _steps.cache_clear()
    assert error < 10**14
    assert all(abs(a - b // 10**152) <= error for a, b in zip(steps, finer, strict=False))
    # The finer table itself: the first step to the power of h is 1 - exp(-rate), by its series.
    series, term, k = Fraction(0), Fraction(1), 0
    while abs(term) > Fraction(1, 10**230):
        series, k = series + term, k + 1
        term = -term * rate / k
    assert abs(Fraction(finer[0], 10**200) ** honest - (1 - series)) < Fraction(1, 10**190)


def test_a_share_says_what_the_sum_costs():
    share = LaplaceShare(1, Fraction(1, 2), 3)
    assert share.cost == DiscreteLaplace(1, Fraction(1, 2)).cost
    counts = Exact(np.arange(6).reshape(3, 2))
    assert share.release(counts, SecureNoise()).shape == (3, 2)
    assert (LaplaceShare(1, math.inf, 3).release(counts, SecureNoise()) == counts).all()
    with pytest.raises(BudgetError):
        LaplaceShare(1, Fraction(1), 0)
    with pytest.raises(BudgetError, match="too small"):  # before anything can be charged for it
        LaplaceShare(1, Fraction(1, 10**8), 2)


def keys_of(count):
    found = [MaskKeys(f"p{k}") for k in range(count)]
    roster = {keys.name: keys.public_key for keys in found}
    for keys in found:
        keys.join(roster)
    return found


def test_masks_cancel_and_hide():
    everyone = keys_of(4)
    names = [keys.name for keys in everyone]
    values = np.arange(20, dtype=np.int64) - 7
    masked = [values.view(np.uint64) + keys.mask(names, b"one", 20) for keys in everyone]
    assert (open_sum(masked).view(np.int64) == 4 * values).all()
    assert not any((part == values.view(np.uint64)).any() for part in masked)
    # Three of four say nothing.
    assert np.abs(open_sum(masked[:3]).view(np.int64).astype(float)).min() > 2**40
    others = [keys.mask(names, b"two", 20) for keys in everyone]
    assert not (others[0] == masked[0] - values.view(np.uint64)).any()


def test_a_round_is_answered_once_and_by_its_members():
    first, second, third = keys_of(3)
    names = ["p0", "p1", "p2"]
    first.mask(names, b"one", 3)
    with pytest.raises(FederationError, match="before"):
        first.mask(names, b"one", 3)
    with pytest.raises(FederationError, match="members"):
        first.mask(["p1", "p2"], b"two", 3)
    with pytest.raises(FederationError, match="members"):
        first.mask(["p0"], b"two", 3)
    with pytest.raises(FederationError, match="members"):
        first.mask(["p0", "stranger"], b"two", 3)
    pair = [keys.mask(["p1", "p2"], b"two", 3) for keys in (second, third)]
    assert (open_sum(pair) == 0).all()


def test_a_roster_is_read_once():
    first, second = MaskKeys("a"), MaskKeys("b")
    roster = {"a": first.public_key, "b": second.public_key}
    with pytest.raises(FederationError, match="another key"):
        first.join({"a": second.public_key, "b": second.public_key})
    with pytest.raises(FederationError, match="two parties"):
        first.join({"a": first.public_key})
    first.join(roster)
    first.join(roster)  # the same again does no harm
    with pytest.raises(FederationError, match="refused"):
        first.join({**roster, "c": MaskKeys("c").public_key})


def test_no_other_round_has_the_same_mask():
    """With zeros between names, what hid b from a in one round hid it from nobody in the other."""
    first, second, _ = everyone = [MaskKeys(name) for name in "abc"]
    roster = {keys.name: keys.public_key for keys in everyone}
    for keys in everyone:
        keys.join(roster)
    of_three = second.mask(["a", "b", "c"], b"T", 4)
    of_two = second.mask(["b", "c"], b"T\0a", 4)
    from_first = mask_between(first, second, ["a", "b", "c"], b"T", 4)
    assert (of_three + from_first != of_two).all()


def mask_between(one, other, members, round_name, size):
    """Return what one adds, and the other takes away: both could compute it."""
    name = fingerprint(round_name, sorted(members))
    return key_stream(round_key(one._shared[other.name], name), size)


def test_a_roster_with_something_that_is_no_key_is_not_read():
    first, second = MaskKeys("a"), MaskKeys("b")
    for wrong in (b"short", b"", bytes(32), 7, None):
        with pytest.raises(FederationError, match=r"no key|own key"):
            first.join({"a": first.public_key, "b": wrong})
        assert not first.peers
    first.join({"a": first.public_key, "b": second.public_key})
    assert first.peers == {"b"}


ALIKE = [  # things that are easily taken for each other
    *(None, False, 0, 0.1, Fraction(1, 10), math.inf, "0", b"0", "", (), [0], [[0]], {0: 0}),
    *([1, 2], ["1", "2"], ["12"], [1, [2]], [[1], 2], {1: 2}, {2: 1}, [1, 2, 3], [1.0, 2.0]),
    *(2**80, [2**80, 1], -(2**63), [-(2**63), 1], [b"ab", b"c"], [b"a", b"bc"]),
    *(np.array([1, 2]), np.array([[1, 2]]), np.array([[1], [2]]), np.array([1, 2], dtype=np.int32)),
    *(
        np.array([True, False]),
        np.array([1, 0], dtype=np.uint8),
        np.zeros((0, 2)),
        np.zeros((2, 0)),
    ),
    *(
        Max(),
        Gini(),
        GiniChords(2, 5),
        GiniChords(3, 5),
        GiniChords(2, 6),
        Split(0, (0, 1)),
        Split(1, (0, 1)),
    ),
    *(Multiway(), Thresholds(4), Binary([np.eye(2, dtype=bool)]), Binary([Each(2, 2)])),
    *(SCHEMA, Schema(dict(reversed(SCHEMA.features.items())), "y", classes=[0, 1])),
]


def test_no_other_things_have_the_same_fingerprint():
    prints = [fingerprint(thing) for thing in ALIKE]
    assert len(set(prints)) == len(ALIKE)
    assert [fingerprint(pickle.loads(pickle.dumps(thing))) for thing in ALIKE] == prints
    assert fingerprint(1, 2) != fingerprint([1, 2]) != fingerprint(1, [2])
    assert (
        fingerprint(1) == fingerprint(1.0) == fingerprint(Fraction(1)) == fingerprint(np.int64(1))
    )
    turned = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert fingerprint(turned) == fingerprint(np.ascontiguousarray(turned))
    assert fingerprint(turned) == fingerprint(turned.astype(">i8"))
    for thing in (object(), {1, 2}, Max, np.array(["a"])):
        with pytest.raises(TypeError, match="plain things"):
            fingerprint(thing)
    with pytest.raises(ValueError, match="NaN"):
        fingerprint(math.nan)


@pytest.mark.parametrize("roster", [None, "abc", ["a", "b"]])
def test_a_roster_has_a_key_for_every_name(roster):
    with pytest.raises(FederationError, match="public key for every party's name"):
        MaskKeys("a").join(roster)
