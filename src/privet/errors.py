"""Errors and warnings of Privet.

Every message says what to do next, and none ever contains a value from the data: an error text
is an output like any other, and outputs of private data must be paid for.
"""

from __future__ import annotations


class PrivetError(Exception):
    """Base class of the errors that Privet raises on purpose."""


class SchemaError(PrivetError, ValueError):
    """A schema is wrong, or does not fit what it is used with."""


class DataError(PrivetError, ValueError):
    """The input cannot be read as a table of the schema (its shape or types, never its values)."""


class ColumnTypeError(DataError, TypeError):
    """A column's type can never hold what the schema says, or the input is not a table at all."""


class BudgetError(PrivetError, ValueError):
    """A privacy budget that means nothing, such as a negative epsilon."""


class BudgetExceeded(PrivetError):
    """A question costs more than what is left. Nothing was computed and nothing was spent.

    Attributes
    ----------
    left : str
        What is left, for people to read.
    """

    def __init__(self, message: str, *, left: str) -> None:
        super().__init__(message)
        self.left = left

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_budget_exceeded, (str(self), self.left))


def _rebuild_budget_exceeded(message: str, left: str) -> BudgetExceeded:
    return BudgetExceeded(message, left=left)


class LedgerFileError(PrivetError):
    """A ledger file is missing, unreadable, or belongs to another table."""


class ModelFileError(PrivetError, ValueError):
    """A model file is not one of ours, is damaged, or is hostile."""


class OutputError(PrivetError, OSError):
    """A file cannot be written: what it is, where it lies, or a full disk."""


class ExportError(PrivetError, ValueError):
    """A model is larger than a form of export can hold."""


class ReportError(PrivetError, ValueError):
    """A report cannot be made of what was given."""


class AuditError(PrivetError, ValueError):
    """What is to be audited cannot be, or not in this way."""


class EngineError(PrivetError):
    """Where the rows are, questions cannot be answered any more.

    What a question costs stays charged, and nothing is released for it.
    """


class EngineUnusableError(EngineError):
    """An engine cannot be used as it is. Nothing was asked of the rows, and nothing was spent."""


class FederationError(PrivetError):
    """A party refuses, is lost or answers nonsense, or the question is not one for parties."""


class PrivacyLeakWarning(UserWarning):
    """Something outside the accounting depends on the data or can undo the noise.

    The model is then marked: ``privacy_.private`` is false and ``privacy_.warnings`` says why.
    """


class PublishedCostWarning(UserWarning):
    """A published calibration costs more than its paper counts; the message names both numbers."""


class HighEpsilonWarning(UserWarning):
    """An epsilon is so large that it protects nobody; the message says so in odds."""


class UnsettledWarning(UserWarning):
    """What a fit really spent could not be written down: the ledger counts all that it reserved."""


class ColumnTypeWarning(UserWarning):
    """A column's type is not the one the schema suggests; its values are read by a stated rule."""
