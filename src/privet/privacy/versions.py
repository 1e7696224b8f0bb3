"""Entries of model and ledger files of every version.

Version 1 wrote entries as sentences. This is the only place that reads them, and it knows only the
sentences of version 1. Others keep their text, as a question or mechanism of kind ``other``, from
which nothing is concluded.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from privet.privacy.budget import Amount, Cost
from privet.privacy.entries import (
    Entry,
    MechanismFacts,
    MechanismKind,
    Place,
    Question,
    QuestionKind,
    read_count,
    read_text,
)

#: What tables, federations and parties appended to a question about sums over parties.
_PARTIES = re.compile(
    r"(.*?)(?:, as a part of a sum|, with other parties|, with others|, from all parties' rows)",
    re.DOTALL,
)
_QUESTIONS = {
    "how many records": Question(QuestionKind.ROW_COUNT),
    "how many": Question(QuestionKind.ROW_COUNT),  # so the coordinator of parties called it
    "how many records of each class": Question(QuestionKind.CLASS_COUNTS),
    "which class": Question(QuestionKind.LABEL),
    "where the middle is": Question(QuestionKind.MIDDLE),
    "how the records pull at their scores": Question(QuestionKind.GRADIENTS),
}
_CRITERIA = r"(gini|gini in chords|max|entropy|clipped_entropy|sse|sad)"
_JUDGED = {
    rf"which split \({_CRITERIA}\)": QuestionKind.SPLIT,
    rf"which of some splits \({_CRITERIA}\)": QuestionKind.SPLIT_OF_SOME,
    rf"how good all splits are \({_CRITERIA}\)": QuestionKind.SPLIT_GAINS,
    rf"which feature to halve along \({_CRITERIA}\)": QuestionKind.HALVING_FEATURE,
}
_TREE = re.compile(r"which tree of depth ([123]), with its labels")
_FEATURES = re.compile(r"which ([0-9]{1,9}) features")
_QUANTILES = re.compile(r"quantiles of (.*)", re.DOTALL)
_LEVEL = re.compile(r"tree level ([0-9]{1,9})")

_MECHANISMS = {
    "discrete Laplace": MechanismKind.DISCRETE_LAPLACE,
    "discrete Gaussian": MechanismKind.DISCRETE_GAUSSIAN,
    "share of discrete Laplace noise": MechanismKind.LAPLACE_SHARE,
    "permute-and-flip among parties": MechanismKind.NOISY_MAX_SHARE,
    "permute-and-flip": MechanismKind.PERMUTE_AND_FLIP,
    "exponential mechanism": MechanismKind.EXPONENTIAL,
    "exponential mechanism on a grid": MechanismKind.GRID_EXPONENTIAL,
    "exponential mechanism, repeated": MechanismKind.TOP_OF,
    "exponential mechanism over trees": MechanismKind.WHOLE_TREE,
    "exponential mechanism on a grid, level by level": MechanismKind.QUANTILES,
    "exponential mechanism over all cuts at once": MechanismKind.JOINT_QUANTILES,
    "report noisy max": MechanismKind.REPORT_NOISY_MAX,
}


def read_entry(plain: Any, version: int) -> Entry:
    """Read an entry of a file of version 1 or 2; whatever is wrong is a ValueError."""
    if version > 1:
        return Entry.from_dict(plain)
    names = {"question", "where", "cells", "mechanism", "epsilon", "rho"}
    if not isinstance(plain, dict) or set(plain) != names:
        raise ValueError("an entry has fields that do not belong there, or lacks some")
    cells = read_count(plain["cells"])
    return Entry(
        _question(read_text(plain["question"])),
        _place(read_text(plain["where"]), cells),
        cells,
        _mechanism(read_text(plain["mechanism"])),
        Cost(_number(plain["epsilon"]), _number(plain["rho"])),
    )


def _question(words: str) -> Question:
    if feature := _QUANTILES.fullmatch(words):  # first: a feature may have any name
        return Question(QuestionKind.QUANTILES, feature=feature[1])
    asked = joint[1] if (joint := _PARTIES.fullmatch(words)) else words
    if asked in _QUESTIONS:
        return _QUESTIONS[asked]
    if tree := _TREE.fullmatch(asked):
        return Question(QuestionKind.WHOLE_TREE, depth=int(tree[1]))
    if features := _FEATURES.fullmatch(asked):
        return Question(QuestionKind.FEATURES, count=int(features[1]))
    for pattern, kind in _JUDGED.items():
        if judged := re.fullmatch(pattern, asked):
            return Question(kind, criterion=judged[1])
    return Question(QuestionKind.OTHER, text=words)


def _place(words: str, cells: int) -> Place:
    if words == "the whole table":
        # One cell was the table itself, or one of its parts: then nothing is known of the others.
        return Place(0, cells if cells > 1 else 1)
    if level := _LEVEL.fullmatch(words):
        return Place(int(level[1]), None)
    return Place(None, None, words)


def _mechanism(words: str) -> MechanismFacts:
    kind = _MECHANISMS.get(words)
    if kind is None:
        return MechanismFacts(MechanismKind.OTHER, text=words)
    return MechanismFacts(kind)


def _number(value: Any) -> Amount:
    # A model file has "inf" for infinity; a ledger file has a constant that JSON does not know.
    if value in ("inf", math.inf):
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError("an amount is no number")
    if value > 1e300:
        raise ValueError("an amount is too large")
    return Fraction(value)
