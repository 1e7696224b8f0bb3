"""Find out what records weigh whose persons have several, wherever these lie.

A person's records can be in any blocks. So blocks are asked for the records of some persons at a
time (a share of all, by a hash); these are put together, and every block is told what its records
weigh. Memory is bounded by the size of a share, wherever the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines import units
from privet.engines.blocks import Block
from privet.engines.questions import BlockQuestion
from privet.schema import Schema

#: By which the records of a person are put in order. Public: it need only not depend on the table.
ORDER_KEY = 0x9E3779B97F4A7C15
#: Records that are put together at a time.
SHARE_ROWS = 2**21

#: The records of one block: its number, rows, names of their persons, and their order.
Listed = tuple[int, NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]
#: What some records of a block weigh: the block's number, rows, and weights.
Weighed = tuple[int, NDArray[np.int64], NDArray[Any]]


@dataclass(frozen=True)
class Persons(BlockQuestion[list[Listed]]):
    """The records with a known target of a share of all persons."""

    share: int
    shares: int

    def answer(self, block: Block) -> list[Listed]:
        """See :class:`BlockQuestion`."""
        mine = block.labels < block.classes
        if self.shares > 1:
            share = units.hashed(block.names, ORDER_KEY) % np.uint64(self.shares)
            mine = mine & (share == self.share)
        rows = np.flatnonzero(mine & ~units.nobodys(block.names))
        order = block.record_hashes(ORDER_KEY)[rows]
        return [(block.number, rows, np.stack([words[rows] for words in block.names]), order)]

    def merge(self, one: list[Listed], other: list[Listed]) -> list[Listed]:
        """See :class:`BlockQuestion`."""
        return one + other


def shares_of(rows: int) -> int:
    """Return in how many shares persons are put together."""
    return max(1, -(-rows // SHARE_ROWS))


def weigh(
    ask: Callable[[Persons], list[Listed]], rows: int, schema: Schema
) -> Iterator[list[Weighed]]:
    """Yield, share after share, what the records of every block weigh.

    Records with an unknown target are not among them, nor those without an identifier: see
    :meth:`Block.lone_parts`.
    """
    shares = shares_of(rows)
    for share in range(shares):
        # In the order of blocks, whoever answers first: of records that are alike the same ones
        # weigh more when a block that was lost is weighed again, and the others are not.
        listed = sorted(ask(Persons(share, shares)), key=lambda one: one[0])
        weights = units.weights_of(
            np.concatenate([names for *_, names, _ in listed], axis=1),
            np.concatenate([order for *_, order in listed]),
            schema,
        )
        ends = np.cumsum([len(mine) for _, mine, _, _ in listed])[:-1]
        yield [
            (number, mine, found)
            for (number, mine, _, _), found in zip(listed, np.split(weights, ends), strict=True)
        ]


def weigh_alone(block: Block) -> None:
    """Weigh the records of a block that has all records of its persons."""
    parts = block.lone_parts()
    for weighed in weigh(lambda question: question.answer(block), len(block), block.schema):
        for _, rows, weights in weighed:
            parts[rows] = weights
    block.parts = parts
