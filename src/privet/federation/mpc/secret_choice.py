"""Which of several options is the best by all parties' rows, when nobody may see a sum.

Every party has numbers (rows by options); in each row the option with the largest sum over the
parties is to be found. From the sums may be taken *terms*: the least of several linear forms of
other sums, and what halvings make of it. So an option can be judged by the class counts that it
gives in all parties' rows together.

Modulo 2^64 a party's own numbers are its *share* of the sums, and sums, differences and multiples
of shares are shares again. The rest needs *correlated randomness*. The coordinator is the dealer:
it draws random numbers and gives each party a share of them; it never sees what they hide. Linear
forms, the two numbers of each halving, and then options are compared in pairs, round by round:

* the difference of a pair, plus a dealt number, is opened among the parties (it is uniform);
* its sign follows from the opened number and the shared bits of the dealt one, by the borrow out of
  ever longer groups of bits: six steps of ANDs, each of which uses dealt products of random bits.
  A step has half as many groups as the one before, so that a word holds those of twice as many
  pairs;
* the sign, which is shared, too, times the difference gives the larger of the two.

A number carries its option in its lowest bits. In the end these are opened; the rest is hidden by
multiples that every party adds for itself. What is opened among the parties passes the
coordinator under a key that only they have (:meth:`~privet.federation.mpc.MaskKeys.common_pad`).
All in words of 64 bits, whole arrays at a time.

It holds against parties and a coordinator that follow the protocol, as long as the coordinator
does not pool what it knows with a party. Our own code because the library of the field that we
tried, MPyC, needs a network of its own and a process per party, and works on whole numbers of
Python, not on words. Proof: ``docs/proofs/federation.md``.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError
from privet.federation.mpc.masks import MaskKeys, key_stream

Words = NDArray[np.uint64]
#: A party's share of the randomness of a round: a key to draw it from, or the words themselves.
Randomness = bytes | tuple[Words, Words]
#: A computation that sends words, and reads what was opened.
T = TypeVar("T")
Exchange = Generator[Words, Any, T]

#: How many bits the groups have after each step.
_GROUPS = (2, 4, 8, 16, 32, 64)
#: Shared by sums: a number, a bit, and their product.
_SUMMED = 3
#: No row has more options: numbers keep their range.
MOST_OPTIONS = 2**17
#: Numbers that are handled at a time, at most, unless one row has more.
_MOST = 2**19
_ONE, _TOP = np.uint64(1), np.uint64(63)


class ChoiceShape(NamedTuple):
    """What is public of a choice; for some or all of its rows."""

    rows: int
    options: int
    #: How many terms a row has in all, how many linear forms each of them, and how many halvings.
    terms: int = 0
    forms: int = 1
    halvings: int = 0

    def batches(self) -> list[ChoiceShape]:
        """Return how many rows are chosen for at a time."""
        most = max(1, _MOST // max(self.options, self.terms * self.forms))
        return [
            self._replace(rows=min(most, self.rows - first)) for first in range(0, self.rows, most)
        ]

    @property
    def rounds(self) -> list[int]:
        """How many pairs meet, round by round: linear forms, halvings, then options."""
        terms = self.rows * self.terms
        forms = [terms * half for half in _halves(self.forms)]
        options = [self.rows * half for half in _halves(self.options)]
        return [*forms, *[terms] * self.halvings, *options]

    @property
    def randomness_size(self) -> int:
        """How many words of randomness a party gets at a time, at most, if it gets no key."""
        return max(
            sum(_SUMMED * pairs + _xored_size(pairs) for pairs in some.rounds)
            for some in self.batches()
        )


def correlated_randomness(shape: ChoiceShape, members: int) -> list[list[Randomness]]:
    """Return for every member of a choice its share of the randomness of each round."""
    by_round = [_round_randomness(pairs, members) for pairs in shape.rounds]
    return [[dealt[member] for dealt in by_round] for member in range(members)]


def _round_randomness(pairs: int, members: int) -> list[Randomness]:
    hidden, bits = _random(pairs), _random(pairs) & _ONE
    ands = []
    for size in _step_sizes(pairs):
        one, other = _random(size), _random(size)
        ands += [one, other, one & other]
    summed = np.stack([hidden, bits, hidden * bits])
    xored = np.concatenate([hidden, _pack(bits, 64, 1), *ands])
    keys = [secrets.token_bytes(32) for _ in range(members - 1)]
    for key in keys:
        some, more = _expand(key, pairs)
        summed = summed - some
        xored = xored ^ more
    return [*keys, (summed, xored)]


def openings(shape: ChoiceShape) -> Iterator[tuple[int, bool]]:
    """Yield how many words every opening has, and whether it is by XOR; the last is the result."""
    for pairs in shape.rounds:
        yield pairs, False
        yield from ((2 * size, True) for size in _step_sizes(pairs))
        yield _words(pairs, 64), True
    yield shape.rows, False


def _step_sizes(pairs: int) -> list[int]:
    """Return how many words each step has: two bits of every group."""
    return [_words(pairs, group // 2) for group in _GROUPS]


def _words(pairs: int, each: int) -> int:
    """Return how many words hold something of all pairs, if a word holds that of ``each``."""
    return -(-pairs // each)


def _pack(found: Words, each: int, apart: int) -> Words:
    """Return words of which each has the bits of several, the next ones ``apart`` bits higher."""
    size = _words(len(found), each)
    packed = found[:size].copy()
    for place in range(1, each):
        some = found[place * size : (place + 1) * size]
        packed[: len(some)] |= some << np.uint64(place * apart)
    return packed


def _unpack(packed: Words, each: int, apart: int, pairs: int) -> Words:
    """Return the words that were packed, and what is above their bits."""
    higher = np.arange(0, each * apart, apart, dtype=np.uint64)
    return np.asarray((packed >> higher[:, None]).ravel()[:pairs])


def excluded_score(options: int) -> int:
    """Return a public number for options that may not win: less than any sum, and not too small."""
    return -(1 << (61 - _width(options)))


def has_room(largest: int, options: int) -> bool:
    """Tell whether sums of this size, with noise, can be told from what may not win."""
    return 2 * largest <= -excluded_score(options)


def check_range(largest: int, options: int) -> None:
    """Raise if a choice has no room for the options, or for sums of this size."""
    if options > MOST_OPTIONS:
        raise FederationError(f"a choice has at most {MOST_OPTIONS:,} options")
    if not has_room(largest, options):
        raise FederationError("these losses are too large for a choice among that many options")


def winners(opened: Words, options: int) -> NDArray[np.int64]:
    """Return the winning option of every row, from the sum of the last answers."""
    low = opened & np.uint64((1 << _width(options)) - 1)
    return np.asarray(options - 1 - low.astype(np.int64))


def _halves(options: int) -> list[int]:
    """Return how many pairs some options make, round by round."""
    found = []
    while options > 1:
        found.append(options // 2)
        options -= options // 2
    return found


@dataclass(frozen=True)
class LossTerms:
    """A party's part in what is taken off the options: the terms of their regions' losses.

    See :class:`~privet.criteria.MinOfLinear`: the least of some linear forms, then halvings.

    Attributes
    ----------
    counts : int64 array of shape (rows, regions, classes)
        What the linear forms are taken of.
    forms : int64 array of shape (terms of a region, forms, classes)
        Their coefficients.
    owners : int array of shape (regions,)
        The option from which each region's terms are taken, in rising order; none is left out.
    halvings : int, default=0
        How many follow.
    units : int, default=1
        What losses are multiplied by.
    """

    counts: NDArray[np.int64]
    forms: NDArray[np.int64]
    owners: NDArray[np.intp]
    halvings: int = 0
    units: int = 1

    def shape(self, options: int) -> ChoiceShape:
        """Return what is public of a choice with these terms."""
        rows, regions, _ = self.counts.shape
        terms, forms, _ = self.forms.shape
        return ChoiceShape(rows, options, regions * terms, forms, self.halvings)

    def gains(self, rows: slice) -> Words:
        """Return all forms with the other sign, one row for every term: the largest is wanted."""
        found = np.einsum("nrk,tlk->nrtl", self.counts[rows], -self.forms)
        return np.asarray(found.reshape(-1, self.forms.shape[1]).view(np.uint64))

    def records(self, rows: slice) -> Words:
        """Return how many records there are, for every term."""
        found = np.repeat(self.counts[rows].sum(axis=2), len(self.forms))
        return found.view(np.uint64)

    def sums(self, found: Words, options: int) -> Words:
        """Return what the terms of each option add up to."""
        regions = found.reshape(-1, len(self.owners), len(self.forms)).sum(axis=2)
        first = np.searchsorted(self.owners, np.arange(options))
        return np.asarray(np.add.reduceat(regions, first, axis=1) * np.uint64(self.units))


class SecretChoice:
    """One party's part in a choice.

    Parameters
    ----------
    scores : int64 array of shape (rows, options)
        This party's numbers, noise included. Nobody sees them. Sums, with terms, must be smaller
        than what :func:`excluded_score` says.
    public : int64 array of shape (rows, options)
        What is added to the sums, once; the same for all parties.
    terms : LossTerms, optional
        What else is taken off.
    keys : MaskKeys
        This party's keys.
    members : sequence of str
        Who takes part.
    round_name : bytes
        What the choice is called, as for :meth:`~privet.federation.mpc.masks.MaskKeys.mask`;
        used once.
    """

    def __init__(
        self,
        scores: NDArray[np.int64],
        public: NDArray[np.int64],
        keys: MaskKeys,
        members: Sequence[str],
        round_name: bytes,
        terms: LossTerms | None = None,
    ) -> None:
        if not 1 <= scores.shape[1] <= MOST_OPTIONS:
            raise FederationError("a choice has at least one option, and not that many")
        self._keys, self._members, self._round_name = keys, tuple(members), round_name
        #: One of them adds what is public.
        self._leads = keys.name == min(members)
        self._step = 0
        self._exchange = self._run(np.asarray(scores), np.asarray(public), terms)
        next(self._exchange)

    def step(self, given: Sequence[Randomness] | Words) -> Words:
        """Return this party's next words, after the randomness, or after what was opened."""
        try:
            return self._exchange.send(given)
        except StopIteration:
            raise FederationError("this choice is over") from None

    def _run(
        self, scores: NDArray[np.int64], public: NDArray[np.int64], terms: LossTerms | None
    ) -> Exchange[None]:
        rows, options = scores.shape
        shape = ChoiceShape(rows, options) if terms is None else terms.shape(options)
        if self._leads:
            scores = scores + public
        first = 0
        sent = np.zeros(0, dtype=np.uint64)
        for some in shape.batches():
            dealt = yield sent
            if not isinstance(dealt, list) or len(dealt) != len(some.rounds):
                raise FederationError("this is not the randomness of a choice")
            randomness = map(_RoundShares.of, dealt, some.rounds)
            mine = slice(first, first + some.rows)
            shares = scores[mine].view(np.uint64)
            if terms is not None:
                losses = yield from self._losses(terms, mine, randomness)
                shares = shares + terms.sums(losses, options)
            sent = yield from self._choose(shares, randomness)
            first += some.rows
        yield sent

    def _losses(
        self, terms: LossTerms, rows: slice, randomness: Iterator[_RoundShares]
    ) -> Exchange[Words]:
        """Return shares of all terms, with the other sign."""
        two, four = np.uint64(2), np.uint64(4)
        found = yield from self._largest(terms.gains(rows), randomness)
        total, records = found, terms.records(rows)
        for _ in range(terms.halvings):
            twice = two * found  # the lesser of 2 m and n - 2 m, with the other sign
            found = yield from self._largest(
                np.stack([twice, -records - twice], axis=1), randomness
            )
            total = four * total + found
        return np.asarray(total)

    def _choose(self, shares: Words, randomness: Iterator[_RoundShares]) -> Exchange[Words]:
        """Return words whose sum says which option of each row is the largest."""
        rows, options = shares.shape
        shares = shares << np.uint64(_width(options))
        if self._leads:  # the first of equal ones is the largest
            shares = shares + np.arange(options - 1, -1, -1).astype(np.uint64)
        largest = yield from self._largest(shares, randomness)
        # The lowest bits only: what is above them is hidden by this party's own numbers.
        last = largest + (_random(rows) << np.uint64(_width(options)))
        return np.asarray(last + self._keys.mask(self._members, self._next(), rows))

    def _largest(self, shares: Words, randomness: Iterator[_RoundShares]) -> Exchange[Words]:
        """Return shares of the largest number of each row."""
        rows = len(shares)
        for half in _halves(shares.shape[1]):
            left, right = shares[:, :half], shares[:, half : 2 * half]
            difference, dealt = (left - right).ravel(), next(randomness)
            opened = yield from self._open(difference + dealt.hidden, xor=False)
            larger = yield from self._is_left(opened, dealt)
            # The larger one is the right one plus bit times difference; the bit is opened under a
            # dealt bit, whose product with the dealt number is dealt, too.
            flipped = yield from self._open(_pack(larger, 64, 1) ^ dealt.xored_bit, xor=True)
            product = opened * dealt.bit - dealt.product
            unlike = _unpack(flipped, 64, 1, opened.size) & _ONE
            product = np.where(unlike, difference - product, product)
            shares = np.concatenate(
                [right + product.reshape(rows, half), shares[:, 2 * half :]], axis=1
            )
        return shares[:, 0]

    def _is_left(self, opened: Words, dealt: _RoundShares) -> Exchange[Words]:
        """Return shares of whether the left one is larger: the sign of ``opened - hidden``."""
        # Whether each bit below the sign makes a borrow, or passes one on.
        borrows = (dealt.xored & ~opened) << _ONE
        passes = (dealt.xored ^ ~opened if self._leads else dealt.xored) << _ONE
        for group, (mask, other, product) in zip(_GROUPS, dealt.ands, strict=True):
            each, half, lowest = group // 2, np.uint64(group // 2), _lowest(group)
            upper = (passes >> half) & lowest
            lower = (borrows & lowest) | ((passes & lowest) << _ONE)
            sent = np.concatenate(
                [_pack(upper | (upper << _ONE), each, 2) ^ mask, _pack(lower, each, 2) ^ other]
            )
            seen = yield from self._open(sent, xor=True)
            one, two = seen[: mask.size], seen[mask.size :]
            both = (one & other) ^ (two & mask) ^ product
            if self._leads:
                both = both ^ (one & two)
            both = _unpack(both, each, 2, opened.size)
            borrows = ((borrows >> half) ^ both) & lowest
            passes = (both >> _ONE) & lowest
        found = (dealt.xored >> _TOP) ^ borrows
        if self._leads:
            found = found ^ (opened >> _TOP) ^ _ONE
        return np.asarray(found)

    def _open(self, words: Words, *, xor: bool) -> Exchange[Words]:
        """Send words, and return their sum, or their XOR, over all parties."""
        round_name = self._next()
        mask = self._keys.mask(self._members, round_name, words.size, xor=xor)
        key = self._keys.common_pad(round_name, words.size)
        sent = words ^ mask if xor else words + mask
        if self._leads:
            sent = sent ^ key if xor else sent + key
        seen = yield sent
        if not _are_words(seen, words.shape):
            raise FederationError("this is not what a choice has to open")
        return np.asarray(seen ^ key if xor else seen - key)

    def _next(self) -> bytes:
        self._step += 1
        return self._round_name + self._step.to_bytes(4, "little")


@dataclass(frozen=True)
class _RoundShares:
    """A party's shares of the randomness of one round."""

    hidden: Words
    bit: Words
    product: Words
    xored: Words
    xored_bit: Words
    #: For each step: what hides either factor, and their product.
    ands: tuple[tuple[Words, Words, Words], ...]

    @classmethod
    def of(cls, dealt: object, pairs: int) -> _RoundShares:
        if isinstance(dealt, bytes) and len(dealt) == 32:
            summed, xored = _expand(dealt, pairs)
        elif (
            isinstance(dealt, tuple)
            and len(dealt) == 2
            and _are_words(dealt[0], (_SUMMED, pairs))
            and _are_words(dealt[1], (_xored_size(pairs),))
        ):
            summed, xored = dealt
        else:
            raise FederationError("this is not the randomness of a choice")
        sizes = [pairs, _words(pairs, 64), *np.repeat(_step_sizes(pairs), 3).tolist()]
        own, bit, *parts = np.split(xored, np.cumsum(sizes)[:-1])
        return cls(
            hidden=summed[0],
            bit=summed[1],
            product=summed[2],
            xored=own,
            xored_bit=bit,
            ands=tuple(zip(parts[::3], parts[1::3], parts[2::3], strict=True)),
        )


def _width(options: int) -> int:
    return (options - 1).bit_length()


def _are_words(found: object, shape: tuple[int, ...]) -> bool:
    return isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.uint64


def _random(size: int) -> Words:
    return key_stream(secrets.token_bytes(32), size)


def _xored_size(pairs: int) -> int:
    """Return how many words are shared by XOR: the number, the bits, and three for each AND."""
    return pairs + _words(pairs, 64) + 3 * sum(_step_sizes(pairs))


def _expand(key: bytes, pairs: int) -> tuple[Words, Words]:
    words = key_stream(key, _SUMMED * pairs + _xored_size(pairs))
    return words[: _SUMMED * pairs].reshape(_SUMMED, pairs), words[_SUMMED * pairs :]


def _lowest(group: int) -> np.uint64:
    """Return a word with the lowest bit of every group."""
    return np.uint64(sum(1 << place for place in range(0, 64, group)))
