"""Trees and ensembles that several formats are drawn with."""

import pytest

from privet.ensemble import Ensemble
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


def scored(schema: Schema, test: Cut | Grouping, *values: tuple[float, ...]) -> Tree:
    """A tree of one test."""
    leaves = (Node(value=value) for value in values)
    root = Node(test, tuple(range(1, len(values) + 1)))
    return Tree(schema, (root, *leaves), len(values[0]))


@pytest.fixture
def boosted() -> Ensemble:
    """Two trees, one of which tests two features."""
    schema = Schema(
        {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])},
        "readmitted",
        classes=["no", "yes"],
    )
    nodes = (
        Node(Cut("age", (40.0, 65.0), 3), (1, 2, 3, 4)),
        Node(value=(-0.42,), released={"count": 12}),
        Node(value=(-0.42,), released={"count": 7}),
        Node(Grouping("sex", (0, 1), 0), (5, 6)),
        Node(value=(0.0,)),
        Node(value=(0.125,)),
        Node(value=(1.5,)),
    )
    second = scored(schema, Grouping("sex", (0, 1), 1), (-0.05,), (0.31,))
    return Ensemble(schema, (-0.25,), (Tree(schema, nodes, 1), second))


@pytest.fixture
def additive() -> Ensemble:
    """Three trees on two features, and one without a test."""
    schema = Schema(
        {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])}, "stay", bounds=(0, 30)
    )
    return Ensemble(
        schema,
        (4.0,),
        (
            scored(schema, Grouping("sex", (0, 0), 1), (1200.0,), (-0.5,)),
            scored(schema, Cut("age", (40.0,), 1), (-2.0,), (1.0,)),
            Tree(schema, (Node(value=(0.5,)),), 1),
            scored(schema, Cut("age", (65.0,), 0), (0.25,), (3.0,)),
        ),
    )


@pytest.fixture
def additive_classes() -> Ensemble:
    """One tree with a score for each of three classes."""
    schema = Schema({"ward": Categorical(["a", "b"])}, "outcome", classes=["good", "fair", "bad"])
    test = Grouping("ward", (0, 1), 2)
    tree = scored(schema, test, (0.5, 0.0, -1.0), (-0.5, 2.0, 0.25), (0.125, -0.125, 1e-3))
    return Ensemble(schema, (0.1, -0.2, 0.0), (tree,))


@pytest.fixture
def hostile_ensemble() -> Ensemble:
    """Every name and value is out to break the format."""
    values = [HOSTILE, "</title><script>"]
    schema = Schema(
        {HOSTILE: Categorical(values), HOSTILE + "2": Categorical(values)},
        HOSTILE + "target",
        classes=[HOSTILE, "]]>", "c"],
    )
    scores = (0.5, 0.0, -1.0), (-0.5, 2.0, 0.25)
    trees = [scored(schema, Grouping(name, (0, 1), 1), *scores) for name in schema.names]
    return Ensemble(schema, (0.0, 0.0, 0.0), tuple(trees))


@pytest.fixture(params=[2, 3, None], ids=["two classes", "three classes", "number"])
def uneven_sums(request) -> list[Ensemble]:
    """Ensembles whose answer hangs on the order of addition, or on a tie; ``x`` is in [0, 1]."""
    if request.param is None:
        schema = Schema({"x": Numeric(0, 1)}, "y", bounds=(-1, 1))
    else:
        schema = Schema({"x": Numeric(0, 1)}, "y", classes=list(range(request.param)))
    zeros = (0.0, 0.0) if request.param == 3 else ()
    test = Cut("x", (0.5,), 0)
    trees = [
        scored(schema, test, (*zeros, score), (*zeros, -score))
        for score in (0.2, -0.3, 1e16, 1.0, -1e16)
    ]
    starts = (0.0, 0.1)
    return [
        Ensemble(schema, (*zeros, start), trees[first:last])
        for start in starts
        for first in range(len(trees) + 1)
        for last in range(first, len(trees) + 1)
    ]
