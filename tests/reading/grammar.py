"""The grammar of docs/reading.md, written down once more, character by character and slowly."""

from __future__ import annotations


def lines_of(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line + b"\n" for line in lines]


def parse(record: bytes, separator: bytes) -> list[bytes] | None:
    """Return the fields of lines that are taken for one record; None if it is not well-formed."""
    body = record[:-1].removesuffix(b"\r")
    fields, place = [], 0
    while True:
        if body[place : place + 1] == b'"':
            place, field = place + 1, b""
            while True:
                if place >= len(body):
                    return None
                char = body[place : place + 1]
                if char == b'"':
                    if body[place + 1 : place + 2] != b'"':
                        place += 1
                        break
                    place += 1
                field += char
                place += 1
        else:
            stop = body.find(separator, place)
            stop = len(body) if stop < 0 else stop
            field = body[place:stop]
            if b'"' in field or b"\n" in field:
                return None
            place = stop
        fields.append(field)
        if place == len(body):
            return fields
        if body[place : place + 1] != separator:
            return None
        place += 1


def records(data: bytes, width: int, separator: bytes = b",") -> list[list[bytes] | None]:
    """Return the fields of every record after the header; None for one that is not well-formed."""
    lines = lines_of(data)[1:]
    found: list[list[bytes] | None] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if width > 1 and line in (b"\n", b"\r\n"):
            place += 1
            continue
        stop = place + 1
        if line.count(b'"') % 2:
            odd = [k for k in range(stop, len(lines)) if lines[k].count(b'"') % 2]
            if odd and len(parse(b"".join(lines[place : odd[0] + 1]), separator) or ()) == width:
                stop = odd[0] + 1
        fields = parse(b"".join(lines[place:stop]), separator)
        found.append(fields if fields is not None and len(fields) == width else None)
        place = stop
    return found
