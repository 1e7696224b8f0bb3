"""Rows into blocks of codes: the last place where a value is seen.

A number becomes its place on the feature's public grid (``Numeric.grid``): how many points of it
are not above the number. All cuts of all learners are points of that grid, so that every test of
every tree can be answered from places, and the values themselves are not kept. A category becomes
its place in the list. The target is a class's place, or a 64-bit float between 0 and 1.

Bytes per cell: two for a number (one if its grid has fewer than 255 points), one for a category
(two from 256 on); per row one for a class (two from 256 on) or eight for a number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels
from privet.reading import Column, Columns
from privet.schema import Numeric, Schema

#: Rows of an array that are encoded together, so that they stay in the cache.
_CHUNK = 16_384


class Encoder:
    """Turns columns into codes, by the schema alone.

    Parameters
    ----------
    schema : Schema

    Attributes
    ----------
    sizes : tuple of int
        How many codes every feature has.
    kinds : tuple of dtypes
        The type of every feature's codes.
    target_kind : dtype
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.sizes = tuple(
            len(feature.grid) + 2 if isinstance(feature, Numeric) else feature.size
            for feature in schema.features.values()
        )
        self.kinds = tuple(map(narrowest, self.sizes))
        self.target_kind: np.dtype[Any] = np.dtype(np.float64)
        if schema.classes is not None:
            self.target_kind = narrowest(len(schema.classes) + 1)

    @property
    def row_bytes(self) -> int:
        """How many bytes a row takes."""
        return sum(kind.itemsize for kind in (*self.kinds, self.target_kind))

    def empty(self, rows: int) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """Return arrays for this many rows."""
        codes = [np.empty(rows, dtype=kind) for kind in self.kinds]
        return codes, np.empty(rows, dtype=self.target_kind)

    def encode(self, columns: Columns, codes: Sequence[NDArray[Any]], *, fast: bool) -> None:
        """Write the codes of all features."""
        matrix, features = columns.matrix, list(self.schema.features.values())
        numeric = [j for j, feature in enumerate(features) if isinstance(feature, Numeric)]

        def find(j: int, numbers: NDArray[Any], out: NDArray[Any]) -> None:
            feature = features[j]
            assert isinstance(feature, Numeric)
            _search(feature).find(numbers, out, fast=fast)

        def encode_rows(part: slice) -> None:
            # An array mostly comes row by row: encode all columns of a chunk while it is near.
            assert matrix is not None
            for start in range(part.start, part.stop, _CHUNK):
                chunk = slice(start, min(start + _CHUNK, part.stop))
                for j in numeric:
                    find(j, matrix[chunk, j], codes[j][chunk])

        if matrix is not None:
            in_threads(encode_rows, parts_of(len(columns), workers()), fast=fast)
        else:
            names = self.schema.names
            in_threads(lambda j: find(j, columns.numbers(names[j]), codes[j]), numeric, fast=fast)
        for j, (name, feature) in enumerate(self.schema.features.items()):
            if not isinstance(feature, Numeric):
                codes[j][:] = columns.codes(name, feature.values)

    def encode_target(self, target: Column, out: NDArray[Any]) -> None:
        """Write classes, or numbers as parts of the way between the bounds."""
        if self.schema.classes is not None:
            out[:] = target.codes(self.schema.classes)
            return
        assert self.schema.bounds is not None
        low, high = self.schema.bounds
        with np.errstate(invalid="ignore"):  # of a NaN that signals
            out[:] = (np.clip(target.numbers(), low, high) - low) / (high - low)


# A search needs a megabyte; equal features share it.
@lru_cache(maxsize=128)
def _search(feature: Numeric) -> _kernels.GridSearch:
    return _kernels.GridSearch(feature.grid, feature.low, feature.high)


def narrowest(codes: int) -> np.dtype[Any]:
    """Return the smallest type that holds this many codes."""
    return np.dtype(np.uint8 if codes <= 2**8 else np.uint16 if codes <= 2**16 else np.uint32)


def workers() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts_of(rows: int, count: int) -> list[slice]:
    """Return the rows in ``count`` parts of about the same size."""
    bounds = [rows * k // count for k in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def in_threads(work: Any, items: Sequence[Any] | Iterable[Any], *, fast: bool) -> list[Any]:
    """Run jobs in threads, if the loops are compiled: numpy would not release the lock."""
    items = list(items)
    if not fast or len(items) < 2 or workers() < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(work, items))
