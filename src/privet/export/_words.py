"""Names, numbers and conditions as people read them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
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
    name, edges = visible(test.feature), shown_edges(test.edges, feature)
    if not edges:
        return [(f"{name} not missing", "not missing"), (f"{name} missing", "missing")]
    if isinstance(feature, Integer) and not isinstance(feature, Date):
        words = _whole_words(name, [int(edge) for edge in test.edges])
    else:
        words = _number_words(name, edges)
        for child, bound in enumerate(_nearly(test.edges, feature)):
            condition, branch = words[child]
            if bound is not None and not branch.startswith(("≤", "=")):
                words[child] = f"{condition} (nearly {bound})", f"nearly {bound}"
    if test.missing == len(words):
        return [*words, (f"{name} missing", "missing")]
    condition, branch = words[test.missing]
    words[test.missing] = f"{condition} or missing", f"{branch} or missing"
    return words


def _number_words(name: str, edges: Sequence[Edge]) -> list[tuple[str, str]]:
    """Return conditions on a number, one more than there are edges.

    Examples
    --------
    >>> _number_words("gain", [Edge("0", above=True), Edge("75")])
    [('gain <= 0', '≤ 0'), ('0 < gain < 75', '0 to 75'), ('gain >= 75', '≥ 75')]
    """
    first, last = edges[0], edges[-1]
    words = [(f"{name} {first.below} {first.text}", f"{_SIGNS[first.below]} {first.text}")]
    for low, high in pairwise(edges):
        if low.text == high.text:  # from a point of the grid to just above it
            words.append((f"{name} = {low.text}", f"= {low.text}"))
        else:
            after = "<" if low.above else "<="
            condition = f"{low.text} {after} {name} {high.below} {high.text}"
            words.append((condition, f"{low.text} to {high.text}"))
    beyond = ">" if last.above else ">="
    return [*words, (f"{name} {beyond} {last.text}", f"{_SIGNS[beyond]} {last.text}")]


def _nearly(edges: Sequence[float], feature: Numeric) -> list[str | None]:
    """Return of every interval the bound, or zero, that all of it is a hair's breadth from."""
    ends = pairwise((feature.low, *edges, math.inf))
    hair = _HAIR * (feature.high - feature.low)
    return [
        next((_bound(x) for x in _anchors(feature) if x - hair <= low and high <= x + hair), None)
        for low, high in ends
    ]


def _anchors(feature: Numeric) -> tuple[float, ...]:
    """Return where a grid has points that lie much closer together than elsewhere."""
    return (feature.low, 0.0) if feature.low < 0 < feature.high else (feature.low,)


def _bound(value: float) -> str:
    return _plain(Decimal(repr(value)))


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


#: This part of a feature's range is nothing to people.
_HAIR = 2.0**-20
_SIGNS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥"}


@dataclass(frozen=True)
class Edge:
    """An edge as it is shown: what is below it is ``< text``, or ``<= text``."""

    text: str
    #: Whether the edge is just above the number that is shown.
    above: bool = False

    @property
    def below(self) -> str:
        """The sign of the numbers below."""
        return "<=" if self.above else "<"


def shown_edges(edges: Sequence[float], feature: Numeric) -> list[Edge]:
    """Return edges in few digits that say the same of every point of the feature's public grid.

    Learners see a number as its place on the grid, so what is shown for an edge is the shortest
    decimal above the point of the grid (and the edge) before it, and not above the edge itself. If
    that point is the lower bound or zero, and only just below the edge, it is shown itself, with
    ``<=``. Predictions, and the exports that predict, compare with all digits. Days are dates.

    Examples
    --------
    >>> [edge.text for edge in shown_edges([19.990000000000002, 100 / 3], Numeric(0, 100))]
    ['19.99', '33.333']
    >>> shown_edges([100 * 2.0**-50], Numeric(0, 100))
    [Edge(text='0', above=True)]
    """
    if isinstance(feature, Integer):
        return [Edge(str(feature.written(edge))) for edge in edges]
    grid, shown, before = feature.grid, [], -math.inf
    hair = _HAIR * (feature.high - feature.low)
    for edge in edges:
        place = bisect_left(grid, edge)
        below = float(grid[place - 1]) if place else feature.low
        if below in _anchors(feature) and before <= below and edge - below < hair:
            shown.append(Edge(_bound(below), above=True))
        else:
            shown.append(Edge(_shortest(max(before, below), edge)))
        before = edge
    return shown


def _shortest(below: float, most: float) -> str:
    """Return the decimal with the fewest digits that is above one number and at most another."""
    least, exact = Decimal(below), Decimal(most)
    for digits in range(1, 18):
        # A double may lie just below the decimal that it stands for.
        for rounding in (ROUND_FLOOR, ROUND_HALF_EVEN):
            found = Context(prec=digits, rounding=rounding).create_decimal(exact)
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
