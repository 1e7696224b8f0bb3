"""The scikit-learn faces of forests on private medians."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from privet.ensemble import Ensemble
from privet.errors import BudgetError
from privet.estimators._base import (
    PrivateClassifier,
    PrivateEstimator,
    PrivateRegressor,
    PrivateTreeEstimator,
    SingleTree,
)
from privet.estimators.parameters import (
    CALIBRATION,
    FEATURES,
    ROWS,
    TREES,
    Automatic,
    Boolean,
    Choice,
    Number,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.learners import forests
from privet.privacy import Budget, Coins, LedgerStore, as_written
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

#: How many trees the paper has, and how many are right for a number, of which they average noise.
PAPER_TREES, NUMBER_TREES = 10, 3


class _DiPriMe(PrivateEstimator):
    """What all share: the parameters of a forest."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "variant": Choice(("uniform", "exp", "flip")),
        "max_depth": Automatic(WholeNumber(1, forests.DEEPEST)),
        "max_features": FEATURES,
        "rho": Number(0, 1),
        "calibration": CALIBRATION,
        "n_rows": ROWS,
    }
    asks: ClassVar[frozenset[str]] = frozenset({"choose_halves"})

    calibration: str

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        rows, published = given.pop("n_rows"), given.pop("calibration") == "published"
        if published and given["max_depth"] is None and rows is None:
            raise BudgetError("calibration='published' needs max_depth, or n_rows to choose it by")
        # A tree is the forest of one.
        trees = given.pop("n_estimators", 1)
        if trees is None and published:
            trees = PAPER_TREES
        elif trees is None and schema.classes is None:
            trees = NUMBER_TREES
        options = forests.DiPriMeOptions(
            n_estimators=trees,
            max_features=given.pop("max_features") or len(schema.names),
            split_share=Fraction(as_written(given.pop("rho"))),
            partition=given.pop("partition", True),
            published=published,
            **given,
        )
        return {"n_rows": rows, "options": options}

    def _not_covered(self) -> str | None:
        if self._of_classes or self.calibration != "published":
            return None
        return "calibration='published' for a number, whose leaf means are scaled by exact counts"

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        del payer
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        cost = forests.published_cost(
            schema, asked.limit, self._check_parameters(schema)["options"]
        )
        reason = "medians of several features are not of disjoint data"
        return self._published_budget(max(cost, asked.limit), reason)

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        limit = Budget(self.epsilon).limit
        return forests.learn(table, amount=limit, coins=Coins.of(self.random_state), **options)


class _Forest(_DiPriMe):
    """What both forests share."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        **_DiPriMe._parameters,
        "n_estimators": Automatic(TREES),
        "partition": Boolean(),
    }


@register("diprime")
class DiPriMeForestClassifier(_Forest, PrivateClassifier):
    """A forest on private medians, after DiPriMe (Consul & Williamson 2021).

    Each tree learns from its own part of the rows, to which a hash of each record assigns it. A
    node is divided at a private median of one feature, so that its children have about as many
    records; leaves hold noisy class counts.

    Parameters
    ----------
    <epsilon>
    <schema>
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
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published; the forest averages the logarithms of its trees' class shares.
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose


@register("diprime")
class DiPriMeForestRegressor(_Forest, PrivateRegressor):
    """A forest on private medians for a number, after DiPriMe (Consul & Williamson 2021).

    As :class:`DiPriMeForestClassifier`; leaves hold means, made of two complementary noisy sums.
    The schema's bounds of the target matter: noise is proportional to their width.

    Parameters
    ----------
    <epsilon>
    <schema with bounds>
    variant, max_depth, max_features, rho, partition, n_rows
        As for :class:`DiPriMeForestClassifier`.
    n_estimators : int or "auto", default="auto"
        How many trees. "auto" has 3, or the paper's 10 if published.
    calibration : "valid" or "published", default="valid"
        "valid" spends what was asked for. "published" adds the paper's noise, for repeating its
        experiments: no epsilon covers its leaf means, so the model is marked as not private, its
        card has an infinite epsilon, and a ledger is refused.
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published; the forest averages its trees' means.
    <schema_>
    <privacy_>
    <evaluation_>

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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose


@register("diprime", command=False)
class DiPriMeTreeClassifier(_DiPriMe, PrivateTreeEstimator):
    """One tree on private medians: the forest of one tree.

    Parameters
    ----------
    epsilon, schema, variant, max_depth, max_features, rho, calibration
        As for the forest.
    n_rows, ledger, random_state, test_share, test_by, verbose
        As for :class:`DiPriMeForestClassifier`.

    Attributes
    ----------
    tree_, predictor_ : Tree
        What is published.
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    As :class:`DiPriMeForestClassifier`.
    """

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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose


@register("diprime", command=False)
class DiPriMeTreeRegressor(_DiPriMe, SingleTree, PrivateRegressor):
    """One tree on private medians: the forest of one tree.

    Parameters
    ----------
    epsilon, schema, variant, max_depth, max_features, rho, calibration
        As for the forest.
    n_rows, ledger, random_state, test_share, test_by, verbose
        As for :class:`DiPriMeForestRegressor`.

    Attributes
    ----------
    tree_, predictor_ : Tree
        What is published.
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    As :class:`DiPriMeForestRegressor`.
    """

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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose
