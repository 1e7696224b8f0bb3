"""Every party proposes splits from its own rows; noisy counts decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privet.criteria import Criterion
from privet.federation.answers import anew
from privet.federation.protocols.base import SplitChoice
from privet.federation.protocols.noisy_counts import NoisyCounts
from privet.privacy import Exponential, PermuteAndFlip, Question, QuestionKind, ReportNoisyMax
from privet.schema import Schema
from privet.tables import Split, gains_of

if TYPE_CHECKING:
    from privet.federation.cells import FederatedCells

#: Part of a selection's budget for proposals; the counts of the proposals have the rest.
PROPOSAL_SHARE = Fraction(1, 2)

#: How parties propose splits, by name.
_SELECTIONS = {"flip": PermuteAndFlip, "exponential": Exponential, "rnm": ReportNoisyMax}


class LocalProposals(NoisyCounts):
    """Noisy counts, and splits that parties propose from their own rows.

    Every party chooses a split of every cell privately among all of them; noisy counts on the few
    distinct proposals decide.
    """

    name: ClassVar[str] = "local-rnm"
    asks: ClassVar[Mapping[str, str]] = {
        **NoisyCounts.asks,
        "choose_best": "choose_best",
        "choose_splits": "choose_splits",
    }

    def check_choices(
        self, schema: Schema, criterion: Criterion, options: int, how: str | None
    ) -> None:
        """See :class:`AggregationProtocol`: a party chooses by any criterion and any selection."""
        del schema, criterion, options, how

    def choose_splits(self, cells: FederatedCells, choice: SplitChoice) -> list[Split]:
        """See :class:`AggregationProtocol`."""
        proposals = self._propose(cells, choice)
        rest = choice.amount * (1 - PROPOSAL_SHARE)  # an infinite amount stays infinite
        counted, several, amounts = [], [], []
        for place in range(max(map(len, proposals))):
            mine = [cell for cell, some in enumerate(proposals) if place < len(some) > 1]
            if not mine:
                continue
            splits = [proposals[cell][place] for cell in mine]
            # Every proposal of a cell is counted, one after the other: they share the cell's rest.
            each = [rest / len(proposals[cell]) for cell in mine]
            counted.append((mine, splits))
            several.append(cells.take(np.array(mine)).split(splits))
            amounts.append(
                [
                    one
                    for one, split in zip(each, splits, strict=True)
                    for _ in range(split.n_children)
                ]
            )
        best: list[tuple[float, Split]] = [(-math.inf, some[0]) for some in proposals]
        found = self._count_several(several, amounts)
        for (mine, splits), counts in zip(counted, found, strict=True):
            gains = gains_of(counts, splits, choice.criterion)
            for cell, split, gain in zip(mine, splits, gains.tolist(), strict=True):
                if gain > best[cell][0]:
                    best[cell] = (gain, split)
        return [split for _, split in best]

    def _propose(self, cells: FederatedCells, choice: SplitChoice) -> list[list[Split]]:
        """Return the distinct proposals of all parties, for every cell."""
        amount = choice.amount * PROPOSAL_SHARE
        mechanism = _SELECTIONS[choice.how](choice.criterion.spread, amount)
        cells._charge([mechanism], Question(QuestionKind.SPLIT, choice.criterion.name))
        given: tuple[Any, ...] = (choice.candidates, choice.criterion, amount)
        if choice.alike:
            answers = cells._ask("choose_best", *given, check=cells._are_splits, how=choice.how)
        else:
            answers = cells._ask(
                "choose_splits",
                *given,
                choice.allowed,
                check=cells._are_splits,
                flip=choice.how == "flip",
            )
        return [
            list(dict.fromkeys(map(anew, splits)))
            for splits in zip(*(answer for _, answer in answers), strict=True)
        ]
