"""How cells and scores came about: enough to work them out again from the rows of any block.

A *lineage* is a chain of steps from the whole table down to some cells. It holds public facts only
(views, splits, keys), is small next to the rows, and is applied to one block at a time. A block
that was lost is read again, and its lineages are followed anew; nothing else is remembered of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines.bases import Curves
from privet.engines.splits import Split
from privet.engines.views import View

#: How finely a keyed hash divides a table into portions.
PLACES = 2**24


@dataclass(frozen=True)
class Portion:
    """The records whose keyed hash, a number below :data:`PLACES`, is in ``start`` .. ``stop``."""

    key: int
    start: int
    stop: int


@dataclass(frozen=True)
class Root:
    """The whole table is one cell, or what lies in all of some portions of it."""

    portions: tuple[Portion, ...] = ()


@dataclass(frozen=True)
class Parts:
    """A keyed hash of each record says in which of some disjoint parts it is.

    Records outside a portion are in none.
    """

    count: int
    key: int
    portions: tuple[Portion, ...] = ()


@dataclass(frozen=True, eq=False)
class Take:
    """Some cells are kept. ``numbers[i]`` is the new number of cell i, -1 if it is left out.

    A last -1 is for records outside all cells, whose number is -1.
    """

    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, size: int, chosen: NDArray[np.intp]) -> Take:
        """Keep some of ``size`` cells, in the order given."""
        numbers = np.full(size + 1, -1, dtype=np.int32)  # a record outside (-1) finds the last
        numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
        numbers[-1] = -1
        return cls(numbers)


@dataclass(frozen=True, eq=False)
class Divide:
    """Every cell is divided by one of its features.

    Attributes
    ----------
    features : array
        The feature of every cell.
    first : array
        The number of the first child of every cell, and after the last that of all children.
    offsets : array
        Where in ``children`` a cell's codes begin.
    children : array
        The child of every code, counted within its cell; in as few bytes as that takes.
    """

    features: NDArray[np.int32]
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    children: NDArray[Any]

    @classmethod
    def of(cls, splits: Sequence[Split]) -> Divide:
        """Divide cells by one split each."""
        most = max(split.n_children for split in splits)
        narrow = np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.int32
        return cls(
            np.array([split.feature for split in splits], dtype=np.int32),
            np.cumsum([0, *(split.n_children for split in splits)]),
            np.cumsum([0, *(len(split.child_of) for split in splits)])[:-1],
            np.concatenate([split.child_of.astype(narrow) for split in splits]),
        )

    def child_of(self) -> NDArray[np.int32]:
        """Return the child of every code of every cell, counted over all cells."""
        lengths = np.diff(np.append(self.offsets, len(self.children)))
        return np.repeat(self.first[:-1], lengths).astype(np.int32) + self.children.astype(np.int32)


Step = Root | Parts | Take | Divide


@dataclass(frozen=True, eq=False)
class Lineage:
    """Some cells of a table: the last step to them, and where it started from.

    Attributes
    ----------
    number : int
        The name by which blocks know these cells, unique within an engine.
    size : int
        How many cells there are.
    view : View
        Whose codes the steps are in terms of.
    step : Step
    parent : Lineage or None
    """

    number: int
    size: int
    view: View
    step: Step
    parent: Lineage | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # As one list: a chain of thousands of steps is too deep for pickle.
        steps = [(one.number, one.size, one.view, one.step) for one in _ancestors(self)]
        return _chained, (Lineage, steps)


@dataclass(frozen=True, eq=False)
class ScoreLineage:
    """The scores of all records: a start, or earlier scores and what is added to some cells.

    ``values`` are one row per cell, or curves: values by the codes of features.
    """

    number: int
    start: tuple[float, ...]
    cells: Lineage | None = None
    values: NDArray[np.float64] | Curves | None = None
    parent: ScoreLineage | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        steps = [(one.number, one.start, one.cells, one.values) for one in _ancestors(self)]
        return _chained, (ScoreLineage, steps)


def _ancestors(last: Any) -> list[Any]:
    """Return all that a lineage came from, the first one first, and itself."""
    found = []
    while last is not None:
        found.append(last)
        last = last.parent
    return found[::-1]


def _chained(kind: type[Any], steps: Sequence[tuple[Any, ...]]) -> Any:
    """Return the last of a chain of lineages."""
    last = None
    for step in steps:
        last = kind(*step, last)
    return last


@dataclass(eq=False)
class CellsHandle:
    """What an engine gives out for some cells.

    ``before`` keeps the handle that the cells were made from alive until blocks have worked them
    out: so a block need not start from the whole table.
    """

    lineage: Lineage
    before: CellsHandle | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.lineage.size

    @property
    def view(self) -> View:
        """Through which public cuts their records are seen."""
        return self.lineage.view


@dataclass(eq=False)
class ScoresHandle:
    """What an engine gives out for the scores of all records."""

    lineage: ScoreLineage
    before: tuple[ScoresHandle, CellsHandle] | None = field(default=None, repr=False)

    @property
    def columns(self) -> int:
        """How many scores a record has."""
        return len(self.lineage.start)
