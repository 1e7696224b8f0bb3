"""Pruning with noisy counts (Friedman & Schuster 2010, section 4.2, Algorithm 3).

Three passes over a tree and what was released with it. Top-down, the counts of children are made to
add up to their parent's; bottom-up, the class counts of the leaves are fitted to them and added up;
then C4.5's error-based pruning (Quinlan 1993, chapter 4; Weka's J48, on which the paper's authors
built) replaces subtrees by a leaf or by their largest branch. All of this is post-processing: it
sees released numbers only and costs nothing.

Where the paper is silent:

* Noisy counts can be negative. They count as zero; where all that should share something are zero,
  they share equally. A node whose count was not released has the sum of its children's (of its
  class counts, in a leaf).
* J48 sends all training records of a node down its largest branch to see how that branch alone
  would do. Records are private, so the leaves of the unpruned tree stand for theirs: a leaf's
  records go where its path allows. If the path allows several children, they are divided as J48
  divides records whose value is missing: in proportion to those that are sure of their child.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.learners._assembly import class_shares
from privet.schema import Categorical
from privet.tree import Cut, Node, Test, Tree

#: J48 takes the simpler of two trees unless it costs more errors than this.
TOLERANCE = 0.1


def prune(
    tree: Tree, confidence: float = 0.25, *, raising: bool = True, scale: float = 1.0
) -> Tree:
    """Return the tree without the splits that noisy counts do not support.

    Nodes that stand for the same records as before keep what was released about them, and leaves
    that were leaves before are left as they are. New leaves, and leaves that a raised branch
    brought along, have shares of the corrected class counts; they have no released class counts of
    their own, and pruning such a tree again is refused. Once is enough: with the same counts, a
    second pass would find nothing to prune.

    Parameters
    ----------
    tree : Tree
        A classifier whose leaves have released ``class_counts``; any node may have a ``count``.
    confidence : float, default=0.25
        C4.5's certainty factor: the smaller, the more pessimistic about small leaves, the more is
        pruned. Above 0.5 errors are taken at face value, as J48 does; splits that do not change
        the number of errors are removed even so.
    raising : bool, default=True
        Whether a subtree can also be replaced by its largest branch.
    scale : float, default=1.0
        The scale of the noise in class counts, which smooths the shares of new leaves.

    Privacy
    -------
    Post-processing of what was released before. Releases nothing and costs nothing.

    Examples
    --------
    >>> from privet import Numeric, Schema
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> tree = Tree(schema, (
    ...     Node(Cut("dose", (40.0,), missing=0), (1, 2), released={"count": 1003}),
    ...     Node(value=(0.95, 0.05), released={"class_counts": (380, 21)}),
    ...     Node(Cut("dose", (70.0,), missing=0), (3, 4), released={"count": 605}),
    ...     Node(value=(0.1, 0.9), released={"class_counts": (29, 262)}),
    ...     Node(value=(0.1, 0.9), released={"class_counts": (31, 270)}),
    ... ))
    >>> prune(tree).nodes[2].test is None
    True
    >>> dict(prune(tree).nodes[2].released)
    {'count': 605}
    """
    if not 0 < confidence <= 1:
        raise ValueError("confidence must be above 0 and at most 1")
    if tree.schema.classes is None or tree.scores:
        raise ValueError("only classification trees with shares in their leaves can be pruned")
    space = _Space.of(tree)
    pruned = _Pruning(space, confidence, raising).of(_read(tree, space))
    return _published(tree, pruned, scale)


def extra_errors(records: float, errors: float, confidence: float) -> float:
    """Return by how many errors C4.5 mistrusts a leaf that makes ``errors`` on ``records``.

    It is ``N U_CF(E, N) - E``, where ``U_CF`` is the upper limit of a binomial proportion, computed
    as J48 does (``weka.classifiers.trees.j48.Stats``): exactly for no errors, ``1 - CF^(1/N)``;
    from one error on by Wilson's score interval with a continuity correction of half an error;
    linearly between none and one; and the whole of the leaf where the correction exceeds it.

    Examples
    --------
    >>> round(extra_errors(6, 0, 0.25) / 6, 3)
    0.206
    """
    if confidence > 0.5:
        return 0.0
    if errors < 1:
        none = -records * math.expm1(math.log(confidence) / records)
        if errors <= 0:
            return none
        return none + errors * (extra_errors(records, 1, confidence) - none)
    if errors + 0.5 >= records:
        return max(records - errors, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    rate = (errors + 0.5) / records
    spread = z * math.sqrt(rate * (1 - rate) / records + (z / (2 * records)) ** 2)
    limit = (rate + z * z / (2 * records) + spread) / (1 + z * z / records)
    return limit * records - errors


def corrected_counts(tree: Tree) -> NDArray[np.float64]:
    """Return class counts for every node, such that children add up to their parent.

    The first two passes of Algorithm 3: the rows' sums are the corrected counts of the nodes.
    """
    nodes = tree.nodes
    totals = np.zeros(len(nodes))
    for place in reversed(range(len(nodes))):
        totals[place] = max(0.0, _noisy_count(nodes[place], totals))
    counts = np.zeros((len(nodes), tree.width))
    for place, node in enumerate(nodes):
        below = list(node.children)
        if below:
            totals[below] = totals[place] * _shares(totals[below])
        else:
            counts[place] = totals[place] * _shares(np.array(_class_counts(node), dtype=float))
    for place in reversed(range(len(nodes))):
        if nodes[place].children:
            counts[place] = counts[list(nodes[place].children)].sum(axis=0)
    return counts


def _noisy_count(node: Node, totals: NDArray[np.float64]) -> float:
    count = node.released.get("count")
    if isinstance(count, int):
        return count
    return float(totals[list(node.children)].sum()) if node.children else sum(_class_counts(node))


def _class_counts(leaf: Node) -> tuple[int, ...]:
    counts = leaf.released.get("class_counts")
    if not isinstance(counts, tuple) or len(counts) != len(leaf.value):
        raise ValueError("pruning needs released class counts in every leaf")
    return counts


def _shares(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return parts of one in proportion to what is positive; equal ones if nothing is."""
    positive = np.maximum(weights, 0.0)
    whole = positive.sum()
    return positive / whole if whole else np.full(len(weights), 1 / len(weights))


@dataclass(frozen=True)
class _Records:
    """Groups of records: the codes with which they can have come here, and their class counts."""

    codes: NDArray[np.bool_]
    counts: NDArray[np.float64]


@dataclass(frozen=True)
class _Branch:
    """A subtree while it is pruned; ``value`` is empty unless it is a leaf that was one before."""

    records: _Records
    released: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    value: tuple[float, ...] = ()
    test: Test | None = None
    children: tuple[_Branch, ...] = ()

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        return np.asarray(self.records.counts.sum(axis=0))


@dataclass(frozen=True)
class _Space:
    """The tested features cut into the pieces that the tree's tests distinguish: its codes."""

    n_codes: int
    first: Mapping[str, int]
    edges: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, tree: Tree) -> _Space:
        n_codes, first, edges = 0, {}, {}
        for name in tree.used:
            feature = tree.schema.features[name]
            first[name] = n_codes
            if isinstance(feature, Categorical):
                n_codes += feature.size
                continue
            tests = (node.test for node in tree.nodes)
            cuts = {
                edge
                for test in tests
                if isinstance(test, Cut) and test.feature == name
                for edge in test.edges
            }
            edges[name] = np.array(sorted(cuts))
            n_codes += len(cuts) + 2  # the intervals, and missing values
        return cls(n_codes, first, edges)

    def children(self, test: Test) -> tuple[slice, NDArray[np.intp]]:
        """Return the codes of a test's feature and the child of each."""
        if isinstance(test, Cut):
            starts = [-math.inf, *self.edges[test.feature]]
            inside = np.searchsorted(test.edges, starts, side="right")
            where = np.array([*inside, test.missing])
        else:
            where = np.array([*test.children, test.other])
        start = self.first[test.feature]
        return slice(start, start + len(where)), where

    def split(self, records: _Records, test: Test) -> list[_Records]:
        """Return the records of each child."""
        part, where = self.children(test)
        here = records.codes[:, part]
        inside = [here & (where == child) for child in range(test.n_children)]
        possible = np.stack([codes.any(axis=1) for codes in inside], axis=1)
        possible[~possible.any(axis=1)] = True  # behind tests that contradict each other
        sure = possible.sum(axis=1) == 1
        known = records.counts[sure].sum(axis=1) @ possible[sure]
        weights = possible * known
        weights[weights.sum(axis=1) == 0] = 1.0
        weights *= possible
        weights /= weights.sum(axis=1, keepdims=True)
        parts = []
        for child, codes in enumerate(inside):
            some = weights[:, child] > 0
            left = records.codes[some]
            left[:, part] = codes[some]
            parts.append(_Records(left, records.counts[some] * weights[some, child, None]))
        return parts


def _read(tree: Tree, space: _Space) -> _Branch:
    """Return the unpruned tree with corrected counts; each of its leaves is a group of records."""
    counts = corrected_counts(tree)

    def branch(place: int, codes: NDArray[np.bool_]) -> _Branch:
        node = tree.nodes[place]
        if node.test is None:
            records = _Records(codes[None], counts[place : place + 1])
            return _Branch(records, node.released, node.value)
        part, where = space.children(node.test)
        children = []
        for j, child in enumerate(node.children):
            left = codes.copy()
            left[part] &= where == j
            children.append(branch(child, left))
        records = _Records(
            np.concatenate([child.records.codes for child in children]),
            np.concatenate([child.records.counts for child in children]),
        )
        return _Branch(records, node.released, (), node.test, tuple(children))

    return branch(0, np.ones(space.n_codes, dtype=bool))


@dataclass(frozen=True)
class _Pruning:
    """C4.5's pruning, as J48 does it."""

    space: _Space
    confidence: float
    raising: bool

    def of(self, branch: _Branch) -> _Branch:
        if branch.test is None:
            return branch
        branch = replace(branch, children=tuple(self.of(child) for child in branch.children))
        leaf = replace(branch, test=None, children=())
        largest = max(reversed(branch.children), key=lambda child: float(child.counts.sum()))
        raised = leaf
        if self.raising and largest.test is not None:
            raised = replace(self.moved(largest, branch.records), released=branch.released)
        of_leaf, of_raised, of_branch = map(self.errors, (leaf, raised, branch))
        if of_leaf <= min(of_branch, of_raised) + TOLERANCE:
            return leaf
        if of_raised <= of_branch + TOLERANCE:
            return self.of(raised)
        return branch

    def moved(self, branch: _Branch, records: _Records) -> _Branch:
        """Return the branch with other records; what was released about its own is gone."""
        if branch.test is None:
            return _Branch(records)
        parts = self.space.split(records, branch.test)
        children = tuple(map(self.moved, branch.children, parts))
        return _Branch(records, test=branch.test, children=children)

    def errors(self, branch: _Branch) -> float:
        """Return the pessimistic estimate of the errors that a branch makes on its records."""
        if branch.test is not None:
            return sum(map(self.errors, branch.children))
        total = float(branch.counts.sum())
        if total < 1e-6:
            return 0.0
        errors = total - float(branch.counts.max())
        return errors + extra_errors(total, errors, self.confidence)


def _published(tree: Tree, pruned: _Branch, scale: float) -> Tree:
    nodes: list[Node] = []
    level = [pruned]
    while level:
        child = len(nodes) + len(level)
        for branch in level:
            places = tuple(range(child, child + len(branch.children)))
            child += len(places)
            value = branch.value if branch.value or places else _value(branch.counts, scale)
            nodes.append(Node(branch.test, places, value, branch.released))
        level = [below for branch in level for below in branch.children]
    return Tree(tree.schema, tuple(nodes))


def _value(counts: NDArray[Any], scale: float) -> tuple[float, ...]:
    return tuple(class_shares(counts, scale).tolist())
