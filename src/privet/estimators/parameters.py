"""What the parameters of estimators may be: declared once, checked and read by the declaration.

An estimator lists its own parameters in ``_parameters``. Fits check them by that list, and the
command line reads their texts by it. This is our own because scikit-learn's
``_parameter_constraints``, after which it is made, is private, raises errors of its own, and
neither reads texts nor turns "auto" into what a learner takes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from privet.criteria import MAX_ROWS
from privet.errors import BudgetError

#: Deeper trees than this are refused: no budget suffices for more levels.
MAX_DEPTH = 64
MOST_TREES = 1_000
MOST_BINS = 1_000
MOST_FEATURES = 2**31
#: Larger numbers are taken for mistakes.
_FINITE = 1e300


class Parameter(ABC):
    """What a parameter may be."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What it may be, in words that follow "must be"."""

    @property
    def readable(self) -> str:
        """The same, as far as texts of the command line can say it."""
        return self.allowed

    @abstractmethod
    def accept(self, value: Any) -> Any:
        """Return a value as learners take it, or raise a ValueError."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """Return the value that a text of the command line stands for, or raise a ValueError."""

    def check(self, value: Any, name: str) -> Any:
        """Return a value as learners take it, or raise an error that says what it may be."""
        try:
            return self.accept(value)
        except ValueError:
            raise BudgetError(f"{name} must be {self.allowed}") from None

    def check_text(self, text: str, name: str) -> Any:
        """Return the value of a text of the command line, checked, for the estimator to take."""
        try:
            value = self.read(text)
            self.accept(value)
        except ValueError:
            raise BudgetError(f"{name} must be {self.readable}") from None
        return value


@dataclass(frozen=True)
class WholeNumber(Parameter):
    """A whole number within limits."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        return f"a whole number from {self.least} to {self.most}"

    def accept(self, value: Any) -> int:
        """See :class:`Parameter`."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not self.least <= int(value) <= self.most:
            raise ValueError
        return int(value)

    def read(self, text: str) -> int:
        """See :class:`Parameter`."""
        if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
            raise ValueError
        return int(text)


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number between two others; these are included only if it says so.

    Attributes
    ----------
    low, high : float
        High is infinite for no limit.
    with_low, with_high : bool
        Whether it may be equal to them.
    """

    low: float
    high: float
    with_low: bool = False
    with_high: bool = False

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        least = f"{'at least' if self.with_low else 'above'} {self.low:g}"
        if self.high == float("inf"):
            return f"a finite number, {least}"
        return f"a number {least} and {'at most' if self.with_high else 'below'} {self.high:g}"

    def accept(self, value: Any) -> float:
        """See :class:`Parameter`."""
        known = isinstance(value, Real) and not isinstance(value, bool)
        if not known or not (
            self.low < value < min(self.high, _FINITE)
            or (self.with_low and value == self.low)
            or (self.with_high and value == self.high)
        ):
            raise ValueError
        return float(value)

    def read(self, text: str) -> float:
        """See :class:`Parameter`."""
        return float(text)


@dataclass(frozen=True)
class Boolean(Parameter):
    """True or false."""

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        return "true or false"

    def accept(self, value: Any) -> bool:
        """See :class:`Parameter`."""
        if not isinstance(value, bool):
            raise ValueError
        return value

    def read(self, text: str) -> bool:
        """See :class:`Parameter`."""
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"


@dataclass(frozen=True)
class Choice(Parameter):
    """One of several words.

    Attributes
    ----------
    words : sequence of str
    function : str, optional
        Of what a function may be given instead, such as "the level"; None if none may.
    """

    words: Sequence[str]
    function: str | None = None

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        words = [repr(word) for word in self.words]
        if self.function is not None:
            words.append(f"a function of {self.function}")
        return _either(words)

    @property
    def readable(self) -> str:
        """See :class:`Parameter`."""
        return _either([repr(word) for word in self.words])

    def accept(self, value: Any) -> Any:
        """See :class:`Parameter`."""
        function = self.function is not None and callable(value)
        if not function and not (isinstance(value, str) and value in self.words):
            raise ValueError
        return value

    def read(self, text: str) -> str:
        """See :class:`Parameter`."""
        return text


@dataclass(frozen=True)
class Automatic(Parameter):
    """A parameter that may be "auto": learners then get None, and choose by public numbers."""

    given: Parameter

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        return f"'auto' or {self.given.allowed}"

    def accept(self, value: Any) -> Any:
        """See :class:`Parameter`."""
        return None if isinstance(value, str) and value == "auto" else self.given.accept(value)

    def read(self, text: str) -> Any:
        """See :class:`Parameter`."""
        return text if text == "auto" else self.given.read(text)


@dataclass(frozen=True)
class Optional(Parameter):
    """A parameter that may be None."""

    given: Parameter

    @property
    def allowed(self) -> str:
        """See :class:`Parameter`."""
        return f"None or {self.given.allowed}"

    def accept(self, value: Any) -> Any:
        """See :class:`Parameter`."""
        return None if value is None else self.given.accept(value)

    def read(self, text: str) -> Any:
        """See :class:`Parameter`."""
        return None if text.lower() == "none" else self.given.read(text)


def _either(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


#: Parameters of several estimators.
DEPTH = WholeNumber(1, MAX_DEPTH)
ROWS = Optional(WholeNumber(1, MAX_ROWS))
TREES = WholeNumber(1, MOST_TREES)
BINS = WholeNumber(2, MOST_BINS)
FEATURES = Optional(WholeNumber(1, MOST_FEATURES))
CALIBRATION = Choice(("valid", "published"))
#: What all estimators take: the part of the table that is set aside for a test score.
TEST_SHARE = Optional(Number(0.0001, 0.9999, with_low=True, with_high=True))
