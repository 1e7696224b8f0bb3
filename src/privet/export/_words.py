"""Names, numbers and conditions as people read them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import pairwise

from privet.schema import Date, Feature, Integer, Numeric, Schema, Value
from privet.tree import Cut, Grouping, Test
from privet.visible import visible


def number(value: float) -> str:
    """Return a number with four digits, or more if it has more before the point.

    Examples
    --------
    >>> number(40.0), number(100 / 3), number(123456.7)
    ('40', '33.33', '123457')
    """
    if not 1e4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    return f"{value:.0f}"


def signed(score: float) -> str:
    """Return a score with its sign and three digits, or more if it has more before the point.

    Examples
    --------
    >>> signed(0.4213), signed(-2.0), signed(12345.6), signed(0.0)
    ('+0.421', '-2', '+12346', '0')
    """
    if score == 0:
        return "0"
    return f"{score:+.0f}" if 1e3 <= abs(score) < 1e15 else f"{score:+.3g}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def word(value: Value) -> str:
    """Return a category or class so that it can stand in a list."""
    text = visible(str(value))
    plain = text == text.strip() != "" and not set(text) & set(',{}"')
    return text if plain else '"' + text.replace('"', '\\"') + '"'


def score_words(scores: Sequence[float], schema: Schema) -> str:
    """Return a score; or one for every class, with the classes' names."""
    if len(scores) == 1:
        return signed(scores[0])
    assert schema.classes is not None
    pairs = zip(schema.classes, scores, strict=True)
    return ", ".join(f"{word(value)} {signed(score)}" for value, score in pairs)


def branch_words(test: Test, schema: Schema) -> list[tuple[str, str]]:
    """Return the condition that leads to each child, with and without the feature's name.

    Examples
    --------
    >>> from privet.schema import Numeric
    >>> schema = Schema({"age": Numeric(0, 120)}, "stay", bounds=(0, 30))
    >>> branch_words(Cut("age", (40.0,), missing=1), schema)
    [('age < 40', '< 40'), ('age >= 40 or missing', '≥ 40 or missing')]
    """
    if isinstance(test, Cut):
        return _interval_words(test, schema.features[test.feature])
    return _set_words(test, schema)


def _interval_words(test: Cut, feature: Feature) -> list[tuple[str, str]]:
    assert isinstance(feature, Numeric)
    name, edges = visible(test.feature), edge_texts(test.edges, feature)
    if not edges:
        return [(f"{name} not missing", "not missing"), (f"{name} missing", "missing")]
    if isinstance(feature, Integer) and not isinstance(feature, Date):
        words = _whole_words(name, [int(edge) for edge in test.edges])
    else:
        words = [
            (f"{name} < {edges[0]}", f"< {edges[0]}"),
            *((f"{low} <= {name} < {high}", f"{low} to {high}") for low, high in pairwise(edges)),
            (f"{name} >= {edges[-1]}", f"≥ {edges[-1]}"),
        ]
    if test.missing == len(words):
        return [*words, (f"{name} missing", "missing")]
    condition, branch = words[test.missing]
    words[test.missing] = f"{condition} or missing", f"{branch} or missing"
    return words


def _whole_words(name: str, edges: Sequence[int]) -> list[tuple[str, str]]:
    """Return conditions on whole numbers, by the numbers themselves and not by what is between.

    Examples
    --------
    >>> [condition for condition, _ in _whole_words("stays", [2, 3, 8])]
    ['stays <= 1', 'stays = 2', '3 <= stays <= 7', 'stays >= 8']
    """
    return [
        (f"{name} <= {edges[0] - 1}", f"≤ {edges[0] - 1}"),
        *(
            (f"{name} = {low}", f"{low}")
            if high == low + 1
            else (f"{low} <= {name} <= {high - 1}", f"{low} to {high - 1}")
            for low, high in pairwise(edges)
        ),
        (f"{name} >= {edges[-1]}", f"≥ {edges[-1]}"),
    ]


def edge_texts(edges: Sequence[float], feature: Numeric) -> list[str]:
    """Return edges in few digits that say the same of every point of the feature's public grid.

    Learners see a number as its place on the grid, so what is shown for an edge is the shortest
    decimal above the point of the grid (and the edge) before it, and not above the edge itself.
    Predictions, and the exports that predict, compare with all digits. Days are dates.

    Examples
    --------
    >>> edge_texts([19.990000000000002, 100 / 3], Numeric(0, 100))
    ['19.99', '33.333']
    """
    if isinstance(feature, Integer):
        return [str(feature.written(edge)) for edge in edges]
    grid, texts, before = feature.grid, [], -math.inf
    for edge in edges:
        place = bisect_left(grid, edge)
        below = max(before, float(grid[place - 1]) if place else feature.low)
        texts.append(_shortest(below, edge))
        before = edge
    return texts


def _shortest(below: float, most: float) -> str:
    """Return the decimal with the fewest digits that is above one number and at most another."""
    least, exact = Decimal(below), Decimal(most)
    for digits in range(1, 18):
        found = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(exact)
        # What is written is read as a double, which may be nearest to a point that is too low.
        if found > least and below < float(found) <= most:
            return _plain(found)
    return repr(most)


def _plain(value: Decimal) -> str:
    """Return a decimal without an exponent, unless it would be long.

    Examples
    --------
    >>> _plain(Decimal("1.99E+3")), _plain(Decimal("0.50")), _plain(Decimal("1E+30"))
    ('1990', '0.5', '1e+30')
    """
    if not value:
        return "0"
    if -5 <= value.adjusted() < 15:
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value.normalize():e}"


def _set_words(test: Grouping, schema: Schema) -> list[tuple[str, str]]:
    values = schema.features[test.feature].values  # type: ignore[union-attr]
    name = visible(test.feature)
    members: list[list[str]] = [[] for _ in range(test.n_children)]
    for value, child in zip(values, test.children, strict=True):
        members[child].append(word(value))
    words = []
    for child, inside in enumerate(members):
        listed = ", ".join(inside)
        also = ", other or missing" if test.other == child else ""
        words.append((f"{name} in {{{listed}}}{also}", f"{listed}{also}"))
    if not members[test.other]:
        words[test.other] = f"{name} other or missing", "other or missing"
    return words
