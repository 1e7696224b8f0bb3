"""What the drawings show: merged trees in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privet.ensemble import Ensemble, Shape
from privet.export._merged import Answer, Part, merged, trees_of
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
    """What a leaf says, or several leaves that give the same answer, or a branch that is folded."""

    #: None if leaves of a folded branch differ.
    answer: Answer | None
    label: str
    #: The label, or as much of it as matters most: of several scores the highest.
    headline: str
    #: The answer's probability, ``"0.61 to 0.93"`` if leaves differ; empty for a mean and scores,
    #: and where leaves have a label only.
    probability: str
    #: What was released about the leaves, added up; empty if nothing was.
    counts: str
    n_leaves: int
    #: Whether these counts may be nothing but noise, as far as is known.
    within_noise: bool = False
    #: How many tests are not shown: those of a branch for missing or unknown values alone.
    folded: int = 0

    @property
    def details(self) -> list[str]:
        """What is known beside the label."""
        several = self.n_leaves > 1 and not isinstance(self.answer, tuple)
        leaves = f"{self.n_leaves} leaves" if several else ""
        noise = "no more than noise" if self.within_noise else ""
        folded = f"{plural(self.folded, 'test')} folded" if self.folded else ""
        return [t for t in (self.probability, leaves, folded, self.counts, noise) if t]


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


#: By name what a released number of a node may be off by (``Model.noise``).
Noise = Mapping[str, float]


def outlines(
    model: Tree | Ensemble, noise: Noise | None = None, *, fold: bool = True
) -> list[list[Entry]]:
    """Return what to draw: the tree; or an ensemble's trees, by feature if it is additive.

    Parameters
    ----------
    model : Tree or Ensemble
    noise : mapping, optional
        What released numbers may be off by.
    fold : bool, default=True
        Whether a branch for missing or unknown values alone becomes one place, without its tests.
    """
    trees, schema = trees_of(model), model.schema
    if isinstance(model, Tree):
        return [outline(model, visible(schema.target), noise, fold=fold)]
    if model.additive:
        shapes = model.shapes()
        return [outline(shape_tree(shape, schema), visible(shape.feature)) for shape in shapes]
    return [
        outline(tree, f"tree {place}", noise, fold=fold)
        for place, tree in enumerate(trees, start=1)
    ]


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
    if not ensemble.trees:
        return "a constant"
    kind, schema = "additive model" if ensemble.additive else "ensemble", ensemble.schema
    if schema.classes is None:
        meaning = "the target, in its own units"
    elif len(schema.classes) == 2:
        meaning = f"the log odds of {answer_words(schema)}"
    else:
        meaning = "one score per class"
    return f"{kind} of {plural(len(ensemble.trees), 'tree')} whose scores add up to {meaning}"


def answer_words(schema: Schema) -> str:
    """Return what the score of two classes speaks for: the target and its second class."""
    assert schema.classes is not None
    return f"{word(schema.target)} = {word(schema.classes[1])}"


def start_words(ensemble: Ensemble) -> str:
    """Return the scores to which the drawn trees add theirs."""
    scores = ensemble.base if ensemble.additive else ensemble.start
    return f"start: {score_words(scores, ensemble.schema)}"


def outline(
    tree: Tree, title: str, noise: Noise | None = None, *, fold: bool = True
) -> list[Entry]:
    """Return the entries of one tree, parents before children, level by level."""
    parts = merged(tree)
    words = [(title, "")] * len(parts)
    folded: set[int] = set()
    dropped = [False] * len(parts)
    for place, part in enumerate(parts):
        if part.test is None:
            continue
        branches = branch_words(part.test, tree.schema)
        for child, branch in zip(part.children, branches, strict=True):
            words[child] = branch
            dropped[child] = dropped[place] or place in folded
        lost = _of_missing_alone(part)
        if fold and lost is not None and parts[lost].test is not None:
            folded.add(lost)
    shown = [place for place in range(len(parts)) if not dropped[place]]
    position = {place: where for where, place in enumerate(shown)}
    entries = []
    for place in shown:
        part, here = parts[place], words[place]
        if part.test is None:
            assert part.answer is not None
            verdict = _verdict(tree, part.places, part.answer, noise)
            entries.append(Entry(*here, "", "", verdict, ()))
        elif place in folded:
            entries.append(Entry(*here, "", "", _folded(tree, parts, place, noise), ()))
        else:
            counts, _ = counts_words([tree.nodes[k] for k in part.places], tree.schema, noise)
            children = tuple(position[child] for child in part.children)
            entries.append(Entry(*here, visible(part.test.feature), counts, None, children))
    return entries


def _of_missing_alone(part: Part) -> int | None:
    """Return the child that nothing but missing or unknown values go to, if there is one."""
    test = part.test
    if isinstance(test, Cut):
        return part.children[test.missing] if test.missing == len(test.edges) + 1 else None
    assert isinstance(test, Grouping)
    return None if test.other in test.children else part.children[test.other]


def _folded(tree: Tree, parts: Sequence[Part], place: int, noise: Noise | None) -> Verdict:
    """Return what a branch says whose tests are not shown: all its answers at once."""
    tests, answers, waiting = 0, [], [place]
    while waiting:
        part = parts[waiting.pop()]
        waiting += part.children
        if part.answer is None:
            tests += 1
        else:
            answers.append(part.answer)
    leaves = _leaves_below(tree, parts[place].places)
    counts, within = counts_words(leaves, tree.schema, noise)
    label = _all_answers(answers, tree.schema)
    return Verdict(None, label, label, "", counts, len(leaves), within, tests)


def _all_answers(answers: Sequence[Answer], schema: Schema) -> str:
    """Return several answers in short: the classes among them, or the range of a number.

    Of several scores, the range over all classes.
    """
    if isinstance(answers[0], tuple):
        scores = [score for answer in answers if isinstance(answer, tuple) for score in answer]
        return f"{signed(min(scores))} to {signed(max(scores))}"
    if schema.classes is None:
        numbers = [answer for answer in answers if isinstance(answer, float)]
        return f"{number(min(numbers))} to {number(max(numbers))}"
    found = set(answers)
    return " or ".join(word(value) for k, value in enumerate(schema.classes) if k in found)


def _verdict(tree: Tree, places: Sequence[int], answer: Answer, noise: Noise | None) -> Verdict:
    leaves = _leaves_below(tree, places)
    counts, within = counts_words(leaves, tree.schema, noise)
    probability = ""
    if isinstance(answer, tuple):
        label = headline = score_words(answer, tree.schema)
        if len(answer) > 1:
            assert tree.schema.classes is not None
            best = answer.index(max(answer))
            headline = f"{word(tree.schema.classes[best])} {signed(answer[best])}"
    elif tree.schema.classes is None:
        label = headline = number(answer)
    else:
        assert isinstance(answer, int)
        shares = [f"{leaf.value[answer]:.2f}" for leaf in leaves]
        low, high = min(shares), max(shares)
        probability = low if low == high else f"{low} to {high}"
        if all(leaf.value[answer] == 1 for leaf in leaves):
            probability = ""  # a drawn label, not an estimate
        label = headline = word(tree.schema.classes[answer])
    return Verdict(answer, label, headline, probability, counts, len(leaves), within)


def _leaves_below(tree: Tree, places: Sequence[int]) -> list[Node]:
    leaves, waiting = [], list(places)
    while waiting:
        node = tree.nodes[waiting.pop()]
        waiting += node.children
        if node.test is None:
            leaves.append(node)
    return leaves


def counts_words(nodes: Sequence[Node], schema: Schema, noise: Noise | None) -> tuple[str, bool]:
    """Return released counts, added up over nodes that all have them.

    And whether their sum is no more than noise, as far as that is known.
    """
    released = [node.released.get("class_counts") for node in nodes]
    classes = schema.classes or ()
    rows = [row for row in released if isinstance(row, tuple) and len(row) == len(classes)]
    if classes and len(rows) == len(nodes):
        totals = [sum(column) for column in zip(*rows, strict=True)]
        listed = (f"{word(c)} {n}" for c, n in zip(classes, totals, strict=True))
        within = _is_noise(sum(totals), len(rows) * len(classes), noise, "class_counts")
        return f"noisy counts: {', '.join(listed)}", within
    sizes = [node.released.get("count") for node in nodes]
    whole = [size for size in sizes if isinstance(size, int)]
    if len(whole) < len(nodes):
        return "", False
    return f"noisy count: {sum(whole)}", _is_noise(sum(whole), len(whole), noise, "count")


def _is_noise(total: int, numbers: int, noise: Noise | None, name: str) -> bool:
    """Tell whether a sum of so many released numbers may be nothing but noise."""
    width = (noise or {}).get(name)
    return width is not None and total <= width * math.sqrt(numbers)
