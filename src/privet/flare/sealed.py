"""A line between a coordinator and a party that somebody else carries.

NVFlare has keys and certificates of its own, which say who belongs to a project. They do not say
who may ask a party, nor whose answers a coordinator takes: that is said by the fingerprints that
owners told each other, here as over gRPC. So the two ends prove to each other that they have the
keys, agree on a secret of this line alone, and seal everything with it. Who carries the frames can
hold them back, and no more.

A frame is a letter, and bytes. The coordinator asks, the party answers:

=======  ===================================  ===============================================
letter   from the coordinator                 from the party
=======  ===================================  ===============================================
``K``    the study, and a new X25519 key      a new key, and its signature under both keys
``G``    its signature under both keys        its greeting, or why it takes no part, sealed
``E``    a number and a Request, sealed       the same number and a Reply, sealed
``R``                                         a refusal, coded text
=======  ===================================  ===============================================

Signatures are of the study, the party's name and both new keys, so none of them is good for another
line. Every number has a key of its own in each direction, and a party takes each number once.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from privet.errors import FederationError, PrivetError
from privet.federation import Refused
from privet.federation.mpc.masks import PrivateKey, seal, unseal
from privet.federation.wire import MOST_BYTES, MOST_REFUSAL, WireError, decode, encode
from privet.network import Answering, Certificate, Identity
from privet.network.transport import wrong_with
from privet.visible import quoted

_NUMBER = 8
#: Bytes of a frame, at most: a message, its number, its seal.
_MOST_FRAME = MOST_BYTES + 64
_NONSENSE = "this is no frame of a line of this version of privet"


class _Secret:
    """What the two ends of a line have in common, and nobody else."""

    def __init__(self, own: PrivateKey, other: bytes, facts: tuple[Any, ...]) -> None:
        self._own, self._other, self._facts = own, other, facts

    def seal(self, way: str, number: int, message: bytes) -> bytes:
        return seal(self._key(way, number), message)

    def unseal(self, way: str, number: int, sealed: bytes) -> bytes:
        return unseal(self._key(way, number), sealed)

    def _key(self, way: str, number: int) -> bytes:
        return self._own.agree(self._other, "a carried line", *self._facts, way, number)


def _facts(study: str, name: str, keys: tuple[bytes, bytes], *owners: str) -> tuple[Any, ...]:
    """Return what a line is: of whom, for what, with which keys."""
    return (study, name, *owners, *keys)


def _statement(whose: str, facts: tuple[Any, ...]) -> bytes:
    """Return what an end signs."""
    return encode(("privet: my key for a carried line", whose, *facts))


def _split(body: bytes) -> tuple[int, bytes]:
    """Return the number and the sealed message of a frame."""
    if len(body) < _NUMBER:
        raise WireError(_NONSENSE)
    return int.from_bytes(body[:_NUMBER], "little"), body[_NUMBER:]


def _opened(frame: Any) -> tuple[bytes, bytes]:
    """Return the letter and the rest of a frame."""
    if type(frame) is not bytes or not 0 < len(frame) <= _MOST_FRAME:
        raise WireError(_NONSENSE)
    return frame[:1], frame[1:]


class CoordinatorEnd:
    """The coordinator's end of a line to one party.

    Parameters
    ----------
    identity : Identity
        The coordinator's.
    study, name : str
        The study, and the party's name in it.
    party : Certificate
        The party's, of the key that is pinned.
    """

    def __init__(self, identity: Identity, study: str, name: str, party: Certificate) -> None:
        self._identity, self._study, self._name, self._party = identity, study, name, party
        self._number = 0
        self._secret: _Secret | None = None
        self._key = PrivateKey()

    def greet(self, request: Callable[[bytes], bytes], schema: str) -> dict[str, Any]:
        """Prove who asks, find out who answers; return the party's greeting.

        Parameters
        ----------
        request : function
            Carries a frame to the party, and returns the one that it answers.
        schema : str
            Digest of the study's schema.

        Raises
        ------
        FederationError
            If the party takes no part, or whoever answers is not the party.
        """
        self._identity.certificate.check_dates()
        self._party.check_dates()
        self._key, self._secret, self._number = PrivateKey(), None, 0
        first = encode({"study": self._study, "key": self._key.public_key})
        found = decode(self._expect(request(b"K" + first), b"K"))
        if type(found) is not tuple or len(found) != 2 or type(found[0]) is not bytes:
            raise WireError(_NONSENSE)
        keys = (self._key.public_key, found[0])
        owners = (self._identity.fingerprint, self._party.fingerprint)
        facts = _facts(self._study, self._name, keys, *owners)
        if not self._party.has_signed(_statement("party", facts), found[1]):
            raise FederationError(
                "whoever answers has not the party's key: its fingerprint in the study is another"
            )
        secret = _Secret(self._key, found[0], facts)
        proof = b"G" + self._identity.sign(_statement("coordinator", facts))
        sealed = self._expect(request(proof), b"G")
        greeting: Any = decode(secret.unseal("greeting", 0, sealed))
        if type(greeting) is str:
            raise FederationError(f"it takes no part: {greeting}")
        wrong = wrong_with(greeting, self._name, schema)
        if wrong is not None:
            raise FederationError(wrong)
        self._secret = secret
        plain: dict[str, Any] = greeting
        return plain

    def ask(self, request: Callable[[bytes], bytes], message: bytes) -> bytes:
        """Send a coded Request, sealed; return the coded Reply."""
        if self._secret is None:
            raise FederationError("the line is not open")
        self._number += 1
        number = self._number
        frame = b"E" + number.to_bytes(_NUMBER, "little")
        body = self._expect(request(frame + self._secret.seal("question", number, message)), b"E")
        answered, sealed = _split(body)
        if answered != number:
            raise WireError(_NONSENSE)
        return self._secret.unseal("answer", number, sealed)

    @staticmethod
    def _expect(frame: Any, letter: bytes) -> bytes:
        """Return what is in a frame of a kind; raise if it is another."""
        found, body = _opened(frame)
        if found == b"R":
            why = decode(body)
            raise Refused(why if type(why) is str else _NONSENSE)
        if found != letter:
            raise WireError(_NONSENSE)
        return body


class PartyEnd:
    """A party's end of a line: lets somebody answer what the coordinator, and only it, asks.

    Parameters
    ----------
    answering : Answering
        Who answers.
    identity : Identity
        The party's.
    coordinator : Certificate
        The coordinator's, of the key that is pinned.
    """

    def __init__(self, answering: Answering, identity: Identity, coordinator: Certificate) -> None:
        self._answering, self._identity, self._coordinator = answering, identity, coordinator
        self._study = ""
        self._offered: tuple[str, _Secret, tuple[Any, ...]] | None = None
        self._secret: _Secret | None = None
        self._last = 0
        self._lock = Lock()

    def answer(self, frame: Any) -> bytes:
        """Return the frame that answers one of the coordinator. Never raises."""
        try:
            letter, body = _opened(frame)
            with self._lock:
                if letter == b"K":
                    return self._offer(body)
                if letter == b"G":
                    return self._welcome(body)
                if letter == b"E":
                    return self._reply(body)
            raise WireError(_NONSENSE)
        except PrivetError as error:
            return refusal(str(error))
        except Exception:  # what went wrong may be about the rows
            return refusal("it failed unexpectedly")

    def _offer(self, body: bytes) -> bytes:
        found = decode(body)
        if type(found) is not dict or set(found) != {"study", "key"}:
            raise WireError(_NONSENSE)
        study, theirs = found["study"], found["key"]
        if type(study) is not str or type(theirs) is not bytes:
            raise WireError(_NONSENSE)
        self._identity.certificate.check_dates()
        self._coordinator.check_dates()
        own = PrivateKey()
        owners = (self._coordinator.fingerprint, self._identity.fingerprint)
        facts = _facts(study, self._answering.name, (theirs, own.public_key), *owners)
        self._offered = (study, _Secret(own, theirs, facts), facts)
        signature = self._identity.sign(_statement("party", facts))
        return b"K" + encode((own.public_key, signature))

    def _welcome(self, body: bytes) -> bytes:
        offered, self._offered = self._offered, None
        if offered is None:
            raise WireError(_NONSENSE)
        study, secret, facts = offered
        if not self._coordinator.has_signed(_statement("coordinator", facts), body):
            raise FederationError(
                f"whoever asks for the study {quoted(study)} has not the coordinator's key: "
                "the fingerprint in the party's policy is another"
            )
        greeting: Any
        try:
            greeting = self._answering.greet(study)
            self._study, self._secret, self._last = study, secret, 0
        except PrivetError as error:
            greeting = str(error)[:MOST_REFUSAL]
        return b"G" + secret.seal("greeting", 0, encode(greeting))

    def _reply(self, body: bytes) -> bytes:
        number, sealed = _split(body)
        if self._secret is None or number <= self._last:
            raise WireError(_NONSENSE)
        message = self._secret.unseal("question", number, sealed)
        self._last = number
        reply = self._answering.reply(self._study, message)
        return (
            b"E" + number.to_bytes(_NUMBER, "little") + self._secret.seal("answer", number, reply)
        )


def refusal(why: str) -> bytes:
    """Return the frame of a refusal."""
    text = why.encode("utf-8", "backslashreplace").decode("utf-8")
    return b"R" + encode(text[:MOST_REFUSAL])
