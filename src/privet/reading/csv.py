"""CSV files: one grammar, one reader. A record is read alone.

The grammar is RFC 4180's, made strict, so that every run of bytes has one reading:

* A *line* ends with LF; a CR right before it belongs to the ending. The file's end ends a line.
* A field is quoted if its first character is ``"``: it reaches to the next single ``"``, and ``""``
  in it stands for one. Separators, CR and LF in it are part of the field. Any other field has no
  ``"`` in it; a CR in it is a character like others.
* A record is one line; if the line's number of quotes is odd, it is the lines up to and including
  the next line of which that is true, provided that these lines are a well-formed record.
* A record is *well-formed* if it follows these rules and has as many fields as the header. What is
  not well-formed is one record of missing values: never fewer, never more.
* An empty line is no record; if the file has a single column, it is an empty field.

So a file of records that a conforming writer wrote is read record by record, whatever the texts
are. docs/reading.md says what an arbitrary line of bytes can do to others, and why no reader can
do better.

pyarrow divides lines into fields and fields into numbers. Alone it does not have the property: it
takes a lone CR for the end of a record, lets a quote reach as far as it likes, and gives up on a
whole file because of one field. So this module finds out first which bytes of a block are
well-formed, puts an empty record in the place of every other one, puts quotes around a lone CR,
and hands over the result. Where pyarrow then finds text among numbers, each of these texts is read
by itself.
"""

from __future__ import annotations

import codecs
import gzip
import math
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from privet.errors import DataError
from privet.reading.values import number_of_text

_LF, _CR, _QUOTE = b'\n\r"'
#: Bytes that are read at once; a block ends with a record.
_BLOCK = 1 << 23
#: A longer record is not well-formed, and no quote is followed further than this.
MAX_RECORD = 1 << 28
#: The first line with the names of columns has at most this many bytes.
MAX_HEADER = 1 << 24
#: What a packed file may unpack to: a small file must not fill the memory.
MAX_UNPACKED = 1 << 33
#: Spellings of a missing number: none of them is a number, so pyarrow may pass over them.
MISSING = ("", "NA", "N/A", "n/a", "NULL", "null", "None", "NaN", "nan", "?")
_SIMPLE_NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Parameters
    ----------
    separator : str, default=","
        What stands between fields: one ASCII character.
    encoding : str, default="utf-8"
        ``"utf-8"``, or an encoding of one byte per character such as ``"latin-1"`` or ``"cp1252"``.
    decimal : str, default="."
        The decimal point: ``"."`` or ``","``.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if (
            not isinstance(self.separator, str)
            or len(self.separator) != 1
            or not self.separator.isascii()
            or self.separator in '"\r\n\0'
            or self.separator.isalnum()
        ):
            raise DataError(
                "the separator must be one ASCII character such as ',' ';' or a tab: no letter, no "
                "digit, no quote, no line break"
            )
        if self.decimal not in (".", ","):
            raise DataError("the decimal point must be '.' or ','")
        if self.decimal == self.separator:
            raise DataError(
                "the separator and the decimal point are the same character; give the one that "
                "stands between fields as the separator"
            )
        if not isinstance(self.encoding, str) or not _is_safe(self.encoding):
            raise DataError(
                "the encoding must be utf-8, or one of a single byte per character such as latin-1 "
                "or cp1252; save the file as UTF-8 otherwise"
            )

    @property
    def is_utf8(self) -> bool:
        """Whether bytes need not be decoded before they are divided into fields."""
        return _is_utf8(self.encoding)


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")  # marks are passed over
    except (LookupError, ValueError):
        return False


def _is_safe(encoding: str) -> bool:
    """Tell whether every byte of an encoding is a character of its own, ASCII as in ASCII.

    So that no byte of one record can change how another one is decoded.
    """
    if _is_utf8(encoding):
        return True
    every = bytes(range(256))
    try:
        alone = [every[byte : byte + 1].decode(encoding, "replace") for byte in every]
        pairs = [bytes([first, second]) for first in every for second in every]
        together = b"".join(pairs).decode(encoding, "replace")
    except (LookupError, ValueError, UnicodeError):
        return False
    ascii_as_ascii = "".join(alone[:128]).encode("utf-8", "replace") == every[:128]
    ascii_as_ascii &= not any(char.isascii() for char in alone[128:])  # no second kind of quote
    return ascii_as_ascii and together == "".join(alone[byte] for byte in b"".join(pairs))


class CsvFile:
    """A CSV file whose header has been read; iterate over :meth:`blocks` for its records.

    Parameters
    ----------
    path : Path
        The file; a name that ends in ``.gz`` says that it is packed.
    dialect : Dialect
    """

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self.path = path
        self.dialect = dialect
        #: Which part of the file was read so far, between 0 and 1.
        self.part_read = 0.0
        with _opened(path) as file:
            self.names, self._header_bytes = self._read_header(file)

    def _read_header(self, file: IO[bytes] | _Unpacked) -> tuple[tuple[str, ...], int]:
        """Return the names in the first record, and how many bytes it takes."""
        buffer = b""
        while True:
            more = _fill(file, max(1 << 16, len(buffer)))
            buffer += more
            if buffer.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise DataError(f"{self.path} is in UTF-16; save it as UTF-8")
            skipped = 3 if buffer.startswith(b"\xef\xbb\xbf") else 0  # a byte order mark
            found = _header_end(buffer, skipped)
            if found is None and (not more or len(buffer) > MAX_HEADER):
                found = len(buffer)
            if found is not None:
                break
        header = buffer[skipped:found]
        fields = _fields(header.removesuffix(b"\n").removesuffix(b"\r"), self.dialect.separator)
        if b"\r" in header.removesuffix(b"\r\n"):
            raise DataError(
                f"the lines of {self.path} do not end in LF or CRLF; save it with such line ends"
            )
        if fields is None:
            raise DataError(f"the first line of {self.path}, with the names of columns, is damaged")
        encoding = "utf-8" if self.dialect.is_utf8 else self.dialect.encoding
        try:
            return tuple(field.decode(encoding) for field in fields), found
        except UnicodeDecodeError:
            raise DataError(
                f"the first line of {self.path} is not in {encoding}; say which encoding the file "
                "has, such as latin-1 or cp1252"
            ) from None

    def blocks(self, columns: Sequence[str], numeric: Collection[str]) -> Iterator[pa.Table]:
        """Yield the records as tables: numeric columns as 64-bit floats, others as text."""
        block = _Block(self.names, tuple(columns), frozenset(numeric), self.dialect)
        size = max(self.path.stat().st_size, 1)
        with _opened(self.path) as file:
            _fill(file, self._header_bytes)
            source = _Source(file)
            while source.left:
                window, final = source.window()
                table, used = block.read(window, final=final)
                if not used:  # a record that is longer than the window, if it is one
                    window = source.first_record(self.dialect.separator, len(self.names))
                    table, used = block.read(window, final=True)
                self.part_read = min(file.tell() / size, 1.0)
                if table is not None:
                    yield table
                source.skip(used)


class _Source:
    """Bytes of a file from the beginning of a record on; no more is held than is needed."""

    def __init__(self, file: IO[bytes] | _Unpacked) -> None:
        self._file = file
        self._held = b""
        self._start = 0
        self._final = False
        self._more()

    @property
    def left(self) -> int:
        """How many bytes are held."""
        return len(self._held) - self._start

    def _more(self) -> None:
        """Hold twice as much, which keeps the work linear; at the end, the last line has an end."""
        size = max(_BLOCK, self.left)
        found = _fill(self._file, size)
        self._final = len(found) < size
        self._held = self._held[self._start :] + found
        self._start = 0
        if self._final and self._held and not self._held.endswith(b"\n"):
            self._held += b"\n"

    def window(self) -> tuple[bytes, bool]:
        """Return a block or two, and whether the file ends there."""
        if self.left < _BLOCK and not self._final:
            self._more()
        stop = self._start + 2 * _BLOCK
        whole = stop >= len(self._held)
        return self._held[self._start : stop], whole and self._final

    def skip(self, used: int) -> None:
        """Go on behind some bytes."""
        self._start += used
        if not self.left and not self._final:
            self._more()

    def first_record(self, separator: str, width: int) -> bytes:
        """Return the first record, however long: one line, or several that are well-formed."""
        line = self._find(b"\n", 0) + 1
        if not self._is_odd(0, line):
            return self._bytes(line)
        end = line
        while (quote := self._find(b'"', end, MAX_RECORD)) >= 0:
            end = self._find(b"\n", quote) + 1
            if not self._is_odd(quote, end):
                continue
            whole = self._bytes(end)
            if end <= MAX_RECORD and _record_pattern(ord(separator), width).fullmatch(whole):
                return whole
            break
        return self._bytes(line)

    def _find(self, mark: bytes, place: int, most: float = math.inf) -> int:
        """Return where a mark is found after some place, within a limit; -1 if it is not."""
        while (found := self._held.find(mark, self._start + place)) < 0:
            place = self.left
            if self._final or place > most:
                return -1
            self._more()
        return found - self._start

    def _is_odd(self, start: int, stop: int) -> bool:
        return self._held.count(b'"', self._start + start, self._start + stop) % 2 == 1

    def _bytes(self, stop: int) -> bytes:
        return self._held[self._start : self._start + stop]


@dataclass(frozen=True)
class _Block:
    """How blocks of one file are read."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    numeric: frozenset[str]
    dialect: Dialect

    def read(self, buffer: bytes, *, final: bool) -> tuple[pa.Table | None, int]:
        """Return the whole records of a buffer, and how many bytes they take."""
        if b'"' not in buffer and buffer.count(b"\r") == buffer.count(b"\r\n"):
            # Every line is a record; pyarrow says whether they have as many fields as they should.
            used = buffer.rfind(b"\n") + 1
            if not used:
                return None, 0
            with suppress(pa.ArrowInvalid):
                return self._parse(self._text(buffer[:used])), used
        layout = _Layout.of(buffer, ord(self.dialect.separator), len(self.names), final=final)
        if not layout.used:
            return None, 0
        whole = self._text(layout.mended(buffer, self.dialect.separator.encode(), len(self.names)))
        try:
            table = self._parse(whole, lines=layout.lines, longest=layout.longest)
        except pa.ArrowInvalid:  # text among numbers, or bytes that are no UTF-8
            whole = whole.decode("utf-8", "replace").encode()
            longest = 3 * layout.longest  # a byte becomes a replacement character of three
            table = self._parse(whole, lines=layout.lines, longest=longest, as_text=True)
        return _without(table, layout.bad), layout.used

    def _text(self, buffer: bytes) -> bytes:
        if self.dialect.is_utf8:
            return buffer
        return buffer.decode(self.dialect.encoding, "replace").encode()

    def _parse(
        self,
        buffer: bytes,
        *,
        lines: bool = False,
        longest: int = 0,
        as_text: bool = False,
    ) -> pa.Table:
        """Let pyarrow read well-formed records; it fails if a field is not as expected."""
        width = len(self.names)
        places = [self.names.index(name) for name in self.columns]
        types = {
            str(place): pa.float64() if name in self.numeric and not as_text else pa.string()
            for place, name in zip(places, self.columns, strict=True)
        }
        table = pyarrow.csv.read_csv(
            # pyarrow passes over one byte order mark: it gets one, and leaves those of records.
            pa.BufferReader(b"\xef\xbb\xbf" + buffer),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[str(place) for place in range(width)],
                block_size=min(max(1 << 20, 2 * longest), (1 << 31) - 1),
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self.dialect.separator,
                quote_char='"' if b'"' in buffer else False,
                newlines_in_values=lines,
                ignore_empty_lines=width > 1,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=list(MISSING),
                strings_can_be_null=False,
                decimal_point=self.dialect.decimal,
            ),
        )
        if as_text:
            for place, name in enumerate(self.columns):
                if name in self.numeric:
                    read = _numbers(table.column(place), self.dialect.decimal)
                    table = table.set_column(place, name, read)
        return table.rename_columns(list(self.columns))


@dataclass(frozen=True)
class _Layout:
    """Where the records of a buffer are.

    Attributes
    ----------
    starts, stops : arrays of int
        Of the records, empty lines left out.
    bad : array of bool
        Which of them are not well-formed.
    returns : array of bool
        Which of them have a CR outside of quotes that is not part of a line's end.
    used : int
        The bytes of all whole records.
    lines : bool
        Whether a well-formed record has several lines.
    """

    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    bad: NDArray[np.bool_]
    returns: NDArray[np.bool_]
    used: int
    lines: bool

    @classmethod
    def of(cls, buffer: bytes, separator: int, width: int, *, final: bool) -> _Layout:
        """Find the records of a buffer that starts with one and, if final, ends with one."""
        raw = np.frombuffer(buffer, dtype=np.uint8)
        is_quote = raw == _QUOTE
        ends = np.flatnonzero(raw == _LF)
        # How many quotes there are up to each byte, modulo 256: all that matters is whether that is
        # odd.
        quotes = np.cumsum(is_quote, dtype=np.uint8)
        odd = np.flatnonzero(np.diff(quotes[ends], prepend=np.uint8(0)) & 1)
        is_first = np.ones(len(ends), dtype=bool)
        lines = False
        starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
        pattern = _record_pattern(separator, width)
        place, last = 0, len(ends)
        while place < len(odd):
            line = odd[place]
            if place + 1 == len(odd):
                if not final:  # the line that ends this record may be in the next block
                    last = line
                break
            until = odd[place + 1]
            start, stop = int(starts[line]), int(ends[until]) + 1
            if stop - start <= MAX_RECORD and pattern.fullmatch(buffer, start, stop):
                is_first[line + 1 : until + 1] = False
                lines = True
                place += 2
            else:
                place += 1
        is_first = is_first[:last]
        used = int(ends[last - 1]) + 1 if last else 0
        starts = starts[:last][is_first]
        stops = np.append(starts[1:], used)
        bad, returns = _checked(
            raw[:used], is_quote[:used], quotes[:used], starts, separator, width
        )
        length = stops - starts
        bad |= length > MAX_RECORD
        keep = np.ones(len(starts), dtype=bool)
        if width > 1:
            keep = (length > 2) | ((length == 2) & (raw[starts] != _CR))
        return cls(starts[keep], stops[keep], bad[keep], returns[keep], used, lines)

    @property
    def longest(self) -> int:
        """The bytes of the longest well-formed record."""
        return int((self.stops - self.starts)[~self.bad].max(initial=0))

    def mended(self, buffer: bytes, separator: bytes, width: int) -> bytes:
        """Return the whole records as pyarrow can read them.

        A blank one stands in the place of every bad one, and fields with a lone CR have quotes.
        """
        blank = separator * (width - 1) + b"\n"
        changed = np.flatnonzero(self.bad | self.returns)
        parts, place = [], 0
        for record in changed.tolist():
            start, stop = int(self.starts[record]), int(self.stops[record])
            mine = blank if self.bad[record] else _quoted(buffer[start:stop], separator)
            parts += [buffer[place:start], mine]
            place = stop
        return b"".join([*parts, buffer[place : self.used]])


def _checked(
    raw: NDArray[np.uint8],
    is_quote: NDArray[np.bool_],
    quotes: NDArray[np.uint8],
    starts: NDArray[np.intp],
    separator: int,
    width: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which records break a rule, and which have a lone CR outside of quotes."""
    bad, returns = np.zeros((2, len(starts)), dtype=bool)
    if not len(starts):
        return bad, returns
    before = np.where(starts > 0, quotes[starts - 1], 0)
    after = np.append(before[1:], quotes[-1])
    bad |= ((after - before) & 1).astype(bool)  # a quote that nothing closes
    if bad.any():
        quotes = quotes - np.repeat(before, np.diff(starts, append=len(raw)))
    inside = (quotes & 1).astype(bool)  # within quotes, the one that opens them included

    def records_of(places: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(starts, places, side="right") - 1

    places = np.flatnonzero(is_quote)
    opening, closing = places[inside[places]], places[~inside[places]]
    # The last byte is LF, and an opening quote after one is the first byte of its record.
    last = raw[opening - 1]
    bad[records_of(opening[(last != separator) & (last != _QUOTE) & (last != _LF)])] = True
    following = raw[closing + 1]
    ends = (following == separator) | (following == _QUOTE) | (following == _LF)
    ends |= (following == _CR) & (raw[np.minimum(closing + 2, len(raw) - 1)] == _LF)
    bad[records_of(closing[~ends])] = True
    places = np.flatnonzero(raw == _CR)
    returns[records_of(places[(raw[places + 1] != _LF) & ~inside[places]])] = True
    fields = np.add.reduceat((raw == separator) & ~inside, starts, dtype=np.int32)
    bad |= fields != width - 1
    return bad, returns


@lru_cache(maxsize=16)
def _record_pattern(separator: int, width: int) -> re.Pattern[bytes]:
    """Return what a well-formed record matches, its line end included."""
    mark = re.escape(bytes([separator]))
    # Possessive: a field is over when it is over, so that matching takes linear time.
    field = b'(?:"[^"]*+(?:""[^"]*+)*+"|[^"\n' + mark + b"]*+)"
    return re.compile(field + b"(?:" + mark + field + b"){%d}\r?\n" % (width - 1))


def _header_end(buffer: bytes, start: int) -> int | None:
    """Return where the first record ends: at an LF outside of quotes; None if not here."""
    quotes = 0
    while (end := buffer.find(b"\n", start)) >= 0:
        quotes += buffer.count(b'"', start, end)
        start = end + 1
        if quotes % 2 == 0:
            return start
    return None


def _fields(record: bytes, separator: str) -> list[bytes] | None:
    """Return the fields of a record without its line end; None if it is not well-formed."""
    mark = re.escape(separator.encode())
    field = re.compile(b'"([^"]*+(?:""[^"]*+)*+)"|([^"\n' + mark + b"]*+)")
    found, place = [], 0
    while True:
        match = field.match(record, place)
        assert match is not None  # an empty field matches anywhere
        quoted, plain = match.groups()
        found.append(plain if quoted is None else quoted.replace(b'""', b'"'))
        place = match.end()
        if place == len(record):
            return found
        if not record.startswith(separator.encode(), place):
            return None
        place += 1


def _quoted(record: bytes, separator: bytes) -> bytes:
    """Return a well-formed record of one line with quotes around all fields."""
    fields = _fields(record.removesuffix(b"\n").removesuffix(b"\r"), separator.decode())
    assert fields is not None
    return separator.join(b'"' + field.replace(b'"', b'""') + b'"' for field in fields) + b"\n"


def _numbers(column: pa.ChunkedArray, decimal: str) -> pa.Array:
    """Read texts as numbers, each by itself."""
    texts = column.combine_chunks()
    simple = pc.match_substring_regex(texts, _SIMPLE_NUMBER.replace(r"\.", re.escape(decimal)))
    point = pc.replace_substring(texts, decimal, ".") if decimal != "." else texts
    numbers = pc.cast(pc.if_else(simple, point, None), pa.float64()).to_numpy(zero_copy_only=False)
    others = texts.filter(pc.invert(simple)).dictionary_encode()
    known = [number_of_text(text, decimal) for text in others.dictionary.to_pylist()]
    numbers = np.array(numbers)
    numbers[~np.asarray(simple)] = np.array(known, dtype=np.float64)[np.asarray(others.indices)]
    return pa.array(numbers)


def _without(table: pa.Table, bad: NDArray[np.bool_]) -> pa.Table:
    """Make the values of bad records missing."""
    if not bad.any():
        return table
    mask = pa.array(bad)
    return pa.table(
        {
            name: pc.if_else(mask, pa.scalar(None, column.type), column)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


class _Unpacked:
    """Reads a packed file up to a limit; says what is wrong with it in our own words."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw = path.open("rb")
        self._file = gzip.GzipFile(fileobj=self._raw)
        self._left = MAX_UNPACKED

    def read(self, size: int) -> bytes:
        """Return some more bytes; none at the end."""
        try:
            found = self._file.read(size)
        except (OSError, EOFError, zlib.error):
            raise DataError(f"cannot unpack {self._path}: it is damaged, or no gzip file") from None
        self._left -= len(found)
        if self._left < 0:
            raise DataError(
                f"{self._path} unpacks to more than {MAX_UNPACKED >> 30} GiB; unpack it yourself"
            )
        return found

    def tell(self) -> int:
        """Return how many bytes of the packed file were read."""
        return self._raw.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()


def _opened(path: Path) -> IO[bytes] | _Unpacked:
    return _Unpacked(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _fill(file: IO[bytes] | _Unpacked, size: int) -> bytes:
    """Return ``size`` bytes, or all that are left."""
    found = file.read(size)
    parts, missing = [found], size - len(found)
    while found and missing:
        found = file.read(missing)
        parts.append(found)
        missing -= len(found)
    return b"".join(parts)
