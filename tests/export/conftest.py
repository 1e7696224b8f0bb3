"""Trees that several formats are drawn with."""

import pytest

from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree


def leaf(no: int, yes: int) -> Node:
    share = max(no, 0) / (max(no, 0) + max(yes, 0))
    return Node(value=(share, 1 - share), released={"class_counts": (no, yes)})


@pytest.fixture
def ward_tree() -> Tree:
    """A multiway tree with equal neighbours, an all-equal subtree, and sets of categories."""
    schema = Schema(
        {
            "age": Numeric(0, 120),
            "sex": Categorical(["f", "m"]),
            "ward": Categorical(["a", "b", "c", "d"]),
        },
        "readmitted",
        classes=["no", "yes"],
    )
    return Tree(
        schema,
        (
            Node(Cut("age", (18.0, 40.0, 65.0), 4), (1, 2, 3, 4, 5), released={"count": 444}),
            leaf(90, 10),
            leaf(80, 20),
            Node(Grouping("sex", (0, 1), 2), (6, 7, 8), released={"count": -4}),  # all no
            Node(Grouping("ward", (0, 1, 0, 1), 2), (9, 10, 11)),
            leaf(1, 3),
            leaf(30, 20),
            leaf(28, 2),
            leaf(2, -1),
            leaf(20, 60),
            leaf(50, 40),
            leaf(-1, 5),
        ),
    )


HOSTILE = 'a"b\\c\nd<e>|{f}&amp;\x1b[31m\u202e\ud800'


@pytest.fixture
def hostile_tree() -> Tree:
    """Every name and value is out to break the format."""
    schema = Schema(
        {HOSTILE: Categorical([HOSTILE, "</title><script>"])},
        HOSTILE + "target",
        classes=[HOSTILE, "]]>"],
    )
    nodes = (
        Node(Grouping(HOSTILE, (0, 1), 1), (1, 2)),
        Node(value=(1.0, 0.0), released={"class_counts": (3, -2)}),
        Node(value=(0.0, 1.0)),
    )
    return Tree(schema, nodes)


@pytest.fixture
def mean_tree() -> Tree:
    schema = Schema({"x": Numeric(0, 1)}, "stay", bounds=(0, 30))
    nodes = (
        Node(Cut("x", (0.25, 0.5, 0.75), 0), (1, 2, 3, 4)),
        Node(value=(3.5,), released={"count": 12}),
        Node(value=(20.0,), released={"count": 3}),
        Node(value=(20.0,), released={"count": -1}),
        Node(value=(100 / 7,)),
    )
    return Tree(schema, nodes)
