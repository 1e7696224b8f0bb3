"""Decision trees from sensitive tables, published with proven differential privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privet.ensemble import Ensemble
    from privet.errors import (
        BudgetExceeded,
        PrivacyLeakWarning,
        PrivetError,
    )
    from privet.estimators import (
        DiffPC45Classifier,
        DiffPID3Classifier,
        DiPriMeForestClassifier,
        DiPriMeForestRegressor,
        DiPriMeTreeClassifier,
        DiPriMeTreeRegressor,
        PrivateAdditiveClassifier,
        PrivateAdditiveRegressor,
        PrivateBoostingClassifier,
        PrivateBoostingRegressor,
        PrivateTreeClassifier,
        PrivateTreeRegressor,
        PrivaTreeClassifier,
        SulqID3Classifier,
        TopDownClassifier,
    )
    from privet.estimators.testing import Chosen, choose, evaluate
    from privet.evaluation import Estimate, Evaluation
    from privet.kinds import Kinds
    from privet.model import Model, PrivacyCard, load
    from privet.privacy import Budget, Ledger, LedgerStore
    from privet.reading import Source, read_table
    from privet.schema import Categorical, Date, Integer, Numeric, Schema
    from privet.tables import Cells, PrivateTable, encode
    from privet.tree import Tree

__version__ = "0.2.0"

# Names are loaded on first use: scikit-learn alone takes a second, and `privet --help` needs none.
_HOME = {
    "Budget": "privet.privacy",
    "BudgetExceeded": "privet.errors",
    "Categorical": "privet.schema",
    "Cells": "privet.tables",
    "Chosen": "privet.estimators.testing",
    "DiPriMeForestClassifier": "privet.estimators",
    "DiPriMeForestRegressor": "privet.estimators",
    "DiPriMeTreeClassifier": "privet.estimators",
    "DiPriMeTreeRegressor": "privet.estimators",
    "DiffPC45Classifier": "privet.estimators",
    "DiffPID3Classifier": "privet.estimators",
    "Ensemble": "privet.ensemble",
    "Estimate": "privet.evaluation",
    "Evaluation": "privet.evaluation",
    "Ledger": "privet.privacy",
    "LedgerStore": "privet.privacy",
    "Model": "privet.model",
    "Date": "privet.schema",
    "Integer": "privet.schema",
    "Kinds": "privet.kinds",
    "Numeric": "privet.schema",
    "PrivacyCard": "privet.model",
    "PrivacyLeakWarning": "privet.errors",
    "PrivaTreeClassifier": "privet.estimators",
    "PrivateAdditiveClassifier": "privet.estimators",
    "PrivateAdditiveRegressor": "privet.estimators",
    "PrivateBoostingClassifier": "privet.estimators",
    "PrivateBoostingRegressor": "privet.estimators",
    "PrivateTable": "privet.tables",
    "PrivateTreeClassifier": "privet.estimators",
    "PrivateTreeRegressor": "privet.estimators",
    "PrivetError": "privet.errors",
    "Schema": "privet.schema",
    "Source": "privet.reading",
    "SulqID3Classifier": "privet.estimators",
    "TopDownClassifier": "privet.estimators",
    "Tree": "privet.tree",
    "choose": "privet.estimators.testing",
    "encode": "privet.tables",
    "evaluate": "privet.estimators.testing",
    "load": "privet.model",
    "read_table": "privet.reading",
}

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Categorical",
    "Cells",
    "Chosen",
    "Date",
    "DiPriMeForestClassifier",
    "DiPriMeForestRegressor",
    "DiPriMeTreeClassifier",
    "DiPriMeTreeRegressor",
    "DiffPC45Classifier",
    "DiffPID3Classifier",
    "Ensemble",
    "Estimate",
    "Evaluation",
    "Integer",
    "Kinds",
    "Ledger",
    "LedgerStore",
    "Model",
    "Numeric",
    "PrivaTreeClassifier",
    "PrivacyCard",
    "PrivacyLeakWarning",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "PrivateTable",
    "PrivateTreeClassifier",
    "PrivateTreeRegressor",
    "PrivetError",
    "Schema",
    "Source",
    "SulqID3Classifier",
    "TopDownClassifier",
    "Tree",
    "choose",
    "encode",
    "evaluate",
    "load",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'privet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
