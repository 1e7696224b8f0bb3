"""How many records a model is made of, by the class counts that were bought for its leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.ensemble import Ensemble
from privet.privacy import Entry, Ledger, NoisyCount, QuestionKind
from privet.tree import Tree


def released_counts(
    predictor: Tree | Ensemble, ledger: Ledger, parts: int, noises: float | None = 1.0
) -> tuple[NoisyCount, ...]:
    """Return the released numbers of all records, and of each class: the least noisy of each.

    Mechanisms count in parts of a person, of which there are ``parts``; one, if without a unit.
    An entry says the noise of one table, and a released number has so many ``noises``: those of
    parties, perhaps. None if not all numbers have the same.
    """
    known = {len(count.values): count for count in ledger.counts}
    found = None if noises is None else _leaf_counts(predictor, ledger.entries, parts, noises)
    if found is not None:
        width = len(found.values)
        if width not in known or found.deviation < known[width].deviation:
            known[width] = found
    return tuple(known[width] for width in sorted(known))


def _leaf_counts(
    predictor: Tree | Ensemble, entries: Sequence[Entry], parts: int, noises: float
) -> NoisyCount | None:
    """Return the sum over all leaves, if each of them has class counts that were bought for it."""
    trees = predictor.trees if isinstance(predictor, Ensemble) else (predictor,)
    leaves = [node.released for tree in trees for node in tree.nodes if node.test is None]
    asked = [entry for entry in entries if entry.question.kind is QuestionKind.CLASS_COUNTS]
    # Pruned leaves, and counts that were bought for something else, are not told apart.
    if not asked or sum(entry.cells for entry in asked) != len(leaves):
        return None
    if not all("class_counts" in released for released in leaves):
        return None
    # Several trees are one table if each has its own part of the records.
    if len(trees) > 1 and any(entry.place.parts != len(trees) for entry in asked):
        return None
    variances = [entry.variance for entry in asked]
    if any(variance is None for variance in variances):
        return None
    total = noises * sum(e.cells * (v or 0.0) for e, v in zip(asked, variances, strict=True))
    sums = np.array([released["class_counts"] for released in leaves], dtype=np.int64).sum(axis=0)
    return NoisyCount(tuple(map(int, sums)), math.sqrt(total) / parts)
