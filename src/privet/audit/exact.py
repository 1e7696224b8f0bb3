"""The exhaustive audit: the law of whole fits on all neighbouring tables of a small universe.

The source of noise is replaced by one that follows every outcome of every private choice, each with
its exact probability, on two neighbouring tables at once: the fit is replayed along every branch.
What comes out on both sides is the law of everything that the fitted model holds, so that the
largest log ratio, the Renyi divergences and delta can be computed and compared with what the ledger
says. Nothing here trusts the ledger, the mechanisms' scales or the sensitivities; what is trusted
is that the samplers have the laws that they are documented to have (``tests/privacy`` and the
statistical audit check that). Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from privet.audit.comparison import Comparison, compare, follow
from privet.audit.laws import alone
from privet.audit.outputs import released_by
from privet.audit.sources import Unanswered, law_of, run
from privet.errors import AuditError
from privet.model import ADDED, EITHER, PrivacyCard
from privet.privacy import Noise
from privet.schema import Categorical, Numeric, Schema

__all__ = [
    "Comparison",
    "Verdict",
    "audit",
    "compare",
    "follow",
    "law_of",
    "neighbours",
    "neighbours_by_person",
    "universe",
]

T = TypeVar("T")
#: One record: its features in the schema's order, then its target, then, with a unit, its person.
Record = tuple[Any, ...]
#: Some records, in order.
Table = tuple[Record, ...]

#: Log ratios may exceed a claim by this much: rounding errors of doubles add up.
TOLERANCE = 1e-9
#: Relative error of the Gaussian law's masses (laws.py), which enters Renyi divergences.
GAUSSIAN_TOLERANCE = 1e-6
_HIDDEN = "the output has something that neither the data nor the answers explain"


@dataclass(frozen=True)
class Verdict:
    """What an exhaustive audit of an estimator found.

    Attributes
    ----------
    claimed : PrivacyCard
        The dearest card of all fits: what the ledger says.
    found : float
        The largest log ratio of all outputs of all neighbouring tables; for zCDP the largest rho;
        where answers decide between the two, the least epsilon that goes with the claimed delta.
    delta : float
        For zCDP: the largest delta at the claimed epsilon.
    worst : pair of tables
        Where it was found: a table, and the same with one record more.
    remarks : tuple of str
        What no private learner does.
    exhaustive : bool
        Whether all outcomes were followed, or some paths of them.
    pairs, outputs, runs : int
        How many neighbouring tables were compared, by how many outputs and fits.
    seconds : float
    """

    claimed: PrivacyCard
    found: float
    delta: float
    worst: tuple[Table, Table]
    remarks: tuple[str, ...]
    exhaustive: bool
    pairs: int
    outputs: int
    runs: int
    seconds: float

    @property
    def claim(self) -> float:
        """What ``found`` must not exceed: epsilon, or rho for zCDP."""
        if self.claimed.accountant in (EITHER, ADDED):
            return self.claimed.requested_epsilon
        return self.claimed.rho if self.claimed.accountant == "zCDP" else self.claimed.epsilon

    @property
    def holds(self) -> bool:
        """Whether everything that was found is within the claim, and nothing strange was seen."""
        slack = TOLERANCE
        if self.claimed.accountant != "pure":
            slack += GAUSSIAN_TOLERANCE * self.claim
            if self.delta > self.claimed.delta * (1 + GAUSSIAN_TOLERANCE):
                return False
        return not self.remarks and self.found <= self.claim + slack

    def exceeds(self, epsilon: float) -> bool:
        """Tell whether more was found than an epsilon that somebody promised (pure only)."""
        return self.claimed.accountant == "pure" and self.found > epsilon + TOLERANCE


def audit(
    estimator: Any,
    *,
    records: Sequence[Record] | None = None,
    most_records: int = 2,
    pairs: Sequence[tuple[Table, Table]] | None = None,
    paths: int | None = None,
    most_outcomes: int = 4,
    most_runs: int = 100_000,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Compare all fits of an estimator on all neighbouring tables of a small universe.

    Parameters
    ----------
    estimator : estimator of Privet
        Unfitted, with a schema and a finite epsilon.
    records : sequence of tuples, optional
        The universe: the records that a table may have, features in the schema's order and then the
        target. If not given, a few that the schema allows (:func:`universe`).
    most_records : int, default=2
        Tables have up to this many records; with a unit, the person that is added has.
    pairs : sequence of pairs of tables, optional
        Compare these instead of all neighbours.
    paths : int, optional
        Follow this many paths of answers instead of all (:func:`follow`).
    most_outcomes, most_runs : int
        See :func:`compare`; the runs are those of one pair.
    n_jobs : int, optional
        How many processes compare pairs.
    progress : callable, optional
        Called with the numbers of pairs done and in all.

    Examples
    --------
    >>> from privet import Categorical, DiffPID3Classifier, Schema
    >>> schema = Schema({"sex": Categorical(["f"])}, target="ill", classes=[0, 1])
    >>> verdict = audit(DiffPID3Classifier(1.0, schema, max_depth=1), most_records=1)
    >>> verdict.holds, verdict.claim, round(verdict.found, 6)
    (True, 1.0, 0.75)
    """
    _check(estimator)
    if pairs is None:
        find = neighbours if estimator.schema.unit is None else neighbours_by_person
        pairs = list(find(records or universe(estimator.schema), most_records))
    begun = time.perf_counter()
    options = {"paths": paths, "most_outcomes": most_outcomes, "most_runs": most_runs}
    known = _Known()
    jobs = [(estimator, pair, options, known) for pair in pairs]
    found = []
    for done, one in enumerate(_in_processes(_look, jobs, n_jobs), start=1):
        found.append(one)
        if progress is not None:
            progress(done, len(pairs))
    worst = max(found, key=lambda one: one.found)
    hidden = () if _repeats(_Fit(estimator), pairs[-1][1]) else (_HIDDEN,)
    return Verdict(
        claimed=max((one.card for one in found), key=lambda card: (card.epsilon, card.rho)),
        found=worst.found,
        delta=max(one.delta for one in found),
        worst=worst.pair,
        remarks=tuple(dict.fromkeys([*(r for one in found for r in one.remarks), *hidden])),
        exhaustive=paths is None,
        pairs=len(pairs),
        outputs=sum(one.outputs for one in found),
        runs=sum(one.runs for one in found),
        seconds=time.perf_counter() - begun,
    )


@dataclass(frozen=True)
class _Found:
    """What one pair of tables showed."""

    pair: tuple[Table, Table]
    card: PrivacyCard
    found: float
    delta: float
    remarks: tuple[str, ...]
    outputs: int
    runs: int


@dataclass
class _Known:
    """What fits of one table gave, by the answers of the noise.

    Neighbours of one table follow each other, so that it need not be fitted for each of them; what
    it gave is compared with a new fit of every neighbour all the same. Processes share nothing.
    """

    table: Table | None = None
    given: dict[Hashable, Any] = field(default_factory=dict)

    def of(self, table: Table) -> dict[Hashable, Any]:
        """Return what is known of a table, which is nothing if it is another one."""
        if table != self.table:
            self.table, self.given = table, {}
        return self.given


def _look(
    estimator: Any, pair: tuple[Table, Table], options: dict[str, Any], known: _Known
) -> _Found:
    fit = _Fit(estimator)
    with _silent():
        if options["paths"] is None:
            limits = {name: options[name] for name in ("most_outcomes", "most_runs")}
            found = compare(fit, *pair, **limits, known=known.of(pair[0]))
        else:
            limits = {name: options[name] for name in ("most_outcomes", "paths")}
            found = follow(fit, *pair, **limits)
    card = fit.claimed
    zcdp = card.accountant == "zCDP"
    if card.accountant == EITHER:
        if found.path_rho is not None:
            raise AuditError("single paths tell nothing of delta: follow all outcomes (paths=None)")
        loss = found.epsilon_at(card.delta)
    else:
        loss = found.rho if zcdp else found.epsilon
    return _Found(
        pair=pair,
        card=card,
        found=loss,
        delta=found.delta(card.epsilon) if zcdp and found.path_rho is None else 0.0,
        remarks=found.remarks,
        outputs=len(found.outputs),
        runs=found.runs,
    )


def _in_processes(
    work: Callable[..., T], jobs: list[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[T]:
    from joblib import Parallel, delayed

    if n_jobs is None or n_jobs == 1:
        return (work(*job) for job in jobs)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    return iter(parallel(delayed(work)(*job) for job in jobs))


def universe(schema: Schema) -> list[Record]:
    """Return a few records that a schema allows: two values of every feature, and of the target.

    A number has its bounds, a category its first value and an unknown one, the target its first and
    last class, or its bounds. Other values differ from these by their names only.
    """
    sides: list[tuple[Any, ...]] = []
    for feature in schema.features.values():
        if isinstance(feature, Numeric):
            sides.append((feature.written(feature.low), feature.written(feature.high)))
        else:
            assert isinstance(feature, Categorical)
            sides.append((feature.values[0], None))
    if schema.classes is not None:
        sides.append((schema.classes[0], schema.classes[-1]))
    else:
        assert schema.bounds is not None
        sides.append(tuple(schema.bounds))
    return list(itertools.product(*sides))


def neighbours(records: Sequence[Record], most: int) -> Iterator[tuple[Table, Table]]:
    """Yield all tables with fewer than ``most`` of the records, each with one record more.

    The additional record comes first, so that all others change their places.
    """
    for size in range(most):
        for table in itertools.combinations_with_replacement(records, size):
            for record in records:
                yield table, (record, *table)


def neighbours_by_person(records: Sequence[Record], most: int) -> Iterator[tuple[Table, Table]]:
    """Yield tables of one person or none, each with a person more that has up to ``most`` records.

    The records of the new person lie before those of the other, and behind.
    """
    others: list[Table] = [()]
    for size in range(1, min(most, 2) + 1):
        others += itertools.combinations_with_replacement(records[:2], size)
    for other in others:
        table = tuple((*record, "first") for record in other)
        for size in range(1, most + 1):
            for new in itertools.combinations_with_replacement(records, size):
                first, *rest = ((*record, "second") for record in new)
                yield table, (first, *table, *rest)


def _check(estimator: Any) -> None:
    if not isinstance(getattr(estimator, "schema", None), Schema):
        raise AuditError("give the estimator a schema: the audit makes its own tables")
    if estimator.ledger is not None:
        raise AuditError("an audit draws from no ledger file; set ledger=None")
    if estimator.random_state is not None:
        raise AuditError("an audit replaces the noise; set random_state=None")
    if not math.isfinite(estimator.epsilon):
        raise AuditError("without noise there is nothing to audit; give a finite epsilon")


@dataclass
class _Fit:
    """An estimator as a program, which also collects the cards."""

    estimator: Any
    cards: dict[tuple[float, float], PrivacyCard] = field(default_factory=dict)
    inputs: dict[Table, tuple[Any, Any]] = field(default_factory=dict)

    def __call__(self, table: Table, noise: Noise) -> Hashable:
        model = copy(self.estimator)
        model.random_state = noise
        if table not in self.inputs:
            self.inputs[table] = _columns(table, self.estimator.schema)
        features, target = self.inputs[table]
        model.fit(features, target)
        card = model.privacy_
        self.cards[card.epsilon, card.rho] = card
        return released_by(model)

    @property
    def claimed(self) -> PrivacyCard:
        """The dearest card so far."""
        return self.cards[max(self.cards)]


@contextmanager
def _silent() -> Iterator[None]:
    """Fits warn that their noise is not cryptographic, which is the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _columns(table: Table, schema: Schema) -> tuple[Any, Any]:
    features = len(schema.names)
    rows = np.empty((len(table), len(schema.columns)), dtype=object)
    for place, record in enumerate(table):
        rows[place] = record
    if schema.unit is None:
        return rows[:, :features], rows[:, features]
    columns = {
        name: pa.array(rows[:, place], pa.float64() if schema.of_numbers(name) else pa.string())
        for place, name in enumerate(schema.names)
    }
    return pa.table({**columns, schema.unit: rows[:, -1].tolist()}), rows[:, features]


def _repeats(fit: _Fit, table: Table) -> bool:
    """Tell whether two fits with the same answers are the same."""
    answers: tuple[Any, ...] = ()
    while True:
        with _silent():
            first, again = (run(fit, table, answers) for _ in range(2))
        if not isinstance(first, Unanswered):
            return bool(first == again)
        likeliest = max(alone(first.question), key=lambda outcome: outcome[1])
        answers = (*answers, likeliest[0])
