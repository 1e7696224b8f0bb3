"""What an engine is: exact whole numbers about rows, and nothing else.

An engine never sees noise, a budget or a ledger. It gives out handles for disjoint cells of its
table and answers questions about all of them at once. With the same rows every engine gives the
same numbers, wherever the rows are: one suite tests them all (``tests/engines``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privet.engines.axes import Axes, Axis
from privet.engines.bases import Basis, Curves
from privet.engines.lineage import CellsHandle, ScoresHandle
from privet.engines.questions import Margin, Records, Sparse, TreeLayout
from privet.engines.splits import Split
from privet.engines.views import View
from privet.schema import Schema


@runtime_checkable
class Engine(Protocol):
    """Exact answers about disjoint cells of one table. Everything here is inside the wall."""

    @property
    def schema(self) -> Schema:
        """What is public about the table."""

    @property
    def rows(self) -> int:
        """How many rows there are, exactly; records without a known target are among them."""

    @property
    def gathers(self) -> bool:
        """Whether the rows of cells may be moved to the driver for a draw of whole trees."""

    def close(self) -> None:
        """Give up the rows, and what was worked out about them."""

    # Free: these only say which cells are meant.

    def root(self, view: View) -> CellsHandle:
        """Return the whole table as one cell; records without a known target are left out."""

    def parts(self, view: View, count: int, key: int) -> CellsHandle:
        """Return the table as disjoint cells, to which a keyed hash assigns each record."""

    def portion(self, key: int, start: int, stop: int) -> Engine:
        """Return an engine for some of the records: those whose keyed hash is in a range.

        Hashes are numbers below :data:`~privet.engines.PLACES`, of the record alone. Handles belong
        to the engine that gave them out.
        """

    def take(self, cells: CellsHandle, chosen: NDArray[np.intp]) -> CellsHandle:
        """Return some of the cells, renumbered in the order given."""

    def split(self, cells: CellsHandle, splits: Sequence[Split]) -> CellsHandle:
        """Return the children of all cells, in order."""

    def start_scores(self, start: Sequence[float]) -> ScoresHandle:
        """Return the same scores for every record."""

    def add_scores(
        self, scores: ScoresHandle, cells: CellsHandle, values: NDArray[np.float64] | Curves
    ) -> ScoresHandle:
        """Return scores with the values of each record's cell added; do not use the old ones.

        Or, for the records of cells, the values of curves at their codes.
        """

    # Sums over rows. With a unit, every record counts as often as it weighs: in parts of a person.

    def class_counts(self, cells: CellsHandle) -> NDArray[np.int64]:
        """Return counts of shape (cells, classes); of one class if the target is a number."""

    def row_counts(self, cells: CellsHandle) -> NDArray[np.int64]:
        """Return how many rows cells have, whatever they weigh: how much work a cell is."""

    def target_counts(self, cells: CellsHandle, steps: int) -> NDArray[np.int64]:
        """Return how many records of each cell have each of ``steps + 1`` target values."""

    def grid_counts(self, feature: int | None) -> NDArray[np.int64]:
        """Return how many records lie at each place of a number's grid; missing ones are last.

        The number is a feature, or the target for None.
        """

    def histograms(
        self, cells: CellsHandle, features: Sequence[int], steps: int | None = None
    ) -> Iterator[tuple[slice, dict[int, NDArray[np.int32]]]]:
        """Yield batches of cells with counts of shape (cells, codes, classes) for each feature.

        With steps, target values on that grid take the place of classes.
        """

    def moments(
        self, cells: CellsHandle, scores: ScoresHandle, reach: float, *, pure: bool
    ) -> NDArray[np.int64]:
        """Return the sums of the loss's moments, of shape (cells, moments)."""

    def distance_counts(
        self, cells: CellsHandle, scores: ScoresHandle, marks: Sequence[float]
    ) -> NDArray[np.int64]:
        """Return counts of shape (cells, marks + 1), if the target is a number.

        Place k of a cell is for the records whose targets are further from their scores than k of
        the marks, which rise.
        """

    def outcome_counts(
        self, cells: CellsHandle, scores: ScoresHandle, ends: Sequence[float] | None
    ) -> NDArray[np.int64]:
        """Return counts of shape (cells, classes, predicted classes), if the target has classes.

        Or, with rising ends, of shape (cells, classes, ends + 1): by how many of them a record's
        single score is not below.
        """

    def error_sums(self, cells: CellsHandle, scores: ScoresHandle) -> NDArray[np.int64]:
        """Return sums of shape (cells, 4), if the target is a number: see `error_moments`."""

    def slopes(
        self,
        cells: CellsHandle,
        scores: ScoresHandle,
        basis: Basis,
        largest: int,
        longest: int,
    ) -> NDArray[np.int64]:
        """Return the sums of bounded residuals times functions, of shape (functions, scores)."""

    def calibration(
        self, cells: CellsHandle, scores: ScoresHandle, shift: float, factor: float
    ) -> NDArray[np.int64]:
        """Return five sums over all records of cells: see :func:`calibration_moments`."""

    def places(self, cells: CellsHandle, axes: Axes | Sequence[Axis]) -> Sparse:
        """Return at which places of their cells' axes records lie, and how many at each.

        Places are numbered ``cell * width + place``; ``width`` is the largest number of codes of
        the view.
        """

    def sides(
        self,
        cells: CellsHandle,
        axes: Axes | Sequence[Axis],
        middle: NDArray[np.int32],
        steps: int | None,
    ) -> NDArray[np.int64]:
        """Return counts of shape (cells, 3, classes): below, at and above a place of an axis."""

    # Whole trees.

    def tree_rows(
        self, cells: CellsHandle, start: int, stop: int, scores: ScoresHandle | None, reach: float
    ) -> list[Records]:
        """Return the records of cells ``start`` to ``stop``; with scores, pulls are the labels."""

    def tree_facts(
        self, cells: CellsHandle, cell: int, scores: ScoresHandle | None, reach: float
    ) -> NDArray[np.int64]:
        """Return how many records have each code, feature after feature, and the sum of weights."""

    def tree_sums(
        self,
        cells: CellsHandle,
        cell: int,
        layout: TreeLayout,
        of: Sequence[Margin],
        scores: ScoresHandle | None,
        reach: float,
    ) -> NDArray[Any]:
        """Return sums of weights by the codes of one, two or three features, and by channels.

        All margins one after the other, as :meth:`TreeLayout.cut` takes them.
        """
