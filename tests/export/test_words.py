"""Trees for people: edges in few digits, whole numbers, days, folded branches, noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.export import to_dot, to_svg, to_text
from privet.export._words import branch_words, shown_edges
from privet.model import load
from privet.schema import Categorical, Date, Integer, Numeric, Schema, day_of_text
from privet.tree import Cut, Grouping, Node, Tree

BOUNDS = st.tuples(
    st.floats(-1e9, 1e9, allow_nan=False), st.floats(1e-6, 1e9, allow_nan=False)
).map(lambda pair: (pair[0], pair[0] + pair[1]))


def compared(edges, feature):
    """Return the numbers that a reader compares with: ``x <= 0`` is ``x < `` what follows 0."""
    shown = ((float(edge.text), edge.above) for edge in shown_edges(edges, feature))
    return [math.nextafter(number, math.inf) if above else number for number, above in shown]


@settings(max_examples=60, deadline=None)
@given(BOUNDS, st.data())
def test_shown_edges_send_every_point_of_the_grid_the_same_way(bounds, data):
    try:
        feature = Numeric(*bounds)
    except ValueError:  # too close together
        return
    grid = feature.grid
    zero = int(np.searchsorted(grid, 0.0))
    edge_cases = st.sampled_from([0, 1, min(zero, len(grid) - 1), min(zero + 1, len(grid) - 1)])
    places = st.integers(0, len(grid) - 1) | edge_cases
    chosen = data.draw(st.sets(places, min_size=1, max_size=4).map(sorted))
    edges = [float(grid[place]) for place in chosen]
    shown = compared(edges, feature)
    points = np.concatenate([[feature.low], grid, [feature.high]])
    stored = np.searchsorted(edges, points, side="right")
    np.testing.assert_array_equal(np.searchsorted(shown, points, side="right"), stored)


def test_the_check_of_edges_sees_a_digit_too_few():
    """It can fail: four digits, as one would round, move points of the grid."""
    feature = Numeric(1900, 2030)
    edge = float(feature.grid[np.searchsorted(feature.grid, 1990.12)])
    points = feature.grid
    assert not np.array_equal(points < edge, points < float(f"{edge:.4g}"))
    (shown,) = shown_edges([edge], feature)
    assert not shown.above
    assert np.array_equal(points < edge, points < float(shown.text))
    assert len(shown.text) <= 8


def test_edges_off_the_grid_stay_apart():
    edges = [0.5, 0.5000001, math.nextafter(0.5000001, 1)]
    shown = compared(edges, Numeric(0, 1))
    assert shown[0] < shown[1] < shown[2]
    assert all(a <= b for a, b in zip(shown, edges, strict=True))


@pytest.mark.parametrize(
    ("bounds", "near", "text"),
    [((1900, 2030), 1990.0000000001455, "1990"), ((0, 100), 65.0, "65"), ((0, 1e12), 5e11, "5")],
)
def test_nobody_reads_thirteen_digits(bounds, near, text):
    (shown,) = shown_edges([near], Numeric(*bounds))
    assert shown.text.startswith(text)
    assert len(shown.text) <= 12


def conditions(feature, *edges):
    words = branch_words(Cut("x", edges, missing=len(edges) + 1), number_schema(feature))
    return words[:-1]


def number_schema(feature):
    return Schema({"x": feature}, "days", bounds=(0, 9))


def test_edges_at_the_lower_bound_name_it():
    gain, balance = Numeric(0, 1200), Numeric(-50, 50)
    first, second = (float(point) for point in gain.grid[:2])
    assert conditions(gain, first, 75.0) == [
        ("x <= 0", "≤ 0"),
        ("0 < x < 75", "0 to 75"),
        ("x >= 75", "≥ 75"),
    ]
    assert conditions(gain, second)[0] == ("x < 2e-12 (nearly 0)", "nearly 0")
    assert conditions(gain, 0.01)[0] == ("x < 0.01", "< 0.01")
    above_zero = float(balance.grid[np.searchsorted(balance.grid, 0.0) + 1])
    assert conditions(balance, 0.0, above_zero) == [
        ("x < 0", "< 0"),
        ("x = 0", "= 0"),
        ("x > 0", "> 0"),
    ]
    assert conditions(balance, -1e-9, above_zero)[1][0] == "-1e-9 <= x <= 0 (nearly 0)"
    assert conditions(balance, float(balance.grid[0]))[0][0] == "x <= -50"


def test_a_wide_first_bin_is_not_called_its_bound():
    """An edge that is far from the bound stays itself, though no point of the grid is between."""
    feature = Numeric(0, 40, edges=[10, 20])
    grid = np.array([10.0, 20.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Numeric, "grid", property(lambda _: grid))
        (shown,) = shown_edges([10.0], feature)
    assert (shown.text, shown.above) == ("10", False)


def number_tree(schema: Schema, *edges: float) -> Tree:
    (name,) = schema.names
    values = [Node(value=(float(k),)) for k in range(len(edges) + 2)]
    test = Cut(name, edges, len(edges) + 1)
    return Tree(schema, (Node(test, tuple(range(1, len(values) + 1))), *values))


def test_whole_numbers_are_named_themselves():
    schema = Schema({"previous_stays": Integer(0, 20)}, "days", bounds=(0, 9))
    lines = to_text(number_tree(schema, 2.0, 3.0, 8.0)).splitlines()
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "├─ previous_stays <= 1",
        "├─ previous_stays = 2",
        "├─ 3 <= previous_stays <= 7",
        "├─ previous_stays >= 8",
        "└─ previous_stays missing",
    ]


def test_dates_are_days():
    schema = Schema({"admitted": Date("2020-01-01", "2024-12-31")}, "days", bounds=(0, 9))
    text = to_text(number_tree(schema, day_of_text("2021-03-01"), day_of_text("2022-07-15")))
    assert "admitted < 2021-03-01" in text
    assert "2021-03-01 <= admitted < 2022-07-15" in text


@pytest.fixture
def lost_tree() -> Tree:
    """Two branches for what is missing or unknown, with tests of their own."""
    schema = Schema(
        {"age": Numeric(0, 120), "ward": Categorical(["a", "b"])}, "ill", classes=["no", "yes"]
    )
    leaf = {"class_counts": (2, 1)}
    return Tree(
        schema,
        (
            Node(Grouping("ward", (0, 1), 2), (1, 2, 3)),
            Node(Cut("age", (40.0,), 2), (4, 5, 6)),
            Node(value=(0.2, 0.8), released={"class_counts": (21, 90)}),
            Node(Cut("age", (65.0,), 0), (7, 8)),
            Node(value=(0.9, 0.1), released={"class_counts": (40, 2)}),
            Node(value=(0.3, 0.7), released={"class_counts": (30, 70)}),
            Node(Grouping("ward", (0, 1), 0), (9, 10)),
            Node(value=(0.6, 0.4), released=leaf),
            Node(value=(0.4, 0.6), released=leaf),
            Node(value=(0.6, 0.4), released=leaf),
            Node(value=(0.4, 0.6), released=leaf),
        ),
    )


def test_branches_for_missing_values_are_folded(lost_tree):
    assert to_text(lost_tree).splitlines() == [
        "ill",
        "├─ ward in {a}",
        "│  ├─ age < 40: no (0.90; noisy counts: no 40, yes 2)",
        "│  ├─ age >= 40: yes (0.70; noisy counts: no 30, yes 70)",
        "│  └─ age missing: no or yes (2 leaves; 1 test folded; noisy counts: no 4, yes 2)",
        "├─ ward in {b}: yes (0.80; noisy counts: no 21, yes 90)",
        "└─ ward other or missing: no or yes (2 leaves; 1 test folded; noisy counts: no 4, yes 2)",
    ]
    assert len(to_text(lost_tree, fold=False).splitlines()) == 11
    for write in (to_svg, to_dot):
        assert "1 test folded" in write(lost_tree)
        assert "folded" not in write(lost_tree, fold=False)


def test_counts_that_are_no_more_than_noise_say_so(lost_tree):
    """The threshold of a sum grows with the root of how many numbers it is made of."""
    text = to_text(lost_tree, noise={"class_counts": 4.0}, fold=False)
    assert text.count("no more than noise") == 4  # 3 <= 4 * sqrt(2)
    text = to_text(lost_tree, noise={"class_counts": 40.0})
    marked = [line for line in text.splitlines() if "no more than noise" in line]
    assert len(marked) == 3  # 42 <= 40 * sqrt(2), and the two folded branches
    assert "stroke-dasharray" in to_svg(lost_tree, noise={"class_counts": 40.0}, fold=False)
    assert "stroke-dasharray" not in to_svg(lost_tree, fold=False)


def test_the_noise_of_counts_is_what_the_card_says(request):
    seeded = request.path.parents[1] / "golden" / "seeded"
    model = load(seeded / "tree.json")
    # Laplace noise for a share of 0.049: deviation sqrt(2) / 0.049, three of them. The count of all
    # rows, which was bought before, is in no node.
    assert model.noise == {"class_counts": pytest.approx(3 * math.sqrt(2) / 0.049)}
    # The start has counts of classes, too, for three per cent.
    boosted = load(seeded / "boosting_tree.json")
    leaves = 0.2 * 0.97 * boosted.privacy.epsilon
    assert boosted.noise == {"class_counts": pytest.approx(3 * math.sqrt(2) / leaves, rel=0.01)}
    grown = load(seeded / "diffpc45.json")  # whose root is a node like all others
    assert grown.noise.keys() == {"class_counts", "count"}
    assert "no more than noise" in to_text(model.predictor, noise={"class_counts": 1e9})
