"""A slow way through a tree that follows one row at a time."""

import datetime
import math

import pyarrow as pa

from privet.schema import Date, all_numbers
from privet.tree import Cut, Tree


def reference_leaf(tree: Tree, row: dict) -> int:
    place = 0
    while (test := tree.nodes[place].test) is not None:
        value = row[test.feature]
        if isinstance(tree.schema.features[test.feature], Date) and value is not None:
            day = datetime.date.fromisoformat(value) if isinstance(value, str) else value
            value = day.toordinal() - datetime.date(1970, 1, 1).toordinal()
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if isinstance(test, Cut):
            if missing:
                child = test.missing
            else:
                child = sum(float(value) >= edge for edge in test.edges)
        else:
            child = test.other
            values = tree.schema.features[test.feature].values
            for category, goes_to in zip(values, test.children, strict=True):
                if missing:
                    continue
                if all_numbers(values):
                    same = float(value) == float(category)
                else:
                    same = str(value) == str(category)
                if same:
                    child = goes_to
        place = tree.nodes[place].children[child]
    return place


def reference_leaves(tree: Tree, table: pa.Table) -> list[int]:
    return [reference_leaf(tree, row) for row in table.to_pylist()]
