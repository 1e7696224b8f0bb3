"""What the drawings show: merged trees in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.ensemble import Ensemble, Shape
from privet.export._merged import Answer, merged, trees_of
from privet.export._words import (
    branch_words,
    number,
    plural,
    score_words,
    signed,
    word,
)
from privet.schema import Schema
from privet.tree import Cut, Grouping, Node, Test, Tree
from privet.visible import visible


@dataclass(frozen=True)
class Verdict:
    """What a leaf says, or several leaves that give the same answer."""

    answer: Answer
    label: str
    #: The label, or as much of it as matters most: of several scores the highest.
    headline: str
    #: The answer's probability, ``"0.61 to 0.93"`` if leaves differ; empty for a mean and scores,
    #: and where leaves have a label only.
    probability: str
    #: What was released about the leaves, added up; empty if nothing was.
    counts: str
    n_leaves: int

    @property
    def details(self) -> list[str]:
        """What is known beside the label."""
        several = self.n_leaves > 1 and not isinstance(self.answer, tuple)
        leaves = f"{self.n_leaves} leaves" if several else ""
        return [text for text in (self.probability, leaves, self.counts) if text]


@dataclass(frozen=True)
class Entry:
    """A place in a drawing: a test, or a verdict."""

    #: How the parent's test leads here: ``"age < 40"``. The tree's title at the root.
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


def outlines(model: Tree | Ensemble) -> list[list[Entry]]:
    """Return what to draw: the tree; or an ensemble's trees, by feature if it is additive."""
    trees, schema = trees_of(model), model.schema
    if isinstance(model, Tree):
        return [_outline(model, visible(schema.target))]
    if model.additive:
        shapes = model.shapes()
        return [_outline(shape_tree(shape, schema), visible(shape.feature)) for shape in shapes]
    return [_outline(tree, f"tree {place}") for place, tree in enumerate(trees, start=1)]


def shape_tree(shape: Shape, schema: Schema) -> Tree:
    """Return a shape as a tree of one test, whose last child is that of missing values."""
    rows = (*shape.scores.tolist(), shape.missing.tolist())
    if shape.edges is None:
        last = len(rows) - 1
        test: Test = Grouping(shape.feature, tuple(range(last)), other=last)
    else:
        test = Cut(shape.feature, shape.edges, missing=len(rows) - 1)
    root = Node(test, tuple(range(1, len(rows) + 1)))
    return Tree(schema, (root, *(Node(value=tuple(row)) for row in rows)), len(rows[0]))


def summary(ensemble: Ensemble) -> str:
    """Say of how many trees an ensemble consists and what their scores mean."""
    kind, schema = "additive model" if ensemble.additive else "ensemble", ensemble.schema
    if schema.classes is None:
        meaning = "the target, in its own units"
    elif len(schema.classes) == 2:
        meaning = f"the log odds of {word(schema.classes[1])}"
    else:
        meaning = "one score per class"
    return f"{kind} of {plural(len(ensemble.trees), 'tree')} whose scores add up to {meaning}"


def start_words(ensemble: Ensemble) -> str:
    """Return the scores to which the drawn trees add theirs."""
    scores = ensemble.base if ensemble.additive else ensemble.start
    return f"start: {score_words(scores, ensemble.schema)}"


def _outline(tree: Tree, title: str) -> list[Entry]:
    """Return the entries, parents before children, level by level."""
    parts = merged(tree)
    words = [(title, "")] * len(parts)
    for part in parts:
        if part.test is not None:
            branches = branch_words(part.test, tree.schema)
            for child, branch in zip(part.children, branches, strict=True):
                words[child] = branch
    entries = []
    for part, here in zip(parts, words, strict=True):
        if part.test is None:
            assert part.answer is not None
            verdict = _verdict(tree, part.places, part.answer)
            entries.append(Entry(*here, "", "", verdict, ()))
        else:
            counts = _counts([tree.nodes[part.places[0]]], tree.schema)
            feature = visible(part.test.feature)
            entries.append(Entry(*here, feature, counts, None, part.children))
    return entries


def _verdict(tree: Tree, places: Sequence[int], answer: Answer) -> Verdict:
    leaves = _leaves_below(tree, places)
    counts = _counts(leaves, tree.schema)
    if isinstance(answer, tuple):
        label = headline = score_words(answer, tree.schema)
        if len(answer) > 1:
            assert tree.schema.classes is not None
            best = answer.index(max(answer))
            headline = f"{word(tree.schema.classes[best])} {signed(answer[best])}"
        return Verdict(answer, label, headline, "", counts, len(leaves))
    if tree.schema.classes is None:
        return Verdict(answer, number(answer), number(answer), "", counts, len(leaves))
    assert isinstance(answer, int)
    shares = [f"{leaf.value[answer]:.2f}" for leaf in leaves]
    low, high = min(shares), max(shares)
    probability = low if low == high else f"{low} to {high}"
    if all(leaf.value[answer] == 1 for leaf in leaves):
        probability = ""  # a drawn label, not an estimate
    label = word(tree.schema.classes[answer])
    return Verdict(answer, label, label, probability, counts, len(leaves))


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
