"""The scikit-learn faces of boosted whole trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.ensemble import Ensemble
from privet.errors import BudgetError
from privet.estimators._base import PrivateClassifier, PrivateEstimator, PrivateRegressor
from privet.estimators._weights import ClassWeights
from privet.estimators.parameters import ROWS, Automatic, Boolean, Choice, Parameter, WholeNumber
from privet.estimators.registry import register
from privet.learners import boosting, whole_trees
from privet.privacy import Budget, LedgerStore
from privet.schema import Schema
from privet.tables import Table
from privet.tree import Tree

#: With less per round, no round is better than a guess.
SMALLEST_ROUND = 2e-5
MOST_ROUNDS = 1_000


class _Boosting(PrivateEstimator):
    """What both share: the parameters of the rounds."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        "n_rounds": Automatic(WholeNumber(1, MOST_ROUNDS)),
        "max_depth": Automatic(WholeNumber(1, 3)),
        "n_rows": ROWS,
        "merge_tests": Boolean(),
    }
    _least_epsilon: ClassVar[float] = 1e-3
    asks: ClassVar[frozenset[str]] = frozenset({"draw_trees"})

    delta: float | None
    n_rounds: int | str
    max_depth: int | str
    n_rows: int | None
    merge_tests: bool

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        del schema, payer
        return Budget(self.epsilon, delta=self.delta)

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        whole_trees.check_schema(schema)
        given = super()._check_parameters(schema)
        least = SMALLEST_ROUND * schema.unit_parts
        if float(self.epsilon) < least * (given["n_rounds"] or 1):
            raise BudgetError("epsilon is too small to be shared by this number of rounds")
        given["merge"] = given.pop("merge_tests")
        return given


@register("boosting")
class PrivateBoostingClassifier(_Boosting, PrivateClassifier):
    """Private boosted trees, whose probabilities rank and can be trusted.

    Each round draws a small tree whole, on records that weigh by how wrong the model still is, and
    takes noisy Newton steps in its leaves. Rounds, depth and shares follow from the schema, the
    budget and the number of rows. With ``delta`` and two classes, small tables are ranked by slopes
    instead, a few functions of every feature, and the labels of one drawn tree; where rows are too
    few, and on small tables of more classes, the model is one tree with noisy class counts in its
    leaves, and lines that rank records within them; if one of two classes is rare, a tree that
    tells where it is less rare.

    Parameters
    ----------
    <epsilon>
    <schema>
    <delta>
    n_rounds : int or "auto", default="auto"
        How many trees; "auto" lets rows x epsilon decide, and whether a single tree is better.
    max_depth : int or "auto", default="auto"
        Most tests on a path of a round's tree, 1 to 3.
    aim : "probabilities" or "labels", default="probabilities"
        What matters. At pure epsilon a single tree labels better than boosting up to about
        50,000 rows x epsilon, but ranks worse from about 2,000. With ``delta``, labels take that
        tree as well, and small tables of two classes get slopes for probabilities only.
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, the noisy
        class counts of the start steer them; with ``delta``, a noisy count that two per cent of
        epsilon buy. A single tree is paid in pure epsilon, which is cheaper for it, unless the
        fit draws from a table or a ledger file that counts in rho.
    <merge_tests>
    <class_weight>
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
    Releases noisy class counts, private quantiles where rows x epsilon pays for them, and per round
    one drawn tree and noisy sums of derivatives in its leaves; with ``delta`` also noisy moments of
    the features and noisy slopes, and a noisy count of rows if ``n_rows`` is not given (or what
    :class:`PrivateTreeClassifier` releases); epsilon-DP or (epsilon, delta)-DP for adding or
    removing one record (docs/proofs/boosting.md, docs/proofs/slopes.md, docs/proofs/ledger.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateBoostingClassifier, Schema
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = PrivateBoostingClassifier(epsilon=1.0, delta=1e-6, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {
        **_Boosting._parameters,
        "aim": Choice(("probabilities", "labels")),
        "class_weight": ClassWeights(),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        delta: float | None = None,
        n_rounds: int | str = "auto",
        max_depth: int | str = "auto",
        aim: str = "probabilities",
        n_rows: int | None = None,
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
        self.delta = delta
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.aim = aim
        self.n_rows = n_rows
        self.merge_tests = merge_tests
        self.class_weight = class_weight
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        """Return a pure budget for a single tree, which is cheaper in epsilon than in zCDP.

        If the rows are to be counted, their noisy number decides, and the budget covers both. A
        payer that counts in zCDP cannot pay for epsilon well.
        """
        asked = Budget(self.epsilon, delta=self.delta)
        if self.delta is None or self.n_rounds != "auto":
            return asked
        if payer is not None and payer.accountant != "pure":
            return asked
        if self.n_rows is None:
            return asked if payer else Budget(self.epsilon, delta=self.delta, either=True)
        single = boosting.tree_in_epsilon_is_better(
            self._rows_to_learn_from(self.n_rows),
            asked,
            classes=len(schema.classes or ()),
            labels_only=self.aim == "labels",
        )
        return Budget(self.epsilon) if single else asked

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        given["labels_only"] = given.pop("aim") == "labels"
        return given

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        budget = table.ledger.budget
        if self.delta is not None and budget.accountant == "pure":  # as _budget decided
            options["single"] = True
        return boosting.learn_classes(table, amount=budget.limit, **options)


@register("boosting")
class PrivateBoostingRegressor(_Boosting, PrivateRegressor):
    """Private boosted trees for a number.

    As :class:`PrivateBoostingClassifier`, but never a single tree, on residuals that are cut at a
    distance: a private scale of them, bought anew as the model grows, or on small tables with
    ``delta`` a public part of the target's range. Noise is proportional to that distance, so that
    bounds of the target that are wider than need be cost little. Where rows x epsilon is below
    about 150, nothing can be learnt but the target's private median, and this is the model.

    Parameters
    ----------
    <epsilon>
    <schema>
    <delta>
    n_rounds : int or "auto", default="auto"
        How many trees; "auto" lets rows x epsilon decide.
    max_depth : int or "auto", default="auto"
        Most tests on a path of a round's tree, 1 to 3.
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, a noisy count
        does, for two per cent of the budget.
    <merge_tests>
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble
        What is published.
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    Releases a noisy count if ``n_rows`` is not given, the target's median and scales of the
    residuals where rows x epsilon pays for them, a noisy mean, private quantiles likewise, and per
    round one drawn tree and noisy sums and counts of its leaves; epsilon-DP or (epsilon, delta)-DP
    for adding or removing one record (docs/proofs/boosting.md, docs/proofs/reach.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateBoostingRegressor, Schema
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="response", bounds=(0, 10))
    >>> response = np.where(x[:, 0] > 40, 8.0, 2.0)
    >>> model = PrivateBoostingRegressor(epsilon=1.0, delta=1e-6, schema=schema).fit(x, response)
    >>> bool(model.predict([[10.0]])[0] < 4 < 6 < model.predict([[90.0]])[0])
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        delta: float | None = None,
        n_rounds: int | str = "auto",
        max_depth: int | str = "auto",
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
        self.delta = delta
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.n_rows = n_rows
        self.merge_tests = merge_tests
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _learn(self, table: Table, **options: Any) -> Ensemble:
        return boosting.learn_number(table, amount=table.ledger.budget.limit, **options)
