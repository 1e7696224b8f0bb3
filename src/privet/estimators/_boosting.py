"""The scikit-learn faces of boosted whole trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.ensemble import Ensemble
from privet.errors import BudgetError
from privet.estimators._base import (
    PrivateClassifier,
    PrivateEstimator,
    PrivateRegressor,
    open_store,
)
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

    def _decide(self, schema: Schema) -> tuple[Budget, bool | None]:
        """Return the fit's budget, and whether it is one tree; by public numbers alone.

        None leaves that to the noisy count, because the number of rows is not declared.
        """
        raise NotImplementedError

    def _budget(self, schema: Schema) -> Budget:
        return self._decide(schema)[0]

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        whole_trees.check_schema(schema)
        given = super()._check_parameters(schema)
        if float(self.epsilon) < SMALLEST_ROUND * (given["n_rounds"] or 1):
            raise BudgetError("epsilon is too small to be shared by this number of rounds")
        given["merge"] = given.pop("merge_tests")
        return {**given, "single": self._decide(schema)[1]}


@register("boosting")
class PrivateBoostingClassifier(_Boosting, PrivateClassifier):
    """Private boosted trees, whose probabilities rank and can be trusted.

    Each round draws a small tree whole, on records that weigh by how wrong the model still is, and
    takes noisy Newton steps in its leaves. Rounds, depth and shares follow from the schema, the
    budget and the number of rows. With ``delta`` and two classes, small tables are ranked by slopes
    instead, a few functions of every feature, and the labels of one drawn tree; where rows are too
    few, the model is one tree with noisy class counts in its leaves.

    Parameters
    ----------
    <epsilon>
    <delta>
    <schema>
    n_rounds : int or "auto", default="auto"
        How many trees; "auto" lets rows x epsilon decide, and whether a single tree is better.
    max_depth : int or "auto", default="auto"
        Most tests on a path of a round's tree, 1 to 3.
    aim : "probabilities" or "labels", default="probabilities"
        What matters. At pure epsilon a single tree labels better than boosting up to about
        50,000 rows x epsilon, but ranks worse from about 5,000. With ``delta``, labels take that
        tree where ``n_rows`` is declared, and small tables of two classes get slopes for
        probabilities only.
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, the noisy
        class counts of the start steer them. With ``delta``, a small table should declare it: the
        single tree is then paid in pure epsilon, which is cheaper for it, unless the fit draws
        from a ledger file with delta or rho.
    <merge_tests>
    <ledger>
    <random_state>

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published.
    <classes_>
    <schema_>
    <privacy_>

    Privacy
    -------
    Releases noisy class counts, private quantiles where rows x epsilon pays for them, and per round
    one drawn tree and noisy sums of derivatives in its leaves; with ``delta`` also noisy moments of
    the features and noisy slopes (or what :class:`PrivateTreeClassifier` releases); epsilon-DP or
    (epsilon, delta)-DP for adding or removing one record (docs/proofs/boosting.md,
    docs/proofs/slopes.md).

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
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        n_rounds: int | str = "auto",
        max_depth: int | str = "auto",
        aim: str = "probabilities",
        n_rows: int | None = None,
        merge_tests: bool = True,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.aim = aim
        self.n_rows = n_rows
        self.merge_tests = merge_tests
        self.ledger = ledger
        self.random_state = random_state

    def _decide(self, schema: Schema) -> tuple[Budget, bool | None]:
        asked, rows = Budget(self.epsilon, delta=self.delta), self.n_rows
        if self.n_rounds != "auto":
            return asked, False
        if rows is None:
            return asked, None
        labels_only = self.aim == "labels"

        def single(kind: Budget) -> bool:
            return boosting.single_tree_is_better(
                rows,
                kind,
                kind.limit,
                classes=len(schema.classes or ()),
                labels_only=labels_only,
            )

        store, pure = open_store(self.ledger), Budget(self.epsilon)
        if asked.accountant == "pure" or (
            store is not None and store.budget.accountant != "pure"  # cannot pay pure epsilon well
        ):
            return asked, single(asked)
        # A single tree is cheaper in pure epsilon, which implies (epsilon, delta). For labels it is
        # better than boosting with delta, too, where it is better than boosting without.
        if single(asked) or (labels_only and single(pure)):
            return pure, True
        return asked, False

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        given = super()._check_parameters(schema)
        given["labels_only"] = given.pop("aim") == "labels"
        return given

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        return boosting.learn_classes(table, amount=table.ledger.budget.limit, **options)


@register("boosting")
class PrivateBoostingRegressor(_Boosting, PrivateRegressor):
    """Private boosted trees for a number.

    As :class:`PrivateBoostingClassifier`, on residuals that are cut at a public distance. The
    schema's bounds of the target matter: noise is proportional to their width. At pure epsilon and
    from 2,000 to 60,000 rows x epsilon the model is one tree, that of
    :class:`PrivateTreeRegressor`.

    Parameters
    ----------
    <epsilon>
    <delta>
    <schema>
    n_rounds : int or "auto", default="auto"
        How many trees; "auto" lets rows x epsilon decide, and whether a single tree is better.
    max_depth : int or "auto", default="auto"
        Most tests on a path of a round's tree, 1 to 3. If given, there are always rounds.
    n_rows : int, optional
        The number of rows, if it is public: it steers the automatic choices. If None, the noisy
        count of the start steers them.
    <merge_tests>
    <ledger>
    <random_state>

    Attributes
    ----------
    predictor_ : Ensemble or Tree
        What is published.
    <schema_>
    <privacy_>

    Privacy
    -------
    Releases a noisy mean and count, private quantiles where rows x epsilon pays for them, and per
    round one drawn tree and noisy sums and counts of its leaves (or what
    :class:`PrivateTreeRegressor` releases); epsilon-DP or (epsilon, delta)-DP for adding or
    removing one record (docs/proofs/boosting.md).

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
        delta: float | None = None,
        schema: Schema | None = None,
        n_rounds: int | str = "auto",
        max_depth: int | str = "auto",
        n_rows: int | None = None,
        merge_tests: bool = True,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.n_rows = n_rows
        self.merge_tests = merge_tests
        self.ledger = ledger
        self.random_state = random_state

    def _decide(self, schema: Schema) -> tuple[Budget, bool | None]:
        del schema
        asked, rows = Budget(self.epsilon, delta=self.delta), self.n_rows
        if self.n_rounds != "auto" or self.max_depth != "auto":
            return asked, False
        if rows is None:
            return asked, None
        return asked, boosting.single_tree_is_better_for_numbers(rows, asked, asked.limit)

    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        return boosting.learn_number(table, amount=table.ledger.budget.limit, **options)
