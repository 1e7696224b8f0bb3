"""Whether a schema fits a table: exact statements about the rows, for their owner alone.

The rows are read as a fit reads them, and every value is counted by the rule of the schema that it
falls under: in the list or within the bounds, missing, unknown, or outside. Nothing of it is
private, so nothing of it may be published, and no fit asks it.
"""

from __future__ import annotations

import difflib
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError
from privet.reading.columns import Column, Columns, check_types, column_of
from privet.reading.csv import MISSING
from privet.reading.sources import Source
from privet.reading.streams import is_stream
from privet.reading.values import number
from privet.schema import (
    Categorical,
    Integer,
    Numeric,
    Schema,
    Value,
    all_numbers,
    value_text,
)
from privet.visible import quoted

#: What every report begins with.
SENSITIVE = (
    "These are exact statements about the rows, for their owner's eyes only: they are not private, "
    "and what is published must not be chosen by them. Correct mistakes; take bounds and lists "
    "from public knowledge"
)
#: What is said of a schema that was paid for, and leaves out more than is tolerated.
DISCOVERED = (
    "The schema was discovered: it leaves out what is rare, which is the price of its privacy and "
    "no mistake. Change it by public knowledge, not by what is said here."
)
#: A column fits if at most this share of its values is unknown, or outside of the bounds.
TOLERANCE = 0.01
#: A column does not fit if more than this share of its values is missing.
MOST_MISSING = 0.5
#: How many unknown values are shown, and up to how many distinct ones are counted.
_TOLD, _COUNTED = 5, 10_000
#: Longer values are not compared letter by letter.
_LONGEST_COMPARED = 100


@dataclass(frozen=True)
class ColumnCheck:
    """What was found in one column.

    Attributes
    ----------
    name : str
    kind : str
        ``"numeric"``, ``"integer"``, ``"date"``, ``"categorical"``, ``"classes"``, for a target
        with bounds ``"number"``.
    rows, missing, below, above, unknown : int
        How many values there are; how many are missing (or no numbers or dates, where these belong)
        lie below or above the bounds, or are not in the list.
    found : mapping of value to int
        How often each value of the list is there.
    problems, notes : tuple of str
        What does not fit, and what is worth knowing, in words.
    """

    name: str
    kind: str
    rows: int
    missing: int
    below: int = 0
    above: int = 0
    unknown: int = 0
    found: dict[Value, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the schema fits the column."""
        return not self.problems

    def share(self, count: int) -> float:
        """Return a number of values as a part of all."""
        return count / max(self.rows, 1)


@dataclass(frozen=True)
class UnitCheck:
    """What was found in the column that says whose record each record is.

    Attributes
    ----------
    name : str
    rows : int
        How many records there are.
    persons : int
        How many different identifiers.
    missing : int
        Records without one: each is a person of its own.
    texts : int
        How many of these have a text that stands for a missing value, such as ``NA``.
    most : int
        The most records of one person.
    """

    name: str
    rows: int
    persons: int
    missing: int
    texts: int
    most: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not fit, in words."""
        if not self.missing > MOST_MISSING * self.rows:
            return ()
        return (f"most records ({self.missing:,} of {self.rows:,}) do not say whose they are",)

    @property
    def fits(self) -> bool:
        """Whether most records say whose they are."""
        return not self.problems

    def sentence(self) -> str:
        """Return what was found, in words."""
        told = f"{self.persons:,} persons; the most records of one of them: {self.most:,}"
        if self.missing:
            told += f"; {self.missing:,} records without identifier are persons of their own"
        if self.texts:
            told += (
                f" ({self.texts:,} of them have a text such as NA, which means a missing one: a "
                "person of that name pays for every record)"
            )
        return told


@dataclass(frozen=True)
class SchemaCheck:
    """How a schema fits a table: exact statements about its rows. Print it to read it.

    Attributes
    ----------
    rows : int
        How many records were read.
    columns : tuple of ColumnCheck
        The target first, then the features in the schema's order.
    unit : UnitCheck or None
        Whose the records are, if the schema has a unit.
    discovered : bool, default=False
        Whether the schema was found in the data and paid for, so that rare values are left out.
    """

    rows: int
    columns: tuple[ColumnCheck, ...]
    unit: UnitCheck | None = None
    discovered: bool = False

    @property
    def fits(self) -> bool:
        """Whether the schema fits all columns, and there are rows."""
        units = () if self.unit is None else (self.unit,)
        return self.rows > 0 and all(column.fits for column in (*self.columns, *units))

    @property
    def left_out(self) -> int:
        """How many records a fit leaves out: their class is missing or unknown."""
        target = self.columns[0]
        return target.missing + target.unknown

    def sentences(self) -> list[str]:
        """Return what does not fit, then what is worth knowing."""
        told = [] if self.rows else ["There are no rows."]
        told += [
            f"Column {quoted(c.name)} does not fit: {what}."
            for c in self.columns
            for what in c.problems
        ]
        if self.unit is not None:
            told += [
                f"Column {quoted(self.unit.name)} does not fit: {what}."
                for what in self.unit.problems
            ]
        told += [f"Column {quoted(c.name)}: {what}." for c in self.columns for what in c.notes]
        if self.unit is not None:
            told.append(f"Column {quoted(self.unit.name)}: {self.unit.sentence()}.")
        told.append(
            f"A fit uses {self.rows - self.left_out:,} of {self.rows:,} records: of the others the "
            "target is missing or unknown."
            if self.left_out
            else f"A fit uses all {self.rows:,} records."
        )
        if self.discovered and not self.fits:
            told.append(DISCOVERED)
        return told

    def __str__(self) -> str:
        verdict = "The schema fits." if self.fits else "The schema does NOT fit."
        return "\n".join([f"{SENSITIVE}.", *self.sentences(), verdict])


def check_schema(
    schema: Schema, rows: Any, target: Any = None, *, tolerance: float = TOLERANCE
) -> SchemaCheck:
    """Compare a schema with a table; see :meth:`privet.Schema.check`."""
    if not 0 <= tolerance < 1:
        raise DataError("the tolerance is a share of the values: from 0 to below 1")
    counts = [_counting(schema, name) for name in (schema.target, *schema.names)]
    total, persons = 0, None if schema.unit is None else _CountingPersons(schema)
    for columns, labels in _batches(schema, rows, target):
        total += len(columns)
        if persons is not None:
            persons.add(columns)
        for count in counts:
            count.add(
                columns, labels if count.name == schema.target else columns.column(count.name)
            )
    return SchemaCheck(
        total,
        tuple(count.result(tolerance) for count in counts),
        None if persons is None else persons.result(),
        schema.discovered is not None,
    )


def _batches(schema: Schema, rows: Any, target: Any) -> Iterable[tuple[Columns, Column]]:
    """Yield the rows as fits read them, with their target."""
    if isinstance(rows, str | Path) or (not isinstance(rows, Source) and is_stream(rows)):
        rows = Source(rows)
    if isinstance(rows, Source):
        if target is not None:
            raise DataError("files and streams have their target as a column: check them alone")
        if rows.path is not None and (rows.path / "blocks.json").exists():
            raise DataError(
                f"{rows.path} has encoded blocks, which do not hold the values any more: check the "
                "files that they were made of"
            )
        for columns in rows.open(schema):
            yield columns, columns.target(schema)
        return
    columns = Columns.of(rows, schema)
    labels = columns.target(schema) if target is None else column_of(target, schema.target)
    if len(labels) != len(columns):
        raise DataError("the table and its target have different numbers of rows")
    check_types(columns, labels, schema)
    yield columns, labels


class _CountingPersons:
    """Counts the records of every person, in a database that is on the disk if it is large."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rows = self._missing = self._texts = 0
        self._persons = sqlite3.connect("")
        self._persons.execute(
            "CREATE TABLE persons (name BLOB PRIMARY KEY, records INTEGER) WITHOUT ROWID"
        )

    def add(self, columns: Columns) -> None:
        found = columns.identifiers(self._schema)
        self._rows += len(found)
        self._missing += found.null_count
        for one in found.drop_null().value_counts():
            self._persons.execute(
                "INSERT INTO persons VALUES (?, ?) ON CONFLICT (name) "
                "DO UPDATE SET records = records + excluded.records",
                (one["values"].as_py(), one["counts"].as_py()),
            )
        if found.null_count and self._schema.unit is not None:
            texts, which = columns.column(self._schema.unit).texts()
            known = np.array([bool(text and text.strip()) for text in texts], dtype=bool)
            present = known if which is None else known[which]
            self._texts += int((present & np.asarray(found.is_null())).sum())

    def result(self) -> UnitCheck:
        assert self._schema.unit is not None
        question = "SELECT count(*), coalesce(max(records), 0) FROM persons"
        ((persons, most),) = self._persons.execute(question)
        self._persons.close()
        return UnitCheck(
            self._schema.unit,
            self._rows,
            persons,
            self._missing,
            self._texts,
            most,
        )


class _Counting(ABC):
    """Counts the values of one column."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.rows = self.missing = 0

    @abstractmethod
    def add(self, columns: Columns, column: Column) -> None:
        """Count some rows."""

    @abstractmethod
    def result(self, tolerance: float) -> ColumnCheck:
        """Return what was found."""

    def share(self, count: int) -> str:
        """Return a part of the rows in words."""
        part = count / max(self.rows, 1)
        return f"{count:,} of {self.rows:,} values ({part:.2%})"

    def _emptiness(self, what: str) -> list[str]:
        if self.rows and self.missing > MOST_MISSING * self.rows:
            return [f"{self.share(self.missing)} {what}"]
        return []


class _CountingNumbers(_Counting):
    def __init__(self, name: str, kind: str, feature: Numeric | tuple[float, float]) -> None:
        super().__init__(name, kind)
        self.feature = feature
        ends = (feature.low, feature.high) if isinstance(feature, Numeric) else feature
        self.low, self.high = ends
        self.below = self.above = self.broken = 0

    def add(self, columns: Columns, column: Column) -> None:
        days = self.name in columns.dates
        numbers = column.days() if days else column.numbers()
        self.rows += len(numbers)
        self.missing += int(np.isnan(numbers).sum())
        self.below += int((numbers < self.low).sum())
        self.above += int((numbers > self.high).sum())
        if isinstance(self.feature, Integer) and not days:
            finite = numbers[np.isfinite(numbers)]
            self.broken += int((finite != np.floor(finite)).sum())

    def result(self, tolerance: float) -> ColumnCheck:
        dates = self.kind == "date"
        problems = self._emptiness(
            "are missing, or no dates such as 2020-01-31"
            if dates
            else "are missing or no numbers; are they text, or have they another decimal point?"
        )
        notes = []
        present = max(self.rows - self.missing, 1)
        for count, end, bound in (
            (self.below, "below low", self.low),
            (self.above, "above high", self.high),
        ):
            shown = self.feature.shown(bound) if isinstance(self.feature, Numeric) else bound
            said = f"{self.share(count)} lie {end} = {shown}, and count as {shown}"
            if count > tolerance * present:
                problems.append(said)
            elif count:
                notes.append(said)
        if self.broken:
            notes.append(f"{self.share(self.broken)} are not whole, and are compared as they are")
        return ColumnCheck(
            self.name,
            self.kind,
            self.rows,
            self.missing,
            self.below,
            self.above,
            problems=tuple(problems),
            notes=tuple(notes),
        )


class _CountingValues(_Counting):
    def __init__(self, name: str, kind: str, values: Sequence[Value]) -> None:
        super().__init__(name, kind)
        self.values = values
        self.counts = np.zeros(len(values) + 1, dtype=np.int64)
        self.others: Counter[str] = Counter()

    def add(self, columns: Columns, column: Column) -> None:
        del columns
        codes = column.codes(self.values)
        self.rows += len(codes)
        self.counts += np.bincount(codes, minlength=len(self.counts))
        rest = np.flatnonzero(codes == len(self.values))
        texts, which = _texts(column, of_numbers=all_numbers(self.values))
        for place, count in Counter((rest if which is None else which[rest]).tolist()).items():
            text = texts[place]
            # As texts of a CSV file these are no categories, so they go where missing values go.
            if text is None or text.strip() in MISSING:
                self.missing += count
            elif text in self.others or len(self.others) < _COUNTED:
                self.others[text] += count

    def result(self, tolerance: float) -> ColumnCheck:
        unknown = int(self.counts[-1]) - self.missing
        of_classes = self.kind == "classes"
        found = dict(zip(self.values, self.counts[:-1].tolist(), strict=True))
        gone = [value for value, count in found.items() if not count]
        what = "no numbers, as the schema's list has them" if all_numbers(self.values) else "empty"
        problems = self._emptiness(f"are missing or {what}")
        notes: list[str] = []
        if unknown:
            then = "these records are left out" if of_classes else "they count as unknown"
            said = f"{self.share(unknown)} are not in the list, and {then}: {self._told()}"
            (problems if unknown > tolerance * (self.rows - self.missing) else notes).append(said)
        if gone and self.rows:
            listed = _some([quoted(value_text(value)) for value in gone])
            near = self._nearest(gone)
            (problems if of_classes else notes).append(
                f"{'no record has the class' if of_classes else 'not found'} {listed}{near}"
            )
        return ColumnCheck(
            self.name,
            self.kind,
            self.rows,
            self.missing,
            unknown=unknown,
            found=found,
            problems=tuple(problems),
            notes=tuple(notes),
        )

    def _told(self) -> str:
        """Return the most frequent unknown values, with what the schema may mean by them."""
        listed = [value_text(value) for value in self.values]
        told = []
        for text, count in self.others.most_common(_TOLD):
            near = _near(text, listed)
            hint = "" if near is None else f"; the schema has {quoted(near)}"
            told.append(f"{quoted(text)} ({count:,} times{hint})")
        if len(self.others) > _TOLD:
            told.append("and others")
        if self.others and _are_numbers(self.others) and not any(map(_is_number, listed)):
            told.append("which are numbers, where the schema lists text")
        return ", ".join(told)

    def _nearest(self, gone: Sequence[Value]) -> str:
        """Return what the data have instead of values that were not found."""
        near = (_near(value_text(value), list(self.others)) for value in gone[:_TOLD])
        found = [quoted(text) for text in near if text is not None]
        return f"; the data have {_some(found)}" if found else ""


def _texts(
    column: Column, *, of_numbers: bool
) -> tuple[Sequence[str | None], NDArray[np.intp] | None]:
    """Return the values as texts; what is no number, where these are listed, is missing."""
    if not of_numbers:
        return column.texts()
    numbers, which = np.unique(column.numbers(), return_inverse=True)
    texts = [None if np.isnan(value) else value_text(value) for value in numbers.tolist()]
    return texts, which.astype(np.intp)


def _near(text: str, others: Sequence[str]) -> str | None:
    """Return which of others a text may be a slip of: case, blanks, a letter, a decimal point."""
    plain = text.strip().casefold()
    for other in others:
        if other.strip().casefold() == plain or number(other) == number(text):
            return other
    short = [other for other in others if len(other) <= _LONGEST_COMPARED]
    if len(text) > _LONGEST_COMPARED or _is_number(text):
        return None
    return next(iter(difflib.get_close_matches(text, short, 1, 0.7)), None)


def _is_number(text: str) -> bool:
    return not np.isnan(number(text))


def _are_numbers(texts: Iterable[str]) -> bool:
    return all(map(_is_number, texts))


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _TOLD
    return ", ".join(texts[:_TOLD]) + (f" and {more} more" if more > 0 else "")


def _counting(schema: Schema, name: str) -> _Counting:
    if name == schema.target:
        if schema.classes is not None:
            return _CountingValues(name, "classes", schema.classes)
        assert schema.bounds is not None
        low, high = schema.bounds
        return _CountingNumbers(name, "number", (low, high))
    feature = schema.features[name]
    if isinstance(feature, Categorical):
        return _CountingValues(name, "categorical", feature.values)
    return _CountingNumbers(name, feature.kind, feature)
