"""All engines that one suite tests: whoever adds an engine adds a line to :data:`ENGINES`.

Besides the engine of a table in memory there are engines that make life hard: many small blocks of
uneven sizes, blocks that forget what they have worked out, blocks that are somewhere else, blocks
whose rows may not be brought together, blocks in files.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

from privet.engines import BlockEngine, Engine, memory_engine, stored
from privet.engines.blocks import Block
from privet.engines.encoding import Encoded, Encoder
from privet.engines.memory import LocalBlocks
from privet.reading import Columns, column_of
from privet.schema import Schema

#: Where the rows of blocks begin and end, in parts of all of them: some blocks have none.
BOUNDS = (0, 0, 0.002, 0.1, 0.11, 0.11, 0.6, 0.61, 0.99, 1, 1)


def encoded(table: Any, target: Any, schema: Schema) -> Encoded:
    """Return a table as blocks have it."""
    columns = Columns.of(table, schema)
    targets = columns.target(schema) if target is None else column_of(target, schema.target)
    encoder = Encoder(schema)
    found = encoder.empty(len(columns))
    encoder.encode_rows(columns, targets, found, fast=False)
    return found


def cut(table: Any, target: Any, schema: Schema, *, fast: bool = False, **options: Any):
    """Return uneven blocks of a table."""
    found = encoded(table, target, schema)
    ends = [round(part * len(found)) for part in BOUNDS]
    return [
        Block(schema, mine.codes, mine.target, mine.names, fast=fast, **options)
        for mine in (found[start:stop] for start, stop in pairwise(ends))
    ]


class Forgetful(LocalBlocks):
    """Before a question, some blocks may lose all that they have worked out."""

    def __init__(self, schema, blocks):
        super().__init__(schema, blocks)
        self._luck = np.random.default_rng(len(blocks))

    def ask(self, question, forget):
        lost = []
        for block in self._blocks:
            if hasattr(self, "_luck") and self._luck.random() < 0.3:
                arrays = block._codes, block._target, block.names
                lost.append(Block(block.schema, *arrays, fast=block.fast, number=block.number))
                lost[-1].parts = block.parts
            else:
                lost.append(block)
        self._blocks = tuple(lost)
        return super().ask(question, forget)


class Remote(LocalBlocks):
    """Questions and answers travel as bytes; answers come in any order, and some twice."""

    def __init__(self, schema, blocks):
        self._luck = np.random.default_rng(len(blocks))
        super().__init__(schema, blocks)

    def ask(self, question, forget):
        total = None
        for k in self._luck.permutation(len(self._blocks)):
            for _ in range(self._luck.integers(1, 3)):  # the first answer may be lost
                asked, lost = pickle.loads(pickle.dumps((question, list(forget))))
                answer = pickle.loads(pickle.dumps(asked.answer(self._blocks[k])))
            self._blocks[k].forget(lost)
            total = answer if total is None else question.merge(total, answer)
        return total


class Apart(LocalBlocks):
    """Rows may not be brought together."""

    gathers = False


class Batch:
    """All rows of a table whose target may come by itself, as a stream of one batch."""

    def __init__(self, table, target, schema):
        self.schema = schema
        self._columns = Columns.of(table, schema)
        self._target = target
        self.rows = len(self._columns)

    def __getattr__(self, name):
        return getattr(self._columns, name)

    def __len__(self):
        return self.rows

    def __iter__(self):
        yield self

    def target(self, schema):
        if self._target is None:
            return self._columns.target(schema)
        return column_of(self._target, schema.target)


class AlwaysFiles(stored.Scratch):
    """What a block works out is in files, however small it is."""

    smallest = 1


def mapped_engine(table: Any, target: Any, schema: Schema) -> Engine:
    """Return an engine of small blocks in mapped files."""
    with mock.patch.multiple(stored, BLOCK_ROWS=377, Scratch=AlwaysFiles):
        return stored.encode_stream(Batch(table, target, schema))


def engine_of(kind: type[LocalBlocks], **options: Any) -> Callable[[Any, Any, Schema], Engine]:
    """Return what makes an engine of a table's blocks."""
    return lambda table, target, schema: BlockEngine(
        kind(schema, cut(table, target, schema, **options))
    )


#: What makes an engine of a table, its target (None: a column of the table) and a schema.
ENGINES: dict[str, Callable[[Any, Any, Schema], Engine]] = {
    "memory": memory_engine,
    "blocks": engine_of(LocalBlocks),
    "compiled": engine_of(LocalBlocks, fast=True),
    "forgetful": engine_of(Forgetful),
    "remote": engine_of(Remote),
    "sums": engine_of(Apart),
    "mapped": mapped_engine,
}
