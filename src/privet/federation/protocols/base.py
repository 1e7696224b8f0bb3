"""What all protocols have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.errors import FederationError
from privet.federation.links import Connections, Link
from privet.privacy import QuestionKind, Released
from privet.privacy.budget import Amount
from privet.schema import Schema
from privet.tables import Candidates, Split, Tally

if TYPE_CHECKING:
    from privet.federation.cells import Amounts, FederatedCells


@dataclass(frozen=True)
class SplitChoice:
    """What a learner asks when every cell is to choose a split.

    Attributes
    ----------
    candidates : Candidates
        Which splits are offered.
    criterion : Criterion
        What they are judged by.
    amount : amount
        What it may cost, in epsilon.
    allowed : bool array of shape (cells, features)
        Which features each cell may use.
    how : {"flip", "exponential", "rnm"}
        By which selection.
    alike : bool
        Whether all candidates count alike (``choose_best``), or by their base measure
        (``choose_splits``).
    """

    candidates: Candidates
    criterion: Criterion
    amount: Amount
    allowed: NDArray[np.bool_]
    how: str
    alike: bool


class AggregationProtocol(ABC):
    """A way to put the answers of several parties together.

    Parameters
    ----------
    parties : int
        How many there are at the start.
    honest : int, optional
        How many parties add their noise for sure, where that matters.
    least : int
        With fewer parties than this a run stops.
    dealer : Link, optional
        Who deals for secret choices, where there are any; the coordinator if None.
    deals : int, optional
        How many deals are made for one that is used.
    """

    #: What people call it.
    name: ClassVar[str]
    #: What each question to cells asks of every party: an owner may not allow it.
    asks: ClassVar[Mapping[str, str]]
    #: The same of a test score, which a fit may do without.
    asks_of_scores: ClassVar[Mapping[str, str]]
    #: No question may cost less.
    least_amount: ClassVar[Fraction] = Fraction(0)

    def __init__(
        self,
        parties: int,
        honest: int | None,
        least: int,
        dealer: Link | None = None,
        deals: int | None = None,
    ) -> None:
        del least
        for name, given in (("honest", honest), ("dealer", dealer), ("deals", deals)):
            if given is not None:
                raise FederationError(
                    f"{name} is for secure sums: elsewhere a party needs no others"
                )
        #: How many parties' noise an answer rests on.
        self.honest = parties

    @property
    @abstractmethod
    def trust(self) -> str:
        """What the guarantee of an answer rests on, for a model's card."""

    def noises(self, members: int) -> float:
        """Return how much noise a sum over the parties has, in noises of one table."""
        return members

    def connect(self, connections: Connections) -> None:
        """Let the parties exchange what they need before the first question. Free."""
        del connections

    def close(self) -> None:
        """End what the protocol itself has opened."""
        return

    def check_party(self, name: str, key: bytes | None, members: int, doubted: int) -> None:
        """Raise if a party is not ready for a fit, by its public key and how many it doubts."""
        del name, key, members, doubted

    def check_choices(
        self, schema: Schema, criterion: Criterion, options: int, how: str | None
    ) -> None:
        """Raise if splits cannot be chosen in this way: see :class:`~privet.tables.Table`."""
        del schema, criterion, options, how

    @abstractmethod
    def noisy_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """Return how many records each cell has, with noise."""

    @abstractmethod
    def noisy_class_counts(self, cells: FederatedCells, amount: Amounts) -> Released:
        """Return how many records of each class each cell has, with noise."""

    @abstractmethod
    def count_outcomes(
        self,
        cells: FederatedCells,
        question: str,
        kind: QuestionKind,
        given: tuple[Any, ...],
        amount: Amount,
        numbers: int,
    ) -> Tally:
        """Return how well scores fit the records of cells: some counts per cell, with noise.

        Parameters
        ----------
        cells : FederatedCells
        question : str
            The name of the question to cells, as in ``asks_of_scores``.
        kind : QuestionKind
            What the books call it.
        given : tuple
            What it comes with, besides its amount.
        amount : amount
        numbers : int
            How many counts a cell has.
        """

    @abstractmethod
    def choose_labels(self, cells: FederatedCells, amount: Amount) -> list[int]:
        """Return for every cell a class that is frequent there."""

    @abstractmethod
    def choose_splits(self, cells: FederatedCells, choice: SplitChoice) -> list[Split]:
        """Return one split for every cell, of which there is at least one."""
