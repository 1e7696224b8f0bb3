r"""Text that somebody else wrote, so that it can be shown: on one line, with nothing hidden.

Names, classes and notes come from files that may be hostile. What a terminal would obey (control
characters, escape sequences), what changes the order of letters, what is not seen (zero-width and
blank characters) and what ends a line is written as an escape such as ``\x1b`` or ``\u202e``. So
text cannot clear a screen, hide a part of itself or make a line of its own.
"""

from __future__ import annotations

import unicodedata

#: Characters that Unicode counts as printable and that nevertheless show nothing.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
#: Languages stack up to this many marks on a letter; more would cover the lines above and below.
_MARKS = 4


def visible(text: str, longest: int | None = None) -> str:
    r"""Return text on one line, with all that is not seen written as escapes.

    Parameters
    ----------
    text : str
    longest : int, optional
        Show this many characters and say how many more there are.

    Examples
    --------
    >>> print(visible("two\nlines"))
    two\nlines
    >>> print(visible("a very long name", longest=6))
    a very… (10 more characters)
    """
    if longest is not None and len(text) > longest:
        return f"{visible(text[:longest])}… ({len(text) - longest} more characters)"
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        seen = character.isprintable() and character not in _BLANK and marks <= _MARKS
        shown.append(character if seen else character.encode("unicode_escape").decode())
    return "".join(shown)


def quoted(text: object, longest: int = 60) -> str:
    r"""Return a name for a message: visible, in quotes, and not too long.

    Examples
    --------
    >>> print(quoted("age"), quoted("a\nb"))
    'age' 'a\nb'
    """
    return f"'{visible(str(text), longest)}'"
