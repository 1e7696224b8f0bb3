"""Rows into blocks of codes: the last place where a value is seen.

A number becomes its place on the feature's public grid (``Numeric.grid``): how many points of it
are not above the number. All cuts of all learners are points of that grid, so that every test of
every tree can be answered from places, and the values themselves are not kept. A category becomes
its place in the list. The target is a class's place, or a 64-bit float between 0 and 1.

Bytes per cell: two for a number (one if its grid has fewer than 255 points), one for a category
(two from 256 on); per row one for a class (two from 256 on) or eight for a number. With a unit,
twenty-four per row say whose it is, and one or two what it weighs.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.engines import _kernels, units
from privet.reading import Column, Columns
from privet.schema import Numeric, Schema

#: Rows of an array that are encoded together, so that they stay in the cache.
_CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as codes.

    Attributes
    ----------
    codes : list of arrays, one per feature
    target : array
    names : list of arrays
        The words of the names of persons; none without a unit.
    """

    codes: list[NDArray[Any]]
    target: NDArray[Any]
    names: list[NDArray[np.uint64]]

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]], encoder: Encoder) -> Encoded:
        """Take apart what :attr:`arrays` puts together."""
        features = len(encoder.kinds)
        return cls(list(arrays[:features]), arrays[features], list(arrays[features + 1 :]))

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All arrays: codes, the target, and the words of names."""
        return [*self.codes, self.target, *self.names]

    def __getitem__(self, part: slice) -> Encoded:
        """Return some of the rows, in the same memory."""
        names = [words[part] for words in self.names]
        return Encoded([mine[part] for mine in self.codes], self.target[part], names)

    def __len__(self) -> int:
        return len(self.target)


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

        names = 0 if schema.unit is None else units.WORDS
        #: The types of all arrays of a block: codes, the target, and the words of persons' names.
        self.all_kinds = (*self.kinds, self.target_kind, *[np.dtype(np.uint64)] * names)

    @property
    def row_bytes(self) -> int:
        """How many bytes a row takes."""
        return sum(kind.itemsize for kind in self.all_kinds)

    def empty(self, rows: int) -> Encoded:
        """Return arrays for this many rows."""
        return Encoded.of([np.empty(rows, dtype=kind) for kind in self.all_kinds], self)

    def encode_rows(self, columns: Columns, target: Column, out: Encoded, *, fast: bool) -> None:
        """Write rows as codes, with their target and whose they are."""
        self.encode(columns, out.codes, fast=fast)
        self.encode_target(target, out.target)
        if self.schema.unit is not None:
            names = units.names_of(columns.identifiers(self.schema))
            for mine, words in zip(out.names, names, strict=True):
                mine[:] = words

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

        threads = workers() if fast else 1
        if matrix is not None:
            in_threads(encode_rows, parts_of(len(columns), workers()), threads)
        else:
            names = self.schema.names
            in_threads(lambda j: find(j, columns.numbers(names[j]), codes[j]), numeric, threads)
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


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], threads: int) -> list[Any]:
    """Run jobs in threads, of which the one that calls is the first.

    Worth it for compiled loops only: numpy would not release the lock. Others help if they are
    free, and are waited for if they began; nothing depends on whether they do.
    """
    items = list(items)
    if threads < 2 or len(items) < 2:
        return [work(item) for item in items]
    todo, found = deque(enumerate(items)), [None] * len(items)

    def take() -> None:
        while True:
            try:
                place, item = todo.popleft()
            except IndexError:
                return
            found[place] = work(item)

    helpers = [_helpers().submit(take) for _ in range(min(threads, len(items)) - 1)]
    try:
        take()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return found


@lru_cache(maxsize=1)
def _helpers() -> ThreadPoolExecutor:
    """Return threads that stay: to start one takes as long as many a job."""
    return ThreadPoolExecutor(max(workers() - 1, 1), thread_name_prefix="privet")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads are not forked
