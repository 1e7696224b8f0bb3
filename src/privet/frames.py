"""Reading the columns of any table by the rules of the schema.

pandas, polars and pyarrow tables come in through narwhals, arrays through numpy. This module turns
columns into numbers (missing values as NaN) and into positions in a public list of values; it knows
the schema and nothing of privacy. Its errors speak of names and types, never of values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from privet.errors import ColumnTypeError, ColumnTypeWarning, DataError
from privet.schema import Numeric, Schema, Value, all_numbers, value_key, value_text

_TRUTH = {"true": 1.0, "false": 0.0}
_BLOCK = 65_536


class Columns:
    """The named columns of one table, read on demand.

    Use :meth:`of` to make one.
    """

    def __init__(self, names: Sequence[str], data: Any, rows: int) -> None:
        self.names = tuple(names)
        self._data = data
        self._rows = rows

    @classmethod
    def of(cls, table: Any, schema: Schema | None = None) -> Columns:
        """Open a table; with a schema, check that its features are there.

        An array has no names: its columns are taken as the schema's features, in order.
        """
        try:
            frame = nw.from_native(table, eager_only=True, pass_through=True)
            names = [str(name) for name in frame.columns] if isinstance(frame, nw.DataFrame) else []
        except DuplicateError:
            names = ["", ""]
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name; rename one")
        if isinstance(frame, nw.DataFrame):
            columns = cls(names, frame, len(frame))
            if schema is not None:
                missing = [name for name in schema.names if name not in columns.names]
                if missing:
                    raise DataError(
                        f"the data have no column {missing[0]!r}, which the schema lists"
                        + (f" ({len(missing)} columns are missing)" if len(missing) > 1 else "")
                    )
            return columns
        if isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame):
            raise ColumnTypeError("the table is lazy: collect it first, and pass what that gives")
        if hasattr(table, "tocsr") or hasattr(table, "toarray"):
            raise ColumnTypeError("sparse input is not supported: pass a dense table")
        if table is None or isinstance(table, str | bytes | dict):
            raise ColumnTypeError(
                "expected a pandas, polars or pyarrow table, or a two-dimensional array"
            )
        array = np.asarray(table)
        if array.dtype.kind == "c":
            raise DataError("Complex data not supported: pass real numbers")
        if array.ndim != 2:
            raise DataError(
                "expected a two-dimensional array of rows and columns, got "
                f"{array.ndim} dimension(s). Reshape your data either using array.reshape(-1, 1) "
                "if it has a single feature or array.reshape(1, -1) if it is a single sample"
            )
        if array.shape[1] == 0:
            raise DataError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        if schema is None:
            names = [f"x{j}" for j in range(array.shape[1])]
        elif array.shape[1] != len(schema.names):
            raise DataError(
                f"the array has {array.shape[1]} columns, but the schema lists "
                f"{len(schema.names)} features; array columns are taken in the schema's order"
            )
        else:
            names = list(schema.names)
        return cls(names, array, len(array))

    def __len__(self) -> int:
        return self._rows

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own (a dataframe, not an array)."""
        return isinstance(self._data, nw.DataFrame)

    @property
    def matrix(self) -> NDArray[Any] | None:
        """The whole table as one array of real numbers, if it came as one."""
        if self.named or self._data.dtype.kind not in "fiub":
            return None
        return np.asarray(self._data)

    def column(self, name: str) -> nw.Series[Any] | NDArray[Any]:
        """Return one column as it came."""
        if self.named:
            series: nw.Series[Any] = self._data.get_column(
                self._data.columns[self.names.index(name)]
            )
            return series
        return np.asarray(self._data[:, self.names.index(name)])

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as floats; what is missing or no number is NaN."""
        return as_numbers(self.column(name), name)

    def codes(self, name: str, values: Sequence[Value]) -> NDArray[np.intp]:
        """Return positions in a list of values; what is not in it gets ``len(values)``."""
        return as_codes(self.column(name), values, name)


def target_column(columns: Columns, schema: Schema) -> Any:
    """Return the column that the schema names as the target, as it came."""
    if schema.target not in columns.names:
        raise DataError(
            f"the data have no column {schema.target!r}, which the schema names as the target; "
            "pass the target by itself, or add the column"
        )
    column = columns.column(schema.target)
    return column if isinstance(column, np.ndarray) else column.to_native()


def feature_matrix(
    table: Any, schema: Schema, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return features as one array: numbers as they are, categories as positions in their list."""
    columns = Columns.of(table, schema)
    chosen = schema.names if names is None else names
    matrix = np.empty((len(columns), len(chosen)))
    for j, name in enumerate(chosen):
        feature = schema.features[name]
        if isinstance(feature, Numeric):
            matrix[:, j] = columns.numbers(name)
        else:
            matrix[:, j] = columns.codes(name, feature.values)
    return matrix


def as_series(values: Any, name: str) -> nw.Series[Any] | NDArray[Any]:
    """Return a single column given by itself (a series, a list, an array) as a column."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one column, got {array.ndim} dimensions")
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} must hold real numbers or text")
    return array


def check_readable(column: nw.Series[Any] | NDArray[Any], name: str) -> None:
    """Refuse a column whose type can hold neither numbers nor categories. Looks at no value."""
    as_numbers(column[:0], name, quiet=True)


def as_numbers(
    column: nw.Series[Any] | NDArray[Any], name: str, *, quiet: bool = False
) -> NDArray[np.float64]:
    """Read a column as floats by the schema's rules; see :meth:`Columns.numbers`."""
    if isinstance(column, nw.Series):
        kind = column.dtype
        if kind.is_float() or kind == nw.Boolean:
            if kind == nw.Boolean:
                column = column.cast(nw.Int8)
            return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        if kind.is_numeric():
            # Not by a cast of the library's own: some refuse whole numbers beyond 2^53, with a
            # message that quotes them.
            numbers = column.to_numpy()
            if numbers.dtype.kind in "fiu":
                return np.asarray(numbers, dtype=np.float64)
            return _objects_to_numbers(column.to_list())
        # An object column has no declared type (narwhals looks at its values to name one).
        native = str(getattr(column.to_native(), "dtype", ""))
        if kind in (nw.Object, nw.Unknown) or native == "object":
            return _objects_to_numbers(column.to_list())
        if kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum):
            return _parse(column.to_list(), name, quiet=quiet)
        raise ColumnTypeError(f"column {name!r} has type {kind}, which cannot be read as numbers")
    if column.dtype.kind in "fiub":
        return np.asarray(column, dtype=np.float64)
    if column.dtype.kind in "USO":  # numpy makes text of a list if one of its items is text
        return _objects_to_numbers(column.tolist())
    raise ColumnTypeError(f"column {name!r} has type {column.dtype}, which holds no numbers")


def as_codes(
    column: nw.Series[Any] | NDArray[Any], values: Sequence[Value], name: str
) -> NDArray[np.intp]:
    """Read a column as positions in a public list of values; others get ``len(values)``."""
    other = len(values)
    if all_numbers(values):
        numbers = as_numbers(column, name)
        listed = np.array([float(value) for value in values])
        order = np.argsort(listed)
        listed = listed[order]
        codes = np.empty(len(numbers), dtype=np.intp)
        for start in range(0, len(numbers), _BLOCK):  # what lies between stays in the cache
            block = slice(start, start + _BLOCK)
            place = np.minimum(np.searchsorted(listed, numbers[block]), other - 1)
            codes[block] = np.where(listed[place] == numbers[block], order[place], other)
        return codes
    index: dict[Any, int] = {
        value_key(value, numbers=False): code for code, value in enumerate(values)
    }
    if isinstance(column, nw.Series):
        coded = _by_dictionary(column, index, other)
        if coded is not None:
            return coded
    items = column.to_list() if isinstance(column, nw.Series) else column.tolist()
    if _is_text(column):
        found = (index.get(item, other) for item in items)
    else:
        found = (
            index.get(item if type(item) is str else _known_text(item), other) for item in items
        )
    return np.fromiter(found, dtype=np.intp, count=len(items))


def _by_dictionary(
    column: nw.Series[Any], index: dict[Any, int], other: int
) -> NDArray[np.intp] | None:
    """Read text and categories by looking up each distinct value once; None if that fails."""
    if column.dtype not in (nw.String, nw.Categorical) and not isinstance(column.dtype, nw.Enum):
        return None
    try:
        arrow = column.to_arrow()
        if not hasattr(arrow.type, "index_type"):
            arrow = arrow.dictionary_encode()
        if hasattr(arrow, "combine_chunks"):
            arrow = arrow.unify_dictionaries().combine_chunks()
        chunks = arrow.chunks if hasattr(arrow, "chunks") else [arrow]
        parts = []
        for chunk in chunks:
            known = [index.get(_known_text(item), other) for item in chunk.dictionary.to_pylist()]
            places = chunk.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
            parts.append(np.array([*known, other], dtype=np.intp)[places])
    except Exception:  # whatever a library says of a column's values stays unsaid
        return None
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)


def distinct_values(column: nw.Series[Any] | NDArray[Any]) -> list[Value]:
    """Return the distinct values of a column, sorted; missing ones are passed over."""
    if isinstance(column, nw.Series):
        items = column.unique().to_list()
    elif column.dtype.kind == "O":
        items = list({item: None for item in column.tolist()})
    else:
        items = np.unique(column).tolist()
    present = {
        item
        for item in items
        if item is not None and not (isinstance(item, float) and math.isnan(item))
    }
    plain = [v if isinstance(v, bool | int | float | str) else str(v) for v in present]
    if all_numbers(plain):
        whole = all(float(v).is_integer() for v in plain)
        keep_bool = all(isinstance(v, bool) for v in plain)
        plain = [v if keep_bool or not whole else int(v) for v in plain]
        return sorted(plain)
    return sorted({value_text(v) for v in plain})


def holds_numbers(column: nw.Series[Any] | NDArray[Any]) -> bool:
    """Tell from the column's type (objects: from its values) whether it holds numbers."""
    if isinstance(column, nw.Series):
        if column.dtype not in (nw.Object, nw.Unknown):
            return column.dtype.is_numeric()
        items = column.to_list()
    elif column.dtype.kind != "O":
        return column.dtype.kind in "fiu"
    else:
        items = column.tolist()
    return all(
        item is None or (isinstance(item, int | float | np.number) and not isinstance(item, bool))
        for item in items
    )


def _is_text(column: nw.Series[Any] | NDArray[Any]) -> bool:
    if isinstance(column, nw.Series):
        return column.dtype == nw.String
    return column.dtype.kind == "U"


def _parse(items: list[Any], name: str, *, quiet: bool) -> NDArray[np.float64]:
    if not quiet:
        warnings.warn(
            f"column {name!r} holds text where the schema has numbers: each value is read as a "
            "number, and text that is no number counts as missing",
            ColumnTypeWarning,
            stacklevel=2,
        )
    return _objects_to_numbers(items)


def _objects_to_numbers(items: list[Any]) -> NDArray[np.float64]:
    return np.fromiter((_to_number(item) for item in items), dtype=np.float64, count=len(items))


def _to_number(item: Any) -> float:
    if isinstance(item, str | bytes):
        text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
        truth = _TRUTH.get(text.strip().lower())
        if truth is not None:
            return truth
        item = text
    try:
        return float(item)
    except Exception:  # whatever an object says of itself stays unsaid
        return math.nan


def _known_text(item: Any) -> str | None:
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return None
    try:
        return value_text(item)
    except Exception:  # an object without a text: no category, whatever it says of itself
        return None
