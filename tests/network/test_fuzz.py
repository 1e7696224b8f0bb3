"""Bytes that nobody of us would send: to a party, and to the coordinator; 60,000 in all."""

import random
from contextlib import suppress
from queue import SimpleQueue

import pytest

from privet.federation import Lost, Refused
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network.links import NetworkLink
from privet.network.runs import Run

from .sites import Answers, Place, make_party
from .test_transport import Raw, ask, north, port_of

COUNT = 30_000


def fuzzed(generator, seeds):
    """Return a message with some bytes changed, cut out, doubled or cut off."""
    message = bytearray(generator.choice(seeds))
    for _ in range(generator.randrange(1, 5)):
        place = generator.randrange(len(message) + 1)
        how = generator.randrange(5)
        if how == 0 and place < len(message):
            message[place] = generator.randrange(256)
        elif how == 1:
            message[place:place] = generator.randbytes(generator.randrange(1, 9))
        elif how == 2:
            del message[place : place + generator.randrange(1, 9)]
        elif how == 3:
            message[place:place] = message[place : place + generator.randrange(1, 40)]
        else:
            message = message[: max(1, place)]
    return bytes(message)


QUESTIONS = [
    encode(Request(number, target, name, given, options))
    for number, (target, name, given, options) in enumerate(
        [
            (0, "describe", (), {}),
            (0, "left", (), {}),
            (0, "root", (None,), {}),
            (1, "noisy_counts", (0.25,), {}),
            (1, "noisy_class_counts", (0.25,), {}),
            (0, "left", (), {"before": ((2**32 + 1, 0, "root", None),)}),
            (0, "join", ({"north": bytes(32), "south": bytes(range(32))},), {}),
        ],
        start=1,
    )
]


@pytest.mark.network
def test_a_party_survives_what_a_coordinator_may_send(tmp_path):
    """Whatever comes, there is an answer to it, and only what is a question is charged."""
    place, party = Place(tmp_path), make_party("north", 0, 20, epsilon=1.0)
    answers = Answers(party)
    generator = random.Random(0)
    with port_of(place) as port, place.dialling(answers):
        line = port.lines["north"]
        assert line.wait(600)
        charged = 0
        for _ in range(COUNT):
            message = fuzzed(generator, QUESTIONS)
            before = party.table.ledger.total.epsilon
            line.ask(0, message)
            _, found = line.take(600)
            reply = decode_as(Reply, found)
            spent = party.table.ledger.total.epsilon - before
            assert spent >= 0
            if spent:
                charged += 1
                assert decode_as(Request, message).name.startswith("noisy")
                assert reply.kind == "answer"
            answers.asked.clear()
        assert line.connected
        assert party.table.ledger.total.epsilon <= 1
        assert ask(line, 1, "root", (None,)).kind == "answer"


@pytest.mark.network
def test_a_coordinator_survives_what_a_party_may_send(tmp_path):
    """The party is lost, or refuses, or is believed; and the next one is served as before."""
    place = Place(tmp_path)
    greeting = b"G" + encode(north().greet("test"))
    seeds = [
        encode(Reply(number, kind, value))
        for number, (kind, value) in enumerate(
            [("answer", 7), ("refused", "no"), ("failed", None), ("answer", [1, 2, 3])], start=1
        )
    ]
    frames = [b"E" + seed for seed in seeds] + [b"M" + seeds[0], b"G", b"R" + encode("no"), b"W"]
    generator = random.Random(1)
    plan = {"parties": {"north": ""}, "first": {"north": 1}}
    sent, streams = 0, 0
    with port_of(place) as port, Raw(place, port.number) as raw:
        line = port.lines["north"]
        while sent < COUNT:
            outbox = SimpleQueue()
            outbox.put(greeting)
            call = raw.channel.stream_stream("/privet.Study/Talk")(iter(outbox.get, None))
            next(call)
            streams += 1
            assert line.wait(600)
            with Run.passing(plan) as run:
                link = NetworkLink(line, 1, run, 0.003)
                for _ in range(200):
                    sent += 1
                    outbox.put(fuzzed(generator, frames if sent % 4 == 0 else frames[:4]))
                    with suppress(Lost, Refused):
                        link.receive(link.send(0, "left"))
                    if not line.connected:
                        break
            outbox.put(None)
            call.cancel()
            while line.connected:
                line.take(0.01)
            while line.take(0) is not None:
                pass
        assert streams > 10
        with place.dialling(north()):
            assert line.wait(600)
            assert ask(line, 1, "root", (None,)).kind == "answer"
