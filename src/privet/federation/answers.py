"""Checks of parties' answers. A party whose answer does not pass counts as lost."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def is_key(answer: Any) -> bool:
    """Tell whether an answer is a public key."""
    return isinstance(answer, bytes) and len(answer) == 32


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
