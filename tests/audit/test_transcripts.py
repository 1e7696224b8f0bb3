"""One transcript on two tables that differ by a whole person: does the books' cost cover it?

A question, or a whole fit, is asked of a table. Then the same noisy answers are given for the table
without one person, who has 1 to 70 records in any cells. What was computed must be of the same
shape and in the same order, or something exact has leaked into the questions; and how far apart it
is, in units of the noise, must be within what was charged: for every charge, and for all of them.
Which questions and estimators there are is found out, not listed: a new one must be tested too.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

from privet import (
    Budget,
    Categorical,
    Numeric,
    PrivateTable,
    Schema,
    baselines,
    choose,
    estimators,
    evaluate,
)
from privet.criteria import SAD, SSE, ClippedEntropy, Entropy, Gini, Max
from privet.engines import Axis
from privet.engines.blocks import Block
from privet.kinds import Kinds
from privet.privacy import Ledger, NoisyMaxShare, QuestionKind, SeededNoise
from privet.privacy.coins import SeededBytes, drawing_from
from privet.privacy.log_weights import STEPS
from privet.tables import (
    AxisLists,
    Basis,
    Multiway,
    PrivateCells,
    Tabled,
    discovery,
)
from privet.tables.cells import CellsOfTable

from ..repeated import some_of  # noqa: TID252

FEATURES = {
    "a": Numeric(0, 1, bins=4),
    "b": Categorical(["u", "v"]),
    "c": Numeric(0, 10, bins=8),
}
SCHEMAS = {
    "two": Schema(FEATURES, "y", classes=[0, 1], unit="who"),
    "number": Schema(FEATURES, "y", bounds=(0, 1), unit="who"),
}
pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")

#: Doubles of log weights are exact to far less.
SLACK = 1e-7


class Transcript:
    """A source of noise that writes down what it was given, or answers as another one did."""

    private = True

    def __init__(self, seed=0, earlier=None):
        self._noise = SeededNoise(seed)
        self._earlier = earlier
        #: Calls: what law, of what, with which scale, what was answered, and after which charge.
        self.calls = []
        self.charges = []

    def _answer(self, law, given, scale, draw):
        number = len(self.calls)
        if self._earlier is None:
            answer = draw()
        else:
            assert number < len(self._earlier.calls), "the neighbour is asked more"
            before = self._earlier.calls[number]
            assert before[0] == law
            assert before[2] == scale
            answer = before[3]
        self.calls.append((law, given, scale, answer, len(self.charges)))
        return answer

    def add_laplace(self, values, scale):
        return self._answer(
            "laplace", values.copy(), scale, lambda: self._noise.add_laplace(values, scale)
        )

    def add_gaussian(self, values, scale):
        return self._answer(
            "gaussian", values.copy(), scale, lambda: self._noise.add_gaussian(values, scale)
        )

    def permute_and_flip(self, scores, scale):
        return self._answer(
            "flip", scores.copy(), scale, lambda: self._noise.permute_and_flip(scores, scale)
        )

    def exponential(self, scores, scale):
        law = "log weights" if scale == STEPS else "exponential"
        return self._answer(
            law, scores.copy(), scale, lambda: self._noise.exponential(scores, scale)
        )

    def grid_point(self, scores, lengths, rate):
        return self.grid_points(scores[None], lengths[None], rate)[0]

    def grid_points(self, scores, lengths, rate):
        rows = list(zip(scores.copy(), lengths.copy(), strict=True))
        return self._answer(
            "grid", rows, rate, lambda: self._noise.grid_points(scores, lengths, rate)
        )

    def below(self, bound):
        return self._answer("below", bound, 0, lambda: self._noise.below(bound))

    def draw(self, sampler):
        """Of all that it draws only the result counts; ``test_exact`` has the law of trees."""
        return self._answer("draw", None, 0, lambda: sampler(self._noise))

    def bits(self, count):
        return self._answer("below", 2**count, 0, lambda: self._noise.bits(count))


def points_of(rows):
    """Return the scores of all points of grids in stretches."""
    return [np.repeat(scores, lengths) for scores, lengths in rows]


def spread(here, there):
    """Return how far apart the changes of scores are."""
    assert len(here) == len(there)
    change = np.subtract(here, there, dtype=np.float64)
    return float(change.max() - change.min())


def chance(scores, scale, answer):
    """Return the log probability of an answer by the exponential mechanism."""
    weights = scores / scale
    return weights[answer] - np.logaddexp.reduce(weights)


def losses(here, there):
    """Return by charge what a transcript says of the person, in pure epsilon and in rho.

    Quantiles that are drawn at once are many conditional draws of which only all together have a
    bound: the log ratio of what was drawn is taken, which the range bounds.
    """
    assert len(here.calls) == len(there.calls), "the neighbour is asked less"
    found = {number: [0.0, 0.0, 0.0] for number in range(len(here.charges) + 1)}
    for mine, other in zip(here.calls, there.calls, strict=True):
        law, given, scale, answer, charge = mine
        assert charge == other[4]
        pure, rho = 0.0, 0.0
        if law == "laplace":
            assert given.shape == other[1].shape
            pure = float(np.abs(given - other[1]).sum()) / scale
        elif law == "gaussian":
            assert given.shape == other[1].shape
            pure, rho = 0.0, float(((given - other[1]).astype(float) ** 2).sum()) / (2 * scale**2)
        elif law in ("flip", "exponential"):
            pure = spread(given, other[1]) / scale
            rho = pure**2 / (8 if law == "exponential" else 2)
        elif law == "grid":
            ranges = [
                float(scale) * spread(*pair)
                for pair in zip(points_of(given), points_of(other[1]), strict=True)
            ]
            pure, rho = sum(ranges), sum(each**2 / 8 for each in ranges)
        elif law == "log weights":
            found[charge][2] += chance(given, scale, answer) - chance(other[1], scale, answer)
        elif law == "below":
            assert given == other[1], "what is drawn evenly depends on the table"
        found[charge][0] += pure
        found[charge][1] += rho
    return {
        number: (pure + abs(drawn), rho + drawn**2 / 8)
        for number, (pure, rho, drawn) in found.items()
    }


def people(kind, seed):
    """Return records of persons with 1 to 70 of them, some alike and some in all cells."""
    rng = np.random.default_rng(seed)
    sizes = [*rng.integers(1, 4, 30), 7, 25, 59, 60, 61, 70]
    who = np.repeat([f"p{k}" for k in range(len(sizes))], sizes)
    rows = len(who)
    alike = np.repeat(rng.random(len(sizes)) < 0.5, sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    y = rng.random(rows) if kind == "number" else rng.integers(0, 2, rows)
    table = {"a": rng.random(rows), "b": rng.choice(["u", "v", "w"], rows), "y": y}
    table["c"] = 10 * rng.random(rows) ** 3
    frame = pd.DataFrame({name: np.where(alike, v[first], v) for name, v in table.items()})
    frame["b"] = frame["b"].astype(object)
    frame.loc[rng.random(rows) < 0.05, "a"] = np.nan
    return frame.assign(who=who)


def leavers(seed):
    """Return whom a table is compared without: one with few records, and those with many."""
    few = f"p{np.random.default_rng(seed).integers(30)}"
    return few, "p31", "p33", "p35"


@pytest.fixture
def charged(monkeypatch):
    """Let the current transcript see what is charged."""
    state = {}
    charge = Ledger.charge

    def watched(self, cells, mechanisms, question, place):
        charge(self, cells, mechanisms, question, place)
        several = isinstance(mechanisms, list | tuple)
        costs = [each.cost for each in (mechanisms if several else [mechanisms])]
        epsilons = [cost.epsilon for cost in costs]
        state["now"].charges.append((question, max(epsilons), max(cost.rho for cost in costs)))

    monkeypatch.setattr(Ledger, "charge", watched)
    return state


def compare(program, frame, leaver, state, *, seed):
    """Run a program on both tables, and check what its transcript says of the person.

    Parameters
    ----------
    program : function
        From a table and noise to the whole cost that is claimed, a pair of epsilon and rho; either
        is None if it is not claimed.
    """
    here = state["now"] = Transcript(seed)
    claim = program(frame, here)
    there = state["now"] = Transcript(seed, here)
    assert program(frame[frame["who"] != leaver], there) == claim
    assert [charge[0] for charge in here.charges] == [charge[0] for charge in there.charges]
    found = losses(here, there)
    assert found.pop(0) == (0.0, 0.0), "noise was drawn before anything was charged"
    for number, (pure, rho) in found.items():
        question, epsilon, most = here.charges[number - 1]
        if epsilon < math.inf:
            assert pure <= float(epsilon) * (1 + SLACK), question
        else:
            assert rho <= float(most) * (1 + SLACK), question
    epsilon, most = claim
    if epsilon is not None:
        assert sum(pure for pure, _ in found.values()) <= epsilon * (1 + SLACK)
    if most is not None:
        assert sum(rho for _, rho in found.values()) <= most * (1 + SLACK)
    return found


# Questions

BASIS = Basis(((1, Tabled.of(np.array([[1.0, -0.5], [0.5, 2.0], [0.0, 1.0]]))),))
HALVED = [Axis(0, 0, 4), Axis(2, 0, 8)]
#: Questions by name: the target, what is given, and whether it needs zCDP (True) or a pure budget.
ASKED = {
    "noisy_counts": [("two", {}, None), ("number", {}, None)],
    "noisy_class_counts": [("two", {}, None)],
    "choose_labels": [("two", {}, None)],
    "choose_splits": [
        ("two", {"candidates": Multiway(), "criterion": Gini(), "allowed": 3}, None),
        ("two", {"candidates": Multiway(), "criterion": Entropy(100), "allowed": 3}, None),
        ("two", {"candidates": Multiway(), "criterion": ClippedEntropy(), "allowed": 3}, None),
        ("number", {"candidates": Multiway(), "criterion": SAD(), "allowed": 3}, None),
        ("number", {"candidates": Multiway(), "criterion": SSE(), "allowed": 3}, None),
    ],
    "choose": [("two", {"criterion": Max()}, None)],
    "choose_best": [
        ("two", {"candidates": Multiway(), "criterion": Gini(), "how": "exponential"}, None),
        ("two", {"candidates": Multiway(), "criterion": Entropy(90), "how": "rnm"}, False),
    ],
    "choose_of": [
        ("two", {"splits": 2, "criterion": Gini(), "flip": False}, None),
        ("number", {"splits": 2, "criterion": SAD(), "flip": True}, False),
    ],
    "choose_axes": [
        ("two", {"axes": [HALVED], "criterion": Gini(), "flip": False}, None),
        ("two", {"axes": [HALVED], "criterion": Max(), "flip": True}, False),
        ("number", {"axes": [HALVED], "criterion": SAD(), "flip": True}, False),
    ],
    "choose_halves": [("two", {"axes": HALVED[:1]}, None)],
    "choose_features": [("two", {"count": 2}, None)],
    "draw_trees": [
        ("two", {"depth": 2}, None),
        ("two", {"depth": 3, "merge": False}, None),
        ("two", {"depth": 1, "scores": (0.5,)}, None),
        ("number", {"depth": 1, "scores": (0.5,), "reach": 0.25}, None),
    ],
    "noisy_gradients": [
        ("two", {"scores": (0.5,)}, None),
        ("number", {"scores": (0.5,), "reach": 0.25}, None),
    ],
    "noisy_candidate_gains": [("two", {"candidates": Multiway(), "criterion": Max()}, None)],
    "quantiles": [
        ("two", {"feature": "c", "parts": 7}, None),
        ("number", {"feature": "y", "parts": 4}, None),
    ],
    "joint_quantiles": [("two", {"feature": "c", "parts": 3}, None)],
    "noisy_confusion": [("two", {"scores": (0.5,)}, None)],
    "noisy_score_counts": [("two", {"scores": (0.5,), "ends": (0.0, 0.7)}, None)],
    "noisy_errors": [("number", {"scores": (0.5,)}, None)],
    "choose_scores": [
        ("two", {"scores": [(0.5,), (-0.5,)]}, None),
        ("number", {"scores": [(0.2,), (0.5,)]}, None),
    ],
    "noisy_scale": [("number", {"scores": (0.5,), "share": Fraction(1, 5)}, None)],
    "noisy_sums": [("two", {"basis": BASIS}, True)],
    "noisy_slopes": [
        ("two", {"basis": BASIS, "scores": (0.5,), "largest": 0.7, "longest": 1.5}, True)
    ],
    "noisy_calibration": [("two", {"scores": (0.5,), "shift": 0.2, "factor": 1.5}, True)],
}
#: Shares of noise, and what is only seen inside a secret choice: their answers are compared.
SHARED = ("mpc_noisy_counts", "mpc_exact_counts")
#: Leaks, and says so: nothing is charged.
UNCOVERED = ("leaking_means",)


def test_no_question_is_forgotten():
    charged = {
        name
        for home in (PrivateTable, PrivateCells)
        for name, method in inspect.getmembers(home, inspect.isfunction)
        if not name.startswith("_") and "amount" in inspect.signature(method).parameters
    }
    assert charged == {*ASKED, *SHARED, *UNCOVERED}


def first(rows, seeds):
    return rows is None and seeds == 1


CASES = [
    (name, place, delta)
    for name, cases in ASKED.items()
    for place, (_, _, zcdp) in enumerate(cases)
    for delta in (None, 1e-6)
    if zcdp is None or zcdp == (delta is not None)
]


@pytest.mark.parametrize(("name", "place", "delta"), CASES)
@pytest.mark.parametrize(("rows", "seeds"), some_of([(None, 1), (None, 6), (3, 3)], first))
def test_a_question_costs_a_person_no_more_than_is_charged(
    name, place, delta, rows, seeds, charged
):
    kind, given, _ = ASKED[name][place]
    schema = replace(SCHEMAS[kind], rows_per_unit=rows)

    def program(frame, noise):
        opened = PrivateTable(frame, None, schema, Budget(2.0, delta), random_state=noise)
        table = opened.portions({"training": Fraction(3, 4), "test": Fraction(1, 4)}, 5)["training"]
        of_table = hasattr(PrivateTable, name)
        asked = table if of_table else table.root().partition("b")
        made = dict(given)
        if "allowed" in made:
            made["allowed"] = np.ones((len(asked), 3), dtype=bool)
        if "axes" in made:
            axes = made["axes"] * len(asked)
            made["axes"] = AxisLists.of(axes) if name == "choose_axes" else axes
        if "splits" in made:
            view = asked.view
            made["splits"] = [[Multiway().split(j, 0, 0, view) for j in (0, 2)]] * len(asked)
        if isinstance(made.get("scores"), list):
            made["scores"] = [table.start_scores(start) for start in made["scores"]]
        elif "scores" in made:
            made["scores"] = table.start_scores(made["scores"])
        getattr(asked, name)(**made, amount=table.ledger.left)
        total = opened.ledger.total
        return (None, float(total.rho)) if delta else (float(total.epsilon), None)

    tight = 0.0
    for seed in range(seeds):
        frame = people(kind, seed)
        for leaver in leavers(seed)[: 2 if seeds == 1 else None]:
            found = compare(program, frame, leaver, charged, seed=seed)
            tight = max(tight, *(max(pair) for pair in found.values()))
    assert name == "draw_trees" or tight > 0


SUMMED = ("ROW_COUNT", "CLASS_COUNTS", "LABEL", "CONFUSION", "SCORE_COUNTS")


@pytest.mark.parametrize("kind", [QuestionKind[name] for name in SUMMED])
def test_shares_of_noise_are_for_a_person(kind):
    """A party's answers to a secret sum or choice, without any noise: what a person changes."""
    units = NoisyMaxShare(60, math.inf, 2).units if kind is QuestionKind.LABEL else 1

    def answer(frame):
        opened = PrivateTable(frame, None, SCHEMAS["two"], Budget(math.inf))
        more = {"ends": (0.0, 0.7)} if kind is QuestionKind.SCORE_COUNTS else {}
        if kind in (QuestionKind.CONFUSION, QuestionKind.SCORE_COUNTS):
            more["scores"] = opened.start_scores((0.5,))
        return opened.root().partition("b").mpc_noisy_counts(kind, math.inf, 2, **more)

    frame = people("two", 0)
    for leaver in leavers(0):
        change = np.abs(answer(frame) - answer(frame[frame["who"] != leaver])).sum()
        assert 0 < change <= 60 * units


def test_what_is_compared_in_secret_is_of_a_person():
    """Losses by exact counts of all candidates, to which noise for 60 spreads is added."""

    def answer(frame):
        opened = PrivateTable(frame, None, SCHEMAS["two"], Budget(math.inf))
        cells = opened.root().partition("b")
        counts, _ = cells.mpc_exact_counts(Multiway(), Max(), math.inf, 2)
        sizes = np.cumsum([0, *opened.root().view.sizes[:-1]])
        return np.add.reduceat(Max().losses(np.asarray(counts)), sizes, axis=1)

    frame = people("two", 0)
    for leaver in leavers(0):
        change = answer(frame) - answer(frame[frame["who"] != leaver])
        assert 0 < np.ptp(change, axis=1).sum() <= 60 * Max().spread


@pytest.mark.parametrize(
    "mutant", ["records weigh a person", "noise for a part", "second division"]
)
def test_mutants_are_caught(mutant, charged, monkeypatch):
    if mutant == "records weigh a person":
        weight = property(lambda self: np.full(len(self), 60, np.uint8), lambda self, given: None)
        monkeypatch.setattr(Block, "parts", weight, raising=False)
    if mutant == "noise for a part":
        monkeypatch.setattr(CellsOfTable, "_parts", property(lambda self: 1))

    def program(frame, noise):
        opened = PrivateTable(frame, None, SCHEMAS["two"], Budget(2.0), random_state=noise)
        opened.root().partition("b").noisy_class_counts(0.5)
        if mutant == "second division":
            opened.root().partition("a").noisy_class_counts(0.5)
        return 0.5, None

    with pytest.raises(AssertionError):
        compare(program, people("two", 0), "p35", charged, seed=0)


# Whole fits, scores and choices

ESTIMATORS = [getattr(room, name) for room in (estimators, baselines) for name in room.__all__]
OPTIONS = {
    "PrivateBoostingClassifier": {"n_rounds": 3, "max_depth": 2},
    "PrivateBoostingRegressor": {"n_rounds": 3, "max_depth": 1, "epsilon": 10.0},
    "DiffPC45Classifier": {"max_depth": 2},
    "SulqID3Classifier": {"max_depth": 1, "epsilon": 8.0},
}
IN_SHORT = ("DiffPID3Classifier", "PrivateBoostingRegressor", "DiPriMeForestClassifier")


def claim_of(card):
    """Return what a card says, in pure epsilon or in rho."""
    pure = card.accountant == "pure"
    return (card.epsilon, None) if pure else (None, card.rho)


def in_short(kind, share, delta):
    return kind.__name__ in IN_SHORT and share is not None


FITS = [
    (kind, share, delta)
    for kind in ESTIMATORS
    for share in (None, 0.3)
    for delta in (None, 1e-6)
    if delta is None or "delta" in inspect.signature(kind).parameters
]


@pytest.mark.parametrize(("kind", "share", "delta"), some_of(FITS, in_short))
def test_a_fit_costs_a_person_no_more_than_its_card_says(kind, share, delta, charged):
    target = "number" if is_regressor(kind()) else "two"
    given = {"schema": SCHEMAS[target], "test_share": share, **OPTIONS.get(kind.__name__, {})}
    if delta is not None:
        given["delta"] = delta

    def program(frame, noise):
        with drawing_from(SeededBytes(b"k" * 32)):
            model = kind(**given, random_state=noise).fit(frame)
        return claim_of(model.privacy_)

    frame = people(target, 1)
    for leaver in leavers(1)[::2]:
        compare(program, frame, leaver, charged, seed=1)


@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "zCDP"])
def test_a_choice_costs_a_person_no_more_than_its_card_says(delta, charged):
    kinds = (estimators.DiffPID3Classifier, estimators.TopDownClassifier)

    def program(frame, noise):
        candidates = [kind(0.5, max_depth=2) for kind in kinds]
        with drawing_from(SeededBytes(b"k" * 32)):
            found = choose(
                candidates,
                frame,
                schema=SCHEMAS["two"],
                epsilon=1.0 if delta is None else 4.0,
                delta=delta,
                by="b",
                random_state=noise,
            )
        return claim_of(found.privacy)

    frame = people("two", 2)
    for leaver in leavers(2)[::2]:
        compare(program, frame, leaver, charged, seed=2)


@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "zCDP"])
def test_a_score_costs_a_person_no_more_than_its_card_says(delta, charged):
    charged["now"] = Transcript()
    with drawing_from(SeededBytes(b"k" * 32)):
        model = estimators.PrivateTreeClassifier(1.0, SCHEMAS["two"], random_state=1)
        model.fit(people("two", 3))

    def program(frame, noise):
        return claim_of(
            evaluate(model, frame, 1.0, delta=delta, by="b", random_state=noise).privacy
        )

    frame = people("two", 4)
    for leaver in leavers(4):
        compare(program, frame, leaver, charged, seed=2)


@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "zCDP"])
def test_a_discovery_costs_a_person_no_more_than_its_epsilon(delta, charged):
    """Of texts that others have, too: those of one person alone are the threshold's matter."""
    b = Categorical(["u", "v", "w"]) if delta is None else "category"
    kinds = Kinds({"a": "number", "b": b, "c": "number", "y": Categorical([0, 1])}, "y", unit="who")
    plan = discovery.DiscoveryPlan.of(kinds, 1.0, delta, None)
    assert plan.gaussian == (delta is not None)
    frame = people("two", 5)

    def asked(frame, noise):
        mechanisms = [mechanism.cost for _, mechanism in plan.noise.questions]
        noise.charges.append(("schema", *(sum(map(a, mechanisms)) for a in (pure_of, rho_of))))
        discovery.repeated_discovery(frame, plan)(noise)
        limit = float(plan.budget.limit)
        return (None, limit) if plan.gaussian else (limit, None)

    tight = []
    for leaver in leavers(5):
        found = compare(asked, frame, leaver, charged, seed=5)
        tight.append(max(found[1]) / float(plan.budget.limit))
    assert max(tight) > 0.5


def pure_of(cost):
    return cost.epsilon


def rho_of(cost):
    return cost.rho
