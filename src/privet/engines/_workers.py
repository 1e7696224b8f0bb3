"""Blocks in the worker processes of a cluster, and messages small enough to be sent often.

A worker holds blocks of several engines' tables, and of each the steps by which cells and scores
came about, as far as it was told. A message has a question, the numbers of blocks, and those steps
that the worker does not know yet; it names all others by number. What a worker lacks it says in its
reply, and is then told. So a worker may forget everything, or be another one, at any time: the
answer is the same, since it is a sum over the rows of the blocks that the reply lists.

Replies have no text of other people's exceptions, which may quote rows: kinds only.
"""

from __future__ import annotations

import copy
import io
import pickle
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from privet import __version__
from privet.engines import _kernels
from privet.engines.blocks import Block
from privet.engines.encoding import Encoded, Encoder
from privet.engines.lineage import Lineage, ScoreLineage
from privet.engines.parquet import Piece
from privet.engines.weighing import Persons, Weighed
from privet.errors import EngineError, PrivetError
from privet.reading import Columns
from privet.schema import Schema

#: By which messages name the schema, which a worker has with its first block.
SCHEMA = "schema"

#: What went wrong on a worker: the name of an exception, and the text if it is one of ours.
Failure = tuple[str, str | None]


@dataclass(frozen=True)
class Message:
    """A question to some blocks, as it is sent.

    Attributes
    ----------
    version : str
        Of this library, which must be the worker's.
    engine : str
        Whose blocks are meant.
    blocks : tuple of int
    question : bytes
        Cells, scores and views are in it as numbers.
    steps : bytes
        What the worker does not know of these.
    forget : tuple of int
        Numbers of cells and scores that nobody has any more.
    fast : bool
        Whether the table is large enough for compiled loops.
    """

    version: str
    engine: str
    blocks: tuple[int, ...]
    question: bytes
    steps: bytes
    forget: tuple[int, ...]
    fast: bool


@dataclass(frozen=True)
class Reply:
    """What a worker says, or several of them together.

    Attributes
    ----------
    covered : tuple of int
        The blocks whose rows are in the answer, each once.
    answer : object
        For the blocks that are covered; None if there are none.
    lost : tuple of (int, str)
        Blocks that a worker does not have, and the worker.
    unaware : tuple of str
        Workers that were told too few steps.
    failures : tuple of (str, str or None)
    worker : str
        Who says it.
    """

    covered: tuple[int, ...] = ()
    answer: Any = None
    lost: tuple[tuple[int, str], ...] = ()
    unaware: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    worker: str = ""


@dataclass(frozen=True)
class Built:
    """A block that a worker has made."""

    number: int
    rows: int
    checksum: int
    worker: str
    failure: Failure | None = None


@dataclass(eq=False)
class _Table:
    """What this process holds of one engine's table."""

    schema: Schema
    blocks: dict[int, tuple[Block, Lock]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)
    #: What records weigh, of blocks that were not told all of it yet.
    partly: dict[int, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def learn(self, steps: bytes) -> None:
        """Take in views, cells and scores, each of which comes after what it is made from."""
        told: dict[Any, Any] = {None: None}

        def find(name: Any) -> Any:
            return told[name] if name in told else self.known[name]

        for name, keep, kind, *rest in _Reader(steps, self.found).load():
            if name in self.known:
                continue
            if kind == "view":
                told[name] = rest[0]
            elif kind == "cells":
                size, view, step, parent = rest
                told[name] = Lineage(name, size, find(view), step, parent=find(parent))
            else:
                start, parent, cells, values = rest
                told[name] = ScoreLineage(name, start, find(cells), values, find(parent))
            if keep:
                self.known[name] = told[name]

    def found(self, name: Any) -> Any:
        """Return what a name in a message stands for."""
        return self.schema if name == SCHEMA else self.known[name]


#: The tables of this process, by engine.
_tables: dict[str, _Table] = {}
_tables_lock = Lock()


def build(
    engine: str,
    version: str,
    number: int,
    schema: Schema,
    source: Any,
    worker: str,
    *,
    fast: bool | None,
) -> Built:
    """Make a block from a piece of Parquet files or a dataframe, and hold it."""
    try:
        if version != __version__:
            raise EngineError(other_version(__version__, version))
        block, checksum = _encode(schema, source, fast=fast)
    except PrivetError as error:
        return Built(number, 0, 0, worker, (type(error).__name__, str(error)))
    except Exception as error:
        return Built(number, 0, 0, worker, (type(error).__name__, None))
    hold(engine, number, schema, block)
    return Built(number, len(block), checksum, worker)


def hold(engine: str, number: int, schema: Schema, block: Block) -> None:
    """Keep a block in this process."""
    with _tables_lock:
        table = _tables.setdefault(engine, _Table(schema))
    block.number = number
    with table.lock:
        table.blocks[number] = block, Lock()


def put_parts(engine: str, weighed: Sequence[Weighed], share: int, shares: int) -> tuple[int, ...]:
    """Take in what records weigh, share after share; return the blocks that are here."""
    table = _tables.get(engine)
    if table is None:
        return ()
    told = []
    with table.lock:
        for number, rows, weights in weighed:
            if number not in table.blocks or (share and number not in table.partly):
                continue
            block, _ = table.blocks[number]
            if not share:
                table.partly[number] = block.lone_parts()
            table.partly[number][rows] = weights
            if share == shares - 1:
                block.parts = table.partly.pop(number)
            told.append(number)
    return tuple(told)


def holds(engine: str) -> set[int]:
    """Return the numbers of an engine's blocks that this process has."""
    table = _tables.get(engine)
    return set() if table is None else set(table.blocks)


def keep_only(engine: str, numbers: Iterable[int]) -> None:
    """Give up an engine's other blocks, and what was worked out about them."""
    table = _tables.get(engine)
    if table is not None:
        with table.lock:
            for number in set(table.blocks).difference(numbers):
                del table.blocks[number]


def drop(engine: str) -> None:
    """Give up all that this process has of an engine's table."""
    with _tables_lock:
        _tables.pop(engine, None)


def encode_frame(schema: Schema, frame: Any, *, fast: bool) -> Encoded:
    """Return the codes of a dataframe's rows."""
    columns = Columns.of(frame, schema)
    encoder = Encoder(schema)
    found = encoder.empty(len(columns))
    encoder.encode_rows(columns, columns.target(schema), found, fast=fast)
    return found


def _encode(schema: Schema, source: Any, *, fast: bool | None) -> tuple[Block, int]:
    if fast is None:
        fast = _kernels.compiled(len(source) * len(schema.names))
    if isinstance(source, Piece):
        found = source.encode(schema, fast=fast)
    else:
        found = encode_frame(schema, source, fast=fast)
    block = Block(schema, found.codes, found.target, found.names, fast=fast)
    return block, checksum_of(found.arrays)


def checksum_of(arrays: Sequence[Any]) -> int:
    """Return a number that other rows hardly have: against accidents, not against intent."""
    found = 0
    for array in arrays:
        found = zlib.crc32(array, found)
    return found


def answer(message: Message, worker: str) -> Reply:
    """Answer for those of a message's blocks that this process has."""
    try:
        return _answer(message, worker)
    except PrivetError as error:
        failure: Failure = type(error).__name__, str(error)
    except Exception as error:
        failure = type(error).__name__, None
    return Reply(failures=(failure,), worker=worker)


def _answer(message: Message, worker: str) -> Reply:
    if message.version != __version__:
        raise EngineError(other_version(__version__, message.version))
    table = _tables.get(message.engine)
    if table is None:
        return Reply(lost=tuple((number, worker) for number in message.blocks), worker=worker)
    with table.lock:
        try:
            table.learn(message.steps)
            question = _Reader(message.question, table.found).load()
        except KeyError:
            return Reply(unaware=(worker,), worker=worker)
        held = {number: table.blocks.get(number) for number in message.blocks}
        if table.schema.unit is not None and not isinstance(question, Persons):
            # A block that nobody told what its records weigh is as good as none.
            held = {
                number: None if found is None or found[0].parts is None else found
                for number, found in held.items()
            }
    covered: list[int] = []
    total: Any = None
    for number, found in held.items():
        if found is None:
            continue
        block, lock = found
        with lock:
            block.fast = message.fast
            total = question.add(total, block) if covered else question.answer(block)
            block.forget(message.forget)
        covered.append(number)
    with table.lock:
        for number in message.forget:
            table.known.pop(number, None)
    lost = tuple((number, worker) for number, found in held.items() if found is None)
    return Reply(tuple(covered), total, lost, worker=worker)


def merge(question: bytes, one: Reply, other: Reply) -> Reply:
    """Return two workers' replies as one; neither is changed, so that it can be done again."""
    total = one.answer
    if not one.covered:
        total = other.answer
    elif other.covered:
        asked = _Reader(question, lambda _: None).load()  # how to merge needs no cells
        total = asked.merge(copy.deepcopy(one.answer), other.answer)
    return Reply(
        one.covered + other.covered,
        total,
        one.lost + other.lost,
        one.unaware + other.unaware,
        one.failures + other.failures,
    )


class _Reader(pickle.Unpickler):
    """Reads a message, in which names stand for what was told before."""

    def __init__(self, message: bytes, find: Callable[[Any], Any]) -> None:
        super().__init__(io.BytesIO(message))
        self._find = find

    def persistent_load(self, pid: Any) -> Any:
        """Return what a name stands for."""
        return self._find(pid)


def other_version(worker: str, driver: str) -> str:
    """Say what to do about a worker with another version of this library."""
    return (
        f"a worker has version {worker} of privet, and here it is {driver}; all workers need the "
        "same version"
    )
