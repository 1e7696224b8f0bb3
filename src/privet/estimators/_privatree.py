"""The scikit-learn face of PrivaTree."""

from __future__ import annotations

import warnings
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from privet.criteria import Gini
from privet.errors import BudgetError, FederationError, PublishedCostWarning
from privet.estimators._base import PrivateTreeEstimator, check_depth, check_rows
from privet.learners import privatree
from privet.learners.privatree import Options
from privet.privacy import Budget, LedgerStore, exact
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

#: Deeper trees than this would have more leaves than anybody labels.
DEEPEST = 12
_CHOICES = {
    "binning": ("auto", "quantile", "joint-quantile", "scales", "uniform", "leaking-quantile"),
    "split": ("select", "histogram"),
    "categories": ("auto", "ordered"),
    "calibration": ("valid", "published"),
}


class PrivaTreeClassifier(PrivateTreeEstimator):
    """A private binary tree with few levels and a label budget that suffices (PrivaTree).

    Every node is split by one private selection among all bins of all features. Leaves are labelled
    with as much budget as their expected error asks for, and the splits get the rest.

    The paper's own algorithm is ``calibration="published", split="histogram",
    binning="joint-quantile"``; ``calibration="published"`` alone changes only the noise (and
    the default of ``max_bins``).

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table. If None, it is drafted from the data, which leaks: the fit
        warns and the model is marked as not private.
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

    learner: ClassVar[str] = "privatree"
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

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        del schema
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise BudgetError(f"{name} must be one of {', '.join(map(repr, allowed))}")
        depth = check_depth(self.max_depth)
        if depth > DEEPEST:
            raise BudgetError(f"max_depth must lie between 1 and {DEEPEST}")
        error: Any = self.leaf_error
        if isinstance(error, bool) or not isinstance(error, Real) or not 0 < float(error) < 1:
            raise BudgetError("leaf_error must lie between 0 and 1")
        bins: Any = self.max_bins
        whole = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
        if bins is not None and (not whole or not 2 <= bins <= 1024):
            raise BudgetError("max_bins must be a whole number from 2 to 1024")
        if self.binning == "joint-quantile" and bins is not None and bins > 32:
            raise BudgetError("max_bins must be at most 32 for binning='joint-quantile'")
        rows, published = check_rows(self.n_rows), self.calibration == "published"
        if published and rows is None:
            raise BudgetError(
                "calibration='published' takes the number of rows as public, as the paper does: "
                "give n_rows"
            )
        options = Options(
            max_depth=depth,
            max_bins=None if bins is None else int(bins),
            leaf_error=float(error),
            binning=self.binning,
            split=self.split,
            categories=self.categories,
            published=published,
        )
        return {"n_rows": rows, "options": options}

    def _asks(self, **options: Any) -> tuple[str, ...]:
        return (*super()._asks(), *["noisy_counts"] * (options["n_rows"] is None))

    def _check_table(self, table: Table, **options: Any) -> None:
        given: Options = options["options"]
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

    def _budget(self, schema: Schema) -> Budget:
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        given = self._check_parameters(schema)
        cost = privatree.published_cost(schema, given["n_rows"], asked.limit, given["options"])
        if cost > asked.limit and self._not_covered() is None:
            warnings.warn(
                f"as published, this costs epsilon {float(cost):.4g}, not the {self.epsilon:g} "
                "that the paper counts: the features are not disjoint data",
                PublishedCostWarning,
                stacklevel=3,
            )
        return Budget(cost)

    def _learn(self, table: Table, **options: Any) -> Tree:
        return privatree.learn(table, amount=exact(self.epsilon), **options)
