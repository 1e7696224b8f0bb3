"""A backdoor attack on any scikit-learn style classifier, and how well it works.

The attack of Gu et al. 2017 as Vos et al. run it (section VI-C): copies of rows of other classes
get a trigger pattern and the target label and are added to the table. It succeeds on a test row of
another class if the model gives it the target label once it carries the trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError
from privet.robustness.guarantees import poisoned_rows


@dataclass(frozen=True)
class Trigger:
    """A pattern: some columns take fixed values.

    Parameters
    ----------
    pattern : mapping
        Values by column: by name for dataframes, by position for arrays.

    Examples
    --------
    >>> Trigger({1: 9.0}).on(np.zeros((2, 3))).tolist()
    [[0.0, 9.0, 0.0], [0.0, 9.0, 0.0]]
    """

    pattern: Mapping[Any, Any]

    def __post_init__(self) -> None:
        if not self.pattern:
            raise DataError("a trigger needs at least one column")

    def on(self, X: Any) -> Any:
        """Return a copy of rows that carries the trigger."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            array = np.array(X)
            for column, value in self.pattern.items():
                if not isinstance(column, int | np.integer) or not 0 <= column < array.shape[1]:
                    raise DataError("a trigger on an array names columns by position")
                array[:, column] = value
            return array
        types = frame.schema
        if any(name not in types for name in self.pattern):
            raise DataError("a trigger on a dataframe names columns that it has")
        stamped = [
            nw.lit(value).cast(types[name]).alias(name) for name, value in self.pattern.items()
        ]
        return frame.with_columns(stamped).to_native()


def poison(
    X: Any, y: Any, trigger: Trigger, target: Any, rows: int, *, seed: int = 0
) -> tuple[Any, NDArray[Any]]:
    """Add poisoned rows: copies of rows of other classes with the trigger and the target label.

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or array
        The features.
    y : column
        The classes.
    trigger : Trigger
        The pattern.
    target : class
        The label that the attacker wants.
    rows : int
        How many rows to add. If there are fewer rows of other classes, some are copied again.
    seed : int, default=0
        Decides which rows are copied.

    Returns
    -------
    X, y
        The poisoned table, in the form of ``X``, and its labels as an array.

    Examples
    --------
    >>> X, y = poison(np.zeros((3, 2)), [0, 0, 1], Trigger({1: 5.0}), 1, rows=2)
    >>> X[3:].tolist(), y.tolist()
    ([[0.0, 5.0], [0.0, 5.0]], [0, 0, 1, 1, 1])
    """
    labels = _labels(y)
    others = np.flatnonzero(labels != target)
    if rows < 0 or not len(others):
        raise DataError("poisoning needs rows of other classes, and not a negative number of them")
    generator = np.random.default_rng(seed)
    shuffled = [generator.permutation(others) for _ in range(-(-rows // len(others)))]
    chosen = np.concatenate([*shuffled, others[:0]])[:rows]
    added = trigger.on(_take(X, chosen))
    wanted = np.full(rows, target, dtype=labels.dtype if labels.dtype == object else None)
    return _together(X, added), np.concatenate([labels, wanted])


def attack_success(model: Any, X: Any, y: Any, trigger: Trigger, target: Any) -> float:
    """Return the share of rows of other classes that the trigger turns into the target.

    ``model`` is anything with ``predict``.
    """
    others = np.flatnonzero(_labels(y) != target)
    if not len(others):
        raise DataError("the attack's success is measured on rows of other classes; there are none")
    found = np.asarray(model.predict(trigger.on(_take(X, others))))
    return float((found == target).mean())


@dataclass(frozen=True)
class Experiment:
    """What attacks of several sizes achieved.

    Attributes
    ----------
    poisoned : array of int
        How many rows were added; the first is 0, the clean table.
    accuracy, success : array, one row per size and one column per run
        Test accuracy, and success rate of the attack.
    """

    poisoned: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    success: NDArray[np.float64]


def experiment(
    make_model: Callable[[int], Any],
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    trigger: Trigger,
    target: Any,
    *,
    shares: Sequence[float | str] = ("0.1%", "0.5%", "1%"),
    runs: int = 10,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Experiment:
    """Fit on a clean table and on poisoned ones, and measure.

    For each size there is one poisoned table, on which ``runs`` models are fitted: the expectations
    that the bounds are about.

    Parameters
    ----------
    make_model : callable
        Returns a new estimator for a run, whose number it gets.
    train, test : pair of features and classes
        The tables.
    trigger : Trigger
        The pattern.
    target : class
        The label that the attacker wants.
    shares : sequence, default=("0.1%", "0.5%", "1%")
        Sizes of the attack in parts of the table, rounded up to whole rows; 0 is always measured.
    runs : int, default=10
        Fits per size.
    seed : int, default=0
        Decides which rows are copied.
    progress : callable, optional
        Gets the number of fits that are done, and of all.

    Returns
    -------
    Experiment
    """
    labels, truth = _labels(train[1]), _labels(test[1])
    sizes = np.array([0, *(poisoned_rows(share, len(labels)) for share in shares)])
    accuracy = np.empty((len(sizes), runs))
    success = np.empty_like(accuracy)
    for place, rows in enumerate(sizes.tolist()):
        X, y = poison(*train, trigger, target, rows, seed=seed) if rows else (train[0], labels)
        for run in range(runs):
            model = make_model(run).fit(X, y)
            accuracy[place, run] = (np.asarray(model.predict(test[0])) == truth).mean()
            success[place, run] = attack_success(model, *test, trigger, target)
            if progress is not None:
                progress(place * runs + run + 1, accuracy.size)
    return Experiment(sizes, accuracy, success)


def _labels(y: Any) -> NDArray[Any]:
    series = nw.from_native(y, series_only=True, pass_through=True)
    return series.to_numpy() if isinstance(series, nw.Series) else np.asarray(y)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame[rows].to_native() if isinstance(frame, nw.DataFrame) else np.asarray(X)[rows]


def _together(X: Any, added: Any) -> Any:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.concatenate([np.asarray(X), added])
    return nw.concat([frame, nw.from_native(added, eager_only=True)]).to_native()
