"""Messages between parties that nobody would send: for fuzzing the codec.

``mutated_messages(seed, count)`` yields damaged, lying and random messages, the same for the same
seed; ``judge`` decodes one and raises if the codec breaks its word. ``sample_messages`` has a
message of every kind, and with every class, that is really sent.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from privet.criteria import ClippedEntropy, Entropy, Gini, GiniChords, Max
from privet.federation.wire import MAGIC, Reply, Request, WireError, decode, encode
from privet.schema import Categorical, Date, Integer, Numeric, Schema
from privet.tables import Binary, Each, Multiway, ReleasedSplits, Split, Thresholds, View

SCHEMA = Schema(
    {
        "age": Numeric(0, 120),
        "dose": Numeric(-1, 1, edges=[-0.5, 0.25]),
        "stays": Integer(0, 20),
        "admitted": Date("2020-01-01", "2024-12-31", edges=["2022-07-01"]),
        "sex": Categorical(["f", "m"]),
        "grade": Categorical([1, 2.5, True, "\u00e4"]),
    },
    target="cured",
    classes=["no", "yes"],
    table="patients",
)
#: What every message is made of.
TAGS = b"NTFiIfgjqsb([tl{ao"
#: What lengths, sizes and numbers say when they lie.
LIES = (
    0,
    1,
    2,
    0x7F,
    0xFF,
    0x100,
    0x7FFF,
    0xFFFF,
    2**20,
    2**24,
    2**30,
    2**31 - 1,
    2**31,
    2**32 - 1,
)


def sample_messages() -> list[bytes]:
    """Return one message of every kind."""
    words = np.arange(12, dtype=np.uint64) * np.uint64(2**60 + 1)
    split = Split(0, tuple(range(11)))
    wide = Split(0, tuple(k % 300 for k in range(600)))
    members = ("north", "south", "west")
    sides = [np.eye(3, 12, dtype=bool), np.eye(2, 4, dtype=bool), Each(3, 3), Each(5, 5)]
    allowed = np.ones((2, 4), dtype=bool)
    amount = Fraction(1, 3)
    regression = Schema({"x": Numeric(0, 1)}, "y", bounds=(-1.0, 1.0), drafted=True)
    turn = bytes(range(16))
    asked = [
        (0, "describe", ()),
        (0, "root", (None,)),
        (0, "root", (View.of_bins(SCHEMA),)),
        (0, "root", (View.of_bins(regression),)),
        (0, "parts", (10, 2**64 - 1, View.of_bins(SCHEMA))),
        (1, "take", (np.array([0, -1, 5]),)),
        (1, "split", ([split, wide, Split(1, (0, 0, 1))],)),
        (1, "noisy_counts", (np.float64(0.5),)),
        (1, "noisy_class_counts", ([amount, Fraction(-(10**40), 7), 0.25, float("inf")],)),
        (1, "choose_splits", (Thresholds(9), Entropy(np.int64(1000)), amount, allowed)),
        (1, "choose_splits", (ReleasedSplits({0: [split, split]}), Max(), amount, allowed)),
        (1, "choose_splits", (Multiway(), ClippedEntropy(0.02, 2), amount, allowed)),
        (1, "share_splits", (Binary(sides), GiniChords(2, 9), amount, allowed, 3, members, turn)),
        (0, "join", (dict.fromkeys(members, bytes(32)),)),
        (4, "step", (words,)),
        (4, "step", ([bytes(range(32))] * 3,)),
        (4, "step", ([(words.reshape(3, 4), words), (words.reshape(3, 4)[:, :1], words[:5])],)),
    ]
    questions = [Request(k + 1, *each) for k, each in enumerate(asked)]
    questions.append(Request(99, 1, "choose_best", (Multiway(), Gini(), 1), {"how": "flip"}))
    found = [
        None, 7, -(2**100), words, words.reshape(3, 4), np.zeros((2, 0), dtype=np.int64),
        (SCHEMA.to_dict(), ["a drafted schema"], ["noisy_counts"]),
        (Fraction(2, 3), bytes(32), 0), [split, split], {"south": bytes(60)}, ((), [], {}, "", b""),
    ]  # fmt: skip
    answers = [Reply(k + 1, "answer", value) for k, value in enumerate(found)]
    answers += [Reply.refusal(50, "its books are closed"), Reply(51, "failed")]
    return [encode(message) for message in (*questions, *answers)]


def mutated_messages(seed: int, count: int) -> Iterator[bytes]:
    """Yield this many messages with something wrong; a few happen to be right."""
    draw = random.Random(seed)
    good = sample_messages()
    ways: list[Callable[[random.Random, list[bytes]], bytes]] = [
        _cut, _flip, _flip, _set, _set, _lie, _lie, _insert, _delete, _splice, _repeat, _tag, _tag,
        _bomb, _noise, _swap,
    ]  # fmt: skip
    for _ in range(count):
        message = draw.choice(ways)(draw, good)
        while draw.random() < 0.2:  # some have several faults
            message = draw.choice(ways[:13])(draw, [message])
        yield message


def judge(message: bytes) -> bool:
    """Return whether a message decodes; raise if the codec does what it should not.

    It either refuses, with its one error, or gives a value that is written as the same bytes.
    """
    try:
        value = decode(message)
    except WireError as error:
        if str(error) != "these bytes are no message of a party or a coordinator":
            raise AssertionError("the refusal says more than it should") from error
        return False
    if encode(value) != message:
        raise AssertionError("two byte strings stand for one value")
    return True


def _place(draw: random.Random, message: bytes) -> int:
    """Return a place after the beginning, which is mostly refused at once."""
    first = len(MAGIC) if draw.random() < 0.97 and len(message) > len(MAGIC) else 0
    return draw.randrange(first, len(message)) if first < len(message) else 0


def _cut(draw: random.Random, good: list[bytes]) -> bytes:
    message = draw.choice(good)
    return message[: draw.randrange(len(message) + 1)]


def _flip(draw: random.Random, good: list[bytes]) -> bytes:
    message = bytearray(draw.choice(good))
    if message:
        message[_place(draw, message)] ^= 1 << draw.randrange(8)
    return bytes(message)


def _set(draw: random.Random, good: list[bytes]) -> bytes:
    message = bytearray(draw.choice(good))
    if message:
        message[_place(draw, message)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return bytes(message)


def _lie(draw: random.Random, good: list[bytes]) -> bytes:
    message = draw.choice(good)
    place = _place(draw, message)
    lie = struct.pack(draw.choice(("<I", "<I", "<I", "<Q")), draw.choice(LIES))
    return message[:place] + lie + message[place + len(lie) :]


def _insert(draw: random.Random, good: list[bytes]) -> bytes:
    message = draw.choice(good)
    place = _place(draw, message)
    return message[:place] + draw.randbytes(draw.randrange(1, 9)) + message[place:]


def _delete(draw: random.Random, good: list[bytes]) -> bytes:
    message = draw.choice(good)
    place = _place(draw, message)
    return message[:place] + message[place + draw.randrange(1, 9) :]


def _splice(draw: random.Random, good: list[bytes]) -> bytes:
    one, other = draw.choice(good), draw.choice(good)
    return one[: _place(draw, one)] + other[_place(draw, other) :]


def _repeat(draw: random.Random, good: list[bytes]) -> bytes:
    message = draw.choice(good)
    first, last = sorted((_place(draw, message), _place(draw, message)))
    return message[:last] + message[first:last] * draw.randrange(1, 4) + message[last:]


def _tag(draw: random.Random, good: list[bytes]) -> bytes:
    """Put another kind where a kind stands."""
    message = bytearray(draw.choice(good))
    places = [place for place in range(len(MAGIC), len(message)) if message[place] in TAGS]
    if places:
        message[draw.choice(places)] = draw.choice(TAGS)
    return bytes(message)


def _bomb(draw: random.Random, _: list[bytes]) -> bytes:
    """Few bytes that would like to become much."""
    much = struct.pack("<I", draw.choice(LIES))
    deep = draw.choice((5, 11, 12, 13, 1_000, 100_000))
    one = struct.pack("<I", 1)
    numeric = encode(Numeric(0.0, 1.0, bins=65_535))[len(MAGIC) :]
    return MAGIC + draw.choice(
        (
            (b"[" + one) * deep + b"N",
            (b"(" + one) * deep + b"N",
            (b"{" + one + b"i" + bytes(8)) * deep + b"N",
            b"q" * deep,
            b"[" + much,
            b"{" + much,
            b"s" + much + b"x",
            b"t8" + much + bytes(8),
            b"a" + draw.choice((b"?", b"i", b"u", b"O", b"f")) + b"\x02" + much + much,
            b"au\x02" + bytes(4) + much,
            b"I" + draw.choice((b"\xff\xff", b"\x00\x04", b"\x09\x00")) + draw.randbytes(1024),
            b"[" + struct.pack("<I", 400) + numeric * 400,
        )
    )


def _noise(draw: random.Random, _: list[bytes]) -> bytes:
    """Random bytes, or random kinds."""
    if draw.random() < 0.5:
        return MAGIC + draw.randbytes(draw.randrange(64))
    return MAGIC + bytes(draw.choice((*TAGS, 0, 0, 0, 1, 2)) for _ in range(draw.randrange(64)))


def _swap(draw: random.Random, good: list[bytes]) -> bytes:
    """Put another class's name, of which the fields are others."""
    message = draw.choice(good)
    names = [b"\x05split", b"\x04view", b"\x04each", b"\x04gini", b"\x06schema", b"\x08question",
             b"\x07numeric", b"\x05given", b"\x06binary", b"\x03max", b"\x06answer", b"\x06object",
             b"\x00", b"\xff"]  # fmt: skip
    held = [name for name in names[:11] if name in message]
    if not held:
        return message
    return message.replace(draw.choice(held), draw.choice(names), draw.randrange(1, 3))
