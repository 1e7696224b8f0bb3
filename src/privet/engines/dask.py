"""Rows on a Dask cluster: blocks stay where they were encoded, questions go to them.

One task for every thread of a worker asks all of its blocks, so that a round costs little. A task
prefers the worker that has the blocks and may run on another, which then says that it lacks them:
so a worker that is lost holds nobody up. Large answers are added up from worker to worker, and only
the total comes here.

The cluster is inside the wall: its scheduler and its workers see rows.
"""

from __future__ import annotations

import contextlib
import ipaddress
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import finalize

from privet import __version__
from privet.engines import _kernels
from privet.engines._cluster import RETRIES, ClusterBlocks
from privet.engines._workers import (
    Built,
    Failure,
    Message,
    Reply,
    answer,
    build,
    drop,
    merge,
    other_version,
    put_parts,
)
from privet.engines.encoding import parts_of, workers
from privet.engines.engine import BlockEngine
from privet.engines.parquet import list_pieces
from privet.engines.weighing import Weighed, shares_of, weigh
from privet.errors import DataError, EngineError, EngineUnusableError
from privet.reading import Columns, check_types
from privet.schema import Schema

#: What workers' environment should say. Dask's own settings give every array of a block back to the
#: system as soon as it is free, which costs a third of the time in page faults. One arena: what the
#: thread that counts has freed serves the one that sends answers, else each keeps a heap.
ALLOCATOR = {
    "MALLOC_ARENA_MAX": 1,
    "MALLOC_MMAP_THRESHOLD_": 2**26,
    "MALLOC_TRIM_THRESHOLD_": 2**28,
    "OMP_NUM_THREADS": 1,
}
#: Seconds after which a cluster without any worker is given up.
_PATIENCE = 60.0
#: Seconds between two looks at whether workers are still there.
_LOOK = 2.0


def dask_engine(
    source: Any,
    schema: Schema,
    *,
    client: Any = None,
    security: Any = None,
    gather: bool = True,
    insecure: bool = False,
) -> BlockEngine:
    """Return an engine for rows on a Dask cluster.

    Parameters
    ----------
    source : dask dataframe, path, or list of paths
        Parquet files may be given by a folder or a pattern; every worker reads its own pieces, so
        all of them need the files under the same names. A dataframe is encoded where its
        partitions are.
    schema : Schema
    client : distributed.Client, str or None
        A client, or the address of a scheduler. None: a cluster of processes on this machine, one
        for every processor, which ends with the engine. Its workers import the main module, so a
        script needs its ``if __name__ == "__main__":``.
    security : distributed.Security, optional
        For an address: certificates and keys, which the library only passes on.
    gather : bool, default=True
        Whether a cell's encoded rows may be brought here for a draw of whole trees, if they are
        few enough: at most 2^29 codes. If not, sums are added up on the cluster, however large.
    insecure : bool, default=False
        Whether a scheduler is used that anybody on a network can reach and listen to.
    """
    _distributed()
    own = client is None or isinstance(client, str)
    with contextlib.ExitStack() as opened:
        if client is None:
            client = _local(opened)
        elif own:
            client = _connected(client, security, opened, insecure=insecure)
        _check_client(client, insecure=insecure)
        _check_versions(client)
        blocks = _blocks_of(source, schema, client, gather=gather)
        blocks.fill()
        blocks.end = finalize(blocks, _give_up, blocks.engine, client, opened.pop_all())
        blocks.end.atexit = False
    return BlockEngine(blocks)


class DaskBlocks(ClusterBlocks):
    """Blocks on the workers of a Dask cluster.

    Parameters
    ----------
    schema : Schema
    sources : sequence of Piece or Delayed
        What blocks are made from.
    client : distributed.Client
    gathers : bool
    fast : bool or None
        Whether there are enough rows for compiled loops; None if nobody knows yet.
    """

    def __init__(
        self,
        schema: Schema,
        sources: Sequence[Any],
        client: Any,
        *,
        gathers: bool,
        fast: bool | None,
    ) -> None:
        super().__init__(schema, len(sources), gathers=gathers)
        #: Frees what workers hold, once.
        self.end: finalize[..., DaskBlocks] | None = None
        self._sources = sources
        self._client = client
        self._known_size = fast
        self._homes: dict[int, str] = {}
        self._threads: dict[str, int] = dict(client.nthreads())
        self._numbers = count()

    def close(self) -> None:
        """See :class:`~privet.engines.engine.Blocks`."""
        if self.end is not None:
            self.end()

    def _build(self, numbers: Sequence[int]) -> Iterator[Built]:
        from dask import delayed
        from dask.delayed import Delayed

        parts = self.engine, __version__
        futures, homes = [], []
        for number in numbers:
            self._homes.pop(number, None)
        for number, home in zip(numbers, self._spread(len(numbers)), strict=True):
            source = self._sources[number]
            if isinstance(source, Delayed):
                made = delayed(_build, pure=False)(*parts, number, self.schema, source, None)
                futures.append(self._client.compute(made))
                homes.append(set[str]())
            else:
                rest = number, self.schema, source, self._known_size
                futures.append(self._submit(_build, *parts, *rest, home=home))
                homes.append(set() if home is None else {home})
        failures: list[Failure] = []
        for built in self._collect(futures, homes, failures):
            self._homes[built.number] = built.worker
            yield built
        for failure in failures:
            yield Built(-1, 0, 0, "", failure)

    def _spread(self, blocks: int) -> list[str | None]:
        """Return a worker for each of some blocks: those with the fewest for their threads."""
        if not self._threads:
            return [None] * blocks
        load = dict.fromkeys(self._threads, 0)
        for home in self._homes.values():
            if home in load:
                load[home] += 1
        homes: list[str | None] = []
        for _ in range(blocks):
            home = min(load, key=lambda worker: load[worker] / self._threads[worker])
            load[home] += 1
            homes.append(home)
        return homes

    def _groups(self, numbers: Iterable[int]) -> list[tuple[str, tuple[int, ...]]]:
        held: dict[str, list[int]] = {}
        for number in sorted(numbers):
            held.setdefault(self._homes[number], []).append(number)
        return [
            (home, tuple(mine[part]))
            for home, mine in held.items()
            for part in parts_of(len(mine), min(len(mine), self._threads.get(home, 1)))
        ]

    def _send(self, messages: Sequence[tuple[str, Message]], *, large: bool) -> list[Reply]:
        asked = [(self._submit(_answer, message, home=home), {home}) for home, message in messages]
        question = messages[0][1].question
        while large and len(asked) > 1:
            merged = [
                (self._submit(merge, question, one, other), homes | more)
                for (one, homes), (other, more) in zip(asked[::2], asked[1::2], strict=False)
            ]
            asked = merged + asked[2 * len(merged) :]
        futures, homes = zip(*asked, strict=True)
        failures: list[Failure] = []
        replies = self._collect(futures, homes, failures)
        return [*replies, Reply(failures=tuple(failures))]

    def _weigh(self) -> None:
        """See :class:`ClusterBlocks`."""
        if self.schema.unit is None:
            return
        for _ in range(1 + RETRIES):
            new = set(self._weightless)
            if not new:
                return
            self._weightless.clear()  # those that are lost meanwhile are noted again
            found = weigh(lambda question: self.ask(question, ()), self.rows, self.schema)
            for share, weighed in enumerate(found):
                mine = [one for one in weighed if one[0] in new]
                lost = self._give(mine, share, shares_of(self.rows))
                self._lost |= lost
                self._weightless |= lost
        raise EngineError("the cluster lost blocks again and again while records were weighed")

    def _give(self, weighed: Sequence[Weighed], share: int, shares: int) -> set[int]:
        """Tell blocks what their records of a share weigh; return the numbers of lost blocks."""
        homes: dict[str, list[Weighed]] = {}
        for one in weighed:
            homes.setdefault(self._homes[one[0]], []).append(one)
        futures = [
            self._submit(put_parts, self.engine, mine, share, shares, home=home)
            for home, mine in homes.items()
        ]
        told = self._collect(futures, [{home} for home in homes], []) if futures else []
        return {number for number, *_ in weighed}.difference(*told)

    def _recover(self) -> None:
        with contextlib.suppress(TimeoutError):
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        self._threads = dict(self._client.nthreads())
        gone = {number for number, home in self._homes.items() if home not in self._threads}
        self._lost |= gone

    def _is_lost(self, number: int, worker: str) -> bool:
        return self._homes[number] == worker  # else it ran elsewhere, and is asked again at home

    def _submit(self, function: Any, *arguments: Any, home: str | None = None) -> Any:
        return self._client.submit(
            function,
            *arguments,
            key=f"privet-{self.engine}-{next(self._numbers)}",
            workers=None if home is None else [home],
            allow_other_workers=home is not None,
            pure=False,
        )

    def _collect(
        self, futures: Sequence[Any], homes: Sequence[set[str]], failures: list[Failure]
    ) -> list[Any]:
        """Return what futures hold, as far as they hold anything; note the kinds of failures.

        A scheduler that had no worker at all keeps waiting for the home of a task, even when others
        have come. So whoever waits for a home that is gone is not waited for.
        """
        from distributed import wait

        pending = list(futures)
        waited = 0.0
        while pending:
            try:
                wait(pending, timeout=_LOOK)
                break
            except TimeoutError:
                alive = set(self._client.nthreads())
            except Exception as error:  # a future that was cancelled: its status says so
                failures.append((type(error).__name__, None))
                break
            waited = 0.0 if alive else waited + _LOOK
            if waited >= _PATIENCE:
                failures.append(("no workers", None))
                return []
            pending = [
                future
                for future, mine in zip(futures, homes, strict=True)
                if future.status == "pending" and (mine <= alive or not alive)
            ]
        done = []
        for future in futures:
            if future.status == "finished":
                done.append(future)
            elif future.status == "error":
                # Its text may quote rows: somebody else's exception, such as a reader's.
                failures.append((type(future.exception()).__name__, None))
            else:
                failures.append((future.status, None))
        try:
            found: list[Any] = self._client.gather(done, errors="skip")
        except Exception as error:
            failures.append((type(error).__name__, None))
            return []
        return found


# On workers


def _here() -> str:
    from distributed import get_worker

    address: str = get_worker().address
    return address


def _build(
    engine: str, version: str, number: int, schema: Schema, source: Any, fast: bool | None
) -> Built:
    return build(engine, version, number, schema, source, _here(), fast=fast)


def _answer(message: Message) -> Reply:
    return answer(message, _here())


# What blocks are made from


def _blocks_of(source: Any, schema: Schema, client: Any, *, gather: bool) -> DaskBlocks:
    fast: bool | None = None
    sources: Sequence[Any]
    if hasattr(source, "to_delayed") and hasattr(source, "_meta"):
        columns = Columns.of(source._meta, schema)
        check_types(columns, columns.target(schema), schema)
        sources = list(source[list(schema.columns)].to_delayed())
    elif isinstance(source, str | Path | list | tuple):
        sources = list_pieces(source, schema)
        fast = _kernels.compiled(sum(piece.rows for piece in sources) * len(schema.names))
    else:
        raise DataError("give a dask dataframe, or the path of Parquet files, a folder or a list")
    return DaskBlocks(schema, sources, client, gathers=gather, fast=fast)


# The cluster


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        pass
    else:
        return distributed
    raise EngineUnusableError("this needs Dask: pip install privet[dask]")


def _local(opened: contextlib.ExitStack) -> Any:
    """Start a cluster of processes on this machine, which nobody else can use.

    Other people may be on this machine too, so its connections are encrypted and both sides show
    certificates, which are made for this cluster alone.
    """
    import dask

    distributed = _distributed()
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise EngineUnusableError(
            'workers import the main module: put what it does under `if __name__ == "__main__":`'
        )
    with dask.config.set({"distributed.nanny.pre-spawn-environ": ALLOCATOR}):
        cluster = opened.enter_context(
            distributed.LocalCluster(
                n_workers=workers(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                security=True,
                memory_limit=None,  # blocks are not Dask's to spill, and a pause helps nobody
            )
        )
    return opened.enter_context(distributed.Client(cluster))


def _connected(address: str, security: Any, opened: contextlib.ExitStack, *, insecure: bool) -> Any:
    """Connect to a scheduler."""
    distributed = _distributed()
    _check_address(address, insecure=insecure)
    failed = None
    try:
        return opened.enter_context(distributed.Client(address, security=security))
    except Exception as error:
        failed = type(error).__name__
    raise EngineUnusableError(f"cannot connect to the scheduler {address} ({failed})")


def _check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address at which others on the network can listen, or connect."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if insecure or parts.scheme in ("tls", "inproc", "wss") or _is_loopback(parts.hostname or ""):
        return
    raise EngineUnusableError(
        f"{address} is open: whoever can reach it can run code on the cluster, and rows pass over "
        "the network as they are. Use a tls:// address with security=Security(...) (dask+tls:// on "
        "the command line), or say insecure=True (--insecure) if the network itself is locked"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_client(client: Any, *, insecure: bool) -> None:
    if not isinstance(client, _distributed().Client) or client.asynchronous:
        raise EngineUnusableError("client must be a distributed.Client that is not asynchronous")
    info = client.scheduler_info(n_workers=-1)
    for address in (client.scheduler.address, info["address"], *info["workers"]):
        _check_address(address, insecure=insecure)
    if not info["workers"]:
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=_PATIENCE)
    if not client.nthreads():
        raise EngineUnusableError(
            "the cluster has no workers; nothing was asked and nothing was spent"
        )


def _check_versions(client: Any) -> None:
    """Refuse workers without this library, or with another version of it."""

    # A function within a function goes to workers as code: they need nothing to run it.
    def version() -> str | None:
        try:
            from privet import __version__ as here
        except ImportError:
            return None
        return here

    for found in client.run(version, on_error="return").values():
        if not isinstance(found, str):
            raise EngineUnusableError(
                f"a worker lacks privet: install version {__version__} wherever workers run"
            )
        if found != __version__:
            raise EngineUnusableError(other_version(found, __version__))


def _give_up(engine: str, client: Any, closing: contextlib.ExitStack) -> None:
    """Free what workers hold, and end what was started for it."""
    with contextlib.suppress(Exception):  # a cluster that is gone holds nothing
        if client.status == "running" and not client.asynchronous:
            client.run(drop, engine, on_error="ignore")
    with contextlib.suppress(Exception):
        closing.close()
