"""What an engine in this process knows of single records, which it tells nobody: for tests."""

from __future__ import annotations

import numpy as np


def blocks_of(engine):
    """Return the blocks of an engine whose rows are in this process."""
    return engine._blocks._blocks


def codes_of(engine, view):
    """Return the codes of all records, one row per feature."""
    return np.concatenate([block.codes(view) for block in blocks_of(engine)], axis=1)


def labels_of(engine):
    """Return the classes of all records."""
    return np.concatenate([block.labels for block in blocks_of(engine)])


def cells_of(engine, handle):
    """Return in which cell each record lies; -1 is none of them."""
    return np.concatenate([block.cells(handle.lineage) for block in blocks_of(engine)])


def scores_of(engine, handle):
    """Return the scores of all records."""
    return np.concatenate([block.scores(handle.lineage) for block in blocks_of(engine)])
