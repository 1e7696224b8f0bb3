"""One port, to which parties dial: streams of messages, with TLS on both sides.

The coordinator has the only port (:class:`Port`). Every party dials out to it (:class:`Dialler`)
and keeps one stream, through an HTTP CONNECT proxy if there is one. Both show certificates, and
each knows the other by the fingerprint of its key: what somebody says of himself is not believed.

What goes over a stream are frames: a letter, and bytes.

=======  ===============================================================================
``G``    greeting, coded (:mod:`privet.federation.wire`): the coordinator's comes first
``M``    a piece of a message; more follows
``E``    the last piece of a message: a coded Request or Reply
``W``    welcome: the coordinator has looked at the party's greeting
``R``    a refusal, coded text; then the stream ends
=======  ===============================================================================

A stream that breaks is dialled again, and questions without an answer are asked again: the same
number with the same bytes, which a party answers with the bytes of the first time.

gRPC carries the frames, since it has what is hard: TLS, flow control, proxies, pings that keep a
line open. Its compiler of interfaces is not needed: there is one method, and bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Full, Queue, SimpleQueue
from threading import Condition, Event, Thread
from typing import Any

from privet import __version__
from privet.errors import FederationError, PrivetError
from privet.federation.wire import MAGIC, MOST_BYTES, MOST_REFUSAL, WireError, decode, encode
from privet.network.interface import Answering
from privet.network.keys import SERVER_NAME, Certificate, Identity, check_network

_METHOD = "/privet.Study/Talk"
#: Bytes of a frame; gRPC refuses messages above four megabytes.
_PIECE = 2**21
#: Seconds between pings: proxies and balancers cut lines that are idle for four minutes.
KEEP_ALIVE = 60.0
#: Seconds without an answer to a ping after which a line counts as dead.
_DEAD = 20.0
#: Seconds between attempts to dial: the first, and the longest; also where the party itself takes
#: no part, which its owner may change at any moment.
_FIRST_PAUSE, _LONGEST_PAUSE, _DECLINED_PAUSE = 0.5, 60.0, 5.0
#: Messages of a party that nobody has read yet; then it has to wait.
_UNREAD = 16
#: Seconds in which a party must have said who it is.
_GREETING_TIME = 30.0

_OPTIONS = [
    ("grpc.keepalive_time_ms", int(KEEP_ALIVE * 1000)),
    ("grpc.keepalive_timeout_ms", int(_DEAD * 1000)),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", int(KEEP_ALIVE * 500)),
    ("grpc.http2.max_ping_strikes", 0),
]


def _pieces(message: bytes) -> Iterator[bytes]:
    """Yield the frames of a message."""
    for start in range(0, max(len(message), 1), _PIECE):
        last = start + _PIECE >= len(message)
        yield (b"E" if last else b"M") + message[start : start + _PIECE]


def _messages(frames: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield letters and what came with them, messages put together.

    Raises
    ------
    WireError
        If something else came.
    """
    parts: list[bytes] = []
    size = 0
    for frame in frames:
        letter, body = frame[:1], frame[1:]
        if letter in (b"M", b"E"):
            parts.append(body)
            size += len(body)
            if size > MOST_BYTES or len(frame) > _PIECE + 1 or (letter == b"M" and not body):
                raise WireError("a message is too long, or in too many pieces")
            if letter == b"M":
                continue
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            parts, size = [], 0
        elif letter not in (b"G", b"R", b"W") or parts or len(frame) > _PIECE:
            raise WireError("this is no frame of a stream")
        yield letter, body


class _Refusal(bytes):
    """The frame of a refusal, not a message."""


def _coded_refusal(why: str) -> _Refusal:
    text = why.encode("utf-8", "backslashreplace").decode("utf-8")
    return _Refusal(b"R" + encode(text[:MOST_REFUSAL]))


# The coordinator's side


class Line:
    """What the coordinator has of one party: a stream, or the hope for one.

    Parameters
    ----------
    name : str
        The party's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        #: What the party said last when it came; None if it was never here.
        self.greeting: dict[str, Any] | None = None
        #: Why it was sent away, if it was.
        self.trouble: str | None = None
        #: Bytes that went to it and came from it.
        self.sent = self.received = 0
        self._changed = Condition()
        self._outbox: SimpleQueue[bytes | None] | None = None
        self._asked: dict[int, tuple[float, bytes]] = {}
        self._inbox: Queue[tuple[float, bytes]] = Queue(_UNREAD)

    @property
    def connected(self) -> bool:
        """Whether the party is here now."""
        return self._outbox is not None

    @property
    def waited(self) -> float | None:
        """For how many seconds the party has been waited for; None if it is not."""
        with self._changed:
            times = [asked for asked, _ in self._asked.values()]
        return time.monotonic() - min(times) if times and self._inbox.empty() else None

    def ask(self, number: int, message: bytes) -> None:
        """Send a question, now or when the party comes back.

        One with the number 0 is sent now or never, and nobody waits for its answer.
        """
        with self._changed:
            if number:
                self._asked[number] = time.monotonic(), message
            if self._outbox is not None:
                self._outbox.put(message)

    def take(self, seconds: float) -> tuple[float, bytes] | None:
        """Return when the next message came, and what it is; None if none came in time."""
        try:
            return self._inbox.get(timeout=seconds) if seconds > 0 else self._inbox.get_nowait()
        except Empty:
            return None

    def done(self, number: int) -> None:
        """Note that a question needs no answer any more."""
        with self._changed:
            self._asked.pop(number, None)

    def wait(self, seconds: float) -> bool:
        """Wait until the party is here; tell whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self.connected, seconds)

    # For the port

    def open(self, outbox: SimpleQueue[bytes | None]) -> bool:
        """Take a stream, if there is no other; send what was not answered."""
        with self._changed:
            if self._outbox is not None:
                return False
            self._outbox = outbox
            for _, message in self._asked.values():
                outbox.put(message)
            self._changed.notify_all()
            return True

    def is_open(self, outbox: SimpleQueue[bytes | None]) -> bool:
        """Tell whether a stream is the party's."""
        return self._outbox is outbox

    def shut(self, outbox: SimpleQueue[bytes | None]) -> None:
        """Let a stream go."""
        with self._changed:
            if self._outbox is outbox:
                self._outbox = None
                self._changed.notify_all()

    def end(self) -> None:
        """End the stream, if there is one; the party dials again."""
        with self._changed:
            if self._outbox is not None:
                self._outbox.put(None)

    def arrive(self, message: bytes, alive: Callable[[], bool]) -> None:
        """Keep a message until somebody reads it; a party that says too much has to wait."""
        self.received += len(message)
        arrived = time.monotonic()
        while alive():
            with suppress(Full):
                self._inbox.put((arrived, message), timeout=1.0)
                return


class Port:
    """The coordinator's port.

    Parameters
    ----------
    address : str
        ``host:port``, as parties reach it or as this machine calls it: ``0.0.0.0:443``.
    identity : Identity
        The coordinator's key and certificate.
    parties : mapping of str to Certificate
        Who may come, by name.
    study : str
        The study's name, which parties are told first.
    schema : str
        Digest of the study's schema; a party with another one is sent away.
    lines : mapping of str to Line, optional
        What there is of every party; new ones if None.
    dealer : str, optional
        Who of them is no party but deals, and has no schema.

    Notes
    -----
    Use it in a ``with`` statement, or close it.
    """

    def __init__(
        self,
        address: str,
        identity: Identity,
        parties: Mapping[str, Certificate],
        study: str,
        schema: str,
        lines: Mapping[str, Line] | None = None,
        *,
        dealer: str | None = None,
    ) -> None:
        check_network()
        import grpc

        self._dealer = dealer
        self.lines = dict(lines or {name: Line(name) for name in parties})
        self._names = {each.fingerprint: name for name, each in parties.items()}
        self._study, self._schema = study, schema
        self._greeting = b"G" + encode(
            {"study": study, "version": __version__, "wire": MAGIC[3], "schema": schema}
        )
        identity.certificate.check_dates()
        for each in parties.values():
            each.check_dates()
        # A thread for each party's stream, and some for those that are sent away.
        self._pool = ThreadPoolExecutor(len(parties) + 4, thread_name_prefix="party")
        self._server = grpc.server(
            self._pool,
            options=[
                *_OPTIONS,
                ("grpc.max_concurrent_streams", 4),
                ("grpc.so_reuseport", 0),  # a second coordinator on the port is refused
                ("grpc.max_receive_message_length", _PIECE + 16),
            ],
            maximum_concurrent_rpcs=len(parties) + 4,
        )
        handler = grpc.stream_stream_rpc_method_handler(self._talk)
        service, method = _METHOD[1:].split("/")
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
        credentials = grpc.ssl_server_credentials(
            [(identity.key_pem, identity.certificate.pem)],
            root_certificates=b"".join(each.pem for each in parties.values()),
            require_client_auth=True,
        )
        try:
            self.number = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            self.number = 0
        if not self.number:
            self._pool.shutdown()
            raise FederationError(
                f"the coordinator cannot listen at {address}: another program has the port, or it "
                "needs rights that this user lacks; nothing was asked"
            )
        self._server.start()

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all streams."""
        for line in self.lines.values():
            line.end()
        self._server.stop(0.2).wait(5)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _talk(self, frames: Any, context: Any) -> Iterator[bytes]:
        """Talk with whoever dialled: who it is, its certificate says."""
        import grpc

        name = self._caller(context)
        if name is None:
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                "the study has no party with this certificate's fingerprint",
            )
            return
        line = self.lines[name]
        outbox: SimpleQueue[bytes | None] = SimpleQueue()
        greeted = Event()
        reading = Thread(target=self._read, args=(line, frames, context, outbox, greeted))
        reading.daemon = True
        yield self._greeting
        reading.start()
        context.add_callback(lambda: outbox.put(None))
        greeted.wait(_GREETING_TIME)
        if not greeted.is_set():
            line.trouble = "it dialled, and did not say anything"
            return
        if line.is_open(outbox):
            yield b"W"
        try:
            while (message := outbox.get()) is not None:
                if isinstance(message, _Refusal):
                    yield bytes(message)
                    return
                line.sent += len(message)
                yield from _pieces(message)
        finally:
            line.shut(outbox)

    def _read(
        self,
        line: Line,
        frames: Any,
        context: Any,
        outbox: SimpleQueue[bytes | None],
        greeted: Event,
    ) -> None:
        """Read what a party sends, until it ends or talks nonsense."""
        try:
            for letter, body in _messages(frames):
                if not greeted.is_set():
                    line.trouble = self._check_greeting(line, letter, body)
                    if line.trouble is not None:
                        outbox.put(_coded_refusal(line.trouble))
                    elif not line.open(outbox):
                        outbox.put(_coded_refusal("there is a stream of this party already"))
                    greeted.set()
                elif letter == b"E":
                    line.arrive(body, context.is_active)
                else:
                    break
        except Exception:  # the stream's end, or nonsense: both end it
            line.shut(outbox)
        greeted.set()
        outbox.put(None)

    def _check_greeting(self, line: Line, letter: bytes, body: bytes) -> str | None:
        """Return what is wrong with what a party says first; None if nothing is."""
        greeting: Any = None
        if (other := _other_version(body)) is not None:
            return _other_wire("it", other, "the coordinator")
        if letter in (b"G", b"R"):
            with suppress(WireError):
                greeting = decode(body)
        if letter == b"R" and type(greeting) is str:
            return f"it takes no part: {greeting}"
        schema = None if line.name == self._dealer else self._schema
        wrong = wrong_with(greeting, line.name, schema)
        if wrong is None:
            line.greeting = greeting
        return wrong

    def _caller(self, context: Any) -> str | None:
        """Return the name of the party whose key the other end has proved to have."""
        pem = context.auth_context().get("x509_pem_cert")
        if not pem:
            return None
        try:
            return self._names.get(Certificate(pem[0], "a caller").fingerprint)
        except FederationError:
            return None


def wrong_with(greeting: Any, name: str, schema: str | None) -> str | None:
    """Return what is wrong with what a party or dealer says first; None if nothing is.

    Parameters
    ----------
    greeting
        What it says, decoded.
    name : str
        Its name in the study.
    schema : str or None
        Digest of the study's schema; None for a dealer, who has no rows.
    """
    kinds = {"version": str, "schema": str, "name": str, "last": int}
    if type(greeting) is not dict or any(
        type(greeting.get(key)) is not kind for key, kind in kinds.items()
    ):
        return "its greeting is none"
    if greeting["version"] != __version__:
        return (
            f"it has privet {greeting['version'][:32]}, and the coordinator {__version__}: "
            "install the same version"
        )
    if greeting["name"] != name:
        return "it calls itself by another name than the study has for its certificate"
    if schema is not None and greeting["schema"] != schema:
        return "its schema is not that of the study: give both sides the same file"
    return None


# A party's side


class Dialler:
    """A party's side: dials the coordinator, and lets somebody answer what it asks.

    Parameters
    ----------
    answering : Answering
        Who answers.
    address : str
        The coordinator's ``host:port``.
    identity : Identity
        The party's key and certificate.
    coordinator : Certificate
        The coordinator's.
    proxy : str, optional
        An HTTP CONNECT proxy, ``http://host:port``. If None, that of the environment
        (``https_proxy``, ``no_proxy``).
    tell : function, optional
        Is told, in a sentence, when the line opens, ends, or is refused.
    pause : float, default=60.0
        The longest time between two attempts, in seconds.
    """

    def __init__(
        self,
        answering: Answering,
        address: str,
        identity: Identity,
        coordinator: Certificate,
        *,
        proxy: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
        pause: float = _LONGEST_PAUSE,
    ) -> None:
        check_network()
        self._answering = answering
        self._address, self._proxy = address, proxy
        self._identity, self._coordinator = identity, coordinator
        self._tell = tell
        self._pause = pause
        self._stopped = Event()
        self._call: Any = None
        self._told = ""
        self._welcome = self._declined = False

    def run(self) -> None:
        """Dial, answer, and dial again, until :meth:`stop` is called."""
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            talked = self._dial()
            longest = min(self._pause, _DECLINED_PAUSE) if self._declined else self._pause
            pause = _FIRST_PAUSE if talked else min(2 * pause, longest)
            self._stopped.wait(min(pause, self._pause))

    def stop(self) -> None:
        """End the stream, and dial no more. The question that is being answered is finished."""
        self._stopped.set()
        if self._call is not None:
            self._call.cancel()

    def _say(self, sentence: str) -> None:
        """Tell something, unless it was told last: attempts that fail alike are told once."""
        if sentence != self._told:
            self._told = sentence
            self._tell(sentence)

    def _dial(self) -> bool:
        """Dial once, and talk as long as the stream lasts; tell whether it was welcome."""
        import grpc

        try:
            self._identity.certificate.check_dates()
            self._coordinator.check_dates()
        except FederationError as error:
            self._say(str(error))
            return False
        credentials = grpc.ssl_channel_credentials(
            self._coordinator.pem, self._identity.key_pem, self._identity.certificate.pem
        )
        options = [
            *_OPTIONS,
            ("grpc.ssl_target_name_override", SERVER_NAME),
            ("grpc.max_receive_message_length", _PIECE + 16),
        ]
        proxy = self._proxy or os.environ.get("HTTPS_PROXY")  # gRPC reads the one in small letters
        if proxy:
            options.append(("grpc.http_proxy", proxy))
        outbox: SimpleQueue[bytes | None] = SimpleQueue()
        channel = grpc.secure_channel(self._address, credentials, options=options)
        self._welcome = self._declined = False
        try:
            self._call = channel.stream_stream(_METHOD)(iter(outbox.get, None))
            if not self._stopped.is_set():
                self._talk(outbox)
        except grpc.RpcError as error:
            self._say(self._why(error))
        except WireError:
            self._say("what came from the coordinator is no message of this version of privet")
        finally:
            outbox.put(None)
            channel.close()
            self._call = None
        return self._welcome

    def _talk(self, outbox: SimpleQueue[bytes | None]) -> None:
        """Answer what comes, until the stream ends."""
        study: str | None = None
        for letter, body in _messages(self._call):
            if letter == b"G" and (other := _other_version(body)) is not None:
                self._declined = True
                why = _other_wire("the coordinator", other, "this site")
                outbox.put(bytes(_coded_refusal(why)))
                self._say(why)
            elif letter == b"G" and study is None:
                study = _study_of(body)
                try:
                    outbox.put(b"G" + encode(self._answering.greet(study)))
                except PrivetError as error:
                    self._declined = True
                    outbox.put(bytes(_coded_refusal(str(error))))
                    self._say(f"no part in the study {study!r}: {error}")
            elif letter == b"R":
                if not self._declined and _other_version(body) is None:
                    self._say(f"the coordinator refuses: {decode(body)!s}")
                return
            elif letter == b"W" and study is not None:
                self._welcome = True
                self._say(f"connected, for the study {study!r}")
            elif letter == b"E" and study is not None and self._welcome:
                for piece in _pieces(self._answering.reply(study, body)):
                    outbox.put(piece)
            else:
                raise WireError("a frame in the wrong place")
        self._say("the coordinator has ended the stream; dialling again")

    def _why(self, error: Any) -> str:
        """Return in a sentence why a stream ended."""
        import grpc

        code, details = error.code(), error.details() or ""
        if self._stopped.is_set() or code == grpc.StatusCode.CANCELLED:
            return "the stream has ended"
        if code == grpc.StatusCode.PERMISSION_DENIED:
            return (
                "the coordinator does not know this site: its study must have the fingerprint of "
                "this certificate"
            )
        if "CERTIFICATE_VERIFY_FAILED" in details:
            return (
                f"whoever answers at {self._address} has not the coordinator's key: is the address "
                "right, is its certificate still valid?"
            )
        if self._welcome:
            return "the stream to the coordinator broke; dialling again"
        return (
            f"no stream to {self._address}: nobody listens there (yet), a proxy or firewall is in "
            "between, or the coordinator does not know this site's certificate"
        )


def _other_version(coded: bytes) -> int | None:
    """Return the version of the format in which something is coded, if it is another one."""
    if coded[:3] != MAGIC[:3] or len(coded) < len(MAGIC) or coded[3] == MAGIC[3]:
        return None
    return coded[3]


def _other_wire(one: str, version: int, other: str) -> str:
    return (
        f"{one} speaks version {version} of the messages between parties, and {other} version "
        f"{MAGIC[3]}: install the same version of privet"
    )


def _study_of(greeting: bytes) -> str:
    """Return the study that a coordinator's greeting names."""
    found = decode(greeting)
    if type(found) is not dict or type(found.get("study")) is not str:
        raise WireError("a greeting names a study")
    study: str = found["study"]
    return study
