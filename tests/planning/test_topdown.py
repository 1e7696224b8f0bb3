"""DP-TopDown's statements against simulation and algebra."""

import math
from functools import partial

import numpy as np
import pytest

from privet.criteria import Entropy
from privet.planning import (
    PlanError,
    entropy_gain_error,
    entropy_spread,
    gini_gain_error,
    growth_tolerance,
    label_rows,
    log2_nodes,
    noisy_counts_rows,
    noisy_counts_tree_rows,
    printed_noisy_counts_rows,
    printed_noisy_counts_tree_rows,
    printed_single_machine_tree_rows,
    printed_split_error,
    printed_split_rows,
    printed_topdown_rows,
    single_machine_tree_rows,
    split_rows,
    topdown_rows,
)


def impurity(counts, kind):
    """Return rows x impurity over the last axis: ``4 q (1 - q)``, or entropy in bits."""
    rows = counts.sum(axis=-1)
    if kind == "gini":
        return 4 * counts.prod(axis=-1) / np.maximum(rows, 1e-12)
    terms = [np.where(x > 0, x * np.log2(np.maximum(x, 1e-300)), 0) for x in (rows, counts)]
    return terms[0] - terms[1].sum(axis=-1)


def gain(tables, kind):
    return impurity(tables.sum(axis=-2), kind) - impurity(tables, kind).sum(axis=-1)


class TestLemma4:
    def test_the_printed_rows_are_too_few_for_small_b(self):
        """2 b ln b is for natural logarithms, the noise has lg: zeta is missed below b = 840."""
        for candidates, alpha, zeta in ((2, 4.0, 0.5), (10, 8.0, 0.5)):
            rows = printed_split_rows(zeta, alpha, 0.1, candidates)
            assert 40 * math.log(candidates / 0.1) / (alpha * zeta) < 840
            assert printed_split_error(rows, alpha, 0.1, candidates) > zeta
        rows = printed_split_rows(0.1, 1.0, 0.05, 159)  # b = 3226
        assert printed_split_error(rows, 1.0, 0.05, 159) <= 0.1

    @pytest.mark.parametrize("candidates", [2, 40])
    def test_the_private_split_by_simulation(self, candidates):
        """On the worst table: the best split, and all others zeta per row behind it."""
        rng, draws = np.random.default_rng(candidates), 20_000
        zeta, alpha, failure, spread = 0.1, 1.0, 0.1, 4.0

        def failures(rows):
            scores = np.r_[0.0, np.full(candidates - 1, -zeta * rows)]
            noise = rng.exponential(2 * spread / alpha, (draws, candidates))
            wrong = (scores + noise).argmax(axis=1) != 0
            off = np.abs(rng.laplace(0, 2 * spread / alpha, draws)) > zeta * rows
            return np.mean(wrong), np.mean(off), np.mean(wrong | off)

        rows = split_rows(zeta, alpha, failure, candidates, spread)
        wrong, off, either = failures(rows)
        assert either <= failure + 0.01
        assert max(wrong, off) == pytest.approx(failure / 2, abs=0.008)  # attained
        assert failures(rows / 2)[2] > 1.5 * failure  # half of the rows is seen

    def test_entropy_spread(self):
        assert entropy_spread(1000) == pytest.approx(Entropy(1000).spread / Entropy.scale, abs=1e-3)
        for rows in (3, 50, 4000):
            pure = np.array([rows - 1.0, 0.0])
            rise = impurity(pure + np.array([0, 1]), "entropy") - impurity(pure, "entropy")
            assert rise == pytest.approx(entropy_spread(rows))
            assert entropy_spread(rows) < 6 * math.log2(rows) + 2


class TestLemma6:
    @pytest.mark.parametrize("kind", ["gini", "entropy"])
    def test_gains_of_wrong_counts(self, kind):
        rng, rows, worst = np.random.default_rng(4), 1000.0, 0.0
        for error in (1.0, 20.0):
            for _ in range(20):
                share = rng.dirichlet([rng.choice([0.05, 0.3, 1])] * 4, size=4000)
                tables = (share * rows).reshape(-1, 2, 2)
                wrong = np.maximum(tables + rng.choice([-error, 0, error], tables.shape), 0)
                worst = np.abs(gain(wrong, kind) - gain(tables, kind)).max()
                bound = (
                    gini_gain_error(error) if kind == "gini" else entropy_gain_error(rows, error)
                )
                assert worst <= bound
        corner = np.array(
            [[[rows, 0.0], [0.0, 1.0]]]
        )  # a pure node, and one row of the other class
        moved = np.maximum(corner + np.array([[1, 1], [-1, -1]]), 0)
        assert np.abs(gain(moved, kind) - gain(corner, kind)).max() <= bound

    def test_the_gini_bound_is_attained(self):
        tables = np.array([[500.0, 0.0], [0.0, 500.0]])
        moved = gain(tables + np.array([[-1, 1], [1, -1]]), "gini") - gain(tables, "gini")
        assert abs(moved) > 0.99 * gini_gain_error(1.0)

    @pytest.mark.parametrize("criterion", ["gini", "entropy"])
    def test_noisy_counts_by_simulation(self, criterion):
        rng = np.random.default_rng(1)
        zeta, alpha, failure, candidates, parties = 0.2, 1.0, 0.1, 6, 3
        rows = noisy_counts_rows(zeta, alpha, failure, candidates, parties, criterion=criterion)
        share = rng.dirichlet([1] * 4, size=candidates).reshape(-1, 2, 2)
        share[0] = [[0.48, 0.02], [0.02, 0.48]]
        tables = share * rows
        true = gain(tables, criterion)
        failed = 0
        for _ in range(400):
            noise = rng.laplace(0, candidates / alpha, (parties, *tables.shape)).sum(axis=0)
            seen = gain(np.maximum(tables + noise, 0), criterion)
            chosen = seen.argmax()
            far = true.max() - true[chosen] > zeta * rows
            failed += far or abs(seen[chosen] - true[chosen]) > zeta * rows
        assert failed / 400 <= failure + 0.05
        printed = printed_noisy_counts_rows(zeta, alpha, failure, candidates, parties)
        assert rows < printed

    def test_the_worst_counts_are_attained(self):
        """With four counts per split, noise of the printed union bound fails too often."""
        rng, k, h, failure = np.random.default_rng(0), 1, 20, 0.3
        noise = np.abs(rng.laplace(0, 1, (20_000, 4 * h * k))).max(axis=1)
        assert np.mean(noise > math.log(k * h / failure)) > 2 * failure
        assert np.mean(noise > math.log(4 * k * h / failure)) <= failure + 0.02

    def test_the_texts_noise_costs_nine_times_alpha(self):
        alpha, candidates = 1.0, 50
        scale = candidates / (3 * alpha)  # the text; three kinds of counts per candidate
        assert 3 * candidates / scale == pytest.approx(9 * alpha)
        assert 3 * candidates / (3 * candidates / alpha) == pytest.approx(alpha)  # the proof


class TestTheorem3:
    def test_weak_learning_makes_the_progress_of_the_recurrence(self):
        """``tau (1 - tau) (q_1 - q_0) >= 2 gamma q (1 - q)`` lowers the entropy by enough."""
        rng = np.random.default_rng(3)
        q, tau = rng.uniform(0.001, 0.999, (2, 200_000))
        gamma = rng.uniform(0.01, 0.5, 200_000)
        apart = 2 * gamma * q * (1 - q) / (tau * (1 - tau))
        low, high = q - tau * apart, q + (1 - tau) * apart
        real = (low >= 0) & (high <= 1)

        def entropy(p):
            return impurity(np.stack([p, 1 - p], axis=-1), "entropy")

        drop = (entropy(q) - (1 - tau) * entropy(low) - tau * entropy(high))[real]
        least = (drop / (gamma**2 * q * (1 - q))[real]).min()
        assert least == pytest.approx(8 / math.log(2), rel=0.01)
        # a leaf with w min(q, 1-q) >= error / t, and q (1-q) >= min(q, 1-q) / 2
        error = np.linspace(1e-6, 0.5, 5000)
        potential = entropy(error)  # the largest for this error
        step = least / 2 * error * np.log2(2 / potential) / potential
        assert 9 / 4 < step.min() < 10 / 4  # the paper has 1 / 4: nine times too careful

    @pytest.mark.parametrize(("error", "gamma"), [(0.5, 0.5), (0.4, 0.5), (0.6, 0.4)])
    @pytest.mark.parametrize("private", [True, False])
    def test_the_number_of_splits(self, error, gamma, private):
        lg = log2_nodes(error, gamma, private=private)
        assert lg < 80
        potential, t, part = 1.0, 1.0, 8 if private else 4
        # exact steps first; then steps of 1/1000 of t that keep the potential too large
        while math.log2(t) < lg:
            step = max(1.0, t / 1000)
            late = t if step == 1 else t + step
            potential -= step * gamma**2 * potential / (part * late * math.log2(2 / potential))
            t += step
        assert potential <= error * 1.001
        potential, t = 1.0, 1.0
        while math.log2(t) < lg / 2:
            step = max(1.0, t / 1000)
            potential -= step * gamma**2 * potential / (part * t * math.log2(2 / potential))
            t += step
        assert potential > error  # half of the constant would not do, by the recurrence

    def test_the_printed_zeta_guarantees_no_progress_below_the_error(self):
        """The tree must reach half of the error; there the printed bound is negative."""
        error, gamma, nodes = 0.1, 0.2, 50

        def progress(potential, zeta):
            most = gamma**2 * potential / (4 * nodes * math.log2(2 / potential))
            return most - 6 * zeta

        printed = growth_tolerance(error, gamma, nodes)
        assert progress(error, printed) > 0
        assert progress(0.55 * error, printed) < 0
        repaired = growth_tolerance(error / 2, gamma, nodes)
        for potential in np.linspace(error / 2, 1, 50):
            least = gamma**2 * potential / (8 * nodes * math.log2(2 / potential))
            assert progress(potential, repaired) >= least * (1 - 1e-12)

    @pytest.mark.parametrize("parties", [1, 5])
    def test_labels_by_simulation(self, parties):
        rng, leaves, error, alpha, failure = np.random.default_rng(parties), 8, 0.1, 1.0, 0.1
        rows = label_rows(error, alpha / 2, failure, leaves, parties)
        lead = error * rows / leaves  # the worst leaf: a swap loses all that is allowed

        def failed(lead):
            shape = (20_000, leaves, parties)
            if parties == 1:
                noise = rng.exponential(2 / alpha, (2, *shape)).sum(axis=-1)
            else:
                noise = rng.laplace(0, 2 / alpha, (2, *shape)).sum(axis=-1)
            return np.mean((noise[0] > lead + noise[1]).any(axis=1))

        assert failed(lead) == pytest.approx(failure, abs=0.015)
        assert failed(lead / 2) > 2 * failure

    def test_the_printed_label_rows_are_too_few_for_the_papers_noise(self):
        """Scale 2 / (alpha / 2), two counts: each must stay below a quarter of the share."""
        rng, m, error, alpha, failure = np.random.default_rng(9), 7, 0.1, 1.0, 0.2
        rows = math.log(4 * (m + 1) / failure) * 8 * (m + 1) / (error * alpha)
        noise = np.abs(rng.laplace(0, 4 / alpha, (20_000, 2 * (m + 1)))).max(axis=1)
        assert np.mean(noise > error * rows / (4 * (m + 1))) > failure / 4 * 5
        doubled = 2 * math.log(8 * (m + 1) / failure) / math.log(4 * (m + 1) / failure)
        assert np.mean(noise > doubled * error * rows / (4 * (m + 1))) <= failure / 4 + 0.01

    def test_a_path_of_m_splits_asks_m_plus_one_depths(self):
        """Uniform shares 1 / M are overspent by one of them."""
        nodes = 6
        depths = [1]
        for _ in range(nodes):
            depths.append(depths[-1] + 1)  # both children of every split are asked, the last's too
        assert sum(1 / nodes for _ in depths) > 1
        assert sum(1 / (nodes + 1) for _ in depths) == pytest.approx(1)


class TestCorollaries:
    @pytest.mark.parametrize("parties", [1, 4])
    def test_5_7_and_16_grow_as_printed(self, parties):
        """M^3 / (error^2 gamma^2 alpha), times k H for NoisyCounts, up to logarithms."""

        def rows(nodes=10, error=0.2, alpha=1.0, gamma=0.2, candidates=100):
            given = (error, alpha, 0.1, gamma, nodes, candidates)
            if parties == 1:
                return printed_single_machine_tree_rows(*given)
            return printed_noisy_counts_tree_rows(*given, parties)

        assert rows(nodes=100) / rows() == pytest.approx(10**3, rel=0.8)
        assert rows(error=0.02) / rows() == pytest.approx(10**2, rel=1.5)
        assert rows(gamma=0.02) / rows() == pytest.approx(10**2, rel=0.4)
        assert rows(alpha=0.1) / rows() == pytest.approx(10, rel=0.3)
        grown = rows(candidates=1000) / rows()
        assert grown == pytest.approx(1 if parties == 1 else 10, rel=0.6)

    GIVEN = (0.2, 1.0, 0.1, 0.2, 20, 100)

    def test_the_private_ones_need_fewer_rows_than_printed(self):
        printed = printed_single_machine_tree_rows(*self.GIVEN)
        assert 1e6 < single_machine_tree_rows(*self.GIVEN) < printed
        printed = printed_noisy_counts_tree_rows(*self.GIVEN, 9)
        assert noisy_counts_tree_rows(*self.GIVEN, 9) < printed
        shared = noisy_counts_tree_rows(*self.GIVEN, 9, tables=10, bins=10)
        assert shared < noisy_counts_tree_rows(*self.GIVEN, 9) / 2

    def test_the_printed_ones_are_the_proofs_with_the_lemmas_put_in(self):
        *given, candidates = self.GIVEN
        needs = partial(printed_split_rows, candidates=candidates)
        assert printed_single_machine_tree_rows(*self.GIVEN) == printed_topdown_rows(*given, needs)
        needs = partial(printed_noisy_counts_rows, candidates=candidates, parties=9)
        assert printed_noisy_counts_tree_rows(*self.GIVEN, 9) == printed_topdown_rows(
            *given, needs, parties=9
        )

    def test_corollary_5_is_for_the_entropy_of_so_many_rows(self):
        """Gini's spread, 4, asks for a tenth of the rows; the theorem is for the entropy."""
        given = (0.5, 1.0, 0.1, 0.5, 8)

        def needed(spread):
            return topdown_rows(*given, partial(split_rows, candidates=100, spread=spread))

        rows = single_machine_tree_rows(*given, 100)
        assert rows == pytest.approx(needed(entropy_spread(rows)))
        assert rows > 9 * needed(4.0)
        for more in (1.01, 3.0, 1e6):  # a larger table has a larger spread, and rows enough
            assert needed(entropy_spread(more * rows)) < more * rows
        assert needed(entropy_spread(0.99 * rows)) > 0.99 * rows

    def test_corollary_7_is_for_the_entropy(self):
        *given, candidates = self.GIVEN
        by = {
            kind: topdown_rows(
                *given,
                partial(noisy_counts_rows, candidates=candidates, parties=9, criterion=kind),
                parties=9,
            )
            for kind in ("gini", "entropy")
        }
        assert noisy_counts_tree_rows(*self.GIVEN, 9) == by["entropy"] > 5 * by["gini"]

    @pytest.mark.parametrize("function", [printed_topdown_rows, topdown_rows])
    def test_every_part_can_be_the_largest(self, function):
        def nothing(zeta, alpha, delta):
            return 0.0

        def known(zeta, alpha, delta):
            return 1e12

        weights = function(0.2, 1.0, 0.1, 0.2, 20, nothing)
        assert function(0.2, 1.0, 0.1, 0.2, 20, known) > weights > 0
        more = function(0.2, 1.0, 0.1, 0.2, 20, nothing, parties=16)
        grown = more / weights
        assert grown > 16 if function is printed_topdown_rows else 2 < grown < 5  # k ln k, sqrt k
        assert function(0.2, 1.0, 0.1, 0.2, 20, nothing, least_share=2**-20) > 1e4 * weights


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: split_rows(0, 1, 0.1, 10), "zeta must be a positive"),
        (lambda: split_rows(0.1, 1, 0, 10), "failure"),
        (lambda: split_rows(0.1, 1, 0.1, 0), "candidates must be at least 1"),
        (lambda: noisy_counts_rows(0.1, 1, 0.1, 10, 0), "parties"),
        (lambda: noisy_counts_rows(0.1, 1, 0.1, 10, 2, criterion="root"), "'gini' or 'entropy'"),
        (lambda: growth_tolerance(0.1, 0.6, 5), "at most 0.5"),
        (lambda: printed_split_error(1, 1.0, 0.1, 10), "rows must be more than 1"),
        (lambda: entropy_gain_error(0, 1.0), "rows must be a positive"),
        (lambda: entropy_gain_error(100, -1.0), "error of the counts must be a number of at least"),
        (lambda: gini_gain_error(-1.0), "error of the counts must be a number of at least 0"),
        (lambda: gini_gain_error(math.nan), "error of the counts must be a number of at least 0"),
        (
            lambda: single_machine_tree_rows(0.2, 1.0, 0.1, 0.2, 20, 0),
            "candidates must be at least",
        ),
        (lambda: noisy_counts_tree_rows(0.2, 1.0, 0.1, 0.2, 20, 9, 0), "parties must be at least"),
        (lambda: log2_nodes(1.0, 0.1), "between 0 and 1"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(PlanError, match=match):
        call()


@pytest.mark.parametrize(("function", "depths"), [(printed_topdown_rows, 8), (topdown_rows, 9)])
def test_the_least_of_some_shares_is_at_most_their_mean(function, depths):
    rows = partial(function, 0.2, 1.0, 0.1, 0.2, 8, partial(split_rows, candidates=10))
    assert rows(least_share=1 / depths) == rows()
    for share in (2.0, 1.01 / depths):
        with pytest.raises(PlanError, match=f"least_share must be at most 1 / {depths}"):
            rows(least_share=share)


def test_no_rows_are_needed_where_nothing_can_fail():
    assert label_rows(0.1, 1.0, 0.9, 1, 2) == label_rows(0.1, 1.0, 0.9, 1) == 0
    assert printed_split_rows(1.0, 200.0, 0.05, 1) == 0
    assert printed_noisy_counts_rows(1.0, 1000.0, 0.5, 1, 1) == 0
    assert entropy_gain_error(100, 0.0) == gini_gain_error(0.0) == 0
    assert 0 < entropy_gain_error(1e9, 1e-300) < 1e-290


@pytest.mark.parametrize("rows", [topdown_rows, printed_topdown_rows])
def test_what_splits_need_is_a_number_of_rows(rows):
    for wrong in (None, 8, lambda *_: math.nan, lambda *_: "many", lambda *_: -1.0):
        with pytest.raises(PlanError, match="needs"):
            rows(0.5, 1.0, 0.1, 0.5, 8, wrong)
    with pytest.raises(PlanError, match="zeta"):
        rows(0.5, 1.0, 0.1, 1e-308, 8, lambda *_: 1.0)
    assert log2_nodes(0.25, 1e-308) == math.inf
