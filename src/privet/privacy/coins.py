"""Public choices by chance: which features a node looks at, which part of a table a record is in.

Privacy does not rest on them: proofs hold for any outcome, known or not. They come from a key that
is drawn without looking at a table, by numpy's generator. Each tree of a forest has a generator of
its own, so that no tree's choices depend on how another one grew.

Whoever has to repeat a run, as a coordinator of parties does that has died, lets all such choices
come from a seed that it keeps (:func:`drawing_from`). Noise has nothing to do with any of this.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privet.privacy.noise import Noise

_SOURCE: ContextVar[Callable[[int], bytes]] = ContextVar("source", default=secrets.token_bytes)


def draw_bytes(size: int) -> bytes:
    """Return random bytes that no privacy of rows rests on: of the system, or of a kept seed."""
    return _SOURCE.get()(size)


@contextmanager
def drawing_from(source: Callable[[int], bytes]) -> Iterator[None]:
    """Let :func:`draw_bytes` return what a source does, in this thread."""
    token = _SOURCE.set(source)
    try:
        yield
    finally:
        _SOURCE.reset(token)


class SeededBytes:
    """Random bytes that follow from a seed of 32 bytes, one after the other.

    Nobody who does not have the seed can tell them from other random bytes (SHAKE-256).

    Examples
    --------
    >>> seed = SeededBytes.new_seed()
    >>> SeededBytes(seed)(8) == SeededBytes(seed)(8)
    True
    """

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._drawn = 0

    @staticmethod
    def new_seed() -> bytes:
        """Return a new seed."""
        return secrets.token_bytes(32)

    def __call__(self, size: int) -> bytes:
        """Return the next bytes."""
        self._drawn += 1
        return hashlib.shake_256(self._seed + self._drawn.to_bytes(8, "little")).digest(size)


class Coins:
    """A source of public choices.

    Parameters
    ----------
    key : int
        From 0 up to 2^64. Equal keys make equal choices.
    tree : int, optional
        The tree of a forest that uses them; see :meth:`for_trees`.
    """

    def __init__(self, key: int, tree: int | None = None) -> None:
        self.key = key
        seed = np.random.SeedSequence(key, spawn_key=() if tree is None else (tree,))
        self._generator = np.random.default_rng(seed)

    @classmethod
    def of(cls, random_state: Any) -> Coins:
        """Return coins for None, or repeatable ones for a seed or an audit's noise."""
        if random_state is None:
            return cls(int.from_bytes(draw_bytes(8), "little"))
        if isinstance(random_state, Noise):
            return cls(0)
        if isinstance(random_state, np.random.RandomState):
            return cls(int(random_state.randint(0, 2**31 - 1)))
        return cls(int(np.random.default_rng(random_state).integers(2**63)))

    def for_trees(self, count: int) -> list[Self]:
        """Return coins for every tree of a forest, with choices of their own."""
        return [type(self)(self.key, tree) for tree in range(count)]

    def shuffled(self, items: Any) -> NDArray[np.intp]:
        """Return numbers, or those below a bound, in random order."""
        found = np.arange(items) if isinstance(items, int) else np.array(items, dtype=np.intp)
        self._generator.shuffle(found)
        return found

    def below(self, bound: int) -> int:
        """Return a random number from 0 to below a bound."""
        return int(self._generator.integers(bound))
