"""Trees for Graphviz: structure and escaping."""

import re

from hypothesis import given, settings

from privet.export import to_dot

from ..tree.strategies import ensembles, trees  # noqa: TID252

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


NODE = r"t(\d+)_n\d+"
CLUSTER_LINE = re.compile(
    rf"    (?:{NODE} \[label={STRING}(?:, style={STRING})?\]"
    rf"|{NODE} -> {NODE} \[label={STRING}\]|graph \[label={STRING}\])"
)


def clusters(text: str) -> list[list[str]]:
    """Return the lines of each cluster; whatever is outside of them must be about the graph."""
    first, *lines, last = text.split("\n")
    assert (first, last) == ("digraph {", "}")
    found: list[list[str]] = []
    inside = False
    for line in lines:
        if line == f"  subgraph cluster_{len(found) + 1} {{" and not inside:
            found.append([])
            inside = True
        elif line == "  }" and inside:
            inside = False
        elif inside:
            found[-1].append(line)
        else:
            assert LINE.fullmatch(line)
    assert not inside
    return found


def test_an_ensemble_has_a_cluster_for_every_tree(boosted):
    text = to_dot(boosted)
    assert (
        'graph [label="readmitted\\nensemble of 2 trees whose scores add up to '
        'the log odds of readmitted = yes\\nstart: -0.25", labelloc=t]'
    ) in text
    first, second = clusters(text)
    assert first[0] == '    graph [label="tree 1"]'
    assert '    t1_n1 [label="-0.42\\nnoisy count: 19", style="rounded"]' in first
    assert second[1:] == [
        '    t2_n0 [label="sex"]',
        '    t2_n1 [label="-0.05", style="rounded"]',
        '    t2_n2 [label="+0.31", style="rounded"]',
        '    t2_n0 -> t2_n1 [label="f"]',
        '    t2_n0 -> t2_n2 [label="m, other or missing"]',
    ]


def test_an_additive_ensemble_has_a_cluster_for_every_feature(additive):
    age, sex = clusters(to_dot(additive))
    assert age[0] == '    graph [label="age"]'
    assert sex[2:4] == [
        '    t2_n1 [label="+1200", style="rounded"]',
        '    t2_n2 [label="-0.5", style="rounded"]',
    ]


@settings(max_examples=50)
@given(ensembles() | ensembles(additive=True))
def test_every_line_of_an_ensemble_is_a_statement(ensemble):
    found = clusters(to_dot(ensemble))
    if not ensemble.additive:
        assert len(found) == len(ensemble.trees)
    for number, lines in enumerate(found, start=1):
        for line in lines:
            match = CLUSTER_LINE.fullmatch(line)
            assert match
            assert {tree for tree in match.groups() if tree} <= {str(number)}
