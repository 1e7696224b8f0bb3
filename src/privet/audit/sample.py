"""The statistical audit: fit many times on two neighbouring tables and try to tell them apart.

If a mechanism is (epsilon, delta)-private, no event can be much likelier on one table than on its
neighbour: ``P(event | one) <= exp(epsilon) P(event | other) + delta``. So an event that *is* much
likelier shows that epsilon is larger than claimed. Half of the runs serve to search for such an
event, the other half to measure it; what the search chose is fixed before anything is measured, so
the bound holds with the stated confidence whatever was tried. It is a *lower* bound: it can prove
a claim wrong, never right.

The mechanism is anything with ``fit`` and ``predict``, of this library or another. What an audit
sees and stores are thousands of releases about the same rows, and its result is an exact
statement about them: neither is private. Treat both as sensitive as the tables themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privet.audit import _runs, _tables
from privet.audit._runs import Observables, Pair
from privet.audit.bounds import Finding, check_claim, lower_bound
from privet.audit.observables import observe
from privet.errors import AuditError
from privet.reading import Columns
from privet.schema import Schema

__all__ = ["Finding", "Observables", "Pair", "audit", "canary", "lower_bound", "observe"]


def audit(
    estimator: Any,
    one: Pair,
    other: Pair,
    *,
    runs: int = 1000,
    delta: float | None = None,
    confidence: float = 0.95,
    probes: Any = None,
    observe: Callable[[Any, Any], Observables] = observe,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Finding:
    """Fit an estimator many times on two neighbouring tables and bound its epsilon from below.

    Parameters
    ----------
    estimator : estimator
        It is cloned for every fit. It needs noise of its own: a fixed ``random_state`` is refused,
        and so is a ``ledger``, since the fits of an audit draw on no budget.
    one, other : (X, y)
        The tables: frames or arrays. ``y`` may be None if the target is a column of ``X``.
    runs : int, default=1000
        The number of fits on each table. Decide it beforehand: a bound that is looked at after
        every batch, until it pleases, has less confidence than it says.
    delta : float, optional
        The delta of the claim. If None, the estimator's own ``delta``, or 0.
    confidence : float, default=0.95
        Of the bound.
    probes : table, optional
        The rows that observers look at. If None: up to 4 rows in which each table differs from the
        other (once equal rows at the beginning and the end are set aside), and 3 others.
    observe : callable, optional
        From a fitted model and the probes to named numbers or an array; :func:`observe` if not
        given. It may use all that is published, and must use nothing else.
    n_jobs : int, optional
        How many processes fit, as in scikit-learn.
    store : path, optional
        A file to which observations are added as they come. An audit that was interrupted goes on
        from there; one with more ``runs`` adds to it. For one audit at a time.
    progress : callable, optional
        Called with the number of finished runs and the number of all.

    Returns
    -------
    Finding
        About these two tables. Another pair may tell more.

    Raises
    ------
    AuditError
        If the audit would say nothing, or the store belongs to another one.

    Privacy
    -------
    None: the finding and the store are exact statements about the tables. A fit that fails is an
    observation like any other.
    """
    delta, _ = check_claim(_runs.own_delta(estimator) if delta is None else delta, confidence)
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 4:
        raise AuditError("runs must be a whole number, at least 4")
    _runs.check_noise(estimator)
    keys = [_tables.row_keys(*one), _tables.row_keys(*other)]
    if probes is None:
        probes = _tables.choose_probes(one[0], other[0], keys)
    task = _runs.Runs(estimator, (one, other), probes, observe)
    kept = _runs.Store(store, lambda: task.fingerprint(keys))
    blocks, done = list(kept.blocks), sum(len(block["one"]) for block in kept.blocks)
    if progress is not None and done:
        progress(min(done, runs), runs)
    fits = task.fit(runs - done, n_jobs)
    try:
        for block in fits:
            if not blocks and set(block["names"]) == {_runs.FAILED}:
                raise AuditError("the estimator cannot be fitted: try one fit by hand and see why")
            kept.append(block)
            blocks.append(block)
            done += len(block["one"])
            if progress is not None:
                progress(done, runs)
    finally:
        with warnings.catch_warnings():  # whoever interrupts knows that fits are cancelled
            warnings.simplefilter("ignore")
            fits.close()
    names, ours, theirs = _runs.matrices(blocks, runs)
    return lower_bound(ours, theirs, delta=delta, confidence=confidence, names=names)


def canary(
    estimator: Any,
    X: Any,
    y: Any = None,
    record: Mapping[str, Any] | Sequence[Any] | None = None,
    label: Any = None,
    *,
    removed: int | None = None,
    **options: Any,
) -> Finding:
    """Audit on a table of your own: with and without one record.

    The result is an exact statement about *these* rows and no private release. Treat it, and the
    store, as sensitive as the table.

    Parameters
    ----------
    estimator : estimator
        As for :func:`audit`.
    X, y : table and target
        A frame or an array; ``y`` may be None if the target is a column of ``X``.
    record : mapping or sequence, optional
        The record to add: values by column, or in the columns' order. If None, one that stands out
        by public facts alone: every number at its upper bound in the estimator's ``schema``, every
        category the last one. Columns that the schema does not list are then left out.
    label : optional
        The record's target. If None, the schema's last class or upper bound.
    removed : int, optional
        Take this row of the table away instead of adding one.
    **options
        As for :func:`audit`.

    Returns
    -------
    Finding
        ``one`` is the table as it is, ``other`` the one with a record more (or less).
    """
    rows = len(Columns.of(X))
    target = None if y is None else np.asarray(y)
    if removed is not None:
        if record is not None or label is not None:
            raise AuditError("either add a record or remove one")
        if not 0 <= removed < rows:
            raise AuditError("removed must be the position of a row of the table")
        rest = np.delete(np.arange(rows), removed)
        less = None if target is None else target[rest]
        return audit(estimator, (X, target), (_tables.take(X, rest), less), **options)
    schema = getattr(estimator, "schema", None)
    if isinstance(schema, Schema):
        X, record, label = _tables.stand_out(schema, X, record, label, inside=y is None)
    elif record is None or (y is not None and label is None):
        raise AuditError("without a schema there is no record to make up: pass record and label")
    more = None if target is None else np.concatenate([target, _tables.like([label], target)])
    return audit(estimator, (X, target), (_tables.add(X, record), more), **options)
