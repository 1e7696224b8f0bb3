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
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from privet.criteria import MAX_ROWS, SAD, SSE, TARGET_STEPS, Criterion, Max, MinOfLinear
from privet.engines import (
    Axis,
    CellsHandle,
    Engine,
    ScoresHandle,
    Split,
    View,
    encode_stream,
    holds_blocks,
    keep_blocks,
    loss_of,
    memory_engine,
    open_blocks,
)
from privet.errors import (
    BudgetError,
    DataError,
    PrivacyLeakWarning,
    SchemaError,
)
from privet.privacy import (
    SEEDED,
    Asked,
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    GridExponential,
    JointQuantiles,
    LaplaceShare,
    Ledger,
    Noise,
    NoisyMaxShare,
    PermuteAndFlip,
    Place,
    Quantiles,
    Question,
    Released,
    ReportNoisyMax,
    Scopes,
    TopOf,
    WholeTree,
    exact,
    noise_for,
    noise_of,
    place_words,
    question_words,
    spread_of,
)
from privet.privacy.budget import Amount
from privet.reading import Source
from privet.schema import Numeric, Schema
from privet.tables.halves import halving_losses, halving_spread, middles, ways_to_halve
from privet.tables.interface import Amounts, Cells, Table
from privet.tables.splits import (
    Candidates,
    Multiway,
    Sketch,
    best_correct,
    list_candidates,
    losses_of,
)
from privet.tables.whole_trees import check_sizes, draw_trees

_log = logging.getLogger("privet")

#: Squared distances are measured on so many steps of the target.
_SSE_STEPS = 128
#: Means that leak are published on a grid of so many steps.
_MEAN_STEPS, _MEAN_LEVELS = 2**24, 2**10

#: Why what is learnt with an infinite budget is not private.
NO_NOISE = "epsilon is infinite, so there is no noise at all"

#: Where there are records: cells, places and counts.
Taken = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

#: Cells whose ways to be halved are looked at together: a thousand or so each.
_HALVED = 1_024

#: The selections that :meth:`PrivateCells.choose_best` offers.
_SELECTIONS: dict[str, type[PermuteAndFlip | Exponential | ReportNoisyMax]] = {
    "flip": PermuteAndFlip,
    "exponential": Exponential,
    "rnm": ReportNoisyMax,
}


@dataclass(frozen=True)
class _Room:
    """What is behind the wall."""

    engine: Engine
    noise: Noise


_rooms: WeakKeyDictionary[PrivateTable, _Room] = WeakKeyDictionary()
_handles: WeakKeyDictionary[PrivateCells, CellsHandle] = WeakKeyDictionary()
_scores: WeakKeyDictionary[Scores, ScoresHandle] = WeakKeyDictionary()


class PrivateTable(Table):
    """A table that answers questions privately, within a budget.

    Parameters
    ----------
    features : dataframe, array or Engine
        The features; pandas, polars, pyarrow or numpy. Or an engine that has the rows, with their
        targets: then ``target`` and ``schema`` are None.
    target : column or None
        The target; if None, the column of the features that the schema names. Records whose class
        is missing or unknown, or whose number is missing, are left out; estimators refuse the
        latter.
    schema : Schema
        What is public.
    budget : Budget
        What may be spent on this table.
    random_state : int, generator, Noise or None
        None: cryptographic noise. Anything else: repeatable noise that protects nobody, for tests
        and experiments, or an audit's own source of noise.

    Examples
    --------
    >>> from privet import Budget, Categorical, PrivateTable, Schema
    >>> schema = Schema({"sex": Categorical(["f", "m"])}, target="ill", classes=[0, 1])
    >>> table = PrivateTable([["f"], ["m"]], [0, 1], schema, Budget(2.0))
    >>> answer = table.root().noisy_counts(0.5)
    >>> float(table.ledger.left)
    1.5
    """

    def __init__(
        self,
        features: Any,
        target: Any,
        schema: Schema | None,
        budget: Budget,
        *,
        random_state: Any = None,
    ) -> None:
        engine = _engine_of(features, target, schema)
        schema = engine.schema
        self.schema = schema
        self.ledger = Ledger(budget)
        self.leaks = leaks_of(schema, budget, random_state)
        #: Whether the noise can be repeated: all questions then draw from one stream.
        self.seeded = random_state is not None
        #: Whether the ledger covers all that left; no budget pays for the leaking questions.
        self.covered = True
        #: No question may cost less; here any amount will do.
        self.least_amount = Fraction(0)
        #: The table that this is a session of.
        self._origin: PrivateTable | None = None
        for reason in self.leaks:
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=2)
        _rooms[self] = _Room(engine, noise_of(random_state))

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        schema: Schema,
        budget: Budget,
        *,
        directory: str | Path | None = None,
        progress: Callable[[float], None] | None = None,
        random_state: Any = None,
    ) -> PrivateTable:
        """Open Parquet files that need not fit into memory.

        The rows are encoded batch by batch into mapped files, two bytes a number, which are as
        sensitive as the rows: only their owner can read them, and they are removed when the table
        is closed, or nobody has it any more.

        Parameters
        ----------
        path : path
            A file, a folder (all files below it that end in ``.parquet``), or a pattern with ``*``.
        schema : Schema
        budget : Budget
        directory : path, optional
            Where the mapped files are; the system's place for temporary files if not given.
        progress : function, optional
            Is called with the part of the files that was read so far, between 0 and 1.
        random_state
            As for :class:`PrivateTable`.
        """
        source = Source(path, directory, progress)
        return cls.from_source(source, schema, budget, random_state=random_state)

    @classmethod
    def from_batches(
        cls,
        source: Any,
        schema: Schema,
        budget: Budget,
        *,
        directory: str | Path | None = None,
        random_state: Any = None,
    ) -> PrivateTable:
        """Open a stream of rows that need not fit into memory, in mapped files.

        Parameters
        ----------
        source : Arrow stream, or iterable of tables
            A pyarrow reader, dataset or scanner; a DuckDB relation; a polars LazyFrame; a cursor of
            ADBC (PostgreSQL and others) after ``execute``; whatever has ``__arrow_c_stream__``; or
            an iterable of record batches or dataframes with the same columns.
        schema, budget, directory, random_state
            As for :meth:`from_parquet`.
        """
        if isinstance(source, str | Path):
            raise DataError("expected a stream of rows; for files there is from_parquet")
        return cls.from_source(Source(source, directory), schema, budget, random_state=random_state)

    @classmethod
    def from_source(
        cls, source: Source, schema: Schema, budget: Budget, *, random_state: Any = None
    ) -> PrivateTable:
        """Open files, kept blocks or a stream, read as a :class:`~privet.reading.Source` says.

        Parameters
        ----------
        source : Source
        schema, budget, random_state
            As for :meth:`from_parquet`.
        """
        _check_schema(schema)
        if source.path is not None and holds_blocks(source.path):
            engine = open_blocks(source.path, schema, scratch=source.directory)
        else:
            engine = encode_stream(source.open(schema), source.directory)
        return cls._of_engine(engine, budget, random_state)

    @classmethod
    def from_blocks(
        cls,
        directory: str | Path,
        budget: Budget,
        *,
        schema: Schema | None = None,
        random_state: Any = None,
    ) -> PrivateTable:
        """Open blocks of rows that :func:`encode` has kept; they stay where they are.

        Parameters
        ----------
        directory : path
        budget : Budget
        schema : Schema, optional
            If given, the blocks must have been made with it.
        random_state
            As for :class:`PrivateTable`.
        """
        return cls._of_engine(open_blocks(directory, schema), budget, random_state)

    @classmethod
    def _of_engine(cls, engine: Engine, budget: Budget, random_state: Any) -> PrivateTable:
        """Return a table with the rows of an engine, which is closed if that fails."""
        try:
            return cls(engine, None, None, budget, random_state=random_state)
        except BaseException:
            engine.close()
            raise

    def close(self) -> None:
        """Give up the rows: files of blocks are removed, and nothing can be asked any more."""
        self.ledger.close()
        _rooms[self].engine.close()

    def __enter__(self) -> PrivateTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _cells_class(self) -> type[PrivateCells]:
        return PrivateCells

    def session(self, budget: Budget, asks: Iterable[str] = ()) -> PrivateTable:
        """Return the same table with books of its own, for one fit.

        What is charged there is charged here, too, before anything is computed: fits add up. A pure
        budget on a table with one of zCDP costs at most ``epsilon^2 / 2`` of it. Raises, before
        anything is spent, if there is less left than that.

        Parameters
        ----------
        budget : Budget
            What the fit may spend.
        asks : iterable of str, optional
            Questions that will surely be asked.
        """
        for question in asks:
            if not self.can(question):
                self._refuse(question)
        ledger = self.ledger.subledger(budget)
        again = object.__new__(PrivateTable)
        again.__dict__.update(self.__dict__, ledger=ledger, _origin=self, covered=True)
        again.leaks = tuple(leak for leak in self.leaks if leak != NO_NOISE)
        if budget.limit == math.inf:
            again.leaks = (*again.leaks, NO_NOISE)
        _rooms[again] = _rooms[self]
        return again

    def root(self, view: View | None = None) -> PrivateCells:
        """Return the whole table as one cell, seen through the schema's bins or another view."""
        view = self._view(view)
        return PrivateCells(self, self.ledger.root, Place(), _rooms[self].engine.root(view))

    def parts(self, count: int, key: int, view: View | None = None) -> PrivateCells:
        """Return the table as disjoint parts: which one a record is in, a hash of it says. Free.

        Parameters
        ----------
        count : int
            How many parts; some may be empty.
        key : int
            Decides the hash, from 0 up to 2^64; public, chosen without looking at the table.
            Equal records share a part.
        view : View, optional
            As for :meth:`root`.
        """
        if not 1 <= count < 2**24 or not 0 <= key < 2**64:
            raise ValueError("a table has 1 to 2^24 parts, by a key from 0 to 2^64")
        view = self._view(view)
        scopes = self.ledger.root.divide(np.zeros(count, dtype=np.intp))
        place = Place(parts=count)
        return PrivateCells(self, scopes, place, _rooms[self].engine.parts(view, count, key))

    def _view(self, view: View | None) -> View:
        if view is None:
            return View.of_bins(self.schema)
        if view.schema != self.schema or view.schema.names != self.schema.names:
            raise SchemaError("a table is seen through its own schema only")
        return View(self.schema, view.cuts)  # which says the sizes, not one that looks like it

    def start_scores(self, start: Sequence[float]) -> Scores:
        """Give every record the same public score, or one per class. Free."""
        return Scores(self, start)

    def quantiles(self, feature: int | str, parts: int, amount: Amount) -> tuple[float, ...]:
        """Return private cuts that divide the records of a numeric feature into equal parts.

        The middle cut first, then those on either side (Kaplan, Schnapp & Stemmer 2022), each drawn
        from a public grid: half of its points evenly spaced, half at even ratios towards the lower
        bound (or towards zero, if that lies within), so that heavy tails do not hide the rest.
        There are fewer cuts where the grid has no room for more. The feature is given by its name
        or its position in the schema.

        Privacy
        -------
        Each level asks every interval for its middle cut: the exponential mechanism on
        ``-abs(b * below - a * above)`` for a parts below and b parts above, whose changes lie
        within the larger of a and b. Intervals are disjoint, so a level costs an equal part of the
        amount (docs/proofs/questions.md).
        """
        name, numeric = self._numeric(feature)
        levels = Quantiles(parts, 1).levels
        each = self.ledger.budget.selection_epsilon(exact(amount) / levels)
        grid = numeric.fine
        return self._cuts(name, Quantiles(parts, each * levels), grid)

    def joint_quantiles(self, feature: int | str, parts: int, amount: Amount) -> tuple[float, ...]:
        """Return such cuts drawn all at once (Gillenwater, Joseph & Kulesza 2021).

        From a coarser grid than :meth:`quantiles`, every 64th point of it: the work grows with the
        square of the grid's size.

        Privacy
        -------
        The exponential mechanism over all increasing tuples of grid cuts on
        ``-sum of abs(parts * part - all)``, which a record changes by at most ``2 * (parts - 1)``,
        up or down; costs the amount, rounding included (docs/proofs/questions.md).
        """
        name, numeric = self._numeric(feature)
        epsilon = self.ledger.budget.selection_epsilon(exact(amount))
        grid = numeric.coarse
        return self._cuts(name, JointQuantiles(epsilon, parts), grid)

    def _cuts(
        self, name: str, mechanism: Quantiles | JointQuantiles, grid: NDArray[np.float64]
    ) -> tuple[float, ...]:
        question = Question(Asked.QUANTILES, feature=name)
        self.ledger.charge(self.ledger.root, mechanism, question, Place())
        room = _rooms[self]
        cuts = mechanism.choose(self._grid_counts(name, grid), room.noise)
        return tuple(float(grid[cut - 1]) for cut in cuts)

    def _grid_counts(self, name: str, points: NDArray[np.float64]) -> Exact:
        """Count records between each two of some points of a number's grid, and beyond the ends."""
        numeric, place = self.schema.features[name], self.schema.names.index(name)
        assert isinstance(numeric, Numeric)
        counts = _rooms[self].engine.grid_counts(place)[:-1]
        first = np.concatenate([[0], np.searchsorted(numeric.grid, points) + 1])
        return Exact(np.add.reduceat(counts, first))

    def leaking_quantiles(self, feature: int | str, parts: int) -> tuple[float, ...]:
        """Return the cuts without noise, for studies: the table is marked as leaking from now on.

        Nothing is charged, since no budget pays for it: the ledger does not cover it.
        """
        name, numeric = self._numeric(feature)
        self._mark_uncovered(
            "quantiles of the features were taken without noise, so cut points depend on single "
            "records; use binning='quantile' for anything that is published"
        )
        grid = numeric.fine
        below = np.cumsum(self._grid_counts(name, grid))
        ranks = below[-1] * np.arange(1, parts) / parts
        points = np.searchsorted(below, ranks)
        return tuple(sorted({float(grid[min(point, len(grid) - 1)]) for point in points.tolist()}))

    def mark_leak(self, reason: str) -> None:
        """Say once why what is learnt from this table is not private."""
        if reason not in self.leaks:
            self.leaks = (*self.leaks, reason)
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=4)

    def _mark_uncovered(self, reason: str) -> None:
        """Say that something left which the books do not cover, here and where this is from."""
        self.mark_leak(reason)
        table: PrivateTable | None = self
        while table is not None:
            table.covered = False
            table.leaks = tuple(dict.fromkeys((*table.leaks, reason)))
            table = table._origin

    def _numeric(self, feature: int | str) -> tuple[str, Numeric]:
        names = self.schema.names
        if isinstance(feature, str):
            if feature not in self.schema.features:
                raise SchemaError(f"the schema has no feature {feature!r}")
            name = feature
        elif isinstance(feature, int | np.integer) and not isinstance(feature, bool):
            if not 0 <= feature < len(names):
                raise SchemaError(f"the schema has features 0 to {len(names) - 1}")
            name = names[int(feature)]
        else:
            raise SchemaError("give a feature by its name or its position in the schema")
        numeric = self.schema.features[name]
        if not isinstance(numeric, Numeric):
            raise SchemaError("only numeric features have quantiles")
        return name, numeric

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private table cannot be pickled or copied: its rows stay where they are")


class PrivateCells(Cells):
    """Disjoint cells of one private table, asked all at once.

    A question costs its amount once, however many cells there are: no record lies in two of them.
    Questions to the same cell, or to a cell and then to its children, add up; the ledger does that.
    Answers have shapes that depend on the schema and on earlier answers only: empty cells answer.
    """

    def __init__(
        self, table: PrivateTable, scopes: Scopes, place: Place, handle: CellsHandle
    ) -> None:
        self._table = table
        self._scopes = scopes
        self._place = place
        _handles[self] = handle

    def __len__(self) -> int:
        return len(self._scopes)

    @property
    def depth(self) -> int:
        """How many times the cells were divided, from the whole table or its parts."""
        return self._place.level or 0

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self._table.schema

    @property
    def view(self) -> View:
        """Through which public cuts the records are seen."""
        return _handles[self].view

    def __reduce__(self) -> NoReturn:
        raise TypeError("cells cannot be pickled or copied: their rows stay where they are")

    # Free: these only say which cells are meant.

    def take(self, chosen: NDArray[Any]) -> PrivateCells:
        """Return some of the cells, by mask or by position, chosen by public facts. Free."""
        chosen = np.asarray(chosen)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "biu"):
            raise ValueError("give a mask of the cells, or a list of positions")
        positions = np.arange(len(self))[chosen if chosen.size else slice(0)]
        handle = _rooms[self._table].engine.take(_handles[self], positions)
        return PrivateCells(self._table, self._scopes.take(positions), self._place, handle)

    def split(self, splits: Sequence[Split]) -> PrivateCells:
        """Return the children of all cells, those of the first cell first. Free.

        Parameters
        ----------
        splits : sequence of Split, one per cell
        """
        if not splits or len(splits) != len(self):
            raise ValueError("give one split for every cell")
        view = _handles[self].view
        if not all(split.fits(view) for split in splits):
            raise ValueError("a split needs one child for every code of its feature")
        parents = np.repeat(np.arange(len(self)), [split.n_children for split in splits])
        scopes = self._scopes.divide(parents)
        handle = _rooms[self._table].engine.split(_handles[self], splits)
        place = replace(self._place, level=self.depth + 1)
        return PrivateCells(self._table, scopes, place, handle)

    def partition(self, by: str) -> PrivateCells:
        """Return the cells divided by a feature: one part for every code of it, in order. Free.

        The codes of a number are its bins, those of a category its values; the last one is for what
        is missing or unknown. The parts of the first cell come first.
        """
        feature = self._feature(by)
        view = _handles[self].view
        return self.split([Multiway().split(feature, 0, 0, view)] * len(self))

    # Private: each of these is charged before it is computed.

    def noisy_counts(self, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise.

        Privacy
        -------
        One integer per cell; a record changes one of them by one. Discrete Laplace noise (pure
        budgets) or discrete Gaussian noise (zCDP budgets); costs the amount
        (docs/proofs/questions.md).
        """
        mechanisms = self._noises(amount, l1=1, squared_l2=1)
        self._charge(mechanisms, Question(Asked.ROW_COUNT))
        counts = _rooms[self._table].engine.class_counts(_handles[self]).sum(axis=1)
        return self._release(Exact(counts), mechanisms)

    def noisy_class_counts(self, amount: Amounts) -> Released:
        """Return how many records of each class each cell has, with noise.

        Privacy
        -------
        One integer per cell and class; a record changes one of them by one. Discrete Laplace noise
        (pure budgets) or discrete Gaussian noise (zCDP budgets); costs the amount
        (docs/proofs/questions.md).
        """
        self._need_classes()
        mechanisms = self._noises(amount, l1=1, squared_l2=1)
        self._charge(mechanisms, Question(Asked.CLASS_COUNTS))
        counts = _rooms[self._table].engine.class_counts(_handles[self])
        return self._release(Exact(counts), mechanisms)

    # Doors for ``privet.federation.mpc`` alone (tests/wall sees to it): what a party adds to secret
    # sums and choices. What leaves here must leave the party under a mask only.

    def mpc_noisy_counts(self, asked: Asked, amount: Amounts, honest: int) -> NDArray[np.int64]:
        """Return counts with this party's share of the noise: too little for its rows by itself.

        Parameters
        ----------
        asked : Asked
            ``ROW_COUNT``: one count per cell; ``CLASS_COUNTS`` or ``LABEL``: one for every class.
        amount : amount, or one per cell
            What the sum or the choice may cost, in epsilon.
        honest : int
            How many parties' shares make the noise.

        Privacy
        -------
        A record changes one integer by one. Shares of discrete Laplace noise (for sums) or of
        geometric noise (for the choice of a label) add up to noise that costs the amount, if at
        least ``honest`` parties add theirs and nobody sees one share (docs/proofs/federation.md).
        """
        if asked is not Asked.ROW_COUNT:
            self._need_classes()
        self._need_pure()
        share = NoisyMaxShare if asked is Asked.LABEL else LaplaceShare
        mechanisms = [share(1, each, honest) for each in self._amounts(amount)]
        self._charge(mechanisms, Question(asked))
        room = _rooms[self._table]
        counts = np.asarray(room.engine.class_counts(_handles[self]))
        if asked is Asked.ROW_COUNT:
            counts = counts.sum(axis=1, keepdims=True)
        if len(mechanisms) == 1:
            return mechanisms[0].release(Exact(counts), room.noise)
        rows = zip(mechanisms, counts, strict=True)
        return np.array([one.release(Exact(row), room.noise) for one, row in rows])

    def mpc_exact_counts(
        self, candidates: Candidates, criterion: MinOfLinear, amount: Amount, honest: int
    ) -> tuple[Exact, NDArray[np.int64]]:
        """Return class counts of all candidates' children, *exact*, and a share of noise for each.

        Of shapes (cells, children of all candidates, classes) and (cells, candidates). The counts
        go into comparisons that nobody sees; the noise is added to their losses there.

        Parameters
        ----------
        candidates : Candidates
            Which splits each feature offers.
        criterion : MinOfLinear
            What splits are judged by.
        amount : amount
            What the choice may cost, in epsilon.
        honest : int
            How many parties' shares make the noise.

        Privacy
        -------
        Which candidate has the best noisy loss of all parties' rows is all that may be told. A
        record changes the losses by at most the criterion's spread. The choice costs the amount, if
        at least ``honest`` parties add their share (docs/proofs/federation.md).
        """
        self._need_classes()
        self._need_pure()
        view, classes = _handles[self].view, len(self.schema.classes or ())
        candidates.check(view, len(self))
        criterion.check(classes)
        mechanism = NoisyMaxShare(criterion.spread, exact(amount), honest)
        self._charge([mechanism], Question(Asked.SPLIT, criterion.name))
        room = _rooms[self._table]
        features, found = range(len(view.sizes)), []
        for batch, histograms in room.engine.histograms(_handles[self], features):
            cells = range(batch.start, batch.stop)
            parts = [candidates.children(j, histograms[j], cells, view) for j in features]
            regions = [part.reshape(len(cells), -1, classes) for part in parts]
            found.append(np.concatenate(regions, axis=1, dtype=np.int64))
        nothing = np.zeros((len(self), len(list_candidates(candidates, view))), dtype=np.int64)
        noise = mechanism.release(Exact(nothing), room.noise)
        return Exact(np.concatenate(found)), noise

    def _need_pure(self) -> None:
        if self._budget.accountant != "pure":
            raise BudgetError("shares of noise need a pure budget")

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
        mechanism = select(1, each)
        self._charge([mechanism], Question(Asked.LABEL))
        room = _rooms[self._table]
        counts = room.engine.class_counts(_handles[self])
        return [mechanism.choose(Exact(row), room.noise) for row in counts]

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

        Parameters
        ----------
        candidates : Candidates
            Which splits each feature offers.
        criterion : Criterion
            How good a split is.
        amount : amount, or one per cell
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        allowed : bool array of shape (cells, features)
            Which features each cell may use, by public facts; at least one per cell.
        flip : bool, default=True
            Whether to use permute-and-flip where it is better: pure budgets, and candidates of
            equal measure.

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
        room, view = _rooms[self._table], _handles[self].view
        candidates.check(view, len(self))
        features = np.flatnonzero(allowed.any(axis=0)).tolist()
        sizes = {j: candidates.options(j, view) for j in features}
        measured = max(sizes.values()) > 1
        select: type[PermuteAndFlip | Exponential | GridExponential] = Exponential
        if measured:
            select = GridExponential
        elif flip and self._budget.accountant == "pure":
            select = PermuteAndFlip
        mechanisms = [select(criterion.spread, each) for each in self._epsilons(amount)]
        self._charge(mechanisms, Question(Asked.SPLIT, criterion.name))
        masses = {j: np.full(sizes[j], candidates.mass(j, view)) for j in features}
        chosen: list[Split] = []
        for batch, histograms in room.engine.histograms(_handles[self], features, steps):
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
                    point = mechanism.choose(scores, lengths, room.noise)
                    winner = int(np.searchsorted(np.cumsum(lengths), point, side="right"))
                else:
                    winner = mechanism.choose(scores, room.noise)
                first = np.cumsum([0, *(sizes[j] for j in mine)])
                owner = int(np.searchsorted(first, winner, side="right")) - 1
                option = winner - int(first[owner])
                chosen.append(candidates.split(mine[owner], option, cell, view))
        return chosen

    def choose(
        self, amount: Amount, among: Sequence[str] | None = None, criterion: Criterion | None = None
    ) -> list[str]:
        """Return for every cell the name of a feature that tells the classes apart.

        Parameters
        ----------
        amount : amount
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        among : sequence of str, optional
            The features to choose from; all if not given.
        criterion : Criterion, optional
            How good it is to divide a cell by a feature's codes; :class:`~privet.criteria.Max` if
            not given.

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
        axes: Sequence[Sequence[Axis]],
        criterion: Criterion,
        amount: Amount,
        *,
        flip: bool,
    ) -> list[int]:
        """Return which of its axes each cell should be halved along, by their positions.

        Parameters
        ----------
        axes : sequence of sequences of Axis
            The axes of every cell, by public facts.
        criterion : Criterion
            How bad halves are; cuts are not chosen here, and lists of subsets are not looked at.
        amount : amount
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        flip : bool
            Whether to use permute-and-flip; pure budgets only.

        Privacy
        -------
        Permute-and-flip or the exponential mechanism on the loss of a cell's halves, which are
        never released. A record raises it by up to M and shifts half a record: changes of two axes
        are at most 2 M apart. Costs the amount (docs/proofs/forests.md).
        """
        mechanism = self._selection(halving_spread(criterion), exact(amount), flip=flip)
        if len(axes) != len(self) or not all(axes):
            raise ValueError("give every cell at least one axis")
        steps = self._target_steps(criterion)
        self._charge([mechanism], Question(Asked.HALVING_FEATURE, criterion.name))
        room = _rooms[self._table]
        turns = [
            [options[min(turn, len(options) - 1)] for options in axes]
            for turn in range(max(map(len, axes), default=0))
        ]
        losses = [halving_losses(self._sides(some, steps), criterion) for some in turns]
        return [
            mechanism.choose(Exact(-row[: len(options)]), room.noise)
            for row, options in zip(np.stack(losses, axis=1), axes, strict=True)
        ]

    def choose_halves(self, axes: Sequence[Axis], amount: Amount) -> list[Split]:
        """Return for every cell a split that divides its records about equally.

        Parameters
        ----------
        axes : sequence of Axis, one per cell
            Along which the cell is divided, by public facts.
        amount : amount
            What it may cost: epsilon, or rho if the budget is one of zCDP.

        Privacy
        -------
        The exponential mechanism over all cuts (or subsets) of the axis on the
        difference between the halves, which a record changes by one, up or down; costs the amount
        (docs/proofs/forests.md).
        """
        if len(axes) != len(self):
            raise ValueError("give every cell an axis")
        epsilon = self._budget.selection_epsilon(exact(amount))
        mechanism = GridExponential(spread_of(1, monotone=False), epsilon)
        self._charge([mechanism], Question(Asked.MIDDLE))
        room, sizes = _rooms[self._table], _handles[self].view.sizes
        splits: list[Split] = []
        for some, taken in self._places(axes):
            scores, lengths = ways_to_halve(some, *taken, sizes)
            chosen = mechanism.choose_each(Exact(scores), lengths, room.noise)
            splits += [
                Split(axis.feature, axis.children(way, sizes[axis.feature]))
                for axis, way in zip(some, chosen, strict=True)
            ]
        return splits

    def _sides(self, axes: Sequence[Axis], steps: int | None) -> NDArray[np.int64]:
        """Count the records below, at and above the middle of every cell's axis."""
        engine, handle = _rooms[self._table].engine, _handles[self]
        middle = middles(engine.places(handle, axes), len(self), max(handle.view.sizes))
        return engine.sides(handle, axes, middle, steps)

    def _places(self, axes: Sequence[Axis]) -> Iterator[tuple[Sequence[Axis], Taken]]:
        """Yield by batches of cells where on their axes records are: cells, places and counts.

        Cells are numbered within their batch, in order, and so are the places of a cell.
        """
        width = max(_handles[self].view.sizes)
        taken, counts = _rooms[self._table].engine.places(_handles[self], axes)
        for start in range(0, len(self), _HALVED):
            some = axes[start : start + _HALVED]
            first, stop = np.searchsorted(taken, np.array([start, start + len(some)]) * width)
            found = taken[first:stop]
            yield some, (found // width - start, found % width, counts[first:stop])

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
        mechanism = self._selection(criterion.spread, exact(amount), flip=flip)
        steps = self._target_steps(criterion)
        self._charge([mechanism], Question(Asked.SPLIT_OF_SOME, criterion.name))
        room = _rooms[self._table]
        losses = []
        for turn in range(max(map(len, splits))):
            mine = [options[min(turn, len(options) - 1)] for options in splits]
            below = room.engine.split(_handles[self], mine)
            counts: NDArray[Any] = (
                room.engine.class_counts(below)
                if steps is None
                else room.engine.target_counts(below, steps)
            )
            first = np.cumsum([0, *(split.n_children for split in mine)])[:-1]
            losses.append(np.add.reduceat(criterion.losses(_statistics(counts, criterion)), first))
        table = -np.stack(losses, axis=1)
        return [
            mechanism.choose(Exact(row[: len(options)]), room.noise)
            for row, options in zip(table, splits, strict=True)
        ]

    def choose_best(
        self, candidates: Candidates, criterion: Criterion, amount: Amount, *, how: str
    ) -> list[Split]:
        """Return one split per cell, good by a criterion; all candidates count alike.

        Parameters
        ----------
        candidates : Candidates
            Which splits each feature offers; their measures do not matter.
        criterion : Criterion
            How good a split is.
        amount : amount
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        how : {"flip", "exponential", "rnm"}
            Permute-and-flip, the exponential mechanism or report noisy max; pure budgets only, but
            for the exponential mechanism.

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
        room, view = _rooms[self._table], _handles[self].view
        candidates.check(view, len(self))
        mechanism = select(criterion.spread, self._budget.selection_epsilon(exact(amount)))
        self._charge([mechanism], Question(Asked.SPLIT, criterion.name))
        offered = list_candidates(candidates, view)
        chosen: list[Split] = []
        for losses, _ in self._losses(candidates, criterion):
            for row in losses:
                feature, option = offered[mechanism.choose(Exact(-row), room.noise)]
                chosen.append(candidates.split(feature, option, len(chosen), view))
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
        candidates.check(_handles[self].view, len(self))
        number = len(list_candidates(candidates, _handles[self].view))
        l1, squared_l2 = number * criterion.spread, number * criterion.spread**2
        mechanism = noise_for(self._budget, exact(amount), l1=l1, squared_l2=squared_l2)
        self._charge([mechanism], Question(Asked.SPLIT_GAINS, criterion.name))
        noise = _rooms[self._table].noise
        found = [
            mechanism.release(Exact(whole[:, None] - losses), noise)
            for losses, whole in self._losses(candidates, criterion)
        ]
        return Released(np.concatenate([np.zeros((0, number), dtype=np.int64), *found]))

    def _losses(
        self, candidates: Candidates, criterion: Criterion
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield, by batches of cells, the losses of all candidates and those of whole cells."""
        features, view = range(len(self.schema.names)), _handles[self].view
        for batch, histograms in _rooms[self._table].engine.histograms(
            _handles[self], features, self._target_steps(criterion)
        ):
            cells = range(batch.start, batch.stop)
            found = {j: _statistics(counts, criterion) for j, counts in histograms.items()}
            losses = [losses_of(candidates, j, found[j], criterion, cells, view) for j in features]
            yield np.concatenate(losses, axis=1), criterion.losses(found[features[0]].sum(axis=1))

    def draw_trees(
        self,
        depth: int,
        amount: Amounts,
        *,
        upper: Sequence[Sequence[int]] | None = None,
        merge: bool = True,
        scores: Scores | None = None,
        reach: float = 0.0,
    ) -> list[Sketch]:
        """Return one small tree with its labels per cell, drawn at once.

        Parameters
        ----------
        depth : int
            1, 2 or 3.
        amount : amount, or one per cell
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        upper : sequence of sequences of int, optional
            For every cell the features that may be tested above the last level, by public facts;
            all of them if not given.
        merge : bool, default=True
            Whether tests that divide a cell alike share their work: same law, less time, and a
            running time that depends more on the data.
        scores : Scores, optional
            What is known of the records so far: each then weighs by how much its score is wrong,
            between 0 and 1. The labels of a number's tree are "too high" and "too low".
        reach : float
            With scores: residuals of a number are cut at this distance.

        Privacy
        -------
        The exponential mechanism over all labelled trees of that depth on the (weight of the)
        correctly classified records, which a record raises by 0 to 1; costs the amount, rounding
        included (docs/proofs/whole-trees.md, docs/proofs/boosting.md).
        """
        if depth not in (1, 2, 3):
            raise ValueError("a tree drawn at once has depth 1, 2 or 3")
        if scores is None:
            self._need_classes()
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
        check_sizes(_handles[self].view.sizes, len(self.schema.classes or (0, 1)))
        known = None if scores is None else scores._of(self._table)
        reach = 0.0 if scores is None else scores._reach(reach)
        mechanisms = [WholeTree(each) for each in self._epsilons(amount)]
        self._charge(mechanisms, Question(Asked.WHOLE_TREE, depth=depth))
        rates = [mechanism.rate for mechanism in mechanisms]
        room = _rooms[self._table]
        _log.info("drawing %d trees (the first time on a machine, loops are compiled)", len(self))
        return draw_trees(
            room.engine,
            _handles[self],
            upper,
            room.noise,
            depth=depth,
            rates=rates if len(rates) > 1 else rates * len(self),
            merge=merge,
            scores=known,
            reach=reach,
        )

    def noisy_gradients(self, scores: Scores, amount: Amount, *, reach: float = 0.0) -> Gradients:
        """Return how the records of each cell pull at their scores, with noise.

        Parameters
        ----------
        scores : Scores
        amount : amount
            What it may cost: epsilon, or rho if the budget is one of zCDP.
        reach : float
            Residuals of a number are cut at this distance.

        Privacy
        -------
        Sums of first and second derivatives of the loss in fixed point; a record's part of them is
        bounded in absolute sum and in squares. Discrete Laplace noise (pure budgets) or discrete
        Gaussian noise (zCDP budgets); costs the amount (docs/proofs/boosting.md).
        """
        room, known, reach = _rooms[self._table], scores._of(self._table), scores._reach(reach)
        loss, pure = loss_of(self.schema), self._budget.accountant == "pure"
        mechanism = _gradient_noise(self.schema, self._budget, exact(amount))
        self._charge([mechanism], Question(Asked.GRADIENTS))
        sums = Exact(room.engine.moments(_handles[self], known, reach, pure=pure))
        return Gradients(
            *loss.read(mechanism.release(sums, room.noise), mechanism.deviation, pure=pure)
        )

    def leaking_means(self, amount: Amount) -> NDArray[np.float64]:
        """Return the cells' mean targets with noise by their exact counts, as DiPriMe prints it.

        Laplace noise of ``2 / (records * epsilon)`` for targets on [0, 1], the paper's bound B
        being one; an even draw for an empty cell. No epsilon covers that, so the table is marked as
        leaking from now on, and nothing is charged: the ledger does not cover it.
        """
        if self.schema.classes is not None:
            raise DataError("this question needs a number: the target of the schema has classes")
        self._table._mark_uncovered(
            "the noise of the leaf means was scaled by exact counts, as printed, so no epsilon "
            "covers them; use calibration='valid' for anything that is published"
        )
        room = _rooms[self._table]
        counts = room.engine.target_counts(_handles[self], _MEAN_LEVELS)
        rows = counts.sum(axis=1)
        means = np.zeros(len(rows), dtype=np.int64)
        for cell, (row, count) in enumerate(zip(counts, rows.tolist(), strict=True)):
            if not count:
                means[cell] = room.noise.below(_MEAN_STEPS + 1)
                continue
            mean = round(int(row @ np.arange(len(row))) * _MEAN_STEPS / (count * _MEAN_LEVELS))
            scale = 0.0 if amount == math.inf else float(2 * _MEAN_STEPS / (count * amount))
            means[cell] = room.noise.add_laplace(np.array([mean]), scale)[0]
        return means[:, None] / _MEAN_STEPS

    def choose_features(self, count: int, amount: Amounts) -> list[tuple[int, ...]]:
        """Return, per cell, the features that promise most for a tree of depth 1.

        Privacy
        -------
        The exponential mechanism, ``count`` times without replacement, on the number of records
        that the best tree of depth 1 on a feature classifies correctly, which a record raises by
        0 or 1; costs the amount in all (docs/proofs/questions.md).
        """
        self._need_classes()
        mechanisms = [TopOf(1, each, count) for each in self._epsilons(amount, count)]
        self._charge(mechanisms, Question(Asked.FEATURES, count=count))
        room = _rooms[self._table]
        numeric = [cuts is not None for cuts in _handles[self].view.cuts]
        chosen = []
        for batch, histograms in room.engine.histograms(
            _handles[self], range(len(self.schema.names))
        ):
            scores = np.stack(
                [best_correct(histograms[j], numeric[j]) for j in range(len(numeric))], axis=1
            )
            for cell, row in enumerate(scores, start=batch.start):
                mechanism = mechanisms[cell if len(mechanisms) > 1 else 0]
                chosen.append(tuple(sorted(mechanism.choose(Exact(row), room.noise))))
        return chosen

    def _feature(self, name: str) -> int:
        if name not in self.schema.features:
            raise SchemaError(f"the schema has no feature {name!r}")
        return self.schema.names.index(name)

    @property
    def _budget(self) -> Budget:
        return self._table.ledger.budget

    def _selection(
        self, spread: Amount, amount: Amount, *, flip: bool
    ) -> PermuteAndFlip | Exponential:
        if flip and self._budget.accountant != "pure":
            raise BudgetError("permute-and-flip needs a pure budget: it is dear in zCDP")
        select = PermuteAndFlip if flip else Exponential
        return select(spread, self._budget.selection_epsilon(amount))

    def _target_steps(self, criterion: Criterion) -> int | None:
        """Return the target's grid that a criterion of numbers needs; None for classes.

        Raises if the criterion is for another target.
        """
        if not isinstance(criterion, SAD | SSE):
            self._need_classes()
            criterion.check(len(self.schema.classes or ()))
        elif self.schema.classes is not None:
            raise DataError("this criterion needs a number: the target of the schema has classes")
        if isinstance(criterion, SSE):
            return _SSE_STEPS
        return criterion.steps if isinstance(criterion, SAD) else None

    def _need_classes(self) -> None:
        if self.schema.classes is None:
            raise DataError("this question needs classes: the target of the schema is a number")

    def _amounts(self, amount: Amounts) -> list[Amount]:
        """Return one amount for all cells, or one for each."""
        if isinstance(amount, Sequence):
            if len(amount) != len(self):
                raise BudgetError("give one amount for all cells, or one for each")
            return [exact(each) for each in amount]
        return [exact(amount)]

    def _noises(
        self, amount: Amounts, *, l1: int, squared_l2: int
    ) -> list[DiscreteLaplace | DiscreteGaussian]:
        return [
            noise_for(self._budget, each, l1=l1, squared_l2=squared_l2)
            for each in self._amounts(amount)
        ]

    def _epsilons(self, amount: Amounts, times: int = 1) -> list[Amount]:
        """Return the epsilons of selections that are made so many times."""
        return [
            self._budget.selection_epsilon(each / times) * times for each in self._amounts(amount)
        ]

    def _charge(self, mechanisms: Sequence[Any], question: Question) -> None:
        _log.info("%s: %d cells: %s", place_words(self._place), len(self), question_words(question))
        self._table.ledger.charge(
            self._scopes,
            mechanisms[0] if len(mechanisms) == 1 else mechanisms,
            question,
            self._place,
        )

    def _release(
        self, counts: Exact, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian]
    ) -> Released:
        noise = _rooms[self._table].noise
        if len(mechanisms) == 1:
            return mechanisms[0].release(counts, noise)
        rows = [
            mechanism.release(Exact(np.atleast_1d(row)), noise)
            for mechanism, row in zip(mechanisms, counts, strict=True)
        ]
        return Released(np.array(rows, dtype=np.int64).reshape(counts.shape))


@dataclass(frozen=True)
class Gradients:
    """How the records of cells pull at their scores; made of released integers.

    Attributes
    ----------
    pull, curvature : array, one row per cell and one column per score
        Sums of first and second derivatives of the loss, in records.
    deviation : float
        Standard deviation of the noise of a pull.
    """

    pull: NDArray[np.float64]
    curvature: NDArray[np.float64]
    deviation: float


def _gradient_noise(
    schema: Schema, budget: Budget, amount: Amount
) -> DiscreteLaplace | DiscreteGaussian:
    l1, squared_l2 = loss_of(schema).bounds(pure=budget.accountant == "pure")
    return noise_for(budget, amount, l1=l1, squared_l2=squared_l2)


def pull_deviation(schema: Schema, budget: Budget, amount: Amount) -> float:
    """Return the deviation that the noise of :meth:`Cells.noisy_gradients` will have. Public."""
    pure = budget.accountant == "pure"
    nothing = np.zeros((0, 2), dtype=np.int64)
    noise = _gradient_noise(schema, budget, amount)
    return loss_of(schema).read(nothing, noise.deviation, pure=pure)[2]


class Scores:
    """What a growing model says of every record: sums of public values. A handle, like cells.

    Whoever holds it can add public values to the records of cells, and ask private questions about
    how far the scores are from the targets.
    """

    def __init__(self, table: PrivateTable, start: Sequence[float]) -> None:
        columns = loss_of(table.schema).columns
        if len(start) != columns or not all(math.isfinite(score) for score in start):
            raise ValueError(f"start with {columns} finite scores")
        self._table = table
        #: No score is further from zero.
        self.bound = max(abs(score) for score in start)
        _scores[self] = _rooms[table].engine.start_scores(start)

    def add(self, cells: Cells, values: NDArray[np.float64]) -> None:
        """Add public values to the scores of the records of cells. Free.

        Parameters
        ----------
        cells : Cells
        values : array, one row per cell and one column per score
        """
        if not isinstance(cells, PrivateCells):
            raise ValueError("these scores belong to another table")
        scores = self._of(cells._table)
        if values.shape != (len(cells), scores.columns) or not np.isfinite(values).all():
            raise ValueError("give finite values, one row per cell and one column per score")
        bound = self.bound + float(np.abs(values).max(initial=0.0))
        if not math.isfinite(bound):
            raise ValueError("scores must stay finite")
        self.bound = bound
        engine = _rooms[self._table].engine
        _scores[self] = engine.add_scores(scores, _handles[cells], values)

    def _of(self, table: PrivateTable) -> ScoresHandle:
        if table is not self._table:
            raise ValueError("these scores belong to another table")
        return _scores[self]

    def _reach(self, reach: float) -> float:
        if self._table.schema.classes is not None:
            return self.bound
        if not 2**-20 <= reach <= 1:
            raise ValueError("residuals of a number need a reach from 2^-20 to 1")
        return reach

    def __reduce__(self) -> NoReturn:
        raise TypeError("scores cannot be pickled or copied: they stay where their rows are")


def encode(source: Any, schema: Schema, directory: str | Path) -> None:
    """Encode rows into a directory of blocks that is kept, for fits that need not read them again.

    Use it by :meth:`PrivateTable.from_blocks`, or by its path as ``fit``'s table. It is as
    sensitive as the rows themselves: only its owner can read it, and nobody removes it but you.

    Parameters
    ----------
    source : path, stream or Source
    schema : Schema
        What the blocks are good for: with another schema they are refused.
    directory : path
        It must not be there yet.
    """
    _check_schema(schema)
    source = source if isinstance(source, Source) else Source(source)
    keep_blocks(source.open(schema), directory)


def _check_schema(schema: Any) -> None:
    if not isinstance(schema, Schema):
        raise SchemaError("schema must be a Schema; read one with Schema.from_toml(path)")


def _engine_of(features: Any, target: Any, schema: Schema | None) -> Engine:
    """Return the engine that has the rows: as it is given, or made of a table in memory."""
    if isinstance(features, Engine):
        if target is not None or schema is not None:
            raise DataError("an engine has its targets and its schema: give None for both")
        engine: Engine = features
    else:
        _check_schema(schema)
        assert schema is not None
        engine = memory_engine(features, target, schema)
    if engine.rows > MAX_ROWS:
        raise DataError(f"at most {MAX_ROWS} rows are supported")
    return engine


def _statistics(counts: NDArray[Any], criterion: Criterion) -> NDArray[Any]:
    """Return what a criterion looks at: counts, or for :class:`SSE` moments on its grid."""
    if not isinstance(criterion, SSE):
        return counts
    counts = np.asarray(counts, dtype=np.int64)
    values = np.arange(counts.shape[-1]) * (TARGET_STEPS // (counts.shape[-1] - 1))
    return np.stack([counts.sum(axis=-1), counts @ values, counts @ values**2], axis=-1)


def leaks_of(schema: Schema, budget: Budget, random_state: Any) -> tuple[str, ...]:
    """Return the reasons why what is learnt in this way is not private."""
    reasons = []
    if schema.drafted:
        reasons.append(
            "the schema was drafted from the data, so bounds, categories and classes depend on "
            "single records; correct the draft by what is publicly known, then delete the line "
            "'draft = true' of its file (in Python: drafted=False)"
        )
    if random_state is not None:
        reasons.append(
            f"{SEEDED}, so whoever knows it can take the noise away again; leave it "
            "None for anything that is published"
        )
    if budget.limit == float("inf"):
        reasons.append(NO_NOISE)
    return tuple(reasons)
