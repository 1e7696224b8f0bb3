"""The scikit-learn face of DiffPID3."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from privet.criteria import ClippedEntropy, Criterion, Entropy, Gini, Max
from privet.errors import BudgetError
from privet.estimators._base import PrivateTreeEstimator, check_depth
from privet.learners import diffpid3
from privet.privacy import LedgerStore
from privet.schema import Schema
from privet.tables import PrivateTable
from privet.tree import Tree


class DiffPID3Classifier(PrivateTreeEstimator):
    """A private ID3 tree with multiway splits (Friedman & Schuster 2010, Algorithm 2).

    Numeric features are split into their schema's bins. A cell is split further only while a noisy
    count says that it has enough records.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table. If None, it is drafted from the data, which leaks: the fit
        warns and the model is marked as not private.
    max_depth : int, default=5
        Most tests on a path. The budget is shared by the levels, so deeper is not better.
    criterion : {"max", "gini", "clipped_entropy", "entropy"}, default="max"
        How splits are scored. ``"entropy"`` (the paper's InfoGain) needs ``n_max``.
    n_max : int, optional
        Public bound on the number of rows, for ``criterion="entropy"`` only.
    ledger : path or LedgerStore, optional
        The table's ledger file, from which the fit draws.
    random_state : int, RandomState or None, default=None
        None: cryptographic noise. Anything else is for tests and experiments: the fit can be
        repeated, warns, and its model is marked as not private.

    Attributes
    ----------
    tree_ : Tree
        The published tree.
    classes_ : ndarray
        The schema's classes.
    schema_ : Schema
        The schema in use.
    privacy_ : PrivacyCard
        What was spent on what, and whether the guarantee holds.

    Privacy
    -------
    Releases, per level, noisy counts, one split for each cell that goes on and noisy class counts
    for each that stops; ``epsilon``-DP for adding or removing one record (docs/proofs/diffpid3.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import DiffPID3Classifier, Numeric, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = DiffPID3Classifier(epsilon=1.0, schema=schema, max_depth=1).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    >>> model.privacy_.epsilon
    1.0
    """

    learner: ClassVar[str] = "diffpid3"

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 5,
        criterion: str = "max",
        n_max: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.criterion = criterion
        self.n_max = n_max
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        assert schema.classes is not None
        return {
            "max_depth": check_depth(self.max_depth),
            "criterion": _criterion(self.criterion, self.n_max, len(schema.classes)),
        }

    def _learn(self, table: PrivateTable, **options: Any) -> Tree:
        return diffpid3.learn(table, epsilon=table.ledger.budget.limit, **options)


def _criterion(name: Any, n_max: int | None, classes: int) -> Criterion:
    if name != "entropy" and n_max is not None:
        raise BudgetError("n_max is for criterion='entropy' only")
    if name == "max":
        return Max()
    if name == "gini":
        return Gini()
    if name == "clipped_entropy":
        return ClippedEntropy(min(0.02, 0.5 / classes), classes)
    if name == "entropy":
        if n_max is None:
            raise BudgetError(
                "criterion='entropy' needs n_max, a public bound on the rows; "
                "'clipped_entropy' needs none"
            )
        return Entropy(n_max)
    raise BudgetError("criterion must be 'max', 'gini', 'clipped_entropy' or 'entropy'")
