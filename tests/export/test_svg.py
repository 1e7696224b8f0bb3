"""Trees as pictures: valid XML, no overlaps, colours that can be read."""

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings

from privet.export import to_svg
from privet.export.svg import _INK, _class_colour, _mean_colour, _width
from privet.schema import Numeric, Schema
from privet.tree import Cut, Node, Tree

from ..tree.strategies import trees  # noqa: TID252

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tree: Tree):
    """Return the picture, and for every node its box and the places of its texts."""
    root = ET.fromstring(to_svg(tree))
    nodes = []
    for group in root.iter(f"{SVG}g"):
        if group.find(f"{SVG}title") is None:
            continue
        rect = group.find(f"{SVG}rect")
        x, y, width, height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        shapes = [(x, y, x + width, y + height)]
        texts = []
        for text in group.findall(f"{SVG}text"):
            half, base = _width(text.text) / 2, float(text.get("y"))
            middle = float(text.get("x"))
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


def assert_tidy(tree: Tree) -> None:
    root, nodes = drawn(tree)
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


def test_hostile_names_are_text(hostile_tree):
    svg = to_svg(hostile_tree)
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
    colours = [_class_colour(place) for place in range(200)]
    colours += [_mean_colour(step / 20) for step in range(21)]
    for colour in colours:  # the contrast that WCAG asks of small text (AAA)
        assert (luminance(colour) + 0.05) / (luminance(_INK) + 0.05) >= 7
    assert len(set(colours[:60])) == 60


def test_the_picture_stands_alone(ward_tree):
    svg = to_svg(ward_tree)
    for outside in ("href", "url(", "<style", "<script", " id="):
        assert outside not in svg


def test_an_empty_class_is_drawn_with_quotes():
    schema = Schema({"x": Numeric(0, 1)}, "y", classes=["", "b"])
    tree = Tree(schema, (Node(value=(1.0, 0.0)),))
    assert [text.text for text in drawn(tree)[0].iter(f"{SVG}text")] == ["y", '""', "b", '""']
    assert_tidy(tree)
