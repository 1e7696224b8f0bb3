"""What clusters share: questions go to blocks wherever they are, until each has answered once.

Answers are counted by the numbers of the blocks that are in them: what was lost is asked for again,
what comes twice is ignored. All of this happens below the sum, so that noise never sees it.
"""

from __future__ import annotations

import copy
import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from privet import __version__, errors
from privet.engines import _kernels
from privet.engines._workers import SCHEMA, Built, Failure, Message, Reply
from privet.engines.blocks import Block
from privet.engines.encoding import Encoder
from privet.engines.lineage import Lineage, ScoreLineage
from privet.engines.questions import BlockQuestion, Histograms, TreeSums
from privet.engines.weighing import Persons
from privet.errors import DataError, EngineError, PrivetError
from privet.schema import Schema

T = TypeVar("T")

#: How often a question is asked again, of the blocks that have not answered.
RETRIES = 3
#: Answers of more numbers than this are added up on the cluster; of fewer, where they were asked.
_LARGE = 2**18


class ClusterBlocks(ABC):
    """Blocks in worker processes.

    Parameters
    ----------
    schema : Schema
    count : int
        The number of blocks.
    gathers : bool
        Whether the rows of cells may be brought to where questions are asked.
    """

    def __init__(self, schema: Schema, count: int, *, gathers: bool) -> None:
        self.schema = schema
        self.gathers = gathers
        self.rows = 0
        #: No two engines have the same, so that a worker never takes one's blocks for another's.
        self.engine = uuid4().hex
        self._fast = False
        self._count = count
        #: Blocks that have to be made, for the first time or anew.
        self._lost = set(range(count))
        #: Blocks that were not yet told what their records weigh.
        self._weightless: set[int] = set()
        self._checksums: dict[int, int] = {}
        #: What each worker was told, by name.
        self._told: dict[str, set[Any]] = {}
        self._views: dict[Any, str] = {}
        self._gone: set[int] = set()

    @abstractmethod
    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`."""

    @abstractmethod
    def _build(self, numbers: Sequence[int]) -> Iterator[Built]:
        """Have blocks made from their sources."""

    @abstractmethod
    def _groups(self, numbers: Iterable[int]) -> list[tuple[str, tuple[int, ...]]]:
        """Return which worker is asked about which blocks."""

    @abstractmethod
    def _send(self, messages: Sequence[tuple[str, Message]], *, large: bool) -> list[Reply]:
        """Send messages to workers and return the replies, added up on the cluster if large."""

    @abstractmethod
    def _recover(self) -> None:
        """Look anew which workers there are, and which blocks were lost with others."""

    def _is_lost(self, number: int, worker: str) -> bool:
        """Tell whether a block that a worker does not have must be made again."""
        del number, worker
        return True

    def _known_to(self, worker: str) -> set[Any]:
        """Return the names of views, cells and scores that a worker was told."""
        return self._told.get(worker, set())

    def _note_told(
        self,
        messages: Sequence[tuple[str, Message]],
        names: Sequence[set[Any]],
        replies: Sequence[Reply],
        todo: set[int],
        forget: Sequence[int],
    ) -> None:
        """Remember which names workers were told; whoever lacked something is told all again."""
        del replies
        for (worker, message), told in zip(messages, names, strict=True):
            if todo.isdisjoint(message.blocks):
                self._told.setdefault(worker, set()).update(told)
                self._told[worker].difference_update(forget)
            else:
                self._told.pop(worker, None)

    def fill(self) -> None:
        """Make all blocks, before the first question."""
        failures: list[Failure] = []
        for attempt in range(1 + RETRIES):
            if attempt:
                self._recover()
            self.rows += sum(built.rows for built in self._make(failures))
            raise_ours(failures)
            if not self._lost:
                self._fast = _kernels.compiled(self.rows * len(self.schema.names))
                self._weigh()
                return
        raise EngineError(not_made(failures))

    def _weigh(self) -> None:
        """Tell new blocks what their records weigh, if the schema has a unit.

        Not needed where every block has all records of its persons.
        """
        return

    def _make(self, failures: list[Failure]) -> list[Built]:
        """Make the blocks that are lost; return those that were made."""
        made = []
        for built in self._build(sorted(self._lost)):
            if built.failure is not None:
                failures.append(built.failure)
                continue
            known = self._checksums.setdefault(built.number, built.checksum)
            if known != built.checksum:
                raise DataError(
                    "the source of the rows changed under the fit: a block that was lost could not "
                    "be read again as it was. What was asked is paid for, and nothing was released "
                    "for the last question; keep the source as it is, and start again"
                )
            self._lost.discard(built.number)
            self._weightless.add(built.number)
            made.append(built)
        return made

    def ask(self, question: BlockQuestion[T], forget: Sequence[int]) -> T:
        """See :class:`~privet.engines.engine.Blocks`."""
        if not self._count:
            none = Encoder(self.schema).empty(0)
            return question.answer(
                Block(self.schema, none.codes, none.target, none.names, fast=False)
            )
        written, met = _written(question)
        large = _is_large(question)
        todo = set(range(self._count))
        failures: list[Failure] = []
        total: Any = None
        for attempt in range(1 + RETRIES):
            if attempt:
                self._recover()
            if self._lost:
                self._make(failures)
                if not isinstance(question, Persons):
                    self._weigh()
            messages, names = [], []
            for worker, blocks in self._groups(todo - self._lost):
                steps, told = self._steps(met, self._known_to(worker))
                parts = __version__, self.engine, blocks, written, steps, tuple(forget), self._fast
                messages.append((worker, Message(*parts)))
                names.append(told)
            replies = self._send(messages, large=large) if messages else []
            for reply in sorted(replies, key=lambda reply: reply.covered):
                failures += reply.failures
                self._lost |= {number for number, at in reply.lost if self._is_lost(number, at)}
                if reply.covered and todo.issuperset(reply.covered):
                    answer = reply.answer
                    if len(reply.covered) < len(todo) and total is None:
                        answer = copy.deepcopy(answer)  # more is added to it
                    total = answer if total is None else question.merge(total, answer)
                    todo.difference_update(reply.covered)
            self._note_told(messages, names, replies, todo, forget)
            if not todo:
                self._gone.update(forget)
                answered: T = total
                return answered
            raise_ours(failures)
        raise EngineError(
            f"the cluster did not answer for {len(todo)} of {self._count} blocks, asked "
            f"{1 + RETRIES} times{_said(failures)}. What the question costs stands in the ledger, "
            "and nothing was released; look at the workers' logs and memory, then start again"
        )

    def _steps(
        self, met: Sequence[Lineage | ScoreLineage], told: set[Any]
    ) -> tuple[bytes, set[Any]]:
        """Return the steps to some cells and scores that a worker was not told, and their names."""
        steps: list[tuple[Any, ...]] = []
        names: set[Any] = set()
        stack: list[tuple[Lineage | ScoreLineage, bool]] = [(one, False) for one in met]
        while stack:
            one, ready = stack.pop()
            if one.number in told or one.number in names:
                continue
            before = [one.parent] if isinstance(one, Lineage) else [one.parent, one.cells]
            if not ready:
                stack.append((one, True))
                stack += [(other, False) for other in before if other is not None]
                continue
            numbers = [None if other is None else other.number for other in before]
            keep = one.number not in self._gone
            if isinstance(one, Lineage):
                view = self._views.setdefault(one.view.cuts, f"view {len(self._views)}")
                if view not in told and view not in names:
                    names.add(view)
                    steps.append((view, True, "view", one.view))
                steps.append((one.number, keep, "cells", one.size, view, one.step, *numbers))
            else:
                steps.append((one.number, keep, "scores", one.start, *numbers, one.values))
            names.add(one.number)
        return _written(steps)[0], names - self._gone


class _Writer(pickle.Pickler):
    """Writes a message; what workers know by name is written as its name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.met: list[Lineage | ScoreLineage] = []

    def persistent_id(self, obj: Any) -> Any:
        """Return the name of what has one."""
        if isinstance(obj, Lineage | ScoreLineage):
            self.met.append(obj)
            return obj.number
        return SCHEMA if isinstance(obj, Schema) else None


def _written(thing: Any) -> tuple[bytes, list[Lineage | ScoreLineage]]:
    """Return something as bytes, and the cells and scores that are only named in it."""
    file = io.BytesIO()
    writer = _Writer(file)
    writer.dump(thing)
    return file.getvalue(), writer.met


def _is_large(question: BlockQuestion[Any]) -> bool:
    """Tell whether answers had better be added up where they are."""
    if isinstance(question, Histograms):
        size = sum(len(features) * codes for features, codes in question.groups)
        return size * (question.stop - question.start) > _LARGE
    return isinstance(question, TreeSums) and question.size > _LARGE


def not_made(failures: Sequence[Failure]) -> str:
    """Say that blocks could not be made."""
    return (
        f"the cluster could not read and encode the rows{_said(failures)}; nothing was asked and "
        "nothing was spent"
    )


def _said(failures: Sequence[Failure]) -> str:
    """Return the kinds of what went wrong, for people to read."""
    kinds = sorted({kind for kind, _ in failures})
    return f" (workers said: {', '.join(kinds)})" if kinds else ""


def raise_ours(failures: Sequence[Failure]) -> None:
    """Raise an error of this library that a worker met: it would meet it again."""
    for kind, text in failures:
        found = getattr(errors, kind, None)
        if text is not None and isinstance(found, type) and issubclass(found, PrivetError):
            raise found(text)
