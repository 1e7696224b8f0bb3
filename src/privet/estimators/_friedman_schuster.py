"""The scikit-learn faces of Friedman & Schuster's three learners."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.criteria import CRITERIA, MAX_ROWS, make_criterion
from privet.errors import BudgetError
from privet.estimators._base import PrivateTreeEstimator
from privet.estimators.parameters import (
    CALIBRATION,
    DEPTH,
    Choice,
    Number,
    Optional,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.learners import friedman_schuster
from privet.privacy import LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree


class _FriedmanSchuster(PrivateTreeEstimator):
    """What the three share."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_depth": DEPTH,
        "calibration": CALIBRATION,
    }

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        given["published"] = given.pop("calibration") == "published"
        return given


class _Selecting(_FriedmanSchuster):
    """What the two share that select splits by a criterion."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        **_FriedmanSchuster._parameters,
        "criterion": Choice(("max", "gini", "clipped_entropy", "entropy")),
        "n_max": Optional(WholeNumber(2, MAX_ROWS)),
    }

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        name, bound = given["criterion"], given.pop("n_max")
        if bound is not None and "n_max" not in CRITERIA[name].needs:
            raise BudgetError("n_max is for criterion='entropy' only")
        classes = len(schema.classes or ())
        return {**given, "criterion": make_criterion(name, classes=classes, n_max=bound)}


@register("sulq")
class SulqID3Classifier(_FriedmanSchuster):
    """A private ID3 tree from noisy counts of every attribute (Friedman & Schuster, Algorithm 1).

    Kept for comparison: each attribute is counted with a small part of the budget, so the noise is
    large. Numeric features are split into their schema's bins.

    Parameters
    ----------
    <epsilon>
    <schema>
    max_depth : int, default=5
        Most tests on a path. The budget is shared by the levels, so deeper is not better.
    calibration : {"valid", "published"}, default="valid"
        "published" spends the budget as the paper does, to reproduce its results; the ledger says
        what that really costs, which here is less than ``epsilon``. "valid" makes use of all of it.
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    <tree_>
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

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

    asks: ClassVar[frozenset[str]] = frozenset({"noisy_class_counts", "noisy_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 5,
        calibration: str = "valid",
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_sulq(table, epsilon=table.ledger.budget.limit, **options)


@register("diffpid3")
class DiffPID3Classifier(_Selecting):
    """A private ID3 tree with multiway splits (Friedman & Schuster 2010, Algorithm 2).

    Numeric features are split into their schema's bins. A cell is split further only while a noisy
    count says that it has enough records.

    Parameters
    ----------
    <epsilon>
    <schema>
    max_depth : int, default=5
        Most tests on a path. The budget is shared by the levels, so deeper is not better.
    criterion : {"max", "gini", "clipped_entropy", "entropy"}, default="max"
        How splits are scored. ``"entropy"`` (the paper's InfoGain) needs ``n_max``.
    n_max : int, optional
        Public bound on the number of rows, for ``criterion="entropy"`` only.
    calibration : {"valid", "published"}, default="valid"
        "published" spends the budget as the paper does, to reproduce its results; the ledger says
        what that really costs, which here is less than ``epsilon``. "valid" makes use of all of it.
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    <tree_>
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.criterion = criterion
        self.n_max = n_max
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(options["criterion"], len(table.schema.names))

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_diffpid3(table, epsilon=table.ledger.budget.limit, **options)


@register("diffpc45")
class DiffPC45Classifier(_Selecting):
    """A private C4.5 tree: numeric split points, and pruning (Friedman & Schuster 2010, 4.2, 4.3).

    Numbers are split in two at a point of a fine public grid, categories by all their values. One
    private selection per cell finds the attribute and the point together.

    Parameters
    ----------
    <epsilon>
    <schema>
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
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    <tree_>
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

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

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        **_Selecting._parameters,
        "confidence": Optional(Number(0, 0.5, with_high=True)),
    }
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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(options["criterion"], friedman_schuster.count_points(table.schema))

    def _learn(self, table: Table, **options: Any) -> Tree:
        return friedman_schuster.learn_diffpc45(table, epsilon=table.ledger.budget.limit, **options)
