"""The scikit-learn face of whole trees."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from privet.errors import BudgetError
from privet.estimators._base import PrivateRegressor, PrivateTreeEstimator, SingleTree
from privet.estimators._weights import ClassWeights
from privet.estimators.parameters import (
    DEPTH,
    ROWS,
    Automatic,
    Boolean,
    Choice,
    Number,
    Parameter,
    WholeNumber,
)
from privet.estimators.registry import register
from privet.learners import regression_trees, whole_trees
from privet.privacy import LedgerStore, as_written
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

#: A greedy tree's number of nodes doubles with every level.
DEEPEST_NUMBER = 12


@register("tree")
class PrivateTreeClassifier(PrivateTreeEstimator):
    """A private decision tree, drawn whole.

    Small trees with their labels are drawn at once from the exponential mechanism over *all* such
    trees, and deeper ones stack them: there is no budget per level, no budget for labels, and
    nothing to tune. Tests, depth and shares follow from the schema, epsilon and the number of rows.
    From 1,000 rows x epsilon on, leaves have noisy class counts, and so probabilities; their labels
    are still the drawn ones. Where ``n_rows`` says that rows x epsilon is below 10, the tests are
    public and only labels are bought. With two classes no small tree is drawn with more than an
    epsilon of 2: the rest of a larger budget stays unspent.

    Parameters
    ----------
    <epsilon>
    <schema>
    max_depth : int or "auto", default="auto"
        Most tests on a path; "auto" lets rows x epsilon decide: 2, 3, 6 or 9, less
        on very wide tables.
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, two per cent
        of the budget buy a noisy count instead.
    probability_share : float or "auto", default="auto"
        Part of the budget for class counts in the leaves, from which ``predict_proba`` is computed.
        "auto" takes 0.05 from 1,000 rows x epsilon on, else 0. With 0 a leaf is sure of its
        label, which ranks badly.
    <merge_tests>
    <class_weight>
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
    Releases a noisy count of rows (unless declared), private quantiles where rows x epsilon pays
    for them, one drawn tree per block and cell (or labels of public tests), and noisy class counts
    of the leaves where they pay or are asked for; ``epsilon``-DP for adding or removing one record
    (docs/proofs/whole-trees.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateTreeClassifier, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = PrivateTreeClassifier(epsilon=1.0, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_depth": Automatic(DEPTH),
        "n_rows": ROWS,
        "probability_share": Automatic(Number(0, 1, with_low=True)),
        "merge_tests": Boolean(),
        "class_weight": ClassWeights(),
    }
    _least_epsilon: ClassVar[float] = 1e-4
    asks: ClassVar[frozenset[str]] = frozenset({"draw_trees"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int | str = "auto",
        n_rows: int | None = None,
        probability_share: float | str = "auto",
        merge_tests: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.n_rows = n_rows
        self.probability_share = probability_share
        self.merge_tests = merge_tests
        self.class_weight = class_weight
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        whole_trees.check_schema(schema)
        given = super()._check_parameters(schema)
        share, least = given["probability_share"], self._least_epsilon
        if float(self.epsilon) * (1 - (share or 0)) < least:
            raise BudgetError(f"epsilon (less the probabilities' part) must be at least {least}")
        given["merge"] = given.pop("merge_tests")
        exactly = None if share is None else Fraction(as_written(share))
        return {**given, "probability_share": exactly}

    def _learn(self, table: Table, **options: Any) -> Tree:
        return whole_trees.learn(table, amount=table.ledger.budget.limit, **options)


@register("tree")
class PrivateTreeRegressor(SingleTree, PrivateRegressor):
    """A private decision tree for a number, drawn in small whole trees.

    Blocks of up to three levels are drawn at once from the exponential mechanism over all such
    trees, on records that pull at the mean of their cell; each buys the means of its leaves, drawn
    towards the mean above by the noise's deviation. Residuals are cut at a private scale of them,
    bought anew from block to block: noise is proportional to that, and by the other criteria to the
    whole range. Where rows x epsilon is below about 150, the target's private median is the model.

    Parameters
    ----------
    <epsilon>
    <schema with bounds>
    max_depth : int or "auto", default="auto"
        Most tests on a path; "auto" lets rows x epsilon decide: 2, 3, 6 or 9 if linear.
    criterion : "linear", "sad" or "sse", default="linear"
        "linear" draws whole trees by linear errors. "sad" and "sse" choose one split after the
        other by absolute or squared errors, which was less accurate on most data
        (benchmarks/results/regression.md).
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, a noisy
        count does.
    <merge_tests>
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    <tree_>
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    Releases a noisy count if ``n_rows`` is not given, the target's median and scales of the
    residuals where rows x epsilon pays for them, two complementary sums of the table, private
    quantiles likewise, per block one drawn tree for every leaf above and sums in its leaves (or one
    split per node and sums in the leaves); ``epsilon``-DP for adding or removing one record
    (docs/proofs/regression-trees.md, docs/proofs/reach.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateTreeRegressor, Schema
    >>> x = np.linspace(0, 100, 10_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="days", bounds=(0, 30))
    >>> model = PrivateTreeRegressor(epsilon=1.0, schema=schema).fit(x, 30 - 0.2 * x[:, 0])
    >>> early, late = model.predict([[5.0], [95.0]])
    >>> bool(early > late + 10)
    True
    """

    learner: ClassVar[str] = "regression tree"  # in model files
    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "max_depth": Automatic(WholeNumber(1, DEEPEST_NUMBER)),
        "criterion": Choice(regression_trees.CRITERIA),
        "n_rows": ROWS,
        "merge_tests": Boolean(),
    }
    _least_epsilon: ClassVar[float] = 1e-3
    asks: ClassVar[frozenset[str]] = frozenset({"noisy_gradients", "start_scores"})

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        max_depth: int | str = "auto",
        criterion: str = "linear",
        n_rows: int | None = None,
        merge_tests: bool = True,
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
        self.n_rows = n_rows
        self.merge_tests = merge_tests
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        whole_trees.check_schema(schema)
        given = super()._check_parameters(schema)
        given["merge"] = given.pop("merge_tests")
        return given

    def _learn(self, table: Table, **options: Any) -> Tree:
        return regression_trees.learn(table, amount=table.ledger.budget.limit, **options)
