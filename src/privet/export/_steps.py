"""Tests as steps for languages that compare one thing after the other.

Each child of a test is reached by one step, except the one that missing values go to, which is what
is left when no step applies. So no subtree is ever written twice.
"""

from __future__ import annotations

import math

from privet.schema import Schema, Value, all_numbers, value_key
from privet.tree import Cut, Grouping


def cut_steps(test: Cut) -> list[tuple[int, str, float]]:
    """Return ``(child, "<" or ">=", edge)`` in the order in which to compare.

    The child left over is ``test.missing``; no comparison may hold for a missing number.

    Examples
    --------
    >>> cut_steps(Cut("age", (40.0, 65.0), missing=1))
    [(0, '<', 40.0), (2, '>=', 65.0)]
    >>> cut_steps(Cut("age", (40.0, 65.0), missing=3))
    [(0, '<', 40.0), (1, '<', 65.0), (2, '>=', 65.0)]
    """
    last = len(test.edges)
    floors = (-math.inf, *test.edges)
    below = [(child, "<", test.edges[child]) for child in range(min(test.missing, last))]
    if test.missing > last:
        return [*below, (last, ">=", floors[last])]
    return below + [(child, ">=", floors[child]) for child in range(last, test.missing, -1)]


def grouping_steps(test: Grouping, schema: Schema) -> tuple[bool, list[tuple[int, list[Value]]]]:
    """Return whether categories are numbers, and ``(child, categories)`` for every step.

    The child left over is ``test.other``. Categories are floats, or text.
    """
    values = schema.features[test.feature].values  # type: ignore[union-attr]
    numbers = all_numbers(values)
    members: dict[int, list[Value]] = {}
    for value, child in zip(values, test.children, strict=True):
        if child != test.other:
            members.setdefault(child, []).append(value_key(value, numbers))
    return numbers, sorted(members.items())
