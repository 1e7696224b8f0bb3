"""The scikit-learn faces of Friedman & Schuster's three learners."""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from privet.criteria import ClippedEntropy, Criterion, Entropy, Gini, Max
from privet.errors import BudgetError
from privet.estimators._base import PrivateTreeEstimator, check_depth
from privet.learners import friedman_schuster
from privet.privacy import LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree


class _FriedmanSchuster(PrivateTreeEstimator):
    """What the three share."""

    max_depth: int
    calibration: str

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        del schema
        if self.calibration not in ("valid", "published"):
            raise BudgetError("calibration must be 'valid' or 'published'")
        return {
            "max_depth": check_depth(self.max_depth),
            "published": self.calibration == "published",
        }


class SulqID3Classifier(_FriedmanSchuster):
    """A private ID3 tree from noisy counts of every attribute (Friedman & Schuster, Algorithm 1).

    Kept for comparison: each attribute is counted with a small part of the budget, so the noise is
    large. Numeric features are split into their schema's bins.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table. If None, it is drafted from the data, which leaks: the fit
        warns and the model is marked as not private.
    max_depth : int, default=5
        Most tests on a path. The budget is shared by the levels, so deeper is not better.
    calibration : {"valid", "published"}, default="valid"
        "published" spends the budget as the paper does, to reproduce its results; the ledger says
        what that really costs, which here is less than ``epsilon``. "valid" makes use of all of it.
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
    Releases, per level, noisy counts, noisy class counts of all attributes for each cell that goes
    on, and noisy class counts for each that stops; ``epsilon``-DP for adding or removing one record
    (docs/proofs/friedman-schuster.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema, SulqID3Classifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = SulqID3Classifier(epsilon=1.0, schema=schema, max_depth=1).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    learner: ClassVar[str] = "sulq"
    asks: ClassVar[frozenset[str]] = frozenset({"noisy_class_counts", "noisy_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 5,
        calibration: str = "valid",
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_sulq(table, epsilon=table.ledger.budget.limit, **options)


class DiffPID3Classifier(_FriedmanSchuster):
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
    calibration : {"valid", "published"}, default="valid"
        "published" spends the budget as the paper does, to reproduce its results; the ledger says
        what that really costs, which here is less than ``epsilon``. "valid" makes use of all of it.
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
    for each that stops; ``epsilon``-DP for adding or removing one record
    (docs/proofs/friedman-schuster.md).

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
    asks: ClassVar[frozenset[str]] = frozenset(
        {"choose_splits", "noisy_class_counts", "noisy_counts"}
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 5,
        criterion: str = "max",
        n_max: int | None = None,
        calibration: str = "valid",
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.criterion = criterion
        self.n_max = n_max
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        assert schema.classes is not None
        return {
            **super()._check_parameters(schema),
            "criterion": _criterion(self.criterion, self.n_max, len(schema.classes)),
        }

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(options["criterion"], len(table.schema.names))

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_diffpid3(table, epsilon=table.ledger.budget.limit, **options)


class DiffPC45Classifier(_FriedmanSchuster):
    """A private C4.5 tree: numeric split points, and pruning (Friedman & Schuster 2010, 4.2, 4.3).

    Numbers are split in two at a point of a fine public grid, categories by all their values. One
    private selection per cell finds the attribute and the point together.

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
    confidence : float or None, default=0.25
        C4.5's certainty factor for pruning by noisy counts: smaller prunes more. None: no pruning.
        Pruning costs nothing.
    calibration : {"valid", "published"}, default="valid"
        "published" spends the budget as the paper does, to reproduce its results; the ledger says
        what that really costs, which here is less than ``epsilon``. "valid" makes use of all of it.
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
    for each that stops; pruning uses released numbers only. ``epsilon``-DP for adding or removing
    one record (docs/proofs/friedman-schuster.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import DiffPC45Classifier, Numeric, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = DiffPC45Classifier(epsilon=1.0, schema=schema, max_depth=1).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    learner: ClassVar[str] = "diffpc45"
    asks: ClassVar[frozenset[str]] = frozenset(
        {"choose_splits", "noisy_class_counts", "noisy_counts"}
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 5,
        criterion: str = "max",
        n_max: int | None = None,
        confidence: float | None = 0.25,
        calibration: str = "valid",
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.criterion = criterion
        self.n_max = n_max
        self.confidence = confidence
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        assert schema.classes is not None
        factor: Any = self.confidence
        if factor is not None and (
            isinstance(factor, bool) or not isinstance(factor, Real) or not 0 < float(factor) <= 0.5
        ):
            raise BudgetError("confidence must be None, or above 0 and at most 0.5")
        return {
            **super()._check_parameters(schema),
            "criterion": _criterion(self.criterion, self.n_max, len(schema.classes)),
            "confidence": None if factor is None else float(factor),
        }

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(options["criterion"], friedman_schuster.count_points(table.schema))

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_diffpc45(table, epsilon=table.ledger.budget.limit, **options)


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
