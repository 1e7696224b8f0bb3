"""Random walks that ask two engines the same things: one of them is slow and plain."""

from __future__ import annotations

import inspect
import itertools
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from privet import Categorical, Numeric, Schema
from privet.engines import Axis, Basis, Engine, Peaks, Split, Tabled, TreeLayout, View
from privet.schema import Date, Integer

from .slow import SlowEngine

FEATURES = {
    "dose": Numeric(-40, 60, bins=7),
    "share": Numeric(0, 1, edges=[0.1, 0.5, 0.75]),
    "one": Numeric(0, 1, bins=1),
    "visits": Integer(0, 12),
    "since": Date("2019-01-01", "2024-12-31"),
    "ward": Categorical(["a", "b", "c", "d"]),
    "sex": Categorical(["f", "m"]),
}
SCHEMAS = {
    "two": Schema(FEATURES, "y", classes=["no", "yes"]),
    "three": Schema(FEATURES, "y", classes=["no", "perhaps", "yes"]),
    "number": Schema(FEATURES, "y", bounds=(-10, 30)),
    "persons": Schema(FEATURES, "y", classes=["no", "yes"], unit="who"),
    "three of persons": Schema(
        FEATURES, "y", classes=["no", "perhaps", "yes"], unit="who", rows_per_unit=3
    ),
    "number of persons": Schema(FEATURES, "y", bounds=(-10, 30), unit="who", parties_per_unit=2),
}


def make_rows(kind, rows, seed=0):
    """Return a table with everything that a record can be wrong in."""
    rng = np.random.default_rng(seed)

    def some(values, missing=0.1):
        return [None if rng.random() < missing else value for value in values]

    columns = {
        "dose": rng.choice([-50.0, -40, -0.0, 0, 1e-9, 3, 17.5, 60, 99, np.inf, np.nan], rows),
        "share": some(rng.random(rows).tolist()),
        "one": rng.random(rows),
        "visits": some(rng.integers(-2, 15, rows).tolist()),
        "since": some([date(2018, 6, 1) + timedelta(int(d)) for d in rng.integers(0, 2600, rows)]),
        "ward": some(rng.choice(list("abcdx"), rows).tolist()),
        "sex": some(rng.choice(["f", "m"], rows).tolist()),
    }
    if SCHEMAS[kind].unit is not None:
        long = "a name that is longer than twenty-three bytes"
        known = ["p", "q", "007", "7", "", "nan", long, f"{long}s", *map(str, range(20))]
        columns["who"] = some(rng.choice(known, rows, p=rng.dirichlet([0.3] * 28)).tolist())
    if SCHEMAS[kind].classes is None:
        columns["y"] = some(rng.uniform(-15, 35, rows).tolist())
    else:
        columns["y"] = some(rng.choice(["no", "perhaps", "yes", "unheard of"], rows).tolist())
    return pa.table(columns)


class Walk:
    """Asks two engines the same things, and compares what they say."""

    def __init__(self, one, other, seed):
        self.schema = other.schema
        self.rng = np.random.default_rng(seed)
        if seed % 2:  # of a part of the table
            given = int(self.rng.integers(2**63)), 2**22, 2**24
            one, other = one.portion(*given), other.portion(*given)
        self.engines = one, other
        #: Cells and scores of both engines.
        self.cells = [self.start()]
        start = self.rng.normal(size=other.loss.columns).tolist()
        self.scores = tuple(engine.start_scores(start) for engine in self.engines)
        self.asked = set()

    def start(self):
        """Return the whole table, or its parts, seen through a view of some kind."""
        view, key = self.view(), int(self.rng.integers(2**63))
        if self.rng.random() < 0.5:
            return tuple(engine.root(view) for engine in self.engines)
        count = int(self.rng.integers(1, 5))
        return tuple(engine.parts(view, count, key) for engine in self.engines)

    def view(self):
        kind = self.rng.integers(4)
        if kind == 0:
            return View.of_bins(self.schema)
        if kind == 1:
            return View.of_grid(self.schema)
        most = 6 if kind == 2 else 300
        cuts = []
        for feature in self.schema.features.values():
            if isinstance(feature, Numeric):
                grid = feature.grid
                chosen = self.rng.choice(len(grid), min(most, len(grid)), replace=False)
                cuts.append(tuple(np.sort(grid[chosen]).tolist()))
            else:
                cuts.append(None)
        return View(self.schema, tuple(cuts))

    def splits(self, cells):
        found = []
        for _ in range(cells.size):
            feature = int(self.rng.integers(len(cells.view.sizes)))
            size = cells.view.sizes[feature]
            most = int(self.rng.integers(1, min(size, 4) + 1))
            children = [*range(most), *self.rng.integers(0, most, size - most).tolist()]
            self.rng.shuffle(children)
            found.append(Split(feature, tuple(children)))
        return found

    def axes(self, cells):
        found = []
        for _ in range(cells.size):
            feature = int(self.rng.integers(len(cells.view.sizes)))
            size = cells.view.sizes[feature]
            places = self.rng.permutation(size) if self.rng.random() < 0.4 else None
            found.append(Axis(feature, 0, size - 1, places))
        return found

    def layout(self, cells):
        """Number the codes of some features, the last of each together."""
        chosen = self.rng.permutation(len(cells.view.sizes))[:3]
        numbers, first = [], [0]
        for feature in chosen:
            size = cells.view.sizes[feature]
            kept = min(size, 9)
            numbers.append((first[-1] + np.minimum(np.arange(size), kept - 1)).astype(np.uint16))
            first.append(first[-1] + kept)
        return chosen, tuple(numbers), np.array(first, dtype=np.int64)

    def step(self):
        """Do something that only says which cells are meant."""
        place = int(self.rng.integers(len(self.cells)))
        pair = self.cells[place]
        kind = self.rng.integers(5)
        if kind == 0 or pair[1].size > 40:
            made = self.start()
        elif kind == 1 and pair[1].size:
            most = int(self.rng.integers(0, pair[1].size + 1))
            chosen = self.rng.permutation(pair[1].size)[:most]
            made = tuple(e.take(c, chosen) for e, c in zip(self.engines, pair, strict=True))
        elif kind == 2 and self.rng.random() < 0.5:
            self.scores = tuple(
                e.add_scores(s, c, self.curves(pair[1]))
                for e, s, c in zip(self.engines, self.scores, pair, strict=True)
            )
            return
        elif kind == 2:
            values = self.rng.normal(size=(pair[1].size, self.scores[1].shape[1]))
            self.scores = tuple(
                e.add_scores(s, c, values)
                for e, s, c in zip(self.engines, self.scores, pair, strict=True)
            )
            return
        else:
            splits = self.splits(pair[1])
            made = tuple(e.split(c, splits) for e, c in zip(self.engines, pair, strict=True))
        assert made[0].size == made[1].size
        self.cells.append(made)
        if len(self.cells) > 3:
            del self.cells[int(self.rng.integers(3))]

    def ask(self, question):
        """Ask both engines a question of the protocol, and compare."""
        self.asked.add(question)
        pair = self.cells[int(self.rng.integers(len(self.cells)))]
        getattr(self, f"ask_{question}")(question, pair)

    def answers(self, question, pair, *given, **options):
        return [
            getattr(engine, question)(cells, *given, **options)
            for engine, cells in zip(self.engines, pair, strict=True)
        ]

    def same(self, one, other):
        assert isinstance(one, np.ndarray)
        assert one.dtype.kind in "iu"
        assert one.shape == other.shape
        assert np.array_equal(one, other)

    def steps(self):
        """Return how finely targets are seen; None are classes."""
        if self.schema.classes is not None or self.rng.random() < 0.3:
            return None
        return int(self.rng.choice([1, 16, 1024]))

    def reach(self):
        return 0.4 if self.schema.classes is None else 20.0

    def ask_class_counts(self, question, pair):
        self.same(*self.answers(question, pair))

    def ask_row_counts(self, question, pair):
        self.same(*self.answers(question, pair))

    def ask_target_counts(self, question, pair):
        if self.schema.classes is None:
            self.same(*self.answers(question, pair, int(self.rng.choice([1, 128, 70_000]))))

    def ask_grid_counts(self, question, pair):
        del pair
        numbers = [j for j, f in enumerate(self.schema.features.values()) if isinstance(f, Numeric)]
        j = int(self.rng.choice(numbers))
        for number in (j, None) if self.schema.classes is None else (j,):
            self.same(*(getattr(engine, question)(number) for engine in self.engines))

    def ask_histograms(self, question, pair):
        width = len(self.schema.names)
        features = self.rng.permutation(width)[: self.rng.integers(1, width + 1)].tolist()
        one, other = (list(found) for found in self.answers(question, pair, features, self.steps()))
        if not pair[1].size:
            assert one == []
            return
        ends = [(batch.start, batch.stop) for batch, _ in one]
        assert list(itertools.chain(*ends)) == sorted(itertools.chain(*ends))
        assert ends[0][0] == 0
        assert ends[-1][1] == pair[1].size
        for j in features:
            joined = np.concatenate([found[j] for _, found in one])
            self.same(joined, other[0][1][j])

    def ask_moments(self, question, pair):
        found = [
            getattr(engine, question)(cells, scores, self.reach(), pure=pure)
            for pure in (True, False)
            for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
        ]
        self.same(*found[:2])
        self.same(*found[2:])

    def ask_distance_counts(self, question, pair):
        if self.schema.classes is None:
            self.same(
                *(
                    getattr(engine, question)(cells, scores, (0.125, 0.5, 0.75, 1.0))
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_outcome_counts(self, question, pair):
        if self.schema.classes is None:
            return
        ends = [None]
        if self.scores[1].shape[1] == 1:
            ends.append(np.unique(self.scores[1][:3, 0]).tolist())  # some are equal to a score
        for given in ends:
            self.same(
                *(
                    getattr(engine, question)(cells, scores, given)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_error_sums(self, question, pair):
        if self.schema.classes is None:
            self.same(
                *(
                    getattr(engine, question)(cells, scores)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def curves(self, cells):
        """Return values by the codes of some features, always the same for the same cells."""
        rng = np.random.default_rng(cells.size)
        width = self.scores[1].shape[1]
        return tuple((j, rng.normal(size=(cells.view.sizes[j], width))) for j in (5, 0))

    def basis(self, cells):
        """Return functions of some features, and sometimes of the cells."""
        features = []
        for j in self.rng.permutation(len(cells.view.sizes))[:3].tolist():
            size = cells.view.sizes[j]
            if self.rng.random() < 0.5:
                features.append((j, Peaks.of(1.4, self.rng.random(size))))
            else:
                features.append((j, Tabled.of(self.rng.normal(size=(size, 3)))))
        of_cells = Tabled.of(self.rng.normal(size=(cells.size, 2))) if cells.size else None
        return Basis(tuple(features), of_cells if self.rng.random() < 0.5 else None)

    def ask_slopes(self, question, pair):
        basis = self.basis(pair[1])
        for longest in (700, 4_000):
            self.same(
                *(
                    getattr(engine, question)(cells, scores, basis, 40_000, longest)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_calibration(self, question, pair):
        if len(self.schema.classes or ()) == 2:
            self.same(
                *(
                    getattr(engine, question)(cells, scores, 0.3, 1.7)
                    for engine, cells, scores in zip(self.engines, pair, self.scores, strict=True)
                )
            )

    def ask_places(self, question, pair):
        one, other = self.answers(question, pair, self.axes(pair[1]))
        self.same(one[0], other[0])
        self.same(one[1], other[1])

    def ask_sides(self, question, pair):
        axes = self.axes(pair[1])
        middle = np.array([self.rng.integers(axis.last + 1) for axis in axes], dtype=np.int32)
        self.same(*self.answers(question, pair, axes, middle, self.steps()))

    def weighted(self):
        """Return scores of both engines, or none: then classes weigh one."""
        if self.schema.classes is None or self.rng.random() < 0.5:
            return self.scores
        return None, None

    def ask_tree_rows(self, question, pair):
        if not self.engines[0].gathers:
            return
        size = pair[1].size
        start = int(self.rng.integers(size + 1))
        stop = int(self.rng.integers(start, size + 1))
        one, other = (
            getattr(engine, question)(cells, start, stop, scores, self.reach())
            for engine, cells, scores in zip(self.engines, pair, self.weighted(), strict=True)
        )
        assert len(one) == len(other) == stop - start
        sizes = pair[1].view.sizes
        for (codes, labels, weights, counts), expected in zip(one, other, strict=True):
            of_each = [np.bincount(mine, minlength=n) for mine, n in zip(codes, sizes, strict=True)]
            assert counts.tolist() == np.concatenate(of_each).tolist()
            rows = zip(codes.T.tolist(), labels.tolist(), weights.tolist(), strict=True)
            found = sorted((tuple(code), label, weight) for code, label, weight in rows)
            assert found == expected

    def ask_tree_facts(self, question, pair):
        self.tree(question, pair, lambda cells: ())

    def ask_tree_sums(self, question, pair):
        chosen, numbers, first = self.layout(pair[1])
        labels = self.engines[1].loss.labels if self.schema.classes is None else None
        labels = labels or len(self.schema.classes)
        upper = int(self.rng.integers(1, len(chosen) + 1))
        wide = bool(self.rng.integers(2))
        order = tuple(chosen.tolist())
        layout = TreeLayout(order, upper, numbers, first, labels, wide)
        of = layout.margins(3)
        some = [of[k] for k in self.rng.integers(len(of), size=2)]
        for margins in (of, tuple(dict.fromkeys(some))):
            self.tree(question, pair, lambda cells, given=margins: (layout, given))

    def tree(self, question, pair, given):
        if not pair[1].size:
            return
        cell = int(self.rng.integers(pair[1].size))
        one, other = (
            getattr(engine, question)(cells, cell, *given(cells), scores, self.reach())
            for engine, cells, scores in zip(self.engines, pair, self.weighted(), strict=True)
        )
        if isinstance(other, dict):
            assert list(one) == list(other)
            one, other = (list(found.values()) for found in (one, other))
        else:
            one, other = [one], [other]
        for mine, expected in zip(one, other, strict=True):
            self.same(mine, expected)


#: All that an engine can be asked about its rows, but how many there are.
FREE = {"close", "root", "parts", "portion", "take", "split", "start_scores", "add_scores"}
QUESTIONS = [
    name
    for name, member in inspect.getmembers(Engine, inspect.isfunction)
    if not name.startswith("_") and name not in FREE
]


def walk_through(engine, table, schema, seed):
    """Ask an engine every question four times, and compare its answers with plain counting."""
    assert isinstance(engine, Engine)
    assert engine.schema == schema
    assert engine.rows == len(table)
    walk = Walk(engine, SlowEngine(table, None, schema), seed)
    for _ in range(4):
        for question in QUESTIONS:
            walk.step()
            walk.ask(question)
    assert walk.asked == set(QUESTIONS)
