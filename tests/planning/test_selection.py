"""What selections lose: exact laws on the worst tables, and draws of the library itself."""

import math

import numpy as np
import pytest

from privet.learners.privatree import leaf_amount
from privet.planning import (
    PlanError,
    discrete_flip_probability,
    exponential_error,
    exponential_loss,
    exponential_tail,
    flip_error,
    flip_loss,
    flip_probability,
    flip_tail,
    label_loss,
    normal_loss,
)
from privet.privacy import Exact, Exponential, PermuteAndFlip, SeededNoise


def exponential_law(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)  # exact for up to 64 candidates


def flip_law(scores):
    """Return permute-and-flip's exact law: P(i) = p_i int_0^1 prod_{j != i} (1 - t p_j) dt."""
    p = np.exp(scores - scores.max())
    factors = 1 - (NODES[:, None] + 1) / 2 * p
    return p * (WEIGHTS / 2 @ (factors.prod(axis=1, keepdims=True) / factors))


def expected_loss(law, scores):
    return float(law(scores) @ (scores.max() - scores))


@pytest.mark.parametrize("candidates", [2, 3, 10, 60])
@pytest.mark.parametrize(
    ("law", "loss", "tail"),
    [(exponential_law, exponential_loss, exponential_tail), (flip_law, flip_loss, flip_tail)],
)
class TestLosses:
    def test_bounds_hold_on_random_tables_and_are_attained(self, law, loss, tail, candidates):
        rng = np.random.default_rng(candidates)
        bound = loss(candidates, 1.0)
        for _ in range(60):
            scores = -rng.exponential(rng.choice([0.3, 2, 6]), candidates)
            scores[0] = 0.0
            assert expected_loss(law, scores) <= bound
            cut = rng.uniform(0.1, 6)
            assert law(scores)[scores <= -cut].sum() <= tail(candidates, cut) + 1e-12
        worst = 0.0
        for gap in np.linspace(0.05, 12, 240):
            tied = np.r_[0.0, np.full(candidates - 1, -gap)]
            assert 1 - law(tied)[0] == pytest.approx(float(tail(candidates, gap)), rel=1e-6)
            worst = max(worst, expected_loss(law, tied))
        assert 0.999 * bound < worst <= bound

    def test_units(self, law, loss, tail, candidates):
        assert loss(candidates, 0.1, 2.0) == pytest.approx(20 * loss(candidates, 1.0))


@pytest.mark.parametrize("candidates", [2, 50, 700])
@pytest.mark.parametrize("failure", [0.01, 0.2])
def test_errors_invert_tails(candidates, failure):
    for error, tail in ((flip_error, flip_tail), (exponential_error, exponential_tail)):
        found = error(candidates, 0.5, failure, 2.0)
        assert float(tail(candidates, found * 0.5 / 2.0)) == pytest.approx(failure)
    assert flip_error(candidates, 0.5, failure) <= exponential_error(candidates, 0.5, failure)


def test_trivial_selections():
    assert flip_error(1, 1.0, 0.1) == exponential_error(1, 1.0, 0.1) == flip_error(2, 1.0, 0.6) == 0
    assert flip_loss(1, 1.0) == exponential_loss(1, 1.0) == normal_loss(1) == 0
    assert float(flip_tail(10**6, 40.0)) == pytest.approx((10**6 - 1) / 2 * math.exp(-40), rel=1e-4)


@pytest.mark.parametrize(
    ("mechanism", "tail"), [(PermuteAndFlip, flip_tail), (Exponential, exponential_tail)]
)
def test_the_librarys_mechanisms(mechanism, tail):
    noise, chosen, draws = SeededNoise(3), mechanism(2, 0.5), 8000
    scores = Exact(np.r_[10, np.zeros(39)].astype(np.int64))
    missed = np.mean([chosen.choose(scores, noise) != 0 for _ in range(draws)])
    slack = 5 / math.sqrt(draws) / 2
    assert missed == pytest.approx(float(tail(40, 10 * 0.5 / 2)), abs=slack)
    assert abs(missed - float(tail(40, 10 * 0.5 / 4))) > slack  # a factor of two would be seen


def test_corollary_1_is_the_learners():
    needed = float(leaf_amount(3, 10_000, 4, 10.0, 0.01, published=False))
    assert 2**4 * label_loss(3, needed) == pytest.approx(0.01 * 10_000, rel=1e-6)


class TestLabels:
    @pytest.mark.parametrize("parties", [1, 4])
    def test_swaps(self, parties):
        rng = np.random.default_rng(parties)
        noise = rng.laplace(0, 1 / 0.3, (2, 200_000, parties)).sum(axis=2)
        for gap in (0, 2, 8):
            raw = np.mean(noise[0] > gap + noise[1])
            assert raw == pytest.approx(flip_probability(gap, 0.3, parties), abs=0.006)
            low, high = np.maximum(noise[0] + 5, 0), np.maximum(noise[1] + 5 + gap, 0)
            cut = np.mean(low > high) + np.mean(low == high) / 2
            assert cut == pytest.approx(raw, abs=0.006)  # DiPriMe's cut at zero changes nothing

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
    def test_integer_noise_swaps_less(self, epsilon):
        ratio = math.exp(-epsilon)
        k = np.arange(-2000, 2001)
        pmf = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
        above = np.r_[np.cumsum(pmf[::-1])[::-1][1:], 0]  # P(Z > k)
        for gap in (0, 1, 5, 20):
            moved = np.clip(np.arange(len(k)) + gap, 0, len(k) - 1)
            exact = pmf @ (above[moved] + pmf[moved] / 2)
            assert discrete_flip_probability(gap, epsilon) == pytest.approx(exact, rel=1e-6)
            assert exact <= flip_probability(gap, epsilon) * (1 + 1e-9)
            assert gap * exact <= label_loss(2, epsilon, by="counts")

    @pytest.mark.parametrize("parties", [1, 3, 30])
    def test_counts_of_two_classes(self, parties):
        """The bound is attained: no constant could be smaller."""
        gaps = np.linspace(0, 30 * math.sqrt(parties), 3000)
        worst = (gaps * flip_probability(gaps, 0.5, parties)).max()
        bound = label_loss(2, 0.5, by="counts", parties=parties)
        assert 0.999 * bound < worst <= bound
        assert label_loss(2, 1.0, by="counts") == pytest.approx(
            (math.sqrt(2) + 1) / 2 * math.exp(-math.sqrt(2)), rel=1e-4
        )

    @pytest.mark.parametrize("by", ["counts", "flip"])
    def test_a_known_lead(self, by):
        known = label_loss(2, 1.0, by=by, gap=10.0)
        swapped = flip_probability(10.0, 1.0) if by == "counts" else math.exp(-10) / 2
        assert known == pytest.approx(10 * swapped, rel=1e-4)
        assert label_loss(2, 1.0, by=by, gap=0.3) == pytest.approx(label_loss(2, 1.0, by=by))

    @pytest.mark.parametrize("classes", [3, 6])
    def test_counts_of_several_classes(self, classes):
        rng = np.random.default_rng(classes)
        bound = label_loss(classes, 0.5, by="counts", parties=2)
        for _ in range(8):
            counts = rng.integers(0, 12, classes)
            noisy = counts + rng.laplace(0, 2, (20_000, 2, classes)).sum(axis=1)
            assert (counts.max() - counts[noisy.argmax(axis=1)]).mean() <= bound

    def test_counts_of_many_classes_lose_no_more_than_their_largest_noise(self):
        """Not one loss for each class: 29 of 100 classes, where 4.5 is proved and 2.4 found."""
        rng = np.random.default_rng(0)
        for classes, parties in ((10, 20), (100, 1), (100, 4)):
            noise = rng.laplace(0, 1, (20_000, parties, classes)).sum(axis=1)
            said = label_loss(classes, 1.0, by="counts", parties=parties)
            largest, slack = noise.max(axis=1), 5 * math.sqrt(2 * parties / 20_000)
            assert said == pytest.approx(largest.mean(), abs=slack + 0.002 * said)
            ahead = noise[:, 1:].max(axis=1) - noise[:, 0]
            worst = max(gap * np.mean(ahead > gap) for gap in np.linspace(0, 4 * said, 200))
            assert 0.4 * said < worst < said
            for spread in (0.3, 1.0, 3.0):
                gaps = np.r_[0.0, rng.exponential(spread * said, classes - 1)]
                assert gaps[(noise - gaps).argmax(axis=1)].mean() < said

    def test_losses_grow_steadily_with_the_parties(self):
        """They tripled from 500 parties to 501."""
        counted = (1, 2, 10, 400, 500, 501, 600, 100_000)
        for classes in (2, 5, 30):
            losses = [label_loss(classes, 1.0, by="counts", parties=k) for k in counted]
            steady = [loss / math.sqrt(k) for loss, k in zip(losses, counted, strict=True)]
            assert losses == sorted(losses)
            assert max(steady[2:]) < 1.1 * min(steady[2:])

    @pytest.mark.parametrize("gap", [-1.0, math.nan, math.inf, "1"])
    def test_a_gap_is_a_number(self, gap):
        with pytest.raises(PlanError, match="the gap must be a number"):
            label_loss(2, 1.0, by="counts", gap=gap)

    def test_bad_input(self):
        with pytest.raises(PlanError, match="'flip' or by 'counts'"):
            label_loss(2, 1.0, by="vote")
        with pytest.raises(PlanError, match="at least 2"):
            label_loss(1, 1.0)


@pytest.mark.parametrize("tail", [flip_tail, exponential_tail])
def test_a_loss_is_not_negative(tail):
    for loss in (-1.0, math.nan, [0.0, -1e-9]):
        with pytest.raises(PlanError, match="the loss must be at least 0"):
            tail(3, loss)
    assert tail(3, math.inf) == 0
    with pytest.raises(PlanError, match="the gap must be at least 0"):
        flip_probability(-1.0, 1.0)


@pytest.mark.parametrize("candidates", [2, 20, 400])
def test_normal_noise(candidates):
    rng = np.random.default_rng(candidates)
    noise = rng.normal(size=(20_000, candidates))
    ahead = noise[:, 1:].max(axis=1) - noise[:, 0]
    worst = max(gap * np.mean(ahead > gap) for gap in np.linspace(0.1, 8, 80))
    assert worst == pytest.approx(normal_loss(candidates), rel=0.04)


def test_silly_numbers_get_a_clear_error():
    for wrong in ([1], "many", None, 1.5, 10**400):
        for call in (normal_loss, lambda n: flip_loss(n, 1.0), lambda n: exponential_loss(n, 1.0)):
            with pytest.raises(PlanError, match="candidates must be"):
                call(wrong)
    assert discrete_flip_probability(3, 1e-17) == pytest.approx(0.5)
