"""The exhaustive audit of the baselines, and why the originals have no finite cost."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

import privet.baselines
from privet.audit.catalogue import MIXED, NUMBER, NUMERIC, ONE, THREE_CLASSES, TWO, Case
from privet.baselines import (
    BDPTClassifier,
    DPGDFClassifier,
    FletcherIslamForestClassifier,
    PatilSinghForestClassifier,
    PatilSinghForestRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
)
from privet.schema import Numeric, Schema

NUMBER_OF_NUMBER = Schema({"x": Numeric(0, 1, bins=2)}, target="y", bounds=(0, 1))
FOLLOW = {"paths": 12}


def cases(epsilon: float = 1.0) -> Iterator[Case]:
    """Yield all baselines with their options, at an epsilon."""
    few = {"most_outcomes": 2}
    one = {"epsilon": epsilon, "n_estimators": 1, "max_depth": 1}
    two = {"epsilon": epsilon, "n_estimators": 2, "max_depth": 1}
    name = "random-trees"
    yield Case(name, "one tree", RandomTreesClassifier(schema=NUMERIC, **one))
    yield Case(name, "two trees", RandomTreesClassifier(schema=NUMERIC, **two), few)
    yield Case(name, "parts", RandomTreesClassifier(schema=NUMERIC, partition=True, **two), few)
    yield Case(name, "three classes", RandomTreesClassifier(schema=THREE_CLASSES, **one))
    deep = {**two, "max_depth": "auto"}
    yield Case(name, "paid depth", RandomTreesClassifier(schema=NUMERIC, **deep), FOLLOW)
    yield Case(name, "one tree", RandomTreesRegressor(schema=NUMBER_OF_NUMBER, **one))
    yield Case(name, "two trees", RandomTreesRegressor(schema=NUMBER_OF_NUMBER, **two), FOLLOW)
    name = "patil-singh"
    for criterion in ("gini", "max", "clipped_entropy"):
        model = PatilSinghForestClassifier(schema=TWO, criterion=criterion, n_bins=2, **one)
        yield Case(name, criterion, model, few)
    split = {**two, "partition": True, "max_features": 1, "n_bins": 2}
    yield Case(name, "two trees", PatilSinghForestClassifier(schema=TWO, **two), FOLLOW)
    yield Case(name, "parts", PatilSinghForestClassifier(schema=MIXED, **split), FOLLOW)
    yield Case(name, "one tree", PatilSinghForestRegressor(schema=NUMBER, **one), few)
    yield Case(name, "parts", PatilSinghForestRegressor(schema=NUMBER, **split), FOLLOW)
    name = "fletcher-islam"
    yield Case(name, "one tree", FletcherIslamForestClassifier(schema=TWO, **one), few)
    pair = {**two, "max_depth": 2, "min_support": 0, "n_bins": 2}
    yield Case(name, "pruned", FletcherIslamForestClassifier(schema=TWO, **pair), FOLLOW)
    yield Case(
        name, "not pruned", FletcherIslamForestClassifier(schema=TWO, prune=False, **pair), FOLLOW
    )
    yield Case("bdpt", "depth 1", BDPTClassifier(epsilon, ONE, max_depth=1), few)
    yield Case("bdpt", "depth 2", BDPTClassifier(epsilon, MIXED, max_depth=2, n_bins=2), FOLLOW)
    yield Case("dpgdf", "one tree", DPGDFClassifier(schema=MIXED, n_bins=2, **one))
    yield Case("dpgdf", "two trees", DPGDFClassifier(schema=MIXED, n_bins=2, **two))
    yield Case("dpgdf", "depth 2", DPGDFClassifier(epsilon, THREE_CLASSES, max_depth=2))


#: Of every baseline the first case is compared on all pairs of tables here, and of its others the
#: last two pairs are. All pairs of these are compared with ``make engines``.
CASES = list(cases(1.0))
FIRST = {type(case.estimator): case for case in reversed(CASES)}.values()
REST = [case for case in CASES if not any(case is first for first in FIRST)]


def check(case, last):
    verdict = case.short(last)
    assert verdict.holds, (verdict.found, verdict.claim, verdict.worst, verdict.remarks)
    assert verdict.found > 0.1 * verdict.claim  # it does see something
    assert verdict.exhaustive == ("paths" not in case.how)


def name_of(case):
    return f"{case.learner}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_every_baseline_keeps_its_promise(case):
    check(case, 2 if any(case is other for other in REST) else None)


@pytest.mark.engines
@pytest.mark.parametrize("case", REST, ids=name_of)
def test_baselines_keep_their_promise_on_all_pairs(case):
    check(case, None)


def test_the_cases_cover_every_baseline():
    assert {type(case.estimator).__name__ for case in cases()} == set(privet.baselines.__all__)


# What the originals cost (docs/proofs/baselines.md)


def two_way(first, second):
    """Return log probabilities of a choice between two by their log weights."""
    return np.array([first, second]) - np.logaddexp(first, second)


def test_local_sensitivity_at_a_noisy_size_has_no_finite_cost():
    """DP-DF and BDPT: the larger the noisy size of a node, the more two records lose."""
    share = 0.04

    def law(gain, size):
        sensitivity = 1 - (size / (size + 1)) ** 2 - (1 / (size + 1)) ** 2
        return two_way(share * gain / (2 * sensitivity), 0.0)

    losses = [np.abs(law(0.0, size) - law(0.5, size)).max() / share for size in (50, 200, 1000)]
    assert losses == pytest.approx([3.4, 15.7, 108.1], abs=0.1)


def test_smooth_sensitivity_in_the_exponential_mechanism_has_no_finite_cost():
    """DPGDF: a label's noise that shrinks with the exact margin, at epsilon 1."""

    def law(margin):
        return two_way(math.exp(margin) / 2, 0.0)

    losses = [np.abs(law(margin + 1) - law(margin)).max() for margin in (1, 2, 3)]
    assert losses == pytest.approx([2.1, 6.3, 17.3], abs=0.05)
