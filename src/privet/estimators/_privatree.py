"""The scikit-learn face of PrivaTree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.criteria import Gini
from privet.errors import BudgetError, FederationError
from privet.estimators._base import PrivateTreeEstimator
from privet.estimators.parameters import (
    CALIBRATION,
    ROWS,
    Choice,
    Number,
    Optional,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.learners import privatree
from privet.learners.privatree import PrivaTreeOptions
from privet.privacy import Budget, LedgerStore, exact
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

#: Deeper trees than this would have more leaves than anybody labels.
DEEPEST = 12
BINNINGS = ("auto", "quantile", "joint-quantile", "scales", "uniform", "leaking-quantile")


@register("privatree")
class PrivaTreeClassifier(PrivateTreeEstimator):
    """A private binary tree with few levels and a label budget that suffices (PrivaTree).

    Every node is split by one private selection among all bins of all features. Leaves are labelled
    with as much budget as their expected error asks for, and the splits get the rest.

    The paper's own algorithm is ``calibration="published", split="histogram",
    binning="joint-quantile"``; ``calibration="published"`` alone changes only the noise (and
    the default of ``max_bins``).

    Parameters
    ----------
    <epsilon>
    <schema>
    max_depth : int, default=4
        The number of levels.
    max_bins : int, optional
        Bins of a numeric feature ("scales": its even steps). By default 16 at quantiles, 64 of
        equal width, 4 to 32 even steps, and 10 (the paper's) with ``calibration="published"``.
    leaf_error : float, default=0.01
        How much accuracy wrong labels may cost in expectation, if half of the budget pays for it.
    binning : str, default="auto"
        Where the bins of numbers end: at private quantiles, found one after the other ("quantile")
        or, as in the paper and for up to 32 bins, all at once ("joint-quantile"); at public cuts of
        several scales between the schema's bounds ("scales"); or at equal widths ("uniform").
        "auto" takes quantiles where rows x epsilon pays for them, and else "scales".
        "leaking-quantile" (the paper's PrivaTree*) takes quantiles without noise: the model is
        marked as not private, its card has an infinite epsilon, and a ledger is refused.
    split : {"select", "histogram"}, default="select"
        One private selection, or noisy histograms of every feature, as in the paper.
    categories : {"auto", "ordered"}, default="auto"
        Features with up to five codes offer all ways to divide them in two. Those with more offer
        one against the rest, or ("ordered") cuts of the codes in the order of noisy class
        shares, which are bought.
    calibration : {"valid", "published"}, default="valid"
        "published" gives every feature the noise that the paper counts once for all of them. The
        ledger charges what it costs, which is more than ``epsilon``: the fit warns. It needs
        ``n_rows``.
    n_rows : int, optional
        The number of rows, if it is public. If None, two per cent of the budget buy a noisy count.
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
    Releases a noisy count of rows (unless declared), private quantiles of the numeric features (if
    so binned), one split per node or noisy class histograms of all features, and one label per
    leaf; ``epsilon``-DP for adding or removing one record, or what ``privacy_`` says if published
    (docs/proofs/privatree.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivaTreeClassifier, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = PrivaTreeClassifier(epsilon=1.0, schema=schema, max_depth=2).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_depth": WholeNumber(1, DEEPEST),
        "max_bins": Optional(WholeNumber(2, 1024)),
        "leaf_error": Number(0, 1),
        "binning": Choice(BINNINGS),
        "split": Choice(("select", "histogram")),
        "categories": Choice(("auto", "ordered")),
        "calibration": CALIBRATION,
        "n_rows": ROWS,
    }
    asks: ClassVar[frozenset[str]] = frozenset({"choose_labels"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int = 4,
        max_bins: int | None = None,
        leaf_error: float = 0.01,
        binning: str = "auto",
        split: str = "select",
        categories: str = "auto",
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
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.leaf_error = leaf_error
        self.binning = binning
        self.split = split
        self.categories = categories
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        if given["binning"] == "joint-quantile" and (given["max_bins"] or 0) > 32:
            raise BudgetError("max_bins must be at most 32 for binning='joint-quantile'")
        rows, published = given.pop("n_rows"), given.pop("calibration") == "published"
        if published and rows is None:
            raise BudgetError(
                "calibration='published' takes the number of rows as public, as the paper does: "
                "give n_rows"
            )
        return {"n_rows": rows, "options": PrivaTreeOptions(published=published, **given)}

    def _asks(self, **options: Any) -> tuple[str, ...]:
        return (*super()._asks(), *["noisy_counts"] * (options["n_rows"] is None))

    def _check_table(self, table: Table, **options: Any) -> None:
        given: PrivaTreeOptions = options["options"]
        if table.protocol is None:
            return
        if given.published:
            raise FederationError("the published calibration of PrivaTree is for one table")
        if given.binning not in ("scales", "uniform") or given.categories == "ordered":
            raise FederationError(
                "parties do not tell quantiles or orders of categories: for a federation give "
                "binning='scales' or 'uniform', and leave categories='auto'"
            )
        sizes = privatree.count_sizes(table.schema, given)
        table.check_choices(Gini(), sum(options for options, _ in sizes))

    def _not_covered(self) -> str | None:
        return "binning='leaking-quantile'" if self.binning == "leaking-quantile" else None

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        del payer
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        given = self._check_parameters(schema)
        cost = privatree.published_cost(schema, given["n_rows"], asked.limit, given["options"])
        return self._published_budget(cost, "the features are not disjoint data")

    def _learn(self, table: Table, **options: Any) -> Tree:
        return privatree.learn(table, amount=exact(self.epsilon), **options)
