"""The learners by name: what the command line, the audit, the documentation and the tests list.

An estimator registers itself with :func:`register`. The classifier and the regressor of one learner
share its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from privet.estimators._base import PrivateEstimator
from privet.estimators.parameters import Parameter

#: The learner that the command line takes if none is named.
DEFAULT = "tree"

Estimator = TypeVar("Estimator", bound=type[PrivateEstimator])


@dataclass
class Learner:
    """A learner of the command line.

    Attributes
    ----------
    name : str
    classifier, regressor : estimator class, or None
        The estimator that learns classes, and the one that learns a number.
    """

    name: str
    classifier: type[PrivateEstimator] | None = None
    regressor: type[PrivateEstimator] | None = None


_names: dict[type[PrivateEstimator], str] = {}
_learners: dict[str, Learner] = {}


def register(name: str, *, command: bool = True) -> Callable[[Estimator], Estimator]:
    """Return a decorator that registers an estimator under the name of its learner.

    Model files have that name, unless the class has another one for them.

    Parameters
    ----------
    name : str
    command : bool, default=True
        Whether the command line takes this estimator if it is asked for the learner.
    """

    def add(estimator: Estimator) -> Estimator:
        if command:
            learner = _learners.setdefault(name, Learner(name))
            kind = "classifier" if estimator._of_classes else "regressor"
            if getattr(learner, kind) is not None:
                raise ValueError(f"there are two {kind}s with the name {name!r}")
            setattr(learner, kind, estimator)
        if not hasattr(estimator, "learner"):
            estimator.learner = name
        _names[estimator] = name
        return estimator

    return add


def learners() -> dict[str, Learner]:
    """Return the learners of the command line by their names, that of :data:`DEFAULT` first."""
    names = sorted(_learners, key=lambda name: (name != DEFAULT, name))
    return {name: _learners[name] for name in names}


def estimators() -> tuple[type[PrivateEstimator], ...]:
    """Return all estimators that have registered themselves; baselines if they are imported."""
    return tuple(_names)


def name_of(estimator: type) -> str | None:
    """Return the name of the learner that an estimator belongs to, if it has registered itself."""
    return _names.get(estimator)


def parameters_of(estimator: type[PrivateEstimator]) -> Mapping[str, Parameter]:
    """Return what an estimator takes besides what all take."""
    return estimator._parameters


def default_of(estimator: type[PrivateEstimator], name: str) -> Any:
    """Return what a parameter is if it is not given."""
    return inspect.signature(estimator).parameters[name].default
