"""What parties and coordinators send each other, as bytes.

The two ends of a connection do not trust each other, so bytes that arrive must not be able to do
anything but become one of a few plain values. :func:`encode` makes bytes of a value, :func:`decode`
makes the value of bytes. The contract:

* **Few types.** None, bool, int, float, str, bytes, Fraction, tuple, list, dict, numpy's int64 and
  float64, arrays of :data:`DTYPES`, and the classes in :data:`CLASSES`. All by exact type, in both
  directions; a subclass is not sent. There is no way to name any other class or function.
* **Objects are made by their constructors**, after the exact type of every field was checked, so
  that they have passed the checks of their class.
* **One value, one byte string.** ``decode(encode(v))`` equals v, with the same types all the way
  down, and ``encode(decode(b)) == b`` for all bytes that decode. Whoever must say the same thing
  again says the same bytes.
* **Limits before work.** Size, depth and lengths (``MOST_...`` below) are checked before anything
  is set aside. Decoding takes time in proportion to the message (and to the bins of the features in
  it, which are limited, too), and no more memory than 64 bytes for each of its bytes, and two
  megabytes.
* **One error.** Bytes that are not a message raise :class:`WireError`, whose text says nothing of
  what is in them.

The grammar; numbers are little-endian, a *count* has four bytes::

    message = "PVW" version value           the version is one byte: 6
    value   = "N" | "T" | "F"               None, True, False
            | "i" 8 bytes                   int from -2^63 to 2^63 - 1
            | "I" size bytes                any other int; two's complement, as short as can be;
                                            the size has two bytes
            | "f" 8 bytes                   float, IEEE 754, not NaN
            | "q" value value               Fraction: two ints without a common divisor
            | "s" count bytes               str, UTF-8
            | "b" count bytes               bytes
            | "(" count value ...           tuple
            | "[" count value ...           list
            | "t" width count numbers       tuple of ints, or of floats, that is not empty
            | "l" width count numbers       list of such
            | "{" count (value value) ...   dict in its own order; keys are str, or int from 0 to
                                            2^31 - 1, and differ
            | "j" 8 bytes                   numpy.int64
            | "g" 8 bytes                   numpy.float64, not NaN
            | "a" dtype ndim count ... data array, C order; one or two counts are its shape
            | "o" size name value ...       object of a class with a short name; its fields in order
    width   = "1" | "2" | "4" | "8" | "f"   numbers of 1, 2 or 4 bytes without sign, of 8 bytes with
                                            sign, or floats; the first that holds all of them
    dtype   = "?" | "i" | "u"               bool (bytes 0 and 1), int64, uint64

A tuple or list of ints below 2^63, or of floats, is always written as a row of numbers (``t``,
``l``), and only then: a thousand codes or cuts are a few microseconds. Everything else has one form
by construction. :class:`Request` and :class:`Reply` are objects that stand only outermost.

Written by hand because no format that we know carries these types exactly: JSON and msgpack have
neither tuples nor fractions nor arrays and leave open how a number is written, so that the checks
that are the point of this module would stand beside such a container anyway; and it would be one
more library to trust with hostile bytes. Pickle runs whatever the bytes say. ``docs/wire.md`` has
the same for readers of other languages.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.criteria import ClippedEntropy, Entropy, Gini, GiniChords, Max
from privet.errors import FederationError
from privet.schema import MAX_BINS, Categorical, Date, Integer, Numeric, Schema
from privet.tables import Binary, Each, Multiway, ReleasedSplits, Split, Thresholds, View

#: What every message begins with: the name of the format, and its version.
MAGIC = b"PVW\x06"
#: Bytes of a message. The randomness of a secret choice is by far the largest.
MOST_BYTES = 2**30
#: How deep values may be nested.
MOST_DEPTH = 12
#: Values in a message, numbers in rows and in arrays not counted.
MOST_VALUES = 2**20
#: Numbers in rows, and bins of numeric features.
MOST_NUMBERS = 2**24
#: Bytes of a whole number, of a text, and of a byte string.
MOST_INT, MOST_TEXT, MOST_RAW = 1024, 2**20, 2**16
#: Characters of a question's name and of a refusal; a question's options.
MOST_NAME, MOST_REFUSAL, MOST_OPTIONS = 64, 2_000, 16

#: The kinds of numbers that arrays have, by the letters that stand for them.
DTYPES = {b"?": np.dtype(np.bool_), b"i": np.dtype(np.int64), b"u": np.dtype(np.uint64)}
#: Values that hold no others.
PLAIN = frozenset({type(None), bool, int, float, str, bytes, Fraction, np.int64, np.float64})

_MOST_KEY, _MOST_DIMENSIONS = 2**31, 2
_LETTERS = {dtype: letter for letter, dtype in DTYPES.items()}
#: The numbers of a row, by width: how numpy calls them.
_WIDTHS = {b"1": "u1", b"2": "<u2", b"4": "<u4", b"8": "<i8", b"f": "<f8"}
_COUNT, _SIZE, _INT, _FLOAT = (struct.Struct(form) for form in ("<I", "<H", "<q", "<d"))
_LEAST, _LARGEST = -(2**63), 2**63 - 1

T = TypeVar("T")


class WireError(FederationError):
    """Something cannot be sent, or what arrived is no message."""


@dataclass(frozen=True)
class Request:
    """What a coordinator sends.

    Attributes
    ----------
    number : int
        Names the question; the answer has the same.
    target : int
        What is asked about: 0 for the table, or the number of cells or of a choice.
    name : str
        Which question.
    given : tuple
        What comes with it.
    options : dict
        What comes with it by name.
    """

    number: int
    target: int
    name: str
    given: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (
            _is_number(self.number)
            and _is_number(self.target)
            and type(self.name) is str
            and 0 < len(self.name) <= MOST_NAME
            and type(self.given) is tuple
            and type(self.options) is dict
            and len(self.options) <= MOST_OPTIONS
            and all(type(name) is str and len(name) <= MOST_NAME for name in self.options)
        ):
            raise WireError("a question has a number, a target, a name, and what comes with it")


@dataclass(frozen=True)
class Reply:
    """What a party sends.

    Attributes
    ----------
    number : int
        That of the question.
    kind : {"answer", "refused", "failed"}
        How it went.
    value : object
        The answer; if refused, why; if failed, None: what went wrong may be about the rows.
    """

    number: int
    kind: str
    value: Any = None

    def __post_init__(self) -> None:
        if not (
            _is_number(self.number)
            and type(self.kind) is str
            and (
                self.kind == "answer"
                or (self.kind == "failed" and self.value is None)
                or (
                    self.kind == "refused"
                    and type(self.value) is str
                    and len(self.value) <= MOST_REFUSAL
                )
            )
        ):
            raise WireError("an answer has a number, a kind and what this kind has")

    @classmethod
    def refusal(cls, number: int, why: str) -> Reply:
        """Return a refusal; a text that cannot be sent, or is too long, is made to fit."""
        text = why.encode("utf-8", "backslashreplace").decode("utf-8")
        if len(text) > MOST_REFUSAL:
            text = text[: MOST_REFUSAL - 3] + "..."
        return cls(number, "refused", text)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST


# Which classes are sent, and what their fields hold

Check = Callable[[Any], bool]


def _a(*kinds: type) -> Check:
    return lambda value: type(value) in kinds


def _tuple_of(*kinds: type) -> Check:
    known = set(kinds)
    return lambda value: type(value) is tuple and set(map(type, value)) <= known


def _perhaps(check: Check) -> Check:
    return lambda value: value is None or check(value)


#: Features that are cut: numbers, whole numbers and days.
_NUMERIC = (Numeric, Integer, Date)


def _are_features(value: Any) -> bool:
    return (
        type(value) is dict
        and set(map(type, value)) <= {str}
        and set(map(type, value.values())) <= {*_NUMERIC, Categorical}
    )


def _are_sides(value: Any) -> bool:
    return type(value) in (list, tuple) and set(map(type, value)) <= {Each, np.ndarray}


def _are_splits(value: Any) -> bool:
    return (
        type(value) is dict
        and set(map(type, value)) <= {int}
        and all(
            type(splits) in (list, tuple) and set(map(type, splits)) <= {Split}
            for splits in value.values()
        )
    )


def _own_check(_: Any) -> bool:
    """Accept anything: the class checks this field itself."""
    return True


_whole = _a(int, np.int64)
_values = _tuple_of(str, int, float, bool)

#: What stands outermost in a message, and nowhere else.
ENVELOPES = frozenset({Request, Reply})
#: Everything that is sent and made by a constructor: a short name, the class, and its fields.
CLASSES: dict[type, tuple[str, dict[str, Check]]] = {
    Request: (
        "question",
        dict.fromkeys(("number", "target", "name", "given", "options"), _own_check),
    ),
    Reply: ("answer", dict.fromkeys(("number", "kind", "value"), _own_check)),
    Schema: (
        "schema",
        {
            "features": _are_features,
            "target": _a(str),
            "classes": _perhaps(_values),
            "bounds": _perhaps(_tuple_of(float)),
            "table": _perhaps(_a(str)),
            "drafted": _a(bool),
            "unit": _perhaps(_a(str)),
            "rows_per_unit": _perhaps(_a(int)),
            "parties_per_unit": _a(int),
        },
    ),
    **{
        kind: (
            kind.kind,
            {
                "low": _a(float),
                "high": _a(float),
                "bins": _a(int),
                "edges": _perhaps(_tuple_of(float)),
            },
        )
        for kind in _NUMERIC
    },
    Categorical: ("categorical", {"values": _values}),
    View: ("view", {"schema": _a(Schema), "cuts": _a(tuple)}),
    Split: ("split", dict.fromkeys(("feature", "children"), _own_check)),
    Multiway: ("multiway", {}),
    Thresholds: ("thresholds", {"steps": _whole}),
    ReleasedSplits: ("given", {"splits": _are_splits}),
    Each: ("each", {"options": _whole, "codes": _whole}),
    Binary: ("binary", {"sides": _are_sides}),
    Gini: ("gini", {}),
    GiniChords: ("chords", {"classes": _whole, "halvings": _whole}),
    Max: ("max", {}),
    Entropy: ("entropy", {"n_max": _whole}),
    ClippedEntropy: ("clipped", {"floor": _a(float, np.float64), "classes": _whole}),
}

_NAMES = {name.encode("ascii"): kind for kind, (name, _) in CLASSES.items()}
_FIELDS = {kind: tuple(checks.items()) for kind, (_, checks) in CLASSES.items()}
_HEADS = {
    kind: b"o" + bytes([len(name)]) + name.encode("ascii") for kind, (name, _) in CLASSES.items()
}


def rebuild(kind: type[T], values: Sequence[Any]) -> T:
    """Make an object of a class in :data:`CLASSES` from its fields, in their order.

    Raises
    ------
    WireError
        If a field has another type than it should, or the class does not take it as it is.
    """
    named = {}
    for (name, check), value in zip(_FIELDS[kind], values, strict=True):
        if not check(value):
            raise WireError(f"the field {name!r} holds something else")
        named[name] = value
    try:
        made = kind(**named)
        # Some constructors put their fields into shape: then other fields mean the same.
        same = True
        for name, value in named.items():
            held = getattr(made, name)
            same = same and (held is value or held == value)
    except Exception:
        same = False
    if not same:
        raise WireError("a class does not take what its object was to be made of")
    return made


# From values to bytes


def encode(value: Any) -> bytes:
    """Return a value as bytes.

    Raises
    ------
    WireError
        If it cannot be sent: another type, or too large.
    """
    writer = _Writer()
    writer.write(value, 0)
    if sum(map(len, writer.parts)) > MOST_BYTES:
        _too_large()
    return b"".join(writer.parts)


def _too_large() -> NoReturn:
    raise WireError(
        "a message between parties would be too large: take fewer features, cuts or categories"
    )


class _Writer:
    """Collects the parts of a message."""

    def __init__(self) -> None:
        self.parts: list[Any] = [MAGIC]
        self.put = self.parts.append
        self.values = self.numbers = 0

    def write(self, value: Any, depth: int) -> None:
        kind = type(value)
        self.values += 1
        if depth > MOST_DEPTH or self.values > MOST_VALUES:
            _too_large()
        if kind in CLASSES:
            self.write_object(value, depth)
            return
        write = _WRITERS.get(kind)
        if write is None:
            raise WireError(f"{kind.__name__!r} is no type of value that parties are sent")
        write(self, value, depth)

    def write_constant(self, value: bool | None, _: int) -> None:
        self.put(b"N" if value is None else b"T" if value else b"F")

    def write_int(self, value: int, _: int) -> None:
        if _LEAST <= value <= _LARGEST:
            self.put(b"i" + _INT.pack(value))
            return
        size = (value if value >= 0 else ~value).bit_length() // 8 + 1
        if size > MOST_INT:
            _too_large()
        self.put(b"I" + _SIZE.pack(size) + value.to_bytes(size, "little", signed=True))

    def write_float(self, value: float, _: int) -> None:
        if math.isnan(value):
            raise WireError("a number that is NaN is not sent")
        self.put((b"g" if type(value) is np.float64 else b"f") + _FLOAT.pack(value))

    def write_int64(self, value: np.int64, _: int) -> None:
        self.put(b"j" + _INT.pack(int(value)))

    def write_fraction(self, value: Fraction, depth: int) -> None:
        self.put(b"q")
        for part in (value.numerator, value.denominator):
            if type(part) is not int:
                raise WireError("a fraction has whole numbers")
            self.write(part, depth + 1)

    def write_text(self, value: str, _: int) -> None:
        try:
            raw = value.encode("utf-8")
        except UnicodeEncodeError:
            raise WireError("a text with half of a surrogate pair is not sent") from None
        if len(raw) > MOST_TEXT:
            _too_large()
        self.put(b"s" + _COUNT.pack(len(raw)) + raw)

    def write_bytes(self, value: bytes, _: int) -> None:
        if len(value) > MOST_RAW:
            _too_large()
        self.put(b"b" + _COUNT.pack(len(value)) + value)

    def write_sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> None:
        if len(value) > MOST_NUMBERS:
            _too_large()
        row = _row_of(value)
        if row is None:
            self.put((b"(" if type(value) is tuple else b"[") + _COUNT.pack(len(value)))
            for held in value:
                self.write(held, depth + 1)
            return
        self.numbers += len(value)
        if self.numbers > MOST_NUMBERS:
            _too_large()
        width, numbers = row
        letter = b"t" if type(value) is tuple else b"l"
        self.put(letter + width + _COUNT.pack(len(value)) + numbers)

    def write_dict(self, value: dict[Any, Any], depth: int) -> None:
        if len(value) > MOST_VALUES:
            _too_large()
        self.put(b"{" + _COUNT.pack(len(value)))
        for key, held in value.items():
            if not _is_key(key):
                raise WireError("the keys of what is sent are texts, or whole numbers from 0 on")
            self.write(key, depth + 1)
            self.write(held, depth + 1)

    def write_array(self, value: NDArray[Any], _: int) -> None:
        letter = _LETTERS.get(value.dtype)
        if letter is None or not 1 <= value.ndim <= _MOST_DIMENSIONS:
            raise WireError("arrays that are sent are of bool, int64 or uint64, and flat or tables")
        if max(value.shape) > MOST_BYTES or value.nbytes > MOST_BYTES:
            _too_large()
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        shape = b"".join(map(_COUNT.pack, value.shape))
        # Without a copy: the bytes are taken when the parts are joined.
        data = little.reshape(-1).view(np.uint8).data if little.size else b""
        self.put(b"a" + letter + bytes([value.ndim]) + shape)
        self.put(data)

    def write_object(self, value: Any, depth: int) -> None:
        kind = type(value)
        if depth and kind in ENVELOPES:
            raise WireError("questions and answers are not sent within others")
        if kind in _NUMERIC:
            self.numbers += value.bins
            if self.numbers > MOST_NUMBERS:
                _too_large()
        self.put(_HEADS[kind])
        for name, _ in _FIELDS[kind]:
            self.write(getattr(value, name), depth + 1)


_WRITERS: dict[type, Callable[[_Writer, Any, int], None]] = {
    type(None): _Writer.write_constant,
    bool: _Writer.write_constant,
    int: _Writer.write_int,
    float: _Writer.write_float,
    np.float64: _Writer.write_float,
    np.int64: _Writer.write_int64,
    Fraction: _Writer.write_fraction,
    str: _Writer.write_text,
    bytes: _Writer.write_bytes,
    list: _Writer.write_sequence,
    tuple: _Writer.write_sequence,
    dict: _Writer.write_dict,
    np.ndarray: _Writer.write_array,
}


def _row_of(values: Sequence[Any]) -> tuple[bytes, bytes] | None:
    """Return the width and the bytes of a row of numbers; None if these are no such."""
    kinds = set(map(type, values))
    if kinds == {float}:
        numbers = np.array(values, dtype="<f8")
        if np.isnan(numbers).any():
            raise WireError("a number that is NaN is not sent")
        return b"f", numbers.tobytes()
    if kinds != {int}:
        return None
    try:
        return b"1", bytes(values)
    except (ValueError, OverflowError):  # some are no bytes
        width = _width_of(min(values), max(values))
    return None if width is None else (width, np.array(values, dtype=_WIDTHS[width]).tobytes())


def _width_of(least: int, largest: int) -> bytes | None:
    if least >= 0 and largest < 2**32:
        return b"1" if largest < 2**8 else b"2" if largest < 2**16 else b"4"
    return b"8" if least >= _LEAST and largest <= _LARGEST else None


def _is_key(key: object) -> bool:
    # Small numbers: of large ones, many could be made that a dict looks up in the same place.
    return type(key) is str or (type(key) is int and 0 <= key < _MOST_KEY)


# From bytes to values


def decode(message: bytes) -> Any:
    """Return the value that some bytes stand for.

    Raises
    ------
    WireError
        If they stand for none.
    """
    reader = _Reader(message)
    try:
        if len(message) > MOST_BYTES or reader.take(len(MAGIC)) != MAGIC:
            _nonsense()
        value = reader.read(0)
        if reader.place != len(message):
            _nonsense()
    except (WireError, UnicodeDecodeError, ArithmeticError, ValueError):
        # Not which of them, nor where: nobody but the sender should know.
        found = False
    else:
        found = True
    if not found:
        _nonsense()
    return value


def decode_as(kind: type[T], message: bytes) -> T:
    """Return the :class:`Request` or :class:`Reply` that some bytes stand for."""
    value = decode(message)
    if type(value) is not kind:
        _nonsense()
    return value


def _nonsense() -> NoReturn:
    raise WireError("these bytes are no message of a party or a coordinator")


class _Reader:
    """Reads a message from its beginning to its end."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.place = 0
        self.values = self.numbers = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self.place + size
        if end > len(self.message):
            _nonsense()
        found = self.message[self.place : end]
        self.place = end
        return found

    def count(self, most: int) -> int:
        """Return a count; refuse one above its limit, or above the bytes that are left."""
        (count,) = _COUNT.unpack(self.take(4))
        if count > most or count > len(self.message) - self.place:
            _nonsense()
        return int(count)

    def use(self, numbers: int) -> None:
        """Note how many numbers are made."""
        self.numbers += numbers
        if self.numbers > MOST_NUMBERS:
            _nonsense()

    def read(self, depth: int) -> Any:
        self.values += 1
        if depth > MOST_DEPTH or self.values > MOST_VALUES:
            _nonsense()
        if self.place == len(self.message):
            _nonsense()
        read = _READERS.get(self.message[self.place])
        if read is None:
            _nonsense()
        self.place += 1
        return read(self, depth)

    def read_int(self, _: int) -> int:
        return int(_INT.unpack(self.take(8))[0])

    def read_large_int(self, _: int) -> int:
        (size,) = _SIZE.unpack(self.take(2))
        if not 8 < size <= MOST_INT:
            _nonsense()
        value = int.from_bytes(self.take(size), "little", signed=True)
        if (value if value >= 0 else ~value).bit_length() // 8 + 1 != size:
            _nonsense()
        return value

    def read_float(self, _: int) -> float:
        (value,) = _FLOAT.unpack(self.take(8))
        if math.isnan(value):
            _nonsense()
        return float(value)

    def read_float64(self, depth: int) -> np.float64:
        return np.float64(self.read_float(depth))

    def read_int64(self, depth: int) -> np.int64:
        return np.int64(self.read_int(depth))

    def read_fraction(self, depth: int) -> Fraction:
        parts = self.read(depth + 1), self.read(depth + 1)
        if set(map(type, parts)) != {int}:
            _nonsense()
        value = Fraction(*parts)
        if (value.numerator, value.denominator) != parts:
            _nonsense()
        return value

    def read_text(self, _: int) -> str:
        return str(self.take(self.count(MOST_TEXT)), "utf-8")

    def read_bytes(self, _: int) -> bytes:
        return self.take(self.count(MOST_RAW))

    def read_list(self, depth: int) -> list[Any]:
        count = self.count(MOST_VALUES)
        found = [self.read(depth + 1) for _ in range(count)]
        if found and type(found[0]) in (int, float) and _is_row(found):
            _nonsense()
        return found

    def read_tuple(self, depth: int) -> tuple[Any, ...]:
        return tuple(self.read_list(depth))

    def read_number_list(self, _: int) -> list[Any]:
        width = self.take(1)
        if width not in _WIDTHS:
            _nonsense()
        count = self.count(MOST_NUMBERS)
        dtype = np.dtype(_WIDTHS[width])
        if not count:
            _nonsense()
        self.use(count)
        raw = self.take(count * dtype.itemsize)
        if width == b"1":
            return list(raw)
        numbers = np.frombuffer(raw, dtype=dtype)
        if width == b"f":
            if np.isnan(numbers).any():
                _nonsense()
        elif width != _width_of(int(numbers.min()), int(numbers.max())):
            _nonsense()
        found: list[Any] = numbers.tolist()
        return found

    def read_number_tuple(self, depth: int) -> tuple[Any, ...]:
        return tuple(self.read_number_list(depth))

    def read_dict(self, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in range(self.count(MOST_VALUES)):
            key = self.read(depth + 1)
            if not _is_key(key) or key in found:
                _nonsense()
            found[key] = self.read(depth + 1)
        return found

    def read_array(self, _: int) -> NDArray[Any]:
        dtype, dimensions = DTYPES.get(self.take(1)), self.take(1)[0]
        if dtype is None or not 1 <= dimensions <= _MOST_DIMENSIONS:
            _nonsense()
        shape = [_COUNT.unpack(self.take(4))[0] for _ in range(dimensions)]
        size = dtype.itemsize
        for each in shape:  # numbers of Python, which do not overflow
            size *= each
        if max(shape) > MOST_BYTES or size > len(self.message) - self.place:
            _nonsense()
        flat = np.frombuffer(self.message, np.uint8, size, self.place)
        if dtype.kind == "b" and (flat > 1).any():
            _nonsense()
        self.place += size
        # A copy, so that it can be written to, and the message need not be kept.
        return flat.copy().view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)

    def read_object(self, depth: int) -> Any:
        kind = _NAMES.get(self.take(self.take(1)[0]))
        if kind is None or (depth and kind in ENVELOPES):
            _nonsense()
        values = [self.read(depth + 1) for _ in _FIELDS[kind]]
        if kind in _NUMERIC:  # which finds its cuts
            bins = values[2]
            if type(bins) is not int or not 1 <= bins <= MAX_BINS:
                _nonsense()
            self.use(bins)
        return rebuild(kind, values)


_READERS: dict[int, Callable[[_Reader, int], Any]] = {
    ord("N"): lambda *_: None,
    ord("T"): lambda *_: True,
    ord("F"): lambda *_: False,
    ord("i"): _Reader.read_int,
    ord("I"): _Reader.read_large_int,
    ord("f"): _Reader.read_float,
    ord("g"): _Reader.read_float64,
    ord("j"): _Reader.read_int64,
    ord("q"): _Reader.read_fraction,
    ord("s"): _Reader.read_text,
    ord("b"): _Reader.read_bytes,
    ord("("): _Reader.read_tuple,
    ord("["): _Reader.read_list,
    ord("t"): _Reader.read_number_tuple,
    ord("l"): _Reader.read_number_list,
    ord("{"): _Reader.read_dict,
    ord("a"): _Reader.read_array,
    ord("o"): _Reader.read_object,
}


def _is_row(values: Sequence[Any]) -> bool:
    """Tell whether these are written as a row of numbers."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return _width_of(min(values), max(values)) is not None
    return kinds == {float}
