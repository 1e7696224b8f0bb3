"""Rows in Spark: partitions become files of codes next to the executors, which answer questions.

Spark says nothing about which Python process runs a task. So blocks lie in files that any process
of a machine can map. A task answers for the blocks that its process had in the last question, and
claims them by a file so that no other task does; a process keeps only what belongs to these blocks,
and all processes are told what some of them may not know yet.

The cluster is inside the wall: its driver and its executors see rows.
"""

from __future__ import annotations

import contextlib
import gc
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import finalize

import numpy as np
import pyarrow as pa

from privet import __version__
from privet.engines import _kernels
from privet.engines._cluster import ClusterBlocks, not_made, raise_ours
from privet.engines._workers import (
    Built,
    Failure,
    Message,
    Reply,
    answer,
    drop,
    encode_frame,
    hold,
    holds,
    keep_only,
    other_version,
)
from privet.engines.blocks import Block
from privet.engines.encoding import Encoded, Encoder, parts_of
from privet.engines.engine import BlockEngine
from privet.engines.weighing import weigh_alone
from privet.errors import ColumnTypeError, EngineError, EngineUnusableError, PrivetError
from privet.reading import Columns, check_types
from privet.schema import Schema

#: This process, which Spark may use again.
_PROCESS = uuid4().hex
#: How many questions this process has answered.
_answers = 0
#: Questions for which it is remembered what a process was told that answers no more.
_REMEMBERED = 8


def spark_engine(
    frame: Any,
    schema: Schema,
    *,
    folder: str | Path | None = None,
    gather: bool = True,
    insecure: bool = False,
) -> BlockEngine:
    """Return an engine for the rows of a Spark dataframe.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        It is computed once, and again in part where an executor is lost; so it must give the same
        rows in the same order. Executors need this library.
    schema : Schema
    folder : path, optional
        Where executors put files of codes, which are as sensitive as the rows: a place on their own
        disks, or one that all of them share. By default their folder for temporary files.
    gather : bool, default=True
        Whether a cell's encoded rows may be brought here for a draw of whole trees, if they are
        few enough: at most 2^29 codes.
    insecure : bool, default=False
        Whether a cluster is used whose processes do not check and encrypt what they are sent.
    """
    context = _context(frame)
    _check_secure(context, insecure=insecure)
    _check_versions(context)
    names = list(schema.columns)
    columns = Columns.of(_empty(frame, names), schema)
    check_types(columns, columns.target(schema), schema)
    frame = frame.select(*map(_quoted, names))
    if schema.unit is not None:
        frame = _by_person(frame, schema.unit)
    blocks = SparkBlocks(schema, frame, folder, gathers=gather)
    blocks.fill()
    return BlockEngine(blocks)


class SparkBlocks(ClusterBlocks):
    """Blocks in files next to executors.

    Parameters
    ----------
    schema : Schema
    frame : pyspark.sql.DataFrame
    folder : path or None
    gathers : bool
    """

    def __init__(
        self, schema: Schema, frame: Any, folder: str | Path | None, *, gathers: bool
    ) -> None:
        self._frame = frame
        self._context = frame.sparkSession.sparkContext
        super().__init__(schema, 0, gathers=gathers)
        self._place = (None if folder is None else str(folder), f"privet-{self.engine}")
        self.end = finalize(self, _give_up, self._context, self.engine, self._place)
        self.end.atexit = False
        #: Partitions by the numbers of their blocks, known after the first time.
        self._partitions: list[int] = []
        self._told_at: dict[str, int] = {}
        self._asked = 0

    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`."""
        self.end()

    def fill(self) -> None:
        """Make all blocks; only then it is known how many there are."""
        found = list(self._encoded(None))
        failures = [built.failure for built in found if built.failure is not None]
        if not failures:
            self._partitions = sorted(built.number for built in found)
            self._count = len(self._partitions)
            for built in found:
                number = self._partitions.index(built.number)
                self._checksums[number] = built.checksum
                self.rows += built.rows
            self._fast = _kernels.compiled(self.rows * len(self.schema.names))
            return
        raise_ours(failures)
        raise EngineError(not_made(failures))

    def _build(self, numbers: Sequence[int]) -> Iterator[Built]:
        wanted = {self._partitions[number]: number for number in numbers}
        for built in self._encoded(frozenset(wanted)):
            number = wanted.get(built.number, -1)
            yield Built(number, built.rows, built.checksum, built.worker, built.failure)

    def _encoded(self, wanted: frozenset[int] | None) -> Iterator[Built]:
        """Have partitions encoded, all of them if not said."""
        schema, place = self.schema, self._place
        columns = "number long, rows long, checksum long, worker string, kind string, said string"

        def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return _write_partition(__version__, schema, place, wanted, batches)

        failure: Failure | None = None
        try:
            rows = self._frame.mapInArrow(encode, columns).collect()
        except Exception as error:  # its text may quote rows
            failure = type(error).__name__, None
        if failure is not None:
            yield Built(-1, 0, 0, "", failure)
            return
        for number, count, checksum, worker, kind, said in rows:
            failed = None if kind is None else (kind, said)
            yield Built(number, count, checksum, worker, failed)

    def _groups(self, numbers: Iterable[int]) -> list[tuple[str, tuple[int, ...]]]:
        mine = sorted(numbers)
        count = min(len(mine), self._context.defaultParallelism)
        return [("", tuple(mine[part])) for part in parts_of(len(mine), count)]

    def _send(self, messages: Sequence[tuple[str, Message]], *, large: bool) -> list[Reply]:
        del large  # sums meet here: Spark moves nothing between tasks without a shuffle
        schema, place, partitions = self.schema, self._place, self._partitions
        self._asked += 1
        asked, message = self._asked, messages[0][1]  # they differ in their blocks only
        groups = [one.blocks for _, one in messages]

        def ask(given: Iterator[int]) -> list[Reply]:
            return [
                _answer_from_files(
                    replace(message, blocks=_claimed(message.engine, place, asked, groups, number)),
                    schema,
                    place,
                    partitions,
                )
                for number in given
            ]

        failure: Failure | None = None
        try:
            numbers = self._context.parallelize(range(len(groups)), len(groups))
            replies = numbers.mapPartitions(ask).collect()
        except Exception as error:
            failure = type(error).__name__, None
        return [Reply(failures=(failure,))] if failure is not None else replies

    def _recover(self) -> None:
        self._told.clear()

    def _known_to(self, worker: str) -> set[Any]:
        del worker  # whichever process gets the message: what all of them know
        known = list(self._told.values())
        return set.intersection(*known) if known else set()

    def _note_told(
        self,
        messages: Sequence[tuple[str, Message]],
        names: Sequence[set[Any]],
        replies: Sequence[Reply],
        todo: set[int],
        forget: Sequence[int],
    ) -> None:
        del messages, todo
        told = names[0] if names else set()  # all messages have the same steps
        for reply in replies:
            for process in reply.unaware:
                self._told.pop(process, None)
            if reply.covered:
                self._told.setdefault(reply.worker, set()).update(told)
                self._told_at[reply.worker] = self._asked
        for process in list(self._told):
            self._told[process].difference_update(forget)
            if self._asked - self._told_at[process] > _REMEMBERED:
                del self._told[process]


# On executors


def _folder(place: tuple[str | None, str]) -> Path:
    """Return this machine's folder for an engine's blocks, which only its owner may enter."""
    where, name = place
    folder = Path(where or tempfile.gettempdir()) / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _write_partition(
    version: str,
    schema: Schema,
    place: tuple[str | None, str],
    wanted: frozenset[int] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Encode a partition into a file, and say what is in it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    if wanted is not None and number not in wanted:
        return
    kind = said = None
    rows = checksum = 0
    try:
        if version != __version__:
            raise EngineError(other_version(__version__, version))
        rows, checksum = _write(schema, _folder(place) / str(number), batches)
    except PrivetError as error:
        kind, said = type(error).__name__, str(error)
    except Exception as error:
        kind = type(error).__name__
    names = ["number", "rows", "checksum", "worker", "kind", "said"]
    types = [pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.string()]
    values = [number, rows, checksum, _PROCESS, kind, said]
    arrays = [pa.array([value], of) for value, of in zip(values, types, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names=names)


def _write(schema: Schema, path: Path, batches: Iterator[pa.RecordBatch]) -> tuple[int, int]:
    """Write all arrays one after the other; return how many rows, and the checksum."""
    parts = [Encoder(schema).empty(0).arrays]
    rows = 0
    for batch in batches:
        fast = _kernels.compiled(len(batch) * len(schema.names))
        found = encode_frame(schema, pa.Table.from_batches([batch]), fast=fast)
        parts.append(found.arrays)
        rows += len(found)
    checksum = 0
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    with draft.open("xb") as file:
        for column in zip(*parts, strict=True):
            joined: Any = np.concatenate(column)
            checksum = zlib.crc32(joined, checksum)
            file.write(joined)
    draft.chmod(0o600)
    draft.replace(path)  # whoever has mapped the old file keeps it
    return rows, checksum


def _open(schema: Schema, path: Path) -> Block:
    """Map a block's file."""
    encoder = Encoder(schema)
    rows = path.stat().st_size // encoder.row_bytes
    found = encoder.empty(0)
    if rows:
        arrays, offset = [], 0
        for kind in encoder.all_kinds:
            # "c": nobody writes to it, but compiled loops for arrays that may be written are there.
            column = np.memmap(path, kind, "c", offset, (rows,))
            arrays.append(column.view(np.ndarray))
            offset += rows * kind.itemsize
        found = Encoded.of(arrays, encoder)
    block = Block(schema, found.codes, found.target, found.names, fast=False)
    if schema.unit is not None:
        weigh_alone(block)
    return block


def _claimed(
    engine: str,
    place: tuple[str | None, str],
    asked: int,
    groups: Sequence[tuple[int, ...]],
    number: int,
) -> tuple[int, ...]:
    """Return the blocks that a task of this process answers for, which no other task then does.

    Spark gives a task to any process. One that takes the blocks it had before need not map them
    again and work out their cells; so it does, and only a new one goes by the task's number.
    """
    folder, held = _folder(place), holds(engine)
    order = sorted(
        range(len(groups)),
        key=lambda k: (-len(held.intersection(groups[k])), (k - number) % len(groups)),
    )
    for k in order:
        with contextlib.suppress(FileExistsError):
            (folder / f"asked-{asked}-{k}").touch(mode=0o600, exist_ok=False)
            (folder / f"asked-{asked - 1}-{k}").unlink(missing_ok=True)
            return groups[k]
    return ()


def _answer_from_files(
    message: Message, schema: Schema, place: tuple[str | None, str], partitions: Sequence[int]
) -> Reply:
    """Answer for the blocks whose files are on this machine."""
    keep_only(message.engine, message.blocks)
    folder = _folder(place)
    for number in set(message.blocks) - holds(message.engine):
        with contextlib.suppress(FileNotFoundError):
            hold(message.engine, number, schema, _open(schema, folder / str(partitions[number])))
    reply = answer(message, _PROCESS)
    _leave_modules_alone()
    return reply


def _leave_modules_alone() -> None:
    """Have the garbage collector skip what was imported: Spark runs it after every task.

    Modules come with the first questions of a kind, so after 1, 2, 4, 8, ... answers.
    """
    global _answers  # noqa: PLW0603
    _answers += 1
    if _answers & (_answers - 1) == 0:
        gc.freeze()


# The cluster


def _context(frame: Any) -> Any:
    try:
        from pyspark.sql import DataFrame
    except ImportError:
        pass
    else:
        if not isinstance(frame, DataFrame):
            raise EngineUnusableError("give a dataframe of pyspark.sql")
        context = getattr(frame.sparkSession, "_sc", None)
        if context is None:
            raise EngineUnusableError(
                "Spark Connect is not supported: use a session with a SparkContext"
            )
        return context
    raise EngineUnusableError("this needs Spark, and Java 17 or newer: pip install privet[spark]")


def _check_secure(context: Any, *, insecure: bool) -> None:
    """Refuse a cluster whose processes neither know each other nor encrypt what they send."""
    conf = context.getConf()
    asked = ("spark.authenticate", "spark.network.crypto.enabled")
    if insecure or context.master.startswith("local"):
        return
    for name in asked:
        if conf.get(name, "false").lower() != "true":
            raise EngineUnusableError(
                f"the cluster {context.master} is open: rows pass over the network as they are. "
                f"Set {name} to true, or say insecure=True if the network itself is locked"
            )


def _check_versions(context: Any) -> None:
    """Refuse executors without this library, or with another version of it."""

    # A function within a function goes to executors as code: they need nothing to run it.
    def version(_: Any) -> list[str | None]:
        try:
            from privet import __version__ as here
        except ImportError:
            return [None]
        return [here]

    count = context.defaultParallelism
    for found in context.parallelize(range(count), count).mapPartitions(version).collect():
        if found is None:
            raise EngineUnusableError(
                f"an executor lacks privet: install version {__version__} wherever executors run"
            )
        if found != __version__:
            raise EngineUnusableError(other_version(found, __version__))


def _by_person(frame: Any, unit: str) -> Any:
    """Return the rows with all of a person's in one partition, in an order that can be repeated."""
    from pyspark.sql.types import IntegralType, StringType

    kind = frame.schema[unit].dataType
    if not isinstance(kind, IntegralType | StringType):
        raise ColumnTypeError(
            f"the unit {unit!r} has type {kind.simpleString()} in Spark: make it text or whole "
            "numbers first, for which it is certain that equal ones come together"
        )
    columns = [_quoted(name) for name in frame.columns]
    count = frame.rdd.getNumPartitions()
    return frame.repartition(count, _quoted(unit)).sortWithinPartitions(*columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _empty(frame: Any, names: Sequence[str]) -> Any:
    """Return a table of no rows with those columns that a dataframe has, by their types."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    kept = [column for column in frame.schema.fields if column.name in names]
    return to_arrow_schema(StructType(kept)).empty_table()


def _give_up(context: Any, engine: str, place: tuple[str | None, str]) -> None:
    """Remove the files of this engine, on every machine that can be reached."""

    def remove(_: Any) -> list[None]:
        drop(engine)
        shutil.rmtree(_folder(place), ignore_errors=True)
        return []

    with contextlib.suppress(Exception):  # a cluster that is gone has nothing
        count = context.defaultParallelism
        context.parallelize(range(count), count).mapPartitions(remove).collect()
