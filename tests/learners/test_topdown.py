"""DP-TopDown's learner: best first, level by level; its shares; its candidates."""

import heapq
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Categorical, Numeric, Schema
from privet.criteria import Criterion, Entropy, Gini
from privet.errors import BudgetError
from privet.learners import topdown
from privet.learners.topdown import (
    GrowingNode,
    TopDownOptions,
    best_first,
    grow,
    make_candidates,
    make_levels,
    make_view,
    published_cost,
    published_levels,
)
from privet.tables import Split, list_candidates

MIXED = Schema(
    {
        "x": Numeric(0, 1),
        "one": Categorical(["u"]),
        "few": Categorical(["u", "v", "w"]),
    },
    target="y",
    classes=[0, 1],
)


def options(**given):
    usual = {
        "max_nodes": 512, "max_depth": None, "budget": "decay", "leaf_fraction": Fraction(1, 2),
        "criterion": Gini(), "split": "flip", "thresholds": 3, "min_gain": None,
        "min_weight": None, "published": False,
    }  # fmt: skip
    return TopDownOptions(**{**usual, **given})


# Best first


class Told:
    """Cells that answer what they are told: gains by the path from the root."""

    def __init__(self, gains, paths=((),), asked=None):
        self.gains, self.paths = gains, paths
        self.asked = [] if asked is None else asked

    def __len__(self):
        return len(self.paths)

    def take(self, chosen):
        return Told(self.gains, [self.paths[place] for place in chosen], self.asked)

    def split(self, splits):
        assert len(splits) == len(self.paths)
        below = [(*path, side) for path in self.paths for side in (0, 1)]
        return Told(self.gains, below, self.asked)

    def choose_best(self, *_, **__):
        self.asked.append(list(self.paths))
        return [Split(0, (0, 1, 1, 1, 1))] * len(self.paths)

    def noisy_class_counts(self, *_):
        """Return what Product makes the gain of each parent of, less what is below zero."""
        return np.array([(0, 1) if path[-1] else (self.gains[path[:-1]], 0) for path in self.paths])


class Product(Criterion):
    """The product of the two counts: parents of (gain, 0) and (0, 1) gain just that."""

    name, scale, spread = "product", 1, 1

    def losses(self, statistics):
        return statistics.prod(axis=-1)


def node_by_node(gains, most, depth):
    """Best first as the paper does it: one node after the other."""
    queue, taken, found = [(-gains[()], 0, ())], [], 1
    while queue and len(taken) < most:
        gain, _, path = heapq.heappop(queue)
        if -gain <= 0:
            break
        taken.append(path)
        for side in (0, 1):
            child = (*path, side)
            if len(child) < depth:
                heapq.heappush(queue, (-gains[child], found, child))
            found += 1
    return taken


def taken_paths(root, most):
    place = {id(root): ()}
    found = []
    for node in best_first(root, most):
        found.append(place[id(node)])
        for side, child in enumerate(node.children):
            place[id(child)] = (*found[-1], side)
    return found


@given(st.integers(0, 10**9), st.integers(1, 40), st.integers(1, 6))
@settings(max_examples=150)
def test_level_by_level_takes_what_node_by_node_takes(seed, most, depth):
    generator = np.random.default_rng(seed)
    gains = {
        path: int(generator.integers(-20, 100))
        for length in range(depth)
        for path in itertools.product((0, 1), repeat=length)
    }
    view = make_view(MIXED, 3)
    told = Told(gains)
    given = options(max_nodes=most, max_depth=depth, criterion=Product())
    levels = make_levels(Fraction(1), 1, given)
    root = grow(told, make_candidates(view, missing=True), view, levels, 1, given)
    assert taken_paths(root, most) == node_by_node(gains, most, depth)
    assert len(told.asked) <= min(depth, most)  # one round for every level
    assert max(map(len, told.asked)) <= 2 * most


def test_what_is_below_the_last_split_is_not_asked():
    gains = {(): 9, (0,): 5, (1,): 7, (0, 0): 1, (0, 1): 1, (1, 0): 8, (1, 1): 6}
    view = make_view(MIXED, 3)
    for most, asked in ((1, [1]), (2, [1, 2]), (3, [1, 2, 2])):
        told, given = Told(gains), options(max_nodes=most, max_depth=3, criterion=Product())
        levels = make_levels(Fraction(1), 1, given)
        assert len(levels) == most
        root = grow(told, make_candidates(view, missing=True), view, levels, 1, given)
        assert list(map(len, told.asked)) == asked
        assert taken_paths(root, most) == [(), (1,), (1, 0)][:most]


def test_equal_gains_are_taken_as_they_are_found():
    leaves = [GrowingNode(gain=5, worth=True) for _ in range(2)]
    root = GrowingNode(gain=1, worth=True, children=tuple(leaves))
    assert best_first(root, 3) == [root, *leaves]
    assert best_first(root, 1) == [root]
    assert best_first(GrowingNode(gain=9, worth=False), 3) == []


# Shares


@given(
    amount=st.fractions(Fraction(1, 1000), 50),
    depth=st.integers(1, 20),
    budget=st.sampled_from(["decay", "uniform", lambda level: 1 / level]),
    weight=st.sampled_from([None, 0.01]),
    part=st.fractions(Fraction(1, 100), Fraction(99, 100)),
)
@settings(max_examples=80)
def test_levels_add_up_to_what_labels_leave(amount, depth, budget, weight, part):
    given = options(max_depth=depth, budget=budget, min_weight=weight, leaf_fraction=part)
    levels = make_levels(amount, 1, given)
    assert len(levels) == depth
    assert sum(level.choice + level.gain for level in levels) == amount * (1 - part)


def test_decay_and_how_depth_grows_with_rows_times_epsilon():
    levels = make_levels(Fraction(1), 1, options(max_depth=4))
    assert [levels[k].gain / levels[k + 1].gain for k in range(3)] == [Fraction(8, 7)] * 3
    depths = [len(make_levels(Fraction(1), rows, options())) for rows in (1, 10**3, 10**5, 10**7)]
    assert depths == sorted(depths)
    assert (depths[0], len(set(depths))) == (1, 4)
    assert len(make_levels(math.inf, 10, options())) == topdown.DEEPEST
    least = Fraction(1, 1000)
    levels = make_levels(Fraction(1, 10), 10**9, options(), least)
    assert 1 < len(levels) < len(make_levels(Fraction(1, 10), 10**9, options()))
    assert levels[-1].gain >= least


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "much", None, 1j])
def test_a_budget_function_must_give_weights(bad):
    with pytest.raises(BudgetError, match="weight"):
        make_levels(Fraction(1), 1, options(max_depth=2, budget=lambda _: bad))


# The published noise


@pytest.mark.parametrize(
    ("criterion", "sensitivity", "moved"),
    [
        (Entropy(1024), 62, 10 * 1024 - 1023 * math.log2(1023)),
        (Gini(), 10, 2),
    ],
    ids=["entropy", "gini"],
)
def test_the_published_noise_is_the_papers_and_costs_k_times_what_moves(
    criterion, sensitivity, moved
):
    """With k scores that move by M and noise of scale b, k M / b (docs/proofs/topdown.md)."""
    given = options(criterion=criterion, published=True, max_depth=3, min_weight=0.1, split="rnm")
    amount, candidates = Fraction(2), 3 + 1 + 3
    levels = published_levels(MIXED, 1024, amount, given)
    alphas = [Fraction(1, 2), Fraction(1, 8), Fraction(1, 16)]  # (2/2) 2^-d, halved below the root
    unit = criterion.scale
    for level, alpha in zip(levels, alphas, strict=True):
        scale = candidates * criterion.spread / level.gain / unit  # of what is really added
        assert float(scale) == pytest.approx(float(2 * sensitivity / alpha))
        assert float(level.gain) == pytest.approx(
            candidates * moved * float(alpha) / (2 * sensitivity), rel=1e-3
        )
    assert [level.weight for level in levels[1:]] == alphas[1:]
    labels = Fraction(1, 2)  # noise 2 / (f alpha) = 2 on counts that only rise
    assert published_cost(MIXED, 1024, amount, given) == (
        sum(level.gain for level in levels) + sum(alphas[1:]) + labels
    )


def test_published_levels_end_where_their_noise_exceeds_the_rows():
    given = options(published=True, min_weight=0.1, split="rnm")
    depths = [len(published_levels(MIXED, rows, Fraction(1), given)) for rows in (1, 10**3, 10**6)]
    assert depths == sorted(set(depths))
    uniform = options(published=True, min_weight=0.1, split="rnm", budget="uniform", max_depth=5)
    costs = {level.gain for level in published_levels(MIXED, 10, Fraction(1), uniform)[1:]}
    assert len(costs) == 1


# What is offered


def test_even_cuts_and_single_values():
    view = make_view(MIXED, 3)
    assert view.cuts == ((0.25, 0.5, 0.75), None, None)
    with_missing = make_candidates(view, missing=True)
    assert [len(sides) for sides in with_missing.sides] == [4, 1, 4]
    paper = make_candidates(view, missing=False)
    assert [len(sides) for sides in paper.sides] == [3, 1, 3]
    for candidates in (with_missing, paper):
        groups = set()
        for feature, option in list_candidates(candidates, view):
            split = candidates.split(feature, option, 0, view)
            assert set(split.children) == {0, 1}
            groups.add((feature, split.children))
        assert len(groups) == len(list_candidates(candidates, view))  # none twice
    assert with_missing.split(0, 3, 0, view) == Split(0, (0, 0, 0, 0, 1))
    assert with_missing.split(0, 1, 0, view) == Split(0, (0, 0, 1, 1, 1))


def test_bounds_that_leave_no_room_for_cuts():
    close = Numeric(1.0, math.nextafter(1.0, 2.0), bins=1)
    view = make_view(Schema({"x": close}, target="y", classes=[0, 1]), 5)
    assert view.cuts == ((),)
    for missing in (True, False):
        assert make_candidates(view, missing=missing).sides[0].tolist() == [[False, True]]
