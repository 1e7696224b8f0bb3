"""What is public about a table: features, bounds, categories, classes, bins.

A schema is written by people who know the domain, not read off the data: bounds, category lists
and class lists found in the data depend on single records, and so would everything learnt with
them. All shapes in the library come from the schema, so that no record can change a shape.

Rules for values, chosen so that no record can make a fit fail:

* a number below ``low`` counts as ``low``, one above ``high`` as ``high`` (infinite ones too);
* a missing number (null, NaN, or text that is no number), and what is no date where one should be,
  goes to the feature's *extra bin*;
* a category that is not listed, and a missing one, go to the feature's extra bin as well;
* a record whose class is missing or not listed, or whose number as the target is missing, is left
  out, whatever its other values are.

Each rule looks at one record alone, hence adding or removing a record of the input adds or removes
at most one record of what the learner sees. Numbers are compared as 64-bit floats.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import tomli_w
from numpy.typing import NDArray

from privet import fragments
from privet.errors import SchemaError
from privet.grids import COARSE, fine_grid, landmarks, thin
from privet.outputs import OutputFile
from privet.visible import quoted, visible

if TYPE_CHECKING:
    from privet.reading.checks import SchemaCheck

Value = str | int | float | bool

#: Bins of a numeric feature unless the schema says otherwise (Friedman & Schuster use 10).
DEFAULT_BINS = 10
#: Codes are held in at most 16 bits, and one code is the extra bin.
MAX_BINS = 65_535

#: A numeric feature may be cut at this many points: one fewer than there are codes without missing.
MAX_CUTS = MAX_BINS - 1

#: Names, categories, classes and the table's name have at most this many characters.
LONGEST_TEXT = 4096
#: More features than any table has that fits into memory, and few enough to be checked at once.
MAX_FEATURES = 100_000
#: Larger schema files are refused before they are read. tomllib takes seconds for a megabyte.
MAX_FILE_BYTES = 1 << 21
#: Most parts of a key in a schema file, and most levels of lists in lists. A schema
#: needs three and two; tomllib's time and memory grow with the square of the first.
MAX_NESTING = 8

#: In how many parts a person counts, whose records share them. More buys nothing, and an even
#: number keeps the cost of a record below that of a person (docs/proofs/units.md).
UNIT_PARTS = 60
#: Most records of a person that can be said to count as whole ones.
MOST_ROWS_PER_UNIT = 10_000

#: Whole numbers of features lie within this, so that 64-bit floats are exact.
LARGEST_WHOLE = 2**52
#: A date is held as days since then; see :meth:`datetime.date.toordinal`.
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()

#: Targets' bounds lie within this, so that scores of many trees can be added up.
LARGEST_BOUND = 1e150

_DRAFT_NOTE = """\
# A DRAFT MADE FROM THE DATA. Its bounds, categories and classes were read off single records, so a
# model fitted with it is not private. Correct every line by what is publicly known (an age lies in
# [0, 120], whatever the oldest patient's is), then delete the line "draft = true".
"""


@dataclass(frozen=True)
class Numeric:
    """A number with public bounds, seen through public bins.

    Parameters
    ----------
    low, high : float
        Public bounds. Values outside count as the nearer bound.
    bins : int, default=10
        How many bins of equal width learners that work on bins see.
    edges : sequence of float, optional
        Cut points between bins, increasing, instead of equal width. ``low`` and ``high`` themselves
        may be listed or not. Bin ``j`` holds ``edges[j-1] <= x < edges[j]``.

    Examples
    --------
    >>> Numeric(0, 120, bins=4).cuts
    array([30., 60., 90.])
    >>> Numeric(0, 120, edges=[18, 65]).bins
    3
    """

    low: float
    high: float
    bins: int = None  # type: ignore[assignment]  # always an int after construction
    edges: Sequence[float] | None = None

    #: What the feature is called in files.
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        low, high = self._read(self.low, "low"), self._read(self.high, "high")
        if not low < high or not math.isfinite(high - low):
            raise SchemaError(f"a {self.kind} feature needs finite bounds with low < high")
        bins: Any = self.bins
        if bins is not None and (
            isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1
        ):
            raise SchemaError("bins must be a whole number, at least 1")
        edges = None
        if self.edges is not None:
            given = [self._read(edge, "an edge") for edge in self.edges]
            edges = tuple(edge for edge in given if self._is_cut(edge, low, high))
            if any(edge not in (low, high) for edge in {*given} - {*edges}) or any(
                a >= b for a, b in pairwise(given)
            ):
                raise SchemaError("edges must increase and lie between low and high")
            if bins not in (None, len(edges) + 1):
                raise SchemaError(
                    f"bins contradicts the edges, which make {len(edges) + 1} bins; give one of "
                    "the two"
                )
            bins = len(edges) + 1
        bins = self._usual_bins(low, high) if bins is None else int(bins)
        if bins > MAX_BINS:
            raise SchemaError(f"at most {MAX_BINS} bins are possible")
        for name, value in (("low", low), ("high", high), ("bins", bins), ("edges", edges)):
            object.__setattr__(self, name, value)
        # Not kept: a schema that somebody sent would take memory for cuts that nobody asks for.
        cuts = self._find_cuts()
        if np.any(np.diff(cuts) <= 0) or np.any(cuts > high):
            raise SchemaError("the bounds are too close together for that many bins")

    def _read(self, value: Any, what: str) -> float:
        """Return a bound or an edge as the float as which it is compared."""
        return _number(value, what)

    def _is_cut(self, edge: float, low: float, high: float) -> bool:
        return low < edge < high

    def _usual_bins(self, low: float, high: float) -> int:
        del low, high
        return DEFAULT_BINS

    def _on_grid(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where such a feature has cuts for cuts of a number: there, unless it is whole."""
        return points

    def written(self, number: float) -> Value:
        """Return a bound or a cut as files and tables have it."""
        return number

    def shown(self, number: float) -> str:
        """Return a bound or a cut as people write it: 40, and not 40.0."""
        return str(self.written(number)).removesuffix(".0")

    @cached_property
    def cuts(self) -> NDArray[np.float64]:
        """The cut points between bins, in order (one fewer than ``bins``)."""
        return self._find_cuts()

    def _find_cuts(self) -> NDArray[np.float64]:
        if self.edges is not None:
            return np.array(self.edges, dtype=np.float64)
        steps = np.arange(1, self.bins, dtype=np.float64) / self.bins
        return self.low + (self.high - self.low) * steps

    @property
    def grid(self) -> NDArray[np.float64]:
        """Every point at which a learner may cut the feature, in order: all of them are public.

        They are the feature's own :attr:`cuts`, the landmarks of its range (4096 even steps, and
        halvings: :func:`privet.grids.landmarks`), and a fine grid of about 65,000 points
        (:func:`privet.grids.fine_grid`). All lie strictly between the bounds.

        There are at most 65,534, so that intervals and missing values have codes of 16 bits. That
        matters with more than about 550 bins: the own cuts are kept, then the landmarks, then the
        rest of the fine grid, as far as there is room. Where there is no room for all of the
        landmarks, or of the rest, they are thinned evenly: of m points with room for r, point j
        (from 0) stays if ``(j + 1) * r // m > j * r // m``.
        """
        return _grid(self)

    @property
    def fine(self) -> NDArray[np.float64]:
        """The points of the fine grid that are on :attr:`grid`, for quantiles: all, if few bins."""
        return _fine(self)

    @property
    def coarse(self) -> NDArray[np.float64]:
        """Every 64th point of :attr:`fine`: about a thousand."""
        return self.fine[COARSE // 2 :: COARSE]

    def nearest(self, points: Iterable[float]) -> tuple[float, ...]:
        """Return the points of :attr:`grid` that are nearest to some wanted cuts.

        In order, each once; halfway between two, the lower one.

        Examples
        --------
        >>> Numeric(0, 1).nearest([0.5, 0.25, 0.2500001])
        (0.25, 0.5)
        """
        wanted = self._on_grid(np.array([*points], dtype=np.float64))
        marks = self._on_grid(landmarks(self.low, self.high))
        if self.bins + len(marks) <= MAX_CUTS and np.isin(wanted, marks).all():
            return tuple(np.unique(wanted).tolist())  # the same points, but faster
        grid = self.grid
        if not len(grid):
            return ()
        wanted = np.clip(wanted, self.low, self.high)
        above = np.clip(np.searchsorted(grid, wanted), 1, max(1, len(grid) - 1))
        left, right = grid[above - 1], grid[np.minimum(above, len(grid) - 1)]
        return tuple(np.unique(np.where(right - wanted < wanted - left, right, left)).tolist())

    @property
    def size(self) -> int:
        """The number of codes: the bins and the extra bin for missing values, which is last."""
        return self.bins + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as plain data, for TOML and JSON."""
        plain: dict[str, Any] = {
            "type": self.kind,
            "low": self.written(self.low),
            "high": self.written(self.high),
        }
        if self.edges is None:
            plain["bins"] = self.bins
        else:
            plain["edges"] = [self.written(edge) for edge in self.edges]
        return plain


@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number with public bounds: children, stays, points of a scale.

    It is a :class:`Numeric` that is cut at whole numbers only: a cut at k is between what is below
    k and what is at least k. A value that is not whole is compared as it is.

    Parameters
    ----------
    low, high : int
        Public bounds, both of them possible values. Values outside count as the nearer bound.
    bins : int, optional
        How many bins learners that work on bins see: of equal width, as far as whole numbers can
        be. By default 10, or as many as there are values.
    edges : sequence of int, optional
        Where bins begin, increasing, instead of equal width. ``low`` may be listed or not.

    Examples
    --------
    >>> Integer(0, 20, bins=4).cuts
    array([ 6., 11., 16.])
    >>> Integer(0, 3).bins, Integer(0, 3).grid
    (4, array([1., 2., 3.]))
    """

    kind: ClassVar[str] = "integer"

    def _read(self, value: Any, what: str) -> float:
        number = _number(value, what)
        if not number.is_integer() or abs(number) > LARGEST_WHOLE:
            raise SchemaError(f"{what} must be a whole number within {LARGEST_WHOLE}")
        return number

    def _is_cut(self, edge: float, low: float, high: float) -> bool:
        return low < edge <= high

    def _usual_bins(self, low: float, high: float) -> int:
        return int(min(DEFAULT_BINS, high - low + 1))

    def _find_cuts(self) -> NDArray[np.float64]:
        if self.edges is not None:
            return super()._find_cuts()
        # The least whole numbers that are not below even steps of all values.
        each, left = divmod(int(self.high - self.low) + 1, self.bins)
        steps = np.arange(1, self.bins)
        return self.low + (each * steps - -left * steps // self.bins).astype(np.float64)

    def _on_grid(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cuts that say the same of whole numbers."""
        return np.unique(np.ceil(points))

    @property
    def grid(self) -> NDArray[np.float64]:
        """Every whole number at which a learner may cut the feature: above ``low``, up to ``high``.

        That are all, if there are at most 65,534; otherwise the points of a number's grid
        (:attr:`Numeric.grid`), rounded up.
        """
        return _grid(self)

    @property
    def coarse(self) -> NDArray[np.float64]:
        """At most about a thousand points of :attr:`fine`, evenly by their numbers."""
        fine = self.fine
        return thin(fine, -(-MAX_CUTS // COARSE))

    def written(self, number: float) -> Value:
        """Return a bound or a cut as files and tables have it."""
        return int(number)


@dataclass(frozen=True, init=False, repr=False)
class Date(Integer):
    """A calendar day with public bounds. Learners see it as a number: days since 1970-01-01.

    Its cuts are days: one at 2020-03-01 is between what is before that day and what is not.

    Parameters
    ----------
    low, high : datetime.date or str
        The first and the last day, or their text: ``"2020-01-31"``. Days outside count as the
        nearer bound. (As attributes, and where they are given as numbers: days since 1970-01-01.)
    bins : int, optional
        How many bins learners that work on bins see. By default 10, or as many as there are days.
    edges : sequence of datetime.date or str, optional
        Where bins begin, increasing, instead of equal width. ``low`` may be listed or not.

    Examples
    --------
    >>> Date("2020-01-01", "2020-12-31", edges=["2020-03-01"])
    Date('2020-01-01', '2020-12-31', edges=('2020-03-01',))
    >>> day_text(Date("2020-01-01", "2020-12-31", bins=2).cuts[0])
    '2020-07-02'
    """

    kind: ClassVar[str] = "date"

    def __init__(
        self,
        low: datetime.date | str | float,
        high: datetime.date | str | float,
        bins: int | None = None,
        edges: Sequence[datetime.date | str | float] | None = None,
    ) -> None:
        for name, value in (("low", low), ("high", high), ("bins", bins), ("edges", edges)):
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _read(self, value: Any, what: str) -> float:
        if isinstance(value, datetime.date):
            return float(value.toordinal() - _FIRST_DAY)
        days = day_of_text(value) if isinstance(value, str) else super()._read(value, what)
        if math.isnan(days) or not 1 <= days + _FIRST_DAY <= datetime.date.max.toordinal():
            raise SchemaError(f'{what} must be a date such as "2020-01-31"')
        return days

    def written(self, number: float) -> Value:
        """Return a bound or a cut as files and tables have it."""
        return day_text(number)

    def __repr__(self) -> str:
        plain = self.to_dict()
        bins = f"edges={(*plain['edges'],)!r}" if "edges" in plain else f"bins={self.bins}"
        return f"Date({plain['low']!r}, {plain['high']!r}, {bins})"


# Shared by equal features, of which tables can have thousands, and soon forgotten: half a megabyte
# each.
@lru_cache(maxsize=64)
def _grid(feature: Numeric) -> NDArray[np.float64]:
    if isinstance(feature, Integer) and feature.high - feature.low <= MAX_CUTS:
        grid = np.arange(feature.low + 1, feature.high + 1)
    else:
        grid = feature.cuts
        for points in (landmarks(feature.low, feature.high), fine_grid(feature.low, feature.high)):
            more = np.setdiff1d(feature._on_grid(points), grid, assume_unique=True)
            grid = np.union1d(grid, thin(more, MAX_CUTS - len(grid)))
    grid.setflags(write=False)
    return grid


@lru_cache(maxsize=64)
def _fine(feature: Numeric) -> NDArray[np.float64]:
    if isinstance(feature, Integer) and feature.high - feature.low <= MAX_CUTS:
        return feature.grid
    points = feature._on_grid(fine_grid(feature.low, feature.high))
    fine = np.intersect1d(points, feature.grid, assume_unique=True)
    fine.setflags(write=False)
    return fine


@lru_cache(maxsize=64)
def _target_grid(low: float, high: float) -> NDArray[np.float64]:
    grid = fine_grid(low, high)
    grid.setflags(write=False)
    return grid


@dataclass(frozen=True)
class Categorical:
    """A value from a public list. Everything else, and missing values, share one extra bin.

    Parameters
    ----------
    values : sequence of str, int, float or bool
        The public categories. If all are numbers, columns are compared as numbers (``1``, ``1.0``
        and the text ``"1"`` are the same); otherwise as text.

    Examples
    --------
    >>> Categorical(["f", "m"]).size
    3
    """

    values: Sequence[Value]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _vocabulary(self.values, "a categorical feature"))

    @property
    def size(self) -> int:
        """The number of codes: the categories and the extra bin, which is last."""
        return len(self.values) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as plain data, for TOML and JSON."""
        return {"type": "categorical", "values": list(self.values)}


@dataclass(frozen=True)
class Discovered:
    """What the bounds and lists of a schema have cost that were found in the data, privately.

    Attributes
    ----------
    epsilon, delta : float
        All that was spent, in both halves of delta.
    noise : str
        ``"laplace"`` or ``"gaussian"``.
    columns : int
        Of how many columns bounds or lists were found.
    lists : int
        Of how many of these it was lists.
    parts : int
        What a person's records weigh, in all: 1 if a record is a person.
    """

    epsilon: float
    delta: float
    noise: str
    columns: int
    lists: int
    parts: int = 1

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, _number(getattr(self, name), f"the discovery's {name}"))
        if not (self.epsilon > 0 and 0 <= self.delta < 1) or self.noise not in _NOISES:
            raise SchemaError(
                "a discovery has a positive epsilon, a delta below 1, and laplace or gaussian noise"
            )
        if (self.noise == "gaussian" or self.lists) and not self.delta:
            raise SchemaError("a discovery of lists, or with gaussian noise, has a delta")
        for count, least in ((self.columns, 1), (self.lists, 0), (self.parts, 1)):
            if type(count) is not int or not least <= count <= _MOST_COUNTED:
                raise SchemaError("a discovery has whole numbers of columns, lists and parts")
        if self.lists > self.columns:
            raise SchemaError("a discovery cannot find more lists than columns")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for TOML and JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


_NOISES = ("laplace", "gaussian")
#: Counts of columns and parts are small.
_MOST_COUNTED = 2**31

Feature = Numeric | Categorical
_KINDS = "Numeric(...), Integer(...), Date(...) or Categorical(...)"


@dataclass(frozen=True, repr=False)
class Schema:
    """All that is public about a table.

    Parameters
    ----------
    features : mapping of str to Numeric, Integer, Date or Categorical
        The features, in the order in which array input has its columns.
    target : str
        The name of the column to predict.
    classes : sequence, optional
        For classification: the public list of classes, at least two.
    bounds : (float, float), optional
        For regression: public bounds of the target. Exactly one of ``classes`` and ``bounds``.
    table : str, optional
        The table's name. A ledger opened for a named table refuses to pay for another one.
    drafted : bool, default=False
        True if the schema was read off the data (:meth:`draft`); fits then warn and are marked.
    unit : str, optional
        The column that says whose record a record is: a person, if many records may be of one.
        Everything is then promised to persons, with all of their records, and each counts once.
    rows_per_unit : int, optional
        With a unit: at most this many records of a person are used, and each counts as much as any
        other. If not given, all are used, and they share what the person counts.
    parties_per_unit : int, default=1
        With a unit, in a federation: at how many parties a person's records may lie.
    discovered : Discovered, optional
        What was paid if bounds or lists were found in the data privately (:meth:`discover`): cards
        of models that are fitted with the schema add it.

    Examples
    --------
    >>> schema = Schema(
    ...     {"age": Numeric(0, 120), "sex": Categorical(["f", "m"])},
    ...     target="readmitted", classes=["no", "yes"],
    ... )
    >>> schema.names
    ('age', 'sex')
    """

    features: Mapping[str, Feature]
    target: str
    classes: Sequence[Value] | None = None
    bounds: Sequence[float] | None = None
    table: str | None = None
    drafted: bool = field(default=False)
    unit: str | None = None
    rows_per_unit: int | None = None
    parties_per_unit: int = 1
    discovered: Discovered | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.features, Mapping):
            raise SchemaError(f"features must map column names to {_KINDS}")
        features = dict(self.features)
        if not features:
            raise SchemaError("a schema needs at least one feature")
        if len(features) > MAX_FEATURES:
            raise SchemaError(f"a schema can have at most {MAX_FEATURES} features")
        for name, feature in features.items():
            if not isinstance(name, str) or not name:
                raise SchemaError("feature names must be non-empty text")
            _check_length(name, "a feature's name")
            if not isinstance(feature, Numeric | Categorical):
                raise SchemaError(f"feature {quoted(name)} must be {_KINDS}")
        if not isinstance(self.target, str) or not self.target:
            raise SchemaError('the schema must name its target column: target = "..."')
        _check_length(self.target, "the target's name")
        if self.target in features:
            raise SchemaError(f"the target {quoted(self.target)} cannot be a feature too")
        if (self.classes is None) == (self.bounds is None):
            raise SchemaError(
                "say what the target is: classes=[...] for classification, or bounds=(low, high) "
                "for regression"
            )
        classes = bounds = None
        if self.classes is not None:
            classes = _vocabulary(self.classes, "the target")
            if len(classes) < 2:
                raise SchemaError("classification needs at least two classes in the schema")
        else:
            if not isinstance(self.bounds, Sequence) or len(self.bounds) != 2:
                raise SchemaError("bounds must be two numbers, low and high")
            low, high = (_number(bound, "a target bound") for bound in self.bounds)
            if not low < high:
                raise SchemaError("the target's bounds need low < high")
            if max(abs(low), abs(high)) > LARGEST_BOUND:
                raise SchemaError(
                    f"the target's bounds must lie within {LARGEST_BOUND:g}; use a larger unit"
                )
            bounds = (low, high)
        if self.table is not None and (not isinstance(self.table, str) or not self.table):
            raise SchemaError("the table's name must be non-empty text")
        _check_length(self.table, "the table's name")
        if not isinstance(self.drafted, bool):
            raise SchemaError("drafted must be true or false")
        self._check_unit()
        if not isinstance(self.discovered, Discovered | None):
            raise SchemaError("discovered must say what was paid, or be left out")
        for name, value in (("features", features), ("classes", classes), ("bounds", bounds)):
            object.__setattr__(self, name, value)

    def _check_unit(self) -> None:
        if self.unit is None:
            if self.rows_per_unit is not None or self.parties_per_unit != 1:
                raise SchemaError('rows and parties are counted per unit: name it, unit = "..."')
            return
        if not isinstance(self.unit, str) or not self.unit:
            raise SchemaError('the unit must be the name of a column: unit = "..."')
        _check_length(self.unit, "the unit's name")
        if self.unit in self.features or self.unit == self.target:
            raise SchemaError(
                f"the unit {quoted(self.unit)} says whose record it is: it cannot be a feature or "
                "the target too"
            )
        most = UNIT_PARTS
        if self.rows_per_unit is not None:
            _check_whole(self.rows_per_unit, MOST_ROWS_PER_UNIT, "rows_per_unit")
            most = self.rows_per_unit
        _check_whole(self.parties_per_unit, most, "parties_per_unit")

    @property
    def unit_parts(self) -> int:
        """In how many parts a unit of privacy counts: one, if that is a record."""
        if self.unit is None:
            return 1
        return UNIT_PARTS if self.rows_per_unit is None else int(self.rows_per_unit)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that a fit reads: features, the target, and the unit."""
        named = (*self.names, self.target)
        return named if self.unit is None else (*named, self.unit)

    @property
    def target_grid(self) -> NDArray[np.float64]:
        """The public grid on which quantiles of a number as the target are found."""
        assert self.bounds is not None
        return _target_grid(*self.bounds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(self.features)

    def of_numbers(self, name: str) -> bool:
        """Tell whether values of a feature, or of the target, are compared as numbers."""
        if name == self.unit:
            return False
        if name == self.target:
            return self.classes is None or all_numbers(self.classes)
        feature = self.features[name]
        if isinstance(feature, Categorical):
            return all_numbers(feature.values)
        return not isinstance(feature, Date)

    @cached_property
    def dates(self) -> frozenset[str]:
        """The names of the features that are dates."""
        return frozenset(n for n, feature in self.features.items() if isinstance(feature, Date))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of every feature, extra bins included."""
        return tuple(feature.size for feature in self.features.values())

    def __repr__(self) -> str:
        goal = "a number" if self.classes is None else f"{len(self.classes)} classes"
        drafted = ", DRAFTED" if self.drafted else ""
        name = visible(self.target, 40)
        features = "1 feature" if len(self.features) == 1 else f"{len(self.features)} features"
        return f"<Schema for {name}: {features}, {goal}{drafted}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [
            (name, feature.to_dict()["type"], _said(feature), feature.size - 1)
            for name, feature in self.features.items()
        ]
        if self.classes is not None:
            rows.append((self.target, "the target", ", ".join(map(str, self.classes)), ""))
        elif self.bounds is not None:
            rows.append(
                (self.target, "the target", f"{self.bounds[0]:g} to {self.bounds[1]:g}", "")
            )
        head = ["column", "kind", "public values", "bins"]
        unit = "" if self.unit is None else f"; protects persons by {self.unit}"
        return fragments.whole(fragments.table(head, rows, f"{self!r}{unit}"))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data: what the TOML and model files hold."""
        plain: dict[str, Any] = {}
        if self.table is not None:
            plain["table"] = self.table
        plain["target"] = self.target
        if self.classes is not None:
            plain["classes"] = list(self.classes)
        if self.bounds is not None:
            plain["bounds"] = list(self.bounds)
        if self.drafted:
            plain["draft"] = True
        if self.unit is not None:
            plain["unit"] = self.unit
        if self.rows_per_unit is not None:
            plain["rows_per_unit"] = int(self.rows_per_unit)
        if self.parties_per_unit != 1:
            plain["parties_per_unit"] = int(self.parties_per_unit)
        if self.discovered is not None:
            plain["discovered"] = self.discovered.to_dict()
        plain["features"] = {name: feature.to_dict() for name, feature in self.features.items()}
        return plain

    @classmethod
    def from_dict(cls, plain: Any) -> Schema:
        """Build a schema from what :meth:`to_dict` returns, checking everything."""
        table = _table(plain, "the schema")
        _known_keys(table, _KEYS, "the schema")
        if "target" not in table:
            raise SchemaError('the schema must name its target column: target = "..."')
        features = {
            str(name): _feature(entry, name)
            for name, entry in _table(table.get("features", {}), "features").items()
        }
        return cls(
            features,
            table["target"],
            classes=_optional_list(table, "classes"),
            bounds=_optional_list(table, "bounds"),
            table=table.get("table"),
            drafted=table.get("draft", False),
            unit=table.get("unit"),
            rows_per_unit=table.get("rows_per_unit"),
            parties_per_unit=table.get("parties_per_unit", 1),
            discovered=_discovered(table["discovered"]) if "discovered" in table else None,
        )

    def to_toml(self, path: str | Path) -> None:
        """Write the schema for people to read and correct.

        Raises
        ------
        OutputError
            If the file cannot be written, with the reason.
        """
        with OutputFile(path) as output:
            output.write(self.toml())

    def toml(self) -> str:
        """Return the text that :meth:`to_toml` writes.

        Raises
        ------
        SchemaError
            If a schema file cannot hold so much.
        """
        text = (_DRAFT_NOTE if self.drafted else "") + tomli_w.dumps(self.to_dict())
        if len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES:
            raise SchemaError(
                f"a schema file holds at most {MAX_FILE_BYTES:,} bytes; list fewer or shorter "
                "categories, or keep the schema in Python"
            )
        return text

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema file.

        Limits come first: a file with more than :data:`MAX_FILE_BYTES` bytes, and keys or lists
        that are nested more deeply than :data:`MAX_NESTING`, are refused before they are parsed.
        """
        plain = read_toml(path, "a schema file")
        plain.pop("release", None)  # what a person says to a registry (docs/report.md)
        return cls.from_dict(plain)

    @classmethod
    def discover(
        cls,
        frame: Any,
        kinds: Any,
        epsilon: float,
        delta: float | None = None,
        *,
        ledger: Any = None,
        random_state: Any = None,
    ) -> Schema:
        """Find bounds and lists in a sensitive table, privately, and for a price.

        Parameters
        ----------
        frame : table, path, stream or Source
            As for ``fit``, with the target among its columns.
        kinds : Kinds
            What is public: the names of the columns and what kind each has; whatever else is known
            of them is not asked.
        epsilon : float
        delta : float, optional
            Without it, categories and classes must be listed in the kinds.
        ledger : LedgerStore or path, optional
            The ledger file of the table, which pays.
        random_state
            For tests: the schema is then marked as a draft.

        Returns
        -------
        Schema
            With :attr:`discovered`. Columns of which nothing is frequent enough are left out, with
            a warning.
        """
        from privet.tables import discover

        return discover(frame, kinds, epsilon, delta, ledger=ledger, random_state=random_state)

    def check(self, rows: Any, target: Any = None, *, tolerance: float = 0.01) -> SchemaCheck:
        """Say exactly how the schema fits a table, for the table's owner alone.

        A schema with a slip (``"dead"`` for ``"Dead"``, ``high=12`` for ages) makes no fit fail:
        it makes a model of noise, which is paid for. This finds such slips. The answer is an exact
        statement about the rows and is not private: publish nothing of it, and choose nothing that
        is published by it.

        Parameters
        ----------
        rows : table, array, path, stream or Source
            The rows, as ``fit`` takes them.
        target : column, optional
            The target, if it is no column of the rows.
        tolerance : float, default=0.01
            The share of the values of a column that may be unknown, or outside of the bounds.

        Returns
        -------
        SchemaCheck
            ``fits`` tells whether all columns fit and every class is found; printed, it says what
            does not.

        Examples
        --------
        >>> schema = Schema({"age": Numeric(0, 12)}, target="state", classes=["alive", "dead"])
        >>> found = schema.check([[31], [64], [7]], ["Dead", "alive", "alive"])
        >>> found.fits, found.columns[1].above
        (False, 2)
        >>> print(found.columns[0].problems[1])
        no record has the class 'dead'; the data have 'Dead'
        """
        from privet.reading.checks import check_schema

        return check_schema(self, rows, target, tolerance=tolerance)

    def check_corrected(self) -> None:
        """Raise if the schema is a draft: no ledger pays for models that are not private."""
        if self.drafted:
            raise SchemaError(
                "the schema is a draft that was read off the data, so that no model fitted with it "
                "is private, and no ledger file pays for one. Correct it by what is publicly known "
                "and delete the line draft = true (in Python: drafted=False); or leave the ledger "
                "out, and publish nothing that is fitted"
            )

    def with_target(self, target: str) -> Schema:
        """Return the schema for another name of the target column."""
        return replace(self, target=target)

    @classmethod
    def draft(
        cls,
        frame: Any,
        target: str | None = None,
        *,
        values: Any = None,
        classes: bool | None = None,
    ) -> Schema:
        """Read a first draft of a schema off a table, for a person to correct.

        The draft depends on single records, so it is marked: fits with it warn
        (:class:`~privet.errors.PrivacyLeakWarning`) and their models are not private.

        Parameters
        ----------
        frame : dataframe
            A pandas, polars or pyarrow table, or an array.
        target : str, optional
            The target column; the last column if not given.
        values : column, optional
            The target's values, if they are not a column of the table.
        classes : bool, optional
            Whether to list the target's values as classes (else its bounds). If not given: text,
            truth values and few distinct whole numbers become classes.
        """
        from privet.reading.drafts import draft_schema

        return draft_schema(frame, target, values=values, classes=classes)


#: What a schema file may say.
_KEYS = {
    "table",
    "target",
    "classes",
    "bounds",
    "draft",
    "unit",
    "rows_per_unit",
    "parties_per_unit",
    "discovered",
    "features",
}


def _said(feature: Feature) -> str:
    """Return what is public about a feature, in short."""
    if isinstance(feature, Categorical):
        return ", ".join(map(str, feature.values))
    return f"{feature.shown(feature.low)} to {feature.shown(feature.high)}"


def _check_whole(value: Any, most: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise SchemaError(f"{what} must be a whole number from 1 to {most}")


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Read a TOML file that somebody may have sent: limits first, and no value in a message."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise SchemaError(
                f"{path} is too large to be {what}: it has more than {MAX_FILE_BYTES:,} bytes"
            )
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"cannot read {what.replace('a ', 'the ', 1)} {path}") from error
    if _is_nested(text):
        raise SchemaError(
            f"{path} is not {what}: a key in it has more than {MAX_NESTING} parts, or a list is "
            f"more than {MAX_NESTING} deep"
        )
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for a whole number with thousands of digits
        # Only the place: the message may quote the file at any length.
        place = re.search(r"\(at line (\d+), column (\d+)\)\Z", str(error))
        where = f": see line {place[1]}, column {place[2]}" if place else ""
        raise SchemaError(f"{path} is not valid TOML{where}") from None


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise SchemaError(f"{what} must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SchemaError(f"{what} must be finite")
    return number


def _check_length(text: Any, what: str) -> None:
    if isinstance(text, str) and len(text) > LONGEST_TEXT:
        raise SchemaError(f"{what} is too long: at most {LONGEST_TEXT} characters are possible")


#: What matters for nesting in TOML: dots and what separates keys and values. Strings (of four
#: kinds, which may hold all of these) and comments are passed over. A match never goes back, so
#: that the time is linear in the text.
_TOML_TOKENS = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5}|\\?\Z)'''
    r"""|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5}|\Z)"""
    r"""|"(?:[^"\\\n]|\\[^\n])*+["\\]?"""
    r"""|'[^'\n]*+'?|\#[^\n]*+|(?P<dot>\.)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>[=,\n])""",
    re.DOTALL,
)


def _is_nested(text: str) -> bool:
    r"""Tell whether TOML has keys of too many parts or lists that are too deep.

    A key's parts have dots between them, and what separates keys from values starts anew: a number
    has one dot at most.

    Examples
    --------
    >>> _is_nested("features.age.low = 0.5"), _is_nested("a." * 8 + "a = 1"), _is_nested("[" * 9)
    (False, True, True)
    >>> _is_nested('a = "[[[[[[[[[[ . . . . . . . . . . #"  # [[[[[[[[[[')
    False
    """
    dots = depth = 0
    for token in _TOML_TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "dot":
            dots += 1
        elif kind is not None:
            dots = 0
            depth = max(0, depth + (kind == "open") - (kind == "close"))
        if dots >= MAX_NESTING or depth > MAX_NESTING:
            return True
    return False


def _vocabulary(values: Any, what: str) -> tuple[Value, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise SchemaError(f"{what} needs a list of values")
    plain = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if not plain:
        raise SchemaError(f"{what} needs at least one value")
    if len(plain) > MAX_BINS:
        raise SchemaError(f"{what} can have at most {MAX_BINS} values")
    if any(not isinstance(v, str | int | float) for v in plain):
        raise SchemaError(f"{what} can list text, numbers and truth values only")
    for value in plain:
        _check_length(value, f"a value of {what}")
    if any(isinstance(v, int) and abs(v) >= 2**63 for v in plain):
        raise SchemaError(f"{what} lists a whole number that no column can hold")
    if any(isinstance(v, float) and not math.isfinite(v) for v in plain):
        raise SchemaError(f"{what} cannot list NaN or infinity: missing values have a bin already")
    numbers = all_numbers(plain)
    if len({value_key(v, numbers) for v in plain}) < len(plain):
        raise SchemaError(
            f"{what} lists a value twice, or two numbers that are one as 64-bit floats, as which "
            "numbers are compared"
        )
    return plain


def all_numbers(values: Sequence[Value]) -> bool:
    """Tell whether a list of categories or classes is compared as numbers."""
    return all(not isinstance(v, str) for v in values)


def value_key(value: Value, numbers: bool) -> Value:
    """Return what two equal categories have in common: a float, or text."""
    return float(value) if numbers else value_text(value)


def value_text(value: Any) -> str:
    """Return the text by which a category is known: a number is known by its 64-bit float.

    A whole number has no decimal point, so that 1, 1.0 and the text "1" are one category.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | float | np.integer | np.floating | Decimal | Fraction):
        number = as_double(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def as_double(value: Any) -> float:
    """Return a number as a 64-bit float, as which numbers are compared; infinity if too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


#: A day, perhaps with a time of that day, perhaps with that time's distance from UTC.
DAY_PATTERN = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?"
    r" ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY = re.compile(DAY_PATTERN)


def day_of_text(text: str) -> float:
    """Return the calendar day that a text states, in days since 1970-01-01; NaN if it states none.

    A text is YYYY-MM-DD, or that with a time behind it, which does not matter.

    Examples
    --------
    >>> day_of_text("1970-01-02"), day_of_text("1970-01-02T23:00:00-05:00"), day_of_text("2.1.70")
    (1.0, 1.0, nan)
    """
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return math.nan
    try:
        return float(datetime.date(*map(int, found.groups())).toordinal() - _FIRST_DAY)
    except ValueError:  # there is no such day
        return math.nan


def day_text(days: float) -> str:
    """Return the text of a day: YYYY-MM-DD."""
    return datetime.date.fromordinal(int(days) + _FIRST_DAY).isoformat()


def _table(plain: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(plain, Mapping):
        raise SchemaError(f"{what} must be a table of keys and values")
    return plain


def _known_keys(table: Mapping[str, Any], known: set[str], what: str) -> None:
    unknown = sorted(set(map(str, table)) - known)
    if unknown:
        raise SchemaError(
            f"{what} has an unknown key {quoted(unknown[0])}; known: {', '.join(sorted(known))}"
        )


def _optional_list(table: Mapping[str, Any], key: str) -> tuple[Any, ...] | None:
    if key not in table:
        return None
    if not isinstance(table[key], Sequence) or isinstance(table[key], str):
        raise SchemaError(f"{key} must be a list")
    return tuple(table[key])


def _discovered(plain: Any) -> Discovered:
    table = _table(plain, "discovered")
    names = {each.name for each in fields(Discovered)}
    _known_keys(table, names, "discovered")
    if lacking := sorted(names - set(table)):
        raise SchemaError(f"discovered lacks {quoted(lacking[0])}")
    return Discovered(**table)


_NUMERIC: dict[str, type[Numeric]] = {each.kind: each for each in (Numeric, Integer, Date)}


def _feature(entry: Any, name: str) -> Feature:
    what = f"feature {quoted(name)}"
    table = _table(entry, what)
    kind = table.get("type")
    try:
        if isinstance(kind, str) and kind in _NUMERIC:
            _known_keys(table, {"type", "low", "high", "bins", "edges"}, "it")
            return _NUMERIC[kind](
                table["low"],
                table["high"],
                bins=table.get("bins"),  # type: ignore[arg-type]
                edges=_optional_list(table, "edges"),
            )
        if kind == "categorical":
            _known_keys(table, {"type", "values"}, "it")
            return Categorical(table["values"])
    except KeyError as error:
        raise SchemaError(f"{what} lacks {quoted(error.args[0])}") from None
    except SchemaError as error:
        raise SchemaError(f"feature {quoted(name)}: {error}") from None
    raise SchemaError(
        f'feature {quoted(name)} needs type = "numeric", "integer", "date" or "categorical"'
    )
