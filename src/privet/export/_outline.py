"""What the drawings show: the merged tree in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.export._merged import Answer, merged
from privet.schema import Schema, Value
from privet.tree import Cut, Grouping, Node, Test, Tree


@dataclass(frozen=True)
class Verdict:
    """What a leaf says, or several leaves that give the same answer."""

    answer: Answer
    label: str
    #: The answer's probability, ``"0.61 to 0.93"`` if leaves differ; empty for a mean, and where
    #: leaves have a label only.
    probability: str
    #: What was released about the leaves, added up; empty if nothing was.
    counts: str
    n_leaves: int

    @property
    def details(self) -> list[str]:
        """What is known beside the label."""
        merged = f"{self.n_leaves} leaves" if self.n_leaves > 1 else ""
        return [text for text in (self.probability, merged, self.counts) if text]


@dataclass(frozen=True)
class Entry:
    """A place in a drawing: a test, or a verdict."""

    #: How the parent's test leads here: ``"age < 40"``. The target's name at the root.
    condition: str
    #: The same without the feature's name: ``"< 40"``. Empty at the root.
    branch: str
    #: The name of the feature tested here; empty in a leaf.
    feature: str
    #: What was released about a test, such as ``"noisy count: 118"``.
    counts: str
    verdict: Verdict | None
    #: Positions in the outline.
    children: tuple[int, ...]


def outline(tree: Tree) -> list[Entry]:
    """Return what to draw, parents before children, level by level."""
    parts = merged(tree)
    words = [(printable(tree.schema.target), "")] * len(parts)
    for part in parts:
        for place, child in enumerate(part.children):
            assert part.test is not None
            words[child] = _words(part.test, place, tree.schema)
    entries = []
    for part, (condition, branch) in zip(parts, words, strict=True):
        if part.test is None:
            assert part.answer is not None
            verdict = _verdict(tree, part.places, part.answer)
            entries.append(Entry(condition, branch, "", "", verdict, ()))
        else:
            counts = _counts([tree.nodes[part.places[0]]], tree.schema)
            feature = printable(part.test.feature)
            entries.append(Entry(condition, branch, feature, counts, None, part.children))
    return entries


def printable(text: str) -> str:
    r"""Return text on one line, with control characters and the like written as escapes.

    Examples
    --------
    >>> print(printable("two\nlines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(value: float) -> str:
    """Return a number with four digits, or more if it has more before the point.

    Examples
    --------
    >>> number(40.0), number(100 / 3), number(123456.7)
    ('40', '33.33', '123457')
    """
    if not 1e4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    return f"{value:.0f}"


def _verdict(tree: Tree, places: Sequence[int], answer: Answer) -> Verdict:
    leaves = _leaves_below(tree, places)
    counts = _counts(leaves, tree.schema)
    if tree.schema.classes is None:
        return Verdict(answer, number(answer), "", counts, len(leaves))
    assert isinstance(answer, int)
    shares = [f"{leaf.value[answer]:.2f}" for leaf in leaves]
    low, high = min(shares), max(shares)
    probability = low if low == high else f"{low} to {high}"
    if all(leaf.value[answer] == 1 for leaf in leaves):
        probability = ""  # a drawn label, not an estimate
    label = word(tree.schema.classes[answer])
    return Verdict(answer, label, probability, counts, len(leaves))


def _leaves_below(tree: Tree, places: Sequence[int]) -> list[Node]:
    leaves, waiting = [], list(places)
    while waiting:
        node = tree.nodes[waiting.pop()]
        waiting += node.children
        if node.test is None:
            leaves.append(node)
    return leaves


def _counts(nodes: Sequence[Node], schema: Schema) -> str:
    """Return released counts, added up over nodes that all have them."""
    released = [node.released.get("class_counts") for node in nodes]
    classes = schema.classes or ()
    rows = [row for row in released if isinstance(row, tuple) and len(row) == len(classes)]
    if classes and len(rows) == len(nodes):
        totals = [sum(column) for column in zip(*rows, strict=True)]
        listed = (f"{word(c)} {n}" for c, n in zip(classes, totals, strict=True))
        return f"noisy counts: {', '.join(listed)}"
    sizes = [node.released.get("count") for node in nodes]
    whole = [size for size in sizes if isinstance(size, int)]
    return f"noisy count: {sum(whole)}" if len(whole) == len(nodes) else ""


def _words(test: Test, child: int, schema: Schema) -> tuple[str, str]:
    """Return the condition that leads to a child, with and without the feature's name."""
    if isinstance(test, Cut):
        return _interval_words(test, child)
    return _set_words(test, child, schema)


def _interval_words(test: Cut, child: int) -> tuple[str, str]:
    name, last = printable(test.feature), len(test.edges)
    if child > last:
        return f"{name} missing", "missing"
    texts = _edge_texts(test.edges)
    also = " or missing" if test.missing == child else ""
    if last == 0:
        return f"{name} not missing", "not missing"
    if child == 0:
        return f"{name} < {texts[0]}{also}", f"< {texts[0]}{also}"
    low = texts[child - 1]
    if child == last:
        return f"{name} >= {low}{also}", f"≥ {low}{also}"
    return f"{low} <= {name} < {texts[child]}{also}", f"{low} to {texts[child]}{also}"


def _edge_texts(edges: Sequence[float]) -> list[str]:
    """Return the edges with few digits, but enough to tell them apart."""
    texts = [number(edge) for edge in edges]
    return texts if len(set(texts)) == len(texts) else [repr(float(edge)) for edge in edges]


def _set_words(test: Grouping, child: int, schema: Schema) -> tuple[str, str]:
    values = schema.features[test.feature].values  # type: ignore[union-attr]
    name = printable(test.feature)
    inside = [word(v) for v, goes_to in zip(values, test.children, strict=True) if goes_to == child]
    if not inside:
        return f"{name} other or missing", "other or missing"
    also = ", other or missing" if test.other == child else ""
    listed = ", ".join(inside)
    return f"{name} in {{{listed}}}{also}", f"{listed}{also}"


def word(value: Value) -> str:
    """Return a category or class so that it can stand in a list."""
    text = printable(str(value))
    plain = text == text.strip() != "" and not set(text) & set(',{}"')
    return text if plain else '"' + text.replace('"', '\\"') + '"'
