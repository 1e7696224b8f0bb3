"""The scikit-learn face of DP-TopDown."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from privet.criteria import ClippedEntropy, Criterion, Entropy, Gini, Max
from privet.errors import BudgetError, FederationError, PublishedCostWarning
from privet.estimators._base import PrivateTreeEstimator, check_depth, check_rows
from privet.learners import topdown
from privet.learners.topdown import Options
from privet.privacy import Budget, LedgerStore, exact
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

_CHOICES = {
    "split": ("flip", "exponential", "rnm"),
    "calibration": ("valid", "published"),
}
_MOST_NODES, _MOST_THRESHOLDS = 2**20, 1023


class TopDownClassifier(PrivateTreeEstimator):
    """A private tree grown best first (DP-TopDown).

    The leaf whose split gains most is split next, up to ``max_nodes`` splits. Splits and their
    gains are asked level by level, which costs no more; the order follows from released gains.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
    schema : Schema
        What is public about the table. If None, it is drafted from the data, which leaks: the fit
        warns and the model is marked as not private.
    max_nodes : int, default=512
        Most splits.
    max_depth : int or "auto", default="auto"
        Most tests on a path. "auto" goes down to where a cell has, on average, rows for eight
        scales of the noise that its split is chosen with.
    budget : {"decay", "uniform"} or callable, default="decay"
        What the levels get of the budget for growing: seven eighths of what the level above has
        (``published``: half), all the same, or a weight ``budget(level)`` above zero for every
        level from 1 on.
    leaf_fraction : float, default=0.5
        Part of the budget for labels. They also get what growing leaves over.
    criterion : {"gini", "clipped_entropy", "entropy", "max"}, default="gini"
        How splits are scored. ``"entropy"`` needs ``n_rows``.
    split : {"flip", "exponential", "rnm"}, default="flip"
        How a split is chosen: permute-and-flip, the exponential mechanism, or report noisy max
        with Laplace noise, as in the paper.
    n_thresholds : int, optional
        Evenly spaced cuts of a number. By default 31, and 10 (the paper's) with
        ``calibration="published"``.
    min_gain : float, optional
        Least released gain of a split, in records times impurity, from 0 on. By default a split
        must gain something; with ``calibration="published"`` 0.01 per record of a cell.
    min_weight : float, optional
        Least part of the rows in a cell that is split, by released counts. By default none; with
        ``calibration="published"`` 0.1 by ``max_nodes``.
    calibration : {"valid", "published"}, default="valid"
        "published" adds the paper's noise and releases the score beside the chosen split. The
        ledger charges what it costs, mostly more than ``epsilon``: the fit warns. For
        ``split="rnm"``, "entropy" and "gini", and one table; it needs ``n_rows``.
    n_rows : int, optional
        The number of rows (or a bound on it), if it is public. If None, two per cent of the budget
        buy a noisy count where it is needed.
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
    Releases a noisy count of rows (if needed and not declared), per level one split and noisy
    class counts of its children for each cell that best-first may want, and one label per leaf;
    ``epsilon``-DP for adding or removing one record, or what ``privacy_`` says if published
    (docs/proofs/topdown.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, Schema, TopDownClassifier
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = TopDownClassifier(epsilon=1.0, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    learner: ClassVar[str] = "topdown"
    asks: ClassVar[frozenset[str]] = frozenset({"noisy_class_counts"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_nodes: int = 512,
        max_depth: int | str = "auto",
        budget: str | Callable[[int], float] = "decay",
        leaf_fraction: float = 0.5,
        criterion: str = "gini",
        split: str = "flip",
        n_thresholds: int | None = None,
        min_gain: float | None = None,
        min_weight: float | None = None,
        calibration: str = "valid",
        n_rows: int | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self.budget = budget
        self.leaf_fraction = leaf_fraction
        self.criterion = criterion
        self.split = split
        self.n_thresholds = n_thresholds
        self.min_gain = min_gain
        self.min_weight = min_weight
        self.calibration = calibration
        self.n_rows = n_rows
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        assert schema.classes is not None
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise BudgetError(f"{name} must be one of {', '.join(map(repr, allowed))}")
        if not callable(self.budget) and self.budget not in ("decay", "uniform"):
            raise BudgetError("budget must be 'decay', 'uniform' or a function of the level")
        published = self.calibration == "published"
        nodes = _whole(self.max_nodes, "max_nodes", 1, _MOST_NODES)
        thresholds: Any = self.n_thresholds
        if thresholds is None:
            thresholds = topdown.PAPER_THRESHOLDS if published else topdown.THRESHOLDS
        if isinstance(self.max_depth, str) and self.max_depth != "auto":
            raise BudgetError("max_depth must be a whole number or 'auto'")
        weight = self.min_weight
        if weight is None and published:
            weight = topdown.PAPER_ERROR / nodes
        rows = check_rows(self.n_rows)
        if published and rows is None:
            raise BudgetError(
                "calibration='published' takes the number of rows as public, as the paper does: "
                "give n_rows"
            )
        if published and self.split != "rnm":
            raise BudgetError("the paper chooses splits by report noisy max: give split='rnm'")
        options = Options(
            max_nodes=nodes,
            max_depth=None if self.max_depth == "auto" else check_depth(self.max_depth),
            # A function is asked for each level once: the books rest on one answer.
            budget=cache(self.budget) if callable(self.budget) else self.budget,
            leaf_fraction=Fraction(_number(self.leaf_fraction, "leaf_fraction", 0, 1)),
            criterion=_criterion(self.criterion, rows, len(schema.classes), published=published),
            split=self.split,
            thresholds=_whole(thresholds, "n_thresholds", 1, _MOST_THRESHOLDS),
            min_gain=None if self.min_gain is None else _number(self.min_gain, "min_gain", 0),
            min_weight=None if weight is None else _number(weight, "min_weight", 0, 1),
            published=published,
        )
        topdown.check_budget(options)
        return {"n_rows": rows, "options": options}

    def _asks(self, **options: Any) -> tuple[str, ...]:
        if options["options"].published:
            return (*super()._asks(), "noisy_candidate_gains")
        counts = ["noisy_counts"] * topdown.counts_rows(**options)
        return (*super()._asks(), "choose_best", "choose_labels", *counts)

    def _check_table(self, table: Table, **options: Any) -> None:
        given: Options = options["options"]
        if given.published and not table.can("noisy_candidate_gains"):
            raise FederationError(
                "the published calibration is for one table: it releases the gains of all splits"
            )
        number = topdown.count_candidates(table.schema, given.thresholds)
        table.check_choices(given.criterion, number, given.split)

    def _budget(self, schema: Schema) -> Budget:
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        given = self._check_parameters(schema)
        cost = topdown.published_cost(schema, given["n_rows"], asked.limit, given["options"])
        if cost > asked.limit:
            warnings.warn(
                f"as published, this costs epsilon {float(cost):.4g}, not the {self.epsilon:g} "
                "that the paper counts: the score beside a chosen split is not free",
                PublishedCostWarning,
                stacklevel=3,
            )
        return Budget(cost)

    def _learn(self, table: Table, **options: Any) -> Tree:
        if self.calibration == "published":
            return topdown.learn_published(table, amount=exact(self.epsilon), **options)
        return topdown.learn(table, **options)


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise BudgetError(f"{name} must be a whole number")
    if not low <= value <= high:
        raise BudgetError(f"{name} must lie between {low} and {high}")
    return int(value)


def _number(value: Any, name: str, low: float, high: float = math.inf) -> float:
    known = isinstance(value, Real) and not isinstance(value, bool)
    # A number without an upper limit may be the lower one; one that is no float is no limit.
    if not known or not (low < value < min(high, 1e300) or value == low < high == math.inf):
        limit = f"above {low} and below {high}" if high < math.inf else "a finite number from 0 on"
        raise BudgetError(f"{name} must be {limit}")
    return float(value)


def _criterion(name: Any, rows: int | None, classes: int, *, published: bool) -> Criterion:
    if name == "root_gini":
        raise BudgetError(
            "criterion='root_gini' is refused: one record changes it by about the square root of "
            "the rows, which no noise covers; use 'gini' or 'clipped_entropy'"
        )
    if published and name not in ("entropy", "gini"):
        raise BudgetError("calibration='published' has criterion='entropy' and 'gini' only")
    if name == "gini":
        return Gini()
    if name == "max":
        return Max()
    if name == "clipped_entropy":
        return ClippedEntropy(min(0.02, 0.5 / classes), classes)
    if name == "entropy":
        if rows is None:
            raise BudgetError(
                "criterion='entropy' needs n_rows, the public number of rows or a bound on it; "
                "'clipped_entropy' needs none"
            )
        return Entropy(max(rows, 2))
    raise BudgetError("criterion must be 'gini', 'clipped_entropy', 'entropy' or 'max'")
