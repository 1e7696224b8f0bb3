"""A study whose messages are carried by a job of NVFlare: links, learners and books are the same.

What differs from gRPC: a party that is gone stays gone, since NVFlare's clients do not come back
into a job that is running. So a run through NVFlare cannot be resumed, and only protocols with few
rounds are for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Protocol

from privet.errors import FederationError
from privet.federation import Lost
from privet.flare.sealed import CoordinatorEnd
from privet.network import Study, digest_of
from privet.network.interface import NVFLARE
from privet.network.transport import Line

#: The protocols that have rounds few enough.
FEW_ROUNDS = ("noisy-counts", "local-rnm")
#: Seconds after which a question is carried again: the party gives the same answer again.
_CARRIED = 60.0
#: Seconds between attempts to reach a party, and between looks at whether the job was aborted.
_PAUSE, _LOOK = 1.0, 0.1


class Unreachable(Exception):
    """A frame could not be carried, or nothing came back."""


class Channel(Protocol):
    """What carries frames between the coordinator and the parties of a job."""

    def request(self, name: str, frame: bytes, seconds: float) -> bytes:
        """Carry a frame to a party; return the one that it answers, or raise Unreachable."""

    def gone(self, name: str) -> bool:
        """Tell whether a party's client has left the job: for good."""

    def aborted(self) -> bool:
        """Tell whether the job is to end."""


class JobLine(Line):
    """What the coordinator has of one party in a job: see :class:`~privet.network.transport.Line`.

    Parameters
    ----------
    name : str
        The party's name.
    channel : Channel
        What carries its messages.
    """

    def __init__(self, name: str, channel: Channel) -> None:
        super().__init__(name)
        #: Why nothing more will come, if that is known.
        self.lost: str | None = None
        self._channel = channel

    def take(self, seconds: float) -> tuple[float, bytes] | None:
        """See :class:`~privet.network.transport.Line`; raises if nothing more will come."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            found = super().take(min(_LOOK, max(0.0, left)))
            if found is not None:
                return found
            self._check()
            if self.lost is not None:
                raise Lost(f"party {self.name!r} is lost: {self.lost}")
            if left <= 0:
                return None

    def wait(self, seconds: float) -> bool:
        """See :class:`~privet.network.transport.Line`; raises if the party will not come."""
        end = time.monotonic() + seconds
        while not super().wait(_LOOK):
            self._check()
            if self.lost is not None or time.monotonic() > end:
                return False
        return True

    def _check(self) -> None:
        if self._channel.aborted():
            raise FederationError(
                f"NVFlare has ended the job while party {self.name!r} was waited for: somebody has "
                "aborted it, or a client has left it. The parties' ledgers show what they spent; a "
                "run through NVFlare is not resumed, and a new job pays anew"
            )


class _Carrier:
    """Carries what a line has to say, and what its party answers."""

    def __init__(self, line: JobLine, end: CoordinatorEnd, channel: Channel, schema: str) -> None:
        self._line, self._end, self._channel, self._schema = line, end, channel, schema
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._outbox.put(None)
        self._thread.join(2 * _PAUSE)

    def _request(self, frame: bytes) -> bytes:
        return self._channel.request(self._line.name, frame, _CARRIED)

    def _run(self) -> None:
        line = self._line
        try:
            greeting = self._greeting()
            if greeting is None:
                return
            line.greeting, line.trouble = greeting, None
            line.open(self._outbox)
            while (message := self._outbox.get()) is not None:
                reply = self._reply(message)
                if reply is None:
                    return
                line.sent += len(message)
                line.arrive(reply, lambda: not self._over.is_set())
        except FederationError as error:  # the line is broken: what came was not the party's
            line.lost = line.trouble = str(error)
        finally:
            line.shut(self._outbox)

    def _greeting(self) -> dict[str, Any] | None:
        """Return what the party says first, when it does; None if it will not."""
        while self._goes_on():
            try:
                return self._end.greet(self._request, self._schema)
            except Unreachable:
                pass  # its process of the job is still starting, or reads the rows
            except FederationError as error:
                self._line.trouble = str(error)
            self._over.wait(_PAUSE)
        return None

    def _reply(self, message: bytes) -> bytes | None:
        """Return what the party answers, when it does; None if it will not."""
        while self._goes_on():
            try:
                return self._end.ask(self._request, message)
            except Unreachable:
                self._over.wait(_PAUSE)
        return None

    def _goes_on(self) -> bool:
        if self._over.is_set() or self._channel.aborted():
            return False
        if self._channel.gone(self._line.name):
            self._line.lost = "NVFlare says that its client has left the job"
            if self._line.greeting is None:  # why it was not welcome says more
                self._line.trouble = self._line.trouble or self._line.lost
            return False
        return True


@dataclass(frozen=True)
class JobStudy(Study):
    """A study that is asked inside a job of NVFlare: see :class:`~privet.network.Study`.

    Attributes
    ----------
    channel : Channel
        What carries the messages.
    """

    channel: Channel | None = None

    @classmethod
    def read(cls, path: Path, channel: Channel) -> JobStudy:
        """Read a study from its file; raise if it is not one for jobs of NVFlare."""
        found = Study.from_toml(path)
        given = {field.name: getattr(found, field.name) for field in fields(found)}
        return cls(**given, channel=channel)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.listen != NVFLARE:
            raise FederationError(
                "the study has a port of its own: with listen = 'nvflare' in its file it is asked "
                "by jobs of NVFlare. Nothing was asked"
            )
        if self.protocol not in FEW_ROUNDS:
            raise FederationError(
                f"{self.protocol} is not for jobs of NVFlare: it takes hundreds of rounds, which "
                "are slow there, and a secret choice ends with a client that cannot come back into "
                f"the job. Use one of {', '.join(FEW_ROUNDS)}, or a port (listen = 'host:port'). "
                "Nothing was asked"
            )

    @contextmanager
    def open(self) -> Iterator[dict[str, Line]]:
        """Reach the parties through the job; yield lines to them."""
        assert self.channel is not None
        schema = digest_of(self.schema)
        lines = {name: JobLine(name, self.channel) for name in self.parties}
        carriers = [
            _Carrier(
                line,
                CoordinatorEnd(self.identity, self.name, name, self.parties[name]),
                self.channel,
                schema,
            )
            for name, line in lines.items()
        ]
        try:
            yield dict(lines)
        finally:
            for carrier in carriers:
                carrier.close()
