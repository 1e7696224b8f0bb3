"""From public numbers to advice: depth, leaves, losses and protocol, before any data are touched.

Nothing here can see a table. Losses are bounds where a theorem gives one, else estimates, and say
which. The depth is the largest whose losses stay below a tolerance: what is *affordable*. Whether a
deeper tree would fit better only the data know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from privet.planning._checks import PlanError, positive, probability, whole
from privet.planning.protocols import SINGLE, Protocol, protocols
from privet.privacy import Budget, WholeTree
from privet.schema import Categorical, Numeric, Schema

#: Share of the rows that private labels may lose: what decides their part of the budget.
LABEL_ERROR = 0.01
#: Share of the rows that labels and splits together may lose in the worst case.
TOLERANCE = 0.2
#: Cuts of a number: about what the library's learners offer.
BINS = 64
#: With less, PrivateTreeClassifier refuses.
SMALLEST_EPSILON = 1e-4


@dataclass(frozen=True)
class Level:
    """What a complete greedy tree of some depth loses with one protocol.

    Attributes
    ----------
    depth, leaves : int
    rows_per_leaf : float
    split_epsilon : float
        What each level of splits costs.
    label_epsilon : float
        What the labels cost: enough for :data:`LABEL_ERROR`, at most half.
    label_loss : float
        Share of the rows that labels lose, expected: a bound.
    split_loss : float
        Rows x Gini that splits lose, as a share of the rows, expected, in the worst case; bound or
        estimate as its protocol says.
    protocol : Protocol
        Noise and losses per split and per leaf.
    """

    depth: int
    leaves: int
    rows_per_leaf: float
    split_epsilon: float
    label_epsilon: float
    label_loss: float
    split_loss: float
    protocol: Protocol

    @property
    def loss(self) -> float:
        """Labels and splits together."""
        return self.label_loss + self.split_loss


@dataclass(frozen=True)
class Flagship:
    """What PrivateTreeClassifier would do with these numbers.

    Attributes
    ----------
    depth : int
        Most tests on a path.
    blocks : tuple of (int, float)
        Depth and epsilon of each block of trees that are drawn whole.
    quantiles : float or None
        Epsilon for private quantiles, if they are worth it.
    shortfall : float
        Bound on the rows by which the first block classifies fewer correctly than the best tree of
        its depth, expected: ``(ln(1 / prior) + 1) / epsilon``.
    """

    depth: int
    blocks: tuple[tuple[int, float], ...]
    quantiles: float | None
    shortfall: float


@dataclass(frozen=True)
class Plan:
    """Advice from public numbers; made by :func:`make_plan`.

    Attributes
    ----------
    rows, features, candidates, classes, parties : int
    epsilon, tolerance : float
    levels : dict of str to tuple of Level
        By protocol: what trees of depth 1, 2, ... lose.
    affordable_leaves : int
        With half of the budget for labels, so many leaves lose :data:`LABEL_ERROR` of the rows.
        A bound, for the best protocol.
    depths : dict of str to int
        By protocol: the largest depth whose loss is at most the tolerance; 0 if none is.
    winner : str
        The protocol that loses least (the single machine needs all rows in one place, and competes
        only if there is one party).
    flagship : Flagship or None
        None if epsilon is too small for it.
    """

    rows: int
    features: int
    candidates: int
    classes: int
    parties: int
    epsilon: float
    tolerance: float
    levels: dict[str, tuple[Level, ...]]
    affordable_leaves: int
    depths: dict[str, int]
    winner: str
    flagship: Flagship | None

    @property
    def depth(self) -> int:
        """The depth that is affordable with the winner."""
        return self.depths[self.winner]

    @property
    def compared_at(self) -> int:
        """The depth at which protocols are compared."""
        return max(1, self.depth)

    @property
    def advantage(self) -> float | None:
        """How many times more the second-best protocol loses; None if there is no second."""
        rivals = [
            levels[self.compared_at - 1].loss
            for name, levels in self.levels.items()
            if name not in (self.winner, SINGLE)
        ]
        if not rivals or self.winner == SINGLE:
            return None
        return min(rivals) / self.levels[self.winner][self.compared_at - 1].loss

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        plain = asdict(self)
        plain["levels"] = {
            name: [{**asdict(level), "loss": level.loss} for level in levels]
            for name, levels in self.levels.items()
        }
        extra = {"depth": self.depth, "compared_at": self.compared_at, "advantage": self.advantage}
        return {**plain, **extra}


def make_plan(
    rows: int,
    epsilon: float,
    *,
    numbers: int = 10,
    categories: Sequence[int] = (),
    bins: int = BINS,
    classes: int = 2,
    parties: int = 1,
    honest: int | None = None,
    max_depth: int = 10,
    tolerance: float = TOLERANCE,
) -> Plan:
    """Return what a number of rows and an epsilon can afford.

    Parameters
    ----------
    rows : int
        How many records there are: declared or guessed, and taken as public.
    epsilon : float
        The privacy budget of one fit.
    numbers : int, default=10
        Numeric features.
    categories : sequence of int, default=()
        How many categories each categorical feature has.
    bins : int, default=64
        Cells that a number is cut into: one cut fewer.
    classes : int, default=2
    parties : int, default=1
        How many hold the rows, apart.
    honest : int, optional
        See :func:`~privet.planning.protocols.protocols`.
    max_depth : int, default=10
        Deepest tree that is looked at.
    tolerance : float, default=0.2
        Share of the rows that may be lost in the worst case; see docs/planning.md for the default.

    Returns
    -------
    Plan

    Examples
    --------
    >>> plan = make_plan(20_000, 1.0, numbers=6, categories=[8, 16], parties=4)
    >>> plan.winner, plan.depths["LocalRNM"] < plan.depth == plan.depths["single machine"]
    ('secure sum', True)
    """
    rows = whole(rows, "rows", advice="say how many records you expect")
    epsilon = positive(epsilon, "epsilon", "a usual budget is between 0.1 and 10")
    classes = whole(classes, "classes", 2, "one class needs no tree")
    parties = whole(parties, "parties", advice="1 means that all rows are in one place")
    depth = whole(max_depth, "max_depth")
    if depth > 30:
        raise PlanError("max_depth must be at most 30")
    tolerance = probability(tolerance, "tolerance")
    sizes = _sizes(numbers, categories, bins)
    shape: dict[str, Any] = {
        "candidates": sum(cuts for cuts, _ in sizes),
        "features": len(sizes),
        "bins": sum(cells for _, cells in sizes) / len(sizes),
        "classes": classes,
        "parties": parties,
        "honest": honest,
    }
    levels = _all_levels(rows, epsilon, depth, shape)
    depths = {
        name: max((one.depth for one in found if one.loss <= tolerance), default=0)
        for name, found in levels.items()
    }
    able = [name for name in levels if parties == 1 or name != SINGLE]
    at = max(1, *(depths[name] for name in able))
    winner = min(able, key=lambda name: levels[name][at - 1].loss)
    per_leaf = levels[winner][0].protocol.label_loss * levels[winner][0].label_epsilon
    return Plan(
        rows=rows,
        features=len(sizes),
        candidates=shape["candidates"],
        classes=classes,
        parties=parties,
        epsilon=epsilon,
        tolerance=tolerance,
        levels=levels,
        affordable_leaves=int(LABEL_ERROR * rows * epsilon / 2 / per_leaf),
        depths=depths,
        winner=winner,
        flagship=_flagship(rows, epsilon, numbers, categories, bins, classes),
    )


def _sizes(numbers: Any, categories: Sequence[int], bins: Any) -> list[tuple[int, int]]:
    """Return the candidates and the cells of every feature."""
    numbers = whole(numbers, "the number of numeric features", 0)
    bins = whole(bins, "bins", 2, "a number with one bin cannot be split")
    listed = [whole(c, "a number of categories", 2) for c in categories]
    found = [(bins - 1, bins)] * numbers + [(c if c > 2 else 1, c) for c in listed]
    if not found:
        raise PlanError("a tree needs a feature: give some numbers or categories")
    return found


def _all_levels(
    rows: int, epsilon: float, max_depth: int, shape: dict[str, Any]
) -> dict[str, tuple[Level, ...]]:
    found: dict[str, list[Level]] = {}
    most = 1 - 1 / shape["classes"]  # no tree does worse than a guess
    units = protocols(1.0, 1.0, **shape)
    for depth in range(1, max_depth + 1):
        leaves = 2**depth
        for index, unit in enumerate(units):
            labels = min(epsilon / 2, leaves * unit.label_loss / (rows * LABEL_ERROR))
            splits = (epsilon - labels) / depth
            one = protocols(splits, labels, **shape)[index]
            lost = sum(min(2**level * one.split_loss / rows, most) for level in range(depth))
            found.setdefault(one.name, []).append(
                Level(
                    depth=depth,
                    leaves=leaves,
                    rows_per_leaf=rows / leaves,
                    split_epsilon=splits,
                    label_epsilon=labels,
                    label_loss=min(leaves * one.label_loss / rows, most),
                    split_loss=min(lost, most),
                    protocol=one,
                )
            )
    return {name: tuple(levels) for name, levels in found.items()}


def _flagship(
    rows: int,
    epsilon: float,
    numbers: int,
    categories: Sequence[int],
    bins: int,
    classes: int,
) -> Flagship | None:
    """Return the plan of PrivateTreeClassifier, by its own rules."""
    from privet.learners import whole_trees  # on first use: numba takes half a second

    if epsilon < SMALLEST_EPSILON:
        return None
    schema = Schema(
        {f"n{i}": Numeric(0, 1) for i in range(numbers)}
        | {f"c{i}": Categorical(range(size)) for i, size in enumerate(categories)},
        target="label",
        classes=list(range(classes)),
    )
    budget = Budget(epsilon)
    plan = whole_trees.make_plan(schema, rows, budget.limit, None, Fraction(0), budget)
    first = plan.blocks[0]
    amount = first.amount * (1 - whole_trees.CHOICE_SHARE if first.bought else 1)
    features = numbers + len(categories)
    tests = max([bins] * bool(numbers) + [2 * (size + 1) for size in categories])
    inner = 2**first.depth - 1
    cost = inner * math.log(2 * features * tests) + (inner + 1) * math.log(classes)
    return Flagship(
        depth=sum(block.depth for block in plan.blocks),
        blocks=tuple((block.depth, float(block.amount)) for block in plan.blocks),
        quantiles=None if plan.quantiles is None else float(plan.quantiles),
        shortfall=(cost + 1) / WholeTree(amount).rate,
    )
