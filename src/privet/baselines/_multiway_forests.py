"""The scikit-learn faces of forests whose nodes have a child for every value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.baselines._learners import (
    DEEPEST,
    Forest,
    learn_fletcher_islam,
    learn_patil_singh,
)
from privet.criteria import MAX_ROWS, Gini, make_criterion
from privet.ensemble import Ensemble
from privet.estimators._base import PrivateClassifier, PrivateEstimator, PrivateRegressor
from privet.estimators.parameters import (
    BINS,
    FEATURES,
    ROWS,
    TREES,
    Automatic,
    Boolean,
    Choice,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.privacy import Coins, LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree


class _PatilSingh(PrivateEstimator):
    """What the classifier and the regressor share."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "n_estimators": TREES,
        "max_depth": Automatic(WholeNumber(1, DEEPEST)),
        "n_bins": BINS,
        "max_features": FEATURES,
        "partition": Boolean(),
        "n_rows": ROWS,
    }

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        name, classes = given.pop("criterion", "sse"), len(schema.classes or ())
        return {
            "criterion": make_criterion(name, classes=classes),
            "n_bins": given.pop("n_bins"),
            "max_features": given.pop("max_features") or len(schema.names),
            "forest": Forest(**given),
        }

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        limit = table.ledger.budget.limit
        return learn_patil_singh(table, amount=limit, coins=Coins.of(self.random_state), **options)


@register("patil-singh", command=False)
class PatilSinghForestClassifier(_PatilSingh, PrivateClassifier):
    """A forest of private ID3 trees: DP-RF, after Patil & Singh (2014).

    Each tree is one of Friedman & Schuster's: a node is counted, with noise, and if it is large
    enough it is split by all values of a feature that one private selection finds. Numbers are seen
    through a few bins. The trees vote.

    The original draws a bootstrap sample for each tree, in which a record can occur any number of
    times: no fixed epsilon covers that. Here every tree has all rows, each once, and its own part
    of the budget; trees differ by the noise and by the features that their nodes consider.

    Parameters
    ----------
    <epsilon>
    <schema>
    n_estimators : int, default=10
        How many trees.
    max_depth : int or "auto", default="auto"
        Most tests on a path, up to 12, each of another feature; "auto" leaves 25 records in a leaf,
        if splits were even.
    n_bins : int, default=5
        Bins of equal width of a number.
    criterion : {"gini", "max", "clipped_entropy"}, default="gini"
        How splits are scored. The gain ratio of the original has no bounded sensitivity.
    max_features : int, optional
        How many features, chosen by chance, a node considers. All if None.
    partition : bool, default=False
        Whether each tree has its own rows, by a hash of each record, and the whole budget.
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
    Releases, per tree and level, noisy counts and one split for each node that goes on, and class
    counts per leaf; at most ``epsilon``-DP for adding or removing one record
    (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import PatilSinghForestClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = PatilSinghForestClassifier(epsilon=2.0, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        **_PatilSingh._parameters,
        "criterion": Choice(("gini", "max", "clipped_entropy")),
    }

    asks: ClassVar[frozenset[str]] = frozenset(
        {"choose_splits", "noisy_class_counts", "noisy_counts"}
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 10,
        max_depth: int | str = "auto",
        n_bins: int = 5,
        criterion: str = "gini",
        max_features: int | None = None,
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
        self.n_bins = n_bins
        self.criterion = criterion
        self.max_features = max_features
        self.partition = partition
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(options["criterion"], len(table.schema.names))


@register("patil-singh", command=False)
class PatilSinghForestRegressor(_PatilSingh, PrivateRegressor):
    """A forest of private multiway trees for a number: DP-RF for regression.

    The analogue that Consul & Williamson (2021) compare with: as
    :class:`PatilSinghForestClassifier`, with splits scored by squared error and means in the
    leaves, which here come from two complementary noisy sums.

    Parameters
    ----------
    <epsilon>
    <schema with bounds>
    n_estimators, max_depth, n_bins, max_features, partition, n_rows
        As for :class:`PatilSinghForestClassifier`.
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
    Releases, per tree and level, noisy counts and one split for each node that goes on, and two
    complementary sums of the target per leaf; at most ``epsilon``-DP for adding or removing one
    record (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import PatilSinghForestRegressor
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="days", bounds=(0, 30))
    >>> model = PatilSinghForestRegressor(epsilon=2.0, schema=schema).fit(x, 30 - 0.2 * x[:, 0])
    >>> early, late = model.predict([[5.0], [95.0]])
    >>> bool(early > late + 5)
    True
    """

    asks: ClassVar[frozenset[str]] = frozenset(
        {"choose_splits", "noisy_counts", "noisy_gradients", "start_scores"}
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 10,
        max_depth: int | str = "auto",
        n_bins: int = 5,
        max_features: int | None = None,
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
        self.n_bins = n_bins
        self.max_features = max_features
        self.partition = partition
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose


@register("fletcher-islam", command=False)
class FletcherIslamForestClassifier(PrivateClassifier):
    """A forest with noisy class counts in all nodes, pruned by them: DP-DF (Fletcher & Islam 2015).

    Every tree sees all rows for its own part of the budget, and has another feature at its root
    than the trees before it, as long as there are such. Nodes are split by all values of a feature
    that one private selection on the Gini index finds; numbers are seen through a few bins. A split
    that does not lower the noisy impurity is pruned. Trees vote with the confidence of their leaf.

    The original divides the noise of its selections by a node's noisy size (local sensitivity, at a
    size that the node may not have), and says nothing about values and classes that do not occur;
    no epsilon covers that. Here the Gini index is multiplied by the exact size before the
    selection, which has about the same effect and a fixed sensitivity, and everything public is
    counted.

    Parameters
    ----------
    <epsilon>
    <schema>
    n_estimators : int, default=10
        How many trees.
    max_depth : int or "auto", default="auto"
        Most tests on a path, up to 12, each of another feature; "auto" leaves 25 records in a leaf,
        if splits were even.
    n_bins : int, default=5
        Bins of equal width of a number.
    min_support : int, default=10
        A node is split only if its noisy size is at least this, and at least two deviations of the
        noise.
    prune : bool, default=True
        Whether trees are pruned, which costs nothing.
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
    Releases, per tree and level, class counts of each node and one split for each that goes on; at
    most ``epsilon``-DP for adding or removing one record (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import FletcherIslamForestClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = FletcherIslamForestClassifier(epsilon=2.0, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "n_estimators": TREES,
        "max_depth": Automatic(WholeNumber(1, DEEPEST)),
        "n_bins": BINS,
        "min_support": WholeNumber(0, MAX_ROWS),
        "prune": Boolean(),
        "n_rows": ROWS,
    }
    asks: ClassVar[frozenset[str]] = frozenset({"choose_splits", "noisy_class_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 10,
        max_depth: int | str = "auto",
        n_bins: int = 5,
        min_support: int = 10,
        prune: bool = True,
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
        self.n_bins = n_bins
        self.min_support = min_support
        self.prune = prune
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        own = {name: given.pop(name) for name in ("n_bins", "min_support", "prune")}
        return {"forest": Forest(**given), **own}

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        return learn_fletcher_islam(table, amount=table.ledger.budget.limit, **options)

    def _check_table(self, table: Table, **options: Any) -> None:
        del options
        table.check_choices(Gini(), len(table.schema.names))
