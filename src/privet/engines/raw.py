"""Exact counts of a table that has no schema yet: of magnitudes, and of texts.

Codes follow from a schema, so there are none here: columns are counted as they are read, batch by
batch. Memory: without units, a histogram for every column of numbers; texts are counted in a
database that SQLite keeps on the disk as soon as it is large, so that many different texts take
room there only. With units a record's weight is known when all records are, so that two bytes are
kept for every number of a record, four for every text and 24 for its unit, in a file that only this
process sees; records are put together share by share of persons. Every text is held once.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from privet.engines.units import WORDS, hashed, lone_weight, names_of, nobodys, weights_of
from privet.engines.weighing import ORDER_KEY, shares_of
from privet.grids import Magnitudes
from privet.reading import Columns
from privet.schema import LONGEST_TEXT, Schema

Integers = NDArray[np.int64]

#: How many texts are counted, or given back, at once.
_TEXTS_AT_ONCE = 2**16
#: Bytes of records that are kept in memory.
_LARGE = 2**26


class RawCounts:
    """How many records, or parts of persons, have which magnitudes and texts.

    Parameters
    ----------
    numbers, texts : sequence of str
        The columns that are counted by magnitudes and by texts.
    magnitudes : Magnitudes
    schema : Schema
        By which the columns are read, with the unit, if there is one.
    """

    def __init__(
        self,
        numbers: Sequence[str],
        texts: Sequence[str],
        magnitudes: Magnitudes,
        schema: Schema,
    ) -> None:
        self._numbers, self._texts, self._magnitudes = list(numbers), list(texts), magnitudes
        self._schema = schema
        size = magnitudes.size * magnitudes.eighths_each
        self._eighths = np.zeros((len(numbers), size), dtype=np.int64)
        self._counted = sqlite3.connect("")  # on the disk if it is large, and gone when closed
        self._counted.execute(
            "CREATE TABLE counted (place INTEGER, text BLOB, records INTEGER, "
            "PRIMARY KEY (place, text)) WITHOUT ROWID"
        )
        #: On the disk if it is large, and gone when closed.
        self._kept = tempfile.SpooledTemporaryFile(max_size=_LARGE)  # noqa: SIM115  # closed at the end
        self._sizes: list[int] = []
        self._end = finalize(self, _close, self._counted, self._kept)
        self._known: list[dict[bytes, int]] = [{} for _ in texts]

    def add(self, columns: Columns) -> None:
        """Count some records more."""
        if self._schema.unit is not None:
            self._keep(columns)
            return
        for place, name in enumerate(self._numbers):
            self._add_eighths(place, self._magnitudes.eighths(columns.numbers(name)), None)
        for place, name in enumerate(self._texts):
            texts, which = columns.column(name).texts()
            which = np.arange(len(texts)) if which is None else which % max(len(texts), 1)
            counts = np.bincount(which, minlength=len(texts))
            self._add_texts(place, [_listable(text) for text in texts], counts)

    def _add_eighths(self, place: int, eighths: NDArray[Any], weights: Integers | None) -> None:
        # The first place is for what is missing.
        size = self._eighths.shape[1]
        counts = np.bincount(eighths.astype(np.intp) + 1, weights, minlength=size + 1)
        self._eighths[place] += np.rint(counts[1:]).astype(np.int64)

    def _add_texts(self, place: int, texts: Sequence[bytes | None], counts: NDArray[Any]) -> None:
        rows = [
            (place, text, int(count))
            for text, count in zip(texts, counts.tolist(), strict=True)
            if text is not None and count
        ]
        self._counted.executemany(
            "INSERT INTO counted VALUES (?, ?, ?) ON CONFLICT (place, text) "
            "DO UPDATE SET records = records + excluded.records",
            rows,
        )

    def _keep(self, columns: Columns) -> None:
        """Keep what is counted of some records until all records of a person are known."""
        rows = len(columns)
        eighths = np.empty((len(self._numbers), rows), dtype=np.uint16)
        for place, name in enumerate(self._numbers):  # one more, so that missing ones are zero
            eighths[place] = self._magnitudes.eighths(columns.numbers(name)) + 1
        codes = np.empty((len(self._texts), rows), dtype=np.int32)
        for place, name in enumerate(self._texts):
            texts, which = columns.column(name).texts()
            known = self._known[place]
            found = [
                -1 if (text := _listable(each)) is None else known.setdefault(text, len(known))
                for each in texts
            ]
            mine = np.array(found, dtype=np.int32)
            codes[place] = mine if which is None else mine[which]
        for array in (names_of(columns.identifiers(self._schema)), eighths, codes):
            self._kept.write(array.tobytes())
        self._sizes.append(rows)

    def _batches(self) -> Iterator[tuple[NDArray[Any], ...]]:
        """Yield what was kept: names of persons, eighths and codes of texts."""

        def read(columns: int, rows: int, kind: type[np.integer[Any]]) -> NDArray[Any]:
            size = columns * rows * np.dtype(kind).itemsize
            return np.frombuffer(self._kept.read(size), kind).reshape(columns, rows)

        self._kept.seek(0)
        for rows in self._sizes:
            yield (
                read(WORDS, rows, np.uint64),
                read(len(self._numbers), rows, np.uint16),
                read(len(self._texts), rows, np.int32),
            )

    def _finish(self) -> None:
        """Weigh the records of persons, now that all are there, and count them.

        A share of all persons at a time. Without an identifier each record is a person of its own.
        The others are taken in their order within the person, which nobody else's records change.
        """
        if not self._sizes:
            return
        sums = [np.zeros(len(texts), dtype=np.int64) for texts in self._known]
        shares = shares_of(sum(self._sizes))
        for share in range(shares):
            mine = [
                np.flatnonzero(_in_share(names, share, shares)) for names, *_ in self._batches()
            ]
            names = np.concatenate(
                [names[:, rows] for (names, *_), rows in zip(self._batches(), mine, strict=True)],
                axis=1,
            )
            weights = np.full(names.shape[1], lone_weight(self._schema), dtype=np.int64)
            known = np.flatnonzero(~nobodys(names))
            weights[known] = weights_of(names[:, known], known.astype(np.uint64), self._schema)
            ends = np.cumsum([len(rows) for rows in mine])[:-1]
            for (_, eighths, codes), rows, here in zip(
                self._batches(), mine, np.split(weights, ends), strict=True
            ):
                for place, column in enumerate(eighths):
                    self._add_eighths(place, column[rows].astype(np.intp) - 1, here)
                for total, column in zip(sums, codes, strict=True):
                    found = column[rows]
                    np.add.at(total, found[found >= 0], here[found >= 0])
        for place, (texts, total) in enumerate(zip(self._known, sums, strict=True)):
            self._add_texts(place, list(texts), total)
        self._sizes = []

    @property
    def eighths(self) -> Integers:
        """How many parts are in every eighth of a magnitude, one row per column."""
        self._finish()
        return self._eighths

    @property
    def histograms(self) -> Integers:
        """How many parts are in every cell of magnitudes, one row per column."""
        each = self._magnitudes.eighths_each
        found: Integers = self.eighths.reshape(len(self._numbers), -1, each).sum(axis=2)
        return found

    def texts(self, place: int) -> Iterator[tuple[list[str], Integers]]:
        """Yield the texts of a column that anybody has, in their order, and how many parts."""
        self._finish()
        rows = self._counted.execute(
            "SELECT text, records FROM counted WHERE place = ? ORDER BY text", (place,)
        )
        while some := rows.fetchmany(_TEXTS_AT_ONCE):
            yield (
                [text.decode() for text, _ in some],
                np.array([count for _, count in some], dtype=np.int64),
            )

    def close(self) -> None:
        """Give up all counts."""
        self._end()


def _close(*files: Any) -> None:
    for each in files:
        each.close()


def _in_share(names: NDArray[np.uint64], share: int, shares: int) -> NDArray[np.bool_]:
    """Tell which records are of a share of persons; the first has those without identifier."""
    which = np.where(nobodys(names), 0, hashed(names, ORDER_KEY) % np.uint64(shares))
    return np.asarray(which == share)


def _listable(text: str | None) -> bytes | None:
    """Return a text's bytes if a schema can list it; None if it cannot, or is missing."""
    if text is None or len(text) > LONGEST_TEXT:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:  # it has halves of characters
        return None
