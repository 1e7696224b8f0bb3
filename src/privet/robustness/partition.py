"""Deep Partition Aggregation (Levine & Feizi 2021) with any base learner: the paper's comparator.

Not private: a defence against poisoned rows with a certificate for every single prediction.
"""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from privet.robustness.promises import NoGuarantee
from privet.robustness.votes import safe_rows


class DeepPartitionClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base learners on disjoint parts of the rows, which vote.

    A row goes to a part by a hash of its features, and every base learner sees its part in an order
    that depends on the rows alone. So a row added or removed changes one vote at most, and a row
    whose label was changed, too; other changes of a row count twice.

    Parameters
    ----------
    estimator : classifier, optional
        The base learner, cloned for every part: a function of its rows, once its ``random_state``
        is set. A decision tree if None.
    n_partitions : int, default=50
        The number of parts.
    random_state : int, default=0
        Decides the hash and the base learners' coins. It must be fixed before the rows are seen;
        it need not be secret.

    Attributes
    ----------
    estimators_ : list of (classifier or None)
        One per part. An empty part abstains.
    classes_ : ndarray
        The classes.

    Privacy
    -------
    None. Use it on tables that are not sensitive, or as a comparator.

    Examples
    --------
    >>> X = np.arange(200.0).reshape(-1, 1)
    >>> model = DeepPartitionClassifier(n_partitions=9).fit(X, X[:, 0] > 99)
    >>> labels, safe = model.certified([[20.0], [180.0]])
    >>> labels.tolist(), safe.tolist()
    ([False, True], [4, 4])
    """

    def __init__(
        self, estimator: Any = None, n_partitions: int = 50, random_state: int = 0
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train one base learner per part.

        Parameters
        ----------
        X : array of shape (rows, features)
            Numbers; encode categories first.
        y : array
            The classes.

        Returns
        -------
        self
        """
        if isinstance(self.n_partitions, bool) or int(self.n_partitions) < 1:
            raise NoGuarantee("n_partitions must be a whole number, at least 1")
        if not isinstance(self.random_state, int | np.integer):
            raise NoGuarantee(
                "random_state must be a whole number: the certificate needs base learners that are "
                "functions of their rows"
            )
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        X = np.ascontiguousarray(X) + 0.0  # one zero, so that equal rows have equal bytes
        parts = self._parts(X)
        self.estimators_ = []
        for part in range(int(self.n_partitions)):
            mine = np.flatnonzero(parts == part)
            order = np.lexsort((codes[mine], *X[mine].T[::-1]))
            self.estimators_.append(self._train(X[mine[order]], y[mine[order]]))
        return self

    def votes(self, X: Any) -> NDArray[np.int64]:
        """Return how many parts vote for each class, one row per case."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        counts = np.zeros((len(X), len(self.classes_)), dtype=np.int64)
        for model in self.estimators_:
            if model is not None:
                places = np.searchsorted(self.classes_, model.predict(X))
                counts[np.arange(len(X)), places] += 1
        return counts

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with most votes, of equals the first."""
        votes = self.votes(X)
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the shares of the votes."""
        votes = self.votes(X)
        return np.asarray(votes / votes.sum(axis=1, keepdims=True))

    def certified(self, X: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the labels, and for each how many poisoned rows provably leave it as it is.

        Poisoned rows may bring classes that were not there.
        """
        votes = self.votes(X)
        labels = np.asarray(self.classes_[votes.argmax(axis=1)])
        return labels, safe_rows(votes, closed=False)

    def _parts(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        key = str(int(self.random_state)).encode()
        digests = (hashlib.blake2b(row.tobytes(), digest_size=8, key=key[:64]) for row in X)
        numbers = [int.from_bytes(d.digest(), "little") % int(self.n_partitions) for d in digests]
        return np.array(numbers, dtype=np.int64)

    def _train(self, X: NDArray[np.float64], y: NDArray[Any]) -> Any:
        if not len(X):
            return None
        if (y == y[0]).all():
            return _Always(y[0])  # not every classifier learns from a single class
        model = DecisionTreeClassifier() if self.estimator is None else clone(self.estimator)
        seeds = [
            name
            for name in model.get_params()
            if name == "random_state" or name.endswith("__random_state")
        ]
        return model.set_params(**dict.fromkeys(seeds, int(self.random_state))).fit(X, y)


class _Always:
    """Votes for one class."""

    def __init__(self, label: Any) -> None:
        self.label = label

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        return np.full(len(X), self.label)
