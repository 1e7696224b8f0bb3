"""What all estimators share: reading input, paying, and the privacy card."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    assert_all_finite,
    check_is_fitted,
)

from privet.ensemble import Ensemble
from privet.errors import (
    BudgetError,
    ColumnTypeError,
    DataError,
    FederationError,
    LedgerFileError,
    PublishedCostWarning,
    SchemaError,
    UnsettledWarning,
)
from privet.estimators._texts import filled
from privet.estimators.parameters import Parameter
from privet.federation import FederatedTable, LocalLink, Party, ProcessLink
from privet.model import Model, PrivacyCard, class_array
from privet.outputs import OutputFile
from privet.privacy import Budget, Ledger, LedgerStore, Reservation
from privet.privacy.budget import Amount
from privet.reading import Column, Columns, Numbers, Source, column_of, is_stream
from privet.schema import Schema
from privet.tables import PrivateTable, Table
from privet.tree import Tree


class PrivateEstimator(BaseEstimator):
    """Base of all estimators.

    A subclass has parameters ``epsilon``, ``schema``, ``ledger`` and ``random_state``, declares its
    other parameters in ``_parameters``, and learns in :meth:`_learn`. Lines ``<name>`` of its
    docstring stand for texts that all share (``_texts.py``).
    """

    #: What model files call it; by default the name with which it is registered.
    learner: ClassVar[str]
    #: What its own parameters may be.
    _parameters: ClassVar[Mapping[str, Parameter]] = {}
    #: A smaller epsilon is refused: answers would be guesses, and rounding would matter.
    _least_epsilon: ClassVar[float] = 0.0
    #: The questions that its learner asks, whatever its parameters: methods of
    #: :class:`~privet.tables.Table` and :class:`~privet.tables.Cells`. If a table cannot answer
    #: one of them, the fit is refused before anything is spent.
    asks: ClassVar[frozenset[str]] = frozenset()
    #: Whether targets are classes; else they are numbers.
    _of_classes: ClassVar[bool]

    epsilon: float
    schema: Schema | None
    ledger: LedgerStore | str | Path | None
    random_state: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = None if cls.__doc__ is None else filled(cls.__doc__)

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        """Return what :meth:`_learn` needs, or raise, before anything is read or spent.

        Here: the declared parameters as learners take them.
        """
        del schema
        if float(self.epsilon) < self._least_epsilon:
            raise BudgetError(f"epsilon must be at least {self._least_epsilon}")
        return {
            name: kind.check(getattr(self, name), name) for name, kind in self._parameters.items()
        }

    @abstractmethod
    def _learn(self, table: Table, **options: Any) -> Tree | Ensemble:
        """Learn what will be published, within the table's budget."""

    def _budget(self, schema: Schema, payer: Budget | None) -> Budget:
        """Return what one fit may spend.

        Parameters
        ----------
        schema : Schema
        payer : Budget or None
            That of the ledger file or the table that pays for the fit, if there is one.
        """
        del schema, payer
        return Budget(self.epsilon)

    def _published_budget(self, cost: Amount, reason: str) -> Budget:
        """Return what a paper's noise costs; warn if that is more than the paper counts."""
        if cost > Budget(self.epsilon).limit and self._not_covered() is None:
            warnings.warn(
                f"as published, this costs epsilon {float(cost):.4g}, not the {self.epsilon:g} "
                f"that the paper counts: {reason}",
                PublishedCostWarning,
                stacklevel=4,
            )
        return Budget(cost)

    def _rows_declared(self) -> bool:
        """Tell whether the number of rows was declared as public, so that none was counted."""
        return getattr(self, "n_rows", None) is not None

    def _not_covered(self) -> str | None:
        """Return the chosen option that no budget pays for, if there is one."""
        return None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a sensitive table, spending at most ``epsilon``.

        Parameters
        ----------
        X : table, array, path, stream, Source, PrivateTable or FederatedTable
            The features: a pandas, polars or pyarrow table, or an array; or rows that need not fit
            into memory: the path of a Parquet or CSV file, of a folder of them, a pattern, blocks
            that ``privet encode`` has kept, or a stream such as a DuckDB relation. A
            :class:`~privet.reading.Source` says in addition where their blocks are put. Columns
            are found by name; those of an array are taken in the schema's order. A
            :class:`~privet.PrivateTable` has its own schema, target, noise and ledger: the fit
            draws ``epsilon`` from its budget, and fits add up. So has every party of a
            :class:`~privet.federation.FederatedTable`.
        y : column, optional
            The target. If not given, the schema's target column of ``X``. Records whose class is
            missing or not in the schema, or whose number is missing, are left out, which costs no
            privacy, since a record alone decides on it.

        Returns
        -------
        self
        """
        Budget(self.epsilon)  # nonsense is refused before anything else
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise SchemaError("schema must be a Schema; read one with Schema.from_toml(path)")
        if self.ledger is not None and self._not_covered() is not None:
            raise BudgetError(
                f"no budget covers {self._not_covered()}, so no ledger file can be charged for it; "
                "use a valid option, or leave the ledger out and publish nothing of it"
            )
        source = self._open(X, y)
        schema = source.schema
        self._check_target(schema)
        options = self._check_parameters(schema)
        asks = self._asks(**options)
        if not isinstance(source, _Rows):
            self._check_table(source, **options)
            self._check_answers(source, asks)
        payer = source.payer if isinstance(source, _Rows) else source.ledger.budget
        table = source.session(self._budget(schema, payer), asks)
        try:
            predictor = self._learn(table, **options)
        finally:
            table.ledger.close()  # what is settled must not be spent again
            if isinstance(source, _Rows) and isinstance(table, PrivateTable):
                table.close()
        if isinstance(source, _Rows):
            source.settle(table.ledger)
        self.predictor_ = predictor
        self.schema_ = schema
        if schema.classes is not None:
            self.classes_ = class_array(schema)[sorted_classes(schema)]
        self.privacy_ = PrivacyCard.of(
            table.ledger,
            table.leaks,
            rows_declared=self._rows_declared(),
            seeded=table.seeded,
            protocol=table.protocol,
            covered=table.covered,
            notes=table.notes,
        )
        self.n_features_in_ = len(schema.names)
        if isinstance(source, _Rows) and source.names is not None:
            self.feature_names_in_ = np.array(
                [name for name in source.names if name in schema.features], dtype=object
            )
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _open(self, X: Any, y: Any) -> _Rows | Table:
        """Return what to learn from: rows, or a table that somebody else opened."""
        if isinstance(X, PrivateTable | FederatedTable):
            if y is not None:
                raise DataError("a table has its own target: fit it without y")
            # Parties may have names of their own for their tables.
            if self.schema is not None and replace(self.schema, table=X.schema.table) != X.schema:
                raise SchemaError("the table has another schema; leave schema=None")
            if self.ledger is not None:
                raise BudgetError(
                    "a table has its own ledger, and so has every party: leave ledger=None (a "
                    "Party can be given a ledger file)"
                )
            if getattr(self, "random_state", None) is not None:
                raise BudgetError(
                    "a table draws its own noise: leave random_state=None, and give random_state "
                    "to the PrivateTable, or to the Party"
                )
            return X
        if isinstance(X, Party) or (isinstance(X, list | tuple) and any(map(_is_party, X))):
            raise FederationError(
                "parties are asked through a table of all of them: fit(FederatedTable([...]))"
            )
        store = open_store(self.ledger)
        if isinstance(X, Source):
            return self._open_source(X, y, store)
        if isinstance(X, str | Path) or is_stream(X):
            return self._open_source(Source(X), y, store)
        columns = Columns.of(X, self.schema)
        target = self._target(columns, y)
        schema = self._schema(columns, target)
        purpose = f"{type(self).__name__} on {schema.target!r}"
        names = columns.names if columns.named else None
        return _Rows(columns, target, schema, names, self.random_state, store, purpose)

    def _open_source(self, X: Source, y: Any, store: LedgerStore | None) -> _Rows:
        """Return rows that need not fit into memory: in files, or a stream."""
        if y is not None:
            raise DataError("files and streams have their target as a column: fit them without y")
        if self.schema is None:
            raise SchemaError(
                "files and streams need a schema: none can be drafted from what is read once"
            )
        purpose = f"{type(self).__name__} on {self.schema.target!r}"
        names = self.schema.names
        return _LargeRows(X, None, self.schema, names, self.random_state, store, purpose)

    def _asks(self, **options: Any) -> tuple[str, ...]:
        """Return the questions that this fit surely asks, by their names."""
        del options
        return tuple(sorted(self.asks))

    def _check_answers(self, table: Table, asks: Iterable[str]) -> None:
        """Raise if a table cannot answer what will be asked; say what can be learnt from it."""
        refused = sorted(question for question in asks if not table.can(question))
        if refused:
            able = dict.fromkeys(kind.__name__ for kind in _estimators() if _suits(kind, table))
            raise FederationError(
                f"{type(self).__name__} asks for more than sums over parties "
                f"({', '.join(refused)}); what learns from a federation: {', '.join(able)}"
            )

    def _check_table(self, table: Table, **options: Any) -> None:
        """Raise if a table cannot be asked in the way that this fit will, before it is asked."""
        del table, options

    def save(self, path: str | Path | OutputFile) -> None:
        """Write the fitted model, with its privacy card, to a JSON file.

        Read it with :func:`privet.load`. Whoever opens an :class:`~privet.outputs.OutputFile`
        before the fit knows before anything is spent that the file can be written.
        """
        self.to_model().save(path)

    def to_model(self) -> Model:
        """Return the fitted model as it is published, with its privacy card."""
        check_is_fitted(self)
        return Model(self.predictor_, self.privacy_, self.learner)

    def _target(self, columns: Columns, y: Any) -> Column:
        """Open the target: a column of its own, or one of the table."""
        if y is not None:
            if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
                warnings.warn(
                    "A column-vector y was passed when a 1d array was expected. Please change the "
                    "shape of y to (n_samples,), for example using ravel().",
                    DataConversionWarning,
                    stacklevel=3,
                )
            return column_of(y, "y")
        if self.schema is None or not columns.named:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        return columns.target(self.schema)

    def _schema(self, columns: Columns, target: Column) -> Schema:
        """Return the schema, drafting one from the data if there is none."""
        if self.schema is None:
            if len(target) != len(columns):
                raise DataError("X and y have different numbers of rows")
            _refuse_unusable(target, of_classes=self._of_classes)
            return Schema.draft(columns, values=target, classes=self._of_classes)
        return self.schema

    def _check_target(self, schema: Schema) -> None:
        if (schema.classes is not None) != self._of_classes:
            raise SchemaError(
                "this is a classifier: the schema needs classes=[...] instead of bounds"
                if self._of_classes
                else "this is a regressor: the schema needs bounds=(low, high) instead of classes"
            )

    def _check_columns(self, X: Any) -> Any:
        """Apply scikit-learn's rules for names and numbers of columns; ignore extra columns."""
        if isinstance(X, list | tuple):  # every row is read by itself, also one that is too short
            columns = Columns.of(X, self.schema_)
            if len(columns) and not columns.fits():
                raise DataError(
                    f"X has no row with {self.n_features_in_} values, one for every feature"
                )
            return columns
        columns = Columns.of(X)
        name = type(self).__name__
        if columns.named:
            if not set(self.schema_.names) <= set(columns.names):
                if hasattr(self, "feature_names_in_"):
                    _check_feature_names(self, X, reset=False)
                raise DataError(f"X lacks columns that {name} was fitted with")
            ours = [column for column in columns.names if column in self.schema_.features]
            if hasattr(self, "feature_names_in_") and ours != list(self.feature_names_in_):
                raise DataError(
                    "The feature names should match those that were passed during fit.\n"
                    "Feature names must be in the same order as they were in fit."
                )
        elif len(columns.names) != self.n_features_in_:
            raise DataError(
                f"X has {len(columns.names)} features, but {name} is expecting "
                f"{self.n_features_in_} features as input"
            )
        else:
            _check_feature_names(self, X, reset=False)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = self.random_state is None
        return tags


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """Base of the classifiers."""

    _of_classes: ClassVar[bool] = True

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, one column per class in the order of ``classes_``.

        They come from released numbers, so asking costs nothing.
        """
        check_is_fitted(self)
        values = self.predictor_.predict_value(self._check_columns(X))
        return values[:, sorted_classes(self.schema_)]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """Base of the regressors."""

    _of_classes: ClassVar[bool] = False

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted number of every row, within the schema's bounds."""
        check_is_fitted(self)
        return self.predictor_.predict_value(self._check_columns(X))[:, 0]


class SingleTree:
    """What all estimators have whose model is one tree."""

    predictor_: Tree | Ensemble

    @property
    def tree_(self) -> Tree:
        """The published tree."""
        check_is_fitted(self)
        assert isinstance(self.predictor_, Tree)
        return self.predictor_


class PrivateTreeEstimator(SingleTree, PrivateClassifier):
    """Base of the classifiers whose model is one tree."""


@dataclass
class _Rows:
    """Rows that a fit opens itself, and the ledger file that pays for them, if any."""

    source: Any
    target: Column | None
    schema: Schema
    names: Sequence[str] | None
    random_state: Any
    store: LedgerStore | None
    purpose: str
    _reservation: Reservation | None = None

    @property
    def payer(self) -> Budget | None:
        """The budget of the ledger file, if any."""
        return None if self.store is None else self.store.budget

    def session(self, budget: Budget, asks: Iterable[str]) -> PrivateTable:
        """Put the rows behind the wall, and reserve what they may cost."""
        del asks  # one table answers everything
        table = self.table(budget)
        if self.store is not None:
            try:
                self._reservation = self.store.reserve(
                    budget,
                    self.purpose,
                    columns=[*self.schema.names, self.schema.target],
                    table=self.schema.table,
                )
            except BaseException:
                table.close()
                raise
        return table

    def table(self, budget: Budget) -> PrivateTable:
        """Put the rows behind the wall."""
        return PrivateTable(
            self.source, self.target, self.schema, budget, random_state=self.random_state
        )

    def settle(self, ledger: Ledger) -> None:
        """Write down what was spent; if that fails, the model, which is paid for, is kept."""
        if self._reservation is None:
            return
        try:
            self._reservation.settle(ledger.total, ledger.entries)
        except LedgerFileError:
            warnings.warn(
                "the ledger file could not be written (is its disk full?), so it counts all that "
                "this fit reserved instead of what it spent; the model is not affected",
                UnsettledWarning,
                stacklevel=3,
            )


class _LargeRows(_Rows):
    """Rows that need not fit into memory."""

    def table(self, budget: Budget) -> PrivateTable:
        """See :class:`_Rows`."""
        return PrivateTable.from_source(
            self.source, self.schema, budget, random_state=self.random_state
        )


def _estimators() -> Iterator[type[PrivateEstimator]]:
    """Yield all estimators that were imported so far."""
    waiting = PrivateEstimator.__subclasses__()
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        if hasattr(kind, "learner") and not kind.__name__.startswith("_"):
            yield kind


def _suits(kind: type[PrivateEstimator], table: Table) -> bool:
    """Tell whether an estimator learns what a table has, by questions that it can answer."""
    of_classes = table.schema.classes is not None
    return kind._of_classes == of_classes and bool(kind.asks) and all(map(table.can, kind.asks))


def sorted_classes(schema: Schema) -> NDArray[np.intp]:
    """Return the order in which scikit-learn's scores expect the classes: sorted."""
    classes = class_array(schema)
    return np.argsort(classes if classes.dtype != object else classes.astype(str), kind="stable")


def _refuse_unusable(target: Column, *, of_classes: bool) -> None:
    """Refuse targets from which no schema can be drafted, in scikit-learn's words."""
    numbers = target.numbers()
    missing = np.isnan(numbers)
    if not of_classes and missing.all():
        raise DataError("the target holds no numbers, so no schema can be drafted; pass a schema")
    if isinstance(target, Numbers) or (not missing.any() and target.holds != "text"):
        assert_all_finite(numbers, input_name="y")
        if of_classes:
            check_classification_targets(numbers)


def open_store(ledger: Any) -> LedgerStore | None:
    """Return the ledger file that a parameter names, if any."""
    if ledger is None or isinstance(ledger, LedgerStore):
        return ledger
    if isinstance(ledger, str | Path):
        return LedgerStore(Path(ledger))
    raise ColumnTypeError("ledger must be the path of a ledger file, or a LedgerStore")


def _is_party(held: Any) -> bool:
    return isinstance(held, Party | LocalLink | ProcessLink)
