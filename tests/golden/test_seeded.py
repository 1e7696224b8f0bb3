"""Seeded models stay what they are, byte for byte, whatever moves behind them."""

import inspect
import json

import pytest

import privet
from privet import baselines, estimators

from .seeded import CASES, FOLDER, PROCESSOR, check, first_difference, processor, write

ALIKE = json.loads((FOLDER / PROCESSOR).read_text()) == processor()
#: Options that are not the learner's own, or that a case gives in another way.
COMMON = {"schema", "ledger", "random_state", "test_share", "test_by", "verbose"}


@pytest.mark.parametrize("name", CASES)
def test_byte_for_byte(name, tmp_path):
    path = tmp_path / "model.json"
    write(CASES[name], path)
    check(name, (FOLDER / f"{name}.json").read_bytes(), path.read_bytes(), alike=ALIKE)


def test_files_and_catalogue_are_the_same():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)


def learners():
    rooms = ((room, name) for room in (estimators, baselines) for name in room.__all__)
    return [getattr(room, name) for room, name in rooms]


@pytest.mark.parametrize("learner", learners(), ids=lambda learner: learner.__name__)
def test_every_learner_and_option_is_there(learner):
    """Whoever adds a learner, or an option, adds a case."""
    cases = [case for case in CASES.values() if case.make is learner]
    assert cases
    for name, parameter in inspect.signature(learner).parameters.items():
        if name in COMMON:
            continue
        given = [case.options.get(name, parameter.default) for case in cases]
        assert any(value != parameter.default for value in given), f"no case for {name}"


def test_a_difference_is_named():
    known = (FOLDER / "tree.json").read_bytes()
    plain = json.loads(known)
    check("tree", known, known, alike=True)
    plain["privacy"]["epsilon"] += 1e-15
    found = json.dumps(plain).encode()
    with pytest.raises(AssertionError, match=r"privacy\.epsilon is 1\.000000000000001, not 1\.0"):
        check("tree", known, found, alike=True)
    check("tree", known, found, alike=False)
    plain["privacy"]["entries"].append(None)
    with pytest.raises(AssertionError, match=r"length of privacy\.entries is 5, not 4"):
        check("tree", known, json.dumps(plain).encode(), alike=False)
    with pytest.raises(AssertionError, match="only the writing differs"):
        check("tree", known, known + b"\n", alike=True)
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == "a[1].b is 3, not 2"
    assert first_difference({"a": 1}, {"b": 1}) is not None
    assert first_difference({"a": 1}, {"a": True}) == "a is True, not 1"


def test_files_can_be_read():
    for name in CASES:
        assert privet.load(FOLDER / f"{name}.json").privacy.private is False or "federated" in name
