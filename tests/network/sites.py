"""Sites for the tests, as processes of their own: a party behind a dialler."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np

from privet import Budget, Categorical, Numeric, Schema, __version__
from privet.federation import Party
from privet.federation.links import _reply
from privet.federation.wire import Reply, Request, WireError, decode_as, encode
from privet.network import Certificate, Dialler, Identity, Study, digest_of

SCHEMA = Schema(
    {"x": Numeric(0, 1, bins=8), "c": Categorical(list("uvw"))}, target="y", classes=[0, 1]
)


def rows(count, seed):
    generator = np.random.default_rng(seed)
    x, c = generator.random(count), generator.choice(list("uvw"), count)
    y = ((x > 0.5) ^ (generator.random(count) < 0.05)).astype(int)
    return np.array([[a, b] for a, b in zip(x, c, strict=True)], dtype=object).reshape(-1, 2), y


class Answers:
    """A party without a journal on the disk: it has its answers as long as it runs."""

    def __init__(self, party):
        self.party, self.name = party, party.name
        self.asked = {}
        self.slow = 0.0

    def greet(self, study):
        return {
            "version": __version__,
            "schema": digest_of(self.party.table.schema),
            "name": self.name,
            "last": max(self.asked, default=0),
        }

    def reply(self, study, message):
        try:
            asked = decode_as(Request, message)
        except WireError:
            return encode(Reply(0, "failed"))
        time.sleep(self.slow)
        if asked.number in self.asked:
            known, answer = self.asked[asked.number]
            if known == message:
                return answer
            return encode(Reply.refusal(asked.number, "it was asked something else"))
        answer = _reply(self.party, "", asked)
        if asked.number:
            self.asked[asked.number] = message, answer
        return answer

    def close(self):
        self.party.close()


def make_party(name, seed, count=400, epsilon=4.0, random_state=None):
    return Party(name, *rows(count, seed), SCHEMA, Budget(epsilon), random_state=random_state)


class Place:
    """A folder with a study: keys of a coordinator and of some parties."""

    def __init__(self, folder, names=("north", "south"), protocol="noisy-counts", **options):
        self.folder, self.names = Path(folder), names
        for name in ("coordinator", *names):
            Identity.make(self.folder / f"{name}.key", self.folder / f"{name}.pem", name)
        SCHEMA.to_toml(self.folder / "schema.toml")
        self.port = free_port()
        self.write(protocol, **options)

    def write(self, protocol="noisy-counts", **options):
        lines = [
            'name = "test"',
            f'listen = "127.0.0.1:{self.port}"',
            'schema = "schema.toml"',
            f'protocol = "{protocol}"',
            *(f"{name} = {value}" for name, value in {"patience": 600, **options}.items()),
            '[tls]\nkey = "coordinator.key"\ncertificate = "coordinator.pem"',
        ]
        for name in self.names:
            fingerprint = Certificate.read(self.folder / f"{name}.pem", name).fingerprint
            lines.append(
                f'[parties.{name}]\ncertificate = "{name}.pem"\nfingerprint = "{fingerprint}"'
            )
        (self.folder / "study.toml").write_text("\n".join(lines) + "\n")

    @property
    def study(self):
        return Study.from_toml(self.folder / "study.toml")

    def identity(self, name):
        return Identity(self.folder / f"{name}.key", self.folder / f"{name}.pem")

    def dialler(self, answering, *, name=None, port=None, **options):
        return Dialler(
            answering,
            f"127.0.0.1:{port or self.port}",
            self.identity(name or answering.name),
            Certificate.read(self.folder / "coordinator.pem", "the coordinator"),
            **{"pause": 0.1, **options},
        )

    @contextmanager
    def sites(self, *, ports=None, environment=None):
        """Start a process for every party."""
        started = [
            self.start(name, seed, (ports or {}).get(name), environment)
            for seed, name in enumerate(self.names)
        ]
        try:
            yield started
        finally:
            for each in started:
                each.kill()
                each.wait()

    @contextmanager
    def dialling(self, *answering, **options):
        """Let parties dial from threads of this process; yield what the diallers say."""
        said = []
        diallers = [self.dialler(each, **{"tell": said.append, **options}) for each in answering]
        threads = [Thread(target=each.run, daemon=True) for each in diallers]
        for each in threads:
            each.start()
        try:
            yield said
        finally:
            for each in diallers:
                each.stop()
            for each in threads:
                each.join(10)
            assert not any(each.is_alive() for each in threads)

    def start(self, name, seed, port=None, environment=None):
        command = [sys.executable, __file__, str(self.folder), name, str(seed)]
        if port:
            command.append(str(port))
        return subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL
        )


def until(true, seconds=600.0):
    """Wait until something is true; fail if it does not come true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


class Relay:
    """Passes bytes on between a port of its own and another one, later, or as a CONNECT proxy."""

    def __init__(self, port=None, delay=0.0):
        self.port, self.delay = port, delay
        #: What proxies were asked for; how many bytes went up and down.
        self.asked, self.bytes = [], [0, 0]
        #: Whether nobody gets through any more.
        self.broken = False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.number = self._socket.getsockname()[1]
        self._open = []
        Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self.cut()

    def cut(self):
        """End all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                Thread(target=self._pass, args=(near,), daemon=True).start()

    def _pass(self, near):
        self._open.append(near)
        if self.broken:
            near.close()
            return
        try:
            self._join(near)
        except OSError:
            near.close()

    def _join(self, near):
        where = ("127.0.0.1", self.port)
        if self.port is None:  # as an HTTP CONNECT proxy
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(1024)
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.asked.append((method, target))
            host, _, number = target.rpartition(":")
            where = (host, int(number))
        far = socket.create_connection(where)
        for each in (near, far):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.port is None:
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._open.append(far)
        for way, (one, other) in enumerate(((near, far), (far, near))):
            queue = SimpleQueue()
            Thread(target=self._read, args=(one, queue, way), daemon=True).start()
            Thread(target=self._write, args=(other, queue), daemon=True).start()

    def _read(self, one, queue, way):
        with suppress(OSError):
            while data := one.recv(2**16):
                self.bytes[way] += len(data)
                queue.put((time.monotonic() + self.delay, data))
        queue.put(None)

    def _write(self, other, queue):
        with suppress(OSError):
            while (found := queue.get()) is not None:
                time.sleep(max(0.0, found[0] - time.monotonic()))
                other.sendall(found[1])
            other.shutdown(socket.SHUT_WR)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main(folder, name, seed, port=None):
    place = object.__new__(Place)
    place.folder = Path(folder)
    text = (place.folder / "study.toml").read_text()
    place.port = int(text.split("127.0.0.1:")[1].split('"')[0])
    answers = Answers(make_party(name, int(seed)))
    place.dialler(answers, port=port, tell=lambda said: print(name, said, file=sys.stderr)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
