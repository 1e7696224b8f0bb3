"""What is published of a test: released numbers, and what follows from them.

An evaluation holds noisy counts and sums, and what their noise is like. Everything else, from
accuracy to calibration, is worked out from these when it is asked for, so that a file cannot say
one thing and mean another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelFileError
from privet.evaluation import intervals
from privet.evaluation.intervals import Estimate, Noise

#: Probabilities are cut to this distance from 0 and 1 where a loss is worked out.
LEAST_PROBABILITY = 1e-3
#: Calibration is shown for this many groups of bins.
_CALIBRATION = 8
#: Larger evaluations are refused in files.
_MOST = 1_000_000


@dataclass(frozen=True)
class Counted:
    """Released numbers and the noise of each of them.

    Attributes
    ----------
    values : array
        In records.
    variance : float
        Of the noise.
    laplace : bool
        Whether the noise has Laplace's tails; else Gauss's.
    """

    values: NDArray[np.float64]
    variance: float
    laplace: bool

    @property
    def noise(self) -> Noise:
        """The noise, as intervals need it."""
        return Noise(self.variance, self.laplace)


@dataclass(frozen=True)
class Calibration:
    """How often the second of two classes came true where the model gave it some probability.

    Attributes
    ----------
    predicted : float
        The model's probability there, on average by public weights.
    observed : Estimate
    """

    predicted: float
    observed: Estimate


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How well a model predicts records that it was not learnt from, privately.

    Attributes
    ----------
    share : float or None
        The part of the fit's table that was set aside; None if the records are another table's.
    rule : str
        How the amount was shared among the questions.
    class_names : tuple of str
        The names of the classes; empty for a number.
    span : float
        The range of the target, a number; 1 for classes.
    groups : tuple of str
        The names of the groups of the column ``by``; one if there is no such column.
    by : str or None
        The column by which records were grouped.
    confusion : Counted or None
        Records by group, class and predicted class.
    scores : Counted or None
        Records by class and bin of the score, two classes only.
    probabilities : tuple of float
        The probability of the second class that stands for each bin.
    sums : Counted or None
        Sums of a^4, a^2 - a^4, a - a^2 and 1 - a by group, for errors a as parts of the range.
    privacy : PrivacyCard or None
        What it cost; None if the model's own card says it.
    """

    share: float | None
    rule: str
    class_names: tuple[str, ...]
    span: float
    groups: tuple[str, ...] = ("all",)
    by: str | None = None
    confusion: Counted | None = None
    scores: Counted | None = None
    probabilities: tuple[float, ...] = ()
    sums: Counted | None = None
    privacy: Any = field(default=None, compare=False)

    @cached_property
    def n_records(self) -> float:
        """A noisy number of the records."""
        counted = self.confusion or self.sums
        assert counted is not None
        return max(0.0, float(counted.values.sum()))

    # Classes

    def _matrix(self) -> tuple[NDArray[np.float64], Noise]:
        if self.confusion is None:
            raise ValueError("the target is a number: it has errors, and no accuracy")
        return self.confusion.values, self.confusion.noise

    @cached_property
    def accuracy(self) -> Estimate:
        """The share of records whose class is predicted."""
        return intervals.accuracy(*self._matrix())

    @cached_property
    def balanced_accuracy(self) -> Estimate:
        """The mean of the classes' recalls."""
        return intervals.balanced(*self._matrix())

    @cached_property
    def recall(self) -> dict[str, Estimate]:
        """For every class the share of its records that are predicted to be of it."""
        return dict(zip(self.class_names, intervals.recalls(*self._matrix()), strict=True))

    # Two classes

    def _bins(self) -> tuple[NDArray[np.float64], Noise] | None:
        return None if self.scores is None else (self.scores.values, self.scores.noise)

    @cached_property
    def auc(self) -> Estimate | None:
        """The area under the ROC curve, of two classes."""
        found = self._bins()
        if found is None:
            return None
        return intervals.auc(*found, self._matrix()[0].sum(axis=(0, 2)))

    @cached_property
    def log_loss(self) -> Estimate | None:
        """The mean log loss of two classes, of probabilities rounded to their bins."""
        found = self._bins()
        if found is None:
            return None
        shares = np.clip(self.probabilities, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return intervals.mean_loss(found[0], -np.log(np.stack([1 - shares, shares])), found[1])

    @cached_property
    def calibration(self) -> tuple[Calibration, ...]:
        """How often the second class came true, by its predicted probability."""
        found = self._bins()
        if found is None:
            return ()
        counts, noise = found
        result = []
        for part in np.array_split(np.arange(counts.shape[1]), min(_CALIBRATION, counts.shape[1])):
            here = counts[:, part]
            weights = np.maximum(here.sum(axis=0), 0.0) + 1e-9
            predicted = float(np.average(np.array(self.probabilities)[part], weights=weights))
            result.append(Calibration(predicted, intervals.share(here[1], here[0], noise)))
        return tuple(result)

    # Numbers

    @cached_property
    def _errors(self) -> tuple[Estimate, Estimate]:
        if self.sums is None:
            raise ValueError("the target has classes: it has accuracy, and no errors")
        return intervals.errors(self.sums.values, self.sums.noise)

    @property
    def mean_absolute_error(self) -> Estimate:
        """The mean distance of predictions, in the target's units."""
        return self._errors[0].times(self.span)

    @property
    def mean_squared_error(self) -> Estimate:
        """The mean squared distance of predictions, in squares of the target's units."""
        return self._errors[1].times(self.span**2)

    @property
    def root_mean_squared_error(self) -> Estimate:
        """The root of the mean squared error, in the target's units."""
        return self.mean_squared_error.root()

    # Groups

    def __repr__(self) -> str:
        name, one = next(self.measures())
        score = f"{name} {one.value:.3g}" if one.enough else "too few records"
        return f"<Evaluation: {score}, about {self.n_records:.0f} records>"

    def _repr_html_(self) -> str:
        from privet.pictures.html import evaluation_html

        return evaluation_html(self)

    def of_groups(self) -> dict[str, Evaluation]:
        """Return the same for every group alone; scores are not counted by group."""
        found = {}
        for number, name in enumerate(self.groups):
            found[name] = replace(
                self,
                groups=(name,),
                by=None,
                confusion=_only(self.confusion, number),
                sums=_only(self.sums, number),
                scores=None,
                probabilities=(),
            )
        return found

    def measures(self) -> Iterator[tuple[str, Estimate]]:
        """Yield the names of all single measures, with their estimates."""
        if self.confusion is None:
            yield "mean absolute error", self.mean_absolute_error
            yield "root mean squared error", self.root_mean_squared_error
            return
        yield "accuracy", self.accuracy
        yield "balanced accuracy", self.balanced_accuracy
        for name, one in self.recall.items():
            yield f"recall of {name}", one
        if self.auc is not None and self.log_loss is not None:
            yield "AUC", self.auc
            yield "log loss", self.log_loss

    # Files

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        return {
            "share": self.share,
            "rule": self.rule,
            "by": self.by,
            "groups": list(self.groups),
            "probabilities": list(self.probabilities),
            **{
                name: None if held is None else _plain(held)
                for name, held in (
                    ("confusion", self.confusion),
                    ("scores", self.scores),
                    ("sums", self.sums),
                )
            },
        }

    @classmethod
    def from_dict(cls, plain: Any, classes: Sequence[Any] | None, span: float) -> Evaluation:
        """Read an evaluation of a model with these classes, or this range; check everything."""
        names = {"share", "rule", "by", "groups", "probabilities", "confusion", "scores", "sums"}
        if not isinstance(plain, dict) or set(plain) != names:
            raise ModelFileError("the evaluation lacks fields or has some that are not known")
        share, by, groups = plain["share"], plain["by"], plain["groups"]
        if share is not None and not (_is_number(share) and 0 < share < 1):
            raise ModelFileError("the evaluation has a share that is none")
        if not isinstance(plain["rule"], str) or not (by is None or isinstance(by, str)):
            raise ModelFileError("the evaluation has a text that is none")
        if (
            not isinstance(groups, list)
            or not groups
            or not all(isinstance(g, str) for g in groups)
        ):
            raise ModelFileError("the evaluation has no list of groups")
        if len(set(groups)) < len(groups) or len(groups) > _MOST:
            raise ModelFileError("the evaluation has a group twice, or too many")
        kinds, bins = len(classes or ()), plain["probabilities"]
        if not isinstance(bins, list) or not all(_is_number(p) and 0 <= p <= 1 for p in bins):
            raise ModelFileError("the evaluation has a probability that is none")
        confusion = _read(plain["confusion"], (len(groups), kinds, kinds))
        scores = _read(plain["scores"], (2, len(bins)))
        sums = _read(plain["sums"], (len(groups), 4))
        if (confusion is None) != (classes is None) or (sums is None) != (classes is not None):
            raise ModelFileError("the evaluation does not fit the target")
        if (scores is not None) != bool(bins) or (scores is not None and kinds != 2):
            raise ModelFileError("the evaluation has scores and no bins for them")
        return cls(
            share,
            plain["rule"],
            tuple(map(str, classes or ())),
            span,
            tuple(groups),
            by,
            confusion,
            scores,
            tuple(map(float, bins)),
            sums,
        )


def _only(counted: Counted | None, group: int) -> Counted | None:
    """Return the numbers of one group."""
    if counted is None:
        return None
    return replace(counted, values=counted.values[group : group + 1])


def _plain(counted: Counted) -> dict[str, Any]:
    return {
        "values": counted.values.tolist(),
        "variance": counted.variance,
        "laplace": counted.laplace,
    }


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < 1e15 and math.isfinite(value)


def _read(plain: Any, shape: tuple[int, ...]) -> Counted | None:
    """Read released numbers of a shape, checking everything."""
    if plain is None:
        return None
    if not isinstance(plain, dict) or set(plain) != {"values", "variance", "laplace"}:
        raise ModelFileError("the evaluation has numbers without their noise")
    variance, laplace = plain["variance"], plain["laplace"]
    if not _is_number(variance) or variance < 0 or not isinstance(laplace, bool):
        raise ModelFileError("the evaluation has numbers without their noise")
    return Counted(np.array(_level(plain["values"], shape)), float(variance), laplace)


def _level(plain: Any, shape: tuple[int, ...]) -> Any:
    """Return nested lists of numbers, if they have a shape."""
    if not shape:
        if not _is_number(plain):
            raise ModelFileError("the evaluation has a number that is none")
        return float(plain)
    if not isinstance(plain, list) or len(plain) != shape[0] or math.prod(shape) > _MOST:
        raise ModelFileError("the evaluation has numbers of another shape")
    return [_level(one, shape[1:]) for one in plain]
