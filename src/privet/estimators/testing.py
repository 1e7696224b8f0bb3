"""A private score of a published model on other rows, and a private choice among learners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sklearn.base import clone

from privet.errors import BudgetError, DataError, FederationError, SchemaError
from privet.estimators._base import (
    PrivateEstimator,
    _is_party,
    _LargeRows,
    _Rows,
    open_store,
)
from privet.evaluation import Evaluation
from privet.evaluation.asking import check_group, score, scores_of, view_of
from privet.federation import FederatedTable
from privet.model import Model, PrivacyCard, load
from privet.privacy import Budget, Coins, Cost, LedgerStore, as_float, zcdp_epsilon
from privet.privacy.budget import NOTHING
from privet.reading import Columns, Source, column_of, is_stream
from privet.schema import Schema
from privet.tables import PrivateTable

#: Which part of the records candidates learn from, are compared on, and the winner is scored on.
SHARES = {"training": Fraction(3, 5), "comparison": Fraction(1, 5), "test": Fraction(1, 5)}
#: More candidates are refused: their epsilons add up.
_MOST_CANDIDATES = 1_000


def evaluate(
    model: Any,
    X: Any,
    epsilon: float = 1.0,
    *,
    y: Any = None,
    delta: float | None = None,
    by: str | None = None,
    ledger: LedgerStore | str | Path | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Score a published model on sensitive rows that it was not learnt from.

    Parameters
    ----------
    model : Model, fitted estimator, or path of a model file
    X : table, array, path, stream, Source or PrivateTable
        As for ``fit``; its columns are those of the model's schema. On rows that the model was
        learnt from, the score is as private, but too good.
    epsilon : float, default=1.0
        The budget of the score.
    y : column, optional
        The target, if it is no column of ``X``.
    delta : float, optional
        With it the guarantee is (epsilon, delta), and noise is Gaussian.
    by : str, optional
        A feature by whose values the score is told for groups of records, too.
    ledger : path or LedgerStore, optional
        The ledger file of the rows, which is charged.
    random_state
        As for estimators.

    Returns
    -------
    Evaluation
        With the cost as its ``privacy``.

    Privacy
    -------
    Noisy counts of records by class and predicted class, and of two classes by their scores, which
    share the budget; noisy sums of errors for a number; (epsilon, delta)-DP for adding or removing
    one record, or all records of one person if the model's schema has a unit
    (docs/proofs/evaluation.md).

    Examples
    --------
    >>> import numpy as np
    >>> import privet
    >>> schema = privet.Schema({"dose": privet.Numeric(0, 100)}, "cured", classes=["no", "yes"])
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = privet.PrivateTreeClassifier(1.0, schema).fit(x[::2], cured[::2])
    >>> result = privet.evaluate(model, x[1::2], 1.0, y=cured[1::2])
    >>> bool(result.accuracy.low > 0.9)
    True
    """
    published = _published(model)
    budget = Budget(epsilon, delta=delta)
    check_group(published.schema, by)
    view_of(published.predictor, by=by)  # whether it can be asked at all, before anything is read
    source = _open(X, y, published.schema, ledger, random_state, "a test score")
    with _session(source, budget) as table:
        found = score(table, published.predictor, budget.limit, by=by)
    card = PrivacyCard.of(
        table.ledger,
        table.leaks,
        rows_declared=False,
        seeded=table.seeded,
        covered=table.covered,
        notes=(f"a test score: {found.rule}",),
        unit=published.schema.unit,
    )
    return replace(found, privacy=card)


@dataclass(frozen=True)
class Chosen:
    """The best of several learners, as far as a private choice can tell.

    Attributes
    ----------
    estimator : estimator
        The winner, fitted: its card is that of the whole choice, and its ``evaluation_`` is of
        records that neither taught nor chose it.
    place : int
        Which of the candidates it is.
    privacy : PrivacyCard
        What all of it cost.
    """

    estimator: PrivateEstimator
    place: int
    privacy: PrivacyCard

    @property
    def evaluation(self) -> Evaluation:
        """How well the winner predicts."""
        found: Evaluation = self.estimator.evaluation_
        return found


def cost_of_choice(
    candidates: Sequence[PrivateEstimator], schema: Schema, *, delta: float | None = None
) -> Cost:
    """Return what the fits of all candidates may cost together, in both accountants.

    The epsilon of :func:`choose` must be at least that: in epsilon, or with delta in its rho.
    """
    payer = Budget(1.0, delta=delta)
    total = NOTHING
    for candidate in candidates:
        total = total + candidate._budget(schema, payer).worst
    return total


def choose(
    candidates: Sequence[PrivateEstimator],
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    schema: Schema | None = None,
    by: str | None = None,
    ledger: LedgerStore | str | Path | None = None,
    random_state: Any = None,
) -> Chosen:
    """Learn with several estimators, and choose the best one privately.

    A hash divides the records: three fifths teach all candidates, a fifth compares them by how many
    of its records they get right (or by squared errors), and a fifth, which neither taught nor
    chose, scores the winner.

    Parameters
    ----------
    candidates : sequence of estimators
        Not fitted. What they spend adds up: each learns from the same records.
    X, y
        As for ``fit``.
    epsilon : float
        What the whole choice costs. It must cover the sum of the candidates' epsilons: if it does
        not, the error says what they cost, and nothing is spent. The comparison and the score are
        of other records, and may cost as much each.
    delta : float, optional
        With it the guarantee is (epsilon, delta); candidates may have a delta then.
    schema : Schema, optional
        What is public; by default that of the candidates.
    by : str, optional
        A feature by whose values the score is told for groups of records, too.
    ledger : path or LedgerStore, optional
        The table's ledger file.
    random_state
        As for estimators.

    Returns
    -------
    Chosen

    Privacy
    -------
    What the candidates' fits release; permute-and-flip or the exponential mechanism on correct
    records, which a record raises by at most one; noisy counts for the score. The costs of fits add
    up, and portions are disjoint: the largest counts (docs/proofs/evaluation.md).

    Examples
    --------
    >>> import numpy as np
    >>> import privet
    >>> schema = privet.Schema({"dose": privet.Numeric(0, 100)}, "cured", classes=["no", "yes"])
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> found = privet.choose(
    ...     [privet.PrivateTreeClassifier(0.5), privet.TopDownClassifier(0.5)],
    ...     x, cured, schema=schema, epsilon=1.0,
    ... )
    >>> bool(found.evaluation.accuracy.low > 0.9), float(found.privacy.epsilon)
    (True, 1.0)
    """
    candidates, public = _checked(candidates, schema, X)
    budget = Budget(epsilon, delta=delta)
    check_group(public, by)
    fits = cost_of_choice(candidates, public, delta=delta)
    if not budget.covers(fits):
        pure = budget.accountant == "pure"
        if pure and fits.epsilon == float("inf"):
            raise BudgetError("a candidate has a delta, or no noise: give delta to choose, too")
        needed = as_float(fits.epsilon) if delta is None else zcdp_epsilon(float(fits.rho), delta)
        raise BudgetError(
            f"the {len(candidates)} candidates learn from the same records, so their costs add up "
            f"to epsilon {needed:.6g}, and the choice may cost {budget}: give that much, or the "
            "candidates less. Nothing was spent"
        )
    source = _open(X, y, public, ledger, random_state, f"a choice of {len(candidates)} learners")
    key = Coins.of(random_state).below(2**63)
    with _session(source, budget) as table:
        parts = table.portions(SHARES, key)
        fitted = [clone(candidate).set_params(schema=None) for candidate in candidates]
        for one in fitted:
            one.fit(parts["training"])
        predictors = [one.predictor_ for one in fitted]
        comparison = parts["comparison"]
        root = comparison.root(view_of(*predictors))
        scores = [scores_of(comparison, predictor, root) for predictor in predictors]
        (place,) = root.choose_scores(scores, budget.limit)
        found = score(
            parts["test"], predictors[place], budget.limit, share=float(SHARES["test"]), by=by
        )
    winner = fitted[place]
    leaks = tuple(dict.fromkeys(leak for one in fitted for leak in one.privacy_.warnings))
    card = PrivacyCard.of(
        table.ledger,
        tuple(dict.fromkeys((*table.leaks, *leaks))),
        rows_declared=False,  # not by all of them
        seeded=table.seeded,
        covered=table.covered,
        notes=(
            f"one of {len(candidates)} candidates that learnt from the same records, chosen on "
            "other records, and scored on others again, by a hash of each "
            f"{'record' if public.unit is None else 'person'}; the candidates' costs add up; "
            f"{found.rule}",
        ),
        unit=public.unit,
        discovered=public.discovered,
        counts=winner.privacy_.counts,
    )
    winner.privacy_, winner.evaluation_, winner.schema = card, found, public
    draw = source.draw if isinstance(source, _Rows) else None
    winner.record_ = winner._recorded(table.ledger, card, draw)
    return Chosen(winner, place, card)


def _checked(
    candidates: Any, schema: Schema | None, X: Any
) -> tuple[list[PrivateEstimator], Schema]:
    """Return the candidates and their schema, or raise, before anything is read or spent."""
    found = list(candidates) if isinstance(candidates, Sequence) else []
    if not 1 <= len(found) <= _MOST_CANDIDATES:
        raise BudgetError("give a list of candidates: at least one estimator, not too many")
    if not all(isinstance(one, PrivateEstimator) for one in found):
        raise BudgetError("candidates are estimators of Privet: others would see the rows")
    for one in found:
        if one.ledger is not None or one.random_state is not None or one.test_share is not None:
            raise BudgetError(
                "candidates have no ledger, random_state and test_share of their own: give the "
                "first two to choose, which scores the winner anyway"
            )
    schemas = [one.schema for one in found if one.schema is not None]
    schemas += [schema] if schema is not None else []
    schemas += [X.schema] if isinstance(X, PrivateTable) else []
    if not schemas or not all(isinstance(one, Schema) for one in schemas):
        raise SchemaError("a choice needs a schema: give schema=..., or one to every candidate")
    if any(one != schemas[0] for one in schemas):
        raise SchemaError("the candidates, and the table, must have the same schema")
    for one in found:
        one._check_target(schemas[0])
        one._check_parameters(schemas[0])
        if one._not_covered() is not None:
            raise BudgetError(f"no budget covers {one._not_covered()}")
    return found, schemas[0]


def _published(model: Any) -> Model:
    """Return a model that was given by itself, by its file or by its estimator."""
    if isinstance(model, str | Path):
        return load(model)
    if isinstance(model, PrivateEstimator):
        return model.to_model()
    if not isinstance(model, Model):
        raise DataError("give a model, the path of its file, or a fitted estimator")
    return model


def _open(
    X: Any, y: Any, schema: Schema, ledger: Any, random_state: Any, purpose: str
) -> _Rows | PrivateTable:
    """Return rows of a schema, or a table that somebody else opened."""
    if isinstance(X, FederatedTable) or _is_party(X):
        raise FederationError(
            "parties score what they learn together (test_share), and no other model; let a party "
            "evaluate it on records of its own"
        )
    if isinstance(X, PrivateTable):
        if y is not None or ledger is not None or random_state is not None:
            raise DataError("a table has its own target, ledger and noise: give none of them")
        if replace(schema, table=X.schema.table) != X.schema:
            raise SchemaError("the table has another schema than the model. Nothing was spent")
        return X
    store = open_store(ledger)
    purpose = f"{purpose} on {schema.target!r}"
    if isinstance(X, Source | str | Path) or is_stream(X):
        if y is not None:
            raise DataError("files and streams have their target as a column: give no y")
        source = X if isinstance(X, Source) else Source(X)
        return _LargeRows(source, None, schema, schema.names, random_state, store, purpose)
    columns = Columns.of(X, schema)
    target = columns.target(schema) if y is None else column_of(y, "y")
    return _Rows(columns, target, schema, None, random_state, store, purpose)


@contextmanager
def _session(source: _Rows | PrivateTable, budget: Budget) -> Iterator[PrivateTable]:
    """Open a table with a budget, and settle what was spent when nothing failed."""
    table = source.session(budget, ())
    try:
        yield table
    finally:
        table.ledger.close()
        if isinstance(source, _Rows):
            table.close()
    if isinstance(source, _Rows):
        source.settle(table.ledger)
