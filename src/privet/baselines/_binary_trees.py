"""The scikit-learn faces of greedy binary trees: BDPT and DPGDF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.baselines._learners import DEEPEST, Forest, count_two_ways, learn_bdpt, learn_dpgdf
from privet.criteria import Gini
from privet.ensemble import Ensemble
from privet.estimators._base import PrivateClassifier, PrivateTreeEstimator
from privet.estimators.parameters import BINS, TREES, Parameter, WholeNumber
from privet.estimators.registry import register
from privet.privacy import Coins, LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree


@register("bdpt", command=False)
class BDPTClassifier(PrivateTreeEstimator):
    """A greedy binary tree whose counts are dearer the deeper they are: BDPT (Guan et al. 2020).

    Known here from its abstract, and from how Vos et al. (2023) describe and run it: half of the
    budget finds the splits, in equal parts per level, by the exponential mechanism on the Gini
    index; the other half counts, each level for the cube root of two times what the level above
    has; a category is tested against the rest; leaves have noisy class counts. One tree, as in
    Vos et al.: the forest of the original, whose trees are picked by their accuracy, is not here.

    Three steps of the original cost more than it says and are replaced. Its selections have a
    sensitivity from a noisy size; here the index is multiplied by the exact size, and the counts
    only stop a node (fewer than two records). It merges every five neighbouring values of a number
    in the data; here a number is cut at public bins. It stops at nodes of one class, which is left
    out.

    Parameters
    ----------
    <epsilon>
    <schema>
    max_depth : int, default=4
        Most tests on a path, up to 12.
    n_bins : int, default=10
        Bins of equal width of a number.
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
    Releases, per level, class counts of each node and one split for each that goes on; at most
    ``epsilon``-DP for adding or removing one record (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import BDPTClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = BDPTClassifier(epsilon=2.0, schema=schema, max_depth=2).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_depth": WholeNumber(1, DEEPEST),
        "n_bins": BINS,
    }
    asks: ClassVar[frozenset[str]] = frozenset({"choose_splits", "noisy_class_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 4,
        n_bins: int = 10,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.n_bins = n_bins
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _learn(self, table: Table, **options: Any) -> Tree:
        return learn_bdpt(table, amount=table.ledger.budget.limit, **options)

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(Gini(), count_two_ways(table.schema, options["n_bins"]))


@register("dpgdf", command=False)
class DPGDFClassifier(PrivateClassifier):
    """Greedy binary trees on disjoint parts of the rows: DPGDF (Xin et al. 2019).

    Known here from how Consul & Williamson (2021) and Vos et al. (2023) describe it and the latter
    run it: half of the budget finds the splits, in equal parts per level, by a private selection
    on the Gini index; the other half finds the label of each leaf; a category is tested against
    the rest; trees of a forest learn from disjoint parts of the rows, and vote.

    The original's labels are drawn with a noise that shrinks with the exact margin (smooth
    sensitivity, put into the exponential mechanism): no epsilon covers that. Here labels are found
    by permute-and-flip on the class counts. Its exact stop rules (few records, one class) are left
    out. The original knows categories only; here numbers are cut at public bins.

    Parameters
    ----------
    <epsilon>
    <schema>
    n_estimators : int, default=1
        How many trees, each on its own part of the rows; Vos et al. run one.
    max_depth : int, default=4
        Tests on a path, up to 12.
    n_bins : int, default=10
        Bins of equal width of a number.
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
    Releases one split per node and one label per leaf; ``epsilon``-DP for adding or removing one
    record (docs/proofs/baselines.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema
    >>> from privet.baselines import DPGDFClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = DPGDFClassifier(epsilon=2.0, schema=schema, max_depth=2).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "n_estimators": TREES,
        "max_depth": WholeNumber(1, DEEPEST),
        "n_bins": BINS,
    }
    asks: ClassVar[frozenset[str]] = frozenset({"choose_labels", "choose_splits"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        n_estimators: int = 1,
        max_depth: int = 4,
        n_bins: int = 10,
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
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        bins = given.pop("n_bins")
        return {"forest": Forest(**given, partition=True), "n_bins": bins}

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        limit = table.ledger.budget.limit
        return learn_dpgdf(table, amount=limit, coins=Coins.of(self.random_state), **options)

    def _check_table(self, table: Table, **options: Any) -> None:
        table.check_choices(Gini(), count_two_ways(table.schema, options["n_bins"]))
