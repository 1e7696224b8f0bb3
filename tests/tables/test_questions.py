"""Each question of the wall draws from the law that docs/proofs/questions.md names.

The tests are statistical, with a false-alarm rate of 1e-6 each, and every one has a power check:
the same test rejects a scale that is off by 30 per cent.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privet import Budget, BudgetExceeded, Categorical, Numeric, PrivateTable, Schema
from privet.criteria import Gini, Max
from privet.engines import BlockEngine
from privet.errors import BudgetError, SchemaError
from privet.grids import fine_grid
from privet.privacy import SeededNoise
from privet.tables import Multiway, Split

ALARM = 1e-6
SCHEMA = Schema(
    {"a": Categorical(["u", "v"]), "b": Categorical(["u", "v"]), "c": Categorical(["u", "v"])},
    target="y",
    classes=["p", "q"],
)
ROWS = [["u", "u", "v"]] * 6 + [["v", "u", "u"]] * 3 + [["v", "v", "v"]] * 4 + [["u", "v", "u"]]
LABELS = ["p"] * 5 + ["q"] + ["q"] * 3 + ["q", "p", "q", "q"] + ["p"]
pytestmark = pytest.mark.filterwarnings("ignore:random_state is fixed")


def open_table(seed=0, epsilon=1e9):
    return PrivateTable(ROWS, LABELS, SCHEMA, Budget(epsilon), random_state=seed)


def laplace_p(draws, scale):
    """Return the p-value of a chi-square test of integers against a discrete Laplace law."""
    ratio = np.exp(-1 / scale)
    reach = int(4 * scale) + 1
    values = np.arange(-reach, reach + 1)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    counts = np.array([np.sum(draws == v) for v in values], dtype=float)
    expected = mass * len(draws)
    rest = len(draws) - expected.sum()
    return stats.chisquare([*counts, len(draws) - counts.sum()], [*expected, rest]).pvalue


@pytest.mark.parametrize("question", ["noisy_counts", "noisy_class_counts"])
def test_counts_have_discrete_laplace_noise_of_scale_one_over_epsilon(question):
    table = open_table()
    cells = table.root().split([Split(0, (0, 1, 2))])
    exact = {"noisy_counts": [7, 7, 0], "noisy_class_counts": [[6, 1], [1, 6], [0, 0]]}[question]
    draws = np.concatenate(
        [(getattr(cells, question)(Fraction(1, 2)) - np.array(exact)).ravel() for _ in range(4_000)]
    )
    assert laplace_p(draws, 2.0) > ALARM
    assert laplace_p(draws, 1.4) < ALARM
    assert laplace_p(draws, 2.6) < ALARM


def test_each_cell_may_have_its_own_epsilon():
    table = open_table()
    cells = table.root().split([Split(0, (0, 1, 2))])
    amounts = [Fraction(1, 4), Fraction(1), Fraction(4)]
    draws = np.array([cells.noisy_counts(amounts) for _ in range(4_000)]) - [7, 7, 0]
    for column, scale in zip(draws.T, (4.0, 1.0, 0.25), strict=True):
        assert laplace_p(column, scale) > ALARM
        assert laplace_p(column, 1.6 * scale) < ALARM


def permute_and_flip_law(scores, scale):
    """P(i) = p_i * integral over t in [0, 1] of the product over j != i of (1 - t p_j)."""
    odds = np.exp((np.array(scores) - max(scores)) / scale)
    law = []
    for i, p in enumerate(odds):
        polynomial = np.array([1.0])
        for j, other in enumerate(odds):
            if j != i:
                polynomial = np.convolve(polynomial, [1.0, -other])
        law.append(p * sum(c / (k + 1) for k, c in enumerate(polynomial)))
    return np.array(law)


def split_loss(feature, impurity):
    groups = {"u": [], "v": []}
    for row, label in zip(ROWS, LABELS, strict=True):
        groups[row[feature]].append(label)
    return sum(impurity(np.array([g.count("p"), g.count("q")])) for g in groups.values())


@pytest.mark.parametrize(
    ("criterion", "impurity", "unit"),
    [
        (Max(), lambda counts: counts.min(), 1),
        (Gini(), lambda counts: counts.sum() - (counts**2).sum() / counts.sum(), 2**20),
    ],
    ids=["max", "gini"],
)
def test_splits_are_chosen_by_permute_and_flip_without_a_factor_of_two(criterion, impurity, unit):
    losses = [split_loss(feature, impurity) for feature in range(3)]
    table = open_table(seed=5)
    allowed = np.ones((1, 3), dtype=bool)
    epsilon = Fraction(1, 2)
    draws = [
        table.root().choose_splits(Multiway(), criterion, epsilon, allowed)[0].feature
        for _ in range(4_000)
    ]
    counts = np.bincount(draws, minlength=3)
    scale = criterion.spread / unit / float(epsilon)

    def p_value(at):
        law = permute_and_flip_law([-loss for loss in losses], at)
        return stats.chisquare(counts, law / law.sum() * len(draws)).pvalue

    assert p_value(scale) > ALARM
    assert p_value(0.7 * scale) < ALARM
    assert p_value(1.4 * scale) < ALARM


def test_features_that_are_not_allowed_are_never_chosen():
    table = open_table()
    allowed = np.array([[False, True, False]])
    features = {
        table.root().choose_splits(Multiway(), Max(), Fraction(1, 100), allowed)[0].feature
        for _ in range(200)
    }
    assert features == {1}
    with pytest.raises(ValueError, match="at least one feature"):
        table.root().choose_splits(Multiway(), Max(), 1, np.zeros((1, 3), dtype=bool))


def test_a_question_that_is_too_dear_is_not_computed(monkeypatch):
    table = open_table(epsilon=1.0)
    cells = table.root()
    cells.noisy_counts(Fraction(3, 4))

    def never(*_):
        raise AssertionError("computed before it was paid for")

    monkeypatch.setattr(BlockEngine, "_ask", never)
    monkeypatch.setattr(SeededNoise, "add_laplace", never)
    monkeypatch.setattr(SeededNoise, "permute_and_flip", never)
    allowed = np.ones((1, 3), dtype=bool)
    for ask in (
        lambda: cells.noisy_counts(0.5),
        lambda: cells.noisy_class_counts(0.5),
        lambda: cells.choose_splits(Multiway(), Max(), 0.5, allowed),
    ):
        with pytest.raises(BudgetExceeded, match="Nothing was computed") as caught:
            ask()
        assert caught.value.left == "epsilon 0.25"
    monkeypatch.undo()
    assert table.ledger.left == Fraction(1, 4)
    cells.noisy_counts(Fraction(1, 4))
    assert table.ledger.left == 0


def test_disjoint_cells_pay_once_and_paths_add_up():
    table = open_table(epsilon=10.0)
    root = table.root()
    root.noisy_counts(1)
    cells = root.split([Split(0, (0, 1, 2))])
    cells.noisy_counts([1, 2, 3])
    assert table.ledger.total.epsilon == 4
    cells.take(np.array([0])).noisy_counts(1)
    assert table.ledger.total.epsilon == 4
    cells.take(np.array([2])).split([Split(1, (0, 0, 1))]).noisy_class_counts(2)
    assert table.ledger.total.epsilon == 6
    root.split([Split(1, (0, 1, 2))]).noisy_counts(1)
    assert table.ledger.total.epsilon == 7


def test_zcdp_budgets_select_by_the_exponential_mechanism():
    table = PrivateTable(ROWS, LABELS, SCHEMA, Budget(rho=1.0), random_state=0)
    table.root().choose_splits(Multiway(), Max(), Fraction(1, 2), np.ones((1, 3), dtype=bool))
    assert table.ledger.entries[0].mechanism.kind == "exponential"
    assert table.ledger.total.rho == Fraction(1, 2)


def numeric_table(values, seed=0, epsilon=1e9):
    schema = Schema({"x": Numeric(0, 100)}, target="y", classes=["p", "q"])
    rows = np.array(values, dtype=float)[:, None]
    return PrivateTable(rows, ["p"] * len(rows), schema, Budget(epsilon), random_state=seed)


def test_quantiles_divide_the_records_evenly():
    values = np.random.default_rng(0).lognormal(1.5, 1.0, 20_000)
    table = numeric_table(values, epsilon=2.0)
    found = table.quantiles(0, 16, Fraction(1))
    assert list(found) == sorted(found)
    assert len(found) == 15
    shares = [np.mean(values < point) for point in found]
    np.testing.assert_allclose(shares, np.arange(1, 16) / 16, atol=0.01)
    assert table.ledger.total.epsilon == 1
    assert table.ledger.total.rho == Fraction(4, 16 * 8)


@pytest.mark.parametrize("values", [[], [50.0], [0.0] * 50, [np.nan] * 9, [-5.0, 1e9, np.inf]])
def test_quantiles_of_any_column_lie_within_the_bounds(values):
    found = numeric_table(values).quantiles(0, 8, Fraction(1))
    assert all(0 < point < 100 for point in found)


def test_joint_quantiles_come_near_and_cost_their_amount():
    values = np.random.default_rng(0).lognormal(1, 1.5, 200_000).clip(0, 1000)
    schema = Schema({"x": Numeric(0, 1000)}, target="y", classes=[0, 1])
    table = PrivateTable(values.reshape(-1, 1), np.zeros(len(values), int), schema, Budget(1.0))
    cuts = table.joint_quantiles("x", 10, 0.5)
    ranks = [np.mean(values < cut) for cut in cuts]
    assert np.abs(np.array(ranks) - np.arange(1, 10) / 10).max() < 0.02
    assert table.ledger.left == 0.5


@pytest.mark.parametrize("question", ["quantiles", "joint_quantiles"])
def test_a_feature_has_a_name_and_a_position(question):
    by_name, by_position = (
        getattr(numeric_table(range(100), seed=5), question)(feature, 4, Fraction(1))
        for feature in ("x", 0)
    )
    assert by_name == by_position


@pytest.mark.parametrize("question", ["quantiles", "joint_quantiles"])
@pytest.mark.parametrize(
    ("feature", "reason"),
    [("z", "no feature 'z'"), (7, "0 to 0"), (-1, "0 to 0"), (None, "its name"), (0.0, "its name")],
)
def test_quantiles_of_no_feature_are_refused_and_cost_nothing(question, feature, reason):
    table = numeric_table([1.0])
    with pytest.raises(SchemaError, match=reason):
        getattr(table, question)(feature, 4, Fraction(1))
    assert not table.ledger.entries


def test_categories_have_no_quantiles():
    with pytest.raises(SchemaError, match="numeric"):
        open_table().quantiles("a", 4, Fraction(1))


def test_a_median_follows_the_law_of_its_proof():
    """Three records make four stretches of the grid; the draw's law is length x exp(score)."""
    values = [20.0, 50.0, 55.0]
    table = numeric_table(values)
    epsilon = 1.5
    draws = np.array([table.quantiles(0, 2, Fraction(epsilon))[0] for _ in range(3_000)])
    counts = np.bincount(np.searchsorted(values, draws), minlength=4)
    lengths = np.bincount(np.searchsorted(values, fine_grid(0, 100)), minlength=4)

    def p_value(at):
        weights = lengths * np.exp(at * np.array([-3, -1, -1, -3]) / 2)
        return stats.chisquare(counts, weights / weights.sum() * len(draws)).pvalue

    assert p_value(epsilon) > ALARM
    assert p_value(0.7 * epsilon) < ALARM
    assert p_value(1.4 * epsilon) < ALARM


def test_features_are_chosen_without_replacement_by_what_they_promise():
    table = open_table(seed=3)
    draws = [table.root().choose_features(2, Fraction(4))[0] for _ in range(3_000)]
    assert all(len(set(chosen)) == 2 for chosen in draws)
    # Best trees of depth 1 get 12, 8 and 9 of 14 records right; two draws of scale 1/2 each.
    right = np.array([12, 8, 9])

    def p_value(at):
        odds = np.exp(at * right / 2)
        law = {}
        for first in range(3):
            for second in set(range(3)) - {first}:
                rest = odds.sum() - odds[first]
                pair = tuple(sorted((first, second)))
                law[pair] = law.get(pair, 0) + odds[first] / odds.sum() * odds[second] / rest
        counts = [draws.count(pair) for pair in law]
        return stats.chisquare(counts, np.array(list(law.values())) * len(draws)).pvalue

    assert best_counts() == right.tolist()
    assert p_value(4.0) > ALARM
    assert p_value(2.0) < ALARM
    assert table.ledger.entries[0].cost.epsilon == 4


def best_counts():
    best = []
    for feature in range(3):
        groups = {"u": [], "v": []}
        for row, label in zip(ROWS, LABELS, strict=True):
            groups[row[feature]].append(label)
        best.append(sum(max(g.count("p"), g.count("q")) for g in groups.values()))
    return best


def test_a_budget_too_small_for_any_noise_is_not_charged():
    table = PrivateTable(
        [["u"]], [1], Schema({"a": Categorical(["u"])}, "y", classes=[0, 1]), Budget(1)
    )
    cells, least = table.root(), Fraction(1, 10**400)
    for question in (
        cells.noisy_counts,
        cells.noisy_class_counts,
        cells.choose_labels,
        cells.choose,
    ):
        with pytest.raises(BudgetError, match="too small"):
            question(least)
    assert table.ledger.left == 1
