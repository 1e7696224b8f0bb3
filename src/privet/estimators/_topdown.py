"""The scikit-learn face of DP-TopDown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from privet.criteria import CRITERIA, make_criterion
from privet.errors import BudgetError, FederationError
from privet.estimators._base import PrivateTreeEstimator
from privet.estimators.parameters import (
    CALIBRATION,
    DEPTH,
    ROWS,
    Automatic,
    Choice,
    Number,
    Optional,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.learners import topdown
from privet.learners.topdown import TopDownOptions
from privet.privacy import Budget, LedgerStore, as_written, exact
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

MOST_NODES, MOST_THRESHOLDS = 2**20, 1023


@register("topdown")
class TopDownClassifier(PrivateTreeEstimator):
    """A private tree grown best first (DP-TopDown).

    The leaf whose split gains most is split next, up to ``max_nodes`` splits. Splits and their
    gains are asked level by level, which costs no more; the order follows from released gains.

    Parameters
    ----------
    <epsilon>
    <schema>
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

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_nodes": WholeNumber(1, MOST_NODES),
        "max_depth": Automatic(DEPTH),
        "budget": Choice(("decay", "uniform"), function="the level"),
        "leaf_fraction": Number(0, 1),
        "criterion": Choice(("gini", "clipped_entropy", "entropy", "max")),
        "split": Choice(("flip", "exponential", "rnm")),
        "n_thresholds": Optional(WholeNumber(1, MOST_THRESHOLDS)),
        "min_gain": Optional(Number(0, math.inf, with_low=True)),
        "min_weight": Optional(Number(0, 1)),
        "calibration": CALIBRATION,
        "n_rows": ROWS,
    }
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
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
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
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        if self.criterion == "root_gini":
            raise BudgetError(
                "criterion='root_gini' is refused: one record changes it by about the square root "
                "of the rows, which no noise covers; use 'gini' or 'clipped_entropy'"
            )
        given = super()._check_parameters(schema)
        rows, published = given.pop("n_rows"), given.pop("calibration") == "published"
        name, thresholds = given.pop("criterion"), given.pop("n_thresholds")
        if published:
            self._check_published(rows)
            thresholds = thresholds or topdown.PAPER_THRESHOLDS
            if given["min_weight"] is None:
                given["min_weight"] = topdown.PAPER_ERROR / given["max_nodes"]
        elif rows is None and "n_max" in CRITERIA[name].needs:
            raise BudgetError(
                f"criterion={name!r} needs n_rows, the public number of rows or a bound on it; "
                "'clipped_entropy' needs none"
            )
        if callable(self.budget):  # it is asked for each level once: the books rest on one answer
            given["budget"] = cache(self.budget)
        given["leaf_fraction"] = Fraction(as_written(given["leaf_fraction"]))
        bound = None if rows is None else max(rows, 2)
        options = TopDownOptions(
            criterion=make_criterion(name, classes=len(schema.classes or ()), n_max=bound),
            thresholds=thresholds or topdown.THRESHOLDS,
            published=published,
            **given,
        )
        topdown.check_budget(options)
        return {"n_rows": rows, "options": options}

    def _check_published(self, rows: int | None) -> None:
        """Raise if the paper has no such tree."""
        if rows is None:
            raise BudgetError(
                "calibration='published' takes the number of rows as public, as the paper does: "
                "give n_rows"
            )
        if self.split != "rnm":
            raise BudgetError("the paper chooses splits by report noisy max: give split='rnm'")
        if self.criterion not in ("entropy", "gini"):
            raise BudgetError("calibration='published' has criterion='entropy' and 'gini' only")

    def _asks(self, **options: Any) -> tuple[str, ...]:
        if options["options"].published:
            return (*super()._asks(), "noisy_candidate_gains")
        counts = ["noisy_counts"] * topdown.counts_rows(**options)
        return (*super()._asks(), "choose_best", "choose_labels", *counts)

    def _check_table(self, table: Table, **options: Any) -> None:
        given: TopDownOptions = options["options"]
        if given.published and not table.can("noisy_candidate_gains"):
            raise FederationError(
                "the published calibration is for one table: it releases the gains of all splits"
            )
        number = topdown.count_candidates(table.schema, given.thresholds)
        table.check_choices(given.criterion, number, given.split)

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        del payer
        asked = Budget(self.epsilon)
        if self.calibration != "published" or asked.limit == float("inf"):
            return asked
        given = self._check_parameters(schema)
        cost = topdown.published_cost(schema, given["n_rows"], asked.limit, given["options"])
        return self._published_budget(cost, "the score beside a chosen split is not free")

    def _learn(self, table: Table, **options: Any) -> Tree:
        if self.calibration == "published":
            return topdown.learn_published(table, amount=exact(self.epsilon), **options)
        return topdown.learn(table, **options)
