"""A membership attack on somebody's own rows: who was learnt from, guessed from the models.

The attacker of Carlini et al. (2022, "Membership inference attacks from first principles"): many
models are fitted, each on a random half of the persons (or records); for each person the scores of
models with and without them are two normal laws, and a model's score is judged by their ratio.
Every model is attacked with laws that were estimated from the *other* models, and true and false
positives are counted on persons whose membership in that model is known. So the result is honest,
and a real attacker, who does not have the rows, does worse.

It is evidence, not proof: a weak attack shows nothing, and one above the bound that the budget
allows (docs/proofs/odds.md) shows a bug. What it says is exact about the rows, no budget pays for
the fits, and nothing of it may be published: it is for the owner's eyes only.
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.base import clone

from privet.errors import AuditError, PrivacyLeakWarning
from privet.estimators._base import PrivateEstimator
from privet.model import PrivacyCard
from privet.privacy import Guarantee

#: False-positive rates at which true positives are told.
RATES = (0.01, 0.1)
#: Fewer models, or persons, are refused: there would be nothing to compare.
LEAST_MODELS, LEAST_MEMBERS = 4, 20
#: An attack exceeds a bound if chance alone would show it that seldom.
FALSE_ALARM = 1e-6
#: Probabilities are cut to this distance from 0 and 1 before odds are taken.
_LEAST = 1e-3


@dataclass(frozen=True)
class Measured:
    """A mean over models, with its 95 % interval and what it surely exceeds."""

    value: float
    low: float
    high: float
    surely: float

    @classmethod
    def of(cls, each: NDArray[np.float64]) -> Measured:
        """Measure what was found in each model."""
        mean, runs = float(each.mean()), len(each)
        error = float(each.std(ddof=1)) / math.sqrt(runs)
        wide = float(stdtrit(runs - 1, 0.975)) * error
        far = float(stdtrit(runs - 1, 1 - FALSE_ALARM)) * error
        return cls(mean, mean - wide, mean + wide, mean - far)


@dataclass(frozen=True)
class Membership:
    """What a membership attack found. For the owner's eyes only.

    Attributes
    ----------
    true_positives : tuple of Measured
        Members found at the false-positive rates of :data:`RATES`.
    advantage : Measured
        True less false positives, at a threshold that other models chose.
    area : Measured
        Under the ROC curve; 0.5 is guessing.
    models, members : int
        How many models were attacked, and how many persons or records there were.
    card : PrivacyCard
        Of one of the fits.
    """

    true_positives: tuple[Measured, ...]
    advantage: Measured
    area: Measured
    models: int
    members: int
    card: PrivacyCard

    def exceeds(self, given: Guarantee) -> bool:
        """Tell whether the attack does better than a guarantee allows, beyond chance."""
        if not given.holds:
            return False
        return self.advantage.surely > given.advantage or any(
            one.surely > given.true_positives(rate)
            for rate, one in zip(RATES, self.true_positives, strict=True)
        )


def attack(
    estimator: PrivateEstimator,
    rows: Any,
    *,
    models: int = 32,
    progress: Callable[[int, int], None] | None = None,
) -> Membership:
    """Fit an estimator many times on random halves of some rows, and guess who was in which half.

    Parameters
    ----------
    estimator : estimator
        With a schema, and with neither a ledger nor a ``random_state``.
    rows : dataframe
        The owner's rows, with the target; and the unit, if the schema has one: then whole persons
        are in or out, and are guessed.
    models : int, default=32
        How many fits. Half of a person's are with them.
    progress : callable, optional
        Called with the number of finished fits and the number of all.

    Returns
    -------
    Membership

    Privacy
    -------
    None: the result is an exact statement about the rows. The fits draw on no budget, since nothing
    of them leaves but this.
    """
    schema = estimator.schema
    if schema is None or estimator.ledger is not None or estimator.random_state is not None:
        raise AuditError("attack an estimator with a schema, without a ledger and a random_state")
    if models < LEAST_MODELS:
        raise AuditError(f"an attack needs at least {LEAST_MODELS} models")
    frame = nw.from_native(rows, eager_only=True)
    lacking = [name for name in schema.columns if name not in frame.columns]
    if lacking:
        raise AuditError(f"the rows lack {len(lacking)} columns of the schema, or their names")
    units = _units(frame, schema.unit)
    count = int(units.max(initial=-1)) + 1
    if count < LEAST_MEMBERS:
        raise AuditError(f"an attack needs at least {LEAST_MEMBERS} records, or persons")
    draw = np.random.default_rng(secrets.randbits(128))
    inside = draw.random((models, count)) < 0.5
    scores = np.zeros((models, count))
    for run in range(models):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            fitted = clone(estimator).fit(frame.filter(inside[run][units].tolist()).to_native())
        scores[run] = _by_unit(_confidence(fitted, frame), units, count)
        if progress is not None:
            progress(run + 1, models)
    return _measured(scores, inside, fitted.privacy_)


def _units(frame: Any, unit: str | None) -> NDArray[np.intp]:
    """Return whose record each record is, as numbers from 0; without a unit, its own."""
    if unit is None:
        return np.arange(len(frame))
    names = [f"{k}" if value is None else f"={value}" for k, value in enumerate(frame[unit])]
    return np.unique(names, return_inverse=True)[1].astype(np.intp)


def _confidence(fitted: PrivateEstimator, frame: Any) -> NDArray[np.float64]:
    """Return how sure a model is of what each record really has: log odds, or minus the error."""
    schema = fitted.schema_
    model = fitted.to_model()
    values = model.predictor.predict_value(frame.to_native())
    target = frame[schema.target].to_list()
    if schema.classes is None:
        assert schema.bounds is not None
        low, high = schema.bounds
        numbers = np.array([np.nan if v is None else float(v) for v in target])
        return np.asarray(-np.abs(np.clip(numbers, low, high) - values[:, 0]) / (high - low))
    places = {str(value): place for place, value in enumerate(schema.classes)}
    which = np.array([places.get(str(value), -1) for value in target])
    shares = np.clip(values[np.arange(len(which)), which], _LEAST, 1 - _LEAST)
    return np.where(which < 0, np.nan, np.log(shares) - np.log1p(-shares))


def _by_unit(each: NDArray[np.float64], units: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return the mean over the records of each person; 0 where there is nothing to judge by."""
    known = ~np.isnan(each)
    sums = np.bincount(units[known], each[known], minlength=count)
    sizes = np.bincount(units[known], minlength=count)
    return np.asarray(sums / np.maximum(sizes, 1))


def _ratios(
    scores: NDArray[np.float64], inside: NDArray[np.bool_], run: int
) -> NDArray[np.float64]:
    """Return by how much each score speaks for membership, by laws from the other models."""
    others = np.arange(len(scores)) != run
    laws = []
    for members in (True, False):
        with_them = (inside[others] == members).astype(np.float64)
        sizes = with_them.sum(axis=0)
        sums = (scores[others] * with_them).sum(axis=0)
        whole = sums.sum() / max(sizes.sum(), 1.0)
        means = np.where(sizes > 0, sums / np.maximum(sizes, 1.0), whole)
        # One width for all: with few models, a width of each person's own would be mostly chance.
        spread = ((scores[others] - means) ** 2 * with_them).sum() / max(sizes.sum(), 1.0)
        laws.append((means, math.sqrt(spread) + 1e-6))
    (in_mean, in_width), (out_mean, out_width) = laws
    here = scores[run]
    return np.asarray(
        ((here - out_mean) / out_width) ** 2 / 2
        - ((here - in_mean) / in_width) ** 2 / 2
        + math.log(out_width / in_width)
    )


def _measured(
    scores: NDArray[np.float64], inside: NDArray[np.bool_], card: PrivacyCard
) -> Membership:
    runs = len(scores)
    judged = np.stack([_ratios(scores, inside, run) for run in range(runs)])
    curves = [_curve(judged[run], inside[run]) for run in range(runs)]
    found = tuple(
        Measured.of(np.array([np.interp(rate, others, members) for others, members in curves]))
        for rate in RATES
    )
    area = np.array([np.trapezoid(members, others) for others, members in curves])
    ahead = np.array([_advantage(judged, inside, run) for run in range(runs)])
    return Membership(found, Measured.of(ahead), Measured.of(area), runs, scores.shape[1], card)


def _curve(
    judged: NDArray[np.float64], inside: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positives as the threshold falls; between two, a coin decides."""
    order = np.argsort(-judged, kind="stable")
    last = np.append(np.diff(judged[order]) != 0, True)  # equal scores are called together
    members = np.cumsum(inside[order])[last] / max(int(inside.sum()), 1)
    others = np.cumsum(~inside[order])[last] / max(int((~inside).sum()), 1)
    return np.concatenate([[0.0], others]), np.concatenate([[0.0], members])


def _advantage(judged: NDArray[np.float64], inside: NDArray[np.bool_], run: int) -> float:
    """Return true less false positives in one model, at the threshold that suits the others."""
    rest = np.arange(len(judged)) != run
    values, member = judged[rest].ravel(), inside[rest].ravel()
    others, members = _curve(values, member)
    steps = np.unique(values)[::-1]
    best = int(np.argmax(members - others))
    called = judged[run] >= (steps[best - 1] if best else np.inf)
    here = inside[run]
    return float(called[here].mean() - called[~here].mean())
