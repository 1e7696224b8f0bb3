"""An entry of the ledger as data: what was asked, where, how it was made private, at what cost.

Nothing here is a sentence. Code that decides by an entry compares values, and code that shows one
gets its words from :mod:`privet.privacy.words`: rewording changes no guarantee.
Files hold entries as plain data (docs/formats.md); reading checks every field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any

from privet.privacy.amounts import read_amount, read_any_amount, write_amount
from privet.privacy.budget import Cost, as_float

#: Longer texts, and larger whole numbers, are refused in files.
MOST_TEXT, MOST_NUMBER = 10_000, 2**53


class QuestionKind(StrEnum):
    """What a question asks about the records of cells."""

    ROW_COUNT = "row-count"
    CLASS_COUNTS = "class-counts"
    LABEL = "label"
    SPLIT = "split"
    SPLIT_OF_SOME = "split-of-some"
    SPLIT_GAINS = "split-gains"
    HALVING_FEATURE = "halving-feature"
    MIDDLE = "middle"
    FEATURES = "features"
    WHOLE_TREE = "whole-tree"
    GRADIENTS = "gradients"
    SCALE = "scale"
    SUMS = "sums"
    SLOPES = "slopes"
    CALIBRATION = "calibration"
    CONFUSION = "confusion"
    SCORE_COUNTS = "score-counts"
    ERRORS = "errors"
    MODEL = "model"
    QUANTILES = "quantiles"
    SCHEMA = "schema"
    BOUNDS = "bounds"
    #: From an older file, in that file's words.
    OTHER = "other"


#: The portions into which a table may be divided before anything is asked of it.
PORTIONS = ("training", "comparison", "test")

#: What belongs to a question besides its kind.
_OF_QUESTION: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.SPLIT: ("criterion",),
    QuestionKind.SPLIT_OF_SOME: ("criterion",),
    QuestionKind.SPLIT_GAINS: ("criterion",),
    QuestionKind.HALVING_FEATURE: ("criterion",),
    QuestionKind.FEATURES: ("count",),
    QuestionKind.MODEL: ("count",),
    QuestionKind.WHOLE_TREE: ("depth",),
    QuestionKind.QUANTILES: ("feature",),
    QuestionKind.SCHEMA: ("count",),
    QuestionKind.BOUNDS: ("count",),
    QuestionKind.OTHER: ("text",),
}


@dataclass(frozen=True)
class Question:
    """One question, the same wherever the records are.

    Attributes
    ----------
    kind : QuestionKind
    criterion : str, optional
        What splits are judged by.
    feature : str, optional
        The feature, or the target, whose quantiles were asked.
    depth : int, optional
        The depth of a whole tree.
    count : int, optional
        How many features are chosen, among how many models, or of how many columns bounds or lists
        were found.
    text : str, optional
        What an older file says, where the kind is not known.
    """

    kind: QuestionKind
    criterion: str | None = None
    feature: str | None = None
    depth: int | None = None
    count: int | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        _check_given(self, _OF_QUESTION.get(self.kind, ()))


@dataclass(frozen=True)
class Place:
    """Which part of the table was asked.

    Attributes
    ----------
    level : int or None
        How many times the cells were divided, a tree's root being level 0. None if not known.
    parts : int or None
        Into how many disjoint parts the table was divided before, by a hash of each record: 1 if it
        was not. None if not known, as in files of version 1.
    text : str, optional
        What an older file says, where the level is not known.
    portion : str, optional
        Which of the :data:`PORTIONS` of the table was asked; None if it was not divided so.
    """

    level: int | None = 0
    parts: int | None = 1
    text: str | None = None
    portion: str | None = None

    def __post_init__(self) -> None:
        if (self.level is None) == (self.text is None):
            raise ValueError("a place has a level, or a text")
        if self.portion is not None and self.portion not in PORTIONS:
            raise ValueError("a place has a portion that is none")


class MechanismKind(StrEnum):
    """How an answer was made private."""

    DISCRETE_LAPLACE = "discrete-laplace"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    LAPLACE_SHARE = "laplace-share"
    NOISY_MAX_SHARE = "noisy-max-share"
    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"
    GRID_EXPONENTIAL = "grid-exponential"
    TOP_OF = "top-of"
    WHOLE_TREE = "whole-tree"
    QUANTILES = "quantiles"
    JOINT_QUANTILES = "joint-quantiles"
    REPORT_NOISY_MAX = "report-noisy-max"
    #: From an older file, in that file's words.
    OTHER = "other"


#: Exponential mechanisms, whose rho is an eighth of the square of their epsilon, or less.
EXPONENTIAL_KINDS = frozenset(
    {
        MechanismKind.EXPONENTIAL,
        MechanismKind.GRID_EXPONENTIAL,
        MechanismKind.TOP_OF,
        MechanismKind.WHOLE_TREE,
        MechanismKind.QUANTILES,
        MechanismKind.JOINT_QUANTILES,
    }
)


@dataclass(frozen=True)
class MechanismFacts:
    """A mechanism, as the ledger has it.

    Attributes
    ----------
    kind : MechanismKind
    sensitivity : Fraction, optional
        What a record changes at most: the sum of the answers' changes (Laplace noise), the sum of
        their squares (Gaussian noise), or how far apart the changes of two scores are (selections).
        None where the kind alone says it, and in files of version 1.
    honest : int, optional
        For shares of noise: how many parties must add theirs.
    times : int, optional
        How many selections share the cost, one after the other.
    text : str, optional
        What an older file says, where the kind is not known.
    """

    kind: MechanismKind
    sensitivity: Fraction | None = None
    honest: int | None = None
    times: int | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        if (self.kind is MechanismKind.OTHER) == (self.text is None):
            raise ValueError("a mechanism has a kind, or a text")


@dataclass(frozen=True)
class Entry:
    """One question, as the ledger has it.

    Attributes
    ----------
    question : Question
        What was asked.
    place : Place
        Of which part of the table.
    cells : int
        How many disjoint cells were asked at once.
    mechanism : MechanismFacts
        How the answer was made private.
    cost : Cost
        What each record in those cells paid, exactly; in files of version 1 the nearest double.
    """

    question: Question
    place: Place
    cells: int
    mechanism: MechanismFacts
    cost: Cost

    @property
    def epsilon(self) -> float:
        """What each record paid in pure differential privacy."""
        return as_float(self.cost.epsilon)

    @property
    def rho(self) -> float:
        """What each record paid in zCDP."""
        return as_float(self.cost.rho)

    @property
    def variance(self) -> float | None:
        """The variance of the noise in each of the answers, if the mechanism says it."""
        kind, sensitivity = self.mechanism.kind, self.mechanism.sensitivity
        if sensitivity is None:
            return None
        if kind is MechanismKind.DISCRETE_LAPLACE and self.cost.epsilon:
            return 2 * float(sensitivity / self.cost.epsilon) ** 2
        if kind is MechanismKind.DISCRETE_GAUSSIAN and self.cost.rho:
            return float(sensitivity / (2 * self.cost.rho))
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data; amounts are fractions, written as text."""
        return {
            "question": _plain(self.question),
            "place": {"level": self.place.level, "parts": self.place.parts}
            | ({} if self.place.text is None else {"text": self.place.text})
            | ({} if self.place.portion is None else {"portion": self.place.portion}),
            "cells": self.cells,
            "mechanism": _plain(self.mechanism),
            "epsilon": write_amount(self.cost.epsilon),
            "rho": write_amount(self.cost.rho),
        } | ({"delta": write_amount(self.cost.delta)} if self.cost.delta else {})

    @classmethod
    def from_dict(cls, plain: Any) -> Entry:
        """Read an entry, checking every field; whatever is wrong is a ValueError."""
        needed = {"question", "place", "cells", "mechanism", "epsilon", "rho"}
        plain = _fields_of(plain, needed, {"delta"})
        place = _fields_of(plain["place"], {"level", "parts"}, {"text", "portion"})
        return cls(
            _read_question(plain["question"]),
            Place(
                None if place["level"] is None else read_count(place["level"]),
                None if place["parts"] is None else read_count(place["parts"], least=1),
                read_text(place["text"]) if "text" in place else None,
                read_text(place["portion"]) if "portion" in place else None,
            ),
            read_count(plain["cells"]),
            _read_mechanism(plain["mechanism"]),
            Cost(
                read_any_amount(plain["epsilon"]),
                read_any_amount(plain["rho"]),
                read_amount(plain.get("delta", "0")),
            ),
        )


def read_count(value: Any, least: int = 0) -> int:
    """Return a whole number from a file."""
    if type(value) is not int or not least <= value <= MOST_NUMBER:
        raise ValueError("a count is none")
    return value


def read_text(value: Any) -> str:
    """Return a text from a file that is not absurdly long."""
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise ValueError("a text is none, or too long")
    return value


def _check_given(value: Any, needed: tuple[str, ...]) -> None:
    given = {
        field.name
        for field in fields(value)
        if field.name != "kind" and getattr(value, field.name) is not None
    }
    if given != set(needed):
        raise ValueError(f"{value.kind} is described by {', '.join(needed) or 'nothing else'}")


def _plain(value: Question | MechanismFacts) -> dict[str, Any]:
    """Return a question or a mechanism as plain data, without what is not set."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        name: write_amount(held) if isinstance(held, Fraction) else held
        for name, held in found.items()
        if held is not None
    }


_READERS: dict[str, Callable[[Any], Any]] = {
    "criterion": read_text,
    "feature": read_text,
    "text": read_text,
    "depth": read_count,
    "count": read_count,
    "honest": read_count,
    "times": read_count,
    "sensitivity": read_amount,
}


def _read_question(plain: Any) -> Question:
    name, found = _described(Question, plain)
    return Question(QuestionKind(name), **found)


def _read_mechanism(plain: Any) -> MechanismFacts:
    name, found = _described(MechanismFacts, plain)
    return MechanismFacts(MechanismKind(name), **found)


def _described(of: type[Question] | type[MechanismFacts], plain: Any) -> tuple[str, dict[str, Any]]:
    """Read a kind and the other fields that belong to it."""
    optional = {field.name for field in fields(of)} - {"kind"}
    found = _fields_of(plain, {"kind"}, optional)
    name = read_text(found.pop("kind"))
    return name, {key: _READERS[key](value) for key, value in found.items()}


def _fields_of(
    plain: Any, needed: set[str], optional: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(plain, dict) or not needed <= set(plain) <= needed | optional:
        raise ValueError("an entry has fields that do not belong there, or lacks some")
    return dict(plain)
