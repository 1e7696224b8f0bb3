"""Questions that are audited by themselves, of one table and of parties together.

A learner asks some questions of a table, with some options. A :class:`Probe` asks any of them
and publishes the answer with the ledger's card, as an estimator does with its model, so that the
exact audit (:mod:`privet.audit.exact`) can be made of it.

A :class:`SharedProbe` is answered by two parties under secure sums. What is released there is
the opened sum, or the place of the largest one, and its noise is what the parties' shares make
together. So the whole protocol runs with the parties' own code, but for their noise: every party's
source notes which share it was asked for, and gives one that the audit chose. With shares of zero
the opened sum is exact; the law of all shares together, as they were asked for, is added to it.
Choices are only seen by their winners: how much noise makes one option overtake another is found by
trying. Nothing is read that the protocol does not open. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privet.audit.laws import largest, polya
from privet.errors import AuditError
from privet.federation import FederatedTable, Party
from privet.model import PrivacyCard
from privet.privacy import Budget, draw_polya, draw_shares
from privet.schema import Numeric, Schema
from privet.tables import PrivateTable, Tally

#: The most steps by which option k's noise must exceed option j's for k to be ahead of j.
_MOST_STEPS = 2**13
#: An option that is this many steps behind never wins.
_OUT = -(2**30)
#: How often a question may be tried: far more often than a search takes.
_MOST_TRIALS = 10**6
#: Numbers of steps that earlier searches found: tried first, since small tables are alike.
_seen: set[int] = set()


class Probe(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """One question to a table, asked by :meth:`fit` with the whole budget.

    Parameters
    ----------
    question : str
        The name of a method of :class:`~privet.PrivateTable` or of its cells.
    epsilon : float
    schema : Schema
    given : dict, optional
        What the question comes with, besides its amount. Scores are given by their start; those of
        several models as a list.
    by : str, optional
        A feature: its codes are the cells that are asked. The whole table is one cell if None.
    delta : float, optional
        For zCDP.
    whole_draws : bool, default=True
        Whether what a sampler of several choices makes is one outcome, or each of its choices is:
        where there is too much that it can make, paths of choices can be followed.
    ledger, random_state
        As for estimators.
    """

    def __init__(
        self,
        question: str,
        epsilon: float,
        schema: Schema,
        *,
        given: dict[str, Any] | None = None,
        by: str | None = None,
        delta: float | None = None,
        whole_draws: bool = True,
        ledger: None = None,
        random_state: Any = None,
    ) -> None:
        self.question = question
        self.epsilon = epsilon
        self.schema = schema
        self.given = given
        self.by = by
        self.delta = delta
        self.whole_draws = whole_draws
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Ask, and keep the answer and the card."""
        budget = Budget(self.epsilon, self.delta)
        if not self.whole_draws:
            self.random_state.whole_draws = False
        table = PrivateTable(X, y, self.schema, budget, random_state=self.random_state)
        self.answer_ = self._ask(table)
        self.privacy_ = PrivacyCard.of(
            table.ledger, table.leaks, rows_declared=False, covered=table.covered
        )
        return self

    def _ask(self, table: Any) -> Any:
        asked = table
        if self.question not in vars(PrivateTable):
            asked = table.root() if self.by is None else table.root().partition(self.by)
        given = dict(self.given or {})
        if "scores" in given:
            starts = given["scores"]  # of one model, or of several
            given["scores"] = (
                [table.start_scores(start) for start in starts]
                if isinstance(starts, list)
                else table.start_scores(starts)
            )
        return getattr(asked, self.question)(**given, amount=table.ledger.left)


class SharedProbe(Probe):
    """One question to two parties under secure sums, asked by :meth:`fit`.

    A record is at the first party if it has the first value of the schema's first feature (a
    number: the lower bound), else at the second: so a new record moves no other.

    Parameters
    ----------
    question, epsilon, schema, given, by, ledger, random_state
        As for :class:`Probe`; of federated cells.
    honest : int, default=2
        How many of the two parties' shares make the noise.
    """

    def __init__(
        self,
        question: str,
        epsilon: float,
        schema: Schema,
        *,
        given: dict[str, Any] | None = None,
        by: str | None = None,
        honest: int = 2,
        ledger: None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            question, epsilon, schema, given=given, by=by, ledger=ledger, random_state=random_state
        )
        self.honest = honest

    def fit(self, X: Any, y: Any) -> Self:
        """Ask, and keep the answer and the card of the party that paid least."""
        parties = _Parties(self.schema, X, y, self.epsilon, self.honest)
        opened, shares = parties.run(self._ask)
        cards = parties.cards()  # before anything is tried out
        if len({(share.two_sided, share.size, share.rate) for share in shares}) != 1:
            raise AuditError("the parties add different noise to one sum, or none at all")
        rate, size = float(shares[0].rate), shares[0].size
        weight = sum((Fraction(1, share.honest) for share in shares), Fraction(0))
        source = self.random_state
        self.answer_: Any
        if shares[0].two_sided:
            counts = opened.values.astype(np.int64) if isinstance(opened, Tally) else opened
            self.answer_ = source.add_shares(np.asarray(counts), 1 / rate, weight)
        else:
            ahead = _Ahead(lambda told: parties.run(self._ask, told)[0], size, len(opened))
            self.answer_ = [
                source.draw_by(partial(ahead.law, cell, rate, weight))
                for cell in range(len(opened))
            ]
        self.privacy_ = min(cards, key=lambda card: card.epsilon)
        return self


class _Parties:
    """Two parties that answer one question as often as it is tried."""

    def __init__(self, schema: Schema, X: Any, y: Any, epsilon: float, honest: int) -> None:
        first = next(iter(schema.features.values()))
        value = first.written(first.low) if isinstance(first, Numeric) else first.values[0]
        here = np.array([each == value for each in X[:, 0].tolist()], dtype=bool)
        self._noises = [_SharedNoise(), _SharedNoise()]
        self._budget = Budget(epsilon)
        self._parties = [
            Party(
                name, X[held], y[held], schema, Budget(_MOST_TRIALS * epsilon), random_state=noise
            )
            for name, held, noise in zip(
                ("north", "south"), (here, ~here), self._noises, strict=True
            )
        ]
        self._table = FederatedTable(self._parties, honest=honest)
        self._last = self._table

    def run(
        self, ask: Callable[[Any], Any], told: NDArray[np.int64] | None = None
    ) -> tuple[Any, list[_Share]]:
        """Ask once; return what is opened, and the shares that were drawn.

        ``told`` is the noise of both parties together; none if not given.
        """
        self._last = self._table.session(self._budget)
        for noise, share in zip(self._noises, (told, None), strict=True):
            noise.told = share
            noise.asked.clear()
        return ask(self._last), [share for noise in self._noises for share in noise.asked]

    def cards(self) -> list[PrivacyCard]:
        """Return what all books say: the coordinator's and each party's."""
        ledgers = [self._last.ledger, *(party.table.ledger for party in self._parties)]
        leaks = self._table.leaks
        return [PrivacyCard.of(ledger, leaks, rows_declared=False) for ledger in ledgers]


@dataclass(frozen=True)
class _Share:
    """What a party was asked to draw."""

    two_sided: bool
    size: int
    rate: Fraction
    honest: int


class _SharedNoise:
    """A party's source: it notes the share that is drawn, and gives what it was told.

    Under secure sums parties draw nothing but shares; what else is asked is refused.
    """

    private = False

    def __init__(self) -> None:
        self.told: NDArray[np.int64] | None = None
        self.asked: list[_Share] = []

    def draw(self, sampler: Any) -> Any:
        """See :class:`~privet.privacy.Noise`."""
        if not isinstance(sampler, partial) or sampler.func not in (draw_shares, draw_polya):
            raise AuditError("under secure sums parties draw shares of noise, nothing else")
        size, rate, honest = sampler.args
        self.asked.append(_Share(sampler.func is draw_shares, size, rate, honest))
        return np.zeros(size, dtype=np.int64) if self.told is None else self.told.copy()

    def _refuse(self, *_: Any) -> Any:
        raise AuditError("under secure sums parties draw shares of noise, nothing else")

    add_laplace = add_gaussian = permute_and_flip = exponential = _refuse
    grid_point = grid_points = below = _refuse


class _Ahead:
    """By how many steps of noise each option of each cell must be ahead of each other one.

    Found by halving, for all cells at once: all other options have noise that keeps them out.
    """

    def __init__(self, ask: Callable[[NDArray[np.int64]], Any], size: int, cells: int) -> None:
        self._ask = ask
        self._shape = (cells, size // cells)

    def law(self, cell: int, rate: float, weight: Fraction) -> dict[Hashable, float]:
        """Return the log probability of everything that can be chosen for a cell."""
        names, steps = self._found
        logs = largest(polya(rate, weight), steps[cell])
        return dict(zip((each[cell] for each in names), logs.tolist(), strict=True))

    @cached_property
    def _found(self) -> tuple[list[list[Any]], NDArray[np.int64]]:
        """For every option what is released if it wins, by cells; and the steps."""
        cells, options = self._shape
        names = [self._winners({option: 0}) for option in range(options)]
        steps = np.zeros((cells, options, options), dtype=np.int64)
        for j in range(options):
            for k in range(j):
                low = np.full(cells, -_MOST_STEPS)  # too little for k to win against j
                high = np.full(cells, _MOST_STEPS)  # enough
                while (high - low > 1).any():
                    middle = np.array([*map(_between, low.tolist(), high.tolist())])
                    won = [
                        one == other
                        for one, other in zip(
                            self._winners({j: 0, k: middle}), names[k], strict=True
                        )
                    ]
                    low, high = np.where(won, low, middle), np.where(won, middle, high)
                if (high == _MOST_STEPS).any() or (low == 1 - _MOST_STEPS).any():
                    raise AuditError("the options of a choice are too far apart: use fewer records")
                steps[:, k, j], steps[:, j, k] = high, 1 - high
                _seen.update(high.tolist())
        return names, steps

    def _winners(self, noise: dict[int, Any]) -> list[Any]:
        """Return what is released if some options have some noise, and the others stay out."""
        told = np.full(self._shape, _OUT)
        for option, steps in noise.items():
            told[:, option] = steps
        return list(self._ask(told.ravel()))


def _between(low: int, high: int) -> int:
    """Return which number of steps to try next: more than low is needed, high is enough."""
    if high - low <= 1:
        return high
    if high in _seen:
        return high - 1
    likely = sorted(step for step in _seen if low < step < high)
    return likely[len(likely) // 2] if likely else (low + high) // 2
