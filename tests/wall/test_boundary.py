"""The wall in the source: who may import what (docs/architecture.md, "The rooms")."""

import ast
import re
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
    "fragments": {"visible"},
    "grids": set(),
    # reading: drafts, checks; tables: discovering only
    "schema": {"errors", "grids", "reading", "tables", "outputs", "visible", "fragments"},
    "kinds": {"errors", "schema", "outputs", "visible"},
    "metadata": {"errors", "schema", "kinds", "visible"},
    "reading": {"errors", "schema", "reading", "visible"},
    "criteria": {"errors"},
    "privacy": {"errors", "grids", "privacy", "visible", "fragments"},
    "engines": {"errors", "grids", "schema", "reading", "engines", "__version__"},
    "tables": {
        "errors",
        "grids",
        "schema",
        "kinds",
        "reading",
        "criteria",
        "privacy",
        "engines",
        "tables",
        "visible",
    },
    "tree": {"errors", "schema", "reading", "visible"},
    "ensemble": {"errors", "schema", "reading", "tree", "visible"},
    # tables: what a learner may ask, too
    "evaluation": {
        "errors",
        "schema",
        "tables",
        "tree",
        "ensemble",
        "privacy.budget",
        "evaluation",
        "pictures",  # in notebooks
    },
    "model": {
        "errors",
        "schema",
        "privacy",
        "tree",
        "ensemble",
        "evaluation",
        "outputs",
        "pictures",  # plots, and in notebooks
        "record",
        "report",  # a model's own page
        "visible",
    },
    "pictures": {
        "errors",
        "schema",
        "privacy",
        "tree",
        "ensemble",
        "evaluation",
        "record",
        "model",
        "export",
        "visible",
        "fragments",
        "pictures",
    },
    "record": {"errors", "__version__"},
    "report": {
        "errors",
        "schema",
        "privacy",
        "tree",
        "ensemble",
        "evaluation",
        "record",
        "model",
        "export",
        "pictures",
        "visible",
        "report",
        "__version__",
    },
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
    # Rows are a party's: a site hands it what reads them. runs: public choices, to be repeated.
    "network": {
        "errors",
        "schema",
        "outputs",
        "visible",
        "federation",
        "privacy",
        "model",  # signatures
        "network",
        "__version__",
    },
    # a coordinator and parties inside jobs of another engine; reading: for a party's own rows
    "flare": {
        "errors",
        "schema",
        "reading",
        "visible",
        "federation",
        "network",
        "model",
        "estimators",
        "flare",
    },
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
        "evaluation",
        "model",
        "record",
        "outputs",
        "pictures",
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
    "export": {
        "errors",
        "schema",
        "tree",
        "ensemble",
        "export",
        "reading",
        "visible",
        "__version__",
    },
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
        "kinds",
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
        "evaluation",
        "model",
        "tables",  # to encode rows
        "estimators",
        "export",
        "kinds",
        "metadata",
        "datasets",
        "audit",
        "planning",
        "report",
        "robustness",
        "network",
        "outputs",
        "visible",
        "cli",
        "__version__",
    },
    "__main__": {"cli"},
}
#: The rooms of the wall, and the modules through which others come in. Engines have none: whoever
#: needs a public type of theirs (a view, a split) finds it at the tables.
WALLED = {
    "engines": set(),
    "tables": {"tables"},
    "privacy": {"privacy", "privacy.budget", "privacy.coins", "privacy.ledger"},
}
#: Who may open any module of these rooms.
INSIDE = {
    "engines": {"engines", "tables"},
    "tables": {"tables"},
    "privacy": {"privacy", "tables"},
}
RANDOM = ("random", "secrets", "opendp", "numpy.random", "scipy.stats", "uuid")
#: Who draws random numbers: noise, invented records, attacks on models, the audit of all these, and
#: the keys of a federation.
DRAW = {"privacy", "datasets", "robustness", "audit", "federation"}
#: How a module could be found without an import that can be read here.
DYNAMIC = ("import_module", "__import__", "sys.modules", "importlib.reload", "exec(", "eval(")


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


def is_module(inner):
    """Tell whether a dotted name within privet is a module's, or what a module has."""
    place = PACKAGE.joinpath(*inner.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def breaches(room, names):
    """Return which imports of a room it may not have, and why."""
    found = []
    for name in names:
        if name == "privet":
            found.append(f"{room} must name what it needs of {name}")
        if (room, name) == ("engines", "uuid.uuid4"):
            continue  # by which workers tell the tables of two drivers apart
        if any(name == r or name.startswith(f"{r}.") for r in RANDOM) and room not in DRAW:
            found.append(f"{room} must not draw random numbers: {name}")
        if not name.startswith("privet."):
            continue
        inner = name.removeprefix("privet.")
        if not any(inner == a or inner.startswith(f"{a}.") for a in MAY_TOUCH[room]):
            found.append(f"{room} must not import {name}")
        home = inner.split(".")[0]
        if home in WALLED and room not in INSIDE[home]:
            opened = inner if is_module(inner) else inner.rpartition(".")[0]
            if opened not in WALLED[home]:
                found.append(f"{room} reaches behind the wall: {name}")
    return found


SOURCES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")
EACH_SOURCE = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))


def test_every_room_is_known():
    assert {room_of(path) for path in SOURCES} == set(MAY_TOUCH)
    for allowed in MAY_TOUCH.values():
        assert {name.split(".")[0] for name in allowed} <= {*MAY_TOUCH, "__version__"}
    assert {room for room, allowed in MAY_TOUCH.items() if "engines" in allowed} == {
        "engines",
        "tables",
    }


def test_the_document_has_these_rooms():
    """The table of docs/architecture.md, without what every room may touch of itself."""
    text = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    written = {room: set(re.findall(r"`([\w.]+)`", names)) for room, names in rows}
    assert len(written) == len(rows)
    assert written == {room: allowed - {room} for room, allowed in MAY_TOUCH.items()}


@EACH_SOURCE
def test_a_room_touches_only_what_it_may(path):
    assert breaches(room_of(path), imports(path)) == []


@EACH_SOURCE
def test_only_few_rooms_draw_random_numbers(path):
    text = path.read_text()
    if room_of(path) not in DRAW:
        assert "default_rng" not in text
        assert "np.random" not in text


@EACH_SOURCE
def test_no_module_is_found_without_an_import(path):
    text = path.read_text() if room_of(path) != "audit" else ""  # which takes everything apart
    assert not [word for word in DYNAMIC if re.search(rf"(?<![\w.]){re.escape(word)}", text)]


def test_the_package_leads_to_open_doors_only():
    """Names of the package itself are loaded on first use, from these modules."""
    for home in privet._HOME.values():
        room = home.removeprefix("privet.").split(".")[0]
        assert room not in WALLED or home.removeprefix("privet.") in WALLED[room], home


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


@pytest.mark.parametrize(
    ("room", "line", "why"),
    [
        ("learners", "from privet.engines.memory import memory_engine", "must not import"),
        ("learners", "from privet.engines import View", "must not import"),
        ("federation", "from privet.engines import View", "must not import"),
        ("tables", "from privet.engines.blocks import Block", None),
        ("learners", "from privet.tables.cells import behind_table", "behind the wall"),
        ("learners", "from privet.tables import private", "behind the wall"),
        ("estimators", "from privet.privacy.noise import SeededNoise", "behind the wall"),
        ("engines", "from privet.tables import PrivateTable", "must not import"),
        ("engines", "from privet.privacy import SecureNoise", "must not import"),
        ("engines", "import numpy.random", "random numbers"),
        ("tables", "from numpy.random import default_rng", "random numbers"),
        ("learners", "import privet", "must name"),
        ("learners", "def f():\n    from privet.engines import View", "must not import"),
    ],
)
def test_the_boundary_test_sees_a_breach(room, line, why, tmp_path):
    """It can fail: a learner that imports the engine or a generator is caught."""
    bad = tmp_path / "bad.py"
    bad.write_text(f"{line}\n")
    found = breaches(room, imports(bad))
    assert (found == []) if why is None else (why in " ".join(found))
