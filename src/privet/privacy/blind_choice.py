"""Which of several sums is the largest, when nobody may see a sum: that, and nothing else.

Every party has numbers (rows by options); in each row the option with the largest sum over the
parties is to be found. Modulo 2^64 a party's own numbers are its *share* of the sums, and sums,
differences and multiples of shares are shares again. What else is needed, a coordinator *deals*: it
draws random numbers and gives each party a share of them; it never sees what they hide. Options
meet in pairs, round by round:

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
from typing import Any, TypeVar

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


def batches(rows: int, options: int) -> list[int]:
    """Return how many rows are chosen for at a time."""
    most = max(1, _MOST // options)
    return [min(most, rows - first) for first in range(0, rows, most)]


def deal(rows: int, options: int, members: int) -> list[list[Dealt]]:
    """Return for every member of a choice what it is dealt: something for each round."""
    by_round = [_deal(rows * half, members) for half in _rounds(options)]
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


def openings(rows: int, options: int) -> Iterator[tuple[int, bool]]:
    """Yield how many words every opening has, and whether it is by XOR; the last is the result."""
    for half in _rounds(options):
        pairs = rows * half
        yield pairs, False
        yield from ((3 * pairs if shift < _SHIFTS[-1] else 2 * pairs, True) for shift in _SHIFTS)
        yield pairs, True
    yield rows, False


def winners(opened: Words, options: int) -> NDArray[np.int64]:
    """Return the winning option of every row, from the sum of the last answers."""
    low = opened & np.uint64((1 << _width(options)) - 1)
    return np.asarray(options - 1 - low.astype(np.int64))


def _rounds(options: int) -> list[int]:
    """Return how many pairs each row has, round by round."""
    found = []
    while options > 1:
        found.append(options // 2)
        options -= options // 2
    return found


class Ballot:
    """One party's part in a choice.

    Parameters
    ----------
    scores : int64 array of shape (rows, options)
        This party's numbers, noise included. Nobody sees them.
    public : int64 array of shape (rows, options)
        What is added to the sums, once; the same for all parties.
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
    ) -> None:
        if not 1 <= scores.shape[1] <= MOST_OPTIONS:
            raise FederationError("a choice has at least one option, and not that many")
        self._seat, self._members, self._turn = seat, tuple(members), turn
        #: One of them adds what is public.
        self._leads = seat.name == min(members)
        self._step = 0
        self._talk = self._run(np.asarray(scores), np.asarray(public))
        next(self._talk)

    def answer(self, given: Sequence[Dealt] | Words) -> Words:
        """Return this party's next words, after what was dealt, or after what was opened."""
        try:
            return self._talk.send(given)
        except StopIteration:
            raise FederationError("this choice is over") from None

    def _run(self, scores: NDArray[np.int64], public: NDArray[np.int64]) -> Talk[None]:
        options = scores.shape[1]
        numbers = scores << _width(options)
        if self._leads:
            numbers = numbers + (public << _width(options)) + np.arange(options - 1, -1, -1)
        words, first = numbers.view(np.uint64), 0
        sent = np.zeros(0, dtype=np.uint64)
        for rows in batches(*scores.shape):
            dealt = yield sent
            sent = yield from self._choose(words[first : first + rows], dealt)
            first += rows
        yield sent

    def _choose(self, shares: Words, dealt: Any) -> Talk[Words]:
        """Return words whose sum says which option of each row is the largest."""
        rows, options = shares.shape
        halves = _rounds(options)
        if not isinstance(dealt, list) or len(dealt) != len(halves):
            raise FederationError("this is not what a choice has to deal")
        for half, some in zip(halves, dealt, strict=True):
            left, right = shares[:, :half], shares[:, half : 2 * half]
            difference = (left - right).ravel()
            hand = _Hand.of(some, difference.size)
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
        # The lowest bits only: what is above them is hidden by this party's own numbers.
        last = shares.ravel() + (_random(1, rows)[0] << np.uint64(_width(options)))
        return np.asarray(last + self._seat.mask(self._members, self._next(), rows))

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
