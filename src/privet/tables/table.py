"""The wall: a private table and its cells.

A :class:`PrivateTable` is a handle. The rows, the exact counts and the noise live in a *room* that
no attribute of the handle or of its cells leads to; questions go in, released integers come out,
and the ledger is charged in between, before anything is computed. Whoever holds a table can spend
its budget, and nothing else.

Python cannot keep out a programmer who goes looking: the wall is there so that a learner cannot
leak by mistake, and so that a test can check it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.errors import BudgetError, PrivacyLeakWarning
from privet.privacy import (
    Budget,
    DiscreteLaplace,
    Exact,
    Exponential,
    GridExponential,
    Ledger,
    Noise,
    PermuteAndFlip,
    Quantiles,
    Released,
    Scopes,
    SecureNoise,
    SeededNoise,
    TopOf,
    WholeTree,
    exact,
)
from privet.privacy.budget import Amount
from privet.schema import Numeric, Schema
from privet.tables.memory import Assignment, MemoryEngine
from privet.tables.splits import Multiway, Sketch, Split, best_correct
from privet.tables.views import View

_log = logging.getLogger("privet")

Epsilon = Amount | Sequence[Amount]

#: Steps of the public grid on which quantiles are found.
GRID = 65_535


@dataclass(frozen=True)
class _Room:
    """What is behind the wall."""

    engine: MemoryEngine
    noise: Noise


_rooms: WeakKeyDictionary[PrivateTable, _Room] = WeakKeyDictionary()
_assignments: WeakKeyDictionary[Cells, Assignment] = WeakKeyDictionary()


class PrivateTable:
    """A table that answers questions privately, within a budget.

    Parameters
    ----------
    features : dataframe or array
        The features; pandas, polars, pyarrow or numpy.
    target : column
        The target.
    schema : Schema
        What is public.
    budget : Budget
        What may be spent on this table.
    random_state : int, generator or None
        None: cryptographic noise. Anything else: repeatable noise that protects nobody, for tests
        and experiments.

    Examples
    --------
    >>> from privet import Budget, Categorical, PrivateTable, Schema
    >>> schema = Schema({"sex": Categorical(["f", "m"])}, target="ill", classes=[0, 1])
    >>> table = PrivateTable([["f"], ["m"]], [0, 1], schema, Budget(2.0))
    >>> answer = table.root().noisy_counts(epsilon=0.5)
    >>> float(table.ledger.left)
    1.5
    """

    def __init__(
        self,
        features: Any,
        target: Any,
        schema: Schema,
        budget: Budget,
        *,
        random_state: Any = None,
    ) -> None:
        self.schema = schema
        self.ledger = Ledger(budget)
        self.leaks = leaks_of(schema, budget, random_state)
        for reason in self.leaks:
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=2)
        noise = SecureNoise() if random_state is None else SeededNoise(random_state)
        _rooms[self] = _Room(MemoryEngine(features, target, schema), noise)

    def root(self, view: View | None = None) -> Cells:
        """Return the whole table as one cell, seen through the schema's bins or another view."""
        view = View.of_bins(self.schema) if view is None else view
        return Cells(self, self.ledger.root, 0, _rooms[self].engine.root(view))

    def quantiles(self, feature: int, levels: int, epsilon: Amount) -> tuple[float, ...]:
        """Return up to ``2^levels - 1`` private quantiles of a numeric feature, in order.

        Medians of medians (Kaplan, Schnapp & Stemmer 2022), each drawn from a public grid of
        65,535 steps.

        Privacy
        -------
        Each level asks every interval for its median: the exponential mechanism on
        ``-abs(left - right)``, whose changes lie in [-1, 1]. Intervals are disjoint, so a level
        costs a ``levels``-th part of epsilon (docs/proofs/questions.md).
        """
        name = self.schema.names[feature]
        numeric = self.schema.features[name]
        if not isinstance(numeric, Numeric):
            raise ValueError("only numeric features have quantiles")
        mechanism = Quantiles(levels, exact(epsilon))
        self.ledger.charge(self.ledger.root, mechanism, f"quantiles of {name}", "the whole table")
        room = _rooms[self]
        counts = room.engine.grid_counts(feature, self.schema, GRID)
        below = np.concatenate([[0], np.cumsum(counts)])
        found: list[int] = []
        intervals = [(0, GRID)]
        for _ in range(levels):
            parts = []
            for start, stop in intervals:
                if stop - start < 2:
                    continue
                middle = _median(below, start, stop, mechanism.median, room.noise)
                found.append(middle)
                parts += [(start, middle), (middle, stop)]
            intervals = parts
        width = numeric.high - numeric.low
        points = [numeric.low + width * (point / GRID) for point in sorted(found)]
        return tuple(point for point in points if numeric.low < point < numeric.high)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private table cannot be pickled or copied: its rows stay where they are")


class Cells:
    """Disjoint cells of one private table, asked all at once.

    A question costs its epsilon once, however many cells there are: no record lies in two of them.
    Questions to the same cell, or to a cell and then to its children, add up; the ledger does that.
    Answers have shapes that depend on the schema and on earlier answers only: empty cells answer.
    """

    def __init__(
        self, table: PrivateTable, scopes: Scopes, depth: int, assignment: Assignment
    ) -> None:
        self._table = table
        self._scopes = scopes
        self.depth = depth
        _assignments[self] = assignment

    def __len__(self) -> int:
        return len(self._scopes)

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self._table.schema

    def __reduce__(self) -> NoReturn:
        raise TypeError("cells cannot be pickled or copied: their rows stay where they are")

    # Free: these only say which cells are meant.

    def take(self, chosen: NDArray[Any]) -> Cells:
        """Return some of the cells, by mask or by position, chosen by public facts. Free."""
        positions = np.arange(len(self))[chosen]
        assignment = _rooms[self._table].engine.take(_assignments[self], positions)
        return Cells(self._table, self._scopes.take(positions), self.depth, assignment)

    def split(self, splits: Sequence[Split]) -> Cells:
        """Return the children of all cells, those of the first cell first. Free.

        Parameters
        ----------
        splits : sequence of Split, one per cell
        """
        if not splits or len(splits) != len(self):
            raise ValueError("give one split for every cell")
        sizes = _assignments[self].view.sizes
        for split in splits:
            if (
                not 0 <= split.feature < len(sizes)
                or len(split.children) != sizes[split.feature]
                or set(split.children) != set(range(split.n_children))
            ):
                raise ValueError("a split needs one child for every code of its feature")
        parents = np.repeat(np.arange(len(self)), [split.n_children for split in splits])
        scopes = self._scopes.divide(parents)
        assignment = _rooms[self._table].engine.split(_assignments[self], splits)
        return Cells(self._table, scopes, self.depth + 1, assignment)

    # Private: each of these is charged before it is computed.

    def noisy_counts(self, epsilon: Epsilon) -> Released:
        """Return how many records each cell has, with noise.

        Privacy
        -------
        One integer per cell; a record changes one of them by one. Discrete Laplace noise of scale
        ``1 / epsilon``; costs epsilon (docs/proofs/questions.md).
        """
        mechanisms = [DiscreteLaplace(1, amount) for amount in self._amounts(epsilon)]
        self._charge(mechanisms, "how many records")
        counts = _rooms[self._table].engine.class_counts(_assignments[self]).sum(axis=1)
        return self._release(Exact(counts), mechanisms)

    def noisy_class_counts(self, epsilon: Epsilon) -> Released:
        """Return how many records of each class each cell has, with noise.

        Privacy
        -------
        One integer per cell and class; a record changes one of them by one. Discrete Laplace noise
        of scale ``1 / epsilon``; costs epsilon (docs/proofs/questions.md).
        """
        mechanisms = [DiscreteLaplace(1, amount) for amount in self._amounts(epsilon)]
        self._charge(mechanisms, "how many records of each class")
        counts = _rooms[self._table].engine.class_counts(_assignments[self])
        return self._release(counts, mechanisms)

    def choose_splits(
        self,
        candidates: Multiway,
        criterion: Criterion,
        epsilon: Epsilon,
        allowed: NDArray[np.bool_],
    ) -> list[Split]:
        """Return one split per cell, good by a criterion.

        Parameters
        ----------
        candidates : Multiway
            Which splits each feature offers.
        criterion : Criterion
            How good a split is.
        epsilon : amount, or one per cell
        allowed : bool array of shape (cells, features)
            Which features each cell may use, by public facts; at least one per cell.

        Privacy
        -------
        One candidate per cell, by permute-and-flip (pure budgets) or the exponential mechanism
        (zCDP budgets) on ``-loss`` with the criterion's spread; costs epsilon
        (docs/proofs/questions.md).
        """
        if allowed.shape != (len(self), len(self.schema.names)) or not allowed.any(axis=1).all():
            raise ValueError("every cell needs at least one feature that it may use")
        if not len(self):
            return []
        select = PermuteAndFlip if self._accountant == "pure" else Exponential
        mechanisms = [select(criterion.spread, amount) for amount in self._amounts(epsilon)]
        self._charge(mechanisms, f"which split ({criterion.name})")
        room, view = _rooms[self._table], _assignments[self].view
        features = np.flatnonzero(allowed.any(axis=0)).tolist()
        chosen: list[Split] = []
        for batch, histograms in room.engine.histograms(_assignments[self], features):
            losses = np.zeros((batch.stop - batch.start, allowed.shape[1]), dtype=np.int64)
            for feature, counts in histograms.items():
                losses[:, feature] = candidates.losses(counts, criterion)
            for cell, loss in enumerate(losses, start=batch.start):
                open_features = np.flatnonzero(allowed[cell])
                mechanism = mechanisms[cell if len(mechanisms) > 1 else 0]
                winner = mechanism.choose(Exact(-loss[open_features]), room.noise)
                chosen.append(candidates.split(int(open_features[winner]), view))
        return chosen

    def draw_trees(
        self,
        depth: int,
        epsilon: Epsilon,
        *,
        upper: Sequence[Sequence[int]] | None = None,
        merge: bool = True,
    ) -> list[Sketch]:
        """Return one small tree with its labels per cell, drawn at once.

        Parameters
        ----------
        depth : int
            1, 2 or 3.
        epsilon : amount, or one per cell
        upper : sequence of sequences of int, optional
            For every cell the features that may be tested above the last level, by public facts;
            all of them if not given.
        merge : bool, default=True
            Whether tests that divide a cell alike share their work: same law, less time, and a
            running time that depends more on the data.

        Privacy
        -------
        The exponential mechanism over all labelled trees of that depth on the number of correctly
        classified records, which a record raises by 0 or 1; costs epsilon, rounding included
        (docs/proofs/whole-trees.md).
        """
        if depth not in (1, 2, 3):
            raise ValueError("a tree drawn at once has depth 1, 2 or 3")
        if not len(self):
            return []
        everything = range(len(self.schema.names))
        if upper is None:
            upper = [everything] * len(self)
        if len(upper) != len(self) or any(
            not part or len(set(part)) < len(part) or not set(part) <= set(everything)
            for part in upper
        ):
            raise ValueError("give every cell at least one feature for its upper levels, each once")
        mechanisms = [WholeTree(amount) for amount in self._amounts(epsilon)]
        self._charge(mechanisms, f"which tree of depth {depth}, with its labels")
        rates = [mechanism.rate for mechanism in mechanisms]
        room = _rooms[self._table]
        _log.info("drawing %d trees (the first time on a machine, loops are compiled)", len(self))
        return room.engine.draw_trees(
            _assignments[self],
            upper,
            depth=depth,
            rates=rates if len(rates) > 1 else rates * len(self),
            merge=merge,
            noise=room.noise,
        )

    def choose_features(self, count: int, epsilon: Epsilon) -> list[tuple[int, ...]]:
        """Return, per cell, the features that promise most for a tree of depth 1.

        Privacy
        -------
        The exponential mechanism, ``count`` times without replacement, on the number of records
        that the best tree of depth 1 on a feature classifies correctly, which a record raises by
        0 or 1; costs epsilon in all (docs/proofs/questions.md).
        """
        mechanisms = [TopOf(1, amount, count) for amount in self._amounts(epsilon)]
        self._charge(mechanisms, f"which {count} features")
        room = _rooms[self._table]
        numeric = [cuts is not None for cuts in _assignments[self].view.cuts]
        chosen = []
        for batch, histograms in room.engine.histograms(
            _assignments[self], range(len(self.schema.names))
        ):
            scores = np.stack(
                [best_correct(histograms[j], numeric[j]) for j in range(len(numeric))], axis=1
            )
            for cell, row in enumerate(scores, start=batch.start):
                mechanism = mechanisms[cell if len(mechanisms) > 1 else 0]
                chosen.append(tuple(sorted(mechanism.choose(Exact(row), room.noise))))
        return chosen

    @property
    def _accountant(self) -> str:
        return self._table.ledger.budget.accountant

    def _amounts(self, epsilon: Epsilon) -> list[Amount]:
        """Return one amount for all cells, or one for each."""
        if isinstance(epsilon, Sequence):
            if len(epsilon) != len(self):
                raise BudgetError("give one epsilon for all cells, or one for each")
            return [exact(amount) for amount in epsilon]
        return [exact(epsilon)]

    def _charge(self, mechanisms: Sequence[Any], question: str) -> None:
        where = "the whole table" if self.depth == 0 else f"tree level {self.depth}"
        _log.info("%s: %d cells: %s", where, len(self), question)
        self._table.ledger.charge(
            self._scopes,
            mechanisms[0] if len(mechanisms) == 1 else mechanisms,
            question,
            where,
        )

    def _release(self, counts: Exact, mechanisms: Sequence[DiscreteLaplace]) -> Released:
        noise = _rooms[self._table].noise
        if len(mechanisms) == 1:
            return mechanisms[0].release(counts, noise)
        rows = [
            mechanism.release(Exact(np.atleast_1d(row)), noise)
            for mechanism, row in zip(mechanisms, counts, strict=True)
        ]
        return Released(np.array(rows, dtype=np.int64).reshape(counts.shape))


def _median(
    below: NDArray[np.int64], start: int, stop: int, mechanism: GridExponential, noise: Noise
) -> int:
    """Draw a cut between two others that leaves about as many records on its left as right."""
    left = below[start + 1 : stop] - below[start]
    edges = np.flatnonzero(np.concatenate([[True], left[1:] != left[:-1]]))
    lengths = np.diff(np.concatenate([edges, [len(left)]]))
    scores = -np.abs(2 * left[edges] - (below[stop] - below[start]))
    return start + 1 + mechanism.choose(Exact(scores), lengths, noise)


def leaks_of(schema: Schema, budget: Budget, random_state: Any) -> tuple[str, ...]:
    """Return the reasons why what is learnt in this way is not private."""
    reasons = []
    if schema.drafted:
        reasons.append(
            "the schema was drafted from the data, so bounds, categories and classes depend on "
            "single records; correct the draft by what is publicly known and set drafted=False"
        )
    if random_state is not None:
        reasons.append(
            "random_state is fixed, so whoever knows it can take the noise away again; leave it "
            "None for anything that is published"
        )
    if budget.limit == float("inf"):
        reasons.append("epsilon is infinite, so there is no noise at all")
    return tuple(reasons)
