"""Values and rows that somebody may write to change how other people's records are read.

All are public and invented. A *kind* names each of them, so that what an audit finds can be said
without showing any value.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NoReturn

import numpy as np

#: Longer than what readers of CSV files allow a field by default.
LONG = 200_000


class Grudge:
    """An object that answers nothing: whoever asks it for a number, text or hash gets an error."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise RuntimeError("a value that tells something")

    __float__ = __int__ = __index__ = __str__ = __repr__ = __hash__ = __eq__ = __lt__ = _refuse
    __bool__ = __len__ = __iter__ = __array__ = __complex__ = _refuse


class Imposter(float):
    """A number that claims to be equal to everything, and says another text every time."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "u"


def values() -> dict[str, Any]:
    """Return the hostile values by their kinds."""
    found: dict[str, Any] = {
        "a number of 400 digits": 10**400,
        "a negative number of 400 digits": -(10**400),
        "2^53 + 1": 2**53 + 1,
        "2^63": 2**63,
        "2^64": 2**64,
        "minus zero": -0.0,
        "the smallest number": 5e-324,
        "the largest number": 1.7e308,
        "infinity": math.inf,
        "minus infinity": -math.inf,
        "not a number": math.nan,
        "nothing": None,
        "true": True,
        "false": False,
        "bytes of a number": b"1",
        "bytes that are no text": b"\xff\xfe",
        "an array of bytes": bytearray(b"1"),
        "a decimal": decimal.Decimal("1.5"),
        "a decimal that is not a number": decimal.Decimal("NaN"),
        "a decimal that signals": decimal.Decimal("sNaN"),
        "a fraction": fractions.Fraction(1, 3),
        "a date": datetime.date(2026, 1, 1),
        "a time": datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
        "the first date": datetime.date.min,
        "the last date": datetime.date.max,
        "the last time": datetime.datetime.max,
        "a time of the far west": datetime.datetime.min.replace(
            tzinfo=datetime.timezone(datetime.timedelta(hours=-23))
        ),
        "numpy's far date": np.datetime64(2**62, "Y"),
        "a duration": datetime.timedelta(1),
        "numpy's date": np.datetime64("2026-01-01"),
        "numpy's no date": np.datetime64("NaT"),
        "a single": np.float32(0.1),
        "a small integer": np.int8(1),
        "numpy's true": np.bool_(True),
        "numpy's text": np.str_("1"),
        "numpy's bytes": np.bytes_(b"1"),
        "an array without dimension": np.array(1.0),
        "an array": np.array([1.0, 2.0]),
        "a complex number": 1 + 2j,
        "a complex number that is not a number": complex(math.nan, 1),
        "a list": [1.0],
        "an empty list": [],
        "a tuple": (1.0, 2.0),
        "a mapping": {"a": 1},
        "a set": {1},
        "an object": object(),
        "a type": int,
        "a function": len,
        "an object that refuses": Grudge(),
        "a number that equals everything": Imposter(0.5),
        "a long text": "x" * LONG,
        "a long text of digits": "1" * LONG,
        "a text of 5,000 digits": "9" * 5_000,
    }
    if find_spec("pandas") is not None:
        import pandas as pd

        found |= {"pandas' nothing": pd.NA, "pandas' no time": pd.NaT}
    texts = {
        "an empty text": "",
        "text of a date": "2020-01-05",
        "text of a time": "2020-01-05T23:59:60+99",
        "text of no date": "2020-02-30",
        "text of a day of ten thousand years": "10000-01-01",
        "a space": " ",
        "NUL": "\x00",
        "NUL in a text": "a\x00b",
        "an escape sequence": "\x1b[2J",
        "delete": "\x7f",
        "a vertical tab": "a\x0bb",
        "a form feed": "a\x0cb",
        "a file separator": "a\x1cb",
        "a next line": "a\x85b",
        "a line separator": "a\u2028b",
        "a byte order mark": "\ufeffu",
        "a byte order mark before a number": "\ufeff1",
        "a change of direction": "\u202eu",
        "a surrogate": "\ud800",
        "a quote": '"',
        "two quotes": '""',
        "a quote in a text": 'a"b',
        "a quote at the start": '"a',
        "a quote at the end": 'a"',
        "a quoted text": '"u"',
        "an apostrophe": "'",
        "a comma": "a,b",
        "a semicolon": "a;b",
        "a tab": "a\tb",
        "a backslash": "\\",
        "a backslash before a quote": '\\"',
        "a comment": "#u",
        "CR": "\r",
        "CR in a text": "a\rb",
        "60 CR": "\r" * 60,
        "LF": "\n",
        "LF in a text": "a\nb",
        "CR and LF": "a\r\nb",
        "empty lines": "a\r\n\r\n\r\nb",
        "a whole record": "u\n0.5,u,0\n0.5,u,1",
        "an umlaut": "\u00fc",
        "an emoji": "\U0001f600",
    }
    spelled = [
        "nan", "NaN", "NAN", "-nan", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "?", "-",
        "inf", "-Infinity", "1e400", "1e-400", " 1", "1 ", "+1", "1.", ".5", "1e0", "0x1", "1_0",
        "1,5", "1.5.5", "\u0661", "\uff11", "true", "True", "FALSE", "yes", "0.50", "00",
    ]  # fmt: skip
    return found | texts | {f"the text {text!r}": text for text in spelled}


def rows(width: int) -> Iterator[tuple[str, Any]]:
    """Yield rows that are no tuple of ``width`` features, with their kinds."""
    yield "a row without anything", ()
    yield "a row that is too short", (0.5,) * (width - 1)
    yield "a row that is too long", (0.5,) * (width + 1)
    yield "a nested row", ((0.5,) * width,)
    yield "a row that is nothing", None
    yield "a row that is a number", 0.5
    yield "a row that is a text", "u" * width
    yield "a row that is a mapping", dict.fromkeys(range(width), 0.5)
    yield "a row that is a set", set(range(width))
    yield "a row that is an array", np.full(width, 0.5)
    yield "a row that is an array of texts", np.full(width, "u")
    yield "a row of objects that refuse", (Grudge(),) * width
    yield "a row that refuses", Grudge()
