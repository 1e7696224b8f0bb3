"""Names, numbers and conditions as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from privet.schema import Feature, Integer, Schema, Value
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
    name, edges = visible(test.feature), _edge_texts(test.edges, feature)
    if not edges:
        return [(f"{name} not missing", "not missing"), (f"{name} missing", "missing")]
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


def _edge_texts(edges: Sequence[float], feature: Feature) -> list[str]:
    """Return the edges with few digits, but enough to tell them apart; days as dates."""
    if isinstance(feature, Integer):
        return [str(feature.written(edge)) for edge in edges]
    texts = [number(edge) for edge in edges]
    return texts if len(set(texts)) == len(texts) else [repr(float(edge)) for edge in edges]


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
