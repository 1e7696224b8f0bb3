"""Random schemas, trees and ensembles over them, and tables to predict, for hypothesis.

Names and values are hostile on purpose (quotes, backslashes, braces, newlines, markup), tables hold
missing, infinite and out-of-range values, unknown categories, and numbers just beside the edges.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from privet.ensemble import Ensemble, n_scores
from privet.schema import (
    Categorical,
    Date,
    Feature,
    Integer,
    Numeric,
    Schema,
    all_numbers,
    day_text,
)
from privet.tree import Cut, Grouping, Node, Test, Tree

MAX_NODES = 25
MAX_DEPTH = 3

texts = st.text("ab1 '\"\\{}<>|&;%$`\n\té日", max_size=6)
names = texts.filter(bool)
_bounds = st.sampled_from([(0.0, 1.0), (-5.0, 5.0), (0.0, 120.0), (-1e9, 1e9), (1e-3, 1e300)])
_WHOLE = (-(2**53), 2**53)  # doubles hold these exactly
#: Scores that tie, nearly tie, round differently in another order, and are as large as may be.
_SCORES = [0.0, -0.0, 0.1, 0.2, 0.3, -0.3, 1 / 3, -1.5, 1e-17, -1e-17, 5e-324, 40.0, -800.0, 1e300]


def _distinct(values: st.SearchStrategy[Any], low: int = 1, *, key: Any = str) -> Any:
    return st.lists(values, min_size=low, max_size=5, unique_by=key)


@st.composite
def numerics(draw: st.DrawFn) -> Numeric:
    return Numeric(*draw(_bounds))


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    return Integer(*draw(st.sampled_from([(0, 1), (-5, 5), (0, 20), (-(10**9), 10**9)])))


@st.composite
def dates(draw: st.DrawFn) -> Date:
    return Date(*draw(st.sampled_from(_DAYS)))


#: Years in which times in nanoseconds have room.
_DAYS = [("2020-01-01", "2020-12-31"), ("2020-02-28", "2020-03-01"), ("1700-01-01", "2200-12-31")]


@st.composite
def vocabularies(draw: st.DrawFn, low: int = 1) -> tuple[Any, ...]:
    """Lists of categories or classes: text, whole numbers, fractions, truth values, mixtures."""
    whole = st.integers(-3, 1000)
    fractions = st.sampled_from([0.1, 0.5, -2.5, 1e300, 3.0])
    return tuple(
        draw(
            st.one_of(
                _distinct(texts, low),
                _distinct(whole, low),
                _distinct(fractions, low),
                _distinct(st.booleans(), low),
                _distinct(st.one_of(whole, fractions), low, key=float),
                _distinct(st.one_of(texts, whole), low, key=str).filter(
                    lambda values: not all_numbers(values)
                ),
            )
        )
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    # Databases do not tell upper from lower case in names.
    target, *columns = draw(st.lists(names, min_size=2, max_size=5, unique_by=str.casefold))
    features: dict[str, Feature] = {
        name: draw(
            st.one_of(numerics(), integers(), dates(), st.builds(Categorical, vocabularies()))
        )
        for name in columns
    }
    if draw(st.booleans()):
        return Schema(features, target, bounds=(-10.0, 10.0))
    return Schema(features, target, classes=draw(vocabularies(2)))


@st.composite
def tests(draw: st.DrawFn, schema: Schema, features: Sequence[str]) -> Test:
    name = draw(st.sampled_from(features))
    feature = schema.features[name]
    if isinstance(feature, Numeric):
        inside: st.SearchStrategy[float]
        if isinstance(feature, Integer):
            inside = st.integers(int(feature.low) + 1, int(feature.high)).map(float)
        else:
            inside = st.floats(feature.low, feature.high, exclude_min=True)
        round_ones = st.sampled_from([feature.high, *feature.cuts.tolist()])
        edges = tuple(sorted(draw(st.sets(st.one_of(inside, round_ones), max_size=4))))
        return Cut(name, edges, draw(st.integers(0 if edges else 1, len(edges) + 1)))
    size = len(feature.values) + 1
    groups = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    numbered = {group: child for child, group in enumerate(dict.fromkeys(groups))}
    *children, other = (numbered[group] for group in groups)
    return Grouping(name, tuple(children), other)


@st.composite
def leaves(draw: st.DrawFn, schema: Schema, scores: int = 0) -> Node:
    released: dict[str, Any] = {}
    if draw(st.booleans()):
        released["count"] = draw(st.integers(-9, 99))
    if scores:
        return Node(value=draw(_score_tuples(scores)), released=released)
    if schema.classes is None:
        return Node(
            value=(draw(st.sampled_from([-10.0, -0.1, 0.0, 1 / 3, 1e-300])),), released=released
        )
    width = len(schema.classes)
    if draw(st.booleans()):
        counts = draw(st.lists(st.integers(-9, 99), min_size=width, max_size=width))
        released["class_counts"] = tuple(counts)
    weights = draw(st.lists(st.integers(0, 3), min_size=width, max_size=width).filter(any))
    return Node(value=tuple(weight / sum(weights) for weight in weights), released=released)


def _score_tuples(width: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[st.sampled_from(_SCORES)] * width)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    schema = draw(schemas())
    return draw(_trees_of(schema, schema.names))


@st.composite
def _trees_of(draw: st.DrawFn, schema: Schema, features: Sequence[str], scores: int = 0) -> Tree:
    nodes: list[Node] = []
    depths = [0]
    while len(nodes) < len(depths):
        depth = depths[len(nodes)]
        if depth < MAX_DEPTH and len(depths) < MAX_NODES and draw(st.booleans()):
            test = draw(tests(schema, features))
            children = range(len(depths), len(depths) + test.n_children)
            depths += [depth + 1] * test.n_children
            nodes.append(Node(test, tuple(draw(st.permutations(children)))))
        else:
            nodes.append(draw(leaves(schema, scores)))
    return Tree(schema, tuple(nodes), scores)


@st.composite
def ensembles(draw: st.DrawFn, *, additive: bool = False) -> Ensemble:
    """Up to four trees; those of an additive ensemble keep to one feature each."""
    schema = draw(schemas())
    width = n_scores(schema)
    single = st.sampled_from(schema.names).map(lambda name: (name,))
    features = single if additive else st.just(schema.names)
    listed = st.lists(features.flatmap(lambda f: _trees_of(schema, f, width)), max_size=4)
    return Ensemble(schema, draw(_score_tuples(width)), tuple(draw(listed)))


@st.composite
def tables(draw: st.DrawFn, model: Tree | Ensemble, max_rows: int = 20) -> pa.Table:
    """Tables with a column of some fitting type for every feature of a model."""
    rows = draw(st.integers(0, max_rows))
    columns = {}
    for name, feature in model.schema.features.items():
        if isinstance(feature, Date):
            column = draw(_date_columns(_near(model, name, feature), rows))
        elif isinstance(feature, Numeric):
            column = draw(_number_columns(_near(model, name, feature), rows))
        elif all_numbers(feature.values):
            known = [float(value) for value in feature.values]
            column = draw(_number_columns([*known, known[0] + 0.25, 0.0, 1.0, 77.0], rows))
        else:
            column = draw(_text_columns([str(value) for value in feature.values], rows))
        columns[name] = column
    return pa.table(columns)


def _near(model: Tree | Ensemble, name: str, feature: Numeric) -> list[float]:
    edges = [
        edge
        for tree in (model.trees if isinstance(model, Ensemble) else (model,))
        for node in tree.nodes
        if isinstance(node.test, Cut) and node.test.feature == name
        for edge in node.test.edges
    ]
    exact = [feature.low, feature.high, feature.low - 1, 2 * feature.high, 0.0, 3.0, *edges]
    return [*exact, *(math.nextafter(edge, -math.inf) for edge in edges)]


@st.composite
def _number_columns(draw: st.DrawFn, interesting: list[float], rows: int) -> pa.Array:
    kind = draw(st.sampled_from([pa.float64(), pa.float32(), pa.int64(), pa.int32(), pa.bool_()]))
    if pa.types.is_floating(kind):
        special = [math.nan, math.inf, -math.inf, -0.0]
        values = st.sampled_from([*interesting, *special]) | st.floats(width=32)
    elif pa.types.is_boolean(kind):
        values = st.booleans()
    else:
        low, high = (
            (np.iinfo(np.int32).min, np.iinfo(np.int32).max) if kind.bit_width == 32 else _WHOLE
        )
        values = st.sampled_from([min(max(int(x), low), high) for x in interesting])
        values |= st.integers(low, high)
    drawn = draw(st.lists(values | st.none(), min_size=rows, max_size=rows))
    if kind == pa.float32():
        with np.errstate(over="ignore"):
            drawn = [None if x is None else np.float32(x) for x in drawn]
    return pa.array(drawn, type=kind)


@st.composite
def _date_columns(draw: st.DrawFn, interesting: list[float], rows: int) -> pa.Array:
    """Dates, times, and text of dates; around the edges to the second."""
    times = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]
    kind = draw(st.sampled_from([pa.date32(), pa.date64(), pa.string(), *times]))
    near = [day for day in map(math.floor, interesting) if -98_000 < day < 84_000]
    days = st.sampled_from(near) | st.integers(-98_000, 84_000)
    values: st.SearchStrategy[Any]
    if kind == pa.string():
        values = days.map(day_text)
    elif pa.types.is_date(kind):
        values = days.map(lambda day: datetime.date.fromisoformat(day_text(day)))
    else:
        start, seconds = datetime.datetime(1970, 1, 1), st.sampled_from([0, 1, 43_200, 86_399])
        values = st.builds(
            lambda day, second: start + datetime.timedelta(day, second), days, seconds
        )
    return pa.array(draw(st.lists(values | st.none(), min_size=rows, max_size=rows)), type=kind)


@st.composite
def _text_columns(draw: st.DrawFn, known: list[str], rows: int) -> pa.Array:
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()]
    kind = draw(st.sampled_from(kinds))
    values = st.integers(-3, 9) if kind == pa.int64() else st.sampled_from(known) | texts
    return pa.array(draw(st.lists(values | st.none(), min_size=rows, max_size=rows)), type=kind)


@st.composite
def trees_with_tables(draw: st.DrawFn, max_rows: int = 20) -> tuple[Tree, pa.Table]:
    tree = draw(trees())
    return tree, draw(tables(tree, max_rows))


@st.composite
def ensembles_with_tables(
    draw: st.DrawFn, max_rows: int = 20, *, additive: bool = False
) -> tuple[Ensemble, pa.Table]:
    ensemble = draw(ensembles(additive=additive))
    return ensemble, draw(tables(ensemble, max_rows))
