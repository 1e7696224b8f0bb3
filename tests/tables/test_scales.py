"""Scales of residuals and quantiles of the target: what they compute, what they cost, their laws.

Laws are tested by chi-square with a false-alarm rate of 1e-6 each and a power check beside them.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privet import Budget, BudgetExceeded, Categorical, Numeric, PrivateTable, Schema
from privet.engines import BlockEngine
from privet.errors import BudgetError, DataError, SchemaError
from privet.privacy import SecureNoise, SeededNoise
from privet.tables import SCALES, Split
from privet.tables import cells as wall
from privet.tables.scores import ScaleChoice

ALARM = 1e-6
FEATURES = {"x": Numeric(0, 1, bins=2), "a": Categorical(["u"])}
SCHEMA = Schema(FEATURES, "y", bounds=(-10, 30))
CLASSES = Schema(FEATURES, "y", classes=[0, 1])
BY_X = Split(0, (0, 1, 2))
SHARE = Fraction(3, 10)
BUDGETS = pytest.mark.parametrize(
    "budget",
    [Budget(2.0), Budget(rho=0.3), Budget(1.0, delta=1e-6)],
    ids=["pure", "rho", "epsilon and delta"],
)
pytestmark = pytest.mark.filterwarnings(
    "ignore:random_state is fixed", "ignore:epsilon is infinite"
)


def make_rows(rows, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.choice([0.2, 0.8, math.nan], rows)
    return pd.DataFrame({"x": x, "a": "u"}), generator.normal(5, 3, rows).clip(-10, 30)


def open_table(budget, rows=9, seed=0):
    return PrivateTable(*make_rows(rows), SCHEMA, budget, random_state=seed)


def scored(table):
    """Return the cells by ``x``, and scores that differ by them."""
    cells, scores = table.root().split([BY_X]), table.start_scores((0.4,))
    scores.add(cells, np.array([[0.0], [0.1], [-0.2]]))
    return cells, scores


def distances(rows):
    """Return by plain counting how far each record is from its score, by the three cells."""
    frame, target = make_rows(rows)
    code = np.where(frame["x"].isna(), 2, frame["x"] > 0.5).astype(int)
    far = np.abs((target + 10) / 40 - (0.4 + np.array([0.0, 0.1, -0.2])[code]))
    return [far[code == cell] for cell in range(3)]


def fits(far, part, parts):
    """Return the scores of all scales by plain counting, as the proof has them."""
    beyond = [len(far), *((far > scale).sum() for scale in SCALES)]
    wanted = part * len(far)
    return [
        -max(0, wanted - parts * before, parts * here - wanted)
        for before, here in itertools.pairwise(beyond)
    ]


def law(far, share, epsilon):
    """Return the probability of every scale."""
    part, parts = share.numerator, share.denominator
    scores = np.array(fits(far, part, parts)) / max(part, parts - part)
    weights = np.exp(epsilon / 2 * (scores - scores.max()))
    return weights / weights.sum()


def p_value(found, expected, draws):
    counts = np.array([np.sum(found == scale) for scale in SCALES])
    thin = expected * draws < 5
    if thin.any():
        counts = np.append(counts[~thin], counts[thin].sum())
        expected = np.append(expected[~thin], expected[thin].sum())
    return stats.chisquare(counts, expected * draws).pvalue


def test_scales_are_public_powers_of_two_and_of_its_root():
    assert len(SCALES) == 25
    assert list(SCALES) == sorted(SCALES)
    assert list(SCALES) == pytest.approx([2 ** (-k / 2) for k in range(24, -1, -1)], rel=1e-15)


@pytest.mark.parametrize("noise", [SeededNoise(1), SecureNoise()], ids=["seeded", "secure"])
def test_scales_have_the_law_of_the_exponential_mechanism(noise):
    table = open_table(Budget(1), rows=60)
    cells, scores = scored(table)
    engine = wall.behind_table[table].engine
    counts = engine.distance_counts(wall.behind_cells[cells], wall.behind_scores[scores], SCALES)
    off = []
    for cell, far in enumerate(distances(60)):
        many = np.tile(counts[cell], (4_000, 1))
        found = ScaleChoice(SHARE, Fraction(1, 2)).choose(many, noise)
        assert p_value(found, law(far, SHARE, 0.5), 4_000) > ALARM
        off.append(p_value(found, law(far, SHARE, 0.7), 4_000))
    assert min(off) < ALARM  # a rate that is too high by 40 per cent is seen


class Recorder(SecureNoise):
    """Remembers scores, and their scale; of a grid, its lengths and the rate."""

    def __init__(self):
        self.seen = []

    def exponential(self, scores, scale):
        self.seen.append((scores.copy(), scale))
        return super().exponential(scores, scale)

    def grid_points(self, scores, lengths, rate):
        self.seen.append((scores.copy(), lengths.copy(), rate))
        return super().grid_points(scores, lengths, rate)


def recorded(table):
    """Return a source that remembers what it is asked by a table."""
    recorder = Recorder()
    wall.behind_table[table] = replace(wall.behind_table[table], noise=recorder)
    return recorder


@pytest.mark.parametrize("accountant", ["pure", "zCDP"])
def test_scales_are_drawn_by_the_counts_of_each_cell(accountant):
    table = open_table(Budget(1) if accountant == "pure" else Budget(rho=1), rows=60)
    recorder = recorded(table)
    cells, scores = scored(table)
    amount = Fraction(1, 2) if accountant == "pure" else Fraction(1, 32)  # epsilon: a half
    found = cells.noisy_scale(scores, SHARE, amount)
    assert found.shape == (3,)
    assert set(found.tolist()) <= set(SCALES)
    for (scores_of_cell, scale), far in zip(recorder.seen, distances(60), strict=True):
        assert scores_of_cell.tolist() == fits(far, 3, 10)
        assert scale == 28  # twice 7 of 10, for an epsilon of a half


def test_without_noise_a_share_of_the_records_is_beyond():
    table = open_table(Budget(math.inf), rows=500)
    cells, scores = scored(table)
    for share in (Fraction(1, 50), SHARE, Fraction(9, 10)):
        found = cells.noisy_scale(scores, share, math.inf)
        for scale, far in zip(found.tolist(), distances(500), strict=True):
            assert (far > scale).mean() <= share
            assert (far > scale / math.sqrt(2) * (1 - 1e-12)).mean() >= share


@pytest.mark.parametrize("rows", [400, 4_000])
def test_ties_lead_to_no_absurd_scale(rows):
    """Neither records at their scores nor bounds that are far too wide hide the crossing."""
    far = np.where(np.arange(rows) % 10 < 6, 0.0, 0.2)  # six of ten are at their scores
    counts = np.bincount([sum(d > s for s in SCALES) for d in far.tolist()], minlength=26)
    choice = ScaleChoice(SHARE, Fraction(200, rows))
    found = choice.choose(np.tile(counts, (300, 1)), SeededNoise(0))
    assert np.mean(found == 0.25) > 0.9
    assert choice.choose(counts[None], SeededNoise(0)).tolist() == [0.25]


@BUDGETS
def test_scales_cost_their_amount_once_for_all_cells(budget):
    table = open_table(budget)
    cells, scores = scored(table)
    cells.noisy_scale(scores, SHARE, budget.limit / 2)
    left = table.ledger.left - budget.limit / 2
    assert 0 <= left < budget.limit / 10**12
    assert budget.accountant != "pure" or left == 0
    (entry,) = table.ledger.entries
    assert entry.question.kind == "scale"
    assert entry.mechanism.kind == "exponential"
    assert entry.mechanism.sensitivity == 14  # twice 7 of 10
    assert entry.cells == 3
    with pytest.raises(BudgetExceeded):
        cells.noisy_scale(scores, SHARE, budget.limit)


@BUDGETS
def test_the_ledger_is_charged_before_anything_is_computed(budget, monkeypatch):
    table = open_table(budget)
    cells, scores = scored(table)
    seen = []
    for name in ("distance_counts", "grid_counts"):
        original = getattr(BlockEngine, name)

        def watch(self, *given, _original=original):
            seen.append(len(table.ledger.entries))
            return _original(self, *given)

        monkeypatch.setattr(BlockEngine, name, watch)
    cells.noisy_scale(scores, SHARE, budget.limit / 4)
    table.quantiles("y", 2, budget.limit / 4)
    assert seen == [1, 2]

    def never(*_, **__):
        raise AssertionError("computed before it was paid for")

    monkeypatch.setattr(BlockEngine, "_ask", never)
    for ask in (lambda: cells.noisy_scale(scores, SHARE, budget.limit),
                lambda: table.quantiles("y", 2, budget.limit)):  # fmt: skip
        with pytest.raises(BudgetExceeded, match="Nothing was computed"):
            ask()


def test_senseless_questions_are_refused_before_they_are_charged():
    table = open_table(Budget(5))
    cells, scores = scored(table)
    foreign = open_table(Budget(5)).start_scores((0.4,))
    for share in (0.3, 0, 1, Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(1, 2**17), None):
        with pytest.raises(ValueError, match="share must be a fraction"):
            cells.noisy_scale(scores, share, 1)
    with pytest.raises(ValueError, match="another table"):
        cells.noisy_scale(foreign, SHARE, 1)
    for amount in (0, -1, math.nan, "1", None):
        with pytest.raises(BudgetError):
            cells.noisy_scale(scores, SHARE, amount)
    classes = PrivateTable(make_rows(4)[0], [0, 1, 0, 1], CLASSES, Budget(5))
    with pytest.raises(DataError, match="needs a number"):
        classes.root().noisy_scale(classes.start_scores((0.0,)), SHARE, 1)
    with pytest.raises(SchemaError, match="no feature 'y'"):
        classes.quantiles("y", 2, 1)
    assert classes.ledger.entries == table.ledger.entries == ()


@pytest.mark.parametrize(
    "share", [Fraction(1, 50), SHARE, Fraction(1, 2), Fraction(9, 10)], ids=str
)
def test_no_neighbour_changes_the_scores_by_more_than_was_paid_for(share):
    """For tables of up to 30 records and any record more: log weights are at most 1 apart."""
    generator = np.random.default_rng(2)
    worst = Fraction(0)

    def asked(target):
        frame = pd.DataFrame({"x": 0.2, "a": "u"}, index=range(len(target)))
        table = PrivateTable(frame, np.array(target), SCHEMA, Budget(1))
        recorder = recorded(table)
        table.root().noisy_scale(table.start_scores((0.25,)), share, 1)
        assert table.ledger.left == 0
        ((scores, scale),) = recorder.seen
        return scores, scale

    tables = [(), (0.0,), (0.5,), (0.0, 30.0)]
    tables += [tuple(generator.uniform(-10, 30, generator.integers(1, 30))) for _ in range(12)]
    for target in tables:
        before, scale = asked(target)
        for extra in (0.0, 0.01, 1.0, 12.0, 30.0):
            after, again = asked((*target, extra))
            assert scale == again
            change = after - before
            worst = max(worst, Fraction(int(change.max() - change.min())) / Fraction(scale))
    assert Fraction(1, 4) < worst <= 1


def test_a_choice_knows_its_spread():
    for share, spread in ((Fraction(1, 50), 98), (Fraction(1, 2), 2), (Fraction(9, 10), 18)):
        mechanism = ScaleChoice(share, Fraction(1)).mechanism
        assert mechanism.spread == mechanism.scale == spread


# The target's quantiles --------------------------------------------------------------------------


def test_quantiles_of_the_target_without_noise_are_those_of_the_records():
    target = np.arange(1, 161) / 8
    frame = pd.DataFrame({"x": [0.2] * 163, "a": ["u"] * 163})
    missing = np.array([*target, math.nan, None, "nonsense"], dtype=object)
    table = PrivateTable(frame, missing, SCHEMA, Budget(math.inf), random_state=0)
    found = table.quantiles("y", 4, math.inf)
    assert [int((target < cut).sum()) for cut in found] == [40, 80, 120]
    assert all(cut in SCHEMA.target_grid for cut in found)


def test_quantiles_of_the_target_are_drawn_as_those_of_a_feature():
    """The same scores on the same grid at the same rate, for the same numbers and bounds."""
    _, target = make_rows(50)
    schema = Schema({"x": Numeric(-10, 30)}, "y", bounds=(-10, 30))
    table = PrivateTable(target[:, None], target, schema, Budget(1))
    recorder = recorded(table)
    for name in ("x", "y"):
        table.quantiles(name, 2, Fraction(1, 4))
    (feature, lengths, rate), (ours, points, again) = recorder.seen
    assert np.array_equal(feature, ours)
    assert np.array_equal(lengths, points)
    assert rate == again == Fraction(1, 8)
    assert [entry.question.feature for entry in table.ledger.entries] == ["x", "y"]
    assert {entry.mechanism.kind for entry in table.ledger.entries} == {"quantiles"}
