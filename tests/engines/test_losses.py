"""Losses keep their bounds on single records whatever the scores, and their sums can be read back.

The bounds are what the noise of ``noisy_gradients`` and the rate of weighted draws are computed
from, so they are checked on the integers themselves, exactly.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet import Numeric, Schema
from privet.engines.losses import HEAVIEST, UNIT, Logistic, Softmax, Squared, loss_of

PURE = pytest.mark.parametrize("pure", [True, False], ids=["pure", "zCDP"])
LOSSES = [Logistic(), Softmax(3), Softmax(5), Squared()]
EACH = pytest.mark.parametrize(
    "loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}{loss.columns}"
)
HUGE = 1e300
#: Where the arithmetic turns: ties, underflow of exp, saturation, ends of the range.
CORNERS = [0.0, -0.0, 1e-17, 5e-324, 0.5, 1.0, 36.7, -37.5, 709.8, -745.2, 800.0, HUGE, -HUGE]
scores_of_any_size = st.one_of(
    st.sampled_from(CORNERS), st.floats(-5, 5), st.floats(-HUGE, HUGE, allow_nan=False)
)
reaches = st.one_of(st.just(1.0), st.floats(1e-6, 1.0))


@st.composite
def records(draw, loss, scores=scores_of_any_size):
    """Return targets and scores of a few records, and a reach."""
    rows = draw(st.integers(1, 6))
    target = st.floats(0, 1) if isinstance(loss, Squared) else st.integers(0, loss.labels - 1)
    targets = np.array(draw(st.lists(target, min_size=rows, max_size=rows)))
    row = st.lists(scores, min_size=loss.columns, max_size=loss.columns)
    known = np.array(draw(st.lists(row, min_size=rows, max_size=rows)), dtype=np.float64)
    reach = draw(reaches) if isinstance(loss, Squared) else float(np.abs(known).max())
    return targets, known, reach


def obeys(loss, moments, *, pure):
    """Tell whether every record's moments lie within the bounds, in whole numbers."""
    l1, squared_l2 = loss.bounds(pure=pure)
    assert type(l1) is int
    assert type(squared_l2) is int
    return all(
        sum(abs(part) for part in row) <= l1 and sum(part**2 for part in row) <= squared_l2
        for row in moments.tolist()
    )


@EACH
@PURE
@given(data=st.data())
@settings(max_examples=60)
def test_no_record_exceeds_the_bounds(loss, pure, data):
    targets, scores, reach = data.draw(records(loss))
    moments = loss.moments(targets, scores, reach, pure=pure)
    assert moments.dtype == np.int64
    assert len(moments) == len(targets)
    assert obeys(loss, moments, pure=pure)


@pytest.mark.parametrize("columns", [3, 5])
@PURE
@given(data=st.data())
@settings(max_examples=40)
def test_scores_that_overflowed_stay_within_the_bounds(columns, pure, data):
    """Sums of finite values can be infinite; differences of such scores would be no numbers."""
    anything = st.sampled_from([math.inf, -math.inf, 1.7e308, -1.7e308, 0.0])
    targets, scores, _ = data.draw(records(Softmax(columns), anything))
    for loss in (Softmax(columns), Logistic()):
        targets = np.minimum(targets, loss.labels - 1)
        known = scores[:, : loss.columns]
        assert obeys(loss, loss.moments(targets, known, math.inf, pure=pure), pure=pure)
        weights = loss.pulls(targets, known, math.inf)[1]
        assert weights.min() >= 0
        assert weights.max() <= HEAVIEST


@EACH
@PURE
def test_the_bounds_are_reached(loss, pure):
    """They are not merely safe: a record that is as wrong as can be comes within one per mille."""
    grid = np.array([0.0, 0.5, 20.0, -20.0])
    scores = np.stack(np.meshgrid(*[grid] * loss.columns), axis=-1).reshape(-1, loss.columns)
    moments = loss.moments(np.zeros(len(scores), dtype=np.intp), scores, 1.0, pure=pure)
    l1, squared_l2 = loss.bounds(pure=pure)
    assert np.abs(moments).sum(axis=1).max() > 0.999 * l1 - 1
    assert (moments**2).sum(axis=1).max() > 0.999 * squared_l2 - 1


@EACH
@given(data=st.data())
@settings(max_examples=60)
def test_weights_are_whole_numbers_up_to_the_heaviest(loss, data):
    targets, scores, reach = data.draw(records(loss))
    labels, weights = loss.pulls(targets, scores, reach)
    assert weights.dtype.kind == "i"
    assert weights.min() >= 0
    assert weights.max() <= HEAVIEST
    assert set(labels.tolist()) <= set(range(loss.labels))


def shares_of(scores):
    """Return the probabilities that scores stand for, slowly."""
    if len(scores) == 1:
        scores = [0.0, *scores]
    odds = [math.exp(score - max(scores)) for score in scores]
    return [part / sum(odds) for part in odds]


def furthest(loss, reach):
    """Return the largest pull of a record whose scores are within the reach."""
    if isinstance(loss, Squared):
        return reach
    if isinstance(loss, Logistic):
        return 1 - shares_of([-reach])[1]
    return 1 - shares_of([-reach, *[reach] * (loss.columns - 1)])[0]


@EACH
@given(data=st.data())
@settings(max_examples=60)
def test_weights_are_pulls_in_parts_of_the_largest_possible(loss, data):
    targets, scores, reach = data.draw(records(loss, st.floats(-4, 4)))
    labels, weights = loss.pulls(targets, scores, reach)
    for target, row, label, weight in zip(targets, scores.tolist(), labels, weights, strict=True):
        if isinstance(loss, Squared):
            pull = min(abs(target - row[0]), reach)
            assert label == (target > row[0])
        else:
            pull = 1 - shares_of(row)[target]
            assert label == target
        assert abs(weight - HEAVIEST * pull / furthest(loss, reach)) <= 0.5 + 1e-9


def test_the_largest_pull_weighs_most():
    """The weights use their whole range: a record at the end of the reach has the heaviest."""
    for loss in (Logistic(), Softmax(3), Softmax(5)):
        scores = np.full((1, loss.columns), 1.5)
        scores[0, 0] = -1.5 if loss.columns > 1 else 1.5
        assert loss.pulls(np.array([0]), scores, 1.5)[1].tolist() == [HEAVIEST]
    assert Squared().pulls(np.array([1.0]), np.array([[0.7]]), 0.3)[1].tolist() == [HEAVIEST]


@EACH
@PURE
@given(data=st.data())
@settings(max_examples=60)
def test_sums_read_back_as_the_true_derivatives(loss, pure, data):
    """Without noise they are the sums of gradients and curvatures, up to a unit per record."""
    targets, scores, reach = data.draw(records(loss, st.floats(-8, 8)))
    sums = loss.moments(targets, scores, reach, pure=pure).sum(axis=0, keepdims=True)
    pull, curvature, _ = loss.read(sums, 0.0, pure=pure)
    assert pull.shape == curvature.shape == (1, loss.columns)
    expected = np.zeros((2, loss.columns))
    for target, row in zip(targets, scores.tolist(), strict=True):
        if isinstance(loss, Squared):
            expected[0] += min(max((target - row[0]) / reach, -1), 1)
            expected[1] += 1
        elif isinstance(loss, Logistic):
            share = shares_of(row)[1]
            expected[0] += target - share
            expected[1] += share * (1 - share)
        else:
            shares = np.array(shares_of(row))
            expected[0] += (np.arange(loss.columns) == target) - shares
            expected[1] += shares * (1 - shares)
    np.testing.assert_allclose(pull[0], expected[0], atol=1.01 * len(targets) / UNIT)
    np.testing.assert_allclose(curvature[0], expected[1], atol=1.01 * len(targets) / UNIT)


@pytest.mark.parametrize(
    ("loss", "pure", "times"),
    [
        (Logistic(), True, 1),
        (Logistic(), False, 1),
        (Softmax(4), True, 1),
        (Softmax(4), False, 1),
        (Squared(), True, math.sqrt(2)),  # a difference of two noisy sums
        (Squared(), False, 1),
    ],
)
def test_the_deviation_is_that_of_a_pull(loss, pure, times):
    """Noise of a known deviation on the sums gives pulls of the deviation that is read."""
    width = loss.moments(np.zeros(1, np.intp), np.zeros((1, loss.columns)), 1.0, pure=pure).shape[1]
    noise = np.random.default_rng(0).normal(0, 5 * UNIT, (40_000, width)).round().astype(np.int64)
    pull, _, deviation = loss.read(noise, 5.0 * UNIT, pure=pure)
    assert deviation == pytest.approx(5 * times)
    assert pull.std() == pytest.approx(deviation, rel=0.03)


@EACH
@PURE
@given(data=st.data())
@settings(max_examples=30)
def test_a_record_is_looked_at_alone(loss, pure, data):
    """What a record adds does not depend on the others, hence neighbours stay neighbours."""
    targets, scores, reach = data.draw(records(loss))
    together = loss.moments(targets, scores, reach, pure=pure)
    weights = loss.pulls(targets, scores, reach)[1]
    for i in range(len(targets)):
        one = slice(i, i + 1)
        assert np.array_equal(
            loss.moments(targets[one], scores[one], reach, pure=pure)[0], together[i]
        )
        assert loss.pulls(targets[one], scores[one], reach)[1][0] == weights[i]


@given(share=st.fractions(0, 1), others=st.lists(st.integers(1, 1_000), min_size=2, max_size=6))
@example(Fraction(0), [1, 1])
@settings(max_examples=100)
def test_the_bounds_of_many_classes_hold_in_exact_arithmetic(share, others):
    """Before any rounding: sums of derivatives over a simplex of rational probabilities."""
    shares = [share, *((1 - share) * Fraction(part, sum(others)) for part in others)]
    pull = [1 - shares[0], *shares[1:]]
    curvature = [part * (1 - part) for part in shares]
    classes = len(shares)
    l1, squared_l2 = Softmax(classes).bounds(pure=True)
    assert UNIT * sum(pull + curvature) <= l1
    assert UNIT**2 * sum(part**2 for part in pull + curvature) <= squared_l2


def test_each_target_has_its_loss():
    features = {"x": Numeric(0, 1)}
    assert isinstance(loss_of(Schema(features, "y", bounds=(0, 1))), Squared)
    assert isinstance(loss_of(Schema(features, "y", classes=[0, 1])), Logistic)
    found = loss_of(Schema(features, "y", classes=["a", "b", "c"]))
    assert isinstance(found, Softmax)
    assert found.columns == found.labels == 3
