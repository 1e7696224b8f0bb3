"""Which of several options is the best by all parties' rows, when nobody may see a sum.

Every party has numbers (rows by options); in each row the option with the largest sum over the
parties is to be found. To the sums may be added *terms*: of several sums (lines) the largest. So an
option can be judged by the class counts that it gives in all parties' rows together.

Modulo 2^64 a party's own numbers are its *share* of the sums, and sums, differences and multiples
of shares are shares again. What else is needed, a coordinator *deals*: it draws random numbers and
gives each party a share of them; it never sees what they hide. Lines, and then options, meet in
pairs, round by round:

* the difference of a pair, plus a dealt number, is opened among the parties (it is uniform);
* its sign follows from the opened number and the shared bits of the dealt one, by a carry that is
  looked ahead in six steps of ANDs, of which each uses dealt products of random bits;
* the sign, which is shared, too, times the difference gives the larger of the two.

A number carries its option in its lowest bits, so that in the end these are opened, the others
hidden by multiples that every party adds for itself. What is opened among the parties passes the
coordinator under a key that only they have (:meth:`~privet.privacy.secure_sum.Seat.hide`). All in
words of 64 bits, whole arrays at a time.

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
from privet.privacy.secure_sum import Seat, key_stream

Words = NDArray[np.uint64]
#: What a party is dealt: a key from which it draws its shares, or the shares themselves.
Dealt = bytes | tuple[Words, Words]
#: Something that sends words, and reads what was opened.
T = TypeVar("T")
Talk = Generator[Words, Any, T]

#: How far the carry looks in each step.
_SHIFTS = (1, 2, 4, 8, 16, 32)
#: Shared by sums: a number, a bit, and their product.
_ADDED = 3
#: Shared by XOR: the number, the bit; of each step the mask of one factor, and for each of its
#: products (the last step has one, the others two) the mask of the other and the product.
_PRODUCTS = 2 * len(_SHIFTS) - 1
_MIXED = 2 + len(_SHIFTS) + 2 * _PRODUCTS
#: No row has more options: numbers keep their range.
MOST_OPTIONS = 2**17
#: So many numbers at most are handled at a time, unless one row has more.
_MOST = 2**18
_ONE, _TOP, _NEXT = np.uint64(1), np.uint64(63), np.uint64(62)


class Shape(NamedTuple):
    """What is public of a choice; for some or all of its rows."""

    rows: int
    options: int
    #: How many terms a row has in all, and how many lines each of them.
    terms: int = 0
    lines: int = 1

    def batches(self) -> list[Shape]:
        """Return how many rows are chosen for at a time."""
        most = max(1, _MOST // max(self.options, self.terms * self.lines))
        return [
            self._replace(rows=min(most, self.rows - first)) for first in range(0, self.rows, most)
        ]

    @property
    def rounds(self) -> list[int]:
        """How many pairs meet, round by round: lines, then options."""
        lines = [self.rows * self.terms * half for half in _halves(self.lines)]
        return [*lines, *(self.rows * half for half in _halves(self.options))]


def deal(shape: Shape, members: int) -> list[list[Dealt]]:
    """Return for every member of a choice what it is dealt: something for each round."""
    by_round = [_deal(pairs, members) for pairs in shape.rounds]
    return [[dealt[member] for dealt in by_round] for member in range(members)]


def _deal(pairs: int, members: int) -> list[Dealt]:
    hidden, bits = _random(1, pairs)[0], _random(1, pairs)[0] & _ONE
    masks, others = _random(len(_SHIFTS), pairs), _random(_PRODUCTS, pairs)
    products = masks[np.arange(_PRODUCTS) // 2] & others
    added = np.stack([hidden, bits, hidden * bits])
    mixed = np.concatenate([np.stack([hidden, bits]), masks, others, products])
    keys = [secrets.token_bytes(32) for _ in range(members - 1)]
    for key in keys:
        some, more = _expand(key, pairs)
        added = added - some
        mixed = mixed ^ more
    return [*keys, (added, mixed)]


def openings(shape: Shape) -> Iterator[tuple[int, bool]]:
    """Yield how many words every opening has, and whether it is by XOR; the last is the result."""
    for pairs in shape.rounds:
        yield pairs, False
        yield from ((3 * pairs if shift < _SHIFTS[-1] else 2 * pairs, True) for shift in _SHIFTS)
        yield pairs, True
    yield shape.rows, False


def never(options: int) -> int:
    """Return a public number for options that may not win: less than any sum, and not too small."""
    return -(1 << (61 - _width(options)))


def check_range(largest: int, options: int) -> None:
    """Raise if sums of this size, with noise, cannot be told from what may not win."""
    if 2 * largest > -never(options):
        raise FederationError("these are too many classes for a choice among so many options")


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
class Terms:
    """A party's part in the terms of a choice: each is the largest of some lines.

    Attributes
    ----------
    counts : int64 array of shape (rows, regions, numbers)
        What the lines are taken of.
    weights : int64 array of shape (terms of a region, lines, numbers)
        The lines.
    owners : int array of shape (regions,)
        The option to which each region's terms are added, in rising order; no option is left out.
    """

    counts: NDArray[np.int64]
    weights: NDArray[np.int64]
    owners: NDArray[np.intp]

    def shape(self, options: int) -> Shape:
        """Return what is public of a choice with these terms."""
        rows, regions, _ = self.counts.shape
        return Shape(rows, options, regions * self.weights.shape[0], self.weights.shape[1])

    def lines_of(self, rows: slice) -> NDArray[np.int64]:
        """Return all lines, of shape (rows, regions, terms of a region, lines)."""
        return np.asarray(np.einsum("nrk,tlk->nrtl", self.counts[rows], self.weights))

    def sums(self, found: Words, options: int) -> Words:
        """Return the terms of each option, added up."""
        regions = found.reshape(len(found), len(self.owners), -1).sum(axis=2)
        first = np.searchsorted(self.owners, np.arange(options))
        return np.asarray(np.add.reduceat(regions, first, axis=1))


class Ballot:
    """One party's part in a choice.

    Parameters
    ----------
    scores : int64 array of shape (rows, options)
        This party's numbers, noise included. Nobody sees them. Sums, with terms, must be smaller
        than what :func:`never` says.
    public : int64 array of shape (rows, options)
        What is added to the sums, once; the same for all parties.
    terms : Terms, optional
        What else is added.
    seat : Seat
        This party's keys.
    members : sequence of str
        Who takes part.
    turn : bytes
        What the choice is called; used once.
    """

    def __init__(
        self,
        scores: NDArray[np.int64],
        public: NDArray[np.int64],
        seat: Seat,
        members: Sequence[str],
        turn: bytes,
        terms: Terms | None = None,
    ) -> None:
        if not 1 <= scores.shape[1] <= MOST_OPTIONS:
            raise FederationError("a choice has at least one option, and not that many")
        self._seat, self._members, self._turn = seat, tuple(members), turn
        #: One of them adds what is public.
        self._leads = seat.name == min(members)
        self._step = 0
        self._talk = self._run(np.asarray(scores), np.asarray(public), terms)
        next(self._talk)

    def answer(self, given: Sequence[Dealt] | Words) -> Words:
        """Return this party's next words, after what was dealt, or after what was opened."""
        try:
            return self._talk.send(given)
        except StopIteration:
            raise FederationError("this choice is over") from None

    def _run(
        self, scores: NDArray[np.int64], public: NDArray[np.int64], terms: Terms | None
    ) -> Talk[None]:
        rows, options = scores.shape
        shape = Shape(rows, options) if terms is None else terms.shape(options)
        if self._leads:
            scores = scores + public
        first = 0
        sent = np.zeros(0, dtype=np.uint64)
        for some in shape.batches():
            dealt = yield sent
            if not isinstance(dealt, list) or len(dealt) != len(some.rounds):
                raise FederationError("this is not what a choice has to deal")
            hands = map(_Hand.of, dealt, some.rounds)
            mine = slice(first, first + some.rows)
            shares = scores[mine].view(np.uint64)
            if terms is not None:
                lines = terms.lines_of(mine).view(np.uint64)
                largest = yield from self._largest(lines.reshape(-1, some.lines), hands)
                shares = shares + terms.sums(largest.reshape(some.rows, -1), options)
            sent = yield from self._choose(shares, hands)
            first += some.rows
        yield sent

    def _choose(self, shares: Words, hands: Iterator[_Hand]) -> Talk[Words]:
        """Return words whose sum says which option of each row is the largest."""
        rows, options = shares.shape
        shares = shares << np.uint64(_width(options))
        if self._leads:  # the first of equal ones is the largest
            shares = shares + np.arange(options - 1, -1, -1).astype(np.uint64)
        largest = yield from self._largest(shares, hands)
        # The lowest bits only: what is above them is hidden by this party's own numbers.
        last = largest + (_random(1, rows)[0] << np.uint64(_width(options)))
        return np.asarray(last + self._seat.mask(self._members, self._next(), rows))

    def _largest(self, shares: Words, hands: Iterator[_Hand]) -> Talk[Words]:
        """Return shares of the largest number of each row."""
        rows = len(shares)
        for half in _halves(shares.shape[1]):
            left, right = shares[:, :half], shares[:, half : 2 * half]
            difference, hand = (left - right).ravel(), next(hands)
            opened = yield from self._open(difference + hand.hidden, mix=False)
            larger = yield from self._is_left(opened, hand)
            # The larger one is the right one plus bit times difference; the bit is opened under a
            # dealt bit, whose product with the dealt number is dealt, too.
            flipped = yield from self._open(larger ^ hand.mixed_bit, mix=True)
            product = opened * hand.bit - hand.product
            product = np.where(flipped & _ONE, difference - product, product)
            shares = np.concatenate(
                [right + product.reshape(rows, half), shares[:, 2 * half :]], axis=1
            )
        return shares[:, 0]

    def _is_left(self, opened: Words, hand: _Hand) -> Talk[Words]:
        """Return shares of whether the left one is larger: the sign of ``opened - hidden``."""
        borrows = hand.mixed & ~opened
        passes = hand.mixed ^ ~opened if self._leads else hand.mixed
        first = 0
        for mask, shift in zip(hand.masks, _SHIFTS, strict=True):
            factors = [borrows << np.uint64(shift)]
            if shift < _SHIFTS[-1]:
                factors.append(passes << np.uint64(shift))
            mine = slice(first, first + len(factors))
            sent = np.stack([passes ^ mask, *(np.stack(factors) ^ hand.others[mine])])
            seen = yield from self._open(sent.ravel(), mix=True)
            one, others = seen[: mask.size], seen[mask.size :].reshape(len(factors), -1)
            products = (one & hand.others[mine]) ^ (others & mask) ^ hand.products[mine]
            if self._leads:
                products = products ^ (one & others)
            first = mine.stop
            borrows, passes = borrows ^ products[0], products[-1]
        found = (hand.mixed >> _TOP) ^ (borrows >> _NEXT)
        if self._leads:
            found = found ^ (opened >> _TOP) ^ _ONE
        return found & _ONE

    def _open(self, words: Words, *, mix: bool) -> Talk[Words]:
        """Send words, and return their sum, or their XOR, over all parties."""
        turn = self._next()
        mask = self._seat.mask(self._members, turn, words.size, mix=mix)
        key = self._seat.hide(turn, words.size)
        sent = words ^ mask if mix else words + mask
        if self._leads:
            sent = sent ^ key if mix else sent + key
        seen = yield sent
        if not _are_words(seen, words.shape):
            raise FederationError("this is not what a choice has to open")
        return np.asarray(seen ^ key if mix else seen - key)

    def _next(self) -> bytes:
        self._step += 1
        return self._turn + self._step.to_bytes(4, "little")


@dataclass(frozen=True)
class _Hand:
    """A party's shares of what was dealt for one round."""

    hidden: Words
    bit: Words
    product: Words
    mixed: Words
    mixed_bit: Words
    masks: Words
    others: Words
    products: Words

    @classmethod
    def of(cls, dealt: object, pairs: int) -> _Hand:
        if isinstance(dealt, bytes) and len(dealt) == 32:
            added, mixed = _expand(dealt, pairs)
        elif (
            isinstance(dealt, tuple)
            and len(dealt) == 2
            and _are_words(dealt[0], (_ADDED, pairs))
            and _are_words(dealt[1], (_MIXED, pairs))
        ):
            added, mixed = dealt
        else:
            raise FederationError("this is not what a choice has to deal")
        first, second = 2 + len(_SHIFTS), 2 + len(_SHIFTS) + _PRODUCTS
        return cls(
            hidden=added[0],
            bit=added[1],
            product=added[2],
            mixed=mixed[0],
            mixed_bit=mixed[1] & _ONE,
            masks=mixed[2:first],
            others=mixed[first:second],
            products=mixed[second:],
        )


def _width(options: int) -> int:
    return (options - 1).bit_length()


def _are_words(found: object, shape: tuple[int, ...]) -> bool:
    return isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.uint64


def _random(count: int, pairs: int) -> Words:
    drawn = np.frombuffer(secrets.token_bytes(8 * count * pairs), dtype="<u8")
    return drawn.reshape(count, pairs)


def _expand(key: bytes, pairs: int) -> tuple[Words, Words]:
    words = key_stream(key, bytes(16), (_ADDED + _MIXED) * pairs).reshape(-1, pairs)
    return words[:_ADDED], words[_ADDED:]
