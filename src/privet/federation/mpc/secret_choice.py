"""Which of several options is the best by all parties' rows, when nobody may see a sum.

Every party has numbers (rows by options); in each row the option with the largest sum over the
parties is to be found. From the sums may be taken *terms*: the least of several linear forms of
other sums, and what halvings make of it. So an option can be judged by the class counts that it
gives in all parties' rows together.

Modulo 2^64 a party's own numbers are its *share* of the sums, and sums, differences and multiples
of shares are shares again. The rest needs *correlated randomness* (:mod:`.dealing`). A dealer draws
random numbers and gives each party a share of them; it never sees what they hide. Linear forms,
the two numbers of each halving, and then options are compared in pairs, round by round, with four
openings each:

* the difference of a pair, plus a dealt number, is opened among the parties (it is uniform);
* its sign follows from the opened number and the shared bits of the dealt one, by the borrow out of
  ever longer groups of bits. Groups of four bits need nothing opened, since the products of the
  dealt number's bits are dealt. Twice, four groups become one: their bits are opened under dealt
  ones, whose products are dealt. A word holds the bits of 16 or 64 pairs there;
* the sign, which is shared, too, is opened under a dealt bit; times the difference it gives the
  larger of the two.

A number carries its option in its lowest bits. In the end these are opened; the rest is hidden by
multiples that every party adds for itself. What is opened among the parties passes the coordinator
under a key that only they have (:meth:`~privet.federation.mpc.MaskKeys.common_pad`), each party's
words by themselves and with a tag, so that it cannot change them. All in words of 64 bits, whole
arrays at a time.

It holds against parties and a coordinator that follow the protocol, as long as the dealer does not
pool what it knows with a party. A dealer that deals what does not belong together is caught with
probability ``1 - 1 / deals``. Our own code because the library of the field that we tried, MPyC,
needs a network of its own and a process per party, and works on whole numbers of Python, not on
words; it is the oracle of the tests. Proof: ``docs/proofs/federation.md``.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError
from privet.federation.mpc.dealing import (
    BORROWS,
    DIGEST,
    FOURS,
    HIDDEN,
    LOWEST,
    MOST_DEALS,
    PASSES,
    PRODUCTS,
    CheatingDealer,
    ChoiceShape,
    Deal,
    RoundShares,
    RoundSizes,
    Words,
    check_size,
    checked_by,
    digest_of,
    draw_rounds,
    from_bits,
    halves,
    kept_of,
    least_deals,
    pack,
    said_of,
    to_bits,
)
from privet.federation.mpc.masks import MaskKeys, fingerprint, key_stream

#: Words that a party sends to the others, and the tag by which they know them.
Tagged = tuple[Words, bytes]
#: A computation that sends words, and reads what was opened.
T = TypeVar("T")
Exchange = Generator[Any, Any, T]

#: No row has more options: numbers keep their range.
MOST_OPTIONS = 2**17
_ONE, _TOP = np.uint64(1), np.uint64(63)
_CHEATED = (
    "what was dealt for a choice is not what was shown, or does not belong together: the dealer "
    "cheats, or somebody on the way. Nothing was opened; do not go on with this dealer"
)


def openings(shape: ChoiceShape) -> Iterator[tuple[int, bool]]:
    """Yield how many words every opening has, and whether all parties read it; the last is not."""
    for pairs in shape.rounds:
        sizes = RoundSizes.of(pairs)
        yield pairs, True
        yield from ((len(HIDDEN) * step, True) for step in sizes.steps)
        yield sizes.steps[-1], True
    yield shape.rows, False


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
        self._keys, self._members = keys, tuple(sorted(members))
        self._place = self._members.index(keys.name)
        #: How many take part.
        self.members = len(self._members)
        #: What the choice is called; with what was dealt, once that was shown.
        self._asked = self._round_name = round_name
        #: How many deals it wants to be shown.
        self.least_deals = least_deals(len(self._members), 0)
        #: Whether it has said its part of which deal is kept, and does not know yet that all found
        #: what was dealt right.
        self.unproved = False
        #: One of them adds what is public.
        self._leads = self._place == 0
        self._step = 0
        self._exchange = self._run(np.asarray(scores), np.asarray(public), terms)
        next(self._exchange)

    def step(self, given: Any) -> int | Tagged | Words:
        """Return this party's next words.

        For every batch of rows it is given the digests of all deals, and says its part of which one
        is kept, or, if these are too few, how many it wants to be shown, as a number below 0; then
        the masters of those that it checks, and its own share; then, again and again, what the
        members opened. Its last words tell, with the others', which options are chosen.
        """
        try:
            found: int | Tagged | Words = self._exchange.send(given)
        except StopIteration:
            raise FederationError("this choice is over") from None
        return found

    def _run(
        self, scores: NDArray[np.int64], public: NDArray[np.int64], terms: LossTerms | None
    ) -> Exchange[None]:
        rows, options = scores.shape
        shape = ChoiceShape(rows, options) if terms is None else terms.shape(options)
        if self._leads:
            scores = scores + public
        first = 0
        sent: Any = None
        for some in shape.batches():
            shown = yield sent
            randomness = yield from self._receive(shown, some)
            mine = slice(first, first + some.rows)
            shares = scores[mine].view(np.uint64)
            if terms is not None:
                losses = yield from self._losses(terms, mine, randomness)
                shares = shares + terms.sums(losses, options)
            sent = yield from self._choose(shares, randomness)
            first += some.rows
        yield sent

    def _receive(self, shown: Any, shape: ChoiceShape) -> Exchange[Iterator[RoundShares]]:
        """Return this party's shares of a deal, after others were checked."""
        members = len(self._members)
        while True:
            if (
                type(shown) is not list
                or len(shown) > MOST_DEALS
                or any(type(each) is not bytes or len(each) != DIGEST * members for each in shown)
            ):
                raise FederationError("these are no deals to keep one of")
            if len(shown) >= self.least_deals:
                break
            if self.least_deals > MOST_DEALS:
                raise FederationError(
                    "too many choices were given up while what was dealt was checked: this party "
                    "joins no more of them"
                )
            shown = yield -self.least_deals
        # Who was shown something else has other masks and tags from here on.
        self._round_name = fingerprint(self._asked, self._step, shown)
        key = self._keys.common_key()
        said = [said_of(key, self._round_name, shown, place) for place in range(members)]
        kept = kept_of(said, len(shown))
        self.unproved = True
        dealt = yield said[self._place]
        checked = checked_by(self._place, kept, len(shown), members)
        if type(dealt) is not tuple or len(dealt) != 3 or not _are_masters(dealt[0], len(checked)):
            raise FederationError("this is not the randomness of a choice")
        masters, sealed, part = dealt
        check_size(part, self._place, shape, members)
        for number, master in zip(checked, masters, strict=True):
            if Deal(master, shape, members).digests() != shown[number]:
                raise CheatingDealer(_CHEATED)
        key = self._keys.open_dealt(sealed, fingerprint(shown))
        mine = shown[kept][DIGEST * self._place : DIGEST * (self._place + 1)]
        if digest_of(key, part) != mine:
            raise CheatingDealer(_CHEATED)
        return draw_rounds(key, part, self._place, shape, members)

    def _losses(
        self, terms: LossTerms, rows: slice, randomness: Iterator[RoundShares]
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

    def _choose(self, shares: Words, randomness: Iterator[RoundShares]) -> Exchange[Words]:
        """Return words whose sum says which option of each row is the largest."""
        rows, options = shares.shape
        shares = shares << np.uint64(_width(options))
        if self._leads:  # the first of equal ones is the largest
            shares = shares + np.arange(options - 1, -1, -1).astype(np.uint64)
        largest = yield from self._largest(shares, randomness)
        self.unproved = False  # also where nothing was compared
        # The lowest bits only: what is above them is hidden by this party's own numbers.
        last = largest + (_random(rows) << np.uint64(_width(options)))
        return np.asarray(last + self._keys.mask(self._members, self._next(), rows))

    def _largest(self, shares: Words, randomness: Iterator[RoundShares]) -> Exchange[Words]:
        """Return shares of the largest number of each row."""
        rows = len(shares)
        for half in halves(shares.shape[1]):
            left, right = shares[:, :half], shares[:, half : 2 * half]
            difference, dealt = (left - right).ravel(), next(randomness)
            opened = yield from self._open(difference + dealt.hidden, xor=False)
            larger = yield from self._is_left(opened, dealt)
            # The larger one is the right one plus bit times difference; the bit is opened under a
            # dealt bit, whose product with the dealt number is dealt, too.
            flipped = yield from self._open(larger ^ dealt.xored_bit, xor=True)
            product = opened * dealt.bit - dealt.product
            unlike = from_bits(flipped, opened.size) & _ONE
            product = np.where(unlike, difference - product, product)
            shares = np.concatenate(
                [right + product.reshape(rows, half), shares[:, 2 * half :]], axis=1
            )
        return shares[:, 0]

    def _is_left(self, opened: Words, dealt: RoundShares) -> Exchange[Words]:
        """Return shares of whether the left one is larger: the sign of ``opened - hidden``.

        A bit for every pair, as :func:`~privet.federation.mpc.dealing.to_bits` has them.
        """
        borrows, passes = self._by_fours(opened, dealt)
        for number, digits in enumerate((_of_sixteen, _of_all)):
            borrows, passes = yield from self._join_groups(
                digits(borrows), digits(passes), dealt.masks[number], dealt.products[number]
            )
        found = to_bits(dealt.xored >> _TOP) ^ borrows
        if self._leads:
            found = found ^ to_bits((opened >> _TOP) ^ _ONE)
        return np.asarray(found)

    def _by_fours(self, opened: Words, dealt: RoundShares) -> tuple[Words, Words]:
        """Return whether each four of the bits below the sign make a borrow, or pass one on.

        A bit makes one if the dealt bit is set and the opened one is not, and passes one on if they
        are alike: all of it are products of dealt bits, times what is public.
        """
        bits, given = dealt.xored << _ONE, ~opened << _ONE
        hidden: dict[tuple[str, ...], Words] = {
            (name,): _bit(bits, 3 - place) for place, name in enumerate(PASSES)
        }
        for place, factors in enumerate(FOURS):
            hidden[factors] = _bit(dealt.fours[place // 4], place % 4)
        seen = {name: _bit(given, 3 - place) for place, name in enumerate(PASSES)}
        highest = PASSES[0]
        passes = hidden[highest,] ^ seen[highest] if self._leads else hidden[highest,]
        borrows = hidden[highest,] & seen[highest]
        for place, name in enumerate(PASSES[1:], 1):
            product = _product(seen, hidden, PASSES[:place], (name,))
            borrows = borrows ^ (seen[name] & product)
            passes = product ^ (seen[name] & passes)
        return borrows, passes

    def _join_groups(
        self, borrows: list[Words], passes: list[Words], masks: Words, products: Words
    ) -> Exchange[tuple[Words, Words]]:
        """Return whether four groups make a borrow together, or pass one on; the highest first."""
        factors = np.concatenate([*passes, *borrows[1:]])
        opened = yield from self._open(factors ^ masks.ravel(), xor=True)
        seen = dict(zip(HIDDEN, opened.reshape(masks.shape), strict=True))
        hidden: dict[tuple[str, ...], Words] = {
            (name,): mask for name, mask in zip(HIDDEN, masks, strict=True)
        }
        hidden.update(zip(PRODUCTS, products, strict=True))
        found, through = borrows[0], passes[0]
        for place, (borrow, passing) in enumerate(zip(BORROWS, PASSES[1:], strict=True), 1):
            above = PASSES[:place]
            found = found ^ _product(seen, hidden, above, (borrow,)) ^ (seen[borrow] & through)
            through = _product(seen, hidden, above, (passing,)) ^ (seen[passing] & through)
        return found, through

    def _open(self, words: Words, *, xor: bool) -> Exchange[Words]:
        """Send words, and return their sum, or their XOR, over all parties."""
        round_name = self._next()
        mask = self._keys.mask(self._members, round_name, words.size, xor=xor)
        key = self._keys.common_pad(round_name, words.size)
        sent = words ^ mask if xor else words + mask
        if self._leads:
            sent = sent ^ key if xor else sent + key
        others = yield sent, self._keys.tag(round_name, self._keys.name, sent)
        if type(others) is not list or len(others) != len(self._members) - 1:
            raise FederationError("this is not what a choice has to open")
        names = [name for name in self._members if name != self._keys.name]
        for name, each in zip(names, others, strict=True):
            if not (
                type(each) is tuple
                and len(each) == 2
                and _are_words(each[0], words.shape)
                and type(each[1]) is bytes
            ):
                raise FederationError("this is not what a choice has to open")
            if not hmac.compare_digest(self._keys.tag(round_name, name, each[0]), each[1]):
                raise FederationError(
                    "what the parties open was changed on the way, or they were dealt different "
                    "things: the choice ends, and nothing of it was read"
                )
            sent = sent ^ each[0] if xor else sent + each[0]
        # All have sent something under this name: they were shown the same, and found it right.
        self.unproved = False
        return np.asarray(sent ^ key if xor else sent - key)

    def _next(self) -> bytes:
        self._step += 1
        return self._round_name + self._step.to_bytes(4, "little")


def _product(
    seen: Mapping[str, Words],
    hidden: Mapping[tuple[str, ...], Words],
    factors: tuple[str, ...],
    last: tuple[str, ...],
) -> Words:
    """Return shares of a product: of some factors, and of what hides another.

    Each factor is what was seen of it, XOR what hides it: so this is a sum of dealt products, times
    what was seen of the others.
    """
    if not factors:
        return hidden[last]
    *above, name = factors
    before = tuple(above)
    return _product(seen, hidden, before, (name, *last)) ^ (
        seen[name] & _product(seen, hidden, before, last)
    )


def _bit(words: Words, place: int) -> Words:
    """Return one bit of every four, as their lowest."""
    return (words >> np.uint64(place)) & LOWEST


def _of_sixteen(words: Words) -> list[Words]:
    """Return what words have of four groups of four bits, in words of 16 pairs each."""
    lowest = np.uint64(0x0001_0001_0001_0001)
    return [pack((words >> np.uint64(4 * place)) & lowest, 16, 1) for place in (3, 2, 1, 0)]


def _of_all(words: Words) -> list[Words]:
    """Return what words of 16 pairs have of four groups of 16 bits, in words of 64 pairs each."""
    lowest = np.uint64(0xFFFF)
    return [pack((words >> np.uint64(16 * place)) & lowest, 4, 16) for place in (3, 2, 1, 0)]


def _are_masters(found: object, count: int) -> bool:
    return (
        type(found) is list
        and len(found) == count
        and all(type(master) is bytes and len(master) == 32 for master in found)
    )


def _width(options: int) -> int:
    return (options - 1).bit_length()


def _are_words(found: object, shape: tuple[int, ...]) -> bool:
    return isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.uint64


def _random(size: int) -> Words:
    return key_stream(secrets.token_bytes(32), size)
