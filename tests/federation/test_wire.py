"""The codec: what goes in comes out, in one way only, and hostile bytes do nothing."""

import importlib.util
import math
import struct
import sys
import time
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from privet.criteria import SAD, SSE, ClippedEntropy, Entropy, Gini, GiniChords, Max
from privet.errors import FederationError
from privet.federation import wire
from privet.federation.party import _own
from privet.federation.wire import (
    CLASSES,
    DTYPES,
    ENVELOPES,
    MAGIC,
    MOST_DEPTH,
    PLAIN,
    Reply,
    Request,
    WireError,
    decode,
    decode_as,
    encode,
)
from privet.schema import Categorical, Date, Integer, Numeric, Schema
from privet.tables import Binary, Each, Multiway, ReleasedSplits, Split, Thresholds, View

SAYS = "^these bytes are no message of a party or a coordinator$"


def load_mutator():
    path = Path(__file__).parents[2] / "benchmarks" / "_hostile_messages.py"
    spec = importlib.util.spec_from_file_location("_hostile_messages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hostile = load_mutator()


def same(one, other):
    """Tell whether two values are equal, with the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and (one == other).all()
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if type(one) in CLASSES:
        return all(same(getattr(one, name), getattr(other, name)) for name in CLASSES[type(one)][1])
    return one == other


# What goes in comes out

numbers = st.floats(allow_nan=False)
bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1, 1e6)).map(lambda b: (b[0], b[0] + b[1]))
texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
features = st.one_of(
    st.builds(lambda b, bins: Numeric(*b, bins=bins), bounds, st.integers(1, 50)),
    st.builds(lambda low, n: Integer(low, low + n), st.integers(-99, 99), st.integers(1, 99)),
    st.builds(lambda low, n: Date(low, low + n, 1), st.integers(-99, 99), st.integers(1, 99)),
    st.builds(lambda b, e: Numeric(*b, edges=[b[0] + e * (b[1] - b[0])]), bounds, st.just(0.5)),
    st.builds(Categorical, st.lists(st.integers(-(2**40), 2**40), min_size=1, unique=True)),
    st.builds(Categorical, st.lists(st.text("abc", min_size=1), min_size=1, unique=True)),
)
schemas = st.builds(
    lambda held, classes, limits, table, drafted: Schema(
        {f"x{k}{name}": feature for k, (name, feature) in enumerate(held)},
        "y",
        classes=classes if limits is None else None,
        bounds=limits,
        table=table,
        drafted=drafted,
    ),
    st.lists(st.tuples(texts, features), min_size=1, max_size=4),
    st.sampled_from([["no", "yes"], [0, 1], [0.5, True, "x"]]),
    st.none() | bounds,
    st.none() | names,
    st.booleans(),
)
splits = st.builds(
    lambda feature, children: Split(feature, tuple(c % len(children) for c in children)),
    st.integers(0, 300),
    st.lists(st.integers(0, 600), min_size=1, max_size=9).map(lambda few: few * 60),
)
whole = st.integers(0, 50) | st.integers(0, 50).map(np.int64)
tables = arrays.arrays(np.bool_, arrays.array_shapes(min_dims=2, max_dims=2))
objects = st.one_of(
    schemas,
    features,
    schemas.map(View.of_bins),
    splits,
    st.just(Multiway()),
    st.builds(Thresholds, whole),
    st.builds(
        ReleasedSplits, st.dictionaries(st.integers(0, 9), st.lists(splits, max_size=2), max_size=2)
    ),
    st.builds(lambda codes, more: Each(codes, codes + more), whole, whole),
    st.builds(Binary, st.lists(tables, max_size=3)),
    st.sampled_from([Gini(), Max(), GiniChords(3, np.int64(5)), Entropy(10), Entropy(np.int64(9))]),
    st.builds(ClippedEntropy, st.floats(0.01, 0.1) | st.floats(0.01, 0.1).map(np.float64)),
)
arrays_of_words = st.sampled_from([np.bool_, np.int64, np.uint64]).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(max_dims=2, min_side=0))
)
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**600), 2**600),
    st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 255, 256, 65_536, 2**32]),
    numbers,
    numbers.map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.fractions(),
    texts,
    st.binary(max_size=40),
    arrays_of_words,
    st.lists(st.integers(0, 300)),
    st.lists(st.integers(-(2**64), 2**64)).map(tuple),
    st.lists(numbers).map(tuple),
)
values = st.recursive(
    plain | objects,
    lambda held: st.one_of(
        st.lists(held, max_size=4),
        st.lists(held, max_size=4).map(tuple),
        st.dictionaries(texts | st.integers(0, 2**31 - 1), held, max_size=4),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(values)
@example([1, 2**64])
@example([True, 1])
@example((1.0, 1))
@example([-0.0, 0.0, math.inf])
@example({1: 0, "1": 1})
def test_what_is_sent_arrives(value):
    message = encode(value)
    found = decode(message)
    assert same(found, value)
    assert encode(found) == message
    question = Request(1, 2, "root", (value,), {"how": value})
    assert same(decode_as(Request, encode(question)), question)


@settings(max_examples=80)
@given(values, st.data())
def test_no_other_bytes_stand_for_a_value(value, data):
    message = bytearray(encode(value))
    for _ in range(5):
        place = data.draw(st.integers(len(MAGIC), len(message) - 1))
        message[place] = data.draw(st.integers(0, 255) | st.sampled_from(hostile.TAGS))
        hostile.judge(bytes(message))


def test_every_kind_of_message_is_sent():
    """The samples have all classes and all plain types: nothing is forgotten by the mutator."""
    seen = set()

    def look(value):
        seen.add(type(value))
        if isinstance(value, list | tuple):
            list(map(look, value))
        elif isinstance(value, dict):
            list(map(look, value.items()))
        elif type(value) in CLASSES:
            for name in CLASSES[type(value)][1]:
                look(getattr(value, name))

    for message in hostile.sample_messages():
        assert hostile.judge(message)
        look(decode(message))
    assert seen == {*CLASSES, *PLAIN, list, tuple, dict, np.ndarray}


def test_arrays_arrive_as_they_were_and_can_be_written_to():
    for array in (
        np.arange(12, dtype=np.uint64).reshape(3, 4).T,
        np.arange(12)[::-2],
        np.broadcast_to(np.int64(3), (2, 5)),
        np.zeros((0, 7), dtype=bool),
        np.zeros(0, dtype=np.uint64),
    ):
        found = decode(encode(array))
        assert same(found, array)
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert found.flags.aligned
        assert encode(found) == encode(array)


class Text(str):
    __slots__ = ()


class Sure(Gini):
    spread = 1


def cycle():
    held = []
    held.append(held)
    return held


def deep(levels):
    held = None
    for _ in range(levels):
        held = [held]
    return held


UNSENT = {
    "subclass of str": Text("x"),
    "subclass of a criterion": Sure(),
    "other criterion": SSE(),
    "other criterion with a field": SAD(),
    "type": int,
    "function": print,
    "set": {1},
    "complex": 1j,
    "int32": np.int32(1),
    "bytearray": bytearray(b"x"),
    "object array": np.array([None]),
    "float array": np.zeros(3),
    "big-endian array": np.zeros(3, dtype=">i8"),
    "small integers": np.zeros(3, dtype=np.int8),
    "array without axes": np.array(1),
    "array of three axes": np.zeros((1, 1, 1), dtype=np.int64),
    "subclass of ndarray": np.ma.masked_array([1, 2]),
    "structured array": np.zeros(2, dtype=[("a", "i8")]),
    "NaN": math.nan,
    "numpy's NaN": np.float64("nan"),
    "NaN in a row": [0.5, math.nan],
    "half a surrogate pair": "\ud800",
    "key that is a bool": {True: 1},
    "key that is a tuple": {(1,): 1},
    "negative key": {-1: 1},
    "large key": {2**31: 1},
    "large whole number": 1 << (8 * wire.MOST_INT),
    "long text": "x" * (wire.MOST_TEXT + 1),
    "long bytes": bytes(wire.MOST_RAW + 1),
    "many values": [None] * wire.MOST_VALUES,
    "many numbers": [0] * (wire.MOST_NUMBERS + 1),
    "cycle": cycle(),
    "depth": deep(MOST_DEPTH + 1),
    "question in a list": [Request(1, 0, "root")],
}


@pytest.mark.parametrize("value", UNSENT.values(), ids=UNSENT)
def test_nothing_else_is_sent(value):
    with pytest.raises(WireError) as caught:
        encode(value)
    assert isinstance(caught.value, FederationError)
    assert len(str(caught.value)) < 120


def test_what_is_as_deep_as_it_may_be_arrives():
    assert decode(encode(deep(MOST_DEPTH))) == deep(MOST_DEPTH)


# Hostile bytes


def count(number):
    return struct.pack("<I", number)


def int64(number):
    return struct.pack("<q", number)


def body(value):
    return encode(value)[len(MAGIC) :]


def named(name, *fields):
    return b"o" + bytes([len(name)]) + name + b"".join(fields)


NAN = struct.pack("<d", math.nan)
BAD = {
    "nothing": b"",
    "unknown kind": b"Z",
    "more after the end": b"NN",
    "int that stops": b"i\x00",
    "small int as a large one": b"I" + struct.pack("<H", 8) + int64(5),
    "int with bytes too many": b"I" + struct.pack("<H", 10) + (2**64).to_bytes(10, "little"),
    "int that fits 64 bits": b"I" + struct.pack("<H", 9) + bytes(9),
    "negative int with bytes too many": b"I" + struct.pack("<H", 12) + bytes([0] * 8 + [255] * 4),
    "int without size": b"I\x00\x00",
    "int of many bytes": b"I" + struct.pack("<H", 1025) + b"\x01" * 1025,
    "NaN": b"f" + NAN,
    "NaN with a payload": b"f" + bytes.fromhex("efbeaddeadbef07f"),
    "negative NaN": b"g" + bytes.fromhex("000000000000f8ff"),
    "NaN in a row": b"tf" + count(1) + NAN,
    "fraction that is not reduced": b"q" + body(2) + body(4),
    "fraction below a negative": b"q" + body(1) + body(-2),
    "fraction over zero": b"q" + body(1) + body(0),
    "fraction of floats": b"q" + body(1.0) + body(2.0),
    "fraction of a fraction": b"q" + body(Fraction(1, 2)) + body(3),
    "fraction of truths": b"q" + body(True) + body(2),
    "text that is no UTF-8": b"s" + count(2) + b"\xff\xfe",
    "text with an overlong letter": b"s" + count(2) + b"\xc0\x80",
    "half a surrogate pair": b"s" + count(3) + b"\xed\xa0\x80",
    "text that stops": b"s" + count(9) + b"x",
    "list of more than there is": b"[" + count(2**32 - 1) + b"N",
    "list of numbers, one by one": b"[" + count(2) + body(1) + body(2),
    "tuple of floats, one by one": b"(" + count(1) + body(1.0),
    "row without numbers": b"t1" + count(0),
    "row that is too wide": b"t2" + count(1) + b"\x01\x00",
    "row that is much too wide": b"l8" + count(1) + int64(300),
    "row of an unknown width": b"t3" + count(1) + b"\x01",
    "row of more than there is": b"t8" + count(2**27) + bytes(64),
    "key twice": b"{" + count(2) + (body("a") + b"N") * 2,
    "key that is a float": b"{" + count(1) + body(1.0) + b"N",
    "key that is a list": b"{" + count(1) + body([]) + b"N",
    "key that is a truth": b"{" + count(1) + b"TN",
    "key that is negative": b"{" + count(1) + body(-1) + b"N",
    "key that is large": b"{" + count(1) + body(2**61 - 1) + b"N",
    "array of objects": b"aO\x01" + count(1) + bytes(8),
    "array of floats": b"af\x01" + count(1) + bytes(8),
    "array without axes": b"ai\x00" + bytes(8),
    "array of three axes": b"ai\x03" + count(1) * 3 + bytes(8),
    "array of negative axes": b"ai\x01" + struct.pack("<i", -1),
    "array whose size overflows": b"ai\x02" + count(2**31) * 2,
    "array of no and of many": b"ai\x02" + count(0) + count(2**32 - 1),
    "array that is larger than its bytes": b"au\x01" + count(2**27) + bytes(64),
    "truth that is two": b"a?\x01" + count(2) + b"\x01\x02",
    "class without a name": b"o\x00",
    "unknown class": named(b"Popen", body(["ls"])),
    "class by its module": named(b"builtins.eval", body("1")),
    "capital letters": named(b"Gini"),
    "question within": b"[" + count(1) + body(Request(1, 0, "root")),
    "answer within": b"(" + count(1) + body(Reply(1, "failed")),
    "bounds that are whole": named(b"numeric", body(0), body(1), body(5), b"N"),
    "bounds in the wrong order": named(b"numeric", body(1.0), body(0.0), body(5), b"N"),
    "bins beyond all": named(b"numeric", body(0.0), body(1.0), body(2**40), b"N"),
    "bins that the edges deny": named(b"numeric", body(0.0), body(1.0), body(9), body((0.5,))),
    "an edge at a bound": named(b"numeric", body(0.0), body(1.0), body(2), body((0.0, 0.5))),
    "edges in a list": named(b"numeric", body(0.0), body(1.0), body(2), body([0.5])),
    "categories in a list": named(b"categorical", body(["a"])),
    "categories of numpy": named(b"categorical", body((np.float64(1), "a"))),
    "category twice": named(b"categorical", body((1, 1.0))),
    "schema without classes": named(
        b"schema", body({"x": Numeric(0, 1)}), body("y"), b"N", b"N", b"N", b"F"
    ),
    "schema of texts": named(b"schema", body({"x": "y"}), body("y"), body((0, 1)), b"NNF"),
    "schema with whole bounds": named(
        b"schema", body({"x": Numeric(0, 1)}), body("y"), b"N", body((0, 1)), b"N", b"F"
    ),
    "view of a dict": named(b"view", body({}), body(())),
    "cuts out of order": named(
        b"view", body(Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])), body(((0.5, 0.2),))
    ),
    "cuts in a list": named(
        b"view", body(Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])), body([(0.5,)])
    ),
    "children in a list": named(b"split", body(0), body([0, 1])),
    "children that are many": named(b"split", body(0), body((0, 5))),
    "children that are an array": named(b"split", body(0), body(np.zeros(3, dtype=np.int64))),
    "feature of numpy": named(b"split", body(np.int64(0)), body((0, 1))),
    "steps that are a text": named(b"thresholds", body("9")),
    "steps that are true": named(b"thresholds", b"T"),
    "sides of words": named(b"binary", body([np.zeros((2, 2), dtype=np.int64)])),
    "sides that are a text": named(b"binary", body("ab")),
    "splits by name": named(b"given", body({"0": []})),
    "splits that are none": named(b"given", body({0: [1]})),
    "rows that are no number": named(b"entropy", body(10.0)),
    "too few rows": named(b"entropy", body(1)),
    "halvings beyond all": named(b"chords", body(2), body(90)),
    "floor that is whole": named(b"clipped", body(1), body(2)),
    "fields that are not there": named(b"each", body(1)),
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_what_is_no_message_is_refused_without_a_word_about_it(message):
    with pytest.raises(WireError, match=SAYS) as caught:
        decode(MAGIC + message)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_another_version_is_refused():
    for start in (b"", b"PVW", b"PVW\x00", b"PVW\x01", b"PVW\x05", b"PVX\x06", b"\x80\x06N."):
        with pytest.raises(WireError, match=SAYS):
            decode(start + b"N")


@pytest.mark.parametrize("message", hostile.sample_messages(), ids=lambda _: "")
def test_no_part_of_a_message_is_one(message):
    for size in range(min(len(message), 600)):
        with pytest.raises(WireError, match=SAYS):
            decode(message[:size])
    with pytest.raises(WireError, match=SAYS):
        decode(message + b"N")


def test_mutated_messages_are_refused_or_mean_themselves():
    found = [hostile.judge(message) for message in hostile.mutated_messages(7, 2_000)]
    assert 0.02 < np.mean(found) < 0.6  # both happen
    again = hostile.mutated_messages(7, 20)
    assert list(again) == list(hostile.mutated_messages(7, 20))


one = count(1)
BOMBS = {
    "lists": (b"[" + one) * 400_000,
    "dicts": (b"{" + one + body(0)) * 200_000,
    "fractions": b"q" * 1_000_000,
    "classes": b"o\x04view" * 200_000,
    "a list of very many": b"[" + count(2**32 - 1) + b"N" * 1_000,
    "a list of many values": b"[" + count(2**21) + b"N" * 2**21,
    "an array of very many": b"au\x02" + count(2**15) * 2 + bytes(1_000),
    "numbers": (b"[" + count(50) + body(Numeric(0.0, 1.0, bins=65_535)) * 50),
    "more numbers": (b"[" + count(300) + body(Numeric(0.0, 1.0, bins=65_535)) * 300),
    "empty lists": b"[" + count(10_000) + (b"[" + count(0)) * 10_000,
    "empty dicts": b"[" + count(10_000) + (b"{" + count(0)) * 10_000,
    "empty arrays": b"[" + count(10_000) + (b"au\x01" + count(0)) * 10_000,
    "objects": b"[" + count(10_000) + body(Gini()) * 10_000,
    "splits": b"[" + count(5_000) + body(Split(0, (0,))) * 5_000,
    "rows": b"[" + count(9) + (b"t2" + count(2**13) + b"\x01\x01" * 2**13) * 9,
    "large ints": b"[" + count(500) + body(1 << 8_190) * 500,
    "large fractions": b"[" + count(100) + body(Fraction((1 << 8_000) + 1, 3**5_000)) * 100,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_few_bytes_do_not_become_much(bomb):
    message, before = MAGIC + bomb, sys.getrecursionlimit()
    tracemalloc.start()
    start = time.process_time()
    try:
        decode(message)
    except WireError:
        pass
    finally:
        took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 64 * len(message) + 2**21  # and the cuts of one feature at a time
    assert took < 10  # traced, on any machine; unlimited, they would not end
    assert sys.getrecursionlimit() == before


def test_keys_cannot_be_made_to_collide():
    """Whole numbers that a dict would look up in one place would take quadratic time."""
    keys = [k * (2**61 - 1) for k in range(1, 4)]
    assert len({hash(key) for key in keys}) == 1
    for key in keys:
        with pytest.raises(WireError):
            decode(MAGIC + b"{" + one + body(key) + b"N")


# Questions and answers


def test_only_questions_are_questions():
    for message in (None, (1, 0, "root", (), {}), Reply(1, "failed"), {"number": 1}):
        with pytest.raises(WireError, match=SAYS):
            decode_as(Request, encode(message))


FIELDS = {
    "number": (-1, 2**63, True, 1.0, None, np.int64(1)),
    "target": (-1, 2**63, False, "0", None),
    "name": ("", "x" * 65, b"root", None),
    "given": ([], None, {}),
    "options": (None, [], {1: 2}, {"x" * 65: 1}, {f"x{k}": k for k in range(17)}),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_question_has_what_it_must_have(name):
    right = {"number": 1, "target": 0, "name": "root", "given": (), "options": {}}
    for wrong in FIELDS[name]:
        with pytest.raises(WireError):
            Request(**{**right, name: wrong})
        parts = [body(value) for value in {**right, name: wrong}.values()]
        with pytest.raises(WireError, match=SAYS):
            decode_as(Request, MAGIC + named(b"question", *parts))


@pytest.mark.parametrize(
    "fields",
    [
        (-1, "answer", 1),
        (1, "answers", 1),
        (1, b"answer", 1),
        (1, "refused", None),
        (1, "refused", b"x"),
        (1, "refused", "x" * (wire.MOST_REFUSAL + 1)),
        (1, "failed", "record 17"),
    ],
)
def test_an_answer_has_what_its_kind_has(fields):
    with pytest.raises(WireError):
        Reply(*fields)
    with pytest.raises(WireError, match=SAYS):
        decode_as(Reply, MAGIC + named(b"answer", *map(body, fields)))


def test_a_refusal_is_a_text_that_can_be_sent():
    assert Reply.refusal(3, "no") == Reply(3, "refused", "no")
    long = decode_as(Reply, encode(Reply.refusal(3, "x" * 10_000)))
    assert len(long.value) == wire.MOST_REFUSAL
    assert long.value.endswith("x...")
    assert decode(encode(Reply.refusal(3, "a\ud800b"))).value == "a\\ud800b"


# One list of types


def test_a_party_knows_what_can_be_sent_and_nothing_else():
    for message in hostile.sample_messages():
        value = decode(message)
        held = value.given if type(value) is Request else value.value
        assert same(_own(held, arrays=True), held)
    for envelope in ENVELOPES:
        with pytest.raises(TypeError):
            _own(object.__new__(envelope))
    for value in (SSE(), Sure(), np.zeros(3), np.zeros(3, dtype=np.int8), {1}, np.int32(1)):
        with pytest.raises(TypeError):
            _own(value, arrays=True)
    assert {dtype.name for dtype in DTYPES.values()} == {"bool", "int64", "uint64"}
