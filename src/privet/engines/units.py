"""Whose record a record is, and what it weighs if that person has many.

A person's records share a whole number of parts, by a rule that looks at all records of the person
and at nobody else's. Rule and proof: ``docs/proofs/units.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privet.engines.hashing import mix
from privet.schema import Schema

#: A person's name in a block: three 64-bit words. Identifiers of up to 23 bytes are their own
#: names; longer ones are hashed to 184 bits, of which nobody finds two alike.
WORDS = 3
_LONGEST = 8 * WORDS - 1
_HASHED, _NOBODY = 0xFF, 0xFE


#: Names of persons: one array for each of their words.
Names = Sequence[NDArray[np.uint64]] | NDArray[np.uint64]


def names_of(identifiers: pa.LargeBinaryArray) -> NDArray[np.uint64]:
    """Return the names of persons, of shape (words, records); nobody's for a missing identifier."""
    count = len(identifiers)
    packed = np.zeros((count, 8 * WORDS), dtype=np.uint8)
    if count:
        _, ends, data = identifiers.buffers()
        ends = np.frombuffer(ends, np.int64)[identifiers.offset : identifiers.offset + count + 1]
        text = np.frombuffer(b"" if data is None else data, np.uint8)
        known = identifiers.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.diff(ends)
        short = known & (lengths <= _LONGEST)
        for place in range(min(int(lengths[short].max(initial=0)), _LONGEST)):
            rows = np.flatnonzero(short & (lengths > place))
            packed[rows, place] = text[ends[rows] + place]
        packed[:, -1] = np.where(short, lengths, _NOBODY)
        found: dict[bytes, NDArray[np.uint8]] = {}
        for row in np.flatnonzero(known & ~short).tolist():
            whole = text[ends[row] : ends[row + 1]].tobytes()
            if whole not in found:
                digest = blake2b(whole, digest_size=_LONGEST).digest()
                found[whole] = np.frombuffer(digest + bytes([_HASHED]), np.uint8)
            packed[row] = found[whole]
    return np.ascontiguousarray(packed.view("<u8").T, dtype=np.uint64)


def nobodys(names: Names) -> NDArray[np.bool_]:
    """Tell which records have no identifier, so that each is a person of its own."""
    return np.asarray(names[-1] >> np.uint64(56) == _NOBODY)


def hashed(names: Names, key: int) -> NDArray[np.uint64]:
    """Return a keyed hash of every person."""
    state = np.full(len(names[0]), np.uint64(key))
    for words in names:
        state = mix(state ^ words)
    return state


def lone_weight(schema: Schema) -> int:
    """Return what the only record of a person weighs."""
    return 1 if schema.rows_per_unit is not None else _parts_here(schema)


def weight_kind(schema: Schema) -> np.dtype[Any]:
    """Return the type of weights."""
    return np.dtype(np.uint8 if lone_weight(schema) < 2**8 else np.uint16)


def _parts_here(schema: Schema) -> int:
    """Return how many parts a person has in one table; the records of others may be elsewhere."""
    return schema.unit_parts // schema.parties_per_unit


def weights_of(
    names: NDArray[np.uint64], order: NDArray[np.uint64], schema: Schema
) -> NDArray[Any]:
    """Return what all records of some persons weigh.

    Parameters
    ----------
    names : array of shape (words, records)
    order : array
        A person's records are put in this order; those that are alike may change places.
    schema : Schema
    """
    sorter = np.lexsort((order, hashed(names, 0)))
    if _is_mixed(names[:, sorter]):  # two persons have one hash: compare all words
        sorter = np.lexsort((order, *names))
    rows = len(order)
    is_first = np.ones(rows, dtype=bool)
    is_first[1:] = _differ(names[:, sorter])
    first = np.flatnonzero(is_first)
    sizes = np.diff(np.append(first, rows))
    rank = np.arange(rows) - np.repeat(first, sizes)
    parts = _parts_here(schema)
    used = np.repeat(np.minimum(sizes, parts), sizes)
    if schema.rows_per_unit is not None:
        found = (rank < used).astype(np.int64)
    else:
        found = np.where(rank < used, parts // used + (rank < parts % used), 0)
    weights = np.empty(rows, dtype=weight_kind(schema))
    weights[sorter] = found
    return weights


def _is_mixed(ordered: NDArray[np.uint64]) -> bool:
    """Tell whether two persons that are neighbours have one hash."""
    hashes = hashed(ordered, 0)
    return bool(((hashes[1:] == hashes[:-1]) & _differ(ordered)).any())


def _differ(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell for every record but the first whether it is another person's than the one before."""
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
