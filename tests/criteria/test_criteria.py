"""Brute force of what docs/proofs/criteria.md claims: adding a record raises a loss by 0..spread.

Nothing here is statistical: every check is an inequality that holds for each table tried, against
exact arithmetic (fractions, or decimals of 50 digits).
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from privet.criteria import (
    HALVINGS,
    MAX_ROWS,
    SAD,
    SSE,
    TARGET_STEPS,
    ClippedEntropy,
    Entropy,
    Gini,
    GiniChords,
    Max,
)
from privet.errors import BudgetError

#: Rounding error, in units, of one term x log2 x of Entropy: the proof's number.
TERM = 5


def clipped_error(classes):
    """Rounding error, in units, of one loss of ClippedEntropy: the proof's number."""
    return 12 + classes


def small_tables(classes, children, largest):
    """All tables of counts 0..largest, of shape (tables, children, classes)."""
    cells = classes * children
    grid = np.indices((largest + 1,) * cells).reshape(cells, -1).T
    return grid.reshape(-1, children, classes)


def changes(criterion, tables):
    """How much the loss of every split changes by every record that could be added."""
    before = criterion.losses(tables).sum(axis=-1)
    children, classes = tables.shape[-2:]
    after = []
    for child, label in itertools.product(range(children), range(classes)):
        neighbour = tables.copy()
        neighbour[..., child, label] += 1
        after.append(criterion.losses(neighbour).sum(axis=-1) - before)
    return np.stack(after, axis=-1)


SHAPES = [(2, 1, 40), (3, 1, 10), (4, 1, 6), (2, 2, 6), (2, 3, 3), (3, 2, 3), (4, 2, 2), (3, 3, 1)]

LARGE_TOTALS = [10**3, 10**5, 10**7, 2**30, MAX_ROWS - 1]


def large_tables(rng, classes, children, total, repeats=300):
    """Random tables of at most ``total`` records, with pure, lopsided and even children."""
    tables = []
    for _ in range(repeats):
        shares = rng.dirichlet(np.full(children * classes, rng.choice([0.05, 0.3, 1.0, 20.0])))
        table = np.floor(shares * rng.integers(total // 2, total + 1)).astype(np.int64)
        table[rng.random(table.shape) < 0.2] = 0
        tables.append(table.reshape(children, classes))
    pure = np.zeros((children, classes), dtype=np.int64)
    pure[0, 0] = total
    return np.array([*tables, pure])


def assert_changes_within(criterion, tables, low, high):
    found = changes(criterion, tables)
    assert found.min() >= low
    assert found.max() <= high


class TestExactCriteria:
    """These are floors of exact numbers: the change lies in [0, spread] exactly."""

    @pytest.mark.parametrize("kind", [Gini, Max, GiniChords])
    @pytest.mark.parametrize(("classes", "children", "largest"), SHAPES)
    def test_every_small_table_and_neighbour(self, kind, classes, children, largest):
        criterion = kind(classes, 5) if kind is GiniChords else kind()
        tables = small_tables(classes, children, largest)
        assert_changes_within(criterion, tables, 0, criterion.spread)

    @pytest.mark.parametrize("kind", [Gini, Max, GiniChords])
    @pytest.mark.parametrize("total", LARGE_TOTALS)
    @pytest.mark.parametrize(("classes", "children"), [(2, 1), (2, 3), (3, 2), (7, 2)])
    def test_large_tables(self, kind, generator, classes, children, total):
        criterion = kind(classes, 5) if kind is GiniChords else kind()
        tables = large_tables(generator, classes, children, total)
        assert_changes_within(criterion, tables, 0, criterion.spread)

    @pytest.mark.parametrize("total", LARGE_TOTALS)
    @pytest.mark.parametrize("classes", [2, 3, 50])
    def test_gini_is_the_floor_of_the_exact_loss(self, generator, classes, total):
        for (counts,) in large_tables(generator, classes, 1, total):
            n = int(counts.sum())
            squares = sum(int(count) ** 2 for count in counts)
            exact = (n * n - squares) * Gini.scale // n if n else 0
            assert int(Gini().losses(counts)) == exact

    def test_gini_spread_is_nearly_attained(self):
        biggest = changes(Gini(), np.array([[[10**6, 0]]])).max()
        assert 1.99999 * Gini.scale < biggest <= 2 * Gini.scale
        # 2N/(N+1) for a pure child of N records (docs/proofs/criteria.md)
        for n in (1, 2, 10, 999):
            assert changes(Gini(), np.array([[[n, 0]]])).max() == 2 * n * Gini.scale // (n + 1)

    @pytest.mark.parametrize("halvings", HALVINGS)
    @pytest.mark.parametrize("classes", [1, 2, 3, 7])
    def test_chords_are_the_least_of_their_lines(self, generator, classes, halvings):
        """As lines they would be too many to compare: halvings find the same number."""
        criterion = GiniChords(classes, halvings)
        counts = generator.dirichlet(np.full(classes, 0.4), 300) * 10 ** generator.uniform(
            0, 6, (300, 1)
        )
        counts = counts.astype(np.int64)
        rows, low = counts.sum(axis=1)[:, None, None], np.arange(2 ** (halvings + 1))
        one = (len(low) - low) * (len(low) - low - 1)
        own = counts[:, :, None]
        least = (one * own + low * (low + 1) * (rows - own)).min(axis=2).sum(axis=1)
        alike = 2 if classes == 2 else 1
        assert (criterion.losses(counts) == least // (2 * alike)).all()
        assert (least % (2 * alike) == 0).all()

    @pytest.mark.parametrize("halvings", HALVINGS)
    @pytest.mark.parametrize("classes", [2, 3, 10])
    def test_chords_are_close_to_gini_and_meet_it_at_even_shares(
        self, generator, classes, halvings
    ):
        criterion, chords = GiniChords(classes, halvings), 2 ** (halvings + 1)
        counts = (generator.dirichlet(np.full(classes, 0.4), 3_000) * 10**6).astype(np.int64)
        ours, gini = criterion.losses(counts) / criterion.scale, Gini().losses(counts) / Gini.scale
        assert (ours <= gini + 1e-5).all()
        assert (ours >= gini - classes * counts.sum(axis=1) / (2 * chords) ** 2).all()
        for first in range(1, chords):
            counts = np.array([first, chords - first, *[0] * (classes - 2)]) * 60
            exact = Gini().losses(counts) / Gini.scale
            assert criterion.losses(counts) / criterion.scale == pytest.approx(exact)

    @pytest.mark.parametrize("classes", [2, 3, 4, 5, 7])
    @pytest.mark.parametrize("halvings", [5, 9])
    def test_the_spread_of_chords_is_attained(self, generator, classes, halvings):
        tables = large_tables(generator, classes, 1, 5_000, repeats=2_000)
        criterion = GiniChords(classes, halvings)
        found = changes(criterion, tables)
        assert found.max() == criterion.spread < 2 * criterion.scale
        assert found.min() >= 0

    @pytest.mark.parametrize("classes", [2, 3, 6])
    def test_lines_and_halvings_are_losses(self, generator, classes):
        counts = generator.integers(0, 500, (50, classes))
        for criterion in (Max(), GiniChords(classes, 5), GiniChords(classes, 9)):
            found = np.einsum("nk,tlk->ntl", counts, criterion.linear_forms(classes)).min(axis=2)
            total, rows = found.copy(), counts.sum(axis=1)[:, None]
            for _ in range(criterion.halvings):
                found = np.minimum(2 * found, rows - 2 * found)
                total = 4 * total + found
            assert (total.sum(axis=1) == criterion.losses(counts)).all()
            assert criterion.as_min_of_linear(classes, 7) is criterion
        assert Gini().as_min_of_linear(classes, 7) == GiniChords(classes, 7)
        assert Gini().as_min_of_linear(1025, 7) is Entropy(9).as_min_of_linear(classes, 7) is None
        with pytest.raises(BudgetError, match="classes"):
            GiniChords(classes + 1, 5).losses(counts)
        for wrong in (0, 1.5, True, 2_000):
            with pytest.raises(BudgetError, match="classes"):
                GiniChords(wrong, 5)
        for wrong in (0, 4, 10, 5.0, True, None):
            with pytest.raises(BudgetError, match="halvings"):
                GiniChords(2, wrong)

    def test_max_spread_is_attained(self):
        assert changes(Max(), np.array([[[3, 0]]])).max() == Max().spread == 1
        assert changes(Max(), np.array([[[3, 0]]])).min() == 0

    def test_no_overflow_with_many_classes_at_the_limit(self):
        counts = np.full(1000, MAX_ROWS // 1000)
        n = int(counts.sum())
        exact = (n * n - 1000 * int(counts[0]) ** 2) * Gini.scale // n
        assert int(Gini().losses(counts)) == exact
        assert int(Max().losses(counts)) == n - int(counts[0])
        assert int(Gini().losses(np.array([MAX_ROWS, 0]))) == 0

    def test_shape_is_kept_and_empty_regions_lose_nothing(self):
        assert Gini().losses(np.zeros((4, 3, 2))).shape == (4, 3)
        for criterion in (Gini(), GiniChords(2, 7), Max(), Entropy(9), ClippedEntropy(0.1, 2)):
            assert not criterion.losses(np.zeros((4, 3, 2))).any()


def test_two_splits_of_the_same_records_change_within_the_spread_of_each_other():
    """The spread's definition, literally: all candidates of one table, all added records."""
    # records have two binary features and a binary class: 8 kinds, 0..2 records of each
    kinds = np.indices((3,) * 8).reshape(8, -1).T.reshape(-1, 2, 2, 2)

    def losses(criterion, table):
        candidates = [
            criterion.losses(table.sum(axis=(1, 2))),  # no split
            criterion.losses(table.sum(axis=2)).sum(axis=-1),  # by the first feature
            criterion.losses(table.sum(axis=1)).sum(axis=-1),  # by the second
            criterion.losses(table).sum(axis=(-1, -2)),  # by both
        ]
        return np.stack(candidates, axis=-1)

    for criterion in (Gini(), Max(), Entropy(17), Entropy(3), ClippedEntropy(0.1, 2)):
        before = losses(criterion, kinds)
        for kind in itertools.product(range(2), repeat=3):
            neighbour = kinds.copy()
            neighbour[(slice(None), *kind)] += 1
            moved = losses(criterion, neighbour) - before
            assert (moved.max(axis=-1) - moved.min(axis=-1)).max() <= criterion.spread


def test_the_gain_over_the_parent_is_not_monotone():
    """Parent minus children moves both ways, by nearly the whole spread: it needs 2 S, not S."""

    def gain(table):
        return int(Gini().losses(table.sum(axis=0)) - Gini().losses(table).sum())

    n = 10**4
    # a new record of the tiny child's class makes the parent impure, and neither child
    before, up = np.array([[n, 0], [0, 0]]), np.array([[n, 0], [0, 1]])
    assert gain(up) - gain(before) > 1.99 * Gini.scale
    # big class-1 child, small pure class-0 child: a class-1 record spoils the small one
    before, down = np.array([[0, n], [n // 100, 0]]), np.array([[0, n], [n // 100, 1]])
    assert gain(down) - gain(before) < -1.9 * Gini.scale
    # hence two *gains* of different parents move apart by more than the spread of the losses
    rise, fall = gain(up) - gain(np.array([[n, 0], [0, 0]])), gain(down) - gain(before)
    assert rise - fall > Gini().spread
    # with more records both ends come close to 2
    n = 10**7
    before, down = np.array([[0, n], [n // 10**4, 0]]), np.array([[0, n], [n // 10**4, 1]])
    assert -2 * Gini.scale <= gain(down) - gain(before) < -1.99 * Gini.scale


def xlog2x(x):
    return Decimal(x) * Decimal(x).ln() / Decimal(2).ln() if x else Decimal(0)


def exact_step(n):
    return xlog2x(n) - xlog2x(n - 1)


class TestEntropy:
    """F(n) - sum F(n_c): within [-4 TERM, last step + 1 + 4 TERM], for every table."""

    def limits(self, criterion):
        last = criterion.spread - 8 * TERM
        return -4 * TERM, last + 4 * TERM

    @pytest.mark.parametrize("n_max", [2, 5, 13, 10**6, MAX_ROWS])
    @pytest.mark.parametrize(("classes", "children", "largest"), SHAPES)
    def test_every_small_table_and_neighbour(self, n_max, classes, children, largest):
        """Most tables are larger than the small n_max: the continuation must hold there too."""
        criterion = Entropy(n_max)
        tables = small_tables(classes, children, largest)
        assert_changes_within(criterion, tables, *self.limits(criterion))

    @pytest.mark.parametrize("n_max", [2, 100, 10**6, 2**30, MAX_ROWS - 1, MAX_ROWS])
    @pytest.mark.parametrize("total", LARGE_TOTALS)
    @pytest.mark.parametrize(("classes", "children"), [(2, 1), (2, 3), (7, 2)])
    def test_large_tables(self, generator, n_max, classes, children, total):
        criterion = Entropy(n_max)
        tables = large_tables(generator, classes, children, total)
        assert_changes_within(criterion, tables, *self.limits(criterion))

    @pytest.mark.parametrize("n_max", [2, 3, 50, 10**4, 2**20, 2**30, MAX_ROWS])
    def test_around_the_kink(self, n_max):
        """Steps just below, at and just above n_max, where convexity could break."""
        criterion = Entropy(n_max)
        near = [n for n in range(n_max - 3, n_max + 4) if 0 <= n < MAX_ROWS - 3]
        tables = [[[a, b]] for a in near for b in (0, 1, 2) if a + b < MAX_ROWS]
        tables += [[[n_max // 2, n_max - n_max // 2 - 1]], [[n_max - 1, 0]], [[n_max // 3, 1]]]
        assert_changes_within(criterion, np.array(tables), *self.limits(criterion))

    @pytest.mark.parametrize("n_max", [2, 11, 1000, 50_001, MAX_ROWS])
    def test_spread_is_the_last_step_plus_rounding(self, n_max):
        with localcontext() as context:
            context.prec = 50
            exact = exact_step(n_max) * Entropy.scale
        allowance = 8 * TERM + 1
        assert exact <= Entropy(n_max).spread - 8 * TERM + 1
        assert Entropy(n_max).spread <= exact + allowance + 2

    def test_spread_is_nearly_attained(self):
        for n_max in (2, 17, 10**5):
            biggest = changes(Entropy(n_max), np.array([[[n_max - 1, 0]]])).max()
            assert biggest > Entropy(n_max).spread - 8 * TERM - 4

    def test_published_values(self):
        """Friedman & Schuster's bound log2(N+1) + 1/ln 2, and the exact value."""
        for n, exact, bound in [(10, 4.834, 4.902), (50_000, 17.052350, 17.052364)]:
            step = (Entropy(n + 1).spread - 8 * TERM) / Entropy.scale
            assert step == pytest.approx(exact, abs=2e-3 if n == 10 else 4e-5)
            assert math.log2(n + 1) + 1 / math.log(2) == pytest.approx(bound, abs=5e-4)
            assert (n + 1) * math.log2(n + 1) - n * math.log2(n) < bound

    @pytest.mark.parametrize("total", LARGE_TOTALS)
    @pytest.mark.parametrize("classes", [2, 5])
    def test_matches_the_exact_entropy(self, generator, classes, total):
        criterion = Entropy(MAX_ROWS)
        with localcontext() as context:
            context.prec = 50
            for (counts,) in large_tables(generator, classes, 1, total, repeats=60):
                n = int(counts.sum())
                exact = xlog2x(n) - sum(xlog2x(int(count)) for count in counts)
                error = abs(int(criterion.losses(counts)) - exact * Entropy.scale)
                assert error <= TERM * (classes + 1)

    def test_beyond_n_max_it_is_the_linear_continuation(self, generator):
        n_max = 1000
        with localcontext() as context:
            context.prec = 50

            def continued(x):
                return xlog2x(min(x, n_max)) + max(x - n_max, 0) * exact_step(n_max)

            for counts in generator.integers(0, 3000, (200, 3)):
                exact = continued(int(counts.sum())) - sum(continued(int(c)) for c in counts)
                error = abs(int(Entropy(n_max).losses(counts)) - exact * Entropy.scale)
                assert error <= TERM * 4

    @pytest.mark.parametrize("n_max", [True, 1, 0, -5, 2.0, "10", MAX_ROWS + 1, None])
    def test_a_senseless_bound_is_refused(self, n_max):
        with pytest.raises(BudgetError):
            Entropy(n_max)

    def test_numpy_bound(self):
        assert Entropy(np.int32(50)).spread == Entropy(50).spread
        assert isinstance(Entropy(np.int32(50)).spread, int)


def exact_clipped(counts, floor):
    """n x cross entropy to the best shares >= floor, in bits: by the optimality conditions.

    Shares are max(floor, n_c / mu) with mu such that they add up to one; mu is found in fractions.
    """
    counts = sorted((int(count) for count in counts), reverse=True)
    n, classes = sum(counts), len(counts)
    floor = min(Fraction(floor), Fraction(1, classes))  # 50 x 0.02 is above one by a hair
    if n == 0:
        return Decimal(0)
    for j in range(classes, 0, -1):
        rest = 1 - (classes - j) * floor
        mu = Fraction(sum(counts[:j])) / rest if rest > 0 else Fraction(0)
        if mu and counts[j - 1] >= floor * mu and (j == classes or counts[j] <= floor * mu):
            break
    else:
        raise AssertionError("no solution")
    shares = [max(floor, count / mu) for count in counts]
    assert sum(shares) == 1
    logs = [
        (Decimal(share.numerator) / Decimal(share.denominator)).ln() / Decimal(2).ln()
        for share in shares
    ]
    return -sum(count * log for count, log in zip(counts, logs, strict=True))


FLOORS = [(0.02, 2), (0.02, 3), (0.02, 50), (0.3, 3), (0.25, 4), (0.5, 2), (2.0**-30, 4)]


class TestClippedEntropy:
    """Within [-2 error, log2(1/floor) + 1 + 2 error], for every table of any size."""

    def limits(self, criterion):
        error = clipped_error(criterion.classes)
        return -2 * error, criterion.spread - 2 * error

    @pytest.mark.parametrize("floor", [0.02, 0.1, 0.2, 0.25])
    @pytest.mark.parametrize(("classes", "children", "largest"), SHAPES)
    def test_every_small_table_and_neighbour(self, floor, classes, children, largest):
        criterion = ClippedEntropy(floor, classes)
        tables = small_tables(classes, children, largest)
        assert_changes_within(criterion, tables, *self.limits(criterion))

    @pytest.mark.parametrize("total", LARGE_TOTALS)
    @pytest.mark.parametrize(("floor", "classes"), FLOORS)
    def test_large_tables(self, generator, floor, classes, total):
        criterion = ClippedEntropy(floor, classes)
        for children in (1, 3):
            tables = large_tables(generator, classes, children, total)
            assert_changes_within(criterion, tables, *self.limits(criterion))

    @pytest.mark.parametrize("total", [5, 60, *LARGE_TOTALS])
    @pytest.mark.parametrize(("floor", "classes"), FLOORS)
    def test_matches_the_exact_loss(self, generator, floor, classes, total):
        criterion = ClippedEntropy(floor, classes)
        with localcontext() as context:
            context.prec = 50
            repeats = 40 if classes < 10 else 8
            for (counts,) in large_tables(generator, classes, 1, total, repeats=repeats):
                exact = exact_clipped(counts, floor) * criterion.scale
                error = abs(int(criterion.losses(counts)) - exact)
                assert error <= clipped_error(classes)

    def test_no_shares_do_better(self, generator):
        """A minimum, not merely a stationary point: random feasible shares never win."""
        criterion = ClippedEntropy(0.1, 4)
        for counts in generator.integers(0, 60, (100, 4)) * generator.integers(0, 2, (100, 4)):
            shares = 0.1 + 0.6 * generator.dirichlet(np.full(4, 0.3), 200)
            losses = -(counts * np.log2(shares)).sum(axis=1)
            least = int(criterion.losses(counts)) / criterion.scale
            assert losses.min() >= least - clipped_error(4) / criterion.scale

    @pytest.mark.parametrize(("floor", "classes"), [(0.02, 2), (0.02, 5), (0.2, 3), (0.001, 2)])
    def test_spread_is_nearly_attained(self, floor, classes):
        pure = np.zeros((1, 1, classes), dtype=np.int64)
        pure[0, 0, 0] = math.ceil(2 / floor)
        bits = math.log2(1 / floor) * ClippedEntropy.scale
        assert changes(ClippedEntropy(floor, classes), pure).max() > bits - 4
        assert ClippedEntropy(floor, classes).spread < bits + 3 + 4 * clipped_error(classes)

    @pytest.mark.parametrize("classes", range(2, 200))
    def test_the_highest_possible_floor(self, classes):
        """1 - (K-1)/K may round below 1/K: no shares looked feasible, and the loss was -2^63."""
        for floor in (1 / classes, math.nextafter(1 / classes, 0), math.nextafter(1 / classes, 1)):
            if floor * classes > 1 or floor > 0.5:
                continue
            criterion = ClippedEntropy(floor, classes)
            counts = np.zeros((2, classes), dtype=np.int64)
            counts[:, 0], counts[1, -1] = 10**6, 1
            exact = counts.sum(axis=1) * math.log2(classes) * criterion.scale
            assert np.abs(criterion.losses(counts) - exact).max() <= clipped_error(classes) + 1

    @pytest.mark.parametrize(
        ("floor", "classes"),
        [
            (0.6, 2),
            (0.0, 2),
            (-0.1, 2),
            (math.nan, 2),
            (1e-12, 2),
            (0.4, 3),
            ("0.1", 2),
            (1, 1),
            (0.02, 0),
            (0.02, -3),
            (0.02, 2.5),
            (0.02, True),
        ],
    )
    def test_senseless_parameters_are_refused(self, floor, classes):
        with pytest.raises(BudgetError):
            ClippedEntropy(floor, classes)

    def test_another_number_of_classes_is_refused(self):
        with pytest.raises(BudgetError, match="another number of classes"):
            ClippedEntropy(0.02, 3).losses(np.array([1, 2]))


def moments(targets):
    return np.array([len(targets), sum(targets), sum(t * t for t in targets)])


class TestSSE:
    """An exact floor on the target's grid: the change lies in [0, spread] exactly."""

    ENDS = (0, 1, TARGET_STEPS // 3, TARGET_STEPS - 1, TARGET_STEPS)

    def test_every_small_region_and_neighbour(self):
        for size in range(6):
            for targets in itertools.combinations_with_replacement(self.ENDS, size):
                before = int(SSE().losses(moments(targets)))
                for new in self.ENDS:
                    after = int(SSE().losses(moments([*targets, new])))
                    assert 0 <= after - before <= SSE().spread

    def test_is_the_floor_of_the_exact_loss(self, generator):
        for size in (1, 2, 7, 100, 5000):
            for _ in range(40):
                targets = generator.integers(0, TARGET_STEPS + 1, size).tolist()
                n, total, squares = (int(moment) for moment in moments(targets))
                exact = Fraction(squares) - Fraction(total * total, n)
                assert int(SSE().losses(np.array([n, total, squares]))) == math.floor(exact)

    @pytest.mark.parametrize("total", LARGE_TOTALS)
    def test_large_regions(self, generator, total):
        """``low`` records at 0, ``high`` at the top and ``middle`` at a value between."""
        for _ in range(500):
            low, high = (int(part) for part in generator.integers(0, total // 2, 2))
            middle = total - low - high if generator.random() < 0.5 else 0
            at = int(generator.integers(0, TARGET_STEPS + 1))
            region = [
                low + high + middle,
                high * TARGET_STEPS + middle * at,
                high * TARGET_STEPS**2 + middle * at * at,
            ]
            before = self.exact(region)
            assert int(SSE().losses(np.array(region))) == before
            for new in (0, at, TARGET_STEPS):
                more = [region[0] + 1, region[1] + new, region[2] + new * new]
                assert int(SSE().losses(np.array(more))) == self.exact(more)
                assert 0 <= self.exact(more) - before <= SSE().spread

    @staticmethod
    def exact(region):
        n, total, squares = region
        return squares - -(-total * total // n) if n else 0

    def test_no_overflow_at_the_limit(self):
        n, top = MAX_ROWS, TARGET_STEPS
        assert int(SSE().losses(np.array([n, n * top, n * top * top]))) == 0
        half = n // 2
        region = [n, half * top, half * top * top]
        assert int(SSE().losses(np.array(region))) == self.exact(region) > 2**58

    def test_spread_is_nearly_attained(self):
        n = 10**6
        before, after = SSE().losses(np.array([[n, 0, 0], [n + 1, TARGET_STEPS, TARGET_STEPS**2]]))
        assert 0.99999 * SSE().spread < after - before <= SSE().spread

    def test_children(self, generator):
        """A record reaches one child; the sum over children moves by no more."""
        children = [generator.integers(0, TARGET_STEPS + 1, size).tolist() for size in (0, 3, 900)]
        before = sum(int(SSE().losses(moments(child))) for child in children)
        for child in children:
            for new in self.ENDS:
                child.append(new)
                after = sum(int(SSE().losses(moments(child))) for child in children)
                child.pop()
                assert 0 <= after - before <= SSE().spread


class TestSAD:
    """Exact: the change lies in [0, steps]."""

    @pytest.mark.parametrize(("steps", "largest"), [(1, 30), (2, 9), (3, 5), (5, 2)])
    def test_every_small_region_and_neighbour(self, steps, largest):
        tables = small_tables(steps + 1, 1, largest)
        found = changes(SAD(steps), tables)
        assert found.min() >= 0
        assert found.max() == steps  # attained

    def test_children(self):
        assert_changes_within(SAD(2), small_tables(3, 2, 3), 0, 2)

    def test_is_the_least_sum_of_absolute_distances(self, generator):
        for steps in (1, 4, 9):
            for counts in generator.integers(0, 7, (100, steps + 1)):
                values = np.arange(steps + 1)
                sums = [(counts * abs(values - centre)).sum() for centre in values]
                assert int(SAD(steps).losses(counts)) == min(sums)

    @pytest.mark.parametrize("total", LARGE_TOTALS)
    def test_large_regions(self, generator, total):
        for steps in (1, 255):
            tables = large_tables(generator, steps + 1, 1, total, repeats=40)
            assert_changes_within(SAD(steps), tables, 0, steps)

    def test_no_overflow_at_the_limit(self):
        counts = np.zeros(2**16 + 1, dtype=np.int64)
        counts[0], counts[-1] = MAX_ROWS // 2, MAX_ROWS - MAX_ROWS // 2
        assert int(SAD(2**16).losses(counts)) == (MAX_ROWS // 2) * 2**16

    def test_another_grid_is_refused(self):
        """On a wider grid than it was made for, one record would change it by more."""
        with pytest.raises(BudgetError, match="another grid"):
            SAD(3).losses(np.ones(9, dtype=np.int64))

    @pytest.mark.parametrize("steps", [0, -1, 2**16 + 1, 1.5, True, "3"])
    def test_senseless_steps_are_refused(self, steps):
        with pytest.raises(BudgetError):
            SAD(steps)


@pytest.mark.parametrize(
    "criterion", [Gini(), Max(), Entropy(100), ClippedEntropy(), SSE(), SAD()], ids=lambda c: c.name
)
def test_every_criterion_says_what_selections_rely_on(criterion):
    assert criterion.monotone is True
    assert isinstance(criterion.spread, int)
    assert criterion.spread >= 1
    assert isinstance(criterion.scale, int)


def test_floating_point_gini_would_not_be_monotone(generator):
    """Why losses are integers: in doubles an added majority record lowers n (1 - sum p^2)."""
    counts = generator.integers(1, 10**7, (20_000, 2)).astype(float)

    def loss(counts):
        n = counts.sum(axis=1)
        return n * (1 - ((counts / n[:, None]) ** 2).sum(axis=1))

    pure = np.zeros_like(counts)
    pure[:, 0] = counts.max(axis=1)
    pure[:, 1] = 0
    few = pure.copy()
    few[:, 1] = 1
    more = few.copy()
    more[:, 0] += 1
    assert (loss(more) < loss(few)).any()
