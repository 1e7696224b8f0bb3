"""Sums of which nobody sees a term: masks that cancel, and who may take part.

Every two parties agree on a key (X25519), from which both draw the same mask for every round
(ChaCha20); one adds it, the other takes it away, modulo 2^64. Whoever lacks the keys sees uniform
numbers, and their sum over all members of a round is the sum of what they hide. The name of a round
is a fingerprint of all that it is about: members that were asked different things share no mask,
and their sum is noise. Keys are derived from all names and public keys of the roster: parties with
different rosters have no key in common. The parties must get each other's public keys from the
owners, not from whoever asks; a roster is read once.

Keys and masks come from the ``cryptography`` library (``pip install privet[federation]``).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError


def check_cryptography() -> None:
    """Raise if the library is missing that keys and masks come from."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise FederationError(
            "secure sums need the library cryptography: pip install privet[federation]"
        ) from None


class MaskKeys:
    """One party's keys.

    Parameters
    ----------
    name : str
        By which the others know it.
    """

    def __init__(self, name: str) -> None:
        check_cryptography()
        self.name = name
        self._private = PrivateKey()
        self._roster: dict[str, bytes] | None = None
        self._shared: dict[str, bytes] = {}
        self._rounds: set[bytes] = set()
        self._common: bytes | None = None
        self._dealer: bytes | None = None
        #: What was dealt to this party.
        self._dealt: set[bytes] = set()

    @property
    def public_key(self) -> bytes:
        """What the other parties need."""
        return self._private.public_key

    @property
    def peers(self) -> frozenset[str]:
        """The other parties, once the roster is read."""
        return frozenset(self._shared)

    @property
    def known(self) -> bytes:
        """A fingerprint of whom this party takes part with: names and public keys of all."""
        return fingerprint(sorted((self._roster or {}).items()), self._dealer)

    def join(self, roster: Mapping[str, bytes], dealer: bytes | None = None) -> None:
        """Read the public keys of all parties, once, and that of the dealer, once."""
        if self._roster is None:
            self._shared = self._agree(roster)
            self._roster = dict(roster)
        elif dict(roster) != self._roster:
            raise FederationError("this party has its roster; another one is refused")
        if dealer is not None and dealer != self._dealer:
            if self._dealer is not None:
                raise FederationError("this party has its dealer; another one is refused")
            if dealer in self._roster.values():
                raise FederationError("a party of the roster cannot deal: it would see the sums")
            self._private.agree(dealer)
            self._dealer = dealer

    def _agree(self, roster: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the key that this party shares with each of the others."""
        if not isinstance(roster, Mapping):
            raise FederationError("a roster has a public key for every party's name")
        if not all(isinstance(name, str) for name in roster):
            raise FederationError("the names of a roster are text")
        if roster.get(self.name) != self.public_key:
            raise FederationError("the roster has another key for this party")
        if len(set(roster.values())) < len(roster) or len(roster) < 2:
            raise FederationError("a roster needs at least two parties, each with its own key")
        everybody = sorted(roster.items())
        return {
            name: self._private.agree(key, "masks", everybody, sorted((self.name, name)))
            for name, key in everybody
            if name != self.name
        }

    def seal(self) -> dict[str, bytes]:
        """Return a key for all parties, sealed for each of the others; the first party makes it.

        The others have nothing to seal. The key hides from whoever passes words on what is meant
        for the parties alone (:meth:`common_pad`).
        """
        if not self._shared or self.name > min(self._shared):
            return {}
        if self._common is None:
            self._common = secrets.token_bytes(32)
        return {other: seal(self._sealing(other), self._common) for other in sorted(self._shared)}

    def unseal(self, sealed: Mapping[str, bytes]) -> None:
        """Read the key that the first party sealed, once."""
        if self._common is not None:
            return
        try:
            self._common = unseal(self._sealing(min(self._shared)), sealed[self.name])
        except (KeyError, TypeError, ValueError, FederationError):
            raise FederationError("this is not what the first party sealed") from None

    def _sealing(self, other: str) -> bytes:
        return round_key(self._shared[other], b"privet sealing")

    def open_dealt(self, sealed: Any, name: bytes) -> bytes:
        """Return the key that the dealer sealed for this party, for a deal of some name. Once."""
        if self._dealer is None or self._roster is None:
            raise FederationError("this party knows no dealer")
        key = dealing_key(self._private, self._dealer, self._roster, self.name, self._dealer)
        found = unseal(round_key(key, name), sealed)
        if found in self._dealt:
            raise FederationError(
                "this was dealt before: numbers that hide two things hide neither. The choice ends"
            )
        self._dealt.add(found)
        return found

    def common_key(self) -> bytes:
        """Return the key that all parties have, or raise if it was not read yet."""
        if self._common is None:
            raise FederationError("this party has no key in common with the others")
        return self._common

    def common_pad(self, round_name: bytes, size: int) -> NDArray[np.uint64]:
        """Return the words of a round that all parties know, and nobody else."""
        return key_stream(round_key(self.common_key(), round_name), size)

    def tag(self, round_name: bytes, sender: str, words: NDArray[np.uint64]) -> bytes:
        """Return 16 bytes by which the others know that a member sent some words in a round.

        All members have the key: one of them could make the tag of another.
        """
        from cryptography.hazmat.primitives.poly1305 import Poly1305

        # A key of its own for every tag, as Poly1305 needs it.
        key = round_key(self.common_key(), fingerprint("tag", round_name, sender))
        return Poly1305.generate_tag(key, words.astype("<u8", copy=False).tobytes())

    def mask(
        self, members: Sequence[str], round_name: bytes, size: int, *, xor: bool = False
    ) -> NDArray[np.uint64]:
        """Return this party's mask of a round, which no other round will have.

        Parameters
        ----------
        members : sequence of str
            Who takes part, this party among them.
        round_name : bytes
            What the round is called: a :func:`fingerprint` of all that decides what is summed and
            with how much noise; used once.
        size : int
            How many numbers are hidden.
        xor : bool, default=False
            Whether the masks cancel by XOR, not by sums.
        """
        if round_name in self._rounds:
            raise FederationError("this round was answered before; its mask hides nothing twice")
        others = set(members) - {self.name}
        if self.name not in members or not others <= self.peers or not others:
            raise FederationError("a round needs members of the roster, this party among them")
        self._rounds.add(round_name)
        # Members are part of the round's name: other members make other masks.
        name = fingerprint(round_name, sorted(members))
        total = np.zeros(size, dtype=np.uint64)
        for other in sorted(others):
            stream = key_stream(round_key(self._shared[other], name), size)
            if xor:
                total = total ^ stream
            else:
                total = total + stream if self.name < other else total - stream
        return total


class PrivateKey:
    """An X25519 key.

    Parameters
    ----------
    secret : bytes, optional
        The 32 bytes that it is made of; a new key if None.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        check_cryptography()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = (
            X25519PrivateKey.generate()
            if secret is None
            else X25519PrivateKey.from_private_bytes(secret)
        )
        self.public_key = self._private.public_key().public_bytes_raw()

    def agree(self, public_key: bytes, *bound: Any) -> bytes:
        """Return a key in common with somebody else, for what is bound to it and nothing else."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(public_key))
        except (TypeError, ValueError):
            raise FederationError("the roster has something that is no key") from None
        return HKDF(hashes.SHA256(), 32, None, fingerprint("privet", *bound)).derive(secret)


def dealing_key(
    own: PrivateKey, other: bytes, roster: Mapping[str, bytes], member: str, dealer: bytes
) -> bytes:
    """Return the key that a dealer and a member of a roster have in common."""
    return own.agree(other, "dealing", sorted(roster.items()), member, dealer)


def seal(key: bytes, secret: bytes) -> bytes:
    """Return a secret that whoever has the key can read; a key seals one secret only."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key).encrypt(bytes(12), secret, None)


def unseal(key: bytes, sealed: Any) -> bytes:
    """Return what was sealed under a key; raise if it was not."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed, None)
    except (InvalidTag, TypeError, ValueError):
        raise FederationError("this is not what was sealed") from None


def fingerprint(*things: Any) -> bytes:
    """Return 32 bytes that identify some values; by exact values, not by how they are printed."""
    return hashlib.sha256(_write(things)).digest()


def _write(thing: Any) -> bytes:
    """Return plain things and dataclasses of them as bytes, from which they could be read again.

    Every part begins with its kind and its length, so that no other parts read the same.
    """
    body: bytes
    if thing is None or isinstance(thing, bool):
        kind, body = b"t", str(thing).encode()
    elif isinstance(thing, int | float | Fraction | np.integer | np.floating):
        kind, body = b"n", _write_number(thing)
    elif isinstance(thing, str):
        kind, body = b"s", thing.encode()
    elif isinstance(thing, bytes):
        kind, body = b"b", thing
    elif isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        little = np.ascontiguousarray(thing, thing.dtype.newbyteorder("<"))
        kind, body = b"a", _write(little.dtype.str) + _write(thing.shape) + little.tobytes()
    elif isinstance(thing, list | tuple):
        if len(thing) > 1 and set(map(type, thing)) == {int} and max(map(abs, thing)) < 2**63:
            kind, body = b"i", np.array(thing, "<i8").tobytes()  # codes by the thousand
        else:
            kind, body = b"l", b"".join(map(_write, thing))
        kind = kind.upper() if isinstance(thing, tuple) else kind
    elif isinstance(thing, dict):
        kind, body = b"d", b"".join(map(_write, thing.items()))  # features have an order
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = [(field.name, getattr(thing, field.name)) for field in fields(thing)]
        kind, body = b"o", _write([type(thing).__name__, parts])
    else:
        raise TypeError("only plain things have a fingerprint")
    return kind + len(body).to_bytes(8, "little") + body


def _write_number(number: Any) -> bytes:
    if number in (math.inf, -math.inf):
        return str(float(number)).encode()
    exact = Fraction(number.item() if isinstance(number, np.generic) else number)
    return f"{exact.numerator:x}/{exact.denominator:x}".encode()


def round_key(key: bytes, name: bytes) -> bytes:
    """Return the key of a round.

    Each round has a key of its own, not a nonce: the asker, who influences the name, could find two
    names with the same twelve bytes of nonce.
    """
    return hmac.digest(key, name, "sha256")


def key_stream(key: bytes, size: int) -> NDArray[np.uint64]:
    """Return words of ChaCha20, by a key that is used for nothing else."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None)
    return np.frombuffer(cipher.encryptor().update(bytes(8 * size)), dtype="<u8")


def open_sum(masked: Sequence[NDArray[np.uint64]], *, xor: bool = False) -> NDArray[np.uint64]:
    """Return the sum, or the XOR, that the members of a round hid."""
    total = np.zeros_like(masked[0])
    for part in masked:
        total = total ^ part if xor else total + part
    return total
