"""Results of audits that a report shows: files of Privet, read and checked field by field.

``privet audit --out`` writes them: JSON with ``"format": "privet-audit"`` (docs/formats.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.errors import ReportError

FORMAT, VERSION = "privet-audit", 1
#: Larger files, and longer tables and texts, are refused.
_MAX_BYTES, _MOST_ROWS, _MOST_TEXT = 1 << 22, 1_000, 10_000


@dataclass(frozen=True)
class Attachment:
    """The result of an audit, as it is shown and filed.

    Attributes
    ----------
    title : str
        What was tried.
    holds : bool
        Whether nothing was found that contradicts a guarantee.
    owners_only : bool
        Whether it is an exact statement about somebody's rows: never to be published.
    date : str
    head : tuple of str
    rows : tuple of tuples of str
    notes : tuple of str
    numbers : mapping of str to float
        For checkers; what the rows say in words.
    """

    title: str
    holds: bool
    owners_only: bool
    date: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> str:
        """Return the text of the file."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "holds": self.holds,
            "owners_only": self.owners_only,
            "date": self.date,
            "head": list(self.head),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
            "numbers": dict(self.numbers),
        }
        return json.dumps(plain, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, plain: Any) -> Attachment:
        """Read a result, checking every field; whatever is wrong is a ReportError."""
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ReportError("it is not a result that privet audit --out wrote")
        if plain.get("version") != VERSION:
            raise ReportError("it was written by another version of Privet")
        names = {"title", "holds", "owners_only", "date", "head", "rows", "notes", "numbers"}
        if set(plain) != {"format", "version", *names}:
            raise ReportError("it lacks fields or has some that are not known")
        head, rows = _texts(plain["head"]), plain["rows"]
        if not isinstance(rows, list) or len(rows) > _MOST_ROWS:
            raise ReportError("its table is damaged")
        found = tuple(_texts(row) for row in rows)
        if any(len(row) != len(head) for row in found):
            raise ReportError("its table is damaged")
        for name in ("holds", "owners_only"):
            if not isinstance(plain[name], bool):
                raise ReportError(f"{name} is neither true nor false")
        title, date = _texts([plain["title"], plain["date"]])
        numbers = plain["numbers"]
        if not isinstance(numbers, dict) or not all(_is_number(one) for one in numbers.values()):
            raise ReportError("it has a number that is none")
        return cls(
            title,
            plain["holds"],
            plain["owners_only"],
            date,
            head,
            found,
            _texts(plain["notes"]),
            tuple(numbers.items()),
        )


def read_attachment(path: str | Path) -> Attachment:
    """Read a result of an audit."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise ReportError("it is too large")
        return Attachment.from_dict(json.loads(raw.decode("utf-8")))
    except OSError as error:
        raise ReportError(f"cannot read the attached file {path}") from error
    except (ReportError, ValueError, RecursionError) as error:
        why = error if isinstance(error, ReportError) else "it is not JSON"
        raise ReportError(f"cannot attach {path}: {why}") from error


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | Sequence) or isinstance(value, str):
        raise ReportError("it has a list that is none")
    if len(value) > _MOST_ROWS or not all(
        isinstance(one, str) and len(one) <= _MOST_TEXT for one in value
    ):
        raise ReportError("it has a text that is none, or too long")
    return tuple(value)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )
