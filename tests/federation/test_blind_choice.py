"""Choosing by sums that nobody sees: what is chosen, what is seen, and by which law."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privet.criteria import ClippedEntropy, Entropy, Gini, Max
from privet.errors import BudgetError, FederationError
from privet.privacy import (
    Ballot,
    Exact,
    NoisyMaxShare,
    PermuteAndFlip,
    Seat,
    SeededNoise,
    batches,
    deal,
    open_sum,
    openings,
    winners,
)
from privet.privacy import blind_choice as module


def seats(count):
    found = [Seat(f"p{k}") for k in range(count)]
    roster = {seat.name: seat.public_key for seat in found}
    for seat in found:
        seat.join(roster)
    sealed = [seat.seal() for seat in found]
    assert not any(sealed[1:])
    for seat in found:
        seat.unseal(sealed[0])
    return found


def choose(scores, public=None, members=None, turn=b"t", spy=None):
    """Run a choice as the coordinator does."""
    members = members or seats(len(scores))
    rows, options = scores[0].shape
    public = np.zeros((rows, options), dtype=np.int64) if public is None else public
    names = [seat.name for seat in members]
    ballots = [
        Ballot(mine, public, seat, names, turn) for mine, seat in zip(scores, members, strict=True)
    ]
    chosen = []
    for size in batches(rows, options):
        given = deal(size, options, len(ballots))
        for count, mix in openings(size, options):
            words = [ballot.answer(some) for ballot, some in zip(ballots, given, strict=True)]
            assert {each.shape for each in words} == {(count,)}
            opened = open_sum(words, mix=mix)
            if spy is not None:
                spy(given, words, opened, mix)
            given = [opened] * len(ballots)
        chosen += winners(opened, options).tolist()
    return chosen


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.parametrize(("rows", "options"), [(1, 1), (4, 2), (9, 3), (6, 17), (2, 300)])
def test_the_largest_sum_is_found(parties, rows, options):
    generator = np.random.default_rng(rows * options)
    for high in (2, 2**40):  # with ties, and with large numbers
        scores = [generator.integers(-high, high, (rows, options)) for _ in range(parties)]
        public = generator.integers(-high, high, (rows, options))
        # Of equal sums the first.
        expected = (sum(scores) + public).argmax(axis=1).tolist()
        assert choose(scores, public) == expected


def test_many_rows_are_chosen_for_in_batches(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 20)
    scores = [np.random.default_rng(k).integers(-99, 99, (11, 7)) for k in range(3)]
    assert batches(11, 7) == [2, 2, 2, 2, 2, 1]
    assert choose(scores) == sum(scores).argmax(axis=1).tolist()


def expand(dealt, pairs):
    return module._expand(dealt, pairs) if isinstance(dealt, bytes) else dealt


def test_the_coordinator_sees_nothing_though_it_knows_what_it_dealt():
    """Without the parties' common key it would know the first differences."""
    scores = [np.array([[5, 3]], dtype=np.int64), np.array([[2, 9]], dtype=np.int64)]
    seen = []

    def spy(given, words, opened, mix):
        if isinstance(given[0], list):
            dealt = sum(expand(hand[0], 1)[0][0] for hand in given)
            seen.append(int((opened - dealt)[0]))
            seen.extend(int((each - dealt)[0]) for each in words)
        elif not mix:  # the result: its lowest bit, and nothing above it
            seen.append(int(opened[0]) >> 1)

    members = seats(2)
    for run in range(40):
        assert choose(scores, members=members, turn=b"%d" % run, spy=spy) == [1]
    width = 2**64
    small = [value for value in seen if min(value, width - value) < 2**40]
    assert not small
    assert len(set(seen)) == len(seen)


def test_what_the_parties_open_is_uniform():
    scores = [np.zeros((200, 2), dtype=np.int64) + k for k in range(2)]
    members, found = seats(2), []

    class Watched(Ballot):
        def _open(self, words, *, mix):
            opened = yield from super()._open(words, mix=mix)
            if self._leads:
                found.append(opened)
            return opened

    names = [seat.name for seat in members]
    ballots = [
        Watched(mine, np.zeros_like(mine), seat, names, b"w")
        for mine, seat in zip(scores, members, strict=True)
    ]
    given = deal(200, 2, 2)
    for _, mix in openings(200, 2):
        words = [ballot.answer(some) for ballot, some in zip(ballots, given, strict=True)]
        given = [open_sum(words, mix=mix)] * 2
    first = found[0]  # differences, all alike, under dealt numbers
    bits = np.unpackbits(first.view(np.uint8)).mean()
    assert abs(bits - 0.5) < 0.02
    assert len(np.unique(first)) == 200
    for opened in found[1:-1]:  # factors under dealt masks
        assert abs(np.unpackbits(opened.view(np.uint8)).mean() - 0.5) < 0.03
    assert 60 < int((found[-1] & np.uint64(1)).sum()) < 140  # the sign under a dealt bit


def test_nonsense_ends_a_choice():
    members = seats(2)
    scores = np.zeros((1, 4), dtype=np.int64)

    def ballot(turn):
        return Ballot(scores, scores, members[0], ["p0", "p1"], turn)

    for dealt in ([], [b"short", b"short"], "cards", np.zeros(2, dtype=np.uint64)):
        with pytest.raises(FederationError, match="deal"):
            ballot(repr(dealt).encode()).answer(dealt)
    begun = ballot(b"x")
    begun.answer(deal(1, 4, 2)[0])
    with pytest.raises(FederationError, match="open"):
        begun.answer(np.zeros(9, dtype=np.uint64))
    with pytest.raises(FederationError, match="over"):
        begun.answer(np.zeros(2, dtype=np.uint64))
    with pytest.raises(FederationError, match="before"):  # no mask is used twice
        ballot(b"x").answer(deal(1, 4, 2)[0])


def test_a_key_that_the_first_party_did_not_seal_is_refused():
    first, second = Seat("a"), Seat("b")
    roster = {"a": first.public_key, "b": second.public_key}
    with pytest.raises(FederationError, match="in common"):
        first.hide(b"t", 3)
    for seat in (first, second):
        seat.join(roster)
    sealed = first.seal()
    for wrong in ({}, {"b": b"nothing"}, {"b": sealed["b"][::-1]}):
        with pytest.raises(FederationError, match="sealed"):
            second.unseal(wrong)
    second.unseal(sealed)
    assert (second.hide(b"t", 3) == first.hide(b"t", 3)).all()
    assert (second.hide(b"u", 3) != first.hide(b"t", 3)).all()


# The law


def noisy_max_law(scores, rate):
    """Return the chance of each option under geometric noise; of equal ones the first wins."""
    a = math.exp(-rate)
    values = np.arange(0, math.ceil(60 / rate) + max(scores) - min(scores))
    law = []
    for winner, own in enumerate(scores):
        below = np.ones(len(values))
        for other, score in enumerate(scores):
            if other != winner:
                # The other is at most (less than, if it comes first) own + value.
                most = own + values - score - (other < winner)
                below *= np.where(most >= 0, 1 - a ** (most + 1.0), 0)
        law.append(((1 - a) * a**values * below).sum())
    return np.array(law)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_neighbours_differ_by_no_more_than_epsilon(epsilon):
    """The worst case meets the bound: the noise is not larger than it must be."""
    mechanism = NoisyMaxShare(2, epsilon, 3)
    rate = float(mechanism.rate)
    steps = 2 // mechanism.unit
    generator = np.random.default_rng(0)
    worst = 0.0
    for trial in range(300):
        before = generator.integers(0, 3 * steps + 1, 3)
        change = generator.integers(0, steps + 1, 3) if trial else np.array([steps, 0, 0])
        ratio = np.log(noisy_max_law(before, rate) / noisy_max_law(before - change, rate))
        worst = max(worst, np.abs(ratio).max())
    assert worst <= float(epsilon) + 1e-9
    assert worst > 0.8 * float(epsilon)


@pytest.mark.parametrize("honest", [1, 2, 4])
def test_honest_shares_make_the_law(honest):
    epsilon, scores = Fraction(1), np.array([[4, 6, 3]])
    mechanism, noise = NoisyMaxShare(2, epsilon, honest), SeededNoise(honest)
    runs = 20_000
    many = Exact(np.repeat(scores, runs, axis=0))
    nothing = Exact(np.zeros_like(many))
    parts = [mechanism.release(many if k == 0 else nothing, noise) for k in range(honest)]
    found = np.bincount(sum(parts).argmax(axis=1), minlength=3)
    law = noisy_max_law((scores // mechanism.unit)[0], float(mechanism.rate))
    assert ((found - runs * law) ** 2 / (runs * law)).sum() < 14  # 2 degrees of freedom


def test_the_law_is_close_to_permute_and_flip():
    """A record's change is eight steps or more of noise: the grid hardly shows."""
    scores = -Gini().losses(np.array([[[40, 20]], [[35, 5]], [[30, 30]]]))[:, 0]
    epsilon, runs = Fraction(1, 3), 30_000
    mechanism, noise = NoisyMaxShare(Gini().spread, epsilon, 2), SeededNoise(3)
    many = Exact(np.repeat(scores[None], runs, axis=0))
    total = mechanism.release(many, noise) + mechanism.release(Exact(0 * many), noise)
    found = np.bincount(total.argmax(axis=1), minlength=3) / runs
    flip = PermuteAndFlip(Gini().spread, epsilon)
    expected = np.bincount([flip.choose(Exact(scores), noise) for _ in range(runs)], minlength=3)
    assert found == pytest.approx(expected / runs, abs=0.02)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(40), math.inf])
@pytest.mark.parametrize(
    "criterion",
    [Gini(), Max(), Entropy(1_000), ClippedEntropy(classes=3)],
    ids=lambda criterion: criterion.name,
)
def test_a_record_changes_steps_by_no_more_than_the_rate_counts(criterion, epsilon):
    mechanism = NoisyMaxShare(criterion.spread, epsilon, 2, criterion.rounded)
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 400, (4_000, 3)) // generator.integers(1, 200, (4_000, 1))
    more = counts.copy()
    more[np.arange(len(more)), generator.integers(0, 3, len(more))] += 1
    change = (-criterion.losses(more)) // mechanism.unit - (-criterion.losses(counts)) // (
        mechanism.unit
    )
    reach = int(change.max()) - int(change.min())
    steps = -(-criterion.spread // mechanism.unit) + (criterion.rounded and mechanism.unit > 1)
    assert reach <= steps
    if epsilon != math.inf:
        assert mechanism.rate == epsilon / steps
        assert mechanism.unit == 1 or epsilon / steps <= Fraction(1, 8)
    if not criterion.rounded:
        assert change.max() <= 0
        assert criterion.spread % mechanism.unit == 0  # the grid costs nothing


def test_public_measures_are_worth_their_logarithm():
    mechanism = NoisyMaxShare(1, Fraction(1, 2), 2)
    assert mechanism.bonus(np.array([1, 20])).tolist() == [0, round(math.log(20) * 2)]
    assert NoisyMaxShare(1, math.inf, 2).bonus(np.array([1, 20])).tolist() == [0, 0]
    with pytest.raises(BudgetError):
        NoisyMaxShare(1, Fraction(1), 0)
