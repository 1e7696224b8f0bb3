"""What all estimators share: reading input, paying, and the privacy card."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    assert_all_finite,
    check_is_fitted,
)

from privet.criteria import MAX_ROWS
from privet.ensemble import Ensemble
from privet.errors import (
    BudgetError,
    ColumnTypeError,
    DataError,
    FederationError,
    LedgerFileError,
    PrivacyLeakWarning,
    PublishedCostWarning,
    SchemaError,
    UnsettledWarning,
)
from privet.estimators._counts import released_counts
from privet.estimators._progress import telling
from privet.estimators._texts import filled
from privet.estimators._weights import note_of, refuse_weights, weighed, weights_of
from privet.estimators.parameters import TEST_SHARE, Parameter
from privet.evaluation import Evaluation
from privet.evaluation.asking import asks_of, check_group, least_part, score
from privet.federation import FederatedTable, LocalLink, Party, ProcessLink
from privet.model import Model, PrivacyCard, class_array
from privet.outputs import OutputFile
from privet.pictures import importances
from privet.privacy import (
    Budget,
    Coins,
    Ledger,
    LedgerStore,
    Reservation,
    as_written,
    exact,
    warn_of,
)
from privet.privacy.budget import Amount
from privet.reading import Column, Columns, Numbers, Source, column_of, is_stream
from privet.record import Record
from privet.schema import Schema
from privet.tables import PrivateTable, Table
from privet.tree import Tree


class PrivateEstimator(BaseEstimator):
    """Base of all estimators.

    A subclass has parameters ``epsilon``, ``schema``, ``ledger``, ``random_state``, ``test_share``,
    ``test_by`` and ``verbose``, declares its other parameters in ``_parameters``, and learns in
    :meth:`_learn`.
    Lines ``<name>`` of its docstring stand for texts that all share (``_texts.py``).
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
    test_share: float | None
    test_by: str | None
    verbose: bool
    predictor_: Tree | Ensemble

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = None if cls.__doc__ is None else filled(cls.__doc__)

    def _check_parameters(self, schema: Schema) -> dict[str, Any]:
        """Return what :meth:`_learn` needs, or raise, before anything is read or spent.

        Here: the declared parameters as learners take them.
        """
        if float(self.epsilon) < self._least_epsilon:
            raise BudgetError(f"epsilon must be at least {self._least_epsilon}")
        given = {
            name: kind.check(getattr(self, name), name) for name, kind in self._parameters.items()
        }
        rows = given.get("n_rows")
        if rows is None:
            return given
        if rows * schema.unit_parts > MAX_ROWS:
            raise BudgetError(
                f"n_rows is too large: at most {MAX_ROWS // schema.unit_parts:,} "
                + ("records" if schema.unit is None else "persons")
                + " can be counted"
            )
        return {**given, "n_rows": self._rows_to_learn_from(rows)}

    def _rows_to_learn_from(self, rows: int) -> int:
        """Return about how many of a declared number of rows are not set aside for a test."""
        share = TEST_SHARE.check(self.test_share, "test_share") or 0
        return max(1, round(rows * (1 - share)))

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

    def _declared_rows(self) -> int | None:
        """Return about how many rows a model is made of, if their number was declared."""
        rows = getattr(self, "n_rows", None)
        if rows is None or not self._rows_declared():
            return None
        return self._rows_to_learn_from(rows)

    def _not_covered(self) -> str | None:
        """Return the chosen option that no budget pays for, if there is one."""
        return None

    def fit(self, X: Any, y: Any = None, **refused: Any) -> Self:
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
        **refused
            ``sample_weight``, which others pass, is refused: weights of records would multiply the
            noise. See ``class_weight``, and the schema's ``unit``.

        Returns
        -------
        self
        """
        refuse_weights(refused)
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
        weights = weights_of(options.pop("class_weight", None), schema)
        share = self._check_test(schema)
        asks = self._asks(**options)
        if share is not None:
            asks = (*asks, "portions", *asks_of(schema))
        if not isinstance(source, _Rows):
            self._check_table(source, **options)
            self._check_answers(source, asks)
            if share is not None:
                self._check_score(source)
        payer = source.payer if isinstance(source, _Rows) else source.ledger.budget
        budget = self._budget(schema, payer)
        warn_of(budget)
        table = source.session(budget, asks)
        learning: Table = table
        testing: Table = table
        evaluation: Evaluation | None = None
        try:
            with telling(type(self).__name__, wanted=bool(self.verbose)):
                if share is not None:
                    learning, testing = self._set_aside(table, share)
                predictor = self._learn(learning, **options)
                if weights is not None:
                    predictor = weighed(predictor, weights)
                if share is not None:
                    evaluation = self._test(learning, testing, predictor)
        finally:
            table.ledger.close()  # what is settled must not be spent again
            if isinstance(source, _Rows) and isinstance(table, PrivateTable):
                table.close()
        if isinstance(source, _Rows):
            source.settle(table.ledger)
        self.predictor_ = predictor
        self.schema_ = schema
        if evaluation is not None:
            self.evaluation_ = evaluation
        elif hasattr(self, "evaluation_"):
            del self.evaluation_
        if schema.classes is not None:
            self.classes_ = class_array(schema)[sorted_classes(schema)]
        notes = table.notes
        if weights is not None:
            notes = (*notes, note_of(weights, schema))
        if evaluation is not None:
            notes = (*notes, _note_of(evaluation, schema, table.protocol))
        self.privacy_ = PrivacyCard.of(
            table.ledger,
            tuple(dict.fromkeys((*table.leaks, *learning.leaks))),
            rows_declared=self._rows_declared(),
            seeded=table.seeded,
            protocol=table.protocol,
            covered=table.covered,
            notes=notes,
            unit=schema.unit,
            discovered=schema.discovered,
            counts=released_counts(predictor, table.ledger, schema.unit_parts, table.noises),
            declared_rows=self._declared_rows(),
        )
        self.record_ = self._recorded(
            table.ledger, self.privacy_, source.draw if isinstance(source, _Rows) else None
        )
        self.n_features_in_ = len(schema.names)
        if isinstance(source, _Rows) and source.names is not None:
            self.feature_names_in_ = np.array(
                [name for name in source.names if name in schema.features], dtype=object
            )
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _recorded(self, ledger: Ledger, card: PrivacyCard, draw: int | None) -> Record:
        """Return how the model came about, with the entries that its total consists of."""
        path = ledger.path(card.unit)
        before = len(card.entries) - len(ledger.entries)  # what the schema cost, if it was paid for
        whole = (*range(before), *(before + place for place in path))
        return Record.of(type(self).__name__, self.get_params(deep=False), whole, draw)

    def _check_test(self, schema: Schema) -> float | None:
        """Return the part that is set aside for a test, or raise, before anything is spent."""
        share: float | None = TEST_SHARE.check(self.test_share, "test_share")
        if self.test_by is not None and share is None:
            raise BudgetError("test_by is for a test score: give test_share, too")
        check_group(schema, self.test_by)
        return share

    def _check_score(self, table: Table) -> None:
        """Raise if a question of the test score would have less than a table takes."""
        if least_part(table.schema, exact(self.epsilon)) < table.least_amount:
            raise BudgetError(
                "the budget is too small to share the noise of a test score among parties: give a "
                "larger epsilon, or no test_share"
            )

    def _set_aside(self, table: Table, share: float) -> tuple[Table, Table]:
        """Return the records to learn from, and those to test on."""
        # Of the coins, not their key: that one is for the parts of a forest.
        key = Coins.of(self.random_state).below(2**63)
        test = Fraction(as_written(share))
        found = table.portions({"training": 1 - test, "test": test}, key)
        return found["training"], found["test"]

    def _test(self, learning: Table, testing: Table, predictor: Tree | Ensemble) -> Evaluation:
        """Ask how well a model predicts records that were set aside, in the fit's accountant."""
        budget = testing.ledger.budget
        if budget.either and learning.ledger.total.epsilon <= exact(self.epsilon):
            testing = testing.session(Budget(self.epsilon))
            budget = testing.ledger.budget
        # As published, learning may cost more than what was asked for.
        pure = budget.accountant == "pure"
        amount = min(exact(self.epsilon), budget.limit) if pure else budget.limit
        return score(testing, predictor, amount, share=float(self.test_share or 0), by=self.test_by)

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
        if store is not None and self.schema is not None:
            self.schema.check_corrected()
        if isinstance(X, Source):
            return self._open_source(X, y, store)
        if isinstance(X, str | Path) or is_stream(X):
            return self._open_source(Source(X), y, store)
        columns = Columns.of(X, self.schema)
        target = self._target(columns, y)
        schema = self._schema(columns, target)
        if store is not None:
            schema.check_corrected()
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

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each feature matters to the published model; they add up to 1, or are all 0.

        Of every test, how much the mean answers of its branches differ, by released counts where
        there are some (:func:`privet.pictures.importances`). The answers are the model's, and not
        those of records: no number but released ones are in it, so it costs nothing, and
        ``privet.load(path).importances()`` gives the same. Noise in the model is in it, too.
        """
        check_is_fitted(self)
        found = importances(self.predictor_)
        names = getattr(self, "feature_names_in_", self.schema_.names)
        return np.array([found[name] for name in names])

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the leaf that every row falls into: of one tree, or one column for each tree.

        Leaves are positions in :attr:`privet.tree.Tree.nodes`.
        """
        check_is_fitted(self)
        table = self._check_columns(X)
        if isinstance(self.predictor_, Tree):
            return self.predictor_.apply(table)
        columns = [tree.apply(table) for tree in self.predictor_.trees]
        rows = len(Columns.of(table, self.schema_)) if not columns else len(columns[0])
        return np.column_stack(columns) if columns else np.zeros((rows, 0), dtype=np.intp)

    def decision_path(self, X: Any) -> Any:
        """Return the nodes that every row passes, as a sparse matrix of rows by nodes.

        Of several trees, as scikit-learn's forests do: the matrix with the nodes of all trees side
        by side, and where those of each tree begin.
        """
        leaves = self.apply(X)
        if isinstance(self.predictor_, Tree):
            return node_indicator(self.predictor_, leaves)
        trees = self.predictor_.trees
        parts = [node_indicator(tree, leaves[:, j]) for j, tree in enumerate(trees)]
        ends = np.cumsum([0, *(len(tree.nodes) for tree in trees)])
        empty = sparse.csr_matrix((len(leaves), 0), dtype=np.int64)
        return sparse.hstack(parts, format="csr") if parts else empty, ends

    def get_depth(self) -> int:
        """Return the number of tests on the longest path of a tree."""
        check_is_fitted(self)
        return self.predictor_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves, of all trees together."""
        check_is_fitted(self)
        return self.predictor_.n_leaves

    def plot(
        self, kind: str | None = None, *, features: Sequence[str] | None = None, ax: Any = None
    ) -> Any:
        """Draw the fitted model with matplotlib: see :func:`privet.pictures.plot`."""
        return self.to_model().plot(kind, features=features, ax=ax)

    def _html_repr(self) -> str:
        """Return what notebooks show: scikit-learn's diagram, and the model if there is one."""
        diagram = str(super()._html_repr())
        return diagram + self.to_model()._repr_html_() if hasattr(self, "predictor_") else diagram

    def save(self, path: str | Path | OutputFile) -> None:
        """Write the fitted model, with its privacy card, to a JSON file.

        Read it with :func:`privet.load`. Whoever opens an :class:`~privet.outputs.OutputFile`
        before the fit knows before anything is spent that the file can be written.
        """
        self.to_model().save(path)

    def report(
        self,
        path: str | Path | None = None,
        *,
        ledger: LedgerStore | str | Path | None = None,
        attach: Sequence[str | Path] = (),
    ) -> str:
        """Return a page about the fitted model, for people who answer for it, as HTML.

        Parameters
        ----------
        path : path, optional
            Where to write it as well.
        ledger : path or LedgerStore, optional
            The table's ledger file; by default that of the estimator.
        attach : sequence of paths
            Results that ``privet audit --out`` wrote.
        """
        books = self.ledger if ledger is None else ledger
        return self.to_model().report(path, ledger=books, attach=attach)

    def to_model(self) -> Model:
        """Return the fitted model as it is published, with its privacy card."""
        check_is_fitted(self)
        return Model(
            self.predictor_,
            self.privacy_,
            self.learner,
            getattr(self, "evaluation_", None),
            getattr(self, "record_", None),
        )

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


def _adds_scores(estimator: PrivateEstimator) -> bool:
    """Tell whether a model has scores; if not, say why there is no decision function."""
    if not isinstance(getattr(estimator, "predictor_", None), Ensemble):
        raise AttributeError("only a fitted ensemble has scores; a tree has probabilities")
    return True


def node_indicator(tree: Tree, leaves: NDArray[np.intp]) -> Any:
    """Return a sparse matrix of rows by nodes: which nodes lie above the leaf of each row."""
    parents = np.full(len(tree.nodes), -1, dtype=np.intp)
    for place, node in enumerate(tree.nodes):
        parents[list(node.children)] = place
    paths: dict[int, list[int]] = {}
    for leaf in np.unique(leaves).tolist():
        path = [leaf]
        while parents[path[-1]] >= 0:
            path.append(int(parents[path[-1]]))
        paths[leaf] = path[::-1]
    rows = [paths[leaf] for leaf in leaves.tolist()]
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.array([node for row in rows for node in row], dtype=np.intp)
    shape = (len(leaves), len(tree.nodes))
    return sparse.csr_matrix((np.ones(len(columns), dtype=np.int64), columns, ends), shape=shape)


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

    @available_if(_adds_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of an ensemble: the log odds of ``classes_[1]``, or one per class.

        A single tree has none, and then there is no such method.
        """
        check_is_fitted(self)
        assert isinstance(self.predictor_, Ensemble)
        scores = self.predictor_.predict_score(self._check_columns(X))
        order = sorted_classes(self.schema_)
        if scores.shape[1] == 1:
            return scores[:, 0] if order[0] == 0 else -scores[:, 0]
        return scores[:, order]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on rows that need not be protected; see ``test_share`` for others."""
        if self.ledger is not None:
            warn_of_scores()
        return float(super().score(X, y, sample_weight))


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """Base of the regressors."""

    _of_classes: ClassVar[bool] = False

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted number of every row, within the schema's bounds."""
        check_is_fitted(self)
        return self.predictor_.predict_value(self._check_columns(X))[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 on rows that need not be protected; see ``test_share`` for others."""
        if self.ledger is not None:
            warn_of_scores()
        return float(super().score(X, y, sample_weight))


@cache
def warn_of_scores() -> None:
    """Warn, once in a process, what exact scores of sensitive rows spend and leak."""
    warnings.warn(
        "score() is exact: on sensitive rows it is an answer that nobody paid for, and the ledger "
        "does not see it. Cross-validation and grid search draw epsilon from the ledger for every "
        "fit (5 folds of 10 candidates are 50 fits), and tell such an answer for each. For a "
        "private score give test_share, or use privet.evaluate; to compare candidates, "
        "privet.choose",
        PrivacyLeakWarning,
        stacklevel=3,
    )


def _note_of(evaluation: Evaluation, schema: Schema, protocol: str | None) -> str:
    whom = "record" if schema.unit is None else "person"
    at = "" if protocol is None else " at every party, by one key,"
    note = (
        f"the test score is of other {whom}s than the model: a hash of each {whom} set about "
        f"{evaluation.share:g} of them aside{at} before anything was asked, so that no {whom} paid "
        f"for both; {evaluation.rule}"
    )
    if protocol is not None and schema.unit is None:
        note += "; a person with several records may be on both sides"
    elif protocol is not None:
        note += "; a person whom two parties call by different identifiers may be on both sides"
    return note


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

    @property
    def draw(self) -> int | None:
        """Which draw of the ledger file pays, if any."""
        return None if self._reservation is None else self._reservation.id

    def session(self, budget: Budget, asks: Iterable[str]) -> PrivateTable:
        """Put the rows behind the wall, and reserve what they may cost.

        What the ledger file refuses is refused before rows are read, and what cannot be read is
        not reserved for.
        """
        del asks  # one table answers everything
        about: Any = {
            "columns": self.schema.columns,
            "table": self.schema.table,
            "unit": self.schema.unit,
        }
        if self.store is not None:
            self.store.check(budget, **about)
        table = self.table(budget)
        if self.store is not None:
            try:
                self._reservation = self.store.reserve(budget, self.purpose, **about)
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
