"""Certificates of votes against all ways to move votes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privet.robustness import NoGuarantee, average_after, certified_share, safe_rows


def reachable(votes, moves):
    """All vote counts after at most this many trees changed their vote, abstaining included."""
    found = {votes}
    for _ in range(moves):
        found |= {
            tuple(v - (i == a) + (i == b) for i, v in enumerate(one))
            for one in found
            for a in range(-1, len(votes))
            for b in range(-1, len(votes))
            if a < 0 or one[a] > 0
            if a >= 0 or sum(one) < sum(votes) + 1  # a part that abstained
        }
    return found


def label(votes):
    return votes.index(max(votes))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_certificate_is_exact(classes):
    for votes in itertools.product(range(6), repeat=classes):
        (safe,) = safe_rows([votes])
        assert all(label(v) == label(votes) for v in reachable(votes, safe))
        # Exact, if one may move votes only: x votes from the label to the runner-up.
        if sum(votes):
            moved = {v for v in reachable(votes, safe + 1) if sum(v) == sum(votes)}
            assert any(label(v) != label(votes) for v in moved)


def test_a_margin_of_two_per_row_without_the_tie_rule_would_be_wrong():
    """The mutation: forget that earlier classes win ties."""
    wrong = (5 - 3) // 2
    assert any(label(v) == 0 for v in reachable((3, 5), wrong))
    assert safe_rows([[3, 5]]).tolist() == [0]
    assert safe_rows([[5, 3]]).tolist() == [1]


def test_new_classes():
    assert safe_rows([[2, 0]]).tolist() == [1]
    assert safe_rows([[2, 0]], closed=False).tolist() == [0]  # a class that comes first: 1, 1, 0
    assert safe_rows([[7]]).tolist() == [7]
    assert safe_rows([[7]], closed=False).tolist() == [3]
    assert safe_rows([[0, 0]], closed=False).tolist() == [0]


@given(arrays(np.int64, (7, 4), elements=st.integers(0, 50)), st.integers(0, 3))
def test_the_certified_share_falls_from_the_accuracy(votes, truth):
    correct = np.full(7, truth)
    curve = certified_share(votes, correct, np.arange(60))
    assert curve[0] == (votes.argmax(axis=1) == correct).mean()
    assert np.all(np.diff(curve) <= 0)
    assert curve[-1] == 0


def test_averages_against_all_changes():
    values = np.array([0.1, 0.9, 0.4, 0.6, 1.0])
    for x in range(6):
        low, high = average_after(values.mean(), 5, x)
        for changed in itertools.combinations(range(5), x):
            for new in itertools.product((0.0, 1.0), repeat=x):
                other = values.copy()
                other[list(changed)] = new
                assert low - 1e-12 <= other.mean() <= high + 1e-12
    low, high = average_after([4.0], 10, 2, low=-5, high=5)
    assert (low.tolist(), high.tolist()) == ([2.0], [5.0])


def test_bad_votes():
    for votes in ([1, 2], [[0.5, 1.0]], [[-1, 2]], [[]]):
        with pytest.raises(NoGuarantee):
            safe_rows(votes)
    with pytest.raises(NoGuarantee):
        certified_share([[1, 2]], [0, 1], 1)
    with pytest.raises(NoGuarantee):
        certified_share([[1, 2]], [0], -1)
    with pytest.raises(NoGuarantee):
        average_after([0.5], 0, 1)
