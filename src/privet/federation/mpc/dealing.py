"""What is dealt for a secret choice: random numbers that belong together, of which nobody has all.

A *deal* is made from one key, its *master*: so whoever is shown the master can make it again and
compare. Each member gets a key of its own, from which it draws its shares, and a part of the
*corrections*, which make the shares belong together: as many words for every member. The dealer
first shows the digests of what every member would get, of several deals; the members keep one,
which the dealer could not foresee, and are shown the masters of the others, which are checked and
thrown away. Proof: ``docs/proofs/federation.md``, "A dealer that cheats".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError
from privet.federation.mpc.masks import key_stream

Words = NDArray[np.uint64]

#: Deals for one that is kept, at most; and the bytes of a digest.
MOST_DEALS, DIGEST = 1024, 32
#: How many times as many deals are wanted after a choice that was given up before all had checked.
GROWTH = 4
#: Of four groups of bits, the highest first: whether they pass a borrow on, and whether those
#: below the highest make one. To make one group of four, these are hidden.
PASSES, BORROWS = ("p3", "p2", "p1", "p0"), ("g2", "g1", "g0")
HIDDEN = (*PASSES, *BORROWS)
#: The products of the bits that pass a borrow on: all that four bits of a dealt number take. Three
#: words hold them, and one place more.
FOURS = (
    ("p3", "p2"), ("p3", "p1"), ("p3", "p0"), ("p2", "p1"), ("p2", "p0"), ("p1", "p0"),
    ("p3", "p2", "p1"), ("p3", "p2", "p0"), ("p3", "p1", "p0"), ("p2", "p1", "p0"),
    ("p3", "p2", "p1", "p0"),
)  # fmt: skip
#: The products of hidden bits that four groups take.
PRODUCTS = (
    *FOURS,
    ("p3", "g2"),
    ("p3", "g1"), ("p2", "g1"), ("p3", "p2", "g1"),
    ("p3", "g0"), ("p2", "g0"), ("p1", "g0"), ("p3", "p2", "g0"), ("p3", "p1", "g0"),
    ("p2", "p1", "g0"), ("p3", "p2", "p1", "g0"),
)  # fmt: skip
_FOUR_WORDS = 3
_ONE = np.uint64(1)
#: The lowest bit of every group of four.
LOWEST = np.uint64(0x1111_1111_1111_1111)


class CheatingDealer(FederationError):
    """What was dealt is not what was shown, or does not belong together."""


def least_deals(members: int, given_up: int) -> int:
    """Return how many deals a party wants to be shown.

    One to keep, and one for each member to check; more, if choices were given up after it had been
    said which deal is kept. A dealer that is also the coordinator could do so until it is lucky.
    """
    wanted: int = (members + 1) * GROWTH**given_up
    return wanted


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
        forms = [terms * half for half in halves(self.forms)]
        options = [self.rows * half for half in halves(self.options)]
        return [*forms, *[terms] * self.halvings, *options]

    @property
    def randomness_size(self) -> int:
        """How many words of corrections are dealt at a time, at most."""
        return max(sum(RoundSizes.of(pairs).corrected for pairs in some.rounds)
                   for some in self.batches())  # fmt: skip


#: Numbers that are handled at a time, at most, unless one row has more.
_MOST = 2**19


def halves(options: int) -> list[int]:
    """Return how many pairs some options make, round by round."""
    found = []
    while options > 1:
        found.append(options // 2)
        options -= options // 2
    return found


def count_words(pairs: int, each: int) -> int:
    """Return how many words hold something of all pairs, if a word holds that of ``each``."""
    return -(-pairs // each)


class RoundSizes(NamedTuple):
    """How many words there are of each kind in a round."""

    pairs: int
    #: Words that hold a bit of every pair, or, in the first step, of every pair and four groups.
    steps: tuple[int, ...]

    @classmethod
    def of(cls, pairs: int) -> RoundSizes:
        """Return the sizes of a round of some pairs."""
        first = count_words(pairs, 16)
        return cls(pairs, (first, count_words(first, 4)))

    @property
    def free(self) -> int:
        """What needs no correction: a number, a bit, and what hides the steps' factors."""
        return self.pairs + self.steps[-1] + len(HIDDEN) * sum(self.steps)

    @property
    def summed(self) -> int:
        """What is corrected by sums: the bit as a number, and its product with the number."""
        return 2 * self.pairs

    @property
    def xored(self) -> int:
        """What is corrected by XOR: the number's bits, and products of bits."""
        return (1 + _FOUR_WORDS) * self.pairs + len(PRODUCTS) * sum(self.steps)

    @property
    def corrected(self) -> int:
        """Words of corrections."""
        return self.summed + self.xored


class RoundShares(NamedTuple):
    """A member's shares of what is dealt for one round."""

    #: By sums: a number, a bit, and their product.
    hidden: Words
    bit: Words
    product: Words
    #: By XOR: the number, the products of its bits by fours, and the bit.
    xored: Words
    fours: Words
    xored_bit: Words
    #: For each step: what hides its factors, and the products of these.
    masks: tuple[Words, ...]
    products: tuple[Words, ...]

    @classmethod
    def of(cls, words: Words, sizes: RoundSizes) -> RoundShares:
        """Return words by what they are: free ones, then those that are corrected."""
        steps = sizes.steps
        cuts = np.cumsum(
            [
                sizes.pairs,
                steps[-1],
                *(len(HIDDEN) * step for step in steps),
                sizes.pairs,
                sizes.pairs,
                sizes.pairs,
                _FOUR_WORDS * sizes.pairs,
                *(len(PRODUCTS) * step for step in steps),
            ]
        )
        hidden, xored_bit, one, two, bit, product, xored, fours, *products = np.split(
            words, cuts[:-1]
        )
        shaped = tuple(part.reshape(len(PRODUCTS), -1) for part in products)
        return cls(
            hidden,
            bit,
            product,
            xored,
            fours.reshape(_FOUR_WORDS, -1),
            xored_bit,
            (one.reshape(len(HIDDEN), -1), two.reshape(len(HIDDEN), -1)),
            shaped,
        )


def to_bits(found: Words) -> Words:
    """Return words that hold the lowest bit of every pair."""
    return pack(pack(found, 16, 1), 4, 16)


def from_bits(packed: Words, pairs: int) -> Words:
    """Return for every pair a word whose lowest bit was packed; above it is something else."""
    return unpack(unpack(packed, 4, 16, count_words(pairs, 16)), 16, 1, pairs)


def pack(found: Words, each: int, apart: int) -> Words:
    """Return words of which each has the bits of several, the next ones ``apart`` bits higher."""
    size = count_words(len(found), each)
    packed = found[:size].copy()
    for place in range(1, each):
        some = found[place * size : (place + 1) * size]
        packed[: len(some)] |= some << np.uint64(place * apart)
    return packed


def unpack(packed: Words, each: int, apart: int, size: int) -> Words:
    """Return the words that were packed, and what is above their bits."""
    higher = np.arange(0, each * apart, apart, dtype=np.uint64)
    return np.asarray((packed >> higher[:, None]).ravel()[:size])


def products_of_fours(number: Words) -> Words:
    """Return the products of the bits of a number by fours; of the bits one place higher.

    Three words: in each group of four bits the first word has the products 0 to 3, and so on.
    """
    higher = number << _ONE
    bits = {name: (higher >> np.uint64(3 - place)) & LOWEST for place, name in enumerate(PASSES)}
    found = np.zeros((_FOUR_WORDS, len(number)), dtype=np.uint64)
    for place, factors in enumerate(FOURS):
        found[place // 4] |= _product(bits, factors) << np.uint64(place % 4)
    return found


def _product(bits: Mapping[str, Words], factors: Sequence[str]) -> Words:
    return reduce(and_, [bits[factor] for factor in factors])


class Deal:
    """All that one deal gives to the members of a choice.

    Parameters
    ----------
    master : bytes
        What it is made from.
    shape : ChoiceShape
        Of the choice, or of a batch of its rows.
    members : int
        How many there are; they are known by their places among the sorted names.
    """

    def __init__(self, master: bytes, shape: ChoiceShape, members: int) -> None:
        self.keys = [
            hmac.digest(master, b"member" + place.to_bytes(4, "little"), "sha256")
            for place in range(members)
        ]
        self._rounds = shape.rounds

    def corrections(self) -> Words:
        """Return the corrections of all rounds, one after the other."""
        parts = [self._correct(place, pairs) for place, pairs in enumerate(self._rounds)]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *parts])

    def _correct(self, place: int, pairs: int) -> Words:
        """Return what a round's words must be changed by so that they belong together."""
        sizes = RoundSizes.of(pairs)
        free, summed, xored = (np.zeros(size, dtype=np.uint64)
                               for size in (sizes.free, sizes.summed, sizes.xored))  # fmt: skip
        hidden = np.zeros(pairs, dtype=np.uint64)
        for key in self.keys:
            words = _draw(key, place, sizes)
            hidden += words[:pairs]
            free ^= words[: sizes.free]
            summed += words[sizes.free : sizes.free + sizes.summed]
            xored ^= words[sizes.free + sizes.summed :]
        shares = RoundShares.of(np.concatenate([free, summed, xored]), sizes)
        bit = from_bits(shares.xored_bit, pairs) & _ONE
        wanted = self._bits_of(hidden)
        for masks in shares.masks:
            named = dict(zip(HIDDEN, masks, strict=True))
            wanted += [_product(named, factors) for factors in PRODUCTS]
        return np.concatenate(
            [np.concatenate([bit, bit * hidden]) - summed, np.concatenate(wanted) ^ xored]
        )

    @staticmethod
    def _bits_of(number: Words) -> list[Words]:
        """Return the bits of a number, and their products."""
        return [number, products_of_fours(number).ravel()]

    def digests(self) -> bytes:
        """Return what everybody is shown first: a digest for each member."""
        corrections = self.corrections()
        return b"".join(
            digest_of(key, part)
            for key, part in zip(self.keys, parts_of(corrections, len(self.keys)), strict=True)
        )


def parts_of(corrections: Words, members: int) -> list[Words]:
    """Return the parts of the corrections that members get: equally long, but for a word."""
    return np.array_split(corrections, members)


def digest_of(key: bytes, part: Words) -> bytes:
    """Return the digest of what one member gets."""
    return hashlib.sha256(key + part.astype("<u8", copy=False).tobytes()).digest()


def draw_rounds(
    key: bytes, part: Words, place: int, shape: ChoiceShape, members: int
) -> Iterator[RoundShares]:
    """Yield a member's shares, round by round; ``place`` is its place among the members."""
    sizes = [RoundSizes.of(pairs) for pairs in shape.rounds]
    total = sum(size.corrected for size in sizes)
    each, more = divmod(total, members)
    start = place * each + min(place, more)
    begin = 0
    for number, size in enumerate(sizes):
        words = _draw(key, number, size).copy()
        end = begin + size.corrected
        first, last = max(begin, start), min(end, start + len(part))
        if first < last:
            mine = np.zeros(size.corrected, dtype=np.uint64)
            mine[first - begin : last - begin] = part[first - start : last - start]
            cut = size.free + size.summed
            words[size.free : cut] += mine[: size.summed]
            words[cut:] ^= mine[size.summed :]
        begin = end
        yield RoundShares.of(words, size)


def check_size(part: object, place: int, shape: ChoiceShape, members: int) -> None:
    """Raise if these are not as many corrections as a member gets."""
    total = sum(RoundSizes.of(pairs).corrected for pairs in shape.rounds)
    size = total // members + (place < total % members)
    if not (isinstance(part, np.ndarray) and part.shape == (size,) and part.dtype == np.uint64):
        raise FederationError("this is not the randomness of a choice")


def _draw(key: bytes, place: int, sizes: RoundSizes) -> Words:
    """Return all words that a member draws for a round, before corrections."""
    own = hmac.digest(key, place.to_bytes(4, "little"), "sha256")
    return key_stream(own, sizes.free + sizes.corrected)


def said_of(key: bytes, round_name: bytes, shown: Sequence[bytes], place: int) -> int:
    """Return what a member says on which deal is kept, after digests were shown.

    By a key that only the members have. Whoever lacks it knows what is kept when *all* members have
    said theirs, and nothing before: so none of them can be asked in place of another.
    """
    about = b"kept" + place.to_bytes(4, "little") + round_name + b"".join(shown)
    return int.from_bytes(hmac.digest(key, about, "sha256")[:16], "little") % len(shown)


def kept_of(said: Iterable[int], deals: int) -> int:
    """Return which deal is kept, by what all members say."""
    return sum(said) % deals


def checked_by(place: int, kept: int, deals: int, members: int) -> list[int]:
    """Return which deals a member checks: each of those not kept is checked by one of them."""
    others = [number for number in range(deals) if number != kept]
    return others[place::members]
