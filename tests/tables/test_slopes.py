"""Sums of functions, slopes and calibration: bounds of a record's integers, charges and laws.

The bounds are compared in exact arithmetic. Mutants make the same comparison fail: functions that
are cut at twice their bound, residuals at one instead of theirs, rounding away from zero.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privet import Budget, BudgetExceeded, Categorical, Numeric, PrivateTable, Schema
from privet.engines import CALIBRATION_SQUARES, STEP, UNIT, BlockEngine, bases, blocks
from privet.errors import BudgetError, DataError
from privet.privacy import SecureNoise
from privet.tables import Basis, Peaks, Split, Tabled
from privet.tables import cells as wall

ALARM = 1e-6
FEATURES = {"x": Numeric(0, 1, bins=2), "a": Categorical(["u"])}
TARGETS = {"two": [0, 1], "three": [0, 1, 2]}
SCHEMAS = {name: Schema(FEATURES, "y", classes=classes) for name, classes in TARGETS.items()}
STARTS = {"two": (0.3,), "three": (0.2, -0.1, 0.0)}
KINDS = pytest.mark.parametrize("kind", TARGETS)
QUESTIONS = ["sums", "slopes", "calibration"]
STEEP = Basis(
    (
        (0, Tabled.of(np.array([[-2.0, 0.5], [0.7, -0.5], [0.1, 0.0]]))),
        (1, Peaks.of(1.4, np.array([0.3, 0.6]))),
    )
)
pytestmark = pytest.mark.filterwarnings(
    "ignore:random_state is fixed", "ignore:epsilon is infinite"
)


def open_table(kind, budget, rows=9, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"x": rng.choice([0.2, 0.8, math.nan], rows), "a": rng.choice(["u", "w"], rows)}
    )
    target = rng.integers(0, len(TARGETS[kind]), rows)
    return PrivateTable(frame, target, SCHEMAS[kind], budget, random_state=seed)


def ask(table, kind, question, amount, cells=None):
    cells = table.root() if cells is None else cells
    scores = table.start_scores(STARTS[kind])
    if question == "sums":
        return cells.noisy_sums(STEEP, amount)
    if question == "slopes":
        return cells.noisy_slopes(scores, STEEP, amount, largest=0.5, longest=1.5)
    curves = ((0, np.array([[9.0], [-2.0], [0.5]])),)
    scores.add_curves(table.root(), curves)
    return cells.noisy_calibration(scores, amount, shift=0.2, factor=1.5)


# A record's integers -----------------------------------------------------------------------------


def lengths_of(squares):
    return np.sqrt(np.maximum([squares], 1).astype(np.float64))


@given(
    residuals=st.lists(st.floats(-1, 1), min_size=1, max_size=6),
    squares=st.one_of(st.integers(0, 2**62), st.integers(1, 2**26).map(lambda x: x * x)),
    largest=st.integers(1, math.floor(math.sqrt(2) * UNIT)),
    longest=st.integers(1, 2**30 - 1),
)
@settings(max_examples=300)
def test_no_record_adds_more_than_the_bound(residuals, squares, largest, longest):
    (weights,) = bases.bounded_weights(
        np.array([residuals]), lengths_of(squares), largest, longest
    ).tolist()
    assert sum(weight**2 for weight in weights) * squares <= (largest * longest) ** 2
    assert sum(weight**2 for weight in weights) <= largest**2
    for weight, residual in zip(weights, residuals, strict=True):
        assert abs(weight) <= abs(Fraction(residual)) * UNIT


def test_records_at_the_bound_are_hardly_shortened():
    """The largest residual and the longest functions lose a unit of rounding, and no more."""
    for squares in (1, 3, STEP**2, 7 * STEP**2 + 1, 2**50):
        length = math.isqrt(squares)
        for residual in (0.5, -0.25):
            (weight,) = bases.bounded_weights(
                np.array([[residual]]), lengths_of(squares), UNIT // 2, 2 * length
            )[0]
            assert abs(abs(residual) * UNIT - abs(int(weight))) <= 1
            (weight,) = bases.bounded_weights(
                np.array([[residual]]), lengths_of(4 * squares), UNIT // 2, length
            )[0]
            assert abs(abs(residual) * UNIT * length / math.sqrt(4 * squares) - abs(weight)) <= 2


@given(
    apart=st.one_of(st.floats(-50, 50), st.sampled_from([0.0, 4.0, -4.0, 1e300, -1e300])),
    shift=st.floats(-10, 10),
    factor=st.floats(0.1, 3),
    target=st.integers(0, 1),
)
@settings(max_examples=300)
def test_calibration_moments_are_bounded(apart, shift, factor, target):
    (found,) = bases.calibration_moments(
        np.array([target]), np.array([apart]), shift, factor
    ).tolist()
    assert sum(value**2 for value in found) <= CALIBRATION_SQUARES
    assert Fraction(CALIBRATION_SQUARES, UNIT**2) == 2 + Fraction(3, 16)


def test_functions_are_their_tables():
    rng = np.random.default_rng(0)
    totals = rng.integers(-1000, 1000, (4, 2))
    peaks = Peaks.of(1.41, rng.random(4))
    table = Tabled(peaks.height * np.eye(4, dtype=np.int64) - peaks.levels)
    slopes = rng.normal(size=(4, 2))
    assert np.array_equal(peaks.squares(), table.squares())
    assert np.array_equal(peaks.sums(totals), table.sums(totals))
    np.testing.assert_allclose(peaks.curve(slopes), table.curve(slopes))


# Neighbours --------------------------------------------------------------------------------------


class Recorder(SecureNoise):
    """Adds nothing, and remembers the sums and the scale."""

    def __init__(self):
        self.seen = []

    def add_gaussian(self, values, scale):
        self.seen.append((values.copy(), scale))
        return values


def worst_loss(kind, question, amount):
    """Return the largest cost of one more record, of all tables of up to two records."""
    universe = list(itertools.product([0.2, 0.8, math.nan], ["u", "w"], TARGETS[kind]))
    found = {}

    def sums(records):
        if records not in found:
            frame = pd.DataFrame([universe[i][:2] for i in records], columns=["x", "a"])
            frame = frame.astype({"x": float})
            target = np.array([universe[i][2] for i in records], dtype=int)
            table = PrivateTable(frame, target, SCHEMAS[kind], Budget(rho=1))
            recorder = Recorder()
            wall.behind_table[table] = replace(wall.behind_table[table], noise=recorder)
            ask(table, kind, question, amount)
            assert table.ledger.total.rho == amount
            (found[records],) = recorder.seen
        return found[records]

    worst = Fraction(0)
    for size in (0, 1):
        for records in itertools.combinations(range(len(universe)), size):
            for extra in range(len(universe)):
                (before, scale), (after, same) = sums(records), sums((*records, extra))
                assert scale == same
                change = sum(int(value) ** 2 for value in (after - before).ravel())
                worst = max(worst, Fraction(change) / (2 * Fraction(scale) ** 2))
    return worst


CASES = [(q, k) for q in QUESTIONS for k in TARGETS if (q, k) != ("calibration", "three")]


@pytest.mark.parametrize(("question", "kind"), CASES)
def test_no_neighbour_changes_the_sums_by_more_than_was_paid_for(question, kind):
    amount = Fraction(1, 8)
    assert amount / 3 < worst_loss(kind, question, amount) <= amount


def mutant(name):
    real, moments = bases.bounded_weights, bases.calibration_moments

    def weights(residuals, lengths, largest, longest):
        if name == "functions twice as long":
            return real(residuals, lengths, largest, 2 * longest)
        if name == "residuals of one":
            return real(residuals, lengths, UNIT, longest)
        if name == "lengths forgotten":
            return real(residuals, np.ones_like(lengths), largest, longest)
        return real(residuals, lengths, largest, longest)

    def calibrated(*given):
        return moments(*given) * (2 if name == "moments doubled" else 1)

    return weights, calibrated


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("functions twice as long", "slopes"),
        ("residuals of one", "slopes"),
        ("lengths forgotten", "slopes"),
        ("moments doubled", "calibration"),
    ],
)
def test_mutants_are_caught(name, question, monkeypatch):
    weights, calibrated = mutant(name)
    monkeypatch.setattr(blocks, "bounded_weights", weights)
    monkeypatch.setattr(blocks, "calibration_moments", calibrated)
    amount = Fraction(1, 8)
    assert worst_loss("two", question, amount) > amount


def test_a_bound_on_sums_that_forgets_a_feature_is_caught(monkeypatch):
    real = Basis.most_squares
    monkeypatch.setattr(
        Basis, "most_squares", lambda self: real(Basis(self.features[1:], self.of_cells))
    )
    assert worst_loss("two", "sums", Fraction(1, 8)) > Fraction(1, 8)


# Answers -----------------------------------------------------------------------------------------


def test_sums_and_slopes_by_hand():
    """Functions of cells, too; a record of an unknown class counts for nothing."""
    frame = pd.DataFrame({"x": [0.2, 0.8, 0.8, math.nan], "a": ["u", "u", "w", "w"]})
    target = np.array([0, 1, "unheard of", 1], dtype=object)
    table = PrivateTable(frame, target, SCHEMAS["two"], Budget(rho=math.inf))
    cells = table.root().split([Split(1, (0, 1))])
    basis = Basis(STEEP.features, Tabled.of(np.array([[0.5], [-0.25]])))
    found = cells.noisy_sums(basis, math.inf)
    assert found.deviation == 0
    x = np.array([[-2.0, 0.5], [0.7, -0.5], [0.1, 0.0]])[[0, 1, 2]]
    peaks = 1.4 * np.eye(2)[[0, 0, 1]] - [0.3, 0.6]
    label = np.array([[0.5], [0.5], [-0.25]])
    values = np.column_stack([x, peaks, label])
    np.testing.assert_allclose(found.values, values.sum(axis=0), atol=3e-3)
    scores = table.start_scores((0.0,))
    scores.add_curves(table.root(), ((0, np.array([[1.0], [-1.0], [0.0]])),))
    shares = 1 / (1 + np.exp([-1.0, 1.0, 0.0]))
    residuals = np.clip(np.array([0, 1, 1]) - shares, -0.6, 0.6)
    lengths = np.sqrt((values**2).sum(axis=1))
    expected = (residuals * np.minimum(1, 1.2 / lengths)) @ values
    found = cells.noisy_slopes(scores, basis, math.inf, largest=0.6, longest=1.2)
    np.testing.assert_allclose(found.values[:, 0], expected, atol=4e-3)
    apart, p = np.array([1.0, -1.0, 0.0]), 1 / (1 + np.exp(-(0.1 + 2 * np.array([1.0, -1, 0]))))
    pull, h, s = np.array([0, 1, 1]) - p, p * (1 - p), apart / 4
    expected = [each.sum() for each in (pull, pull * s, h, h * s, h * s * s)]
    found = cells.noisy_calibration(scores, math.inf, shift=0.1, factor=2.0)
    np.testing.assert_allclose(found.values, expected, atol=1e-3)


@pytest.mark.parametrize(("question", "kind"), CASES)
def test_the_noise_has_its_scale(question, kind):
    """Chi-square of a known variance; the same test rejects a scale that is 30 per cent off."""
    budget = Budget(rho=1000)
    table = open_table(kind, budget, rows=0)
    drawn = []
    while len(drawn) < 600:
        found = ask(table, kind, question, Fraction(1))
        drawn += found.values.ravel().tolist()
    squares = (np.array(drawn) / found.deviation) ** 2
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(drawn))
    assert low < squares.sum() < high
    for factor in (0.7, 1.3):
        assert not low < squares.sum() / factor**2 < high


@pytest.mark.parametrize(("question", "kind"), CASES)
def test_the_ledger_is_charged_once_before_anything_is_computed(question, kind, monkeypatch):
    table = open_table(kind, Budget(rho=1))
    cells = table.root().split([Split(0, (0, 1, 2))])
    ask(table, kind, question, Fraction(1, 2), cells)
    (entry,) = table.ledger.entries
    assert (entry.question.kind, entry.cells) == (question, 3)
    assert entry.mechanism.kind == "discrete-gaussian"
    assert entry.cost.rho == table.ledger.total.rho == Fraction(1, 2)

    def never(*_, **__):
        raise AssertionError("computed before it was paid for")

    monkeypatch.setattr(BlockEngine, "_ask", never)
    with pytest.raises(BudgetExceeded):
        ask(table, kind, question, Fraction(3, 4), cells)
    with pytest.raises(AssertionError):
        ask(table, kind, question, Fraction(1, 4), cells)
    assert table.ledger.left == Fraction(1, 4)


def test_senseless_questions_are_refused_and_cost_nothing():
    table = open_table("two", Budget(rho=1))
    root, scores = table.root(), table.start_scores((0.0,))
    foreign = open_table("two", Budget(rho=1)).start_scores((0.0,))
    wide = Tabled(np.full((3, 1), 2**13 + 1))
    bases_of = [
        Basis(()),
        Basis(((0, wide),)),
        Basis(((0, Peaks(2**13, np.zeros(3, dtype=np.int64))),)),
        Basis(((1, STEEP.features[0][1]),)),
        Basis(((2, STEEP.features[0][1]),)),
        Basis((STEEP.features[0], STEEP.features[0])),
        Basis(STEEP.features, Tabled.of(np.zeros((2, 1)))),
    ]
    asked = [lambda basis=basis: root.noisy_sums(basis, 0.5) for basis in bases_of]
    asked += [
        lambda given=given: root.noisy_slopes(scores, STEEP, 0.5, **given)
        for given in (
            {"largest": 0.0, "longest": 1.0},
            {"largest": 1.5, "longest": 1.0},
            {"largest": math.nan, "longest": 1.0},
            {"largest": 1.0, "longest": math.inf},
        )
    ]
    asked += [
        lambda: root.noisy_slopes(foreign, STEEP, 0.5, largest=1.0, longest=1.0),
        lambda: root.noisy_calibration(foreign, 0.5, shift=0.0, factor=1.0),
        lambda: root.noisy_calibration(scores, 0.5, shift=math.nan, factor=1.0),
        lambda: root.noisy_sums(STEEP, 0),
        lambda: scores.add_curves(root, ((0, np.zeros((2, 1))),)),
        lambda: scores.add_curves(root, ((2, np.zeros((2, 1))),)),
        lambda: scores.add_curves(root, ((1, np.full((2, 1), math.nan)),)),
        lambda: foreign.add_curves(root, ((1, np.zeros((2, 1))),)),
    ]
    for question in asked:
        with pytest.raises((ValueError, BudgetError)):
            question()
    three = open_table("three", Budget(rho=1))
    with pytest.raises(DataError, match="two classes"):
        three.root().noisy_calibration(
            three.start_scores(STARTS["three"]), 0.5, shift=0.0, factor=1.0
        )
    pure = open_table("two", Budget(1))
    for question in QUESTIONS:
        with pytest.raises(BudgetError, match="delta"):
            ask(pure, "two", question, 1)
    assert table.ledger.left == three.ledger.left == pure.ledger.left == 1


@KINDS
def test_curves_are_added_to_the_records_of_cells_alone(kind):
    table = open_table(kind, Budget(rho=1), rows=12)
    width = len(STARTS[kind])
    scores, some = table.start_scores(STARTS[kind]), table.root().split([Split(1, (0, 1))])[0]
    curve = np.arange(3.0 * width).reshape(3, width)
    scores.add_curves(some, ((0, curve), (1, np.ones((2, width)))))
    engine = wall.behind_table[table].engine
    (block,) = engine._blocks._blocks
    codes = block.codes(some.view)
    expected = np.tile(STARTS[kind], (12, 1))
    inside = codes[1] == 0
    expected[inside] += curve[codes[0][inside]] + 1
    np.testing.assert_allclose(block.scores(wall.behind_scores[scores].lineage), expected)
    assert scores.bound >= np.abs(expected).max()
