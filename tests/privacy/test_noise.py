"""The samplers follow their laws, and the test that says so rejects laws that are off by 30 %.

Every statistical check has a false-alarm rate of 1e-7 (``conftest.Fit``) and each test makes at
most ten, so a right sampler fails a test here at most once in 10^6 runs. Power checks miss with at
most the same probability, which ``can_tell`` computes from the two laws.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from privet.privacy import SecureNoise, SeededNoise

SIZE = 20_000
ENDS = np.iinfo(np.int64)


def laplace(fit, scale):
    reach = math.ceil(60 * scale) + 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(values) / scale)
    return fit(values, weights / weights.sum())


def gaussian(fit, scale):
    reach = math.ceil(12 * scale) + 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * scale**2))
    return fit(values, weights / weights.sum())


LAWS = [
    ("add_laplace", laplace, 0.8),
    ("add_laplace", laplace, 2.5),
    ("add_laplace", laplace, 40.0),
    ("add_gaussian", gaussian, 0.8),
    ("add_gaussian", gaussian, 2.5),
    ("add_gaussian", gaussian, 40.0),
]
by_law = pytest.mark.parametrize(("method", "law", "scale"), LAWS)


@by_law
def test_vector_of_noise_follows_its_law(noise, fit, method, law, scale):
    values = np.full((SIZE // 4, 4), 17)
    noisy = getattr(noise, method)(values, scale)
    assert noisy.shape == values.shape
    assert noisy.dtype == np.int64
    assert law(fit, scale).accepts(noisy - 17)
    assert (values == 17).all()  # the input is left alone


@by_law
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_scale_that_is_off_by_30_percent_is_rejected(noise, fit, method, law, scale, factor):
    right, wrong = law(fit, scale), law(fit, scale * factor)
    assert right.can_tell(wrong, SIZE)
    drawn = getattr(noise, method)(np.zeros(SIZE, dtype=np.int64), scale * factor)
    assert not right.accepts(drawn)


def test_laplace_and_gaussian_are_told_apart(noise, fit):
    """Also with equal variances."""
    right, wrong = laplace(fit, 10.0), gaussian(fit, 10.0 * math.sqrt(2))
    assert right.can_tell(wrong, SIZE)
    assert not right.accepts(noise.add_gaussian(np.zeros(SIZE, np.int64), 10.0 * math.sqrt(2)))


@pytest.mark.parametrize(("method", "law"), [("add_laplace", laplace), ("add_gaussian", gaussian)])
def test_one_number_at_a_time(noise, fit, method, law):
    size = 4_000
    draw = getattr(noise, method)
    drawn = np.array([int(draw(np.array(5), 3.0)) - 5 for _ in range(size)])
    assert law(fit, 3.0).accepts(drawn)
    reused = np.full(size, drawn[0])  # noise drawn once and kept would be seen
    assert not law(fit, 3.0).accepts(reused)


def test_far_tails_are_there(noise):
    """Exact binomial test, 1e-7 on each side: cut-off noise would have no guarantee at all."""
    scale, cut = 2.0, 14
    ratio = math.exp(-1 / scale)
    tail = 2 * ratio**cut / (1 + ratio)
    drawn = np.abs(noise.add_laplace(np.zeros(SIZE, dtype=np.int64), scale))
    far = int((drawn >= cut).sum())
    low, high = binom.ppf([1e-7, 1 - 1e-7], SIZE, tail)
    assert low <= far <= high
    assert low > 0  # noise that stops before the cut fails


class TestIndependence:
    """Signs of two entries of one vector: nine cases, whose law is the product."""

    SCALE = 2.0

    def law(self, fit):
        ratio = math.exp(-1 / self.SCALE)
        zero = (1 - ratio) / (1 + ratio)
        sign = np.array([(1 - zero) / 2, zero, (1 - zero) / 2])
        return fit(np.arange(9), np.outer(sign, sign).ravel())

    def cases(self, first, second):
        return (np.sign(first) + 1) * 3 + np.sign(second) + 1

    @pytest.mark.parametrize("shift", [1, 2, 7])
    def test_entries_of_a_vector(self, noise, fit, shift):
        drawn = noise.add_laplace(np.zeros(SIZE, dtype=np.int64), self.SCALE)
        blocks = drawn[: SIZE // (2 * shift) * 2 * shift].reshape(-1, 2, shift)
        assert self.law(fit).accepts(self.cases(blocks[:, 0], blocks[:, 1]))

    def test_answers_to_two_questions(self, noise, fit):
        first, second = (noise.add_laplace(np.zeros(SIZE // 2, int), self.SCALE) for _ in range(2))
        assert self.law(fit).accepts(self.cases(first, second))

    def test_shared_or_mirrored_noise_is_rejected(self, noise, fit):
        drawn = noise.add_laplace(np.zeros(SIZE // 2, dtype=np.int64), self.SCALE)
        for copy in (drawn, -drawn):
            assert not self.law(fit).accepts(self.cases(drawn, copy))


class TestEdges:
    @pytest.mark.parametrize("method", ["add_laplace", "add_gaussian"])
    def test_scale_zero_adds_nothing_and_copies(self, noise, method):
        values = np.array([[1, -2], [2**60, 0]])
        noisy = getattr(noise, method)(values, 0.0)
        assert (noisy == values).all()
        noisy[0, 0] = 99
        assert values[0, 0] == 1

    @pytest.mark.parametrize("method", ["add_laplace", "add_gaussian"])
    def test_no_values(self, noise, method):
        assert getattr(noise, method)(np.zeros((0, 3), np.int64), 1.0).shape == (0, 3)

    @pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-162, 1e-3])
    def test_tiny_scales_add_nothing(self, noise, scale):
        """P(k != 0) < 1e-400 even for the largest of these."""
        values = np.array([0, 5, -(2**60)])
        assert (noise.add_laplace(values, scale) == values).all()
        assert (noise.add_gaussian(values, scale) == values).all()
        assert noise.permute_and_flip(values, scale) == noise.exponential(values, scale) == 1

    def test_scores_of_2_to_60(self, noise):
        scores = np.array([2**60, 2**60 + 1000, 0])
        assert noise.permute_and_flip(scores, 1.0) == 1  # missed with probability exp(-1000)
        assert noise.exponential(scores, 1.0) == 1

    def test_large_scores_keep_their_small_differences(self, noise, fit):
        """2^60 and 2^60 + 1 are the same double; as scores they are not."""
        size = 3_000
        scores = np.array([2**60, 2**60 + 1])
        worse = math.exp(-1) / 2
        law = fit([0, 1], [worse, 1 - worse])
        assert law.can_tell(fit([0, 1], [0.5, 0.5]), size)
        assert law.accepts([noise.permute_and_flip(scores, 1.0) for _ in range(size)])

    def test_secure_noise_takes_the_whole_range_of_scores(self):
        """The range is 2^64 - 1, so a difference of two scores does not fit in 64 bits."""
        scores = np.array([ENDS.min, ENDS.max, 0])
        for _ in range(20):
            assert SecureNoise().permute_and_flip(scores, 1e10) == 1
            assert SecureNoise().exponential(scores, 1e10) == 1

    @pytest.mark.parametrize("method", ["add_laplace", "add_gaussian"])
    def test_sums_stop_at_the_ends_of_the_range(self, noise, method):
        """A sum that wrapped around would turn 2^63 into -2^63."""
        values = np.repeat([ENDS.max, ENDS.min], 200)
        noisy = getattr(noise, method)(values, 10.0)
        assert (noisy[:200] > 2**62).all()
        assert (noisy[200:] < -(2**62)).all()
        assert (noisy[:200] < ENDS.max).any()

    def test_huge_scale_drowns_everything(self):
        noisy = SecureNoise().add_laplace(np.zeros(300, dtype=np.int64), 1e30)
        assert (np.abs(noisy.astype(float)) > 2**60).mean() > 0.9

    @pytest.mark.parametrize("method", ["permute_and_flip", "exponential"])
    def test_scale_zero_takes_the_best(self, noise, method):
        assert getattr(noise, method)(np.array([3, 9, 1]), 0.0) == 1

    @pytest.mark.parametrize("method", ["permute_and_flip", "exponential"])
    def test_single_candidate(self, noise, method):
        answer = getattr(noise, method)(np.array([-5]), 1.0)
        assert answer == 0
        assert type(answer) is int


class TestBits:
    def test_range_and_law(self, noise, fit):
        for count in (1, 3, 8, 9):
            drawn = np.array([noise.bits(count) for _ in range(4_000)])
            law = fit(np.arange(2**count), np.full(2**count, 0.5**count))
            assert law.accepts(drawn)
            assert not law.accepts(drawn // 2)

    def test_every_bit_of_a_long_number_is_fair(self, noise):
        """Hoeffding: 6.5 sigma is exceeded with probability below 1.4e-9, by any of 80: 1.1e-7."""
        size = 4_000
        drawn = [noise.bits(80) for _ in range(size)]
        assert max(drawn).bit_length() == 80
        for place in range(80):
            ones = sum(value >> place & 1 for value in drawn)
            assert abs(ones - size / 2) <= 6.5 * math.sqrt(size) / 2

    def test_no_bits(self, noise):
        assert noise.bits(0) == 0

    @pytest.mark.parametrize("bound", [1, 2, 3, 5, 64])
    def test_below_is_uniform(self, noise, fit, bound):
        drawn = [noise.below(bound) for _ in range(4_000)]
        assert fit(np.arange(bound), np.full(bound, 1 / bound)).accepts(drawn)

    def test_a_modulo_instead_of_rejection_is_rejected(self, noise, fit):
        law = fit(np.arange(5), np.full(5, 0.2))
        assert not law.accepts([noise.bits(3) % 5 for _ in range(4_000)])


class TestSources:
    def test_only_secure_noise_says_it_is_private(self):
        assert SecureNoise().private is True
        assert SeededNoise(1).private is False

    def test_seeded_noise_repeats_and_secure_noise_does_not(self):
        zeros = np.zeros(50, dtype=np.int64)
        first, again = (SeededNoise(4).add_laplace(zeros, 9.0) for _ in range(2))
        assert (first == again).all()
        secure = [SecureNoise().add_laplace(zeros, 9.0).tolist() for _ in range(2)]
        assert secure[0] != secure[1]  # equal with probability below 20^-50

    def test_numpy_seeding_does_not_touch_secure_noise(self):
        zeros = np.zeros(50, dtype=np.int64)
        drawn = []
        for _ in range(2):
            np.random.seed(0)
            drawn.append(SecureNoise().add_laplace(zeros, 9.0).tolist())
        assert drawn[0] != drawn[1]

    def test_seeds_of_every_kind(self):
        for seed in (3, np.random.default_rng(3), np.random.RandomState(3)):
            assert isinstance(SeededNoise(seed).bits(70), int)
