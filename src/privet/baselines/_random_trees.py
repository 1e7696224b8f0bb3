"""The scikit-learn faces of random trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.baselines._learners import DEEPEST, Forest, learn_random_trees
from privet.ensemble import Ensemble
from privet.estimators._base import PrivateClassifier, PrivateEstimator, PrivateRegressor
from privet.estimators.parameters import ROWS, TREES, Automatic, Boolean, Parameter, WholeNumber
from privet.estimators.registry import register
from privet.privacy import Coins, LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree


class _RandomTrees(PrivateEstimator):
    """What both share."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "n_estimators": TREES,
        "max_depth": Automatic(WholeNumber(1, DEEPEST)),
        "partition": Boolean(),
        "n_rows": ROWS,
    }

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        return {"forest": Forest(**super()._check_parameters(schema))}

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        limit = table.ledger.budget.limit
        return learn_random_trees(table, amount=limit, coins=Coins.of(self.random_state), **options)


@register("random-trees", command=False)
class RandomTreesClassifier(_RandomTrees, PrivateClassifier):
    """Random decision trees with noisy class counts: DP-ERT, or Private-RDT.

    After Jagannathan, Pillaipakkamnatt & Wright (2009) and Bojarski et al. (2014): every node tests
    a random feature at a random cut (or a random half of its categories), without looking at a
    record, so that the leaves have the whole budget. The forest averages the leaves' class shares.

    Parameters
    ----------
    <epsilon>
    <schema>
    n_estimators : int, default=10
        How many trees.
    max_depth : int or "auto", default="auto"
        Tests on a path, up to 12; "auto" leaves 25 records in a leaf, if splits were even.
    partition : bool, default=False
        Whether each tree has its own rows, by a hash of each record. If not, as in both papers,
        each has all rows and its own part of the budget.
    n_rows : int, optional
        The number of rows, if it is public, for ``max_depth="auto"``. If None, two per cent of the
        budget buy a noisy count.
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published.
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    Releases class counts per leaf; the tests are public coin tosses. ``epsilon``-DP for adding or
    removing one record (docs/proofs/baselines.md). The papers' own calibration is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import RandomTreesClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = RandomTreesClassifier(epsilon=2.0, schema=schema).fit(x, cured)
    >>> model.predict([[5.0], [95.0]]).tolist()
    ['no', 'yes']
    """

    asks: ClassVar[frozenset[str]] = frozenset({"noisy_class_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 10,
        max_depth: int | str = "auto",
        partition: bool = False,
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.partition = partition
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose


@register("random-trees", command=False)
class RandomTreesRegressor(_RandomTrees, PrivateRegressor):
    """Random decision trees with noisy means: DP-ERT for a number.

    The regression analogue that Consul & Williamson (2021) compare with. Its leaf means with noise
    by exact counts have no finite cost; here a leaf releases two complementary sums of the target.

    Parameters
    ----------
    <epsilon>
    <schema with bounds>
    n_estimators, max_depth, partition, n_rows
        As for :class:`RandomTreesClassifier`.
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
    Releases two complementary sums of the target per leaf; the tests are public coin tosses.
    ``epsilon``-DP for adding or removing one record (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import RandomTreesRegressor
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="days", bounds=(0, 30))
    >>> model = RandomTreesRegressor(epsilon=2.0, schema=schema).fit(x, 30 - 0.2 * x[:, 0])
    >>> early, late = model.predict([[5.0], [95.0]])
    >>> bool(early > late + 5)
    True
    """

    asks: ClassVar[frozenset[str]] = frozenset({"noisy_gradients", "start_scores"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 10,
        max_depth: int | str = "auto",
        partition: bool = False,
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.partition = partition
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose
