"""What parameters may be: one declaration checks values and reads texts."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

from privet.errors import BudgetError
from privet.estimators._texts import TEXTS, filled
from privet.estimators.parameters import (
    Automatic,
    Boolean,
    Choice,
    Number,
    Optional,
    WholeNumber,
)
from privet.estimators.registry import default_of, estimators, parameters_of

COMMON = {
    "epsilon",
    "delta",
    "schema",
    "ledger",
    "random_state",
    "test_share",
    "test_by",
    "verbose",
}


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (WholeNumber(1, 9), 9, 9),
        (WholeNumber(1, 9), np.int32(3), 3),
        (Number(0, 1), Fraction(1, 2), 0.5),
        (Number(0, 1), np.float32(0.5), 0.5),
        (Number(0, 1, with_low=True), 0, 0.0),
        (Number(0, 0.5, with_high=True), 0.5, 0.5),
        (Number(0, math.inf), 1e200, 1e200),
        (Boolean(), False, False),
        (Choice(("a", "b")), "b", "b"),
        (Choice(("a",), function="the level"), max, max),
        (Automatic(WholeNumber(1, 9)), "auto", None),
        (Automatic(WholeNumber(1, 9)), 4, 4),
        (Optional(Number(0, 1)), None, None),
    ],
)
def test_what_is_allowed_is_taken_as_learners_want_it(kind, value, taken):
    found = kind.check(value, "it")
    assert found == taken
    assert type(found) is type(taken)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (
            WholeNumber(1, 9),
            [0, 10, 2.0, True, None, "3", [3], 10**400],
            "a whole number from 1 to 9",
        ),
        (
            Number(0, 1),
            [0, 1, -1, math.nan, math.inf, True, "0.5", None, 10**400, np.zeros(3)],
            "a number above 0 and below 1",
        ),
        (Number(0, 0.5, with_high=True), [0.6], "a number above 0 and at most 0.5"),
        (
            Number(0, math.inf, with_low=True),
            [math.inf, 10**400, -1],
            "a finite number, at least 0",
        ),
        (Boolean(), [0, 1, "true", None, np.True_], "true or false"),
        (Choice(("a", "b", "c")), ["d", None, 1, ["a"], np.array(["a"])], "'a', 'b' or 'c'"),
        (Choice(("a",), function="the level"), ["b", 3], "'a' or a function of the level"),
        (
            Automatic(WholeNumber(1, 9)),
            ["automatic", None, 0],
            "'auto' or a whole number from 1 to 9",
        ),
        (Optional(WholeNumber(1, 9)), ["none", 0], "None or a whole number from 1 to 9"),
    ],
)
def test_what_is_not_is_refused_in_words(kind, values, words):
    for value in values:
        with pytest.raises(BudgetError) as caught:
            kind.check(value, "it")
        assert str(caught.value) == f"it must be {words}"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (WholeNumber(-9, 9), "-3", -3),
        (Number(0, 1), "5e-1", 0.5),
        (Boolean(), "False", False),
        (Boolean(), "true", True),
        (Choice(("a", "b")), "b", "b"),
        (Automatic(WholeNumber(1, 9)), "auto", "auto"),
        (Automatic(WholeNumber(1, 9)), "3", 3),
        (Optional(WholeNumber(1, 9)), "none", None),
        (Optional(Number(0, 1)), "0.1", 0.1),
    ],
)
def test_texts_are_read_by_the_same_declaration(kind, text, value):
    assert kind.check_text(text, "it") == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (WholeNumber(1, 9), ["10", "1.0", "", "x", "1_0", "٣", "9" * 5000, "auto", "none"]),
        (Number(0, 1), ["nan", "inf", "2", "", "a half", "none"]),
        (Boolean(), ["1", "yes", ""]),
        (Choice(("a",)), ["A", ""]),
        (Choice(("a",), function="the level"), ["max"]),
    ],
)
def test_texts_that_stand_for_nothing_are_refused(kind, texts):
    for text in texts:
        with pytest.raises(BudgetError, match="it must be"):
            kind.check_text(text, "it")


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
class TestEstimators:
    def test_every_parameter_is_declared_and_its_default_allowed(self, kind):
        declared = parameters_of(kind)
        assert set(declared) == set(inspect.signature(kind).parameters) - COMMON
        for name, parameter in declared.items():
            parameter.check(default_of(kind, name), name)

    def test_every_parameter_is_documented(self, kind):
        doc = inspect.getdoc(kind)
        for name in inspect.signature(kind).parameters:
            assert name in doc.partition("Attributes\n")[0], name
        assert "Notes\n-----\n**Privacy.**" in doc
        assert "\n<" not in doc
        assert "schema_ : Schema\n    The schema in use.\nprivacy_ : PrivacyCard\n" in doc


def test_texts_are_put_where_their_names_are():
    found = filled("Say.\n\n    <ledger>\n    more\n")
    first, second = TEXTS["ledger"].strip("\n").splitlines()
    assert found == f"Say.\n\n    {first}\n    {second}\n    more\n"
    assert filled("    <no such text>\n") == "    <no such text>\n"
