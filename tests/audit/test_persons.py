"""Mutants that the exact audit must catch where neighbours differ by a whole person.

``test_exact`` has the cases that hold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privet.audit.catalogue import ONE
from privet.audit.exact import audit, neighbours_by_person, universe
from privet.audit.probes import Probe
from privet.engines import questions
from privet.engines.blocks import Block
from privet.tables.cells import CellsOfTable


def labels_of_two_cells(**unit):
    """The labels of two cells, in both of which the new person has records."""
    return Probe("choose_labels", 1.0, replace(ONE, unit="who", **unit), by="a")


SPREAD_OUT = [
    pair for pair in neighbours_by_person(universe(ONE), 3) if len({r[0] for r in pair[1]}) > 1
][-12:]


def test_a_person_in_two_cells_pays_once():
    verdict = audit(labels_of_two_cells(), pairs=SPREAD_OUT)
    assert verdict.holds
    assert verdict.found == pytest.approx(1.0)


def test_records_that_weigh_as_much_as_a_person_are_caught(monkeypatch):
    """Every record counts as a whole person: k records cost k times as much."""

    def whole(self):
        return np.full(len(self), 60, dtype=np.uint8)

    monkeypatch.setattr(Block, "parts", property(whole, lambda self, given: None), raising=False)
    assert audit(labels_of_two_cells(), pairs=SPREAD_OUT).found > 1.9


def test_weights_that_are_renormalised_in_each_cell_are_caught(monkeypatch):
    """A person counts once in each cell that it has a record in: twice in all."""
    counted = questions.LabelCounts.answer

    def renormalised(self, block):
        before = block.parts
        cells = block.cells(self.cells)
        pairs = list(zip(cells.tolist(), *(words.tolist() for words in block.names), strict=True))
        sums = {pair: 0 for pair in pairs}
        for pair, weight in zip(pairs, before.tolist(), strict=True):
            sums[pair] += weight
        block.parts = np.array(
            [60 * w / max(sums[pair], 1) for pair, w in zip(pairs, before.tolist(), strict=True)]
        )
        try:
            return counted(self, block)
        finally:
            block.parts = before

    monkeypatch.setattr(questions.LabelCounts, "answer", renormalised)
    assert audit(labels_of_two_cells(), pairs=SPREAD_OUT).found > 1.9


def test_noise_for_a_part_is_caught(monkeypatch):
    """Bounds that are not multiplied by the parts of a person."""
    monkeypatch.setattr(CellsOfTable, "_parts", property(lambda self: 1))
    assert audit(labels_of_two_cells(rows_per_unit=2), pairs=SPREAD_OUT).found > 1.4
