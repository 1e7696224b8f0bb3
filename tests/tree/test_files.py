"""Model files: what is written is read back, and whatever else is read is refused politely."""

import copy
import json
import pickle
from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import privet
from privet.errors import ModelFileError, OutputError
from privet.model import MAX_ENTRIES, MAX_TEXTS, Model, PrivacyCard
from privet.privacy import (
    Cost,
    Entry,
    MechanismFacts,
    MechanismKind,
    NoisyCount,
    Place,
    Question,
    QuestionKind,
)
from privet.schema import Categorical, Numeric, Schema
from privet.tree import Cut, Grouping, Node, Tree

from .strategies import trees, trees_with_tables

CARD = PrivacyCard(
    epsilon=1.0,
    delta=0.0,
    requested_epsilon=1.0,
    requested_delta=0.0,
    rho=0.5,
    adjacency="add or remove one record",
    replace_one_epsilon=2.0,
    accountant="pure",
    private=True,
    warnings=(),
    notes=("numbers were clipped",),
    rows_declared=True,
    seeded=False,
    protocol=None,
    entries=(
        Entry(
            Question(QuestionKind.CLASS_COUNTS),
            Place(1),
            4,
            MechanismFacts(MechanismKind.DISCRETE_LAPLACE, Fraction(1)),
            Cost.pure(Fraction(1)),
        ),
    ),
)
SCHEMA = Schema(
    {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])}, "readmitted", classes=["no", "yes"]
)
TREE = Tree(
    SCHEMA,
    (
        Node(Cut("age", (40.0, 65.0), 0), (1, 2, 3), released={"count": 118}),
        Node(value=(0.25, 0.75), released={"class_counts": (-3, 12)}),
        Node(Grouping("sex", (0, 1), 1), (4, 5)),
        Node(value=(0.5, 0.5)),
        Node(value=(1.0, 0.0)),
        Node(value=(0.0, 1.0)),
    ),
)
MODEL = Model(TREE, CARD, "diffpid3")


def document() -> dict:
    return json.loads(json.dumps(MODEL.to_dict()))


def refusal(path) -> str:
    with pytest.raises(ModelFileError) as caught:
        privet.load(path)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 300
    return message


# ------------------------------------------------------------------------------- what is written


@settings(deadline=None)
@given(trees_with_tables())
def test_round_trip_of_trees(case):
    tree, table = case
    plain = json.loads(json.dumps(tree.to_dict(), allow_nan=False))
    again = Tree.from_dict(plain, tree.schema)
    assert again == tree
    assert again.to_dict() == tree.to_dict()
    assert_array_equal(again.apply(table), tree.apply(table))


@settings(deadline=None)
@given(trees())
def test_round_trip_of_model_files(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("models") / "model.json"
    model = Model(tree, CARD, "some learner")
    model.save(path)
    again = privet.load(path)
    assert again == model
    assert again.schema == tree.schema
    assert [type(c) for c in again.schema.classes or ()] == [
        type(c) for c in tree.schema.classes or ()
    ]


@settings(deadline=None)
@given(trees())
def test_trees_can_be_pickled_and_copied(tree):
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == tree


def test_saving_replaces_a_file_completely_or_not_at_all(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    MODEL.save(path)
    assert privet.load(path) == MODEL
    with pytest.raises(OutputError, match="folder does not exist"):
        MODEL.save(tmp_path / "nowhere" / "model.json")
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_predictions_after_loading(tmp_path):
    MODEL.save(tmp_path / "m.json")
    rows = [[30, "f"], [50, "f"], [50, "m"], [50, None], [None, "f"]]
    loaded = privet.load(tmp_path / "m.json")
    table = {"age": [r[0] for r in rows], "sex": [r[1] for r in rows]}
    assert loaded.predict(pl.DataFrame(table)).tolist() == ["yes", "no", "yes", "yes", "yes"]
    assert loaded.predict_proba(pl.DataFrame(table))[0].tolist() == [0.25, 0.75]


# ---------------------------------------------------------------------------------- immutability


def test_nothing_in_a_tree_can_be_changed():
    node = TREE.nodes[0]
    for thing, name in [(TREE, "nodes"), (TREE, "schema"), (node, "value"), (node.test, "edges")]:
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, ())
    with pytest.raises(TypeError):
        node.released["count"] = 0  # type: ignore[index]
    assert isinstance(TREE.nodes, tuple)


def test_a_tree_keeps_its_own_copies():
    counts = {"count": 3}
    nodes = [Node(value=(0.5, 0.5), released=counts)]
    tree = Tree(SCHEMA, nodes)  # type: ignore[arg-type]
    counts["count"] = 4
    nodes.append(Node())
    assert tree.nodes == (Node(value=(0.5, 0.5), released={"count": 3}),)


# ------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not JSON",
        json.dumps(document())[:-20].encode(),
        b"\xff\xfe\x00",
        json.dumps(document()).encode("utf-16"),
        b"\xef\xbb\xbf" + json.dumps(document()).encode(),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[1, 2]",
        b"null",
        b'"privet-model"',
        b"{}",
        b"1" * 10_000,
        b"NaN",
        json.dumps(document()).replace("0.25", "NaN").encode(),
        json.dumps(document()).replace("0.25", "Infinity").encode(),
        json.dumps(document()).replace("0.25", "-Infinity").encode(),
        json.dumps(document()).replace("0.25", "1e999").encode(),
        json.dumps(document()).replace("0.25", "1" * 5_000).encode(),
        json.dumps(document()).replace("0.25", "[" * 900 + "]" * 900).encode(),
    ],
    ids=lambda content: repr(content[:12]),
)
def test_files_that_are_no_models(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    refusal(path)


def test_places_that_are_no_files(tmp_path):
    assert "cannot read" in refusal(tmp_path)
    assert "cannot read" in refusal(tmp_path / "missing.json")
    refusal("nul\0name")


def test_nan_gets_its_own_message(tmp_path):
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(document()).replace("0.25", "NaN"))
    assert "NaN" in refusal(path)


def test_files_of_absurd_size_are_not_even_read(tmp_path, monkeypatch):
    monkeypatch.setattr("privet.model.MAX_BYTES", 100)
    MODEL.save(tmp_path / "m.json")
    assert "too large" in refusal(tmp_path / "m.json")


HUGE = 10**400
DEEP: list = []
for _ in range(500):
    DEEP = [DEEP]

# Where in the document, what to put there (DELETE: take it away), and a word of the message.
DELETE = object()
BAD_FIELDS = [
    ("format", "other", "not a Privet model"),
    ("format", DELETE, "not a Privet model"),
    ("version", 5, "newer Privet"),
    ("version", 10**30, "version 1000"),
    ("version", "1", "which version"),
    ("version", True, "which version"),
    ("version", 1.0, "which version"),
    ("version", DEEP, "which version"),
    ("version", DELETE, "which version"),
    ("extra", 1, "does not know"),
    ("learner", DELETE, "learner"),
    ("learner", 3, "learner"),
    ("privacy", DELETE, "privacy card"),
    ("privacy", [], "privacy card"),
    ("privacy.extra", 1, "privacy card"),
    ("privacy.epsilon", DELETE, "privacy card"),
    ("privacy.epsilon", -1, "number"),
    ("privacy.epsilon", True, "number"),
    ("privacy.epsilon", "1", "number"),
    ("privacy.epsilon", HUGE, "too large"),
    ("privacy.private", 1, "yes or no"),
    ("privacy.adjacency", 1, "text"),
    ("privacy.warnings", "none", "list"),
    ("privacy.notes.0", None, "text"),
    ("privacy.entries", {}, "ledger"),
    ("privacy.entries.0", [], "ledger"),
    ("privacy.entries.0.cells", True, "ledger"),
    ("privacy.entries.0.extra", 1, "ledger"),
    ("schema", DELETE, "schema"),
    ("schema", 5, "schema"),
    ("schema.extra", 1, "unknown key"),
    ("schema.classes", DELETE, "classes"),
    ("schema.classes", ["no"], "two classes"),
    ("schema.classes", ["no", "no"], "twice"),
    ("schema.classes", [0, HUGE], "schema is wrong"),
    ("schema.bounds", [0, HUGE], "target"),
    ("schema.features", {}, "feature"),
    ("schema.features.age.low", HUGE, "schema is wrong"),
    ("schema.features.age.low", 500, "low < high"),
    ("schema.features.age.bins", 10**9, "bins"),
    ("schema.features.age.bins", 1.5, "bins"),
    ("schema.features.age", DELETE, "numeric feature"),
    ("schema.features.sex.values", [], "at least one"),
    ("schema.features.sex.values", ["f"], "all its categories"),
    ("schema.features.sex.values", [["f"], "m"], "text, numbers"),
    ("tree", DELETE, "tree"),
    ("tree.nodes", [], "at least one node"),
    ("tree.nodes", {}, "nodes"),
    ("tree.extra", 1, "does not know"),
    ("tree.nodes.0", [], "node"),
    ("tree.nodes.0.extra", 1, "does not know"),
    ("tree.nodes.0.cut", None, "cut"),
    ("tree.nodes.0.cut.extra", 1, "does not know"),
    ("tree.nodes.0.cut.feature", "weight", "numeric feature"),
    ("tree.nodes.0.cut.feature", "sex", "numeric feature"),
    ("tree.nodes.0.cut.feature", ["age"], "feature"),
    ("tree.nodes.0.cut.edges", [65, 40], "increase"),
    ("tree.nodes.0.cut.edges", [40, 40], "increase"),
    ("tree.nodes.0.cut.edges", [40, 121], "bounds"),
    ("tree.nodes.0.cut.edges", [0, 40], "bounds"),
    ("tree.nodes.0.cut.edges", [40], "fit together"),
    ("tree.nodes.0.cut.edges", [], "does not exist"),
    ("tree.nodes.0.cut.edges", [True, 40], "number"),
    ("tree.nodes.0.cut.edges", ["40", 65], "number"),
    ("tree.nodes.0.cut.edges", [40, HUGE], "too large"),
    ("tree.nodes.0.cut.edges", DEEP, "number"),
    ("tree.nodes.0.cut.missing", -1, "does not exist"),
    ("tree.nodes.0.cut.missing", 4, "does not exist"),
    ("tree.nodes.0.cut.missing", 2**62, "does not exist"),
    ("tree.nodes.0.cut.missing", 3, "fit together"),
    ("tree.nodes.0.cut.missing", True, "whole number"),
    ("tree.nodes.0.cut.missing", 0.0, "whole number"),
    ("tree.nodes.0.grouping", {"feature": "sex", "children": [0, 1], "other": 1}, "does not know"),
    ("tree.nodes.0.children", [0, 1, 2], "form a tree"),
    ("tree.nodes.0.children", [1, 1, 3], "form a tree"),
    ("tree.nodes.0.children", [1, 2, 5], "form a tree"),
    ("tree.nodes.0.children", [-1, 2, 3], "form a tree"),
    ("tree.nodes.0.children", [1, 2, 6], "form a tree"),
    ("tree.nodes.0.children", [1, 2, 2**62], "form a tree"),
    ("tree.nodes.0.children", [1, 2, HUGE], "whole number"),
    ("tree.nodes.0.children", [1, 2], "fit together"),
    ("tree.nodes.0.children", [True, 2, 3], "whole number"),
    ("tree.nodes.0.children", DELETE, "fit together"),
    ("tree.nodes.0.value", [0.5, 0.5], "only leaves"),
    ("tree.nodes.2.children", [0, 5], "form a tree"),
    ("tree.nodes.2.grouping.extra", 1, "does not know"),
    ("tree.nodes.2.grouping.children", [], "categories"),
    ("tree.nodes.2.grouping.children", [0], "all its categories"),
    ("tree.nodes.2.grouping.children", [0, 3], "needs a category"),
    ("tree.nodes.2.grouping.children", [0, 2**62], "needs a category"),
    ("tree.nodes.2.grouping.children", [-1, 0], "needs a category"),
    ("tree.nodes.2.grouping.other", 2, "fit together"),
    ("tree.nodes.2.grouping.other", 2**62, "needs a category"),
    ("tree.nodes.2.grouping.other", None, "whole number"),
    ("tree.nodes.2.grouping.feature", "age", "categorical feature"),
    ("tree.nodes.1.value", [0.25], "one value per class"),
    ("tree.nodes.1.value", [0.25, 0.25, 0.5], "one value per class"),
    ("tree.nodes.1.value", [0.25, 0.7], "add up to one"),
    ("tree.nodes.1.value", [-0.25, 1.25], "add up to one"),
    ("tree.nodes.1.value", [False, True], "number"),
    ("tree.nodes.1.value", DELETE, "one value per class"),
    ("tree.nodes.1.value", "01", "numbers"),
    ("tree.nodes.1.children", [2], "form a tree"),
    ("tree.nodes.1.released", 5, "released"),
    ("tree.nodes.1.released.class_counts", [1.5, 2], "whole number"),
    ("tree.nodes.1.released.class_counts", [HUGE, 2], "whole number"),
    ("tree.nodes.1.released.class_counts", {"a": 1}, "whole number"),
    ("tree.nodes.1.released.count", True, "whole number"),
    ("tree.nodes.6", {"value": [0.5, 0.5]}, "no parent"),
]


def put(plain: dict, where: str, what) -> None:
    *path, last = where.split(".")
    place = plain
    for step in path:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if isinstance(place, list):
        place[int(last) : int(last) + 1] = [] if what is DELETE else [what]
    elif what is DELETE:
        del place[last]
    else:
        place[last] = what


@pytest.mark.parametrize(
    ("where", "what", "says"), BAD_FIELDS, ids=lambda v: str(v)[:30] if v is not DELETE else "-"
)
def test_one_wrong_field(tmp_path, where, what, says):
    plain = document()
    put(plain, where, what)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(plain))
    assert says in refusal(path)


# ---------------------------------------------------------------------------------------- fuzzing

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.sampled_from([2**31, 2**62, -(2**63), 2**64, 10**30, HUGE]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.sampled_from(["age", "sex", "no", "inf", "numeric", "categorical"]),
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(plain, path=()):
    """Yield the path of everything in a document."""
    if path:
        yield path
    if isinstance(plain, dict | list):
        for key in plain if isinstance(plain, dict) else range(len(plain)):
            yield from places(plain[key], (*path, key))


PLACES = list(places(document()))


@settings(deadline=None)
@given(st.data())
def test_any_change_loads_or_is_refused(data):
    plain = document()
    for *path, last in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        place = plain
        try:
            for step in path:
                place = place[step]
            place[last]
        except (LookupError, TypeError):
            continue  # an earlier change took the place away
        change = data.draw(st.sampled_from(["replace", "delete", "add", "copy"]))
        if change == "replace":
            place[last] = data.draw(PLAIN)
        elif change == "delete":
            del place[last]
        elif change == "copy":
            source = data.draw(st.sampled_from(PLACES))
            copied = document()
            for step in source:
                copied = copied[step]
            place[last] = copied
        elif isinstance(place, list):
            place.insert(last, data.draw(PLAIN))
        else:
            place[data.draw(st.text(max_size=3))] = data.draw(PLAIN)
    try:
        model = Model.from_dict(plain)
    except ModelFileError:
        return
    assert Model.from_dict(json.loads(json.dumps(model.to_dict()))) == model


@settings(deadline=None)
@given(st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 3))
def test_any_damaged_bytes_load_or_are_refused(tmp_path_factory, position, inserted, removed):
    content = json.dumps(MODEL.to_dict()).encode()
    position %= len(content)
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(content[:position] + inserted + content[position + removed :])
    with suppress(ModelFileError):
        privet.load(path)


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("privacy.epsilon", "inf"),
        ("privacy.seeded", True),
        ("privacy.warnings", ["everything leaked"]),
        ("schema.draft", True),
    ],
)
def test_a_card_that_contradicts_itself_is_refused(tmp_path, where, what):
    plain = document()
    put(plain, where, what)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(plain))
    assert "contradicts itself" in refusal(path)


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    text = json.dumps(document())
    path = tmp_path / "model.json"
    path.write_text(text.replace('"epsilon": 1.0', '"epsilon": "inf", "epsilon": 1.0', 1))
    assert "twice" in refusal(path)


@pytest.mark.parametrize(("field", "most"), [("notes", MAX_TEXTS), ("entries", MAX_ENTRIES)])
def test_absurdly_long_cards_are_refused(tmp_path, field, most):
    plain = document()
    plain["privacy"][field] = plain["privacy"][field][:1] * (most + 1)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(plain))
    assert "card" in refusal(path)


COUNTED = replace(CARD, counts=(NoisyCount((7,), 1.5), NoisyCount((-2, 9), 0.0)), declared_rows=20)


def test_numbers_of_records_are_kept(tmp_path):
    model = Model(TREE, COUNTED, "tree")
    model.save(tmp_path / "model.json")
    assert privet.load(tmp_path / "model.json") == model
    assert not {"counts", "declared_rows"} & set(CARD.to_dict())
    assert set(COUNTED) == set(CARD)
    plain = COUNTED.to_dict()
    assert plain["counts"] == [
        {"values": [7], "deviation": 1.5},
        {"values": [-2, 9], "deviation": 0.0},
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"counts": []},
        {"counts": {}},
        {"counts": [{"values": [1], "deviation": 1.0}] * 3},
        {"counts": [{"values": [], "deviation": 1.0}]},
        {"counts": [{"values": [1, 2, 3], "deviation": 1.0}]},
        {"counts": [{"values": [1.5], "deviation": 1.0}]},
        {"counts": [{"values": [True], "deviation": 1.0}]},
        {"counts": [{"values": [10**30], "deviation": 1.0}]},
        {"counts": [{"values": [1], "deviation": -1.0}]},
        {"counts": [{"values": [1], "deviation": "inf"}]},
        {"counts": [{"values": [1]}]},
        {"declared_rows": 0},
        {"declared_rows": "many"},
        {"rows_declared": False},
        {"more": 1},
    ],
)
def test_damaged_numbers_of_records_are_refused(change):
    plain = Model(TREE, COUNTED, "tree").to_dict()
    plain["privacy"] |= change
    with pytest.raises(ModelFileError):
        Model.from_dict(plain)
