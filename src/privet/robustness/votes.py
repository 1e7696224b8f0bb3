"""Certificates of votes: trees on disjoint parts, each row in a part by a hash of itself.

Adding or removing a row touches the tree of one part, so x such changes move at most x votes, or
move an average of n trees by at most x / n of its range: if every tree is a function of its part
alone, of the very model that is fitted again; if trees have independent noise, of a model whose law
is that of a fit on the poisoned table. Proof: docs/proofs/poisoning.md, "Votes".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.model import Model, PrivacyCard, class_array
from privet.privacy import QuestionKind
from privet.robustness.promises import NoGuarantee


def safe_rows(votes: Any, *, closed: bool = True) -> NDArray[np.int64]:
    """Return, for every row, how many poisoned rows provably leave its label as it is.

    Parameters
    ----------
    votes : array of int, of shape (rows, classes)
        How many trees vote for each class. The label is the class with most votes, of equals the
        first. A tree may abstain.
    closed : bool, default=True
        Whether these are all classes that there can be. If not, poisoned rows may bring a new one,
        which may come first among equals.

    Returns
    -------
    array of int
        The largest number x of rows added or removed (a changed row counts twice) for which no way
        of moving x votes changes the label.

    Examples
    --------
    >>> safe_rows([[5, 3], [3, 5], [4, 4]]).tolist()
    [1, 0, 0]
    """
    counts = _check_votes(votes)
    rows, classes = counts.shape
    first = counts.argmax(axis=1)
    top = counts[np.arange(rows), first]
    # An earlier class wins a tie, so it needs one vote less.
    earlier = np.arange(classes) < first[:, None]
    margin = top[:, None] - counts - earlier
    # Against itself: with one class there is nothing to change to, unless a new one comes.
    margin[np.arange(rows), first] = 2 * top if closed else top - 1
    return np.asarray(np.maximum(margin.min(axis=1), 0) // 2)


def certified_share(
    votes: Any, correct: Any, poisoned: Any, *, closed: bool = True
) -> NDArray[np.float64]:
    """Return the accuracy that is left for sure after this many poisoned rows.

    Parameters
    ----------
    votes, closed
        As for :func:`safe_rows`.
    correct : array of int
        The place of each row's true class.
    poisoned : int or array of int
        Rows added or removed; a changed row counts twice.

    Returns
    -------
    array of float
        One share for every number of poisoned rows.

    Examples
    --------
    >>> certified_share([[9, 1], [6, 4], [2, 8]], [0, 0, 0], [0, 1, 4, 5]).round(2).tolist()
    [0.67, 0.67, 0.33, 0.0]
    """
    counts, truth = _check_votes(votes), np.asarray(correct)
    if truth.shape != (len(counts),):
        raise NoGuarantee("give the place of the true class of every row")
    safe = np.where(counts.argmax(axis=1) == truth, safe_rows(counts, closed=closed), -1)
    limits = np.atleast_1d(np.asarray(poisoned, dtype=np.int64))
    if limits.min(initial=0) < 0:
        raise NoGuarantee("the number of poisoned rows must not be negative")
    return np.asarray((safe[None, :] >= limits[:, None]).mean(axis=1))


def average_after(
    average: Any, n_trees: int, poisoned: int, *, low: float = 0.0, high: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the limits within which an average of trees stays.

    Parameters
    ----------
    average : array of float
        The average of the trees' values.
    n_trees : int
        The number of trees, each on its own part; their number must not depend on the rows.
    poisoned : int
        Rows added or removed; a changed row counts twice.
    low, high : float
        The public bounds of a tree's value.

    Examples
    --------
    >>> lower, upper = average_after([0.5, 0.98], 100, 5)
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.45, 0.93], [0.55, 1.0])
    """
    if n_trees < 1 or poisoned < 0 or not low < high:
        raise NoGuarantee("give at least one tree, no negative number of rows, and low below high")
    values = np.asarray(average, dtype=np.float64)
    reach = min(poisoned / n_trees, 1.0) * (high - low)
    return np.clip(values - reach, low, high), np.clip(values + reach, low, high)


def forest_votes(forest: Any, table: Any) -> NDArray[np.int64]:
    """Return how many trees of a private forest vote for each class: input of the others here.

    The trees' noises are independent. So to this fit belongs one on the poisoned table, with the
    right law, in which every tree whose rows are the same is the same: labels that are safe are
    the same in both. Another fit has other noise, and may have other labels
    (docs/proofs/poisoning.md, "Votes").

    Parameters
    ----------
    forest : fitted DiPriMeForestClassifier or the like, or its loaded Model
        With ``partition=True``, so that each record is in one tree by a hash of itself, and with
        a number of trees and a depth that do not depend on the rows: ``n_estimators`` and
        ``max_depth``, or ``n_rows``, were given. Without ``random_state``: trees that share one
        stream of noise are not independent. With a schema that was not drafted from the rows.
    table : dataframe or array
        The rows to predict.

    Returns
    -------
    array of int, of shape (rows, classes)
        Classes in the order of ``forest.classes_`` (of a loaded model: ``classes``). The class with
        most votes is a prediction of its own: the forest's ``predict`` averages instead.
    """
    loaded = isinstance(forest, Model)
    model = forest.predictor if loaded else getattr(forest, "predictor_", None)
    card = forest.privacy if loaded else getattr(forest, "privacy_", None)
    if not isinstance(model, Ensemble) or model.schema.classes is None:
        raise NoGuarantee("votes need a fitted forest of several trees that predict classes")
    if not isinstance(card, PrivacyCard):
        raise NoGuarantee("votes need the forest's privacy card, which says what was asked of whom")
    _check_independent(model, card)
    classes = len(model.schema.classes)
    labels = forest.classes if loaded else forest.classes_
    order = {label: place for place, label in enumerate(labels.tolist())}
    place_of = np.array([order[label] for label in class_array(model.schema).tolist()])
    votes = np.zeros((len(model.trees[0].apply(table)), classes), dtype=np.int64)
    for tree in model.trees:
        scores = tree.predict_value(table)
        best = scores.argmax(axis=1) if classes > 2 else (scores[:, 0] > 0).astype(np.intp)
        votes[np.arange(len(votes)), place_of[best]] += 1
    return votes


def _check_independent(model: Ensemble, card: PrivacyCard) -> None:
    """Refuse a forest in which a row may change a tree that it is not in."""
    if card.seeded:
        raise NoGuarantee(
            "random_state was given: all trees share one stream of noise, so one row may change "
            "every tree; leave it out"
        )
    if card.protocol is not None:
        raise NoGuarantee("votes are certified for forests of one table, not of several parties")
    if model.schema.drafted:
        raise NoGuarantee(
            "the schema was drafted from the rows, so one row may change every tree; write a schema"
        )
    if model.schema.discovered is not None:
        raise NoGuarantee(
            "the schema was discovered in the rows, so one row may change every tree; write a "
            "schema by what is publicly known"
        )
    # A test score says something of the trees, and decides nothing about them.
    entries = [e for e in card.entries if e.place.portion in (None, "training")]
    places = [entry.place for entry in entries]
    if any(e.question.kind is QuestionKind.ROW_COUNT and e.place.parts == 1 for e in entries):
        raise NoGuarantee(
            "how many trees there are, or how deep, came from a count of all rows, so one row may "
            "change every tree; give n_estimators and max_depth, or n_rows"
        )
    if not places or any(place.parts not in (len(model.trees), None) for place in places):
        raise NoGuarantee("votes are safe only if every tree has its own rows: partition=True")
    if any(place.parts is None for place in places):
        raise NoGuarantee(
            "the model's file has version 1: the trees of its forest shared their public coins, so "
            "one row may change every tree; fit the forest again"
        )


def _check_votes(votes: Any) -> NDArray[np.int64]:
    counts = np.asarray(votes)
    if counts.ndim != 2 or not counts.shape[1] or counts.dtype.kind not in "iu":
        raise NoGuarantee("votes must be whole numbers, one row per case and one column per class")
    if counts.size and counts.min() < 0:
        raise NoGuarantee("votes must not be negative")
    return counts.astype(np.int64)
