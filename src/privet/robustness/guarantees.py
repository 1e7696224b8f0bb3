"""What a promise of privacy guarantees after some rows were poisoned, by all bounds at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privet.privacy import REPLACE_ONE_FACTOR, as_written
from privet.robustness.bounds import Share, every_bound
from privet.robustness.estimates import Estimate, check_confidence, check_scores, rate_at_most
from privet.robustness.promises import NoGuarantee, Promise, promise_of


@dataclass(frozen=True)
class Guarantee:
    """What holds after poisoning, by every bound that applies.

    Attributes
    ----------
    measure : str
        ``"accuracy"``, ``"attack success"`` or ``"failure"``. The first is bounded from below, the
        others from above.
    clean : float
        The expectation (or probability) on the clean table that the bounds start from.
    changes : int
        Rows added plus rows removed.
    promise : Promise
        What one of them costs.
    bounds : dict
        Bounds by name: ``paper``, ``pure``, ``zcdp``, ``approximate``, ``orders``, ``steps``.
    confidence : float or None
        How sure the start is, if it was estimated from fits; None if it was given.
    """

    measure: str
    clean: float
    changes: int
    promise: Promise
    bounds: Mapping[str, float]
    confidence: float | None = None

    @property
    def best(self) -> float:
        """The best of all bounds: all of them hold at once."""
        return self.bounds[self.by]

    @property
    def by(self) -> str:
        """The name of the best bound."""
        choose = max if self.measure == "accuracy" else min
        return choose(self.bounds, key=self.bounds.__getitem__)

    def __str__(self) -> str:
        relation = "at least" if self.measure == "accuracy" else "at most"
        what = {
            "accuracy": "the expected accuracy",
            "attack success": "the expected success of the attack",
            "failure": "the probability that a fit fails",
        }[self.measure]
        sure = "" if self.confidence is None else f" (confidence {self.confidence:g})"
        return (
            f"with {self.changes} rows added or removed before the fit, {what} is {relation} "
            f"{self.best:.4f}, against {self.clean:.4f} on the clean table{sure}"
        )


def accuracy_after(
    model: Any, clean: float | Estimate, poisoned: int, *, changed: bool = False
) -> Guarantee:
    """Bound the expected accuracy (or another score in [0, 1]) from below.

    Parameters
    ----------
    model : fitted estimator, Model, PrivacyCard or Promise
        What made the models; see :func:`~privet.robustness.promise_of`.
    clean : float or Estimate
        The expected score over fits on the clean table. Of an estimate, the lower limit is used.
        Exactly 1 is refused: a few perfect fits do not show that no fit ever errs.
    poisoned : int
        How many rows were added, removed or changed, by somebody who does not know the noise.
    changed : bool, default=False
        Whether rows may have been changed, which counts twice.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> from privet.robustness import promise_of
    >>> found = accuracy_after(promise_of(epsilon=0.1), 0.98, 3)
    >>> {name: round(bound, 3) for name, bound in found.bounds.items()}
    {'paper': 0.726, 'pure': 0.973, 'zcdp': 0.956, 'orders': 0.956, 'steps': 0.973}
    """
    start, confidence = (
        (clean.low, clean.confidence) if isinstance(clean, Estimate) else (clean, None)
    )
    share = _start(start, "accuracy", perfect=1)
    if not share.has:
        raise NoGuarantee(
            "no guarantee can be given: the accuracy must be above 0 and below 1, and nothing "
            "can be left of an accuracy of 0"
        )
    promise, changes = promise_of(model), count_changes(poisoned, changed=changed)
    found = every_bound(promise, share, changes)
    bounds = {name: bound.has for name, bound in found.items()}
    return Guarantee("accuracy", share.has, changes, promise, bounds, confidence)


def attack_success_after(
    model: Any, clean: float | Estimate, poisoned: int, *, changed: bool = False
) -> Guarantee:
    """Bound the expected success rate of an attack from above.

    The arguments are those of :func:`accuracy_after`; ``clean`` is the success rate on models of
    the clean table, and of an estimate the upper limit is used. Exactly 0 is refused.

    Examples
    --------
    >>> from privet.robustness import promise_of
    >>> found = attack_success_after(promise_of(epsilon=0.1), 0.01, 3)
    >>> round(found.bounds["paper"], 4), round(found.best, 4)
    (0.2666, 0.0135)
    """
    start, confidence = (
        (clean.high, clean.confidence) if isinstance(clean, Estimate) else (clean, None)
    )
    share = _start(start, "attack success", perfect=0)
    return _from_above("attack success", model, share, poisoned, confidence, changed=changed)


def per_run(
    model: Any,
    runs: Any,
    poisoned: int,
    *,
    least: float,
    confidence: float = 0.95,
    changed: bool = False,
) -> Guarantee:
    """Bound the probability that a single fit on the poisoned table falls short.

    Parameters
    ----------
    model, poisoned, changed
        As for :func:`accuracy_after`.
    runs : array of float
        The scores of independent fits on the clean table.
    least : float
        A fit fails if its score is below this. Choose it before looking at the runs.
    confidence : float, default=0.95
        Of the clean failure rate, by Clopper and Pearson.

    Returns
    -------
    Guarantee
        Of measure ``"failure"``.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.robustness import promise_of
    >>> runs = np.full(1000, 0.9)
    >>> found = per_run(promise_of(epsilon=0.1), runs, 10, least=0.8, confidence=0.999)
    >>> round(found.clean, 4), round(found.bounds["pure"], 3)
    (0.0069, 0.019)
    """
    scores = check_scores(runs)
    rate = rate_at_most(int((scores < least).sum()), len(scores), confidence)
    share = Share(rate, 1 - rate)
    sure = check_confidence(confidence)
    return _from_above("failure", model, share, poisoned, sure, changed=changed)


def poisoned_rows(share: float | str | Decimal | Fraction, rows: int) -> int:
    """Return how many rows a share of a table is, rounded *up* (the paper rounds down).

    Examples
    --------
    >>> poisoned_rows("0.1%", 546), poisoned_rows(0.005, 1000)
    (1, 5)
    """
    rows = _whole(rows, "the number of rows")
    if not rows:
        raise NoGuarantee("no guarantee can be given for a table without rows")
    try:
        if isinstance(share, str):
            text = share.strip()
            part = Fraction(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        else:
            # As it is written: the double next to 0.1 is a little larger, which would add a row.
            part = Fraction(as_written(share) if isinstance(share, float) else share)
    except (TypeError, ValueError, ArithmeticError):
        raise NoGuarantee("a share of poisoned rows must be a number such as 0.01 or 1%") from None
    if not 0 <= part <= 1:
        raise NoGuarantee(
            "no guarantee can be given: the poisoned rows must be a share of the rows, from 0 to 1 "
            "(100%); there cannot be more of them than rows"
        )
    return math.ceil(part * rows)


def count_changes(poisoned: int, *, changed: bool) -> int:
    """Return by how many added and removed rows two tables differ."""
    return _whole(poisoned, "the number of poisoned rows") * (REPLACE_ONE_FACTOR if changed else 1)


def _from_above(
    measure: str,
    model: Any,
    share: Share,
    poisoned: int,
    confidence: float | None,
    *,
    changed: bool,
) -> Guarantee:
    promise, changes = promise_of(model), count_changes(poisoned, changed=changed)
    found = every_bound(promise, share.turned, changes)
    bounds = {name: bound.lacks for name, bound in found.items()}
    return Guarantee(measure, share.has, changes, promise, bounds, confidence)


def _start(value: Any, what: str, *, perfect: int) -> Share:
    """Return what the bounds start from; nothing can be lost of what is perfect."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise NoGuarantee(f"the {what} must be a number from 0 to 1") from None
    if not 0 <= number <= 1:
        raise NoGuarantee(
            f"no guarantee can be given: the {what} must be a number from 0 to 1, its expectation "
            "over fits on the clean table"
        )
    if number == perfect:
        raise NoGuarantee(
            f"no guarantee can be given: an expectation of exactly {perfect} cannot be measured, "
            "and every bound would keep it at any poison; give an estimate with its confidence "
            "interval (expected(...), --runs-file) or a "
            f"{'smaller' if perfect else 'larger'} number"
        )
    return Share(number, 1 - number)


def _whole(value: Any, what: str) -> int:
    try:
        number = int(value)
        right = number == value and number >= 0 and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise NoGuarantee(f"{what} must be a whole number that is not negative")
    return number
