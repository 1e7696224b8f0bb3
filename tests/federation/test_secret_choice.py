"""Choosing by sums that nobody sees: what is chosen, what is seen, and by which law."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privet.criteria import HALVINGS, Gini, GiniChords, Max
from privet.errors import BudgetError, FederationError
from privet.federation.mpc import (
    MOST_OPTIONS,
    ChoiceShape,
    LossTerms,
    MaskKeys,
    SecretChoice,
    check_range,
    correlated_randomness,
    excluded_score,
    open_sum,
    openings,
    winners,
)
from privet.federation.mpc import secret_choice as module
from privet.privacy import Exact, NoisyMaxShare, SeededNoise


def keys_of(count):
    found = [MaskKeys(f"p{k}") for k in range(count)]
    roster = {keys.name: keys.public_key for keys in found}
    for keys in found:
        keys.join(roster)
    sealed = [keys.seal() for keys in found]
    assert not any(sealed[1:])
    for keys in found:
        keys.unseal(sealed[0])
    return found


def choose(scores, public=None, members=None, round_name=b"t", spy=None, terms=None):
    """Run a choice as the coordinator does."""
    members = members or keys_of(len(scores))
    terms = terms or [None] * len(scores)
    rows, options = scores[0].shape
    shape = ChoiceShape(rows, options) if terms[0] is None else terms[0].shape(options)
    public = np.zeros((rows, options), dtype=np.int64) if public is None else public
    names = [keys.name for keys in members]
    choices = [
        SecretChoice(mine, public, keys, names, round_name, more)
        for mine, keys, more in zip(scores, members, terms, strict=True)
    ]
    chosen = []
    for some in shape.batches():
        given = correlated_randomness(some, len(choices))
        for count, xor in openings(some):
            words = [choice.step(some) for choice, some in zip(choices, given, strict=True)]
            assert {each.shape for each in words} == {(count,)}
            opened = open_sum(words, xor=xor)
            if spy is not None:
                spy(given, words, opened, xor)
            given = [opened] * len(choices)
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
    assert [some.rows for some in ChoiceShape(11, 7).batches()] == [2, 2, 2, 2, 2, 1]
    assert choose(scores) == sum(scores).argmax(axis=1).tolist()


@pytest.mark.parametrize("most", [40, 2**18])
@pytest.mark.parametrize("parties", [2, 4])
@pytest.mark.parametrize(
    "criterion", [GiniChords(2, 5), GiniChords(2, 9), GiniChords(3, 6), GiniChords(5, 5), Max()]
)
def test_options_are_judged_by_the_counts_of_all_parties(monkeypatch, criterion, parties, most):
    """Each party alone may have one class only; options have different numbers of regions."""
    monkeypatch.setattr(module, "_MOST", most)
    generator = np.random.default_rng(parties)
    classes, owners = getattr(criterion, "classes", 4), np.array([0, 0, 1, 1, 1, 2, 3, 3])
    rows, options = 9, 4
    counts = generator.integers(0, 60, (parties, rows, len(owners), classes))
    for party in range(parties):
        counts[party, :, :, np.arange(classes) % parties != party] = 0
    units = 3
    terms = [
        LossTerms(mine, criterion.linear_forms(classes), owners, criterion.halvings, units)
        for mine in counts
    ]
    scores = list(generator.integers(-40, 40, (parties, rows, options)))
    losses = criterion.losses(counts.sum(axis=0))
    total = sum(scores) - units * np.add.reduceat(losses, [0, 2, 5, 6], axis=1)
    assert choose(scores, terms=terms) == total.argmax(axis=1).tolist()


def test_what_may_not_win_does_not_and_ranges_are_checked():
    scores = [np.array([[2**40, 5, -(2**40)]])] * 2
    public = np.array([[excluded_score(3), excluded_score(3), 0]])
    assert choose(scores, public) == [2]
    # With few halvings there is room for any number of options, with many for some.
    for classes, halvings, most in ((2, 5, 2**17), (1000, 5, 2**17), (2, 9, 2**10), (9, 9, 2**9)):
        largest = GiniChords(classes, halvings).spread * 2**31
        check_range(largest, most)
        with pytest.raises(FederationError, match="too large" if most < 2**17 else "at most"):
            check_range(largest, most + 1)


def expand(dealt, pairs):
    return module._expand(dealt, pairs) if isinstance(dealt, bytes) else dealt


def test_the_coordinator_sees_nothing_though_it_knows_what_it_dealt():
    """Without the parties' common key it would know the first differences."""
    scores = [np.array([[5, 3]], dtype=np.int64), np.array([[2, 9]], dtype=np.int64)]
    seen = []

    def spy(given, words, opened, xor):
        if isinstance(given[0], list):
            dealt = sum(expand(shares_of_round[0], 1)[0][0] for shares_of_round in given)
            seen.append(int((opened - dealt)[0]))
            seen.extend(int((each - dealt)[0]) for each in words)
        elif not xor:  # the result: its lowest bit, and nothing above it
            seen.append(int(opened[0]) >> 1)

    members = keys_of(2)
    for run in range(40):
        assert choose(scores, members=members, round_name=b"%d" % run, spy=spy) == [1]
    width = 2**64
    small = [value for value in seen if min(value, width - value) < 2**40]
    assert not small
    assert len(set(seen)) == len(seen)


def test_what_the_parties_open_is_uniform():
    scores = [np.zeros((200, 2), dtype=np.int64) + k for k in range(2)]
    members, found = keys_of(2), []

    class Watched(SecretChoice):
        def _open(self, words, *, xor):
            opened = yield from super()._open(words, xor=xor)
            if self._leads:
                found.append(opened)
            return opened

    names = [keys.name for keys in members]
    choices = [
        Watched(mine, np.zeros_like(mine), keys, names, b"w")
        for mine, keys in zip(scores, members, strict=True)
    ]
    given = correlated_randomness(ChoiceShape(200, 2), 2)
    for _, xor in openings(ChoiceShape(200, 2)):
        words = [choice.step(some) for choice, some in zip(choices, given, strict=True)]
        given = [open_sum(words, xor=xor)] * 2
    assert len(np.unique(found[0])) == 200  # differences, all alike, under dealt numbers
    for opened in found[:-1]:  # then factors under dealt masks
        bits = np.unpackbits(opened.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 2.7 / np.sqrt(bits.size)  # 5.4 deviations: 1e-7
    # The signs under dealt bits, 50 in each of four words.
    assert 60 < np.unpackbits(found[-1].view(np.uint8)).sum() < 140


def test_nonsense_ends_a_choice():
    members = keys_of(2)
    scores = np.zeros((1, 4), dtype=np.int64)

    def choice(round_name):
        return SecretChoice(scores, scores, members[0], ["p0", "p1"], round_name)

    for dealt in ([], [b"short", b"short"], "cards", np.zeros(2, dtype=np.uint64)):
        with pytest.raises(FederationError, match="randomness"):
            choice(repr(dealt).encode()).step(dealt)
    begun = choice(b"x")
    begun.step(correlated_randomness(ChoiceShape(1, 4), 2)[0])
    with pytest.raises(FederationError, match="open"):
        begun.step(np.zeros(9, dtype=np.uint64))
    with pytest.raises(FederationError, match="over"):
        begun.step(np.zeros(2, dtype=np.uint64))
    with pytest.raises(FederationError, match="before"):  # no mask is used twice
        choice(b"x").step(correlated_randomness(ChoiceShape(1, 4), 2)[0])


def test_a_key_that_the_first_party_did_not_seal_is_refused():
    first, second = MaskKeys("a"), MaskKeys("b")
    roster = {"a": first.public_key, "b": second.public_key}
    with pytest.raises(FederationError, match="in common"):
        first.common_pad(b"t", 3)
    for keys in (first, second):
        keys.join(roster)
    sealed = first.seal()
    for wrong in ({}, {"b": b"nothing"}, {"b": sealed["b"][::-1]}):
        with pytest.raises(FederationError, match="sealed"):
            second.unseal(wrong)
    second.unseal(sealed)
    assert (second.common_pad(b"t", 3) == first.common_pad(b"t", 3)).all()
    assert (second.common_pad(b"u", 3) != first.common_pad(b"t", 3)).all()


# The law


def noisy_max_law(scores, mechanism):
    """Return the chance of each option under geometric noise; of equal ones the first wins."""
    rate, step = float(mechanism.rate), mechanism.step
    scores = mechanism.units * np.asarray(scores)
    a = math.exp(-rate)
    steps = np.arange(0, math.ceil(60 / rate) + np.ptp(scores) // step + 1)
    law = []
    for winner, own in enumerate(scores):
        below = np.ones(len(steps))
        for other, score in enumerate(scores):
            if other != winner:
                # The other is at most (less than, if it comes first) own + noise.
                most = (own + step * steps - score - (other < winner)) // step
                below *= np.where(most >= 0, 1 - a ** (most + 1.0), 0)
        law.append(((1 - a) * a**steps * below).sum())
    return np.array(law)


@pytest.mark.parametrize("spread", [1, 2, 18, 19])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(3)])
def test_neighbours_differ_by_no_more_than_epsilon(epsilon, spread):
    """Also where a step is no whole part of the spread, and scores lie between steps."""
    mechanism = NoisyMaxShare(spread, epsilon, 3)
    generator = np.random.default_rng(0)
    worst = 0.0
    for trial in range(300):
        before = generator.integers(0, 3 * spread + 1, 3)
        change = generator.integers(0, spread + 1, 3) if trial else np.array([spread, 0, 0])
        ratio = np.log(noisy_max_law(before, mechanism) / noisy_max_law(before - change, mechanism))
        worst = max(worst, np.abs(ratio).max())
    assert worst <= float(epsilon) + 1e-9
    assert worst > 0.8 * float(epsilon)


@pytest.mark.parametrize("honest", [1, 2, 4])
@pytest.mark.parametrize("spread", [2, 50])
def test_honest_shares_make_the_law(honest, spread):
    scores = np.array([[4, 6, 3]]) * spread // 2
    mechanism, noise = NoisyMaxShare(spread, Fraction(1), honest), SeededNoise(honest)
    runs = 20_000
    many = Exact(np.repeat(scores, runs, axis=0))
    nothing = Exact(np.zeros_like(many))
    parts = [mechanism.release(many if k == 0 else nothing, noise) for k in range(honest)]
    found = np.bincount(sum(parts).argmax(axis=1), minlength=3)
    law = noisy_max_law(scores[0], mechanism)
    assert ((found - runs * law) ** 2 / (runs * law)).sum() < 14  # 2 degrees of freedom


def flip_law(scores, scale):
    """Return the chance of each option by permute-and-flip: that its noise exceeds all others'."""
    chances = np.exp((np.asarray(scores) - np.max(scores)) / scale)
    points, weights = np.polynomial.legendre.leggauss(64)
    times, weights = (points + 1) / 2, weights / 2
    law = []
    for winner, chance in enumerate(chances):
        rest = np.delete(chances, winner)
        law.append(chance * (weights * np.prod(1 - np.outer(times, rest), axis=1)).sum())
    return np.array(law)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(3), Fraction(30)])
@pytest.mark.parametrize("criterion", [GiniChords(2, 5), GiniChords(3, 9), Max()])
def test_the_law_is_close_to_permute_and_flip(criterion, epsilon):
    """Steps are so small that they hardly show, nor which of equal ones comes first."""
    mechanism = NoisyMaxShare(criterion.spread, epsilon, 2)
    generator, few = np.random.default_rng(3), []
    for _ in range(40):
        counts = generator.integers(0, 12, (4, 2, getattr(criterion, "classes", 2)))
        counts[1] = counts[0]
        scores = -criterion.losses(counts).sum(axis=1)
        expected = flip_law(scores, criterion.spread / float(epsilon))
        assert expected.sum() == pytest.approx(1)
        few.append(np.abs(noisy_max_law(scores, mechanism) - expected).sum() / 2)
    assert max(few) < 1 / 128


@pytest.mark.parametrize(
    "epsilon", [Fraction(n, 100) for n in (1, 2, 5, 30, 100, 777, 3_300, 4_000, 10**6)]
)
@pytest.mark.parametrize(
    "spread", [1, *(GiniChords(k, h).spread for k in (2, 3) for h in HALVINGS), 2 * Gini.scale]
)
def test_a_records_change_is_so_many_steps_at_most(spread, epsilon):
    mechanism = NoisyMaxShare(spread, epsilon, 2)
    whole = spread * mechanism.units
    steps = math.ceil(whole / mechanism.step)
    assert mechanism.rate == epsilon / steps
    assert steps * mechanism.step <= 1.004 * whole  # hardly more noise than it takes
    assert mechanism.rate <= Fraction(1, 512) or mechanism.step == 1 <= 2**11 <= steps
    if mechanism.units > 1:  # there is room for any number of options
        check_range(whole * 2**31, MOST_OPTIONS)


def test_public_measures_are_worth_their_logarithm():
    mechanism = NoisyMaxShare(1, Fraction(1, 2), 2)
    worth = round(math.log(20) * 2 * mechanism.units)
    assert mechanism.bonus(np.array([1, 20])).tolist() == [0, worth]
    assert NoisyMaxShare(1, math.inf, 2).bonus(np.array([1, 20])).tolist() == [0, 0]
    with pytest.raises(BudgetError):
        NoisyMaxShare(1, Fraction(1), 0)
