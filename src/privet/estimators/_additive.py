"""The scikit-learn faces of the additive model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from privet.ensemble import Ensemble
from privet.estimators._base import PrivateClassifier, PrivateEstimator, PrivateRegressor
from privet.estimators._weights import ClassWeights
from privet.estimators.parameters import Parameter
from privet.estimators.registry import register
from privet.learners import additive
from privet.privacy import Budget, LedgerStore
from privet.schema import Schema
from privet.tables import Table


class _Additive(PrivateEstimator):
    """What both share."""

    _least_epsilon: ClassVar[float] = 1e-6  # with less, no curve of a million rows is right
    asks: ClassVar[frozenset[str]] = frozenset({"noisy_gradients", "start_scores"})

    delta: float | None

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        delta: float | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.delta = delta
        self.ledger = ledger
        self.random_state = random_state
        self.test_share = test_share
        self.test_by = test_by
        self.verbose = verbose

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        del schema, payer
        return Budget(self.epsilon, delta=self.delta)

    def _learn(self, table: Table, **options: Any) -> Ensemble:
        return additive.learn(table, amount=table.ledger.budget.limit, **options)


@register("additive")
class PrivateAdditiveClassifier(_Additive, PrivateClassifier):
    """A private additive model: one curve per feature, added up to log odds.

    What each feature does can be looked at (``privet.export.to_svg(model.predictor_)``). Best where
    features act mostly on their own, and with few of them: the noise grows with their number. Very
    strong effects are understated: a curve moves by three full steps at most.

    Parameters
    ----------
    <epsilon>
    <schema>
    delta : float, optional
        With it the guarantee is (epsilon, delta), and the same epsilon buys much more: every
        feature is asked many times. Choose it far below one over the number of rows. None: pure
        epsilon.
    <class_weight>
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble
        What is published; ``predictor_.shapes()`` are the curves.
    <classes_>
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    Releases noisy class counts, a noisy histogram of every feature, and noisy sums of residuals in
    its joined bins, sweep by sweep; with ``delta`` and two classes first, or on small tables only,
    noisy moments and noisy slopes; epsilon-DP or (epsilon, delta)-DP for adding or removing one
    record (docs/proofs/additive.md, docs/proofs/slopes.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateAdditiveClassifier, Schema
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="cured", classes=["no", "yes"])
    >>> cured = np.where(x[:, 0] > 40, "yes", "no")
    >>> model = PrivateAdditiveClassifier(epsilon=1.0, delta=1e-6, schema=schema).fit(x, cured)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['no', 'yes']
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {"class_weight": ClassWeights()}

    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | None = None,
        delta: float | None = None,
        class_weight: Mapping[Any, float] | None = None,
        ledger: LedgerStore | str | Path | None = None,
        random_state: Any = None,
        test_share: float | None = None,
        test_by: str | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(epsilon, schema, delta, ledger, random_state, test_share, test_by, verbose)
        self.class_weight = class_weight


@register("additive")
class PrivateAdditiveRegressor(_Additive, PrivateRegressor):
    """A private additive model of a number: one curve per feature, added up.

    What each feature does can be looked at (``privet.export.to_svg(model.predictor_)``). Residuals
    are cut at a private scale of them, so that bounds of the target that are wider than need be
    cost little. Where rows x epsilon is below about 150, the target's private median is the model.

    Parameters
    ----------
    <epsilon>
    <schema>
    delta : float, optional
        With it the guarantee is (epsilon, delta), and the same epsilon buys much more: every
        feature is asked many times. Choose it far below one over the number of rows. None: pure
        epsilon.
    <ledger>
    <random_state>
    <test_share>
    <test_by>
    <verbose>

    Attributes
    ----------
    predictor_ : Ensemble
        What is published; ``predictor_.shapes()`` are the curves.
    <schema_>
    <privacy_>
    <evaluation_>

    Privacy
    -------
    Releases a noisy mean, a noisy histogram of every feature, and noisy sums of residuals in its
    joined bins, sweep by sweep; epsilon-DP or (epsilon, delta)-DP for adding or removing one record
    (docs/proofs/additive.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Numeric, PrivateAdditiveRegressor, Schema
    >>> x = np.linspace(0, 100, 20_000).reshape(-1, 1)
    >>> schema = Schema({"dose": Numeric(0, 100)}, target="response", bounds=(0, 10))
    >>> response = np.where(x[:, 0] > 40, 8.0, 2.0)
    >>> model = PrivateAdditiveRegressor(epsilon=1.0, delta=1e-6, schema=schema).fit(x, response)
    >>> bool(model.predict([[10.0]])[0] < 4 < 6 < model.predict([[90.0]])[0])
    True
    """
