"""Draw a whole small tree with its labels at once, by the exponential mechanism.

The candidates are *all* labelled trees of depth at most D over a public menu of binary tests; a
tree weighs ``prior * exp(rate * correct weight)``. The normaliser factorises over subtrees, so that
the draw can be made from the root down, each choice with its exact conditional probability: a leaf,
a test with everything that can follow it on both sides, or (in the last level) a lookup that gives
every category a label of its own. Proof, law and error bounds: ``docs/proofs/whole-trees.md``.

This is our own code because no library draws from such a law. It is inside the wall: exact sums of
an engine go in (``tree_sums``), one drawn tree comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines import (
    HEAVIEST,
    CellsHandle,
    Engine,
    ScoresHandle,
    Split,
    TreeLayout,
    in_threads,
    loss_of,
    needs_64_bits,
    workers,
)
from privet.errors import SchemaError
from privet.privacy.log_weights import choose
from privet.privacy.noise import Noise
from privet.tables.splits import Branch, Leaf, Subtree
from privet.tables.tree_sums import Region, Source, sources

#: Limits of the prior probability that a node above the last level is a leaf, as the error bounds
#: are proved for.
LEAST_STOP, MOST_STOP = 2.0**-10, 0.5
#: Error bounds are proved up to this many tests, times channels (see ``TreeLayout``).
MOST_TESTS = 2**21
_NEGLIGIBLE = 64.0  # exp(-64) of the largest term of a sum
#: Exponents up to this are multiplied by threes, those beyond it are subtracted first.
_FITTING = 345.0
#: Products need two doubles for every upper test and test, and lookups of few categories.
MOST_PRODUCTS, LONGEST_PRODUCT = 2**22, 2**9


@dataclass(frozen=True)
class Menu:
    """The public prior: what features offer, which ones upper levels use, how soon leaves come.

    Attributes
    ----------
    numeric : tuple of bool
        Numeric features offer "code > k", categorical ones "code = k".
    sizes : tuple of int
        The number of codes of each feature.
    upper : tuple of int
        The features that may be tested above the last level of a tree.
    stop : float
        The prior probability that a node above the last level is a leaf.
    """

    numeric: tuple[bool, ...]
    sizes: tuple[int, ...]
    upper: tuple[int, ...]
    stop: float


def check_sizes(sizes: Sequence[int], classes: int) -> None:
    """Refuse more codes, hence tests, than the error bounds are proved for."""
    if sum(sizes) * (1 if classes == 2 else classes) > MOST_TESTS:
        raise SchemaError(
            f"the schema has too many categories to draw a whole tree: {MOST_TESTS} tests can be "
            "weighed, over the number of classes if these are more than two; join rare categories"
        )


def draw_trees(
    engine: Engine,
    cells: CellsHandle,
    upper: Sequence[Sequence[int]],
    noise: Noise,
    *,
    depth: int,
    rates: Sequence[float],
    merge: bool,
    scores: ScoresHandle | None,
    reach: float,
    stop: float,
) -> list[Subtree]:
    """Draw one tree for every cell; with scores, records weigh by how hard they pull.

    Parameters
    ----------
    engine : Engine
    cells : CellsHandle
    upper : sequence of sequences of int
        For every cell the features that upper levels may test.
    noise : Noise
    depth, merge
        As for :func:`draw_tree`.
    rates : sequence of float, one per cell
        The weight of a tree grows by ``exp(rate)`` per correctly classified record.
    scores, reach
        What records pull at; None for classes, all of which weigh one.
    stop : float
        See :class:`Menu`.
    """
    labels, heaviest = len(engine.schema.classes or ()), 1
    if scores is not None:
        labels, heaviest = loss_of(engine.schema).labels, HEAVIEST
    numeric = tuple(cuts is not None for cuts in cells.view.cuts)
    drawn = []
    for cell, source in enumerate(sources(engine, cells, scores, reach)):
        sampler = partial(
            draw_tree,
            source,
            Menu(numeric, cells.view.sizes, tuple(upper[cell]), stop),
            classes=labels,
            depth=depth,
            rate=rates[cell] / heaviest,
            merge=merge,
            workers=workers(),
        )
        drawn.append(noise.draw(sampler))
    return drawn


def draw_tree(
    source: Source,
    menu: Menu,
    noise: Noise,
    *,
    classes: int,
    depth: int,
    rate: float,
    merge: bool,
    workers: int,
) -> Subtree:
    """Draw one tree for the records of one cell.

    Parameters
    ----------
    source : Source
    menu : Menu
    noise : Noise
    classes, depth : int
    rate : float
        The weight of a tree grows by ``exp(rate)`` per unit of correctly classified weight.
    merge : bool
        Whether tests that divide the records alike share their work. The law is the same; the
        running time then depends on the data more than it does anyway.
    """
    drawing = _Drawing(source, menu, classes, depth, rate, merge, noise, workers)
    return drawing.draw(drawing.whole, depth)


class _Drawing:
    """The tests of one cell, and the recursion over its regions."""

    def __init__(
        self,
        source: Source,
        menu: Menu,
        classes: int,
        depth: int,
        rate: float,
        merge: bool,
        noise: Noise,
        workers: int,
    ) -> None:
        # Features of the upper levels come first: then the tables of pairs are their first rows.
        others = [h for h in range(len(menu.sizes)) if h not in set(menu.upper)]
        self.order = [*menu.upper, *others]
        self.n_upper = len(menu.upper)
        self.sizes = [menu.sizes[h] for h in self.order]
        self.is_numeric = [menu.numeric[h] for h in self.order]
        self.stop = menu.stop
        self.classes = classes
        self.noise = noise
        self.workers = workers
        counts, mass = source.facts()
        self.unit = rate / 2 if classes == 2 else rate
        self.n_channels = 1 if classes == 2 else classes
        end = min(math.ceil(_NEGLIGIBLE / self.unit) + 1, 2 * mass + 2)
        self.fine = np.exp(-self.unit * np.arange(1024))
        self.coarse = np.exp(-self.unit * 1024 * np.arange(end // 1024 + 2))
        self.coarse[-1] = 0.0
        self.mass = mass

        self.occupied = [
            np.flatnonzero(counts[j]) if merge else np.arange(size)
            for j, size in zip(self.order, self.sizes, strict=True)
        ]
        self.occupied = [found if len(found) else np.zeros(1, np.intp) for found in self.occupied]
        self.numeric = np.array(self.is_numeric)
        kept = np.array([len(found) for found in self.occupied])
        self.code_first = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        self.test_first = np.concatenate([[0], np.cumsum(kept - self.numeric)]).astype(np.int64)
        # Those who pass a test have its place, or of a number pass the next test, too.
        lowest = self.code_first[:-1][self.numeric]
        self.place_of = np.delete(np.arange(self.code_first[-1]), lowest)
        self.continued = np.repeat(self.numeric, kept - self.numeric)
        ends = self.test_first[1:] - 1
        self.continued[ends[ends >= 0]] = False
        self._set_priors()
        narrow = np.uint16 if self.code_first[-1] < 2**16 else np.int32
        numbers = []
        for h, size in enumerate(self.sizes):
            number = np.zeros(size, dtype=narrow)
            number[self.occupied[h]] = self.code_first[h] + np.arange(kept[h])
            numbers.append(number)
        layout = TreeLayout(
            tuple(self.order),
            self.n_upper,
            tuple(numbers),
            self.code_first,
            classes,
            needs_64_bits(4 * mass),  # loops double differences of sums
        )
        self.whole = source.region(layout, self.occupied, depth)

    def _set_priors(self) -> None:
        """Share the prior: equally by feature, then equally by test; half to a lookup, if any."""
        features, n_tests = len(self.sizes), int(self.test_first[-1])
        self.last = np.zeros(n_tests)
        self.above = np.zeros(int(self.test_first[self.n_upper]))
        self.idle_last = np.zeros(features)  # tests that divide nothing, by feature
        self.idle_above = np.zeros(features)
        self.times = np.ones(n_tests, dtype=np.int64)  # how many tests are merged into one
        looks, look_features = [], []
        for h, size in enumerate(self.sizes):
            mine = slice(self.test_first[h], self.test_first[h + 1])
            # A numeric feature with one code offers one test, which divides nothing.
            offered = max(size - 1, 1) if self.is_numeric[h] else size
            if self.is_numeric[h]:
                self.times[mine] = np.diff(self.occupied[h])
            share = (1 - self.stop) / features
            if not self.is_numeric[h]:
                share /= 2
                looks.append(share)
                look_features.append(h)
            idle = offered - int(self.times[mine].sum())
            self.last[mine] = share * self.times[mine] / offered
            self.idle_last[h] = share * idle / offered
            if h < self.n_upper:
                share = (1 - self.stop) / self.n_upper
                self.above[mine] = share * self.times[mine] / offered
                self.idle_above[h] = share * idle / offered
        self.looks = np.array(looks)
        self.look_features = np.array(look_features, dtype=np.int64)
        self.look_first = self.test_first[self.look_features]
        self.look_last = self.test_first[self.look_features + 1]

    def draw(self, region: Region, depth: int) -> Subtree:
        """Draw a tree of at most this depth for some of the records."""
        if depth == 0:
            return self._leaf(region.total)
        sums = _Sums(self, region)
        stop = _log(self.stop) + self.log_leaf(sums.total)
        if depth == 1:
            priors, idle = self.last, self.idle_last
            tested = self.log_leaf(sums.singles) + self.log_leaf(sums.total - sums.singles)
            unchanged = float(self.log_leaf(sums.total))
            lookups = self._log_lookups(sums)
        else:
            priors, idle = self.above, self.idle_above
            tested, unchanged = sums.log_tests(depth)
            lookups = np.zeros(0)
        tests = len(priors)
        nothing = [_log(idle.sum()) + unchanged] if idle.any() else []
        chosen = self._choose(np.array([*(_log(priors) + tested), *lookups, stop, *nothing]))
        if chosen < tests:
            return self._branch(chosen, region, depth)
        if chosen < tests + len(lookups):
            return self._lookup(chosen - tests, sums)
        if chosen == tests + len(lookups):
            return self._leaf(sums.total)
        return self._idle_branch(idle, region, depth)

    def by_test(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Return sums by test, from sums by code, of all features or of the upper ones."""
        features = int(np.searchsorted(self.code_first, len(sums)))
        found = np.empty((int(self.test_first[features]), *sums.shape[1:]), dtype=sums.dtype)
        for h in range(features):
            mine = sums[self.code_first[h] : self.code_first[h + 1]]
            into = found[self.test_first[h] : self.test_first[h + 1]]
            if self.numeric[h]:
                np.cumsum(mine[:0:-1], axis=0, dtype=sums.dtype, out=into[::-1])
            else:
                into[:] = mine
        return found

    def log_leaf(self, sums: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log weight of a leaf with any label, for sums by channel."""
        if self.n_channels == 1:
            x = self.unit * np.abs(sums[..., 0].astype(np.float64))
            return np.asarray(x + np.log1p(np.exp(-2 * x)) - math.log(2))
        scaled = self.unit * sums.astype(np.float64)
        top = scaled.max(axis=-1)
        return np.asarray(
            top + np.log(np.exp(scaled - top[..., None]).sum(axis=-1)) - math.log(self.classes)
        )

    def _log_lookups(self, sums: _Sums) -> NDArray[np.float64]:
        leaves = self.log_leaf(sums.singles)
        return np.array(
            [
                _log(prior) + math.fsum(leaves[first:last])  # rounded once, as the proof has it
                for prior, first, last in zip(
                    self.looks, self.look_first, self.look_last, strict=True
                )
            ]
        )

    def _choose(self, log_weights: NDArray[np.float64]) -> int:
        return choose(log_weights, self.noise)

    def _label(self, sums: NDArray[Any]) -> int:
        if self.n_channels == 1:
            return self._choose(np.array([0.0, 2 * self.unit * float(sums[0])]))
        return self._choose(self.unit * sums.astype(np.float64))

    def _leaf(self, total: NDArray[Any]) -> Leaf:
        return Leaf(self._label(total))

    def _branch(self, test: int, region: Region, depth: int) -> Branch:
        """Return a branch by a test; of merged tests, one is drawn."""
        h = int(np.searchsorted(self.test_first, test, side="right")) - 1
        code = int(self.occupied[h][test - int(self.test_first[h])])
        if self.times[test] > 1:
            code += self.noise.below(int(self.times[test]))
        return self._grow(h, code, region, depth)

    def _idle_branch(self, idle: NDArray[np.float64], region: Region, depth: int) -> Branch:
        """Return a branch by a test that divides no record of the cell."""
        offering = np.flatnonzero(idle)
        h = int(offering[self._choose(_log(idle[offering]))])
        size, found = self.sizes[h], self.occupied[h]
        if size == 1:  # its one test
            return self._grow(h, 0, region, depth)
        if self.is_numeric[h]:
            everyone = list(range(int(found[0])))  # "code > k" for all records
            nobody = list(range(int(found[-1]), size - 1))
        else:
            everyone = []
            nobody = sorted(set(range(size)) - set(found.tolist()))
        return self._grow(
            h, [*everyone, *nobody][self.noise.below(len(everyone + nobody))], region, depth
        )

    def _grow(self, h: int, code: int, region: Region, depth: int) -> Branch:
        size = self.sizes[h]
        if self.is_numeric[h]:
            children = tuple(int(c > code) for c in range(size))
        else:
            children = tuple(int(c == code) for c in range(size))
        split = Split(self.order[h], children)
        failing, passing = region.divide(h, split)
        return Branch(split, (self.draw(failing, depth - 1), self.draw(passing, depth - 1)))

    def _lookup(self, look: int, sums: _Sums) -> Branch:
        """Return a branch that gives every category a label; those of one label are one child."""
        h = int(self.look_features[look])
        first = int(self.look_first[look])
        labels = np.empty(self.sizes[h], dtype=np.intp)
        empty = np.ones(self.sizes[h], dtype=bool)
        for k, code in enumerate(self.occupied[h].tolist()):
            labels[code] = self._label(sums.singles[first + k])
            empty[code] = False
        for code in np.flatnonzero(empty).tolist():
            labels[code] = self.noise.below(self.classes)
        used, children = np.unique(labels, return_inverse=True)
        return Branch(
            Split(self.order[h], tuple(children.tolist())),
            tuple(Leaf(int(label)) for label in used),
        )


class _Sums:
    """Sums over one region's records, by test and by pairs of tests."""

    def __init__(self, drawing: _Drawing, region: Region) -> None:
        from privet.tables import _tree_loops

        self.loops: Any = _tree_loops
        self.drawing = drawing
        self.region = region
        row = region.singles
        assert row is not None
        self.total = region.total
        self.singles = drawing.by_test(row)

    def log_tests(self, depth: int) -> tuple[NDArray[np.float64], float]:
        """Return the log weight of all trees below every test, and of those without a test."""
        drawing = self.drawing
        pairs = self._pairs()
        upper = len(drawing.above)
        common = self._common()
        sides = np.empty((upper, 2))
        if drawing.n_channels == 1:
            passing, singles, total = self._signed(pairs)
            inside = singles[:upper]
            failing = (singles - passing, total - inside)
            for side, (sums, totals) in enumerate((failing, (passing, inside))):
                found = np.empty(upper)
                space = np.empty(len(drawing.looks))
                self.loops.log_regions_signed(sums, totals, *common, space, found)
                sides[:, side] = found
        else:
            self.loops.log_children(pairs, self.singles, self.total, *common, sides)
        alone = self.loops.log_depth_1(self.singles, self.total, *common)
        children = sides.sum(axis=1)
        if depth == 2:
            return children, alone
        # Depth 3: each side of a test is a region on which trees of depth <= 2 are summed up.
        log_above = _log(drawing.above)
        idle = _log(drawing.idle_above.sum())
        passing = self.singles[:upper]
        leaves = np.stack(
            [drawing.log_leaf(self.total - passing), drawing.log_leaf(passing)], axis=1
        )
        terms = np.concatenate(
            [
                (_log(drawing.stop) + leaves)[:, :, None],
                (idle + sides)[:, :, None],
                log_above + self._grandchildren(pairs, common),
            ],
            axis=2,
        )
        leaf = _log(drawing.stop) + drawing.log_leaf(self.total)
        whole = np.array([leaf, idle + alone, *(log_above + children)])
        return _log_sum(terms).sum(axis=1), float(_log_sum(whole))

    def _common(self) -> tuple[Any, ...]:
        drawing = self.drawing
        return (
            drawing.last,
            drawing.stop + float(drawing.idle_last.sum()),
            drawing.looks,
            drawing.look_first,
            drawing.look_last,
            drawing.coarse,
            drawing.fine,
            drawing.unit,
        )

    def _pairs(self) -> NDArray[Any]:
        drawing = self.drawing
        hist = self.region.pairs
        assert hist is not None
        return drawing.by_test(drawing.by_test(hist.swapaxes(0, 1)).swapaxes(0, 1))

    def _signed(self, pairs: NDArray[Any]) -> tuple[Any, ...]:
        """Return pairs, singles and total of two classes: they have one channel."""
        return pairs[:, :, 0], self.singles[:, 0], self.total[0]

    def _grandchildren(self, pairs: NDArray[Any], common: tuple[Any, ...]) -> NDArray[np.float64]:
        drawing = self.drawing
        out = np.full((len(drawing.above), 2, len(drawing.above)), np.nan)
        if drawing.n_channels == 1:
            visit = self._signed_visit(pairs, common, out)
        else:
            visit = self._visit(pairs, common, out)
        in_threads(visit, range(drawing.n_upper), drawing.workers)
        return out

    def _visit(
        self, pairs: NDArray[Any], common: tuple[Any, ...], out: NDArray[np.float64]
    ) -> Callable[[int], None]:
        """Return what visits the pairs of tests of a feature, with more than two classes."""
        drawing, deeper = self.drawing, self.region.deeper
        assert deeper is not None
        sums = (pairs, self.singles, self.total, *self._layout())

        def visit(f: int) -> None:
            planes = deeper.planes(f)
            self.loops.log_grandchildren(f, *planes, drawing.n_upper, *sums, *common, out)

        return visit

    def _signed_visit(
        self, pairs: NDArray[Any], common: tuple[Any, ...], out: NDArray[np.float64]
    ) -> Callable[[int], None]:
        """Return the same with two classes: by products, and what these cannot do after them."""
        drawing, deeper, loops = self.drawing, self.region.deeper, self.loops
        assert deeper is not None
        signed = self._signed(pairs)
        sums = (*signed, *self._layout())
        powers = self._powers(*signed)
        fits = powers[-1]
        *menu, _, _, _ = common  # without tables of exponentials

        tests = len(self.singles)
        no_lines = np.empty((0, tests), dtype=self.singles.dtype), np.empty(0, dtype=np.intp)

        def visit(f: int) -> None:
            places, _, *planes = deeper.planes(f)
            size = int(drawing.code_first[f + 1] - drawing.code_first[f])
            given = (places, *planes, drawing.n_upper, *sums, *menu, *powers)
            near = loops.log_grandchildren_signed
            if fits.any() and not near(f, 0, size, *given, *self._space(), *no_lines, out):
                return
            space, upper = self._space(), len(drawing.above)
            lines, which = np.empty((upper, tests), sums[0].dtype), np.empty(upper, dtype=np.intp)
            for code in reversed(range(size)):
                left = near(f, code, code + 1, *given, *space, lines, which, out)
                c = int(drawing.test_first[f]) + code - int(drawing.numeric[f])
                if left:
                    self._far_grandchildren(c, which[:left], lines[:left], signed, common, out)

        return visit

    def _far_grandchildren(
        self,
        c: int,
        d: NDArray[np.intp],
        both: NDArray[Any],
        signed: tuple[Any, ...],
        common: tuple[Any, ...],
        out: NDArray[np.float64],
    ) -> None:
        """Weigh pairs of tests c and d whatever the exponents, from sums of who passes both."""
        pairs, singles, total = signed
        inside = pairs[c, d]
        sums = np.stack([both, pairs[c] - both, pairs[d] - both])
        sums = np.concatenate([sums, (singles - sums.sum(axis=0, dtype=sums.dtype))[None]])
        totals = np.stack([inside, singles[c] - inside, singles[d] - inside])
        totals = np.concatenate([totals, (total - totals.sum(axis=0, dtype=totals.dtype))[None]])
        found = np.empty(totals.size)
        space = np.empty(len(self.drawing.looks))
        lines = sums.reshape(totals.size, -1)
        self.loops.log_regions_signed(lines, totals.reshape(-1), *common, space, found)
        z = found.reshape(totals.shape)
        out[c, 1, d] = z[0] + z[1]
        out[c, 0, d] = z[2] + z[3]
        out[d, 1, c] = z[0] + z[2]
        out[d, 0, c] = z[1] + z[3]

    def _layout(self) -> tuple[NDArray[Any], ...]:
        drawing = self.drawing
        above_of = -drawing.continued.astype(self.singles.dtype)
        first = drawing.code_first, drawing.test_first
        return *first, drawing.numeric, drawing.place_of, above_of

    def _space(self) -> tuple[NDArray[Any], ...]:
        """Return zeros for the loop over pairs of tests to work on."""
        drawing = self.drawing
        kind, width = self.singles.dtype, max(int(drawing.code_first[-1]), 4)
        shape = (int(drawing.code_first[drawing.n_upper]), int(drawing.code_first[-1]))
        return np.zeros(shape, dtype=kind), np.zeros((6, width), dtype=kind), np.zeros((7, width))

    def _powers(self, pairs: NDArray[Any], singles: NDArray[Any], total: Any) -> tuple[Any, ...]:
        """Return tables of exponentials, and those of every upper test, as far as they fit."""
        drawing = self.drawing
        unit = drawing.unit
        shift = min(max(math.floor(math.log2(8 / unit)), 0), 10)
        most = int(min(_FITTING / unit, 2 * drawing.mass))
        half = (3 * most >> shift) + 2
        with np.errstate(over="ignore"):  # pairs of tests that need it are left out
            rise = np.exp(unit * 2**shift * np.arange(-half, half))
        fine = np.exp(unit * np.arange(2**shift))
        fits = np.zeros(len(pairs), dtype=np.bool_)
        longest = max([0, *(drawing.look_last - drawing.look_first).tolist()])
        if pairs.size > MOST_PRODUCTS or longest > LONGEST_PRODUCT:
            nothing = np.zeros((0, 0))
            return rise, fine, shift, most, nothing, nothing, fits
        inside = singles[: len(pairs), None]
        passing = 2 * pairs - inside
        failing = 2 * (singles - pairs) - (total - inside)
        largest = [np.abs(sums).max(axis=1, initial=0) for sums in (passing, failing, inside)]
        np.less_equal(np.maximum.reduce([*largest, np.abs(total - inside[:, 0])]), most, out=fits)
        passing[~fits] = 0  # whose powers nobody looks at
        power = rise[(passing >> shift) + half] * fine[passing & (2**shift - 1)]
        return rise, fine, shift, most, power, 1 / power, fits


def _log(values: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _log_sum(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    top = terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))
