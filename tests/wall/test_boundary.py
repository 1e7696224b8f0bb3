"""The wall in the source: who may import what (architecture.md, "The rooms")."""

import ast
from pathlib import Path

import pytest

import privet
from privet.tables import Cells, PrivateCells

PACKAGE = Path(privet.__file__).parent

# Which rooms of privet each room may touch. Anything not listed here is refused.
MAY_TOUCH = {
    "errors": set(),
    "outputs": {"errors"},
    "visible": set(),
    "grids": set(),
    "schema": {"errors", "grids", "reading", "outputs", "visible"},  # reading: drafting only
    "reading": {"errors", "schema", "reading", "visible"},
    "criteria": {"errors"},
    "privacy": {"errors", "grids", "privacy", "visible"},
    "tables": {"errors", "schema", "reading", "criteria", "privacy", "tables"},
    "tree": {"errors", "schema", "reading"},
    "ensemble": {"errors", "schema", "reading", "tree"},
    "model": {"errors", "schema", "privacy", "tree", "ensemble", "outputs"},
    "learners": {
        "criteria",
        "schema",
        "tables",
        "tree",
        "ensemble",
        "privacy.budget",
        "privacy.coins",
        "errors",
        "learners",
    },
    "federation": {"errors", "schema", "criteria", "privacy", "tables", "federation"},
    "estimators": {
        "federation",
        "errors",
        "schema",
        "reading",
        "criteria",
        "privacy",
        "tables",
        "tree",
        "ensemble",
        "model",
        "outputs",
        "learners",
        "estimators",
    },
    # what papers compare with: learners and their faces in one place
    "baselines": {
        "errors",
        "schema",
        "criteria",
        "privacy",
        "tables",
        "tree",
        "ensemble",
        "learners",
        "estimators",
        "baselines",
    },
    "export": {"errors", "schema", "tree", "ensemble", "export", "reading", "visible"},
    "audit": {  # everything, from outside
        "errors",
        "schema",
        "reading",
        "privacy",
        "tree",
        "ensemble",
        "model",
        "estimators",
        "audit",
        "criteria",
        "tables",
        "federation",
    },
    # learners: what the public rules of the flagship and of TopDown say
    "planning": {
        "errors",
        "schema",
        "criteria",
        "federation.mpc",  # how large a secret choice may be
        "privacy",
        "learners",
        "learners.whole_trees",
        "planning",
    },
    "robustness": {"errors", "reading", "privacy", "ensemble", "model", "export", "robustness"},
    "datasets": {"schema", "tree"},  # tree: the truth behind random records
    "cli": {
        "errors",
        "schema",
        "reading",
        "privacy",
        "tree",
        "ensemble",
        "model",
        "estimators",
        "export",
        "datasets",
        "audit",
        "planning",
        "robustness",
        "outputs",
        "visible",
        "cli",
        "__version__",
    },
    "__main__": {"cli"},
}
#: Outside the wall only public names of these two rooms may be imported, never their engines.
WALLED = {
    "tables": {"tables"},
    "privacy": {"privacy", "privacy.budget", "privacy.coins", "privacy.ledger"},
}
RANDOM = ("random", "secrets", "opendp", "numpy.random", "uuid")


def imports(path):
    """Yield every imported dotted name, ``from a import b`` as ``a.b`` too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


SOURCES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_touches_only_what_it_may(path):
    room = room_of(path)
    allowed = MAY_TOUCH[room]
    for name in imports(path):
        if not name.startswith("privet."):
            continue
        inner = name.removeprefix("privet.")
        assert any(inner == a or inner.startswith(f"{a}.") for a in allowed), (
            f"{room} must not import {name}"
        )
        for walled, doors in WALLED.items():
            if inner.split(".")[0] == walled and room not in ("tables", "privacy"):
                module = inner.rpartition(".")[0]
                assert module in doors, f"{room} reaches behind the wall: {name}"


@pytest.mark.parametrize(
    "path",
    [
        p
        for p in SOURCES
        if room_of(p) in ("learners", "estimators", "baselines", "export", "cli", "model")
    ],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_only_the_privacy_room_and_the_datasets_draw_random_numbers(path):
    text = path.read_text()
    for name in imports(path):
        assert not any(name == r or name.startswith(f"{r}.") for r in RANDOM), name
    assert "default_rng" not in text
    assert "np.random" not in text


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if room_of(p) == "learners" or p.match("baselines/_learners.py")],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_learners_touch_no_private_name_of_the_tables(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise AssertionError(f"{path.name} uses the private attribute {node.attr}")


#: What a party's shares are made of: not for publishing, so only one room may ask for it.
MPC_DOORS = {"mpc_noisy_counts", "mpc_exact_counts"}


def uses(path, names):
    """Return which names a source has as attributes, as imports or as texts."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found & names


def test_only_the_parties_mpc_uses_the_doors_for_it():
    users = {str(path.relative_to(PACKAGE)) for path in SOURCES if uses(path, MPC_DOORS)}
    assert users == {"federation/mpc/shares.py"}
    assert set(vars(PrivateCells)) >= MPC_DOORS
    assert not set(vars(Cells)) & MPC_DOORS  # no learner may ask


def test_the_check_of_doors_sees_a_breach(tmp_path):
    for number, text in enumerate(("cells.mpc_exact_counts()", "getattr(c, 'mpc_noisy_counts')")):
        bad = tmp_path / f"bad{number}.py"
        bad.write_text(text)
        assert uses(bad, MPC_DOORS)


def test_the_boundary_test_sees_a_breach(tmp_path):
    """It can fail: a learner that imports the engine or a generator is caught."""
    bad = tmp_path / "bad.py"
    bad.write_text("from privet.tables.memory import MemoryEngine\nimport numpy.random\n")
    found = list(imports(bad))
    assert "privet.tables.memory.MemoryEngine" in found
    assert found[0].removeprefix("privet.").rpartition(".")[0] not in WALLED["tables"]
    assert "numpy.random" in found
