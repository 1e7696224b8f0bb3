"""Streams between parties and their coordinator: who is let in, what goes over them."""

import re
import time

import grpc
import pytest

from privet.errors import FederationError
from privet.federation import Refused, wire
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network import Certificate, Identity, digest_of, keys, transport
from privet.network.transport import Port

from .sites import SCHEMA, Answers, Place, Relay, make_party, until


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def port_of(place, **options):
    study = place.study
    return Port(study.listen, study.identity, study.parties, "test", digest_of(SCHEMA), **options)


def north(count=20):
    return Answers(make_party("north", 0, count))


def ask(line, number, *question):
    line.ask(number, encode(Request(number, 0, *question)))
    found = line.take(600)
    line.done(number)
    return None if found is None else decode_as(Reply, found[1])


def test_a_party_is_asked_and_answers(place):
    with port_of(place) as port, place.dialling(north()) as said:
        line = port.lines["north"]
        assert line.wait(600)
        assert line.greeting["last"] == 0
        assert ask(line, 1, "root", (None,)) == Reply(1, "answer", 1)
        assert said == ["connected, for the study 'test'"]
        assert not port.lines["south"].connected


def test_large_messages_go_in_pieces(place, monkeypatch):
    monkeypatch.setattr(transport, "_PIECE", 1000)
    sent = []
    given = Answers(make_party("north", 0, 20))
    given.reply = lambda _, message: sent.append(message) or message + message
    with port_of(place) as port, place.dialling(given):
        line = port.lines["north"]
        assert line.wait(600)
        for size in (0, 1, 999, 1000, 1001, 250_000):
            message = b"x" * size
            line.ask(0, message)
            assert line.take(600)[1] == 2 * message
            assert sent[-1] == message


def test_nine_megabytes(place):
    given = Answers(make_party("north", 0, 20))
    given.reply = lambda _, message: message[::-1]
    with port_of(place) as port, place.dialling(given):
        line = port.lines["north"]
        assert line.wait(600)
        message = bytes(range(256)) * 2**15 + b"end"
        line.ask(0, message)
        assert line.take(30)[1] == message[::-1]


@pytest.mark.parametrize("who", ["foreign", "south's", "expired"])
def test_who_is_let_in_is_decided_by_the_certificate(place, monkeypatch, who):
    """What a party says of itself is not believed, nor a certificate that nobody has pinned."""
    name = "north"
    if who == "foreign":  # its own certificate is not the study's
        Identity.make(place.folder / "f.key", place.folder / "f.pem", "north")
        name = "f"
    elif who == "south's":
        name = "south"
    with port_of(place) as port:
        if who == "expired":  # here, too, its clock is wrong: TLS must see it
            monkeypatch.setattr(keys, "DAYS", -0.5)
            Identity.renew(place.folder / "north.key", place.folder / "north.pem", "north")
            monkeypatch.setattr(Certificate, "check_dates", lambda _: None)
        with place.dialling(north(), name=name) as said:
            until(lambda: said)
            assert "connected" not in said[0]
            if who == "south's":
                assert "calls itself by another name" in port.lines["south"].trouble
            else:
                assert "no stream to" in said[0]
            assert not any(line.connected for line in port.lines.values())


def test_without_a_certificate_nobody_is_let_in(place):
    with port_of(place) as port:
        root = (place.folder / "coordinator.pem").read_bytes()
        options = [("grpc.ssl_target_name_override", "privet")]
        with (
            grpc.secure_channel(
                f"127.0.0.1:{port.number}", grpc.ssl_channel_credentials(root), options
            ) as channel,
            pytest.raises(grpc.RpcError),
        ):
            next(channel.stream_stream("/privet.Study/Talk")(iter([b"G"])))
        with (
            grpc.insecure_channel(f"127.0.0.1:{port.number}") as channel,
            pytest.raises(grpc.RpcError),
        ):
            next(channel.stream_stream("/privet.Study/Talk")(iter([b"G"])))


def test_a_foreign_coordinator_is_told_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours, theirs = Place(tmp_path / "a"), Place(tmp_path / "b")
    asked = north()
    # It knows the party's certificate, and is no coordinator of the party's.
    for name in ("north.pem", "north.key"):
        (tmp_path / "b" / name).write_bytes((tmp_path / "a" / name).read_bytes())
    theirs.write()
    with port_of(theirs) as port, ours.dialling(asked, port=theirs.port) as said:
        until(lambda: said)
        assert "has not the coordinator's key" in said[0]
        assert not port.lines["north"].connected
    assert asked.asked == {}


def test_an_own_certificate_that_has_ended_is_said_at_the_site(place, monkeypatch):
    monkeypatch.setattr(keys, "DAYS", -0.5)
    Identity.renew(place.folder / "north.key", place.folder / "north.pem", "north")
    with place.dialling(north()) as said:
        until(lambda: said)
        assert "the certificate of this site ended on" in said[0]
    with pytest.raises(FederationError, match="the certificate of party 'north' ended on"):
        port_of(place)


def test_a_second_stream_of_a_party_is_refused_and_the_first_goes_on(place):
    with port_of(place) as port, place.dialling(north()):
        line = port.lines["north"]
        assert line.wait(600)
        with place.dialling(north()) as said:
            until(lambda: said)
            assert said[0] == "the coordinator refuses: there is a stream of this party already"
            assert ask(line, 1, "root", (None,)).kind == "answer"
        assert ask(line, 2, "root", (None,)).kind == "answer"


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("version", "0.0.1", "install the same version"),
        ("schema", "0" * 64, "its schema is not that of the study"),
        ("last", "7", "its greeting is none"),
        ("name", "south", "by another name"),
    ],
)
def test_a_party_of_another_kind_is_sent_away_with_a_reason(place, what, value, why):
    other = north()
    greeting = {**other.greet("test"), what: value}
    other.greet = lambda _: greeting
    with port_of(place) as port, place.dialling(other) as said:
        until(lambda: said)
        assert said[0].startswith("the coordinator refuses: ")
        assert why in said[0]
        assert why in port.lines["north"].trouble
        assert not port.lines["north"].connected


def test_another_version_of_the_messages_is_named_at_both_ends(place):
    other = bytes([*wire.MAGIC[:3], wire.MAGIC[3] - 1])
    said_both = rf"speaks version {other[3]} of the messages .*install the same version"
    with port_of(place) as port:
        line, greeting = port.lines["north"], port._greeting
        port._greeting = greeting.replace(wire.MAGIC, other)
        with place.dialling(north()) as said:
            until(lambda: said and line.trouble)
            assert re.match(f"the coordinator {said_both}", said[0])
            assert re.match(f"it takes no part: the coordinator {said_both}", line.trouble)
        port._greeting = greeting
        old = encode(north().greet("test")).replace(wire.MAGIC, other)
        with Raw(place, port.number) as raw:
            raw.talk([b"G" + old])
        assert re.match(f"it {said_both}", line.trouble)


def test_a_party_that_takes_no_part_says_why(place):
    other = north()

    def greet(study):
        raise Refused(f"no study {study} here")

    other.greet = greet
    with port_of(place) as port, place.dialling(other) as said:
        until(lambda: port.lines["north"].trouble)
        assert port.lines["north"].trouble == "it takes no part: no study test here"
        until(lambda: said)
        assert said == ["no part in the study 'test': no study test here"]


def test_two_coordinators_do_not_share_a_port(place):
    with port_of(place), pytest.raises(FederationError, match="cannot listen at"):
        port_of(place)


def test_what_was_not_answered_is_asked_again_in_the_same_bytes(place):
    """A stream that breaks in the middle of an answer, and a party that comes back."""
    asked = []
    answering = north()
    reply = answering.reply
    with Relay(place.port) as relay:

        def cut_once(study, message):
            asked.append(message)
            if len(asked) == 1:
                relay.cut()
            return reply(study, message)

        answering.reply = cut_once
        with port_of(place) as port, place.dialling(answering, port=relay.number):
            line = port.lines["north"]
            assert line.wait(600)
            assert ask(line, 1, "root", (None,)) == Reply(1, "answer", 1)
            assert asked[0] == asked[1]
            assert ask(line, 2, "root", (None,)) == Reply(2, "answer", 2)


def test_through_a_proxy(place):
    with (
        Relay() as proxy,
        port_of(place) as port,
        place.dialling(north(), proxy=f"http://127.0.0.1:{proxy.number}"),
    ):
        assert port.lines["north"].wait(600)
        assert ask(port.lines["north"], 1, "root", (None,)).kind == "answer"
        assert proxy.asked == [("CONNECT", f"127.0.0.1:{port.number}")]


def test_a_proxy_that_is_not_there_is_no_way_around(place):
    with port_of(place) as port, place.dialling(north(), proxy="http://127.0.0.1:9") as said:
        until(lambda: said)
        assert "no stream to" in said[0]
        assert not port.lines["north"].connected


class Raw:
    """A party that sends whatever it likes."""

    def __init__(self, place, port, name="north"):
        mine = place.identity(name)
        credentials = grpc.ssl_channel_credentials(
            (place.folder / "coordinator.pem").read_bytes(), mine.key_pem, mine.certificate.pem
        )
        self.channel = grpc.secure_channel(
            f"127.0.0.1:{port}", credentials, [("grpc.ssl_target_name_override", "privet")]
        )

    def talk(self, frames):
        """Send frames; return what came back until the stream ended."""
        found = []
        try:
            found.extend(self.channel.stream_stream("/privet.Study/Talk")(iter(frames)))
        except grpc.RpcError as error:
            found.append(error.code())
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


NONSENSE = [
    [],
    [b""],
    [b"G"],
    [b"Gnothing"],
    [b"G" + encode(7)],
    [b"E" + encode({"name": "north"})],
    [b"M", b"M", b"M"],
    [b"Mx", b"G"],
    [b"?"],
    [b"R" + encode("no")],
    [b"Rnothing"],
]


def test_nonsense_in_place_of_a_greeting_ends_the_stream_and_nothing_else(place):
    with port_of(place) as port, Raw(place, port.number) as raw:
        for frames in NONSENSE:
            found = raw.talk(frames)
            assert found[0][:1] == b"G"
            assert not port.lines["north"].connected
        with place.dialling(north()):
            assert port.lines["north"].wait(600)
            assert ask(port.lines["north"], 1, "root", (None,)).kind == "answer"


def test_a_party_that_says_too_much_has_to_wait(place):
    """It cannot fill the coordinator's memory: what nobody has read yet is limited."""
    greeting = b"G" + encode(north().greet("test"))
    sent = []

    def flood():
        yield greeting
        for number in range(5000):
            sent.append(number)
            yield b"E" + bytes(2**16)

    with port_of(place) as port, Raw(place, port.number) as raw:
        call = raw.channel.stream_stream("/privet.Study/Talk")(flood())
        next(call)
        assert port.lines["north"].wait(600)
        time.sleep(1.0)
        assert len(sent) < 1000
        assert port.lines["north"].received < 2**24
        call.cancel()
        until(lambda: not port.lines["north"].connected)
