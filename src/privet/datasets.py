"""Synthetic tables with a known structure, for examples, demonstrations, tests and benchmarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.schema import Categorical, Feature, Integer, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Test, Tree

_BLOCK = 65_536

#: What a path of tests leaves open of an attribute: its range, or None for a nominal one.
_Left = dict[str, tuple[float, float] | None]

PATIENTS = Schema(
    {
        "age": Integer(0, 100, edges=[30, 50, 65, 80]),
        "sex": Categorical(["female", "male"]),
        "admission": Categorical(["planned", "emergency", "transfer"]),
        "ward": Categorical(["medicine", "surgery", "cardiology", "neurology"]),
        "days_in_hospital": Integer(0, 30, edges=[2, 4, 7, 14]),
        "medications": Integer(0, 40, edges=[5, 10, 15, 20]),
        "previous_stays": Integer(0, 10, edges=[1, 2, 4]),
        "diabetes": Categorical(["no", "yes"]),
        "systolic_pressure": Numeric(80, 220, edges=[120, 140, 160]),
        "creatinine": Numeric(0.2, 8.0, edges=[0.9, 1.3, 2.0, 4.0]),
    },
    target="readmitted",
    classes=("no", "yes"),
    table="synthetic patients",
)


def make_patients(rows: int = 50_000, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Make a table of invented hospital patients, as columns; its schema is ``PATIENTS``.

    The structure is known. The chance of coming back within a month is, for patients with

    * two or more previous stays: 0.85 after an emergency, else 0.65;
    * fewer previous stays and creatinine of 1.3 or more: 0.75 from the age of 65 on, else 0.30;
    * none of these: 0.08.

    Everything else is noise that is correlated with age and with the number of stays, as it is in
    real tables. One value in fifty of ``creatinine`` and ``systolic_pressure`` is missing.
    """
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(62, 18, rows), 18, 99).round()
    frailty = generator.beta(2, 4, rows) + (age - 60) / 120
    stays = generator.poisson(np.clip(1.6 * frailty, 0.05, None))
    diabetes = generator.random(rows) < 0.1 + 0.3 * np.clip(frailty, 0, 1)
    admission = generator.choice(3, rows, p=[0.45, 0.45, 0.10])
    creatinine = np.exp(generator.normal(-0.05 + 0.35 * frailty + 0.15 * diabetes, 0.35))
    pressure = generator.normal(125 + 25 * frailty, 16)
    days = 1 + generator.poisson(3 + 4 * np.clip(frailty, 0, None) + 1.5 * (admission == 1))
    medications = 2 + generator.poisson(np.clip(6 + 8 * frailty + 4 * diabetes, 1, None))
    chance = np.where(
        stays >= 2,
        np.where(admission == 1, 0.85, 0.65),
        np.where(creatinine >= 1.3, np.where(age >= 65, 0.75, 0.30), 0.08),
    )
    readmitted = generator.random(rows) < chance
    creatinine = np.round(creatinine, 2)
    creatinine[generator.random(rows) < 0.02] = np.nan
    pressure = np.round(pressure)
    pressure[generator.random(rows) < 0.02] = np.nan
    return {
        "age": age,
        "sex": np.where(generator.random(rows) < 0.5, "female", "male"),
        "admission": np.array(["planned", "emergency", "transfer"])[admission],
        "ward": np.array(["medicine", "surgery", "cardiology", "neurology"])[
            generator.integers(0, 4, rows)
        ],
        "days_in_hospital": days.astype(np.float64),
        "medications": medications.astype(np.float64),
        "previous_stays": stays.astype(np.float64),
        "diabetes": np.where(diabetes, "yes", "no"),
        "systolic_pressure": pressure,
        "creatinine": creatinine,
        "readmitted": np.where(readmitted, "yes", "no"),
    }


#: The schema of :func:`make_stays`: everything is promised to patients, each of whom counts once.
STAYS = replace(PATIENTS, table="synthetic stays", unit="patient_id")


def make_stays(
    persons: int = 5_000,
    *,
    most: int = 10,
    skewed: bool = False,
    alike: float = 0.8,
    seed: int = 0,
) -> dict[str, NDArray[Any]]:
    """Make a table of hospital stays, some patients with several; its schema is ``STAYS``.

    Every stay is a record of :func:`make_patients`, in which each value is, with probability
    ``alike``, that of the patient's first stay.

    Parameters
    ----------
    persons : int
        How many patients.
    most : int, default=10
        The most stays that a patient has; how many is uniform.
    skewed : bool, default=False
        Whether seven patients of ten have one stay, and the others two to ``most``.
    alike : float, default=0.8
        How much stays of a patient are alike: 1 repeats the first one, 0 has unrelated ones.
    seed : int, default=0

    Examples
    --------
    >>> stays = make_stays(1_000)
    >>> len(set(stays["patient_id"])), len(stays["patient_id"]) > 4_000
    (1000, True)
    """
    _check_probability(alike, "alike")
    generator = np.random.default_rng([seed, 3])
    counts = generator.integers(1, most + 1, persons)
    if skewed:
        many = generator.integers(2, max(most, 2) + 1, persons)
        counts = np.where(generator.random(persons) < 0.7, 1, many)
    who = np.repeat(np.arange(persons), counts)
    first = np.cumsum(counts) - counts
    table = make_patients(len(who), seed)
    for name in PATIENTS.features:
        same = generator.random(len(who)) < alike
        table[name] = np.where(same, table[name][first[who]], table[name])
    same = generator.random(len(who)) < alike
    table["readmitted"] = np.where(same, table["readmitted"][first[who]], table["readmitted"])
    order = generator.permutation(len(who))  # a patient's stays lie anywhere
    names = np.char.add("p", who.astype(str))
    return {"patient_id": names[order], **{name: mine[order] for name, mine in table.items()}}


def make_random_tree(
    depth: int,
    *,
    n_values: int = 2,
    n_classes: int = 2,
    n_attributes: int = 10,
    n_numeric: int = 0,
    p_leaf: float = 0.3,
    seed: int = 0,
) -> Tree:
    """Draw a random decision tree, as Friedman & Schuster (2010, section 5.1) do.

    The attribute of every test is drawn uniformly from those that are left: a nominal one is tested
    once on a path and has a child for each value, a numeric one may be tested again and is cut in
    two. From the third level on (the root is the first), a node becomes a leaf with probability
    ``p_leaf``; at ``depth`` all do, and so does a node that has no attribute left. The classes of
    leaves are uniform. :func:`make_random_tree_data` draws records that such a tree classifies.

    A tree of depth 1 is the paper's single split (section 5.1.1): it tests a numeric attribute if
    there is one, at 35, and its leaves take different classes.

    Parameters
    ----------
    depth : int
        Most tests on a path.
    n_values, n_classes : int, default=2
        How many values each nominal attribute has, and how many classes there are. Values and
        classes are the whole numbers from 0.
    n_attributes : int, default=10
        How many attributes there are.
    n_numeric : int, default=0
        How many of them are numbers in [0, 100]. In trees of more than one test their cuts are
        uniform in what the path has left of that range; the paper does not say.
    p_leaf : float, default=0.3
        How often a node ends early.
    seed : int, default=0
        The same seed gives the same tree.

    Returns
    -------
    Tree
        Its leaves are certain of their class. ``tree.schema`` is the schema of the records.

    Examples
    --------
    >>> tree = make_random_tree(1, n_numeric=3)
    >>> tree.nodes[0].test
    Cut(feature='numeric_3', edges=(35.0,), missing=0)
    >>> [node.value for node in tree.nodes[1:]]
    [(1.0, 0.0), (0.0, 1.0)]
    """
    for name, number, least in (
        ("depth", depth, 1),
        ("n_values", n_values, 2),
        ("n_classes", n_classes, 2),
        ("n_attributes", n_attributes, 1),
        ("n_numeric", n_numeric, 0),
    ):
        if number < least:
            raise ValueError(f"{name} must be at least {least}")
    if n_numeric > n_attributes:
        raise ValueError("n_numeric cannot exceed n_attributes")
    _check_probability(p_leaf, "p_leaf")
    nominal = [f"nominal_{j}" for j in range(1, n_attributes - n_numeric + 1)]
    numeric = [f"numeric_{j}" for j in range(1, n_numeric + 1)]
    values = Categorical(range(n_values))
    features: dict[str, Feature] = {
        **dict.fromkeys(nominal, values),
        **dict.fromkeys(numeric, Numeric(0, 100)),
    }
    schema = Schema(features, target="class", classes=range(n_classes))
    ends = [
        Node(value=tuple(float(k == label) for k in range(n_classes))) for label in range(n_classes)
    ]
    generator = np.random.default_rng([seed, 0])
    if depth == 1:
        return _single_split(schema, ends, numeric or nominal, generator)
    left: _Left = {**dict.fromkeys(nominal), **dict.fromkeys(numeric, (0.0, 100.0))}
    nodes: list[Node] = []
    level = [left]
    for above in range(depth + 1):
        p_end = 1.0 if above == depth else p_leaf if above >= 2 else 0.0
        end = generator.random(len(level)) < p_end
        labels = generator.integers(n_classes, size=len(level))
        child, below = len(nodes) + len(level), []
        for here, is_end, label in zip(level, end.tolist(), labels.tolist(), strict=True):
            if is_end or not here:
                nodes.append(ends[label])
                continue
            name = tuple(here)[generator.integers(len(here))]
            test, parts = _random_test(name, here, n_values, generator)
            nodes.append(Node(test, tuple(range(child, child + len(parts)))))
            child += len(parts)
            below += parts
        level = below
    return Tree(schema, tuple(nodes))


def make_random_tree_data(
    tree: Tree, rows: int, *, p_noise: float = 0.0, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """Make uniform records and classify them with a tree, as columns (target included).

    Noise comes last, as in Friedman & Schuster (2010, section 5.1): each value of each attribute
    and each class is replaced, with probability ``p_noise``, by one drawn uniformly, which may be
    the same again. So a class differs from the tree's with probability ``p_noise (1 - 1/k)`` even
    before its attributes change.

    Parameters
    ----------
    tree : Tree
        The truth, such as one of :func:`make_random_tree`. A leaf gives its most probable class.
    rows : int
        How many records.
    p_noise : float, default=0.0
        How often a value is replaced; the paper uses 0, 0.1 and 0.2.
    seed : int, default=0
        The same seed gives the same records; ``p_noise`` alone changes only what it replaces.

    Returns
    -------
    dict of str to ndarray
        One column for each feature of ``tree.schema``, then the target.

    Examples
    --------
    >>> tree = make_random_tree(5, n_values=3, seed=7)
    >>> train = make_random_tree_data(tree, 50_000, p_noise=0.1, seed=1)
    >>> test = make_random_tree_data(tree, 10_000, seed=2)
    >>> list(train)[0], list(train)[-1], len(train["class"])
    ('nominal_1', 'class', 50000)
    """
    schema = tree.schema
    if schema.classes is None or tree.scores:
        raise ValueError("the tree must be a classifier")
    if rows < 0:
        raise ValueError("rows cannot be negative")
    _check_probability(p_noise, "p_noise")
    generator = np.random.default_rng([seed, 1])
    classes = Categorical(schema.classes)
    columns = {
        name: _uniform(feature, rows, generator) for name, feature in schema.features.items()
    }
    labels = _labels(tree, columns, rows)
    noise = np.random.default_rng([seed, 2])
    if p_noise:
        for name, feature in schema.features.items():
            _replace_some(columns[name], feature, p_noise, noise)
        _replace_some(labels, classes, p_noise, noise)
    for name, feature in schema.features.items():
        if isinstance(feature, Categorical):
            columns[name] = np.array(feature.values)[columns[name]]
    return {**columns, schema.target: np.array(classes.values)[labels]}


def _check_probability(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1")


def _single_split(
    schema: Schema, ends: list[Node], names: list[str], generator: np.random.Generator
) -> Tree:
    """Return the tree of section 5.1.1, with as many different classes as there can be."""
    name = names[generator.integers(len(names))]
    feature = schema.features[name]
    test: Test = (
        Cut(name, (35.0,), missing=0)
        if isinstance(feature, Numeric)
        else _every_value(name, len(feature.values))
    )
    order = generator.permutation(len(ends)).tolist()
    leaves = [ends[order[child % len(ends)]] for child in range(test.n_children)]
    return Tree(schema, (Node(test, tuple(range(1, len(leaves) + 1))), *leaves))


def _random_test(
    name: str, left: _Left, n_values: int, generator: np.random.Generator
) -> tuple[Test, list[_Left]]:
    """Return a test of an attribute and what it leaves open for each child."""
    span = left[name]
    if span is None:
        rest = {other: left[other] for other in left if other != name}
        return _every_value(name, n_values), [rest] * n_values
    low, high = span
    edge = high - (high - low) * generator.random()  # never the lower end, which no cut may be
    parts: list[_Left] = [{**left, name: (low, edge)}, {**left, name: (edge, high)}]
    return Cut(name, (edge,), missing=0), parts


def _every_value(name: str, n_values: int) -> Grouping:
    return Grouping(name, tuple(range(n_values)), other=0)


def _uniform(feature: Feature, rows: int, generator: np.random.Generator) -> NDArray[Any]:
    """Return numbers between the bounds, or positions of categories."""
    if isinstance(feature, Numeric):
        return generator.uniform(feature.low, feature.high, rows)
    n = len(feature.values)
    return generator.integers(0, n, rows, dtype=np.uint8 if n <= 256 else np.uint16)


def _replace_some(
    column: NDArray[Any], feature: Feature, p_noise: float, generator: np.random.Generator
) -> None:
    places = np.flatnonzero(generator.random(len(column)) < p_noise)
    column[places] = _uniform(feature, len(places), generator)


def _labels(tree: Tree, columns: dict[str, NDArray[Any]], rows: int) -> NDArray[np.intp]:
    """Return the position of each record's class."""
    answers = tree.values.argmax(axis=1)
    labels = np.empty(rows, dtype=np.intp)
    for start in range(0, rows, _BLOCK):
        block = slice(start, min(start + _BLOCK, rows))
        matrix = np.empty((block.stop - start, len(tree.used)))
        for j, name in enumerate(tree.used):
            matrix[:, j] = columns[name][block]
        labels[block] = answers[tree.route(matrix)]
    return labels
