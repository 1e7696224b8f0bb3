"""The tree with fewer branches and the same answers: what all exports show or write.

Multiway trees have many leaves that say the same. Here a subtree whose leaves all give one answer
becomes one leaf, and sibling leaves with one answer become one: intervals if they touch, categories
always. Which answer a row gets does not change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from privet.ensemble import Ensemble
from privet.export._limits import check_size
from privet.tree import Cut, Grouping, Node, Test, Tree

#: A class, by its position in the schema's list; or a mean; or the scores of an ensemble's tree.
Answer = int | float | tuple[float, ...]


@dataclass(frozen=True)
class Part:
    """A test with children, or leaves with one answer.

    ``children`` are positions in the list of parts, ``places`` the nodes of the tree that the part
    stands for (with all that is below them, if there is an answer).
    """

    test: Test | None
    children: tuple[int, ...]
    places: tuple[int, ...]
    answer: Answer | None


def trees_of(model: Tree | Ensemble, copies: int = 1) -> tuple[Tree, ...]:
    """Return the trees to export, and refuse one that does not predict by itself.

    Parameters
    ----------
    model : Tree or Ensemble
    copies : int, default=1
        How often the form writes each tree; what would be too long is refused.
    """
    check_size(model, copies)
    if isinstance(model, Ensemble):
        return model.trees
    if model.scores:
        raise ValueError("a tree of scores predicts nothing by itself; export its ensemble")
    return (model,)


def merged(tree: Tree) -> list[Part]:
    """Return the parts, the root first and level by level."""
    answers = _shared_answers(tree)
    parts: list[Part] = []
    waiting: deque[tuple[int, ...]] = deque([(0,)])
    while waiting:
        places = waiting.popleft()
        while len(places) == len(tree.nodes[places[0]].children) == 1:  # a test with one outcome
            places = tree.nodes[places[0]].children
        node, answer = tree.nodes[places[0]], answers[places[0]]
        if node.test is None or answer is not None:
            parts.append(Part(None, (), places, answer))
            continue
        groups = _groups(node.test, [answers[child] for child in node.children])
        first = len(parts) + len(waiting) + 1
        children = tuple(range(first, first + len(groups)))
        parts.append(Part(_with_groups(node.test, groups), children, places, None))
        waiting += [tuple(node.children[child] for child in group) for group in groups]
    return parts


def _shared_answers(tree: Tree) -> list[Answer | None]:
    """Return, for every node, the answer that all leaves below it give; None if they differ."""
    answers: list[Answer | None] = [None] * len(tree.nodes)
    for place in reversed(range(len(tree.nodes))):  # children come after their parents
        node = tree.nodes[place]
        if node.test is None:
            answers[place] = _leaf_answer(tree, node)
        else:
            below = {answers[child] for child in node.children}
            answers[place] = below.pop() if len(below) == 1 else None
    return answers


def _leaf_answer(tree: Tree, leaf: Node) -> Answer:
    if tree.scores:
        return tuple(float(score) for score in leaf.value)
    if tree.schema.classes is None:
        return float(leaf.value[0])
    return leaf.value.index(max(leaf.value))  # the first of equally probable classes


def _groups(test: Test, answers: Sequence[Answer | None]) -> list[list[int]]:
    """Return the children in the groups that become one."""
    groups: list[list[int]] = []
    latest: dict[Answer, list[int]] = {}  # the group to join, by answer
    for child, answer in enumerate(answers):
        if answer is not None and answer in latest:
            latest[answer].append(child)
            continue
        groups.append([child])
        if isinstance(test, Cut):
            latest.clear()  # only neighbours are merged
        if answer is not None:
            latest[answer] = groups[-1]
    return groups


def _with_groups(test: Test, groups: Sequence[Sequence[int]]) -> Test:
    """Return the test that leads to the groups as the given one leads to their members.

    Examples
    --------
    >>> _with_groups(Cut("age", (20.0, 40.0, 60.0), missing=4), [[0, 1], [2], [3, 4]])
    Cut(feature='age', edges=(40.0, 60.0), missing=2)
    """
    group_of = {child: place for place, group in enumerate(groups) for child in group}
    if isinstance(test, Grouping):
        children = tuple(group_of[child] for child in test.children)
        return Grouping(test.feature, children, group_of[test.other])
    edges = tuple(
        edge for child, edge in enumerate(test.edges) if group_of[child] != group_of[child + 1]
    )
    return Cut(test.feature, edges, group_of[test.missing])
