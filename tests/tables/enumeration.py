"""The exact law of drawn trees by plain enumeration of all labelled trees.

What is drawn is followed along every branch of its random choices by the audit's ``law_of``.
"""

import itertools
import math

from privet.audit import exact
from privet.engines import _kernels
from privet.tables.splits import Branch, Leaf, Split
from privet.tables.tree_sums import GatheredRecords


def law_of(sampler):
    """Return the probabilities of what a sampler draws."""
    return {drawn: math.exp(log) for drawn, log in exact.law_of(sampler).items()}


def gathered(codes, labels, weights, sizes):
    """Return records as an engine brings them together."""
    return GatheredRecords(codes, labels, weights, _kernels.code_counts(codes, sizes), sizes)


def offered(menu, feature):
    size = menu.sizes[feature]
    if menu.numeric[feature]:
        tests = [tuple(int(c > k) for c in range(size)) for k in range(size - 1)]
        return tests or [(0,)]
    return [tuple(int(c == k) for c in range(size)) for k in range(size)]


def all_trees(menu, classes, depth):
    """Yield every labelled tree with its prior."""
    for label in range(classes):
        yield Leaf(label), (menu.stop if depth else 1.0) / classes
    if depth == 0:
        return
    features = range(len(menu.sizes)) if depth == 1 else menu.upper
    for feature in features:
        share = (1 - menu.stop) / len(features)
        if depth == 1 and not menu.numeric[feature]:
            share /= 2
            size = menu.sizes[feature]
            for labels in itertools.product(range(classes), repeat=size):
                used = sorted(set(labels))
                split = Split(feature, tuple(used.index(label) for label in labels))
                yield Branch(split, tuple(map(Leaf, used))), share / classes**size
        tests = offered(menu, feature)
        subtrees = list(all_trees(menu, classes, depth - 1))
        for test in tests:
            for (left, p), (right, q) in itertools.product(subtrees, repeat=2):
                yield Branch(Split(feature, test), (left, right)), share / len(tests) * p * q


def predict(tree, codes):
    while isinstance(tree, Branch):
        tree = tree.children[tree.split.children[codes[tree.split.feature]]]
    return tree.label


def enumerated(codes, labels, weights, menu, classes, depth, rate):
    law = {}
    for tree, prior in all_trees(menu, classes, depth):
        correct = sum(
            w for row, y, w in zip(codes.T, labels, weights, strict=True) if predict(tree, row) == y
        )
        law[tree] = law.get(tree, 0.0) + prior * math.exp(rate * correct)
    total = sum(law.values())
    return {tree: weight / total for tree, weight in law.items()}
