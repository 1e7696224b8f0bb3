"""Every charged question of a table of persons has the law of the same table of parts.

A part is a record of its own, so a table of persons, asked for an amount, must answer as a table in
which every record stands as often as it weighs does for a 60th of it (a 3,600th in zCDP). With the
same stream of noise the answers are equal, but that persons are counted whole.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privet import Budget, Categorical, Numeric, PrivateTable, Schema
from privet.criteria import Entropy, Gini, Max
from privet.engines.memory import memory_engine
from privet.errors import DataError
from privet.tables import Basis, Multiway, Tabled, private

FEATURES = {"a": Numeric(0, 1, bins=4), "b": Categorical(["u", "v"])}
SCHEMAS = {
    "two": Schema(FEATURES, "y", classes=[0, 1]),
    "number": Schema(FEATURES, "y", bounds=(0, 1)),
}
Q = 60


def persons(kind, seed=0):
    """Return records of persons with one to seventy of them, and the parts they weigh."""
    rng = np.random.default_rng(seed)
    sizes = [1, 1, 2, 3, 7, 25, 61, 70]
    who = np.repeat([f"p{k}" for k in range(len(sizes))], sizes)
    rows = len(who)
    table = pd.DataFrame(
        {
            "a": rng.random(rows),
            "b": rng.choice(["u", "v", "w"], rows),
            "y": rng.random(rows) if kind == "number" else rng.integers(0, 2, rows),
            "who": who,
        }
    )
    schema = replace(SCHEMAS[kind], unit="who")
    engine = memory_engine(table, None, schema)
    parts = np.concatenate([block.parts for block in engine._blocks._blocks])
    assert parts.sum() == Q * len(sizes)
    return table, table.loc[np.repeat(np.arange(rows), parts)].drop(columns="who"), schema


ALLOWED = np.ones((1, 2), dtype=bool)
BASIS = Basis(((1, Tabled.of(np.array([[1.0, -0.5], [0.5, 2.0], [0.0, 1.0]]))),))
GIVEN = [
    ("two", "noisy_counts", {}),
    ("two", "noisy_class_counts", {}),
    ("two", "choose_labels", {}),
    ("two", "choose_splits", {"candidates": Multiway(), "criterion": Gini(), "allowed": ALLOWED}),
    ("two", "choose", {"criterion": Max()}),
    ("two", "choose_features", {"count": 1}),
    ("two", "draw_trees", {"depth": 2}),
    ("two", "draw_trees", {"depth": 1, "scores": (0.5,)}),
    ("two", "noisy_gradients", {"scores": (0.5,)}),
    ("two", "noisy_candidate_gains", {"candidates": Multiway(), "criterion": Max()}),
    ("two", "quantiles", {"feature": "a", "parts": 4}),
    ("two", "joint_quantiles", {"feature": "a", "parts": 3}),
    ("two", "noisy_confusion", {"scores": (0.5,)}),
    ("two", "noisy_score_counts", {"scores": (0.5,), "ends": (0.0, 0.7)}),
    ("two", "choose_scores", {"scores": [(0.5,), (-0.5,)]}),
    ("number", "choose_scores", {"scores": [(0.2,), (0.5,)]}),
    ("number", "noisy_errors", {"scores": (0.5,)}),
    ("number", "noisy_scale", {"scores": (0.5,), "share": Fraction(1, 5)}),
    ("number", "noisy_gradients", {"scores": (0.5,), "reach": 0.25}),
    ("number", "quantiles", {"feature": "y", "parts": 2}),
]
IN_ZCDP = [
    ("two", "noisy_sums", {"basis": BASIS}),
    (
        "two",
        "noisy_slopes",
        {"basis": BASIS, "scores": (0.5,), "largest": 0.7, "longest": 1.5},
    ),
    ("two", "noisy_calibration", {"scores": (0.5,), "shift": 0.2, "factor": 1.5}),
]


def ask(table, schema, budget, question, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = PrivateTable(table, None, schema, budget, random_state=3)
    asked = opened if hasattr(PrivateTable, question) else opened.root()
    given = dict(given)
    if isinstance(given.get("scores"), list):
        given["scores"] = [opened.start_scores(start) for start in given["scores"]]
    elif "scores" in given:
        given["scores"] = opened.start_scores(given["scores"])
    answer = getattr(asked, question)(**given, amount=opened.ledger.left)
    assert opened.ledger.left < 1e-9 * budget.limit  # a root of rho is rounded down
    return answer


def numbers(answer):
    """Return a released answer as numbers; None if it is no number."""
    if isinstance(answer, np.ndarray):
        return [answer.astype(float)]
    if hasattr(answer, "variance"):
        return [answer.values, np.array(answer.variance**0.5)]
    if hasattr(answer, "values"):
        return [answer.values, np.array(answer.deviation)]
    if hasattr(answer, "pull"):
        return [answer.pull, answer.curvature, np.array(answer.deviation)]
    return None


@pytest.mark.parametrize(("kind", "question", "given"), GIVEN, ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "zCDP"])
def test_persons_are_answered_like_tables_of_parts(kind, question, given, delta):
    table, parts, schema = persons(kind)
    whole = Budget(Fraction(2), delta)
    part = Budget(Fraction(2, Q)) if delta is None else Budget(rho=whole.limit / Q**2)
    compare(table, parts, schema, kind, question, given, whole, part)


@pytest.mark.parametrize(("kind", "question", "given"), IN_ZCDP, ids=lambda v: str(v)[:20])
def test_persons_are_answered_like_tables_of_parts_in_zcdp(kind, question, given):
    table, parts, schema = persons(kind)
    whole = Budget(Fraction(2), 1e-6)
    compare(table, parts, schema, kind, question, given, whole, Budget(rho=whole.limit / Q**2))


def compare(table, parts, schema, kind, question, given, whole, part):
    found = ask(table, schema, whole, question, given)
    expected = ask(parts, SCHEMAS[kind], part, question, given)
    if numbers(found) is None or question == "noisy_scale":
        assert repr(found) == repr(expected)
        return
    for mine, other in zip(numbers(found), numbers(expected), strict=True):
        whole = question.endswith(("counts", "gains", "confusion"))  # persons are counted whole
        slack = 0.51 if whole else 1e-4 if question == "noisy_errors" else 1e-9
        np.testing.assert_allclose(mine, other / Q, atol=slack, rtol=1e-9)


def test_entropy_does_not_grow_with_the_parts():
    criterion = Entropy(10**5)
    in_parts = criterion.in_parts(Q)
    assert in_parts.spread <= criterion.spread + 2
    counts = np.array([[3, 5], [100, 1], [0, 0], [40_000, 50_000]])
    ratio = in_parts.losses(Q * counts) / Q - criterion.losses(counts)
    assert np.abs(ratio).max() <= 5
    rng = np.random.default_rng(0)
    for counts in rng.integers(0, 500, (200, 3)):
        before = in_parts.losses(counts)
        for k in range(3):
            more = counts.copy()
            more[k] += 1
            assert -40 <= in_parts.losses(more) - before <= in_parts.spread


@pytest.mark.parametrize("who", [None, "p"])
def test_too_many_persons_are_refused(who, monkeypatch):
    """Also those without an identifier, and wherever rows lie: 64-bit products need the bound."""
    monkeypatch.setattr(private, "MAX_ROWS", 10 * Q)
    table = pd.DataFrame({"a": 0.5, "b": "u", "y": 0, "who": [None] * 10 + [who]})
    schema = replace(SCHEMAS["two"], unit="who")
    with pytest.raises(DataError, match="too many persons: 10 "):
        PrivateTable(table, None, schema, Budget(1.0))
    PrivateTable(table[1:], None, schema, Budget(1.0))
