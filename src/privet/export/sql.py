"""A tree or an ensemble as an SQL expression, to predict where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from privet.ensemble import Ensemble
from privet.errors import SchemaError
from privet.export._limits import check_depth
from privet.export._merged import Answer, merged, trees_of
from privet.export._steps import cut_steps, grouping_steps
from privet.schema import Date, Schema, Value, day_text
from privet.tree import Cut, Test, Tree

#: DuckDB refuses expressions that are nested 1,000 deep. Every test on a path is one level, and so
#: is every tree of a sum; the rest is room for casts.
_MOST_NESTED = 900
#: Powers of e are taken of numbers that are no farther from zero.
_FARTHEST = 700
_INFINITY = "CAST('Infinity' AS DOUBLE PRECISION)"


def to_sql(
    model: Tree | Ensemble, *, prefix: str | None = None, probability_of: Value | None = None
) -> str:
    """Return an SQL expression for a row's most probable class, or its number.

    Or, if it is asked for, for the probability of a class.

    It is standard SQL and gives what the model gives in DuckDB and PostgreSQL: numbers are compared
    as double precision, whatever the column's type, and dates as dates; NULL, NaN and unknown
    categories go where the trees send them. The scores of an ensemble are added in the order of its
    trees.

    Parameters
    ----------
    model : Tree or Ensemble
    prefix : str, optional
        The table or alias that the columns belong to.
    probability_of : str, int, float or bool, optional
        A class of the schema: the expression is its probability, a double. That of a tree is
        exactly the model's; of an ensemble it differs by rounding, and by the 700th power of e.

    Returns
    -------
    str
        A ``CASE`` expression (a bare value if there is nothing to decide). Its type is that of the
        classes: text, truth value, whole number or double precision. Classes of several types
        come as numbers if all are numbers, else as text.

    Raises
    ------
    SchemaError
        If a name or value holds a character that SQL cannot write, or there is no such class.
    ExportError
        If expressions would be nested more deeply than databases read: if the number of trees and
        the tests on the longest path are more than 900 together.

    Notes
    -----
    Columns compared as numbers must be of a type that can be cast to ``DOUBLE PRECISION``; where
    Python reads text that is no number as missing, SQL stops with an error, and PostgreSQL does not
    cast truth values. Columns compared as dates must be of a type that can be cast to ``DATE``:
    dates, timestamps, or text of dates; one with a time zone counts as its day in the zone of the
    session. Columns compared as text should hold text or whole numbers: engines write other types
    in ways of their own.

    An ensemble is a sum as long as it has trees; for more than two classes each class has its own
    sum, which is written twice (for a probability, that of its class once for every other).
    DuckDB takes seconds for a sum of 400 trees.

    Examples
    --------
    >>> from privet.schema import Numeric, Schema
    >>> from privet.tree import Cut, Node
    >>> schema = Schema({"age": Numeric(0, 120)}, "readmitted", classes=["no", "yes"])
    >>> print(to_sql(Tree(schema, (
    ...     Node(Cut("age", (65.0,), missing=1), (1, 2)),
    ...     Node(value=(0.9, 0.1)),
    ...     Node(value=(0.4, 0.6)),
    ... ))))
    CASE
      WHEN CAST("age" AS DOUBLE PRECISION) < 65.0e0 THEN 'no'
      ELSE 'yes'
    END

    An ensemble of one tree:

    >>> print(to_sql(Ensemble(schema, (-0.1,), [Tree(schema, (
    ...     Node(Cut("age", (65.0,), missing=1), (1, 2)), Node(value=(-0.2,)), Node(value=(0.4,)),
    ... ), scores=1)])))
    CASE WHEN
        CAST(-0.1e0 AS DOUBLE PRECISION)
        + CAST(CASE
          WHEN CAST("age" AS DOUBLE PRECISION) < 65.0e0 THEN -0.2e0
          ELSE 0.4e0
        END AS DOUBLE PRECISION)
      > 0 THEN 'yes'
      ELSE 'no'
    END
    """
    if probability_of is not None:
        return "\n".join(_probability(model, prefix, probability_of))
    copies = 2 * len(model.start) if isinstance(model, Ensemble) else 1
    trees, schema = trees_of(model, copies), model.schema
    check_depth(model.depth + len(trees), _MOST_NESTED, "SQL")
    table = "" if prefix is None else _identifier(prefix) + "."
    if isinstance(model, Ensemble):
        lines = _decision([_sum(model, place, table) for place in range(len(model.start))], schema)
    else:
        lines = _case(trees[0], table, lambda answer: _answer(answer, schema))
    # PostgreSQL takes 1.5e0 for a decimal, which is exact, so the cast gives the double meant.
    return "\n".join(
        _around("CAST(", lines, " AS DOUBLE PRECISION)") if _is_double(schema) else lines
    )


def _probability(model: Tree | Ensemble, prefix: str | None, wanted: Value) -> list[str]:
    """Return the lines of an expression for the probability of a class."""
    classes = model.schema.classes or ()
    if str(wanted) not in map(str, classes):
        raise SchemaError("probability_of must be one of the schema's classes")
    place = [str(value) for value in classes].index(str(wanted))
    table = "" if prefix is None else _identifier(prefix) + "."
    if isinstance(model, Tree):
        trees_of(model)
        check_depth(model.depth + 1, _MOST_NESTED, "SQL")
        nodes = (replace(node, value=node.value[place : place + 1]) for node in model.nodes)
        shares = Tree(model.schema, tuple(nodes), scores=1)
        return _around("CAST(", _case(shares, table, _only_score), " AS DOUBLE PRECISION)")
    trees = trees_of(model, 2 * len(model.start))
    check_depth(model.depth + len(trees) + 4, _MOST_NESTED, "SQL")
    sums = [_sum(model, k, table) for k in range(len(model.start))]
    if len(sums) == 1:
        return ["1 / (1 +", *_power(["- (", *_indented(sums[0], ")")] if place else sums[0]), ")"]
    lines = ["1 / (1"]
    for k, total in enumerate(sums):
        if k != place:
            less = _indented(sums[place], ")")
            lines += ["+", *_power(["(", *_indented(total, ")"), "- (", *less])]
    return [*lines, ")"]


def _power(exponent: Sequence[str]) -> list[str]:
    """Return the lines of a power of e that neither overflows nor vanishes: both end a query."""
    return ["  EXP(LEAST(GREATEST(", *_indented(exponent), f"  , {-_FARTHEST}), {_FARTHEST}))"]


def _only_score(answer: Answer) -> str:
    assert isinstance(answer, tuple)
    return _double(answer[0])


def _case(tree: Tree, table: str, write: Callable[[Answer], str]) -> list[str]:
    """Return the lines of an expression for a tree, with its answers written as told."""
    parts = merged(tree)
    lines: list[str] = []
    waiting: list[str | tuple[int, int, str]] = [(0, 0, "")]  # a line, or part, depth and lead
    while waiting:
        task = waiting.pop()
        if isinstance(task, str):
            lines.append(task)
            continue
        place, depth, lead = task
        part, indent = parts[place], "  " * depth
        if part.test is None:
            assert part.answer is not None
            lines.append(f"{indent}{lead}{write(part.answer)}")
            continue
        lines.append(f"{indent}{lead}CASE")
        waiting.append(f"{indent}END")
        for child, condition in reversed(_branches(part.test, tree.schema, table)):
            waiting.append((part.children[child], depth + 1, condition))
    return lines


def _sum(ensemble: Ensemble, place: int, table: str) -> list[str]:
    """Return the lines of one of the sums of scores."""

    def score(answer: Answer) -> str:
        assert isinstance(answer, tuple)
        return _double(answer[place])

    lines = [_as_double(_double(ensemble.start[place]))]
    for tree in ensemble.trees:
        lines += _around("+ CAST(", _case(tree, table, score), " AS DOUBLE PRECISION)")
    return lines


def _decision(sums: Sequence[Sequence[str]], schema: Schema) -> list[str]:
    """Return the lines for the first class with the highest score, or for the number in bounds."""
    if schema.classes is None:
        assert schema.bounds is not None
        low, high = (_as_double(_double(bound)) for bound in schema.bounds)
        return ["LEAST(GREATEST(", *_indented(sums[0], ","), f"  {low}), {high})"]
    answers = [_answer(place, schema) for place in range(len(schema.classes))]
    if len(sums) == 1:
        return [
            "CASE WHEN",
            *_indented(sums[0]),
            f"  > 0 THEN {answers[1]}",
            f"  ELSE {answers[0]}",
            "END",
        ]
    lines = ["CASE GREATEST("]
    for place, total in enumerate(sums):
        lines += _indented(total, "," if place < len(sums) - 1 else ")")
    for total, answer in zip(sums[:-1], answers[:-1], strict=True):
        lines += ["  WHEN", *_indented(total), f"  THEN {answer}"]
    return [*lines, f"  ELSE {answers[-1]}", "END"]


def _indented(lines: Sequence[str], after: str = "") -> list[str]:
    return [f"    {line}" for line in _around("", lines, after)]


def _around(before: str, lines: Sequence[str], after: str) -> list[str]:
    """Return lines with something before the first and after the last.

    Lines stay apart until the end, because literals may hold line breaks of their own.
    """
    first, *rest = lines
    *rest, last = [before + first, *rest]
    return [*rest, last + after]


def _as_double(expression: str) -> str:
    return f"CAST({expression} AS DOUBLE PRECISION)"


def _branches(test: Test, schema: Schema, table: str) -> list[tuple[int, str]]:
    """Return the children with the words that lead to them, in order of evaluation.

    NULL makes every comparison fail. NaN is above infinity or comparable with nothing, depending on
    the engine: ``BETWEEN ... AND infinity`` fails for it in both cases.
    """
    column = table + _identifier(test.feature)
    if isinstance(test, Cut) and isinstance(schema.features[test.feature], Date):
        date = f"CAST({column} AS DATE)"
        return [
            *(
                (child, f"WHEN {date} {_since(sign, edge)} THEN ")
                for child, sign, edge in cut_steps(test)
            ),
            (test.missing, "ELSE "),
        ]
    if isinstance(test, Cut):
        number = _as_double(column)
        return [
            *(
                (child, f"WHEN {number} < {_double(edge)} THEN ")
                if sign == "<"
                else (child, f"WHEN {number} BETWEEN {_double(edge)} AND {_INFINITY} THEN ")
                for child, sign, edge in cut_steps(test)
            ),
            (test.missing, "ELSE "),
        ]
    numbers, steps = grouping_steps(test, schema)
    value = _as_double(column) if numbers else f"CAST({column} AS VARCHAR)"
    return [
        *((child, f"WHEN {value} IN ({_listed(members)}) THEN ") for child, members in steps),
        (test.other, "ELSE "),
    ]


def _since(sign: str, edge: float) -> str:
    """Return the rest of a comparison with a day; with the beginning of time, that there is one."""
    return "IS NOT NULL" if edge == float("-inf") else f"{sign} DATE '{day_text(edge)}'"


def _listed(members: Sequence[Value]) -> str:
    return ", ".join(
        _string(member) if isinstance(member, str) else _double(member) for member in members
    )


def _is_double(schema: Schema) -> bool:
    """Tell whether the answers are doubles: means, or numeric classes that are not all whole."""
    kinds = {type(value) for value in schema.classes or (0.0,)}
    return kinds <= {bool, int, float} and kinds not in ({bool}, {int})


def _answer(answer: Answer, schema: Schema) -> str:
    if schema.classes is None:
        assert isinstance(answer, float)
        return _double(answer)
    assert isinstance(answer, int)
    value = schema.classes[answer]
    kinds = {type(value) for value in schema.classes}
    if kinds == {bool}:
        return "TRUE" if value else "FALSE"
    if kinds == {int}:
        return str(value)
    return _double(float(value)) if _is_double(schema) else _string(str(value))


def _double(number: Value) -> str:
    """Return a literal with an exponent: without one, it would be a decimal."""
    if number == float("-inf"):
        return f"-{_INFINITY}"
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


def _identifier(name: str) -> str:
    return '"' + _writable(name).replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + _writable(text).replace("'", "''") + "'"


def _writable(text: str) -> str:
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise SchemaError("a name or value holds a character that SQL cannot write")
    return text
