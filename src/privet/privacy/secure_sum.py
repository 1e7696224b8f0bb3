"""Sums of which nobody sees a term: masks that cancel, and who may take part.

Every two parties agree on a key (X25519), from which both draw the same mask for every round
(ChaCha20); one adds it, the other takes it away, modulo 2^64. Whoever lacks the keys sees uniform
numbers, and their sum over all members of a round is the sum of what they hide. The parties must
know each other's public keys from their owners, not from whoever asks: a roster is read once.

Keys and masks come from the ``cryptography`` library (``pip install privet[federation]``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from privet.errors import FederationError


class Seat:
    """One party's keys.

    Parameters
    ----------
    name : str
        By which the others know it.
    """

    def __init__(self, name: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self.name = name
        self._private = X25519PrivateKey.generate()
        self._roster: dict[str, bytes] | None = None
        self._shared: dict[str, bytes] = {}
        self._rounds: set[bytes] = set()

    @property
    def public_key(self) -> bytes:
        """What the other parties need."""
        return self._private.public_key().public_bytes_raw()

    @property
    def peers(self) -> frozenset[str]:
        """The other parties, once the roster is read."""
        return frozenset(self._shared)

    def join(self, roster: Mapping[str, bytes]) -> None:
        """Read the public keys of all parties, once."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if self._roster is not None:
            if dict(roster) != self._roster:
                raise FederationError("this party has its roster; another one is refused")
            return
        if roster.get(self.name) != self.public_key:
            raise FederationError("the roster has another key for this party")
        if len(set(roster.values())) < len(roster) or len(roster) < 2:
            raise FederationError("a roster needs at least two parties, each with its own key")
        self._roster = dict(roster)
        for name, key in roster.items():
            if name != self.name:
                secret = self._private.exchange(X25519PublicKey.from_public_bytes(key))
                self._shared[name] = HKDF(hashes.SHA256(), 32, None, b"privet masks").derive(secret)

    def mask(self, members: Sequence[str], turn: bytes, size: int) -> NDArray[np.uint64]:
        """Return this party's mask of a round, which no other round will have.

        Parameters
        ----------
        members : sequence of str
            Who takes part, this party among them.
        turn : bytes
            What the round is called; used once.
        size : int
            How many numbers are hidden.
        """
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        if turn in self._rounds:
            raise FederationError("this round was answered before; its mask hides nothing twice")
        others = set(members) - {self.name}
        if self.name not in members or not others <= self.peers or not others:
            raise FederationError("a round needs members of the roster, this party among them")
        self._rounds.add(turn)
        # Members are part of the round's name: other members make other masks.
        text = b"\0".join([turn, *(name.encode() for name in sorted(members))])
        nonce = hashlib.sha256(text).digest()[:16]
        total = np.zeros(size, dtype=np.uint64)
        for other in sorted(others):
            cipher = Cipher(algorithms.ChaCha20(self._shared[other], nonce), mode=None)
            stream = np.frombuffer(cipher.encryptor().update(bytes(8 * size)), dtype="<u8")
            total = total + stream if self.name < other else total - stream
        return total


def open_sum(masked: Sequence[NDArray[np.uint64]]) -> NDArray[np.int64]:
    """Return the sum that the members of a round hid."""
    total = np.zeros_like(masked[0])
    for part in masked:
        total = total + part
    return total.view(np.int64)
