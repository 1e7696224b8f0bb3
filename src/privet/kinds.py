"""What is public of a table before its schema is known: names of columns, and what kind each has.

A kinds file is written by people, from what everybody knows of the table. What is found in the data
afterwards, bounds and lists, is paid for (:meth:`privet.Schema.discover`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from privet.errors import SchemaError
from privet.outputs import OutputFile
from privet.schema import (
    Categorical,
    Date,
    Feature,
    Integer,
    Numeric,
    Schema,
    read_toml,
)
from privet.visible import quoted

#: What a column may be, and the features that say more of it.
KINDS: dict[str, type[Feature]] = {
    "number": Numeric,
    "integer": Integer,
    "date": Date,
    "category": Categorical,
}
#: The kind of the column that says whose record it is, in ledger files.
UNIT = "unit"
_FACTS = {
    "number": {"low", "high", "bins", "edges"},
    "integer": {"low", "high", "bins", "edges"},
    "date": {"low", "high", "bins", "edges"},
    "category": {"values"},
}


@dataclass(frozen=True)
class Kinds:
    """Names and kinds of a table's columns: public, and declared.

    Parameters
    ----------
    columns : mapping of str to str or feature
        For every column ``"number"``, ``"integer"``, ``"date"`` or ``"category"``, or, if more is
        public, a :class:`~privet.Numeric`, :class:`~privet.Integer`, :class:`~privet.Date` or
        :class:`~privet.Categorical`. The target is one of them: of categories (or
        ``Categorical(classes)``) or of numbers (or ``Numeric(low, high)``).
    target : str
        The column to predict.
    unit : str, optional
        The column that says whose record it is, if persons may have several. It is no feature.
    rows_per_unit : int, optional
        Count at most this many records of a person, each in full; if not given, all of them share
        one person's weight.
    table : str, optional
        The table's name.
    n_rows : int, optional
        The number of records (of persons, if there is a unit), if it is public.

    Examples
    --------
    >>> kinds = Kinds({"age": "number", "sex": Categorical(["f", "m"]), "ill": "category"}, "ill")
    >>> kinds.unknown
    ('age', 'ill')
    """

    columns: Mapping[str, str | Feature]
    target: str
    unit: str | None = None
    rows_per_unit: int | None = None
    table: str | None = None
    n_rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise SchemaError("columns must map the names of columns to their kinds")
        columns = dict(self.columns)
        for name, kind in columns.items():
            if not isinstance(name, str) or not name:
                raise SchemaError("names of columns must be non-empty text")
            known = isinstance(kind, Numeric | Categorical) or (
                isinstance(kind, str) and kind in KINDS
            )
            if not known:
                raise SchemaError(
                    f"column {quoted(name)} must be {', '.join(KINDS)}, or a table with what is "
                    "known of it"
                )
        object.__setattr__(self, "columns", columns)
        if self.target not in columns:
            raise SchemaError(
                "the target must be one of the columns, of kind category (its classes are found) "
                "or number (its bounds are)"
            )
        if self.kind_of(self.target) == "date":
            raise SchemaError(
                f"the target {quoted(self.target)} is a date, and cannot be predicted"
            )
        if len(columns) < 2:
            raise SchemaError("there must be at least one column besides the target")
        if self.unit is not None and self.unit in columns:
            raise SchemaError(
                f"the unit {quoted(str(self.unit))} says whose record it is, and has no kind: "
                "do not list it among the columns"
            )
        rows: Any = self.n_rows
        if rows is not None and (type(rows) is not int or not 0 <= rows < 2**53):
            raise SchemaError("n_rows must be a whole number")
        self._schema(dict.fromkeys(self.unknown))  # names and all that is known are checked

    def kind_of(self, name: str) -> str:
        """Return the kind of a column, in one word."""
        held = self.columns[name]
        if isinstance(held, str):
            return held
        return next(kind for kind, feature in KINDS.items() if type(held) is feature)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns of which bounds or lists must be found in the data."""
        return tuple(name for name, held in self.columns.items() if isinstance(held, str))

    @property
    def parts(self) -> int:
        """What all records of a person weigh: 1 if a record is a person."""
        return self.readable.unit_parts

    @property
    def listed(self) -> dict[str, str]:
        """The kinds in one word each, the unit's too, as a ledger file has them."""
        found = {name: self.kind_of(name) for name in self.columns}
        return found if self.unit is None else {**found, self.unit: UNIT}

    def schema(self, found: Mapping[str, Feature | None] | None = None) -> Schema:
        """Return the schema, once all is known.

        Parameters
        ----------
        found : mapping of str to feature or None
            What was found of the columns that are not known; None for nothing: such a column is
            left out.
        """
        found = found or {}
        if lacking := [name for name in self.unknown if name not in found]:
            raise SchemaError(
                f"of column {quoted(lacking[0])} neither bounds nor a list are known: discover the "
                "schema, or say what is public of it"
            )
        return self._schema(found, strict=True)

    def _schema(self, found: Mapping[str, Feature | None], *, strict: bool = False) -> Schema:
        every = {name: found.get(name, held) for name, held in self.columns.items()}
        target = every.pop(self.target)
        features = {
            name: held if isinstance(held, Numeric | Categorical) else _ANY[self.kind_of(name)]
            for name, held in every.items()
            if held is not None or not strict
        }
        if strict and target is None:
            raise SchemaError(f"nothing is known of the target {quoted(self.target)}")
        if not isinstance(target, Numeric | Categorical):
            target = _ANY["category" if self.kind_of(self.target) == "category" else "number"]
        given: dict[str, Any] = {"bounds": None, "classes": None}
        if isinstance(target, Categorical):
            given["classes"] = target.values
        else:
            given["bounds"] = (target.low, target.high)
        return Schema(
            features,
            self.target,
            table=self.table,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            **given,
        )

    @cached_property
    def readable(self) -> Schema:
        """A schema by which the columns, and the unit, are read; its bounds and lists mean nothing.

        Categories are read as text.
        """
        of_classes = self.kind_of(self.target) == "category"
        return self._schema(
            {name: _ANY[self.kind_of(name)] for name in self.columns if name != self.target}
            | {self.target: _ANY["category" if of_classes else "number"]}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the kinds as plain data: what the file holds."""
        plain: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("table", "target", "unit", "rows_per_unit", "n_rows")
            if getattr(self, name) is not None
        }
        plain["columns"] = {
            name: held if isinstance(held, str) else self._facts(name, held)
            for name, held in self.columns.items()
        }
        return plain

    def _facts(self, name: str, held: Feature) -> dict[str, Any]:
        facts = held.to_dict()
        del facts["type"]
        return {"kind": self.kind_of(name), **facts}

    @classmethod
    def from_dict(cls, plain: Any) -> Kinds:
        """Build kinds from what :meth:`to_dict` returns, checking everything."""
        if not isinstance(plain, Mapping):
            raise SchemaError("kinds must be a table of keys and values")
        known = {"table", "target", "unit", "rows_per_unit", "n_rows", "columns"}
        if unknown := sorted(set(map(str, plain)) - known):
            raise SchemaError(
                f"the kinds have an unknown key {quoted(unknown[0])}; known: "
                f"{', '.join(sorted(known))}"
            )
        if not isinstance(plain.get("target"), str):
            raise SchemaError('the kinds must name the column to predict: target = "..."')
        columns = plain.get("columns")
        if not isinstance(columns, Mapping):
            raise SchemaError('the kinds need a table of columns: [columns], then age = "number"')
        found = {str(name): _column(str(name), held) for name, held in columns.items()}
        return cls(found, **{name: plain[name] for name in plain if name != "columns"})

    def toml(self) -> str:
        """Return the text of the kinds file."""
        return tomli_w.dumps(self.to_dict())

    def to_toml(self, path: str | Path) -> None:
        """Write a kinds file."""
        with OutputFile(path) as output:
            output.write(self.toml())

    @classmethod
    def from_toml(cls, path: str | Path) -> Kinds:
        """Read a kinds file, with the limits of schema files."""
        return cls.from_dict(read_toml(path, "a kinds file"))


def _column(name: str, held: Any) -> str | Feature:
    """Read a column of a kinds file: a kind in one word, or a table with what is known of it."""
    if not isinstance(held, Mapping):
        return held  # type: ignore[no-any-return]  # checked by Kinds
    kind = held.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"column {quoted(name)} needs kind = {', '.join(KINDS)}")
    facts = {str(key): value for key, value in held.items() if key != "kind"}
    if unknown := sorted(set(facts) - _FACTS[kind]):
        raise SchemaError(
            f"column {quoted(name)} has an unknown key {quoted(unknown[0])}; known: kind, "
            f"{', '.join(sorted(_FACTS[kind]))}"
        )
    if not facts:
        return kind
    needed = {"values"} if kind == "category" else {"low", "high"}
    if lacking := sorted(needed - set(facts)):
        raise SchemaError(f"column {quoted(name)} lacks {quoted(lacking[0])}")
    try:
        return KINDS[kind](**facts)
    except SchemaError as error:
        raise SchemaError(f"column {quoted(name)}: {error}") from None


#: Stand for what is not known.
_ANY: dict[str, Feature] = {
    "number": Numeric(0, 1),
    "integer": Integer(0, 1),
    "date": Date(0, 1),
    # What a column of any type may hold, so that none is warned of.
    "category": Categorical(["", "0", "True"]),
}
