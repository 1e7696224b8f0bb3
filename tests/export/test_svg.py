"""Models as pictures: valid XML, no overlaps, colours that can be read."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings

from privet.ensemble import Ensemble
from privet.export import to_svg
from privet.export._drawing import (
    INK,
    class_colour,
    line_colour,
    mean_colour,
    score_colour,
    text_width,
)
from privet.schema import Categorical, Date, Numeric, Schema, day_of_text
from privet.tree import Cut, Grouping, Node, Tree

from ..tree.strategies import ensembles, trees  # noqa: TID252

SVG = "{http://www.w3.org/2000/svg}"


def groups(element: ET.Element, x: float = 0.0, y: float = 0.0):
    """Yield all groups with the places of their origins."""
    for group in element.findall(f"{SVG}g"):
        moved = re.fullmatch(r"translate\((\S+) (\S+)\)", group.get("transform", "translate(0 0)"))
        here = x + float(moved[1]), y + float(moved[2])
        yield group, *here
        yield from groups(group, *here)


def drawn(model: Tree | Ensemble):
    """Return the picture, and for every node its box and the places of its texts."""
    root = ET.fromstring(to_svg(model))
    nodes = []
    for group, left, top in groups(root):
        if group.find(f"{SVG}title") is None:
            continue
        rect = group.find(f"{SVG}rect")
        x, y, width, height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        x, y = x + left, y + top
        shapes = [(x, y, x + width, y + height)]
        texts = []
        for text in group.findall(f"{SVG}text"):
            half, base = text_width(text.text) / 2, float(text.get("y")) + top
            middle = float(text.get("x")) + left
            place = (middle - half, base - 10, middle + half, base + 3)
            inside = y < base < y + height
            texts.append((text.text, place, inside))
            if inside:
                assert x <= place[0] + 0.2
                assert place[2] <= x + width + 0.2
            else:
                shapes.append(place)
        nodes.append((shapes, texts))
    return root, nodes


def overlap(a, b) -> bool:
    return a[0] + 0.2 < b[2] and b[0] + 0.2 < a[2] and a[1] + 0.2 < b[3] and b[1] + 0.2 < a[3]


def assert_tidy(model: Tree | Ensemble) -> None:
    root, nodes = drawn(model)
    shapes = [shape for node in nodes for shape in node[0]]
    assert not any(overlap(a, b) for a, b in combinations(shapes, 2))
    _, _, width, height = map(float, root.get("viewBox").split())
    reach = max(shape[2] for shape in shapes)
    assert min(shape[0] for shape in shapes) >= -0.2
    assert reach <= width
    assert max(shape[3] for shape in shapes) <= height


def test_a_tree(ward_tree):
    root, nodes = drawn(ward_tree)
    assert len(nodes) == 6
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "age >= 65\nward in {b, d}\nno\n0.56\nnoisy counts: no 50, yes 40" in titles
    assert "test of age\nnoisy count: 444" in titles
    legend = [text.text for text in root.iter(f"{SVG}text")][:3]
    assert legend == ["readmitted", "no", "yes"]
    assert_tidy(ward_tree)


def test_parents_stand_over_the_middle_of_their_children(ward_tree):
    _, nodes = drawn(ward_tree)
    middles = [(shapes[0][0] + shapes[0][2]) / 2 for shapes, _ in nodes]
    assert middles[0] == pytest.approx((middles[1] + middles[3]) / 2, abs=0.2)
    assert middles[2] == pytest.approx((middles[4] + middles[5]) / 2, abs=0.2)


def test_means_have_colours_and_a_legend(mean_tree):
    root, _ = drawn(mean_tree)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[:6] == ["stay", "0", "7.5", "15", "22.5", "30"]
    assert_tidy(mean_tree)


def test_hostile_names_are_text(hostile_tree, hostile_ensemble):
    deeper = Tree(
        hostile_ensemble.schema,
        (
            Node(Grouping(hostile_ensemble.used[0], (0, 1), 1), (1, 2)),
            Node(Grouping(hostile_ensemble.used[1], (0, 1), 1), (3, 4)),
            *(Node(value=(score, 0.0, 0.0)) for score in (1.0, 2.0, 3.0)),
        ),
        3,
    )
    boosted = Ensemble(hostile_ensemble.schema, (0.0,) * 3, (deeper,))
    for model in (hostile_tree, hostile_ensemble, boosted):
        svg = to_svg(model)
        assert "<script>" not in svg
        assert "\x1b" not in svg
        assert not list(ET.fromstring(svg).iter(f"{SVG}script"))
        svg.encode("utf-8")


def test_a_hundred_leaves():
    schema = Schema({"x": Numeric(0, 100, bins=100)}, "y", classes=["no", "yes"])
    edges = tuple(float(edge) for edge in range(1, 100))
    leaves = [Node(value=(float(j % 2), float(1 - j % 2))) for j in range(100)]
    tree = Tree(schema, (Node(Cut("x", edges, 0), tuple(range(1, 101))), *leaves))
    _, nodes = drawn(tree)
    assert len(nodes) == 101
    assert_tidy(tree)


@settings(deadline=None)
@given(trees())
def test_every_tree_is_drawn_without_overlaps(tree):
    assert_tidy(tree)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_can_be_read_on_every_colour():
    colours = [class_colour(place) for place in range(200)]
    colours += [mean_colour(step / 20) for step in range(21)]
    colours += [score_colour([score]) for score in (-1.0, 0.0, 1.0)]
    for colour in colours:  # the contrast that WCAG asks of small text (AAA)
        assert (luminance(colour) + 0.05) / (luminance(INK) + 0.05) >= 7
    assert len(set(colours[:60])) == 60


def test_lines_can_be_seen_on_white():
    colours = [line_colour(place) for place in range(200)]
    for colour in colours:  # the contrast that WCAG asks of graphics
        assert 1.05 / (luminance(colour) + 0.05) >= 3
    assert len(set(colours[:60])) == 60


def test_the_picture_stands_alone(ward_tree, boosted, additive):
    for model in (ward_tree, boosted, additive):
        svg = to_svg(model)
        for outside in ("href", "url(", "<style", "<script", " id="):
            assert outside not in svg


def test_an_empty_class_is_drawn_with_quotes():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["", "b"])
    tree = Tree(schema, (Node(value=(1.0, 0.0)),))
    assert [text.text for text in drawn(tree)[0].iter(f"{SVG}text")] == ["y", '""', "b", '""']
    assert_tidy(tree)


# ----------------------------------------------------------------------------- ensembles of trees


def test_trees_stand_one_below_the_other(boosted):
    root, nodes = drawn(boosted)
    texts = [text.text or text.find(f"{SVG}title").tail for text in root.iter(f"{SVG}text")]
    assert texts[:5] == [
        "readmitted",
        "no: below 0",
        "yes: above 0",
        "ensemble of 2 trees whose scores add up to the log odds of readmitted = yes",
        "start: -0.25",
    ]
    assert texts[5:7] == ["tree 1", "age"]
    assert [texts.index(name) < texts.index("tree 2") for name in ("+1.5", "+0.31")] == [
        True,
        False,
    ]
    assert len(nodes) == 9
    lowest = max(shapes[0][3] for shapes, _ in nodes[:6])
    assert all(lowest < shapes[0][1] for shapes, _ in nodes[6:])
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "age < 65\n-0.42\nnoisy count: 19" in titles
    assert_tidy(boosted)


def test_leaves_have_the_colour_of_their_sign(boosted):
    root, _ = drawn(boosted)
    fills = {
        group.find(f"{SVG}title").text.splitlines()[-1]: group.find(f"{SVG}rect").get("fill")
        for group, *_ in groups(root)
        if group.find(f"{SVG}title") is not None
    }
    assert fills["-0.05"] == class_colour(0)
    assert fills["+0.31"] == fills["+1.5"] == class_colour(1)
    assert fills["0"] not in (class_colour(0), class_colour(1))
    assert score_colour([-1.0, 0.5, 0.25]) == class_colour(1)


@settings(max_examples=50)
@given(ensembles())
def test_every_ensemble_is_drawn_without_overlaps(ensemble):
    if ensemble.additive:
        ET.fromstring(to_svg(ensemble))
    else:
        assert_tidy(ensemble)


# ----------------------------------------------------------------------------------------- shapes


class Panel:
    """The picture of one shape, read back."""

    def __init__(self, group: ET.Element, x: float, y: float) -> None:
        self.title = group.find(f"{SVG}title").text
        ticks = {
            text.text: float(text.get("y")) - 12 * 0.35
            for text in group.findall(f"{SVG}text")
            if text.get("text-anchor") == "end"
        }
        (_, zero), (label, other) = ("0", ticks["0"]), next(t for t in ticks.items() if t[0] != "0")
        self.per_pixel = float(label) / (zero - other)
        self.zero = zero
        self.columns = {}
        for inner in group.findall(f"{SVG}g"):
            title = inner.find(f"{SVG}title").text
            hit, *bars = inner.findall(f"{SVG}rect")
            self.columns[title] = (float(hit.get("x")), float(hit.get("width")), bars)
        paths = [path for path in group.findall(f"{SVG}path") if path.get("pointer-events")]
        self.curves = [path.get("d") for path in paths]
        rects = list(group.iter(f"{SVG}rect"))
        self.box = (
            x,
            y,
            x + max(float(r.get("x")) + float(r.get("width")) for r in rects),
            y + max(float(r.get("y")) + float(r.get("height")) for r in rects),
        )

    def bar_scores(self, title: str) -> list[float]:
        scores = []
        for bar in self.columns[title][2]:
            top, height = float(bar.get("y")), float(bar.get("height"))
            end = top if top < self.zero - 0.2 else top + height
            scores.append((self.zero - end) * self.per_pixel)
        return scores

    def curve_scores(self, curve: int) -> list[float]:
        assert re.fullmatch(r"M[\d.]+ [\d.]+(V[\d.]+H[\d.]+)+", self.curves[curve])
        steps = re.findall(r"V([\d.]+)H([\d.]+)", self.curves[curve])
        intervals = [left + width for left, width, _ in self.columns.values()][:-1]
        assert [float(right) for _, right in steps] == pytest.approx(intervals, abs=0.2)
        return [(self.zero - float(height)) * self.per_pixel for height, _ in steps]


def panels(ensemble: Ensemble) -> list[Panel]:
    root = ET.fromstring(to_svg(ensemble))
    return [
        Panel(group, *place)
        for group, *place in groups(root)
        if group.find(f"{SVG}title") is not None and group.find(f"{SVG}g") is not None
    ]


def test_a_number_has_a_curve_and_a_bar_for_missing_values():
    schema = Schema({"x": Numeric(0, 10)}, "y", bounds=(-9, 9))
    nodes = [Node(Cut("x", (2.0, 10.0), 3), (1, 2, 3, 4))]
    nodes += [Node(value=(score,)) for score in (1.0, -2.0, 3.0, 0.5)]
    (panel,) = panels(Ensemble(schema, (0.0,), (Tree(schema, tuple(nodes), 1),)))
    assert panel.title == "x"
    assert list(panel.columns) == [
        "x < 2\n+1",
        "2 <= x < 10\n-2",
        "x >= 10\n+3",
        "x missing\n+0.5",
    ]
    widths = [width for _, width, _ in panel.columns.values()]
    assert widths[1] == pytest.approx(4 * widths[0], abs=0.2)
    assert widths[2] > 2  # what lies on the upper bound and beyond can be seen
    assert panel.curve_scores(0) == pytest.approx([1, -2, 3], abs=0.01)
    for title, score in zip(panel.columns, (1, -2, 3, 0.5), strict=True):
        assert panel.bar_scores(title) == pytest.approx([score], abs=0.01)


def test_categories_have_bars(additive_classes):
    (panel,) = panels(additive_classes)
    assert panel.curves == []
    scores = [panel.bar_scores(title) for title in panel.columns]
    expected = [(0.5, 0.0, -1.0), (-0.5, 2.0, 0.25), (0.125, -0.125, 0.001)]
    assert scores == [pytest.approx(row, abs=0.02) for row in expected]
    assert "ward in {b}\ngood -0.5, fair +2, bad +0.25" in panel.columns
    colours = [
        bar.get("fill") for bar in panel.columns["ward in {a}\ngood +0.5, fair 0, bad -1"][2]
    ]
    assert colours == [line_colour(place) for place in range(3)]


def test_all_shapes_share_one_scale(additive):
    age, sex = panels(additive)
    assert age.per_pixel == sex.per_pixel
    assert [age.title, sex.title] == ["age", "sex"]


def test_several_classes_have_a_curve_each():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["a", "b", "c"])
    nodes = (
        Node(Cut("x", (0.5,), 0), (1, 2)),
        Node(value=(0.0, 1.0, -1.0)),
        Node(value=(1.0, -1.0, 0.5)),
    )
    (panel,) = panels(Ensemble(schema, (0.0,) * 3, (Tree(schema, nodes, 3),)))
    curves = [panel.curve_scores(place) for place in range(3)]
    assert curves == [pytest.approx(c, abs=0.01) for c in ([0, 1], [1, -1], [-1, 0.5])]


def test_many_features_are_drawn_in_rows():
    features = {f"feature {j}": Numeric(0, 10**j) for j in range(1, 12)}
    features |= {f"list {j}": Categorical([f"category {i}" for i in range(j)]) for j in (1, 5, 20)}
    schema = Schema(features, "y", classes=["no", "yes"])
    trees = []
    for name, feature in features.items():
        if isinstance(feature, Numeric):
            test = Cut(name, (feature.high / 2,), 0)
        else:
            test = Grouping(name, (0,) * len(feature.values), 1)
        nodes = Node(test, (1, 2)), Node(value=(-1.0,)), Node(value=(1.0,))
        trees.append(Tree(schema, nodes, 1))
    ensemble = Ensemble(schema, (0.0,), tuple(trees))
    found = panels(ensemble)
    assert [panel.title for panel in found] == list(features)
    assert not any(overlap(a.box, b.box) for a, b in combinations(found, 2))
    root = ET.fromstring(to_svg(ensemble))
    _, _, width, height = map(float, root.get("viewBox").split())
    assert max(panel.box[2] for panel in found) <= width
    assert max(panel.box[3] for panel in found) <= height
    assert len({panel.box[1] for panel in found}) > 3


@settings(max_examples=50)
@given(ensembles(additive=True))
def test_every_additive_ensemble_is_drawn(ensemble):
    svg = to_svg(ensemble)
    assert "nan" not in re.sub(r">[^<]*<", "><", svg)
    found = [title.text for title in ET.fromstring(svg).iter(f"{SVG}title")]
    columns = sum(len(shape.scores) + 1 for shape in ensemble.shapes())
    assert len(found) == 3 + len(ensemble.shapes()) + columns


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        ("2020-01-01", "2024-12-31", ["2020", "2021", "2022", "2023", "2024"]),
        ("2023-01-01", "2023-12-31", ["2023-01", "2023-07"]),
        ("1900-01-01", "2026-01-01", ["1900", "1950", "2000"]),
        ("2024-01-10", "2024-01-31", ["2024-01-10", "2024-01-21"]),
    ],
)
def test_axes_of_dates_have_several_labels(low, high, labels):
    schema = Schema({"day": Date(low, high)}, "stay", classes=["no", "yes"])
    middle = float((day_of_text(low) + day_of_text(high)) // 2)
    nodes = (Node(Cut("day", (middle,), 0), (1, 2)), Node(value=(0.5,)), Node(value=(-0.5,)))
    drawn = to_svg(Ensemble(schema, (0.0,), [Tree(schema, nodes, scores=1)]))
    assert re.findall(r">(\d{4}(?:-\d\d)*)</text>", drawn) == labels
