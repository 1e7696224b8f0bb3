"""Splits in terms of codes, and the public lists of them that cells choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.criteria import Criterion
from privet.engines import Split, View


class Candidates(Protocol):
    """A public list of splits for every feature. A record is in one child of each."""

    def check(self, view: View, cells: int) -> None:
        """Raise if these are not for this view and this number of cells."""

    def options(self, feature: int, view: View) -> int:
        """Return how many splits a feature offers."""

    def mass(self, feature: int, view: View) -> int:
        """Return the base measure of each of them."""

    def width(self, feature: int, view: View) -> int:
        """Return how many children each of them has; where they differ, some are empty."""

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """Return the counts of (cells, options, width, classes) from (cells, codes, classes)."""

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """Return one option of a feature as a split, for one cell."""


def losses_of(
    candidates: Candidates,
    feature: int,
    counts: NDArray[Any],
    criterion: Criterion,
    cells: range,
    view: View,
) -> NDArray[np.int64]:
    """Return the losses of a feature's options, of shape (cells, options)."""
    children = candidates.children(feature, counts, cells, view)
    return np.asarray(criterion.losses(children).sum(axis=2))


def gains_of(
    counts: NDArray[Any], splits: Sequence[Split], criterion: Criterion
) -> NDArray[np.int64]:
    """Return by how much splits lower the loss, from noisy class counts of all their children."""
    counts = np.maximum(np.asarray(counts), 0)
    first = np.cumsum([0, *(split.n_children for split in splits)])[:-1]
    whole = criterion.losses(np.add.reduceat(counts, first, axis=0))
    return np.asarray(whole - np.add.reduceat(criterion.losses(counts), first))


def list_candidates(candidates: Candidates, view: View) -> list[tuple[int, int]]:
    """Return all candidates, feature by feature, as pairs of a feature and one of its options."""
    return [
        (feature, option)
        for feature in range(len(view.sizes))
        for option in range(candidates.options(feature, view))
    ]


@dataclass(frozen=True)
class Multiway:
    """One candidate per feature: a child for every code of it, as in ID3."""

    def check(self, view: View, cells: int) -> None:
        """See :class:`Candidates`. They are for all."""

    def options(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 1

    def mass(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 1

    def width(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        return view.sizes[feature]

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """See :class:`Candidates`."""
        del feature, cells, view
        return counts[:, None]

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """See :class:`Candidates`."""
        del option, cell
        return Split(feature, tuple(range(view.sizes[feature])))


@dataclass(frozen=True)
class Thresholds:
    """Every cut of a numeric feature, all codes of a categorical one, as in C4.5.

    All features have the same base measure in all, ``steps - 1`` (up to rounding), however many
    candidates share it. A number whose bounds leave no cut between them is divided into known and
    missing. Missing numbers go to the upper side.

    Parameters
    ----------
    steps : int
        How many intervals the cuts of a numeric feature divide it into, or fewer: whole numbers
        with few values have no more.
    """

    steps: int

    def check(self, view: View, cells: int) -> None:
        """See :class:`Candidates`."""
        del cells
        if any(self.options(feature, view) >= self.steps for feature in range(len(view.cuts))):
            raise ValueError("every number must have fewer cuts than there are steps")

    def options(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        cuts = view.cuts[feature]
        return 1 if cuts is None else max(len(cuts), 1)

    def mass(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        return (self.steps - 1) // self.options(feature, view)

    def width(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        return view.sizes[feature] if view.cuts[feature] is None else 2

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """See :class:`Candidates`."""
        if view.cuts[feature] is None:
            return Multiway().children(feature, counts, cells, view)
        below = np.cumsum(counts, axis=1, dtype=np.int64)
        return _with_rest(below[:, : self.options(feature, view)], below[:, -1:])

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """See :class:`Candidates`."""
        if view.cuts[feature] is None:
            return Multiway().split(feature, option, cell, view)
        return Split(feature, tuple(int(code > option) for code in range(view.sizes[feature])))


@dataclass(frozen=True)
class ReleasedSplits:
    """One released split per cell for some features, all codes for the others."""

    splits: Mapping[int, Sequence[Split]]

    def check(self, view: View, cells: int) -> None:
        """See :class:`Candidates`."""
        for feature, splits in self.splits.items():
            if len(splits) != cells or not all(
                split.feature == feature and split.fits(view) for split in splits
            ):
                raise ValueError("give one split of the feature for every cell")

    def options(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 1

    def mass(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 1

    def width(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        if feature not in self.splits:
            return view.sizes[feature]
        return max((split.n_children for split in self.splits[feature]), default=1)

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """See :class:`Candidates`."""
        if feature not in self.splits:
            return Multiway().children(feature, counts, cells, view)
        most = max(split.n_children for split in self.splits[feature])  # others get empty ones
        found = np.zeros((len(counts), 1, most, counts.shape[2]), dtype=np.int64)
        for place, cell in enumerate(cells):
            np.add.at(found[place, 0], self.splits[feature][cell].child_of, counts[place])
        return found

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """See :class:`Candidates`."""
        if feature in self.splits:
            return self.splits[feature][cell]
        return Multiway().split(feature, option, cell, view)


@dataclass(frozen=True)
class Each:
    """One code against all others: stands for a table of bool that would be large.

    Parameters
    ----------
    options : int
        How many codes, from the first, are set against the others.
    codes : int
        How many codes there are.
    """

    options: int
    codes: int

    def __post_init__(self) -> None:
        if not 0 <= self.options <= self.codes:
            raise ValueError("no more options than codes")

    def __len__(self) -> int:
        return self.options

    def __getitem__(self, option: int) -> NDArray[np.bool_]:
        return np.asarray(np.arange(self.codes) == option)


@dataclass(frozen=True, eq=False)
class Binary:
    """A public list of ways to divide a feature's codes in two, the same for all cells.

    Parameters
    ----------
    sides : sequence of bool arrays of shape (options, codes), or Each, one for every feature
        Which codes go to the second child.
    """

    sides: Sequence[NDArray[np.bool_] | Each]

    def __post_init__(self) -> None:
        # Every record is in exactly one child: the losses' sensitivity rests on it.
        if not all(
            isinstance(side, Each)
            or (isinstance(side, np.ndarray) and side.dtype == bool and side.ndim == 2)
            for side in self.sides
        ):
            raise ValueError("sides are tables of bool")

    def check(self, view: View, cells: int) -> None:
        """See :class:`Candidates`."""
        del cells
        codes = [side.codes if isinstance(side, Each) else side.shape[1] for side in self.sides]
        if codes != list(view.sizes):
            raise ValueError("give sides for every code of every feature")

    def options(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del view
        return len(self.sides[feature])

    def mass(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 1

    def width(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        del feature, view
        return 2

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """See :class:`Candidates`."""
        del cells, view
        counts, side = np.asarray(counts, dtype=np.int64), self.sides[feature]
        if isinstance(side, Each):
            right = counts[:, : len(side)]
        else:
            right = np.einsum("oc,nck->nok", side.astype(np.int64), counts)
        return _with_rest(right, counts.sum(axis=1, keepdims=True))

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """See :class:`Candidates`."""
        del cell, view
        return _two_children(feature, self.sides[feature][option])


@dataclass(frozen=True, eq=False)
class Ordered:
    """As :class:`Binary`, but for some features every cell has a released order of the codes.

    Such a feature offers to cut the order in two at every place.

    Parameters
    ----------
    others : Binary
        What the other features offer.
    orders : mapping from features to int arrays of shape (cells, codes)
    """

    others: Binary
    orders: Mapping[int, NDArray[np.intp]]

    def check(self, view: View, cells: int) -> None:
        """See :class:`Candidates`."""
        self.others.check(view, cells)
        for feature, order in self.orders.items():
            codes = np.arange(view.sizes[feature])
            if order.shape != (cells, len(codes)) or (np.sort(order, axis=1) != codes).any():
                raise ValueError("give an order of the feature's codes for every cell")

    def options(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        if feature in self.orders:
            return view.sizes[feature] - 1
        return self.others.options(feature, view)

    def mass(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        return self.others.mass(feature, view)

    def width(self, feature: int, view: View) -> int:
        """See :class:`Candidates`."""
        return 2 if feature in self.orders else self.others.width(feature, view)

    def children(
        self, feature: int, counts: NDArray[Any], cells: range, view: View
    ) -> NDArray[Any]:
        """See :class:`Candidates`."""
        if feature not in self.orders:
            return self.others.children(feature, counts, cells, view)
        order = self.orders[feature][cells.start : cells.stop]
        sorted_counts = np.take_along_axis(np.asarray(counts, np.int64), order[:, :, None], axis=1)
        below = np.cumsum(sorted_counts, axis=1)
        return _with_rest(below[:, :-1], below[:, -1:])

    def split(self, feature: int, option: int, cell: int, view: View) -> Split:
        """See :class:`Candidates`."""
        if feature not in self.orders:
            return self.others.split(feature, option, cell, view)
        order = self.orders[feature][cell]
        second = np.zeros(len(order), dtype=bool)
        second[order[option + 1 :]] = True
        return _two_children(feature, second)


def _with_rest(one: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of two children: the given one, and the rest."""
    return np.stack([one, whole - one], axis=2)


def _two_children(feature: int, second: NDArray[np.bool_]) -> Split:
    """Return a split in two; the first child has the first code."""
    return Split.in_two(feature, second ^ second[0])


def best_correct(counts: NDArray[Any], numeric: bool) -> NDArray[np.int64]:
    """Return how many records the best tree of depth 1 on a feature classifies correctly.

    Parameters
    ----------
    counts : array of shape (cells, codes, classes)
    numeric : bool
        Whether codes are ordered (one threshold) or not (a label for every code).
    """
    counts = np.asarray(counts, dtype=np.int64)
    if not numeric:
        return np.asarray(counts.max(axis=2).sum(axis=1))
    left = np.cumsum(counts, axis=1)
    right = left[:, -1:, :] - left
    return np.asarray((left.max(axis=2) + right.max(axis=2)).max(axis=1))


@dataclass(frozen=True)
class Leaf:
    """The end of a small tree: a class, by its position in the schema."""

    label: int


@dataclass(frozen=True)
class Branch:
    """A split with what follows on each of its children."""

    split: Split
    children: tuple[Subtree, ...]


#: A small tree in terms of codes, as it is drawn or grown.
Subtree = Leaf | Branch
