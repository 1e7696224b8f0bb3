"""A port that stays open between fits: parties stay connected, fits come and go.

``privet coordinator serve`` holds the port (:class:`Desk`). A fit on the same machine finds it by a
socket file in the study's folder of runs, which only the same user can open (:func:`at_the_desk`),
and talks with the parties through it; one at a time. The desk passes messages on and looks at none
of them. When a fit is over, streams are ended, and the parties dial again at once: what a party
says of itself is new for every fit.

What goes through the socket file: a letter, the length of a party's name, the length of the rest,
then both. ``Y`` or ``B``: the port is free for this fit, or busy; ``O``: the party is here, and its
greeting; ``S``: it is gone; ``T``: it was sent away, and why; ``M``: a message, either way.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Condition, Event, Thread

from privet.errors import FederationError
from privet.federation.wire import MOST_BYTES, decode, encode
from privet.network.transport import Line, Port

_HEAD = struct.Struct("<cBQ")
Outbox = SimpleQueue[bytes | None]


class _Pipe:
    """One end of a connection at the desk."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = Thread(target=self._write, daemon=True)
        self._writer.start()

    def _write(self) -> None:
        with suppress(OSError):
            while (frame := self._outbox.get()) is not None:
                self._connection.sendall(frame)

    def put(self, letter: bytes, name: str, body: bytes = b"") -> None:
        raw = name.encode("utf-8")
        self._outbox.put(_HEAD.pack(letter, len(raw), len(body)) + raw + body)

    def frames(self) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield what comes, until the other end is gone."""
        with suppress(OSError):
            while head := self._read(_HEAD.size):
                letter, width, size = _HEAD.unpack(head)
                if size > MOST_BYTES:
                    return
                name = self._read(width)
                body = self._read(size) if size else b""
                yield letter, name.decode("utf-8"), body

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._connection.recv(min(size, 2**20))
            if not part:
                return b""
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def finish(self) -> None:
        """Send nothing more; the other end may still do so, until it has noticed."""
        self._outbox.put(None)
        self._writer.join(1)  # longer only if nobody reads
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.finish()
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class _Relayed(Line):
    """A party's stream at a desk: what comes is passed on to the fit that is there, if one is."""

    def __init__(self, name: str, desk: Desk) -> None:
        super().__init__(name)
        self._desk = desk

    def state(self) -> tuple[bytes, bytes]:
        """Return what a fit is told of the party."""
        if self.connected:
            return b"O", encode(self.greeting)
        return (b"S", b"") if self.trouble is None else (b"T", encode(self.trouble))

    def open(self, outbox: Outbox) -> bool:
        opened = super().open(outbox)
        if opened:
            self._desk.say(self)
        return opened

    def shut(self, outbox: Outbox) -> None:
        was_ours = self.is_open(outbox)
        super().shut(outbox)
        if was_ours or self.trouble is not None:
            self._desk.say(self)

    def arrive(self, message: bytes, alive: Callable[[], bool]) -> None:
        del alive
        self._desk.pass_on(self.name, message)


class Desk:
    """Holds a study's port, and lets one fit at a time use it.

    Parameters
    ----------
    make_port : function
        Opens the port, for lines of the desk.
    names : list of str
        The parties.
    path : path
        The socket file.
    tell : function
        Is told, in a sentence, who comes and goes.
    """

    def __init__(
        self,
        make_port: Callable[[Mapping[str, Line]], Port],
        names: list[str],
        path: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._tell = tell
        self._fit: _Pipe | None = None
        self._changed = Condition()
        self._lines = {name: _Relayed(name, self) for name in names}
        self._end = Event()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        other = find(path)
        if other is not None:
            other.close()
            raise FederationError("this study is being served already, by another process")
        path.unlink(missing_ok=True)
        self._path = path
        self._port = make_port(self._lines)
        try:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(str(path))
            path.chmod(0o600)
            self._socket.listen()
        except OSError as error:
            self._port.close()
            raise FederationError(
                f"the port cannot be shared through {path}: {error.strerror or error}"
            ) from None
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Wait until the desk is closed."""
        self._end.wait()

    def close(self) -> None:
        """End all."""
        self._end.set()
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._fit is not None:
            self._fit.close()
        self._port.close()

    def say(self, line: _Relayed) -> None:
        """Tell the fit what became of a stream."""
        with self._changed:
            away = "gone" if line.trouble is None else f"sent away: {line.trouble}"
            self._tell(f"{line.name} is {'here' if line.connected else away}")
            if self._fit is not None:
                letter, body = line.state()
                self._fit.put(letter, line.name, body)

    def pass_on(self, name: str, message: bytes) -> None:
        """Give a party's message to the fit."""
        with self._changed:
            if self._fit is not None:
                self._fit.put(b"M", name, message)

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._end.is_set():
                connection, _ = self._socket.accept()
                Thread(target=self._use, args=(connection,), daemon=True).start()

    def _use(self, connection: socket.socket) -> None:
        """Let a fit use the port until it is gone."""
        pipe = _Pipe(connection)
        with self._changed:
            if self._fit is not None:
                pipe.put(b"B", "")
                pipe.close()
                return
            self._fit = pipe
            pipe.put(b"Y", "")
            for line in self._lines.values():
                letter, body = line.state()
                pipe.put(letter, line.name, body)
        self._tell("a fit begins")
        for letter, name, body in pipe.frames():
            if letter != b"M" or name not in self._lines:
                break
            self._lines[name].ask(0, body)  # the fit asks again what is not answered
        with self._changed:
            self._fit = None
        pipe.close()
        self._tell("a fit has ended")
        for line in self._lines.values():
            line.end()


def find(path: Path) -> socket.socket | None:
    """Return a connection to the desk of a study, if one is there."""
    if not hasattr(socket, "AF_UNIX") or not path.exists():
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


@contextmanager
def at_the_desk(connection: socket.socket, names: list[str]) -> Iterator[dict[str, Line]]:
    """Yield lines to the parties, through the desk that holds the port."""
    lines = {name: Line(name) for name in names}
    pipe = _Pipe(connection)
    frames = pipe.frames()
    outboxes: dict[str, _Outgoing] = {}

    def read() -> None:
        for letter, name, body in frames:
            line = lines.get(name)
            if line is None:
                break
            if letter == b"M":
                line.arrive(body, lambda: True)
                continue
            if name in outboxes:
                line.shut(outboxes.pop(name))
            line.trouble = decode(body) if letter == b"T" else None
            if letter == b"O":
                line.greeting = decode(body)
                outboxes[name] = _Outgoing(pipe, name)
                line.open(outboxes[name])
        for name, outbox in outboxes.items():
            lines[name].shut(outbox)

    reader = Thread(target=read, daemon=True)
    try:
        if next(frames, (b"", "", b""))[0] != b"Y":
            raise FederationError(
                "another fit of this study is going on; wait for it, or end it. Nothing was asked"
            )
        reader.start()
        yield lines
    finally:
        pipe.finish()
        if reader.is_alive():
            reader.join(5)  # the desk closes its end when the next fit may come
        pipe.close()


class _Outgoing(SimpleQueue[bytes | None]):
    """What a line writes to, if its stream is at the desk."""

    def __init__(self, pipe: _Pipe, name: str) -> None:
        self._pipe, self._name = pipe, name

    def put(self, item: bytes | None, block: bool = True, timeout: float | None = None) -> None:
        """Send a message."""
        del block, timeout
        if item is not None:
            self._pipe.put(b"M", self._name, item)
