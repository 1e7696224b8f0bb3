"""Choosing by sums that nobody sees: what is chosen, what is seen, and by which law."""

import math
import sys
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from privet.criteria import HALVINGS, Gini, GiniChords, Max
from privet.errors import BudgetError, FederationError
from privet.federation import Dealer
from privet.federation import dealer as dealer_module
from privet.federation.mpc import (
    MOST_OPTIONS,
    ChoiceShape,
    Deal,
    LossTerms,
    MaskKeys,
    PrivateKey,
    SecretChoice,
    check_range,
    dealing,
    excluded_score,
    fingerprint,
    kept_of,
    open_sum,
    openings,
    parts_of,
    winners,
)
from privet.federation.mpc import secret_choice as choice_module
from privet.privacy import Exact, NoisyMaxShare, SeededNoise


def keys_of(count, dealer=None):
    """Return the keys of parties that know each other, and the dealer."""
    found = [MaskKeys(f"p{k}") for k in range(count)]
    roster = {keys.name: keys.public_key for keys in found}
    dealer = dealer or Dealer()
    dealer.join(roster)
    for keys in found:
        keys.join(roster, dealer.public_key)
    sealed = [keys.seal() for keys in found]
    assert not any(sealed[1:])
    for keys in found:
        keys.unseal(sealed[0])
    return found, dealer


def deal(dealer, choices, shape, names, deals=None):
    """Let the parties be dealt a batch, as the coordinator does."""
    given = (tuple(shape), names, deals or len(names) + 1)
    number, shown = dealer.answer(0, "deal", *given)
    kept = kept_of((choice.step(shown) for choice in choices), len(shown))
    dealt = dealer.answer(0, "reveal", number, kept)
    return [dealt[name] for name in names], kept


def others(words):
    """Return for each what the others sent."""
    return [words[:place] + words[place + 1 :] for place in range(len(words))]


def choose(scores, public=None, group=None, round_name=b"t", spy=None, terms=None, deals=None,
           relay=lambda words: words):  # fmt: skip
    """Run a choice as the coordinator does."""
    members, dealer = group or keys_of(len(scores))
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
        given, _ = deal(dealer, choices, some, names, deals)
        for count, is_read in openings(some):
            sent = [choice.step(each) for choice, each in zip(choices, given, strict=True)]
            words = [each[0] for each in sent] if is_read else sent
            assert {each.shape for each in words} == {(count,)}
            if spy is not None:
                spy(given, words, is_read)
            given = others(relay(sent)) if is_read else None
        chosen += winners(open_sum(words), options).tolist()
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
    monkeypatch.setattr(dealing, "_MOST", 20)
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
    monkeypatch.setattr(dealing, "_MOST", most)
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


def test_the_coordinator_sees_nothing_though_it_knows_what_it_dealt():
    """Without the parties' common key it would know the first differences."""
    scores = [np.array([[5, 3]], dtype=np.int64), np.array([[2, 9]], dtype=np.int64)]
    seen = []

    class Knows(Dealer):
        def _reveal(self, number, kept):
            shape, _, masters, _ = self._shown[number]
            self.deal = Deal(masters[kept], shape, 2)
            return super()._reveal(number, kept)

    group = keys_of(2, Knows())

    def spy(given, words, is_read):
        if isinstance(given[0], tuple):  # the first opening
            keys = group[1].deal.keys
            sizes = dealing.RoundSizes.of(1)
            dealt = open_sum([dealing._draw(key, 0, sizes)[:1] for key in keys])
            seen.append(int((open_sum(words) - dealt)[0]))
            seen.extend(int((each - dealt)[0]) for each in words)
        elif not is_read:  # the result: its lowest bit, and nothing above it
            seen.append(int(open_sum(words)[0]) >> 1)

    for run in range(40):
        assert choose(scores, group=group, round_name=b"%d" % run, spy=spy) == [1]
    width = 2**64
    small = [value for value in seen if min(value, width - value) < 2**40]
    assert not small
    assert len(set(seen)) == len(seen)


def test_what_the_parties_open_is_uniform(monkeypatch):
    scores = [np.zeros((640, 2), dtype=np.int64) + k for k in range(2)]
    found, opening = [], SecretChoice._open

    def watched(self, words, *, xor):
        opened = yield from opening(self, words, xor=xor)
        if self._leads:
            found.append(opened)
        return opened

    monkeypatch.setattr(SecretChoice, "_open", watched)
    choose(scores)
    assert [len(opened) for opened in found] == [640, 7 * 40, 7 * 10, 10]
    assert len(np.unique(found[0])) == 640  # differences, all alike, under dealt numbers
    for opened in found:  # then factors under dealt masks, and signs under dealt bits
        bits = np.unpackbits(opened.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 2.7 / np.sqrt(bits.size)  # 5.4 deviations: 1e-7


def test_nonsense_ends_a_choice():
    members, dealer = keys_of(2)
    scores, names = np.zeros((1, 4), dtype=np.int64), ["p0", "p1"]

    def choice(round_name):
        return SecretChoice(scores, scores, members[0], names, round_name)

    digests = [bytes(64)] * 3
    assert choice(b"few").step(digests[:2]) == -3  # so many it wants
    assert choice(b"none").step([]) == -3
    for shown in ("cards", [bytes(63)] * 3, digests * 400, tuple(digests)):
        with pytest.raises(FederationError, match="no deals"):
            choice(repr(shown).encode()).step(shown)
    size = ChoiceShape(1, 4).randomness_size // 2
    part = np.zeros(size, dtype=np.uint64)
    for number, dealt in enumerate(
        ([], ([], b"", part), ([bytes(31)], b"", part), ([bytes(32)], b"", part[1:]), part)
    ):
        begun = choice(b"dealt %d" % number)
        begun.step(digests)
        with pytest.raises(FederationError, match="randomness"):
            begun.step(dealt)
    words, tag = np.zeros(2, dtype=np.uint64), bytes(16)
    for number, opened in enumerate(
        ([], words, [words], [(words[:1], tag)], [(words, tag)] * 2, [(words, "tag")])
    ):
        both = [SecretChoice(scores, scores, keys, names, b"open %d" % number) for keys in members]
        given, _ = deal(dealer, both, ChoiceShape(1, 4), names)
        both[0].step(given[0])
        with pytest.raises(FederationError, match="has to open"):
            both[0].step(opened)
        with pytest.raises(FederationError, match="over"):
            both[0].step([(words, tag)])
    both = [SecretChoice(scores, scores, keys, names, b"x") for keys in members]
    given, _ = deal(dealer, both, ChoiceShape(1, 4), names)
    again = choice(b"x")
    both[0].step(given[0])
    shown = [bytes(64)] * 3
    assert again.step(shown) in range(3)  # other deals: another name, and other masks


# What a dealer, or a relay, could do


class Shifts(Dealer):
    """Deals a number that is not the one whose bits it deals: comparisons get a threshold."""

    def __init__(self, which, shift=1000, word=0):
        super().__init__()
        self.which, self.shift, self.word = which, shift, word

    def _deal(self, shape, members, count):
        number, digests = super()._deal(shape, members, count)
        wanted, _, masters, _ = self._shown[number]
        for place in self.which:
            changed = self.changed(Deal(masters[place], wanted, len(members)))
            parts = parts_of(changed, len(members))
            keys = Deal(masters[place], wanted, len(members)).keys
            digests[place] = b"".join(map(dealing.digest_of, keys, parts))
        self._shown[number] = (*self._shown[number][:3], fingerprint(digests))
        return number, digests

    def changed(self, made):
        corrections = made.corrections()
        corrections[self.word] += np.uint64(self.shift)
        return corrections

    def _reveal(self, number, kept):
        if kept in self.which:
            shape, members, masters, _ = self._shown[number]
            parts = parts_of(self.changed(Deal(masters[kept], shape, len(members))), len(members))
            found = super()._reveal(number, kept)
            return {
                name: (*found[name][:2], part) for name, part in zip(members, parts, strict=True)
            }
        return super()._reveal(number, kept)


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_a_dealer_that_shifts_what_it_deals_is_caught_unless_that_is_kept(parties):
    """Of every kind of correction, in one deal of several: all but the kept one are checked."""
    scores = [np.array([[500, 0]])] + [np.zeros((1, 2), dtype=np.int64)] * (parties - 1)
    sizes = dealing.RoundSizes.of(1)
    caught = kept = 0
    for run, word in enumerate([0, 1, 2, 3, 5, 6, 20, sizes.corrected - 1] * 2):
        for which in range(parties + 1):
            group = keys_of(parties, Shifts([which], word=word))
            said = "kept"
            try:
                choose(scores, group=group, round_name=b"%d" % run)
            except FederationError as error:
                said = str(error)
            kept += said == "kept"
            caught += "the dealer cheats" in said
    total = 16 * (parties + 1)
    assert caught + kept == total
    # One of parties + 1 is kept: 5 deviations.
    chance = 1 / (parties + 1)
    assert abs(kept - total * chance) < 5 * np.sqrt(total * chance * (1 - chance))


def test_a_dealer_that_shifts_all_it_deals_is_always_caught():
    scores = [np.array([[500, 0]]), np.zeros((1, 2), dtype=np.int64)]
    for run in range(20):
        with pytest.raises(FederationError, match="the dealer cheats"):
            choose(scores, group=keys_of(2, Shifts([0, 1, 2])), round_name=b"%d" % run)


def test_more_deals_catch_more():
    scores = [np.array([[500, 0]]), np.zeros((1, 2), dtype=np.int64)]
    kept = 0
    for run in range(100):
        group = keys_of(2, Shifts([run % 20]))
        with suppress(FederationError):
            choose(scores, group=group, round_name=b"%d" % run, deals=20)
            kept += 1
    assert kept < 5 + 5 * np.sqrt(5)


class Threshold(Deal):
    """The bits are those of another number: a difference is compared with far more than 500."""

    @staticmethod
    def _bits_of(number):
        return Deal._bits_of(number + np.uint64(1_000 << 20))


def test_a_dealer_that_sets_a_threshold_is_caught(monkeypatch):
    scores = [np.array([[500, 0]]), np.zeros((1, 2), dtype=np.int64)]
    monkeypatch.setattr(dealer_module, "Deal", Threshold)
    for run in range(20):
        with pytest.raises(FederationError, match="the dealer cheats"):
            choose(scores, round_name=b"%d" % run)
    # Power: without the check, 500 is less than 0.
    monkeypatch.setattr(choice_module, "Deal", Threshold)
    assert all(choose(scores, round_name=b"%d" % run) == [1] for run in range(20))


@pytest.mark.parametrize("member", [0, 1, 2])
def test_a_bit_flipped_on_the_way_is_noticed(member):
    scores = [np.array([[7, 3, 5]])] * 3
    total = sum(1 for _ in openings(ChoiceShape(1, 3))) - 1
    for opening in range(total):
        turn = iter(range(total))

        def relay(sent, opening=opening, turn=turn):
            if next(turn) != opening:
                return sent
            words, tag = sent[member]
            changed = words.copy()
            changed[-1] ^= np.uint64(1)
            return [*sent[:member], (changed, tag), *sent[member + 1 :]]

        with pytest.raises(FederationError, match="changed on the way"):
            choose(scores, relay=relay)
        # Nor can the words of one be passed off as another's.
    with pytest.raises(FederationError, match="changed on the way"):
        choose(scores, relay=lambda sent: sent[1:] + sent[:1])


def test_parties_that_are_shown_different_deals_share_no_masks():
    """Nor do they if what each is dealt is right by what it was shown."""
    members, dealer = keys_of(2)
    scores, names = np.array([[3, 4]]), ["p0", "p1"]
    key = members[0].common_key()
    choices = [SecretChoice(scores, 0 * scores, keys, names, b"t") for keys in members]
    sent = []
    for k in range(2):
        number, shown = dealer.answer(0, "deal", tuple(ChoiceShape(1, 2)), names, 3)
        said = choices[k].step(shown)
        other = dealing.said_of(key, choices[k]._round_name, shown, 1 - k)  # which no asker knows
        dealt = dealer.answer(0, "reveal", number, kept_of((said, other), 3))
        sent.append(choices[k].step(dealt[names[k]]))
    with pytest.raises(FederationError, match="dealt different"):
        choices[0].step([sent[1]])


def test_no_member_alone_tells_which_deal_is_kept():
    """Else a dealer could ask one of them, and let the others never know that it gave up."""
    members, _ = keys_of(3)
    scores, names, shown = np.array([[3, 4]]), ["p0", "p1", "p2"], [bytes(96)] * 4
    runs, found = 600, np.zeros((3, 4, 4), dtype=int)
    for run in range(runs):
        choices = [SecretChoice(scores, 0 * scores, keys, names, b"%d" % run) for keys in members]
        said = [choice.step(shown) for choice in choices]
        for left_out in range(3):
            known = kept_of((each for k, each in enumerate(said) if k != left_out), 4)
            found[left_out, known, kept_of(said, 4)] += 1
    # Of what two have said, nothing follows: 15 degrees of freedom, 1e-7.
    assert (((found - runs / 16) ** 2).sum(axis=(1, 2)) / (runs / 16) < 61).all()


def test_what_was_dealt_hides_one_choice_only():
    """A coordinator that shows the same deals again has parties open a difference of two sums."""
    members, dealer = keys_of(2)
    scores, names, key = np.array([[3, 4]]), ["p0", "p1"], members[0].common_key()

    def begin(name):
        return [SecretChoice(scores, 0 * scores, keys, names, name) for keys in members]

    first = begin(b"first")
    number, shown = dealer.answer(0, "deal", tuple(ChoiceShape(1, 2)), names, 3)
    kept = kept_of((choice.step(shown) for choice in first), 3)
    dealt = dealer.answer(0, "reveal", number, kept)
    for choice, name in zip(first, names, strict=True):
        choice.step(dealt[name])
    # Whoever pools with a party has the common key, and tries names until the same one is kept.
    for attempt in range(1_000):
        name = b"second %d" % attempt
        named = fingerprint(name, 0, shown)
        if kept_of((dealing.said_of(key, named, shown, k) for k in range(2)), 3) == kept:
            break
    second = begin(name)
    assert kept_of((choice.step(shown) for choice in second), 3) == kept
    for choice, mine in zip(second, names, strict=True):
        with pytest.raises(FederationError, match="dealt before"):
            choice.step(dealt[mine])


def test_a_dealer_shows_a_deal_once_and_deals_to_its_roster_only():
    members, dealer = keys_of(2)
    names, shape = ["p0", "p1"], tuple(ChoiceShape(1, 2))
    number, _ = dealer.answer(0, "deal", shape, names, 3)
    dealer.answer(0, "reveal", number, 0)
    with pytest.raises(FederationError, match="any more"):
        dealer.answer(0, "reveal", number, 1)
    for given in ((shape, ["p0", "x"], 3), (shape, ["p1", "p0"], 3), (shape, names, 2),
                  (shape, ["p0"], 3), (shape[:4], names, 3), ((1, 2**20, 0, 1, 0), names, 3),
                  ((2**30, 2, 0, 1, 0), names, 3)):  # fmt: skip
        with pytest.raises(FederationError, match=r"such a choice|too large"):
            dealer.answer(0, "deal", *given)
    with pytest.raises(FederationError, match="another one is refused"):
        dealer.answer(0, "join", {"p0": members[0].public_key, "x": bytes(32)})
    with pytest.raises(FederationError, match="cannot deal"):
        Dealer("p0").join({"p0": members[0].public_key})
    with pytest.raises(FederationError, match="does not know"):
        dealer.answer(0, "rows")


def test_what_is_sealed_for_one_is_read_by_no_other():
    members, dealer = keys_of(3)
    names, scores = ["p0", "p1", "p2"], np.array([[3, 4]])
    choices = [SecretChoice(scores, 0 * scores, keys, names, b"t") for keys in members]
    given, _ = deal(dealer, choices, ChoiceShape(1, 2), names)
    (mine, _, part), (_, sealed, _) = given[:2]
    with pytest.raises(FederationError, match="not what was sealed"):
        choices[0].step((mine, sealed, part))


def test_keys_are_bound_to_names_and_to_the_whole_roster():
    """The same two keys under other names, or with another third party, make other masks."""
    found = []
    for names in (("a", "b", "c"), ("a", "x", "c")):
        first, second, third = (MaskKeys(name) for name in names)
        first._private = KEYS[0]
        second._private = KEYS[1]
        roster = {keys.name: keys.public_key for keys in (first, second, third)}
        first.join(roster)
        found.append(first._shared[names[1]])
        found.append(first.known)
    assert len(set(found)) == 4


KEYS = [PrivateKey(), PrivateKey()]


# An oracle


@pytest.mark.filterwarnings("ignore:numpy.core")
def test_the_same_option_as_by_another_library(monkeypatch):
    """MPyC finds the largest of secret-shared sums with comparisons of its own."""
    monkeypatch.setattr(sys, "argv", ["test"])  # which it reads when it is imported
    from mpyc import runtime as mpyc

    generator, rows = np.random.default_rng(5), 4
    for high in (3, 2**30):
        scores = list(generator.integers(-high, high, (3, rows, 9)))
        assert choose(scores) == [by_mpyc(mpyc.mpc, [each[row] for each in scores])
                                  for row in range(rows)]  # fmt: skip


def by_mpyc(mpc, scores):
    secint = mpc.SecInt(64)

    async def find():
        async with mpc:
            sums = [sum(secint(int(each)) for each in some) for some in zip(*scores, strict=True)]
            place, _ = mpc.argmax(sums)
            return int(await mpc.output(place))

    return mpc.run(find())


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
    reach = int(np.ptp(scores)) // step + 1
    steps = np.arange(0, math.ceil(60 / rate) + reach)
    chance = (1 - a) * a**steps
    # The chances of at most -1 - reach, -reach, ... steps of noise: none below 0.
    at_most = 1 - a ** np.maximum(np.arange(-reach, len(steps) + reach + 1), 0)
    law = []
    for winner, own in enumerate(scores):
        below = np.ones(len(steps))
        for other, score in enumerate(scores):
            if other != winner:
                # The other is at most (less than, if it comes first) own + noise.
                start = int(own - score - (other < winner)) // step + reach + 1
                below *= at_most[start : start + len(steps)]
        law.append((chance * below).sum())
    return np.array(law)


@pytest.mark.parametrize("spread", [1, 2, 18, 19])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(3)])
def test_neighbours_differ_by_no_more_than_epsilon(epsilon, spread):
    """Also where a step is no whole part of the spread, and scores lie between steps."""
    mechanism = NoisyMaxShare(spread, epsilon, 3)
    generator = np.random.default_rng(0)
    worst = 0.0
    for trial in range(40):
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
