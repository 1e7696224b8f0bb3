"""Dealers: those who draw the random numbers that secret choices take, and hold no rows.

The coordinator can be the dealer, or another organisation. Whoever it is must pool what it knows
with no party: it could tell what the numbers hide that parties open. What it gives a party is
sealed for that party, and passes the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Self

from privet.errors import FederationError
from privet.federation.mpc import (
    MOST_DEALS,
    MOST_OPTIONS,
    ChoiceShape,
    Deal,
    PrivateKey,
    checked_by,
    dealing_key,
    fingerprint,
    parts_of,
    round_key,
    seal,
)
from privet.federation.party import Lost, Refused
from privet.privacy.coins import draw_bytes

#: Deals that were shown and not asked for yet, at most; and words of one of them.
_MOST_OPEN, _MOST_WORDS = 64, 2**27


class Dealer:
    """Deals for secret choices.

    Parameters
    ----------
    name : str, default="dealer"
        By which it is known; no party has the same.

    Examples
    --------
    >>> from privet.federation import Dealer, FederatedTable, Party
    >>> from privet import Budget, Numeric, Schema
    >>> schema = Schema({"dose": Numeric(0, 10)}, "cured", classes=[0, 1])
    >>> clinics = [Party(name, [[1.0]], [0], schema, Budget(1.0)) for name in ("north", "south")]
    >>> table = FederatedTable(clinics, dealer=Dealer("notary"))
    """

    def __init__(self, name: str = "dealer") -> None:
        if not isinstance(name, str) or not name:
            raise FederationError("a dealer's name is text, and not empty")
        self.name = name
        # A coordinator that deals, and has to go on with a run, deals the same again.
        self._key = PrivateKey(draw_bytes(32))
        self._roster: dict[str, bytes] | None = None
        self._pinned = False
        self._shown: dict[int, tuple[ChoiceShape, list[str], list[bytes], bytes]] = {}
        self._next = 1
        self._one_at_a_time = RLock()

    @property
    def public_key(self) -> bytes:
        """What the parties need: hand it out, if the coordinator is not trusted to."""
        return self._key.public_key

    def join(self, roster: Mapping[str, bytes]) -> None:
        """Read the names and public keys of the parties, from their owners.

        As for :meth:`Party.join <privet.federation.Party.join>`: any other roster is refused then.
        """
        self._join(roster)
        self._pinned = True

    def _join(self, roster: Mapping[str, bytes]) -> None:
        if not isinstance(roster, Mapping) or not all(
            isinstance(name, str) and isinstance(key, bytes) and len(key) == 32
            for name, key in roster.items()
        ):
            raise FederationError("a roster has a public key for every party's name")
        if self.public_key in roster.values() or self.name in roster:
            raise FederationError("a party of the roster cannot deal: it would see the sums")
        if self._pinned and dict(roster) != self._roster:
            raise FederationError("this dealer has its roster; another one is refused")
        self._roster = dict(roster)
        self._shown.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget all that was dealt."""
        self._roster = None
        self._shown.clear()

    def answer(self, target: int, question: str, *given: Any, **options: Any) -> Any:
        """Answer a question, or refuse: as a :class:`~privet.federation.Party` does.

        ``public_key``; ``join``, with a roster; ``deal``, with the shape of a choice, its members
        and a number of deals: the number of the answer, and the digests of all deals; ``reveal``,
        about such an answer, with which deal is kept: what every member gets. Once.
        """
        del target
        known: dict[str, Callable[..., Any]] = {
            "public_key": self._public_key,
            "join": self._join,
            "deal": self._deal,
            "reveal": self._reveal,
        }
        if question not in known or options:
            raise Refused(f"dealer {self.name!r} does not know the question {question!r}")
        try:
            with self._one_at_a_time:
                return known[question](*given)
        except FederationError:
            raise
        except Exception:
            lost = Lost(f"dealer {self.name!r} failed")
        raise lost

    def _public_key(self) -> bytes:
        return self.public_key

    def _deal(self, shape: Any, members: Any, count: Any) -> tuple[int, list[bytes]]:
        """Make deals, and return the digests of what everybody would get."""
        if self._roster is None:
            raise Refused(f"dealer {self.name!r} has no roster yet")
        if not (
            type(shape) is tuple
            and len(shape) == len(ChoiceShape._fields)
            and all(type(size) is int and 0 <= size < 2**31 for size in shape)
            and 1 <= shape[1] <= MOST_OPTIONS
            and shape[3] >= 1
            and shape[4] <= 64
            and type(members) is list
            and len(members) > 1
            and set(members) <= set(self._roster)
            and members == sorted(set(members))
            and type(count) is int
            and len(members) < count <= MOST_DEALS
        ):
            raise Refused(f"dealer {self.name!r} does not know such a choice")
        wanted = ChoiceShape(*shape)
        if wanted.randomness_size > _MOST_WORDS or len(wanted.batches()) != 1:
            raise Refused(f"dealer {self.name!r} refuses: the choice is too large")
        if len(self._shown) >= _MOST_OPEN:
            raise Refused(f"dealer {self.name!r} refuses: too many deals were never asked for")
        masters = [draw_bytes(32) for _ in range(count)]
        digests = [Deal(master, wanted, len(members)).digests() for master in masters]
        number, self._next = self._next, self._next + 1
        self._shown[number] = wanted, members, masters, fingerprint(digests)
        return number, digests

    def _reveal(self, number: Any, kept: Any) -> dict[str, tuple[Any, ...]]:
        """Return what every member gets: masters of what it checks, and of what is kept its own.

        A deal is gone after that: shown twice, no part of it would be secret.
        """
        if type(number) is not int or type(kept) is not int or number not in self._shown:
            raise Refused(f"dealer {self.name!r} has no such deals any more")
        shape, members, masters, name = self._shown.pop(number)
        if not 0 <= kept < len(masters) or self._roster is None:
            raise Refused(f"dealer {self.name!r} has no such deal")
        deal = Deal(masters[kept], shape, len(members))
        parts = parts_of(deal.corrections(), len(members))
        found = {}
        for place, (member, key, part) in enumerate(zip(members, deal.keys, parts, strict=True)):
            checked = checked_by(place, kept, len(masters), len(members))
            shared = dealing_key(
                self._key, self._roster[member], self._roster, member, self.public_key
            )
            sealed = seal(round_key(shared, name), key)
            found[member] = ([masters[other] for other in checked], sealed, part)
        return found
