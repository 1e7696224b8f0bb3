"""The exact law of drawn trees, in two ways: replayed along every choice, and enumerated.

An oracle replaces the noise: it replays the draw along every branch of its random choices and so
gives the whole output distribution; plain enumeration of all labelled trees says what it should be.
"""

import itertools
import math

import numpy as np

from privet.tables import whole_trees
from privet.tables.splits import Branch, Leaf, Split
from privet.tables.whole_trees import STOP


class Oracle:
    """A noise source that follows one path of choices and knows its probability."""

    private = True

    def __init__(self, path):
        self.path = path
        self.taken = []
        self.options = []
        self.log_probability = 0.0

    def pick(self, log_probabilities):
        step = len(self.taken)
        chosen = self.path[step] if step < len(self.path) else 0
        self.taken.append(chosen)
        self.options.append(len(log_probabilities))
        self.log_probability += log_probabilities[chosen]
        return chosen

    def exponential(self, scores, scale):
        logs = (scores - scores.max()) / scale
        return self.pick(logs - math.log(np.exp(logs).sum()))


def follow_uniform_draws(monkeypatch):
    """Let oracles follow uniform draws, too."""
    real = whole_trees.below
    monkeypatch.setattr(
        whole_trees,
        "below",
        lambda noise, bound: (
            noise.pick(np.full(bound, -math.log(bound)))
            if isinstance(noise, Oracle)
            else real(noise, bound)
        ),
    )


def law_of(program):
    """Return the output distribution of a program that takes a noise source."""
    path, law = [], {}
    while True:
        oracle = Oracle(path)
        answer = program(oracle)
        law[answer] = law.get(answer, 0.0) + math.exp(oracle.log_probability)
        path = oracle.taken
        while path and path[-1] == oracle.options[len(path) - 1] - 1:
            path = path[:-1]
        if not path:
            return law
        path = [*path[:-1], path[-1] + 1]


def offered(menu, feature):
    size = menu.sizes[feature]
    if menu.numeric[feature]:
        tests = [tuple(int(c > k) for c in range(size)) for k in range(size - 1)]
        return tests or [(0,)]
    return [tuple(int(c == k) for c in range(size)) for k in range(size)]


def all_trees(menu, classes, depth):
    """Yield every labelled tree with its prior."""
    for label in range(classes):
        yield Leaf(label), (STOP if depth else 1.0) / classes
    if depth == 0:
        return
    features = range(len(menu.sizes)) if depth == 1 else menu.upper
    for feature in features:
        share = (1 - STOP) / len(features)
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
