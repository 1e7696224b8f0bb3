"""What every fit of a learner stays within, which is what a guarantee can be built on.

A card says what *one* fit spent. A fit may spend less than it was allowed because noisy answers
made it stop or plan otherwise, and another fit of the same learner then spends more. Poisoning
changes which of them happen, so the bounds need what no fit exceeds: the requested budget, and a
rho that holds for every plan (docs/proofs/poisoning.md, "What every fit stays within").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privet.errors import BudgetError, PrivetError
from privet.model import ADDED, EITHER, Model, PrivacyCard
from privet.privacy import (
    EXPONENTIAL_KINDS,
    Budget,
    Entry,
    MechanismKind,
    Place,
    Question,
    QuestionKind,
    as_float,
    at_least,
    exact,
)

#: Learners that first count the records, with a share of epsilon that is public; no question that
#: follows has more than twice that share.
_EQUAL_SHARES = ("sulq", "diffpid3", "diffpc45")
#: Learners all of whose fits ask the same questions at the same price, if the rows were declared.
_ONE_PLAN = ("tree", "privatree")
#: Cards hold doubles: whatever was lost by rounding is added again.
_UP = 1 + 1e-12


class NoGuarantee(PrivetError, ValueError):
    """Nothing can be promised about poisoned rows, or not from what was given."""


@dataclass(frozen=True)
class Promise:
    """What adding or removing one row costs in every fit; infinity where nothing is known.

    Attributes
    ----------
    epsilon : float
        With delta 0: pure differential privacy.
    delta : float
        With epsilon: approximate differential privacy.
    rho : float
        Zero-concentrated differential privacy.
    """

    epsilon: float = math.inf
    delta: float = 0.0
    rho: float = math.inf

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and self.rho > 0 and 0 <= self.delta < 1):
            raise NoGuarantee("epsilon and rho must be positive, delta at least 0 and below 1")
        if math.isinf(self.epsilon) and math.isinf(self.rho):
            raise NoGuarantee(
                "no guarantee can be given: neither epsilon nor rho is finite, so that one row may "
                "change everything"
            )

    @property
    def is_pure(self) -> bool:
        """Whether epsilon holds without a delta."""
        return self.delta == 0 and math.isfinite(self.epsilon)

    def __str__(self) -> str:
        parts = []
        if math.isfinite(self.epsilon):
            parts.append(f"epsilon {self.epsilon:.6g}")
            parts += [f"delta {self.delta:.3g}"] if self.delta else []
        if math.isfinite(self.rho):
            parts.append(f"rho {self.rho:.6g}")
        return ", ".join(parts)


def promise_of(
    source: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    same_plan: bool = False,
) -> Promise:
    """Return what every fit stays within, from a model or from numbers.

    Parameters
    ----------
    source : fitted estimator, Model, PrivacyCard or Promise, optional
        Instead of numbers. A card whose ``private`` is false is refused.
    epsilon, delta, rho : float, optional
        Instead of a model: epsilon, or epsilon and delta, or rho, or epsilon and rho. An epsilon
        alone is also ``epsilon**2 / 2``-zCDP.
    same_plan : bool, default=False
        Whether every fit asks the same questions at the same price, so that the rho of this
        fit's ledger holds for all. Learners that count their rows, or stop by noisy counts, do not.

    Returns
    -------
    Promise

    Examples
    --------
    >>> print(promise_of(epsilon=0.1))
    epsilon 0.1, rho 0.005
    >>> print(promise_of(epsilon=0.1, rho=0.00025))
    epsilon 0.1, rho 0.00025
    """
    if source is None:
        return _of_numbers(epsilon, delta, rho)
    if not (epsilon is delta is rho is None):
        raise NoGuarantee("give a model, or numbers, not both")
    if isinstance(source, Promise):
        return source
    learner = getattr(source, "learner", None)
    card = source.privacy if isinstance(source, Model) else getattr(source, "privacy_", source)
    if not isinstance(card, PrivacyCard):
        raise NoGuarantee(
            "no guarantee can be given: there is no privacy card; fit a Privet estimator, load its "
            "model file, or give epsilon, delta or rho"
        )
    if not card.private:
        reasons = "; ".join(card.warnings) or "its card says so"
        raise NoGuarantee(
            f"no guarantee can be given, because the model is not private: {reasons}. Guarantees "
            "against poisoning follow from privacy alone"
        )
    return _of_card(card, learner, same_plan=same_plan)


def _of_numbers(epsilon: float | None, delta: float | None, rho: float | None) -> Promise:
    try:
        known = {
            name: as_float(exact(value, name))
            for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho))
            if value is not None and not (name == "delta" and value == 0)
        }
    except BudgetError as error:
        raise NoGuarantee(f"no guarantee can be given: {error}") from None
    if "delta" in known and "epsilon" not in known:
        raise NoGuarantee("a delta goes with an epsilon")
    if not known:
        raise NoGuarantee("give a model, or epsilon, or epsilon and delta, or rho")
    if "epsilon" in known and "delta" not in known:
        known["rho"] = min(known.get("rho", math.inf), known["epsilon"] * known["epsilon"] / 2)
    return Promise(**known)


def _of_card(card: PrivacyCard, learner: str | None, *, same_plan: bool) -> Promise:
    epsilon = max(card.requested_epsilon, card.epsilon)
    spent = card.rho if card.rho else math.inf
    if card.accountant == "pure":
        if math.isinf(epsilon):
            raise NoGuarantee("no guarantee can be given: the model's epsilon is infinite")
        rho = spent if same_plan else _rho_of_every_plan(card, learner, epsilon, spent)
        return Promise(epsilon, 0.0, min(rho * _UP, epsilon * epsilon / 2))
    if math.isfinite(epsilon) and card.accountant in (EITHER, ADDED):
        return Promise(epsilon, card.delta)  # other answers spend other amounts of rho
    if math.isfinite(epsilon) and card.delta:
        limit = float(Budget(epsilon, delta=at_least(card.delta)).limit)
        return Promise(epsilon, card.delta, limit * _UP)
    if not same_plan:
        raise NoGuarantee(
            "no guarantee can be given: the card says which rho this fit spent, not what every fit "
            "stays within; give the rho of the budget instead"
        )
    return Promise(rho=spent * _UP)


def _rho_of_every_plan(
    card: PrivacyCard, learner: str | None, epsilon: float, spent: float
) -> float:
    """Return a rho that no fit with this budget and these parameters exceeds.

    By data alone; whatever is not known leaves what every epsilon implies.
    """
    at_most = epsilon * epsilon / 2
    # Of parties, how many propose which split, and who leaves, decides what is asked.
    if learner in _ONE_PLAN and card.rows_declared and card.protocol is None:
        return spent
    if learner == "tree":
        return _rho_of_drawn_trees(card, epsilon) or at_most
    if learner in _EQUAL_SHARES:
        first = [e.epsilon for e in card.entries[:1] if _is_count_of_all(e)]
        # Shares add up to at most epsilon on every path, and none is above twice the first.
        return epsilon * first[0] if first else at_most
    return at_most


def _rho_of_drawn_trees(card: PrivacyCard, epsilon: float) -> float | None:
    """Return the rho of all plans that begin with a count of rows; None if it is not known.

    A count of all rows has a fixed share; class counts of the leaves have another one, or, where
    the plan decides, may be left out. The rest goes to exponential mechanisms, however the plan
    divides it, and squares add up to less than the square of the sum.
    """
    noise: dict[Question, float] = {}
    for entry in card.entries:
        if entry.mechanism.kind in EXPONENTIAL_KINDS:
            continue
        if entry.mechanism.kind is not MechanismKind.DISCRETE_LAPLACE or not (
            _is_count_of_all(entry) or entry.question.kind is QuestionKind.CLASS_COUNTS
        ):
            return None
        if noise.setdefault(entry.question, entry.epsilon) != entry.epsilon:
            return None
    count = noise.pop(Question(QuestionKind.ROW_COUNT), None)
    if count is None:
        return None
    left, leaves = max(epsilon - count, 0.0), sum(noise.values())
    drawn = max(left - leaves, 0.0)
    plans = (left * left / 8, leaves * leaves / 2 + drawn * drawn / 8)  # without them, with them
    return count * count / 2 + max(plans)


def _is_count_of_all(entry: Entry) -> bool:
    return (entry.question.kind, entry.place) == (QuestionKind.ROW_COUNT, Place())
