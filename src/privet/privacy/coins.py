"""Public choices by chance: which features a node looks at, which part of a table a record is in.

Privacy does not rest on them: proofs hold for any outcome, known or not. They come from a key that
is drawn without looking at a table, by numpy's generator. Each tree of a forest has a generator of
its own, so that no tree's choices depend on how another one grew.
"""

from __future__ import annotations

import secrets
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privet.privacy.noise import Noise


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
            return cls(secrets.randbits(64))
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
        return np.asarray(self._generator.permutation(items))

    def below(self, bound: int) -> int:
        """Return a random number from 0 to below a bound."""
        return int(self._generator.integers(bound))
