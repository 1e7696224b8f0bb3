"""What a learner may ask: :class:`Table` and its :class:`Cells`.

A learner is written against these two and nothing else. It says which cells it means (free), buys
answers about all of them at once (each has an ``amount``), and builds a model of what was released.
It sees no rows and no exact numbers, adds no noise, and adds up no epsilons: the table's ledger
does, and refuses what the budget does not cover before anything is computed.

Amounts are epsilon, or rho if ``table.ledger.budget`` is one of zCDP. How an answer is made private
is the table's matter: :class:`~privet.tables.PrivateTable` has its rows in one place,
:class:`~privet.federation.FederatedTable` asks several parties.

Not every table answers every question. :meth:`Table.can` says which ones; whoever asks another gets
an error, and nothing is spent. A new kind of table derives from these two classes and writes the
questions that it can answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.engines import Axis, AxisLists, Basis, Split, View
from privet.errors import DataError
from privet.privacy import Budget, Ledger, Released
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables.splits import Candidates, Subtree

if TYPE_CHECKING:
    from privet.tables.outcomes import Tally
    from privet.tables.scores import Gradients, Scores
    from privet.tables.slopes import Sums

#: What a question may cost, in the budget's own amounts: one for all cells, or one for each.
Amounts = Amount | Sequence[Amount]


class Table(Protocol):
    """A table that answers questions privately, within a budget.

    Attributes
    ----------
    schema : Schema
        What is public.
    ledger : Ledger
        The books: ``ledger.budget`` is what may be spent, ``ledger.left`` what is left of it.
    least_amount : Fraction
        No question may cost less.
    leaks : tuple of str
        Why what is learnt from this table is not private; empty if it is.
    seeded : bool
        Whether the noise can be repeated.
    covered : bool
        Whether the ledger covers all that left.
    """

    schema: Schema
    ledger: Ledger
    least_amount: Fraction
    leaks: tuple[str, ...]
    seeded: bool
    covered: bool

    @property
    @abstractmethod
    def _cells_class(self) -> type[Cells]:
        """The class of its cells."""

    @property
    def protocol(self) -> str | None:
        """How the answers of several parties are put together; None for one table."""
        return None

    @property
    def noises(self) -> float | None:
        """How many noises a released number has, of which an entry of the books says one.

        None if not all numbers have as many.
        """
        return 1.0

    @property
    def notes(self) -> tuple[str, ...]:
        """What the guarantee rests on beyond the noise, for a model's card."""
        return ()

    def can(self, question: str) -> bool:
        """Tell whether tables of this kind answer a question: a method of theirs or their cells'.

        Whether the target fits is not looked at: class counts need classes, gradients of a number
        need a number.

        Parameters
        ----------
        question : str
            The name of a method of :class:`Table` or of :class:`Cells`, such as
            ``"noisy_class_counts"``.

        Raises
        ------
        ValueError
            If neither has such a question.
        """
        for kind, home in ((type(self), Table), (self._cells_class, Cells)):
            if question in _questions(home):
                return getattr(kind, question) is not getattr(home, question)
        raise ValueError(f"there is no question {question!r}")

    @abstractmethod
    def session(self, budget: Budget, asks: Iterable[str] = ()) -> Table:
        """Return the same table with books of its own, for one fit.

        Raises, before anything is spent, if there is less left than the budget, or if something
        cannot be asked.

        Parameters
        ----------
        budget : Budget
            What the fit may spend.
        asks : iterable of str, optional
            Questions that will surely be asked.
        """

    def check_choices(self, criterion: Criterion, options: int, how: str | None = None) -> None:
        """Raise if splits cannot be chosen in this way, before anything is asked.

        Parameters
        ----------
        criterion : Criterion
            What splits are judged by.
        options : int
            How many splits are offered.
        how : {"flip", "exponential", "rnm"}, optional
            By which selection, for :meth:`Cells.choose_best`; :meth:`Cells.choose_splits` is meant
            if None.
        """
        del criterion, options, how

    # Free: which cells are meant.

    @abstractmethod
    def root(self, view: View | None = None) -> Cells:
        """Return the whole table as one cell. Free.

        Parameters
        ----------
        view : View, optional
            Through which public cuts numbers are seen; the schema's bins if not given.
        """

    @abstractmethod
    def parts(self, count: int, key: int, view: View | None = None) -> Cells:
        """Return the table as disjoint parts; a hash of each record says which is its own. Free.

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

    def portions(self, shares: Mapping[str, Fraction], key: int) -> dict[str, Table]:
        """Return disjoint tables, to learn from and to test on; a hash decides on records. Free.

        Each has books of its own with the whole budget. Since no record is in two of them, the
        dearest is what they cost this table.

        Parameters
        ----------
        shares : mapping of str to Fraction
            About which part of the records each of them has, by names of
            :data:`~privet.privacy.PORTIONS`; they add up to one.
        key : int
            Decides the hash, from 0 up to 2^64; public, chosen without looking at the table, and
            another one than that of :meth:`parts`.
        """
        del shares, key
        self._refuse("portions")

    def start_scores(self, start: Sequence[float]) -> Scores:
        """Give every record the same public score, or one per class, to be added to. Free."""
        del start
        self._refuse("start_scores")

    # Private: each of these costs its amount.

    def quantiles(self, feature: int | str, parts: int, amount: Amount) -> tuple[float, ...]:
        """Return cuts that divide the records of a numeric feature into about equal parts.

        Parameters
        ----------
        feature : int or str
            By its place in the schema, or by its name; or the name of the target, if that is a
            number.
        parts : int
            How many parts; there may be fewer, where the grid of cuts has no room.
        amount : amount
            What it may cost.
        """
        del feature, parts, amount
        self._refuse("quantiles")

    def joint_quantiles(self, feature: int | str, parts: int, amount: Amount) -> tuple[float, ...]:
        """Return cuts as :meth:`quantiles` does, drawn all at once from a coarser grid.

        Good for few parts.
        """
        del feature, parts, amount
        self._refuse("joint_quantiles")

    def leaking_quantiles(self, feature: int | str, parts: int) -> tuple[float, ...]:
        """Return cuts as :meth:`quantiles` does, without noise: marks the table as leaking."""
        del feature, parts
        self._refuse("leaking_quantiles")

    def _refuse(self, question: str) -> NoReturn:
        raise DataError(f"this table cannot answer {question!r}")


class Cells(Protocol):
    """Disjoint cells of one table, asked all at once.

    A question costs its amount once, however many cells there are: no record lies in two of them.
    Questions to the same cell, or to a cell and then to its children, add up; the ledger does that.
    Answers have shapes that depend on the schema and on earlier answers only: empty cells answer.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many times the cells were divided, from the whole table or its parts."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The table's schema."""

    @property
    @abstractmethod
    def view(self) -> View:
        """Through which public cuts the records are seen; splits are in terms of its codes."""

    # Free: which cells are meant.

    @abstractmethod
    def take(self, chosen: NDArray[Any]) -> Cells:
        """Return some of the cells, by mask or by position, chosen by public facts. Free."""

    @abstractmethod
    def split(self, splits: Sequence[Split]) -> Cells:
        """Return the children of all cells, those of the first cell first. Free.

        Parameters
        ----------
        splits : sequence of Split, one per cell
            Released, or public from the start.
        """

    @abstractmethod
    def partition(self, by: str) -> Cells:
        """Return the cells divided by a feature: one part for every code of it, in order. Free."""

    def __getitem__(self, place: int) -> Cells:
        """Return one of the cells. Free."""
        if not -len(self) <= place < len(self):
            raise IndexError("there is no such cell")
        return self.take(np.array([place]))

    def __iter__(self) -> Iterator[Cells]:
        """Yield the cells one by one. Free."""
        return (self[place] for place in range(len(self)))

    # Private: each of these costs its amount.

    def noisy_counts(self, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise: one integer per cell.

        Parameters
        ----------
        amount : amount, or one per cell
            What it may cost.
        """
        del amount
        self._refuse("noisy_counts")

    def noisy_class_counts(self, amount: Amounts) -> Released:
        """Return how many records of each class each cell has, with noise.

        One integer per cell and class, for the amount in all: a record has one class.

        Parameters
        ----------
        amount : amount, or one per cell
            What it may cost.
        """
        del amount
        self._refuse("noisy_class_counts")

    def noisy_gradients(self, scores: Scores, amount: Amount, *, reach: float = 0.0) -> Gradients:
        """Return how the records of each cell pull at their scores, with noise.

        Parameters
        ----------
        scores : Scores
            What :meth:`Table.start_scores` began, and what was added since.
        amount : amount
            What it may cost.
        reach : float
            Residuals of a number are cut at this distance, a part of the target's range.
        """
        del scores, amount, reach
        self._refuse("noisy_gradients")

    def noisy_sums(self, basis: Basis, amount: Amount) -> Sums:
        """Return the sums of public functions over the records of all cells, with noise.

        One sum for all cells together; budgets with delta or of rho only.

        Parameters
        ----------
        basis : Basis
            Functions of the view's codes, and perhaps of the cells' numbers.
        amount : amount
            What it may cost.
        """
        del basis, amount
        self._refuse("noisy_sums")

    def noisy_slopes(
        self, scores: Scores, basis: Basis, amount: Amount, *, largest: float, longest: float
    ) -> Sums:
        """Return the sums of residuals times public functions over all cells, with noise.

        Which way to move the slope of each function, of shape (functions, scores); classes only,
        budgets with delta or of rho only.

        Parameters
        ----------
        scores : Scores
            What is known of the records so far.
        basis : Basis
            Functions of the view's codes, and perhaps of the cells' numbers.
        amount : amount
            What it may cost.
        largest : float
            Residuals are shortened to this length, at most the root of two.
        longest : float
            A record's functions are shortened to this length.
        """
        del scores, basis, amount, largest, longest
        self._refuse("noisy_slopes")

    def noisy_calibration(
        self, scores: Scores, amount: Amount, *, shift: float, factor: float
    ) -> Sums:
        """Return how far scores, moved and stretched, are from fitting two classes, with noise.

        With D a score without its start, p the share by ``shift + factor * D``, s = D/4 cut at
        one and h = p (1 - p): the sums of y - p, (y - p) s, h, h s and h s^2. Budgets with delta
        or of rho only.

        Parameters
        ----------
        scores : Scores
            What is known of the records so far.
        amount : amount
            What it may cost.
        shift, factor : float
            What the scores are moved to, and stretched by.
        """
        del scores, amount, shift, factor
        self._refuse("noisy_calibration")

    def noisy_confusion(self, scores: Scores, amount: Amount) -> Tally:
        """Return how many records of each class are predicted to be of each class, with noise.

        Of shape (cells, classes, predicted classes). The class with the largest score is predicted,
        of equals the first; of two classes the second, if their single score is above zero.

        Parameters
        ----------
        scores : Scores
            What a released model says of the records.
        amount : amount
            What it may cost.
        """
        del scores, amount
        self._refuse("noisy_confusion")

    def noisy_score_counts(self, scores: Scores, ends: Sequence[float], amount: Amount) -> Tally:
        """Return how many records of each of two classes have scores between ends, with noise.

        Of shape (cells, 2, bins): one bin more than ends.

        Parameters
        ----------
        scores : Scores
            What a released model says of the records.
        ends : sequence of float
            Public, in rising order; a score that equals one is above it.
        amount : amount
            What it may cost.
        """
        del scores, ends, amount
        self._refuse("noisy_score_counts")

    def noisy_errors(self, scores: Scores, amount: Amount) -> Tally:
        """Return sums of how far the records' targets are from their scores, with noise.

        With a the distance as a part of the target's range, at most one: the sums of a^4,
        a^2 - a^4, a - a^2 and 1 - a, of shape (cells, 4). The target is a number.

        Parameters
        ----------
        scores : Scores
            What a released model says of the records, as parts of the target's range.
        amount : amount
            What it may cost.
        """
        del scores, amount
        self._refuse("noisy_errors")

    def choose_scores(self, scores: Sequence[Scores], amount: Amount) -> list[int]:
        """Return for every cell which of several scores predict its records well, by their places.

        Parameters
        ----------
        scores : sequence of Scores
            What released models say of the records.
        amount : amount
            What it may cost.
        """
        del scores, amount
        self._refuse("choose_scores")

    def noisy_scale(self, scores: Scores, share: Fraction, amount: Amount) -> NDArray[np.float64]:
        """Return for each cell about how far a share of its records is, at least, from the scores.

        One of :data:`~privet.tables.SCALES` per cell, in parts of the range of the target, which is
        a number.

        Parameters
        ----------
        scores : Scores
            What :meth:`Table.start_scores` began, and what was added since.
        share : Fraction
            The part of the records that should be further away, between 0 and 1.
        amount : amount
            What it may cost.
        """
        del scores, share, amount
        self._refuse("noisy_scale")

    def noisy_candidate_gains(
        self, candidates: Candidates, criterion: Criterion, amount: Amount
    ) -> Released:
        """Return by how much every candidate lowers each cell's loss, with noise.

        In units of ``1 / criterion.scale``, of shape (cells, candidates) in the order of
        :func:`~privet.tables.list_candidates`. All of them share the amount, so that the noise
        grows with their number: :meth:`choose_best` tells only which one is good, for less.
        """
        del candidates, criterion, amount
        self._refuse("noisy_candidate_gains")

    def leaking_means(self, amount: Amount) -> NDArray[np.float64]:
        """Return mean targets with noise that depends on exact counts: marks it as leaking."""
        del amount
        self._refuse("leaking_means")

    def choose_labels(self, amount: Amount) -> list[int]:
        """Return for every cell a class that is frequent there, by its place in the schema.

        Parameters
        ----------
        amount : amount
            What it may cost.
        """
        del amount
        self._refuse("choose_labels")

    def choose_splits(
        self,
        candidates: Candidates,
        criterion: Criterion,
        amount: Amounts,
        allowed: NDArray[np.bool_],
        *,
        flip: bool = True,
    ) -> list[Split]:
        """Return one split per cell, good by a criterion, of the features that it may use.

        Parameters
        ----------
        candidates : Candidates
            Which splits each feature offers. Those that stand for more points of a public grid
            count for more.
        criterion : Criterion
            How good a split is.
        amount : amount, or one per cell
            What it may cost.
        allowed : bool array of shape (cells, features)
            Which features each cell may use, by public facts; at least one per cell.
        flip : bool, default=True
            Whether to use permute-and-flip where it is better.
        """
        del candidates, criterion, amount, allowed, flip
        self._refuse("choose_splits")

    def choose(
        self, amount: Amount, among: Sequence[str] | None = None, criterion: Criterion | None = None
    ) -> list[str]:
        """Return for every cell the name of a feature that tells the classes apart.

        Parameters
        ----------
        amount : amount
            What it may cost.
        among : sequence of str, optional
            The features to choose from; all if not given.
        criterion : Criterion, optional
            How good it is to divide a cell by a feature's codes; :class:`~privet.criteria.Max` if
            not given.
        """
        del amount, among, criterion
        self._refuse("choose")

    def choose_best(
        self, candidates: Candidates, criterion: Criterion, amount: Amount, *, how: str
    ) -> list[Split]:
        """Return one split per cell, good by a criterion; all candidates count alike.

        Parameters
        ----------
        candidates : Candidates
            Which splits each feature offers.
        criterion : Criterion
            How good a split is.
        amount : amount
            What it may cost.
        how : {"flip", "exponential", "rnm"}
            Permute-and-flip, the exponential mechanism or report noisy max.
        """
        del candidates, criterion, amount, how
        self._refuse("choose_best")

    def choose_of(
        self,
        splits: Sequence[Sequence[Split]],
        criterion: Criterion,
        amount: Amount,
        *,
        flip: bool,
    ) -> list[int]:
        """Return which of some released splits is good for each cell, by their positions.

        Parameters
        ----------
        splits : sequence of sequences of Split
            The splits that each cell is offered.
        criterion : Criterion
            How good a split is.
        amount : amount
            What it may cost.
        flip : bool
            Whether to use permute-and-flip; pure budgets only.
        """
        del splits, criterion, amount, flip
        self._refuse("choose_of")

    def choose_axes(
        self,
        axes: AxisLists,
        criterion: Criterion,
        amount: Amount,
        *,
        flip: bool,
    ) -> list[int]:
        """Return which of its axes each cell should be halved along, by their positions.

        Parameters
        ----------
        axes : AxisLists
            The axes of every cell, by public facts.
        criterion : Criterion
            How bad halves are.
        amount : amount
            What it may cost.
        flip : bool
            Whether to use permute-and-flip; pure budgets only.
        """
        del axes, criterion, amount, flip
        self._refuse("choose_axes")

    def choose_halves(self, axes: Sequence[Axis], amount: Amount) -> list[Split]:
        """Return for every cell a split that divides its records about equally.

        Parameters
        ----------
        axes : sequence of Axis, one per cell
            Along which the cell is divided, by public facts.
        amount : amount
            What it may cost.
        """
        del axes, amount
        self._refuse("choose_halves")

    def choose_features(self, count: int, amount: Amounts) -> list[tuple[int, ...]]:
        """Return, per cell, the features that promise most for a tree of depth 1.

        Parameters
        ----------
        count : int
            How many features each cell gets.
        amount : amount, or one per cell
            What it may cost, all features together.
        """
        del count, amount
        self._refuse("choose_features")

    def draw_trees(
        self,
        depth: int,
        amount: Amounts,
        *,
        upper: Sequence[Sequence[int]] | None = None,
        merge: bool = True,
        scores: Scores | None = None,
        reach: float = 0.0,
        stop: float = 0.5,
    ) -> list[Subtree]:
        """Return one small tree with its labels per cell, drawn at once.

        Parameters
        ----------
        depth : int
            1, 2 or 3.
        amount : amount, or one per cell
            What it may cost.
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
        stop : float, default=0.5
            How probable a leaf is above the last level, before any record is counted; at most 0.5.
        """
        del depth, amount, upper, merge, scores, reach, stop
        self._refuse("draw_trees")

    def _refuse(self, question: str) -> NoReturn:
        raise DataError(f"these cells cannot answer {question!r}")


#: Methods that are no questions: they are about a whole fit.
_NO_QUESTIONS = frozenset({"can", "check_choices", "session"})


def _questions(home: type) -> frozenset[str]:
    """Return the names of the questions that a class of this module has."""
    named = (name for name, held in vars(home).items() if callable(held))
    return frozenset(name for name in named if not name.startswith("_")) - _NO_QUESTIONS


#: All questions, free ones included, by the names of their methods.
QUESTIONS = _questions(Table) | _questions(Cells)
