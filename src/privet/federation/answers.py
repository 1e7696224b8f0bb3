"""Checks of parties' answers. A party whose answer does not pass counts as lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privet.schema import Schema
from privet.tables import Split


def anew(split: Split) -> Split:
    """Return an equal split made anew: checked by its class, without anything cached."""
    return Split(split.feature, split.children)


def is_place(answer: Any) -> bool:
    """Tell whether an answer is a number that stands for cells, or for a choice."""
    return type(answer) is int


def is_series(answer: Any) -> bool:
    """Tell whether an answer is the number of a series."""
    return type(answer) is int and 0 < answer < 2**30


def is_key(answer: Any) -> bool:
    """Tell whether an answer is a public key, perhaps followed by a signature of it."""
    return isinstance(answer, bytes) and 32 <= len(answer) <= 512


def is_sealed(answer: Any) -> bool:
    """Tell whether an answer has sealed keys."""
    return isinstance(answer, dict) and all(isinstance(value, bytes) for value in answer.values())


def is_described(answer: Any) -> bool:
    """Tell whether an answer has a schema, leaks, and what is allowed."""
    schema, leaks, allowed = answer
    Schema.from_dict(schema)
    return all(isinstance(text, str) for text in (*leaks, *allowed))


def is_left(answer: Any) -> bool:
    """Tell whether an answer has what is left, a key, and how many are doubted."""
    left, key, doubted = answer
    return (
        (left == math.inf or (isinstance(left, Fraction) and left >= 0))
        and (key is None or is_key(key))
        and type(doubted) is int
    )


def _is_array(answer: Any, shape: tuple[int, ...], kind: type[np.generic]) -> bool:
    return isinstance(answer, np.ndarray) and answer.shape == shape and answer.dtype == kind


def counts_of(shape: tuple[int, ...]) -> Callable[[Any], bool]:
    """Return a check for counts of a shape."""

    def check(answer: Any) -> bool:
        # Not by absolute values: the least number of all has none.
        return _is_array(answer, shape, np.int64) and bool(
            ((answer < 2**53) & (answer > -(2**53))).all()
        )

    return check


def words_of(size: int) -> Callable[[Any], bool]:
    """Return a check for words of 64 bits."""

    def check(answer: Any) -> bool:
        return _is_array(answer, (size,), np.uint64)

    return check


def tagged_words_of(size: int) -> Callable[[Any], bool]:
    """Return a check for words of 64 bits with a tag."""
    are_words = words_of(size)

    def check(answer: Any) -> bool:
        words, tag = answer
        return type(answer) is tuple and are_words(words) and type(tag) is bytes and len(tag) == 16

    return check


def is_shown(count: int) -> Callable[[Any], bool]:
    """Return a check for a number and the digests of some deals."""

    def check(answer: Any) -> bool:
        number, shown = answer
        return (
            type(number) is int
            and type(shown) is list
            and len(shown) == count
            and all(type(each) is bytes for each in shown)
        )

    return check


def is_dealt_to(members: Sequence[str]) -> Callable[[Any], bool]:
    """Return a check for something that everybody is dealt; each looks at its own."""
    return lambda answer: type(answer) is dict and set(answer) == set(members)


def passes(check: Callable[[Any], bool], answer: Any) -> bool:
    """Tell whether an answer passes its check; one that makes the check fail does not."""
    try:
        return check(answer)
    except Exception:
        return False


def each_of(checks: Sequence[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    """Return a check for a list of answers, one for each check."""

    def check(answer: Any) -> bool:
        return (
            type(answer) is list
            and len(answer) == len(checks)
            and all(passes(each, held) for each, held in zip(checks, answer, strict=True))
        )

    return check
