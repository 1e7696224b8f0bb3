"""An engine in a few plain lines: all rows in lists, one record at a time where that is simplest.

What every engine answers is compared with this one.
"""

from __future__ import annotations

import copy
import struct
from bisect import bisect_right
from dataclasses import dataclass
from hashlib import blake2b
from math import isnan

import numpy as np

from privet.engines.bases import UNIT, Tabled, bounded_weights, calibration_moments
from privet.engines.losses import loss_of
from privet.engines.weighing import ORDER_KEY
from privet.reading import Columns, column_of
from privet.schema import Numeric

WORD = 2**64 - 1


@dataclass
class Cells:
    """In which cell each record lies (-1: none), how many cells there are, and how it is seen."""

    of: list
    size: int
    view: object


class SlowEngine:
    """Answers like any engine."""

    gathers = True

    def __init__(self, table, target, schema):
        columns = Columns.of(table, schema)
        targets = columns.target(schema) if target is None else column_of(target, schema.target)
        self.schema = schema
        self.rows = len(columns)
        self.loss = loss_of(schema)
        self.values = [
            columns.numbers(name).tolist()
            if isinstance(feature, Numeric)
            else columns.codes(name, feature.values).tolist()
            for name, feature in schema.features.items()
        ]
        self.features = list(schema.features.values())
        if schema.classes is None:
            low, high = schema.bounds
            numbers = targets.numbers().tolist()
            self.targets = [(min(max(x, low), high) - low) / (high - low) for x in numbers]
            self.known = [not isnan(x) for x in numbers]
        else:
            self.targets = targets.codes(schema.classes).tolist()
            self.known = [code < len(schema.classes) for code in self.targets]
        self.who = [None] * self.rows
        self.weights = [1] * self.rows
        if schema.unit is not None:
            self.who = [found or None for found in columns.identifiers(schema).to_pylist()]
            self.weigh()
            self.known = [
                known and weight > 0 for known, weight in zip(self.known, self.weights, strict=True)
            ]

    def weigh(self):
        """Let the records of a person share its parts, in the order of their hashes."""
        persons = {}
        for i, (who, hashed) in enumerate(zip(self.who, self.hashes(ORDER_KEY), strict=True)):
            if self.known[i]:
                persons.setdefault(("alone", i) if who is None else who, []).append((hashed, i))
        parts = self.schema.unit_parts // self.schema.parties_per_unit
        self.weights = [0] * self.rows
        for records in persons.values():
            used = [i for _, i in sorted(records)[:parts]]
            for rank, i in enumerate(used):
                self.weights[i] = parts // len(used) + (rank < parts % len(used))
                if self.schema.rows_per_unit is not None:
                    self.weights[i] = 1

    def hashes(self, key):
        """Return a keyed hash of every record."""
        whole = [
            values
            if not isinstance(feature, Numeric)
            else [
                len(feature.grid) + 1 if isnan(x) else bisect_right(feature.grid, x) for x in values
            ]
            for feature, values in zip(self.features, self.values, strict=True)
        ]
        found = []
        for i in range(self.rows):
            state = key
            for codes in whole:
                state = mix(state ^ codes[i])
            target = 0.0 if self.targets[i] != self.targets[i] else float(self.targets[i]) + 0.0
            found.append(mix(state ^ struct.unpack("<Q", struct.pack("<d", target))[0]))
        return found

    def codes(self, view):
        """Return the codes of all records, one list per feature."""
        return [
            values
            if cuts is None
            else [len(cuts) + 1 if isnan(x) else bisect_right(cuts, x) for x in values]
            for values, cuts in zip(self.values, view.cuts, strict=True)
        ]

    def labels(self, steps):
        """Return the label of every record, and how many there are."""
        if steps is not None:
            return [round(x * steps) if x == x else 0 for x in self.targets], steps + 1
        if self.schema.classes is None:
            return [0] * self.rows, 1
        return self.targets, len(self.schema.classes)

    def numbers(self):
        """Return the targets as losses take them; unknown ones, in no cell, are anything."""
        known = [t if known else 0 for t, known in zip(self.targets, self.known, strict=True)]
        return np.array(known, dtype=float if self.schema.classes is None else int)

    # Free

    def root(self, view):
        return Cells([0 if known else -1 for known in self.known], 1, view)

    def portion(self, key, start, stop):
        """Forget all that the other records are: then nobody can count them."""
        again = copy.copy(self)
        places = self.parts(None, 2**24, key).of
        again.known = [start <= place < stop for place in places]
        return again

    def parts(self, view, count, key):
        found = []
        for i, hashed in enumerate(self.hashes(key)):
            state = hashed if self.who[i] is None else key
            for word in struct.unpack("<QQQ", name(self.who[i])) if self.who[i] else ():
                state = mix(state ^ word)
            found.append(((state >> 32) * count) >> 32 if self.known[i] else -1)
        return Cells(found, count, view)

    def take(self, cells, chosen):
        number = {int(old): new for new, old in enumerate(chosen)}
        return Cells([number.get(cell, -1) for cell in cells.of], len(chosen), cells.view)

    def split(self, cells, splits):
        if not splits:
            return cells
        codes = self.codes(cells.view)
        first = np.cumsum([0, *(max(split.children) + 1 for split in splits)])
        found = [
            -1
            if cell < 0
            else int(first[cell]) + splits[cell].children[codes[splits[cell].feature][i]]
            for i, cell in enumerate(cells.of)
        ]
        return Cells(found, int(first[-1]), cells.view)

    def start_scores(self, start):
        self.start = float(start[0])
        return np.tile(np.array(start, dtype=float), (self.rows, 1))

    def add_scores(self, scores, cells, values):
        if isinstance(values, tuple):
            codes, found = self.codes(cells.view), scores.copy()
            for i, cell in enumerate(cells.of):
                more = np.zeros(scores.shape[1])
                for feature, table in values:
                    more = more + table[codes[feature][i]]
                if cell >= 0:
                    found[i] = found[i] + more
            return found
        return np.array(
            [
                row if cell < 0 else row + values[cell]
                for row, cell in zip(scores, cells.of, strict=True)
            ]
        ).reshape(scores.shape)

    # Sums

    def class_counts(self, cells):
        return self._counts(cells, None)

    def row_counts(self, cells):
        counts = np.zeros(cells.size, dtype=np.int64)
        for cell in cells.of:
            if cell >= 0:
                counts[cell] += 1
        return counts

    def target_counts(self, cells, steps):
        return self._counts(cells, steps)

    def _counts(self, cells, steps):
        labels, kinds = self.labels(steps)
        counts = np.zeros((cells.size, kinds), dtype=np.int64)
        for cell, label, weight in zip(cells.of, labels, self.weights, strict=True):
            if cell >= 0:
                counts[cell, label] += weight
        return counts

    def grid_counts(self, feature):
        if feature is None:
            low, high = self.schema.bounds
            marks = [(point - low) / (high - low) for point in self.schema.target_grid.tolist()]
            counts = np.zeros(len(marks) + 2, dtype=np.int64)
            for i, y in enumerate(self.numbers().tolist()):
                if self.known[i]:
                    counts[bisect_right(marks, y)] += self.weights[i]
            return counts
        grid = self.features[feature].grid.tolist()
        counts = np.zeros(len(grid) + 2, dtype=np.int64)
        for i, x in enumerate(self.values[feature]):
            if self.known[i]:
                place = len(grid) + 1 if isnan(x) else bisect_right(grid, x)
                counts[place] += self.weights[i]
        return counts

    def histograms(self, cells, features, steps=None):
        labels, kinds = self.labels(steps)
        codes = self.codes(cells.view)
        found = {}
        for j in features:
            found[j] = np.zeros((cells.size, cells.view.sizes[j], kinds), dtype=np.int64)
            for i, cell in enumerate(cells.of):
                if cell >= 0:
                    found[j][cell, codes[j][i], labels[i]] += self.weights[i]
        if cells.size:
            yield slice(0, cells.size), found

    def moments(self, cells, scores, reach, *, pure):
        targets = self.numbers()
        found = self.loss.moments(targets, scores, reach, pure=pure)
        sums = np.zeros((cells.size, found.shape[1]), dtype=np.int64)
        for cell, row, weight in zip(cells.of, found, self.weights, strict=True):
            if cell >= 0:
                sums[cell] += weight * row
        return sums

    def distance_counts(self, cells, scores, marks):
        counts = np.zeros((cells.size, len(marks) + 1), dtype=np.int64)
        for i, (cell, y) in enumerate(zip(cells.of, self.numbers().tolist(), strict=True)):
            if cell >= 0:
                beyond = sum(abs(y - scores[i, 0]) > mark for mark in marks)
                counts[cell, beyond] += self.weights[i]
        return counts

    def outcome_counts(self, cells, scores, ends):
        kinds = len(self.schema.classes)
        size = kinds if ends is None else len(ends) + 1
        counts = np.zeros((cells.size, kinds, size), dtype=np.int64)
        for i, (cell, row) in enumerate(zip(cells.of, scores.tolist(), strict=True)):
            if ends is not None:
                found = sum(row[0] >= end for end in ends)
            else:
                found = int(row[0] > 0) if len(row) == 1 else row.index(max(row))
            if cell >= 0:
                counts[cell, self.targets[i], found] += self.weights[i]
        return counts

    def error_sums(self, cells, scores):
        sums = np.zeros((cells.size, 4), dtype=np.int64)
        for i, (cell, y) in enumerate(zip(cells.of, self.numbers().tolist(), strict=True)):
            if cell >= 0:
                a = abs(y - min(max(float(scores[i, 0]), 0.0), 1.0))
                one, two, four = round(UNIT * a), round(UNIT * a * a), round(UNIT * a**4)
                two = min(two, one)
                four = min(four, two)
                found = np.array([four, two - four, one - two, UNIT - one])
                sums[cell] += self.weights[i] * found
        return sums

    def slopes(self, cells, scores, basis, largest, longest):
        """One record at a time: a record's integers do not depend on who is asked with it."""
        codes, targets = self.codes(cells.view), self.numbers()
        sums = np.zeros((basis.width, scores.shape[1]), dtype=np.int64)
        for i, cell in enumerate(cells.of):
            if cell < 0:
                continue
            places = [codes[feature][i] for feature, _ in basis.features]
            places += [cell] if basis.of_cells is not None else []
            values = np.concatenate(
                [_values(part, place) for part, place in zip(basis.parts, places, strict=True)]
            )
            residuals = self.loss.residuals(targets[i : i + 1], scores[i : i + 1])
            lengths = np.sqrt([max((values**2).sum(), 1)])
            (weights,) = bounded_weights(residuals, lengths, largest, longest)
            sums += self.weights[i] * np.outer(values, weights)
        return sums

    def calibration(self, cells, scores, shift, factor):
        start, targets = self.start, self.numbers()
        sums = np.zeros(5, dtype=np.int64)
        for i, cell in enumerate(cells.of):
            if cell >= 0:
                apart = scores[i : i + 1, 0] - start
                found = calibration_moments(targets[i : i + 1], apart, shift, factor)[0]
                sums += self.weights[i] * found
        return sums

    def _places(self, cells, axes):
        codes = self.codes(cells.view)
        for i, cell in enumerate(cells.of):
            if cell >= 0:
                axis = axes[cell]
                code = codes[axis.feature][i]
                yield i, cell, code if axis.places is None else int(axis.places[code])

    def places(self, cells, axes):
        width = max(cells.view.sizes)
        keys = [
            cell * width + place
            for i, cell, place in self._places(cells, axes)
            for _ in range(self.weights[i])
        ]
        return np.unique(np.array(keys, dtype=np.int64), return_counts=True)

    def sides(self, cells, axes, middle, steps):
        labels, kinds = self.labels(steps)
        counts = np.zeros((cells.size, 3, kinds), dtype=np.int64)
        for i, cell, place in self._places(cells, axes):
            side = int(place >= middle[cell]) + int(place > middle[cell])
            counts[cell, side, labels[i]] += self.weights[i]
        return counts

    # Whole trees

    def _records(self, cells, cell, scores, reach):
        """Yield the codes, label and weight of every record of a cell."""
        labels, weights = self.targets, [1] * self.rows
        if scores is not None:
            targets = self.numbers()
            labels, weights = (found.tolist() for found in self.loss.pulls(targets, scores, reach))
        codes = self.codes(cells.view)
        for i in range(self.rows):
            if cells.of[i] == cell:
                yield tuple(mine[i] for mine in codes), labels[i], weights[i] * self.weights[i]

    def tree_rows(self, cells, start, stop, scores, reach):
        return [sorted(self._records(cells, cell, scores, reach)) for cell in range(start, stop)]

    def tree_facts(self, cells, cell, scores, reach):
        counts = [np.zeros(size, dtype=np.int64) for size in cells.view.sizes]
        mass = 0
        for codes, _, weight in self._records(cells, cell, scores, reach):
            mass += weight
            for code, mine in zip(codes, counts, strict=True):
                mine[code] += 1
        return np.concatenate([*counts, [mass]])

    def tree_sums(self, cells, cell, layout, of, scores, reach):
        ends = 1 if layout.labels == 2 else layout.labels
        sizes = np.diff(layout.first).tolist()
        found = {
            margin: np.zeros((*(sizes[h] for h in margin), ends), dtype=np.int64) for margin in of
        }
        for codes, label, weight in self._records(cells, cell, scores, reach):
            kept = [
                int(number[codes[feature]] - first)
                for feature, number, first in zip(
                    layout.order, layout.numbers, layout.first[:-1], strict=True
                )
            ]
            channel = 0 if ends == 1 else label
            signed = (weight if label == 1 else -weight) if ends == 1 else weight
            for margin, sums in found.items():
                sums[(*(kept[h] for h in margin), channel)] += signed
        return np.concatenate([found[margin].reshape(-1) for margin in of])


def _values(part, place):
    """Return the functions of one code."""
    if isinstance(part, Tabled):
        return part.values[place]
    peak = np.zeros(part.size, dtype=np.int64)
    peak[place] = part.height
    return peak - part.levels


def name(who):
    """Return the name of a person, of 24 bytes."""
    if len(who) > 23:
        return blake2b(who, digest_size=23).digest() + b"\xff"
    return who.ljust(23, b"\0") + bytes([len(who)])


def mix(state):
    """Spread every bit of a 64-bit number over all of it (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = ((state ^ (state >> 33)) * factor) & WORD
    return state ^ (state >> 33)
