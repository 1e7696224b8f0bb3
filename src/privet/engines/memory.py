"""Blocks in this process: a table in memory, or blocks that others have opened.

A table is encoded once, two bytes a number; the table itself is not kept. Blocks are asked by
threads, each of which adds up its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from privet.engines import _kernels
from privet.engines.blocks import Block
from privet.engines.encoding import Encoder, in_threads, parts_of, workers
from privet.engines.engine import BlockEngine
from privet.engines.questions import BlockQuestion
from privet.engines.weighing import weigh
from privet.errors import DataError
from privet.reading import Columns, check_types, column_of
from privet.schema import Schema

T = TypeVar("T")

#: Rows of a block: enough that asking it costs little, few enough that threads have some each.
BLOCK_ROWS = 2**18


class LocalBlocks:
    """Blocks in this process.

    Parameters
    ----------
    schema : Schema
    blocks : sequence of Block, at least one
    """

    gathers = True

    def __init__(self, schema: Schema, blocks: Sequence[Block]) -> None:
        self.schema = schema
        self.rows = sum(map(len, blocks))
        self._blocks = tuple(blocks)
        if schema.unit is not None:
            self._weigh()

    def _weigh(self) -> None:
        for number, block in enumerate(self._blocks):
            block.number = number
            block.parts = block.lone_parts()
        for weighed in weigh(lambda question: self.ask(question, ()), self.rows, self.schema):
            for number, rows, weights in weighed:
                parts = self._blocks[number].parts
                assert parts is not None
                parts[rows] = weights

    def ask(self, question: BlockQuestion[T], forget: Sequence[int]) -> T:
        """See :class:`~privet.engines.engine.Blocks`."""
        threads = workers() if self._blocks[0].fast else 1
        groups = [self._blocks[part] for part in parts_of(len(self._blocks), threads)]

        def fold(blocks: Sequence[Block]) -> T:
            total = question.answer(blocks[0])
            for block in blocks[1:]:
                total = question.add(total, block)
            return total

        first, *others = in_threads(fold, [group for group in groups if group], threads)
        for other in others:
            first = question.merge(first, other)
        for block in self._blocks:
            block.forget(forget)
        answer: T = first
        return answer

    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`."""
        self._blocks = ()


def memory_engine(table: Any, target: Any, schema: Schema) -> BlockEngine:
    """Return an engine for a table in memory.

    Parameters
    ----------
    table : dataframe, array or list
    target : column or None
        If None, the column of the table that the schema names.
    schema : Schema
    """
    columns = Columns.of(table, schema)
    targets = columns.target(schema) if target is None else column_of(target, schema.target)
    if len(targets) != len(columns):
        raise DataError("the features and the target have different numbers of rows")
    check_types(columns, targets, schema)
    rows = len(columns)
    fast = _kernels.compiled(rows * len(schema.names))
    encoder = Encoder(schema)
    encoded = encoder.empty(rows)
    encoder.encode_rows(columns, targets, encoded, fast=fast)
    count = max(-(-rows // BLOCK_ROWS), workers() if fast else 1)
    blocks = [
        Block(schema, mine.codes, mine.target, mine.names, fast=fast)
        for mine in (encoded[part] for part in parts_of(rows, count))
    ]
    return BlockEngine(LocalBlocks(schema, blocks))
