"""The scikit-learn faces of forests on private medians."""

from __future__ import annotations

import warnings
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from privet.ensemble import Ensemble
from privet.errors import BudgetError, PublishedCostWarning
from privet.estimators._base import (
    PrivateClassifier,
    PrivateEstimator,
    PrivateRegressor,
    PrivateTreeEstimator,
    SingleTree,
    check_depth,
    check_rows,
    check_truth,
    check_whole,
)
from privet.learners import forests
from privet.privacy import Budget, Coins, LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

MOST_TREES = 1_000
#: How many trees the paper has, and how many are right for a number, of which they average noise.
PAPER_TREES, NUMBER_TREES = 10, 3
VARIANTS = ("uniform", "exp", "flip")
CALIBRATIONS = ("valid", "published")


class _DiPriMe(PrivateEstimator):
    """What all share: the parameters of a forest."""

    learner: ClassVar[str] = "diprime"
    asks: ClassVar[frozenset[str]] = frozenset({"choose_halves"})

    variant: str
    n_estimators: int | str
    max_depth: int | str
    max_features: int | None
    rho: float
    partition: bool
    calibration: str
    n_rows: int | None

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        if self.variant not in VARIANTS:
            raise BudgetError(f"variant must be one of {', '.join(map(repr, VARIANTS))}")
        if self.calibration not in CALIBRATIONS:
            raise BudgetError(f"calibration must be one of {', '.join(map(repr, CALIBRATIONS))}")
        depth = None if self.max_depth == "auto" else check_depth(self.max_depth)
        if depth is not None and depth > forests.DEEPEST:
            raise BudgetError(f"max_depth must lie between 1 and {forests.DEEPEST}, or be 'auto'")
        share: Any = self.rho
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) < 1:
            raise BudgetError("rho, the splits' share of the budget, must lie between 0 and 1")
        features = len(schema.names)
        rows = check_rows(self.n_rows)
        published = self.calibration == "published"
        if published and depth is None and rows is None:
            raise BudgetError("calibration='published' needs max_depth, or n_rows to choose it by")
        trees = None if schema.classes else NUMBER_TREES
        if self.n_estimators != "auto":
            trees = check_whole(self.n_estimators, "n_estimators", 1, MOST_TREES)
        elif published:
            trees = PAPER_TREES
        options = forests.Options(
            variant=self.variant,
            n_estimators=trees,
            max_depth=depth,
            max_features=features
            if self.max_features is None
            else check_whole(self.max_features, "max_features", 1, 2**31),
            split_share=Fraction(float(share)),
            partition=check_truth(self.partition, "partition"),
            published=published,
        )
        return {"n_rows": rows, "options": options}

    def _not_covered(self) -> str | None:
        if self._of_classes or self.calibration != "published":
            return None
        return "calibration='published' for a number, whose leaf means are scaled by exact counts"

    def _budget(self, schema: Schema) -> Budget:
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        cost = forests.published_cost(
            schema, asked.limit, self._check_parameters(schema)["options"]
        )
        if cost > asked.limit and self._not_covered() is None:
            warnings.warn(
                f"as published, this costs epsilon {float(cost):.4g}, not the {self.epsilon:g} "
                "that the paper counts: medians of several features are not of disjoint data",
                PublishedCostWarning,
                stacklevel=3,
            )
        return Budget(max(cost, asked.limit))

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        limit = Budget(self.epsilon).limit
        return forests.learn(table, amount=limit, coins=Coins.of(self.random_state), **options)


class DiPriMeForestClassifier(_DiPriMe, PrivateClassifier):
    """A forest on private medians, after DiPriMe (Consul & Williamson 2021).

    Each tree learns from its own part of the rows, to which a hash of each record assigns it. A
    node is divided at a private median of one feature, so that its children have about as many
    records; leaves hold noisy class counts.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table. If None, it is drafted from the data, which leaks: the fit
        warns and the model is marked as not private.
    variant : "flip", "exp" or "uniform", default="flip"
        How a node's feature is chosen: by permute-and-flip or by the exponential mechanism, on how
        different the node's halves are; or by chance. Medians are drawn by the exponential
        mechanism in any case.
    n_estimators : int or "auto", default="auto"
        How many trees. "auto" has 1 to 5, by rows x epsilon: on a budget, fewer are more accurate.
        The paper has 10, and so has "auto" if published.
    max_depth : int or "auto", default="auto"
        Most tests on a path, up to 12; "auto" leaves enough records in a leaf, by rows x epsilon.
        Deeper levels have more of the budget, as their nodes have fewer records.
    max_features : int, optional
        How many features, chosen by chance, a node considers; the paper has 5. All if None.
    rho : float, default=0.6
        The splits' share of the budget; the leaves have the rest.
    partition : bool, default=True
        Whether each tree has its own rows; else each has all rows, and its own part of the budget.
    calibration : "valid" or "published", default="valid"
        "valid" spends what was asked for. "published" adds the paper's noise, for repeating its
        experiments: the ledger then shows what that costs.
    n_rows : int, optional
        The number of rows, if it is public: it steers how many trees there are, and how deep. If
        None, a noisy count does.
    ledger : path or LedgerStore, optional
        The table's ledger file, from which the fit draws.
    random_state : int, RandomState or None, default=None
        None: cryptographic noise. Anything else is for tests and experiments: the fit can be
        repeated, warns, and its model is marked as not private.

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published; the forest averages the logarithms of its trees' class shares.
    classes_ : ndarray
        The schema's classes.
    schema_ : Schema
        The schema in use.
    privacy_ : PrivacyCard
        What was spent on what, and whether the guarantee holds.

    Privacy
    -------
    Releases one split per node (its feature, then a median of it) and class counts per leaf;
    ``epsilon``-DP for adding or removing one record, or what ``privacy_`` says if published
    (docs/proofs/forests.md). Class shares are made of released counts only: drawing them towards
    what the nodes above say costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import DiPriMeForestClassifier, Numeric, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = DiPriMeForestClassifier(epsilon=1.0, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        variant: str = "flip",
        n_estimators: int | str = "auto",
        max_depth: int | str = "auto",
        max_features: int | None = None,
        rho: float = 0.6,
        partition: bool = True,
        calibration: str = "valid",
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.variant = variant
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.rho = rho
        self.partition = partition
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state


class DiPriMeForestRegressor(_DiPriMe, PrivateRegressor):
    """A forest on private medians for a number, after DiPriMe (Consul & Williamson 2021).

    As :class:`DiPriMeForestClassifier`; leaves hold means, made of two complementary noisy sums.
    The schema's bounds of the target matter: noise is proportional to their width.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table, with ``bounds`` of the target. If None, it is drafted from
        the data, which leaks: the fit warns and the model is marked as not private.
    variant, max_depth, max_features, rho, partition, n_rows
        As for :class:`DiPriMeForestClassifier`.
    n_estimators : int or "auto", default="auto"
        How many trees. "auto" has 3, or the paper's 10 if published.
    calibration : "valid" or "published", default="valid"
        "valid" spends what was asked for. "published" adds the paper's noise, for repeating its
        experiments: no epsilon covers its leaf means, so the model is marked as not private, its
        card has an infinite epsilon, and a ledger is refused.
    ledger : path or LedgerStore, optional
        The table's ledger file, from which the fit draws.
    random_state : int, RandomState or None, default=None
        None: cryptographic noise. Anything else is for tests and experiments: the fit can be
        repeated, warns, and its model is marked as not private.

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published; the forest averages its trees' means.
    schema_ : Schema
        The schema in use.
    privacy_ : PrivacyCard
        What was spent on what, and whether the guarantee holds.

    Privacy
    -------
    Releases one split per node (its feature, then a median of it) and two complementary sums per
    leaf; ``epsilon``-DP for adding or removing one record (docs/proofs/forests.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import DiPriMeForestRegressor, Numeric, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="days", bounds=(0, 30))
    >>> model = DiPriMeForestRegressor(epsilon=2.0, schema=schema).fit(x, 30 - 0.2 * x[:, 0])
    >>> early, late = model.predict([[5.0], [95.0]])
    >>> bool(early > late + 10)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        variant: str = "flip",
        n_estimators: int | str = "auto",
        max_depth: int | str = "auto",
        max_features: int | None = None,
        rho: float = 0.6,
        partition: bool = True,
        calibration: str = "valid",
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.variant = variant
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.rho = rho
        self.partition = partition
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state


class DiPriMeTreeClassifier(_DiPriMe, PrivateTreeEstimator):
    """One tree on private medians: the forest of one tree.

    Parameters
    ----------
    epsilon, schema, variant, max_depth, max_features, rho, calibration
        As for the forest.
    n_rows, ledger, random_state
        As for :class:`DiPriMeForestClassifier`.

    Attributes
    ----------
    tree_, predictor_ : Tree
        What is published.
    classes_ : ndarray
        The schema's classes.
    schema_ : Schema
        The schema in use.
    privacy_ : PrivacyCard
        What was spent on what, and whether the guarantee holds.

    Privacy
    -------
    As :class:`DiPriMeForestClassifier`.
    """

    n_estimators = 1
    partition = True

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        variant: str = "flip",
        max_depth: int | str = "auto",
        max_features: int | None = None,
        rho: float = 0.6,
        calibration: str = "valid",
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.variant = variant
        self.max_depth = max_depth
        self.max_features = max_features
        self.rho = rho
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state


class DiPriMeTreeRegressor(_DiPriMe, SingleTree, PrivateRegressor):
    """One tree on private medians: the forest of one tree.

    Parameters
    ----------
    epsilon, schema, variant, max_depth, max_features, rho, calibration
        As for the forest.
    n_rows, ledger, random_state
        As for :class:`DiPriMeForestRegressor`.

    Attributes
    ----------
    tree_, predictor_ : Tree
        What is published.
    schema_ : Schema
        The schema in use.
    privacy_ : PrivacyCard
        What was spent on what, and whether the guarantee holds.

    Privacy
    -------
    As :class:`DiPriMeForestRegressor`.
    """

    n_estimators = 1
    partition = True

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        variant: str = "flip",
        max_depth: int | str = "auto",
        max_features: int | None = None,
        rho: float = 0.6,
        calibration: str = "valid",
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.variant = variant
        self.max_depth = max_depth
        self.max_features = max_features
        self.rho = rho
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
