"""The audit's laws are those that the samplers are documented to have."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import integrate, stats

from privet.audit import laws
from privet.audit.laws import Choice, Drawn, Grid, Sums, outcomes
from privet.errors import AuditError
from privet.privacy import SecureNoise


def laplace_pmf(k, scale):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(k)


@lru_cache
def gaussian_total(scale):
    reach = math.ceil(40 * scale) + 2
    return math.fsum(math.exp(-(j**2) / (2 * scale**2)) for j in range(-reach, reach + 1))


def gaussian_pmf(k, scale):
    return math.exp(-(k**2) / (2 * scale**2)) / gaussian_total(scale)


@pytest.mark.parametrize("scale", [0.1, 0.7, 1.0, 5.0, 40.0])
@pytest.mark.parametrize(
    ("mass", "pmf"),
    [(laws.laplace_mass, laplace_pmf), (laws.gaussian_mass, gaussian_pmf)],
    ids=["Laplace", "Gaussian"],
)
def test_masses_are_sums_of_the_law(scale, mass, pmf):
    pairs = [(-9, -3), (-3, -1), (-2, -1), (-1, 0), (-5, 4), (0, 1), (0, 7), (3, 9)]
    for low, high in pairs:
        direct = math.fsum(pmf(k, scale) for k in range(low + 1, high + 1))
        if direct > 1e-250:
            assert mass(low, high, scale) == pytest.approx(math.log(direct), rel=1e-9, abs=1e-11)
    for cut in (-12, -1, 0, 1, 8):
        below, above = mass(None, cut, scale), mass(cut, None, scale)
        assert math.exp(below) + math.exp(above) == pytest.approx(1, abs=1e-12)
        near = math.fsum(pmf(k, scale) for k in range(cut + 1, cut + 40 + math.ceil(60 * scale)))
        if near > 1e-250:
            assert above == pytest.approx(math.log(near), rel=1e-9, abs=1e-9)
        assert below == pytest.approx(mass(-cut - 1, None, scale), rel=1e-9, abs=1e-12)
    assert mass(None, None, scale) == 0


def test_tails_of_laplace_have_the_exact_ratio():
    """The loss of a count is read off the tails: it must not be rounded there."""
    for scale in (0.3, 2.0, 1e6):
        for step in (1, 5):
            ratio = laws.laplace_mass(3, None, scale) - laws.laplace_mass(3 + step, None, scale)
            assert ratio == pytest.approx(step / scale, rel=1e-9)


def test_a_large_gaussian_is_computed_as_an_integral():
    scale = 1_999.0
    sums = [laws.gaussian_mass(low, high, scale) for low, high in [(100, 3_000), (9_000, None)]]
    normal = [
        math.log(stats.norm.cdf(3_000.5 / scale) - stats.norm.cdf(100.5 / scale)),
        stats.norm.logsf(9_000.5 / scale),
    ]
    assert sums == pytest.approx(normal, rel=1e-6)
    assert laws.gaussian_mass(9_000, None, 2_001.0) == pytest.approx(
        stats.norm.logsf(9_000.5 / 2_001), rel=1e-12
    )


@pytest.mark.parametrize("scores", [[0], [3, 3], [0, 5, 4], [0, -1, -2, -3, -4, -5, -6, -7, 2]])
def test_permute_and_flip(scores):
    """Its definition: all in random order, each kept with probability exp(gap)."""
    found = np.exp(laws.permute_and_flip(np.array(scores), 2.0))
    keep = [math.exp((score - max(scores)) / 2) for score in scores]
    if len(scores) <= 4:
        expected = np.zeros(len(scores))
        for order in itertools.permutations(range(len(scores))):
            left = 1.0
            for i in order:
                expected[i] += left * keep[i] / math.factorial(len(scores))
                left *= 1 - keep[i]
    else:
        expected = [
            p * integrate.quad(
                lambda t, i=i: math.prod(1 - t * keep[j] for j in range(len(keep)) if j != i), 0, 1
            )[0]
            for i, p in enumerate(keep)
        ]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_many_candidates_are_integrated_exactly():
    scores = np.arange(300) % 17
    assert np.exp(laws.permute_and_flip(scores, 3.0)).sum() == pytest.approx(1, abs=1e-10)


def test_the_laws_are_those_of_the_samplers(fit_counts):
    noise, scores = SecureNoise(), np.array([0, 2, 3, 1])
    for law, draw in (
        (laws.permute_and_flip, noise.permute_and_flip),
        (laws.exponential, noise.exponential),
    ):
        drawn = np.bincount([draw(scores, 1.5) for _ in range(3_000)], minlength=4)
        assert fit_counts(drawn, np.exp(law(scores, 1.5)))
        assert not fit_counts(drawn, np.exp(law(scores, 0.75)))
    zeros = noise.add_laplace(np.zeros(4_000, dtype=np.int64), 2.0)
    cells = [(None, -3), (-3, -1), (-1, 0), (0, 2), (2, None)]
    counts = np.histogram(zeros, [-999, -2.5, -0.5, 0.5, 2.5, 999])[0]
    assert fit_counts(counts, np.exp([laws.laplace_mass(a, b, 2.0) for a, b in cells]))


@pytest.fixture
def fit_counts():
    def accepts(counts, law):
        return stats.chisquare(counts, law * counts.sum()).pvalue > 1e-6

    return accepts


# Outcomes on two tables


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("most", [1, 4, 12, 200])
def test_rounded_integers_have_all_their_probability(law, most):
    one, other = np.array([3, 0, 7]), np.array([3, 1, 2])
    found = outcomes(Sums(law, one, 1.5), Sums(law, other, 1.5), most)
    for side in (1, 2):
        assert math.fsum(math.exp(o[side]) for o in found) == pytest.approx(1, abs=1e-12)
    answers = {tuple(o[0].tolist()) for o in found}
    assert len(answers) == len(found) <= max(most, 6)


def test_rounding_keeps_the_largest_ratio():
    """The loss of a vector of counts is its change in L1 over the scale, attained in the tails."""
    one, other = np.array([[3, 0], [5, 5]]), np.array([[3, 1], [9, 5]])
    for most in (4, 50):
        found = outcomes(Sums("laplace", one, 2.0), Sums("laplace", other, 2.0), most)
        assert max(p - q for _, p, q in found) == pytest.approx(2.5, abs=1e-12)
        assert min(p - q for _, p, q in found) == pytest.approx(-2.5, abs=1e-12)
        assert found[0][0].shape == (2, 2)


def test_equal_integers_have_one_answer_unless_there_is_room():
    one = Sums("laplace", np.array([4]), 1.0)
    assert [o[0].tolist() for o in outcomes(one, one, 2)] == [[4]]
    low, near, high = sorted(int(o[0][0]) for o in outcomes(one, one, 3))
    assert low <= 4 - laws.FAR < near == 4 < 4 + laws.FAR <= high


def test_other_questions_are_told_apart():
    count = Sums("laplace", np.array([4]), 1.0)
    for other in (
        Sums("gaussian", np.array([4]), 1.0),
        Sums("laplace", np.array([4]), 2.0),
        Sums("laplace", np.array([4, 4]), 1.0),
        Drawn({"x": 0.0}),
    ):
        assert outcomes(count, other, 9) is None
    choice = Choice("exponential", 1.0, np.log([0.5, 0.5]))
    assert outcomes(choice, Choice("exponential", 1.0, np.log([1.0])), 9) is None
    grid = Grid(np.array([0]), np.array([5]), Fraction(1))
    assert outcomes(grid, Grid(np.array([0]), np.array([6]), Fraction(1)), 9) is None


def test_too_many_changes_are_refused():
    one, other = np.zeros(20, dtype=np.int64), np.ones(20, dtype=np.int64)
    with pytest.raises(AuditError, match="too many numbers"):
        outcomes(Sums("laplace", one, 1.0), Sums("laplace", other, 1.0), 4)


def test_a_grid_is_cut_where_either_table_changes():
    one = Grid(np.array([0, -2]), np.array([6, 4]), Fraction(1, 2))
    other = Grid(np.array([0, -1, -5]), np.array([3, 4, 3]), Fraction(1, 2))
    found = outcomes(one, other, 9)
    weights = [[6, 4 * math.exp(-1)], [3, 4 * math.exp(-0.5), 3 * math.exp(-2.5)]]
    densities = [
        [1] * 6 + [math.exp(-1)] * 4,
        [1] * 3 + [math.exp(-0.5)] * 4 + [math.exp(-2.5)] * 3,
    ]
    cuts = [0, 3, 6, 7, 10]
    assert len(found) == 4
    for (point, *logs), (start, stop) in zip(found, itertools.pairwise(cuts), strict=True):
        assert start <= point < stop
        for log, density, total in zip(logs, densities, weights, strict=True):
            assert math.exp(log) == pytest.approx(sum(density[start:stop]) / sum(total))


def test_a_grid_of_single_points_is_joined_where_nothing_changes():
    scores = np.array([0] * 50 + [-1] * 50)
    lengths = np.ones(100, dtype=np.int64)
    found = outcomes(*[Grid(scores, lengths, Fraction(1))] * 2, 9)
    assert [point for point, *_ in found] == [25, 75]


def test_drawn_things_may_be_possible_on_one_table_only():
    found = outcomes(Drawn({"a": 0.0}), Drawn({"b": 0.0}), 9)
    assert found == [("a", 0.0, -math.inf), ("b", -math.inf, 0.0)]
