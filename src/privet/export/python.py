"""A tree or an ensemble as the source of a Python function, to predict without Privet."""

from __future__ import annotations

import builtins
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence

from privet.ensemble import Ensemble
from privet.export._limits import check_depth
from privet.export._merged import Answer, Part, merged, trees_of
from privet.export._steps import cut_steps, grouping_steps
from privet.schema import DAY_PATTERN, Categorical, Date, Schema, Value, all_numbers
from privet.tree import Cut, Test, Tree

# The rules of privet.reading.values, for plain Python values.
_NUMBER = '''\
def _number(value):
    """Return a value as a float; NaN if it is missing or no number."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        value = {"true": 1.0, "false": 0.0}.get(value.strip().lower(), value)
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        return float("nan")
'''
_TEXT = '''\
def _text(value):
    """Return a value as text; None if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf") if value > 0 else float("-inf")
        return str(int(number)) if number.is_integer() else repr(number)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
'''
_DAY = f'''\
def _day(value):
    """Return a date, or text of one, as days since 1970-01-01; NaN if it is missing or none."""
    import datetime
    import re

    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    try:
        if isinstance(value, str):
            pattern = (
                {DAY_PATTERN[:60]!r}
                {DAY_PATTERN[60:]!r}
            )
            year, month, day = map(int, re.fullmatch(pattern, value.strip()).groups())
        else:
            year, month, day = value.year, value.month, value.day
        return float(datetime.date(year, month, day).toordinal() - 719163)
    except (AttributeError, TypeError, ValueError):
        return float("nan")
'''
_HELPERS = {"_number": _NUMBER, "_text": _TEXT, "_day": _DAY}
#: Python allows 100 levels of indentation; deeper subtrees get functions of their own.
_LEVELS = 64
#: These functions call each other 500 deep at most: Python allows 1,000 calls.
_DEEPEST = 500 * _LEVELS


def to_python(model: Tree | Ensemble, name: str = "predict") -> str:
    """Return the source of a function that predicts one row.

    The function takes a mapping from column names to plain Python values (for dates, Python's, or
    text) and returns the most
    probable class, or the number. It needs nothing but Python. None, NaN and unknown categories go
    where the trees send them; a column that they use and the mapping lacks is a ``KeyError``. The
    scores of an ensemble are added in the order of its trees, each of which has its own function.

    Parameters
    ----------
    model : Tree or Ensemble
    name : str, default="predict"
        The name of the function.

    Raises
    ------
    ValueError
        If a function cannot have that name.
    ExportError
        If a tree is more than 32,000 tests deep.

    Examples
    --------
    >>> from privet.schema import Categorical, Schema
    >>> from privet.tree import Grouping, Node
    >>> schema = Schema({"sex": Categorical(["f", "m"])}, "stay", bounds=(0, 30))
    >>> source = to_python(Tree(schema, (
    ...     Node(Grouping("sex", (0, 1), other=1), (1, 2)), Node(value=(4.5,)), Node(value=(6.0,)),
    ... )))
    >>> print(source[source.index("def predict"):])
    def predict(row):
        value = {
            'sex': _text(row['sex']),
        }
        if value['sex'] in {'f'}:
            return 4.5
        return 6.0
    <BLANKLINE>

    An ensemble of one tree:

    >>> source = to_python(Ensemble(schema, (5.0,), [Tree(schema, (
    ...     Node(Grouping("sex", (0, 1), other=1), (1, 2)), Node(value=(-0.5,)), Node(value=(1.0,)),
    ... ), scores=1)]))
    >>> print(source[source.index("def _predict_1"):])
    def _predict_1(value):
        if value['sex'] in {'f'}:
            return -0.5
        return 1.0
    <BLANKLINE>
    <BLANKLINE>
    def predict(row):
        value = {
            'sex': _text(row['sex']),
        }
        score = 5.0
        for tree in [_predict_1]:
            score += tree(value)
        return min(max(score, 0.0), 30.0)
    <BLANKLINE>
    """
    if (
        not name.isidentifier()
        or keyword.iskeyword(name)
        or hasattr(builtins, name)
        or name in _HELPERS
    ):
        raise ValueError("name must be an identifier that Python and the source do not use already")
    check_depth(model.depth, _DEEPEST, "Python")
    trees, schema = [merged(tree) for tree in trees_of(model)], model.schema
    readers = _readers([part for parts in trees for part in parts], schema)
    functions = [helper for reader, helper in _HELPERS.items() if reader in readers.values()]
    if isinstance(model, Ensemble):
        names = [f"_{name}_{place}" for place in range(1, len(trees) + 1)]
        for tree_name, parts in zip(names, trees, strict=True):
            functions += _tree_functions(parts, schema, tree_name, [f"def {tree_name}(value):"])
        head = _head(name, readers) if readers else [f"def {name}(row):", "    value = {}"]
        functions.append(_function([*head, *_sum(model, names)]))
    else:
        functions += _tree_functions(trees[0], schema, f"_{name}", _head(name, readers))
    return "\n\n".join(functions)


def _tree_functions(
    parts: Sequence[Part], schema: Schema, name: str, head: Sequence[str]
) -> Iterator[str]:
    """Yield a function for a tree, and others for what lies too deep in it."""
    roots = [0]  # of the parts of the tree that get a function of their own; grows on the way
    for root in roots:
        body, deeper = _body(parts, schema, root, name)
        yield _function([*(head if root == 0 else [f"def {name}_{root}(value):"]), *body])
        roots += deeper


def _function(lines: Sequence[str]) -> str:
    return "\n".join([*lines, ""])


def _sum(ensemble: Ensemble, trees: Sequence[str]) -> list[str]:
    """Return the lines that add up the scores of trees and decide."""
    schema = ensemble.schema
    each = f"    for tree in [{', '.join(trees)}]:"
    if len(ensemble.start) > 1:
        assert schema.classes is not None
        return [
            f"    scores = [{', '.join(map(_source, ensemble.start))}]",
            each,
            "        scores = [score + more for score, more in zip(scores, tree(value))]",
            f"    return ({', '.join(map(_source, schema.classes))})[scores.index(max(scores))]",
        ]
    lines = [
        f"    score = {_source(ensemble.start[0])}",
        each,
        "        score += tree(value)",
    ]
    if schema.classes is None:
        assert schema.bounds is not None
        low, high = map(_source, schema.bounds)
        return [*lines, f"    return min(max(score, {low}), {high})"]
    first, second = map(_source, schema.classes)
    return [*lines, f"    return {second} if score > 0 else {first}"]


def _readers(parts: Sequence[Part], schema: Schema) -> dict[str, str]:
    """Return how to read each feature that matters: as a number, as a day or as text."""
    readers = {}
    for test in (part.test for part in parts if part.test is not None):
        feature = schema.features[test.feature]
        text = isinstance(feature, Categorical) and not all_numbers(feature.values)
        number = "_day" if isinstance(feature, Date) else "_number"
        readers[test.feature] = "_text" if text else number
    return readers


def _head(name: str, readers: Mapping[str, str]) -> list[str]:
    if not readers:
        return [f"def {name}(row):"]
    read = [f"        {_source(f)}: {reader}(row[{_source(f)}])," for f, reader in readers.items()]
    return [f"def {name}(row):", "    value = {", *read, "    }"]


def _body(
    parts: Sequence[Part], schema: Schema, root: int, name: str
) -> tuple[list[str], list[int]]:
    """Return the lines that decide below a part, and the parts that they leave to others."""
    lines: list[str] = []
    deeper: list[int] = []
    waiting: list[str | tuple[int, int]] = [(root, 1)]  # a line, or place and level
    while waiting:
        task = waiting.pop()
        if isinstance(task, str):
            lines.append(task)
            continue
        place, level = task
        part, indent = parts[place], "    " * level
        if part.test is None:
            assert part.answer is not None
            lines.append(f"{indent}return {_answer(part.answer, schema)}")
        elif level > _LEVELS:
            lines.append(f"{indent}return {name}_{place}(value)")
            deeper.append(place)
        else:
            steps, left_over = _steps(part.test, schema)
            waiting.append((part.children[left_over], level))
            for child, condition in reversed(steps):
                waiting += [(part.children[child], level + 1), f"{indent}if {condition}:"]
    return lines, deeper


def _steps(test: Test, schema: Schema) -> tuple[list[tuple[int, str]], int]:
    """Return children with the conditions that lead to them, and the child left over.

    No comparison holds for NaN, and None is in no set.
    """
    value = f"value[{_source(test.feature)}]"
    if isinstance(test, Cut):
        cuts = cut_steps(test)
        return [(child, f"{value} {sign} {_source(edge)}") for child, sign, edge in cuts], (
            test.missing
        )
    _, groups = grouping_steps(test, schema)
    return [
        (child, f"{value} in {{{', '.join(map(_source, members))}}}") for child, members in groups
    ], test.other


def _answer(answer: Answer, schema: Schema) -> str:
    if isinstance(answer, tuple):
        scores = ", ".join(map(_source, answer))
        return scores if len(answer) == 1 else f"({scores})"
    if schema.classes is None:
        return _source(answer)
    assert isinstance(answer, int)
    return _source(schema.classes[answer])


def _source(value: Value) -> str:
    """Return a literal. Subclasses, such as those of enum, have a ``repr`` that is no source."""
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return str.__repr__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    number = float.__repr__(value)
    return number if math.isfinite(value) else f"float({number!r})"
