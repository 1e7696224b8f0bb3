"""A dealer over a network: an organisation without rows that deals for secret choices.

What it may do is in ``dealer.toml`` (:class:`~privet.network.policy.DealerPolicy`). It has no books
and no journal: what it has dealt ends with its process, and the parties then connect anew
(docs/proofs/federation.md, "A dealer over a network").
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from privet import __version__
from privet.errors import PrivetError
from privet.federation import Dealer, Lost, Refused
from privet.federation.wire import Reply, Request, WireError, decode_as, encode
from privet.network.keys import Identity, check_vouched
from privet.network.policy import DealerPolicy
from privet.visible import quoted


class DealerSite:
    """Deals in studies at a place of its own. See :class:`~privet.network.Answering`.

    Parameters
    ----------
    policy : DealerPolicy
    identity : Identity
        Its key, which vouches for the key that dealt numbers are sealed with.
    tell : function, optional
        Is told what is refused.
    """

    def __init__(
        self,
        policy: DealerPolicy,
        identity: Identity,
        *,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        for parties in policy.studies.values():
            if identity.fingerprint in parties.values():
                raise Refused("a party cannot deal: one of the studies has the same key for both")
        self.name, self.policy, self.identity, self.tell = policy.name, policy, identity, tell
        self._dealers: dict[str, _Dealing] = {}
        self._lock = RLock()

    def greet(self, study: str) -> dict[str, Any]:
        """See :class:`~privet.network.Answering`. A dealer has no schema."""
        with self._lock:
            last = self._of(study).recent[0]
        return {"version": __version__, "schema": "", "name": self.name, "last": last}

    def reply(self, study: str, message: bytes) -> bytes:
        """See :class:`~privet.network.Answering`."""
        number = 0
        try:
            asked = decode_as(Request, message)
            number = asked.number
            with self._lock:
                return self._of(study).reply(asked, message)
        except (Lost, WireError):
            return encode(Reply(number, "failed"))
        except PrivetError as error:
            self.tell(f"study {quoted(study)}: {error}")
            return encode(Reply.refusal(number, str(error)))

    def close(self) -> None:
        """Forget all that was dealt."""
        with self._lock:
            for each in self._dealers.values():
                each.dealer.close()
            self._dealers.clear()

    def _of(self, study: str) -> _Dealing:
        if study not in self.policy.studies:
            raise Refused(f"dealer {self.name!r} deals in no study {quoted(study)}")
        if study not in self._dealers:
            parties = self.policy.studies[study]
            self._dealers[study] = _Dealing(study, self.name, self.identity, parties)
        return self._dealers[study]


class _Dealing:
    """What a dealer has of one study."""

    def __init__(self, study: str, name: str, identity: Identity, parties: dict[str, str]) -> None:
        self.study, self.parties = study, parties
        self.dealer = Dealer(name)
        self.vouched = identity.vouch(study, name, self.dealer.public_key)
        #: Whether anybody has asked for its key, which ends with its process.
        self.shown = False
        #: The last question and its reply: a line may break before it arrives.
        self.recent: tuple[int, bytes, bytes] = (0, b"", b"")

    def reply(self, asked: Request, message: bytes) -> bytes:
        number, known, reply = self.recent
        if asked.number == number and message == known:
            return reply
        if asked.number <= number:
            raise Refused(f"question {asked.number} is older than the last one ({number})")
        given = asked.given
        if asked.name == "join":
            if not self.shown:
                raise Refused("the dealer has come back with another key: ask for that first")
            given = tuple(map(self._roster, given))
        found = self.dealer.answer(asked.target, asked.name, *given, **asked.options)
        if asked.name == "public_key":
            found, self.shown = self.vouched, True
        reply = encode(Reply(asked.number, "answer", found))
        self.recent = asked.number, message, reply
        return reply

    def _roster(self, vouched: Any) -> dict[str, bytes]:
        """Return the keys of a roster, if each is signed by the key whose fingerprint is known."""
        if not isinstance(vouched, dict) or not vouched.keys() <= self.parties.keys():
            raise Refused(
                "the roster has a party whose fingerprint the dealer does not have: it asks the "
                "owner there for it"
            )
        return {
            name: check_vouched(self.study, name, key, self.parties[name])
            for name, key in vouched.items()
        }
