"""Mechanisms follow their exact laws, cost what they say, and never round in the wrong direction.

Statistical checks have a false-alarm rate of 1e-7 each (``conftest.Fit``), at most ten per test;
power checks beside them miss no more often. All other checks are exact.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import BudgetError
from privet.privacy import (
    Budget,
    Cost,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GridExponential,
    PermuteAndFlip,
    SecureNoise,
    SeededNoise,
    noise_for,
    spread_of,
)
from privet.privacy import stretches as module
from privet.privacy.mechanisms import round_up
from privet.privacy.stretches import draw_stretch

SIZE = 4_000


# The exact laws ----------------------------------------------------------------------------------


def permute_and_flip_law(scores, scale):
    """P(i) = p_i int_0^1 prod_{j != i} (1 - t p_j) dt with p = exp((q - max q) / scale)."""
    flips = np.exp((np.asarray(scores, dtype=float) - max(scores)) / scale)
    law = []
    for i, flip in enumerate(flips):
        product = np.polynomial.Polynomial([1.0])
        for other in np.delete(flips, i):
            product *= np.polynomial.Polynomial([1.0, -other])
        law.append(flip * product.integ()(1.0))
    return np.array(law)


def exponential_law(scores, scale):
    weights = np.exp((np.asarray(scores, dtype=float) - max(scores)) / scale)
    return weights / weights.sum()


def grid_law(scores, lengths, scale):
    """The law of the grid point, not only of the stretch."""
    points = np.repeat(scores, lengths)
    return exponential_law(points, scale)


def test_the_formula_for_permute_and_flip_is_the_algorithm():
    """Enumerates the algorithm itself: a random order, flips until one succeeds, start over."""
    scores, scale = [3, 1, 0, 1], 1.7
    flips = np.exp((np.array(scores) - 3) / scale)
    law = np.zeros(4)
    for order in itertools.permutations(range(4)):
        alive = 1 / math.factorial(4)
        for i in order:
            law[i] += alive * flips[i]
            alive *= 1 - flips[i]
        assert alive == 0  # the best candidate always flips heads, so one round is enough
    assert permute_and_flip_law(scores, scale) == pytest.approx(law, abs=1e-12)


LAWS = {PermuteAndFlip: permute_and_flip_law, Exponential: exponential_law}
SCORES = [
    [0, -2, -4],
    [5, 5, 5, 5],
    [-3, 0, -1, -7, 0, -2],
    [2**60, 2**60 - 3, 2**60 - 1],
    [-1, 0],
]


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, Exponential], ids=lambda m: m.kind)
class TestSelection:
    @pytest.mark.parametrize("scores", SCORES, ids=str)
    def test_follows_its_law(self, noise, fit, mechanism, scores):
        """Candidates are told apart by their place: also ties must be fair."""
        centred = [score - max(scores) for score in scores]
        law = fit(np.arange(len(scores)), LAWS[mechanism](centred, 2.0))
        chooser = mechanism(Fraction(2), Fraction(1))
        assert law.accepts([chooser.choose(np.array(scores), noise) for _ in range(SIZE)])

    @pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=["x0.7", "x1.3"])
    def test_scale_that_is_off_by_30_percent_is_rejected(self, noise, fit, mechanism, factor):
        scores = [0] + [-6] * 20  # many bad candidates: their number competes with the score
        right = fit(np.arange(21), LAWS[mechanism](scores, 2.0))
        wrong = fit(np.arange(21), LAWS[mechanism](scores, 2.0 * float(factor)))
        size = 1_600
        assert right.can_tell(wrong, size)
        chooser = mechanism(Fraction(2) * factor, Fraction(1))
        assert not right.accepts([chooser.choose(np.array(scores), noise) for _ in range(size)])
        chooser = mechanism(Fraction(2), Fraction(1))
        assert right.accepts([chooser.choose(np.array(scores), noise) for _ in range(size)])

    def test_the_two_laws_are_not_mixed_up(self, noise, fit, mechanism):
        """OpenDP picks the law by the measure it is asked for: a swap would double a zCDP cost."""
        other = Exponential if mechanism is PermuteAndFlip else PermuteAndFlip
        scores = [0, -2]
        right = fit(np.arange(2), LAWS[mechanism](scores, 2.0))
        wrong = fit(np.arange(2), LAWS[other](scores, 2.0))
        size = 5_000
        assert right.can_tell(wrong, size)
        chooser = other(Fraction(2), Fraction(1))
        assert not right.accepts([chooser.choose(np.array(scores), noise) for _ in range(size)])

    def test_infinite_epsilon_takes_the_best(self, noise, mechanism):
        assert mechanism(1, math.inf).choose(np.array([1, 7, 3]), noise) == 1

    def test_a_common_shift_of_the_scores_changes_nothing(self, mechanism):
        """Only differences matter, also where the sums would overflow a double's precision."""
        scores = np.array([3, 0, 1])
        for shift in (10**9, 2**60, -(2**60)):
            drawn = [mechanism(1, 1).choose(scores, SeededNoise(seed)) for seed in range(200)]
            moved = [
                mechanism(1, 1).choose(scores + shift, SeededNoise(seed)) for seed in range(200)
            ]
            assert drawn == moved


# Numbers -----------------------------------------------------------------------------------------


def two_sided(scale, squared=False):
    reach = math.ceil(60 * scale) + 2
    values = np.arange(-reach, reach + 1)
    exponents = values**2 / (2 * scale**2) if squared else np.abs(values) / scale
    weights = np.exp(-exponents)
    return values, weights / weights.sum()


class TestNumbers:
    def test_laplace_release(self, noise, fit):
        mechanism = DiscreteLaplace(3, Fraction(1, 2))
        assert mechanism.scale == 6.0
        size = 20_000
        right = fit(*two_sided(6.0))
        assert right.accepts(mechanism.release(np.full(size, 9), noise) - 9)
        for factor in (Fraction(7, 10), Fraction(13, 10)):
            wrong = DiscreteLaplace(3 * factor, Fraction(1, 2))
            assert right.can_tell(fit(*two_sided(wrong.scale)), size)
            assert not right.accepts(wrong.release(np.zeros(size, np.int64), noise))

    def test_gaussian_release(self, noise, fit):
        mechanism = DiscreteGaussian(8, Fraction(1, 4))
        assert mechanism.scale == 4.0
        size = 20_000
        right = fit(*two_sided(4.0, squared=True))
        assert right.accepts(mechanism.release(np.full(size, 9), noise) - 9)
        for factor in (Fraction(7, 10), Fraction(13, 10)):
            wrong = DiscreteGaussian(8 * factor**2, Fraction(1, 4))
            assert right.can_tell(fit(*two_sided(wrong.scale, squared=True)), size)
            assert not right.accepts(wrong.release(np.zeros(size, np.int64), noise))

    def test_infinite_budget_adds_nothing(self, noise):
        values = np.array([4, -5])
        assert (DiscreteLaplace(1, math.inf).release(values, noise) == values).all()
        assert (DiscreteGaussian(1, math.inf).release(values, noise) == values).all()

    def test_lists_are_taken(self, noise):
        assert DiscreteLaplace(1, Fraction(1)).release([1, 2], noise).dtype == np.int64


# Costs are never understated ---------------------------------------------------------------------

amounts = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6).filter(bool)
sensitivities = st.one_of(st.integers(1, 2**62), st.fractions(Fraction(1, 10**9), 10**9))


@given(sensitivity=sensitivities, epsilon=amounts)
@settings(max_examples=300, deadline=None)
def test_scales_are_rounded_up_by_less_than_two_steps(sensitivity, epsilon):
    for mechanism in (
        DiscreteLaplace(sensitivity, epsilon),
        PermuteAndFlip(sensitivity, epsilon),
        Exponential(sensitivity, epsilon),
    ):
        scale = mechanism.scale
        assert Fraction(sensitivity) / Fraction(scale) <= epsilon
        assert Fraction(sensitivity) / Fraction(math.nextafter(scale, 0)) > epsilon
    scale = DiscreteGaussian(sensitivity, epsilon).scale
    assert Fraction(sensitivity) / (2 * Fraction(scale) ** 2) <= epsilon
    two_down = math.nextafter(math.nextafter(scale, 0), 0)
    assert Fraction(sensitivity) / (2 * Fraction(two_down) ** 2) > epsilon


@given(epsilon=st.floats(1e-9, 1e9), sensitivity=st.integers(1, 10**9))
@settings(max_examples=300, deadline=None)
def test_plain_numbers_are_taken_as_they_are_written(epsilon, sensitivity):
    """1 / 3 and 1 / 0.3 in floating point may round down: the noise would be too small."""
    for amount in (epsilon, np.float64(epsilon), math.ceil(epsilon)):
        written = Fraction(repr(float(amount))) if isinstance(amount, float) else amount
        scale = DiscreteLaplace(np.int64(sensitivity), amount).scale
        assert sensitivity / Fraction(scale) <= written
        selection = PermuteAndFlip(sensitivity, amount)
        assert sensitivity / Fraction(selection.scale) <= written
        assert selection.cost == Cost.pure(Fraction(written))


@given(amount=st.fractions(min_value=0, max_value=10**300))
@settings(deadline=None)
def test_round_up(amount):
    rounded = round_up(amount)
    assert rounded >= amount
    assert rounded == 0 or math.nextafter(rounded, 0) < amount


@pytest.mark.parametrize(
    "tiny", [Fraction(1, 10**400), Fraction(1, 3 * 10**323)], ids=["1e-400", "3e-324"]
)
def test_round_up_never_reaches_no_noise(tiny):
    """A scale of zero means no noise at all, so a positive scale must not round to it."""
    assert round_up(tiny) == 5e-324
    assert DiscreteLaplace(1, 1 / tiny).scale > 0
    assert Fraction(DiscreteGaussian(tiny, 1).scale) ** 2 >= tiny / 2
    assert PermuteAndFlip(1, 1 / tiny).scale > 0


def test_budgets_too_small_for_any_noise_are_refused():
    with pytest.raises(BudgetError, match="too small"):
        _ = DiscreteLaplace(1, Fraction(1, 10**400)).scale


@pytest.mark.parametrize("bad", [0, -1, Fraction(-1, 2), math.nan, "1", None, True])
@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace, DiscreteGaussian, PermuteAndFlip, Exponential, GridExponential]
)
def test_senseless_amounts_are_refused(mechanism, bad):
    with pytest.raises(BudgetError):
        mechanism(1, bad)
    with pytest.raises(BudgetError):
        mechanism(bad, 1)


def test_costs():
    epsilon = Fraction(3, 10)
    assert DiscreteLaplace(1, epsilon).cost == Cost(epsilon, epsilon**2 / 2)
    assert PermuteAndFlip(1, epsilon).cost == Cost(epsilon, epsilon**2 / 2)
    assert Exponential(1, epsilon).cost == Cost(epsilon, epsilon**2 / 8)
    assert GridExponential(1, epsilon).cost == Cost(epsilon, epsilon**2 / 8)
    assert DiscreteGaussian(1, epsilon).cost == Cost(math.inf, epsilon)


# Privacy of selections, exactly ------------------------------------------------------------------


def worst_log_ratio(law, scores, moves, scale):
    """Largest log ratio of outcome probabilities, in both directions, over all neighbours."""
    before = np.log(law(scores, scale))
    return max(
        np.abs(np.log(law(np.add(scores, move), scale)) - before).max()
        for move in itertools.product(moves, repeat=len(scores))
    )


TABLES = [list(q) for q in itertools.product([0, -1, -3], repeat=3)] + [[0, -2, -5, -5], [0, -4]]


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
class TestPrivacyOfSelection:
    """A record moves every score by something in ``moves``; all combinations are tried."""

    def test_monotone_scores_with_their_spread(self, law, epsilon):
        spread = spread_of(2, monotone=True)
        worst = max(worst_log_ratio(law, q, [0, 1, 2], spread / epsilon) for q in TABLES)
        assert worst <= epsilon + 1e-9
        assert worst > 0.6 * epsilon  # not needlessly loose

    def test_other_scores_with_twice_their_sensitivity(self, law, epsilon):
        spread = spread_of(1, monotone=False)
        worst = max(worst_log_ratio(law, q, [-1, 0, 1], spread / epsilon) for q in TABLES)
        assert worst <= epsilon + 1e-9

    def test_a_common_move_does_not_count(self, law, epsilon):
        """Moves in [10, 12] have a spread of 2: the sensitivity, 12, does not matter."""
        worst = max(worst_log_ratio(law, q, [10, 11, 12], 2 / epsilon) for q in TABLES)
        assert worst <= epsilon + 1e-9

    def test_other_scores_with_their_mere_sensitivity_violate_epsilon(self, law, epsilon):
        """Why the factor 2 is there: without it the true cost is above the claimed one."""
        spread = spread_of(1, monotone=True)  # a lie for moves in both directions
        # many bad candidates that rise, a good one that falls
        scores = [0] + [-1] * 6
        moved = [-1] + [0] * 6
        found = np.abs(np.log(law(scores, spread / epsilon)) - np.log(law(moved, spread / epsilon)))
        assert found.max() > 1.05 * epsilon


def renyi(p, q, order):
    terms = order * np.log(p) + (1 - order) * np.log(q)
    return (terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1)


class TestZCDP:
    ORDERS = (1.01, 1.5, 2, 4, 16, 100)

    def worst(self, law, epsilon):
        """Largest Renyi divergence / order over monotone neighbours of spread 1."""
        pairs = (
            (law(q, 1 / epsilon), law(np.add(q, move), 1 / epsilon))
            for q in [*TABLES[::3], [0] * 4, [0] * 9]
            for move in itertools.islice(itertools.product([0, 1], repeat=len(q)), 64)
        )
        return max(
            renyi(a, b, order) / order
            for p, q in pairs
            for a, b in ((p, q), (q, p))
            for order in self.ORDERS
        )

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_exponential_mechanism_costs_an_eighth(self, epsilon):
        assert self.worst(exponential_law, epsilon) <= epsilon**2 / 8 + 1e-12

    @pytest.mark.parametrize("epsilon", [0.1, 1.0])
    def test_permute_and_flip_costs_more_than_an_eighth_and_at_most_a_half(self, epsilon):
        """It has no bounded range: charging epsilon^2 / 8 for it would be wrong."""
        worst = self.worst(permute_and_flip_law, epsilon)
        assert epsilon**2 / 8 * 1.2 < worst <= epsilon**2 / 2


# The grid ----------------------------------------------------------------------------------------


class Script:
    """A source whose bits are written down beforehand; afterwards it repeats one bit."""

    private = False

    def __init__(self, *numbers, then=0):
        self.numbers = list(numbers)
        self.then = then
        self.asked = []

    def bits(self, count):
        self.asked.append(count)
        if self.numbers:
            drawn = self.numbers.pop(0)
            assert 0 <= drawn < 2**count
            return drawn
        return (2**count - 1) * self.then


def exact_cumulative(scores, lengths, rate, digits=80):
    """Cumulative shares of the stretches, as fractions good to about ``digits`` digits."""
    with localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = -999_999_999, 999_999_999
        highest = max(s for s, n in zip(scores, lengths, strict=True) if n)
        weights = []
        for score, length in zip(scores, lengths, strict=True):
            gap = Fraction(int(highest) - int(score)) * rate
            if length and gap < 5 * digits:  # e^(-5 digits) < 10^(-2 digits): as good as nothing
                power = (Decimal(-gap.numerator) / Decimal(gap.denominator)).exp()
                weights.append(Decimal(int(length)) * power)
            else:
                weights.append(Decimal(0))
        sums = [Fraction(total) for total in itertools.accumulate(weights)]
    return [total / sums[-1] for total in sums]


def random_inputs(rng, count):
    """Scores, lengths and rates of every size, with ties, huge gaps and empty stretches."""
    for _ in range(count):
        size = int(rng.integers(1, 12))
        spread = int(rng.choice([1, 3, 50, 10**4, 2**40, 2**61]))
        scores = rng.integers(-spread, spread + 1, size)
        lengths = rng.integers(0, int(rng.choice([2, 9, 65_536, 2**40])) + 1, size)
        if not lengths.any():
            lengths[0] = 1
        power = int(rng.integers(-30, 12))
        rate = Fraction(int(rng.integers(1, 1000)), int(rng.integers(1, 1000)))
        yield scores, lengths, rate * Fraction(10) ** power
        yield scores, lengths, rate / spread


class TestDrawStretch:
    def first_uniform(self, scores, lengths, rate, stretch):
        """Smallest 64-bit number (followed by zeros) that leads to ``stretch`` or later."""
        low, high = 0, 2**64
        while low < high:
            middle = (low + high) // 2
            if draw_stretch(scores, lengths, rate, Script(middle, 1)) >= stretch:
                high = middle
            else:
                low = middle + 1
        return low

    def test_the_law_is_exact(self, generator):
        """Inversion: the uniform numbers that lead to a stretch are an interval; find its ends.

        The ends agree with decimal arithmetic of 80 digits to the last of 64 bits.
        """
        for scores, lengths, rate in random_inputs(generator, 15):
            shares = exact_cumulative(scores, lengths, rate)
            for stretch in range(1, len(scores)):
                found = Fraction(self.first_uniform(scores, lengths, rate, stretch), 2**64)
                assert abs(found - shares[stretch - 1]) <= Fraction(1, 2**64)

    def test_rows_are_drawn_as_if_each_were_alone(self, generator):
        for _ in range(50):
            shape = int(generator.integers(1, 6)), int(generator.integers(1, 9))
            scores, lengths = generator.integers(-40, 1, shape), generator.integers(0, 4, shape)
            lengths[:, int(generator.integers(shape[1]))] += 1
            numbers = [4 * int(number) for number in generator.integers(0, 2**62, shape[0])]
            rows = zip(scores, lengths, numbers, strict=True)
            alone = [draw_stretch(*row, Fraction(1, 9), Script(number)) for *row, number in rows]
            together = module.draw_stretches(scores, lengths, Fraction(1, 9), Script(*numbers))
            assert list(together) == alone

    def test_rational_weights(self):
        """With equal scores the law is lengths / total, also in the last bit."""
        lengths = np.array([1, 0, 3, 2, 0])
        scores = np.array([7, 99, 7, 7, -5])
        for stretch, share in [(2, Fraction(1, 6)), (3, Fraction(4, 6))]:
            found = self.first_uniform(scores, lengths, Fraction(1, 3), stretch)
            assert abs(Fraction(found, 2**64) - share) <= Fraction(1, 2**64)

    def test_the_bounds_really_bound_the_errors(self, generator):
        for scores, lengths, rate in random_inputs(generator, 200):
            live = lengths > 0
            sizes = [int(size) for size in lengths[live]]
            highest = max(int(score) for score in scores[live])
            gaps = [highest - int(score) for score in scores[live]]
            exact = self.exact_weights(gaps, sizes, rate)
            for bounds in (
                module._double_bounds,
                module._decimal_bounds(30),
                module._decimal_bounds(60),
            ):
                cumulative, error = bounds(gaps, sizes, rate)
                assert len(cumulative) == len(sizes)
                for found, true in zip(cumulative, exact, strict=True):
                    assert abs(Fraction(found) - true) <= error
                assert error <= exact[-1] * Fraction(1, 10**8)  # and is good for something

    @staticmethod
    def exact_weights(gaps, sizes, rate):
        sums, total = [], Fraction(0)
        with localcontext() as context:
            context.prec = 150
            context.Emin, context.Emax = -999_999_999, 999_999_999
            for gap, size in zip(gaps, sizes, strict=True):
                exponent = gap * rate
                if exponent < 2000:
                    power = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
                    total += size * Fraction(power)
                else:
                    total += Fraction(size, 10**868)  # e^-2000 = 10^-868.6; an upper bound
                sums.append(total)
        return sums

    def test_the_decimal_bounds_improve_with_the_digits(self):
        gaps, sizes, rate = [0, 5, 2], [3, 1, 4], Fraction(1, 3)
        errors = [module._decimal_bounds(digits)(gaps, sizes, rate)[1] for digits in (30, 60, 120)]
        assert errors[0] > errors[1] * 10**25 > errors[2] * 10**75 > 0

    @pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(10), Fraction(1, 10**20)])
    def test_a_uniform_number_on_the_boundary_is_decided_by_decimals(self, rate):
        """Follow the binary digits of a boundary for 64, 128, 256 bits, then turn off it."""
        scores, lengths = np.array([0, -2, -1]), np.array([1, 5, 2])
        for stretch in (0, 1):
            share = exact_cumulative(scores, lengths, rate, digits=200)[stretch]
            for total in (64, 128, 256):
                digits = math.floor(share * 2**total)
                chunks, taken = [], 0
                for count in (64, 64, 128):
                    if taken < total:
                        taken += count
                        chunks.append((digits >> (total - taken)) & (2**count - 1))
                before, after = Script(*chunks, then=0), Script(*chunks, then=1)
                assert draw_stretch(scores, lengths, rate, before) == stretch
                assert draw_stretch(scores, lengths, rate, after) == stretch + 1
                assert len(before.asked) > len(chunks)  # doubles and shorter decimals were unsure
                assert before.asked[0] == 64

    def test_doubles_decide_almost_always(self):
        source = Script(123456789 << 30)
        draw_stretch(np.arange(50), np.arange(50), Fraction(1, 9), source)
        assert source.asked == [64]

    def test_empty_stretches_are_never_drawn(self):
        scores, lengths = np.array([90, 0, 50, -1, 99]), np.array([0, 2, 0, 3, 0])
        ends = [0, 2**64 - 1]
        boundary = math.floor(exact_cumulative([0, -1], [2, 3], Fraction(1, 2))[0] * 2**64)
        for uniform in [*ends, *range(boundary - 3, boundary + 4)]:
            for then in (0, 1):
                script = Script(uniform, 1, then=then)
                drawn = draw_stretch(scores, lengths, Fraction(1, 2), script)
                assert lengths[drawn] > 0

    def test_scores_of_empty_stretches_do_not_matter(self):
        """A large score without points must not swallow the others' weights."""
        scores, lengths = np.array([2**62, 0, -1]), np.array([0, 1, 1])
        share = 1 / (1 + math.exp(-1))
        found = self.first_uniform(scores, lengths, Fraction(1), 2)
        assert found / 2**64 == pytest.approx(share, rel=1e-12)

    def test_the_whole_range_of_scores(self):
        """max - min is 2^64 - 1 here: it must not wrap around."""
        scores = np.array([-(2**63), 2**63 - 1])
        assert draw_stretch(scores, np.array([10**6, 1]), Fraction(1), Script(2**40)) == 1

    @pytest.mark.parametrize("rate", [Fraction(10**400), Fraction(1, 10**400)], ids=["1e400", "0"])
    def test_rates_beyond_doubles(self, rate):
        scores, lengths = np.array([3, 4, 4]), np.array([6, 1, 1])
        found = self.first_uniform(scores, lengths, rate, 1)
        expected = 0 if rate > 1 else 3 * 2**62
        assert abs(found - expected) <= 1

    def test_huge_gaps_do_not_make_the_decimals_huge(self):
        """10^-(10^8) as a fraction is a number of 330 million bits; a median on 10^6 records and
        65,536 grid points would have meant thousands of them, once in some 10^5 draws."""
        scores = np.concatenate([np.arange(-(10**9), -(10**9) + 3000), [0, 0]])
        lengths = np.ones(len(scores), dtype=np.int64)
        cumulative, _ = module._decimal_bounds(60)(
            (-scores).tolist(), lengths.tolist(), Fraction(1)
        )
        assert all(total.as_tuple().exponent >= -1000 for total in cumulative)
        drawn = draw_stretch(scores, lengths, Fraction(1), Script(2**63, 1))
        assert drawn == len(scores) - 1

    @given(
        weights=st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any),
        error=st.fractions(0, 3, max_denominator=10),
        bits=st.integers(1, 9),
        data=st.data(),
    )
    @settings(max_examples=400, deadline=None)
    def test_it_answers_only_if_every_possible_truth_agrees(self, weights, error, bits, data):
        """Every sum may be off by the error, the total as well, and more bits may follow."""
        uniform = data.draw(st.integers(0, 2**bits - 1))
        sums = list(itertools.accumulate(weights))
        lowest = Fraction(uniform, 2**bits) * (sums[-1] - error)
        highest = Fraction(uniform + 1, 2**bits) * (sums[-1] + error)
        certain = [
            i
            for i in range(len(sums))
            if all(lowest >= before + error for before in sums[:i])
            and all(highest < after - error for after in sums[i:-1])
        ]
        found = module._locate([Decimal(total) for total in sums], error, uniform, bits)
        assert found == (certain[0] if certain else None)

    @pytest.mark.parametrize("lengths", [[], [0, 0], [-1, 2], [[1, 2]]])
    def test_senseless_lengths_are_refused(self, lengths):
        with pytest.raises(ValueError, match="lengths"):
            draw_stretch(np.zeros(2, np.int64), np.array(lengths, int), Fraction(1), Script(0))


class TestGrid:
    SCORES, LENGTHS = [-4, 0, -1, -2], [12, 2, 0, 5]

    def test_follows_its_law(self, noise, fit):
        mechanism = GridExponential(2, Fraction(1))
        law = fit(np.arange(19), grid_law(self.SCORES, self.LENGTHS, 2.0))
        drawn = [
            mechanism.choose(np.array(self.SCORES), np.array(self.LENGTHS), noise)
            for _ in range(SIZE)
        ]
        assert law.accepts(drawn)

    def test_wrong_scales_and_a_forgotten_base_measure_are_rejected(self, noise, fit):
        """One good point and a stretch of twenty bad ones, equally likely in all."""
        scores, lengths = np.array([0, 99, -6]), np.array([1, 0, 20])
        size, points = 1_600, np.arange(21)
        law = fit(points, grid_law(scores, lengths, 2.0))
        bad = math.exp(-3) / (1 + math.exp(-3)) / 20  # as if both stretches had one point
        forgotten = fit(points, [1 / (1 + math.exp(-3))] + [bad] * 20)
        for factor in (Fraction(7, 10), Fraction(13, 10)):
            assert law.can_tell(fit(points, grid_law(scores, lengths, 2.0 * float(factor))), size)
            mechanism = GridExponential(2 * factor, Fraction(1))
            assert not law.accepts([mechanism.choose(scores, lengths, noise) for _ in range(size)])
        assert law.can_tell(forgotten, size)
        mechanism = GridExponential(2, Fraction(1))
        drawn = [mechanism.choose(scores, np.minimum(lengths, 1), noise) for _ in range(size)]
        assert not law.accepts(drawn)
        assert law.accepts([mechanism.choose(scores, lengths, noise) for _ in range(size)])

    def test_infinite_epsilon_is_uniform_on_the_best_points(self, noise, fit):
        mechanism = GridExponential(1, math.inf)
        scores, lengths = np.array([3, 9, 5, 5, 1]), np.array([2, 0, 1, 3, 4])
        drawn = [mechanism.choose(scores, lengths, noise) for _ in range(2_000)]
        assert fit(np.array([2, 3, 4, 5]), np.full(4, 0.25)).accepts(drawn)
        assert set(drawn) == {2, 3, 4, 5}

    def test_single_point(self, noise):
        assert GridExponential(1, 1).choose(np.array([5]), np.array([1]), noise) == 0

    def test_where_stretches_begin_does_not_matter(self):
        """A point's probability depends on its score alone: else the stretches would leak."""
        whole = exact_cumulative([0, -3], [4, 6], Fraction(1))
        parts = exact_cumulative([0, 0, -3, -3, -3], [1, 3, 2, 0, 4], Fraction(1))
        assert whole[0] == pytest.approx(parts[1], abs=1e-60)
        draw = TestDrawStretch().first_uniform
        one = draw(np.array([0, -3]), np.array([4, 6]), Fraction(1), 1)
        two = draw(np.array([0, 0, -3, -3]), np.array([1, 3, 2, 4]), Fraction(1), 2)
        assert abs(one - two) <= 1

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_privacy_of_a_median_on_the_grid(self, epsilon):
        """Points 0..7, score -|left - right|: sensitivity 1 both ways, spread 2; exact law."""

        def law(data):
            left = np.array([sum(x < point for x in data) for point in range(8)])
            scores = -np.abs(2 * left - len(data))
            return exponential_law(scores, 2 / epsilon)

        worst = 0.0
        for size in range(4):
            for data in itertools.combinations_with_replacement(range(8), size):
                before = np.log(law(data))
                for new in range(8):
                    worst = max(worst, np.abs(np.log(law([*data, new])) - before).max())
        assert 0.5 * epsilon < worst <= epsilon + 1e-9


def test_secure_grid_draws_use_the_operating_systems_generator(monkeypatch):
    calls = []

    def counted(count):
        calls.append(count)
        return 0

    monkeypatch.setattr("privet.privacy.noise.secrets.randbits", counted)
    assert GridExponential(1, 1).choose(np.array([0, 0]), np.array([2, 2]), SecureNoise()) == 0
    assert calls == [64, 1]


# Noise for a budget ------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [Fraction(1, 3), Fraction(7), math.inf])
def test_a_budget_gets_the_noise_of_its_accountant(amount):
    pure = noise_for(Budget(9), amount, l1=5, squared_l2=7)
    assert pure == DiscreteLaplace(5, amount)
    assert pure.cost.epsilon == amount
    for budget in (Budget(rho=9), Budget(1, delta=1e-6)):
        gaussian = noise_for(budget, amount, l1=5, squared_l2=7)
        assert gaussian == DiscreteGaussian(7, amount)
        assert gaussian.cost.rho == amount
    assert (
        (pure.scale == 0) == (pure.deviation == 0) == (gaussian.scale == 0) == (amount == math.inf)
    )


@pytest.mark.parametrize("amount", [0, -1, math.nan, "1", None])
def test_noise_for_a_senseless_amount_is_refused(amount):
    for budget in (Budget(1), Budget(rho=1)):
        with pytest.raises(BudgetError):
            noise_for(budget, amount, l1=1, squared_l2=1)


@given(
    l1=st.integers(1, 10**9),
    squared_l2=st.integers(1, 10**15),
    amount=st.fractions(Fraction(1, 10**6), 10**6),
)
@settings(max_examples=100)
def test_the_noise_is_never_less_than_the_amount_needs(l1, squared_l2, amount):
    """Exactly: the doubles that are handed to the samplers are rounded up."""
    laplace = noise_for(Budget(1), amount, l1=l1, squared_l2=squared_l2)
    assert l1 / Fraction(laplace.scale) <= amount
    gaussian = noise_for(Budget(rho=1), amount, l1=l1, squared_l2=squared_l2)
    assert squared_l2 / (2 * Fraction(gaussian.scale) ** 2) <= amount


@pytest.mark.parametrize("scale", [0.4, 1, 3, 50])
@pytest.mark.parametrize("mechanism", [DiscreteLaplace, DiscreteGaussian])
def test_the_deviation_is_that_of_the_noise(noise, mechanism, scale):
    """That of the exact law is never above it and, from a scale of 3 on, hardly below.

    A mean of n squares lies within 6 standard errors: less than one false alarm in 10^6 (the
    kurtosis of a Laplace law is 6, so a standard error is below sqrt(6 / n) of the variance; for
    small scales, where tails are heavier, the bound is checked against the law alone).
    """
    size = 20_000
    exact_scale = Fraction(scale).limit_denominator(10)
    if mechanism is DiscreteLaplace:
        found = mechanism(1, 1 / exact_scale)
    else:
        found = mechanism(1, 1 / (2 * exact_scale**2))
    values = np.arange(-3_000, 3_001)
    distance = np.abs(values) / scale
    law = np.exp(-distance if mechanism is DiscreteLaplace else -(distance**2) / 2)
    true = math.sqrt((law * values**2).sum() / law.sum())
    assert true <= found.deviation * (1 + 1e-9)
    if scale >= 3:
        assert true > 0.99 * found.deviation
        drawn = found.release(np.zeros(size, dtype=np.int64), noise)
        assert abs(np.mean(drawn**2) / true**2 - 1) < 6 * math.sqrt(6 / size)
        assert abs(np.mean(drawn**2) / (0.7 * true) ** 2 - 1) > 6 * math.sqrt(6 / size)  # power
