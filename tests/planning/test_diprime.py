"""DiPriMe's theorems against simulation: what holds, what does not, and how tight it is."""

import math

import numpy as np
import pytest

from privet.planning import (
    PlanError,
    classification_loss,
    leaf_mean_loss,
    median_imbalance,
    moved_split_loss,
    printed_classification_loss,
    printed_median_balance,
    printed_regression_loss,
    random_imbalance,
    regression_loss,
)


def squared(y):
    return float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0


def split_squared(y, k):
    return squared(y[:k]) + squared(y[k:])


def private_means(y, epsilon, rng, draws):
    """Return leaf means in [0, 1] by two complementary sums; nothing known gives the middle."""
    first = y.sum() + rng.laplace(0, 1 / epsilon, draws)
    second = (1 - y).sum() + rng.laplace(0, 1 / epsilon, draws)
    total = first + second
    return np.clip(np.where(total > 0, first / np.where(total > 0, total, 1), 0.5), 0, 1)


class TestTheorem1:
    @pytest.mark.parametrize("rows", [2, 3, 10, 41])
    def test_moving_the_split(self, rows):
        rng = np.random.default_rng(rows)
        for smallest in {1, max(1, rows // 4), rows // 2}:
            bound, worst = moved_split_loss(rows, smallest, 1.0), 0.0
            tables = [rng.integers(0, 2, rows).astype(float) for _ in range(100)]
            tables += [(np.arange(rows) >= cut).astype(float) for cut in range(rows)]
            for y in tables:
                exact = split_squared(y, rows // 2)
                for k in range(smallest, rows - smallest + 1):
                    worst = max(worst, split_squared(y, k) - exact)
            assert worst <= bound + 1e-9
            assert worst >= 0.999 * bound  # attained: half of it would be seen

    def test_the_printed_first_part_is_twice_too_large(self):
        for rows, smallest in ((100, 10), (100, 40), (1000, 499)):
            printed = 4 * rows - 8 * smallest  # B = 1, width 2
            assert 2 * moved_split_loss(rows, smallest, 2.0) <= printed

    @pytest.mark.parametrize(
        ("rows", "epsilon"), [(2, 1.0), (8, 0.2), (10, 1.0), (40, 1.0), (400, 1.0), (200, 5.0)]
    )
    def test_private_leaf_means(self, rows, epsilon):
        rng, bound, worst = np.random.default_rng(rows), leaf_mean_loss(rows, epsilon, 1.0), 0.0
        for mean in (0.0, 0.02, 0.05, 0.2, 0.5):
            y = np.full(rows, mean)
            found = private_means(y, epsilon, rng, 40_000)
            worst = max(worst, rows * float(((found - mean) ** 2).mean()))
        assert worst <= bound
        if rows * epsilon >= 400:
            assert worst > 0.55 * bound  # half of the bound would be seen

    def test_leaves_with_more_rows_are_not_worse(self):
        sizes = np.r_[0.5, np.geomspace(1, 10_000, 60)]
        found = [leaf_mean_loss(rows, 0.7, 3.0) for rows in sizes]
        assert np.all(np.diff(found) <= 1e-12)
        assert leaf_mean_loss(10**7, 1.0, 1.0) * 10**7 == pytest.approx(2, rel=0.01)

    @pytest.mark.parametrize(("rows", "k", "epsilon"), [(60, 20, 1.0), (400, 150, 1.0)])
    def test_the_whole_statement(self, rows, k, epsilon):
        rng = np.random.default_rng(5)
        y = np.clip((np.arange(rows) >= rows // 2) * 0.9 + 0.05 * rng.random(rows), 0, 1)
        rise = 0.0
        for part in (y[:k], y[k:]):
            means = private_means(part, epsilon, rng, 20_000)
            rise += squared(part) + len(part) * float(((means - part.mean()) ** 2).mean())
        rise -= split_squared(y, rows // 2)
        bound = sum(regression_loss(rows, k, epsilon, 1.0))
        printed = printed_regression_loss(rows, k, epsilon, 0.5)
        assert rise <= bound < printed
        assert rise > 0.5 * bound

    def test_the_two_printed_forms_differ_and_both_hold_for_the_papers_noise(self):
        rng = np.random.default_rng(2)
        rows, k, epsilon = 100, 30, 0.3
        y = np.where(np.arange(rows) < 50, -1.0, 1.0)
        rise = split_squared(y, k) - split_squared(y, 50)
        for size in (k, rows - k):  # mean + Lap(2 B / (N epsilon))
            rise += size * float((rng.laplace(0, 2 / (size * epsilon), 200_000) ** 2).mean())
        main = printed_regression_loss(rows, k, epsilon, 1.0)
        appendix = printed_regression_loss(rows, k, epsilon, 1.0, appendix=True)
        assert rise <= main < appendix
        assert appendix - main == pytest.approx(16 / epsilon**2 * (1 - 1 / k))

    def test_the_papers_leaf_mean_is_not_private(self):
        """N is in the scale: -B in 10 rows against 9, event "mean above 30 B": ratio e^15.5."""
        tail = [-(30 + 1) / (2 / n) for n in (9, 10)]  # log P, up to log(1/2)
        assert tail[0] - tail[1] == pytest.approx(15.5)


class TestTheorem2:
    def test_the_printed_bound_is_false(self):
        """Classes that part at the median: 30 : 70 loses a fifth, without any noise."""
        y = np.arange(100) >= 50
        right = y[30:]
        accuracy = (30 + max(right.sum(), (~right).sum())) / 100
        purity = max(right.mean(), 1 - right.mean())
        assert 1.0 - accuracy == pytest.approx(0.2)
        assert printed_classification_loss(30, 10.0, purity) < 1e-9
        split, labels = classification_loss(100, 30, 10.0, purity=purity)
        assert split == pytest.approx(0.2)
        assert labels < 1e-9

    @pytest.mark.parametrize("rows", [2, 7, 30])
    def test_moving_the_split(self, rows):
        rng = np.random.default_rng(rows)

        def errors(y, k):
            return sum(min(part.sum(), len(part) - part.sum()) for part in (y[:k], y[k:]))

        for smallest in {1, max(1, rows // 3)}:
            worst = 0
            tables = [rng.integers(0, 2, rows) for _ in range(100)]
            tables += [(np.arange(rows) >= cut).astype(int) for cut in range(rows)]
            for y in tables:
                for k in range(smallest, rows - smallest + 1):
                    worst = max(worst, errors(y, k) - errors(y, rows // 2))
            bound = classification_loss(rows, smallest, 1.0)[0] * rows
            assert worst <= bound + 1e-9
            assert worst >= bound - 1e-9 or rows % 2  # attained for an even number of rows

    @pytest.mark.parametrize("by", ["counts", "flip"])
    @pytest.mark.parametrize(("low", "high"), [(20, 23), (10, 40), (50, 52)])
    def test_labels(self, by, low, high):
        rng, epsilon = np.random.default_rng(low), 0.4
        gap, size = high - low, low + high
        if by == "counts":
            noise = rng.laplace(0, 1 / epsilon, (2, 100_000))
        else:
            noise = rng.exponential(1 / epsilon, (2, 100_000))
        lost = gap * np.mean(low + noise[0] > high + noise[1])
        anything = classification_loss(2 * size, size, epsilon, by=by)[1]
        assert 2 * lost / (2 * size) <= anything * 1.03
        known = classification_loss(2 * size, size, epsilon, by=by, purity=high / size)[1]
        assert known <= anything
        assert lost / size <= known * 1.03 + 1e-4
        if gap == 3:  # near the worst gap: half of the bound would be seen
            assert lost / size > 0.6 * anything

    def test_the_rest_of_the_printed_bound_is_loose(self):
        """It counts every row of a swapped leaf as lost, and needs the purity."""
        printed = printed_classification_loss(50, 0.1, 0.6)
        assert printed > 10 * classification_loss(1000, 500, 0.1, purity=0.6)[1]


def median_law(points, low, high, epsilon):
    """Return P(smaller side has i rows) of the exponential mechanism on the interval."""
    ends = np.r_[low, np.sort(points), high]
    left = np.arange(len(points) + 1)
    smaller = np.minimum(left, len(points) - left)
    weights = np.diff(ends) * np.exp(epsilon * (smaller - smaller.max()))
    return np.bincount(smaller, weights) / weights.sum()


class TestTheorem3:
    @pytest.mark.parametrize("rows", [5, 20, 101])
    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
    def test_it_holds_for_one_row_more_and_so_does_corollary_31(self, rows, epsilon):
        rng = np.random.default_rng(rows)
        for shape in (0.2, 1.0, 4.0):
            points = np.sort(rng.beta(shape, shape, rows))
            law, even = (median_law(points, 0, 1, e) for e in (epsilon, 1e-12))
            for t in range(1, (rows - 1) // 2):
                covered = points[rows - t - 1] - points[t]
                few = law[: t + 1].sum()
                assert few <= median_imbalance(epsilon, 1.0, covered) + 1e-12
                assert 1 - few >= printed_median_balance(epsilon, 1.0, covered) - 1e-12
                assert few <= random_imbalance(1.0, covered) + 1e-12
                assert even[: t + 1].sum() == pytest.approx(random_imbalance(1.0, covered))
                further = (rows - 2 * t - 2) // 4
                inner = points[rows - t - further - 1] - points[t + further]
                bound = median_imbalance(epsilon, 1.0, covered, ranks=further, inner=inner)
                assert few <= bound + 1e-12

    def test_it_is_attained(self):
        t, rows, epsilon = 3, 11, 0.7
        points = np.r_[np.zeros(t), 0.3, np.full(rows - 2 * t - 1, 0.8), np.ones(t)]
        few = median_law(points, 0, 1, epsilon)[: t + 1].sum()
        assert few == pytest.approx(median_imbalance(epsilon, 1.0, 0.5))
        assert few > median_imbalance(2 * epsilon, 1.0, 0.5)  # a factor of two would be seen

    def test_many_rows_help_only_the_stronger_form(self):
        rows, t = 1000, 300
        points = (np.arange(rows) + 0.5) / rows
        few = median_law(points, 0, 1, 0.05)[: t + 1].sum()
        printed = median_imbalance(0.05, 1.0, 0.4)
        stronger = median_imbalance(0.05, 1.0, 0.4, ranks=150, inner=0.1)
        assert few < stronger < 0.01 < 0.5 < printed

    def test_the_printed_step_fails_in_the_middle_of_an_odd_number(self):
        rows = 5
        q = [-abs(2 * i - rows) for i in range(rows + 1)]
        assert q[1] == q[0] + 2
        assert q[3] == q[2]  # not q[2] + 2, though 2 < 5 / 2

    def test_the_private_median_by_simulation(self):
        rng = np.random.default_rng(1)
        points = np.sort(rng.random(60))
        law = median_law(points, 0, 1, 0.2)
        grid = rng.random(200_000)
        left = np.searchsorted(points, grid)
        smaller = np.minimum(left, 60 - left)
        accepted = smaller[rng.random(len(grid)) < np.exp(-0.2 * (30 - smaller))]
        assert np.mean(accepted <= 25) == pytest.approx(law[:26].sum(), abs=0.02)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: regression_loss(1, 1, 1.0, 1.0), "rows must be at least 2"),
        (lambda: regression_loss(10, 6, 1.0, 1.0), "at most half"),
        (lambda: regression_loss(10, 5, 0.0, 1.0), "epsilon must be a positive number"),
        (lambda: printed_regression_loss(10, 5, math.nan, 1.0), "positive"),
        (lambda: classification_loss(10, 5, 1.0, purity=0.3), "between 0.5 and 1"),
        (lambda: median_imbalance(1.0, 1.0, 2.0), "between 0 and the width"),
        (lambda: median_imbalance(1.0, 1.0, 0.5, ranks=1, inner=0.6), "part of what"),
        (lambda: median_imbalance(1.0, 0.0, 0.0), "positive"),
        (lambda: median_imbalance(1.0, 1.0, "wide"), "spread must be a number"),
        (lambda: median_imbalance(1.0, 1.0, 0.5, ranks=1, inner=[0.1]), "inner must be a number"),
        (lambda: classification_loss(10, 5, 1.0, purity="pure"), "purity must be a number"),
        (lambda: classification_loss(10, 5, 1.0, purity=math.nan), "purity must be a finite"),
        (lambda: regression_loss(10**400, 5, 1.0, 1.0), "rows must be at most"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(PlanError, match=match):
        call()


def test_rows_in_one_point():
    assert median_imbalance(1.0, 1.0, 0.0) == 1.0
    assert printed_median_balance(1.0, 1.0, 1.0) == 1.0


def test_numbers_at_the_ends_of_their_range():
    assert leaf_mean_loss(1e155, 1.0, 1.0) == pytest.approx(2e-155, rel=0.01)
    assert printed_classification_loss(300, 1e308, 0.7) == 0
    assert printed_regression_loss(1_000, 300, 1e-200, 1.0) == math.inf
