"""Mutated tables: CSV and Parquet files that are almost right, and such as people attack with.

The same seed and count give the same files. Cells hold :data:`SECRETS`, which no message may say.
"""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

#: What stands in cells, as text and as numbers: no message may contain it.
SECRETS = ("Qx7Vz93", "73917391")

_HEADER = "a,b,c,y"
_TOKENS = [
    b'"', b'""', b'"""', b"\r", b"\n", b"\r\n", b"\n\n", b"\0", b",", b",,,", b";", b"\t",
    b"'", b"\\",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\x1b[2J", b"\x0b", b"\x0c", b"\x1a", b"\x1e", "\u2028".encode(), "\u0085".encode(),
    "\u202e".encode(), b"nan", b"inf", b"1e400", b"-0", b"NULL", b"None", b"true", b"0x10", b"1_0",
    b"1,5", b" ", b'"\n"', b'"\r"', b'","', b"=cmd()", b"\r" * 60, b'"' * 61, b"9" * 400,
]  # fmt: skip


def mutated_csv(seed: int, count: int) -> Iterator[bytes]:
    """Return this many CSV files, some of them gzipped."""
    generator = random.Random(f"csv {seed}")
    for _ in range(count):
        text = _csv(generator)
        for _turn in range(generator.choice((1, 1, 1, 2, 3, 6))):
            text = generator.choice(_CSV_CHANGES)(text, generator)
        yield text


def mutated_parquet(seed: int, count: int) -> Iterator[bytes]:
    """Return this many Parquet files."""
    generator = random.Random(f"parquet {seed}")
    for _ in range(count):
        kind = generator.randrange(3)
        if kind == 0:  # whole, with columns of other types and strange metadata
            yield _parquet(generator.randrange(_SHAPES))
            continue
        raw = _parquet(generator.randrange(_SHAPES))
        for _turn in range(generator.choice((1, 1, 1, 2, 4))):
            raw = generator.choice(_PARQUET_CHANGES)(raw, generator)
        yield raw


# Bytes

Change = Callable[[bytes, random.Random], bytes]


def _span(raw: bytes, generator: random.Random, most: int = 64) -> tuple[int, int]:
    start = generator.randrange(len(raw) + 1)
    return start, min(len(raw), start + generator.randrange(1, most))


def _flip(raw: bytes, generator: random.Random) -> bytes:
    if not raw:
        return raw
    place = generator.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 1 << generator.randrange(8)]) + raw[place + 1 :]


def _byte(raw: bytes, generator: random.Random) -> bytes:
    place = generator.randrange(len(raw) + 1)
    return raw[:place] + bytes([generator.randrange(256)]) + raw[place + 1 :]


def _insert(raw: bytes, generator: random.Random) -> bytes:
    place = generator.randrange(len(raw) + 1)
    return raw[:place] + generator.choice(_TOKENS) + raw[place:]


def _remove(raw: bytes, generator: random.Random) -> bytes:
    start, end = _span(raw, generator)
    return raw[:start] + raw[end:]


def _repeat(raw: bytes, generator: random.Random) -> bytes:
    start, end = _span(raw, generator)
    return raw[:end] + raw[start:end] * generator.choice((1, 1, 3, 50)) + raw[end:]


def _zero(raw: bytes, generator: random.Random) -> bytes:
    start, end = _span(raw, generator)
    return raw[:start] + generator.choice((b"\0", b"\xff")) * (end - start) + raw[end:]


def _cut_short(raw: bytes, generator: random.Random) -> bytes:
    return raw[: generator.randrange(len(raw) + 1)]


_BYTE_CHANGES: list[Change] = [_flip, _byte, _insert, _remove, _repeat, _zero, _cut_short]


# CSV


def _csv(generator: random.Random) -> bytes:
    """Return an honest file, whose cells are secrets."""
    lines = [_HEADER]
    for i in range(generator.choice((1, 3, 12))):
        a = generator.choice(("0.5", "1.5", SECRETS[1], ""))
        b = generator.choice(("u", "v", SECRETS[0]))
        c = generator.choice((SECRETS[0], f'"{SECRETS[0]}, {i}"', f'"{SECRETS[0]}\n{i}"', ""))
        lines.append(f"{a},{b},{c},{generator.choice(('yes', 'no', SECRETS[0]))}")
    end = generator.choice(("\n", "\n", "\r\n", "\r"))
    return (end.join(lines) + generator.choice(("", end))).encode()


def _line(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Return a change of one line."""

    def changed(raw: bytes, generator: random.Random) -> bytes:
        lines = raw.split(b"\n")
        place = generator.randrange(len(lines))
        lines[place] = change(lines[place], generator)
        return b"\n".join(lines)

    return changed


def _long_field(raw: bytes, generator: random.Random) -> bytes:
    field = SECRETS[0].encode() * 20_000
    if generator.random() < 0.5:
        field = b'"' + field + b'"'
    return _line(lambda line, _: b",".join([field, *line.split(b",")[1:]]))(raw, generator)


def _other_header(raw: bytes, generator: random.Random) -> bytes:
    rest = raw.partition(b"\n")[2]
    heads = [b"a,a,b,y", b"a;b;c;y", b"", b'"a","b","c","y"', b"a\tb\tc\ty", b"a,b,c", b"\0",
             b"A,B,C,Y", b'a,"b\n",c,y', b"a,b,c,y,", b",,,", b'"a,b,c,y',
             b"\x1b[31ma,b,c,y"]  # fmt: skip
    return generator.choice(heads) + b"\n" + rest


def _compressed(raw: bytes, generator: random.Random) -> bytes:
    packed = gzip.compress(raw, mtime=0)
    if generator.random() < 0.5:
        return packed
    if generator.random() < 0.5:
        return packed[: generator.randrange(len(packed))]
    return _flip(packed, generator)


def _encoded(raw: bytes, generator: random.Random) -> bytes:
    text = raw.decode("utf-8", "replace")
    return text.encode(generator.choice(("utf-16", "utf-16-be", "utf-32", "utf-8-sig")), "replace")


_CSV_CHANGES: list[Change] = [
    *_BYTE_CHANGES,
    *[_insert] * 6,
    _line(_insert),
    _line(_repeat),
    _line(lambda line, _: line + b'"'),
    _line(lambda line, _: b'"' + line),
    _line(lambda line, _: line + b"," + line),
    _line(lambda line, _: line.partition(b",")[0]),
    _line(lambda line, generator: b"\r".join([line] * generator.choice((2, 61)))),
    _line(lambda *_: b""),
    _long_field,
    _other_header,
    _compressed,
    _encoded,
    lambda raw, _: raw.replace(b"\n", b"\r"),
    lambda raw, _: raw.replace(b",", b";"),
]


# Parquet

_SHAPES = 48


@cache
def _parquet(shape: int) -> bytes:
    """Return one of several honest files: types, codecs, pages and metadata differ."""
    import decimal

    import pyarrow as pa
    import pyarrow.parquet

    generator = random.Random(shape)
    word, number = SECRETS[0], int(SECRETS[1])
    rows = 40
    numbers: list[Any] = [
        pa.array([0.5, float(number), None, 1.5] * 10),
        pa.array([1, number, None, 0] * 10, pa.int64()),
        pa.array([1, 2, 3, None] * 10, pa.uint8()),
        pa.array([str(number), "0.5", None, word] * 10),
        pa.array([True, False, None, True] * 10),
        pa.array([decimal.Decimal(number), None] * 20),
        pa.array([number, None] * 20, pa.timestamp("us")),
        pa.array([[number], None] * 20, pa.list_(pa.int64())),
        pa.array([{"x": word}, None] * 20),
        pa.array([word.encode(), b"\xff", None, b"0"] * 10),
        pa.array([1.0, None] * 20, pa.float16()),
        pa.array([number, None] * 20, pa.date32()),
        pa.nulls(rows),
    ]
    words: list[Any] = [
        pa.array(["u", "v", None, word] * 10),
        pa.array(["u", "v", None, word] * 10).dictionary_encode(),
        pa.array(["u", "v", None, word] * 10, pa.large_string()),
        pa.array([b"u", b"v", None, b"\xff" + word.encode()] * 10),
        pa.array([number, 1, None, 2] * 10),
        pa.array([["u"], [word], None, []] * 10),
        pa.array([word + "\x1b[2J", "u\0", "\u202e", "x" * 200_000] * 10),
    ]
    a, b = generator.choice(numbers), generator.choice(words)
    y = generator.choice([pa.array(["yes", "no", None, word] * 10), *words])
    names = generator.choice(
        [["a", "b", "c", "y"]] * 6
        + [["a", "b", "b", "y"], ["a", "c", "d", "y"], ["a", "b", "", "y"]]
    )
    table = pa.table([a, b, pa.array([word] * rows), y], names=names)
    metadata = generator.choice([None, None, {b"pandas": b"{"}, {b"pandas": b'{"columns": 7}'},
                                 {b"ARROW:schema": b"AAAA"}, {b"x": b"\xff" * 1000}])  # fmt: skip
    if metadata:
        table = table.replace_schema_metadata(metadata)
    file = io.BytesIO()
    pyarrow.parquet.write_table(
        table,
        file,
        compression=generator.choice(["none", "snappy", "gzip", "zstd"]),
        use_dictionary=generator.random() < 0.5,
        row_group_size=generator.choice([1, 7, rows]),
        data_page_version=generator.choice(["1.0", "2.0"]),
        store_schema=generator.random() < 0.5,
        write_statistics=generator.random() < 0.5,
    )
    return file.getvalue()


def _in_footer(change: Change) -> Change:
    """Return a change of the metadata, which stand before the last eight bytes."""

    def changed(raw: bytes, generator: random.Random) -> bytes:
        size = int.from_bytes(raw[-8:-4], "little")
        start = max(4, len(raw) - 8 - size)
        new = change(raw[start:-8], generator)
        if generator.random() < 0.7:  # its length is told rightly
            return raw[:start] + new + len(new).to_bytes(4, "little") + raw[-4:]
        return raw[:start] + new + raw[-8:]

    return changed


def _in_pages(change: Change) -> Change:
    def changed(raw: bytes, generator: random.Random) -> bytes:
        size = int.from_bytes(raw[-8:-4], "little")
        start = max(4, len(raw) - 8 - size)
        new = change(raw[4:start], generator)
        return raw[:4] + new[: start - 4].ljust(start - 4, b"\0") + raw[start:]

    return changed


def _wrong_size(raw: bytes, generator: random.Random) -> bytes:
    size = generator.choice((0, 1, 2**31 - 1, 2**32 - 1, len(raw), generator.randrange(2**32)))
    return raw[:-8] + size.to_bytes(4, "little") + raw[-4:]


_PARQUET_CHANGES: list[Change] = [
    *_BYTE_CHANGES,
    *[_in_footer(change) for change in _BYTE_CHANGES],
    *[_in_footer(_flip)] * 4,
    *[_in_footer(_byte)] * 4,
    *[_in_pages(change) for change in (_flip, _byte, _zero)] * 4,
    _wrong_size,
    lambda raw, generator: raw[:4] + raw[generator.randrange(4, max(5, len(raw))) :],
    lambda raw, _: raw[:-4] + b"PARE",
    lambda *_: b"PAR1PAR1",
    lambda *_: b"a,b,c,y\n1,u,x,no\n",
]
