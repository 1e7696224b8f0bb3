"""The tree with fewer branches and the same answers: what all exports show or write.

Multiway trees have many leaves that say the same, and private ones tests that say nothing. Here a
subtree whose leaves all give one answer becomes one leaf, and siblings that mean the same, leaves
or subtrees, become one: intervals if they touch, categories always. A test whose outcomes all mean
the same is left out, and one of a category below one of the same category is drawn into it. Which
answer a row gets does not change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from privet.ensemble import Ensemble
from privet.export._limits import check_size
from privet.tree import Cut, Grouping, Node, Test, Tree

#: A class, by its position in the schema's list; or a mean; or the scores of an ensemble's tree.
Answer = int | float | tuple[float, ...]


@dataclass(frozen=True)
class Part:
    """A test with children, or leaves with one answer.

    ``children`` are positions in the list of parts, ``places`` the nodes of the tree that the part
    stands for (with all that is below them, if there is an answer): several if they mean the same.
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
    meanings, answers, forms = _meanings(tree)
    parts: list[Part] = []
    waiting: deque[tuple[int, ...]] = deque([(0,)])
    while waiting:
        places = waiting.popleft()  # all with one meaning
        answer = answers.get(meanings[places[0]])
        if answer is not None:
            parts.append(Part(None, (), places, answer))
            continue
        places = _told_apart(places, forms)
        found = [forms[place] for place in places]
        groups = [tuple(chain(*alike)) for alike in zip(*(g for _, g in found), strict=True)]
        first = len(parts) + len(waiting) + 1
        children = tuple(range(first, first + len(groups)))
        parts.append(Part(found[0][0], children, places, None))
        waiting += groups
    return parts


#: Of a node that is no leaf: its test, and the nodes that each outcome leads to. A test whose
#: outcomes all mean the same says nothing, and has one outcome.
_Form = tuple[Test, list[tuple[int, ...]]]


def _meanings(tree: Tree) -> tuple[list[int], dict[int, Answer], dict[int, _Form]]:
    """Return what every node means, as a number; the answers that are meant; and the forms.

    Nodes with one number give every row the same answer, by the same tests.
    """
    meanings = [0] * len(tree.nodes)
    numbers: dict[Hashable, int] = {}
    answers: dict[int, Answer] = {}
    forms: dict[int, _Form] = {}
    targets: dict[int, tuple[str, list[int]]] = {}  # of categories: where each value leads to
    for place in reversed(range(len(tree.nodes))):  # children come after their parents
        node = tree.nodes[place]
        if node.test is None:
            answer = _leaf_answer(tree, node)
            meanings[place] = numbers.setdefault(("answer", answer), len(numbers))
            answers[meanings[place]] = answer
            continue
        test, outcomes, where = _outcomes(node.test, node.children, targets)
        means = [meanings[outcome] for outcome in outcomes]
        groups = _groups(test, means)
        test = _with_groups(test, groups)
        forms[place] = test, [tuple(outcomes[k] for k in group) for group in groups]
        if where is not None and len(groups) > 1:
            targets[place] = test.feature, where
        means = [means[group[0]] for group in groups]
        meanings[place] = (
            means[0] if len(means) == 1 else numbers.setdefault((test, tuple(means)), len(numbers))
        )
    return meanings, answers, forms


def _told_apart(places: Sequence[int], forms: Mapping[int, _Form]) -> tuple[int, ...]:
    """Return the nodes whose tests say something, instead of those above them that do not."""
    found: list[int] = []
    waiting = list(reversed(places))
    while waiting:
        place = waiting.pop()
        _, groups = forms[place]
        if len(groups) > 1:
            found.append(place)
        else:
            waiting += reversed(groups[0])
    return tuple(found)


def _outcomes(
    test: Test, children: Sequence[int], targets: Mapping[int, tuple[str, list[int]]]
) -> tuple[Test, Sequence[int], list[int] | None]:
    """Return a test and the nodes that it leads to, with tests of the same category drawn in.

    A category that was tested is tested again below only to tell apart values that came this way:
    one test does both. Also returned: of a category, the node that each value leads to.
    """
    if not isinstance(test, Grouping):
        return test, children, None
    feature, where = test.feature, []
    came: dict[int, int] = {}
    for value, child in enumerate((*test.children, test.other)):
        tested, below = targets.get(children[child], ("", []))
        where.append(below[value] if tested == feature else children[child])
        came[where[-1]] = child
    found = sorted(came, key=lambda place: came[place])
    number = {place: k for k, place in enumerate(found)}
    *values, other = (number[place] for place in where)
    return Grouping(feature, tuple(values), other), found, where


def _leaf_answer(tree: Tree, leaf: Node) -> Answer:
    if tree.scores:
        return tuple(float(score) for score in leaf.value)
    if tree.schema.classes is None:
        return float(leaf.value[0])
    return leaf.value.index(max(leaf.value))  # the first of equally probable classes


def _groups(test: Test, means: Sequence[int]) -> list[list[int]]:
    """Return the outcomes in the groups that become one."""
    groups: list[list[int]] = []
    latest: dict[int, list[int]] = {}  # the group to join, by what it means
    for child, meaning in enumerate(means):
        if meaning in latest:
            latest[meaning].append(child)
            continue
        groups.append([child])
        if isinstance(test, Cut):
            latest.clear()  # only neighbours are merged
        latest[meaning] = groups[-1]
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
