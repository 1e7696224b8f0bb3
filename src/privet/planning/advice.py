"""From public numbers to advice: depth, leaves, losses and protocol, before any data are touched.

Nothing here can see a table. Losses are bounds where a theorem gives one, else estimates, and say
which. The depth is the largest whose losses stay below a tolerance: what is *affordable*. Whether a
deeper tree would fit better only the data know. The plan for one machine is for
PrivaTreeClassifier, whose labels get what they need and whose levels share the rest equally; the
plan for several parties is for TopDownClassifier, which shares otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from privet.criteria import MAX_ROWS
from privet.planning._checks import PlanError, positive, probability, whole
from privet.planning.protocols import (
    FAILURE,
    GINI_SPREAD,
    SECURE,
    SINGLE,
    ZETA,
    Protocol,
    protocols,
)
from privet.planning.selection import exponential_error, exponential_loss, label_loss
from privet.privacy import Budget, WholeTree
from privet.schema import Categorical, Numeric, Schema

#: Share of the rows that private labels may lose: what decides their part of the budget.
LABEL_ERROR = 0.01
#: Share of the rows that labels and splits together may lose in the worst case.
TOLERANCE = 0.2
#: Cells of a number, by default and at most: PrivaTreeClassifier's of equal width, and what it and
#: TopDownClassifier accept.
BINS, MOST_BINS = 64, 1024
#: Deepest trees, on one machine and among parties: TopDownClassifier makes 2^20 splits at most.
DEEPEST, DEEPEST_APART = 30, 20
#: Larger numbers are taken for mistakes: learners have such limits, too, or would take for ever.
MOST_FEATURES, MOST_CODES, MOST_CLASSES, MOST_PARTIES = 100_000, 65_534, 10_000, 100_000
#: With less, PrivateTreeClassifier refuses; and with less, floats cannot tell shares from nothing.
SMALLEST_EPSILON, LEAST_EPSILON = 1e-4, 1e-100


@dataclass(frozen=True)
class Level:
    """What a complete greedy tree of some depth loses with one protocol.

    Attributes
    ----------
    depth, leaves : int
    rows_per_leaf : float
    split_epsilons : tuple of float
        What choosing splits costs, level by level from the root.
    gain_epsilons : tuple of float
        What the gains of the chosen splits cost beside, which order them: with several parties.
    label_epsilon : float
        What the labels cost. On one machine enough for :data:`LABEL_ERROR`, at most half; with
        several parties half.
    label_loss : float
        Share of the rows that labels lose, expected, in the worst case.
    split_loss : float
        Rows x Gini that splits lose, as a share of the rows, expected, in the worst case.
    loss : float
        Labels and splits together. Like the two above, at most what a guess loses; a bound or an
        estimate, as the protocol says.
    uncapped : float
        The same without that limit: for comparing protocols, and with the tolerance.
    protocol : Protocol
        Noise and losses per split of the last level, and per leaf.
    refused : str or None
        Why the parties would refuse to learn such a tree.
    affordable : bool
        Whether ``uncapped`` is at most the tolerance, and nobody refuses.
    """

    depth: int
    leaves: int
    rows_per_leaf: float
    split_epsilons: tuple[float, ...]
    gain_epsilons: tuple[float, ...]
    label_epsilon: float
    label_loss: float
    split_loss: float
    loss: float
    uncapped: float
    protocol: Protocol
    refused: str | None = None
    affordable: bool = False


@dataclass(frozen=True)
class Flagship:
    """What PrivateTreeClassifier would do with these numbers.

    Attributes
    ----------
    depth : int
        Most tests on a path.
    blocks : tuple of (int, float)
        Depth and epsilon of each block of trees that are drawn whole; none where rows x epsilon
        pays for labels of public tests only.
    quantiles : float or None
        Epsilon for private quantiles, if they are worth it.
    leaves : float or None
        Epsilon for class counts in the leaves, if they are worth it.
    labels : float or None
        Epsilon for the labels of public tests, if there are no blocks.
    shortfall : float
        Bound on the rows by which the first block classifies fewer correctly than the best tree of
        its depth, expected: ``(ln(1 / prior) + 1) / epsilon``; of public tests, by which their
        labels do, :func:`label_loss` in every leaf. No more than there are.
    """

    depth: int
    blocks: tuple[tuple[int, float], ...]
    quantiles: float | None
    leaves: float | None
    labels: float | None
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
    estimator, sharing : str
        Whose trees these are, and how they share the budget. It differs between one machine and
        several parties, so that losses of the two do not compare.
    affordable_leaves : int
        With half of the budget for labels, this many leaves lose :data:`LABEL_ERROR` of the rows;
        no more than there are rows. For the best protocol; a bound where its labels have one.
    depths : dict of str to int
        By protocol: the largest affordable depth; 0 if none is.
    winner : str
        The protocol that loses least of those that are not refused (the single machine needs all
        rows in one place, and competes only if there is one party).
    auto_depth : int or None
        With several parties: the depth that TopDownClassifier takes by itself if it is told the
        rows, but no depth.
    max_nodes : int or None
        With several parties: after this many splits TopDownClassifier stops by default. Fewer than
        a complete tree of depth 10 has.
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
    estimator: str
    sharing: str
    levels: dict[str, tuple[Level, ...]]
    affordable_leaves: int
    depths: dict[str, int]
    winner: str
    auto_depth: int | None
    max_nodes: int | None
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
    def second(self) -> str | None:
        """The protocol that loses least after the winner; None if there is none."""
        rivals = [name for name in self.levels if name not in (self.winner, SINGLE)]
        return _best(self.levels, rivals, self.compared_at)

    @property
    def advantage(self) -> float | None:
        """How many times more the second-best protocol loses; None if there is no second.

        By :attr:`Level.uncapped`: above what a guess loses, it compares noise and not trees.
        """
        if self.second is None:
            return None
        own, other = (
            self.levels[name][self.compared_at - 1] for name in (self.winner, self.second)
        )
        return other.uncapped / own.uncapped

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        extra = ("depth", "compared_at", "second", "advantage")
        return {**asdict(self), **{name: getattr(self, name) for name in extra}}


def make_plan(
    rows: int,
    epsilon: float,
    *,
    numbers: int = 10,
    categories: Sequence[int] = (),
    bins: int | None = None,
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
    bins : int, optional
        Cells that a number is cut into: one cut fewer; at most 1024. By default 64 on one machine,
        and with several parties 32, as TopDownClassifier has it.
    classes : int, default=2
    parties : int, default=1
        How many hold the rows, apart. The plan for several is for TopDownClassifier, with its
        shares and its candidates; the plan for one is for PrivaTreeClassifier.
    honest : int, optional
        With several parties; see :func:`~privet.planning.protocols.protocols`.
    max_depth : int, default=10
        Deepest tree that is looked at: at most 30, and with several parties 20.
    tolerance : float, default=0.2
        Share of the rows that may be lost in the worst case; see docs/planning.md for the default.

    Returns
    -------
    Plan

    Examples
    --------
    >>> plan = make_plan(20_000, 1.0, numbers=6, categories=[8, 16], parties=4)
    >>> plan.estimator, plan.winner
    ('TopDownClassifier', 'secure sum')
    >>> plan.depths["LocalRNM"] < plan.depth == plan.depths["single machine"]
    True
    """
    rows = whole(rows, "rows", advice="say how many records you expect", most=MAX_ROWS)
    epsilon = positive(epsilon, "epsilon", "a usual budget is between 0.1 and 10")
    if epsilon < LEAST_EPSILON:
        raise PlanError(f"epsilon must be at least {LEAST_EPSILON}; a usual budget is 0.1 to 10")
    classes = whole(classes, "classes", 2, "one class needs no tree", MOST_CLASSES)
    parties = whole(parties, "parties", 1, "1 means that all rows are in one place", MOST_PARTIES)
    depth = whole(max_depth, "max_depth", most=DEEPEST if parties == 1 else DEEPEST_APART)
    tolerance = probability(tolerance, "tolerance")
    schema = _schema(numbers, categories, classes)
    grower: _Alone | _Apart
    if parties == 1:
        grower = _Alone(rows, epsilon, _cells(bins, BINS))
    else:
        grower = _Apart(rows, epsilon, bins)
    sizes = grower.sizes(schema)
    shape: dict[str, Any] = {
        "candidates": sum(cuts for cuts, _ in sizes),
        "features": len(sizes),
        "bins": sum(cells for _, cells in sizes) / len(sizes),
        "classes": classes,
        "parties": parties,
        "honest": honest,
    }
    levels: dict[str, list[Level]] = {}
    for each in range(1, min(depth, max(shape["candidates"], 1)) + 1):  # no path tests one twice
        for name, one in grower.levels(each, shape).items():
            # not by the loss that is cut: what a guess loses would pass any larger tolerance
            affordable = one.refused is None and one.uncapped <= tolerance
            levels.setdefault(name, []).append(replace(one, affordable=affordable))
    able = [name for name in levels if parties == 1 or name != SINGLE]
    depths = {
        name: max((one.depth for one in found if one.affordable), default=0)
        for name, found in levels.items()
    }
    winner = _best(levels, able, max(1, *(depths[name] for name in able)))
    assert winner is not None  # noisy counts are never refused
    labels = levels[winner][0]
    per_leaf = labels.protocol.label_loss * labels.label_epsilon
    return Plan(
        rows=rows,
        features=len(sizes),
        candidates=shape["candidates"],
        classes=classes,
        parties=parties,
        epsilon=epsilon,
        tolerance=tolerance,
        estimator=grower.estimator,
        sharing=grower.sharing,
        levels={name: tuple(found) for name, found in levels.items()},
        affordable_leaves=int(min(rows, LABEL_ERROR * rows * epsilon / 2 / per_leaf)),
        depths=depths,
        winner=winner,
        auto_depth=grower.auto_depth(winner),
        max_nodes=grower.max_nodes,
        flagship=_flagship(rows, epsilon, schema, _cells(bins, BINS)),
    )


def _cells(bins: int | None, default: int) -> int:
    if bins is None:
        return default
    return whole(bins, "bins", 2, "a number with one bin cannot be split", MOST_BINS)


def _schema(numbers: Any, categories: Any, classes: int) -> Schema:
    """Return a schema of this form; names and bounds do not matter."""
    numbers = whole(numbers, "the number of numeric features", 0, most=MOST_FEATURES)
    if not isinstance(categories, Iterable):
        raise PlanError("categories must be a list: how many each categorical feature has")
    if getattr(categories, "ndim", 1) != 1:
        raise PlanError("categories must be a list of numbers")
    # one category is enough: a value may also be missing or unknown
    listed = [whole(size, "a number of categories", 1, most=MOST_CODES) for size in categories]
    if not numbers and not listed:
        raise PlanError("a tree needs a feature: give some numbers or categories")
    return Schema(
        {f"n{i}": Numeric(0, 1) for i in range(numbers)}
        | {f"c{i}": Categorical(range(size)) for i, size in enumerate(listed)},
        target="label",
        classes=list(range(classes)),
    )


def _best(levels: Mapping[str, Sequence[Level]], names: Sequence[str], depth: int) -> str | None:
    """Return who of some protocols loses least at a depth; None if all are refused."""
    found = [name for name in names if levels[name][depth - 1].refused is None]
    return min(found, key=lambda name: levels[name][depth - 1].uncapped, default=None)


class _Alone:
    """PrivaTreeClassifier on one machine, with bins of equal width, which cost nothing."""

    estimator = 'PrivaTreeClassifier(binning="uniform")'
    sharing = (
        f"labels get what keeps their loss at {LABEL_ERROR:.0%} of the rows, at most half, and "
        "levels share the rest equally"
    )
    max_nodes = None

    def __init__(self, rows: int, epsilon: float, bins: int) -> None:
        self.rows, self.epsilon, self.bins = rows, epsilon, bins

    def auto_depth(self, protocol: str) -> None:
        """Return nothing: it has no depth of its own."""

    def sizes(self, schema: Schema) -> list[tuple[int, int]]:
        """Return the candidates and the cells of every feature."""
        from privet.learners import privatree  # on first use: numba takes half a second

        options = privatree.PrivaTreeOptions(
            max_depth=1,
            max_bins=self.bins,
            leaf_error=LABEL_ERROR,
            binning="uniform",
            split="select",
            categories="auto",
            published=False,
        )
        return privatree.count_sizes(schema, options)

    def levels(self, depth: int, shape: dict[str, Any]) -> dict[str, Level]:
        """Return what a tree of this depth loses."""
        (unit,) = protocols(1.0, 1.0, **shape)
        labels = min(self.epsilon / 2, 2**depth * unit.label_loss / (self.rows * LABEL_ERROR))
        shares = [(self.epsilon - labels) / depth] * depth
        (one,) = protocols(shares[0], labels, **shape)
        # It chooses by the exponential mechanism, and buys no gains.
        candidates = shape["candidates"]
        one = replace(
            one,
            split_loss=exponential_loss(candidates, shares[0], GINI_SPREAD),
            rows_needed=exponential_error(candidates, shares[0], FAILURE, 2 * GINI_SPREAD) / ZETA,
        )
        return {SINGLE: _level(self.rows, shape["classes"], shares, [], labels, [one] * depth)}


class _Apart:
    """TopDownClassifier on rows that several parties hold."""

    estimator = "TopDownClassifier"

    def __init__(self, rows: int, epsilon: float, bins: int | None) -> None:
        from privet.planning import federated  # on first use: learners take half a second

        self.rows, self.epsilon, self.rules = rows, epsilon, federated
        self.bins = _cells(bins, federated.BINS)
        self.max_nodes, self.sharing = federated.MAX_NODES, federated.describe_shares()

    def auto_depth(self, protocol: str) -> int:
        """Return the depth that it takes by itself."""
        shared = protocol == SECURE
        return self.rules.auto_depth(self.epsilon, self.rows, self.bins, shared=shared)

    def sizes(self, schema: Schema) -> list[tuple[int, int]]:
        """Return the candidates and the cells of every feature."""
        return self.rules.count_sizes(schema, self.bins)

    def levels(self, depth: int, shape: dict[str, Any]) -> dict[str, Level]:
        """Return what a tree of this depth loses, by protocol."""
        shares = self.rules.make_shares(self.epsilon, self.rows, depth, self.bins)
        choices, gains = ([float(x) for x in some] for some in (shares.choices, shares.gains))
        labels, classes = float(shares.labels), shape["classes"]
        by_level = zip(*(protocols(choice, labels, **shape) for choice in choices), strict=True)
        found = {
            each[0].name: _level(self.rows, classes, choices, gains, labels, each)
            for each in by_level
        }
        honest = shape["parties"] if shape["honest"] is None else shape["honest"]
        refused = self.rules.refusal(shares, shape["candidates"], classes, honest)
        return found | {SECURE: replace(found[SECURE], refused=refused)}


def _level(
    rows: int,
    classes: int,
    choices: Sequence[float],
    gains: Sequence[float],
    labels: float,
    by_level: Sequence[Protocol],
) -> Level:
    """Add up what the levels of a tree lose by a protocol."""
    depth, most = len(choices), 1 - 1 / classes  # no tree does worse than a guess
    split_loss = sum(2**level * one.split_loss for level, one in enumerate(by_level)) / rows
    label_loss = 2**depth * by_level[-1].label_loss / rows
    return Level(
        depth=depth,
        leaves=2**depth,
        rows_per_leaf=rows / 2**depth,
        split_epsilons=tuple(choices),
        gain_epsilons=tuple(gains),
        label_epsilon=labels,
        label_loss=min(label_loss, most),
        split_loss=min(split_loss, most),
        loss=min(label_loss + split_loss, most),
        uncapped=label_loss + split_loss,
        protocol=by_level[-1],
    )


def _flagship(rows: int, epsilon: float, schema: Schema, bins: int) -> Flagship | None:
    """Return the plan of PrivateTreeClassifier, by its own rules."""
    from privet.learners import whole_trees  # on first use: numba takes half a second

    if epsilon < SMALLEST_EPSILON:
        return None
    budget = Budget(epsilon)
    plan = whole_trees.make_plan(schema, rows, budget.limit, None, None, budget)
    classes = len(schema.classes or ())
    leaves = None if plan.leaves is None else float(plan.leaves)
    if plan.labels is not None:
        lost = plan.public_leaves * label_loss(classes, float(plan.labels))
        return Flagship(
            depth=len(plan.public),
            blocks=(),
            quantiles=None,
            leaves=leaves,
            labels=float(plan.labels),
            shortfall=min(lost, float(rows)),
        )
    first = plan.blocks[0]
    amount = first.amount * (1 - whole_trees.CHOICE_SHARE if first.bought else 1)
    tests = max(
        bins if isinstance(feature, Numeric) else 2 * (len(feature.values) + 1)
        for feature in schema.features.values()
    )
    inner = 2**first.depth - 1
    cost = inner * math.log(2 * len(schema.names) * tests) + (inner + 1) * math.log(classes)
    return Flagship(
        depth=sum(block.depth for block in plan.blocks),
        blocks=tuple((block.depth, float(block.amount)) for block in plan.blocks),
        quantiles=None if plan.quantiles is None else float(plan.quantiles),
        leaves=leaves,
        labels=None,
        shortfall=min((cost + 1) / WholeTree(amount).rate, float(rows)),
    )
