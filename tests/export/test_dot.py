"""Trees for Graphviz: structure and escaping."""

import re

from hypothesis import given, settings

from privet.export import to_dot

from ..tree.strategies import trees  # noqa: TID252

STRING = r'"(?:[^"\\]|\\.)*"'  # DOT ends a string at the first quote that is not escaped
LINE = re.compile(
    rf"  (?:n\d+ \[label={STRING}(?:, style={STRING})?\]|n\d+ -> n\d+ \[label={STRING}\]"
    rf"|graph \[label={STRING}, labelloc=t\]|node \[shape=box\])"
)


def test_a_tree(ward_tree):
    text = to_dot(ward_tree)
    assert 'n0 [label="age\\nnoisy count: 444"]' in text
    assert 'n0 -> n1 [label="< 65"]' in text
    assert 'n2 -> n4 [label="a, c, other or missing"]' in text
    assert text.count("->") == 5


def test_nothing_in_a_name_is_special(hostile_tree):
    text = to_dot(hostile_tree)
    assert r"a\"b\\c\\nd<e>|{f}&amp;amp;\\x1b[31m\\u202e\\ud800" in text


@settings(deadline=None)
@given(trees())
def test_every_line_is_a_statement(tree):
    first, *lines, last = to_dot(tree).split("\n")
    assert (first, last) == ("digraph {", "}")
    assert all(LINE.fullmatch(line) for line in lines)
