"""Every document that is cited is in the repository: nobody needs another one to read the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A name of a document, in prose, code or a link; not one that a program is told to write.
NAME = re.compile(r"[\w./*-]*\w\.md\b")
#: Documents of the design that were never in the repository; ours of these names are elsewhere.
ABSENT = {"utility.md", "privacy.md", "units.md", "style.md", "utility2.md"}
CODE = [p for room in ("src", "tests") for p in sorted((ROOT / room).rglob("*.py"))]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
PAGES = sorted(p for room in ("docs", "benchmarks") for p in (ROOT / room).rglob("*.md"))
TOP = sorted(ROOT.glob("*.md"))


def homes(path: Path) -> list[Path]:
    """Return from where the names in a file may be read, the repository itself first."""
    if path in BENCHMARKS:  # they write their pages there
        return [ROOT, ROOT / "benchmarks" / "results"]
    return [ROOT, path.parent] if path.suffix == ".md" else [ROOT]


def dead(path: Path, text: str) -> set[str]:
    """Return the documents that a file cites and that are not there."""
    return {
        name
        for name in NAME.findall(text.replace('" / "', "/"))
        if not any(any(home.glob(name)) for home in homes(path) if not name.startswith("/"))
    }


@pytest.mark.parametrize(
    "path",
    [p for p in (*CODE, *BENCHMARKS, *PAGES, *TOP) if p != Path(__file__)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_document_that_is_cited_is_there(path):
    assert dead(path, path.read_text(encoding="utf-8")) == set()


def test_the_rules_name_what_the_code_has():
    cited = set(re.findall(r"`([A-Za-z]+_[A-Za-z_0-9]*)`", (ROOT / "docs/rules.md").read_text()))
    rooms = ("learners", "estimators", "privacy")
    text = " ".join(p.read_text() for r in rooms for p in (ROOT / "src/privet" / r).glob("*.py"))
    assert len(cited) > 40
    assert {name for name in cited if not re.search(rf"\b{name}\b", text)} == set()


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_it_would_be_seen(name):
    assert dead(CODE[0], f'"""See {name}, section 2."""') == {name}
    assert dead(ROOT / "docs" / "guide.md", f"(see [that]({name}))") == {name}
    assert dead(CODE[0], "docs/proofs/criteria.md") == set()
    assert dead(CODE[0], "docs/proofs/none.md") == {"docs/proofs/none.md"}
