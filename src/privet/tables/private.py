"""The wall: a private table and its cells.

A :class:`PrivateTable` is a handle: no attribute of it or of its cells leads to the rows, the exact
counts or the noise. A question is charged to the ledger first; then the engine is asked, noise is
drawn, and only the released integers come out. Whoever holds a table can spend its budget, and
nothing else.

Python cannot keep out a programmer who goes looking: the wall is there so that a learner cannot
leak by mistake, and so that a test can check it.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privet.criteria import MAX_ROWS, MinOfLinear
from privet.engines import (
    PLACES,
    Engine,
    View,
    encode_stream,
    holds_blocks,
    keep_blocks,
    loss_of,
    memory_engine,
    open_blocks,
)
from privet.errors import (
    DataError,
    PrivacyLeakWarning,
    SchemaError,
)
from privet.privacy import (
    PORTIONS,
    SEEDED,
    Budget,
    Exact,
    JointQuantiles,
    LaplaceShare,
    Ledger,
    NoisyMaxShare,
    Place,
    Quantiles,
    Question,
    QuestionKind,
    Released,
    WholeTree,
    exact,
    noise_of,
)
from privet.privacy.budget import Amount
from privet.reading import Source
from privet.schema import Numeric, Schema
from privet.tables.cells import Inside, behind_cells, behind_table
from privet.tables.interface import Amounts, Table
from privet.tables.outcomes import ScoredCells
from privet.tables.scores import SCALES, Gradients, ScaleChoice, Scores, gradient_noise
from privet.tables.splits import (
    Candidates,
    Subtree,
    list_candidates,
)
from privet.tables.whole_trees import LEAST_STOP, MOST_STOP, check_sizes, draw_trees

_log = logging.getLogger("privet")

#: Means that leak: steps of the grid they are published on, and of the target they are made of.
_MEAN_STEPS, _MEAN_LEVELS = 2**24, 2**10

#: Why what is learnt with an infinite budget is not private.
NO_NOISE = "epsilon is infinite, so there is no noise at all"


class PrivateTable(Table):
    """A table that answers questions privately, within a budget.

    Parameters
    ----------
    features : dataframe, array or Engine
        The features; pandas, polars, pyarrow or numpy. Or an engine that has the rows, with their
        targets: then ``target`` and ``schema`` are None.
    target : column or None
        The target; if None, the column of the features that the schema names. Records whose class
        is missing or unknown, or whose number is missing, are left out.
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
        #: The table that this is a session or a portion of.
        self._origin: PrivateTable | None = None
        #: The name of the portion that this is.
        self._portion: str | None = None
        for reason in self.leaks:
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=2)
        behind_table[self] = Inside(engine, noise_of(random_state))

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
        engine: Engine
        if source.engine is not None:
            if source.path is None or source.directory is not None or holds_blocks(source.path):
                raise DataError("an engine reads Parquet files itself, without blocks on a disk")
            from privet.engines.dask import dask_engine

            engine = dask_engine(
                str(source.path), schema, client=source.scheduler, insecure=source.insecure
            )
        elif source.path is not None and holds_blocks(source.path):
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
    def from_dask(
        cls,
        source: Any,
        schema: Schema,
        budget: Budget,
        *,
        client: Any = None,
        security: Any = None,
        gather: bool = True,
        insecure: bool = False,
        random_state: Any = None,
    ) -> PrivateTable:
        """Open rows on a Dask cluster (``pip install privet[dask]``).

        The cluster is inside the wall: its scheduler and its workers see rows, and noise is drawn
        here, once, after the sums of all workers have come. A worker may be lost at any time.

        Parameters
        ----------
        source : dask dataframe, path, or list of paths
            Parquet files may be given by a folder or a pattern; every worker reads its own pieces.
        schema : Schema
        budget : Budget
        client : distributed.Client, str or None
            A client, or the address of a scheduler. None: processes on this machine, one for every
            processor; a script then needs its ``if __name__ == "__main__":``.
        security : distributed.Security, optional
            For an address: certificates and keys.
        gather : bool, default=True
            Whether a cell's encoded rows may be brought to this process for a draw of whole trees,
            if they are few enough: at most 2^29 codes.
        insecure : bool, default=False
            Whether a scheduler is used that anybody on a network can reach and listen to.
        random_state
            As for :class:`PrivateTable`.
        """
        from privet.engines.dask import dask_engine

        _check_schema(schema)
        engine = dask_engine(
            source, schema, client=client, security=security, gather=gather, insecure=insecure
        )
        return cls._of_engine(engine, budget, random_state)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        schema: Schema,
        budget: Budget,
        *,
        folder: str | Path | None = None,
        gather: bool = True,
        insecure: bool = False,
        random_state: Any = None,
    ) -> PrivateTable:
        """Open the rows of a Spark dataframe (``pip install privet[spark]``).

        As for :meth:`from_dask`, the cluster is inside the wall.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            It must give the same rows whenever it is computed.
        schema : Schema
        budget : Budget
        folder : path, optional
            Where executors put files of codes, which are as sensitive as the rows; their folder for
            temporary files if not given.
        gather, random_state
            As for :meth:`from_dask`.
        insecure : bool, default=False
            Whether a cluster is used whose processes do not check and encrypt what they are sent.
        """
        from privet.engines.spark import spark_engine

        _check_schema(schema)
        engine = spark_engine(frame, schema, folder=folder, gather=gather, insecure=insecure)
        return cls._of_engine(engine, budget, random_state)

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
        behind_table[self].engine.close()

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
        behind_table[again] = behind_table[self]
        return again

    def root(self, view: View | None = None) -> PrivateCells:
        """Return the whole table as one cell, seen through the schema's bins or another view."""
        view = self._view(view)
        place = Place(portion=self._portion)
        return PrivateCells(self, self.ledger.root, place, behind_table[self].engine.root(view))

    def parts(self, count: int, key: int, view: View | None = None) -> PrivateCells:
        """Return the table as disjoint parts; a hash of each record says which is its own. Free."""
        if not 1 <= count < 2**24 or not 0 <= key < 2**64:
            raise ValueError("a table has 1 to 2^24 parts, by a key from 0 to 2^64")
        view = self._view(view)
        ledger_cells = self.ledger.root.divide(np.zeros(count, dtype=np.intp))
        handle = behind_table[self].engine.parts(view, count, key)
        place = Place(parts=count, portion=self._portion)
        return PrivateCells(self, ledger_cells, place, handle)

    def portions(self, shares: Mapping[str, Fraction], key: int) -> dict[str, Table]:
        """Return disjoint tables, to learn from and to test on; a hash decides on records. Free.

        Whatever is asked of one of them is asked of its records alone, and charged to its own part
        of one division of this table (docs/proofs/evaluation.md).
        """
        if not 0 <= key < 2**64:
            raise ValueError("a table is divided by a key from 0 to 2^64")
        if not set(shares) <= set(PORTIONS) or sum(shares.values()) != 1:
            raise ValueError(f"shares of {', '.join(PORTIONS)} add up to one")
        ends = [0]
        for share in shares.values():
            ends.append(ends[-1] + round(share * PLACES))
        ends[-1] = PLACES
        if any(stop <= start for start, stop in pairwise(ends)):
            raise ValueError("a portion is too small")
        found: dict[str, Table] = {}
        inside, books = behind_table[self], self.ledger.portions(len(shares))
        for number, name in enumerate(shares):
            again = object.__new__(PrivateTable)
            again.__dict__.update(self.__dict__, ledger=books[number], _origin=self, _portion=name)
            engine = inside.engine.portion(key, ends[number], ends[number + 1])
            behind_table[again] = Inside(engine, inside.noise)
            found[name] = again
        return found

    def _view(self, view: View | None) -> View:
        if view is None:
            return View.of_bins(self.schema)
        if view.schema != self.schema or view.schema.names != self.schema.names:
            raise SchemaError("a table is seen through its own schema only")
        return View(self.schema, view.cuts)  # made anew: a subclass could state other sizes

    def start_scores(self, start: Sequence[float]) -> Scores:
        """Give every record the same public score, or one per class. Free."""
        return Scores(self, start)

    def quantiles(self, feature: int | str, parts: int, amount: Amount) -> tuple[float, ...]:
        """Return private cuts that divide the records of a numeric feature into equal parts.

        The middle cut first, then those on either side (Kaplan, Schnapp & Stemmer 2022), each drawn
        from a public grid: half of its points evenly spaced, half at even ratios towards the lower
        bound (or towards zero, if that lies within), so that heavy tails do not hide the rest.
        There are fewer cuts where the grid has no room for more. The feature is given by its name
        or its position in the schema; the target, if it is a number, by its name.

        Privacy
        -------
        Each level asks every interval for its middle cut: the exponential mechanism on
        ``-abs(b * below - a * above)`` for a parts below and b parts above, which a record
        changes by at most the larger of a and b. Intervals are disjoint, so that a level costs
        once; all levels have an equal part of the amount (docs/proofs/questions.md).
        """
        levels = Quantiles(parts, 1).levels
        each = self.ledger.budget.selection_epsilon(exact(amount) / levels)
        mechanism = Quantiles(parts, each * levels, self.schema.unit_parts)
        if feature == self.schema.target and self.schema.bounds is not None:
            return self._cuts(self.schema.target, mechanism, self.schema.target_grid)
        name, numeric = self._numeric(feature)
        return self._cuts(name, mechanism, numeric.fine)

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
        mechanism = JointQuantiles(epsilon, parts, unit_parts=self.schema.unit_parts)
        return self._cuts(name, mechanism, grid)

    def _cuts(
        self, name: str, mechanism: Quantiles | JointQuantiles, grid: NDArray[np.float64]
    ) -> tuple[float, ...]:
        question = Question(QuestionKind.QUANTILES, feature=name)
        self.ledger.charge(self.ledger.root, mechanism, question, Place(portion=self._portion))
        inside = behind_table[self]
        cuts = mechanism.choose(self._grid_counts(name, grid), inside.noise)
        return tuple(float(grid[cut - 1]) for cut in cuts)

    def _grid_counts(self, name: str, points: NDArray[np.float64]) -> Exact:
        """Count records between neighbouring points of a number's grid, and beyond both ends."""
        if name == self.schema.target:
            return Exact(behind_table[self].engine.grid_counts(None)[:-1])
        numeric, place = self.schema.features[name], self.schema.names.index(name)
        assert isinstance(numeric, Numeric)
        counts = behind_table[self].engine.grid_counts(place)[:-1]
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
        """Mark this table, and all it is a session of: something left that no ledger covers."""
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


class PrivateCells(ScoredCells):
    """Disjoint cells of one private table, asked all at once.

    A question costs its amount once, however many cells there are: no record lies in two of them.
    Questions to the same cell, or to a cell and then to its children, add up; the ledger does that.
    Answers have shapes that depend on the schema and on earlier answers only: empty cells answer.
    """

    def noisy_counts(self, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise.

        Privacy
        -------
        One integer per cell; a record changes one of them by one. Discrete Laplace noise (pure
        budgets) or discrete Gaussian noise (zCDP budgets); costs the amount
        (docs/proofs/questions.md).
        """
        mechanisms = self._noises(amount, l1=1, squared_l2=1)
        self._charge(mechanisms, Question(QuestionKind.ROW_COUNT))
        counts = behind_table[self._table].engine.class_counts(behind_cells[self]).sum(axis=1)
        return self._release_counts(Exact(counts), mechanisms)

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
        self._charge(mechanisms, Question(QuestionKind.CLASS_COUNTS))
        counts = behind_table[self._table].engine.class_counts(behind_cells[self])
        return self._release_counts(Exact(counts), mechanisms)

    def draw_trees(
        self,
        depth: int,
        amount: Amounts,
        *,
        upper: Sequence[Sequence[int]] | None = None,
        merge: bool = True,
        scores: Scores | None = None,
        reach: float = 0.0,
        stop: float = MOST_STOP,
    ) -> list[Subtree]:
        """Return one small tree with its labels per cell, drawn at once.

        Privacy
        -------
        The exponential mechanism over all labelled trees of that depth on the (weight of the)
        correctly classified records, which a record raises by 0 to 1; costs the amount, rounding
        included (docs/proofs/whole-trees.md, docs/proofs/boosting.md).
        """
        if depth not in (1, 2, 3):
            raise ValueError("a tree drawn at once has depth 1, 2 or 3")
        if not LEAST_STOP <= stop <= MOST_STOP:
            raise ValueError(f"stop lies between {LEAST_STOP:g} and {MOST_STOP:g}")
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
        check_sizes(behind_cells[self].view.sizes, len(self.schema.classes or (0, 1)))
        known = None if scores is None else scores._of(self._table)
        reach = 0.0 if scores is None else scores._reach(reach)
        mechanisms = [WholeTree(each, unit_parts=self._parts) for each in self._epsilons(amount)]
        self._charge(mechanisms, Question(QuestionKind.WHOLE_TREE, depth=depth))
        rates = [mechanism.rate for mechanism in mechanisms]
        inside = behind_table[self._table]
        trees = "a tree" if len(self) == 1 else f"{len(self)} trees"
        _log.info("drawing %s (the first time on a machine, loops are compiled)", trees)
        return draw_trees(
            inside.engine,
            behind_cells[self],
            upper,
            inside.noise,
            depth=depth,
            rates=rates if len(rates) > 1 else rates * len(self),
            merge=merge,
            scores=known,
            reach=reach,
            stop=float(stop),
        )

    def noisy_gradients(self, scores: Scores, amount: Amount, *, reach: float = 0.0) -> Gradients:
        """Return how the records of each cell pull at their scores, with noise.

        Privacy
        -------
        Sums of first and second derivatives of the loss in fixed point; a record's part of them is
        bounded in absolute sum and in squares. Discrete Laplace noise (pure budgets) or discrete
        Gaussian noise (zCDP budgets); costs the amount (docs/proofs/boosting.md).
        """
        inside = behind_table[self._table]
        known, reach = scores._of(self._table), scores._reach(reach)
        loss, pure = loss_of(self.schema), self._budget.accountant == "pure"
        mechanism = gradient_noise(self.schema, self._budget, exact(amount))
        self._charge([mechanism], Question(QuestionKind.GRADIENTS))
        sums = Exact(inside.engine.moments(behind_cells[self], known, reach, pure=pure))
        found = loss.read(mechanism.release(sums, inside.noise), mechanism.deviation, pure=pure)
        pull, curvature, deviation = found
        return Gradients(pull / self._parts, curvature / self._parts, deviation / self._parts)

    def noisy_scale(self, scores: Scores, share: Fraction, amount: Amount) -> NDArray[np.float64]:
        """Return for each cell about how far a share of its records is, at least, from the scores.

        Privacy
        -------
        The exponential mechanism over 25 scales on how far ``b * beyond`` is from crossing
        ``a * all`` there, for a share of a/b and the cell's own records, which a record changes by
        at most the larger of a and b - a, up or down; costs the amount (docs/proofs/reach.md).
        """
        if self.schema.classes is not None:
            raise DataError("this question needs a number: the target of the schema has classes")
        known = scores._of(self._table)
        epsilon = self._budget.selection_epsilon(exact(amount))
        choice = ScaleChoice(share, epsilon, self._parts)
        self._charge([choice.mechanism], Question(QuestionKind.SCALE))
        inside = behind_table[self._table]
        counts = inside.engine.distance_counts(behind_cells[self], known, SCALES)
        return choice.choose(counts, inside.noise)

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
        inside = behind_table[self._table]
        counts = inside.engine.target_counts(behind_cells[self], _MEAN_LEVELS)
        rows = counts.sum(axis=1)
        means = np.zeros(len(rows), dtype=np.int64)
        for cell, (row, count) in enumerate(zip(counts, rows.tolist(), strict=True)):
            if not count:
                means[cell] = inside.noise.below(_MEAN_STEPS + 1)
                continue
            mean = round(int(row @ np.arange(len(row))) * _MEAN_STEPS / (count * _MEAN_LEVELS))
            scale = 0.0 if amount == math.inf else float(2 * _MEAN_STEPS / (count * amount))
            means[cell] = inside.noise.add_laplace(np.array([mean]), scale)[0]
        return means[:, None] / _MEAN_STEPS

    def mpc_noisy_counts(
        self,
        kind: QuestionKind,
        amount: Amounts,
        honest: int,
        *,
        scores: Scores | None = None,
        ends: Sequence[float] | None = None,
    ) -> NDArray[np.int64]:
        """Return counts with this party's share of the noise: too little for its rows by itself.

        In parts of a person, if the schema has a unit.

        Parameters
        ----------
        kind : QuestionKind
            ``ROW_COUNT``: one count per cell; ``CLASS_COUNTS`` or ``LABEL``: one for every class;
            ``CONFUSION`` or ``SCORE_COUNTS``: one for every class and predicted class, or bin.
        amount : amount, or one per cell
            What the sum or the choice may cost, in epsilon.
        honest : int
            How many parties' shares make the noise.
        scores : Scores, optional
            What a released model says of the records, where their outcomes are counted.
        ends : sequence of float, optional
            As for :meth:`noisy_score_counts`.

        Privacy
        -------
        A record, or a part of a person, changes one integer by one. Shares of discrete Laplace
        noise (for sums) or of geometric noise (for the choice of a label) add up to noise that
        costs the amount, if at least ``honest`` parties add theirs and nobody sees one share
        (docs/proofs/federation.md).
        """
        if kind is not QuestionKind.ROW_COUNT:
            self._need_classes()
        known = None if scores is None else self._known(scores, ends)
        self._need_pure()
        share = NoisyMaxShare if kind is QuestionKind.LABEL else LaplaceShare
        mechanisms = [share(self._parts, each, honest) for each in self._amounts(amount)]
        self._charge(mechanisms, Question(kind))
        inside = behind_table[self._table]
        if known is not None:
            outcomes = inside.engine.outcome_counts(behind_cells[self], *known)
            counts = np.asarray(outcomes).reshape(len(self), -1)
        else:
            counts = np.asarray(inside.engine.class_counts(behind_cells[self]))
        if kind is QuestionKind.ROW_COUNT:
            counts = counts.sum(axis=1, keepdims=True)
        if len(mechanisms) == 1:
            return mechanisms[0].release(Exact(counts), inside.noise)
        rows = zip(mechanisms, counts, strict=True)
        return np.array([one.release(Exact(row), inside.noise) for one, row in rows])

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
        view, classes = behind_cells[self].view, len(self.schema.classes or ())
        candidates.check(view, len(self))
        criterion.check(classes)
        mechanism = NoisyMaxShare(self._parts * criterion.spread, exact(amount), honest)
        self._charge([mechanism], Question(QuestionKind.SPLIT, criterion.name))
        inside = behind_table[self._table]
        features, found = range(len(view.sizes)), []
        for batch, histograms in inside.engine.histograms(behind_cells[self], features):
            cells = range(batch.start, batch.stop)
            parts = [candidates.children(j, histograms[j], cells, view) for j in features]
            regions = [part.reshape(len(cells), -1, classes) for part in parts]
            found.append(np.concatenate(regions, axis=1, dtype=np.int64))
        nothing = np.zeros((len(self), len(list_candidates(candidates, view))), dtype=np.int64)
        noise = mechanism.release(Exact(nothing), inside.noise)
        return Exact(np.concatenate(found)), noise


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
    parts = engine.schema.unit_parts
    if engine.rows * parts > MAX_ROWS:  # no row weighs more; what all of them weigh is to be seen
        whole = engine.root(View.of_bins(engine.schema))
        if int(engine.class_counts(whole).sum()) > MAX_ROWS:
            raise DataError(
                f"the table has too many persons: {MAX_ROWS // parts:,} with records can be counted"
            )
    return engine


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
