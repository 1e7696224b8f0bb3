"""Choices: one of several splits, features, labels or cuts for every cell, drawn privately.

Each is charged before it is computed; exact losses come from the engine, and only what was drawn
leaves the wall. What may be asked, and with what, is in ``interface``; here is what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.criteria import SSE, TARGET_STEPS, Criterion, Max
from privet.engines import (
    Axes,
    Axis,
    AxisLists,
    Split,
)
from privet.errors import (
    BudgetError,
)
from privet.privacy import (
    Exact,
    Exponential,
    GridExponential,
    PermuteAndFlip,
    Question,
    QuestionKind,
    Released,
    ReportNoisyMax,
    TopOf,
    exact,
    noise_for,
    spread_of,
)
from privet.privacy.budget import Amount
from privet.tables.cells import CellsOfTable, behind_cells, behind_table
from privet.tables.halves import halving_losses, halving_spread, middles, ways_to_halve
from privet.tables.interface import Amounts
from privet.tables.splits import (
    Candidates,
    Multiway,
    best_correct,
    list_candidates,
    losses_of,
)

#: Where records lie: the number of the cell, the place on its axis, and how many are there.
Taken = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

#: How many cells are halved at once; each has about a thousand ways to be halved.
_HALVED = 1_024

#: The selections that :meth:`PrivateCells.choose_best` offers.
_SELECTIONS: dict[str, type[PermuteAndFlip | Exponential | ReportNoisyMax]] = {
    "flip": PermuteAndFlip,
    "exponential": Exponential,
    "rnm": ReportNoisyMax,
}


class SelectingCells(CellsOfTable):
    """Cells that choose among public options, or options that were released before."""

    def choose_labels(self, amount: Amount) -> list[int]:
        """Return for every cell a class that is frequent there, by its place in the schema.

        Privacy
        -------
        Permute-and-flip (pure budgets) or the exponential mechanism on the class counts, of which
        a record raises one by one: spread 1; costs the amount (docs/proofs/questions.md).
        """
        self._need_classes()
        select = PermuteAndFlip if self._budget.accountant == "pure" else Exponential
        (each,) = self._epsilons(exact(amount))
        mechanism = select(self._parts, each)
        self._charge([mechanism], Question(QuestionKind.LABEL))
        inside = behind_table[self._table]
        counts = inside.engine.class_counts(behind_cells[self])
        return [mechanism.choose(Exact(row), inside.noise) for row in counts]

    def choose_splits(
        self,
        candidates: Candidates,
        criterion: Criterion,
        amount: Amounts,
        allowed: NDArray[np.bool_],
        *,
        flip: bool = True,
    ) -> list[Split]:
        """Return one split per cell, good by a criterion.

        Privacy
        -------
        One of all candidates of all allowed features per cell, by permute-and-flip or the
        exponential mechanism on ``-loss`` with the criterion's spread; costs the amount
        (docs/proofs/questions.md).
        """
        if allowed.shape != (len(self), len(self.schema.names)) or not allowed.any(axis=1).all():
            raise ValueError("every cell needs at least one feature that it may use")
        if not len(self):
            return []
        steps = self._target_steps(criterion)
        criterion = criterion.in_parts(self._parts)
        inside, view = behind_table[self._table], behind_cells[self].view
        candidates.check(view, len(self))
        features = np.flatnonzero(allowed.any(axis=0)).tolist()
        sizes = {j: candidates.options(j, view) for j in features}
        measured = max(sizes.values()) > 1
        select: type[PermuteAndFlip | Exponential | GridExponential] = Exponential
        if measured:
            select = GridExponential
        elif flip and self._budget.accountant == "pure":
            select = PermuteAndFlip
        spread = self._parts * criterion.spread
        mechanisms = [select(spread, each) for each in self._epsilons(amount)]
        self._charge(mechanisms, Question(QuestionKind.SPLIT, criterion.name))
        masses = {j: np.full(sizes[j], candidates.mass(j, view)) for j in features}
        chosen: list[Split] = []
        for batch, histograms in inside.engine.histograms(behind_cells[self], features, steps):
            cells = range(batch.start, batch.stop)
            losses = {
                j: losses_of(candidates, j, _statistics(counts, criterion), criterion, cells, view)
                for j, counts in histograms.items()
            }
            for place, cell in enumerate(cells):
                mine = np.flatnonzero(allowed[cell]).tolist()
                scores = Exact(-np.concatenate([losses[j][place] for j in mine]))
                mechanism = mechanisms[cell if len(mechanisms) > 1 else 0]
                if isinstance(mechanism, GridExponential):
                    lengths = np.concatenate([masses[j] for j in mine])
                    point = mechanism.choose(scores, lengths, inside.noise)
                    winner = int(np.searchsorted(np.cumsum(lengths), point, side="right"))
                else:
                    winner = mechanism.choose(scores, inside.noise)
                first = np.cumsum([0, *(sizes[j] for j in mine)])
                owner = int(np.searchsorted(first, winner, side="right")) - 1
                option = winner - int(first[owner])
                chosen.append(candidates.split(mine[owner], option, cell, view))
        return chosen

    def choose(
        self, amount: Amount, among: Sequence[str] | None = None, criterion: Criterion | None = None
    ) -> list[str]:
        """Return for every cell the name of a feature that tells the classes apart.

        Privacy
        -------
        :meth:`choose_splits` with one candidate per feature; costs the amount.
        """
        names = self.schema.names
        chosen = range(len(names)) if among is None else [self._feature(name) for name in among]
        allowed = np.zeros((len(self), len(names)), dtype=bool)
        allowed[:, list(chosen)] = True
        splits = self.choose_splits(Multiway(), criterion or Max(), amount, allowed)
        return [names[split.feature] for split in splits]

    def choose_axes(
        self,
        axes: AxisLists,
        criterion: Criterion,
        amount: Amount,
        *,
        flip: bool,
    ) -> list[int]:
        """Return which of its axes each cell should be halved along, by their positions.

        Privacy
        -------
        Permute-and-flip or the exponential mechanism on the loss of a cell's halves, which are
        never released. A record raises it by up to M and shifts half a record: changes of two axes
        are at most 2 M apart. Costs the amount (docs/proofs/forests.md).
        """
        spread = self._parts * halving_spread(criterion)
        mechanism = self._selection(spread, exact(amount), flip=flip)
        if len(axes) != len(self) or not axes.lengths.all():
            raise ValueError("give every cell at least one axis")
        steps = self._target_steps(criterion)
        self._charge([mechanism], Question(QuestionKind.HALVING_FEATURE, criterion.name))
        inside = behind_table[self._table]
        scores = np.empty((len(axes), axes.longest), dtype=np.int64)
        for turn in range(axes.longest):
            sides = self._sides(axes.at(turn), steps)
            np.negative(halving_losses(sides, criterion), out=scores[:, turn])
        return [
            mechanism.choose(Exact(row[:length]), inside.noise)
            for row, length in zip(scores, axes.lengths.tolist(), strict=True)
        ]

    def choose_halves(self, axes: Sequence[Axis], amount: Amount) -> list[Split]:
        """Return for every cell a split that divides its records about equally.

        Privacy
        -------
        The exponential mechanism over all cuts (or subsets) of the axis on the
        difference between the halves, which a record changes by one, up or down; costs the amount
        (docs/proofs/forests.md).
        """
        if len(axes) != len(self):
            raise ValueError("give every cell an axis")
        epsilon = self._budget.selection_epsilon(exact(amount))
        mechanism = GridExponential(self._parts * spread_of(1, monotone=False), epsilon)
        self._charge([mechanism], Question(QuestionKind.MIDDLE))
        inside, sizes = behind_table[self._table], behind_cells[self].view.sizes
        splits: list[Split] = []
        for some, taken in self._places(axes):
            scores, lengths = ways_to_halve(some, *taken, sizes)
            chosen = mechanism.choose_each(Exact(scores), lengths, inside.noise)
            splits += [
                Split.in_two(axis.feature, axis.second(way, sizes[axis.feature]))
                for axis, way in zip(some, chosen, strict=True)
            ]
        return splits

    def choose_of(
        self,
        splits: Sequence[Sequence[Split]],
        criterion: Criterion,
        amount: Amount,
        *,
        flip: bool,
    ) -> list[int]:
        """Return which of some released splits is good for each cell, by their positions.

        Privacy
        -------
        Permute-and-flip (pure budgets only) or the exponential mechanism on ``-loss`` with the
        criterion's spread; costs the amount (docs/proofs/questions.md).
        """
        criterion = criterion.in_parts(self._parts)
        spread = self._parts * criterion.spread
        mechanism = self._selection(spread, exact(amount), flip=flip)
        steps = self._target_steps(criterion)
        self._charge([mechanism], Question(QuestionKind.SPLIT_OF_SOME, criterion.name))
        inside = behind_table[self._table]
        losses = []
        for turn in range(max(map(len, splits))):
            mine = [options[min(turn, len(options) - 1)] for options in splits]
            below = inside.engine.split(behind_cells[self], mine)
            counts: NDArray[Any] = (
                inside.engine.class_counts(below)
                if steps is None
                else inside.engine.target_counts(below, steps)
            )
            first = np.cumsum([0, *(split.n_children for split in mine)])[:-1]
            losses.append(np.add.reduceat(criterion.losses(_statistics(counts, criterion)), first))
        table = -np.stack(losses, axis=1)
        return [
            mechanism.choose(Exact(row[: len(options)]), inside.noise)
            for row, options in zip(table, splits, strict=True)
        ]

    def choose_best(
        self, candidates: Candidates, criterion: Criterion, amount: Amount, *, how: str
    ) -> list[Split]:
        """Return one split per cell, good by a criterion; all candidates count alike.

        Privacy
        -------
        One of all candidates of all features per cell on ``-loss``, with the criterion's spread;
        costs the amount (docs/proofs/topdown.md).
        """
        if how not in _SELECTIONS:
            raise ValueError(f"how must be one of {', '.join(map(repr, _SELECTIONS))}")
        select = _SELECTIONS[how]
        if select is not Exponential and self._budget.accountant != "pure":
            raise BudgetError("in zCDP, splits are chosen by the exponential mechanism")
        self._target_steps(criterion)
        if not len(self):
            return []
        inside, view = behind_table[self._table], behind_cells[self].view
        candidates.check(view, len(self))
        criterion = criterion.in_parts(self._parts)
        spread = self._parts * criterion.spread
        mechanism = select(spread, self._budget.selection_epsilon(exact(amount)))
        self._charge([mechanism], Question(QuestionKind.SPLIT, criterion.name))
        offered = list_candidates(candidates, view)
        chosen: list[Split] = []
        for losses, _ in self._losses(candidates, criterion):
            for row in losses:
                feature, option = offered[mechanism.choose(Exact(-row), inside.noise)]
                chosen.append(candidates.split(feature, option, len(chosen), view))
        return chosen

    def choose_features(self, count: int, amount: Amounts) -> list[tuple[int, ...]]:
        """Return, per cell, the features that promise most for a tree of depth 1.

        Privacy
        -------
        The exponential mechanism, ``count`` times without replacement, on the number of records
        that the best tree of depth 1 on a feature classifies correctly, which a record raises by
        0 or 1; costs the amount in all (docs/proofs/questions.md).
        """
        self._need_classes()
        mechanisms = [TopOf(self._parts, each, count) for each in self._epsilons(amount, count)]
        self._charge(mechanisms, Question(QuestionKind.FEATURES, count=count))
        inside = behind_table[self._table]
        numeric = [cuts is not None for cuts in behind_cells[self].view.cuts]
        chosen = []
        for batch, histograms in inside.engine.histograms(
            behind_cells[self], range(len(self.schema.names))
        ):
            scores = np.stack(
                [best_correct(histograms[j], numeric[j]) for j in range(len(numeric))], axis=1
            )
            for cell, row in enumerate(scores, start=batch.start):
                mechanism = mechanisms[cell if len(mechanisms) > 1 else 0]
                chosen.append(tuple(sorted(mechanism.choose(Exact(row), inside.noise))))
        return chosen

    def noisy_candidate_gains(
        self, candidates: Candidates, criterion: Criterion, amount: Amount
    ) -> Released:
        """Return by how much every candidate lowers each cell's loss, with noise.

        In units of ``1 / criterion.scale``, of shape (cells, candidates) in the order of
        :func:`~privet.tables.list_candidates`.

        Privacy
        -------
        One integer per cell and candidate, each of which a record changes by at most the
        criterion's spread: they add up. Discrete Laplace or discrete Gaussian noise; costs the
        amount (docs/proofs/topdown.md).
        """
        self._target_steps(criterion)
        candidates.check(behind_cells[self].view, len(self))
        criterion = criterion.in_parts(self._parts)
        number = len(list_candidates(candidates, behind_cells[self].view))
        spread = self._parts * criterion.spread
        l1, squared_l2 = number * spread, number * spread**2
        mechanism = noise_for(self._budget, exact(amount), l1=l1, squared_l2=squared_l2)
        self._charge([mechanism], Question(QuestionKind.SPLIT_GAINS, criterion.name))
        noise = behind_table[self._table].noise
        found = [
            mechanism.release(Exact(whole[:, None] - losses), noise)
            for losses, whole in self._losses(candidates, criterion)
        ]
        return self._whole(
            Released(np.concatenate([np.zeros((0, number), dtype=np.int64), *found]))
        )

    def _losses(
        self, candidates: Candidates, criterion: Criterion
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield, by batches of cells, the losses of all candidates and those of whole cells."""
        features, view = range(len(self.schema.names)), behind_cells[self].view
        for batch, histograms in behind_table[self._table].engine.histograms(
            behind_cells[self], features, self._target_steps(criterion)
        ):
            cells = range(batch.start, batch.stop)
            found = {j: _statistics(counts, criterion) for j, counts in histograms.items()}
            losses = [losses_of(candidates, j, found[j], criterion, cells, view) for j in features]
            yield np.concatenate(losses, axis=1), criterion.losses(found[features[0]].sum(axis=1))

    def _sides(self, axes: Axes, steps: int | None) -> NDArray[np.int64]:
        """Count the records below, at and above the middle of every cell's axis."""
        engine, handle = behind_table[self._table].engine, behind_cells[self]
        middle = middles(engine.places(handle, axes), len(self), max(handle.view.sizes))
        return engine.sides(handle, axes, middle, steps)

    def _places(self, axes: Sequence[Axis]) -> Iterator[tuple[Sequence[Axis], Taken]]:
        """Yield by batches of cells where on their axes records are: cells, places and counts.

        Cells are numbered within their batch, in order, and so are the places of a cell.
        """
        width = max(behind_cells[self].view.sizes)
        taken, counts = behind_table[self._table].engine.places(behind_cells[self], axes)
        for start in range(0, len(self), _HALVED):
            some = axes[start : start + _HALVED]
            first, stop = np.searchsorted(taken, np.array([start, start + len(some)]) * width)
            found = taken[first:stop]
            yield some, (found // width - start, found % width, counts[first:stop])

    def _selection(
        self, spread: Amount, amount: Amount, *, flip: bool
    ) -> PermuteAndFlip | Exponential:
        if flip and self._budget.accountant != "pure":
            raise BudgetError("permute-and-flip needs a budget without delta; zCDP makes it dear")
        select = PermuteAndFlip if flip else Exponential
        return select(spread, self._budget.selection_epsilon(amount))


def _statistics(counts: NDArray[Any], criterion: Criterion) -> NDArray[Any]:
    """Return what a criterion needs: counts, or for :class:`SSE` count, sum and sum of squares."""
    if not isinstance(criterion, SSE):
        return counts
    counts = np.asarray(counts, dtype=np.int64)
    values = np.arange(counts.shape[-1]) * (TARGET_STEPS // (counts.shape[-1] - 1))
    return np.stack([counts.sum(axis=-1), counts @ values, counts @ values**2], axis=-1)
