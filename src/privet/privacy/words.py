"""Entries of the ledger in words, for people. Nothing is ever decided by them.

Texts of files come through as they are: whoever shows them makes them harmless.
"""

from __future__ import annotations

from privet.privacy.entries import MechanismFacts, MechanismKind, Place, Question, QuestionKind

_QUESTIONS = {
    QuestionKind.ROW_COUNT: "how many records",
    QuestionKind.CLASS_COUNTS: "how many records of each class",
    QuestionKind.LABEL: "which class",
    QuestionKind.SPLIT: "which split ({0.criterion})",
    QuestionKind.SPLIT_OF_SOME: "which of some splits ({0.criterion})",
    QuestionKind.SPLIT_GAINS: "how good all splits are ({0.criterion})",
    QuestionKind.HALVING_FEATURE: "which feature to halve along ({0.criterion})",
    QuestionKind.MIDDLE: "where the middle is",
    QuestionKind.FEATURES: "which {0.count} features",
    QuestionKind.WHOLE_TREE: "which tree of depth {0.depth}, with its labels",
    QuestionKind.GRADIENTS: "how the records pull at their scores",
    QuestionKind.SCALE: "how far the records are from their scores",
    QuestionKind.SUMS: "sums of public functions of the records",
    QuestionKind.SLOPES: "how the records pull at slopes",
    QuestionKind.CALIBRATION: "how well the scores are scaled",
    QuestionKind.CONFUSION: "how many records of each class get which label",
    QuestionKind.SCORE_COUNTS: "how many records of each class have which scores",
    QuestionKind.ERRORS: "how large the errors are",
    QuestionKind.MODEL: "which of {0.count} models is right most often",
    QuestionKind.QUANTILES: "quantiles of {0.feature}",
    QuestionKind.SCHEMA: "bounds and lists of {0.count} columns",
    QuestionKind.BOUNDS: "bounds of {0.count} columns, more exactly",
    QuestionKind.OTHER: "{0.text}",
}

_MECHANISMS = {
    MechanismKind.DISCRETE_LAPLACE: "discrete Laplace",
    MechanismKind.DISCRETE_GAUSSIAN: "discrete Gaussian",
    MechanismKind.LAPLACE_SHARE: "share of discrete Laplace noise",
    MechanismKind.NOISY_MAX_SHARE: "permute-and-flip among parties",
    MechanismKind.PERMUTE_AND_FLIP: "permute-and-flip",
    MechanismKind.EXPONENTIAL: "exponential mechanism",
    MechanismKind.GRID_EXPONENTIAL: "exponential mechanism on a grid",
    MechanismKind.TOP_OF: "exponential mechanism, repeated",
    MechanismKind.WHOLE_TREE: "exponential mechanism over trees",
    MechanismKind.QUANTILES: "exponential mechanism on a grid, level by level",
    MechanismKind.JOINT_QUANTILES: "exponential mechanism over all cuts at once",
    MechanismKind.REPORT_NOISY_MAX: "report noisy max",
    MechanismKind.OTHER: "{0.text}",
}


def question_words(question: Question) -> str:
    """Say what was asked."""
    return _QUESTIONS[question.kind].format(question)


def place_words(place: Place) -> str:
    """Say of which part of the table."""
    if place.text is not None:
        return place.text
    table = "table" if place.portion is None else f"{place.portion} part"
    if place.level:
        return f"tree level {place.level}" + ("" if place.portion is None else f", {table}")
    if place.parts in (1, None):
        return "the whole table" if place.portion is None else f"the {table}"
    return f"{place.parts} parts of the {table}"


def mechanism_words(mechanism: MechanismFacts) -> str:
    """Say how the answer was made private."""
    return _MECHANISMS[mechanism.kind].format(mechanism)
