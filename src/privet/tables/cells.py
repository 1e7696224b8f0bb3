"""Cells of a private table: which they are, and how questions to them are paid for.

What is behind the wall is kept in dictionaries with weak keys, which no attribute of a table or of
its cells leads to. Only the modules of this room look into them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from privet.criteria import SAD, SSE, Criterion
from privet.engines import (
    CellsHandle,
    Engine,
    ScoresHandle,
    Split,
    View,
)
from privet.errors import (
    BudgetError,
    DataError,
    SchemaError,
)
from privet.privacy import (
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    LedgerCells,
    Noise,
    Place,
    Question,
    Released,
    exact,
    noise_for,
    place_words,
    question_words,
)
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables.interface import Amounts, Cells
from privet.tables.splits import (
    Multiway,
)

if TYPE_CHECKING:
    from privet.tables.private import PrivateTable
    from privet.tables.scores import Scores

_log = logging.getLogger("privet")

#: Squared distances are measured on a grid of this many steps of the target.
_SSE_STEPS = 128


@dataclass(frozen=True)
class Inside:
    """What a private table has behind the wall."""

    engine: Engine
    noise: Noise


behind_table: WeakKeyDictionary[PrivateTable, Inside] = WeakKeyDictionary()
behind_cells: WeakKeyDictionary[CellsOfTable, CellsHandle] = WeakKeyDictionary()
behind_scores: WeakKeyDictionary[Scores, ScoresHandle] = WeakKeyDictionary()


class CellsOfTable(Cells):
    """Disjoint cells of one private table: what all questions to them share."""

    def __init__(
        self, table: PrivateTable, ledger_cells: LedgerCells, place: Place, handle: CellsHandle
    ) -> None:
        self._table = table
        self._ledger_cells = ledger_cells
        self._place = place
        behind_cells[self] = handle

    def __len__(self) -> int:
        return len(self._ledger_cells)

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
        return behind_cells[self].view

    def __reduce__(self) -> NoReturn:
        raise TypeError("cells cannot be pickled or copied: their rows stay where they are")

    def take(self, chosen: NDArray[Any]) -> Self:
        """Return some of the cells, by mask or by position, chosen by public facts. Free."""
        chosen = np.asarray(chosen)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "biu"):
            raise ValueError("give a mask of the cells, or a list of positions")
        positions = np.arange(len(self))[chosen if chosen.size else slice(0)]
        handle = behind_table[self._table].engine.take(behind_cells[self], positions)
        return type(self)(self._table, self._ledger_cells.take(positions), self._place, handle)

    def split(self, splits: Sequence[Split]) -> Self:
        """Return the children of all cells, those of the first cell first. Free."""
        if not splits or len(splits) != len(self):
            raise ValueError("give one split for every cell")
        view = behind_cells[self].view
        if not all(split.fits(view) for split in splits):
            raise ValueError("a split needs one child for every code of its feature")
        parents = np.repeat(np.arange(len(self)), [split.n_children for split in splits])
        ledger_cells = self._ledger_cells.divide(parents)
        handle = behind_table[self._table].engine.split(behind_cells[self], splits)
        place = replace(self._place, level=self.depth + 1)
        return type(self)(self._table, ledger_cells, place, handle)

    def partition(self, by: str) -> Self:
        """Return the cells divided by a feature: one part for every code of it, in order. Free.

        The codes of a number are its bins, those of a category its values; the last one is for what
        is missing or unknown. The parts of the first cell come first.
        """
        feature = self._feature(by)
        view = behind_cells[self].view
        return self.split([Multiway().split(feature, 0, 0, view)] * len(self))

    def _feature(self, name: str) -> int:
        if name not in self.schema.features:
            raise SchemaError(f"the schema has no feature {name!r}")
        return self.schema.names.index(name)

    @property
    def _parts(self) -> int:
        """In how many parts who pays counts, and by which every bound is multiplied."""
        return self.schema.unit_parts

    @property
    def _budget(self) -> Budget:
        return self._table.ledger.budget

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

    def _need_pure(self) -> None:
        if self._budget.accountant != "pure":
            raise BudgetError("shares of noise need a pure budget")

    def _amounts(self, amount: Amounts) -> list[Amount]:
        """Return one amount for all cells, or one for each."""
        if isinstance(amount, Sequence):
            if len(amount) != len(self):
                raise BudgetError("give one amount for all cells, or one for each")
            return [exact(each) for each in amount]
        return [exact(amount)]

    def _epsilons(self, amount: Amounts, times: int = 1) -> list[Amount]:
        """Return the epsilon of each selection, if ``times`` selections share an amount."""
        return [
            self._budget.selection_epsilon(each / times) * times for each in self._amounts(amount)
        ]

    def _charge(self, mechanisms: Sequence[Any], question: Question) -> None:
        if len(self):
            place, what = place_words(self._place), question_words(question)
            _log.info("%s: %s%s", what, place, f", {len(self)} cells" if len(self) > 1 else "")
        self._table.ledger.charge(
            self._ledger_cells,
            mechanisms[0] if len(mechanisms) == 1 else mechanisms,
            question,
            self._place,
        )

    def _release(
        self, counts: Exact, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian]
    ) -> Released:
        noise = behind_table[self._table].noise
        if len(mechanisms) == 1:
            return self._whole(mechanisms[0].release(counts, noise))
        rows = [
            mechanism.release(Exact(np.atleast_1d(row)), noise)
            for mechanism, row in zip(mechanisms, counts, strict=True)
        ]
        return self._whole(Released(np.array(rows, dtype=np.int64).reshape(counts.shape)))

    def _whole(self, parts: Released) -> Released:
        """Return released counts of parts as whole units: records, or persons."""
        return (
            parts if self._parts == 1 else Released(np.rint(parts / self._parts).astype(np.int64))
        )

    def _release_counts(
        self, counts: Exact, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian]
    ) -> Released:
        """Release numbers of records, and let the books remember them if they are of all."""
        released = self._release(counts, mechanisms)
        deviations = [mechanism.deviation / self._parts for mechanism in mechanisms]
        self._table.ledger.keep_count(self._ledger_cells, released, deviations)
        return released

    def _noises(
        self, amount: Amounts, *, l1: int, squared_l2: int
    ) -> list[DiscreteLaplace | DiscreteGaussian]:
        parts = self._parts
        return [
            noise_for(self._budget, each, l1=parts * l1, squared_l2=parts**2 * squared_l2)
            for each in self._amounts(amount)
        ]
